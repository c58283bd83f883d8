//! Gives `typepack-explain` read-only access to private parts of the engine.
//!
//! This file is the top layer of the engine: it may import any other file, and no other file imports
//! it. The module is hidden from the documentation and is not part of the stable public interface. It
//! contains only what the reports need and does not repeat public items (a plan's program, its nests
//! and their executors, bounds, facts).

use crate::datatype::{self, Datatype, Order};
use crate::error::Result;
use crate::ir::{self, Edge, NodeId, Op, Program};
use crate::named::Named;
use crate::passes::pipeline;
use typepack_leaf::Table;

pub use crate::text::constructors::{Argument, call, parameters, types};
pub use crate::text::print::{abridged_list, word};

/// The call that made a type, as returned by [`constructor`]. Displacements and strides are in the
/// units of that call.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the fields are arguments of the MPI calls, under shortened names")]
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
    /// A call that is equivalent to several other calls, such as darray. `layout` is the tree that
    /// those calls make.
    Composite {
        layout: &'a Datatype,
    },
}

/// Returns the constructor call that made `ty`.
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

/// Returns the types that were passed to the call which made `ty`. For a composite, returns its
/// layout.
pub fn children(ty: &Datatype) -> &[Datatype] {
    ty.constructor().children()
}

/// Returns an address that identifies a type, to be used as a key. No other type has the same address
/// while the tree is alive.
pub fn address(ty: &Datatype) -> *const () {
    ty.address()
}

/// Returns the dimensions of the dense array that contains a subarray, from the fastest varying
/// dimension to the slowest. Each item is the index of a dimension and its stride in bytes. `extent` is
/// the extent of an element. The caller passes the sizes of an existing type, so the strides cannot
/// overflow.
pub fn strides(
    sizes: &[i64],
    order: Order,
    extent: i64,
) -> impl Iterator<Item = (usize, i128)> + '_ {
    datatype::strides(sizes, order, i128::from(extent)).into_iter().flatten()
}

/// Lowers `ty`, runs the passes and returns the resulting program. After each step, calls `after` with
/// the name of the step and the program. The first step is the lowering of the tree.
///
/// # Errors
///
/// Returns the errors of [`Datatype::commit`].
pub fn steps(ty: &Datatype, after: impl FnMut(&str, &Program)) -> Result<Program> {
    pipeline::optimize(ty, after)
}

/// Returns the edges from an operation to its operands.
pub fn edges(op: &Op) -> impl Iterator<Item = Edge> + '_ {
    ir::edges(op)
}

/// Returns the index of a node in [`Program::nodes`].
pub fn index(node: NodeId) -> usize {
    node.index()
}

/// Returns true if `body` is a block and its copies at distances of `stride` bytes form one run of memory.
pub fn is_dense(program: &Program, stride: i64, body: Edge) -> bool {
    program.is_dense(stride, body)
}
