//! Compares the result of the parallel solution with the serial solution, bit for bit, and computes the checksum
//! of a result.
//!
//! Rank 0 compares the two after it has collected the result (`blocks.rs`). `job.rs` then tells the other
//! ranks the outcome.

use std::fmt;

use typepack::halo::Field;
use typepack::{Cartesian, Op};

use super::blocks::{for_each_owned_row, own_part};
use super::initial::mix;

/// The difference between the result (`found`) and the serial solution (`wanted`).
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    field: usize,
    /// The position of the first difference: z, y, x.
    cell: [usize; 3],
    found: f64,
    wanted: f64,
    count: usize,
    values: usize,
}

impl fmt::Display for Difference {
    /// Writes the difference as one clause.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [z, y, x] = self.cell;
        write!(
            f,
            "{} of {} values differ from the serial solution; the first is field {} at x {x}, y {y}, z {z}: \
             {:e} instead of {:e}",
            self.count, self.values, self.field, self.found, self.wanted
        )
    }
}

/// Returns the first difference and the number of values that differ; `None` if all bits are equal.
pub fn compare(found: &[Vec<f64>], wanted: &[Vec<f64>], grid: [usize; 3]) -> Option<Difference> {
    let values = wanted.iter().map(Vec::len).sum();
    let mut first = None;
    let mut count = 0;
    for (field, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        for (position, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            if found.to_bits() != wanted.to_bits() {
                count += 1;
                first.get_or_insert((field, position, *found, *wanted));
            }
        }
    }
    first.map(|(field, position, found, wanted)| Difference {
        field,
        cell: [position / grid[2] / grid[1], position / grid[2] % grid[1], position % grid[2]],
        found,
        wanted,
        count,
        values,
    })
}

/// Returns the checksum of the fields of all ranks: the sum of one hash per cell, which depends on the value, the
/// field and the position of the cell. The checksum does not depend on the decomposition.
pub fn checksum(
    grid: [usize; 3],
    cartesian: &Cartesian,
    fields: &[Field<f64, 3>],
) -> typepack::Result<u64> {
    let part = own_part(grid, cartesian);
    let mut sum = 0_u64;
    for (number, field) in fields.iter().enumerate() {
        let values = field.as_slice();
        for_each_owned_row(field.shape(), field.width(), |position, z, y| {
            let (z, y) = (part.start[0] + z, part.start[1] + y);
            let place = ((number * grid[0] + z) * grid[1] + y) * grid[2] + part.start[2];
            for (x, value) in values[position..][..part.shape[2]].iter().enumerate() {
                sum = sum.wrapping_add(mix(value.to_bits() ^ mix((place + x) as u64)));
            }
        });
    }
    // The two halves of the word are summed separately, because the sum of whole words over all ranks could
    // overflow `i64`.
    let mut halves = [(sum & 0xffff_ffff) as i64, (sum >> 32) as i64];
    cartesian.comm().all_reduce_in_place(&mut halves, Op::Sum)?;
    Ok((halves[0] as u64).wrapping_add((halves[1] as u64) << 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named_and_all_are_counted() {
        let grid = [2, 3, 4];
        let wanted = vec![vec![1.0; 24]; 2];
        assert_eq!(compare(&wanted, &wanted, grid), None);
        let mut found = wanted.clone();
        found[1][23] = 2.0;
        found[1][17] = 1.0 + f64::EPSILON;
        let difference = compare(&found, &wanted, grid).expect("two differences");
        assert_eq!((difference.field, difference.cell, difference.count), (1, [1, 1, 1], 2));
        assert!(difference.to_string().starts_with("2 of 48 values differ"));
    }

    #[test]
    fn minus_zero_is_not_zero() {
        assert!(compare(&[vec![-0.0]], &[vec![0.0]], [1, 1, 1]).is_some());
    }
}
