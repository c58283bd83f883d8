//! The wait for all messages of a communicator that are under way, which `MPI_Comm_disconnect` makes.

use super::{Communicator, Group, Space};
use crate::Result;
use crate::endpoint::progress::Awaited;
use crate::shm::waiting::Kind;
use std::sync::atomic::Ordering;

impl Communicator {
    /// Waits until this rank's messages on the communicator are complete: those of sends and receives, also of freed
    /// requests, and those of collective and partitioned operations that have been started. The program may still ask
    /// for their results. The call does not return as long as a receive finds no message, or a long send no receive.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`](crate::ErrorKind) if a rank has died.
    #[doc(alias = "MPI_Comm_disconnect")]
    pub fn wait_for_pending(&self) -> Result<()> {
        // The requests of one-sided calls do not count: a window waits for them itself.
        let contexts = |comm: &Self| comm.context(Space::User)..comm.context(Space::Window);
        let own = contexts(self);
        // The collective operations of an intercommunicator use the communicator of the local group, too.
        let local = self.local_side("comm").map(contexts).unwrap_or(0..0);
        let awaited = Awaited::Ranks {
            call: "Communicator::wait_for_pending",
            kind: Kind::Other,
            context: own.start,
            ranks: self.size(),
            peer: None,
        };
        self.endpoint().run(
            &awaited,
            |_| Ok(()),
            |core, ()| {
                // An operation may have work to do although none of its messages is in flight.
                (!core.has_in(&own) && !core.has_in(&local)).then_some(())
            },
            |_, ()| true,
        )
    }

    /// Ends the bonds with other worlds that this communicator has made, when all its ranks have made the call. Returns
    /// false, and waits for nobody, if all ranks are of one world.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`](crate::ErrorKind) if a rank has died.
    pub(crate) fn unbind_together(&self) -> Result<bool> {
        let worlds = &self.shared.worlds;
        if worlds.is_empty() {
            return Ok(false);
        }
        let members = self.size() + self.remote_group().map_or(0, Group::size);
        let awaited = self.awaited("Communicator::disconnect", Kind::Other, None);
        if !self.shared.disconnected.swap(true, Ordering::AcqRel) {
            let communicator = (self.shared.context, members);
            self.endpoint().unbind_together(&awaited, communicator, worlds)?;
        }
        Ok(true)
    }
}
