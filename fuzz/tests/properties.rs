//! Checks that model, oracle, interpreter and JIT agree on random types, in one call and in parts, and
//! that gaps stay untouched.
//!
//! The streams are fixed, so every run checks the same types. `FUZZ_CASES` scales the number of types
//! (in percent of the default number), and `FUZZ_SEED` selects another stream. `FUZZ_TRACE=1` prints
//! each case before it runs, so that the case is known if a fault ends the process.

use arbitrary::Unstructured;
use std::io::Write;
use typepack_engine::stats;
use typepack_fuzz::{Case, Checker, Effort, Executors, Mode, Stream, shrink};

const SEED: u64 = 0x7479_7065_7061_636b;
/// Number of cases per checker. Each checker has its own JIT, which starts with an empty kernel cache.
const CASES_PER_JIT: u64 = 2000;
/// One of every `THOROUGH_EVERY` cases is checked with `Effort::Thorough`.
const THOROUGH_EVERY: u64 = 40;

#[derive(Default)]
struct Tally {
    types: u64,
    kernel: u64,
    useful: u64,
    ranges: u64,
    refusals: u64,
    /// Total packed size, in bytes, of the types that have a kernel.
    bytes: u64,
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}

/// Prints a line directly to standard error, which the test harness does not capture. So the figures
/// are always visible.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("stderr");
}

fn run(mode: Mode, stream: u64, cases: u64) -> Tally {
    let cases = cases * number("FUZZ_CASES", 100) / 100;
    let seed = number("FUZZ_SEED", SEED) ^ stream;
    let trace = std::env::var_os("FUZZ_TRACE").is_some();
    let refusals = |checker: &Checker| checker.jit().map_or(0, |jit| jit.counters().refusals);
    let before = stats::bytes().kernel;
    let mut tally = Tally::default();
    let mut checker = Checker::new(Executors::All);
    for index in 0..cases {
        if index % CASES_PER_JIT == CASES_PER_JIT - 1 {
            tally.refusals += refusals(&checker);
            checker = Checker::new(Executors::All);
        }
        let bytes = Stream::new(seed, index).bytes(1000);
        let case = Case::generate(&mut Unstructured::new(&bytes), mode).expect("enough bytes");
        if trace {
            say(&format!("{case}"));
        }
        let effort = if index % THOROUGH_EVERY == 0 { Effort::Thorough } else { Effort::Quick };
        match checker.check(&case, effort) {
            Ok(report) => {
                tally.types += 1;
                tally.kernel += u64::from(report.kernel);
                tally.useful += u64::from(!report.contiguous && report.packed_bytes > 0);
                tally.ranges += report.ranges;
                tally.bytes += if report.kernel { report.packed_bytes } else { 0 };
            }
            Err(reason) => {
                let small = shrink(&case, |case| checker.check(case, effort).is_err());
                let small_reason = checker.check(&small, effort).err().unwrap_or_default();
                panic!(
                    "{mode:?} case {index} of seed {seed:#x}:\n  {case}\n  {reason}\n\
                     put this into fuzz/regressions:\n  {small}\n  {small_reason}"
                );
            }
        }
    }
    tally.refusals += refusals(&checker);
    assert_eq!(tally.refusals, 0, "the compiler refused a shape that it should accept");
    // `stats::bytes` counts for the whole process. Other tests may run at the same time, but they can
    // only make `moved` larger.
    let moved = stats::bytes().kernel - before;
    say(&format!(
        "{mode:?}: {} types, {} not contiguous, {} with kernels ({moved} bytes moved by them), \
         {} ranges, {} refusals",
        tally.types, tally.useful, tally.kernel, tally.ranges, tally.refusals
    ));
    // Each type is packed and unpacked as a whole several times, so kernels must move more than
    // `tally.bytes`.
    assert!(moved > tally.bytes, "kernels exist, but the interpreter did the work");
    tally
}

#[test]
fn any_types_agree() {
    let tally = run(Mode::Any, 1, 17_000);
    assert!(tally.kernel * 4 > tally.useful, "kernels hardly ran");
}

#[test]
fn regular_types_agree() {
    let tally = run(Mode::Regular, 2, 26_000);
    assert!(tally.kernel * 2 > tally.useful, "kernels hardly ran");
}

#[test]
fn tiny_types_agree_at_every_split() {
    let tally = run(Mode::Tiny, 3, 7000);
    assert!(tally.kernel * 4 > tally.useful, "kernels hardly ran");
}
