//! Makes a type from the decoded form of its constructor call. This is the inverse of `decode.rs`.
//!
//! The input is what `MPI_Type_get_envelope` and `MPI_Type_get_contents` return, possibly in another
//! MPI library. So this file checks the lengths of the arrays and every value that it decodes itself. It
//! then calls the ordinary constructors, which check all other values.

use super::{Binding, Combiner, Datatype, Distribution, Form, Order, UNDEFINED};
use crate::error::{Error, ErrorKind, Result, counted};
use smallvec::SmallVec;

/// The four arrays of a decoded call. The methods check the arrays and return the arguments of the
/// call.
struct Reader<'a> {
    combiner: Combiner,
    integers: &'a [i32],
    addresses: &'a [i64],
    counts: &'a [i64],
    types: &'a [Datatype],
}

fn wrong<T>(kind: ErrorKind, argument: &'static str, detail: String) -> Result<T> {
    Err(Error::new(kind, argument, detail))
}

/// The arguments of a call. Most calls have few arguments, and up to 32 arguments need no heap
/// allocation.
type Arguments = SmallVec<[i64; 32]>;

fn widened(values: &[i32]) -> Arguments {
    values.iter().map(|&value| i64::from(value)).collect()
}

impl<'a> Reader<'a> {
    /// Returns an error unless the arrays have exactly the given numbers of integers, addresses,
    /// large counts and types.
    fn expect(&self, integers: u64, addresses: u64, counts: u64, types: u64) -> Result<()> {
        for (argument, length, expected) in [
            ("integers", self.integers.len(), integers),
            ("addresses", self.addresses.len(), addresses),
            ("large_counts", self.counts.len(), counts),
            ("datatypes", self.types.len(), types),
        ] {
            if length as u64 != expected {
                let entries = counted(length, "entry", "entries");
                let detail = format!("{entries}, but {} needs {expected}", self.combiner);
                return wrong(ErrorKind::Count, argument, detail);
            }
        }
        Ok(())
    }

    /// Returns the form of the call. If there are large counts, the call had the large form.
    fn form(&self) -> Form {
        if self.counts.is_empty() { Form::Int } else { Form::Large }
    }

    /// Returns the first entry of `values`, which holds the integers or the large counts of the call.
    /// This entry is the number of blocks, so it determines the lengths of the four arrays.
    fn count(&self, argument: &'static str, values: &[i64]) -> Result<u64> {
        match values {
            [] => wrong(
                ErrorKind::Count,
                argument,
                format!("0 entries, but {} needs at least 1", self.combiner),
            ),
            // `expect` later refuses every count that exceeds the lengths of the arrays. The limit
            // here only keeps the products before that check from overflowing.
            [count, ..] => match u64::try_from(*count) {
                Ok(count) if count <= 1 << 60 => Ok(count),
                _ => wrong(
                    ErrorKind::Count,
                    argument,
                    format!("entry 0 is {count}, but a count must be between 0 and 2^60"),
                ),
            },
        }
    }

    /// Returns the number of dimensions, which is stored in the integer at index `at`.
    fn dimensions(&self, at: usize) -> Result<u64> {
        match self.integers.get(at) {
            Some(&dimensions) if dimensions >= 1 => Ok(dimensions as u64),
            Some(dimensions) => wrong(
                ErrorKind::Argument,
                "integers",
                format!(
                    "entry {at} is {dimensions}, but the number of dimensions must be at least 1"
                ),
            ),
            None => {
                let entries = counted(self.integers.len(), "entry", "entries");
                let detail = format!(
                    "{entries}, but {} needs at least {}, because entry {at} is the number of \
                     dimensions",
                    self.combiner,
                    at + 1
                );
                wrong(ErrorKind::Count, "integers", detail)
            }
        }
    }

    fn order(&self, at: usize) -> Result<Order> {
        Order::from_abi_value(self.integers[at]).ok_or_else(|| {
            Error::new(
                ErrorKind::Argument,
                "integers",
                format!(
                    "entry {at} is {}, which is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN",
                    self.integers[at]
                ),
            )
        })
    }

    /// Returns the number of blocks of a call, and all its arguments, the first of which is the number
    /// of blocks. In the `int` form, the integers are the number of blocks, then `more` further counts,
    /// then `per` counts for each block; and there are `bytes` addresses for each block. `types` is the
    /// number of datatypes, or `None` if there is one datatype for each block.
    fn list(
        &self,
        more: u64,
        per: u64,
        bytes: u64,
        types: Option<u64>,
    ) -> Result<(u64, Arguments)> {
        match self.form() {
            Form::Large => {
                let count = self.count("large_counts", self.counts)?;
                let all = 1 + more + (per + bytes) * count;
                self.expect(0, 0, all, types.unwrap_or(count))?;
                Ok((count, self.counts.into()))
            }
            Form::Int | Form::Fortran => {
                let mut all = widened(self.integers);
                let count = self.count("integers", &all)?;
                let (integers, addresses) = (1 + more + per * count, bytes * count);
                self.expect(integers, addresses, 0, types.unwrap_or(count))?;
                all.extend_from_slice(self.addresses);
                Ok((count, all))
            }
        }
    }

    /// Returns the arguments of a call that has a fixed number of counts and addresses, and one
    /// datatype.
    fn fixed(&self, counts: u64, addresses: u64) -> Result<Arguments> {
        match self.form() {
            Form::Large => {
                self.expect(0, 0, counts + addresses, 1)?;
                Ok(self.counts.into())
            }
            Form::Int | Form::Fortran => {
                self.expect(counts, addresses, 0, 1)?;
                let mut all = widened(self.integers);
                all.extend_from_slice(self.addresses);
                Ok(all)
            }
        }
    }

    /// Returns the binding of a combiner that ends in `_INTEGER`, which is always
    /// [`Binding::Fortran`]. Such a combiner has no large form, so this function returns an error if
    /// there are large counts.
    fn binding(&self) -> Result<Binding> {
        match self.form() {
            Form::Large => wrong(
                ErrorKind::Count,
                "large_counts",
                format!(
                    "{}, but {} needs 0",
                    counted(self.counts.len(), "entry", "entries"),
                    self.combiner
                ),
            ),
            Form::Int | Form::Fortran => Ok(Binding::Fortran),
        }
    }

    fn kind(&self, at: usize) -> Option<i32> {
        Some(self.integers[at]).filter(|&value| value != UNDEFINED)
    }
}

impl Datatype {
    /// Creates the type that the constructor call `combiner` makes from these arguments. The
    /// arguments are in the positions of MPI-5.0 section 5.1.13, as [`Datatype::envelope`] and
    /// [`Datatype::contents`] return them. If there are large counts, the call had the large form,
    /// and the type records that.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type` for [`Combiner::NAMED`], because no call makes a named type, and for a
    /// value-index pair that does not exist. Returns `ErrorKind::Count` if an array does not have the
    /// length that the call needs, or if a number of blocks is negative or above 2^60. Returns
    /// `ErrorKind::Argument` for an unknown combiner and for a value that is not valid at its position.
    /// Also returns the errors of the constructor call itself.
    pub fn from_contents(
        combiner: Combiner,
        integers: &[i32],
        addresses: &[i64],
        large_counts: &[i64],
        datatypes: &[Datatype],
    ) -> Result<Self> {
        let counts = large_counts;
        let read = Reader { combiner, integers, addresses, counts, types: datatypes };
        let types = datatypes;
        let ty = match combiner {
            Combiner::NAMED => {
                return wrong(
                    ErrorKind::Type,
                    "combiner",
                    format!("{combiner}: no call makes a named type, so it has no contents"),
                );
            }
            Combiner::DUP => {
                read.expect(0, 0, 0, 1)?;
                return Ok(types[0].dup());
            }
            Combiner::CONTIGUOUS => Self::contiguous(read.fixed(1, 0)?[0], &types[0])?,
            Combiner::VECTOR => {
                let all = read.fixed(3, 0)?;
                Self::vector(all[0], all[1], all[2], &types[0])?
            }
            Combiner::HVECTOR => {
                let all = read.fixed(2, 1)?;
                Self::hvector(all[0], all[1], all[2], &types[0])?
            }
            Combiner::HVECTOR_INTEGER => {
                let (binding, all) = (read.binding()?, read.fixed(2, 1)?);
                return Self::type_hvector(all[0], all[1], all[2], &types[0], binding);
            }
            Combiner::INDEXED => {
                let (count, all) = read.list(0, 2, 0, Some(1))?;
                let (lengths, places) = all[1..].split_at(count as usize);
                Self::indexed(lengths, places, &types[0])?
            }
            Combiner::HINDEXED => {
                let (count, all) = read.list(0, 1, 1, Some(1))?;
                let (lengths, places) = all[1..].split_at(count as usize);
                Self::hindexed(lengths, places, &types[0])?
            }
            Combiner::HINDEXED_INTEGER => {
                let binding = read.binding()?;
                let (count, all) = read.list(0, 1, 1, Some(1))?;
                let (lengths, places) = all[1..].split_at(count as usize);
                return Self::type_hindexed(lengths, places, &types[0], binding);
            }
            Combiner::INDEXED_BLOCK => {
                let (_, all) = read.list(1, 1, 0, Some(1))?;
                Self::indexed_block(all[1], &all[2..], &types[0])?
            }
            Combiner::HINDEXED_BLOCK => {
                let (_, all) = read.list(1, 0, 1, Some(1))?;
                Self::hindexed_block(all[1], &all[2..], &types[0])?
            }
            Combiner::STRUCT => {
                let (count, all) = read.list(0, 1, 1, None)?;
                let (lengths, places) = all[1..].split_at(count as usize);
                match types.iter().any(|ty| ty.as_marker().is_some()) {
                    true => Self::type_struct(lengths, places, types, Binding::C)?,
                    false => Self::structured(lengths, places, types)?,
                }
            }
            Combiner::STRUCT_INTEGER => {
                let binding = read.binding()?;
                let (count, all) = read.list(0, 1, 1, None)?;
                let (lengths, places) = all[1..].split_at(count as usize);
                return Self::type_struct(lengths, places, types, binding);
            }
            Combiner::SUBARRAY => read.subarray()?,
            Combiner::DARRAY => read.darray()?,
            Combiner::F90_REAL => {
                read.expect(2, 0, 0, 0)?;
                return Self::f90_real(read.kind(0), read.kind(1));
            }
            Combiner::F90_COMPLEX => {
                read.expect(2, 0, 0, 0)?;
                return Self::f90_complex(read.kind(0), read.kind(1));
            }
            Combiner::F90_INTEGER => {
                read.expect(1, 0, 0, 0)?;
                return Self::f90_integer(integers[0]);
            }
            Combiner::RESIZED => {
                let all = read.fixed(0, 2)?;
                Self::resized(all[0], all[1], &types[0])?
            }
            Combiner::VALUE_INDEX => {
                read.expect(0, 0, 0, 2)?;
                return Self::get_value_index(&types[0], &types[1])?.ok_or_else(|| {
                    Error::new(
                        ErrorKind::Type,
                        "datatypes",
                        format!("MPI has no pair type of {:?} and {:?}", types[0], types[1]),
                    )
                });
            }
            Combiner(_) => {
                return wrong(
                    ErrorKind::Argument,
                    "combiner",
                    format!("{} is not the value of any combiner", combiner.0),
                );
            }
        };
        ty.with_form(read.form())
    }
}

impl Reader<'_> {
    fn subarray(&self) -> Result<Datatype> {
        let dimensions = self.dimensions(0)?;
        let (all, order) = match self.form() {
            Form::Large => {
                self.expect(2, 0, 3 * dimensions, 1)?;
                (self.counts.into(), self.order(1)?)
            }
            Form::Int | Form::Fortran => {
                self.expect(3 * dimensions + 2, 0, 0, 1)?;
                let last = self.integers.len() - 1;
                (widened(&self.integers[1..last]), self.order(last)?)
            }
        };
        let (sizes, rest) = all.split_at(dimensions as usize);
        let (subsizes, starts) = rest.split_at(dimensions as usize);
        Datatype::subarray(sizes, subsizes, starts, order, &self.types[0])
    }

    fn darray(&self) -> Result<Datatype> {
        let dimensions = self.dimensions(2)?;
        let count = dimensions as usize;
        let (sizes, rest) = match self.form() {
            Form::Large => {
                self.expect(3 * dimensions + 4, 0, dimensions, 1)?;
                (self.counts.into(), &self.integers[3..])
            }
            Form::Int | Form::Fortran => {
                self.expect(4 * dimensions + 4, 0, 0, 1)?;
                (widened(&self.integers[3..3 + count]), &self.integers[3 + count..])
            }
        };
        let first = self.integers.len() - rest.len();
        let distributions: Vec<Distribution> = rest[..count]
            .iter()
            .enumerate()
            .map(|(i, &value)| {
                Distribution::from_abi_value(value).ok_or_else(|| {
                    Error::new(
                        ErrorKind::Argument,
                        "integers",
                        format!(
                            "entry {} is {value}, which is not one of MPI_DISTRIBUTE_BLOCK, \
                             _CYCLIC, _NONE",
                            first + i
                        ),
                    )
                })
            })
            .collect::<Result<_>>()?;
        Datatype::darray(
            self.integers[0],
            self.integers[1],
            &sizes,
            &distributions,
            &rest[count..2 * count],
            &rest[2 * count..3 * count],
            self.order(self.integers.len() - 1)?,
            &self.types[0],
        )
    }
}
