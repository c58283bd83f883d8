//! The loop over elements merges with an outermost loop that continues seamlessly.
//!
//! The last pass. A type whose elements continue each other (`resized` columns, contiguous rows,
//! dense vectors) then runs as one loop over all elements, whatever their count.

use crate::ir::{Edge, Op, Program};

/// Merges as many outermost loops as continue into the next element.
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
