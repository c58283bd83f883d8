//! What a receive or a probe says about its message. Errors carry it, too, so that it stands before
//! `error.rs`; what messages are known by before they are received is in `message/label.rs`.

use crate::Plan;

/// What a completed receive, or a probe, says about its message (`MPI_Status`).
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
    /// How many whole elements of `plan`'s type the message holds; `None` when its bytes are not
    /// a whole number of elements.
    #[doc(alias = "MPI_Get_count")]
    pub fn count(&self, plan: &Plan) -> Option<u64> {
        match (self.bytes, plan.element_bytes()) {
            (0, _) => Some(0),
            (_, 0) => None,
            (bytes, element) => bytes.is_multiple_of(element).then(|| bytes / element),
        }
    }
}
