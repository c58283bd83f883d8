//! Operations that bring data back from memory that this rank cannot map: gets, and updates that return old values
//! (`requests.rs` has the other operations).
//!
//! A call only starts its operation. The data come as a message, which goes straight to the elements of the calling
//! rank if it has all their bytes, and otherwise through a buffer. If an answer has few bytes and no other short answer
//! of the target is under way, the target writes it to words of the calling rank's block (`replies.rs`).

use super::form::{BYTES, DATA, Kind, Request};
use super::replies::{Asked, Awaited, Replies, Reply, Use, lock, refused};
use super::requests::{Far, new_tag, too_long};
use crate::comm::Space;
use crate::commit::bytes as bytes_plan;
use crate::endpoint::progress::OnUnwind;
use crate::message::label::Sender;
use crate::message::payload::Posting;
use crate::message::{Operation, Status, Tag};
use crate::rma::Update;
use crate::rma::Window;
use crate::rma::direct::broken;
use crate::rma::epoch::wait;
use crate::rma::window::words::said;
use crate::{ErrorKind, Named, Plan, Result};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use typepack_engine::Elements;

/// The result of [`Window::ask_briefly`].
#[derive(Debug)]
pub(in crate::rma) enum Short {
    Reply(Reply),
    /// The answer to the request with this tag has not come in time. The target will still write it.
    Late(i32),
    /// The type has too long a form, or another answer is under way.
    Not,
}

/// The place for the data that an operation brings back: the packed bytes `range` of elements.
struct Room<'a> {
    to: Elements<&'a Plan>,
    range: Range<u64>,
    /// Whether the range is all that the elements will get. A message can then go straight to them.
    is_all: bool,
}

impl Room<'_> {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Returns the place for a message that goes straight to the elements: the elements themselves, or the bytes of the
    /// range if the elements are one run. `None` if the message needs a buffer.
    fn direct(&self) -> Result<Option<Elements<&Plan>>> {
        if self.is_all {
            return Ok(Some(self.to));
        }
        let Some(first) = self.to.run() else { return Ok(None) };
        let origin = first.wrapping_add(self.range.start as usize);
        Ok(Some(Elements { origin, plan: bytes_plan()?, count: self.bytes() }))
    }
}

impl Window {
    /// Posts the receive of a message for a place, and calls `send`, which sends a request with a new tag. Returns
    /// false if `send` returns `None`.
    ///
    /// # Safety
    ///
    /// - The elements of `room` are writable and have the range, and nobody else accesses them until the operation is
    ///   complete.
    unsafe fn fetch_message(
        &self,
        asked: &Arc<Asked>,
        room: &Room<'_>,
        ids: &mut Option<Vec<u64>>,
        send: impl FnOnce(i32) -> Result<Option<()>>,
    ) -> Result<bool> {
        self.await_room(asked)?;
        let (tag, endpoint) = (new_tag(), self.comm.endpoint());
        let dest = self.comm.process(asked.target, "target_rank", ErrorKind::Rank)?;
        let mut data = Vec::new();
        let (layout, is_direct) = match room.direct()? {
            Some(layout) => (layout, true),
            None => {
                data.resize(room.bytes() as usize, 0);
                let (origin, plan) = (data.as_mut_ptr(), bytes_plan()?);
                (Elements { origin, plan, count: room.bytes() }, false)
            }
        };
        let what = match is_direct {
            true => Use::Direct(room.bytes()),
            false => Use::Buffered { data, to: room.to.keep(), range: room.range.clone() },
        };
        let context = self.comm.space(Space::Window);
        let posting = Posting::new(layout, context, Sender::Process(dest), Tag::Is(tag))?;
        self.requests.any.store(true, Ordering::Relaxed);
        let id = endpoint.with_core(|core| {
            core.with(|replies: &mut Replies, engine| {
                // SAFETY: the elements of `room` are writable and not in use until the operation is complete (the
                // condition of `# Safety`); the calls that complete operations wait for the message, or abandon it. A
                // buffer belongs to the entry of the message.
                unsafe { replies.receive(engine, &posting, (asked, what), ids) }
            })
        })???;
        let mut guard = OnUnwind::new(|| {
            endpoint.let_go(|core| {
                // The source is registered as long as windows exist.
                let _gone = core.with(|replies: &mut Replies, engine| replies.cancel(engine, id));
                true
            });
        });
        let sent = send(tag);
        let is_sent = matches!(sent, Ok(Some(())));
        if !is_sent {
            guard.call();
        }
        guard.disarm();
        if !is_sent && let Some(ids) = ids {
            // The request of the program was the last one, and is gone.
            ids.pop();
        }
        Ok(sent?.is_some())
    }

    /// Asks for an answer in words of this rank's block: calls `send`, which sends a request with a new tag. Returns
    /// `None` if the words are in use, and else what `send` returns.
    ///
    /// # Safety
    ///
    /// - The elements of `room` are writable and have the range, which begins at 0, and nobody else accesses them until
    ///   the operation is complete.
    unsafe fn ask_for_words(
        &self,
        asked: &Arc<Asked>,
        room: &Room<'_>,
        send: impl FnOnce(i32) -> Result<Option<()>>,
    ) -> Result<Option<bool>> {
        let mut short = lock(&asked.short);
        if !asked.take_short(&mut short) {
            return Ok(None);
        }
        let tag = new_tag();
        self.requests.any.store(true, Ordering::Relaxed);
        let sent = send(tag)?.is_some();
        if sent {
            asked.await_short(&mut short, Awaited::new(tag, room.to.keep(), room.range.end));
        }
        Ok(Some(sent))
    }

    /// Starts an operation that brings data back. `send` sends its request: the arguments are the tag, and whether the
    /// target answers by words. Returns false if `send` returns `None`.
    ///
    /// # Safety
    ///
    /// - The condition of [`fetch_message`](Self::fetch_message).
    unsafe fn fetch(
        &self,
        asked: &Arc<Asked>,
        room: &Room<'_>,
        ids: &mut Option<Vec<u64>>,
        mut send: impl FnMut(i32, bool) -> Result<Option<()>>,
    ) -> Result<bool> {
        // A request of the program needs a message to end with.
        if room.range.start == 0 && room.range.end <= said::BYTES as u64 && ids.is_none() {
            // SAFETY: the caller guarantees the elements. The range begins at 0.
            let words = unsafe { self.ask_for_words(asked, room, |tag| send(tag, true))? };
            if let Some(sent) = words {
                return Ok(sent);
            }
        }
        // SAFETY: the caller guarantees the condition of `fetch_message`.
        unsafe { self.fetch_message(asked, room, ids, |tag| send(tag, false)) }
    }

    /// Calls `send`, which sends a request with a new tag that the target answers by words, and waits for the answer
    /// until `end`.
    ///
    /// # Errors
    /// Returns an error of the class with which the target has refused the operation, the errors of `send`, and
    /// `ErrorKind::ProcAborted` if a rank has died.
    pub(in crate::rma) fn ask_briefly(
        &self,
        target: usize,
        end: Instant,
        send: impl FnOnce(i32) -> Result<Option<()>>,
    ) -> Result<Short> {
        let asked = self.asked(target)?;
        let (mut short, tag) = (lock(&asked.short), new_tag());
        if !asked.take_short(&mut short) || send(tag)?.is_none() {
            return Ok(Short::Not);
        }
        // The words stay in use until the answer has come, also if this call does not wait so long.
        asked.await_short(&mut short, Awaited::without_elements(tag));
        let answered = asked.said(said::ANSWERED)?;
        if !wait::until_briefly(&self.comm, end, || has_tag(answered, tag))? {
            return Ok(Short::Late(tag));
        }
        let answer = asked.short_answer(tag)?;
        if answer.is_some() {
            *short = None;
        }
        match answer {
            Some(Ok(answer)) => Ok(Short::Reply(answer)),
            Some(Err(class)) => Err(refused(target, class)),
            None => Ok(Short::Late(tag)),
        }
    }

    /// Returns whether `target` has answered the request with this tag, or a later one.
    pub(in crate::rma) fn has_answered(&self, target: usize, tag: i32) -> Result<bool> {
        let word = self.asked(target)?.said(said::ANSWERED)?;
        // Tags have 31 bits and grow, until they begin again with 1.
        let ahead = (word.load(Ordering::Acquire) as u32).wrapping_sub(tag as u32) << 1;
        Ok(ahead as i32 >= 0)
    }

    /// Sends a request for the elements `far`, which have `bytes` packed bytes. Returns `None` if the type has too
    /// long a form.
    pub(in crate::rma) fn send_get(
        &self,
        far: &Far<'_>,
        bytes: u64,
        tag: i32,
        by_words: bool,
    ) -> Result<Option<()>> {
        let asked = self.asked(far.target)?;
        self.name(asked, far, Kind::Get, |mut request| {
            (request.tag, request.length, request.by_words) = (tag, bytes, by_words);
            // SAFETY: the request has no data.
            unsafe { self.send_request(asked, &request, 0, |_| ()) }
        })
    }

    /// Asks for the elements `far`, which have `bytes` packed bytes, as a message of the target that may come too late.
    /// Returns the number of the receive, or `None` if the type has too long a form.
    ///
    /// # Safety
    ///
    /// - The elements `to` are writable, and nobody else accesses them until the receive is complete or detached.
    pub(in crate::rma) unsafe fn ask_to_get(
        &self,
        to: &Elements<&Plan>,
        far: &Far<'_>,
        bytes: u64,
    ) -> Result<Option<u64>> {
        let (tag, endpoint) = (new_tag(), self.comm.endpoint());
        let from =
            Sender::Process(self.comm.process(far.target, "target_rank", ErrorKind::Rank)?);
        let posting = Posting::new(*to, self.comm.space(Space::Window), from, Tag::Is(tag))?;
        // SAFETY: the caller guarantees the elements until the receive is complete or detached. `Posting::new` takes
        // the capacity from the plan.
        let id = match unsafe { endpoint.receive(&posting)? } {
            // No rank has seen the tag yet.
            Operation::Done(_) => return Err(broken(far.target)),
            Operation::Pending(id) => id,
        };
        let mut guard = OnUnwind::new(|| endpoint.detach(id));
        let sent = self.send_get(far, bytes, tag, false);
        if !matches!(sent, Ok(Some(()))) {
            guard.call();
        }
        guard.disarm();
        Ok(sent?.map(|()| id))
    }

    /// Checks that a get has got `bytes` bytes.
    pub(in crate::rma) fn check_got(
        &self,
        target: usize,
        status: Status,
        bytes: u64,
    ) -> Result<()> {
        if status.bytes == bytes {
            return Ok(());
        }
        Err(self.asked(target)?.refused_fetch().unwrap_or_else(|| broken(target)))
    }

    /// Starts to get the elements `far`, which have `bytes` packed bytes. If `ids` is given, adds the numbers of the
    /// requests that end when the data are there.
    ///
    /// # Safety
    ///
    /// - The elements `to` are writable and have at least `bytes` packed bytes, and nobody else accesses them until the
    ///   get is complete.
    pub(in crate::rma) unsafe fn get_there(
        &self,
        to: &Elements<&Plan>,
        far: &Far<'_>,
        bytes: u64,
        ids: &mut Option<Vec<u64>>,
    ) -> Result<()> {
        let asked = self.asked(far.target)?;
        let room = Room { to: *to, range: 0..bytes, is_all: true };
        let send = |tag, by_words| self.send_get(far, bytes, tag, by_words);
        // SAFETY: the caller guarantees the elements.
        if unsafe { self.fetch(asked, &room, ids, send)? } {
            return Ok(());
        }
        self.in_parts(far, 1, bytes, |range, part| {
            let room = Room { to: *to, range: range.clone(), is_all: false };
            let send = |tag| self.send_get(part, range.end - range.start, tag, false);
            // SAFETY: the range lies in the packed bytes of the elements `to`, which the caller guarantees.
            match unsafe { self.fetch_message(asked, &room, ids, send)? } {
                true => Ok(()),
                false => Err(too_long()),
            }
        })
    }

    /// Sends a request about the part `range` of the packed bytes of `far` to update elements. The old values go to
    /// `room`, if given. Returns false if the type has too long a form.
    ///
    /// # Safety
    ///
    /// - `pack` writes no more than `length` bytes to the address that it gets, and `length` is at most [`DATA`].
    /// - The elements of `room` are writable and have the range, and nobody else accesses them until the operation is
    ///   complete.
    unsafe fn update_there(
        &self,
        far: &Far<'_>,
        (kind, named, update): (Kind, Option<Named>, Update),
        range: Range<u64>,
        (length, mut pack): (usize, impl FnMut(*mut u8)),
        room: Option<&Room<'_>>,
        ids: &mut Option<Vec<u64>>,
    ) -> Result<bool> {
        let asked = self.asked(far.target)?;
        let bytes = range.end - range.start;
        let fill = |request: &mut Request| {
            (request.named, request.update, request.length) = (named, update, bytes);
            match request.number {
                BYTES => request.offset = request.offset.wrapping_add(range.start as i64),
                _ => request.start = range.start,
            }
        };
        let Some(room) = room else {
            let sent = self.name(asked, far, kind, |mut request| {
                fill(&mut request);
                // SAFETY: the caller guarantees the condition of `send_counted`.
                unsafe { self.send_counted(asked, &request, length, pack) }
            })?;
            return Ok(sent.is_some());
        };
        let send = |tag, by_words| {
            self.name(asked, far, kind, |mut request| {
                fill(&mut request);
                (request.tag, request.by_words) = (tag, by_words);
                // SAFETY: the caller guarantees the condition of `send_request`.
                unsafe { self.send_request(asked, &request, length, &mut pack) }
            })
        };
        // SAFETY: the caller guarantees the elements of `room`.
        unsafe { self.fetch(asked, room, ids, send) }
    }

    /// Starts to update the first `bytes` packed bytes of the elements `far`, which are of the type `named` and have
    /// `size` bytes each. If `ids` is given, adds the numbers of the requests that end when the old values are there.
    ///
    /// # Safety
    ///
    /// - The elements of `from` are readable and those of `result` writable, for `bytes` packed bytes. Nobody else
    ///   accesses the elements of `result` until the update is complete.
    pub(in crate::rma) unsafe fn accumulate_there(
        &self,
        far: &Far<'_>,
        (named, size): (Named, usize),
        (from, result): (Option<&Elements<&Plan>>, Option<&Elements<&Plan>>),
        bytes: u64,
        update: Update,
        ids: &mut Option<Vec<u64>>,
    ) -> Result<()> {
        let kind = if result.is_some() { Kind::GetAccumulate } else { Kind::Accumulate };
        // Updates the elements `far` in `part` of these elements, whose operands are the packed bytes `whole`.
        let mut step = |far: &Far<'_>, part: Range<u64>, whole: Range<u64>| -> Result<bool> {
            let length = from.map_or(0, |_| whole.end - whole.start) as usize;
            let operands = whole.clone();
            let pack = |to: *mut u8| {
                let Some(from) = from else { return };
                // SAFETY: the range lies within the `bytes` packed bytes of the elements `from`, which are readable
                // (the condition of `# Safety`). The request has room for them.
                unsafe { from.pack(operands.clone(), to) };
            };
            let room = result.map(|result| Room {
                to: *result,
                is_all: whole == (0..bytes),
                range: whole.clone(),
            });
            let what = (kind, Some(named), update);
            // SAFETY: `pack` writes the bytes of the range, of which a step has at most `DATA`. The range lies within
            // the `bytes` packed bytes of the elements `result`, which the caller guarantees.
            unsafe { self.update_there(far, what, part, (length, pack), room.as_ref(), ids) }
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

    /// Starts to compare and swap the element of `size` bytes (at most 16) at `offset` of the memory of `target`. The
    /// old value goes to `result`.
    ///
    /// # Safety
    ///
    /// - `new` and `compare` are readable for an element.
    /// - `result` is writable for an element, and nobody else accesses it until the operation is complete.
    pub(in crate::rma) unsafe fn compare_there(
        &self,
        target: usize,
        offset: i64,
        (new, compare): (*const u8, *const u8),
        result: *mut u8,
        size: usize,
    ) -> Result<()> {
        let pack = |to: *mut u8| {
            // SAFETY: the operands are readable for `size` bytes (the first condition of `# Safety`). The request has
            // room for both.
            unsafe {
                to.copy_from_nonoverlapping(new, size);
                to.wrapping_add(size).copy_from_nonoverlapping(compare, size);
            }
        };
        let (plan, count) = (bytes_plan()?, size as u64);
        let far = Far { target, offset, plan, count };
        let what = (Kind::CompareAndSwap, None, Update::Replace);
        let to = Elements { origin: result, plan, count };
        let room = Room { to, range: 0..count, is_all: true };
        // SAFETY: `pack` writes twice `size` bytes, which are at most 32. The caller guarantees the result.
        let sent = unsafe {
            self.update_there(&far, what, 0..count, (2 * size, pack), Some(&room), &mut None)?
        };
        if sent { Ok(()) } else { Err(too_long()) }
    }
}

/// Returns whether a word of answers has this tag.
fn has_tag(word: &AtomicU64, tag: i32) -> bool {
    word.load(Ordering::Acquire) as u32 == tag as u32
}
