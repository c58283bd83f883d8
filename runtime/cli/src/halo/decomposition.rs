//! The decomposition of the grid: the number of ranks along each dimension (the rank grid), and the cells
//! of each rank.
//!
//! The decomposition is the first step of a run. The later steps work on one [`Part`] per rank. All triples
//! are in memory order: z, y, x.
//!
//! Along each dimension, the spans of the parts cover all cells without gaps or overlaps. The first `extent %
//! parts` spans are one cell longer than the others, so the lengths of two spans differ by at most one cell.

/// Cells `start .. start + len` of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Position of the first cell.
    pub start: usize,
    /// Number of cells.
    pub len: usize,
}

/// Divides a dimension of `extent` cells into `parts` spans, and returns the span with number `index`.
pub fn span(extent: usize, parts: usize, index: usize) -> Span {
    let (len, longer) = (extent / parts, extent % parts);
    Span { start: index * len + index.min(longer), len: len + usize::from(index < longer) }
}

/// The block of the whole grid that a rank owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The position of the first cell in the grid: z, y, x.
    pub start: [usize; 3],
    /// Number of cells along each dimension: z, y, x.
    pub shape: [usize; 3],
}

/// Returns the block of the rank at `coordinates` in the rank grid `ranks`.
pub fn part(grid: [usize; 3], ranks: [usize; 3], coordinates: [usize; 3]) -> Part {
    let spans: [Span; 3] = std::array::from_fn(|d| span(grid[d], ranks[d], coordinates[d]));
    Part { start: spans.map(|span| span.start), shape: spans.map(|span| span.len) }
}

/// Returns whether every block of the rank grid `ranks` is at least `halo` cells long along every dimension.
pub fn fits(grid: [usize; 3], ranks: [usize; 3], halo: usize) -> bool {
    (0..3).all(|d| grid[d] / ranks[d] >= halo)
}

/// Chooses the rank grid for which the ranks send the fewest bytes.
///
/// Considers all rank grids of `size` ranks whose blocks are at least as long as the halo, and returns the
/// one with the smallest surface between blocks. If several have the same surface, the function prefers to
/// cut z, and then y, because the faces at such cuts consist of long rows. Returns `None` if there is no such
/// rank grid.
///
/// `dims_create` of the runtime knows the number of ranks but not the shape of the grid, so it would cut even
/// the short dimension of a flat grid.
pub fn choose(grid: [usize; 3], size: usize, halo: usize) -> Option<[usize; 3]> {
    let divisors = |n: usize| (1..=n).filter(move |d| n.is_multiple_of(*d));
    divisors(size)
        .flat_map(|z| divisors(size / z).map(move |y| [z, y, size / z / y]))
        .filter(|&ranks| fits(grid, ranks, halo))
        .min_by_key(|&ranks| {
            let cut: u128 = (0..3)
                .map(|d| {
                    let area = grid[(d + 1) % 3] as u128 * grid[(d + 2) % 3] as u128;
                    (ranks[d] as u128 - 1) * area
                })
                .sum();
            (cut, ranks[2], ranks[1])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_tile_any_dimension_evenly() {
        for extent in 1..40 {
            for parts in 1..=extent {
                let spans: Vec<Span> = (0..parts).map(|i| span(extent, parts, i)).collect();
                let mut next = 0;
                for span in &spans {
                    assert_eq!(span.start, next);
                    next += span.len;
                }
                assert_eq!(next, extent);
                let lengths = spans.iter().map(|span| span.len);
                assert!(lengths.clone().max() <= lengths.min().map(|least| least + 1));
            }
        }
    }

    #[test]
    fn the_chosen_rank_grid_cuts_the_smallest_surface() {
        assert_eq!(choose([64, 64, 64], 1, 1), Some([1, 1, 1]));
        assert_eq!(choose([64, 64, 64], 2, 1), Some([2, 1, 1]));
        assert_eq!(choose([64, 64, 64], 4, 1), Some([2, 2, 1]));
        assert_eq!(choose([64, 64, 64], 8, 1), Some([2, 2, 2]));
        assert_eq!(choose([1, 64, 64], 4, 1), Some([1, 2, 2]));
        assert_eq!(choose([16, 16, 1024], 4, 1), Some([1, 1, 4]));
    }

    #[test]
    fn a_rank_grid_must_leave_blocks_as_long_as_the_halo() {
        assert_eq!(choose([4, 4, 4], 8, 2), Some([2, 2, 2]));
        assert_eq!(choose([4, 4, 4], 8, 3), None);
        assert_eq!(choose([2, 2, 2], 16, 1), None);
        assert_eq!(choose([3, 1, 1], 2, 1), Some([2, 1, 1]));
    }

    #[test]
    fn parts_are_spans_along_each_dimension() {
        let part = part([7, 5, 4], [2, 1, 3], [1, 0, 2]);
        assert_eq!(part, Part { start: [4, 0, 3], shape: [3, 5, 1] });
    }
}
