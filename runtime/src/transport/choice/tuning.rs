//! The ways of long messages, chosen by measurement.
//!
//! A long message can be copied in place or through chunks, and its long runs can be copied with
//! different methods of the engine (`typepack_engine::contiguous`). Which way is best depends on the
//! machine, on the distance of the two cores, and on the layouts. So the receiver of a message, which
//! knows most about it, picks a way and tells the sender in the CTS or in the request for help. The
//! receiver measures the time, and a chooser (`typepack_engine::choice`) learns from it.
//!
//! There is one choice per key ([`key`]): what the situation says apart from the load, and a size class. Its first way
//! is the way that earlier jobs have remembered. If there is none, it is the best way of the nearest size class whose
//! best way was found by measurement, and otherwise the way of the static rule ([`fused_first`]).
//!
//! Messages overlap in time. So the unit of time is the *busy period*: it begins when a message is matched while no
//! other long message is on its way to this rank, and ends when no long message is on its way to this rank any more. A
//! program may always have a message on its way, so a period and a trial also end after some messages
//! ([`MOST_MESSAGES`]). Only one key has a trial in a busy period, and all its messages
//! in the trial go the same way. The keys take turns: a key may have its turn in a period if no key of the period
//! before has waited longer for its turn. The cost is the time per byte from the first message on trial to the end of
//! the period. A key whose last trial took less than [`SHORT`] nanoseconds, and whose ways have all been compared, is
//! timed in only one of [`RARELY`] turns, because reading the clock more often would cost more than a better way could
//! save.
//!
//! A choice changes neither the result nor the order of messages. `peer.rs` asks for the way of a message
//! that has matched; `pipeline.rs` and `single_copy.rs` say when a message is complete.

use super::Terms;
use super::fragment_choice::{self, Beginning, FragmentChoices};
use crate::message::envelope::Space;
use crate::message::label::Shape;
use crate::settings::Forced;
use crate::transport::choice;
use std::time::Instant;
use typepack_engine::choice::{
    self as chooser, Candidate, Choice, Form, Key, Measured, Pick, Sizes, Store, Tune, WAYS,
};
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
pub(in crate::transport) const STREAMING: u64 = 16 << 10;

/// Length in bytes of the shortest message that the receiver may write to its place with streaming stores, in a copy in
/// place or out of chunks. A shorter message fits in the caches of the receiver, which writes the data itself and
/// probably reads them soon.
///
/// Measured on a Zen 3 with a C program of two threads, near cores, vector moves into chunks of 16 KiB, in us. 1 MiB:
/// 44 if vector moves write the destination and 67 if streaming stores do; 4 MiB: 560 and 290.
const STREAMING_IN_PLACE: u64 = 1 << 20;

/// A period and a trial end after this number of messages, if other messages are still on their way.
const MOST_MESSAGES: u64 = 64;

/// What the choice of a way depends on, and the ways: a protocol and a copy method each.
pub static FORM: Form = Form {
    name: "messages",
    title: "",
    fields: &[
        &[("contiguous", "contiguous"), ("dense", "dense"), ("sparse", "sparse")],
        &[
            ("unnamed", " in private or distant memory"),
            ("heap", " in heap"),
            ("private", " in readable private memory"),
        ],
        &[("derived", " to derived"), ("contiguous", " to contiguous")],
        &[("own", ""), ("shared", " in a heap")],
        &[("near", ", near"), ("far", ", far")],
    ],
    sizes: Sizes { first: 1 << 10, step: 2, count: 10 },
    ways: &[
        ("in-place-vector", "in place, vector"),
        ("in-place-repeat", "in place, repeat"),
        ("in-place-streaming", "in place, streaming"),
        ("in-place-pages", "in place, pages"),
        ("chunks-vector", "chunks, vector"),
        ("chunks-repeat", "chunks, repeat"),
        ("chunks-streaming", "chunks, streaming"),
        ("chunks-pages", "chunks, pages"),
        ("chunks-streamed-vector", "chunks, vector, unpacked by streaming"),
        ("chunks-streamed-repeat", "chunks, repeat, unpacked by streaming"),
    ],
};

/// Returns the key of a message of `bytes` bytes. The load of the receiver changes the static rule only.
fn key(situation: Situation, bytes: u64) -> Key {
    let Situation { place, shape, contiguous, shared, far, busy: _ } = situation;
    let place = match place {
        None => 0,
        Some(Space::Heap) => 1,
        Some(Space::Private) => 2,
    };
    // Both ranks copy only out of a heap.
    let shared = shared && place == 1;
    let flags = [contiguous, shared, far].map(usize::from);
    FORM.key([usize::from(shape.code()), place, flags[0], flags[1], flags[2]], bytes)
}

/// A way to move a long message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongProtocol {
    /// The receiver, or both ranks, copy the data in place. They copy long runs with the method.
    InPlace(Method),
    /// The sender packs the data into chunks, and the receiver unpacks the chunks. Both ranks copy long runs
    /// with the method. With `rep movsb` and streaming stores, the sender packs dense layouts in private memory
    /// first (`link.rs`).
    Packed(Method),
    /// The sender packs the data into chunks with the method, and the receiver unpacks the chunks with streaming
    /// stores. The chunks stay in the caches, and the memory of the receive need not be fetched before it is written.
    PackedStreamed(Method),
}

impl LongProtocol {
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

impl Candidate for LongProtocol {
    fn number(self, _: Key) -> u8 {
        let protocol = match self {
            Self::InPlace(_) => 0,
            Self::Packed(_) => 1,
            Self::PackedStreamed(_) => 2,
        };
        protocol * Method::ALL.len() as u8 + self.method().code()
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
    /// Returns the ways that a message of `bytes` bytes can go, in the order in which the chooser tries them.
    fn ways(self, bytes: u64, terms: Terms, copy: Option<Method>) -> Vec<LongProtocol> {
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
        let in_place = in_place.iter().filter(pays).map(|&method| LongProtocol::InPlace(method));
        // The runs of a receive that is not contiguous may be too short for streaming stores.
        let streams = self.contiguous
            && copy.is_none()
            && bytes >= STREAMING_IN_PLACE
            && methods.contains(&Method::Streaming);
        let packed = methods.iter().flat_map(|&method| {
            let streamed = streams && matches!(method, Method::Vector | Method::Repeat);
            std::iter::once(LongProtocol::Packed(method))
                .chain(streamed.then_some(LongProtocol::PackedStreamed(method)))
        });
        match (self.place, terms.forced) {
            (_, Forced::Streamed) => {
                // Streaming stores fill the chunks only if `TYPEPACK_COPY` forces them.
                let fills = |method: &&Method| **method != Method::Streaming || methods.len() == 1;
                let way = |&method: &Method| match method {
                    Method::Vector | Method::Repeat if self.contiguous => {
                        LongProtocol::PackedStreamed(method)
                    }
                    _ => LongProtocol::Packed(method),
                };
                methods.iter().filter(fills).map(way).collect()
            }
            (None, _) | (_, Forced::Packed | Forced::Fragments) => packed.take(WAYS).collect(),
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

/// The choice of a key.
#[derive(Debug)]
struct Entry {
    choice: Choice<LongProtocol>,
    /// True if messages of this key are too short to be timed in every turn.
    short: bool,
    /// The number of the period in which this key had its last turn; 0 if it has had none.
    turn: u64,
    /// Number of turns that this key has had.
    turns: u64,
}

/// The trial of a way in a busy period; see the documentation of the module.
#[derive(Debug)]
struct Trial {
    start: Instant,
    key: Key,
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
    /// One entry per key; empty until the first long message.
    entries: Vec<Option<Box<Entry>>>,
    /// Number of long messages on their way to this rank.
    under_way: u64,
    trial: Option<Trial>,
    turns: Turns,
    /// False if long messages go by the static order (`TYPEPACK_TUNE`).
    measures: bool,
    /// The same for short messages.
    short: bool,
    /// The method that `TYPEPACK_COPY` forces.
    copy: Option<Method>,
    /// What the process knows and learns.
    store: Option<&'static Store>,
    /// The choices of messages that may go out in fragments.
    pub fragments: FragmentChoices,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            under_way: 0,
            trial: None,
            turns: Turns::default(),
            measures: true,
            short: true,
            copy: None,
            store: None,
            fragments: FragmentChoices::new(true, None, None),
        }
    }
}

impl Tuning {
    /// Sets which choosers of this rank measure, the method that all copies must use (`None`: any method), and where
    /// the ways are that the process knows.
    pub fn set(&mut self, tune: Tune, copy: Option<Method>, store: Option<&'static Store>) {
        (self.measures, self.copy) = (tune.measures(FORM.name), copy);
        self.short = tune.measures(chooser::SHORT);
        // Without measurements the static order holds, whatever earlier jobs have found.
        self.store = store.filter(|_| self.measures);
        self.entries.clear();
        (self.trial, self.turns) = (None, Turns::default());
        self.fragments =
            FragmentChoices::new(tune.measures(fragment_choice::FORM.name), copy, store);
        // A message that is on its way now is not counted any more. When it completes, the busy period of
        // later messages may end early. That does little harm, because a chooser compares medians.
        self.under_way = 0;
    }

    /// Returns whether a sender chooses the method of its copies of short messages by measurement.
    #[inline]
    pub fn chooses(&self) -> bool {
        self.short && self.copy.is_none()
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
    ) -> LongProtocol {
        let is_long = self.turns.messages >= MOST_MESSAGES && self.trial.is_none();
        if self.under_way == 0 || is_long {
            self.turns.next_period();
        }
        self.turns.messages += 1;
        let before = self.under_way;
        self.under_way += 1;
        if situation.place == Some(Space::Heap) {
            self.fragments.disturb();
        } else {
            self.fragments.begin_rts(situation.far, bytes, self.under_way == 1);
        }
        let key = key(situation, bytes);
        if self.entries.is_empty() {
            self.entries.resize_with(FORM.keys(), || None);
        }
        match &mut self.entries[key.number()] {
            // Without measurements, each message goes by the static rule, not like the first one of its key.
            Some(entry) if !self.measures => {
                let is_fused = fused();
                entry.choice.set(|way| matches!(way, LongProtocol::InPlace(_)) == is_fused);
            }
            Some(_) => {}
            None => {
                let entry = self.entry(situation, key, bytes, terms, fused);
                self.entries[key.number()] = Some(Box::new(entry));
            }
        }
        let Some(entry) = &mut self.entries[key.number()] else {
            return LongProtocol::Packed(Method::Vector);
        };
        let turns = &mut self.turns;
        let has_turn = !turns.taken && entry.turn <= turns.last;
        let best = Pick { way: entry.choice.best(), timed: false };
        let pick = match &self.trial {
            // The other messages of the key on trial go the same way.
            Some(trial) if trial.key == key => Pick { way: trial.way, timed: false },
            None if has_turn && self.measures => {
                (entry.turn, entry.turns) = (turns.periods, entry.turns + 1);
                turns.taken = true;
                let rest = entry.short && !entry.turns.is_multiple_of(RARELY);
                if rest { best } else { entry.choice.pick() }
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
        entry.choice.at(pick.way)
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
    /// choice counts as the best way.
    fn settled_way(&self, situation: Situation, bytes: u64) -> Option<LongProtocol> {
        let choice = &self.entries.get(key(situation, bytes).number())?.as_ref()?.choice;
        let compared = !self.measures || choice.ways() == 1 || choice.is_settled();
        compared.then(|| choice.way())
    }

    /// Returns how the next message should begin that is like one for which [`Tuning::begin`] has picked a way. The
    /// data of these messages do not lie in a heap.
    pub fn next_beginning(&mut self, situation: Situation, bytes: u64) -> Beginning {
        let far = situation.far;
        self.fragments.go_on(far, bytes);
        match self.settled_way(situation, bytes) {
            // Messages of this kind are better copied in place.
            Some(LongProtocol::InPlace(_) | LongProtocol::PackedStreamed(_)) => None,
            Some(LongProtocol::Packed(method)) => self.fragments.next(far, bytes, Some(method)),
            None => self.fragments.next(far, bytes, None),
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
            self.fragments.end_of_rts(bytes);
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
        let entry = self.entries.get_mut(key.number()).and_then(Option::as_mut);
        let Some(entry) = entry else { return };
        if !valid || bytes == 0 {
            return;
        }
        let time = start.elapsed();
        entry.choice.took(way, time, bytes);
        entry.short = time.as_nanos() < u128::from(SHORT) && entry.choice.is_settled();
    }

    /// Makes the entry of a key.
    #[cold]
    fn entry(
        &self,
        situation: Situation,
        key: Key,
        bytes: u64,
        terms: Terms,
        fused: impl FnOnce() -> bool,
    ) -> Entry {
        let ways = situation.ways(bytes, terms, self.copy);
        let first = self.neighbour(key).filter(|way| ways.contains(way)).or_else(|| {
            let is_fused = fused();
            let is_first = |way: &LongProtocol| matches!(way, LongProtocol::InPlace(_)) == is_fused;
            ways.iter().copied().find(is_first)
        });
        let choice = Choice::new(key, ways, || first, self.store);
        Entry { choice, short: false, turn: 0, turns: 0 }
    }

    /// Looks at the other size classes of the same situation, the nearest first. Returns the best way of
    /// the first class whose best way was found by measurement, or `None` if there is no such class.
    fn neighbour(&self, key: Key) -> Option<LongProtocol> {
        key.neighbours()
            .filter_map(|other| self.entries[other.number()].as_ref())
            .find(|entry| entry.choice.is_measured())
            .map(|entry| entry.choice.way())
    }

    fn choices(&self) -> impl Iterator<Item = &Choice<LongProtocol>> {
        self.entries.iter().flatten().map(|entry| &entry.choice)
    }

    /// Returns one line per key that has compared its ways.
    pub fn report(&self) -> Vec<String> {
        let compared = self.choices().filter(|choice| choice.is_compared());
        compared.map(Choice::line).chain(self.fragments.report()).collect()
    }

    /// Returns what was measured for every key that has several ways, also where the comparison has not ended.
    pub fn measured(&self) -> Vec<Measured> {
        let several = self.choices().filter(|choice| choice.ways() > 1);
        several.map(Choice::measured).chain(self.fragments.measured()).collect()
    }
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
