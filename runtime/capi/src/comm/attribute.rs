//! Attributes of communicators (MPI-5.0 section 7.7.2), including the predefined attributes (sections 9.1.2
//! and 11.10.3).
//!
//! The MPI-1 names (`MPI_Keyval_create`, `MPI_Attr_put`, …) stand for the same functions. `create.rs` deletes
//! the attributes of a communicator before it frees the communicator, and copies them to a duplicate.
//! `MPI_Finalize` deletes the attributes of `MPI_COMM_SELF` (`world.rs`).

use super::find;
use crate::abi;
use crate::argument::{InOut, Output};
use crate::attribute::{self, Of};
use crate::error::{Failure, Result, codes};
use crate::raw;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use typepack::Universe;

// The variables below hold the values of the predefined attributes. Programs get the addresses of these
// variables, and must not write to them.
static TAG_UB: AtomicI32 = AtomicI32::new(typepack::TAG_UB);
/// The value of `MPI_HOST`: no process is the host.
static HOST: AtomicI32 = AtomicI32::new(abi::PROC_NULL);
/// The value of `MPI_IO`: every process can read and write files.
static IO: AtomicI32 = AtomicI32::new(abi::ANY_SOURCE);
/// The value of `MPI_WTIME_IS_GLOBAL`: all ranks read the same clock (`env/`).
static WTIME_IS_GLOBAL: AtomicI32 = AtomicI32::new(1);
/// The value of `MPI_UNIVERSE_SIZE`: the largest possible number of processes. The value is the size of the
/// job, unless the user has set another number.
static UNIVERSE_SIZE: AtomicI32 = AtomicI32::new(0);
/// The value of `MPI_APPNUM`: the index of the program that this process runs among the programs on the
/// command line of `mpiexec`; [`UNSET`] if `mpiexec` did not start this process.
static APPNUM: AtomicI32 = AtomicI32::new(UNSET);

const UNSET: i32 = -1;

/// Sets the values that are known only once the process has joined the job: `MPI_UNIVERSE_SIZE`, and
/// `MPI_APPNUM` if `mpiexec` started this process.
pub fn begin(universe: &Universe) {
    let room = universe.universe_size().map_or(universe.world().size(), |size| size as usize);
    UNIVERSE_SIZE.store(c_int::try_from(room).unwrap_or(c_int::MAX), Ordering::Relaxed);
    let number = universe.app_number().and_then(|number| c_int::try_from(number).ok());
    APPNUM.store(number.unwrap_or(UNSET), Ordering::Relaxed);
}

/// Returns the value of a predefined attribute. Returns `None` if the key is not predefined, and `Some(None)`
/// if the key is predefined but the attribute is not set.
fn predefined(keyval: c_int) -> Option<Option<*mut c_void>> {
    let value = match keyval {
        abi::TAG_UB => &TAG_UB,
        abi::HOST => &HOST,
        abi::IO => &IO,
        abi::WTIME_IS_GLOBAL => &WTIME_IS_GLOBAL,
        abi::UNIVERSE_SIZE => &UNIVERSE_SIZE,
        abi::APPNUM if APPNUM.load(Ordering::Relaxed) == UNSET => return Some(None),
        abi::APPNUM => &APPNUM,
        abi::LASTUSEDCODE => return Some(Some(codes::last_used().cast())),
        _ => return None,
    };
    Some(Some(value.as_ptr().cast()))
}

/// Checks that the program may change the attribute of a key. A program must not change a predefined
/// attribute.
fn changeable(keyval: c_int) -> Result {
    match predefined(keyval) {
        None => Ok(()),
        Some(_) => {
            let detail = format!("{keyval} is predefined and cannot be changed");
            Err(Failure::new(abi::ERR_KEYVAL, "keyval", detail))
        }
    }
}

/// `MPI_Comm_create_keyval`.
pub fn create_keyval(
    copy: raw::Callback,
    delete: raw::Callback,
    keyval: Output<c_int>,
    extra: *mut c_void,
) -> Result {
    attribute::create(Of::Comm, copy, delete, keyval, extra)
}

/// `MPI_Comm_free_keyval`.
pub fn free_keyval(keyval: InOut<c_int>) -> Result {
    attribute::free(Of::Comm, keyval)
}

/// `MPI_Comm_set_attr`.
pub fn set(comm: raw::Comm, keyval: c_int, value: *mut c_void) -> Result {
    let found = find(comm)?;
    changeable(keyval)?;
    found.attributes().set(Of::Comm, comm.0, keyval, value)
}

/// `MPI_Comm_get_attr`.
pub fn get(
    comm: raw::Comm,
    keyval: c_int,
    value: Output<*mut c_void>,
    flag: Output<c_int>,
) -> Result {
    let found = find(comm)?;
    let set = || match predefined(keyval) {
        Some(value) => Ok(value),
        None => found.attributes().get(Of::Comm, keyval),
    };
    attribute::answer(set, value, flag)
}

/// `MPI_Comm_delete_attr`.
pub fn delete(comm: raw::Comm, keyval: c_int) -> Result {
    let found = find(comm)?;
    changeable(keyval)?;
    found.attributes().delete(Of::Comm, comm.0, keyval)
}
