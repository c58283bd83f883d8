//! The atomics that two processes share, behind a trait that loom can stand in for.
//!
//! `shm/ring.rs` and `shm/bulk.rs` are written against [`Word`], `shm/doorbell.rs` against [`Flag`] and
//! [`Kernel`]; in the product a word is a `std` atomic inside the mapped segment, in the model
//! checker's tests (at the end of those files) it is loom's. Only the operations that the protocol
//! needs exist: for data there is no read-modify-write on purpose, since a process that dies between
//! two halves of one must not stop anybody.

use crate::sys::futex::Woken;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

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

/// A 32-bit word that several ranks write: half of a doorbell.
pub trait Flag {
    /// Reads without ordering anything.
    fn load_relaxed(&self) -> u32;
    /// Reads; what the writer did before its [`Flag::add_release`] is visible afterwards.
    fn load_acquire(&self) -> u32;
    /// Writes without ordering anything.
    fn store_relaxed(&self, value: u32);
    /// Writes, and returns what was there; ordered both ways.
    fn swap(&self, value: u32) -> u32;
    /// Adds; publishes everything done before.
    fn add_release(&self, value: u32);
}

/// What ranks sleep on: the machine, or a model of it.
pub trait Kernel {
    /// The word that can be slept on.
    type Flag: Flag;
    /// A full fence.
    fn fence(&self);
    /// Sleeps while the word is `seen`, at most for the given time.
    ///
    /// # Errors
    /// The kernel's.
    fn wait(&self, word: &Self::Flag, seen: u32, timeout: Option<Duration>) -> io::Result<Woken>;
    /// Wakes whoever sleeps on the word.
    ///
    /// # Errors
    /// The kernel's.
    fn wake(&self, word: &Self::Flag) -> io::Result<()>;
}

impl Flag for AtomicU32 {
    #[inline]
    fn load_relaxed(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }
    #[inline]
    fn load_acquire(&self) -> u32 {
        self.load(Ordering::Acquire)
    }
    #[inline]
    fn store_relaxed(&self, value: u32) {
        self.store(value, Ordering::Relaxed);
    }
    #[inline]
    fn swap(&self, value: u32) -> u32 {
        self.swap(value, Ordering::AcqRel)
    }
    #[inline]
    fn add_release(&self, value: u32) {
        self.fetch_add(value, Ordering::Release);
    }
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

#[cfg(test)]
impl Flag for loom::sync::atomic::AtomicU32 {
    fn load_relaxed(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }
    fn load_acquire(&self) -> u32 {
        self.load(Ordering::Acquire)
    }
    fn store_relaxed(&self, value: u32) {
        self.store(value, Ordering::Relaxed);
    }
    fn swap(&self, value: u32) -> u32 {
        self.swap(value, Ordering::AcqRel)
    }
    fn add_release(&self, value: u32) {
        self.fetch_add(value, Ordering::Release);
    }
}
