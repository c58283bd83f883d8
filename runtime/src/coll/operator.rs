//! The predefined operations on elements of named types (MPI-5.0 section 6.9.2).
//!
//! All reductions call the functions that [`Operator::combiner`] returns. Sums and products of integers wrap. If one of
//! two values is a NaN, minimum and maximum return the value that came from the lower ranks. The result of a logical
//! operation is 0 or 1. Elements need no alignment. The functions do not write to the gaps inside the elements of pair
//! types.

mod binary128;
#[cfg(target_arch = "x86_64")]
mod extended;
mod pairs;

use crate::coll::operator::binary128::Quad;
#[cfg(target_arch = "x86_64")]
use crate::coll::operator::extended::Extended;
use crate::endpoint::sources::{Combine, Combiner};
#[cfg(target_arch = "x86_64")]
use crate::settings::Settings;
use half::f16;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul};
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;
use typepack_engine::{Datatype, Named};

/// C's `long double`.
#[cfg(target_arch = "x86_64")]
pub(super) type LongDouble = Extended;
/// C's `long double`.
#[cfg(not(target_arch = "x86_64"))]
pub(super) type LongDouble = Quad;

/// A predefined operation.
#[doc(alias = "MPI_Op")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `MPI_MAX`
    #[doc(alias = "MPI_MAX")]
    Max,
    /// `MPI_MIN`
    #[doc(alias = "MPI_MIN")]
    Min,
    /// `MPI_SUM`
    #[doc(alias = "MPI_SUM")]
    Sum,
    /// `MPI_PROD`
    #[doc(alias = "MPI_PROD")]
    Prod,
    /// `MPI_LAND`
    #[doc(alias = "MPI_LAND")]
    Land,
    /// `MPI_BAND`
    #[doc(alias = "MPI_BAND")]
    Band,
    /// `MPI_LOR`
    #[doc(alias = "MPI_LOR")]
    Lor,
    /// `MPI_BOR`
    #[doc(alias = "MPI_BOR")]
    Bor,
    /// `MPI_LXOR`
    #[doc(alias = "MPI_LXOR")]
    Lxor,
    /// `MPI_BXOR`
    #[doc(alias = "MPI_BXOR")]
    Bxor,
    /// `MPI_MAXLOC`
    #[doc(alias = "MPI_MAXLOC")]
    Maxloc,
    /// `MPI_MINLOC`
    #[doc(alias = "MPI_MINLOC")]
    Minloc,
}

/// The kinds of types for which the standard defines operations. `Signed` and `Unsigned` hold the size of the integer
/// in bytes, and `Logical` the size of the truth value. `language` is true for the signed integers of C; these have
/// logical operations, and so have all unsigned integers. `F16` to `F128` are reals of so many bits. `Complex32`
/// consists of two `f32`. The names of pair types, such as `LongInt`, consist of the types of the two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Signed { size: u32, language: bool },
    Unsigned { size: u32 },
    F16,
    F32,
    F64,
    F128,
    LongDouble,
    Complex16,
    Complex32,
    Complex64,
    Complex128,
    ComplexLongDouble,
    Byte,
    Logical(u32),
    FloatInt,
    DoubleInt,
    LongInt,
    ShortInt,
    LongDoubleInt,
    IntInt,
    FloatFloat,
    DoubleDouble,
}

fn kind(named: Named) -> Option<Kind> {
    let size = named.size();
    let c = Kind::Signed { size, language: true };
    let other = Kind::Signed { size, language: false };
    Some(match named {
        Named::SHORT | Named::INT | Named::LONG | Named::LONG_LONG | Named::SIGNED_CHAR => c,
        // The standard does not list CHAR among the integer types of reductions, but other implementations
        // accept it as one.
        Named::CHAR => c,
        Named::INT8_T | Named::INT16_T | Named::INT32_T | Named::INT64_T => c,
        Named::INTEGER | Named::INTEGER1 | Named::INTEGER2 | Named::INTEGER4 => other,
        Named::INTEGER8 | Named::INTEGER16 => other,
        Named::AINT | Named::OFFSET | Named::COUNT => other,
        Named::UNSIGNED_CHAR | Named::UNSIGNED_SHORT | Named::UNSIGNED => Kind::Unsigned { size },
        Named::UNSIGNED_LONG | Named::UNSIGNED_LONG_LONG => Kind::Unsigned { size },
        Named::UINT8_T | Named::UINT16_T | Named::UINT32_T | Named::UINT64_T => {
            Kind::Unsigned { size }
        }
        Named::REAL2 => Kind::F16,
        Named::FLOAT | Named::REAL | Named::REAL4 => Kind::F32,
        Named::DOUBLE | Named::DOUBLE_PRECISION | Named::REAL8 => Kind::F64,
        Named::REAL16 => Kind::F128,
        Named::LONG_DOUBLE => Kind::LongDouble,
        Named::COMPLEX4 => Kind::Complex16,
        Named::C_FLOAT_COMPLEX | Named::CXX_FLOAT_COMPLEX => Kind::Complex32,
        Named::COMPLEX | Named::COMPLEX8 => Kind::Complex32,
        Named::C_DOUBLE_COMPLEX | Named::CXX_DOUBLE_COMPLEX => Kind::Complex64,
        Named::DOUBLE_COMPLEX | Named::COMPLEX16 => Kind::Complex64,
        Named::COMPLEX32 => Kind::Complex128,
        Named::C_LONG_DOUBLE_COMPLEX | Named::CXX_LONG_DOUBLE_COMPLEX => Kind::ComplexLongDouble,
        Named::BYTE => Kind::Byte,
        Named::C_BOOL | Named::CXX_BOOL | Named::LOGICAL => Kind::Logical(size),
        Named::LOGICAL1 | Named::LOGICAL2 | Named::LOGICAL4 => Kind::Logical(size),
        Named::LOGICAL8 | Named::LOGICAL16 => Kind::Logical(size),
        Named::FLOAT_INT => Kind::FloatInt,
        Named::DOUBLE_INT => Kind::DoubleInt,
        Named::LONG_INT => Kind::LongInt,
        Named::SHORT_INT => Kind::ShortInt,
        Named::LONG_DOUBLE_INT => Kind::LongDoubleInt,
        Named::PAIR_INT | Named::PAIR_INTEGER => Kind::IntInt,
        Named::PAIR_REAL => Kind::FloatFloat,
        Named::PAIR_DOUBLE_PRECISION => Kind::DoubleDouble,
        _ => return None,
    })
}

impl Operator {
    /// All predefined operations that combine elements. Ranks name an operation by its index in this list.
    pub(crate) const ALL: [Self; 12] = [
        Self::Max,
        Self::Min,
        Self::Sum,
        Self::Prod,
        Self::Land,
        Self::Band,
        Self::Lor,
        Self::Bor,
        Self::Lxor,
        Self::Bxor,
        Self::Maxloc,
        Self::Minloc,
    ];

    /// Returns the function that combines elements of a named type, or `None` if the operation is not defined on this
    /// type.
    ///
    /// The function takes the addresses of displacement 0 of the first element of two vectors and of the result, and
    /// the number of elements. The distance in bytes between two successive elements is the type's extent; see
    /// [`Combiner`].
    pub fn combiner(self, named: Named) -> Option<Combiner> {
        match kind(named)? {
            Kind::Signed { size, language } => match size {
                1 => integer::<i8>(self, language),
                2 => integer::<i16>(self, language),
                4 => integer::<i32>(self, language),
                8 => integer::<i64>(self, language),
                _ => integer::<i128>(self, language),
            },
            Kind::Unsigned { size } => match size {
                1 => integer::<u8>(self, true),
                2 => integer::<u16>(self, true),
                4 => integer::<u32>(self, true),
                _ => integer::<u64>(self, true),
            },
            Kind::F16 => real::<f16>(self),
            Kind::F32 => real::<f32>(self),
            Kind::F64 => real::<f64>(self),
            Kind::F128 => real::<Quad>(self),
            Kind::LongDouble => real::<LongDouble>(self),
            Kind::Complex16 => arithmetic::<Complex<f16>>(self),
            Kind::Complex32 => arithmetic::<Complex<f32>>(self),
            Kind::Complex64 => arithmetic::<Complex<f64>>(self),
            Kind::Complex128 => arithmetic::<Complex<Quad>>(self),
            Kind::ComplexLongDouble => arithmetic::<Complex<LongDouble>>(self),
            Kind::Byte => bitwise::<u8>(self),
            Kind::Logical(1) => logical::<u8>(self),
            Kind::Logical(2) => logical::<u16>(self),
            Kind::Logical(4) => logical::<u32>(self),
            Kind::Logical(8) => logical::<u64>(self),
            Kind::Logical(_) => logical::<u128>(self),
            Kind::FloatInt => located::<f32, i32>(self),
            Kind::DoubleInt => located::<f64, i32>(self),
            Kind::LongInt => located::<i64, i32>(self),
            Kind::ShortInt => located::<i16, i32>(self),
            Kind::LongDoubleInt => located::<LongDouble, i32>(self),
            Kind::IntInt => located::<i32, i32>(self),
            Kind::FloatFloat => located::<f32, f32>(self),
            Kind::DoubleDouble => located::<f64, f64>(self),
        }
    }

    /// Returns whether the elements of a named type are integers. Their sum wraps, and depends only on the size of the
    /// type.
    pub(crate) fn adds_with_wrap(named: Named) -> bool {
        matches!(kind(named), Some(Kind::Signed { .. } | Kind::Unsigned { .. }))
    }

    /// Returns whether the elements of a named type are `f32` or `f64`.
    pub(crate) fn adds_reals(named: Named) -> bool {
        matches!(kind(named), Some(Kind::F32 | Kind::F64))
    }

    /// Returns the operation on elements of a datatype, or `None` if the operation is not defined on this datatype. A
    /// predefined operation is defined on predefined datatypes only. These include the types of
    /// `MPI_Type_create_f90_integer` and its relatives, and the pair types of `MPI_Type_get_value_index`.
    pub fn combine(self, datatype: &Datatype) -> Option<Combine> {
        match datatype.predefined_types()? {
            (named, None) => self.combiner(named).map(Combine::from),
            (value, Some(index)) => {
                let largest = match self {
                    Self::Maxloc => true,
                    Self::Minloc => false,
                    _ => return None,
                };
                pairs::combine(value, index, datatype.extent() as usize, largest)
            }
        }
    }
}

/// An operation that combines two values.
trait Apply<T> {
    fn apply(lower: T, upper: T) -> T;
}

/// Applies `A` to two vectors of `count` values: `result[i] = A::apply(lower[i], upper[i])`.
///
/// # Safety
///
/// - `lower` and `upper` are the addresses of `count` readable values each.
/// - `result` is the address of `count` writable values. It equals `lower` or `upper`, or its values overlap neither
///   vector.
#[inline(always)]
unsafe fn each<T: Copy, A: Apply<T>>(
    lower: *const u8,
    upper: *const u8,
    result: *mut u8,
    count: usize,
) {
    let apply = |lower: *const u8, upper: *const u8, result: *mut u8| {
        let (lower, upper, result) = (lower.cast::<T>(), upper.cast::<T>(), result.cast::<T>());
        for i in 0..count {
            // SAFETY: `i < count`, so the three places lie in the vectors. The caller guarantees that the vectors are
            // valid (both conditions of `# Safety`). The accesses are unaligned, so the addresses may have any
            // alignment.
            unsafe {
                let value = A::apply(lower.add(i).read_unaligned(), upper.add(i).read_unaligned());
                result.add(i).write_unaligned(value);
            }
        }
    };
    // One loop for each case. In the general loop, the compiler does not know that a result may replace an operand, and
    // combines the elements one by one if it finds that the vectors overlap.
    if result.cast_const() == upper {
        apply(lower, result, result);
    } else if result.cast_const() == lower {
        apply(result, upper, result);
    } else {
        apply(lower, upper, result);
    }
}

/// Does the same as [`each`], with the vectors of AVX2.
///
/// # Safety
///
/// - The conditions of [`each`], and the machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn each_avx2<T: Copy, A: Apply<T>>(
    lower: *const u8,
    upper: *const u8,
    result: *mut u8,
    count: usize,
) {
    // SAFETY: the caller guarantees the conditions of `each`.
    unsafe { each::<T, A>(lower, upper, result, count) }
}

/// Returns the function that applies `A` to vectors, for the instruction set that the settings permit.
fn applier<T: Copy, A: Apply<T>>() -> Combiner {
    #[cfg(target_arch = "x86_64")]
    {
        use typepack_engine::Isa;
        static HAS_AVX2: OnceLock<bool> = OnceLock::new();
        let has_avx2 = HAS_AVX2.get_or_init(|| {
            let forced = Settings::get().ok().and_then(|settings| settings.isa);
            Isa::Avx2.is_available() && forced.is_none_or(|isa| isa >= Isa::Avx2)
        });
        if *has_avx2 {
            return each_avx2::<T, A>;
        }
    }
    each::<T, A>
}

macro_rules! applied {
    ($($name:ident<$t:ident: $($bound:path),+>($lower:ident, $upper:ident) $body:expr;)*) => {
        $(
            enum $name {}
            impl<$t: Copy $(+ $bound)+> Apply<$t> for $name {
                #[inline(always)]
                fn apply($lower: $t, $upper: $t) -> $t {
                    $body
                }
            }
        )*
    };
}

/// Numbers that have a sum and a product.
trait Arithmetic: Copy {
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
}

/// Numbers that have a truth value: 0 is false, and all other numbers are true.
trait Truth: Copy {
    fn is_true(self) -> bool;
    fn of(truth: bool) -> Self;
}

applied! {
    Sum<T: Arithmetic>(lower, upper) lower.sum(upper);
    Prod<T: Arithmetic>(lower, upper) lower.product(upper);
    Max<T: PartialOrd>(lower, upper) if upper > lower { upper } else { lower };
    Min<T: PartialOrd>(lower, upper) if upper < lower { upper } else { lower };
    Band<T: BitAnd<Output = T>>(lower, upper) lower & upper;
    Bor<T: BitOr<Output = T>>(lower, upper) lower | upper;
    Bxor<T: BitXor<Output = T>>(lower, upper) lower ^ upper;
    Land<T: Truth>(lower, upper) T::of(lower.is_true() && upper.is_true());
    Lor<T: Truth>(lower, upper) T::of(lower.is_true() || upper.is_true());
    Lxor<T: Truth>(lower, upper) T::of(lower.is_true() != upper.is_true());
}

macro_rules! integers {
    ($($t:ty)*) => {
        $(
            impl Arithmetic for $t {
                #[inline(always)]
                fn sum(self, other: Self) -> Self {
                    self.wrapping_add(other)
                }
                #[inline(always)]
                fn product(self, other: Self) -> Self {
                    self.wrapping_mul(other)
                }
            }

            impl Truth for $t {
                #[inline(always)]
                fn is_true(self) -> bool {
                    self != 0
                }
                #[inline(always)]
                fn of(truth: bool) -> Self {
                    Self::from(truth)
                }
            }
        )*
    };
}

integers! { i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 }

/// A real number. `Arithmetic` is implemented for the integer types themselves, with sums that wrap. This wrapper
/// implements it for reals.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Float<T>(T);

impl<T: Copy + Add<Output = T> + Mul<Output = T>> Arithmetic for Float<T> {
    #[inline(always)]
    fn sum(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
    #[inline(always)]
    fn product(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

/// A complex number with the layout of C and Fortran.
#[derive(Clone, Copy)]
#[repr(C)]
struct Complex<T> {
    re: T,
    im: T,
}

impl<T: Copy + Add<Output = T> + Mul<Output = T> + std::ops::Sub<Output = T>> Arithmetic
    for Complex<T>
{
    #[inline(always)]
    fn sum(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
    #[inline(always)]
    fn product(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

fn arithmetic<T: Arithmetic>(operator: Operator) -> Option<Combiner> {
    Some(match operator {
        Operator::Sum => applier::<T, Sum>(),
        Operator::Prod => applier::<T, Prod>(),
        _ => return None,
    })
}

fn ordered<T: Copy + PartialOrd>(operator: Operator) -> Option<Combiner> {
    Some(match operator {
        Operator::Max => applier::<T, Max>(),
        Operator::Min => applier::<T, Min>(),
        _ => return None,
    })
}

fn bitwise<T>(operator: Operator) -> Option<Combiner>
where
    T: Copy + BitAnd<Output = T> + BitOr<Output = T> + BitXor<Output = T>,
{
    Some(match operator {
        Operator::Band => each::<T, Band>,
        Operator::Bor => each::<T, Bor>,
        Operator::Bxor => each::<T, Bxor>,
        _ => return None,
    })
}

fn logical<T: Truth>(operator: Operator) -> Option<Combiner> {
    Some(match operator {
        Operator::Land => each::<T, Land>,
        Operator::Lor => each::<T, Lor>,
        Operator::Lxor => each::<T, Lxor>,
        _ => return None,
    })
}

/// Returns the operation on integers. `is_logical` is true if the type also has logical operations.
fn integer<T>(operator: Operator, is_logical: bool) -> Option<Combiner>
where
    T: Arithmetic
        + Truth
        + PartialOrd
        + BitAnd<Output = T>
        + BitOr<Output = T>
        + BitXor<Output = T>,
{
    arithmetic::<T>(operator)
        .or_else(|| ordered::<T>(operator))
        .or_else(|| bitwise::<T>(operator))
        .or_else(|| is_logical.then(|| logical::<T>(operator)).flatten())
}

fn real<T>(operator: Operator) -> Option<Combiner>
where
    T: Copy + PartialOrd + Add<Output = T> + Mul<Output = T>,
{
    arithmetic::<Float<T>>(operator).or_else(|| ordered::<T>(operator))
}

/// A value and its index, with the layout that a C compiler gives to a struct of these two members.
#[repr(C)]
struct Located<V, I> {
    value: V,
    index: I,
}

/// Applies `MPI_MAXLOC` (if `LARGEST` is true) or `MPI_MINLOC` to two vectors of `count` pairs, and writes
/// the results to `result`.
///
/// # Safety
///
/// - `lower` and `upper` are the addresses of `count` readable pairs each.
/// - `result` is the address of `count` writable pairs. It equals `lower` or `upper`, or its pairs overlap neither
///   vector.
unsafe fn each_pair<V: Copy + PartialOrd, I: Copy + PartialOrd, const LARGEST: bool>(
    lower: *const u8,
    upper: *const u8,
    result: *mut u8,
    count: usize,
) {
    let (lower, upper) = (lower.cast::<Located<V, I>>(), upper.cast::<Located<V, I>>());
    let result = result.cast::<Located<V, I>>();
    for i in 0..count {
        // SAFETY: `i < count`, so the three pairs lie in the vectors. The caller guarantees that the vectors are
        // valid (both conditions of `# Safety`). The members are accessed one by one and unaligned, so the
        // pairs need no alignment and their padding bytes are not accessed. Both operands are read before the result
        // is written, so the result may replace one of them.
        unsafe {
            let (lower, upper, result) = (lower.add(i), upper.add(i), result.add(i));
            let (a, b) = (
                (&raw const (*lower).value).read_unaligned(),
                (&raw const (*upper).value).read_unaligned(),
            );
            let (at, other) = (
                (&raw const (*lower).index).read_unaligned(),
                (&raw const (*upper).index).read_unaligned(),
            );
            let stays = if a == b {
                other < at
            } else if LARGEST {
                b > a
            } else {
                b < a
            };
            let (value, index) = if stays { (b, other) } else { (a, at) };
            (&raw mut (*result).value).write_unaligned(value);
            (&raw mut (*result).index).write_unaligned(index);
        }
    }
}

fn located<V: Copy + PartialOrd, I: Copy + PartialOrd>(operator: Operator) -> Option<Combiner> {
    Some(match operator {
        Operator::Maxloc => each_pair::<V, I, true>,
        Operator::Minloc => each_pair::<V, I, false>,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T: Copy + PartialEq + std::fmt::Debug>(
        operator: Operator,
        named: Named,
        lower: &[T],
        upper: &[T],
    ) -> Vec<T> {
        let combine = operator.combiner(named).expect("the operation is defined on the type");
        assert_eq!(size_of::<T>(), named.extent() as usize);
        let mut result = upper.to_vec();
        // SAFETY: `lower` and `result` are slices of the same length, and `T` has the extent of `named`
        // (asserted).
        unsafe {
            let into = result.as_mut_ptr().cast::<u8>();
            combine(lower.as_ptr().cast(), into.cast_const(), into, lower.len());
        }
        // The result may also replace the lower vector, or go to other memory.
        let (mut replaced, mut other) = (lower.to_vec(), upper.to_vec());
        // SAFETY: all vectors have the same length, and `T` has the extent of `named` (asserted).
        unsafe {
            let into = replaced.as_mut_ptr().cast::<u8>();
            combine(into.cast_const(), upper.as_ptr().cast(), into, lower.len());
            let into = other.as_mut_ptr().cast::<u8>();
            combine(lower.as_ptr().cast(), upper.as_ptr().cast(), into, lower.len());
        }
        assert_eq!((&replaced, &other), (&result, &result));
        result
    }

    #[test]
    fn operations_do_what_they_say() {
        use Operator::*;
        assert_eq!(run(Sum, Named::INT, &[i32::MAX, 2], &[1, 3]), [i32::MIN, 5]);
        assert_eq!(run(Prod, Named::DOUBLE, &[1.5f64], &[4.0]), [6.0]);
        assert_eq!(run(Max, Named::UNSIGNED_CHAR, &[200u8], &[100]), [200]);
        assert_eq!(run(Max, Named::SIGNED_CHAR, &[200u8], &[100]), [100]);
        assert_eq!(run(Min, Named::FLOAT, &[1.0f32, -0.5], &[0.5, 3.0]), [0.5, -0.5]);
        assert_eq!(run(Land, Named::INT, &[7, 7, 0], &[8, 0, 0]), [1, 0, 0]);
        assert_eq!(run(Lxor, Named::C_BOOL, &[1u8, 1, 0], &[1, 0, 0]), [0, 1, 0]);
        assert_eq!(run(Bxor, Named::BYTE, &[0xf0u8], &[0xff]), [0x0f]);
        // (1 + 2i)(3 + 4i) = -5 + 10i
        assert_eq!(run(Prod, Named::COMPLEX, &[[1f32, 2.0]], &[[3.0, 4.0]]), [[-5.0, 10.0]]);
        let located =
            run(Minloc, Named::FLOAT_INT, &[(1f32, 7i32), (2.0, 1)], &[(1.0, 3), (3.0, 0)]);
        assert_eq!(located, [(1.0, 3), (2.0, 1)]);
        assert_eq!(run(Maxloc, Named::LONG_INT, &[(5i64, 1i64)], &[(4, 9)])[0].0, 5);
    }

    #[test]
    fn operations_that_make_no_sense_are_refused() {
        for (operator, named) in [
            (Operator::Band, Named::DOUBLE),
            (Operator::Max, Named::COMPLEX),
            (Operator::Sum, Named::BYTE),
            (Operator::Sum, Named::C_BOOL),
            (Operator::Land, Named::DOUBLE),
            (Operator::Lor, Named::INTEGER),
            (Operator::Lxor, Named::AINT),
            (Operator::Max, Named::COMPLEX32),
            (Operator::Band, Named::REAL16),
            (Operator::Max, Named::PACKED),
            (Operator::Maxloc, Named::INT),
            (Operator::Sum, Named::FLOAT_INT),
            (Operator::Sum, Named::PACKED),
            (Operator::Sum, Named::WCHAR),
        ] {
            assert!(operator.combiner(named).is_none(), "{operator:?} on {named}");
        }
    }
}
