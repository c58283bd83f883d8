//! The basic types of a signature. They are compared by class and width, or by name.
//!
//! `build.rs` makes the leaves of a signature from the basic types of this file. The classes follow
//! the groups of MPI-5.0 section 6.9.2 (C integers, floating point, logical, complex, byte) and a
//! rule of the project: `MPI_LONG` and `MPI_INT64_T` match, and so do C and Fortran types that have
//! the same representation.
//!
//! - Signed and unsigned integers are one class. Section 6.9.2 puts them in one group, and copying
//!   them moves the same bytes. Programs often send `MPI_INT` and receive it as `MPI_UNSIGNED`, and
//!   no harm results. Comparison by name ([`Sameness::Name`]) distinguishes the two.
//! - `MPI_CHAR`, `MPI_CHARACTER` and `MPI_WCHAR` are characters; `MPI_SIGNED_CHAR` and
//!   `MPI_UNSIGNED_CHAR` are integers, as the standard says.
//! - `long double` is a separate class. On x86-64 it is an 80-bit number in 16 bytes of memory, while
//!   `REAL*16` is IEEE binary128; a value of one type, read as the other type, is garbage.
//! - `MPI_BYTE` and `MPI_PACKED` are separate classes: bytes match only bytes (section 3.3.1).
//!   `matching.rs` decides what packed data matches.

use crate::named::Named;
use std::fmt;

/// The class of a basic type. Under the project's rule ([`Sameness::Representation`]), two basic
/// types are equal if they have the same class and the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Class {
    /// Signed and unsigned integers, addresses, counts and offsets.
    Integer,
    /// IEEE binary floating point.
    Float,
    /// C `long double`.
    LongDouble,
    /// A complex number: a pair of [`Class::Float`] values. The width is that of the pair.
    Complex,
    /// A complex number: a pair of [`Class::LongDouble`] values. The width is that of the pair.
    LongComplex,
    /// Fortran `LOGICAL`, C and C++ `bool`.
    Logical,
    /// Characters, including wide characters.
    Character,
    /// Untyped bytes.
    Byte,
    /// Bytes of packed data (`MPI_PACKED`).
    Packed,
}

impl Class {
    /// Returns the class of a basic type. Returns `None` for a pair type, because it consists of two
    /// basic types, and for a type without data.
    pub fn of(named: Named) -> Option<Self> {
        if named.members().is_some() {
            return None;
        }
        let (_, class) = CLASSES.iter().find(|(members, _)| members.contains(&named))?;
        Some(*class)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Float => "float",
            Self::LongDouble => "long double",
            Self::Complex => "complex",
            Self::LongComplex => "long complex",
            Self::Logical => "logical",
            Self::Character => "character",
            Self::Byte => "byte",
            Self::Packed => "packed",
        }
    }
}

/// All basic types that have data, grouped by class.
const CLASSES: &[(&[Named], Class)] = &[
    (
        &[
            Named::AINT,
            Named::COUNT,
            Named::OFFSET,
            Named::SHORT,
            Named::INT,
            Named::LONG,
            Named::LONG_LONG,
            Named::UNSIGNED_SHORT,
            Named::UNSIGNED,
            Named::UNSIGNED_LONG,
            Named::UNSIGNED_LONG_LONG,
            Named::INTEGER,
            Named::INT8_T,
            Named::UINT8_T,
            Named::SIGNED_CHAR,
            Named::UNSIGNED_CHAR,
            Named::INT16_T,
            Named::UINT16_T,
            Named::INT32_T,
            Named::UINT32_T,
            Named::INT64_T,
            Named::UINT64_T,
            Named::INTEGER1,
            Named::INTEGER2,
            Named::INTEGER4,
            Named::INTEGER8,
            Named::INTEGER16,
        ],
        Class::Integer,
    ),
    (
        &[
            Named::FLOAT,
            Named::DOUBLE,
            Named::REAL,
            Named::DOUBLE_PRECISION,
            Named::REAL2,
            Named::REAL4,
            Named::REAL8,
            Named::REAL16,
        ],
        Class::Float,
    ),
    (&[Named::LONG_DOUBLE], Class::LongDouble),
    (
        &[
            Named::C_FLOAT_COMPLEX,
            Named::CXX_FLOAT_COMPLEX,
            Named::C_DOUBLE_COMPLEX,
            Named::CXX_DOUBLE_COMPLEX,
            Named::COMPLEX,
            Named::DOUBLE_COMPLEX,
            Named::COMPLEX4,
            Named::COMPLEX8,
            Named::COMPLEX16,
            Named::COMPLEX32,
        ],
        Class::Complex,
    ),
    (&[Named::C_LONG_DOUBLE_COMPLEX, Named::CXX_LONG_DOUBLE_COMPLEX], Class::LongComplex),
    (
        &[
            Named::LOGICAL,
            Named::C_BOOL,
            Named::CXX_BOOL,
            Named::LOGICAL1,
            Named::LOGICAL2,
            Named::LOGICAL4,
            Named::LOGICAL8,
            Named::LOGICAL16,
        ],
        Class::Logical,
    ),
    (&[Named::CHARACTER, Named::CHAR, Named::WCHAR], Class::Character),
    (&[Named::BYTE], Class::Byte),
    (&[Named::PACKED], Class::Packed),
];

/// The rule that decides whether two basic types are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Sameness {
    /// Two basic types are equal if they have the same class and the same width. This is the
    /// project's default rule.
    #[default]
    Representation,
    /// Two basic types are equal if they have the same name (MPI-5.0 section 3.3.1: "identical
    /// names").
    Name,
}

/// One element of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Basic {
    /// A class and a width in bytes ([`Sameness::Representation`]).
    Representation {
        /// The class.
        class: Class,
        /// Width in bytes.
        width: u32,
    },
    /// A named type ([`Sameness::Name`]).
    Named(Named),
}

impl Basic {
    /// Returns `named` as a signature element under the rule `sameness`. Returns `None` for a pair
    /// type, which is two basic types, and for a type without data.
    pub fn new(named: Named, sameness: Sameness) -> Option<Self> {
        let class = Class::of(named).filter(|_| named.size() > 0)?;
        Some(match sameness {
            Sameness::Representation => Self::Representation { class, width: named.size() },
            Sameness::Name => Self::Named(named),
        })
    }

    /// Returns the number of bytes of one element in memory.
    pub fn width(self) -> u32 {
        match self {
            Self::Representation { width, .. } => width,
            Self::Named(named) => named.size(),
        }
    }

    pub(super) fn is_packed(self) -> bool {
        match self {
            Self::Representation { class, .. } => class == Class::Packed,
            Self::Named(named) => named == Named::PACKED,
        }
    }

    /// Returns the number that stands for this element in the hash. The number is never 0 and is below
    /// 2^32, and different elements have different numbers. For a class and width, bits 16 to 23 hold
    /// the class (counted from 1) and the lower bits hold the width. For a name, bit 24 is set and the
    /// lower bits hold the ABI value.
    pub fn token(self) -> u32 {
        match self {
            Self::Representation { class, width } => (class as u32 + 1) << 16 | width,
            Self::Named(named) => 1 << 24 | named.abi_value(),
        }
    }
}

impl fmt::Display for Basic {
    /// Prints the class and the width in bytes, such as `integer 8`, or the MPI name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Representation { class, width } => write!(f, "{} {width}", class.name()),
            Self::Named(named) => write!(f, "{named}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_basic_type_with_data_has_exactly_one_class() {
        for named in Named::all() {
            let classes = CLASSES.iter().filter(|(members, _)| members.contains(&named)).count();
            let basic = named.members().is_none() && named.size() > 0;
            assert_eq!(classes, usize::from(basic), "{named}");
            assert_eq!(Class::of(named).is_some(), basic, "{named}");
        }
    }

    #[test]
    fn tokens_tell_apart() {
        let mut seen: HashMap<u32, Basic> = HashMap::new();
        for sameness in [Sameness::Representation, Sameness::Name] {
            for basic in Named::all().filter_map(|named| Basic::new(named, sameness)) {
                assert_ne!(basic.token(), 0);
                assert_eq!(*seen.entry(basic.token()).or_insert(basic), basic);
            }
        }
    }

    #[test]
    fn what_matches() {
        let same = |a, b| {
            Basic::new(a, Sameness::Representation) == Basic::new(b, Sameness::Representation)
        };
        assert!(same(Named::LONG, Named::INT64_T));
        assert!(same(Named::INT, Named::UNSIGNED));
        assert!(same(Named::DOUBLE, Named::DOUBLE_PRECISION));
        assert!(same(Named::C_DOUBLE_COMPLEX, Named::COMPLEX16));
        assert!(same(Named::LOGICAL1, Named::C_BOOL));
        assert!(!same(Named::INT, Named::FLOAT));
        assert!(!same(Named::INT, Named::LONG));
        assert!(!same(Named::CHAR, Named::SIGNED_CHAR));
        assert!(!same(Named::BYTE, Named::UINT8_T));
        assert!(!same(Named::BYTE, Named::PACKED));
        assert!(!same(Named::LONG_DOUBLE, Named::REAL16));
        let name = |named| Basic::new(named, Sameness::Name);
        assert_ne!(name(Named::LONG), name(Named::INT64_T));
        assert_eq!(Basic::new(Named::DOUBLE_INT, Sameness::Name), None);
    }
}
