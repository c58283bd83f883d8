//! Collective calls on intercommunicators (MPI-5.0 section 6.2.2): the same calls as on intracommunicators, but
//! data moves between the two groups.
//!
//! A step names a peer, and the peer may belong to either group. Within its own group, a rank uses the steps of the
//! intracommunicators, with the communicator of the local group. All messages of a call, also those within a group,
//! have the same context and the same tag: the context of the intercommunicator, and the tag of the call. The groups
//! have no common member, so a message within a group never matches a receive from the other group. A call sends at
//! most one message from one rank to another.
//!
//! In a barrier, an allreduce and a reduce-scatter, each group first collects or combines its data at its leader (its
//! rank 0). The leaders exchange these data, and each leader then sends the received data on within its group.

use super::reduce_scatter::blocks;
use crate::coll::collective::{Collective, Root, check_parts};
use crate::comm::Communicator;
use crate::commit::bytes;
use crate::endpoint::sources::Combine;
use crate::schedule::program::{Builder, Peer, StepId};
use crate::{Error, ErrorKind, Plan, Result};
use typepack_engine::Elements;

/// The role of this process in a call with a root.
enum Role {
    /// This process is the root. All ranks of the remote group take part.
    Root,
    /// Another rank of this process's group is the root.
    Idle,
    /// The root is this peer, a rank of the remote group.
    Other(Peer),
}

impl Communicator {
    /// Adds the steps of a collective call on an intercommunicator.
    pub(in crate::coll) fn list_between<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        call: &Collective<'a>,
    ) -> Result<()> {
        match *call {
            Collective::Barrier => {
                let nothing = Elements { origin: std::ptr::null_mut(), plan: bytes()?, count: 0 };
                let local = self.local_side("comm")?;
                let parts = vec![nothing; local.size()];
                let arrived = local.gather_steps(steps, Some(&nothing), &parts, 0)?;
                let met = self.leaders_steps(steps, &nothing, &nothing, &arrived)?;
                local.broadcast_steps(steps, &nothing, 0, &met)
            }
            Collective::Broadcast { ref part, root } => match self.role(root)? {
                Role::Root => steps.send(part, self.peer(0)?).map(|_| ()),
                Role::Idle => Ok(()),
                Role::Other(root) => {
                    let local = self.local_side("comm")?;
                    let mut before = Vec::new();
                    if local.rank() == 0 {
                        before.push(steps.receive(part, root)?);
                    }
                    local.broadcast_steps(steps, part, 0, &before)
                }
            },
            Collective::Gather { ref mine, parts, root } => match self.role(root)? {
                Role::Root => self.receive_all(steps, parts),
                Role::Idle => Ok(()),
                Role::Other(root) => steps.send(given(mine.as_ref())?, root).map(|_| ()),
            },
            Collective::Scatter { parts, ref mine, root } => match self.role(root)? {
                Role::Root => self.send_all(steps, parts),
                Role::Idle => Ok(()),
                Role::Other(root) => steps.receive(given(mine.as_ref())?, root).map(|_| ()),
            },
            Collective::Allgather { ref mine, parts } => {
                self.receive_all(steps, parts)?;
                let mine = *given(mine.as_ref())?;
                self.send_all(steps, &vec![mine; self.peers().size()])
            }
            Collective::Alltoall { send, receive }
            | Collective::AlltoallEqual { send, receive } => {
                self.receive_all(steps, receive)?;
                self.send_all(steps, given(send)?)
            }
            Collective::Reduce { send, recv, plan, count, combine, root } => {
                let recv = Elements { origin: recv, plan, count };
                match self.role(root)? {
                    Role::Root => steps.receive(&recv, self.peer(0)?).map(|_| ()),
                    Role::Idle => Ok(()),
                    Role::Other(root) => {
                        let (sum, made) = self.local_reduction(steps, send, &recv, combine)?;
                        if self.rank() == 0 {
                            let sent = steps.send(&sum, root)?;
                            made.into_iter().for_each(|made| steps.after(sent, made));
                        }
                        Ok(())
                    }
                }
            }
            Collective::Allreduce { send, recv, plan, count, combine } => {
                let recv = Elements { origin: recv, plan, count };
                let (sum, made) = self.local_reduction(steps, send, &recv, combine)?;
                let came = self.leaders_steps(steps, &sum, &recv, made.as_slice())?;
                self.local_side("comm")?.broadcast_steps(steps, &recv, 0, &came)
            }
            Collective::ReduceScatter { send, recv, plan, counts, combine } => {
                let recv = Elements { origin: recv, plan, count: 0 };
                self.reduce_scatter_between(steps, send, &recv, counts, combine)
            }
            Collective::Scan { .. } | Collective::Exscan { .. } | Collective::Neighbors { .. } => {
                self.check_intra("comm")
            }
        }
    }

    /// Adds the steps of a reduction whose result is divided among the ranks of the other group. `counts` has the
    /// number of elements for each rank of the local group. `recv` gives the address and the type of this rank's
    /// elements of the result.
    fn reduce_scatter_between<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Elements<&'a Plan>,
        counts: &[u64],
        combine: &Combine,
    ) -> Result<()> {
        let local = self.local_side("comm")?;
        let (rank, size) = (local.rank(), local.size());
        if counts.len() != size {
            let detail = format!(
                "the slice has length {}; its length must be the number of ranks of the local group, {size}",
                counts.len()
            );
            return Err(Error::new(ErrorKind::Argument, "counts", detail));
        }
        let all = counts.iter().try_fold(0u64, |all, count| all.checked_add(*count));
        let all = all.ok_or_else(|| {
            Error::new(ErrorKind::Count, "counts", "the sum of the counts does not fit in 64 bits")
        })?;
        let whole = Elements { count: all, ..*recv };
        whole.bytes()?;
        let (sum, made) = self.local_reduction(steps, send, &whole, combine)?;
        if rank != 0 {
            let own = Elements { count: counts[rank], ..*recv };
            steps.receive(&own, local.peer(0)?)?;
            return Ok(());
        }
        let theirs = Elements { origin: steps.scratch(recv.plan, all), ..whole };
        let came = self.leaders_steps(steps, &sum, &theirs, made.as_slice())?;
        for (to, part) in blocks(&theirs, counts).enumerate() {
            let step = match to {
                0 => steps.copy(&part, &Elements { count: part.count, ..*recv }, rank)?,
                to => steps.send(&part, local.peer(to)?)?,
            };
            came.iter().for_each(|came| steps.after(step, *came));
        }
        Ok(())
    }

    fn role(&self, root: Root) -> Result<Role> {
        Ok(match root {
            Root::Here => Role::Root,
            Root::InMyGroup => Role::Idle,
            Root::Rank(rank) => {
                self.check_rank(rank, "root", ErrorKind::Root)?;
                Role::Other(self.peer(rank)?)
            }
        })
    }

    /// Adds one receive from each rank of the remote group.
    fn receive_all<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        parts: &[Elements<&'a Plan>],
    ) -> Result<()> {
        check_parts(self, parts)?;
        for rank in self.in_turn() {
            steps.receive(&parts[rank], self.peer(rank)?)?;
        }
        Ok(())
    }

    /// Adds one send to each rank of the remote group.
    fn send_all<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        parts: &[Elements<&'a Plan>],
    ) -> Result<()> {
        check_parts(self, parts)?;
        for rank in self.in_turn() {
            steps.send(&parts[rank], self.peer(rank)?)?;
        }
        Ok(())
    }

    /// Returns the ranks of the remote group. The ranks of the local group begin with different ranks of the remote
    /// group, so that they do not all send to one rank at once.
    fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, size) = (self.rank(), self.peers().size());
        (0..size).map(move |distance| (first + distance) % size)
    }

    /// Adds the steps that combine the elements at `send` of all ranks of the local group. `like` gives the type and
    /// the number of the elements. Returns the part at rank 0 that gets the result, and the step after which the result
    /// is there. (On other ranks, the part has no memory.)
    fn local_reduction<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        like: &Elements<&'a Plan>,
        combine: &Combine,
    ) -> Result<(Elements<&'a Plan>, Option<StepId>)> {
        let send = given(send)?;
        let local = self.local_side("comm")?;
        let origin = match local.rank() {
            0 => steps.scratch(like.plan, like.count),
            _ => std::ptr::null_mut(),
        };
        let sum = Elements { origin, ..*like };
        let made = local.reduce_steps(steps, Some(send), &sum, combine, 0)?;
        Ok((sum, made))
    }

    /// Adds the steps by which the leaders exchange their parts, after the steps in `before`. `mine` is the part that
    /// this leader sends, and `theirs` gets the part of the other leader. Returns the steps that must be over before
    /// this rank sends data on within its group.
    pub(in crate::coll) fn leaders_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        mine: &Elements<&'a Plan>,
        theirs: &Elements<&'a Plan>,
        before: &[StepId],
    ) -> Result<Vec<StepId>> {
        let mut all = before.to_vec();
        if self.rank() == 0 {
            let sent = steps.send(mine, self.peer(0)?)?;
            for step in before {
                steps.after(sent, *step);
            }
            all.push(steps.receive(theirs, self.peer(0)?)?);
        }
        Ok(all)
    }
}

/// Returns what the caller has passed for its own elements. A call on an intercommunicator cannot be in place,
/// because no rank's result contains its own elements.
fn given<T>(mine: Option<T>) -> Result<T> {
    mine.ok_or_else(|| {
        let detail = "None (in place) is not possible in an intercommunicator";
        Error::new(ErrorKind::Buffer, "mine", detail)
    })
}
