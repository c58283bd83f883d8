//! Whether messages of medium length go out in fragments, and with which copy method, chosen by measurement.
//!
//! The receiver chooses. `tuning.rs` compares the ways of messages that begin with an RTS. Once it has compared them
//! and chunks are the best way, this file begins to compare fragments. (If earlier jobs have compared fragments, it
//! begins at once, with the way that was the best one.) There is one chooser (`typepack_engine::choice`) per size class
//! and distance, whose ways are fragments with each copy method, and an RTS. The cost is the time from the match of a
//! message to its last byte, per byte. Only messages that arrive while no other long message is on its way count.
//!
//! The next way is picked when a message ends. The receiver tells its sender in an Allow, if the sender does not know
//! yet. The sender may have begun other messages before it hears of the pick. Such a message names the method that it
//! used, and counts neither for that method nor for the pick. A way that is only looked at ends without a result after
//! some messages that could not be timed ([`PATIENCE`]): no receive had matched them, or other messages came at the
//! same time.
//!
//! Fragments lie in the ring and chunks in the pool of the sender. The lines of the memory that was used long ago are
//! no longer in a cache, so the first messages after a change between fragments and an RTS are slower than the later
//! ones. They count only once the messages have passed through as much memory as a ring has ([`WARM`]); with several
//! senders, the messages of all of them are taken together. If they take much longer than the present way, the
//! comparison does not wait for that. The chooser's budget pays for these messages, too.
//!
//! `peer.rs` and `endpoint/engine/fragments.rs` call this file; `fragments.rs` is the sender's side.

use super::tuning::STREAMING;
use crate::message::envelope::FRAGMENTED_MAX;
use crate::shm::pair::{CHUNK_BYTES, CHUNKS, LEVELS};
use std::time::Instant;
use typepack_engine::choice::{Choice, Form, Key, Measured, Pick, SAMPLES, Sizes, Store, cost};
use typepack_engine::contiguous::{self, Method};

/// Number of size classes.
pub const CLASSES: usize = (FRAGMENTED_MAX.ilog2() - 10) as usize + 1;

/// What the choice depends on, and the ways.
pub static FORM: Form = Form {
    name: "parts",
    title: "messages through the ring",
    fields: &[&[("near", ", near"), ("far", ", far")]],
    sizes: Sizes { first: 1 << 10, step: 1, count: CLASSES },
    ways: &[
        ("vector", "parts, vector"),
        ("repeat", "parts, repeat"),
        ("streaming", "parts, streaming"),
        ("pages", "parts, pages"),
        ("rts", "an RTS"),
    ],
};

/// Returns the size class of a message of `bytes` bytes, or `None` if the message is too long for fragments.
#[inline]
pub fn class(bytes: u64) -> Option<usize> {
    (bytes <= FRAGMENTED_MAX as u64).then(|| FORM.sizes.class(bytes))
}

/// Returns the key of a message of `bytes` bytes, or `None` if the message is too long for fragments.
fn key(far: bool, bytes: u64) -> Option<Key> {
    class(bytes).map(|_| FORM.key([usize::from(far)], bytes))
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

/// How a message begins: in fragments, which are copied with this method, or with an RTS.
pub type Beginning = Option<Method>;

/// The choice of one size class and distance.
#[derive(Debug)]
struct Entry {
    choice: Choice<Beginning>,
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
        self.choice.at(self.next.way)
    }

    /// Returns whether `next` is only looked at.
    fn is_look(&self) -> bool {
        self.next.way != self.choice.best()
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
        let mut next = self.choice.pick();
        let best = self.choice.best();
        let changes = self.choice.at(next.way).is_some() != self.way().is_some();
        let jobs = WARM / bytes.max(1) + SAMPLES as u64;
        if next.way != best && changes && !self.choice.affords(next.way, jobs) {
            next = Pick { way: best, timed: self.choice.jobs().is_multiple_of(EVERY) };
            if !next.timed {
                let median = self.choice.median(best).unwrap_or(0);
                self.choice.charge(best, median);
            }
        }
        self.turn(next, bytes);
    }

    /// Notes the cost of a message that went the way `way`. `counts` says whether its memory was warm.
    fn report(&mut self, way: u8, cost: u64, counts: bool) {
        let present = self.choice.median(self.choice.best());
        let much = |cost: u64| present.is_some_and(|present| cost > present.saturating_mul(MUCH));
        if counts {
            self.choice.report(way, cost);
            if self.choice.median(way).is_some_and(much) {
                self.stay = 0;
            }
            return;
        }
        self.choice.charge(way, cost);
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
                self.turn(Pick { way: self.choice.best(), timed: false }, bytes);
            }
        }
    }
}

/// A message that is timed.
#[derive(Clone, Copy, Debug)]
struct Trial {
    start: Instant,
    /// The sender of a message in fragments, or `None` for a message that began with an RTS.
    from: Option<usize>,
    at: Key,
    way: u8,
    counts: bool,
}

/// The choices of one rank.
#[derive(Debug, Default)]
pub struct FragmentChoices {
    /// One entry per key.
    entries: [Option<Box<Entry>>; 2 * CLASSES],
    trial: Option<Trial>,
    /// The ranks whose messages in fragments are arriving, one bit each. Rings that have room for fragments exist in
    /// jobs of a few ranks only.
    arriving: u64,
    /// True if something is measured. With `TYPEPACK_TUNE=off`, an entry keeps its way until there is another first
    /// method.
    measures: bool,
    /// The method that `TYPEPACK_COPY` forces.
    copy: Option<Method>,
    /// What the process knows and learns.
    store: Option<&'static Store>,
}

impl FragmentChoices {
    /// Creates the choices of a rank that measures or does not, and whose copies must use the method `copy` (`None`:
    /// any method). `store` has what the process knows.
    pub fn new(measures: bool, copy: Option<Method>, store: Option<&'static Store>) -> Self {
        let store = store.filter(|_| measures);
        Self { measures, copy, store, ..Self::default() }
    }

    /// Returns whether something is measured.
    #[cfg(test)]
    pub(super) fn measures(&self) -> bool {
        self.measures
    }

    fn entry(&mut self, far: bool, bytes: u64) -> Option<&mut Entry> {
        self.entries[key(far, bytes)?.number()].as_deref_mut()
    }

    /// Returns how the next message of `bytes` bytes should begin. `first` says with which method such messages should
    /// go out in fragments if nothing has been measured yet, neither in this job nor in earlier ones. Without an entry
    /// and without a first method, the answer is an RTS.
    pub fn next(&mut self, far: bool, bytes: u64, first: Option<Method>) -> Beginning {
        if !self.measures && first.is_some() {
            // The first method may be another one than that of the last call.
            self.entries[key(far, bytes)?.number()] = None;
        }
        if let Some(entry) = self.entry(far, bytes) {
            return entry.way();
        }
        let key = key(far, bytes)?;
        if first.is_none() && self.store.is_none_or(|store| store.get(key).is_none()) {
            return None;
        }
        let methods: Vec<Method> = match self.copy {
            Some(method) => vec![method],
            None => contiguous::available()
                .filter(|method| bytes >= STREAMING || *method != Method::Streaming)
                .collect(),
        };
        let ways: Vec<Beginning> = methods.into_iter().map(Some).chain([None]).collect();
        let mut choice = Choice::new(key, ways, || first.map(Some), self.store);
        let at = choice.best();
        let next = if self.measures { choice.pick() } else { Pick { way: at, timed: false } };
        let entry = Entry {
            choice,
            next,
            used: false,
            cold: WARM / bytes.max(1),
            slow: 0,
            stay: 0,
            missed: 0,
        };
        let entry = self.entries[key.number()].insert(Box::new(entry));
        entry.way()
    }

    /// Says that a receive has matched a message of `bytes` bytes from rank `from`, whose fragments are copied with
    /// `method`. `idle` says whether no message that began with an RTS is on its way to this rank.
    #[inline]
    pub fn begin(&mut self, from: usize, far: bool, bytes: u64, method: Method, idle: bool) {
        let bit = 1u64.checked_shl(from as u32).unwrap_or(0);
        let alone = idle && self.arriving & !bit == 0;
        self.arriving |= bit;
        self.start(Some(from), far, bytes, Some(method), alone);
    }

    /// Says that a receive has matched a message of `bytes` bytes that began with an RTS and could go out in fragments.
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
        if let (true, Some(at)) = (timed, key(far, bytes)) {
            self.trial = Some(Trial { start: Instant::now(), from, at, way, counts });
        }
    }

    /// Drops the trial, because a message that has nothing to do with fragments has begun.
    pub fn disturb(&mut self) {
        self.trial = None;
    }

    /// Says that the last fragment of a message from rank `from` has arrived, which a receive had matched.
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
        if let Some(entry) = &mut self.entries[trial.at.number()] {
            entry.report(trial.way, cost(trial.start.elapsed(), bytes), trial.counts);
            entry.go_on(bytes);
        }
    }

    /// Says that a message in fragments has arrived as a whole before a receive matched it.
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

    fn choices(&self) -> impl Iterator<Item = &Choice<Beginning>> {
        self.entries.iter().flatten().map(|entry| &entry.choice)
    }

    /// Returns what was measured for each size class and distance.
    pub fn measured(&self) -> impl Iterator<Item = Measured> {
        self.choices().map(Choice::measured)
    }

    /// Returns one line for each size class and distance whose ways have been compared.
    pub fn report(&self) -> impl Iterator<Item = String> {
        self.choices().filter(|choice| choice.is_compared()).map(Choice::line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use typepack_engine::choice::{Candidate, Remembered};

    fn choices() -> FragmentChoices {
        FragmentChoices::new(true, None, None)
    }

    #[test]
    fn an_rts_stays_until_a_first_method_is_known() {
        let mut choices = choices();
        assert_eq!(choices.next(false, 65_536, None), None);
        assert_eq!(choices.next(false, FRAGMENTED_MAX as u64 + 1, Some(Method::Vector)), None);
        assert_eq!(choices.next(false, 65_536, Some(Method::Vector)), Some(Method::Vector));
        // The distance and the size class have entries of their own.
        assert_eq!(choices.next(true, 65_536, None), None);
        assert_eq!(choices.next(false, 16_384, None), None);
    }

    /// Checks that a job begins with what earlier jobs have remembered, before it has compared anything, and keeps it.
    #[test]
    fn what_is_remembered_comes_first_and_is_kept() {
        for beginning in [None, Some(Method::Pages)] {
            let store: &'static Store = Box::leak(Box::default());
            let at = |far| key(far, 65_536).expect("short enough for parts");
            let remembered = Remembered { key: at(true), way: beginning.number(at(true)) };
            store.know(&[remembered]);
            let mut choices = FragmentChoices::new(true, None, Some(store));
            assert_eq!(choices.next(true, 65_536, None), beginning);
            assert_eq!(choices.next(false, 65_536, None), None);
            assert_eq!(choices.next(false, 65_536, Some(Method::Vector)), Some(Method::Vector));
            assert_eq!(store.remembered(), [remembered]);
            // A file may name a method that `TYPEPACK_COPY` excludes.
            store.know(&[Remembered { key: at(false), way: Method::Pages.code() }]);
            let mut choices = FragmentChoices::new(true, Some(Method::Vector), Some(store));
            assert_eq!(choices.next(false, 65_536, None), Some(Method::Vector));
        }
    }

    #[test]
    fn without_measurements_the_first_way_stays() {
        let mut choices = FragmentChoices::new(false, None, None);
        let first = choices.next(false, 65_536, Some(Method::Vector));
        for _ in 0..1000 {
            choices.begin(1, false, 65_536, Method::Vector, true);
            choices.end(1, false, 65_536);
            assert_eq!(choices.next(false, 65_536, None), first);
        }
        // Another chooser may have measured meanwhile.
        let other = Some(Method::Repeat);
        assert_eq!(choices.next(false, 65_536, other), other);
        assert_eq!(choices.next(false, 65_536, None), other);
    }

    /// Sends a message in the way that the receiver wants.
    fn message(choices: &mut FragmentChoices, from: usize) -> Beginning {
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
            let store: &'static Store = Box::leak(Box::default());
            let mut choices = FragmentChoices::new(true, None, Some(store));
            choices.next(false, 65_536, Some(Method::Vector));
            let entry = choices.entry(false, 65_536).expect("an entry");
            for best in [Some(Method::Pages), None, Some(Method::Vector)] {
                let cost = |way: Beginning| if way == best { 100 } else { slow };
                drive(entry, 40_000, cost);
                assert_eq!(entry.choice.way(), best, "{slow}");
                let sum = drive(entry, 40_000, cost);
                assert!(sum <= 4_000_000 * 107 / 100, "{slow}: {sum}");
            }
            assert_eq!(choices.report().count(), 1);
            let key = key(false, 65_536).expect("short enough for parts");
            assert_eq!(store.remembered(), [Remembered { key, way: Method::Vector.code() }]);
        }
    }

    #[test]
    fn only_messages_that_are_alone_are_timed() {
        let mut choices = choices();
        choices.next(false, 65_536, Some(Method::Vector));
        let begin = |choices: &mut FragmentChoices, from| {
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
