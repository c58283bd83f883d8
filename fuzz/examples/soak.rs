//! The program that `scripts/soak` runs. It checks random types on all processors: the model
//! (`fuzz/src/model.rs`), the engine's oracle, the interpreter and the JIT must agree on each type.
//!
//! Usage: `soak [TYPES [SEED]]`. The defaults are 1,000,000 types and seed 0. The program prints its
//! progress, and at the end one line with the totals. If it finds a difference, it makes the type as
//! small as possible, prints the small type as a line for `fuzz/regressions/`, and ends with exit code
//! 1.

use arbitrary::Unstructured;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use typepack_fuzz::{Case, Checker, Effort, Executors, Mode, Stream, shrink};

/// Number of types per checker. Each checker has its own JIT, which starts with an empty kernel cache.
const BATCH: u64 = 2000;
/// Number of batches between two lines of progress.
const PROGRESS: u64 = 10;
/// One of every `THOROUGH_EVERY` types is checked with `Effort::Thorough`.
const THOROUGH_EVERY: u64 = 200;

#[derive(Default)]
struct Tally {
    types: u64,
    plans: u64,
    kernels: u64,
    ranges: u64,
    bytes: u64,
}

struct Campaign {
    types: u64,
    seed: u64,
    next: AtomicU64,
    failed: AtomicBool,
    tally: Mutex<Tally>,
    start: Instant,
}

impl Campaign {
    /// Takes batches of types and checks them, until no types are left or a check has failed.
    fn work(&self) {
        loop {
            let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= self.types || self.failed.load(Ordering::Relaxed) {
                return;
            }
            let mut checker = Checker::new(Executors::All);
            let mut batch = Tally::default();
            for index in first..self.types.min(first + BATCH) {
                if let Err(message) = self.one(&mut checker, index, &mut batch) {
                    self.failed.store(true, Ordering::Relaxed);
                    eprintln!("{message}");
                    return;
                }
            }
            // No worker holds the lock while it checks types, so a panic in a check does not poison the
            // lock.
            let mut tally = self.tally.lock().expect("no worker panics while it holds the lock");
            tally.types += batch.types;
            tally.plans += batch.plans;
            tally.kernels += batch.kernels;
            tally.ranges += batch.ranges;
            tally.bytes += batch.bytes;
            if first / BATCH % PROGRESS == PROGRESS - 1 {
                println!("soak: {} of {} types, {}", tally.types, self.types, self.pace(&tally));
            }
        }
    }

    fn one(&self, checker: &mut Checker, index: u64, batch: &mut Tally) -> Result<(), String> {
        let bytes = Stream::new(self.seed, index).bytes(1000);
        // Of every four types, two are regular, because kernels are compiled for regular types. One is
        // tiny, and one is of any kind.
        let mode = [Mode::Any, Mode::Regular, Mode::Tiny, Mode::Regular][index as usize % 4];
        let case = Case::generate(&mut Unstructured::new(&bytes), mode)
            .map_err(|e| format!("type {index}: {e}"))?;
        let effort =
            if index.is_multiple_of(THOROUGH_EVERY) { Effort::Thorough } else { Effort::Quick };
        match checker.check(&case, effort) {
            Ok(report) => {
                batch.types += 1;
                batch.plans += report.plans;
                batch.kernels += u64::from(report.kernel);
                batch.ranges += report.ranges;
                batch.bytes += report.packed_bytes;
                Ok(())
            }
            Err(reason) => {
                let small = shrink(&case, |case| checker.check(case, effort).is_err());
                let again = checker.check(&small, effort).err().unwrap_or_default();
                Err(format!(
                    "soak: type {index} of seed {}:\n  {case}\n  {reason}\n\
                     put this into fuzz/regressions:\n  {small}\n  {again}",
                    self.seed
                ))
            }
        }
    }

    fn pace(&self, tally: &Tally) -> String {
        let seconds = self.start.elapsed().as_secs_f64().max(0.001);
        format!("{:.0} s, {:.0} types/s", seconds, tally.types as f64 / seconds)
    }
}

fn argument(position: usize, name: &str, default: u64) -> Result<u64, String> {
    match std::env::args().nth(position) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("{name} must be a number, not '{text}'")),
    }
}

fn main() -> ExitCode {
    let arguments =
        argument(1, "TYPES", 1_000_000).and_then(|types| Ok((types, argument(2, "SEED", 0)?)));
    let (types, seed) = match arguments {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("soak: {message}; usage: soak [TYPES [SEED]]");
            return ExitCode::from(2);
        }
    };
    let campaign = Campaign {
        types,
        seed,
        next: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        tally: Mutex::default(),
        start: Instant::now(),
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| campaign.work());
        }
    });
    let tally = campaign.tally.lock().expect("no worker panics while it holds the lock");
    let agreed = tally.types == types && !campaign.failed.load(Ordering::Relaxed);
    println!(
        "soak: {} of {types} types agree between model, oracle, interpreter and JIT: {} plans, {} \
         types with kernels, {} ranges, {} packed bytes; seed {seed}, {workers} threads, {}",
        tally.types,
        tally.plans,
        tally.kernels,
        tally.ranges,
        tally.bytes,
        campaign.pace(&tally)
    );
    if agreed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
