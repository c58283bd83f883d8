//! Tests of windows of private memory, which the other ranks cannot map: long puts and gets of many layouts, many of
//! them at a time, types with long encoded forms, updates of many elements, several threads, and memory that is
//! detached.
//!
//! Rank `r` puts to the part of rank `t` that belongs to `r`, so no two ranks write the same words. Each rank draws the
//! same numbers, so each rank knows what its own memory must hold.

use crate::job::{ranks, ranks_with};
use std::sync::atomic::{AtomicBool, Ordering};
use typepack::engine::Elements;
use typepack::rma::{Assertions, LockKind, Update, Window};
use typepack::{Communicator, ErrorKind, Op, Plan, SharedBuffer, commit};
use typepack_engine::Cursor;
use typepack_test_support::random::Random;

fn plan(text: &str) -> Plan {
    commit(&text.parse().expect("a type")).expect("a layout")
}

fn part<'a>(memory: &mut [u64], plan: &'a Plan, count: u64) -> Elements<&'a Plan> {
    Elements { origin: memory.as_mut_ptr().cast(), plan, count }
}

/// Returns the indices of the words of an element of `plan` whose origin is word `at`, in the order of the data.
fn words_of(plan: &Plan, at: usize) -> Vec<usize> {
    let mut words = Vec::new();
    let mut cursor = Cursor::at(plan, 1, 0).expect("a cursor");
    while let Some(run) = cursor.run() {
        let first = at as i64 + run.offset / 8;
        words.extend((0..run.bytes as i64 / 8).map(|word| (first + word) as usize));
        cursor.advance(run.bytes);
    }
    words
}

/// Makes a window of `words` words of private memory with the value 0, and calls `body`.
fn with_window(world: &Communicator, words: usize, body: impl FnOnce(&Window, *mut u64)) {
    let mut data = vec![0_u64; words];
    let (base, bytes) = (data.as_mut_ptr(), size_of_val(&data[..]) as i64);
    // SAFETY: the window is freed before `data`, and nobody else uses `data` meanwhile.
    let window = unsafe { Window::create_raw(world, base.cast(), bytes, 8, &[]) };
    let window = window.expect("a window");
    body(&window, base);
    window.free().expect("freed");
}

/// Layouts of words, from one word to more than a megabyte.
const LAYOUTS: [&str; 9] = [
    "u64",
    "contiguous(130, u64)",
    "contiguous(1500, u64)",
    "contiguous(70000, u64)",
    "vector(900, 1, 2, u64)",
    "vector(16384, 1, 8, u64)",
    "vector(700, 5, -6, u64)",
    "vector(30, 1000, 1500, u64)",
    "indexed([3, 1, 2000, 7], [4300, 2, 2100, 40], u64)",
];

/// Words of the memory of a rank that belong to each origin.
const ROOM: usize = 140_000;

/// How the ranks synchronise around their puts.
#[derive(Clone, Copy, Debug)]
enum Epoch {
    Fence,
    Post,
    Lock,
    Flush,
}

fn puts(world: &Communicator, rounds: usize) {
    let (rank, size) = (world.rank(), world.size());
    let layouts: Vec<Plan> = LAYOUTS.iter().map(|text| plan(text)).collect();
    let mut random = Random(5);
    with_window(world, ROOM * size, |window, base| {
        let mut expected = vec![0_u64; ROOM * size];
        window.fence(Assertions::NONE).expect("a fence");
        for round in 0..rounds {
            let epochs = [Epoch::Fence, Epoch::Post, Epoch::Lock, Epoch::Flush];
            let epoch = epochs[round % 4];
            let others = world.group();
            match epoch {
                Epoch::Fence => window.fence(Assertions::NONE).expect("a fence"),
                Epoch::Post => {
                    window.fence(Assertions::NO_SUCCEED).expect("the last fence");
                    window.post(others, Assertions::NONE).expect("posted");
                    window.start(others, Assertions::NONE).expect("started");
                }
                Epoch::Lock | Epoch::Flush => {
                    window.fence(Assertions::NO_SUCCEED).expect("the last fence");
                    window.lock_all_raw(Assertions::NONE).expect("locked");
                }
            }
            // The data lives until the end of the epoch.
            let mut sources: Vec<Vec<u64>> = Vec::new();
            for origin in 0..size {
                let mut free = ROOM * origin;
                for _ in 0..1 + random.below(4) {
                    let target = random.below(size as u64) as usize;
                    let near = random.below(LAYOUTS.len() as u64) as usize;
                    let far = &layouts[random.below(LAYOUTS.len() as u64) as usize];
                    let first = free + if far.footprint().true_lb < 0 { 4300 } else { 0 };
                    let mut at = words_of(far, first);
                    let end = at.iter().max().map_or(0, |last| last + 1);
                    let near = match layouts[near].element_bytes() == far.element_bytes() {
                        true => layouts[near].clone(),
                        false => far.clone(),
                    };
                    let seed = random.next();
                    if end > ROOM * (origin + 1) {
                        continue;
                    }
                    free = end;
                    let from = words_of(&near, 4300);
                    at.truncate(from.len());
                    let value = |word: usize| seed.wrapping_add(word as u64);
                    if rank == target {
                        at.iter()
                            .enumerate()
                            .for_each(|(i, word)| expected[*word] = value(from[i]));
                    }
                    if rank == origin {
                        sources.push((0..ROOM).map(value).collect());
                        let data = sources.last_mut().expect("the data");
                        let origin = part(&mut data[4300..], &near, 1);
                        // SAFETY: the data has all words of the element around word 4300, and lives and does not change
                        // until the epoch ends.
                        let put = unsafe { window.put_raw(&origin, target, first as i64, far, 1) };
                        put.expect("a put");
                    }
                }
            }
            match epoch {
                Epoch::Fence => window.fence(Assertions::NONE).expect("a fence"),
                Epoch::Post => {
                    window.complete().expect("complete");
                    window.wait().expect("waited");
                }
                Epoch::Lock => window.unlock_all_raw().expect("unlocked"),
                Epoch::Flush => {
                    window.flush_local_all().expect("flushed here");
                    sources.iter_mut().for_each(|data| data.fill(u64::MAX));
                    window.flush_all().expect("flushed");
                    window.unlock_all_raw().expect("unlocked");
                }
            }
            window.fence(Assertions::NONE).expect("a fence");
            // SAFETY: no rank writes to the window between these two fences.
            let own = unsafe { std::slice::from_raw_parts(base, ROOM * size) };
            let wrong = own.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "round {round}, {epoch:?}, rank {rank}");
            window.fence(Assertions::NONE).expect("a fence");
        }
        window.fence(Assertions::NO_SUCCEED).expect("the last fence");
    });
}

#[test]
fn two_ranks_put_to_private_memory() {
    ranks(2, "two_ranks_put_to_private_memory", |world| puts(world, 80));
}

#[test]
fn three_ranks_put_to_private_memory() {
    ranks(3, "three_ranks_put_to_private_memory", |world| puts(world, 40));
}

/// The rings of a job of many ranks are small, and long messages take other ways.
#[test]
fn six_ranks_put_without_system_calls() {
    let env = [("TYPEPACK_CMA", "off"), ("TYPEPACK_EAGER_LIMIT", "0")];
    ranks_with(6, "six_ranks_put_without_system_calls", &env, |world| puts(world, 12));
}

/// More long puts than may be under way, and more types than a target keeps.
#[test]
fn many_long_puts_and_types() {
    ranks(2, "many_long_puts_and_types", |world| {
        const PUTS: usize = 200;
        const EACH: usize = 2000;
        with_window(world, PUTS * EACH, |window, base| {
            let far: Vec<Plan> =
                (0..PUTS).map(|i| plan(&format!("vector({}, 1, 2, u64)", 600 + i))).collect();
            let mut data: Vec<u64> = (0..PUTS * EACH).map(|i| i as u64 + 1).collect();
            let byte = plan("u64");
            let other = 1 - world.rank();
            window.lock_raw(LockKind::Shared, other, Assertions::NONE).expect("locked");
            for (i, far) in far.iter().enumerate() {
                let words = 600 + i as u64;
                let whole = part(&mut data[i * EACH..], &byte, words);
                // SAFETY: the data lives and does not change until the unlock below.
                let put = unsafe { window.put_raw(&whole, other, (i * EACH) as i64, far, 1) };
                put.expect("a short put");
                let rest = part(&mut data[i * EACH..], &byte, EACH as u64 - 2 * words);
                let at = (i * EACH) as i64 + 2 * words as i64;
                // SAFETY: the data lives and does not change until the unlock below.
                let put = unsafe { window.put_raw(&rest, other, at, &byte, rest.count) };
                put.expect("a put");
            }
            let (mut long, mut taken) = (vec![7_u64; 40_000], 0);
            for _ in 0..PUTS {
                let whole = part(&mut long[taken..], &byte, 20_000);
                // SAFETY: `long` lives and does not change until the unlock below.
                let put = unsafe { window.put_raw(&whole, other, 360_000, &byte, 20_000) };
                put.expect("a long put");
                taken = (taken + 97) % 20_000;
            }
            window.unlock_raw(other).expect("unlocked");
            world.barrier().expect("a barrier");
            // SAFETY: no rank writes to the window any more.
            let own = unsafe { std::slice::from_raw_parts(base, PUTS * EACH) };
            for i in 0..PUTS {
                let (words, first) = (600 + i, i * EACH);
                for word in 0..EACH {
                    let at = first + word;
                    let value = match word {
                        _ if (360_000..380_000).contains(&at) => 7,
                        _ if word >= 2 * words => (first + word - 2 * words) as u64 + 1,
                        _ if word % 2 == 0 => (first + word / 2) as u64 + 1,
                        _ => 0,
                    };
                    assert_eq!(own[at], value, "{i} {word}");
                }
            }
            world.barrier().expect("a barrier");
        });
    });
}

/// A type whose encoded form is too long to be told, in all operations.
#[test]
fn a_type_with_a_long_form() {
    ranks_with(2, "a_type_with_a_long_form", &[("TYPEPACK_CMA", "off")], |world| {
        const BLOCKS: usize = 400_000;
        let mut random = Random(3);
        let mut at = 0;
        let places: Vec<i64> = (0..BLOCKS)
            .map(|_| {
                at += 1 + random.below(3) as i64;
                at
            })
            .collect();
        let words = at as usize + 1;
        let double = typepack::Datatype::named(typepack::Named::F64);
        let sparse = typepack::Datatype::indexed_block(1, &places, &double).expect("a type");
        let sparse = commit(&sparse).expect("a layout");
        assert!(typepack_engine::wire::encode(&sparse).len() > 1 << 20);
        let byte = plan("double");
        with_window(world, words, |window, base| {
            let other = 1 - world.rank();
            let real = |i: usize| f64::to_bits(i as f64 + 1.0);
            let mut data: Vec<u64> = (0..BLOCKS).map(real).collect();
            let mut old = vec![0; BLOCKS];
            window.lock_raw(LockKind::Exclusive, other, Assertions::NONE).expect("locked");
            let count = BLOCKS as u64;
            let from = part(&mut data, &byte, count);
            let sum = Op::Sum.into();
            // SAFETY: the data and the results live until the unlock below, and nobody else uses them.
            unsafe {
                window.put_raw(&from, other, 0, &sparse, 1).expect("a put");
                window.accumulate_raw(Some(&from), None, other, 0, &sparse, 1, sum).expect("a sum");
                let result = part(&mut old, &byte, count);
                let done =
                    window.accumulate_raw(Some(&from), Some(&result), other, 0, &sparse, 1, sum);
                done.expect("a sum with result");
            }
            window.flush_local(other).expect("complete");
            assert!(
                old.iter()
                    .enumerate()
                    .all(|(i, bits)| *bits == f64::to_bits(2.0 * (i as f64 + 1.0)))
            );
            old.fill(0);
            // SAFETY: `old` is writable, and nobody else accesses it until the get is complete.
            unsafe {
                let result = part(&mut old, &byte, count);
                window.get_raw(&result, other, 0, &sparse, 1).expect("a get");
            }
            window.flush(other).expect("complete");
            assert!(
                old.iter()
                    .enumerate()
                    .all(|(i, bits)| *bits == f64::to_bits(3.0 * (i as f64 + 1.0)))
            );
            window.unlock_raw(other).expect("unlocked");
            world.barrier().expect("a barrier");
            // SAFETY: no rank writes to the window any more.
            let own = unsafe { std::slice::from_raw_parts(base, words) };
            let touched = own.iter().filter(|word| **word != 0).count();
            assert_eq!(touched, BLOCKS);
            world.barrier().expect("a barrier");
        });
    });
}

/// Updates of long data are in order, and each element is updated once, while the target updates its own memory.
#[test]
fn long_updates_of_private_memory() {
    ranks(3, "long_updates_of_private_memory", |world| {
        const LEN: usize = 5000;
        const ROUNDS: u64 = 30;
        let (word, gapped) = (plan("u64"), plan("vector(2500, 1, 2, u64)"));
        with_window(world, LEN, |window, base| {
            let (mut ones, mut old) = (vec![1_u64; LEN], vec![0_u64; LEN]);
            window.lock_all_raw(Assertions::NONE).expect("locked");
            for round in 0..ROUNDS {
                for target in 0..world.size() {
                    let all = part(&mut ones, &word, LEN as u64);
                    let half = part(&mut old, &word, LEN as u64 / 2);
                    let sum = Update::from(Op::Sum);
                    // SAFETY: the operands and the results live until the end of the epoch, and nobody else uses them.
                    unsafe {
                        window
                            .accumulate_raw(Some(&all), None, target, 0, &word, LEN as u64, sum)
                            .expect("a sum");
                        window
                            .accumulate_raw(Some(&all), None, target, 0, &gapped, 1, sum)
                            .expect_err("too many operands");
                        let operands = part(&mut ones, &word, LEN as u64 / 2);
                        let done = window.accumulate_raw(
                            Some(&operands),
                            Some(&half),
                            target,
                            0,
                            &gapped,
                            1,
                            sum,
                        );
                        done.expect("a sum with result");
                    }
                    window.flush_local(target).expect("complete");
                    // This rank has made three updates of each of these elements in each round, and sees its own.
                    assert!(old[..LEN / 2].iter().all(|value| *value > 2 * round));
                }
            }
            window.unlock_all_raw().expect("unlocked");
            world.barrier().expect("a barrier");
            // SAFETY: no rank writes to the window any more.
            let own = unsafe { std::slice::from_raw_parts(base, LEN) };
            let all = 3 * ROUNDS;
            assert!(
                own.iter().enumerate().all(|(i, v)| *v == if i % 2 == 0 { 2 * all } else { all })
            );
            world.barrier().expect("a barrier");
        });
    });
}

/// Several threads of a rank put to private memory, and each completes its own puts.
#[test]
fn threads_put_to_private_memory() {
    ranks(2, "threads_put_to_private_memory", |world| {
        const EACH: usize = 5000;
        const THREADS: usize = 4;
        let layouts = [plan("contiguous(2500, u64)"), plan("vector(2500, 1, 2, u64)")];
        let layouts = &layouts;
        with_window(world, EACH * THREADS, |window, base| {
            let other = 1 - world.rank();
            window.lock_all_raw(Assertions::NONE).expect("locked");
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    scope.spawn(move || {
                        let mut data = vec![0_u64; EACH];
                        let mut back = vec![0_u64; EACH];
                        let at = (thread * EACH) as i64;
                        for round in 0..60_u64 {
                            let (near, far) = (&layouts[round as usize % 2], &layouts[thread % 2]);
                            data.iter_mut()
                                .enumerate()
                                .for_each(|(i, v)| *v = round << 32 | i as u64);
                            back.fill(0);
                            // SAFETY: the data does not change until the flush. The threads use different words.
                            unsafe {
                                let from = part(&mut data, near, 1);
                                window.put_raw(&from, other, at, far, 1).expect("a put");
                                window.flush(other).expect("flushed");
                                let to = part(&mut back, near, 1);
                                window.get_raw(&to, other, at, far, 1).expect("a get");
                            }
                            window.flush_local(other).expect("complete");
                            let words = words_of(near, 0);
                            assert!(words.iter().all(|word| back[*word] == data[*word]));
                        }
                    });
                }
            });
            window.unlock_all_raw().expect("unlocked");
            world.barrier().expect("a barrier");
            // SAFETY: no rank writes to the window any more.
            let own = unsafe { std::slice::from_raw_parts(base, EACH * THREADS) };
            assert!(own.iter().any(|word| *word != 0));
            world.barrier().expect("a barrier");
        });
    });
}

/// Memory that is not attached is refused at the calling rank, and gaps between attached pieces stay as they are.
#[test]
fn long_puts_to_attached_memory() {
    ranks(2, "long_puts_to_attached_memory", |world| {
        const LEN: usize = 30_000;
        let mut memory = vec![0_u64; 3 * LEN];
        let window = Window::dynamic(world, &[]).expect("a window");
        let base = memory.as_mut_ptr();
        let bytes = 8 * LEN as i64;
        // SAFETY: the memory lives until it is detached, and nobody else uses it.
        unsafe {
            window.attach_raw(base.cast(), bytes).expect("attached");
            window.attach_raw(base.wrapping_add(2 * LEN).cast(), bytes).expect("attached");
        }
        let mut places = vec![0_u64; 2];
        places[world.rank()] = base as u64;
        world.all_reduce_in_place(&mut places, Op::Max).expect("addresses");
        let other = 1 - world.rank();
        let there = places[other] as i64;
        let (word, both) = (plan("u64"), plan("vector(2, 30000, 60000, u64)"));
        let mut data: Vec<u64> = (0..2 * LEN as u64).map(|i| i + 1).collect();
        window.fence(Assertions::NONE).expect("a fence");
        // SAFETY: the data lives and does not change until the fence.
        unsafe {
            let from = part(&mut data, &word, 2 * LEN as u64);
            window.put_raw(&from, other, there, &both, 1).expect("a put");
            let error = window.put_raw(&from, other, there, &word, 2 * LEN as u64);
            let kind = error.expect_err("the gap is not attached").kind();
            assert!(
                matches!(kind, ErrorKind::Window(typepack::WindowErrorKind::Range)),
                "{kind:?}"
            );
        }
        window.fence(Assertions::NO_SUCCEED).expect("a fence");
        let value = |i: usize| match i / LEN {
            0 => i as u64 + 1,
            1 => 0,
            _ => (i - LEN) as u64 + 1,
        };
        assert!(memory.iter().enumerate().all(|(i, word)| *word == value(i)));
        window.detach(base.cast()).expect("detached");
        window.detach(base.wrapping_add(2 * LEN).cast()).expect("detached");
        window.free().expect("freed");
    });
}

/// Accumulates of a rank keep their order at an element, if one needs a request because its datatype names private
/// memory too, and the next one does not.
#[test]
fn accumulates_keep_their_order_in_dynamic_windows() {
    ranks(2, "accumulates_keep_their_order_in_dynamic_windows", |world| {
        let mut private = vec![0_u64; 1];
        let mut shared = SharedBuffer::<u64>::zeroed(1).expect("memory");
        let window = Window::dynamic(world, &[]).expect("a window");
        let bases = [private.as_mut_ptr(), shared.as_mut_ptr()];
        // SAFETY: the memory lives until the window is freed, and nobody else uses it meanwhile.
        bases
            .iter()
            .for_each(|base| unsafe { window.attach_raw(base.cast(), 8) }.expect("attached"));
        let mut places = [0_u64; 2];
        if world.rank() == 1 {
            places = bases.map(|base| base as u64);
        }
        world.all_reduce_in_place(&mut places, Op::Max).expect("addresses");
        let apart = (places[1].wrapping_sub(places[0])) as i64;
        let (word, both) = (plan("u64"), plan(&format!("hindexed([1, 1], [0, {apart}], u64)")));
        for (round, kind) in
            (1..=20_u64).zip([LockKind::Shared, LockKind::Exclusive].iter().cycle())
        {
            world.barrier().expect("a barrier");
            if world.rank() == 0 {
                let mut data = [10 * round, 10 * round, 1, 0];
                let (first, second) = data.split_at_mut(2);
                window.lock_raw(*kind, 1, Assertions::NONE).expect("locked");
                // SAFETY: the data lives and does not change until the unlock.
                unsafe {
                    let from = part(first, &word, 2);
                    let at = places[0] as i64;
                    let replace = Update::Replace;
                    let done = window.accumulate_raw(Some(&from), None, 1, at, &both, 1, replace);
                    done.expect("an update of both words");
                    let (from, at) = (part(second, &word, 1), places[1] as i64);
                    let add = Update::Combine(Op::Sum);
                    let done = window.accumulate_raw(Some(&from), None, 1, at, &word, 1, add);
                    done.expect("an update of the shared word");
                }
                window.unlock_raw(1).expect("unlocked");
            } else {
                // The target does not carry out the request at once.
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            world.barrier().expect("a barrier");
            if world.rank() == 1 {
                // SAFETY: no rank writes to the window before the next barrier.
                let found = unsafe { bases.map(|base| base.read()) };
                assert_eq!(found, [10 * round, 10 * round + 1]);
            }
        }
        world.barrier().expect("a barrier");
        bases.iter().for_each(|base| window.detach(base.cast()).expect("detached"));
        window.free().expect("freed");
    });
}

/// A thread gets and updates while another one has long puts under way, so that the target answers in another order
/// than this rank asks. A late answer must not take the place of another one.
#[test]
fn short_answers_beside_long_puts_of_another_thread() {
    ranks(2, "short_answers_beside_long_puts_of_another_thread", |world| {
        const LONG: usize = 1 << 14;
        const ROUNDS: u64 = 20_000;
        let (word, long) = (plan("u64"), plan("contiguous(16384, u64)"));
        with_window(world, LONG + 2, |window, base| {
            let done = AtomicBool::new(false);
            // SAFETY: the other rank accesses the word only after the barrier.
            unsafe { base.add(1).write(7) };
            world.barrier().expect("a barrier");
            window.lock_all_raw(Assertions::NONE).expect("locked");
            if world.rank() == 0 {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let mut data = vec![3_u64; LONG];
                        while !done.load(Ordering::Relaxed) {
                            let from = part(&mut data, &long, 1);
                            // SAFETY: the data lives and does not change until the flush.
                            unsafe { window.put_raw(&from, 1, 2, &long, 1) }.expect("a put");
                            window.flush(1).expect("flushed");
                        }
                    });
                    for round in 0..ROUNDS {
                        let mut words = [0_u64, 1, u64::MAX];
                        let [got, one, old] = words.each_mut().map(std::slice::from_mut);
                        // SAFETY: the words live, and nobody else uses them until the flush.
                        unsafe {
                            let to = part(got, &word, 1);
                            window.get_raw(&to, 1, 1, &word, 1).expect("a get");
                            let (from, to) = (part(one, &word, 1), part(old, &word, 1));
                            let add = Update::Combine(Op::Sum);
                            let (from, to) = (Some(&from), Some(&to));
                            window
                                .accumulate_raw(from, to, 1, 0, &word, 1, add)
                                .expect("an update");
                        }
                        window.flush(1).expect("flushed");
                        assert_eq!(words, [7, 1, round]);
                    }
                    done.store(true, Ordering::Relaxed);
                });
            }
            window.unlock_all_raw().expect("unlocked");
            world.barrier().expect("a barrier");
        });
    });
}

/// A flush ends although another thread goes on to start operations at the same target.
#[test]
fn a_flush_waits_only_for_what_was_before() {
    ranks(2, "a_flush_waits_only_for_what_was_before", |world| {
        const LONG: usize = 1 << 12;
        let (word, long) = (plan("u64"), plan("contiguous(4096, u64)"));
        with_window(world, 2 * LONG, |window, _| {
            window.lock_all_raw(Assertions::NONE).expect("locked");
            if world.rank() == 0 {
                for way in 0..4 {
                    let done = AtomicBool::new(false);
                    std::thread::scope(|scope| {
                        scope.spawn(|| {
                            let mut data = vec![3_u64; LONG];
                            let mut old = vec![0_u64; LONG];
                            while !done.load(Ordering::Relaxed) {
                                let plan = if way % 2 == 0 { &word } else { &long };
                                // SAFETY: the data lives until the flush below, and nobody reads what a get brings.
                                unsafe {
                                    let from = part(&mut data, plan, 1);
                                    match way {
                                        0 | 1 => window.put_raw(&from, 1, 0, plan, 1),
                                        _ => {
                                            window.get_raw(&part(&mut old, plan, 1), 1, 0, plan, 1)
                                        }
                                    }
                                    .expect("an operation");
                                }
                            }
                            window.flush(1).expect("flushed");
                        });
                        for round in 0..5_u64 {
                            let mut data = vec![round; LONG];
                            let at = LONG as i64;
                            // SAFETY: the data lives and does not change until the flush, and nobody else writes there.
                            unsafe {
                                let from = part(&mut data, &long, 1);
                                window.put_raw(&from, 1, at, &long, 1).expect("a put");
                            }
                            window.flush(1).expect("flushed");
                            data.fill(u64::MAX);
                            // SAFETY: the data lives, and nobody else uses it until the flush.
                            unsafe {
                                let to = part(&mut data, &long, 1);
                                window.get_raw(&to, 1, at, &long, 1).expect("a get");
                            }
                            window.flush_local(1).expect("flushed");
                            assert!(data.iter().all(|word| *word == round));
                        }
                        done.store(true, Ordering::Relaxed);
                    });
                }
            }
            window.unlock_all_raw().expect("unlocked");
            world.barrier().expect("a barrier");
        });
    });
}
