//! Reading and writing: all combinations of Table 14.1 of MPI-5.0 (13.1 of MPI-2.2).
//!
//! An access names a position (an explicit offset, the file pointer of the rank, the shared file pointer), a
//! direction, and whether all ranks make it together. It blocks, runs in the background
//! ([`File::start_raw`]), or is split into a beginning and an end. Collective accesses with the shared file
//! pointer are ordered by rank.
//!
//! A file pointer moves by the amount that was asked for, when the access begins.
//!
//! A collective access exchanges no data. If it writes, the ranks first agree that the arguments of all ranks are
//! right, so that a wrong argument on one rank keeps all ranks from writing. Then every rank moves its own part, and
//! the ranks agree on the error. Each rank reports its own number of bytes.

use super::agree::{Turn, Waiter, settled, told, word};
use super::background::{self, Agreement, Job, Task, status_of};
use super::file::{File, Inner, Split, refused};
use super::locks::Span;
use super::mode::Mode;
use super::representation::Representation;
use super::transfer::{self, Memory, Transfer, Transferred};
use super::view::View;
use crate::comm::{Operation, readable, writable};
use crate::commit::bytes;
use crate::endpoint::progress::{Awaited, Endpoint};
use crate::message::Status;
use crate::shm::waiting::Kind;
use crate::sys::files::FileKind;
use crate::sys::fork;
use crate::tools::counting::{self, Counter, Subject};
use crate::{Error, ErrorKind, FileErrorKind, Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use typepack_engine::Elements;

/// The position of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// An explicit offset, in etypes.
    At(i64),
    /// This rank's file pointer.
    Individual,
    /// The file pointer that all ranks share.
    Shared,
}

/// An access, without its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// True if the access writes the file, false if the access reads the file.
    pub write: bool,
    /// Where the access begins.
    pub position: Position,
    /// True if all ranks make the access together. With the shared file pointer, the accesses of the ranks are
    /// then ordered by rank.
    pub collective: bool,
}

/// Returns the middle part of the names of the functions that begin and end a split collective access, for example
/// `write_at_all` of `MPI_File_write_at_all_begin`.
fn split_name(write: bool, position: Position) -> &'static str {
    match (write, position) {
        (false, Position::At(_)) => "read_at_all",
        (false, Position::Individual) => "read_all",
        (false, Position::Shared) => "read_ordered",
        (true, Position::At(_)) => "write_at_all",
        (true, Position::Individual) => "write_all",
        (true, Position::Shared) => "write_ordered",
    }
}

impl Access {
    const fn of(position: Position) -> Self {
        Self { write: false, position, collective: false }
    }

    /// An access at etype `offset` of the view.
    pub const fn at(offset: u64) -> Self {
        // An offset that is too large becomes negative, and the access refuses it.
        Self::of(Position::At(offset as i64))
    }

    /// An access at this rank's file pointer.
    pub const fn next() -> Self {
        Self::of(Position::Individual)
    }

    /// An access at the file pointer that all ranks share.
    pub const fn shared() -> Self {
        Self::of(Position::Shared)
    }

    /// The same access, made by all ranks together.
    pub const fn together(self) -> Self {
        Self { collective: true, ..self }
    }
}

/// A nonblocking access that has been started.
#[derive(Debug)]
#[must_use = "the access is complete only when its operation is"]
pub struct Started {
    /// The operation. The calls of [`Messages`](crate::Messages) complete it.
    pub operation: Operation,
    /// Counts as an access that is under way. The owner drops this value when the operation is complete.
    pub pending: Pending,
}

/// Stands for an access that is under way. A file with such accesses cannot be closed.
#[derive(Debug)]
pub struct Pending(Arc<AtomicUsize>);

impl Pending {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count.clone())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The facts about an access after its checks.
struct Checked<'a> {
    memory: Elements<&'a Plan>,
    view: Arc<View>,
    bytes: u64,
    /// The number of etypes.
    etypes: u64,
}

impl Inner {
    fn check<'a>(
        &self,
        access: Access,
        memory: Result<&Elements<&'a Plan>>,
    ) -> Result<Checked<'a>> {
        let memory = *memory?;
        if fork::is_child() {
            // The child has neither the windows nor the endpoint of its parent.
            let detail = "a forked child of a rank cannot access files; it may exec or exit";
            return Err(Error::new(ErrorKind::State, "process", detail));
        }
        if access.write && !self.mode.writes() {
            let detail = "the file was opened for reading only";
            return Err(refused(FileErrorKind::ReadOnly, "file", detail));
        }
        if !access.write && !self.mode.reads() {
            let detail = "the file was opened for writing only";
            return Err(refused(FileErrorKind::Access, "file", detail));
        }
        if self.mode.contains(Mode::SEQUENTIAL) && access.position != Position::Shared {
            let detail = "the file was opened for access in sequence, by the shared file pointer";
            return Err(refused(FileErrorKind::Operation, "file", detail));
        }
        let view = self.state().view.clone();
        let bytes = view.bytes_of(&memory)?;
        // This is the thread that calls MPI, so the extent function of the user may run here.
        let representation = view.representation();
        if !matches!(representation, Representation::External32)
            && representation.converts()
            && representation.converter(access.write).is_none()
            && bytes != memory.plan.packed_bytes(memory.count)?
        {
            let detail = "the data representation has no conversion function for this direction, but its sizes \
                          in the file differ from those in memory";
            let kind = ErrorKind::Engine(crate::ErrorClass::CONVERSION);
            return Err(Error::new(kind, "datarep", detail));
        }
        if !bytes.is_multiple_of(view.etype_bytes()) {
            let detail = format!(
                "the elements have {bytes} bytes, which is not a multiple of the etype's {} bytes",
                view.etype_bytes()
            );
            let kind = ErrorKind::Engine(crate::ErrorClass::TYPE);
            return Err(Error::new(kind, "datatype", detail));
        }
        let etypes = bytes / view.etype_bytes();
        match access.position {
            Position::At(offset) => {
                let at = u64::try_from(offset).map_err(|_| {
                    Error::new(ErrorKind::Argument, "offset", format!("{offset} is negative"))
                })?;
                reach(&view, at, bytes)?;
            }
            Position::Individual => {
                reach(&view, self.state().position, bytes)?;
            }
            // The pointer may move until the access begins.
            Position::Shared => {}
        }
        Ok(Checked { memory, view, bytes, etypes })
    }

    /// Returns the view byte at which a checked access begins, and moves the file pointer.
    fn begin(&self, position: Position, checked: &Checked<'_>) -> Result<u64> {
        let at = match position {
            Position::At(offset) => offset as u64,
            Position::Individual => {
                let mut state = self.state();
                let at = state.position;
                reach(&checked.view, at, checked.bytes)?;
                state.position = at + checked.etypes;
                at
            }
            Position::Shared => {
                let fits = |at| reach(&checked.view, at, checked.bytes);
                return Ok(self.words.advance(checked.etypes, fits)?.1);
            }
        };
        reach(&checked.view, at, checked.bytes)
    }

    /// Agrees on the positions of an ordered access: each rank begins where the rank before it ends.
    /// Returns the view byte at which this rank's access begins. The outer result is an error on all ranks.
    fn begin_ordered<'a>(
        &self,
        checked: Result<Checked<'a>>,
    ) -> Result<Result<(Checked<'a>, u64)>> {
        let (rank, size) = (self.comm.rank(), self.comm.size());
        let etypes = checked.as_ref().map_or(0, |checked| checked.etypes);
        let mine = [word(&checked, rank), etypes as i64];
        let mut all = vec![[0i64; 2]; size];
        let byte = bytes()?;
        let part = |words: *mut [i64; 2]| Elements { origin: words.cast(), plan: byte, count: 16 };
        let base = all.as_mut_ptr();
        let parts: Vec<_> = (0..size).map(|rank| part(base.wrapping_add(rank))).collect();
        let own = part((&raw const mine).cast_mut());
        // SAFETY: `own` describes the 16 bytes of `mine`, which the call only reads. `parts` describes the
        // elements of `all`, which no other code accesses before the call returns.
        unsafe { self.comm.allgather_raw(Some(own), &parts)? };
        let agreed = all.iter().map(|words| words[0]).max().unwrap_or(0);
        let checked = settled(&self.comm, agreed, checked)?;
        let sum = |words: &[[i64; 2]]| {
            words.iter().try_fold(0u64, |sum, words| sum.checked_add(words[1] as u64))
        };
        // All ranks have the same view, so the first rank can tell whether the view reaches far enough.
        let first = told(&self.comm, || {
            let total = sum(&all).ok_or_else(|| {
                let detail = "the elements of all ranks are more than 2^64 - 1 etypes";
                Error::new(ErrorKind::Argument, "count", detail)
            })?;
            let bytes = checked.view.start(total)?;
            Ok(self.words.advance(total, |at| reach(&checked.view, at, bytes))?.0)
        })?;
        let at = first.saturating_add(sum(&all[..rank]).unwrap_or(u64::MAX));
        Ok(reach(&checked.view, at, checked.bytes).map(|start| (checked, start)))
    }

    /// Finds out where an access begins, and moves the file pointer. `meets` says whether the ranks agree on
    /// their arguments before the access begins. The outer result is an error on all ranks of a collective
    /// access; the inner result is one of this rank only.
    fn started<'a>(
        &self,
        access: Access,
        checked: Result<Checked<'a>>,
        meets: bool,
    ) -> Result<Result<(Checked<'a>, u64)>> {
        let nothing = |error: Error| error.of_message(Status { source: 0, tag: 0, bytes: 0 });
        if access.collective && access.position == Position::Shared {
            return self.begin_ordered(checked).map_err(nothing);
        }
        let checked =
            if meets { Ok(self.synchronised(checked).map_err(nothing)?) } else { checked };
        Ok(checked.and_then(|checked| {
            let start = self.begin(access.position, &checked)?;
            Ok((checked, start))
        }))
    }

    /// Makes an access that has started, in a thread of the program. If the start has failed, returns its error.
    ///
    /// # Safety
    ///
    /// - The condition of [`run`](Self::run) holds for the memory of the access.
    unsafe fn make(&self, write: bool, started: &Result<(Checked<'_>, u64)>) -> Transferred {
        let made = match started {
            // SAFETY: the caller guarantees the memory of the access (the condition of `# Safety`).
            Ok((Checked { memory, view, .. }, start)) => self
                .queue_up(write)
                .map(|()| unsafe { self.run(view, write, *memory, *start, Waiter::Program) })
                .map(|moved| counted(write, moved)),
            Err(error) => Err(error.clone()),
        };
        made.unwrap_or_else(|error| (0, Err(error)))
    }

    /// Moves the data of an access in the calling thread. Returns the number of bytes in memory.
    ///
    /// # Safety
    ///
    /// - The elements of `memory` are valid as the access needs them, and nobody else changes them (or, if
    ///   the access reads the file, accesses them) until the call returns.
    pub unsafe fn run(
        &self,
        view: &View,
        write: bool,
        layout: Elements<&Plan>,
        start: u64,
        waiter: Waiter,
    ) -> Transferred {
        if write {
            self.written.store(true, Ordering::Relaxed);
        }
        if let Some(converter) = view.representation().converter(write) {
            // SAFETY: the caller guarantees that the elements stay valid for the direction of the access
            // until the call returns.
            return unsafe { self.run_converted(view, write, layout, start, converter, waiter) };
        }
        let memory = match Memory::new(layout, view) {
            Ok(memory) if memory.bytes() > 0 => memory,
            Ok(_) => return (0, Ok(())),
            Err(error) => return (0, Err(error)),
        };
        let _turn = match self.turn(view, write, start, memory.bytes(), waiter) {
            Ok(turn) => turn,
            Err(error) => return (0, Err(error)),
        };
        let transfer = Transfer { view, write, waiter: self.waits(waiter) };
        // SAFETY: the caller guarantees that the elements stay valid for the direction of the access until
        // the call returns (the condition of `# Safety`).
        let (bytes, result) =
            unsafe { transfer::run(&self.target, &self.windows, &transfer, &memory, start) };
        (view.in_memory(bytes), result)
    }

    /// Returns the endpoint that makes progress while `waiter` waits for a stream.
    pub fn waits(&self, waiter: Waiter) -> Option<&Endpoint> {
        (waiter == Waiter::Program).then(|| &**self.endpoint())
    }

    /// Locks the bytes of this access if the file is in atomic mode, or the direction of the access if the file is a
    /// stream. Waits until no other rank holds them. The access moves `bytes` view bytes from `start` on. Returns
    /// `None` if the access needs no lock.
    pub fn turn(
        &self,
        view: &View,
        write: bool,
        start: u64,
        bytes: u64,
        waiter: Waiter,
    ) -> Result<Option<Turn<'_>>> {
        let span = if self.target.kind == FileKind::Stream {
            // A stream has one position for all ranks, so accesses in the same direction take turns. Reads and writes
            // have different locks: a rank that waits for data must not stop the ranks that write these data.
            let low = u64::from(write);
            Span { low, high: low + 1, write: true }
        } else if !self.state().atomic || bytes == 0 {
            return Ok(None);
        } else {
            let range = view.span(start, bytes)?;
            Span { low: range.start, high: range.end, write }
        };
        self.words.lock(&self.comm, span, waiter).map(Some)
    }

    /// Waits until the accesses in the background that read (or write) a stream are over, because an access
    /// that comes later moves the data that come later.
    pub fn queue_up(&self, write: bool) -> Result<()> {
        if self.target.kind != FileKind::Stream {
            return Ok(());
        }
        let channel = &self.channels[usize::from(write)];
        let awaited = Awaited::Work(Kind::File);
        self.endpoint().attend_outside(&awaited, || channel.is_quiet().then_some(()))
    }

    /// Returns `own` if all ranks have succeeded, and otherwise an error of the same class on all ranks. Does
    /// the same as `agree` without messages. Only blocking accesses meet in this way.
    pub fn synchronised<T>(&self, own: Result<T>) -> Result<T> {
        let mine = word(&own, self.comm.rank());
        let mut agreed = 0;
        self.words.meet(&self.comm, mine as u64, |word| agreed = agreed.max(word as i64))?;
        settled(&self.comm, agreed, own)
    }
}

/// Returns whether the ranks of an access agree on their arguments by an agreement that comes before the access.
/// The agreement on the positions of an ordered access is one on the arguments too.
fn agrees_first(access: Access) -> bool {
    access.write && access.collective && access.position != Position::Shared
}

/// Counts an access that has moved data in this direction, if somebody asks for that.
#[inline]
pub(super) fn counted(write: bool, moved: Transferred) -> Transferred {
    if counting::is_wanted(Subject::Files) {
        let (accesses, bytes) = match write {
            true => (Counter::WRITES, Counter::BYTES_WRITTEN),
            false => (Counter::READS, Counter::BYTES_READ),
        };
        accesses.add(1);
        bytes.add(moved.0);
    }
    moved
}

/// Returns the view byte at which etype `at` begins. Checks that the view reaches as far as an access of
/// `bytes` bytes there.
fn reach(view: &View, at: u64, bytes: u64) -> Result<u64> {
    let start = view.start(at)?;
    view.reach(start, bytes)?;
    Ok(start)
}

impl File {
    /// Makes an access and waits for it. Returns the status, which has the number of bytes.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the elements of `part` are readable (if the access writes the file) or
    ///   writable (if it reads the file), and nobody else changes them or, if it reads the file, accesses
    ///   them.
    ///
    /// # Errors
    /// - [`FileErrorKind::ReadOnly`] or [`FileErrorKind::Access`] if the mode of the file does not allow the
    ///   access, and [`FileErrorKind::Operation`] if the file is used in sequence and the access is not.
    /// - [`ErrorKind::Argument`] if the offset is negative or too large.
    /// - `MPI_ERR_TYPE` if the elements are not whole etypes.
    /// - The system's error, with the number of bytes that were moved ([`Error::received`]).
    ///
    /// If the access is collective, all ranks return an error of the same class.
    pub unsafe fn access_raw(&self, access: Access, part: &Elements<&Plan>) -> Result<Status> {
        // SAFETY: the caller guarantees that the elements stay valid until this call returns (the condition
        // of `# Safety`).
        unsafe { self.blocking(access, Ok(part)) }
    }

    /// Takes part in an access that the other ranks make, with an error that this rank has found in its own
    /// arguments, so that the other ranks do not wait for this one. `background` says whether the access is
    /// nonblocking or split. Does nothing if the access is not collective.
    pub fn refuse(&self, access: Access, background: bool, error: Error) {
        if access.collective {
            // The result is the error that the caller has already. No memory is used, because there is an
            // error instead of a part.
            // SAFETY: an access without a part uses no memory.
            let _same = unsafe {
                match background {
                    true => self.starting(access, Err(error)).err(),
                    false => self.blocking(access, Err(error)).err(),
                }
            };
        }
    }

    /// Makes an access and waits for it. `part` is the memory of the access, or the error that this rank has found in
    /// its arguments.
    ///
    /// # Safety
    ///
    /// - The condition of [`access_raw`](Self::access_raw) holds if there is a part.
    unsafe fn blocking(&self, access: Access, part: Result<&Elements<&Plan>>) -> Result<Status> {
        let inner = &self.inner;
        let started = inner.started(access, inner.check(access, part), agrees_first(access))?;
        // SAFETY: the caller guarantees that the elements of a part stay valid until this call returns (the condition
        // of `# Safety`).
        let run = || unsafe { inner.make(access.write, &started) };
        if !access.collective {
            let (bytes, result) = run();
            return status_of(bytes, result);
        }
        let (bytes, result) =
            if inner.target.kind == FileKind::Stream { in_rank_order(inner, run)? } else { run() };
        status_of(bytes, inner.synchronised(result))
    }

    /// Starts an access in the background.
    ///
    /// # Safety
    ///
    /// - Until the operation is complete or detached, the elements of `part` are readable (if the access
    ///   writes the file) or writable (if it reads the file), and nobody else changes them or, if it reads
    ///   the file, accesses them.
    ///
    /// # Errors
    /// Returns the errors of [`access_raw`](Self::access_raw) that a rank finds in its own arguments. Any other error
    /// is the result of the operation.
    pub unsafe fn start_raw(&self, access: Access, part: &Elements<&Plan>) -> Result<Started> {
        // SAFETY: the caller guarantees that the elements stay valid until the operation is complete or
        // detached (the condition of `# Safety`).
        unsafe { self.starting(access, Ok(part)) }
    }

    /// Starts an access in the background. `part` is the memory of the access, or the error that this rank has found in
    /// its arguments.
    ///
    /// # Safety
    ///
    /// - The condition of [`start_raw`](Self::start_raw) holds if there is a part.
    unsafe fn starting(&self, access: Access, part: Result<&Elements<&Plan>>) -> Result<Started> {
        let inner = &self.inner;
        // The call must not wait for the other ranks, so the agreements take place in the background.
        let started = inner.started(access, inner.check(access, part), false)?;
        let agreement = || {
            let place = inner.comm.next_place();
            Agreement { comm: inner.comm.clone(), place }
        };
        let before = agrees_first(access).then(agreement);
        let after = access.collective.then(agreement);
        let error = started.as_ref().err().cloned();
        if let (Some(error), false) = (&error, access.collective) {
            return Err(error.clone());
        }
        // An ordered access to a stream is made at once, because only the order in which the ranks call the
        // system orders their data.
        let stream = inner.target.kind == FileKind::Stream;
        let ordered = stream && access.collective && access.position == Position::Shared;
        // SAFETY: the caller guarantees that the elements of a part stay valid until the operation is complete or
        // detached (the condition of `# Safety`), which is after this call.
        let run = |started: &_| unsafe { inner.make(access.write, started) };
        let done = ordered.then(|| in_rank_order(inner, || run(&started))).transpose()?;
        let work = started.and_then(|(checked, start)| {
            // The functions of the user run in this thread.
            let converter = checked.view.representation().converter(access.write);
            let task = match (done, converter) {
                (Some(done), _) => Task::Done(done),
                (None, Some(converter)) if agrees_first(access) => {
                    // SAFETY: the caller guarantees that the elements stay readable until the operation is
                    // complete or detached (the condition of `# Safety`), which is after this call.
                    let data =
                        unsafe { inner.converted_whole(&checked.view, checked.memory, converter)? };
                    Task::Converted { view: checked.view, data, start }
                }
                (None, Some(_)) => Task::Done(run(&Ok((checked, start)))),
                (None, None) => {
                    let Checked { memory, view, .. } = checked;
                    Task::Access { view, write: access.write, memory: memory.keep(), start }
                }
            };
            Ok(Job { file: inner.clone(), task })
        });
        let pending = Pending::new(&inner.outstanding);
        // SAFETY: the caller guarantees that the elements of a part stay valid until the operation is
        // complete or detached (the condition of `# Safety`).
        let operation = unsafe { background::start(inner.endpoint(), work, before, after)? };
        match error {
            None => Ok(Started { operation, pending }),
            Some(error) => {
                // The other ranks learn of the error from the agreement, which continues.
                if let Operation::Pending(id) = operation {
                    inner.endpoint().detach(id);
                }
                Err(error)
            }
        }
    }

    /// Begins a split collective access. A file has at most one of them at a time.
    ///
    /// # Safety
    ///
    /// - The conditions of [`start_raw`](Self::start_raw) hold until [`end`](Self::end) has returned.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Request`] if another split access has begun, and the errors of
    /// [`start_raw`](Self::start_raw).
    pub unsafe fn begin_raw(&self, access: Access, part: &Elements<&Plan>) -> Result<()> {
        let busy = self.inner.state().split.is_some().then(|| {
            let detail = "a split collective access has begun and not ended";
            Error::new(ErrorKind::Request, "file", detail)
        });
        let address = part.origin as usize;
        let part = busy.map_or(Ok(part), Err);
        // SAFETY: the caller guarantees that the elements stay valid until the access has ended (the
        // condition of `# Safety`).
        let Started { operation, pending } = unsafe { self.starting(access, part)? };
        // The split access itself counts as an access under way, so `pending` is not needed.
        drop(pending);
        let Access { write, position, .. } = access;
        let position = if matches!(position, Position::At(_)) { Position::At(0) } else { position };
        self.inner.state().split = Some(Split { write, position, address, operation });
        Ok(())
    }

    /// Ends a split collective access and waits for it. `access` and `address` must be those with which the access has
    /// begun; an explicit offset may have any value. Returns the status, which has the number of bytes.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Request`] if no such access has begun, [`ErrorKind::Buffer`] if it began with
    /// other memory, and the errors of [`access_raw`](Self::access_raw).
    pub fn end(&self, access: Access, address: usize) -> Result<Status> {
        let mut state = self.inner.state();
        let position = match access.position {
            Position::At(_) => Position::At(0),
            position => position,
        };
        let Some(split) = state.split.take_if(|split| {
            (split.write, split.position, split.address) == (access.write, position, address)
        }) else {
            let (kind, detail) = match &state.split {
                None => (ErrorKind::Request, "no split collective access has begun".to_owned()),
                Some(split) if (split.write, split.position) != (access.write, position) => {
                    let started = split_name(split.write, split.position);
                    let detail = format!(
                        "MPI_File_{started}_begin began the split collective access, so only \
                         MPI_File_{started}_end can end it"
                    );
                    (ErrorKind::Request, detail)
                }
                Some(_) => {
                    let detail = "the split collective access began with another buffer";
                    (ErrorKind::Buffer, detail.to_owned())
                }
            };
            return Err(Error::new(kind, "file", detail));
        };
        drop(state);
        match split.operation {
            Operation::Done(status) => Ok(status),
            Operation::Pending(id) => self.inner.endpoint().wait(id, ""),
        }
    }
}

/// Calls `run` on one rank after another.
fn in_rank_order<R>(inner: &Inner, mut run: impl FnMut() -> R) -> Result<R> {
    let mut result = None;
    for rank in 0..inner.comm.size() {
        if rank == inner.comm.rank() {
            result = Some(run());
        }
        inner.comm.barrier()?;
    }
    result.ok_or_else(|| Error::new(ErrorKind::Internal, "file", "this rank had no turn"))
}

/// Defines the typed calls that read and write slices of plain values.
macro_rules! slices {
    ($($(#[$doc:meta])* $read:ident $write:ident ($($offset:ident)?) $position:expr, $collective:expr;)*) => {
        $(
            $(#[$doc])*
            /// Reads into `buf` and returns the number of bytes, which is less than the size of `buf` only
            /// if the file ends.
            ///
            /// # Errors
            /// Returns the errors of [`File::access_raw`].
            pub fn $read<T: NoUninit + AnyBitPattern>(
                &self,
                $($offset: u64,)?
                buf: &mut [T],
            ) -> Result<usize> {
                let access = Access { write: false, position: $position, collective: $collective };
                self.read_as(access, buf, bytes()?, size_of_val::<[T]>(buf) as u64)
            }

            $(#[$doc])*
            /// Writes `buf`.
            ///
            /// # Errors
            /// Returns the errors of [`File::access_raw`].
            pub fn $write<T: NoUninit>(&self, $($offset: u64,)? buf: &[T]) -> Result<()> {
                let access = Access { write: true, position: $position, collective: $collective };
                self.write_as(access, buf, bytes()?, size_of_val::<[T]>(buf) as u64)
            }
        )*
    };
}

impl File {
    /// Reads `count` elements of `plan`'s type into `buf`, and returns the number of bytes. `access` gives the
    /// position, and says whether all ranks take part; its field `write` has no meaning here.
    ///
    /// # Errors
    /// Returns an engine error if `buf` does not hold the elements, and the errors of
    /// [`access_raw`](Self::access_raw).
    pub fn read_as<T: NoUninit + AnyBitPattern>(
        &self,
        access: Access,
        buf: &mut [T],
        plan: &Plan,
        count: u64,
    ) -> Result<usize> {
        let access = Access { write: false, ..access };
        let part = writable(buf, 0, plan, count, "buf");
        let part = part.inspect_err(|error| self.refuse(access, false, error.clone()))?;
        // SAFETY: `buf` holds the elements (`writable` has checked this) and is mutably borrowed until the
        // call returns.
        let status = unsafe { self.access_raw(access, &part)? };
        Ok(status.bytes as usize)
    }

    /// Writes `count` elements of `plan`'s type from `buf`. `access` gives the position, and says whether all ranks
    /// take part; its field `write` has no meaning here.
    ///
    /// # Errors
    /// Returns an engine error if `buf` does not hold the elements, and the errors of
    /// [`access_raw`](Self::access_raw).
    pub fn write_as<T: NoUninit>(
        &self,
        access: Access,
        buf: &[T],
        plan: &Plan,
        count: u64,
    ) -> Result<()> {
        let access = Access { write: true, ..access };
        let part = readable(buf, 0, plan, count, "buf");
        let part = part.inspect_err(|error| self.refuse(access, false, error.clone()))?;
        // SAFETY: `buf` holds the elements (`readable` has checked this) and is borrowed until the call
        // returns.
        unsafe { self.access_raw(access, &part)? };
        Ok(())
    }

    slices! {
        /// At etype `offset` of the view.
        read_at write_at (offset) Position::At(offset as i64), false;
        /// At etype `offset` of the view, together with all ranks.
        read_at_all write_at_all (offset) Position::At(offset as i64), true;
        /// At this rank's file pointer.
        read write () Position::Individual, false;
        /// At this rank's file pointer, together with all ranks.
        read_all write_all () Position::Individual, true;
        /// At the shared file pointer.
        read_shared write_shared () Position::Shared, false;
        /// At the shared file pointer, one rank after another.
        read_ordered write_ordered () Position::Shared, true;
    }
}
