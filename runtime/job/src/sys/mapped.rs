//! Mappings of data files, and the guard against SIGBUS.
//!
//! A store into a shared mapping of a file raises SIGBUS if the page lies behind the end of the file (another
//! process has truncated the file) or if the file system has no space for the page. Then the handler of this
//! file puts an anonymous page in the place of the missing one and marks the mapping as broken. The store
//! continues on that page, and its data is lost. So whoever uses a mapping must ask [`FileMapping::is_broken`]
//! after each copy, and if it is broken, must do the copy again by another way and drop the mapping. Other
//! threads may have stored into the page too; they see the same mark, because a mapping never becomes whole
//! again.
//!
//! The handler is installed with the first mapping and removed with the last one, but only if it is still the
//! installed one. A SIGBUS that does not come from one of these mappings goes to the handler that was
//! installed before.
//!
//! This file guarantees to safe callers that the memory of a mapping stays accessible as long as the mapping
//! lives, whatever happens to the file.

use rustix::mm::{self, Advice, MapFlags, ProtFlags};
use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most mappings of a process at one time.
const PLACES: usize = 256;

/// A mapping as the handler sees it. The place is free if `base` is 0, and taken without a mapping if `base`
/// is 1.
struct Place {
    base: AtomicUsize,
    len: AtomicUsize,
    broken: AtomicBool,
}

static MAPPED: [Place; PLACES] = [const {
    Place { base: AtomicUsize::new(0), len: AtomicUsize::new(0), broken: AtomicBool::new(false) }
}; PLACES];

/// The action that was installed before ours. Only the thread that installs ours writes it, before.
struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: the cell is written only under the lock `COUNT` while our handler is not installed, and read only
// by the handler and under the lock.
unsafe impl Sync for Previous {}

static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::zeroed()));

/// The size of a page in bytes.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// Number of mappings that live.
static COUNT: Mutex<usize> = Mutex::new(0);

/// A shared mapping of a part of a file. The memory can be written if the mapping was made so.
#[derive(Debug)]
pub struct FileMapping {
    base: NonNull<u8>,
    len: usize,
    place: usize,
}

// SAFETY: a mapping belongs to the process. Its memory is accessed only through raw pointers, whose users are
// responsible for races.
unsafe impl Send for FileMapping {}
// SAFETY: the methods only read numbers that never change, and an atomic flag.
unsafe impl Sync for FileMapping {}

impl FileMapping {
    /// Maps `len` bytes of a file from byte `at` on, a multiple of the page size. The mapping may reach beyond
    /// the end of the file. A forked child does not have the mapping.
    ///
    /// # Errors
    /// Returns the kernel's error, and an error if there are too many mappings or if the guard cannot be
    /// installed.
    pub fn new(fd: BorrowedFd<'_>, at: u64, len: usize, writable: bool) -> io::Result<Self> {
        let free = |place: &Place| {
            place.base.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let place = MAPPED.iter().position(free).ok_or(io::ErrorKind::QuotaExceeded)?;
        let made = guard().and_then(|()| {
            let prot = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
            // SAFETY: with a null hint the kernel chooses the address, so the call replaces no existing
            // mapping. The `FileMapping` below owns the new mapping.
            let mapped = unsafe { mm::mmap(ptr::null_mut(), len, prot, MapFlags::SHARED, fd, at) };
            let base = mapped.map_err(|error| {
                unguard();
                io::Error::from(error)
            })?;
            // SAFETY: the range is exactly the new mapping. The advice changes only what a forked child has.
            let _ = unsafe { mm::madvise(base, len, Advice::LinuxDontFork) };
            Ok(base.cast::<u8>())
        });
        let base = match made.map(NonNull::new) {
            Ok(Some(base)) => base,
            Ok(None) => {
                MAPPED[place].base.store(0, Ordering::Release);
                return Err(io::ErrorKind::AddrNotAvailable.into());
            }
            Err(error) => {
                MAPPED[place].base.store(0, Ordering::Release);
                return Err(error);
            }
        };
        MAPPED[place].broken.store(false, Ordering::Relaxed);
        MAPPED[place].len.store(len, Ordering::Relaxed);
        MAPPED[place].base.store(base.as_ptr() as usize, Ordering::Release);
        Ok(Self { base, len, place })
    }

    /// Returns the address of the first byte.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the mapping has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether a page of the mapping was missing when a thread accessed it. Data of earlier copies to
    /// or from the mapping may be wrong then.
    pub fn is_broken(&self) -> bool {
        // The handler runs on the thread that makes the copy, so this thread sees its own marks. Marks of
        // other threads concern their own copies.
        MAPPED[self.place].broken.load(Ordering::Acquire)
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // The handler must not touch addresses that another mapping of this process may get from now on.
        MAPPED[self.place].base.store(1, Ordering::Release);
        // SAFETY: the range is the mapping that `new` made, and nobody uses it any more.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.len) };
        MAPPED[self.place].base.store(0, Ordering::Release);
        unguard();
    }
}

/// The handler of SIGBUS. It calls only functions that a signal handler may call.
extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes the information about the signal, whose address field SIGBUS fills.
    let at = unsafe { (*info).si_addr() } as usize;
    for place in &MAPPED {
        let (base, len) = (place.base.load(Ordering::Acquire), place.len.load(Ordering::Relaxed));
        if base <= 1 || at < base || at - base >= len {
            continue;
        }
        place.broken.store(true, Ordering::Release);
        let page = PAGE.load(Ordering::Relaxed);
        let start = (at & !(page - 1)) as *mut libc::c_void;
        let (prot, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
        );
        // SAFETY: the page lies in a mapping of this file, which stays in use as long as the place names it.
        // The call replaces this page only, and nobody relies on the data of a broken mapping.
        let replaced = unsafe { libc::mmap(start, page, prot, flags, -1, 0) };
        if replaced != libc::MAP_FAILED {
            return;
        }
        break;
    }
    // SAFETY: the cell was written before this handler was installed, and is not written while it is.
    let previous = unsafe { (*PREVIOUS.0.get()).assume_init_ref() };
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // The instruction runs again, raises the signal again, and the default action ends the process.
            // SAFETY: the default action runs no code of this process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        function if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            type Function = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: the action has the flag SA_SIGINFO, so its function has this type.
            let function = unsafe { std::mem::transmute::<usize, Function>(function) };
            function(signal, info, context);
        }
        function => {
            // SAFETY: the action has no flag SA_SIGINFO, so its function takes only the signal.
            let function = unsafe { std::mem::transmute::<usize, extern "C" fn(i32)>(function) };
            function(signal);
        }
    }
}

/// Returns the action that has our handler.
fn ours() -> libc::sigaction {
    // SAFETY: zeros are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handle as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    action
}

/// Counts one more mapping. Installs the handler for the first one.
fn guard() -> io::Result<()> {
    let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
    if *count == 0 {
        PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
        let mut old = MaybeUninit::zeroed();
        let new = ours();
        // SAFETY: with a null pointer for the new action, the call writes the current action to `old`.
        if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), old.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `old` is initialised (the call has succeeded, and it was zeroed before).
        let current: libc::sigaction = unsafe { old.assume_init() };
        if current.sa_sigaction != new.sa_sigaction {
            // SAFETY: our handler is not installed, so nobody reads the cell, and the lock keeps other
            // writers away.
            unsafe { (*PREVIOUS.0.get()).write(current) };
            // SAFETY: `new` is a valid action whose handler may run at any time on any thread.
            if unsafe { libc::sigaction(libc::SIGBUS, &new, ptr::null_mut()) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    *count += 1;
    Ok(())
}

/// Counts one mapping less. After the last one, restores the previous action if ours is still installed.
fn unguard() {
    let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
    *count -= 1;
    if *count > 0 {
        return;
    }
    let mut current = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null pointer for the new action, the call writes the current action to `current`.
    let current = unsafe {
        libc::sigaction(libc::SIGBUS, ptr::null(), current.as_mut_ptr());
        current.assume_init()
    };
    if current.sa_sigaction == ours().sa_sigaction {
        // SAFETY: the cell has the action that was installed before ours, and the lock keeps writers away.
        unsafe { libc::sigaction(libc::SIGBUS, (*PREVIOUS.0.get()).as_ptr(), ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn missing_pages_break_a_mapping_and_nothing_else() {
        let path = std::env::temp_dir().join(format!("typepack-mapped-{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path).expect("a file");
        std::fs::remove_file(&path).expect("removed");
        file.set_len(8192).expect("two pages");
        let whole = FileMapping::new(file.as_fd(), 0, 8192, true).expect("a mapping");
        let short = FileMapping::new(file.as_fd(), 0, 16384, true).expect("a mapping");
        let write = |mapping: &FileMapping, at: usize| {
            assert!(at < mapping.len());
            // SAFETY: the byte lies in the mapping, whose memory stays accessible.
            unsafe { mapping.base().as_ptr().add(at).write_volatile(7) };
        };
        write(&whole, 8191);
        write(&short, 100);
        assert!(!whole.is_broken() && !short.is_broken());
        write(&short, 12000);
        assert!(short.is_broken() && !whole.is_broken());
        drop(short);
        file.set_len(10).expect("shorter");
        write(&whole, 5000);
        assert!(whole.is_broken());
        drop(whole);
        // After the last mapping, the handler is the one from before.
        let current = FileMapping::new(file.as_fd(), 0, 4096, false).expect("a mapping");
        assert!(!current.is_broken());
    }
}
