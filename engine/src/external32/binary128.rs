//! Converts the bit patterns of x87 80-bit floating-point numbers to and from IEEE 754 binary128.
//! `kind.rs` uses this file.
//!
//! external32 stores `MPI_LONG_DOUBLE` in 16 bytes with 15 bits of exponent and 112 bits of
//! fraction (MPI-5.0 section 14.5.2). The `long double` of a C compiler on x86 has the x87 format:
//! also 15 bits of exponent, but only 63 bits of fraction, and above them an explicit integer bit.
//! Widening from x87 to binary128 is exact. Narrowing from binary128 to x87 rounds to nearest, ties
//! to even; a number that is too large becomes infinity, as in floating-point arithmetic.

/// The exponent of infinities and NaNs in both formats.
const SPECIAL: u16 = 0x7fff;
/// Number of fraction bits that binary128 has in addition to those of the x87 format.
const EXTRA: u32 = 49;
/// The explicit integer bit of an x87 significand.
const INTEGER: u64 = 1 << 63;
/// The bit of an x87 significand that makes a NaN quiet.
const QUIET: u64 = 1 << 62;
const FRACTION: u128 = (1 << 112) - 1;

/// An x87 number. `head` holds the sign and the exponent, which are stored in the upper two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extended {
    /// Bit 15 is the sign. The 15 bits below it are the exponent, biased by 16383.
    pub(crate) head: u16,
    /// Bit 63 is the integer bit. The 63 bits below it are the fraction.
    pub(crate) significand: u64,
}

/// Converts an x87 number to binary128. Some bit patterns are invalid on an x87, because their integer
/// bit is clear although their exponent requires a set one; these become quiet NaNs.
#[inline]
pub(crate) fn from_extended(number: Extended) -> u128 {
    let Extended { head, significand } = number;
    let (sign, exponent) = (u128::from(head >> 15) << 127, head & SPECIAL);
    let fraction = u128::from(significand & !INTEGER) << EXTRA;
    let exponent = match (exponent, significand & INTEGER != 0) {
        // In both formats, zero and the subnormal numbers have exponent field 0 and the same scale.
        (0, false) => 0,
        // A pseudo-denormal has the integer bit set and exponent field 0. Its value is the same as with
        // exponent field 1.
        (0, true) => 1,
        (_, false) => return sign | (u128::from(SPECIAL) << 112) | (u128::from(QUIET) << EXTRA),
        (exponent, true) => exponent,
    };
    sign | (u128::from(exponent) << 112) | fraction
}

/// Returns the x87 number nearest to a binary128 number.
#[inline]
pub(crate) fn to_extended(bits: u128) -> Extended {
    let sign = ((bits >> 127) as u16) << 15;
    let exponent = ((bits >> 112) as u16) & SPECIAL;
    let fraction = bits & FRACTION;
    if exponent == SPECIAL {
        let mut significand = INTEGER | (fraction >> EXTRA) as u64;
        if fraction != 0 && significand == INTEGER {
            // All set bits of the NaN's payload were among the bits that the x87 format lacks. Set the
            // quiet bit, because a NaN pattern without any payload bit would be an infinity.
            significand |= QUIET;
        }
        return Extended { head: sign | SPECIAL, significand };
    }
    let exact = if exponent == 0 { fraction } else { fraction | (1 << 112) };
    let (kept, lost) = ((exact >> EXTRA) as u64, exact & ((1 << EXTRA) - 1));
    let half = 1 << (EXTRA - 1);
    let up = lost > half || (lost == half && kept & 1 == 1);
    let (significand, carry) = kept.overflowing_add(u64::from(up));
    if carry {
        // The fraction was all ones and has been rounded up. The result is the next power of two,
        // or infinity.
        return Extended { head: sign | (exponent + 1), significand: INTEGER };
    }
    // If rounding a subnormal number sets the integer bit, the result is the smallest normal number,
    // which has exponent 1.
    let exponent = if exponent == 0 && significand & INTEGER != 0 { 1 } else { exponent };
    Extended { head: sign | exponent, significand }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x(head: u16, significand: u64) -> Extended {
        Extended { head, significand }
    }

    /// Pairs of patterns that represent the same number in the two formats. They were derived by hand
    /// from the definitions of the formats.
    const EXACT: [(u16, u64, u128); 12] = [
        (0x0000, 0, 0),
        (0x8000, 0, 1 << 127),
        // The numbers 1, -2 and 1.5.
        (0x3fff, 0x8000_0000_0000_0000, 0x3fff << 112),
        (0xc000, 0x8000_0000_0000_0000, 0xc000 << 112),
        (0x3fff, 0xc000_0000_0000_0000, (0x3fff << 112) | (1 << 111)),
        // The smallest and the largest subnormal number, and the smallest and the largest normal
        // number.
        (0x0000, 1, 1 << 49),
        (0x0000, 0x7fff_ffff_ffff_ffff, ((1 << 63) - 1) << 49),
        (0x0001, 0x8000_0000_0000_0000, 1 << 112),
        (0x7ffe, 0xffff_ffff_ffff_ffff, (0x7ffe << 112) | (((1 << 63) - 1) << 49)),
        // Infinities and a quiet NaN.
        (0x7fff, 0x8000_0000_0000_0000, 0x7fff << 112),
        (0xffff, 0x8000_0000_0000_0000, 0xffff << 112),
        (0x7fff, 0xc000_0000_0000_0000, (0x7fff << 112) | (1 << 111)),
    ];

    #[test]
    fn numbers_that_both_formats_have() {
        for (head, significand, binary128) in EXACT {
            assert_eq!(
                from_extended(x(head, significand)),
                binary128,
                "{head:#x} {significand:#x}"
            );
            assert_eq!(to_extended(binary128), x(head, significand), "{binary128:#x}");
        }
    }

    #[test]
    fn patterns_that_only_x87_has() {
        // A pseudo-denormal becomes the normal number with the smallest exponent and the same fraction.
        assert_eq!(from_extended(x(0, INTEGER | 5)), (1 << 112) | (5 << 49));
        let nan = (0x7fff << 112) | (1 << 111);
        // An unnormal, a pseudo-infinity and a pseudo-NaN become quiet NaNs.
        assert_eq!(from_extended(x(0x3fff, 0x4000_0000_0000_0000)), nan);
        assert_eq!(from_extended(x(0x7fff, 0)), nan);
        assert_eq!(from_extended(x(0xffff, 7)), nan | (1 << 127));
    }

    #[test]
    fn rounding_to_nearest_even() {
        let one = 0x3fff << 112;
        let half = 1u128 << 48;
        let last = |binary128| to_extended(binary128).significand - INTEGER;
        assert_eq!(last(one | (half - 1)), 0);
        assert_eq!(last(one | half), 0);
        assert_eq!(last(one | (half + 1)), 1);
        assert_eq!(last(one | (1 << 49) | (half - 1)), 1);
        assert_eq!(last(one | (1 << 49) | half), 2);
        // If a fraction of all ones is rounded up, the carry increments the exponent. If the exponent
        // was the largest one of a finite number, the result is infinity.
        assert_eq!(to_extended(one | FRACTION), x(0x4000, INTEGER));
        assert_eq!(to_extended((0x7ffe << 112) | FRACTION), x(0x7fff, INTEGER));
        assert_eq!(to_extended((0xfffe << 112) | FRACTION), x(0xffff, INTEGER));
        // These results lie around the lower end of the normal range: zero, the smallest subnormal
        // number, and the smallest normal number.
        assert_eq!(to_extended(1), x(0, 0));
        assert_eq!(to_extended(half), x(0, 0));
        assert_eq!(to_extended(half + 1), x(0, 1));
        assert_eq!(to_extended((1 << 127) | (3 * half)), x(0x8000, 2));
        assert_eq!(to_extended(FRACTION), x(1, INTEGER));
    }

    #[test]
    fn nans_stay_nans() {
        let special = 0x7fffu128 << 112;
        assert_eq!(to_extended(special | 1), x(0x7fff, INTEGER | QUIET));
        assert_eq!(to_extended(special | (9 << 49) | 1), x(0x7fff, INTEGER | 9));
        let signaling = x(0x7fff, INTEGER | 9);
        assert_eq!(to_extended(from_extended(signaling)), signaling);
    }

    /// Compares the results of widening with exact arithmetic. The magnitude of an x87 number is
    /// `significand * 2^(e - 16383 - 63)`; that of a binary128 number is `1.fraction * 2^(e - 16383)`. If
    /// the exponent field is 0, `e` is 1, and the binary128 number has `0.fraction` instead. The test
    /// computes both magnitudes as an integer times a power of two.
    #[test]
    fn widening_is_exact_and_reversible() {
        let value = |exponent: u16, digits: u128, fraction_bits: i64| -> (u128, i64) {
            let scale = i64::from(exponent.max(1)) - 16383 - fraction_bits;
            let zeros = if digits == 0 { 0 } else { digits.trailing_zeros() };
            (digits >> zeros, if digits == 0 { 0 } else { scale + i64::from(zeros) })
        };
        let mut state = 1u64;
        let mut random = || {
            // This generator is Marsaglia's xorshift64.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..20_000 {
            let exponent = match random() % 8 {
                0 => 0,
                1 => 1,
                2 => 0x7ffe,
                _ => (random() % 0x7fff) as u16,
            };
            let significand = (random() >> (random() % 63)) & !INTEGER;
            let significand = if exponent == 0 { significand } else { significand | INTEGER };
            let number = x(exponent | ((random() as u16 & 1) << 15), significand);
            let binary128 = from_extended(number);
            let hidden = if (binary128 >> 112) as u16 & SPECIAL == 0 { 0 } else { 1u128 << 112 };
            assert_eq!(
                value((binary128 >> 112) as u16 & SPECIAL, hidden | (binary128 & FRACTION), 112),
                value(exponent, significand.into(), 63),
            );
            assert_eq!(binary128 >> 127, u128::from(number.head >> 15));
            assert_eq!(to_extended(binary128), number);
        }
    }
}
