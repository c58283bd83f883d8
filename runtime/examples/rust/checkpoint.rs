//! A checkpoint without a file. Every rank packs its state (a step, a time, the inner cells of a
//! field) into one buffer and sends the buffer to its right neighbour, which keeps it. After a
//! loss, the neighbour sends the buffer back and the rank unpacks its state from it.
//!
//! Run it with `mpiexec -n 2 checkpoint`; any number of ranks works.

use typepack::engine::{pack_at, unpack_at};
use typepack::{Datatype, Named, Order, Result, commit};

/// Number of cells of the field along each dimension. These numbers include a halo of one cell on
/// each side.
const ROWS: usize = 10;
const COLUMNS: usize = 14;

#[derive(Clone, Debug, PartialEq)]
struct State {
    step: u64,
    time: f64,
    field: Vec<f64>,
}

fn main() -> Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);

    let byte = commit(&Datatype::named(Named::U8))?;
    let word = commit(&Datatype::named(Named::U64))?;
    let double = Datatype::named(Named::F64);
    let (rows, columns) = (ROWS as i64, COLUMNS as i64);
    let inner =
        Datatype::subarray(&[rows, columns], &[rows - 2, columns - 2], &[1, 1], Order::C, &double)?;
    let (double, inner) = (commit(&double)?, commit(&inner)?);

    let cell = |index: usize| (rank * 1000 + index) as f64;
    let saved = State { step: 40, time: 0.125, field: (0..ROWS * COLUMNS).map(cell).collect() };

    // Pack the state. Each call appends one part to the buffer and advances the position.
    let bytes = word.packed_bytes(1)? + double.packed_bytes(1)? + inner.packed_bytes(1)?;
    let mut buffer = vec![0u8; bytes as usize];
    let mut position = 0;
    pack_at(&word, 1, &[saved.step], &mut buffer, &mut position)?;
    pack_at(&double, 1, &[saved.time], &mut buffer, &mut position)?;
    pack_at(&inner, 1, &saved.field, &mut buffer, &mut position)?;
    assert_eq!(position, buffer.len());

    // The neighbour keeps the checkpoint; later it sends the checkpoint back.
    let mut kept = vec![0u8; buffer.len()];
    world.sendrecv_elements(&buffer, &byte, bytes, right, 0, &mut kept, &byte, bytes, left, 0)?;
    buffer.fill(0);
    world.sendrecv_elements(&kept, &byte, bytes, left, 1, &mut buffer, &byte, bytes, right, 1)?;

    // Unpack into an empty state, in the order in which the state was packed. The checkpoint does
    // not contain the halo cells.
    let (mut step, mut time, mut field) = ([0u64], [0.0], vec![0.0; ROWS * COLUMNS]);
    let mut position = 0;
    unpack_at(&word, 1, &buffer, &mut position, &mut step)?;
    unpack_at(&double, 1, &buffer, &mut position, &mut time)?;
    unpack_at(&inner, 1, &buffer, &mut position, &mut field)?;

    let mut wanted = saved;
    for (index, value) in wanted.field.iter_mut().enumerate() {
        let (row, column) = (index / COLUMNS, index % COLUMNS);
        if row == 0 || row == ROWS - 1 || column == 0 || column == COLUMNS - 1 {
            *value = 0.0;
        }
    }
    assert_eq!(State { step: step[0], time: time[0], field }, wanted);
    println!("rank {rank}: restored step {} from {bytes} bytes", step[0]);
    Ok(())
}
