//! The choice between the ways of one blocking call: which calls compete, and how a rank learns the way of its call.
//!
//! `turn.rs` asks for the way before a call. `choices.rs` has the decisions, which are the same on all ranks.

use super::Cells;
use super::block::SHORT;
use super::choices::{By, Competition, Key};
use super::heads::BY_MESSAGES;
use super::moves::longest;
use super::turn::{LONGEST, Turn};
use crate::coll::Collective;
use crate::coll::collective::check_parts;
use crate::coll::schedule::reduce::missing;
use crate::endpoint::sources::Combine;
use crate::settings::CollectiveName;
use crate::shm::cells::{call_of, last_step, step};
use crate::sys::clock;
use crate::{Plan, Result};
use typepack_engine::Elements;

impl Turn<'_> {
    /// Returns the key of the call if several ways compete for it.
    #[inline]
    pub(super) fn competition(&self, call: &Collective<'_>) -> Result<Option<Competition>> {
        let elements = |plan: &Plan, count| match plan.element_bytes() {
            0..=SHORT => plan.packed_bytes(count),
            _ => Ok(0),
        };
        let by = |combine: &Combine| match combine {
            Combine::Native(_) => By::Library,
            Combine::User(_) => By::User,
        };
        let (name, by, bytes) = match *call {
            Collective::Broadcast { ref part, .. } => {
                (CollectiveName::Bcast, By::Library, part.bytes()?)
            }
            Collective::Reduce { plan, count, combine, .. } => {
                (CollectiveName::Reduce, by(combine), elements(plan, count)?)
            }
            Collective::Allreduce { plan, count, combine, .. } => {
                (CollectiveName::Allreduce, by(combine), elements(plan, count)?)
            }
            Collective::Scan { plan, count, combine, .. } => {
                (CollectiveName::Scan, by(combine), elements(plan, count)?)
            }
            Collective::Exscan { plan, count, combine, .. } => {
                (CollectiveName::Exscan, by(combine), elements(plan, count)?)
            }
            Collective::Allgather { parts, .. } => {
                (CollectiveName::Allgather, By::Library, longest(parts)?)
            }
            Collective::AlltoallEqual { receive, .. } => {
                let bytes = receive.first().map_or(Ok(0), Elements::bytes)?;
                (CollectiveName::Alltoall, By::Library, bytes)
            }
            _ => return Ok(None),
        };
        let Some(key) = Key::new((name, by), bytes, self.size) else { return Ok(None) };
        let competes = bytes <= LONGEST / self.size as u64 && self.cells.choices.compete(name);
        let call = call_of(self.first);
        Ok(competes.then_some(Competition { key, call, bytes }))
    }

    /// Chooses the way of the call. Returns the time of the clock if the call is timed.
    #[cold]
    pub(super) fn choose(&mut self, competition: &Competition) -> Result<Option<f64>> {
        let awaited = self.cells.choices.awaited(competition.call);
        if awaited > 0 {
            let needed = last_step(step(awaited, 0));
            let Cells { seat, block, .. } = &mut *self.cells;
            if !seat.have_ended(block, needed) {
                self.wait_for_room(self.number, needed)?;
            }
        }
        let Cells { seat, block, choices, .. } = &mut *self.cells;
        let have_ended = |call| seat.have_ended(block, last_step(step(call, 0)));
        let choice = choices.choose(block, competition, have_ended);
        self.way = Some(choice.way);
        Ok(choice.is_timed.then(clock::monotonic))
    }

    /// Waits for all ranks before a call by messages that could also go through cells. If other ranks fail before the
    /// call or pass other lengths, by mistake, this rank gets an error here. Otherwise it would wait for their messages
    /// for ever.
    #[cold]
    pub(super) fn agree_on_messages(&mut self, call: &Collective<'_>) -> Result<()> {
        self.check_arguments(call)?;
        // Ranks with different lengths of the same size class agree on messages, too, but not on the messages.
        let head = BY_MESSAGES | self.competition(call)?.map_or(0, |competition| competition.bytes);
        self.quick = false;
        self.room(0, 0)?;
        self.publish(0, head, &[]);
        self.meet()?;
        self.check_all(self.size, head)
    }

    /// Checks those arguments of a call with a key that the schedule checks. After the agreement, no rank may fail
    /// because of its arguments.
    fn check_arguments(&self, call: &Collective<'_>) -> Result<()> {
        match *call {
            Collective::Broadcast { root, .. } => self.comm.root(root).map(drop),
            Collective::Reduce { send, root, .. } => match self.comm.root(root)? {
                root if send.is_none() && root != self.rank => Err(missing(self.rank, root)),
                _ => Ok(()),
            },
            Collective::Allgather { parts, .. } => check_parts(self.comm, parts),
            Collective::AlltoallEqual { send, receive } => {
                send.map_or(Ok(()), |send| check_parts(self.comm, send))?;
                check_parts(self.comm, receive)
            }
            _ => Ok(()),
        }
    }
}
