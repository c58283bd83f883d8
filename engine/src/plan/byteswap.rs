//! The widths of the elements that a plan byte-swaps, for external32.
//!
//! `external32/byteswap.rs` makes these widths. `plan/` asks for the widths of the nests that it
//! prepares, and `exec/` asks for the widths of the blocks that it walks. `leaf/byteswap.rs` swaps
//! the bytes.

use crate::ir::{Edge, NodeId, Op, Program};
use crate::leaf::{Swap, Width};

/// The widths of the elements that a plan byte-swaps. Only plans of `external32/` byte-swap
/// elements.
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

    /// Returns the byte swap for the leaf of the nest that begins at `edge`.
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
