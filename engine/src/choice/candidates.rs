//! A choice: a chooser over the candidates of one key, which begins with what is known and notes what it finds.

use super::form::{Key, Remembered};
use super::store::Store;
use super::{Chooser, cost, ns_per_byte};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A way among which a choice chooses.
pub trait Candidate: Copy + PartialEq {
    /// Returns the number of the way in [`Form::ways`](super::Form::ways) of the form of `key`.
    fn number(self, key: Key) -> u8;
}

/// A choice: see the documentation of the module. Its [`Chooser`] is reached by dereferencing.
#[derive(Debug)]
pub struct Choice<W> {
    key: Key,
    candidates: Vec<W>,
    /// The number of the candidate with which the choice began.
    first: u8,
    chooser: Chooser,
    /// The candidate that the store has from this choice, if any.
    noted: Option<u8>,
    store: Option<&'static Store>,
}

impl<W: Candidate> Choice<W> {
    /// Creates a choice among `candidates`, which must not be empty. It begins with the way that `store` has for the
    /// key; if that is none of the candidates, with the candidate that `first`, the static order, returns; and else
    /// with the first candidate.
    pub fn new(
        key: Key,
        candidates: Vec<W>,
        first: impl FnOnce() -> Option<W>,
        store: Option<&'static Store>,
    ) -> Self {
        let known = store.and_then(|store| store.get(key)).and_then(|number| {
            candidates.iter().position(|candidate| candidate.number(key) == number)
        });
        let first = known.or_else(|| {
            let first = first()?;
            candidates.iter().position(|candidate| *candidate == first)
        });
        let first = first.unwrap_or(0) as u8;
        let chooser = Chooser::new(candidates.len(), first);
        Self { key, candidates, first, chooser, noted: None, store }
    }

    /// Returns the present way.
    #[inline]
    pub fn way(&self) -> W {
        self.at(self.chooser.best())
    }

    /// Returns the candidate with a number that the chooser has picked.
    #[inline]
    pub fn at(&self, number: u8) -> W {
        self.candidates[usize::from(number)]
    }

    /// Makes the first candidate for which `is` holds the present way, and forgets all measurements, unless it is the
    /// present way already. For users that do not measure.
    pub fn set(&mut self, is: impl Fn(&W) -> bool) {
        let number = self.candidates.iter().position(is).unwrap_or(0) as u8;
        if self.chooser.best() != number {
            self.first = number;
            self.chooser = Chooser::new(self.candidates.len(), number);
        }
    }

    /// Returns the key.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Returns whether the present way has been compared with all others, of which there is at least one.
    pub fn is_compared(&self) -> bool {
        self.candidates.len() > 1 && self.chooser.is_settled()
    }

    /// Returns whether the present way was found by measurement: it has been compared with all others, or has replaced
    /// the way with which the choice began.
    pub fn is_measured(&self) -> bool {
        self.is_compared() || self.chooser.best() != self.first
    }

    /// Takes note that a job of `bytes` bytes, done in the way `number`, has taken `time`.
    pub fn took(&mut self, number: u8, time: Duration, bytes: u64) {
        self.report(number, cost(time, bytes));
    }

    /// Records the cost of a job, as [`Chooser::report`] does. Notes the best way in the store when all candidates have
    /// been compared.
    pub fn report(&mut self, number: u8, cost: u64) {
        self.chooser.report(number, cost);
        let best = self.chooser.best();
        if self.noted != Some(best) && self.is_compared() {
            self.noted = Some(best);
            if let Some(store) = self.store {
                store.note(self.remembered());
            }
        }
    }

    /// Returns the present way as the best one of the key.
    pub fn remembered(&self) -> Remembered {
        Remembered { key: self.key, way: self.way().number(self.key) }
    }

    /// Returns what was measured.
    pub fn measured(&self) -> Measured {
        let way = |(number, way): (u8, &W)| TimedWay {
            name: self.key.form().ways[usize::from(way.number(self.key))].1.to_owned(),
            ns_per_byte: self.chooser.median(number).map(ns_per_byte),
        };
        Measured {
            kind: self.key.kind(),
            bytes: self.key.bytes(),
            ways: (0..).zip(&self.candidates).map(way).collect(),
            best: usize::from(self.chooser.best()),
            settled: self.chooser.is_settled(),
        }
    }

    /// Returns a line for people with the key, the present way, and by how much it is better than the second best one.
    pub fn line(&self) -> String {
        let best = self.chooser.best();
        let others = (0..self.chooser.ways() as u8).filter(|number| *number != best);
        let second = others.filter_map(|number| self.chooser.median(number)).min();
        let gain = match (self.chooser.median(best), second) {
            (Some(best), Some(second)) if best > 0 => {
                format!(" ({:.2} times as fast as the next)", second as f64 / best as f64)
            }
            _ => String::new(),
        };
        format!("{}{gain}", self.remembered())
    }
}

impl<W> Deref for Choice<W> {
    type Target = Chooser;

    #[inline]
    fn deref(&self) -> &Chooser {
        &self.chooser
    }
}

impl<W> DerefMut for Choice<W> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Chooser {
        &mut self.chooser
    }
}

/// What was measured about the jobs of one kind and size class, which can be done in several ways.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Measured {
    /// The kind of the jobs. For messages: where and how the data lies at the sender and at the receiver, and the
    /// distance of the two ranks. For collective calls: the operation and the number of ranks.
    pub kind: String,
    /// The length of the shortest job of the size class in bytes; for collective calls, of each rank's data. The first
    /// size class also has all shorter jobs, and the last one all longer ones.
    pub bytes: u64,
    /// The ways that compete.
    pub ways: Vec<TimedWay>,
    /// The index in `ways` of the present way.
    pub best: usize,
    /// True if the present way has been compared with all other ways that work.
    pub settled: bool,
}

/// A way, and the time that jobs took.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimedWay {
    /// The name of the way. For messages: the protocol and the copy method.
    pub name: String,
    /// The median of the latest times in nanoseconds per byte; for messages, from the match to the last byte. `None` if
    /// no job has gone this way yet.
    pub ns_per_byte: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Form, SAMPLES, Sizes};

    static FORM: Form = Form {
        name: "jobs",
        title: "jobs",
        fields: &[&[("near", ", near"), ("far", ", far")]],
        sizes: Sizes { first: 1024, step: 1, count: 4 },
        ways: &[("a", "way a"), ("b", "way b"), ("c", "way c")],
    };

    impl Candidate for char {
        fn number(self, _: Key) -> u8 {
            self as u8 - b'a'
        }
    }

    fn choice(first: char, store: &'static Store) -> Choice<char> {
        Choice::new(FORM.key([1], 5000), vec!['c', 'b'], || Some(first), Some(store))
    }

    fn compare(choice: &mut Choice<char>, best: char) {
        for _ in 0..200 * SAMPLES {
            let pick = choice.pick();
            if pick.timed {
                let cost = if choice.at(pick.way) == best { 1 << 20 } else { 3 << 19 };
                choice.report(pick.way, cost);
            }
        }
    }

    #[test]
    fn a_choice_begins_with_what_is_known_and_notes_what_it_finds() {
        let store: &'static Store = Box::leak(Box::default());
        let remembered = |number| Remembered { key: FORM.key([1], 4096), way: number };
        assert_eq!((choice('b', store).way(), choice('a', store).way()), ('b', 'c'));
        // The file names a way that is no candidate here.
        store.know(&[remembered(0)]);
        assert_eq!(choice('b', store).way(), 'b');
        store.know(&[remembered(2)]);
        let mut one = choice('b', store);
        assert_eq!((one.way(), one.is_measured()), ('c', false));
        compare(&mut one, 'b');
        assert!(one.is_compared() && one.is_measured() && one.way() == 'b');
        assert_eq!(
            (store.remembered(), store.earlier()),
            (vec![remembered(1)], vec![remembered(2)])
        );
        assert_eq!(choice('c', store).way(), 'b');
        assert_eq!(one.line(), "from 4 KiB, jobs, far: way b (1.50 times as fast as the next)");
        let measured = one.measured();
        assert_eq!((measured.kind.as_str(), measured.bytes), ("jobs, far", 4096));
        let ways: Vec<_> = measured.ways.iter().map(|w| (&*w.name, w.ns_per_byte)).collect();
        assert_eq!(ways, [("way c", Some(1.5)), ("way b", Some(1.0))]);
        assert!(measured.settled && measured.best == 1);
    }

    #[test]
    fn a_single_candidate_is_never_compared() {
        let store: &'static Store = Box::leak(Box::default());
        let mut one = Choice::new(FORM.key([0], 0), vec!['a'], || None, Some(store));
        compare(&mut one, 'a');
        assert!(!one.is_compared() && !one.is_measured() && store.remembered().is_empty());
    }
}
