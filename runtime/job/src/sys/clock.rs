//! The machine's monotonic clock, which all processes share.

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the seconds since a moment in the past that is equal for all processes of the machine.
#[doc(alias = "MPI_Wtime")]
pub fn monotonic() -> f64 {
    seconds(clock_gettime(ClockId::Monotonic))
}

/// Returns the seconds between two ticks of [`monotonic`].
#[doc(alias = "MPI_Wtick")]
pub fn resolution() -> f64 {
    seconds(clock_getres(ClockId::Monotonic))
}
