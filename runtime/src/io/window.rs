//! Mapped files: a window of the file in memory, which stays from access to access.
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

use super::transfer::Target;
use super::view::View;
use super::ways::{Access, Ways};
use crate::settings::FileMethod;
use crate::sys::files::{self, FileKind};
use crate::sys::mapped::FileMapping;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    ways: Option<Arc<Ways>>,
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
    /// Makes the windows of a file. `writable` says whether the file is open for reading and writing. `ways` are
    /// the measured choices of its file system, if choices are measured.
    pub fn new(
        target: &Target,
        readable: bool,
        writable: bool,
        method: FileMethod,
        ways: Option<Arc<Ways>>,
    ) -> Self {
        let usable = readable
            && target.kind == FileKind::Regular
            && match method {
                FileMethod::Calls => false,
                FileMethod::Mapped => true,
                FileMethod::Auto => files::is_local(&target.fd),
            };
        let (usable, always) = (AtomicBool::new(usable), method == FileMethod::Mapped);
        let ways = ways.filter(|_| method == FileMethod::Auto);
        let reached = AtomicU64::new(0);
        Self { usable, writable, always, ways, reached, kept: Mutex::default() }
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
    pub fn ways(&self) -> Option<&Ways> {
        self.ways.as_deref()
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
