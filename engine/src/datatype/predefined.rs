//! The predefined types that have no name: Fortran 90 kinds (MPI-5.0 section 19.1.5) and pairs for
//! `MPI_MINLOC` and `MPI_MAXLOC` (section 6.9.4). This file also finds the named type that has a
//! given class and size.
//!
//! An unnamed type is made at the first call with its arguments and kept for the life of the process,
//! so that calls with equal arguments return the same datatype. The table of these types cannot grow
//! without limit, because the number of valid combinations of arguments is limited.

use super::{Call, Constructor, Datatype};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::named::Named;
use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The value that stands for an argument that was not given (`MPI_UNDEFINED`). It appears among the
/// decoded integers.
#[doc(alias = "MPI_UNDEFINED")]
pub const UNDEFINED: i32 = -32766;

/// A class of named types (MPI-5.0 section 19.1.5), by its standard ABI value.
///
/// This is a newtype and not an enum, because callers in other languages may pass undefined values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct TypeClass(pub i32);

impl TypeClass {
    /// `MPI_TYPECLASS_INTEGER`
    #[doc(alias = "MPI_TYPECLASS_INTEGER")]
    pub const INTEGER: Self = Self(192);
    /// `MPI_TYPECLASS_REAL`
    #[doc(alias = "MPI_TYPECLASS_REAL")]
    pub const REAL: Self = Self(193);
    /// `MPI_TYPECLASS_COMPLEX`
    #[doc(alias = "MPI_TYPECLASS_COMPLEX")]
    pub const COMPLEX: Self = Self(194);
}

/// The arguments of a call that returns a Fortran 90 kind. The value of an argument that was not
/// given is `UNDEFINED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum F90 {
    Real { precision: i32, range: i32 },
    Complex { precision: i32, range: i32 },
    Integer { range: i32 },
}

impl F90 {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Real { .. } => "f90_real",
            Self::Complex { .. } => "f90_complex",
            Self::Integer { .. } => "f90_integer",
        }
    }

    /// Returns the named type whose representation this kind has.
    fn named(self) -> Result<Named> {
        match self {
            Self::Real { precision, range } => real_kind(precision, range).map(|k| k.real),
            Self::Complex { precision, range } => real_kind(precision, range).map(|k| k.complex),
            Self::Integer { range } => integer_kind(range),
        }
    }
}

/// A kind of real: its number of decimal digits, its decimal exponent range, and the named types that
/// represent it.
struct RealKind {
    precision: i32,
    range: i32,
    real: Named,
    complex: Named,
}

impl RealKind {
    const fn new(precision: i32, range: i32, real: Named, complex: Named) -> Self {
        Self { precision, range, real, complex }
    }
}

/// The kinds of real, in the order in which `selected_real_kind` prefers them in Fortran compilers
/// for LP64 machines. Half precision is not among them. Only x86 has a kind between double and
/// quadruple precision: C's `long double`, which has 80 bits in 16 bytes.
const REAL_KINDS: &[RealKind] = &[
    RealKind::new(6, 37, Named::REAL4, Named::COMPLEX8),
    RealKind::new(15, 307, Named::REAL8, Named::COMPLEX16),
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    RealKind::new(18, 4931, Named::LONG_DOUBLE, Named::C_LONG_DOUBLE_COMPLEX),
    RealKind::new(33, 4931, Named::REAL16, Named::COMPLEX32),
];

/// The integer kinds: the number of decimal digits that each kind can hold, and its named type.
const INTEGER_KINDS: &[(i32, Named)] = &[
    (2, Named::INTEGER1),
    (4, Named::INTEGER2),
    (9, Named::INTEGER4),
    (18, Named::INTEGER8),
    (38, Named::INTEGER16),
];

fn refuse<T>(argument: &'static str, detail: String) -> Result<T> {
    Err(Error::new(ErrorKind::Argument, argument, detail))
}

fn not_negative(argument: &'static str, value: i32) -> Result<()> {
    if value < 0 && value != UNDEFINED {
        return refuse(argument, format!("{value} is negative"));
    }
    Ok(())
}

fn real_kind(precision: i32, range: i32) -> Result<&'static RealKind> {
    if precision == UNDEFINED && range == UNDEFINED {
        return refuse(
            "precision",
            "neither precision nor range is given; at least one is needed".into(),
        );
    }
    not_negative("precision", precision)?;
    not_negative("range", range)?;
    let last = &REAL_KINDS[REAL_KINDS.len() - 1];
    // `UNDEFINED` is less than every valid value, so an argument that was not given passes this test.
    if precision > last.precision {
        return refuse(
            "precision",
            format!(
                "no kind has {precision} decimal digits; at most {} are possible",
                last.precision
            ),
        );
    }
    REAL_KINDS.iter().find(|kind| precision <= kind.precision && range <= kind.range).map_or_else(
        || {
            refuse(
                "range",
                format!(
                    "no kind has a decimal exponent range of {range}; it must be at most {}",
                    last.range
                ),
            )
        },
        Ok,
    )
}

fn integer_kind(range: i32) -> Result<Named> {
    if range < 0 {
        return refuse("range", format!("{range} is negative"));
    }
    match INTEGER_KINDS.iter().find(|(most, _)| range <= *most) {
        Some((_, named)) => Ok(*named),
        None => refuse(
            "range",
            format!("no kind holds integers of {range} decimal digits; at most 38 are possible"),
        ),
    }
}

/// Returns true if `MPI_MINLOC` can compare values of this type, that is, if it is an integer or a real
/// type (MPI-5.0 section 6.9.2).
fn is_ordered(named: Named) -> bool {
    is_integer(named)
        || matches!(
            named,
            Named::FLOAT
                | Named::DOUBLE
                | Named::LONG_DOUBLE
                | Named::REAL
                | Named::DOUBLE_PRECISION
                | Named::REAL2
                | Named::REAL4
                | Named::REAL8
                | Named::REAL16
        )
}

/// Returns true for C integers, Fortran integers and language-independent integers.
fn is_integer(named: Named) -> bool {
    matches!(
        named,
        Named::SHORT
            | Named::INT
            | Named::LONG
            | Named::LONG_LONG
            | Named::UNSIGNED_SHORT
            | Named::UNSIGNED
            | Named::UNSIGNED_LONG
            | Named::UNSIGNED_LONG_LONG
            | Named::SIGNED_CHAR
            | Named::UNSIGNED_CHAR
            | Named::INT8_T
            | Named::INT16_T
            | Named::INT32_T
            | Named::INT64_T
            | Named::UINT8_T
            | Named::UINT16_T
            | Named::UINT32_T
            | Named::UINT64_T
            | Named::INTEGER
            | Named::INTEGER1
            | Named::INTEGER2
            | Named::INTEGER4
            | Named::INTEGER8
            | Named::INTEGER16
            | Named::AINT
            | Named::COUNT
            | Named::OFFSET
    )
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    F90(F90),
    ValueIndex(Named, Named),
}

/// Returns the type that is stored for `key`. If none is stored, `make` makes the type, which is then
/// stored.
fn cached(key: Key, make: impl FnOnce() -> Result<Datatype>) -> Result<Datatype> {
    static MADE: LazyLock<Mutex<HashMap<Key, Datatype>>> = LazyLock::new(Mutex::default);
    // A panic in another thread cannot leave the map half changed, so the map may be used even if its
    // lock is poisoned.
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(ty) = made.get(&key) {
        return Ok(ty.clone());
    }
    let ty = make()?;
    made.insert(key, ty.clone());
    Ok(ty)
}

impl Datatype {
    fn f90(f90: F90) -> Result<Self> {
        let named = f90.named()?;
        cached(Key::F90(f90), || {
            let call = Box::new(Call::F90(f90));
            Self::build(Constructor::Composite { call, layout: Self::named(named) })
        })
    }

    /// Returns the type of a Fortran variable `real(selected_real_kind(precision, range))`: a real with
    /// at least `precision` decimal digits and a decimal exponent range of at least `range` (MPI-5.0
    /// section 19.1.5). Equal arguments return the same datatype.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if both arguments are `None`, or if an argument is negative or no
    /// kind satisfies it.
    #[doc(alias = "MPI_Type_create_f90_real")]
    pub fn f90_real(precision: Option<i32>, range: Option<i32>) -> Result<Self> {
        let (precision, range) = (given("precision", precision)?, given("range", range)?);
        Self::f90(F90::Real { precision, range })
    }

    /// Returns the type of a Fortran variable `complex(selected_real_kind(precision, range))`. Equal
    /// arguments return the same datatype.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if both arguments are `None`, or if an argument is negative or no
    /// kind satisfies it.
    #[doc(alias = "MPI_Type_create_f90_complex")]
    pub fn f90_complex(precision: Option<i32>, range: Option<i32>) -> Result<Self> {
        let (precision, range) = (given("precision", precision)?, given("range", range)?);
        Self::f90(F90::Complex { precision, range })
    }

    /// Returns the type of a Fortran variable `integer(selected_int_kind(range))`: an integer that
    /// can hold all numbers of `range` decimal digits (MPI-5.0 section 19.1.5). Equal arguments
    /// return the same datatype.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if `range` is negative or no kind satisfies it.
    #[doc(alias = "MPI_Type_create_f90_integer")]
    pub fn f90_integer(range: i32) -> Result<Self> {
        Self::f90(F90::Integer { range })
    }

    /// Returns the predefined pair of a value and an index for `MPI_MINLOC` and `MPI_MAXLOC` (MPI-5.0
    /// section 6.9.4). The pair has the layout of a C struct of the two types.
    ///
    /// If a named pair of the two types exists, such as `MPI_FLOAT_INT`, this function returns it.
    /// Otherwise a real or integer type and an integer type form an unnamed pair. For all other
    /// arguments the function returns `None` (`MPI_DATATYPE_NULL` in C). Equal arguments return the
    /// same datatype.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Datatype::structured`], although no pair is known that causes one.
    #[doc(alias = "MPI_Type_get_value_index")]
    pub fn get_value_index(value: &Datatype, index: &Datatype) -> Result<Option<Self>> {
        let (Some(first), Some(second)) = (value.as_named(), index.as_named()) else {
            return Ok(None);
        };
        let named = Named::all()
            .find(|pair| pair.members().is_some_and(|[(_, a), (_, b)]| (a, b) == (first, second)));
        if let Some(pair) = named {
            return Ok(Some(Self::named(pair)));
        }
        if !is_ordered(first) || !is_integer(second) {
            return Ok(None);
        }
        let pair = cached(Key::ValueIndex(first, second), || {
            let offset = first.size().next_multiple_of(second.align());
            let types = [value.clone(), index.clone()];
            let layout = Self::structured(&[1, 1], &[0, i64::from(offset)], &types)?;
            let [value, index] = types;
            let call = Box::new(Call::ValueIndex { value, index });
            Self::build(Constructor::Composite { call, layout })
        })?;
        Ok(Some(pair))
    }

    /// Returns the named types whose values a predefined datatype holds. For a named type, that is the type
    /// itself. For a Fortran 90 kind, it is the named type that represents the kind. For a pair without a name,
    /// it is the type of the value, and then the type of the index. Returns `None` for a datatype that is not
    /// predefined.
    pub fn predefined_types(&self) -> Option<(Named, Option<Named>)> {
        match self.constructor() {
            Constructor::Named(named) => Some((*named, None)),
            Constructor::Composite { call, .. } => match &**call {
                Call::F90(f90) => f90.named().ok().map(|named| (named, None)),
                Call::ValueIndex { value, index } => {
                    Some((value.as_named()?, Some(index.as_named()?)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the predefined datatype of which all data of this datatype consist. Returns `None` if the data
    /// consist of several predefined datatypes, or if there are no data. One-sided accumulates take only
    /// datatypes that have such a type (MPI-5.0 section 12.3.4).
    pub fn element_type(&self) -> Option<Self> {
        if self.is_element() {
            return (self.size() > 0).then(|| self.clone());
        }
        let mut found: Option<&Self> = None;
        // Several nodes may share a child. Each child is visited once.
        let mut seen = HashSet::from([self.address()]);
        let mut pending = vec![self];
        while let Some(ty) = pending.pop() {
            if ty.size() == 0 {
                continue;
            }
            if ty.is_element() {
                match found {
                    None => found = Some(ty),
                    Some(first) if first.is_same(ty) => {}
                    Some(_) => return None,
                }
                continue;
            }
            // A member of a struct with a block length of 0 has no data.
            let has_data = |nth: usize| match ty.constructor() {
                Constructor::Struct { blocklengths, .. } => blocklengths.get(nth) != 0,
                _ => true,
            };
            for (nth, child) in ty.constructor().children().iter().enumerate() {
                if has_data(nth) && seen.insert(child.address()) {
                    pending.push(child);
                }
            }
        }
        found.cloned()
    }

    /// Returns whether this is a predefined datatype, with or without a name.
    fn is_element(&self) -> bool {
        match self.constructor() {
            Constructor::Named(_) => true,
            Constructor::Composite { call, .. } => !matches!(**call, Call::Darray(_)),
            _ => false,
        }
    }

    /// Returns the named type that belongs to `class` and has `size` bytes, such as `MPI_INTEGER4` or
    /// `MPI_REAL8` (MPI-5.0 section 19.1.5).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if `class` is not one of the classes of the standard, or if no
    /// type of the class has `size` bytes.
    #[doc(alias = "MPI_Type_match_size")]
    pub fn match_size(class: TypeClass, size: i32) -> Result<Self> {
        let types: &[Named] = match class {
            TypeClass::INTEGER => &[
                Named::INTEGER1,
                Named::INTEGER2,
                Named::INTEGER4,
                Named::INTEGER8,
                Named::INTEGER16,
            ],
            TypeClass::REAL => &[Named::REAL2, Named::REAL4, Named::REAL8, Named::REAL16],
            TypeClass::COMPLEX => {
                &[Named::COMPLEX4, Named::COMPLEX8, Named::COMPLEX16, Named::COMPLEX32]
            }
            TypeClass(other) => {
                return refuse(
                    "class",
                    format!("{other} is not one of MPI_TYPECLASS_INTEGER, _REAL, _COMPLEX"),
                );
            }
        };
        match types.iter().find(|named| i64::from(named.size()) == i64::from(size)) {
            Some(named) => Ok(Self::named(*named)),
            None => refuse("size", {
                let sizes: Vec<String> =
                    types.iter().map(|named| named.size().to_string()).collect();
                let size = counted(size, "byte", "bytes");
                format!("no type of this class has {size}; the sizes are {}", sizes.join(", "))
            }),
        }
    }
}

/// Converts an optional argument to the form in which it is stored and decoded: `None` becomes
/// `UNDEFINED`. Returns an error if the caller passes the value of `UNDEFINED` itself.
fn given(argument: &'static str, value: Option<i32>) -> Result<i32> {
    match value {
        Some(UNDEFINED) => refuse(argument, format!("{UNDEFINED} is negative")),
        Some(value) => Ok(value),
        None => Ok(UNDEFINED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_the_smallest_that_are_enough() {
        let real = |p, r| F90::Real { precision: p, range: r }.named().unwrap();
        assert_eq!(real(6, 37), Named::REAL4);
        assert_eq!(real(0, UNDEFINED), Named::REAL4);
        assert_eq!(real(7, UNDEFINED), Named::REAL8);
        assert_eq!(real(UNDEFINED, 38), Named::REAL8);
        assert_eq!(real(15, 307), Named::REAL8);
        assert_eq!(real(19, 0), Named::REAL16);
        assert_eq!(real(33, 4931), Named::REAL16);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(real(16, 308), Named::LONG_DOUBLE);
        let complex = F90::Complex { precision: 15, range: 307 };
        assert_eq!(complex.named().unwrap(), Named::COMPLEX16);
        for (range, named) in [(0, "1"), (2, "1"), (3, "2"), (9, "4"), (10, "8"), (38, "16")] {
            let found = F90::Integer { range }.named().unwrap();
            assert_eq!(found.name(), format!("MPI_INTEGER{named}"));
        }
    }

    #[test]
    fn predefined_types_are_found() {
        let of = |ty: &Datatype| ty.predefined_types();
        assert_eq!(of(&Datatype::named(Named::INT)), Some((Named::INT, None)));
        let real = Datatype::f90_real(Some(15), None).unwrap();
        assert_eq!(of(&real), Some((Named::REAL8, None)));
        let (value, index) = (Datatype::named(Named::REAL16), Datatype::named(Named::INT64_T));
        let pair = Datatype::get_value_index(&value, &index).unwrap().unwrap();
        assert_eq!(of(&pair), Some((Named::REAL16, Some(Named::INT64_T))));
        assert_eq!(of(&Datatype::contiguous(1, &value).unwrap()), None);
    }

    #[test]
    fn element_types_are_found_through_any_constructor() {
        let double = Datatype::named(Named::DOUBLE);
        let int = Datatype::named(Named::INT);
        let column = Datatype::vector(3, 1, 4, &double).unwrap();
        let resized = Datatype::resized(0, 800, &column).unwrap();
        let several =
            Datatype::structured(&[1, 2, 0], &[0, 1600, 8], &[resized, double.clone(), int])
                .unwrap();
        assert_eq!(several.element_type().and_then(|ty| ty.as_named()), Some(Named::DOUBLE));
        let int = Datatype::named(Named::INT);
        let mixed = Datatype::structured(&[1, 1], &[0, 8], &[double.clone(), int]).unwrap();
        assert!(mixed.element_type().is_none());
        let other = Datatype::named(Named::REAL8);
        let mixed = Datatype::structured(&[1, 1], &[0, 8], &[double.clone(), other]).unwrap();
        assert!(mixed.element_type().is_none());
        assert!(Datatype::contiguous(0, &double).unwrap().element_type().is_none());
        let real = Datatype::f90_real(Some(15), None).unwrap();
        let found = Datatype::contiguous(4, &real).unwrap().element_type().unwrap();
        assert!(found.is_same(&real));
    }

    /// Checks that a tree whose nodes share their children is walked once, not once for each path.
    #[test]
    fn shared_children_are_visited_once() {
        let mut ty = Datatype::named(Named::BYTE);
        for _ in 0..60 {
            ty = Datatype::structured(
                &[1, 1],
                &[0, 0],
                &[ty.clone(), Datatype::resized(0, 1, &ty).unwrap()],
            )
            .unwrap_or(ty);
        }
        assert_eq!(ty.element_type().and_then(|ty| ty.as_named()), Some(Named::BYTE));
    }
}
