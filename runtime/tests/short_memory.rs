//! Calls of the Rust API on a rank that has no memory left, and that has used up the library's reserve
//! (`ReserveAllocator`): the rank gets an error, the other ranks do not wait for it, and the next calls match.

use crate::job::{ranks, ranks_with};
use std::hint::black_box;
use std::sync::atomic::Ordering;
use typepack::engine::{Datatype, Elements, Named, reserve};
use typepack::io::{File, Mode};
use typepack::rma::WindowOf;
use typepack::{Collective, Communicator, ErrorKind, Op, Result, SharedRegion};

/// The rank that has no memory.
const POOR: usize = 1;

/// All memory that this process could still get, and most of the reserve. When the value is dropped, the memory is
/// there again.
struct Eaten {
    blocks: Vec<Vec<u8>>,
    reserve: Vec<Box<[u8; 4096]>>,
}

fn limit(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is initialised, and the call only changes a limit of this process.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

impl Eaten {
    /// Leaves this process without memory. If `also_reserve`, calls are refused from now on.
    fn all(also_reserve: bool) -> Self {
        let mut eaten =
            Self { blocks: Vec::with_capacity(1 << 20), reserve: Vec::with_capacity(1 << 12) };
        // A process may keep what it has mapped, whatever the limit.
        limit(0);
        let small = (1..=65).rev().map(|lines| 16 * lines);
        for bytes in [1 << 20, 1 << 16, 1 << 13, 2048].into_iter().chain(small) {
            while eaten.blocks.len() < eaten.blocks.capacity() {
                let mut block = Vec::new();
                if reserve::fallible(|| block.try_reserve_exact(bytes)).is_err() {
                    break;
                }
                eaten.blocks.push(block);
            }
        }
        assert!(eaten.blocks.len() < eaten.blocks.capacity());
        // The first block comes from the reserve, and from then on memory is short.
        while also_reserve && (!reserve::is_short() || !reserve::refuses()) {
            assert!(eaten.reserve.len() < eaten.reserve.capacity());
            eaten.reserve.push(black_box(Box::new([1; 4096])));
        }
        eaten
    }
}

impl Drop for Eaten {
    fn drop(&mut self) {
        limit(libc::RLIM_INFINITY);
    }
}

/// Makes a call on all ranks, on one of them without memory. That rank must get an error. Returns whether this rank got
/// one. The ranks then make another call together.
#[track_caller]
fn refused<T>(world: &Communicator, also_reserve: bool, call: impl FnOnce() -> Result<T>) -> bool {
    let eaten = (world.rank() == POOR).then(|| Eaten::all(also_reserve));
    let result = call();
    drop(eaten);
    let result = result.map(drop);
    if world.rank() == POOR {
        let error = result.as_ref().expect_err("no memory");
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
    }
    let mut sum = [1u64];
    world.all_reduce_in_place(&mut sum, Op::Sum).expect("the next call");
    assert_eq!(sum, [world.size() as u64]);
    result.is_err()
}

/// Makes collective calls in scopes. The ranks that depend on the data of the rank without memory get errors.
fn scopes(world: &Communicator) {
    scopes_reach(world, true);
}

/// Does the same as [`scopes`], but the other ranks may get no error: with `TYPEPACK_CHECK_TYPES=1`, the refused call may
/// complete there. They do not wait for ever, and the next call works.
fn checked_scopes(world: &Communicator) {
    scopes_reach(world, false);
}

fn scopes_reach(world: &Communicator, others_fail: bool) {
    let (ones, mut all) = ([1u64; 4], [0; 4]);
    // The tables of requests and messages have their first entries from now on.
    world.barrier().unwrap();
    let failed = refused(world, true, || world.scope(|scope| scope.ibarrier().map(drop))?);
    assert!(failed || !others_fail);
    let mut values = [7u64; 4];
    let failed = refused(world, true, || {
        world.scope(|scope| scope.ibroadcast(&mut values, POOR).map(drop))?
    });
    assert!(failed || !others_fail);
    let failed = refused(world, true, || {
        world.scope(|scope| scope.iall_reduce(&ones, &mut all, Op::Sum).map(drop))?
    });
    assert!(failed || !others_fail);
    // A rank that waits for nothing of the other has no error.
    let failed =
        refused(world, true, || world.scope(|scope| scope.ibroadcast(&mut values, 0).map(drop))?);
    assert!(failed == (world.rank() == POOR) || !others_fail);
}

#[test]
fn a_refused_collective_of_a_scope_reaches_the_others() {
    ranks(2, "a_refused_collective_of_a_scope_reaches_the_others", scopes);
}

#[test]
fn a_refused_collective_with_checked_types_leaves_nobody_waiting() {
    let env = [("TYPEPACK_CHECK_TYPES", "1")];
    let name = "a_refused_collective_with_checked_types_leaves_nobody_waiting";
    ranks_with(2, name, &env, checked_scopes);
}

/// The memory that a reduction needs besides the buffers of the program is refused, although the reserve is there.
#[test]
fn refused_scratch_memory_reaches_the_others() {
    const LEN: usize = 1 << 19;
    let env = [("TYPEPACK_COLL", "all:messages")];
    ranks_with(2, "refused_scratch_memory_reaches_the_others", &env, |world| {
        let (ones, mut all) = (vec![1u64; LEN], vec![0; LEN]);
        for counts in [1, LEN] {
            let (ones, all) = (&ones[..counts], &mut all[..counts]);
            world.all_reduce(ones, all, Op::Sum).unwrap();
        }
        let compose = typepack::Op::Sum;
        let (ones, all) = (&ones[..], &mut all[..]);
        assert!(refused(world, false, || world.scan(ones, all, compose)) || world.rank() != POOR);
        assert!(refused(world, false, || world.all_reduce_in_place(all, Op::Max)));
        assert!(refused(world, false, || {
            world.scope(|scope| scope.iall_reduce_in_place(all, Op::Max).map(drop))?
        }));
    });
}

/// Calls that make an object: either all ranks have it, or the rank without memory has told the others that it has not.
#[test]
fn refused_objects_reach_the_others() {
    ranks(2, "refused_objects_reach_the_others", |world| {
        let path = std::env::temp_dir().join(format!("typepack-short-{}", std::process::id()));
        let mut path = path.to_str().expect("text").as_bytes().to_vec();
        path.resize(200, b' ');
        world.broadcast(&mut path, 0).unwrap();
        let path = String::from_utf8(path).expect("text");
        refused(world, true, || world.dup());
        refused(world, true, || world.split(Some(1), 0));
        refused(world, true, || world.idup()?.wait());
        assert!(refused(world, true, || SharedRegion::allocate(world, 4096)));
        assert!(refused(world, true, || WindowOf::<u64>::allocate(world, 16)));
        assert!(refused(world, true, || {
            File::open(world, path.trim_end(), Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)
        }));
        // With memory, all of them work.
        world.dup().unwrap();
        SharedRegion::allocate(world, 4096).unwrap().free().unwrap();
        WindowOf::<u64>::allocate(world, 16).unwrap().free().unwrap();
    });
}

/// Number of messages that rank 0 sends early.
const EARLY: usize = 100;

/// Makes a blocking call on all ranks, on one of them without memory for the messages that come to it at the beginning
/// of the call. That rank must get an error, and the other must not wait for it.
#[track_caller]
fn flooded(world: &Communicator, call: impl FnOnce() -> Result<()>) {
    let sign = SharedRegion::allocate(world, 8).unwrap();
    let sent = sign.atomic(0, 0).expect("a word");
    let (mut late, mut early) = ([0u64], vec![[0u8; 500]; EARLY]);
    let result = if world.rank() == POOR {
        world
            .scope(|scope| {
                // With an operation under way, every call takes the messages that have come.
                let request = scope.irecv(&mut late, 0, 1)?;
                let mut call = Some(call);
                while sent.load(Ordering::Acquire) == 0 {
                    std::thread::yield_now();
                }
                let eaten = Eaten::all(true);
                let result = call.take().expect("one call")();
                drop(eaten);
                for early in &mut early {
                    world.recv(&mut early[..], 0, 2)?;
                }
                // Rank 0 goes on when its call has ended.
                scope.wait(request)?;
                Ok(result)
            })
            .and_then(|result| result)
            .expect("with memory, the messages arrive")
    } else {
        let message = [9u8; 500];
        for _ in 0..EARLY {
            world.send(&message, POOR, 2).unwrap();
        }
        sent.store(1, Ordering::Release);
        let result = call();
        world.send(&[9u64], POOR, 1).unwrap();
        result
    };
    if world.rank() == POOR {
        let error = result.expect_err("no memory for the messages");
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
        assert!(late == [9] && early.iter().flatten().all(|byte| *byte == 9));
    } else {
        result.expect_err("the other rank has no memory");
    }
    let mut sum = [1u64];
    world.all_reduce_in_place(&mut sum, Op::Sum).expect("the next call");
    assert_eq!(sum, [world.size() as u64]);
}

/// Makes blocking calls on a communicator, then one call like [`flooded`], then calls that must still match.
fn flooded_after(
    world: &Communicator,
    calls: usize,
    call: impl FnOnce(&Communicator) -> Result<()>,
) {
    let fresh = world.dup().unwrap();
    for _ in 0..calls {
        fresh.barrier().unwrap();
    }
    flooded(world, || call(&fresh));
    for _ in 0..10 {
        let mut sum = [1u64];
        fresh.all_reduce_in_place(&mut sum, Op::Sum).unwrap();
        assert_eq!(sum, [2]);
    }
}

/// A rank without memory for the messages that it takes at the beginning of a blocking call takes part all the same.
/// The first blocking calls on a communicator go by messages, the later ones through cells.
#[test]
fn messages_without_memory_leave_no_first_call_waiting() {
    ranks(2, "messages_without_memory_leave_no_first_call_waiting", |world| {
        flooded_after(world, 0, Communicator::barrier);
    });
}

#[test]
fn messages_without_memory_leave_no_call_through_cells_waiting() {
    ranks(2, "messages_without_memory_leave_no_call_through_cells_waiting", |world| {
        // The plan of the type is made before.
        world.all_reduce_in_place(&mut [7u64; 4], Op::Max).unwrap();
        flooded_after(world, 10, |comm| comm.all_reduce_in_place(&mut [7u64; 40], Op::Max));
    });
}

/// The same in calls that the ranks make by messages although they have cells: the settings say so, or no cells can
/// hold the data.
#[test]
fn messages_without_memory_leave_no_call_by_messages_waiting() {
    let name = "messages_without_memory_leave_no_call_by_messages_waiting";
    ranks_with(2, name, &[("TYPEPACK_COLL", "allreduce:messages")], |world| {
        world.all_reduce_in_place(&mut [7u64; 4], Op::Max).unwrap();
        flooded_after(world, 10, |comm| comm.all_reduce_in_place(&mut [7u64; 40], Op::Max));
        let plan = typepack::commit(&Datatype::named(Named::I32)).unwrap();
        flooded_after(world, 10, |comm| {
            let mut values = [7i32; 2];
            let part = |at: usize| Elements {
                origin: (&raw mut values[at]).cast(),
                plan: &plan,
                count: 1,
            };
            let parts = [0, 1].map(part);
            // SAFETY: the parts are different values of `values`, which outlives the call and which nobody else accesses.
            unsafe { comm.run_raw(&Collective::Alltoall { send: None, receive: &parts }) }
        });
    });
}

/// The same in a call that a rank only counts, because its arguments are wrong.
#[test]
fn messages_without_memory_do_not_uncount_a_skipped_call() {
    ranks(2, "messages_without_memory_do_not_uncount_a_skipped_call", |world| {
        let int = Datatype::named(Named::I32);
        flooded_after(world, 10, |comm| match comm.rank() {
            POOR => {
                comm.skip_collective();
                typepack::commit(&int).map(drop)
            }
            _ => comm.all_reduce_in_place(&mut [7u64; 40], Op::Max),
        });
    });
}

/// A type of numbers whose commit was refused once works when memory is there again.
#[test]
fn a_refused_plan_of_numbers_is_not_kept() {
    ranks(1, "a_refused_plan_of_numbers_is_not_kept", |world| {
        let mut values = [7i64];
        let eaten = Eaten::all(true);
        let refused = world.all_reduce_in_place(&mut values, Op::Max);
        drop(eaten);
        assert_eq!(refused.expect_err("no memory").kind(), ErrorKind::NoMemory);
        world.all_reduce_in_place(&mut values, Op::Max).expect("memory is there again");
    });
}
