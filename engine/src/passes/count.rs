//! Merges the loop over elements with an outermost loop that continues seamlessly.
//!
//! After this last pass, a type whose elements continue each other (`resized` columns, contiguous
//! rows, dense vectors) runs as one loop over all elements, for any count.

use crate::ir::{Edge, Op, Program};

/// Merges the outermost loops that continue into the next element.
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
