//! Alltoall, straight between every two ranks, in an order in which no rank is everybody's first.

use super::Collective;
use super::collective::check_parts;
use crate::Result;
use crate::comm::Communicator;
use crate::commit::bytes;
use crate::schedule::Part;
use crate::schedule::program::Builder;
use crate::settings::Settings;

impl Communicator {
    /// Brings `send[j]` of rank `i` into `receive[i]` of rank `j`. With `None` the parts to send
    /// are those of `receive`, which are exchanged in place. Collective.
    ///
    /// # Safety
    ///
    /// - The elements of `send` are readable, those of `receive` writable (in place both), and
    ///   nobody else uses the latter, or changes the former, until the call returns.
    /// - The parts of `receive` overlap neither each other nor those of `send`.
    ///
    /// # Errors
    /// Not one part for every rank; parts of different packed sizes at their two ends; out of
    /// memory for the copies of an exchange in place;
    /// [`ErrorKind::ProcAborted`](crate::ErrorKind) when a rank has died.
    #[doc(alias = "MPI_Alltoall")]
    #[doc(alias = "MPI_Alltoallv")]
    #[doc(alias = "MPI_Alltoallw")]
    pub unsafe fn alltoall_raw(
        &self,
        send: Option<&[Part<'_>]>,
        receive: &[Part<'_>],
    ) -> Result<()> {
        // SAFETY: `send` is read and `receive` written (in place also read), as the caller promises.
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

    /// Every part goes out of a packed copy, and may be received when that has been made.
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
