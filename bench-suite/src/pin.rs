//! Binds all competitors to one CPU.
//!
//! The command calls [`pin`] before it starts the peers of `peer/`, so that they inherit the binding. The
//! reason is an observation on a busy virtual machine. In one run, all bandwidths of the engine for one
//! layout were lower by a factor of 1.7 than in the runs before and after it, although the rounds of this
//! run agreed and the bandwidths of the peers were as usual. The likely cause, which is not proven, is
//! that the processes ran on different CPUs. Another disadvantage of different CPUs is that the most
//! recently used cache lines may be in the other CPU's cache.

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

/// Binds the calling thread, and the threads and processes that it starts from now on, to the CPU on which
/// it runs. Returns the number of this CPU.
///
/// # Errors
///
/// Returns a one-line message if the system refuses the binding.
pub fn pin() -> Result<usize, String> {
    let cpu = sched_getcpu();
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
        .map_err(|e| format!("cannot bind the process to CPU {cpu}: {e}"))?;
    Ok(cpu)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_stays_where_it_is() {
        // The test starts a thread and binds only this thread, so that other tests can use all CPUs.
        let thread = std::thread::spawn(|| {
            let cpu = super::pin().expect("a CPU");
            (0..100).all(|_| rustix::thread::sched_getcpu() == cpu)
        });
        assert!(thread.join().expect("no panic"));
    }
}
