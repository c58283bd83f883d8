//! The calls that begin and end epochs, and those that complete operations (MPI-5.0 section 12.5).

use super::{hold, target};
use crate::abi;
use crate::argument::Output;
use crate::error::{Failure, Result};
use crate::group;
use crate::raw;
use std::ffi::c_int;
use typepack::rma::{Assertions, LockKind, Window};

/// Converts the assertions of a call. The runtime refuses bits that the call does not take.
fn assertions(assert: c_int) -> Assertions {
    Assertions::from_bits(assert as u32)
}

/// Calls `call` with the window of a handle.
fn with(win: raw::Win, call: impl FnOnce(&Window) -> typepack::Result<()>) -> Result {
    Ok(call(&hold(win)?.window)?)
}

/// Calls `call` with the rank of a target; does nothing for `MPI_PROC_NULL`.
#[inline(never)]
fn with_target(
    win: raw::Win,
    rank: c_int,
    call: impl FnOnce(&Window, usize) -> typepack::Result<()>,
) -> Result {
    let win = hold(win)?;
    match target(rank, "rank")? {
        Some(rank) => Ok(call(&win.window, rank)?),
        None => Ok(()),
    }
}

/// `MPI_Win_fence`.
pub fn fence(assert: c_int, win: raw::Win) -> Result {
    with(win, |window| window.fence(assertions(assert)))
}

/// `MPI_Win_post`.
pub fn post(group: raw::Group, assert: c_int, win: raw::Win) -> Result {
    let win = hold(win)?;
    Ok(win.window.post(&*group::find(group)?, assertions(assert))?)
}

/// `MPI_Win_start`.
pub fn start(group: raw::Group, assert: c_int, win: raw::Win) -> Result {
    let win = hold(win)?;
    Ok(win.window.start(&*group::find(group)?, assertions(assert))?)
}

/// `MPI_Win_complete`.
pub fn complete(win: raw::Win) -> Result {
    with(win, Window::complete)
}

/// `MPI_Win_wait`.
pub fn wait(win: raw::Win) -> Result {
    with(win, Window::wait)
}

/// `MPI_Win_test`.
pub fn test(win: raw::Win, flag: Output<c_int>) -> Result {
    let win = hold(win)?;
    let out = flag.required("flag")?;
    out.set(win.window.test()?.into());
    Ok(())
}

/// `MPI_Win_lock`.
pub fn lock(lock_type: c_int, rank: c_int, assert: c_int, win: raw::Win) -> Result {
    let kind = match lock_type {
        abi::LOCK_SHARED => Ok(LockKind::Shared),
        abi::LOCK_EXCLUSIVE => Ok(LockKind::Exclusive),
        other => {
            let detail = format!("{other} is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE");
            Err(Failure::new(abi::ERR_LOCKTYPE, "lock_type", detail))
        }
    };
    let win = hold(win)?;
    let kind = kind?;
    match target(rank, "rank")? {
        Some(rank) => Ok(win.window.lock_raw(kind, rank, assertions(assert))?),
        None => Ok(()),
    }
}

/// `MPI_Win_unlock`.
pub fn unlock(rank: c_int, win: raw::Win) -> Result {
    with_target(win, rank, Window::unlock_raw)
}

/// `MPI_Win_lock_all`.
pub fn lock_all(assert: c_int, win: raw::Win) -> Result {
    with(win, |window| window.lock_all_raw(assertions(assert)))
}

/// `MPI_Win_unlock_all`.
pub fn unlock_all(win: raw::Win) -> Result {
    with(win, Window::unlock_all_raw)
}

/// `MPI_Win_flush`.
pub fn flush(rank: c_int, win: raw::Win) -> Result {
    with_target(win, rank, Window::flush)
}

/// `MPI_Win_flush_local`.
pub fn flush_local(rank: c_int, win: raw::Win) -> Result {
    with_target(win, rank, Window::flush_local)
}

/// `MPI_Win_flush_all`.
pub fn flush_all(win: raw::Win) -> Result {
    with(win, Window::flush_all)
}

/// `MPI_Win_flush_local_all`.
pub fn flush_local_all(win: raw::Win) -> Result {
    with(win, Window::flush_local_all)
}

/// `MPI_Win_sync`.
pub fn sync(win: raw::Win) -> Result {
    with(win, Window::sync)
}
