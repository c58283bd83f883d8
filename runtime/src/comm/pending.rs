//! The wait for all messages of a communicator that are under way, which `MPI_Comm_disconnect` makes.

use super::{Communicator, Space};
use crate::Result;
use crate::endpoint::progress::Awaited;
use crate::shm::waiting::Kind;
use std::sync::atomic::Ordering;

impl Communicator {
    /// Waits until this rank's messages on the communicator are complete: those of sends and receives, also of freed
    /// requests, and those of collective and partitioned operations that have been started. The program may still ask for their
    /// results. The call does not return as long as a receive finds no message, or a long send no receive.
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

    /// Records that all ranks of the communicator disconnect now. They meet in a barrier, and then each calls
    /// [`end_disconnect`](Self::end_disconnect).
    pub(crate) fn begin_disconnect(&self) {
        if !self.shared.disconnected.load(Ordering::Acquire) {
            self.endpoint().begin_unbind(&self.shared.worlds);
        }
    }

    /// Ends the bonds with other worlds that this communicator has made.
    pub(crate) fn end_disconnect(&self) {
        self.shared.unbind();
    }
}
