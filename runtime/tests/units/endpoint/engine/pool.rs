//! Tests transfers while the senders' pools have few chunks or none, or their rings cannot grow.

use super::super::*;
use crate::message::payload::SendMode;
use crate::settings::Forced;
use crate::shm::segment::{JobFlags, Segment};
use crate::{Datatype, Named};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use typepack_engine::Elements;

const CONTEXT: u64 = 3;

/// Makes the engines of `ranks` ranks, whose long messages pass through chunks.
fn engines(ranks: usize) -> (Arc<Segment>, Vec<MessageEngine>) {
    let segment = Segment::create(ranks, &[], JobFlags::default(), 0).expect("a segment");
    let segment = Arc::new(segment);
    let join = |rank| {
        let fabric = Fabric::join(segment.clone(), rank).expect("a process");
        let mut engine = MessageEngine::new(fabric, 8 << 10);
        engine.force(Forced::Packed);
        engine
    };
    let engines = (0..ranks).map(join).collect();
    (segment, engines)
}

/// Sends messages of `bytes` bytes, all at the same time, and checks them. For each of `distances`, every
/// rank sends one message to the rank whose number is higher by this distance, modulo the number of
/// ranks.
fn exchange(engines: &mut [MessageEngine], bytes: u64, distances: &[usize]) {
    let ranks = engines.len();
    let byte = Datatype::named(Named::U8).commit().expect("a plan");
    let value =
        |from: usize, to: usize, at: u64| (at * 7 + at / 251) as u8 ^ (from * 16 + to) as u8;
    let mut all = Vec::new();
    for from in 0..ranks {
        for distance in distances {
            let to = (from + distance) % ranks;
            let data: Vec<u8> = (0..bytes).map(|at| value(from, to, at)).collect();
            all.push((from, to, data, vec![0_u8; bytes as usize]));
        }
    }
    let mut pending = Vec::new();
    for (from, to, data, got) in &mut all {
        let room = Elements { origin: got.as_mut_ptr(), plan: &byte, count: bytes };
        let (source, tag) = (Sender::Process(Process::new(*from)), Tag::Is(1));
        let posting = Posting { layout: room, capacity: bytes, context: CONTEXT, source, tag };
        // SAFETY: the vector `got` has `bytes` bytes and outlives the receive, which ends below. Nobody else uses it.
        let received = unsafe { engines[*to].receive(&posting) }.expect("a receive");
        let layout = Elements { origin: data.as_mut_ptr(), plan: &byte, count: bytes };
        let label = Label { context: CONTEXT, tag: 1, bytes, types: UNKNOWN };
        // SAFETY: the vector `data` has `bytes` bytes and outlives the send, which ends below. Nobody changes it.
        let sent =
            unsafe { engines[*from].send(&layout, label, Process::new(*to), SendMode::Standard) };
        pending.push((*to, received));
        pending.push((*from, sent.expect("a send")));
    }
    for _ in 0..20_000 {
        for engine in engines.iter_mut() {
            engine.progress().expect("a turn");
        }
        pending.retain(|(rank, operation)| match operation {
            Operation::Done(_) => false,
            Operation::Pending(id) => match engines[*rank].requests().fetch(*id) {
                Some(ended) => ended.is_err(),
                None => true,
            },
        });
        if pending.is_empty() {
            break;
        }
    }
    assert!(pending.is_empty(), "{} operations of {bytes} bytes have not ended", pending.len());
    for (from, to, data, got) in &all {
        assert!(data == got, "{bytes} bytes from {from} to {to}");
    }
}

#[test]
fn circular_exchanges_end_with_any_number_of_chunks() {
    for chunks in [0, 1, 2, 5] {
        let (_segment, mut engines) = engines(5);
        for engine in &engines {
            engine.fabric.pool().expect("a pool").limit(chunks);
        }
        for bytes in [10_000, 100_000, 700_001] {
            exchange(&mut engines, bytes, &[1]);
            exchange(&mut engines, bytes, &[1, 2, 3, 4]);
        }
    }
}

/// Checks that the chunks of a pair that has become idle serve other pairs: after each rank has sent long messages to
/// all other ranks, one after another, its pool has no more chunks than for one pair.
#[test]
fn idle_pairs_keep_no_chunks() {
    let (segment, mut engines) = engines(5);
    for round in 0..3 {
        for distance in 1..5 {
            exchange(&mut engines, 300_000, &[distance]);
        }
        let reserved = segment.header().taken.load(Ordering::Relaxed);
        // The 20 pairs have areas of 112 KiB for their rings and stamps. Each of the five ranks has one pool of at
        // most 2 MiB for all its pairs.
        assert!(reserved <= 20 * (112 << 10) + 5 * (2 << 20), "{reserved} bytes in round {round}");
    }
}

/// Checks that pairs of a job of many ranks begin with one page, and that long bursts and long payloads make
/// their rings grow.
#[test]
fn rings_grow_by_use() {
    let (segment, mut engines) = engines(40);
    let reserved = || segment.header().taken.load(Ordering::Relaxed);
    exchange(&mut engines, 8, &[1]);
    assert_eq!(reserved(), 40 * 4096);
    exchange(&mut engines, 512, &[1]);
    assert_eq!(reserved(), 40 * 4096);
    exchange(&mut engines, 2000, &[1]);
    assert_eq!(reserved(), 40 * (4096 + (20 << 10)));
    exchange(&mut engines, 8000, &[1, 1, 1]);
    assert_eq!(reserved(), 40 * (4096 + (20 << 10) + (80 << 10)));
    for bytes in [0, 8, 33, 2000, 8000] {
        exchange(&mut engines, bytes, &[1; 300]);
        exchange(&mut engines, bytes, &[2; 40]);
    }
}

/// Checks that messages arrive although the job may take no more memory than one page for the ring and one page for
/// the stamps of each pair: rings stay small, and payloads that do not fit pass through the small chunks.
#[test]
fn messages_arrive_when_rings_and_pools_cannot_grow() {
    let (segment, mut engines) = engines(40);
    // All 160 pairs of the test make their first contact. The budget below leaves one more page for each pair.
    exchange(&mut engines, 8, &[1, 2, 39, 38]);
    let header = segment.header();
    let room = header.taken.load(Ordering::Relaxed) + 160 * 4096;
    header.budget.store(room, Ordering::Relaxed);
    for bytes in [8, 513, 2000, 8000, 40_000] {
        exchange(&mut engines, bytes, &[1, 2]);
        exchange(&mut engines, bytes, &[1; 100]);
    }
    assert!(header.taken.load(Ordering::Relaxed) <= room);
}
