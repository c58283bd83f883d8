//! The method by which a sender copies the payload of a short message into the ring, chosen by measurement.
//!
//! A payload of some KiB takes about as long as the copies of its lines: the sender writes lines that the receiver has
//! read, and the receiver reads lines that the sender has written. The sender's method changes the time of both copies,
//! so the cost of a method is the sum of the two times. Measured with `typepack-bench regret messages` on a Zen 4, user
//! memory, contiguous messages of 8 KiB, in us (half of there and back):
//!
//! | CPUs | vector moves | two pages | `rep movsb` | streaming stores |
//! |---|---|---|---|---|
//! | 38 ns a line | 0.56 | 0.58 | 0.55 | 2.11 |
//! | 162 ns a line | 3.71 | 3.79 | 3.01 | 2.39 |
//!
//! The sender chooses, for each receiver, with one chooser (`typepack_engine::choice`) per size class. It measures its copy
//! and writes a mark into the envelope. A receiver that finds a mark, and copies the payload straight out of the ring to
//! its place, measures this copy, and leaves the mark and the time in a word of the pair's area (`area.rs`). The
//! sender looks there when it next sends a payload of some KiB. Neither rank waits for the other. If no answer comes, because
//! no receive had matched the message, the trial ends after some messages ([`PATIENCE`]).
//!
//! A chooser whose ways have been compared is asked for one message in [`RARELY`]: the question takes some nanoseconds, and
//! such a message a few hundred.
//!
//! `eager.rs` copies the payloads, and `endpoint/engine/short.rs` measures at the receiver.

use super::area::Area;
use super::tuning::cost;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use typepack_engine::choice::{Chooser, Pick};
use typepack_engine::contiguous::{self, LONG, Method};

/// Length in bytes of the shortest payload whose method is chosen. Shorter payloads always take vector moves.
pub const LEAST: usize = LONG;

/// Number of size classes. Each but the last has payloads of up to twice the length of its shortest one.
const CLASSES: usize = 3;

/// Number of messages after which a trial without an answer ends.
const PATIENCE: u8 = 16;

/// Once the ways have been compared, one message in this number asks the chooser.
const RARELY: u8 = 16;

/// Number of low bits of a word with an answer that have the time, in nanoseconds. The mark is above.
const TIME_BITS: u32 = 32;

/// The choices of a sender for one receiver.
#[derive(Debug)]
pub struct ShortChoices {
    methods: Vec<Method>,
    classes: [Class; CLASSES],
    trial: Option<Trial>,
    /// The mark of the last trial.
    mark: u32,
}

#[derive(Debug)]
struct Class {
    chooser: Chooser,
    /// Number of messages until the next question to the chooser.
    rest: u8,
}

/// A message whose copies are measured.
#[derive(Clone, Copy, Debug)]
struct Trial {
    mark: u32,
    class: usize,
    way: u8,
    bytes: u64,
    /// The time of the sender's copy.
    time: Duration,
    /// Number of later messages.
    age: u8,
}

/// How a payload is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The sender's method.
    pub method: Method,
    /// True if both copies are to be measured.
    pub is_timed: bool,
    way: u8,
}

impl ShortChoices {
    /// Creates choices that begin with vector moves.
    pub fn new() -> Self {
        let methods: Vec<Method> = contiguous::available().collect();
        let class = || Class { chooser: Chooser::new(methods.len(), 0), rest: 0 };
        Self { classes: std::array::from_fn(|_| class()), methods, trial: None, mark: 0 }
    }

    /// Chooses the method for a payload of `bytes` bytes, at least [`LEAST`]. `area` is the area in which the receiver
    /// leaves its answers.
    #[inline]
    pub fn choose(&mut self, bytes: usize, area: &Area) -> Choice {
        let class = class(bytes);
        if self.classes[class].rest > 0 {
            self.classes[class].rest -= 1;
            let way = self.classes[class].chooser.best();
            return Choice { method: self.methods[usize::from(way)], is_timed: false, way };
        }
        self.ask(class, || area.measured().load(Ordering::Relaxed))
    }

    #[inline(never)]
    fn ask(&mut self, class: usize, answer: impl FnOnce() -> u64) -> Choice {
        if let Some(trial) = &mut self.trial {
            let word = answer();
            let of_this = (word >> TIME_BITS) as u32 == trial.mark;
            trial.age += 1;
            let Trial { class, way, bytes, time, age, .. } = *trial;
            if of_this {
                let theirs = Duration::from_nanos(word & ((1 << TIME_BITS) - 1));
                self.classes[class].chooser.report(way, cost(time + theirs, bytes));
            }
            if of_this || age >= PATIENCE {
                self.trial = None;
            }
        }
        let entry = &mut self.classes[class];
        // There is one trial at a time.
        let pick = match self.trial {
            Some(_) => Pick { way: entry.chooser.best(), timed: false },
            None => entry.chooser.pick(),
        };
        if !pick.timed && entry.chooser.is_settled() {
            entry.rest = RARELY - 1;
        }
        let Pick { way, timed } = pick;
        Choice { method: self.methods[usize::from(way)], is_timed: timed, way }
    }

    /// Says that the copy of a payload of `bytes` bytes, which is timed, has begun at `start` and is over. Returns the
    /// mark for the envelope.
    pub fn sent(&mut self, choice: Choice, bytes: usize, start: Instant) -> u64 {
        self.mark = self.mark.checked_add(1).unwrap_or(1);
        let (mark, class, way) = (self.mark, class(bytes), choice.way);
        let (bytes, time) = (bytes as u64, start.elapsed());
        self.trial = Some(Trial { mark, class, way, bytes, time, age: 0 });
        u64::from(mark)
    }

    /// Returns one line for each size class whose ways have been compared, if another method than vector moves is the best.
    pub fn report(&self, rank: usize) -> impl Iterator<Item = String> {
        let classes = self.classes.iter().enumerate();
        let chosen =
            classes.filter(|(_, class)| class.chooser.is_settled() && class.chooser.best() > 0);
        chosen.map(move |(number, class)| {
            let method = self.methods[usize::from(class.chooser.best())];
            format!("from {} KiB, short messages to rank {rank}: {method}", (LEAST << number) >> 10)
        })
    }
}

/// Returns the word by which a receiver answers a mark. Its copy has taken `time`.
pub fn answer(mark: u64, time: Duration) -> u64 {
    let most = (1 << TIME_BITS) - 1;
    mark << TIME_BITS | u64::try_from(time.as_nanos()).unwrap_or(most).min(most)
}

/// Returns the size class of a payload.
#[inline]
fn class(bytes: usize) -> usize {
    ((bytes / LEAST).max(1).ilog2() as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `count` messages of 4 KiB in the way that is chosen. A receiver needs the time `theirs(method)`, and answers
    /// if `answers(number)`. Returns how often each method was used.
    fn send(
        choices: &mut ShortChoices,
        count: usize,
        theirs: impl Fn(Method) -> u64,
        answers: impl Fn(usize) -> bool,
    ) -> [usize; 4] {
        let (mut used, mut word) = ([0; 4], 0);
        for number in 0..count {
            let class = class(4096);
            let choice = if choices.classes[class].rest > 0 {
                choices.classes[class].rest -= 1;
                let way = choices.classes[class].chooser.best();
                Choice { method: choices.methods[usize::from(way)], is_timed: false, way }
            } else {
                choices.ask(class, || word)
            };
            used[usize::from(choice.method.code())] += 1;
            if choice.is_timed {
                let mark = choices.sent(choice, 4096, Instant::now());
                // The time of this rank's copy is that of a real clock, so it must not matter.
                choices.trial.as_mut().expect("a trial").time = Duration::ZERO;
                if answers(number) {
                    word = answer(mark, Duration::from_nanos(theirs(choice.method)));
                }
            }
        }
        used
    }

    #[test]
    fn the_method_with_the_least_time_of_both_ranks_wins() {
        for best in contiguous::available() {
            let mut choices = ShortChoices::new();
            let time = |method| if method == best { 1000 } else { 2000 };
            send(&mut choices, 20_000, time, |_| true);
            let used = send(&mut choices, 10_000, time, |_| true);
            assert!(used[usize::from(best.code())] > 9800, "{best}: {used:?}");
            let lines: Vec<String> = choices.report(7).collect();
            if best == Method::Vector {
                assert!(lines.is_empty());
            } else {
                assert_eq!(lines, [format!("from 4 KiB, short messages to rank 7: {best}")]);
            }
        }
    }

    /// Checks that a receiver that never answers, or rarely, only delays the choice, and that an answer to an earlier
    /// message is no answer.
    #[test]
    fn answers_may_be_missing() {
        let mut choices = ShortChoices::new();
        let used = send(&mut choices, 5000, |_| 1000, |_| false);
        assert_eq!(used.iter().sum::<usize>(), used[0]);
        assert!(choices.classes.iter().all(|class| class.chooser.median(0).is_none()));
        let time = |method| if method == Method::Vector { 2000 } else { 1000 };
        send(&mut choices, 50_000, time, |number| number % 3 == 0);
        let several = contiguous::available().count() > 1;
        assert_eq!(choices.report(0).count(), usize::from(several));
    }

    #[test]
    fn marks_and_times_have_their_bits() {
        assert_eq!(answer(1, Duration::from_nanos(5)), 1 << 32 | 5);
        assert_eq!(answer(u64::from(u32::MAX), Duration::MAX), u64::MAX);
        let mut choices = ShortChoices::new();
        choices.mark = u32::MAX;
        let choice = Choice { method: Method::Vector, is_timed: true, way: 0 };
        assert_eq!(choices.sent(choice, LEAST, Instant::now()), 1);
        assert_eq!(
            [LEAST, 2 * LEAST - 1, 2 * LEAST, 4 * LEAST, 8 * LEAST].map(class),
            [0, 0, 1, 2, 2]
        );
    }
}
