//! Tests messages that the receiver copies out of the shared heap. With all kinds of types and receives, the
//! result must be the same as after a pack and an unpack. Further tests withdraw messages in the middle of
//! the copy, or announce data with types or places that do not exist.

use super::super::*;
use super::any;
use crate::ErrorKind;
use crate::message::envelope::Space;
use crate::message::envelope::{BYTES, TYPES};
use crate::message::payload::SendMode;
use crate::shm::heap::Heap;
use crate::shm::ring::{Producer, RingMemory};
use crate::shm::segment::{JobFlags, Segment};
use crate::shm::withdrawal::ReadingMemory;
use crate::sync::Word;
use crate::{Datatype, Named, Plan};
use std::sync::Arc;
use typepack_engine::{Elements, wire};
use typepack_test_support::random::Random;

/// Returns the engines and the fabrics of two ranks in one process.
fn pair() -> [(MessageEngine, Fabric); 2] {
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    let segment = Arc::new(segment);
    [0, 1].map(|rank| {
        let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
        fabric.heap().expect("a heap");
        let mut engine = MessageEngine::new(fabric.clone(), 0);
        engine.force(Forced::Heap);
        (engine, fabric)
    })
}

/// Allocates `len` zero bytes in the heap of a rank.
fn room(fabric: &Fabric, len: usize) -> *mut u8 {
    let heap: &Heap = fabric.heap().expect("a heap");
    heap.alloc(len, 64, true).expect("room").as_ptr()
}

fn turn(a: &mut MessageEngine, b: &mut MessageEngine) {
    for _ in 0..200 {
        let moved = a.progress().expect("a turn") | b.progress().expect("a turn");
        if !moved && a.is_idle() && b.is_idle() {
            break;
        }
    }
}

/// Returns a random type made of doubles, and the number of elements of this type that together contain
/// `doubles` doubles.
fn layout(random: &mut Random, doubles: u64) -> (Plan, u64) {
    let double = Datatype::named(Named::F64);
    let n = doubles as i64;
    let half = doubles / 2 * 2 == doubles;
    let (ty, count) = match random.below(6) {
        0 => (double, doubles),
        1 => (Datatype::vector(n, 1, 2 + random.below(5) as i64, &double).unwrap(), 1),
        2 if half => (Datatype::vector(n / 2, 2, 3, &double).unwrap(), 1),
        3 => (Datatype::resized(0, 24, &double).unwrap(), doubles),
        4 => {
            let mut at = 0;
            let places: Vec<i64> = (0..n.min(1500))
                .map(|_| {
                    at += 1 + random.below(4) as i64;
                    at
                })
                .collect();
            let rest = n - places.len() as i64;
            let mut lengths = vec![1; places.len()];
            lengths[places.len() - 1] += rest;
            (Datatype::indexed(&lengths, &places, &double).unwrap(), 1)
        }
        // A negative stride gives the type negative displacements.
        _ => (Datatype::vector(n, 1, -3, &double).unwrap(), 1),
    };
    (ty.commit().expect("a plan"), count)
}

/// Makes a buffer for a layout. Returns the vector that owns the buffer (empty if the buffer lies in the
/// heap), the address of displacement 0, and the buffer's length.
fn buffer_of(fabric: &Fabric, shared: bool, plan: &Plan, count: u64) -> (Vec<u8>, *mut u8, usize) {
    let (first, end) = plan.footprint().reach(count);
    let len = (end - first) as usize + 64;
    let mut own = vec![0u8; if shared { 0 } else { len }];
    let start = if shared { room(fabric, len) } else { own.as_mut_ptr() };
    (own, start.wrapping_offset(32 - first as isize), len)
}

/// Returns the buffer that `buffer_of` has made for a layout, as a slice. Displacement 0 of the layout is at
/// `origin`, and the buffer begins 32 bytes before the layout's first byte.
///
/// # Safety
///
/// - The `len` bytes that begin 32 bytes before the layout's first byte are valid, and nothing else
///   uses them while the slice lives.
unsafe fn around(origin: *mut u8, plan: &Plan, count: u64, len: usize) -> &'static mut [u8] {
    let (first, _) = plan.footprint().reach(count);
    // SAFETY: the caller guarantees that `len` bytes are valid from 32 bytes before the first byte of the
    // layout on, and that nothing else uses them (the only condition of `# Safety`).
    unsafe { std::slice::from_raw_parts_mut(origin.wrapping_offset(first as isize - 32), len) }
}

/// Tests messages between random pairs of layouts. Each of the two buffers lies in a heap or in private
/// memory. The receive is posted before or after the send. The message is copied in many pieces or as a
/// whole. The result must be the same as after a pack and an unpack, and no other byte of the receive's
/// buffer may change.
#[test]
fn a_fetched_message_is_a_packed_and_unpacked_one() {
    let mut random = Random(5);
    let [(mut here, mine), (mut there, theirs)] = pair();
    let mut fused = 0;
    for round in 0..200u64 {
        let doubles = match round % 8 {
            0 => 1,
            7 => 100_000 + random.below(200_000),
            _ => 1 + random.below(3000),
        };
        let bytes = 8 * doubles;
        let ((from, from_count), (to, to_count)) =
            (layout(&mut random, doubles), layout(&mut random, doubles));
        let (in_heap, into_heap) = (random.below(4) > 0, random.below(2) == 0);
        let (_source, from_at, from_len) = buffer_of(&mine, in_heap, &from, from_count);
        let (_target, to_at, to_len) = buffer_of(&theirs, into_heap, &to, to_count);
        // SAFETY: `buffer_of` made `from_len` bytes around `from_at` for this layout, and only this test uses them.
        let source = unsafe { around(from_at, &from, from_count, from_len) };
        // SAFETY: `buffer_of` made `to_len` bytes around `to_at` for this layout. They do not overlap the
        // source.
        let target = unsafe { around(to_at, &to, to_count, to_len) };
        source.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
        target.fill(0xee);
        let mut expected = target.to_vec();
        {
            let mut packed = vec![0u8; bytes as usize];
            let (first, _) = to.footprint().reach(to_count);
            let origin = expected.as_mut_ptr().wrapping_offset(32 - first as isize);
            // SAFETY: `packed` and `expected` are vectors with room for the whole message. They overlap
            // neither `source` nor each other.
            unsafe {
                typepack_engine::pack_raw(
                    &from,
                    from_count,
                    from_at,
                    0..bytes,
                    packed.as_mut_ptr(),
                );
                typepack_engine::unpack_raw(&to, to_count, origin, 0..bytes, packed.as_ptr());
            }
        }
        let label = Label { context: 3, tag: 1, bytes, types: UNKNOWN };
        let send = Elements { origin: from_at, plan: &from, count: from_count };
        let receive = Elements { origin: to_at, plan: &to, count: to_count };
        let posted = round % 3 == 0;
        // SAFETY: the buffer at `to_at` has room for the `bytes` bytes of the layout. The receive ends below, before
        // the buffer is freed, and nobody else uses the buffer meanwhile.
        let post = |there: &mut MessageEngine| unsafe {
            there.receive(&any(receive, bytes, 3)).expect("a receive")
        };
        let early = posted.then(|| post(&mut there));
        // SAFETY: the elements at `from_at` have `bytes` packed bytes. They stay readable and unchanged until the end
        // of the send, in this round.
        let sent = unsafe { here.send(&send, label, Process::new(1), SendMode::Standard) }
            .expect("a send");
        if !posted {
            turn(&mut here, &mut there);
        }
        let received = early.unwrap_or_else(|| post(&mut there));
        turn(&mut here, &mut there);
        for (engine, started) in [(&mut here, sent), (&mut there, received)] {
            if let Operation::Pending(id) = started {
                let status = engine.requests().fetch(id).expect("complete").expect("well");
                assert_eq!(status.bytes, bytes);
            }
        }
        assert!(*target == *expected, "round {round}");
        fused += u64::from(in_heap);
        if in_heap {
            mine.heap().expect("a heap").free(source.as_mut_ptr());
        }
        if into_heap {
            theirs.heap().expect("a heap").free(target.as_mut_ptr());
        }
    }
    // The fused copy handles the messages whose source lies in the heap, except those whose encoded type is too long to
    // get a number. The exceptions must be fewer than half of these messages.
    let traffic = here.traffic();
    assert!(traffic.fused > fused / 2 && traffic.fused <= fused, "{traffic:?}, {fused}");
    assert_eq!(traffic.fused + traffic.pipelined, 200);
}

fn doubles() -> (Plan, Plan) {
    let double = Datatype::named(Named::F64);
    let vector = Datatype::vector(1 << 18, 1, 2, &double).unwrap().commit().unwrap();
    (double.commit().unwrap(), vector)
}

/// Checks that the caller may change the memory of a send as soon as the send is detached. The receiver must
/// get the bytes that the memory held when the send was detached, even if the receiver had not yet matched
/// the RTS, and even if the receiver had already begun to read.
#[test]
fn what_is_withdrawn_arrives_as_it_was() {
    let (double, vector) = doubles();
    for stage in 0..4 {
        let [(mut here, mine), (mut there, theirs)] = pair();
        let (bytes, count) = (8u64 << 18, 1);
        let (_, origin, len) = buffer_of(&mine, true, &vector, count);
        // SAFETY: `buffer_of` made `len` bytes around `origin` for this layout, and no slice of them exists yet.
        let source = unsafe { around(origin, &vector, count, len) };
        source.fill(7);
        let mut target = vec![0u8; bytes as usize];
        let send = Elements { origin, plan: &vector, count };
        let receive = Elements { origin: target.as_mut_ptr(), plan: &double, count: 1 << 18 };
        let label = Label { context: 3, tag: 1, bytes, types: UNKNOWN };
        // SAFETY: both buffers hold `bytes` packed bytes and outlive the operations. The test changes the source only
        // after the send is detached.
        let (id, received) = unsafe {
            let Operation::Pending(id) =
                here.send(&send, label, Process::new(1), SendMode::Standard).unwrap()
            else {
                panic!("complete")
            };
            if stage > 0 {
                there.progress().unwrap();
            }
            // The copy has two pieces. At stage 2 the receiver has copied one piece, and at stage 3 both
            // pieces.
            let received = there.receive(&any(receive, bytes, 3)).unwrap();
            for _ in 1..stage {
                there.progress().unwrap();
            }
            here.detach(id);
            source.fill(9);
            (id, received)
        };
        turn(&mut here, &mut there);
        let Operation::Pending(receive) = received else { panic!("complete") };
        assert!(there.requests().fetch(receive).expect("complete").is_ok());
        assert!(target.iter().all(|&byte| byte == 7), "stage {stage}");
        assert!(here.requests().get(id).is_none() && here.others_are_served());
        assert!(there.others_are_served());
        drop(theirs);
    }
}

/// Checks two kinds of receives. A receive that is detached in the middle of the copy must answer its
/// sender, and no rank may write to its memory afterwards. A receive that is too small must refuse the
/// message, and its memory must not change.
#[test]
fn receives_that_are_gone_or_too_small_answer() {
    let (double, vector) = doubles();
    let [(mut here, mine), (mut there, _theirs)] = pair();
    let bytes = 8u64 << 18;
    let (_, origin, _) = buffer_of(&mine, true, &vector, 1);
    let mut target = vec![1u8; bytes as usize];
    let send = Elements { origin, plan: &vector, count: 1 };
    let receive = Elements { origin: target.as_mut_ptr(), plan: &double, count: 1 << 18 };
    let label = Label { context: 3, tag: 1, bytes, types: UNKNOWN };
    // SAFETY: the buffers hold the elements of the layouts and live to the end of the test, after all turns. The test
    // accesses the target only after its receive has ended or is detached.
    unsafe {
        let Operation::Pending(sent) =
            here.send(&send, label, Process::new(1), SendMode::Standard).unwrap()
        else {
            panic!("complete")
        };
        there.progress().unwrap();
        let received = there.receive(&any(receive, bytes, 3)).unwrap();
        let Operation::Pending(received) = received else { panic!("complete") };
        there.progress().unwrap();
        there.detach(received);
        target.fill(1);
        turn(&mut here, &mut there);
        assert!(here.requests().fetch(sent).expect("complete").is_ok());
        assert!(target.iter().all(|&byte| byte == 1));

        let Operation::Pending(sent) =
            here.send(&send, label, Process::new(1), SendMode::Standard).unwrap()
        else {
            panic!("complete")
        };
        there.progress().unwrap();
        let small = there.receive(&any(receive, bytes - 1, 3));
        assert_eq!(small.unwrap_err().kind(), ErrorKind::Truncated);
        turn(&mut here, &mut there);
        assert!(here.requests().fetch(sent).expect("complete").is_ok());
        assert!(target.iter().all(|&byte| byte == 1));
    }
}

/// Checks that impossible definitions of types and impossible places of data cause errors before the rank
/// reads or writes any data.
#[test]
fn lies_about_data_are_violations() {
    let (_, vector) = doubles();
    let encoding = wire::encode(&vector);
    let heap = pair()[0].1.heap_bytes();
    let bytes = 8u64 << 18;
    let space = Space::Heap;
    let place = |number, origin, count| Some(Place { space, number, origin, count });
    let cases: Vec<(Vec<u8>, Option<Place>, u64)> = vec![
        (encoding.clone(), place(1, 0, 1), bytes),
        (encoding.clone(), place(0, heap - 8, 1), bytes),
        (encoding.clone(), place(0, u64::MAX, 1), bytes),
        (encoding.clone(), place(0, 0, 2), bytes),
        (encoding.clone(), place(0, 0, u64::MAX), bytes),
        (encoding.clone(), place(0, 0, 1), bytes - 1),
        (encoding.clone(), place(TYPES as u32 - 1, 0, 1), bytes),
        (encoding.clone(), place(BYTES, heap - 7, 8), 8),
        (encoding[..encoding.len() - 1].to_vec(), None, 8),
        (vec![0xff; 300], None, 8),
    ];
    for (encoding, place, bytes) in cases {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let segment = Arc::new(segment);
        let mut victim =
            MessageEngine::new(Fabric::join(segment.clone(), 0).expect("rank 0"), 8 << 10);
        let hostile = Fabric::join(segment, 1).expect("rank 1");
        let area = hostile.contact(0).expect("contact");
        let mut target = vec![1u8; 1 << 21];
        let double = Datatype::named(Named::U8).commit().unwrap();
        let layout = Elements { origin: target.as_mut_ptr(), plan: &double, count: 1 << 21 };
        // SAFETY: `target` has `1 << 21` bytes and lives to the end of the round. `victim` runs no turn after that.
        unsafe { victim.receive(&any(layout, 1 << 21, 3)) }.expect("a receive");
        let mut tx =
            Producer::new::<crate::transport::link::area::Area>(crate::shm::pair::first_level(2));
        let room = tx.reserve(&area, encoding.len()).expect("credits").expect("room");
        let define = Envelope::Define { number: 0, bytes: encoding.len() as u64 };
        // SAFETY: `room` has `encoding.len()` bytes in the payload area, and `encoding` is a vector outside
        // the area.
        unsafe {
            area.payload(room.offset).copy_from_nonoverlapping(encoding.as_ptr(), encoding.len());
        }
        let (words, used) = define.encode();
        tx.publish(&area, room, &words, used);
        let room = tx.reserve(&area, 0).expect("credits").expect("room");
        let label = Label { context: 3, tag: 1, bytes, types: UNKNOWN };
        let (words, used) = Envelope::Rts(label, 5.into(), place).encode();
        tx.publish(&area, room, &words, used);
        for _ in 0..2 {
            let error = victim.progress().expect_err("a violation");
            assert!(error.to_string().contains("rank 1 broke the protocol"), "{error}");
        }
        assert!(target.iter().all(|&byte| byte == 1));
    }
    // The hostile rank sends a Withdraw envelope, although its counter says that it has withdrawn nothing.
    let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
    let mut victim = MessageEngine::new(Fabric::join(segment.clone(), 0).expect("rank 0"), 8 << 10);
    let hostile = Fabric::join(segment, 1).expect("rank 1");
    let area = hostile.contact(0).expect("contact");
    let mut tx =
        Producer::new::<crate::transport::link::area::Area>(crate::shm::pair::first_level(2));
    let label = Label { context: 3, tag: 1, bytes: 8, types: UNKNOWN };
    for envelope in [Envelope::Withdraw(7), Envelope::Rts(label, 5.into(), place(BYTES, 0, 8))] {
        let room = tx.reserve(&area, 0).expect("credits").expect("room");
        let (words, used) = envelope.encode();
        tx.publish(&area, room, &words, used);
    }
    let mut target = [1u8; 8];
    let byte = Datatype::named(Named::U8).commit().unwrap();
    let layout = Elements { origin: target.as_mut_ptr(), plan: &byte, count: 8 };
    // SAFETY: the array `target` has 8 bytes and lives until `victim` has run its last turn, below.
    unsafe { victim.receive(&any(layout, 8, 3)) }.expect("a receive");
    assert!(victim.progress().is_err());
    assert_eq!(target, [1; 8]);
    // The hostile rank has counted no withdrawal, and the victim has freed no slot of the ring.
    assert_eq!(area.withdrawn().load_relaxed(), 0);
    assert_eq!(area.slots_freed().load_relaxed(), 0);
}

/// Checks that a request for help is an error if it names a send that does not exist, or a place that the
/// receiver does not have. The error must come before the sender writes a byte. A count of more pieces than
/// were claimed must also be an error.
#[test]
fn lies_about_help_are_violations() {
    let double = Datatype::named(Named::F64).commit().unwrap();
    let bytes = 80_000;
    let honest = Place { space: Space::Heap, number: BYTES, origin: 0, count: bytes };
    let lies = [
        (99, bytes, honest),
        (0, bytes - 8, honest),
        (0, bytes, Place { count: bytes - 1, ..honest }),
        (0, bytes, Place { origin: u64::MAX - 100, ..honest }),
        (0, bytes, Place { number: 3, ..honest }),
        (0, bytes, Place { count: u64::MAX, ..honest }),
    ];
    for (wrong, length, place) in lies {
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
        let fabric = Fabric::join(segment.clone(), 0).expect("rank 0");
        let mut victim = MessageEngine::new(fabric.clone(), 8 << 10);
        let hostile = Fabric::join(segment, 1).expect("rank 1");
        let (_, origin, _) = buffer_of(&fabric, true, &double, 10_000);
        let layout = Elements { origin, plan: &double, count: 10_000 };
        let label = Label { context: 3, tag: 1, bytes, types: UNKNOWN };
        // SAFETY: `buffer_of` made the memory of the send in the heap, which outlives `victim`, and nobody writes to
        // it.
        let sent = unsafe { victim.send(&layout, label, Process::new(1), SendMode::Standard) }
            .expect("a send");
        let Operation::Pending(id) = sent else { panic!("complete") };
        let area = hostile.contact(0).expect("contact");
        let mut tx =
            Producer::new::<crate::transport::link::area::Area>(crate::shm::pair::first_level(2));
        let room = tx.reserve(&area, 0).expect("credits").expect("room");
        let help = Envelope::Help {
            id: id + wrong,
            number: 1,
            method: Method::Vector,
            bytes: length,
            place,
        };
        let (words, used) = help.encode();
        tx.publish(&area, room, &words, used);
        assert!(victim.progress().is_err(), "{help:?}");
    }
    // Here the sender counts more pieces than it has claimed. The message takes several turns, and the first
    // turn opens the split.
    let (bytes, count) = (3 << 20, 3 << 17);
    let [(mut here, mine), (mut there, theirs)] = pair();
    let (_, from, _) = buffer_of(&mine, true, &double, count);
    let (_, to, _) = buffer_of(&theirs, true, &double, count);
    let send = Elements { origin: from, plan: &double, count };
    let receive = Elements { origin: to, plan: &double, count };
    let label = Label { context: 3, tag: 1, bytes, types: UNKNOWN };
    // SAFETY: both buffers hold `bytes` bytes, and only the two operations use them. They lie in heaps that stay mapped
    // until the two engines have run their last turns.
    unsafe {
        there.receive(&any(receive, bytes, 3)).expect("a receive");
        here.send(&send, label, Process::new(1), SendMode::Standard).expect("a send");
    }
    let area = theirs.written_by(0).expect("a mailbox").expect("a name");
    there.progress().expect("a turn");
    area.split().push(1, 1000, false);
    let error = (0..5).find_map(|_| there.progress().err()).expect("a violation");
    assert!(error.to_string().contains("pieces that the sender has counted is 1000"), "{error}");
}

/// Checks that a sender that copies the last piece wakes the receiver in the same turn. Otherwise the
/// receiver could go on sleeping, because the sender's next turn may come much later.
#[test]
fn who_copies_the_last_piece_calls() {
    let [(mut here, mine), (mut there, theirs)] = pair();
    let byte = Datatype::named(Named::U8).commit().unwrap();
    // A message of this length has exactly the pieces that one turn copies.
    let bytes = 1 << 20;
    let (_, from, _) = buffer_of(&mine, true, &byte, bytes);
    let (_, to, _) = buffer_of(&theirs, true, &byte, bytes);
    let send = Elements { origin: from, plan: &byte, count: bytes };
    let receive = Elements { origin: to, plan: &byte, count: bytes };
    let label = Label { context: 3, tag: 1, bytes, types: UNKNOWN };
    // SAFETY: both buffers hold `bytes` bytes, and only the two operations use them. They lie in heaps, which live as
    // long as the engines `here` and `there`.
    let received = unsafe {
        here.send(&send, label, Process::new(1), SendMode::Standard).expect("a send");
        there.progress().expect("a turn");
        there.receive(&any(receive, bytes, 3)).expect("a receive")
    };
    let Operation::Pending(received) = received else { panic!("complete") };
    let seen = theirs.announce();
    here.progress().expect("a turn");
    let called = theirs.announce() != seen;
    there.progress().expect("a turn");
    assert!(there.requests().fetch(received).expect("complete").is_ok());
    assert!(called);
}
