//! How a blocking call with more than a little data goes: the way, chosen by measurement.
//!
//! Several ways compete ([`ways`]): a reduction in slices or as a whole, shorter or longer pieces, messages. Every way
//! gives the same result, with the same bits. `turn.rs` asks for the way of each call, and makes the call in this way.
//!
//! All ranks of the communicator must go the same way, so rank 0 decides for all. Its decisions lie in the block
//! (`block.rs`): for each key (an operation and a size class, which all ranks know) a list of entries. An entry has the
//! number of the first call for which it holds, and the way. The entry of a call is the one with the largest number
//! that is not above the number of the call. Two rules make all ranks find the same entry:
//!
//! - Before a call that has a key, each rank waits until all others have ended the call `lead` calls earlier
//!   ([`Choices::awaited`]). So no rank is more than `lead` calls ahead of another.
//! - In call `n`, rank 0 writes entries for call `n + lead` and later ones only. No rank can have begun such a call: it
//!   would first have waited until rank 0 had ended call `n`.
//!
//! Each change has at most two entries, and rank 0 begins a change only after all entries of the last change hold. So
//! the entries that it overwrites belong to calls that all ranks have ended: a list has room for several changes.
//!
//! Rank 0 asks a chooser per key. To look at another way, it announces this way for a few calls. Every rank stores in
//! its part of the block when it has begun and when it has ended a timed call. The cost of a call is the time from the
//! last begin to the last end, so that the wait for a late rank does not count. The clock is one for all CPUs
//! (`CLOCK_MONOTONIC`), so times of several ranks can be compared. Rank 0 reads the times later, when all ranks have
//! ended the call. A time that is missing by then is left out.

use super::MOST;
use super::piece::BUSY_PIECE;
use super::reductions::has_slices;
use crate::settings::{CollectiveMethod, CollectiveName, Settings};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;
use typepack_engine::choice::{
    self, Candidate, Choice as Chosen, Form, Measured, Sizes, Store, Word,
};

/// A call goes the static way if all ranks together have less data than this number of bytes, or, in an alltoall, each
/// rank. Such a call takes less than two microseconds between busy ranks, and reading the clock would take a noticeable
/// part of it.
const LEAST: u64 = 16 << 10;

/// What combines the elements of a reduction. In a call that moves data, nothing does: [`Library`](Self::Library).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Library,
    /// A user's function. It may take much longer than a function of this library, and calls with it have keys of their
    /// own.
    User,
}

/// The operations that have keys. Their words stand in [`FORM`].
const OPERATIONS: [(CollectiveName, By); 9] = [
    (CollectiveName::Bcast, By::Library),
    (CollectiveName::Reduce, By::Library),
    (CollectiveName::Reduce, By::User),
    (CollectiveName::Allreduce, By::Library),
    (CollectiveName::Allreduce, By::User),
    (CollectiveName::Scan, By::Library),
    (CollectiveName::Exscan, By::Library),
    (CollectiveName::Allgather, By::Library),
    (CollectiveName::Alltoall, By::Library),
];

/// The words of the numbers of ranks from 2 to [`MOST`].
macro_rules! ranks {
    ($($number:literal)*) => { [$((stringify!($number), concat!(" of ", $number, " ranks"))),*] };
}
const RANKS: [Word; MOST - 1] =
    ranks!(2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);

/// The words of the fields of a [`Site`].
pub(super) const DISTANCE: &[Word] = &[("near", ""), ("far", ", far")];
const CPUS: &[Word] = &[("alone", ""), ("crowded", ", CPUs shared")];

/// Where the ranks of a communicator run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Site {
    /// True if the core of this rank and the core of another rank share no cache, by the table of the launcher.
    pub far: bool,
    /// True if ranks share CPUs. The pieces then have other lengths.
    pub share_cpus: bool,
}

/// What the choice of a way depends on beside the communicator, and the ways. The number of bytes is that of each rank,
/// or in an alltoall of each part.
pub(crate) static FORM: Form = Form {
    name: "collective",
    title: "collective",
    fields: &[
        &[
            ("bcast", " bcast"),
            ("reduce", " reduce"),
            ("reduce-by-a-user's-function", " reduce by a user's function"),
            ("allreduce", " allreduce"),
            ("allreduce-by-a-user's-function", " allreduce by a user's function"),
            ("scan", " scan"),
            ("exscan", " exscan"),
            ("allgather", " allgather"),
            ("alltoall", " alltoall"),
        ],
        &RANKS,
        DISTANCE,
        CPUS,
    ],
    sizes: Sizes { first: LEAST / MOST as u64, step: 1, count: CLASSES },
    ways: &[
        ("messages", "messages"),
        ("cells", "cells"),
        ("cells-other-pieces", "cells, other pieces"),
        ("whole", "whole"),
        ("whole-other-pieces", "whole, other pieces"),
        ("slices", "slices"),
        ("slices-other-pieces", "slices, other pieces"),
    ],
};

/// Number of size classes. The last one begins at 4 MiB.
const CLASSES: usize = 14;

/// Number of keys.
pub(super) const KEYS: usize = OPERATIONS.len() * CLASSES;

/// Number of entries for a key: a cache line.
pub(super) const ENTRIES: usize = 8;

/// Number of timed calls whose times a rank keeps.
pub(super) const TIMES: usize = 16;

/// Number of low bits in an entry that have the way and the mark of a look. The bits above have the number of a call.
const ENTRY_BITS: u32 = 4;

/// The mark of an entry of a look: all calls for which it holds are timed.
const LOOK: u64 = 1 << 3;

/// Calls up to this number are timed. Later, about one call in eight is timed ([`is_often_timed`]), and all calls of a
/// look.
const TIMED: u64 = 256;

/// Returns whether a call is timed whatever its way. The calls are scattered: a program often makes the same call at
/// regular distances, and multiples of eight could miss it for ever.
#[inline]
fn is_often_timed(call: u64) -> bool {
    call <= TIMED || call.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61 == 0
}

/// Number of calls of a look at a way whose costs are not known.
const SHORT_LOOK: u64 = 2;

/// Number of calls of a look at a way whose costs are known, and less than twice those of the present way.
const LONG_LOOK: u64 = 5;

/// Number of distances between calls from which the length of a look is computed.
const DISTANCES: usize = 4;

/// Largest distance of two calls with the same key by which a look is lengthened.
const FARTHEST: u64 = 1 << 16;

/// The shared memory of the decisions. `block.rs` has the memory.
pub(super) trait DecisionMemory {
    /// Returns an entry for a key.
    fn entry(&self, key: usize, entry: usize) -> &AtomicU64;
    /// Returns word 0, 1 or 2 of the times that `rank` keeps at a place below [`TIMES`].
    fn time(&self, rank: usize, place: usize, word: usize) -> &AtomicU64;
}

/// A way of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Algorithm {
    /// By messages, and not through cells.
    pub messages: bool,
    /// In a reduction: each rank combines a slice of the elements.
    pub slices: bool,
    /// In pieces of the other length (`Turn::piece_of`).
    pub other_pieces: bool,
}

impl Candidate for Algorithm {
    fn number(self, key: choice::Key) -> u8 {
        let operation = key.number() / (FORM.keys() / OPERATIONS.len());
        let slices = if reduces(operation) { 3 + 2 * u8::from(self.slices) } else { 1 };
        if self.messages { 0 } else { slices + u8::from(self.other_pieces) }
    }
}

/// Returns whether an operation is a reduction whose elements can be combined in slices.
fn reduces(operation: usize) -> bool {
    matches!(OPERATIONS[operation].0, CollectiveName::Reduce | CollectiveName::Allreduce)
}

/// An operation and a size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(super) operation: u8,
    pub(super) class: u8,
}

impl Key {
    /// Returns the key of a call in which each rank, or in an alltoall each part, has `bytes` bytes, or `None` if the
    /// call goes the static way. All `size` ranks pass the same arguments.
    #[inline]
    pub(super) fn new((name, by): (CollectiveName, By), bytes: u64, size: usize) -> Option<Self> {
        if bytes.saturating_mul(size as u64) < LEAST {
            return None;
        }
        let operation = OPERATIONS.iter().position(|&other| other == (name, by))?;
        let class = FORM.sizes.class(bytes);
        Some(Self { operation: operation as u8, class: class as u8 })
    }

    /// Returns the key among `size` ranks at `site`.
    fn at(self, size: usize, site: Site) -> choice::Key {
        let [far, share_cpus] = [site.far, site.share_cpus].map(usize::from);
        let ranks = size.clamp(2, MOST) - 2;
        FORM.key([usize::from(self.operation), ranks, far, share_cpus], self.bytes())
    }

    fn index(self) -> usize {
        usize::from(self.operation) * CLASSES + usize::from(self.class)
    }

    /// Returns the first length of the size class, in bytes.
    pub(super) fn bytes(self) -> u64 {
        FORM.sizes.least(usize::from(self.class))
    }

    pub(super) fn reduces(self) -> bool {
        reduces(usize::from(self.operation))
    }

    fn calls_a_user(self) -> bool {
        OPERATIONS[usize::from(self.operation)].1 == By::User
    }
}

/// Returns the ways that compete for a key among `size` ranks, the static one first, and their number, which may be 1.
fn ways(key: Key, size: usize) -> ([Algorithm; 4], u8) {
    // The static way is the same for all lengths of a class.
    let slices = key.reduces() && has_slices(size, key.bytes());
    let first = Algorithm { slices, ..Algorithm::default() };
    let mut list = [first; 4];
    let mut len = 1;
    let mut add = |way| {
        list[len] = way;
        len += 1;
    };
    // All user's functions share the keys, and the costs of two functions may differ by any factor. With more than two
    // ranks, whole vectors need far more calls of the function, so they are no way: a cheap function could choose them
    // for an expensive one.
    if key.reduces() && !(slices && key.calls_a_user()) {
        add(Algorithm { slices: !slices, ..first });
    }
    // Shorter data fit in one piece of either length.
    if key.bytes() > BUSY_PIECE {
        add(Algorithm { other_pieces: true, ..first });
    }
    // By messages, any thread that waits may run a user's function. A function that makes a call on the same
    // communicator, by mistake, then gets no error, and may wait for ever.
    if !key.calls_a_user() {
        add(Algorithm { messages: true, ..Algorithm::default() });
    }
    (list, len as u8)
}

/// What one rank knows about the choices of a communicator.
pub(super) struct Choices {
    rank: usize,
    size: usize,
    /// Number of calls that a rank may be ahead of another.
    lead: u64,
    /// False if a rank has switched measurements off (`TYPEPACK_TUNE`).
    measures: bool,
    /// The state of rank 0.
    leader: Option<Leader>,
}

/// How a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub way: Algorithm,
    /// The ranks store when they begin and end this call.
    pub is_timed: bool,
}

/// A call with a key, as all ranks know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Competition {
    pub key: Key,
    /// The number of the call on the communicator.
    pub call: u64,
    /// Number of bytes of each rank; in an alltoall, of each part.
    pub bytes: u64,
}

impl Choices {
    /// Returns the state of rank `rank` of `size` ranks before the first call. All ranks pass the same `size`, `lead`
    /// and `measures`. Rank 0 begins with the ways in its `store`, and notes the best ways there.
    pub(super) fn new(
        (rank, size): (usize, usize),
        lead: u64,
        measures: bool,
        (site, store): (Site, &'static Store),
    ) -> Self {
        let leader = (rank == 0).then(|| Leader {
            size,
            site,
            store,
            keys: Vec::new(),
            samples: VecDeque::new(),
        });
        Self { rank, size, lead, measures, leader }
    }

    /// Returns whether the ways of this operation compete.
    #[inline]
    pub(super) fn compete(&self, name: CollectiveName) -> bool {
        self.measures
            && Settings::current()
                .is_some_and(|settings| settings.collectives.of(name) == CollectiveMethod::Auto)
    }

    /// Returns the number of the call that all other ranks must have ended before this rank asks for the way of call
    /// `call`. The number is 0 if there is no such call.
    #[inline]
    pub(super) fn awaited(&self, call: u64) -> u64 {
        call.saturating_sub(self.lead)
    }

    /// Returns how a call goes. All other ranks have ended the call of [`awaited`](Self::awaited). `have_ended` returns
    /// whether all other ranks have ended a call.
    #[inline]
    pub(super) fn choose<M: DecisionMemory>(
        &mut self,
        memory: &M,
        competition: &Competition,
        have_ended: impl FnMut(u64) -> bool,
    ) -> Choice {
        let Competition { key, call, .. } = *competition;
        let (list, len) = ways(key, self.size);
        if len == 1 {
            return Choice { way: list[0], is_timed: false };
        }
        if let Some(leader) = &mut self.leader {
            leader.collect(memory, call, have_ended);
            leader.decide(memory, competition, (list, len), self.lead);
        }
        let entry = entry_of(memory, key, call);
        let way = (entry & (LOOK - 1)).min(u64::from(len) - 1) as u8;
        let is_timed = entry & LOOK != 0 || is_often_timed(call);
        if let Some(leader) = &mut self.leader {
            if is_timed {
                leader.expect(competition, way);
            } else {
                leader.pass(key);
            }
        }
        Choice { way: list[usize::from(way)], is_timed }
    }

    /// Stores when this rank has begun and ended call `call`, as seconds on a clock that all ranks share.
    pub(super) fn store<M: DecisionMemory>(&self, memory: &M, call: u64, begin: f64, end: f64) {
        let word = |word| memory.time(self.rank, call as usize % TIMES, word);
        // The stores are Relaxed except the last one, so that a reader that sees the number also sees the times.
        word(0).store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        word(1).store(begin.to_bits(), Ordering::Relaxed);
        word(2).store(end.to_bits(), Ordering::Relaxed);
        word(0).store(call, Ordering::Release);
    }

    fn chosen(&self) -> impl Iterator<Item = &Chosen<Algorithm>> {
        let keys = self.leader.iter().flat_map(|leader| leader.keys.iter().flatten());
        keys.map(|state| &state.choice)
    }

    /// Returns what has been measured for each key. Only rank 0 has anything.
    pub(super) fn measured(&self) -> Vec<Measured> {
        self.chosen().map(Chosen::measured).collect()
    }

    /// Returns one line for each key whose ways rank 0 has compared. Other ranks have no lines.
    pub(super) fn report(&self) -> Vec<String> {
        self.chosen().filter(|choice| choice.is_compared()).map(Chosen::line).collect()
    }
}

/// Returns the entry of a call: the one with the largest number that is not above the number of the call.
#[inline]
fn entry_of<M: DecisionMemory>(memory: &M, key: Key, call: u64) -> u64 {
    let of = |entry| memory.entry(key.index(), entry).load(Ordering::Relaxed);
    let holds = |entry: &u64| entry >> ENTRY_BITS <= call;
    (0..ENTRIES).map(of).filter(holds).max().unwrap_or(0)
}

/// A timed call whose times rank 0 will read.
struct Sample {
    call: u64,
    key: Key,
    bytes: u64,
    way: u8,
}

/// The state of a key at rank 0.
struct KeyState {
    key: Key,
    choice: Chosen<Algorithm>,
    /// The way of the last entry that is not a look.
    present: u8,
    /// The number of the call from which on all entries hold.
    holds_from: u64,
    /// The place of the next entry.
    next: usize,
    /// The number of the last call with the key.
    last: u64,
    /// The last distances between calls with the key. The shortest one tells how far a look must reach: a pause of the
    /// program must not make a look longer.
    distances: [u64; DISTANCES],
}

impl KeyState {
    fn announce<M: DecisionMemory>(&mut self, memory: &M, from: u64, entry: u64) {
        let word = memory.entry(self.key.index(), self.next);
        // The ranks that use the entry have seen that rank 0 has ended this call, which orders the store.
        word.store(from << ENTRY_BITS | entry, Ordering::Relaxed);
        self.next = (self.next + 1) % ENTRIES;
        self.holds_from = from;
    }
}

/// What rank 0 keeps.
struct Leader {
    /// Number of ranks, and where they run.
    size: usize,
    site: Site,
    store: &'static Store,
    keys: Vec<Option<Box<KeyState>>>,
    samples: VecDeque<Sample>,
}

impl Leader {
    fn state(
        &mut self,
        competition: &Competition,
        (list, len): ([Algorithm; 4], u8),
    ) -> &mut KeyState {
        let Competition { key, call, .. } = *competition;
        if self.keys.is_empty() {
            self.keys.resize_with(KEYS, || None);
        }
        let Self { size, site, store, .. } = *self;
        self.keys[key.index()].get_or_insert_with(|| {
            let ways = list[..usize::from(len)].to_vec();
            let choice = Chosen::new(key.at(size, site), ways, || None, Some(store));
            Box::new(KeyState {
                key,
                choice,
                present: 0,
                holds_from: 0,
                next: 0,
                last: call.saturating_sub(1),
                distances: [FARTHEST; DISTANCES],
            })
        })
    }

    /// Announces a look, or another present way, if the chooser wants it and the entries so far hold.
    fn decide<M: DecisionMemory>(
        &mut self,
        memory: &M,
        competition: &Competition,
        ways: ([Algorithm; 4], u8),
        lead: u64,
    ) {
        let call = competition.call;
        let state = self.state(competition, ways);
        state.distances.rotate_right(1);
        state.distances[0] = (call - state.last.min(call)).clamp(1, FARTHEST);
        state.last = call;
        let distance = state.distances.iter().fold(FARTHEST, |least, next| least.min(*next));
        let pick = state.choice.pick_uncharged();
        if call < state.holds_from {
            return;
        }
        let best = state.choice.best();
        let from = call + lead;
        if pick.way != best {
            let calls = match (state.choice.median(pick.way), state.choice.median(best)) {
                (None, _) => SHORT_LOOK,
                (Some(other), Some(present)) if other / 2 > present => 1,
                _ => LONG_LOOK,
            };
            state.announce(memory, from, LOOK | u64::from(pick.way));
            state.announce(memory, from + calls * distance, u64::from(best));
        } else if best != state.present {
            state.announce(memory, from, u64::from(best));
        }
        state.present = best;
    }

    /// Takes note of a call that is not timed.
    fn pass(&mut self, key: Key) {
        if let Some(Some(state)) = self.keys.get_mut(key.index()) {
            state.choice.charge_untimed();
        }
    }

    /// Remembers a timed call.
    fn expect(&mut self, competition: &Competition, way: u8) {
        let Competition { key, call, bytes, .. } = *competition;
        if self.samples.len() == TIMES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { call, key, bytes, way });
    }

    /// Reports the costs of the timed calls that all ranks have ended. `call` is the present call.
    fn collect<M: DecisionMemory>(
        &mut self,
        memory: &M,
        call: u64,
        mut have_ended: impl FnMut(u64) -> bool,
    ) {
        let size = self.size;
        // A rank may be some time behind. If rank 0 asked at once, each question would fetch a line of each rank.
        while let Some(sample) = self.samples.front().filter(|sample| sample.call + 1 < call)
            && have_ended(sample.call)
        {
            let time = seconds(memory, size, sample.call);
            if let (Some(time), Some(Some(state))) = (time, self.keys.get_mut(sample.key.index())) {
                let time = Duration::from_secs_f64(time);
                state.choice.took(sample.way, time, sample.bytes);
            }
            self.samples.pop_front();
        }
    }
}

/// Returns the time from the last begin to the last end of a call in seconds, if all ranks have stored their times.
fn seconds<M: DecisionMemory>(memory: &M, size: usize, call: u64) -> Option<f64> {
    let place = call as usize % TIMES;
    let (mut begin, mut end) = (f64::MIN, f64::MIN);
    for rank in 0..size {
        let time = |word| f64::from_bits(memory.time(rank, place, word).load(Ordering::Relaxed));
        if memory.time(rank, place, 0).load(Ordering::Acquire) != call {
            return None;
        }
        (begin, end) = (begin.max(time(1)), end.max(time(2)));
        fence(Ordering::Acquire);
        if memory.time(rank, place, 0).load(Ordering::Relaxed) != call {
            return None;
        }
    }
    // Other ranks can store anything. A negative or infinite time is no time.
    let time = end - begin;
    (0.0..=1e6).contains(&time).then_some(time)
}

#[cfg(test)]
mod tests;
