//! The widths of elements that a plan turns round, for external32.
//!
//! Made by `external32/byteswap.rs`, asked by `plan/` for the nests it prepares and by `exec/` for
//! blocks that it walks. `leaf/byteswap.rs` does the turning.

use crate::ir::{Edge, NodeId, Op, Program};
use crate::leaf::{Swap, Width};

/// What a plan turns round on the way: nothing, but for `external32/`.
#[derive(Debug, Default)]
pub(crate) enum Widths {
    #[default]
    Native,
    /// Every element has this width.
    Same(Width),
    /// The width of each block's elements, by node.
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

    /// What is turned round in the leaf of the nest that begins at `edge`.
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
