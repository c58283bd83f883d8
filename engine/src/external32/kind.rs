//! The external32 form of one element of each named type (MPI-5.0 section 14.5.2).
//!
//! external32 stores IEEE floats and two's complement integers in big-endian byte order, without gaps,
//! in the sizes that a table in the standard lists. These are the sizes of a machine with 32-bit `long`
//! and 16-bit `wchar_t`, so packing shrinks `MPI_LONG`, `MPI_UNSIGNED_LONG` and `MPI_WCHAR`. If a value
//! does not fit in the smaller size, packing fails; it never truncates the value. (The table has listed
//! `MPI_LONG` with 4 bytes since MPI-2.0; mpi-forum issue 157 proposes an "external64" that keeps all 8
//! bytes. `MPI_C_BOOL` and `MPI_CXX_BOOL` are 1 byte, as in MPICH and Open MPI. The table does not list
//! pair types; they are packed as their members.)
//!
//! A truth value is false if it is 0, and true if any of its bits is set. Packing and unpacking
//! both write 1 for true. On x86, `binary128.rs` converts `long double`. On other targets, `long
//! double` already has the format of the standard.
//!
//! A type that implements [`Kind`] describes an element at compile time; a value of [`Encoding`]
//! does so at run time. [`with_kind!`] maps an encoding to its kind. `convert.rs` instantiates its
//! loops for each kind.

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
use super::binary128::{Extended, from_extended, to_extended};
use crate::named::Named;
use std::marker::PhantomData;

/// Size of the largest element, in bytes. The largest element has the same size in external32 and in
/// memory.
pub(super) const LARGEST: usize = 32;

/// A kind of element: its sizes in memory and in external32, and the conversion between them.
///
/// Elements need not be aligned, either in memory or in external32.
pub(super) trait Kind {
    /// Distance between consecutive elements in memory, in bytes. It equals the extent of the named
    /// types of this kind.
    const MEM: usize;
    /// Size in external32, in bytes.
    const EXT: usize;
    /// True if an element has the same bytes in memory and in external32.
    const SAME: bool = false;
    /// True if all `MEM` bytes of an element are data; false if the element has gaps.
    const WHOLE: bool = false;

    /// Converts the element at `mem` to external32. Returns `true` if external32 cannot represent
    /// the value; the bytes at `ext` are then unspecified.
    ///
    /// # Safety
    ///
    /// - The element's data at `mem` is valid for reads, and `ext` is valid for writes of `EXT`
    ///   bytes.
    /// - The element and the bytes at `ext` do not overlap.
    unsafe fn pack(mem: *const u8, ext: *mut u8) -> bool;

    /// Converts the external form at `ext` to an element at `mem`. No external value is refused; on
    /// x86, a `long double` may be rounded. Bytes in the gaps of the element do not change.
    ///
    /// # Safety
    ///
    /// - `ext` is valid for reads of `EXT` bytes, and the element's data at `mem` is valid for
    ///   writes.
    /// - The element and the bytes at `ext` do not overlap.
    unsafe fn unpack(ext: *const u8, mem: *mut u8);

    /// Stores bytes `skip..skip + length` of an element's external form. They must be a proper part
    /// of it.
    ///
    /// For some kinds, single external bytes do not correspond to bytes in memory. For these kinds, the
    /// external bytes are collected in the element's memory, and the call that stores the last byte
    /// converts the element. So the caller must pass the parts of an element in order.
    ///
    /// # Safety
    ///
    /// - `ext` is valid for reads of `length` bytes, and `skip + length` is at most `EXT`.
    /// - The element's data at `mem` is valid for writes, and also for reads if `skip` is not 0.
    /// - The element and the bytes at `ext` do not overlap.
    unsafe fn unpack_part(mem: *mut u8, skip: usize, length: usize, ext: *const u8) {
        const { assert!(Self::EXT <= Self::MEM && Self::EXT <= LARGEST) };
        if skip + length < Self::EXT {
            // SAFETY: `skip + length` is below `EXT`, and `EXT` is at most `MEM` (asserted above),
            // so the bytes fit in the element's memory. The caller guarantees that `mem` and `ext`
            // are valid.
            unsafe { std::ptr::copy_nonoverlapping(ext, mem.add(skip), length) };
            return;
        }
        let mut whole = [0u8; LARGEST];
        // SAFETY: earlier parts stored the first `skip` bytes at `mem`, and the other `length`
        // bytes are at `ext`. Together they are at most `EXT` bytes, and `whole` has room for them.
        unsafe {
            std::ptr::copy_nonoverlapping(mem, whole.as_mut_ptr(), skip);
            std::ptr::copy_nonoverlapping(ext, whole.as_mut_ptr().add(skip), length);
            Self::unpack(whole.as_ptr(), mem);
        }
    }

    /// Returns the value of the element if external32 cannot represent it, else `None`.
    ///
    /// # Safety
    ///
    /// - The element's data at `mem` is valid for reads.
    unsafe fn refused(mem: *const u8) -> Option<i128> {
        let _ = mem;
        None
    }
}

/// An unsigned integer type. The kinds use such integers to move and reverse bytes, whatever the bytes
/// represent.
pub(super) trait Word: Copy + PartialEq {
    const ZERO: Self;
    const ONE: Self;
    fn big_endian(self) -> Self;
}

macro_rules! word {
    ($($word:ty),*) => {$(
        impl Word for $word {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn big_endian(self) -> Self {
                self.to_be()
            }
        }
    )*};
}
word!(u8, u16, u32, u64, u128);

/// Reads a `T` from an address that need not be aligned.
///
/// # Safety
///
/// - `from` is valid for reads of a `T`.
/// - `T` is an integer type, so that any bytes are a valid value.
#[inline(always)]
unsafe fn read<T: Copy>(from: *const u8) -> T {
    // SAFETY: the caller guarantees that a `T` is readable at `from`; the read needs no alignment.
    unsafe { from.cast::<T>().read_unaligned() }
}

/// Writes a `T` to an address that need not be aligned.
///
/// # Safety
///
/// - `to` is valid for writes of a `T`.
#[inline(always)]
unsafe fn write<T: Copy>(to: *mut u8, value: T) {
    // SAFETY: the caller guarantees that a `T` is writable at `to`; the write needs no alignment.
    unsafe { to.cast::<T>().write_unaligned(value) }
}

/// Elements that have the same value bits in memory and in external32, where they are big-endian:
/// integers, floats and single bytes.
pub(super) struct Bits<T>(PhantomData<T>);

impl<T: Word> Kind for Bits<T> {
    const MEM: usize = size_of::<T>();
    const EXT: usize = size_of::<T>();
    const SAME: bool = size_of::<T>() == 1 || cfg!(target_endian = "big");
    const WHOLE: bool = true;

    #[inline(always)]
    unsafe fn pack(mem: *const u8, ext: *mut u8) -> bool {
        // SAFETY: the element is a `T` in memory and in external32. The caller guarantees that
        // `mem` is readable and `ext` is writable.
        unsafe { write(ext, read::<T>(mem).big_endian()) };
        false
    }

    #[inline(always)]
    unsafe fn unpack(ext: *const u8, mem: *mut u8) {
        // SAFETY: the element is a `T` in memory and in external32. The caller guarantees that
        // `ext` is readable and `mem` is writable.
        unsafe { write(mem, read::<T>(ext).big_endian()) };
    }

    unsafe fn unpack_part(mem: *mut u8, skip: usize, length: usize, ext: *const u8) {
        for i in 0..length {
            let place = skip + i;
            let place = if cfg!(target_endian = "little") { Self::EXT - 1 - place } else { place };
            // SAFETY: `i` is below `length`, so the caller guarantees that byte `i` of `ext` is
            // readable. `skip + i` is below `EXT`, so `place` lies within the element.
            unsafe { *mem.add(place) = *ext.add(i) };
        }
    }
}

/// A truth value. Every nonzero value means true; the conversion writes 0 or 1.
pub(super) struct Truth<T>(PhantomData<T>);

#[inline(always)]
fn truth<T: Word>(value: T) -> T {
    if value == T::ZERO { T::ZERO } else { T::ONE }
}

impl<T: Word> Kind for Truth<T> {
    const MEM: usize = size_of::<T>();
    const EXT: usize = size_of::<T>();

    #[inline(always)]
    unsafe fn pack(mem: *const u8, ext: *mut u8) -> bool {
        // SAFETY: a truth value is a `T` in memory and in external32. The caller guarantees that
        // `mem` is readable and `ext` is writable.
        unsafe { write(ext, truth(read::<T>(mem)).big_endian()) };
        false
    }

    #[inline(always)]
    unsafe fn unpack(ext: *const u8, mem: *mut u8) {
        // SAFETY: a truth value is a `T` in memory and in external32. The caller guarantees that
        // `ext` is readable and `mem` is writable.
        unsafe { write(mem, truth(read::<T>(ext))) };
    }
}

macro_rules! narrowed {
    ($(#[$doc:meta])* $name:ident: $mem:ty => $ext:ty) => {
        $(#[$doc])*
        pub(super) struct $name;

        impl Kind for $name {
            const MEM: usize = size_of::<$mem>();
            const EXT: usize = size_of::<$ext>();

            #[inline(always)]
            unsafe fn pack(mem: *const u8, ext: *mut u8) -> bool {
                // SAFETY: the caller guarantees a readable element of this type at `mem`.
                let value = unsafe { read::<$mem>(mem) };
                // The cast drops the upper bits. The comparison below detects a value that loses
                // bits.
                let narrow = value as $ext;
                // SAFETY: the caller guarantees `EXT` writable bytes at `ext`.
                unsafe { write(ext, narrow.to_be()) };
                <$mem>::from(narrow) != value
            }

            #[inline(always)]
            unsafe fn unpack(ext: *const u8, mem: *mut u8) {
                // SAFETY: the caller guarantees `EXT` readable bytes at `ext` and a writable
                // element at `mem`.
                unsafe { write(mem, <$mem>::from(<$ext>::from_be(read(ext)))) };
            }

            unsafe fn refused(mem: *const u8) -> Option<i128> {
                // SAFETY: the caller guarantees that the element's data at `mem` is readable.
                let value = unsafe { read::<$mem>(mem) };
                <$ext>::try_from(value).is_err().then(|| i128::from(value))
            }
        }
    };
}

narrowed! {
    /// The kind of `long`.
    Long: i64 => i32
}
narrowed! {
    /// The kind of `unsigned long`.
    UnsignedLong: u64 => u32
}
narrowed! {
    /// The kind of `wchar_t`, which is a signed 32-bit integer on most machines. In external32 it is an
    /// unsigned 16-bit integer, which can hold every character of the basic multilingual plane.
    WideChar: i32 => u16
}

/// The kind of x87's `long double`, which has ten bytes of data in sixteen bytes of memory. The six
/// bytes of padding count towards the size of the type; unpacking sets them to 0.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
pub(super) struct X87;

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
impl Kind for X87 {
    const MEM: usize = 16;
    const EXT: usize = 16;

    #[inline(always)]
    unsafe fn pack(mem: *const u8, ext: *mut u8) -> bool {
        // SAFETY: the caller guarantees that the element at `mem` is readable; this function reads
        // its first ten bytes. The caller also guarantees sixteen writable bytes at `ext`.
        unsafe {
            let (significand, head) = (read::<u64>(mem), read::<u16>(mem.add(8)));
            write(ext, from_extended(Extended { head, significand }).to_be());
        }
        false
    }

    #[inline(always)]
    unsafe fn unpack(ext: *const u8, mem: *mut u8) {
        // SAFETY: the caller guarantees sixteen readable bytes at `ext`, and a writable element of
        // sixteen bytes at `mem`.
        unsafe {
            let Extended { head, significand } = to_extended(u128::from_be(read(ext)));
            write(mem, significand);
            write(mem.add(8), u64::from(head));
        }
    }
}

/// The kind of `long double` on x86.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
pub(super) type LongDouble = X87;
/// The kind of `long double` on other machines, where it has the format of the standard.
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
pub(super) type LongDouble = Bits<u128>;

/// An element with two members: `A` at byte 0 and `B` at byte `AT`. The element occupies `EXTENT`
/// bytes in memory. Complex numbers and pair types are of this kind.
pub(super) struct Both<A, B, const AT: usize, const EXTENT: usize>(PhantomData<(A, B)>);

impl<A: Kind, B: Kind, const AT: usize, const EXTENT: usize> Kind for Both<A, B, AT, EXTENT> {
    const MEM: usize = EXTENT;
    const EXT: usize = A::EXT + B::EXT;

    #[inline(always)]
    unsafe fn pack(mem: *const u8, ext: *mut u8) -> bool {
        // SAFETY: the members lie at bytes 0 and `AT` of the element, and at bytes 0 and `A::EXT`
        // of its external form. The caller guarantees that the element at `mem` is readable and
        // that `ext` is writable.
        unsafe { A::pack(mem, ext) | B::pack(mem.add(AT), ext.add(A::EXT)) }
    }

    #[inline(always)]
    unsafe fn unpack(ext: *const u8, mem: *mut u8) {
        // SAFETY: the members lie at bytes 0 and `AT` of the element, and at bytes 0 and `A::EXT`
        // of its external form. The caller guarantees that `ext` is readable and that the element
        // at `mem` is writable.
        unsafe {
            A::unpack(ext, mem);
            B::unpack(ext.add(A::EXT), mem.add(AT));
        }
    }

    unsafe fn unpack_part(mem: *mut u8, skip: usize, length: usize, ext: *const u8) {
        let first = length.min(A::EXT.saturating_sub(skip));
        // SAFETY: the first `first` bytes of the part belong to `A` and the others to `B`, so each
        // call gets bytes of its own member. The caller guarantees that the part at `ext` and the
        // element at `mem` are valid.
        unsafe {
            member::<A>(mem, skip, first, ext);
            let skip = skip.saturating_sub(A::EXT);
            member::<B>(mem.add(AT), skip, length - first, ext.add(first));
        }
    }

    unsafe fn refused(mem: *const u8) -> Option<i128> {
        // SAFETY: the members lie at bytes 0 and `AT` of the element, and the caller guarantees
        // that the element's data is readable.
        unsafe { A::refused(mem).or_else(|| B::refused(mem.add(AT))) }
    }
}

/// Stores a part of a member of an element. The part may be empty, and it may be the whole member.
///
/// # Safety
///
/// The conditions of [`Kind::unpack_part`] hold, except that the part may be the whole member.
unsafe fn member<K: Kind>(mem: *mut u8, skip: usize, length: usize, ext: *const u8) {
    if length == K::EXT {
        // SAFETY: the part is the whole member, so the caller guarantees `EXT` readable bytes at
        // `ext` and a writable member at `mem`.
        unsafe { K::unpack(ext, mem) };
    } else if length > 0 {
        // SAFETY: the part is a proper part of the member. The caller guarantees that the part at
        // `ext` and the member at `mem` are valid.
        unsafe { K::unpack_part(mem, skip, length, ext) };
    }
}

/// The kind of a named type, represented as a value at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Bits1,
    Bits2,
    Bits4,
    Bits8,
    Bits16,
    Twice2,
    Twice4,
    Twice8,
    Twice16,
    Truth1,
    Truth2,
    Truth4,
    Truth8,
    Truth16,
    Long,
    UnsignedLong,
    WideChar,
    LongDouble,
    TwiceLongDouble,
    DoubleInt,
    LongInt,
    ShortInt,
    LongDoubleInt,
}

/// A part of an element. The bytes of the part are reversed as one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Displacement of the part within the element, in bytes.
    pub(super) at: i64,
    /// Length of the part in bytes; 1 if the byte order does not matter.
    pub(super) width: usize,
}

/// Calls the generic function `$f::<K>()`, where `K` is the kind that the encoding `$form` stands
/// for.
macro_rules! with_kind {
    ($form:expr, $f:ident) => {{
        use $crate::external32::kind::{
            Bits, Both, Long, LongDouble, Truth, UnsignedLong, WideChar,
        };
        match $form {
            Encoding::Bits1 => $f::<Bits<u8>>(),
            Encoding::Bits2 => $f::<Bits<u16>>(),
            Encoding::Bits4 => $f::<Bits<u32>>(),
            Encoding::Bits8 => $f::<Bits<u64>>(),
            Encoding::Bits16 => $f::<Bits<u128>>(),
            Encoding::Twice2 => $f::<Both<Bits<u16>, Bits<u16>, 2, 4>>(),
            Encoding::Twice4 => $f::<Both<Bits<u32>, Bits<u32>, 4, 8>>(),
            Encoding::Twice8 => $f::<Both<Bits<u64>, Bits<u64>, 8, 16>>(),
            Encoding::Twice16 => $f::<Both<Bits<u128>, Bits<u128>, 16, 32>>(),
            Encoding::Truth1 => $f::<Truth<u8>>(),
            Encoding::Truth2 => $f::<Truth<u16>>(),
            Encoding::Truth4 => $f::<Truth<u32>>(),
            Encoding::Truth8 => $f::<Truth<u64>>(),
            Encoding::Truth16 => $f::<Truth<u128>>(),
            Encoding::Long => $f::<Long>(),
            Encoding::UnsignedLong => $f::<UnsignedLong>(),
            Encoding::WideChar => $f::<WideChar>(),
            Encoding::LongDouble => $f::<LongDouble>(),
            Encoding::TwiceLongDouble => $f::<Both<LongDouble, LongDouble, 16, 32>>(),
            Encoding::DoubleInt => $f::<Both<Bits<u64>, Bits<u32>, 8, 16>>(),
            Encoding::LongInt => $f::<Both<Long, Bits<u32>, 8, 16>>(),
            Encoding::ShortInt => $f::<Both<Bits<u16>, Bits<u32>, 4, 8>>(),
            Encoding::LongDoubleInt => $f::<Both<LongDouble, Bits<u32>, 16, 32>>(),
        }
    }};
}
pub(super) use with_kind;

impl Encoding {
    /// Returns the encoding of `named`.
    pub(super) fn of(named: Named) -> Self {
        match named {
            Named::LONG => Self::Long,
            Named::UNSIGNED_LONG => Self::UnsignedLong,
            Named::WCHAR => Self::WideChar,
            Named::LONG_DOUBLE => Self::LongDouble,
            Named::C_LONG_DOUBLE_COMPLEX | Named::CXX_LONG_DOUBLE_COMPLEX => Self::TwiceLongDouble,
            Named::DOUBLE_INT => Self::DoubleInt,
            Named::LONG_INT => Self::LongInt,
            Named::SHORT_INT => Self::ShortInt,
            Named::LONG_DOUBLE_INT => Self::LongDoubleInt,
            Named::C_BOOL | Named::CXX_BOOL | Named::LOGICAL1 => Self::Truth1,
            Named::LOGICAL2 => Self::Truth2,
            Named::LOGICAL | Named::LOGICAL4 => Self::Truth4,
            Named::LOGICAL8 => Self::Truth8,
            Named::LOGICAL16 => Self::Truth16,
            Named::COMPLEX4 => Self::Twice2,
            Named::C_FLOAT_COMPLEX
            | Named::CXX_FLOAT_COMPLEX
            | Named::COMPLEX
            | Named::COMPLEX8
            | Named::FLOAT_INT
            | Named::PAIR_INT
            | Named::PAIR_REAL
            | Named::PAIR_INTEGER => Self::Twice4,
            Named::C_DOUBLE_COMPLEX
            | Named::CXX_DOUBLE_COMPLEX
            | Named::DOUBLE_COMPLEX
            | Named::COMPLEX16
            | Named::PAIR_DOUBLE_PRECISION => Self::Twice8,
            Named::COMPLEX32 => Self::Twice16,
            // All other types are integers, floats and characters that have the same size in memory and
            // in external32.
            _ => match named.size() {
                2 => Self::Bits2,
                4 => Self::Bits4,
                8 => Self::Bits8,
                16 => Self::Bits16,
                _ => Self::Bits1,
            },
        }
    }

    /// Returns the parts of an element if the conversion changes only the byte order, else `None`.
    /// Gaps between members belong to no part. On big-endian machines, always returns `None`.
    pub(super) fn parts(self) -> Option<&'static [Part]> {
        const fn part(at: i64, width: usize) -> Part {
            Part { at, width }
        }
        // On big-endian machines no bytes need to be reversed, so all types use the loops of
        // `convert.rs`. Where only the byte order matters, these loops are then plain copies.
        if cfg!(target_endian = "big") {
            return None;
        }
        Some(match self {
            Self::Bits1 => const { &[part(0, 1)] },
            Self::Bits2 => const { &[part(0, 2)] },
            Self::Bits4 => const { &[part(0, 4)] },
            Self::Bits8 => const { &[part(0, 8)] },
            Self::Bits16 => const { &[part(0, 16)] },
            Self::Twice2 => const { &[part(0, 2), part(2, 2)] },
            Self::Twice4 => const { &[part(0, 4), part(4, 4)] },
            Self::Twice8 => const { &[part(0, 8), part(8, 8)] },
            Self::Twice16 => const { &[part(0, 16), part(16, 16)] },
            Self::DoubleInt => const { &[part(0, 8), part(8, 4)] },
            Self::ShortInt => const { &[part(0, 2), part(4, 4)] },
            _ => return None,
        })
    }

    /// Returns the size of an element in external32, in bytes.
    pub(super) fn bytes(self) -> usize {
        fn bytes<K: Kind>() -> usize {
            K::EXT
        }
        with_kind!(self, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_layout_of_their_named_types() {
        for named in Named::all() {
            fn sizes<K: Kind>() -> (usize, usize) {
                (K::MEM, K::EXT)
            }
            let (mem, ext) = with_kind!(Encoding::of(named), sizes);
            assert_eq!(mem, named.extent() as usize, "{named}");
            assert_eq!(ext, named.external32_size() as usize, "{named}");
            assert!(ext <= named.size() as usize && mem <= LARGEST, "{named}");
        }
    }
}
