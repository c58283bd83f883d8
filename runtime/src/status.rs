//! The status of a message: the facts that a receive or a probe reports about the message.
//!
//! Errors contain a status too, so this file does not depend on `error.rs`. `message/label.rs` has the
//! label of a message, which describes the message before it is received.

use crate::Plan;

/// The facts that a completed receive or a probe reports about a message (`MPI_Status`).
#[doc(alias = "MPI_Status")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Rank of the sender in the communicator.
    pub source: usize,
    /// Tag of the message.
    pub tag: i32,
    /// Number of packed bytes of the message.
    pub bytes: u64,
}

impl Status {
    /// Returns how many elements of `plan`'s type the message holds, or `None` if the message does not end
    /// at the end of an element.
    #[doc(alias = "MPI_Get_count")]
    pub fn count(&self, plan: &Plan) -> Option<u64> {
        match (self.bytes, plan.element_bytes()) {
            (0, _) => Some(0),
            (_, 0) => None,
            (bytes, element) => bytes.is_multiple_of(element).then(|| bytes / element),
        }
    }
}
