//! The datatype tree, which records the user's constructor calls unchanged.
//!
//! A node holds its constructor call, which decoding returns, and its bounds. Nodes are immutable and
//! shared, so a type that is used in many places exists once. `commit.rs` turns the tree into a plan,
//! which can move data.
//!
//! - `construct.rs`: the constructors and their argument checks
//! - `array.rs`, `darray.rs`: subarrays, distributed arrays
//! - `predefined.rs`: the unnamed predefined types (Fortran 90 kinds, value-index pairs)
//! - `mpi1.rs`: the calls and bound markers of MPI-1
//! - `bounds.rs`: size, lower and upper bounds, true bounds, alignment; no other file computes them
//! - `elements.rs`: how many basic elements a number of packed bytes holds
//! - `leaves.rs`: makes the same constructor calls over other named types
//! - `decode.rs`: returns the envelope and the contents of a type; `rebuild.rs`: makes a type from
//!   its contents
//!
//! Invariants: the bounds of a node fit in an `i64`. No function here recurses over the depth of the
//! tree; dropping a tree does not recurse either.

mod array;
mod bounds;
mod construct;
mod darray;
mod decode;
mod elements;
mod leaves;
mod mpi1;
mod overflow;
mod predefined;
mod rebuild;

pub use array::Order;
pub(crate) use array::{Region, strides};
pub(crate) use bounds::Bounds;
pub(crate) use darray::Darray;
pub use darray::{DEFAULT_ARGUMENT, Distribution};
pub use decode::{Combiner, Contents, Envelope, Form};
pub use mpi1::Binding;
pub(crate) use predefined::F90;
pub use predefined::{TypeClass, UNDEFINED};

use crate::error::{Error, ErrorKind, Result};
use crate::named::Named;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use typepack_leaf::Table;

/// An MPI datatype: an immutable, shared tree of constructor calls.
///
/// Cloning a datatype only increments a reference count. A datatype describes memory;
/// [`Datatype::commit`] turns it into a [`Plan`](crate::Plan) that moves bytes.
#[derive(Clone)]
#[doc(alias = "MPI_Datatype")]
pub struct Datatype(Handle);

/// How a datatype holds its node. Nearly every tree contains named types. Their nodes have no
/// reference count, so a clone of a named type costs no atomic operation, and threads that make types
/// do not contend for a shared counter.
#[derive(Clone)]
enum Handle {
    /// The node of a named type. It lives as long as the process.
    Named(&'static Node),
    /// The node of a type that a constructor call made.
    Made(Arc<Node>),
}

impl Deref for Handle {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        match self {
            Self::Named(node) => node,
            Self::Made(node) => node,
        }
    }
}

pub(crate) struct Node {
    pub(crate) constructor: Constructor,
    pub(crate) bounds: Bounds,
    /// The form in which the call is decoded (`decode.rs`); `None` if no form was recorded.
    form: Option<Form>,
    /// Only for a struct with many members: the packed bytes and the basic elements before every 16th
    /// member. The list is computed when it is first needed (`elements.rs`).
    marks: OnceLock<Box<[elements::Mark]>>,
}

/// The constructor call that made a type. Each displacement and stride is in the unit that the call
/// uses.
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
        region: Region,
        order: Order,
        old: Datatype,
    },
    Resized {
        lb: i64,
        extent: i64,
        old: Datatype,
    },
    /// A call that is implemented by a tree of other calls, `layout`. The tree has the same typemap
    /// and the same bounds as `call`. Decoding, printing and the tests' oracle (`typemap.rs`) use
    /// `call`; nearly all other code uses `layout`.
    Composite {
        call: Box<Call>,
        layout: Datatype,
    },
}

/// The calls that are stored as a [`Constructor::Composite`].
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Darray(Darray),
    F90(F90),
    ValueIndex { value: Datatype, index: Datatype },
}

impl Constructor {
    /// Returns the types that were passed to this call. For a [`Constructor::Composite`], returns its
    /// layout.
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
            | Self::Resized { old, .. }
            | Self::Composite { layout: old, .. } => std::slice::from_ref(old),
        }
    }

    /// Returns the number of entries of the tables that were passed to this call.
    pub(crate) fn entries(&self) -> usize {
        match self {
            Self::Indexed { displacements, .. }
            | Self::Hindexed { displacements, .. }
            | Self::IndexedBlock { displacements, .. }
            | Self::HindexedBlock { displacements, .. }
            | Self::Struct { displacements, .. } => displacements.len(),
            _ => 0,
        }
    }

    /// Returns the name of the call, as it appears in printed types.
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
            Self::Composite { call, .. } => match &**call {
                Call::Darray(_) => "darray",
                Call::F90(f90) => f90.name(),
                Call::ValueIndex { .. } => "value_index",
            },
        }
    }
}

impl Node {
    fn new(constructor: Constructor, bounds: Bounds) -> Self {
        Self { constructor, bounds, form: None, marks: OnceLock::new() }
    }
}

impl Datatype {
    /// Returns the named type `named` as a datatype. The first call makes the nodes of all named
    /// types; later calls allocate nothing.
    pub fn named(named: Named) -> Self {
        static ALL: OnceLock<Vec<Node>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            Named::all_with_markers()
                .map(|named| Node::new(Constructor::Named(named), Bounds::named(named)))
                .collect()
        });
        Self(Handle::Named(&all[named.index()]))
    }

    /// Makes a node and computes its bounds. Returns an error if a child is a bound marker, or if the size, an
    /// extent or a bound does not fit in an `i64`. All constructors use this function, except `dup` and the struct of
    /// MPI-1, which accept bound markers.
    fn build(constructor: Constructor) -> Result<Self> {
        let children = constructor.children();
        if let Some(marker) = children.iter().find_map(|child| child.as_marker()) {
            return Err(Error::new(
                ErrorKind::Type,
                if matches!(constructor, Constructor::Struct { .. }) { "types" } else { "old" },
                format!(
                    "{marker} is a bound marker of MPI-1; only dup and type_struct accept bound markers"
                ),
            ));
        }
        Self::build_with_markers(constructor)
    }

    #[inline(always)]
    fn build_with_markers(constructor: Constructor) -> Result<Self> {
        let bounds =
            Bounds::of(&constructor).map_err(|error| overflow::of_argument(&constructor, error))?;
        Ok(Self(Handle::Made(Arc::new(Node::new(constructor, bounds)))))
    }

    #[inline]
    fn as_marker(&self) -> Option<Named> {
        if self.size() > 0 {
            return None;
        }
        self.as_named().filter(|named| named.is_marker())
    }

    #[inline]
    pub(crate) fn constructor(&self) -> &Constructor {
        &self.0.constructor
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    /// Returns true if the two datatypes are one object: one is a clone of the other, or both are the
    /// same predefined type. Two equal constructor calls make different objects.
    pub fn is_same(&self, other: &Datatype) -> bool {
        self.address() == other.address()
    }

    /// Returns an address that identifies the node, for memo tables. It identifies the node only
    /// while the tree is alive.
    pub(crate) fn address(&self) -> *const () {
        std::ptr::from_ref::<Node>(&self.0).cast()
    }

    /// Returns the number of bytes of data in one element (the packed size).
    #[doc(alias = "MPI_Type_size")]
    pub fn size(&self) -> i64 {
        self.bounds().size
    }

    /// Returns the lower bound in bytes. It is 0 for a type without data, unless a bound marker or
    /// [`Datatype::resized`] sets the bound.
    #[doc(alias = "MPI_Type_get_extent")]
    #[doc(alias = "MPI_Type_lb")]
    pub fn lb(&self) -> i64 {
        self.bounds().lb()
    }

    /// Returns the upper bound in bytes: lower bound plus extent.
    #[doc(alias = "MPI_Type_ub")]
    pub fn ub(&self) -> i64 {
        self.bounds().ub()
    }

    /// Returns the distance in bytes from the start of one element to the start of the next. A
    /// resized type may have extent 0 or a negative extent.
    #[doc(alias = "MPI_Type_get_extent")]
    #[doc(alias = "MPI_Type_extent")]
    pub fn extent(&self) -> i64 {
        // The subtraction cannot overflow, because `bounds.rs` checked at construction that the
        // extent fits in an `i64`.
        self.ub() - self.lb()
    }

    /// Returns the displacement in bytes of the first byte of data, or 0 if there is no data. Markers and
    /// padding do not count as data.
    #[doc(alias = "MPI_Type_get_true_extent")]
    pub fn true_lb(&self) -> i64 {
        self.bounds().true_lb
    }

    /// Returns the displacement in bytes of the end of the data (one past the last byte of data), or 0 if
    /// there is no data.
    pub fn true_ub(&self) -> i64 {
        self.bounds().true_ub
    }

    /// Returns the distance in bytes from the first byte of data to one past the last byte of data.
    #[doc(alias = "MPI_Type_get_true_extent")]
    pub fn true_extent(&self) -> i64 {
        self.true_ub() - self.true_lb()
    }

    /// Returns the largest alignment of the basic types in the typemap, in bytes.
    pub fn align(&self) -> u32 {
        self.bounds().align
    }

    /// Returns the number of basic types in the typemap; a pair such as `MPI_DOUBLE_INT` counts as two.
    pub fn elements(&self) -> i64 {
        self.bounds().elements
    }

    /// Returns the depth of the tree: the greatest number of constructor calls on a path from this type
    /// down to a predefined type. It is 0 for a predefined type, and saturates at the maximum of `u32`.
    pub fn depth(&self) -> u32 {
        self.bounds().depth
    }

    /// Returns true for the named types, whose combiner is [`Combiner::NAMED`].
    pub fn is_named(&self) -> bool {
        self.as_named().is_some()
    }

    /// Returns true for the types that cannot be freed: the named types, and the unnamed types that
    /// [`Datatype::f90_real`], [`Datatype::f90_complex`], [`Datatype::f90_integer`] and
    /// [`Datatype::get_value_index`] return.
    pub fn is_predefined(&self) -> bool {
        match self.constructor() {
            Constructor::Named(_) => true,
            Constructor::Composite { call, .. } => !matches!(**call, Call::Darray(_)),
            _ => false,
        }
    }

    /// If this is a named type whose consecutive copies form one run (without holes or padding),
    /// returns its size in bytes, which is 0 for a named type without data. Otherwise returns `None`.
    #[inline]
    pub(crate) fn named_run(&self) -> Option<u64> {
        let named = matches!(self.0, Handle::Named(_));
        (named && self.size() == self.extent()).then_some(self.size() as u64)
    }

    /// Returns the named type that this datatype is, or `None` if this datatype is not a named type.
    #[inline]
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
    /// Prints one line with the outermost constructor and the bounds. The whole tree is not printed,
    /// because it may be too large.
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
    /// Takes the tree apart with a list on the heap instead of recursion, because a tree may be
    /// deeper than the machine stack allows.
    fn drop(&mut self) {
        type Pending = SmallVec<[Arc<Node>; 4]>;
        fn take(constructor: &mut Constructor, pending: &mut Pending) {
            let byte = || Datatype::named(Named::BYTE).0;
            let children = match constructor {
                Constructor::Named(_) => return,
                Constructor::Composite { layout, .. } => {
                    // The call may hold the types from which `layout` was made. So `pending` must
                    // take the layout before `constructor` drops the call; otherwise dropping the
                    // call could drop the last reference to a deep tree and recurse.
                    if let Handle::Made(node) = std::mem::replace(&mut layout.0, byte()) {
                        pending.push(node);
                    }
                    *constructor = Constructor::Named(Named::BYTE);
                    return;
                }
                Constructor::Struct { types, .. } => &mut types[..],
                Constructor::Dup { old }
                | Constructor::Contiguous { old, .. }
                | Constructor::Vector { old, .. }
                | Constructor::Hvector { old, .. }
                | Constructor::Indexed { old, .. }
                | Constructor::Hindexed { old, .. }
                | Constructor::IndexedBlock { old, .. }
                | Constructor::HindexedBlock { old, .. }
                | Constructor::Subarray { old, .. }
                | Constructor::Resized { old, .. } => std::slice::from_mut(old),
            };
            for child in children {
                if matches!(child.0, Handle::Made(_))
                    && let Handle::Made(node) = std::mem::replace(&mut child.0, byte())
                {
                    pending.push(node);
                }
            }
        }
        let mut pending = Pending::new();
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
    fn dropping_a_very_deep_tree_of_darrays_does_not_recurse() {
        let mut ty = Datatype::named(Named::INT);
        for _ in 0..100_000 {
            let spread = [Distribution::None];
            ty = Datatype::darray(1, 0, &[1], &spread, &[DEFAULT_ARGUMENT], &[1], Order::C, &ty)
                .unwrap();
        }
        assert_eq!(ty.extent(), 4);
        drop(ty);
    }

    #[test]
    fn named_types_are_shared() {
        let (a, b) = (Datatype::named(Named::DOUBLE), Datatype::named(Named::DOUBLE));
        assert_eq!(a.address(), b.address());
    }
}
