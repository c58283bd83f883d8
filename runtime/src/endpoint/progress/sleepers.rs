//! The threads of this process that sleep while another thread polls: who is woken by what.
//!
//! Each sleeping thread has a bell of its own. A bell is rung when the thing that its thread awaits may have come, or
//! when the thread has to poll because the poller stops. The list lives under the endpoint's lock, but a thread waits
//! for its bell without the lock. A ring stays until the thread leaves the list, so none is lost in between.
//!
//! Invariant: while threads sleep, one thread polls, or a thread that may poll is awake in the loop of a wait
//! (`waiting.rs`). So every thread that leaves this loop, and every thread that stops polling, calls
//! [`Sleepers::hand_on`].

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Number of threads that sleep without taking memory first.
const THREADS: usize = 4;

/// What wakes one thread.
pub(super) trait Bell: Clone + Default {
    /// Wakes the thread, also if it has not begun to wait yet.
    fn ring(&self);
    /// Takes back a ring that nobody has heard.
    fn reset(&self);
}

/// The bell of the library.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadBell(Arc<(Mutex<bool>, Condvar)>);

impl ThreadBell {
    /// Sleeps until the bell is rung, but no longer than `time`.
    pub fn wait(&self, time: Duration) {
        let (rung, called) = &*self.0;
        let rung = rung.lock().unwrap_or_else(PoisonError::into_inner);
        drop(called.wait_timeout_while(rung, time, |rung| !*rung));
    }
}

impl Bell for ThreadBell {
    fn ring(&self) {
        let (rung, called) = &*self.0;
        *rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        called.notify_one();
    }

    fn reset(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// What a sleeping thread awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    /// The end of the request with this number.
    Request(u64),
    /// The end of some request, after this number of requests that have ended.
    Completion(u64),
    /// Anything that a turn may change.
    Turn,
    /// The end of a continuation. Such a thread is in no loop of a wait, so it never polls.
    Continuation,
}

/// A thread that sleeps.
#[derive(Debug)]
struct Sleeper<B> {
    ticket: u64,
    awaits: Awaits,
    bell: B,
}

/// The threads that sleep and have not been woken yet.
#[derive(Debug)]
pub(super) struct Sleepers<B> {
    /// True while a thread polls or sleeps on the doorbell.
    pub polled: bool,
    /// In the order in which they fell asleep.
    list: Vec<Sleeper<B>>,
    tickets: u64,
    /// Number of threads that nobody had woken when their time was over, though the requests that they awaited had
    /// ended.
    pub missed: u64,
    /// Bells that no thread uses.
    bells: Vec<B>,
}

impl<B: Bell> Sleepers<B> {
    /// Creates an empty list. It has room for some threads, so that they need no memory when they first sleep.
    pub fn new() -> Self {
        let list = Vec::with_capacity(THREADS);
        let bells = (0..THREADS).map(|_| B::default()).collect();
        Self { polled: false, list, tickets: 0, missed: 0, bells }
    }

    /// Returns whether no thread sleeps.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds the calling thread. It then releases the lock, waits for the bell, takes the lock, and calls
    /// [`leave`](Self::leave).
    pub fn enter(&mut self, awaits: Awaits) -> (u64, B) {
        let bell = self.bells.pop().unwrap_or_default();
        self.tickets += 1;
        self.list.push(Sleeper { ticket: self.tickets, awaits, bell: bell.clone() });
        (self.tickets, bell)
    }

    /// Removes the calling thread, which is awake. Nobody rings its bell after that. Returns whether somebody has.
    pub fn leave(&mut self, ticket: u64, bell: B) -> bool {
        let at = self.list.iter().position(|sleeper| sleeper.ticket == ticket);
        if let Some(at) = at {
            self.list.remove(at);
        }
        bell.reset();
        self.bells.push(bell);
        at.is_none()
    }

    /// Wakes every thread for which `may_be_over` returns true.
    pub fn wake(&mut self, mut may_be_over: impl FnMut(Awaits) -> bool) {
        self.list.retain(|sleeper| {
            let wakes = may_be_over(sleeper.awaits);
            if wakes {
                sleeper.bell.ring();
            }
            !wakes
        });
    }

    /// If no thread polls, wakes the thread that polls next: the one that has slept longest.
    pub fn hand_on(&mut self) {
        let polls = |sleeper: &Sleeper<B>| sleeper.awaits != Awaits::Continuation;
        if !self.polled
            && let Some(at) = self.list.iter().position(polls)
        {
            self.list.remove(at).bell.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::sync::atomic::{AtomicBool, Ordering};

    /// A bell that counts.
    #[derive(Clone, Debug, Default)]
    struct Count(Arc<std::sync::atomic::AtomicU32>);

    impl Bell for Count {
        fn ring(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn reset(&self) {}
    }

    impl Count {
        fn take(&self) -> u32 {
            self.0.swap(0, Ordering::Relaxed)
        }
    }

    /// Checks that the end of a request wakes the thread that waits for the request, and no other one; and that one
    /// thread is woken if nobody polls.
    #[test]
    fn each_thread_is_woken_alone() {
        let mut sleepers = Sleepers::<Count>::new();
        sleepers.polled = true;
        let kinds = [Awaits::Continuation, Awaits::Request(1), Awaits::Request(2), Awaits::Turn];
        let entered = kinds.map(|awaits| sleepers.enter(awaits));
        let rings = || entered.each_ref().map(|(_, bell)| bell.take());
        sleepers.wake(|awaits| awaits == Awaits::Request(2));
        assert_eq!(rings(), [0, 0, 1, 0]);
        sleepers.wake(|awaits| awaits == Awaits::Request(2));
        sleepers.hand_on();
        assert_eq!(rings(), [0; 4]);
        // The thread that waits for a continuation does not poll.
        sleepers.polled = false;
        sleepers.hand_on();
        assert_eq!(rings(), [0, 1, 0, 0]);
        sleepers.hand_on();
        assert_eq!(rings(), [0, 0, 0, 1]);
        sleepers.hand_on();
        sleepers.wake(|_| true);
        assert_eq!(rings(), [1, 0, 0, 0]);
        for (ticket, bell) in entered.clone() {
            assert!(sleepers.leave(ticket, bell));
        }
        let (ticket, bell) = sleepers.enter(Awaits::Turn);
        assert!(!sleepers.leave(ticket, bell));
        assert!(sleepers.is_empty() && sleepers.bells.len() == 4);
    }

    /// A ring that comes before the thread waits ends the wait at once.
    #[test]
    fn an_early_ring_is_heard() {
        let bell = ThreadBell::default();
        bell.ring();
        bell.wait(Duration::MAX);
        bell.reset();
        bell.wait(Duration::ZERO);
    }

    /// The bell with the mutex and the condition variable of loom, which know no time: a ring that is lost is a
    /// deadlock.
    #[derive(Clone, Default)]
    struct ModelBell(loom::sync::Arc<(loom::sync::Mutex<bool>, loom::sync::Condvar)>);

    impl Bell for ModelBell {
        fn ring(&self) {
            let (rung, called) = &*self.0;
            *rung.lock().unwrap() = true;
            called.notify_one();
        }

        fn reset(&self) {
            *self.0.0.lock().unwrap() = false;
        }
    }

    /// The lock, and what it protects in the model.
    struct Shared {
        sleepers: Sleepers<ModelBell>,
        is_over: [bool; 2],
    }

    struct Model {
        state: loom::sync::Mutex<Shared>,
        /// What other processes have sent; the poller takes it.
        sent: [AtomicBool; 2],
    }

    impl Model {
        /// Makes a turn.
        fn progress(&self, state: &mut Shared) {
            for (at, sent) in self.sent.iter().enumerate() {
                state.is_over[at] |= sent.load(Ordering::Acquire);
            }
            let over = state.is_over;
            state.sleepers.wake(|awaits| match awaits {
                Awaits::Request(id) => over[id as usize],
                _ => true,
            });
        }

        /// The loop of a wait for the request `own`, without time limits. See `waiting.rs`.
        fn wait(&self, own: usize) {
            let mut state = self.state.lock().unwrap();
            loop {
                self.progress(&mut state);
                if state.is_over[own] {
                    state.sleepers.hand_on();
                    return;
                }
                if state.sleepers.polled {
                    let (ticket, bell) = state.sleepers.enter(Awaits::Request(own as u64));
                    drop(state);
                    let (rung, called) = &*bell.0;
                    let mut heard = rung.lock().unwrap();
                    while !*heard {
                        heard = called.wait(heard).unwrap();
                    }
                    drop(heard);
                    state = self.state.lock().unwrap();
                    assert!(state.sleepers.leave(ticket, bell));
                    continue;
                }
                state.sleepers.polled = true;
                while !state.is_over[own] {
                    drop(state);
                    loom::thread::yield_now();
                    state = self.state.lock().unwrap();
                    self.progress(&mut state);
                }
                state.sleepers.polled = false;
            }
        }
    }

    /// Checks that no thread sleeps for ever: each of two threads waits for a message of its own. The messages come at
    /// any time, from a thread that stands for other processes and rings nobody.
    #[test]
    fn loom_no_thread_sleeps_for_ever() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let model = loom::sync::Arc::new(Model {
                state: loom::sync::Mutex::new(Shared {
                    sleepers: Sleepers::new(),
                    is_over: [false; 2],
                }),
                sent: [(); 2].map(|()| AtomicBool::new(false)),
            });
            let threads = [0, 1].map(|own| {
                let model = loom::sync::Arc::clone(&model);
                loom::thread::spawn(move || model.wait(own))
            });
            for sent in &model.sent {
                sent.store(true, Ordering::Release);
            }
            for thread in threads {
                thread.join().unwrap();
            }
            assert!(model.state.lock().unwrap().sleepers.is_empty());
        });
    }
}
