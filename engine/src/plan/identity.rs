//! The identity of plans. Tables that store facts about plans use it as a key.
//!
//! `transfer/memo.rs` and the runtime's table of the types that a peer knows use this file.

use super::{Inner, Plan};
use std::sync::{Arc, Weak};

/// Distinguishes plans in a table of facts about them (`transfer/memo.rs`).
pub(crate) struct PlanName(Weak<Inner>);

impl Plan {
    /// Returns true if both values are one plan, made by one commit (or by one decoding). Equal plans
    /// of two commits are different plans.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns a name of this plan. While the name exists, no other plan gets the same name. The name
    /// does not keep the plan's contents alive.
    pub(crate) fn name(&self) -> PlanName {
        PlanName(Arc::downgrade(&self.0))
    }

    /// Returns true if `name` is the name of this plan.
    #[inline]
    pub(crate) fn is(&self, name: &PlanName) -> bool {
        // A name keeps the allocation, so no other plan gets the address.
        std::ptr::eq(Arc::as_ptr(&self.0), name.0.as_ptr())
    }
}
