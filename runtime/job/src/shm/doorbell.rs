//! The doorbell of a rank. The rank sleeps on its doorbell, and other ranks ring the doorbell to wake the
//! rank. Ringing a rank that is awake needs no system call.
//!
//! Each rank's slot in the segment holds its doorbell (`segment.rs`). `endpoint/progress.rs` sleeps on
//! the doorbell through `transport/link/fabric.rs`. `README.md` beside this file describes the protocol and
//! explains why no wake-up is lost; the step numbers below are those of the README. The code is generic
//! over [`Kernel`], so that the loom models at the end of this file check the real code of the doorbell
//! and of the ring (`ring.rs`), not copies. Some of the models limit the number of preemptions, and one
//! model is ignored by default.
//!
//! Invariants: a rank publishes its data before it calls [`Doorbell::ring`]. Between [`Doorbell::prepare`]
//! and [`Doorbell::wait`], a sleeper checks once more for every event that could wake it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence, fence};
use std::time::Duration;

use crate::sync::{Flag, Kernel};
use crate::sys::barrier;
use crate::sys::futex::{self, Woken};

/// The real machine: the processor's memory fence, and the barriers and futexes of Linux.
#[derive(Debug, Default)]
pub struct Machine {
    /// True if the barriers of other processes include this process.
    reached: AtomicBool,
}

impl Machine {
    /// Asks the kernel to include this process in the barriers of other processes. Returns false if the kernel
    /// refuses.
    pub fn register(&self) -> bool {
        let registered = barrier::register();
        self.reached.store(registered, Ordering::Relaxed);
        registered
    }
}

impl Kernel for Machine {
    type Flag = AtomicU32;

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn is_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    #[inline]
    fn order(&self) {
        compiler_fence(Ordering::SeqCst);
    }

    fn barrier(&self) -> io::Result<()> {
        barrier::everywhere()
    }

    fn wait(&self, word: &AtomicU32, seen: u32, timeout: Option<Duration>) -> io::Result<Woken> {
        futex::wait(word, seen, timeout)
    }

    fn wake(&self, word: &AtomicU32) -> io::Result<()> {
        futex::wake(word)
    }
}

/// The doorbell of one rank: three words of its slot, and the [`Kernel`] that sleeps and wakes on them.
#[derive(Debug)]
pub struct Doorbell<'a, K: Kernel> {
    /// The futex word. Every call that wakes the rank changes the word.
    pub word: &'a K::Flag,
    /// 1 while the rank sleeps or is about to sleep.
    pub sleeping: &'a K::Flag,
    /// 1 if the rank executes a barrier in all other ranks before it sleeps (see `README.md`).
    pub pays: &'a K::Flag,
    /// The machine, or loom's model of it.
    pub kernel: &'a K,
}

impl<K: Kernel> Doorbell<'_, K> {
    /// Wakes the rank if it sleeps (steps 2 to 4 of the protocol in `README.md`). The caller must publish its
    /// data before it calls this function.
    #[inline]
    pub fn ring(&self) {
        // The caller's publication must come before the load of `sleeping`. If the rank executes a barrier in
        // `prepare`, that barrier ensures the order. Otherwise the fence here, which pairs with the fence in
        // `prepare`, ensures it.
        if self.pays.load_relaxed() != 0 && self.kernel.is_reached() {
            self.kernel.order();
        } else {
            self.kernel.fence();
        }
        if self.sleeping.load_relaxed() != 0 && self.sleeping.swap(0) != 0 {
            self.call();
        }
    }

    /// Wakes the rank without checking `sleeping`.
    pub fn call(&self) {
        self.word.add_release(1);
        // Ignore the error. On a kernel without futexes, the sleeper's own call fails as well, and the
        // sleeper reports the error. After any other error, the sleeper looks for events again when its
        // timeout expires.
        let _ = self.kernel.wake(self.word);
    }

    /// Announces that the calling rank is about to sleep (steps 5 and 6 of the protocol in `README.md`).
    /// Returns the value to pass to [`Doorbell::wait`].
    pub fn prepare(&self) -> u32 {
        let seen = self.word.load_acquire();
        // Set `sleeping` with a swap and not with a store. A waker clears `sleeping` with a swap too, so
        // this swap is ordered after the swap of any waker that has cleared an earlier announcement of this
        // rank. This order makes the proof in the README simpler, and the loom models need it: loom can
        // place a plain store between the read and the write of a waker's swap, which no real machine does.
        let _ = self.sleeping.swap(1);
        self.kernel.fence();
        if self.pays.load_relaxed() != 0 && self.kernel.barrier().is_err() {
            // The barrier has failed, although the kernel allowed barriers before. From now on the wakers
            // execute fences again. A waker that has read the old value of `pays` may miss this announcement.
            // So change the futex word: then this rank does not sleep this time.
            self.pays.store_relaxed(0);
            self.word.add_release(1);
        }
        seen
    }

    /// Cancels the announcement that `prepare` made (step 7 of the protocol in `README.md`).
    pub fn cancel(&self) {
        self.sleeping.store_relaxed(0);
    }

    /// Sleeps until another process wakes this rank or `timeout` has passed (step 8 of the protocol in
    /// `README.md`). Returns at once if the futex word differs from `seen`. May also return early without a
    /// reason.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn wait(&self, seen: u32, timeout: Option<Duration>) -> io::Result<Woken> {
        let woken = self.kernel.wait(self.word, seen, timeout);
        self.sleeping.store_relaxed(0);
        match woken {
            // The rank was rung after the time had passed, but before this process got the CPU.
            Ok(Woken::TimedOut) if self.word.load_acquire() != seen => Ok(Woken::Changed),
            woken => woken,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::shm::pair::Level;
    use crate::shm::ring::{Consumer, Producer, RingMemory};
    use loom::sync::atomic::{AtomicU32 as Flag32, AtomicU64 as Word64, fence};
    use loom::sync::{Arc, Condvar, Mutex};

    /// A model of the kernel in which only a wake ends a sleep. A lost wake-up becomes a deadlock, and loom
    /// reports the deadlock. Tests can leave out the waker's fence (`fences[0]`) or the sleeper's fence
    /// (`fences[1]`).
    pub struct Model {
        lock: Mutex<()>,
        woken: Condvar,
        fences: [bool; 2],
        /// Stands for the interrupts of a barrier. A barrier interrupts a waker somewhere. All that matters is
        /// whether this happens before or after the point between the waker's publication and its load. So a
        /// waker takes this lock at that point, and a barrier takes the lock too.
        point: Mutex<()>,
        /// False if barriers do nothing. A test shows in this way that they are necessary.
        barriers: bool,
    }

    /// The model of the kernel as either the waker or the sleeper of a doorbell sees it. If `fences` is
    /// false, the fences of that process do nothing.
    struct Side<'a> {
        model: &'a Model,
        fences: bool,
    }

    impl Kernel for Side<'_> {
        type Flag = Flag32;

        fn fence(&self) {
            if self.fences {
                fence(Ordering::SeqCst);
            }
        }

        fn is_reached(&self) -> bool {
            true
        }

        fn order(&self) {
            drop(self.model.point.lock().expect("the model's lock"));
        }

        fn barrier(&self) -> io::Result<()> {
            if self.model.barriers {
                drop(self.model.point.lock().expect("the model's lock"));
                fence(Ordering::SeqCst);
            }
            Ok(())
        }

        fn wait(&self, word: &Flag32, seen: u32, timeout: Option<Duration>) -> io::Result<Woken> {
            assert!(timeout.is_none());
            // Compare the word and fall asleep under the lock that wakers take, as a futex does, so that no
            // wake can come between the comparison and the sleep.
            let guard = self.model.lock.lock().expect("the model's lock");
            if word.load(Ordering::SeqCst) != seen {
                return Ok(Woken::Changed);
            }
            drop(self.model.woken.wait(guard).expect("the model's lock"));
            Ok(Woken::Called)
        }

        fn wake(&self, _: &Flag32) -> io::Result<()> {
            drop(self.model.lock.lock().expect("the model's lock"));
            self.model.woken.notify_all();
            Ok(())
        }
    }

    /// A rank's slot: the three words of its doorbell, and the model of the kernel.
    pub struct Slot {
        word: Flag32,
        sleeping: Flag32,
        pays: Flag32,
        model: Model,
    }

    impl Slot {
        /// Makes the slot of a rank whose wakers execute fences.
        pub fn new(fences: [bool; 2]) -> Self {
            let (lock, woken, point) = (Mutex::new(()), Condvar::new(), Mutex::new(()));
            let model = Model { lock, woken, fences, point, barriers: false };
            Self { word: Flag32::new(0), sleeping: Flag32::new(0), pays: Flag32::new(0), model }
        }

        /// Makes the slot of a rank that calls for a barrier before it sleeps, so that its wakers execute
        /// no fences. If `barriers` is false, the barriers do nothing.
        fn paying(barriers: bool) -> Self {
            let slot = Self::new([false, true]);
            Self { pays: Flag32::new(1), model: Model { barriers, ..slot.model }, ..slot }
        }

        fn side(&self, side: usize) -> Side<'_> {
            Side { model: &self.model, fences: self.model.fences[side] }
        }

        fn bell<'a>(&'a self, kernel: &'a Side<'a>) -> Doorbell<'a, Side<'a>> {
            let Self { word, sleeping, pays, .. } = self;
            Doorbell { word, sleeping, pays, kernel }
        }

        pub fn ring(&self) {
            self.bell(&self.side(0)).ring();
        }

        /// Waits in the same steps as `progress.rs`: looks for an event, announces the sleep, looks again,
        /// and sleeps.
        pub fn wait_for<R>(&self, mut look: impl FnMut() -> Option<R>) -> R {
            let kernel = self.side(1);
            let bell = self.bell(&kernel);
            loop {
                if let Some(found) = look() {
                    return found;
                }
                let seen = bell.prepare();
                if let Some(found) = look() {
                    bell.cancel();
                    return found;
                }
                bell.wait(seen, None).expect("the model sleeps");
            }
        }
    }

    /// A ring with two slots and a small payload area.
    struct Ring {
        slots: [[Word64; 8]; 2],
        credits: [Word64; 2],
    }

    impl Ring {
        fn new() -> Self {
            let word = || Word64::new(0);
            Self {
                slots: std::array::from_fn(|_| std::array::from_fn(|_| word())),
                credits: [word(), word()],
            }
        }
    }

    impl RingMemory for Ring {
        type Word = Word64;
        const LEVELS: &'static [Level] =
            &[Level { first_slot: 0, slots: 2, first_byte: 0, payload: 256 }];
        fn slot(&self, slot: usize, word: usize) -> &Word64 {
            &self.slots[slot][word]
        }
        fn slots_freed(&self) -> &Word64 {
            &self.credits[0]
        }
        fn bytes_freed(&self) -> &Word64 {
            &self.credits[1]
        }
    }

    /// Publishes `count` messages, and rings the doorbell of `other` for each. Sleeps while the ring is full.
    fn send(ring: &Ring, own: &Slot, other: &Slot, count: u64) {
        let mut tx = Producer::new::<Ring>(0);
        for n in 0..count {
            let room = own.wait_for(|| tx.reserve(ring, 0).expect("honest credits"));
            tx.publish(ring, room, &[n + 7, 0, 0, 0, 0, 0, 0], 1);
            other.ring();
        }
    }

    /// Takes `count` messages, and rings the doorbell of `other` when it returns credits. Sleeps while there
    /// is no message.
    fn receive(ring: &Ring, own: &Slot, other: &Slot, count: u64) {
        let mut rx = Consumer::new::<Ring>(0);
        for n in 0..count {
            let words = own.wait_for(|| rx.peek(ring));
            assert_eq!(words[0], n + 7);
            if rx.advance(ring, 0) {
                other.ring();
            }
        }
    }

    fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(body);
    }

    /// Runs two ranks: one sends `messages` messages through the ring, and the other receives them. Both
    /// sleep whenever they can.
    fn pair(messages: u64, fences: [bool; 2]) {
        exchange(messages, [Slot::new(fences), Slot::new(fences)]);
    }

    /// Runs two ranks like [`pair`]. Their doorbells are in `slots`.
    fn exchange(messages: u64, slots: [Slot; 2]) {
        let ranks = Arc::new(slots);
        let ring = Arc::new(Ring::new());
        let (theirs, same) = (ranks.clone(), ring.clone());
        let sender = loom::thread::spawn(move || send(&same, &theirs[0], &theirs[1], messages));
        receive(&ring, &ranks[1], &ranks[0], messages);
        sender.join().expect("the sender ends");
    }

    /// Checks, in every interleaving, that the receiver never keeps sleeping while a published message is
    /// waiting.
    #[test]
    fn loom_no_message_is_slept_on() {
        loom::model(|| pair(1, [true; 2]));
    }

    /// Checks that no message is lost if a sleeper cancels its announcement while another rank wakes the
    /// sleeper. The model explores interleavings with at most 4 preemptions.
    #[test]
    fn loom_nor_is_the_next_one() {
        explore(4, || pair(2, [true; 2]));
    }

    /// Runs the model of `loom_nor_is_the_next_one` in every interleaving, without a limit on preemptions.
    #[test]
    #[ignore = "three minutes"]
    fn loom_nor_is_the_next_one_at_length() {
        loom::model(|| pair(2, [true; 2]));
    }

    /// Sends more messages than the ring has slots, and checks that no rank keeps sleeping while a message or
    /// a credit is waiting for it. The model explores interleavings with at most 3 preemptions.
    #[test]
    fn loom_no_credit_is_slept_on() {
        explore(3, || pair(4, [true; 2]));
    }

    /// Checks that no message is lost if two senders ring at the same time and only one of them wakes the
    /// receiver. The model explores interleavings with at most 2 preemptions.
    #[test]
    fn loom_one_call_serves_two_wakers() {
        explore(2, || {
            let ranks = Arc::new([0, 1, 2].map(|_| Slot::new([true; 2])));
            let rings = Arc::new([Ring::new(), Ring::new()]);
            let senders = [0, 1].map(|i| {
                let (ranks, rings) = (ranks.clone(), rings.clone());
                loom::thread::spawn(move || send(&rings[i], &ranks[i], &ranks[2], 1))
            });
            let mut consumers = [Consumer::new::<Ring>(0), Consumer::new::<Ring>(0)];
            for _ in 0..2 {
                ranks[2].wait_for(|| {
                    let found = (0..2).find(|&i| consumers[i].peek(&rings[i]).is_some())?;
                    let _ = consumers[found].advance(&rings[found], 0);
                    Some(())
                });
            }
            for sender in senders {
                sender.join().expect("the sender ends");
            }
        });
    }

    /// Checks that the model finds a lost wake-up if the waker's fence is left out.
    #[test]
    #[should_panic(expected = "deadlock")]
    fn loom_without_the_wakers_fence_a_message_is_slept_on() {
        loom::model(|| pair(1, [false, true]));
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn loom_without_the_sleepers_fence_a_message_is_slept_on() {
        loom::model(|| pair(1, [true, false]));
    }

    /// Checks, in every interleaving, that a barrier of the sleeper replaces the fence of the waker.
    #[test]
    fn loom_no_message_is_slept_on_if_the_sleeper_pays() {
        loom::model(|| exchange(1, [true, true].map(Slot::paying)));
    }

    /// Checks that no rank keeps sleeping while a message or a credit is waiting for it, if only one of
    /// two ranks executes barriers.
    #[test]
    fn loom_nor_are_several_if_one_of_two_pays() {
        explore(3, || exchange(3, [Slot::paying(true), Slot::new([true; 2])]));
        explore(3, || exchange(3, [Slot::new([true; 2]), Slot::paying(true)]));
    }

    /// Checks that the model finds a lost wake-up if neither the waker executes a fence nor the sleeper a
    /// barrier.
    #[test]
    #[should_panic(expected = "deadlock")]
    fn loom_without_the_barrier_a_message_is_slept_on() {
        loom::model(|| exchange(1, [false, false].map(Slot::paying)));
    }
}
