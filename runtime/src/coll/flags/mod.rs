//! Blocking calls through memory that the ranks of the communicator share, without messages and without locks between
//! ranks.
//!
//! The ranks number the blocking calls on the communicator. A call has one step, or more if the data are longer than a
//! piece of a ring. In a step, a rank publishes a piece of its data in its cell of this step, and the ranks that need
//! the piece read it there. `shm/cells.rs` of the job crate has the protocol, `block.rs` the memory, `turn.rs` the
//! steps, `piece.rs` the pieces, `competition.rs` and `choices.rs` the way of longer calls, `copies.rs` the method of
//! copies, `moves.rs` and `exchanges.rs` the calls that
//! move data, `reductions.rs`, `blocks.rs`, `fold.rs` and `link.rs` the reductions. A nonblocking or persistent call is
//! a schedule of messages. All ranks decide alike: the standard does not let a blocking call match a nonblocking one,
//! and only the kind of the call, the length of the data and, in a reduction, the size of an element and whether a
//! user's function combines decide, and for longer data what rank 0 has measured. In a gather, each rank and the root
//! decide for the data of this rank.
//!
//! Reductions combine in the order of `reduce.rs`, `allreduce.rs` and `scan.rs`, so that the result has the same
//! bits whichever way a call goes.
//!
//! The ranks make the memory in the blocking call number [`MADE_IN`], in which all ranks take part, even those whose
//! arguments are wrong. If a rank has too little memory, all calls on this communicator go by messages. If a rank has
//! too little memory even for the messages by which the ranks agree, the call fails there, as a call by messages would.

mod block;
mod blocks;
pub(crate) mod choices;
mod competition;
pub(crate) mod copies;
mod exchanges;
mod fold;
mod heads;
mod link;
mod moves;
mod piece;
mod reductions;
mod turn;

use super::Collective;
use crate::comm::Communicator;
use crate::endpoint::sources::Combine;
use crate::region::{LOST, tell};
use crate::schedule::table::Place;
use crate::settings::{CollectiveMethod, Settings};
use crate::shm::cells::{CALLS, CELLS, Seat, step};
use crate::{Error, ErrorKind, Result};
use block::Block;
use choices::{Choices, Site};
use copies::Copies;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use turn::Turn;
use typepack_engine::choice;

/// Number of the blocking call in which the ranks make their cells. A communicator with fewer blocking calls has no
/// cells.
const MADE_IN: u64 = 3;

/// After this number of calls at the latest, the ranks ask each other again whether one of them needs the longer ring.
/// An answer takes as long as a short call.
const ASK_AGAIN: u64 = 256;

/// Returns whether the ranks ask each other in this call whether one of them needs the longer ring. The question is a
/// call of its own, before the blocking call that the program makes. The ranks cannot make the ring in the call that
/// needs the ring: in a gather, for example, the ranks do not know how much data the others have. They ask in the calls
/// 4, 6, 8, 12, 16, 24 and so on, and in every call whose number is a multiple of [`ASK_AGAIN`].
fn asks(call: u64) -> bool {
    call > MADE_IN && ((call >> call.trailing_zeros()) <= 3 || call.is_multiple_of(ASK_AGAIN))
}

/// Number of cells of a rank that does not share its CPU. A few cells suffice, because the ranks that read run at the
/// same time. (Ranks that share CPUs have [`CELLS`].)
const CELLS_ALONE: usize = 16;

/// Largest number of ranks of a communicator with cells. In most calls some rank reads the cells of all other ranks, so
/// a call takes longer with more ranks.
const MOST: usize = 32;

/// What a communicator keeps: the cells, and the number of blocking calls so far. One thread at a time makes a
/// blocking call on a communicator.
///
/// A call with a user's function takes the state away and holds no lock while it runs, because the function may wait
/// for a lock that another thread holds. (Python has such a lock.) Other threads wait until the call has returned the
/// state.
#[derive(Default)]
struct Kept {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    calls: u64,
    cells: Made,
    /// The thread that has taken the state away.
    taken: Option<ThreadId>,
}

/// The state during a call that has taken it away from the communicator.
struct Taken<'k>(&'k Kept, State);

impl Kept {
    /// Locks the state for a call of this thread.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if a user's function makes the call, and its reduction has taken the state away.
    #[inline]
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.taken.is_some() { self.wait(state) } else { Ok(state) }
    }

    /// Takes the state away for a call of this thread. The caller holds no lock.
    ///
    /// # Errors
    /// Returns the errors of [`lock`](Self::lock).
    fn take(&self) -> Result<Taken<'_>> {
        let mut state = self.lock()?;
        let place = State { taken: Some(std::thread::current().id()), ..State::default() };
        Ok(Taken(self, std::mem::replace(&mut *state, place)))
    }

    /// Waits until another thread has returned the state.
    #[cold]
    fn wait<'k>(&'k self, mut state: MutexGuard<'k, State>) -> Result<MutexGuard<'k, State>> {
        while let Some(thread) = state.taken {
            if thread == std::thread::current().id() {
                let detail = "the function of a reduction makes a collective call on the communicator of the \
                              reduction, which has not ended";
                return Err(Error::new(ErrorKind::Other, "comm", detail));
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(state)
    }
}

impl Deref for Taken<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.1
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.1
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let Self(kept, state) = self;
        // `state` has no `taken`, so this store also lets the other threads go on.
        *kept.state.lock().unwrap_or_else(PoisonError::into_inner) = std::mem::take(state);
        kept.returned.notify_one();
    }
}

#[derive(Default)]
enum Made {
    #[default]
    NotYet,
    Denied,
    Cells(Box<Cells>),
}

/// The cells of a communicator, as one rank sees them.
struct Cells {
    seat: Seat,
    block: Block,
    /// World rank of each rank of the communicator.
    world: Box<[usize]>,
    /// True if a rank sleeps at once when it waits, because the ranks share CPUs.
    share_cpus: bool,
    /// True if this rank has passed data that are longer than a piece of the first ring.
    wishes: bool,
    choices: Choices,
    copies: Copies,
    /// Scratch memory of reductions, kept from call to call.
    scratch: Vec<Vec<u128>>,
    /// Memory for the places of parts in an exchange, and for the lists of the ranks, kept from call to call.
    found: Vec<exchanges::Found>,
    cursors: Vec<exchanges::Cursor>,
}

impl Cells {
    /// Makes the cells, or returns `None` on all ranks if a rank has too little memory. Collective.
    fn new(comm: &Communicator) -> Result<Option<Self>> {
        let measures =
            Settings::current().is_some_and(|settings| settings.tune.measures(choices::FORM.name));
        let sleeps = comm.endpoint().sleeps_at_once();
        let told = tell(comm, [u64::from(sleeps), u64::from(measures)]);
        let is_lost = |all: &Vec<[u64; 2]>| all.iter().flatten().any(|word| *word == LOST);
        if told.as_ref().map_or(true, is_lost) {
            // The ranks that have all words make the block next, which must fail on all ranks.
            let refused = Block::refuse(comm);
            return told.and(refused.map(|()| None));
        }
        let told = told?;
        let Some(block) = Block::new(comm)? else { return Ok(None) };
        let world = (0..comm.size()).map(|rank| comm.world_rank(rank, "rank", ErrorKind::Rank));
        let share_cpus = told.iter().any(|[sleeps, _]| *sleeps != 0);
        // A rank may have other settings than the others. All ranks must choose, or none.
        let measures = told.iter().all(|[_, measures]| *measures != 0);
        let cells = if share_cpus { CELLS } else { CELLS_ALONE };
        let slots = (0..comm.size()).map(|rank| Ok(comm.peer(rank)?.process.index()));
        let slots: Vec<usize> = slots.collect::<Result<_>>()?;
        let far = slots.iter().any(|slot| comm.endpoint().is_far(*slot));
        let (site, store) = (Site { far, share_cpus }, choice::store());
        Ok(Some(Self {
            seat: Seat::new(comm.rank(), comm.size(), cells),
            block,
            world: world.collect::<Result<_>>()?,
            share_cpus,
            wishes: false,
            choices: Choices::new(
                (comm.rank(), comm.size()),
                cells as u64,
                measures,
                (site, store),
            ),
            copies: Copies::new(site, store),
            scratch: Vec::new(),
            found: Vec::new(),
            cursors: Vec::new(),
        }))
    }

    /// Makes the longer rings if a rank needs them. The ranks ask each other in the call number `call`, which uses the
    /// cells like any other call, so that the question costs neither memory nor system calls. Collective.
    fn ask(&mut self, comm: &Communicator, call: u64) -> Result<()> {
        let wishes = self.wishes;
        if Turn::new(comm, self, step(call, 0)).ask(wishes)? {
            self.block.lengthen(comm, self.share_cpus)?;
        }
        Ok(())
    }
}

impl State {
    /// Counts a blocking call. After the largest number, all ranks leave their cells and count from 1 again.
    fn count(&mut self) {
        if self.calls == CALLS {
            *self = Self::default();
        }
        self.calls += 1;
    }

    /// Counts a blocking call, and the question before it, if there is one. Returns the cells and the number of the
    /// call's first step, or `None` if the call goes by messages. Collective in the calls that make the cells or ask
    /// for the longer ring.
    fn next(&mut self, comm: &Communicator) -> Result<Option<(&mut Cells, u64)>> {
        self.count();
        if self.calls == MADE_IN && matches!(self.cells, Made::NotYet) {
            self.cells = match Cells::new(comm)? {
                Some(cells) => Made::Cells(Box::new(cells)),
                None => Made::Denied,
            };
        }
        if let Made::Cells(cells) = &mut self.cells
            && asks(self.calls)
            && cells.block.may_lengthen()
        {
            let told = cells.ask(comm, self.calls);
            // The question was a call. Its number is even (`asks`), and the largest number is odd.
            const { assert!(!CALLS.is_multiple_of(2)) };
            self.calls += 1;
            if told.is_err() {
                // The other ranks may go on. They must not wait for this rank.
                drop(Turn::new(comm, cells, step(self.calls, 0)));
            }
            told?;
        }
        Ok(match &mut self.cells {
            Made::Cells(cells) => Some((cells, step(self.calls, 0))),
            Made::NotYet | Made::Denied => None,
        })
    }
}

/// Returns whether the ranks of a communicator make cells. All ranks give the same answer.
#[inline]
pub(super) fn are_possible(comm: &Communicator) -> bool {
    // If types are checked, all calls go by messages, because cells do not carry the types.
    !comm.is_inter()
        && (2..=MOST).contains(&comm.size())
        && Settings::current()
            .is_some_and(|settings| !settings.check_types && !settings.collectives.are_messages())
}

/// Returns the method of calls of this kind that the settings force, or `Auto`.
#[inline]
fn method(call: &Collective<'_>) -> CollectiveMethod {
    // Without valid settings, there are no cells.
    let settings = Settings::current();
    settings.map_or(CollectiveMethod::Messages, |settings| settings.collectives.of(call.name()))
}

/// Returns whether the call combines elements with a user's function.
#[inline]
fn runs_user_code(call: &Collective<'_>) -> bool {
    match call {
        Collective::Reduce { combine, .. }
        | Collective::Allreduce { combine, .. }
        | Collective::Scan { combine, .. }
        | Collective::Exscan { combine, .. }
        | Collective::ReduceScatter { combine, .. } => matches!(combine, Combine::User(_)),
        _ => false,
    }
}

/// Makes a blocking call on a communicator for which [`are_possible`] is true.
///
/// # Safety
///
/// - The conditions of [`Communicator::run_raw`] hold.
///
/// # Errors
/// Returns the errors of [`Communicator::run_raw`].
pub(super) unsafe fn run(comm: &Communicator, call: &Collective<'_>) -> Result<()> {
    let Some(kept) = comm.attached(Kept::default) else {
        let place = comm.next_place();
        // SAFETY: the caller guarantees the conditions of `run_raw`, and `run_by_messages` has the same.
        return unsafe { comm.run_by_messages(place, call) };
    };
    if runs_user_code(call) {
        let mut state = kept.take()?;
        // SAFETY: the caller guarantees the conditions of `run_raw`, which are those of `run_with`.
        return unsafe { run_with(comm, &mut state, call) };
    }
    let mut state = kept.lock()?;
    // SAFETY: the caller guarantees the conditions of `run_raw`, which are those of `run_with`.
    unsafe { run_with(comm, &mut state, call) }
}

/// Makes a blocking call with the state of its communicator.
///
/// # Safety
///
/// - The conditions of [`Communicator::run_raw`] hold.
#[inline]
unsafe fn run_with(comm: &Communicator, state: &mut State, call: &Collective<'_>) -> Result<()> {
    // Only now, so that a call within a user's function does not count.
    let place = comm.next_place();
    let entered = comm.endpoint().enter();
    if let Err(error) = entered {
        // SAFETY: the conditions are those of this function.
        return Err(unsafe { refuse(comm, state, place, call, error) });
    }
    match state.next(comm) {
        // SAFETY: the caller guarantees the conditions of `run_raw`, and `Turn::run` has the same.
        Ok(Some((cells, number))) => unsafe { Turn::new(comm, cells, number).run(place, call) },
        // SAFETY: the caller guarantees the conditions of `run_raw`, and `run_by_messages` asks for no others.
        Ok(None) => unsafe { comm.run_by_messages(place, call) },
        Err(error) => {
            // The other ranks have no cells either.
            // SAFETY: the caller guarantees the conditions of `run_raw`, and `refuse_by_messages` asks for no others.
            unsafe { comm.refuse_by_messages(place, call, &error) };
            Err(error)
        }
    }
}

/// Takes part in a blocking call that this rank cannot make because of `error`. The ranks that wait for its data get an
/// error, too, and the next calls match. Returns `error`.
///
/// # Safety
///
/// - The conditions of [`Communicator::run_raw`] hold.
#[cold]
unsafe fn refuse(
    comm: &Communicator,
    state: &mut State,
    place: Place,
    call: &Collective<'_>,
    error: Error,
) -> Error {
    // In a forked child, and after finalization, there is nothing to take part in.
    if error.kind() != ErrorKind::State {
        match state.next(comm) {
            Ok(Some((cells, number))) => {
                // The other ranks see that this rank has left the call, unless they make it by messages.
                drop(Turn::new(comm, cells, number));
                let long = matches!(turn::fitting(call, comm.size()), Ok(None));
                if long || method(call) == CollectiveMethod::Messages {
                    // SAFETY: `refuse_by_messages` has the conditions of this function.
                    unsafe { comm.refuse_by_messages(place, call, &error) };
                }
            }
            // Without cells here, the other ranks have none either. `error` is the first of two errors.
            // SAFETY: the conditions are those of this function.
            Ok(None) | Err(_) => unsafe { comm.refuse_by_messages(place, call, &error) },
        }
    }
    error
}

/// Takes part in a blocking call whose memory this rank cannot use, on a communicator for which [`are_possible`] is true.
#[cold]
pub(super) fn refuse_call(comm: &Communicator, call: &Collective<'_>, error: &Error) {
    // A rank without memory for the messages that it takes still counts the call.
    if comm.endpoint().enter().is_err_and(|error| error.kind() == ErrorKind::State) {
        return;
    }
    let Some(kept) = comm.attached(Kept::default) else {
        // SAFETY: the steps of a refused call use no memory.
        return unsafe { comm.refuse_by_messages(comm.next_place(), call, error) };
    };
    let Ok(mut state) = kept.lock() else { return };
    let place = comm.next_place();
    // SAFETY: a refused call uses no memory of the program.
    let _known = unsafe { refuse(comm, &mut state, place, call, error.clone()) };
}

/// Returns what this rank has chosen by measurement for the blocking calls on a communicator, one line each.
pub(crate) fn report(comm: &Communicator) -> Vec<String> {
    let lines = |cells: &Cells| {
        let mut lines = cells.choices.report();
        lines.extend(cells.copies.report());
        lines
    };
    with_cells(comm, lines).unwrap_or_default()
}

/// Returns what rank 0, if this rank is rank 0, has measured for the blocking calls on a communicator.
pub(crate) fn measured(comm: &Communicator) -> Vec<choice::Measured> {
    with_cells(comm, |cells| cells.choices.measured()).unwrap_or_default()
}

/// Calls `look` with the cells of a communicator, if it has cells and no call uses them.
fn with_cells<R>(comm: &Communicator, look: impl FnOnce(&Cells) -> R) -> Option<R> {
    if !are_possible(comm) {
        return None;
    }
    // A blocking call of another thread holds the lock until the call ends. It may wait for what this thread does next.
    let state = comm.attached(Kept::default)?.state.try_lock().ok()?;
    match &state.cells {
        Made::Cells(cells) => Some(look(cells)),
        Made::NotYet | Made::Denied => None,
    }
}

/// Skips a blocking call that the other ranks make on a communicator for which [`are_possible`] is true.
pub(super) fn skip(comm: &Communicator) {
    // A rank without memory for the messages that it takes still counts the call.
    if comm.endpoint().enter().is_err_and(|error| error.kind() == ErrorKind::State) {
        return;
    }
    let Some(kept) = comm.attached(Kept::default) else { return };
    let Ok(mut state) = kept.lock() else { return };
    if let Ok(Some((cells, number))) = state.next(comm) {
        drop(Turn::new(comm, cells, number));
    }
}

#[cfg(test)]
mod tests {
    use super::{CALLS, Kept, Made, State};

    #[test]
    fn the_count_of_calls_begins_anew_after_the_largest_number() {
        let mut state = State { calls: CALLS - 1, cells: Made::Denied, taken: None };
        state.count();
        assert!(state.calls == CALLS && matches!(state.cells, Made::Denied));
        state.count();
        assert!(state.calls == 1 && matches!(state.cells, Made::NotYet));
    }

    #[test]
    fn no_lock_is_held_while_the_state_is_taken_away() {
        let kept = Kept::default();
        let mut held = kept.take().unwrap();
        held.count();
        assert!(kept.state.try_lock().is_ok());
        // The function of the reduction makes a call on the same communicator.
        assert!(kept.lock().is_err() && kept.take().is_err());
        let calls = std::thread::scope(|scope| {
            let other = scope.spawn(|| kept.take().unwrap().calls);
            held.count();
            drop(held);
            other.join().unwrap()
        });
        assert_eq!(calls, 2);
        let held = kept.lock().unwrap();
        assert!(held.calls == 2 && kept.state.try_lock().is_err());
    }

    #[test]
    fn the_ranks_ask_often_at_first() {
        let calls: Vec<u64> = (0..100).filter(|call| crate::coll::flags::asks(*call)).collect();
        assert_eq!(calls, [4, 6, 8, 12, 16, 24, 32, 48, 64, 96]);
        let calls: Vec<u64> =
            (100_000..101_000).filter(|call| crate::coll::flags::asks(*call)).collect();
        assert_eq!(calls, [100_096, 100_352, 100_608, 100_864]);
    }
}
