//! Repeats tests of what only measurements show.
//!
//! An example: the library measures two ways of a copy and keeps the faster one. A process that gets no CPU for some time
//! measures nothing, and nothing is wrong. A test that can wait for a sign (a file, a line, a state) waits for it instead.

/// How often [`attempts`] calls its function at most.
const MOST: u32 = 3;

/// Calls `attempt` until it returns `Ok`, at most three times. Passes 0 in the first attempt, then 1 and 2, so that a later
/// attempt can measure for longer. An error says what this attempt has not shown; if no attempt shows it, the function
/// panics with the last error. `attempt` must panic at anything that is wrong in every case.
///
/// Prints how many attempts it took if it took more than one.
pub fn attempts<T>(mut attempt: impl FnMut(u32) -> Result<T, String>) -> T {
    let mut last = String::new();
    for number in 0..MOST {
        match attempt(number) {
            Ok(seen) if number == 0 => return seen,
            Ok(seen) => {
                crate::skipped::note("ATTEMPTS", format_args!("{} attempts of {MOST}", number + 1));
                return seen;
            }
            Err(missing) => last = missing,
        }
    }
    panic!("not seen in {MOST} attempts: {last}");
}
