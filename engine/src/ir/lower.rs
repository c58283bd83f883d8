//! Tree to program, constructor by constructor, without any cleverness: that is for the passes.
//!
//! Comes after `datatype/`, before `passes/`. Walks the tree with a list on the heap, and lowers a
//! type that occurs many times once, so that trees that share subtrees (which may describe
//! exponentially many elements) stay small. Types without data lower to nothing.

use super::{Edge, NodeId, Op, Part, Program, RaggedList};
use crate::datatype::{Constructor, Datatype};
use crate::error::{Error, ErrorKind, Result};
use crate::scalar::Named;
use crate::table::Table;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Most nodes of a program; a tree that needs more is refused at commit.
pub(crate) const MAX_NODES: usize = 1 << 28;

/// Makes the leaf of a named type in place of native blocks (`typed.rs`).
pub(crate) type Leaf<'a> = &'a mut dyn FnMut(&mut Program, Named) -> Edge;

/// Lowers `ty`; the program's outer loop runs over elements one extent apart.
pub(crate) fn lower(ty: &Datatype) -> Result<Program> {
    lower_with(ty, None)
}

/// As [`lower`], with leaves made by `leaf`. A leaf may not be larger than the type's native size,
/// for which the tree has checked that sums fit.
pub(crate) fn lower_with(ty: &Datatype, leaf: Option<Leaf<'_>>) -> Result<Program> {
    let mut lowering = Lowering { program: Program::new(ty.extent()), done: Memo::default(), leaf };
    // A chain of constructors with one child each needs no memo; only struct children can be met
    // again, and they are entered when met.
    let mut pending: SmallVec<[&Datatype; 8]> = SmallVec::new();
    pending.push(ty);
    while let Some(&top) = pending.last() {
        let children = top.constructor().children();
        let before = pending.len();
        if top.size() > 0 {
            pending.extend(children.iter().filter(|child| lowering.done.get(child).is_none()));
        }
        if pending.len() == before {
            pending.pop();
            if lowering.done.get(top).is_none() {
                let edge = lowering.node(top)?;
                lowering.done.insert(top, edge);
            }
        }
    }
    lowering.program.body = lowering.done.get(ty).flatten();
    Ok(lowering.program)
}

struct Lowering<'a> {
    program: Program,
    done: Memo,
    leaf: Option<Leaf<'a>>,
}

/// Every finished type: its use at displacement 0, or nothing if it has no data.
///
/// A list while it is short, since most trees have two or three nodes and committing them is to
/// cost less than hashing them would; a map from then on.
#[derive(Default)]
struct Memo {
    few: SmallVec<[(*const (), Option<Edge>); Memo::FEW]>,
    many: HashMap<*const (), Option<Edge>>,
}

impl Memo {
    const FEW: usize = 8;

    fn get(&self, ty: &Datatype) -> Option<Option<Edge>> {
        let key = ty.address();
        let found = self.few.iter().find(|(address, _)| *address == key).map(|(_, edge)| *edge);
        if found.is_some() || self.many.is_empty() { found } else { self.many.get(&key).copied() }
    }

    fn insert(&mut self, ty: &Datatype, edge: Option<Edge>) {
        if self.few.len() < Self::FEW {
            self.few.push((ty.address(), edge));
        } else {
            self.many.insert(ty.address(), edge);
        }
    }
}

impl Lowering<'_> {
    /// Lowers one type whose children are done.
    fn node(&mut self, ty: &Datatype) -> Result<Option<Edge>> {
        if ty.size() == 0 {
            return Ok(None);
        }
        if self.program.nodes().len() >= MAX_NODES {
            return Err(Error::new(
                ErrorKind::Limit,
                "datatype",
                format!("the type needs more than {MAX_NODES} program nodes"),
            ));
        }
        // A type with data has a child with data, and extents of 64 bits (checked when built).
        let child = |old: &Datatype| {
            self.done.get(old).flatten().ok_or_else(|| {
                Error::new(ErrorKind::Internal, "datatype", "data without a child that has data")
            })
        };
        let edge = match ty.constructor() {
            Constructor::Named(named) => match &mut self.leaf {
                Some(leaf) => leaf(&mut self.program, *named),
                None => self.named(*named),
            },
            Constructor::Dup { old }
            | Constructor::Resized { old, .. }
            | Constructor::Composite { layout: old, .. } => child(old)?,
            Constructor::Contiguous { count, old } => {
                let body = child(old)?;
                self.repeat(*count, old.extent(), body)
            }
            Constructor::Vector { count, blocklength, stride, old } => {
                let body = child(old)?;
                let block = self.repeat(*blocklength, old.extent(), body);
                // With one block the stride is never used and may be anything.
                self.repeat(*count, stride.wrapping_mul(old.extent()), block)
            }
            Constructor::Hvector { count, blocklength, stride, old } => {
                let body = child(old)?;
                let block = self.repeat(*blocklength, old.extent(), body);
                self.repeat(*count, *stride, block)
            }
            Constructor::Indexed { blocklengths, displacements, old } => {
                let body = child(old)?;
                self.ragged(blocklengths, displacements, old.extent(), old.extent(), body)
            }
            Constructor::Hindexed { blocklengths, displacements, old } => {
                let body = child(old)?;
                self.ragged(blocklengths, displacements, 1, old.extent(), body)
            }
            Constructor::IndexedBlock { blocklength, displacements, old } => {
                let body = child(old)?;
                let block = self.repeat(*blocklength, old.extent(), body);
                self.table(displacements, old.extent(), block)
            }
            Constructor::HindexedBlock { blocklength, displacements, old } => {
                let body = child(old)?;
                let block = self.repeat(*blocklength, old.extent(), body);
                self.table(displacements, 1, block)
            }
            Constructor::Struct { blocklengths, displacements, types } => {
                let mut edges: SmallVec<[Edge; 8]> = SmallVec::with_capacity(types.len());
                for ((blocklength, displacement), old) in
                    blocklengths.iter().zip(displacements.iter()).zip(types)
                {
                    if let (true, Some(body)) = (blocklength > 0, self.done.get(old).flatten()) {
                        let mut edge = self.repeat(blocklength, old.extent(), body);
                        edge.offset = edge.offset.wrapping_add(displacement);
                        edges.push(edge);
                    }
                }
                self.seq(&edges)
            }
            Constructor::Subarray { sizes, subsizes, starts, order, old } => {
                let mut edge = child(old)?;
                let extent = i128::from(old.extent());
                for (d, stride) in crate::datatype::strides(sizes, *order, extent)? {
                    // Fits: with data, all elements of the array have addresses of 64 bits.
                    let stride = stride as i64;
                    edge = self.repeat(subsizes[d], stride, edge);
                    edge.offset = edge.offset.wrapping_add(starts[d].wrapping_mul(stride));
                }
                edge
            }
        };
        Ok(Some(edge))
    }

    fn bytes(&self, node: NodeId) -> u64 {
        self.program.node(node).bytes
    }

    fn push(&mut self, bytes: u64, op: Op) -> Edge {
        Edge { offset: 0, node: self.program.push(bytes, op) }
    }

    /// A named type: one block, or two where a pair has a hole between its members.
    fn named(&mut self, named: Named) -> Edge {
        match named.members() {
            None => self.push(u64::from(named.size()), Op::Block),
            Some(members) => {
                let edges = members.map(|(at, member)| {
                    let edge = self.push(u64::from(member.size()), Op::Block);
                    Edge { offset: i64::from(at), ..edge }
                });
                self.seq(&edges)
            }
        }
    }

    /// `count` copies (at least one), `stride` bytes apart. One copy is the body itself.
    fn repeat(&mut self, count: i64, stride: i64, body: Edge) -> Edge {
        if count == 1 {
            return body;
        }
        let bytes = self.bytes(body.node) * count as u64;
        self.push(bytes, Op::Loop { count: count as u64, stride, body })
    }

    fn table(&mut self, entries: &Table, scale: i64, body: Edge) -> Edge {
        let bytes = self.bytes(body.node) * entries.len() as u64;
        self.push(bytes, Op::Table { entries: entries.clone(), scale, body })
    }

    fn ragged(&mut self, lengths: &Table, at: &Table, scale: i64, stride: i64, body: Edge) -> Edge {
        // No length is negative, and the sum fits: the tree checked it.
        let copies = lengths.total().unwrap_or_default() as u64;
        let list = Arc::new(RaggedList::new(lengths.clone(), at.clone()));
        let bytes = self.bytes(body.node) * copies;
        self.push(bytes, Op::Ragged { list, scale, stride, body })
    }

    fn seq(&mut self, edges: &[Edge]) -> Edge {
        if let [only] = edges {
            return *only;
        }
        let mut end = 0;
        let parts: Arc<[Part]> = edges
            .iter()
            .map(|&edge| {
                end += self.bytes(edge.node);
                Part { edge, end }
            })
            .collect();
        self.push(end, Op::Seq { parts })
    }
}
