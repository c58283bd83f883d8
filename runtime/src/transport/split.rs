//! Long messages between private memories: each rank copies a part straight from one to the other.
//!
//! The sender's offer says at which address its data lies. The receiver reads pieces from the start
//! (`process_vm_readv`), and tells the sender where they go, who writes pieces from the end
//! (`process_vm_writev`), until they meet (`shm/claims.rs`): two cores copy, once, and whoever comes
//! late leaves the work to the other. Both sides have to be one run of memory; `choice.rs` says for which
//! messages this pays.
//!
//! Whether the system lets one rank access the memory of another is found out once per pair by doing
//! it: every rank that allows it shows in its slot a number and where in its memory that stands
//! ([`Access`]). If it does not work, the sender packs as usual and nobody notices.
//!
//! A rank that takes its memory back in the middle is never left with somebody reading or writing
//! it: the sender withdraws the offer as in `fetch.rs`; the receiver claims what is left and waits
//! for the piece that the sender has in hand.
//!
//! Invariants: an address that another rank has sent is used for nothing but a call in which the
//! kernel checks it against that rank's memory; lengths come from the message alone.

use super::fabric::{Area, Fabric};
use super::fetch::Fetches;
use super::peer::broken;
use crate::endpoint::requests::{Requests, SendStage};
use crate::message::Status;
use crate::message::payload::{Sink, Supply};
use crate::shm::claims;
use crate::shm::ring::Violation;
use crate::sys::cma::{self, Range, Way};
use crate::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU32;

/// Pieces of a message, where that makes pieces of allowed sizes.
const PIECES: u64 = 8;

/// Shortest piece in bytes: a call costs 0.5 to 1 us, which is what 16 KiB take.
const PIECE_MIN: u64 = 32 << 10;

/// Longest piece in bytes, so that a turn ends within some 100 us; longer in messages of terabytes.
const PIECE_MAX: u64 = 1 << 20;

/// Whether this rank can access the memory of another one.
#[derive(Clone, Copy, Debug, Default)]
pub enum Access {
    /// Nobody has tried.
    #[default]
    Unknown,
    /// The process.
    Allowed(NonZeroU32),
    /// It cannot, or must not.
    Refused,
}

impl Access {
    /// The process of `rank`, if its memory can be accessed; tried once.
    pub fn process(&mut self, fabric: &Fabric, rank: usize) -> Option<NonZeroU32> {
        if matches!(self, Self::Unknown) {
            *self = try_access(fabric, rank).map_or(Self::Refused, Self::Allowed);
        }
        match self {
            Self::Allowed(process) => Some(*process),
            Self::Unknown | Self::Refused => None,
        }
    }
}

/// Reads the number that `rank` shows, and compares: the same process id may be another process in
/// another namespace.
#[cold]
fn try_access(fabric: &Fabric, rank: usize) -> Option<NonZeroU32> {
    let (process, at, number) = fabric.probe_of(rank)?;
    // What a slot says, any rank may have written: ours would have us write to our own memory. Tests
    // have two ranks in one process.
    if !cfg!(test) && process.get() == std::process::id() {
        return None;
    }
    let mut seen = [0u8; 8];
    let ours = [Range { at: seen.as_mut_ptr() as usize, len: seen.len() }];
    let theirs = [Range { at: usize::try_from(at).ok()?, len: seen.len() }];
    // SAFETY: the array is ours alone; a read may be from anywhere.
    unsafe { cma::copy(process, Way::Read, &ours, &theirs) }.ok()?;
    (u64::from_ne_bytes(seen) == number).then_some(process)
}

/// How a message of `total` bytes is cut: bytes of a piece, and pieces.
fn cut(total: u64) -> (u64, u64) {
    let least = total.div_ceil(claims::PIECES_MAX).max(PIECE_MIN);
    let len = (total / PIECES).next_multiple_of(4096).clamp(least, PIECE_MAX.max(least));
    (len, total.div_ceil(len))
}

/// The bytes of piece `index`.
fn piece(total: u64, index: u64) -> std::ops::Range<u64> {
    let (len, _) = cut(total);
    let start = index * len;
    start..total.min(start + len)
}

/// Copies a piece between the start of our run of memory and that of `process`.
///
/// # Safety
///
/// - The bytes of the range from `ours` are valid for what `way` does with them.
unsafe fn copy(
    process: NonZeroU32,
    way: Way,
    ours: u64,
    theirs: u64,
    bytes: &std::ops::Range<u64>,
) -> io::Result<()> {
    let range = |start: u64| -> io::Result<[Range; 1]> {
        let at = usize::try_from(start.wrapping_add(bytes.start));
        let len = usize::try_from(bytes.end - bytes.start);
        match (at, len) {
            (Ok(at), Ok(len)) => Ok([Range { at, len }]),
            _ => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        }
    };
    // SAFETY: the caller's promise.
    unsafe { cma::copy(process, way, &range(ours)?, &range(theirs)?) }
}

/// A message on its way to this rank.
#[derive(Debug)]
struct Incoming {
    receive: u64,
    offer: u64,
    /// Address of the first byte in the sender's memory.
    from: u64,
    /// Address of the first byte in ours.
    to: u64,
    total: u64,
    /// It is at the front, and the sender has been told.
    begun: bool,
    /// Pieces, counted from the end, of the sender that has given up, which we have read.
    mended: u64,
}

/// What a receiver has to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing has moved.
    Waiting,
    /// A piece has been copied.
    Moved,
    /// The sender of this offer is to be told number and address.
    Begin(u64, u16, u64),
    /// The message is complete, its offer to be answered.
    Done(u64),
    /// The memory cannot be read: the sender of this offer is to pack for this receive.
    Refused(u64, u64),
}

/// What this rank copies from one other.
#[derive(Debug, Default)]
pub struct Splits {
    access: Access,
    queue: VecDeque<Incoming>,
    number: u16,
}

impl Splits {
    /// Work left for [`Splits::work`].
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether the memory of `rank` can be read.
    pub fn can(&mut self, fabric: &Fabric, rank: usize) -> bool {
        self.access.process(fabric, rank).is_some()
    }

    /// The receive has matched the offer of `total` bytes at the address `from` of the sender, and
    /// takes them into the run of memory at `to`, after those before it.
    pub fn start(&mut self, receive: u64, offer: u64, from: u64, to: u64, total: u64) {
        let begun = false;
        self.queue.push_back(Incoming { receive, offer, from, to, total, begun, mended: 0 });
    }

    /// The sender has taken the memory of an offer back, and copies no more of it. Gives the
    /// receive that was waiting for it.
    pub fn withdraw(&mut self, area: &Area, offer: u64) -> Option<u64> {
        let at = self.queue.iter().position(|incoming| incoming.offer == offer)?;
        let incoming = self.queue.remove(at)?;
        if incoming.begun {
            let _theirs = claims::close(area, self.number, cut(incoming.total).1);
        }
        Some(incoming.receive)
    }

    /// Takes the memory of a receive back: when this returns, the sender writes none of it, and
    /// will not. Waits for the end of a piece if it is writing one, unless it has died.
    pub fn take_back(&mut self, fabric: &Fabric, area: &Area, rank: usize, receive: u64) {
        let begun = |incoming: &&Incoming| incoming.begun && incoming.receive == receive;
        let Some(incoming) = self.queue.front().filter(begun) else { return };
        self.stop_sender(fabric, area, rank, incoming.total);
    }

    /// Claims all that is left, and waits for the piece that the sender has in hand. The death of any
    /// other rank ends an operation, but not that piece.
    fn stop_sender(&self, fabric: &Fabric, area: &Area, rank: usize, total: u64) {
        let theirs = claims::close(area, self.number, cut(total).1);
        fabric.wait_for_piece(rank, || {
            let (count, given_up) = claims::pushed(area, self.number);
            count < theirs && !given_up
        });
    }

    /// Copies a piece, or sees what is missing.
    ///
    /// # Errors
    /// The sender broke the protocol.
    pub fn work(
        &mut self,
        fabric: &Fabric,
        area: &Area,
        rank: usize,
        requests: &mut Requests,
        fetches: &mut Fetches,
    ) -> Result<Step> {
        let Some(next) = self.queue.front_mut() else { return Ok(Step::Waiting) };
        let Some(receive) = requests.receive(next.receive) else { return Err(lost()) };
        let Some((tag, total, _)) = receive.stream else { return Err(lost()) };
        let (_, pieces) = cut(total);
        let discarded = matches!(receive.sink, Sink::Discard);
        if !discarded {
            let Access::Allowed(process) = self.access else {
                return Ok(self.give_up(fabric, area, rank));
            };
            if !next.begun {
                next.begun = true;
                self.number = claims::open_next(area, self.number);
                return Ok(Step::Begin(next.offer, self.number, next.to));
            }
            if !fetches.begin(area, rank)? {
                return Ok(Step::Waiting);
            }
            // Our own from the start, else one that the sender has given up.
            let mine = claims::claim_front(area, self.number, pieces);
            let (theirs, (count, given_up)) = match mine {
                Some(_) => (0, (0, false)),
                None => {
                    (claims::close(area, self.number, pieces), claims::pushed(area, self.number))
                }
            };
            let mended = count + next.mended;
            let index = mine.or((given_up && mended < theirs).then(|| pieces - 1 - mended));
            if let Some(index) = index {
                let bytes = piece(total, index);
                // SAFETY: the receive's memory is one run of at least `total` bytes from `to`
                // (promise of `start`), valid until it is complete or detached, when its sink is
                // gone; the piece is claimed, so that the sender does not write it.
                let copied = unsafe { copy(process, Way::Read, next.to, next.from, &bytes) };
                fetches.end(area);
                if copied.is_ok() {
                    next.mended += u64::from(mine.is_none());
                    return Ok(Step::Moved);
                }
                return Ok(self.give_up(fabric, area, rank));
            }
            fetches.end(area);
            if count > theirs {
                return Err(broken(rank, Violation("more pieces than were claimed")));
            }
            if count < theirs && !given_up {
                return Ok(Step::Waiting);
            }
        }
        let (offer, id) = (next.offer, next.receive);
        requests.complete(id, Ok(Status { source: rank, tag, bytes: total }));
        self.queue.pop_front();
        Ok(Step::Done(offer))
    }

    /// What could be read once cannot be read any more (another user by now, a filter, memory that
    /// is not there): as if it had never been possible, as soon as the sender writes no more.
    #[cold]
    fn give_up(&mut self, fabric: &Fabric, area: &Area, rank: usize) -> Step {
        self.access = Access::Refused;
        let Some(next) = self.queue.pop_front() else { return Step::Waiting };
        if next.begun {
            self.stop_sender(fabric, area, rank, next.total);
        }
        Step::Refused(next.receive, next.offer)
    }
}

/// A message of this rank that its receiver has begun to read.
#[derive(Debug)]
struct Push {
    id: u64,
    number: u16,
    /// Address of the first byte in the receiver's memory.
    to: u64,
    finished: u64,
}

/// What this rank copies to one other.
#[derive(Debug, Default)]
pub struct Pushes {
    access: Access,
    queue: VecDeque<Push>,
}

impl Pushes {
    /// Work left for [`Pushes::work`].
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The receiver of this send begins transfer `number`, into its memory at `to`.
    pub fn start(&mut self, id: u64, number: u16, to: u64) {
        self.queue.push_back(Push { id, number, to, finished: 0 });
    }

    /// No more of this send is copied.
    pub fn stop(&mut self, id: u64) {
        self.queue.retain(|push| push.id != id);
    }

    /// Copies a piece. True when something moved.
    pub fn work(
        &mut self,
        fabric: &Fabric,
        area: &Area,
        rank: usize,
        requests: &mut Requests,
    ) -> bool {
        let Some(next) = self.queue.front_mut() else { return false };
        // A send that is complete, or that is packed by now, needs no help.
        let send = requests.send(next.id);
        let Some(send) = send.filter(|send| send.located && send.stage == SendStage::Offered)
        else {
            self.queue.pop_front();
            return true;
        };
        let Supply::Memory(layout) = &send.supply else {
            self.queue.pop_front();
            return true;
        };
        let total = send.label.bytes;
        let (_, pieces) = cut(total);
        let claimed = self
            .access
            .process(fabric, rank)
            .and_then(|process| Some((process, claims::claim_back(area, next.number, pieces)?)));
        let Some((process, index)) = claimed else {
            self.queue.pop_front();
            return true;
        };
        let bytes = piece(total, pieces - 1 - index);
        // SAFETY: the send's memory is one run of `total` bytes from there (only such sends are
        // offered with an address), valid until it is complete or detached.
        let copied = unsafe { copy(process, Way::Write, layout.first(), next.to, &bytes) };
        next.finished += u64::from(copied.is_ok());
        claims::push(area, next.number, next.finished, copied.is_err());
        fabric.ring(rank);
        if copied.is_err() {
            self.access = Access::Refused;
            self.queue.pop_front();
        }
        true
    }
}

#[cold]
fn lost() -> Error {
    Error::new(ErrorKind::Internal, "transport", "a message that is being copied was lost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_message() {
        for total in [1, 4095, 65_536, 65_537, 1 << 20, (1 << 20) + 3, 5 << 30, 1 << 50, 1 << 62] {
            let (len, pieces) = cut(total);
            assert!(pieces <= claims::PIECES_MAX && len >= PIECE_MIN, "{total}");
            assert_eq!(piece(total, 0).start, 0);
            assert_eq!(piece(total, pieces - 1).end, total);
            for index in [1, pieces / 2, pieces - 1] {
                if (1..pieces).contains(&index) {
                    assert_eq!(piece(total, index - 1).end, piece(total, index).start);
                    assert!(!piece(total, index).is_empty());
                }
            }
        }
    }
}
