//! The sends whose CTS has arrived, and the order in which `pipeline.rs` packs their pieces into chunks.
//!
//! Most sends are packed one after another, so that the first message is complete early. Sends with sparse layouts take
//! turns, piece by piece. A sparse layout touches a whole cache line for a few bytes, and the layouts of one exchange
//! often touch the same lines: in a grid of doubles, the face that a rank sends lies in the same lines as the halo that
//! it receives beside it. If the rank packs one long face after another, the lines of the first face have left the
//! cache when the data of its halo arrive. If the faces take turns, all layouts advance through memory together, and
//! each line comes from memory once.
//!
//! Measured with a C program of one thread on a Xeon (family 6, model 207, 2 MiB of second-level cache), which packs
//! two opposite x faces of a grid of doubles and unpacks two halos, in us:
//!
//! | grid | one after another | pieces of 32 KiB | 16 KiB | 4 KiB |
//! |---|---|---|---|---|
//! | 64^3 | 20 | 20 | 20 | 16 |
//! | 128^3 | 108 | 97 | 93 | 75 |
//! | 256^3 | 1276 | 692 | 626 | 570 |

use std::collections::VecDeque;
use typepack_engine::contiguous::Method;

/// Maximum number of sends that take turns. Each of them keeps some lines in the caches.
const TURNS: usize = 4;

/// A send whose CTS has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// The number of the message in the order of the CTS envelopes of the pair.
    pub number: u64,
    /// The send.
    pub id: u64,
    /// The method for long runs, which the CTS names.
    pub method: Method,
    /// True if the layout of the send is sparse.
    pub sparse: bool,
}

/// The sends whose CTS has arrived, in the order of arrival.
#[derive(Debug, Default)]
pub struct Queue {
    sends: VecDeque<Cleared>,
    /// Number of CTS envelopes of the pair so far.
    count: u64,
    /// The number of the message of the last piece.
    last: u64,
}

impl Queue {
    /// Appends a send.
    pub fn push(&mut self, id: u64, method: Method, sparse: bool) {
        self.sends.push_back(Cleared { number: self.count, id, method, sparse });
        self.count += 1;
    }

    /// Returns true if no send waits for a piece.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sends.is_empty()
    }

    /// Returns the send whose piece comes next, and counts its turn. `ahead` is the send whose first piece this rank
    /// has packed already; it comes first if it is one of the sends that take turns.
    pub fn next(&mut self, ahead: Option<u64>) -> Option<Cleared> {
        let first = *self.sends.front()?;
        if !first.sparse {
            return Some(first);
        }
        let last = self.last;
        let turns = || self.sends.iter().take(TURNS).filter(|send| send.sparse).copied();
        let next = turns()
            .find(|send| Some(send.id) == ahead)
            .or_else(|| turns().find(|send| send.number > last))
            .unwrap_or(first);
        self.last = next.number;
        Some(next)
    }

    /// Removes the send with this number. All of its pieces are packed.
    pub fn remove(&mut self, number: u64) {
        if let Some(at) = self.sends.iter().position(|send| send.number == number) {
            self.sends.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a queue of sends. Send `i` is sparse if `sparse[i]`.
    fn queue(sparse: &[bool]) -> Queue {
        let mut queue = Queue::default();
        for (id, sparse) in (0..).zip(sparse) {
            queue.push(id, Method::Vector, *sparse);
        }
        queue
    }

    fn turns(queue: &mut Queue, count: usize) -> Vec<u64> {
        (0..count).map(|_| queue.next(None).map_or(u64::MAX, |send| send.id)).collect()
    }

    #[test]
    fn sends_with_long_runs_go_one_after_another() {
        let mut queue = queue(&[false, true, false]);
        assert_eq!(turns(&mut queue, 3), [0, 0, 0]);
        queue.remove(0);
        assert_eq!(turns(&mut queue, 2), [1, 1]);
        queue.remove(1);
        assert_eq!(turns(&mut queue, 2), [2, 2]);
        queue.remove(2);
        assert!(queue.is_empty() && queue.next(None).is_none());
    }

    #[test]
    fn sparse_sends_take_turns() {
        let mut queue = queue(&[true, true, false, true, true]);
        assert_eq!(turns(&mut queue, 7), [1, 3, 0, 1, 3, 0, 1]);
        queue.remove(1);
        // The fifth send is now one of the first four.
        assert_eq!(turns(&mut queue, 5), [3, 4, 0, 3, 4]);
    }

    #[test]
    fn a_piece_that_is_packed_already_comes_first() {
        let mut queue = queue(&[true, true, true]);
        assert_eq!(queue.next(Some(2)).map(|send| send.id), Some(2));
        assert_eq!(turns(&mut queue, 3), [0, 1, 2]);
        assert_eq!(queue.next(Some(9)).map(|send| send.id), Some(0));
    }
}
