//! The calling rank of requests (`form.rs`): operations on memory that this rank cannot map.
//!
//! Puts and accumulates get no answer. The calling rank counts its requests, the target counts those that are over, and
//! a call that completes operations waits until the two counts are equal ([`Window::complete_at`]). A put or
//! accumulate with little data is one request, which has the data. The data of a longer put is a message of its own:
//! the request tells the target where the message goes, and the message takes the way of all long messages, without
//! copies that the layouts do not need. The data of a longer accumulate is in several requests, because an accumulate
//! must not overtake another one of the same rank.
//!
//! Gets wait for their data, and operations that return old values wait for an answer to each request.

use super::copies::broken;
use super::form::{BYTES, DATA, HEAD, Kind, Request, WORD};
use super::types::{Number, Told};
use super::wait;
use super::words::{SharedWord, Word, said};
use super::{Update, Window};
use crate::comm::Space;
use crate::commit::{bytes as bytes_plan, commit};
use crate::endpoint::engine::How;
use crate::endpoint::progress::{Endpoint, OnUnwind};
use crate::message::label::{Label, Sender};
use crate::message::payload::{LayoutRef, Posting};
use crate::message::typecheck::UNKNOWN;
use crate::message::{Operation, Status, Tag};
use crate::schedule::part::Part;
use crate::{Datatype, Error, ErrorClass, ErrorKind, Named, Plan, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use typepack_engine::{Cursor, pack_raw, unpack_raw};

/// The greatest number of long puts to a target whose data may still be in use.
const LONG_PUTS: usize = 64;

/// The greatest number of runs of a part of elements whose type has too long an encoded form.
const RUNS: usize = 512;

/// The elements of an operation at a target whose memory this rank cannot map.
#[derive(Clone, Copy)]
pub(super) struct Far<'a> {
    pub target: usize,
    /// The offset of the elements' origin in the target's memory, in bytes; see
    /// [`Located::There`](super::target::Located).
    pub offset: i64,
    pub plan: &'a Plan,
    pub count: u64,
}

/// What this rank has asked one target for.
#[derive(Debug, Default)]
struct Asked {
    /// Number of requests that the target counts.
    sent: AtomicU64,
    told: Mutex<Told>,
    /// The sends of long puts whose data may still be in use.
    long: Mutex<Vec<u64>>,
    /// Held while a thread waits for a short answer, because there is room for one.
    short: Mutex<()>,
}

/// A short answer of a target.
pub(super) type Answer = [u64; said::BYTES / WORD];

/// The result of [`Window::ask_shortly`].
#[derive(Debug)]
pub(super) enum Short {
    Answer(Answer),
    /// The answer to the request with this tag has not come in time. The target will still write it.
    Late(i32),
    /// The type has too long a form.
    TooLong,
}

/// What this rank has asked the other ranks of a window for.
#[derive(Debug)]
pub(super) struct Asks {
    endpoint: Arc<Endpoint>,
    /// Whether this rank has sent a request that counts. If not, no call need look at the counts.
    any: AtomicBool,
    targets: Box<[Asked]>,
}

impl Asks {
    pub fn new(endpoint: Arc<Endpoint>, ranks: usize) -> Self {
        let targets = (0..ranks).map(|_| Asked::default()).collect();
        Self { endpoint, any: AtomicBool::new(false), targets }
    }
}

impl Drop for Asks {
    fn drop(&mut self) {
        // The list is empty unless an epoch has ended with an error.
        for asked in &mut self.targets {
            for id in std::mem::take(lock_mut(&mut asked.long)) {
                self.endpoint.detach(id);
            }
        }
    }
}

/// Locks a mutex. No code that holds one of the locks of this file leaves the value in a state that is not whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock_mut<T>(mutex: &mut Mutex<T>) -> &mut T {
    mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a tag for the answer to a request, or for the message of a long get. The messages of all windows of a
/// communicator have one context, so the tags of two windows must differ too.
fn new_tag() -> i32 {
    static TAGS: AtomicU32 = AtomicU32::new(0);
    ((TAGS.fetch_add(1, Ordering::Relaxed) & (i32::MAX as u32 >> 2)) << 2 | 1) as i32
}

/// Returns a tag for the message of a long put. The tag differs from all tags of [`new_tag`]: a rank receives the long
/// puts of another rank, with tags of that rank, and the answers of the same rank, with tags of its own.
fn new_put_tag() -> i32 {
    new_tag() | 2
}

impl Window {
    fn asked(&self, target: usize) -> Result<&Asked> {
        self.asks.targets.get(target).ok_or_else(|| {
            let detail = format!("{target} is not a rank of the window");
            Error::new(ErrorKind::Rank, "target_rank", detail)
        })
    }

    /// Sends a request with `length` bytes of data, which `pack` writes.
    ///
    /// # Safety
    ///
    /// - `pack` writes no more than `length` bytes to the address that it gets, and `length` is at most [`DATA`].
    unsafe fn send_request(
        &self,
        target: usize,
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
        let dest = self.comm.slot(target, "target_rank", ErrorKind::Rank)?;
        let write = |to: *mut u8| {
            // SAFETY: the message has room for the head (`label.bytes`), which is not longer than the local array.
            unsafe { to.copy_from_nonoverlapping(words.as_ptr().cast(), head) };
            pack(to.wrapping_add(head));
        };
        // SAFETY: `write` writes the head, and `pack` writes no more than `length` bytes behind it (the condition of
        // `# Safety`). A request has at most `REQUEST` bytes, which is less than `EAGER_MAX`.
        unsafe { self.comm.endpoint().send_packed(label, dest, bytes_plan()?, write) }
    }

    /// Sends a request that the target counts, like [`send_request`](Self::send_request).
    ///
    /// # Safety
    ///
    /// - The condition of [`send_request`](Self::send_request).
    unsafe fn send_counted(
        &self,
        asked: &Asked,
        target: usize,
        request: &Request,
        length: usize,
        pack: impl FnMut(*mut u8),
    ) -> Result<()> {
        // Count first: a thread that completes operations then waits for at least all requests that it has sent itself.
        self.asks.any.store(true, Ordering::Relaxed);
        asked.sent.fetch_add(1, Ordering::AcqRel);
        // SAFETY: `pack` writes no more than `length` bytes, and `length` is at most `DATA` (the condition of
        // `# Safety`).
        let sent = unsafe { self.send_request(target, request, length, pack) };
        if sent.is_err() {
            asked.sent.fetch_sub(1, Ordering::Relaxed);
        }
        sent
    }

    /// Names the elements `far` in a request, and calls `send` with the request. Defines their type first if the target
    /// does not know the type. Returns `None` if the encoded form of the type is too long.
    fn name<R>(
        &self,
        asked: &Asked,
        far: &Far<'_>,
        kind: Kind,
        send: impl FnOnce(Request) -> Result<R>,
    ) -> Result<Option<R>> {
        if far.plan.is_contiguous() {
            let first = far.offset.wrapping_add(far.plan.footprint().true_lb);
            return send(Request::new(kind, first)).map(Some);
        }
        // The lock is held until the request has been sent, so that no other thread defines the number again before.
        let mut told = lock(&asked.told);
        let number = match told.number(far.plan) {
            Number::Known(number) => number,
            Number::New(number, form) => {
                self.define(far.target, number, &form)?;
                told.tell(number, far.plan, form);
                number
            }
            Number::TooLong => return Ok(None),
        };
        let mut request = Request::new(kind, far.offset);
        (request.number, request.count) = (number, far.count);
        send(request).map(Some)
    }

    /// Tells `target` the encoded form of a type.
    #[cold]
    fn define(&self, target: usize, number: u16, form: &[u8]) -> Result<()> {
        for (at, part) in form.chunks(DATA).enumerate() {
            let mut request = Request::new(Kind::Define, 0);
            request.number = number;
            (request.count, request.start) = (form.len() as u64, (at * DATA) as u64);
            // SAFETY: the function writes the bytes of the part, which are at most `DATA`.
            unsafe {
                self.send_request(target, &request, part.len(), |to| {
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
    fn in_parts(
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

    /// Puts the first `bytes` packed bytes of the elements `from`.
    ///
    /// # Safety
    ///
    /// - The elements `from` have `bytes` packed bytes and are readable, and do not change, until the put is complete
    ///   at this rank.
    pub(super) unsafe fn put_there(
        &self,
        from: &Part<'_>,
        far: &Far<'_>,
        bytes: u64,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let asked = self.asked(far.target)?;
        // SAFETY: `range` lies within the packed bytes of the elements `from`, which are readable (the condition of
        // `# Safety`), in all calls below.
        let pack = |range: Range<u64>, to: *mut u8| unsafe {
            pack_raw(from.plan, from.count, from.origin, range, to)
        };
        let put = |far: &Far<'_>, range: Range<u64>| {
            let length = (range.end - range.start) as usize;
            self.name(asked, far, Kind::Put, |request| {
                // SAFETY: `pack` writes the bytes of the range, which are at most `DATA` in both calls below.
                unsafe {
                    self.send_counted(asked, far.target, &request, length, |to| {
                        pack(range.clone(), to)
                    })
                }
            })
        };
        let sent = if bytes <= DATA as u64 {
            put(far, 0..bytes)?
        } else {
            let room = self.room_for_long(asked)?;
            let sent = self.name(asked, far, Kind::LongPut, |mut request| {
                (request.tag, request.length) = (new_put_tag(), bytes);
                // SAFETY: the request has no data.
                unsafe { self.send_counted(asked, far.target, &request, 0, |_| ())? };
                Ok(request.tag)
            })?;
            // SAFETY: the caller guarantees the condition of `send_long`.
            let start = |tag| unsafe { self.send_long(room, from, bytes, far.target, tag) };
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

    /// Locks the list of the sends of long puts to a target. If the list is full, first waits until they are over.
    fn room_for_long<'a>(&self, asked: &'a Asked) -> Result<MutexGuard<'a, Vec<u64>>> {
        let mut long = lock(&asked.long);
        if long.len() >= LONG_PUTS {
            self.wait_for_all(&mut long)?;
        }
        Ok(long)
    }

    /// Starts the message of a long put, whose request has the tag `tag`.
    ///
    /// # Safety
    ///
    /// - The condition of [`put_there`](Self::put_there).
    unsafe fn send_long(
        &self,
        mut long: MutexGuard<'_, Vec<u64>>,
        from: &Part<'_>,
        bytes: u64,
        target: usize,
        tag: i32,
    ) -> Result<()> {
        let context = self.comm.space(Space::Window);
        let layout = LayoutRef { origin: from.origin, plan: from.plan, count: from.count };
        let label = Label { context, tag, bytes, types: UNKNOWN };
        let dest = self.comm.slot(target, "target_rank", ErrorKind::Rank)?;
        // SAFETY: the elements stay readable and unchanged until the send is complete or detached: `complete_local`
        // waits for the send, and the drop of `Asks` detaches it. `bytes` is the packed size of the elements.
        match unsafe { self.comm.endpoint().send_as(&layout, label, dest, How::STANDARD) } {
            Ok(id) => {
                long.extend(id);
                Ok(())
            }
            Err(error) => {
                // The target waits for a message that does not come. It counts the put when it learns this.
                let mut request = Request::new(Kind::Forget, 0);
                request.tag = tag;
                // SAFETY: the request has no data. The first error counts.
                let _told = unsafe { self.send_request(target, &request, 0, |_| ()) };
                Err(error)
            }
        }
    }

    /// Waits until this rank uses no data of long puts to a target any more.
    fn wait_for_all(&self, long: &mut Vec<u64>) -> Result<()> {
        let mut waited = Ok(());
        while let Some(id) = long.pop() {
            // An error means that the send is detached from its memory.
            waited = waited.and(self.comm.endpoint().wait(id).map(drop));
        }
        waited
    }

    /// Completes the puts of this rank to `target` at this rank: the program may then change the data.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died.
    #[inline]
    pub(super) fn complete_local(&self, target: usize) -> Result<()> {
        if !self.asks.any.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.wait_for_all(&mut lock(&self.asked(target)?.long))
    }

    /// Completes the requests of this rank to `target`, at this rank and at the target.
    ///
    /// # Errors
    /// Returns an error of the class with which the target has refused a request, and `ErrorKind::ProcAborted` if a
    /// rank has died.
    #[inline]
    pub(super) fn complete_at(&self, target: usize) -> Result<()> {
        if !self.asks.any.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.complete_counted(target)
    }

    #[inline(never)]
    fn complete_counted(&self, target: usize) -> Result<()> {
        let asked = self.asked(target)?;
        let local = self.complete_local(target);
        let word = self.words.get(self.rank(), Word::Said(target, said::SERVED))?;
        // Long puts of several threads may end in another order than they began, so a count that has reached an earlier
        // count of requests does not say which of them are over. But all are over at a moment at which the two counts
        // are equal. The target's count is read first: then the count of requests at that moment is not greater than
        // the one that is read after it.
        let over = || {
            let served = word.value();
            served >= asked.sent.load(Ordering::Acquire)
        };
        wait::until(&self.comm, self.needs_progress(), over)?;
        local.and(self.refusal(target).map_or(Ok(()), Err))
    }

    /// Completes the requests of this rank to all ranks.
    ///
    /// # Errors
    /// Returns the errors of [`complete_at`](Self::complete_at).
    #[inline]
    pub(super) fn complete_all(&self) -> Result<()> {
        if !self.asks.any.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut completed = Ok(());
        for target in 0..self.size() {
            completed = completed.and(self.complete_counted(target));
        }
        completed
    }

    /// Returns the error of the first request that `target` has refused since the last call.
    fn refusal(&self, target: usize) -> Option<Error> {
        let word = self.words.get(self.rank(), Word::Said(target, said::REFUSED)).ok()?;
        if word.load(Ordering::Acquire) == 0 {
            return None;
        }
        Some(refused(target, word.swap(0, Ordering::AcqRel)))
    }

    /// Starts a receive from `target` into `layout`, and calls `send`, which sends a request with the tag `tag`.
    /// Returns the number of the receive, or `None` if `send` does.
    ///
    /// # Safety
    ///
    /// - The elements of `layout` are writable, and nobody else accesses them until the receive is complete or
    ///   detached.
    unsafe fn receive_after(
        &self,
        target: usize,
        tag: i32,
        layout: LayoutRef<'_>,
        send: impl FnOnce() -> Result<Option<()>>,
    ) -> Result<Option<u64>> {
        let endpoint = self.comm.endpoint();
        let from = Sender::Slot(self.comm.slot(target, "target_rank", ErrorKind::Rank)?);
        let posting = Posting::new(layout, self.comm.space(Space::Window), from, Tag::Is(tag))?;
        // SAFETY: the caller guarantees the elements until the receive is complete or detached. `Posting::new` takes
        // the capacity from the plan.
        let id = match unsafe { endpoint.receive(&posting)? } {
            // No rank has seen the tag yet.
            Operation::Done(_) => return Err(broken(target)),
            Operation::Pending(id) => id,
        };
        let mut guard = OnUnwind::new(|| endpoint.detach(id));
        let sent = send();
        if !matches!(sent, Ok(Some(()))) {
            guard.call();
        }
        guard.disarm();
        Ok(sent?.map(|()| id))
    }

    /// Calls `send`, which sends a request with a tag that the target answers with a few words. Waits for the answer,
    /// but no longer than until `end`, if given.
    ///
    /// # Errors
    /// Returns an error of the class with which the target has refused the operation, the errors of `send`, and
    /// `ErrorKind::ProcAborted` if a rank has died.
    pub(super) fn ask_shortly(
        &self,
        target: usize,
        end: Option<Instant>,
        send: impl FnOnce(i32) -> Result<Option<()>>,
    ) -> Result<Short> {
        let (_alone, tag) = (lock(&self.asked(target)?.short), new_tag());
        if send(tag)?.is_none() {
            return Ok(Short::TooLong);
        }
        let word = |index| self.words.get(self.rank(), Word::Said(target, index));
        let answered = word(said::ANSWERED)?;
        let is_over = || has_tag(answered, tag);
        match end {
            Some(end) if !wait::until_briefly(&self.comm, end, is_over)? => {
                return Ok(Short::Late(tag));
            }
            Some(_) => {}
            None => wait::until(&self.comm, true, is_over)?,
        }
        let class = answered.load(Ordering::Acquire) >> 32;
        if class != 0 {
            return Err(refused(target, class));
        }
        let mut answer = Answer::default();
        for (index, value) in answer.iter_mut().enumerate() {
            *value = word(said::ANSWER + index)?.load(Ordering::Relaxed);
        }
        Ok(Short::Answer(answer))
    }

    /// Returns whether `target` has answered the request with this tag, or a later one.
    pub(super) fn has_answered(&self, target: usize, tag: i32) -> Result<bool> {
        let word = self.words.get(self.rank(), Word::Said(target, said::ANSWERED))?;
        // Tags have 31 bits and grow, until they begin again with 1.
        let ahead = (word.load(Ordering::Acquire) as u32).wrapping_sub(tag as u32) << 1;
        Ok(ahead as i32 >= 0)
    }

    /// Sends a request for the elements `far`, which have `bytes` packed bytes. Returns `None` if the type has too
    /// long a form.
    pub(super) fn send_get(&self, far: &Far<'_>, bytes: u64, tag: i32) -> Result<Option<()>> {
        self.name(self.asked(far.target)?, far, Kind::Get, |mut request| {
            (request.tag, request.length) = (tag, bytes);
            // SAFETY: the request has no data.
            unsafe { self.send_request(far.target, &request, 0, |_| ()) }
        })
    }

    /// Asks for the elements `far`, which have `bytes` packed bytes, as a message of the target. Returns the number of
    /// the receive, or `None` if the type has too long a form.
    ///
    /// # Safety
    ///
    /// - The elements `to` are writable, and nobody else accesses them until the receive is complete or detached.
    pub(super) unsafe fn ask_to_get(
        &self,
        to: &Part<'_>,
        far: &Far<'_>,
        bytes: u64,
    ) -> Result<Option<u64>> {
        let tag = new_tag();
        let layout = LayoutRef { origin: to.origin, plan: to.plan, count: to.count };
        let send = || self.send_get(far, bytes, tag);
        // SAFETY: the elements `to` are writable, and nobody else accesses them until the receive is complete or
        // detached (the condition of `# Safety`). `layout` describes these elements.
        unsafe { self.receive_after(far.target, tag, layout, send) }
    }

    /// Checks that a get has got `bytes` bytes.
    pub(super) fn check_got(&self, target: usize, status: Status, bytes: u64) -> Result<()> {
        if status.bytes == bytes {
            return Ok(());
        }
        Err(self.refusal(target).unwrap_or_else(|| broken(target)))
    }

    /// Gets the elements `far`, which have `bytes` packed bytes, as a message of the target.
    ///
    /// # Safety
    ///
    /// - The elements `to` are writable, nobody else accesses them during the call, and they have at least `bytes`
    ///   packed bytes.
    pub(super) unsafe fn get_there(&self, to: &Part<'_>, far: &Far<'_>, bytes: u64) -> Result<()> {
        if bytes <= said::BYTES as u64 {
            let send = |tag| self.send_get(far, bytes, tag);
            if let Short::Answer(answer) = self.ask_shortly(far.target, None, send)? {
                let data = answer.as_ptr().cast();
                // SAFETY: the elements `to` are writable and have at least `bytes` packed bytes (the condition of
                // `# Safety`), which are at most the length of the answer.
                unsafe { unpack_raw(to.plan, to.count, to.origin, 0..bytes, data) };
                return Ok(());
            }
        }
        // SAFETY: the caller guarantees the elements during the call, and `wait` detaches the receive if it fails.
        if let Some(id) = unsafe { self.ask_to_get(to, far, bytes)? } {
            let status = self.comm.endpoint().wait(id)?;
            return self.check_got(far.target, status, bytes);
        }
        self.in_parts(far, 1, bytes, |range, part| {
            let mut data = vec![0; (range.end - range.start) as usize];
            let count = data.len() as u64;
            let whole = Part { origin: data.as_mut_ptr(), plan: bytes_plan()?, count };
            // SAFETY: `data` is memory of this call and has as many bytes as the part. The range lies in the packed
            // bytes of the elements `to`, which are writable (the condition of `# Safety`).
            unsafe {
                self.get_there(&whole, part, count)?;
                unpack_raw(to.plan, to.count, to.origin, range, data.as_ptr());
            }
            Ok(())
        })
    }

    /// Sends a request about the part `range` of the packed bytes of `far` to update elements. If the request asks for
    /// the old values, returns them.
    ///
    /// # Safety
    ///
    /// - `pack` writes no more than `length` bytes to the address that it gets, and `length` is at most [`DATA`].
    unsafe fn update_there(
        &self,
        far: &Far<'_>,
        (kind, named, update): (Kind, Option<Named>, Update),
        range: Range<u64>,
        length: usize,
        mut pack: impl FnMut(*mut u8),
    ) -> Result<Option<Vec<u8>>> {
        let asked = self.asked(far.target)?;
        let bytes = range.end - range.start;
        let fill = |request: &mut Request| {
            (request.named, request.update, request.length) = (named, update, bytes);
            match request.number {
                BYTES => request.offset = request.offset.wrapping_add(range.start as i64),
                _ => request.start = range.start,
            }
        };
        if kind == Kind::Accumulate {
            return self.name(asked, far, kind, |mut request| {
                fill(&mut request);
                // SAFETY: the caller guarantees the condition of `send_counted`.
                unsafe { self.send_counted(asked, far.target, &request, length, pack)? };
                Ok(Vec::new())
            });
        }
        let mut send = |tag| {
            self.name(asked, far, kind, |mut request| {
                fill(&mut request);
                request.tag = tag;
                // SAFETY: the caller guarantees the condition of `send_request`.
                unsafe { self.send_request(far.target, &request, length, &mut pack) }
            })
        };
        if bytes <= said::BYTES as u64 {
            return Ok(match self.ask_shortly(far.target, None, send)? {
                Short::Answer(answer) => {
                    Some(bytemuck::bytes_of(&answer)[..bytes as usize].to_vec())
                }
                Short::Late(_) | Short::TooLong => None,
            });
        }
        let (tag, mut answer) = (new_tag(), vec![0_u8; WORD + bytes as usize]);
        let count = answer.len() as u64;
        let layout = LayoutRef { origin: answer.as_mut_ptr(), plan: bytes_plan()?, count };
        // SAFETY: the answer is memory of this call, and `wait` detaches the receive if it fails.
        let Some(id) = (unsafe { self.receive_after(far.target, tag, layout, || send(tag))? })
        else {
            return Ok(None);
        };
        let status = self.comm.endpoint().wait(id)?;
        answer.truncate(usize::try_from(status.bytes).unwrap_or(0));
        match answer.first_chunk().map(|word| u64::from_ne_bytes(*word)) {
            Some(0) if status.bytes == count => Ok(Some(answer.split_off(WORD))),
            Some(0) | None => Err(broken(far.target)),
            Some(class) => Err(refused(far.target, class)),
        }
    }

    /// Updates the first `bytes` packed bytes of the elements `far`, which are of the type `named` and have `size`
    /// bytes each.
    ///
    /// # Safety
    ///
    /// - The elements of `from` are readable and those of `result` writable, for `bytes` packed bytes. Nobody else
    ///   accesses the elements of `result`.
    pub(super) unsafe fn accumulate_there(
        &self,
        far: &Far<'_>,
        (named, size): (Named, usize),
        from: Option<&Part<'_>>,
        result: Option<&Part<'_>>,
        bytes: u64,
        update: Update,
    ) -> Result<()> {
        let kind = if result.is_some() { Kind::GetAccumulate } else { Kind::Accumulate };
        // Updates the elements `far` in `part` of these elements, whose operands are the packed bytes `whole`.
        let step = |far: &Far<'_>, part: Range<u64>, whole: Range<u64>| -> Result<bool> {
            let length = from.map_or(0, |_| whole.end - whole.start) as usize;
            let pack = |to: *mut u8| {
                let Some(from) = from else { return };
                // SAFETY: the range lies within the `bytes` packed bytes of the elements `from`, which are readable
                // (the condition of `# Safety`). The request has room for them.
                unsafe { pack_raw(from.plan, from.count, from.origin, whole.clone(), to) };
            };
            let what = (kind, Some(named), update);
            // SAFETY: `pack` writes the bytes of the range, of which a step has at most `DATA`.
            let old = unsafe { self.update_there(far, what, part, length, pack)? };
            if let (Some(result), Some(old)) = (result, &old) {
                // SAFETY: the range lies within the `bytes` packed bytes of the elements `result`, which are writable
                // (the condition of `# Safety`). `old` has the length of the range (`update_there` has checked this).
                unsafe {
                    unpack_raw(result.plan, result.count, result.origin, whole, old.as_ptr());
                };
            }
            Ok(old.is_some())
        };
        let size = size.max(1);
        let (chunk, bytes) = ((DATA / size * size) as u64, bytes / size as u64 * size as u64);
        let mut done = 0;
        while done < bytes {
            let range = done..(done + chunk).min(bytes);
            if !step(far, range.clone(), range.clone())? {
                // The type has too long a form; this is the first step.
                return self.in_parts(far, size, bytes, |whole, part| {
                    match step(part, 0..whole.end - whole.start, whole)? {
                        true => Ok(()),
                        false => Err(too_long()),
                    }
                });
            }
            done = range.end;
        }
        Ok(())
    }

    /// Compares and swaps the element of `size` bytes (at most 16) at `offset` of the memory of `target`. Returns the
    /// old value.
    ///
    /// # Safety
    ///
    /// - `new` and `compare` are readable for an element.
    pub(super) unsafe fn compare_there(
        &self,
        target: usize,
        offset: i64,
        (new, compare): (*const u8, *const u8),
        size: usize,
    ) -> Result<Vec<u8>> {
        let pack = |to: *mut u8| {
            // SAFETY: the operands are readable for `size` bytes (the condition of `# Safety`). The request has room
            // for both.
            unsafe {
                to.copy_from_nonoverlapping(new, size);
                to.wrapping_add(size).copy_from_nonoverlapping(compare, size);
            }
        };
        let far = Far { target, offset, plan: bytes_plan()?, count: size as u64 };
        let what = (Kind::CompareAndSwap, None, Update::Replace);
        // SAFETY: `pack` writes twice `size` bytes, which are at most 32.
        let old = unsafe { self.update_there(&far, what, 0..size as u64, 2 * size, pack)? };
        old.ok_or_else(too_long)
    }
}

/// Returns whether a word of answers has this tag.
fn has_tag(word: &AtomicU64, tag: i32) -> bool {
    word.load(Ordering::Acquire) as u32 == tag as u32
}

#[cold]
fn too_long() -> Error {
    let detail = "the encoded form of a part of the type is too long";
    Error::new(ErrorKind::Internal, "target_datatype", detail)
}

/// Returns the error for an operation that the target has refused with this class.
#[cold]
fn refused(target: usize, class: u64) -> Error {
    let class = i32::try_from(class).ok();
    let kind = class.map_or(ErrorKind::Other, |class| ErrorKind::Engine(ErrorClass(class)));
    Error::new(kind, "target_rank", format!("rank {target} has refused the operation"))
}
