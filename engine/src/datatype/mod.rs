//! The datatype tree: what the user said, kept as it was said.
//!
//! First room of the flow. A node holds its constructor call (that is what decoding will return)
//! and its bounds; it is immutable and shared, so a type used in many places exists once. Next
//! room: `commit.rs`, which lowers the tree to a program.
//!
//! - `construct.rs`: the constructors and their argument checks
//! - `array.rs`: subarrays
//! - `bounds.rs`: size, lower and upper bounds, true bounds, alignment; the only place
//!
//! Invariants: bounds of a node fit 64 bits; nothing here recurses over the depth of the tree,
//! dropping included.

mod array;
mod bounds;
mod construct;

pub use array::Order;
pub(crate) use array::{slowest_first, strides};
pub(crate) use bounds::Bounds;

use crate::error::Result;
use crate::scalar::Named;
use crate::table::Table;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// An MPI datatype: an immutable, shared tree of constructor calls.
///
/// Cloning is one reference count. A datatype describes memory; [`Datatype::commit`] turns it into
/// a [`Plan`](crate::Plan) that moves bytes.
#[derive(Clone)]
#[doc(alias = "MPI_Datatype")]
pub struct Datatype(Arc<Node>);

pub(crate) struct Node {
    pub(crate) constructor: Constructor,
    pub(crate) bounds: Bounds,
}

/// The call that made a type. Displacements and strides are in the units of that call.
#[derive(Clone, Debug)]
pub(crate) enum Constructor {
    Named(Named),
    Dup {
        old: Datatype,
    },
    Contiguous {
        count: i64,
        old: Datatype,
    },
    Vector {
        count: i64,
        blocklength: i64,
        stride: i64,
        old: Datatype,
    },
    Hvector {
        count: i64,
        blocklength: i64,
        stride: i64,
        old: Datatype,
    },
    Indexed {
        blocklengths: Table,
        displacements: Table,
        old: Datatype,
    },
    Hindexed {
        blocklengths: Table,
        displacements: Table,
        old: Datatype,
    },
    IndexedBlock {
        blocklength: i64,
        displacements: Table,
        old: Datatype,
    },
    HindexedBlock {
        blocklength: i64,
        displacements: Table,
        old: Datatype,
    },
    Struct {
        blocklengths: Table,
        displacements: Table,
        types: Box<[Datatype]>,
    },
    Subarray {
        sizes: Box<[i64]>,
        subsizes: Box<[i64]>,
        starts: Box<[i64]>,
        order: Order,
        old: Datatype,
    },
    Resized {
        lb: i64,
        extent: i64,
        old: Datatype,
    },
}

impl Constructor {
    /// The types this call was given.
    pub(crate) fn children(&self) -> &[Datatype] {
        match self {
            Self::Named(_) => &[],
            Self::Struct { types, .. } => types,
            Self::Dup { old }
            | Self::Contiguous { old, .. }
            | Self::Vector { old, .. }
            | Self::Hvector { old, .. }
            | Self::Indexed { old, .. }
            | Self::Hindexed { old, .. }
            | Self::IndexedBlock { old, .. }
            | Self::HindexedBlock { old, .. }
            | Self::Subarray { old, .. }
            | Self::Resized { old, .. } => std::slice::from_ref(old),
        }
    }

    /// The MPI name of the call.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Named(named) => named.name(),
            Self::Dup { .. } => "dup",
            Self::Contiguous { .. } => "contiguous",
            Self::Vector { .. } => "vector",
            Self::Hvector { .. } => "hvector",
            Self::Indexed { .. } => "indexed",
            Self::Hindexed { .. } => "hindexed",
            Self::IndexedBlock { .. } => "indexed_block",
            Self::HindexedBlock { .. } => "hindexed_block",
            Self::Struct { .. } => "struct",
            Self::Subarray { .. } => "subarray",
            Self::Resized { .. } => "resized",
        }
    }
}

impl Datatype {
    /// The named type `named` as a datatype. Allocates nothing after the first call.
    pub fn named(named: Named) -> Self {
        static ALL: OnceLock<Vec<Datatype>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            Named::all()
                .map(|named| {
                    let bounds = Bounds::named(named);
                    Datatype(Arc::new(Node { constructor: Constructor::Named(named), bounds }))
                })
                .collect()
        });
        all[named.index()].clone()
    }

    /// Makes a node. The bounds are computed here, for every constructor.
    fn build(constructor: Constructor) -> Result<Self> {
        let bounds = Bounds::of(&constructor)?;
        Ok(Self(Arc::new(Node { constructor, bounds })))
    }

    pub(crate) fn constructor(&self) -> &Constructor {
        &self.0.constructor
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    /// Identity of the node, for memo tables while the tree is alive.
    pub(crate) fn address(&self) -> *const () {
        Arc::as_ptr(&self.0).cast()
    }

    /// Bytes of data in one element (packed size).
    #[doc(alias = "MPI_Type_size")]
    pub fn size(&self) -> i64 {
        self.bounds().size
    }

    /// Lower bound in bytes; 0 for a type without entries.
    #[doc(alias = "MPI_Type_get_extent")]
    pub fn lb(&self) -> i64 {
        self.bounds().lb()
    }

    /// Upper bound in bytes: lower bound plus extent.
    pub fn ub(&self) -> i64 {
        self.bounds().ub()
    }

    /// Distance in bytes from one element to the next; may be 0 or negative (resized types).
    #[doc(alias = "MPI_Type_get_extent")]
    pub fn extent(&self) -> i64 {
        // Checked at construction.
        self.ub() - self.lb()
    }

    /// First byte of data, in bytes from the origin; markers and padding do not count.
    #[doc(alias = "MPI_Type_get_true_extent")]
    pub fn true_lb(&self) -> i64 {
        self.bounds().true_lb
    }

    /// One past the last byte of data.
    pub fn true_ub(&self) -> i64 {
        self.bounds().true_ub
    }

    /// Bytes from the first to one past the last byte of data.
    #[doc(alias = "MPI_Type_get_true_extent")]
    pub fn true_extent(&self) -> i64 {
        self.true_ub() - self.true_lb()
    }

    /// Largest alignment of the basic types inside, in bytes.
    pub fn align(&self) -> u32 {
        self.bounds().align
    }

    /// The named type, when this is one.
    pub fn as_named(&self) -> Option<Named> {
        match self.constructor() {
            Constructor::Named(named) => Some(*named),
            _ => None,
        }
    }
}

impl From<Named> for Datatype {
    fn from(named: Named) -> Self {
        Self::named(named)
    }
}

impl fmt::Debug for Datatype {
    /// One line: the outermost constructor and the bounds (a tree may be too large to print).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}(size {}, lb {}, extent {}, true_lb {}, true_extent {})",
            self.constructor().name(),
            self.size(),
            self.lb(),
            self.extent(),
            self.true_lb(),
            self.true_extent()
        )
    }
}

impl Drop for Node {
    /// Takes the tree apart on the heap: a tree may be deeper than the machine stack.
    fn drop(&mut self) {
        fn take(constructor: &mut Constructor, pending: &mut Vec<Arc<Node>>) {
            // Named leaves are shared for the life of the process and never the last reference,
            // and a type whose children are all named (the common case) needs no list.
            if constructor.children().iter().all(|child| child.as_named().is_some()) {
                return;
            }
            match std::mem::replace(constructor, Constructor::Named(Named::BYTE)) {
                Constructor::Struct { types, .. } => {
                    pending.extend(types.into_iter().map(|child| child.0));
                }
                // The clone outlives `other`, so the last reference is the one in the list.
                other => pending.extend(other.children().iter().map(|child| child.0.clone())),
            }
        }
        let mut pending = Vec::new();
        take(&mut self.constructor, &mut pending);
        while let Some(node) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                take(&mut node.constructor, &mut pending);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_very_deep_tree_does_not_recurse() {
        let mut ty = Datatype::named(Named::INT);
        for _ in 0..200_000 {
            ty = Datatype::resized(0, 8, &ty).unwrap();
        }
        let keep = ty.clone();
        drop(ty);
        assert_eq!(keep.extent(), 8);
    }

    #[test]
    fn named_types_are_shared() {
        let (a, b) = (Datatype::named(Named::DOUBLE), Datatype::named(Named::DOUBLE));
        assert_eq!(a.address(), b.address());
    }
}
