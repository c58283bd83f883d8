//! The range of memory that the elements of a plan access. Safe calls check that their buffers
//! contain this range.
//!
//! A committed plan takes its footprint from the datatype (`datatype/bounds.rs`). A decoded plan
//! (`wire/`) has no datatype, and bounds that a sender states cannot be trusted. So the footprint of
//! a decoded plan is computed from the program that will run. `tests/wire.rs` checks that the two
//! ways give the same result.

use super::Plan;
use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::ir::{Edge, Op, Program};

/// The memory range of the elements of a plan. All values are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Distance from one element to the next. The distance may be negative.
    pub extent: i64,
    /// Displacement of the first byte of data of an element.
    pub true_lb: i64,
    /// Displacement of one past the last byte of data of an element.
    pub true_ub: i64,
}

/// The bytes that a node accesses: `length` bytes from `low` on. `low` is relative to displacement 0
/// of the node.
///
/// The executors add displacements with wrapping arithmetic. So `low` is a number modulo 2^64, and
/// the bytes are `low + t` modulo 2^64 for `t` below `length`. The reach of a node contains all bytes
/// that the node accesses, for any program. For a program that was lowered from a datatype, the reach
/// has no unused bytes at its ends: distances between data fit in an `i64` in such a program, although
/// partial sums of displacements may not.
#[derive(Clone, Copy)]
struct Reach {
    low: i64,
    length: i64,
}

impl Reach {
    fn moved(self, offset: i64) -> Self {
        Self { low: self.low.wrapping_add(offset), ..self }
    }

    /// Returns the smallest range that contains this reach moved by every displacement from `low` to
    /// `high`.
    fn swept(self, low: i128, high: i128) -> Result<Self> {
        let span =
            high.checked_sub(low).and_then(|sweep| sweep.checked_add(i128::from(self.length)));
        let length = span
            .and_then(|span| i64::try_from(span).ok())
            .ok_or_else(|| too_far("the span of the data", span))?;
        // The cast keeps only the low 64 bits. This is right, because displacements are numbers
        // modulo 2^64.
        Ok(Self { low: self.low.wrapping_add(low as i64), length })
    }

    fn join(self, other: Self) -> Result<Self> {
        let distance = i128::from(other.low.wrapping_sub(self.low));
        let end = i128::from(self.length).max(distance + i128::from(other.length));
        let first = distance.min(0);
        let span = end - first;
        let length =
            i64::try_from(span).map_err(|_| too_far("the span of the data", Some(span)))?;
        Ok(Self { low: self.low.wrapping_add(first as i64), length })
    }
}

/// Returns the error which reports that the quantity `what` does not fit in an `i64`. `bytes` is its
/// value, or `None` if it does not even fit in an `i128`.
#[cold]
fn too_far(what: &str, bytes: Option<i128>) -> Error {
    let detail = match bytes {
        Some(bytes) => {
            format!("{what} would be {bytes} bytes, which does not fit in a signed 64-bit integer")
        }
        None => format!(
            "{what} does not fit even in a signed 128-bit integer; it must fit in a signed 64-bit integer"
        ),
    };
    Error::new(ErrorKind::Overflow, "program", detail)
}

/// Returns the error which reports that an operation accesses no data. `what` gives the reason.
#[cold]
fn no_data(what: &str) -> Error {
    Error::new(
        ErrorKind::Internal,
        "program",
        format!("{what}, but every operation must access data"),
    )
}

impl Footprint {
    /// Returns the range of bytes that `count` elements touch, relative to displacement 0 of the first one: the first
    /// byte and one past the last byte. For a count of 0, it is the range of one element.
    #[doc(hidden)]
    #[inline]
    pub fn reach(&self, count: u64) -> (i128, i128) {
        // This calculation cannot overflow: a product of two 64-bit numbers, plus a 64-bit number, fits in 128 bits.
        let last = i128::from(count.saturating_sub(1)) * i128::from(self.extent);
        (last.min(0) + i128::from(self.true_lb), last.max(0) + i128::from(self.true_ub))
    }

    /// Returns the footprint of a datatype, as its constructor calls define it.
    pub(crate) fn of_datatype(ty: &Datatype) -> Self {
        Self { extent: ty.extent(), true_lb: ty.true_lb(), true_ub: ty.true_ub() }
    }

    /// Computes the range of bytes that the program will access. Operands must come before their
    /// users, and the byte counts of nodes must be right (`ir/verify.rs` checks both).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the extent, the length of a block, a distance between data or
    /// the true upper bound does not fit in an `i64`. Returns `ErrorKind::Internal` if a sequence has no
    /// parts, a table has no entries or a list has no copies.
    pub(crate) fn of_program(program: &Program) -> Result<Self> {
        let extent = i128::from(program.factor) * i128::from(program.stride);
        let extent = i64::try_from(extent).map_err(|_| too_far("the extent", Some(extent)))?;
        let Some(body) = program.body else {
            return Ok(Self { extent, true_lb: 0, true_ub: 0 });
        };
        let mut nodes: Vec<Reach> = Vec::with_capacity(program.nodes().len());
        for node in program.nodes() {
            let use_of = |edge: &Edge| nodes[edge.node.index()].moved(edge.offset);
            let reach = match &node.op {
                Op::Block => {
                    let length = i64::try_from(node.bytes).map_err(|_| {
                        too_far("the length of a block", Some(i128::from(node.bytes)))
                    })?;
                    Reach { low: 0, length }
                }
                Op::Loop { count, stride, body } => repeated(use_of(body), *count, *stride)?,
                Op::Table { entries, scale, body } => {
                    let places = entries.iter().map(|entry| (entry, 1));
                    scattered(use_of(body), places, *scale, 0)?
                }
                Op::Ragged { list, scale, stride, body } => {
                    let places = list.entries.iter().zip(list.lengths.iter());
                    scattered(use_of(body), places, *scale, *stride)?
                }
                Op::Seq { parts } => {
                    let mut reach: Option<Reach> = None;
                    for part in parts.iter() {
                        let next = use_of(&part.edge);
                        reach = Some(reach.map_or(Ok(next), |reach| reach.join(next))?);
                    }
                    reach.ok_or_else(|| no_data("a sequence has no parts"))?
                }
            };
            nodes.push(reach);
        }
        let element = nodes[body.node.index()].moved(body.offset);
        let element = repeated(element, program.factor, program.stride)?;
        let true_ub = element.low.checked_add(element.length).ok_or_else(|| {
            let end = i128::from(element.low) + i128::from(element.length);
            too_far("the true upper bound", Some(end))
        })?;
        Ok(Self { extent, true_lb: element.low, true_ub })
    }
}

/// Checks that `count` elements lie within a buffer of `length` bytes. Displacement 0 of the first
/// element is at byte `origin` of the buffer.
///
/// # Errors
///
/// Returns `ErrorKind::Buffer`, naming `argument`, if the elements do not lie within the buffer.
pub fn check_bounds(
    plan: &Plan,
    count: u64,
    origin: usize,
    length: usize,
    argument: &'static str,
) -> Result<()> {
    let place = if plan.element_bytes() == 0 { None } else { Some(plan.footprint()) };
    check_place(place, count, origin, length, argument)
}

/// Does what [`check_bounds`] does, for elements with the footprint `place`. If the elements have no
/// data, `place` is `None`.
pub(crate) fn check_place(
    place: Option<&Footprint>,
    count: u64,
    origin: usize,
    length: usize,
    argument: &'static str,
) -> Result<()> {
    let Some(place) = place.filter(|_| count > 0) else {
        return Ok(());
    };
    let (first, end) = place.reach(count);
    // The sums may saturate, but then the elements do not fit in any buffer anyway.
    let first = first.saturating_add(origin as i128);
    let end = end.saturating_add(origin as i128);
    if first < 0 || end > length as i128 {
        return Err(Error::new(
            ErrorKind::Buffer,
            argument,
            format!(
                "{}: {} at origin {origin} {} bytes {first}..{end}; the buffer has {}",
                if first < 0 { "data before the buffer" } else { "buffer too small" },
                counted(count, "element", "elements"),
                if count == 1 { "touches" } else { "touch" },
                counted(length, "byte", "bytes")
            ),
        ));
    }
    Ok(())
}

/// Returns the smallest range that contains `reach` moved by `i * stride` for every `i` below
/// `count`. `count` must be at least 1.
fn repeated(reach: Reach, count: u64, stride: i64) -> Result<Reach> {
    // A 64-bit count times a 64-bit stride fits in 128 bits.
    let last = (i128::from(count) - 1) * i128::from(stride);
    reach.swept(last.min(0), last.max(0))
}

/// Returns the smallest range that contains all copies of all entries. The first copy of an entry is
/// `reach` moved by `entry * scale`; the other copies of this entry follow at distances of `stride`.
/// `places` yields each entry with its number of copies.
fn scattered(
    reach: Reach,
    places: impl Iterator<Item = (i64, i64)>,
    scale: i64,
    stride: i64,
) -> Result<Reach> {
    let (mut low, mut high) = (i128::MAX, i128::MIN);
    for (entry, copies) in places.filter(|&(_, copies)| copies > 0) {
        // Each product of two 64-bit numbers fits in 127 bits, so the sum of the two products fits in
        // 128 bits.
        let first = i128::from(entry) * i128::from(scale);
        let last = first + i128::from(copies - 1) * i128::from(stride);
        low = low.min(first.min(last));
        high = high.max(first.max(last));
    }
    if low > high {
        return Err(no_data("a list has no copies"));
    }
    reach.swept(low, high)
}
