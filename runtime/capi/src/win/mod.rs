//! Windows and one-sided communication (MPI-5.0 chapter 12): handles, error handlers and names.
//!
//! `manage.rs` makes and frees windows, and has the calls about their memory and hints. `attribute.rs` has the calls
//! about their attributes, `epochs.rs` the calls that synchronise, and `access.rs` the calls that read and write the
//! memory of other ranks; `short.rs` is the short way of these calls.
//!
//! The runtime's window (`typepack::rma::Window`) checks epochs, ranks, displacements and types. This folder checks
//! handles, pointers and counts, and converts values.

pub mod access;
pub mod attribute;
pub mod epochs;
pub mod manage;
pub mod short;

use crate::abi;
use crate::argument::{Output, Text, TextOutput};
use crate::attribute::Attributes;
use crate::error::handler::{HandlerCell, On};
use crate::error::objects::{Handled, Names, Objects, handler_calls};
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::thread_cache::{Held, Home, ThreadCache};
use crate::raw;
use attribute::Values;
use std::ffi::c_int;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use typepack::rma::Window;

/// A window behind a handle.
#[derive(Debug)]
pub struct Win {
    window: Window,
    handler: Arc<HandlerCell>,
    name: Mutex<Vec<u8>>,
    attributes: Attributes,
    values: Values,
    /// Set when `MPI_Win_free` begins to free the window, and cleared if a delete callback fails.
    is_freed: AtomicBool,
}

impl Handled for Win {
    fn cell(&self) -> &HandlerCell {
        &self.handler
    }
}

/// The table of all windows.
pub static WINDOWS: Objects<Win> = Objects::new(
    Kind::Win,
    On::Win,
    Names {
        class: abi::ERR_WIN,
        argument: "win",
        kind: "window",
        null: (abi::WIN_NULL, "MPI_WIN_NULL"),
    },
);

handler_calls!(WINDOWS, raw::Win, "Win");

/// For each thread, the windows that it used most recently.
static CACHE: ThreadCache<Win> = ThreadCache::new();

thread_local! {
    static HOME: Home<Win> = const { Home::new() };
}

/// Returns the window of a handle from the cache of the calling thread. Calls that take only a few nanoseconds use this
/// function instead of `WINDOWS.find`.
///
/// # Errors
/// Returns `MPI_ERR_WIN` if the handle is not valid.
#[inline(always)]
fn hold(win: raw::Win) -> Result<Held<Win>> {
    WINDOWS.hold(&CACHE, &HOME, win.0)
}

/// Converts the rank of a target; `None` for `MPI_PROC_NULL`.
///
/// # Errors
/// Returns `MPI_ERR_RANK` if the rank is negative. The runtime checks for ranks that are too large.
fn target(rank: c_int, argument: &'static str) -> Result<Option<usize>> {
    if rank == abi::PROC_NULL {
        return Ok(None);
    }
    usize::try_from(rank).map(Some).map_err(|_| {
        Failure::new(abi::ERR_RANK, argument, format!("{rank} is not a rank of the window"))
    })
}

/// `MPI_Win_set_name`.
pub fn set_name(win: raw::Win, name: Text) -> Result {
    let win = WINDOWS.find(win.0)?;
    let name = name.cut(abi::MAX_OBJECT_NAME, "win_name")?;
    *win.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    Ok(())
}

/// `MPI_Win_get_name`.
pub fn get_name(
    win: raw::Win,
    name: TextOutput<{ abi::MAX_OBJECT_NAME }>,
    resultlen: Output<c_int>,
) -> Result {
    // The standard gives the null handle a name too (MPI-5.0 section 7.8).
    let bytes = match win {
        raw::Win::NULL => b"MPI_WIN_NULL".to_vec(),
        win => {
            let win = WINDOWS.find(win.0)?;
            win.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    };
    let length = resultlen.required("resultlen")?;
    length.set(name.required("win_name")?.write(&bytes));
    Ok(())
}

// The runtime's numbers must be those of the ABI: the error classes of `WindowErrorKind`, the flavors and the
// assertions.
const _: () = {
    use typepack::WindowErrorKind as E;
    use typepack::rma::{Assertions as A, Flavor as F};
    assert!(E::Assert as c_int == abi::ERR_ASSERT && E::Base as c_int == abi::ERR_BASE);
    assert!(E::Displacement as c_int == abi::ERR_DISP && E::Size as c_int == abi::ERR_SIZE);
    assert!(E::LockType as c_int == abi::ERR_LOCKTYPE && E::Window as c_int == abi::ERR_WIN);
    assert!(E::Attach as c_int == abi::ERR_RMA_ATTACH && E::Range as c_int == abi::ERR_RMA_RANGE);
    assert!(E::Shared as c_int == abi::ERR_RMA_SHARED && E::Flavor as c_int == abi::ERR_RMA_FLAVOR);
    assert!(E::Synchronization as c_int == abi::ERR_RMA_SYNC);
    assert!(F::Create as c_int == abi::WIN_FLAVOR_CREATE);
    assert!(F::Allocate as c_int == abi::WIN_FLAVOR_ALLOCATE);
    assert!(F::Dynamic as c_int == abi::WIN_FLAVOR_DYNAMIC);
    assert!(F::Shared as c_int == abi::WIN_FLAVOR_SHARED);
    assert!(A::NO_CHECK.bits() == abi::MODE_NOCHECK as u32);
    assert!(A::NO_PRECEDE.bits() == abi::MODE_NOPRECEDE as u32);
    assert!(A::NO_PUT.bits() == abi::MODE_NOPUT as u32);
    assert!(A::NO_STORE.bits() == abi::MODE_NOSTORE as u32);
    assert!(A::NO_SUCCEED.bits() == abi::MODE_NOSUCCEED as u32);
};
