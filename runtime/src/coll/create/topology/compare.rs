//! The comparison of arguments that all ranks must pass alike when they make a communicator, with
//! `TYPEPACK_CHECK_TYPES=1`.
//!
//! `cartesian.rs` and `graph.rs` compare the shape of a topology. All ranks exchange a hash of each argument. If the
//! hashes of an argument differ, the ranks exchange its length and its entries, one by one, until the first difference.
//! All ranks get the same error. A neighbourhood collective compares the edges of a distributed graph
//! (`check/edges.rs`).

use crate::coll::check::rank_text;
use crate::comm::Communicator;
use crate::{Error, ErrorKind, Result};

/// An argument that all ranks must pass alike: its name, the kind of the error, and its entries.
pub(super) struct Argument {
    pub name: &'static str,
    pub kind: ErrorKind,
    pub entries: Vec<i64>,
}

impl Argument {
    pub(super) fn new(
        name: &'static str,
        kind: ErrorKind,
        entries: impl IntoIterator<Item = i64>,
    ) -> Self {
        Self { name, kind, entries: entries.into_iter().collect() }
    }

    /// Returns a hash of the name, the entries and their number, below 2^63.
    fn hash(&self) -> u64 {
        let mix = |hash: u64, entry: i64| {
            let mixed = (hash ^ entry as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 32
        };
        let start = self.name.bytes().map(i64::from).fold(1, mix);
        self.entries.iter().copied().fold(mix(start, self.entries.len() as i64), mix) >> 1
    }
}

impl Communicator {
    /// Checks that all ranks pass the same arguments, at most three, if `TYPEPACK_CHECK_TYPES` asks for it. Collective.
    ///
    /// A rank whose arguments are wrong calls [`fail_creation`](Self::fail_creation) instead.
    ///
    /// # Errors
    /// Returns an error that names the argument and two different values, `ErrorKind::Other` if another rank found an
    /// error in its arguments, and `ErrorKind::ProcAborted` if a rank has died.
    pub(super) fn compare_arguments<const N: usize>(&self, arguments: [Argument; N]) -> Result<()> {
        const { assert!(N <= 3) };
        if !self.checks_calls() {
            return Ok(());
        }
        let mut hashes = [0; 3];
        for (hash, argument) in hashes.iter_mut().zip(&arguments) {
            *hash = argument.hash();
        }
        let all = self.all_words(&hashes)?;
        let differs = |at: &usize| all.iter().any(|words| words[*at] != all[0][*at]);
        let argument = match (0..3).find(differs) {
            None => return Ok(()),
            // Some ranks pass more arguments than this rank, so they make another call.
            Some(at) if at >= N => {
                let detail = "another rank makes a communicator with another kind of topology";
                return Err(Error::new(ErrorKind::Other, "call", detail));
            }
            Some(at) => &arguments[at],
        };
        let lengths = self.all_words(&[0, argument.entries.len() as u64, 0])?;
        if let Some((rank, one, other)) = first_difference(&lengths) {
            let detail =
                format!("rank 0 passed {one} entries, and rank {rank} passed {other} entries");
            return Err(Error::new(argument.kind, argument.name, detail));
        }
        for (at, &entry) in argument.entries.iter().enumerate() {
            let entries = self.all_words(&[0, entry as u64, 0])?;
            if let Some((rank, one, other)) = first_difference(&entries) {
                let (one, other) = (one as i64, other as i64);
                let detail =
                    format!("entry {at}: rank 0 passed {one}, and rank {rank} passed {other}");
                return Err(Error::new(argument.kind, argument.name, detail));
            }
        }
        // The entries are the same, so the names differ.
        let detail = "another rank makes a communicator with another kind of topology";
        Err(Error::new(ErrorKind::Other, "call", detail))
    }
}

impl Communicator {
    /// Checks that all ranks that take part in a split pass the same `split_type`, if `TYPEPACK_CHECK_TYPES` asks for
    /// it. In an intercommunicator, the ranks of both groups must. A rank that takes no part passes `None`. Collective.
    ///
    /// A rank whose arguments are wrong calls [`fail_creation`](Self::fail_creation) instead.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` on all ranks if two ranks pass different values, `ErrorKind::Other` if another
    /// rank found an error in its arguments, and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(hidden)]
    pub fn check_split_type(&self, split_type: Option<i32>) -> Result<()> {
        if !self.checks_calls() {
            return Ok(());
        }
        let mine = [0, u64::from(split_type.is_some()), split_type.unwrap_or(0) as u64];
        let (ours, theirs) = self.exchange_words(&mine)?;
        let all = ours.iter().chain(&theirs).enumerate();
        let mut kinds = all.filter(|(_, words)| words[1] == 1);
        let Some((first, &[_, _, one])) = kinds.next() else { return Ok(()) };
        let Some((rank, &[_, _, other])) = kinds.find(|(_, words)| words[2] != one) else {
            return Ok(());
        };
        let text = |rank| rank_text(rank, ours.len());
        let detail = format!(
            "{} passed {}, and {} passed {}",
            text(first),
            one as i32,
            text(rank),
            other as i32
        );
        Err(Error::new(ErrorKind::Argument, "split_type", detail))
    }
}

/// Returns the first rank whose second word differs from that of rank 0, and both words.
fn first_difference(all: &[[u64; 3]]) -> Option<(usize, u64, u64)> {
    let rank = all.iter().position(|words| words[1] != all[0][1])?;
    Some((rank, all[0][1], all[rank][1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_the_entries_and_their_number() {
        let hash = |entries: &[i64]| {
            Argument::new("dims", ErrorKind::Dims, entries.iter().copied()).hash()
        };
        let all = [&[][..], &[0], &[0, 0], &[2, 3], &[3, 2], &[-1]].map(hash);
        for (at, one) in all.iter().enumerate() {
            assert!(*one < 1 << 63 && !all[..at].contains(one));
        }
        assert_eq!(first_difference(&[[0, 4, 0], [0, 4, 0]]), None);
        assert_eq!(first_difference(&[[0, 4, 0], [0, 4, 0], [0, 5, 0]]), Some((2, 4, 5)));
    }
}
