//! Tests one rank's endpoint without other processes.

use super::super::requests::{Owner, Request};
use super::super::sources::{Combine, Continuation, Panic};
use super::*;
use crate::shm::segment::{JobFlags, Segment};
use crate::{Datatype, Named};
use std::sync::Arc;

/// Checks that a thread that sleeps in a probe wakes up when another thread sends a message to this rank
/// itself. No other rank rings the doorbell for such a message.
#[test]
fn a_message_to_oneself_wakes_the_poller() {
    let byte = Datatype::named(Named::U8).commit().expect("a plan");
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    let fabric = Fabric::join(Arc::new(segment), 0).expect("rank 0");
    let endpoint = Endpoint::new(fabric.clone(), 4, Forced::Nothing, Duration::ZERO);
    endpoint.lock().expect("the lock").sleepers.polled = true;
    let mut data = [1u8; 8];
    let layout = Elements { origin: data.as_mut_ptr(), plan: &byte, count: 8 };
    for bytes in [4, 8] {
        let seen = fabric.announce();
        let label = Label { context: 0, tag: 0, bytes, types: 0 };
        // SAFETY: `data` lives to the end of the test, and the endpoint runs no turn after that.
        unsafe { endpoint.send(&layout, label, Process::new(0)) }.expect("a send");
        assert_ne!(fabric.announce(), seen, "{bytes} bytes");
    }
}

/// A source of progress that owns no messages, and that has a continuation ready after a fixed number of
/// turns.
#[derive(Debug)]
struct Clock {
    number: u32,
    turns: u32,
    request: Option<u64>,
    continuations: u32,
}

impl ProgressSource for Clock {
    fn completed(&mut self, _: &mut MessageEngine, _: u64, _: Result<Status>) {}

    fn progress(&mut self, _: &mut MessageEngine) -> Result<bool> {
        self.turns = self.turns.saturating_sub(1);
        self.continuations += u32::from(self.turns == 0);
        Ok(false)
    }

    fn nap(&self) -> Option<Duration> {
        (self.turns > 0).then_some(Duration::from_millis(1))
    }

    fn has_continuation(&self) -> bool {
        self.continuations > 0
    }

    fn continuation(&mut self) -> Option<(u64, Continuation)> {
        self.continuations = self.continuations.checked_sub(1)?;
        let nothing = Combine::user(|_, _, _, _| {});
        Some((7, Continuation::Drop(nothing)))
    }

    fn ran(
        &mut self,
        engine: &mut MessageEngine,
        token: u64,
        panic: Option<Panic>,
    ) -> Option<Panic> {
        assert!(token == 7 && panic.is_none());
        if let Some(id) = self.request.take() {
            engine.requests().complete(id, Ok(Status { source: 0, tag: 0, bytes: 0 }));
        }
        panic
    }

    fn detach(&mut self, _: &mut MessageEngine, _: u64) -> bool {
        true
    }

    fn is_needed(&self, _: &MessageEngine) -> bool {
        false
    }
}

/// Checks that a waiting thread gives turns to a source that asks for turns, and that the thread runs the
/// source's continuation, even in a job of one rank.
#[test]
fn a_source_gets_turns_and_continuations_are_run() {
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    let pair = Fabric::join(Arc::new(segment), 0).expect("rank 0");
    for fabric in [Fabric::alone(), pair] {
        let endpoint = Endpoint::new(fabric, 4, Forced::Nothing, Duration::ZERO);
        let clock = |number| Clock { number, turns: 0, request: None, continuations: 0 };
        endpoint.register(clock).expect("an endpoint");
        let started = endpoint.begin(|core| {
            let id = core.with(|clock: &mut Clock, engine| {
                let owner = Owner { source: clock.number, token: 0 };
                let id = engine.requests().open(Request::Source(owner));
                (clock.turns, clock.request) = (5, Some(id));
                id
            })?;
            core.look_around();
            Ok(Operation::Pending(id))
        });
        let Ok(Operation::Pending(id)) = started else { panic!("{started:?}") };
        endpoint.wait(id, "").expect("an end");
    }
}

/// A source of progress whose next turn fails.
#[derive(Debug)]
struct Faulty {
    number: u32,
    fails: bool,
}

impl ProgressSource for Faulty {
    fn completed(&mut self, _: &mut MessageEngine, _: u64, _: Result<Status>) {}

    fn progress(&mut self, _: &mut MessageEngine) -> Result<bool> {
        match std::mem::take(&mut self.fails) {
            true => Err(Error::new(ErrorKind::Other, "source", "the turn fails")),
            false => Ok(false),
        }
    }

    fn nap(&self) -> Option<Duration> {
        Some(Duration::from_millis(1))
    }

    fn detach(&mut self, _: &mut MessageEngine, _: u64) -> bool {
        true
    }

    fn is_needed(&self, _: &MessageEngine) -> bool {
        false
    }
}

/// Checks that a message counts as sent if the turn after it fails: a window would count one request too few otherwise.
/// The next turn returns the error.
#[test]
fn an_error_behind_a_send_is_not_an_error_of_the_send() {
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    let fabric = Fabric::join(Arc::new(segment), 0).expect("rank 0");
    let byte = Datatype::named(Named::U8).commit().expect("a plan");
    let endpoint = Endpoint::new(fabric, 4, Forced::Nothing, Duration::ZERO);
    endpoint.register(|number| Faulty { number, fails: false }).expect("an endpoint");
    let fails = || {
        let change = |core: &mut Core| {
            core.with(|source: &mut Faulty, engine| {
                source.fails = true;
                // An operation waits for a turn.
                let owner = Owner { source: source.number, token: 0 };
                engine.requests().open(Request::Source(owner));
            })
        };
        endpoint.with_core(change).expect("the lock").expect("the source");
    };
    let label = Label { context: 0, tag: 0, bytes: 8, types: 0 };
    for way in 0..3 {
        fails();
        // SAFETY: the function writes the 8 bytes of the message.
        let pack = |to: *mut u8| unsafe { to.write_bytes(7, 8) };
        let dest = Process::new(1);
        // SAFETY: `pack` writes no more than the bytes of the message.
        let sent = unsafe {
            match way {
                0 => endpoint.send_packed_soon(label, dest, false, pack),
                1 => endpoint.send_packed(label, dest, &byte, pack).map(|()| true),
                _ => endpoint.start(|_| Ok(true)),
            }
        };
        assert!(matches!(sent, Ok(true)), "{way}: {sent:?}");
        assert_eq!(endpoint.progress().map_err(|error| error.kind()), Err(ErrorKind::Other));
        endpoint.progress().expect("the error is returned once");
    }
}

/// Checks that each of several threads that wait at the same time is woken for its own message: pairs of threads of two
/// ranks send messages to and fro, while one thread more waits for a message that comes last. A thread that nobody
/// wakes finds its message when its time is over, and is counted.
#[test]
fn every_waiting_thread_is_woken_for_its_message() {
    const PAIRS: i32 = 4;
    const ROUNDS: i32 = 300;
    let byte = Datatype::named(Named::U8).commit().expect("a plan");
    for spin in [Duration::ZERO, SPIN] {
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
        let ranks = [0, 1].map(|rank| {
            let fabric = Fabric::join(Arc::clone(&segment), rank).expect("a rank");
            Endpoint::new(fabric, 4096, Forced::Nothing, spin)
        });
        let send = |from: usize, tag: i32| {
            let mut data = [tag as u8; 8];
            let layout = Elements { origin: data.as_mut_ptr(), plan: &byte, count: 8 };
            let label = Label { context: 0, tag, bytes: 8, types: 0 };
            // SAFETY: `data` stays unchanged until the wait below, and `label` has its length.
            let sent = unsafe { ranks[from].send(&layout, label, Process::new(1 - from)) };
            if let Operation::Pending(id) = sent.expect("a send") {
                ranks[from].wait(id, "").expect("an end");
            }
        };
        let receive = |to: usize, tag: i32| {
            let mut data = [0u8; 8];
            let layout = Elements { origin: data.as_mut_ptr(), plan: &byte, count: 8 };
            let source = Sender::Process(Process::new(1 - to));
            let posting = Posting { layout, capacity: 8, context: 0, source, tag: Tag::Is(tag) };
            // SAFETY: `data` has room for 8 bytes, and nobody else uses it until the wait below.
            let received = unsafe { ranks[to].receive(&posting) }.expect("a receive");
            if let Operation::Pending(id) = received {
                ranks[to].wait(id, "").expect("an end");
            }
            assert_eq!(data, [tag as u8; 8]);
        };
        std::thread::scope(|scope| {
            let last = scope.spawn(|| receive(0, PAIRS));
            let pairs = [0, 1].map(|rank| {
                [0, 1, 2, 3].map(|tag| {
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            match (round + tag) as usize % 2 == rank {
                                true => send(rank, tag),
                                false => receive(rank, tag),
                            }
                        }
                    })
                })
            });
            for thread in pairs.into_iter().flatten() {
                thread.join().expect("a thread");
            }
            send(1, PAIRS);
            last.join().expect("a thread");
        });
        for rank in &ranks {
            let state = rank.lock().expect("the lock");
            assert_eq!(state.sleepers.missed, 0);
            assert!(state.sleepers.is_empty() && !state.sleepers.polled);
        }
    }
}
