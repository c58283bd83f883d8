//! Decodes a type: returns the constructor call that made the type, and the arguments of that call
//! (MPI-5.0 section 5.1.13).
//!
//! `rebuild.rs` does the reverse, so for every constructor the two files must agree on the positions
//! of the arguments. A call with counts decodes in one of three forms: the `int` form, the large form
//! of the calls whose names end in `_c`, and the Fortran form of the Fortran calls of MPI-1. If the
//! form was recorded when the type was made ([`Datatype::with_form`]), the type decodes in the
//! recorded form. Otherwise the type decodes in the `int` form if all arguments fit in this form, and
//! in the large form if not.

use super::{Call, Constructor, Datatype, F90, Handle, Node};
use crate::error::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;
use typepack_leaf::Table;

/// Which constructor made a type (MPI-5.0 section 5.1.13). The number is the value of the
/// `MPI_COMBINER_…` constant in the standard ABI.
///
/// This is a newtype and not an enum, because other MPI libraries may pass values that the standard
/// does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Combiner(pub i32);

macro_rules! combiners {
    ($($name:ident = $value:literal, $alias:literal;)*) => {
        impl Combiner {
            $(
                #[doc = concat!("`", $alias, "`")]
                #[doc(alias = $alias)]
                pub const $name: Self = Self($value);
            )*

            /// Returns the MPI name of this value, or `None` if the standard does not define the
            /// value.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($alias),)*
                    _ => None,
                }
            }
        }
    };
}

combiners! {
    NAMED = 101, "MPI_COMBINER_NAMED";
    DUP = 102, "MPI_COMBINER_DUP";
    CONTIGUOUS = 103, "MPI_COMBINER_CONTIGUOUS";
    VECTOR = 104, "MPI_COMBINER_VECTOR";
    HVECTOR = 105, "MPI_COMBINER_HVECTOR";
    INDEXED = 106, "MPI_COMBINER_INDEXED";
    HINDEXED = 107, "MPI_COMBINER_HINDEXED";
    INDEXED_BLOCK = 108, "MPI_COMBINER_INDEXED_BLOCK";
    HINDEXED_BLOCK = 109, "MPI_COMBINER_HINDEXED_BLOCK";
    STRUCT = 110, "MPI_COMBINER_STRUCT";
    SUBARRAY = 111, "MPI_COMBINER_SUBARRAY";
    DARRAY = 112, "MPI_COMBINER_DARRAY";
    F90_REAL = 113, "MPI_COMBINER_F90_REAL";
    F90_COMPLEX = 114, "MPI_COMBINER_F90_COMPLEX";
    F90_INTEGER = 115, "MPI_COMBINER_F90_INTEGER";
    RESIZED = 116, "MPI_COMBINER_RESIZED";
    VALUE_INDEX = 117, "MPI_COMBINER_VALUE_INDEX";
    HVECTOR_INTEGER = 20005, "MPI_COMBINER_HVECTOR_INTEGER";
    HINDEXED_INTEGER = 20007, "MPI_COMBINER_HINDEXED_INTEGER";
    STRUCT_INTEGER = 20010, "MPI_COMBINER_STRUCT_INTEGER";
}

impl fmt::Display for Combiner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "combiner {}", self.0),
        }
    }
}

/// The form in which a constructor call is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Counts are 32-bit integers; displacements in bytes are addresses. A call that has no large
    /// form decodes in this form.
    Int,
    /// Counts and displacements are large counts, as in the calls whose names end in `_c`.
    Large,
    /// Like [`Form::Int`], but with a combiner that ends in `_INTEGER`. A Fortran call of MPI-1 made
    /// the type ([`Binding::Fortran`](super::Binding::Fortran)).
    Fortran,
}

/// The constructor call that made a type, and how many arguments the call had
/// ([`Datatype::envelope`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Which constructor was called.
    pub combiner: Combiner,
    /// The form of the call. If it is [`Form::Large`], MPI forbids `MPI_Type_get_envelope` and
    /// `MPI_Type_get_contents` for the type; only their `_c` variants are allowed.
    pub form: Form,
    /// Number of arguments that are integers.
    pub integers: usize,
    /// Number of arguments that are addresses.
    pub addresses: usize,
    /// Number of large counts; 0 unless the form is [`Form::Large`].
    pub large_counts: usize,
    /// Number of arguments that are datatypes.
    pub datatypes: usize,
}

/// The arguments of the call that made a type ([`Datatype::contents`]), in the positions that MPI-5.0
/// section 5.1.13 defines.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Integers.
    pub integers: Vec<i32>,
    /// Addresses, in bytes.
    pub addresses: Vec<i64>,
    /// Large counts.
    pub large_counts: Vec<i64>,
    /// The datatypes. They are the objects that were passed to the call, not copies of them.
    pub datatypes: Vec<Datatype>,
}

fn fits(values: &[i64]) -> bool {
    values.iter().all(|&value| i32::try_from(value).is_ok())
}

fn table_fits(table: &Table) -> bool {
    i32::try_from(table.len()).is_ok() && (table.width() <= 4 || table.iter().all(|v| fits(&[v])))
}

impl Constructor {
    /// Returns true if all arguments of this call fit in the `int` form.
    fn fits_int(&self) -> bool {
        match self {
            Self::Named(_) | Self::Dup { .. } | Self::Resized { .. } => true,
            Self::Contiguous { count, .. } => fits(&[*count]),
            Self::Vector { count, blocklength, stride, .. } => {
                fits(&[*count, *blocklength, *stride])
            }
            Self::Hvector { count, blocklength, .. } => fits(&[*count, *blocklength]),
            Self::Indexed { blocklengths, displacements, .. } => {
                table_fits(blocklengths) && table_fits(displacements)
            }
            Self::Hindexed { blocklengths, .. } | Self::Struct { blocklengths, .. } => {
                table_fits(blocklengths)
            }
            Self::IndexedBlock { blocklength, displacements, .. } => {
                fits(&[*blocklength]) && table_fits(displacements)
            }
            Self::HindexedBlock { blocklength, displacements, .. } => {
                fits(&[*blocklength]) && i32::try_from(displacements.len()).is_ok()
            }
            // It is enough to check the sizes, because no start and no subsize is greater than the
            // size of its dimension.
            Self::Subarray { region, .. } => fits(region.sizes()),
            Self::Composite { call, .. } => match &**call {
                Call::Darray(darray) => fits(&darray.sizes),
                Call::F90(_) | Call::ValueIndex { .. } => true,
            },
        }
    }

    /// Returns true if this call has a variant with large counts.
    fn has_large_form(&self) -> bool {
        match self {
            Self::Named(_) | Self::Dup { .. } => false,
            Self::Composite { call, .. } => matches!(**call, Call::Darray(_)),
            _ => true,
        }
    }
}

/// Collects the arguments of a call in the form `form`.
struct Writer {
    form: Form,
    contents: Contents,
}

impl Writer {
    /// Adds an argument that is an integer in every form.
    fn int(&mut self, value: i32) {
        self.contents.integers.push(value);
    }

    /// Adds an argument that is a large count in the large form and an integer in the other forms.
    fn count(&mut self, value: i64) {
        match self.form {
            Form::Large => self.contents.large_counts.push(value),
            // `as` loses no bits, because `form()` returns these forms only if all arguments fit in
            // 32 bits.
            Form::Int | Form::Fortran => self.contents.integers.push(value as i32),
        }
    }

    fn counts(&mut self, values: impl Iterator<Item = i64>) {
        values.for_each(|value| self.count(value));
    }

    /// Adds an argument in bytes. It is a large count in the large form and an address in the other
    /// forms.
    fn address(&mut self, value: i64) {
        match self.form {
            Form::Large => self.contents.large_counts.push(value),
            Form::Int | Form::Fortran => self.contents.addresses.push(value),
        }
    }

    fn addresses(&mut self, values: impl Iterator<Item = i64>) {
        values.for_each(|value| self.address(value));
    }
}

impl Datatype {
    /// Returns the form in which this type decodes. This is the recorded form if there is one.
    /// Otherwise it is the `int` form if all arguments fit in that form, and the large form if not. A
    /// call that has no large form decodes in the `int` form.
    pub fn form(&self) -> Form {
        match self.0.form {
            Some(form) => form,
            None if self.constructor().fits_int() => Form::Int,
            None => Form::Large,
        }
    }

    /// Records the form in which this type decodes. The caller passes [`Form::Large`] for a type made
    /// by a call whose name ends in `_c`, and [`Form::Int`] for other types. If the type's call has
    /// only one form (named types, `dup`, Fortran 90 kinds, value-index pairs), this function records
    /// nothing.
    ///
    /// # Errors
    ///
    /// A call that has only one form returns no error. For other calls, the function returns
    /// `ErrorKind::Overflow` for [`Form::Int`] if an argument needs more than 32 bits, and
    /// `ErrorKind::Argument` for [`Form::Fortran`], because only [`Datatype::type_hvector`] and the
    /// other calls of MPI-1 may record that form.
    pub fn with_form(self, form: Form) -> Result<Self> {
        if !self.constructor().has_large_form() {
            return Ok(self);
        }
        match form {
            Form::Fortran => {
                return Err(Error::new(
                    ErrorKind::Argument,
                    "form",
                    "this datatype has no Fortran form; only the constructors of MPI-1 have one",
                ));
            }
            Form::Int if !self.constructor().fits_int() => {
                return Err(Error::new(
                    ErrorKind::Overflow,
                    "form",
                    format!(
                        "the int form was requested, but an argument of the call that made \
                         {self:?} does not fit in an int"
                    ),
                ));
            }
            Form::Int | Form::Large => {}
        }
        Ok(self.recorded(form))
    }

    /// Records `form`. The type's call must have this form.
    pub(super) fn recorded(mut self, form: Form) -> Self {
        // Usually the type has just been made and has no other owner. Then its node can be changed in
        // place.
        let unshared = match &mut self.0 {
            Handle::Made(node) => Arc::get_mut(node),
            Handle::Named(_) => None,
        };
        match unshared {
            Some(node) => node.form = Some(form),
            None => {
                let (constructor, bounds) = (self.constructor().clone(), self.bounds().clone());
                let mut node = Node::new(constructor, bounds);
                node.form = Some(form);
                self = Self(Handle::Made(Arc::new(node)));
            }
        }
        self
    }

    /// Returns the combiner of the call that made this type.
    pub fn combiner(&self) -> Combiner {
        let fortran = self.0.form == Some(Form::Fortran);
        match self.constructor() {
            Constructor::Named(_) => Combiner::NAMED,
            Constructor::Dup { .. } => Combiner::DUP,
            Constructor::Contiguous { .. } => Combiner::CONTIGUOUS,
            Constructor::Vector { .. } => Combiner::VECTOR,
            Constructor::Hvector { .. } if fortran => Combiner::HVECTOR_INTEGER,
            Constructor::Hvector { .. } => Combiner::HVECTOR,
            Constructor::Indexed { .. } => Combiner::INDEXED,
            Constructor::Hindexed { .. } if fortran => Combiner::HINDEXED_INTEGER,
            Constructor::Hindexed { .. } => Combiner::HINDEXED,
            Constructor::IndexedBlock { .. } => Combiner::INDEXED_BLOCK,
            Constructor::HindexedBlock { .. } => Combiner::HINDEXED_BLOCK,
            Constructor::Struct { .. } if fortran => Combiner::STRUCT_INTEGER,
            Constructor::Struct { .. } => Combiner::STRUCT,
            Constructor::Subarray { .. } => Combiner::SUBARRAY,
            Constructor::Resized { .. } => Combiner::RESIZED,
            Constructor::Composite { call, .. } => match &**call {
                Call::Darray(_) => Combiner::DARRAY,
                Call::F90(F90::Real { .. }) => Combiner::F90_REAL,
                Call::F90(F90::Complex { .. }) => Combiner::F90_COMPLEX,
                Call::F90(F90::Integer { .. }) => Combiner::F90_INTEGER,
                Call::ValueIndex { .. } => Combiner::VALUE_INDEX,
            },
        }
    }

    /// Returns the call that made this type, and how many arguments of each kind [`Datatype::contents`]
    /// returns.
    #[doc(alias = "MPI_Type_get_envelope")]
    pub fn envelope(&self) -> Envelope {
        // The first three numbers count the integers, addresses and datatypes of the `int` form. The
        // last two count the integers and the large counts of the large form, which has no addresses
        // and the same number of datatypes.
        let (integers, addresses, datatypes, large_integers, large_counts) =
            match self.constructor() {
                Constructor::Named(_) => (0, 0, 0, 0, 0),
                Constructor::Dup { .. } => (0, 0, 1, 0, 0),
                Constructor::Contiguous { .. } => (1, 0, 1, 0, 1),
                Constructor::Vector { .. } => (3, 0, 1, 0, 3),
                Constructor::Hvector { .. } => (2, 1, 1, 0, 3),
                Constructor::Indexed { blocklengths, .. } => {
                    let all = 2 * blocklengths.len() + 1;
                    (all, 0, 1, 0, all)
                }
                Constructor::Hindexed { blocklengths, .. } => {
                    let count = blocklengths.len();
                    (count + 1, count, 1, 0, 2 * count + 1)
                }
                Constructor::IndexedBlock { displacements, .. } => {
                    let all = displacements.len() + 2;
                    (all, 0, 1, 0, all)
                }
                Constructor::HindexedBlock { displacements, .. } => {
                    let count = displacements.len();
                    (2, count, 1, 0, count + 2)
                }
                Constructor::Struct { types, .. } => {
                    let count = types.len();
                    (count + 1, count, count, 0, 2 * count + 1)
                }
                Constructor::Subarray { region, .. } => {
                    let dimensions = region.sizes().len();
                    (3 * dimensions + 2, 0, 1, 2, 3 * dimensions)
                }
                Constructor::Resized { .. } => (0, 2, 1, 0, 2),
                Constructor::Composite { call, .. } => match &**call {
                    Call::Darray(darray) => {
                        let dimensions = darray.sizes.len();
                        (4 * dimensions + 4, 0, 1, 3 * dimensions + 4, dimensions)
                    }
                    Call::F90(F90::Real { .. } | F90::Complex { .. }) => (2, 0, 0, 2, 0),
                    Call::F90(F90::Integer { .. }) => (1, 0, 0, 1, 0),
                    Call::ValueIndex { .. } => (0, 0, 2, 0, 0),
                },
            };
        let form = self.form();
        let (integers, addresses, large_counts) = match form {
            Form::Int | Form::Fortran => (integers, addresses, 0),
            Form::Large => (large_integers, 0, large_counts),
        };
        let combiner = self.combiner();
        Envelope { combiner, form, integers, addresses, large_counts, datatypes }
    }

    /// Returns the arguments of the call that made this type. The datatypes are the objects that were
    /// passed to the call. The caller may use them, and frees a derived datatype by dropping it.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type` for a named type, because no call made it.
    #[doc(alias = "MPI_Type_get_contents")]
    pub fn contents(&self) -> Result<Contents> {
        let mut to = Writer { form: self.form(), contents: Contents::default() };
        let old = match self.constructor() {
            Constructor::Named(named) => {
                return Err(Error::new(
                    ErrorKind::Type,
                    "datatype",
                    format!("{named} is a named type and has no contents"),
                ));
            }
            Constructor::Dup { old } => old,
            Constructor::Contiguous { count, old } => {
                to.count(*count);
                old
            }
            Constructor::Vector { count, blocklength, stride, old } => {
                to.counts([*count, *blocklength, *stride].into_iter());
                old
            }
            Constructor::Hvector { count, blocklength, stride, old } => {
                to.counts([*count, *blocklength].into_iter());
                to.address(*stride);
                old
            }
            Constructor::Indexed { blocklengths, displacements, old } => {
                to.count(blocklengths.len() as i64);
                to.counts(blocklengths.iter());
                to.counts(displacements.iter());
                old
            }
            Constructor::Hindexed { blocklengths, displacements, old } => {
                to.count(blocklengths.len() as i64);
                to.counts(blocklengths.iter());
                to.addresses(displacements.iter());
                old
            }
            Constructor::IndexedBlock { blocklength, displacements, old } => {
                to.counts([displacements.len() as i64, *blocklength].into_iter());
                to.counts(displacements.iter());
                old
            }
            Constructor::HindexedBlock { blocklength, displacements, old } => {
                to.counts([displacements.len() as i64, *blocklength].into_iter());
                to.addresses(displacements.iter());
                old
            }
            Constructor::Struct { blocklengths, displacements, types } => {
                to.count(blocklengths.len() as i64);
                to.counts(blocklengths.iter());
                to.addresses(displacements.iter());
                to.contents.datatypes.extend(types.iter().cloned());
                return Ok(to.contents);
            }
            Constructor::Subarray { region, order, old } => {
                let [sizes, subsizes, starts] = region.parts();
                // `as` loses no bits, because the constructors refuse a number of dimensions that
                // does not fit in an `i32`.
                to.int(sizes.len() as i32);
                to.counts(sizes.iter().chain(subsizes).chain(starts).copied());
                to.int(order.abi_value());
                old
            }
            Constructor::Resized { lb, extent, old } => {
                to.addresses([*lb, *extent].into_iter());
                old
            }
            Constructor::Composite { call, .. } => match &**call {
                Call::Darray(darray) => {
                    to.int(darray.size);
                    to.int(darray.rank);
                    to.int(darray.sizes.len() as i32);
                    to.counts(darray.sizes.iter().copied());
                    let integers = &mut to.contents.integers;
                    integers.extend(darray.distributions.iter().map(|d| d.abi_value()));
                    integers.extend(darray.arguments.iter().chain(&darray.processes));
                    to.int(darray.order.abi_value());
                    &darray.old
                }
                Call::F90(F90::Real { precision, range } | F90::Complex { precision, range }) => {
                    to.int(*precision);
                    to.int(*range);
                    return Ok(to.contents);
                }
                Call::F90(F90::Integer { range }) => {
                    to.int(*range);
                    return Ok(to.contents);
                }
                Call::ValueIndex { value, index } => {
                    to.contents.datatypes.push(value.clone());
                    index
                }
            },
        };
        to.contents.datatypes.push(old.clone());
        Ok(to.contents)
    }
}
