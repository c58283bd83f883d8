//! The agreement of all ranks of the world at the end of init, with `TYPEPACK_INTERPOSE=all`.
//!
//! The ranks agree on a communicator that they make for that by `MPI_Comm_create_group`. This call has a tag of its
//! own, which matches no collective call on the world. So if a rank takes no part, because it has no library or another
//! value of the variable, the other ranks wait, and no call of the program gets their data. After ten seconds, one line
//! says why they wait. (An `MPI_Allreduce` on the world was once the agreement, and matched the first collective call
//! of such a rank.)

use crate::host::{Next, version};
use crate::say::print;
use crate::settings::settings;
use std::ffi::c_int;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use typepack_capi_datatype::{abi, raw};

/// The tag of the call that makes the communicator. Every host allows tags up to 32767.
const TAG: c_int = 0x7470;

/// What a rank that cannot take part has in place of a version: its number minus this one. All versions are larger.
const UNFIT: i64 = 1 << 40;

/// Compares the versions of all ranks. `unfit` says why this rank cannot take part. Returns whether this process may
/// reach ranks that are not interposed.
///
/// # Errors
/// If no rank takes part, one rank of the job gets the line that says why.
pub fn agree(next: &Next, unfit: Option<&str>) -> Result<bool, Option<String>> {
    let world = raw::Comm(abi::COMM_WORLD);
    let (mut size, mut rank, mut parent) = (0, 0, raw::Comm::NULL);
    // SAFETY: the results are writable.
    let codes = unsafe {
        [
            next.PMPI_Comm_size(world, &mut size),
            next.PMPI_Comm_rank(world, &mut rank),
            next.PMPI_Comm_get_parent(&mut parent),
        ]
    };
    let own = match unfit {
        None => version().iter().fold(1_i64, |number, part| number << 16 | part),
        Some(_) => i64::from(rank) - UNFIT,
    };
    // The largest one, and the smallest one negated.
    let mine = [own, -own];
    let all = match (codes, size) {
        ([abi::SUCCESS, abi::SUCCESS, abi::SUCCESS], 1) => Some(mine),
        ([abi::SUCCESS, abi::SUCCESS, abi::SUCCESS], _) => most(next, mine, rank),
        _ => None,
    };
    let Some([most, least]) = all.map(|[most, least]| [most, -least]) else {
        return Err(Some("the ranks could not compare their versions of typepack".into()));
    };
    if least < 0 {
        // One rank says why, that with the smallest number. Its number tells the user which one it is.
        let place = if rank == 0 { String::new() } else { format!("rank {rank}: ") };
        return Err(unfit.filter(|_| own == least).map(|reason| format!("{place}{reason}")));
    }
    if most != least {
        let line = "not all ranks have the same version of typepack-interpose";
        return Err((rank == 0).then(|| line.into()));
    }
    Ok(parent != raw::Comm::NULL)
}

/// Returns the largest numbers of all ranks of the world; `None` if the host fails.
fn most(next: &Next, mine: [i64; 2], rank: c_int) -> Option<[i64; 2]> {
    patiently(rank, || {
        let world = raw::Comm(abi::COMM_WORLD);
        let (mut group, mut own, mut most) = (raw::Group::NULL, raw::Comm::NULL, [0_i64; 2]);
        let ok = |code: c_int| (code == abi::SUCCESS).then_some(());
        // SAFETY: all results are writable, and both arrays have two numbers of this type. All ranks of the world make
        // these calls at the end of init: the user says so.
        unsafe {
            ok(next.PMPI_Comm_group(world, &mut group))?;
            let made = next.PMPI_Comm_create_group(world, group, TAG, &mut own);
            ok(next.PMPI_Group_free(&mut group))?;
            ok(made)?;
            let (from, to) = (mine.as_ptr().cast(), most.as_mut_ptr().cast());
            let (number, max) = (raw::Datatype(abi::INT64_T), raw::Op(abi::MAX));
            let code = next.PMPI_Allreduce(from, to, 2, number, max, own);
            ok(next.PMPI_Comm_free(&mut own))?;
            ok(code)?;
        }
        Some(most)
    })
}

/// Does work that waits for other ranks. If that takes long, ranks 0 and 1 say why: one of them may be the rank for
/// which the others wait.
fn patiently<R>(rank: c_int, work: impl FnOnce() -> R) -> R {
    let (patience, quiet) = (settings().watchdog, settings().quiet);
    let Some(patience) = patience.filter(|_| rank <= 1 && !quiet) else { return work() };
    let (sender, receiver) = channel::<()>();
    // The thread makes no MPI call. Without it, only the line is missing.
    let watch = Builder::new().name("typepack-wait".into()).spawn(move || {
        if receiver.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            print(&format!(
                "rank {rank} waits in MPI_Init for ranks without TYPEPACK_INTERPOSE=all: with this value, every rank \
                 of the job must have the library and the value"
            ));
        }
    });
    let result = work();
    // The thread ends when its channel has no sender.
    drop(sender);
    if let Ok(watch) = watch {
        // It can only have panicked while it printed, and nobody waits for the line any more.
        let _ended = watch.join();
    }
    result
}
