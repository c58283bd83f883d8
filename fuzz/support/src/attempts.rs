//! Repeats tests of behaviour that depends on processes which get the CPU in time.
//!
//! An example: the launcher gives ranks 200 ms to report the death of another rank, and then kills them. A rank
//! that gets no CPU for so long reports nothing, and nothing is wrong.

/// How often [`attempts`] calls its function at most.
const MOST: usize = 20;

/// Calls `attempt` until it returns `Ok`. An error says what has not been seen in this attempt, although other
/// attempts may show it; if no attempt shows it, the function panics with the last error. `attempt` must panic
/// at anything that is wrong in every case.
pub fn attempts<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let mut last = String::new();
    for _ in 0..MOST {
        match attempt() {
            Ok(seen) => return seen,
            Err(missing) => last = missing,
        }
    }
    panic!("not seen in {MOST} attempts: {last}");
}
