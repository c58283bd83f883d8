//! Tests messages that go out in fragments: random orders of sends, receives, probes and turns against the rule of
//! matching, receives between two fragments, cancelled and detached sends, the bound of unexpected messages, and a
//! hostile sender.

use super::super::*;
use super::any;
use crate::message::payload::SendMode;
use crate::settings::Forced;
use crate::shm::ring::Producer;
use crate::shm::segment::{JobFlags, Segment};
use crate::transport::link::area::Area;
use crate::transport::link::credit::Credit;
use crate::{Datatype, ErrorKind, Named, Plan};
use std::sync::Arc;
use typepack_engine::Elements;

/// A context of the messages of the user.
const CONTEXT: u64 = 8;
const LONGEST: usize = 256 << 10;
/// Number of ranks of the job, of which two communicate. In a job of four ranks a ring has 1 MiB of payloads, so that
/// the messages of these tests fill it; in a job of two ranks it has 4 MiB.
const RANKS: usize = 4;

/// Two ranks whose messages of medium length go out in fragments.
struct Job {
    engines: [MessageEngine; 2],
    byte: Plan,
}

/// A receive that has been started: its number, its result if it is complete, and its memory.
struct Got {
    id: Option<u64>,
    result: Option<Result<Status>>,
    memory: Vec<u8>,
    capacity: usize,
}

impl Job {
    fn new() -> Self {
        let segment =
            Arc::new(Segment::create(RANKS, &[], JobFlags::default(), 0).expect("a segment"));
        let engines = [0, 1].map(|rank| {
            let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
            let mut engine = MessageEngine::new(fabric, 8 << 10);
            engine.force(Forced::Fragments);
            engine
        });
        Self { engines, byte: Datatype::named(Named::U8).commit().expect("a plan") }
    }

    /// Starts a send of `data` from rank 0. Returns its number, or `None` if it is complete.
    ///
    /// # Safety
    ///
    /// - `data` lives and stays unchanged until the send has ended or is detached.
    unsafe fn send(&mut self, data: &[u8], tag: i32) -> Option<u64> {
        let (origin, bytes) = (data.as_ptr().cast_mut(), data.len() as u64);
        let layout = Elements { origin, plan: &self.byte, count: bytes };
        let label = Label { context: CONTEXT, tag, bytes, types: UNKNOWN };
        // SAFETY: the caller guarantees that `data` stays readable and unchanged until the send has ended (the
        // condition of `# Safety`), and `bytes` is its packed size.
        let sent =
            unsafe { self.engines[0].send(&layout, label, Process::new(1), SendMode::Standard) };
        match sent.expect("a send") {
            Operation::Pending(id) => Some(id),
            Operation::Done(_) => None,
        }
    }

    /// Starts a receive of at most `capacity` bytes at rank 1, of a message that `taken` has taken or of one with this
    /// tag.
    ///
    /// # Safety
    ///
    /// - The returned value lives until the receive has ended.
    unsafe fn receive(&mut self, tag: Tag, capacity: usize, taken: Option<Taken>) -> Got {
        let mut memory = vec![0xEE_u8; capacity + 1];
        let (origin, bytes) = (memory.as_mut_ptr(), capacity as u64);
        let layout = Elements { origin, plan: &self.byte, count: bytes };
        let posting = Posting { tag, ..any(layout, bytes, CONTEXT) };
        // SAFETY: `memory` has more than `bytes` bytes, nobody else uses it, and the caller keeps it until the receive
        // has ended (condition of `# Safety`).
        let started = unsafe {
            match taken {
                Some(taken) => self.engines[1].receive_taken(&layout, bytes, taken),
                None => self.engines[1].receive(&posting),
            }
        };
        let (id, result) = match started {
            Ok(Operation::Pending(id)) => (Some(id), None),
            Ok(Operation::Done(status)) => (None, Some(Ok(status))),
            Err(error) => (None, Some(Err(error))),
        };
        Got { id, result, memory, capacity }
    }

    fn turns(&mut self, turns: usize) {
        for _ in 0..turns {
            for engine in &mut self.engines {
                engine.progress().expect("a turn");
            }
        }
    }

    /// Checks a receive that must have ended with a message whose bytes are `data`.
    fn check(&mut self, got: &mut Got, data: &[u8], what: &str) {
        if let Some(id) = got.id.take() {
            got.result = self.engines[1].requests().fetch(id);
        }
        match got.result.take().unwrap_or_else(|| panic!("{what}: not complete")) {
            Ok(status) => assert_eq!(status.bytes, data.len() as u64, "{what}"),
            Err(error) => {
                assert!(data.len() > got.capacity, "{what}: {error}");
                assert_eq!(error.kind(), ErrorKind::Truncated, "{what}");
            }
        }
        // A receive refuses a message with an RTS that is too long for it, and takes no data.
        let refused = data.len() > LONGEST && data.len() > got.capacity;
        let fits = if refused { 0 } else { data.len().min(got.capacity) };
        let differs = (0..fits).find(|&at| got.memory[at] != data[at]);
        assert_eq!(
            differs,
            None,
            "{what}: the first other byte of {fits} ({} in the message)",
            data.len()
        );
        assert!(got.memory[fits..].iter().all(|&byte| byte == 0xEE), "{what}: too many bytes");
    }
}

fn message(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed * 131) as u8).collect()
}

/// Runs random orders of sends, receives, matched probes and turns. Each receive must get the first message in the
/// order of the sends that fits and that no earlier receive has taken.
#[test]
fn every_order_matches() {
    let mut random = 77_u64;
    let mut below = move |bound: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (random >> 33) as usize % bound
    };
    let lens = [0, 5, 8192, 8193, 20_000, 70_000, 200_000, LONGEST, LONGEST + 1, 400_000];
    let mut in_parts = 0;
    for case in 0..150 {
        let mut job = Job::new();
        let messages: Vec<(Vec<u8>, i32)> = (0..1 + below(9))
            .map(|seed| (message(seed, lens[below(lens.len())]), below(2) as i32))
            .collect();
        let mut received: Vec<(Option<i32>, Got)> = Vec::new();
        let mut sent = 0;
        while sent < messages.len() || received.len() < messages.len() {
            match below(6) {
                0 | 1 if sent < messages.len() => {
                    let (data, tag) = &messages[sent];
                    // SAFETY: the messages live to the end of the case, and nobody changes them.
                    unsafe { job.send(data, *tag) };
                    sent += 1;
                }
                2 | 3 if received.len() < messages.len() => {
                    let tag = (below(3) > 0).then(|| below(2) as i32);
                    let capacity =
                        lens[below(lens.len())].max(if below(4) > 0 { 400_000 } else { 0 });
                    let taken = (below(3) == 0)
                        .then(|| {
                            job.engines[1].take(CONTEXT, Sender::Any, tag.map_or(Tag::Any, Tag::Is))
                        })
                        .flatten();
                    // SAFETY: the receives live to the end of the case. Then both engines are dropped first.
                    let got =
                        unsafe { job.receive(tag.map_or(Tag::Any, Tag::Is), capacity, taken) };
                    received.push((tag, got));
                }
                _ => job.engines[below(2)].progress().map(drop).expect("a turn"),
            }
        }
        job.turns(400);
        let mut taken = vec![false; messages.len()];
        for (at, (tag, mut got)) in received.into_iter().enumerate() {
            let fits =
                |which: &usize| !taken[*which] && tag.is_none_or(|tag| tag == messages[*which].1);
            match (0..messages.len()).find(fits) {
                Some(which) => {
                    taken[which] = true;
                    job.check(&mut got, &messages[which].0, &format!("case {case}, receive {at}"));
                }
                None => {
                    let id = got.id.expect("a receive without a message is pending");
                    assert!(job.engines[1].cancel_receive(id), "case {case}, receive {at}");
                }
            }
        }
        in_parts += job.engines[0].traffic().fragments;
    }
    assert!(in_parts > 200, "only {in_parts} messages went out in fragments");
}

#[test]
fn a_receive_takes_a_message_between_its_parts() {
    let mut job = Job::new();
    let messages = [0, 1].map(|seed| message(seed, LONGEST));
    for (tag, data) in (0..).zip(&messages) {
        // SAFETY: the messages live to the end of the test, and nobody changes them.
        assert_eq!(unsafe { job.send(data, tag) }, None);
    }
    // One turn takes as many envelopes as `ENVELOPES_PER_TURN`: the first message and a fragment of the second.
    job.engines[1].progress().expect("a turn");
    // SAFETY: both receives live to the end of the test, and the engines run no turn after it.
    let mut second = unsafe { job.receive(Tag::Is(1), LONGEST, None) };
    assert!(second.id.is_some(), "the message has arrived as a whole, so the test shows nothing");
    // SAFETY: as above.
    let mut first = unsafe { job.receive(Tag::Is(0), LONGEST, None) };
    job.turns(10);
    job.check(&mut first, &messages[0], "first");
    job.check(&mut second, &messages[1], "second");
    assert!(job.engines[1].collection.is_empty() && job.engines[1].ledger.is_empty());
}

/// Cancels sends whose fragments find no room in the ring: one of which some fragments are in the ring, and one without
/// fragments.
#[test]
fn cancelled_sends_arrive_whole_or_not_at_all() {
    let mut job = Job::new();
    let len = LONGEST - 30_000;
    let mut messages: Vec<Vec<u8>> = (0..7).map(|seed| message(seed, len)).collect();
    let kept = messages.clone();
    // SAFETY: the messages live to the end of the test. A message changes only after its send is cancelled.
    let sent: Vec<Option<u64>> =
        messages.iter().zip(0..).map(|(data, tag)| unsafe { job.send(data, tag) }).collect();
    let begun = sent.iter().position(Option::is_some).expect("the ring has room for everything");
    let ids: Vec<u64> = sent.into_iter().flatten().collect();
    assert!(ids.len() >= 2, "the ring has room for nearly everything");
    let stage = job.engines[0].requests().send(ids[0]).expect("a send").stage;
    assert!(matches!(stage, SendStage::Fragments(1.., _)), "{stage:?}");
    assert_eq!(job.engines[0].cancel_send(ids[0]), Cancelled::Completed);
    assert_eq!(job.engines[0].cancel_send(ids[1]), Cancelled::Recalled);
    messages[begun].fill(1);
    messages[begun + 1].fill(1);
    for (tag, data) in kept.iter().enumerate() {
        if tag == begun + 1 {
            continue;
        }
        // SAFETY: the receive lives until it has ended, below.
        let mut got = unsafe { job.receive(Tag::Is(tag as i32), len, None) };
        job.turns(50);
        job.check(&mut got, data, &format!("message {tag}"));
    }
    assert!(job.engines[1].probe(CONTEXT, Sender::Any, Tag::Any).is_none());
}

#[test]
fn messages_in_parts_count_as_unexpected() {
    let mut job = Job::new();
    job.engines[1].bound(300_000);
    let data = message(1, 200_000);
    for number in 0..2 {
        // SAFETY: the message lives to the end of the test, and nobody changes it.
        assert_eq!(unsafe { job.send(&data, number) }, None);
        job.turns(2);
    }
    // The messages occupy more than the bound now, so the data of the next one stays at the sender.
    // SAFETY: as above.
    let third = unsafe { job.send(&data, 2) }.expect("a send that waits");
    job.turns(5);
    assert!(!job.engines[0].requests().is_complete(third));
    for tag in 0..3 {
        // SAFETY: the receive lives until it has ended, below.
        let mut got = unsafe { job.receive(Tag::Is(tag), 200_000, None) };
        job.turns(50);
        job.check(&mut got, &data, "a message");
    }
    assert!(job.engines[1].ledger.is_empty());
}

/// Checks that fragments which do not fit together are a violation of the protocol, for a posted receive and without
/// one.
#[test]
fn fragments_that_do_not_fit_are_a_violation() {
    let label = Label { context: CONTEXT, tag: 1, bytes: 40_000, types: UNKNOWN };
    let first = Envelope::First(label, 16_000, Method::Vector);
    for (envelopes, text) in [
        (vec![Envelope::Fragment(100)], "no message has begun"),
        (vec![first, first], "before the last fragment"),
        (
            vec![first, Envelope::Fragment(16_000), Envelope::Fragment(8001)],
            "the length of the fragments",
        ),
    ] {
        for posted in [false, true] {
            let segment =
                Arc::new(Segment::create(RANKS, &[], JobFlags::default(), 0).expect("a job"));
            let fabric = Fabric::join(segment.clone(), 0).expect("rank 0");
            let hostile = Fabric::join(segment, 1).expect("rank 1");
            let mut victim = MessageEngine::new(fabric, 8 << 10);
            let byte = Datatype::named(Named::U8).commit().expect("a plan");
            let mut memory = vec![0_u8; 40_000];
            let layout = Elements { origin: memory.as_mut_ptr(), plan: &byte, count: 40_000 };
            // SAFETY: the vector has 40,000 bytes and outlives the engine's last turn. Nobody else uses it.
            let receive = |victim: &mut MessageEngine| unsafe {
                victim.receive(&any(layout, 40_000, CONTEXT)).expect("a receive")
            };
            let _pending = posted.then(|| receive(&mut victim));
            let area = hostile.contact(0).expect("contact");
            let mut tx = Producer::new::<Area>(crate::shm::pair::first_level(RANKS));
            for envelope in &envelopes {
                let payload = match envelope {
                    Envelope::First(_, len, _) | Envelope::Fragment(len) => *len as usize,
                    _ => 0,
                };
                let room = tx.reserve(&area, payload).expect("credits").expect("room");
                let (words, used) = envelope.encode();
                tx.publish(&area, room, &words, used);
            }
            for _ in 0..2 {
                let error = victim.progress().expect_err("a violation");
                assert!(error.to_string().contains(text), "{error}");
            }
        }
    }
}

/// Checks that the word by which a message can be recalled is given back if the message goes out in fragments after an
/// RTS has found no room in the ring.
#[test]
fn recall_words_are_given_back() {
    let (small, data) = ([7_u8; 8], message(1, 70_000));
    let begin = || {
        let mut job = Job::new();
        // Rank 1 learns of the ring of rank 0 by the first message.
        // SAFETY: `small` lives to the end of the test, and nobody changes it.
        unsafe { job.send(&small, 2) };
        job.turns(1);
        // SAFETY: the receive is complete when the call returns, because its message has arrived.
        assert_eq!(unsafe { job.receive(Tag::Any, 8, None) }.id, None);
        job
    };
    let mut job = begin();
    // SAFETY: as above.
    let room = (0..).take_while(|_| unsafe { job.send(&small, 2) }.is_none()).count();
    let mut job = begin();
    for _ in 0..room {
        // SAFETY: as above.
        assert_eq!(unsafe { job.send(&small, 2) }, None);
    }
    // The ring has no slot left, and the receiver wants no payloads, so the message would begin with an RTS.
    job.engines[1].peers[0].grant_credit(Credit::Short);
    // SAFETY: `data` lives to the end of the test, and nobody changes it.
    let id = unsafe { job.send(&data, 1) }.expect("a send that waits");
    let send = job.engines[0].requests().send(id).expect("a send");
    assert!(send.recall.is_some() && send.stage == SendStage::Queued, "the test shows nothing");
    job.engines[1].peers[0].grant_credit(Credit::Any);
    job.turns(20);
    assert!(job.engines[0].requests().fetch(id).expect("complete").is_ok());
    assert_eq!(job.engines[0].traffic().fragments, 1);
    // SAFETY: the receive lives until it has ended, below.
    let mut got = unsafe { job.receive(Tag::Is(1), 70_000, None) };
    job.turns(5);
    job.check(&mut got, &data, "the message");
    let words = std::iter::from_fn(|| {
        let tx = job.engines[0].peers[1].link.tx.as_mut()?;
        tx.recalls.take(&tx.area)
    });
    assert_eq!(words.count(), crate::shm::pair::RECALLS);
}

/// Checks that a buffered send, whose copy may find no memory, has nothing in the ring before its copy is made, and
/// that the program may change its memory after the call.
#[test]
fn a_copy_is_made_before_the_first_part() {
    let mut job = Job::new();
    let kept: Vec<Vec<u8>> = (0..6).map(|seed| message(seed, LONGEST)).collect();
    for (tag, data) in (0..).zip(&kept) {
        let mut memory = data.clone();
        let (origin, bytes) = (memory.as_mut_ptr(), LONGEST as u64);
        let layout = Elements { origin, plan: &job.byte, count: bytes };
        let label = Label { context: CONTEXT, tag, bytes, types: UNKNOWN };
        let how = SendMode::Buffered(None);
        // SAFETY: `memory` has `bytes` bytes and lives until the call returns; the send then uses a copy.
        unsafe { job.engines[0].send(&layout, label, Process::new(1), how) }.expect("a send");
        memory.fill(1);
    }
    for (tag, data) in (0..).zip(&kept) {
        // SAFETY: the receive lives until it has ended, below.
        let mut got = unsafe { job.receive(Tag::Is(tag), LONGEST, None) };
        job.turns(50);
        job.check(&mut got, data, "a copy");
    }
    assert!(job.engines[0].others_are_served());
}

/// Checks that a message which a matched probe has taken, and which the program then drops, leaves no memory behind.
#[test]
fn a_dropped_message_leaves_nothing() {
    let mut job = Job::new();
    let data = message(1, 100_000);
    // SAFETY: the message lives to the end of the test, and nobody changes it.
    assert_eq!(unsafe { job.send(&data, 1) }, None);
    job.turns(3);
    let taken = job.engines[1].take(CONTEXT, Sender::Any, Tag::Any).expect("a message");
    assert_eq!(taken.status().bytes, 100_000);
    drop(taken);
    assert!(job.engines[1].collection.is_empty() && job.engines[1].ledger.is_empty());
}
