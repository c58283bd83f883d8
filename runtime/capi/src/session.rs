//! Sessions (MPI-5.0 section 11.3). A session gives access to process sets. The program makes groups of the sets, and
//! communicators of the groups (`comm/from_group.rs`).
//!
//! The process joins the job with its first session, if it has not joined by init, and leaves the job with the end
//! of its last session, if it is not between init and finalize (`comm/world.rs`). All sessions share one runtime.
//! Each session has its own error handler, its own thread level, and its own buffer for buffered sends.

use crate::abi;
use crate::argument::{InOut, Output, Text, TextBuffer};
use crate::comm::{buffer, world};
use crate::count_width::CountWidth;
use crate::datatype;
use crate::error::handler::{Handler, HandlerCell, On};
use crate::error::objects::{Handled, Names, Objects, handler_calls};
use crate::error::{Failure, Result, panics};
use crate::group;
use crate::handle::Kind;
use crate::info;
use crate::lifecycle;
use crate::p2p::buffered;
use crate::raw;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use typepack::ProcessSet;
use typepack::engine::attention;

/// A session.
#[derive(Debug)]
pub struct Session {
    handler: HandlerCell,
    /// The name of the thread level.
    threads: &'static str,
}

impl Handled for Session {
    fn cell(&self) -> &HandlerCell {
        &self.handler
    }
}

/// The table of all sessions.
pub static SESSIONS: Objects<Session> = Objects::new(
    Kind::Session,
    On::Session,
    Names {
        class: abi::ERR_SESSION,
        argument: "session",
        kind: "session",
        null: (abi::SESSION_NULL, "MPI_SESSION_NULL"),
    },
);

handler_calls!(SESSIONS, raw::Session, "Session");

/// The key of the hint for the thread level.
const LEVEL: &str = "thread_level";
/// The values of the hint for the thread level. The default is the last value, because the library always supports
/// this level.
const LEVELS: [&str; 4] =
    ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"];

/// The hint that lists the kinds of memory that a program may ask for, and its value.
const MEMORY: (&str, &str) = ("mpi_memory_alloc_kinds", "mpi,system");

/// `MPI_Session_init`. If the call fails, the error handler `errhandler` is called.
pub fn init(info: raw::Info, errhandler: raw::Errhandler, session: Output<raw::Session>) -> Result {
    let handler = Handler::find(errhandler, On::Session)?;
    begin(info, handler.clone(), session).map_err(|mut failure| {
        failure.on = Some((abi::SESSION_NULL, handler));
        failure
    })
}

fn begin(info: raw::Info, handler: Handler, session: Output<raw::Session>) -> Result {
    let out = session.required("session")?;
    let asked = match info {
        raw::Info::NULL => None,
        info => info::find(info)?.value(LEVEL.as_bytes()),
    };
    // An unknown value of a hint is ignored, as the standard prescribes.
    let known = |name: &&str| asked.as_deref() == Some(name.as_bytes());
    let threads = LEVELS.into_iter().find(known).unwrap_or(LEVELS[3]);
    panics::watch();
    datatype::begin();
    world::join()?;
    let made = Session { handler: HandlerCell::new(handler), threads };
    let handle = match SESSIONS.insert(Arc::new(made)) {
        Ok(handle) => handle,
        Err(failure) => {
            world::leave()?;
            return Err(failure);
        }
    };
    if threads == LEVELS[3] {
        attention::set(attention::THREADS);
    }
    lifecycle::open();
    out.set(raw::Session(handle));
    Ok(())
}

/// `MPI_Session_finalize`. Waits until all messages have left the session's buffer.
pub fn finalize(session: InOut<raw::Session>) -> Result {
    let (handle, out) = session.read("session")?;
    let found = SESSIONS.find(handle.0)?;
    // The C caller passed the address of the handle, so `entry.rs` does not know the session.
    end(handle).map_err(|mut failure| {
        failure.on = Some((handle.0, found.handler.get()));
        failure
    })?;
    out.set(raw::Session::NULL);
    Ok(())
}

fn end(session: raw::Session) -> Result {
    buffer::release(session.0)?;
    // If two threads end the same session at the same time, `remove` returns the session to only one of them.
    if SESSIONS.remove(session.0).is_some() {
        lifecycle::close();
        world::leave()?;
    }
    Ok(())
}

/// `MPI_Session_get_info`.
pub fn get_info(session: raw::Session, info_used: Output<raw::Info>) -> Result {
    let session = SESSIONS.find(session.0)?;
    let out = info_used.required("info_used")?;
    let entries = [(LEVEL, session.threads), MEMORY];
    out.set(info::make(entries.map(|(key, value)| (key.into(), value.into())).to_vec())?);
    Ok(())
}

fn sets() -> Result<Vec<ProcessSet>> {
    Ok(world::joined()?.process_sets())
}

/// Checks the handle of an info object, for a call that uses none of the hints.
fn check(info: raw::Info) -> Result {
    match info {
        raw::Info::NULL => Ok(()),
        info => info::find(info).map(drop),
    }
}

/// `MPI_Session_get_num_psets`.
pub fn num_psets(session: raw::Session, info: raw::Info, number: Output<c_int>) -> Result {
    SESSIONS.check(session.0)?;
    let out = number.required("npset_names")?;
    check(info)?;
    out.set(sets()?.len() as c_int);
    Ok(())
}

/// `MPI_Session_get_nth_pset`: returns the name, truncated to `*pset_len` bytes including the zero byte at its
/// end. Also returns in `*pset_len` the number of bytes that the whole name needs, including the zero byte.
pub fn nth_pset(
    session: raw::Session,
    info: raw::Info,
    n: c_int,
    pset_len: InOut<c_int>,
    pset_name: TextBuffer,
) -> Result {
    SESSIONS.check(session.0)?;
    let (room, length) = pset_len.read("pset_len")?;
    check(info)?;
    if room < 0 {
        return Err(Failure::new(abi::ERR_ARG, "pset_len", format!("{room} is negative")));
    }
    let sets = sets()?;
    let set = usize::try_from(n).ok().and_then(|n| sets.get(n)).ok_or_else(|| {
        let detail = format!(
            "{n} is out of range; it must be at least 0 and less than {}, the number of process sets",
            sets.len()
        );
        Failure::new(abi::ERR_ARG, "n", detail)
    })?;
    if room > 0 {
        // SAFETY: the caller of `MPI_Session_get_nth_pset` passes a buffer of `*pset_len` bytes. `room` equals
        // `*pset_len`, and is at least 1 here.
        unsafe { pset_name.required(room, "pset_name")? }.write(set.name.as_bytes());
    }
    length.set(set.name.len() as c_int + 1);
    Ok(())
}

fn set(name: Text) -> Result<ProcessSet> {
    let name = name.read(abi::MAX_PSET_NAME_LEN, "pset_name", abi::ERR_ARG)?;
    let found = sets()?.into_iter().find(|set| set.is_named(&name));
    found.ok_or_else(|| {
        let detail = format!("there is no process set \"{}\"", String::from_utf8_lossy(&name));
        Failure::new(abi::ERR_ARG, "pset_name", detail)
    })
}

/// `MPI_Session_get_pset_info`.
pub fn pset_info(session: raw::Session, pset_name: Text, info: Output<raw::Info>) -> Result {
    SESSIONS.check(session.0)?;
    let out = info.required("info")?;
    let size = set(pset_name)?.group.size().to_string();
    out.set(info::make(vec![("mpi_size".into(), size.into())])?);
    Ok(())
}

/// `MPI_Group_from_session_pset`.
pub fn group_of_pset(
    session: raw::Session,
    pset_name: Text,
    newgroup: Output<raw::Group>,
) -> Result {
    SESSIONS.check(session.0)?;
    let out = newgroup.required("newgroup")?;
    out.set(group::insert(set(pset_name)?.group, session.0)?);
    Ok(())
}

/// `MPI_Session_attach_buffer`.
///
/// # Safety
///
/// - `buffer` is `MPI_BUFFER_AUTOMATIC`; or, until the program detaches the buffer, `size` bytes at `buffer`
///   are writable and the program does not access them.
pub unsafe fn attach_buffer<W: CountWidth>(
    session: raw::Session,
    buffer: *mut c_void,
    size: W::Count,
) -> Result {
    SESSIONS.check(session.0)?;
    // SAFETY: unless `buffer` is `MPI_BUFFER_AUTOMATIC`, the `size` bytes there are writable and unused by the program
    // until it detaches the session's buffer (condition of `# Safety`), as `attach_to` requires.
    unsafe { buffered::attach_to::<W>(session.0, buffer, size) }
}

/// `MPI_Session_detach_buffer`. If no buffer is attached, the result is a null address and size 0.
pub fn detach_buffer<W: CountWidth>(
    session: raw::Session,
    address: Output<*mut c_void>,
    size: Output<W::Count>,
) -> Result {
    SESSIONS.check(session.0)?;
    buffered::detach_from::<W>(session.0, address, size)
}

/// `MPI_Session_flush_buffer`.
pub fn flush_buffer(session: raw::Session) -> Result {
    SESSIONS.check(session.0)?;
    buffered::flush_of(session.0)
}

/// `MPI_Session_iflush_buffer`.
pub fn iflush_buffer(session: raw::Session, request: Output<raw::Request>) -> Result {
    SESSIONS.check(session.0)?;
    buffered::iflush_of(session.0, None, request)
}
