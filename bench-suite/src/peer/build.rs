//! A datatype of the engine made again by another MPI: the calls that its decoding names.
//!
//! Between `library.rs`, which resolves the functions, and `competitor.rs`. The walk is the one that
//! MPI programs do with `MPI_Type_get_envelope` and `MPI_Type_get_contents` (MPI-5.0 section
//! 5.1.13), on the heap: depth is the user's.

use super::library::{Dialect, Handle, Mpi, ok};
use std::ffi::c_int;
use std::ptr::null_mut;
use typepack_engine::{Combiner, Contents, Datatype, Form};

/// `MPI_Aint`
type Aint = isize;

enum Step {
    /// Make what is needed for this type, then the type.
    Visit(Datatype),
    /// What is needed is on the stack of handles.
    Make(Combiner, Contents),
}

/// A handle, and whether it is to be freed.
#[derive(Clone, Copy)]
struct Made {
    handle: Handle,
    derived: bool,
}

/// Makes `ty`, and commits it.
///
/// # Errors
///
/// One line: a call that failed, or a form that only large counts have.
pub(super) fn build(mpi: &Mpi, ty: &Datatype) -> Result<Handle, String> {
    let mut steps = vec![Step::Visit(ty.clone())];
    let mut made: Vec<Made> = Vec::new();
    while let Some(step) = steps.pop() {
        match step {
            Step::Visit(ty) => match ty.as_named() {
                Some(named) => made.push(Made { handle: mpi.named(named)?, derived: false }),
                None => {
                    let envelope = ty.envelope();
                    if envelope.form == Form::Large {
                        let combiner = envelope.combiner;
                        return Err(format!("{combiner} with large counts is not supported"));
                    }
                    let contents = ty.contents().map_err(|e| e.to_string())?;
                    let children = contents.datatypes.clone();
                    steps.push(Step::Make(envelope.combiner, contents));
                    steps.extend(children.into_iter().rev().map(Step::Visit));
                }
            },
            Step::Make(combiner, contents) => {
                let first = made.len() - contents.datatypes.len();
                let old: Vec<Handle> = made[first..].iter().map(|m| m.handle).collect();
                let call = Call { mpi, contents: &contents, old: &old };
                let handle = call.make(combiner)?;
                for used in made.drain(first..) {
                    if used.derived {
                        free(mpi, used.handle)?;
                    }
                }
                // Fortran 90 kinds and value-index pairs are predefined: not to be freed.
                let derived = !matches!(
                    combiner,
                    Combiner::F90_REAL
                        | Combiner::F90_COMPLEX
                        | Combiner::F90_INTEGER
                        | Combiner::VALUE_INDEX
                );
                made.push(Made { handle, derived });
            }
        }
    }
    let mut handle = made.pop().map_or(null_mut(), |m| m.handle);
    type Commit = unsafe extern "C" fn(*mut Handle) -> c_int;
    let commit = mpi.call::<Commit>("MPI_Type_commit")?;
    // SAFETY: a datatype of this library.
    ok("MPI_Type_commit", unsafe { commit(&raw mut handle) })?;
    Ok(handle)
}

/// Frees a derived datatype.
pub(super) fn free(mpi: &Mpi, mut handle: Handle) -> Result<(), String> {
    type Free = unsafe extern "C" fn(*mut Handle) -> c_int;
    let free = mpi.call::<Free>("MPI_Type_free")?;
    // SAFETY: a derived datatype of this library, freed once.
    ok("MPI_Type_free", unsafe { free(&raw mut handle) })
}

/// The arguments of one constructor call, in the places of `contents`.
struct Call<'a> {
    mpi: &'a Mpi,
    contents: &'a Contents,
    old: &'a [Handle],
}

/// Calls `$name` of the standard's signature with `$argument`s and the place for the new type.
macro_rules! construct {
    ($call:expr, $name:literal, ($($type:ty),*), ($($argument:expr),*)) => {{
        type F = unsafe extern "C" fn($($type,)* *mut Handle) -> c_int;
        let function = $call.mpi.call::<F>($name)?;
        let mut new: Handle = null_mut();
        // SAFETY: the signature is the standard's for this name; lists are as long as their count,
        // as the engine's decoding gives them; old types are datatypes of this library.
        ok($name, unsafe { function($($argument,)* &raw mut new) })?;
        Ok(new)
    }};
}

impl Call<'_> {
    fn make(&self, combiner: Combiner) -> Result<Handle, String> {
        match combiner {
            Combiner::DUP => self.dup(),
            Combiner::CONTIGUOUS => self.contiguous(),
            Combiner::VECTOR => self.vector(),
            Combiner::HVECTOR => self.hvector(),
            Combiner::INDEXED => self.indexed(),
            Combiner::HINDEXED => self.hindexed(),
            Combiner::INDEXED_BLOCK => self.indexed_block(),
            Combiner::HINDEXED_BLOCK => self.hindexed_block(),
            Combiner::STRUCT => self.structured(),
            Combiner::SUBARRAY => self.subarray(),
            Combiner::DARRAY => self.darray(),
            Combiner::RESIZED => self.resized(),
            Combiner::F90_REAL => self.f90_real(),
            Combiner::F90_COMPLEX => self.f90_complex(),
            Combiner::F90_INTEGER => self.f90_integer(),
            Combiner::VALUE_INDEX => self.value_index(),
            other => Err(format!("{other} is not supported")),
        }
    }

    /// The integers from `first` on.
    fn ints(&self, first: usize) -> *const c_int {
        self.contents.integers[first..].as_ptr()
    }

    fn int(&self, index: usize) -> c_int {
        self.contents.integers[index]
    }

    /// The addresses from `first` on; of 64 bits on every platform with these ABIs.
    fn addresses(&self) -> *const Aint {
        self.contents.addresses.as_ptr().cast()
    }

    fn dup(&self) -> Result<Handle, String> {
        construct!(self, "MPI_Type_dup", (Handle), (self.old[0]))
    }

    fn contiguous(&self) -> Result<Handle, String> {
        construct!(self, "MPI_Type_contiguous", (c_int, Handle), (self.int(0), self.old[0]))
    }

    fn vector(&self) -> Result<Handle, String> {
        construct!(
            self,
            "MPI_Type_vector",
            (c_int, c_int, c_int, Handle),
            (self.int(0), self.int(1), self.int(2), self.old[0])
        )
    }

    fn hvector(&self) -> Result<Handle, String> {
        construct!(
            self,
            "MPI_Type_create_hvector",
            (c_int, c_int, Aint, Handle),
            (self.int(0), self.int(1), self.contents.addresses[0] as Aint, self.old[0])
        )
    }

    fn indexed(&self) -> Result<Handle, String> {
        let count = self.int(0);
        construct!(
            self,
            "MPI_Type_indexed",
            (c_int, *const c_int, *const c_int, Handle),
            (count, self.ints(1), self.ints(1 + count as usize), self.old[0])
        )
    }

    fn hindexed(&self) -> Result<Handle, String> {
        construct!(
            self,
            "MPI_Type_create_hindexed",
            (c_int, *const c_int, *const Aint, Handle),
            (self.int(0), self.ints(1), self.addresses(), self.old[0])
        )
    }

    fn indexed_block(&self) -> Result<Handle, String> {
        construct!(
            self,
            "MPI_Type_create_indexed_block",
            (c_int, c_int, *const c_int, Handle),
            (self.int(0), self.int(1), self.ints(2), self.old[0])
        )
    }

    fn hindexed_block(&self) -> Result<Handle, String> {
        construct!(
            self,
            "MPI_Type_create_hindexed_block",
            (c_int, c_int, *const Aint, Handle),
            (self.int(0), self.int(1), self.addresses(), self.old[0])
        )
    }

    fn structured(&self) -> Result<Handle, String> {
        construct!(
            self,
            "MPI_Type_create_struct",
            (c_int, *const c_int, *const Aint, *const Handle),
            (self.int(0), self.ints(1), self.addresses(), self.old.as_ptr())
        )
    }

    /// The order's value differs: 12 and 15 in the standard ABI, 0 and 1 in Open MPI.
    fn order(&self, standard: c_int) -> c_int {
        match self.mpi.dialect {
            Dialect::Standard => standard,
            Dialect::OpenMpi => c_int::from(standard != typepack_engine::Order::C.abi_value()),
        }
    }

    fn subarray(&self) -> Result<Handle, String> {
        let dimensions = self.int(0);
        let n = dimensions as usize;
        construct!(
            self,
            "MPI_Type_create_subarray",
            (c_int, *const c_int, *const c_int, *const c_int, c_int, Handle),
            (
                dimensions,
                self.ints(1),
                self.ints(1 + n),
                self.ints(1 + 2 * n),
                self.order(self.int(1 + 3 * n)),
                self.old[0]
            )
        )
    }

    fn darray(&self) -> Result<Handle, String> {
        if self.mpi.dialect == Dialect::OpenMpi {
            return Err("darray is not supported with Open MPI's constants".to_owned());
        }
        let dimensions = self.int(2);
        let n = dimensions as usize;
        construct!(
            self,
            "MPI_Type_create_darray",
            (
                c_int,
                c_int,
                c_int,
                *const c_int,
                *const c_int,
                *const c_int,
                *const c_int,
                c_int,
                Handle
            ),
            (
                self.int(0),
                self.int(1),
                dimensions,
                self.ints(3),
                self.ints(3 + n),
                self.ints(3 + 2 * n),
                self.ints(3 + 3 * n),
                self.int(3 + 4 * n),
                self.old[0]
            )
        )
    }

    fn resized(&self) -> Result<Handle, String> {
        let [lb, extent] = [0, 1].map(|i| self.contents.addresses[i] as Aint);
        construct!(self, "MPI_Type_create_resized", (Handle, Aint, Aint), (self.old[0], lb, extent))
    }

    fn f90_real(&self) -> Result<Handle, String> {
        construct!(self, "MPI_Type_create_f90_real", (c_int, c_int), (self.int(0), self.int(1)))
    }

    fn f90_complex(&self) -> Result<Handle, String> {
        construct!(self, "MPI_Type_create_f90_complex", (c_int, c_int), (self.int(0), self.int(1)))
    }

    fn f90_integer(&self) -> Result<Handle, String> {
        construct!(self, "MPI_Type_create_f90_integer", (c_int), (self.int(0)))
    }

    fn value_index(&self) -> Result<Handle, String> {
        construct!(self, "MPI_Type_get_value_index", (Handle, Handle), (self.old[0], self.old[1]))
    }
}
