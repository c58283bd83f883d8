//! The widths of the elements that a plan byte-swaps. External32 needs such plans.
//!
//! `external32/byteswap.rs` makes the widths. `plan/` reads them when it prepares a nest, and `exec/`
//! reads them when it walks a block. The functions in `leaf/byteswap.rs` swap the bytes.

use crate::ir::{Edge, NodeId, Op, Program};
use crate::leaf::{Swap, Width};

/// The widths of the elements that a plan byte-swaps. Only the plans that `external32/` makes
/// byte-swap elements.
#[derive(Debug, Default)]
pub(crate) enum Widths {
    #[default]
    Native,
    /// Every element has this width.
    Same(Width),
    /// For each node that is a block, the width of its elements. The index is the number of the node.
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

    /// Returns the widths of the elements in the leaf of the nest that begins at `edge`. Returns
    /// `None` if the plan does not byte-swap elements.
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
