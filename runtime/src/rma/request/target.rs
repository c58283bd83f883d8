//! The windows whose requests this rank serves (`serve.rs`), as a source of progress.
//!
//! [`Hosts`] keeps a receive for the requests of each window as long as the window exists. If the receive cannot be
//! posted, or an answer cannot be sent, because memory has run out, the source asks for turns and tries again.

use super::place::Memory;
use super::serve::{Host, Hosted};
use crate::comm::{Communicator, Space};
use crate::endpoint::engine::MessageEngine;
use crate::endpoint::progress::Endpoint;
use crate::endpoint::requests::Owner;
use crate::endpoint::sources::Source;
use crate::message::{Operation, Status};
use crate::process::Process;
use crate::rma::window::words::Words;
use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep of this rank before it tries again what has failed.
const RETRY: Duration = Duration::from_millis(1);

/// The windows whose requests this rank serves: a source of progress.
#[derive(Debug)]
pub(in crate::rma) struct Hosts {
    number: u32,
    windows: Vec<Option<Hosted>>,
    /// Whether a window may have something to try again.
    stalls: bool,
}

/// The tokens of a window's requests: the index of the window, and for a long put or get the index of its message plus
/// one.
pub(in crate::rma) fn token_of(index: usize, long: usize) -> u64 {
    index as u64 | (long as u64) << 32
}

/// Returns whether a receive has failed because of its message: the message has gone, and was no request of this
/// library.
fn is_of_message(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Type)
}

/// Adds the sources of requests and of answers to an endpoint.
///
/// # Errors
/// Returns `ErrorKind::State` after finalization.
pub(crate) fn register(endpoint: &Endpoint) -> Result<()> {
    endpoint.with_core(|core| {
        core.register(|number| Hosts { number, windows: Vec::new(), stalls: false });
        // The message of a long put follows its request in the ring. If the receive of the message exists when the rank
        // reads the message, the data goes straight to its place.
        core.with(|hosts: &mut Hosts, engine| engine.requests().set_prompt(hosts.number))
    })??;
    super::replies::register(endpoint)
}

impl Hosts {
    /// First serves the requests of a window that have arrived already, and then posts the receive of the next request.
    fn post(&mut self, engine: &mut MessageEngine, index: usize) {
        let Some(Some(hosted)) = self.windows.get_mut(index) else { return };
        loop {
            match hosted.receive_request(engine) {
                Ok(Operation::Done(status)) => hosted.serve(engine, (self.number, index), status),
                Ok(Operation::Pending(id)) => {
                    hosted.receive = Some(id);
                    let token = token_of(index, 0);
                    engine.requests().own(id, Owner { source: self.number, token });
                    break;
                }
                Err(error) if is_of_message(&error) => {}
                Err(error) => {
                    hosted.stop(error.class());
                    break;
                }
            }
        }
        self.stalls |= hosted.stalls();
    }

    /// Calls `change` with a window, if it exists.
    fn with(&mut self, index: usize, change: impl FnOnce(&mut Hosted)) {
        if let Some(Some(hosted)) = self.windows.get_mut(index) {
            change(hosted);
        }
    }
}

impl Source for Hosts {
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>) {
        let (index, long) = (token as u32 as usize, (token >> 32) as usize);
        if long > 0 {
            let owner = (self.number, index);
            self.with(index, |hosted| hosted.transferred(engine, owner, long - 1, result));
            self.stalls |= self.windows.get(index).is_some_and(has_stalled);
            return;
        }
        // A message that is too long is no request.
        if let Ok(status) = result {
            let owner = (self.number, index);
            self.with(index, |hosted| hosted.serve(engine, owner, status));
        }
        self.post(engine, index);
    }

    fn progress(&mut self, engine: &mut MessageEngine) -> Result<bool> {
        let mut moved = false;
        for index in 0..self.windows.len() {
            let Some(Some(hosted)) = self.windows.get_mut(index) else { continue };
            if !hosted.stalls() {
                continue;
            }
            hosted.send_again(engine);
            if hosted.receive.is_none() {
                self.post(engine, index);
            }
            moved |= !self.windows.get(index).is_some_and(has_stalled);
        }
        self.stalls = self.windows.iter().any(has_stalled);
        Ok(moved)
    }

    fn nap(&self) -> Option<Duration> {
        self.stalls.then_some(RETRY)
    }

    fn detach(&mut self, _: &mut MessageEngine, _: u64) -> bool {
        true
    }

    fn is_needed(&self, _: &MessageEngine) -> bool {
        false
    }
}

/// Returns whether a window exists and has something to try again.
fn has_stalled(window: &Option<Hosted>) -> bool {
    window.as_ref().is_some_and(Hosted::stalls)
}

/// Serves the requests of a window until the value is dropped.
pub(in crate::rma) struct TargetSide {
    endpoint: Arc<Endpoint>,
    index: usize,
}

impl fmt::Debug for TargetSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosting").field("index", &self.index).finish_non_exhaustive()
    }
}

impl TargetSide {
    /// Begins to serve the requests with the tag `tag` in the message space of `comm` for windows.
    pub fn begin(
        comm: &Communicator,
        tag: i32,
        words: &Arc<Words>,
        memory: Memory,
    ) -> Result<Self> {
        let endpoint = comm.endpoint().clone();
        let slot = |rank| comm.process(rank, "rank", ErrorKind::Rank).map(Process::index);
        let slots = (0..comm.size()).map(slot).collect::<Result<_>>()?;
        let (rank, own) = (comm.rank(), endpoint.rank());
        let host = Host { words: words.clone(), rank, own, memory, slots };
        let context = comm.space(Space::Window);
        let hosted = Hosted::new(host, context, tag);
        let index = endpoint.with_core(|core| {
            core.with(|hosts: &mut Hosts, engine| {
                let free = hosts.windows.iter().position(Option::is_none);
                let index = free.unwrap_or_else(|| {
                    hosts.windows.push(None);
                    hosts.windows.len() - 1
                });
                hosts.windows[index] = Some(hosted);
                hosts.post(engine, index);
                index
            })
        })??;
        Ok(Self { endpoint, index })
    }

    /// Ends the messages that use memory in a range of addresses. Requests that come later must not name the memory any
    /// more: the caller has removed the memory from the table of attached memory.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn withdraw(&self, range: std::ops::Range<i128>) -> Result<()> {
        self.endpoint.with_core(|core| {
            core.with(|hosts: &mut Hosts, engine| {
                let owner = (hosts.number, self.index);
                hosts.with(self.index, |hosted| hosted.withdraw(engine, owner, &range));
            })
        })?
    }
}

impl Drop for TargetSide {
    fn drop(&mut self) {
        let index = self.index;
        // After finalization `with_core` fails. The entry then stays in the list, and nothing uses it.
        let removed = self.endpoint.with_core(|core| {
            core.with(|hosts: &mut Hosts, engine| {
                let mut hosted = hosts.windows.get_mut(index).and_then(Option::take);
                if let Some(hosted) = &mut hosted {
                    hosted.close(engine);
                }
                hosted
            })
        });
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::bytes;
    use crate::endpoint::engine::Packed;
    use crate::message::label::Label;
    use crate::message::payload::SendMode;
    use crate::message::typecheck::UNKNOWN;
    use crate::rma::request::form::{Kind, REQUEST, Request, WORD};
    use crate::rma::window::words::{SharedWord, Word, classes, said};
    use crate::shm::segment::{JobFlags, Segment};
    use crate::transport::link::fabric::Fabric;
    use typepack_engine::Elements;

    const CONTEXT: u64 = 5;
    const TAG: i32 = 8;
    /// Number of words of the window's memory.
    const WORDS: usize = 8 << 10;

    /// Rank 0 sends requests to rank 1, which serves a window. Both are in this process.
    struct Scene {
        engines: [MessageEngine; 2],
        hosts: Hosts,
        words: Arc<Words>,
        memory: Box<[u64]>,
    }

    impl Scene {
        fn new() -> Self {
            let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
            let segment = Arc::new(segment);
            let engine = |rank| {
                let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
                MessageEngine::new(fabric, 4 << 10)
            };
            let mut engines = [engine(0), engine(1)];
            let words = Arc::new(Words::in_this_process(2));
            let mut memory = vec![0; WORDS].into_boxed_slice();
            let piece = Memory::Piece(memory.as_mut_ptr() as usize, 8 * WORDS as u64);
            let (words_too, slots) = (words.clone(), Box::new([0, 1]));
            let host = Host { words: words_too, rank: 1, own: 1, memory: piece, slots };
            let windows = vec![Some(Hosted::new(host, CONTEXT, TAG))];
            let mut hosts = Hosts { number: 0, windows, stalls: false };
            hosts.post(&mut engines[1], 0);
            Self { engines, hosts, words, memory }
        }

        /// Sends `data` behind the words of a request.
        fn send(&mut self, request: &Request, data: &[u8]) {
            let (words, used) = request.encode();
            let mut message: Vec<u8> = words[..used].iter().flat_map(|w| w.to_ne_bytes()).collect();
            message.extend_from_slice(data);
            self.send_bytes(TAG, &mut message);
        }

        fn send_bytes(&mut self, tag: i32, data: &mut [u8]) {
            let bytes = data.len() as u64;
            let label = Label { context: CONTEXT, tag, bytes, types: UNKNOWN };
            let pack = |to: *mut u8| {
                // SAFETY: the engine has room for all bytes of the message.
                unsafe { to.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
            };
            // SAFETY: `pack` writes the bytes of the message, which are fewer than `EAGER_MAX`.
            let sent = unsafe { self.engines[0].send_packed(label, Process::new(1), pack) };
            assert_eq!(sent.expect("sent"), Packed::Sent);
        }

        /// Makes both ranks move messages until rank 1 says that `served` requests are over.
        fn await_served(&mut self, served: u64) {
            for _ in 0..1000 {
                self.turn();
                if self.served() == served {
                    return;
                }
            }
            panic!("{} of {served} requests are over", self.served());
        }

        fn turn(&mut self) {
            let [origin, target] = &mut self.engines;
            target.progress().expect("a turn");
            while let Some((owner, result)) = target.requests().collected() {
                self.hosts.completed(target, owner.token, result);
            }
            target.requests().take_stop();
            origin.progress().expect("a turn");
        }

        fn said(&self, index: usize) -> u64 {
            self.words.get(0, Word::Said(1, index)).expect("a word").value()
        }

        fn served(&self) -> u64 {
            self.said(said::SERVED)
        }

        /// Returns the number of requests of rank 1 that are in flight.
        fn in_flight(&mut self) -> usize {
            self.engines[1].requests().in_flight()
        }
    }

    fn put(offset: i64) -> Request {
        Request::new(Kind::Put, offset)
    }

    fn long_put(offset: i64, length: u64, tag: i32) -> Request {
        Request { length, tag, ..Request::new(Kind::LongPut, offset) }
    }

    #[test]
    fn a_message_that_is_too_long_does_not_end_the_service() {
        let mut scene = Scene::new();
        // The receive takes the first one; the others wait in the queue when it is posted again.
        for _ in 0..3 {
            scene.send_bytes(TAG, &mut [1; REQUEST + WORD]);
        }
        scene.send(&put(8), &7_u64.to_ne_bytes());
        scene.await_served(1);
        assert_eq!(scene.memory[..3], [0, 7, 0]);
        scene.send(&put(16), &9_u64.to_ne_bytes());
        scene.await_served(2);
        assert_eq!(scene.memory[..3], [0, 7, 9]);
    }

    #[test]
    fn requests_count_in_their_order() {
        let mut scene = Scene::new();
        scene.send(&put(0), &[1; 8]);
        scene.send(&long_put(8, 8 * 4096, 7), &[]);
        scene.send(&put(8 * 8000), &[2; 8]);
        scene.await_served(1);
        (0..20).for_each(|_| scene.turn());
        // The second put is over, but not the one before it.
        assert_eq!((scene.served(), scene.memory[8000]), (1, 0x0202_0202_0202_0202));
        let mut data = vec![3_u64; 4096];
        let bytes = 8 * data.len() as u64;
        let label = Label { context: CONTEXT, tag: 7, bytes, types: UNKNOWN };
        let plan = bytes_plan();
        let layout = Elements { origin: data.as_mut_ptr().cast(), plan: &plan, count: bytes };
        // SAFETY: the data are readable and do not change until the engines are dropped, which have moved them then.
        let sent =
            unsafe { scene.engines[0].send(&layout, label, Process::new(1), SendMode::Standard) };
        sent.expect("a send");
        scene.await_served(3);
        assert!(scene.memory[1..=4096].iter().all(|word| *word == 3));
        assert_eq!(scene.in_flight(), 1);
    }

    fn bytes_plan() -> crate::Plan {
        bytes().expect("a plan").clone()
    }

    #[test]
    fn refused_long_puts_leave_nothing_behind() {
        let mut scene = Scene::new();
        // The range is outside of the window's memory. The calling rank says that the message does not come.
        scene.send(&long_put(-8, 1 << 14, 3), &[]);
        scene.await_served(1);
        assert_eq!(scene.in_flight(), 2);
        let other = Request { tag: 7, ..Request::new(Kind::Forget, 0) };
        scene.send(&other, &[]);
        (0..5).for_each(|_| scene.turn());
        assert_eq!(scene.in_flight(), 2);
        scene.send(&Request { tag: 3, ..other }, &[]);
        (0..5).for_each(|_| scene.turn());
        assert_eq!(scene.in_flight(), 1);
        // No message of a put has the tag of requests.
        scene.send(&long_put(0, 1 << 14, TAG), &[]);
        scene.await_served(2);
        assert_eq!(scene.in_flight(), 1);
        // The message comes, and is longer than the elements: before the request, so that the receive fails at once,
        // and after it.
        scene.send_bytes(11, &mut [1; 4096]);
        scene.turn();
        scene.send(&long_put(0, 16, 11), &[]);
        scene.await_served(3);
        assert_eq!(scene.in_flight(), 1);
        scene.send(&long_put(0, 16, 15), &[]);
        (0..5).for_each(|_| scene.turn());
        assert_eq!((scene.served(), scene.in_flight()), (3, 2));
        scene.send_bytes(15, &mut [1; 4096]);
        scene.await_served(4);
        assert_eq!(scene.in_flight(), 1);
        let word = scene.words.get(0, Word::Said(1, said::REFUSED)).expect("a word");
        assert_ne!(classes::take(word), 0);
        scene.send(&put(8 * 100), &[4; 8]);
        scene.await_served(5);
    }
}
