//! The named (predefined) datatypes: size, extent, alignment, MPI name and ABI value.
//!
//! The table at the end of the file contains the values of the MPI 5 ABI for an LP64 machine. The
//! leaves of every tree in `datatype/` are named types, and `ir/lower.rs` turns them into blocks. The
//! two bound markers of MPI-1 are the last rows of the table: they have no data, and only
//! `Datatype::type_struct` and `Datatype::dup` accept them.

use std::fmt;

/// A named datatype (MPI-5.0 section 3.2.2): an index into the table of all named datatypes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Named(u8);

/// One row of the table.
#[derive(Debug)]
struct Row {
    name: &'static str,
    abi: u32,
    size: u32,
    extent: u32,
    align: u32,
    members: Option<[Named; 2]>,
}

const fn one(name: &'static str, abi: u32, size: u32, align: u32) -> Row {
    Row { name, abi, size, extent: size, align, members: None }
}

const fn pair(
    name: &'static str,
    abi: u32,
    size: u32,
    extent: u32,
    align: u32,
    members: [Named; 2],
) -> Row {
    Row { name, abi, size, extent, align, members: Some(members) }
}

impl Named {
    /// Returns all named datatypes that hold data, in the order of their ABI values. These are all
    /// rows of the table except [`Named::LB`] and [`Named::UB`].
    pub fn all() -> impl ExactSizeIterator<Item = Named> {
        // The table has fewer than 256 rows, so an index fits in the `u8` of `Named`.
        (0..TABLE.len() - Self::MARKERS).map(|i| Named(i as u8))
    }

    /// Returns [`Named::all`] followed by the bound markers.
    pub(crate) fn all_with_markers() -> impl ExactSizeIterator<Item = Named> {
        (0..TABLE.len()).map(|i| Named(i as u8))
    }

    /// Number of rows at the end of the table that belong to bound markers.
    const MARKERS: usize = 2;

    /// Returns true for the bound markers of MPI-1, [`Named::LB`] and [`Named::UB`]. Their size is 0.
    pub fn is_marker(self) -> bool {
        self == Self::LB || self == Self::UB
    }

    fn row(self) -> &'static Row {
        &TABLE[usize::from(self.0)]
    }

    /// Returns the index of the row of this type in the table.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the MPI name of this type, such as `MPI_DOUBLE`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the handle value that the MPI 5 standard ABI assigns to this type. The ABI assigns none to
    /// the bound markers, so the engine does.
    pub fn abi_value(self) -> u32 {
        self.row().abi
    }

    /// Returns the type whose [`Named::abi_value`] is `value`, or `None` if there is no such type.
    pub fn from_abi_value(value: u32) -> Option<Self> {
        Self::all_with_markers().find(|n| n.row().abi == value)
    }

    /// Returns the size: the number of bytes of data.
    pub fn size(self) -> u32 {
        self.row().size
    }

    /// Returns the extent: the distance in bytes from one element to the next. The extent of some
    /// pairs exceeds their size.
    pub fn extent(self) -> u32 {
        self.row().extent
    }

    /// Returns the number of bytes of an element in external32, the portable format to which
    /// `external32/` converts (MPI-5.0 section 14.5.2).
    pub fn external32_size(self) -> u32 {
        match self {
            Self::LONG | Self::UNSIGNED_LONG => 4,
            Self::WCHAR => 2,
            Self::LONG_INT => 8,
            _ => self.size(),
        }
    }

    /// Returns the alignment in bytes that a C compiler uses for this type on an LP64 machine.
    pub fn align(self) -> u32 {
        self.row().align
    }

    /// Returns the two members of a pair type such as `MPI_DOUBLE_INT`, with their offsets in bytes;
    /// `None` for a type that is not a pair.
    #[inline]
    pub fn members(self) -> Option<[(u32, Named); 2]> {
        self.row().members.map(|[first, second]| {
            let offset = first.size().next_multiple_of(second.align());
            [(0, first), (offset, second)]
        })
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Named {
    /// `MPI_AINT`
    #[doc(alias = "MPI_AINT")]
    pub const AINT: Self = Self(0);

    /// `MPI_COUNT`
    #[doc(alias = "MPI_COUNT")]
    pub const COUNT: Self = Self(1);

    /// `MPI_OFFSET`
    #[doc(alias = "MPI_OFFSET")]
    pub const OFFSET: Self = Self(2);

    /// `MPI_PACKED`
    #[doc(alias = "MPI_PACKED")]
    pub const PACKED: Self = Self(3);

    /// `MPI_SHORT`
    #[doc(alias = "MPI_SHORT")]
    pub const SHORT: Self = Self(4);

    /// `MPI_INT`
    #[doc(alias = "MPI_INT")]
    pub const INT: Self = Self(5);

    /// `MPI_LONG`
    #[doc(alias = "MPI_LONG")]
    pub const LONG: Self = Self(6);

    /// `MPI_LONG_LONG`
    #[doc(alias = "MPI_LONG_LONG")]
    pub const LONG_LONG: Self = Self(7);

    /// `MPI_UNSIGNED_SHORT`
    #[doc(alias = "MPI_UNSIGNED_SHORT")]
    pub const UNSIGNED_SHORT: Self = Self(8);

    /// `MPI_UNSIGNED`
    #[doc(alias = "MPI_UNSIGNED")]
    pub const UNSIGNED: Self = Self(9);

    /// `MPI_UNSIGNED_LONG`
    #[doc(alias = "MPI_UNSIGNED_LONG")]
    pub const UNSIGNED_LONG: Self = Self(10);

    /// `MPI_UNSIGNED_LONG_LONG`
    #[doc(alias = "MPI_UNSIGNED_LONG_LONG")]
    pub const UNSIGNED_LONG_LONG: Self = Self(11);

    /// `MPI_FLOAT`
    #[doc(alias = "MPI_FLOAT")]
    pub const FLOAT: Self = Self(12);

    /// `MPI_C_FLOAT_COMPLEX`
    #[doc(alias = "MPI_C_FLOAT_COMPLEX")]
    pub const C_FLOAT_COMPLEX: Self = Self(13);

    /// `MPI_CXX_FLOAT_COMPLEX`
    #[doc(alias = "MPI_CXX_FLOAT_COMPLEX")]
    pub const CXX_FLOAT_COMPLEX: Self = Self(14);

    /// `MPI_DOUBLE`
    #[doc(alias = "MPI_DOUBLE")]
    pub const DOUBLE: Self = Self(15);

    /// `MPI_C_DOUBLE_COMPLEX`
    #[doc(alias = "MPI_C_DOUBLE_COMPLEX")]
    pub const C_DOUBLE_COMPLEX: Self = Self(16);

    /// `MPI_CXX_DOUBLE_COMPLEX`
    #[doc(alias = "MPI_CXX_DOUBLE_COMPLEX")]
    pub const CXX_DOUBLE_COMPLEX: Self = Self(17);

    /// `MPI_LOGICAL`
    #[doc(alias = "MPI_LOGICAL")]
    pub const LOGICAL: Self = Self(18);

    /// `MPI_INTEGER`
    #[doc(alias = "MPI_INTEGER")]
    pub const INTEGER: Self = Self(19);

    /// `MPI_REAL`
    #[doc(alias = "MPI_REAL")]
    pub const REAL: Self = Self(20);

    /// `MPI_COMPLEX`
    #[doc(alias = "MPI_COMPLEX")]
    pub const COMPLEX: Self = Self(21);

    /// `MPI_DOUBLE_PRECISION`
    #[doc(alias = "MPI_DOUBLE_PRECISION")]
    pub const DOUBLE_PRECISION: Self = Self(22);

    /// `MPI_DOUBLE_COMPLEX`
    #[doc(alias = "MPI_DOUBLE_COMPLEX")]
    pub const DOUBLE_COMPLEX: Self = Self(23);

    /// `MPI_CHARACTER`
    #[doc(alias = "MPI_CHARACTER")]
    pub const CHARACTER: Self = Self(24);

    /// `MPI_LONG_DOUBLE`
    #[doc(alias = "MPI_LONG_DOUBLE")]
    pub const LONG_DOUBLE: Self = Self(25);

    /// `MPI_C_LONG_DOUBLE_COMPLEX`
    #[doc(alias = "MPI_C_LONG_DOUBLE_COMPLEX")]
    pub const C_LONG_DOUBLE_COMPLEX: Self = Self(26);

    /// `MPI_CXX_LONG_DOUBLE_COMPLEX`
    #[doc(alias = "MPI_CXX_LONG_DOUBLE_COMPLEX")]
    pub const CXX_LONG_DOUBLE_COMPLEX: Self = Self(27);

    /// `MPI_FLOAT_INT`
    #[doc(alias = "MPI_FLOAT_INT")]
    pub const FLOAT_INT: Self = Self(28);

    /// `MPI_DOUBLE_INT`
    #[doc(alias = "MPI_DOUBLE_INT")]
    pub const DOUBLE_INT: Self = Self(29);

    /// `MPI_LONG_INT`
    #[doc(alias = "MPI_LONG_INT")]
    pub const LONG_INT: Self = Self(30);

    /// `MPI_2INT`
    #[doc(alias = "MPI_2INT")]
    pub const PAIR_INT: Self = Self(31);

    /// `MPI_SHORT_INT`
    #[doc(alias = "MPI_SHORT_INT")]
    pub const SHORT_INT: Self = Self(32);

    /// `MPI_LONG_DOUBLE_INT`
    #[doc(alias = "MPI_LONG_DOUBLE_INT")]
    pub const LONG_DOUBLE_INT: Self = Self(33);

    /// `MPI_2REAL`
    #[doc(alias = "MPI_2REAL")]
    pub const PAIR_REAL: Self = Self(34);

    /// `MPI_2DOUBLE_PRECISION`
    #[doc(alias = "MPI_2DOUBLE_PRECISION")]
    pub const PAIR_DOUBLE_PRECISION: Self = Self(35);

    /// `MPI_2INTEGER`
    #[doc(alias = "MPI_2INTEGER")]
    pub const PAIR_INTEGER: Self = Self(36);

    /// `MPI_C_BOOL`
    #[doc(alias = "MPI_C_BOOL")]
    pub const C_BOOL: Self = Self(37);

    /// `MPI_CXX_BOOL`
    #[doc(alias = "MPI_CXX_BOOL")]
    pub const CXX_BOOL: Self = Self(38);

    /// `MPI_WCHAR`
    #[doc(alias = "MPI_WCHAR")]
    pub const WCHAR: Self = Self(39);

    /// `MPI_INT8_T`
    #[doc(alias = "MPI_INT8_T")]
    pub const INT8_T: Self = Self(40);

    /// `MPI_UINT8_T`
    #[doc(alias = "MPI_UINT8_T")]
    pub const UINT8_T: Self = Self(41);

    /// `MPI_CHAR`
    #[doc(alias = "MPI_CHAR")]
    pub const CHAR: Self = Self(42);

    /// `MPI_SIGNED_CHAR`
    #[doc(alias = "MPI_SIGNED_CHAR")]
    pub const SIGNED_CHAR: Self = Self(43);

    /// `MPI_UNSIGNED_CHAR`
    #[doc(alias = "MPI_UNSIGNED_CHAR")]
    pub const UNSIGNED_CHAR: Self = Self(44);

    /// `MPI_BYTE`
    #[doc(alias = "MPI_BYTE")]
    pub const BYTE: Self = Self(45);

    /// `MPI_INT16_T`
    #[doc(alias = "MPI_INT16_T")]
    pub const INT16_T: Self = Self(46);

    /// `MPI_UINT16_T`
    #[doc(alias = "MPI_UINT16_T")]
    pub const UINT16_T: Self = Self(47);

    /// `MPI_INT32_T`
    #[doc(alias = "MPI_INT32_T")]
    pub const INT32_T: Self = Self(48);

    /// `MPI_UINT32_T`
    #[doc(alias = "MPI_UINT32_T")]
    pub const UINT32_T: Self = Self(49);

    /// `MPI_INT64_T`
    #[doc(alias = "MPI_INT64_T")]
    pub const INT64_T: Self = Self(50);

    /// `MPI_UINT64_T`
    #[doc(alias = "MPI_UINT64_T")]
    pub const UINT64_T: Self = Self(51);

    /// `MPI_LOGICAL1`
    #[doc(alias = "MPI_LOGICAL1")]
    pub const LOGICAL1: Self = Self(52);

    /// `MPI_INTEGER1`
    #[doc(alias = "MPI_INTEGER1")]
    pub const INTEGER1: Self = Self(53);

    /// `MPI_LOGICAL2`
    #[doc(alias = "MPI_LOGICAL2")]
    pub const LOGICAL2: Self = Self(54);

    /// `MPI_INTEGER2`
    #[doc(alias = "MPI_INTEGER2")]
    pub const INTEGER2: Self = Self(55);

    /// `MPI_REAL2`
    #[doc(alias = "MPI_REAL2")]
    pub const REAL2: Self = Self(56);

    /// `MPI_LOGICAL4`
    #[doc(alias = "MPI_LOGICAL4")]
    pub const LOGICAL4: Self = Self(57);

    /// `MPI_INTEGER4`
    #[doc(alias = "MPI_INTEGER4")]
    pub const INTEGER4: Self = Self(58);

    /// `MPI_REAL4`
    #[doc(alias = "MPI_REAL4")]
    pub const REAL4: Self = Self(59);

    /// `MPI_COMPLEX4`
    #[doc(alias = "MPI_COMPLEX4")]
    pub const COMPLEX4: Self = Self(60);

    /// `MPI_LOGICAL8`
    #[doc(alias = "MPI_LOGICAL8")]
    pub const LOGICAL8: Self = Self(61);

    /// `MPI_INTEGER8`
    #[doc(alias = "MPI_INTEGER8")]
    pub const INTEGER8: Self = Self(62);

    /// `MPI_REAL8`
    #[doc(alias = "MPI_REAL8")]
    pub const REAL8: Self = Self(63);

    /// `MPI_COMPLEX8`
    #[doc(alias = "MPI_COMPLEX8")]
    pub const COMPLEX8: Self = Self(64);

    /// `MPI_LOGICAL16`
    #[doc(alias = "MPI_LOGICAL16")]
    pub const LOGICAL16: Self = Self(65);

    /// `MPI_INTEGER16`
    #[doc(alias = "MPI_INTEGER16")]
    pub const INTEGER16: Self = Self(66);

    /// `MPI_REAL16`
    #[doc(alias = "MPI_REAL16")]
    pub const REAL16: Self = Self(67);

    /// `MPI_COMPLEX16`
    #[doc(alias = "MPI_COMPLEX16")]
    pub const COMPLEX16: Self = Self(68);

    /// `MPI_COMPLEX32`
    #[doc(alias = "MPI_COMPLEX32")]
    pub const COMPLEX32: Self = Self(69);

    /// `MPI_LB`, the lower bound marker of MPI-1 (removed in MPI-3.0). It has no data; see
    /// [`Datatype::type_struct`](crate::Datatype::type_struct).
    #[doc(alias = "MPI_LB")]
    pub const LB: Self = Self(70);

    /// `MPI_UB`, the upper bound marker of MPI-1 (removed in MPI-3.0).
    #[doc(alias = "MPI_UB")]
    pub const UB: Self = Self(71);

    /// The Rust name of [`Named::INT8_T`].
    pub const I8: Self = Self::INT8_T;

    /// The Rust name of [`Named::INT16_T`].
    pub const I16: Self = Self::INT16_T;

    /// The Rust name of [`Named::INT32_T`].
    pub const I32: Self = Self::INT32_T;

    /// The Rust name of [`Named::INT64_T`].
    pub const I64: Self = Self::INT64_T;

    /// The Rust name of [`Named::UINT8_T`].
    pub const U8: Self = Self::UINT8_T;

    /// The Rust name of [`Named::UINT16_T`].
    pub const U16: Self = Self::UINT16_T;

    /// The Rust name of [`Named::UINT32_T`].
    pub const U32: Self = Self::UINT32_T;

    /// The Rust name of [`Named::UINT64_T`].
    pub const U64: Self = Self::UINT64_T;

    /// The Rust name of [`Named::FLOAT`].
    pub const F32: Self = Self::FLOAT;

    /// The Rust name of [`Named::DOUBLE`].
    pub const F64: Self = Self::DOUBLE;
}

#[rustfmt::skip]
static TABLE: [Row; 72] = [
    one("MPI_AINT", 0x201, 8, 8),
    one("MPI_COUNT", 0x202, 8, 8),
    one("MPI_OFFSET", 0x203, 8, 8),
    one("MPI_PACKED", 0x207, 1, 1),
    one("MPI_SHORT", 0x208, 2, 2),
    one("MPI_INT", 0x209, 4, 4),
    one("MPI_LONG", 0x20a, 8, 8),
    one("MPI_LONG_LONG", 0x20b, 8, 8),
    one("MPI_UNSIGNED_SHORT", 0x20c, 2, 2),
    one("MPI_UNSIGNED", 0x20d, 4, 4),
    one("MPI_UNSIGNED_LONG", 0x20e, 8, 8),
    one("MPI_UNSIGNED_LONG_LONG", 0x20f, 8, 8),
    one("MPI_FLOAT", 0x210, 4, 4),
    one("MPI_C_FLOAT_COMPLEX", 0x212, 8, 4),
    one("MPI_CXX_FLOAT_COMPLEX", 0x213, 8, 4),
    one("MPI_DOUBLE", 0x214, 8, 8),
    one("MPI_C_DOUBLE_COMPLEX", 0x216, 16, 8),
    one("MPI_CXX_DOUBLE_COMPLEX", 0x217, 16, 8),
    one("MPI_LOGICAL", 0x218, 4, 4),
    one("MPI_INTEGER", 0x219, 4, 4),
    one("MPI_REAL", 0x21a, 4, 4),
    one("MPI_COMPLEX", 0x21b, 8, 4),
    one("MPI_DOUBLE_PRECISION", 0x21c, 8, 8),
    one("MPI_DOUBLE_COMPLEX", 0x21d, 16, 8),
    one("MPI_CHARACTER", 0x21e, 1, 1),
    one("MPI_LONG_DOUBLE", 0x220, 16, 16),
    one("MPI_C_LONG_DOUBLE_COMPLEX", 0x224, 32, 16),
    one("MPI_CXX_LONG_DOUBLE_COMPLEX", 0x225, 32, 16),
    pair("MPI_FLOAT_INT", 0x228, 8, 8, 4, [Named::FLOAT, Named::INT]),
    pair("MPI_DOUBLE_INT", 0x229, 12, 16, 8, [Named::DOUBLE, Named::INT]),
    pair("MPI_LONG_INT", 0x22a, 12, 16, 8, [Named::LONG, Named::INT]),
    pair("MPI_2INT", 0x22b, 8, 8, 4, [Named::INT, Named::INT]),
    pair("MPI_SHORT_INT", 0x22c, 6, 8, 4, [Named::SHORT, Named::INT]),
    pair("MPI_LONG_DOUBLE_INT", 0x22d, 20, 32, 16, [Named::LONG_DOUBLE, Named::INT]),
    pair("MPI_2REAL", 0x230, 8, 8, 4, [Named::REAL, Named::REAL]),
    pair("MPI_2DOUBLE_PRECISION", 0x231, 16, 16, 8, [Named::DOUBLE_PRECISION, Named::DOUBLE_PRECISION]),
    pair("MPI_2INTEGER", 0x232, 8, 8, 4, [Named::INTEGER, Named::INTEGER]),
    one("MPI_C_BOOL", 0x238, 1, 1),
    one("MPI_CXX_BOOL", 0x239, 1, 1),
    one("MPI_WCHAR", 0x23c, 4, 4),
    one("MPI_INT8_T", 0x240, 1, 1),
    one("MPI_UINT8_T", 0x241, 1, 1),
    one("MPI_CHAR", 0x243, 1, 1),
    one("MPI_SIGNED_CHAR", 0x244, 1, 1),
    one("MPI_UNSIGNED_CHAR", 0x245, 1, 1),
    one("MPI_BYTE", 0x247, 1, 1),
    one("MPI_INT16_T", 0x248, 2, 2),
    one("MPI_UINT16_T", 0x249, 2, 2),
    one("MPI_INT32_T", 0x250, 4, 4),
    one("MPI_UINT32_T", 0x251, 4, 4),
    one("MPI_INT64_T", 0x258, 8, 8),
    one("MPI_UINT64_T", 0x259, 8, 8),
    one("MPI_LOGICAL1", 0x2c0, 1, 1),
    one("MPI_INTEGER1", 0x2c1, 1, 1),
    one("MPI_LOGICAL2", 0x2c8, 2, 2),
    one("MPI_INTEGER2", 0x2c9, 2, 2),
    one("MPI_REAL2", 0x2ca, 2, 2),
    one("MPI_LOGICAL4", 0x2d0, 4, 4),
    one("MPI_INTEGER4", 0x2d1, 4, 4),
    one("MPI_REAL4", 0x2d2, 4, 4),
    one("MPI_COMPLEX4", 0x2d3, 4, 2),
    one("MPI_LOGICAL8", 0x2d8, 8, 8),
    one("MPI_INTEGER8", 0x2d9, 8, 8),
    one("MPI_REAL8", 0x2da, 8, 8),
    one("MPI_COMPLEX8", 0x2db, 8, 4),
    one("MPI_LOGICAL16", 0x2e0, 16, 16),
    one("MPI_INTEGER16", 0x2e1, 16, 16),
    one("MPI_REAL16", 0x2e2, 16, 16),
    one("MPI_COMPLEX16", 0x2e3, 16, 8),
    one("MPI_COMPLEX32", 0x2eb, 32, 16),
    // The ABI does not contain these two types. The engine assigns them values above all values of
    // the ABI.
    one("MPI_LB", 0x1210, 0, 1),
    one("MPI_UB", 0x1211, 0, 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_fill_size_and_extent() {
        for named in Named::all() {
            if let Some([(first, a), (second, b)]) = named.members() {
                assert_eq!(first, 0);
                assert_eq!(a.size() + b.size(), named.size(), "{named}");
                let end = (second + b.size()).next_multiple_of(a.align().max(b.align()));
                assert_eq!(end, named.extent(), "{named}");
            } else {
                assert_eq!(named.size(), named.extent(), "{named}");
            }
        }
    }

    #[test]
    fn fixed_size_values_encode_their_size() {
        // MPI-5.0, ABI chapter: in these handle values, bits 3 to 5 hold the base-2 logarithm of the
        // size.
        for named in Named::all() {
            let value = named.abi_value();
            if (0x240..0x300).contains(&value) {
                assert_eq!(named.size(), 1 << ((value >> 3) & 7), "{named}");
            }
        }
    }

    #[test]
    fn rust_types_agree() {
        assert_eq!(Named::F64.size() as usize, size_of::<f64>());
        assert_eq!(Named::LONG.size() as usize, size_of::<std::ffi::c_long>());
        assert_eq!(Named::WCHAR.size(), 4);
        assert_eq!(Named::from_abi_value(0x214), Some(Named::DOUBLE));
        assert_eq!(Named::from_abi_value(0x200), None);
    }

    #[test]
    fn markers_stand_behind_the_data_types() {
        assert_eq!(Named::all().len(), 70);
        assert!(Named::all().all(|named| named.size() > 0 && !named.is_marker()));
        for (marker, name, value) in [(Named::LB, "MPI_LB", 0x1210), (Named::UB, "MPI_UB", 0x1211)]
        {
            assert_eq!((marker.name(), marker.size(), marker.extent()), (name, 0, 0));
            assert_eq!(Named::from_abi_value(value), Some(marker));
        }
    }
}
