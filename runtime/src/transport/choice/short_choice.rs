//! The method by which a sender copies the payload of a short message into the ring, chosen by measurement.
//!
//! The time of such a message is mostly the time of two copies: the sender writes cache lines that the receiver has
//! read, and the receiver reads lines that the sender has written. The sender's method changes the time of both copies,
//! so the cost of a method is the sum of the two times. Measured with `typepack-bench pingpong` on a Zen 4 with CPUs
//! 166 ns apart, 32 messages of 4 KiB in a row, in us per message: 1.68 with vector moves, and 0.90 with the choice of
//! this file. The receiver always uses vector moves.
//!
//! The sender chooses, for each receiver, with one chooser (`typepack_engine::choice`) per size class. It measures its
//! copy and writes a mark into the envelope. A receiver that finds a mark, and copies the payload straight out of the
//! ring to its place, measures this copy, and leaves the mark and the time in a word of the pair's area (`area.rs`).
//! The sender looks there when it next sends a payload of some KiB. Neither rank waits for the other. The receiver does
//! not answer if no receive had matched the message, or if it compares types. Then the trial ends when the receiver
//! returns the credits for the message. It has no result, but the budget of looks pays for it.
//!
//! A chooser whose ways have been compared is asked for one message in [`RARELY`]: the question takes some nanoseconds,
//! and such a message a few hundred. The choices take about 1.5 KB for each receiver of such messages.
//!
//! `eager.rs` copies the payloads, and `endpoint/engine/short.rs` measures at the receiver.

use std::collections::BTreeMap;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};
use typepack_engine::choice::{Chooser, Pick, Sizes, cost};
use typepack_engine::contiguous::{self, LONG, Method};

/// Length in bytes of the shortest payload whose method is chosen. Shorter payloads always take vector moves.
pub const LEAST: usize = LONG;

/// Number of size classes.
const CLASSES: usize = 3;

const SIZES: Sizes = Sizes { first: LEAST as u64, step: 1, count: CLASSES };

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
    /// Number of envelopes in the ring up to the one of this message.
    count: u64,
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

    /// Chooses the method for a payload of `bytes` bytes, at least [`LEAST`]. `answer` returns the receiver's last
    /// answer, and whether the receiver has told that it has used the first so many envelopes.
    #[inline]
    pub fn choose(&mut self, bytes: usize, answer: impl FnOnce(u64) -> (u64, bool)) -> Choice {
        let class = class(bytes);
        if self.classes[class].rest > 0 {
            self.classes[class].rest -= 1;
            let way = self.classes[class].chooser.best();
            return Choice { method: self.methods[usize::from(way)], is_timed: false, way };
        }
        self.ask(class, answer)
    }

    #[inline(never)]
    fn ask(&mut self, class: usize, answer: impl FnOnce(u64) -> (u64, bool)) -> Choice {
        if let Some(Trial { mark, class, way, bytes, time, count }) = self.trial {
            let (word, is_used) = answer(count);
            let chooser = &mut self.classes[class].chooser;
            if (word >> TIME_BITS) as u32 == mark {
                let theirs = Duration::from_nanos(word & ((1 << TIME_BITS) - 1));
                chooser.report(way, cost(time + theirs, bytes));
                self.trial = None;
            } else if is_used {
                // Nobody has measured the receiver's copy. It took perhaps as long as the sender's.
                chooser.charge(way, cost(time * 2, bytes));
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

    /// Says that the copy of a payload of `bytes` bytes, which is timed, has begun at `start` and is over. The message
    /// will be the envelope number `count` of the ring, counted from 1. Returns the mark for the envelope.
    pub fn sent(&mut self, choice: Choice, bytes: usize, start: Instant, count: u64) -> u64 {
        // Ordinary stores may still wait for their lines. Streaming stores do not: their method ends with a fence.
        fence(Ordering::SeqCst);
        self.sent_in(choice, bytes, start.elapsed(), count)
    }

    fn sent_in(&mut self, choice: Choice, bytes: usize, time: Duration, count: u64) -> u64 {
        self.mark = self.mark.checked_add(1).unwrap_or(1);
        let (mark, class, way) = (self.mark, class(bytes), choice.way);
        self.trial = Some(Trial { mark, class, way, bytes: bytes as u64, time, count });
        u64::from(mark)
    }

    /// Returns the least number of bytes of each size class whose ways have been compared, and its best method, if it
    /// is not the static one.
    pub fn chosen(&self) -> impl Iterator<Item = (u64, Method)> {
        let classes = self.classes.iter().enumerate();
        let chosen =
            classes.filter(|(_, class)| class.chooser.is_settled() && class.chooser.best() > 0);
        chosen.map(|(number, class)| {
            (SIZES.least(number), self.methods[usize::from(class.chooser.best())])
        })
    }

    /// Returns whether a cost of messages of `bytes` bytes is known.
    #[cfg(test)]
    pub fn has_measured(&self, bytes: usize) -> bool {
        let chooser = &self.classes[class(bytes)].chooser;
        (0..chooser.ways() as u8).any(|way| chooser.median(way).is_some())
    }
}

/// Returns one line for each size class and method that some of these choices have found best.
pub fn report<'a>(all: impl Iterator<Item = &'a ShortChoices>) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for (bytes, method) in all.flat_map(ShortChoices::chosen) {
        *counts.entry((bytes, method.name())).or_insert(0) += 1;
    }
    let line = |((bytes, method), count): ((u64, _), i32)| {
        let ranks = if count == 1 { "rank" } else { "ranks" };
        format!("from {} KiB, short messages to {count} {ranks}: {method}", bytes >> 10)
    };
    counts.into_iter().map(line).collect()
}

/// Returns the word by which a receiver answers a mark. Its copy has taken `time`.
pub fn answer(mark: u64, time: Duration) -> u64 {
    let most = (1 << TIME_BITS) - 1;
    mark << TIME_BITS | u64::try_from(time.as_nanos()).unwrap_or(most).min(most)
}

/// Returns the size class of a payload.
#[inline]
fn class(bytes: usize) -> usize {
    SIZES.class(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `count` messages of 4 KiB in the way that is chosen. The two copies take the times `times(method)`, in
    /// nanoseconds. The receiver answers if `answers(number)`, and returns its credits 64 messages later. Returns how
    /// often each method was used.
    fn send(
        choices: &mut ShortChoices,
        count: usize,
        times: impl Fn(Method) -> [u64; 2],
        answers: impl Fn(usize) -> bool,
    ) -> [usize; 4] {
        let (mut used, mut word) = ([0; 4], 0);
        for number in 0..count {
            let last = number as u64;
            let choice = choices.choose(4096, |count| (word, count + 64 <= last));
            used[usize::from(choice.method.code())] += 1;
            if choice.is_timed {
                let [mine, theirs] = times(choice.method).map(Duration::from_nanos);
                let mark = choices.sent_in(choice, 4096, mine, last + 1);
                if answers(number) {
                    word = answer(mark, theirs);
                }
            }
        }
        choices.trial = None;
        used
    }

    #[test]
    fn the_method_with_the_least_time_of_both_ranks_wins() {
        for best in contiguous::available() {
            let mut choices = ShortChoices::new();
            // Alone, neither time of the best method is the least one.
            let times = |method| if method == best { [600, 600] } else { [500, 1400] };
            send(&mut choices, 20_000, times, |_| true);
            let used = send(&mut choices, 10_000, times, |_| true);
            assert!(used[usize::from(best.code())] > 9800, "{best}: {used:?}");
            let lines = report([&choices, &choices].into_iter());
            if best == Method::Vector {
                assert_eq!(lines, [""; 0]);
            } else {
                assert_eq!(lines, [format!("from 4 KiB, short messages to 2 ranks: {best}")]);
            }
        }
    }

    /// Checks that a receiver that never answers, or rarely, only delays the choice.
    #[test]
    fn answers_may_be_missing() {
        let mut choices = ShortChoices::new();
        let used = send(&mut choices, 5000, |_| [500, 500], |_| false);
        assert_eq!(used.iter().sum::<usize>(), used[0]);
        assert!(!choices.has_measured(4096));
        let times = |method| if method == Method::Vector { [1000, 1000] } else { [500, 500] };
        // One answer in four, scattered: at regular distances, all timed messages could be among the others.
        let answers =
            |number: usize| (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62 == 0;
        send(&mut choices, 200_000, times, answers);
        let several = contiguous::available().count() > 1;
        assert_eq!(choices.chosen().count(), usize::from(several));
    }

    /// Checks that looks stay within their budget if the receiver stops answering after the present way is known.
    #[test]
    fn looks_without_answers_stay_within_the_budget() {
        let mut choices = ShortChoices::new();
        let times = |method| if method == Method::Vector { [500, 500] } else { [5000, 5000] };
        let used = send(&mut choices, 40_000, times, |number| number < 10);
        let others: usize = used[1..].iter().sum();
        assert!(others < 200, "{used:?}");
    }

    #[test]
    fn an_answer_to_an_earlier_message_is_no_answer() {
        let mut choices = ShortChoices::new();
        let choice = Choice { method: Method::Vector, is_timed: true, way: 0 };
        let old = choices.sent_in(choice, 4096, Duration::ZERO, 1);
        choices.sent_in(choice, 4096, Duration::ZERO, 2);
        let word = answer(old, Duration::from_nanos(100));
        choices.choose(4096, |count| (word, count <= 1));
        assert!(choices.trial.is_some());
        choices.choose(4096, |count| (word, count <= 2));
        assert!(choices.trial.is_none_or(|trial| trial.mark > 2) && !choices.has_measured(4096));
    }

    #[test]
    fn marks_and_times_have_their_bits() {
        assert_eq!(answer(1, Duration::from_nanos(5)), 1 << 32 | 5);
        assert_eq!(answer(u64::from(u32::MAX), Duration::MAX), u64::MAX);
        let mut choices = ShortChoices::new();
        choices.mark = u32::MAX;
        let choice = Choice { method: Method::Vector, is_timed: true, way: 0 };
        assert_eq!(choices.sent(choice, LEAST, Instant::now(), 1), 1);
        assert_eq!(
            [LEAST, 2 * LEAST - 1, 2 * LEAST, 4 * LEAST, 8 * LEAST].map(class),
            [0, 0, 1, 2, 2]
        );
    }
}
