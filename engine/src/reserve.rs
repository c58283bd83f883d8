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
//! A rank that refuses a call of several ranks has to tell the others, and for that it needs entries in the same tables.
//! [`insist`] runs such steps: tables keep a few entries for them, and let them have half of the reserve.
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
use std::thread::LocalKey;

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
/// Tables may grow from the reserve for a work that [`insist`] runs until this much of the reserve is in use.
const INSISTED: usize = GRANULES / 2;
/// Number of entries that a table keeps for a work that [`insist`] runs ([`spare`]), and that each step of growth adds:
/// then a table at its end has room for a message to another rank and for one from there.
pub const SPARE: usize = 4;
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
    /// Whether [`insist`] runs the work of this thread.
    static INSISTS: Cell<bool> = const { Cell::new(false) };
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
    in_use > if INSISTS.get() { INSISTED } else { KEPT }
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
    with(&FALLIBLE, work)
}

/// Runs `work`, the steps by which this rank tells other ranks that it refuses a call, or takes what they send in the
/// call. Collections that [`Grow`] then use the entries that they keep for this, and grow from half of the reserve.
/// Nothing [is refused](refuses) until that half is in use.
pub fn insist<R>(work: impl FnOnce() -> R) -> R {
    with(&INSISTS, work)
}

/// Returns the number of entries that a table has to keep free when it gives one away: [`SPARE`], or 0 in a work that
/// [`insist`] runs. For tables whose entries are used again, so that the capacity does not tell how many are free.
pub fn spare() -> usize {
    if INSISTS.get() { 0 } else { SPARE }
}

/// Runs `work` while a mode of this thread is on.
fn with<R>(mode: &'static LocalKey<Cell<bool>>, work: impl FnOnce() -> R) -> R {
    /// Restores the value of before, also if `work` panics.
    struct Restore(&'static LocalKey<Cell<bool>>, bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let _restore = Restore(mode, mode.replace(true));
    work()
}

/// Collections whose growth may fail.
pub trait Grow {
    /// Makes room for `more` further entries. The collection may then take so many entries without an allocation. If
    /// the system has no memory, a step of few bytes comes from the reserve, unless much of the reserve is in use (see
    /// also [`insist`]).
    ///
    /// # Errors
    /// Returns an error if there is not enough memory. The collection is then unchanged.
    fn grow(&mut self, more: usize) -> Result<(), TryReserveError>;
}

/// Implements [`Grow`] for a collection of the standard library.
macro_rules! grow {
    ($collection:ident) => {
        impl<T> Grow for $collection<T> {
            #[inline(always)]
            fn grow(&mut self, more: usize) -> Result<(), TryReserveError> {
                if self.capacity() - self.len() >= more {
                    return Ok(());
                }
                let (len, capacity) = (self.len(), self.capacity());
                step((len, capacity, size_of::<T>()), more, |entries, exactly| match exactly {
                    true => self.try_reserve_exact(entries),
                    false => self.try_reserve(entries),
                })
            }
        }
    };
}

grow!(Vec);
grow!(VecDeque);

/// Lets a collection of `len` entries of `size` bytes, with memory for `capacity`, grow by `more` entries. `grow`
/// takes the number of entries, and whether to grow by no more than these.
#[cold]
fn step(
    (len, capacity, size): (usize, usize, usize),
    more: usize,
    mut grow: impl FnMut(usize, bool) -> Result<(), TryReserveError>,
) -> Result<(), TryReserveError> {
    let insists = INSISTS.get();
    let wanted = more.saturating_add(SPARE);
    fallible(|| grow(wanted, false)).or_else(|refused| {
        let exact = len.saturating_add(more).saturating_mul(size);
        let step = capacity.saturating_mul(2).max(len.saturating_add(wanted)).saturating_mul(size);
        let in_use = IN_USE.load(Ordering::Relaxed);
        // So tables never use up the reserve, however many there are.
        if step <= SAMPLE && in_use <= KEPT {
            return grow(wanted, false);
        }
        if insists && in_use.saturating_add(granules(exact)) <= INSISTED {
            return grow(more, true);
        }
        Err(refused)
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
    fn the_last_entries_of_a_table_are_for_work_that_insists() {
        fn check<T: Grow>(mut table: T, room: impl Fn(&T) -> usize, fill: impl Fn(&mut T)) {
            table.grow(1).expect("memory");
            assert!(room(&table) > SPARE);
            while room(&table) > 0 {
                fill(&mut table);
                // More entries than an address space has: the system refuses, and the table does not change.
                let more = usize::MAX / 8 - SPARE;
                assert!(table.grow(more).is_err() && insist(|| table.grow(more)).is_err());
                assert!(table.grow(0).is_ok());
                let left = room(&table);
                assert!(insist(|| table.grow(left)).is_ok() && room(&table) == left);
            }
        }
        check(Vec::<u64>::new(), |v| v.capacity() - v.len(), |v| v.push(1));
        check(VecDeque::<u64>::new(), |v| v.capacity() - v.len(), |v| v.push_back(1));
        assert_eq!((spare(), insist(spare), spare()), (SPARE, 0, SPARE));
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
