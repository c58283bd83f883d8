//! Whether messages of medium length go out in parts, and with which copy method, chosen by measurement.
//!
//! The receiver chooses. `tuning.rs` compares the ways of messages that begin with an RTS. Once it has compared them
//! and chunks are the best way, this file begins to compare parts. (If earlier jobs have compared parts, it begins at
//! once, with the way that was the best one.) There is one chooser (`typepack_engine::choice`) per size class and
//! distance, whose ways are parts with each copy method, and an RTS. The cost is the time from the match of a message
//! to its last byte, per byte. Only messages that arrive while no other long message is on its way count.
//!
//! The next way is picked when a message ends. The receiver tells its sender in an Allow, if the sender does not know
//! yet. The sender may have begun other messages before it hears of the pick. Such a message names the method that it
//! used, and counts neither for that method nor for the pick. A way that is only looked at ends without a result after
//! some messages that could not be timed ([`PATIENCE`]): no receive had matched them, or other messages came at the
//! same time.
//!
//! Parts lie in the ring and chunks in the pool of the sender. The lines of the memory that was used long ago are no
//! longer in a cache, so the first messages after a change between parts and an RTS are slower than the later ones.
//! They count only once the messages have passed through as much memory as a ring has ([`WARM`]); with several senders,
//! the messages of all of them are taken together. If they take much longer than the present way, the comparison does
//! not wait for that. The chooser's budget pays for these messages, too.
//!
//! `peer.rs` and `endpoint/engine/parts.rs` call this file; `parts.rs` is the sender's side.

use super::learnt::Learnt;
use super::tuning::{STREAMING, cost};
use crate::message::envelope::PARTS_MAX;
use crate::shm::pair::{CHUNK_BYTES, CHUNKS, LEVELS};
use std::time::Instant;
use typepack_engine::choice::{Chooser, Pick, SAMPLES};
use typepack_engine::contiguous::{self, Method};

/// Number of size classes. Class `n` has the messages whose length in bytes needs `n` bits.
pub const CLASSES: usize = (usize::BITS - PARTS_MAX.leading_zeros()) as usize + 1;

/// Returns the size class of a message of `bytes` bytes, or `None` if the message is too long for parts.
pub fn class(bytes: u64) -> Option<usize> {
    (bytes <= PARTS_MAX as u64).then(|| (u64::BITS - bytes.leading_zeros()) as usize)
}

/// Number of bytes that pass through a ring or a pool before all of its memory has been used: of the largest ring, and
/// of the chunks in rotation.
const WARM: u64 = (CHUNKS * CHUNK_BYTES) as u64;

const _: () = assert!(LEVELS[LEVELS.len() - 1].payload as u64 == WARM);

/// A message that takes more than this number of times as long as the present way is much slower.
const MUCH: u64 = 2;

/// Number of messages that could not be timed after which a look at a way ends without a result.
const PATIENCE: u8 = 16;

/// While a look must wait for its budget, one message in this number of the present way is timed.
const EVERY: u64 = 8;

/// How a message begins: in parts, which are copied with this method, or with an RTS.
pub type Beginning = Option<Method>;

/// Says for people how a message begins.
pub fn name(beginning: Beginning) -> String {
    match beginning {
        Some(method) => format!("parts, {method}"),
        None => "an RTS".to_owned(),
    }
}

/// Says for people which messages this file is about.
pub fn kind(far: bool) -> &'static str {
    if far { "messages through the ring, far" } else { "messages through the ring, near" }
}

/// Returns the least number of bytes of a size class.
fn least(class: usize) -> u64 {
    (1 << class) >> 1
}

/// Returns what was learnt about each distance and size class. `of` returns the best beginning if it is known.
fn all(of: impl Fn(bool, usize) -> Option<Beginning>) -> impl Iterator<Item = Learnt> {
    let keys =
        [false, true].into_iter().flat_map(|far| (0..CLASSES).map(move |class| (far, class)));
    keys.filter_map(move |(far, class)| {
        let beginning = of(far, class)?;
        Some(Learnt::Parts { bytes: least(class), far, beginning })
    })
}

/// The chooser of one size class and distance.
#[derive(Debug)]
struct Entry {
    chooser: Chooser,
    ways: Vec<Beginning>,
    /// The pick for the next message.
    next: Pick,
    /// True if a message has gone the way of `next`, and counts.
    used: bool,
    /// Number of messages that go the way of `next` before one counts.
    cold: u64,
    /// Number of those messages that were much slower than the present way.
    slow: u8,
    /// After messages that did not count: number of messages that go the same way before the next pick.
    stay: usize,
    /// Number of messages of this look that could not be timed.
    missed: u8,
}

impl Entry {
    fn way(&self) -> Beginning {
        self.ways[usize::from(self.next.way)]
    }

    /// Returns whether `next` is only looked at.
    fn is_look(&self) -> bool {
        self.next.way != self.chooser.best()
    }

    /// Goes the way of `next` from now on. Messages have at least `bytes` bytes.
    fn turn(&mut self, next: Pick, bytes: u64) {
        let before = self.way();
        (self.next, self.missed, self.stay) = (next, 0, 0);
        if self.way().is_some() != before.is_some() {
            (self.cold, self.slow) = (WARM / bytes.max(1), 0);
            if self.is_look() {
                self.stay = SAMPLES;
            }
        }
    }

    /// Picks the way of the next message, which has at least `bytes` bytes.
    fn pick(&mut self, bytes: u64) {
        let mut next = self.chooser.pick();
        let best = self.chooser.best();
        let changes = self.ways[usize::from(next.way)].is_some() != self.way().is_some();
        let jobs = WARM / bytes.max(1) + SAMPLES as u64;
        if next.way != best && changes && !self.chooser.affords(next.way, jobs) {
            next = Pick { way: best, timed: self.chooser.jobs().is_multiple_of(EVERY) };
            if !next.timed {
                self.chooser.charge(best, self.chooser.median(best).unwrap_or(0));
            }
        }
        self.turn(next, bytes);
    }

    /// Notes the cost of a message that went the way `way`. `counts` says whether its memory was warm.
    fn report(&mut self, way: u8, cost: u64, counts: bool) {
        let present = self.chooser.median(self.chooser.best());
        let much = |cost: u64| present.is_some_and(|present| cost > present.saturating_mul(MUCH));
        if counts {
            self.chooser.report(way, cost);
            if self.chooser.median(way).is_some_and(much) {
                self.stay = 0;
            }
            return;
        }
        self.chooser.charge(way, cost);
        self.slow += u8::from(much(cost));
        // The first message may touch its memory for the first time.
        if self.slow > 2 {
            (self.cold, self.stay) = (0, 0);
        }
    }

    /// Picks the way of the next message, if a message has gone the way of the last pick.
    fn go_on(&mut self, bytes: u64) {
        if std::mem::take(&mut self.used) {
            match self.stay.checked_sub(1) {
                Some(left) if left > 0 => self.stay = left,
                _ => self.pick(bytes),
            }
        }
    }

    /// Notes that a message could not be timed.
    fn miss(&mut self, bytes: u64) {
        if self.is_look() {
            self.missed += 1;
            if self.missed >= PATIENCE {
                self.turn(Pick { way: self.chooser.best(), timed: false }, bytes);
            }
        }
    }
}

/// A message that is timed.
#[derive(Clone, Copy, Debug)]
struct Trial {
    start: Instant,
    /// The sender of a message in parts, or `None` for a message that began with an RTS.
    from: Option<usize>,
    /// Whether the sender is far, and the size class.
    at: (bool, usize),
    way: u8,
    counts: bool,
}

/// The choices of one rank.
#[derive(Debug, Default)]
pub struct PartChoices {
    /// The entries for near senders and for far ones.
    entries: [[Option<Box<Entry>>; CLASSES]; 2],
    trial: Option<Trial>,
    /// The ranks whose messages in parts are arriving, one bit each. Rings that have room for parts exist in jobs of a
    /// few ranks only.
    arriving: u64,
    /// True if something is measured. With `TYPEPACK_TUNE=off`, an entry keeps its first way.
    measures: bool,
    /// The method that `TYPEPACK_COPY` forces.
    copy: Option<Method>,
    /// What earlier jobs have learnt, for near senders and for far ones.
    earlier: [[Option<Beginning>; CLASSES]; 2],
}

impl PartChoices {
    /// Creates the choices of a rank that measures or does not, and whose copies must use the method `copy` (`None`:
    /// any method).
    pub fn new(measures: bool, copy: Option<Method>) -> Self {
        Self { measures, copy, ..Self::default() }
    }

    /// Uses what earlier jobs have learnt about the size class of messages of `bytes` bytes.
    pub fn know(&mut self, far: bool, bytes: u64, beginning: Beginning) {
        if let Some(class) = class(bytes) {
            self.earlier[usize::from(far)][class] = Some(beginning);
        }
    }

    /// Returns what this job and earlier jobs have learnt.
    pub fn learnt(&self) -> impl Iterator<Item = Learnt> {
        all(|far, class| {
            let entry = self.entries[usize::from(far)][class].as_ref();
            let settled = entry.filter(|entry| entry.chooser.is_settled() && entry.ways.len() > 1);
            let best = settled.map(|entry| entry.ways[usize::from(entry.chooser.best())]);
            best.or(self.earlier[usize::from(far)][class])
        })
    }

    /// Returns what earlier jobs have learnt.
    pub fn loaded(&self) -> impl Iterator<Item = Learnt> {
        all(|far, class| self.earlier[usize::from(far)][class])
    }

    fn entry(&mut self, far: bool, bytes: u64) -> Option<&mut Entry> {
        self.entries[usize::from(far)][class(bytes)?].as_deref_mut()
    }

    /// Returns how the next message of `bytes` bytes should begin. `first` says with which method such messages should
    /// go out in parts if nothing has been measured yet, neither in this job nor in earlier ones. Without an entry and
    /// without a first method, the answer is an RTS.
    pub fn next(&mut self, far: bool, bytes: u64, first: Option<Method>) -> Beginning {
        if let Some(entry) = self.entry(far, bytes) {
            return entry.way();
        }
        let class = class(bytes)?;
        let earlier = self.earlier[usize::from(far)][class];
        if earlier.is_none() && first.is_none() {
            return None;
        }
        let methods: Vec<Method> = match self.copy {
            Some(method) => vec![method],
            None => contiguous::available()
                .filter(|method| bytes >= STREAMING || *method != Method::Streaming)
                .collect(),
        };
        let ways: Vec<Beginning> = methods.into_iter().map(Some).chain([None]).collect();
        let place = |first: Beginning| ways.iter().position(|way| *way == first);
        let at = earlier.and_then(place).or_else(|| place(Some(first?))).unwrap_or(0) as u8;
        let mut chooser = Chooser::new(ways.len(), at);
        let next = if self.measures { chooser.pick() } else { Pick { way: at, timed: false } };
        let entry = Entry {
            chooser,
            ways,
            next,
            used: false,
            cold: WARM / bytes.max(1),
            slow: 0,
            stay: 0,
            missed: 0,
        };
        let entry = self.entries[usize::from(far)][class].insert(Box::new(entry));
        entry.way()
    }

    /// Says that a receive has matched a message of `bytes` bytes from rank `from`, whose parts are copied with
    /// `method`. `idle` says whether no message that began with an RTS is on its way to this rank.
    #[inline]
    pub fn begin(&mut self, from: usize, far: bool, bytes: u64, method: Method, idle: bool) {
        let bit = 1u64.checked_shl(from as u32).unwrap_or(0);
        let alone = idle && self.arriving & !bit == 0;
        self.arriving |= bit;
        self.start(Some(from), far, bytes, Some(method), alone);
    }

    /// Says that a receive has matched a message of `bytes` bytes that began with an RTS and could go out in parts.
    /// `alone` says whether no other such message is on its way to this rank.
    pub fn begin_rts(&mut self, far: bool, bytes: u64, alone: bool) {
        let alone = alone && self.arriving == 0;
        self.start(None, far, bytes, None, alone);
    }

    fn start(&mut self, from: Option<usize>, far: bool, bytes: u64, way: Beginning, alone: bool) {
        // Two messages at a time take longer than one, so neither is timed.
        self.trial = None;
        if !self.measures {
            return;
        }
        let Some(entry) = self.entry(far, bytes).filter(|entry| entry.way() == way) else { return };
        if !alone {
            return entry.miss(bytes);
        }
        let counts = entry.cold == 0;
        entry.cold = entry.cold.saturating_sub(1);
        entry.used = counts;
        let Pick { way, timed } = entry.next;
        if let (true, Some(class)) = (timed, class(bytes)) {
            let at = (far, class);
            self.trial = Some(Trial { start: Instant::now(), from, at, way, counts });
        }
    }

    /// Drops the trial, because a message that has nothing to do with parts has begun.
    pub fn disturb(&mut self) {
        self.trial = None;
    }

    /// Says that the last part of a message from rank `from` has arrived, which a receive had matched.
    #[inline]
    pub fn end(&mut self, from: usize, far: bool, bytes: u64) {
        self.arriving &= !1u64.checked_shl(from as u32).unwrap_or(0);
        let of_this = |trial: &Trial| trial.from == Some(from);
        if let Some(Trial { start, way, counts, .. }) = self.trial.filter(of_this) {
            self.trial = None;
            if let Some(entry) = self.entry(far, bytes) {
                entry.report(way, cost(start.elapsed(), bytes), counts);
            }
        }
        self.go_on(far, bytes);
    }

    /// Says that all messages that began with an RTS are complete. They had `bytes` bytes.
    #[inline]
    pub fn end_of_rts(&mut self, bytes: u64) {
        let of_rts = |trial: &Trial| trial.from.is_none();
        let Some(trial) = self.trial.filter(of_rts) else { return };
        self.trial = None;
        let (far, class) = trial.at;
        if let Some(entry) = &mut self.entries[usize::from(far)][class] {
            entry.report(trial.way, cost(trial.start.elapsed(), bytes), trial.counts);
            entry.go_on(bytes);
        }
    }

    /// Says that a message in parts has arrived as a whole before a receive matched it.
    pub fn unmatched(&mut self, far: bool, bytes: u64, method: Method) {
        let measures = self.measures;
        if let Some(entry) = self.entry(far, bytes)
            && measures
            && entry.way() == Some(method)
        {
            entry.miss(bytes);
        }
    }

    /// Picks the way of the next message, if a message has gone the way of the last pick and is not being timed.
    #[inline]
    pub fn go_on(&mut self, far: bool, bytes: u64) {
        if self.trial.is_none()
            && let Some(entry) = self.entry(far, bytes)
        {
            entry.go_on(bytes);
        }
    }

    /// Returns what was measured for each size class and distance.
    pub fn measured(&self) -> Vec<MeasuredParts> {
        let rows = self.entries.iter().zip([false, true]);
        let entries = rows.flat_map(|(row, far)| {
            row.iter().enumerate().map(move |(class, entry)| (far, class, entry.as_ref()))
        });
        let measured = |(far, class, entry): (bool, usize, Option<&Box<Entry>>)| {
            let Entry { chooser, ways, .. } = &**entry?;
            let way = |(number, way): (u8, &Beginning)| {
                // A cost is a time per byte in 2^-20 ns.
                (name(*way), chooser.median(number).map(|cost| cost as f64 / f64::from(1 << 20)))
            };
            Some(MeasuredParts {
                kind: kind(far).to_owned(),
                bytes: least(class),
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

    /// Checks that a job begins with what earlier jobs have learnt, before it has compared anything, and keeps it.
    #[test]
    fn what_was_learnt_comes_first_and_is_kept() {
        for beginning in [None, Some(Method::Pages)] {
            let mut choices = choices();
            choices.know(true, 65_536, beginning);
            choices.know(true, PARTS_MAX as u64 + 1, beginning);
            assert_eq!(choices.next(true, 65_536, None), beginning);
            assert_eq!(choices.next(false, 65_536, None), None);
            assert_eq!(choices.next(false, 65_536, Some(Method::Vector)), Some(Method::Vector));
            let learnt = [Learnt::Parts { bytes: 65_536, far: true, beginning }];
            assert_eq!(choices.learnt().collect::<Vec<_>>(), learnt);
            assert_eq!(choices.loaded().collect::<Vec<_>>(), learnt);
        }
        // A file may name a method that `TYPEPACK_COPY` excludes.
        let mut choices = PartChoices::new(true, Some(Method::Vector));
        choices.know(false, 65_536, Some(Method::Pages));
        assert_eq!(choices.next(false, 65_536, None), Some(Method::Vector));
    }

    #[test]
    fn without_measurements_the_first_way_stays() {
        let mut choices = PartChoices::new(false, None);
        let first = choices.next(false, 65_536, Some(Method::Vector));
        for _ in 0..1000 {
            choices.begin(1, false, 65_536, Method::Vector, true);
            choices.end(1, false, 65_536);
            assert_eq!(choices.next(false, 65_536, None), first);
        }
    }

    /// Sends a message in the way that the receiver wants.
    fn message(choices: &mut PartChoices, from: usize) -> Beginning {
        let way = choices.next(false, 65_536, None);
        match way {
            Some(method) => {
                choices.begin(from, false, 65_536, method, true);
                choices.end(from, false, 65_536);
            }
            None => {
                choices.begin_rts(false, 65_536, true);
                choices.go_on(false, 65_536);
                choices.end_of_rts(65_536);
            }
        }
        way
    }

    /// Checks that every way gets its turn, and that a message that goes another way than the pick does not use up
    /// the pick.
    #[test]
    fn all_ways_are_tried() {
        let mut choices = choices();
        let first = choices.next(false, 65_536, Some(Method::Vector));
        assert_eq!(first, Some(Method::Vector));
        let mut seen = Vec::new();
        for round in 0..50_000 {
            let way = choices.next(false, 65_536, None);
            if round % 7 == 0 && way != first {
                choices.begin(1, false, 65_536, Method::Vector, true);
                choices.end(1, false, 65_536);
                assert_eq!(choices.next(false, 65_536, None), way);
            }
            message(&mut choices, 1);
            if !seen.contains(&way) {
                seen.push(way);
            }
        }
        assert_eq!(seen.len(), contiguous::available().count() + 1, "{seen:?}");
    }

    /// Drives an entry with costs instead of times, as `begin` and `end` would.
    fn drive(entry: &mut Entry, messages: usize, cost: impl Fn(Beginning) -> u64) -> u64 {
        let mut sum = 0;
        for _ in 0..messages {
            let (way, Pick { way: number, timed }) = (entry.way(), entry.next);
            let counts = entry.cold == 0;
            entry.cold = entry.cold.saturating_sub(1);
            entry.used = counts;
            sum += cost(way);
            if timed {
                entry.report(number, cost(way), counts);
            }
            entry.go_on(65_536);
        }
        sum
    }

    /// Checks that the choice follows the costs, also when the best way becomes a slow one because the two cores have
    /// moved, and that looks stay within the budget, with the messages that do not count.
    #[test]
    fn the_choice_follows_the_costs_within_the_budget() {
        for slow in [120, 150, 300, 2000] {
            let mut choices = choices();
            choices.next(false, 65_536, Some(Method::Vector));
            let entry = choices.entry(false, 65_536).expect("an entry");
            for best in [Some(Method::Pages), None, Some(Method::Vector)] {
                let cost = |way: Beginning| if way == best { 100 } else { slow };
                drive(entry, 40_000, cost);
                assert_eq!(entry.ways[usize::from(entry.chooser.best())], best, "{slow}");
                let sum = drive(entry, 40_000, cost);
                assert!(sum <= 4_000_000 * 107 / 100, "{slow}: {sum}");
            }
            assert_eq!(choices.report().len(), 1);
            let beginning = Some(Method::Vector);
            let learnt = [Learnt::Parts { bytes: 65_536, far: false, beginning }];
            assert_eq!(choices.learnt().collect::<Vec<_>>(), learnt);
            assert_eq!(choices.loaded().count(), 0);
        }
    }

    #[test]
    fn only_messages_that_are_alone_are_timed() {
        let mut choices = choices();
        choices.next(false, 65_536, Some(Method::Vector));
        let begin = |choices: &mut PartChoices, from| {
            choices.begin(from, false, 65_536, Method::Vector, true);
        };
        begin(&mut choices, 1);
        assert!(choices.trial.is_some());
        // The end of a message of another rank does not end the trial, and its begin drops it.
        choices.end(2, false, 65_536);
        assert!(choices.trial.is_some());
        begin(&mut choices, 2);
        assert!(choices.trial.is_none());
        choices.end(1, false, 65_536);
        choices.end(2, false, 65_536);
        begin(&mut choices, 2);
        assert!(choices.trial.is_some() && choices.arriving == 1 << 2);
        choices.disturb();
        choices.end(2, false, 65_536);
        choices.begin(1, false, 65_536, Method::Vector, false);
        assert!(choices.trial.is_none());
    }

    /// Checks that a look ends if its messages cannot be timed: no receive matches them in time, or they overlap.
    #[test]
    fn a_look_without_a_result_ends() {
        for unmatched in [true, false] {
            let mut choices = choices();
            choices.next(false, 65_536, Some(Method::Vector));
            let mut way = message(&mut choices, 1);
            while way == Some(Method::Vector) {
                message(&mut choices, 1);
                way = choices.next(false, 65_536, None);
            }
            for _ in 0..PATIENCE {
                match way {
                    Some(method) if unmatched => choices.unmatched(false, 65_536, method),
                    Some(method) => choices.begin(1, false, 65_536, method, false),
                    None => choices.begin_rts(false, 65_536, false),
                }
            }
            let entry = choices.entry(false, 65_536).expect("an entry");
            assert!(!entry.is_look());
        }
    }
}
