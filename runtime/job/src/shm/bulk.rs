//! The chunk buffers of one ordered pair: bulk data of matched messages, both sides at work.
//!
//! `transport/pipeline.rs` streams through them what did not fit a ring slot, after the receiver has
//! said CTS. Chunks form a stream without names: the sender fills them in the order in which
//! CTS arrived, the receiver drains them in the order in which it gave them, so the two agree
//! about whose bytes a chunk holds without anything being read from shared memory but its length.
//!
//! 1. The sender takes chunk `n % window` when `n - freed < window`, packs into it, writes its
//!    length, then its stamp `n + 1` with release order.
//! 2. The receiver sees the stamp with acquire order, checks the length against the buffer and
//!    against what is left of the message, unpacks, and publishes `freed = n + 1`.
//!
//! While the receiver unpacks chunk `k` the sender packs `k + 1`: that is the whole point.

use super::ring::Violation;
use crate::sync::Word;

/// The shared words of one pair's chunks.
pub trait ChunkMemory {
    /// The atomic word.
    type Word: Word;
    /// Bytes of one chunk.
    const BYTES: usize;

    /// The stamp of chunk `index`, below the window of both sides.
    fn stamp(&self, index: usize) -> &Self::Word;
    /// The length of chunk `index`.
    fn length(&self, index: usize) -> &Self::Word;
    /// Chunks that the receiver has freed, ever.
    fn freed(&self) -> &Self::Word;
}

/// The filling side.
#[derive(Debug)]
pub struct Filler {
    filled: u64,
    freed: u64,
    window: u64,
}

impl Filler {
    /// Nothing has been filled; the pair uses `window` chunks, a power of two.
    pub fn new(window: usize) -> Self {
        debug_assert!(window.is_power_of_two());
        Self { filled: 0, freed: 0, window: window as u64 }
    }

    /// The index of the next free chunk, or `None` while all are full.
    ///
    /// # Errors
    /// [`Violation`] when the drainer freed chunks that it cannot have.
    pub fn next<M: ChunkMemory>(&mut self, memory: &M) -> Result<Option<usize>, Violation> {
        if self.filled - self.freed == self.window {
            let freed = memory.freed().load_acquire();
            if freed < self.freed || freed > self.filled {
                return Err(Violation("chunk credits out of range"));
            }
            self.freed = freed;
            if self.filled - freed == self.window {
                return Ok(None);
            }
        }
        Ok(Some((self.filled & (self.window - 1)) as usize))
    }

    /// The index of the chunk that comes `ahead` after the next one, if it is free already.
    pub fn ahead<M: ChunkMemory>(&self, memory: &M, ahead: u64) -> Option<usize> {
        let number = self.filled + ahead;
        let free = number.wrapping_sub(memory.freed().load_acquire()) < self.window;
        free.then_some((number & (self.window - 1)) as usize)
    }

    /// Publishes the chunk that [`Filler::next`] named, filled with `len` bytes.
    pub fn publish<M: ChunkMemory>(&mut self, memory: &M, len: usize) {
        let index = (self.filled & (self.window - 1)) as usize;
        self.filled += 1;
        memory.length(index).store_relaxed(len as u64);
        memory.stamp(index).store_release(self.filled);
    }
}

/// The draining side.
#[derive(Debug)]
pub struct Drainer {
    drained: u64,
    window: u64,
}

impl Drainer {
    /// Nothing has been drained; the pair uses `window` chunks, a power of two.
    pub fn new(window: usize) -> Self {
        debug_assert!(window.is_power_of_two());
        Self { drained: 0, window: window as u64 }
    }

    /// Index and length of the next full chunk.
    ///
    /// # Errors
    /// [`Violation`] when the length is 0 or larger than a chunk.
    pub fn next<M: ChunkMemory>(&self, memory: &M) -> Result<Option<(usize, usize)>, Violation> {
        let index = (self.drained & (self.window - 1)) as usize;
        if memory.stamp(index).load_acquire() != self.drained + 1 {
            return Ok(None);
        }
        let len = memory.length(index).load_relaxed();
        if len == 0 || len > M::BYTES as u64 {
            return Err(Violation("chunk length out of range"));
        }
        Ok(Some((index, len as usize)))
    }

    /// Frees the chunk that [`Drainer::next`] named.
    pub fn advance<M: ChunkMemory>(&mut self, memory: &M) {
        self.drained += 1;
        memory.freed().store_release(self.drained);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64;

    struct Heap {
        words: [[AtomicU64; 2]; 2],
        freed: AtomicU64,
    }

    impl ChunkMemory for Heap {
        type Word = AtomicU64;
        const BYTES: usize = 16;
        fn stamp(&self, index: usize) -> &AtomicU64 {
            &self.words[index][0]
        }
        fn length(&self, index: usize) -> &AtomicU64 {
            &self.words[index][1]
        }
        fn freed(&self) -> &AtomicU64 {
            &self.freed
        }
    }

    fn heap() -> Heap {
        let word = || AtomicU64::new(0);
        Heap { words: [[word(), word()], [word(), word()]], freed: word() }
    }

    /// Three chunks through two buffers in every interleaving.
    #[test]
    fn loom_chunks() {
        loom::model(|| {
            let memory = Arc::new(heap());
            let cells: Arc<[UnsafeCell<u64>; 2]> =
                Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
            let (shared, theirs) = (memory.clone(), cells.clone());
            let filler = loom::thread::spawn(move || {
                let mut filler = Filler::new(2);
                for n in 0..3u64 {
                    let index = loop {
                        match filler.next(&*shared).unwrap() {
                            Some(index) => break index,
                            None => loom::thread::yield_now(),
                        }
                    };
                    // SAFETY: a free chunk belongs to the filler until it is published.
                    theirs[index].with_mut(|cell| unsafe { *cell = n + 10 });
                    filler.publish(&*shared, n as usize + 1);
                }
            });
            let mut drainer = Drainer::new(2);
            for n in 0..3u64 {
                let (index, len) = loop {
                    match drainer.next(&*memory).unwrap() {
                        Some(full) => break full,
                        None => loom::thread::yield_now(),
                    }
                };
                assert_eq!(len as u64, n + 1);
                // SAFETY: a full chunk belongs to the drainer until it advances.
                cells[index].with(|cell| assert_eq!(unsafe { *cell }, n + 10));
                drainer.advance(&*memory);
            }
            filler.join().unwrap();
        });
    }

    #[test]
    fn hostile_lengths_and_credits_are_violations() {
        loom::model(|| {
            for len in [0, 17, u64::MAX] {
                let memory = heap();
                memory.words[0][1].store_relaxed(len);
                memory.words[0][0].store_release(1);
                assert!(Drainer::new(2).next(&memory).is_err());
            }
            let memory = heap();
            let mut filler = Filler::new(2);
            while filler.next(&memory).unwrap().is_some() {
                filler.publish(&memory, 1);
            }
            memory.freed.store_release(3);
            assert!(filler.next(&memory).is_err());
        });
    }
}
