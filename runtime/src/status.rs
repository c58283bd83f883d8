//! The status of a message: what a receive or a probe reports.
//!
//! Errors carry a status too, so this file does not depend on `error.rs`. The label that a message has
//! before it is received is in `message/label.rs`.

use crate::Plan;

/// The properties of a message that a completed receive or a probe reports (`MPI_Status`).
#[doc(alias = "MPI_Status")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Rank of the sender in the communicator.
    pub source: usize,
    /// Tag of the message.
    pub tag: i32,
    /// Packed bytes of the message.
    pub bytes: u64,
}

impl Status {
    /// Returns how many elements of `plan`'s type the message holds, or `None` if its bytes are not a whole
    /// number of elements.
    #[doc(alias = "MPI_Get_count")]
    pub fn count(&self, plan: &Plan) -> Option<u64> {
        match (self.bytes, plan.element_bytes()) {
            (0, _) => Some(0),
            (_, 0) => None,
            (bytes, element) => bytes.is_multiple_of(element).then(|| bytes / element),
        }
    }
}
