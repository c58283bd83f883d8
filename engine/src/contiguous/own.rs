//! Picks the method of copies for which no caller has asked for one, and none is fixed.
//!
//! Runs below [`WATCHED`] bytes take vector moves and do not come here. For longer runs there is one chooser per size
//! class, which times a few real copies with the clock that [`set_clock`] has set. A run of at least [`TIMED`] bytes asks
//! its chooser each time. For shorter runs that would cost too much: only one run in [`TURNS`] asks, and the
//! others take the method that the chooser has found best so far. If there is no clock, nothing is timed, and
//! runs take vector moves or what [`know`] says.
//!
//! There are two sets of choosers ([`Source`]). If another processor has just written the bytes, they lie in its
//! caches, and the quickest method for them may be slow for other copies. In one process, streaming stores were the
//! quickest method to put 64 KiB into the memory of another rank, and took 1.6 times as long as vector moves to get
//! as many bytes.
//!
//! All threads of the process share the choosers. No thread waits for another one: if a run has to ask a
//! chooser that another thread is using, the run takes vector moves. The loom models in
//! `contiguous/tests/shared.rs` run two threads in every interleaving.

use super::{Method, Source, WATCHED, available, copy_by, set_choice};
use crate::choice::{Chooser, Pick};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock};

/// Length in bytes from which every run asks its chooser. Two readings of a clock take about 50 ns; a copy of
/// this length takes at least 1 us.
const TIMED: usize = 128 << 10;

/// Of the runs of [`WATCHED`] to [`TIMED`] bytes, one in this number asks its chooser.
const TURNS: u32 = 16;

/// Number of size classes. The first begins at [`WATCHED`] bytes, each later one at twice the length of the one
/// before it. The last has no upper end.
const CLASSES: usize = 15;

/// Number of size classes below [`TIMED`] bytes.
const QUICK: usize = (TIMED / WATCHED).ilog2() as usize;

/// Returns the time in nanoseconds since some fixed moment.
pub type Clock = fn() -> u64;

static CLOCK: OnceLock<Clock> = OnceLock::new();

/// Sets the clock. Only the first call has an effect. Without a clock, all copies take vector moves, unless
/// their caller asks for another method or [`set_fixed`](typepack_leaf::contiguous::set_fixed) has fixed one.
pub fn set_clock(clock: Clock) {
    let _first = CLOCK.set(clock);
    take_copies();
}

/// From this call on, [`copy`] copies the long runs whose method is neither asked for nor fixed.
fn take_copies() {
    // SAFETY: `copy` copies the run with one of the methods of `copy_by`, which copy it as `contiguous::copy` does.
    unsafe { set_choice(copy) };
}

/// Returns the clock that [`set_clock`] has set.
pub(crate) fn clock() -> Option<Clock> {
    CLOCK.get().copied()
}

/// A chooser that several threads share.
pub(crate) trait Shared {
    /// Calls `f` with the chooser. Returns `None` at once if another thread uses the chooser.
    fn attempt<R>(&self, f: impl FnOnce(&mut Chooser) -> R) -> Option<R>;
}

impl Shared for Mutex<Chooser> {
    fn attempt<R>(&self, f: impl FnOnce(&mut Chooser) -> R) -> Option<R> {
        self.try_lock().ok().map(|mut chooser| f(&mut chooser))
    }
}

/// Calls `job` once with the number of a way: the way that the chooser picks, or 0 (the static choice) if
/// another thread uses the chooser. `bytes` is the number of bytes that the job copies. This thread does not
/// hold the chooser during the call. Returns the way that the chooser has found best so far, or `None` if
/// another thread uses the chooser.
pub(crate) fn choose(
    chooser: &impl Shared,
    bytes: usize,
    clock: impl Fn() -> u64,
    job: impl FnOnce(u8),
) -> Option<u8> {
    let Some(Pick { way, timed }) = chooser.attempt(Chooser::pick) else {
        job(0);
        return None;
    };
    if !timed {
        job(way);
        return chooser.attempt(|chooser| chooser.best());
    }
    let start = clock();
    job(way);
    let time = clock().saturating_sub(start);
    // The cost is the time per MiB, because the lengths of one class differ. If another thread uses the
    // chooser, this cost is not recorded.
    let cost = (time << 20) / (bytes as u64).max(1);
    chooser.attempt(|chooser| {
        chooser.report(way, cost);
        chooser.best()
    })
}

/// The chooser and the methods of one size class.
struct Class {
    chooser: Mutex<Chooser>,
    methods: Vec<Method>,
}

/// Number of sources. Each has its own choosers.
const SOURCES: usize = 2;

/// The size classes of each source.
type Table = [Vec<Class>; SOURCES];

static TABLE: LazyLock<Table> = LazyLock::new(table);

fn table() -> Table {
    let methods: Vec<Method> = available().collect();
    let class =
        || Class { chooser: Mutex::new(Chooser::new(methods.len(), 0)), methods: methods.clone() };
    [(); SOURCES].map(|()| (0..CLASSES).map(|_| class()).collect())
}

/// The best method for runs of at least `bytes` bytes and less than twice as many, or, in the last size class, of any
/// number from `bytes` on. The caller of the copies has asked for no method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learnt {
    /// True for bytes that another process has written.
    pub of_others: bool,
    /// The least number of bytes of the size class.
    pub bytes: u64,
    /// The method.
    pub method: Method,
}

impl Learnt {
    /// Returns the value with these fields, or `None` if no size class begins at `bytes` bytes.
    pub fn new(of_others: bool, bytes: u64, method: Method) -> Option<Self> {
        let begins = (0..CLASSES).any(|number| least(number) == bytes);
        begins.then_some(Self { of_others, bytes, method })
    }
}

/// Returns the best method of each size class whose methods have been compared. A class that another thread is using is
/// left out.
pub fn learnt() -> Vec<Learnt> {
    learnt_in(&TABLE)
}

fn learnt_in(table: &Table) -> Vec<Learnt> {
    let classes = table.iter().zip([false, true]).flat_map(|(classes, of_others)| {
        classes.iter().enumerate().map(move |(number, class)| (of_others, number, class))
    });
    let best = |(of_others, number, class): (bool, usize, &Class)| {
        let settled = |chooser: &mut Chooser| chooser.is_settled().then(|| chooser.best());
        let best = class.chooser.attempt(settled)??;
        let method = *class.methods.get(usize::from(best)).filter(|_| class.methods.len() > 1)?;
        Some(Learnt { of_others, bytes: least(number), method })
    };
    classes.filter_map(best).collect()
}

/// Makes methods that were learnt earlier the first choice of their size classes. Lengths that begin no size class, and
/// methods that this machine lacks, are left out, and so are size classes that have begun to measure.
pub fn know(learnt: &[Learnt]) {
    take_copies();
    for (source, number, method) in know_in(&TABLE, learnt) {
        if let Some(quick) = QUICKS[source].get(number) {
            quick.best.store(method.code(), Ordering::Relaxed);
        }
    }
}

/// Changes the choosers as [`know`] says, and returns the numbers of the sources and size classes, with their methods.
fn know_in(table: &Table, learnt: &[Learnt]) -> Vec<(usize, usize, Method)> {
    let one = |learnt: &Learnt| {
        let source = usize::from(learnt.of_others);
        let number = (0..CLASSES).find(|number| least(*number) == learnt.bytes)?;
        let class = &table[source][number];
        let way = class.methods.iter().position(|method| *method == learnt.method)?;
        let first = |chooser: &mut Chooser| {
            let fresh = chooser.jobs() == 0;
            if fresh {
                *chooser = Chooser::new(class.methods.len(), way as u8);
            }
            fresh
        };
        class.chooser.attempt(first)?.then_some((source, number, learnt.method))
    };
    learnt.iter().filter_map(one).collect()
}

/// Returns the least number of bytes of a size class.
fn least(class: usize) -> u64 {
    (WATCHED as u64) << class
}

/// A size class below [`TIMED`] bytes.
struct Quick {
    /// Number of runs so far. Threads may lose counts, which does no harm.
    runs: AtomicU32,
    /// The method that the chooser of the class has found best so far.
    best: AtomicU8,
}

/// The quick classes of each source.
static QUICKS: [[Quick; QUICK]; SOURCES] = [const {
    [const { Quick { runs: AtomicU32::new(0), best: AtomicU8::new(Method::Vector.code()) } }; QUICK]
}; SOURCES];

/// Copies a long run.
///
/// # Safety
///
/// - The conditions of [`super::copy`] hold, and `bytes` is at least [`WATCHED`].
unsafe fn copy(source: Source, from: *const u8, to: *mut u8, bytes: usize) {
    let method = match QUICKS[source as usize].get(class(bytes)) {
        None => None,
        Some(quick) => {
            let run = quick.runs.load(Ordering::Relaxed);
            quick.runs.store(run.wrapping_add(1), Ordering::Relaxed);
            let best = || Method::from_code(quick.best.load(Ordering::Relaxed));
            if run % TURNS == TURNS - 1 { None } else { best() }
        }
    };
    // SAFETY: the caller guarantees the conditions.
    unsafe {
        match method {
            Some(method) => copy_by(method, from, to, bytes),
            None => chosen(source, from, to, bytes),
        }
    }
}

/// Copies a run for which the chooser is asked.
///
/// # Safety
///
/// - The conditions of [`copy`] hold.
#[cold]
unsafe fn chosen(source: Source, from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees the conditions of `copy_by` for `from`, `to` and `bytes`.
    let copy = |method| unsafe { copy_by(method, from, to, bytes) };
    let Some(clock) = CLOCK.get() else { return copy(Method::Vector) };
    let class_number = class(bytes);
    let class = &TABLE[source as usize][class_number];
    // Method 0 is vector moves. `way` is less than the number of methods, so the default is never used.
    let method = |way: u8| class.methods.get(usize::from(way)).copied().unwrap_or(Method::Vector);
    let best = choose(&class.chooser, bytes, clock, |way| copy(method(way)));
    if let (Some(best), Some(quick)) = (best, QUICKS[source as usize].get(class_number)) {
        quick.best.store(method(best).code(), Ordering::Relaxed);
    }
}

fn class(bytes: usize) -> usize {
    ((bytes / WATCHED).max(1).ilog2() as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::SAMPLES;

    /// Gives each way of a size class so many costs that the last one is the best.
    fn compare(class: &Class) -> Method {
        let mut chooser = class.chooser.try_lock().expect("one thread");
        for _ in 0..100 * SAMPLES {
            let Pick { way, timed } = chooser.pick();
            if timed {
                chooser.report(way, 200 - 10 * u64::from(way));
            }
        }
        assert!(chooser.is_settled());
        class.methods[usize::from(chooser.best())]
    }

    #[test]
    fn what_was_learnt_is_the_first_choice_of_the_next_process() {
        let first = table();
        assert_eq!(learnt_in(&first), []);
        let method = compare(&first[1][2]);
        if available().count() == 1 {
            return assert_eq!(learnt_in(&first), []);
        }
        let learnt = [Learnt { of_others: true, bytes: 64 << 10, method }];
        assert_eq!(learnt_in(&first), learnt);
        let next = table();
        let wrong = Learnt { bytes: 1000, ..learnt[0] };
        assert_eq!(know_in(&next, &[wrong, learnt[0]]), [(1, 2, method)]);
        let chooser = next[1][2].chooser.try_lock().expect("one thread");
        assert_eq!(next[1][2].methods[usize::from(chooser.best())], method);
        assert!(!chooser.is_settled());
        drop(chooser);
        // A size class that has begun to measure goes on.
        assert_eq!(know_in(&first, &learnt), []);
    }

    #[test]
    fn size_classes_begin_where_they_say() {
        for number in 0..CLASSES {
            let bytes = usize::try_from(least(number)).expect("a length");
            assert_eq!(class(bytes), number);
            assert!(number == 0 || class(bytes - 1) == number - 1);
        }
    }
}
