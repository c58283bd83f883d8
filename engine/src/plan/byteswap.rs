//! The widths of the basic elements whose bytes a plan reverses. Only the plans of `external32/` reverse
//! bytes.
//!
//! `external32/byteswap.rs` makes the widths. `plan/` reads them when it prepares a nest, and `exec/`
//! reads them when it walks a block. The functions in `leaf/src/routine/byteswap.rs` swap the bytes.

use crate::ir::{Edge, NodeId, Op, Program};
use typepack_leaf::{Swap, Width};

/// The widths of the basic elements whose bytes a plan reverses. `Native` means that the plan reverses
/// no bytes.
#[derive(Debug, Default)]
pub(crate) enum Widths {
    #[default]
    Native,
    /// Every basic element has this width.
    Same(Width),
    /// For each node that is a block, the width of its basic elements; 1 for other nodes. The index is
    /// the id of the node.
    Each(Box<[Width]>),
}

impl Widths {
    #[inline]
    pub(crate) fn of(&self, node: NodeId) -> Width {
        match self {
            Self::Native => Width::ONE,
            Self::Same(width) => *width,
            Self::Each(widths) => widths[node.index()],
        }
    }

    /// Returns the widths of the basic elements in the leaf of the nest that begins at `edge`. Returns
    /// `None` if the plan reverses no bytes.
    pub(crate) fn swap(&self, program: &Program, edge: Edge) -> Option<Swap> {
        let widths = match self {
            Self::Native => return None,
            Self::Same(width) => return Some(Swap::Same(*width)),
            Self::Each(widths) => widths,
        };
        let mut node = edge.node;
        loop {
            match &program.node(node).op {
                Op::Loop { body, .. } | Op::Table { body, .. } | Op::Ragged { body, .. } => {
                    node = body.node;
                }
                Op::Block => return Some(Swap::Same(widths[node.index()])),
                Op::Seq { parts } => {
                    let each = parts.iter().map(|part| widths[part.edge.node.index()]);
                    return Some(Swap::Each(each.collect()));
                }
            }
        }
    }
}
