//! The datatype tree: what the user said, kept as it was said.
//!
//! First room of the flow. A node holds its constructor call (that is what decoding will return)
//! and its bounds; it is immutable and shared, so a type used in many places exists once. Next
//! room: `commit.rs`, which lowers the tree to a program.
//!
//! - `construct.rs`: the constructors and their argument checks
//! - `array.rs`, `darray.rs`: subarrays, distributed arrays
//! - `predefined.rs`: the unnamed predefined types (Fortran 90 kinds, value-index pairs)
//! - `mpi1.rs`: the calls and bound markers of MPI-1
//! - `bounds.rs`: size, lower and upper bounds, true bounds, alignment; the only place
//! - `elements.rs`: how many basic elements a number of packed bytes is
//! - `decode.rs`, `rebuild.rs`: envelope and contents, and the way back
//!
//! Invariants: bounds of a node fit 64 bits; nothing here recurses over the depth of the tree,
//! dropping included.

mod array;
mod bounds;
mod construct;
mod darray;
mod decode;
mod elements;
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
use crate::table::Table;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// An MPI datatype: an immutable, shared tree of constructor calls.
///
/// Cloning is one reference count. A datatype describes memory; [`Datatype::commit`] turns it into
/// a [`Plan`](crate::Plan) that moves bytes.
#[derive(Clone)]
#[doc(alias = "MPI_Datatype")]
pub struct Datatype(Handle);

/// Who keeps a node. Named types are in nearly every tree: without a count they cost no atomic
/// operation, and threads that make types do not meet at them.
#[derive(Clone)]
enum Handle {
    /// A named type, which lives as long as the process.
    Named(&'static Node),
    /// A type that a call made.
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
    /// How the call is decoded, when it was said (`decode.rs`).
    form: Option<Form>,
    /// Sampled prefix sums of a long struct, made at the first question (`elements.rs`).
    marks: OnceLock<Box<[elements::Mark]>>,
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
        region: Region,
        order: Order,
        old: Datatype,
    },
    Resized {
        lb: i64,
        extent: i64,
        old: Datatype,
    },
    /// A call that is the same as a tree of other calls. Everything but decoding, printing and the
    /// oracle looks at `layout` only, which has the same typemap and bounds.
    Composite {
        call: Box<Call>,
        layout: Datatype,
    },
}

/// The calls that are held as a [`Constructor::Composite`].
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Darray(Darray),
    F90(F90),
    ValueIndex { value: Datatype, index: Datatype },
}

impl Constructor {
    /// The types this call was given; for a composite the layout it stands for.
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
    /// The named type `named` as a datatype. Allocates nothing after the first call.
    pub fn named(named: Named) -> Self {
        static ALL: OnceLock<Vec<Node>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            Named::all_with_markers()
                .map(|named| Node::new(Constructor::Named(named), Bounds::named(named)))
                .collect()
        });
        Self(Handle::Named(&all[named.index()]))
    }

    /// Makes a node from types that are not bound markers. The bounds are computed here, for every
    /// constructor.
    fn build(constructor: Constructor) -> Result<Self> {
        let children = constructor.children();
        if let Some(marker) = children.iter().find_map(|child| child.as_marker()) {
            return Err(Error::new(
                ErrorKind::Type,
                if matches!(constructor, Constructor::Struct { .. }) { "types" } else { "old" },
                format!("{marker} is a bound marker of MPI-1, which only type_struct takes"),
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

    pub(crate) fn constructor(&self) -> &Constructor {
        &self.0.constructor
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    /// True when the two are one object: a clone, or a predefined type asked for twice. Equal calls
    /// make different objects.
    pub fn is_same(&self, other: &Datatype) -> bool {
        self.address() == other.address()
    }

    /// Identity of the node, for memo tables while the tree is alive.
    pub(crate) fn address(&self) -> *const () {
        std::ptr::from_ref::<Node>(&self.0).cast()
    }

    /// Bytes of data in one element (packed size).
    #[doc(alias = "MPI_Type_size")]
    pub fn size(&self) -> i64 {
        self.bounds().size
    }

    /// Lower bound in bytes; 0 for a type without entries.
    #[doc(alias = "MPI_Type_get_extent")]
    #[doc(alias = "MPI_Type_lb")]
    pub fn lb(&self) -> i64 {
        self.bounds().lb()
    }

    /// Upper bound in bytes: lower bound plus extent.
    #[doc(alias = "MPI_Type_ub")]
    pub fn ub(&self) -> i64 {
        self.bounds().ub()
    }

    /// Distance in bytes from one element to the next; may be 0 or negative (resized types).
    #[doc(alias = "MPI_Type_get_extent")]
    #[doc(alias = "MPI_Type_extent")]
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

    /// Number of basic types in the typemap; a pair such as `MPI_DOUBLE_INT` counts as two.
    pub fn elements(&self) -> i64 {
        self.bounds().elements
    }

    /// Constructor calls from this type down to the deepest predefined type, which itself has 0.
    /// Stays at its largest value in trees that are deeper.
    pub fn depth(&self) -> u32 {
        self.bounds().depth
    }

    /// True for the named types, those whose combiner is [`Combiner::NAMED`].
    pub fn is_named(&self) -> bool {
        self.as_named().is_some()
    }

    /// True for the types that cannot be freed: the named ones, and the unnamed ones that
    /// [`Datatype::f90_real`] and its like and [`Datatype::get_value_index`] return.
    pub fn is_predefined(&self) -> bool {
        match self.constructor() {
            Constructor::Named(_) => true,
            Constructor::Composite { call, .. } => !matches!(**call, Call::Darray(_)),
            _ => false,
        }
    }

    /// Bytes of a named type of which copies are one run, hence without a hole or padding; 0 for one
    /// without data.
    #[inline]
    pub(crate) fn named_run(&self) -> Option<u64> {
        let named = matches!(self.0, Handle::Named(_));
        (named && self.size() == self.extent()).then_some(self.size() as u64)
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
        type Pending = SmallVec<[Arc<Node>; 4]>;
        fn take(constructor: &mut Constructor, pending: &mut Pending) {
            let byte = || Datatype::named(Named::BYTE).0;
            let children = match constructor {
                Constructor::Named(_) => return,
                Constructor::Composite { layout, .. } => {
                    // The call may hold the types that the layout is made of: the list has the
                    // last reference only once the call is gone.
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
