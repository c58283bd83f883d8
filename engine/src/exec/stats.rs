//! Counters: packed bytes by executor, whole process.
//!
//! Written by `exec/` on every call, so they must cost next to nothing: each thread owns a block
//! of atomics that only it writes (a load and a store, no locked instruction), and a reader adds
//! all blocks up.

use crate::thread::{self, SLOTS, slot};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Who moved bytes.
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
    /// Contiguous types.
    pub memcpy: u64,
    /// Long rows.
    pub rows: u64,
    /// The interpreter, ragged ends of kernel calls included.
    pub interpreter: u64,
    /// Leaf kernels.
    pub leaf: u64,
    /// Compiled kernels.
    pub kernel: u64,
    /// Fused copies, interpreted, straight from one layout to another (`copy`); what they move through a buffer
    /// or by one pack or unpack counts there.
    pub fused: u64,
    /// Fused copies by a compiled kernel of the pair.
    pub fused_kernel: u64,
    /// Kernel calls that disagreed with the interpreter (`Settings::verify`); not bytes.
    pub disagreements: u64,
}

/// The counters of a thread, in a cache line of their own.
#[repr(C, align(64))]
struct Block {
    /// The thread's key; 0 for nobody's.
    owner: AtomicUsize,
    moved: [AtomicU64; 7],
}

impl Block {
    const fn new(owner: usize) -> Self {
        Self { owner: AtomicUsize::new(owner), moved: [const { AtomicU64::new(0) }; 7] }
    }
}

const _: () = assert!(size_of::<Block>() == 64);

/// Blocks by a thread's slot. A block stays its thread's when that has ended, and is that of the next
/// thread with the same key.
static BLOCKS: [Block; SLOTS] = [const { Block::new(0) }; SLOTS];

/// Blocks of threads whose slot was another's. They outlive their threads, so nothing is lost; the
/// list grows with the number of such threads, 64 bytes each.
static MORE: Mutex<Vec<&'static Block>> = Mutex::new(Vec::new());
static DISAGREEMENTS: AtomicU64 = AtomicU64::new(0);

fn more() -> MutexGuard<'static, Vec<&'static Block>> {
    // The list is only pushed to: it is sound whatever a panicking thread did.
    MORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The block of a thread that is not in its slot.
#[cold]
#[inline(never)]
fn elsewhere(key: usize) -> &'static Block {
    thread_local! {
        /// A reference without a destructor: it works to a thread's end.
        static BLOCK: Cell<Option<&'static Block>> = const { Cell::new(None) };
    }
    let block = &BLOCKS[slot(key)];
    // Nothing is read that another thread wrote before: whoever had this key has ended.
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

/// Notes a kernel call that disagreed with the interpreter.
#[cold]
pub(crate) fn disagreement() {
    DISAGREEMENTS.fetch_add(1, Ordering::Relaxed);
}

/// The counts so far.
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
        // More threads at once than there are slots, and as many after them. Nothing else in these
        // tests counts as many bytes.
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
