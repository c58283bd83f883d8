//! The machine's monotonic clock. All processes of the machine share it.

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the number of seconds since an unspecified moment in the past, which is the same for all processes
/// of the machine.
#[doc(alias = "MPI_Wtime")]
pub fn monotonic() -> f64 {
    seconds(clock_gettime(ClockId::Monotonic))
}

/// Returns the resolution of [`monotonic`]: the number of seconds between two ticks of the clock.
#[doc(alias = "MPI_Wtick")]
pub fn resolution() -> f64 {
    seconds(clock_getres(ClockId::Monotonic))
}

/// Returns [`monotonic`] as a whole number of nanoseconds.
pub fn monotonic_nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
