//! Alltoall, straight between every two ranks, in an order in which no rank is everybody's first.

use super::ALLTOALL;
use super::raw::{Batch, Part, check_parts};
use crate::Result;
use crate::comm::Communicator;
use crate::commit::bytes;
use crate::message::payload::buffer;

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
        check_parts(self, receive)?;
        let Some(send) = send else {
            // SAFETY: passed on.
            return unsafe { self.alltoall_in_place(receive) };
        };
        check_parts(self, send)?;
        let rank = self.rank();
        // SAFETY: passed on.
        let own = unsafe { send[rank].copy_to(&receive[rank], rank) };
        // SAFETY: passed on.
        unsafe { self.exchange_parts(send, send, receive)? };
        own
    }

    /// # Safety
    /// As `alltoall_raw`.
    unsafe fn alltoall_in_place(&self, parts: &[Part<'_>]) -> Result<()> {
        let rank = self.rank();
        let mut copies = Vec::new();
        for (other, part) in parts.iter().enumerate() {
            let mut packed = buffer(if other == rank { 0 } else { part.bytes()? })?;
            if other != rank {
                // SAFETY: the part is readable, the buffer has room for its packed bytes.
                unsafe { part.layout().pack(0..part.bytes()?, packed.as_mut_ptr()) };
            }
            copies.push(packed);
        }
        let plan = bytes()?;
        let part =
            |copy: &mut Vec<u8>| Part { origin: copy.as_mut_ptr(), plan, count: copy.len() as u64 };
        let send: Vec<Part<'_>> = copies.iter_mut().map(part).collect();
        // SAFETY: the copies live until the call returns; the rest is passed on.
        unsafe { self.exchange_parts(&send, parts, parts) }
    }

    /// Everything but this rank's message to itself. `send` may be packed copies of `origins`.
    ///
    /// # Safety
    /// As `alltoall_raw`.
    unsafe fn exchange_parts(
        &self,
        send: &[Part<'_>],
        origins: &[Part<'_>],
        receive: &[Part<'_>],
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let mut batch = Batch::new(self, ALLTOALL);
        for distance in 1..size {
            let from = (rank + size - distance) % size;
            // SAFETY: passed on.
            unsafe { batch.receive(&receive[from], from)? };
        }
        for distance in 1..size {
            let to = (rank + distance) % size;
            // SAFETY: passed on.
            unsafe { batch.send_packed(&send[to], &origins[to], to)? };
        }
        batch.finish()
    }
}
