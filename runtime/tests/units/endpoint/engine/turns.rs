//! Tests messages with sparse layouts, whose pieces take turns in the chunks.

use super::super::*;
use crate::message::payload::SendMode;
use crate::settings::Forced;
use crate::shm::segment::{JobFlags, Segment};
use crate::{Datatype, Named, Plan};
use std::sync::Arc;
use typepack_engine::Elements;

const CONTEXT: u64 = 4;

/// Distance of two elements of a column, in doubles.
const STEP: usize = 9;

/// Two ranks whose long messages pass through chunks.
fn pair() -> [MessageEngine; 2] {
    let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
    [0, 1].map(|rank| {
        let fabric = Fabric::join(segment.clone(), rank).expect("a rank");
        let mut engine = MessageEngine::new(fabric, 8 << 10);
        engine.force(Forced::Packed);
        engine
    })
}

/// A column of doubles, or a row of them.
struct Buffer {
    doubles: Vec<f64>,
    plan: Plan,
    len: usize,
    step: usize,
}

/// What lies in the gaps, and in an element that has not arrived.
const CANARY: f64 = -1.5;

impl Buffer {
    /// A buffer of `len` elements, which belong to a column if `sparse`.
    fn new(len: usize, sparse: bool) -> Self {
        let step = if sparse { STEP } else { 1 };
        let double = Datatype::named(Named::F64);
        let list = Datatype::vector(len as i64, 1, step as i64, &double).expect("a type");
        let plan = list.commit().expect("a plan");
        Self { doubles: vec![CANARY; len * step], plan, len, step }
    }

    fn fill(mut self, seed: usize) -> Self {
        for at in 0..self.len {
            self.doubles[at * self.step] = (seed * 1_000_003 + at) as f64;
        }
        self
    }

    /// Checks that the elements have the values of `fill`, and that nobody has written to the gaps.
    fn check(&self, seed: usize) {
        for (at, value) in self.doubles.iter().enumerate() {
            let expected = match at % self.step {
                0 => (seed * 1_000_003 + at / self.step) as f64,
                _ => CANARY,
            };
            assert!(*value == expected, "{value} at {at} in place of {expected}");
        }
    }

    fn bytes(&self) -> u64 {
        8 * self.len as u64
    }

    fn layout(&mut self) -> Elements<&Plan> {
        Elements { origin: self.doubles.as_mut_ptr().cast(), plan: &self.plan, count: 1 }
    }

    /// Starts a send from this buffer.
    ///
    /// # Safety
    ///
    /// - The buffer lives and stays unchanged until the send has ended or is recalled.
    unsafe fn send(&mut self, engine: &mut MessageEngine, to: usize, tag: i32) -> u64 {
        let label = Label { context: CONTEXT, tag, bytes: self.bytes(), types: UNKNOWN };
        // SAFETY: the layout consists of elements of this buffer, which stay readable and unchanged until the send has
        // ended (condition of `# Safety`), and `bytes` is its packed size.
        let sent =
            unsafe { engine.send(&self.layout(), label, Process::new(to), SendMode::Standard) };
        let Operation::Pending(id) = sent.expect("a send") else {
            panic!("a long send is complete")
        };
        id
    }

    /// Starts a receive into this buffer.
    ///
    /// # Safety
    ///
    /// - The buffer lives until the receive has ended, and nobody else uses it meanwhile.
    unsafe fn receive(&mut self, engine: &mut MessageEngine, tag: i32) -> u64 {
        let (capacity, source, tag) = (self.bytes(), Sender::Any, Tag::Is(tag));
        let posting = Posting { layout: self.layout(), capacity, context: CONTEXT, source, tag };
        // SAFETY: the layout consists of elements of this buffer, which lives until the receive has ended and which
        // nobody else uses meanwhile (condition of `# Safety`).
        let received = unsafe { engine.receive(&posting) }.expect("a receive");
        let Operation::Pending(id) = received else { panic!("a long receive is complete") };
        id
    }
}

/// Returns the numbers of the messages in the order in which they arrive at rank 1. All are under way at the same time.
fn order_of_arrival(messages: &[(usize, bool)]) -> Vec<usize> {
    let [mut a, mut b] = pair();
    let mut sent: Vec<Buffer> = (0..)
        .zip(messages)
        .map(|(seed, &(len, sparse))| Buffer::new(len, sparse).fill(seed))
        .collect();
    let mut received: Vec<Buffer> =
        messages.iter().map(|&(len, sparse)| Buffer::new(len, sparse)).collect();
    // SAFETY: `sent` and `received` live until the end of this function, at which all messages have arrived, and
    // nothing else uses them before that.
    let ids: Vec<u64> = unsafe {
        for (tag, buffer) in (0..).zip(&mut sent) {
            buffer.send(&mut a, 1, tag);
        }
        (0..).zip(&mut received).map(|(tag, buffer)| buffer.receive(&mut b, tag)).collect()
    };
    let mut order = Vec::new();
    for _ in 0..10_000 {
        a.progress().expect("a turn");
        b.progress().expect("a turn");
        for (number, &id) in ids.iter().enumerate() {
            if order.contains(&number) {
                continue;
            }
            if let Some(ended) = b.requests().fetch(id) {
                assert_eq!(ended.expect("a message").bytes, sent[number].bytes());
                received[number].check(number);
                order.push(number);
            }
        }
        if order.len() == ids.len() {
            return order;
        }
    }
    panic!("some messages have not arrived: {order:?}");
}

/// Checks that a short sparse message does not wait for a long one that began before, and that messages with long runs
/// arrive in their order.
#[test]
fn sparse_messages_take_turns() {
    assert_eq!(order_of_arrival(&[(60_000, true), (9000, true)]), [1, 0]);
    assert_eq!(order_of_arrival(&[(60_000, false), (9000, false)]), [0, 1]);
    assert_eq!(order_of_arrival(&[(60_000, false), (30_000, true), (9000, true)]), [0, 2, 1]);
    assert_eq!(order_of_arrival(&[(60_000, true), (9000, false), (9000, true)]), [2, 0, 1]);
}

/// Checks many messages in both directions at the same time, sparse and contiguous, some of which the sender cancels.
#[test]
fn messages_of_all_shapes_arrive_whole() {
    let mut engines = pair();
    let mut state = 7_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    /// A message under way: its number, its receiver, the sent buffer, and the receive, if there is one.
    struct Message {
        number: usize,
        to: usize,
        send: u64,
        sent: Box<Buffer>,
        receive: Option<(u64, Box<Buffer>)>,
    }
    let mut messages: Vec<Message> = Vec::new();
    let (mut arrived, mut recalled, mut next) = (0, 0, 0);
    while arrived < 1500 {
        match below(5) {
            0 | 1 if messages.len() < 12 && next < 1800 => {
                let (len, to) = ([1200, 2500, 6000, 20_000][below(4)], below(2));
                let mut sent = Box::new(Buffer::new(len, below(3) > 0).fill(next));
                // SAFETY: `messages` keeps the buffer until the send has ended or is recalled.
                let send = unsafe { sent.send(&mut engines[1 - to], to, next as i32) };
                messages.push(Message { number: next, to, send, sent, receive: None });
                next += 1;
            }
            2 if !messages.is_empty() => {
                let at = below(messages.len());
                let message = &mut messages[at];
                if message.receive.is_none() {
                    let mut buffer = Box::new(Buffer::new(message.sent.len, below(2) > 0));
                    let (engine, tag) = (&mut engines[message.to], message.number as i32);
                    // SAFETY: `messages` keeps the buffer until the receive has ended.
                    let id = unsafe { buffer.receive(engine, tag) };
                    message.receive = Some((id, buffer));
                }
            }
            3 if !messages.is_empty() && below(6) == 0 => {
                let at = below(messages.len());
                if messages[at].receive.is_none() {
                    let Message { to, send, .. } = messages[at];
                    if engines[1 - to].cancel_send(send) == Cancelled::Recalled {
                        messages.swap_remove(at);
                        recalled += 1;
                    }
                }
            }
            _ => {
                for engine in &mut engines {
                    engine.progress().expect("a turn");
                }
            }
        }
        messages.retain(|message| {
            let Some((id, buffer)) = &message.receive else { return true };
            let Some(ended) = engines[message.to].requests().fetch(*id) else { return true };
            assert_eq!(ended.expect("a message").bytes, message.sent.bytes());
            buffer.check(message.number);
            // The last piece has arrived, so the send has ended too.
            let sent = engines[1 - message.to].requests().fetch(message.send);
            assert!(sent.is_some_and(|sent| sent.is_ok()));
            arrived += 1;
            false
        });
        if arrived + recalled == next && next >= 1800 {
            break;
        }
    }
    assert!(arrived > 1000 && recalled > 20, "{arrived} arrived, {recalled} recalled");
}
