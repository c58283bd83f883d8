//! Tests the comparison of types between two engines in one process. The tests cover every protocol,
//! receives posted before and after the message, and jobs in which no rank, one rank or both ranks compare
//! types.

use super::super::*;
use super::any;
use crate::ErrorKind;
use crate::message::payload::SendMode;
use crate::message::typecheck::{OF_LAYOUT, VOID};
use crate::shm::ring::Producer;
use crate::shm::segment::{JobFlags, Segment};
use crate::{Datatype, Named, Plan};
use std::sync::Arc;
use typepack_engine::Elements;

const CONTEXT: u64 = 8;

fn pair(eager_limit: u64, checks: [bool; 2]) -> [MessageEngine; 2] {
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    let segment = Arc::new(segment);
    [0, 1].map(|rank| {
        let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
        let mut engine = MessageEngine::new(fabric, eager_limit);
        if checks[rank] {
            engine.check_types();
        }
        engine
    })
}

fn plan(named: Named) -> Plan {
    Datatype::named(named).commit().expect("a plan")
}

/// Completes both operations. Returns the results of the send and of the receive.
fn end(
    ranks: &mut [MessageEngine; 2],
    sent: Result<Operation>,
    received: Result<Operation>,
) -> [Result<Status>; 2] {
    let mut results = [sent, received].map(|started| match started {
        Ok(Operation::Done(status)) => (Some(Ok(status)), 0),
        Ok(Operation::Pending(id)) => (None, id),
        Err(error) => (Some(Err(error)), 0),
    });
    for _ in 0..1000 {
        for (engine, (result, id)) in ranks.iter_mut().zip(&mut results) {
            engine.progress().expect("a turn");
            if result.is_none() {
                *result = engine.requests().fetch(*id);
            }
        }
    }
    results.map(|(result, _)| result.expect("an end"))
}

#[test]
fn who_checks_decides() {
    let (ints, floats) = (plan(Named::INT), plan(Named::FLOAT));
    for (eager_limit, count) in [(8 << 10, 2), (8 << 10, 1000), (0, 1000), (8 << 10, 100_000)] {
        for (case, synchronous) in (0..16).zip([false, true].into_iter().cycle()) {
            let checks = [case & 2 != 0, case & 4 != 0];
            let posted = case & 8 != 0;
            let mut ranks = pair(eager_limit, checks);
            let mut data = vec![7u32; count];
            let mut target = vec![1u32; count + 1];
            let from =
                Elements { origin: data.as_mut_ptr().cast(), plan: &ints, count: count as u64 };
            let origin = target.as_mut_ptr().cast();
            let (bytes, room) = (4 * count as u64, 4 * count as u64 + 4);
            let to = Elements { origin, plan: &floats, count: count as u64 + 1 };
            let label = Label { context: CONTEXT, tag: 3, bytes, types: OF_LAYOUT };
            let how = if synchronous { SendMode::Synchronous } else { SendMode::Standard };
            // SAFETY: the vector of `to` has `room` bytes and outlives the receive, which ends in this round. Nobody
            // else uses it meanwhile.
            let receive =
                |there: &mut MessageEngine| unsafe { there.receive(&any(to, room, CONTEXT)) };
            let early = posted.then(|| receive(&mut ranks[1]));
            // SAFETY: the vector of `from` has `bytes` bytes and outlives the send, which ends in this round. Nobody
            // changes it.
            let sent = unsafe { ranks[0].send(&from, label, Process::new(1), how) };
            while !posted && ranks[1].probe(CONTEXT, Sender::Any, Tag::Any).is_none() {
                ranks.iter_mut().for_each(|rank| {
                    rank.progress().expect("a turn");
                });
            }
            let received = early.unwrap_or_else(|| receive(&mut ranks[1]));
            let [sent, received] = end(&mut ranks, sent, received);
            assert_eq!(sent.expect("a send").bytes, bytes);
            let name = format!("{count} elements, {checks:?}, {posted} {synchronous}");
            let status = Status { source: 0, tag: 3, bytes };
            if checks == [true; 2] {
                let error = received.expect_err(&name);
                assert_eq!((error.kind(), error.received()), (ErrorKind::Type, Some(status)));
                let text = format!("{count} x float 4 expected, {count} x integer 4 sent");
                assert!(error.to_string().ends_with(&text), "{error}");
                assert!(target.iter().all(|&value| value == 1), "{name}");
            } else {
                assert_eq!(received, Ok(status), "{name}");
                assert!(target[..count] == data[..] && target[count] == 1, "{name}");
            }
        }
    }
}

/// Checks that a glance into the ring leaves a message there if its types have to be compared, and takes
/// all other messages.
#[test]
fn a_brief_poll_takes_nothing_that_is_to_be_compared() {
    let (ints, floats) = (plan(Named::INT), plan(Named::FLOAT));
    for (count, checks) in [(2, true), (1000, true), (2, false), (1000, false)] {
        let mut ranks = pair(8 << 10, [checks, true]);
        let (mut data, mut target) = (vec![7u32; count], vec![1u32; count]);
        let bytes = 4 * count as u64;
        let from = Elements { origin: data.as_mut_ptr().cast(), plan: &ints, count: bytes / 4 };
        let to = Elements { origin: target.as_mut_ptr().cast(), plan: &floats, count: bytes / 4 };
        let label = Label { context: CONTEXT, tag: 3, bytes, types: OF_LAYOUT };
        // The first message makes the ring known to the receiver, and the receiver takes this message out of the ring.
        // The glance below looks at the second message.
        for _ in 0..2 {
            // SAFETY: the vector of `from` has `bytes` bytes and outlives the send, which completes before the call
            // returns (asserted below).
            let sent = unsafe { ranks[0].send(&from, label, Process::new(1), SendMode::Standard) };
            assert!(matches!(sent, Ok(Operation::Done(_))));
            if ranks[1].peers[0].link.rx.is_none() {
                ranks[1].progress().expect("a turn");
                assert!(ranks[1].take(CONTEXT, Sender::Any, Tag::Any).is_some());
            }
        }
        // SAFETY: `target` has `bytes` bytes and outlives the call, and nothing else accesses it during the call.
        let poll_briefly =
            unsafe { ranks[1].poll_briefly(&any(to, bytes, CONTEXT), Process::new(0)) };
        match (checks, poll_briefly.expect("a look")) {
            (true, Glance::Other) => assert!(target.iter().all(|&value| value == 1)),
            (false, Glance::Done(_)) => assert!(target == data),
            (_, poll_briefly) => panic!("{count} {checks}: {poll_briefly:?}"),
        }
    }
}

/// Checks that the engine compares types in messages of a rank to itself, in short and long messages, which
/// are sent before or after their receives are posted.
#[test]
fn messages_to_oneself_are_compared() {
    let (ints, floats) = (plan(Named::INT), plan(Named::FLOAT));
    for (count, case) in [2, 1000, 100_000].into_iter().flat_map(|n| (0..8).map(move |c| (n, c))) {
        let (posted, synchronous, matches) = (case & 1 != 0, case & 2 != 0, case & 4 != 0);
        let [mut engine, _other] = pair(8 << 10, [true, true]);
        let (mut data, mut target) = (vec![7u32; count], vec![1u32; count]);
        let count = count as u64;
        let from = Elements { origin: data.as_mut_ptr().cast(), plan: &ints, count };
        let to = if matches { &ints } else { &floats };
        let to = Elements { origin: target.as_mut_ptr().cast(), plan: to, count };
        let label = Label { context: CONTEXT, tag: 3, bytes: 4 * count, types: OF_LAYOUT };
        let how = if synchronous { SendMode::Synchronous } else { SendMode::Standard };
        // SAFETY: `target` has `4 * count` bytes. It outlives the receive, which is complete once the receive and the
        // send have been called, and nobody else uses it until then.
        let receive =
            |engine: &mut MessageEngine| unsafe { engine.receive(&any(to, 4 * count, CONTEXT)) };
        let early = posted.then(|| receive(&mut engine));
        // SAFETY: `data` has `4 * count` bytes. It outlives the send, which is complete once the receive and the send
        // have been called, and nobody changes it.
        let sent = unsafe { engine.send(&from, label, Process::new(0), how) };
        let received = early.unwrap_or_else(|| receive(&mut engine));
        let [sent, received] = [sent, received].map(|started| match started {
            Ok(Operation::Done(status)) => Ok(status),
            Ok(Operation::Pending(id)) => engine.requests().fetch(id).expect("an end"),
            Err(error) => Err(error),
        });
        assert!(sent.is_ok());
        if matches {
            assert!(received.is_ok() && target == data);
        } else {
            assert_eq!(received.expect_err("a mismatch").kind(), ErrorKind::Type);
            assert!(target.iter().all(|&value| value == 1));
        }
    }
}

/// Checks messages with arbitrary check bits: the receiver must receive, refuse or truncate each of them.
/// It must refuse a message with the check bits [`VOID`], whether it compares types or not.
#[test]
fn types_that_are_lies_are_harmless() {
    let ints = plan(Named::INT);
    for (case, types) in
        [UNKNOWN, VOID, 2, 0xff_ffff, 0x12_3456].into_iter().cycle().take(20).enumerate()
    {
        let check = case % 2 == 0;
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let segment = Arc::new(segment);
        let mut victim =
            MessageEngine::new(Fabric::join(segment.clone(), 0).expect("rank 0"), 8 << 10);
        if check {
            victim.check_types();
        }
        let hostile = Fabric::join(segment, 1).expect("rank 1");
        let area = hostile.contact(0).expect("contact");
        let mut ring =
            Producer::new::<crate::transport::link::area::Area>(crate::shm::pair::first_level(2));
        let bytes = [0, 3, 8, 16, 17][case % 5];
        let label = Label { context: CONTEXT, tag: 3, bytes, types };
        let (words, used) = Envelope::Inline(label, [9; INLINE_MAX]).encode();
        let room = ring.reserve(&area, 0).expect("credits").expect("room");
        ring.publish(&area, room, &words, used);
        let mut target = [1u32; 4];
        let to = Elements { origin: target.as_mut_ptr().cast(), plan: &ints, count: 4 };
        // SAFETY: `target` has 16 bytes and outlives the receive, which ends in the next turn.
        let receive = unsafe { victim.receive(&any(to, 16, CONTEXT)) };
        let Ok(Operation::Pending(id)) = receive else { panic!("nothing has been read") };
        victim.progress().expect("a turn");
        let result = victim.requests().fetch(id).expect("an end");
        let kind = match types {
            UNKNOWN => None,
            VOID => Some(ErrorKind::Other),
            _ if check && bytes <= 16 => Some(ErrorKind::Type),
            _ => None,
        };
        let kind = kind.or((bytes > 16).then_some(ErrorKind::Truncated));
        assert_eq!(result.as_ref().err().map(Error::kind), kind, "{case}: {result:?}");
        let untouched = matches!(kind, Some(ErrorKind::Other | ErrorKind::Type)) || bytes == 0;
        assert_eq!(target == [1; 4], untouched, "{case}");
    }
}
