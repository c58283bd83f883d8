//! Size, bounds, true bounds, alignment, number of elements and depth of a type. No other file
//! computes them.
//!
//! [`Bounds::of`] is called once for each node that a constructor call makes. The input is the
//! constructor and the bounds of its children, never the typemap. Sizes, bounds and displacements of
//! copies must fit in an `i64`, and the code checks this. The first attempt computes in 64 bits. If a
//! number does not fit, a second attempt computes in 128 bits. The second attempt may succeed, because
//! the number may be only an intermediate result; for example, a marker may replace the bound that did
//! not fit. If the second attempt fails, its error states the number that did not fit.
//!
//! Rules (MPI-5.0 sections 5.1 and 5.1.6 to 5.1.8):
//!
//! - If a type has lower (upper) bound markers, they replace the bounds of the data: the bound is the
//!   position of the least (greatest) marker. `resized`, `subarray` and `darray` erase all markers
//!   inside their child and set a new pair. All other constructors keep the markers of their children
//!   (markers are "sticky").
//! - `MPI_LB` (`MPI_UB`) is only a lower (upper) marker and has no data. If a type has only lower
//!   markers or only upper markers, and no data, its other bound is at the same position, so its
//!   extent is 0.
//! - Both bounds of a type without data and without markers are 0.
//! - A struct without an upper marker is padded: its extent is rounded up to a multiple of the
//!   largest alignment of its basic types. Other constructors add no padding, so their extents follow
//!   from their arguments alone. (MPICH reads the standard the same way; Open MPI pads every
//!   constructor.)
//! - The true bounds depend only on data, not on markers or padding.

use super::array;
use super::{Call, Constructor};
use crate::error::{Error, ErrorKind, Result};
use crate::named::Named;
use std::ops::BitAnd;
use typepack_leaf::{Table, entries};

/// The origin of a bound of a type. A later variant takes precedence over an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// The type has neither data nor a marker that sets this bound.
    Absent,
    /// The bound comes from the data.
    Natural,
    /// The bound comes from a marker.
    Marker,
}

/// A bound in bytes, and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    at: i64,
    origin: Origin,
}

/// The properties of a type that are computed without its typemap. Sizes and positions are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) size: i64,
    lower: Edge,
    upper: Edge,
    pub(crate) true_lb: i64,
    pub(crate) true_ub: i64,
    /// Number of basic types in the typemap; a pair counts as two.
    pub(crate) elements: i64,
    pub(crate) align: u32,
    /// Greatest number of constructor calls on a path from this type down to a predefined type; 0 for a
    /// predefined type. The number saturates at the maximum of `u32`.
    pub(crate) depth: u32,
    /// At least the number of program nodes that the lowering of this type makes (`ir/lower.rs`). The number is too
    /// large if the type uses another type more than once, and saturates at the maximum of `u32`.
    pub(crate) nodes: u32,
}

/// Maximum number of program nodes that one constructor call adds for each block of copies of a child, and for
/// itself. (A subarray adds one more for each dimension.)
const NODES: u32 = 3;

/// The integer types in which bounds are computed. In `i64`, the first number that does not fit ends
/// the attempt. In `i128`, sums and products saturate. If a saturated value is part of the result, it is
/// refused at the end, because it does not fit in an `i64`.
trait Integer: Copy + Ord + From<i64> + Into<i128> + TryFrom<i128> + BitAnd<Output = Self> {
    const MIN: Self;
    const MAX: Self;

    fn plus(self, other: Self) -> Result<Self>;
    fn times(self, other: Self) -> Result<Self>;

    fn minus(self, other: Self) -> Result<Self>;

    #[inline(always)]
    fn of(value: i128) -> Result<Self> {
        Self::try_from(value).map_err(|_| too_wide())
    }
}

/// Returns the error that ends the attempt in 64 bits. The caller then repeats the computation in 128
/// bits and discards this error.
#[cold]
fn too_wide() -> Error {
    Error::new(
        ErrorKind::Overflow,
        "datatype",
        "the attempt in 64 bits overflowed; the caller must repeat it in 128 bits",
    )
}

impl Integer for i64 {
    const MIN: Self = i64::MIN;
    const MAX: Self = i64::MAX;

    #[inline(always)]
    fn plus(self, other: Self) -> Result<Self> {
        self.checked_add(other).ok_or_else(too_wide)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Result<Self> {
        self.checked_sub(other).ok_or_else(too_wide)
    }

    #[inline(always)]
    fn times(self, other: Self) -> Result<Self> {
        self.checked_mul(other).ok_or_else(too_wide)
    }
}

impl Integer for i128 {
    const MIN: Self = i128::MIN;
    const MAX: Self = i128::MAX;

    fn plus(self, other: Self) -> Result<Self> {
        Ok(self.saturating_add(other))
    }

    fn minus(self, other: Self) -> Result<Self> {
        Ok(self.saturating_sub(other))
    }

    fn times(self, other: Self) -> Result<Self> {
        Ok(self.saturating_mul(other))
    }
}

/// One bound (lower or upper) while it is being computed.
struct Side<I> {
    at: I,
    origin: Origin,
}

impl<I: Integer> Side<I> {
    /// Combines this bound with another, which is at `at` and has origin `origin`. If the two bounds
    /// have different origins, the bound whose origin takes precedence remains; if they have the same
    /// origin, `keep` selects one of the two positions.
    #[inline(always)]
    fn add(&mut self, at: I, origin: Origin, keep: impl Fn(I, I) -> I) {
        if origin > self.origin {
            *self = Self { at, origin };
        } else if origin == self.origin {
            self.at = keep(self.at, at);
        }
    }
}

/// The union of the bounds of the copies placed so far.
struct Union<I> {
    size: I,
    /// Number of basic types, computed modulo 2^64. The true number is never greater than the size,
    /// so this value is exact if the size fits in an `i64`.
    elements: i64,
    depth: u32,
    nodes: u32,
    lower: Side<I>,
    upper: Side<I>,
    /// Positions of the first byte of data and of one past the last byte. If there is no data,
    /// `first` is greater than `last`.
    first: I,
    last: I,
    align: u32,
}

impl<I: Integer> Union<I> {
    fn new() -> Self {
        Self {
            size: I::from(0),
            elements: 0,
            depth: 0,
            nodes: NODES,
            lower: Side { at: I::from(0), origin: Origin::Absent },
            upper: Side { at: I::from(0), origin: Origin::Absent },
            first: I::MAX,
            last: I::MIN,
            align: 1,
        }
    }

    /// Adds `copies` copies of `old`. `low` and `high` are the least and the greatest displacement of
    /// a copy. If `copies` is 0, only the depth and the number of nodes change.
    #[inline(always)]
    fn place(&mut self, old: &Bounds, copies: I, low: I, high: I) -> Result<()> {
        self.depth = self.depth.max(old.depth);
        self.nodes = self.nodes.saturating_add(old.nodes.saturating_add(NODES));
        if copies == I::from(0) {
            return Ok(());
        }
        self.size = self.size.plus(copies.times(old.size.into())?)?;
        let number: i128 = copies.into();
        self.elements = self.elements.wrapping_add((number as i64).wrapping_mul(old.elements));
        self.align = self.align.max(old.align);
        self.lower.add(low.plus(old.lower.at.into())?, old.lower.origin, I::min);
        self.upper.add(high.plus(old.upper.at.into())?, old.upper.origin, I::max);
        if old.size > 0 {
            self.first = self.first.min(low.plus(old.true_lb.into())?);
            self.last = self.last.max(high.plus(old.true_ub.into())?);
        }
        Ok(())
    }

    /// Rounds the extent up to a multiple of the alignment, unless a marker sets the upper bound.
    fn pad(&mut self) -> Result<()> {
        if self.lower.origin != Origin::Absent && self.upper.origin == Origin::Natural {
            // The mask below works because every alignment is a power of two.
            let align = i64::from(self.align);
            let extent = self.upper.at.minus(self.lower.at)?;
            let padded = extent.plus(I::from(align - 1))? & I::from(-align);
            self.upper.at = self.lower.at.plus(padded)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Bounds> {
        match (self.lower.origin, self.upper.origin) {
            (Origin::Absent, Origin::Absent) => {
                (self.lower.at, self.upper.at) = (I::from(0), I::from(0));
            }
            (Origin::Absent, _) => self.lower.at = self.upper.at,
            (_, Origin::Absent) => self.upper.at = self.lower.at,
            _ => {}
        }
        if self.first > self.last {
            (self.first, self.last) = (I::from(0), I::from(0));
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
            nodes: self.nodes,
        };
        fit("the extent", self.upper.at.minus(self.lower.at)?)?;
        fit("the true extent", self.last.minus(self.first)?)?;
        Ok(bounds)
    }
}

#[inline(always)]
fn fit<I: Integer>(what: &'static str, value: I) -> Result<i64> {
    #[cold]
    fn refuse(what: &'static str, value: i128) -> Error {
        Error::new(
            ErrorKind::Overflow,
            "datatype",
            format!("{what} would be {value} bytes, which does not fit in a signed 64-bit integer"),
        )
    }
    let value: i128 = value.into();
    i64::try_from(value).map_err(|_| refuse(what, value))
}

impl Bounds {
    pub(crate) fn lb(&self) -> i64 {
        self.lower.at
    }

    pub(crate) fn ub(&self) -> i64 {
        self.upper.at
    }

    /// Returns the extent. The subtraction cannot overflow, because `finish` checked that the extent
    /// fits in an `i64`.
    fn extent(&self) -> i64 {
        self.ub() - self.lb()
    }

    /// Returns the bounds of a named type.
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
            nodes: NODES,
        }
    }

    /// Computes the bounds of the type that the call `constructor` makes.
    #[inline]
    pub(crate) fn of(constructor: &Constructor) -> Result<Self> {
        Self::computed::<i64>(constructor).or_else(|_| Self::computed::<i128>(constructor))
    }

    fn computed<I: Integer>(constructor: &Constructor) -> Result<Self> {
        let mut union = Union::<I>::new();
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
                        format!(
                            "lb {lb} plus extent {extent} does not fit in a signed 64-bit integer"
                        ),
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
                repeat(&mut union, old.bounds(), 1, *count, I::from(0))?;
            }
            Constructor::Vector { count, blocklength, stride, old } => {
                let stride = I::from(*stride).times(old.bounds().extent().into())?;
                repeat(&mut union, old.bounds(), *count, *blocklength, stride)?;
            }
            Constructor::Hvector { count, blocklength, stride, old } => {
                repeat(&mut union, old.bounds(), *count, *blocklength, I::from(*stride))?;
            }
            Constructor::Indexed { blocklengths, displacements, old } => {
                let unit = i128::from(old.bounds().extent());
                scatter(&mut union, old.bounds(), blocklengths, displacements, unit)?;
            }
            Constructor::Hindexed { blocklengths, displacements, old } => {
                scatter(&mut union, old.bounds(), blocklengths, displacements, 1)?;
            }
            Constructor::IndexedBlock { blocklength, displacements, old } => {
                let unit = i128::from(old.bounds().extent());
                scatter_equal(&mut union, old.bounds(), *blocklength, displacements, unit)?;
            }
            Constructor::HindexedBlock { blocklength, displacements, old } => {
                scatter_equal(&mut union, old.bounds(), *blocklength, displacements, 1)?;
            }
            Constructor::Struct { blocklengths, displacements, types } => {
                for (i, old) in types.iter().enumerate() {
                    let at = I::from(displacements.get(i));
                    block(&mut union, old.bounds(), blocklengths.get(i), at)?;
                }
                union.pad()?;
            }
            Constructor::Subarray { region, order, old } => {
                let [sizes, subsizes, starts] = region.parts();
                let old = old.bounds();
                let (mut copies, mut low, mut high) = (1i128, 0i128, 0i128);
                let extent = i128::from(old.extent());
                for (dimension, stride) in array::strides(sizes, *order, extent)? {
                    copies *= i128::from(subsizes[dimension]);
                    let first = i128::from(starts[dimension]) * stride;
                    let last = first + i128::from(subsizes[dimension] - 1) * stride;
                    low += first.min(last);
                    high += first.max(last);
                }
                place_wide(&mut union, old, copies, low, high)?;
                // The cast loses no bits: an array has less than 64 dimensions of more than one element, and
                // the others add no node.
                union.nodes = union.nodes.saturating_add(sizes.len().min(64) as u32);
                // MPI-5.0 section 5.1.3: the lower bound is 0, and the extent is that of the whole
                // array, as if markers had set them.
                let total = I::of(array::elements(sizes)? * extent)?;
                union.lower = Side { at: I::from(0), origin: Origin::Marker };
                union.upper = Side { at: total, origin: Origin::Marker };
            }
        }
        union.finish()
    }
}

/// Returns the product, saturated to 128 bits. Nearly all factors fit in 64 bits; for these factors
/// the product takes one instruction instead of a function call. This matters because computing the
/// bounds should not cost more than allocating the node.
#[inline]
fn times(a: i128, b: i128) -> i128 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => i128::from(a) * i128::from(b),
        _ => a.saturating_mul(b),
    }
}

/// Places `count` blocks, `stride` bytes apart, each of `blocklength` copies. A contiguous type is
/// one block.
#[inline(always)]
fn repeat<I: Integer>(
    union: &mut Union<I>,
    old: &Bounds,
    count: i64,
    blocklength: i64,
    stride: I,
) -> Result<()> {
    let zero = I::from(0);
    if count == 0 || blocklength == 0 {
        return union.place(old, zero, zero, zero);
    }
    // The product of three 64-bit factors (the count, the stride in extents, and the extent) can
    // exceed even 128 bits. It then saturates, and a saturated product is refused like any other
    // number that does not fit in an `i64`.
    let outer = I::from(count - 1).times(stride)?;
    let inner = I::from(blocklength - 1).times(old.extent().into())?;
    let low = displacement(outer.min(zero).plus(inner.min(zero))?)?;
    let high = displacement(outer.max(zero).plus(inner.max(zero))?)?;
    union.place(old, I::from(count).times(blocklength.into())?, low, high)
}

/// Places one block of `blocklength` copies at displacement `at`, in bytes.
#[inline(always)]
fn block<I: Integer>(union: &mut Union<I>, old: &Bounds, blocklength: i64, at: I) -> Result<()> {
    if blocklength == 1 {
        return union.place(old, I::from(1), at, at);
    }
    let zero = I::from(0);
    let span = I::from((blocklength - 1).max(0)).times(old.extent().into())?;
    let low = displacement(at.plus(span.min(zero))?)?;
    let high = displacement(at.plus(span.max(zero))?)?;
    union.place(old, blocklength.into(), low, high)
}

/// Calls [`Union::place`] with numbers that were computed in 128 bits. Returns an error if a
/// displacement does not fit in an `i64`, or if the number of copies does not fit in an `I`.
fn place_wide<I: Integer>(
    union: &mut Union<I>,
    old: &Bounds,
    copies: i128,
    low: i128,
    high: i128,
) -> Result<()> {
    let (low, high) = (displacement(low)?, displacement(high)?);
    union.place(old, I::of(copies)?, I::of(low)?, I::of(high)?)
}

/// Places one block of `blocklength` copies at each entry of `displacements`. The entries are in units
/// of `unit` bytes. The union depends only on the least and the greatest displacement.
fn scatter_equal<I: Integer>(
    union: &mut Union<I>,
    old: &Bounds,
    blocklength: i64,
    displacements: &Table,
    unit: i128,
) -> Result<()> {
    let Some((least, greatest)) = displacements.range().filter(|_| blocklength > 0) else {
        return place_wide(union, old, 0, 0, 0);
    };
    let (a, b) = (times(i128::from(least), unit), times(i128::from(greatest), unit));
    let inner = times(i128::from(blocklength - 1), i128::from(old.extent()));
    let (low, high) = (a.min(b) + inner.min(0), a.max(b) + inner.max(0));
    let copies = times(i128::from(blocklength), displacements.len() as i128);
    place_wide(union, old, copies, low, high)
}

/// Places, for every `i`, a block of `blocklengths[i]` copies at `displacements[i] * unit` bytes.
fn scatter<I: Integer>(
    union: &mut Union<I>,
    old: &Bounds,
    blocklengths: &Table,
    displacements: &Table,
    unit: i128,
) -> Result<()> {
    let extent = i128::from(old.extent());
    // First decide whether every sum below fits in an `i64`, because a loop over millions of entries
    // is faster in 64 bits than in 128. A table of 32-bit entries need not be scanned for this: its
    // entries are taken to reach from the least to the greatest `i32`.
    let (least, greatest) = match displacements {
        Table::Wide(_) => displacements.range().unwrap_or((0, 0)),
        _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
    };
    let (shortest, longest) = blocklengths.range().unwrap_or((0, 0));
    let magnitude = i128::from(least.unsigned_abs().max(greatest.unsigned_abs()));
    let farthest = times(i128::from(longest), extent.abs());
    let largest = times(magnitude, unit.abs()).saturating_add(farthest);
    let (copies, low, high) = match (i64::try_from(unit), i64::try_from(extent)) {
        (Ok(unit), Ok(extent)) if largest <= i128::from(i64::MAX) => {
            // In most lists, displacements are in units of the extent of `old`. For such lists, the
            // loop computes in the same unit and needs no multiplication.
            let in_copies = unit == extent && unit != 0;
            let short = match (blocklengths, displacements) {
                (Table::Short(lengths), Table::Narrow(at)) if shortest > 0 => match in_copies {
                    true => short_span(lengths, at, 1),
                    false if unit == 1 => short_span(lengths, at, extent),
                    false => None,
                },
                _ => None,
            };
            let (copies, low, high) = short.unwrap_or_else(|| {
                entries!(blocklengths, lengths => entries!(displacements, at => {
                    let blocks = lengths.zip(at);
                    if in_copies { span(blocks, 1, 1) } else { span(blocks, unit, extent) }
                }))
            });
            match in_copies {
                // `low` and `high` count extents of `old` here. If the extent is negative, `high` is the
                // lower address.
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
    place_wide(union, old, copies, low, high)
}

/// Returns the number of copies, and the least and the greatest displacement of a copy. The caller
/// has checked that the displacements of all copies fit in an `i64`. The displacement of an empty
/// block may wrap around, but it is not used.
#[inline(always)]
fn span(blocks: impl Iterator<Item = (i64, i64)>, unit: i64, extent: i64) -> (i128, i64, i64) {
    let (mut copies, mut low, mut high) = (0i128, i64::MAX, i64::MIN);
    for (blocklength, at) in blocks {
        let first = at.wrapping_mul(unit);
        let last = first.wrapping_add((blocklength - 1).wrapping_mul(extent));
        copies += i128::from(blocklength);
        if blocklength > 0 {
            low = low.min(first.min(last));
            high = high.max(first.max(last));
        }
    }
    (copies, low, high)
}

/// Does what [`span`] does for a `unit` of 1, with 32-bit numbers, for which the compiler uses vector
/// instructions on every target. No length may be 0. Returns `None` if `extent` is negative or large, or if
/// the displacement of a copy does not fit in an `i32`.
#[inline(always)]
fn short_span(lengths: &[u8], at: &[i32], extent: i64) -> Option<(i128, i64, i64)> {
    /// The greatest extent for which 254 extents, the distance from the first to the last copy of the longest
    /// block, fit in an `i32`.
    const MOST: i64 = i32::MAX as i64 / (u8::MAX as i64 - 1);
    let extent = i32::try_from(extent).ok().filter(|_| (0..=MOST).contains(&extent))?;
    let (mut low, mut high, mut wrapped) = (i32::MAX, i32::MIN, 0);
    for (&length, &first) in lengths.iter().zip(at) {
        let last = first.wrapping_add((i32::from(length) - 1).wrapping_mul(extent));
        low = low.min(first);
        high = high.max(last);
        // A sum that does not fit wraps around from a positive to a negative number, which sets the sign bit
        // of this expression.
        wrapped |= last & !first;
    }
    // One sum of bytes and one loop over the positions take less time together than one loop that does both.
    let copies: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
    (wrapped >= 0).then_some((copies.into(), low.into(), high.into()))
}

/// Returns `bytes`, the displacement of a copy, or an error if it does not fit in an `i64`. The loop
/// program stores displacements as `i64`.
#[inline(always)]
fn displacement<I: Integer>(bytes: I) -> Result<I> {
    #[cold]
    fn refuse(bytes: i128) -> Error {
        Error::new(
            ErrorKind::Overflow,
            "displacement",
            format!(
                "an element would have a displacement of {bytes} bytes, which does not fit in a \
                 signed 64-bit integer"
            ),
        )
    }
    let wide: i128 = bytes.into();
    match i64::try_from(wide) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(refuse(wide)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{Datatype, Order};

    /// Computes the bounds of the constructor call that made `ty`, once in 64 bits and once in 128
    /// bits.
    fn both(ty: &Datatype) -> [Result<Bounds>; 2] {
        let call = ty.constructor();
        [Bounds::computed::<i64>(call), Bounds::computed::<i128>(call)]
    }

    /// Checks that an empty block may have any displacement. Regression test: the displacement of an
    /// empty block is not used, but it once caused an overflow error.
    #[test]
    fn empty_blocks_may_lie_anywhere() {
        let double = crate::Datatype::named(Named::DOUBLE);
        for extent in [8, -8, i64::MIN] {
            let old = crate::Datatype::resized(4, extent, &double).unwrap();
            for at in [i64::MAX, -i64::MAX, i64::MIN] {
                let ty = crate::Datatype::hindexed(&[0], &[at], &old).unwrap();
                assert_eq!((ty.size(), ty.extent()), (0, 0));
            }
        }
    }

    /// Checks the bounds of lists with short blocks, most of them near the limits of 32 bits, where
    /// `short_span` must give up.
    #[test]
    fn bounds_of_short_blocks() {
        let byte = Datatype::named(Named::BYTE);
        let most = i64::from(i32::MAX) / 254;
        let ends = [i32::MIN, i32::MIN + 300, -1, 0, 7, i32::MAX - 254, i32::MAX - 253, i32::MAX];
        let extents = [0, 1, 8, -8, most - 1, most, most + 1, 1 << 30, -(1 << 30)];
        for (extent, blocks) in extents.into_iter().flat_map(|extent| {
            let pairs = ends.into_iter().flat_map(|a| ends.into_iter().map(move |b| [a, b]));
            let lengths = [[1, 1], [1, 255], [255, 2], [0, 255], [3, 0]];
            pairs.flat_map(move |at| {
                lengths.map(|lengths| (extent, [0, 1].map(|i| (lengths[i], at[i]))))
            })
        }) {
            let old = Datatype::resized(0, extent, &byte).unwrap();
            let (lengths, at) = (blocks.map(|(n, _)| n), blocks.map(|(_, at)| i64::from(at)));
            for unit in [1, extent] {
                let copies = blocks.iter().flat_map(|&(n, at)| {
                    [0, n - 1]
                        .map(|copy| i64::from(at) * unit + copy * extent)
                        .into_iter()
                        .filter(move |_| n > 0)
                });
                let (low, high) = (copies.clone().min().unwrap(), copies.max().unwrap());
                let ty = match unit == 1 {
                    true => Datatype::hindexed(&lengths, &at, &old).unwrap(),
                    false => Datatype::indexed(&lengths, &at, &old).unwrap(),
                };
                let found = (ty.size(), ty.true_lb(), ty.true_extent());
                assert_eq!(
                    found,
                    (lengths.iter().sum(), low, high + 1 - low),
                    "{extent} {unit} {blocks:?}"
                );
            }
        }
    }

    #[test]
    fn both_widths_find_the_same_bounds() {
        let int = Datatype::named(Named::INT);
        let back = Datatype::resized(5, -16, &int).unwrap();
        let types = [
            Datatype::contiguous(7, &back),
            Datatype::vector(3, 2, -5, &back),
            Datatype::hvector(0, 2, 5, &int),
            Datatype::indexed(&[1, 0, 3], &[4, -9, 2], &back),
            Datatype::hindexed_block(2, &[-40, 8], &int),
            Datatype::structured(
                &[1, 2, 0],
                &[-3, 9, 99],
                &[int.clone(), back.clone(), int.clone()],
            ),
            Datatype::structured(&[1, 1], &[0, 4], &[int.clone(), Datatype::named(Named::CHAR)]),
            Datatype::structured(&[], &[], &[]),
            Datatype::subarray(&[4, 6], &[2, 3], &[1, 2], Order::Fortran, &back),
        ];
        for ty in types {
            let ty = ty.unwrap();
            let [narrow, wide] = both(&ty);
            assert_eq!(narrow, wide, "{ty:?}");
            assert_eq!(narrow.as_ref(), Ok(ty.bounds()));
        }
    }

    #[test]
    fn what_only_128_bits_hold_in_between_is_accepted() {
        let int = Datatype::named(Named::INT);
        // The stride is not used, because there is only one block.
        let ty = Datatype::vector(1, 1, i64::MAX, &int).unwrap();
        let [narrow, wide] = both(&ty);
        assert!(narrow.is_err());
        assert_eq!(wide.as_ref(), Ok(ty.bounds()));
        assert_eq!((ty.lb(), ty.ub()), (0, 4));
        // The error states the number that does not fit in an `i64`.
        let far = Datatype::resized(0, i64::MAX, &int).unwrap();
        let error = Datatype::hindexed(&[1], &[8], &far).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overflow);
        assert!(error.to_string().contains("the upper bound would be 9223372036854775815 bytes"));
    }
}
