//! The memory that the elements of a plan touch. Safe calls check their buffers against it.
//!
//! A committed plan takes its footprint from the datatype (`datatype/bounds.rs`). A decoded plan
//! (`wire/`) has no datatype, and the values that its sender states prove nothing. So its footprint is
//! computed from the program that will run. `tests/wire.rs` compares the two.

use super::Plan;
use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::ir::{Edge, Op, Program};

/// The memory range of the elements of a plan. All values are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Distance from one element to the next; may be negative.
    pub extent: i64,
    /// First byte of data of an element, relative to its origin.
    pub true_lb: i64,
    /// One past the last byte of data of an element.
    pub true_ub: i64,
}

/// The bytes that a node touches: `length` bytes from `low`, relative to the node's displacement 0.
///
/// The executors add displacements with wrapping arithmetic. So `low` is a number modulo 2^64, and
/// the bytes are `low + t` modulo 2^64 for `t` below `length`. The reach contains all bytes that any
/// program touches. For a program lowered from a datatype, the reach is exact: distances between data
/// fit in 64 bits there, although partial sums of displacements may not.
#[derive(Clone, Copy)]
struct Reach {
    low: i64,
    length: i64,
}

impl Reach {
    fn moved(self, offset: i64) -> Self {
        Self { low: self.low.wrapping_add(offset), ..self }
    }

    /// Returns the union of this reach at every displacement from `low` to `high`.
    fn swept(self, low: i128, high: i128) -> Result<Self> {
        let length = high
            .checked_sub(low)
            .and_then(|sweep| sweep.checked_add(i128::from(self.length)))
            .and_then(|length| i64::try_from(length).ok())
            .ok_or_else(too_far)?;
        // The cast keeps the low 64 bits: displacements are numbers modulo 2^64.
        Ok(Self { low: self.low.wrapping_add(low as i64), length })
    }

    fn join(self, other: Self) -> Result<Self> {
        let distance = i128::from(other.low.wrapping_sub(self.low));
        let end = i128::from(self.length).max(distance + i128::from(other.length));
        let first = distance.min(0);
        let length = i64::try_from(end - first).map_err(|_| too_far())?;
        Ok(Self { low: self.low.wrapping_add(first as i64), length })
    }
}

fn too_far() -> Error {
    let detail = "the distance between two bytes of data does not fit 64 bits";
    Error::new(ErrorKind::Overflow, "program", detail)
}

impl Footprint {
    /// Returns the footprint of the datatype, as its constructor calls define it.
    pub(crate) fn of_datatype(ty: &Datatype) -> Self {
        Self { extent: ty.extent(), true_lb: ty.true_lb(), true_ub: ty.true_ub() }
    }

    /// Computes the bytes that the program will touch. Operands must come before their users, and the
    /// byte counts of nodes must be right (`ir/verify.rs` checks both).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the extent or a distance between data does not fit in 64
    /// bits.
    pub(crate) fn of_program(program: &Program) -> Result<Self> {
        let extent = i128::from(program.factor) * i128::from(program.stride);
        let extent = i64::try_from(extent).map_err(|_| too_far())?;
        let Some(body) = program.body else {
            return Ok(Self { extent, true_lb: 0, true_ub: 0 });
        };
        let mut nodes: Vec<Reach> = Vec::with_capacity(program.nodes().len());
        for node in program.nodes() {
            let use_of = |edge: &Edge| nodes[edge.node.index()].moved(edge.offset);
            let reach = match &node.op {
                Op::Block => {
                    let length = i64::try_from(node.bytes).map_err(|_| too_far())?;
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
                    reach.ok_or_else(too_far)?
                }
            };
            nodes.push(reach);
        }
        let element = nodes[body.node.index()].moved(body.offset);
        let element = repeated(element, program.factor, program.stride)?;
        let true_ub = element.low.checked_add(element.length).ok_or_else(too_far)?;
        Ok(Self { extent, true_lb: element.low, true_ub })
    }
}

/// Checks that `count` elements lie within a buffer of `length` bytes, if their displacement 0 is byte
/// `origin` of the buffer.
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

/// Does what [`check_bounds`] does for elements that lie at `place`. `place` is `None` for elements
/// without data.
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
    // A product of two 64-bit numbers fits in 128 bits. The sum may saturate, and then the elements
    // do not fit in any case.
    let last = i128::from(count - 1) * i128::from(place.extent);
    let first = last.min(0).saturating_add(origin as i128 + i128::from(place.true_lb));
    let end = last.max(0).saturating_add(origin as i128 + i128::from(place.true_ub));
    if first < 0 || end > length as i128 {
        return Err(Error::new(
            ErrorKind::Buffer,
            argument,
            format!(
                "{}: {} at origin {origin} {} bytes {first}..{end}, the buffer has {}",
                if first < 0 { "data before the buffer" } else { "buffer too small" },
                counted(count, "element", "elements"),
                if count == 1 { "touches" } else { "touch" },
                counted(length, "byte", "bytes")
            ),
        ));
    }
    Ok(())
}

/// Returns the union of `reach` at `i * stride` for `i` below `count`, which is at least 1.
fn repeated(reach: Reach, count: u64, stride: i64) -> Result<Reach> {
    // A 64-bit count times a 64-bit stride fits in 128 bits.
    let last = (i128::from(count) - 1) * i128::from(stride);
    reach.swept(last.min(0), last.max(0))
}

/// Returns the union of `reach` at `entry * scale` and at the other copies of that entry, `stride`
/// apart, over all entries.
fn scattered(
    reach: Reach,
    places: impl Iterator<Item = (i64, i64)>,
    scale: i64,
    stride: i64,
) -> Result<Reach> {
    let (mut low, mut high) = (i128::MAX, i128::MIN);
    for (entry, copies) in places.filter(|&(_, copies)| copies > 0) {
        // Each product of two 64-bit numbers fits 127 bits, so the sum fits.
        let first = i128::from(entry) * i128::from(scale);
        let last = first + i128::from(copies - 1) * i128::from(stride);
        low = low.min(first.min(last));
        high = high.max(first.max(last));
    }
    if low > high {
        return Err(too_far());
    }
    reach.swept(low, high)
}
