//! Traits for the atomics that two processes share, so that loom tests can replace them with loom's own
//! atomics.
//!
//! `ring.rs`, `bulk.rs`, `cells.rs`, `withdrawal.rs`, `recall.rs` and `work_split.rs` in `shm/` use [`Word`];
//! `shm/doorbell.rs` uses [`Flag`] and [`Kernel`]. In the library a word is a `std` atomic inside the
//! mapped segment. In the loom tests at the end of those files a word is an atomic of loom. The traits
//! have only the operations that the protocols need. [`Word`] has no read-modify-write operation, because
//! most words have only one writer; `shm/work_split.rs` adds a compare-and-swap for the words that two
//! processes change.

use crate::sys::futex::Woken;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A 64-bit word with any number of readers. It has one writer, unless two processes change it by the
/// compare-and-swap of `shm/work_split.rs`.
pub trait Word {
    /// Reads without ordering.
    fn load_relaxed(&self) -> u64;
    /// Reads with acquire ordering: if the value comes from a [`Word::store_release`], everything that the
    /// writer did before that store is visible afterwards.
    fn load_acquire(&self) -> u64;
    /// Writes without ordering.
    fn store_relaxed(&self, value: u64);
    /// Writes with release ordering: publishes everything that the writer did before.
    fn store_release(&self, value: u64);
}

/// A 32-bit word that several ranks write. A doorbell consists of three such words.
pub trait Flag {
    /// Reads without ordering.
    fn load_relaxed(&self) -> u32;
    /// Reads with acquire ordering: if the value comes from a [`Flag::add_release`], everything that the
    /// writer did before that call is visible afterwards.
    fn load_acquire(&self) -> u32;
    /// Writes without ordering.
    fn store_relaxed(&self, value: u32);
    /// Writes `value`, and returns the old value, with acquire and release ordering.
    fn swap(&self, value: u32) -> u32;
    /// Adds `value` with release ordering: publishes everything that the caller did before.
    fn add_release(&self, value: u32);
}

/// What a doorbell needs of the machine: fences, barriers, sleep and wake-up. Tests use a model instead
/// of the machine.
pub trait Kernel {
    /// The type of a word on which a rank can sleep.
    type Flag: Flag;
    /// Executes a full fence.
    fn fence(&self);
    /// Returns whether the barriers of other processes ([`Kernel::barrier`]) include this process.
    fn is_reached(&self) -> bool;
    /// Keeps the compiler from moving a later load before an earlier store. The processor may move the
    /// load. A process that [`Kernel::barrier`] reaches needs no stronger ordering before it looks
    /// whether another rank sleeps.
    fn order(&self);
    /// Executes a full fence in this thread and in all threads of all processes that are reached.
    ///
    /// # Errors
    /// Returns the kernel's error.
    fn barrier(&self) -> io::Result<()>;
    /// Sleeps until a call of [`Kernel::wake`] for the word, or until `timeout` has passed. Returns at once
    /// if the value of the word is not `seen`. May also return early without a reason.
    ///
    /// # Errors
    /// Returns the kernel's error.
    fn wait(&self, word: &Self::Flag, seen: u32, timeout: Option<Duration>) -> io::Result<Woken>;
    /// Wakes all sleepers on the word.
    ///
    /// # Errors
    /// Returns the kernel's error.
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
