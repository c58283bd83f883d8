//! Tests one rank's endpoint without other processes.

use super::super::requests::{Owner, Request};
use super::super::sources::{Combine, Errand, Panic};
use super::*;
use crate::shm::segment::{JobFlags, Segment};
use crate::{Datatype, Named};
use std::sync::Arc;

/// Checks that a thread that sleeps in a probe wakes up when another thread sends a message to this rank
/// itself. No other rank rings the doorbell for such a message.
#[test]
fn a_message_to_oneself_rouses_the_poller() {
    let byte = Datatype::named(Named::U8).commit().expect("a plan");
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    let fabric = Fabric::join(Arc::new(segment), 0).expect("rank 0");
    let endpoint = Endpoint::new(fabric.clone(), 4, Forced::Nothing, Duration::ZERO);
    endpoint.lock().expect("the lock").polled = true;
    let mut data = [1u8; 8];
    let layout = LayoutRef { origin: data.as_mut_ptr(), plan: &byte, count: 8 };
    for bytes in [4, 8] {
        let seen = fabric.announce();
        let label = Label { context: 0, tag: 0, bytes, types: 0 };
        // SAFETY: `data` lives to the end of the test, and the endpoint runs no turn after that.
        unsafe { endpoint.send(&layout, label, Slot::new(0)) }.expect("a send");
        assert_ne!(fabric.announce(), seen, "{bytes} bytes");
    }
}

/// A source of progress that owns no messages, and that has an errand ready after a fixed number of
/// turns.
#[derive(Debug)]
struct Clock {
    number: u32,
    turns: u32,
    request: Option<u64>,
    errands: u32,
}

impl ProgressSource for Clock {
    fn completed(&mut self, _: &mut MessageEngine, _: u64, _: Result<Status>) {}

    fn progress(&mut self, _: &mut MessageEngine) -> Result<bool> {
        self.turns = self.turns.saturating_sub(1);
        self.errands += u32::from(self.turns == 0);
        Ok(false)
    }

    fn nap(&self) -> Option<Duration> {
        (self.turns > 0).then_some(Duration::from_millis(1))
    }

    fn has_errand(&self) -> bool {
        self.errands > 0
    }

    fn errand(&mut self) -> Option<(u64, Errand)> {
        self.errands = self.errands.checked_sub(1)?;
        let nothing = Combine::user(|_, _, _, _| {});
        Some((7, Errand::Drop(nothing)))
    }

    fn ran(
        &mut self,
        engine: &mut MessageEngine,
        token: u64,
        panic: Option<Panic>,
    ) -> Option<Panic> {
        assert!(token == 7 && panic.is_none());
        if let Some(id) = self.request.take() {
            engine.requests().complete(id, Ok(Status { source: 0, tag: 0, bytes: 0 }));
        }
        panic
    }

    fn detach(&mut self, _: &mut MessageEngine, _: u64) -> bool {
        true
    }

    fn is_needed(&self) -> bool {
        false
    }
}

/// Checks that a waiting thread gives turns to a source that asks for turns, and that the thread runs the
/// source's errand, even in a job of one rank.
#[test]
fn a_source_gets_turns_and_errands_are_run() {
    let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
    let pair = Fabric::join(Arc::new(segment), 0).expect("rank 0");
    for fabric in [Fabric::alone(), pair] {
        let endpoint = Endpoint::new(fabric, 4, Forced::Nothing, Duration::ZERO);
        let clock = |number| Clock { number, turns: 0, request: None, errands: 0 };
        endpoint.register(clock).expect("an endpoint");
        let started = endpoint.begin(|core| {
            let id = core.with(|clock: &mut Clock, engine| {
                let owner = Owner { source: clock.number, token: 0 };
                let id = engine.requests().open(Request::Source(owner));
                (clock.turns, clock.request) = (5, Some(id));
                id
            })?;
            core.look_around();
            Ok(Operation::Pending(id))
        });
        let Ok(Operation::Pending(id)) = started else { panic!("{started:?}") };
        endpoint.wait(id).expect("an end");
    }
}
