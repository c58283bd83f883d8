//! The type signature: the sequence of basic types of a datatype, without their displacements
//! (MPI-5.0 section 5.1), held compactly.
//!
//! The input is the tree (`datatype/`). Signatures serve type checks at run time, file views and
//! `explain`.
//!
//! - `basic.rs`: when two basic types are equal (class and width, or the name)
//! - `hash.rs`: the composable hash
//! - `build.rs`: makes a signature from a tree
//! - `runs.rs`: the signature as a run-length list, and its printed form
//! - `matching.rs`: whether a message may be received
//!
//! Every constructor except the struct repeats its only child, so its signature is a number of
//! repetitions of the child's signature, whatever the displacements: a `Repeated`. Only structs
//! (and pairs) make nodes. So index tables never appear here, and a tower of other constructors is
//! one item. Sequences are compressed further: neighbours with one signature are joined, equal
//! sequences share one node, and a sequence that repeats a shorter one is stored as a repetition.
//!
//! Invariants: operands have smaller ids than their users. No item is empty. A sequence has at least
//! two parts and is not a repetition of a shorter sequence; neighbouring parts have different nodes (so
//! a sequence has at least two runs). Numbers of elements fit `i64`, because sizes do.

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

/// The signature of a datatype. A clone costs one reference count; it does not keep the type alive.
///
/// ```
/// use typepack_engine::{Datatype, Named, signature::Signature};
///
/// let (int, double) = (Datatype::named(Named::INT), Datatype::named(Named::DOUBLE));
/// let pair = Datatype::structured(&[1, 2], &[0, 8], &[int, double])?;
/// let signature = Signature::of(&Datatype::vector(500, 2, 4, &pair)?)?;
/// assert_eq!(signature.to_string(), "1000 x (integer 4, 2 x float 8)");
/// assert_eq!(signature.elements(), 3000);
/// // The hash of a message of one and a half pairs, computed by its receiver.
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
    /// `None` for a type without data.
    root: Option<Repeated>,
    sameness: Sameness,
}

/// Index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NodeId(u32);

/// `count` (not 0) repetitions of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Repeated {
    count: u64,
    node: NodeId,
}

/// Properties of one repetition of a node.
struct Node {
    elements: u64,
    /// Bytes in memory.
    bytes: u64,
    hash: Affine,
    /// Maximal runs of one basic type.
    runs: u64,
    first: Basic,
    last: Basic,
    kind: Kind,
}

enum Kind {
    Basic(Basic),
    Sequence {
        parts: Box<[Repeated]>,
        /// The sums before part `k * SAMPLE`, for each `k`.
        samples: Box<[Sample]>,
    },
}

/// Elements, bytes and hash of the first parts of a sequence, summed up.
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
    /// Returns the length of one repetition of a node; never 0.
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

/// Parts per sample of a sequence. A prefix costs a binary search and at most this many steps; the
/// samples take a fifth of the memory of the parts.
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

    /// Returns the bytes of data in one element of the datatype (its size).
    pub fn bytes(&self) -> u64 {
        self.0.root.map_or(0, |root| root.count * self.node(root.node).bytes)
    }

    /// Returns the number of basic elements in `count` elements of the datatype.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the bytes of `count` elements do not fit `i64`.
    pub fn elements_of(&self, count: u64) -> Result<u64> {
        Ok(self.root(count)?.map_or(0, |root| root.count * self.node(root.node).elements))
    }

    /// Checks that the bytes of `count` elements fit, and returns the signature of these elements.
    fn root(&self, count: u64) -> Result<Option<Repeated>> {
        let bytes = u128::from(self.bytes()) * u128::from(count);
        if i64::try_from(bytes).is_err() {
            return Err(Error::new(
                ErrorKind::Overflow,
                "count",
                format!(
                    "{count} elements of {} do not fit 64 bits",
                    counted(self.bytes(), "byte", "bytes")
                ),
            ));
        }
        // A basic element has at least one byte, so the numbers of elements fit as well.
        let whole = |root: Repeated| Repeated { count: root.count * count, ..root };
        Ok(self.0.root.filter(|_| count > 0).map(whole))
    }

    /// Returns the hash of `count` elements of the datatype, in O(log count).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the bytes of `count` elements do not fit `i64`.
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
    /// Returns `ErrorKind::Argument` if there are fewer basic elements, `ErrorKind::Overflow` if the
    /// bytes of `count` elements do not fit `i64`.
    pub fn prefix_hash(&self, count: u64, elements: u64) -> Result<SignatureHash> {
        let all = self.elements_of(count)?;
        if elements > all {
            return Err(Error::new(
                ErrorKind::Argument,
                "elements",
                format!(
                    "{elements}, but the data has {}",
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
    /// elements of the datatype. A message of that length has this hash. Returns `None` if the bytes
    /// end inside a basic element. The cost is O(depth of nested structs + log elements).
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
    /// Returns `ErrorKind::Argument` if the data has fewer bytes, `ErrorKind::Overflow` if the bytes of
    /// `count` elements do not fit `i64`.
    pub fn hash_of_bytes(&self, count: u64, bytes: u64) -> Result<Option<SignatureHash>> {
        let root = self.root(count)?;
        // No overflow: `root` checked the product.
        let all = self.bytes() * count;
        if bytes > all {
            return Err(Error::new(
                ErrorKind::Argument,
                "bytes",
                format!("{bytes}, but the data has {}", counted(all, "byte", "bytes")),
            ));
        }
        let Some(root) = root else { return Ok(Some(SignatureHash::EMPTY)) };
        let (hash, rest) = self.prefix(root, bytes, Unit::Bytes);
        Ok((rest == 0).then_some(hash))
    }

    /// Returns the hash of the first `length` units of `item` (at most all of them), and the number of
    /// units that remain inside a basic element.
    fn prefix(&self, item: Repeated, length: u64, unit: Unit) -> (SignatureHash, u64) {
        let (mut hash, mut elements) = (Affine::EMPTY, 0);
        let (_, rest) = self.descend(item, length, unit, |passed, of, count| {
            hash = hash.then(passed.repeat(count));
            elements += of * count;
        });
        (hash.hash(elements), rest)
    }

    /// Returns basic element number `index`, counted through any number of elements of the datatype;
    /// `None` for a type without data.
    pub fn basic_at(&self, index: u64) -> Option<Basic> {
        let one = self.0.root?;
        let index = index % (one.count * self.node(one.node).elements);
        let (reached, _) = self.descend(one, index, Unit::Elements, |_, _, _| {});
        Some(self.node(reached).first)
    }

    /// Moves to position `index` of `item` (at most its length). The function passes the items before
    /// the position to `passed`, in order, as hashes with their numbers of elements and counts. The
    /// function returns the node that starts at the position, or the basic node that contains the
    /// position, and the distance inside that node. If `index` is the length, it returns the node of
    /// `item`, or the innermost node that ends there.
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

    /// Returns how many copies of `other`, one after another, have this signature. File views need it:
    /// a file type consists of copies of the etype (MPI-5.0 section 14.1.1). Returns `None` if no
    /// number of copies has this signature or if the two compare basic types by different rules, and 0
    /// for a type without data.
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
        // Sizes fit, so neither hash fails if the signatures agree.
        let equal = self.hash(1).ok()? == other.hash(copies).ok()?;
        equal.then_some(copies)
    }
}

impl PartialEq for Signature {
    /// Returns true for equal basic types in equal order, compared by hash, and equal rules of
    /// comparison.
    fn eq(&self, other: &Self) -> bool {
        self.sameness() == other.sameness() && self.hash(1) == other.hash(1)
    }
}
