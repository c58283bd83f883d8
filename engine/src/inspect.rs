//! What `typepack-explain` shows of the engine's private parts, to read only.
//!
//! The last room: everything else comes before, nothing in the engine imports it. Hidden from the
//! documentation and outside the promise of the public interface; it grows when a report shows more,
//! and for nothing else. What is public already (a plan's program, its nests and their executors,
//! bounds, facts) is not repeated here.

use crate::datatype::{self, Datatype, Order};
use crate::error::Result;
use crate::ir::{self, Edge, NodeId, Op, Program};
use crate::named::Named;
use crate::passes::pipeline;
use crate::table::Table;

pub use crate::text::constructors::{Argument, call, parameters, types};
pub use crate::text::print::{abridged_list, word};

/// The call that made a type, as [`constructor`] tells it. Displacements and strides are in the
/// units of that call.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the arguments of the MPI calls, by their names")]
pub enum Constructor<'a> {
    Named(Named),
    Dup {
        old: &'a Datatype,
    },
    Contiguous {
        count: i64,
        old: &'a Datatype,
    },
    Vector {
        count: i64,
        blocklength: i64,
        stride: i64,
        old: &'a Datatype,
    },
    Hvector {
        count: i64,
        blocklength: i64,
        stride: i64,
        old: &'a Datatype,
    },
    Indexed {
        blocklengths: &'a Table,
        displacements: &'a Table,
        old: &'a Datatype,
    },
    Hindexed {
        blocklengths: &'a Table,
        displacements: &'a Table,
        old: &'a Datatype,
    },
    IndexedBlock {
        blocklength: i64,
        displacements: &'a Table,
        old: &'a Datatype,
    },
    HindexedBlock {
        blocklength: i64,
        displacements: &'a Table,
        old: &'a Datatype,
    },
    Struct {
        blocklengths: &'a Table,
        displacements: &'a Table,
        types: &'a [Datatype],
    },
    Subarray {
        sizes: &'a [i64],
        subsizes: &'a [i64],
        starts: &'a [i64],
        order: Order,
        old: &'a Datatype,
    },
    Resized {
        old: &'a Datatype,
    },
    /// A call that is the same as a tree of other calls, which is `layout`.
    Composite {
        layout: &'a Datatype,
    },
}

/// The call that made `ty`.
pub fn constructor(ty: &Datatype) -> Constructor<'_> {
    use datatype::Constructor as Private;
    match ty.constructor() {
        Private::Named(named) => Constructor::Named(*named),
        Private::Dup { old } => Constructor::Dup { old },
        &Private::Contiguous { count, ref old } => Constructor::Contiguous { count, old },
        &Private::Vector { count, blocklength, stride, ref old } => {
            Constructor::Vector { count, blocklength, stride, old }
        }
        &Private::Hvector { count, blocklength, stride, ref old } => {
            Constructor::Hvector { count, blocklength, stride, old }
        }
        Private::Indexed { blocklengths, displacements, old } => {
            Constructor::Indexed { blocklengths, displacements, old }
        }
        Private::Hindexed { blocklengths, displacements, old } => {
            Constructor::Hindexed { blocklengths, displacements, old }
        }
        &Private::IndexedBlock { blocklength, ref displacements, ref old } => {
            Constructor::IndexedBlock { blocklength, displacements, old }
        }
        &Private::HindexedBlock { blocklength, ref displacements, ref old } => {
            Constructor::HindexedBlock { blocklength, displacements, old }
        }
        Private::Struct { blocklengths, displacements, types } => {
            Constructor::Struct { blocklengths, displacements, types }
        }
        Private::Subarray { region, order, old } => {
            let [sizes, subsizes, starts] = region.parts();
            Constructor::Subarray { sizes, subsizes, starts, order: *order, old }
        }
        Private::Resized { old, .. } => Constructor::Resized { old },
        Private::Composite { layout, .. } => Constructor::Composite { layout },
    }
}

/// The types that the call which made `ty` was given; for a composite the layout it stands for.
pub fn children(ty: &Datatype) -> &[Datatype] {
    ty.constructor().children()
}

/// Identity of a type, for tables while the tree is alive.
pub fn address(ty: &Datatype) -> *const () {
    ty.address()
}

/// The dimensions of the dense array that a subarray lies in, from the fastest to the slowest
/// varying, each with its stride in bytes; `extent` is that of an element. The type exists, so its
/// sizes are known to fit.
pub fn strides(
    sizes: &[i64],
    order: Order,
    extent: i64,
) -> impl Iterator<Item = (usize, i128)> + '_ {
    datatype::strides(sizes, order, i128::from(extent)).into_iter().flatten()
}

/// Commits `ty` as far as the program; `after` sees the program after each step, with the step's
/// name. The first step is the lowering of the tree.
///
/// # Errors
///
/// As for [`Datatype::commit`].
pub fn steps(ty: &Datatype, after: impl FnMut(&str, &Program)) -> Result<Program> {
    pipeline::optimize(ty, after)
}

/// The operands of an operation.
pub fn edges(op: &Op) -> impl Iterator<Item = Edge> + '_ {
    ir::edges(op)
}

/// The place of a node among [`Program::nodes`].
pub fn index(node: NodeId) -> usize {
    node.index()
}

/// Copies of `body` that are `stride` apart are one run.
pub fn is_dense(program: &Program, stride: i64, body: Edge) -> bool {
    program.is_dense(stride, body)
}
