//! Prints a program as text, for `explain`, for golden files and for debugging.
//!
//! The first line shows the number of iterations per element and the stride of the outermost loop.
//! Each of the other lines shows one operation, indented by its depth. The number after `@` is the
//! displacement of the operation in bytes:
//!
//! ```text
//! elements 1 x 32
//!   loop 2 x 16 @0
//!     block 8 @0
//! ```
//!
//! The text shows only the first entries of a large table and only the first levels of a deep program.
//! It shows a node at every use of the node, so a tower of sequences, each of which uses the next one
//! twice, would take exponentially many lines. Therefore the text ends after `LINES` operations.

use super::{Edge, Op, Program};
use std::fmt;
use typepack_leaf::Table;

/// Maximum number of table entries, list entries and parts of a sequence that are printed.
const SHOWN: usize = 16;
/// Maximum number of levels that are printed.
const LEVELS: usize = 32;
/// Maximum number of operations that are printed.
const LINES: usize = 1000;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "elements {} x {}", self.factor, self.stride)?;
        // `None` stands for operands that the text leaves out.
        let mut pending: Vec<(Option<Edge>, usize)> =
            self.body.iter().map(|&edge| (Some(edge), 1)).collect();
        let mut lines = 0;
        while let Some((edge, level)) = pending.pop() {
            if lines == LINES {
                return writeln!(f, "… more than {LINES} operations");
            }
            lines += 1;
            write!(f, "{:indent$}", "", indent = 2 * level)?;
            let Some(edge) = edge else {
                writeln!(f, "…")?;
                continue;
            };
            let node = self.node(edge.node);
            if level > LEVELS {
                writeln!(f, "… {} bytes @{}", node.bytes, edge.offset)?;
                continue;
            }
            match &node.op {
                Op::Block => write!(f, "block {}", node.bytes)?,
                Op::Loop { count, stride, .. } => write!(f, "loop {count} x {stride}")?,
                Op::Table { entries, scale, .. } => {
                    write!(f, "table {} x {scale} [{}]", width(entries), List(entries))?;
                }
                Op::Ragged { list, scale, stride, .. } => write!(
                    f,
                    "ragged {} x {scale} [{}] lengths [{}] x {stride}",
                    width(&list.entries),
                    List(&list.entries),
                    List(&list.lengths)
                )?,
                Op::Seq { parts } => write!(f, "seq {}", parts.len())?,
            }
            writeln!(f, " @{}", edge.offset)?;
            let mut operands = super::edges(&node.op);
            let shown: Vec<Edge> = operands.by_ref().take(SHOWN).collect();
            pending.extend(operands.next().map(|_| (None, level + 1)));
            pending.extend(shown.into_iter().rev().map(|edge| (Some(edge), level + 1)));
        }
        Ok(())
    }
}

fn width(table: &Table) -> &'static str {
    match table {
        Table::Short(_) => "u8",
        Table::Narrow(_) => "i32",
        Table::Wide(_) => "i64",
    }
}

struct List<'a>(&'a Table);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, value) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{value}", if i == 0 { "" } else { " " })?;
        }
        if self.0.len() > SHOWN {
            write!(f, " … {} in all", self.0.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::LINES;
    use crate::{Datatype, Named};

    #[test]
    fn parts_that_are_not_shown_are_said_to_be_there() {
        let types = [Datatype::named(Named::INT), Datatype::named(Named::SHORT)];
        let text = |parts: usize| {
            let places: Vec<i64> = (0..parts as i64).map(|i| i * i * 8).collect();
            let types: Vec<Datatype> = types.iter().cycle().take(parts).cloned().collect();
            let ty = Datatype::structured(&vec![1; parts], &places, &types).unwrap();
            ty.commit().unwrap().program().to_string()
        };
        assert!(!text(16).contains('…'), "{}", text(16));
        assert!(text(17).ends_with("\n    …\n"), "{}", text(17));
    }

    /// Checks that the text of a shared tower is bounded. In this program every sequence uses the
    /// sequence below it twice, so the first 32 levels alone have more than 2^31 operations.
    #[test]
    fn a_shared_tower_prints_a_bounded_text() {
        let mut ty = Datatype::named(Named::BYTE);
        for level in 0..35 {
            let types = [ty.clone(), Datatype::named(Named::SHORT), ty];
            ty = Datatype::structured(&[1; 3], &[0, 5 << level, 9 << level], &types).unwrap();
        }
        let text = ty.commit().unwrap().program().to_string();
        assert_eq!(text.lines().count(), LINES + 2);
        assert!(text.ends_with("… more than 1000 operations\n"), "{text}");
    }
}
