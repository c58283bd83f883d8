//! Tests schedules of two ranks in one process. The tests themselves call the functions that move messages.

use super::*;
use crate::endpoint::sources::Core;
use crate::message::payload::SendMode;
use crate::schedule::program::Peer;
use crate::shm::segment::{JobFlags, Segment};
use crate::transport::link::fabric::Fabric;
use std::sync::Arc;
use typepack_engine::Elements;

const CONTEXT: u64 = 3;
const TAG: i32 = 5;

/// Returns the core of rank 0, with a table of schedules, and the message engine of rank 1.
fn job() -> (Core, MessageEngine) {
    job_in(&segment())
}

fn segment() -> Arc<Segment> {
    Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"))
}

/// Like [`job`], for a job with this segment.
fn job_in(segment: &Arc<Segment>) -> (Core, MessageEngine) {
    let [first, second] = [0, 1].map(|rank| {
        let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
        MessageEngine::new(fabric, 4096)
    });
    let mut core = Core::new(first);
    core.register(|number| Schedules::new(number, 0));
    (core, second)
}

/// Starts a schedule that sends `data` to rank 1.
fn start_send(core: &mut Core, data: &mut [u8; 8]) -> Operation {
    let part = Elements { origin: data.as_mut_ptr(), plan: bytes().expect("a plan"), count: 8 };
    let place = Place { context: CONTEXT, tag: TAG };
    let started = core.with(|schedules: &mut Schedules, engine| {
        // SAFETY: the callers keep the array until the schedule is over or detached.
        unsafe {
            schedules.start(engine, place, |steps| {
                steps.send(&part, Peer { process: Process::new(1), rank: 1 }).map(drop)
            })
        }
    });
    started.expect("registered").expect("started")
}

/// Checks a send that waits for room in the ring and is detached when there is room. The detach must send
/// the message, and the step of the send must be finished only once.
#[test]
fn a_queued_send_that_goes_out_when_it_is_detached_is_finished_once() {
    let (mut core, mut other) = job();
    let mut data = [1u8; 8];
    let layout = Elements { origin: data.as_mut_ptr(), plan: bytes().expect("a plan"), count: 8 };
    let label = Label { context: CONTEXT, tag: 0, bytes: 8, types: typecheck::UNKNOWN };
    let mut sent = 0;
    let last = loop {
        // SAFETY: the array `data` lives to the end of the test, and neither engine accesses it after that.
        let started =
            unsafe { core.engine.send(&layout, label, Process::new(1), SendMode::Standard) };
        sent += 1;
        if let Operation::Pending(id) = started.expect("a send") {
            break id;
        }
    };
    let mut word = [2u8; 8];
    let Operation::Pending(id) = start_send(&mut core, &mut word) else {
        panic!("the send completed at once; it must wait, because the ring is full");
    };
    while other.progress().expect("a turn") {}
    assert!(core.detach(id), "a continuation runs");
    word.fill(9);
    for _ in 0..100 {
        core.progress().expect("a turn");
        other.progress().expect("a turn");
    }
    let status = core.engine.requests().fetch(last).expect("an end").expect("well");
    assert_eq!(status.bytes, 8);
    assert!(core.is_idle() && core.others_are_served());
    // All messages must have arrived. The last message must have the data that its memory held before the
    // detach.
    let mut got = [0u8; 8];
    for message in 0..=sent {
        let layout = Elements { origin: got.as_mut_ptr(), ..layout };
        let (source, tag) = (Sender::Process(Process::new(0)), Tag::Any);
        let posting = Posting { layout, capacity: 8, context: CONTEXT, source, tag };
        // SAFETY: the array `got` lives through this call, and the receive is complete when the call returns
        // (asserted below).
        let received = unsafe { other.receive(&posting) }.expect("a receive");
        let tag = if message == sent { TAG } else { 0 };
        assert_eq!(received, Operation::Done(Status { source: 0, tag, bytes: 8 }));
    }
    assert_eq!(got, [2; 8]);
}

/// Starts a schedule that receives `data` from rank 1, and detaches it.
fn detached_receive(core: &mut Core, data: &mut [u8; 8]) {
    let part = Elements { origin: data.as_mut_ptr(), plan: bytes().expect("a plan"), count: 8 };
    let place = Place { context: CONTEXT, tag: TAG };
    let started = core.with(|schedules: &mut Schedules, engine| {
        // SAFETY: the callers keep the array, and the schedule is detached below.
        unsafe {
            schedules.start(engine, place, |steps| {
                steps.receive(&part, Peer { process: Process::new(1), rank: 1 }).map(drop)
            })
        }
    });
    let Operation::Pending(id) = started.expect("registered").expect("started") else {
        panic!("the receive ended without a message");
    };
    assert!(core.detach(id), "a continuation runs");
}

/// Checks that a rank with a detached receive may not leave the job before it has taken the message: if the message is
/// not short, the other rank cannot leave before.
#[test]
fn a_detached_receive_of_a_schedule_is_waited_for() {
    let (mut core, mut other) = job();
    let mut data = [0_u8; 8];
    detached_receive(&mut core, &mut data);
    assert!(!core.others_are_served());
    let layout = Elements { origin: data.as_mut_ptr(), plan: bytes().expect("a plan"), count: 8 };
    let label = Label { context: CONTEXT, tag: TAG, bytes: 8, types: typecheck::UNKNOWN };
    // SAFETY: the array `data` lives to the end of the test, and nobody writes it after the detach.
    unsafe { other.send(&layout, label, Process::new(0), SendMode::Standard) }.expect("a send");
    while !core.others_are_served() {
        core.progress().expect("a turn");
        other.progress().expect("a turn");
    }
    assert_eq!(data, [0; 8]);
}

/// Checks that a rank with a detached receive does not wait for a rank that has left the job.
#[test]
fn a_detached_receive_from_a_rank_that_has_left_is_not_waited_for() {
    let segment = segment();
    let (mut core, _other) = job_in(&segment);
    let mut data = [0_u8; 8];
    detached_receive(&mut core, &mut data);
    assert!(!core.others_are_served());
    segment.mark_finalized(1);
    assert!(core.others_are_served());
    segment.mark_returned(1);
    assert!(!core.others_are_served());
}
