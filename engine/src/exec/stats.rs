//! Counts the packed bytes that each executor has moved, for the whole process.
//!
//! `exec/` counts the bytes of every call, so counting must cost next to nothing. Each thread owns
//! a block of atomic counters that no other thread writes. So the thread can add with a plain load
//! and store instead of a locked instruction. A reader adds up the blocks of all threads.

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

/// The packed bytes that each executor has moved, in all threads, since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bytes {
    /// Bytes of contiguous types, moved by one call of `contiguous::copy` per pack or unpack.
    pub memcpy: u64,
    /// Bytes of rows (blocks of at least 8 KiB), moved by one call of `contiguous::copy` per row.
    pub rows: u64,
    /// Bytes moved by the interpreter. They include single blocks between nests, lists of runs of
    /// unequal length, and the parts of leaves at the ends of a range, even if a kernel moves the
    /// whole leaves between these parts.
    pub interpreter: u64,
    /// Bytes moved by leaf kernels.
    pub leaf: u64,
    /// Bytes moved by compiled kernels.
    pub kernel: u64,
    /// Bytes of fused copies (`copy`) that the engine's own code moved straight from one layout to
    /// another. If a fused copy goes through a buffer, or is a single pack or unpack, its bytes
    /// count for the executors of that pack or unpack instead.
    pub fused: u64,
    /// Bytes of fused copies that compiled kernels moved straight from one layout to another.
    pub fused_kernel: u64,
    /// Number of checks under `Settings::verify` (not of bytes) that found a wrong result: the result of a
    /// kernel, or of the code that transposes blocks in a fused copy, differed from the interpreter's.
    pub disagreements: u64,
}

impl Bytes {
    /// Returns the bytes of each executor with its name. Their sum is [`total`](Self::total).
    pub fn parts(&self) -> [(&'static str, u64); 7] {
        [
            ("memcpy", self.memcpy),
            ("rows", self.rows),
            ("leaf kernels", self.leaf),
            ("compiled kernels", self.kernel),
            ("fused copies", self.fused),
            ("compiled copies", self.fused_kernel),
            ("interpreter", self.interpreter),
        ]
    }

    /// Returns the bytes of all executors.
    pub fn total(&self) -> u64 {
        self.parts().iter().map(|(_, bytes)| bytes).sum()
    }
}

impl std::fmt::Display for Bytes {
    /// Prints the sum, and the executors that have moved anything: `48 (16 rows, 32 leaf kernels)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.total())?;
        let parts = self.parts().into_iter().filter(|(_, bytes)| *bytes > 0);
        for (at, (name, bytes)) in parts.enumerate() {
            write!(f, "{}{bytes} {name}", if at == 0 { " (" } else { ", " })?;
        }
        f.write_str(if self.total() > 0 { ")" } else { "" })
    }
}

/// The counters of one thread, in a cache line of their own.
#[repr(C, align(64))]
struct Block {
    /// The key of the thread that owns the block; 0 if the block has no owner.
    owner: AtomicUsize,
    moved: [AtomicU64; 7],
}

impl Block {
    const fn new(owner: usize) -> Self {
        Self { owner: AtomicUsize::new(owner), moved: [const { AtomicU64::new(0) }; 7] }
    }
}

const _: () = assert!(size_of::<Block>() == 64);

/// One block per slot; `slot` computes the slot of a thread from the thread's key. Several threads can
/// share a slot; the first of them owns the block. The block keeps that thread's key after the thread
/// has ended. The next thread that gets the same key then owns the block.
static BLOCKS: [Block; SLOTS] = [const { Block::new(0) }; SLOTS];

/// The blocks of the threads that do not own the block of their slot. The process never frees these
/// blocks, so no count is lost. Each such thread adds a block of 64 bytes to the list.
static MORE: Mutex<Vec<&'static Block>> = Mutex::new(Vec::new());
static DISAGREEMENTS: AtomicU64 = AtomicU64::new(0);

fn more() -> MutexGuard<'static, Vec<&'static Block>> {
    // Ignore poisoning. Threads only push to the list, so the list is valid even if a thread
    // panicked while it held the lock.
    MORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// If the block of the thread's slot has no owner, makes the thread its owner and returns the
/// block. Otherwise returns the thread's block in `MORE`; the first such call creates it.
#[cold]
#[inline(never)]
fn elsewhere(key: usize) -> &'static Block {
    thread_local! {
        /// A thread can use this variable until the thread ends, because the variable has no
        /// destructor.
        static BLOCK: Cell<Option<&'static Block>> = const { Cell::new(None) };
    }
    let block = &BLOCKS[slot(key)];
    // Relaxed ordering suffices, because this thread reads only counters that it writes itself, or
    // that an ended thread with the same key wrote.
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
    // Only this thread writes the counter, so a load and a store cannot lose a count.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
}

/// Counts a kernel call whose result differed from the interpreter's.
#[cold]
pub(crate) fn disagreement() {
    DISAGREEMENTS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the counts since the process began.
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
        // Each round runs more threads at once than there are slots, and there are two rounds. Each
        // thread adds `MANY` twice. `MANY` is far larger than the number of bytes that any other test
        // moves.
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
