//! The block of a rank: the words of a window that other ranks read and write. A block lies at the start of the
//! rank's part in the region of the window.
//!
//! ```text
//! lock        the lock of the window's memory at this rank (`lock.rs`)                  a line
//! ranges      locks of accumulates, each for some of the ranges of memory               a line each
//! attached    the memory attached to a dynamic window (`dynamic.rs`)                    a line
//! mode        what makes accumulates atomic (`mechanism.rs`), and for each step of the  a line
//!             end of the window the number of the last meeting at which the rank has
//!             refused it
//! inside      which threads of the block's rank update by instructions                  a line
//! rounds      the numbers of the last meeting, one for each round (`wait.rs`)           a line each
//! queue       who waits for the lock, by ticket                                         a word each
//! posted      by rank of the window: how often it has posted for the block's rank       a word each
//! completed   by rank of the window: how often it has completed at the block's rank     a word each
//! said        by rank of the window: what it says about requests of the block's rank    a line each
//! ```
//!
//! A line `said` has these words (`serve.rs`):
//!
//! ```text
//! 0           how many requests are over, from the first one on without a gap
//! 1           the class of the first error of an operation that brings no data back, and
//!             that of the last operation refused by a message without data (`classes`)
//! 2           the tag of the last request with a short answer, and its error class
//! 3 to 7      the answer
//! ```
//!
//! Every word is zero at first. A faulty rank may write any value to a word. So a reader checks a value before it uses
//! the value as a rank, an offset or a length.

use crate::comm::Communicator;
use crate::region::SharedRegion;
use crate::rma::check_process;
use crate::{Error, ErrorKind, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Size of a cache line in bytes.
pub(in crate::rma) const LINE: usize = 64;
const WORD: usize = size_of::<u64>();

/// The lock of the window's memory.
const LOCK: usize = 0;
const RANGES: usize = LINE;
/// Number of locks that accumulates take at one rank.
pub(in crate::rma) const RANGE_LOCKS: usize = 16;
const ATTACHED: usize = RANGES + RANGE_LOCKS * LINE;
const MODE: usize = ATTACHED + LINE;
/// The numbers of two meetings: the second and the third word of the line `mode`.
const REFUSAL: usize = MODE + WORD;
const INSIDES: usize = MODE + LINE;
/// Number of words in the line `inside`.
pub(in crate::rma) const INSIDE: usize = LINE / WORD;
const ROUNDS: usize = INSIDES + LINE;

/// A word that several ranks read and replace atomically. The models of `loom` implement this trait for the atomics of
/// `loom`.
pub(in crate::rma) trait SharedWord {
    /// Returns the value.
    fn value(&self) -> u64;
    /// Replaces `old` by `new`. Returns the value that the word has instead if it is not `old`. Changes of other
    /// memory before a successful replacement are visible to the ranks that read `new`. All ranks see all replacements,
    /// and the values that they read, in one order: if two ranks each replace a word and then read the word of the
    /// other, one of them sees the other's replacement.
    fn replace(&self, old: u64, new: u64) -> std::result::Result<(), u64>;
    /// Sets the value. Changes of other memory before the call are visible to the ranks that read `new`.
    fn set(&self, new: u64);
}

impl SharedWord for AtomicU64 {
    #[inline]
    fn value(&self) -> u64 {
        self.load(Ordering::SeqCst)
    }

    #[inline]
    fn replace(&self, old: u64, new: u64) -> std::result::Result<(), u64> {
        self.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).map(drop)
    }

    #[inline]
    fn set(&self, new: u64) {
        self.store(new, Ordering::Release);
    }
}

/// A word of a block.
#[derive(Clone, Copy, Debug)]
pub(in crate::rma) enum Word {
    Lock,
    /// The lock of accumulates with this number, which is less than [`RANGE_LOCKS`].
    Range(usize),
    /// The word with this index (less than 8) in the line about attached memory.
    Attached(usize),
    Mode,
    /// The number of a meeting for this step (0 or 1).
    Refusal(usize),
    /// The word with this index (less than [`INSIDE`]) in the line `inside`.
    Inside(usize),
    Round(usize),
    /// The word of the queue for this ticket.
    Queue(u64),
    Posted(usize),
    Completed(usize),
    /// A word (the second number, less than 8) that the rank with the first number says.
    Said(usize, usize),
}

/// Words in a line `said`; see the table above.
pub(in crate::rma) mod said {
    pub const SERVED: usize = 0;
    pub const REFUSED: usize = 1;
    pub const ANSWERED: usize = 2;
    pub const ANSWER: usize = 3;
    /// The greatest length of a short answer in bytes.
    pub const BYTES: usize =
        crate::rma::window::words::LINE - ANSWER * crate::rma::window::words::WORD;
}

/// The word with classes of errors in a line `said`. The low half has the class of the first error that a call which
/// completes operations returns. The high half has the class of the last operation that the target has refused by a
/// message without data: such an operation returns its error itself, and must not take the error of another one.
pub(in crate::rma) mod classes {
    use crate::rma::window::words::SharedWord;

    const LOW: u64 = u32::MAX as u64;

    /// Replaces the value by `next`. Returns the value before.
    fn change(word: &impl SharedWord, next: impl Fn(u64) -> u64) -> u64 {
        let mut now = word.value();
        loop {
            match word.replace(now, next(now)) {
                Ok(()) => return now,
                Err(other) => now = other,
            }
        }
    }

    /// Notes an error for the next call that completes operations, unless there is one already.
    pub fn note(word: &impl SharedWord, class: u32) {
        if word.value() & LOW == 0 {
            change(word, |now| if now & LOW == 0 { now | u64::from(class.max(1)) } else { now });
        }
    }

    /// Returns the class that a call which completes operations returns, and removes it; 0 if there is none.
    pub fn take(word: &impl SharedWord) -> u32 {
        if word.value() & LOW == 0 { 0 } else { change(word, |now| now & !LOW) as u32 }
    }

    /// Notes the class of an operation that a message without data refuses.
    pub fn note_refused(word: &impl SharedWord, class: u32) {
        change(word, |now| now & LOW | u64::from(class.max(1)) << 32);
    }

    /// Returns the class of the last operation that a message without data has refused; 0 if there is none.
    pub fn refused(word: &impl SharedWord) -> u32 {
        (word.value() >> 32) as u32
    }
}

/// The blocks of all ranks of a window.
#[derive(Debug)]
pub(in crate::rma) struct Words {
    /// The memory of the blocks; `None` in tests.
    region: Option<SharedRegion>,
    members: usize,
    rounds: usize,
    /// The rank in the world of each rank of the window.
    worlds: Box<[usize]>,
    /// The address of the block of each rank.
    blocks: Box<[Block]>,
    /// The length of a block in bytes.
    length: usize,
    /// What this process has noted about the updates of each rank's memory (`mechanism.rs`).
    pub notes: Notes,
}

/// What this process has noted about updates. Other processes do not see it.
#[derive(Debug)]
pub(in crate::rma) struct Notes {
    /// For each target, the number of updates of single elements under locks since the last one of many elements.
    pub singles: Box<[AtomicU32]>,
    /// Whether one of `singles` may not be 0.
    pub has_singles: AtomicBool,
    /// The words `inside` that stayed odd so long that a wait ended with an error: the rank, the index, and the value.
    pub stuck: Mutex<Vec<(usize, usize, u64)>>,
}

impl Notes {
    fn new(members: usize) -> Self {
        let singles = (0..members).map(|_| AtomicU32::new(0)).collect();
        Self { singles, has_singles: AtomicBool::new(false), stuck: Mutex::default() }
    }
}

/// The address of a block, which is a multiple of 8. The block stays mapped as long as the region lives.
#[derive(Clone, Copy, Debug)]
struct Block(*mut u8);

// SAFETY: a block is memory that several processes use. This file accesses it only by atomic operations.
unsafe impl Send for Block {}
// SAFETY: a shared reference gives no other access than the atomic operations of this file.
unsafe impl Sync for Block {}

/// Returns the number of rounds of a meeting of `members` ranks (`wait.rs`).
fn rounds(members: usize) -> usize {
    members.next_power_of_two().trailing_zeros() as usize
}

impl Words {
    /// Returns the length of the block of a window of `members` ranks in bytes, a multiple of the size of a line.
    pub fn bytes(members: usize) -> usize {
        Self::said_at(members) + members * LINE
    }

    /// Returns the offset of the lines `said` in a block.
    fn said_at(members: usize) -> usize {
        let words = members.next_power_of_two() + 2 * members;
        (ROUNDS + rounds(members) * LINE + words * WORD).next_multiple_of(LINE)
    }

    /// Makes the blocks, with `more` bytes behind the block of this rank. If `populate`, they get memory at once.
    /// Collective.
    ///
    /// # Errors
    /// Returns the errors of [`SharedRegion::share`] on all ranks.
    pub fn new(comm: &Communicator, more: usize, populate: bool) -> Result<Self> {
        let members = comm.size();
        // If the sum does not fit, `allocate` gets `usize::MAX` and fails on all ranks.
        let bytes = Self::bytes(members).saturating_add(more);
        let region = SharedRegion::share(comm, bytes, populate)?;
        let group = comm.group();
        let worlds = (0..members).filter_map(|rank| group.world_rank(rank)).collect();
        let length = Self::bytes(members);
        let block = |rank| {
            let base = region.as_ptr(rank).filter(|_| region.len(rank) >= length);
            let base = base.filter(|base| (*base as usize).is_multiple_of(WORD));
            base.map(Block).ok_or_else(|| missing(rank, Word::Lock))
        };
        let blocks = (0..members).map(block).collect::<Result<_>>()?;
        let region = Some(region);
        let (rounds, notes) = (rounds(members), Notes::new(members));
        Ok(Self { region, members, rounds, worlds, blocks, length, notes })
    }

    /// Makes blocks in memory of this process, which stays allocated.
    #[cfg(test)]
    pub fn in_this_process(members: usize) -> Self {
        let length = Self::bytes(members);
        let block =
            |_| Block(Box::leak(vec![0_u64; length / WORD].into_boxed_slice()).as_mut_ptr().cast());
        let (worlds, blocks) = ((0..members).collect(), (0..members).map(block).collect());
        let (rounds, notes) = (rounds(members), Notes::new(members));
        Self { region: None, members, rounds, worlds, blocks, length, notes }
    }

    /// Returns the region in which the blocks lie.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if the blocks lie in no region, as in tests.
    pub fn region(&self) -> Result<&SharedRegion> {
        self.region.as_ref().ok_or_else(|| missing(0, Word::Lock))
    }

    /// Returns the number of ranks.
    pub fn members(&self) -> usize {
        self.members
    }

    /// Returns the rank in the world of a rank of the window.
    pub fn world_rank(&self, rank: usize) -> Option<usize> {
        self.worlds.get(rank).copied()
    }

    /// Returns the number of rounds of a meeting of the ranks.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Returns a word of the block of `rank`.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` in a forked child, and `ErrorKind::Internal` if there is no such word.
    #[inline(always)]
    pub fn get(&self, rank: usize, word: Word) -> Result<&AtomicU64> {
        check_process()?;
        self.find(rank, word).ok_or_else(|| missing(rank, word))
    }

    /// Does the same as [`get`](Self::get) in a process that may use windows; the caller has made sure of this
    /// ([`check_process`]). Returns `None` if there is no such word.
    #[inline(always)]
    pub fn find(&self, rank: usize, word: Word) -> Option<&AtomicU64> {
        let queue = ROUNDS + self.rounds * LINE;
        let posted = queue + self.members.next_power_of_two() * WORD;
        let at = match word {
            Word::Lock => LOCK,
            Word::Range(number) => RANGES + number % RANGE_LOCKS * LINE,
            Word::Attached(index) => ATTACHED + index % (LINE / WORD) * WORD,
            Word::Mode => MODE,
            Word::Refusal(step) => REFUSAL + step % 2 * WORD,
            Word::Inside(index) => INSIDES + index % INSIDE * WORD,
            Word::Round(round) => ROUNDS + round * LINE,
            Word::Queue(ticket) => {
                queue + (ticket as usize & (self.members.next_power_of_two() - 1)) * WORD
            }
            Word::Posted(from) => posted + from * WORD,
            Word::Completed(from) => posted + (self.members + from) * WORD,
            Word::Said(by, index) => self.length - (self.members - by) * LINE + index * WORD,
        };
        let block = self.blocks.get(rank).filter(|_| at <= self.length - WORD)?;
        // SAFETY: the word lies within the block, whose address is a multiple of 8, as `at` is (every offset above is a
        // multiple of `WORD`). The block is mapped as long as `region` lives, and every process accesses its words only
        // by atomic operations.
        Some(unsafe { AtomicU64::from_ptr(block.0.wrapping_add(at).cast()) })
    }
}

#[cold]
fn missing(rank: usize, word: Word) -> Error {
    let detail = format!("the block of rank {rank} has no word {word:?}");
    Error::new(ErrorKind::Internal, "win", detail)
}

#[cfg(test)]
mod tests {
    use crate::rma::window::words::classes;
    use std::sync::atomic::AtomicU64;

    /// The error of a put is not lost when an operation that brings data back is refused too, and the other way round.
    #[test]
    fn the_errors_of_puts_and_gets_do_not_mix() {
        let word = AtomicU64::new(0);
        assert_eq!((classes::take(&word), classes::refused(&word)), (0, 0));
        classes::note(&word, 7);
        classes::note_refused(&word, 9);
        classes::note(&word, 8);
        assert_eq!((classes::refused(&word), classes::take(&word)), (9, 7));
        assert_eq!((classes::refused(&word), classes::take(&word)), (9, 0));
        classes::note_refused(&word, 0);
        classes::note(&word, 0);
        assert_eq!((classes::refused(&word), classes::take(&word)), (1, 1));
    }
}

/// Words for the models of `loom`.
#[cfg(test)]
pub(in crate::rma) mod model {
    use crate::rma::window::words::SharedWord;
    use loom::sync::atomic::{AtomicU64, Ordering, fence};

    /// Runs `body` with all orders of its threads in which at most `preemptions` threads are interrupted.
    pub fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(body);
    }

    /// An atomic of loom. Loom treats the order SeqCst of a replacement as AcqRel, and that of a load as Acquire, so
    /// fences stand for it. The fence after a load orders what a rank reads next: a rank that reads a replacement by
    /// another one also sees all that this other rank would have seen.
    #[derive(Debug)]
    pub struct ModelWord(AtomicU64);

    impl ModelWord {
        pub fn new(value: u64) -> Self {
            Self(AtomicU64::new(value))
        }

        /// Tries to add one.
        pub fn add_one(&self) -> Result<(), u64> {
            let value = self.value();
            self.replace(value, value + 1)
        }
    }

    impl SharedWord for ModelWord {
        fn value(&self) -> u64 {
            let value = self.0.load(Ordering::SeqCst);
            fence(Ordering::SeqCst);
            value
        }

        fn replace(&self, old: u64, new: u64) -> Result<(), u64> {
            fence(Ordering::SeqCst);
            let done = self.0.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            done.map(drop)
        }

        fn set(&self, new: u64) {
            self.0.store(new, Ordering::Release);
        }
    }
}
