//! Hostile bytes in rings, chunks, credits and encoded types, many times.
//!
//! The streams are fixed. `FUZZ_CASES` multiplies the number (a percentage, 100 by default),
//! `FUZZ_SEED` takes other streams, `FUZZ_TRACE=1` prints the number of each case before it runs, and
//! `FUZZ_ONLY=17` runs that one alone.

use arbitrary::Unstructured;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use typepack_fuzz::{Stream, TransportChecker};

const SEED: u64 = 0x7261_6e6b_735f_7631;
const CASES: u64 = 6000;

/// More than any honest case needs; less than any length that is made up asks for.
const MOST: usize = 48 << 20;

/// Counts what is allocated.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
        let before = NOW.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let played =
            catch_unwind(AssertUnwindSafe(|| checker.check(&mut Unstructured::new(&bytes))));
        let used = PEAK.load(Ordering::Relaxed) - before;
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
        // Neither all is refused at once nor nothing ever.
        assert!(fates.refused > cases / 10 && fates.refused < cases, "{fates:?}");
        assert!(fates.complete > fates.started / 5, "{fates:?}");
    }
}
