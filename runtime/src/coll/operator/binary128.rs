//! Arithmetic for reals of 128 bits (IEEE 754 binary128: Fortran's `REAL*16`, and C's `long double` on machines
//! other than x86-64). Rust has no such type, so this file computes with integers.
//!
//! `operator.rs` uses [`Quad`] in the same way as its other numbers. Results are rounded to the nearest number,
//! and to the even one of two equally near numbers.

use std::cmp::Ordering;
use std::ops::{Add, Mul, Neg, Sub};

/// A real of 128 bits: the sign, 15 bits of exponent, and 112 bits of fraction.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Quad(u128);

const SIGN: u128 = 1 << 127;
/// The bits of infinity: an exponent of ones, and no fraction.
const INFINITY: u128 = 0x7fff << FRACTION;
/// Number of bits of the fraction.
const FRACTION: u32 = 112;
/// The bit that is set in the significand of every number but zero and the subnormal ones.
const LEADING: u128 = 1 << FRACTION;
/// The bit that makes a NaN quiet.
const QUIET: u128 = 1 << (FRACTION - 1);
/// The exponent field of 1.0.
const BIAS: i32 = 0x3fff;
/// Number of bits below the last bit of a significand while an operation computes: two bits for rounding, and
/// one that is set if any lower bit was set.
const GUARD: u32 = 3;

/// The exponent field and the significand of a finite number. A subnormal number has the field 1.
fn parts(bits: u128) -> (i32, u128) {
    let (field, fraction) = ((bits >> FRACTION) as i32 & 0x7fff, bits & (LEADING - 1));
    if field == 0 { (1, fraction) } else { (field, fraction | LEADING) }
}

/// Shifts to the right. The lowest bit of the result is also set if a bit that was set has been shifted out.
fn shift_right(value: u128, by: u32) -> u128 {
    match by {
        0 => value,
        1..=127 => value >> by | u128::from(value << (128 - by) != 0),
        _ => u128::from(value != 0),
    }
}

/// Rounds a significand with `GUARD` lower bits, and puts the number together. If the leading bit is not set,
/// `field` must be 1.
fn round(sign: u128, field: i32, significand: u128) -> Quad {
    if field >= 0x7fff {
        return Quad(sign | INFINITY);
    }
    let (kept, rest) = (significand >> GUARD, significand & 7);
    // The leading bit adds 1 to the exponent field. So does a rounding that carries out of the fraction.
    let bits = ((field - 1) as u128) << FRACTION;
    let up = rest > 4 || (rest == 4 && kept & 1 == 1);
    Quad(sign | (bits + kept + u128::from(up)))
}

/// Returns the 256 bits of a product: the higher and the lower half.
fn wide_product(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a_high, a_low, b_high, b_low) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let (low, high) = (a_low * b_low, a_high * b_high);
    let (one, other) = (a_high * b_low, a_low * b_high);
    let middle = (low >> 64) + (one & LOW) + (other & LOW);
    (high + (one >> 64) + (other >> 64) + (middle >> 64), middle << 64 | low & LOW)
}

impl Quad {
    fn is_nan(self) -> bool {
        self.0 & !SIGN > INFINITY
    }
}

impl Neg for Quad {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0 ^ SIGN)
    }
}

impl Add for Quad {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        if self.is_nan() || other.is_nan() {
            return Self(if self.is_nan() { self.0 } else { other.0 } | QUIET);
        }
        let swap = self.0 & !SIGN < other.0 & !SIGN;
        let (large, small) = if swap { (other.0, self.0) } else { (self.0, other.0) };
        let (sign, differ) = (large & SIGN, (large ^ small) & SIGN != 0);
        if large & !SIGN == INFINITY {
            let invalid = small & !SIGN == INFINITY && differ;
            return Self(if invalid { INFINITY | QUIET } else { large });
        }
        if large & !SIGN == 0 {
            return Self(large & small);
        }
        let ((mut field, first), (other, second)) = (parts(large), parts(small));
        let (first, second) =
            (first << GUARD, shift_right(second << GUARD, (field - other) as u32));
        let mut sum = if differ { first - second } else { first + second };
        if sum == 0 {
            return Self(0);
        }
        if sum >> (FRACTION + GUARD + 1) != 0 {
            sum = shift_right(sum, 1);
            field += 1;
        }
        let missing = (sum.leading_zeros() as i32 - (127 - (FRACTION + GUARD) as i32)).max(0);
        let by = missing.min(field - 1);
        round(sign, field - by, sum << by)
    }
}

impl Sub for Quad {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        if other.is_nan() { self + other } else { self + -other }
    }
}

impl Mul for Quad {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        if self.is_nan() || other.is_nan() {
            return Self(if self.is_nan() { self.0 } else { other.0 } | QUIET);
        }
        let sign = (self.0 ^ other.0) & SIGN;
        let (a, b) = (self.0 & !SIGN, other.0 & !SIGN);
        if a == INFINITY || b == INFINITY {
            return Self(if a == 0 || b == 0 { INFINITY | QUIET } else { sign | INFINITY });
        }
        if a == 0 || b == 0 {
            return Self(sign);
        }
        // Moves the highest bit of a subnormal significand to the place of the leading bit.
        let normal = |bits| {
            let (field, significand) = parts(bits);
            let by = significand.leading_zeros() - (127 - FRACTION);
            (field - by as i32, significand << by)
        };
        let ((first, a), (second, b)) = (normal(a), normal(b));
        let (high, low) = wide_product(a, b);
        // The highest bit of the product is bit 224 or 225, which is bit 96 or 97 of `high`.
        let over = high >> (2 * FRACTION - 128 + 1) & 1;
        let left = 128 - (FRACTION - GUARD) - over as u32;
        let mut product = high << left | low >> (128 - left) | u128::from(low << left != 0);
        let mut field = first + second - BIAS + over as i32;
        if field < 1 {
            product = shift_right(product, (1 - field) as u32);
            field = 1;
        }
        round(sign, field, product)
    }
}

impl PartialEq for Quad {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Quad {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self.is_nan() || other.is_nan() {
            return None;
        }
        // As integers, the bits of numbers without a sign have the order of the numbers.
        let key = |bits: u128| {
            let size = (bits & !SIGN) as i128;
            if bits & SIGN == 0 { size } else { -size }
        };
        Some(key(self.0).cmp(&key(other.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts a double. Every double is a number of 128 bits.
    fn quad(value: f64) -> Quad {
        let bits = value.to_bits();
        let (sign, field) = (u128::from(bits >> 63) << 127, (bits >> 52) as i32 & 0x7ff);
        let fraction = u128::from(bits & ((1 << 52) - 1));
        match field {
            0x7ff => Quad(sign | INFINITY | fraction << 60),
            0 if fraction == 0 => Quad(sign),
            0 => {
                let by = fraction.leading_zeros() - (127 - 52);
                let field = (1 - by as i32 - 1023 + BIAS) as u128;
                Quad(sign | field << FRACTION | (fraction << by) << 60 & (LEADING - 1))
            }
            _ => Quad(sign | ((field - 1023 + BIAS) as u128) << FRACTION | fraction << 60),
        }
    }

    #[test]
    fn sums_and_products_of_short_numbers_are_exact() {
        // Sums and products of numbers of 24 bits are exact in double precision, so doubles are an oracle.
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let significand = (state >> 40) as i64 - (1 << 23);
            significand as f64 * 2f64.powi((state >> 20 & 15) as i32 - 8)
        };
        for _ in 0..20_000 {
            let (a, b) = (next(), next());
            assert_eq!((quad(a) + quad(b)).0, quad(a + b).0, "{a} + {b}");
            assert_eq!((quad(a) - quad(b)).0, quad(a - b).0, "{a} - {b}");
            assert_eq!((quad(a) * quad(b)).0, quad(a * b).0, "{a} * {b}");
            assert_eq!(quad(a).partial_cmp(&quad(b)), a.partial_cmp(&b));
        }
    }

    #[test]
    fn results_are_rounded_to_even() {
        let one = quad(1.0);
        let last = Quad(one.0 + 1);
        let half = quad(2f64.powi(-113));
        assert_eq!((one + half).0, one.0);
        assert_eq!((last + half).0, one.0 + 2);
        let above = Quad(half.0 + 1);
        assert_eq!((one + above).0, last.0);
        // (1 + e)^2 = 1 + 2e + e^2, and e^2 is far below the last bit.
        assert_eq!((last * last).0, one.0 + 2);
        let below = Quad(one.0 - 1);
        assert_eq!((one - below).0, quad(2f64.powi(-113)).0);
    }

    #[test]
    fn the_ends_of_the_range() {
        let (largest, infinity, nan) = (Quad(INFINITY - 1), Quad(INFINITY), Quad(INFINITY | QUIET));
        assert_eq!((largest + largest).0, INFINITY);
        assert_eq!((largest * largest).0, INFINITY);
        assert!((infinity - infinity).is_nan() && (infinity * quad(0.0)).is_nan());
        assert!((nan + quad(1.0)).is_nan() && nan.partial_cmp(&nan).is_none());
        let (tiny, smallest) = (Quad(1), Quad(LEADING));
        assert_eq!((smallest - tiny).0, LEADING - 1);
        assert_eq!((Quad(LEADING - 1) + tiny).0, LEADING);
        assert_eq!((smallest * quad(0.5)).0, LEADING / 2);
        assert_eq!((tiny * quad(0.5)).0, 0);
        assert_eq!((Quad(3) * quad(0.5)).0, 2);
        assert_eq!((Quad(LEADING / 2) * quad(4.0)).0, LEADING * 2);
        assert_eq!((quad(-0.0) + quad(0.0)).0, 0);
        assert_eq!((quad(-0.0) + quad(-0.0)).0, SIGN);
        assert_eq!((quad(1.5) - quad(1.5)).0, 0);
        assert!(quad(-0.0) == quad(0.0) && quad(-1.0) < quad(0.0) && -infinity < -largest);
    }
}
