//! Sleeps on a word of shared memory, and wakes the sleepers.
//!
//! `shm/doorbell.rs` uses this file. The futexes here are shared, not private. With `FUTEX_PRIVATE_FLAG`, the
//! kernel identifies a futex within one address space, so a private wait in one process would never receive a
//! wake from another process. The `atomic-wait` crate is not used, because it sets that flag.

use std::io;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};

/// The reason why [`wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A process called [`wake`], or the wake-up was spurious. The caller must check its condition.
    Called,
    /// The word no longer had the value `expected` when the kernel read it.
    Changed,
    /// The timeout has passed.
    TimedOut,
    /// A signal handler of the program ran.
    Interrupted,
}

/// Sleeps until a process calls [`wake`] for `word`, a signal handler of the program runs, or `timeout` has
/// passed. Returns at once if `*word` differs from `expected`. If `timeout` is `None`, there is no time
/// limit.
///
/// # Errors
///
/// Returns the kernel's error, for example on a system without futexes.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> io::Result<Woken> {
    let timeout = timeout.map(|t| Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(t.subsec_nanos()),
    });
    match futex::wait(word, Flags::empty(), expected, timeout.as_ref()) {
        Ok(()) => Ok(Woken::Called),
        Err(Errno::AGAIN) => Ok(Woken::Changed),
        Err(Errno::TIMEDOUT) => Ok(Woken::TimedOut),
        Err(Errno::INTR) => Ok(Woken::Interrupted),
        Err(error) => Err(error.into()),
    }
}

/// Wakes all threads of all processes that sleep on `word`.
///
/// # Errors
///
/// Returns the kernel's error, for example on a system without futexes.
pub fn wake(word: &AtomicU32) -> io::Result<()> {
    // The kernel takes the number of sleepers to wake as a signed number, so `i32::MAX` is the largest
    // possible value.
    futex::wake(word, Flags::empty(), i32::MAX as u32)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn changed_word_does_not_sleep() {
        let word = AtomicU32::new(7);
        assert_eq!(wait(&word, 6, None).expect("futex"), Woken::Changed);
    }

    #[test]
    fn time_runs_out() {
        let word = AtomicU32::new(7);
        let short = Some(Duration::from_millis(1));
        assert_eq!(wait(&word, 7, short).expect("futex"), Woken::TimedOut);
    }

    #[test]
    fn a_wake_ends_the_sleep() {
        let word = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    wait(&word, 0, Some(Duration::from_secs(10))).expect("futex");
                }
            });
            word.store(1, Ordering::Release);
            wake(&word).expect("futex");
        });
    }
}
