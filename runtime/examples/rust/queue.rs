//! A queue of work: the ranks take the next task from a counter in a window, and add their results to a sum.
//!
//! Run it with `mpiexec -n 4 queue`. A task is a number; its result is the number of steps that the number takes to
//! become 1 (halve it if it is even, else triple it and add 1). Tasks take different times, so the ranks do different
//! numbers of them. No rank waits for another one to take a task.

use typepack::rma::{LockKind, WindowOf};
use typepack::{Op, Result};

const TASKS: u64 = 2000;

fn steps(mut number: u64) -> u64 {
    let mut steps = 0;
    while number != 1 {
        number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}

fn main() -> Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    let rank = world.rank();
    // Rank 0 has two values: the number of the next task, and the sum of all results.
    let mut window = WindowOf::<u64>::allocate(&world, if rank == 0 { 2 } else { 0 })?;

    let mut done = 0;
    let locked = window.lock_all()?;
    let queue = locked.rank(0)?;
    loop {
        let task = queue.fetch_and_op(1, 0, Op::Sum)?;
        if task >= TASKS {
            break;
        }
        queue.accumulate(&[steps(task + 1)], 1, Op::Sum)?;
        done += 1;
    }
    locked.end()?;
    println!("rank {rank}: {done} tasks");

    world.barrier()?;
    if rank == 0 {
        let result = window.lock(0, LockKind::Shared)?.fetch(1)?;
        assert_eq!(result, (1..=TASKS).map(steps).sum());
        println!("the sum of all results is {result}");
    }
    window.free()
}
