//! Keeps kernels by shape, so that each shape is compiled once.
//!
//! `lib.rs` asks the cache before it asks `compiler.rs`. `lib.rs` has one cache for the shapes of nests
//! (loops around a block or a few short runs) and one for the shapes of fused copies (copies from one
//! layout directly to another). The key is the whole shape, compared in full. The cache keeps refusals
//! as well as kernels, so a refused shape is not compiled again as long as the cache remembers the
//! refusal.
//!
//! The cache remembers at most [`CAPACITY`] shapes. For a further shape it forgets the least
//! recently used one. Forgetting drops only the cache's reference to the kernel: plans that use the
//! kernel keep the kernel and its pages alive. If a later plan asks for a forgotten shape, the
//! shape is compiled again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use typepack_engine::kernel::Kernel;

/// Maximum number of remembered shapes. Nearly every kernel takes one page of 4 KiB, so 1024 kernels
/// take about 4 MiB.
pub(crate) const CAPACITY: usize = 1024;

/// A kernel, or `None` for a refusal. The slot is empty while a thread compiles the shape.
type Slot = Arc<OnceLock<Option<Kernel>>>;

#[derive(Debug)]
pub(crate) struct Cache<S> {
    capacity: usize,
    entries: Mutex<Entries<S>>,
}

#[derive(Debug)]
struct Entries<S> {
    slots: HashMap<S, (Slot, u64)>,
    /// Number of requests so far. The entry of a shape stores the value of this counter at the last
    /// request for the shape.
    clock: u64,
}

impl<S: Clone + Eq + Hash> Cache<S> {
    pub(crate) fn new(capacity: usize) -> Self {
        let entries = Mutex::new(Entries { slots: HashMap::new(), clock: 0 });
        Self { capacity, entries }
    }

    /// Returns the kernel of `shape` (`None` if the shape is refused), and true if the cache
    /// already had the answer. If the cache had no answer, this call runs `compile`. Threads that
    /// ask for the same shape at the same time wait for the thread that compiles it. Threads that
    /// ask for different shapes compile in parallel.
    pub(crate) fn get(
        &self,
        shape: &S,
        compile: impl FnOnce() -> Option<Kernel>,
    ) -> (Option<Kernel>, bool) {
        let slot = self.slot(shape);
        let mut known = true;
        let kernel = slot.get_or_init(|| {
            known = false;
            compile()
        });
        (kernel.clone(), known)
    }

    fn slot(&self, shape: &S) -> Slot {
        // No statement under the lock can panic and leave the entries inconsistent, so the entries
        // of a poisoned lock can be used.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = &mut *entries;
        entries.clock += 1;
        if let Some((slot, used)) = entries.slots.get_mut(shape) {
            *used = entries.clock;
            return slot.clone();
        }
        if entries.slots.len() >= self.capacity {
            // Scanning all slots takes a few microseconds, much less than the compilation that
            // follows.
            let oldest = entries.slots.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(shape, _)| shape.clone()) {
                entries.slots.remove(&oldest);
            }
        }
        let slot = Slot::default();
        entries.slots.insert(shape.clone(), (slot.clone(), entries.clock));
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use typepack_engine::kernel::{Direction, LeafShape, LevelShape, Shape};

    fn shape(bytes: u32) -> Shape {
        Shape {
            direction: Direction::Pack,
            levels: vec![LevelShape::Loop],
            leaf: LeafShape::Fixed { bytes },
        }
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = Cache::new(2);
        let known = |bytes| cache.get(&shape(bytes), || None).1;
        assert!(!known(1));
        assert!(!known(2));
        assert!(known(1));
        assert!(!known(3), "the cache forgot shape 2");
        assert!(known(1));
        assert!(!known(2));
        assert!(!known(3));
    }

    #[test]
    fn one_shape_is_compiled_once_by_many_threads() {
        let cache = Cache::new(CAPACITY);
        let compiled = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    cache.get(&shape(8), || {
                        compiled.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        None
                    })
                });
            }
        });
        assert_eq!(compiled.into_inner(), 1);
    }
}
