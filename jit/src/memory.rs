//! Manages code memory: one reservation of address space, from which pages are handed out. No page
//! is ever writable and executable at once (W^X).
//!
//! `compiler.rs` puts a kernel's bytes here through cranelift-jit's [`JITMemoryProvider`]; the
//! kernel then holds a [`Code`]. A page has three states, two of which are types:
//!
//! ```text
//! reserved (no access) --take--> Draft (read, write) --publish--> Code (read, execute)
//!        ^                         |                                |
//!        +-------- drop -----------+------------- drop ------------+
//! ```
//!
//! Invariants:
//!
//! - No address is ever writable and executable at once. A published page becomes writable again
//!   only after its last kernel is gone.
//! - Kernels that are published together share pages and are freed together. Kernels that are
//!   published separately never share a page, because the page of a running kernel cannot be made
//!   writable for the next kernel.
//! - If the system refuses a call, the refusal is returned as an error. The only exceptions are giving
//!   pages back and dropping the arena, which cannot report an error. If the access to pages that are
//!   given back cannot be removed, these pages are never used again.
//!
//! The two memory providers of cranelift-jit are unsuitable. Both keep code mapped until an unsafe call
//! frees it, and one of them panics if the system refuses to change the protection.

use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use cranelift_module::{ModuleError, ModuleResult};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A reservation of address space for code.
#[derive(Debug)]
pub(crate) struct Arena {
    base: NonNull<u8>,
    /// Length in pages.
    pages: usize,
    /// Bytes per page.
    page: usize,
    /// Free stretches of pages as (first page, number of pages), in ascending order. No two of them
    /// are adjacent.
    free: Mutex<Vec<(usize, usize)>>,
}

// SAFETY: `base` is the address of a mapping that the arena owns until it is dropped. Nothing in
// the mapping belongs to a particular thread, and the list of free pages is behind a mutex.
unsafe impl Send for Arena {}
// SAFETY: through a shared reference, the only mutable state is the list of free pages, which is
// behind a mutex; `base`, `pages` and `page` never change.
unsafe impl Sync for Arena {}

impl Arena {
    /// Reserves `bytes` (rounded down to whole pages) of address space, and runs a stub to prove
    /// that this process may execute code that it wrote.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the system refuses a call, `OutOfMemory` if `bytes` is less
    /// than a page, `Unsupported` if there is no stub for this processor, or `Other` if the stub
    /// returns a wrong value.
    pub(crate) fn new(bytes: u64) -> io::Result<Arc<Self>> {
        let page = rustix::param::page_size();
        let pages = usize::try_from(bytes).unwrap_or(usize::MAX) / page;
        if pages == 0 {
            return Err(full());
        }
        // SAFETY: the system chooses the address of the new mapping, so it overlaps no other
        // memory.
        let base = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                pages * page,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or_else(full)?;
        let arena = Arc::new(Self { base, pages, page, free: Mutex::new(vec![(0, pages)]) });
        probe(&arena)?;
        Ok(arena)
    }

    /// Returns the total size, in bytes, of the pages that drafts and published code use.
    #[cfg(test)]
    fn used(&self) -> usize {
        let free: usize = self.lock().iter().map(|&(_, length)| length).sum();
        (self.pages - free) * self.page
    }

    /// Takes enough adjacent free pages for `bytes` bytes and makes these pages writable. Returns
    /// `OutOfMemory` if no free stretch is long enough, or the system's error.
    fn take(self: &Arc<Self>, bytes: usize) -> io::Result<Draft> {
        let pages = bytes.max(1).div_ceil(self.page);
        let first = {
            let mut free = self.lock();
            // Takes the first stretch that is long enough. This wastes little, because nearly all
            // requests are for one page.
            let slot = free.iter().position(|&(_, length)| length >= pages).ok_or_else(full)?;
            let (first, length) = free[slot];
            if length == pages {
                free.remove(slot);
            } else {
                free[slot] = (first + pages, length - pages);
            }
            first
        };
        // From here on, dropping `span` gives the pages back, also if `protect` fails.
        let span = Span { arena: self.clone(), first, pages };
        span.protect(MprotectFlags::READ | MprotectFlags::WRITE)?;
        Ok(Draft { span, filled: 0 })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        // No statement under the lock can panic and leave the list inconsistent, so the list of a
        // poisoned lock can be used.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a stretch of pages back into the list and joins it with its neighbours.
    fn give_back(&self, first: usize, pages: usize) {
        let mut free = self.lock();
        let mut slot = free.partition_point(|&(start, _)| start < first);
        free.insert(slot, (first, pages));
        if slot > 0 && free[slot - 1].0 + free[slot - 1].1 == first {
            free[slot - 1].1 += pages;
            free.remove(slot);
            slot -= 1;
        }
        if slot + 1 < free.len() && free[slot].0 + free[slot].1 == free[slot + 1].0 {
            free[slot].1 += free[slot + 1].1;
            free.remove(slot + 1);
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the arena owns the whole mapping, and no span of it is left, since each span
        // holds the arena. If the call fails, the address space stays reserved, which does no harm
        // and cannot be reported here.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.pages * self.page) };
    }
}

fn full() -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, "the code memory has too few free pages")
}

/// Pages that were taken from an arena. Dropping a span gives its pages back.
#[derive(Debug)]
struct Span {
    arena: Arc<Arena>,
    first: usize,
    pages: usize,
}

impl Span {
    fn address(&self) -> *mut u8 {
        // SAFETY: `first` is below the arena's number of pages, so the address lies in its mapping.
        unsafe { self.arena.base.as_ptr().add(self.first * self.arena.page) }
    }

    fn bytes(&self) -> usize {
        self.pages * self.arena.page
    }

    fn protect(&self, flags: MprotectFlags) -> io::Result<()> {
        // SAFETY: the pages belong to this span alone, so only the span's owner has pointers into
        // them. Either the span has just been taken, and no pointer into it exists yet, or its owner
        // is being consumed (a `Draft` that becomes `Code`) or dropped. So no code relies on the old
        // access.
        unsafe { rustix::mm::mprotect(self.address().cast::<c_void>(), self.bytes(), flags)? };
        Ok(())
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // Removes the access first, then releases the memory, and then marks the pages as free.
        // Pages whose access cannot be removed stay out of use.
        if self.protect(MprotectFlags::empty()).is_err() {
            return;
        }
        // This call is a hint that the memory is not needed. If the system refuses the call, the
        // pages stay resident.
        // SAFETY: the pages belong to this span alone, and no code reads them any more.
        let _ = unsafe {
            rustix::mm::madvise(self.address().cast(), self.bytes(), Advice::LinuxDontNeed)
        };
        self.arena.give_back(self.first, self.pages);
    }
}

/// Pages that are being written.
#[derive(Debug)]
struct Draft {
    span: Span,
    /// Number of bytes handed out so far.
    filled: usize,
}

impl Draft {
    /// Reserves `size` bytes, which begin at the next multiple of `align` (a power of two), and returns
    /// their address. Returns `None` if the pages have no room for these bytes.
    fn carve(&mut self, size: usize, align: usize) -> Option<*mut u8> {
        let start = self.filled.checked_next_multiple_of(align)?;
        let end = start.checked_add(size)?;
        if end > self.span.bytes() {
            return None;
        }
        self.filled = end;
        // SAFETY: `start` is at most `end`, which is at most the span's length.
        Some(unsafe { self.span.address().add(start) })
    }

    /// Makes the pages executable and no longer writable.
    fn publish(self) -> io::Result<Code> {
        // SAFETY: the first `filled` bytes of the span are mapped and readable.
        unsafe {
            wasmtime_jit_icache_coherence::clear_cache(
                self.span.address().cast_const().cast(),
                self.filled,
            )?;
        }
        self.span.protect(MprotectFlags::READ | MprotectFlags::EXEC)?;
        Ok(Code { _span: self.span })
    }
}

/// Published pages. While this value lives, their code stays mapped, executable and unchanged.
#[derive(Debug)]
pub(crate) struct Code {
    _span: Span,
}

/// The pages that one module writes and publishes together.
#[derive(Debug, Default)]
struct Batch {
    drafts: Vec<Draft>,
    published: Vec<Code>,
}

/// Gives a cranelift-jit module access to the arena. `compiler.rs` keeps a clone and takes the
/// published code out of it, so dropping the module frees no code that is in use.
#[derive(Clone, Debug)]
pub(crate) struct CodeMemory {
    arena: Arc<Arena>,
    batch: Arc<Mutex<Batch>>,
}

impl CodeMemory {
    /// Makes the memory of one module.
    pub(crate) fn new(arena: Arc<Arena>) -> Self {
        Self { arena, batch: Arc::default() }
    }

    /// Takes all code published so far. Kernels hold the code; its pages are freed when the last of
    /// these kernels is dropped.
    pub(crate) fn take_published(&self) -> Vec<Code> {
        std::mem::take(&mut self.lock().published)
    }

    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JITMemoryProvider for CodeMemory {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        match kind {
            JITMemoryKind::Executable => {}
            JITMemoryKind::Writable | JITMemoryKind::ReadOnly => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "a kernel has no data besides its code",
                ));
            }
        }
        let align = usize::try_from(align).ok().filter(|a| *a <= self.arena.page);
        let align = align.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the alignment is larger than a page")
        })?;
        let mut batch = self.lock();
        if let Some(at) = batch.drafts.last_mut().and_then(|draft| draft.carve(size, align)) {
            return Ok(at);
        }
        let mut draft = self.arena.take(size)?;
        // The draft has room for the bytes: its span starts at a page boundary, so aligning skips
        // no bytes, and the span has at least `size` bytes.
        let at = draft.carve(size, align).ok_or_else(full)?;
        batch.drafts.push(draft);
        Ok(at)
    }

    unsafe fn free_memory(&mut self) {
        *self.lock() = Batch::default();
    }

    fn finalize(&mut self, _: BranchProtection) -> ModuleResult<()> {
        let mut batch = self.lock();
        let drafts = std::mem::take(&mut batch.drafts);
        for draft in drafts {
            let code = draft.publish().map_err(|err| ModuleError::Allocation { err })?;
            batch.published.push(code);
        }
        wasmtime_jit_icache_coherence::pipeline_flush_mt()
            .map_err(|err| ModuleError::Allocation { err })
    }
}

/// Proves that new code can run: writes a stub to a page, publishes the page, and runs the stub.
fn probe(arena: &Arc<Arena>) -> io::Result<()> {
    const ANSWER: u32 = 42;
    let stub: &[u8] = if cfg!(target_arch = "x86_64") {
        &[0xb8, 42, 0, 0, 0, 0xc3] // mov eax, 42; ret
    } else if cfg!(target_arch = "aarch64") {
        &[0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6] // mov w0, #42; ret
    } else {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "there is no code generator for this processor",
        ));
    };
    let mut draft = arena.take(stub.len())?;
    let at = draft.carve(stub.len(), 16).ok_or_else(full)?;
    // SAFETY: `carve` returned `stub.len()` writable bytes at `at`, which no other code refers to.
    unsafe { std::ptr::copy_nonoverlapping(stub.as_ptr(), at, stub.len()) };
    let _code = draft.publish()?;
    wasmtime_jit_icache_coherence::pipeline_flush_mt()?;
    // SAFETY: `at` holds a function of this type for this processor; it is published, and `_code`
    // keeps it mapped.
    let run = unsafe { std::mem::transmute::<*mut u8, extern "C" fn() -> u32>(at) };
    if run() == ANSWER {
        Ok(())
    } else {
        Err(io::Error::other("the stub that tests whether new code can run returned a wrong value"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_back_and_join() {
        let page = rustix::param::page_size();
        let arena = Arena::new(5 * page as u64 + 17).expect("the system allows executable memory");
        assert_eq!((arena.pages, arena.used()), (5, 0));
        let a = arena.take(1).expect("one page is free");
        let b = arena.take(page + 1).expect("two pages are free");
        let c = arena.take(2 * page).expect("two pages are free");
        assert_eq!(arena.used(), 5 * page);
        assert_eq!(
            arena.take(1).expect_err("the arena is full").kind(),
            io::ErrorKind::OutOfMemory
        );
        drop(b);
        assert_eq!(*arena.lock(), [(1, 2)]);
        drop(a);
        assert_eq!(*arena.lock(), [(0, 3)]);
        drop(c);
        assert_eq!(*arena.lock(), [(0, 5)]);
    }

    #[test]
    fn no_page_is_a_refusal() {
        assert_eq!(
            Arena::new(0).expect_err("an arena needs at least one page").kind(),
            io::ErrorKind::OutOfMemory
        );
        assert_eq!(
            Arena::new(1).expect_err("an arena needs at least one page").kind(),
            io::ErrorKind::OutOfMemory
        );
        assert!(Arena::new(u64::MAX).is_err());
    }

    #[test]
    fn pages_are_writable_or_executable_never_both() {
        let arena = Arena::new(1 << 20).expect("the system allows executable memory");
        let mut memory = CodeMemory::new(arena.clone());
        let at =
            memory.allocate(32, 16, JITMemoryKind::Executable).expect("a page is free") as usize;
        assert_eq!(protection(at), "rw-p");
        memory.finalize(BranchProtection::None).expect("the page is published");
        assert_eq!(protection(at), "r-xp");
        let code = memory.take_published();
        drop(memory);
        assert_eq!(protection(at), "r-xp", "the drop of the module freed live code");
        drop(code);
        assert_eq!(protection(at), "---p");
        assert_eq!(arena.used(), 0);
    }

    #[test]
    fn a_batch_shares_pages_and_another_does_not() {
        let arena = Arena::new(1 << 20).expect("the system allows executable memory");
        let page = rustix::param::page_size();
        let mut one = CodeMemory::new(arena.clone());
        let a = one.allocate(33, 16, JITMemoryKind::Executable).expect("a page is free") as usize;
        let b = one.allocate(33, 16, JITMemoryKind::Executable).expect("the same page has room")
            as usize;
        assert_eq!(b, a + 48);
        let c = one.allocate(2 * page, 16, JITMemoryKind::Executable).expect("more pages are free")
            as usize;
        let mut two = CodeMemory::new(arena.clone());
        let d =
            two.allocate(8, 16, JITMemoryKind::Executable).expect("another page is free") as usize;
        assert_ne!(a / page, d / page);
        assert_ne!(a / page, c / page);
        assert_eq!(arena.used(), 4 * page);
        drop((one, two));
        assert_eq!(arena.used(), 0, "the drop of a module kept unpublished drafts");
    }

    #[test]
    fn data_is_refused() {
        let arena = Arena::new(1 << 20).expect("the system allows executable memory");
        let mut memory = CodeMemory::new(arena);
        assert!(memory.allocate(8, 8, JITMemoryKind::ReadOnly).is_err());
        assert!(memory.allocate(8, 8, JITMemoryKind::Writable).is_err());
        assert!(memory.allocate(8, 1 << 20, JITMemoryKind::Executable).is_err());
    }

    /// Returns the permissions of the mapping around `address`, as `/proc/self/maps` shows them.
    fn protection(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc is mounted");
        for line in maps.lines() {
            let (range, rest) = line.split_once(' ').expect("a space ends the range");
            let (from, to) = range.split_once('-').expect("a range has a dash");
            let parse = |text| usize::from_str_radix(text, 16).expect("addresses are hexadecimal");
            if (parse(from)..parse(to)).contains(&address) {
                return rest[..4].to_owned();
            }
        }
        "unmapped".to_owned()
    }
}
