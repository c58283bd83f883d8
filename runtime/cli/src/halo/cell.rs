//! The arithmetic of one cell. The parallel and the serial solution share it.
//!
//! `solver.rs` applies the arithmetic to the rows of a block, and `serial.rs` to single cells of the whole
//! grid. Both get the same bits, because each expression below has one fixed order of operations, and Rust
//! never fuses a multiplication and an addition into one operation.

/// The coefficients of one field's equation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients {
    /// Time step times diffusivity, divided by the square of the cell size.
    pub diffusion: f64,
    /// Time step times the rate of exchange with the next field.
    pub coupling: f64,
}

impl Coefficients {
    /// Returns the coefficients for field number `field` of `fields` fields. Each field diffuses at a rate of
    /// its own, so that the verification finds swapped fields. All rates are below the stability limits of
    /// the two stencils (1/6 and 0.32).
    pub fn of(field: usize, fields: usize) -> Self {
        let diffusion = 0.125 / (1.0 + 0.25 * field as f64);
        Self { diffusion, coupling: if fields > 1 { 0.03125 } else { 0.0 } }
    }
}

/// An equation for the new value of a cell, without the coupling to the next field.
pub trait Equation {
    /// Returns the new value of a cell. `at(row, column)` returns the value of a neighbour. Rows 0 to 8 stand
    /// for the offsets (z, y) = (-1,-1), (-1,0), … (+1,+1) from the cell, and columns 0 to 2 for the offsets
    /// x = -1, 0, +1.
    fn cell(at: impl Fn(usize, usize) -> f64, c: Coefficients) -> f64;
}

/// The 7-point heat equation.
pub struct Star;

impl Equation for Star {
    #[inline(always)]
    fn cell(at: impl Fn(usize, usize) -> f64, c: Coefficients) -> f64 {
        let here = at(4, 1);
        let sum = at(1, 1) + at(3, 1) + at(4, 0) + at(4, 2) + at(5, 1) + at(7, 1);
        here + c.diffusion * (sum - 6.0 * here)
    }
}

/// The 27-point heat equation. Its isotropic Laplacian has the weights 14 for neighbours across faces, 3
/// across edges and 1 across corners, and -128 for the cell itself, all divided by 30.
pub struct Cube;

impl Equation for Cube {
    #[inline(always)]
    #[rustfmt::skip]
    fn cell(at: impl Fn(usize, usize) -> f64, c: Coefficients) -> f64 {
        let here = at(4, 1);
        let faces = at(1, 1) + at(3, 1) + at(4, 0) + at(4, 2) + at(5, 1) + at(7, 1);
        let edges = at(0, 1) + at(1, 0) + at(1, 2) + at(2, 1) + at(3, 0) + at(3, 2)
            + at(5, 0) + at(5, 2) + at(6, 1) + at(7, 0) + at(7, 2) + at(8, 1);
        let corners = at(0, 0) + at(0, 2) + at(2, 0) + at(2, 2)
            + at(6, 0) + at(6, 2) + at(8, 0) + at(8, 2);
        let sum = 14.0 * faces + 3.0 * edges + corners - 128.0 * here;
        here + c.diffusion * (sum * (1.0 / 30.0))
    }
}

/// Returns the new value of a cell including the coupling to the next field. `new` is the new value without
/// the coupling, `here` the old value of the cell, and `next` the old value of the same cell in the next
/// field.
#[inline(always)]
pub fn coupled(new: f64, here: f64, next: f64, c: Coefficients) -> f64 {
    new + c.coupling * (next - here)
}

/// Computes the new values of one row. `rows` has the nine rows of old values around it, in the order of
/// [`Equation::cell`]; each of them has one cell more than `new` at each end. `next` is the same row of the
/// next field, if there is a next field.
pub fn update_row<E: Equation>(
    new: &mut [f64],
    rows: [&[f64]; 9],
    next: Option<&[f64]>,
    c: Coefficients,
) {
    let len = new.len();
    // All slices are cut to the same length here, so that the compiler can remove the bounds checks from the
    // loops.
    let rows = rows.map(|row| &row[..len + 2]);
    match next {
        None => {
            for (i, new) in new.iter_mut().enumerate() {
                *new = E::cell(|row, column| rows[row][i + column], c);
            }
        }
        Some(next) => {
            for ((i, new), &next) in new.iter_mut().enumerate().zip(&next[..len]) {
                let value = E::cell(|row, column| rows[row][i + column], c);
                *new = coupled(value, rows[4][i + 1], next, c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_field_stays_constant_and_every_neighbour_counts() {
        let c = Coefficients::of(1, 3);
        assert_eq!(Star::cell(|_, _| 2.5, c), 2.5);
        assert!((Cube::cell(|_, _| 2.5, c) - 2.5).abs() < 1e-14);
        let base = Cube::cell(|_, _| 2.5, c);
        for row in 0..9 {
            for column in 0..3 {
                let poke = |r, k| if (r, k) == (row, column) { 3.5 } else { 2.5 };
                assert_ne!(Cube::cell(poke, c), base, "row {row} column {column}");
                let axes = usize::from(row / 3 != 1)
                    + usize::from(row % 3 != 1)
                    + usize::from(column != 1);
                assert_eq!(Star::cell(poke, c) != 2.5, axes <= 1, "row {row} column {column}");
            }
        }
    }

    #[test]
    fn a_row_is_its_cells() {
        let data: Vec<Vec<f64>> =
            (0..9).map(|r| (0..7).map(|i| f64::from(r * 7 + i).sin()).collect()).collect();
        let rows: [&[f64]; 9] = std::array::from_fn(|r| data[r].as_slice());
        let next: Vec<f64> = (0..5).map(|i| f64::from(i).cos()).collect();
        let c = Coefficients::of(0, 2);
        let mut new = [0.0; 5];
        update_row::<Cube>(&mut new, rows, Some(&next), c);
        for i in 0..5 {
            let cell = Cube::cell(|r, k| data[r][i + k], c);
            assert_eq!(new[i], coupled(cell, data[4][i + 1], next[i], c));
        }
    }
}
