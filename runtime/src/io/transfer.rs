//! Moves data between memory and a file through a view.
//!
//! The callers have checked the arguments and know where in the view the access begins. A transfer returns
//! how many view bytes it has moved and the error that ended it. Reads end at the end of the file without
//! an error.
//!
//! View bytes of an access may be in another order than in the file (`view.rs`). Data always moves in the order of the
//! view, so the later of two bytes at the same offset wins.
//!
//! An access uses the mapped window of the file ([`Windows`]) if the pieces of its view are short and close. Otherwise
//! it makes system calls (`calls.rs`). That is the first choice; `choosers.rs` measures both ways where either may be
//! the faster one.
//!
//! An access whose view has many short pieces moves its data by one copy between memory and the window, and not by one
//! system call for each piece. The window reaches beyond the end of the file, so it need not be mapped anew when the
//! file grows. The file itself grows only by writing: a write beyond the end first writes its last piece by `pwrite`.
//! So the file never gets longer than what was written, and two ranks that extend the file at the same time do not cut
//! off each other's data.
//!
//! Before a write stores into the window, it reserves the space of the file's pages, or finds that they have space,
//! so that a full file system is an error and not a signal. A write into holes that touches only some pages makes
//! system calls, so that the other pages stay holes. A page may be missing nevertheless, because another process has
//! truncated the file. Such a page breaks the mapping (`sys/mapped.rs`); then the whole copy is done again through a
//! new window, and after several times by system calls.
//!
//! These files are not mapped: streams, devices, files that are open for writing only, files on file systems that
//! `files::is_local` does not know, and every file whose mapping the system refuses.

use super::agree::system;
use super::calls;
use super::choosers::{Access, Choosers};
use super::representation::Representation;
use super::view::View;
use crate::endpoint::progress::Endpoint;
use crate::settings::FileMethod;
use crate::sys::files::{self, FileKind, SizeSignal};
use crate::sys::mapped::{self, FileMapping};
use crate::tools::counting::{self, Counter, Subject};
use crate::{Error, ErrorKind, Plan, Result};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use typepack_engine::external32::{External32, pack_external_raw, unpack_external_raw};
use typepack_engine::reserve::fallible;
use typepack_engine::{Elements, pack_external_size};

/// Greatest mean distance in bytes between the starts of two pieces of a view at which an access touches every
/// page of the file.
const DENSE: u64 = 4 << 10;

/// Greatest mean distance in bytes between the starts of two pieces of a view whose accesses use the mapped window.
/// Views with a greater distance use system calls, which are fast for long pieces, also if the file is not in memory.
const CLOSE: u64 = 128 << 10;

/// Number of times that an access maps its window anew because pages of the file were missing. A copy through the
/// window, even one that meets missing pages, costs less than a tenth of the system calls for its pieces if these are
/// short.
const ATTEMPTS: usize = 8;

/// An open file, as a transfer needs it.
#[derive(Debug)]
pub(super) struct Target {
    /// The descriptor.
    pub fd: OwnedFd,
    /// What the file is.
    pub kind: FileKind,
    /// How system calls read close pieces.
    pub sieve: Sieve,
}

/// How system calls read pieces of a view: separately, or as a window of the file that has several of them (data
/// sieving). Hints change this while I/O threads read.
#[derive(Debug)]
pub(super) struct Sieve {
    window: AtomicU64,
    always: AtomicBool,
    never: AtomicBool,
}

impl Default for Sieve {
    fn default() -> Self {
        let window = AtomicU64::new(Self::WINDOW);
        Self { window, always: AtomicBool::new(false), never: AtomicBool::new(false) }
    }
}

impl Sieve {
    /// Size of a window in bytes if no hint changes it.
    pub const WINDOW: u64 = 1 << 20;

    /// Sets the size of windows in bytes, and whether windows are used (`None` leaves this to the library).
    pub fn set(&self, window: u64, used: Option<bool>) {
        self.window.store(window.max(1), Ordering::Relaxed);
        self.always.store(used == Some(true), Ordering::Relaxed);
        self.never.store(used == Some(false), Ordering::Relaxed);
    }

    /// Returns the size of windows for a view whose pieces are close or not; `None` if pieces are read separately.
    pub fn window(&self, close: bool) -> Option<u64> {
        let used = close && !self.never.load(Ordering::Relaxed);
        let used = used || self.always.load(Ordering::Relaxed);
        used.then(|| self.window.load(Ordering::Relaxed))
    }
}

/// Size of a window, and of the steps at which windows begin, in bytes.
const WINDOW: u64 = 1 << 30;

/// The window of a file, and what is known about the file's pages.
#[derive(Debug)]
pub(super) struct Windows {
    /// False if this file cannot be mapped, or must not be.
    usable: AtomicBool,
    writable: bool,
    /// True if views that are one run of the file are mapped too.
    always: bool,
    /// The measured choices between the window and system calls; `None` if nothing is measured.
    choosers: Option<Arc<Choosers>>,
    /// The highest end of an access so far, as an offset in the file.
    reached: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    window: Option<Arc<Window>>,
    /// A range of the file without holes.
    reserved: Range<u64>,
}

/// A mapped part of a file.
#[derive(Debug)]
pub(super) struct Window {
    map: FileMapping,
    /// The file offset of the first byte.
    start: u64,
    /// The byte of the mapping at which the last page begins into which the file has reached, as far as this window
    /// knows; 0 if the window knows nothing.
    last: AtomicUsize,
}

impl Window {
    /// Returns the address at which byte 0 of the file would be if the mapping reached back to it.
    pub fn zero(&self) -> *mut u8 {
        self.map.base().as_ptr().wrapping_sub(self.start as usize)
    }

    /// Returns the file offset behind the last byte.
    fn end(&self) -> u64 {
        self.start + self.map.len() as u64
    }

    /// Returns whether copies to or from the window may have gone wrong.
    pub fn is_broken(&self) -> bool {
        self.map.is_broken()
    }

    /// Takes note of the size of the file.
    pub fn learn(&self, size: u64) {
        let last = size.min(self.end()).saturating_sub(self.start + 1) as usize;
        self.last.store(self.map.page_of(last), Ordering::Relaxed);
    }

    /// Returns the file offset up to which a read probably needs no look at the size of the file. After such a read,
    /// [`still_reaches`](Self::still_reaches) must return true.
    pub fn known(&self) -> u64 {
        self.start + self.last.load(Ordering::Relaxed) as u64
    }

    /// Returns whether the file reaches beyond the offset `known`, an earlier result of [`known`](Self::known). This
    /// needs no system call: the page that begins there is accessible only if the file reaches into it. If the file
    /// does not, because it has become shorter, the window is broken afterwards.
    pub fn still_reaches(&self, known: u64) -> bool {
        self.map.reaches((known - self.start) as usize)
    }
}

impl Windows {
    /// Makes the windows of a file. `writable` says whether the file is open for reading and writing. `choosers` are
    /// the measured choices of its file system, if choices are measured.
    pub fn new(
        target: &Target,
        readable: bool,
        writable: bool,
        method: FileMethod,
        choosers: Option<Arc<Choosers>>,
    ) -> Self {
        let usable = readable
            && target.kind == FileKind::Regular
            && match method {
                FileMethod::Calls => false,
                FileMethod::Mapped => true,
                FileMethod::Auto => files::is_local(&target.fd),
            };
        let (usable, always) = (AtomicBool::new(usable), method == FileMethod::Mapped);
        let choosers = choosers.filter(|_| method == FileMethod::Auto);
        let reached = AtomicU64::new(0);
        Self { usable, writable, always, choosers, reached, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No code under this lock can panic between two changes that belong together.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether an access may use a window. `write` says whether it writes.
    pub fn may_map(&self, write: bool) -> bool {
        self.usable.load(Ordering::Relaxed) && (self.writable || !write)
    }

    /// Returns whether accesses through a view that is one run of the file use a window.
    pub fn always(&self) -> bool {
        self.always
    }

    /// Returns the measured choices between the window and system calls; `None` if nothing is measured.
    pub fn choosers(&self) -> Option<&Choosers> {
        self.choosers.as_deref()
    }

    /// Returns an access of `bytes` view bytes from `start` on: the facts on which the choice of its way
    /// depends.
    pub fn access(&self, view: &View, write: bool, start: u64, bytes: u64) -> Access {
        // The caller has checked that the view reaches that far. If this fails nevertheless, the access counts as one
        // that grows the file.
        let last = view.highest(start, bytes.max(1)).and_then(|last| view.offset(last));
        let end = last.map_or(u64::MAX, |last| last + 1);
        let grows = end > self.reached.fetch_max(end, Ordering::Relaxed);
        Access { write, grows, bytes, piece: view.run().is_none().then(|| view.piece()) }
    }

    /// Returns the file offset at which the window that holds file offset `at` ends.
    pub fn end_of(at: u64) -> u64 {
        (at / WINDOW + 1) * WINDOW
    }

    /// Returns the window that holds file offset `at`; `None` if the file cannot be mapped.
    pub fn window(&self, target: &Target, at: u64) -> Option<Arc<Window>> {
        let mut kept = self.kept();
        let fits = |window: &&Arc<Window>| {
            (window.start..window.end()).contains(&at) && !window.is_broken()
        };
        if let Some(window) = kept.window.as_ref().filter(fits) {
            return Some(window.clone());
        }
        // The old window goes first, so that the address space holds one window of each file.
        kept.window = None;
        let start = at / WINDOW * WINDOW;
        match files::map(&target.fd, start, WINDOW as usize, self.writable) {
            Ok(map) => {
                let window = Arc::new(Window { map, start, last: AtomicUsize::new(0) });
                kept.window = Some(window.clone());
                Some(window)
            }
            Err(_) => {
                self.usable.store(false, Ordering::Relaxed);
                None
            }
        }
    }

    /// Returns whether an access may store into the pages of a range of the file. If it touches all pages of the
    /// range (`dense`), reserves their space; this fails for example if the file system is full. Otherwise the range
    /// must not have holes, because holes that the access does not touch must stay holes.
    pub fn prepare(&self, target: &Target, range: Range<u64>, dense: bool) -> bool {
        let known = self.kept().reserved.clone();
        if known.start <= range.start && range.end <= known.end {
            return true;
        }
        // One call tells about a long part of the file, so that short accesses one after another need it once.
        let filled = files::filled_until(&target.fd, range.start);
        let range = range.start..range.end.max(filled);
        let is_ready = filled >= range.end
            || dense && files::reserve(&target.fd, range.start, range.end - range.start).is_ok();
        if !is_ready {
            return false;
        }
        let touching = range.start <= known.end && known.start <= range.end && !known.is_empty();
        self.kept().reserved = match touching {
            true => known.start.min(range.start)..known.end.max(range.end),
            false => range,
        };
        true
    }

    /// Forgets what is known about the file's pages, because the file may have become shorter.
    pub fn forget(&self) {
        self.reached.store(0, Ordering::Relaxed);
        self.kept().reserved = 0..0;
        self.look_again();
    }

    /// Forgets how far the file reaches. The next read looks at the size of the file.
    pub fn look_again(&self) {
        if let Some(window) = &self.kept().window {
            window.last.store(0, Ordering::Relaxed);
        }
    }

    /// Gives up a window that is broken.
    pub fn give_up(&self, broken: &Arc<Window>) {
        let mut kept = self.kept();
        if kept.window.as_ref().is_some_and(|window| Arc::ptr_eq(window, broken)) {
            kept.window = None;
        }
        kept.reserved = 0..0;
    }
}

/// How an access moves its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer<'a> {
    /// The view.
    pub view: &'a View,
    /// True if the access writes the file.
    pub write: bool,
    /// The endpoint that makes progress while the access waits for a stream; `None` in an I/O thread.
    pub waiter: Option<&'a Endpoint>,
}

/// The number of view bytes that a transfer has moved, and the error that ended it early.
pub(super) type Transferred = (u64, Result<()>);

/// The memory of an access, and how its data is converted on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory<'a> {
    layout: Elements<&'a Plan>,
    external: Option<&'a External32>,
    /// The number of view bytes.
    bytes: u64,
}

impl<'a> Memory<'a> {
    /// Describes the memory of an access through `view`.
    ///
    /// # Errors
    /// Returns an engine error if the number of bytes does not fit in 63 bits.
    pub fn new(layout: Elements<&'a Plan>, view: &View) -> Result<Self> {
        if !matches!(view.representation(), Representation::External32) {
            let bytes = layout.plan.packed_bytes(layout.count)?;
            return Ok(Self { layout, external: None, bytes });
        }
        let external = layout.plan.external32()?;
        let bytes = pack_external_size(external, layout.count)?;
        Ok(Self { layout, external: Some(external), bytes })
    }

    /// Describes bytes that are already in the form of the file.
    pub fn of_bytes(layout: Elements<&'a Plan>) -> Self {
        Self { layout, external: None, bytes: layout.count }
    }

    /// Returns the number of view bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the address of the data, if the data is one run of memory that needs no conversion.
    pub fn run(&self) -> Option<*mut u8> {
        if self.external.is_none() { self.layout.run() } else { None }
    }

    /// Packs the view bytes of `range` to `to`.
    ///
    /// # Safety
    ///
    /// - `range` ends at or before [`bytes`](Self::bytes), and the elements are readable.
    /// - `to` is writable for the length of the range, and does not overlap the elements.
    ///
    /// # Errors
    /// Returns `MPI_ERR_CONVERSION` if a value does not fit in the representation of the file.
    pub unsafe fn pack(&self, range: Range<u64>, to: *mut u8) -> Result<()> {
        match self.external {
            None => {
                // SAFETY: the caller guarantees that the range lies within the elements, that they are
                // readable, and that `to` has room and does not overlap them.
                unsafe { self.layout.pack(range, to) };
                Ok(())
            }
            Some(external) => {
                let (count, origin) = (self.layout.count, self.layout.origin);
                // SAFETY: `external` belongs to the plan of the elements, which the caller guarantees to be
                // readable, and `to` has room for the range.
                let packed = unsafe { pack_external_raw(external, count, origin, range, to) };
                packed.map_err(Error::from)
            }
        }
    }

    /// Unpacks the view bytes of `range`, which are at `from`. Ranges must come in order.
    ///
    /// # Safety
    ///
    /// - `range` ends at or before [`bytes`](Self::bytes), and the elements are writable.
    /// - `from` is readable for the length of the range, and does not overlap the elements.
    ///
    /// # Errors
    /// Returns an engine error if the range is not one of the elements.
    pub unsafe fn unpack(&self, range: Range<u64>, from: *const u8) -> Result<()> {
        match self.external {
            None => {
                // SAFETY: the caller guarantees that the range lies within the elements, that they are
                // writable, and that the bytes at `from` are readable and do not overlap them.
                unsafe { self.layout.unpack(range, from) };
                Ok(())
            }
            Some(external) => {
                let (count, origin) = (self.layout.count, self.layout.origin);
                // SAFETY: `external` belongs to the plan of the elements, which the caller guarantees to be
                // writable, and the bytes of the range at `from` are readable.
                let unpacked = unsafe { unpack_external_raw(external, count, origin, range, from) };
                unpacked.map_err(Error::from)
            }
        }
    }

    /// Copies `bytes` view bytes from byte `at` of this memory to view byte `start` of a mapped file, or back.
    /// `file` is the address of the view's displacement.
    ///
    /// # Safety
    ///
    /// - `at + bytes` is at most [`bytes`](Self::bytes). The elements are readable, and the pieces of the view
    ///   are mapped and writable; or, if `write` is false, the other way round.
    /// - The elements do not overlap the pieces.
    ///
    /// # Errors
    /// Returns `MPI_ERR_CONVERSION` if a value does not fit in the representation of the file.
    unsafe fn copy(
        &self,
        write: bool,
        view: &View,
        at: u64,
        file: *mut u8,
        start: u64,
        bytes: u64,
    ) -> Result<()> {
        let Elements { origin, count, .. } = self.layout;
        let map = view.map();
        // SAFETY: the caller guarantees that the bytes lie within the elements and the pieces of the view,
        // that both are valid for the direction of the copy, and that they do not overlap. `external`
        // belongs to the plan of the elements.
        unsafe {
            match (write, self.external) {
                (true, None) => map.write_raw(self.layout, at, file, start, bytes)?,
                (false, None) => map.read_raw(self.layout, at, file, start, bytes)?,
                (true, Some(external)) => {
                    map.write_external_raw(external, count, origin, at, file, start, bytes)?;
                }
                (false, Some(external)) => {
                    map.read_external_raw(external, count, origin, at, file, start, bytes)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns a buffer of `bytes` bytes.
pub(super) fn buffer(bytes: u64) -> Result<Vec<u8>> {
    let refused =
        |_| Error::new(ErrorKind::NoMemory, "memory", format!("cannot allocate {bytes} bytes"));
    let mut buffer = Vec::new();
    fallible(|| buffer.try_reserve_exact(bytes as usize)).map_err(refused)?;
    buffer.resize(bytes as usize, 0);
    Ok(buffer)
}

/// Moves the data of an access: all bytes of `memory`, from view byte `start` on.
///
/// # Safety
///
/// - The elements of `memory` are readable and nobody changes them until the call returns; or, if `write` is
///   false, they are writable and nobody else accesses them.
pub(super) unsafe fn run(
    file: &Target,
    windows: &Windows,
    transfer: &Transfer<'_>,
    memory: &Memory<'_>,
    start: u64,
) -> Transferred {
    let Transfer { view, write, .. } = *transfer;
    let _signal = write.then(SizeSignal::block);
    let mut done = 0;
    let suits = match view.run() {
        Some(_) => windows.always(),
        None => view.distance() <= CLOSE,
    };
    let can_map = view.has_order() && windows.may_map(write);
    let choosers = windows.choosers().filter(|_| can_map && memory.external.is_none());
    let (use_window, trial) = match choosers {
        Some(choosers) => choosers.pick(windows.access(view, write, start, memory.bytes()), suits),
        None => (suits && can_map, None),
    };
    let finished = |done: u64| {
        // A read that meets the end of the file moves less data, so its time says nothing about accesses of its size.
        if let (Some(choosers), Some(trial), true) = (choosers, &trial, done == memory.bytes()) {
            choosers.report(trial);
        }
    };
    if use_window {
        // SAFETY: the caller guarantees that the elements stay valid for the direction of the access.
        let moved = unsafe { through_window(file, windows, view, write, memory, start, &mut done) };
        match moved {
            Ok(true) => {
                if counting::is_wanted(Subject::Files) {
                    Counter::MAPPED.add(1);
                }
                finished(done);
                return (done, Ok(()));
            }
            Ok(false) => {}
            Err(error) => return (done, Err(error)),
        }
    }
    // SAFETY: the caller guarantees that the elements stay valid for the direction of the access. `done` is
    // at most their length, because `through_window` counts only bytes that it has moved.
    let result = unsafe { calls::run(file, transfer, memory, start, &mut done) };
    finished(done);
    (done, result)
}

/// Returns the size of a file in bytes.
fn size_of(file: &Target) -> Result<u64> {
    let facts = files::facts(&file.fd).map_err(|error| system("file", &error))?;
    Ok(facts.size)
}

/// Writes byte `byte` of `memory`, so that the file reaches as far as that byte.
///
/// # Safety
///
/// - The elements of `memory` are readable and nobody changes them until the call returns.
/// - `byte` is less than the number of view bytes of `memory`.
unsafe fn write_one(
    file: &Target,
    view: &View,
    memory: &Memory<'_>,
    start: u64,
    byte: u64,
) -> Result<()> {
    let mut last = [0u8];
    let at = view.offset(start + byte)?;
    // SAFETY: the range is one byte of the elements, which are readable, and `last` has one byte.
    unsafe { memory.pack(byte..byte + 1, last.as_mut_ptr())? };
    // SAFETY: `last` has one byte.
    let (_, result) = unsafe { files::write_at(&file.fd, last.as_ptr(), 1, at) };
    result.map_err(|error| system("file", &error))
}

/// Reads all data of an access from the mapped window, if the window knows that the file reaches that far. Such a read
/// needs no system call for the size of the file. Returns false if nothing is known or the file has become shorter;
/// then the elements have no defined value.
///
/// # Safety
///
/// - The condition of [`run`] holds for a read.
unsafe fn read_known(
    file: &Target,
    windows: &Windows,
    view: &View,
    memory: &Memory<'_>,
    start: u64,
) -> Result<bool> {
    let bytes = memory.bytes();
    if bytes == 0 {
        return Ok(false);
    }
    let span = view.span(start, bytes)?;
    let Some(window) = windows.window(file, span.start) else { return Ok(false) };
    let known = window.known();
    if span.end > known {
        return Ok(false);
    }
    let displacement = window.zero().wrapping_add(view.displacement() as usize);
    // SAFETY: all view bytes of the access lie between the start of `span`, which lies in the window, and `known`,
    // which is at most the end of the window. The memory of the window
    // stays accessible whatever happens to the file. The elements are valid (the condition of `# Safety`), and the
    // window, which this process made, is no memory of the program.
    unsafe { memory.copy(false, view, 0, displacement, start, bytes)? };
    if window.still_reaches(known) {
        return Ok(true);
    }
    windows.give_up(&window);
    Ok(false)
}

/// Moves data between memory and the mapped window, and counts it in `done`. Returns false if system calls
/// must move the rest.
///
/// # Safety
///
/// - The condition of [`run`] holds.
unsafe fn through_window(
    file: &Target,
    windows: &Windows,
    view: &View,
    write: bool,
    memory: &Memory<'_>,
    start: u64,
    done: &mut u64,
) -> Result<bool> {
    let _signal = mapped::admit();
    // SAFETY: the caller guarantees the condition of `run`, which `read_known` has too.
    if !write && unsafe { read_known(file, windows, view, memory, start)? } {
        *done = memory.bytes();
        return Ok(true);
    }
    let (mut size, mut attempts) = (size_of(file)?, ATTEMPTS);
    let bytes = memory.bytes();
    while *done < bytes {
        let at = start + *done;
        // All view bytes that are left, if they lie in one window. Otherwise the next ones in the order of the file
        // that do.
        let mut length = bytes - *done;
        let mut span = view.span(at, length)?;
        if span.end > Windows::end_of(span.start) {
            let end = Windows::end_of(view.offset(at)?);
            length = view.below(at, view.ordered(at, length), end)?;
            span = view.span(at, length)?;
        }
        let Some(window) = windows.window(file, span.start).filter(|_| length > 0) else {
            return Ok(false);
        };
        window.learn(size);
        let (low, high) = (span.start, span.end);
        if write {
            // The space comes first: without it the file must not get longer than its data.
            let dense = view.is_dense(at, length, high - low, DENSE);
            if !windows.prepare(file, low..high, dense) {
                return Ok(false);
            }
        }
        if !write {
            length = view.below(at, length, size)?;
        } else if high > size {
            // The file must reach to the end of the data. So a system call writes the byte at the greatest offset,
            // which extends the file. If that fails, system calls write as much of the data as they can.
            let last = view.highest(at, length)? - start;
            // SAFETY: the caller guarantees that the elements stay readable, and the byte belongs to one of them.
            let extended = unsafe { write_one(file, view, memory, start, last) };
            if extended.is_err() {
                return Ok(false);
            }
            size = high;
        }
        if length > 0 {
            let displacement = window.zero().wrapping_add(view.displacement() as usize);
            // SAFETY: the `length` view bytes lie in the window (`span`), whose memory stays accessible
            // whatever happens to the file, and which is writable if the access writes (`may_map`). The
            // elements are valid (the condition of `# Safety`), and the window, which this process made,
            // is no memory of the program.
            unsafe { memory.copy(write, view, *done, displacement, at, length)? };
        }
        if window.is_broken() {
            // Pages were missing because the file has become shorter, so the copy may be wrong. Do it again through a
            // new window. If the file goes on shrinking, system calls do it.
            windows.give_up(&window);
            attempts -= 1;
            if attempts == 0 {
                return Ok(false);
            }
            size = size_of(file)?;
            continue;
        }
        *done += length;
        if !write && high > size {
            break;
        }
    }
    Ok(true)
}
