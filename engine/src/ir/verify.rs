//! Checks the invariants of a program:
//!
//! 1. An operand's id is smaller than its user's id, so there are no cycles.
//! 2. No node produces 0 packed bytes. The number of packed bytes of a node equals the number that
//!    follows from its operation: the length of the block, the iterations times the size of the body,
//!    the sum of the lengths times the size of the body, or the sum of the parts.
//! 3. A loop has at least one iteration. Tables, lists and sequences are not empty. The ends of the
//!    parts of a sequence increase.
//! 4. The two tables of a ragged list have equal lengths, and no length in the list is negative.
//! 5. The factor of the program is at least 1. The number of packed bytes of an element equals the size
//!    of the type. The program has a body exactly if the size is not 0.
//!
//! The verifier runs once in every commit; in debug builds it also runs after lowering and after every
//! pass. It does not prove that the program describes the same layout as the tree. Tests check that: they
//! compare what a plan packs with the typemap that `typemap.rs` expands from the tree.

use super::{Edge, Op, Program};
use crate::error::{Error, ErrorKind, Result, counted};

fn broken(detail: String) -> Error {
    Error::new(ErrorKind::Internal, "program", detail)
}

/// Checks every invariant of `program`. Each element must produce `size` packed bytes.
///
/// # Errors
///
/// Returns `ErrorKind::Internal` if an invariant does not hold. The text of the error names the first
/// such invariant.
pub fn verify(program: &Program, size: u64) -> Result<()> {
    for (id, node) in program.nodes().iter().enumerate() {
        let body = |edge: &Edge| match program.nodes()[..id].get(edge.node.index()) {
            Some(operand) => Ok(u128::from(operand.bytes)),
            None => Err(broken(format!(
                "node {id} uses node {}; a node may use only nodes that come before it",
                edge.node.index()
            ))),
        };
        let expected = match &node.op {
            Op::Block => u128::from(node.bytes),
            Op::Loop { count, body: edge, .. } => u128::from(*count) * body(edge)?,
            Op::Table { entries, body: edge, .. } => entries.len() as u128 * body(edge)?,
            Op::Ragged { list, body: edge, .. } => {
                if list.lengths.len() != list.entries.len() {
                    let detail = format!(
                        "node {id}: the list has {} and {}; the numbers must be equal",
                        counted(list.lengths.len(), "length", "lengths"),
                        counted(list.entries.len(), "position", "positions")
                    );
                    return Err(broken(detail));
                }
                let copies = list.lengths.total();
                let copies = copies.ok_or_else(|| {
                    broken(format!(
                        "node {id}: the list has a negative length; each length must be at least 0"
                    ))
                })?;
                copies * body(edge)?
            }
            Op::Seq { parts } => {
                let mut end = 0u128;
                for part in parts.iter() {
                    end += body(&part.edge)?;
                    if u128::from(part.end) != end {
                        return Err(broken(format!(
                            "node {id}: a part ends at byte {}; it must end at byte {end}",
                            part.end
                        )));
                    }
                }
                end
            }
        };
        if node.bytes == 0 {
            return Err(broken(format!("node {id} states 0 bytes; it must state at least 1 byte")));
        }
        if expected != u128::from(node.bytes) {
            let stated = counted(node.bytes, "byte", "bytes");
            return Err(broken(format!(
                "node {id} states {stated}, and its operation packs to {expected}; the numbers \
                 must be equal"
            )));
        }
    }
    if let Some(body) = program.body
        && body.node.index() >= program.nodes().len()
    {
        return Err(broken(format!(
            "the body is node {}, but the program has {}",
            body.node.index(),
            counted(program.nodes().len(), "node", "nodes")
        )));
    }
    if program.factor == 0 {
        return Err(broken("the factor is 0; it must be at least 1".to_owned()));
    }
    if program.element_bytes() != size {
        return Err(broken(format!(
            "one element of the program packs to {}; it must pack to {size}, the size of the type",
            counted(program.element_bytes(), "byte", "bytes")
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{NodeId, Part};

    fn block_loop() -> Program {
        let mut program = Program::new(32);
        let node = program.push(8, Op::Block);
        let body = Edge { offset: 0, node };
        let node = program.push(16, Op::Loop { count: 2, stride: 16, body });
        program.body = Some(Edge { offset: 0, node });
        program
    }

    #[test]
    fn a_sound_program_passes_and_each_break_is_found() {
        assert_eq!(verify(&block_loop(), 16), Ok(()));
        assert!(verify(&block_loop(), 8).is_err());

        let mut program = block_loop();
        program.nodes_mut()[1].bytes = 24;
        assert!(verify(&program, 24).is_err());

        let mut program = block_loop();
        let body = Edge { offset: 0, node: NodeId(1) };
        program.nodes_mut()[1].op = Op::Loop { count: 1, stride: 0, body };
        assert!(verify(&program, 16).is_err());

        let mut program = block_loop();
        let edge = Edge { offset: 0, node: NodeId(0) };
        let parts = [Part { edge, end: 8 }, Part { edge, end: 17 }];
        program.nodes_mut()[1].op = Op::Seq { parts: parts.into() };
        assert!(verify(&program, 16).is_err());

        let mut program = block_loop();
        program.body = Some(Edge { offset: 0, node: NodeId(7) });
        assert!(verify(&program, 16).is_err());
    }
}
