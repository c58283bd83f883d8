//! Partitioned messages between real ranks: the safe calls, and a campaign of random messages. Every rank sends to the
//! next one, which is itself in a job of one rank.
//!
//! The campaign draws the numbers of partitions (1 to 10^4), the types, the threads of both sides, and the memory. A
//! partition's expected values are computed from its place in the packed order, by lists of offsets that no datatype
//! has a part in. `PARTITIONS_CASES` sets the number of cases of each job, and `PARTITIONS_SEED` selects others.

use crate::job::{ranks, ranks_with};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;
use typepack::partitioned::PartitionedReceive;
use typepack::{Communicator, Datatype, ErrorKind, Named, Plan, SharedBuffer, commit};
use typepack_test_support::random::Random;

/// Returns the ranks after and before this one.
fn neighbors(world: &Communicator) -> (usize, usize) {
    let (rank, size) = (world.rank(), world.size());
    ((rank + 1) % size, (rank + size - 1) % size)
}

fn rounds(world: &Communicator) {
    let (next, previous) = neighbors(world);
    let (mut from, mut to) = (vec![0u32; 1200], vec![0u32; 1200]);
    let mut send = world.partitioned_send(&mut from, 12, next, 1).unwrap();
    let mut receive = world.partitioned_receive(&mut to, 5, previous, 1).unwrap();
    for round in 0..4 {
        receive
            .round(|incoming| {
                assert_eq!(incoming.len(), 5);
                let sent = send.round(|mut partitions| {
                    assert_eq!(partitions.len(), 12);
                    let mut first = partitions.next().unwrap();
                    assert_eq!((first.index(), first.len()), (0, 100));
                    first.fill(round);
                    // The partitions that come later may be ready first.
                    rayon::scope(|scope| {
                        for mut partition in partitions {
                            scope.spawn(move |_| {
                                let index = partition.index() as u32;
                                partition.fill(round + 10 * index);
                                // The program may leave partitions to the end of the round.
                                if !index.is_multiple_of(3) {
                                    partition.ready().unwrap();
                                }
                            });
                        }
                    });
                    if world.size() == 1 {
                        assert!(incoming.arrived(0).unwrap().is_none());
                    }
                    first.ready().unwrap();
                    7
                });
                assert_eq!(sent.unwrap(), 7);
                let last = incoming.wait(4).unwrap();
                assert_eq!((last.len(), last[0], last[239]), (240, round + 90, round + 110));
                assert_eq!(incoming.arrived(4).unwrap().unwrap(), last);
                assert_eq!(incoming.wait(5).unwrap_err().kind(), ErrorKind::Argument);
            })
            .unwrap();
        let right = |(at, value): (usize, &u32)| *value == round + 10 * (at as u32 / 100);
        assert!(receive.values().iter().enumerate().all(right));
    }
}

macro_rules! sizes {
    ($($name:ident: $size:literal, $body:ident;)*) => {
        $(
            #[test]
            fn $name() {
                ranks($size, stringify!($name), $body);
            }
        )*
    };
}

sizes! {
    partitions_arrive_in_rounds_in_one_rank: 1, rounds;
    partitions_arrive_in_rounds: 2, rounds;
    partitions_arrive_in_rounds_around_a_ring: 3, rounds;
    a_rank_does_not_wait_for_its_own_abandoned_sends: 1, abandoned_by_all;
    ranks_that_leave_do_not_wait_for_each_other: 2, abandoned_by_all;
    nor_do_they_around_a_ring: 3, abandoned_by_all;
    random_messages_arrive_in_one_rank: 1, cases;
    random_messages_arrive: 2, cases;
    random_messages_arrive_around_a_ring: 3, cases;
}

#[test]
fn wrong_arguments_are_refused() {
    ranks(1, "wrong_arguments_are_refused", |world| {
        let plan = commit(&Datatype::named(Named::U64)).unwrap();
        let mut buf = [0u64; 12];
        let kind = |result: typepack::Result<_>| match result {
            Ok(_) => panic!("no error"),
            Err(error) => error.kind(),
        };
        assert_eq!(kind(world.partitioned_send(&mut buf, 5, 0, 0).map(drop)), ErrorKind::Buffer);
        assert_eq!(kind(world.partitioned_send(&mut buf, 0, 0, 0).map(drop)), ErrorKind::Buffer);
        assert_eq!(kind(world.partitioned_send(&mut buf, 4, 1, 0).map(drop)), ErrorKind::Rank);
        assert_eq!(kind(world.partitioned_receive(&mut buf, 4, 0, -1).map(drop)), ErrorKind::Tag);
        for (count, partitions) in [(2, 4), (4, 4), (u64::MAX, 4)] {
            let refused =
                world.partitioned_send_elements(&mut buf, &plan, count, partitions, 0, 0).map(drop);
            assert!(matches!(kind(refused), ErrorKind::Buffer | ErrorKind::Engine(_)));
        }
        // Elements of one partition must lie in the buffer, but need not fill it.
        drop(world.partitioned_send_elements(&mut buf, &plan, 11, 1, 0, 0).unwrap());
        let refused = world.partitioned_send_elements(&mut buf, &plan, 13, 1, 0, 0).map(drop);
        assert!(matches!(kind(refused), ErrorKind::Engine(_)));
        // Nothing has been sent that another receive could match.
        let mut none: [u64; 0] = [];
        let mut send = world.partitioned_send(&mut none, 0, 0, 3).unwrap();
        assert_eq!(send.round(|partitions| partitions.len()).unwrap(), 0);
    });
}

/// A side that panics in a round is gone; the other one gets an error, or ends.
#[test]
fn a_panic_ends_the_round_on_both_sides() {
    ranks(2, "a_panic_ends_the_round_on_both_sides", |world| {
        let other = 1 - world.rank();
        for size in [8, 100_000] {
            for sender_panics in [true, false] {
                let mut buf = vec![world.rank() as u64; size];
                if world.rank() == 0 {
                    let mut send = world.partitioned_send(&mut buf, 4, other, 1).unwrap();
                    let round = catch_unwind(AssertUnwindSafe(|| {
                        send.round(|mut partitions| {
                            partitions.nth(1).unwrap().ready().unwrap();
                            assert!(!sender_panics, "intended");
                        })
                    }));
                    assert_eq!(round.is_err(), sender_panics);
                    drop(send);
                    buf.fill(9);
                } else {
                    let mut receive = world.partitioned_receive(&mut buf, 2, other, 1).unwrap();
                    let round = catch_unwind(AssertUnwindSafe(|| {
                        receive.round(|_| assert!(sender_panics, "intended"))
                    }));
                    match round {
                        Ok(result) => assert_eq!(result.unwrap_err().kind(), ErrorKind::Other),
                        Err(panic) => {
                            let text = panic.downcast_ref::<&str>();
                            assert!(!sender_panics && text == Some(&"intended"), "{text:?}");
                        }
                    }
                }
                // Later operations with the same tag are not disturbed.
                rounds(world);
                world.barrier().unwrap();
            }
        }
    });
}

/// A send is abandoned while many of its short messages wait for room in the ring. What they leave behind does not
/// count for the next round, nor for another send that gets the place of this one.
#[test]
fn an_abandoned_round_leaves_nothing_for_the_next() {
    ranks(2, "an_abandoned_round_leaves_nothing_for_the_next", |world| {
        const PARTITIONS: usize = 4000;
        let other = 1 - world.rank();
        let mut buf = vec![1u64; PARTITIONS * 16];
        if world.rank() == 0 {
            let mut send = world.partitioned_send(&mut buf, PARTITIONS, other, 1).unwrap();
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                send.round(|partitions| {
                    let mut ready = partitions.take(PARTITIONS - 1);
                    ready.by_ref().for_each(|partition| partition.ready().unwrap());
                    panic!("intended");
                })
            }));
            assert!(panicked.is_err());
            send.round(|partitions| partitions.for_each(|mut partition| partition.fill(2)))
                .unwrap();
            drop(send);
            let mut few = [3u64; 2];
            let mut send = world.partitioned_send(&mut few, 2, other, 1).unwrap();
            send.round(|_| ()).unwrap();
        }
        world.barrier().unwrap();
        if world.rank() == 1 {
            let mut receive = world.partitioned_receive(&mut buf, PARTITIONS, other, 1).unwrap();
            assert_eq!(receive.round(|_| ()).unwrap_err().kind(), ErrorKind::Other);
            receive.round(|_| ()).unwrap();
            assert!(receive.values().iter().all(|value| *value == 2));
            drop(receive);
            let mut few = [0u64; 2];
            let mut receive = world.partitioned_receive(&mut few, 2, other, 1).unwrap();
            receive.round(|_| ()).unwrap();
            assert_eq!(receive.values(), [3, 3]);
        }
    });
}

/// A rank that has abandoned a receive and leaves the job still takes the long messages of the other one.
#[test]
fn a_rank_that_leaves_takes_what_it_has_abandoned() {
    ranks(2, "a_rank_that_leaves_takes_what_it_has_abandoned", |world| {
        let other = 1 - world.rank();
        let mut buf = vec![1u64; 400_000];
        for is_known in [true, false] {
            if world.rank() == 0 {
                let mut send = world.partitioned_send(&mut buf, 2, other, 1).unwrap();
                if is_known {
                    send.round(|_| ()).unwrap();
                }
                world.barrier().unwrap();
                send.round(|_| ()).unwrap();
            } else {
                let mut receive = world.partitioned_receive(&mut buf, 2, other, 1).unwrap();
                if is_known {
                    receive.round(|_| ()).unwrap();
                }
                let round = AssertUnwindSafe(|| receive.round(|_| panic!("intended")).unwrap());
                assert!(catch_unwind(round).is_err());
                drop(receive);
                world.barrier().unwrap();
            }
        }
    });
}

/// Abandons a receive whose send never starts.
fn abandon(receive: &mut PartitionedReceive<'_, u64>) {
    let round = AssertUnwindSafe(|| receive.round(|_| panic!("intended")).unwrap());
    assert!(catch_unwind(round).is_err());
}

/// Each rank has abandoned receives from the one before it, which sends nothing. They once waited for each other at the
/// end, for ever.
fn abandoned_by_all(world: &Communicator) {
    let (next, previous) = neighbors(world);
    let (mut from, mut to, mut other) = (vec![1u64; 8], vec![0u64; 8], vec![0u64; 8]);
    let mut send = world.partitioned_send(&mut from, 2, next, 1).unwrap();
    let mut receive = world.partitioned_receive(&mut to, 2, previous, 1).unwrap();
    receive.round(|_| send.round(|_| ()).unwrap()).unwrap();
    // One receive knows its send, the other one does not.
    let mut unknown = world.partitioned_receive(&mut other, 2, previous, 2).unwrap();
    abandon(&mut receive);
    abandon(&mut unknown);
    drop((receive, unknown, send));
}

/// The types of all partitions together are compared.
#[test]
fn types_are_compared() {
    let env = [("TYPEPACK_CHECK_TYPES", "1")];
    ranks_with(2, "types_are_compared", &env, |world| {
        let (next, previous) = neighbors(world);
        for (equal, tag) in [(true, 1), (false, 2)] {
            let (mut from, mut same, mut to) = ([1u64; 6], [1f64; 6], [0f64; 6]);
            let mut receive = world.partitioned_receive(&mut to, 2, previous, tag).unwrap();
            let result = receive.round(|_| {
                if equal {
                    let mut send = world.partitioned_send(&mut same, 3, next, tag).unwrap();
                    send.round(|_| ()).unwrap();
                } else {
                    let mut send = world.partitioned_send(&mut from, 3, next, tag).unwrap();
                    send.round(|_| ()).unwrap();
                }
            });
            match result {
                Ok(()) => assert!(equal),
                Err(error) => assert!(!equal && error.kind() == ErrorKind::Type, "{error}"),
            }
        }
    });
}

/// A type of units (8-byte words), and the offsets of its units in packed order.
struct Shape {
    plan: Plan,
    offsets: Vec<usize>,
    /// The extent in units.
    extent: usize,
}

/// Draws a type of `units` units.
fn shape(random: &mut Random, units: usize) -> Shape {
    let word = Datatype::named(Named::U64);
    let (offsets, ty): (Vec<usize>, _) = match random.below(4) {
        0 => ((0..units).collect(), Datatype::contiguous(units as i64, &word)),
        1 => {
            let stride = 1 + random.below(4) as usize;
            let ty = Datatype::vector(units as i64, 1, stride as i64, &word);
            ((0..units).map(|at| at * stride).collect(), ty)
        }
        _ => {
            // Blocks of one length, with random gaps, and in a random order.
            let block = (1..=4).rev().find(|block| units.is_multiple_of(*block)).unwrap_or(1);
            let mut starts = Vec::new();
            let mut at = 0;
            for _ in 0..units / block {
                at += random.below(3) as usize;
                starts.push(at);
                at += block;
            }
            if random.one_in(2) {
                for last in (1..starts.len()).rev() {
                    starts.swap(last, random.below(last as u64 + 1) as usize);
                }
            }
            let displs: Vec<i64> = starts.iter().map(|at| *at as i64).collect();
            let ty = Datatype::indexed_block(block as i64, &displs, &word);
            (starts.iter().flat_map(|at| *at..*at + block).collect(), ty)
        }
    };
    let end = offsets.iter().max().map_or(0, |last| last + 1);
    let extent = end + random.below(3) as usize;
    let ty = Datatype::resized(0, extent as i64 * 8, &ty.unwrap()).unwrap();
    Shape { plan: commit(&ty).unwrap(), offsets, extent }
}

/// One side of a case.
struct Side {
    shape: Shape,
    /// Number of elements of a partition.
    count: usize,
    partitions: usize,
    threads: usize,
    shared: bool,
}

impl Side {
    /// Draws a side with `partitions` partitions of `units` units.
    fn draw(random: &mut Random, partitions: usize, units: usize) -> Self {
        let divisors: Vec<usize> =
            (1..=units.min(4000)).filter(|of| units.is_multiple_of(*of)).collect();
        let of_element = divisors[random.below(divisors.len() as u64) as usize];
        Self {
            shape: shape(random, of_element),
            count: units / of_element,
            partitions,
            threads: 1 + random.below(4) as usize,
            shared: random.one_in(2),
        }
    }

    /// Returns the number of units of a partition, and of its memory.
    fn units(&self) -> (usize, usize) {
        (self.count * self.shape.offsets.len(), self.count * self.shape.extent)
    }

    /// Returns the offsets of the units of a partition within it, in packed order.
    fn offsets(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count).flat_map(move |element| {
            self.shape.offsets.iter().map(move |at| element * self.shape.extent + at)
        })
    }
}

/// Draws a number from 1 to `most`, small and large ones alike.
fn any_size(random: &mut Random, most: u64) -> usize {
    let bits = 64 - most.leading_zeros() as u64;
    let bound = 1 << random.below(bits + 1);
    (1 + random.below(bound.min(most))) as usize
}

/// Draws the two sides of a case.
fn sides(random: &mut Random) -> (Side, Side) {
    let sent = any_size(random, 10_000);
    let most = if random.one_in(20) { 400_000 } else { 20_000 };
    let each = any_size(random, most / sent as u64 + 1);
    let all = sent * each;
    let divisors: Vec<usize> = (1..=all.min(10_000)).filter(|of| all.is_multiple_of(*of)).collect();
    // Many partitions are rare among the divisors, so draw one of the largest at times.
    let received = match random.below(4) {
        0 => divisors[divisors.len() - 1],
        _ => divisors[random.below(divisors.len() as u64) as usize],
    };
    (Side::draw(random, sent, each), Side::draw(random, received, all / received))
}

/// The value of a unit.
fn value(case: u64, round: u64, unit: usize) -> u64 {
    Random(case << 32 ^ round << 24 ^ unit as u64).next() | 1
}

const CANARY: u64 = 0xcafe_f00d_0000_0000;

/// Words between canaries.
struct Words {
    private: Vec<u64>,
    shared: SharedBuffer<u64>,
    is_shared: bool,
}

const MARGIN: usize = 16;

impl Words {
    fn new(side: &Side) -> Self {
        let len = side.partitions * side.units().1 + 2 * MARGIN;
        let lens = if side.shared { (0, len) } else { (len, 0) };
        let shared = SharedBuffer::zeroed(lens.1).unwrap();
        let mut words = Self { private: vec![0; lens.0], shared, is_shared: side.shared };
        words.all().fill(CANARY);
        words
    }

    fn all(&mut self) -> &mut [u64] {
        if self.is_shared { &mut self.shared } else { &mut self.private }
    }

    fn middle(&mut self) -> &mut [u64] {
        let len = self.all().len();
        &mut self.all()[MARGIN..len - MARGIN]
    }
}

fn case(world: &Communicator, number: u64, seed: u64) {
    let rank = world.rank() as u64;
    let (next, previous) = neighbors(world);
    let of_link = |rank: u64| seed ^ (number << 8 | rank).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (out, _) = sides(&mut Random(of_link(rank)));
    let (_, into) = sides(&mut Random(of_link(previous as u64)));
    let mut random = Random(of_link(rank) ^ 0x5555);
    let (mut from, mut to) = (Words::new(&out), Words::new(&into));
    let tag = 5;
    let (sent, received) = (out.units().0, into.units().0);
    let (mine, theirs) = (number << 8 | rank, number << 8 | previous as u64);
    {
        let (from, to) = (from.middle(), to.middle());
        let count = out.count as u64;
        let send = world.partitioned_send_elements(
            from,
            &out.shape.plan,
            count,
            out.partitions,
            next,
            tag,
        );
        let mut send = send.unwrap();
        let count = into.count as u64;
        let receive = world.partitioned_receive_elements(
            to,
            &into.shape.plan,
            count,
            into.partitions,
            previous,
            tag,
        );
        let mut receive = receive.unwrap();
        for round in 0..1 + number % 3 {
            let order = |random: &mut Random, len: usize| {
                let mut order: Vec<usize> = (0..len).collect();
                for last in (1..len).rev() {
                    order.swap(last, random.below(last as u64 + 1) as usize);
                }
                Mutex::new(order)
            };
            let waits = order(&mut random, into.partitions);
            let goes = order(&mut random, out.partitions);
            let leaves_some = random.one_in(4);
            receive
                .round(|incoming| {
                    thread::scope(|scope| {
                        for _ in 0..into.threads {
                            scope.spawn(|| {
                                while let Some(at) = { waits.lock().unwrap().pop() } {
                                    let values = incoming.wait(at).unwrap();
                                    for (unit, place) in into.offsets().enumerate() {
                                        let wanted = value(theirs, round, at * received + unit);
                                        assert_eq!(values[place], wanted, "partition {at}");
                                    }
                                }
                            });
                        }
                        send.round(|partitions| {
                            let slots: Vec<_> =
                                partitions.map(|part| Mutex::new(Some(part))).collect();
                            thread::scope(|scope| {
                                for _ in 0..out.threads {
                                    scope.spawn(|| {
                                        while let Some(at) = { goes.lock().unwrap().pop() } {
                                            let mut part =
                                                slots[at].lock().unwrap().take().unwrap();
                                            assert_eq!(part.index(), at);
                                            for (unit, place) in out.offsets().enumerate() {
                                                part[place] = value(mine, round, at * sent + unit);
                                            }
                                            if !leaves_some || at.is_multiple_of(2) {
                                                part.ready().unwrap();
                                            }
                                        }
                                    });
                                }
                            });
                        })
                        .unwrap();
                    });
                })
                .unwrap();
        }
    }
    // Nothing else has been written.
    for at in 0..into.partitions {
        let whole = into.units().1;
        let part = &mut to.all()[MARGIN + at * whole..][..whole];
        into.offsets().for_each(|place| part[place] = CANARY);
    }
    assert!(to.all().iter().all(|word| *word == CANARY), "a gap or a margin has changed");
    let after = from.all_after(MARGIN + out.partitions * out.units().1);
    assert!(from.all()[..MARGIN].iter().chain(&after).all(|word| *word == CANARY));
}

impl Words {
    /// Returns a copy of the words from `at` on.
    fn all_after(&self, at: usize) -> Vec<u64> {
        if self.is_shared { self.shared[at..].to_vec() } else { self.private[at..].to_vec() }
    }
}

fn number(name: &str, fallback: u64) -> u64 {
    std::env::var(name).map_or(fallback, |text| text.parse().expect("a number"))
}

fn cases(world: &Communicator) {
    let seed = number("PARTITIONS_SEED", 1);
    for number in 0..number("PARTITIONS_CASES", 40) {
        // If a rank fails, the line tells which case it was.
        let ended = catch_unwind(AssertUnwindSafe(|| case(world, number, seed)));
        assert!(ended.is_ok(), "case {number} of seed {seed} on rank {}", world.rank());
    }
}

macro_rules! forced {
    ($($name:ident: $variable:literal = $value:literal;)*) => {
        $(
            #[test]
            fn $name() {
                ranks_with(2, stringify!($name), &[($variable, $value)], cases);
            }
        )*
    };
}

forced! {
    random_messages_arrive_through_the_pipeline: "TYPEPACK_TRANSPORT" = "pipeline";
    random_messages_arrive_through_heaps: "TYPEPACK_TRANSPORT" = "heap";
    random_messages_arrive_through_private_copies: "TYPEPACK_TRANSPORT" = "cma";
    random_messages_arrive_in_fragments: "TYPEPACK_TRANSPORT" = "parts";
    random_messages_arrive_without_spinning: "TYPEPACK_SPIN_US" = "0";
    random_messages_arrive_with_checked_types: "TYPEPACK_CHECK_TYPES" = "1";
    random_messages_arrive_without_eager_messages: "TYPEPACK_EAGER_LIMIT" = "0";
}
