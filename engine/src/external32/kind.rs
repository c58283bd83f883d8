//! The external32 form of one element of each named type (MPI-5.0 section 14.5.2).
//!
//! external32 has big-endian IEEE floats and two's complement integers without gaps, in the sizes
//! of the standard's table. These are the sizes of a machine with 32-bit `long` and 16-bit
//! `wchar_t`, so packing shrinks `MPI_LONG`, `MPI_UNSIGNED_LONG` and `MPI_WCHAR`. (The table has
//! listed `MPI_LONG` with 4 bytes since MPI-2.0; mpi-forum issue 157 proposes an "external64" that
//! keeps all 8 bytes. `MPI_C_BOOL` and `MPI_CXX_BOOL` are 1 byte, as in MPICH and Open MPI. The
//! table does not list pair types; they are packed as their members.) A value that does not fit is
//! refused, never truncated.
//!
//! Truth values: false is 0; a value with any bit set is true. Both directions write 1 for true. On
//! x86, `binary128.rs` converts `long double`; on other targets it has the standard's format
//! already.
//!
//! [`Kind`] is the element at compile time, [`Encoding`] the element at run time, and
//! [`with_kind!`] maps an encoding to its kind. `convert.rs` instantiates its loops for each kind.

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
use super::binary128::{Extended, from_extended, to_extended};
use crate::named::Named;
use std::marker::PhantomData;

/// Bytes of the largest element in external32, and in memory.
pub(super) const LARGEST: usize = 32;

/// A kind of element: its size on both sides and its conversion.
///
/// Addresses need no alignment on either side.
pub(super) trait Kind {
    /// Bytes from one element to the next in memory (the extent of its named types).
    const MEM: usize;
    /// Bytes in external32.
    const EXT: usize;
    /// Whether both sides have the same bytes.
    const SAME: bool = false;
    /// Whether all `MEM` bytes of an element are data.
    const WHOLE: bool = false;

    /// Converts from memory. Returns `true` if external32 cannot represent the value; then the
    /// written bytes are unspecified.
    ///
    /// # Safety
    ///
    /// - The element's data in `mem` is valid for reads, `ext` for writes of `EXT` bytes.
    /// - The two do not overlap.
    unsafe fn pack(mem: *const u8, ext: *mut u8) -> bool;

    /// Converts to memory, which can represent every external value. Leaves gaps unchanged.
    ///
    /// # Safety
    ///
    /// - `ext` is valid for reads of `EXT` bytes, the element's data in `mem` for writes.
    /// - The two do not overlap.
    unsafe fn unpack(ext: *const u8, mem: *mut u8);

    /// Stores bytes `skip..skip + length` of an element's external form, which are fewer than all.
    ///
    /// If these bytes have no place of their own in memory, the element's storage collects the
    /// bytes that have arrived, and the last byte triggers the conversion. So the parts of an
    /// element must come in order.
    ///
    /// # Safety
    ///
    /// - `ext` is valid for reads of `length` bytes, and `skip + length` is at most `EXT`.
    /// - The element's data in `mem` is valid for writes, and also for reads if `skip` is not 0.
    /// - The two do not overlap.
    unsafe fn unpack_part(mem: *mut u8, skip: usize, length: usize, ext: *const u8) {
        const { assert!(Self::EXT <= Self::MEM && Self::EXT <= LARGEST) };
        if skip + length < Self::EXT {
            // SAFETY: `skip + length` is below `EXT`, which is at most `MEM` (asserted), so the
            // bytes fit the element's storage. The caller guarantees both sides.
            unsafe { std::ptr::copy_nonoverlapping(ext, mem.add(skip), length) };
            return;
        }
        let mut whole = [0u8; LARGEST];
        // SAFETY: earlier parts stored the first `skip` bytes in `mem`, and the other `length`
        // bytes are at `ext`; together they are at most `EXT` bytes, which fit `whole`.
        unsafe {
            std::ptr::copy_nonoverlapping(mem, whole.as_mut_ptr(), skip);
            std::ptr::copy_nonoverlapping(ext, whole.as_mut_ptr().add(skip), length);
            Self::unpack(whole.as_ptr(), mem);
        }
    }

    /// Returns the value if [`Kind::pack`] refuses it.
    ///
    /// # Safety
    ///
    /// - The element's data in `mem` is valid for reads.
    unsafe fn refused(mem: *const u8) -> Option<i128> {
        let _ = mem;
        None
    }
}

/// Unsigned integers, used for their bytes.
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

/// Reads a value.
///
/// # Safety
///
/// - `from` is valid for reads of a `T`, and any bytes are a valid `T` (integers only).
#[inline(always)]
unsafe fn read<T: Copy>(from: *const u8) -> T {
    // SAFETY: the caller guarantees a readable `T` at `from`; the read needs no alignment.
    unsafe { from.cast::<T>().read_unaligned() }
}

/// Writes a value.
///
/// # Safety
///
/// - `to` is valid for writes of a `T`.
#[inline(always)]
unsafe fn write<T: Copy>(to: *mut u8, value: T) {
    // SAFETY: the caller guarantees room for a `T` at `to`; the write needs no alignment.
    unsafe { to.cast::<T>().write_unaligned(value) }
}

/// Elements that have the same bits on both sides and are big-endian in external32: integers,
/// floats, single bytes.
pub(super) struct Bits<T>(PhantomData<T>);

impl<T: Word> Kind for Bits<T> {
    const MEM: usize = size_of::<T>();
    const EXT: usize = size_of::<T>();
    const SAME: bool = size_of::<T>() == 1 || cfg!(target_endian = "big");
    const WHOLE: bool = true;

    #[inline(always)]
    unsafe fn pack(mem: *const u8, ext: *mut u8) -> bool {
        // SAFETY: the element is a `T` on both sides; the caller guarantees `mem` for reads, `ext`
        // for writes.
        unsafe { write(ext, read::<T>(mem).big_endian()) };
        false
    }

    #[inline(always)]
    unsafe fn unpack(ext: *const u8, mem: *mut u8) {
        // SAFETY: the element is a `T` on both sides; the caller guarantees `ext` for reads, `mem`
        // for writes.
        unsafe { write(mem, read::<T>(ext).big_endian()) };
    }

    unsafe fn unpack_part(mem: *mut u8, skip: usize, length: usize, ext: *const u8) {
        for i in 0..length {
            let place = skip + i;
            let place = if cfg!(target_endian = "little") { Self::EXT - 1 - place } else { place };
            // SAFETY: `i` is below `length`, so `ext` has the byte; `skip + i` is below `EXT`, so
            // `place` is within the element.
            unsafe { *mem.add(place) = *ext.add(i) };
        }
    }
}

/// A truth value: any value but 0 is true; the conversion writes 0 or 1.
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
        // SAFETY: the element is a `T` on both sides; the caller guarantees `mem` for reads, `ext`
        // for writes.
        unsafe { write(ext, truth(read::<T>(mem)).big_endian()) };
        false
    }

    #[inline(always)]
    unsafe fn unpack(ext: *const u8, mem: *mut u8) {
        // SAFETY: the element is a `T` on both sides; the caller guarantees `ext` for reads, `mem`
        // for writes.
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
                // SAFETY: the caller guarantees that `mem` holds an element of this type, readable.
                let value = unsafe { read::<$mem>(mem) };
                // The comparison below detects bits that the cast cuts off.
                let narrow = value as $ext;
                // SAFETY: the caller guarantees that `ext` is writable for `EXT` bytes.
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
    /// `long`.
    Long: i64 => i32
}
narrowed! {
    /// `unsigned long`.
    UnsignedLong: u64 => u32
}
narrowed! {
    /// `wchar_t`, a signed 32-bit integer on most machines. No character is negative, and
    /// external32 can hold the characters of the basic multilingual plane.
    WideChar: i32 => u16
}

/// x87's `long double`: ten bytes in a storage of sixteen bytes. The six bytes of padding count
/// towards the type's size; unpacking clears them.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
pub(super) struct X87;

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
impl Kind for X87 {
    const MEM: usize = 16;
    const EXT: usize = 16;

    #[inline(always)]
    unsafe fn pack(mem: *const u8, ext: *mut u8) -> bool {
        // SAFETY: the caller guarantees that the element at `mem` is readable, of which this reads
        // ten bytes, and that `ext` is writable for sixteen.
        unsafe {
            let (significand, head) = (read::<u64>(mem), read::<u16>(mem.add(8)));
            write(ext, from_extended(Extended { head, significand }).to_be());
        }
        false
    }

    #[inline(always)]
    unsafe fn unpack(ext: *const u8, mem: *mut u8) {
        // SAFETY: the caller guarantees sixteen readable bytes at `ext` and a writable element of
        // sixteen bytes at `mem`.
        unsafe {
            let Extended { head, significand } = to_extended(u128::from_be(read(ext)));
            write(mem, significand);
            write(mem.add(8), u64::from(head));
        }
    }
}

/// The kind of this machine's `long double`.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
pub(super) type LongDouble = X87;
/// The kind of this machine's `long double`, which has the standard's format.
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
pub(super) type LongDouble = Bits<u128>;

/// Two elements: `A` at byte 0 and `B` at byte `AT` of `EXTENT`. Complex numbers and pair types are
/// of this kind.
pub(super) struct Both<A, B, const AT: usize, const EXTENT: usize>(PhantomData<(A, B)>);

impl<A: Kind, B: Kind, const AT: usize, const EXTENT: usize> Kind for Both<A, B, AT, EXTENT> {
    const MEM: usize = EXTENT;
    const EXT: usize = A::EXT + B::EXT;

    #[inline(always)]
    unsafe fn pack(mem: *const u8, ext: *mut u8) -> bool {
        // SAFETY: the members lie at 0 and `AT` of the element and at 0 and `A::EXT` of its
        // external form; the caller guarantees `mem` for reads, `ext` for writes.
        unsafe { A::pack(mem, ext) | B::pack(mem.add(AT), ext.add(A::EXT)) }
    }

    #[inline(always)]
    unsafe fn unpack(ext: *const u8, mem: *mut u8) {
        // SAFETY: the members lie at 0 and `AT` of the element and at 0 and `A::EXT` of its
        // external form; the caller guarantees `ext` for reads, `mem` for writes.
        unsafe {
            A::unpack(ext, mem);
            B::unpack(ext.add(A::EXT), mem.add(AT));
        }
    }

    unsafe fn unpack_part(mem: *mut u8, skip: usize, length: usize, ext: *const u8) {
        let first = length.min(A::EXT.saturating_sub(skip));
        // SAFETY: `first` bytes of the part belong to `A`, the others to `B`, and each member's
        // share lies within the member. The caller guarantees both sides of the part.
        unsafe {
            member::<A>(mem, skip, first, ext);
            let skip = skip.saturating_sub(A::EXT);
            member::<B>(mem.add(AT), skip, length - first, ext.add(first));
        }
    }

    unsafe fn refused(mem: *const u8) -> Option<i128> {
        // SAFETY: the members lie at 0 and `AT` of the element, whose data the caller guarantees
        // for reads.
        unsafe { A::refused(mem).or_else(|| B::refused(mem.add(AT))) }
    }
}

/// Stores a part of a member, which may be nothing or the whole member.
///
/// # Safety
///
/// The conditions of [`Kind::unpack_part`] hold, but the part may be the whole member.
unsafe fn member<K: Kind>(mem: *mut u8, skip: usize, length: usize, ext: *const u8) {
    if length == K::EXT {
        // SAFETY: the part is the whole member, so `ext` is readable for `EXT` bytes and `mem`
        // writable.
        unsafe { K::unpack(ext, mem) };
    } else if length > 0 {
        // SAFETY: the part is shorter than the member; the caller guarantees the part on both
        // sides.
        unsafe { K::unpack_part(mem, skip, length, ext) };
    }
}

/// The kind of a named type, at run time.
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

/// Bytes of an element that are reversed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Displacement within the element.
    pub(super) at: i64,
    /// Length in bytes; 1 if the byte order does not matter.
    pub(super) width: usize,
}

/// Calls the generic function `$f::<K>()` for the kind `K` that `$form` names.
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
            // Integers, floats and characters whose memory size is their external32 size.
            _ => match named.size() {
                2 => Self::Bits2,
                4 => Self::Bits4,
                8 => Self::Bits8,
                16 => Self::Bits16,
                _ => Self::Bits1,
            },
        }
    }

    /// Returns the parts of an element if only the byte order changes, else `None`. Gaps between
    /// parts are not data of the element.
    pub(super) fn parts(self) -> Option<&'static [Part]> {
        const fn part(at: i64, width: usize) -> Part {
            Part { at, width }
        }
        // On big-endian machines the loops of `convert.rs` are plain copies.
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

    /// Returns the bytes of an element in external32.
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
