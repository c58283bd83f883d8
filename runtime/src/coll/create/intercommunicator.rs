//! Makes intercommunicators, merges them, and makes communicators from groups without a parent communicator (MPI-5.0
//! sections 7.6 and 11.3).
//!
//! An intercommunicator connects two groups. Each leader takes a new communicator number from its counter
//! (`create.rs`). The leaders tell each other the members of their groups and these numbers, and each leader tells its
//! group. All ranks of both groups then know both numbers. The smaller one becomes the number of the intercommunicator,
//! and the larger one that of the communicators of the two local groups.
//!
//! Ranks that have only a group and a string in common meet in a communicator whose number is a hash of the
//! group and the string. They use it for one broadcast, which gives them a number of the usual kind.

use super::{NO_COLOR, UNKNOWN, of_color};
use crate::comm::{Communicator, Group, check_tag};
use crate::commit::bytes;
use crate::endpoint::progress::Endpoint;
use crate::error::check_memory;
use crate::process::Process;
use crate::schedule::calls;
use crate::schedule::program::Builder;
use crate::schedule::table::Place;
use crate::{Error, ErrorKind, Plan, Result};
use std::sync::Arc;
use typepack_engine::Elements;

/// What a leader tells the ranks of its group: how many members the remote group has, and the numbers that the two
/// leaders have taken.
#[derive(Clone, Copy)]
struct Advertised {
    members: u64,
    numbers: [u64; 2],
}

impl Communicator {
    /// Makes an intercommunicator of the ranks of this communicator and those of another communicator, which has
    /// no rank in common with this one. Collective over both.
    ///
    /// `leader` is a rank of this communicator. The leader passes as `other` a communicator that contains both leaders,
    /// and the rank of the other leader in that communicator. All other ranks pass `None`. Both leaders pass the same
    /// `tag`. Threads that make such calls at the same time must pass different tags.
    ///
    /// # Errors
    /// - [`ErrorKind::Comm`] if this is an intercommunicator, or if the two groups have a common member.
    /// - [`ErrorKind::Rank`] if `leader` or the rank of the other leader is not a rank of its communicator, or if both
    ///   leaders are the same process.
    /// - [`ErrorKind::Tag`] if this rank and the leader of its group both pass a negative `tag`.
    /// - [`ErrorKind::Argument`] if this rank is the leader and passes no other leader.
    /// - [`ErrorKind::Other`] if another rank of one of the two groups found an error in its arguments.
    /// - [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Intercomm_create")]
    pub fn intercommunicator(
        &self,
        leader: usize,
        other: Option<(&Self, usize)>,
        tag: i32,
    ) -> Result<Self> {
        self.connect(leader, other, tag, true)
    }

    /// Takes part in [`intercommunicator`](Self::intercommunicator) as a rank that has found an error in its other
    /// arguments. All other ranks of both groups get an error, and this call returns an error too.
    #[doc(hidden)]
    pub fn fail_intercommunicator(
        &self,
        leader: usize,
        other: Option<(&Self, usize)>,
        tag: i32,
    ) -> Result<Self> {
        self.connect(leader, other, tag, false)
    }

    /// Makes an intercommunicator. If `able` is false, this rank has found an error, and no rank makes an
    /// intercommunicator.
    fn connect(
        &self,
        leader: usize,
        other: Option<(&Self, usize)>,
        tag: i32,
        able: bool,
    ) -> Result<Self> {
        self.check_intra("local_comm")
            .and_then(|()| self.check_rank(leader, "local_leader", ErrorKind::Rank))
            .inspect_err(|_| self.fail_creation())?;
        let mut head = [0, UNKNOWN, UNKNOWN];
        let mut found = Ok(Vec::new());
        let agreed = match able {
            true => self.agreed_number(),
            false => {
                self.fail_creation();
                Err(Error::new(
                    ErrorKind::Other,
                    "local_comm",
                    "this rank has found an error in its own arguments",
                ))
            }
        };
        if self.rank() == leader {
            // If a rank of this group cannot take part, the leader tells the other leader so.
            let size = if agreed.is_ok() { self.size() } else { 0 };
            found = self.ask_leader(other, tag, size).map(|(told, members)| {
                head = [told.members, told.numbers[0], told.numbers[1]];
                members
            });
        }
        agreed?;
        self.broadcast_elements(&mut head, bytes()?, size_of::<[u64; 3]>() as u64, leader)?;
        let [size, first, second] = head;
        let mut members = found?;
        if size == 0 {
            check_tag(tag)?;
            let detail = format!("the leader, rank {leader}, could not reach the remote leader");
            return Err(Error::new(ErrorKind::Other, "remote_leader", detail));
        }
        members.resize(size as usize, 0);
        let length = size_of_val(members.as_slice()) as u64;
        self.broadcast_elements(&mut members, bytes()?, length, leader)?;
        let remote = self.group_of(&members)?;
        if let Some(&rank) =
            members.iter().find(|&&rank| self.group().rank_of(rank as usize).is_some())
        {
            let who = Process::new(rank as usize);
            let detail = format!("{who} is in both groups; the groups must have no common member");
            return Err(Error::new(ErrorKind::Comm, "local_comm", detail));
        }
        let made = self.derive_between([first, second], self.group().clone(), remote)?;
        made.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "local_comm", "this rank is not in its own group")
        })
    }

    /// Exchanges the members of the groups and the numbers with the other leader. If `size` is 0, this rank's group
    /// makes no intercommunicator, and both leaders get an error.
    fn ask_leader(
        &self,
        other: Option<(&Self, usize)>,
        tag: i32,
        size: usize,
    ) -> Result<(Advertised, Vec<u32>)> {
        let (bridge, leader) = other.ok_or_else(|| {
            let detail = "the leader of the local group passed no remote leader";
            Error::new(ErrorKind::Argument, "remote_leader", detail)
        })?;
        check_tag(tag)?;
        bridge.check_rank(leader, "remote_leader", ErrorKind::Rank)?;
        let own = self.endpoint().rank();
        if bridge.world_rank(leader, "remote_leader", ErrorKind::Rank)? == own {
            let detail = format!("{leader} is this process; the leaders must be two processes");
            return Err(Error::new(ErrorKind::Rank, "remote_leader", detail));
        }
        let place = bridge.leaders_place(tag);
        let mine = [size as u64, self.endpoint().new_context()];
        let mut theirs = [0, 0];
        bridge.trade(place, leader, &mine, &mut theirs)?;
        if mine[0] == 0 || theirs[0] == 0 {
            return Err(strange(
                "cannot be reached, because a rank of one of the two groups had an error",
            ));
        }
        let size =
            usize::try_from(theirs[0]).ok().filter(|size| *size <= self.endpoint().processes());
        let size = size.ok_or_else(|| strange("has no valid size"))?;
        let group = self.group();
        let ours: Vec<u32> =
            (0..group.size()).filter_map(|rank| Some(group.world_rank(rank)? as u32)).collect();
        let mut members = vec![0u32; size];
        bridge.trade(place, leader, &ours, &mut members)?;
        Ok((Advertised { members: theirs[0], numbers: [mine[1], theirs[1]] }, members))
    }

    /// Sends `mine` to rank `to`, and receives `theirs` from the same rank.
    fn trade<T: bytemuck::Pod>(
        &self,
        place: Place,
        to: usize,
        mine: &[T],
        theirs: &mut [T],
    ) -> Result<()> {
        let byte = bytes()?;
        let part = |origin: *mut u8, len: usize| Elements { origin, plan: byte, count: len as u64 };
        let mine = part(mine.as_ptr().cast::<u8>().cast_mut(), size_of_val(mine));
        let theirs = part(theirs.as_mut_ptr().cast(), size_of_val(theirs));
        let build = |steps: &mut Builder<'_, '_>| -> Result<()> {
            steps.send(&mine, self.peer(to)?)?;
            steps.receive(&theirs, self.peer(to)?)?;
            Ok(())
        };
        // SAFETY: the parts describe the two slices, which this function borrows until the call returns. The
        // steps only read the first one.
        unsafe { calls::run(self.endpoint(), ("", self.size()), place, build) }
    }

    /// Returns the group of these ranks of the world, which another rank has sent.
    fn group_of(&self, ranks: &[u32]) -> Result<Group> {
        let all = Group::of_slots(0..self.endpoint().processes());
        let group = all.include(ranks.iter().map(|&rank| rank.into()));
        group.map_err(|_| strange("has members that are not ranks of the world, or has one twice"))
    }

    /// Returns the intercommunicator between the two groups. `numbers` are the numbers that the two leaders have taken.
    pub(crate) fn derive_between(
        &self,
        numbers: [u64; 2],
        local: Group,
        remote: Group,
    ) -> Result<Option<Self>> {
        let [first, second] = numbers;
        let local = self.derive(first.max(second), local)?;
        Ok(local.and_then(|local| Self::between(first.min(second), local, remote)))
    }

    /// Makes a communicator of the ranks of both groups of this intercommunicator. The ranks of the group that
    /// passes `false` as `high` come first. If both groups pass the same value, the library chooses the order.
    /// Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Comm`] if this is an intracommunicator, [`ErrorKind::Argument`] if ranks of one group
    /// pass different values, and [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Intercomm_merge")]
    pub fn merge(&self, high: bool) -> Result<Self> {
        self.local_side("intercomm").inspect_err(|_| self.fail_creation())?;
        let (ours, theirs) =
            self.exchange_words(&[high.into(), 0, self.endpoint().new_context()])?;
        if [&ours, &theirs].iter().any(|group| group.iter().any(|words| words[0] != group[0][0])) {
            let detail = "the ranks of one group passed different values; they must pass the same";
            return Err(Error::new(ErrorKind::Argument, "high", detail));
        }
        let (mine, other) = (ours[0], theirs[0]);
        let remote = self.remote_group().cloned().unwrap_or_else(Group::empty);
        let group = if (mine[0], mine[2]) < (other[0], other[2]) {
            self.group().union(&remote)
        } else {
            remote.union(self.group())
        };
        let merged = self.derive(mine[2].min(other[2]), group)?;
        merged.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "intercomm", "this rank is not in the merged group")
        })
    }

    /// Splits an intercommunicator; see [`Communicator::split`].
    pub(in crate::coll) fn split_between(
        &self,
        color: Option<u32>,
        key: i64,
    ) -> Result<Option<Self>> {
        let mine = [color.map_or(NO_COLOR, u64::from), key as u64, self.endpoint().new_context()];
        let (ours, theirs) = self.exchange_words(&mine)?;
        let Some(color) = color else { return Ok(None) };
        let (here, there) = (of_color(&ours, color), of_color(&theirs, color));
        let (Some(&leader), Some(&other), Some(remote)) =
            (here.first(), there.first(), self.remote_group())
        else {
            return Ok(None);
        };
        let local = self.group().include(here.iter().map(|&rank| rank as i64))?;
        let remote = remote.include(there.iter().map(|&rank| rank as i64))?;
        self.derive_between([ours[leader][2], theirs[other][2]], local, remote)
    }

    /// Makes an intercommunicator of a part of each group; see [`Communicator::create`]. All members of `group` belong
    /// to the local group.
    pub(in crate::coll) fn create_between(&self, group: &Group) -> Result<Option<Self>> {
        let place = group.rank_of(self.endpoint().rank());
        self.split_between(place.map(|_| 0), place.unwrap_or_default() as i64)
    }

    /// Returns the numbers that the leaders pass as `mine`: first that of this rank's group, then that of the other
    /// group. Other ranks may pass any number. In an intracommunicator, only the first one has a meaning.
    pub(in crate::coll) fn exchange_numbers(&self, mine: u64) -> Result<[u64; 2]> {
        let mut numbers = [mine, UNKNOWN];
        let part = Elements { origin: numbers.as_mut_ptr().cast(), plan: bytes()?, count: 16 };
        let place = self.next_place();
        // SAFETY: `part` describes the 16 bytes of the local variable `numbers`. No other code accesses
        // `numbers` before the call returns.
        unsafe {
            calls::run(self.endpoint(), ("", self.size()), place, |steps| {
                self.numbers_steps(steps, &part)
            })?
        };
        Ok(numbers)
    }

    /// Adds the steps by which all ranks learn the numbers of a new communicator. `both` has two words of eight bytes.
    /// In an intracommunicator, the first word of rank 0 goes to all ranks. In an intercommunicator, the leaders
    /// exchange their first words, and each group gets both words: first that of its own leader, then that of the other
    /// leader.
    pub(in crate::coll) fn numbers_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        both: &Elements<&'a Plan>,
    ) -> Result<()> {
        if !self.is_inter() {
            return self.broadcast_steps(steps, both, 0, &[]);
        }
        let word =
            |at: usize| Elements { origin: both.origin.wrapping_add(8 * at), count: 8, ..*both };
        let met = self.leaders_steps(steps, &word(0), &word(1), &[])?;
        self.local_side("comm")?.broadcast_steps(steps, both, 0, &met)
    }

    /// Makes a communicator of the ranks of a group. The ranks need no communicator in common. All of them pass the
    /// same group and the same `name`. Returns `None` if the group is empty.
    pub(crate) fn of_group(
        endpoint: &Arc<Endpoint>,
        group: &Group,
        name: &[u8],
    ) -> Result<Option<Self>> {
        let made = Self::of_members(endpoint, group, name)?;
        check_memory()?;
        Ok(made)
    }

    /// Makes an intercommunicator of the ranks of this communicator and those of another one, with which they have no
    /// communicator in common. Collective over both. `leader` is a rank of this communicator. The leader passes the slot
    /// of the other leader, and all other ranks pass `None`. Both leaders pass the same `name`.
    pub(crate) fn with_leader(
        &self,
        leader: usize,
        other: Option<usize>,
        name: &[u8],
    ) -> Result<Self> {
        let bridge = other.map(|other| Self::bridge(self.endpoint(), other, name));
        let (bridge, able) = match bridge {
            None => (None, Ok(())),
            Some(Ok(bridge)) => (Some(bridge), Ok(())),
            Some(Err(error)) => (None, Err(error)),
        };
        let other = bridge.as_ref().map(|(bridge, rank)| (bridge, *rank));
        let made = self.connect(leader, other, 0, true);
        able.and(made)
    }

    /// Returns a communicator of this process and the process in the slot `other`, and the rank of the latter in it.
    fn bridge(endpoint: &Arc<Endpoint>, other: usize, name: &[u8]) -> Result<(Self, usize)> {
        let mut both = [endpoint.rank() as i64, other as i64];
        both.sort_unstable();
        let pair = Group::of_slots(0..endpoint.processes()).include(both)?;
        let number = meeting(&pair, &[b"leaders:", name].concat());
        let bridge = Self::new(endpoint.clone(), number, pair.clone());
        bridge.zip(pair.rank_of(other)).ok_or_else(|| strange("has no leader"))
    }

    /// Like [`of_group`](Self::of_group), also if memory is short.
    fn of_members(endpoint: &Arc<Endpoint>, group: &Group, name: &[u8]) -> Result<Option<Self>> {
        if group.is_empty() {
            return Ok(None);
        }
        let meeting = Self::new(endpoint.clone(), meeting(group, name), group.clone());
        let meeting = meeting.ok_or_else(|| {
            let detail = "this process is not a member; only members may make the call";
            Error::new(ErrorKind::Group, "group", detail)
        })?;
        let mut number = [endpoint.new_context()];
        meeting.broadcast(&mut number, 0)?;
        Ok(Self::new(endpoint.clone(), number[0], group.clone()))
    }

    /// Makes an intercommunicator of two groups. Their ranks need no communicator in common. All ranks of both groups
    /// pass the same `name`. The leader, a rank of `local`, also passes the remote group and the rank of the remote
    /// leader in it. If `able` is false, this rank has found an error in its other arguments, and all ranks get an
    /// error.
    pub(crate) fn of_groups(
        endpoint: &Arc<Endpoint>,
        local: &Group,
        leader: usize,
        other: Result<(&Group, usize)>,
        name: &[u8],
        able: bool,
    ) -> Result<Self> {
        let able = able && check_memory().is_ok();
        let own =
            Self::of_members(endpoint, local, &[b"local:", name].concat())?.ok_or_else(|| {
                Error::new(ErrorKind::Group, "local_group", "the group is empty; it needs a member")
            })?;
        if own.rank() != leader {
            return own.connect(leader, None, 0, able);
        }
        let bridge = other.and_then(|(remote, rank)| {
            let other = remote.world_rank(rank).ok_or_else(|| {
                let size = remote.size();
                let detail =
                    format!("{rank} is not a rank of the remote group, whose size is {size}");
                Error::new(ErrorKind::Rank, "remote_leader", detail)
            })?;
            Self::bridge(endpoint, other, name)
        });
        let other = bridge.as_ref().ok().map(|(bridge, rank)| (bridge, *rank));
        let made = own.connect(leader, other, 0, able);
        bridge.and(made)
    }
}

/// Returns the number of the communicator in which the members of a group meet: a hash of the group and of a
/// name. The counters of `Endpoint::new_context` never reach these numbers, because bit 47 is set.
fn meeting(group: &Group, name: &[u8]) -> u64 {
    const BITS: u64 = (1 << 60) - 1;
    // The hash is FNV-1a with 128 bits, which all ranks compute alike.
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    let mut add = |byte: u8| {
        hash ^= u128::from(byte);
        hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    };
    for rank in (0..group.size()).filter_map(|rank| group.world_rank(rank)) {
        (rank as u32).to_le_bytes().into_iter().for_each(&mut add);
    }
    name.iter().copied().for_each(&mut add);
    ((hash ^ (hash >> 64)) as u64 & BITS) | 1 << 47
}

#[cold]
fn strange(what: &str) -> Error {
    Error::new(ErrorKind::Other, "remote_leader", format!("the remote group {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_names_meet_at_numbers_of_their_own() {
        let group =
            |ranks: &[i64]| Group::of_slots(0..8).include(ranks.iter().copied()).expect("ranks");
        let (ab, ba) = (group(&[1, 2]), group(&[2, 1]));
        let numbers =
            [meeting(&ab, b"x"), meeting(&ba, b"x"), meeting(&ab, b"y"), meeting(&ab, b"")];
        for (place, number) in numbers.iter().enumerate() {
            assert!(!numbers[..place].contains(number));
            assert_eq!(number >> 60, 0);
            assert_ne!(number & (1 << 47), 0);
        }
        assert_eq!(meeting(&ab, b"x"), meeting(&group(&[1, 2]), b"x"));
    }
}
