//! What the system tells about another process, in `/proc`: whether it runs, how long its threads have computed, and
//! which signals it handles.
//!
//! A process may end at any time, so every function has an answer for a process that does not exist.

use std::fs;
use std::time::Duration;

/// Returns the fields of a line of `/proc/PID/stat` that follow the name of the program: first the letter of the state.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    // The name is in parentheses, and may have spaces and parentheses itself.
    text.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace()
}

/// Returns the letter by which the kernel names the state of the process `pid`, for example `R` for a process that
/// runs, `S` for one that sleeps and `T` for one that is stopped. Returns `None` if there is no such process.
pub fn state(pid: i32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    fields(&text).next()?.chars().next()
}

/// Returns when the process `pid` was started, in a unit of the kernel's. No two processes that have had the same number have
/// the same time. Returns `None` if there is no such process.
pub fn started(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The field 22 of the line, of which the state is the third.
    fields(&text).nth(19)?.parse().ok()
}

/// Returns how long the threads of the process `pid` have used a CPU so far, without the thread with the number
/// `except`, and whether one of them runs, is ready to run, or waits for a disk.
pub fn threads(pid: i32, except: u32) -> (Duration, bool) {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let except = except.to_string();
    let (mut ticks, mut run) = (0, false);
    for thread in threads.filter(|thread| thread.file_name().to_str() != Some(&except)) {
        let text = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        run |= matches!(fields(&text).next(), Some("R" | "D"));
        // The fields 14 and 15 of the line, of which the state is the third.
        let times = fields(&text).skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
        ticks += times.sum::<u64>();
    }
    (Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64), run)
}

/// Returns whether the process `pid` handles or ignores `signal`, so that the signal does not end it.
pub fn survives(pid: i32, signal: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    survives_by(&text, signal)
}

fn survives_by(status: &str, signal: i32) -> bool {
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    };
    (mask("SigCgt:") | mask("SigIgn:")) >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_an_impossible_one_does_not() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        assert!(state(own).is_some() && started(own).is_some());
        assert_eq!(started(-1), None);
        assert_eq!((state(-1), threads(-1, 0)), (None, (Duration::ZERO, false)));
        assert!(!survives(-1, libc::SIGUSR1));
    }

    #[test]
    fn names_with_parentheses_do_not_shift_the_fields() {
        assert_eq!(fields("7 (a) b (c)) T 1 2").collect::<Vec<_>>(), ["T", "1", "2"]);
        assert_eq!(fields("").next(), None);
    }

    #[test]
    fn masks_say_which_signals_are_handled() {
        let status = "SigIgn:\t0000000000000800\nSigCgt:\t0000000000000200\n";
        assert!(survives_by(status, libc::SIGUSR1) && survives_by(status, libc::SIGUSR2));
        assert!(!survives_by(status, libc::SIGTERM));
    }
}
