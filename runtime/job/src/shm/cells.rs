//! The protocol of cells: data from one rank to all other ranks of a communicator, in shared memory, without messages.
//! Longer data lies elsewhere, and the cell names the place.
//!
//! Every rank has a few cells. All ranks make the same calls, and a call has one or more steps. [`step`] numbers the
//! steps: the numbers grow from step to step and from call to call. In a step, a rank may publish data in its cell of
//! this step ([`Seat::publish`]), and any other rank may wait for that cell ([`Seat::arrived`]). The steps use the
//! cells of a rank in turn. `typepack`'s `coll/flags/` makes collective calls from these steps.
//!
//! ```text
//! cell     stamp: number of the step | head: length of the data, or a mark | six words of data
//! done     number of the last step that the rank has ended
//! waits    number of the step in which the rank may sleep; ROOM and the number of a step if it may sleep until all
//!          other ranks have ended that step; otherwise 0
//! awaits   the ranks for whose cells the rank may sleep, as bits
//! ```
//!
//! `coll/flags/` defines the marks, for example for a rank that has failed.
//!
//! A rank may publish only after all other ranks have ended the step in which this rank used the same cell before. In a
//! call, a rank may publish one step ahead: before it has ended the step before. So a rank that reads the stamp of a
//! step from another rank knows that the other rank has ended all steps but this one and the one before it in the same
//! call. If this knowledge is not enough, the rank reads the words `done` of the other ranks, and waits until they
//! allow it to publish. A rank that ends a call ends all steps of the call, also those that it has left out
//! ([`last_step`]). So a rank that waits for a cell can tell that the cell will never come ([`Seat::has_left`]).
//!
//! A rank that is about to sleep first writes `waits`, and then announces its sleep on its doorbell
//! (`doorbell.rs`). A rank that has published or ended a step reads the words `waits` of the others after a fence, and
//! rings the ranks that may sleep. So either the sleeper sees the new stamp before it sleeps, or the other rank sees
//! that it must ring. A sleeper is rung only when it can go on:
//!
//! - [`Seat::ready_sleepers`]: a rank has published, and it was the last one for whose cell the sleeper waits.
//! - [`Seat::sleepers_after_end`]: a rank has ended a step, and it was the last one that the sleeper waits for. The
//!   sleeper waits for the end of that step, or for a cell that this rank will never publish.
//! - [`Seat::sleepers`]: a rank has seen that all have published.
//!
//! More cells let a rank that only publishes run further ahead. If ranks share CPUs, such a rank can then work for many
//! calls in one time slice, and so can each rank that reads its cells.
//!
//! Invariants: each rank writes only its own words. A stamp is written after the data, with release ordering.
//! Memory of zeros is a valid state, because no step has number 0.

use crate::sync::Word;

/// Largest number of cells of a rank.
pub const CELLS: usize = 64;

/// Number of words of data in a cell.
pub const WORDS: usize = 6;

/// Number of low bits in the number of a step that count the steps of one call. The bits above are the number of the
/// call.
const STEP_BITS: u32 = 24;

/// Maximum number of steps of a call. One number is left free. So the number of the first step of a call is at least
/// two more than the number of any step of the call before.
pub const STEPS: u64 = (1 << STEP_BITS) - 1;

/// Largest number of a call. At one call per microsecond, the ranks reach it after six days. The call after it must
/// use other memory, in which the numbers begin anew.
pub const CALLS: u64 = (1 << (u64::BITS - 1 - STEP_BITS)) - 1;

/// Number of steps of a call that a rank may publish before it has ended the step before them.
const AHEAD: u64 = 1;

/// The bit of `waits` of a rank that waits until the other ranks have ended a step. No number of a step has this bit.
const ROOM: u64 = 1 << (u64::BITS - 1);

/// Returns the number of step `index` of call `call`. Calls are numbered from 1 to [`CALLS`], and `index` is less than
/// [`STEPS`].
#[inline]
pub fn step(call: u64, index: u64) -> u64 {
    debug_assert!(call <= CALLS && index < STEPS);
    call << STEP_BITS | index
}

/// Returns the number of the call that has step `number`.
#[inline]
pub fn call_of(number: u64) -> u64 {
    number >> STEP_BITS
}

/// Returns a number that is at least the number of every step of the call that has step `number`.
#[inline]
pub fn last_step(number: u64) -> u64 {
    number | STEPS
}

const STAMP: usize = 0;
const HEAD: usize = 1;
const DATA: usize = 2;

/// The words that the ranks share. A cell has `2 + WORDS` words.
pub trait CellMemory {
    /// The type of a word.
    type Word: Word;
    /// Returns a word of a cell of `rank`.
    fn cell(&self, rank: usize, cell: usize, word: usize) -> &Self::Word;
    /// Returns the word with the number of the last step that `rank` has ended.
    fn done(&self, rank: usize) -> &Self::Word;
    /// Returns the word that says what `rank` waits for.
    fn waits(&self, rank: usize) -> &Self::Word;
    /// Returns the word with the ranks for whose cells `rank` waits, as bits.
    fn awaits(&self, rank: usize) -> &Self::Word;
    /// Executes a full fence.
    fn fence(&self);
    /// Fetches a cell of `rank` into this core's cache for writing. This is only a hint.
    fn claim(&self, rank: usize, cell: usize) {
        let _ = (rank, cell);
    }
    /// Fetches a cell of `rank` into this core's cache for reading. This is only a hint.
    fn fetch(&self, rank: usize, cell: usize) {
        let _ = (rank, cell);
    }
}

/// What one rank knows about the others.
#[derive(Debug)]
pub struct Seat {
    rank: usize,
    /// For each rank, the number of a step that the rank has ended, as far as this rank knows.
    known: Box<[u64]>,
    /// The number of a step that all other ranks have ended, as far as this rank knows.
    least: u64,
    /// For each of this rank's cells, the number of the last step in which this rank published in the cell.
    used: [u64; CELLS],
    /// The number of cells that the ranks use, less one. The number of cells is a power of two.
    mask: usize,
}

impl Seat {
    /// Returns the seat of `rank` among `size` ranks, before the first call. All ranks pass the same number of cells: a
    /// power of two, at most [`CELLS`].
    pub fn new(rank: usize, size: usize, cells: usize) -> Self {
        assert!(cells.is_power_of_two() && cells <= CELLS, "{cells} cells");
        Self { rank, known: vec![0; size].into(), least: 0, used: [0; CELLS], mask: cells - 1 }
    }

    /// Returns this rank.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the index of the cell that step `number` uses. Each step of a call uses another cell than the step
    /// before it, and so does the first step of a call after a call of one step.
    #[inline]
    pub fn cell(&self, number: u64) -> usize {
        call_of(number).wrapping_add(number) as usize & self.mask
    }

    /// Returns the number of a step. This rank may write to its cell of step `number` when all other ranks have ended
    /// the step of the returned number ([`have_ended`](Self::have_ended)).
    #[inline]
    pub fn needed(&self, number: u64) -> u64 {
        self.used[self.cell(number)]
    }

    /// Returns the number of a step that is at least [`needed`](Self::needed). When all other ranks have ended it, this
    /// rank has room for the next steps, too: for half of the cells. This rank has published in that step, so the other
    /// ranks can end it without another cell of this rank.
    pub fn needed_for_many(&self, number: u64) -> u64 {
        let half = self.mask.div_ceil(2);
        let later = self.used[(self.cell(number) + half - 1) & self.mask];
        self.needed(number).max(later)
    }

    /// Returns whether all other ranks have ended step `needed`.
    #[inline]
    pub fn have_ended<M: CellMemory>(&mut self, memory: &M, needed: u64) -> bool {
        self.least >= needed || self.have_ended_by_now(memory, needed)
    }

    fn have_ended_by_now<M: CellMemory>(&mut self, memory: &M, needed: u64) -> bool {
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

    /// Publishes `head` and the first [`WORDS`] words of `data` in this rank's cell of step `number`. The rank must
    /// have room. If the other ranks need more data, the rank must have written the data elsewhere before.
    #[inline]
    pub fn publish<M: CellMemory>(&mut self, memory: &M, number: u64, head: u64, data: &[u64]) {
        let cell = self.cell(number);
        self.used[cell] = number;
        for (at, word) in data.iter().take(WORDS).enumerate() {
            memory.cell(self.rank, cell, DATA + at).store_relaxed(*word);
        }
        memory.cell(self.rank, cell, HEAD).store_relaxed(head);
        memory.cell(self.rank, cell, STAMP).store_release(number);
    }

    /// Returns the head of the cell of rank `from` in step `number`, if that rank has published it.
    #[inline]
    pub fn arrived<M: CellMemory>(&mut self, memory: &M, from: usize, number: u64) -> Option<u64> {
        let cell = self.cell(number);
        if memory.cell(from, cell, STAMP).load_acquire() != number {
            return None;
        }
        self.known[from] = self.known[from].max(number.saturating_sub(1 + AHEAD));
        Some(memory.cell(from, cell, HEAD).load_relaxed())
    }

    /// Returns whether rank `from` has ended step `number` and has published nothing in it, so that its cell will never
    /// arrive.
    pub fn has_left<M: CellMemory>(&self, memory: &M, from: usize, number: u64) -> bool {
        // The rank ends a step after it has published, and uses the cell again only after this rank has ended the step,
        // too. So if the step has ended but the cell has another stamp, the rank has not published.
        self.has_ended(memory, from, number)
            && memory.cell(from, self.cell(number), STAMP).load_acquire() != number
    }

    /// Returns the data words of a cell that has arrived. The words that its owner has not written are arbitrary.
    #[inline]
    pub fn data<M: CellMemory>(&self, memory: &M, from: usize, number: u64) -> [u64; WORDS] {
        let cell = self.cell(number);
        std::array::from_fn(|at| memory.cell(from, cell, DATA + at).load_relaxed())
    }

    /// Returns whether rank `from` has ended step `number`.
    pub fn has_ended<M: CellMemory>(&self, memory: &M, from: usize, number: u64) -> bool {
        memory.done(from).load_acquire() >= number
    }

    /// Records that all other ranks have published in step `number`.
    #[inline]
    pub fn all_have_published(&mut self, number: u64) {
        self.least = self.least.max(number - 1 - AHEAD);
    }

    /// Ends step `number` and all steps before it: this rank reads no cell of these steps any more. The caller then
    /// rings the ranks that wait for room.
    #[inline]
    pub fn end<M: CellMemory>(&self, memory: &M, number: u64) {
        memory.done(self.rank).store_release(number);
    }

    /// Prepares this rank's cell of step `number`, if this rank knows that no other rank needs the cell any more.
    #[inline]
    pub fn claim<M: CellMemory>(&self, memory: &M, number: u64) {
        if self.least >= self.needed(number) {
            memory.claim(self.rank, self.cell(number));
        }
    }

    /// Fetches the cell of rank `from` that follows its cell of step `number`. The caller has found that cell at its
    /// first look, so rank `from` is probably ahead of this rank. (If it is not, the fetch takes the line away from the
    /// rank that is about to write it.)
    #[inline]
    pub fn fetch_next<M: CellMemory>(&self, memory: &M, from: usize, number: u64) {
        memory.fetch(from, (self.cell(number) + 1) & self.mask);
    }

    /// Announces that this rank may sleep until the cells of the ranks `from`, as bits, have arrived in step `number`.
    pub fn waits<M: CellMemory>(&self, memory: &M, number: u64, from: u64) {
        memory.awaits(self.rank).store_relaxed(from);
        memory.waits(self.rank).store_relaxed(number);
    }

    /// Announces that this rank may sleep until all other ranks have ended step `needed`.
    pub fn waits_for_room<M: CellMemory>(&self, memory: &M, needed: u64) {
        memory.waits(self.rank).store_relaxed(ROOM | needed);
    }

    /// Ends the announcement of [`waits`](Self::waits) or [`waits_for_room`](Self::waits_for_room).
    pub fn has_waited<M: CellMemory>(&self, memory: &M) {
        memory.waits(self.rank).store_relaxed(0);
    }

    /// Returns the other ranks that wait in step `number`. The caller has published before, or has seen that all
    /// have published, or has ended the step.
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

    /// Returns those of `ranks` that wait in step `number` for the cell of this rank, and that can go on now. The
    /// caller has published in this step before.
    pub fn ready_sleepers<'a, M: CellMemory>(
        &'a self,
        memory: &'a M,
        ranks: impl Iterator<Item = usize> + 'a,
        number: u64,
    ) -> impl Iterator<Item = usize> + 'a {
        // The fence pairs with the fence of the doorbell, as in `sleepers`. Each rank looks at the cells of the others
        // after the fence and after its own stores, so the last rank to publish sees that it is the last one.
        memory.fence();
        ranks.filter(move |rank| {
            memory.waits(*rank).load_relaxed() == number && self.is_ready(memory, *rank, number)
        })
    }

    /// Returns the other ranks that can go on now because this rank has ended step `number`: ranks that wait until all
    /// ranks have ended a step, and ranks that wait for a cell that this rank has not published and never will. The
    /// caller has ended the step before.
    pub fn sleepers_after_end<'a, M: CellMemory>(
        &'a self,
        memory: &'a M,
        number: u64,
    ) -> impl Iterator<Item = usize> + 'a {
        // The fence pairs with the fence of the doorbell, as in `sleepers`. Each rank looks at the words `done` of the
        // others after the fence and after its own store, so the last rank to end a step sees that it is the last one.
        memory.fence();
        let ranks = 0..self.known.len();
        ranks.clone().filter(|rank| *rank != self.rank).filter(move |rank| {
            let waits = memory.waits(*rank).load_relaxed();
            if waits & ROOM != 0 {
                return ranks
                    .clone()
                    .filter(|other| other != rank)
                    .all(|other| memory.done(other).load_relaxed() >= waits & !ROOM);
            }
            let without_cell = || self.used[self.cell(waits)] != waits;
            (1..=number).contains(&waits) && without_cell() && self.is_ready(memory, *rank, waits)
        })
    }

    /// Returns whether `rank`, which waits in step `number`, waits for this rank, and whether each rank for which it
    /// waits has published in the step or has ended it. The caller has executed a fence after its last store.
    fn is_ready<M: CellMemory>(&self, memory: &M, rank: usize, number: u64) -> bool {
        let awaited = memory.awaits(rank).load_relaxed();
        let has_come = |from: usize| {
            memory.cell(from, self.cell(number), STAMP).load_relaxed() == number
                || memory.done(from).load_relaxed() >= number
        };
        awaited >> self.rank & 1 == 1
            && (0..self.known.len()).all(|from| awaited >> from & 1 == 0 || has_come(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::doorbell::tests::Slot;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering, fence};

    /// Number of cells of a rank in the models.
    const FEW: usize = 4;

    /// The shared memory of the ranks, each with longer data beside every cell. If `fences` is false, the fences
    /// do nothing.
    struct Memory {
        fences: bool,
        cells: Vec<[[AtomicU64; 2 + WORDS]; FEW]>,
        done: Vec<AtomicU64>,
        waits: Vec<AtomicU64>,
        awaits: Vec<AtomicU64>,
        long: Vec<[UnsafeCell<u64>; FEW]>,
    }

    impl Memory {
        fn new(ranks: usize) -> Self {
            let cell = |_| std::array::from_fn(|_| AtomicU64::new(0));
            Self {
                fences: true,
                cells: (0..ranks).map(|_| std::array::from_fn(cell)).collect(),
                done: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
                waits: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
                awaits: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
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
        fn awaits(&self, rank: usize) -> &AtomicU64 {
            &self.awaits[rank]
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
            while !seat.have_ended(memory, seat.needed(number)) {
                loom::thread::yield_now();
            }
            // SAFETY: there is room, so no other rank reads the data. Loom reports a concurrent access.
            memory.long[root][seat.cell(number)].with_mut(|long| unsafe { *long = number });
            seat.publish(memory, number, 8, &[number + 7]);
        } else {
            while seat.arrived(memory, root, number).is_none() {
                loom::thread::yield_now();
            }
            // SAFETY: the cell has arrived, and its owner writes it again only after this call has ended here.
            // Loom reports a concurrent access.
            let long = memory.long[root][seat.cell(number)].with(|long| unsafe { *long });
            assert_eq!((long, seat.data(memory, root, number)[0]), (number, number + 7));
        }
        seat.end(memory, number);
    }

    /// Runs the calls of two ranks; `root` gives the root of each call.
    fn calls(count: u64, root: fn(u64) -> usize) {
        let memory = Arc::new(Memory::new(2));
        let theirs = memory.clone();
        let other = loom::thread::spawn(move || {
            let mut seat = Seat::new(1, 2, FEW);
            (1..=count).for_each(|number| broadcast(&theirs, &mut seat, root(number), number));
        });
        let mut seat = Seat::new(0, 2, FEW);
        (1..=count).for_each(|number| broadcast(&memory, &mut seat, root(number), number));
        other.join().unwrap();
    }

    /// Checks that a root that runs ahead never writes a cell that the other rank still reads.
    #[test]
    fn loom_cells_are_used_again_when_they_are_free() {
        explore(3, || calls(FEW as u64 + 2, |_| 0));
    }

    /// Checks the same with a root that changes, where ranks learn from stamps that others have ended calls.
    #[test]
    fn loom_stamps_tell_that_cells_are_free() {
        explore(2, || calls(FEW as u64 + 3, |number| usize::from(number % 3 == 0)));
    }

    #[test]
    fn a_rank_has_room_when_all_have_ended_the_step_that_used_the_cell() {
        loom::model(room_for_each_cell);
    }

    fn room_for_each_cell() {
        let memory = Memory::new(3);
        let mut seat = Seat::new(0, 3, FEW);
        let has_room = |seat: &mut Seat, number| seat.have_ended(&memory, seat.needed(number));
        for number in 1..=FEW as u64 {
            assert!(has_room(&mut seat, number), "{number}");
            seat.publish(&memory, number, 0, &[]);
        }
        let next = FEW as u64 + 1;
        assert!(!has_room(&mut seat, next));
        memory.done[1].store(1, Ordering::Relaxed);
        assert!(!has_room(&mut seat, next));
        memory.done[2].store(2, Ordering::Relaxed);
        assert!(has_room(&mut seat, next) && !has_room(&mut seat, next + 1));
        assert_eq!((seat.needed(next), seat.needed_for_many(next)), (1, 2));
        // The ranks have ended a call of many steps.
        for rank in [1, 2] {
            memory.done[rank].store(last_step(step(0, 1)), Ordering::Relaxed);
        }
        for index in 0..FEW as u64 {
            assert!(has_room(&mut seat, step(1, index)));
        }
    }

    /// Checks that only the rank that is the last to end a step wakes a rank that waits for that step.
    #[test]
    fn the_last_rank_to_end_a_step_finds_the_sleeper() {
        loom::model(|| {
            let memory = Memory::new(3);
            let seats = [0, 1, 2].map(|rank| Seat::new(rank, 3, FEW));
            seats[0].waits_for_room(&memory, step(1, 0));
            seats[2].end(&memory, last_step(step(1, 0)));
            let after_end = |rank: usize, number| -> Vec<usize> {
                seats[rank].sleepers_after_end(&memory, last_step(number)).collect()
            };
            assert_eq!(after_end(2, step(1, 0)), []);
            seats[1].end(&memory, last_step(step(1, 0)));
            assert_eq!(after_end(1, step(1, 0)), [0]);
            seats[0].waits(&memory, step(2, 0), 0b110);
            assert_eq!(after_end(1, step(1, 0)), []);
        });
    }

    /// Checks that a rank is rung only by the last rank for whose cell it waits, and not by ranks for which it does not
    /// wait.
    #[test]
    fn the_last_rank_that_a_sleeper_waits_for_finds_the_sleeper() {
        loom::model(|| {
            let memory = Memory::new(4);
            let mut seats = [0, 1, 2, 3].map(|rank| Seat::new(rank, 4, FEW));
            let number = step(1, 0);
            seats[0].waits(&memory, number, 0b0110);
            let published = |seats: &mut [Seat; 4], rank: usize| -> Vec<usize> {
                seats[rank].publish(&memory, number, 0, &[]);
                seats[rank].ready_sleepers(&memory, 0..4, number).collect()
            };
            assert_eq!(published(&mut seats, 1), []);
            assert_eq!(published(&mut seats, 3), []);
            // Rank 2 ends the call without data for rank 0.
            let last = last_step(number);
            for rank in [1, 3] {
                seats[rank].end(&memory, last);
                assert_eq!(seats[rank].sleepers_after_end(&memory, last).next(), None);
            }
            seats[2].end(&memory, last);
            assert_eq!(seats[2].sleepers_after_end(&memory, last).collect::<Vec<_>>(), [0]);
            seats[0].has_waited(&memory);
            assert_eq!(seats[2].sleepers_after_end(&memory, last).next(), None);
            let next = step(2, 0);
            seats[0].waits(&memory, next, 0b1000);
            seats[3].publish(&memory, next, 0, &[]);
            assert_eq!(seats[3].ready_sleepers(&memory, 0..4, next).collect::<Vec<_>>(), [0]);
        });
    }

    #[test]
    fn steps_are_numbered_in_order_and_use_the_cells_in_turn() {
        assert!(step(1, 0) > last_step(step(0, 5)) && step(7, STEPS - 1) < last_step(step(7, 0)));
        assert!(step(8, 0) - 1 - AHEAD >= step(7, STEPS - 1));
        let seat = Seat::new(0, 2, FEW);
        assert!(step(CALLS, STEPS - 1) < ROOM && step(CALLS, 0) > last_step(step(CALLS - 1, 0)));
        for (call, index) in [(1, 0), (1, 1), (9, 2), (9, STEPS - 2), (CALLS - 1, STEPS - 2)] {
            let cell = seat.cell(step(call, index));
            assert_eq!(seat.cell(step(call, index + 1)), (cell + 1) % FEW);
            assert_eq!(seat.cell(step(call + 1, index)), (cell + 1) % FEW);
        }
    }

    /// Checks that a rank that has ended a step without data is told apart from one that has published, and from one
    /// that has not come yet.
    #[test]
    fn a_cell_that_will_never_come_is_known() {
        loom::model(|| {
            let memory = Memory::new(2);
            let (mut owner, reader) = (Seat::new(0, 2, FEW), Seat::new(1, 2, FEW));
            let (first, second) = (step(1, 0), step(1, 1));
            assert!(!reader.has_left(&memory, 0, first));
            owner.publish(&memory, first, 0, &[]);
            assert!(!reader.has_left(&memory, 0, first));
            owner.end(&memory, last_step(first));
            assert!(!reader.has_left(&memory, 0, first) && reader.has_left(&memory, 0, second));
            assert!(!reader.has_left(&memory, 0, step(2, 0)));
        });
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
                loom::thread::spawn(move || rank(&job, Seat::new(other, ranks, FEW)))
            });
            let others: Vec<_> = others.collect();
            rank(&job, Seat::new(0, ranks, FEW));
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
            seat.waits(memory, number, u64::MAX);
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
                for number in 1..=FEW as u64 + 1 {
                    if seat.rank == 0 {
                        let needed = seat.needed(number);
                        if !seat.have_ended(memory, needed) {
                            seat.waits_for_room(memory, needed);
                            let look = || seat.have_ended(memory, needed).then_some(());
                            job.slots[0].wait_for(look);
                            seat.has_waited(memory);
                        }
                        seat.publish(memory, number, 0, &[]);
                        job.ring(seat.ready_sleepers(memory, 1..2, number));
                    } else {
                        seat.waits(memory, number, 1);
                        job.slots[1].wait_for(|| seat.arrived(memory, 0, number));
                        seat.has_waited(memory);
                    }
                    seat.end(memory, number);
                    job.ring(seat.sleepers_after_end(memory, number));
                }
            });
        });
    }

    /// Makes a call in which rank 0 waits for the cells of all other ranks. Rank 1 publishes none and ends the call.
    /// The other ranks publish first.
    fn one_sided(job: &Job, mut seat: Seat) {
        let (memory, number, last) = (&job.memory, step(1, 0), last_step(step(1, 0)));
        let ranks = job.slots.len();
        match seat.rank {
            0 => {
                seat.waits(memory, number, (1 << ranks) - 2);
                job.slots[0].wait_for(|| {
                    let mut others = 1..ranks;
                    let has_come = |seat: &mut Seat, from| {
                        seat.arrived(memory, from, number).is_some()
                            || seat.has_left(memory, from, number)
                    };
                    others.all(|from| has_come(&mut seat, from)).then_some(())
                });
                seat.has_waited(memory);
                assert!(seat.has_left(memory, 1, number));
                return;
            }
            1 => {}
            _ => {
                seat.publish(memory, number, 0, &[]);
                job.ring(seat.ready_sleepers(memory, 0..1, number));
            }
        }
        seat.end(memory, last);
        job.ring(seat.sleepers_after_end(memory, last));
    }

    /// Checks that a rank that waits for a cell that never comes is woken by the last of the ranks for which it waits.
    #[test]
    fn loom_a_rank_that_waits_for_a_rank_without_data_is_woken() {
        explore(3, || Job::run(2, true, one_sided));
        explore(1, || Job::run(3, true, one_sided));
    }

    /// Checks that the model finds a lost wake-up if the fence before the look at `waits` is left out.
    #[test]
    #[should_panic(expected = "deadlock")]
    fn loom_without_the_fence_a_rank_waits_on_for_a_rank_without_data() {
        explore(3, || Job::run(2, false, one_sided));
    }
}
