//! Single copies: a message goes from layout to layout in one copy, by its receiver alone or by both
//! ranks together.
//!
//! This file is the common part of `heap.rs` and `private.rs`: the queue of messages that this rank reads,
//! the queue of messages that it helps with, and the sharing of one copy between two ranks
//! (`shm/work_split.rs`). A [`Copier`] is the part in which the two files differ: it builds the place in
//! the RTS, accepts or declines messages, and copies a piece from one memory to the other.
//!
//! The receiver opens a split for the message at the front of its queue and asks the sender for help.
//! From then on the receiver claims pieces from the start and the sender claims pieces from the end, and
//! each copies what it has claimed. A sender that computes claims nothing, and the receiver copies the
//! whole message. A rank claims, copies and counts a piece within one turn, so no rank holds a claimed
//! piece while it does other work.
//!
//! Invariants: `types.rs` has checked every place from an RTS or from a request for help before this file
//! uses the place. A rank reads nothing but message data from the other rank's memory, so concurrent writes
//! of the other rank can change only the values of this data.

use super::area::Area;
use super::choice::Terms;
use super::fabric::Fabric;
use super::failure::{broken, lost};
use super::in_flight::{RequestTable, SendStage, Told};
use super::link::{HelpWanted, Link, Outgoing, Tx};
use super::protocol::{Advance, Arrival, Matched, Offered, Protocol, Work};
use super::types::Located;
use crate::Result;
use crate::message::envelope::{Envelope, Place, Space};
use crate::message::label::Status;
use crate::message::payload::{Layout, Sink, Supply};
use crate::shm::ring::Violation;
use crate::shm::work_split::{Cut, WorkSplit};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// The other rank's memory cannot be accessed.
#[derive(Clone, Copy, Debug)]
pub struct Denied;

/// The other rank, and this rank's connection to it.
#[derive(Clone, Copy, Debug)]
pub struct Far<'a> {
    /// This rank's connection to the other ranks.
    pub fabric: &'a Fabric,
    /// The other rank.
    pub rank: usize,
}

/// The place of an operation's data, if this rank can name it.
#[derive(Clone, Copy, Debug)]
pub enum Said {
    /// No useful place: another protocol carries the message.
    Nothing,
    /// No place yet: the ring has no room for the definition that must come first.
    NoRoom,
    /// The place.
    Place(Place),
}

/// The facts by which a receiver decides whether it reads a message in place.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The sender.
    pub far: Far<'a>,
    /// The settings for the protocols.
    pub terms: Terms,
    /// This rank has other operations under way, or other work after this call.
    pub busy: bool,
    /// The sender has no older message of this kind to wait for.
    pub next: bool,
}

/// The ranks that copy a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No rank: another protocol carries the message.
    Not,
    /// The receiver.
    Alone,
    /// Both ranks.
    Together,
}

/// Moves bytes from the memory of one rank into the memory of another.
pub trait Copier {
    /// The kind of the other rank's memory that the copier reads and writes.
    const SPACE: Space;
    /// Shortest piece of a shared copy, in bytes.
    const PIECE_MIN: u64;
    /// Longest piece in bytes. Pieces are longer only if a message would have too many of them.
    const PIECE_MAX: u64;
    /// Number of bytes that a rank copies in one turn, rounded up to a whole piece.
    const TURN: u64;

    /// Returns the words of `area` with which two ranks share a copy.
    fn split(area: &Area) -> WorkSplit<'_, AtomicU64>;

    /// Returns the place to put into an RTS: where the receiver reads the `bytes` bytes of the message in
    /// this rank's memory.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol.
    fn place(terms: Terms, far: Far<'_>, tx: &mut Tx, layout: &Layout, bytes: u64) -> Result<Said>;

    /// Decides whether a receive into `to` reads a message of `bytes` bytes in place, and returns the ranks
    /// that copy it.
    fn takes(asked: Asked<'_>, from: &Located, to: &Sink, bytes: u64) -> Takes;

    /// Returns whether this rank can read the other rank's memory.
    fn can_read(&mut self, far: Far<'_>) -> bool;

    /// Returns whether this rank can write the other rank's memory.
    fn can_write(&mut self, far: Far<'_>) -> bool;

    /// Returns the place to put into a request for help: where the sender writes the `bytes` bytes of a
    /// receive into `to`.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol.
    fn room(far: Far<'_>, tx: &mut Tx, to: &Layout, bytes: u64) -> Result<Said>;

    /// Copies the packed bytes of `range` from the other rank's memory into a receive's layout. After
    /// [`Denied`] this rank cannot read the memory any more.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of both sides.
    /// - [`Known::locate`](super::types::Known::locate) has checked `from`, and the other rank does not use
    ///   that memory for anything else before this call returns.
    /// - The receive's memory is valid, and no one else writes the bytes of `range`.
    unsafe fn read(
        &mut self,
        far: Far<'_>,
        from: &Located,
        to: &Layout,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied>;

    /// Copies the packed bytes of `range` of a send's layout into the other rank's memory. After
    /// [`Denied`] this rank cannot write the memory any more.
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
        from: &Layout,
        to: &Located,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied>;
}

/// A message that this rank reads.
#[derive(Debug)]
struct Incoming {
    receive: u64,
    offer: u64,
    from: Located,
    /// Whether this rank wants the sender's help.
    help: bool,
    /// Number of the split, once it is open.
    split: Option<u32>,
    /// Bytes that this rank has copied without a split.
    done: u64,
    /// Number of pieces that the sender has claimed; set once the sender can claim no more pieces.
    theirs: Option<u64>,
    /// Number of pieces, counted from the end, that this rank has copied for a sender that gave up.
    mended: u64,
}

/// A message that this rank sends. The receiver reads it from this rank's memory, and this rank helps with
/// the copy.
#[derive(Debug)]
struct Helped {
    id: u64,
    split: u32,
    /// The place in the receiver's memory.
    to: Located,
    /// Number of pieces that this rank has copied so far.
    finished: u64,
}

/// The result of one turn's copies.
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
    /// Number of the last split that this rank opened.
    last: u32,
}

impl<C: Copier> SingleCopies<C> {
    /// Queues the message of the RTS `offer`, which `receive` has matched, so that this rank reads the
    /// message in place. If `help` is set, this rank asks the sender for help.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if the receive does not exist, which is a bug.
    fn start<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        (receive, offer): (u64, u64),
        from: Located,
        help: bool,
    ) -> Result<()> {
        let (split, theirs, done, mended) = (None, None, 0, 0);
        let next = Incoming { receive, offer, from, help, split, done, theirs, mended };
        self.incoming.push_back(next);
        if self.incoming.len() > 1 {
            return Ok(());
        }
        // An early request brings the sender's help earlier.
        let Some(receive) = work.requests.receive(receive) else {
            return Err(lost("a receive", receive));
        };
        match (&receive.sink, receive.stream) {
            (Sink::Memory(_), Some(stream)) => self.ask(link, stream.total),
            _ => Ok(()),
        }
    }

    /// Opens a split for the message at the front and asks its sender for help. Does nothing if this rank
    /// does not want help or has already sent the request.
    fn ask(&mut self, link: &mut Link, bytes: u64) -> Result<()> {
        let (tx, rx) = link.both()?;
        if let Some(next) = self.incoming.front_mut()
            && next.help
            && next.split.is_none()
        {
            self.last = C::split(&rx.area).open_next(self.last);
            next.split = Some(self.last);
            let (space, offer, receive) = (C::SPACE, next.offer, next.receive);
            let number = self.last;
            tx.push(Outgoing::Help(HelpWanted { space, offer, receive, number, bytes }));
        }
        Ok(())
    }

    /// Queues help with the send `id`. Its receiver has asked for help, and may still read its data.
    pub fn help(&mut self, id: u64, split: u32, to: Located) {
        self.helped.push_back(Helped { id, split, to, finished: 0 });
    }

    /// Handles a withdrawal: the sender has taken back the memory that an RTS named, and copies no more
    /// from it. Returns the receive that was reading the memory.
    pub fn give_back(&mut self, link: &Link, offer: u64) -> Option<u64> {
        let at = self.incoming.iter().position(|incoming| incoming.offer == offer)?;
        let incoming = self.incoming.remove(at)?;
        if let (Some(number), Some(rx)) = (incoming.split, &link.rx) {
            let _theirs = C::split(&rx.area).close(number, cut::<C>(incoming.from.bytes).pieces);
        }
        Some(incoming.receive)
    }

    /// Claims all remaining pieces of the copy at the front, and waits until the sender has finished the
    /// piece that it is copying. The wait does not end when a third rank dies.
    fn stop_sender(&self, fabric: &Fabric, link: &Link, next: &Incoming) {
        let (Some(number), Some(rx)) = (next.split, &link.rx) else { return };
        let split = C::split(&rx.area);
        let theirs = split.close(number, cut::<C>(next.from.bytes).pieces);
        fabric.wait_for_piece(link.rank, || {
            let (count, given_up) = split.pushed(number);
            count < theirs && !given_up
        });
    }

    /// Copies pieces of the message at the front in place, or checks whether the sender's pieces are done.
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
        // A receive that discards its data does not need the rest of the message.
        let mut copied = Copied::All;
        if let Sink::Memory(to) = &receive.sink {
            self.ask(link, stream.total)?;
            let (_, rx) = link.both()?;
            let Some(next) = self.incoming.front_mut() else { return Ok(Advance::Idle) };
            copied = Copied::Denied;
            let far = Far { fabric: work.fabric, rank };
            if self.copier.can_read(far) {
                if !rx.offers.begin(&rx.area, rank)? {
                    return Ok(Advance::Idle);
                }
                let turn = next.read(&mut self.copier, far, &rx.area, to, stream.total);
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
                self.finish(link)
            }
            // The system now refuses an access that it once allowed: the process has changed its user, a
            // filter has been installed, or the memory has been unmapped. The message restarts through the
            // chunks, as soon as the sender writes no more pieces.
            Copied::Denied => {
                let Some(next) = self.incoming.pop_front() else { return Ok(Advance::Idle) };
                self.stop_sender(work.fabric, link, &next);
                Ok(Advance::GaveUp(id, next.offer))
            }
        }
    }

    /// Answers the sender of the message at the front with FIN: the message is complete.
    fn finish(&mut self, link: &mut Link) -> Result<Advance> {
        let (tx, rx) = link.both()?;
        if let Some(next) = self.incoming.pop_front() {
            rx.offers.answer(next.offer);
            tx.push(Outgoing::Say(Envelope::Fin(next.offer)));
        }
        Ok(Advance::Moved)
    }

    /// Copies pieces of a message that this rank sends into the receiver's memory. Returns true if
    /// anything moved.
    fn write<R: RequestTable>(&mut self, work: &mut Work<'_, R>, link: &mut Link) -> Result<bool> {
        let Some(next) = self.helped.front_mut() else { return Ok(false) };
        let (rank, tx) = (link.rank, link.tx()?);
        let far = Far { fabric: work.fabric, rank };
        let (mut moved, mut budget) = (false, C::TURN);
        // A send that is complete, or that this rank now packs into chunks, needs no help.
        let send = work.requests.send(next.id);
        let layout = send
            .filter(|send| send.stage == SendStage::Offered(Told::In(C::SPACE)))
            .and_then(|send| match &send.supply {
                Supply::Memory(layout) => Some((layout, send.label.bytes)),
                _ => None,
            });
        if let Some((layout, total)) = layout
            && self.copier.can_write(far)
        {
            let (cut, split) = (cut::<C>(total), C::split(&tx.area));
            while budget > 0 {
                let Some(index) = split.claim_back(next.split, cut.pieces) else { break };
                let range = cut.range(cut.pieces - 1 - index);
                budget = budget.saturating_sub(range.end - range.start);
                // SAFETY:
                // - `range` lies within the message, and the receiver's elements have room for the message
                //   (`Known::room`);
                // - `Known::room` checked the receiver's memory before `help`. This rank has claimed the
                //   piece, so no other rank copies it, and the receive completes only after `push` counts it;
                // - the send is in flight and not withdrawn (its stage is `Told::In`), so its memory is
                //   valid.
                let copied = unsafe { self.copier.write(far, layout, &next.to, range) };
                next.finished += u64::from(copied.is_ok());
                split.push(next.split, next.finished, copied.is_err());
                moved = true;
                if copied.is_err() {
                    // This rank stops here. The receiver copies the pieces that this rank has claimed.
                    work.fabric.ring(rank);
                    self.helped.pop_front();
                    return Ok(true);
                }
            }
        }
        if moved {
            // This rank rings even if the last piece used up the turn: the receiver may sleep, and this
            // rank may not make another turn for a long time.
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
        if !tx.say(work.fabric, &Envelope::Rts(label, id, Some(place)))? {
            return Ok(Offered::NoRoom);
        }
        send.stage = SendStage::Offered(Told::In(C::SPACE));
        Ok(Offered::Written)
    }

    fn matched<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        matched: &mut Matched,
    ) -> Result<bool> {
        let far = Far { fabric: work.fabric, rank: link.rank };
        let (_, rx) = link.both()?;
        let Arrival::Rts(offer, Some(from)) = &matched.arrival else { return Ok(false) };
        let offer = *offer;
        if from.space != C::SPACE || !rx.offers.is_open(offer) || !self.copier.can_read(far) {
            return Ok(false);
        }
        let Some(receive) = work.requests.receive(matched.receive) else {
            return Err(lost("a receive", matched.receive));
        };
        let next = self.incoming.is_empty();
        let asked = Asked { far, terms: work.terms, busy: work.busy, next };
        let takes = C::takes(asked, from, &receive.sink, matched.label.bytes);
        if takes == Takes::Not {
            return Ok(false);
        }
        let from = Located::clone(from);
        self.start(work, link, (matched.receive, offer), from, takes == Takes::Together)?;
        Ok(true)
    }

    fn ask_for_help<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        wanted: HelpWanted,
    ) -> Result<bool> {
        let HelpWanted { offer: id, receive, number, bytes, .. } = wanted;
        // A receive that is over, or that drops its message, needs no help.
        let Some(receive) = work.requests.receive(receive) else { return Ok(true) };
        let Sink::Memory(layout) = &receive.sink else { return Ok(true) };
        let far = Far { fabric: work.fabric, rank: link.rank };
        let tx = link.tx()?;
        match C::room(far, tx, layout, bytes)? {
            Said::NoRoom => Ok(false),
            // Without help the receiver copies the whole message.
            Said::Nothing => Ok(true),
            Said::Place(place) => tx.say(work.fabric, &Envelope::Help { id, number, bytes, place }),
        }
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

    fn withdraw<R: RequestTable>(&mut self, work: &mut Work<'_, R>, link: &mut Link, id: u64) {
        if let Some(send) = work.requests.send(id) {
            if send.stage == SendStage::Offered(Told::In(C::SPACE))
                && let Some(tx) = &mut link.tx
            {
                send.stage = SendStage::Offered(Told::Withdrawn);
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

/// Returns the division of a message of `total` bytes into pieces.
fn cut<C: Copier>(total: u64) -> Cut {
    Cut::new(total, C::PIECE_MIN, C::PIECE_MAX)
}

impl Incoming {
    /// Copies one turn's pieces of the message of `total` bytes. The caller is between [`Offers::begin`]
    /// and [`Offers::end`].
    ///
    /// [`Offers::begin`]: super::offers::Offers::begin
    /// [`Offers::end`]: super::offers::Offers::end
    fn read<C: Copier>(
        &mut self,
        copier: &mut C,
        far: Far<'_>,
        area: &Area,
        to: &Layout,
        total: u64,
    ) -> std::result::Result<Copied, Violation> {
        // SAFETY: every call passes a range of the message, and
        // - the message fits the receive, and the elements at `from` have exactly the message's bytes;
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
        let (cut, split) = (cut::<C>(total), C::split(area));
        let (mut copied, mut budget) = (Copied::Nothing, C::TURN);
        while budget > 0 {
            // Claim a piece from the start. If none is left, take a piece that the sender has claimed and
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
