//! The blocking calls: send, receive, both at once, probe; and the call that makes progress.
//!
//! Each call checks its arguments (`mod.rs`), and passes what it has checked to `endpoint/progress/`, which starts the
//! operation and waits for it.

use super::{Communicator, SendMode, Space, check_receive_tag, check_tag, readable, writable};
use crate::message::label::Label;
use crate::message::payload::Posting;
use crate::message::typecheck::OF_LAYOUT;
use crate::message::{Source, Status, Tag};
use crate::{Error, ErrorKind, Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use typepack_engine::Elements;

impl Communicator {
    /// Sends `count` elements of `plan`'s type from `buf` to rank `dest`.
    ///
    /// Returns as soon as the program may change `buf` again. At that time the receiver may not have received
    /// the message yet.
    ///
    /// # Errors
    /// - [`ErrorKind::Rank`] if `dest` is not a rank of the communicator.
    /// - [`ErrorKind::Tag`] if `tag` is negative.
    /// - [`ErrorKind::Engine`] if `buf` does not hold the elements, or if the packed size exceeds 2^63 - 1
    ///   bytes.
    /// - [`ErrorKind::NoMemory`] if memory runs out.
    /// - [`ErrorKind::ProcAborted`] if a rank has died.
    /// - [`ErrorKind::State`] if this process has left the job or is a forked child of a rank.
    /// - [`ErrorKind::Other`] if another rank broke the protocol.
    ///
    /// If the call returns one of the first three errors, it has sent nothing.
    #[doc(alias = "MPI_Send")]
    pub fn send_elements<T: NoUninit>(
        &self,
        buf: &[T],
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<()> {
        self.send_elements_at(buf, 0, plan, count, dest, tag)
    }

    /// Sends like [`send_elements`](Self::send_elements), but places the type's displacement 0 at byte `origin` of the
    /// buffer. A type with negative displacements needs an `origin` above 0.
    ///
    /// # Errors
    /// Returns the errors of [`send_elements`](Self::send_elements).
    #[doc(alias = "MPI_Send")]
    pub fn send_elements_at<T: NoUninit>(
        &self,
        buf: &[T],
        origin: usize,
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<()> {
        let layout = readable(buf, origin, plan, count, "buf")?;
        // SAFETY: `buf` holds the elements (`readable` has checked this) and is borrowed until `finish`
        // returns. When `finish` returns, the operation is complete or detached.
        let started = unsafe { self.start_send(&layout, dest, tag, Space::User)? };
        self.finish(started, "")?;
        Ok(())
    }

    /// Receives at most `count` elements of `plan`'s type into `buf`.
    ///
    /// # Errors
    /// - The errors of [`send_elements`](Self::send_elements), for `source` instead of `dest`.
    /// - [`ErrorKind::Truncated`] if the message is longer than the receive. The receive then consumes the
    ///   message, and writes no more bytes than fit in the elements.
    /// - [`ErrorKind::Type`] if types are checked (`TYPEPACK_CHECK_TYPES=1`) and the message's basic types
    ///   differ from the receive's. The receive then consumes the message and writes nothing.
    #[doc(alias = "MPI_Recv")]
    pub fn recv_elements<T: NoUninit + AnyBitPattern>(
        &self,
        buf: &mut [T],
        plan: &Plan,
        count: u64,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Status> {
        self.recv_elements_at(buf, 0, plan, count, source, tag)
    }

    /// Receives like [`recv_elements`](Self::recv_elements), but places the type's displacement 0 at byte `origin` of
    /// the buffer.
    ///
    /// # Errors
    /// Returns the errors of [`recv_elements`](Self::recv_elements).
    #[doc(alias = "MPI_Recv")]
    pub fn recv_elements_at<T: NoUninit + AnyBitPattern>(
        &self,
        buf: &mut [T],
        origin: usize,
        plan: &Plan,
        count: u64,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Status> {
        let layout = writable(buf, origin, plan, count, "buf")?;
        let (source, tag) = (source.into(), tag.into());
        let source = self.sender(source)?;
        check_receive_tag(tag)?;
        let posting = Posting::new(layout, self.context(Space::User), source, tag)?;
        // SAFETY: `buf` holds the elements (`writable` has checked this) and is mutably borrowed until
        // `receive_now` returns. When `receive_now` returns, the operation is complete or detached.
        // `Posting::new` takes the capacity from the plan.
        let status = unsafe { self.shared.endpoint.receive_now(&posting)? };
        self.local(status)
    }

    /// Sends one message and receives another at the same time. Neither operation waits for the other.
    ///
    /// # Errors
    /// Returns the errors of [`send_elements`](Self::send_elements) and [`recv_elements`](Self::recv_elements).
    #[doc(alias = "MPI_Sendrecv")]
    #[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
    pub fn sendrecv_elements<S: NoUninit, T: NoUninit + AnyBitPattern>(
        &self,
        send_buf: &[S],
        send_plan: &Plan,
        send_count: u64,
        dest: usize,
        send_tag: i32,
        recv_buf: &mut [T],
        recv_plan: &Plan,
        recv_count: u64,
        source: impl Into<Source>,
        recv_tag: impl Into<Tag>,
    ) -> Result<Status> {
        let outgoing = readable(send_buf, 0, send_plan, send_count, "send_buf")?;
        let incoming = writable(recv_buf, 0, recv_plan, recv_count, "recv_buf")?;
        // SAFETY: `send_buf` and `recv_buf` hold the elements (`readable` and `writable` have checked this). They are
        // borrowed until `send_receive` returns, one of them mutably, so they do not overlap.
        unsafe {
            self.send_receive(
                (&outgoing, dest, send_tag),
                (incoming, source.into(), recv_tag.into()),
            )
        }
    }

    /// Sends the elements of one layout and receives into another, and waits for both. Each is given with its rank and
    /// its tag.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the memory of the outgoing layout is readable and unchanged. The memory of the
    ///   incoming layout is writable and nobody else accesses it. The two do not overlap.
    #[inline]
    pub(crate) unsafe fn send_receive(
        &self,
        (outgoing, dest, send_tag): (&Elements<&Plan>, usize, i32),
        (incoming, source, recv_tag): (Elements<&Plan>, Source, Tag),
    ) -> Result<Status> {
        let source = self.sender(source)?;
        check_receive_tag(recv_tag)?;
        let posting = Posting::new(incoming, self.context(Space::User), source, recv_tag)?;
        let dest = self.process(dest, "dest", ErrorKind::Rank)?;
        check_tag(send_tag)?;
        let bytes = outgoing.plan.packed_bytes(outgoing.count)?;
        let context = self.context(Space::User);
        let label = Label { context, tag: send_tag, bytes, types: OF_LAYOUT };
        // SAFETY: the caller guarantees the memory of both layouts until this function returns (the condition of `#
        // Safety`). When `send_receive` returns, nobody uses their memory any more. `bytes` is the packed size of the
        // outgoing elements, and `Posting::new` takes the capacity from the plan.
        let status = unsafe {
            let outgoing = (outgoing, label, dest, SendMode::Standard);
            self.shared.endpoint.send_receive(outgoing, &posting)?
        };
        self.local(status)
    }

    /// Waits for a message, and receives it into the layout that `room` returns for its status.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the memory of the layout is writable and nobody else accesses it.
    pub(crate) unsafe fn receive_of_any_length<'a>(
        &self,
        source: Source,
        tag: Tag,
        room: impl FnOnce(Status) -> Elements<&'a Plan>,
    ) -> Result<Status> {
        let source = self.sender(source)?;
        check_receive_tag(tag)?;
        let endpoint = &self.shared.endpoint;
        let taken = endpoint.take(self.context(Space::User), source, tag, true)?;
        let taken = taken.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "source", "a waiting probe ended without a message")
        })?;
        let layout = room(taken.status());
        let capacity = layout.plan.packed_bytes(layout.count)?;
        // SAFETY: the caller guarantees the memory of the layout until this function returns (the condition of
        // `# Safety`), and then the receive is complete or detached. `capacity` is the packed size of the layout.
        let started = unsafe { endpoint.receive_taken(&layout, capacity, taken)? };
        self.finish(self.local_start(started)?, "")
    }

    /// Waits for a message that a receive with these arguments would match, and returns its status. The
    /// message stays in its queue.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Rank`] if `source` is not a rank of the communicator, [`ErrorKind::Tag`] if `tag`
    /// is negative, [`ErrorKind::ProcAborted`] if a rank has died, [`ErrorKind::State`] if this process has left the
    /// job or is a forked child of a rank, [`ErrorKind::Other`] if another rank broke the protocol, and
    /// [`ErrorKind::NoMemory`] if memory runs out.
    #[doc(alias = "MPI_Probe")]
    pub fn probe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Status> {
        let found = self.look(source.into(), tag.into(), true)?;
        found.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "probe", "a waiting probe ended without a message")
        })
    }

    /// Returns the status of the message that a receive with these arguments would match now, or `None` if no
    /// such message has arrived.
    ///
    /// # Errors
    /// Returns the errors of [`probe`](Self::probe).
    #[doc(alias = "MPI_Iprobe")]
    pub fn iprobe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Option<Status>> {
        self.look(source.into(), tag.into(), false)
    }

    fn look(&self, source: Source, tag: Tag, wait: bool) -> Result<Option<Status>> {
        let source = self.sender(source)?;
        check_receive_tag(tag)?;
        let found = self.shared.endpoint.probe(self.context(Space::User), source, tag, wait)?;
        found.map(|status| self.local(status)).transpose()
    }

    /// Moves some or all of the messages that can move now, and does not wait. A program should call this
    /// function now and then during long computations, because messages move only while a call runs.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died, [`ErrorKind::State`] if this process has left the job or
    /// is a forked child of a rank, [`ErrorKind::Other`] if another rank broke the protocol, and
    /// [`ErrorKind::NoMemory`] if memory runs out.
    pub fn progress(&self) -> Result<()> {
        self.shared.endpoint.progress()
    }
}
