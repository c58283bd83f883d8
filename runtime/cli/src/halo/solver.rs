//! The parallel solution on the block of one rank. A step with an exchange starts the exchange, computes the
//! interior of the block meanwhile, waits for the exchange, and then computes the rim. The other steps only
//! compute.
//!
//! `job.rs` makes a [`Solver`] for a [`Part`] and runs its steps. `report.rs` prints the [`Phases`] of the
//! solver.
//!
//! # A wide halo
//!
//! With a halo of W cells, one exchange is enough for W steps. After the exchange, all W layers of the halo
//! are valid. Each step uses up one layer: the first step computes the block and W-1 layers around it, the
//! second step computes the block and W-2 layers, and the last step computes only the block. So a rank
//! computes some cells that a neighbour computes too. If two steps follow one exchange, the second step needs
//! the corners of the layers, even with the 7-point equation. So the ranks exchange with 26 neighbours,
//! except for the 7-point equation with W = 1, which needs only 6.
//!
//! # Invariants
//!
//! - Cells beyond a fixed boundary hold [`WALL`] in both buffers, and no step writes them.
//! - During an exchange the solver computes only cells whose new values do not depend on the halo, and reads
//!   only owned cells.

use std::time::{Duration, Instant};

use typepack::halo::{Field, Halo, Interior, Stencil as Neighbours};
use typepack::{Cartesian, Communicator};

use super::cell::{Coefficients, Cube, Equation, Star, coupled, update_row};
use super::decomposition::Part;
use super::hand::Hand;
use super::initial::WALL;
use super::loops::Whole;
use super::options::{Boundary, Stencil, Way};

/// The time that a rank has spent in each phase of its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Starting exchanges: posting the receives, packing, and posting the sends.
    pub start: Duration,
    /// Computing the interior while messages are under way, including the calls that make progress for the
    /// messages.
    pub interior: Duration,
    /// Waiting for the end of the exchange, including the unpacking in this time.
    pub wait: Duration,
    /// Computing the cells whose new values depend on the halo.
    pub rim: Duration,
    /// Steps without an exchange (wide halos only).
    pub plain: Duration,
}

/// The computation of one rank: its fields, their exchange, and the times.
pub struct Solver {
    halo: Halo<f64, 3>,
    /// The exchange with hand-written loops; `None` if the options select datatypes.
    hand: Option<Hand<Whole<f64>>>,
    now: Vec<Field<f64, 3>>,
    new: Vec<Field<f64, 3>>,
    /// For each dimension: whether the grid continues beyond the low end of the block, and whether it
    /// continues beyond the high end.
    open: [[bool; 2]; 3],
    stencil: Stencil,
    phases: Phases,
    exchanges: u64,
    steps: usize,
}

/// A box of cells: `low[d] .. high[d]` along each dimension `d`, in coordinates of the padded field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    low: [usize; 3],
    high: [usize; 3],
}

impl Solver {
    /// Makes a solver for a block and allocates its fields. The dimensions of `cartesian` are those of the
    /// rank grid, z first.
    pub fn new(
        cartesian: &Cartesian,
        part: Part,
        stencil: Stencil,
        boundary: Boundary,
        width: usize,
        fields: usize,
        way: Way,
    ) -> typepack::Result<Self> {
        let neighbours = match stencil {
            Stencil::Star if width == 1 => Neighbours::Star,
            _ => Neighbours::Box,
        };
        let allocate = || {
            (0..fields)
                .map(|_| {
                    let mut field = Field::new(part.shape, width)?;
                    field.as_mut_slice().fill(WALL);
                    Ok(field)
                })
                .collect::<typepack::Result<Vec<_>>>()
        };
        let open = std::array::from_fn(|d| {
            let coordinate = cartesian.coords()[d];
            let periodic = boundary == Boundary::Periodic;
            [periodic || coordinate > 0, periodic || coordinate + 1 < cartesian.dims()[d]]
        });
        let hand = match way {
            Way::Hand => Some(Hand::new(cartesian, part.shape, width, neighbours, fields)?),
            Way::Typepack | Way::Interpreter => None,
        };
        Ok(Self {
            hand,
            now: allocate()?,
            new: allocate()?,
            halo: Halo::new(cartesian, part.shape, width, neighbours, fields)?,
            open,
            stencil,
            phases: Phases::default(),
            exchanges: 0,
            steps: 0,
        })
    }

    /// Returns the current fields.
    pub fn fields(&self) -> &[Field<f64, 3>] {
        &self.now
    }

    /// Returns the current fields for writing, so that the caller can set them before the first step.
    pub fn fields_mut(&mut self) -> &mut [Field<f64, 3>] {
        &mut self.now
    }

    /// Returns the halo exchange of this solver.
    pub fn halo(&self) -> &Halo<f64, 3> {
        &self.halo
    }

    /// Returns the time spent in each phase in all steps so far.
    pub fn phases(&self) -> Phases {
        self.phases
    }

    /// Returns the number of exchanges in all steps so far.
    pub fn exchanges(&self) -> u64 {
        self.exchanges
    }

    /// Computes one time step.
    pub fn step(&mut self) -> typepack::Result<()> {
        match self.stencil {
            Stencil::Star => self.step_with::<Star>(),
            Stencil::Box => self.step_with::<Cube>(),
        }
    }

    /// Exchanges the halos of the current fields once, without computation. Returns the time that this took.
    pub fn exchange(&mut self) -> typepack::Result<Duration> {
        let begin = Instant::now();
        match &mut self.hand {
            None => self.halo.exchange(&mut self.now)?,
            Some(hand) => hand.exchange(&mut self.now, |_, _| Ok(()))?,
        }
        Ok(begin.elapsed())
    }

    fn step_with<E: Equation>(&mut self) -> typepack::Result<()> {
        let width = self.halo.width();
        let age = self.steps % width;
        let all = self.range(width - 1 - age);
        let begin = Instant::now();
        if age == 0 {
            let inner = self.inner();
            let (started, computed);
            match &mut self.hand {
                None => {
                    let mut exchange = self.halo.start(&mut self.now)?;
                    started = Instant::now();
                    let interior = exchange.interior();
                    let rows = DuringExchange { interior: &interior, width };
                    compute_interior::<E>(&rows, &mut self.new, inner, || interior.progress())?;
                    computed = Instant::now();
                    exchange.wait()?;
                }
                Some(hand) => {
                    let (new, mut times) = (&mut self.new, [begin; 2]);
                    hand.exchange(&mut self.now, |now, comm: &Communicator| {
                        times[0] = Instant::now();
                        compute_interior::<E>(&Complete::of(now), new, inner, || comm.progress())?;
                        times[1] = Instant::now();
                        Ok(())
                    })?;
                    [started, computed] = times;
                }
            }
            let waited = Instant::now();
            compute_around::<E>(&self.now, &mut self.new, all, inner);
            self.phases.start += started - begin;
            self.phases.interior += computed - started;
            self.phases.wait += waited - computed;
            self.phases.rim += waited.elapsed();
            self.exchanges += 1;
        } else {
            let nothing = Range { low: all.low, high: all.low };
            compute_around::<E>(&self.now, &mut self.new, all, nothing);
            self.phases.plain += begin.elapsed();
        }
        std::mem::swap(&mut self.now, &mut self.new);
        self.steps += 1;
        Ok(())
    }

    /// Returns the cells of the block and of `layers` layers around it, except for cells beyond a fixed
    /// boundary.
    fn range(&self, layers: usize) -> Range {
        let (shape, width) = (self.halo.shape(), self.halo.width());
        Range {
            low: std::array::from_fn(|d| width - if self.open[d][0] { layers } else { 0 }),
            high: std::array::from_fn(|d| {
                width + shape[d] + if self.open[d][1] { layers } else { 0 }
            }),
        }
    }

    /// Returns the cells of the block whose neighbours are all in the block. The range is empty if the block
    /// is less than 3 cells long along some dimension.
    fn inner(&self) -> Range {
        let (shape, width) = (self.halo.shape(), self.halo.width());
        Range { low: [width + 1; 3], high: shape.map(|extent| width + extent.max(2) - 1) }
    }
}

/// Read access to segments of rows of the current fields. Indices are coordinates in the padded fields.
trait Rows {
    fn row(&self, field: usize, z: usize, y: usize, x: usize, len: usize) -> &[f64];
}

/// Read access to rows of owned cells while an exchange is under way.
struct DuringExchange<'a> {
    interior: &'a Interior<'a, f64, 3>,
    width: usize,
}

impl Rows for DuringExchange<'_> {
    #[inline(always)]
    fn row(&self, field: usize, z: usize, y: usize, x: usize, len: usize) -> &[f64] {
        let w = self.width;
        self.interior.cells(field, [z - w, y - w, x - w], len)
    }
}

/// Read access to rows of the whole padded fields. Used when no exchange is under way, and during an exchange with
/// hand-written loops, which receives into separate buffers.
struct Complete<'a> {
    fields: Vec<&'a [f64]>,
    padded: [usize; 3],
}

impl Rows for Complete<'_> {
    #[inline(always)]
    fn row(&self, field: usize, z: usize, y: usize, x: usize, len: usize) -> &[f64] {
        &self.fields[field][(z * self.padded[1] + y) * self.padded[2] + x..][..len]
    }
}

impl<'a> Complete<'a> {
    fn of(fields: &'a [Field<f64, 3>]) -> Self {
        Self {
            fields: fields.iter().map(Field::as_slice).collect(),
            padded: fields[0].padded_shape(),
        }
    }
}

fn compute_interior<E: Equation>(
    rows: &impl Rows,
    new: &mut [Field<f64, 3>],
    inner: Range,
    progress: impl Fn() -> typepack::Result<()>,
) -> typepack::Result<()> {
    let fields = new.len();
    for (field, new) in new.iter_mut().enumerate() {
        let padded = new.padded_shape();
        let new = new.as_mut_slice();
        for z in inner.low[0]..inner.high[0] {
            for y in inner.low[1]..inner.high[1] {
                let x = inner.low[2]..inner.high[2];
                compute_row::<E>(rows, new, padded, (field, fields), [z, y], x);
            }
            // Messages make progress only during calls to the library, so the solver makes such a call after
            // each plane.
            progress()?;
        }
    }
    Ok(())
}

/// Computes the new values of the cells of `all` that are not in `hole`.
fn compute_around<E: Equation>(
    now: &[Field<f64, 3>],
    new: &mut [Field<f64, 3>],
    all: Range,
    hole: Range,
) {
    let fields = now.len();
    let padded = now[0].padded_shape();
    let rows = Complete::of(now);
    let empty = (0..3).any(|d| hole.low[d] >= hole.high[d]);
    for (field, new) in new.iter_mut().enumerate() {
        let new = new.as_mut_slice();
        for z in all.low[0]..all.high[0] {
            for y in all.low[1]..all.high[1] {
                let x = all.low[2]..all.high[2];
                let beside = empty
                    || !(hole.low[0]..hole.high[0]).contains(&z)
                    || !(hole.low[1]..hole.high[1]).contains(&y);
                let number = (field, fields);
                if beside {
                    compute_row::<E>(&rows, new, padded, number, [z, y], x);
                } else {
                    for x in [x.start..hole.low[2], hole.high[2]..x.end] {
                        compute_few::<E>(&rows, new, number, [z, y], x);
                    }
                }
            }
        }
    }
}

/// Computes the same values as [`compute_row`], but is faster for very short rows. At each end along x, the
/// rim has at most W cells per row, where W is the width of the halo. Preparing the nine slices of
/// `compute_row` would take longer than computing these few cells.
#[inline(always)]
fn compute_few<E: Equation>(
    rows: &Complete<'_>,
    new: &mut [f64],
    (field, fields): (usize, usize),
    [z, y]: [usize; 2],
    x: std::ops::Range<usize>,
) {
    let [_, py, px] = rows.padded;
    let (now, next) = (rows.fields[field], rows.fields[(field + 1) % fields]);
    let c = Coefficients::of(field, fields);
    let before = ((z - 1) * py + y - 1) * px;
    for x in x {
        let around = before + x - 1;
        let value = E::cell(|row, column| now[around + (row / 3 * py + row % 3) * px + column], c);
        let here = (z * py + y) * px + x;
        new[here] = if fields > 1 { coupled(value, now[here], next[here], c) } else { value };
    }
}

#[inline(always)]
fn compute_row<E: Equation>(
    rows: &impl Rows,
    new: &mut [f64],
    padded: [usize; 3],
    (field, fields): (usize, usize),
    [z, y]: [usize; 2],
    x: std::ops::Range<usize>,
) {
    if x.is_empty() {
        return;
    }
    let len = x.len();
    let around = std::array::from_fn(|row| {
        rows.row(field, z + row / 3 - 1, y + row % 3 - 1, x.start - 1, len + 2)
    });
    let next = (fields > 1).then(|| rows.row((field + 1) % fields, z, y, x.start, len));
    let start = (z * padded[1] + y) * padded[2] + x.start;
    let c = Coefficients::of(field, fields);
    update_row::<E>(&mut new[start..start + len], around, next, c);
}
