//! Tests a process that joins a job after the job has started. The job starts with two ranks, and the slot of the
//! process comes after the slots of these ranks. Many others join with it, so the pairs that talk later are smaller
//! than the pair of the two ranks.

use super::super::*;
use crate::message::payload::SendMode;
use crate::shm::pair::Geometry;
use crate::shm::segment::{JobFlags, Segment};
use crate::{Datatype, Named, Plan};
use std::sync::Arc;
use typepack_engine::Elements;

const CONTEXT: u64 = 3;
const LATE: usize = 2;

/// Sends `bytes` bytes from one process to another, which posts its receive before or after the send.
fn send(
    (from, from_slot): (&mut MessageEngine, usize),
    (to, to_slot): (&mut MessageEngine, usize),
    (plan, bytes): (&Plan, u64),
    posted: bool,
) {
    let mut data: Vec<u8> = (0..bytes).map(|i| i as u8 ^ 0x5a).collect();
    let mut got = vec![0u8; bytes as usize];
    let layout = Elements { origin: data.as_mut_ptr(), plan, count: bytes };
    let room = Elements { origin: got.as_mut_ptr(), plan, count: bytes };
    let (source, tag) = (Sender::Process(Process::new(from_slot)), Tag::Is(1));
    let posting = Posting { layout: room, capacity: bytes, context: CONTEXT, source, tag };
    let label = Label { context: CONTEXT, tag: 1, bytes, types: UNKNOWN };
    // SAFETY: the vector `got` has room for `bytes` bytes and outlives the receive, which ends below. Nobody else uses
    // it meanwhile.
    let receive = |to: &mut MessageEngine| unsafe { to.receive(&posting) }.expect("a receive");
    let early = posted.then(|| receive(to));
    // SAFETY: the vector `data` has `bytes` bytes, never changes, and outlives the send, which ends below.
    let sent = unsafe { from.send(&layout, label, Process::new(to_slot), SendMode::Standard) };
    while !posted && to.probe(CONTEXT, Sender::Any, Tag::Any).is_none() {
        to.progress().expect("a turn");
    }
    let received = early.unwrap_or_else(|| receive(to));
    for _ in 0..1000 {
        from.progress().expect("a turn");
        to.progress().expect("a turn");
    }
    for (engine, operation) in [(from, sent.expect("a send")), (to, received)] {
        let status = match operation {
            Operation::Done(status) => status,
            Operation::Pending(id) => engine.requests().fetch(id).expect("an end").expect("well"),
        };
        assert_eq!(status, Status { source: from_slot, tag: 1, bytes });
    }
    assert!(got == data, "{bytes} bytes from {from_slot} to {to_slot}");
}

#[test]
fn a_process_in_a_slot_beyond_the_ranks_is_met() {
    let byte = Datatype::named(Named::U8).commit().expect("a plan");
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    let segment = Arc::new(segment);
    let join = |slot| {
        let fabric = Fabric::join(segment.clone(), slot).expect("a process");
        MessageEngine::new(fabric, 8 << 10)
    };
    segment.add_world(0, 2).expect("room");
    let (mut first, mut second) = (join(0), join(1));
    send((&mut first, 0), (&mut second, 1), (&byte, 8), false);
    segment.add_world(2, 40).expect("room");
    let mut late = join(LATE);
    assert_eq!((first.fabric.world(), late.fabric.world()), (0..2, LATE..42));
    for bytes in [8, 4096, 1 << 20] {
        for posted in [false, true] {
            send((&mut late, LATE), (&mut first, 0), (&byte, bytes), posted);
            send((&mut second, 1), (&mut late, LATE), (&byte, bytes), posted);
            send((&mut first, 0), (&mut late, LATE), (&byte, bytes), posted);
            send((&mut second, 1), (&mut first, 0), (&byte, bytes), posted);
        }
    }
    assert!([&first, &second, &late].iter().all(|engine| engine.others_are_served()));
    let geometry = |from: &MessageEngine, to| from.fabric.contact(to).expect("an area").geometry();
    assert_eq!(geometry(&first, 1), Geometry::of(2));
    // The pool of the first rank stays as it is.
    assert_eq!(geometry(&second, 0), Geometry::of(42).with_pool(Geometry::of(2).pool()));
    assert_eq!(geometry(&late, 0), Geometry::of(42));
}
