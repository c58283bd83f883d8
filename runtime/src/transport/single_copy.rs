//! Single copies: a message goes from layout to layout in one copy, by its receiver alone or by both
//! ranks together.
//!
//! What `heap.rs` and `private.rs` have in common: the queue of messages that this rank reads, the
//! queue of those that it helps with, and the way in which two ranks share one copy
//! (`shm/work_split.rs`). What differs is a [`Copier`]: what an RTS says, which messages are taken, and
//! how a piece is copied from one memory to the other.
//!
//! The receiver opens a split for the message at the front of its queue and asks its sender for help.
//! From then on the receiver claims pieces from the start, the sender from the end, and each copies
//! what it has claimed. A sender that does not come, because it computes, has claimed nothing, and the
//! receiver does all of it. A piece is claimed, copied and counted in one turn: no rank ever holds one
//! while it does something else.
//!
//! Invariants: what an RTS or a request for help says was checked before it gets here; nothing is read
//! from the other rank's memory but data, so whatever it does meanwhile changes values only.

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

/// The other rank, and this rank's place in the job.
#[derive(Clone, Copy, Debug)]
pub struct Far<'a> {
    /// This rank's place.
    pub fabric: &'a Fabric,
    /// The other rank.
    pub rank: usize,
}

/// What can be said about where the data of an operation lies.
#[derive(Clone, Copy, Debug)]
pub enum Said {
    /// Nothing that is of use.
    Nothing,
    /// Nothing yet: the ring has no room for what has to be said before.
    NoRoom,
    /// This.
    Place(Place),
}

/// What a receiver knows when it decides.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The sender.
    pub far: Far<'a>,
    /// What the settings say.
    pub terms: Terms,
    /// This rank has other operations under way, or goes on to other work.
    pub busy: bool,
    /// Its sender has no older message of this kind to wait for.
    pub next: bool,
}

/// Who copies a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nobody: it goes another way.
    Not,
    /// The receiver.
    Alone,
    /// Both ranks.
    Together,
}

/// How bytes get from the memory of one rank into that of another.
pub trait Copier {
    /// Which memory of the other rank is read and written.
    const SPACE: Space;
    /// Shortest piece of a shared copy, in bytes.
    const PIECE_MIN: u64;
    /// Longest piece, but of messages so long that there would be too many, in bytes.
    const PIECE_MAX: u64;
    /// Bytes that are copied before the other work gets its turn, to the next whole piece.
    const TURN: u64;

    /// The words by which two ranks share a copy.
    fn split(area: &Area) -> WorkSplit<'_, AtomicU64>;

    /// What the RTS of a message of `bytes` bytes in this rank's memory says of where its data lies.
    ///
    /// # Errors
    /// The other rank broke the protocol.
    fn place(terms: Terms, far: Far<'_>, tx: &mut Tx, layout: &Layout, bytes: u64) -> Result<Said>;

    /// Whether a receive into `to` takes a message of `bytes` bytes from where it lies, and who copies.
    fn takes(asked: Asked<'_>, from: &Located, to: &Sink, bytes: u64) -> Takes;

    /// Whether the other rank's memory can be read.
    fn can_read(&mut self, far: Far<'_>) -> bool;

    /// Whether it can be written.
    fn can_write(&mut self, far: Far<'_>) -> bool;

    /// What asks the sender for help with a receive into `to`.
    fn help(wanted: HelpWanted, to: &Layout) -> Outgoing;

    /// Copies the packed bytes of `range` from the other rank's memory into a receive's layout. After
    /// [`Denied`] the memory cannot be read any more.
    ///
    /// # Safety
    ///
    /// - The range lies within the packed bytes of both sides.
    /// - `from` was checked ([`Known::locate`](super::types::Known::locate)), and the other rank does
    ///   not need that memory elsewhere before this returns.
    /// - The receive's memory is valid, and the bytes of the range nobody else's to write.
    unsafe fn read(
        &mut self,
        far: Far<'_>,
        from: &Located,
        to: &Layout,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied>;

    /// Copies the packed bytes of `range` of a send's layout into the other rank's memory. After
    /// [`Denied`] the memory cannot be written any more.
    ///
    /// # Safety
    ///
    /// - The range lies within the packed bytes of both sides.
    /// - `to` was checked ([`Known::room`](super::types::Known::room)), and the other rank waits for
    ///   this piece before it needs that memory elsewhere.
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
    /// The sender is to be asked for help.
    help: bool,
    /// The split, once it has been.
    split: Option<u32>,
    /// Bytes copied, without a split.
    done: u64,
    /// Pieces of the sender, once no more can be claimed.
    theirs: Option<u64>,
    /// Pieces, counted from the end, of a sender that has given up, which we have copied.
    mended: u64,
}

/// A message of this rank that its receiver reads.
#[derive(Debug)]
struct Helped {
    id: u64,
    split: u32,
    /// Where in the receiver's memory the data goes.
    to: Located,
    /// Pieces copied so far.
    finished: u64,
}

/// How far a turn has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    Nothing,
    Some,
    All,
    Denied,
}

/// All single copies of one kind between this rank and another one.
#[derive(Debug, Default)]
pub struct SingleCopies<C> {
    /// How pieces are copied.
    pub copier: C,
    incoming: VecDeque<Incoming>,
    helped: VecDeque<Helped>,
    /// Number of the split that was opened last.
    last: u32,
}

impl<C: Copier> SingleCopies<C> {
    /// `receive` has matched the RTS `offer`, and takes its data from where it lies, after those before
    /// it; with the sender's help, if `help`.
    ///
    /// # Errors
    /// None but a bug.
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
        // The sender comes the earlier the earlier it is asked.
        let Some(receive) = work.requests.receive(receive) else { return Err(lost("a receive")) };
        match (&receive.sink, receive.stream) {
            (Sink::Memory(to), Some(stream)) => self.ask(link, to, stream.total),
            _ => Ok(()),
        }
    }

    /// Opens a split for the message at the front, and asks its sender for help, if that is wanted and
    /// has not been done.
    fn ask(&mut self, link: &mut Link, to: &Layout, bytes: u64) -> Result<()> {
        let (tx, rx) = link.both()?;
        if let Some(next) = self.incoming.front_mut()
            && next.help
            && next.split.is_none()
        {
            self.last = C::split(&rx.area).open_next(self.last);
            next.split = Some(self.last);
            let (offer, receive) = (next.offer, next.receive);
            tx.push(C::help(HelpWanted { offer, receive, number: self.last, bytes }, to));
        }
        Ok(())
    }

    /// The receiver of the send `id`, whose data may still be read, asks for help.
    pub fn help(&mut self, id: u64, split: u32, to: Located) {
        self.helped.push_back(Helped { id, split, to, finished: 0 });
    }

    /// The sender has taken the memory of an RTS back, and copies no more of it. Gives the receive that
    /// was reading it.
    pub fn give_back(&mut self, link: &Link, offer: u64) -> Option<u64> {
        let at = self.incoming.iter().position(|incoming| incoming.offer == offer)?;
        let incoming = self.incoming.remove(at)?;
        if let (Some(number), Some(rx)) = (incoming.split, &link.rx) {
            let _theirs = C::split(&rx.area).close(number, cut::<C>(incoming.from.bytes).pieces);
        }
        Some(incoming.receive)
    }

    /// Claims all that is left of the copy at the front, and waits for the piece that the sender has in
    /// hand. The death of any other rank ends an operation, but not that piece.
    fn stop_sender(&self, fabric: &Fabric, link: &Link, next: &Incoming) {
        let (Some(number), Some(rx)) = (next.split, &link.rx) else { return };
        let split = C::split(&rx.area);
        let theirs = split.close(number, cut::<C>(next.from.bytes).pieces);
        fabric.wait_for_piece(link.rank, || {
            let (count, given_up) = split.pushed(number);
            count < theirs && !given_up
        });
    }

    /// Copies pieces of the message at the front from where it lies, or sees what is missing.
    fn read<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
    ) -> Result<Advance> {
        let Some(next) = self.incoming.front() else { return Ok(Advance::Idle) };
        let id = next.receive;
        let Some(receive) = work.requests.receive(id) else { return Err(lost("a receive")) };
        let Some(stream) = receive.stream else { return Err(lost("a receive")) };
        let rank = link.rank;
        // Nobody wants the rest of what goes nowhere.
        let mut copied = Copied::All;
        if let Sink::Memory(to) = &receive.sink {
            self.ask(link, to, stream.total)?;
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
            // What could be read once cannot be read any more (another user by now, a filter, memory
            // that is not there): as if it had never been possible, as soon as the sender writes no
            // more.
            Copied::Denied => {
                let Some(next) = self.incoming.pop_front() else { return Ok(Advance::Idle) };
                self.stop_sender(work.fabric, link, &next);
                Ok(Advance::GaveUp(id, next.offer))
            }
        }
    }

    /// The message at the front is complete: its sender hears of it.
    fn finish(&mut self, link: &mut Link) -> Result<Advance> {
        let (tx, rx) = link.both()?;
        if let Some(next) = self.incoming.pop_front() {
            rx.offers.answer(next.offer);
            tx.push(Outgoing::Say(Envelope::Fin(next.offer)));
        }
        Ok(Advance::Moved)
    }

    /// Copies pieces of a message of this rank into its receiver's memory. True when something moved.
    fn write<R: RequestTable>(&mut self, work: &mut Work<'_, R>, link: &mut Link) -> Result<bool> {
        let Some(next) = self.helped.front_mut() else { return Ok(false) };
        let (rank, tx) = (link.rank, link.tx()?);
        let far = Far { fabric: work.fabric, rank };
        let (mut moved, mut budget) = (false, C::TURN);
        // A send that is complete, or that is packed by now, needs no help.
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
                // - the range is within the message, for which the receiver's elements have room;
                // - the receiver's memory was checked before `help`; the piece is claimed: nobody
                //   else copies it, and the receive is not complete before it is counted;
                // - the send is in flight, and its memory was not withdrawn.
                let copied = unsafe { self.copier.write(far, layout, &next.to, range) };
                next.finished += u64::from(copied.is_ok());
                split.push(next.split, next.finished, copied.is_err());
                moved = true;
                if copied.is_err() {
                    // It ends here: the receiver copies what this rank has claimed.
                    work.fabric.ring(rank);
                    self.helped.pop_front();
                    return Ok(true);
                }
            }
        }
        if moved {
            // Also when the turn's share of work ends with the last piece: the receiver may sleep,
            // and this rank may not come back for long.
            work.fabric.ring(rank);
        }
        if budget > 0 {
            self.helped.pop_front();
        }
        Ok(moved)
    }
}

impl<C: Copier> Protocol for SingleCopies<C> {
    /// An RTS that says where the data lies.
    fn offer<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        id: u64,
    ) -> Result<Offered> {
        let Some(send) = work.requests.send(id) else { return Err(lost("a send")) };
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
            return Err(lost("a receive"));
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

/// How a message of so many bytes is cut.
fn cut<C: Copier>(total: u64) -> Cut {
    Cut::new(total, C::PIECE_MIN, C::PIECE_MAX)
}

impl Incoming {
    /// One turn's work for the message of `total` bytes, between [`Offers::begin`] and [`Offers::end`].
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
        // - the message fits the receive, and the elements at `from` have exactly its bytes;
        // - `from` was checked when the RTS came, and its sender waits for the end of this turn's
        //   reading before it takes the memory back;
        // - the receive is in flight; without a split nobody else writes, with one the piece is claimed.
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
            // Our own from the start, else one that the sender has given up.
            let mine = split.claim_front(number, cut.pieces);
            let index = match mine {
                Some(index) => index,
                None => {
                    let theirs =
                        *self.theirs.get_or_insert_with(|| split.close(number, cut.pieces));
                    let (count, given_up) = split.pushed(number);
                    if count > theirs {
                        return Err(Violation("more pieces than were claimed"));
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
