//! Which thread this is, as a number, in one instruction.
//!
//! A call that packs a hundred bytes takes ten nanoseconds, and two variables of a thread in a shared
//! library cost three: each is a call into the loader. What is kept per thread on the way of
//! such calls is therefore found in tables by [`key`] and [`slot`]: the counters in `exec/stats.rs`, and what
//! a thread used last in the C face (`runtime/capi/src/handle/hot.rs`). Roads not taken: the
//! initial-exec model makes the loader refuse the library where its spare room for such variables is
//! used up, and descriptors (gnu2) cost a call again.
//!
//! What a table may rely on: no two live threads have the same key, and a thread's key never changes.
//! The key of a thread that has ended may come again with another one; that thread was
//! created after the former was done, by a chain of events that orders all that the former did
//! before what the new one does (memory for its stack and its control block was handed on). A fork's
//! child is one thread, with the key that it had.

/// A number that no other live thread of the process has; never 0.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_pointer_width = "64", not(miri)))]
#[inline(always)]
pub fn key() -> usize {
    let key: usize;
    // SAFETY: reads the word that `fs` points to: on Linux the platform's ABI for thread-local
    // variables (variant II) has every thread's control block begin with its own address. Nothing is
    // written, no flag or stack touched, and a thread reads the same value at any time.
    unsafe {
        std::arch::asm!(
            "mov {key}, qword ptr fs:[0]",
            key = out(reg) key,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    key
}

/// A number that no other live thread of the process has; never 0.
#[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri)))]
#[inline(always)]
pub fn key() -> usize {
    let key: usize;
    // SAFETY: reads the register that holds the address of the thread's control block, which programs
    // may read and none may change under another's feet. Nothing else is touched.
    unsafe {
        std::arch::asm!(
            "mrs {key}, tpidr_el0",
            key = out(reg) key,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    key
}

/// A number that no other live thread of the process has; never 0.
#[cfg(any(
    miri,
    not(target_os = "linux"),
    not(any(all(target_arch = "x86_64", target_pointer_width = "64"), target_arch = "aarch64"))
))]
#[inline]
pub fn key() -> usize {
    of_variable()
}

/// The address of a variable that each thread has: the same by the language's means.
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

/// Entries of a table by [`slot`].
pub const SLOTS: usize = 256;

/// The entry of a thread in a table of [`SLOTS`]. Other threads may have the same one, so an entry
/// says whose it is.
#[inline(always)]
pub const fn slot(key: usize) -> usize {
    // Control blocks lie pages or stacks apart: the upper bits of a product with the golden ratio
    // spread both. With the bits below a page, distances like 0x880_0000 fill 48 slots of 128 only.
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
        // In a program the linker knows the distance: the same for all threads.
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
