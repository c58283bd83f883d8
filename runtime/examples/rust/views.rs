//! Views of `ndarray` are buffers: blocks, columns and transposed matrices travel without copies by the program. The
//! example needs the feature `ndarray`.
//!
//!     mpiexec -n 4 target/debug/examples/views

use typepack::ndarray::{Array2, ArrayView2, Axis, s};

const ROWS: usize = 6;
/// The number of columns of each rank.
const WIDTH: usize = 4;

/// Returns the mean of each cell and its neighbours to the left and to the right. The first and the last column are
/// only neighbours.
fn smooth(cells: ArrayView2<'_, f64>) -> Array2<f64> {
    let last = cells.ncols() - 1;
    let (left, right) = (cells.slice(s![.., ..last - 1]), cells.slice(s![.., 2..]));
    (&left + &cells.slice(s![.., 1..last]) + right) / 3.0
}

fn main() -> typepack::Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let value = |(i, j): (usize, usize)| (10 * i + j * j) as f64;

    // Rank 0 has a matrix. Each rank gets some columns, and has room for one more column on each side.
    let matrix = Array2::from_shape_fn((ROWS, if rank == 0 { WIDTH * size } else { 0 }), value);
    let mut block = Array2::<f64>::zeros((ROWS, WIDTH + 2));
    let parts: Vec<_> = matrix.axis_chunks_iter(Axis(1), WIDTH).collect();
    world.scatter_parts(&parts, &mut block.slice_mut(s![.., 1..=WIDTH]), 0)?;

    // The ranks form a ring. Each sends its first and its last column to its neighbours, and receives theirs.
    let ring = world.cartesian(&[size], &[true])?;
    let (left, inner, right) =
        block.multi_slice_mut((s![.., 0], s![.., 1..=WIDTH], s![.., WIDTH + 1]));
    let edges = [inner.column(0), inner.column(WIDTH - 1)];
    ring.neighbor_all_to_all_parts(&edges, &mut [left, right])?;

    // Rank 0 gets the result, and transposes the matrix on the way.
    let mine = smooth(block.view());
    let mut turned = Array2::zeros((if rank == 0 { WIDTH * size } else { 0 }, ROWS));
    world.gather(&mine.t(), &mut turned, 0)?;

    if rank == 0 {
        let wrapped = |(i, j): (usize, usize)| value((i, (j + WIDTH * size - 1) % (WIDTH * size)));
        let all = Array2::from_shape_fn((ROWS, WIDTH * size + 2), wrapped);
        assert_eq!(turned, smooth(all.view()).t());
    }
    println!("rank {rank} of {size}: {} columns", mine.ncols());
    Ok(())
}
