//! The type signature: the sequence of basic types of a datatype, without their displacements
//! (MPI-5.0 section 5.1), in compressed form.
//!
//! The input is the datatype tree (`datatype/`). The runtime uses signatures to check the types of
//! messages. An implementation of MPI-IO can use them to check file views (`copies_of`).
//!
//! - `basic.rs`: the rules by which two basic types are equal (by class and width, or by name)
//! - `hash.rs`: the hash of a signature
//! - `build.rs`: makes a signature from a tree
//! - `runs.rs`: the signature as a run-length list, and its printed form
//! - `matching.rs`: decides whether a message may be received into a buffer
//!
//! Every constructor except the struct has one child and only repeats it. So, whatever the
//! displacements are, its signature is the child's signature repeated a number of times; a `Repeated`
//! holds the child's node and this number. Only structs, value-index pairs and basic types make nodes.
//! So a signature has no index tables, and nested constructors without a struct, however many, make
//! one `Repeated`. Sequences are compressed further: adjacent parts with equal signatures are joined,
//! equal sequences share one node, and a sequence that repeats a shorter one is stored as a
//! repetition.
//!
//! Invariants: the parts of a sequence have smaller ids than the sequence. No part is empty. A
//! sequence has at least two parts and is not a repetition of a shorter sequence; neighbouring parts
//! have different nodes (so a sequence has at least two runs). Numbers of elements fit in an `i64`,
//! because sizes in bytes do.

mod basic;
mod build;
mod hash;
mod matching;
mod runs;

pub use basic::{Basic, Class, Sameness};
pub use hash::SignatureHash;
pub use matching::Mismatch;
pub use runs::{SignatureRun, SignatureRunList, SignatureRuns};

use crate::error::{Error, ErrorKind, Result, counted};
use hash::Affine;
use std::sync::Arc;

/// The signature of a datatype. Cloning a signature only increments a reference count. A signature
/// does not keep its datatype alive.
///
/// ```
/// use typepack_engine::{Datatype, Named, signature::Signature};
///
/// let (int, double) = (Datatype::named(Named::INT), Datatype::named(Named::DOUBLE));
/// let pair = Datatype::structured(&[1, 2], &[0, 8], &[int, double])?;
/// let signature = Signature::of(&Datatype::vector(500, 2, 4, &pair)?)?;
/// assert_eq!(signature.to_string(), "1000 x (integer 4, 2 x float 8)");
/// assert_eq!(signature.elements(), 3000);
/// // The hash of a message that has one pair and the first int of the next pair, computed by its receiver.
/// assert_eq!(signature.prefix_hash(1, 4)?, {
///     let sent = Signature::of(&pair)?;
///     sent.hash(1)?.then(sent.prefix_hash(1, 1)?)
/// });
/// # Ok::<(), typepack_engine::Error>(())
/// ```
#[derive(Clone)]
pub struct Signature(Arc<Inner>);

struct Inner {
    nodes: Box<[Node]>,
    /// The signature of one element of the datatype; `None` for a type without data.
    root: Option<Repeated>,
    sameness: Sameness,
}

/// The index of a node in `Inner::nodes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NodeId(u32);

/// A node repeated `count` times. `count` is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Repeated {
    count: u64,
    node: NodeId,
}

/// A node of a signature, with the properties of one repetition of it.
struct Node {
    elements: u64,
    /// Number of bytes of data in memory.
    bytes: u64,
    hash: Affine,
    /// Number of maximal runs of equal basic types.
    runs: u64,
    first: Basic,
    last: Basic,
    kind: Kind,
}

enum Kind {
    Basic(Basic),
    Sequence {
        parts: Box<[Repeated]>,
        /// Entry `k` describes all parts before part `k * SAMPLE`, taken together.
        samples: Box<[Sample]>,
    },
}

/// Number of elements, number of bytes and hash of the first parts of a sequence, taken together.
#[derive(Clone, Copy)]
struct Sample {
    elements: u64,
    bytes: u64,
    hash: Affine,
}

/// The unit in which a position in a signature is counted.
#[derive(Clone, Copy)]
enum Unit {
    Elements,
    Bytes,
}

impl Unit {
    /// Returns the length of one repetition of a node in this unit; it is never 0.
    fn length(self, node: &Node) -> u64 {
        match self {
            Self::Elements => node.elements,
            Self::Bytes => node.bytes,
        }
    }

    fn before(self, sample: &Sample) -> u64 {
        match self {
            Self::Elements => sample.elements,
            Self::Bytes => sample.bytes,
        }
    }
}

/// Number of parts of a sequence per sample. To find a position, a binary search finds the sample, and
/// then at most this many parts are skipped one by one. The samples take a fifth of the memory of the
/// parts.
const SAMPLE: usize = 16;

impl Signature {
    fn node(&self, id: NodeId) -> &Node {
        &self.0.nodes[id.0 as usize]
    }

    /// Returns the rule by which this signature compares basic types.
    pub fn sameness(&self) -> Sameness {
        self.0.sameness
    }

    /// Returns the number of basic elements in one element of the datatype.
    pub fn elements(&self) -> u64 {
        self.0.root.map_or(0, |root| root.count * self.node(root.node).elements)
    }

    /// Returns the number of bytes of data in one element of the datatype (its size).
    pub fn bytes(&self) -> u64 {
        self.0.root.map_or(0, |root| root.count * self.node(root.node).bytes)
    }

    /// Returns the number of basic elements in `count` elements of the datatype.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
    pub fn elements_of(&self, count: u64) -> Result<u64> {
        Ok(self.root(count)?.map_or(0, |root| root.count * self.node(root.node).elements))
    }

    /// Checks that the number of bytes of `count` elements fits in an `i64`. Returns the signature of
    /// these elements, or `None` if they have no data.
    fn root(&self, count: u64) -> Result<Option<Repeated>> {
        let bytes = u128::from(self.bytes()) * u128::from(count);
        if i64::try_from(bytes).is_err() {
            return Err(Error::new(
                ErrorKind::Overflow,
                "count",
                format!(
                    "{count} elements of {} each: the total size exceeds 2^63 - 1 bytes",
                    counted(self.bytes(), "byte", "bytes")
                ),
            ));
        }
        // A basic element has at least one byte, so the number of basic elements fits as well.
        let whole = |root: Repeated| Repeated { count: root.count * count, ..root };
        Ok(self.0.root.filter(|_| count > 0).map(whole))
    }

    /// Returns the hash of `count` elements of the datatype, in O(log count).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
    pub fn hash(&self, count: u64) -> Result<SignatureHash> {
        Ok(self.root(count)?.map_or(SignatureHash::EMPTY, |root| {
            let node = self.node(root.node);
            node.hash.repeat(root.count).hash(root.count * node.elements)
        }))
    }

    /// Returns the hash of the first `elements` basic elements of `count` elements of the datatype, in
    /// O(depth of nested structs + log elements).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if `count` elements have fewer than `elements` basic elements.
    /// Returns `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
    pub fn prefix_hash(&self, count: u64, elements: u64) -> Result<SignatureHash> {
        let all = self.elements_of(count)?;
        if elements > all {
            return Err(Error::new(
                ErrorKind::Argument,
                "elements",
                format!(
                    "{elements} is too large; the data has {}",
                    counted(all, "basic element", "basic elements")
                ),
            ));
        }
        let mut hash = SignatureHash::EMPTY;
        if let Some(root) = self.root(count)? {
            hash = self.prefix(root, elements, Unit::Elements).0;
        }
        Ok(hash)
    }

    /// Returns the hash of the basic elements in the first `bytes` bytes of the data of `count`
    /// elements of the datatype. A message of `bytes` bytes has this hash. Returns `None` if the last
    /// byte does not end a basic element. The cost is O(depth of nested structs + log elements).
    ///
    /// ```
    /// use typepack_engine::{Datatype, Named, signature::Signature};
    ///
    /// let (int, double) = (Datatype::named(Named::INT), Datatype::named(Named::DOUBLE));
    /// let pair = Signature::of(&Datatype::structured(&[1, 1], &[0, 8], &[int.clone(), double])?)?;
    /// assert_eq!(pair.hash_of_bytes(10, 4)?, Some(Signature::of(&int)?.hash(1)?));
    /// assert_eq!(pair.hash_of_bytes(10, 24)?, Some(pair.hash(2)?));
    /// assert_eq!(pair.hash_of_bytes(10, 15)?, None);
    /// # Ok::<(), typepack_engine::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if the data has fewer than `bytes` bytes. Returns
    /// `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
    pub fn hash_of_bytes(&self, count: u64, bytes: u64) -> Result<Option<SignatureHash>> {
        let root = self.root(count)?;
        // The product cannot overflow, because `root` checked it.
        let all = self.bytes() * count;
        if bytes > all {
            return Err(Error::new(
                ErrorKind::Argument,
                "bytes",
                format!("{bytes} is too large; the data has {}", counted(all, "byte", "bytes")),
            ));
        }
        let Some(root) = root else { return Ok(Some(SignatureHash::EMPTY)) };
        let (hash, rest) = self.prefix(root, bytes, Unit::Bytes);
        Ok((rest == 0).then_some(hash))
    }

    /// Returns the hash of the whole basic elements in the first `length` units of `item`, and the
    /// number of units left over. That number is nonzero only if `length` ends inside a basic element.
    /// `length` must not exceed the length of `item`.
    fn prefix(&self, item: Repeated, length: u64, unit: Unit) -> (SignatureHash, u64) {
        let (mut hash, mut elements) = (Affine::EMPTY, 0);
        let (_, rest) = self.descend(item, length, unit, |passed, of, count| {
            hash = hash.then(passed.repeat(count));
            elements += of * count;
        });
        (hash.hash(elements), rest)
    }

    /// Returns the basic element at index `index` of the endless sequence that repeats the elements
    /// of the datatype. Returns `None` for a type without data.
    pub fn basic_at(&self, index: u64) -> Option<Basic> {
        let one = self.0.root?;
        let index = index % (one.count * self.node(one.node).elements);
        let (reached, _) = self.descend(one, index, Unit::Elements, |_, _, _| {});
        Some(self.node(reached).first)
    }

    /// Walks to position `index` of `item`; `index` must not exceed the length of `item`. The function
    /// calls `passed` for the data before the position, in order. Each call covers a node, or several
    /// consecutive parts, repeated a number of times. The arguments of `passed` are the hash of one
    /// repetition, its number of basic elements, and the number of repetitions.
    ///
    /// The function returns a node and a distance inside this node. Usually the node starts at the
    /// position, and the distance is 0. If the position lies inside a basic element, the node is that
    /// of the basic element, and the distance counts from the start of this element. If `index` is
    /// the length of `item`, the node is that of `item`, and the distance is 0.
    fn descend(
        &self,
        item: Repeated,
        index: u64,
        unit: Unit,
        mut passed: impl FnMut(Affine, u64, u64),
    ) -> (NodeId, u64) {
        let (mut at, mut rest) = (item.node, index);
        loop {
            let node = self.node(at);
            let length = unit.length(node);
            passed(node.hash, node.elements, rest / length);
            rest %= length;
            let Kind::Sequence { parts, samples } = &node.kind else { return (at, rest) };
            if rest == 0 {
                return (at, 0);
            }
            let sample = samples.partition_point(|sample| unit.before(sample) <= rest) - 1;
            let before = samples[sample];
            passed(before.hash, before.elements, 1);
            rest -= unit.before(&before);
            let mut part = sample * SAMPLE;
            loop {
                let child = self.node(parts[part].node);
                let length = parts[part].count * unit.length(child);
                if rest < length {
                    break;
                }
                passed(child.hash, child.elements, parts[part].count);
                rest -= length;
                part += 1;
            }
            at = parts[part].node;
        }
    }

    /// Returns the number `n` such that `n` copies of `other`, one after another, have the same basic
    /// types as `self`. File views need this number, because a file type consists of copies of the
    /// etype (MPI-5.0 section 14.1.1). Returns 0 if `self` has no data. Returns `None` if there is no
    /// such number, or if the two signatures compare basic types by different rules.
    pub fn copies_of(&self, other: &Signature) -> Option<u64> {
        if self.sameness() != other.sameness() {
            return None;
        }
        let (mine, theirs) = (self.elements(), other.elements());
        if mine == 0 {
            return Some(0);
        }
        if theirs == 0 || !mine.is_multiple_of(theirs) {
            return None;
        }
        let copies = mine / theirs;
        // If the signatures agree, both sizes fit in an `i64`, so neither call of `hash` returns an
        // error.
        let equal = self.hash(1).ok()? == other.hash(copies).ok()?;
        equal.then_some(copies)
    }
}

impl PartialEq for Signature {
    /// Returns true if both signatures compare basic types by the same rule and have the same basic
    /// types in the same order. The basic types are compared by hash.
    fn eq(&self, other: &Self) -> bool {
        self.sameness() == other.sameness() && self.hash(1) == other.hash(1)
    }
}
