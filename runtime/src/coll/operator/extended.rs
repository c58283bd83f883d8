//! Arithmetic for C's `long double` on x86-64: 80 bits in 16 bytes. Rust has no such type, so the arithmetic
//! uses inline assembly.
//!
//! `operator.rs` uses [`Extended`] in the same way as its other numbers. The upper six of the 16 bytes are
//! copied with the value and have no meaning.

use std::arch::asm;
use std::cmp::Ordering;
use std::ops::{Add, Mul, Sub};

/// A `long double` with the layout that C uses.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct Extended([u8; 16]);

/// Loads two values, combines them with one instruction, which also pops one of the values from the x87
/// stack, and stores the result.
macro_rules! binary {
    ($instruction:literal, $left:expr, $right:expr) => {{
        let (left, right): (Extended, Extended) = ($left, $right);
        let mut result = left;
        // SAFETY: the assembly reads 10 bytes of `left` and of `right` and writes 10 bytes of `result`, three
        // locals of 16 bytes. The x87 stack is empty before and after the assembly, and all its registers are
        // declared as changed.
        unsafe {
            asm!(
                "fld tbyte ptr [{left}]",
                "fld tbyte ptr [{right}]",
                $instruction,
                "fstp tbyte ptr [{result}]",
                left = in(reg) &raw const left,
                right = in(reg) &raw const right,
                result = in(reg) &raw mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        result
    }};
}

impl Add for Extended {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        binary!("faddp st(1), st", self, other)
    }
}

impl Sub for Extended {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        // With Intel's operand order, this instruction computes st(1) - st(0).
        binary!("fsubp st(1), st", self, other)
    }
}

impl Mul for Extended {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        binary!("fmulp st(1), st", self, other)
    }
}

impl Extended {
    /// Returns whether `self > other`. Returns false if one of the two values is a NaN.
    fn is_above(self, other: Self) -> bool {
        let above: u8;
        // SAFETY: the assembly reads 10 bytes of `self` and of `other`, two locals of 16 bytes. The x87 stack
        // is empty before and after the assembly, and all its registers are declared as changed.
        unsafe {
            asm!(
                "fld tbyte ptr [{other}]",
                "fld tbyte ptr [{this}]",
                // `fucomip` sets the carry flag for "below" and "unordered", and the zero flag for "equal"
                // and "unordered".
                "fucomip st, st(1)",
                "seta {above}",
                "fstp st(0)",
                this = in(reg) &raw const self,
                other = in(reg) &raw const other,
                above = out(reg_byte) above,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        above != 0
    }

    /// Returns whether the value is a NaN.
    fn is_nan(self) -> bool {
        let bits = u128::from_le_bytes(self.0);
        // In a NaN, all bits of the exponent are set, and the fraction below the explicit leading bit is
        // not 0.
        (bits >> 64) & 0x7fff == 0x7fff && (bits as u64) << 1 != 0
    }
}

impl PartialEq for Extended {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Extended {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self.is_nan() || other.is_nan() {
            None
        } else if self.is_above(*other) {
            Some(Ordering::Greater)
        } else if other.is_above(*self) {
            Some(Ordering::Less)
        } else {
            Some(Ordering::Equal)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `mantissa` * 2^`exponent`, with a minus sign if `negative` is true. The highest bit of the
    /// mantissa must be set, unless the mantissa is 0.
    fn number(negative: bool, mantissa: u64, exponent: i32) -> Extended {
        let biased = if mantissa == 0 { 0 } else { (exponent + 63 + 16383) as u128 };
        let sign = u128::from(negative) << 79;
        Extended((u128::from(mantissa) | biased << 64 | sign).to_le_bytes())
    }

    const HIGH: u64 = 1 << 63;

    #[test]
    fn all_64_bits_of_the_mantissa_count() {
        let (one, last) = (number(false, HIGH, -63), number(false, HIGH, -126));
        let sum = one + last;
        assert_eq!(sum, number(false, HIGH | 1, -63));
        assert_eq!(sum.partial_cmp(&one), Some(Ordering::Greater));
        assert_eq!(one.partial_cmp(&sum), Some(Ordering::Less));
        assert_eq!(sum - one, last);
        assert_eq!(one - sum, number(true, HIGH, -126));
        let three = number(false, 3 << 62, -62);
        assert_eq!(three * three, number(false, 9 << 60, -60));
        assert!(number(true, HIGH, 0) < number(false, 0, 0));
    }

    #[test]
    fn nan_is_unordered() {
        let (nan, one) = (number(false, 3 << 62, 16384 - 63), number(false, HIGH, -63));
        assert!(nan.is_nan() && nan != nan);
        assert_eq!((nan.partial_cmp(&one), one.partial_cmp(&nan)), (None, None));
        let infinity = number(false, HIGH, 16384 - 63);
        assert!(!infinity.is_nan() && infinity > one && infinity == infinity);
        assert!((infinity - infinity).is_nan());
    }
}
