//! Merges the loop over the elements with the outermost loop inside an element, if the iterations of
//! that loop continue at the same stride from one element to the next.
//!
//! This pass is the last one. After it, one loop covers all elements of a type that meets this
//! condition, for any count. Examples are `resized` columns, contiguous rows and dense vectors.

use crate::ir::{Edge, Op, Program};

/// Merges the outermost loop with the loop over the elements, and repeats this while the next loop
/// also continues into the next element.
pub(crate) fn fold_count(program: &mut Program) {
    while let Some(body) = program.body {
        let Op::Loop { count, stride, body: inner } = program.node(body.node).op else { return };
        if i128::from(program.stride) != i128::from(count) * i128::from(stride) {
            return;
        }
        program.factor *= count;
        program.stride = stride;
        program.body =
            Some(Edge { offset: body.offset.wrapping_add(inner.offset), node: inner.node });
    }
}
