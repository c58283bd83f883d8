//! What makes the updates of aligned elements of 4 and 8 bytes atomic at a target: instructions of the processor, or
//! locks of ranges (`ranges.rs`).
//!
//! Instructions are best for single elements, because ranks that update different elements never wait for each other.
//! Locks are best for many elements, because the holder of a lock updates all elements of a range by plain vector
//! instructions. The two must not be mixed on one element. So each target has a word, the mode, which says what all
//! ranks use at this target. A target begins with instructions. The first update of many elements changes to locks,
//! for as long as the window exists (`MPI_REPLACE` without a result and `MPI_NO_OP` need neither). The hint
//! `mpi_accumulate_granularity` fixes one of the two.
//!
//! A rank that updates by instructions says so in a word of its own block (a thread that is *inside* has made the word
//! odd), and then looks at the mode again. A rank that wants locks changes the mode to `ENDING`, and waits until each
//! word of each rank was even or has changed once. After that no update by instructions is running, and none can begin.
//! Any rank that finds `ENDING` does the same, so nobody depends on the rank that has changed the mode first. A dead
//! rank updates nothing any more, so nobody waits for a dead rank.

use super::ranges::{Pauses, state_of};
use super::words::{INSIDE, SharedWord, Word, Words};
use crate::shm::layout::State;
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::AtomicU64;

/// All ranks update by instructions.
const INSTRUCTIONS: u64 = 0;
/// No update by instructions begins any more.
const ENDING: u64 = 1;
/// All ranks use locks.
const LOCKS: u64 = 2;
/// All ranks update by instructions, and nobody changes the mode.
const ALWAYS_INSTRUCTIONS: u64 = 3;

/// An update of at least this number of elements is one of many elements. One atomic instruction takes about as long as
/// the plain instructions for so many elements.
pub(super) const MANY: usize = 16;

/// Number of pauses after which a rank gives up if none of its words has changed: more than a minute.
const STUCK: u32 = 1 << 20;

/// Lets this thread update elements by instructions until the value is dropped.
pub(super) struct Inside<'a, W: SharedWord = AtomicU64> {
    word: &'a W,
    after: u64,
}

impl<W: SharedWord> Drop for Inside<'_, W> {
    fn drop(&mut self) {
        self.word.set(self.after);
    }
}

fn permits_instructions(mode: u64) -> bool {
    mode == INSTRUCTIONS || mode == ALWAYS_INSTRUCTIONS
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
/// Returns `ErrorKind::Other` if no word has changed in `most` pauses. The threads of this rank change their words in each
/// update. So another rank has written to the words, which only this rank may write.
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
            let detail = format!(
                "all {INSIDE} words of this rank say that a thread updates memory, and none of them changes; another \
                 rank has written to them"
            );
            return Err(Error::new(ErrorKind::Other, "win", detail));
        }
        before = now;
        pauses.pause();
    }
}

/// Ends the updates by instructions, if they may end. `words` are the words of all ranks, and `wait` waits until a word
/// has changed from a value.
fn end_instructions<'a, W: SharedWord + 'a>(
    mode: &W,
    words: impl Iterator<Item = Result<&'a W>>,
    mut wait: impl FnMut(&W, usize, u64),
) -> Result<()> {
    // If the exchange fails, another rank has changed the mode.
    let _changed = mode.replace(INSTRUCTIONS, ENDING);
    if mode.value() != ENDING {
        return Ok(());
    }
    for (index, word) in words.enumerate() {
        let word = word?;
        let value = word.value();
        if !value.is_multiple_of(2) {
            wait(word, index, value);
        }
    }
    let _ended = mode.replace(ENDING, LOCKS);
    Ok(())
}

/// Lets the calling thread update aligned elements of 4 or 8 bytes at rank `target` by instructions. Returns `None`
/// if it must take locks. `rank` is this rank in the window, and `own` in the world; `elements` is the number of
/// elements, or 1 if the update is as quick by instructions.
///
/// # Errors
/// Returns `ErrorKind::State` in a forked child.
#[inline(always)]
pub(super) fn begin(
    words: &Words,
    (rank, own): (usize, usize),
    target: usize,
    elements: usize,
) -> Result<Option<Inside<'_>>> {
    let mode = words.get(target, Word::Mode)?;
    let word = |number| words.get(rank, Word::Inside(number));
    admit(mode, elements >= MANY, word, || change(words, own, target))
}

/// Decides for [`begin`], over the word `mode`. `many` says whether the update is one of many elements, and `change`
/// ends the updates by instructions.
#[inline(always)]
fn admit<'a, W: SharedWord>(
    mode: &W,
    many: bool,
    word: impl Fn(usize) -> Result<&'a W>,
    change: impl Fn() -> Result<()>,
) -> Result<Option<Inside<'a, W>>> {
    if many && mode.value() == INSTRUCTIONS || mode.value() == ENDING {
        change()?;
    }
    let inside = enter(mode, word)?;
    if inside.is_none() && mode.value() == ENDING {
        // Another rank has changed the mode since the look above, and may still wait for ranks that are inside. A lock
        // excludes nobody before they have left.
        change()?;
    }
    Ok(inside)
}

/// Does the same as [`begin`] for one element in a process that may use windows, if the first word of this rank is free
/// and the target permits instructions. In all other cases returns `None`; then `begin` decides.
#[inline(always)]
pub(super) fn begin_short(words: &Words, rank: usize, target: usize) -> Option<Inside<'_>> {
    let mode = words.find(target, Word::Mode)?;
    if !permits_instructions(mode.value()) {
        return None;
    }
    let inside = take(words.find(rank, Word::Inside(0))?)?;
    permits_instructions(mode.value()).then_some(inside)
}

/// Changes rank `target` to locks, unless the hint forbids this.
#[cold]
fn change(words: &Words, own: usize, target: usize) -> Result<()> {
    let mode = words.get(target, Word::Mode)?;
    let all = (0..words.members() * INSIDE)
        .map(|index| words.get(index / INSIDE, Word::Inside(index % INSIDE)));
    end_instructions(mode, all, |word, index, value| {
        let mut pauses = Pauses::new(true);
        while word.value() == value {
            let is_dead = || {
                let world = words.world_rank(index / INSIDE);
                world.is_none_or(|world| state_of(world, own) != Some(State::Registered))
            };
            if pauses.are_long() && is_dead() {
                return;
            }
            pauses.pause();
        }
    })
}

/// Fixes what all ranks use at rank `target`, if its hint `mpi_accumulate_granularity` (in bytes; 0 is no hint) does.
/// Every rank does this for all targets before it uses a new window, so that no rank finds a target whose hint is not
/// in force yet.
pub(super) fn fix(words: &Words, target: usize, granularity: u64) -> Result<()> {
    fix_mode(words.get(target, Word::Mode)?, granularity);
    Ok(())
}

/// See [`fix`]. If the replacement fails, another rank has fixed the mode. Nobody updates the target before that.
fn fix_mode<W: SharedWord>(mode: &W, granularity: u64) {
    let fixed = match granularity {
        0 => return,
        1..=8 => ALWAYS_INSTRUCTIONS,
        _ => LOCKS,
    };
    let _fixed = mode.replace(INSTRUCTIONS, fixed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rma::words::model::{ModelWord, explore};
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Mutex};

    /// A target with one element, and the word of each of three ranks.
    struct Target {
        mode: ModelWord,
        inside: [ModelWord; 3],
        /// The lock of the element.
        lock: Mutex<()>,
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
                lock: Mutex::new(()),
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
            };
            let change = || end_instructions(&self.mode, self.inside.iter().map(Ok), wait);
            let word = |_| Ok(&self.inside[rank]);
            if let Some(_inside) = admit(&self.mode, many, word, change).unwrap() {
                // Updates by instructions may run at the same time, but no update under the lock. Loom permits many
                // readers of a cell and no writer beside them.
                self.locked.with(|_| {
                    while self.element.add_one().is_err() {
                        loom::thread::yield_now();
                    }
                });
                return;
            }
            let _locked = self.lock.lock().unwrap();
            self.locked.with_mut(|_| {
                // A plain update: a load and a store.
                let value = self.element.value();
                self.element.set(value + 1);
            });
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
            assert_eq!(target.mode.value(), LOCKS);
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

    /// Checks that a hint is in force before the first update: a rank that has made the window updates many elements
    /// at a target that has not finished making the window yet.
    #[test]
    fn loom_a_hint_is_in_force_before_the_first_update() {
        for (granularity, mode) in [(8, ALWAYS_INSTRUCTIONS), (4096, LOCKS)] {
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
        let never = |_: &AtomicU64, _: usize, _: u64| panic!("nobody is inside");
        end_instructions(&mode, inside.iter().map(Ok), never).unwrap();
        let entered = enter(&mode, |number| Ok(&inside[number])).unwrap();
        assert_eq!((entered.is_some(), inside[0].value()), (true, 5));
        drop(entered);
        assert_eq!((mode.value(), inside[0].value()), (ALWAYS_INSTRUCTIONS, 6));
        // Words that faulty ranks have written: nobody enters, and nobody waits.
        mode.set(77);
        end_instructions(&mode, inside.iter().map(Ok), never).unwrap();
        assert!(enter(&mode, |number| Ok(&inside[number])).unwrap().is_none());
    }
}
