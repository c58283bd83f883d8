//! Collective calls of values, slices, structs and layouts. Every call is checked.
//!
//!     mpiexec -n 4 target/debug/examples/collectives

use typepack::{Communicator, Datatype, Elements, ElementsMut, Equivalence, Named, Op, commit};

/// The last rank, so that no result depends on a root of 0.
fn root(world: &Communicator) -> usize {
    world.size() - 1
}

/// Single values: the calls return their result.
fn values(world: &Communicator) -> typepack::Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let total = world.all_reduce_value(rank + 1, Op::Sum)?;
    assert_eq!(total, size * (size + 1) / 2);
    let widest = world.reduce_value(1.0 / (rank + 1) as f64, Op::Max, root(world))?;
    assert_eq!(widest, (rank == root(world)).then_some(1.0));

    // Where the data of this rank begin and end, if the ranks write one after the other.
    let end = world.scan_value(10 * rank, Op::Sum)?;
    let start = world.exscan_value(10 * rank, Op::Sum)?.unwrap_or(0);
    assert_eq!((start, end), (5 * rank * rank.saturating_sub(1), start + 10 * rank));

    let seed = world.broadcast_value(if rank == root(world) { 1 << 20 } else { 0 }, root(world))?;
    assert_eq!(seed, 1 << 20);
    let squares = world.all_gather_value(rank * rank)?;
    assert!(squares.iter().enumerate().all(|(n, square)| *square == n * n));
    Ok(())
}

/// Slices: every rank has a part of the same length.
fn slices(world: &Communicator) -> typepack::Result<()> {
    let (rank, size, root) = (world.rank(), world.size(), root(world));
    let row: Vec<u64> = (1..=size as u64).map(|n| n * (rank as u64 + 1)).collect();
    // Only the root needs memory for the table.
    let mut table = vec![0; if rank == root { size * size } else { 0 }];
    world.gather(&row, &mut table, root)?;
    for (place, product) in table.iter().enumerate() {
        assert_eq!(*product as usize, (place / size + 1) * (place % size + 1));
    }
    let mut again = vec![0; size];
    world.scatter(&table, &mut again, root)?;
    assert_eq!(again, row);

    let mut everywhere = vec![0; size * size];
    world.all_gather(&row, &mut everywhere)?;
    assert_eq!(everywhere[size * rank..][..size], row);
    // Column `rank` of the table, which is symmetric.
    let mut column = vec![0; size];
    world.all_to_all(&row, &mut column)?;
    assert_eq!(column, row);

    // Each rank gets one entry of the sum of all rows.
    let mut entry = [0];
    world.reduce_scatter_block(&row, &mut entry, Op::Sum)?;
    assert_eq!(entry[0] as usize, (rank + 1) * size * (size + 1) / 2);
    Ok(())
}

/// Parts of different lengths: rank `i` has `i` words. The counts say where the parts are.
fn unequal_parts(world: &Communicator) -> typepack::Result<()> {
    let (rank, size, root) = (world.rank(), world.size(), root(world));
    let mine = vec![rank as u32; rank];
    let counts = world.all_gather_value(mine.len())?;
    let mut all = vec![0; counts.iter().sum()];
    world.all_gather_varcount(&mine, &mut all, &counts)?;
    assert!(all.is_sorted() && all.len() == size * (size - 1) / 2);

    // The counts matter at the root. The other ranks receive nothing in a gather, and send nothing in a scatter.
    if rank == root {
        let gathered = std::mem::replace(&mut all, vec![u32::MAX; size * (size - 1) / 2]);
        world.gather_varcount(&mine, &mut all, &counts, root)?;
        assert_eq!(all, gathered);
    } else {
        world.gather_varcount(&mine, &mut (), &counts, root)?;
    }
    let mut back = vec![0; rank];
    world.scatter_varcount(&all, &counts, &mut back, root)?;
    assert_eq!(back, mine);

    // Rank `i` sends `j` words to rank `j`, so it receives `i` words from every rank.
    let words: Vec<u32> = (0..size).flat_map(|to| vec![rank as u32; to]).collect();
    let (to, from) = (Vec::from_iter(0..size), vec![rank; size]);
    let mut received = vec![0; rank * size];
    world.all_to_all_varcount(&words, &to, &mut received, &from)?;
    assert!(received.iter().enumerate().all(|(n, word)| *word as usize == n / rank));
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Equivalence)]
struct Reading {
    station: u16,
    celsius: f64,
}

/// Operations of the program: closures on numbers and on structs.
fn operations(world: &Communicator) -> typepack::Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    assert_eq!(world.all_reduce_value(12 * (rank as u64 + 1), gcd)?, 12);

    let warmer = |a: Reading, b: Reading| if b.celsius > a.celsius { b } else { a };
    let mut warmest = [Reading { station: 100 + rank as u16, celsius: 20.0 - rank as f64 }];
    world.all_reduce_values(&mut warmest, warmer)?;
    assert_eq!(warmest, [Reading { station: 100, celsius: 20.0 }]);
    let mine = Reading { station: rank as u16, celsius: -0.5 };
    let readings = world.gather_value(mine, root(world))?.unwrap_or_default();
    assert!(readings.len() == if rank == root(world) { size } else { 0 });
    assert!(readings.iter().enumerate().all(|(n, reading)| usize::from(reading.station) == n));
    Ok(())
}

/// Layouts: each rank has one column of a matrix with `size` rows. The matrix is then distributed by rows.
fn columns(world: &Communicator) -> typepack::Result<()> {
    let (rank, size) = (world.rank(), world.size());
    // The next element of this type is the next column, eight bytes further.
    let column = Datatype::vector(size as i64, 1, size as i64, &Datatype::named(Named::F64))?;
    let column = commit(&Datatype::resized(0, 8, &column)?)?;
    let mine: Vec<f64> = (0..size).map(|row| (10 * row + rank) as f64).collect();
    let mut matrix = vec![0.0; size * size];
    world.all_gather(&mine, &mut ElementsMut::new(&mut matrix, &column, size as u64))?;
    let cell = |n: usize| (10 * (n / size) + n % size) as f64;
    assert!(matrix.iter().enumerate().all(|(n, value)| *value == cell(n)));

    // The last column, from a matrix at the root to a plain slice at every rank.
    let mut last = vec![0.0; size];
    let columns = Elements::new(&matrix, &column, size as u64);
    world.scatter(&columns, &mut last, root(world))?;
    assert_eq!(last, mine);
    Ok(())
}

fn main() -> typepack::Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    values(&world)?;
    slices(&world)?;
    unequal_parts(&world)?;
    operations(&world)?;
    columns(&world)?;
    println!("rank {} of {}: all results are right", world.rank(), world.size());
    Ok(())
}
