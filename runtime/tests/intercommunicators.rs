//! Tests of intercommunicators: making, merging and splitting them, messages, and collective calls between groups.

use crate::job::ranks;
use typepack::engine::Elements;
use typepack::{
    Collective, Combine, Communicator, Comparison, Datatype, ErrorKind, Messages, Named, Op,
    Operation, Plan, Root, SharedRegion, Source, Tag, commit,
};

fn word() -> Plan {
    commit(&Datatype::named(Named::I64)).unwrap()
}

fn members(group: &typepack::Group) -> Vec<usize> {
    (0..group.size()).map(|rank| group.world_rank(rank).unwrap()).collect()
}

/// Divides the world into two groups: the ranks below `first`, and the other ranks in reversed order (the high group).
/// Returns the local communicator and the intercommunicator.
fn divided(world: &Communicator, first: usize) -> (Communicator, Communicator) {
    let high = world.rank() >= first;
    let key = if high { -(world.rank() as i32) } else { 0 };
    let local = world.split(Some(high.into()), key).unwrap().unwrap();
    // The leaders are the ranks 0 and size - 1 of the world.
    let (leader, remote) = if high { (0, 0) } else { (0, world.size() - 1) };
    let other = (local.rank() == leader).then_some((world, remote));
    let inter = local.intercommunicator(leader, other, 4).unwrap();
    (local, inter)
}

fn groups(world: &Communicator) {
    for first in 1..world.size() {
        let (local, inter) = divided(world, first);
        let low: Vec<usize> = (0..first).collect();
        let high: Vec<usize> = (first..world.size()).rev().collect();
        let is_high = world.rank() >= first;
        let (ours, theirs) = if is_high { (&high, &low) } else { (&low, &high) };
        assert_eq!(&members(inter.group()), ours);
        assert_eq!(&members(inter.remote_group().unwrap()), theirs);
        assert_eq!((inter.rank(), inter.size()), (local.rank(), local.size()));
        assert!(inter.is_inter() && !local.is_inter() && local.remote_group().is_none());
        assert_eq!(inter.peers().size(), theirs.len());
        assert_eq!(inter.compare(&inter.clone()), Comparison::Identical);
        assert_eq!(inter.compare(&local), Comparison::Unequal);
        let dup = inter.dup().unwrap();
        assert_eq!(inter.compare(&dup), Comparison::Congruent);
        let started = inter.idup().unwrap();
        inter.barrier().unwrap();
        assert_eq!(started.wait().unwrap().compare(&dup), Comparison::Congruent);
        // The group that passes false comes first. If both groups pass the same value, either group may come first.
        for high_first in [false, true] {
            let merged = inter.merge(is_high != high_first).unwrap();
            let lists = if high_first { [&high, &low] } else { [&low, &high] };
            assert_eq!(members(merged.group()), lists.map(Vec::as_slice).concat());
            let mut sum = [1i64];
            merged.all_reduce_in_place(&mut sum, Op::Sum).unwrap();
            assert_eq!(sum, [world.size() as i64]);
        }
        assert_eq!(inter.merge(true).unwrap().size(), world.size());
        // Join the ranks that have the same number in the two groups. A rank without a partner gets no communicator.
        let part = inter.split(Some(inter.rank() as u32), 0).unwrap();
        assert_eq!(part.is_some(), inter.rank() < theirs.len());
        if let Some(part) = part {
            assert_eq!((part.size(), members(part.peers())), (1, vec![theirs[inter.rank()]]));
            part.barrier().unwrap();
        }
        // Make an intercommunicator of the same two groups in reversed order.
        let order: Vec<i64> = (0..ours.len() as i64).rev().collect();
        let reversed = inter.create(&inter.group().include(order).unwrap()).unwrap().unwrap();
        assert_eq!(reversed.rank(), ours.len() - 1 - inter.rank());
        let wanted = if world.size() == 2 { Comparison::Congruent } else { Comparison::Similar };
        assert_eq!(reversed.compare(&inter), wanted);
        reversed.barrier().unwrap();
        messages(&reversed);
        for error in [
            inter.create_group(inter.group(), 0).map(drop).unwrap_err(),
            inter.cartesian(&[inter.size()], &[false]).map(drop).unwrap_err(),
            SharedRegion::allocate(&inter, 8).map(drop).unwrap_err(),
            inter.intercommunicator(0, None, 0).map(drop).unwrap_err(),
            local.merge(false).map(drop).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Comm, "{error}");
        }
        // The leader names no remote leader. All ranks of its group must get an error.
        let error = local.intercommunicator(0, None, 0).unwrap_err();
        let wanted = if local.rank() == 0 { ErrorKind::Argument } else { ErrorKind::Other };
        assert_eq!(error.kind(), wanted);
    }
}

/// Sends a message to every rank of the other group, with safe calls.
fn messages(inter: &Communicator) {
    let (word, peers) = (word(), inter.peers().size());
    let mine = [100 * inter.rank() as i64 + inter.size() as i64];
    inter
        .scope(|scope| {
            for rank in 0..peers {
                scope.isend_elements(&mine, &word, 1, rank, 9).unwrap();
            }
        })
        .unwrap();
    let mut seen = vec![false; peers];
    for _ in 0..peers {
        let mut got = [0i64];
        let status = inter.recv_elements(&mut got, &word, 1, Source::Any, Tag::Any).unwrap();
        assert_eq!(got, [100 * status.source as i64 + peers as i64]);
        assert!(!std::mem::replace(&mut seen[status.source], true));
    }
    inter.barrier().unwrap();
    assert_eq!(inter.send_elements(&mine, &word, 1, peers, 0).unwrap_err().kind(), ErrorKind::Rank);
}

/// Returns the operation that composes maps `x -> a x + b`. An element is the two words a and b. The operation is not
/// commutative.
fn composition() -> Combine {
    Combine::user(|lower, upper, _, elements| {
        for i in 0..elements as usize {
            // SAFETY: the runtime passes `elements` elements of two words each at both addresses.
            unsafe {
                let (lower, upper) =
                    (lower.cast::<[i64; 2]>().add(i), upper.cast::<[i64; 2]>().add(i));
                let ([a, b], [c, d]) = (lower.read_unaligned(), upper.read_unaligned());
                upper.write_unaligned([a * c, a * d + b]);
            }
        }
    })
}

fn composed(ranks: impl Iterator<Item = usize>) -> [i64; 2] {
    ranks.map(map_of).fold([1, 0], |[a, b], [c, d]| [a * c, a * d + b])
}

/// Returns the map that a rank of the world contributes to a reduction.
fn map_of(rank: usize) -> [i64; 2] {
    [2 + rank as i64 % 2, 1 + rank as i64]
}

/// Makes a collective call and waits for its end. `way` 0 is a blocking call, 1 is a nonblocking call, and 2 is a
/// persistent call that is started twice.
fn call(comm: &Communicator, messages: &Messages, way: usize, call: &Collective<'_>) {
    // SAFETY: each caller passes parts of local variables, which outlive the call, because every way below waits
    // for the end of the operation.
    unsafe {
        match way {
            0 => comm.run_raw(call).unwrap(),
            1 => {
                let _status = messages.finish(comm.start_raw(call).unwrap()).unwrap();
            }
            _ => {
                let prepared = comm.prepare_raw(call).unwrap();
                for _ in 0..2 {
                    let started: Operation = prepared.start().unwrap();
                    messages.finish(started).unwrap();
                }
            }
        }
    }
}

fn reductions(world: &Communicator) {
    let pair = commit(&Datatype::contiguous(2, &Datatype::named(Named::I64)).unwrap()).unwrap();
    let combine = composition();
    for first in 1..world.size() {
        let (_local, inter) = divided(world, first);
        let remote = || members(inter.peers()).into_iter();
        let messages = inter.messages();
        let mine = map_of(world.rank());
        for way in 0..3 {
            let mut result = [0i64; 2];
            let (send, recv) = (mine.as_ptr().cast::<u8>(), result.as_mut_ptr().cast::<u8>());
            let (send, plan, count) = (Some(send), &pair, 1);
            let all = Collective::Allreduce { send, recv, plan, count, combine: &combine };
            call(&inter, &messages, way, &all);
            assert_eq!(result, composed(remote()), "way {way}");
            // The root is the last rank of the high group.
            result = [0; 2];
            let high = world.rank() >= first;
            let last = world.size() - first - 1;
            let root = match (high, inter.rank() == last) {
                (true, true) => Root::Here,
                (true, false) => Root::InMyGroup,
                (false, _) => Root::Rank(last),
            };
            let recv = result.as_mut_ptr().cast::<u8>();
            let one = Collective::Reduce { send, recv, plan, count, combine: &combine, root };
            call(&inter, &messages, way, &one);
            let wanted = if root == Root::Here { composed(remote()) } else { [0; 2] };
            assert_eq!(result, wanted, "way {way}");
            let mut word = [if root == Root::Here { 5u64 } else { 0 }];
            inter.broadcast(&mut word, root).unwrap();
            assert_eq!(word[0], if root == Root::InMyGroup { 0 } else { 5 });
        }
        // If all ranks pass wrong arguments, all must get the error, and the next call must still match.
        let mut values = [1i64];
        let error = inter.all_reduce_in_place(&mut values, Op::Sum).unwrap_err();
        assert_eq!((error.kind(), error.argument()), (ErrorKind::Buffer, "mine"));
        let error = inter.broadcast(&mut values, inter.peers().size()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Root);
        assert_eq!(world.broadcast(&mut values, Root::Here).unwrap_err().kind(), ErrorKind::Root);
        let part = Elements { origin: values.as_mut_ptr().cast(), plan: &pair, count: 0 };
        // SAFETY: the part has no elements.
        let error = unsafe { inter.allgather_raw(Some(part), &[]) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        inter.barrier().unwrap();
    }
}

/// Checks that a rank leaves a barrier between two groups only after all ranks of the other group have entered the
/// barrier.
fn barriers(world: &Communicator) {
    let (_local, inter) = divided(world, world.size() / 2);
    let region = SharedRegion::allocate(world, 8).unwrap();
    let entered = |rank| region.atomic(rank, 0).unwrap();
    for round in 1..200u64 {
        if round % world.size() as u64 == world.rank() as u64 {
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
        entered(world.rank()).store(round, std::sync::atomic::Ordering::Release);
        inter.barrier().unwrap();
        for rank in members(inter.peers()) {
            assert!(entered(rank).load(std::sync::atomic::Ordering::Acquire) >= round);
        }
    }
    region.free().unwrap();
}

/// Tests threads that make intercommunicators at the same time. Each thread uses its own tag.
fn threads(world: &Communicator) {
    let (local, _inter) = divided(world, 1);
    let locals: Vec<Communicator> = (0..3).map(|_| local.dup().unwrap()).collect();
    std::thread::scope(|threads| {
        for (tag, local) in locals.iter().enumerate() {
            threads.spawn(move || {
                for _ in 0..20 {
                    let remote = if world.rank() == 0 { world.size() - 1 } else { 0 };
                    let other = (local.rank() == 0).then_some((world, remote));
                    let inter = local.intercommunicator(0, other, tag as i32).unwrap();
                    messages(&inter);
                    assert_eq!(inter.merge(true).unwrap().size(), world.size());
                }
            });
        }
    });
}

macro_rules! jobs {
    ($($name:ident: $ranks:expr, $body:expr;)*) => {
        $(
            #[test]
            fn $name() {
                ranks($ranks, stringify!($name), $body);
            }
        )*
    };
}

jobs! {
    groups_of_two: 2, groups;
    groups_of_three: 3, groups;
    groups_of_five: 5, groups;
    reductions_of_two: 2, reductions;
    reductions_of_six: 6, reductions;
    barriers_of_five: 5, barriers;
    threads_of_four: 4, threads;
}
