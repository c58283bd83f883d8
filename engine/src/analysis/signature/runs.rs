//! The signature as a run-length list, produced as it is asked for, and as text.
//!
//! After `build.rs`. The walk keeps one frame per nested struct on the heap and yields each run in
//! amortised constant time: every repetition of a sequence holds at least one boundary of runs.

use super::{Basic, Kind, NodeId, Signature};
use crate::error::Result;
use std::fmt;

/// Consecutive basic elements of one basic type; neighbours in a list differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignatureRun {
    /// The basic type.
    pub basic: Basic,
    /// Number of elements, never 0.
    pub elements: u64,
}

/// The first runs of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureRunList {
    /// The runs, in typemap order.
    pub runs: Vec<SignatureRun>,
    /// True when there are more.
    pub truncated: bool,
}

impl Signature {
    /// The maximal runs of `count` elements of the datatype, in typemap order, one at a time.
    ///
    /// # Errors
    ///
    /// The bytes of `count` elements do not fit `i64`.
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

    /// Number of maximal runs of `count` elements of the datatype. O(1).
    ///
    /// # Errors
    ///
    /// The bytes of `count` elements do not fit `i64`.
    pub fn run_count(&self, count: u64) -> Result<u64> {
        Ok(self.root(count)?.map_or(0, |root| self.node(root.node).runs_of(root.count)))
    }

    /// The first runs of `count` elements of the datatype, at most `cap` of them: memory and time
    /// depend on `cap` and the depth, never on how large the type is.
    ///
    /// # Errors
    ///
    /// The bytes of `count` elements do not fit `i64`.
    pub fn run_list(&self, count: u64, cap: usize) -> Result<SignatureRunList> {
        let total = self.run_count(count)?;
        let runs = self.runs(count)?.take(cap).collect();
        Ok(SignatureRunList { runs, truncated: total > cap as u64 })
    }
}

/// The runs of a signature ([`Signature::runs`]).
#[derive(Clone)]
pub struct SignatureRuns<'a> {
    signature: &'a Signature,
    frames: Vec<Frame>,
    /// A run that may go on.
    held: Option<SignatureRun>,
}

/// A sequence under way.
#[derive(Clone)]
struct Frame {
    node: NodeId,
    /// The next part.
    part: usize,
    /// Repetitions to go, this one included.
    left: u64,
}

impl SignatureRuns<'_> {
    /// The next part that is a basic type; neighbours may have one type.
    fn part(&mut self) -> Option<SignatureRun> {
        loop {
            let frame = self.frames.last_mut()?;
            let Kind::Sequence { parts, .. } = &self.signature.node(frame.node).kind else {
                // Frames are made for sequences only.
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

/// Parts that are printed in all, and nested structs.
const SHOWN_PARTS: usize = 48;
const SHOWN_LEVELS: usize = 6;

impl fmt::Display for Signature {
    /// One line such as `1000 x (integer 4, 2 x float 8)`; what is too long or too deep ends in
    /// `…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(root) = self.0.root else { return f.write_str("empty") };
        // Sequences under way, by node and next part.
        let mut open: Vec<(NodeId, usize)> = Vec::new();
        let mut shown = 0;
        let mut next = Some(root);
        loop {
            if let Some(piece) = next.take() {
                if piece.count > 1 {
                    write!(f, "{} x ", piece.count)?;
                }
                match self.node(piece.node).kind {
                    Kind::Basic(basic) => write!(f, "{basic}")?,
                    Kind::Sequence { .. } if open.len() == SHOWN_LEVELS => f.write_str("(…)")?,
                    Kind::Sequence { .. } => {
                        f.write_str("(")?;
                        open.push((piece.node, 0));
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
