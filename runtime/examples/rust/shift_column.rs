//! A first datatype. Rank 0 sends the first column of a matrix, and rank 1 receives it as the last
//! column of its own matrix. No loop copies anything, because the datatype says which doubles make
//! up a column.
//!
//! Run it with `mpiexec -n 2 shift_column`.

use typepack::{Datatype, Named, Result, commit};

const ROWS: usize = 4;
const COLUMNS: usize = 6;

fn main() -> Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();

    // 4 blocks of 1 double; each block starts 6 doubles after the one before it.
    let double = Datatype::named(Named::F64);
    let column = commit(&Datatype::vector(ROWS as i64, 1, COLUMNS as i64, &double)?)?;

    let mut matrix = [0.0; ROWS * COLUMNS];
    match world.rank() {
        0 => {
            for row in 0..ROWS {
                matrix[row * COLUMNS] = 1.0 + row as f64;
            }
            world.send_elements(&matrix, &column, 1, 1, 0)?; // 1 column to rank 1 with tag 0
        }
        1 => {
            // The slice begins at the first element of the last column.
            world.recv_elements(&mut matrix[COLUMNS - 1..], &column, 1, 0, 0)?;
            for row in matrix.chunks(COLUMNS) {
                println!("{row:?}");
            }
        }
        _ => {}
    }
    Ok(())
}
