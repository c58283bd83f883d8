//! Single copies: what a receiver fetches itself, from where it lies in the sender's heap; the sender
//! may help (`share.rs`).
//!
//! `endpoint/engine.rs` hands over offers that say where their data lies, asks `choice.rs`, and puts the
//! chosen ones into the queue here; [`Fetches::work`] copies a piece in every turn. `types.rs` has
//! the types that the sender speaks of.
//!
//! A sender may take its memory back before it has been read (a scope that panics): it counts that
//! in the word `withdrawn`, waits until `reading` is 0, and says with an envelope which offer it was.
//! The receiver sets `reading` before it looks at `withdrawn`, with a full fence between, as the
//! sender has one between its two: either the receiver sees the count and reads nothing until the
//! envelope has come, or the sender sees that it reads, and waits for the end of the piece.
//!
//! Invariants: what an offer says was checked against the sender's heap before it gets here; nothing
//! is read from the sender's memory but data, so whatever it does meanwhile changes values only.

use super::fabric::{Area, Fabric};
use super::peer::broken;
use super::share::{self, Share};
use super::types::{Known, Located};
use crate::endpoint::requests::Requests;
use crate::message::Status;
use crate::message::envelope::Place;
use crate::message::payload::{Sink, fetch};
use crate::shm::ring::Violation;
use crate::sync::Word;
use crate::sys::memory::Mapping;
use crate::{Error, ErrorKind, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Bytes that are copied before the other work gets its turn: a message of this size is fetched in
/// one go, and a turn ends within some 100 us.
pub const PIECE: u64 = 1 << 20;

/// A message on its way.
#[derive(Debug)]
struct Fetch {
    receive: u64,
    offer: u64,
    located: Located,
    done: u64,
    /// The sender helps.
    share: Option<Share>,
}

/// What this rank fetches from one other.
#[derive(Debug, Default)]
pub struct Fetches {
    known: Known,
    /// The sender's heap in this process, once it has been needed.
    heap: Option<Arc<Mapping>>,
    queue: VecDeque<Fetch>,
    /// Located offers that have not been answered, and whether they were withdrawn.
    open: HashMap<u64, bool>,
    /// Withdrawals that have come by envelope.
    withdrawals: u64,
    /// Shares opened so far.
    shares: u32,
}

impl Fetches {
    /// Work left for [`Fetches::work`].
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The sender has defined a type.
    ///
    /// # Errors
    /// [`Violation`] when it is none.
    pub fn define(&mut self, number: u32, encoding: &[u8]) -> std::result::Result<(), Violation> {
        self.known.define(number, encoding)
    }

    /// An offer says where its data lies.
    ///
    /// # Errors
    /// [`Violation`] when it cannot lie there.
    pub fn locate(
        &mut self,
        offer: u64,
        place: Place,
        bytes: u64,
        heap: u64,
    ) -> std::result::Result<Located, Violation> {
        let located = self.known.locate(place, bytes, heap)?;
        self.open.insert(offer, false);
        Ok(located)
    }

    /// The offer is being answered otherwise; nothing of it is fetched.
    pub fn answer(&mut self, offer: u64) {
        if !self.open.is_empty() {
            self.open.remove(&offer);
        }
    }

    /// Whether the offer has not been withdrawn.
    pub fn is_open(&self, offer: u64) -> bool {
        self.open.get(&offer) == Some(&false)
    }

    /// Whether data of the offer can be fetched: it has not been withdrawn, and the sender's heap
    /// is there.
    pub fn can(&mut self, fabric: &Fabric, rank: usize, offer: u64) -> bool {
        self.is_open(offer) && self.heap(fabric, rank).is_some()
    }

    /// Where all of the other rank's heap is mapped, from now on; `None` where the address space is
    /// too small.
    pub fn heap(&mut self, fabric: &Fabric, rank: usize) -> Option<*mut u8> {
        if self.heap.is_none() {
            self.heap = fabric.heap_of(rank).cloned();
        }
        self.heap.as_ref().map(|map| map.base().as_ptr())
    }

    /// The receiver of one of our messages of `bytes` packed bytes says where in its heap the data
    /// goes.
    ///
    /// # Errors
    /// [`Violation`] when there is no such place.
    pub fn room(
        &self,
        place: Place,
        bytes: u64,
        heap: u64,
    ) -> std::result::Result<Located, Violation> {
        self.known.room(place, bytes, heap)
    }

    /// Opens a share for the receive, if its message is the next to be fetched. Gives its number.
    pub fn share(&mut self, area: &Area, receive: u64) -> Option<u32> {
        let next = self.queue.front_mut().filter(|fetch| fetch.receive == receive)?;
        self.shares = self.shares.checked_add(1).unwrap_or(1);
        area.claims().store_release(share::word(self.shares, 0));
        next.share = Some(Share { number: self.shares, mine: 0 });
        Some(self.shares)
    }

    /// The memory of a receive is needed elsewhere: when this returns, the sender does not write
    /// there, and will not. Waits for the end of a piece if it is copying one, unless it has died.
    pub fn abandon(&mut self, area: &Area, fabric: &Fabric, rank: usize, receive: u64, bytes: u64) {
        let Some(fetch) = self.queue.iter_mut().find(|fetch| fetch.receive == receive) else {
            return;
        };
        let Some(share) = fetch.share.take() else { return };
        let claimed = share::close(area.claims(), share.number, share::pieces(bytes).1);
        let theirs = claimed.saturating_sub(share.mine);
        let end = share::word(share.number, theirs);
        fabric.wait_for_piece(rank, || theirs > 0 && area.pushed().load_acquire() != end);
    }

    /// The receive has matched the offer and takes its data itself, after those before it.
    pub fn start(&mut self, receive: u64, offer: u64, located: Located) {
        self.queue.push_back(Fetch { receive, offer, located, done: 0, share: None });
    }

    /// The sender has taken the memory of an offer back. Gives the receive that was fetching it.
    pub fn withdraw(&mut self, offer: u64) -> Option<u64> {
        self.withdrawals += 1;
        if let Some(at) = self.queue.iter().position(|fetch| fetch.offer == offer) {
            self.open.remove(&offer);
            return self.queue.remove(at).map(|fetch| fetch.receive);
        }
        // One that is not open has been answered: the two messages have crossed.
        if let Some(withdrawn) = self.open.get_mut(&offer) {
            *withdrawn = true;
        }
        None
    }

    /// Begins to read memory of the sender, which waits for [`Fetches::end`] before it takes any of
    /// it back; false while the envelope of a withdrawal has not come.
    ///
    /// # Errors
    /// The sender broke the protocol.
    pub fn begin(&self, area: &Area, rank: usize) -> Result<bool> {
        begin(area, rank, self.withdrawals)
    }

    /// Nothing of the sender is being read, until the next [`Fetches::begin`].
    pub fn end(&self, area: &Area) {
        area.reading().store_release(0);
    }

    /// Copies a piece. True when something moved, and the offer that is to be answered if it was
    /// the last piece.
    ///
    /// # Errors
    /// The sender broke the protocol.
    pub fn work(
        &mut self,
        area: &Area,
        rank: usize,
        requests: &mut Requests,
    ) -> Result<(bool, Option<u64>)> {
        let Some(next) = self.queue.front_mut() else { return Ok((false, None)) };
        let Some(heap) = &self.heap else { return Err(lost()) };
        let Some(receive) = requests.receive(next.receive) else { return Err(lost()) };
        let Some((tag, total, _)) = receive.stream else { return Err(lost()) };
        let mut moved = false;
        // Nobody wants the rest of what goes nowhere.
        let mut complete = matches!(receive.sink, Sink::Discard);
        if let Sink::Memory(to) = &receive.sink {
            if !begin(area, rank, self.withdrawals)? {
                return Ok((false, None));
            }
            let Located { ty, count, origin, .. } = &next.located;
            let memory = heap.base().as_ptr().wrapping_add(*origin as usize);
            let copy = |range| {
                // SAFETY: every call passes a range of the message, and
                // - the offer's elements have exactly `total` packed bytes and lie within the sender's
                //   heap (`Known::locate`), all of which is mapped and stays so; `total` fits the
                //   receive, whose memory is valid;
                // - they do not overlap: the receive's memory is this process's own, also where it lies
                //   in a heap, and no rank's heap is another's;
                // - other processes may write the source meanwhile: values may be any, and the engine
                //   computes no address from data.
                unsafe { fetch(memory, &ty.plan, *count, to, range) }
            };
            let turn_end = next.done + PIECE;
            match &mut next.share {
                None => {
                    let end = total.min(turn_end);
                    copy(next.done..end);
                    next.done = end;
                    moved = true;
                    complete = end == total;
                }
                Some(share) => {
                    let (piece, pieces) = share::pieces(total);
                    let mut left = true;
                    while next.done < turn_end {
                        let claimed = share::claim(area.claims(), share.number, pieces);
                        let Some(at) = claimed else {
                            left = false;
                            break;
                        };
                        let start = u64::from(at) * piece;
                        let end = total.min(start + piece);
                        copy(start..end);
                        share.mine += 1;
                        next.done += end - start;
                        moved = true;
                    }
                    if !left {
                        let theirs = pieces.saturating_sub(share.mine);
                        let pushed = area.pushed().load_acquire();
                        let counted = (pushed >> 32) as u32 == share.number;
                        if counted && pushed as u32 > theirs {
                            area.reading().store_release(0);
                            return Err(broken(rank, Violation("more pieces than were left")));
                        }
                        complete = theirs == 0 || counted && pushed as u32 == theirs;
                    }
                }
            }
            area.reading().store_release(0);
        }
        if !complete {
            return Ok((moved, None));
        }
        let offer = next.offer;
        requests.complete(next.receive, Ok(Status { source: rank, tag, bytes: total }));
        self.open.remove(&offer);
        self.queue.pop_front();
        Ok((true, Some(offer)))
    }
}

fn begin(area: &Area, rank: usize, withdrawals: u64) -> Result<bool> {
    area.reading().store_relaxed(1);
    // The two fences of this file's header; the other one is in `Tx::withdraw`.
    fence(Ordering::SeqCst);
    let withdrawn = area.withdrawn().load_acquire();
    if withdrawn == withdrawals {
        return Ok(true);
    }
    area.reading().store_release(0);
    if withdrawn < withdrawals {
        return Err(broken(rank, Violation("more withdrawals than were counted")));
    }
    Ok(false)
}

#[cold]
fn lost() -> Error {
    Error::new(ErrorKind::Internal, "transport", "a message that is being fetched was lost")
}

#[cfg(test)]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering, fence};

    /// The orders of `Fetches::work` and `Tx::withdraw` in every interleaving: the sender changes its
    /// memory while nobody reads it, or after the receiver was told not to.
    #[test]
    fn loom_withdrawal() {
        struct Pair {
            reading: AtomicU64,
            withdrawn: AtomicU64,
            memory: UnsafeCell<u64>,
        }
        loom::model(|| {
            let pair = Arc::new(Pair {
                reading: AtomicU64::new(0),
                withdrawn: AtomicU64::new(0),
                memory: UnsafeCell::new(7),
            });
            let theirs = pair.clone();
            let sender = loom::thread::spawn(move || {
                theirs.withdrawn.store(1, Ordering::Release);
                fence(Ordering::SeqCst);
                while theirs.reading.load(Ordering::Acquire) != 0 {
                    loom::thread::yield_now();
                }
                // SAFETY: the receiver does not read any more; loom reports it if it does.
                theirs.memory.with_mut(|memory| unsafe { *memory = 9 });
            });
            for _ in 0..2 {
                pair.reading.store(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if pair.withdrawn.load(Ordering::Acquire) == 0 {
                    // SAFETY: the sender waits for `reading`; loom reports it if it does not.
                    pair.memory.with(|memory| assert_eq!(unsafe { *memory }, 7));
                }
                pair.reading.store(0, Ordering::Release);
            }
            sender.join().unwrap();
        });
    }
}
