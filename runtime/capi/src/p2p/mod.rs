//! Point-to-point messages (MPI-5.0 chapter 3). The modules here check the arguments of the C calls and call
//! the runtime.
//!
//! This file has the blocking sends and receives, and the calls that do both, such as `MPI_Sendrecv` (sections 3.2,
//! 3.4, 3.11), and the checks that all modules here share. It also converts the ranks of a communicator to ranks of the
//! world; `Comm::status` converts the ranks in statuses back. `nonblocking.rs` and `persistent.rs` have the other sends
//! and receives, `probe.rs` and `matched.rs` the probes, and `buffered.rs` the calls that attach and detach buffers.
//!
//! Invariant: no operation is started before every argument has been checked.

/// Defines one function for each of the four send modes. Each of these functions takes the arguments of `MPI_Send`,
/// followed by the argument in parentheses if there is one. It passes its mode and its arguments to the function
/// `$call`, which is named first in the macro call.
macro_rules! send_family {
    ($call:ident $more:tt; $($name:ident, $mode:expr, $c:literal;)*) => {
        $(send_family! { @one $call $more $name $mode, $c })*
    };
    (@one $call:ident ($($more:ident: $type:ty)?) $name:ident $mode:expr, $c:literal) => {
        #[doc = concat!("`", $c, "`.")]
        ///
        /// # Safety
        ///
        /// - `buf` is readable for `count` elements of `datatype`: for a blocking call until the call
        ///   returns, for a nonblocking call until the request is complete, and for a persistent request from
        ///   each start to the completion.
        pub unsafe fn $name<W: CountWidth>(
            buf: *const c_void,
            count: W::Count,
            datatype: raw::Datatype,
            dest: c_int,
            tag: c_int,
            comm: raw::Comm,
            $($more: $type,)?
        ) -> Result {
            // SAFETY: `$call` requires that `buf` is readable for `count` elements of `datatype`, for as long
            // as the condition of `# Safety` above says for a blocking, nonblocking or persistent call.
            unsafe { $call($mode, buf, count, datatype, dest, tag, comm $(, $more)?) }
        }
    };
}

pub mod buffered;
pub mod matched;
pub mod nonblocking;
pub mod persistent;
pub mod probe;

use crate::abi;
use crate::buffer::{count as checked, memory};
use crate::comm::{self, Comm, On, buffer, on};
use crate::count_width::{CountWidth, Number};
use crate::error::{Failure, Result};
use crate::raw;
use crate::request::Outcome;
use crate::status::StatusOutput;
use std::ffi::{c_int, c_void};
use typepack::engine::Elements;
use typepack::{Operation, Plan, SendMode, Source, Tag};
use typepack_capi_datatype::types;

#[cold]
fn no_rank(rank: c_int, comm: &Comm, argument: &'static str) -> Failure {
    let communicator = comm.communicator();
    let group = if communicator.is_inter() { "remote group" } else { "communicator" };
    let size = communicator.peers().size();
    let detail = format!("{rank} is not a rank of the {group}, whose size is {size}");
    Failure::new(abi::ERR_RANK, argument, detail)
}

/// Converts a rank of the communicator, or of its remote group, to the rank of the same process in the world.
fn world_rank(comm: &Comm, rank: c_int, argument: &'static str) -> Result<usize> {
    let peer = usize::try_from(rank).ok().and_then(|peer| comm.world_rank(peer));
    peer.ok_or_else(|| no_rank(rank, comm, argument))
}

/// Checks the destination and the tag of a send. Returns the rank of the destination in the world; `None` for
/// `MPI_PROC_NULL`.
///
/// # Errors
/// Returns `MPI_ERR_RANK` if `dest` is neither a rank of the communicator, or of the remote group of an
/// intercommunicator, nor `MPI_PROC_NULL`. Returns `MPI_ERR_TAG` if the tag is negative.
#[inline]
pub fn destination(comm: &Comm, dest: c_int, tag: c_int) -> Result<Option<usize>> {
    let dest = match dest {
        abi::PROC_NULL => None,
        rank => Some(world_rank(comm, rank, "dest")?),
    };
    // `MPI_TAG_UB` is the largest C integer, so no tag is too large.
    if tag < 0 {
        return Err(Failure::new(abi::ERR_TAG, "tag", format!("{tag} is negative")));
    }
    Ok(dest)
}

/// Checks the source and the tag of a receive. Returns the sources and tags that the receive accepts; `None`
/// if the source is `MPI_PROC_NULL`.
///
/// # Errors
/// Returns `MPI_ERR_RANK` if `source` is neither a rank of the communicator, or of the remote group of an
/// intercommunicator, nor `MPI_ANY_SOURCE` nor `MPI_PROC_NULL`. Returns `MPI_ERR_TAG` if the tag is negative
/// and not `MPI_ANY_TAG`.
#[inline]
pub fn origin(comm: &Comm, source: c_int, tag: c_int) -> Result<Option<(Source, Tag)>> {
    let source = match source {
        abi::PROC_NULL => None,
        abi::ANY_SOURCE => Some(Source::Any),
        rank => Some(Source::Rank(world_rank(comm, rank, "source")?)),
    };
    let tag = match tag {
        abi::ANY_TAG => Tag::Any,
        tag if tag >= 0 => Tag::Is(tag),
        tag => {
            let detail = format!("{tag} is neither MPI_ANY_TAG nor at least 0");
            return Err(Failure::new(abi::ERR_TAG, "tag", detail));
        }
    };
    Ok(source.map(|source| (source, tag)))
}

/// Starts a send in the mode `mode`. The caller has checked the arguments. `dest` is a rank of the world.
///
/// # Errors
/// Returns the runtime's errors. In buffered mode, also returns `MPI_ERR_BUFFER` if no buffer is attached or the
/// buffer has no room.
///
/// # Safety
///
/// - The elements are readable: in buffered mode until this function returns, in the other modes until the
///   operation has ended.
/// - `dest` is a rank of the world, and `tag` is not negative.
#[inline]
unsafe fn start_send(
    on: &On,
    mode: SendMode,
    elements: Elements<&Plan>,
    dest: usize,
    tag: c_int,
) -> Result<Operation> {
    if let SendMode::Buffered(_) = mode {
        // SAFETY: the mode is buffered, so the elements are readable until this function returns (first condition
        // of `# Safety`). The second condition is the same for `buffer::send`.
        return unsafe { buffer::send(on, elements, dest, tag) };
    }
    // SAFETY: the mode is not buffered, so the elements are readable until the operation has ended, and `dest` and
    // `tag` are valid (both conditions of `# Safety`). The mode lends no memory to the runtime.
    Ok(unsafe { on.comm.messages().send(mode, elements, dest, tag)? })
}

/// Sends a message. Returns when the program may change the buffer and, in synchronous mode, a receive has
/// matched the message.
///
/// # Safety
///
/// - `buf` is readable for `count` elements of `datatype` until the call returns.
#[inline]
unsafe fn blocking(
    mode: SendMode,
    buf: *const c_void,
    count: impl Number,
    datatype: raw::Datatype,
    dest: c_int,
    tag: c_int,
    comm: raw::Comm,
) -> Result {
    if let SendMode::Buffered(_) = mode {
        let on = on(comm)?;
        let count = checked(count, "count")?;
        let ty = types::hold(datatype)?;
        let elements = Elements::new(buf, ty.plan()?, count);
        let Some(dest) = destination(&on.comm, dest, tag)? else { return Ok(()) };
        memory(&elements, "buf")?;
        // The send may continue after this call has returned, because the attached buffer holds a copy of the message.
        // SAFETY: the elements at `buf` are readable (condition of `# Safety`), and `start_send` copies them before it
        // returns. `destination` has checked the rank and the tag.
        return unsafe { start_send(&on, mode, elements, dest, tag).map(drop) };
    }
    comm::with(comm, |comm| {
        let count = checked(count, "count")?;
        let ty = types::hold(datatype)?;
        let elements = Elements::new(buf, ty.plan()?, count);
        let Some(dest) = destination(comm, dest, tag)? else { return Ok(()) };
        memory(&elements, "buf")?;
        let messages = comm.messages();
        // SAFETY: the elements at `buf` are readable until this function returns (condition of `# Safety`). This
        // function returns only after `finish` has returned, and the operation has ended by then. `destination` has
        // checked the rank and the tag. The mode lends no memory.
        let started = unsafe { messages.send(mode, elements, dest, tag)? };
        messages.finish(started)?;
        Ok(())
    })
}

send_family! {
    blocking ();
    send, SendMode::Standard, "MPI_Send";
    ssend, SendMode::Synchronous, "MPI_Ssend";
    bsend, SendMode::Buffered(None), "MPI_Bsend";
    rsend, SendMode::Ready, "MPI_Rsend";
}

/// `MPI_Recv`.
///
/// # Safety
///
/// - `buf` is writable for `count` elements of `datatype` until the call returns.
pub unsafe fn recv<W: CountWidth>(
    buf: *mut c_void,
    count: W::Count,
    datatype: raw::Datatype,
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    status: StatusOutput,
) -> Result {
    comm::with(comm, |comm| {
        let count = checked(count, "count")?;
        let ty = types::hold(datatype)?;
        let elements = Elements::new(buf, ty.plan()?, count);
        let Some((source, tag)) = origin(comm, source, tag)? else {
            status.put(&Outcome::from_nobody().status);
            return Ok(());
        };
        memory(&elements, "buf")?;
        // SAFETY: the elements at `buf` are writable until this function returns (condition of `# Safety`), and
        // `receive_now` returns only when the operation has ended. `origin` has checked the source and the tag.
        let received = unsafe { comm.messages().receive_now(elements, source, tag) };
        let received = received.inspect_err(|error| {
            if let Some(known) = comm.status_of_error(error) {
                status.put(&known);
            }
        })?;
        if !status.is_ignored() {
            status.put(&comm.status(received));
        }
        Ok(())
    })
}

/// Starts the receive of a call that sends and receives. Returns `None` for a receive from `MPI_PROC_NULL`.
///
/// # Errors
/// Returns the runtime's errors.
///
/// # Safety
///
/// - The elements `incoming` are writable until the operation has ended.
/// - `from` comes from [`origin`].
unsafe fn receive(
    on: &On,
    incoming: &Elements<Plan>,
    from: Option<(Source, Tag)>,
) -> typepack::Result<Option<Operation>> {
    let Some((source, tag)) = from else { return Ok(None) };
    // SAFETY: the elements are writable until the operation has ended, and the source and the tag have been checked
    // (both conditions of `# Safety`).
    unsafe { on.comm.messages().receive(incoming.view(), source, tag).map(Some) }
}

/// The arguments of one half of a call that sends and receives: buffer, count, datatype, rank and tag.
type Half<P, W> = (P, <W as CountWidth>::Count, raw::Datatype, c_int, c_int);

/// The two operations of a call that sends and receives. The first entry is the send, the second the receive.
/// `None` stands for a send to `MPI_PROC_NULL` or a receive from it.
type Halves = (typepack::Result<Option<Operation>>, typepack::Result<Option<Operation>>);

/// Checks the arguments of the send and the receive, and then starts the receive and the send.
///
/// # Errors
/// Returns an error if an argument is wrong. In this case neither operation has been started. An error of the
/// runtime is part of the returned value.
///
/// # Safety
///
/// - `sendbuf` is readable for `sendcount` elements of `sendtype` until both operations have ended.
/// - `recvbuf` is writable for `recvcount` elements of `recvtype` until both operations have ended, and these
///   elements do not overlap those at `sendbuf`.
unsafe fn start_both<W: CountWidth>(
    on: &On,
    (sendbuf, sendcount, sendtype, dest, sendtag): Half<*const c_void, W>,
    (recvbuf, recvcount, recvtype, source, recvtag): Half<*mut c_void, W>,
) -> Result<Halves> {
    let outgoing = types::elements(sendbuf, sendcount, sendtype)?;
    let incoming = types::elements(recvbuf, recvcount, recvtype)?;
    let dest = destination(&on.comm, dest, sendtag)?;
    let from = origin(&on.comm, source, recvtag)?;
    if dest.is_some() {
        memory(&outgoing, "sendbuf")?;
    }
    if from.is_some() {
        memory(&incoming, "recvbuf")?;
    }
    // SAFETY: until both operations have ended, the elements of `outgoing` are readable (first condition of
    // `# Safety`) and those of `incoming` are writable (second condition). `destination` and `origin` have checked
    // the ranks and the tags. A standard send lends no memory to the runtime.
    unsafe {
        let received = receive(on, &incoming, from);
        let send =
            |dest| on.comm.messages().send(SendMode::Standard, outgoing.view(), dest, sendtag);
        Ok((dest.map(send).transpose(), received))
    }
}

/// `MPI_Sendrecv`.
///
/// # Safety
///
/// - `sendbuf` is readable for `sendcount` elements of `sendtype` until the call returns.
/// - `recvbuf` is writable for `recvcount` elements of `recvtype` until the call returns, and these elements
///   do not overlap those at `sendbuf`.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn sendrecv<W: CountWidth>(
    sendbuf: *const c_void,
    sendcount: W::Count,
    sendtype: raw::Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: W::Count,
    recvtype: raw::Datatype,
    source: c_int,
    recvtag: c_int,
    comm: raw::Comm,
    status: StatusOutput,
) -> Result {
    comm::with(comm, |comm| {
        let (sends, receives) =
            (checked(sendcount, "sendcount")?, checked(recvcount, "recvcount")?);
        let sendtype = types::hold(sendtype)?;
        let outgoing = Elements::new(sendbuf, sendtype.plan()?, sends);
        let recvtype = types::hold(recvtype)?;
        let incoming = Elements::new(recvbuf, recvtype.plan()?, receives);
        let dest = destination(comm, dest, sendtag)?;
        let from = origin(comm, source, recvtag)?;
        if dest.is_some() {
            memory(&outgoing, "sendbuf")?;
        }
        if from.is_some() {
            memory(&incoming, "recvbuf")?;
        }
        let (send, receive) = ((outgoing, dest, sendtag), (incoming, from));
        // SAFETY: until this function returns, the elements at `sendbuf` are readable and those at `recvbuf` are
        // writable, and they do not overlap (both conditions of `# Safety`). `destination` and `origin` have checked
        // the ranks and the tags. The mode lends no memory.
        unsafe { exchange(comm, SendMode::Standard, send, receive, status) }
    })
}

/// Sends, receives and waits for both, and writes the status of the receive. `dest` and `from` are `None` for
/// `MPI_PROC_NULL`.
///
/// # Errors
/// Returns the error of the receive if the receive fails, and otherwise the error of the send if the send fails. The
/// status of a message that did not fit is written.
///
/// # Safety
///
/// - Until the call returns, the outgoing elements are readable, and the incoming elements are writable. If they
///   overlap, the mode is `Buffered`.
/// - The mode is `Standard` or `Buffered`. `dest` and the tag come from [`destination`], and `from` comes from
///   [`origin`].
unsafe fn exchange(
    comm: &comm::Comm,
    mode: SendMode,
    (outgoing, dest, tag): (Elements<&Plan>, Option<usize>, c_int),
    (incoming, from): (Elements<&Plan>, Option<(Source, Tag)>),
    status: StatusOutput,
) -> Result {
    let messages = comm.messages();
    // SAFETY: the elements stay valid until this function returns, and they overlap only if the mode is `Buffered`
    // (first condition of `# Safety`). `send_receive`, `receive_now` and `finish` return only when their operations
    // have ended. The ranks and tags have been checked, and the mode lends no memory (second condition).
    let received = unsafe {
        match (dest, from) {
            (Some(dest), Some(from)) => {
                messages.send_receive(mode, outgoing, (dest, tag), incoming, from).map(Some)
            }
            (None, Some((source, tag))) => messages.receive_now(incoming, source, tag).map(Some),
            (Some(dest), None) => {
                let sent = messages.send(mode, outgoing, dest, tag);
                sent.and_then(|sent| messages.finish(sent)).map(|_| None)
            }
            (None, None) => Ok(None),
        }
    };
    match received {
        Ok(Some(_)) if status.is_ignored() => {}
        Ok(Some(received)) => status.put(&comm.status(received)),
        Ok(None) => status.put(&Outcome::from_nobody().status),
        Err(error) => {
            if let Some(known) = comm.status_of_error(&error) {
                status.put(&known);
            }
            return Err(error.into());
        }
    }
    Ok(())
}

/// `MPI_Sendrecv_replace`. If the outgoing message cannot be sent at once, the runtime copies it before the
/// receive starts.
///
/// # Safety
///
/// - `buf` is readable and writable for `count` elements of `datatype` until the call returns.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn sendrecv_replace<W: CountWidth>(
    buf: *mut c_void,
    count: W::Count,
    datatype: raw::Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: raw::Comm,
    status: StatusOutput,
) -> Result {
    comm::with(comm, |comm| {
        let count = checked(count, "count")?;
        let ty = types::hold(datatype)?;
        let elements = Elements::new(buf, ty.plan()?, count);
        let dest = destination(comm, dest, sendtag)?;
        let from = origin(comm, source, recvtag)?;
        if dest.is_some() || from.is_some() {
            memory(&elements, "buf")?;
        }
        let (mode, send) = (SendMode::Buffered(None), (elements, dest, sendtag));
        // SAFETY: the elements at `buf` are readable and writable until this function returns (condition of
        // `# Safety`). They are the elements of both operations, and the mode is `Buffered`. `destination` and `origin`
        // have checked the ranks and the tags.
        unsafe { exchange(comm, mode, send, (elements, from), status) }
    })
}

/// Starts the send of a call that afterwards receives into the same memory. If `dest` is `None`, sends
/// nothing and returns `None`.
///
/// # Errors
/// Returns the runtime's errors.
///
/// # Safety
///
/// - The elements are readable until this function returns.
/// - `dest` is a rank of the world or `None`, and `tag` is not negative.
unsafe fn copied(
    on: &On,
    elements: &Elements<Plan>,
    dest: Option<usize>,
    tag: c_int,
) -> typepack::Result<Option<Operation>> {
    let messages = on.comm.messages();
    let send = |dest| {
        // SAFETY: the elements are readable, and `dest` and `tag` are valid (both conditions of `# Safety`). `send`
        // in buffered mode no longer reads the elements after it has returned.
        unsafe { messages.send(SendMode::Buffered(None), elements.view(), dest, tag) }
    };
    dest.map(send).transpose()
}
