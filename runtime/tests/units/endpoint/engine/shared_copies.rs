//! Tests messages that both ranks copy together, from heap to heap: the words by which they share the copy,
//! and a detach in the middle of a piece. `heap.rs` tests the results of such copies.

use super::super::*;
use super::any;
use crate::message::payload::SendMode;
use crate::shm::segment::{JobFlags, Segment};
use crate::transport::link::area::Area;
use crate::{Datatype, Named, Plan};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use typepack_engine::Elements;

/// Length of the messages, in bytes. A rank needs several turns to copy such a message.
const LEN: usize = 3 << 20;

/// The number of pieces of such a message.
const PIECES: u64 = 48;

const CONTEXT: u64 = 3;

/// Returns the segment of a job of three ranks, and the engines and the fabrics of the first two ranks.
fn job() -> (Arc<Segment>, [(MessageEngine, Fabric); 2]) {
    let segment = Segment::create(3, &[], JobFlags::default(), 0).expect("a segment");
    let segment = Arc::new(segment);
    let ranks = [0, 1].map(|rank| {
        let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
        let mut engine = MessageEngine::new(fabric.clone(), 0);
        engine.force(Forced::Heap);
        (engine, fabric)
    });
    (segment, ranks)
}

fn byte() -> Plan {
    Datatype::named(Named::U8).commit().expect("a plan")
}

/// Allocates memory for a message in the heap of a rank, and fills it.
fn room(fabric: &Fabric, seed: u8) -> *mut u8 {
    let start = fabric.heap().expect("a heap").alloc(LEN, 64, true).expect("room").as_ptr();
    for i in 0..LEN {
        // SAFETY: the heap has just allocated `LEN` bytes at `start`, and `i` is below `LEN`.
        unsafe { start.add(i).write((i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ seed) };
    }
    start
}

/// Returns whether two messages are equal.
fn equal(a: *const u8, b: *const u8) -> bool {
    // SAFETY: both pointers come from `room`, so `LEN` bytes are readable at each of them.
    (0..LEN).all(|i| unsafe { a.add(i).read_volatile() == b.add(i).read_volatile() })
}

fn send(engine: &mut MessageEngine, origin: *mut u8, plan: &Plan) -> u64 {
    let layout = Elements { origin, plan, count: LEN as u64 };
    let label = Label { context: CONTEXT, tag: 1, bytes: LEN as u64, types: UNKNOWN };
    // SAFETY: `room` has made the `LEN` bytes at `origin` in a heap, which outlives the engine. The tests change them
    // only after the send has ended.
    match unsafe { engine.send(&layout, label, Process::new(1), SendMode::Standard) }
        .expect("a send")
    {
        Operation::Pending(id) => id,
        Operation::Done(_) => panic!("complete"),
    }
}

fn receive(engine: &mut MessageEngine, origin: *mut u8, plan: &Plan) -> u64 {
    let layout = Elements { origin, plan, count: LEN as u64 };
    // SAFETY: `room` has made the `LEN` bytes at `origin` in a heap, which outlives the engine. The tests read them
    // only after the receive has ended or is detached.
    match unsafe { engine.receive(&any(layout, LEN as u64, CONTEXT)) }.expect("a receive") {
        Operation::Pending(id) => id,
        Operation::Done(_) => panic!("complete"),
    }
}

fn finished(engine: &mut MessageEngine, id: u64) {
    let status = engine.requests().fetch(id).expect("complete").expect("well");
    assert_eq!(status.bytes, LEN as u64);
}

fn area(fabric: &Fabric) -> Area {
    fabric.written_by(0).expect("a mailbox").expect("a name")
}

/// Checks the detach of a receive while its sender is still writing a piece. The detach must wait until the
/// piece is done or the sender is dead, even though a third rank has already died.
#[test]
fn a_piece_in_hand_is_waited_for_though_another_rank_has_died() {
    let byte = byte();
    for dead in [false, true] {
        let (segment, [(mut here, mine), (mut there, theirs)]) = job();
        send(&mut here, room(&mine, 1), &byte);
        let received = receive(&mut there, room(&theirs, 2), &byte);
        there.progress().expect("a turn");
        let area = area(&theirs);
        assert_eq!(area.split().claim_back(1, PIECES), Some(0));
        let ending = crate::shm::failure::Ending::Exited(1);
        segment.record_failure(crate::shm::failure::Failure { slot: 2, rank: 2, world: 0, ending });
        segment.tell_failure(2, 0..2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| there.detach(received));
            for _ in 0..10_000 {
                std::thread::yield_now();
            }
            let waits = !waiting.is_finished();
            if dead {
                let state = crate::shm::layout::State::Dead as u32;
                segment.slot(0).state.store(state, Ordering::Release);
            } else {
                area.split().push(1, 1, false);
            }
            assert!(waits);
        });
    }
}

/// Checks a transfer that has the same number as a transfer 2^24 transfers earlier. The sender helped with
/// the old transfer and has helped with none since, so its old count of copied pieces is still in shared
/// memory. The receiver must not mistake the old count for a count of the new transfer.
#[test]
fn counts_of_an_old_transfer_are_not_those_of_a_new_one() {
    let byte = byte();
    let (_segment, [(mut here, mine), (mut there, theirs)]) = job();
    let (source, target) = (room(&mine, 1), room(&theirs, 2));
    let sent = send(&mut here, source, &byte);
    area(&theirs).split().push(1, 3, false);
    let received = receive(&mut there, target, &byte);
    for _ in 0..200 {
        there.progress().expect("a turn");
    }
    finished(&mut there, received);
    for _ in 0..200 {
        here.progress().expect("a turn");
        there.progress().expect("a turn");
    }
    finished(&mut here, sent);
    assert!(equal(source, target));
}
