//! Lowers a tree to a program, constructor by constructor. The passes optimize the program later, with
//! one exception: a single run of memory is lowered to a [`Lowered::Run`], which has no node, so the
//! run can merge with its neighbours before it becomes a node. Most types are runs in a loop, or a
//! struct of runs; no pass finds anything to improve in these.
//!
//! `datatype/` makes the tree, and `passes/` rewrites the program. This file walks the tree with a
//! stack on the heap, without recursion. It lowers a type only once, even if the type occurs many
//! times. So a tree with shared subtrees gets a small program, although it may describe exponentially
//! many elements. A type without data gets no node.

use super::{Edge, Node, NodeId, Op, Part, Program, RaggedList};
use crate::datatype::{Constructor, Datatype};
use crate::error::{Error, ErrorKind, Result};
use crate::named::Named;
use crate::reserve;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use typepack_leaf::Table;

/// Maximum number of nodes in a program. A commit refuses a tree that needs more nodes.
pub(crate) const MAX_NODES: usize = 1 << 28;

/// Number of bytes that a node takes at most while the passes work, as measured with structs.
const NODE_BYTES: usize = 128;

/// Number of bytes that an entry of a table takes at most while the passes work.
const ENTRY_BYTES: usize = 8;

/// Number of most recent nodes that the lowering searches for a block of the wanted length.
const LOOK_BACK: usize = 8;

/// A function that makes the leaf of a named type: the node that stands for one value of the type.
/// `typed/` passes such a function; without one, leaves are plain blocks of bytes.
pub(crate) type Leaf<'a> = &'a mut dyn FnMut(&mut Program, Named) -> Edge;

/// Lowers `ty`. The outermost loop of the program runs over the elements, which are one extent of `ty`
/// apart.
pub(crate) fn lower(ty: &Datatype) -> Result<Program> {
    lower_with(ty, None)
}

/// Lowers `ty`; `leaf` makes the leaves. A leaf must not have more bytes than its named type has in
/// memory, because the tree guarantees only that sums of the sizes in memory do not overflow.
pub(crate) fn lower_with(ty: &Datatype, leaf: Option<Leaf<'_>>) -> Result<Program> {
    let mut lowering = Lowering {
        program: Program::new(ty.extent()),
        done: Memo::default(),
        leaf,
        expected: 0,
        granted: 0,
    };
    // Most types are one constructor call over named types. Lowering such a type needs no memo and no
    // stack.
    if lowering.leaf.is_none() && ty.constructor().children().iter().all(Datatype::is_named) {
        let lowered = lowering.node(ty)?;
        lowering.program.body = lowered.map(|lowered| lowering.edge(lowered));
        return Ok(lowering.program);
    }
    let mut pending: SmallVec<[&Datatype; 8]> = SmallVec::new();
    pending.push(ty);
    let mut last = None;
    while let Some(&top) = pending.last() {
        let children = top.constructor().children();
        let before = pending.len();
        if top.size() > 0 {
            // Do not push named types; most children are named types. `finish` lowers them when it
            // lowers their parent.
            for child in children {
                if !child.is_named() && lowering.done.get(child).is_none() {
                    pending.push(child);
                }
            }
        }
        if pending.len() == before {
            pending.pop();
            last = lowering.finish(top)?;
        }
    }
    lowering.program.body = last.map(|lowered| lowering.edge(lowered));
    Ok(lowering.program)
}

struct Lowering<'a> {
    program: Program,
    done: Memo,
    leaf: Option<Leaf<'a>>,
    /// About the number of bytes that the program takes, with the copies that the passes make.
    expected: usize,
    /// The number of bytes for which the system had memory when it was asked last.
    granted: usize,
}

/// The lowered form of a type with data. Its offset is relative to the node that uses it.
#[derive(Clone, Copy)]
enum Lowered {
    /// One run of bytes, which has no node yet.
    Run { offset: i64, bytes: u64 },
    /// A node of the program, with its displacement.
    Node(Edge),
}

impl Lowered {
    fn offset(self) -> i64 {
        match self {
            Self::Run { offset, .. } | Self::Node(Edge { offset, .. }) => offset,
        }
    }

    fn moved(self, by: i64) -> Self {
        match self {
            Self::Run { offset, bytes } => Self::Run { offset: offset.wrapping_add(by), bytes },
            Self::Node(edge) => {
                Self::Node(Edge { offset: edge.offset.wrapping_add(by), node: edge.node })
            }
        }
    }

    /// Returns the joined run if `self` and `next` are both runs and `next` begins where `self` ends.
    fn joined(self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Run { offset, bytes }, Self::Run { offset: at, bytes: more })
                if i128::from(offset) + i128::from(bytes) == i128::from(at) =>
            {
                Some(Self::Run { offset, bytes: bytes + more })
            }
            _ => None,
        }
    }
}

/// The members of a sequence that is being built.
type Parts = SmallVec<[Lowered; 8]>;

/// Appends the member `next` to a sequence. If `next` and the last member are both runs, and `next`
/// begins where the last member ends, the function extends the last member instead.
fn append(members: &mut Parts, next: Lowered) {
    match members.last_mut().and_then(|last| Some((last.joined(next)?, last))) {
        Some((joined, last)) => *last = joined,
        None => members.push(next),
    }
}

/// Maps every type that is already lowered to its lowered form at displacement 0, or to `None` if the
/// type has no data.
///
/// The first few types are in a list and the others in a hash map. Most trees have two or three nodes,
/// and hashing them would take a large part of the time of a commit.
#[derive(Default)]
struct Memo {
    few: SmallVec<[(*const (), Option<Lowered>); Memo::FEW]>,
    /// The map is created when the list is full, because even an empty map needs random hash keys.
    many: Option<HashMap<*const (), Option<Lowered>>>,
}

impl Memo {
    const FEW: usize = 8;

    fn get(&self, ty: &Datatype) -> Option<Option<Lowered>> {
        let key = ty.address();
        let found =
            self.few.iter().find(|(address, _)| *address == key).map(|(_, lowered)| *lowered);
        found.or_else(|| self.many.as_ref()?.get(&key).copied())
    }

    fn insert(&mut self, ty: &Datatype, lowered: Option<Lowered>) {
        if self.few.len() < Self::FEW {
            self.few.push((ty.address(), lowered));
        } else {
            self.many.get_or_insert_default().insert(ty.address(), lowered);
        }
    }
}

impl Lowering<'_> {
    /// Returns the lowered form of a type. The type must be named or already lowered; otherwise, each of its
    /// children must be named or already lowered.
    #[inline(always)]
    fn finish(&mut self, ty: &Datatype) -> Result<Option<Lowered>> {
        // Lowering a named type to a run costs less than looking it up in the memo.
        match (&self.leaf, ty.constructor()) {
            (None, Constructor::Named(named)) => Ok(self.named(*named)),
            _ => self.finish_made(ty),
        }
    }

    #[inline(never)]
    fn finish_made(&mut self, ty: &Datatype) -> Result<Option<Lowered>> {
        if let Some(lowered) = self.done.get(ty) {
            return Ok(lowered);
        }
        let lowered = self.node(ty)?;
        self.done.insert(ty, lowered);
        Ok(lowered)
    }

    /// Returns the lowered form of `old`, the child of a type that has data. The child must then have
    /// data too; if it has none, returns an internal error.
    fn child(&mut self, old: &Datatype) -> Result<Lowered> {
        self.finish(old)?.ok_or_else(|| {
            let detail = format!("the type has data, but its child {old:?} has none");
            Error::new(ErrorKind::Internal, "datatype", detail)
        })
    }

    /// Lowers one type. Its children must be named or already lowered.
    fn node(&mut self, ty: &Datatype) -> Result<Option<Lowered>> {
        if ty.size() == 0 {
            return Ok(None);
        }
        // A constructor call adds one node per child and a few more.
        if self.program.nodes().len() + ty.constructor().children().len() >= MAX_NODES {
            return Err(Error::new(
                ErrorKind::Limit,
                "datatype",
                format!("the type needs more than {MAX_NODES} program nodes"),
            ));
        }
        self.expect(ty)?;
        let lowered = match ty.constructor() {
            Constructor::Named(named) => match &mut self.leaf {
                Some(leaf) => Lowered::Node(leaf(&mut self.program, *named)),
                None => return Ok(self.named(*named)),
            },
            Constructor::Dup { old }
            | Constructor::Resized { old, .. }
            | Constructor::Composite { layout: old, .. } => self.child(old)?,
            Constructor::Contiguous { count, old } => {
                let body = self.child(old)?;
                self.repeat(*count, old.extent(), body)
            }
            Constructor::Vector { count, blocklength, stride, old } => {
                let body = self.child(old)?;
                let block = self.repeat(*blocklength, old.extent(), body);
                // If there is only one block, the stride may have any value, so this product may
                // overflow. That does no harm, because `repeat` then ignores the stride.
                self.repeat(*count, stride.wrapping_mul(old.extent()), block)
            }
            Constructor::Hvector { count, blocklength, stride, old } => {
                let body = self.child(old)?;
                let block = self.repeat(*blocklength, old.extent(), body);
                self.repeat(*count, *stride, block)
            }
            Constructor::Indexed { blocklengths, displacements, old } => {
                let body = self.child(old)?;
                self.ragged(blocklengths, displacements, old.extent(), old.extent(), body)
            }
            Constructor::Hindexed { blocklengths, displacements, old } => {
                let body = self.child(old)?;
                self.ragged(blocklengths, displacements, 1, old.extent(), body)
            }
            Constructor::IndexedBlock { blocklength, displacements, old } => {
                let body = self.child(old)?;
                let block = self.repeat(*blocklength, old.extent(), body);
                self.table(displacements, old.extent(), block)
            }
            Constructor::HindexedBlock { blocklength, displacements, old } => {
                let body = self.child(old)?;
                let block = self.repeat(*blocklength, old.extent(), body);
                self.table(displacements, 1, block)
            }
            Constructor::Struct { blocklengths, displacements, types } => {
                if let Some(lowered) = self.record(blocklengths, displacements, types) {
                    return Ok(Some(lowered));
                }
                let mut members = Parts::new();
                for (i, old) in types.iter().enumerate() {
                    let blocklength = blocklengths.get(i);
                    if blocklength > 0
                        && let Some(body) = self.finish(old)?
                    {
                        let block = self.repeat(blocklength, old.extent(), body);
                        append(&mut members, block.moved(displacements.get(i)));
                    }
                }
                self.seq(&members)
            }
            Constructor::Subarray { region, order, old } => {
                let [sizes, subsizes, starts] = region.parts();
                let mut lowered = self.child(old)?;
                let extent = i128::from(old.extent());
                for (d, stride) in crate::datatype::strides(sizes, *order, extent)? {
                    // The stride fits in an `i64`: its magnitude is at most that of the array's extent,
                    // and `bounds.rs` has checked that the extent fits.
                    let stride = stride as i64;
                    lowered = self.repeat(subsizes[d], stride, lowered);
                    lowered = lowered.moved(starts[d].wrapping_mul(stride));
                }
                lowered
            }
        };
        Ok(Some(lowered))
    }

    /// Counts the memory that a type needs. Asks the system for it each time that the sum has doubled.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if the system has too little memory.
    #[inline]
    fn expect(&mut self, ty: &Datatype) -> Result<()> {
        self.expected += NODE_BYTES * (1 + ty.constructor().children().len());
        self.expected += ENTRY_BYTES * ty.constructor().entries();
        if self.expected <= self.granted {
            return Ok(());
        }
        self.granted = 2 * self.expected;
        if reserve::room(self.granted) {
            return Ok(());
        }
        let detail = format!("there is no memory for a plan of about {} bytes", self.expected);
        Err(Error::new(ErrorKind::NoMemory, "datatype", detail))
    }

    fn bytes(&self, lowered: Lowered) -> u64 {
        match lowered {
            Lowered::Run { bytes, .. } => bytes,
            Lowered::Node(edge) => self.program.node(edge.node).bytes,
        }
    }

    /// Makes a node whose operand is `body`. The operand has offset 0 in the new node; the offset of
    /// `body` becomes the offset of the result.
    fn push(&mut self, bytes: u64, body: Lowered, op: impl FnOnce(Edge) -> Op) -> Lowered {
        let Edge { offset, node } = self.edge(body);
        let node = self.program.push(bytes, op(Edge { offset: 0, node }));
        Lowered::Node(Edge { offset, node })
    }

    /// Returns `lowered` as an edge to a node. A run becomes a block; if one of the most recent nodes is a
    /// block of the same length, that node is used again.
    #[inline]
    fn edge(&mut self, lowered: Lowered) -> Edge {
        match lowered {
            Lowered::Run { offset, bytes } => Edge { offset, node: self.block(bytes) },
            Lowered::Node(edge) => edge,
        }
    }

    /// Returns a node that is a block of `bytes` bytes. If one of the most recent nodes is such a
    /// block, returns that node; otherwise adds a new node.
    #[inline]
    fn block(&mut self, bytes: u64) -> NodeId {
        let nodes = self.program.nodes();
        let equal = |node: &Node| node.bytes == bytes && node.op.is_block();
        let back = nodes.iter().rev().take(LOOK_BACK).position(equal);
        match back {
            // The index fits in 32 bits, because a program has at most `MAX_NODES` nodes.
            Some(back) => NodeId((nodes.len() - 1 - back) as u32),
            None => self.program.push(bytes, Op::Block),
        }
    }

    /// Lowers a named type to one run, or to two runs if it is a pair with a hole between its members.
    #[inline(always)]
    fn named(&mut self, named: Named) -> Option<Lowered> {
        match named.members() {
            None if named.size() == 0 => None,
            None => Some(Lowered::Run { offset: 0, bytes: u64::from(named.size()) }),
            Some(members) => Some(self.pair(members)),
        }
    }

    #[inline(never)]
    fn pair(&mut self, members: [(u32, Named); 2]) -> Lowered {
        let mut runs = Parts::new();
        for (at, member) in members {
            let (offset, bytes) = (i64::from(at), u64::from(member.size()));
            append(&mut runs, Lowered::Run { offset, bytes });
        }
        self.seq(&runs)
    }

    /// Lowers `count` copies (at least one) that are `stride` bytes apart. If `count` is 1, returns the
    /// body itself.
    #[inline(always)]
    fn repeat(&mut self, count: i64, stride: i64, body: Lowered) -> Lowered {
        if count == 1 { body } else { self.repeat_many(count, stride, body) }
    }

    fn repeat_many(&mut self, count: i64, stride: i64, body: Lowered) -> Lowered {
        let each = self.bytes(body);
        let bytes = each * count as u64;
        match body {
            Lowered::Run { offset, .. } if i128::from(stride) == i128::from(each) => {
                Lowered::Run { offset, bytes }
            }
            _ => self.push(bytes, body, |body| Op::Loop { count: count as u64, stride, body }),
        }
    }

    fn table(&mut self, entries: &Table, scale: i64, body: Lowered) -> Lowered {
        let bytes = self.bytes(body) * entries.len() as u64;
        self.push(bytes, body, |body| Op::Table { entries: entries.clone(), scale, body })
    }

    fn ragged(
        &mut self,
        lengths: &Table,
        at: &Table,
        scale: i64,
        stride: i64,
        body: Lowered,
    ) -> Lowered {
        // `total` always succeeds here, because the tree has checked that no length is negative and
        // that the sum of the lengths does not overflow.
        let copies = lengths.total().unwrap_or_default() as u64;
        let list = Arc::new(RaggedList::new(lengths.clone(), at.clone()));
        let bytes = self.bytes(body) * copies;
        self.push(bytes, body, |body| Op::Ragged { list, scale, stride, body })
    }

    /// Lowers a struct of at most 16 named types, none of which has a hole. The result is the same as
    /// that of [`Self::seq`]. Returns `None` for any other struct, and if a leaf function is set.
    ///
    /// The function collects the offsets and sizes of the runs in two arrays of 64-bit numbers, so each load
    /// has the same width as the store before it. An earlier version wrote each run as a larger struct and
    /// copied the struct right afterwards. The wide loads of this copy had to wait for the narrower stores
    /// (failed store forwarding). The wait took two thirds of the time of lowering a struct of 8 members.
    #[inline]
    fn record(&mut self, lengths: &Table, places: &Table, types: &[Datatype]) -> Option<Lowered> {
        const FEW: usize = 16;
        if types.len() > FEW || self.leaf.is_some() {
            return None;
        }
        let (mut offsets, mut sizes) = ([0i64; FEW], [0u64; FEW]);
        let mut runs = 0;
        for (i, old) in types.iter().enumerate() {
            let (each, length) = (old.named_run()?, lengths.get(i) as u64);
            // The product cannot overflow, because the tree has checked the sizes.
            let (offset, bytes) = (places.get(i), each * length);
            if bytes == 0 {
                continue;
            }
            // The end of a run fits in an `i64`, because the tree's bounds do.
            if runs > 0 && offsets[runs - 1].wrapping_add(sizes[runs - 1] as i64) == offset {
                sizes[runs - 1] += bytes;
            } else {
                (offsets[runs], sizes[runs]) = (offset, bytes);
                runs += 1;
            }
        }
        let (offsets, sizes) = (&offsets[..runs], &sizes[..runs]);
        let (&first, &bytes) = (offsets.first()?, sizes.first()?);
        if runs == 1 {
            return Some(Lowered::Run { offset: first, bytes });
        }
        let mut end = 0;
        let mut parts = Vec::with_capacity(runs);
        for (&offset, &bytes) in offsets.iter().zip(sizes) {
            end += bytes;
            let (offset, node) = (offset.wrapping_sub(first), self.block(bytes));
            parts.push(Part { edge: Edge { offset, node }, end });
        }
        let node = self.program.push(end, Op::Seq { parts: parts.into() });
        Some(Lowered::Node(Edge { offset: first, node }))
    }

    fn seq(&mut self, members: &[Lowered]) -> Lowered {
        if let [only] = members {
            return *only;
        }
        let first = members[0].offset();
        let mut end = 0;
        let mut parts = Vec::with_capacity(members.len());
        for &lowered in members {
            end += self.bytes(lowered);
            parts.push(Part { edge: self.edge(lowered.moved(first.wrapping_neg())), end });
        }
        let node = self.program.push(end, Op::Seq { parts: parts.into() });
        Lowered::Node(Edge { offset: first, node })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(ty: &Datatype) -> usize {
        lower(ty).unwrap().nodes().len()
    }

    #[test]
    fn runs_that_touch_are_one_node_and_equal_runs_share_one() {
        let [char, int, double] = [Named::CHAR, Named::INT, Named::DOUBLE].map(Datatype::named);
        // The program has 3 nodes: a block for bytes 0..1, a block for bytes 4..16, and the sequence.
        let members = [char, int.clone(), double.clone()];
        assert_eq!(nodes(&Datatype::structured(&[1; 3], &[0, 4, 8], &members).unwrap()), 3);
        // Doubles and ints alternate, with gaps between them. The program needs only 3 nodes: one block
        // for all doubles, one block for all ints, and the sequence.
        let types: Vec<Datatype> = [double, int].into_iter().cycle().take(1000).collect();
        let places: Vec<i64> = (0..1000).map(|i| i * 16).collect();
        assert_eq!(nodes(&Datatype::structured(&[1; 1000], &places, &types).unwrap()), 3);
    }

    #[test]
    fn dense_towers_are_one_run() {
        let mut ty = Datatype::named(Named::INT);
        for _ in 0..29 {
            ty = Datatype::contiguous(4, &Datatype::vector(1, 1, i64::MAX, &ty).unwrap()).unwrap();
        }
        assert_eq!((nodes(&ty), ty.size()), (1, 1 << 60));
    }

    /// Checks that `record` (the fast path for structs of named types) returns the same result as
    /// `seq`.
    #[test]
    fn records_are_what_any_struct_is() {
        let named = [Named::CHAR, Named::SHORT, Named::INT, Named::DOUBLE, Named::DOUBLE_INT]
            .map(Datatype::named);
        let mut state = 7u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for round in 0..3000 {
            let members = 1 + next(17) as usize;
            // In every fifth round, all members have one type. In every third round, the block lengths
            // are random. A member begins where the previous one ends, or at one of three distances
            // from it.
            let types: Vec<&Datatype> = (0..members)
                .map(|_| if round % 5 == 0 { &named[2] } else { &named[next(5) as usize] })
                .collect();
            let lengths: Vec<i64> =
                (0..members).map(|_| if round % 3 == 0 { next(4) as i64 } else { 1 }).collect();
            let mut at = -40;
            let places: Vec<i64> = (0..members)
                .map(|i| {
                    let place = at + [0, 0, 4, -64, 5000][next(5) as usize];
                    at = place + types[i].extent() * lengths[i];
                    place
                })
                .collect();
            let plain: Vec<Datatype> = types.iter().map(|&ty| ty.clone()).collect();
            let wrapped: Vec<Datatype> = types.iter().map(|ty| ty.dup()).collect();
            let programs = [plain, wrapped]
                .map(|types| lower(&Datatype::structured(&lengths, &places, &types).unwrap()));
            assert_eq!(programs[0], programs[1], "{lengths:?} {places:?} {types:?}");
        }
    }
}
