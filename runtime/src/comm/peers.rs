//! Translates between processes and the ranks that the calls of a communicator use.
//!
//! `mod.rs` uses this file for every destination, source, root and status. `endpoint/`, to which `comm/`
//! passes the calls, knows only processes. The calls of an intracommunicator use the ranks of the
//! communicator's only group. An intercommunicator has two groups: this process is in the local group, and
//! all its destinations and sources are in the remote group. So the calls of an intercommunicator use ranks
//! of the remote group.
//!
//! Invariant: this process has rank `rank` in the local group.

use super::group::Group;
use crate::message::label::Sender;
use crate::message::{Source, Status};
use crate::process::Process;
use crate::{Error, ErrorKind, Result};
use std::ops::Range;

/// The groups of a communicator, and this process's rank.
#[derive(Clone, Debug)]
pub(super) struct Peers {
    local: Group,
    /// This process's rank in the local group.
    rank: usize,
    /// The remote group if this is an intercommunicator, whose calls use ranks of this group; `None` if
    /// this is an intracommunicator.
    remote: Option<Group>,
}

impl Peers {
    /// Returns the peers of the communicator of the ranks of a world, which have the slots `world`. This process has
    /// the slot `own`.
    pub(super) fn world(world: Range<usize>, own: usize) -> Self {
        debug_assert!(world.contains(&own));
        let rank = own - world.start;
        Self { local: Group::of_slots(world), rank, remote: None }
    }

    /// Returns the peers of a communicator that contains only this process, which is rank `world` of the
    /// world.
    pub(super) fn single(world: usize) -> Self {
        Self { local: Group::single(world), rank: 0, remote: None }
    }

    /// Returns the peers of an intracommunicator, or `None` if this process (rank `world` of the world) is
    /// not in the group.
    pub(super) fn within(local: Group, world: usize) -> Option<Self> {
        let rank = local.rank_of(world)?;
        Some(Self { local, rank, remote: None })
    }

    /// Returns the peers of an intercommunicator, or `None` if this process (rank `world` of the world) is
    /// not in `local`. The two groups have no common member.
    pub(super) fn between(local: Group, remote: Group, world: usize) -> Option<Self> {
        Some(Self { remote: Some(remote), ..Self::within(local, world)? })
    }

    /// Returns this process's rank in the local group.
    #[inline]
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the local group.
    #[inline]
    pub(super) fn local(&self) -> &Group {
        &self.local
    }

    /// Returns the remote group, or `None` if this is an intracommunicator.
    #[inline]
    pub(super) fn remote(&self) -> Option<&Group> {
        self.remote.as_ref()
    }

    /// Returns the group whose ranks the calls of the communicator use: the remote group if there is one,
    /// and otherwise the local group.
    #[inline]
    pub(super) fn named(&self) -> &Group {
        self.remote.as_ref().unwrap_or(&self.local)
    }

    /// Returns the world rank of `rank`, the rank that the program passed to a call.
    ///
    /// # Errors
    /// Returns an error of kind `kind` about `argument` if the group that the calls use has no such rank.
    #[inline]
    pub(super) fn world_rank(
        &self,
        rank: usize,
        argument: &'static str,
        kind: ErrorKind,
    ) -> Result<usize> {
        Ok(self.process(rank, argument, kind)?.index())
    }

    /// Returns the process that has the rank `rank`, which the program passed to a call.
    ///
    /// # Errors
    /// Returns an error of kind `kind` about `argument` if the group that the calls use has no such rank.
    #[inline]
    pub(super) fn process(
        &self,
        rank: usize,
        argument: &'static str,
        kind: ErrorKind,
    ) -> Result<Process> {
        match self.named().process(rank) {
            Some(process) => Ok(process),
            None => Err(self.no_rank(rank, argument, kind)),
        }
    }

    /// Translates the source that the program passed to a call into the form that the message engine uses.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if the group that the calls use has no such rank.
    #[inline]
    pub(super) fn sender(&self, source: Source) -> Result<Sender> {
        Ok(match source {
            Source::Any => Sender::Any,
            Source::Rank(rank) => Sender::Process(self.process(rank, "source", ErrorKind::Rank)?),
        })
    }

    /// Translates the source in a status of the message engine into a rank of the communicator.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the source is not in the group that the calls use, unless the status is that of
    /// this process's own operation (see `own_status`).
    #[inline]
    pub(super) fn status(&self, status: Status) -> Result<Status> {
        match self.named().rank_of(status.source) {
            Some(source) => Ok(Status { source, ..status }),
            None => self.own_status(status),
        }
    }

    /// Translates the status of a send or of a collective operation of an intercommunicator. Such a status names this
    /// process as its source, and this process is not in the remote group. The function returns this process's rank in
    /// the local group instead; the program has no use for this source.
    #[cold]
    fn own_status(&self, status: Status) -> Result<Status> {
        if self.remote.is_some() && self.local.rank_of(status.source) == Some(self.rank) {
            return Ok(Status { source: self.rank, ..status });
        }
        Err(stranger(status.source))
    }

    /// Checks that the group whose ranks the calls use has rank `rank`.
    ///
    /// # Errors
    /// Returns an error of kind `kind` about `argument` if the group that the calls use has no such rank.
    pub(super) fn check(&self, rank: usize, argument: &'static str, kind: ErrorKind) -> Result<()> {
        self.world_rank(rank, argument, kind).map(|_| ())
    }

    #[cold]
    fn no_rank(&self, rank: usize, argument: &'static str, kind: ErrorKind) -> Error {
        let group = if self.remote.is_some() { "remote group" } else { "communicator" };
        let size = self.named().size();
        let detail = format!("{rank} is not a rank of the {group}, whose size is {size}");
        Error::new(kind, argument, detail)
    }
}

/// Translates a source from a rank of the world into the form that the message engine uses.
#[inline]
pub(super) fn sender_of(source: Source) -> Sender {
    match source {
        Source::Any => Sender::Any,
        Source::Rank(world) => Sender::Process(Process::new(world)),
    }
}

/// Returns the error for a message that came in a context of this communicator, but from a rank outside
/// its group. Such a message exists only if a faulty program has written to the job's shared memory.
#[cold]
fn stranger(world: usize) -> Error {
    let detail =
        format!("the sender, rank {world} of the world, is not a member of the communicator");
    Error::new(ErrorKind::Other, "message", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the local group and the remote group of an intercommunicator. The local group has the world
    /// ranks 4, 1 and 2, and the remote group has the world ranks 7 and 0.
    fn groups() -> (Group, Group) {
        let world = Group::of_slots(0..8);
        let include =
            |ranks: &[i64]| world.include(ranks.iter().copied()).expect("ranks of the world");
        (include(&[4, 1, 2]), include(&[7, 0]))
    }

    fn status(source: usize) -> Status {
        Status { source, tag: 3, bytes: 8 }
    }

    #[test]
    fn ranks_of_one_group_name_each_other() {
        let (local, _) = groups();
        assert!(Peers::within(local.clone(), 3).is_none());
        let peers = Peers::within(local, 1).expect("a member");
        assert_eq!((peers.rank(), peers.local().size()), (1, 3));
        assert_eq!(peers.world_rank(0, "dest", ErrorKind::Rank), Ok(4));
        assert_eq!(peers.sender(Source::Rank(2)), Ok(Sender::Process(Process::new(2))));
        assert_eq!(peers.sender(Source::Any), Ok(Sender::Any));
        assert_eq!(peers.status(status(4)).expect("a member").source, 0);
        let error = peers.world_rank(3, "root", ErrorKind::Root).expect_err("no rank");
        assert_eq!(error.kind(), ErrorKind::Root);
        let text = "root: 3 is not a rank of the communicator, whose size is 3";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn ranks_of_two_groups_name_those_of_the_other() {
        let (local, remote) = groups();
        assert!(Peers::between(local.clone(), remote.clone(), 7).is_none());
        let here = Peers::between(local.clone(), remote.clone(), 2).expect("a member");
        let there = Peers::between(remote, local, 0).expect("a member");
        // `rank()` returns a rank of the local group, but the calls use ranks of the remote group.
        assert_eq!((here.rank(), here.local().size(), there.rank()), (2, 3, 1));
        assert_eq!(here.world_rank(0, "dest", ErrorKind::Rank), Ok(7));
        assert_eq!(there.world_rank(0, "dest", ErrorKind::Rank), Ok(4));
        assert_eq!(there.world_rank(2, "dest", ErrorKind::Rank), Ok(2));
        assert_eq!(here.sender(Source::Rank(1)), Ok(Sender::Process(Process::new(0))));
        // Rank 2 of the local group sends a message to rank 1 of the remote group. That rank must see
        // source 2.
        assert_eq!(here.world_rank(1, "dest", ErrorKind::Rank), Ok(0));
        assert_eq!(there.status(status(2)).expect("a peer").source, 2);
        // A message from a member of this rank's own group must be an error.
        assert_eq!(here.status(status(4)).expect_err("a stranger").kind(), ErrorKind::Other);
        // The status of a send names its sender, this rank.
        assert_eq!(here.status(status(2)).expect("its own").source, 2);
        assert!(here.check(1, "dest", ErrorKind::Rank).is_ok());
        let error = here.check(2, "dest", ErrorKind::Rank).expect_err("no rank");
        let text = "dest: 2 is not a rank of the remote group, whose size is 2";
        assert_eq!(error.to_string(), text);
    }
}
