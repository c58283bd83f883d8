//! What makes the updates of aligned elements of 4 and 8 bytes atomic at a target: instructions of the processor, or
//! locks of ranges (`ranges.rs`).
//!
//! Instructions are best for single elements, because ranks that update different elements never wait for each other.
//! Locks are best for many elements, because the holder of a lock updates all elements of a range by plain vector
//! instructions. The two must not be mixed on one element. So each target has a word, the mode, which says what all
//! ranks use at this target. A target begins with instructions. An update of many elements changes to locks, except
//! `MPI_REPLACE` without a result and `MPI_NO_OP`, which are no quicker under locks. A rank that has updated only
//! single elements under locks since then changes back to instructions: at the end of its epoch, or after some updates
//! ([`SINGLES`]). The updates that a rank carries out for others count there, too. The hint
//! `mpi_accumulate_granularity` fixes one of the two.
//!
//! To locks: a rank that updates by instructions says so in a word of its own block (a thread that is *inside* has made
//! the word odd), and then looks at the mode again. A rank that wants locks changes the mode to `ENDING`, and waits
//! until each word of each rank was even or has changed once. After that no update by instructions is running, and none
//! can begin. Any rank that finds `ENDING` does the same, so nobody depends on the rank that has changed it first.
//! A dead rank updates nothing any more, so nobody waits for a dead rank.
//!
//! Back to instructions: a rank that has taken a lock looks at the mode again, and releases the lock if the mode does
//! not say locks. A rank that wants instructions changes the mode to `RETURNING`, and looks at all locks. If one stays
//! taken, it takes the change back. So does any rank that finds `RETURNING` for too long: nobody waits for anybody.
//!
//! Each change of the mode counts in its upper bits. So a rank that was stopped within a change, and goes on when the
//! others have changed the mode meanwhile, changes nothing.

use super::ranges::{Held, LongWait, Patience, Pauses, hold, state_of};
use crate::rma::window::words::{INSIDE, RANGE_LOCKS, SharedWord, Word, Words};
use crate::shm::layout::State;
use crate::{Error, ErrorKind, Result};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bits of the mode that say what the ranks use. The others count the changes.
const KIND: u64 = 7;
/// All ranks update by instructions.
const INSTRUCTIONS: u64 = 0;
/// No update by instructions begins any more.
const ENDING: u64 = 1;
/// All ranks use locks.
const LOCKS: u64 = 2;
/// All ranks update by instructions, and nobody changes the mode.
const ALWAYS_INSTRUCTIONS: u64 = 3;
/// No update under a lock begins any more.
const RETURNING: u64 = 4;
/// All ranks use locks, and nobody changes the mode.
const ALWAYS_LOCKS: u64 = 5;

/// An update of at least this number of elements is one of many elements. One atomic instruction takes about as long as
/// the plain instructions for so many elements.
pub(in crate::rma) const MANY: usize = 16;

/// After this number of updates of single elements under locks, without one of many elements, a rank changes back to
/// instructions before its epoch ends. The change takes about as long as so many updates.
pub(in crate::rma) const SINGLES: u32 = MANY as u32;

/// Number of looks at a word that changes soon if its rank is running. The change back to instructions takes no longer.
const LOOKS: u32 = if cfg!(test) { 1 } else { 200 };

/// Number of pauses after which a rank gives up if a word that must change has not changed: more than a minute.
const STUCK: u32 = 1 << 20;

/// Returns the mode after a change of `mode`.
fn changed(mode: u64, kind: u64) -> u64 {
    (mode & !KIND).wrapping_add(KIND + 1) | kind
}

/// Lets this thread update elements by instructions until the value is dropped.
pub(in crate::rma) struct Inside<'a, W: SharedWord = AtomicU64> {
    word: &'a W,
    after: u64,
}

impl<W: SharedWord> Drop for Inside<'_, W> {
    fn drop(&mut self) {
        self.word.set(self.after);
    }
}

/// What a thread updates elements with, until the value is dropped: instructions, or a lock.
pub(in crate::rma) enum Turn<'a, W: SharedWord = AtomicU64, L = Held<'a>> {
    /// The thread updates by instructions.
    Inside(Inside<'a, W>),
    /// The thread has the lock of the elements.
    Held(L),
}

fn permits_instructions(mode: u64) -> bool {
    matches!(mode & KIND, INSTRUCTIONS | ALWAYS_INSTRUCTIONS)
}

/// Enters the updates by instructions at the target with this mode; `None` if the target uses locks. `word` is the
/// first word of this rank; if another thread uses it, `wait` takes another one.
#[inline(always)]
fn enter<'a, W: SharedWord>(
    mode: &W,
    word: &'a W,
    wait: impl Fn() -> Result<Inside<'a, W>>,
) -> Result<Option<Inside<'a, W>>> {
    if !permits_instructions(mode.value()) {
        return Ok(None);
    }
    let inside = match take(word) {
        Some(inside) => inside,
        None => wait()?,
    };
    Ok(permits_instructions(mode.value()).then_some(inside))
}

/// Takes a word, unless another thread uses it.
#[inline(always)]
fn take<W: SharedWord>(word: &W) -> Option<Inside<'_, W>> {
    let old = word.value();
    let is_free = old.is_multiple_of(2) && word.replace(old, old.wrapping_add(1)).is_ok();
    is_free.then(|| Inside { word, after: old.wrapping_add(2) })
}

/// Takes the first word that no other thread uses. Waits until there is one; calls `look` from time to time if the wait
/// is long. `is_stuck` says whether an earlier wait has ended with an error at this value of this word.
///
/// # Errors
/// Returns the values of the words if no word has changed in `most` pauses, or if all are stuck. The threads of this rank
/// change their words in each update. So another rank has written to the words, which only this rank may write.
#[cold]
fn take_any<'a, W: SharedWord>(
    words: &[&'a W; INSIDE],
    most: u32,
    is_stuck: impl Fn(usize, u64) -> bool,
    mut look: impl FnMut(),
) -> std::result::Result<Inside<'a, W>, [u64; INSIDE]> {
    let mut pauses = Pauses::new(true);
    let (mut before, mut unchanged) = ([0; INSIDE], 0);
    loop {
        let mut now = [0; INSIDE];
        for (&word, value) in words.iter().zip(&mut now) {
            if let Some(inside) = take(word) {
                return Ok(inside);
            }
            *value = word.value();
        }
        unchanged = if now == before { unchanged + 1 } else { 0 };
        let are_stuck = || (0..).zip(now).all(|(number, value)| is_stuck(number, value));
        if unchanged >= most || unchanged > 0 && are_stuck() {
            return Err(now);
        }
        before = now;
        if pauses.are_long() {
            look();
        }
        pauses.pause();
    }
}

/// Returns the error for words that do not change. `who` are the words.
#[cold]
fn stuck(who: &str) -> Error {
    let detail = format!(
        "{who} that a thread updates memory, for more than a minute; another rank has written there, or the thread is \
         stopped"
    );
    Error::new(ErrorKind::Other, "win", detail)
}

/// Waits until a word of another rank has changed from an odd value, or until the rank is dead; calls `look` from time
/// to time if the wait is long. Returns false if the word has not changed in `most` pauses.
fn await_change<W: SharedWord>(
    word: &W,
    value: u64,
    most: u32,
    is_dead: impl Fn() -> bool,
    mut look: impl FnMut(),
) -> bool {
    let mut pauses = Pauses::new(true);
    (0..most).any(|_| {
        if word.value() != value || pauses.are_long() && is_dead() {
            return true;
        }
        if pauses.are_long() {
            look();
        }
        pauses.pause();
        false
    })
}

/// Ends the updates by instructions, if they may end. `words` are the words of all ranks, and `wait` waits until a word
/// has changed from a value.
///
/// # Errors
/// Returns the errors of `words` and `wait`.
fn end_instructions<'a, W: SharedWord + 'a>(
    mode: &W,
    words: impl Iterator<Item = Result<&'a W>>,
    mut wait: impl FnMut(&W, usize, u64) -> Result<()>,
) -> Result<()> {
    let before = mode.value();
    if before & KIND == INSTRUCTIONS {
        // If the exchange fails, another rank has changed the mode.
        let _changed = mode.replace(before, changed(before, ENDING));
    }
    let ending = mode.value();
    if ending & KIND != ENDING {
        return Ok(());
    }
    for (index, word) in words.enumerate() {
        let word = word?;
        let value = word.value();
        if !value.is_multiple_of(2) {
            wait(word, index, value)?;
        }
    }
    let _ended = mode.replace(ending, changed(ending, LOCKS));
    Ok(())
}

/// Changes from locks to instructions, if the mode is `LOCKS` and nobody holds one of the locks. The caller holds none.
fn end_locks<'a, W: SharedWord + 'a>(mode: &W, mut locks: impl Iterator<Item = &'a W>) {
    let before = mode.value();
    let returning = changed(before, RETURNING);
    if before & KIND != LOCKS || mode.replace(before, returning).is_err() {
        return;
    }
    let are_free = locks.all(|lock| looks(|| lock.value() == 0));
    let kind = if are_free { INSTRUCTIONS } else { LOCKS };
    // If the exchange fails, another rank has taken the change back.
    let _returned = mode.replace(returning, changed(returning, kind));
}

/// Returns whether something comes soon.
fn looks(has_come: impl Fn() -> bool) -> bool {
    (0..LOOKS).any(|_| {
        let come = has_come();
        if !come {
            std::hint::spin_loop();
        }
        come
    })
}

/// Returns whether the target uses locks. The caller holds one: then the target uses locks until it is released. If a
/// rank is about to change to instructions, takes this back.
fn uses_locks<W: SharedWord>(mode: &W) -> bool {
    loop {
        let now = mode.value();
        match now & KIND {
            INSTRUCTIONS | ALWAYS_INSTRUCTIONS | ENDING => return false,
            RETURNING => drop(mode.replace(now, changed(now, LOCKS))),
            // Also a value that a faulty rank has written.
            _ => return true,
        }
    }
}

/// Decides for [`Site::turn`], over the word `mode`. `many` says whether the update is one of many elements. `word` and
/// `wait` are those of [`enter`], `change` ends the updates by instructions, and `hold` takes the lock.
fn take_turn<'a, W: SharedWord, L>(
    mode: &W,
    many: bool,
    word: &'a W,
    wait: impl Fn() -> Result<Inside<'a, W>>,
    change: impl Fn() -> Result<()>,
    hold: impl Fn() -> Result<L>,
) -> Result<Turn<'a, W, L>> {
    loop {
        let now = mode.value();
        match now & KIND {
            INSTRUCTIONS if many => change()?,
            ENDING => change()?,
            RETURNING if !looks(|| mode.value() != now) => {
                let _locks = mode.replace(now, changed(now, LOCKS));
            }
            _ => {}
        }
        if let Some(inside) = enter(mode, word, &wait)? {
            return Ok(Turn::Inside(inside));
        }
        let held = hold()?;
        if uses_locks(mode) {
            return Ok(Turn::Held(held));
        }
    }
}

/// Where a rank updates elements, and how it waits for a lock there.
#[derive(Clone, Copy)]
pub(in crate::rma) struct Site<'a> {
    pub words: &'a Words,
    /// This rank in the window.
    pub rank: usize,
    pub patience: Patience<'a>,
    pub target: usize,
}

impl<'a> Site<'a> {
    /// Lets the calling thread update aligned elements of 4 or 8 bytes that begin in the range with this number
    /// (`range_of`). `elements` is the number of elements of the whole update, or 1 if the update is as quick by
    /// instructions.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` in a forked child, `ErrorKind::Other` if words of another rank do not change, and the
    /// errors of [`hold`](Self::hold).
    pub fn turn(&self, number: usize, elements: usize) -> Result<Turn<'a>> {
        let words = self.words;
        let mode = words.get(self.target, Word::Mode)?;
        let word = words.get(self.rank, Word::Inside(0))?;
        let (wait, change) = (|| self.take_any(STUCK), || self.change(mode, STUCK));
        take_turn(mode, elements >= MANY, word, wait, change, || self.hold(number))
    }

    /// Takes any word of this rank.
    #[cold]
    fn take_any(&self, most: u32) -> Result<Inside<'a>> {
        let (words, rank) = (self.words, self.rank);
        let mut own = [words.get(rank, Word::Inside(0))?; INSIDE];
        for (number, word) in own.iter_mut().enumerate() {
            *word = words.get(rank, Word::Inside(number))?;
        }
        let is_stuck = |number, value| self.is_stuck(rank, number, value);
        loop {
            let mut wait = LongWait::new(self.patience);
            let inside = take_any(&own, most, is_stuck, || wait.look()).map_err(|values| {
                (0..).zip(values).for_each(|(number, value)| self.note_stuck(rank, number, value));
                stuck(&format!("all {INSIDE} words of this rank say"))
            })?;
            if !wait.is_described() {
                return Ok(inside);
            }
            // The description ends under the endpoint's lock, and a thread that has that lock may wait for the word.
            drop(inside);
        }
    }

    /// Returns whether an earlier wait has ended with an error, because this word of `rank` has stayed at `value`.
    #[cold]
    fn is_stuck(&self, rank: usize, number: usize, value: u64) -> bool {
        let list = self.words.notes.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        list.contains(&(rank, number, value))
    }

    /// Notes that a wait ends with an error, because this word of `rank` stays at `value`. The next wait fails at once,
    /// as long as the word has this value.
    #[cold]
    fn note_stuck(&self, rank: usize, number: usize, value: u64) {
        let mut list = self.words.notes.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|&(other, index, _)| (other, index) != (rank, number));
        list.push((rank, number, value));
    }

    /// Notes an update of `elements` elements that instructions could have done, or of 1 element if instructions are as
    /// quick: it is a reason for or against locks at the target. The calling thread holds no lock.
    pub fn note(&self, elements: usize) {
        let notes = &self.words.notes;
        if elements >= MANY {
            notes.singles[self.target].store(0, Ordering::Relaxed);
        } else if self
            .words
            .find(self.target, Word::Mode)
            .is_some_and(|mode| mode.value() & KIND == LOCKS)
        {
            self.note_single();
        }
    }

    /// Counts an update of a single element under a lock, which would have been quicker by an instruction.
    #[cold]
    pub fn note_single(&self) {
        let notes = &self.words.notes;
        // Threads that count at the same time may count as one.
        let singles = notes.singles[self.target].load(Ordering::Relaxed) + 1;
        notes.singles[self.target].store(singles, Ordering::Relaxed);
        notes.has_singles.store(true, Ordering::Relaxed);
        if singles >= SINGLES {
            end_singles(self.words, self.target);
        }
    }

    /// Takes the lock of a range for all other elements, which no rank updates by instructions.
    ///
    /// # Errors
    /// Returns the errors of `ranges::hold`.
    pub fn hold(&self, number: usize) -> Result<Held<'a>> {
        hold(self.words, self.target, number, self.patience)
    }

    /// Changes the target to locks, unless the hint forbids this.
    #[cold]
    fn change(&self, mode: &AtomicU64, most: u32) -> Result<()> {
        let words = self.words;
        let mut long = LongWait::new(self.patience);
        let all = (0..words.members() * INSIDE)
            .map(|index| words.get(index / INSIDE, Word::Inside(index % INSIDE)));
        end_instructions(mode, all, |word, index, value| {
            let (rank, number) = (index / INSIDE, index % INSIDE);
            let is_dead = || {
                let world = words.world_rank(rank);
                world.is_none_or(|world| {
                    state_of(world, self.patience.own()) != Some(State::Registered)
                })
            };
            let most = if self.is_stuck(rank, number, value) { 1 } else { most };
            if await_change(word, value, most, is_dead, || long.look()) || is_dead() {
                return Ok(());
            }
            self.note_stuck(rank, number, value);
            Err(stuck(&format!("a word of rank {rank} says")))
        })
    }
}

/// Lets the calling thread update one element by an instruction in a process that may use windows, if the first word of
/// this rank is free and the target permits instructions. In all other cases returns `None`; then [`Site::turn`]
/// decides.
#[inline(always)]
pub(in crate::rma) fn begin_short(words: &Words, rank: usize, target: usize) -> Option<Inside<'_>> {
    let mode = words.find(target, Word::Mode)?;
    if !permits_instructions(mode.value()) {
        return None;
    }
    let inside = take(words.find(rank, Word::Inside(0))?)?;
    permits_instructions(mode.value()).then_some(inside)
}

/// Changes a target back to instructions, if this process's last updates there were updates of single elements under
/// locks.
#[cold]
pub(in crate::rma) fn end_singles(words: &Words, target: usize) {
    let singles = &words.notes.singles[target];
    if singles.load(Ordering::Relaxed) != 0 {
        singles.store(0, Ordering::Relaxed);
        return_to_instructions(words, target);
    }
}

/// Changes rank `target` from locks back to instructions, if nobody holds a lock there and the hint permits this. The
/// calling thread holds none.
#[cold]
fn return_to_instructions(words: &Words, target: usize) {
    if let Some(mode) = words.find(target, Word::Mode) {
        let locks = (0..RANGE_LOCKS).filter_map(|number| words.find(target, Word::Range(number)));
        end_locks(mode, locks);
    }
}

/// Fixes what all ranks use at rank `target`, if its hint `mpi_accumulate_granularity` (in bytes; 0 is no hint) does.
/// Every rank does this for all targets before it uses a new window, so that no rank finds a target whose hint is not
/// in force yet.
pub(in crate::rma) fn fix(words: &Words, target: usize, granularity: u64) -> Result<()> {
    fix_mode(words.get(target, Word::Mode)?, granularity);
    Ok(())
}

/// See [`fix`]. If the replacement fails, another rank has fixed the mode. Nobody updates the target before that.
fn fix_mode<W: SharedWord>(mode: &W, granularity: u64) {
    let fixed = match granularity {
        0 => return,
        1..=8 => ALWAYS_INSTRUCTIONS,
        _ => ALWAYS_LOCKS,
    };
    let _fixed = mode.replace(INSTRUCTIONS, fixed);
}

#[cfg(test)]
mod tests;
