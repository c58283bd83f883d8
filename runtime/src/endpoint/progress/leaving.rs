//! How this process leaves the job, and how it returns to the job after a pause.
//!
//! `world.rs` calls these functions at the end of the program. The waits are those of `waiting.rs`.

use super::{Awaited, Core, Endpoint, NAP};
use crate::Result;

impl Endpoint {
    /// Completes all operations for which other ranks wait: sends, receives that have begun to take their data, and the
    /// receives of abandoned collective operations, unless their senders have left the job. Then closes the endpoint,
    /// so that all later calls return errors. If `wait` is false because the program is panicking, this function only
    /// closes the endpoint, and the launcher sees that the rank left early.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::wait`]. The function closes the endpoint even if it returns an
    /// error.
    pub fn finalize(&self, wait: bool) -> Result<()> {
        let sent = if wait { self.serve() } else { Ok(()) };
        let mut state = self.lock()?;
        state.closed = true;
        state.sleepers.wake(|_| true);
        if wait && sent.is_ok() {
            self.fabric.finalized();
        }
        sent
    }

    /// Completes all operations for which other ranks wait.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::wait`].
    pub fn serve(&self) -> Result<()> {
        let state = self.lock()?;
        let served = |core: &mut Core| {
            if core.others_are_served() {
                return Some(());
            }
            // What is left waits for messages of abandoned operations. Two ranks that both leave must not wait for what
            // the other one will never send. A rank says so also if it waits for another kind of operation: the one that
            // it waits for may wait for abandoned messages of this rank. This costs the others nothing, unless they leave.
            let told_now = core.engine.others_are_served() && self.fabric.leaves(true);
            (told_now && core.others_are_served()).then_some(())
        };
        let waited = self.wait_until(state, NAP, &Awaited::Served, served);
        // Another thread may have begun to use the library again.
        self.fabric.leaves(false);
        waited
    }

    /// Leaves the job like [`finalize`](Self::finalize), but keeps the endpoint open, so that the process can
    /// return to the job.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::wait`]. After an error, the launcher still counts this rank as a member.
    pub fn pause(&self) -> Result<()> {
        self.serve()?;
        self.fabric.finalized();
        Ok(())
    }

    /// Returns to the job after [`pause`](Self::pause).
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn resume(&self) -> Result<()> {
        drop(self.lock()?);
        self.fabric.returned();
        Ok(())
    }
}
