//! Makes a copy of an engine datatype with another MPI: makes the constructor calls of the type's recipe
//! one after the other.
//!
//! `library.rs` finds the functions of the MPI, and `competitor.rs` packs with the datatype. `../recipe.rs`
//! makes the recipe, a list of constructor calls: it decodes the type as an MPI program does.

use super::library::{Dialect, Handle, Mpi, ok};
use crate::recipe::{Part, Recipe};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::OnceLock;
use typepack_engine::{Combiner, Contents};

/// The C type `MPI_Aint`.
type Aint = isize;

/// An old type: an argument of a constructor call.
#[derive(Clone, Copy)]
enum Old {
    /// A predefined handle.
    Named(Handle),
    /// The type that the call with this index in the recipe has made.
    Made(usize),
}

/// A recipe whose named types are handles of this MPI.
pub(super) struct Maker {
    mpi: &'static Mpi,
    recipe: Recipe,
    /// The old types of each call.
    old: Vec<Vec<Old>>,
    whole: Old,
}

impl Maker {
    /// Looks up the handles of all named types in the recipe.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the MPI lacks one of the named types.
    pub(super) fn new(mpi: &'static Mpi, recipe: Recipe) -> Result<Self, String> {
        let old = |part: &Part| match part {
            Part::Named(named) => mpi.named(*named).map(Old::Named),
            Part::Made(index) => Ok(Old::Made(*index)),
        };
        let parts = recipe.steps.iter().map(|step| step.parts.iter().map(old).collect());
        let all = parts.collect::<Result<Vec<Vec<Old>>, String>>()?;
        Ok(Self { mpi, whole: old(&recipe.whole)?, old: all, recipe })
    }

    /// Makes the type with the calls of the recipe and commits it. Frees the types that served only as
    /// old types.
    ///
    /// # Errors
    ///
    /// Returns a one-line message that names the call if a call fails or is not supported.
    pub(super) fn make(&self) -> Result<Handle, String> {
        let mpi = self.mpi;
        let mut made: Vec<Handle> = Vec::with_capacity(self.old.len());
        for (step, old) in self.recipe.steps.iter().zip(&self.old) {
            let old: Vec<Handle> = old.iter().map(|old| pick(*old, &made)).collect();
            let call = Call { mpi, contents: &step.contents, old: &old };
            made.push(call.make(step.combiner)?);
        }
        let mut whole = pick(self.whole, &made);
        for (step, handle) in self.recipe.steps.iter().zip(&made) {
            if *handle != whole && is_derived(step.combiner) {
                free(mpi, *handle)?;
            }
        }
        type Commit = unsafe extern "C" fn(*mut Handle) -> c_int;
        static COMMIT: OnceLock<Commit> = OnceLock::new();
        let commit = resolved(mpi, &COMMIT, "MPI_Type_commit")?;
        // SAFETY: `Commit` is the signature that the standard gives `MPI_Type_commit`. `whole` is a handle
        // of a datatype of this library, either predefined or made by the calls above. The pointer to
        // `whole` is valid until the call returns.
        ok("MPI_Type_commit", unsafe { commit(&raw mut whole) })?;
        Ok(whole)
    }

    /// Frees a type that [`Maker::make`] has returned, unless it is predefined.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if `MPI_Type_free` fails.
    pub(super) fn free(&self, handle: Handle) -> Result<(), String> {
        match self.recipe.steps.last() {
            Some(step) if is_derived(step.combiner) => free(self.mpi, handle),
            _ => Ok(()),
        }
    }
}

fn pick(old: Old, made: &[Handle]) -> Handle {
    match old {
        Old::Named(handle) => handle,
        Old::Made(index) => made[index],
    }
}

/// Returns true if a call of this constructor makes a derived type. False for Fortran 90 kinds and
/// value-index pairs: they are predefined types, which must not be freed.
fn is_derived(combiner: Combiner) -> bool {
    !matches!(
        combiner,
        Combiner::F90_REAL | Combiner::F90_COMPLEX | Combiner::F90_INTEGER | Combiner::VALUE_INDEX
    )
}

/// Returns the function `name`. The first call looks the function up and stores it in `cell`, which works
/// because a process has only one MPI.
fn resolved<F: Copy>(mpi: &Mpi, cell: &OnceLock<F>, name: &str) -> Result<F, String> {
    match cell.get() {
        Some(function) => Ok(*function),
        None => mpi.call::<F>(name).map(|function| *cell.get_or_init(|| function)),
    }
}

/// Frees a derived datatype.
fn free(mpi: &Mpi, mut handle: Handle) -> Result<(), String> {
    type Free = unsafe extern "C" fn(*mut Handle) -> c_int;
    static FREE: OnceLock<Free> = OnceLock::new();
    let free = resolved(mpi, &FREE, "MPI_Type_free")?;
    // SAFETY: `Free` is the signature that the standard gives `MPI_Type_free`. `handle` is a derived
    // datatype of this library, because the callers have checked `is_derived`. The callers free each
    // handle only once. The pointer to `handle` is valid until the call returns.
    ok("MPI_Type_free", unsafe { free(&raw mut handle) })
}

/// The arguments of one constructor call, in the order in which `MPI_Type_get_contents` returns them.
struct Call<'a> {
    mpi: &'a Mpi,
    contents: &'a Contents,
    old: &'a [Handle],
}

/// Calls the constructor `$name` with the arguments `$argument` (their types, `$type`, are those of the
/// standard) and with the address at which the constructor stores the new type. Returns the new type.
macro_rules! construct {
    ($call:expr, $name:literal, ($($type:ty),*), ($($argument:expr),*)) => {{
        type F = unsafe extern "C" fn($($type,)* *mut Handle) -> c_int;
        static FUNCTION: OnceLock<F> = OnceLock::new();
        let function = resolved($call.mpi, &FUNCTION, $name)?;
        let mut new: Handle = null_mut();
        // SAFETY: `F` is the signature that the standard gives the function `$name`. Each list has as many
        // entries as its count says, because the engine has decoded both from the same type. The old types
        // are datatypes of this library. `new` is writable.
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
            other => Err(format!("the peer cannot make a type of combiner {other}")),
        }
    }

    /// Returns a pointer to the entry `first` of the integer arguments.
    fn ints(&self, first: usize) -> *const c_int {
        self.contents.integers[first..].as_ptr()
    }

    fn int(&self, index: usize) -> c_int {
        self.contents.integers[index]
    }

    /// Returns a pointer to the address arguments. `MPI_Aint` has 64 bits, as the entries have, on every
    /// platform with these ABIs.
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

    /// Returns the value of an array order in the ABI of this MPI. `standard` is its value in the standard
    /// ABI. In Open MPI, the value is 0 for C order and 1 for Fortran order.
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
