//! One CPU for everybody who is compared.
//!
//! Called before the peers of `peer/` are started, which inherit it. On a busy virtual machine one
//! run had all of the engine's figures of a layout 1.7x lower than the runs around it, its rounds
//! agreeing and the peers' figures as ever; that the processes sat on different CPUs is the likely
//! reason, not a proven one. And caches that belong to another CPU hold the last one's lines.

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

/// Keeps this process, and those that it starts, on the CPU that it runs on.
///
/// # Errors
///
/// One line: the system does not let us.
pub fn pin() -> Result<usize, String> {
    let cpu = sched_getcpu();
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|e| format!("not kept on CPU {cpu}: {e}"))?;
    Ok(cpu)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_stays_where_it_is() {
        // In a thread of its own: the other tests go where they like.
        let thread = std::thread::spawn(|| {
            let cpu = super::pin().expect("a CPU");
            (0..100).all(|_| rustix::thread::sched_getcpu() == cpu)
        });
        assert!(thread.join().expect("no panic"));
    }
}
