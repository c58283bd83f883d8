//! Measures halo exchanges without a solver, with two types of cells, and verifies the exchanges bit for
//! bit. A `Way` says how the cells are exchanged: by kernels, by interpreted datatypes, or by
//! hand-written loops.
//!
//! `mod.rs` calls [`measure`] before it runs the solver, and gets one [`Record`] per [`Case`] and [`Bar`].
//! `cells.rs` has the cells, and `verify.rs` the verification.

use std::time::Instant;

use typepack::Communicator;
use typepack::halo::{Field, Halo, Stencil};

use super::cells::{Gapped, Made, Members, MembersOfWhole};
use super::record::{Bar, Part, Record};
use super::verify::{Case, fill, verify};
use crate::agree::{FAILURE, Stop, agree};
use crate::halo::{Hand, Packing, Way, Whole, exchange_alone, percentiles};

/// This case and `STRUCTS` exchange faces that have one cell per row. So every exchanged cell is in a cache
/// line of its own.
const DOUBLES: Case =
    Case { name: "doubles", what: "exchange: x faces, 64^3 doubles", shape: [64; 3], axis: 2 };
const STRUCTS: Case = Case {
    name: "structs",
    what: "exchange: x faces, 64^3 {char, int, double}",
    shape: [64; 3],
    axis: 2,
};
/// Exchanges faces that consist of whole rows of cells with gaps.
const ROWS: Case = Case {
    name: "rows",
    what: "exchange: z faces, 64^3 {char, int, double}",
    shape: [64; 3],
    axis: 0,
};

/// Measures and verifies all cases, and calls `said` with each record.
pub fn measure(world: &Communicator, way: Way, said: &mut impl FnMut(Record)) -> Result<(), Stop> {
    let bar = Bar::of(way);
    said(one::<Whole<f64>>(world, bar, &DOUBLES)?);
    for case in [&STRUCTS, &ROWS] {
        let kept = one::<Members>(world, bar, case)?;
        if way != Way::Hand {
            said(kept);
            continue;
        }
        // There are two usual ways to leave gaps unchanged, and which of them is faster depends on the
        // machine. The record has the time of the faster one.
        let other = one::<MembersOfWhole>(world, bar, case)?;
        let us = kept.us().min(other.us());
        let parts = vec![Part { name: "exchange".to_owned(), us }];
        // The record has the number of bytes in members, without the gaps. The records of the ways with
        // datatypes have the same number.
        said(Record { parts, ..kept });
        said(one::<Whole<Gapped>>(world, Bar::HandWhole, case)?);
    }
    Ok(())
}

/// The exchange, with datatypes or with hand-written loops.
enum Exchanger<P: Packing> {
    Halo(Halo<P::Cell, 3>),
    Hand(Hand<P>),
}

impl<P: Packing> Exchanger<P> {
    fn exchange(&mut self, fields: &mut [Field<P::Cell, 3>]) -> typepack::Result<()> {
        match self {
            Self::Halo(halo) => halo.exchange(fields),
            Self::Hand(hand) => hand.exchange(fields, |_, _| Ok(())),
        }
    }
}

/// Measures and verifies one case. `P` says which parts of each cell the exchange moves, whether by hand
/// or by a datatype.
fn one<P: Packing<Cell: Made>>(
    world: &Communicator,
    bar: Bar,
    case: &Case,
) -> Result<Record, Stop> {
    let (mut ranks, mut periodic) = ([1; 3], [false; 3]);
    (ranks[case.axis], periodic[case.axis]) = (world.size(), true);
    let cartesian = world.cartesian(&ranks, &periodic)?;
    let mut exchanger = match bar {
        Bar::Hand | Bar::HandWhole => {
            Exchanger::<P>::Hand(Hand::new(&cartesian, case.shape, 1, Stencil::Star, 1)?)
        }
        Bar::Typepack | Bar::Interpreter => {
            Exchanger::Halo(Halo::new(&cartesian, case.shape, 1, Stencil::Star, 1)?)
        }
    };
    let (comm, rank) = (cartesian.comm(), cartesian.comm().rank());
    let mut fields = [Field::<P::Cell, 3>::new(case.shape, 1)?];
    fill(case, rank, fields[0].as_mut_slice());
    let times = exchange_alone(comm, || {
        let begin = Instant::now();
        exchanger.exchange(&mut fields)?;
        Ok(begin.elapsed())
    })?;
    // The times are measured. Now make one more exchange, into blank halos, and verify it.
    fill(case, rank, fields[0].as_mut_slice());
    comm.barrier()?;
    exchanger.exchange(&mut fields)?;
    let other = comm.size() - 1 - rank;
    agree(world, verify::<P>(case, [rank, other], fields[0].as_slice()), FAILURE)?;
    let face: usize = (0..3).filter(|d| *d != case.axis).map(|d| case.shape[d]).product();
    // Each rank sends two faces.
    let bytes = (face * size_of::<P::Packed>() * 2 * world.size()) as u64;
    let [_, median, _] = percentiles(&times);
    Ok(Record {
        bar,
        case: case.name.to_owned(),
        what: case.what.to_owned(),
        bytes,
        parts: vec![Part { name: "exchange".to_owned(), us: median * 1e6 }],
    })
}
