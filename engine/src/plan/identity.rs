//! Which plan is which: what is remembered about plans is found by these.
//!
//! Beside `plan/`; asked by `transfer/memo.rs` and by the runtime's book of the types that a peer knows.

use super::{Inner, Plan};
use std::sync::{Arc, Weak};

/// Tells plans apart, for what is remembered about them (`transfer/memo.rs`).
pub(crate) struct PlanName(Weak<Inner>);

impl Plan {
    /// Whether this is the plan of one and the same commit (or decoding), not only an equal one.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A name of this plan that no other plan takes while it is held; it keeps no contents alive.
    pub(crate) fn name(&self) -> PlanName {
        PlanName(Arc::downgrade(&self.0))
    }

    /// True when `name` is this plan's.
    #[inline]
    pub(crate) fn is(&self, name: &PlanName) -> bool {
        // A name keeps the allocation, so no other plan gets its address.
        std::ptr::eq(Arc::as_ptr(&self.0), name.0.as_ptr())
    }
}
