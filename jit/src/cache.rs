//! Kernels by shape, each compiled once.
//!
//! `lib.rs` asks here before `compiler.rs`, with one cache for the shapes of nests and one for those
//! of fused copies. The whole shape is the key and is compared in full.
//! Refusals are kept like kernels: a shape that was refused once is not tried again while it is
//! remembered.
//!
//! Bounded: beyond [`CAPACITY`] shapes the one used least recently is forgotten. Forgetting
//! only drops the cache's hold: plans that use the kernel keep it, and its pages, alive; a later
//! plan of that shape compiles it anew.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use typepack_engine::kernel::Kernel;

/// Most shapes remembered. A kernel takes a page: 1024 are 4 MiB.
pub(crate) const CAPACITY: usize = 1024;

/// A kernel, or a refusal; empty while some thread compiles it.
type Slot = Arc<OnceLock<Option<Kernel>>>;

#[derive(Debug)]
pub(crate) struct Cache<S> {
    capacity: usize,
    entries: Mutex<Entries<S>>,
}

#[derive(Debug)]
struct Entries<S> {
    slots: HashMap<S, (Slot, u64)>,
    /// Counts requests; the number with each slot is that of its last one.
    clock: u64,
}

impl<S: Clone + Eq + Hash> Cache<S> {
    pub(crate) fn new(capacity: usize) -> Self {
        let entries = Mutex::new(Entries { slots: HashMap::new(), clock: 0 });
        Self { capacity, entries }
    }

    /// The kernel or refusal of `shape`, made by `compile` if it is not known, and whether it was
    /// known. Threads that ask for one shape at once wait for the one that compiles; threads that
    /// ask for different shapes compile side by side.
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
        // Entries are whole between any two statements that could panic.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = &mut *entries;
        entries.clock += 1;
        if let Some((slot, used)) = entries.slots.get_mut(shape) {
            *used = entries.clock;
            return slot.clone();
        }
        if entries.slots.len() >= self.capacity {
            // A scan: a few microseconds beside the compilation that comes next.
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
        assert!(!known(3), "2 is forgotten");
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
