//! The calling rank of requests (`form.rs`): operations on memory that this rank cannot map.
//!
//! A call only starts its operation: it sends a request and returns. Puts and accumulates get no answer. The calling
//! rank counts its requests, the target counts those that are over, and a call that completes operations waits until
//! the target's count has reached that of the calling rank when the call began ([`Window::complete_at`]). A put or
//! accumulate with little data is one request, which has the data. The data of a longer put is a message of its own:
//! the request tells the target where the message goes, and the message takes the way of all long messages, without
//! copies that the layouts do not need. The data of a longer accumulate is in several requests, because an accumulate
//! must not overtake another one of the same rank.
//!
//! `fetches.rs` has the operations that bring data back, and `replies.rs` what this rank waits for.
//!
//! If the ring of the target has no room, a request waits in a copy, and the call still returns. The copies of one
//! target have at most `TYPEPACK_UNEXPECTED_MAX` bytes; a call that needs more waits.

use super::form::{DATA, HEAD, Kind, Request, WORD};
use super::replies::{Asked, Replies, Use, lock};
use super::types::LONGEST;
use crate::comm::Space;
use crate::commit::{bytes as bytes_plan, commit};
use crate::endpoint::progress::OnUnwind;
use crate::message::label::Label;
use crate::message::typecheck::UNKNOWN;
use crate::request::types::Number;
use crate::rma::Window;
use crate::rma::epoch::wait;
use crate::rma::window::words::said;
use crate::settings::{Settings, UNEXPECTED_MAX};
use crate::{Datatype, Error, ErrorKind, Named, Plan, Result};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use typepack_engine::{Cursor, Elements};

/// The greatest number of messages to and from a target that may be under way. The target refuses more of one rank
/// (`serve.rs`).
const MESSAGES: usize = 1 << 12;

/// The memory that a request takes while it waits for room, beside its bytes.
const QUEUED: u64 = 256;

/// The greatest number of runs of a part of elements whose type has too long an encoded form.
const RUNS: usize = 512;

/// The elements of an operation at a target whose memory this rank cannot map.
#[derive(Clone, Copy)]
pub(in crate::rma) struct Far<'a> {
    pub target: usize,
    /// The offset of the elements' origin in the target's memory, in bytes; see
    /// [`Located::There`](crate::rma::window::target::Located).
    pub offset: i64,
    pub plan: &'a Plan,
    pub count: u64,
}

/// Returns a tag for the answer to a request, or for the message of a long get. The messages of all windows of a
/// communicator have one context, so the tags of two windows must differ too.
pub(in crate::rma) fn new_tag() -> i32 {
    static TAGS: AtomicU32 = AtomicU32::new(0);
    ((TAGS.fetch_add(1, Ordering::Relaxed) & (i32::MAX as u32 >> 2)) << 2 | 1) as i32
}

/// Returns a tag for the message of a long put. The tag differs from all tags of [`new_tag`]: a rank receives the long
/// puts of another rank, with tags of that rank, and the answers of the same rank, with tags of its own.
fn new_put_tag() -> i32 {
    new_tag() | 2
}

/// Returns whether the message of a long put can have this tag.
pub(in crate::rma) fn is_put_tag(tag: i32) -> bool {
    tag & 3 == 3
}

impl Window {
    pub(in crate::rma) fn asked(&self, target: usize) -> Result<&Arc<Asked>> {
        self.requests.targets.get(target).ok_or_else(|| {
            let detail = format!("{target} is not a rank of the window");
            Error::new(ErrorKind::Rank, "target_rank", detail)
        })
    }

    /// Sends a request with `length` bytes of data, which `pack` writes. If the ring of the target has no room soon, a
    /// copy of the request waits for room.
    ///
    /// # Safety
    ///
    /// - `pack` writes no more than `length` bytes to the address that it gets, and `length` is at most [`DATA`].
    pub(in crate::rma) unsafe fn send_request(
        &self,
        asked: &Arc<Asked>,
        request: &Request,
        length: usize,
        mut pack: impl FnMut(*mut u8),
    ) -> Result<()> {
        let (words, used) = request.encode();
        let head = used.min(HEAD) * WORD;
        let label = Label {
            context: self.comm.space(Space::Window),
            tag: self.tag,
            bytes: (head + length) as u64,
            types: UNKNOWN,
        };
        let dest = self.comm.process(asked.target, "target_rank", ErrorKind::Rank)?;
        let mut write = |to: *mut u8| {
            // SAFETY: the message has room for the head (`label.bytes`), which is not longer than the local array.
            unsafe { to.copy_from_nonoverlapping(words.as_ptr().cast(), head) };
            pack(to.wrapping_add(head));
        };
        let (endpoint, queued) = (self.comm.endpoint(), asked.queued.load(Ordering::Relaxed));
        // While other requests wait for room, the target computes, and a wait would not help.
        let patient = queued == 0;
        // SAFETY: `write` writes the head, and `pack` writes no more than `length` bytes behind it (the condition of
        // `# Safety`). A request has at most `REQUEST` bytes, which is less than `EAGER_MAX`.
        if unsafe { endpoint.send_packed_soon(label, dest, patient, &mut write)? } {
            return Ok(());
        }
        let most = Settings::current().map_or(UNEXPECTED_MAX, |settings| settings.unexpected_max);
        let weight = label.bytes + QUEUED;
        if queued + weight > most {
            // SAFETY: `write` writes no more than `label.bytes` bytes, which is less than `EAGER_MAX` (see the call
            // above).
            return unsafe { endpoint.send_packed(label, dest, bytes_plan()?, write) };
        }
        let mut packed = vec![0_u8; head + length];
        write(packed.as_mut_ptr());
        let (origin, plan, count) = (packed.as_mut_ptr(), bytes_plan()?, label.bytes);
        let layout = Elements { origin, plan, count };
        let what = (asked, Use::Queued(weight));
        endpoint.with_core(|core| {
            core.with(|replies: &mut Replies, engine| {
                // SAFETY: the buffer is readable and has `label.bytes` bytes, and a queued request uses it only during
                // the call.
                unsafe { replies.send(engine, &layout, (label, dest), what, &mut None) }
            })
        })??
    }

    /// Sends a request that the target counts, like [`send_request`](Self::send_request).
    ///
    /// # Safety
    ///
    /// - The condition of [`send_request`](Self::send_request).
    pub(in crate::rma) unsafe fn send_counted(
        &self,
        asked: &Arc<Asked>,
        request: &Request,
        length: usize,
        pack: impl FnMut(*mut u8),
    ) -> Result<()> {
        // Count first: a thread that completes operations then waits for at least all requests that it has sent itself.
        self.requests.any.store(true, Ordering::Relaxed);
        asked.sent.fetch_add(1, Ordering::AcqRel);
        // SAFETY: `pack` writes no more than `length` bytes, and `length` is at most `DATA` (the condition of
        // `# Safety`).
        let sent = unsafe { self.send_request(asked, request, length, pack) };
        if sent.is_err() {
            asked.sent.fetch_sub(1, Ordering::Relaxed);
        }
        sent
    }

    /// Names the elements `far` in a request, and calls `send` with the request. Defines their type first if the target
    /// does not know the type. Returns `None` if the encoded form of the type is too long.
    pub(in crate::rma) fn name<R>(
        &self,
        asked: &Arc<Asked>,
        far: &Far<'_>,
        kind: Kind,
        send: impl FnOnce(Request) -> Result<R>,
    ) -> Result<Option<R>> {
        if far.plan.is_contiguous() {
            let first = far.offset.wrapping_add(far.plan.footprint().true_lb);
            return send(Request::new(kind, first)).map(Some);
        }
        // The lock is held until the request has been sent, so that no other thread defines the number again before.
        let mut types = lock(&asked.types);
        let number = match types.name(far.plan, LONGEST) {
            Number::Known(number) => number as u16,
            Number::New(number, form) => {
                self.define(asked, number as u16, &form)?;
                types.define(far.plan, form, ());
                number as u16
            }
            Number::TooLong => return Ok(None),
        };
        let mut request = Request::new(kind, far.offset);
        (request.number, request.count) = (number, far.count);
        send(request).map(Some)
    }

    /// Tells a target the encoded form of a type.
    #[cold]
    fn define(&self, asked: &Arc<Asked>, number: u16, form: &[u8]) -> Result<()> {
        for (at, part) in form.chunks(DATA).enumerate() {
            let mut request = Request::new(Kind::Define, 0);
            request.number = number;
            (request.count, request.start) = (form.len() as u64, (at * DATA) as u64);
            // SAFETY: the function writes the bytes of the part, which are at most `DATA`.
            unsafe {
                self.send_request(asked, &request, part.len(), |to| {
                    to.copy_from_nonoverlapping(part.as_ptr(), part.len());
                })?;
            }
        }
        Ok(())
    }

    /// Cuts the first `bytes` packed bytes of elements whose type has too long an encoded form into parts, each with
    /// few runs and at most [`DATA`] bytes. Calls `each` with the range of packed bytes of a part and its elements.
    /// Parts hold whole elements of `size` bytes.
    #[cold]
    pub(in crate::rma) fn in_parts(
        &self,
        far: &Far<'_>,
        size: usize,
        bytes: u64,
        mut each: impl FnMut(Range<u64>, &Far<'_>) -> Result<()>,
    ) -> Result<()> {
        let size = size.max(1) as u64;
        let mut position = 0;
        while position < bytes {
            let mut cursor = Cursor::at(far.plan, far.count, position)?;
            let most = (position + DATA as u64 / size * size).min(bytes);
            let (mut lengths, mut offsets) = (Vec::new(), Vec::new());
            let mut end = position;
            while end < most && lengths.len() < RUNS {
                let Some(run) = cursor.run() else { break };
                let length = run.bytes.min(most - end);
                lengths.push(length as i64);
                offsets.push(run.offset);
                cursor.advance(length);
                end += length;
            }
            // If the part would end within an element, leave this element to the next part.
            let mut extra = (end - position) % size;
            end -= extra;
            while let Some(last) = lengths.last_mut().filter(|_| extra > 0) {
                let cut = extra.min(*last as u64);
                *last -= cut as i64;
                extra -= cut;
                if *last == 0 {
                    lengths.pop();
                    offsets.pop();
                }
            }
            if end == position {
                let detail = "an element of the target has too many runs of memory";
                return Err(Error::new(ErrorKind::Other, "target_datatype", detail));
            }
            let byte = Datatype::named(Named::BYTE);
            let plan = commit(&Datatype::hindexed(&lengths, &offsets, &byte)?)?;
            each(position..end, &Far { plan: &plan, count: 1, ..*far })?;
            position = end;
        }
        Ok(())
    }

    /// Starts to put the first `bytes` packed bytes of the elements `from`. If `ids` is given, adds the numbers of the
    /// requests that end when the put is complete at this rank; there is none if the put is so already.
    ///
    /// # Safety
    ///
    /// - The elements `from` have `bytes` packed bytes and are readable, and do not change, until the put is complete
    ///   at this rank.
    pub(in crate::rma) unsafe fn put_there(
        &self,
        from: &Elements<&Plan>,
        far: &Far<'_>,
        bytes: u64,
        ids: &mut Option<Vec<u64>>,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let asked = self.asked(far.target)?;
        // SAFETY: `range` lies within the packed bytes of the elements `from`, which are readable (the condition of
        // `# Safety`), in all calls below.
        let pack = |range: Range<u64>, to: *mut u8| unsafe { from.pack(range, to) };
        let put = |far: &Far<'_>, range: Range<u64>| {
            let length = (range.end - range.start) as usize;
            self.name(asked, far, Kind::Put, |request| {
                // SAFETY: `pack` writes the bytes of the range, which are at most `DATA` in both calls below.
                unsafe { self.send_counted(asked, &request, length, |to| pack(range.clone(), to)) }
            })
        };
        let sent = if bytes <= DATA as u64 {
            put(far, 0..bytes)?
        } else {
            self.await_room(asked)?;
            let sent = self.name(asked, far, Kind::LongPut, |mut request| {
                (request.tag, request.length) = (new_put_tag(), bytes);
                // SAFETY: the request has no data.
                unsafe { self.send_counted(asked, &request, 0, |_| ())? };
                Ok(request.tag)
            })?;
            // SAFETY: the caller guarantees the condition of `send_long`.
            let start = |tag| unsafe { self.send_long(asked, from, bytes, tag, ids) };
            sent.map(start).transpose()?
        };
        if sent.is_some() {
            return Ok(());
        }
        self.in_parts(far, 1, bytes, |range, part| match put(part, range)? {
            Some(()) => Ok(()),
            None => Err(too_long()),
        })
    }

    /// Waits until fewer than [`MESSAGES`] messages to and from a target are under way.
    #[inline]
    pub(in crate::rma) fn await_room(&self, asked: &Arc<Asked>) -> Result<()> {
        let has_room = || asked.messages.load(Ordering::Acquire) < MESSAGES;
        if has_room() { Ok(()) } else { wait::until(&self.comm, ("", None), true, has_room) }
    }

    /// Starts the message of a long put, whose request has the tag `tag`.
    ///
    /// # Safety
    ///
    /// - The condition of [`put_there`](Self::put_there).
    unsafe fn send_long(
        &self,
        asked: &Arc<Asked>,
        from: &Elements<&Plan>,
        bytes: u64,
        tag: i32,
        ids: &mut Option<Vec<u64>>,
    ) -> Result<()> {
        let context = self.comm.space(Space::Window);
        let label = Label { context, tag, bytes, types: UNKNOWN };
        let dest = self.comm.process(asked.target, "target_rank", ErrorKind::Rank)?;
        let started = self.comm.endpoint().start(|core| {
            core.with(|replies: &mut Replies, engine| {
                // SAFETY: the elements stay readable and unchanged until the put is complete at this rank (the
                // condition of `# Safety`). The calls that complete operations wait for the message, or abandon it.
                // `bytes` is the packed size of the elements.
                unsafe { replies.send(engine, from, (label, dest), (asked, Use::Put), ids) }
            })?
        });
        if started.is_err() {
            // The target waits for a message that does not come. It counts the put when it learns this.
            let mut request = Request::new(Kind::Forget, 0);
            request.tag = tag;
            // SAFETY: the request has no data. The first error counts.
            let _told = unsafe { self.send_request(asked, &request, 0, |_| ()) };
        }
        started
    }

    /// Waits until `is_over` returns true. If the wait fails or unwinds, no message of the target uses memory of the
    /// program afterwards.
    fn wait_at(&self, asked: &Arc<Asked>, mut is_over: impl FnMut() -> bool) -> Result<()> {
        let mut guard = OnUnwind::new(|| self.requests.abandon(asked));
        let serves = self.needs_progress() || asked.messages.load(Ordering::Relaxed) > 0;
        let waited = wait::until(&self.comm, ("", None), serves, &mut is_over);
        if waited.is_err() {
            guard.call();
        }
        guard.disarm();
        waited
    }

    /// Completes the operations of this rank at `target` at this rank: the program may then change the data of puts,
    /// and use the data of gets and old values.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died.
    #[inline]
    pub(in crate::rma) fn complete_local(&self, target: usize) -> Result<()> {
        if !self.requests.any.load(Ordering::Relaxed) {
            return Ok(());
        }
        let asked = self.asked(target)?;
        let mark = asked.mark();
        self.wait_at(asked, || asked.is_quiet(&mark))
    }

    /// Returns whether this rank has requests to `target` that are not over.
    #[inline]
    pub(in crate::rma) fn has_pending(&self, target: usize) -> Result<bool> {
        if !self.requests.any.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let asked = self.asked(target)?;
        let mark = asked.mark();
        Ok(!asked.is_served(asked.said(said::SERVED)?, &mark) || !asked.is_quiet(&mark))
    }

    /// Completes the requests of this rank to `target`, at this rank and at the target.
    ///
    /// # Errors
    /// Returns an error of the class with which the target has refused a request, and `ErrorKind::ProcAborted` if a
    /// rank has died.
    #[inline]
    pub(in crate::rma) fn complete_at(&self, target: usize) -> Result<()> {
        if !self.requests.any.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.complete_counted(target)
    }

    #[inline(never)]
    fn complete_counted(&self, target: usize) -> Result<()> {
        self.await_requests(target)?;
        self.asked(target)?.refusal().map_or(Ok(()), Err)
    }

    /// Waits until the requests of this rank to `target` are over. A later call that completes operations returns the
    /// errors of the target.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died.
    pub(in crate::rma) fn await_requests(&self, target: usize) -> Result<()> {
        let asked = self.asked(target)?;
        let (served, mark) = (asked.said(said::SERVED)?, asked.mark());
        self.wait_at(asked, || asked.is_served(served, &mark) && asked.is_quiet(&mark))?;
        // Data of gets that lie in memory of the window were stored in the wait, not by a call of this rank.
        self.note_stores();
        Ok(())
    }

    /// Completes the requests of this rank to all ranks.
    ///
    /// # Errors
    /// Returns the errors of [`complete_at`](Self::complete_at).
    #[inline]
    pub(in crate::rma) fn complete_all(&self) -> Result<()> {
        if !self.requests.any.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut completed = Ok(());
        for target in 0..self.size() {
            completed = completed.and(self.complete_counted(target));
        }
        completed
    }
}

#[cold]
pub(in crate::rma) fn too_long() -> Error {
    let detail = "the encoded form of a part of the type is too long";
    Error::new(ErrorKind::Internal, "target_datatype", detail)
}
