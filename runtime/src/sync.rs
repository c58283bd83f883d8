//! The atomics that two processes share, behind a trait that loom can stand in for.
//!
//! `shm/ring.rs` and `shm/bulk.rs` are written against [`Word`]; in the product a word is a
//! `std` atomic inside the mapped segment, in the model checker's tests (at the end of those
//! files) it is loom's. Only the operations that the protocol needs exist: there is no
//! read-modify-write on purpose, since a process that dies between two halves of one must not
//! stop anybody.

use std::sync::atomic::{AtomicU64, Ordering};

/// A 64-bit word with one writer and any number of readers.
pub trait Word {
    /// Reads without ordering anything.
    fn load_relaxed(&self) -> u64;
    /// Reads; what the writer did before its [`Word::store_release`] is visible afterwards.
    fn load_acquire(&self) -> u64;
    /// Writes without ordering anything.
    fn store_relaxed(&self, value: u64);
    /// Writes; publishes everything done before.
    fn store_release(&self, value: u64);
}

impl Word for AtomicU64 {
    #[inline]
    fn load_relaxed(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
    #[inline]
    fn load_acquire(&self) -> u64 {
        self.load(Ordering::Acquire)
    }
    #[inline]
    fn store_relaxed(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }
    #[inline]
    fn store_release(&self, value: u64) {
        self.store(value, Ordering::Release);
    }
}

#[cfg(test)]
impl Word for loom::sync::atomic::AtomicU64 {
    fn load_relaxed(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
    fn load_acquire(&self) -> u64 {
        self.load(Ordering::Acquire)
    }
    fn store_relaxed(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }
    fn store_release(&self, value: u64) {
        self.store(value, Ordering::Release);
    }
}
