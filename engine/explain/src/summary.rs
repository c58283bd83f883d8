//! Describes in one line what each pass of a commit does to the loop program: the numbers of nodes and of
//! table entries before and after the pass.
//!
//! `passes.rs` prints the programs themselves. Passes leave unused nodes behind; the figures here do
//! not include them.

use std::collections::HashSet;
use std::fmt::{self, Write};
use typepack_engine::inspect::{self, edges, index};
use typepack_engine::ir::{Op, Program};
use typepack_engine::{Datatype, Result, Table};

/// The size of a loop program. A node that is used several times counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measures {
    /// Number of nodes in use.
    pub nodes: u64,
    /// Number of nodes that are blocks of bytes.
    pub blocks: u64,
    /// Number of nodes that are loops. The loop over the elements is not a node.
    pub loops: u64,
    /// Number of nodes that are tables, which hold one position per repetition.
    pub tables: u64,
    /// Number of nodes that are lists, which hold a position and a length per repetition.
    pub lists: u64,
    /// Number of nodes that are sequences.
    pub sequences: u64,
    /// Number of loops, tables, lists and sequences on the longest path from the body of the program to a
    /// block.
    pub levels: u64,
    /// Number of entries of all tables and lists.
    pub entries: u64,
    /// Total size of the distinct tables that hold these entries, in bytes.
    pub entry_bytes: u64,
    /// Number of iterations of the program's outermost loop that make up one element of the type.
    pub factor: u64,
}

impl Measures {
    /// Measures `program`. The cost is proportional to the number of nodes.
    pub fn of(program: &Program) -> Self {
        let mut measures = Self { factor: program.factor, ..Self::default() };
        let Some(body) = program.body else { return measures };
        let nodes = program.nodes();
        let mut used = vec![false; nodes.len()];
        used[index(body.node)] = true;
        let mut tables = HashSet::new();
        let mut table = |table: &Table| {
            if tables.insert((table.address(), table.len())) {
                measures.entry_bytes += (table.len() * table.width()) as u64;
            }
        };
        // Each node comes after the nodes that it uses. So the reverse order reaches a node after all nodes
        // that use it.
        for (at, node) in nodes.iter().enumerate().rev() {
            if !used[at] {
                continue;
            }
            measures.nodes += 1;
            match &node.op {
                Op::Block => measures.blocks += 1,
                Op::Loop { .. } => measures.loops += 1,
                Op::Table { entries, .. } => {
                    measures.tables += 1;
                    measures.entries += entries.len() as u64;
                    table(entries);
                }
                Op::Ragged { list, .. } => {
                    measures.lists += 1;
                    measures.entries += list.len() as u64;
                    table(&list.entries);
                    table(&list.lengths);
                }
                Op::Seq { .. } => measures.sequences += 1,
            }
            for edge in edges(&node.op) {
                used[index(edge.node)] = true;
            }
        }
        let mut levels = vec![0; nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            let below = edges(&node.op).map(|edge| levels[index(edge.node)] + 1).max();
            levels[at] = below.unwrap_or(0);
        }
        measures.levels = levels[index(body.node)];
        measures
    }

    /// Returns each figure with its name, the most interesting figure first.
    fn rows(&self) -> [(&'static str, u64); 10] {
        [
            ("nodes", self.nodes),
            ("levels", self.levels),
            ("loops", self.loops),
            ("tables", self.tables),
            ("lists", self.lists),
            ("sequences", self.sequences),
            ("blocks", self.blocks),
            ("entries", self.entries),
            ("entry bytes", self.entry_bytes),
            ("iterations per element", self.factor),
        ]
    }
}

impl fmt::Display for Measures {
    /// Prints the figures that are not 0, except `factor`, for example `3 nodes, 2 levels, 2 loops, 1
    /// block`. Prints `no data` if the program has no nodes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows();
        let told = rows.iter().take(9).filter(|(_, number)| *number > 0);
        for (i, (name, number)) in told.enumerate() {
            let name = match (*number, *name) {
                (1, "entries") => "entry",
                (1, name) => name.strip_suffix('s').unwrap_or(name),
                (_, name) => name,
            };
            write!(f, "{}{number} {name}", if i == 0 { "" } else { ", " })?;
        }
        if self.nodes == 0 { f.write_str("no data") } else { Ok(()) }
    }
}

/// One step of a commit and its effect on the program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassSummary {
    /// The name of the pass; `lower` for the first step.
    pub pass: String,
    /// The size of the program before the pass; `None` for the first step.
    pub before: Option<Measures>,
    /// The size of the program after the pass.
    pub after: Measures,
    /// True if the pass changed anything in the program. Changes of offsets, strides and lengths count
    /// here, although `before` and `after` do not show them.
    pub changed: bool,
}

impl fmt::Display for PassSummary {
    /// Prints in one line what the pass changed. For the first step, prints the size of the program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.pass)?;
        let Some(before) = self.before else { return write!(f, "{}", self.after) };
        if !self.changed {
            return f.write_str("nothing");
        }
        let rows = before.rows().into_iter().zip(self.after.rows());
        let mut different = rows.filter(|((_, before), (_, after))| before != after).peekable();
        if different.peek().is_none() {
            return f.write_str("offsets, strides or lengths");
        }
        for (i, ((name, before), (_, after))) in different.enumerate() {
            write!(f, "{}{name} {before} to {after}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Returns the effect of every step of the commit of `ty`.
///
/// ```
/// use typepack_engine::Datatype;
///
/// let ty: Datatype = "contiguous(3, contiguous(4, resized(0, 16, double)))".parse()?;
/// let steps = typepack_explain::pass_summaries(&ty)?;
/// assert_eq!(steps.last().unwrap().after.to_string(), "1 node, 1 block");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns the errors of [`Datatype::commit`].
pub fn pass_summaries(ty: &Datatype) -> Result<Vec<PassSummary>> {
    let mut steps: Vec<PassSummary> = Vec::new();
    let mut last: Option<Program> = None;
    inspect::steps(ty, |step, program| {
        let before = steps.last().map(|step| step.after);
        let changed = last.as_ref() != Some(program);
        let after = if changed { Measures::of(program) } else { before.unwrap_or_default() };
        steps.push(PassSummary { pass: step.to_owned(), before, after, changed });
        if changed {
            last = Some(program.clone());
        }
    })?;
    Ok(steps)
}

/// Returns text with one line for each step of the commit that changed the program.
///
/// # Errors
///
/// Returns the errors of [`Datatype::commit`].
pub fn summary(ty: &Datatype) -> Result<String> {
    let mut out = String::new();
    for step in pass_summaries(ty)?.iter().filter(|step| step.changed) {
        let _ = writeln!(out, "{step}");
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> String {
        summary(&text.parse().unwrap()).unwrap()
    }

    #[test]
    fn shared_nodes_and_tables_count_once() {
        let list = "indexed_block(1, [9, 0, 4], double)";
        let text = format!("struct([1, 1], [0, 400], [{list}, {list}])");
        let ty: Datatype = text.parse().unwrap();
        let program = ty.commit().unwrap();
        let measures = Measures::of(program.program());
        assert!(measures.entries <= 6 && measures.entry_bytes <= 24, "{measures}");
        let empty: Datatype = "contiguous(0, double)".parse().unwrap();
        let empty = empty.commit().unwrap();
        assert_eq!(Measures::of(empty.program()).to_string(), "no data");
    }

    #[test]
    fn a_line_for_each_pass_that_changed_something() {
        for text in [
            "vector(3, 2, 4, double)",
            "indexed([1, 2, 3, 1], [0, 9, 3, 30], int)",
            "contiguous(5, resized(0, 100, vector(3, 1, 2, int)))",
            "contiguous(0, int)",
        ] {
            let steps = pass_summaries(&text.parse().unwrap()).unwrap();
            let lines = lines(text);
            assert!(lines.starts_with("lower: "), "{lines}");
            assert_eq!(lines.lines().count(), steps.iter().filter(|step| step.changed).count());
            assert_eq!(steps[0].before, None);
            for pair in steps.windows(2) {
                assert_eq!(pair[1].before, Some(pair[0].after));
            }
            let last = Measures::of(text.parse::<Datatype>().unwrap().commit().unwrap().program());
            assert_eq!(steps.last().unwrap().after, last, "{text}");
        }
        let step = |before, after| PassSummary {
            pass: "fold".into(),
            before: Some(before),
            after,
            changed: true,
        };
        let before =
            Measures { nodes: 3, loops: 2, blocks: 1, levels: 2, factor: 1, ..Measures::default() };
        let after = Measures { nodes: 2, loops: 1, levels: 1, ..before };
        assert_eq!(
            step(before, after).to_string(),
            "fold: nodes 3 to 2, levels 2 to 1, loops 2 to 1"
        );
        assert_eq!(step(after, after).to_string(), "fold: offsets, strides or lengths");
        assert_eq!(before.to_string(), "3 nodes, 2 levels, 2 loops, 1 block");
    }
}
