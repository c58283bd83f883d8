//! Tests of Rust structs with a datatype: `#[derive(Equivalence)]`, messages and collective calls of their values.

use crate::job::ranks;
use std::mem::{MaybeUninit, offset_of};
use typepack::engine::typemap::typemap;
use typepack::{Datatype, Equivalence, ErrorKind, Named, Source};

#[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
struct Particle {
    kind: u8,
    position: [f64; 3],
    charge: i16,
    tags: [Tag; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
#[repr(C)]
struct Tag(u8, u32);

#[derive(Clone, Copy, Equivalence)]
#[repr(C, packed)]
struct Packed {
    a: u8,
    b: u64,
}

fn particle(n: usize) -> Particle {
    let tag = |k: usize| Tag((n + k) as u8, (n * 7 + k) as u32);
    Particle {
        kind: n as u8,
        position: [n as f64, 0.5, -1.0],
        charge: (n as i16).wrapping_neg(),
        tags: [tag(0), tag(1)],
    }
}

/// Returns the bytes of values. The bytes between the fields may be uninitialised.
fn bytes<T: Copy>(values: &mut [T]) -> &mut [MaybeUninit<u8>] {
    let len = size_of_val(values);
    // SAFETY: the result covers the bytes of the slice and borrows the slice mutably. The tests write only bytes that
    // are valid for the fields.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), len) }
}

#[test]
fn datatypes_have_the_offsets_of_the_compiler() {
    let ty = Tag::datatype().expect("a type");
    let fields = [Datatype::named(Named::U8), Datatype::named(Named::U32)];
    let wanted = Datatype::structured(&[1, 1], &[0, 4], &fields).expect("a type");
    let wanted = Datatype::resized(0, 8, &wanted).expect("a type");
    assert_eq!(typemap(&ty), typemap(&wanted));
    assert_eq!((ty.size(), ty.lb(), ty.extent()), (5, 0, 8));
    let ty = Particle::datatype().expect("a type");
    assert_eq!((ty.size(), ty.lb(), ty.extent()), (37, 0, size_of::<Particle>() as i64));
    assert!(offset_of!(Particle, position).is_multiple_of(8));
    let ty = Packed::datatype().expect("a type");
    assert_eq!((ty.size(), ty.extent(), ty.true_extent()), (9, 9, 9));
    let ty = <[Tag; 3]>::datatype().expect("a type");
    assert_eq!((ty.size(), ty.extent()), (15, 24));
    // The plan of an array type is made once.
    let plan = || <[Tag; 3]>::plan().expect("a plan");
    assert!(std::ptr::eq(plan(), plan()));
    assert!(!std::ptr::eq(plan(), <[Tag; 4]>::plan().expect("a plan")));
}

#[test]
fn values_travel_and_gaps_stay() {
    ranks(3, "values_travel_and_gaps_stay", |world| {
        let (rank, size) = (world.rank(), world.size());
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        // Short messages, and one that is longer than the eager limit.
        for count in [0, 1, 5, 20_000] {
            let sent: Vec<Particle> = (0..count).map(|n| particle(n + rank)).collect();
            let mut got = vec![particle(77); count + 2];
            bytes(&mut got).fill(MaybeUninit::new(0xa5));
            if rank == 0 {
                world.send(&sent, next, 4).expect("sent");
            }
            let (status, arrived) = world.recv(&mut got, previous, 4).expect("received");
            if rank != 0 {
                world.send(&sent, next, 4).expect("sent");
            }
            assert_eq!(
                (status.source, status.bytes, arrived),
                (previous, 37 * count as u64, count)
            );
            for (n, got) in got[..count].iter().enumerate() {
                assert_eq!(*got, particle(n + previous));
            }
            // No byte outside the fields has changed.
            let plan = Particle::plan().expect("a plan");
            let mut covered = vec![false; size_of::<Particle>()];
            for entry in typemap(&Particle::datatype().expect("a type")) {
                covered[entry.offset as usize..][..entry.named.size() as usize].fill(true);
            }
            assert_eq!(
                covered.iter().filter(|covered| **covered).count() as u64,
                plan.element_bytes()
            );
            for (at, byte) in bytes(&mut got).iter().enumerate() {
                if at >= count * size_of::<Particle>() || !covered[at % size_of::<Particle>()] {
                    // SAFETY: the test has written all bytes, and a receive writes only initialised ones.
                    assert_eq!(unsafe { byte.assume_init() }, 0xa5, "byte {at}");
                }
            }
        }
    });
}

#[test]
fn values_in_collective_calls() {
    ranks(5, "values_in_collective_calls", |world| {
        let (rank, size) = (world.rank(), world.size());
        let mine: Vec<Particle> = (0..4).map(|n| particle(10 * rank + n)).collect();
        for root in [0, size - 1] {
            let mut values = mine.clone();
            world.broadcast(&mut values, root).expect("a broadcast");
            assert_eq!(values[3], particle(10 * root + 3));
            let mut all = vec![Particle::default(); if rank == root { 4 * size } else { 0 }];
            world.gather(&mine, &mut all, root).expect("a gather");
            for (n, value) in all.iter().enumerate() {
                assert_eq!(*value, particle(10 * (n / 4) + n % 4));
            }
        }
        let mut all = vec![Particle::default(); 4 * size];
        world.all_gather(&mine, &mut all).expect("an allgather");
        assert_eq!(all[4 * size - 1], particle(10 * (size - 1) + 3));
        // The composition of functions x -> a x + b does not commute: (kind, charge) is such a function here.
        let mut values = [Tag(3, rank as u32), Tag(1, 1)];
        world
            .all_reduce_values(&mut values, |low: Tag, high| {
                Tag(
                    low.0.wrapping_mul(high.0),
                    low.1.wrapping_mul(high.0.into()).wrapping_add(high.1),
                )
            })
            .expect("a reduction");
        let wanted =
            (1..size as u32).fold(0u32, |sum, rank| sum.wrapping_mul(3).wrapping_add(rank));
        assert_eq!(values, [Tag(3u8.wrapping_pow(size as u32), wanted), Tag(1, size as u32)]);

        // Wrong lengths are errors, and the next call works.
        let mut short = vec![Particle::default(); 3];
        let error = world.all_gather(&mine, &mut short).expect_err("too short");
        assert_eq!((error.kind(), error.argument()), (ErrorKind::Buffer, "recv"));
        world.barrier().expect("a barrier");
    });
}

#[test]
fn messages_of_any_length() {
    ranks(3, "messages_of_any_length", |world| {
        let (rank, size) = (world.rank(), world.size());
        for count in [0, 1, 7, 30_000] {
            let mine: Vec<Particle> = (0..count * rank).map(|n| particle(n + rank)).collect();
            let mut from = Vec::new();
            world
                .scope(|scope| -> typepack::Result<()> {
                    for to in 0..size {
                        scope.isend(&mine, to, 9)?;
                    }
                    for _ in 0..size {
                        let (status, got) = world.recv_vec::<Particle>(Source::Any, 9)?;
                        assert_eq!(got.len(), count * status.source);
                        assert!(
                            got.iter().enumerate().all(|(n, p)| *p == particle(n + status.source))
                        );
                        from.push(status.source);
                    }
                    Ok(())
                })
                .expect("sent")
                .expect("received");
            from.sort_unstable();
            assert_eq!(from, [0, 1, 2]);
            world.barrier().expect("a barrier");
        }
        // A message that ends within a value, and wrong arguments.
        world.send(&[1u8, 2, 3], (rank + 1) % size, 1).expect("sent");
        let error = world.recv_vec::<u16>(Source::Any, 1).expect_err("three bytes");
        assert_eq!((error.kind(), error.argument()), (ErrorKind::Count, "values"));
        let error = world.recv_vec::<u16>(size, 1).expect_err("no such rank");
        assert_eq!((error.kind(), error.argument()), (ErrorKind::Rank, "source"));
        let error = world.recv_vec::<u16>(0, -1).expect_err("no such tag");
        assert_eq!((error.kind(), error.argument()), (ErrorKind::Tag, "tag"));
    });
}

#[test]
fn messages_that_end_within_a_value() {
    ranks(2, "messages_that_end_within_a_value", |world| {
        if world.rank() == 0 {
            world.send(&[1u8, 2, 3], 1, 0).expect("sent");
            world.send(&[Tag(1, 2)], 1, 1).expect("sent");
            world.send(&[Tag(1, 2); 2], 1, 2).expect("sent");
            return;
        }
        let mut values = [Tag(0, 0)];
        let error = world.recv(&mut values, 0, 0).expect_err("three bytes");
        assert_eq!(error.kind(), ErrorKind::Count);
        assert_eq!(world.recv(&mut values, 0, 1).expect("one value").1, 1);
        let error = world.recv(&mut values, 0, 2).expect_err("two values");
        assert_eq!(error.kind(), ErrorKind::Truncated);
    });
}
