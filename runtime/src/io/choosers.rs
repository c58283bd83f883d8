//! The two ways of an access, chosen by measurement: the mapped window of the file, or system calls.
//!
//! `transfer.rs` has a static order: views with short, close pieces go through the window, and runs go by system
//! calls. Which way is faster depends on the machine and on the file system: a call has a fixed price and waits
//! for other writers of the file, and a window has a price for each page that it touches for the first time. So
//! there is one choice (`typepack_engine::choice`) for each key of an [`Access`], which begins with the static order.
//!
//! All files of a process on one file system share their choosers ([`Choosers::of`]), because a program opens many
//! files for a few accesses each. Each rank chooses alone. A choice changes no result. With `TYPEPACK_TUNE=off`
//! and with a forced way (`TYPEPACK_IO`) there are no choosers.
//!
//! A way that takes hundreds of times as long would cost too much to try. So system calls are no candidate for
//! writes of pieces that are shorter than [`LONG`].

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use typepack_engine::choice::{Candidate, Choice, Form, Key, Pick, Sizes};

/// Mean length in bytes from which pieces of a view may be written by a system call each. A shorter piece is
/// copied in much less time than a call takes.
const LONG: u64 = 4 << 10;

/// What the choice depends on, and the candidates. Files have no lines in a tune file: another file system may lie
/// behind the same path in the next job.
pub(crate) static FORM: Form = Form {
    name: "files",
    title: "file accesses",
    fields: &[
        &[("reads", ", reads"), ("writes", ", writes")],
        &[("known", ""), ("grows", " beyond the known end")],
        &[
            ("run", ", one run"),
            ("64", ", pieces of up to 64 B"),
            ("512", ", pieces of up to 512 B"),
            ("4096", ", pieces of up to 4096 B"),
            ("32768", ", pieces of up to 32768 B"),
            ("longer", ", longer pieces"),
        ],
    ],
    sizes: Sizes { first: 1 << 10, step: 2, count: 9 },
    ways: &[("window", "mapped window"), ("calls", "system calls")],
};

/// The longest pieces of the classes of views with pieces, apart from the last class.
const PIECES: [u64; 4] = [64, 512, 4 << 10, 32 << 10];

/// Once a chooser is settled, only one access in this number of accesses asks it for the way.
const RARELY: u32 = 8;

/// The most file systems whose choosers a process keeps.
const SYSTEMS: usize = 64;

/// The mark of an entry whose accesses use the window.
const MAPPED: u32 = 1;

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// The access writes.
    pub write: bool,
    /// The access reaches beyond the part of the file that this process knows.
    pub grows: bool,
    /// The number of bytes.
    pub bytes: u64,
    /// The mean length of the pieces of the view; `None` if the view is one run.
    pub piece: Option<u64>,
}

impl Access {
    /// Returns whether both ways are candidates.
    fn is_open(self) -> bool {
        !self.write || self.piece.is_none_or(|piece| piece >= LONG)
    }

    fn key(self) -> Key {
        let piece = |piece| 1 + PIECES.iter().filter(|most| piece > **most).count();
        let view = self.piece.map_or(0, piece);
        FORM.key([usize::from(self.write), usize::from(self.grows), view], self.bytes)
    }
}

/// A way: whether an access uses the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UsesWindow(bool);

impl Candidate for UsesWindow {
    fn number(self, _: Key) -> u8 {
        u8::from(!self.0)
    }
}

/// The choice of one key.
#[derive(Debug, Default)]
struct Entry {
    /// The number of accesses in the upper bits. In the lower two bits, 0 until the ways have been compared, and then
    /// [`MAPPED`] or 2.
    settled: AtomicU32,
    choice: Mutex<Option<Choice<UsesWindow>>>,
}

/// The choices of a file system.
#[derive(Debug)]
pub(super) struct Choosers(Vec<Entry>);

/// An access whose time the chooser wants to know.
#[derive(Debug)]
pub(super) struct Trial {
    key: Key,
    way: u8,
    bytes: u64,
    begin: Instant,
}

/// The choosers of the file systems of this process, by the numbers of the file systems.
static SYSTEM_CHOOSERS: Mutex<Vec<(u64, Arc<Choosers>)>> = Mutex::new(Vec::new());

/// Returns one line for each kind of accesses to files whose ways have been compared.
pub(crate) fn report() -> Vec<String> {
    let all = SYSTEM_CHOOSERS.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().flat_map(|(_, choosers)| choosers.lines()).collect()
}

impl Choosers {
    fn lines(&self) -> Vec<String> {
        let line = |entry: &Entry| {
            let choice = entry.choice.lock().unwrap_or_else(PoisonError::into_inner);
            choice.as_ref().filter(|choice| choice.is_compared()).map(Choice::line)
        };
        self.0.iter().filter_map(line).collect()
    }

    fn new() -> Self {
        Self((0..FORM.keys()).map(|_| Entry::default()).collect())
    }

    /// Returns the choosers of the file system with the number `system`.
    pub fn of(system: u64) -> Arc<Self> {
        let mut all = SYSTEM_CHOOSERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, choosers)) = all.iter().find(|(number, _)| *number == system) {
            return choosers.clone();
        }
        let choosers = Arc::new(Self::new());
        if all.len() < SYSTEMS {
            all.push((system, choosers.clone()));
        }
        choosers
    }

    /// Returns whether an access uses the window, and the trial if the access's time is to be reported. `suits` is true
    /// if the static order prefers the window.
    pub fn pick(&self, access: Access, suits: bool) -> (bool, Option<Trial>) {
        if !access.is_open() {
            return (suits, None);
        }
        let key = access.key();
        let entry = &self.0[key.number()];
        let settled = entry.settled.load(Ordering::Relaxed);
        if settled & 3 != 0 {
            let accesses = entry.settled.fetch_add(4, Ordering::Relaxed) >> 2;
            if !accesses.is_multiple_of(RARELY) {
                return (settled & 3 == MAPPED, None);
            }
        }
        let mut choice = entry.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let candidates = [true, false].map(UsesWindow).to_vec();
        let new = || Choice::new(key, candidates, || Some(UsesWindow(suits)), None);
        let choice = choice.get_or_insert_with(new);
        let Pick { way, timed } = choice.pick();
        let UsesWindow(is_mapped) = choice.at(way);
        let trial = timed.then(|| Trial { key, way, bytes: access.bytes, begin: Instant::now() });
        (is_mapped, trial)
    }

    /// Takes note that an access on trial is over.
    pub fn report(&self, trial: &Trial) {
        self.note(trial, trial.begin.elapsed());
    }

    fn note(&self, trial: &Trial, taken: Duration) {
        let entry = &self.0[trial.key.number()];
        let mut choice = entry.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(choice) = choice.as_mut() else { return };
        choice.took(trial.way, taken, trial.bytes);
        let mark = match choice.way() {
            _ if !choice.is_settled() => 0,
            UsesWindow(true) => MAPPED,
            UsesWindow(false) => 2,
        };
        // A count that another thread has added in between may be lost.
        let accesses = entry.settled.load(Ordering::Relaxed) & !3;
        entry.settled.store(accesses | mark, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Access = Access { write: true, grows: false, bytes: 4096, piece: None };

    /// Makes `accesses` accesses. Those that use the window take `window` ns, the others `calls` ns. Returns how
    /// many used the window.
    fn work(
        choosers: &Choosers,
        access: Access,
        suits: bool,
        accesses: usize,
        [window, calls]: [u64; 2],
    ) -> usize {
        let mut mapped = 0;
        for _ in 0..accesses {
            let (is_mapped, trial) = choosers.pick(access, suits);
            mapped += usize::from(is_mapped);
            if let Some(trial) = trial {
                choosers.note(&trial, Duration::from_nanos(if is_mapped { window } else { calls }));
            }
        }
        mapped
    }

    #[test]
    fn the_faster_way_wins_and_the_static_choice_comes_first() {
        let choosers = Choosers::new();
        assert!(!choosers.pick(RUN, false).0 && !choosers.pick(RUN, false).0);
        work(&choosers, RUN, false, 2000, [300, 1300]);
        assert!(work(&choosers, RUN, false, 1000, [300, 1300]) > 950);
        let line = "from 4 KiB, file accesses, writes, one run: mapped window (4.33 times as fast as the next)";
        assert_eq!(choosers.lines(), [line]);
        // The other keys do not learn from these accesses.
        let read = Access { write: false, ..RUN };
        assert!(!choosers.pick(read, false).0);
        assert!(work(&choosers, read, true, 2000, [300, 200]) < 500);
        // The machine changes.
        work(&choosers, RUN, false, 20_000, [3000, 1300]);
        assert!(work(&choosers, RUN, false, 1000, [3000, 1300]) < 50);
    }

    #[test]
    fn short_pieces_are_never_written_by_calls() {
        let choosers = Choosers::new();
        let short = Access { piece: Some(8), bytes: 1 << 20, ..RUN };
        assert_eq!(work(&choosers, short, true, 3000, [900, 1]), 3000);
        let long = Access { piece: Some(1 << 16), ..short };
        assert!(work(&choosers, long, true, 3000, [900, 100]) < 1000);
    }

    #[test]
    fn keys_have_choosers_of_their_own() {
        let mut seen = std::collections::BTreeSet::new();
        for (write, grows) in [(false, false), (false, true), (true, false), (true, true)] {
            for size in 0..FORM.sizes.count {
                let pieces = PIECES.into_iter().chain([1 << 20]).map(Some);
                for piece in pieces.chain([None]) {
                    let access = Access { write, grows, bytes: FORM.sizes.least(size), piece };
                    assert!(seen.insert(access.key().number()), "{access:?}");
                }
            }
        }
        assert_eq!(seen.len(), FORM.keys());
        let of = |bytes, piece| Access { bytes, piece, ..RUN }.key().to_string();
        assert_eq!((of(0, None), of(u64::MAX, None)), (of(1024, None), of(1 << 40, None)));
        assert_eq!(of(5, Some(0)), of(5, Some(64)));
        assert_eq!(of(5, Some(65)), "from 1 KiB, file accesses, writes, pieces of up to 512 B");
    }

    #[test]
    fn files_of_one_system_share_their_choosers() {
        let number = u64::MAX - u64::from(std::process::id());
        assert!(Arc::ptr_eq(&Choosers::of(number), &Choosers::of(number)));
        assert!(!Arc::ptr_eq(&Choosers::of(number), &Choosers::of(number - 1)));
    }
}
