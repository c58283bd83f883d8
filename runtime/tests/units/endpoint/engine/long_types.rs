//! Tests messages out of the heap whose types are too long for the ring: their encoded form travels through the
//! sender's heap. A hostile sender names wrong pieces of its heap, and a hostile receiver answers definitions
//! that do not exist.

use super::super::*;
use super::any;
use crate::message::envelope::{LONG_MAX, LONG_TYPES, Space, TYPE_MAX, TYPES};
use crate::message::payload::SendMode;
use crate::shm::ring::Producer;
use crate::shm::segment::{JobFlags, Segment};
use crate::transport::link::area::Area;
use crate::{Datatype, Named, Plan};
use std::sync::Arc;
use typepack_engine::{Elements, wire};

const CONTEXT: u64 = 3;

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

/// Returns the displacements, in doubles, of a list of `blocks` blocks without a regular pattern. Lists with
/// different seeds are different.
fn places(blocks: usize, seed: u64) -> Vec<i64> {
    let (mut at, mut random) = (0, seed);
    let next = |_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        at += 1 + (random >> 62) as i64;
        at
    };
    (0..blocks).map(next).collect()
}

fn list(places: &[i64]) -> Plan {
    let double = Datatype::named(Named::F64);
    Datatype::indexed_block(1, places, &double).expect("a type").commit().expect("a plan")
}

/// Memory in the heap of a rank for a list of `blocks` blocks: as many doubles as the list can touch.
struct Room {
    start: *mut f64,
    len: usize,
}

impl Room {
    fn new(fabric: &Fabric, blocks: usize) -> Self {
        let len = 4 * blocks + 1;
        let heap = fabric.heap().expect("a heap");
        let start = heap.alloc(8 * len, 64, true).expect("room").as_ptr().cast();
        Self { start, len }
    }

    fn values(&self) -> Vec<f64> {
        // SAFETY: the memory has `len` doubles, and only this test uses it.
        (0..self.len).map(|i| unsafe { self.start.add(i).read_volatile() }).collect()
    }

    fn set(&self, value: impl Fn(usize) -> f64) {
        for i in 0..self.len {
            // SAFETY: the memory has `len` doubles, and only this test uses it.
            unsafe { self.start.add(i).write_volatile(value(i)) };
        }
    }

    fn layout<'a>(&self, plan: &'a Plan) -> Elements<&'a Plan> {
        Elements { origin: self.start.cast(), plan, count: 1 }
    }
}

/// Sends one message from `source`, a layout of rank 0, to `target`, a layout of rank 1, and waits for
/// its end.
fn transfer(
    ranks: &mut [(MessageEngine, Fabric); 2],
    source: Elements<&Plan>,
    target: Elements<&Plan>,
) {
    let bytes = source.plan.packed_bytes(source.count).expect("a size");
    let [(here, _), (there, _)] = ranks;
    let label = Label { context: CONTEXT, tag: 1, bytes, types: UNKNOWN };
    // SAFETY: both layouts lie in heaps that outlive the engines, and their elements have `bytes` packed bytes. Only
    // the two operations use the memory until they end.
    let (sent, received) = unsafe {
        let sent = here.send(&source, label, Process::new(1), SendMode::Standard).expect("a send");
        (sent, there.receive(&any(target, bytes, CONTEXT)).expect("a receive"))
    };
    let (Operation::Pending(sent), Operation::Pending(received)) = (sent, received) else {
        panic!("complete")
    };
    for _ in 0..5000 {
        let moved = here.progress().expect("a turn") | there.progress().expect("a turn");
        if !moved && here.is_idle() && there.is_idle() {
            break;
        }
    }
    assert_eq!(here.requests().fetch(sent).expect("complete").expect("well").bytes, bytes);
    assert_eq!(there.requests().fetch(received).expect("complete").expect("well").bytes, bytes);
}

/// Checks that lists of blocks whose encoded form is longer than 16 KiB are copied out of the heap, from
/// the second message with a type on, and that the values are right. There are more lists than type
/// numbers, so later lists get the numbers of earlier ones. At the end, no memory of the heap is left
/// over.
#[test]
fn long_lists_are_copied_out_of_the_heap() {
    const BLOCKS: usize = 20_000;
    let mut ranks = pair();
    let contiguous = Datatype::contiguous(BLOCKS as i64, &Datatype::named(Named::F64));
    let contiguous = contiguous.expect("a type").commit().expect("a plan");
    let (source, target) = (Room::new(&ranks[0].1, BLOCKS), Room::new(&ranks[1].1, BLOCKS));
    source.set(|i| i as f64 + 0.5);
    let filled = ranks[0].1.heap().expect("a heap").promised();
    let mut messages = 0;
    for seed in 0..2 * LONG_TYPES as u64 + 1 {
        let places = places(BLOCKS, seed);
        let plan = list(&places);
        assert!(wire::encode(&plan).len() > TYPE_MAX);
        for round in 0..3 {
            // The receive of round 1 has another list of blocks. The receives of the other rounds are one
            // run.
            let other = list(&self::places(BLOCKS, seed + 100 + round));
            let to = if round == 1 { &other } else { &contiguous };
            target.set(|_| -1.0);
            transfer(&mut ranks, source.layout(&plan), target.layout(to));
            let mut expected = vec![-1.0; target.len];
            let order = self::places(BLOCKS, seed + 100 + round);
            for (i, place) in places.iter().enumerate() {
                let at = if round == 1 { order[i] as usize } else { i };
                expected[at] = *place as f64 + 0.5;
            }
            assert!(target.values() == expected, "seed {seed}, round {round}");
            messages += 1;
        }
    }
    let traffic = ranks[0].0.traffic();
    let first = messages / 3;
    assert_eq!((traffic.pipelined, traffic.fused), (first, messages - first));
    // The pieces with the encoded forms have been freed, so 17 forms of 80 KB have not needed 17 pieces.
    let now = ranks[0].1.heap().expect("a heap").promised();
    assert!(now <= filled + (1 << 20), "{now} bytes of the heap are promised, {filled} before");
}

/// Checks that a definition is decoded from a private copy and that its piece is used again only after the
/// answer: while the receiver makes no turn, further definitions take other numbers.
#[test]
fn a_definition_waits_for_its_answer() {
    const BLOCKS: usize = 5000;
    let [(mut here, mine), (mut there, theirs)] = pair();
    let (source, target) = (Room::new(&mine, BLOCKS), Room::new(&theirs, BLOCKS));
    source.set(|i| i as f64);
    let plans: Vec<Plan> =
        (0..LONG_TYPES as u64 + 3).map(|seed| list(&places(BLOCKS, seed))).collect();
    let bytes = 8 * BLOCKS as u64;
    let label = Label { context: CONTEXT, tag: 1, bytes, types: UNKNOWN };
    let mut sent = Vec::new();
    for plan in &plans {
        for _ in 0..2 {
            // SAFETY: the source lies in a heap that outlives the engine, has `bytes` packed bytes, and never changes.
            let send = unsafe {
                here.send(&source.layout(plan), label, Process::new(1), SendMode::Standard)
            };
            sent.push(send.expect("a send"));
        }
    }
    for (i, plan) in plans.iter().enumerate() {
        for round in 0..2 {
            target.set(|_| -1.0);
            // SAFETY: the target lies in a heap that outlives the engine, has `bytes` packed bytes, and is used by
            // nobody else until the receive has ended.
            let received = unsafe { there.receive(&any(target.layout(plan), bytes, CONTEXT)) };
            let Ok(Operation::Pending(received)) = received else { panic!("{received:?}") };
            let done = (0..5000).any(|_| {
                let _moved = here.progress().expect("a turn") | there.progress().expect("a turn");
                there.requests().is_complete(received)
            });
            assert!(done);
            there.requests().fetch(received).expect("complete").expect("well");
            let values = target.values();
            for place in places(BLOCKS, i as u64) {
                assert_eq!(values[place as usize], place as f64, "plan {i}, round {round}");
            }
        }
    }
    let traffic = here.traffic();
    // The second message of each of the first eight plans has defined its type; the others found no free number.
    assert_eq!(traffic.fused, LONG_TYPES as u64);
    drop(sent);
}

fn say(tx: &mut Producer, area: &Area, envelope: &Envelope) {
    let room = tx.reserve(area, 0).expect("credits").expect("room");
    let (words, used) = envelope.encode();
    tx.publish(area, room, &words, used);
}

/// Checks that lies about long types are violations of the protocol: pieces beyond the heap, forms that do not
/// decode, data beyond the heap, and answers to definitions that do not exist.
#[test]
fn lies_about_long_types_are_violations() {
    const BLOCKS: usize = 5000;
    let plan = list(&places(BLOCKS, 1));
    let form = wire::encode(&plan);
    let (bytes, number) = (form.len() as u64, TYPES as u32);
    let heap = pair()[0].1.heap_bytes();
    let size = 8 * BLOCKS as u64;
    let define = |at| Envelope::DefineLong { number, bytes, at };
    let rts = |origin| {
        let label = Label { context: CONTEXT, tag: 1, bytes: size, types: UNKNOWN };
        Envelope::Rts(label, 5.into(), Some(Place { space: Space::Heap, number, origin, count: 1 }))
    };
    // The form of a list with one wrong byte in the header, and one that is too short.
    let mut wrong = form.clone();
    wrong[0] ^= 1;
    let short = Envelope::DefineLong { number, bytes: bytes - 8, at: 0 };
    let cases: Vec<(&[u8], Vec<Envelope>)> = vec![
        (&form, vec![define(heap - bytes + 1)]),
        (&form, vec![define(u64::MAX)]),
        (&form, vec![define(u64::MAX - bytes + 1)]),
        (&form, vec![Envelope::DefineLong { number, bytes: LONG_MAX as u64, at: heap - 8 }]),
        (&form, vec![short]),
        (&wrong, vec![define(0)]),
        (&form, vec![define(8)]),
        (&form, vec![rts(0)]),
        (&form, vec![define(0), rts(heap - 8)]),
        (&form, vec![define(0), rts(u64::MAX - 99)]),
        (&form, vec![Envelope::Defined(number)]),
        (&form, vec![Envelope::Defined(number + 7)]),
    ];
    for (form, envelopes) in cases {
        let [(mut victim, _), (_, hostile)] = pair();
        let area = hostile.contact(0).expect("contact");
        // The first piece of a heap may begin at any cache line. So copy the form to the first byte of the heap.
        let own = hostile.heap().expect("a heap");
        let piece = own.alloc(1 << 20, 4096, true).expect("room").as_ptr();
        assert_eq!(own.offset_of(piece, 1), Some(0));
        // SAFETY: the piece has 1 MiB, and the form is a vector outside the heap with fewer bytes.
        unsafe { piece.copy_from_nonoverlapping(form.as_ptr(), form.len()) };
        let mut tx = Producer::new::<Area>(crate::shm::pair::first_level(2));
        for envelope in &envelopes {
            say(&mut tx, &area, envelope);
        }
        let errors: Vec<_> = (0..4).filter_map(|_| victim.progress().err()).collect();
        assert!(errors.len() >= 2, "{envelopes:?}: {errors:?}");
        for error in errors {
            assert!(error.to_string().contains("rank 1 broke the protocol"), "{error}");
        }
    }
}
