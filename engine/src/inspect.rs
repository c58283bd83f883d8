//! The engine's private parts that `typepack-explain` shows, read only.
//!
//! This is the last file of the engine: it imports from all other files, and no other file imports
//! it. The module is hidden from the documentation and is not part of the stable public interface. It
//! grows only when a report shows more. It does not repeat public items (a plan's program, its nests
//! and their executors, bounds, facts).

use crate::datatype::{self, Datatype, Order};
use crate::error::Result;
use crate::ir::{self, Edge, NodeId, Op, Program};
use crate::named::Named;
use crate::passes::pipeline;
use crate::table::Table;

pub use crate::text::constructors::{Argument, call, parameters, types};
pub use crate::text::print::{abridged_list, word};

/// The call that made a type, as [`constructor`] returns it. Displacements and strides have the units
/// of that call.
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
    /// A call that is equivalent to a tree of other calls, `layout`.
    Composite {
        layout: &'a Datatype,
    },
}

/// Returns the call that made `ty`.
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

/// Returns the types that were passed to the call which made `ty`; for a composite, its layout.
pub fn children(ty: &Datatype) -> &[Datatype] {
    ty.constructor().children()
}

/// Returns the identity of a type, for tables. It is valid while the tree is alive.
pub fn address(ty: &Datatype) -> *const () {
    ty.address()
}

/// Returns the dimensions of the dense array in which a subarray lies, from the fastest to the slowest
/// varying, each with its stride in bytes. `extent` is the extent of an element. The caller passes the
/// sizes of an existing type, so they are known to fit.
pub fn strides(
    sizes: &[i64],
    order: Order,
    extent: i64,
) -> impl Iterator<Item = (usize, i128)> + '_ {
    datatype::strides(sizes, order, i128::from(extent)).into_iter().flatten()
}

/// Commits `ty` up to its program. `after` receives the program after each step, with the step's name.
/// The first step is the lowering of the tree.
///
/// # Errors
///
/// Returns the errors of [`Datatype::commit`].
pub fn steps(ty: &Datatype, after: impl FnMut(&str, &Program)) -> Result<Program> {
    pipeline::optimize(ty, after)
}

/// Returns the operands of an operation.
pub fn edges(op: &Op) -> impl Iterator<Item = Edge> + '_ {
    ir::edges(op)
}

/// Returns the index of a node in [`Program::nodes`].
pub fn index(node: NodeId) -> usize {
    node.index()
}

/// Returns true if copies of `body` that are `stride` apart form one run.
pub fn is_dense(program: &Program, stride: i64, body: Edge) -> bool {
    program.is_dense(stride, body)
}
