//! Put and get: one copy between the memory of this rank and that of the target, from layout to layout, without a
//! buffer between them. If this rank cannot map the target's memory, requests put the data (`requests.rs`), and
//! messages or system calls get them (`tries.rs`).

use crate::rma::Window;
use crate::rma::request::requests::Far;
use crate::rma::window::target::Located;
use crate::tools::counting::{Counter, count_access};
use crate::{Error, ErrorKind, Plan, Result};
use typepack_engine::{Elements, contiguous, copy_raw};

/// Returns the error for data that are longer than their destination.
#[cold]
pub(in crate::rma) fn truncated(what: &'static str, bytes: u64, room: u64) -> Error {
    let detail = format!("{bytes} bytes of data do not fit in {room} bytes");
    Error::new(ErrorKind::Truncated, what, detail)
}

/// Returns the error for an answer of another rank that has another length than the data that this rank asked for.
#[cold]
pub(in crate::rma) fn broken(target: usize) -> Error {
    let detail =
        format!("the answer of rank {target} is not as long as the data that this rank asked for");
    Error::new(ErrorKind::Other, "target_rank", detail)
}

/// A call that copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Put,
    Get,
}

/// Compares the types of the data of a call with those of their destination.
///
/// # Errors
/// Returns `ErrorKind::Type` if they differ.
#[cold]
fn compare_types((from, sent): (&Plan, u64), (to, expected): (&Plan, u64)) -> Result<()> {
    let (Ok(ours), Ok(theirs)) = (from.signature(), to.signature()) else { return Ok(()) };
    match ours.matches(sent, theirs, expected)? {
        Err(mismatch) if mismatch.expected.is_some() => {
            let detail = mismatch.to_string();
            Err(Error::new(ErrorKind::Type, "target_datatype", detail))
        }
        _ => Ok(()),
    }
}

/// Greatest number of bytes of a run that is copied without the engine.
const SHORT: u64 = 256;

/// Returns the place of the first byte (after the origin) and the number of bytes of some elements, if these are one
/// short run of memory.
#[inline(always)]
fn short_run(plan: &Plan, count: u64) -> Option<(i64, u64)> {
    let bytes = plan.element_bytes();
    let bytes = if bytes.max(count) <= SHORT { bytes * count } else { return None };
    let is_short = plan.is_contiguous() && (1..=SHORT).contains(&bytes);
    is_short.then(|| (plan.footprint().true_lb, bytes))
}

/// Copies `bytes` bytes, which are often a value of 8 bytes.
///
/// # Safety
///
/// - `from` is readable and `to` is writable for the bytes, and they do not overlap.
#[inline(always)]
pub(in crate::rma) unsafe fn copy_short(from: *const u8, to: *mut u8, bytes: u64) {
    // SAFETY: the bytes are valid and do not overlap (the condition of `# Safety`).
    unsafe {
        if bytes == 8 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else {
            to.copy_from_nonoverlapping(from, bytes as usize);
        }
    }
}

impl Window {
    /// Returns the address at the target, the offset of the origin's first byte, and the number of bytes of a copy
    /// between two short runs of equal length; `None` if the copy is another one, or if it is not permitted.
    #[inline(always)]
    fn between_short_runs(
        &self,
        origin: &Elements<&Plan>,
        target: usize,
        displacement: i64,
        plan: &Plan,
        count: u64,
    ) -> Result<Option<(*mut u8, i64, u64)>> {
        let (Some((near, bytes)), Some((lb, room))) =
            (short_run(origin.plan, origin.count), short_run(plan, count))
        else {
            return Ok(None);
        };
        if bytes != room || self.checks_types() {
            return Ok(None);
        }
        let Some(at) = self.direct(target, displacement, lb, bytes) else { return Ok(None) };
        self.epochs.check_access(target)?;
        Ok(Some((at, near, bytes)))
    }

    /// Copies the elements `from` to `count` elements of `plan` at displacement `displacement` of the memory of rank
    /// `target`. If this rank can map the target's memory, the copy is over when the call returns. (This is always so
    /// for memory that a window has allocated.) If not, a call that completes operations completes it.
    ///
    /// # Safety
    ///
    /// - The elements `from` are readable, and do not overlap those at the target. If this rank cannot map the target's
    ///   memory, they stay readable and do not change until the put is complete
    ///   ([`flush_local`](Self::flush_local), and the calls that end an epoch), or the window is dropped.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if there is no such rank, `WindowErrorKind::Synchronization` if no epoch permits the
    /// access, `WindowErrorKind::Displacement` or `WindowErrorKind::Range` if the elements do not lie in the window,
    /// and `ErrorKind::Truncated` if `from` has more data than the elements at the target. With
    /// `TYPEPACK_CHECK_TYPES=1`, returns `ErrorKind::Type` if the types of the data differ. If this rank cannot map the
    /// target's memory, also returns `ErrorKind::ProcAborted` if a rank has died. If the target refuses the operation,
    /// the call that completes the put returns an error of the class that the target names.
    #[doc(alias = "MPI_Put")]
    #[inline]
    pub unsafe fn put_raw(
        &self,
        from: &Elements<&Plan>,
        target: usize,
        displacement: i64,
        plan: &Plan,
        count: u64,
    ) -> Result<()> {
        if let Some((to, near, bytes)) =
            self.between_short_runs(from, target, displacement, plan, count)?
        {
            // SAFETY: the caller guarantees the bytes of `from` and that they do not overlap those at the target (the
            // condition of `# Safety`). The bytes at the target lie in the window (`direct`).
            unsafe { copy_short(from.origin.wrapping_offset(near as isize), to, bytes) };
            self.note_stores();
            count_access(Counter::PUTS);
            return Ok(());
        }
        // SAFETY: the caller guarantees the elements of `from` (the condition of `# Safety`), which is the condition of
        // `copy_any`.
        unsafe { self.copy_any(Call::Put, from, target, displacement, (plan, count), &mut None) }
    }

    /// Does the same as [`put_raw`](Self::put_raw), and returns the numbers of the operations that end when the program
    /// may change the elements `from` again. There is none if the program may do so already.
    ///
    /// # Safety
    ///
    /// - The condition of [`put_raw`](Self::put_raw), until the operations have ended.
    ///
    /// # Errors
    /// Returns the errors of [`put_raw`](Self::put_raw).
    #[doc(hidden)]
    pub unsafe fn put_request(
        &self,
        from: &Elements<&Plan>,
        target: usize,
        displacement: i64,
        plan: &Plan,
        count: u64,
    ) -> Result<Vec<u64>> {
        let mut ids = Some(Vec::new());
        // SAFETY: the caller guarantees the elements of `from` (the condition of `# Safety`).
        let put = unsafe {
            self.copy_any(Call::Put, from, target, displacement, (plan, count), &mut ids)
        };
        self.started(put, ids)
    }

    /// Returns the numbers of the operations of a call, unless the call has failed: the operations that it has started
    /// then use the program's memory no longer.
    pub(in crate::rma) fn started(
        &self,
        result: Result<()>,
        ids: Option<Vec<u64>>,
    ) -> Result<Vec<u64>> {
        let ids = ids.unwrap_or_default();
        if let Err(error) = result {
            ids.into_iter().for_each(|id| self.comm.endpoint().detach(id));
            return Err(error);
        }
        Ok(ids)
    }

    /// Copies `count` elements of `plan` at displacement `displacement` of the memory of rank `target` to the
    /// elements `to`. If this rank can map the target's memory, the copy is over when the call returns. (This is always
    /// so for memory that a window has allocated.) If not, a call that completes operations completes it.
    ///
    /// # Safety
    ///
    /// - The elements `to` are writable, nobody else accesses them during the call, and they do not overlap those at
    ///   the target. If this rank cannot map the target's memory, this holds until the get is complete
    ///   ([`flush_local`](Self::flush_local), and the calls that end an epoch), or the window is dropped.
    ///
    /// # Errors
    /// Returns the errors of [`put_raw`](Self::put_raw), but `ErrorKind::Truncated` if the elements at the target have
    /// more data than `to`.
    #[doc(alias = "MPI_Get")]
    #[inline]
    pub unsafe fn get_raw(
        &self,
        to: &Elements<&Plan>,
        target: usize,
        displacement: i64,
        plan: &Plan,
        count: u64,
    ) -> Result<()> {
        if let Some((from, near, bytes)) =
            self.between_short_runs(to, target, displacement, plan, count)?
        {
            // SAFETY: the caller guarantees the bytes of `to` and that they do not overlap those at the target (the
            // condition of `# Safety`). The bytes at the target lie in the window (`direct`).
            unsafe { copy_short(from, to.origin.wrapping_offset(near as isize), bytes) };
            // The buffer may lie in the memory of the window.
            self.note_stores();
            count_access(Counter::GETS);
            return Ok(());
        }
        // SAFETY: the caller guarantees the elements of `to` (the condition of `# Safety`), which is the condition of
        // `copy_any`.
        unsafe { self.copy_any(Call::Get, to, target, displacement, (plan, count), &mut None) }
    }

    /// Does the same as [`get_raw`](Self::get_raw), and returns the numbers of the operations that end when the
    /// elements `to` have the data. There is none if they have the data already.
    ///
    /// # Safety
    ///
    /// - The condition of [`get_raw`](Self::get_raw), until the operations have ended.
    ///
    /// # Errors
    /// Returns the errors of [`get_raw`](Self::get_raw).
    #[doc(hidden)]
    pub unsafe fn get_request(
        &self,
        to: &Elements<&Plan>,
        target: usize,
        displacement: i64,
        plan: &Plan,
        count: u64,
    ) -> Result<Vec<u64>> {
        let mut ids = Some(Vec::new());
        // SAFETY: the caller guarantees the elements of `to` (the condition of `# Safety`).
        let got =
            unsafe { self.copy_any(Call::Get, to, target, displacement, (plan, count), &mut ids) };
        self.started(got, ids)
    }

    /// Puts the elements `near`, or gets into them, if they are not one short run in memory that this rank can map. See
    /// [`put_raw`](Self::put_raw) and [`get_raw`](Self::get_raw).
    ///
    /// # Safety
    ///
    /// - The condition of [`put_raw`](Self::put_raw) holds for the elements `near`, or that of
    ///   [`get_raw`](Self::get_raw).
    #[inline(never)]
    unsafe fn copy_any(
        &self,
        call: Call,
        near: &Elements<&Plan>,
        target: usize,
        displacement: i64,
        (plan, count): (&Plan, u64),
        ids: &mut Option<Vec<u64>>,
    ) -> Result<()> {
        self.check_target(target)?;
        self.epochs.check_access(target)?;
        // A get from a wrong place is an error of the place, whatever its length.
        let place = match call {
            Call::Put => None,
            Call::Get => Some(self.locate(target, displacement, plan, count)?),
        };
        // The destination comes first, because the other elements must fit in it.
        let (ours, theirs) = ((near.plan, near.count), (plan, count));
        let (to, from) = if call == Call::Put { (theirs, ours) } else { (ours, theirs) };
        let (bytes, room) = (from.0.packed_bytes(from.1)?, to.0.packed_bytes(to.1)?);
        if bytes > room {
            return Err(truncated("origin_count", bytes, room));
        }
        if self.checks_types() {
            compare_types(from, to)?;
        }
        let place = match place {
            Some(place) => place,
            None => self.locate(target, displacement, plan, count)?,
        };
        count_access(if call == Call::Put { Counter::PUTS } else { Counter::GETS });
        let origin = match place {
            Located::Here(memory) => memory,
            Located::There(offset) => {
                let far = Far { target, offset, plan, count };
                // SAFETY: the elements `near` have at least `bytes` packed bytes (checked above). Until the call is
                // complete, they are readable and do not change, or they are writable and not in use (the condition of
                // `# Safety`).
                return unsafe {
                    match call {
                        Call::Put => self.put_there(near, &far, bytes, ids),
                        Call::Get => self.get_far(near, &far, bytes, ids),
                    }
                };
            }
        };
        let far = Elements { origin, plan, count };
        // SAFETY:
        // - `bytes` is at most the packed bytes of both sides (checked above);
        // - the elements of the target lie in the window (`locate`), which is mapped as long as the window lives;
        //   other processes may access them too, which changes values only;
        // - the elements `near` are readable, or writable, and the sides do not overlap (the condition of `# Safety`);
        // - each side of `fetch` is one run (`Elements::run`).
        unsafe {
            match call {
                Call::Put => copy_raw(*near, far, 0..bytes),
                Call::Get => match far.run().zip(near.run()) {
                    Some((from, to)) => contiguous::fetch(from, to, bytes as usize),
                    None => copy_raw(far, *near, 0..bytes),
                },
            }
        }
        self.note_stores();
        Ok(())
    }
}
