//! Single copies: a message goes from layout to layout in one copy, by its receiver alone or by both
//! ranks together.
//!
//! This file is the common part of `heap.rs` and `private.rs`. It has the queue of messages that this
//! rank reads, the queue of messages that this rank helps to copy, and the code by which two ranks share
//! one copy (`shm/work_split.rs`). Ranks share only copies between heaps. A [`Copier`] has the parts in
//! which the two files differ: it builds the place in the RTS, accepts or declines messages, and copies a
//! piece from one memory to the other.
//!
//! If both ranks are to copy the message at the front of the receiver's queue, the receiver opens a split, which is one
//! shared copy, and asks the sender for help. From then on the receiver claims pieces from the start and the sender
//! claims pieces from the end, and each rank copies the pieces that it has claimed. A sender that is busy with a
//! computation claims nothing, and then the receiver copies the whole message. A rank claims, copies and counts a piece
//! within one turn, so no rank holds a claimed piece while it does other work.
//!
//! Invariants: `types.rs` has checked every place from an RTS or from a request for help before this file
//! uses the place. A rank reads only message data from the other rank's memory. So if the other rank writes
//! there at the same time, it can change only the values of this data.

use super::in_flight::{Advertised, RequestTable, SendStage};
use super::types::Located;
use super::{Advance, Arrival, CopyPlan, Matched, Offered, Protocol, Work};
use crate::message::envelope::{Envelope, Offer, Place, Space};
use crate::message::label::Status;
use crate::message::payload::{Sink, Supply};
use crate::request::private::Denied;
use crate::shm::ring::Violation;
use crate::shm::work_split::Cut;
use crate::transport::choice::Terms;
use crate::transport::link::Stage;
use crate::transport::link::area::Area;
use crate::transport::link::fabric::Fabric;
use crate::transport::link::failure::{broken, lost};
use crate::transport::link::{HelpWanted, Link, Outgoing, Tx};
use crate::{Plan, Result};
use std::collections::VecDeque;
use std::ops::Range;
use typepack_engine::Elements;
use typepack_engine::contiguous::{self, Method};

/// The other rank, and this rank's connection to it.
#[derive(Clone, Copy, Debug)]
pub struct Far<'a> {
    /// This rank's connection to the other ranks.
    pub fabric: &'a Fabric,
    /// The other rank.
    pub rank: usize,
}

/// The place that a rank names to the other rank for the data of an operation, or the reason why it names
/// none.
#[derive(Clone, Copy, Debug)]
pub enum Said {
    /// The other rank cannot or should not access the data. So a send needs another protocol, and a receive
    /// gets no help.
    Nothing,
    /// The place cannot be named yet, because a type must be defined first and the ring has no room for the
    /// definition.
    NoRoom,
    /// The place.
    Place(Place),
}

/// The ranks that copy a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No rank. Another protocol carries the message.
    Not,
    /// The receiver.
    Alone,
    /// Both ranks.
    Together,
}

/// Moves bytes from the memory of one rank into the memory of another. The functions that only shared
/// copies ([`Takes::Together`]) need have default bodies for a copier without shared copies.
pub trait Copier {
    /// The kind of the other rank's memory that the copier reads and writes.
    const SPACE: Space;
    /// Number of bytes that a rank copies in one turn (one call of [`Protocol::advance`]), rounded up to
    /// a whole piece if two ranks share the copy.
    const TURN: u64;
    /// Minimum length of a piece of a shared copy, except the last piece, in bytes.
    const PIECE_MIN: u64 = Self::TURN;
    /// Normal maximum length of a piece of a shared copy, in bytes. Pieces are longer only if a message would
    /// otherwise have too many of them.
    const PIECE_MAX: u64 = Self::TURN;

    /// Returns the place for an RTS: where the receiver can read the `bytes` bytes of the message in this
    /// rank's memory.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol.
    fn place(
        terms: Terms,
        far: Far<'_>,
        tx: &mut Tx,
        layout: &Elements<Plan>,
        bytes: u64,
    ) -> Result<Said>;

    /// Returns the ranks that copy a message of `bytes` bytes into `to` in place. `next` is true if the receiver
    /// reads no older message of this sender in place.
    fn takes(plan: CopyPlan, next: bool, to: &Sink, bytes: u64) -> Takes;

    /// Returns whether this rank can read this memory of the other rank.
    fn can_read(&mut self, far: Far<'_>, from: &Located) -> bool;

    /// Returns whether this rank can write this memory of the other rank.
    fn can_write(&mut self, far: Far<'_>, to: &Located) -> bool {
        let _ = (far, to);
        false
    }

    /// Returns the place for a request for help: where the sender can write the `bytes` bytes of a
    /// message into `to`, the layout of the receive.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol.
    fn room(far: Far<'_>, tx: &mut Tx, to: &Elements<Plan>, bytes: u64) -> Result<Said> {
        let _ = (far, tx, to, bytes);
        Ok(Said::Nothing)
    }

    /// Copies the packed bytes of `range` from the other rank's memory into the layout of a receive. If the
    /// function returns [`Denied`], this rank cannot read the memory any more.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of both sides.
    /// - [`Known::locate`](super::types::Known::locate) has checked `from`, and the other rank does not use
    ///   that memory for anything else before this call returns.
    /// - The receive's memory is valid, and nobody else writes to the bytes of `range`.
    unsafe fn read(
        &mut self,
        far: Far<'_>,
        from: &Located,
        to: &Elements<Plan>,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied>;

    /// Copies the packed bytes of `range` from the layout of a send into the other rank's memory. If the
    /// function returns [`Denied`], this rank cannot write the memory any more.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of both sides.
    /// - [`Known::room`](super::types::Known::room) has checked `to`, and the other rank waits for this
    ///   piece before it uses that memory for anything else.
    /// - The send's memory is valid.
    unsafe fn write(
        &mut self,
        far: Far<'_>,
        from: &Elements<Plan>,
        to: &Located,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        let _ = (far, from, to, range);
        Err(Denied)
    }
}

/// A message that this rank reads from the sender's memory.
#[derive(Debug)]
struct Incoming {
    receive: u64,
    offer: u64,
    from: Located,
    /// The method for long runs.
    method: Method,
    /// True if this rank wants the sender's help.
    help: bool,
    /// Number of the split; `None` until this rank has opened a split for the message.
    split: Option<u32>,
    /// Number of bytes that this rank has copied without a split.
    done: u64,
    /// Number of pieces that the sender has claimed. `None` until this rank has claimed all remaining pieces,
    /// so that the sender can claim no more.
    theirs: Option<u64>,
    /// Number of pieces that this rank has copied in place of a sender that gave up. These pieces are counted
    /// from the end.
    mended: u64,
}

/// A message that this rank sends and helps to copy. The receiver reads the message from this rank's memory.
#[derive(Debug)]
struct Helped {
    id: u64,
    split: u32,
    /// The method for long runs.
    method: Method,
    /// The place in the receiver's memory.
    to: Located,
    /// Number of pieces that this rank has copied so far.
    finished: u64,
}

/// The result of the copies of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    Nothing,
    Some,
    All,
    Denied,
}

/// All single copies of one kind between this rank and one other rank.
#[derive(Debug, Default)]
pub struct SingleCopies<C> {
    /// The copier that moves pieces.
    pub copier: C,
    incoming: VecDeque<Incoming>,
    helped: VecDeque<Helped>,
    /// Number of the split that this rank has opened last.
    last: u32,
}

impl<C: Copier> SingleCopies<C> {
    /// Queues a message, so that this rank reads it in place. `offer` is the request id in the RTS of the
    /// message, and `receive` has matched it. `method` is the method for long runs. If `help` is true, this rank
    /// will ask the sender for help.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if the receive does not exist, which is a bug.
    fn start<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        (receive, offer): (u64, u64),
        from: Located,
        (method, help): (Method, bool),
    ) -> Result<()> {
        let (split, theirs, done, mended) = (None, None, 0, 0);
        let next = Incoming { receive, offer, from, method, help, split, done, theirs, mended };
        self.incoming.push_back(next);
        if self.incoming.len() > 1 {
            return Ok(());
        }
        // The queue was empty. Send the request for help at once, so that the sender can begin earlier.
        let Some(receive) = work.requests.receive(receive) else {
            return Err(lost("a receive", receive));
        };
        match (&receive.sink, receive.stream) {
            (Sink::Memory(_), Some(stream)) => self.ask(link, stream.total),
            _ => Ok(()),
        }
    }

    /// Opens a split for the message at the front of the queue and asks its sender for help. Does nothing if
    /// this rank does not want help or has already asked for it.
    fn ask(&mut self, link: &mut Link, bytes: u64) -> Result<()> {
        let (tx, rx) = link.both()?;
        if let Some(next) = self.incoming.front_mut()
            && next.help
            && next.split.is_none()
        {
            self.last = rx.area.split().open_next(self.last);
            next.split = Some(self.last);
            let (offer, receive, number, method) =
                (next.offer, next.receive, self.last, next.method);
            let wanted = HelpWanted { offer, receive, number, method, bytes };
            tx.push(Outgoing::Help(wanted));
        }
        Ok(())
    }

    /// Queues the send `id`, so that this rank helps to copy its message. The receiver has asked for this
    /// help, and copies other pieces of the message at the same time. This rank copies long runs with
    /// `method`.
    pub fn help(&mut self, id: u64, split: u32, method: Method, to: Located) {
        self.helped.push_back(Helped { id, split, method, to, finished: 0 });
    }

    /// Writes the envelope that asks the sender of a message for help. Returns false if the ring is full.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol.
    pub fn ask_for_help<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        wanted: HelpWanted,
    ) -> Result<bool> {
        let HelpWanted { offer: id, receive, number, method, bytes, .. } = wanted;
        // A receive needs no help if it is over, or if it discards its message.
        let Some(receive) = work.requests.receive(receive) else { return Ok(true) };
        let Sink::Memory(layout) = &receive.sink else { return Ok(true) };
        let far = Far { fabric: work.fabric, rank: link.rank };
        let tx = link.tx()?;
        match C::room(far, tx, layout, bytes)? {
            Said::NoRoom => Ok(false),
            // The sender cannot write to the memory of the receive, so the receiver copies the whole message
            // without help.
            Said::Nothing => Ok(true),
            Said::Place(place) => {
                tx.say(work.fabric, &Envelope::Help { id, number, method, bytes, place })
            }
        }
    }

    /// Claims all remaining pieces of the copy `next`, and waits until the sender has finished the piece
    /// that it is copying, has given up, or has died.
    fn stop_sender(&self, fabric: &Fabric, link: &Link, next: &Incoming) {
        let (Some(number), Some(rx)) = (next.split, &link.rx) else { return };
        let split = rx.area.split();
        let theirs = split.close(number, cut::<C>(next.from.bytes).pieces);
        fabric.wait_for_piece(link.rank, || {
            let (count, given_up) = split.pushed(number);
            count < theirs && !given_up
        });
    }

    /// Copies pieces of the message at the front of the queue in place. If no piece is left to copy, checks
    /// whether the sender has finished its pieces.
    fn read<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
    ) -> Result<Advance> {
        let Some(next) = self.incoming.front() else { return Ok(Advance::Idle) };
        let id = next.receive;
        let Some(receive) = work.requests.receive(id) else { return Err(lost("a receive", id)) };
        let Some(stream) = receive.stream else { return Err(lost("a receive", id)) };
        let rank = link.rank;
        // A receive that discards its data counts as complete at once.
        let mut copied = Copied::All;
        if let Sink::Memory(to) = &receive.sink {
            self.ask(link, stream.total)?;
            let (_, rx) = link.both()?;
            let Some(next) = self.incoming.front_mut() else { return Ok(Advance::Idle) };
            copied = Copied::Denied;
            let far = Far { fabric: work.fabric, rank };
            if self.copier.can_read(far, &next.from) {
                if !rx.offers.begin(&rx.area, rank)? {
                    return Ok(Advance::Idle);
                }
                let turn = contiguous::with(next.method, || {
                    next.read(&mut self.copier, far, &rx.area, to, stream.total)
                });
                rx.offers.end(&rx.area);
                copied = turn.map_err(|v| broken(rank, v))?;
            }
        }
        match copied {
            Copied::Nothing => Ok(Advance::Idle),
            Copied::Some => Ok(Advance::Moved),
            Copied::All => {
                let status = Status { source: rank, tag: stream.tag, bytes: stream.total };
                work.requests.complete(id, Ok(status));
                work.tuning.complete(stream.total);
                self.finish(link)
            }
            // The system now refuses an access that it once allowed, for example because the process has
            // changed its user, a filter has been installed, or the memory has been unmapped. As soon as
            // the sender writes no more pieces, the message starts again from the beginning and goes
            // through the chunks.
            Copied::Denied => {
                let Some(next) = self.incoming.pop_front() else { return Ok(Advance::Idle) };
                self.stop_sender(work.fabric, link, &next);
                Ok(Advance::GaveUp(id, next.offer))
            }
        }
    }

    /// Removes the message at the front, which is complete, and answers its sender with FIN.
    fn finish(&mut self, link: &mut Link) -> Result<Advance> {
        let (tx, rx) = link.both()?;
        if let Some(next) = self.incoming.pop_front() {
            rx.offers.answer(next.offer);
            tx.push(Outgoing::Say(Envelope::Fin(next.offer)));
        }
        Ok(Advance::Moved)
    }

    /// Copies pieces of a message of this rank into the receiver's memory. Returns false if it claimed no
    /// piece.
    fn write<R: RequestTable>(&mut self, work: &mut Work<'_, R>, link: &mut Link) -> Result<bool> {
        let Some(next) = self.helped.front_mut() else { return Ok(false) };
        let (rank, tx) = (link.rank, link.tx()?);
        let far = Far { fabric: work.fabric, rank };
        let (mut moved, mut budget) = (false, C::TURN);
        // A send needs no help if it is complete, or if this rank now packs it into chunks.
        let send = work.requests.send(next.id);
        let layout = send
            .filter(|send| send.stage == SendStage::Offered(Advertised::In(C::SPACE)))
            .and_then(|send| match &send.supply {
                Supply::Memory(layout) => Some((layout, send.label.bytes)),
                _ => None,
            });
        if let Some((layout, total)) = layout
            && self.copier.can_write(far, &next.to)
        {
            let (cut, split) = (cut::<C>(total), tx.area.split());
            while budget > 0 {
                let Some(index) = split.claim_back(next.split, cut.pieces) else { break };
                let range = cut.range(cut.pieces - 1 - index);
                budget = budget.saturating_sub(range.end - range.start);
                // SAFETY:
                // - `range` lies within the message, and the receiver's elements have room for the message
                //   (`Known::room`);
                // - `Known::room` checked the receiver's memory before `help`. This rank has claimed the
                //   piece, so no other rank copies it, and the receive completes only after `push` counts it;
                // - the send is in flight and not withdrawn (its stage is `Advertised::In`), so its memory is
                //   valid.
                let copied = contiguous::with(next.method, || unsafe {
                    self.copier.write(far, layout, &next.to, range)
                });
                next.finished += u64::from(copied.is_ok());
                split.push(next.split, next.finished, copied.is_err());
                moved = true;
                if copied.is_err() {
                    // This rank gives up this message. The receiver copies the pieces that this rank has
                    // claimed but not copied.
                    work.fabric.ring(rank);
                    self.helped.pop_front();
                    return Ok(true);
                }
            }
        }
        if moved {
            // Ring even if the last piece has used up the turn, because the receiver may be sleeping, and
            // this rank may not make another turn for a long time.
            work.fabric.ring(rank);
        }
        if budget > 0 {
            self.helped.pop_front();
        }
        Ok(moved)
    }
}

impl<C: Copier> Protocol for SingleCopies<C> {
    /// Writes an RTS that names the place of the data.
    fn offer<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        id: u64,
    ) -> Result<Offered> {
        let Some(send) = work.requests.send(id) else { return Err(lost("a send", id)) };
        let Supply::Memory(layout) = &send.supply else { return Ok(Offered::Declined) };
        let far = Far { fabric: work.fabric, rank: link.rank };
        let (label, tx) = (send.label, link.tx()?);
        let place = match C::place(work.terms, far, tx, layout, label.bytes)? {
            Said::Nothing => return Ok(Offered::Declined),
            Said::NoRoom => return Ok(Offered::NoRoom),
            Said::Place(place) => place,
        };
        let offer = Offer { shape: Stage::shape(&layout.plan, layout.count), ..send.offer(id) };
        if !tx.say(work.fabric, &Envelope::Rts(label, offer, Some(place)))? {
            return Ok(Offered::NoRoom);
        }
        send.stage = SendStage::Offered(Advertised::In(C::SPACE));
        Ok(Offered::Written)
    }

    fn matched<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        matched: &mut Matched,
        plan: CopyPlan,
    ) -> Result<bool> {
        let far = Far { fabric: work.fabric, rank: link.rank };
        let (_, rx) = link.both()?;
        let Arrival::Rts(offer, _, Some(from)) = &matched.arrival else { return Ok(false) };
        let offer = *offer;
        let open = from.space == C::SPACE && rx.offers.is_open(offer);
        if !open || !self.copier.can_read(far, from) {
            return Ok(false);
        }
        let Some(receive) = work.requests.receive(matched.receive) else {
            return Err(lost("a receive", matched.receive));
        };
        let takes = C::takes(plan, self.incoming.is_empty(), &receive.sink, matched.label.bytes);
        if takes == Takes::Not {
            return Ok(false);
        }
        let from = Located::clone(from);
        let help = takes == Takes::Together;
        self.start(work, link, (matched.receive, offer), from, (plan.method, help))?;
        Ok(true)
    }

    fn advance<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
    ) -> Result<Advance> {
        let read = self.read(work, link)?;
        if matches!(read, Advance::GaveUp(..)) {
            return Ok(read);
        }
        let wrote = self.write(work, link)?;
        Ok(if wrote { Advance::Moved } else { read })
    }

    fn withdrawn(&mut self, link: &Link, offer: u64) -> Option<u64> {
        let at = self.incoming.iter().position(|incoming| incoming.offer == offer)?;
        let incoming = self.incoming.remove(at)?;
        if let (Some(number), Some(rx)) = (incoming.split, &link.rx) {
            let _theirs = rx.area.split().close(number, cut::<C>(incoming.from.bytes).pieces);
        }
        Some(incoming.receive)
    }

    fn withdraw<R: RequestTable>(&mut self, work: &mut Work<'_, R>, link: &mut Link, id: u64) {
        if let Some(send) = work.requests.send(id) {
            if send.stage == SendStage::Offered(Advertised::In(C::SPACE))
                && let Some(tx) = &mut link.tx
            {
                send.stage = SendStage::Offered(Advertised::Withdrawn(C::SPACE));
                self.helped.retain(|helped| helped.id != id);
                tx.withdraw(work.fabric, id);
            }
        } else if let Some(next) = self.incoming.front().filter(|next| next.receive == id) {
            self.stop_sender(work.fabric, link, next);
        }
    }

    #[inline]
    fn has_work(&self) -> bool {
        !self.incoming.is_empty() || !self.helped.is_empty()
    }
}

/// Returns how a message of `total` bytes is divided into pieces.
fn cut<C: Copier>(total: u64) -> Cut {
    Cut::new(total, C::PIECE_MIN, C::PIECE_MAX)
}

impl Incoming {
    /// Copies the pieces of one turn of a message of `total` bytes. The caller has called [`Offers::begin`],
    /// and calls [`Offers::end`] after this function.
    ///
    /// [`Offers::begin`]: super::offers::Offers::begin
    /// [`Offers::end`]: super::offers::Offers::end
    fn read<C: Copier>(
        &mut self,
        copier: &mut C,
        far: Far<'_>,
        area: &Area,
        to: &Elements<Plan>,
        total: u64,
    ) -> std::result::Result<Copied, Violation> {
        // SAFETY: every call passes a range of the message, and
        // - the message fits in the receive, and the elements at `from` have exactly the message's bytes;
        // - `from` was checked when the RTS arrived, and its sender takes the memory back only after
        //   `Offers::end`, which follows this call;
        // - the receive is in flight. Without a split no other rank writes to it; with a split this rank
        //   has claimed the piece.
        let mut copy = |range| unsafe { copier.read(far, &self.from, to, range) };
        let Some(number) = self.split else {
            let end = total.min(self.done + C::TURN);
            if copy(self.done..end).is_err() {
                return Ok(Copied::Denied);
            }
            self.done = end;
            return Ok(if end == total { Copied::All } else { Copied::Some });
        };
        let (cut, split) = (cut::<C>(total), area.split());
        let (mut copied, mut budget) = (Copied::Nothing, C::TURN);
        while budget > 0 {
            // Claim a piece from the start. If none is left, take a piece that the sender has claimed but
            // given up.
            let mine = split.claim_front(number, cut.pieces);
            let index = match mine {
                Some(index) => index,
                None => {
                    let theirs =
                        *self.theirs.get_or_insert_with(|| split.close(number, cut.pieces));
                    let (count, given_up) = split.pushed(number);
                    if count > theirs {
                        let what = "the number of pieces that the sender has counted";
                        return Err(Violation::outside(what, count, 0..=theirs));
                    }
                    if count + self.mended >= theirs {
                        return Ok(Copied::All);
                    }
                    if !given_up {
                        break;
                    }
                    cut.pieces - 1 - (count + self.mended)
                }
            };
            let range = cut.range(index);
            budget = budget.saturating_sub(range.end - range.start);
            if copy(range).is_err() {
                return Ok(Copied::Denied);
            }
            self.mended += u64::from(mine.is_none());
            copied = Copied::Some;
        }
        Ok(copied)
    }
}
