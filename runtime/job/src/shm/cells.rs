//! The protocol of cells: short data from one rank to all other ranks of a communicator, in shared memory,
//! without messages.
//!
//! Every rank has a few cells. All ranks make the same calls, which are numbered from 1. In a call, a rank may
//! publish data in its cell of this call ([`Seat::publish`]), and any other rank may wait for that cell
//! ([`Seat::arrived`]). The calls use the cells of a rank in turn. `typepack`'s `coll/cells/` makes collective
//! calls from these steps.
//!
//! ```text
//! cell     stamp: number of the call | head: length of the data, or a mark | six words of data
//! done     number of the last call that the rank has ended
//! waits    number of the call in which the rank may sleep; ROOM if it may sleep until it has room; otherwise 0
//! ```
//!
//! `coll/cells/` defines the marks, for example for a rank that has failed.
//!
//! A rank may publish only after all other ranks have ended the call that used the same cell before. A rank that reads
//! the stamp of call `n` from another rank knows that the other rank has ended call `n - 1`. If this knowledge is not
//! enough, the rank reads the words `done` of the other ranks, and waits until they allow it to publish.
//!
//! A rank that is about to sleep first writes `waits`, and then announces its sleep on its doorbell
//! (`doorbell.rs`). A rank that has published or ended a call reads the words `waits` of the others after a fence
//! ([`Seat::sleepers`]), and rings the ranks that may sleep. So either the sleeper sees the new stamp before it
//! sleeps, or the other rank sees that it must ring.
//!
//! Invariants: each rank writes only its own words. A stamp is written after the data, with release ordering.
//! Memory of zeros is a valid state, because no call has number 0.

use crate::sync::Word;

/// Number of cells of a rank.
pub const CELLS: usize = 4;

/// Number of words of data in a cell.
pub const WORDS: usize = 6;

/// Number of cells in a group. The cells of a rank form two groups, and the calls use the groups in turn, one call
/// per cell. A rank waits for room only when it begins to use a group again. So a rank looks for ranks that wait for
/// room only after the last call of a group.
const GROUP: u64 = CELLS as u64 / 2;

/// The value of `waits` of a rank that waits until other ranks have ended a call.
const ROOM: u64 = u64::MAX;

const STAMP: usize = 0;
const HEAD: usize = 1;
const DATA: usize = 2;

/// The words that the ranks share. A cell has `2 + WORDS` words.
pub trait CellMemory {
    /// The type of a word.
    type Word: Word;
    /// Returns a word of a cell of `rank`.
    fn cell(&self, rank: usize, cell: usize, word: usize) -> &Self::Word;
    /// Returns the word with the number of the last call that `rank` has ended.
    fn done(&self, rank: usize) -> &Self::Word;
    /// Returns the word that says what `rank` waits for.
    fn waits(&self, rank: usize) -> &Self::Word;
    /// Executes a full fence.
    fn fence(&self);
}

/// What one rank knows about the others.
#[derive(Debug)]
pub struct Seat {
    rank: usize,
    /// For each rank, the number of a call that the rank has ended, as far as this rank knows.
    known: Box<[u64]>,
    /// The number of a call that all other ranks have ended, as far as this rank knows.
    least: u64,
}

impl Seat {
    /// Returns the seat of `rank` among `size` ranks, before the first call.
    pub fn new(rank: usize, size: usize) -> Self {
        Self { rank, known: vec![0; size].into(), least: 0 }
    }

    /// Returns the index of the cell that call `number` uses.
    #[inline]
    pub fn cell(number: u64) -> usize {
        (number % CELLS as u64) as usize
    }

    /// Returns whether this rank may write to its cell of call `number`.
    #[inline]
    pub fn has_room<M: CellMemory>(&mut self, memory: &M, number: u64) -> bool {
        let needed = ((number - 1) / GROUP).saturating_sub(1) * GROUP;
        self.least >= needed || self.has_become_free(memory, needed)
    }

    fn has_become_free<M: CellMemory>(&mut self, memory: &M, needed: u64) -> bool {
        let mut least = u64::MAX;
        for (rank, known) in self.known.iter_mut().enumerate() {
            if rank == self.rank {
                continue;
            }
            if *known < needed {
                *known = memory.done(rank).load_acquire();
            }
            least = least.min(*known);
        }
        self.least = least;
        least >= needed
    }

    /// Publishes `head` and the first [`WORDS`] words of `data` in this rank's cell of call `number`. The rank must
    /// have room. If the other ranks need more data, the rank must have written the data elsewhere before.
    #[inline]
    pub fn publish<M: CellMemory>(&self, memory: &M, number: u64, head: u64, data: &[u64]) {
        let cell = Self::cell(number);
        for (at, word) in data.iter().take(WORDS).enumerate() {
            memory.cell(self.rank, cell, DATA + at).store_relaxed(*word);
        }
        memory.cell(self.rank, cell, HEAD).store_relaxed(head);
        memory.cell(self.rank, cell, STAMP).store_release(number);
    }

    /// Returns the head of the cell of rank `from` in call `number`, if that rank has published it.
    #[inline]
    pub fn arrived<M: CellMemory>(&mut self, memory: &M, from: usize, number: u64) -> Option<u64> {
        let cell = Self::cell(number);
        if memory.cell(from, cell, STAMP).load_acquire() != number {
            return None;
        }
        self.known[from] = self.known[from].max(number - 1);
        Some(memory.cell(from, cell, HEAD).load_relaxed())
    }

    /// Returns the data words of a cell that has arrived. The words that its owner has not written are arbitrary.
    #[inline]
    pub fn data<M: CellMemory>(memory: &M, from: usize, number: u64) -> [u64; WORDS] {
        let cell = Self::cell(number);
        std::array::from_fn(|at| memory.cell(from, cell, DATA + at).load_relaxed())
    }

    /// Records that all other ranks have begun call `number`, and so have ended the calls before it.
    #[inline]
    pub fn all_have_begun(&mut self, number: u64) {
        self.least = self.least.max(number - 1);
    }

    /// Ends call `number`: this rank reads no cell of this call any more. Returns true if the rank must then ring
    /// the ranks that wait for room.
    #[inline]
    pub fn end<M: CellMemory>(&self, memory: &M, number: u64) -> bool {
        memory.done(self.rank).store_release(number);
        number.is_multiple_of(GROUP)
    }

    /// Announces that this rank may sleep until the cells of call `number` have arrived.
    pub fn waits<M: CellMemory>(&self, memory: &M, number: u64) {
        memory.waits(self.rank).store_relaxed(number);
    }

    /// Announces that this rank may sleep until it has room.
    pub fn waits_for_room<M: CellMemory>(&self, memory: &M) {
        memory.waits(self.rank).store_relaxed(ROOM);
    }

    /// Ends the announcement of [`waits`](Self::waits) or [`waits_for_room`](Self::waits_for_room).
    pub fn has_waited<M: CellMemory>(&self, memory: &M) {
        memory.waits(self.rank).store_relaxed(0);
    }

    /// Returns the other ranks that wait in call `number`. The caller has published before, or has seen that all
    /// have published.
    pub fn sleepers<'a, M: CellMemory>(
        &'a self,
        memory: &'a M,
        number: u64,
    ) -> impl Iterator<Item = usize> + 'a {
        // The fence pairs with the fence of the doorbell between the sleeper's store to `waits` and its last look.
        memory.fence();
        let waits = move |rank: &usize| memory.waits(*rank).load_relaxed() == number;
        (0..self.known.len()).filter(|rank| *rank != self.rank).filter(waits)
    }

    /// Returns the other ranks that wait for room. The caller has ended a call before.
    pub fn sleepers_for_room<'a, M: CellMemory>(
        &'a self,
        memory: &'a M,
    ) -> impl Iterator<Item = usize> + 'a {
        self.sleepers(memory, ROOM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::doorbell::tests::Slot;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering, fence};

    /// The shared memory of the ranks, each with longer data beside every cell. If `fences` is false, the fences
    /// do nothing.
    struct Memory {
        fences: bool,
        cells: Vec<[[AtomicU64; 2 + WORDS]; CELLS]>,
        done: Vec<AtomicU64>,
        waits: Vec<AtomicU64>,
        long: Vec<[UnsafeCell<u64>; CELLS]>,
    }

    impl Memory {
        fn new(ranks: usize) -> Self {
            let cell = |_| std::array::from_fn(|_| AtomicU64::new(0));
            Self {
                fences: true,
                cells: (0..ranks).map(|_| std::array::from_fn(cell)).collect(),
                done: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
                waits: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
                long: (0..ranks).map(|_| std::array::from_fn(|_| UnsafeCell::new(0))).collect(),
            }
        }
    }

    impl CellMemory for Memory {
        type Word = AtomicU64;
        fn cell(&self, rank: usize, cell: usize, word: usize) -> &AtomicU64 {
            &self.cells[rank][cell][word]
        }
        fn done(&self, rank: usize) -> &AtomicU64 {
            &self.done[rank]
        }
        fn waits(&self, rank: usize) -> &AtomicU64 {
            &self.waits[rank]
        }
        fn fence(&self) {
            if self.fences {
                fence(Ordering::SeqCst);
            }
        }
    }

    fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(body);
    }

    /// Broadcasts from `root` in call `number`: the root publishes its number as longer data and as a word.
    fn broadcast(memory: &Memory, seat: &mut Seat, root: usize, number: u64) {
        if seat.rank == root {
            while !seat.has_room(memory, number) {
                loom::thread::yield_now();
            }
            // SAFETY: there is room, so no other rank reads the data. Loom reports a concurrent access.
            memory.long[root][Seat::cell(number)].with_mut(|long| unsafe { *long = number });
            seat.publish(memory, number, 8, &[number + 7]);
        } else {
            while seat.arrived(memory, root, number).is_none() {
                loom::thread::yield_now();
            }
            // SAFETY: the cell has arrived, and its owner writes it again only after this call has ended here.
            // Loom reports a concurrent access.
            let long = memory.long[root][Seat::cell(number)].with(|long| unsafe { *long });
            assert_eq!((long, Seat::data(memory, root, number)[0]), (number, number + 7));
        }
        seat.end(memory, number);
    }

    /// Runs the calls of two ranks; `root` gives the root of each call.
    fn calls(count: u64, root: fn(u64) -> usize) {
        let memory = Arc::new(Memory::new(2));
        let theirs = memory.clone();
        let other = loom::thread::spawn(move || {
            let mut seat = Seat::new(1, 2);
            (1..=count).for_each(|number| broadcast(&theirs, &mut seat, root(number), number));
        });
        let mut seat = Seat::new(0, 2);
        (1..=count).for_each(|number| broadcast(&memory, &mut seat, root(number), number));
        other.join().unwrap();
    }

    /// Checks that a root that runs ahead never writes a cell that the other rank still reads.
    #[test]
    fn loom_cells_are_used_again_when_they_are_free() {
        explore(3, || calls(CELLS as u64 + 2, |_| 0));
    }

    /// Checks the same with a root that changes, where ranks learn from stamps that others have ended calls.
    #[test]
    fn loom_stamps_tell_that_cells_are_free() {
        explore(2, || calls(CELLS as u64 + 3, |number| usize::from(number % 3 == 0)));
    }

    #[test]
    fn a_rank_has_room_for_two_groups() {
        loom::model(room_for_two_groups);
    }

    fn room_for_two_groups() {
        let memory = Memory::new(3);
        let mut seat = Seat::new(0, 3);
        for number in 1..=CELLS as u64 {
            assert!(seat.has_room(&memory, number), "{number}");
        }
        let next = CELLS as u64 + 1;
        assert!(!seat.has_room(&memory, next));
        memory.done[1].store(GROUP, Ordering::Relaxed);
        assert!(!seat.has_room(&memory, next));
        memory.done[2].store(GROUP, Ordering::Relaxed);
        assert!(seat.has_room(&memory, next) && seat.has_room(&memory, next + GROUP - 1));
        assert!(!seat.has_room(&memory, next + GROUP));
    }

    /// The ranks of a model in which every rank sleeps whenever it waits.
    struct Job {
        memory: Memory,
        slots: Vec<Slot>,
    }

    impl Job {
        /// Runs `rank` on each of `ranks` ranks.
        fn run(ranks: usize, fences: bool, rank: fn(&Self, Seat)) {
            let slots = (0..ranks).map(|_| Slot::new([true; 2])).collect();
            let job = Arc::new(Self { memory: Memory { fences, ..Memory::new(ranks) }, slots });
            let others = (1..ranks).map(|other| {
                let job = job.clone();
                loom::thread::spawn(move || rank(&job, Seat::new(other, ranks)))
            });
            let others: Vec<_> = others.collect();
            rank(&job, Seat::new(0, ranks));
            for other in others {
                other.join().unwrap();
            }
        }

        fn ring(&self, ranks: impl Iterator<Item = usize>) {
            ranks.for_each(|rank| self.slots[rank].ring());
        }

        /// Waits until all other ranks have published in call `number`, and wakes those that still sleep.
        fn meet(&self, seat: &mut Seat, number: u64) {
            let (rank, memory) = (seat.rank, &self.memory);
            seat.publish(memory, number, 0, &[]);
            seat.waits(memory, number);
            self.slots[rank].wait_for(|| {
                let mut others = (0..self.slots.len()).filter(|other| *other != rank);
                others.all(|other| seat.arrived(memory, other, number).is_some()).then_some(())
            });
            seat.has_waited(memory);
            self.ring(seat.sleepers(memory, number));
        }
    }

    /// Checks that no rank keeps sleeping in a call in which every rank waits for all others, although only a rank
    /// that has seen all cells wakes others.
    #[test]
    fn loom_the_last_to_arrive_wakes_the_others() {
        explore(2, || Job::run(2, true, |job, mut seat| job.meet(&mut seat, 1)));
        explore(1, || Job::run(3, true, |job, mut seat| job.meet(&mut seat, 1)));
    }

    /// Checks that the model finds a lost wake-up if the fence before the look at `waits` is left out.
    #[test]
    #[should_panic(expected = "deadlock")]
    fn loom_without_the_fence_a_rank_sleeps_on() {
        explore(3, || Job::run(2, false, |job, mut seat| job.meet(&mut seat, 1)));
    }

    /// Checks that a root that runs ahead and sleeps until it has room is woken.
    #[test]
    fn loom_a_rank_that_waits_for_room_is_woken() {
        explore(2, || {
            Job::run(2, true, |job, mut seat| {
                let memory = &job.memory;
                for number in 1..=CELLS as u64 + 1 {
                    if seat.rank == 0 {
                        if !seat.has_room(memory, number) {
                            seat.waits_for_room(memory);
                            job.slots[0].wait_for(|| seat.has_room(memory, number).then_some(()));
                            seat.has_waited(memory);
                        }
                        seat.publish(memory, number, 0, &[]);
                        job.ring(seat.sleepers(memory, number));
                    } else {
                        seat.waits(memory, number);
                        job.slots[1].wait_for(|| seat.arrived(memory, 0, number));
                        seat.has_waited(memory);
                    }
                    if seat.end(memory, number) {
                        job.ring(seat.sleepers_for_room(memory));
                    }
                }
            });
        });
    }
}
