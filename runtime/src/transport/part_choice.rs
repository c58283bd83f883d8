//! Whether messages of medium length go out in parts, and with which copy method, chosen by measurement.
//!
//! The receiver chooses. `tuning.rs` compares the ways of messages that begin with an RTS. Once it has compared them and
//! chunks are the best way, this file begins to compare parts: there is one chooser (`typepack_engine::choice`) per size
//! class and distance, whose ways are parts with each copy method, and an RTS. The cost is the time from the match of a
//! message to its last byte, per byte. Only messages that arrive while no other long message is on its way count.
//!
//! The next way is picked when a message ends. The receiver tells its sender in an Allow, if the sender does
//! not know yet. The sender may have begun other messages before it hears of the pick. Such a message names the method
//! that it used, and counts neither for that method nor for the pick.
//!
//! Parts lie in the ring and chunks in the pool of the sender. The lines of the memory that was used long ago are no longer
//! in a cache, so the first messages after a change between parts and an RTS are slower than the later ones. They count
//! only once the messages have passed through as much memory as a ring has ([`WARM`]). If they take much longer than the
//! present way, the comparison does not wait for that.
//!
//! `peer.rs` and `endpoint/engine/parts.rs` call this file; `parts.rs` is the sender's side.

use super::tuning::{STREAMING, cost};
use crate::message::envelope::PARTS_MAX;
use crate::shm::pair::{CHUNK_BYTES, CHUNKS, LEVELS};
use std::time::Instant;
use typepack_engine::choice::{Chooser, Pick};
use typepack_engine::contiguous::{self, Method};

/// Number of size classes. Class `n` has the messages whose length in bytes needs `n` bits.
pub const CLASSES: usize = (usize::BITS - PARTS_MAX.leading_zeros()) as usize + 1;

/// Returns the size class of a message of `bytes` bytes, or `None` if the message is too long for parts.
pub fn class(bytes: u64) -> Option<usize> {
    (bytes <= PARTS_MAX as u64).then(|| (u64::BITS - bytes.leading_zeros()) as usize)
}

/// Number of bytes that pass through a ring or a pool before all of its memory has been used: of the largest ring, and of
/// the chunks in rotation.
const WARM: u64 = (CHUNKS * CHUNK_BYTES) as u64;

const _: () = assert!(LEVELS[LEVELS.len() - 1].payload as u64 == WARM);

/// A message that takes more than this number of times as long as the present way is much slower.
const MUCH: u64 = 2;

/// How a message begins: in parts, which are copied with this method, or with an RTS.
pub type Beginning = Option<Method>;

/// The chooser of one size class and distance.
#[derive(Debug)]
struct Entry {
    chooser: Chooser,
    ways: Vec<Beginning>,
    /// The pick for the next message.
    next: Pick,
    /// True if a message has gone the way of `next`.
    used: bool,
    /// Number of messages that go the way of `next` before one counts.
    cold: u64,
    /// Number of those messages that were much slower than the present way.
    slow: u8,
}

impl Entry {
    fn way(&self) -> Beginning {
        self.ways[usize::from(self.next.way)]
    }

    /// Picks the way of the next message, which has at least `bytes` bytes.
    fn pick(&mut self, bytes: u64) {
        let before = self.way();
        self.next = self.chooser.pick();
        if self.way().is_some() != before.is_some() {
            (self.cold, self.slow) = (WARM / bytes.max(1), 0);
        }
    }

    /// Notes the cost of a message that went the way `way`.
    fn report(&mut self, way: u8, cost: u64) {
        if self.cold == 0 {
            return self.chooser.report(way, cost);
        }
        let present = self.chooser.median(self.chooser.best());
        if present.is_some_and(|present| cost > present.saturating_mul(MUCH)) {
            self.slow += 1;
        }
        // The first message may touch its memory for the first time.
        if self.slow > 2 {
            self.cold = 0;
        }
    }
}

/// A message that is timed.
#[derive(Clone, Copy, Debug)]
struct Trial {
    start: Instant,
    /// Whether the sender is far, and the size class.
    at: (bool, usize),
    way: u8,
}

/// The choices of one rank.
#[derive(Debug, Default)]
pub struct PartChoices {
    /// The entries for near senders and for far ones.
    entries: [[Option<Box<Entry>>; CLASSES]; 2],
    trial: Option<Trial>,
    /// True if something is measured. With `TYPEPACK_TUNE=off`, an entry keeps its first way.
    measures: bool,
    /// The method that `TYPEPACK_COPY` forces.
    copy: Option<Method>,
}

impl PartChoices {
    /// Creates the choices of a rank that measures or does not, and whose copies must use the method `copy` (`None`: any
    /// method).
    pub fn new(measures: bool, copy: Option<Method>) -> Self {
        Self { measures, copy, ..Self::default() }
    }

    fn entry(&mut self, far: bool, bytes: u64) -> Option<&mut Entry> {
        self.entries[usize::from(far)][class(bytes)?].as_deref_mut()
    }

    /// Returns how the next message of `bytes` bytes should begin. `first` says with which method such messages should
    /// go out in parts if nothing has been measured yet. Without an entry and without a first method, the answer is an
    /// RTS.
    pub fn next(&mut self, far: bool, bytes: u64, first: Option<Method>) -> Beginning {
        if let Some(entry) = self.entry(far, bytes) {
            return entry.way();
        }
        let (class, first) = (class(bytes)?, first?);
        let methods: Vec<Method> = match self.copy {
            Some(method) => vec![method],
            None => contiguous::available()
                .filter(|method| bytes >= STREAMING || *method != Method::Streaming)
                .collect(),
        };
        let ways: Vec<Beginning> = methods.into_iter().map(Some).chain([None]).collect();
        let at = ways.iter().position(|way| *way == Some(first)).unwrap_or(0) as u8;
        let mut chooser = Chooser::new(ways.len(), at);
        let next = if self.measures { chooser.pick() } else { Pick { way: at, timed: false } };
        let entry = Entry { chooser, ways, next, used: false, cold: WARM / bytes.max(1), slow: 0 };
        let entry = self.entries[usize::from(far)][class].insert(Box::new(entry));
        entry.way()
    }

    /// Says that a receive has matched a message of `bytes` bytes, which has begun as `way` says. `alone` says whether no
    /// other long message is on its way to this rank.
    #[inline]
    pub fn begin(&mut self, far: bool, bytes: u64, way: Beginning, alone: bool) {
        // Two messages at a time take longer than one, so neither is timed.
        self.trial = None;
        let measures = self.measures;
        let Some(entry) = self.entry(far, bytes) else { return };
        if entry.way() != way || !measures {
            return;
        }
        entry.cold = entry.cold.saturating_sub(1);
        entry.used = entry.cold == 0;
        let Pick { way, timed } = entry.next;
        if let (true, true, Some(class)) = (alone, timed, class(bytes)) {
            self.trial = Some(Trial { start: Instant::now(), at: (far, class), way });
        }
    }

    /// Drops the trial, because a message that has nothing to do with parts has begun.
    pub fn disturb(&mut self) {
        self.trial = None;
    }

    /// Says that the last byte of the message of the latest [`PartChoices::begin`] has arrived.
    #[inline]
    pub fn end(&mut self, far: bool, bytes: u64) {
        if let Some(Trial { start, at, way }) = self.trial
            && class(bytes).is_some_and(|class| at == (far, class))
        {
            self.trial = None;
            if let Some(entry) = self.entry(far, bytes) {
                entry.report(way, cost(start.elapsed(), bytes));
            }
        }
        self.pick(far, bytes);
    }

    /// Says that all messages that began with an RTS are complete. They had `bytes` bytes.
    #[inline]
    pub fn end_of_rts(&mut self, bytes: u64) {
        let Some(Trial { start, at: (far, class), way }) = self.trial.take() else { return };
        if let Some(entry) = &mut self.entries[usize::from(far)][class] {
            entry.report(way, cost(start.elapsed(), bytes));
        }
    }

    /// Picks the way of the next message, if a message has gone the way of the last pick.
    #[inline]
    pub fn pick(&mut self, far: bool, bytes: u64) {
        if let Some(entry) = self.entry(far, bytes)
            && std::mem::take(&mut entry.used)
        {
            entry.pick(bytes);
        }
    }

    /// Returns what was measured for each size class and distance.
    pub fn measured(&self) -> Vec<MeasuredParts> {
        let rows = self.entries.iter().zip(["near", "far"]);
        let entries = rows.flat_map(|(row, distance)| {
            row.iter().enumerate().map(move |(class, entry)| (distance, class, entry.as_ref()))
        });
        let measured = |(distance, class, entry): (&str, usize, Option<&Box<Entry>>)| {
            let Entry { chooser, ways, .. } = &**entry?;
            let way = |(number, way): (u8, &Beginning)| {
                let name = match way {
                    Some(method) => format!("parts, {method}"),
                    None => "an RTS".to_owned(),
                };
                // A cost is a time per byte in 2^-20 ns.
                (name, chooser.median(number).map(|cost| cost as f64 / f64::from(1 << 20)))
            };
            Some(MeasuredParts {
                kind: format!("messages through the ring, {distance}"),
                bytes: (1 << class) >> 1,
                ways: (0..).zip(ways).map(way).collect(),
                best: usize::from(chooser.best()),
                settled: chooser.is_settled(),
            })
        };
        entries.filter_map(measured).collect()
    }

    /// Returns one line for each size class and distance whose ways have been compared.
    pub fn report(&self) -> Vec<String> {
        let settled = self.measured().into_iter().filter(|measured| measured.settled);
        let line = |MeasuredParts { kind, bytes, ways, best, .. }: MeasuredParts| {
            let of = |(name, time): &(String, Option<f64>)| {
                Some(format!("{name} {:.0} ns", (*time)? * bytes as f64))
            };
            let times = ways.iter().filter_map(of).collect::<Vec<_>>().join("; ");
            format!("from {} KiB, {kind}: {} ({times})", bytes >> 10, ways[best].0)
        };
        settled.map(line).collect()
    }
}

/// What was measured for messages of one size class and distance that can go out in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredParts {
    /// The kind of the messages.
    pub kind: String,
    /// The least number of bytes of the size class.
    pub bytes: u64,
    /// The ways, and the median of the latest times per byte in nanoseconds, or `None` if the way was not tried.
    pub ways: Vec<(String, Option<f64>)>,
    /// The index in `ways` of the present way.
    pub best: usize,
    /// True if the present way has been compared with all other ways.
    pub settled: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use typepack_engine::choice::SAMPLES;

    fn choices() -> PartChoices {
        PartChoices::new(true, None)
    }

    #[test]
    fn an_rts_stays_until_a_first_method_is_known() {
        let mut choices = choices();
        assert_eq!(choices.next(false, 65_536, None), None);
        assert_eq!(choices.next(false, PARTS_MAX as u64 + 1, Some(Method::Vector)), None);
        assert_eq!(choices.next(false, 65_536, Some(Method::Vector)), Some(Method::Vector));
        // The distance and the size class have entries of their own.
        assert_eq!(choices.next(true, 65_536, None), None);
        assert_eq!(choices.next(false, 16_384, None), None);
    }

    #[test]
    fn without_measurements_the_first_way_stays() {
        let mut choices = PartChoices::new(false, None);
        let first = choices.next(false, 65_536, Some(Method::Vector));
        for _ in 0..1000 {
            choices.begin(false, 65_536, first, true);
            choices.end(false, 65_536);
            assert_eq!(choices.next(false, 65_536, None), first);
        }
    }

    /// Checks that every way gets its turn, and that a message that goes another way than the pick does not use up
    /// the pick.
    #[test]
    fn all_ways_are_tried() {
        let mut choices = choices();
        let mut way = choices.next(false, 65_536, Some(Method::Vector));
        let mut seen = Vec::new();
        for round in 0..5000 {
            if !seen.contains(&way) {
                seen.push(way);
            }
            let late = round % 7 == 0;
            let gone = if late { Some(Method::Vector) } else { way };
            choices.begin(false, 65_536, gone, true);
            choices.end(false, 65_536);
            let next = choices.next(false, 65_536, None);
            if late && way != gone {
                assert_eq!(next, way);
            }
            way = next;
        }
        assert_eq!(seen.len(), contiguous::available().count() + 1);
    }

    /// Checks that the choice follows the costs, also when the best way becomes a slow one: the two cores have moved.
    #[test]
    fn the_choice_follows_the_costs() {
        let mut choices = choices();
        let first = choices.next(false, 65_536, Some(Method::Vector));
        assert_eq!(first, Some(Method::Vector));
        for best in [Some(Method::Pages), None, Some(Method::Vector)] {
            let entry = choices.entry(false, 65_536).expect("an entry");
            for _ in 0..20_000 {
                let Pick { way, timed } = entry.chooser.pick();
                if timed {
                    let cost = if entry.ways[usize::from(way)] == best { 100 } else { 300 };
                    entry.chooser.report(way, cost);
                }
            }
            assert_eq!(entry.ways[usize::from(entry.chooser.best())], best);
        }
        assert!(SAMPLES > 0 && choices.report().len() == 1);
    }

    #[test]
    fn only_messages_that_are_alone_are_timed() {
        let mut choices = choices();
        let way = choices.next(false, 65_536, Some(Method::Vector));
        choices.begin(false, 65_536, way, true);
        assert!(choices.trial.is_some());
        choices.disturb();
        choices.end(false, 65_536);
        let way = choices.next(false, 65_536, None);
        choices.begin(false, 65_536, way, false);
        assert!(choices.trial.is_none());
        // The end of a message of another size class does not end the trial.
        choices.begin(false, 65_536, way, true);
        choices.end(false, 16_384);
        assert!(choices.trial.is_some());
    }
}
