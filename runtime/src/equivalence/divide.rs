//! Describes collective calls of buffers as [`Collective`]s.
//!
//! All calls of `collectives.rs`, `neighbors.rs` and `scope.rs` go through [`call`]. It divides each buffer among the
//! ranks, checks the lengths, and then makes the call. Each check is made before anything is sent.
//!
//! Invariant: a described call reads only data of the sending buffers, and writes only data of the receiving ones.
//! Parts that are written overlap no other part: the receiving buffers are mutably borrowed, and the items of one
//! buffer are disjoint ([`Sequence::check_disjoint`]).

use super::buffer::Sequence;
use crate::coll::{Collective, Root};
use crate::comm::Communicator;
use crate::topo::Neighbors;
use crate::{Error, ErrorKind, Plan, Result};
use typepack_engine::Elements;

/// A collective call. If there are no `counts`, all parts of a divided buffer have the same number of items.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'k> {
    Gather {
        counts: Option<&'k [usize]>,
        root: Root,
    },
    Scatter {
        counts: Option<&'k [usize]>,
        root: Root,
    },
    AllGather {
        counts: Option<&'k [usize]>,
    },
    /// `counts` has the numbers for sending and for receiving.
    AllToAll {
        counts: Option<(&'k [usize], &'k [usize])>,
    },
    NeighborAllGather {
        counts: Option<&'k [usize]>,
    },
    /// `counts` has the numbers for sending and for receiving.
    NeighborAllToAll {
        counts: Option<(&'k [usize], &'k [usize])>,
    },
}

/// The buffers on one side of a call, for sending or for receiving.
#[derive(Debug)]
pub(super) enum Buffers<'a> {
    /// The call sends what is in the receiving buffer, or does not use this side.
    None,
    /// One buffer, which the call may divide.
    One(Sequence<'a>),
    /// One buffer for each part.
    Parts(Vec<Sequence<'a>>),
}

/// A side of a call, divided.
struct Divided<'a> {
    argument: &'static str,
    /// The name of the counts, if there are any.
    counted: &'static str,
    side: &'a Buffers<'a>,
}

/// The parts of a call.
struct Parts<'a> {
    mine: Option<Elements<&'a Plan>>,
    send: Vec<Elements<&'a Plan>>,
    receive: Vec<Elements<&'a Plan>>,
}

/// Describes a collective call, and calls `make` with the description. If an argument is wrong, calls `skip` instead,
/// which counts the call as made, so that this rank's next collective call matches that of the other ranks. `send` and
/// `recv` give the buffers; they are not called if the call does not use the buffers on this rank.
///
/// The described call uses only data of these buffers, as the invariant at the top says.
///
/// # Errors
/// Returns `ErrorKind::Buffer` if a buffer has a wrong length, `ErrorKind::Argument` if there is a wrong number of
/// parts or counts, `ErrorKind::Topology` if the communicator has no neighbours, the errors of `send` and `recv`, and
/// those of `make`.
pub(super) fn call<'a, R>(
    comm: &Communicator,
    kind: Kind<'_>,
    send: impl FnOnce() -> Result<Buffers<'a>>,
    recv: impl FnOnce() -> Result<Buffers<'a>>,
    skip: impl FnOnce(&Communicator),
    make: impl FnOnce(&Collective<'_>) -> Result<R>,
) -> Result<R> {
    let (sends, receives) = uses(comm, kind);
    let sides = || {
        let send = if sends { send()? } else { Buffers::None };
        Ok((send, if receives { recv()? } else { Buffers::None }))
    };
    let (send, recv) = match sides() {
        Ok(sides) => sides,
        Err(error) => {
            skip(comm);
            return Err(error);
        }
    };
    let described =
        parts(comm, kind, &send, &recv).and_then(|parts| Ok((parts, neighbors(comm, kind)?)));
    let (Parts { mine, send: sent, receive }, neighbors) = described.inspect_err(|_| skip(comm))?;
    let receive = &*receive;
    let call = match (kind, neighbors) {
        (Kind::Gather { root, .. }, _) => Collective::Gather { mine, parts: receive, root },
        (Kind::Scatter { root, .. }, _) => Collective::Scatter { parts: &sent, mine, root },
        (Kind::AllGather { .. }, _) => Collective::Allgather { mine, parts: receive },
        (_, Some(neighbors)) => Collective::Neighbors { neighbors, send: &sent, receive },
        (_, None) => {
            let equal = matches!(kind, Kind::AllToAll { counts: None })
                && matches!(&recv, Buffers::One(_))
                && !matches!(&send, Buffers::Parts(_));
            let send = (!matches!(&send, Buffers::None)).then_some(&*sent);
            match equal {
                true => Collective::AlltoallEqual { send, receive },
                false => Collective::Alltoall { send, receive },
            }
        }
    };
    make(&call)
}

/// Returns whether this rank sends a buffer and receives into one.
fn uses(comm: &Communicator, kind: Kind<'_>) -> (bool, bool) {
    let (root, gathers) = match kind {
        Kind::Gather { root, .. } => (root, true),
        Kind::Scatter { root, .. } => (root, false),
        _ => return (true, true),
    };
    let (moves, is_root) = match root {
        // In an intercommunicator, this is the number of a rank of the remote group.
        Root::Rank(root) => (true, !comm.is_inter() && comm.rank() == root),
        Root::Here => (false, true),
        Root::InMyGroup => (false, false),
    };
    if gathers { (moves, is_root) } else { (is_root, moves) }
}

fn neighbors<'a>(comm: &'a Communicator, kind: Kind<'_>) -> Result<Option<&'a Neighbors>> {
    if !matches!(kind, Kind::NeighborAllGather { .. } | Kind::NeighborAllToAll { .. }) {
        return Ok(None);
    }
    let topology = comm.topology().ok_or_else(|| {
        let detail = "the communicator has no topology, so its ranks have no neighbours";
        Error::new(ErrorKind::Topology, "comm", detail)
    })?;
    Ok(Some(topology.neighbors()))
}

/// Divides the buffers of a call, and checks their lengths.
fn parts<'a>(
    comm: &Communicator,
    kind: Kind<'_>,
    send: &'a Buffers<'a>,
    recv: &'a Buffers<'a>,
) -> Result<Parts<'a>> {
    let ranks = comm.peers().size();
    let sent = Divided { argument: "send", counted: "counts", side: send };
    let received = Divided { argument: "recv", counted: "counts", side: recv };
    // The ranks of an intercommunicator get the data of the other group, whose length this rank does not know.
    let own = (!comm.is_inter()).then(|| comm.rank());
    match kind {
        Kind::Gather { counts, .. } | Kind::AllGather { counts } => {
            let receive = received.parts(ranks, counts)?;
            received.check(&receive, &sent, own)?;
            Ok(Parts { mine: sent.whole(), send: Vec::new(), receive })
        }
        Kind::Scatter { counts, .. } => {
            let parts = sent.parts(ranks, counts)?;
            sent.check(&parts, &received, own)?;
            Ok(Parts { mine: received.whole(), send: parts, receive: Vec::new() })
        }
        Kind::AllToAll { counts } => {
            let (sends, receives) = counts.unzip();
            let sent = Divided { counted: "send_counts", ..sent }.parts(ranks, sends)?;
            let received = Divided { counted: "recv_counts", ..received };
            let receive = received.parts(ranks, receives)?;
            received.check_pair(&sent, own, &receive, own)?;
            Ok(Parts { mine: None, send: sent, receive })
        }
        Kind::NeighborAllGather { counts } => {
            let neighbors = neighbors(comm, kind)?;
            let (sources, destinations) = neighbors.map_or((0, 0), lengths);
            let receive = received.parts(sources, counts)?;
            if counts.is_none() {
                received.check(&receive, &sent, (sources > 0 && destinations > 0).then_some(0))?;
            }
            Ok(Parts {
                mine: None,
                send: sent.whole().into_iter().cycle().take(destinations).collect(),
                receive,
            })
        }
        Kind::NeighborAllToAll { counts } => {
            let neighbors = neighbors(comm, kind)?;
            let (sources, destinations) = neighbors.map_or((0, 0), lengths);
            let (sends, receives) = counts.unzip();
            let sent = Divided { counted: "send_counts", ..sent };
            let (equal, sent) = (matches!(send, Buffers::One(_)), sent.parts(destinations, sends)?);
            let received = Divided { counted: "recv_counts", ..received };
            let receive = received.parts(sources, receives)?;
            if equal && counts.is_none() && !sent.is_empty() && !receive.is_empty() {
                received.check_pair(&sent, Some(0), &receive, Some(0))?;
            }
            Ok(Parts { mine: None, send: sent, receive })
        }
    }
}

/// Returns the numbers of sources and of destinations.
fn lengths(neighbors: &Neighbors) -> (usize, usize) {
    (neighbors.sources().len(), neighbors.destinations().len())
}

impl<'a> Divided<'a> {
    fn refused<T>(&self, detail: String) -> Result<T> {
        Err(Error::new(ErrorKind::Buffer, self.argument, detail))
    }

    /// Returns the whole buffer as one part; `None` if there is no buffer.
    fn whole(&self) -> Option<Elements<&'a Plan>> {
        match self.side {
            Buffers::One(sequence) => Some(sequence.whole()),
            Buffers::None | Buffers::Parts(_) => None,
        }
    }

    /// Divides the side into `number` parts. If there are counts, part `i` has `counts[i]` items.
    fn parts(&self, number: usize, counts: Option<&[usize]>) -> Result<Vec<Elements<&'a Plan>>> {
        let sequence = match self.side {
            Buffers::None => return Ok(Vec::new()),
            Buffers::Parts(sequences) if sequences.len() == number => {
                return Ok(sequences.iter().map(Sequence::whole).collect());
            }
            Buffers::Parts(sequences) => {
                return Err(wrong_number(self.argument, sequences.len(), number));
            }
            Buffers::One(sequence) => sequence,
        };
        if self.argument == "recv" && number > 1 {
            sequence.check_disjoint(self.argument)?;
        }
        let items = sequence.items;
        match counts {
            Some(counts) if counts.len() != number => {
                return Err(wrong_number(self.counted, counts.len(), number));
            }
            Some(counts) => {
                let total = counts.iter().fold(0usize, |sum, count| sum.saturating_add(*count));
                if total != items {
                    return self.refused(format!(
                        "the buffer has {items} items; the sum of {} is {total}",
                        self.counted
                    ));
                }
            }
            None if number == 0 && items > 0 => {
                return self
                    .refused(format!("the buffer has {items} items; there is no neighbour"));
            }
            None if number > 0 && !items.is_multiple_of(number) => {
                return self.refused(format!(
                    "the buffer has {items} items, which cannot be divided into {number} equal parts"
                ));
            }
            None => {}
        }
        let (whole, mut first) = (sequence.whole(), 0u64);
        let part = |place| {
            let items = counts.map_or_else(|| items / number, |counts| counts[place]);
            let end = first + items as u64 * sequence.each;
            let part = whole.slice(first..end);
            first = end;
            part
        };
        Ok((0..number).map(part).collect())
    }

    /// Checks that part `place` of this side has the packed size of `other`, which is one part. Makes no check if there
    /// is no `place`.
    fn check(
        &self,
        parts: &[Elements<&'a Plan>],
        other: &Divided<'a>,
        place: Option<usize>,
    ) -> Result<()> {
        let (Some(place), Some(whole)) = (place, other.whole()) else { return Ok(()) };
        self.check_pair(&[whole], Some(0), parts, Some(place))
    }

    /// Checks that two parts have the same packed size: one of the other side, and one of this side. Makes no check if
    /// there is no such part.
    fn check_pair(
        &self,
        others: &[Elements<&'a Plan>],
        other: Option<usize>,
        parts: &[Elements<&'a Plan>],
        place: Option<usize>,
    ) -> Result<()> {
        let (Some(other), Some(place)) = (other, place) else { return Ok(()) };
        let (Some(theirs), Some(ours)) = (others.get(other), parts.get(place)) else {
            return Ok(());
        };
        let (theirs, ours) = (theirs.bytes()?, ours.bytes()?);
        if theirs == ours {
            return Ok(());
        }
        let other = if self.argument == "recv" { "send" } else { "recv" };
        self.refused(format!(
            "part {place} of the buffer has {ours} bytes of data; the part in {other} has {theirs} bytes"
        ))
    }
}

#[cold]
fn wrong_number(argument: &'static str, given: usize, needed: usize) -> Error {
    let detail = format!("the slice has length {given}; its length must be {needed}");
    Error::new(ErrorKind::Argument, argument, detail)
}
