//! Reductions of short vectors: every rank that needs a result combines the elements of the other ranks itself.
//!
//! `turn.rs` passes the elements to the ranks. The order of the combinations is that of the schedules: a tree in which
//! each node combines the nodes of neighbouring ranks (`reduce.rs`, `allreduce.rs`, `scan.rs`). [`Fold`] goes through
//! the ranks from the lowest one, with a stack of nodes. It combines two nodes of the same level at once; the result
//! has the next level. At the end, it combines the nodes that are left, from the highest ranks down.

use super::turn::{Turn, Words, layout};
#[cfg(doc)]
use crate::comm::Communicator;
use crate::endpoint::sources::Combine;
use crate::message::payload::copy_layout;
use crate::schedule::Part;
use crate::schedule::program::room_for;
use crate::{Error, ErrorKind, Plan, Result};

/// Number of places on the stack. At most six places are in use at once: the nodes on the stack have different levels,
/// and 32 ranks give at most six levels.
const STACK: usize = 8;

/// If a call used more scratch memory than this number of 16-byte words, the memory is freed after the call.
const KEPT: usize = (1 << 20) / 16;

impl Turn<'_> {
    /// Makes a reduction to `root`.
    ///
    /// # Safety
    ///
    /// - The elements at `send`, and those of `recv` at the root, are valid as [`Communicator::reduce_raw`] demands,
    ///   until the function returns.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    pub(super) unsafe fn reduce(
        &mut self,
        send: Option<*const u8>,
        recv: &Part<'_>,
        combine: &Combine,
        root: usize,
    ) -> Result<()> {
        let rank = self.comm.rank();
        let bytes = recv.bytes()?;
        if rank != root {
            let own = send.ok_or_else(|| super::super::reduce::missing(rank, root))?;
            if bytes == 0 {
                return Ok(());
            }
            // SAFETY: the elements at `send` are readable (condition of `# Safety`).
            return unsafe { self.contribute_to(own, recv, root) };
        }
        if bytes == 0 {
            return Ok(());
        }
        let size = self.comm.size();
        self.wait_for_all(size)?;
        self.check_all(size, bytes)?;
        // SAFETY: the elements are valid and `combine` keeps its promises (conditions of `# Safety`). The cells of all
        // ranks have arrived (`wait_for_all`) and have `bytes` bytes (`check_all`).
        unsafe { self.fold(send, recv, combine, (0..size).map(|rank| (rank, 0))) }
    }

    /// Makes a reduction to all ranks.
    ///
    /// # Safety
    ///
    /// - The elements at `send` and those of `recv` are valid as [`Communicator::allreduce_raw`] demands, until the
    ///   function returns.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    pub(super) unsafe fn allreduce(
        &mut self,
        send: Option<*const u8>,
        recv: &Part<'_>,
        combine: &Combine,
    ) -> Result<()> {
        let bytes = recv.bytes()?;
        if bytes == 0 {
            return Ok(());
        }
        let own = send.unwrap_or(recv.origin);
        // SAFETY: the elements are readable (condition of `# Safety`).
        unsafe { self.contribute_to_all(own, recv)? };
        let size = self.comm.size();
        self.check_all(size, bytes)?;
        // The first ranks are paired, so that the number of nodes above is a power of two (`allreduce.rs`).
        let paired = 2 * (size - (1 << size.ilog2()));
        let leaves = (0..size).map(|rank| (rank, u32::from(rank >= paired)));
        // SAFETY: the caller guarantees valid elements and the promises of `combine`. The cells of all ranks have
        // arrived (`contribute_to_all` has waited for them) and have `bytes` bytes (`check_all`).
        unsafe { self.fold(send, recv, combine, leaves) }
    }

    /// Makes a scan, or an exclusive scan if `inclusive` is false.
    ///
    /// # Safety
    ///
    /// - The elements at `send` and those of `recv` are valid as [`Communicator::scan_raw`] demands, until the function
    ///   returns.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    pub(super) unsafe fn scan(
        &mut self,
        send: Option<*const u8>,
        recv: &Part<'_>,
        combine: &Combine,
        inclusive: bool,
    ) -> Result<()> {
        let (rank, bytes) = (self.comm.rank(), recv.bytes()?);
        if bytes == 0 {
            return Ok(());
        }
        if rank + 1 < self.comm.size() {
            let own = send.unwrap_or(recv.origin);
            // SAFETY: the elements are readable (condition of `# Safety`).
            unsafe { self.contribute_upwards(own, recv)? };
        }
        self.wait_for_all(rank)?;
        self.check_all(rank, bytes)?;
        let end = if inclusive { rank + 1 } else { rank };
        if end == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees valid elements and the promises of `combine`. The cells of the ranks below this
        // rank have arrived and have `bytes` bytes (`check_all`), and there are no leaves of ranks above this rank.
        unsafe { self.fold(send, recv, combine, (0..end).map(|rank| (rank, 0))) }
    }

    /// Combines the elements of the ranks of `leaves`, and writes the result to `recv`. Each leaf is a rank and the
    /// level of its node in the tree.
    ///
    /// # Safety
    ///
    /// - The cells of these ranks, except this rank, have arrived and have as many bytes as `recv`.
    /// - The elements at `send` (at `recv` if it is `None`) are readable, and nobody changes them.
    /// - The elements of `recv` are writable, nobody else accesses them, and they do not overlap those at `send`.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    unsafe fn fold(
        &mut self,
        send: Option<*const u8>,
        recv: &Part<'_>,
        combine: &Combine,
        leaves: impl Iterator<Item = (usize, u32)>,
    ) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.cells.scratch);
        let mut fold = Fold {
            turn: self,
            own: send.unwrap_or(recv.origin),
            recv,
            combine,
            dense: is_dense(recv.plan),
            bytes: recv.bytes()?,
            rooms: Rooms {
                scratch: &mut scratch,
                used: 0,
                room: room_for(recv.plan, recv.count)?,
                free: [std::ptr::null_mut(); STACK],
                count: 0,
            },
        };
        if send.is_some() {
            // This rank's elements are at `send`, so `recv` holds no elements yet, and serves as memory for the first
            // result.
            fold.rooms.give_back(recv.origin);
        }
        // SAFETY: the caller guarantees the conditions of `run`, which are those of `# Safety`.
        let result = unsafe { fold.run(leaves) };
        if scratch.iter().map(Vec::len).sum::<usize>() <= KEPT {
            self.cells.scratch = scratch;
        }
        result
    }
}

/// Returns whether the packed elements of a type lie as they do in memory.
fn is_dense(plan: &Plan) -> bool {
    let shape = plan.footprint();
    plan.is_contiguous() && shape.true_lb == 0 && shape.extent as u64 == plan.element_bytes()
}

/// Memory for the results of combinations.
struct Rooms<'f> {
    scratch: &'f mut Vec<Vec<u128>>,
    /// Number of vectors of `scratch` that this call uses.
    used: usize,
    /// The size of a vector in words of 16 bytes, and the number of bytes in it before displacement 0 (`room_for`).
    room: (usize, usize),
    /// Memory that no node uses, as addresses of displacement 0: the first `count` entries.
    free: [*mut u8; STACK],
    count: usize,
}

impl Rooms<'_> {
    fn take(&mut self) -> Result<*mut u8> {
        if self.count > 0 {
            self.count -= 1;
            return Ok(self.free[self.count]);
        }
        let (words, shift) = self.room;
        if self.used == self.scratch.len() {
            self.scratch.push(Vec::new());
        }
        let block = &mut self.scratch[self.used];
        if block.len() < words {
            block.clear();
            block.try_reserve_exact(words).map_err(|_| {
                let detail =
                    format!("cannot allocate {} bytes of scratch memory", words as u128 * 16);
                Error::new(ErrorKind::NoMemory, "memory", detail)
            })?;
            block.resize(words, 0);
        }
        self.used += 1;
        Ok(block.as_mut_ptr().cast::<u8>().wrapping_add(shift))
    }

    fn give_back(&mut self, room: *mut u8) {
        if let Some(free) = self.free.get_mut(self.count) {
            *free = room;
            self.count += 1;
        }
    }
}

/// A node of the tree: the elements of a rank, or a result in the memory at this address.
#[derive(Clone, Copy)]
enum Node {
    Leaf(usize),
    Made(*mut u8),
}

/// One reduction on one rank.
struct Fold<'f, 't> {
    turn: &'f Turn<'t>,
    /// The address of this rank's elements.
    own: *const u8,
    recv: &'f Part<'f>,
    combine: &'f Combine,
    dense: bool,
    bytes: u64,
    rooms: Rooms<'f>,
}

impl Fold<'_, '_> {
    /// # Safety
    ///
    /// - The conditions of [`Turn::fold`] hold.
    unsafe fn run(&mut self, leaves: impl Iterator<Item = (usize, u32)>) -> Result<()> {
        let mut stack = [(Node::Leaf(0), 0u32); STACK];
        let mut height = 0;
        for (rank, level) in leaves {
            let (mut node, mut level) = (Node::Leaf(rank), level);
            while height > 0 && stack[height - 1].1 == level {
                height -= 1;
                // SAFETY: the conditions of `join` are those of this function.
                node = unsafe { self.join(stack[height].0, node)? };
                level += 1;
            }
            stack[height] = (node, level);
            height += 1;
        }
        let Some(top) = height.checked_sub(1) else { return Ok(()) };
        let mut node = stack[top].0;
        for (lower, _) in stack[..top].iter().rev() {
            // SAFETY: the caller guarantees the conditions of this function, and those of `join` are the same.
            node = unsafe { self.join(*lower, node)? };
        }
        match node {
            Node::Made(at) if at == self.recv.origin => {}
            Node::Made(at) => {
                let made = Part { origin: at, ..*self.recv };
                // SAFETY: both have `bytes` packed bytes. `made` is scratch memory with a result, and `recv` is
                // writable.
                unsafe { copy_layout(&layout(&made), &layout(self.recv), self.bytes) };
            }
            // SAFETY: `recv` is writable, and does not overlap this rank's elements unless they are there already.
            Node::Leaf(rank) => unsafe { self.place(rank, self.recv.origin) },
        }
        Ok(())
    }

    /// Combines two nodes.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Turn::fold`] hold.
    unsafe fn join(&mut self, lower: Node, upper: Node) -> Result<Node> {
        let target = match upper {
            Node::Made(at) => at,
            Node::Leaf(rank) => {
                let at = self.rooms.take()?;
                // SAFETY: `at` is scratch memory for the elements that no node uses, or `recv`, which is writable
                // and not where this rank's elements are.
                unsafe { self.place(rank, at) };
                at
            }
        };
        let (mut words, mut unpacked) = (Words([0; _]), None);
        let lower_at = match lower {
            Node::Made(at) => at.cast_const(),
            Node::Leaf(rank) if rank == self.turn.comm.rank() => self.own,
            Node::Leaf(rank) if self.dense => self.turn.data(rank, self.bytes, &mut words),
            Node::Leaf(rank) => {
                let at = self.rooms.take()?;
                // SAFETY: `at` is a room that no node uses: scratch memory for the elements, or `recv`, which is
                // writable and not where this rank's elements are.
                unsafe { self.place(rank, at) };
                unpacked = Some(at);
                at.cast_const()
            }
        };
        // SAFETY: both addresses are those of displacement 0 of `count` elements: results, unpacked elements, or the
        // data of a rank, which lie as in memory if the type is dense. The elements at `target` are in memory that
        // only this node uses.
        unsafe { self.combine.call(lower_at, target, 0, self.recv.count) };
        if let Node::Made(at) = lower {
            self.rooms.give_back(at);
        }
        if let Some(at) = unpacked {
            self.rooms.give_back(at);
        }
        Ok(Node::Made(target))
    }

    /// Copies the elements of a rank to memory.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Turn::fold`] hold.
    /// - The elements at `at` are writable, nobody else accesses them, and they do not overlap those of this rank,
    ///   unless both have the same address.
    unsafe fn place(&self, rank: usize, at: *mut u8) {
        let target = Part { origin: at, ..*self.recv };
        if rank != self.turn.comm.rank() {
            let mut words = Words([0; _]);
            let data = self.turn.data(rank, self.bytes, &mut words);
            // SAFETY: the data of the rank have `bytes` bytes, the packed size of `target`, which is writable.
            unsafe { layout(&target).unpack(0..self.bytes, data) };
        } else if self.own != at.cast_const() {
            let own = Part { origin: self.own.cast_mut(), ..*self.recv };
            // SAFETY: both have `bytes` packed bytes, this rank's elements are readable, and the others writable.
            unsafe { copy_layout(&layout(&own), &layout(&target), self.bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    /// Returns the tree of the fold as text.
    fn tree(leaves: impl Iterator<Item = (usize, u32)>) -> String {
        let mut stack: Vec<(String, u32)> = Vec::new();
        for (rank, mut level) in leaves {
            let mut node = rank.to_string();
            while stack.last().is_some_and(|(_, other)| *other == level) {
                let (lower, _) = stack.pop().expect("the stack has a node");
                node = format!("({lower} {node})");
                level += 1;
            }
            stack.push((node, level));
            assert!(stack.len() <= super::STACK);
        }
        let nodes = stack.into_iter().map(|(node, _)| node);
        nodes.rev().reduce(|upper, lower| format!("({lower} {upper})")).expect("there is a rank")
    }

    #[test]
    fn the_trees_are_those_of_the_schedules() {
        let plain = |size: usize| tree((0..size).map(|rank| (rank, 0)));
        assert_eq!(plain(4), "((0 1) (2 3))");
        // A binomial tree with the root 0: rank 4 combines its elements with those of 5, and then of 6.
        assert_eq!(plain(7), "(((0 1) (2 3)) ((4 5) 6))");
        let all = |size: usize| {
            let paired = 2 * (size - (1 << size.ilog2()));
            tree((0..size).map(|rank| (rank, u32::from(rank >= paired))))
        };
        assert_eq!(all(4), plain(4));
        assert_eq!(all(3), "((0 1) 2)");
        assert_eq!(all(6), "(((0 1) (2 3)) (4 5))");
        assert_eq!(all(7), "(((0 1) (2 3)) ((4 5) 6))");
        assert_eq!(all(5), "(((0 1) 2) (3 4))");
        for size in 2..=super::super::MOST {
            let (_, _) = (plain(size), all(size));
        }
    }
}
