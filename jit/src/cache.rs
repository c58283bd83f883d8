//! The cache of kernels by shape: each shape is compiled once.
//!
//! `lib.rs` asks the cache before it asks `compiler.rs`. `lib.rs` has one cache for the shapes of
//! nests and one for those of fused copies. The key is the whole shape, compared in full. The cache
//! keeps refusals as well as kernels: it does not retry a refused shape while it remembers the
//! refusal.
//!
//! The cache is bounded: beyond [`CAPACITY`] shapes it forgets the least recently used shape.
//! Forgetting drops only the cache's reference. Plans that use the kernel keep the kernel and its
//! pages alive; a later plan of that shape compiles the shape again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use typepack_engine::kernel::Kernel;

/// Maximum number of remembered shapes. A kernel takes a page, so 1024 kernels take 4 MiB.
pub(crate) const CAPACITY: usize = 1024;

/// A kernel or a refusal; empty while a thread compiles the shape.
type Slot = Arc<OnceLock<Option<Kernel>>>;

#[derive(Debug)]
pub(crate) struct Cache<S> {
    capacity: usize,
    entries: Mutex<Entries<S>>,
}

#[derive(Debug)]
struct Entries<S> {
    slots: HashMap<S, (Slot, u64)>,
    /// Number of requests so far. Each slot has the number of its last request.
    clock: u64,
}

impl<S: Clone + Eq + Hash> Cache<S> {
    pub(crate) fn new(capacity: usize) -> Self {
        let entries = Mutex::new(Entries { slots: HashMap::new(), clock: 0 });
        Self { capacity, entries }
    }

    /// Returns the kernel or the refusal of `shape`, and whether it was in the cache. If it was
    /// not, `compile` makes it. Threads that ask for the same shape at the same time wait for the
    /// thread that compiles. Threads that ask for different shapes compile in parallel.
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
        // No statement that could panic leaves the entries inconsistent, so a poisoned lock is
        // fine.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = &mut *entries;
        entries.clock += 1;
        if let Some((slot, used)) = entries.slots.get_mut(shape) {
            *used = entries.clock;
            return slot.clone();
        }
        if entries.slots.len() >= self.capacity {
            // A scan takes a few microseconds, much less than the compilation that follows.
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
