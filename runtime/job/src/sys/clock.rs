//! The machine's monotonic clock, the same for all processes.

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Seconds since some moment in the past that is the same for every process of the machine.
#[doc(alias = "MPI_Wtime")]
pub fn monotonic() -> f64 {
    seconds(clock_gettime(ClockId::Monotonic))
}

/// Seconds between two ticks of [`monotonic`].
#[doc(alias = "MPI_Wtick")]
pub fn resolution() -> f64 {
    seconds(clock_getres(ClockId::Monotonic))
}
