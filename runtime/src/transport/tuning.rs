//! The ways of long messages, chosen by measurement.
//!
//! A long message can be copied in place or through chunks, and its long runs can be copied with
//! different methods of the engine (`typepack_engine::contiguous`). Which way is best depends on the
//! machine, on the distance of the two cores, and on the layouts. So the receiver of a message, which
//! knows most about it, picks a way and tells the sender in the CTS or in the request for help. The
//! receiver measures the time, and a chooser (`typepack_engine::choice`) learns from it.
//!
//! There is one chooser per [`Situation`] and size class. Its first way is the way that earlier jobs have learnt. If
//! there is none, it is the best way of the nearest size class whose best way was found by measurement, and otherwise
//! the way of the static rule ([`fused_first`]).
//!
//! Messages overlap in time. So the unit of time is the *busy period*: it begins when a message is matched while no
//! other long message is on its way to this rank, and ends when no long message is on its way to this rank any more. A
//! program may always have a message on its way, so a period and a trial also end after some messages
//! ([`MOST_MESSAGES`]). Only one key (a situation and a size class) has a trial in a busy period, and all its messages
//! in the trial go the same way. The keys take turns: a key may have its turn in a period if no key of the period
//! before has waited longer for its turn. The cost is the time per byte from the first message on trial to the end of
//! the period. A key whose last trial took less than [`SHORT`] nanoseconds, and whose ways have all been compared, is
//! timed in only one of [`RARELY`] turns, because reading the clock more often would cost more than a better way could
//! save.
//!
//! A choice changes neither the result nor the order of messages. `peer.rs` asks for the way of a message
//! that has matched; `pipeline.rs` and `single_copy.rs` say when a message is complete.

use super::choice::{self, Terms};
use super::learnt::Learnt;
use super::part_choice::{Beginning, PartChoices};
use crate::message::envelope::Space;
use crate::message::label::Shape;
use crate::settings::Forced;
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};
use typepack_engine::choice::{Chooser, Pick, WAYS};
use typepack_engine::contiguous::{self, Method};

#[cfg(test)]
mod tests;

/// A trial of less than this number of nanoseconds is not worth two readings of the clock.
const SHORT: u64 = 2000;

/// A key with short messages is timed only once in this number of its turns.
const RARELY: u64 = 16;

/// Length in bytes of the shortest message through chunks for which streaming stores are one of the ways. For a shorter
/// message, the other ways differ too little.
///
/// After ordinary stores, the receiver reads the data from the sender's cache. After streaming stores, it reads them
/// from memory. Measured on a Zen 4 with a C program of two threads, 256 KiB in pieces of 32 KiB through a ring of
/// 2 MiB, in us: 8 with vector moves and 28 with streaming stores between cores 45 ns apart, 120 and 20 between cores
/// 320 ns apart.
pub(super) const STREAMING: u64 = 16 << 10;

/// Length in bytes of the shortest message that the receiver may write to its place with streaming stores, in a copy in
/// place or out of chunks. A shorter message fits in the caches of the receiver, which writes the data itself and
/// probably reads them soon.
///
/// Measured on a Zen 3 with a C program of two threads, near cores, vector moves into chunks of 16 KiB, in us. 1 MiB:
/// 44 if vector moves write the destination and 67 if streaming stores do; 4 MiB: 560 and 290.
const STREAMING_IN_PLACE: u64 = 1 << 20;

/// A period and a trial end after this number of messages, if other messages are still on their way.
const MOST_MESSAGES: u64 = 64;

/// Number of size classes. Class `n` has messages of 2^(n + 10) to 2^(n + 11) bytes; the first class also has
/// all shorter ones and the last class all longer ones.
const CLASSES: usize = 20;

/// Number of situations.
const SITUATIONS: usize = 3 * 3 * 2 * 2 * 2 * 2;

/// A way to move a long message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The receiver, or both ranks, copy the data in place. They copy long runs with the method.
    InPlace(Method),
    /// The sender packs the data into chunks, and the receiver unpacks the chunks. Both ranks copy long runs
    /// with the method. With `rep movsb` and streaming stores, the sender packs dense layouts in private memory
    /// first (`stage.rs`).
    Packed(Method),
    /// The sender packs the data into chunks with the method, and the receiver unpacks the chunks with streaming
    /// stores. The chunks stay in the caches, and the memory of the receive need not be fetched before it is written.
    PackedStreamed(Method),
}

impl Way {
    /// Returns the method with which the sender copies long runs, or both ranks if they copy in place.
    pub fn method(self) -> Method {
        match self {
            Self::InPlace(method) | Self::Packed(method) | Self::PackedStreamed(method) => method,
        }
    }

    /// Returns the method with which the receiver unpacks long runs out of chunks.
    pub fn unpack_method(self) -> Method {
        match self {
            Self::InPlace(method) | Self::Packed(method) => method,
            Self::PackedStreamed(_) => Method::Streaming,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InPlace(method) => write!(f, "in place, {method}"),
            Self::Packed(method) => write!(f, "chunks, {method}"),
            Self::PackedStreamed(method) => {
                write!(f, "chunks, {method}, unpacked by {}", Method::Streaming)
            }
        }
    }
}

/// What the receiver knows about a message that has matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The kind of memory that the RTS names and that this rank can read; `None` if there is none.
    pub place: Option<Space>,
    /// How the data lies at the sender.
    pub shape: Shape,
    /// True if the receive's memory is one contiguous run.
    pub contiguous: bool,
    /// True if the receive's memory lies in a heap and its elements do not overlap, so that both ranks
    /// can copy.
    pub shared: bool,
    /// True if the cores of the two ranks share no cache, by the table of the launcher.
    pub far: bool,
    /// True if the receiver has other operations under way, or does not wait.
    pub busy: bool,
}

impl Situation {
    fn index(self) -> usize {
        let place = match self.place {
            None => 0,
            Some(Space::Heap) => 1,
            Some(Space::Private) => 2,
        };
        let flags = [self.contiguous, self.shared, self.far, self.busy];
        let start = place * 3 + usize::from(self.shape.code());
        flags.iter().fold(start, |index, &flag| index * 2 + usize::from(flag))
    }

    /// Returns the situation whose index is `index`.
    fn at(index: usize) -> Option<Self> {
        let flag = |bit: usize| index >> bit & 1 != 0;
        let [contiguous, shared, far, busy] = [flag(3), flag(2), flag(1), flag(0)];
        let place = match index / 48 {
            0 => None,
            1 => Some(Space::Heap),
            2 => Some(Space::Private),
            _ => return None,
        };
        let shape = Shape::from_code((index / 16 % 3) as u64)?;
        Some(Self { place, shape, contiguous, shared, far, busy })
    }

    /// Returns the ways that a message of `bytes` bytes can go, in the order in which the chooser tries them.
    fn ways(self, bytes: u64, terms: Terms, copy: Option<Method>) -> Vec<Way> {
        let methods: Vec<Method> = match copy {
            Some(method) => vec![method],
            None => contiguous::available()
                .filter(|method| bytes >= STREAMING || *method != Method::Streaming)
                .collect(),
        };
        let pays = |method: &&Method| {
            bytes >= STREAMING_IN_PLACE || **method != Method::Streaming || copy.is_some()
        };
        // If the source has short runs only, the method makes no difference to a copy in place.
        let in_place = match self.place {
            Some(Space::Heap) if self.shape != Shape::Sparse => &methods[..],
            // A copy by system calls uses the kernel's method.
            _ => &methods[..1],
        };
        let in_place = in_place.iter().filter(pays).map(|&method| Way::InPlace(method));
        // The runs of a receive that is not contiguous may be too short for streaming stores.
        let streams = self.contiguous
            && copy.is_none()
            && bytes >= STREAMING_IN_PLACE
            && methods.contains(&Method::Streaming);
        let packed = methods.iter().flat_map(|&method| {
            let streamed = streams && matches!(method, Method::Vector | Method::Repeat);
            std::iter::once(Way::Packed(method))
                .chain(streamed.then_some(Way::PackedStreamed(method)))
        });
        match (self.place, terms.forced) {
            (_, Forced::Streamed) => {
                // Streaming stores fill the chunks only if `TYPEPACK_COPY` forces them.
                let fills = |method: &&Method| **method != Method::Streaming || methods.len() == 1;
                let way = |&method: &Method| match method {
                    Method::Vector | Method::Repeat if self.contiguous => {
                        Way::PackedStreamed(method)
                    }
                    _ => Way::Packed(method),
                };
                methods.iter().filter(fills).map(way).collect()
            }
            (None, _) | (_, Forced::Packed | Forced::Parts) => packed.take(WAYS).collect(),
            // If both ranks copy data without large gaps in place, a copy through chunks cannot be
            // faster, and its trial would take memory for chunks.
            (Some(Space::Heap), Forced::Nothing) if self.shared && self.shape != Shape::Sparse => {
                in_place.take(WAYS).collect()
            }
            (Some(_), Forced::Heap | Forced::Cma) => in_place.take(WAYS).collect(),
            // The chooser tries the ways in this order. On some machines a copy by system calls takes several times as
            // long as one through chunks. It comes last, because one such trial uses up the time for trials of many
            // messages.
            (Some(Space::Private), Forced::Nothing) => packed.chain(in_place).take(WAYS).collect(),
            (Some(Space::Heap), Forced::Nothing) => in_place.chain(packed).take(WAYS).collect(),
        }
    }
}

impl fmt::Display for Situation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, shape, contiguous, shared, far, busy } = *self;
        let from = match place {
            None => "private or distant memory",
            Some(Space::Heap) => "heap",
            Some(Space::Private) => "readable private memory",
        };
        let shape = match shape {
            Shape::Contiguous => "contiguous",
            Shape::Dense => "dense",
            Shape::Sparse => "sparse",
        };
        let to = if contiguous { "contiguous" } else { "derived" };
        let to_heap = if shared { " in a heap" } else { "" };
        let distance = if far { "far" } else { "near" };
        let busy = if busy { ", busy" } else { "" };
        write!(f, "{shape} in {from} to {to}{to_heap}, {distance}{busy}")
    }
}

/// The chooser and the ways of a key. A key stands for a situation and a size class.
#[derive(Debug)]
struct Entry {
    situation: Situation,
    chooser: Chooser,
    /// The number of the way with which the chooser began.
    first: u8,
    ways: Vec<Way>,
    /// True if messages of this key are too short to be timed in every turn.
    short: bool,
    /// The number of the period in which this key had its last turn; 0 if it has had none.
    turn: u64,
    /// Number of turns that this key has had.
    turns: u64,
}

impl Entry {
    fn best(&self) -> Way {
        self.ways[usize::from(self.chooser.best())]
    }

    /// Returns whether the best way was found by measurement: it has been compared with all ways, or has replaced the
    /// way with which the chooser began.
    fn is_measured(&self) -> bool {
        self.chooser.is_settled() || self.chooser.best() != self.first
    }

    fn measured(&self, key: usize) -> Measured {
        // A cost is a time per byte in 2^-20 ns.
        let time =
            |number| self.chooser.median(number).map(|cost| cost as f64 / f64::from(1 << 20));
        Measured {
            situation: self.situation,
            bytes: least(key),
            ways: (0..).zip(&self.ways).map(|(number, way)| (*way, time(number))).collect(),
            best: usize::from(self.chooser.best()),
            settled: self.chooser.is_settled(),
        }
    }
}

/// The trial of a way in a busy period; see the documentation of the module.
#[derive(Debug)]
struct Trial {
    start: Instant,
    key: usize,
    /// The number of the way.
    way: u8,
    /// Number of bytes of the messages that have ended since `start`.
    bytes: u64,
    /// False if a message could not go its picked way, so that the time says nothing about the way.
    valid: bool,
    /// Number of messages until the end of the trial.
    left: u64,
}

/// Decides which key has its turn in a busy period.
#[derive(Debug, Default)]
struct Turns {
    /// Number of busy periods so far, with the present one.
    periods: u64,
    /// A key may have its turn in the present period if its last turn was in the period of this number or
    /// in an earlier one.
    last: u64,
    /// True if a key has had its turn in the present period.
    taken: bool,
    /// The smallest `Entry::turn` of the keys that have had messages in the present period; `None` if
    /// there are none.
    oldest: Option<u64>,
    /// Number of messages that have begun in the present period.
    messages: u64,
}

impl Turns {
    fn next_period(&mut self) {
        self.periods += 1;
        self.last = self.oldest.take().unwrap_or(u64::MAX);
        (self.taken, self.messages) = (false, 0);
    }
}

/// The choices of one rank.
#[derive(Debug)]
pub struct Tuning {
    /// One entry per situation and size class; empty until the first long message.
    entries: Vec<Option<Box<Entry>>>,
    /// Number of long messages on their way to this rank.
    under_way: u64,
    trial: Option<Trial>,
    turns: Turns,
    /// False if nothing is measured (`TYPEPACK_TUNE=off`).
    measures: bool,
    /// The method that `TYPEPACK_COPY` forces.
    copy: Option<Method>,
    /// The ways that earlier jobs have learnt, by key (`learnt.rs`).
    earlier: HashMap<usize, Way>,
    /// The choices of messages that may go out in parts.
    pub parts: PartChoices,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            under_way: 0,
            trial: None,
            turns: Turns::default(),
            measures: true,
            copy: None,
            earlier: HashMap::new(),
            parts: PartChoices::new(true, None),
        }
    }
}

impl Tuning {
    /// Sets whether this rank measures, and the method that all copies must use (`None`: any method).
    pub fn set(&mut self, measures: bool, copy: Option<Method>) {
        (self.measures, self.copy) = (measures, copy);
        self.entries.clear();
        (self.trial, self.turns) = (None, Turns::default());
        self.parts = PartChoices::new(measures, copy);
        // A message that is on its way now is not counted any more. When it completes, the busy period of
        // later messages may end early. That does little harm, because a chooser compares medians.
        self.under_way = 0;
    }

    /// Uses what earlier jobs have learnt: each way becomes the first one of its kind and size class.
    pub fn know(&mut self, learnt: &[Learnt]) {
        for learnt in learnt {
            match *learnt {
                Learnt::Way { bytes, situation, way } => {
                    self.earlier.insert(key(situation, bytes), way);
                }
                Learnt::Parts { bytes, far, beginning } => self.parts.know(far, bytes, beginning),
            }
        }
    }

    /// Returns what this job and earlier jobs have learnt.
    pub fn learnt(&self) -> Vec<Learnt> {
        let mut all = self.earlier.clone();
        all.extend(self.settled().map(|(key, entry)| (key, entry.best())));
        sorted(&all).chain(self.parts.learnt()).collect()
    }

    /// Returns whether a sender chooses the method of its copies by measurement.
    #[inline]
    pub fn chooses(&self) -> bool {
        self.measures && self.copy.is_none()
    }

    /// Picks the way of a message of `bytes` bytes that a receive has matched. `fused` is the static rule: true
    /// if the message is better copied in place. Every call must be followed by one call of
    /// [`Tuning::complete`].
    pub fn begin(
        &mut self,
        situation: Situation,
        bytes: u64,
        terms: Terms,
        fused: impl FnOnce() -> bool,
    ) -> Way {
        let is_long = self.turns.messages >= MOST_MESSAGES && self.trial.is_none();
        if self.under_way == 0 || is_long {
            self.turns.next_period();
        }
        self.turns.messages += 1;
        let before = self.under_way;
        self.under_way += 1;
        if situation.place == Some(Space::Heap) {
            self.parts.disturb();
        } else {
            self.parts.begin_rts(situation.far, bytes, self.under_way == 1);
        }
        let key = key(situation, bytes);
        if self.entries.is_empty() {
            self.entries.resize_with(SITUATIONS * CLASSES, || None);
        }
        if self.entries[key].is_none() {
            let entry = self.entry(situation, key, bytes, terms, fused);
            self.entries[key] = Some(Box::new(entry));
        }
        let Some(entry) = &mut self.entries[key] else { return Way::Packed(Method::Vector) };
        let turns = &mut self.turns;
        let has_turn = !turns.taken && entry.turn <= turns.last;
        let best = Pick { way: entry.chooser.best(), timed: false };
        let pick = match &self.trial {
            // The other messages of the key on trial go the same way.
            Some(trial) if trial.key == key => Pick { way: trial.way, timed: false },
            None if has_turn && self.measures => {
                (entry.turn, entry.turns) = (turns.periods, entry.turns + 1);
                turns.taken = true;
                let rest = entry.short && !entry.turns.is_multiple_of(RARELY);
                if rest { best } else { entry.chooser.pick() }
            }
            _ => best,
        };
        if turns.oldest.is_none_or(|turn| entry.turn < turn) {
            turns.oldest = Some(entry.turn);
        }
        if pick.timed {
            let (start, way) = (Instant::now(), pick.way);
            // The messages that are on their way already go other ways. They must be few among those of the trial.
            let left = before.saturating_mul(4).saturating_add(MOST_MESSAGES);
            self.trial = Some(Trial { start, key, way, bytes: 0, valid: true, left });
        }
        entry.ways[usize::from(pick.way)]
    }

    /// Says that the message for which [`Tuning::begin`] picked a way goes another way, because the picked
    /// protocol declined it or gave it up.
    #[cold]
    pub fn declined(&mut self) {
        if let Some(trial) = &mut self.trial {
            trial.valid = false;
        }
    }

    /// Returns the best way of such messages, if their ways have been compared. If nothing is measured, the static
    /// choice counts as the best way. A busy rank that has not compared the ways yet decides like a rank that is not
    /// busy, and the other way round.
    fn settled_way(&self, situation: Situation, bytes: u64) -> Option<Way> {
        let entry = |situation| {
            let entry = self.entries.get(key(situation, bytes))?.as_ref()?;
            let compared = !self.measures || entry.ways.len() == 1 || entry.chooser.is_settled();
            compared.then_some(entry)
        };
        let other = Situation { busy: !situation.busy, ..situation };
        entry(situation).or_else(|| entry(other)).map(|entry| entry.best())
    }

    /// Returns how the next message should begin that is like one for which [`Tuning::begin`] has picked a way. The
    /// data of these messages do not lie in a heap.
    pub fn next_beginning(&mut self, situation: Situation, bytes: u64) -> Beginning {
        let far = situation.far;
        self.parts.go_on(far, bytes);
        match self.settled_way(situation, bytes) {
            // Messages of this kind are better copied in place.
            Some(Way::InPlace(_) | Way::PackedStreamed(_)) => None,
            Some(Way::Packed(method)) => self.parts.next(far, bytes, Some(method)),
            None => self.parts.next(far, bytes, None),
        }
    }

    /// Returns whether no message that began with an RTS is on its way to this rank.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// Says that a message of `bytes` bytes is complete.
    #[inline]
    pub fn complete(&mut self, bytes: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        if self.under_way == 0 {
            self.parts.end_of_rts(bytes);
        }
        if let Some(trial) = &mut self.trial {
            trial.bytes = trial.bytes.saturating_add(bytes);
            trial.left -= 1;
            if self.under_way == 0 {
                self.end();
            } else if trial.left == 0 {
                self.end();
                self.turns.next_period();
            }
        }
    }

    /// Ends the trial.
    fn end(&mut self) {
        let Some(Trial { start, key, way, bytes, valid, .. }) = self.trial.take() else { return };
        let Some(entry) = self.entries.get_mut(key).and_then(Option::as_mut) else { return };
        if !valid || bytes == 0 {
            return;
        }
        let time = start.elapsed();
        entry.chooser.report(way, cost(time, bytes));
        entry.short = time.as_nanos() < u128::from(SHORT) && entry.chooser.is_settled();
    }

    /// Makes the entry of a key.
    #[cold]
    fn entry(
        &self,
        situation: Situation,
        key: usize,
        bytes: u64,
        terms: Terms,
        fused: impl FnOnce() -> bool,
    ) -> Entry {
        let ways = situation.ways(bytes, terms, self.copy);
        let known = self.earlier.get(&key).copied().or_else(|| self.neighbour(key));
        let first = known.filter(|way| ways.contains(way)).unwrap_or_else(|| {
            if fused() { Way::InPlace(Method::Vector) } else { Way::Packed(Method::Vector) }
        });
        let same_protocol =
            |way: &Way| matches!(way, Way::InPlace(_)) == matches!(first, Way::InPlace(_));
        let at = ways.iter().position(|way| *way == first);
        let at = at.or_else(|| ways.iter().position(same_protocol)).unwrap_or(0);
        let first = at as u8;
        let chooser = Chooser::new(ways.len(), first);
        Entry { situation, chooser, first, ways, short: false, turn: 0, turns: 0 }
    }

    /// Looks at the other size classes of the same situation, the nearest first. Returns the best way of
    /// the first class whose best way was found by measurement, or `None` if there is no such class.
    fn neighbour(&self, key: usize) -> Option<Way> {
        let row = key - key % CLASSES;
        (1..CLASSES)
            .flat_map(|far| [key.checked_sub(far).filter(|&at| at >= row), Some(key + far)])
            .flatten()
            .filter(|&at| at < row + CLASSES)
            .filter_map(|at| self.entries[at].as_ref())
            .find(|entry| entry.is_measured())
            .map(|entry| entry.best())
    }

    /// Returns the keys that have several ways and have compared them.
    fn settled(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().enumerate().filter_map(|(key, entry)| {
            let entry = entry.as_ref().filter(|entry| entry.chooser.is_settled())?;
            (entry.ways.len() > 1).then_some((key, &**entry))
        })
    }

    /// Returns one line per key that has compared its ways: the situation, the best way, and by how much it is
    /// better than the second best.
    pub fn report(&self) -> Vec<String> {
        let ways = self.settled().map(|(key, entry)| line(&entry.measured(key)));
        ways.chain(self.parts.report()).collect()
    }

    /// Returns what was measured for every key that has several ways, also where the comparison has not ended.
    pub fn measured(&self) -> Vec<Measured> {
        let entries = self.entries.iter().enumerate();
        let all = entries.filter_map(|(key, entry)| Some((key, entry.as_ref()?)));
        all.filter(|(_, entry)| entry.ways.len() > 1)
            .map(|(key, entry)| entry.measured(key))
            .collect()
    }

    /// Returns one line for each way that earlier jobs have learnt: the kind of the messages and the way.
    pub fn loaded(&self) -> Vec<String> {
        let all = sorted(&self.earlier).chain(self.parts.loaded());
        all.map(|learnt| learnt.to_string()).collect()
    }
}

/// Returns the ways in the order of their keys.
fn sorted(ways: &HashMap<usize, Way>) -> impl Iterator<Item = Learnt> {
    let mut ways: Vec<(usize, Way)> = ways.iter().map(|(key, way)| (*key, *way)).collect();
    ways.sort_unstable_by_key(|(key, _)| *key);
    ways.into_iter().filter_map(|(key, way)| {
        let situation = Situation::at(key / CLASSES)?;
        Some(Learnt::Way { bytes: least(key), situation, way })
    })
}

/// What was measured for the messages of one situation and size class.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The situation.
    pub situation: Situation,
    /// The least number of bytes of the size class. (The first class also has shorter messages.)
    pub bytes: u64,
    /// The ways in the order of their numbers, and the median of the latest times per byte in nanoseconds, or
    /// `None` if the way was not tried.
    pub ways: Vec<(Way, Option<f64>)>,
    /// The index in `ways` of the present way.
    pub best: usize,
    /// True if the present way has been compared with all other ways that work.
    pub settled: bool,
}

fn line(measured: &Measured) -> String {
    let Measured { situation, bytes, ways, best, .. } = measured;
    let Some((way, time)) = ways.get(*best) else { return String::new() };
    let others = ways.iter().enumerate().filter(|(number, _)| number != best);
    let second = others.filter_map(|(_, (_, time))| *time).min_by(f64::total_cmp);
    let gain = match (time, second) {
        (Some(best), Some(second)) if *best > 0.0 => {
            format!(" ({:.2} times as fast as the next)", second / best)
        }
        _ => String::new(),
    };
    let learnt = Learnt::Way { bytes: *bytes, situation: *situation, way: *way };
    format!("{learnt}{gain}")
}

/// Returns the cost of a job that took `time` for `bytes` bytes: the time per byte, in 2^-20 ns, because jobs have
/// different lengths.
pub(super) fn cost(time: Duration, bytes: u64) -> u64 {
    u64::try_from((time.as_nanos() << 20) / u128::from(bytes.max(1))).unwrap_or(u64::MAX)
}

/// Returns the key of a situation and a message of `bytes` bytes.
fn key(situation: Situation, bytes: u64) -> usize {
    situation.index() * CLASSES + class(bytes)
}

/// Returns the least number of bytes of the size class of a key. (The first class also has shorter messages.)
fn least(key: usize) -> u64 {
    1024 << (key % CLASSES)
}

/// Returns the size class of a message.
fn class(bytes: u64) -> usize {
    (bytes.max(1).ilog2() as usize).saturating_sub(10).min(CLASSES - 1)
}

/// Returns whether the static rule copies a message in place; see [`choice::is_fused`] and [`choice::is_private`].
/// `useful` is the mean number of bytes that belong to the message in each touched cache line of the source.
pub fn fused_first(situation: Situation, terms: Terms, useful: u64, bytes: u64) -> bool {
    match situation.place {
        None => false,
        Some(Space::Heap) => choice::is_fused(terms.forced, situation, useful),
        Some(Space::Private) => choice::is_private(terms.forced, situation.far, bytes),
    }
}
