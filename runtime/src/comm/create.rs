//! Communicators made of communicators (MPI-5.0 section 6.4.2): duplicates, parts, groups.
//!
//! What a new communicator needs is a number that no other one has, known to all its ranks: its
//! contexts in the message exchange. The rank that leads the new communicator (its rank 0) takes
//! the number from a counter of its own (`Endpoint::new_context`), which makes it unique however
//! many threads of however many ranks make communicators meanwhile, and sends it to the others in a
//! message space of the old communicator that nothing else uses at that moment.

use super::{Communicator, Comparison, Group, Space};
use crate::coll::CREATE;
use crate::coll::raw::Part;
use crate::commit::bytes;
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

impl Communicator {
    fn derive(&self, number: u64, group: Group) -> Option<Self> {
        Self::new(self.endpoint().clone(), number, group)
    }

    /// The same ranks with message spaces of their own. Collective.
    ///
    /// # Errors
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Comm_dup")]
    pub fn dup(&self) -> Result<Self> {
        let mut number = [self.endpoint().new_context()];
        self.broadcast_slice(&mut number, 0)?;
        let dup = self.derive(number[0], self.group().clone());
        dup.ok_or_else(|| Error::new(ErrorKind::Internal, "comm", "has lost its own rank"))
    }

    /// The ranks that give the same color, ordered by key and then by their rank here; none for
    /// ranks without a color. Collective.
    ///
    /// # Errors
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Comm_split")]
    pub fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Self>> {
        // Every rank offers a number; that of the one who turns out to lead is taken.
        let mine = [
            color.map_or(u64::MAX, u64::from),
            i64::from(key) as u64,
            self.endpoint().new_context(),
        ];
        let all = self.gather_words(&mine)?;
        let Some(color) = color else { return Ok(None) };
        let mut members: Vec<(i64, usize)> = all
            .iter()
            .enumerate()
            .filter(|(_, words)| words[0] == u64::from(color))
            .map(|(rank, words)| (words[1] as i64, rank))
            .collect();
        members.sort_unstable();
        let group = self.group().include(members.iter().map(|&(_, rank)| rank as i64))?;
        let leader = members.first().map_or(self.rank(), |&(_, rank)| rank);
        Ok(self.derive(all[leader][2], group))
    }

    /// The ranks that share memory, that is all of them, ordered as [`split`](Self::split) does;
    /// none for those who do not take part. Collective.
    ///
    /// # Errors
    /// As [`split`](Self::split).
    #[doc(alias = "MPI_Comm_split_type")]
    #[doc(alias = "MPI_COMM_TYPE_SHARED")]
    pub fn split_shared(&self, take_part: bool, key: i32) -> Result<Option<Self>> {
        self.split(take_part.then_some(0), key)
    }

    /// A communicator of `group`'s ranks in its order; none for ranks outside it. Ranks may give
    /// different groups if these have no member in common. Collective.
    ///
    /// # Errors
    /// [`ErrorKind::Group`] for members that this communicator does not have;
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Comm_create")]
    pub fn create(&self, group: &Group) -> Result<Option<Self>> {
        self.among(group, Space::Collective, CREATE)
    }

    /// [`create`](Self::create), collective over `group` only. Threads that do this at the same
    /// time give different tags.
    ///
    /// # Errors
    /// As [`create`](Self::create); a negative tag.
    #[doc(alias = "MPI_Comm_create_group")]
    pub fn create_group(&self, group: &Group, tag: i32) -> Result<Option<Self>> {
        super::check_tag(tag)?;
        self.among(group, Space::Part, tag)
    }

    fn among(&self, group: &Group, space: Space, tag: i32) -> Result<Option<Self>> {
        if !group.is_subset_of(self.group()) {
            let detail = "has members that the communicator does not have";
            return Err(Error::new(ErrorKind::Group, "group", detail));
        }
        let members = (0..group.size()).map(|rank| group.translate(rank, self.group()));
        let members: Vec<usize> = members.collect::<Result<Option<Vec<_>>>>()?.unwrap_or_default();
        let byte = bytes()?;
        let mut number = [0u64];
        if members.first() == Some(&self.rank()) {
            number = [self.endpoint().new_context()];
            self.scope_in(space, |scope| -> Result<()> {
                for &rank in &members[1..] {
                    scope.isend(&number, byte, 8, rank, tag)?;
                }
                Ok(())
            })??;
        } else if members.contains(&self.rank()) {
            let leader = members[0];
            self.scope_in(space, |scope| {
                scope.wait(scope.irecv(&mut number, byte, 8, leader, tag)?)
            })??;
        }
        Ok(self.derive(number[0], group.clone()))
    }

    /// Whether two communicators are the same, or how their groups relate.
    #[doc(alias = "MPI_Comm_compare")]
    pub fn compare(&self, other: &Self) -> Comparison {
        if Arc::ptr_eq(&self.shared, &other.shared) {
            return Comparison::Identical;
        }
        match self.group().compare(other.group()) {
            Comparison::Identical => Comparison::Congruent,
            other => other,
        }
    }

    /// The three words of every rank.
    fn gather_words(&self, mine: &[u64; 3]) -> Result<Vec<[u64; 3]>> {
        let mut all = vec![[0u64; 3]; self.size()];
        let part = |words: *mut [u64; 3]| -> Result<Part<'static>> {
            Ok(Part { origin: words.cast(), plan: bytes()?, count: 24 })
        };
        let parts: Vec<Part<'_>> = if self.rank() == 0 {
            all.iter_mut().map(|words| part(words)).collect::<Result<_>>()?
        } else {
            Vec::new()
        };
        // SAFETY: `mine` is only read; the parts are the elements of the vector, which is not
        // touched before the call returns.
        unsafe { self.gather_raw(Some(part((&raw const *mine).cast_mut())?), &parts, 0)? };
        self.broadcast_slice(&mut all, 0)?;
        Ok(all)
    }
}
