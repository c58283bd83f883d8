//! The nests of a plan, and a table that tells which nest executes which node or part.
//!
//! `mod.rs` uses this file when it makes a plan. `passes/nest.rs` defines what a nest is.

use super::byteswap::Widths;
use super::nest_plan::NestPlan;
use super::settings::Settings;
use crate::ir::{self, Edge, NodeId, Op, Program};
use crate::passes::nest::{is_nest, nest_of};
use typepack_leaf::Width;

/// The nests of a plan. Most plans have one nest that executes the whole program; this nest is stored
/// inline and needs no allocation of its own. The size of a plan stays below 1 KiB, because the C
/// library's allocator is fast up to this size (`tests::plans_are_quickly_allocated`).
#[derive(Default)]
#[repr(C)]
pub(super) struct NestPlans {
    first: Option<NestPlan>,
    /// Present only if no single nest executes the whole program, so that the executor must walk the
    /// program.
    walk: Option<Box<Walked>>,
}

/// The data that a walk over the program needs.
struct Walked {
    /// All nests except the first.
    more: Vec<NestPlan>,
    /// For each node, the index of the nest that executes it; `NO_NEST` if no nest does, so that the
    /// walk enters or copies the node.
    of_node: Box<[u32]>,
    /// The parts of the program's body if the body is a sequence of at most `PARTS` nests and blocks;
    /// otherwise empty.
    parts: Box<[BodyPart]>,
}

impl NestPlans {
    pub(super) fn len(&self) -> usize {
        let more = self.walk.as_ref().map_or(0, |walk| walk.more.len());
        usize::from(self.first.is_some()) + more
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&NestPlan> {
        self.first.as_ref()
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&NestPlan> {
        if index == 0 { self.first() } else { self.walk.as_ref()?.more.get(index - 1) }
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &NestPlan> {
        (0..self.len())
            .map(|index| self.get(index).expect("every index below the number of nests has a nest"))
    }
}

const NO_NEST: u32 = u32::MAX;

/// Maximum number of parts of a body whose parts are stored as a list.
const PARTS: usize = 64;

/// One part of a body whose operation is a sequence. The part is either a block or a node that a nest
/// executes.
#[derive(Clone, Copy)]
pub(crate) struct BodyPart {
    /// Index of the nest; `NO_NEST` for a block.
    nest: u32,
    /// If the part is a block, the width of the basic elements whose bytes are reversed; 1 if none are.
    pub(crate) width: Width,
    /// Displacement of the part in the body, in bytes.
    pub(crate) at: i64,
    /// Number of packed bytes of the part.
    pub(crate) bytes: u64,
}

impl NestPlans {
    /// Returns the nest that executes `node`, or `None` if the walk must enter or copy the node.
    #[inline]
    pub(super) fn of_node(&self, node: NodeId) -> Option<&NestPlan> {
        let index = self.walk.as_ref()?.of_node[node.index()];
        self.get(index as usize)
    }

    /// Returns the nest that executes `part`; `None` if the part is a block.
    #[inline]
    pub(super) fn of_part(&self, part: &BodyPart) -> Option<&NestPlan> {
        self.get(part.nest as usize)
    }

    /// Returns the parts of the program's body if the body is a sequence of at most `PARTS` nests and
    /// blocks; otherwise returns an empty slice.
    #[inline]
    pub(super) fn parts(&self) -> &[BodyPart] {
        self.walk.as_ref().map_or(&[], |walk| &walk.parts)
    }

    /// Finds the nests of a program and makes their plans. If one kernel can execute the whole program
    /// together with the loop over the elements, the whole program is the only nest, and the function
    /// returns true.
    ///
    /// Otherwise the function searches the nodes, from the body towards the blocks, and returns false.
    /// A node that one kernel can execute becomes a nest, and the search does not enter it. The search
    /// enters every other node, except blocks and lists of runs. It ends when it has found `most` nests.
    ///
    /// The plan of a nest is recorded at the node that the nest executes. For a ragged list whose
    /// entries are not runs, the nest is the loop over the copies of one entry, and its plan is recorded
    /// at the list. The executor sets the count of this loop for each entry.
    pub(super) fn find(
        &mut self,
        program: &Program,
        widths: &Widths,
        settings: &Settings,
        most: usize,
    ) -> bool {
        let Some(body) = program.body else { return false };
        let outer = Some((program.factor, program.stride));
        let planned = self.first.get_or_insert_with(NestPlan::empty);
        if is_nest(program, body, outer, &mut planned.nest) {
            planned.swap = widths.swap(program, body).map(Box::new);
            planned.complete(settings);
            return true;
        }
        self.first = None;
        let mut made = Vec::new();
        let mut of_node = vec![NO_NEST; program.nodes().len()];
        let mut seen = vec![false; program.nodes().len()];
        let mut pending = vec![body.node];
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            if made.len() >= most {
                break;
            }
            let nest = match &program.node(id).op {
                Op::Block => continue,
                Op::Ragged { stride, body, .. } if program.is_dense(*stride, *body) => continue,
                Op::Ragged { stride, body, .. } => nest_of(program, *body, Some((1, *stride))),
                _ => nest_of(program, Edge { offset: 0, node: id }, None),
            };
            match nest {
                Some(nest) => {
                    // The cast loses no bits: there are fewer nests than nodes, and nodes have 32-bit
                    // ids.
                    of_node[id.index()] = made.len() as u32;
                    let swap = widths.swap(program, Edge { offset: 0, node: id }).map(Box::new);
                    made.push(NestPlan::of(nest, swap, settings));
                }
                None => pending.extend(ir::edges(&program.node(id).op).map(|edge| edge.node)),
            }
        }
        let mut listed = Box::default();
        if let Op::Seq { parts } = &program.node(body.node).op
            && parts.len() <= PARTS
        {
            let part = |edge: Edge| {
                let (node, nest) = (program.node(edge.node), of_node[edge.node.index()]);
                // The nest at a ragged list executes only the body of the list, so the list itself is
                // walked.
                let is_nest = nest != NO_NEST && !matches!(node.op, Op::Ragged { .. });
                let width = widths.of(edge.node);
                let part = BodyPart { nest, width, at: edge.offset, bytes: node.bytes };
                (is_nest || node.op.is_block()).then_some(part)
            };
            listed = parts.iter().map(|p| part(p.edge)).collect::<Option<_>>().unwrap_or_default();
        }
        let mut made = made.into_iter();
        self.first = made.next();
        let more = made.collect();
        self.walk = Some(Box::new(Walked { more, of_node: of_node.into(), parts: listed }));
        false
    }
}
