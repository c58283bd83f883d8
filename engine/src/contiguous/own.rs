//! Picks the method of copies for which no caller has asked for one, and none is fixed.
//!
//! Runs below [`WATCHED`] bytes take vector moves and do not come here. For longer runs there is one chooser per size
//! class, which times a few real copies with the clock that [`set_clock`] has set. A run of at least [`TIMED`] bytes
//! asks its chooser each time. For shorter runs that would cost too much: only one run in [`TURNS`] asks, and the
//! others take the method that the chooser has found best so far. If there is no clock, nothing is timed, and runs take
//! vector moves.
//!
//! There are two sets of choosers ([`Source`]). If another processor has just written the bytes, they lie in its
//! caches, and the quickest method for them may be slow for other copies. In one process, streaming stores were the
//! quickest method to put 64 KiB into the memory of another rank, and took 1.6 times as long as vector moves to get
//! as many bytes.
//!
//! All threads of the process share the choosers (`choice/shared.rs`).

use super::{METHODS, Method, Source, WATCHED, available, copy_by, set_choice};
use crate::choice::{Form, Key, Remembered, SharedChooser, Sizes, Store, store};
use std::sync::{LazyLock, OnceLock};

/// Length in bytes from which every run asks its chooser. Two readings of a clock take about 50 ns; a copy of
/// this length takes at least 1 us.
const TIMED: usize = 128 << 10;

/// Of the runs of [`WATCHED`] to [`TIMED`] bytes, one in this number asks its chooser.
const TURNS: u32 = 16;

/// Number of size classes.
const CLASSES: usize = 15;

/// What the choice of a method depends on: who has written the bytes ([`Source`]), and their number.
pub static FORM: Form = Form {
    name: "copies",
    title: "",
    fields: &[&[("own", "other copies"), ("others", "copies of other ranks' bytes")]],
    sizes: Sizes { first: WATCHED as u64, step: 1, count: CLASSES },
    ways: &METHODS,
};

/// Returns the time in nanoseconds since some fixed moment.
pub type Clock = fn() -> u64;

static CLOCK: OnceLock<Clock> = OnceLock::new();

/// Sets the clock, with which choosers measure. Only the first call has an effect. Unless `copies` is true, or without
/// a clock, all copies take vector moves, unless their caller asks for another method or
/// [`set_fixed`](typepack_leaf::contiguous::set_fixed) has fixed one. The choosers of copies begin with what the
/// process knows when the first long run is copied ([`store`]).
pub fn set_clock(clock: Clock, copies: bool) {
    let _first = CLOCK.set(clock);
    if !copies {
        return;
    }
    // SAFETY: `copy` copies the run with one of the methods of `copy_by`, which copy it as `contiguous::copy` does.
    unsafe { set_choice(copy) };
}

/// Returns the clock that [`set_clock`] has set.
pub(crate) fn clock() -> Option<Clock> {
    CLOCK.get().copied()
}

/// The chooser and the methods of one size class.
struct Class {
    chooser: SharedChooser,
    methods: Vec<Method>,
}

/// Number of sources. Each has its own choosers.
const SOURCES: usize = 2;

/// The size classes of each source.
type Table = [Vec<Class>; SOURCES];

static TABLE: LazyLock<Table> = LazyLock::new(|| table(store()));

/// Creates choosers that begin with what `store` has.
fn table(store: &Store) -> Table {
    let methods: Vec<Method> = available().collect();
    let class = |source, number| {
        let known = store.get(key(source, number));
        let first = methods.iter().position(|method| Some(method.code()) == known);
        let chooser = SharedChooser::new(methods.len(), first.unwrap_or(0) as u8);
        Class { chooser, methods: methods.clone() }
    };
    std::array::from_fn(|source| (0..CLASSES).map(|number| class(source, number)).collect())
}

/// Returns the best method of each size class whose methods have been compared. A class that another thread is using is
/// left out.
pub fn remembered() -> Vec<Remembered> {
    remembered_in(&TABLE)
}

fn remembered_in(table: &Table) -> Vec<Remembered> {
    let classes = table.iter().zip(0..).flat_map(|(classes, source)| {
        classes.iter().enumerate().map(move |(number, class)| (source, number, class))
    });
    let best = |(source, number, class): (usize, usize, &Class)| {
        let method = class.methods[usize::from(class.chooser.compared()?)];
        Some(Remembered { key: key(source, number), way: method.code() })
    };
    classes.filter_map(best).collect()
}

/// Returns the key of the copies of a size class.
fn key(source: usize, class: usize) -> Key {
    FORM.key([source], FORM.sizes.least(class))
}

/// Copies a long run.
///
/// # Safety
///
/// - The conditions of [`super::copy`] hold, and `bytes` is at least [`WATCHED`].
unsafe fn copy(source: Source, from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees the conditions of `copy_by` for `from`, `to` and `bytes`.
    let copy = |method| unsafe { copy_by(method, from, to, bytes) };
    let Some(clock) = CLOCK.get() else { return copy(Method::Vector) };
    let Class { chooser, methods } = &TABLE[source as usize][FORM.sizes.class(bytes as u64)];
    let turns = if bytes < TIMED { TURNS } else { 1 };
    chooser.run(turns, bytes as u64, clock, |way| copy(methods[usize::from(way)]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::SAMPLES;
    use std::cell::Cell;

    /// Gives each way of a size class so many costs that the last one is the best.
    fn compare(class: &Class) -> Method {
        let last = class.methods.len() as u64 - 1;
        let now = Cell::new(0);
        for _ in 0..100 * SAMPLES {
            let job = |way| now.set(now.get() + 1000 - 500 * u64::from(way) / last.max(1));
            class.chooser.run(1, 1 << 10, || now.get(), job);
        }
        let best = class.chooser.compared().map_or(0, usize::from);
        assert_eq!(best as u64, last);
        class.methods[best]
    }

    #[test]
    fn what_is_remembered_is_the_first_choice_of_the_next_process() {
        let first = table(&Store::default());
        assert_eq!(remembered_in(&first), []);
        let method = compare(&first[1][2]);
        if available().count() == 1 {
            return assert_eq!(remembered_in(&first), []);
        }
        let remembered = [Remembered { key: key(1, 2), way: method.code() }];
        assert_eq!(remembered_in(&first), remembered);
        let said = format!("from 64 KiB, copies of other ranks' bytes: {method}");
        assert_eq!(remembered[0].to_string(), said);
        let store = Store::default();
        store.know(&remembered);
        let next = table(&store);
        let class = &next[1][2];
        assert_eq!(class.chooser.compared(), None);
        class.chooser.run(
            1,
            1 << 10,
            || 0,
            |way| assert_eq!(class.methods[usize::from(way)], method),
        );
    }
}
