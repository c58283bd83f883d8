//! Counters: packed bytes by executor, for the whole process.
//!
//! `exec/` counts every call, so counting must cost next to nothing. Each thread owns a block of
//! atomics that only this thread writes (a load and a store, no locked instruction). A reader adds
//! up all blocks.

use crate::thread::{self, SLOTS, slot};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An executor that moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executor {
    Memcpy,
    Rows,
    Interpreter,
    Leaf,
    Kernel,
    Fused,
    FusedKernel,
}

/// Packed bytes moved, by executor, by all threads since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bytes {
    /// Bytes of contiguous types, moved by memcpy.
    pub memcpy: u64,
    /// Bytes of long rows, moved by one memcpy per row.
    pub rows: u64,
    /// Bytes moved by the interpreter, including the broken leaves at the ends of kernel calls.
    pub interpreter: u64,
    /// Bytes moved by leaf kernels.
    pub leaf: u64,
    /// Bytes moved by compiled kernels.
    pub kernel: u64,
    /// Bytes moved by the interpreter of fused copies, which go straight from one layout to another
    /// (`copy`). Bytes that a fused copy moves through a buffer, or by one pack or unpack, count
    /// for the executors of those moves.
    pub fused: u64,
    /// Bytes of fused copies, moved by a compiled kernel of the transfer.
    pub fused_kernel: u64,
    /// Kernel calls whose result differed from the interpreter's (`Settings::verify`). This is a
    /// number of calls, not of bytes.
    pub disagreements: u64,
}

/// The counters of a thread, in a separate cache line.
#[repr(C, align(64))]
struct Block {
    /// The thread's key; 0 if the block has no owner.
    owner: AtomicUsize,
    moved: [AtomicU64; 7],
}

impl Block {
    const fn new(owner: usize) -> Self {
        Self { owner: AtomicUsize::new(owner), moved: [const { AtomicU64::new(0) }; 7] }
    }
}

const _: () = assert!(size_of::<Block>() == 64);

/// The blocks, indexed by the slot of a thread. A block keeps its owner's key after the thread has
/// ended. The next thread with this key takes over the block.
static BLOCKS: [Block; SLOTS] = [const { Block::new(0) }; SLOTS];

/// The blocks of threads whose slot belongs to another thread. Blocks outlive their threads, so no
/// count is lost. The list grows by 64 bytes for each such thread.
static MORE: Mutex<Vec<&'static Block>> = Mutex::new(Vec::new());
static DISAGREEMENTS: AtomicU64 = AtomicU64::new(0);

fn more() -> MutexGuard<'static, Vec<&'static Block>> {
    // The list is only pushed to, so it is valid even if a thread panicked while holding the lock.
    MORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the block of a thread that does not own the block in its slot.
#[cold]
#[inline(never)]
fn elsewhere(key: usize) -> &'static Block {
    thread_local! {
        /// The variable has no destructor, so a thread can use the reference until the thread ends.
        static BLOCK: Cell<Option<&'static Block>> = const { Cell::new(None) };
    }
    let block = &BLOCKS[slot(key)];
    // Relaxed suffices: this thread reads nothing that another thread wrote before. A former thread
    // with this key has ended.
    if block.owner.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        return block;
    }
    BLOCK.get().unwrap_or_else(|| {
        let block: &'static Block = Box::leak(Box::new(Block::new(key)));
        more().push(block);
        BLOCK.set(Some(block));
        block
    })
}

/// Adds `bytes` to the executor's count.
#[inline]
pub(crate) fn add(executor: Executor, bytes: u64) {
    let key = thread::key();
    let mut block = &BLOCKS[slot(key)];
    if block.owner.load(Ordering::Relaxed) != key {
        block = elsewhere(key);
    }
    let counter = &block.moved[executor as usize];
    // This thread is the only writer.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
}

/// Counts a kernel call whose result differed from the interpreter's.
#[cold]
pub(crate) fn disagreement() {
    DISAGREEMENTS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the counts so far.
pub fn bytes() -> Bytes {
    let mut sum = [0u64; 7];
    for block in BLOCKS.iter().chain(more().iter().copied()) {
        for (sum, counter) in sum.iter_mut().zip(&block.moved) {
            *sum = sum.wrapping_add(counter.load(Ordering::Relaxed));
        }
    }
    let [memcpy, rows, interpreter, leaf, kernel, fused, fused_kernel] = sum;
    let disagreements = DISAGREEMENTS.load(Ordering::Relaxed);
    Bytes { memcpy, rows, interpreter, leaf, kernel, fused, fused_kernel, disagreements }
}

#[cfg(test)]
mod tests {
    use super::{Executor, add, bytes};

    #[test]
    fn every_thread_counts_also_those_whose_slot_is_taken() {
        // The test runs more threads at once than there are slots, and then as many threads again. No
        // other test counts bytes of this magnitude.
        const MANY: u64 = 1 << 50;
        let before = bytes().disagreements;
        for _ in 0..2 {
            let all_there = std::sync::Barrier::new(300);
            std::thread::scope(|scope| {
                for _ in 0..300 {
                    scope.spawn(|| {
                        add(Executor::FusedKernel, MANY);
                        all_there.wait();
                        add(Executor::FusedKernel, MANY);
                    });
                }
            });
        }
        assert_eq!(bytes().fused_kernel / MANY, 1200);
        assert_eq!(bytes().disagreements, before);
    }
}
