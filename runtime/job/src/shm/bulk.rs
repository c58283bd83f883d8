//! The chunk buffers of one ordered pair of ranks. They carry the data of long messages, and let the sender
//! and the receiver work on the same message at the same time.
//!
//! `transport/protocol/pipeline.rs` sends a message through chunks if the message does not fit in the ring. The sender
//! starts when it has received the receiver's CTS ("clear to send") for the message. A chunk names its message by
//! the message's number in the order of the CTS envelopes of the pair. The ring keeps this order, so both ranks
//! give the same number to a message. All that the receiver reads about a chunk from shared memory is its stamp,
//! its place, its length and this number, and the receiver checks them.
//!
//! 1. Let `n` be the number of chunks that the sender has filled since the start of the job, `freed` the
//!    number that the receiver has freed, and `window` the number of stamps of the pair. While fewer than
//!    `window` chunks are filled and not freed (`n - freed`), the sender takes a chunk from its pool, packs
//!    data into it, writes the chunk's place (its number in the pool), the length of the data and the number of the
//!    message, and then writes the value `n + 1` with release order into the stamp with the number `n % window`.
//! 2. The receiver reads the stamp with acquire order, checks that the place is one of the sender's chunks, that the
//!    number is that of a message which this rank receives, and that the length is at most the size of that chunk and
//!    at most the number of bytes of the message that are still missing, unpacks the data, and publishes
//!    `freed = n + 1`.
//!
//! So the sender can pack chunk `k + 1` while the receiver unpacks chunk `k`.

use super::ring::Violation;
use crate::sync::Word;

/// Access to the words that describe one pair's chunks in shared memory.
pub trait ChunkMemory {
    /// The type of a word.
    type Word: Word;

    /// Returns the number of stamps of the pair: the maximum number of chunks in flight. It is a power of two, and
    /// always the same for a pair.
    fn window(&self) -> u64;
    /// Returns the size in bytes of the chunk at `place`, or 0 if there is no such place.
    fn size(&self, place: u64) -> u64;
    /// Returns stamp `index`. The index is below the window of the pair.
    fn stamp(&self, index: usize) -> &Self::Word;
    /// Returns the length word beside stamp `index`: the number of bytes in the chunk.
    fn length(&self, index: usize) -> &Self::Word;
    /// Returns the place word beside stamp `index`: the number of the chunk in the sender's pool.
    fn place(&self, index: usize) -> &Self::Word;
    /// Returns the message word beside stamp `index`: the number of the message in the order of the CTS envelopes.
    fn message(&self, index: usize) -> &Self::Word;
    /// Returns the word with the number of chunks that the receiver has freed since the start of the job.
    fn freed(&self) -> &Self::Word;
}

/// A chunk that holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The number of the chunk in the sender's pool.
    pub place: u64,
    /// The number of bytes in the chunk.
    pub len: usize,
    /// The number of the message in the order of the CTS envelopes of the pair.
    pub message: u64,
}

/// The sender's side of the chunks of one pair.
#[derive(Debug, Default)]
pub struct Filler {
    filled: u64,
    freed: u64,
}

impl Filler {
    /// Returns how many chunks the sender has filled before the next one, or `None` if the receiver has
    /// not freed any of the last `window` chunks.
    ///
    /// # Errors
    /// Returns a [`Violation`] if the receiver's count of freed chunks has decreased or exceeds the number of
    /// chunks that this sender has filled.
    pub fn next<M: ChunkMemory>(&mut self, memory: &M) -> Result<Option<u64>, Violation> {
        if self.filled - self.freed == memory.window() {
            let freed = memory.freed().load_acquire();
            if freed < self.freed || freed > self.filled {
                let allowed = self.freed..=self.filled;
                return Err(Violation::outside("the count of freed chunks", freed, allowed));
            }
            self.freed = freed;
            if self.filled - freed == memory.window() {
                return Ok(None);
            }
        }
        Ok(Some(self.filled))
    }

    /// Returns the number of chunks that this sender has filled since the start of the job.
    pub fn filled(&self) -> u64 {
        self.filled
    }

    /// Returns whether the receiver has freed all chunks.
    pub fn is_idle<M: ChunkMemory>(&self, memory: &M) -> bool {
        memory.freed().load_acquire() == self.filled
    }

    /// Publishes the chunk that [`Filler::next`] has allowed. The caller has written `chunk.len` bytes to the
    /// chunk at `chunk.place`.
    pub fn publish<M: ChunkMemory>(&mut self, memory: &M, chunk: Full) {
        let index = (self.filled & (memory.window() - 1)) as usize;
        self.filled += 1;
        memory.place(index).store_relaxed(chunk.place);
        memory.length(index).store_relaxed(chunk.len as u64);
        memory.message(index).store_relaxed(chunk.message);
        memory.stamp(index).store_release(self.filled);
    }
}

/// The receiver's side of the chunks of one pair.
#[derive(Debug, Default)]
pub struct Drainer {
    drained: u64,
}

impl Drainer {
    /// Returns the next chunk to drain, or `None` if the sender has not filled that chunk yet. The caller has to
    /// check the number of the message.
    ///
    /// # Errors
    /// Returns a [`Violation`] if no chunk has the place, or if the length is 0 or larger than the chunk.
    pub fn next<M: ChunkMemory>(&self, memory: &M) -> Result<Option<Full>, Violation> {
        let index = (self.drained & (memory.window() - 1)) as usize;
        if memory.stamp(index).load_acquire() != self.drained + 1 {
            return Ok(None);
        }
        let (place, len) =
            (memory.place(index).load_relaxed(), memory.length(index).load_relaxed());
        let size = memory.size(place);
        if size == 0 {
            return Err(Violation::new(format!("the sender has no chunk {place}")));
        }
        if len == 0 || len > size {
            return Err(Violation::outside("the length of the data in a chunk", len, 1..=size));
        }
        let message = memory.message(index).load_relaxed();
        Ok(Some(Full { place, len: len as usize, message }))
    }

    /// Frees the chunk whose place [`Drainer::next`] returned.
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
        words: [[AtomicU64; 4]; 2],
        freed: AtomicU64,
    }

    impl ChunkMemory for Heap {
        type Word = AtomicU64;
        fn window(&self) -> u64 {
            2
        }
        fn size(&self, place: u64) -> u64 {
            if place < 2 { 16 } else { 0 }
        }
        fn place(&self, index: usize) -> &AtomicU64 {
            &self.words[index][2]
        }
        fn stamp(&self, index: usize) -> &AtomicU64 {
            &self.words[index][0]
        }
        fn length(&self, index: usize) -> &AtomicU64 {
            &self.words[index][1]
        }
        fn message(&self, index: usize) -> &AtomicU64 {
            &self.words[index][3]
        }
        fn freed(&self) -> &AtomicU64 {
            &self.freed
        }
    }

    fn heap() -> Heap {
        let word = || AtomicU64::new(0);
        Heap { words: [0, 1].map(|_| [word(), word(), word(), word()]), freed: word() }
    }

    /// Checks in every interleaving that three chunks pass through two buffers in order and unchanged.
    #[test]
    fn loom_chunks() {
        loom::model(|| {
            let memory = Arc::new(heap());
            let cells: Arc<[UnsafeCell<u64>; 2]> =
                Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
            let (shared, theirs) = (memory.clone(), cells.clone());
            let filler = loom::thread::spawn(move || {
                let mut filler = Filler::default();
                for n in 0..3u64 {
                    let number = loop {
                        match filler.next(&*shared).unwrap() {
                            Some(number) => break number,
                            None => loom::thread::yield_now(),
                        }
                    };
                    // The sender may use its chunks in any order.
                    let place = 1 - number % 2;
                    // SAFETY: the chunk is free, and only the sender uses it between `next` and `publish`.
                    theirs[place as usize].with_mut(|cell| unsafe { *cell = n + 10 });
                    filler.publish(&*shared, Full { place, len: n as usize + 1, message: n + 5 });
                }
            });
            let mut drainer = Drainer::default();
            for n in 0..3u64 {
                let Full { place, len, message } = loop {
                    match drainer.next(&*memory).unwrap() {
                        Some(full) => break full,
                        None => loom::thread::yield_now(),
                    }
                };
                assert_eq!((len as u64, message), (n + 1, n + 5));
                // SAFETY: the chunk is full, and only the receiver uses it between `next` and `advance`.
                cells[place as usize].with(|cell| assert_eq!(unsafe { *cell }, n + 10));
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
                assert!(Drainer::default().next(&memory).is_err());
            }
            for place in [2, u64::MAX] {
                let memory = heap();
                memory.words[0][1].store_relaxed(1);
                memory.words[0][2].store_relaxed(place);
                memory.words[0][0].store_release(1);
                assert!(Drainer::default().next(&memory).is_err());
            }
            let memory = heap();
            let mut filler = Filler::default();
            while filler.next(&memory).unwrap().is_some() {
                filler.publish(&memory, Full { place: 0, len: 1, message: 0 });
            }
            memory.freed.store_release(3);
            assert!(filler.next(&memory).is_err());
        });
    }
}
