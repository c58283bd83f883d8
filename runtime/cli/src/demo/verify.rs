//! Fills the field of a [`Case`] with known cells, and verifies the field bit for bit after an exchange.
//!
//! The verification checks every byte of the field. In each halo cell that is exchanged, the bytes that the
//! [`Packing`] moves must equal those of the neighbour's cell. All other bytes must be unchanged: those of
//! owned cells and of halo cells that are not exchanged, and the gaps in exchanged halo cells unless the
//! packing moves whole cells.

use bytemuck::bytes_of;

use super::cells::Made;
use crate::halo::Packing;

/// An exchange to be measured.
pub struct Case {
    /// Short name.
    pub name: &'static str,
    /// The case in words.
    pub what: &'static str,
    /// Number of owned cells of each rank along each dimension: z, y, x.
    pub shape: [usize; 3],
    /// The dimension along which the two ranks are neighbours. The grid is periodic in this dimension, so the
    /// ranks are neighbours at both ends.
    pub axis: usize,
}

/// Returns a number that identifies an owned cell of `rank` among the owned cells of both ranks.
fn number(case: &Case, rank: usize, cell: [usize; 3]) -> u64 {
    let [_, y, x] = case.shape;
    (((rank * case.shape[0] + cell[0]) * y + cell[1]) * x + cell[2]) as u64
}

/// Calls `each` with the position in memory and the coordinates of every cell. Coordinates count from the
/// first owned cell.
fn for_each_cell(shape: [usize; 3], mut each: impl FnMut(usize, [isize; 3])) {
    let [nz, ny, nx] = shape.map(|extent| extent + 2);
    for position in 0..nz * ny * nx {
        let cell = [position / nx / ny, position / nx % ny, position % nx];
        each(position, cell.map(|at| at as isize - 1));
    }
}

/// Returns the neighbour's cell that a halo cell copies; `None` for cells that the exchange does not write.
fn owner(case: &Case, cell: [isize; 3]) -> Option<[usize; 3]> {
    let mut owner = [0; 3];
    for d in 0..3 {
        let extent = case.shape[d] as isize;
        let inside = (0..extent).contains(&cell[d]);
        if d != case.axis && !inside || inside && d == case.axis {
            return None;
        }
        // The cast is lossless: `rem_euclid` never returns a negative number here.
        owner[d] = cell[d].rem_euclid(extent) as usize;
    }
    Some(owner)
}

fn is_owned(case: &Case, cell: [isize; 3]) -> bool {
    (0..3).all(|d| (0..case.shape[d] as isize).contains(&cell[d]))
}

/// Sets all cells of the field of `rank`, with blank halos.
pub fn fill<C: Made>(case: &Case, rank: usize, cells: &mut [C]) {
    for_each_cell(case.shape, |position, cell| {
        cells[position] = if is_owned(case, cell) {
            // The cast is lossless: the coordinates of an owned cell are not negative.
            C::made(number(case, rank, cell.map(|at| at as usize)))
        } else {
            C::blank()
        };
    });
}

/// Verifies the field of `rank` after `rank` and `other` have exchanged those parts of each cell that `P`
/// moves.
pub fn verify<P: Packing<Cell: Made>>(
    case: &Case,
    [rank, other]: [usize; 2],
    cells: &[P::Cell],
) -> Result<(), String> {
    let mut wrong = 0_usize;
    for_each_cell(case.shape, |position, cell| {
        let wanted = match owner(case, cell) {
            Some(owner) => {
                let mut wanted = P::Cell::blank();
                P::unpack(&P::pack(&P::Cell::made(number(case, other, owner))), &mut wanted);
                wanted
            }
            // The cast is lossless: the coordinates of an owned cell are not negative.
            None if is_owned(case, cell) => {
                P::Cell::made(number(case, rank, cell.map(|at| at as usize)))
            }
            None => P::Cell::blank(),
        };
        wrong += usize::from(bytes_of(&cells[position]) != bytes_of(&wanted));
    });
    match wrong {
        0 => Ok(()),
        _ => Err(format!(
            "demo: {}: the number of wrong cells after the exchange is {wrong}",
            case.what
        )),
    }
}

#[cfg(test)]
mod tests {
    use typepack::halo::{Element as _, Stencil, faces};

    use super::super::cells::{Gapped, Members, MembersOfWhole};
    use super::*;
    use crate::halo::{Loops, Whole};

    /// A halo cell that the neighbour fills if x faces are exchanged.
    const HALO: [usize; 3] = [2, 2, 0];
    /// An owned cell.
    const OWNED: [usize; 3] = [2, 2, 3];
    /// A halo cell that no neighbour fills if x faces are exchanged.
    const EDGE: [usize; 3] = [0, 2, 3];

    fn case(axis: usize) -> Case {
        Case { name: "test", what: "a test", shape: [3, 4, 5], axis }
    }

    fn at(case: &Case, [z, y, x]: [usize; 3]) -> usize {
        let [_, ny, nx] = case.shape.map(|extent| extent + 2);
        (z * ny + y) * nx + x
    }

    /// Returns the field of rank 0 after the hand-written loops have exchanged it with rank 1.
    fn exchanged<P: Packing<Cell: Made>>(case: &Case) -> Vec<P::Cell> {
        let padded = case.shape.map(|extent| extent + 2);
        let mut ranks = [0, 1].map(|rank| {
            let mut cells = vec![P::Cell::blank(); padded.iter().product()];
            fill(case, rank, &mut cells);
            cells
        });
        let [cells, other] = &mut ranks;
        let loops = Loops::for_this_cpu();
        let all = faces(&case.shape, 1, Stencil::Star, &P::Cell::datatype()).expect("faces");
        for face in all.iter().filter(|face| face.side.steps()[case.axis] != 0) {
            let opposite = all.iter().find(|other| other.side == face.side.opposite());
            let region = opposite.expect("an opposite side").send_region;
            let mut packed = vec![bytemuck::Zeroable::zeroed(); region.cells()];
            loops.pack::<P>(other, padded, region, &mut packed);
            loops.unpack::<P>(&packed, cells, padded, face.recv_region);
        }
        cells.clone()
    }

    /// Verifies the field after `plant` has changed one cell.
    fn planted<P: Packing<Cell: Made>>(
        axis: usize,
        cell: [usize; 3],
        plant: impl Fn(&mut P::Cell),
    ) -> Result<(), String> {
        let case = case(axis);
        let mut cells = exchanged::<P>(&case);
        plant(&mut cells[at(&case, cell)]);
        verify::<P>(&case, [0, 1], &cells)
    }

    fn one_cell_is_wrong(result: Result<(), String>) {
        assert_eq!(
            result,
            Err("demo: a test: the number of wrong cells after the exchange is 1".to_owned())
        );
    }

    #[test]
    fn the_hand_loops_pass_along_every_axis() {
        for axis in 0..3 {
            assert_eq!(planted::<Whole<f64>>(axis, HALO, |_| ()), Ok(()));
            assert_eq!(planted::<Members>(axis, HALO, |_| ()), Ok(()));
            assert_eq!(planted::<MembersOfWhole>(axis, HALO, |_| ()), Ok(()));
            assert_eq!(planted::<Whole<Gapped>>(axis, HALO, |_| ()), Ok(()));
        }
    }

    #[test]
    fn a_planted_wrong_cell_fails() {
        let next = |value: &mut f64| *value = value.next_up();
        // A change of the last bit is found in every kind of cell: exchanged, owned, or not written by the
        // exchange.
        for cell in [HALO, OWNED, EDGE] {
            one_cell_is_wrong(planted::<Whole<f64>>(2, cell, next));
        }
        // `wrong` is the neighbour's cell next to the cell that the exchange should have copied.
        let wrong = Gapped::made(number(&case(2), 1, [1, 1, 3]));
        one_cell_is_wrong(planted::<Whole<Gapped>>(2, HALO, |cell| *cell = wrong));
        one_cell_is_wrong(planted::<Members>(2, HALO, |cell| {
            Members::unpack(&Members::pack(&wrong), cell);
        }));
    }

    #[test]
    fn a_planted_wrong_gap_byte_fails() {
        for cell in [HALO, OWNED, EDGE] {
            for byte in 0..3 {
                let plant = |cell: &mut Gapped| cell.gap[byte] ^= 16;
                one_cell_is_wrong(planted::<Members>(2, cell, plant));
                one_cell_is_wrong(planted::<MembersOfWhole>(2, cell, plant));
                one_cell_is_wrong(planted::<Whole<Gapped>>(2, cell, plant));
            }
        }
        // The changed gap has the bytes of the sender's gap, which only loops that copy whole cells may
        // write.
        one_cell_is_wrong(planted::<Members>(2, HALO, |cell| cell.gap = [255; 3]));
    }

    #[test]
    fn only_loops_over_whole_cells_may_write_gaps() {
        let case = case(2);
        let whole = exchanged::<Whole<Gapped>>(&case);
        let kept = exchanged::<Members>(&case);
        assert_eq!(verify::<Whole<Gapped>>(&case, [0, 1], &whole), Ok(()));
        // Each of the two x faces has 12 cells.
        let all =
            Err("demo: a test: the number of wrong cells after the exchange is 24".to_owned());
        assert_eq!(verify::<Members>(&case, [0, 1], &whole), all);
        assert_eq!(verify::<Whole<Gapped>>(&case, [0, 1], &kept), all);
    }
}
