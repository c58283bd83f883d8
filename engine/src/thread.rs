//! Identifies the current thread by a number. On Linux on x86-64 and AArch64, this takes one instruction.
//!
//! A call that packs a hundred bytes takes ten nanoseconds. Two thread-local variables in a shared
//! library would take three nanoseconds per call, because each access is a call into the loader. So the
//! data that such calls need per thread is stored in tables instead. [`key`] identifies the thread,
//! and [`slot`] gives the index of the thread's entry in a table. There are three such tables: the counters in
//! `exec/stats.rs`, the handles that a thread used last in the C interface (`handle/thread_cache.rs`), and the calls of
//! threads (`endpoint/call.rs` of the runtime). Two alternatives were rejected. With the initial-exec model for
//! thread-local variables, the loader refuses to load the library if no space is left for its
//! variables. With TLS descriptors (gnu2), each access is again a call.
//!
//! Users of a table may rely on two facts: no two live threads have the same key, and a thread's key
//! never changes. A new thread may get the key of a thread that has ended. In that case the system
//! reused the memory of the old thread's stack and control block, so everything that the old thread
//! did happened before everything that the new thread does. After a fork, the child process has one
//! thread, and this thread keeps its key.

/// Returns the key of the current thread. No other live thread of the process has the same key, and
/// the key is never 0.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_pointer_width = "64", not(miri)))]
#[inline(always)]
pub fn key() -> usize {
    let key: usize;
    // SAFETY: the instruction reads the word at `fs:0`. On Linux the x86-64 ABI for thread-local
    // variables (variant II) puts the address of the thread's control block there, so the word is
    // readable. The instruction writes no memory, changes no flag and does not touch the stack. A
    // thread reads the same value every time, so `pure` holds.
    unsafe {
        std::arch::asm!(
            "mov {key}, qword ptr fs:[0]",
            key = out(reg) key,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    key
}

/// Returns the key of the current thread. No other live thread of the process has the same key, and
/// the key is never 0.
#[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri)))]
#[inline(always)]
pub fn key() -> usize {
    let key: usize;
    // SAFETY: the instruction reads `tpidr_el0`, the register that holds the address of the thread's
    // control block. User programs may read it, and no other thread can change it. The instruction
    // touches nothing else.
    unsafe {
        std::arch::asm!(
            "mrs {key}, tpidr_el0",
            key = out(reg) key,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    key
}

/// Returns the key of the current thread. No other live thread of the process has the same key, and
/// the key is never 0.
#[cfg(any(
    miri,
    not(target_os = "linux"),
    not(any(all(target_arch = "x86_64", target_pointer_width = "64"), target_arch = "aarch64"))
))]
#[inline]
pub fn key() -> usize {
    of_variable()
}

/// Returns the address of a thread-local variable. This is the portable way to get a key.
#[cfg(any(
    test,
    miri,
    not(target_os = "linux"),
    not(any(all(target_arch = "x86_64", target_pointer_width = "64"), target_arch = "aarch64"))
))]
fn of_variable() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// Number of entries in each table that is indexed by [`slot`].
pub const SLOTS: usize = 256;

/// Returns the index of a thread's entry in a table of [`SLOTS`] entries. Two threads may share an
/// entry, so each entry must record the key of its owner.
#[inline(always)]
pub const fn slot(key: usize) -> usize {
    // The distance between the control blocks of two threads is a multiple of the page size or of the
    // stack size. Multiplying by the golden ratio spreads both kinds of distances over the upper bits
    // of the product, and these bits are the index. The shift by 12 removes the bits below a page. If
    // these bits were kept, 128 threads at distances of 0x880_0000 bytes would use only 48 slots.
    ((key as u64 >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOTS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::{SLOTS, key, of_variable, slot};
    use std::collections::HashSet;
    use std::sync::Barrier;

    #[test]
    fn live_threads_differ_and_stay_what_they_are() {
        const THREADS: usize = 64;
        let all_there = Barrier::new(THREADS);
        let keys: HashSet<usize> = std::thread::scope(|scope| {
            let work = || {
                let first = key();
                all_there.wait();
                for _ in 0..100 {
                    std::thread::yield_now();
                    assert_eq!(key(), first);
                }
                first
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no check failed")).collect()
        });
        assert_eq!(keys.len(), THREADS);
        assert!(!keys.contains(&0) && !keys.contains(&key()));
    }

    #[test]
    fn the_key_lies_where_variables_of_threads_do() {
        // The linker fixes the distance between the key and a thread-local variable of the program.
        // So this distance is the same in all threads.
        let distance = || key().wrapping_sub(of_variable());
        let other = std::thread::spawn(distance).join().expect("a number");
        assert_eq!(distance(), other);
        assert!((distance() as isize).unsigned_abs() < 1 << 20, "{:#x}", distance());
    }

    #[test]
    fn stacks_and_pages_spread_over_the_slots() {
        for step in [0x1000, 0x2000, 0x20_1000, 0x80_0000, 0x80_1000, 0x880_0000] {
            let slots: HashSet<usize> =
                (0..128).map(|i| slot(0x7f12_3456_76c0 - i * step)).collect();
            assert!(slots.iter().all(|&slot| slot < SLOTS));
            assert!(slots.len() > 64, "{step:#x}: {}", slots.len());
        }
    }
}
