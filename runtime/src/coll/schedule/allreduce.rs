//! Allreduce by recursive doubling. All ranks get the same bits. (Long vectors go in blocks; see
//! `reduce_scatter.rs`.)
//!
//! If the number of ranks is not a power of two, some of the ranks first send their values to a neighbour,
//! take no part in the rounds, and get the result from this neighbour at the end. The number of the other
//! ranks is a power of two. Before every round, the ranks form groups of consecutive ranks, and all ranks of
//! a group hold the same value: the reduction of the group's values. In the round, the ranks of two
//! neighbouring groups exchange their values, and every rank of both groups computes `lower op upper`, where
//! `lower` is the value of the group with the lower ranks. So all ranks of the joined group again hold the
//! same bits, even for floating-point values.

use crate::coll::values::greatest;
use crate::comm::{Communicator, Operation};
use crate::endpoint::sources::{Combine, Core};
use crate::schedule::program::{Builder, StepId};
use crate::schedule::table::{Place, Schedules};
use crate::{Plan, Result};
use typepack_engine::Elements;

impl Communicator {
    /// Starts to replace the integer at `word` by the greatest of the integers of all ranks. The calling
    /// thread holds the endpoint's lock. `place` has the context and the tag of this call, which the rank
    /// took earlier.
    ///
    /// # Safety
    ///
    /// - Until the operation is complete or detached, the integer at `word` is readable and writable, and
    ///   nobody else accesses it.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::run_raw`].
    pub(crate) unsafe fn start_greatest(
        &self,
        core: &mut Core,
        place: Place,
        word: *mut i64,
    ) -> Result<Operation> {
        let (plan, combine) = greatest()?;
        let recv = Elements { origin: word.cast(), plan, count: 1 };
        core.with(|schedules: &mut Schedules, engine| {
            let list =
                |steps: &mut Builder<'_, '_>| self.allreduce_steps(steps, None, &recv, &combine);
            // SAFETY: the steps use only the word and scratch memory of the schedule. The caller guarantees
            // that the word stays valid and that nobody else accesses it until the operation is complete or
            // detached (the condition of `# Safety`).
            unsafe { schedules.start(engine, place, list) }
        })?
    }

    #[inline]
    pub(in crate::coll) fn allreduce_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Elements<&'a Plan>,
        combine: &Combine,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let at = |origin: *mut u8| Elements { origin, ..*recv };
        let own = send.map_or(*recv, |send| at(send.cast_mut()));
        if own.bytes()? == 0 {
            return Ok(());
        }
        // A rank without others combines nothing. The general way made such a call a tenth slower.
        if size == 1 {
            if send.is_some() {
                steps.copy(&own, recv, rank)?;
            }
            return Ok(());
        }
        if self.reduces_in_blocks(recv)? {
            return self.reduce_in_blocks_steps(steps, send, recv, combine, None);
        }
        let doubling = 1 << size.ilog2();
        let extra = size - doubling;
        let paired = rank < 2 * extra;
        // 1. Among the first 2 * extra ranks, each even rank sends its values to the next odd rank, takes no
        //    part in the rounds of step 2, and gets the result at the end (step 3).
        if paired && rank % 2 == 0 {
            let partner = self.peer(rank + 1)?;
            let sent = steps.send(&own, partner)?;
            let received = steps.receive(recv, partner)?;
            if send.is_none() {
                steps.follow(received, sent);
            }
            return Ok(());
        }
        steps.operation(combine);
        let mut value = Value { own: send.is_some(), mine: own, made: None, room: None };
        if paired {
            value.combine(self, steps, recv, rank - 1, true, false)?;
        }

        // 2. Recursive doubling among the remaining ranks, which are numbered consecutively.
        let number = if paired { rank / 2 } else { rank - extra };
        let real = |number: usize| if number < extra { 2 * number + 1 } else { number + extra };
        let mut bit = 1;
        while bit < doubling {
            let partner = number ^ bit;
            value.combine(self, steps, recv, real(partner), partner < number, true)?;
            bit *= 2;
        }

        // 3. If the result is not at `recv` yet, a step copies it to `recv`. Each odd rank of step 1 also
        //    sends the result to the even rank from which it got values there.
        if let Some(made) = value.made {
            if value.mine.origin != recv.origin {
                let copied = steps.copy(&value.mine, recv, rank)?;
                steps.after(copied, made);
            }
            if paired {
                let sent = steps.send(&value.mine, self.peer(rank - 1)?)?;
                steps.after(sent, made);
            }
        }
        Ok(())
    }
}

/// The value that a rank holds between two rounds: the combined elements of a group of consecutive ranks.
struct Value<'a> {
    /// True while `mine` is still the caller's `send`, which must not be written.
    own: bool,
    mine: Elements<&'a Plan>,
    /// The step that computes the value in `mine`, or `None` if `mine` holds the rank's own elements.
    made: Option<StepId>,
    /// A scratch buffer of the same size as the caller's `recv`; `None` until a round needs it. The partner's
    /// values arrive at `recv`, or in this buffer if `mine` is at `recv`.
    room: Option<*mut u8>,
}

impl<'a> Value<'a> {
    /// Adds the steps of one round to the schedule. The round combines this rank's value with `partner`'s
    /// value. `lower` is true if the partner's group has the lower ranks. `both` is true if the partner
    /// also needs this rank's value. The result replaces the upper operand, which is this rank's value if
    /// `lower` is true and the received value otherwise.
    fn combine(
        &mut self,
        comm: &Communicator,
        steps: &mut Builder<'_, 'a>,
        recv: &Elements<&'a Plan>,
        partner: usize,
        lower: bool,
        both: bool,
    ) -> Result<()> {
        let at = |origin: *mut u8| Elements { origin, ..*recv };
        let partner = comm.peer(partner)?;
        let mut before = self.made;
        let sent = if both { Some(steps.send(&self.mine, partner)?) } else { None };
        if let (Some(sent), Some(before)) = (sent, before) {
            steps.after(sent, before);
        }
        if self.own && lower {
            // The result will replace the upper operand. Here the upper operand is still the caller's
            // `send`, which must not be written. So a step copies it to `recv` first.
            before = Some(steps.copy(&self.mine, recv, comm.rank())?);
            (self.mine, self.own) = (*recv, false);
        }
        let target = if self.mine.origin != recv.origin {
            *recv
        } else {
            let room = match self.room {
                Some(room) => room,
                None => steps.scratch(recv.plan, recv.count),
            };
            self.room = Some(room);
            at(room)
        };
        let received = steps.receive(&target, partner)?;
        if let Some(made) = self.made {
            // The combining step of the previous round may still read `target`, so the receive, which
            // overwrites `target`, waits for that step.
            steps.follow(received, made);
        }
        let combined = match lower {
            true => steps.combine(target.origin, self.mine.origin, recv)?,
            false => steps.combine(self.mine.origin, target.origin, recv)?,
        };
        for step in [before, sent, Some(received)].into_iter().flatten() {
            steps.after(combined, step);
        }
        if !lower {
            (self.mine, self.own) = (target, false);
        }
        self.made = Some(combined);
        Ok(())
    }
}
