//! Prints a signature, and iterates over its runs of equal basic types without storing the list.
//!
//! `build.rs` makes the signature, in which each struct is a sequence of parts (`Kind::Sequence`). The
//! iterator keeps one frame on the heap for each nested sequence that it is in. It yields each run in
//! amortised constant time, because every repetition of a sequence contains at least one boundary
//! between runs.

use super::{Basic, Kind, NodeId, Signature};
use crate::error::Result;
use std::fmt;

/// Consecutive basic elements of one basic type. Adjacent runs in a list have different basic types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignatureRun {
    /// The basic type.
    pub basic: Basic,
    /// Number of basic elements; never 0.
    pub elements: u64,
}

/// The first runs of a signature ([`Signature::run_list`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureRunList {
    /// The runs, in typemap order.
    pub runs: Vec<SignatureRun>,
    /// True if the signature has more runs than `runs` contains.
    pub truncated: bool,
}

impl Signature {
    /// Returns an iterator over the maximal runs of `count` elements of the datatype, in typemap order.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
    pub fn runs(&self, count: u64) -> Result<SignatureRuns<'_>> {
        let mut runs = SignatureRuns { signature: self, frames: Vec::new(), held: None };
        if let Some(root) = self.root(count)? {
            match self.node(root.node).kind {
                Kind::Basic(basic) => {
                    runs.held = Some(SignatureRun { basic, elements: root.count });
                }
                Kind::Sequence { .. } => {
                    runs.frames.push(Frame { node: root.node, part: 0, left: root.count });
                }
            }
        }
        Ok(runs)
    }

    /// Returns the number of maximal runs of `count` elements of the datatype, in O(1).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
    pub fn run_count(&self, count: u64) -> Result<u64> {
        Ok(self.root(count)?.map_or(0, |root| self.node(root.node).runs_of(root.count)))
    }

    /// Returns the first runs of `count` elements of the datatype, at most `cap` of them. Memory and
    /// time depend on `cap` and on the depth of nested structs, not on the size of the type.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
    pub fn run_list(&self, count: u64, cap: usize) -> Result<SignatureRunList> {
        let total = self.run_count(count)?;
        let runs = self.runs(count)?.take(cap).collect();
        Ok(SignatureRunList { runs, truncated: total > cap as u64 })
    }
}

/// An iterator over the runs of a signature, made by [`Signature::runs`].
#[derive(Clone)]
pub struct SignatureRuns<'a> {
    signature: &'a Signature,
    frames: Vec<Frame>,
    /// The run that has not been returned yet, because the next part may extend it.
    held: Option<SignatureRun>,
}

/// A sequence that the iterator is walking through.
#[derive(Clone)]
struct Frame {
    node: NodeId,
    /// Index of the part of the sequence that the iterator visits next.
    part: usize,
    /// Number of remaining repetitions of the sequence, including the current one.
    left: u64,
}

impl SignatureRuns<'_> {
    /// Returns the next part that is a basic type. Two consecutive parts may have the same basic type.
    fn part(&mut self) -> Option<SignatureRun> {
        loop {
            let frame = self.frames.last_mut()?;
            let Kind::Sequence { parts, .. } = &self.signature.node(frame.node).kind else {
                // Only sequences get frames, so this line is never reached.
                return None;
            };
            let Some(part) = parts.get(frame.part) else {
                frame.left -= 1;
                frame.part = 0;
                if frame.left == 0 {
                    self.frames.pop();
                }
                continue;
            };
            frame.part += 1;
            match self.signature.node(part.node).kind {
                Kind::Basic(basic) => return Some(SignatureRun { basic, elements: part.count }),
                Kind::Sequence { .. } => {
                    self.frames.push(Frame { node: part.node, part: 0, left: part.count });
                }
            }
        }
    }
}

impl Iterator for SignatureRuns<'_> {
    type Item = SignatureRun;

    fn next(&mut self) -> Option<SignatureRun> {
        while let Some(next) = self.part() {
            match &mut self.held {
                Some(held) if held.basic == next.basic => held.elements += next.elements,
                held => {
                    if let Some(done) = held.replace(next) {
                        return Some(done);
                    }
                }
            }
        }
        self.held.take()
    }
}

/// Maximum number of parts that are printed.
const SHOWN_PARTS: usize = 48;

/// Maximum depth of nested structs that are printed.
const SHOWN_LEVELS: usize = 6;

impl fmt::Display for Signature {
    /// Prints one line such as `1000 x (integer 4, 2 x float 8)`, or `empty` for a type without data. An
    /// ellipsis `…` replaces structs that are nested deeper than `SHOWN_LEVELS`, and all parts after the
    /// first `SHOWN_PARTS`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(root) = self.0.root else { return f.write_str("empty") };
        // Holds, for each open sequence, its node and the index of the next part.
        let mut open: Vec<(NodeId, usize)> = Vec::new();
        let mut shown = 0;
        let mut next = Some(root);
        loop {
            if let Some(item) = next.take() {
                if item.count > 1 {
                    write!(f, "{} x ", item.count)?;
                }
                match self.node(item.node).kind {
                    Kind::Basic(basic) => write!(f, "{basic}")?,
                    Kind::Sequence { .. } if open.len() == SHOWN_LEVELS => f.write_str("(…)")?,
                    Kind::Sequence { .. } => {
                        f.write_str("(")?;
                        open.push((item.node, 0));
                    }
                }
            }
            let Some((node, part)) = open.last_mut() else { return Ok(()) };
            let Kind::Sequence { parts, .. } = &self.0.nodes[node.0 as usize].kind else {
                return Ok(());
            };
            if *part == parts.len() || shown == SHOWN_PARTS {
                let more = if *part == parts.len() { "" } else { ", …" };
                write!(f, "{more})")?;
                open.pop();
                continue;
            }
            if *part > 0 {
                f.write_str(", ")?;
            }
            next = Some(parts[*part]);
            *part += 1;
            shown += 1;
        }
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}
