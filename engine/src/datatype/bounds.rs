//! Size, bounds, true bounds and alignment of a type: the only place that computes them.
//!
//! Called once per node by `Datatype::build`, from the constructor and the bounds of its children,
//! never from the typemap. All products and sums are taken in 128 bits and checked into 64.
//!
//! Rules (MPI-5.0 sections 5.1 and 5.1.6 to 5.1.8):
//!
//! - A lower (upper) bound marker hides all natural bounds: the bound is the least (greatest)
//!   marker. `resized` sets a pair of markers and erases those inside; markers survive any further
//!   constructor (they are "sticky").
//! - A type without entries and markers has bounds 0.
//! - Without an upper marker a struct is padded: its extent is rounded up to the largest alignment
//!   of its basic types. Other constructors are not padded (their extents then are what their
//!   arguments say; MPICH reads the standard in the same way, Open MPI pads every constructor).
//! - True bounds look at data only.

use super::Constructor;
use super::array;
use crate::error::{Error, ErrorKind, Result};
use crate::scalar::Named;
use crate::table::{Table, entries};

/// One bound of a type and where it comes from. The order of kinds is the order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// No entry, no marker.
    Absent,
    /// From the data.
    Natural,
    /// From a marker.
    Marker,
}

/// A bound in bytes with its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    at: i64,
    origin: Origin,
}

/// What is known of a type without looking at its typemap. All in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) size: i64,
    lower: Edge,
    upper: Edge,
    pub(crate) true_lb: i64,
    pub(crate) true_ub: i64,
    pub(crate) align: u32,
}

/// Builds bounds up from placed copies, in 128 bits.
struct Union {
    size: i128,
    lower: Option<(i128, Origin)>,
    upper: Option<(i128, Origin)>,
    data: Option<(i128, i128)>,
    align: u32,
}

impl Union {
    fn new() -> Self {
        Self { size: 0, lower: None, upper: None, data: None, align: 1 }
    }

    /// Adds `copies` copies of `old`, the displacements of which lie between `low` and `high` and
    /// reach both.
    fn place(&mut self, old: &Bounds, copies: i128, low: i128, high: i128) {
        if copies == 0 {
            return;
        }
        self.size = self.size.saturating_add(copies.saturating_mul(i128::from(old.size)));
        self.align = self.align.max(old.align);
        if old.lower.origin != Origin::Absent {
            let at = low + i128::from(old.lower.at);
            self.lower = Some(match self.lower {
                Some((best, origin)) if origin > old.lower.origin => (best, origin),
                Some((best, origin)) if origin == old.lower.origin => (best.min(at), origin),
                _ => (at, old.lower.origin),
            });
        }
        if old.upper.origin != Origin::Absent {
            let at = high + i128::from(old.upper.at);
            self.upper = Some(match self.upper {
                Some((best, origin)) if origin > old.upper.origin => (best, origin),
                Some((best, origin)) if origin == old.upper.origin => (best.max(at), origin),
                _ => (at, old.upper.origin),
            });
        }
        if old.size > 0 {
            let (first, last) = (low + i128::from(old.true_lb), high + i128::from(old.true_ub));
            self.data = Some(match self.data {
                Some((a, b)) => (a.min(first), b.max(last)),
                None => (first, last),
            });
        }
    }

    /// Rounds the extent up to the alignment, unless a marker decides.
    fn pad(&mut self) {
        if let (Some((lower, _)), Some((upper, Origin::Natural))) = (self.lower, &mut self.upper) {
            let align = i128::from(self.align);
            *upper = lower + (*upper - lower + align - 1).div_euclid(align) * align;
        }
    }

    fn finish(self) -> Result<Bounds> {
        let fit = |what: &str, value: i128| {
            i64::try_from(value).map_err(|_| {
                Error::new(
                    ErrorKind::Overflow,
                    "datatype",
                    format!("{what} would be {value} bytes, which does not fit 64 bits"),
                )
            })
        };
        let edge = |what, side: Option<(i128, Origin)>| {
            let (at, origin) = side.unwrap_or((0, Origin::Absent));
            Ok::<Edge, Error>(Edge { at: fit(what, at)?, origin })
        };
        let lower = edge("the lower bound", self.lower)?;
        let upper = edge("the upper bound", self.upper)?;
        let (first, last) = self.data.unwrap_or((0, 0));
        let bounds = Bounds {
            size: fit("the size", self.size)?,
            lower,
            upper,
            true_lb: fit("the true lower bound", first)?,
            true_ub: fit("the true upper bound", last)?,
            align: self.align,
        };
        fit("the extent", i128::from(bounds.ub()) - i128::from(bounds.lb()))?;
        fit("the true extent", last - first)?;
        Ok(bounds)
    }
}

impl Bounds {
    pub(crate) fn lb(&self) -> i64 {
        self.lower.at
    }

    pub(crate) fn ub(&self) -> i64 {
        self.upper.at
    }

    fn extent(&self) -> i128 {
        i128::from(self.ub()) - i128::from(self.lb())
    }

    /// Bounds of a named type.
    pub(crate) fn named(named: Named) -> Self {
        let natural = |at| Edge { at, origin: Origin::Natural };
        let end =
            named.members().map_or(named.size(), |[_, (offset, second)]| offset + second.size());
        Self {
            size: i64::from(named.size()),
            lower: natural(0),
            upper: natural(i64::from(named.extent())),
            true_lb: 0,
            true_ub: i64::from(end),
            align: named.align(),
        }
    }

    /// Bounds of the type that `constructor` makes.
    pub(crate) fn of(constructor: &Constructor) -> Result<Self> {
        let mut union = Union::new();
        match constructor {
            Constructor::Named(named) => return Ok(Self::named(*named)),
            Constructor::Dup { old } => return Ok(old.bounds().clone()),
            Constructor::Resized { lb, extent, old } => {
                let upper = lb.checked_add(*extent).ok_or_else(|| {
                    Error::new(
                        ErrorKind::Overflow,
                        "extent",
                        format!("lb {lb} plus extent {extent} does not fit 64 bits"),
                    )
                })?;
                let marker = |at| Edge { at, origin: Origin::Marker };
                return Ok(Self {
                    lower: marker(*lb),
                    upper: marker(upper),
                    ..old.bounds().clone()
                });
            }
            Constructor::Contiguous { count, old } => {
                repeat(&mut union, old.bounds(), 1, *count, 0)?;
            }
            Constructor::Vector { count, blocklength, stride, old } => {
                let stride = i128::from(*stride) * old.bounds().extent();
                repeat(&mut union, old.bounds(), *count, *blocklength, stride)?;
            }
            Constructor::Hvector { count, blocklength, stride, old } => {
                repeat(&mut union, old.bounds(), *count, *blocklength, i128::from(*stride))?;
            }
            Constructor::Indexed { blocklengths, displacements, old } => {
                let unit = old.bounds().extent();
                scatter(&mut union, old.bounds(), blocklengths, displacements, unit)?;
            }
            Constructor::Hindexed { blocklengths, displacements, old } => {
                scatter(&mut union, old.bounds(), blocklengths, displacements, 1)?;
            }
            Constructor::IndexedBlock { blocklength, displacements, old } => {
                let unit = old.bounds().extent();
                scatter_equal(&mut union, old.bounds(), *blocklength, displacements, unit)?;
            }
            Constructor::HindexedBlock { blocklength, displacements, old } => {
                scatter_equal(&mut union, old.bounds(), *blocklength, displacements, 1)?;
            }
            Constructor::Struct { blocklengths, displacements, types } => {
                for ((blocklength, displacement), old) in
                    blocklengths.iter().zip(displacements.iter()).zip(types)
                {
                    block(&mut union, old.bounds(), blocklength, i128::from(displacement))?;
                }
                union.pad();
            }
            Constructor::Subarray { sizes, subsizes, starts, order, old } => {
                let old = old.bounds();
                let strides = array::strides(sizes, *order, old.extent())?;
                let (mut copies, mut low, mut high) = (1i128, 0i128, 0i128);
                for (dimension, stride) in strides.iter().enumerate() {
                    copies *= i128::from(subsizes[dimension]);
                    let first = i128::from(starts[dimension]) * stride;
                    let last = first + i128::from(subsizes[dimension] - 1) * stride;
                    low += first.min(last);
                    high += first.max(last);
                }
                union.place(old, copies, displacement(low)?, displacement(high)?);
                // MPI-5.0 section 5.1.3: lower bound 0 and the extent of the whole array, as if
                // set by markers.
                let total = array::elements(sizes)? * old.extent();
                union.lower = Some((0, Origin::Marker));
                union.upper = Some((total, Origin::Marker));
            }
        }
        union.finish()
    }
}

/// `count` blocks of `blocklength` copies, `stride` bytes apart (contiguous: one block).
fn repeat(
    union: &mut Union,
    old: &Bounds,
    count: i64,
    blocklength: i64,
    stride: i128,
) -> Result<()> {
    let (count, blocklength, extent) = (i128::from(count), i128::from(blocklength), old.extent());
    if count == 0 || blocklength == 0 {
        return Ok(());
    }
    // Three 64-bit factors (count, stride in extents, extent) can exceed even 128 bits; a
    // saturated product is refused like any other that does not fit 64.
    let (outer, inner) = ((count - 1).saturating_mul(stride), (blocklength - 1) * extent);
    let low = displacement(outer.min(0).saturating_add(inner.min(0)))?;
    let high = displacement(outer.max(0).saturating_add(inner.max(0)))?;
    union.place(old, count * blocklength, low, high);
    Ok(())
}

/// One block of `blocklength` copies at `at` bytes.
fn block(union: &mut Union, old: &Bounds, blocklength: i64, at: i128) -> Result<()> {
    if blocklength > 0 {
        let last = at + i128::from(blocklength - 1) * old.extent();
        let (low, high) = (displacement(at.min(last))?, displacement(at.max(last))?);
        union.place(old, i128::from(blocklength), low, high);
    }
    Ok(())
}

/// Blocks of `blocklength` copies at each of `displacements` times `unit` bytes: only the least
/// and the greatest displacement matter.
fn scatter_equal(
    union: &mut Union,
    old: &Bounds,
    blocklength: i64,
    displacements: &Table,
    unit: i128,
) -> Result<()> {
    let Some((least, greatest)) = displacements.range().filter(|_| blocklength > 0) else {
        return Ok(());
    };
    let (a, b) = (i128::from(least) * unit, i128::from(greatest) * unit);
    let inner = i128::from(blocklength - 1) * old.extent();
    let low = displacement(a.min(b) + inner.min(0))?;
    let high = displacement(a.max(b) + inner.max(0))?;
    union.place(old, i128::from(blocklength) * displacements.len() as i128, low, high);
    Ok(())
}

/// Blocks of `blocklengths[i]` copies at `displacements[i] * unit` bytes.
fn scatter(
    union: &mut Union,
    old: &Bounds,
    blocklengths: &Table,
    displacements: &Table,
    unit: i128,
) -> Result<()> {
    let extent = old.extent();
    let ranges = (displacements.range(), blocklengths.range());
    let (Some((least, greatest)), Some((_, longest))) = ranges else { return Ok(()) };
    // Whether 64 bits hold every sum below, so that millions of entries need no wider ones.
    let magnitude = least.unsigned_abs().max(greatest.unsigned_abs());
    let largest = i128::from(magnitude) * unit.abs() + i128::from(longest) * extent.abs();
    let (copies, low, high) = match (i64::try_from(unit), i64::try_from(extent)) {
        (Ok(unit), Ok(extent)) if largest <= i128::from(i64::MAX) => {
            let blocks = Blocks { unit, extent };
            let (copies, low, high) = entries!(blocklengths, lengths => entries!(displacements, at => blocks.span(lengths.zip(at))));
            (copies, i128::from(low), i128::from(high))
        }
        _ => {
            let (mut copies, mut low, mut high) = (0i128, i128::MAX, i128::MIN);
            for (blocklength, at) in blocklengths.iter().zip(displacements.iter()) {
                if blocklength > 0 {
                    let first = i128::from(at) * unit;
                    let last = first + i128::from(blocklength - 1) * extent;
                    copies += i128::from(blocklength);
                    low = low.min(first.min(last));
                    high = high.max(first.max(last));
                }
            }
            (copies, low, high)
        }
    };
    if copies > 0 {
        union.place(old, copies, displacement(low)?, displacement(high)?);
    }
    Ok(())
}

/// Blocks whose positions are known to fit 64 bits.
struct Blocks {
    unit: i64,
    extent: i64,
}

impl Blocks {
    /// Copies in all, and the least and the greatest displacement of a copy.
    fn span(&self, blocks: impl Iterator<Item = (i64, i64)>) -> (i128, i64, i64) {
        let (mut copies, mut low, mut high) = (0i128, i64::MAX, i64::MIN);
        for (blocklength, at) in blocks {
            let first = at * self.unit;
            let last = first + (blocklength - 1) * self.extent;
            copies += i128::from(blocklength);
            if blocklength > 0 {
                low = low.min(first.min(last));
                high = high.max(first.max(last));
            }
        }
        (copies, low, high)
    }
}

/// A displacement has to fit 64 bits by itself: programs hold it as such.
fn displacement(bytes: i128) -> Result<i128> {
    match i64::try_from(bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(Error::new(
            ErrorKind::Overflow,
            "displacement",
            format!("an element would lie at {bytes} bytes, which does not fit 64 bits"),
        )),
    }
}
