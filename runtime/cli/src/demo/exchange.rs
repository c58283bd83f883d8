//! Measures exchanges without a solver, in one of the three ways and for two kinds of cells, and verifies
//! them bit for bit.
//!
//! `mod.rs` calls [`measure`] before it runs the solver, and gets one [`Record`] per [`Case`].
//!
//! The verification checks every byte of the arrays. A halo cell must have its neighbour's data. All other
//! bytes, the gaps inside halo cells included, must be unchanged.

use std::time::Instant;

use bytemuck::{Pod, Zeroable, bytes_of};
use typepack::halo::{Element, Field, Halo, Stencil};
use typepack::{Cartesian, Communicator, Datatype, Named};

use super::record::{Part, Record};
use crate::agree::{FAILURE, Stop, agree};
use crate::halo::{Cell, Hand, Way, exchange_alone, percentiles};

/// A cell with gaps, as a C compiler lays out `struct { char kind; int level; double value; }`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Gapped {
    kind: u8,
    gap: [u8; 3],
    level: i32,
    value: f64,
}

// SAFETY: the bit pattern of zeros is a valid value of every member.
unsafe impl Zeroable for Gapped {}
// SAFETY: `repr(C)` with no padding, since the gap is a member, and every member is `Pod`.
unsafe impl Pod for Gapped {}

impl Element for Gapped {
    fn datatype() -> Datatype {
        let members = [Named::U8, Named::I32, Named::F64].map(Datatype::named);
        let places = [0, 4, 8];
        // The arguments are constants: three members within 16 bytes.
        Datatype::structured(&[1, 1, 1], &places, &members)
            .expect("a struct of constants should be a type")
    }
}

impl Cell for Gapped {
    type Packed = [u8; 13];

    #[inline(always)]
    fn packed(self) -> [u8; 13] {
        let mut data = [0; 13];
        data[0] = self.kind;
        data[1..5].copy_from_slice(&self.level.to_ne_bytes());
        data[5..].copy_from_slice(&self.value.to_ne_bytes());
        data
    }

    #[inline(always)]
    fn unpack(&mut self, data: [u8; 13]) {
        let [kind, a, b, c, d, value @ ..] = data;
        self.kind = kind;
        self.level = i32::from_ne_bytes([a, b, c, d]);
        self.value = f64::from_ne_bytes(value);
    }
}

/// Cells with contents that the verification knows.
trait Made: Cell {
    /// Returns the cell with this number. Its gaps are all ones, unlike those of a blank cell.
    fn made(number: u64) -> Self;
    /// Returns a halo cell before the exchange.
    fn blank() -> Self;
}

impl Made for f64 {
    fn made(number: u64) -> Self {
        number as f64 + 0.25
    }

    fn blank() -> Self {
        -1.0
    }
}

impl Made for Gapped {
    fn made(number: u64) -> Self {
        // Each member gets some bits of the number.
        Self { kind: number as u8, gap: [255; 3], level: number as i32, value: number as f64 + 0.5 }
    }

    fn blank() -> Self {
        Self { kind: 77, gap: [1, 2, 3], level: -1, value: -1.0 }
    }
}

/// An exchange to be measured.
struct Case {
    name: &'static str,
    what: &'static str,
    /// Owned cells of each rank: z, y, x.
    shape: [usize; 3],
    /// The dimension along which the two ranks are neighbours, at both ends.
    axis: usize,
}

/// Faces with one cell per row, so that every cell is in a cache line of its own.
const DOUBLES: Case =
    Case { name: "doubles", what: "exchange: x faces, 64^3 doubles", shape: [64; 3], axis: 2 };
const STRUCTS: Case = Case {
    name: "structs",
    what: "exchange: x faces, 64^3 {char, int, double}",
    shape: [64; 3],
    axis: 2,
};
/// Faces of whole rows, whose cells have gaps.
const ROWS: Case = Case {
    name: "rows",
    what: "exchange: z faces, 64^3 {char, int, double}",
    shape: [64; 3],
    axis: 0,
};

/// Measures and verifies all cases. Calls `said` after each of them.
pub fn measure(world: &Communicator, way: Way, said: &mut impl FnMut(Record)) -> Result<(), Stop> {
    said(one::<f64>(world, way, &DOUBLES)?);
    said(one::<Gapped>(world, way, &STRUCTS)?);
    said(one::<Gapped>(world, way, &ROWS)?);
    Ok(())
}

/// The exchange in one of the ways.
enum Exchanger<C: Made> {
    Halo(Halo<C, 3>),
    Hand(Hand<C>),
}

impl<C: Made> Exchanger<C> {
    fn exchange(&mut self, fields: &mut [Field<C, 3>]) -> typepack::Result<()> {
        match self {
            Self::Halo(halo) => halo.exchange(fields),
            Self::Hand(hand) => hand.exchange(fields, |_, _| Ok(())),
        }
    }
}

fn one<C: Made>(world: &Communicator, way: Way, case: &Case) -> Result<Record, Stop> {
    let (mut ranks, mut periodic) = ([1; 3], [false; 3]);
    (ranks[case.axis], periodic[case.axis]) = (world.size(), true);
    let cartesian = world.cartesian(&ranks, &periodic)?;
    let mut exchanger = match way {
        Way::Hand => Exchanger::Hand(Hand::new(&cartesian, case.shape, 1, Stencil::Star, 1)?),
        Way::Typepack | Way::Interpreter => {
            Exchanger::Halo(Halo::new(&cartesian, case.shape, 1, Stencil::Star, 1)?)
        }
    };
    let mut fields = [Field::<C, 3>::new(case.shape, 1)?];
    fill(&cartesian, case, &mut fields[0]);
    let times = exchange_alone(cartesian.comm(), || {
        let begin = Instant::now();
        exchanger.exchange(&mut fields)?;
        Ok(begin.elapsed())
    })?;
    // Verifies one more exchange, into blank halos.
    fill(&cartesian, case, &mut fields[0]);
    cartesian.comm().barrier()?;
    exchanger.exchange(&mut fields)?;
    agree(world, verify(&cartesian, case, &fields[0]), FAILURE)?;
    let face: usize = (0..3).filter(|d| *d != case.axis).map(|d| case.shape[d]).product();
    // Each of the ranks sends two faces.
    let bytes = (face * size_of::<C::Packed>() * 2 * world.size()) as u64;
    let [_, median, _] = percentiles(&times);
    Ok(Record {
        way,
        case: case.name.to_owned(),
        what: case.what.to_owned(),
        bytes,
        parts: vec![Part { name: "exchange".to_owned(), us: median * 1e6 }],
    })
}

/// Returns the number of an owned cell of `rank` in the whole grid.
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
        // Lossless: not negative.
        owner[d] = cell[d].rem_euclid(extent) as usize;
    }
    Some(owner)
}

fn is_owned(case: &Case, cell: [isize; 3]) -> bool {
    (0..3).all(|d| (0..case.shape[d] as isize).contains(&cell[d]))
}

fn fill<C: Made>(cartesian: &Cartesian, case: &Case, field: &mut Field<C, 3>) {
    let rank = cartesian.comm().rank();
    let cells = field.as_mut_slice();
    for_each_cell(case.shape, |position, cell| {
        cells[position] = if is_owned(case, cell) {
            // Lossless: not negative.
            C::made(number(case, rank, cell.map(|at| at as usize)))
        } else {
            C::blank()
        };
    });
}

fn verify<C: Made>(cartesian: &Cartesian, case: &Case, field: &Field<C, 3>) -> Result<(), String> {
    let rank = cartesian.comm().rank();
    let other = cartesian.comm().size() - 1 - rank;
    let (cells, mut wrong) = (field.as_slice(), 0_usize);
    for_each_cell(case.shape, |position, cell| {
        let wanted = match owner(case, cell) {
            Some(owner) => {
                let mut wanted = C::blank();
                wanted.unpack(C::made(number(case, other, owner)).packed());
                wanted
            }
            // Lossless: not negative.
            None if is_owned(case, cell) => C::made(number(case, rank, cell.map(|at| at as usize))),
            None => C::blank(),
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
