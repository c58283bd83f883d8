//! Tests the copies of short payloads whose method is chosen by measurement, between the engines of two ranks.

use super::super::*;
use super::any;
use crate::message::payload::SendMode;
use crate::shm::segment::{JobFlags, Segment};
use crate::transport::choice::short_choice::LEAST;
use crate::{Datatype, Named};
use std::sync::Arc;
use typepack_engine::Elements;
use typepack_engine::contiguous::Method;

const CONTEXT: u64 = 3;

fn pair() -> [MessageEngine; 2] {
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    let segment = Arc::new(segment);
    [0, 1].map(|rank| {
        let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
        MessageEngine::new(fabric, 8 << 10)
    })
}

/// Waits until the receive `id` of an engine is complete.
fn finish(to: &mut MessageEngine, id: u64) {
    for _ in 0..1000 {
        to.progress().expect("a turn");
        if let Some(result) = to.requests().fetch(id) {
            result.expect("received");
            return;
        }
    }
    panic!("the message does not arrive");
}

/// Sends `count` messages of `bytes` bytes from the first rank to the second one. The second rank has posted a receive
/// for each if `posted`, and otherwise receives each after it has found it.
fn send([from, to]: &mut [MessageEngine; 2], bytes: usize, count: usize, posted: bool) {
    let byte = Datatype::named(Named::U8).commit().expect("a plan");
    for number in 0..count {
        let mut data: Vec<u8> = (0..bytes).map(|at| (at + number) as u8).collect();
        let mut got = vec![0u8; bytes];
        let layout = Elements { origin: data.as_mut_ptr(), plan: &byte, count: bytes as u64 };
        let room = Elements { origin: got.as_mut_ptr(), plan: &byte, count: bytes as u64 };
        let posting = any(room, bytes as u64, CONTEXT);
        // SAFETY: the vector `got` has room for `bytes` bytes and outlives the receive, which ends below. Nobody else
        // uses it meanwhile.
        let receive = |to: &mut MessageEngine| unsafe { to.receive(&posting) }.expect("a receive");
        let early = posted.then(|| receive(to));
        let label = Label { context: CONTEXT, tag: 1, bytes: bytes as u64, types: UNKNOWN };
        // SAFETY: the vector `data` has `bytes` bytes, never changes, and outlives the send, which is complete at once
        // (asserted below).
        let sent = unsafe { from.send(&layout, label, Process::new(1), SendMode::Standard) };
        assert!(matches!(sent, Ok(Operation::Done(_))));
        while !posted && to.probe(CONTEXT, Sender::Any, Tag::Any).is_none() {
            to.progress().expect("a turn");
        }
        if let Operation::Pending(id) = early.unwrap_or_else(|| receive(to)) {
            finish(to, id);
        }
        assert!(got == data, "message {number} of {bytes} bytes");
    }
}

/// Returns the word in which the second rank leaves its answers to the first one.
fn answer(engines: &[MessageEngine; 2]) -> u64 {
    let tx = engines[0].peers[1].link.tx.as_ref().expect("a contact");
    tx.area.measured().load(std::sync::atomic::Ordering::Relaxed)
}

fn has_measured(engines: &[MessageEngine; 2], bytes: usize) -> bool {
    let tx = engines[0].peers[1].link.tx.as_ref().expect("a contact");
    tx.short.as_ref().is_some_and(|short| short.has_measured(bytes))
}

#[test]
fn the_sender_learns_the_time_of_both_copies() {
    for bytes in [LEAST, LEAST + 1, 4096, 8192] {
        let mut engines = pair();
        send(&mut engines, bytes, 50, true);
        assert!(answer(&engines) != 0 && has_measured(&engines, bytes), "{bytes}");
    }
}

/// Checks that nothing is measured for shorter messages, with a fixed method, and without measuring.
#[test]
fn other_messages_are_not_measured() {
    let mut engines = pair();
    send(&mut engines, LEAST - 1, 50, true);
    assert!(answer(&engines) == 0 && !has_measured(&engines, LEAST));
    for (tune, copy) in [(Tune::OFF, None), (Tune::default(), Some(Method::Vector))] {
        let mut engines = pair();
        engines[0].tune(tune, copy, None);
        send(&mut engines, 4096, 50, true);
        assert!(answer(&engines) == 0 && !has_measured(&engines, 4096));
    }
}

/// Checks messages that no receive had matched, and that the sender learns from later messages.
#[test]
fn messages_that_no_receive_has_matched_do_no_harm() {
    let mut engines = pair();
    send(&mut engines, 4096, 1000, false);
    send(&mut engines, 4096, 1000, true);
    assert!(has_measured(&engines, 4096));
}

/// Checks that the words of an earlier message in the same slot are not taken for a mark.
#[test]
fn an_old_payload_in_the_slot_is_no_mark() {
    let mut engines = pair();
    engines[0].tune(Tune::OFF, None, None);
    // The payload of these messages lies in the word in which a longer message has its mark. They fill all slots.
    send(&mut engines, 32, 600, true);
    send(&mut engines, 4096, 600, true);
    assert_eq!(answer(&engines), 0);
    // The same for messages that the library packs itself.
    let byte = Datatype::named(Named::U8).commit().expect("a plan");
    let label = Label { context: CONTEXT, tag: 1, bytes: 4096, types: UNKNOWN };
    send(&mut engines, 32, 600, true);
    for _ in 0..300 {
        let [from, to] = &mut engines;
        let mut got = vec![0u8; 4096];
        let room = Elements { origin: got.as_mut_ptr(), plan: &byte, count: 4096 };
        // SAFETY: the vector `got` has room for the message and outlives the receive, which ends below. Nobody else
        // uses it meanwhile.
        let received = unsafe { to.receive(&any(room, 4096, CONTEXT)) }.expect("a receive");
        let Operation::Pending(id) = received else { panic!("nothing was sent") };
        // SAFETY: the closure gets the address of room for the 4096 bytes of the label, and writes so many.
        let pack = |to: *mut u8| unsafe { to.write_bytes(7, 4096) };
        // SAFETY: `pack` writes `label.bytes` bytes, which is less than `EAGER_MAX`.
        let packed = unsafe { from.send_packed(label, Process::new(1), pack) };
        assert!(packed.is_ok());
        finish(to, id);
        assert!(got == [7; 4096]);
    }
    assert_eq!(answer(&engines), 0);
}
