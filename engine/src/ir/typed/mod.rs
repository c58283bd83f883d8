//! The typed program: a loop program that records the basic type of every block.
//!
//! The native program (`ir/`, `passes/`) only moves bytes, so it merges neighbouring elements of
//! different basic types into one run of bytes. Some modules have to know which basic types the bytes
//! belong to: `external32/`, reductions and user-defined operations. These modules use a typed program,
//! which is lowered from the same tree. A leaf of a typed program is a run of elements of one named
//! type; the elements are one extent apart. Only leaves of the *same* named type are merged. A pair
//! such as `MPI_DOUBLE_INT` is one element of a leaf, because operations take whole pairs. The other
//! operations (loops, tables, ragged lists and sequences) are those of `ir/`. Nodes can have several
//! users, and index tables are shared with the tree, as in a native program.
//!
//! Invariants:
//!
//! 1. The elements are packed in the order of the typemap; no function here reorders them.
//! 2. Each typed program has a [`Unit`], in which its positions are counted. In the loop program inside
//!    it, `Node::bytes` is a number of units. `named[id]` is `Some` exactly if node `id` is a block.
//! 3. No function recurses over the levels of the program or expands a list. Finding a position takes
//!    O(depth + log list length) steps.

mod merge;

use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::ir::walk::{self, Stop, Walk};
use crate::ir::{Edge, Node, NodeId, Op, Program};
use crate::named::Named;
use std::ops::Range;

/// The unit in which a typed program counts positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Elements of named types. A pair counts as one element.
    Element,
    /// Bytes of the native packed form.
    Native,
    /// Bytes of the external32 form.
    External32,
}

impl Unit {
    /// Returns the number of units of one element of type `named`.
    pub(crate) fn of(self, named: Named) -> u64 {
        match self {
            Self::Element => 1,
            Self::Native => u64::from(named.size()),
            Self::External32 => u64::from(named.external32_size()),
        }
    }
}

/// A loop program whose blocks are runs of one named type. See the [module](self) text.
#[derive(Clone, Debug)]
pub struct TypedProgram {
    program: Program,
    named: Box<[Option<Named>]>,
    unit: Unit,
}

/// Elements of one named type, in `blocks` blocks that begin `stride` bytes apart. Each block has
/// `length` elements that are one extent of the named type apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Displacement of the first element, in bytes.
    pub offset: i64,
    /// The type of all elements.
    pub named: Named,
    /// Number of blocks, at least 1.
    pub blocks: u64,
    /// Distance from one block to the next, in bytes. Meaningless if there is only one block.
    pub stride: i64,
    /// Number of elements per block, at least 1.
    pub length: u64,
}

/// What a walk visits in one step: whole elements, or a part of one element if the range begins or ends
/// inside that element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// Whole elements.
    Runs(Runs),
    /// Units `skip..skip + length` of one element.
    Part {
        /// Displacement of the element, in bytes.
        offset: i64,
        /// The type of the element.
        named: Named,
        /// Number of the element's units before the part.
        skip: u64,
        /// Number of units of the part. It is less than the number of units of the element.
        length: u64,
    },
}

/// A position: an element, and the number of its units that come before the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Displacement of the element, in bytes.
    pub offset: i64,
    /// The type of the element.
    pub named: Named,
    /// Number of the element's units before the position.
    pub skip: u64,
}

impl TypedProgram {
    /// Lowers `ty` to a typed program whose positions are counted in `unit`.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Limit` if the type needs more program nodes than the documented limit
    /// (2^28).
    pub fn lower(ty: &Datatype, unit: Unit) -> Result<Self> {
        let (program, named) = merge::lower_typed(ty, unit)?;
        Ok(Self { program, named: named.into(), unit })
    }

    /// Returns the named type of every block. A type may occur more than once.
    pub(crate) fn named_types(&self) -> impl Iterator<Item = Named> {
        self.named.iter().flatten().copied()
    }

    /// Returns the unit in which positions are counted.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Returns the number of units of one element of the datatype.
    pub fn element_units(&self) -> u64 {
        self.program.element_bytes()
    }

    /// Returns the number of units of `count` elements of the datatype.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the number does not fit in `i64`.
    pub fn units(&self, count: u64) -> Result<u64> {
        let each = self.element_units();
        each.checked_mul(count).filter(|&all| i64::try_from(all).is_ok()).ok_or_else(|| {
            let elements = counted(count, "element", "elements");
            let detail =
                format!("{elements} of {each} units each: the product exceeds 2^63 - 1 units");
            Error::new(ErrorKind::Overflow, "count", detail)
        })
    }

    /// Returns the loop program, in which the lengths of blocks are in units. The program implements
    /// `Display`.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the named type of a block of [`TypedProgram::program`]; `None` for other nodes.
    pub fn named(&self, node: NodeId) -> Option<Named> {
        self.named[node.index()]
    }

    /// Returns the element of a named type that contains unit `position` of a sequence of elements of
    /// the datatype; `None` for a type without data.
    ///
    /// The cost is O(depth + log list length). `position` must be less than the result of
    /// [`TypedProgram::units`] for some number of elements.
    pub fn seek(&self, position: u64) -> Option<Place> {
        let stop = walk::seek(&self.program, position, |_, node| node.op.is_block())?;
        let named = self.named[stop.node.index()]?;
        let unit = self.unit.of(named);
        let offset = stop.at.wrapping_add(times(stop.from / unit, i64::from(named.extent())));
        Some(Place { offset, named, skip: stop.from % unit })
    }

    /// Visits a part of `count` copies of the datatype, in typemap order, as runs of basic elements.
    /// `range` states the part, in units of this program. All elements of a run have one named type. For
    /// each run, `visit` receives the displacement of the first element in bytes, the named type, the
    /// number of elements, and the distance from one element to the next in bytes.
    ///
    /// The displacements are positions in the user's memory, even if the type has gaps or a negative
    /// lower bound. User-defined operations (MPI-5.0 section 6.9.5) and typed reductions need these
    /// positions.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` for `range` if the range ends before it begins, exceeds the `count`
    /// copies, or begins or ends inside a basic element. Returns `ErrorKind::Overflow` for `count` if the number of
    /// units does not fit in `i64`. The function checks the bounds of the range before it visits
    /// anything. If the range ends inside a basic element, the function visits the elements before that
    /// element and then returns the error.
    pub fn visit_runs(
        &self,
        count: u64,
        range: Range<u64>,
        mut visit: impl FnMut(i64, Named, u64, i64),
    ) -> Result<()> {
        self.walk(count, range, |stretch| match stretch {
            Stretch::Runs(runs) => {
                if runs.length == 1 && runs.blocks > 1 {
                    visit(runs.offset, runs.named, runs.blocks, runs.stride);
                    return Ok(());
                }
                let extent = i64::from(runs.named.extent());
                if runs.stride == times(runs.length, extent) {
                    visit(runs.offset, runs.named, runs.blocks * runs.length, extent);
                    return Ok(());
                }
                for block in 0..runs.blocks {
                    let offset = runs.offset.wrapping_add(times(block, runs.stride));
                    visit(offset, runs.named, runs.length, extent);
                }
                Ok(())
            }
            Stretch::Part { named, skip, length, .. } => Err(Error::new(
                ErrorKind::Argument,
                "range",
                format!(
                    "the range contains only units {skip}..{} of an element of {named}; it must \
                     contain whole elements",
                    skip + length
                ),
            )),
        })
    }

    /// Visits the units `range` of `count` elements of the datatype, in typemap order.
    ///
    /// If `count` is too large or `range` exceeds the elements, returns the same errors as
    /// [`TypedProgram::visit_runs`]. If `visit` returns an error, the walk ends and returns that error.
    pub fn walk(
        &self,
        count: u64,
        range: Range<u64>,
        mut visit: impl FnMut(Stretch) -> Result<()>,
    ) -> Result<()> {
        let units = self.units(count)?;
        if range.start > range.end || range.end > units {
            let (start, end) = (range.start, range.end);
            let detail = format!("{start}..{end} is not within 0..{units}, the range of all units");
            return Err(Error::new(ErrorKind::Argument, "range", detail));
        }
        let Some(body) = self.program.body else { return Ok(()) };
        if self.is_leaf(body.node) {
            let looped = Looped { at: 0, stride: self.program.stride, body };
            return self.repeated(&looped, range, &mut visit);
        }
        let mut walk = Walk::of_elements(&self.program, range);
        while let Some(stop) = walk.next(|_, node| self.is_stop(node)) {
            self.stop(stop, &mut visit)?;
        }
        Ok(())
    }

    /// Returns true if a node is a leaf or repeats a leaf. Walks do not enter such nodes.
    fn is_stop(&self, node: &Node) -> bool {
        match &node.op {
            Op::Block => true,
            Op::Loop { body, .. } | Op::Table { body, .. } | Op::Ragged { body, .. } => {
                self.is_leaf(body.node)
            }
            Op::Seq { .. } => false,
        }
    }

    /// Visits the elements of a leaf, or of a node that repeats a leaf.
    fn stop(&self, stop: Stop, visit: &mut impl FnMut(Stretch) -> Result<()>) -> Result<()> {
        let Stop { node, at, from, to } = stop;
        match &self.program.node(node).op {
            Op::Block => self.leaf(node, at, from..to, visit),
            Op::Loop { stride, body, .. } => {
                self.repeated(&Looped { at, stride: *stride, body: *body }, from..to, visit)
            }
            Op::Table { entries, scale, body } => {
                let bytes = self.program.node(body.node).bytes;
                let mut from = from;
                for i in from / bytes..to.div_ceil(bytes) {
                    let (begin, end) = (i * bytes, to.min((i + 1) * bytes));
                    let shift = entries.get(i as usize).wrapping_mul(*scale);
                    let at = at.wrapping_add(shift).wrapping_add(body.offset);
                    self.leaf(body.node, at, from - begin..end - begin, visit)?;
                    from = end;
                }
                Ok(())
            }
            Op::Ragged { list, scale, stride, body } => {
                let bytes = self.program.node(body.node).bytes;
                let (mut entry, index) = list.seek(from / bytes);
                let (mut within, mut left) = (index * bytes + from % bytes, to - from);
                while left > 0 {
                    let at = at.wrapping_add(list.entries.get(entry).wrapping_mul(*scale));
                    let looped = Looped { at, stride: *stride, body: *body };
                    let end = (list.lengths.get(entry) as u64 * bytes).min(within + left);
                    left -= end - within;
                    self.repeated(&looped, within..end, visit)?;
                    within = 0;
                    entry += 1;
                }
                Ok(())
            }
            Op::Seq { .. } => unreachable!("a walk has stopped at a sequence"),
        }
    }

    /// Visits the units `range` of a loop over a leaf. All whole blocks are visited together; a block
    /// that the range divides, at either end, is visited separately.
    fn repeated(
        &self,
        looped: &Looped,
        range: Range<u64>,
        visit: &mut impl FnMut(Stretch) -> Result<()>,
    ) -> Result<()> {
        let Looped { at, stride, body } = *looped;
        let bytes = self.program.node(body.node).bytes;
        let mut from = range.start;
        while from < range.end {
            let (index, skip) = (from / bytes, from % bytes);
            let at = at.wrapping_add(body.offset).wrapping_add(times(index, stride));
            let left = range.end - from;
            if skip != 0 || left < bytes {
                let some = left.min(bytes - skip);
                self.leaf(body.node, at, skip..skip + some, visit)?;
                from += some;
                continue;
            }
            let named = self.named[body.node.index()].ok_or_else(untyped)?;
            let (blocks, length) = (left / bytes, bytes / self.unit.of(named));
            visit(Stretch::Runs(Runs { offset: at, named, blocks, stride, length }))?;
            from += blocks * bytes;
        }
        Ok(())
    }

    /// Visits the units `range` of a leaf whose displacement is `at`.
    fn leaf(
        &self,
        node: NodeId,
        at: i64,
        range: Range<u64>,
        visit: &mut impl FnMut(Stretch) -> Result<()>,
    ) -> Result<()> {
        let named = self.named[node.index()].ok_or_else(untyped)?;
        let (unit, extent) = (self.unit.of(named), i64::from(named.extent()));
        let place = |index: u64| at.wrapping_add(times(index, extent));
        let (mut index, skip) = (range.start / unit, range.start % unit);
        let mut left = range.end - range.start;
        if skip != 0 {
            let length = left.min(unit - skip);
            visit(Stretch::Part { offset: place(index), named, skip, length })?;
            left -= length;
            index += 1;
        }
        let length = left / unit;
        if length > 0 {
            let offset = place(index);
            visit(Stretch::Runs(Runs { offset, named, blocks: 1, stride: 0, length }))?;
        }
        if !left.is_multiple_of(unit) {
            let offset = place(index + length);
            visit(Stretch::Part { offset, named, skip: 0, length: left % unit })?;
        }
        Ok(())
    }

    fn is_leaf(&self, node: NodeId) -> bool {
        self.named[node.index()].is_some()
    }
}

/// Returns two values: the loop program of `ty`, in which lengths and positions are in bytes of
/// external32; and, for each node that is a block, its named type. Each element of a named type is
/// replaced by the elements that `parts` returns for that type (displacement and named type of each).
///
/// # Errors
///
/// Returns the errors of [`TypedProgram::lower`].
pub(crate) fn lower_parts<I: Iterator<Item = (i64, Named)>>(
    ty: &Datatype,
    parts: impl Fn(Named) -> I,
) -> Result<(Program, Vec<Option<Named>>)> {
    merge::lower_parts(ty, Unit::External32, parts)
}

#[cold]
fn untyped() -> Error {
    Error::new(ErrorKind::Internal, "program", "a block of the program has no named type")
}

/// A loop over a leaf, and the displacement of the loop.
struct Looped {
    at: i64,
    stride: i64,
    body: Edge,
}

fn times(index: u64, stride: i64) -> i64 {
    (index as i64).wrapping_mul(stride)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typemap;

    fn named(n: Named) -> Datatype {
        Datatype::named(n)
    }

    /// Returns types whose programs together contain every operation that a typed program can have.
    fn types() -> Vec<Datatype> {
        let (int, double) = (named(Named::INT), named(Named::DOUBLE));
        let members = [named(Named::CHAR), int.clone(), double.clone()];
        let window = Datatype::structured(&[1, 2, 1], &[0, 4, 16], &members).unwrap();
        let ragged = Datatype::indexed(&[1, 3, 0, 2], &[9, 0, 5, 4], &int).unwrap();
        let gapped = Datatype::resized(-4, 12, &int).unwrap();
        vec![
            double.clone(),
            Datatype::contiguous(5, &double).unwrap(),
            Datatype::vector(3, 1, 4, &named(Named::DOUBLE_INT)).unwrap(),
            Datatype::vector(3, 2, -4, &named(Named::LONG)).unwrap(),
            Datatype::hvector(3, 1, 100, &Datatype::vector(2, 2, 3, &int).unwrap()).unwrap(),
            Datatype::vector(3, 2, 3, &window).unwrap(),
            ragged.clone(),
            Datatype::indexed(&[1, 3, 2], &[9, 0, 5], &gapped).unwrap(),
            Datatype::hindexed(&[2, 1], &[0, 200], &ragged).unwrap(),
            Datatype::indexed_block(2, &[7, 0, 3, 12], &int).unwrap(),
            Datatype::hindexed_block(2, &[100, 3, 160], &window).unwrap(),
            Datatype::hindexed_block(1, &[40, 30, 20], &gapped).unwrap(),
            Datatype::structured(&[2, 1], &[0, 900], &[window, ragged]).unwrap(),
            Datatype::contiguous(0, &double).unwrap(),
        ]
    }

    /// Returns the displacement and the named type of everything that `visit_runs` visits in `count`
    /// elements of `ty`, in order. A pair is visited as one element. The function also checks that the
    /// result agrees with the typemap.
    fn elements(ty: &Datatype, count: u64, program: &TypedProgram) -> Vec<(i64, Named)> {
        let mut all = Vec::new();
        let units = program.units(count).unwrap();
        let visit = |offset, named, n: u64, stride| {
            all.extend((0..n as i64).map(|i| (offset + i * stride, named)));
        };
        program.visit_runs(count, 0..units, visit).unwrap();
        let flat: Vec<(i64, Named)> = all
            .iter()
            .flat_map(|&(at, named)| match named.members() {
                None => vec![(at, named)],
                Some(members) => {
                    members.iter().map(|(shift, m)| (at + i64::from(*shift), *m)).collect()
                }
            })
            .collect();
        let entries = typemap::typemap(ty);
        let expected: Vec<(i64, Named)> = (0..count as i64)
            .flat_map(|i| entries.iter().map(move |e| (i * ty.extent() + e.offset, e.named)))
            .collect();
        assert_eq!(flat, expected, "{ty:?}\n{}", program.program());
        all
    }

    #[test]
    fn any_range_visits_its_elements_and_seek_finds_them() {
        for ty in types() {
            for unit in [Unit::Element, Unit::Native, Unit::External32] {
                let program = TypedProgram::lower(&ty, unit).unwrap();
                for count in [1, 3] {
                    let all = elements(&ty, count, &program);
                    let mut starts = vec![0];
                    for (i, &(offset, named)) in all.iter().enumerate() {
                        let units = unit.of(named);
                        for skip in 0..units {
                            let place = program.seek(starts[i] + skip).unwrap();
                            assert_eq!(place, Place { offset, named, skip }, "{ty:?}");
                        }
                        starts.push(starts[i] + units);
                    }
                    assert_eq!(starts.last(), Some(&program.units(count).unwrap()), "{ty:?}");
                    for from in 0..starts.len() {
                        for to in from..starts.len() {
                            let mut met = Vec::new();
                            let visit = |offset, named, n: u64, stride| {
                                met.extend((0..n as i64).map(|i| (offset + i * stride, named)));
                            };
                            let range = starts[from]..starts[to];
                            program.visit_runs(count, range, visit).unwrap();
                            assert_eq!(met, all[from..to], "{ty:?} {from}..{to}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn strided_elements_are_one_run() {
        let visits = |ty: &Datatype, count| {
            let program = TypedProgram::lower(ty, Unit::Element).unwrap();
            let (mut met, units) = (Vec::new(), program.units(count).unwrap());
            let visit = |offset, named, n, stride| met.push((offset, named, n, stride));
            program.visit_runs(count, 0..units, visit).unwrap();
            met
        };
        let column = Datatype::vector(1000, 1, 7, &named(Named::DOUBLE)).unwrap();
        assert_eq!(visits(&column, 1), [(0, Named::DOUBLE, 1000, 56)]);
        assert_eq!(visits(&named(Named::FLOAT), 9), [(0, Named::FLOAT, 9, 4)]);
        // User-defined operations receive whole pairs that are one extent apart, even if the type has
        // gaps and a negative lower bound.
        let gapped = Datatype::resized(-8, 24, &named(Named::DOUBLE_INT)).unwrap();
        assert_eq!(visits(&gapped, 5), [(0, Named::DOUBLE_INT, 5, 24)]);
        let rows = Datatype::vector(2, 3, 5, &named(Named::INT)).unwrap();
        assert_eq!(visits(&rows, 1), [(0, Named::INT, 3, 4), (20, Named::INT, 3, 4)]);
    }

    #[test]
    fn ranges_that_break_elements_or_leave_the_data_are_refused() {
        let program = TypedProgram::lower(&named(Named::DOUBLE), Unit::Native).unwrap();
        for range in [0..12, 4..8, 0..17] {
            let error = program.visit_runs(2, range, |_, _, _, _| {}).unwrap_err();
            assert_eq!((error.kind(), error.argument()), (ErrorKind::Argument, "range"));
        }
        let error = program.visit_runs(u64::MAX, 0..8, |_, _, _, _| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overflow);
    }

    #[test]
    fn exponential_types_are_a_handful_of_nodes() {
        let mut ty = named(Named::SHORT);
        for level in 0..50 {
            let far = 5i64 << level;
            ty = Datatype::structured(&[1, 1], &[0, far], &[ty.clone(), ty]).unwrap();
        }
        let program = TypedProgram::lower(&ty, Unit::Element).unwrap();
        assert_eq!(program.element_units(), 1 << 50);
        assert!(program.program().nodes().len() < 200);
        assert!(program.seek((1 << 50) - 1).is_some());
    }
}
