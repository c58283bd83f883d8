//! Fast division by divisors that are known long before the dividends.
//!
//! `plan/` makes divisors for the levels of a nest, and `exec/` uses them to find a packed position.
//! If the divisor and the dividend fit in 32 bits, a multiplication by the reciprocal gives the
//! quotient (Granlund and Montgomery, 1994). When division instructions were used instead, four
//! dependent divisions took a tenth of the time of packing a range of 8 KiB (`typepack-bench commit`,
//! "box of wide planes").

/// A divisor, stored with its reciprocal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    by: u64,
    /// 2^64 / by, rounded up. The value is 0 if division by `by` uses another method.
    reciprocal: u64,
}

impl Divisor {
    pub(crate) const ONE: Self = Self { by: 1, reciprocal: 0 };

    /// Makes a divisor. `by` must not be 0.
    #[inline]
    pub(crate) fn new(by: u64) -> Self {
        let short = (2..=u64::from(u32::MAX)).contains(&by);
        Self { by, reciprocal: if short { u64::MAX / by + 1 } else { 0 } }
    }

    /// Returns the divisor as an integer.
    #[inline]
    pub(crate) fn get(self) -> u64 {
        self.by
    }

    /// Returns the quotient and the remainder.
    #[inline]
    pub(crate) fn divide(self, number: u64) -> (u64, u64) {
        let quotient = if self.by == 1 {
            number
        } else if self.reciprocal != 0 && u32::try_from(number).is_ok() {
            // The reciprocal is at most 1 greater than 2^64 / by, and `number` is below 2^32. So the
            // product divided by 2^64 exceeds the exact quotient `number / by`, by less than 2^-32. This
            // is less than 1 / by, because `by` is also below 2^32. So rounding down gives the right
            // quotient.
            ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64
        } else {
            number / self.by
        };
        (quotient, number - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::Divisor;

    #[test]
    fn quotients_are_exact() {
        const MAX: u64 = u32::MAX as u64;
        let interesting = |n: u64| [n.saturating_sub(1), n, n.saturating_add(1)];
        let divisors: Vec<u64> = (1..200)
            .chain([640, 999, 65_535, 65_536, 65_537, 1 << 31, MAX - 1, MAX, MAX + 1, u64::MAX])
            .collect();
        for &by in &divisors {
            let divisor = Divisor::new(by);
            let multiples = [0, 1, 2, 3, 7, 1000, MAX / by, MAX / by / 2, u64::MAX / by];
            let numbers = multiples.into_iter().flat_map(|k| interesting(by.saturating_mul(k)));
            for number in numbers.chain(interesting(MAX)).chain(interesting(u64::MAX)).chain(0..300)
            {
                assert_eq!(divisor.divide(number), (number / by, number % by), "{number} / {by}");
            }
        }
    }
}
