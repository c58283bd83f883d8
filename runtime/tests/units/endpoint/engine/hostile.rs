//! Tests the engine against ranks that break the protocol. Further tests check when requests complete, and
//! which requests can be cancelled.

use super::super::*;
use super::any;
use crate::message::payload::SendMode;
use crate::shm::bulk::{ChunkMemory, Filler, Full};
use crate::shm::pair::{CHUNK_BYTES, CHUNKS};
use crate::shm::ring::{Producer, RingMemory};
use crate::shm::segment::{JobFlags, Segment};
use crate::sync::Word;
use crate::transport::link::area::SMALL;
use crate::{Datatype, Named};
use std::sync::Arc;
use typepack_engine::Elements;

/// Returns the engine of rank 0 and the fabric of rank 1. The test itself acts as rank 1.
fn job() -> (MessageEngine, Fabric) {
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    let segment = Arc::new(segment);
    let victim = Fabric::join(segment.clone(), 0).expect("rank 0");
    (MessageEngine::new(victim, 8 << 10), Fabric::join(segment, 1).expect("rank 1"))
}

/// Checks the engine against a rank that returns impossible credits. The call that reads the credits must
/// fail. After the failure the engine must no longer use the caller's buffers, whatever chunks and CTS
/// arrive later.
#[test]
fn a_call_that_fails_lets_go_of_its_memory() {
    let word = Datatype::named(Named::U64).commit().expect("a plan");
    let (mut engine, hostile) = job();
    let mut buffer = vec![7u64; 2000];
    let origin = buffer.as_mut_ptr().cast();
    let layout = Elements { origin, plan: &word, count: 2000 };
    let label = Label { context: 0, tag: 3, bytes: 16_000, types: UNKNOWN };

    // Rank 1 sends an RTS that no receive matches yet.
    let area = hostile.contact(0).expect("contact");
    let mut tx =
        Producer::new::<crate::transport::link::area::Area>(crate::shm::pair::first_level(2));
    let room = tx.reserve(&area, 0).expect("credits").expect("room");
    let (words, used) = Envelope::Rts(label, 5.into(), None).encode();
    tx.publish(&area, room, &words, used);
    engine.progress().expect("a turn");

    // Fill the ring to rank 1. Then rank 1 claims to have freed an impossible number of slots.
    let empty = Label { bytes: 0, ..label };
    let pending = loop {
        // SAFETY: an empty message has no byte to read, and `SendMode::Standard` lends no memory.
        match unsafe { engine.send(&layout, empty, Process::new(1), SendMode::Standard) }
            .expect("a send")
        {
            Operation::Done(_) => {}
            Operation::Pending(id) => break id,
        }
    };
    hostile
        .written_by(0)
        .expect("a mailbox")
        .expect("a name")
        .slots_freed()
        .store_relaxed(u64::MAX);

    // SAFETY: the vector `buffer` is at least as long as the layout, and after these failed calls no
    // operation uses it.
    unsafe {
        engine.send(&layout, label, Process::new(1), SendMode::Standard).expect_err("a send");
        engine
            .receive(&Posting {
                layout,
                capacity: 16_000,
                context: 0,
                source: Sender::Process(Process::new(1)),
                tag: Tag::Any,
            })
            .expect_err("a receive");
    }
    let (sent, received) = (pending + 1, pending + 2);
    let send = engine.requests().send(sent).expect("a send without an owner");
    assert!(matches!(send.supply, Supply::Packed(_)));
    let receive = engine.requests().receive(received).expect("a receive without an owner");
    assert!(matches!(receive.sink, Sink::Discard));
}

/// Checks that a synchronous message of any length completes when a receive matches it, and not before.
/// The receive is posted before the message, is posted later, belongs to a matched probe, or is too small.
#[test]
fn a_synchronous_send_ends_with_the_match() {
    let byte = Datatype::named(Named::U8).commit().expect("a plan");
    let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
    let mut here = MessageEngine::new(Fabric::join(segment.clone(), 0).expect("rank 0"), 8 << 10);
    let mut there = MessageEngine::new(Fabric::join(segment, 1).expect("rank 1"), 8 << 10);
    let how = SendMode::Synchronous;
    for len in [0u64, 1, 32, 33, 8 << 10] {
        let (mut data, mut buffer) = (vec![len as u8; 8 << 10], vec![0u8; 8 << 10]);
        let from = Elements { origin: data.as_mut_ptr(), plan: &byte, count: len };
        for way in 0..4 {
            let capacity = if way == 3 { len / 2 } else { len };
            let to = Elements { origin: buffer.as_mut_ptr(), plan: &byte, count: capacity };
            let (context, source) = (6, Sender::Process(Process::new(0)));
            // SAFETY: the vector of `to` has room for `capacity` bytes and outlives the receives, all of which end
            // below. Nobody else uses it meanwhile.
            let receive = |there: &mut MessageEngine| unsafe {
                there.receive(&Posting { layout: to, capacity, context, source, tag: Tag::Any })
            };
            let posted = (way == 0).then(|| receive(&mut there).expect("a receive"));
            let label = Label { context, tag: 3, bytes: len, types: UNKNOWN };
            // SAFETY: the vector of `from` has `len` bytes. It outlives the send, which ends below, and never changes.
            let sent = unsafe { here.send(&from, label, Process::new(1), how) }.expect("a send");
            let Operation::Pending(id) = sent else { panic!("{len} bytes are complete") };
            here.progress().expect("a turn");
            assert!(!here.requests().is_complete(id), "{len} bytes");
            there.progress().expect("a turn");
            if posted.is_none() {
                here.progress().expect("a turn");
                assert!(!here.requests().is_complete(id), "{len} bytes");
            }
            match (way, posted) {
                (0, Some(Operation::Pending(id))) => {
                    let result = there.requests().fetch(id).expect("complete");
                    assert_eq!(result.expect("a message").bytes, len);
                }
                (2, _) => {
                    let taken = there.take(context, source, Tag::Any).expect("a message");
                    assert_eq!(taken.status().bytes, len);
                    assert!(there.probe(context, source, Tag::Any).is_none());
                    here.progress().expect("a turn");
                    assert!(!here.requests().is_complete(id), "{len} bytes");
                    // SAFETY: the vector of `to` has room for `capacity` bytes and outlives the receive, which
                    // completes here.
                    unsafe { there.receive_taken(&to, capacity, taken) }.expect("a receive");
                }
                _ => assert_eq!(receive(&mut there).is_err(), capacity < len),
            }
            here.progress().expect("a turn");
            assert!(matches!(here.requests().fetch(id), Some(Ok(_))), "{len} bytes");
            assert!(buffer[..capacity as usize].iter().all(|&b| b == len as u8));
        }
    }
}

/// Checks that a cancelled receive matches nothing, and that a matched receive cannot be cancelled.
#[test]
fn only_unmatched_receives_are_cancelled() {
    let word = Datatype::named(Named::U64).commit().expect("a plan");
    let (mut engine, _other) = job();
    let (mut data, mut buffer) = (vec![5u64; 4], vec![0u64; 4]);
    let to = Elements { origin: buffer.as_mut_ptr().cast(), plan: &word, count: 4 };
    let from = Elements { origin: data.as_mut_ptr().cast(), plan: &word, count: 4 };
    let label = Label { context: 2, tag: 1, bytes: 32, types: UNKNOWN };
    for source in [Sender::Any, Sender::Process(Process::new(0))] {
        // SAFETY: the vector of `to` has the 32 bytes of the layout and outlives both receives, which end below. The
        // test reads it only afterwards.
        let mut receive = || unsafe {
            engine.receive(&Posting { layout: to, capacity: 32, context: 2, source, tag: Tag::Any })
        };
        let (first, second) = (receive().expect("one"), receive().expect("another"));
        let (Operation::Pending(first), Operation::Pending(second)) = (first, second) else {
            panic!("nothing was sent");
        };
        assert!(engine.cancel_receive(first) && !engine.cancel_receive(first));
        // SAFETY: the vector of `from` has 32 bytes. The send to this rank itself completes in this call, while the
        // vector lives.
        unsafe { engine.send(&from, label, Process::new(0), SendMode::Standard) }.expect("a send");
        assert!(!engine.cancel_receive(second));
        assert!(matches!(engine.requests().fetch(second), Some(Ok(_))));
        assert_eq!((engine.requests().in_flight(), buffer[3]), (0, 5));
    }
}

/// Checks arbitrary envelopes of a hostile rank, half of them close to valid ones. The engine may answer
/// in any way, but must not panic, and must not access memory outside the 64 words of the buffer.
#[test]
fn hostile_envelopes_are_errors() {
    let word = Datatype::named(Named::U64).commit().expect("a plan");
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) ^ (state << 31)
    };
    let mut refused = 0;
    for round in 0..3000 {
        let (mut engine, hostile) = job();
        if round % 2 == 0 {
            engine.check_types();
        }
        let area = hostile.contact(0).expect("contact");
        let mut buffer = vec![0u64; 66];
        let origin = buffer[1..65].as_mut_ptr().cast();
        let layout = Elements { origin, plan: &word, count: 64 };
        // SAFETY: the layout is 512 bytes of `buffer`. The buffer outlives all turns of the engine, and the test reads
        // it only after these turns.
        unsafe {
            engine.receive(&any(layout, 512, 0)).expect("a receive");
            let label = Label { context: 0, tag: 0, bytes: 512, types: UNKNOWN };
            let offer = Label { bytes: 0, ..label };
            engine.send(&layout, offer, Process::new(1), SendMode::Standard).expect("a send");
        }
        let mut tx =
            Producer::new::<crate::transport::link::area::Area>(crate::shm::pair::first_level(2));
        for _ in 0..random() % 6 {
            let Ok(Some(room)) = tx.reserve(&area, (random() % 16_384) as usize) else { break };
            let near = random() % 2 == 0;
            let words = std::array::from_fn(|i| match (near, i) {
                (true, 0) => {
                    let types = [0, 0, 0, 1, 2, random() % (1 << 24)][random() as usize % 6];
                    (random() % 13) | types << 8 | ((random() % 3) << 32)
                }
                (true, 1) => 0,
                (true, 2) => [0, 8, 64, 512, 520, 9000, 16_384, 1 << 40][random() as usize % 8],
                (true, 3) => [1 << 32, 0, (1 << 32) | 1, random()][random() as usize % 4],
                _ => random(),
            });
            tx.publish(&area, room, &words, 7);
        }
        hostile.reserve_stamps(0, &area).expect("stamps");
        let mut filler = Filler::default();
        for _ in 0..random() % 4 {
            if let Ok(Some(number)) = filler.next(&area) {
                let lengths = [1, 512, CHUNK_BYTES as u64, CHUNK_BYTES as u64 + 1, u64::MAX];
                let places = [0, SMALL, 255, 257, u64::MAX];
                let place = places[random() as usize % 5];
                let message = [0, 0, 1, 2, u64::MAX][random() as usize % 5];
                filler.publish(&area, Full { place, len: 1, message });
                area.length(number as usize % CHUNKS).store_relaxed(lengths[random() as usize % 5]);
            }
        }
        for _ in 0..20 {
            if engine.progress().is_err() {
                refused += 1;
                break;
            }
        }
        drop(engine);
        assert_eq!((buffer[0], buffer[65]), (0, 0));
    }
    assert!(refused > 500, "{refused}");
}
