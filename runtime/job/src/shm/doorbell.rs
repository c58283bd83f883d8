//! The doorbell of a rank, on which the rank sleeps and by which other ranks wake it. Ringing a rank that
//! is awake needs no system call.
//!
//! `segment.rs` has a doorbell for each rank, in its slot. `endpoint/progress.rs` sleeps on it through
//! `transport/fabric.rs`. `README.md` beside this file describes the protocol and why no wake-up is lost;
//! the step numbers below are those of the README. The code is generic over [`Kernel`], so that the loom
//! models at the end of this file run this code itself, together with the ring. Three of the models limit
//! the number of preemptions, and one model is ignored by default.
//!
//! Invariant: a publication happens before [`Doorbell::ring`], and a sleeper checks once more for every
//! event that could wake it between [`Doorbell::prepare`] and [`Doorbell::wait`].

use std::io;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use crate::sync::{Flag, Kernel};
use crate::sys::futex::{self, Woken};

/// The machine: its fence, and Linux's futexes.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl Kernel for Machine {
    type Flag = AtomicU32;

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn wait(&self, word: &AtomicU32, seen: u32, timeout: Option<Duration>) -> io::Result<Woken> {
        futex::wait(word, seen, timeout)
    }

    fn wake(&self, word: &AtomicU32) -> io::Result<()> {
        futex::wake(word)
    }
}

/// The doorbell of one rank: two words of its slot, and the kernel.
#[derive(Debug)]
pub struct Doorbell<'a, K: Kernel> {
    /// The futex word, which changes with every call that wakes the rank.
    pub word: &'a K::Flag,
    /// 1 while the rank sleeps or is about to sleep.
    pub sleeping: &'a K::Flag,
    /// The machine, or loom's model of it.
    pub kernel: &'a K,
}

impl<K: Kernel> Doorbell<'_, K> {
    /// Wakes the rank if it sleeps (steps 2 to 4). The caller must publish its data first.
    #[inline]
    pub fn ring(&self) {
        // Orders the publication before the load of `sleeping`; pairs with the fence in `prepare`.
        self.kernel.fence();
        if self.sleeping.load_relaxed() != 0 && self.sleeping.swap(0) != 0 {
            self.call();
        }
    }

    /// Wakes the rank without reading `sleeping`.
    pub fn call(&self) {
        self.word.add_release(1);
        // On a kernel without futexes the sleeper fails and reports the error. The waker can ignore the
        // error, because the sleeper looks again after its timeout.
        let _ = self.kernel.wake(self.word);
    }

    /// Announces that the calling rank is about to sleep (steps 5 and 6).
    pub fn prepare(&self) -> u32 {
        let seen = self.word.load_acquire();
        // This is a swap and not a store. So it is ordered after the swap of a waker that found an
        // announcement already cancelled. This order makes the proof simpler. Loom needs the order as well,
        // because it does not know that no write comes between a swap and the value that the swap read.
        let _ = self.sleeping.swap(1);
        self.kernel.fence();
        seen
    }

    /// Cancels the announcement (step 7).
    pub fn cancel(&self) {
        self.sleeping.store_relaxed(0);
    }

    /// Sleeps until a rank calls, the word differs from `seen`, or the time runs out (step 8).
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn wait(&self, seen: u32, timeout: Option<Duration>) -> io::Result<Woken> {
        let woken = self.kernel.wait(self.word, seen, timeout);
        self.sleeping.store_relaxed(0);
        woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::ring::{Consumer, Producer, RingMemory};
    use loom::sync::atomic::{AtomicU32 as Flag32, AtomicU64 as Word64, fence};
    use loom::sync::{Arc, Condvar, Mutex};

    /// A kernel in which only a wake ends a sleep. A lost wake-up is a deadlock, which loom reports. Tests
    /// can leave out either fence.
    struct Model {
        lock: Mutex<()>,
        woken: Condvar,
        fences: [bool; 2],
    }

    /// The kernel as seen by one side of a doorbell.
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

        fn wait(&self, word: &Flag32, seen: u32, timeout: Option<Duration>) -> io::Result<Woken> {
            assert!(timeout.is_none());
            // The kernel compares and falls asleep under the lock that wakers take.
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

    /// The doorbell in a rank's slot.
    struct Slot {
        word: Flag32,
        sleeping: Flag32,
        model: Model,
    }

    impl Slot {
        fn new(fences: [bool; 2]) -> Self {
            let model = Model { lock: Mutex::new(()), woken: Condvar::new(), fences };
            Self { word: Flag32::new(0), sleeping: Flag32::new(0), model }
        }

        fn ring(&self) {
            let kernel = Side { model: &self.model, fences: self.model.fences[0] };
            Doorbell { word: &self.word, sleeping: &self.sleeping, kernel: &kernel }.ring();
        }

        /// Waits as `progress.rs` does: look, announce, look again, sleep.
        fn wait_for<R>(&self, mut look: impl FnMut() -> Option<R>) -> R {
            let kernel = Side { model: &self.model, fences: self.model.fences[1] };
            let bell = Doorbell { word: &self.word, sleeping: &self.sleeping, kernel: &kernel };
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

    /// Two slots and a small payload area.
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
        const SLOTS: usize = 2;
        const PAYLOAD: usize = 256;
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

    /// Publishes `count` messages and rings for each. Sleeps while the ring is full.
    fn send(ring: &Ring, own: &Slot, other: &Slot, count: u64) {
        let mut tx = Producer::default();
        for n in 0..count {
            let room = own.wait_for(|| tx.reserve(ring, 0).expect("honest credits"));
            tx.publish(ring, room, &[n + 7, 0, 0, 0, 0, 0, 0], 1);
            other.ring();
        }
    }

    /// Takes `count` messages and rings for returned credits. Sleeps while there is no message.
    fn receive(ring: &Ring, own: &Slot, other: &Slot, count: u64) {
        let mut rx = Consumer::default();
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

    /// One rank sends to another through the ring. Both sleep whenever they can.
    fn pair(messages: u64, fences: [bool; 2]) {
        let ranks = Arc::new([Slot::new(fences), Slot::new(fences)]);
        let ring = Arc::new(Ring::new());
        let (theirs, same) = (ranks.clone(), ring.clone());
        let sender = loom::thread::spawn(move || send(&same, &theirs[0], &theirs[1], messages));
        receive(&ring, &ranks[1], &ranks[0], messages);
        sender.join().expect("the sender ends");
    }

    /// In every interleaving the receiver does not sleep while a published message waits.
    #[test]
    fn loom_no_message_is_slept_on() {
        loom::model(|| pair(1, [true; 2]));
    }

    /// A sleeper cancels its announcement while another rank calls; at most 4 preemptions.
    #[test]
    fn loom_nor_is_the_next_one() {
        explore(4, || pair(2, [true; 2]));
    }

    /// The model of `loom_nor_is_the_next_one` in every interleaving.
    #[test]
    #[ignore = "three minutes"]
    fn loom_nor_is_the_next_one_at_length() {
        loom::model(|| pair(2, [true; 2]));
    }

    /// More messages than the ring has slots: no rank sleeps while a message or a credit waits; at most 3
    /// preemptions.
    #[test]
    fn loom_no_credit_is_slept_on() {
        explore(3, || pair(4, [true; 2]));
    }

    /// Two senders ring at the same time, and one of them may leave the call to the other; at most 2
    /// preemptions.
    #[test]
    fn loom_one_call_serves_two_wakers() {
        explore(2, || {
            let ranks = Arc::new([0, 1, 2].map(|_| Slot::new([true; 2])));
            let rings = Arc::new([Ring::new(), Ring::new()]);
            let senders = [0, 1].map(|i| {
                let (ranks, rings) = (ranks.clone(), rings.clone());
                loom::thread::spawn(move || send(&rings[i], &ranks[i], &ranks[2], 1))
            });
            let mut consumers = [Consumer::default(), Consumer::default()];
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

    /// Without either fence the model finds a lost wake-up.
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
}
