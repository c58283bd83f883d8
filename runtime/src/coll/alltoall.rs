//! Alltoall with one message from each rank to every other rank. Each rank first sends to a different
//! partner, so that the ranks do not all send to one rank at once.

use super::Collective;
use super::collective::check_parts;
use crate::Result;
use crate::comm::Communicator;
use crate::commit::bytes;
use crate::schedule::Part;
use crate::schedule::program::Builder;
use crate::settings::Settings;

impl Communicator {
    /// Copies `send[j]` of rank `i` into `receive[i]` of rank `j`. If `send` is `None`, every rank exchanges
    /// the parts of `receive` in place. Collective.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the elements of `send` are readable and nobody changes them.
    /// - Until the call returns, the elements of `receive` are writable (and also readable if `send` is
    ///   `None`), and nobody else accesses them.
    /// - The parts of `receive` overlap neither each other nor the parts of `send`.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if the number of parts is not the number of ranks,
    /// `ErrorKind::Truncated` or `ErrorKind::Count` if the sender and the receiver of a part pass different
    /// packed sizes, `ErrorKind::NoMemory` if memory for the copies of an exchange in place runs out, and
    /// `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Alltoall")]
    #[doc(alias = "MPI_Alltoallv")]
    #[doc(alias = "MPI_Alltoallw")]
    pub unsafe fn alltoall_raw(
        &self,
        send: Option<&[Part<'_>]>,
        receive: &[Part<'_>],
    ) -> Result<()> {
        // SAFETY: the caller guarantees that, until `run_raw` returns, `send` is readable and unchanged
        // (first condition of `# Safety`), `receive` is writable, and readable if `send` is `None`, and
        // nobody else accesses it (second condition), and the parts do not overlap (third condition).
        // `Collective::Alltoall` names no other memory and no operation.
        unsafe { self.run_raw(&Collective::Alltoall { send, receive }) }
    }

    pub(super) fn alltoall_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<&[Part<'a>]>,
        receive: &[Part<'a>],
    ) -> Result<()> {
        check_parts(self, receive)?;
        let Some(send) = send else { return self.alltoall_in_place_steps(steps, receive) };
        check_parts(self, send)?;
        let (rank, size) = (self.rank(), self.size());
        for distance in 1..size {
            let from = (rank + size - distance) % size;
            steps.receive(&receive[from], self.peer(from)?)?;
        }
        for distance in 1..size {
            let to = (rank + distance) % size;
            steps.send(&send[to], self.peer(to)?)?;
        }
        steps.copy(&send[rank], &receive[rank], rank)?;
        Ok(())
    }

    /// Adds the steps of an exchange in place to the schedule. For the part of every other rank, one step
    /// packs the old contents into a copy, and this rank then sends the copy. This rank receives the new
    /// contents into the part only after the copy is complete. Its own part stays as it is.
    fn alltoall_in_place_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        parts: &[Part<'a>],
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let (byte, checked) = (bytes()?, Settings::get()?.check_types);
        let others = || (1..size).map(|distance| (rank + distance) % size);
        let mut packed = Vec::with_capacity(size);
        for other in others() {
            let count = parts[other].bytes()?;
            let copy = Part { origin: steps.scratch(byte, count)?, plan: byte, count };
            packed.push((copy, steps.pack(&parts[other], &copy, rank)?));
        }
        for (other, (copy, made)) in others().zip(&packed) {
            let received = steps.receive(&parts[other], self.peer(other)?)?;
            steps.after(received, *made);
            let sent = steps.send_packed(copy, &parts[other], self.peer(other)?, checked)?;
            steps.after(sent, *made);
        }
        Ok(())
    }
}
