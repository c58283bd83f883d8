//! Builds a signature from a datatype tree. The children of a type are visited before the type, with
//! a list on the heap instead of recursion, and a type that occurs many times is visited once.
//!
//! The tree comes from `datatype/`; `mod.rs` describes the result.

use super::hash::Affine;
use super::{Basic, Inner, Kind, Node, NodeId, Repeated, SAMPLE, Sameness, Sample, Signature};
use crate::datatype::{Constructor, Datatype};
use crate::error::{Error, ErrorKind, Result};
use crate::named::Named;
use crate::plan::Plan;
use crate::plan::kept::Room;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of nodes of a signature. A struct adds at most one node. The struct itself takes
/// more than 100 bytes of memory, so real types stay far below this limit.
const MAX_NODES: usize = 1 << 28;

impl Signature {
    /// Returns the signature of `ty`, with basic types compared by class and width. Takes O(nodes of
    /// the tree + struct members).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Limit` if the type has more than 2^28 different structs.
    pub fn of(ty: &Datatype) -> Result<Self> {
        Self::with(ty, Sameness::Representation)
    }

    /// Returns the signature of `ty`, with basic types compared by the rule `sameness`.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Limit` if the type has more than 2^28 different structs.
    pub fn with(ty: &Datatype, sameness: Sameness) -> Result<Self> {
        let mut builder = Builder {
            sameness,
            nodes: Vec::new(),
            basics: HashMap::new(),
            sequences: HashMap::new(),
            done: HashMap::new(),
        };
        let mut pending = vec![ty];
        while let Some(&top) = pending.last() {
            // This test comes before the loop over the children: a type may be pending many times,
            // and looping over its children each time would be expensive.
            if builder.finished(top).is_some() {
                pending.pop();
                continue;
            }
            let before = pending.len();
            let children = top.constructor().children();
            pending.extend(children.iter().filter(|child| builder.finished(child).is_none()));
            if pending.len() == before {
                pending.pop();
                let item = builder.item(top)?;
                builder.done.insert(top.address(), item);
            }
        }
        let root = builder.finished(ty).flatten();
        Ok(Self(Arc::new(Inner { nodes: builder.nodes.into(), root, sameness })))
    }
}

struct Builder {
    sameness: Sameness,
    nodes: Vec<Node>,
    basics: HashMap<Basic, NodeId>,
    /// The sequences made so far. The key is the number of basic elements of the sequence, and its hash.
    /// Two different sequences may have the same key, so a lookup also compares the parts of the sequence
    /// that it finds.
    sequences: HashMap<(u64, Affine), NodeId>,
    /// The signature of each finished type; `None` if the type has no data.
    done: HashMap<*const (), Option<Repeated>>,
}

impl Builder {
    fn finished(&self, ty: &Datatype) -> Option<Option<Repeated>> {
        // A type without data needs no entry in `done`. Its tree may be large, and visiting the tree
        // would add nothing to the signature.
        if ty.size() == 0 { Some(None) } else { self.done.get(&ty.address()).copied() }
    }

    /// Returns the signature of `ty`. The type must have data, and the signatures of its children
    /// must be finished.
    fn item(&mut self, ty: &Datatype) -> Result<Option<Repeated>> {
        let internal = |detail| Err(Error::new(ErrorKind::Internal, "datatype", detail));
        match ty.constructor() {
            Constructor::Named(named) => self.named(*named),
            Constructor::Struct { blocklengths, types, .. } => {
                let parts: Vec<Repeated> = blocklengths
                    .iter()
                    .zip(types)
                    .filter(|(length, _)| *length > 0)
                    .filter_map(|(length, old)| {
                        let item = self.finished(old).flatten()?;
                        Some(Repeated { count: item.count * length as u64, ..item })
                    })
                    .collect();
                self.sequence(parts)
            }
            constructor => {
                let [old] = constructor.children() else {
                    return internal("the constructor has data, but not exactly one child");
                };
                let Some(item) = self.finished(old).flatten() else {
                    return internal("the type has data, but its child has none");
                };
                // All constructors except the struct only repeat their child, so the ratio of the
                // sizes is the number of copies.
                let copies = (ty.size() / old.size()) as u64;
                Ok(Some(Repeated { count: item.count * copies, ..item }))
            }
        }
    }

    fn named(&mut self, named: Named) -> Result<Option<Repeated>> {
        match named.members() {
            None => self.basic(named).map(Some),
            Some(members) => {
                let mut parts = Vec::with_capacity(2);
                for (_, member) in members {
                    parts.push(self.basic(member)?);
                }
                self.sequence(parts)
            }
        }
    }

    fn push(&mut self, node: Node) -> Result<NodeId> {
        if self.nodes.len() >= MAX_NODES {
            return Err(Error::new(
                ErrorKind::Limit,
                "datatype",
                format!("the type has more than {MAX_NODES} different structs"),
            ));
        }
        self.nodes.push(node);
        Ok(NodeId((self.nodes.len() - 1) as u32))
    }

    fn basic(&mut self, named: Named) -> Result<Repeated> {
        let Some(basic) = Basic::new(named, self.sameness) else {
            return Err(Error::new(
                ErrorKind::Internal,
                "datatype",
                format!("{named} has data, but no class"),
            ));
        };
        if let Some(&node) = self.basics.get(&basic) {
            return Ok(Repeated { count: 1, node });
        }
        let node = self.push(Node {
            elements: 1,
            bytes: u64::from(basic.width()),
            hash: Affine::one(basic.token()),
            runs: 1,
            first: basic,
            last: basic,
            kind: Kind::Basic(basic),
        })?;
        self.basics.insert(basic, node);
        Ok(Repeated { count: 1, node })
    }

    /// Makes a sequence of the items, in compressed form.
    fn sequence(&mut self, items: Vec<Repeated>) -> Result<Option<Repeated>> {
        let mut parts: Vec<Repeated> = Vec::with_capacity(items.len().min(16));
        for item in items {
            match parts.last_mut() {
                Some(last) if last.node == item.node => last.count += item.count,
                _ => parts.push(item),
            }
        }
        let count = repetitions(&parts);
        parts.truncate(parts.len() / count);
        let [first, .., last] = parts[..] else {
            return Ok(parts.first().copied());
        };
        let mut samples = Vec::with_capacity(parts.len().div_ceil(SAMPLE));
        let (mut elements, mut bytes, mut runs, mut hash) = (0, 0, 0, Affine::EMPTY);
        let mut end: Option<Basic> = None;
        for (i, part) in parts.iter().enumerate() {
            if i % SAMPLE == 0 {
                samples.push(Sample { elements, bytes, hash });
            }
            let node = &self.nodes[part.node.0 as usize];
            hash = hash.then(node.hash.repeat(part.count));
            elements += part.count * node.elements;
            bytes += part.count * node.bytes;
            runs += node.runs_of(part.count) - u64::from(end == Some(node.first));
            end = Some(node.last);
        }
        let count = count as u64;
        if let Some(&node) = self.sequences.get(&(elements, hash))
            && matches!(&self.nodes[node.0 as usize].kind,
                        Kind::Sequence { parts: known, .. } if **known == parts[..])
        {
            return Ok(Some(Repeated { count, node }));
        }
        let node = self.push(Node {
            elements,
            bytes,
            hash,
            runs,
            first: self.nodes[first.node.0 as usize].first,
            last: self.nodes[last.node.0 as usize].last,
            kind: Kind::Sequence { parts: parts.into(), samples: samples.into() },
        })?;
        self.sequences.insert((elements, hash), node);
        Ok(Some(Repeated { count, node }))
    }
}

impl Node {
    /// Returns the number of runs of equal basic elements in `count` repetitions of this node. Each run is
    /// as long as possible. `count` must not be 0.
    pub(super) fn runs_of(&self, count: u64) -> u64 {
        match self.kind {
            Kind::Basic(_) => 1,
            Kind::Sequence { .. } => {
                count * self.runs - (count - 1) * u64::from(self.first == self.last)
            }
        }
    }
}

/// Returns how many times `parts` repeats its shortest period. Most lists do not repeat, and then the
/// result is 1. The period is found with the failure function of Knuth, Morris and Pratt.
fn repetitions(parts: &[Repeated]) -> usize {
    // A list that repeats contains its last part more than once. In most structs the last part occurs
    // only once, so this cheap test avoids the table of the failure function.
    let Some(last) = parts.last() else { return 1 };
    if parts.len() < 4 || !parts[..parts.len() - 1].contains(last) {
        return 1;
    }
    let mut border = vec![0usize; parts.len()];
    for i in 1..parts.len() {
        let mut length = border[i - 1];
        while length > 0 && parts[i] != parts[length] {
            length = border[length - 1];
        }
        border[i] = length + usize::from(parts[i] == parts[length]);
    }
    let period = parts.len() - border[parts.len() - 1];
    if parts.len().is_multiple_of(period) { parts.len() / period } else { 1 }
}

impl Plan {
    /// Returns the signature of this plan's type, with basic types compared by class and width. The
    /// first call computes the signature and stores it.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type`, naming `plan`, if the plan was decoded and has no datatype. Also
    /// returns the errors of [`Signature::of`].
    pub fn signature(&self) -> Result<&Signature> {
        let ty = self.datatype_for("signature")?;
        self.kept(Room::Signature, || Signature::of(ty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Vec<Repeated> {
        text.bytes().map(|b| Repeated { count: 1, node: NodeId(u32::from(b)) }).collect()
    }

    #[test]
    fn repetitions_are_found() {
        for (text, count) in [
            ("", 1),
            ("ab", 1),
            ("abab", 2),
            ("ababa", 1),
            ("abcabcabc", 3),
            ("abaaba", 2),
            ("abcabd", 1),
            ("abacabac", 2),
        ] {
            assert_eq!(repetitions(&items(text)), count, "{text}");
        }
    }

    fn signature(lengths: &[i64], types: &[&Datatype]) -> Signature {
        let types: Vec<Datatype> = types.iter().map(|&ty| ty.clone()).collect();
        let ty = Datatype::structured(lengths, &vec![0; lengths.len()], &types).unwrap();
        Signature::of(&ty).unwrap()
    }

    #[test]
    fn descriptions_are_compressed() {
        let (int, double) = (Datatype::named(Named::INT), Datatype::named(Named::DOUBLE));
        let long = signature(&[1; 1000], &[&int, &double].repeat(500));
        assert_eq!((long.0.nodes.len(), long.elements()), (3, 1000));
        assert_eq!(signature(&[3, 0, 4], &[&int, &double, &int]).to_string(), "7 x integer 4");
        // Two structs with equal members share one node.
        let pair = || Datatype::structured(&[1, 1], &[0, 8], &[int.clone(), double.clone()]);
        let (a, b) = (pair().unwrap(), pair().unwrap());
        assert_eq!(signature(&[1, 1], &[&a, &b]).0.root.unwrap().count, 2);
        let empty = Datatype::contiguous(0, &int).unwrap();
        assert!(signature(&[7], &[&empty]).0.root.is_none());
    }
}
