//! Tests every answer of a receiver to a message (ACK, CTS, FIN, REFUSED and Help), in every state of a send. If the
//! state allows the answer, the answer must have its effect; otherwise it must be an error. Another test forces each
//! protocol in turn and sends messages of all lengths.

use super::super::*;
use super::any;
use crate::message::envelope::{BYTES, Space};
use crate::message::payload::SendMode;
use crate::shm::ring::Producer;
use crate::shm::segment::{JobFlags, Segment};
use crate::transport::link::area::Area;
use crate::{Datatype, Named, Plan};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use typepack_engine::Elements;

const CONTEXT: u64 = 3;
const LONG: u64 = 1 << 20;
const SHORT: u64 = 64;

static NUMBER: u64 = 0x7769_7265_776f_7264;

/// The state of a send to rank 1, or the reason why a request number names no such send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    NoRequest,
    Receive,
    ToAnother,
    Unacknowledged,
    Plain,
    InHeap,
    InPrivate,
    /// Was in the heap, and has been withdrawn.
    Withdrawn,
    /// Was in private memory, and has been withdrawn.
    WithdrawnInPrivate,
    Streaming,
}

const STATES: [State; 10] = [
    State::NoRequest,
    State::Receive,
    State::ToAnother,
    State::Unacknowledged,
    State::Plain,
    State::InHeap,
    State::InPrivate,
    State::Withdrawn,
    State::WithdrawnInPrivate,
    State::Streaming,
];

fn byte() -> Plan {
    Datatype::named(Named::U8).commit().expect("a plan")
}

/// Returns the ranks of a job, all in this process. So each rank may access the memory of the others.
fn job<const N: usize>(eager_limit: u64) -> [(MessageEngine, Fabric); N] {
    let segment = Segment::create(N, &[], JobFlags::default(), 0).expect("a segment");
    let segment = Arc::new(segment);
    std::array::from_fn(|rank| {
        let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
        segment.slot(rank).pid.store(std::process::id(), Ordering::Relaxed);
        fabric.open_memory(std::ptr::from_ref(&NUMBER) as u64, NUMBER);
        (MessageEngine::new(fabric.clone(), eager_limit), fabric)
    })
}

/// Allocates memory in the heap of a rank. The memory lives as long as the job.
fn room(fabric: &Fabric, len: u64) -> *mut u8 {
    let heap = fabric.heap().expect("a heap");
    heap.alloc(len as usize, 64, true).expect("room").as_ptr()
}

fn say(tx: &mut Producer, area: &Area, envelope: &Envelope) {
    let room = tx.reserve(area, 0).expect("credits").expect("room");
    let (words, used) = envelope.encode();
    tx.publish(area, room, &words, used);
}

/// Returns every answer that a receiver can send for the message `id`. Each answer comes with the list of
/// states in which it is allowed.
fn words(id: u64, bytes: u64) -> [(Envelope, &'static [State]); 6] {
    use State::{InHeap, InPrivate, Plain, Unacknowledged, Withdrawn, WithdrawnInPrivate};
    let place = |space| Place { space, number: BYTES, origin: 0, count: bytes };
    let help = |space| Envelope::Help {
        id,
        number: 1,
        method: Method::Vector,
        bytes,
        place: place(space),
    };
    [
        (Envelope::Ack(id), &[Unacknowledged]),
        (
            Envelope::Cts { id, method: Method::Vector },
            &[Plain, InHeap, InPrivate, Withdrawn, WithdrawnInPrivate],
        ),
        (Envelope::Fin(id), &[InHeap, InPrivate, Withdrawn, WithdrawnInPrivate]),
        (Envelope::Refused(id), &[Plain, InHeap, InPrivate, Withdrawn, WithdrawnInPrivate]),
        (help(Space::Heap), &[InHeap, Withdrawn]),
        (help(Space::Private), &[]),
    ]
}

#[test]
fn every_word_has_its_states() {
    let byte = byte();
    for state in STATES {
        for which in 0..6 {
            let [(mut victim, fabric), (_, hostile), _] = job::<3>(8 << 10);
            victim.force(match state {
                State::Plain | State::Streaming => Forced::Packed,
                State::InPrivate | State::WithdrawnInPrivate => Forced::Cma,
                _ => Forced::Heap,
            });
            let bytes = if state == State::Unacknowledged { SHORT } else { LONG };
            let origin = room(&fabric, bytes);
            let layout = Elements { origin, plan: &byte, count: bytes };
            let label = Label { context: CONTEXT, tag: 1, bytes, types: UNKNOWN };
            let dest = if state == State::ToAnother { 2 } else { 1 };
            let how = if state == State::Unacknowledged {
                SendMode::Synchronous
            } else {
                SendMode::Standard
            };
            // SAFETY: the memory of the operation is `bytes` bytes of the heap, which outlives the engine, and only
            // this operation uses it.
            let started = unsafe {
                match state {
                    State::NoRequest => Ok(Operation::Pending(7 << 32)),
                    State::Receive => victim.receive(&any(layout, bytes, CONTEXT)),
                    _ => victim.send(&layout, label, Process::new(dest), how),
                }
            };
            let Ok(Operation::Pending(id)) = started else { panic!("{started:?}") };
            let area = hostile.contact(0).expect("contact");
            let mut tx = Producer::new::<Area>(crate::shm::pair::first_level(2));
            match state {
                State::Withdrawn | State::WithdrawnInPrivate => victim.detach(id),
                State::Streaming => {
                    say(&mut tx, &area, &Envelope::Cts { id, method: Method::Vector });
                    victim.progress().expect("a CTS in its state");
                }
                _ => {}
            }
            let (envelope, states) = words(id, bytes)[which];
            say(&mut tx, &area, &envelope);
            let name = format!("{envelope:?} while {state:?}");
            if !states.contains(&state) {
                for _ in 0..2 {
                    let error = victim.progress().expect_err(&name);
                    assert!(error.to_string().contains("rank 1 broke the protocol"), "{error}");
                }
                assert!(!victim.requests().is_complete(id) || state == State::NoRequest, "{name}");
                continue;
            }
            victim.progress().unwrap_or_else(|error| panic!("{name}: {error}"));
            if let Envelope::Fin(_) = envelope {
                // The message is counted by the memory out of which it was copied.
                let in_private = matches!(state, State::InPrivate | State::WithdrawnInPrivate);
                let (fused, private) = (victim.traffic().fused, victim.traffic().private);
                assert_eq!((fused, private), (u64::from(!in_private), in_private.into()), "{name}");
            }
            match envelope {
                Envelope::Cts { .. } => {
                    let send = victim.requests().send(id).expect(&name);
                    assert!(matches!(send.stage, SendStage::Streaming(_)), "{name}");
                }
                Envelope::Help { .. } => assert!(!victim.requests().is_complete(id), "{name}"),
                // A detached send must have left the table of requests.
                _ if matches!(state, State::Withdrawn | State::WithdrawnInPrivate) => {
                    assert!(victim.requests().get(id).is_none(), "{name}");
                }
                _ => {
                    let status = victim.requests().fetch(id).expect(&name).expect("well");
                    assert_eq!(status.bytes, bytes, "{name}");
                    // A second answer must be a violation of the protocol.
                    say(&mut tx, &area, &envelope);
                    victim.progress().expect_err(&name);
                }
            }
        }
    }
}

/// Checks that a request for help is a violation of the protocol if it states a wrong length of the message,
/// or names a place that is too small for the message.
#[test]
fn help_with_another_message_is_a_violation() {
    let byte = byte();
    for (bytes, count) in [(LONG - 1, LONG), (LONG + 1, LONG + 1), (LONG, LONG - 1)] {
        let [(mut victim, fabric), (_, hostile)] = job::<2>(0);
        victim.force(Forced::Heap);
        let layout = Elements { origin: room(&fabric, LONG), plan: &byte, count: LONG };
        let label = Label { context: CONTEXT, tag: 1, bytes: LONG, types: UNKNOWN };
        // SAFETY: the send reads `LONG` bytes of the heap of `victim`, which outlives the engine. Nobody writes to
        // them.
        let sent = unsafe { victim.send(&layout, label, Process::new(1), SendMode::Standard) };
        let Ok(Operation::Pending(id)) = sent else { panic!("{sent:?}") };
        let area = hostile.contact(0).expect("contact");
        let place = Place { space: Space::Heap, number: BYTES, origin: 0, count };
        let help = Envelope::Help { id, number: 1, method: Method::Vector, bytes, place };
        say(&mut Producer::new::<Area>(crate::shm::pair::first_level(2)), &area, &help);
        let error = victim.progress().expect_err("a violation");
        assert!(error.to_string().contains("rank 1 broke the protocol"), "{error}");
        assert!(!victim.requests().is_complete(id));
    }
}

/// Tests messages from heap to heap with lengths around every limit. The receive is posted before or after
/// the send.
#[test]
fn every_protocol_carries_every_length() {
    let byte = byte();
    for (forced, eager_limit) in [
        (Forced::Nothing, 8 << 10),
        (Forced::Packed, 8 << 10),
        (Forced::Fragments, 8 << 10),
        (Forced::Packed, 0),
        (Forced::Streamed, 0),
        (Forced::Heap, 0),
        (Forced::Cma, 0),
    ] {
        let [(mut here, mine), (mut there, theirs)] = job::<2>(eager_limit);
        here.force(forced);
        there.force(forced);
        let (from, to) = (room(&mine, 1 << 21), room(&theirs, 1 << 21));
        let mut sent = 0;
        for len in [1, 31, 32, 33, 64, 4096, 8192, 8193, 32_768, 65_537, LONG, LONG + 1] {
            for posted in [false, true] {
                sent += 1;
                // SAFETY: `room` has allocated more than `len` bytes at `from` and at `to`, and only this
                // test uses them.
                unsafe {
                    std::slice::from_raw_parts_mut(from, len as usize)
                        .iter_mut()
                        .enumerate()
                        .for_each(|(i, byte)| *byte = (i as u8).wrapping_mul(31) ^ sent as u8);
                    to.write_bytes(0xee, len as usize + 1);
                }
                let send = Elements { origin: from, plan: &byte, count: len };
                let receive = Elements { origin: to, plan: &byte, count: len };
                let label = Label { context: CONTEXT, tag: 1, bytes: len, types: UNKNOWN };
                // SAFETY: `to` has room for `len` bytes. The receive ends in this round, and nobody else uses `to`
                // before that.
                let post = |there: &mut MessageEngine| unsafe {
                    there.receive(&any(receive, len, CONTEXT)).expect("a receive")
                };
                let early = posted.then(|| post(&mut there));
                // SAFETY: `from` has `len` bytes, which nobody changes before the send ends, in this round.
                let sent = unsafe { here.send(&send, label, Process::new(1), SendMode::Standard) }
                    .expect("a send");
                while !posted && there.probe(CONTEXT, Sender::Any, Tag::Any).is_none() {
                    there.progress().expect("a turn");
                }
                let received = early.unwrap_or_else(|| post(&mut there));
                for _ in 0..1000 {
                    here.progress().expect("a turn");
                    there.progress().expect("a turn");
                }
                for (engine, operation) in [(&mut here, sent), (&mut there, received)] {
                    let status = match operation {
                        Operation::Done(status) => status,
                        Operation::Pending(id) => {
                            engine.requests().fetch(id).expect("an end").expect("well")
                        }
                    };
                    assert_eq!(status.bytes, len);
                }
                // SAFETY: `from` and `to` have `len` and `len + 1` initialised bytes; both operations are
                // complete, so nothing writes to either.
                let (source, target) = unsafe {
                    let target = std::slice::from_raw_parts(to, len as usize + 1);
                    (std::slice::from_raw_parts(from, len as usize), target)
                };
                assert!(source == &target[..len as usize], "{forced:?} {len}");
                assert_eq!(target[len as usize], 0xee, "{forced:?} {len}");
            }
        }
        let Traffic { eager, fragments, pipelined, fused, private, .. } = here.traffic();
        assert_eq!(eager + fragments + pipelined + fused + private, sent);
        match (forced, eager_limit) {
            (Forced::Packed, 0) | (Forced::Streamed, _) => assert_eq!(pipelined, sent),
            (Forced::Fragments, _) => assert!(fragments > 0 && pipelined > 0 && eager > 0),
            (Forced::Heap, _) => assert_eq!(fused, sent),
            (Forced::Cma, _) => assert_eq!(private, sent),
            _ => assert!(eager > 0 && private == 0),
        }
        assert!(here.others_are_served() && there.others_are_served());
    }
}

/// Returns how many eager messages of `bytes` bytes fit in an empty ring.
fn ring_room(plan: &Plan, bytes: u64) -> usize {
    let [(mut engine, _), _] = job::<2>(8 << 10);
    let mut data = [0u8; SHORT as usize];
    let layout = Elements { origin: data.as_mut_ptr(), plan, count: bytes };
    let label = Label { context: CONTEXT, tag: 2, bytes, types: UNKNOWN };
    for sent in 0.. {
        // SAFETY: the array has at least `bytes` bytes, never changes, and lives longer than this loop. The engine runs
        // no turn after the loop.
        match unsafe { engine.send(&layout, label, Process::new(1), SendMode::Standard) }
            .expect("a send")
        {
            Operation::Done(_) => {}
            Operation::Pending(_) => return sent,
        }
    }
    unreachable!("a ring without end")
}

/// Checks an ACK that finds the ring full. The ACK answers an unexpected synchronous message, and the
/// receiver has no other work. The receiver must still write the ACK as soon as there is room.
#[test]
fn an_ack_into_a_full_ring_is_written_later() {
    let byte = byte();
    for bytes in [1, SHORT] {
        let room = ring_room(&byte, bytes);
        let [(mut sender, _), (mut receiver, _)] = job::<2>(8 << 10);
        let mut data = [7u8; SHORT as usize];
        let layout = Elements { origin: data.as_mut_ptr(), plan: &byte, count: bytes };
        let label = Label { context: CONTEXT, tag: 1, bytes, types: UNKNOWN };
        let how = SendMode::Synchronous;
        // SAFETY: the array `data` has at least `bytes` bytes, never changes, and lives to the end of the round.
        // Neither engine runs a turn after that.
        let sent = unsafe { sender.send(&layout, label, Process::new(1), how) };
        let Ok(Operation::Pending(id)) = sent else { panic!("{sent:?}") };
        receiver.progress().expect("a turn");
        let label = Label { tag: 2, ..label };
        for _ in 0..room {
            // SAFETY: the array `data` has at least `bytes` bytes, and the send is complete when the call returns
            // (asserted below).
            let filled =
                unsafe { receiver.send(&layout, label, Process::new(0), SendMode::Standard) };
            assert!(matches!(filled, Ok(Operation::Done(_))), "{filled:?}");
        }
        let mut got = [0u8; SHORT as usize];
        let to = Elements { origin: got.as_mut_ptr(), plan: &byte, count: bytes };
        // SAFETY: the array `got` has at least `bytes` bytes, and the receive is over when the call returns.
        let received = unsafe { receiver.receive(&any(to, bytes, CONTEXT)) };
        assert!(matches!(received, Ok(Operation::Done(_))), "{received:?}");
        assert!(!receiver.is_idle(), "no ACK is left to write");
        for _ in 0..1000 {
            sender.progress().expect("a turn");
            receiver.progress().expect("a turn");
        }
        let status = sender.requests().fetch(id).expect("an ACK").expect("well");
        assert_eq!(status.bytes, bytes);
        assert!(sender.others_are_served() && receiver.others_are_served());
    }
}
