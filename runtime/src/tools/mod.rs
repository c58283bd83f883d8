//! The tool interface (MPI-5.0 chapter 15): what a debugger or a profiler can ask the library, and what it can change.
//!
//! The C library gives these functions their C form and has no logic of its own about them. In the order of the layers:
//! `counting.rs` counts what is only counted on request; `control.rs` has the settings, `performance.rs` all counters,
//! from which `TYPEPACK_REPORT` prints, too; `session.rs` has the handles with which tools read counters; `raised.rs`
//! keeps events until `event.rs` calls the functions of tools; and `category.rs` sorts everything by subject.
//!
//! Everything here works before the process joins the job, and after it has left the job. Any thread may call any
//! function at any time. A tool calls [`begin`] first, and [`end`] last; each may be called several times.

mod category;
mod control;
pub(crate) mod counting;
mod event;
mod performance;
pub(crate) mod raised;
mod session;

pub use category::{Category, categories};
pub use control::{Control, Form, TEXT_MAX, Value, allocate, controls, form_of, free, read, write};
pub use event::{
    Element, Event, Freed, Happened, Instance, Lost, check_event, close_event, deliver, event_time,
    events, has_function, instance, open_event, register, set_lost,
};
pub use performance::{Amount, Class, Performance, counters};
pub(crate) use performance::{counted_calls, moved_bytes, sent_messages};
pub use session::{Handle, Session};

use crate::endpoint::progress::Endpoint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Why a call of the tool interface has failed. Each kind is one error code (`MPI_T_ERR_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The tool interface is not initialised.
    NotInitialized,
    /// An argument has a wrong value.
    Invalid,
    /// There is nothing with this index.
    Index,
    /// There is no such session.
    Session,
    /// There is no such handle, or not in this session, or its object has been freed.
    Handle,
    /// Nothing has this name.
    Name,
    /// The setting cannot be changed at this moment.
    NotNow,
    /// The setting can never be changed by the process.
    Never,
    /// The counter cannot be written or reset.
    NoWrite,
    /// The counter cannot be started or stopped.
    NoStartStop,
    /// The counter cannot be read and reset at once.
    NoAtomic,
    /// The value cannot be had: the process is a forked child of a rank, or the setting has an invalid value.
    NotAccessible,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotInitialized => "the tool interface is not initialised",
            Self::Invalid => "an argument has a wrong value",
            Self::Index => "there is nothing with this index",
            Self::Session => "there is no such session",
            Self::Handle => "there is no such handle",
            Self::Name => "nothing has this name",
            Self::NotNow => "the setting cannot be changed now",
            Self::Never => "the process cannot change the setting",
            Self::NoWrite => "the counter cannot be written or reset",
            Self::NoStartStop => "the counter cannot be started or stopped",
            Self::NoAtomic => "the counter cannot be read and reset at once",
            Self::NotAccessible => "the value cannot be had in this process",
        })
    }
}

impl std::error::Error for Fault {}

/// The result of a call of the tool interface.
pub type Result<T = ()> = std::result::Result<T, Fault>;

/// The number of calls of [`begin`] without a call of [`end`]. It changes only under [`ENDS`].
static USES: AtomicU64 = AtomicU64::new(0);

/// Held while a use begins or ends, so that the last use ends its handles before the next use makes any.
static ENDS: Mutex<()> = Mutex::new(());

/// Begins a use of the tool interface.
#[doc(alias = "MPI_T_init_thread")]
pub fn begin() {
    let _turn = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
    USES.fetch_add(1, Ordering::AcqRel);
}

/// Ends a use of the tool interface. With the last use, all handles end.
///
/// # Errors
/// Returns [`Fault::NotInitialized`] if there is no use.
#[doc(alias = "MPI_T_finalize")]
pub fn end() -> Result {
    let _turn = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
    let left = USES.fetch_update(Ordering::AcqRel, Ordering::Acquire, |uses| uses.checked_sub(1));
    match left {
        Ok(1) => {
            session::end();
            control::end();
            event::end();
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(_) => Err(Fault::NotInitialized),
    }
}

/// Fails if the tool interface is not initialised.
///
/// # Errors
/// Returns [`Fault::NotInitialized`].
pub fn check() -> Result {
    if USES.load(Ordering::Acquire) > 0 { Ok(()) } else { Err(Fault::NotInitialized) }
}

/// The endpoint of this process, which is never freed: its counters can be read as long as the process lives.
static ENDPOINT: OnceLock<Arc<Endpoint>> = OnceLock::new();

/// Tells the tool interface that the process has joined the job. `counts` says whether everything is counted from now
/// on, for the report.
pub(crate) fn join(endpoint: &Arc<Endpoint>, counts: bool) {
    ENDPOINT.get_or_init(|| endpoint.clone());
    if counts {
        use Subject::{Collectives, Files, Partitions, Waits, Windows};
        use counting::Subject;
        [Collectives, Windows, Files, Waits, Partitions].into_iter().for_each(counting::want);
    }
}

/// Returns the endpoint, if the process has joined the job.
fn endpoint() -> Option<&'static Arc<Endpoint>> {
    ENDPOINT.get()
}

/// Returns a new number for a handle. Numbers are never used again. Those below 4096 are left to the constants of the
/// standard.
fn new_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(256);
    NEXT.fetch_add(1, Ordering::Relaxed) << 4
}
