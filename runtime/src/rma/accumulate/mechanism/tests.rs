//! Tests of the change between instructions and locks, with models of `loom`.

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
        let wait = || unreachable!("each rank has one thread");
        let turn = take_turn(&self.mode, many, &self.inside[rank], wait, change, hold);
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
    let all = words.each_ref();
    let values = take_any(&all, 3, |_, _| false, || {}).err().expect("no word is free");
    assert_eq!((values[0], values[INSIDE - 1]), (1, 2 * INSIDE as u64 - 1));
    // As long as a word changes, threads of this rank are at work.
    let looks = std::cell::Cell::new(0);
    let changes = |number: usize, _: u64| {
        looks.set(looks.get() + 1);
        let next = if looks.get() < 50 { words[number].value() + 2 } else { 100 };
        words[number].set(next);
        false
    };
    let inside = take_any(&all, 3, changes, || {}).expect("a word");
    assert!(looks.get() >= 50);
    drop(inside);
    words[0].set(7);
    words[5].set(6);
    assert!(take_any(&all, 3, |_, _| true, || {}).is_ok());
}

/// After a wait has ended with an error, the next one fails at once, until the words change.
#[test]
fn words_that_are_known_to_stay_odd_are_an_error_at_once() {
    let words = Words::in_this_process(2);
    let site = Site { words: &words, rank: 0, patience: Patience::under_lock(0), target: 1 };
    let word = |rank, number| words.get(rank, Word::Inside(number)).expect("a word");
    let kind = |turn: Result<Turn<'_>>| turn.map(drop).map_err(|error| error.kind());
    (0..INSIDE).for_each(|number| word(0, number).set(77));
    assert_eq!(site.take_any(3).map(drop).map_err(|e| e.kind()), Err(ErrorKind::Other));
    // Without the note, each of these would wait for more than a minute.
    for _ in 0..3 {
        assert_eq!(kind(site.turn(0, 1)), Err(ErrorKind::Other));
    }
    word(0, 3).set(78);
    assert_eq!(kind(site.turn(0, 1)), Ok(()));
    // The same for a word of another rank, for which a change to locks waits. This process is rank 0 of the job.
    (0..INSIDE).for_each(|number| word(0, number).set(0));
    let site = Site { rank: 1, ..site };
    word(0, 2).set(9);
    let mode = words.get(1, Word::Mode).expect("a word");
    assert_eq!(site.change(mode, 3).map_err(|e| e.kind()), Err(ErrorKind::Other));
    for _ in 0..3 {
        assert_eq!(kind(site.turn(0, MANY)), Err(ErrorKind::Other));
        assert_eq!(mode.value() & KIND, ENDING);
    }
    word(0, 2).set(10);
    assert!(matches!(site.turn(0, MANY), Ok(Turn::Held(_))));
}

#[test]
fn a_fixed_mode_stays() {
    let word = |value| AtomicU64::new(value);
    let (mode, inside) = (word(ALWAYS_INSTRUCTIONS), [word(4), word(u64::MAX - 1)]);
    let never = |_: &AtomicU64, _: usize, _: u64| -> Result<()> { panic!("nobody is inside") };
    end_instructions(&mode, inside.iter().map(Ok), never).unwrap();
    let none = || -> Result<Inside<'_>> { panic!("the word is free") };
    let entered = enter(&mode, &inside[0], none).unwrap();
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
        assert!(enter(&mode, &inside[0], none).unwrap().is_none());
        assert!(uses_locks(&mode) && mode.value() == value);
    }
}

/// A change to locks does not wait without end for a rank that lives, but whose word does not change.
#[test]
fn a_word_of_another_rank_that_stays_odd_is_an_error() {
    let word = AtomicU64::new(7);
    let looks = std::cell::Cell::new(0);
    let look = || looks.set(looks.get() + 1);
    let wait = |is_dead: bool| await_change(&word, 7, 2000, || is_dead, look);
    assert!(!wait(false) && looks.get() > 0);
    assert!(wait(true));
    word.set(8);
    assert!(wait(false));
    // The mode then stays as it is: no rank may take a lock that excludes nobody.
    let (mode, inside) = (AtomicU64::new(INSTRUCTIONS), AtomicU64::new(5));
    let wait = |word: &AtomicU64, _: usize, value: u64| {
        let has_changed = await_change(word, value, 3, || false, || {});
        if has_changed { Ok(()) } else { Err(stuck("a word of rank 3 says")) }
    };
    let change = || end_instructions(&mode, std::iter::once(Ok(&inside)), wait);
    let none = || -> Result<Inside<'_>> { panic!("the change fails before") };
    let turn = take_turn(&mode, true, &inside, none, change, || Ok(()));
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

/// A rank that changes a target to locks sees that a long update by instructions goes on: it has many turns.
#[test]
fn a_long_update_by_instructions_has_many_turns() {
    use crate::Named;
    use crate::rma::Update;
    use crate::rma::accumulate::atomic::ElementUpdate;
    use crate::rma::accumulate::{Run, TURN};
    let words = Words::in_this_process(1);
    let site = Site { words: &words, rank: 0, patience: Patience::under_lock(0), target: 0 };
    let elements = 3 * TURN / 8 + 1;
    let mut operands: Vec<u64> = (1..=elements as u64).collect();
    let mut at = vec![0u64; elements];
    let (update, combine, alone) = (Update::Replace, None, false);
    let atomic = ElementUpdate::new(update, Named::UINT64_T);
    let run = Run { site, size: 8, elements, update, atomic, combine, alone };
    let parts = (operands.as_mut_ptr().cast(), std::ptr::null_mut());
    // SAFETY: both vectors have as many elements of 8 bytes, and there are no results.
    let done = unsafe { run.update(at.as_mut_ptr().cast(), 0, elements, parts, &mut None) };
    assert!(done.is_ok() && at == operands);
    let word = words.get(0, Word::Inside(0)).expect("a word");
    assert_eq!(word.value(), 2 * 4);
}

/// Updates of single elements bring a target back, whoever makes them, and many elements that are as quick by
/// instructions are no reason for locks.
#[test]
fn updates_of_single_elements_bring_a_target_back() {
    let words = Words::in_this_process(2);
    let own = Site { words: &words, rank: 1, patience: Patience::under_lock(0), target: 1 };
    let is_inside = |elements| matches!(own.turn(3, elements), Ok(Turn::Inside(_)));
    own.note(1);
    assert!(!words.notes.has_singles.load(Ordering::Relaxed) && !is_inside(MANY));
    (1..SINGLES).for_each(|_| own.note(1));
    assert!(!is_inside(1));
    own.note(MANY);
    (1..SINGLES).for_each(|_| own.note(2));
    assert!(!is_inside(1));
    own.note(1);
    assert!(is_inside(1) && !is_inside(MANY));
    own.note(1);
    assert!(words.notes.has_singles.load(Ordering::Relaxed) && !is_inside(1));
    end_singles(&words, 1);
    assert!(is_inside(1));
}
