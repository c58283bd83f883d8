//! Collective calls that run while the program computes, and exchanges with neighbours.
//!
//!     mpiexec -n 4 target/debug/examples/immediate

use typepack::{Communicator, Op};

/// Three collective calls at the same time. The scope ends when all of them are complete.
fn overlapping_calls(world: &Communicator) -> typepack::Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let mine: Vec<u32> = (0..size).map(|to| (100 * rank + to) as u32).collect();
    let (mut from_all, mut names) = (vec![0; size], vec![[0u8; 4]; size]);
    let (mut table, mut sum) = ([0u64; 1000], [rank as f64; 3]);
    if rank == 0 {
        table = std::array::from_fn(|n| n as u64);
    }
    let name = [*b"rank"];
    let computed = world.scope(|scope| -> typepack::Result<f64> {
        scope.iall_to_all(&mine, &mut from_all)?;
        scope.iall_gather(&name, &mut names)?;
        scope.iall_reduce_in_place(&mut sum, Op::Sum)?;
        let broadcast = scope.ibroadcast(&mut table, 0)?;
        // The program computes here, and may wait for one of the calls.
        let computed = (1..1000).map(f64::from).sum();
        scope.wait(broadcast)?;
        Ok(computed)
    })??;
    assert_eq!(computed, 499_500.0);
    assert_eq!(from_all, Vec::from_iter((0..size).map(|from| (100 * from + rank) as u32)));
    assert!(names.iter().all(|other| *other == name[0]));
    assert_eq!(sum, [(size * (size - 1) / 2) as f64; 3]);
    assert_eq!(table[999], 999);
    Ok(())
}

/// Parts of different lengths travel from the root and back to the root.
fn there_and_back(world: &Communicator) -> typepack::Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let counts: Vec<usize> = (0..size).map(|rank| 2 * rank).collect();
    let words: Vec<i64> =
        if rank == 0 { (0..).take(counts.iter().sum()).collect() } else { vec![] };
    let (mut part, mut back) = (vec![0; counts[rank]], vec![0; words.len()]);
    world.scope(|scope| scope.iscatter_varcount(&words, &counts, &mut part, 0).map(drop))??;
    world.scope(|scope| scope.igather_varcount(&part, &mut back, &counts, 0).map(drop))??;
    assert_eq!(back, words);
    Ok(())
}

/// Every rank tells the ranks on both sides how warm it is. The ends of the line have one neighbour.
fn neighbors(world: &Communicator) -> typepack::Result<()> {
    let line = world.cartesian(&[world.size()], &[false])?;
    let (line, warm) = (line.comm(), |rank: usize| 15.0 + rank as f64);
    let mut sides = [f64::NAN; 2];
    line.neighbor_all_gather(&warm(line.rank()), &mut sides)?;
    if line.rank() > 0 {
        assert_eq!(sides[0], warm(line.rank() - 1));
    }
    assert_eq!(sides[1].is_nan(), line.rank() + 1 == line.size());

    // Another value for each side, while the program computes.
    let (send, mut recv) = ([warm(line.rank()) - 1.0, warm(line.rank()) + 1.0], [f64::NAN; 2]);
    line.scope(|scope| scope.ineighbor_all_to_all(&send, &mut recv).map(drop))??;
    if line.rank() > 0 {
        assert_eq!(recv[0], send[0] + 1.0);
    }
    Ok(())
}

fn main() -> typepack::Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    overlapping_calls(&world)?;
    there_and_back(&world)?;
    neighbors(&world)?;
    println!("rank {} of {}: all results are right", world.rank(), world.size());
    Ok(())
}
