//! The serial solution on the whole grid, with which `--verify` compares the result.
//!
//! The serial solution has no blocks, no halos and no datatypes: each cell reads its neighbours in the whole
//! grid. Its loops also run in a different order than those of the parallel solution. The two solutions share
//! only the arithmetic of one cell (`cell.rs`) and the values at time 0 (`initial.rs`), so the comparison can
//! find an error in any other part of either solution.

use super::cell::{Coefficients, Cube, Equation, Star, coupled};
use super::initial::WALL;
use super::options::{Boundary, Stencil};

/// Returns the fields after `steps` time steps. `now` has the fields at time 0.
pub fn solve(
    mut now: Vec<Vec<f64>>,
    grid: [usize; 3],
    stencil: Stencil,
    boundary: Boundary,
    steps: usize,
) -> Vec<Vec<f64>> {
    let mut new = now.clone();
    for _ in 0..steps {
        match stencil {
            Stencil::Star => step::<Star>(&now, &mut new, grid, boundary),
            Stencil::Box => step::<Cube>(&now, &mut new, grid, boundary),
        }
        std::mem::swap(&mut now, &mut new);
    }
    now
}

fn step<E: Equation>(
    now: &[Vec<f64>],
    new: &mut [Vec<f64>],
    [nz, ny, nx]: [usize; 3],
    boundary: Boundary,
) {
    let wall = vec![WALL; nx];
    for (field, new) in new.iter_mut().enumerate() {
        let c = Coefficients::of(field, now.len());
        let cube = &now[field];
        let next = &now[(field + 1) % now.len()];
        for z in 0..nz {
            for y in 0..ny {
                let rows: [&[f64]; 9] = std::array::from_fn(|row| {
                    let z = neighbour(z, row / 3, nz, boundary);
                    let y = neighbour(y, row % 3, ny, boundary);
                    match (z, y) {
                        (Some(z), Some(y)) => &cube[(z * ny + y) * nx..][..nx],
                        _ => &wall,
                    }
                });
                let start = (z * ny + y) * nx;
                for x in 0..nx {
                    let value = if 0 < x && x + 1 < nx {
                        E::cell(|row, column| rows[row][x + column - 1], c)
                    } else {
                        let at = |row: usize, column| {
                            neighbour(x, column, nx, boundary).map_or(WALL, |x| rows[row][x])
                        };
                        E::cell(at, c)
                    };
                    new[start + x] = if now.len() > 1 {
                        coupled(value, cube[start + x], next[start + x], c)
                    } else {
                        value
                    };
                }
            }
        }
    }
}

/// Moves from `place` along a dimension of `extent` cells. Returns the previous position if `step` is 0,
/// `place` itself if `step` is 1, and the next position if `step` is 2. Beyond a periodic boundary, the
/// position wraps around; beyond a fixed boundary, the result is `None`.
fn neighbour(place: usize, step: usize, extent: usize, boundary: Boundary) -> Option<usize> {
    match (place + step, boundary) {
        (0, Boundary::Periodic) => Some(extent - 1),
        (0, Boundary::Fixed) => None,
        (after, Boundary::Periodic) if after > extent => Some(0),
        (after, Boundary::Fixed) if after > extent => None,
        (after, _) => Some(after - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::initial::generate;
    use super::*;

    #[test]
    fn neighbours_wrap_or_meet_the_wall() {
        let of = |place, boundary| [0, 1, 2].map(|step| neighbour(place, step, 3, boundary));
        assert_eq!(of(0, Boundary::Periodic), [Some(2), Some(0), Some(1)]);
        assert_eq!(of(2, Boundary::Periodic), [Some(1), Some(2), Some(0)]);
        assert_eq!(of(0, Boundary::Fixed), [None, Some(0), Some(1)]);
        assert_eq!(of(2, Boundary::Fixed), [Some(1), Some(2), None]);
        let single = [0, 1, 2].map(|step| neighbour(0, step, 1, Boundary::Periodic));
        assert_eq!(single, [Some(0); 3]);
    }

    #[test]
    fn heat_is_kept_in_a_periodic_grid_and_drifts_to_the_wall_in_a_fixed_one() {
        let grid = [4, 5, 6];
        for stencil in [Stencil::Star, Stencil::Box] {
            let start = generate(grid, 1);
            let total = |fields: &[Vec<f64>]| fields[0].iter().sum::<f64>();
            let before = total(&start);
            let after = solve(start.clone(), grid, stencil, Boundary::Periodic, 40);
            assert!((total(&after) - before).abs() < 1e-9 * before);
            let cold = solve(start, grid, stencil, Boundary::Fixed, 2000);
            assert!(cold[0].iter().all(|value| (value - WALL).abs() < 1e-6));
        }
    }

    #[test]
    fn no_step_is_the_initial_field() {
        let start = generate([2, 3, 4], 2);
        assert_eq!(solve(start.clone(), [2, 3, 4], Stencil::Box, Boundary::Fixed, 0), start);
    }
}
