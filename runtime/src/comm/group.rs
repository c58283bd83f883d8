//! Groups: ordered sets of processes (MPI-5.0 section 6.3).
//!
//! A communicator has a group, and uses it to translate its own ranks into processes (`comm/peers.rs`). `endpoint/`
//! knows only processes. The interface of the library calls the number of a process its world rank: in the world with
//! which a job begins, both are the same. A program makes groups from other groups without communication.
//! `coll/create.rs` makes communicators from groups.
//!
//! Invariant: a group contains a process at most once, and `places` is the inverse of `processes`.

use crate::process::Process;
use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// An ordered set of processes. All clones of a group share its tables.
#[doc(alias = "MPI_Group")]
#[derive(Clone, PartialEq, Eq)]
pub struct Group {
    members: Arc<Members>,
}

#[derive(PartialEq, Eq)]
struct Members {
    /// The process of each rank of the group.
    processes: Vec<Process>,
    /// For each process up to the last one in the group: the rank in the group, or `ABSENT` if the process is not a
    /// member.
    places: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

/// The relation of two groups or of two communicators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same members in the same order; for communicators, the same communicator.
    #[doc(alias = "MPI_IDENT")]
    Identical,
    /// Two different communicators that have the same members in the same order. Groups are never congruent.
    #[doc(alias = "MPI_CONGRUENT")]
    Congruent,
    /// The same members in another order.
    #[doc(alias = "MPI_SIMILAR")]
    Similar,
    /// Different members.
    #[doc(alias = "MPI_UNEQUAL")]
    Unequal,
}

/// The ranks `first`, `first + stride`, … that do not go beyond `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRange {
    /// The first rank.
    pub first: i64,
    /// The bound of the range. The range contains the rank `last` only if the steps from `first` reach it
    /// exactly.
    pub last: i64,
    /// The difference between successive ranks. It may be negative or positive, but not 0.
    pub stride: i64,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.members.processes).finish()
    }
}

impl Group {
    /// Returns the group of these processes. `processes` contains none twice.
    fn of(processes: Vec<Process>) -> Self {
        let places = processes.iter().map(|process| process.index() + 1).max().unwrap_or(0);
        let mut places = vec![ABSENT; places];
        for (place, process) in processes.iter().enumerate() {
            places[process.index()] = place as u32;
        }
        Self { members: Arc::new(Members { processes, places }) }
    }

    /// Returns the group of the processes in these slots.
    pub(crate) fn of_slots(slots: Range<usize>) -> Self {
        Self::of(slots.map(Process::new).collect())
    }

    /// Returns the group of one world rank.
    pub(crate) fn single(rank: usize) -> Self {
        Self::of(vec![Process::new(rank)])
    }

    /// Returns the group without members.
    #[doc(alias = "MPI_GROUP_EMPTY")]
    pub fn empty() -> Self {
        Self::of(Vec::new())
    }

    /// Returns the number of members.
    #[doc(alias = "MPI_Group_size")]
    pub fn size(&self) -> usize {
        self.members.processes.len()
    }

    /// Returns true if the group has no members.
    pub fn is_empty(&self) -> bool {
        self.members.processes.is_empty()
    }

    /// Returns the world rank of a rank of the group, or `None` if the group has no such rank.
    #[inline]
    pub fn world_rank(&self, rank: usize) -> Option<usize> {
        self.process(rank).map(Process::index)
    }

    /// Returns the slots of the members.
    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.members.processes.iter().map(|process| process.index())
    }

    /// Returns the process that has the rank `rank` in this group, or `None` if the group has no such rank.
    #[inline]
    pub(crate) fn process(&self, rank: usize) -> Option<Process> {
        self.members.processes.get(rank).copied()
    }

    /// Returns the rank in this group of a world rank, or `None` if the world rank is not a member.
    #[doc(alias = "MPI_Group_rank")]
    #[inline]
    pub fn rank_of(&self, world: usize) -> Option<usize> {
        let place = *self.members.places.get(world)?;
        (place != ABSENT).then_some(place as usize)
    }

    /// Returns the rank in `other` of the process that has rank `rank` in this group, or `None` if `other`
    /// does not contain the process.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if this group has no rank `rank`.
    #[doc(alias = "MPI_Group_translate_ranks")]
    pub fn translate(&self, rank: usize, other: &Self) -> Result<Option<usize>> {
        let world = self.world_rank(rank).ok_or_else(|| self.no_rank(rank))?;
        Ok(other.rank_of(world))
    }

    fn no_rank(&self, rank: impl fmt::Display) -> Error {
        let detail = match self.size() {
            0 => format!("{rank} is not a rank of the group, which is empty"),
            size => format!("{rank} is not a rank of the group, whose size is {size}"),
        };
        Error::new(ErrorKind::Rank, "ranks", detail)
    }

    /// Returns true if every member is also a member of `other`.
    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.members.processes.iter().all(|process| other.rank_of(process.index()).is_some())
    }

    /// Returns the relation of the two groups. The result is never `Congruent`.
    #[doc(alias = "MPI_Group_compare")]
    pub fn compare(&self, other: &Self) -> Comparison {
        if self == other {
            Comparison::Identical
        } else if self.size() == other.size() && self.is_subset_of(other) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        }
    }

    /// Returns the members for which `keep` is true, in the order of the group. `keep` gets the world rank of a member.
    fn filter(&self, keep: impl Fn(usize) -> bool) -> Vec<Process> {
        self.members.processes.iter().copied().filter(|process| keep(process.index())).collect()
    }

    /// Returns the members of this group, followed by the members of `other` that this group does not have.
    #[doc(alias = "MPI_Group_union")]
    pub fn union(&self, other: &Self) -> Self {
        let mut processes = self.members.processes.clone();
        processes.extend(other.filter(|rank| self.rank_of(rank).is_none()));
        Self::of(processes)
    }

    /// Returns the common members of both groups, in this group's order.
    #[doc(alias = "MPI_Group_intersection")]
    pub fn intersection(&self, other: &Self) -> Self {
        Self::of(self.filter(|rank| other.rank_of(rank).is_some()))
    }

    /// Returns the members of this group that are not in `other`.
    #[doc(alias = "MPI_Group_difference")]
    pub fn difference(&self, other: &Self) -> Self {
        Self::of(self.filter(|rank| other.rank_of(rank).is_none()))
    }

    /// Returns the processes of the given ranks of this group. Returns an error if this group does not
    /// have one of the ranks, or if a rank appears twice.
    fn listed(&self, ranks: impl Iterator<Item = i64>) -> Result<Vec<Process>> {
        let mut seen = vec![false; self.size()];
        let mut listed = Vec::new();
        for rank in ranks {
            let place = usize::try_from(rank).ok().filter(|&place| place < self.size());
            let place = place.ok_or_else(|| self.no_rank(rank))?;
            if std::mem::replace(&mut seen[place], true) {
                let detail = format!("rank {rank} appears twice; each rank may appear only once");
                return Err(Error::new(ErrorKind::Rank, "ranks", detail));
            }
            listed.push(self.members.processes[place]);
        }
        Ok(listed)
    }

    /// Returns the group that consists of the given ranks of this group, in the given order.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if this group does not have one of the ranks, or if a rank appears twice.
    #[doc(alias = "MPI_Group_incl")]
    pub fn include(&self, ranks: impl IntoIterator<Item = i64>) -> Result<Self> {
        Ok(Self::of(self.listed(ranks.into_iter())?))
    }

    /// Returns this group without the given ranks.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if this group does not have one of the ranks, or if a rank appears twice.
    #[doc(alias = "MPI_Group_excl")]
    pub fn exclude(&self, ranks: impl IntoIterator<Item = i64>) -> Result<Self> {
        let without = Self::of(self.listed(ranks.into_iter())?);
        Ok(self.difference(&without))
    }

    /// Returns the group that consists of the ranks in the given ranges, like [`include`](Self::include).
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if this group does not have one of the ranks or if a rank appears twice, and
    /// `ErrorKind::Argument` if a stride is 0.
    #[doc(alias = "MPI_Group_range_incl")]
    pub fn include_ranges(&self, ranges: &[RankRange]) -> Result<Self> {
        self.include(self.ranks_of(ranges)?)
    }

    /// Returns this group without the ranks in the given ranges, like [`exclude`](Self::exclude).
    ///
    /// # Errors
    /// Returns the errors of [`include_ranges`](Self::include_ranges).
    #[doc(alias = "MPI_Group_range_excl")]
    pub fn exclude_ranges(&self, ranges: &[RankRange]) -> Result<Self> {
        self.exclude(self.ranks_of(ranges)?)
    }

    /// Lists the ranks in `ranges`. A range may have billions of ranks, so the function returns an error at
    /// the first rank that is not in the group.
    fn ranks_of(&self, ranges: &[RankRange]) -> Result<Vec<i64>> {
        let mut ranks = Vec::new();
        for &RankRange { first, last, stride } in ranges {
            if stride == 0 {
                let detail =
                    format!("range ({first}, {last}, 0) has stride 0; a stride must not be 0");
                return Err(Error::new(ErrorKind::Argument, "ranges", detail));
            }
            let mut next = Some(first);
            while let Some(rank) = next.filter(|&n| if stride > 0 { n <= last } else { n >= last })
            {
                if !(0..self.size() as i64).contains(&rank) {
                    return Err(self.no_rank(rank));
                }
                ranks.push(rank);
                next = rank.checked_add(stride);
            }
        }
        Ok(ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(ranks: &[i64]) -> Group {
        Group::of_slots(0..10).include(ranks.iter().copied()).expect("ranks")
    }

    #[test]
    fn sets_keep_the_order_of_the_first() {
        let (a, b) = (group(&[3, 1, 4, 5]), group(&[9, 4, 3]));
        assert_eq!(a.union(&b), group(&[3, 1, 4, 5, 9]));
        assert_eq!(a.intersection(&b), group(&[3, 4]));
        assert_eq!(a.difference(&b), group(&[1, 5]));
        assert_eq!(a.intersection(&group(&[0])), Group::empty());
        assert_eq!(a.compare(&group(&[3, 1, 4, 5])), Comparison::Identical);
        assert_eq!(a.compare(&group(&[5, 4, 3, 1])), Comparison::Similar);
        assert_eq!(a.compare(&b), Comparison::Unequal);
        assert_eq!(a.compare(&group(&[3, 1, 4, 6])), Comparison::Unequal);
        assert_eq!(Group::empty().compare(&Group::empty()), Comparison::Identical);
    }

    #[test]
    fn ranks_are_translated_both_ways() {
        let (a, b) = (group(&[3, 1, 4]), group(&[4, 3]));
        assert_eq!((a.world_rank(2), a.world_rank(3)), (Some(4), None));
        assert_eq!((a.rank_of(1), a.rank_of(0), a.rank_of(99)), (Some(1), None, None));
        assert_eq!(a.translate(0, &b).expect("a rank"), Some(1));
        assert_eq!(a.translate(1, &b).expect("a rank"), None);
        assert_eq!(a.translate(3, &b).expect_err("no rank").kind(), ErrorKind::Rank);
    }

    #[test]
    fn lists_and_ranges_choose_ranks() {
        let a = group(&[0, 10 - 1, 2, 3, 4]);
        assert_eq!(a.exclude([1, 0]).expect("ranks"), group(&[2, 3, 4]));
        let range = |first, last, stride| RankRange { first, last, stride };
        let chosen = a.include_ranges(&[range(4, 0, -2), range(1, 1, 7)]).expect("ranges");
        assert_eq!(chosen, group(&[4, 2, 0, 9]));
        let chosen = a.exclude_ranges(&[range(1, 4, 2), range(3, 2, 1)]).expect("ranges");
        assert_eq!(chosen, group(&[0, 2, 4]));
        for (ranks, kind) in [(vec![5], ErrorKind::Rank), (vec![-1], ErrorKind::Rank)] {
            assert_eq!(a.include(ranks).expect_err("ranks").kind(), kind);
        }
        assert_eq!(a.include([1, 1]).expect_err("twice").kind(), ErrorKind::Rank);
        assert_eq!(a.exclude([1, 1]).expect_err("twice").kind(), ErrorKind::Rank);
        let zero = a.include_ranges(&[range(0, 1, 0)]).expect_err("stride 0");
        assert_eq!((zero.kind(), zero.argument()), (ErrorKind::Argument, "ranges"));
        // This range has billions of ranks that are not in the group. The call must return an error at the
        // first of them, so that it spends no time or memory on the others.
        let long = a.include_ranges(&[range(0, i64::MAX, 1)]).expect_err("outside");
        assert_eq!(long.kind(), ErrorKind::Rank);
    }
}
