//! Compares the result of the parallel solution with the serial solution, bit for bit.
//!
//! Rank 0 compares the two after it has collected the result (`blocks.rs`). `job.rs` then tells the other
//! ranks the outcome.

use std::fmt;

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
