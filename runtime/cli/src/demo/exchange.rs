//! Measures halo exchanges, with two types of cells, and verifies the exchanges bit for
//! bit. A `Way` says how the cells are exchanged: by kernels, by interpreted datatypes, or by
//! hand-written loops.
//!
//! `mod.rs` calls [`measure`] and gets one [`Record`] per [`Case`] and [`Bar`]. `cells.rs` has the cells, and `verify.rs`
//! the verification. Other programs and other virtual machines disturb a measurement. So [`quiet`] measures a
//! [`Probe`] before and after, and measures again if the two differ.

use std::time::Instant;

use typepack::Communicator;
use typepack::halo::{Field, Halo, Stencil};

use super::cells::{Gapped, Made, Members, MembersOfWhole};
use super::record::{Bar, Record};
use super::verify::{Case, fill, verify};
use crate::agree::{FAILURE, Stop, agree};
use crate::halo::{Hand, Packing, Way, Whole, exchange_alone};

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
        // The record has the number of bytes in members, without the gaps. The records of the ways with
        // datatypes have the same number.
        said(Record { us: kept.us.min(other.us), ..kept });
        said(one::<Whole<Gapped>>(world, Bar::HandWhole, case)?);
    }
    Ok(())
}

/// How often a disturbed measurement is made, at most.
const TRIES: usize = 3;
/// How much two probes may differ.
const ALIKE: f64 = 1.25;

/// What the machine can do at a moment: the least nanoseconds of a message of 8 bytes between the two ranks, there and
/// back, and of a copy of 4 MiB in memory. All ranks have the same values.
struct Probe([f64; 2]);

impl Probe {
    fn measure(comm: &Communicator) -> typepack::Result<Self> {
        const MESSAGES: usize = 200;
        const COPIES: usize = 4;
        let other = comm.size() - 1 - comm.rank();
        let word = typepack::commit(&typepack::Datatype::named(typepack::Named::U64))?;
        let (out, mut into) = ([1u64], [0u64]);
        let (from, mut to) = (vec![1u8; 4 << 20], vec![0u8; 4 << 20]);
        let mut least = [f64::INFINITY; 2];
        for _ in 0..MESSAGES {
            let begin = Instant::now();
            if comm.rank() == 0 {
                comm.send_elements(&out, &word, 1, other, 0)?;
                comm.recv_elements(&mut into, &word, 1, other, 0)?;
            } else {
                comm.recv_elements(&mut into, &word, 1, other, 0)?;
                comm.send_elements(&out, &word, 1, other, 0)?;
            }
            least[0] = least[0].min(begin.elapsed().as_secs_f64() * 1e9);
        }
        for _ in 0..COPIES {
            let begin = Instant::now();
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&mut to);
            least[1] = least[1].min(begin.elapsed().as_secs_f64() * 1e9);
        }
        comm.all_reduce_in_place(&mut least, typepack::Op::Max)?;
        Ok(Self(least))
    }

    fn is_like(&self, other: &Self) -> bool {
        let alike = |(a, b): (&f64, &f64)| a.max(*b) <= ALIKE * a.min(*b);
        self.0.iter().zip(&other.0).all(alike)
    }
}

/// Measures until the probes before and after the measurement are alike, at most [`TRIES`] times. Returns the result of
/// the last measurement, and the nanoseconds of the probe's message.
fn quiet(
    comm: &Communicator,
    mut measure: impl FnMut() -> typepack::Result<f64>,
) -> typepack::Result<(f64, f64)> {
    let mut before = Probe::measure(comm)?;
    for tries in 1.. {
        let mut slowest = [measure()?];
        comm.all_reduce_in_place(&mut slowest, typepack::Op::Max)?;
        let after = Probe::measure(comm)?;
        if tries == TRIES || before.is_like(&after) {
            return Ok((slowest[0], after.0[0]));
        }
        before = after;
    }
    unreachable!("the last try returns")
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
        // MPICH's bar is measured by datatypes.c; no way has it.
        Bar::Typepack | Bar::Interpreter | Bar::Mpich => {
            Exchanger::Halo(Halo::new(&cartesian, case.shape, 1, Stencil::Star, 1)?)
        }
    };
    let (comm, rank) = (cartesian.comm(), cartesian.comm().rank());
    let mut fields = [Field::<P::Cell, 3>::new(case.shape, 1)?];
    fill(case, rank, fields[0].as_mut_slice());
    let (us, probe_ns) = quiet(comm, || {
        let times = exchange_alone(comm, || {
            let begin = Instant::now();
            exchanger.exchange(&mut fields)?;
            Ok(begin.elapsed())
        })?;
        // The times are sorted. Other load only adds time, so the least time says how fast the exchange is.
        Ok(times[0] * 1e6)
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
    let (case, what) = (case.name.to_owned(), case.what.to_owned());
    Ok(Record { bar, case, what, bytes, us, probe_ns })
}
