//! Mappings of data files, and the guard against SIGBUS.
//!
//! An access to a shared mapping of a file raises SIGBUS if the page lies beyond the end of the file (another
//! process has truncated the file) or if the file system has no space for the page. Then the signal handler of
//! this file replaces the missing page by an anonymous page and marks the mapping as broken. The access
//! continues on the anonymous page, so data that it stores is lost. So a user of a mapping must call
//! [`FileMapping::is_broken`] after each copy. If the mapping is broken, the user must do the copy again without
//! the mapping, and drop the mapping. Other threads may have used the anonymous page too. They also find the
//! mapping broken, because a mapping never becomes whole again.
//!
//! The first mapping of the process installs the handler. Dropping the last mapping removes the handler, unless
//! the program has installed a handler of its own since. A SIGBUS that does not come from one of these mappings
//! goes to the handler that was installed before ours (the handler of this file). The program may install a
//! handler of its own between two installations of ours, and that handler may pass the signal back to ours. So
//! ours keeps all handlers that were installed before it (`CHAIN`). When a signal comes back, ours passes it to
//! the next older handler in `CHAIN`.
//!
//! If a thread that blocks SIGBUS accesses a missing page, the kernel ends the process. So a thread makes its
//! copies only while it holds the value that [`admit`] returns.
//!
//! This file guarantees to safe callers that the memory of a mapping stays accessible as long as the mapping
//! lives, whatever happens to the file.

use super::signal::Admitted;
use rustix::mm::{self, Advice, MapFlags, ProtFlags};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of mappings that a process can have at one time.
const PLACES: usize = 256;

/// A mapping as the handler sees it. If `base` is 0, the place is free. If `base` is 1, the place is taken but has
/// no mapping at the moment.
struct Place {
    base: AtomicUsize,
    len: AtomicUsize,
    broken: AtomicBool,
}

static MAPPED: [Place; PLACES] = [const {
    Place { base: AtomicUsize::new(0), len: AtomicUsize::new(0), broken: AtomicBool::new(false) }
}; PLACES];

/// Maximum number of handlers in [`CHAIN`].
const OLDER: usize = 8;

/// A handler that was installed before ours, as our handler sees it.
struct Older {
    function: AtomicUsize,
    flags: AtomicI32,
}

/// The handlers that were installed before ours, the oldest first. Only the first [`LEVELS`] entries are in use.
static CHAIN: [Older; OLDER] =
    [const { Older { function: AtomicUsize::new(libc::SIG_DFL), flags: AtomicI32::new(0) } };
        OLDER];

/// The number of handlers in [`CHAIN`].
static LEVELS: AtomicUsize = AtomicUsize::new(0);

/// The position in the kernel's description of a signal, in words of 8 bytes, at which our handler marks a
/// signal that it passes on. The kernel sets this word to 0 and never uses it.
const MARK: usize = 15;

/// The upper 48 bits of a mark. The lower 16 bits hold the index in [`CHAIN`] of the handler that gets the signal.
const PASSED: u64 = 0x7479_7065_7061_0000;

/// The state that changes when a mapping is made or dropped.
struct Guard {
    /// Number of mappings that live.
    count: usize,
    /// The actions that were installed before ours, the oldest first.
    older: Vec<libc::sigaction>,
}

/// The size of a page in bytes.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

static GUARD: Mutex<Guard> = Mutex::new(Guard { count: 0, older: Vec::new() });

/// A shared mapping of a part of a file. The memory is writable if [`FileMapping::new`] was asked for that.
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
    /// Maps `len` bytes of a file from byte `at` on. `at` is a multiple of the page size. The mapping may reach
    /// beyond the end of the file. A forked child does not have the mapping.
    ///
    /// # Errors
    /// Returns the kernel's error if it refuses the mapping or the handler of SIGBUS. Returns `QuotaExceeded` if the
    /// process has 256 mappings already, or if the program has installed handlers of its own for SIGBUS more than 8
    /// times.
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

    /// Returns the first byte of the page that holds byte `at` of the mapping.
    pub fn page_of(&self, at: usize) -> usize {
        at & !(PAGE.load(Ordering::Relaxed) - 1)
    }

    /// Finds out whether the file still reaches into the page that begins at byte `page` of the mapping
    /// ([`page_of`](Self::page_of)). If it does not, the mapping is broken afterwards, and the result is false. The
    /// calling thread must hold the value that [`admit`] returns.
    pub fn reaches(&self, page: usize) -> bool {
        if page >= self.len {
            return false;
        }
        // SAFETY: the byte lies in the mapping, whose memory stays accessible. Nobody relies on its value, which other
        // processes may change.
        unsafe { self.base.as_ptr().add(page).read_volatile() };
        !self.is_broken()
    }

    /// Returns whether a page of the mapping was missing when a thread accessed the page. In that case, data of
    /// earlier copies to or from the mapping may be wrong.
    pub fn is_broken(&self) -> bool {
        // The handler runs on the thread whose access has failed, so that thread sees the mark. The handler sets the
        // mark before it replaces a page, so a thread that uses the anonymous page afterwards sees the mark too.
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
        // Replace all pages to the end of the mapping at once. With one page per fault, a copy of blocks that lie far
        // apart in the file would make one mapping per block. A process can have only about 65,000 mappings.
        let rest = base + len - (at & !(page - 1));
        // SAFETY: the pages lie in a mapping of this file, which stays in use as long as the place names it.
        // The call replaces no other pages, and nobody relies on the data of a broken mapping.
        let replaced = unsafe { libc::mmap(start, rest, prot, flags, -1, 0) };
        if replaced != libc::MAP_FAILED {
            return;
        }
        break;
    }
    // SAFETY: `info` and `context` come from the kernel, directly or through a handler of the program that has
    // passed the signal on. Both are valid until this handler returns.
    unsafe { pass_on(signal, info, context) };
}

/// Passes a signal that does not come from a mapping of this file to the handler that was installed before
/// ours. If that handler passes the signal back to ours, ours passes it to the next older one.
///
/// # Safety
///
/// - `info` and `context` are what the kernel has passed to the handler of `signal`.
unsafe fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let mark = info.cast::<u64>().wrapping_add(MARK);
    // SAFETY: the kernel's description of a signal has 128 bytes and is aligned for words of 8 bytes, so the word
    // lies within the description.
    let before = unsafe { mark.read() };
    let passed = before & !0xffff == PASSED;
    let level = match passed {
        true => (before & 0xffff) as usize,
        false => LEVELS.load(Ordering::Acquire),
    };
    let older = level.checked_sub(1).and_then(|level| CHAIN.get(level));
    let (function, flags) = older.map_or((libc::SIG_DFL, 0), |older| {
        (older.function.load(Ordering::Acquire), older.flags.load(Ordering::Relaxed))
    });
    // SAFETY: `info` is the kernel's description of the signal (the condition of `# Safety`).
    let is_fault = unsafe { (*info).si_code } > 0;
    match function {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // After a fault, the instruction runs again and raises the signal again. A signal that a process has
            // sent does not come again by itself, so raise it here. Then the default action ends the process.
            // SAFETY: the default action runs no code of this process, and `raise` takes any signal.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if !is_fault {
                    libc::raise(signal);
                }
            }
        }
        function if flags & libc::SA_SIGINFO != 0 => {
            type Function = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: the action has the flag SA_SIGINFO, so its function has this type.
            let function = unsafe { std::mem::transmute::<usize, Function>(function) };
            // SAFETY: the word lies within the description, as for the read above, and only this function uses it.
            unsafe { mark.write(PASSED | (level as u64 - 1)) };
            function(signal, info, context);
            // SAFETY: this is the word that was written before the call, and it still lies in the description.
            unsafe { mark.write(before) };
        }
        function => {
            // SAFETY: the action has no flag SA_SIGINFO, so its function takes only the signal.
            let function = unsafe { std::mem::transmute::<usize, extern "C" fn(i32)>(function) };
            function(signal);
        }
    }
}

/// Lets SIGBUS reach this thread while the returned value lives, even if the thread otherwise blocks the signal. A
/// thread must hold such a value while it copies to or from a mapping.
pub fn admit() -> Admitted {
    Admitted::new(libc::SIGBUS)
}

/// Returns the action for SIGBUS that calls the handler of this file.
fn ours() -> libc::sigaction {
    // SAFETY: zeros are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handle as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    action
}

/// Returns the action that is installed for SIGBUS, and replaces it by `new` if `new` is not `None`.
fn exchange(new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or a valid action: ours, whose handler may run at any time on any thread, or one that
    // was installed before. The call writes the current action to `old`, which has room for it.
    let code = unsafe { libc::sigaction(libc::SIGBUS, new, old.as_mut_ptr()) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded, so it has written `old`.
    Ok(unsafe { old.assume_init() })
}

/// Counts one more mapping. Installs the handler for the first one.
fn guard() -> io::Result<()> {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.count == 0 {
        PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
        let (current, new) = (exchange(None)?, ours());
        if current.sa_sigaction != new.sa_sigaction {
            // If `CHAIN` is full, refuse the mapping: the program has installed handlers of its own too often.
            let level = guard.older.len();
            let older = CHAIN.get(level).ok_or(io::ErrorKind::QuotaExceeded)?;
            older.flags.store(current.sa_flags, Ordering::Relaxed);
            older.function.store(current.sa_sigaction, Ordering::Release);
            guard.older.push(current);
            LEVELS.store(level + 1, Ordering::Release);
            exchange(Some(&new)).inspect_err(|_| {
                LEVELS.store(level, Ordering::Release);
                guard.older.pop();
            })?;
        }
    }
    guard.count += 1;
    Ok(())
}

/// Reduces the count of mappings by one. If no mapping is left and our handler is still installed, restores the
/// previous action.
fn unguard() {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    guard.count -= 1;
    if guard.count > 0 {
        return;
    }
    let installed = exchange(None).is_ok_and(|current| current.sa_sigaction == ours().sa_sigaction);
    // If our handler is not installed, the program has installed its own handler, which may pass signals to ours.
    // So the older handlers stay in the chain.
    if installed && let Some(older) = guard.older.pop() {
        // If the call fails, our handler stays installed. It then finds no mapping and passes every signal on.
        let _ = exchange(Some(&older));
        LEVELS.store(guard.older.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::signal::{SignalSet, block, set_mask};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::process::Command;

    /// Environment variable that tells a child process of a test to run the body of the test.
    const CHILD: &str = "MAPPED_TEST_CHILD";

    /// Runs `body` in a process of its own, because other tests of this process would install handlers of their own
    /// at the same time. `test` is the full name of the calling test. The new process must print "survived".
    fn alone(test: &str, body: impl FnOnce()) {
        if std::env::var_os(CHILD).is_some() {
            body();
            println!("survived");
            return;
        }
        let exe = std::env::current_exe().expect("our own path");
        let mut command = Command::new(exe);
        command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
        let output = command.output().expect("a process");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("survived"), "{output:?}");
    }

    fn file(name: &str, bytes: u64) -> File {
        let path = std::env::temp_dir().join(format!("typepack-{name}-{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path).expect("a file");
        std::fs::remove_file(&path).expect("removed");
        file.set_len(bytes).expect("a size");
        file
    }

    fn touch(mapping: &FileMapping, at: usize) {
        assert!(at < mapping.len());
        // SAFETY: the byte lies in the mapping, whose memory stays accessible.
        unsafe { mapping.base().as_ptr().add(at).write_volatile(7) };
    }

    #[test]
    fn a_thread_that_blocks_the_signal_survives() {
        alone("sys::mapped::tests::a_thread_that_blocks_the_signal_survives", || {
            let file = file("admitted", 4096);
            let mapping = FileMapping::new(file.as_fd(), 0, 8192, true).expect("a mapping");
            let old = block(&SignalSet::new(&[libc::SIGBUS])).expect("a mask");
            let admitted = admit();
            touch(&mapping, 5000);
            drop(admitted);
            assert!(mapping.is_broken());
            assert!(block(&SignalSet::new(&[])).expect("a mask").contains(libc::SIGBUS));
            set_mask(&old);
        });
    }

    /// Checks that accesses to many missing pages that are not neighbours make few mappings. A process can have only
    /// about 65,000 mappings.
    #[test]
    fn many_missing_pages_are_few_mappings() {
        alone("sys::mapped::tests::many_missing_pages_are_few_mappings", || {
            let pages = 150_000;
            let file = file("apart", pages as u64 * 4096);
            let mapping = FileMapping::new(file.as_fd(), 0, pages * 4096, true).expect("a mapping");
            file.set_len(0).expect("no bytes");
            for page in (0..pages).step_by(2) {
                touch(&mapping, page * 4096);
            }
            assert!(mapping.is_broken());
            let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
            assert!(maps.lines().count() < 1000);
        });
    }

    /// `CALLS` counts the calls of [`pass`], and `FIRST` counts the calls of [`mend`]. `BEFORE` is the address of the
    /// handler that [`pass`] calls.
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    static BEFORE: AtomicUsize = AtomicUsize::new(0);
    static FIRST: AtomicUsize = AtomicUsize::new(0);

    type Function = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

    fn install(function: Function) -> usize {
        // SAFETY: zeros are a valid `sigaction`.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = function as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        exchange(Some(&action)).expect("installed").sa_sigaction
    }

    /// The oldest handler. It maps an ordinary page in the place of the missing page.
    extern "C" fn mend(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        FIRST.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the kernel fills the address of the fault. The page belongs to a mapping of the test.
        unsafe {
            let page = ((*info).si_addr() as usize & !4095) as *mut libc::c_void;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            libc::mmap(page, 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        }
    }

    /// A handler that passes every signal to the function that was installed before.
    extern "C" fn pass(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        assert!(CALLS.fetch_add(1, Ordering::Relaxed) < 10, "the handlers call each other");
        // SAFETY: the function is our handler, which has this type.
        let function =
            unsafe { std::mem::transmute::<usize, Function>(BEFORE.load(Ordering::Relaxed)) };
        function(signal, info, context);
    }

    /// Checks signals that a handler of the program passes back to ours. The program installs its handler between
    /// two installations of ours.
    #[test]
    fn handlers_that_pass_signals_on_do_not_call_each_other_for_ever() {
        let name =
            "sys::mapped::tests::handlers_that_pass_signals_on_do_not_call_each_other_for_ever";
        alone(name, || {
            install(mend);
            let file = file("chain", 4096);
            let new = || FileMapping::new(file.as_fd(), 0, 8192, true).expect("a mapping");
            let mapping = new();
            BEFORE.store(install(pass), Ordering::Relaxed);
            drop(mapping);
            let mapping = new();
            // Make a mapping whose faults are not ours: a private mapping of the same short file.
            // SAFETY: with a null hint the kernel chooses the address.
            let other = unsafe {
                let flags = MapFlags::PRIVATE;
                mm::mmap(ptr::null_mut(), 8192, ProtFlags::WRITE, flags, &file, 0).expect("memory")
            };
            for round in 1..=2 {
                // SAFETY: the byte lies in the mapping; `mend` maps its page when it is missing.
                unsafe { other.cast::<u8>().add(4096 + round).write_volatile(1) };
                // SAFETY: the second page is the test's own, and without it the next round faults again.
                unsafe {
                    let second = other.cast::<u8>().add(4096).cast();
                    let (prot, flags) = (ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
                    mm::mmap(second, 4096, prot, flags, &file, 4096).expect("memory");
                }
                assert_eq!(CALLS.load(Ordering::Relaxed), round);
                assert_eq!(FIRST.load(Ordering::Relaxed), round);
            }
            touch(&mapping, 5000);
            assert!(mapping.is_broken());
            assert_eq!(FIRST.load(Ordering::Relaxed), 2);
            drop(mapping);
            // The handler that the program has installed last is back, and passes signals on as before.
            assert_eq!(exchange(None).expect("an action").sa_sigaction, pass as *const () as usize);
            // SAFETY: byte 5000 lies in the mapping of 8192 bytes at `other`, and `mend` maps its missing page.
            unsafe { other.cast::<u8>().add(5000).write_volatile(1) };
            assert_eq!(FIRST.load(Ordering::Relaxed), 3);
        });
    }

    #[test]
    fn a_page_behind_the_end_of_the_file_is_found() {
        let file = file("reaches", 3 * 4096 + 1);
        let mapping = FileMapping::new(file.as_fd(), 0, 8 * 4096, false).expect("a mapping");
        assert_eq!(
            [0, 4095, 4096, 3 * 4096 + 1].map(|at| mapping.page_of(at)),
            [0, 0, 4096, 3 * 4096]
        );
        let _admitted = admit();
        assert!(mapping.reaches(0) && mapping.reaches(3 * 4096) && !mapping.is_broken());
        assert!(!mapping.reaches(8 * 4096) && !mapping.is_broken());
        file.set_len(3 * 4096).expect("shorter");
        assert!(mapping.reaches(2 * 4096));
        assert!(!mapping.reaches(3 * 4096) && mapping.is_broken());
        assert!(!mapping.reaches(0));
    }

    #[test]
    fn missing_pages_break_a_mapping_and_nothing_else() {
        let file = file("mapped", 8192);
        let whole = FileMapping::new(file.as_fd(), 0, 8192, true).expect("a mapping");
        let short = FileMapping::new(file.as_fd(), 0, 16384, true).expect("a mapping");
        let write = touch;
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
        // A new mapping is whole, although an earlier mapping in the same place was broken.
        let current = FileMapping::new(file.as_fd(), 0, 4096, false).expect("a mapping");
        assert!(!current.is_broken());
    }
}
