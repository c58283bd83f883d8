//! The type signature: the sequence of basic types of a datatype, without their displacements
//! (MPI-5.0 section 5.1), held compactly.
//!
//! Comes from the tree (`datatype/`), beside `commit.rs`; consumers are type checks at run time,
//! file views and `explain`.
//!
//! - `basic.rs`: what counts as one basic type (class and width, or the name)
//! - `hash.rs`: the composable hash
//! - `build.rs`: tree to signature
//! - `runs.rs`: the signature as a run-length list, and printed
//! - `matching.rs`: whether a message may be received
//!
//! Every constructor but the struct repeats its only child, so its signature is the child's some
//! number of times, whatever its displacements: a `Repeated`. Only structs (and pairs) make nodes.
//! Thus index tables never appear here, and a tower of any other constructors is one piece.
//! Sequences are compressed further: neighbours of one signature join, equal sequences are one
//! node, a sequence that is a repetition becomes one.
//!
//! Invariants: operands have smaller ids than their users; no piece is empty; a sequence has at
//! least two parts, is not a repetition of a shorter one, and neighbouring parts have different
//! nodes (hence at least two runs). Numbers of elements fit `i64`, as sizes do.

mod basic;
mod build;
mod hash;
mod matching;
mod runs;

pub use basic::{Basic, Class, Sameness};
pub use hash::SignatureHash;
pub use matching::Mismatch;
pub use runs::{SignatureRun, SignatureRunList, SignatureRuns};

use crate::error::{Error, ErrorKind, Result};
use hash::Affine;
use std::sync::Arc;

/// The signature of a datatype. Cloning is one reference count; it does not keep the type alive.
///
/// ```
/// use typepack_engine::{Datatype, Named, signature::Signature};
///
/// let (int, double) = (Datatype::named(Named::INT), Datatype::named(Named::DOUBLE));
/// let pair = Datatype::structured(&[1, 2], &[0, 8], &[int, double])?;
/// let signature = Signature::of(&Datatype::vector(500, 2, 4, &pair)?)?;
/// assert_eq!(signature.to_string(), "1000 x (integer 4, 2 x float 8)");
/// assert_eq!(signature.elements(), 3000);
/// // What a message of one and a half pairs carries, seen by its receiver.
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

/// One repetition of a node, summed up.
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
        /// What lies before part `k * SAMPLE`.
        samples: Box<[Sample]>,
    },
}

/// Elements, bytes and hash of the first parts of a sequence.
#[derive(Clone, Copy)]
struct Sample {
    elements: u64,
    bytes: u64,
    hash: Affine,
}

/// What a place in a signature is counted in.
#[derive(Clone, Copy)]
enum Unit {
    Elements,
    Bytes,
}

impl Unit {
    /// The length of one repetition of a node; never 0.
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

/// Parts per sample of a sequence: a prefix costs a binary search and at most this many steps, and
/// the samples a fifth of the parts.
const SAMPLE: usize = 16;

impl Signature {
    fn node(&self, id: NodeId) -> &Node {
        &self.0.nodes[id.0 as usize]
    }

    /// What counts as the same basic type in this signature.
    pub fn sameness(&self) -> Sameness {
        self.0.sameness
    }

    /// Basic elements in one element of the datatype.
    pub fn elements(&self) -> u64 {
        self.0.root.map_or(0, |root| root.count * self.node(root.node).elements)
    }

    /// Bytes of data in one element of the datatype (its size).
    pub fn bytes(&self) -> u64 {
        self.0.root.map_or(0, |root| root.count * self.node(root.node).bytes)
    }

    /// Basic elements in `count` elements of the datatype.
    ///
    /// # Errors
    ///
    /// Their bytes do not fit `i64`.
    pub fn elements_of(&self, count: u64) -> Result<u64> {
        Ok(self.root(count)?.map_or(0, |root| root.count * self.node(root.node).elements))
    }

    /// The signature of `count` elements, with everything about it known to fit.
    fn root(&self, count: u64) -> Result<Option<Repeated>> {
        let bytes = u128::from(self.bytes()) * u128::from(count);
        if i64::try_from(bytes).is_err() {
            return Err(Error::new(
                ErrorKind::Overflow,
                "count",
                format!("{count} elements of {} bytes do not fit 64 bits", self.bytes()),
            ));
        }
        // An element has at least one byte, so numbers of elements fit as well.
        let whole = |root: Repeated| Repeated { count: root.count * count, ..root };
        Ok(self.0.root.filter(|_| count > 0).map(whole))
    }

    /// The hash of `count` elements of the datatype. O(log count).
    ///
    /// # Errors
    ///
    /// Their bytes do not fit `i64`.
    pub fn hash(&self, count: u64) -> Result<SignatureHash> {
        Ok(self.root(count)?.map_or(SignatureHash::EMPTY, |root| {
            let node = self.node(root.node);
            node.hash.repeat(root.count).hash(root.count * node.elements)
        }))
    }

    /// The hash of the first `elements` basic elements of `count` elements of the datatype.
    /// O(depth of nested structs + log elements).
    ///
    /// # Errors
    ///
    /// There are fewer basic elements, or their bytes do not fit `i64`.
    pub fn prefix_hash(&self, count: u64, elements: u64) -> Result<SignatureHash> {
        let all = self.elements_of(count)?;
        if elements > all {
            return Err(Error::new(
                ErrorKind::Argument,
                "elements",
                format!("{elements} basic elements, but there are only {all}"),
            ));
        }
        let mut hash = SignatureHash::EMPTY;
        if let Some(root) = self.root(count)? {
            hash = self.prefix(root, elements, Unit::Elements).0;
        }
        Ok(hash)
    }

    /// The hash of the basic elements in the first `bytes` bytes of the data of `count` elements of
    /// the datatype, as a message of that length holds them; `None` when they end inside a basic
    /// element. O(depth of nested structs + log elements).
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
    /// There are fewer bytes, or those of `count` elements do not fit `i64`.
    pub fn hash_of_bytes(&self, count: u64, bytes: u64) -> Result<Option<SignatureHash>> {
        let root = self.root(count)?;
        // No overflow: `root` has checked it.
        let all = self.bytes() * count;
        if bytes > all {
            return Err(Error::new(
                ErrorKind::Argument,
                "bytes",
                format!("{bytes} bytes of data, but there are only {all}"),
            ));
        }
        let Some(root) = root else { return Ok(Some(SignatureHash::EMPTY)) };
        let (hash, rest) = self.prefix(root, bytes, Unit::Bytes);
        Ok((rest == 0).then_some(hash))
    }

    /// The hash of the first `length` units of `piece`, at most its own, and what is left of them
    /// inside a basic element.
    fn prefix(&self, piece: Repeated, length: u64, unit: Unit) -> (SignatureHash, u64) {
        let (mut hash, mut elements) = (Affine::EMPTY, 0);
        let (_, rest) = self.descend(piece, length, unit, |passed, of, count| {
            hash = hash.then(passed.repeat(count));
            elements += of * count;
        });
        (hash.hash(elements), rest)
    }

    /// The basic element number `index`, counted through any number of elements of the datatype;
    /// `None` for a type without data.
    pub fn basic_at(&self, index: u64) -> Option<Basic> {
        let one = self.0.root?;
        let index = index % (one.count * self.node(one.node).elements);
        let (reached, _) = self.descend(one, index, Unit::Elements, |_, _, _| {});
        Some(self.node(reached).first)
    }

    /// Goes to place `index` of `piece` (at most its length), gives what lies before it to `passed`
    /// as hashes with their numbers of elements and counts, in order, and returns the node that
    /// starts there (that of `piece`, or the innermost one that ends there, if `index` is the
    /// length), or the basic one that contains the place, and how far it is inside.
    fn descend(
        &self,
        piece: Repeated,
        index: u64,
        unit: Unit,
        mut passed: impl FnMut(Affine, u64, u64),
    ) -> (NodeId, u64) {
        let (mut at, mut rest) = (piece.node, index);
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

    /// How many copies of `other`, one after the other, have this signature: for the rule that a
    /// file type is made of copies of the etype (MPI-5.0 section 14.1.1). `None` when no number has,
    /// or the two compare basic types differently; 0 for a type without data.
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
        // Sizes fit, so neither hash fails where the signatures agree.
        let equal = self.hash(1).ok()? == other.hash(copies).ok()?;
        equal.then_some(copies)
    }
}

impl PartialEq for Signature {
    /// Same basic types in the same order, by hash, and the same rule of comparison.
    fn eq(&self, other: &Self) -> bool {
        self.sameness() == other.sameness() && self.hash(1) == other.hash(1)
    }
}
