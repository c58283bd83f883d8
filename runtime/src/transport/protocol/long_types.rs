//! The types of a sender whose encoded form is too long for the ring, such as long lists of blocks.
//!
//! The encoded form of such a type travels through the sender's heap. The sender (`heap.rs`) writes the form
//! to a piece of its heap and names the piece in a DefineLong. The receiver (`peer.rs`) copies the form out of
//! the piece, decodes its own copy, and answers with a Defined; then the sender frees the piece. [`LongTypes`]
//! is the sender's table of these types for one receiver. `types.rs` has the table of all other types.
//!
//! A definition costs more time than a few messages gain by it: the form is encoded, copied and decoded. So a
//! type gets a number only when a second message uses it.
//!
//! Invariants: the numbers of these types follow the numbers of all other types, and a receiver keeps at most
//! [`LONG_TYPES`] of them, of at most [`LONG_MAX`] encoded bytes each. The sender does not define a number
//! again while the piece of its last definition is in use.

use crate::Plan;
use crate::message::envelope::{LONG_TYPES, TYPES};
use crate::request::types::Advertised;
use crate::shm::heap::Heap;
use std::collections::VecDeque;
use std::ptr::NonNull;

#[cfg(doc)]
use crate::message::envelope::LONG_MAX;

/// Maximum number of plans in the list of plans that messages have used and that have no number.
const SEEN: usize = 4;

/// The first byte of a piece of this rank's heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece(NonNull<u8>);

// SAFETY: a piece is only the address of memory in the heap. No thread accesses the memory through it; the
// heap compares the address when the piece is freed.
unsafe impl Send for Piece {}

/// The long types of this sender that one receiver knows.
#[derive(Debug)]
pub struct LongTypes {
    /// The types, each with the piece of this rank's heap that holds its encoded form, until the receiver has copied
    /// the form.
    types: Advertised<Option<Piece>>,
    /// Up to [`SEEN`] plans with which a message was sent and whose types have no number. The oldest is
    /// first.
    seen: VecDeque<Plan>,
}

impl Default for LongTypes {
    fn default() -> Self {
        Self { types: Advertised::new(LONG_TYPES), seen: VecDeque::new() }
    }
}

impl LongTypes {
    /// Returns the number of a plan's type if the receiver knows the type.
    pub fn number(&mut self, plan: &Plan) -> Option<u32> {
        self.types.number(plan).map(|number| TYPES as u32 + number)
    }

    /// Returns the number under which the sender can define the type of `plan` now. Returns `None` if
    /// `plan` is not among the plans of the last messages (`seen`), and then adds it to them. Also
    /// returns `None` if the receiver has not yet answered the last definition of the number.
    pub fn free_number(&mut self, plan: &Plan) -> Option<u32> {
        let Some(at) = self.seen.iter().position(|seen| seen.is_same(plan)) else {
            if self.seen.len() == SEEN {
                self.seen.pop_front();
            }
            self.seen.push_back(plan.clone());
            return None;
        };
        let number = self.types.free();
        if self.types.with(number as usize).is_some_and(|piece| piece.is_some()) {
            return None;
        }
        self.seen.remove(at);
        Some(TYPES as u32 + number)
    }

    /// Records that this rank has sent the definition of the number that [`LongTypes::free_number`] has
    /// returned. `piece` is the first byte of the encoded form.
    pub fn define(&mut self, plan: &Plan, piece: NonNull<u8>) {
        self.types.define(plan, Vec::new(), Some(Piece(piece)));
    }

    /// Frees the piece of a definition, which the receiver has copied. Returns false if this rank waits
    /// for no answer to a definition of this number.
    pub fn defined(&mut self, number: u32, heap: &Heap) -> bool {
        let at = (number as usize).checked_sub(TYPES);
        let piece = at.and_then(|at| self.types.with(at)).and_then(Option::take);
        piece.is_some_and(|Piece(piece)| heap.free(piece.as_ptr()))
    }
}
