//! Keeps all competitors on one CPU.
//!
//! The command calls [`pin`] before it starts the peers of `peer/`, so that they inherit the binding. On
//! a busy virtual machine, one run had all figures of the engine for a layout 1.7x lower than the runs
//! around it, while the rounds agreed and the peers' figures were as usual. The likely reason, which is
//! not proven, is that the processes ran on different CPUs. The caches of another CPU may also hold the
//! lines that were used last.

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

/// Binds this process, and the processes that it starts, to the CPU that it runs on.
///
/// # Errors
///
/// Returns a one-line message if the system refuses the binding.
pub fn pin() -> Result<usize, String> {
    let cpu = sched_getcpu();
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|e| format!("cannot stay on CPU {cpu}: {e}"))?;
    Ok(cpu)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_stays_where_it_is() {
        // The test binds a thread of its own, so that other tests can use all CPUs.
        let thread = std::thread::spawn(|| {
            let cpu = super::pin().expect("a CPU");
            (0..100).all(|_| rustix::thread::sched_getcpu() == cpu)
        });
        assert!(thread.join().expect("no panic"));
    }
}
