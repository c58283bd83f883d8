//! Counters: packed bytes by executor, whole process.
//!
//! Written by `exec.rs` on every call, so they must cost next to nothing: each thread owns a block
//! of atomics that only it writes (a load and a store, no locked instruction), and a reader adds
//! all blocks up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
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

#[derive(Default)]
struct Block {
    moved: [AtomicU64; 7],
}

/// Blocks of all threads that ever counted. A thread's block outlives it, so nothing is lost; the
/// list grows with the number of threads that packed, 64 bytes each.
static BLOCKS: Mutex<Vec<&'static Block>> = Mutex::new(Vec::new());
static DISAGREEMENTS: AtomicU64 = AtomicU64::new(0);

fn blocks() -> MutexGuard<'static, Vec<&'static Block>> {
    // The list is only pushed to: it is sound whatever a panicking thread did.
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// A reference without a destructor: reading it is one instruction, and works to a thread's end.
    static BLOCK: Cell<Option<&'static Block>> = const { Cell::new(None) };
}

/// A block for this thread.
#[cold]
#[inline(never)]
fn join() -> &'static Block {
    let block: &'static Block = Box::leak(Box::default());
    blocks().push(block);
    BLOCK.set(Some(block));
    block
}

/// Adds `bytes` to the executor's count.
#[inline]
pub(crate) fn add(executor: Executor, bytes: u64) {
    let block = match BLOCK.get() {
        Some(block) => block,
        None => join(),
    };
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
    for block in blocks().iter() {
        for (sum, counter) in sum.iter_mut().zip(&block.moved) {
            *sum = sum.wrapping_add(counter.load(Ordering::Relaxed));
        }
    }
    let [memcpy, rows, interpreter, leaf, kernel, fused, fused_kernel] = sum;
    let disagreements = DISAGREEMENTS.load(Ordering::Relaxed);
    Bytes { memcpy, rows, interpreter, leaf, kernel, fused, fused_kernel, disagreements }
}
