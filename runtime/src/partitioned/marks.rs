//! What threads share without a lock: which partitions of a send are ready, and which of a receive have arrived.
//!
//! A thread that marks a partition ready pushes the partition onto a list by compare-and-swap. The thread that finds
//! the list empty passes on everything that is in the list when it has the endpoint's lock (`table.rs`). All other
//! threads return at once: a thread that pushes onto a list that is not empty knows that another thread has not taken
//! the list yet. So no partition is forgotten, and no thread waits for a thread that copies data.

use super::no_partition;
use crate::{Error, ErrorKind, Result};
use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_slice_box;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use typepack_engine::reserve::{Grow, fallible};

/// The end of the list of ready partitions. A link to a partition is its number plus 1.
const END: u32 = 0;

/// Returns `len` words with the value 0. No page of long lists gets memory before it is used.
///
/// # Errors
/// Returns `ErrorKind::NoMemory` if memory ran out.
pub(super) fn words<T: Zeroable + Clone>(len: u32) -> Result<Box<[T]>> {
    let grown = || {
        let mut words = Vec::new();
        // The reserve may have memory for a short list.
        words.grow(len as usize).ok()?;
        words.resize(len as usize, T::zeroed());
        Some(words.into_boxed_slice())
    };
    fallible(|| try_zeroed_slice_box(len as usize)).ok().or_else(grown).ok_or_else(|| {
        let detail = format!("there is no memory for {len} partitions");
        Error::new(ErrorKind::NoMemory, "partitions", detail)
    })
}

/// Returns `len` atomic words with the value 0, like [`words`].
fn atomics(len: u32) -> Result<Box<[AtomicU32]>> {
    let words = Box::into_raw(words::<u32>(len)?);
    // SAFETY: the box is the only owner of the words, and an atomic word has the size, the alignment and the values of a
    // plain one.
    Ok(unsafe { Box::from_raw(words as *mut [AtomicU32]) })
}

/// A word of the list. Loom replaces it in a test.
trait Link {
    /// Reads without ordering.
    fn get(&self) -> u32;
    /// Writes without ordering.
    fn set(&self, value: u32);
    /// Writes `new` if the value is `old`, and publishes what this thread has written before. Otherwise returns the
    /// value. May fail without a reason.
    fn publish(&self, old: u32, new: u32) -> std::result::Result<u32, u32>;
    /// Writes [`END`] and returns the old value. Everything that was published with it is visible afterwards.
    fn empty(&self) -> u32;
}

impl Link for AtomicU32 {
    #[inline]
    fn get(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }

    #[inline]
    fn set(&self, value: u32) {
        self.store(value, Ordering::Relaxed);
    }

    #[inline]
    fn publish(&self, old: u32, new: u32) -> std::result::Result<u32, u32> {
        self.compare_exchange_weak(old, new, RELEASE, Ordering::Relaxed)
    }

    #[inline]
    fn empty(&self) -> u32 {
        self.swap(END, ACQUIRE)
    }
}

/// Who takes the list sees what the threads have written to the partitions in it.
const RELEASE: Ordering = Ordering::Release;
const ACQUIRE: Ordering = Ordering::Acquire;

/// A list of partitions.
#[derive(Debug)]
struct List<L> {
    /// For each partition in the list, the link to the one after it.
    next: Box<[L]>,
    /// The link to the partition that was pushed last.
    first: L,
}

impl<L: Link> List<L> {
    /// Adds a partition. Returns true if the list was empty. The caller then has to see to it that someone
    /// [`take`](List::take)s the list.
    #[inline]
    fn push(&self, partition: u32) -> bool {
        let mut first = self.first.get();
        loop {
            self.next[partition as usize].set(first);
            match self.first.publish(first, partition + 1) {
                Ok(_) => return first == END,
                Err(now) => first = now,
            }
        }
    }

    /// Takes all partitions out of the list, and calls `each` with them in the order in which they were pushed.
    fn take(&self, mut each: impl FnMut(u32)) {
        let mut at = self.first.empty();
        let mut oldest = END;
        while at != END {
            let link = &self.next[at as usize - 1];
            let next = link.get();
            link.set(oldest);
            (oldest, at) = (at, next);
        }
        while oldest != END {
            let next = self.next[oldest as usize - 1].get();
            each(oldest - 1);
            oldest = next;
        }
    }
}

/// The partitions of a send that are ready in the current round.
#[derive(Debug)]
pub(super) struct Marks {
    /// The current round; 0 before the first start.
    round: AtomicU32,
    /// For each partition, the last round in which it was marked ready.
    marked: Box<[AtomicU32]>,
    list: List<AtomicU32>,
}

impl Marks {
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    pub fn new(partitions: u32) -> Result<Self> {
        Ok(Self {
            round: AtomicU32::new(0),
            marked: atomics(partitions)?,
            list: List { next: atomics(partitions)?, first: AtomicU32::new(END) },
        })
    }

    /// Begins a round, in which no partition is ready.
    pub fn begin(&self) {
        let round = self.round.load(Ordering::Relaxed);
        // No round has the number 0, which means that no round has begun.
        self.round.store(round.checked_add(1).unwrap_or(1), Ordering::Relaxed);
    }

    /// Checks that there is a partition with this number.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if there is none.
    pub fn check(&self, partition: i64, argument: &'static str) -> Result<u32> {
        let partitions = self.marked.len();
        match usize::try_from(partition) {
            Ok(at) if at < partitions => Ok(at as u32),
            _ => Err(no_partition(partition, partitions, argument)),
        }
    }

    /// Claims a partition for the calling thread, which then [`push`](List::push)es it. Returns false if the partition
    /// is ready in this round already, or if no round has begun since all were ready.
    #[inline]
    fn claim(&self, partition: u32) -> bool {
        let round = self.round.load(Ordering::Relaxed);
        self.marked[partition as usize].swap(round, Ordering::Relaxed) != round
    }

    /// Gives back a partition that [`claim`](Self::claim) has claimed, before anybody has pushed it.
    fn give_back(&self, partition: u32) {
        let round = self.round.load(Ordering::Relaxed);
        self.marked[partition as usize].store(round.wrapping_sub(1), Ordering::Relaxed);
    }

    /// Marks the partitions ready. Returns true if the caller has to see to it that someone [`take`](Self::take)s the
    /// list.
    ///
    /// # Errors
    /// Returns `ErrorKind::Request` if a partition is ready already, occurs twice, or no round runs. Then no partition
    /// is marked.
    #[inline]
    pub fn mark(&self, partitions: impl Iterator<Item = u32> + Clone) -> Result<bool> {
        for (count, partition) in partitions.clone().enumerate() {
            if !self.claim(partition) {
                partitions.take(count).for_each(|claimed| self.give_back(claimed));
                return Err(self.ready_already(partition));
            }
        }
        Ok(partitions.fold(false, |was_empty, partition| self.list.push(partition) | was_empty))
    }

    #[cold]
    fn ready_already(&self, partition: u32) -> Error {
        let detail = match self.round.load(Ordering::Relaxed) {
            0 => "the request has not been started".into(),
            _ => format!("partition {partition} is ready already in this round"),
        };
        Error::new(ErrorKind::Request, "request", detail)
    }

    /// Marks all partitions ready that are not. Returns what [`mark`](Self::mark) returns.
    pub fn mark_rest(&self) -> bool {
        let left = (0..self.marked.len() as u32).filter(|&partition| self.claim(partition));
        left.fold(false, |was_empty, partition| self.list.push(partition) | was_empty)
    }

    /// Takes all partitions out of the list, and calls `each` with them in the order in which they were pushed.
    pub fn take(&self, each: impl FnMut(u32)) {
        self.list.take(each);
    }

    /// Marks all partitions ready that are not, and calls `each` with them.
    pub fn take_rest(&self, mut each: impl FnMut(u32)) {
        (0..self.marked.len() as u32)
            .filter(|&partition| self.claim(partition))
            .for_each(&mut each);
    }
}

/// The partitions of a receive that have arrived in the current round.
#[derive(Debug)]
pub(super) struct Arrivals {
    round: AtomicU32,
    /// For each partition, the last round in which it arrived.
    arrived: Box<[AtomicU32]>,
}

impl Arrivals {
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    pub fn new(partitions: u32) -> Result<Self> {
        let arrived = atomics(partitions)?;
        Ok(Self { round: AtomicU32::new(0), arrived })
    }

    /// Begins a round, in which no partition has arrived.
    pub fn begin(&self) {
        self.round.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether a partition has arrived. If no round has begun, returns true.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if there is no such partition.
    #[inline]
    pub fn has(&self, partition: i64) -> Result<bool> {
        let partitions = self.arrived.len();
        let word = usize::try_from(partition).ok().and_then(|at| self.arrived.get(at));
        let word = word.ok_or_else(|| no_partition(partition, partitions, "partition"))?;
        // Acquire: this thread sees the data of the partition.
        Ok(word.load(Ordering::Acquire) == self.round.load(Ordering::Relaxed))
    }

    /// Reports that all partitions have arrived.
    pub fn report_all(&self) {
        self.report(0..self.arrived.len() as u32);
    }

    /// Reports that partitions have arrived.
    pub fn report(&self, partitions: Range<u32>) {
        let round = self.round.load(Ordering::Relaxed);
        for word in &self.arrived[partitions.start as usize..partitions.end as usize] {
            word.store(round, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn taken(marks: &Marks) -> Vec<u32> {
        let mut taken = Vec::new();
        marks.take(|partition| taken.push(partition));
        taken
    }

    #[test]
    fn partitions_are_marked_once_in_a_round() {
        let marks = Marks::new(5).expect("memory");
        let error = marks.mark([0].into_iter()).expect_err("before the start");
        assert!(error.to_string().contains("not been started"), "{error}");
        for _ in 0..3 {
            marks.begin();
            assert!(marks.mark([3, 1].into_iter()).expect("new"));
            assert!(!marks.mark([4].into_iter()).expect("new"));
            assert_eq!(taken(&marks), [3, 1, 4]);
            for wrong in [&[0, 0][..], &[0, 1], &[2, 0, 2]] {
                let error = marks.mark(wrong.iter().copied()).expect_err("twice");
                assert_eq!(error.kind(), ErrorKind::Request);
                assert!(taken(&marks).is_empty());
            }
            let mut rest = Vec::new();
            marks.take_rest(|partition| rest.push(partition));
            assert_eq!(rest, [0, 2]);
            assert!(marks.mark([0].into_iter()).is_err());
        }
        for wrong in [-1, 5, i64::MAX, i64::MIN] {
            let error = marks.check(wrong, "partition").expect_err("out of range");
            assert_eq!(error.kind(), ErrorKind::Argument);
        }
    }

    #[test]
    fn rounds_go_on_after_the_largest_number() {
        let marks = Marks::new(1).expect("memory");
        marks.round.store(u32::MAX - 1, Ordering::Relaxed);
        for _ in 0..3 {
            marks.begin();
            assert!(marks.mark([0].into_iter()).expect("new") && taken(&marks) == [0]);
            assert!(marks.mark([0].into_iter()).is_err());
        }
    }

    /// Threads mark partitions, and whoever finds the list empty takes it. Each partition is taken once, with its data.
    #[test]
    fn every_partition_is_taken_once_whatever_threads_do() {
        const PARTITIONS: u32 = 4000;
        const THREADS: u32 = 4;
        let marks = Marks::new(PARTITIONS).expect("memory");
        let data = atomics(PARTITIONS).expect("memory");
        let counts = atomics(PARTITIONS).expect("memory");
        let lock = std::sync::Mutex::new(());
        for round in 1..4 {
            marks.begin();
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (marks, data, counts, lock) = (&marks, &data, &counts, &lock);
                    scope.spawn(move || {
                        for partition in (thread..PARTITIONS).step_by(THREADS as usize) {
                            data[partition as usize].store(round, Ordering::Relaxed);
                            if marks.mark([partition].into_iter()).expect("new") {
                                let _held = lock.lock().expect("no panic");
                                marks.take(|taken| {
                                    let written = data[taken as usize].load(Ordering::Relaxed);
                                    assert_eq!(written, round);
                                    counts[taken as usize].fetch_add(1, Ordering::Relaxed);
                                });
                            }
                        }
                    });
                }
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round));
        }
    }

    impl Link for loom::sync::atomic::AtomicU32 {
        fn get(&self) -> u32 {
            self.load(Ordering::Relaxed)
        }

        fn set(&self, value: u32) {
            self.store(value, Ordering::Relaxed);
        }

        fn publish(&self, old: u32, new: u32) -> std::result::Result<u32, u32> {
            self.compare_exchange_weak(old, new, RELEASE, Ordering::Relaxed)
        }

        fn empty(&self) -> u32 {
            self.swap(END, ACQUIRE)
        }
    }

    /// Two threads push, and whoever finds the list empty takes it under a lock. Each partition is taken once, and who
    /// takes it sees its data.
    #[test]
    fn loom_partitions_are_taken_with_their_data() {
        use loom::cell::UnsafeCell;
        use loom::sync::atomic::AtomicU32;
        use loom::sync::{Arc, Mutex};
        struct Scene {
            list: List<AtomicU32>,
            data: [UnsafeCell<u32>; 2],
            /// How often each partition has been taken.
            taken: Mutex<[u32; 2]>,
        }
        fn visit(scene: &Scene, partition: u32) {
            // SAFETY: nobody else accesses the data before the partition is in the list. Loom reports it otherwise.
            scene.data[partition as usize].with_mut(|data| unsafe { *data = 7 });
            if scene.list.push(partition) {
                let mut taken = scene.taken.lock().expect("no panic");
                scene.list.take(|partition| {
                    // SAFETY: nobody writes the data any more. Loom reports it otherwise.
                    scene.data[partition as usize].with(|data| assert_eq!(unsafe { *data }, 7));
                    taken[partition as usize] += 1;
                });
            }
        }
        loom::model(|| {
            let word = || AtomicU32::new(END);
            let scene = Arc::new(Scene {
                list: List { next: Box::new([word(), word()]), first: word() },
                data: [UnsafeCell::new(0), UnsafeCell::new(0)],
                taken: Mutex::new([0; 2]),
            });
            let other = Arc::clone(&scene);
            let thread = loom::thread::spawn(move || visit(&other, 1));
            visit(&scene, 0);
            thread.join().expect("no panic");
            assert_eq!(*scene.taken.lock().expect("no panic"), [1; 2]);
        });
    }

    #[test]
    fn partitions_arrive_in_rounds() {
        let arrivals = Arrivals::new(4).expect("memory");
        assert!(arrivals.has(3).expect("in range"));
        for _ in 0..3 {
            arrivals.begin();
            assert!(!arrivals.has(0).expect("in range"));
            arrivals.report(1..3);
            let have = [0, 1, 2, 3].map(|at| arrivals.has(at).expect("in range"));
            assert_eq!(have, [false, true, true, false]);
        }
        assert!(arrivals.has(4).is_err() && arrivals.has(-1).is_err());
    }
}
