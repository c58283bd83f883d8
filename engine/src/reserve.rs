//! A reserve of memory, so that a call that runs out of memory returns an error and the process does not end.
//!
//! Rust ends the process when a small allocation fails. An allocator must not unwind, so no error can come out of the
//! middle of a call. [`ReserveAllocator`] therefore serves an allocation that the system refuses from a reserve in the
//! process's own memory. The call goes on, and from then on memory [is short](is_short). The library asks for
//! that ([`refuses`]) before it makes an object: while the system still refuses memory and the calls so far have kept
//! much of the reserve, it makes none, so the reserve never runs dry.
//!
//! The reserve covers what one call allocates in a fixed amount. It does not cover what grows with the arguments of a
//! call, or with the number of objects and messages. Such an allocation has to be able to fail: [`fallible`] keeps it
//! out of the reserve, [`Grow`] lets a table take a short step from the reserve as long as the calls so far have kept
//! little of it, and [`room`] tests before a longer step whether memory is there.
//!
//! The reserve lies in the zeroed data of the binary. So its address space is promised when the process starts, and its
//! pages are taken only when they are used.

use crate::attention;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::collections::{TryReserveError, VecDeque};
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The length of the reserve in bytes.
const BYTES: usize = 4 << 20;
/// The reserve is handed out in multiples of this number of bytes.
const GRANULE: usize = 128;
const GRANULES: usize = BYTES / GRANULE;
/// The alignment of the reserve, and the greatest alignment of its blocks.
const PAGE: usize = 4096;
/// While the system refuses memory, calls fail once this much of the reserve is in use. The rest is for calls that free
/// memory, and for calls that other threads have begun.
const KEPT: usize = GRANULES / 8;
/// The number of bytes that the system must have before memory is no longer short, and the number of bytes above which
/// [`room`] asks the system.
const SAMPLE: usize = 64 << 10;

#[repr(C, align(4096))]
struct Memory(UnsafeCell<[u8; BYTES]>);

// SAFETY: this file never reads or writes the bytes. It hands them out in blocks that do not overlap (`Used`).
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; BYTES]));

/// Number of granules in use.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// One bit for each granule: 1 if the granule belongs to a block.
static USED: Mutex<Used> = Mutex::new(Used([0; GRANULES / 64]));

struct Used([u64; GRANULES / 64]);

impl Used {
    /// Finds `granules` free granules, the first of which is a multiple of `step`, and marks them as used. Returns the
    /// index of the first.
    fn take(&mut self, granules: usize, step: usize) -> Option<usize> {
        let (mut first, mut next) = (0, 0);
        while next < GRANULES {
            if next - first == granules {
                break;
            }
            let word = self.0[next / 64];
            let skipped = match word >> (next % 64) & 1 {
                0 if next % 64 == 0 && word == 0 && granules - (next - first) >= 64 => {
                    next += 64;
                    continue;
                }
                0 => {
                    next += 1;
                    continue;
                }
                _ if word == u64::MAX => (next / 64 + 1) * 64,
                _ => next + 1,
            };
            next = skipped.next_multiple_of(step);
            first = next;
        }
        if next - first != granules || next > GRANULES {
            return None;
        }
        self.mark(first, granules, true);
        Some(first)
    }

    fn mark(&mut self, first: usize, granules: usize, used: bool) {
        for at in first..first + granules {
            let bit = 1 << (at % 64);
            if used {
                self.0[at / 64] |= bit;
            } else {
                self.0[at / 64] &= !bit;
            }
        }
    }
}

fn used() -> MutexGuard<'static, Used> {
    // Nothing under the lock can panic.
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn granules(bytes: usize) -> usize {
    bytes.div_ceil(GRANULE)
}

/// Returns whether a block is one of the reserve's.
#[inline(always)]
fn is_reserved(block: *mut u8) -> bool {
    block.addr().wrapping_sub(MEMORY.0.get().addr()) < BYTES
}

thread_local! {
    /// Whether allocations of this thread may fail.
    static FALLIBLE: Cell<bool> = const { Cell::new(false) };
}

/// Takes a block out of the reserve, after the system has refused it. Returns null if the caller can bear that, or if
/// the reserve has no such block.
#[cold]
#[inline(never)]
fn reserved(layout: Layout) -> *mut u8 {
    // A thread that ends has no thread-local variables any more.
    if layout.align() > PAGE || FALLIBLE.try_with(Cell::get).unwrap_or(false) {
        return null_mut();
    }
    let granules = granules(layout.size());
    let Some(first) = used().take(granules, layout.align().div_ceil(GRANULE)) else {
        return null_mut();
    };
    IN_USE.fetch_add(granules, Ordering::Relaxed);
    attention::set(attention::SHORT);
    MEMORY.0.get().cast::<u8>().wrapping_add(first * GRANULE)
}

/// Gives a block back to the reserve.
#[cold]
#[inline(never)]
fn give_back(block: *mut u8, layout: Layout) {
    let first = (block.addr() - MEMORY.0.get().addr()) / GRANULE;
    let granules = granules(layout.size());
    used().mark(first, granules, false);
    IN_USE.fetch_sub(granules, Ordering::Relaxed);
}

/// The system's allocator, with a reserve for the time when the system has no memory left.
///
/// The C library uses it. A Rust program that wants errors instead of the end of the process names it as its own:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: typepack_engine::reserve::ReserveAllocator = typepack_engine::reserve::ReserveAllocator;
/// # let _text = String::from("a");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ReserveAllocator;

// SAFETY: every block comes from the system's allocator or from the reserve, and returns to where it came from with
// the layout of its allocation. Blocks of the reserve are aligned and do not overlap, because `Used` marks them.
// Nothing here unwinds or allocates.
unsafe impl GlobalAlloc for ReserveAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees that `layout` has a size above zero.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() { reserved(layout) } else { block }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees that `layout` has a size above zero.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            return block;
        }
        let block = reserved(layout);
        if !block.is_null() {
            // SAFETY: `reserved` returned a block of at least `layout.size()` bytes that nobody else uses.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_reserved(block) {
            return give_back(block, layout);
        }
        // SAFETY: the caller guarantees that the block is allocated with `layout`. It is not one of the reserve's,
        // so it came from the system.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !is_reserved(block) {
            // SAFETY: the block came from the system with `layout`, and the caller guarantees that `bytes` is above
            // zero and does not overflow when it is rounded up to the alignment.
            let moved = unsafe { System.realloc(block, layout, bytes) };
            if !moved.is_null() {
                return moved;
            }
            if bytes <= layout.size() {
                // The system frees a block without its length, so the longer block serves as well.
                return block;
            }
        }
        // SAFETY: the caller guarantees that `bytes` does not overflow when it is rounded up to the alignment of
        // `layout`, which is valid.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        // SAFETY: `bytes` is above zero, as the caller guarantees.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both blocks are allocated, with at least this many bytes, and do not overlap. The old block has
            // the layout `layout`, as the caller guarantees.
            unsafe {
                block.copy_to_nonoverlapping(moved, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

/// Returns whether the reserve had to serve an allocation, and no later call has found that the system has memory
/// again. Always `false` in a program that does not use [`ReserveAllocator`].
#[inline(always)]
pub fn is_short() -> bool {
    attention::is_for(attention::SHORT)
}

/// Returns whether a call that needs memory must fail: the system has no memory, and the calls so far have kept much of
/// the reserve. To be called while memory [is short](is_short).
#[cold]
#[inline(never)]
pub fn refuses() -> bool {
    // What the reserve lacks, the system must have.
    let in_use = IN_USE.load(Ordering::Relaxed);
    if system_has(SAMPLE + 2 * in_use * GRANULE) {
        attention::clear(attention::SHORT);
        return false;
    }
    in_use > KEPT
}

/// Returns whether the reserve could serve a work that needs up to `bytes`, so that the work may begin.
pub fn covers(bytes: usize) -> bool {
    !is_short() && (GRANULES - IN_USE.load(Ordering::Relaxed)) * GRANULE >= 2 * bytes
}

/// Returns whether a thread may now use a thread-local variable with a destructor for the first time. The system's
/// library then allocates a record of some bytes, and ends the process if it has no memory for that.
#[cold]
pub fn may_register() -> bool {
    !is_short() && system_has(PAGE)
}

/// Allocates `bytes` from the system, and frees them again.
fn system_has(bytes: usize) -> bool {
    let Ok(layout) = Layout::from_size_align(bytes.max(1), 16) else { return false };
    // SAFETY: the layout has a size above zero. (Without `black_box`, the compiler would leave out the pair of calls.)
    let block = black_box(unsafe { System.alloc(layout) });
    if block.is_null() {
        return false;
    }
    // SAFETY: the block has just been allocated with this layout.
    unsafe { System.dealloc(block, layout) };
    true
}

/// Returns whether a step that allocates `bytes` at once may begin. Few bytes are always there, at worst in the
/// reserve; for more, the system is asked.
#[inline]
pub fn room(bytes: usize) -> bool {
    bytes <= SAMPLE || system_has(bytes)
}

/// Runs `work`, the allocations of which may fail: the reserve does not serve them.
pub fn fallible<R>(work: impl FnOnce() -> R) -> R {
    /// Restores the value of before, also if `work` panics.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            FALLIBLE.set(self.0);
        }
    }
    let _restore = Restore(FALLIBLE.replace(true));
    work()
}

/// Collections whose growth may fail.
pub trait Grow {
    /// Makes room for `more` further entries. The collection may then take so many entries without an allocation. If
    /// the system has no memory, a step of few bytes comes from the reserve, unless much of the reserve is in use.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory. The collection is then unchanged.
    fn grow(&mut self, more: usize) -> Result<(), TryReserveError>;
}

impl<T> Grow for Vec<T> {
    #[inline(always)]
    fn grow(&mut self, more: usize) -> Result<(), TryReserveError> {
        if self.capacity() - self.len() >= more {
            return Ok(());
        }
        step(step_bytes::<T>(self.capacity(), self.len(), more), || self.try_reserve(more))
    }
}

impl<T> Grow for VecDeque<T> {
    #[inline(always)]
    fn grow(&mut self, more: usize) -> Result<(), TryReserveError> {
        if self.capacity() - self.len() >= more {
            return Ok(());
        }
        step(step_bytes::<T>(self.capacity(), self.len(), more), || self.try_reserve(more))
    }
}

/// Returns the number of bytes of a collection after a step that makes room for `more` entries.
fn step_bytes<T>(capacity: usize, len: usize, more: usize) -> usize {
    capacity.saturating_mul(2).max(len.saturating_add(more)).saturating_mul(size_of::<T>())
}

/// Lets a collection grow to `bytes` bytes by `grow`.
#[cold]
fn step(
    bytes: usize,
    mut grow: impl FnMut() -> Result<(), TryReserveError>,
) -> Result<(), TryReserveError> {
    fallible(&mut grow).or_else(|refused| {
        // So tables never use up the reserve, however many there are.
        if bytes > SAMPLE || IN_USE.load(Ordering::Relaxed) > KEPT {
            return Err(refused);
        }
        grow()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_the_reserve_are_aligned_and_apart() {
        let mut used = Used([0; GRANULES / 64]);
        let mut blocks = Vec::new();
        for round in 0..10_000_usize {
            let (granules, step) = ([1, 3, 64, 70, 200][round % 5], [1, 2, 32][round % 3]);
            match used.take(granules, step) {
                Some(first) => {
                    assert!(first % step == 0 && first + granules <= GRANULES);
                    assert!(
                        blocks.iter().all(|&(at, len)| at + len <= first || first + granules <= at)
                    );
                    blocks.push((first, granules));
                }
                None => assert!(!blocks.is_empty()),
            }
            if round % 3 == 0 || blocks.len() > 300 {
                let (first, granules) = blocks.swap_remove(round * 7 % blocks.len());
                used.mark(first, granules, false);
            }
        }
        for (first, granules) in blocks {
            used.mark(first, granules, false);
        }
        assert_eq!(used.0, [0; GRANULES / 64]);
        assert_eq!(used.take(GRANULES, 32), Some(0));
        assert_eq!(used.take(1, 1), None);
    }

    #[test]
    fn a_block_moves_between_the_reserve_and_the_system() {
        let layout = Layout::from_size_align(1000, 64).expect("a layout");
        let block = reserved(layout);
        assert!(is_reserved(block) && block.addr().is_multiple_of(64) && is_short());
        // SAFETY: the block has 1000 bytes. It is reallocated and freed with its layouts.
        unsafe {
            block.write_bytes(7, 1000);
            let moved = ReserveAllocator.realloc(block, layout, 5000);
            assert!(!is_reserved(moved) && (0..1000).all(|at| moved.add(at).read() == 7));
            ReserveAllocator.dealloc(moved, Layout::from_size_align(5000, 64).expect("a layout"));
        }
        assert_eq!(IN_USE.load(Ordering::Relaxed), 0);
        assert!(!refuses() && !is_short());
        assert!(fallible(|| reserved(layout)).is_null());
        let too_much: Result<(), _> = Vec::<u8>::new().grow(isize::MAX as usize - 64);
        assert!(too_much.is_err() && !is_short() && !room(isize::MAX as usize - 64));
    }
}
