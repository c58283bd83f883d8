//! Nonblocking operations on memory that the caller answers for.
//!
//! The halo exchange and the C face use these; safe programs use `scope.rs`. Requests end in
//! `progress.rs`.

use super::{Communicator, Space};
use crate::p2p::exchange::Started;
use crate::p2p::payload::LayoutRef;
use crate::p2p::{Source, Status, Tag};
use crate::{Plan, Result};

/// A nonblocking operation that was started with [`Communicator::isend_raw`] or
/// [`Communicator::irecv_raw`]. It keeps its plan alive.
///
/// It is waited for on the communicator that it was started on, whose ranks its status has.
/// Dropping it neither waits nor cancels: the operation goes on, and its memory stays in use.
#[doc(alias = "MPI_Request")]
#[derive(Debug)]
#[must_use = "the operation's memory is in use until it has been waited for"]
pub struct RawRequest {
    started: Started,
}

impl Communicator {
    /// Starts a send of `count` elements of `plan`'s type at `origin` (the address of
    /// displacement 0) to rank `dest`.
    ///
    /// # Safety
    ///
    /// - The elements' bytes are valid for reads, and unchanged, until the request has been waited
    ///   for, found complete by [`test_raw`](Self::test_raw), or given to
    ///   [`detach_raw`](Self::detach_raw), by any thread; an error of those calls ends the
    ///   operation, too.
    ///
    /// # Errors
    /// A rank, tag or count outside its domain; [`ErrorKind::ProcAborted`](crate::ErrorKind) when
    /// a rank has died. Nothing is started then.
    #[doc(alias = "MPI_Isend")]
    pub unsafe fn isend_raw(
        &self,
        origin: *const u8,
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<RawRequest> {
        let layout = LayoutRef { origin: origin.cast_mut(), plan, count };
        // SAFETY: the memory is the caller's promise; a send only reads it.
        let started = unsafe { self.start_send(&layout, dest, tag, Space::User)? };
        Ok(RawRequest { started })
    }

    /// Starts a receive of at most `count` elements of `plan`'s type at `origin`.
    ///
    /// # Safety
    ///
    /// - The elements' bytes are valid for writes, and nobody else reads or writes them, until the
    ///   request has ended as described at [`isend_raw`](Self::isend_raw).
    ///
    /// # Errors
    /// As [`isend_raw`](Self::isend_raw); a message that had arrived may turn out to be longer
    /// than the receive ([`ErrorKind::Truncated`](crate::ErrorKind)).
    #[doc(alias = "MPI_Irecv")]
    pub unsafe fn irecv_raw(
        &self,
        origin: *mut u8,
        plan: &Plan,
        count: u64,
        source: Source,
        tag: Tag,
    ) -> Result<RawRequest> {
        let layout = LayoutRef { origin, plan, count };
        // SAFETY: the memory is the caller's promise.
        let started = unsafe { self.start_receive(&layout, source, tag, Space::User)? };
        Ok(RawRequest { started })
    }

    /// Waits for one operation. Afterwards, whatever the result, its memory is the caller's again.
    ///
    /// # Errors
    /// The operation's own; [`ErrorKind::ProcAborted`](crate::ErrorKind) when a rank has died.
    #[doc(alias = "MPI_Wait")]
    pub fn wait_raw(&self, request: RawRequest) -> Result<Status> {
        self.finish(request.started)
    }

    /// Waits for all of `requests`, empties the vector, and returns their statuses in order.
    ///
    /// # Errors
    /// The first error of any of them; all have ended all the same.
    #[doc(alias = "MPI_Waitall")]
    pub fn wait_all_raw(&self, requests: &mut Vec<RawRequest>) -> Result<Vec<Status>> {
        let mut statuses = Vec::with_capacity(requests.len());
        let mut failed = None;
        for request in requests.drain(..) {
            match self.finish(request.started) {
                Ok(status) => statuses.push(status),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(statuses), Err)
    }

    /// The status of an operation if it is complete; asking again gives the same answer.
    ///
    /// # Errors
    /// As [`wait_raw`](Self::wait_raw); the operation has ended.
    #[doc(alias = "MPI_Test")]
    pub fn test_raw(&self, request: &mut RawRequest) -> Result<Option<Status>> {
        match request.started {
            Started::Done(status) => Ok(Some(status)),
            Started::Pending(id) => {
                let status = self.test(id)?;
                if let Some(status) = status {
                    request.started = Started::Done(status);
                }
                Ok(status)
            }
        }
    }

    /// Cuts an operation loose from its memory, without waiting: a send still happens, from a
    /// copy; a receive is withdrawn, or its message read and dropped.
    pub fn detach_raw(&self, request: RawRequest) {
        if let Started::Pending(id) = request.started {
            self.endpoint().detach(id);
        }
    }
}
