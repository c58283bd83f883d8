//! Tests messages from the private memory of one rank to the private memory of another. In the tests, the
//! receiver copies the message, the system refuses the copy, a rank withdraws the message in the middle of the
//! copy, or a rank names a wrong place.

use super::super::*;
use super::any;
use crate::message::envelope::BYTES;
use crate::message::envelope::Space;
use crate::message::payload::SendMode;
use crate::shm::layout::State;
use crate::shm::pair;
use crate::shm::ring::{Producer, RingMemory};
use crate::shm::segment::{JobFlags, Segment};
use crate::sync::Word;
use crate::transport::link::area::Area;
use crate::{Datatype, Named, Plan};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use typepack_engine::Elements;

/// The probe number of both ranks in these tests. A rank reads this number from the memory of the other rank
/// to find out whether it may access that memory.
static NUMBER: u64 = 0x7465_7374_6e75_6d62;

/// Returns the engines and the fabrics of two ranks in one process. Private copies work between them, because
/// a process may access its own memory.
fn pair() -> [(MessageEngine, Fabric); 2] {
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    pair_in(&Arc::new(segment))
}

fn pair_in(segment: &Arc<Segment>) -> [(MessageEngine, Fabric); 2] {
    [0, 1].map(|rank| {
        let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
        segment.slot(rank).pid.store(std::process::id(), Ordering::Relaxed);
        fabric.open_memory(std::ptr::from_ref(&NUMBER) as u64, NUMBER);
        let mut engine = MessageEngine::new(fabric.clone(), 0);
        engine.force(Forced::Cma);
        (engine, fabric)
    })
}

fn byte() -> Plan {
    Datatype::named(Named::U8).commit().expect("a plan")
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ seed).collect()
}

const CONTEXT: u64 = 3;

/// Starts a send of all bytes of `data`.
fn send(engine: &mut MessageEngine, data: &mut [u8], plan: &Plan) -> u64 {
    let count = data.len() as u64;
    let layout = Elements { origin: data.as_mut_ptr(), plan, count };
    let label = Label { context: CONTEXT, tag: 1, bytes: count, types: UNKNOWN };
    // SAFETY: `data` has `count` bytes. The tests change or free `data` only after the send is complete or detached, or
    // run no turn afterwards.
    match unsafe { engine.send(&layout, label, Process::new(1), SendMode::Standard) }
        .expect("a send")
    {
        Operation::Pending(id) => id,
        Operation::Done(_) => panic!("complete"),
    }
}

/// Starts a receive into all bytes of `data`.
fn receive(engine: &mut MessageEngine, data: &mut [u8], plan: &Plan) -> u64 {
    let bytes = data.len() as u64;
    let layout = Elements { origin: data.as_mut_ptr(), plan, count: bytes };
    // SAFETY: `data` has `bytes` bytes. The tests use or free `data` only after the receive is complete or detached, or
    // run no turn afterwards.
    let started = unsafe { engine.receive(&any(layout, bytes, CONTEXT)) };
    match started.expect("a receive") {
        Operation::Pending(id) => id,
        Operation::Done(_) => panic!("complete"),
    }
}

fn turn(a: &mut MessageEngine, b: &mut MessageEngine) {
    for _ in 0..5000 {
        let moved = a.progress().expect("a turn") | b.progress().expect("a turn");
        if !moved && a.is_idle() && b.is_idle() {
            return;
        }
    }
    panic!("no end");
}

fn finished(engine: &mut MessageEngine, id: u64, bytes: usize) {
    let status = engine.requests().fetch(id).expect("complete").expect("well");
    assert_eq!(status.bytes, bytes as u64);
}

/// Checks messages with lengths around the number of bytes that a rank copies in a turn. The sender may or may
/// not run turns meanwhile.
#[test]
fn every_length_arrives() {
    let byte = byte();
    for alone in [false, true] {
        let [(mut here, _), (mut there, _)] = pair();
        let mut messages = 0;
        for len in [1, 2, 4095, 32_767, 32_768, 32_769, 100_000, 262_145, 1 << 20, 5_000_001] {
            let mut source = pattern(len, len as u8);
            let mut target = vec![0xee; len + 64];
            let sent = send(&mut here, &mut source, &byte);
            let received = receive(&mut there, &mut target[32..len + 32], &byte);
            if alone {
                for _ in 0..200 {
                    there.progress().expect("a turn");
                }
                finished(&mut there, received, len);
            }
            turn(&mut here, &mut there);
            finished(&mut here, sent, len);
            if !alone {
                finished(&mut there, received, len);
            }
            assert!(target[32..len + 32] == source[..], "{len}");
            assert!(target[..32].iter().chain(&target[len + 32..]).all(|&byte| byte == 0xee));
            messages += 1;
        }
        let traffic = here.traffic();
        assert_eq!((traffic.private, traffic.pipelined, traffic.fused), (messages, 0, 0));
    }
}

/// Checks that the sender packs the message if one of the two layouts is not one run, or if the system
/// refuses the access.
#[test]
fn what_cannot_be_copied_is_packed() {
    let byte = byte();
    let pairs = Datatype::vector(50_000, 2, 3, &Datatype::named(Named::U8)).unwrap();
    let pairs = pairs.commit().unwrap();
    type Spoil = fn(&Fabric, &Fabric);
    let cases: [(Spoil, u64); 6] = [
        (|_, _| {}, 1),
        // The probe number that rank 0 announces in its slot differs from the number in its memory, as if the
        // process id in the slot belonged to another process.
        (|_, there| there.slot_of(0).probe[1].store(1, Ordering::Relaxed), 0),
        (|_, there| there.slot_of(0).pid.store(0, Ordering::Relaxed), 0),
        (|_, there| there.slot_of(0).pid.store(i32::MAX as u32, Ordering::Relaxed), 0),
        // In these two cases one of the ranks does not announce the address of its probe number, so no rank
        // may access its private memory.
        (|here, _| here.slot_of(0).probe_at[0].store(0, Ordering::Relaxed), 0),
        (|_, there| there.slot_of(1).probe_at[0].store(0, Ordering::Relaxed), 0),
    ];
    for (i, (spoil, split)) in cases.into_iter().enumerate() {
        let [(mut here, mine), (mut there, theirs)] = pair();
        spoil(&mine, &theirs);
        let (mut source, mut target) = (pattern(100_000, 1), vec![0; 100_000]);
        let sent = send(&mut here, &mut source, &byte);
        let received = receive(&mut there, &mut target, &byte);
        turn(&mut here, &mut there);
        finished(&mut here, sent, 100_000);
        finished(&mut there, received, 100_000);
        assert!(source == target, "case {i}");
        assert_eq!(here.traffic().private, split, "case {i}");
        assert_eq!(here.traffic().pipelined, 1 - split, "case {i}");
    }
    let [(mut here, _), (mut there, _)] = pair();
    let (mut source, mut target) = (pattern(100_000, 1), vec![9; 150_000]);
    let sent = send(&mut here, &mut source, &byte);
    let layout = Elements { origin: target.as_mut_ptr(), plan: &pairs, count: 1 };
    // SAFETY: `target` has room for the layout, whose elements have 100,000 packed bytes. `target` outlives the
    // receive, which completes in the turns below, and nobody else uses it meanwhile.
    unsafe { there.receive(&any(layout, 100_000, CONTEXT)) }.expect("a receive");
    turn(&mut here, &mut there);
    finished(&mut here, sent, 100_000);
    assert_eq!(here.traffic().pipelined, 1);
    let arrived: Vec<u8> = target.chunks(3).flat_map(|three| three[..2].to_vec()).collect();
    assert!(arrived == source && target.chunks_exact(3).all(|three| three[2] == 9));
}

/// Checks that the caller may use the memory of an operation as soon as the operation is detached, however
/// far the copy has progressed. If a send is detached, the receiver must get the bytes that the memory held
/// when the send was detached. After a receive is detached, no rank may write to the memory of the receive.
#[test]
fn what_is_withdrawn_is_left_alone() {
    let byte = byte();
    const LEN: usize = 3 << 20;
    for stage in 0..12 {
        for (receiver, sender_first) in [(false, false), (false, true), (true, false), (true, true)]
        {
            if receiver && stage == 0 {
                // Skip this case, because no message has matched the receive yet. The detach would cancel the
                // receive, and the message would wait for another receive.
                continue;
            }
            let [(mut here, _), (mut there, _)] = pair();
            let (mut source, mut target) = (vec![7u8; LEN], vec![1u8; LEN]);
            let sent = send(&mut here, &mut source, &byte);
            let received = receive(&mut there, &mut target, &byte);
            for _ in 0..stage {
                if sender_first {
                    here.progress().expect("a turn");
                }
                there.progress().expect("a turn");
                if !sender_first {
                    here.progress().expect("a turn");
                }
            }
            if receiver {
                there.detach(received);
                target.fill(1);
                turn(&mut here, &mut there);
                assert!(target.iter().all(|&byte| byte == 1), "stage {stage}");
                finished(&mut here, sent, LEN);
            } else {
                here.detach(sent);
                source.fill(9);
                turn(&mut here, &mut there);
                finished(&mut there, received, LEN);
                assert!(target.iter().all(|&byte| byte == 7), "stage {stage}");
            }
            assert!(here.others_are_served() && there.others_are_served());
            // Afterwards the two ranks must still be able to exchange a message.
            let (mut source, mut target) = (pattern(200_000, 5), vec![0; 200_000]);
            let sent = send(&mut here, &mut source, &byte);
            let received = receive(&mut there, &mut target, &byte);
            turn(&mut here, &mut there);
            finished(&mut here, sent, 200_000);
            finished(&mut there, received, 200_000);
            assert!(source == target);
        }
    }
}

/// Checks that the detach of a send copies the message only if its receiver lives: the copy of a long message would
/// delay the error of the caller.
#[test]
fn a_message_to_a_dead_rank_is_not_copied() {
    for dies in [false, true] {
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
        let [(mut here, _), (mut there, _)] = pair_in(&segment);
        let (mut source, mut target) = (pattern(3 << 20, 1), vec![0; 3 << 20]);
        let sent = send(&mut here, &mut source, &byte());
        receive(&mut there, &mut target, &byte());
        here.progress().expect("a turn");
        there.progress().expect("a turn");
        if dies {
            segment.slot(1).state.store(State::Dead as u32, Ordering::Release);
        }
        here.detach(sent);
        let supply = here.requests.send(sent).map(|send| &send.supply).expect("the send");
        match supply {
            Supply::Packed(copy) => assert!(!dies && *copy == source),
            other => assert!(dies && matches!(other, Supply::Lost), "{other:?}"),
        }
    }
}

/// Checks that a rank never writes to the private memory of another rank, whatever the other ranks write
/// to shared memory: here a request for help with a message, and the word of an open split. The place in
/// the request is memory of a process that has nothing to do with the message.
#[test]
fn nobody_can_direct_a_write() {
    let byte = byte();
    const LEN: usize = 1 << 20;
    let [(mut here, _), (_, theirs)] = pair();
    let area = theirs.contact(0).expect("contact");
    let mut source = pattern(LEN, 1);
    let victim = vec![1u8; LEN];
    let sent = send(&mut here, &mut source, &byte);
    here.progress().expect("a turn");
    let words = theirs.written_by(0).expect("a mailbox").expect("a name");
    let mut tx = Producer::new::<Area>(crate::shm::pair::first_level(2));
    // Write an open split (number 5, no claims) into every line between `WITHDRAWN` and `CREDIT`.
    for line in pair::WITHDRAWN / pair::LINE + 1..pair::CREDIT / pair::LINE {
        words.line(line).store_release(5 << 40);
    }
    let (space, count, origin) = (Space::Private, LEN as u64, victim.as_ptr() as u64);
    let place = Place { space, number: BYTES, origin, count };
    publish(
        &mut tx,
        &area,
        &Envelope::Help { id: sent, number: 5, method: Method::Vector, bytes: count, place },
    );
    let errors = (0..20).filter_map(|_| here.progress().err()).collect::<Vec<_>>();
    // Read the memory through a volatile pointer, because a system call may have changed it.
    // SAFETY: the vector has `LEN` bytes and is not changed by this process.
    let seen = |at: usize| unsafe { victim.as_ptr().add(at).read_volatile() };
    assert!((0..LEN).all(|at| seen(at) == 1), "the rank has written to the private memory");
    assert!(errors[0].to_string().contains("rank 1 broke the protocol"), "{}", errors[0]);
}

/// Checks that no process crashes if a rank names a wrong address. A receiver that cannot read must ask for a
/// packed message.
#[test]
fn addresses_that_lead_nowhere_are_survived() {
    let byte = byte();
    const LEN: usize = 1 << 20;
    // First case: the sender names a wrong place for its data.
    for origin in [0, 8, u64::MAX, u64::MAX - LEN as u64 / 2, 1 << 63] {
        let [(_, hostile), (mut there, fabric)] = pair();
        let mut target = vec![1; LEN];
        let received = receive(&mut there, &mut target, &byte);
        let area = hostile.contact(1).expect("contact");
        let label = Label { context: CONTEXT, tag: 1, bytes: LEN as u64, types: UNKNOWN };
        let count = LEN as u64;
        let place = Place { space: Space::Private, number: BYTES, origin, count };
        let mut tx = Producer::new::<Area>(crate::shm::pair::first_level(2));
        publish(&mut tx, &area, &Envelope::Rts(label, 77.into(), Some(place)));
        for _ in 0..4 {
            there.progress().expect("a turn");
        }
        // The receiver must have answered with a CTS.
        let back = fabric.contact(0).expect("contact");
        let first = pair::LEVELS[pair::first_level(2)].first_slot;
        let said = |n: usize| {
            let words = std::array::from_fn(|word| back.slot(first + n, word + 1).load_relaxed());
            Envelope::decode(&words).expect("an envelope")
        };
        assert_eq!(said(0), Envelope::Cts { id: 77, method: Method::Vector });
        assert!(there.requests().receive(received).is_some());
        assert!(target.iter().all(|&byte| byte == 1));
    }

    // Second case: an RTS whose place is one byte shorter than its message, and a request for help with a
    // message for which there was no RTS.
    for envelope in [
        Envelope::Rts(
            Label { context: CONTEXT, tag: 1, bytes: 100, types: UNKNOWN },
            77.into(),
            Some(Place { space: Space::Private, number: BYTES, origin: 4096, count: 99 }),
        ),
        Envelope::Help {
            id: 77,
            number: 1,
            method: Method::Vector,
            bytes: 100,
            place: Place { space: Space::Private, number: BYTES, origin: 4096, count: 100 },
        },
    ] {
        let [(_, hostile), (mut there, _)] = pair();
        let area = hostile.contact(1).expect("contact");
        let mut tx = Producer::new::<Area>(crate::shm::pair::first_level(2));
        publish(&mut tx, &area, &envelope);
        for _ in 0..2 {
            let error = there.progress().expect_err("a violation");
            assert!(error.to_string().contains("rank 0 broke the protocol"), "{error}");
        }
    }
}

fn publish(tx: &mut Producer, area: &Area, envelope: &Envelope) {
    let room = tx.reserve(area, 0).expect("credits").expect("room");
    let (words, used) = envelope.encode();
    tx.publish(area, room, &words, used);
}
