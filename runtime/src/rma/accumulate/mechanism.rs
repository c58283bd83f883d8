//! What makes the updates of aligned elements of 4 and 8 bytes atomic at a target: instructions of the processor, or
//! locks of ranges (`ranges.rs`).
//!
//! Instructions are best for single elements, because ranks that update different elements never wait for each other.
//! Locks are best for many elements, because the holder of a lock updates all elements of a range by plain vector
//! instructions. The two must not be mixed on one element. So each target has a word, the mode, which says what all
//! ranks use at this target. A target begins with instructions. An update of many elements changes to locks, except
//! `MPI_REPLACE` without a result and `MPI_NO_OP`, which are no quicker under locks. A rank that has updated only
//! single elements under locks since then changes back to instructions: at the end of its epoch, or after some updates
//! ([`SINGLES`]). Only updates on the short way (`short.rs`) count for this. The hint `mpi_accumulate_granularity`
//! fixes one of the two.
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

use super::ranges::{Held, Patience, Pauses, hold, state_of};
use crate::rma::window::words::{INSIDE, RANGE_LOCKS, SharedWord, Word, Words};
use crate::shm::layout::State;
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::AtomicU64;

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

/// Enters the updates by instructions at the target with this mode; `None` if the target uses locks. `word` returns the
/// words of this rank; a thread takes the first word that no other thread uses.
#[inline(always)]
fn enter<'a, W: SharedWord>(
    mode: &W,
    word: impl Fn(usize) -> Result<&'a W>,
) -> Result<Option<Inside<'a, W>>> {
    if !permits_instructions(mode.value()) {
        return Ok(None);
    }
    let inside = match take(word(0)?) {
        Some(inside) => inside,
        None => take_any(word, STUCK)?,
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

/// Takes the first word that no other thread uses. Waits until there is one.
///
/// # Errors
/// Returns `ErrorKind::Other` if no word has changed in `most` pauses. The threads of this rank change their words in
/// each update. So another rank has written to the words, which only this rank may write.
#[cold]
fn take_any<'a, W: SharedWord>(
    word: impl Fn(usize) -> Result<&'a W>,
    most: u32,
) -> Result<Inside<'a, W>> {
    let mut pauses = Pauses::new(true);
    let (mut before, mut unchanged) = ([0; INSIDE], 0);
    loop {
        let mut now = [0; INSIDE];
        for (number, value) in now.iter_mut().enumerate() {
            let word = word(number)?;
            if let Some(inside) = take(word) {
                return Ok(inside);
            }
            *value = word.value();
        }
        unchanged = if now == before { unchanged + 1 } else { 0 };
        if unchanged >= most {
            return Err(stuck(&format!("all {INSIDE} words of this rank say")));
        }
        before = now;
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

/// Waits until a word of another rank has changed from an odd value, or until the rank is dead.
///
/// # Errors
/// Returns `ErrorKind::Other` if the word has not changed in `most` pauses.
fn await_change<W: SharedWord>(
    word: &W,
    value: u64,
    most: u32,
    rank: usize,
    is_dead: impl Fn() -> bool,
) -> Result<()> {
    let mut pauses = Pauses::new(true);
    for _ in 0..most {
        if word.value() != value || pauses.are_long() && is_dead() {
            return Ok(());
        }
        pauses.pause();
    }
    Err(stuck(&format!("a word of rank {rank} says")))
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

/// Decides for [`Site::turn`], over the word `mode`. `many` says whether the update is one of many elements. `change`
/// ends the updates by instructions, and `hold` takes the lock.
fn take_turn<'a, W: SharedWord, L>(
    mode: &W,
    many: bool,
    word: impl Fn(usize) -> Result<&'a W>,
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
        if let Some(inside) = enter(mode, &word)? {
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
        let word = |number| words.get(self.rank, Word::Inside(number));
        take_turn(mode, elements >= MANY, word, || self.change(mode), || self.hold(number))
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
    fn change(&self, mode: &AtomicU64) -> Result<()> {
        let words = self.words;
        let all = (0..words.members() * INSIDE)
            .map(|index| words.get(index / INSIDE, Word::Inside(index % INSIDE)));
        end_instructions(mode, all, |word, index, value| {
            let rank = index / INSIDE;
            let is_dead = || {
                let world = words.world_rank(rank);
                world.is_none_or(|world| {
                    state_of(world, self.patience.own()) != Some(State::Registered)
                })
            };
            await_change(word, value, STUCK, rank, is_dead)
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

/// Changes rank `target` from locks back to instructions, if nobody holds a lock there and the hint permits this. The
/// calling thread holds none.
#[cold]
pub(in crate::rma) fn return_to_instructions(words: &Words, target: usize) {
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
mod tests {
    use super::*;
    use crate::rma::window::words::model::{ModelWord, explore};
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Mutex};

    /// A target with one element, and the word of each of three ranks.
    struct Target {
        mode: ModelWord,
        inside: [ModelWord; 3],
        /// The word of the element's lock: 1 if a rank holds it. A rank waits for it at the gate.
        lock: ModelWord,
        gate: Mutex<()>,
        /// The element, for updates by instructions.
        element: ModelWord,
        /// Loom reports an access under the lock at the same time as another access.
        locked: UnsafeCell<()>,
    }

    impl Target {
        fn new() -> Self {
            Self {
                mode: ModelWord::new(INSTRUCTIONS),
                inside: std::array::from_fn(|_| ModelWord::new(0)),
                lock: ModelWord::new(0),
                gate: Mutex::new(()),
                element: ModelWord::new(0),
                locked: UnsafeCell::new(()),
            }
        }

        /// Adds one to the element, as a part of an update of many elements if `many` is true.
        fn add(&self, rank: usize, many: bool) {
            let wait = |word: &ModelWord, _: usize, value: u64| {
                while word.value() == value {
                    loom::thread::yield_now();
                }
                Ok(())
            };
            let change = || end_instructions(&self.mode, self.inside.iter().map(Ok), wait);
            let hold = || {
                let gate = self.gate.lock().unwrap();
                self.lock.replace(0, 1).unwrap();
                Ok((Inside { word: &self.lock, after: 0 }, gate))
            };
            let turn = take_turn(&self.mode, many, |_| Ok(&self.inside[rank]), change, hold);
            match turn.unwrap() {
                // Updates by instructions may run at the same time, but no update under the lock. Loom permits many
                // readers of a cell and no writer beside them.
                Turn::Inside(_inside) => self.locked.with(|_| {
                    while self.element.add_one().is_err() {
                        loom::thread::yield_now();
                    }
                }),
                Turn::Held(_held) => self.locked.with_mut(|_| {
                    // A plain update: a load and a store.
                    let value = self.element.value();
                    self.element.set(value + 1);
                }),
            }
        }

        /// Changes back to instructions, if this is possible now.
        fn give_back(&self) {
            end_locks(&self.mode, std::iter::once(&self.lock));
        }

        fn kind(&self) -> u64 {
            self.mode.value() & KIND
        }
    }

    /// Checks that no update is lost when one rank changes to locks while another updates by instructions.
    #[test]
    fn loom_no_update_is_lost_at_the_change() {
        explore(3, || {
            let target = Arc::new(Target::new());
            let theirs = Arc::clone(&target);
            let other = loom::thread::spawn(move || {
                theirs.add(1, false);
                theirs.add(1, false);
            });
            target.add(0, true);
            other.join().unwrap();
            assert_eq!(target.element.value(), 3);
            assert_eq!(target.kind(), LOCKS);
        });
    }

    /// Checks that a rank which finds the change begun takes no lock while a third rank is still inside.
    #[test]
    fn loom_a_third_rank_is_still_inside() {
        explore(2, || {
            let target = Arc::new(Target::new());
            let others = [1, 2].map(|rank| {
                let target = Arc::clone(&target);
                loom::thread::spawn(move || target.add(rank, false))
            });
            target.add(0, true);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(target.element.value(), 3);
        });
    }

    /// Checks the same if both ranks change to locks.
    #[test]
    fn loom_two_ranks_change() {
        explore(3, || {
            let target = Arc::new(Target::new());
            let theirs = Arc::clone(&target);
            let other = loom::thread::spawn(move || {
                theirs.add(1, false);
                theirs.add(1, true);
            });
            target.add(0, true);
            other.join().unwrap();
            assert_eq!(target.element.value(), 3);
        });
    }

    /// Checks that no update is lost when one rank changes back to instructions while others update.
    #[test]
    fn loom_no_update_is_lost_at_the_return() {
        explore(3, || {
            let target = Arc::new(Target::new());
            target.add(0, true);
            let theirs = Arc::clone(&target);
            let other = loom::thread::spawn(move || {
                theirs.add(1, false);
                theirs.add(1, false);
            });
            target.give_back();
            target.add(0, false);
            other.join().unwrap();
            assert_eq!(target.element.value(), 4);
            target.give_back();
            assert_eq!(target.kind(), INSTRUCTIONS);
        });
    }

    /// Checks the same if the mode changes in both directions meanwhile.
    #[test]
    fn loom_a_return_meets_an_update_of_many_elements() {
        explore(3, || {
            let target = Arc::new(Target::new());
            target.add(0, true);
            let theirs = Arc::clone(&target);
            let other = loom::thread::spawn(move || {
                theirs.add(1, true);
                theirs.give_back();
                theirs.add(1, false);
            });
            target.give_back();
            target.add(0, true);
            other.join().unwrap();
            assert_eq!(target.element.value(), 4);
        });
    }

    /// Checks that a rank that stops within a change, and goes on when the others have changed the mode several times,
    /// changes nothing: without the count of changes, it would find the mode that it has left.
    #[test]
    fn loom_a_stopped_rank_changes_nothing() {
        explore(2, || {
            let target = Arc::new(Target::new());
            target.add(0, true);
            let others = [1, 2].map(|rank| {
                let target = Arc::clone(&target);
                loom::thread::spawn(move || {
                    target.give_back();
                    target.add(rank, rank == 2);
                })
            });
            target.give_back();
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(target.element.value(), 3);
        });
    }

    /// Checks that a hint is in force before the first update: a rank that has made the window updates many elements
    /// at a target that has not finished making the window yet.
    #[test]
    fn loom_a_hint_is_in_force_before_the_first_update() {
        for (granularity, mode) in [(8, ALWAYS_INSTRUCTIONS), (4096, ALWAYS_LOCKS)] {
            explore(3, move || {
                let target = Arc::new(Target::new());
                let theirs = Arc::clone(&target);
                let other = loom::thread::spawn(move || {
                    fix_mode(&theirs.mode, granularity);
                    theirs.add(1, true);
                });
                fix_mode(&target.mode, granularity);
                target.add(0, false);
                other.join().unwrap();
                assert_eq!((target.element.value(), target.mode.value()), (2, mode));
            });
        }
    }

    /// Words that stay odd because a faulty rank has written to them end the wait for one with an error.
    #[test]
    fn words_that_stay_odd_are_an_error() {
        let words: [AtomicU64; INSIDE] =
            std::array::from_fn(|number| AtomicU64::new(2 * number as u64 + 1));
        let word = |number: usize| Ok(&words[number]);
        let error = take_any(word, 3).err().expect("no word is free");
        assert!(
            error.kind() == ErrorKind::Other && error.to_string().contains("another rank"),
            "{error}"
        );
        // As long as a word changes, threads of this rank are at work.
        let looks = std::cell::Cell::new(0);
        let changing = |number: usize| {
            looks.set(looks.get() + 1);
            words[0].set(if looks.get() < 50 * INSIDE { words[0].value() + 2 } else { 100 });
            Ok(&words[number])
        };
        let inside = take_any(changing, 3).expect("a word");
        assert!(looks.get() >= 50 * INSIDE);
        drop(inside);
        words[5].set(6);
        assert!(take_any(word, 3).is_ok());
    }

    #[test]
    fn a_fixed_mode_stays() {
        let word = |value| AtomicU64::new(value);
        let (mode, inside) = (word(ALWAYS_INSTRUCTIONS), [word(4), word(u64::MAX - 1)]);
        let never = |_: &AtomicU64, _: usize, _: u64| -> Result<()> { panic!("nobody is inside") };
        end_instructions(&mode, inside.iter().map(Ok), never).unwrap();
        let entered = enter(&mode, |number| Ok(&inside[number])).unwrap();
        assert_eq!((entered.is_some(), inside[0].value()), (true, 5));
        drop(entered);
        assert_eq!((mode.value(), inside[0].value()), (ALWAYS_INSTRUCTIONS, 6));
        end_locks(&mode, std::iter::empty());
        assert_eq!(mode.value(), ALWAYS_INSTRUCTIONS);
        // Words that faulty ranks have written: nobody enters, and nobody waits.
        for value in [ALWAYS_LOCKS, 77, 6, u64::MAX] {
            mode.set(value);
            end_instructions(&mode, inside.iter().map(Ok), never).unwrap();
            end_locks(&mode, std::iter::empty());
            assert!(enter(&mode, |number| Ok(&inside[number])).unwrap().is_none());
            assert!(uses_locks(&mode) && mode.value() == value);
        }
    }

    /// A change to locks does not wait without end for a rank that lives, but whose word does not change.
    #[test]
    fn a_word_of_another_rank_that_stays_odd_is_an_error() {
        let word = AtomicU64::new(7);
        let wait = |is_dead: bool| await_change(&word, 7, 2000, 3, || is_dead);
        let error = wait(false).expect_err("the rank lives");
        assert!(
            error.kind() == ErrorKind::Other && error.to_string().contains("rank 3"),
            "{error}"
        );
        assert!(wait(true).is_ok());
        word.set(8);
        assert!(wait(false).is_ok());
        // The mode then stays as it is: no rank may take a lock that excludes nobody.
        let (mode, inside) = (AtomicU64::new(INSTRUCTIONS), AtomicU64::new(5));
        let wait =
            |word: &AtomicU64, _: usize, value: u64| await_change(word, value, 3, 0, || false);
        let change = || end_instructions(&mode, std::iter::once(Ok(&inside)), wait);
        let turn = take_turn(&mode, true, |_| Ok(&inside), change, || Ok(()));
        assert_eq!(turn.map(drop).map_err(|error| error.kind()), Err(ErrorKind::Other));
        assert_eq!(mode.value() & KIND, ENDING);
    }

    /// A target goes from instructions to locks and back, and a lock that is held keeps it at locks.
    #[test]
    fn a_target_goes_there_and_back() {
        let words = Words::in_this_process(2);
        let site = Site { words: &words, rank: 0, patience: Patience::under_lock(0), target: 1 };
        let is_inside = |elements| matches!(site.turn(3, elements), Ok(Turn::Inside(_)));
        assert!(is_inside(1) && is_inside(MANY - 1) && !is_inside(MANY) && !is_inside(1));
        let held = site.turn(4, 1);
        return_to_instructions(&words, 1);
        assert!(matches!(held, Ok(Turn::Held(_))) && !is_inside(1));
        drop(held);
        return_to_instructions(&words, 1);
        assert!(is_inside(1) && begin_short(&words, 0, 1).is_some() && !is_inside(MANY));
    }
}
