//! The combination of the elements of several ranks by one rank, in one step of a reduction.
//!
//! `reductions.rs` has the calls, and `turn.rs` passes the elements to the ranks. The order of the combinations is that
//! of the schedules. For short vectors it is a tree in which each node combines the nodes of neighbouring ranks
//! (`reduce.rs`, `allreduce.rs`). [`Fold`] goes through the ranks from the lowest one, with a stack of
//! nodes. It combines two nodes of the same level at once; the result has the next level. At the end, it combines the
//! nodes that are left, from the highest ranks down. A reduce or an allreduce of a long vector goes from the highest
//! rank to the lowest instead (`reduces_in_blocks` in `reduce_scatter.rs`).

use super::turn::{INLINE, InlineData, Turn};
use crate::endpoint::sources::{Combine, Combiner};
use crate::message::payload::copy_layout;
use crate::schedule::program::{room_for, take_room};
use crate::shm::cells::WORDS;
use crate::{Plan, Result};
use std::ops::Range;
use typepack_engine::Elements;

/// Number of places on the stack. At most six places are in use at once: the nodes on the stack have different levels,
/// and 32 ranks give at most six levels.
const STACK: usize = 8;

/// Number of bytes of a block of elements that are combined together.
const BLOCK: u64 = 4 << 10;

/// Number of bytes of a block of elements that a user's function combines in one call. A call may be expensive, so the
/// block is larger.
const USER_BLOCK: u64 = 16 << 10;

/// If a call used more scratch memory than this number of 16-byte words, the memory is freed after the call.
pub(super) const KEPT: usize = (1 << 20) / 16;

/// Elements of the ranks to combine: those of the current step, from `first` on.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    /// The address of this rank's elements.
    pub own: *const u8,
    /// The type and the number of the elements. `origin` is the address of the result.
    pub result: Elements<&'a Plan>,
    /// Number of elements of the call before these elements.
    pub first: u64,
    /// The number of packed bytes of each rank in this step.
    pub published: u64,
    /// The offset of the elements in these bytes.
    pub offset: u64,
}

/// Returns the number of packed bytes of some elements of a call. The number fits in 63 bits, because the call has
/// checked the number for all its elements.
#[inline]
pub(super) fn packed(part: &Elements<&Plan>) -> u64 {
    part.plan.element_bytes() * part.count
}

impl<'a> Operands<'a> {
    /// Returns the elements `range` of a call, all of which are passed on in one step. The call's elements are at
    /// `own`, and its result is `all`.
    #[inline]
    pub(super) fn piece(own: *const u8, all: &Elements<&'a Plan>, range: Range<u64>) -> Self {
        let first = range.start;
        let result = all.slice(range);
        let own = own.wrapping_offset(all.offset(first));
        Self { own, result, first, published: packed(&result), offset: 0 }
    }

    /// Returns the elements `range` of these elements.
    #[inline]
    pub(super) fn part(&self, range: Range<u64>) -> Self {
        let first = range.start;
        Self {
            own: self.own.wrapping_offset(self.result.offset(first)),
            result: self.result.slice(range),
            first: self.first + first,
            published: self.published,
            offset: self.offset + first * self.result.plan.element_bytes(),
        }
    }
}

/// The order of the combinations.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// A tree over all ranks, in which neighbouring ranks combine first.
    Tree,
    /// A tree over all ranks. The first ranks are paired, so that the number of nodes above is a power of two
    /// (`allreduce.rs`).
    Doubling,
    /// From the highest rank to the lowest (`reduce_scatter.rs`).
    Chain,
}

impl Order {
    /// Combines the values of `size` ranks, at least one, in this order. `leaf` returns the value of a rank, and `join`
    /// combines a lower and an upper value.
    #[inline]
    fn combine<N>(
        self,
        size: usize,
        leaf: impl Fn(usize) -> N,
        mut join: impl FnMut(N, N) -> Result<N>,
    ) -> Result<N> {
        if size == 2 {
            // All orders are the same.
            return join(leaf(0), leaf(1));
        }
        match self {
            Self::Chain => {
                let mut node = leaf(size - 1);
                for rank in (0..size - 1).rev() {
                    node = join(leaf(rank), node)?;
                }
                Ok(node)
            }
            Self::Tree => tree((0..size).map(|rank| (leaf(rank), 0)), join),
            Self::Doubling => tree(doubling(size).map(|(rank, level)| (leaf(rank), level)), join),
        }
    }
}

/// Combines the values of `leaves`, each with the level of its node in the tree. There is at least one leaf.
#[inline]
fn tree<N>(
    leaves: impl Iterator<Item = (N, u32)>,
    mut join: impl FnMut(N, N) -> Result<N>,
) -> Result<N> {
    let mut stack: [Option<(N, u32)>; STACK] = [const { None }; STACK];
    let mut height = 0;
    for (mut node, mut level) in leaves {
        while height > 0
            && let Some((lower, _)) = stack[height - 1].take_if(|(_, other)| *other == level)
        {
            height -= 1;
            node = join(lower, node)?;
            level += 1;
        }
        stack[height] = Some((node, level));
        height += 1;
    }
    let mut nodes = stack.into_iter().flatten().map(|(node, _)| node).rev();
    let Some(top) = nodes.next() else { unreachable!("there is a rank") };
    nodes.try_fold(top, |upper, lower| join(lower, upper))
}

impl Turn<'_> {
    /// Combines the elements of the ranks, and writes the result to `elements.result`.
    ///
    /// # Safety
    ///
    /// - The cells of all ranks, except this rank, have arrived in this step, and each has
    ///   `elements.published` bytes. The elements lie within these bytes.
    /// - The elements at `elements.own` are readable, and nobody changes them.
    /// - The elements of `elements.result` are writable, and nobody else accesses them. They do not overlap those at
    ///   `elements.own`, unless both have the same address.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    pub(super) unsafe fn fold(
        &mut self,
        elements: &Operands<'_>,
        combine: &Combine,
        order: Order,
    ) -> Result<()> {
        if elements.published <= INLINE
            && let Combine::Native(_) = combine
            && is_dense(elements.result.plan)
        {
            // SAFETY: the conditions are those of this function, and the type is dense.
            return unsafe { self.fold_short(elements, combine, order) };
        }
        let mut scratch = std::mem::take(&mut self.cells.scratch);
        let turn = &*self;
        let mut made = Ok(());
        turn.timed(0..turn.size, elements.published, || {
            // SAFETY: the caller guarantees the conditions of `fold_in_blocks`, which are those of `# Safety`.
            made = unsafe { turn.fold_in_blocks(*elements, combine, order, &mut scratch) };
        });
        if scratch.iter().map(Vec::len).sum::<usize>() <= KEPT {
            self.cells.scratch = scratch;
        }
        made
    }

    /// Combines elements that lie in the cells.
    ///
    /// # Safety
    ///
    /// - The conditions of [`fold`](Self::fold) hold.
    /// - The type of the elements is dense, and each rank has at most [`INLINE`] bytes.
    #[inline]
    unsafe fn fold_short(
        &self,
        elements: &Operands<'_>,
        combine: &Combine,
        order: Order,
    ) -> Result<()> {
        let &Operands { own, ref result, first, offset, .. } = elements;
        let bytes = packed(result).min(INLINE - offset) as usize;
        let leaf = |rank| {
            let mut words = InlineData([0; WORDS]);
            if rank == self.rank {
                // SAFETY: `bytes` bytes at `own` are readable, because the type is dense, and `words` has room for
                // them.
                unsafe { std::ptr::copy_nonoverlapping(own, words.0.as_mut_ptr().cast(), bytes) };
            } else {
                words.0 = self.cells.seat.data(&self.cells.block, rank, self.number);
                if offset > 0 {
                    let start = words.0.as_mut_ptr().cast::<u8>();
                    // SAFETY: both ranges lie within `words`: the bytes at `offset` are some of the published bytes, of
                    // which there are at most `INLINE`.
                    unsafe { std::ptr::copy(start.add(offset as usize), start, bytes) };
                }
            }
            words
        };
        let made = order.combine(self.size, leaf, |lower, mut upper| {
            let (from, to) = (lower.0.as_ptr().cast(), upper.0.as_mut_ptr().cast());
            // SAFETY: the type is dense, so `lower` and `upper` hold `result.count` elements each. `combine` keeps its
            // promises for them.
            unsafe { combine.call(from, to, first, result.count) };
            Ok(upper)
        })?;
        // SAFETY: the result is writable (condition of `fold`), and `made` has room for `bytes` bytes.
        unsafe { std::ptr::copy_nonoverlapping(made.0.as_ptr().cast(), result.origin, bytes) };
        Ok(())
    }

    /// Combines the elements in blocks that fit in a cache: most results are operands of the next combination, and the
    /// elements of a rank are copied before a user's function replaces them.
    ///
    /// # Safety
    ///
    /// - The conditions of [`fold`](Self::fold) hold.
    unsafe fn fold_in_blocks(
        &self,
        elements: Operands<'_>,
        combine: &Combine,
        order: Order,
        scratch: &mut Vec<Vec<u128>>,
    ) -> Result<()> {
        let Elements { plan, count, .. } = elements.result;
        let dense = is_dense(plan);
        let block = match combine {
            // The elements of two ranks are combined once, and straight to the result.
            Combine::Native(_) if self.size == 2 && dense => count,
            _ => block(&elements, combine),
        };
        let mut first = 0;
        while first < count {
            let elements = match block {
                _ if block == count => elements,
                _ => elements.part(first..count.min(first + block)),
            };
            first += block;
            let result = elements.result;
            let mut fold = Fold {
                turn: self,
                elements,
                combine,
                dense,
                bytes: packed(&result),
                rooms: Rooms {
                    scratch: &mut *scratch,
                    used: 0,
                    room: room_for(plan, result.count)?,
                    free: [std::ptr::null_mut(); STACK],
                    count: 0,
                },
            };
            // The memory of the result serves as memory for the first combination, if it holds no elements that are
            // still needed then. In place, it holds the elements of this rank. If two ranks combine, the result may
            // replace them.
            if elements.own != result.origin.cast_const()
                || (self.size == 2 && fold.combines_in_the_cells().is_some())
            {
                fold.rooms.give_back(result.origin);
            }
            // SAFETY: the caller guarantees the conditions of `run` for all elements, and so for these.
            unsafe { fold.run(order)? };
        }
        Ok(())
    }
}

/// Returns the number of elements that are combined together.
pub(super) fn block(elements: &Operands<'_>, combine: &Combine) -> u64 {
    let Elements { plan, count, .. } = elements.result;
    let most = match combine {
        Combine::Native(_) if is_dense(plan) => BLOCK,
        Combine::Native(_) => return count,
        Combine::User(_) => USER_BLOCK,
    };
    if elements.published <= most { count } else { (most / plan.element_bytes().max(1)).max(1) }
}

/// Returns whether the packed elements of a type lie as they do in memory.
pub(super) fn is_dense(plan: &Plan) -> bool {
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
        if self.used == self.scratch.len() {
            self.scratch.push(Vec::new());
        }
        let room = take_room(&mut self.scratch[self.used], self.room)?;
        self.used += 1;
        Ok(room)
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
    elements: Operands<'f>,
    combine: &'f Combine,
    dense: bool,
    bytes: u64,
    rooms: Rooms<'f>,
}

impl Fold<'_, '_> {
    /// # Safety
    ///
    /// - The conditions of [`Turn::fold`] hold.
    unsafe fn run(&mut self, order: Order) -> Result<()> {
        // SAFETY: the conditions of `join` are those of this function.
        let node = order.combine(self.turn.size, Node::Leaf, |lower, upper| unsafe {
            self.join(lower, upper)
        })?;
        let result = self.elements.result;
        match node {
            Node::Made(at) if at != result.origin => {
                let made = Elements { origin: at, ..result };
                // SAFETY: both have `bytes` packed bytes. `made` is scratch memory with a result, and `result` is
                // writable.
                unsafe { copy_layout(&made, &result, self.bytes) };
            }
            // SAFETY: `result` is writable, and does not overlap this rank's elements unless they are there already.
            Node::Leaf(rank) => unsafe { self.place(rank, result.origin) },
            Node::Made(_) => {}
        }
        Ok(())
    }

    /// Returns the address of the elements of rank `from` in its cell or its ring.
    #[inline]
    fn data(&self, from: usize, words: &mut InlineData) -> *const u8 {
        let data = self.turn.data(from, self.elements.published, words);
        data.wrapping_add(self.elements.offset as usize)
    }

    /// Returns the address of the elements of rank `from`, which lie as in memory: the elements of this rank, or data
    /// of a dense type in the cell or the ring of another rank.
    #[inline]
    fn elements_of(&self, from: usize, words: &mut InlineData) -> *const u8 {
        if from == self.turn.rank { self.elements.own } else { self.data(from, words) }
    }

    /// Returns the function of this library that combines elements where they are, without a copy of an operand.
    /// Returns `None` for a user's function, which replaces its upper operand, and if the data of other ranks must be
    /// unpacked.
    #[inline]
    fn combines_in_the_cells(&self) -> Option<Combiner> {
        self.combine.native().filter(|_| self.dense)
    }

    /// Combines two nodes.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Turn::fold`] hold.
    unsafe fn join(&mut self, lower: Node, upper: Node) -> Result<Node> {
        let combines = self.combines_in_the_cells();
        let (mut upper_words, mut words) = (InlineData([0; WORDS]), InlineData([0; WORDS]));
        let (upper_at, target) = match upper {
            Node::Made(at) => (at.cast_const(), at),
            Node::Leaf(rank) if combines.is_some() => {
                (self.elements_of(rank, &mut upper_words), self.rooms.take()?)
            }
            Node::Leaf(rank) => {
                let at = self.rooms.take()?;
                // SAFETY: `at` is scratch memory for the elements that no node uses, or `recv`, which is writable
                // and not where this rank's elements are.
                unsafe { self.place(rank, at) };
                (at.cast_const(), at)
            }
        };
        let mut unpacked = None;
        let lower_at = match lower {
            Node::Made(at) => at.cast_const(),
            Node::Leaf(rank) if rank == self.turn.rank || self.dense => {
                self.elements_of(rank, &mut words)
            }
            Node::Leaf(rank) => {
                let at = self.rooms.take()?;
                // SAFETY: `at` is a room that no node uses: scratch memory for the elements, or `recv`, which is
                // writable and not where this rank's elements are.
                unsafe { self.place(rank, at) };
                unpacked = Some(at);
                at.cast_const()
            }
        };
        let Operands { first, result: Elements { count, .. }, .. } = self.elements;
        // SAFETY: all addresses are those of displacement 0 of `count` elements: results, unpacked elements, or the
        // data of a rank, which lie as in memory if the type is dense. The elements at `target` are in memory that only
        // this node uses. With a combiner, `target` may be where this rank's elements are, so it is the address of one
        // operand (`fold_in_blocks`), and overlaps nothing otherwise. Without one, the upper operand is at `target`.
        unsafe {
            match combines {
                Some(combiner) => combiner(lower_at, upper_at, target, count as usize),
                None => self.combine.call(lower_at, target, first, count),
            }
        }
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
        let Operands { own, result, .. } = self.elements;
        let target = Elements { origin: at, ..result };
        if rank != self.turn.rank {
            let mut words = InlineData([0; WORDS]);
            let data = self.data(rank, &mut words);
            // SAFETY: the data of the rank have `bytes` bytes, the packed size of `target`, which is writable.
            unsafe { target.unpack(0..self.bytes, data) };
        } else if own != at.cast_const() {
            let own = Elements { origin: own.cast_mut(), ..result };
            // SAFETY: both have `bytes` packed bytes, this rank's elements are readable, and the others writable.
            unsafe { copy_layout(&own, &target, self.bytes) };
        }
    }
}

/// Returns the leaves of [`Order::Doubling`]. The first ranks are paired, so that the number of nodes above is a power
/// of two.
fn doubling(size: usize) -> impl Iterator<Item = (usize, u32)> {
    let paired = 2 * (size - (1 << size.ilog2()));
    (0..size).map(move |rank| (rank, u32::from(rank >= paired)))
}

#[cfg(test)]
mod tests {
    use crate::coll::flags::fold::Order;

    /// Returns the order of the combinations of `size` ranks as text.
    fn text(order: Order, size: usize) -> String {
        let join = |lower: String, upper: String| Ok(format!("({lower} {upper})"));
        order.combine(size, |rank| rank.to_string(), join).unwrap()
    }

    #[test]
    fn the_trees_are_those_of_the_schedules() {
        let plain = |size: usize| text(Order::Tree, size);
        assert_eq!(plain(4), "((0 1) (2 3))");
        // A binomial tree with the root 0: rank 4 combines its elements with those of 5, and then of 6.
        assert_eq!(plain(7), "(((0 1) (2 3)) ((4 5) 6))");
        let all = |size: usize| text(Order::Doubling, size);
        assert_eq!(all(4), plain(4));
        assert_eq!(all(3), "((0 1) 2)");
        assert_eq!(all(6), "(((0 1) (2 3)) (4 5))");
        assert_eq!(all(7), "(((0 1) (2 3)) ((4 5) 6))");
        assert_eq!(all(5), "(((0 1) 2) (3 4))");
        assert_eq!(text(Order::Chain, 4), "(0 (1 (2 3)))");
        for size in 2..=crate::coll::flags::MOST {
            let (_, _) = (plain(size), all(size));
        }
    }
}
