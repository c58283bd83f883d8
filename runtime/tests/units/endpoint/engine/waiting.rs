//! Tests of messages that wait for their match at a receiver: their senders recall them, or the receiver has
//! no room for more of them.

use super::super::*;
use super::any;
use crate::message::payload::SendMode;
use crate::settings::Forced;
use crate::shm::ring::Producer;
use crate::shm::segment::{JobFlags, Segment};
use crate::{Datatype, Named, Plan};
use std::sync::Arc;
use typepack_engine::Elements;

/// A context of the user's messages, and one of the library's own messages.
const USER: u64 = 8;
const INTERNAL: u64 = 9;

const LONG: usize = 100_000;

/// Two ranks in one process.
struct Job {
    here: MessageEngine,
    there: MessageEngine,
    fabric: Fabric,
    byte: Plan,
    out: Vec<u8>,
    back: Vec<u8>,
}

impl Job {
    fn new() -> Self {
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
        let fabric = Fabric::join(segment.clone(), 0).expect("rank 0");
        let mut here = MessageEngine::new(fabric.clone(), 8 << 10);
        // A message that goes out in fragments cannot be recalled, like an eager message.
        here.force(Forced::Packed);
        Self {
            here,
            there: MessageEngine::new(Fabric::join(segment, 1).expect("rank 1"), 8 << 10),
            fabric,
            byte: Datatype::named(Named::U8).commit().expect("a plan"),
            out: (0..LONG).map(|at| at as u8).collect(),
            back: vec![0; LONG],
        }
    }

    fn send(&mut self, (context, tag): (u64, i32), bytes: usize, synchronous: bool) -> Operation {
        let (origin, bytes) = (self.out.as_mut_ptr(), bytes as u64);
        let layout = Elements { origin, plan: &self.byte, count: bytes };
        let label = Label { context, tag, bytes, types: UNKNOWN };
        let how = if synchronous { SendMode::Synchronous } else { SendMode::Standard };
        // SAFETY: the vector `out` has `LONG` bytes and outlives the engines, which never write it.
        unsafe { self.here.send(&layout, label, Process::new(1), how) }.expect("a send")
    }

    fn receive(&mut self, (context, tag): (u64, i32), bytes: usize) -> Operation {
        let layout =
            Elements { origin: self.back.as_mut_ptr(), plan: &self.byte, count: bytes as u64 };
        let posting = Posting { tag: Tag::Is(tag), ..any(layout, bytes as u64, context) };
        // SAFETY: the vector `back` has `LONG` bytes and outlives the engines. Only one receive at a time
        // writes it.
        unsafe { self.there.receive(&posting) }.expect("a receive")
    }

    fn turns(&mut self) {
        for _ in 0..200 {
            self.here.progress().expect("a turn");
            self.there.progress().expect("a turn");
        }
    }

    /// Receives a message of `bytes` bytes that has arrived or will arrive.
    fn get(&mut self, at: (u64, i32), bytes: usize) {
        self.back.fill(0xEE);
        let received = self.receive(at, bytes);
        self.turns();
        if let Operation::Pending(id) = received {
            let status = self.there.requests().fetch(id).expect("complete").expect("a message");
            assert_eq!(status.bytes, bytes as u64);
        }
        assert_eq!(self.back[..bytes], self.out[..bytes]);
    }

    fn is_there(&mut self, (context, tag): (u64, i32)) -> bool {
        self.there.probe(context, Sender::Any, Tag::Is(tag)).is_some()
    }
}

fn pending(operation: Operation) -> u64 {
    match operation {
        Operation::Pending(id) => id,
        Operation::Done(status) => panic!("complete: {status:?}"),
    }
}

/// Checks that no receive takes a recalled message, whether the message is in the ring or in the queue of the
/// receiver. The receive must get the next message instead, and the receiver must keep nothing of the
/// recalled message.
#[test]
fn a_recalled_message_is_gone() {
    let mut job = Job::new();
    for (round, (bytes, synchronous)) in [(LONG, false), (64, true), (0, true), (LONG, true)]
        .into_iter()
        .enumerate()
        .cycle()
        .take(800)
    {
        let at = (USER, 1);
        let first = pending(job.send(at, bytes, synchronous));
        if round % 2 == 0 {
            job.turns();
        }
        assert_eq!(job.here.cancel_send(first), Cancelled::Recalled);
        assert_eq!(job.here.cancel_send(first), Cancelled::No);
        assert!(job.here.requests().get(first).is_none() && job.here.others_are_served());
        if round == 3 {
            assert!(!job.is_there(at));
        }
        let second = pending(job.send(at, LONG, false));
        job.get(at, LONG);
        assert!(job.here.requests().fetch(second).expect("complete").is_ok());
        assert!(!job.is_there(at) && job.there.ledger.is_empty());
    }
}

/// Checks that a cancelled send completes from a copy if a receive has matched its message or a probe has
/// shown it.
#[test]
fn a_matched_message_arrives() {
    let mut job = Job::new();
    for (bytes, synchronous) in [(LONG, false), (64, true), (0, true)] {
        let at = (USER, 2);
        let id = pending(job.send(at, bytes, synchronous));
        job.turns();
        assert!(job.is_there(at));
        assert_eq!(job.here.cancel_send(id), Cancelled::Completed);
        // The program may now change the memory of the send.
        let out = std::mem::replace(&mut job.out, vec![0x77; LONG]);
        let received = job.receive(at, bytes);
        job.turns();
        if let Operation::Pending(id) = received {
            assert!(job.there.requests().fetch(id).expect("complete").is_ok());
        }
        assert_eq!(job.back[..bytes], out[..bytes]);
        job.out = out;

        let received = pending(job.receive(at, bytes));
        let id = pending(job.send(at, bytes, synchronous));
        job.there.progress().expect("a turn");
        assert_ne!(job.here.cancel_send(id), Cancelled::Recalled);
        job.turns();
        assert!(job.there.requests().fetch(received).expect("complete").is_ok());
        let _copied = job.here.requests().fetch(id);
        assert!(job.here.others_are_served() && job.here.requests().in_flight() == 0);
    }
}

/// Checks cancelled sends when more messages wait than can be recalled: the sends of the other messages
/// complete from copies.
#[test]
fn too_many_messages_to_recall() {
    let mut job = Job::new();
    for _ in 0..2 {
        let sends: Vec<u64> =
            (0..100).map(|tag| pending(job.send((USER, tag), LONG, false))).collect();
        job.turns();
        let ends: Vec<Cancelled> = sends.iter().map(|id| job.here.cancel_send(*id)).collect();
        assert_eq!(
            ends.iter().filter(|end| **end == Cancelled::Recalled).count(),
            crate::shm::pair::RECALLS
        );
        job.turns();
        for (tag, end) in ends.iter().enumerate() {
            let at = (USER, tag as i32);
            assert_eq!(job.is_there(at), *end == Cancelled::Completed, "{tag}");
            if *end == Cancelled::Completed {
                job.get(at, LONG);
            }
        }
        assert!(job.here.others_are_served() && job.there.ledger.is_empty());
    }
}

/// Checks recalls that break the protocol: the sender has not marked the message as recalled, the receiver
/// does not know the message, or the message cannot be recalled.
#[test]
fn false_recalls_are_errors() {
    let label = Label { context: USER, tag: 1, bytes: 100, types: UNKNOWN };
    for (offered, recalled) in [
        (Offer { recall: Some(9), ..5.into() }, Offer { recall: Some(9), ..5.into() }),
        (Offer::from(5), Offer::from(5)),
        (Offer { recall: Some(9), ..5.into() }, Offer { recall: Some(55), ..6.into() }),
        (
            Offer { recall: Some(9), ..u64::MAX.into() },
            Offer { recall: Some(9), ..u64::MAX.into() },
        ),
    ] {
        let mut job = Job::new();
        let area = job.fabric.contact(1).expect("contact");
        let mut tx =
            Producer::new::<crate::transport::link::area::Area>(crate::shm::pair::first_level(2));
        for envelope in [Envelope::Rts(label, offered, None), Envelope::Recall(label, recalled)] {
            let room = tx.reserve(&area, 0).expect("credits").expect("room");
            let (words, used) = envelope.encode();
            tx.publish(&area, room, &words, used);
        }
        let error = job.there.progress().expect_err("a violation").to_string();
        assert!(error.contains("rank 0") && error.contains("is not recalled"), "{error}");
    }
}

/// Checks that above 16 times the bound sends of any length stay pending until the match, and that the receiver
/// stores little more than their envelopes.
#[test]
fn far_above_the_bound_only_envelopes_arrive() {
    flood(500, |_| true);
}

/// Checks that above the bound the sends of messages of more than 64 bytes stay pending until the match, and that
/// shorter sends do not.
#[test]
fn above_the_bound_short_sends_do_not_wait() {
    flood(20_000, |bytes| bytes > 64);
}

/// Sends many messages that no receive matches, while `bound` is the bound of one sender. Checks that the sends stay
/// pending whose number of bytes `waits` accepts. Messages of the library itself and messages for posted receives must
/// not wait.
fn flood(bound: u64, waits: fn(usize) -> bool) {
    let mut job = Job::new();
    job.there.bound(bound);
    let mut sends = Vec::new();
    for tag in 0..200 {
        let bytes = [8000, 40, 0, 65][tag as usize % 4];
        sends.push((tag, bytes, job.send((USER, tag), bytes, false)));
        job.turns();
    }
    // The first messages have found room.
    for (tag, bytes, send) in &sends[12..] {
        assert_eq!(matches!(send, Operation::Pending(_)), waits(*bytes), "{tag}: {bytes} bytes");
    }
    // The account contains the payloads that arrived before the bound was reached, and all envelopes.
    assert!((200 * 100..200 * 500).contains(&job.there.ledger.total()), "{:?}", job.there.ledger);
    for bytes in [0, 8, 64, 100, 8000] {
        assert!(matches!(job.send((INTERNAL, 1), bytes, false), Operation::Done(_)), "{bytes}");
        job.get((INTERNAL, 1), bytes);
        // A message for a receive that is posted does not wait for room either.
        let received = pending(job.receive((USER, 1000), bytes));
        let sent = job.send((USER, 1000), bytes, false);
        job.turns();
        assert!(job.there.requests().fetch(received).expect("complete").is_ok());
        match sent {
            Operation::Pending(id) => {
                assert!(job.here.requests().fetch(id).expect("complete").is_ok());
            }
            Operation::Done(_) => assert!(!waits(bytes)),
        }
    }
    for (tag, bytes, sent) in sends.into_iter().rev() {
        job.get((USER, tag), bytes);
        if let Operation::Pending(id) = sent {
            assert!(job.here.requests().fetch(id).expect("complete").is_ok());
        }
    }
    assert!(job.there.ledger.is_empty() && job.here.others_are_served());
    for bytes in [0, 40, 8000] {
        assert!(matches!(job.send((USER, 5), bytes, false), Operation::Done(_)), "{bytes}");
        job.get((USER, 5), bytes);
    }
}

/// Checks that messages that wait in the queue for room in the ring keep their order while the bound is
/// reached.
#[test]
fn queued_messages_keep_their_order_at_the_bound() {
    let mut job = Job::new();
    job.there.bound(5_000);
    let sends: Vec<Operation> =
        (0..2000).map(|number| job.send((USER, 1), number % 300, false)).collect();
    for number in 0..2000 {
        job.turns();
        job.get((USER, 1), number % 300);
    }
    job.turns();
    for sent in sends {
        if let Operation::Pending(id) = sent {
            assert!(job.here.requests().fetch(id).expect("complete").is_ok());
        }
    }
    assert!(job.there.ledger.is_empty() && job.here.others_are_served());
}
