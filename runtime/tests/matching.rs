//! Tests of matching with many messages that wait for their receives, and with many receives that wait for
//! their messages. The receives are in the same order as the messages or in the reverse order. The receives
//! name a source or accept any source, and name a tag or accept any tag. If the library searched its queues
//! linearly, each of these tests would take minutes.
//!
//! `MATCHING_MESSAGES` sets the number of messages. With `--nocapture`, each test prints its times.

use crate::job::ranks;
use std::time::Instant;
use typepack::engine::Elements;
use typepack::{Communicator, Datatype, Named, Operation, Plan, Source, Tag, commit};

/// The tag of the message that is sent last and received first.
const LAST: i32 = i32::MAX;

/// Number of words in a message. A message has 64 bytes.
const WORDS: usize = 8;

/// A message. Each word contains the number of the message. This number is also the tag of the message,
/// except that the last message has the tag `LAST`.
type Message = [u64; WORDS];

/// Returns the number of messages that each part of a test sends.
fn messages() -> usize {
    let fallback = if cfg!(debug_assertions) { 20_000 } else { 100_000 };
    std::env::var("MATCHING_MESSAGES").map_or(fallback, |text| text.parse().expect("a number"))
}

fn word() -> Plan {
    commit(&Datatype::named(Named::U64)).unwrap()
}

fn message(number: usize) -> Message {
    [number as u64; WORDS]
}

/// Sends message `number` to rank 1.
fn send(world: &Communicator, word: &Plan, number: usize) {
    world.send_elements(&message(number), word, WORDS as u64, 1, number as i32).unwrap();
}

/// A way to choose the source and the tag of receives: its name, and a function that returns the source and
/// the tag with which the message of a given number is received.
type Form = (&'static str, fn(usize) -> (Source, Tag));

/// The four forms: a receive names its source or not, and its tag or not.
const FORMS: [Form; 4] = [
    ("source, tag", |number| (Source::Rank(0), Tag::Is(number as i32))),
    ("any source, tag", |number| (Source::Any, Tag::Is(number as i32))),
    ("source, any tag", |_| (Source::Rank(0), Tag::Any)),
    ("any source, any tag", |_| (Source::Any, Tag::Any)),
];

/// Runs `part` between two barriers, and prints how long it takes on rank 1.
fn timed(world: &Communicator, name: &str, part: impl FnOnce()) {
    world.barrier().unwrap();
    let start = Instant::now();
    part();
    world.barrier().unwrap();
    if world.rank() == 1 {
        println!("{name}: {:.3} s", start.elapsed().as_secs_f64());
    }
}

/// Returns the numbers below `count` in ascending order, or in descending order if `reverse` is true. The
/// tests send messages or start receives in this order. A receive with any tag takes the messages in the
/// order in which they were sent.
fn numbers(count: usize, reverse: bool) -> Vec<usize> {
    if reverse { (0..count).rev().collect() } else { (0..count).collect() }
}

/// How rank 1 receives a message that has arrived.
#[derive(Clone, Copy, Debug)]
enum Way {
    Receive,
    Probe,
    MatchedProbe,
}

/// Receives one message in the given way.
fn receive(world: &Communicator, word: &Plan, way: Way, (source, tag): (Source, Tag)) -> Message {
    let mut got: Message = [0; WORDS];
    match way {
        Way::Receive => {
            world.recv_elements(&mut got, word, WORDS as u64, source, tag).unwrap();
        }
        Way::Probe => {
            let found = world.probe(source, tag).unwrap();
            assert_eq!(world.iprobe(source, tag).unwrap(), Some(found));
            world.recv_elements(&mut got, word, WORDS as u64, found.source, found.tag).unwrap();
        }
        Way::MatchedProbe => {
            let raw = world.messages();
            let taken = raw.take(source, tag, true).unwrap().expect("a message");
            // SAFETY: `got` has the eight words of the receive, and lives until `finish` has completed the
            // receive.
            let started = unsafe {
                raw.receive_matched(Elements::new(got.as_mut_ptr(), word, WORDS as u64), taken)
                    .unwrap()
            };
            raw.finish(started).unwrap();
        }
    }
    got
}

#[test]
fn unexpected_messages() {
    ranks(2, "unexpected_messages", |world| {
        let (word, count) = (word(), messages());
        for (form, wanted) in FORMS {
            for (order, reverse) in [("forward", false), ("reverse", true)] {
                for way in [Way::Receive, Way::Probe, Way::MatchedProbe] {
                    timed(world, &format!("{way:?}, {form}, {order}"), || {
                        if world.rank() == 0 {
                            (0..count).for_each(|number| send(world, &word, number));
                            let last = message(count);
                            world.send_elements(&last, &word, WORDS as u64, 1, LAST).unwrap();
                            return;
                        }
                        let mut last = [0; WORDS];
                        world.recv_elements(&mut last, &word, WORDS as u64, 0, LAST).unwrap();
                        assert_eq!(last, message(count));
                        for (at, number) in numbers(count, reverse).into_iter().enumerate() {
                            let (source, tag) = wanted(number);
                            let got = receive(world, &word, way, (source, tag));
                            let number = if tag == Tag::Any { at } else { number };
                            assert_eq!(got, message(number));
                        }
                    });
                }
            }
        }
    });
}

/// Checks many sends that are all still pending when the receiver takes the first message.
#[test]
fn pending_sends() {
    ranks(2, "pending_sends", |world| {
        let (word, count) = (word(), messages());
        timed(world, "pending sends", || {
            let data: Vec<Message> = (0..count).map(message).collect();
            let mut back: Vec<Message> = vec![[0; WORDS]; count];
            let mut last = message(count);
            world
                .scope(|scope| {
                    if world.rank() == 0 {
                        let started: Vec<_> = (data.iter().enumerate())
                            .map(|(number, data)| {
                                let tag = number as i32;
                                scope.isend_elements(data, &word, WORDS as u64, 1, tag).unwrap()
                            })
                            .collect();
                        world.send_elements(&last, &word, WORDS as u64, 1, LAST).unwrap();
                        scope.wait_all(started).unwrap();
                        return;
                    }
                    world.recv_elements(&mut last, &word, WORDS as u64, 0, LAST).unwrap();
                    let started: Vec<_> = (back.iter_mut().enumerate().rev())
                        .map(|(number, back)| {
                            scope
                                .irecv_elements(back, &word, WORDS as u64, 0, number as i32)
                                .unwrap()
                        })
                        .collect();
                    scope.wait_all(started).unwrap();
                })
                .unwrap();
            assert!(world.rank() == 0 || back == data);
        });
    });
}

#[test]
fn posted_receives() {
    ranks(2, "posted_receives", |world| {
        let (word, count) = (word(), messages());
        for (form, wanted) in FORMS {
            for (order, reverse) in [("forward", false), ("reverse", true)] {
                timed(world, &format!("posted, {form}, {order}"), || {
                    if world.rank() == 0 {
                        world.barrier().unwrap();
                        numbers(count, reverse).iter().for_each(|&n| send(world, &word, n));
                        return;
                    }
                    let mut back: Vec<Message> = vec![[0; WORDS]; count];
                    world
                        .scope(|scope| {
                            let started: Vec<_> = (back.iter_mut().enumerate())
                                .map(|(number, back)| {
                                    let (source, tag) = wanted(number);
                                    scope
                                        .irecv_elements(back, &word, WORDS as u64, source, tag)
                                        .unwrap()
                                })
                                .collect();
                            world.barrier().unwrap();
                            scope.wait_all(started).unwrap();
                        })
                        .unwrap();
                    let sent = numbers(count, reverse);
                    for (at, got) in back.into_iter().enumerate() {
                        let any = wanted(at).1 == Tag::Any;
                        assert_eq!(got, message(if any { sent[at] } else { at }));
                    }
                });
            }
        }
    });
}

/// Checks that many posted receives can be cancelled, in the order of posting or in reverse, and that the
/// one receive that is left still takes its message.
#[test]
fn cancelled_receives() {
    ranks(2, "cancelled_receives", |world| {
        let (word, count) = (word(), messages());
        for (form, wanted) in FORMS {
            for (order, reverse) in [("forward", false), ("reverse", true)] {
                timed(world, &format!("cancelled, {form}, {order}"), || {
                    if world.rank() == 0 {
                        world.barrier().unwrap();
                        send(world, &word, count - 1);
                        return;
                    }
                    let raw = world.messages();
                    let mut back: Vec<Message> = vec![[0; WORDS]; count];
                    let mut started = Vec::new();
                    for (number, back) in back.iter_mut().enumerate() {
                        let (source, tag) = wanted(number);
                        let to = back.as_mut_ptr();
                        // SAFETY: `back` lives until all receives are cancelled or complete.
                        let receive = unsafe {
                            raw.receive(Elements::new(to, &word, WORDS as u64), source, tag)
                        };
                        let Ok(Operation::Pending(id)) = receive else { panic!("{receive:?}") };
                        started.push(id);
                    }
                    for number in numbers(count - 1, reverse) {
                        let id = started[number];
                        assert!(raw.change(|ongoing| ongoing.cancel_receive(id)).unwrap());
                    }
                    world.barrier().unwrap();
                    raw.finish(Operation::Pending(started[count - 1])).unwrap();
                    assert_eq!(back[count - 1], message(count - 1));
                });
            }
        }
    });
}
