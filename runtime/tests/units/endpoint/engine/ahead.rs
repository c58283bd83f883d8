//! Tests the pieces that a sender packs before the receiver has answered its RTS.

use super::super::*;
use crate::message::payload::SendMode;
use crate::settings::Forced;
use crate::shm::segment::{JobFlags, Segment};
use crate::{Datatype, Named, Plan};
use std::collections::VecDeque;
use std::sync::Arc;
use typepack_engine::Elements;

const CONTEXT: u64 = 3;

/// The lengths of the messages in bytes. They belong to two size classes. The first two messages have one piece each,
/// and the other two have several pieces.
const LENS: [usize; 4] = [9000, 16_000, 70_000, 100_000];

/// Two ranks whose long messages pass through chunks.
struct Job {
    engines: [MessageEngine; 2],
    byte: Plan,
}

impl Job {
    fn new() -> Self {
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
        let engines = [0, 1].map(|rank| {
            let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
            let mut engine = MessageEngine::new(fabric, 8 << 10);
            engine.force(Forced::Packed);
            engine
        });
        Self { engines, byte: Datatype::named(Named::U8).commit().expect("a plan") }
    }

    /// Starts a send of `data` from rank 0 and returns its number.
    ///
    /// # Safety
    ///
    /// - `data` lives and stays unchanged until the send has ended.
    unsafe fn send(&mut self, data: &[u8], tag: i32) -> u64 {
        let (origin, bytes) = (data.as_ptr().cast_mut(), data.len() as u64);
        let layout = Elements { origin, plan: &self.byte, count: bytes };
        let label = Label { context: CONTEXT, tag, bytes, types: UNKNOWN };
        // SAFETY: the caller guarantees that `data` stays readable and unchanged until the send has ended (the
        // condition of `# Safety`), and `bytes` is its packed size.
        let sent =
            unsafe { self.engines[0].send(&layout, label, Process::new(1), SendMode::Standard) };
        let Operation::Pending(id) = sent.expect("a send") else {
            panic!("a long send is complete")
        };
        id
    }

    /// Receives the message with tag `tag` at rank 1 and checks that it consists of the bytes of `data`.
    fn get(&mut self, data: &[u8], tag: i32) {
        let mut got = vec![0xEE; data.len() + 1];
        let (origin, bytes) = (got.as_mut_ptr(), data.len() as u64);
        let layout = Elements { origin, plan: &self.byte, count: bytes };
        let (source, tag) = (Sender::Any, Tag::Is(tag));
        let posting = Posting { layout, capacity: bytes, context: CONTEXT, source, tag };
        // SAFETY: `got` has more than `bytes` bytes and lives until the receive has ended, below. Nobody else uses it
        // meanwhile.
        let received = unsafe { self.engines[1].receive(&posting) }.expect("a receive");
        let Operation::Pending(id) = received else { panic!("a long receive is complete") };
        for _ in 0..200 {
            self.turn();
            if let Some(ended) = self.engines[1].requests().fetch(id) {
                assert_eq!(ended.expect("a message").bytes, bytes);
                assert!(got[..data.len()] == *data, "other bytes with tag {tag:?}");
                assert_eq!(got[data.len()], 0xEE);
                return;
            }
        }
        panic!("the receive has not ended");
    }

    fn turn(&mut self) {
        for engine in &mut self.engines {
            engine.progress().expect("a turn");
        }
    }

    /// The number of chunks of rank 0 that hold pieces without a CTS.
    fn ahead(&self) -> usize {
        self.engines[0].fabric.pool().expect("a pool").ahead_count()
    }
}

fn message(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed * 131) as u8).collect()
}

/// Checks that the first message of a size class waits for its CTS, that the second one does not, and that a piece is
/// dropped when the program cancels its send.
#[test]
fn a_piece_is_packed_where_a_cts_is_expected() {
    let mut job = Job::new();
    for len in LENS {
        let data = message(len, len);
        // SAFETY: `data` lives and stays unchanged until the message has arrived.
        unsafe { job.send(&data, 1) };
        let known = len == 16_000 || len == 100_000;
        assert_eq!(job.ahead(), usize::from(known), "{len}");
        job.get(&data, 1);
        assert_eq!(job.ahead(), 0);
        // SAFETY: `data` stays unchanged, and the send is cancelled before `data` is dropped.
        let id = unsafe { job.send(&data, 1) };
        assert_eq!(job.ahead(), 1);
        assert_eq!(job.engines[0].cancel_send(id), Cancelled::Recalled);
        assert_eq!(job.ahead(), 0);
        let next = message(len + 1, len);
        // SAFETY: `next` lives and stays unchanged until the message has arrived.
        unsafe { job.send(&next, 2) };
        assert_eq!(job.ahead(), 1);
        job.get(&next, 2);
        assert_eq!(job.ahead(), 0);
        job.turn();
    }
}

/// Checks many messages under way at the same time, which the receiver takes in random order and of which the
/// sender cancels some.
#[test]
fn messages_arrive_in_any_order() {
    let mut job = Job::new();
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    let mut waiting: VecDeque<(u64, i32, Vec<u8>)> = VecDeque::new();
    let mut dropped = 0;
    for round in 0..3000 {
        if waiting.len() < 6 && below(2) == 0 {
            let data = message(round, LENS[below(LENS.len())]);
            // SAFETY: the vector `waiting` keeps `data` unchanged until the message has arrived or is recalled. A
            // moved vector keeps its bytes in place.
            let id = unsafe { job.send(&data, round as i32) };
            waiting.push_back((id, round as i32, data));
        }
        if waiting.is_empty() {
            continue;
        }
        let at = below(waiting.len());
        match below(4) {
            0 | 1 => {
                let (_, tag, data) = waiting.remove(at).expect("a message");
                job.get(&data, tag);
            }
            2 => {
                let (id, tag, data) = waiting.remove(at).expect("a message");
                match job.engines[0].cancel_send(id) {
                    Cancelled::Recalled => dropped += 1,
                    _ => job.get(&data, tag),
                }
            }
            _ => job.turn(),
        }
        assert!(job.ahead() <= 1);
    }
    assert!(dropped > 100, "{dropped} sends were cancelled");
    while let Some((_, tag, data)) = waiting.pop_back() {
        job.get(&data, tag);
    }
    job.turn();
    assert_eq!(job.ahead(), 0);
}
