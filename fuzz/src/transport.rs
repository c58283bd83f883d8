//! Checks two ranks that exchange messages while a third party writes into their shared memory.
//!
//! The layouts come from `generate.rs`. Both ranks are real (`typepack::RankPair`). Most of their
//! messages are real, too, and have random types. Some are sent at once, some go out in fragments, some wait for
//! the receiver, some are streamed in pieces, and some are fetched from the shared heap. The ranks take turns: in its
//! turn, a rank processes the messages that have arrived. Between two turns the third party, called the
//! *hand*, forges envelopes (the headers of messages) and changes words of the shared memory. It prefers
//! message slots, payloads (including encoded types), stamps (the sequence numbers of slots), lengths,
//! credits (which limit how much may be sent) and mailboxes. In some cases the ranks also check that the
//! types of a message agree. After a change by the hand, a rank may report that the other rank is at
//! fault, or receive wrong data. But whatever the hand does:
//!
//! - the memory of a send keeps its values, and a receive writes only the bytes that its type covers;
//! - no error has the kind [`ErrorKind::Internal`], which only a bug of typepack can cause;
//! - nothing panics.
//!
//! The caller of the check also verifies that no length from shared memory leads to a large allocation.

use crate::check::CANARY;
use crate::generate::{Case, MAX_TOUCHED, Mode};
use crate::guard::{Guarded, Side};
use crate::stream::Stream;
use arbitrary::Unstructured;
use std::ops::Range;
use typepack::{Error, ErrorKind, Plan, RankPair, RankPairWays as Ways, Source, Tag};
use typepack_engine::{Datatype, Elements, Named};

/// Maximum number of sends and receives in a case, not counting bursts.
const OPERATIONS: usize = 8;

/// Fill value of memory that a receive must not touch, and of all memory between cases.
const KEPT: u8 = 0xc3;

/// Counts of what happened in the cases so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fates {
    /// Number of cases in which a rank reported an error that the hand had caused.
    pub refused: u64,
    /// Number of operations that were started.
    pub started: u64,
    /// Number of operations that completed without an error, or that left no request to wait for.
    pub complete: u64,
    /// Number of changes that the hand made to shared memory.
    pub written: u64,
}

/// A committed type, a count, and a map of the bytes of memory that are data.
#[derive(Clone)]
struct Layout {
    plan: Plan,
    count: u64,
    /// Displacement of the first touched byte.
    low: i64,
    /// One entry per byte from the first to the last touched byte; true if the byte is data.
    data: Vec<bool>,
}

/// A send or a receive, and its memory.
struct Operation {
    rank: usize,
    receive: bool,
    id: Option<u64>,
    memory: usize,
    place: Range<usize>,
    data: Vec<bool>,
    before: Vec<u8>,
}

/// Checks cases one after another, and uses the same memory for all of them.
pub struct TransportChecker {
    memory: Vec<Guarded>,
    /// Counts of what happened in the cases so far.
    pub fates: Fates,
}

impl Default for TransportChecker {
    fn default() -> Self {
        Self::new()
    }
}

impl TransportChecker {
    /// Makes a checker.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses to allocate or to protect a few MiB of memory.
    pub fn new() -> Self {
        let guarded =
            |_| Guarded::new(MAX_TOUCHED as usize + CANARY).expect("guarded memory must be mapped");
        let mut memory: Vec<Guarded> = (0..OPERATIONS).map(guarded).collect();
        memory.iter_mut().for_each(|guarded| guarded.whole().fill(KEPT));
        Self { memory, fates: Fates::default() }
    }

    /// Runs one case, with choices from the bytes of `u`. If the bytes run out, every choice is the
    /// simplest one.
    pub fn check(&mut self, u: &mut Unstructured<'_>) -> Result<(), String> {
        let mut choose = || -> arbitrary::Result<_> {
            let limit = *u.choose(&[0, 64, 1024, 8192])?;
            let ways =
                *u.choose(&[Ways::Any, Ways::Packed, Ways::Parts, Ways::Heap, Ways::Heap])?;
            let focus =
                *u.choose(&[Focus::Envelopes, Focus::Chunks, Focus::Credits, Focus::All])?;
            Ok((limit, ways, focus, u.int_in_range(4..=60_u8)?, u.ratio(1, 4)?))
        };
        let Ok((limit, ways, focus, steps, check)) = choose() else { return Ok(()) };
        // SAFETY: a rank may read and write any byte of the two heaps. Only buffers of this check lie
        // in the heaps, and the check does not rely on the contents of these buffers.
        let mut pair = unsafe { RankPair::new(limit, ways) }.map_err(|e| format!("no job: {e}"))?;
        if check {
            pair.check_types();
        }
        let mut game = Game {
            pair,
            focus,
            memory: &mut self.memory,
            fates: &mut self.fates,
            operations: Vec::new(),
            last: None,
            broken: [false; 2],
        };
        for _ in 0..steps {
            // If no choice can be drawn, the case ends.
            let Ok(step) = u.int_in_range(0..=15_u8) else { break };
            match step {
                0..=3 => game.start(u)?,
                // The hand acts after one rank has written to shared memory and before the other rank
                // reads it.
                4..=6 => {
                    game.start(u)?;
                    game.hand(u);
                    game.turn(0)?;
                    game.turn(1)?;
                }
                7..=9 => {
                    game.turn((step % 2).into())?;
                    game.hand(u);
                    game.turn((1 - step % 2).into())?;
                }
                10 => game.hand(u),
                11 => game.cancel_receive(u),
                12 => game.burst(u)?,
                _ => {
                    for _ in 0..=step % 3 {
                        game.turn((step % 2).into())?;
                    }
                }
            }
        }
        for _ in 0..30 {
            game.turn(0)?;
            game.turn(1)?;
        }
        game.end()
    }
}

/// Selects the part of the shared memory that the hand changes most often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Focus {
    Envelopes,
    Chunks,
    Credits,
    All,
}

struct Game<'a> {
    pair: RankPair,
    focus: Focus,
    memory: &'a mut [Guarded],
    fates: &'a mut Fates,
    operations: Vec<Operation>,
    /// The last operation: its rank, true if it was a receive, and its layout.
    last: Option<(usize, bool, Layout)>,
    broken: [bool; 2],
}

/// Returns an error if `error` is of the kind [`ErrorKind::Internal`], which hostile memory must never
/// cause.
fn fair(what: &str, error: &Error) -> Result<(), String> {
    match error.kind() {
        ErrorKind::Internal => Err(format!("{what}: {error}")),
        _ => Ok(()),
    }
}

/// Makes a random layout: either a type from `generate.rs`, or rows of bytes, which make long messages.
fn layout(u: &mut Unstructured<'_>) -> arbitrary::Result<Option<Layout>> {
    if u.ratio(2, 3)? {
        let mode = *u.choose(&[Mode::Regular, Mode::Any, Mode::Tiny])?;
        let case = Case::generate(u, mode)?;
        let Some(model) = case.model() else { return Ok(None) };
        let (low, high) = model.touched(case.count).unwrap_or((0, 0));
        let mut data = vec![false; (high - low) as usize];
        for address in model.addresses(case.count) {
            data[(address - low) as usize] = true;
        }
        let plan = case.recipe.build().and_then(|ty| ty.commit());
        return Ok(plan.ok().map(|plan| Layout { plan, count: case.count, low, data }));
    }
    let (rows, width) = (u.int_in_range(1..=64_usize)?, u.int_in_range(1..=4096_usize)?);
    let gap = *u.choose(&[0, 0, 1, 64, 1000])?;
    let stride = (width + gap) as i64;
    let bytes = Datatype::named(Named::U8);
    let plan = Datatype::hvector(rows as i64, width as i64, stride, &bytes)
        .and_then(|ty| ty.commit())
        .ok();
    let len = (rows - 1) * (width + gap) + width;
    let data = (0..len).map(|at| at % (width + gap) < width).collect();
    Ok(plan.map(|plan| Layout { plan, count: 1, low: 0, data }))
}

impl Game<'_> {
    fn start(&mut self, u: &mut Unstructured<'_>) -> Result<(), String> {
        // About half of the operations are the counterpart of the last operation: after a send, a
        // receive with the same layout on the other rank; after a receive, a send with the same layout
        // on the other rank. The other operations have new layouts.
        let last = self.last.take().filter(|_| u.ratio(1, 2).unwrap_or(false));
        let choose = || -> arbitrary::Result<_> {
            let choice = u.int_in_range(0..=255_u8)?;
            Ok(match last {
                Some((rank, receive, layout)) => {
                    let other = u8::from(rank == 0) | u8::from(!receive) << 1;
                    (choice & 0b1001_0100 | other, Some(layout))
                }
                None => (choice, layout(u)?),
            })
        };
        let Ok((choice, Some(layout))) = choose() else { return Ok(()) };
        let memory = self.operations.len();
        let len = layout.data.len();
        if memory == OPERATIONS || len > self.memory[memory].capacity() - CANARY {
            return Ok(());
        }
        let (rank, receive) = (usize::from(choice & 1), choice & 2 != 0);
        let (shared, tag) = (choice & 4 != 0, i32::from(choice >> 3 & 1));
        if self.broken[rank] {
            return Ok(());
        }
        let side = if choice & 16 == 0 { Side::Front } else { Side::Back };
        let place = self.memory[memory].place(len, side);
        let whole = self.memory[memory].whole();
        Stream::new(5, len as u64).fill(&mut whole[place.clone()]);
        let before = whole[place.clone()].to_vec();
        let mut start = whole[place.clone()].as_mut_ptr();
        // If `shared` is true, the memory of this operation is in the rank's heap. `end` does not check
        // memory in the heap, because the other rank may write there.
        if shared {
            let Some(room) = self.pair.shared(rank, len) else { return Ok(()) };
            // SAFETY: `before` has `len` bytes, and `shared` has just allocated `room` with `len` bytes
            // in the rank's heap. So nothing else uses `room`, and `before` and `room` do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(before.as_ptr(), room, len) };
            start = room;
        }
        let origin = start.wrapping_offset(-layout.low as isize);
        let elements = Elements::new(origin, &layout.plan, layout.count);
        let tags = if choice & 32 == 0 { Tag::Any } else { Tag::Is(tag) };
        let source = if choice & 64 == 0 { Source::Any } else { Source::Rank(1 - rank) };
        // SAFETY: the memory at `origin` holds all bytes that the elements touch according to the
        // model, and nothing else uses that memory until `end` drops the pair of ranks.
        let started = unsafe {
            if receive {
                self.pair.receive(rank, elements, source, tags)
            } else {
                self.pair.send(rank, elements, tag, choice & 128 != 0)
            }
        };
        self.fates.started += 1;
        let id = match started {
            Ok(id) => id,
            Err(error) => {
                fair("start", &error)?;
                // Without the hand, a start fails only if it is a receive with a buffer that is too
                // small. After any other error the rank takes no further part.
                self.broken[rank] |= error.kind() != ErrorKind::Truncated;
                None
            }
        };
        self.last = Some((rank, receive, layout.clone()));
        let data = layout.data;
        self.operations.push(Operation { rank, receive, id, memory, place, data, before });
        Ok(())
    }

    fn turn(&mut self, rank: usize) -> Result<(), String> {
        if self.broken[rank] {
            return Ok(());
        }
        if let Err(error) = self.pair.turn(rank) {
            fair("turn", &error)?;
            self.broken[rank] = true;
        }
        Ok(())
    }

    fn cancel_receive(&mut self, u: &mut Unstructured<'_>) {
        let Ok(at) = u.choose_index(self.operations.len().max(1)) else { return };
        let Some(operation) = self.operations.get_mut(at) else { return };
        if let (Some(id), true, false) =
            (operation.id, operation.receive, self.broken[operation.rank])
            && self.pair.cancel_receive(operation.rank, id)
        {
            operation.id = None;
        }
    }

    /// Sends many small messages, which fill all message slots, or fewer long messages, which fill the
    /// payload area.
    fn burst(&mut self, u: &mut Unstructured<'_>) -> Result<(), String> {
        static BYTES: [u8; 8192] = [9; 8192];
        let mut choose = || -> arbitrary::Result<_> {
            let (count, len) = *u.choose(&[(300, 8), (20, 8192), (70, 1000)])?;
            Ok((usize::from(u.arbitrary::<bool>()?), count, len))
        };
        let Ok((rank, count, len)) = choose() else { return Ok(()) };
        let plan = Datatype::named(Named::U8).commit().map_err(|e| format!("bytes: {e}"))?;
        for _ in 0..count {
            if self.broken[rank] {
                break;
            }
            // SAFETY: `BYTES` is a static that nothing writes, and `len` is at most its length.
            let sent = unsafe {
                self.pair.send(rank, Elements::new(BYTES.as_ptr(), &plan, len), 2, false)
            };
            if let Err(error) = sent {
                fair("send", &error)?;
                self.broken[rank] = true;
            }
        }
        Ok(())
    }

    /// Lets the hand make one change to shared memory.
    fn hand(&mut self, u: &mut Unstructured<'_>) {
        // If no choice can be drawn, the hand changes nothing.
        let _ = self.try_hand(u);
    }

    fn try_hand(&mut self, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
        let [slots_at, payload_at, stamps_at, chunks_at, end] = RankPair::PARTS;
        let [slots, slot_bytes, chunks, line] = RankPair::SLOTS;
        let from = usize::from(u.arbitrary::<bool>()?);
        let to = 1 - from;
        // Finds the newest slot, which has the largest stamp. Ignores stamps of 1000 and more, because
        // the hand has probably made them up.
        let stamp = |slot: usize| {
            let stamp = self.pair.word(from, to, slots_at + slot * slot_bytes);
            if stamp < 1000 { stamp } else { 0 }
        };
        let last = (0..slots).max_by_key(|slot| stamp(*slot)).unwrap_or(0);
        let stamp = stamp(last);
        let chosen = match self.focus {
            _ if u.ratio(1, 4)? => u.int_in_range(0..=9_u8)?,
            Focus::Envelopes => *u.choose(&[0, 1, 3, 6])?,
            Focus::Chunks => *u.choose(&[4, 4, 3])?,
            Focus::Credits => 5,
            Focus::All => u.int_in_range(0..=9_u8)?,
        };
        let at = match chosen {
            // Changes a word of an envelope that has been written and perhaps already read. Most often,
            // this is the newest envelope.
            0..=2 => {
                let back = *u.choose(&[0, 0, 0, 1, 2, 3])?;
                let slot = (last + slots - back) % slots;
                slots_at + slot * slot_bytes + 8 * u.int_in_range(0..=7_usize)?
            }
            3 => return self.forge(u, (from, to), (last + 1) % slots, stamp + 1),
            // Changes a word that describes a chunk (a piece of a streamed message): the stamp, the length or
            // the place.
            4 => {
                let newest = |chunk: &usize| self.pair.word(from, to, stamps_at + chunk * line);
                let chunk = match u.ratio(2, 3)? {
                    true => (0..chunks).max_by_key(newest).unwrap_or(0),
                    false => u.int_in_range(0..=chunks - 1)?,
                };
                let at = stamps_at + chunk * line + 8 * u.int_in_range(0..=2_usize)?;
                let old = self.pair.word(from, to, at);
                if u.arbitrary()? {
                    let chunk_bytes = RankPair::CHUNK as u64;
                    let long = [0, chunk_bytes, chunk_bytes + 1, old.wrapping_mul(2), u64::MAX];
                    self.pair.write(from, to, at, *u.choose(&long)?);
                    self.fates.written += 1;
                    return Ok(());
                }
                at
            }
            // Changes the credits, or another word that has a cache line of its own, such as the geometry of the pair.
            5 => line / 8 * u.int_in_range(0..=8_usize)? * 8 + 8 * u.int_in_range(0..=1_usize)?,
            // Changes a word near the start of the payload area, where cases with few messages write.
            6 | 7 => payload_at + 8 * u.int_in_range(0..=300_usize)?,
            8 => u.int_in_range(0..=chunks_at - 1)?,
            _ => {
                let mailbox = u.int_in_range(0..=1_usize)?;
                let at = 8 * u.int_in_range(0..=2_usize)?;
                self.write(mailbox, mailbox, at, u)?;
                return Ok(());
            }
        };
        debug_assert!(at < end);
        self.write(from, to, at, u)
    }

    /// Writes a word. The new value is close to the current value, or plausible for another word, or
    /// arbitrary.
    fn write(
        &mut self,
        from: usize,
        to: usize,
        at: usize,
        u: &mut Unstructured<'_>,
    ) -> arbitrary::Result<()> {
        let old = self.pair.word(from, to, at);
        let value = match u.int_in_range(0..=6_u8)? {
            0 => old.wrapping_add(1),
            1 => old.wrapping_sub(1),
            2 => old ^ 1 << u.int_in_range(0..=63_u8)?,
            3 => value(u)?,
            4 => u.int_in_range(0..=64)?,
            5 => self.pair.word(from, to, RankPair::PARTS[0] + u.int_in_range(0..=255_usize)?),
            _ => u.arbitrary()?,
        };
        self.pair.write(from, to, at, value);
        self.fates.written += 1;
        Ok(())
    }

    /// Writes a forged envelope, which no rank has sent, into slot `slot`.
    fn forge(
        &mut self,
        u: &mut Unstructured<'_>,
        (from, to): (usize, usize),
        slot: usize,
        stamp: u64,
    ) -> arbitrary::Result<()> {
        let at = RankPair::PARTS[0] + slot * RankPair::SLOTS[1];
        // Messages of kinds 5 to 9 name a request, and have an effect only if this request exists. So
        // they are drawn twice as often as other kinds.
        let kind = *u.choose(&[
            0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 11, 12, 13, 14, 15, 15, 16, 16,
        ])?;
        let tag = u.int_in_range(0..=2_u64)?;
        let mut words = [stamp, kind | tag << 32, 0, 0, 0, 0, 0, 0];
        words[2] = u64::from(u.ratio(1, 10)?);
        words[3] = if u.arbitrary()? { 0 } else { value(u)? };
        // The number of a request consists of a generation and a small index.
        words[4] = if u.ratio(3, 4)? { 1 << 32 | u.int_in_range(0..=5)? } else { value(u)? };
        words[5] = *u.choose(&[0, 1 << 32, 1 << 32 | 1, 1 << 32 | 0xffff_ffff, 2 << 32])?;
        words[6] = value(u)?;
        words[7] = value(u)?;
        if kind >= 15 && u.ratio(3, 4)? {
            // A message in fragments, or a part: lengths near those that are allowed.
            (words[3], words[4]) = (u.int_in_range(0..=40_000)?, u.int_in_range(0..=17_000)?);
        }
        for (i, word) in words.iter().enumerate().rev() {
            self.pair.write(from, to, at + 8 * i, *word);
        }
        self.fates.written += 1;
        Ok(())
    }

    /// Fetches the results, ends both ranks, and checks the memory of all operations.
    fn end(mut self) -> Result<(), String> {
        for operation in &self.operations {
            let done = match operation.id {
                Some(id) if !self.broken[operation.rank] => self.pair.fetch(operation.rank, id),
                Some(_) => None,
                None => {
                    self.fates.complete += 1;
                    None
                }
            };
            match done {
                Some(Ok(_)) => self.fates.complete += 1,
                Some(Err(error)) => fair("result", &error)?,
                None => {}
            }
        }
        // No rank runs after this line, so memory no longer changes.
        drop(self.pair);
        self.fates.refused += u64::from(self.broken != [false; 2]);
        for operation in &self.operations {
            let whole = self.memory[operation.memory].whole();
            let name = if operation.receive { "receive" } else { "send" };
            let Range { start, end } = operation.place;
            let near = (start.saturating_sub(CANARY), whole.len().min(end + CANARY));
            let beside = (near.0..start).chain(end..near.1);
            if let Some(at) = beside.into_iter().find(|&at| whole[at] != KEPT) {
                return Err(format!(
                    "the memory of a {name} is {start}..{end}, but byte {at} changed to {:#04x}",
                    whole[at]
                ));
            }
            let now = &whole[start..end];
            let changed = now.iter().zip(&operation.before).zip(&operation.data);
            let wrong = |((now, before), data): ((&u8, &u8), &bool)| {
                now != before && !(*data && operation.receive)
            };
            if let Some(at) = changed.into_iter().position(wrong) {
                let (before, now) = (operation.before[at], now[at]);
                return Err(format!(
                    "byte {at} of the memory of a {name} changed from {before:#04x} to {now:#04x}; \
                     it is not data that the operation may write"
                ));
            }
            whole[start..end].fill(KEPT);
        }
        Ok(())
    }
}

/// Returns a value near a limit of some part of the transport, to be used as a length, an offset or a
/// count.
fn value(u: &mut Unstructured<'_>) -> arbitrary::Result<u64> {
    let edge = *u.choose(&[
        0,
        1,
        8,
        32,
        33,
        64,
        8192,
        16_384,
        16_385,
        32_768,
        32_769,
        1 << 20,
        1 << 32,
        1 << 40,
        1 << 62,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
    ])?;
    Ok(match u.int_in_range(0..=3_u8)? {
        0 => edge.wrapping_sub(1),
        1 => edge.wrapping_add(u.int_in_range(0..=64)?),
        _ => edge,
    })
}
