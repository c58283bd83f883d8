//! The check of the arguments of collective calls that `TYPEPACK_CHECK_TYPES=1` enables: whether all ranks make the
//! same call with the same root and operation, and with counts and types that match.
//!
//! Before a blocking call begins, and when a persistent operation is prepared, all ranks exchange a few words that
//! describe the call (`exchange_steps` in `create.rs`). All ranks compare the same words, so all get the same error. In
//! a call that moves data between pairs of ranks, each sender then tells its receivers what it will send, the receivers
//! compare this with what they expect, and all ranks exchange the results. In a neighbourhood collective, the pairs are
//! the edges of the topology, and all ranks first compare the numbers of edges (`check/edges.rs`). In a nonblocking
//! call, the same steps come first in the schedule of the call (`Builder::check`), so the operation ends with the
//! error.
//!
//! On intercommunicators, the ranks of both groups compare the call, the operation, the root, and the data of
//! reductions and broadcasts. Receivers still check the messages of these calls (`message/typecheck.rs`).

mod edges;

use super::collective::{Collective, Root};
use super::create::{check_failed, exchange_steps};
use super::schedule::neighbors::check_parts;
use crate::comm::{Communicator, Group, Operation};
use crate::commit::bytes;
use crate::endpoint::sources::Combine;
use crate::schedule::calls;
use crate::schedule::program::Builder;
use crate::schedule::table::Place;
use crate::settings::Settings;
use crate::topo::Neighbors;
use crate::{Error, ErrorKind, Operator, Plan, Result};
use std::cell::Cell;
use typepack_engine::signature::{Basic, Sameness};
use typepack_engine::{Elements, Named};

/// The names of the calls. The first word of a [`Description`] is an index into this list.
const CALLS: [&str; 13] = [
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather(v)",
    "MPI_Scatter(v)",
    "MPI_Allgather(v)",
    "MPI_Alltoallv or MPI_Alltoallw",
    "MPI_Alltoall",
    "a neighbourhood collective",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Reduce_scatter",
];

/// The predefined operations. The third word of a [`Description`] is an index into this list, or `USER`, `OTHER` or
/// `NONE`.
const OPERATORS: [Operator; 12] = Operator::ALL;
const USER: u64 = OPERATORS.len() as u64;
const OTHER: u64 = USER + 1;

/// The value of a word that has no meaning for a call, for example the root of a barrier.
const NONE: u64 = u64::MAX;

/// The bit of the first word of a [`Description`] that says that the call is nonblocking.
const NONBLOCKING: u64 = 1 << 32;

/// What ranks compare about elements: the number of bytes, a hash of the types (0 if the types are not compared), and a
/// number for the first basic type. The text of an error names this type ([`types_text`]).
type Data = [u64; 3];

/// What a rank sends and what it expects, message by message. Messages between two ranks match in the order in which
/// both ranks list them.
#[derive(Clone, Default)]
struct Traffic {
    sent: Vec<Sent>,
    expected: Vec<Expected>,
    /// The messages are those of a neighbourhood collective.
    along_edges: bool,
}

#[derive(Clone, Copy)]
struct Sent {
    to: usize,
    data: Data,
}

#[derive(Clone, Copy)]
struct Expected {
    from: usize,
    /// In a neighbourhood collective, the place of the sender in the receiver's list of sources; `NONE` otherwise.
    place: u64,
    data: Data,
}

impl Traffic {
    /// Lists one message to each rank, and one from each rank.
    fn of_ranks(sent: &[Data], expected: &[Data]) -> Self {
        let sent = sent.iter().enumerate().map(|(to, &data)| Sent { to, data });
        let expected = expected.iter().enumerate();
        let expected = expected.map(|(from, &data)| Expected { from, place: NONE, data });
        Self { sent: sent.collect(), expected: expected.collect(), along_edges: false }
    }

    /// Lists the messages of a neighbourhood collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if there is not one part for each neighbour.
    fn of_neighbors(
        neighbors: &Neighbors,
        send: &[Elements<&Plan>],
        receive: &[Elements<&Plan>],
    ) -> Result<Self> {
        let (sources, destinations) = (neighbors.sources(), neighbors.destinations());
        check_parts("send", send, destinations)?;
        check_parts("receive", receive, sources)?;
        let mut traffic = Self { along_edges: true, ..Self::default() };
        for (part, &to) in send.iter().zip(destinations) {
            if let Some(to) = to {
                traffic.sent.push(Sent { to, data: of_part(part)? });
            }
        }
        for place in neighbors.receive_order() {
            if let Some(from) = sources[place] {
                let data = of_part(&receive[place])?;
                traffic.expected.push(Expected { from, place: place as u64, data });
            }
        }
        Ok(traffic)
    }

    /// Returns the memory for what this rank hears about each expected message: what this rank sends to itself, and
    /// `NO_DATA` for the others.
    fn heard(&self, rank: usize) -> Vec<Data> {
        let mut own = self.sent.iter().filter(|sent| sent.to == rank).map(|sent| sent.data);
        let heard = self.expected.iter().map(|expected| match expected.from == rank {
            true => own.next().unwrap_or(NO_DATA),
            false => NO_DATA,
        });
        heard.collect()
    }
}

/// The bit of the third word of a [`Data`] that says that the elements have several basic types.
const SEVERAL: u64 = 1 << 32;

/// The [`Data`] of a call, or of a pair of ranks, for which no data are compared.
const NO_DATA: Data = [NONE, 0, 0];

/// The description of a call: the kind of the call, the root, the operation, and the three words of a [`Data`].
type Description = [u64; 6];

/// What a receiver has found: the kind of the difference (0 if there is none), the sender, the numbers of bytes sent
/// and expected (of elements, in a reduce-scatter), the last words of the [`Data`] sent and expected, and the place of
/// the sender ([`Expected`]).
type Verdict = [u64; 7];
/// The kind of a [`Verdict`]: the numbers of bytes differ.
const COUNTS: u64 = 1;
/// The kind of a [`Verdict`]: the types differ.
const TYPES: u64 = 2;
/// The kind of a [`Verdict`]: the ranks pass different numbers of elements for a block of a reduce-scatter.
const SHARES: u64 = 3;
/// The kind of a [`Verdict`]: the sender has another number of edges to the receiver than the receiver has from it.
const EDGES: u64 = 4;

/// Returns the description of the data of `count` elements.
fn data(plan: &Plan, count: u64) -> Result<Data> {
    let bytes = plan.packed_bytes(count)?;
    // A plan without a datatype and a type with very many structs have no signature.
    let Ok(signature) = plan.signature() else { return Ok([bytes, 0, 0]) };
    let mut runs = signature.runs(count)?;
    let Some(first) = runs.next() else { return Ok([bytes, 0, 0]) };
    let several = if runs.next().is_some() { SEVERAL } else { 0 };
    let hash = signature.hash(count)?;
    let hash = (hash.value as u64) ^ ((hash.value >> 64) as u64).rotate_left(29);
    let hash = if signature.is_packed() { 0 } else { hash.max(1) };
    Ok([bytes, hash, u64::from(first.basic.token()) | several])
}

fn of_part(part: &Elements<&Plan>) -> Result<Data> {
    data(part.plan, part.count)
}

/// Returns whether the types of `a` and `b` match. Both have the same number of bytes.
fn types_match(a: &Data, b: &Data) -> bool {
    a[1] == b[1] || a[1] == 0 || b[1] == 0
}

/// Returns a text for the types of the data, from the last word of a [`Data`].
fn types_text(word: u64) -> String {
    let token = word & (SEVERAL - 1);
    let mut basics = Named::all().filter_map(|named| Basic::new(named, Sameness::Representation));
    let first = basics.find(|basic| u64::from(basic.token()) == token);
    let first = first.map_or_else(|| "an unknown type".to_owned(), |basic| basic.to_string());
    if word & SEVERAL == 0 { first } else { format!("{first} and others") }
}

/// The root of a call on an intercommunicator: this rank.
const HERE: u64 = u64::MAX - 1;

/// The root of a call on an intercommunicator: another rank of this rank's group.
const IN_MY_GROUP: u64 = u64::MAX - 2;

fn root_word(root: Root) -> u64 {
    match root {
        Root::Rank(rank) => rank as u64,
        Root::Here => HERE,
        Root::InMyGroup => IN_MY_GROUP,
    }
}

fn root_text(word: u64) -> String {
    match word {
        HERE => "MPI_ROOT".to_owned(),
        IN_MY_GROUP => "MPI_PROC_NULL".to_owned(),
        rank => rank.to_string(),
    }
}

/// Returns the word of a [`Description`] for an operation. A [`Combine`] does not name its predefined operation, so
/// this function looks for the operation that uses the same function for some type.
fn operation_word(combine: &Combine) -> u64 {
    let Combine::Native(function) = combine else { return USER };
    let has = |operator: &Operator| {
        Named::all()
            .filter_map(|named| operator.combiner(named))
            .any(|other| std::ptr::fn_addr_eq(*function, other))
    };
    OPERATORS.iter().position(has).map_or(OTHER, |place| place as u64)
}

/// Returns the name of a call, from the first word of a [`Description`].
fn call_text(word: u64) -> String {
    let name = CALLS.get((word & !NONBLOCKING) as usize).copied().unwrap_or("another function");
    if word & NONBLOCKING == 0 {
        return name.to_owned();
    }
    // For example, MPI_Bcast becomes MPI_Ibcast.
    let mut words = name.split("MPI_");
    let mut text = words.next().unwrap_or_default().replacen("a ", "a nonblocking ", 1);
    for word in words {
        text.push_str("MPI_I");
        text.push_str(&word.replacen(|_: char| true, &word[..1].to_lowercase(), 1));
    }
    text
}

fn operation_text(word: u64) -> String {
    match OPERATORS.get(word as usize) {
        Some(operator) => format!("MPI_{}", format!("{operator:?}").to_uppercase()),
        None if word == USER => "an operation of the user".to_owned(),
        None => "another operation".to_owned(),
    }
}

/// Describes a call.
fn describe(call: &Collective<'_>) -> Result<Description> {
    let (kind, root, operation, [bytes, hash, text]) = match *call {
        Collective::Barrier => (0, NONE, NONE, NO_DATA),
        Collective::Broadcast { ref part, root } => (1, root_word(root), NONE, of_part(part)?),
        Collective::Gather { root, .. } => (2, root_word(root), NONE, NO_DATA),
        Collective::Scatter { root, .. } => (3, root_word(root), NONE, NO_DATA),
        Collective::Allgather { .. } => (4, NONE, NONE, NO_DATA),
        Collective::Alltoall { .. } => (5, NONE, NONE, NO_DATA),
        Collective::AlltoallEqual { .. } => (6, NONE, NONE, NO_DATA),
        Collective::Neighbors { .. } => (7, NONE, NONE, NO_DATA),
        Collective::Reduce { plan, count, combine, root, .. } => {
            (8, root_word(root), operation_word(combine), data(plan, count)?)
        }
        Collective::Allreduce { plan, count, combine, .. } => {
            (9, NONE, operation_word(combine), data(plan, count)?)
        }
        Collective::Scan { plan, count, combine, .. } => {
            (10, NONE, operation_word(combine), data(plan, count)?)
        }
        Collective::Exscan { plan, count, combine, .. } => {
            (11, NONE, operation_word(combine), data(plan, count)?)
        }
        Collective::ReduceScatter { plan, counts, combine, .. } => {
            // The numbers of elements are compared later, block by block.
            let one = data(plan, u64::from(!counts.is_empty()))?;
            (12, NONE, operation_word(combine), one)
        }
    };
    if root == IN_MY_GROUP {
        return Ok([kind, root, NONE, NONE, 0, 0]);
    }
    Ok([kind, root, operation, bytes, hash, text])
}

/// Returns a text for a rank: one of this group, whose size is `ours`, or one of the remote group behind it.
pub(super) fn rank_text(rank: usize, ours: usize) -> String {
    match rank.checked_sub(ours) {
        None => format!("rank {rank}"),
        Some(rank) => format!("rank {rank} of the remote group"),
    }
}

/// Compares the roots of a call on an intercommunicator. In the group of the root, one rank is the root and the others
/// say that another rank is; the ranks of the other group all name the root.
fn compare_roots(all: &[Description], ours: usize) -> Result<()> {
    if all.iter().all(|words| words[1] == NONE) {
        return Ok(());
    }
    let Some(root) = all.iter().position(|words| words[1] == HERE) else {
        let detail = format!("rank 0 passed {}, and no rank passed MPI_ROOT", root_text(all[0][1]));
        return Err(Error::new(ErrorKind::Root, "root", detail));
    };
    let number = if root < ours { root } else { root - ours } as u64;
    for (rank, words) in all.iter().enumerate() {
        let wanted = match (root < ours) == (rank < ours) {
            true if rank == root => HERE,
            true => IN_MY_GROUP,
            false => number,
        };
        if words[1] != wanted {
            let detail = format!(
                "{} passed MPI_ROOT, and {} passed {}",
                rank_text(root, ours),
                rank_text(rank, ours),
                root_text(words[1])
            );
            return Err(Error::new(ErrorKind::Root, "root", detail));
        }
    }
    Ok(())
}

/// Compares the descriptions of all ranks with that of the first rank that passes data. The local group has `ours`
/// ranks; in an intercommunicator, those of the remote group come behind them.
fn compare(all: &[Description], ours: usize) -> Result<()> {
    let is_inter = ours < all.len();
    // In an intercommunicator, the other ranks of the root's group pass nothing but the root.
    let passes = |words: &Description| words[1] != IN_MY_GROUP;
    let reference = all.iter().position(passes).unwrap_or(0);
    let first = all[reference];
    for (rank, other) in all.iter().enumerate() {
        let (whose, who) = (rank_text(reference, ours), rank_text(rank, ours));
        let differ = |kind, argument, one: String, another: String| {
            let detail = format!("{whose} passed {one}, and {who} passed {another}");
            Err(Error::new(kind, argument, detail))
        };
        if first[0] != other[0] {
            let detail = format!(
                "{whose} calls {}, and {who} calls {}; all ranks must make the same calls in the same order",
                call_text(first[0]),
                call_text(other[0])
            );
            return Err(Error::new(ErrorKind::Other, "call", detail));
        }
        if first[1] != other[1] && !is_inter {
            return differ(ErrorKind::Root, "root", root_text(first[1]), root_text(other[1]));
        }
        if !passes(other) {
            continue;
        }
        if first[2] != other[2] {
            let text = operation_text;
            return differ(ErrorKind::Argument, "op", text(first[2]), text(other[2]));
        }
        if first[3] != other[3] {
            let bytes = |word: u64| format!("{word} bytes of data");
            return differ(ErrorKind::Count, "count", bytes(first[3]), bytes(other[3]));
        }
        let (one, another) = ([first[3], first[4], first[5]], [other[3], other[4], other[5]]);
        if !types_match(&one, &another) {
            let text = types_text;
            return differ(ErrorKind::Type, "datatype", text(one[2]), text(another[2]));
        }
    }
    if is_inter { compare_roots(all, ours) } else { Ok(()) }
}

/// Returns what this rank sends and what it expects. Where the call moves nothing, the data are `NO_DATA`. Returns
/// `None` if the descriptions of the call have already compared the data.
///
/// A rank checks the part that it sends to itself when it copies this part, so these data are `NO_DATA` too. This does
/// not hold for neighbourhood collectives, in which an edge may lead from a rank to itself.
///
/// In an intercommunicator, the receivers alone compare these data, when the messages arrive.
fn traffic(comm: &Communicator, call: &Collective<'_>) -> Result<Option<Traffic>> {
    if comm.is_inter() {
        return Ok(None);
    }
    let (size, rank) = (comm.size(), comm.rank());
    let (mut sent, mut expected) = (vec![NO_DATA; size], vec![NO_DATA; size]);
    let each = |list: &mut [Data], parts: &[Elements<&Plan>]| -> Result<()> {
        for (data, part) in list.iter_mut().zip(parts) {
            *data = of_part(part)?;
        }
        Ok(())
    };
    match *call {
        Collective::Gather { ref mine, parts, root: Root::Rank(root) } if root < size => {
            if let Some(mine) = mine {
                sent[root] = of_part(mine)?;
            }
            if root == rank {
                each(&mut expected, parts)?;
            }
        }
        Collective::Scatter { ref mine, parts, root: Root::Rank(root) } if root < size => {
            if let Some(mine) = mine {
                expected[root] = of_part(mine)?;
            }
            if root == rank {
                each(&mut sent, parts)?;
            }
        }
        Collective::Allgather { ref mine, parts } => {
            if let Some(mine) = mine.as_ref().or(parts.get(rank)) {
                sent.fill(of_part(mine)?);
            }
            each(&mut expected, parts)?;
        }
        Collective::Alltoall { send, receive } | Collective::AlltoallEqual { send, receive } => {
            each(&mut sent, send.unwrap_or(receive))?;
            each(&mut expected, receive)?;
        }
        Collective::Neighbors { neighbors, send, receive } => {
            return Traffic::of_neighbors(neighbors, send, receive).map(Some);
        }
        Collective::ReduceScatter { counts, .. } => {
            for (data, &count) in sent.iter_mut().zip(counts) {
                *data = [count, 0, 0];
            }
            if let Some(&count) = counts.get(rank) {
                expected.fill([count, 0, 0]);
            }
        }
        _ => return Ok(None),
    }
    (sent[rank], expected[rank]) = (NO_DATA, NO_DATA);
    Ok(Some(Traffic::of_ranks(&sent, &expected)))
}

/// Compares what other ranks send to this rank with what this rank expects.
/// `counts_elements` says that the call is a reduce-scatter.
fn judge(counts_elements: bool, sent: &[Data], expected: &[Expected]) -> Verdict {
    for (sent, &Expected { from, place, data: expected }) in sent.iter().zip(expected) {
        if sent[0] == NONE || expected[0] == NONE {
            continue;
        }
        let kind = match sent[0] == expected[0] {
            true if types_match(sent, &expected) => continue,
            _ if counts_elements => SHARES,
            true => TYPES,
            false => COUNTS,
        };
        return [kind, from as u64, sent[0], expected[0], sent[2], expected[2], place];
    }
    [0; 7]
}

/// Returns an error for the lowest rank that has found a difference as a receiver. `verdicts` are those of all ranks.
fn first_error(verdicts: &[Verdict]) -> Result<()> {
    let Some(to) = verdicts.iter().position(|verdict| verdict[0] != 0) else { return Ok(()) };
    let [kind, from, sent, expected, sent_text, expected_text, place] = verdicts[to];
    let source = if place == NONE { String::new() } else { format!(" from its source {place}") };
    let (kind, argument, detail) = match kind {
        COUNTS => (
            ErrorKind::Count,
            "count",
            format!(
                "rank {from} sends {sent} bytes to rank {to}, which receives {expected} bytes{source}"
            ),
        ),
        TYPES => (
            ErrorKind::Type,
            "datatype",
            format!(
                "rank {from} sends {} to rank {to}, which receives {}{source}",
                types_text(sent_text),
                types_text(expected_text)
            ),
        ),
        EDGES => (ErrorKind::Topology, "comm", edges::text((from, sent), (to as u64, expected))),
        _ => (
            ErrorKind::Count,
            "recvcounts",
            format!("entry {to}: rank {from} passed {sent}, and rank {to} passed {expected}"),
        ),
    };
    Err(Error::new(kind, argument, detail))
}

/// What the ranks compare about one call.
struct Compared {
    mine: Description,
    traffic: Option<Traffic>,
    /// Whether the traffic counts elements of a reduce-scatter.
    counts_elements: bool,
}

impl Compared {
    fn of(comm: &Communicator, call: &Collective<'_>, is_nonblocking: bool) -> Result<Self> {
        let mut mine = describe(call)?;
        mine[0] |= if is_nonblocking { NONBLOCKING } else { 0 };
        let counts_elements = matches!(call, Collective::ReduceScatter { .. });
        Ok(Self { mine, traffic: traffic(comm, call)?, counts_elements })
    }
}

/// The address of scratch memory of a schedule.
#[derive(Clone, Copy)]
struct Scratch<T>(*mut T);

// SAFETY: the value is only an address. The schedule's steps and checks use the memory one after another, under the
// lock of the endpoint.
unsafe impl<T: Send> Send for Scratch<T> {}

impl<T> Scratch<T> {
    /// Writes the first value.
    ///
    /// # Safety
    ///
    /// - The memory has room for the value, and nobody else uses it during the call.
    unsafe fn write(self, value: T) {
        // SAFETY: the caller guarantees the memory (the condition of `# Safety`). Scratch memory is aligned to 16
        // bytes.
        unsafe { self.0.write(value) };
    }

    /// Returns the first `len` values.
    ///
    /// # Safety
    ///
    /// - The memory has `len` initialised values, and nobody writes them as long as the slice lives.
    unsafe fn slice<'a>(self, len: usize) -> &'a [T] {
        // SAFETY: the caller guarantees the values (the condition of `# Safety`). Scratch memory is aligned to 16
        // bytes, which is enough for arrays of words.
        unsafe { std::slice::from_raw_parts(self.0, len) }
    }
}

impl Communicator {
    /// Returns whether collective calls on this communicator must be checked before they begin.
    #[inline]
    pub(super) fn checks_calls(&self) -> bool {
        Settings::current().is_some_and(|settings| settings.check_types)
    }

    /// Checks a call together with all other ranks, which make the call too. All ranks get the same error.
    ///
    /// # Errors
    /// Returns an error that names the argument in which ranks differ, and two different values. Returns this rank's
    /// own error if `call` cannot be described, and `ErrorKind::Other` if another rank has found an error in its own
    /// arguments.
    #[cold]
    pub(super) fn check_call(&self, call: &Collective<'_>) -> Result<()> {
        let place = self.next_place();
        let words = Compared::of(self, call, false).inspect_err(|_| self.fail_check_at(place))?;
        // SAFETY: the steps use only scratch memory of the schedule.
        unsafe {
            calls::run(self.endpoint(), (call.method(), self.size()), place, |steps| {
                self.check_steps(steps, &words)
            })
        }
    }

    /// Starts a call whose first steps check it together with all other ranks. If ranks differ, the operations of all
    /// ranks end with the same error, and move no data.
    ///
    /// # Safety
    ///
    /// - The conditions of [`start_raw`](Self::start_raw) hold.
    ///
    /// # Errors
    /// Returns the errors of [`check_call`](Self::check_call) that this rank finds by itself, and those of
    /// [`start_raw`](Self::start_raw).
    #[cold]
    pub(super) unsafe fn start_checked(&self, call: &Collective<'_>) -> Result<Operation> {
        let place = self.next_place();
        let words = Compared::of(self, call, true).inspect_err(|_| self.fail_check_at(place))?;
        let listed = Cell::new(false);
        // SAFETY: the steps of the check use only scratch memory of the schedule. The caller guarantees the memory of
        // the steps of `list` (the condition of `# Safety`).
        let started = unsafe {
            calls::start(self.endpoint(), place, |steps| {
                self.check_steps(steps, &words)?;
                self.list(steps, call)?;
                listed.set(true);
                Ok(())
            })
        };
        if !listed.get() {
            // Nothing has started, so the other ranks would wait for the words of this rank.
            self.fail_check_at(place);
        }
        started
    }

    /// Adds the steps of a check. They use scratch memory of the schedule only.
    fn check_steps(&self, steps: &mut Builder<'_, '_>, words: &Compared) -> Result<()> {
        let (size, theirs) = (self.size(), self.remote_group().map_or(0, Group::size));
        let all = self.words_steps::<{ size_of::<Description>() / 8 }>(steps, &words.mine)?;
        steps.check(move || {
            // SAFETY: the steps before this one have written the words of all ranks, and are over.
            let all: &[Description] = unsafe { all.slice(size + theirs) };
            check_failed(all, size)?;
            compare(all, size)
        });
        let Some(traffic) = &words.traffic else { return Ok(()) };
        if traffic.along_edges {
            self.edge_steps(steps, traffic)?;
        }
        let (plan, rank) = (bytes()?, self.rank());
        let (sent, expected, first) =
            (&traffic.sent, traffic.expected.clone(), traffic.heard(rank));
        let length = size_of::<Data>() as u64;
        let scratch = |steps: &mut Builder<'_, '_>, count: usize| -> Result<Scratch<Data>> {
            Ok(Scratch(steps.scratch_at_once(plan, length * count.max(1) as u64)?.cast()))
        };
        let (ours, heard) = (scratch(steps, sent.len())?, scratch(steps, expected.len())?);
        // SAFETY: the blocks of scratch memory have room for the values of `sent` and `expected`, `first` has one value
        // for each of `expected`, and no step uses the memory yet.
        unsafe {
            for (at, message) in sent.iter().enumerate() {
                ours.0.add(at).write(message.data);
            }
            heard.0.copy_from_nonoverlapping(first.as_ptr(), first.len());
        }
        let one = |block: &Scratch<Data>, at: usize| Elements {
            origin: block.0.wrapping_add(at).cast(),
            plan,
            count: length,
        };
        for (at, message) in sent.iter().enumerate().filter(|(_, message)| message.to != rank) {
            steps.send(&one(&ours, at), self.peer(message.to)?)?;
        }
        for (at, from) in expected.iter().map(|message| message.from).enumerate() {
            if from != rank {
                steps.receive(&one(&heard, at), self.peer(from)?)?;
            }
        }
        let counts_elements = words.counts_elements;
        self.verdict_steps(steps, move || {
            // SAFETY: the steps before this one have written one value for each message that this rank expects, and are
            // over.
            judge(counts_elements, unsafe { heard.slice(expected.len()) }, &expected)
        })
    }

    /// Adds the steps in which each rank judges what it has heard, and in which all ranks exchange the verdicts. The
    /// schedule ends with an error if a rank has found a difference. `judge` runs after all steps before it are over.
    fn verdict_steps(
        &self,
        steps: &mut Builder<'_, '_>,
        judge: impl Fn() -> Verdict + Send + 'static,
    ) -> Result<()> {
        let (plan, size) = (bytes()?, self.size());
        let verdict =
            Scratch::<Verdict>(steps.scratch_at_once(plan, size_of::<Verdict>() as u64)?.cast());
        steps.check(move || {
            let found = judge();
            // SAFETY: the scratch memory has room for the verdict. The next step, which reads it, has not begun.
            unsafe { verdict.write(found) };
            Ok(())
        });
        let all = Scratch::<Verdict>(
            steps.scratch_at_once(plan, (size_of::<Verdict>() * size) as u64)?.cast(),
        );
        let memory = (verdict.0.cast(), all.0.cast());
        exchange_steps(self, steps, memory, size_of::<Verdict>(), (size, 0))?;
        // SAFETY: the steps before this one have written the verdicts of `size` ranks, and are over.
        steps.check(move || first_error(unsafe { all.slice(size) }));
        Ok(())
    }

    /// Adds the steps of an exchange of words. Returns the memory for the words of all ranks.
    fn words_steps<const N: usize>(
        &self,
        steps: &mut Builder<'_, '_>,
        mine: &[u64; N],
    ) -> Result<Scratch<[u64; N]>> {
        let (plan, ours) = (bytes()?, self.size());
        let theirs = self.remote_group().map_or(0, Group::size);
        let length = size_of::<[u64; N]>();
        let own = Scratch::<[u64; N]>(steps.scratch_at_once(plan, length as u64)?.cast());
        let room = (length * (ours + theirs)) as u64;
        let all = Scratch::<[u64; N]>(steps.scratch_at_once(plan, room)?.cast());
        // SAFETY: the scratch memory has room for one array, and no step uses it yet.
        unsafe { own.write(*mine) };
        exchange_steps(self, steps, (own.0.cast(), all.0.cast()), length, (ours, theirs))?;
        Ok(all)
    }

    /// Takes part in the check of a call that has taken its place, like [`fail_check`](Self::fail_check).
    fn fail_check_at(&self, place: Place) {
        self.fail_exchange_at::<{ size_of::<Description>() / size_of::<u64>() }>(place);
    }

    /// Takes part in the check of a call as a rank that has found an error in its own arguments. All other ranks get an
    /// error, and the next collective call of this rank matches the next one of the other ranks. Does not wait.
    pub(super) fn fail_check(&self) {
        self.fail_check_at(self.next_place());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datatype;

    fn plan(named: Named) -> Plan {
        Datatype::named(named).commit().expect("a plan")
    }

    #[test]
    fn operations_have_numbers() {
        for (place, operator) in OPERATORS.into_iter().enumerate() {
            let named = if place < 10 { Named::INT } else { Named::PAIR_INT };
            let combine = operator.combine(&Datatype::named(named)).expect("defined");
            assert_eq!(operation_word(&combine), place as u64, "{operator:?}");
        }
        assert_eq!(operation_word(&Combine::user(|_, _, _, _| {})), USER);
        assert_eq!(operation_text(2), "MPI_SUM");
        let calls = [0, NONBLOCKING, NONBLOCKING | 5, NONBLOCKING | 7, 99].map(call_text);
        let names = [
            "MPI_Barrier",
            "MPI_Ibarrier",
            "MPI_Ialltoallv or MPI_Ialltoallw",
            "a nonblocking neighbourhood collective",
            "another function",
        ];
        assert_eq!(calls, names);
    }

    #[test]
    fn data_match_by_class_and_width() {
        let of = |named, count| data(&plan(named), count).expect("a size");
        assert!(types_match(&of(Named::LONG, 3), &of(Named::INT64_T, 3)));
        assert!(!types_match(&of(Named::LONG, 3), &of(Named::DOUBLE, 3)));
        assert!(types_match(&of(Named::PACKED, 24), &of(Named::DOUBLE, 3)));
        assert!(!types_match(&of(Named::BYTE, 24), &of(Named::DOUBLE, 3)));
        assert_eq!(of(Named::DOUBLE, 0), [0, 0, 0]);
        assert_eq!(types_text(of(Named::DOUBLE, 3)[2]), "float 8");
        let ints = Datatype::named(Named::INT);
        let pair = Datatype::structured(&[1, 1], &[0, 8], &[ints, Datatype::named(Named::DOUBLE)]);
        let pair = pair.expect("a type").commit().expect("a plan");
        assert_eq!(types_text(data(&pair, 1).expect("a size")[2]), "integer 4 and others");
    }

    #[test]
    fn errors_name_both_values() {
        let of = |root| [1, root, NONE, 8, 5, 0];
        assert_eq!(compare(&[of(1), of(1)], 2), Ok(()));
        let error = compare(&[of(1), of(1), of(0)], 3).expect_err("roots differ");
        assert_eq!(error.kind(), ErrorKind::Root);
        assert_eq!(error.to_string(), "root: rank 0 passed 1, and rank 2 passed 0");
        // Two groups of two ranks; rank 1 of this group is the root.
        let groups = |roots: [u64; 4]| compare(&roots.map(of), 2);
        assert_eq!(groups([IN_MY_GROUP, HERE, 1, 1]), Ok(()));
        assert_eq!(groups([1, 1, IN_MY_GROUP, HERE]), Ok(()));
        for (roots, text) in [
            (
                [IN_MY_GROUP, HERE, 1, 0],
                "rank 1 passed MPI_ROOT, and rank 1 of the remote group passed 0",
            ),
            ([HERE, HERE, 0, 0], "rank 0 passed MPI_ROOT, and rank 1 passed MPI_ROOT"),
            ([0, 0, IN_MY_GROUP, IN_MY_GROUP], "rank 0 passed 0, and no rank passed MPI_ROOT"),
        ] {
            assert_eq!(groups(roots).expect_err(text).to_string(), format!("root: {text}"));
        }
        let error =
            first_error(&[[0; 7], [COUNTS, 0, 8, 12, 0, 0, NONE]]).expect_err("counts differ");
        assert_eq!(
            error.to_string(),
            "count: rank 0 sends 8 bytes to rank 1, which receives 12 bytes"
        );
        let error = first_error(&[[0; 7], [COUNTS, 0, 8, 12, 0, 0, 3]]).expect_err("counts differ");
        assert_eq!(
            error.to_string(),
            "count: rank 0 sends 8 bytes to rank 1, which receives 12 bytes from its source 3"
        );
    }
}
