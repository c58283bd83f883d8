//! Tests of arrays and views of `ndarray` as buffers of messages and collective calls.
#![cfg(feature = "ndarray")]

use crate::job::ranks;
use ndarray::{Array, Array1, Array2, Array3, ArrayD, Axis, IxDyn, s};
use typepack::{Communicator, Equivalence, ErrorKind};
use typepack_test_support::random::Random;

/// Returns a matrix whose cells are different on all ranks.
fn matrix(rank: usize, rows: usize, columns: usize) -> Array2<f64> {
    Array::from_shape_fn((rows, columns), |(i, j)| (rank * 10_000 + i * 100 + j) as f64)
}

fn messages(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let (mine, theirs) = (matrix(rank, 6, 7), matrix(previous, 6, 7));
    // A column arrives as a row, a row as a reversed column, and a transposed block in a block with gaps.
    let mut got = Array2::<f64>::zeros((9, 9));
    let (status, items) = world
        .sendrecv(&mine.column(2), next, 0, &mut got.slice_mut(s![0, ..6]), previous, 0)
        .unwrap();
    assert_eq!((status.bytes, items), (48, 6));
    assert_eq!(got.slice(s![0, ..6]), theirs.column(2));
    let mut column = got.slice_mut(s![1..8;-1, 8]);
    world.sendrecv(&mine.row(3), next, 0, &mut column, previous, 0).unwrap();
    assert_eq!(got.slice(s![1..8;-1, 8]), theirs.row(3));
    let mut block = got.slice_mut(s![1..;2, 1..7;2]);
    let from = mine.slice(s![..;-2, ..;2]);
    let (_, items) = world.sendrecv(&from.t(), next, 0, &mut block, previous, 0).unwrap();
    assert_eq!(items, 4);
    assert_eq!(block, theirs.slice(s![..;-2, ..;2]).t());
    // Nothing else was written.
    let mut written = Array2::from_elem((9, 9), false);
    written.slice_mut(s![0, ..6]).fill(true);
    written.slice_mut(s![1..8, 8]).fill(true);
    written.slice_mut(s![1..;2, 1..7;2]).fill(true);
    assert!(got.iter().zip(&written).all(|(value, written)| *written || *value == 0.0));

    // Fewer entries than there is room for.
    let mut rows = Array2::<f64>::zeros((4, 9)).reversed_axes();
    let (_, items) =
        world.sendrecv(&mine.slice(s![..4, ..]).t(), next, 0, &mut rows, previous, 0).unwrap();
    assert_eq!(items, 7);
    assert_eq!(rows.slice(s![..7, ..]), theirs.slice(s![..4, ..]).t());

    // Nonblocking, with views made before the scope.
    let mut halo = Array2::<f64>::zeros((5, 4));
    let (out, mut into) = (mine.slice(s![..5;2, 1]), halo.slice_mut(s![1..4, 3]));
    world
        .scope(|scope| -> typepack::Result<()> {
            scope.irecv(&mut into, previous, 5)?;
            scope.isend(&out, next, 5).map(drop)
        })
        .unwrap()
        .unwrap();
    assert_eq!(into, theirs.slice(s![..5;2, 1]));

    // A view of one element repeated may be sent.
    let one = ndarray::arr0(rank as f64);
    let mut copies = Array1::<f64>::zeros(4);
    world.sendrecv(&one.broadcast(4).unwrap(), next, 0, &mut copies, previous, 0).unwrap();
    assert_eq!(copies, Array1::from_elem(4, previous as f64));
    let mut none = Array2::<f64>::zeros((3, 0));
    world.sendrecv(&none.clone().t(), next, 0, &mut none, previous, 0).unwrap();
    let mut scalar = ndarray::arr0(0.0f64);
    world.sendrecv(&one, next, 0, &mut scalar, previous, 0).unwrap();
    assert_eq!(scalar.into_scalar(), previous as f64);
}

fn collectives(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let root = size - 1;
    // A broadcast of a transposed matrix into plain ones.
    let source = matrix(root, 4, 3);
    let mut got = if rank == root { source.clone() } else { Array2::zeros((4, 3)) };
    if rank == root {
        world.broadcast(&mut got.view_mut().reversed_axes(), root).unwrap();
    } else {
        let mut plain = Array2::<f64>::zeros((3, 4));
        world.broadcast(&mut plain, root).unwrap();
        assert_eq!(plain, source.t());
    }

    // Each rank has a column; the root gets a matrix of these columns, in reversed order.
    let mine = matrix(rank, 5, 2);
    let mut columns = Array2::<f64>::zeros((5, size));
    if rank == root {
        let mut parts = columns.slice_mut(s![.., ..;-1]);
        world.gather(&mine.column(1), &mut parts.view_mut().reversed_axes(), root).unwrap();
        for (from, column) in columns.columns().into_iter().rev().enumerate() {
            assert_eq!(column, matrix(from, 5, 2).column(1));
        }
    } else {
        world.gather(&mine.column(1), &mut (), root).unwrap();
    }

    // Rows of a matrix, of different numbers, from a matrix in columns order.
    let counts: Vec<usize> = (0..size).map(|rank| rank % 3).collect();
    let rows: usize = counts.iter().sum();
    let all = matrix(root, rows, 4);
    let fortran = {
        let mut turned = Array2::zeros((4, rows)).reversed_axes();
        turned.assign(&all);
        turned
    };
    let first: usize = counts[..rank].iter().sum();
    let mut part = Array2::<f64>::zeros((counts[rank], 4));
    world.scatter_varcount(&fortran, &counts, &mut part, root).unwrap();
    assert_eq!(part, all.slice(s![first..first + counts[rank], ..]));
    let mut again = Array2::<f64>::zeros((4, rows)).reversed_axes();
    world.all_gather_varcount(&part, &mut again, &counts).unwrap();
    assert_eq!(again, all);
    let mut later = Array2::<f64>::zeros((4, rows)).reversed_axes();
    world
        .scope(|scope| scope.iall_gather_varcount(&part, &mut later, &counts).map(drop))
        .unwrap()
        .unwrap();
    assert_eq!(later, all);

    // Blocks of a matrix, one for each rank: the root's matrix is cut into blocks of columns.
    let wide = matrix(root, 3, 2 * size);
    let mut block = Array2::<f64>::zeros((3, 2));
    let blocks: Vec<_> = wide.axis_chunks_iter(Axis(1), 2).collect();
    world.scatter_parts(if rank == root { &blocks } else { &[] }, &mut block, root).unwrap();
    assert_eq!(block, wide.slice(s![.., 2 * rank..2 * rank + 2]));
    let mut whole = Array2::<f64>::zeros((3, 2 * size));
    let mut blocks: Vec<_> = whole.axis_chunks_iter_mut(Axis(1), 2).collect();
    world.all_gather_parts(&block, &mut blocks).unwrap();
    assert_eq!(whole, wide);

    // The transposition of a matrix of `size` x `size` blocks, of which each rank has one row of blocks.
    let mine = Array3::from_shape_fn((size, 2, 3), |(to, i, j)| {
        (rank * 1000 + to * 100 + i * 10 + j) as f64
    });
    let mut got = Array3::<f64>::zeros((size, 3, 2));
    let mut turned = got.view_mut().permuted_axes([0, 2, 1]);
    world.all_to_all(&mine, &mut turned).unwrap();
    for ((from, j, i), value) in got.indexed_iter() {
        assert_eq!(*value, (from * 1000 + rank * 100 + i * 10 + j) as f64);
    }

    // Wrong shapes.
    let error = world.all_gather(&mine, &mut Array1::<f64>::zeros(6 * size * size + 1));
    let error = error.unwrap_err();
    assert_eq!((error.kind(), error.argument()), (ErrorKind::Buffer, "recv"), "{error}");
    world.barrier().unwrap();
}

/// The halo of a block with one call: columns of the neighbours in a ring.
fn halo(world: &Communicator) {
    let size = world.size();
    let ring = world.cartesian(&[size], &[true]).unwrap();
    let rank = ring.comm().rank();
    let mut block = Array2::<f64>::zeros((4, 6));
    block.slice_mut(s![.., 1..5]).assign(&matrix(rank, 4, 4));
    let (mut below, inner, mut above) = block.multi_slice_mut((s![.., 0], s![.., 1..5], s![.., 5]));
    let send = [inner.column(0), inner.column(3)];
    let mut recv = [below.view_mut(), above.view_mut()];
    ring.comm().neighbor_all_to_all_parts(&send, &mut recv).unwrap();
    assert_eq!(block.column(0), matrix((rank + size - 1) % size, 4, 4).column(3));
    assert_eq!(block.column(5), matrix((rank + 1) % size, 4, 4).column(0));
    assert_eq!(block.slice(s![.., 1..5]), matrix(rank, 4, 4));
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
struct Cell {
    kind: u8,
    value: f64,
}

/// Random views of random arrays, against copies. All ranks have the same random numbers.
fn random_views(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut random = Random(11);
    for round in 0..150 {
        let dimensions = 1 + random.below(4) as usize;
        let shape: Vec<usize> = (0..dimensions).map(|_| random.below(6) as usize).collect();
        // A view of an array that is up to twice as large, with permuted axes.
        let mut axes: Vec<usize> = (0..dimensions).collect();
        for at in (1..dimensions).rev() {
            axes.swap(at, random.below(at as u64 + 1) as usize);
        }
        let steps: Vec<isize> = (0..dimensions).map(|_| 1 + random.below(2) as isize).collect();
        let signs: Vec<bool> = (0..dimensions).map(|_| random.below(2) == 1).collect();
        let mut large = vec![0; dimensions];
        for (axis, &place) in axes.iter().enumerate() {
            large[place] = shape[axis] * steps[axis] as usize;
        }
        let full = |rank: usize| {
            let mut n = 0;
            ArrayD::from_shape_simple_fn(IxDyn(&large), || {
                n += 1;
                Cell { kind: (rank + 1) as u8, value: (rank * 100_000 + n) as f64 }
            })
        };
        let slice = |axis: ndarray::AxisDescription| ndarray::Slice {
            start: 0,
            end: None,
            step: if signs[axis.axis.index()] { -1 } else { 1 } * steps[axis.axis.index()],
        };
        let mine = full(rank);
        let mut view = mine.view().permuted_axes(IxDyn(&axes));
        view.slice_each_axis_inplace(slice);
        let theirs = full(previous);
        let mut wanted = theirs.view().permuted_axes(IxDyn(&axes));
        wanted.slice_each_axis_inplace(slice);
        assert_eq!(view.shape(), &shape[..]);
        if random.below(2) == 0 {
            let mut got = ArrayD::<Cell>::default(IxDyn(&shape));
            world.sendrecv(&view, next, round, &mut got, previous, round).unwrap();
            assert_eq!(got, wanted);
        } else {
            let plain = view.to_owned();
            let mut large = ArrayD::<Cell>::default(IxDyn(&large));
            let mut got = large.view_mut().permuted_axes(IxDyn(&axes));
            got.slice_each_axis_inplace(slice);
            world.sendrecv(&plain, next, round, &mut got, previous, round).unwrap();
            assert_eq!(got, wanted);
            let written = large.iter().filter(|cell| **cell != Cell::default()).count();
            assert_eq!(written, wanted.len());
        }
    }
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
    messages_of_one: messages, 1;
    messages_of_two: messages, 2;
    messages_of_three: messages, 3;
    collectives_of_one: collectives, 1;
    collectives_of_two: collectives, 2;
    collectives_of_three: collectives, 3;
    collectives_of_five: collectives, 5;
    halo_of_one: halo, 1;
    halo_of_two: halo, 2;
    halo_of_four: halo, 4;
    random_views_of_one: random_views, 1;
    random_views_of_two: random_views, 2;
}
