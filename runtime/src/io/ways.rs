//! The two ways of an access, chosen by measurement: the mapped window of the file, or system calls.
//!
//! `transfer.rs` has a static order: views with short, close pieces go through the window, and runs go by system
//! calls. Which way is faster depends on the machine and on the file system: a call has a fixed price and waits
//! for other writers of the file, and a window has a price for each page that it touches for the first time. So
//! there is one chooser (`typepack_engine::choice`) for each [`Key`], which begins with the static order.
//!
//! All files of a process on one file system share their choosers ([`Ways::of`]), because a program opens many
//! files for a few accesses each. Each rank chooses alone. A choice changes no result. With `TYPEPACK_TUNE=off`
//! and with a forced way (`TYPEPACK_IO`) there are no choosers.
//!
//! A way that takes hundreds of times as long would cost too much to try. So system calls are no candidate for
//! writes of pieces that are shorter than [`LONG`].

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use typepack_engine::choice::Chooser;

/// Mean length in bytes from which pieces of a view may be written by a system call each. A shorter piece is
/// copied in much less time than a call takes.
const LONG: u64 = 4 << 10;

/// Number of size classes. The first one has accesses of up to 1 KiB, and each following one accesses that are
/// up to four times as long. The last one has all longer ones.
const SIZES: usize = 9;

/// Number of density classes: views that are one run, and then views with pieces of up to 64 B, 512 B, 4 KiB,
/// 32 KiB, and longer ones.
const DENSITIES: usize = 6;

/// Number of choosers.
const KEYS: usize = 2 * 2 * SIZES * DENSITIES;

/// Once a chooser is settled, only one access in this number of accesses asks it for the way.
const RARELY: u32 = 8;

/// The most file systems whose choosers a process keeps.
const SYSTEMS: usize = 64;

/// The numbers of the ways for the choosers.
const WINDOW: u8 = 0;
const CALLS: u8 = 1;

/// What the choice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// The access writes.
    pub write: bool,
    /// The access reaches beyond the part of the file that this process knows.
    pub grows: bool,
    /// The number of bytes.
    pub bytes: u64,
    /// The mean length of the pieces of the view; `None` if the view is one run.
    pub piece: Option<u64>,
}

impl Key {
    /// Returns whether both ways are candidates.
    fn is_open(self) -> bool {
        !self.write || self.piece.is_none_or(|piece| piece >= LONG)
    }

    /// Says for people which accesses have the index `index`.
    fn describe(index: usize) -> String {
        let (flags, size, density) =
            (index / DENSITIES / SIZES, index / DENSITIES % SIZES, index % DENSITIES);
        let what = if flags & 2 != 0 { "writes" } else { "reads" };
        let grows = if flags & 1 != 0 { " beyond the known end" } else { "" };
        let most = match size {
            _ if size + 1 == SIZES => "of any longer length".to_owned(),
            _ => format!("of up to {} KiB", 1 << (2 * size)),
        };
        let view = match density {
            0 => "one run".to_owned(),
            _ if density + 1 == DENSITIES => "longer pieces".to_owned(),
            _ => format!("pieces of up to {} B", 64 << (3 * (density - 1))),
        };
        format!("{what}{grows} {most}, {view}")
    }

    fn index(self) -> usize {
        let class = |value: u64, first: u64, step: u32| {
            let over = value.max(1).div_ceil(first).next_power_of_two().trailing_zeros();
            over.div_ceil(step) as usize
        };
        let size = class(self.bytes, 1 << 10, 2).min(SIZES - 1);
        let density = self.piece.map_or(0, |piece| 1 + class(piece, 64, 3).min(DENSITIES - 2));
        let flags = 2 * usize::from(self.write) + usize::from(self.grows);
        (flags * SIZES + size) * DENSITIES + density
    }
}

/// The chooser of one key.
#[derive(Debug, Default)]
struct Entry {
    /// The number of accesses in the upper bits. In the lower two bits, the way plus one if the chooser is
    /// settled, and otherwise 0.
    settled: AtomicU32,
    chooser: Mutex<Option<Chooser>>,
}

/// The choosers of a file system.
#[derive(Debug)]
pub(super) struct Ways(Vec<Entry>);

/// An access whose time the chooser wants to know.
#[derive(Debug)]
pub(super) struct Trial {
    index: usize,
    way: u8,
    bytes: u64,
    begin: Instant,
}

/// The choosers of the file systems of this process, by the numbers of the file systems.
static SYSTEM_WAYS: Mutex<Vec<(u64, Arc<Ways>)>> = Mutex::new(Vec::new());

/// Returns one line for each kind of accesses to files whose ways have been compared.
pub(crate) fn report() -> Vec<String> {
    let all = SYSTEM_WAYS.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().flat_map(|(_, ways)| ways.lines()).collect()
}

impl Ways {
    fn lines(&self) -> Vec<String> {
        let line = |(index, entry): (usize, &Entry)| {
            let way = match entry.settled.load(Ordering::Relaxed) & 3 {
                0 => return None,
                mark if mark == u32::from(WINDOW) + 1 => "mapped window",
                _ => "system calls",
            };
            Some(format!("file accesses, {}: {way}", Key::describe(index)))
        };
        self.0.iter().enumerate().filter_map(line).collect()
    }

    fn new() -> Self {
        Self((0..KEYS).map(|_| Entry::default()).collect())
    }

    /// Returns the choosers of the file system with the number `system`.
    pub fn of(system: u64) -> Arc<Self> {
        let mut all = SYSTEM_WAYS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ways)) = all.iter().find(|(number, _)| *number == system) {
            return ways.clone();
        }
        let ways = Arc::new(Self::new());
        if all.len() < SYSTEMS {
            all.push((system, ways.clone()));
        }
        ways
    }

    /// Returns whether an access uses the window, and the trial if the access's time is to be reported. `suits` is true
    /// if the static order prefers the window.
    pub fn pick(&self, key: Key, suits: bool) -> (bool, Option<Trial>) {
        if !key.is_open() {
            return (suits, None);
        }
        let index = key.index();
        let entry = &self.0[index];
        let settled = entry.settled.load(Ordering::Relaxed);
        if settled & 3 != 0 {
            let accesses = entry.settled.fetch_add(4, Ordering::Relaxed) >> 2;
            if !accesses.is_multiple_of(RARELY) {
                return (settled & 3 == u32::from(WINDOW) + 1, None);
            }
        }
        let mut chooser = entry.chooser.lock().unwrap_or_else(PoisonError::into_inner);
        let first = if suits { WINDOW } else { CALLS };
        let pick = chooser.get_or_insert_with(|| Chooser::new(2, first)).pick();
        drop(chooser);
        let trial = pick.timed.then(|| {
            let (way, bytes) = (pick.way, key.bytes);
            Trial { index, way, bytes, begin: Instant::now() }
        });
        (pick.way == WINDOW, trial)
    }

    /// Takes note that an access on trial is over.
    pub fn report(&self, trial: &Trial) {
        let taken = u64::try_from(trial.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.note(trial, taken);
    }

    fn note(&self, trial: &Trial, taken: u64) {
        // A time per byte in 2^-20 ns, because the accesses of a key have different lengths.
        let cost = (u128::from(taken) << 20) / u128::from(trial.bytes.max(1));
        let entry = &self.0[trial.index];
        let mut chooser = entry.chooser.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(chooser) = chooser.as_mut() else { return };
        chooser.report(trial.way, u64::try_from(cost).unwrap_or(u64::MAX));
        let mark = if chooser.is_settled() { u32::from(chooser.best()) + 1 } else { 0 };
        // A count that another thread has added in between may be lost.
        let accesses = entry.settled.load(Ordering::Relaxed) & !3;
        entry.settled.store(accesses | mark, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Key = Key { write: true, grows: false, bytes: 4096, piece: None };

    /// Makes `accesses` accesses. Those that use the window take `window` ns, the others `calls` ns. Returns how
    /// many used the window.
    fn work(
        ways: &Ways,
        key: Key,
        suits: bool,
        accesses: usize,
        [window, calls]: [u64; 2],
    ) -> usize {
        let mut mapped = 0;
        for _ in 0..accesses {
            let (is_mapped, trial) = ways.pick(key, suits);
            mapped += usize::from(is_mapped);
            if let Some(trial) = trial {
                ways.note(&trial, if is_mapped { window } else { calls });
            }
        }
        mapped
    }

    #[test]
    fn the_faster_way_wins_and_the_static_choice_comes_first() {
        let ways = Ways::new();
        assert!(!ways.pick(RUN, false).0 && !ways.pick(RUN, false).0);
        work(&ways, RUN, false, 2000, [300, 1300]);
        assert!(work(&ways, RUN, false, 1000, [300, 1300]) > 950);
        let line = "file accesses, writes of up to 4 KiB, one run: mapped window";
        assert_eq!(ways.lines(), [line]);
        // The other keys do not learn from these accesses.
        let read = Key { write: false, ..RUN };
        assert!(!ways.pick(read, false).0);
        assert!(work(&ways, read, true, 2000, [300, 200]) < 500);
        // The machine changes.
        work(&ways, RUN, false, 20_000, [3000, 1300]);
        assert!(work(&ways, RUN, false, 1000, [3000, 1300]) < 50);
    }

    #[test]
    fn short_pieces_are_never_written_by_calls() {
        let ways = Ways::new();
        let short = Key { piece: Some(8), bytes: 1 << 20, ..RUN };
        assert_eq!(work(&ways, short, true, 3000, [900, 1]), 3000);
        let long = Key { piece: Some(1 << 16), ..short };
        assert!(work(&ways, long, true, 3000, [900, 100]) < 1000);
    }

    #[test]
    fn keys_have_choosers_of_their_own() {
        let mut seen = std::collections::BTreeSet::new();
        let mut said = std::collections::BTreeSet::new();
        for (write, grows) in [(false, false), (false, true), (true, false), (true, true)] {
            for size in 0..SIZES {
                for piece in
                    [None, Some(64), Some(512), Some(4 << 10), Some(32 << 10), Some(1 << 20)]
                {
                    let key = Key { write, grows, bytes: 1 << (10 + 2 * size), piece };
                    assert!(key.index() < KEYS && seen.insert(key.index()), "{key:?}");
                    said.insert(Key::describe(key.index()));
                }
            }
        }
        assert_eq!((seen.len(), said.len()), (KEYS, KEYS));
        let of = |bytes, piece| Key { bytes, piece, ..RUN }.index();
        assert_eq!((of(0, None), of(u64::MAX, None)), (of(1024, None), of(1 << 40, None)));
        assert_eq!((of(1025, None), of(5, Some(0))), (of(4096, None), of(5, Some(64))));
    }

    #[test]
    fn files_of_one_system_share_their_choosers() {
        let number = u64::MAX - u64::from(std::process::id());
        assert!(Arc::ptr_eq(&Ways::of(number), &Ways::of(number)));
        assert!(!Arc::ptr_eq(&Ways::of(number), &Ways::of(number - 1)));
    }
}
