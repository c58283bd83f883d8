//! Tree to signature, children first, with lists on the heap; a type that occurs many times is
//! visited once.
//!
//! Comes after `datatype/`; `mod.rs` says what the result looks like.

use super::hash::Affine;
use super::{Basic, Inner, Kind, Node, NodeId, Repeated, SAMPLE, Sameness, Sample, Signature};
use crate::datatype::{Constructor, Datatype};
use crate::error::{Error, ErrorKind, Result};
use crate::named::Named;
use crate::plan::Plan;
use crate::plan::kept::Room;
use std::collections::HashMap;
use std::sync::Arc;

/// Most nodes of a signature: one for each struct at most, and a struct takes more than 100 bytes.
const MAX_NODES: usize = 1 << 28;

impl Signature {
    /// The signature of `ty` over class and width. O(nodes of the tree and struct members).
    ///
    /// # Errors
    ///
    /// A type with more than 2^28 different structs.
    pub fn of(ty: &Datatype) -> Result<Self> {
        Self::with(ty, Sameness::Representation)
    }

    /// The signature of `ty` with the given rule of what is the same basic type.
    ///
    /// # Errors
    ///
    /// A type with more than 2^28 different structs.
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
            // First of all: a type may be pending many times, and have many children.
            if builder.finished(top).is_some() {
                pending.pop();
                continue;
            }
            let before = pending.len();
            let children = top.constructor().children();
            pending.extend(children.iter().filter(|child| builder.finished(child).is_none()));
            if pending.len() == before {
                pending.pop();
                let piece = builder.piece(top)?;
                builder.done.insert(top.address(), piece);
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
    /// Sequences by number of elements and hash; what is found is compared.
    sequences: HashMap<(u64, Affine), NodeId>,
    /// Signatures of finished types, `None` for those without data.
    done: HashMap<*const (), Option<Repeated>>,
}

impl Builder {
    fn finished(&self, ty: &Datatype) -> Option<Option<Repeated>> {
        // No memo entry for what has no data: it may be a large tree, and is of no interest.
        if ty.size() == 0 { Some(None) } else { self.done.get(&ty.address()).copied() }
    }

    /// The signature of a type with data, the children of which are finished.
    fn piece(&mut self, ty: &Datatype) -> Result<Option<Repeated>> {
        let internal = |detail| Err(Error::new(ErrorKind::Internal, "datatype", detail));
        match ty.constructor() {
            Constructor::Named(named) => self.named(*named),
            Constructor::Struct { blocklengths, types, .. } => {
                let parts: Vec<Repeated> = blocklengths
                    .iter()
                    .zip(types)
                    .filter(|(length, _)| *length > 0)
                    .filter_map(|(length, old)| {
                        let piece = self.finished(old).flatten()?;
                        Some(Repeated { count: piece.count * length as u64, ..piece })
                    })
                    .collect();
                self.sequence(parts)
            }
            constructor => {
                let [old] = constructor.children() else {
                    return internal("a constructor with data and not one child");
                };
                let Some(piece) = self.finished(old).flatten() else {
                    return internal("data without a child that has data");
                };
                // Only repetition adds data, so sizes tell how often.
                let copies = (ty.size() / old.size()) as u64;
                Ok(Some(Repeated { count: piece.count * copies, ..piece }))
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
                format!("{named} has data and no class"),
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

    /// The pieces one after the other, compressed.
    fn sequence(&mut self, pieces: Vec<Repeated>) -> Result<Option<Repeated>> {
        let mut parts: Vec<Repeated> = Vec::with_capacity(pieces.len().min(16));
        for piece in pieces {
            match parts.last_mut() {
                Some(last) if last.node == piece.node => last.count += piece.count,
                _ => parts.push(piece),
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
    /// Runs of `count` (not 0) repetitions.
    pub(super) fn runs_of(&self, count: u64) -> u64 {
        match self.kind {
            Kind::Basic(_) => 1,
            Kind::Sequence { .. } => {
                count * self.runs - (count - 1) * u64::from(self.first == self.last)
            }
        }
    }
}

/// How often the shortest list is repeated of which `parts` is a repetition: 1 for most. By the
/// failure function of Knuth, Morris and Pratt.
fn repetitions(parts: &[Repeated]) -> usize {
    // Most structs end differently from how a repetition would; no table for these.
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
    /// The signature of this plan's type by class and width, made at the first call and kept.
    ///
    /// # Errors
    ///
    /// `plan`: it was decoded and has no datatype. As for [`Signature::of`].
    pub fn signature(&self) -> Result<&Signature> {
        let ty = self.datatype_for("signature")?;
        self.kept(Room::Signature, || Signature::of(ty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<Repeated> {
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
            assert_eq!(repetitions(&pieces(text)), count, "{text}");
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
        // Two structs of the same members are one node.
        let pair = || Datatype::structured(&[1, 1], &[0, 8], &[int.clone(), double.clone()]);
        let (a, b) = (pair().unwrap(), pair().unwrap());
        assert_eq!(signature(&[1, 1], &[&a, &b]).0.root.unwrap().count, 2);
        let empty = Datatype::contiguous(0, &int).unwrap();
        assert!(signature(&[7], &[&empty]).0.root.is_none());
    }
}
