//! Operations in flight: a table of numbered requests.
//!
//! `engine.rs` opens requests. The protocols of `transport/` advance and complete them
//! (`transport/protocol/in_flight.rs` has the states). `progress.rs` waits for them. The number of a request
//! contains a generation, so that the number of an old request does not name a new one.

use crate::message::Status;
use crate::shm::recall::ID_END;
use crate::transport::protocol::in_flight::{Receive, RequestTable, Send};
use crate::{Error, ErrorKind, Result};
use std::collections::TryReserveError;
use std::ops::Range;
use typepack_engine::reserve::{Grow, SPARE, spare};

/// An operation in flight, or the result of a completed one.
#[derive(Debug)]
pub enum Request {
    /// A send in flight.
    Send(Send),
    /// A receive in flight.
    Receive(Receive),
    /// An operation that a source of progress works on and completes.
    Source(Owner),
    /// A complete request whose result has not been fetched.
    Done(Result<Status>),
}

impl Request {
    /// Returns whether this is a send in flight to a rank other than `own`.
    #[inline]
    fn is_send_but_to(&self, own: usize) -> bool {
        matches!(self, Self::Send(send) if send.dest.index() != own)
    }
}

/// The source of progress (`endpoint/sources.rs`) that owns a request, and the name that the source has for
/// the request.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// Number of the source.
    pub source: u32,
    /// The source's name for the request. Only the source knows what the value means.
    pub token: u64,
}

/// All generations are below this number, because all ids are below [`ID_END`] and the generation is the
/// high half of an id.
const GENERATIONS: u32 = (ID_END >> 32) as u32;

/// A table with at most this number of entries does not shrink.
const SMALL: usize = 1024;

/// The table shrinks if fewer than one in this number of its entries is in use.
const SPARSE: usize = 8;

#[derive(Debug)]
struct Entry {
    generation: u32,
    orphan: bool,
    /// The source that gets the result, if the request has an owner. No thread may wait for a request that
    /// has an owner.
    owner: Option<Owner>,
    /// The entry after this one in the list of results.
    next: u32,
    request: Option<Request>,
}

/// The end of the list of results.
const NONE: u32 = u32::MAX;

/// The table of the requests of this process.
#[derive(Debug)]
pub struct Requests {
    /// This rank.
    own: usize,
    entries: Vec<Entry>,
    unused: Vec<u32>,
    /// The generation of the first request of a new entry.
    first: u32,
    /// Number of requests that have left the table since the last call of `shrink`.
    closed: usize,
    in_flight: usize,
    /// Number of sends in flight to other ranks.
    sends: usize,
    completions: u64,
    /// The first and the last result of requests that have owners, which the owners have not received yet. Such a
    /// result stays in the entry of its request, so that no request that ends allocates; the number of the request
    /// names nothing any more.
    collected: (u32, u32),
    /// The source that must get each of its results before this rank reads the next envelope.
    prompt: Option<u32>,
    /// Whether a request of that source has completed since the last call of [`Requests::take_stop`].
    stops: bool,
    /// The first request for which [`fetch`](Self::fetch) or [`is_complete`](Self::is_complete) has said that it is not
    /// complete, and the number of such requests, since the last call of [`ask_anew`](Self::ask_anew).
    asked: (u64, u32),
}

impl Requests {
    /// Creates an empty table for rank `own`.
    pub fn new(own: usize) -> Self {
        Self {
            own,
            entries: Vec::new(),
            unused: Vec::new(),
            first: 1,
            closed: 0,
            in_flight: 0,
            sends: 0,
            completions: 0,
            collected: (NONE, NONE),
            prompt: None,
            stops: false,
            asked: (0, 0),
        }
    }

    /// From now on, source `source` gets each of its results before this rank reads the next envelope. Such a source
    /// starts a receive for the envelope that follows, so that the data of this envelope need not be copied twice.
    pub fn set_prompt(&mut self, source: u32) {
        self.prompt = Some(source);
    }

    /// Returns whether the rank must not read further envelopes before the sources have received their results.
    #[inline]
    pub fn stops(&self) -> bool {
        self.stops
    }

    /// Returns what [`stops`](Self::stops) returns, which is false afterwards.
    #[inline]
    pub fn take_stop(&mut self) -> bool {
        std::mem::take(&mut self.stops)
    }

    /// Makes room for another request. All entries have room in the list of unused entries, so that no request that
    /// ends allocates. Some entries stay free for the steps that [`insist`](typepack_engine::reserve::insist) runs.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    #[inline]
    pub fn make_room(&mut self) -> Result<()> {
        let room = self.entries.capacity();
        if self.unused.len() + room - self.entries.len() > SPARE && self.unused.capacity() >= room {
            return Ok(());
        }
        self.make_room_for(1)
    }

    /// Makes room for `more` requests, as [`make_room`](Self::make_room) does for one.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    #[cold]
    pub fn make_room_for(&mut self, more: usize) -> Result<()> {
        let grow = |requests: &mut Self| -> std::result::Result<(), TryReserveError> {
            let vacant =
                requests.unused.len() + requests.entries.capacity() - requests.entries.len();
            if vacant < more + spare() {
                requests.entries.grow((more + spare()).saturating_sub(requests.unused.len()))?;
            }
            let used = requests.entries.capacity() - requests.unused.len();
            requests.unused.grow(used)
        };
        grow(self).map_err(|_| no_memory("another request"))
    }

    /// Opens a request in flight and returns its number. A caller that can fail calls [`make_room`](Self::make_room)
    /// before.
    pub fn open(&mut self, request: Request) -> u64 {
        self.in_flight += 1;
        self.sends += usize::from(request.is_send_but_to(self.own));
        match self.unused.pop() {
            Some(index) => {
                let entry = &mut self.entries[index as usize];
                entry.orphan = false;
                entry.owner = None;
                entry.request = Some(request);
                u64::from(entry.generation) << 32 | u64::from(index)
            }
            None => {
                let index = self.entries.len() as u64;
                let (generation, request) = (self.first, Some(request));
                self.entries.push(Entry {
                    generation,
                    orphan: false,
                    owner: None,
                    next: NONE,
                    request,
                });
                u64::from(generation) << 32 | index
            }
        }
    }

    #[inline]
    fn entry(&mut self, id: u64) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(id as u32 as usize)?;
        (u64::from(entry.generation) == id >> 32).then_some(entry)
    }

    /// Returns the request with the number `id`, if it exists.
    pub fn get(&mut self, id: u64) -> Option<&mut Request> {
        self.entry(id)?.request.as_mut()
    }

    /// Returns the send in flight with the number `id`, if it exists.
    pub fn send(&mut self, id: u64) -> Option<&mut Send> {
        match self.get(id) {
            Some(Request::Send(send)) => Some(send),
            _ => None,
        }
    }

    /// Returns whether a request in flight has the number `id`.
    pub fn is_in_flight(&self, id: u64) -> bool {
        self.entries.get(id as u32 as usize).is_some_and(|entry| {
            u64::from(entry.generation) == id >> 32
                && !matches!(entry.request, Some(Request::Done(_)) | None)
        })
    }

    /// Returns whether a send in flight has the number `id`.
    pub fn is_send(&self, id: u64) -> bool {
        self.entries.get(id as u32 as usize).is_some_and(|entry| {
            u64::from(entry.generation) == id >> 32
                && matches!(entry.request, Some(Request::Send(_)))
        })
    }

    /// Returns the receive in flight with the number `id`.
    pub fn receive(&mut self, id: u64) -> Option<&mut Receive> {
        match self.get(id) {
            Some(Request::Receive(receive)) => Some(receive),
            _ => None,
        }
    }

    /// Returns the owner of request `id`, if the request is an operation that a source of progress works on.
    pub fn source(&mut self, id: u64) -> Option<Owner> {
        match self.get(id) {
            Some(Request::Source(owner)) => Some(*owner),
            _ => None,
        }
    }

    /// Makes a source of progress the owner of a request. The source gets the result, and no thread waits for
    /// the request. The request may be complete already: a send that finds other items in the queue to its
    /// receiver gets a number, and may then go out with these items before its call returns.
    pub fn own(&mut self, id: u64, owner: Owner) {
        let Some(entry) = self.entry(id) else { return };
        entry.owner = Some(owner);
        if matches!(entry.request, Some(Request::Done(_))) {
            self.collect(id);
        }
    }

    /// Puts the complete request `id`, which has an owner, at the end of the list of results. The number `id` names
    /// nothing any more.
    fn collect(&mut self, id: u64) {
        let at = id as u32;
        let Some(entry) = self.entry(id) else { return };
        entry.generation += 1;
        entry.next = NONE;
        match self.collected {
            (NONE, _) => self.collected.0 = at,
            (_, last) => self.entries[last as usize].next = at,
        }
        self.collected.1 = at;
    }

    /// Changes the tokens of the requests that a source owns, also of those whose results it has not received yet.
    /// `rename` gets a token, and whether the request is complete, and returns the new token, or `None` to keep the old
    /// one. The call looks at all requests.
    #[cold]
    pub fn disown(&mut self, source: u32, mut rename: impl FnMut(u64, bool) -> Option<u64>) {
        for entry in &mut self.entries {
            if let (Some(owner), Some(request)) = (&mut entry.owner, &entry.request)
                && owner.source == source
                && let Some(token) = rename(owner.token, matches!(request, Request::Done(_)))
            {
                owner.token = token;
            }
        }
    }

    /// Returns whether a source of progress owns a request. The program's calls must not end such a request.
    pub fn is_owned(&mut self, id: u64) -> bool {
        self.entry(id).is_some_and(|entry| entry.owner.is_some())
    }

    /// Removes and returns the next result of a request that has an owner, together with the owner.
    #[inline]
    pub fn collected(&mut self) -> Option<(Owner, Result<Status>)> {
        if !self.has_collected() {
            return None;
        }
        let at = self.collected.0;
        let entry = self.entries.get_mut(at as usize)?;
        self.collected.0 = entry.next;
        let (owner, request, is_last) =
            (entry.owner, entry.request.take(), entry.generation == GENERATIONS);
        self.leave(at, !is_last);
        match request {
            Some(Request::Done(result)) => Some((owner?, result)),
            _ => None,
        }
    }

    /// Returns whether there is a result that its owner has not received yet.
    #[inline]
    pub fn has_collected(&self) -> bool {
        self.collected.0 != NONE
    }

    /// Completes a request in flight. If the request is an orphan, the function drops the request and its
    /// result, because no thread will ask for the result.
    pub fn complete(&mut self, id: u64, result: Result<Status>) {
        let own = self.own;
        let Some(entry) = self.entry(id) else { return };
        let sent = entry.request.as_ref().is_some_and(|request| request.is_send_but_to(own));
        let (orphan, owner) = (entry.orphan, entry.owner);
        if let Some(owner) = owner {
            entry.request = Some(Request::Done(result));
            self.collect(id);
            self.stops |= Some(owner.source) == self.prompt;
        } else if orphan {
            self.close(id);
        } else {
            entry.request = Some(Request::Done(result));
        }
        self.sends -= usize::from(sent);
        self.in_flight -= 1;
        self.completions += 1;
    }

    /// Completes the receive in flight `id` with a message whose data is at hand: calls `unpack` with the receive,
    /// and then completes the receive with the result that `unpack` returns. This saves the second search that a
    /// call of [`receive`](Self::receive) and one of [`complete`](Self::complete) would make. Returns false if there
    /// is no such receive.
    #[inline]
    pub fn deliver(&mut self, id: u64, unpack: impl FnOnce(&Receive) -> Result<Status>) -> bool {
        let Some(entry) = self.entry(id) else { return false };
        let Some(Request::Receive(receive)) = &entry.request else { return false };
        let result = unpack(receive);
        if entry.owner.is_none() && !entry.orphan {
            entry.request = Some(Request::Done(result));
            self.in_flight -= 1;
            self.completions += 1;
        } else {
            self.complete(id, result);
        }
        true
    }

    /// Returns whether a message in one of the contexts is in flight, with or without a thread that waits for it.
    pub fn has_in(&self, contexts: &Range<u64>) -> bool {
        self.entries.iter().any(|entry| match &entry.request {
            Some(Request::Send(send)) => contexts.contains(&send.label.context),
            Some(Request::Receive(receive)) => contexts.contains(&receive.context),
            Some(Request::Source(_) | Request::Done(_)) | None => false,
        })
    }

    /// Returns whether a request is complete or has left the table.
    pub fn is_complete(&mut self, id: u64) -> bool {
        let complete = matches!(self.get(id), Some(Request::Done(_)) | None);
        if !complete {
            self.note(id);
        }
        complete
    }

    /// Notes that a caller has asked for a request that is not complete.
    #[inline]
    fn note(&mut self, id: u64) {
        let (first, count) = self.asked;
        self.asked = (if count == 0 { id } else { first }, count.saturating_add(1));
    }

    /// Forgets for which requests callers have asked. A wait calls this function before each look.
    #[inline]
    pub fn ask_anew(&mut self) {
        self.asked.1 = 0;
    }

    /// Returns the first request that was not complete when a caller asked for it, and the number of such requests.
    pub fn asked(&self) -> (u64, u32) {
        self.asked
    }

    /// Removes a complete request and returns its result. Returns `None` if the request is not complete
    /// yet, and an error if `id` names no request or a request that a source owns. After the result has
    /// been returned, the number `id` names no request any more.
    pub fn fetch(&mut self, id: u64) -> Option<Result<Status>> {
        let Some(entry) = self.entry(id) else { return Some(Err(not_pending(id))) };
        match &mut entry.request {
            Some(Request::Done(result)) => {
                let result = std::mem::replace(result, Ok(Status { source: 0, tag: 0, bytes: 0 }));
                entry.request = None;
                self.free(id);
                Some(result)
            }
            Some(_) if entry.owner.is_none() => {
                self.note(id);
                None
            }
            _ => Some(Err(not_pending(id))),
        }
    }

    /// Makes a request an orphan: no thread will ask for its result, and the request leaves the table when it
    /// completes.
    pub fn orphan(&mut self, id: u64) {
        if let Some(entry) = self.entry(id) {
            entry.orphan = true;
            entry.owner = None;
            if matches!(entry.request, Some(Request::Done(_))) {
                self.close(id);
            }
        }
    }

    /// Drops a request in flight. The caller guarantees that no queue and no thread still refers to the
    /// request.
    pub fn cancel(&mut self, id: u64) {
        if !self.is_complete(id) {
            self.in_flight -= 1;
            self.completions += 1;
            let request = self.close(id);
            self.sends -= usize::from(request.is_some_and(|r| r.is_send_but_to(self.own)));
        }
    }

    fn close(&mut self, id: u64) -> Option<Request> {
        let request = self.entry(id)?.request.take();
        self.free(id);
        request
    }

    /// Makes the entry of a request that has left the table free for another request.
    #[inline]
    fn free(&mut self, id: u64) {
        let Some(entry) = self.entry(id) else { return };
        // After its last generation, an entry of the table is never used again. So all ids are below
        // `recall::ID_END`.
        let again = entry.generation < GENERATIONS - 1;
        entry.generation += u32::from(again);
        self.leave(id as u32, again);
    }

    /// Counts an entry that its request has left. The entry may be used `again` unless it has had its last generation.
    #[inline]
    fn leave(&mut self, at: u32, again: bool) {
        if again {
            self.unused.push(at);
        }
        self.closed += 1;
        if self.closed > SMALL.max(self.entries.len() / 2) {
            self.shrink();
        }
    }

    /// Removes the free entries at the end of the table if few entries are in use. A new entry in their place begins
    /// with a generation that no request in these entries has had, so that no old number becomes valid again.
    #[cold]
    #[inline(never)]
    fn shrink(&mut self) {
        self.closed = 0;
        let len = self.entries.len();
        if len <= SMALL || (len - self.unused.len()) * SPARSE >= len {
            return;
        }
        // An entry that has had its last generation is not free, so it and the entries before it stay.
        while let Some(entry) = self.entries.last()
            && entry.request.is_none()
            && entry.generation < GENERATIONS - 1
        {
            self.first = self.first.max(entry.generation);
            self.entries.pop();
        }
        self.entries.shrink_to_fit();
        let len = self.entries.len() as u32;
        self.unused.retain(|at| *at < len);
        // The entries at the start of the table are used first, so that those at its end stay free.
        self.unused.sort_unstable_by(|a, b| b.cmp(a));
        // The entries that are left still have room in the list.
        self.unused.shrink_to(self.entries.capacity());
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the number of sends in flight to other ranks.
    pub fn sends_in_flight(&self) -> usize {
        self.sends
    }

    /// Returns the number of requests that have completed so far. If this number has changed, a waiting
    /// thread should look again.
    pub fn completions(&self) -> u64 {
        self.completions
    }
}

/// Returns the error for a table that cannot grow for `what`.
#[cold]
pub fn no_memory(what: &str) -> Error {
    Error::new(ErrorKind::NoMemory, "memory", format!("there is no memory for {what}"))
}

/// Returns the error for the number of a request whose result no caller can get.
#[cold]
fn not_pending(id: u64) -> Error {
    Error::new(
        ErrorKind::Request,
        "request",
        format!("{id:#x} is not pending; its result may have been taken already"),
    )
}

impl RequestTable for Requests {
    #[inline]
    fn send(&mut self, id: u64) -> Option<&mut Send> {
        Self::send(self, id)
    }
    #[inline]
    fn receive(&mut self, id: u64) -> Option<&mut Receive> {
        Self::receive(self, id)
    }
    #[inline]
    fn complete(&mut self, id: u64, result: Result<Status>) {
        Self::complete(self, id, result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::label::{Label, Sender};
    use crate::message::payload::{Sink, Supply};
    use crate::process::Process;
    use crate::transport::protocol::in_flight::SendStage;

    fn receive() -> Request {
        Request::Receive(Receive {
            context: 0,
            source: Sender::Any,
            sink: Sink::Discard,
            capacity: 0,
            stream: None,
        })
    }

    /// Results wait for their owners in the entries of the requests: in order, without an allocation, and under no
    /// number that the program could use.
    #[test]
    fn results_wait_for_their_owners_in_the_table() {
        let mut requests = Requests::new(0);
        requests.make_room_for(6).expect("room");
        let room = (requests.entries.capacity(), requests.unused.capacity());
        for round in 0..3 {
            let ids: Vec<u64> = (0..6).map(|_| requests.open(receive())).collect();
            for (token, &id) in (0..).zip(&ids) {
                requests.own(id, Owner { source: 3, token });
            }
            for &id in ids.iter().rev() {
                requests.complete(id, Ok(Status { source: round, tag: 0, bytes: 0 }));
                assert!(requests.is_complete(id) && requests.get(id).is_none());
            }
            assert!(matches!(requests.fetch(ids[0]), Some(Err(_))));
            for token in (0..6).rev() {
                let (owner, result) = requests.collected().expect("a result");
                assert_eq!((owner.token, result.expect("a status").source), (token, round));
            }
            assert!(!requests.has_collected() && requests.collected().is_none());
            assert_eq!(requests.unused.len(), 6);
        }
        assert_eq!((requests.entries.capacity(), requests.unused.capacity()), room);
    }

    #[test]
    fn stale_and_foreign_numbers_name_nothing() {
        let mut requests = Requests::new(0);
        let first = requests.open(receive());
        let status = Status { source: 0, tag: 0, bytes: 0 };
        assert!(requests.fetch(first).is_none());
        requests.complete(first, Ok(status));
        assert_eq!(requests.fetch(first), Some(Ok(status)));
        let second = requests.open(receive());
        assert_ne!(first, second);
        for id in [first, 0, u64::MAX, 7 << 32] {
            assert!(requests.get(id).is_none());
            assert!(requests.fetch(id).expect("an answer").is_err());
        }
        assert_eq!(requests.in_flight(), 1);
    }

    #[test]
    fn the_result_of_a_request_with_an_owner_is_no_callers() {
        let mut requests = Requests::new(0);
        let id = requests.open(receive());
        requests.own(id, Owner { source: 3, token: 4 });
        assert!(requests.is_owned(id));
        assert!(requests.fetch(id).expect("an answer").is_err());
        requests.complete(id, Ok(Status { source: 0, tag: 0, bytes: 0 }));
        assert!(!requests.is_owned(id));
        assert!(requests.collected().is_some());
    }

    #[test]
    fn an_owner_gets_a_result_that_is_older_than_its_claim() {
        let mut requests = Requests::new(0);
        let id = requests.open(receive());
        requests.complete(id, Ok(Status { source: 0, tag: 0, bytes: 0 }));
        requests.own(id, Owner { source: 3, token: 4 });
        assert!(matches!(requests.collected(), Some((Owner { source: 3, token: 4 }, Ok(_)))));
        assert!(requests.get(id).is_none() && requests.in_flight() == 0);
    }

    #[test]
    fn a_delivered_receive_is_complete() {
        let mut requests = Requests::new(0);
        let status = Status { source: 2, tag: 3, bytes: 4 };
        let [plain, owned, orphan] = [(); 3].map(|()| requests.open(receive()));
        requests.own(owned, Owner { source: 3, token: 4 });
        requests.orphan(orphan);
        let completions = requests.completions();
        for id in [plain, owned, orphan] {
            assert!(requests.deliver(id, |_| Ok(status)));
        }
        assert_eq!((requests.in_flight(), requests.completions()), (0, completions + 3));
        assert_eq!(requests.fetch(plain), Some(Ok(status)));
        assert!(matches!(requests.collected(), Some((Owner { source: 3, token: 4 }, Ok(_)))));
        assert!(requests.collected().is_none());
        for id in [plain, owned, orphan, 0, u64::MAX] {
            assert!(requests.get(id).is_none());
            assert!(!requests.deliver(id, |_| panic!("{id:#x} names no receive")));
        }
        // A complete request is no receive any more.
        let done = requests.open(receive());
        requests.complete(done, Ok(status));
        assert!(!requests.deliver(done, |_| panic!("the receive is complete")));
        assert_eq!(requests.fetch(done), Some(Ok(status)));
    }

    /// A source can rename its requests, complete or not, and only its own.
    #[test]
    fn a_source_renames_its_requests() {
        let mut requests = Requests::new(0);
        let ids = [1, 2, 3].map(|source| {
            let id = requests.open(receive());
            requests.own(id, Owner { source: source.min(2), token: source.into() });
            id
        });
        for id in &ids[..2] {
            requests.complete(*id, Ok(Status { source: 0, tag: 0, bytes: 0 }));
        }
        requests.disown(2, |token, is_over| Some(token * 10 + u64::from(is_over)));
        requests.complete(ids[2], Ok(Status { source: 0, tag: 0, bytes: 0 }));
        let tokens = [(); 3].map(|()| requests.collected().expect("a result").0.token);
        assert_eq!(tokens, [1, 21, 30]);
        assert!(!requests.has_collected());
    }

    #[test]
    fn orphans_leave_when_they_are_complete() {
        let mut requests = Requests::new(0);
        let id = requests.open(receive());
        requests.orphan(id);
        assert!(requests.receive(id).is_some());
        requests.complete(id, Ok(Status { source: 0, tag: 0, bytes: 0 }));
        assert!(requests.get(id).is_none());
        assert_eq!(requests.in_flight(), 0);
    }

    #[test]
    fn the_table_shrinks_after_a_flood() {
        let mut requests = Requests::new(0);
        let status = Status { source: 0, tag: 0, bytes: 0 };
        let kept = requests.open(receive());
        let mut old = Vec::new();
        for _ in 0..3 {
            let ids: Vec<u64> = (0..50_000).map(|_| requests.open(receive())).collect();
            assert!(requests.entries.capacity() > 50_000);
            for id in &ids {
                requests.complete(*id, Ok(status));
                assert_eq!(requests.fetch(*id), Some(Ok(status)));
            }
            // Further messages come one at a time. After as many of them as the flood had, the table has
            // shrunk.
            for _ in 0..50_000 {
                let id = requests.open(receive());
                requests.complete(id, Ok(status));
                assert_eq!(requests.fetch(id), Some(Ok(status)));
                old.push(id);
            }
            let room = [requests.entries.capacity(), requests.unused.capacity()];
            assert!(room.iter().all(|room| *room <= 2 * SMALL), "{room:?}");
            old.extend(ids);
        }
        assert!(requests.receive(kept).is_some());
        let mut all = old.clone();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), old.len(), "a number was used twice");
        assert!(old.iter().all(|id| requests.get(*id).is_none()));
        assert_eq!(requests.in_flight(), 1);
    }

    #[test]
    fn all_entries_have_room_in_the_list_of_unused_ones() {
        let mut requests = Requests::new(0);
        let mut ids = Vec::new();
        for _ in 0..20 * SMALL {
            requests.make_room().expect("room");
            ids.push(requests.open(receive()));
        }
        // As if there had been memory for more entries and not for the list.
        requests.unused = Vec::new();
        requests.make_room().expect("room");
        for id in ids {
            assert!(requests.unused.capacity() >= requests.entries.capacity());
            requests.cancel(id);
        }
        // After as many requests one at a time, the table shrinks.
        for _ in 0..20 * SMALL {
            requests.make_room().expect("room");
            let id = requests.open(receive());
            requests.cancel(id);
            assert!(requests.unused.capacity() >= requests.entries.capacity());
        }
        assert!(requests.entries.len() < 20 * SMALL);
    }

    #[test]
    fn sends_to_other_ranks_are_counted_until_they_end() {
        let mut requests = Requests::new(1);
        let label = Label { context: 0, tag: 0, bytes: 0, types: 0 };
        let send = |dest| Send {
            dest: Process::new(dest),
            label,
            supply: Supply::Lost,
            synchronous: false,
            stage: SendStage::Queued,
            recall: None,
        };
        let ids = [0, 1, 2].map(|dest| requests.open(Request::Send(send(dest))));
        requests.open(receive());
        assert_eq!(requests.sends_in_flight(), 2);
        requests.orphan(ids[0]);
        assert_eq!(requests.sends_in_flight(), 2);
        requests.complete(ids[0], Ok(Status { source: 1, tag: 0, bytes: 0 }));
        requests.complete(ids[1], Ok(Status { source: 1, tag: 0, bytes: 0 }));
        assert_eq!(requests.sends_in_flight(), 1);
        requests.cancel(ids[2]);
        requests.cancel(ids[2]);
        assert_eq!((requests.sends_in_flight(), requests.in_flight()), (0, 1));
    }
}
