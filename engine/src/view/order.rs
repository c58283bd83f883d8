//! Checks the order of the displacements of an etype or a filetype: none is negative, and none is smaller
//! than the one before it. The rule holds inside the type; how copies of the type lie does not matter.
//!
//! `mod.rs` calls [`check`] when a view is made. The plan of a type does not show the order of its
//! elements, because the passes of a commit join elements that touch. So this file computes the first and
//! the last displacement of every node of the typed program (`ir/typed/`), in which the single elements
//! remain visible. It makes one pass over nodes, tables and lists, and does not walk the elements.

use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::Op;
use crate::ir::typed::{TypedProgram, Unit};
use crate::named::Named;

/// Displacements of the first and the last basic element of a node, relative to the node.
#[derive(Clone, Copy)]
struct Ends {
    first: i128,
    last: i128,
}

impl Ends {
    fn moved(self, by: i64) -> Self {
        Self { first: self.first + i128::from(by), last: self.last + i128::from(by) }
    }

    /// Returns the ends of `self` followed by `next`. If the displacements decrease, returns the last
    /// displacement of `self` and the first of `next` as the error.
    fn then(self, next: Self) -> std::result::Result<Self, (i128, i128)> {
        match next.first < self.last {
            true => Err((self.last, next.first)),
            false => Ok(Self { first: self.first, last: next.last }),
        }
    }

    fn repeated(self, count: u64, stride: i64) -> std::result::Result<Self, (i128, i128)> {
        if count <= 1 {
            return Ok(self);
        }
        self.then(self.moved(stride))?;
        // The product of a 64-bit count and a 64-bit stride fits in an `i128`.
        let last = self.last + i128::from(count - 1) * i128::from(stride);
        Ok(Self { first: self.first, last })
    }

    /// Returns the ends of one basic or pair type.
    fn of(named: Named) -> Self {
        let last = named.members().map_or(0, |[_, (offset, _)]| i128::from(offset));
        Self { first: 0, last }
    }
}

/// Checks the displacements of one element of `ty`.
///
/// # Errors
///
/// Returns `ErrorKind::Type` for `argument` if a displacement is negative or smaller than the one before it.
/// Returns the errors of [`TypedProgram::lower`].
pub(super) fn check(ty: &Datatype, argument: &'static str) -> Result<()> {
    let fail = |detail: String| Err(Error::new(ErrorKind::Type, argument, detail));
    if ty.size() == 0 {
        return Ok(());
    }
    if ty.true_lb() < 0 {
        return fail(format!(
            "its first data is at displacement {}; a view has no negative displacements",
            ty.true_lb()
        ));
    }
    let typed = TypedProgram::lower(ty, Unit::Element)?;
    match walk(&typed) {
        Err((last, next)) => fail(format!(
            "displacement {next} follows displacement {last} (counted from the start of the part of the \
             type in which they lie); the displacements of a view must not decrease"
        )),
        Ok(()) => Ok(()),
    }
}

/// Walks one element of the program. If its displacements decrease somewhere, the error contains the displacement
/// before the decrease and the one after it.
fn walk(typed: &TypedProgram) -> std::result::Result<(), (i128, i128)> {
    let program = typed.program();
    let mut all: Vec<std::result::Result<Ends, (i128, i128)>> =
        Vec::with_capacity(program.nodes().len());
    for (id, node) in program.nodes().iter().enumerate() {
        let of =
            |edge: &crate::ir::Edge| all[edge.node.index()].map(|e: Ends| e.moved(edge.offset));
        // A node that the program does not use must not fail the check, so errors stay with the nodes
        // until the body uses them.
        let ends = match &node.op {
            Op::Block => {
                let named = typed.named(crate::ir::NodeId(id as u32)).unwrap_or(Named::BYTE);
                Ends::of(named).repeated(node.bytes, i64::from(named.extent()))
            }
            Op::Loop { count, stride, body } => {
                of(body).and_then(|body| body.repeated(*count, *stride))
            }
            Op::Table { entries, scale, body } => of(body).and_then(|body| {
                let mut places = entries.iter().map(|entry| body.moved(entry.wrapping_mul(*scale)));
                let first = places.next().unwrap_or(body);
                places.try_fold(first, Ends::then)
            }),
            Op::Ragged { list, scale, stride, body } => of(body).and_then(|body| {
                let blocks = list.lengths.iter().zip(list.entries.iter());
                let blocks = blocks.filter(|(length, _)| *length > 0);
                let mut before: Option<Ends> = None;
                for (length, entry) in blocks {
                    let block = body.repeated(length as u64, *stride)?;
                    let block = block.moved(entry.wrapping_mul(*scale));
                    before = Some(before.map_or(Ok(block), |before| before.then(block))?);
                }
                Ok(before.unwrap_or(body))
            }),
            Op::Seq { parts } => {
                let mut parts = parts.iter().map(|part| of(&part.edge));
                let first = parts.next().unwrap_or(Ok(Ends { first: 0, last: 0 }));
                first.and_then(|first| parts.try_fold(first, |sum, part| sum.then(part?)))
            }
        };
        all.push(ends);
    }
    let Some(body) = program.body else { return Ok(()) };
    all[body.node.index()]?.repeated(program.factor, program.stride).map(|_| ())
}
