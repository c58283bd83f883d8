//! Runs two ranks in many cases, and meanwhile overwrites parts of their shared memory with hostile
//! bytes: messages, encoded types, lengths, and the counters that limit how much may be sent.
//!
//! The streams are fixed. `FUZZ_CASES` scales the number of cases (in percent of the default number),
//! `FUZZ_SEED` selects other streams, `FUZZ_TRACE=1` prints the number of each case before it runs, and
//! `FUZZ_ONLY=17` runs only case 17.

use arbitrary::Unstructured;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typepack_fuzz::{Stream, TransportChecker};
use typepack_test_support::counting_allocator::{Counting, most_allocated};

#[global_allocator]
static COUNTING: Counting = Counting;

const SEED: u64 = 0x7261_6e6b_735f_7631;
const CASES: u64 = 6000;

/// Upper limit for the bytes that a case has allocated at one moment: more than any case without hostile
/// bytes needs, and less than a made-up length would request.
const MOST: usize = 48 << 20;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

#[test]
fn hostile_memory_is_refused_or_harmless() {
    let cases = CASES * number("FUZZ_CASES").unwrap_or(100) / 100;
    let seed = number("FUZZ_SEED").unwrap_or(SEED);
    let (trace, only) = (number("FUZZ_TRACE").is_some(), number("FUZZ_ONLY"));
    let mut checker = TransportChecker::new();
    let mut most = 0;
    for index in only.map_or(0..cases, |only| only..only + 1) {
        if trace {
            writeln!(std::io::stderr(), "case {index}").expect("stderr");
        }
        let bytes = Stream::new(seed, index).bytes(3000);
        let (played, used) = most_allocated(|| {
            catch_unwind(AssertUnwindSafe(|| checker.check(&mut Unstructured::new(&bytes))))
        });
        most = most.max(used);
        match played {
            Ok(Ok(())) => assert!(used < MOST, "case {index}: {used} bytes were allocated"),
            Ok(Err(reason)) => panic!("case {index}: {reason}"),
            Err(_) => panic!("case {index} panicked"),
        }
    }
    let fates = checker.fates;
    writeln!(std::io::stderr(), "transport: {cases} cases, {fates:?}, at most {most} bytes")
        .expect("stderr");
    if only.is_none() && cases >= 1000 {
        // The ranks must notice the hostile bytes in some cases, but not in all.
        assert!(fates.refused > cases / 10 && fates.refused < cases, "{fates:?}");
        assert!(fates.complete > fates.started / 5, "{fates:?}");
    }
}
