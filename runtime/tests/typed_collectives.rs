//! Tests of the collective calls of buffers: slices, values, layouts and structs. The tests compare the results with
//! plain computations. `arrays.rs` tests the buffers of `ndarray`.

use crate::job::{ranks, ranks_with};
use typepack::topo::{Adjacency, Grid};
use typepack::{
    Communicator, Datatype, Elements, ElementsMut, Equivalence, ErrorKind, Named, Op, Plan, Root,
    commit,
};

/// What a call must not write.
const OLD: u64 = 7;

/// Returns `count` values that rank `from` has for rank `to`.
fn values(from: usize, to: usize, count: usize) -> Vec<u64> {
    (0..count).map(|n| (from * 1_000_000 + to * 1000) as u64 + n as u64 * 10_000_000_000).collect()
}

/// Returns what all ranks have for rank `to`, one after the other.
fn from_all(size: usize, to: usize, count: impl Fn(usize) -> usize) -> Vec<u64> {
    (0..size).flat_map(|from| values(from, to, count(from))).collect()
}

/// Returns what rank `from` has for all ranks, one after the other.
fn to_all(size: usize, from: usize, count: impl Fn(usize) -> usize) -> Vec<u64> {
    (0..size).flat_map(|to| values(from, to, count(to))).collect()
}

fn equal_parts(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    for len in [0, 1, 3, 700, 20_000] {
        let mine = values(rank, 0, len);
        let all = from_all(size, 0, |_| len);
        for root in 0..size {
            let is_root = rank == root;
            let mut got = vec![OLD; if is_root { len * size } else { 2 }];
            world.gather(&mine, &mut got, root).unwrap();
            assert_eq!(got, if is_root { all.clone() } else { vec![OLD; 2] });
            let (mut later, mut part) = (got.clone(), vec![OLD; len]);
            let send = if is_root { to_all(size, root, |_| len) } else { Vec::new() };
            world
                .scope(|scope| {
                    scope.igather(&mine, &mut later, root)?;
                    scope.iscatter(&send, &mut part, root).map(drop)
                })
                .unwrap()
                .unwrap();
            assert_eq!((later, &part), (got, &values(root, rank, len)));
            part.fill(OLD);
            if is_root {
                world.scatter(&send, &mut part, root).unwrap();
            } else {
                world.scatter(&(), &mut part, root).unwrap();
            }
            assert_eq!(part, values(root, rank, len));
        }
        let mut got = vec![OLD; len * size];
        world.all_gather(&mine, &mut got).unwrap();
        assert_eq!(got, all);
        let mut here = vec![OLD; len * size];
        here[len * rank..][..len].copy_from_slice(&mine);
        world.all_gather_in_place(&mut here).unwrap();
        assert_eq!(here, all);

        let send = to_all(size, rank, |_| len);
        let mut got = vec![OLD; len * size];
        world.all_to_all(&send, &mut got).unwrap();
        assert_eq!(got, from_all(size, rank, |_| len));
        let mut here = send.clone();
        world.all_to_all_in_place(&mut here).unwrap();
        assert_eq!(here, got);

        let (mut each, mut gathered, mut gathered_here) =
            (vec![OLD; len * size], vec![OLD; len * size], vec![OLD; len * size]);
        gathered_here[len * rank..][..len].copy_from_slice(&mine);
        let mut here = send.clone();
        world
            .scope(|scope| -> typepack::Result<()> {
                let first = scope.iall_to_all(&send, &mut each)?;
                scope.iall_gather(&mine, &mut gathered)?;
                scope.iall_to_all_in_place(&mut here)?;
                scope.iall_gather_in_place(&mut gathered_here)?;
                scope.wait(first).map(drop)
            })
            .unwrap()
            .unwrap();
        assert_eq!((&each, &here, &gathered, &gathered_here), (&got, &got, &all, &all));
    }
    // Single values and arrays are buffers too.
    let mut squares = vec![0; size];
    world.all_gather(&(rank * rank), &mut squares).unwrap();
    assert_eq!(squares, Vec::from_iter((0..size).map(|rank| rank * rank)));
    let pairs: Vec<[u32; 2]> = (0..size as u32).map(|to| [rank as u32, to]).collect();
    let mut got = vec![[0u32; 2]; size];
    world.all_to_all(&pairs, &mut got).unwrap();
    assert!(got.iter().enumerate().all(|(from, pair)| *pair == [from as u32, rank as u32]));
    let mut row = [0u8; 3];
    world.scatter(vec![[4u8, 5, 6]; size].as_flattened(), &mut row, size - 1).unwrap();
    assert_eq!(row, [4, 5, 6]);
    let mut value = if rank == 0 { 2.5 } else { 0.0 };
    world.broadcast(&mut value, 0).unwrap();
    assert_eq!(value, 2.5);
}

fn unequal_parts(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    for (round, scale) in [0, 1, 3, 4000].into_iter().enumerate() {
        // What rank `from` has for rank `to`. Some ranks have nothing.
        let length = |from: usize, to: usize| (from * 3 + to + round) % 4 * scale;
        let root = round % size;
        let counts: Vec<usize> = (0..size).map(|from| length(from, root)).collect();
        let mine = values(rank, root, counts[rank]);
        let all = from_all(size, root, |from| counts[from]);
        let mut got = vec![OLD; if rank == root { all.len() } else { 0 }];
        let known = if rank == root { &counts[..] } else { &[] };
        world.gather_varcount(&mine, &mut got, known, root).unwrap();
        assert!(rank != root || got == all);

        let mut everywhere = vec![OLD; all.len()];
        world.all_gather_varcount(&mine, &mut everywhere, &counts).unwrap();
        assert_eq!(everywhere, all);

        let lengths: Vec<usize> = (0..size).map(|to| length(root, to)).collect();
        let send = if rank == root { to_all(size, root, |to| lengths[to]) } else { Vec::new() };
        let mut part = vec![OLD; lengths[rank]];
        world.scatter_varcount(&send, &lengths, &mut part, root).unwrap();
        assert_eq!(part, values(root, rank, lengths[rank]));

        let send_counts: Vec<usize> = (0..size).map(|to| length(rank, to)).collect();
        let recv_counts: Vec<usize> = (0..size).map(|from| length(from, rank)).collect();
        let outgoing = to_all(size, rank, |to| length(rank, to));
        let wanted = from_all(size, rank, |from| length(from, rank));
        let mut incoming = vec![OLD; wanted.len()];
        world.all_to_all_varcount(&outgoing, &send_counts, &mut incoming, &recv_counts).unwrap();
        assert_eq!(incoming, wanted);

        // The same as one buffer for each part, which may lie anywhere.
        let parts: Vec<Vec<u64>> = (0..size).map(|to| values(rank, to, length(rank, to))).collect();
        let fresh = |counts: &[usize]| -> Vec<Vec<u64>> {
            counts.iter().map(|&count| vec![OLD; count]).collect()
        };
        let (mut into, mut gathered, mut at_root) =
            (fresh(&recv_counts), fresh(&counts), fresh(if rank == root { &counts } else { &[] }));
        world.all_to_all_parts(&parts, &mut into).unwrap();
        world.all_gather_parts(&mine, &mut gathered).unwrap();
        world.gather_parts(&mine, &mut at_root, root).unwrap();
        assert_eq!((into.concat(), gathered.concat()), (wanted.clone(), all.clone()));
        assert!(rank != root || at_root.concat() == all);
        part.fill(OLD);
        let for_ranks = if rank == root { parts.clone() } else { Vec::new() };
        world.scatter_parts(&for_ranks, &mut part, root).unwrap();
        assert_eq!(part, values(root, rank, lengths[rank]));

        // All of them at the same time.
        let mut later = (vec![OLD; got.len()], vec![OLD; all.len()], vec![OLD; part.len()]);
        let mut exchanged = vec![OLD; wanted.len()];
        let (mut into, mut gathered, mut at_root) =
            (fresh(&recv_counts), fresh(&counts), fresh(if rank == root { &counts } else { &[] }));
        let mut again = vec![OLD; part.len()];
        world
            .scope(|scope| -> typepack::Result<()> {
                scope.igather_varcount(&mine, &mut later.0, known, root)?;
                scope.iall_gather_varcount(&mine, &mut later.1, &counts)?;
                scope.iscatter_varcount(&send, &lengths, &mut later.2, root)?;
                scope.iall_to_all_varcount(
                    &outgoing,
                    &send_counts,
                    &mut exchanged,
                    &recv_counts,
                )?;
                scope.iall_to_all_parts(&parts, &mut into)?;
                scope.iall_gather_parts(&mine, &mut gathered)?;
                scope.igather_parts(&mine, &mut at_root, root)?;
                scope.iscatter_parts(&for_ranks, &mut again, root).map(drop)
            })
            .unwrap()
            .unwrap();
        assert_eq!(later, (got, all.clone(), part.clone()));
        assert_eq!((&exchanged, &into.concat(), &gathered.concat()), (&wanted, &wanted, &all));
        assert!(rank != root || at_root.concat() == all);
        assert_eq!(again, part);
    }
}

/// Returns the committed type of one column of a matrix with `width` columns of `u64`; the next element is the next
/// column.
fn column(rows: i64, width: i64) -> Plan {
    let number = Datatype::named(Named::U64);
    let column = Datatype::vector(rows, 1, width, &number).unwrap();
    commit(&Datatype::resized(0, 8, &column).unwrap()).unwrap()
}

/// Each rank has columns of a matrix. The other side has them as rows, or again as columns.
fn layouts(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let (rows, width) = (5, 2 * size);
    let columns = column(rows as i64, width as i64);
    let cell = |rank: usize, row: usize, column: usize| values(rank, row, column + 1)[column];
    let matrix: Vec<u64> = (0..rows * width).map(|n| cell(rank, n / width, n % width)).collect();
    let transposed: Vec<u64> = (0..2 * rows).map(|n| cell(rank, n % rows, n / rows)).collect();

    // The first two columns of every rank.
    let mine = Elements::new(&matrix, &columns, 2);
    let mut lines = vec![OLD; 2 * rows * size];
    world.all_gather(&mine, &mut lines).unwrap();
    assert_eq!(lines[2 * rows * rank..][..2 * rows], transposed);
    // As columns again: rank `i` fills the columns 2 i and 2 i + 1.
    let mut wide = vec![OLD; rows * width];
    world.all_gather(&mine, &mut ElementsMut::new(&mut wide, &columns, width as u64)).unwrap();
    for (n, value) in wide.iter().enumerate() {
        assert_eq!(*value, cell(n % width / 2, n / width, n % 2));
    }
    // Rank `i` sends two columns to every rank, which gets them as rows.
    let all = Elements::new(&matrix, &columns, width as u64);
    world.all_to_all(&all, &mut lines).unwrap();
    for (n, value) in lines.iter().enumerate() {
        assert_eq!(*value, cell(n / (2 * rows), n % rows, 2 * rank + n / rows % 2));
    }
    // Counts count elements. Rank `i` gets the columns up to `i` of the last rank, and column `i` of an old matrix.
    let counts: Vec<usize> = (0..size).map(|to| (to + 1).min(2)).collect();
    let sent: usize = counts.iter().sum();
    let send = Elements::new(&matrix, &columns, sent as u64);
    let mut got = vec![OLD; rows * width];
    let mut recv = ElementsMut::new(&mut got, &columns, counts[rank] as u64).at(8 * rank);
    world.scatter_varcount(&send, &counts, &mut recv, size - 1).unwrap();
    let first: usize = counts[..rank].iter().sum();
    for (n, value) in got.iter().enumerate() {
        let (row, column) = (n / width, (n % width).wrapping_sub(rank));
        let wanted = if column < counts[rank] { cell(size - 1, row, first + column) } else { OLD };
        assert_eq!(*value, wanted, "row {row}, column {column}");
    }
    let mut later = vec![OLD; rows * width];
    let mut everywhere = ElementsMut::new(&mut later, &columns, width as u64);
    world.scope(|scope| scope.iall_gather(&mine, &mut everywhere).map(drop)).unwrap().unwrap();
    assert_eq!(later, wide);

    // Messages and broadcasts of layouts.
    let mut line = vec![OLD; rows];
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let last = Elements::new(&matrix, &columns, 1).at(8 * (width - 1));
    let (status, arrived) = world.sendrecv(&last, next, 3, &mut line, previous, 3).unwrap();
    assert_eq!((status.source, status.bytes, arrived), (previous, 8 * rows as u64, rows));
    assert_eq!(line, Vec::from_iter((0..rows).map(|row| cell(previous, row, width - 1))));
    let mut target = matrix.clone();
    world.broadcast(&mut ElementsMut::new(&mut target, &columns, 1).at(8), 0).unwrap();
    for (n, value) in target.iter().enumerate() {
        let from = if n % width == 1 { 0 } else { rank };
        assert_eq!(*value, cell(from, n / width, n % width));
    }

    // Elements outside of their slice, and elements that overlap.
    let outside_of = |error: typepack::Error, argument| {
        assert!(matches!(error.kind(), ErrorKind::Engine(_)), "{error}");
        assert_eq!(error.argument(), argument, "{error}");
    };
    let outside = Elements::new(&matrix, &columns, width as u64 + 1);
    outside_of(world.all_gather(&outside, &mut lines).unwrap_err(), "send");
    let error = world.all_gather(&mine, &mut ElementsMut::new(&mut lines, &columns, 1 << 40));
    outside_of(error.unwrap_err(), "recv");
    if size > 1 {
        let number = Datatype::contiguous(2, &Datatype::named(Named::U64)).unwrap();
        let twice = commit(&Datatype::resized(0, 8, &number).unwrap()).unwrap();
        let mut recv = ElementsMut::new(&mut lines, &twice, size as u64);
        let error = world.all_gather(&[1u64, 2], &mut recv).unwrap_err();
        assert_eq!((error.kind(), error.argument()), (ErrorKind::Buffer, "recv"), "{error}");
    }
    world.barrier().unwrap();
}

fn between_neighbors(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    for periodic in [false, true] {
        let line = world.cartesian_within(&Grid::new(&[size], &[periodic]).unwrap(), false);
        let line = line.unwrap().unwrap();
        let comm = line.comm();
        let (below, above) = line.shift(0, 1).unwrap();
        for len in [0, 2, 3000] {
            let mine = values(rank, 0, len);
            let old = vec![OLD; len];
            let of =
                |side: Option<usize>, to| side.map_or(old.clone(), |from| values(from, to, len));
            let mut got = [old.clone(), old.clone()].concat();
            comm.neighbor_all_gather(&mine, &mut got).unwrap();
            assert_eq!(got, [of(below, 0), of(above, 0)].concat());
            // What goes up is 1, what goes down is 0.
            let send = [values(rank, 0, len), values(rank, 1, len)].concat();
            let wanted = [of(below, 1), of(above, 0)].concat();
            let mut got = vec![OLD; 2 * len];
            comm.neighbor_all_to_all(&send, &mut got).unwrap();
            assert_eq!(got, wanted);
            let mut parts = [old.clone(), old.clone()];
            let halves = [&send[..len], &send[len..]].map(<[u64]>::to_vec);
            comm.neighbor_all_to_all_parts(&halves, &mut parts).unwrap();
            assert_eq!(parts.concat(), wanted);
            let (mut each, mut all) = (vec![OLD; 2 * len], vec![OLD; 2 * len]);
            let mut parts = [old.clone(), old.clone()];
            comm.scope(|scope| {
                scope.ineighbor_all_to_all(&send, &mut each)?;
                scope.ineighbor_all_gather(&mine, &mut all)?;
                scope.ineighbor_all_to_all_parts(&halves, &mut parts).map(drop)
            })
            .unwrap()
            .unwrap();
            assert_eq!((&each, &parts.concat()), (&wanted, &wanted));
            assert_eq!(all, [of(below, 0), of(above, 0)].concat());
        }
    }
    // A graph whose ranks have different numbers of neighbours: edges from every rank to all ranks above it.
    let (sources, destinations) = (Vec::from_iter(0..rank), Vec::from_iter(rank + 1..size));
    let edges = Adjacency::new(&sources, &destinations, None).unwrap();
    let graph = world.dist_graph_create_adjacent(edges).unwrap();
    for scale in [1, 2000] {
        let length = |from: usize, to: usize| (from + 2 * to) % 3 * scale;
        let counts: Vec<usize> = sources.iter().map(|&from| length(from, 0)).collect();
        let mine = values(rank, 0, length(rank, 0));
        let wanted: Vec<u64> = sources.iter().flat_map(|&s| values(s, 0, length(s, 0))).collect();
        let mut got = vec![OLD; wanted.len()];
        graph.neighbor_all_gather_varcount(&mine, &mut got, &counts).unwrap();
        assert_eq!(got, wanted);
        let send_counts: Vec<usize> = destinations.iter().map(|&to| length(rank, to)).collect();
        let recv_counts: Vec<usize> = sources.iter().map(|&from| length(from, rank)).collect();
        let send: Vec<u64> =
            destinations.iter().flat_map(|&to| values(rank, to, length(rank, to))).collect();
        let exchanged: Vec<u64> =
            sources.iter().flat_map(|&from| values(from, rank, length(from, rank))).collect();
        let mut into = vec![OLD; exchanged.len()];
        graph.neighbor_all_to_all_varcount(&send, &send_counts, &mut into, &recv_counts).unwrap();
        assert_eq!(into, exchanged);
        let (mut later, mut all) = (vec![OLD; exchanged.len()], vec![OLD; wanted.len()]);
        graph
            .scope(|scope| {
                scope.ineighbor_all_gather_varcount(&mine, &mut all, &counts)?;
                let counts = (&send_counts, &recv_counts);
                scope.ineighbor_all_to_all_varcount(&send, counts.0, &mut later, counts.1).map(drop)
            })
            .unwrap()
            .unwrap();
        assert_eq!((all, later), (wanted, exchanged));
    }
    let mut got = vec![OLD; rank];
    if destinations.is_empty() {
        // This rank sends nothing, so the library does not look at the length of its buffer.
        graph.neighbor_all_gather(&(), &mut got).unwrap();
    } else {
        graph.neighbor_all_gather(&(rank as u64), &mut got).unwrap();
    }
    assert_eq!(got, Vec::from_iter(0..rank as u64));

    // Wrong arguments.
    let error = world.neighbor_all_gather(&1u64, &mut got).unwrap_err();
    assert_eq!((error.kind(), error.argument()), (ErrorKind::Topology, "comm"), "{error}");
    let mut long = vec![OLD; rank + 1];
    let error = graph.neighbor_all_gather_varcount(&1u64, &mut long, &vec![1; rank + 1]);
    let error = error.unwrap_err();
    assert_eq!((error.kind(), error.argument()), (ErrorKind::Argument, "counts"), "{error}");
    let error = graph.neighbor_all_to_all(&vec![1u64; size - rank], &mut vec![OLD; 3 * size]);
    assert!(error.is_err() || size == 1 && rank == 0);
    world.barrier().unwrap();
}

/// Calls that return their result.
fn single_values(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let root = size - 1;
    let is_root = rank == root;
    assert_eq!(world.all_reduce_value(rank, Op::Sum).unwrap(), (0..size).sum());
    assert_eq!(world.all_reduce_value(-(rank as isize), Op::Min).unwrap(), 1 - size as isize);
    assert_eq!(world.all_reduce_value(rank as u8 + 1, |a: u8, b| a.max(b)).unwrap(), size as u8);
    let product = world.reduce_value(2.0, Op::Prod, root).unwrap();
    assert_eq!(product, is_root.then(|| 2f64.powi(size as i32)));
    assert_eq!(world.scan_value(rank, Op::Sum).unwrap(), (0..=rank).sum());
    let before = world.exscan_value(rank, Op::Sum).unwrap();
    assert_eq!(before, (rank > 0).then(|| (0..rank).sum()));
    assert_eq!(world.broadcast_value(rank, root).unwrap(), root);
    assert_eq!(world.broadcast_value([rank; 2], root).unwrap(), [root; 2]);
    let lines: Vec<Line> = (0..size).map(Line::of).collect();
    assert_eq!(world.all_gather_value(Line::of(rank)).unwrap(), lines);
    assert_eq!(world.gather_value(Line::of(rank), root).unwrap(), is_root.then_some(lines));
    // Wrong roots and operations.
    let error = world.reduce_value(1, Op::Sum, size).unwrap_err();
    assert_eq!((error.kind(), error.argument()), (ErrorKind::Root, "root"), "{error}");
    let error = world.gather_value(1, size).unwrap_err();
    assert_eq!((error.kind(), error.argument()), (ErrorKind::Root, "root"), "{error}");
    let error = world.all_reduce_value(1.5, Op::Bor).unwrap_err();
    assert_eq!((error.kind(), error.argument()), (ErrorKind::Argument, "op"), "{error}");
    world.barrier().unwrap();
}

#[derive(Clone, Copy, Debug, PartialEq, Equivalence)]
struct Line {
    slope: u8,
    offset: u32,
}

impl Line {
    fn of(rank: usize) -> Self {
        Self { slope: 2 * rank as u8 + 3, offset: 5 + rank as u32 }
    }

    /// Composition does not commute.
    fn then(self, next: Self) -> Self {
        Self {
            slope: self.slope.wrapping_mul(next.slope),
            offset: self.offset.wrapping_mul(next.slope.into()).wrapping_add(next.offset),
        }
    }
}

fn structs(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let upto = |last: usize| (1..=last).fold(Line::of(0), |line, rank| line.then(Line::of(rank)));
    let (mine, fresh) = ([Line::of(rank); 3], [Line { slope: 1, offset: 1 }; 3]);
    for root in 0..size {
        let mut got = fresh;
        world.reduce_values(&mine, &mut got, Line::then, root).unwrap();
        assert_eq!(got, if rank == root { [upto(size - 1); 3] } else { fresh });
    }
    let mut got = fresh;
    world.scan_values(&mine, &mut got, Line::then).unwrap();
    assert_eq!(got, [upto(rank); 3]);
    let mut got = fresh;
    world.exscan_values(&mine, &mut got, Line::then).unwrap();
    assert_eq!(got, if rank == 0 { fresh } else { [upto(rank - 1); 3] });
    let mut all = vec![fresh[0]; 3 * size];
    world.all_gather(&mine, &mut all).unwrap();
    assert!(all.iter().enumerate().all(|(n, line)| *line == Line::of(n / 3)));
    let error = world.scan_values(&mine, &mut got[..2], Line::then).unwrap_err();
    assert_eq!((error.kind(), error.argument()), (ErrorKind::Buffer, "recv"));

    // Blocks of a reduction.
    let send: Vec<u64> = (0..2 * size as u64).map(|n| n + rank as u64).collect();
    let (mut block, mut later) = ([0u64; 2], [0u64; 2]);
    world.reduce_scatter_block(&send, &mut block, Op::Sum).unwrap();
    world
        .scope(|scope| scope.ireduce_scatter_block(&send, &mut later, Op::Sum).map(drop))
        .unwrap()
        .unwrap();
    let ranks: u64 = (0..size as u64).sum();
    let wanted = [0, 1].map(|n| (2 * rank as u64 + n) * size as u64 + ranks);
    assert_eq!((block, later), (wanted, wanted));
    let error = world.reduce_scatter_block(&send[1..], &mut block, Op::Sum).unwrap_err();
    assert_eq!((error.kind(), error.argument()), (ErrorKind::Buffer, "send"));
    world.barrier().unwrap();
}

/// Every rank passes the same wrong arguments. The errors name the argument, and the next call works.
fn wrong_lengths(world: &Communicator) {
    let size = world.size();
    let refused = |result: typepack::Result<()>, kind, argument, numbers: [usize; 2]| {
        let error = result.expect_err("a wrong argument");
        assert_eq!((error.kind(), error.argument()), (kind, argument), "{error}");
        for number in numbers {
            assert!(error.to_string().contains(&number.to_string()), "{number}: {error}");
        }
        let mut word = [1u64];
        world.all_reduce_in_place(&mut word, Op::Sum).unwrap();
        assert_eq!(word, [size as u64]);
    };
    use ErrorKind::{Argument, Buffer};
    let (mine, mut all) = ([1u64; 3], vec![0u64; 3 * size]);
    let mut short = vec![0u64; 2 * size];
    refused(world.all_gather(&mine, &mut short), Buffer, "recv", [16, 24]);
    refused(world.all_to_all(&all.clone(), &mut short), Buffer, "recv", [16, 24]);
    refused(
        world.scope(|scope| scope.iall_gather(&mine, &mut short).map(drop)).unwrap(),
        Buffer,
        "recv",
        [16, 24],
    );
    let counts = vec![3; size];
    let few = &counts[1..];
    refused(world.all_gather_varcount(&mine, &mut all, few), Argument, "counts", [size - 1, size]);
    let result = world.all_gather_varcount(&mine, &mut short, &counts);
    refused(result, Buffer, "recv", [2 * size, 3 * size]);
    let result = world.all_gather_varcount(&mine[1..], &mut all, &counts);
    refused(result, Buffer, "recv", [16, 24]);
    let send = all.clone();
    let result = world.all_to_all_varcount(&send, few, &mut all, &counts);
    refused(result, Argument, "send_counts", [size - 1, size]);
    let result = world.all_to_all_varcount(&send, &counts, &mut all, few);
    refused(result, Argument, "recv_counts", [size - 1, size]);
    let result = world.all_to_all_varcount(&short.clone(), &counts, &mut all, &counts);
    refused(result, Buffer, "send", [2 * size, 3 * size]);
    let result = world.all_to_all_parts(&vec![1u64; size + 1], &mut vec![0u64; size]);
    refused(result, Argument, "send", [size + 1, size]);
    let huge = vec![usize::MAX; size];
    refused(world.all_gather_varcount(&mine, &mut all, &huge), Buffer, "recv", [3 * size, 3]);
    if size > 1 {
        let mut odd = vec![0u64; 3 * size + 1];
        refused(world.all_gather(&mine, &mut odd), Buffer, "recv", [3 * size + 1, size]);
    }
}

/// One rank fails before it makes a call. The other ranks get an error or a result, and no rank waits for ever.
fn one_rank_fails(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    // The ranks make their shared memory in the third blocking call.
    for _ in 0..6 {
        world.barrier().unwrap();
    }
    for bad in 0..size {
        let len = if rank == bad { 3 } else { 4 };
        let mut recv = vec![0u64; len * size];
        let result = world.all_gather(&[1u64; 4], &mut recv);
        assert!(rank != bad || result.is_err());
        let result = world.gather(&[1u64; 4], &mut recv, bad);
        assert_eq!(result.is_err(), rank == bad, "{result:?}");
        let (send, mut part) = (vec![1u64; 4 * size], vec![0u64; len]);
        let _any = world.scatter(&send, &mut part, 0);
        let _any = world.all_to_all(&send, &mut recv);
        let counts = vec![4; size];
        let _any = world.all_to_all_varcount(&send, &counts, &mut recv, &counts);
        world.barrier().unwrap();
    }
    // Lengths that are right on each rank, but differ.
    let send = vec![1u64; size * (1 + rank % 2)];
    let mut recv = send.clone();
    let result = world.all_to_all(&send, &mut recv);
    assert!(result.is_err());
    world.barrier().unwrap();
}

/// Collective calls of buffers between two groups.
fn between_groups(world: &Communicator) {
    let high = world.rank() > 0;
    let local = world.split(Some(high.into()), 0).unwrap().unwrap();
    let other = (local.rank() == 0).then_some((world, if high { 0 } else { 1 }));
    let inter = local.intercommunicator(0, other, 4).unwrap();
    let others = inter.remote_group().unwrap().size();
    // The lower group has one rank, the root.
    let mut got = vec![0u64; 2 * others];
    if high {
        inter.gather(&values(local.rank(), 9, 2), &mut (), 0).unwrap();
    } else {
        inter.gather(&(), &mut got, Root::Here).unwrap();
        assert_eq!(got, from_all(others, 9, |_| 2));
    }
    let mut part = [0u64; 2];
    if high {
        inter.scatter(&(), &mut part, 0).unwrap();
        assert_eq!(part[..], values(0, local.rank(), 2));
    } else {
        inter.scatter(&to_all(others, 0, |_| 2), &mut (), Root::Here).unwrap();
    }
    // The groups send different lengths.
    let (mine, theirs) = if high { (1, 3) } else { (3, 1) };
    let mut got = vec![0u64; theirs * others];
    inter.all_gather(&values(local.rank(), 1, mine), &mut got).unwrap();
    assert_eq!(got, from_all(others, 1, |_| theirs));
    let mut got = vec![0u64; others];
    inter.all_to_all(&to_all(others, local.rank(), |_| 1), &mut got).unwrap();
    assert_eq!(got, from_all(others, local.rank(), |_| 1));
}

macro_rules! tests {
    ($($name:ident: $body:expr, $ranks:expr;)*) => {
        $(
            #[test]
            fn $name() {
                ranks($ranks, stringify!($name), $body);
            }
        )*
    };
}

tests! {
    equal_parts_of_one: equal_parts, 1;
    equal_parts_of_two: equal_parts, 2;
    equal_parts_of_three: equal_parts, 3;
    equal_parts_of_five: equal_parts, 5;
    equal_parts_of_nine: equal_parts, 9;
    unequal_parts_of_one: unequal_parts, 1;
    unequal_parts_of_two: unequal_parts, 2;
    unequal_parts_of_three: unequal_parts, 3;
    unequal_parts_of_five: unequal_parts, 5;
    layouts_of_one: layouts, 1;
    layouts_of_two: layouts, 2;
    layouts_of_three: layouts, 3;
    layouts_of_five: layouts, 5;
    neighbors_of_one: between_neighbors, 1;
    neighbors_of_two: between_neighbors, 2;
    neighbors_of_three: between_neighbors, 3;
    neighbors_of_five: between_neighbors, 5;
    single_values_of_one: single_values, 1;
    single_values_of_two: single_values, 2;
    single_values_of_five: single_values, 5;
    structs_of_one: structs, 1;
    structs_of_two: structs, 2;
    structs_of_five: structs, 5;
    wrong_lengths_of_one: wrong_lengths, 1;
    wrong_lengths_of_three: wrong_lengths, 3;
    one_of_two_fails: one_rank_fails, 2;
    one_of_three_fails: one_rank_fails, 3;
    one_of_nine_fails: one_rank_fails, 9;
    groups_of_one_and_one: between_groups, 2;
    groups_of_one_and_three: between_groups, 4;
}

/// The same calls with checked types and without shared memory for collective calls.
#[test]
fn other_ways() {
    const NAME: &str = "other_ways";
    let _output = ranks_with(3, NAME, &[("TYPEPACK_CHECK_TYPES", "1")], |world| {
        equal_parts(world);
        unequal_parts(world);
        layouts(world);
        between_neighbors(world);
        single_values(world);
        structs(world);
        wrong_lengths(world);
    });
}

#[test]
fn by_messages() {
    const NAME: &str = "by_messages";
    let _output = ranks_with(3, NAME, &[("TYPEPACK_COLL", "all:messages")], |world| {
        equal_parts(world);
        unequal_parts(world);
        layouts(world);
        between_neighbors(world);
    });
}
