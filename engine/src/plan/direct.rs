//! The direct way of a nest: the function that executes its calls, once no decision about it is left.
//!
//! A call of a hundred bytes takes a few nanoseconds, and the questions which executor is the fastest, whether
//! a kernel is compiled, and how the leaf kernel steps through the levels would take as long again. The answers
//! are final after some calls. `exec/call.rs` then calls [`NestPlan::settle`](super::NestPlan::settle), which
//! stores a [`Direct`]. Later calls need two comparisons and one indirect call.

use crate::kernel::{Entry, Kernel};
use crate::leaf::DirectRow;

/// The executor of a nest in one direction that no later call changes.
#[repr(C)]
pub(crate) struct Direct {
    /// Maximum number of packed bytes of a call that goes this way. For longer calls, another executor is
    /// faster.
    most: u64,
    code: Code,
}

/// The function that a direct call calls.
pub(crate) enum Code {
    /// A compiled kernel. The kernel slot of the nest keeps its code alive.
    Kernel(Entry),
    /// A row of a leaf kernel.
    Row(DirectRow),
}

impl Direct {
    /// Makes the direct way that calls `kernel`, for calls of at most `most` packed bytes. The caller must keep
    /// the kernel alive as long as the `Direct`.
    pub(super) fn kernel(kernel: &Kernel, most: u64) -> Self {
        Self { most, code: Code::Kernel(kernel.entry()) }
    }

    /// Makes the direct way that calls `row`, for calls of any size.
    pub(super) fn row(row: DirectRow) -> Self {
        Self { most: u64::MAX, code: Code::Row(row) }
    }

    /// Returns the code for a call of `bytes` packed bytes with the parameter block `words`. Returns `None` if
    /// this call must take the other way.
    #[inline(always)]
    pub(crate) fn code(&self, words: &[u64], bytes: u64) -> Option<&Code> {
        let once = match &self.code {
            Code::Kernel(_) => true,
            Code::Row(row) => row.fits(words),
        };
        (bytes <= self.most && once).then_some(&self.code)
    }
}
