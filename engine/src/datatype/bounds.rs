//! Size, bounds, true bounds, alignment, number of elements and depth of a type: the only place
//! that computes them.
//!
//! Called once per node by `Datatype::build`, from the constructor and the bounds of its children,
//! never from the typemap. All products and sums are taken in 128 bits and checked into 64.
//!
//! Rules (MPI-5.0 sections 5.1 and 5.1.6 to 5.1.8):
//!
//! - A lower (upper) bound marker hides all natural bounds: the bound is the least (greatest)
//!   marker. `resized` sets a pair of markers and erases those inside; markers survive any further
//!   constructor (they are "sticky").
//! - `MPI_LB` (`MPI_UB`) is a lower (upper) marker and nothing else. A type with one marker and no
//!   data has its other bound in the same place: extent 0.
//! - A type without entries and markers has bounds 0.
//! - Without an upper marker a struct is padded: its extent is rounded up to the largest alignment
//!   of its basic types. Other constructors are not padded (their extents then are what their
//!   arguments say; MPICH reads the standard in the same way, Open MPI pads every constructor).
//! - True bounds look at data only.

use super::array;
use super::{Call, Constructor};
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
    /// Basic types in the typemap; a pair counts as two.
    pub(crate) elements: i64,
    pub(crate) align: u32,
    /// Calls from here to the deepest predefined type, which has 0; stays at its largest value.
    pub(crate) depth: u32,
}

/// One bound in the making, in 128 bits.
struct Side {
    at: i128,
    origin: Origin,
}

impl Side {
    const NONE: Self = Self { at: 0, origin: Origin::Absent };

    /// Takes a bound into account: of the highest precedence the one that `keep` prefers.
    #[inline]
    fn add(&mut self, at: i128, origin: Origin, keep: impl Fn(i128, i128) -> i128) {
        if origin > self.origin {
            *self = Self { at, origin };
        } else if origin == self.origin {
            self.at = keep(self.at, at);
        }
    }
}

/// Builds bounds up from placed copies, in 128 bits.
struct Union {
    size: i128,
    /// Modulo 2^64: not more than the size, so exact when that fits.
    elements: i64,
    depth: u32,
    lower: Side,
    upper: Side,
    /// First and last byte of data; the first is above the last when there is none.
    first: i128,
    last: i128,
    align: u32,
}

impl Union {
    fn new() -> Self {
        Self {
            size: 0,
            elements: 0,
            depth: 0,
            lower: Side::NONE,
            upper: Side::NONE,
            first: i128::MAX,
            last: i128::MIN,
            align: 1,
        }
    }

    /// Adds `copies` copies of `old`, the displacements of which lie between `low` and `high` and
    /// reach both. No copies add nothing but depth.
    #[inline]
    fn place(&mut self, old: &Bounds, copies: i128, low: i128, high: i128) {
        self.depth = self.depth.max(old.depth);
        if copies == 0 {
            return;
        }
        self.size = self.size.saturating_add(times(copies, i128::from(old.size)));
        self.elements = self.elements.wrapping_add((copies as i64).wrapping_mul(old.elements));
        self.align = self.align.max(old.align);
        self.lower.add(low + i128::from(old.lower.at), old.lower.origin, i128::min);
        self.upper.add(high + i128::from(old.upper.at), old.upper.origin, i128::max);
        if old.size > 0 {
            self.first = self.first.min(low + i128::from(old.true_lb));
            self.last = self.last.max(high + i128::from(old.true_ub));
        }
    }

    /// Rounds the extent up to the alignment, unless a marker decides.
    fn pad(&mut self) {
        if self.lower.origin != Origin::Absent && self.upper.origin == Origin::Natural {
            // A power of two, like every alignment.
            let align = i128::from(self.align);
            let extent = self.upper.at - self.lower.at;
            self.upper.at = self.lower.at + ((extent + align - 1) & -align);
        }
    }

    fn finish(mut self) -> Result<Bounds> {
        match (self.lower.origin, self.upper.origin) {
            (Origin::Absent, Origin::Absent) => (self.lower.at, self.upper.at) = (0, 0),
            (Origin::Absent, _) => self.lower.at = self.upper.at,
            (_, Origin::Absent) => self.upper.at = self.lower.at,
            _ => {}
        }
        if self.first > self.last {
            (self.first, self.last) = (0, 0);
        }
        let bounds = Bounds {
            size: fit("the size", self.size)?,
            lower: Edge { at: fit("the lower bound", self.lower.at)?, origin: self.lower.origin },
            upper: Edge { at: fit("the upper bound", self.upper.at)?, origin: self.upper.origin },
            true_lb: fit("the true lower bound", self.first)?,
            true_ub: fit("the true upper bound", self.last)?,
            elements: self.elements,
            align: self.align,
            depth: self.depth.saturating_add(1),
        };
        fit("the extent", self.upper.at - self.lower.at)?;
        fit("the true extent", self.last - self.first)?;
        Ok(bounds)
    }
}

#[inline]
fn fit(what: &'static str, value: i128) -> Result<i64> {
    #[cold]
    fn refuse(what: &'static str, value: i128) -> Error {
        Error::new(
            ErrorKind::Overflow,
            "datatype",
            format!("{what} would be {value} bytes, which does not fit 64 bits"),
        )
    }
    i64::try_from(value).map_err(|_| refuse(what, value))
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
        let edge = |at: u32, marker| {
            let origin = match named.is_marker() {
                false => Origin::Natural,
                true if named == marker => Origin::Marker,
                true => Origin::Absent,
            };
            Edge { at: i64::from(at), origin }
        };
        let end =
            named.members().map_or(named.size(), |[_, (offset, second)]| offset + second.size());
        Self {
            size: i64::from(named.size()),
            lower: edge(0, Named::LB),
            upper: edge(named.extent(), Named::UB),
            true_lb: 0,
            true_ub: i64::from(end),
            elements: match named.members() {
                Some(members) => members.len() as i64,
                None => i64::from(named.size() > 0),
            },
            align: named.align(),
            depth: 0,
        }
    }

    /// Bounds of the type that `constructor` makes.
    pub(crate) fn of(constructor: &Constructor) -> Result<Self> {
        let mut union = Union::new();
        match constructor {
            Constructor::Named(named) => return Ok(Self::named(*named)),
            Constructor::Dup { old } => {
                let old = old.bounds();
                return Ok(Self { depth: old.depth.saturating_add(1), ..old.clone() });
            }
            Constructor::Composite { call, layout } => {
                let depth = match &**call {
                    Call::Darray(darray) => darray.old.bounds().depth.saturating_add(1),
                    Call::F90(_) | Call::ValueIndex { .. } => 0,
                };
                return Ok(Self { depth, ..layout.bounds().clone() });
            }
            Constructor::Resized { lb, extent, old } => {
                let upper = lb.checked_add(*extent).ok_or_else(|| {
                    Error::new(
                        ErrorKind::Overflow,
                        "extent",
                        format!("lb {lb} plus extent {extent} does not fit 64 bits"),
                    )
                })?;
                let marker = |at| Edge { at, origin: Origin::Marker };
                let old = old.bounds();
                return Ok(Self {
                    lower: marker(*lb),
                    upper: marker(upper),
                    depth: old.depth.saturating_add(1),
                    ..old.clone()
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
            Constructor::Subarray { region, order, old } => {
                let [sizes, subsizes, starts] = region.parts();
                let old = old.bounds();
                let (mut copies, mut low, mut high) = (1i128, 0i128, 0i128);
                for (dimension, stride) in array::strides(sizes, *order, old.extent())? {
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
                union.lower = Side { at: 0, origin: Origin::Marker };
                union.upper = Side { at: total, origin: Origin::Marker };
            }
        }
        union.finish()
    }
}

/// The product, saturated. Factors of 64 bits, that is nearly all, take one instruction instead of
/// a call, and constructors are to cost no more than their allocation.
#[inline]
fn times(a: i128, b: i128) -> i128 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => i128::from(a) * i128::from(b),
        _ => a.saturating_mul(b),
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
        union.place(old, 0, 0, 0);
        return Ok(());
    }
    // Three 64-bit factors (count, stride in extents, extent) can exceed even 128 bits; a
    // saturated product is refused like any other that does not fit 64.
    let (outer, inner) = (times(count - 1, stride), times(blocklength - 1, extent));
    let low = displacement(outer.min(0).saturating_add(inner.min(0)))?;
    let high = displacement(outer.max(0).saturating_add(inner.max(0)))?;
    union.place(old, times(count, blocklength), low, high);
    Ok(())
}

/// One block of `blocklength` copies at `at` bytes.
#[inline]
fn block(union: &mut Union, old: &Bounds, blocklength: i64, at: i128) -> Result<()> {
    if blocklength == 1 {
        union.place(old, 1, at, at);
        return Ok(());
    }
    let copies = i128::from(blocklength);
    let span = times((copies - 1).max(0), old.extent());
    let (low, high) = (displacement(at + span.min(0))?, displacement(at + span.max(0))?);
    union.place(old, copies, low, high);
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
        union.place(old, 0, 0, 0);
        return Ok(());
    };
    let (a, b) = (times(i128::from(least), unit), times(i128::from(greatest), unit));
    let inner = times(i128::from(blocklength - 1), old.extent());
    let low = displacement(a.min(b) + inner.min(0))?;
    let high = displacement(a.max(b) + inner.max(0))?;
    union.place(old, times(i128::from(blocklength), displacements.len() as i128), low, high);
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
    // Whether 64 bits hold every sum below, so that millions of entries need no wider ones. What
    // fits 32 bits needs no look at the entries.
    let (least, greatest) = match displacements {
        Table::Wide(_) => displacements.range().unwrap_or((0, 0)),
        _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
    };
    let (_, longest) = blocklengths.range().unwrap_or((0, 0));
    let magnitude = i128::from(least.unsigned_abs().max(greatest.unsigned_abs()));
    let farthest = times(i128::from(longest), extent.abs());
    let largest = times(magnitude, unit.abs()).saturating_add(farthest);
    let (copies, low, high) = match (i64::try_from(unit), i64::try_from(extent)) {
        (Ok(unit), Ok(extent)) if largest <= i128::from(i64::MAX) => {
            // Lists usually count in copies, which takes no multiplication.
            let in_copies = unit == extent && unit != 0;
            let (copies, low, high) = entries!(blocklengths, lengths => entries!(displacements, at => {
                let blocks = lengths.zip(at);
                if in_copies { span(blocks, 1, 1) } else { span(blocks, unit, extent) }
            }));
            match in_copies {
                // With a negative extent the highest one lies lowest.
                true => {
                    let (a, b) = (times(low.into(), unit.into()), times(high.into(), unit.into()));
                    (copies, a.min(b), a.max(b))
                }
                false => (copies, i128::from(low), i128::from(high)),
            }
        }
        _ => {
            let (mut copies, mut low, mut high) = (0i128, i128::MAX, i128::MIN);
            for (blocklength, at) in blocklengths.iter().zip(displacements.iter()) {
                if blocklength > 0 {
                    let first = times(i128::from(at), unit);
                    let last = first + times(i128::from(blocklength - 1), extent);
                    copies += i128::from(blocklength);
                    low = low.min(first.min(last));
                    high = high.max(first.max(last));
                }
            }
            (copies, low, high)
        }
    };
    let (low, high) = if copies == 0 { (0, 0) } else { (low, high) };
    union.place(old, copies, displacement(low)?, displacement(high)?);
    Ok(())
}

/// Copies in all, and the least and the greatest displacement of a copy; all displacements are
/// known to fit 64 bits.
#[inline(always)]
fn span(blocks: impl Iterator<Item = (i64, i64)>, unit: i64, extent: i64) -> (i128, i64, i64) {
    let (mut copies, mut low, mut high) = (0i128, i64::MAX, i64::MIN);
    for (blocklength, at) in blocks {
        let first = at * unit;
        let last = first + (blocklength - 1) * extent;
        copies += i128::from(blocklength);
        if blocklength > 0 {
            low = low.min(first.min(last));
            high = high.max(first.max(last));
        }
    }
    (copies, low, high)
}

/// A displacement has to fit 64 bits by itself: programs hold it as such.
#[inline]
fn displacement(bytes: i128) -> Result<i128> {
    #[cold]
    fn refuse(bytes: i128) -> Error {
        Error::new(
            ErrorKind::Overflow,
            "displacement",
            format!("an element would lie at {bytes} bytes, which does not fit 64 bits"),
        )
    }
    match i64::try_from(bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(refuse(bytes)),
    }
}
