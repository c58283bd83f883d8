//! The identity of plans. Tables of facts about plans use it as their key, for example the memo in
//! `transfer/memo.rs` and the runtime's table of the types that a peer knows.

use super::{Inner, Plan};
use std::sync::{Arc, Weak};

/// Identifies a plan in a table of facts about plans (`transfer/memo.rs`).
pub(crate) struct PlanName(Weak<Inner>);

impl Plan {
    /// Returns true if both values refer to one plan, that is, to the result of the same commit or
    /// the same decoding. Two commits of equal types make different plans.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the name of this plan, which identifies it. While a name exists, no other plan gets
    /// the same name. A name does not keep the contents of the plan alive.
    pub(crate) fn name(&self) -> PlanName {
        PlanName(Arc::downgrade(&self.0))
    }

    /// Returns true if `name` is the name of this plan.
    #[inline]
    pub(crate) fn is(&self, name: &PlanName) -> bool {
        // `name` keeps the allocation of its plan from being freed, so no other plan can get the same
        // address.
        std::ptr::eq(Arc::as_ptr(&self.0), name.0.as_ptr())
    }
}
