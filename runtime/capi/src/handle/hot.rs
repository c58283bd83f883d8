//! What a thread used last, found again without a lock.
//!
//! Packing calls take a few nanoseconds, of which a lock and a reference count would be most. Each
//! thread remembers a few handles of a kind and holds their objects; as long as the kind's table has
//! not removed anything (one counter), what is remembered is true. A freed object is let go at the
//! thread's next look.

use super::table::Table;
use std::cell::RefCell;
use std::sync::Arc;

/// Handles remembered per thread and kind.
const PLACES: usize = 4;

/// One thread's memory of one kind.
pub struct Hot<T> {
    places: [RefCell<Option<Seen<T>>>; PLACES],
}

struct Seen<T> {
    handle: usize,
    removals: u64,
    object: Arc<T>,
}

impl<T> Hot<T> {
    /// Nothing.
    pub const fn new() -> Self {
        Self { places: [const { RefCell::new(None) }; PLACES] }
    }

    /// Calls `work` with the object of `handle`; `None` if there is none.
    ///
    /// What is remembered is borrowed meanwhile, not taken out and put back: that would be three
    /// words written and read again in other sizes, for which a CPU waits. A call within `work` that
    /// needs the same place for another handle does without.
    #[inline]
    pub fn with<R>(
        &self,
        table: &Table<T>,
        handle: usize,
        work: impl FnOnce(&Arc<T>) -> R,
    ) -> Option<R> {
        let removals = table.removals();
        let place = &self.places[handle % PLACES];
        if let Ok(seen) = place.try_borrow()
            && let Some(seen) = &*seen
            && seen.handle == handle
            && seen.removals == removals
        {
            return Some(work(&seen.object));
        }
        let object = Self::look(table, handle, removals, place)?;
        Some(work(&object))
    }

    #[cold]
    fn look(
        table: &Table<T>,
        handle: usize,
        removals: u64,
        place: &RefCell<Option<Seen<T>>>,
    ) -> Option<Arc<T>> {
        // The counter was read before the look: a removal in between makes this entry useless at
        // the next call, not wrong.
        let object = table.find(handle);
        let seen = object.clone().map(|object| Seen { handle, removals, object });
        let forgotten = match place.try_borrow_mut() {
            Ok(mut place) => std::mem::replace(&mut *place, seen),
            Err(_) => seen,
        };
        // Only now: what goes with the object may look for others here.
        drop(forgotten);
        object
    }
}

#[cfg(test)]
mod tests {
    use super::Hot;
    use crate::handle::Kind;
    use crate::handle::table::Table;
    use std::sync::Arc;

    #[test]
    fn what_is_remembered_is_let_go_when_it_was_freed() {
        let (table, hot) = (Table::new(Kind::Datatype), Hot::new());
        let object = Arc::new(7);
        let handle = table.insert(Arc::clone(&object)).expect("a handle");
        for _ in 0..2 {
            assert_eq!(hot.with(&table, handle, |found| **found), Some(7));
        }
        assert_eq!(Arc::strong_count(&object), 3);
        table.remove(handle).expect("the object");
        assert_eq!(hot.with(&table, handle, |found| **found), None);
        assert_eq!(Arc::strong_count(&object), 1);
    }

    #[test]
    fn calls_within_a_call_find_their_own() {
        let (table, hot) = (Table::new(Kind::Datatype), Hot::new());
        let handles: Vec<usize> =
            (0..8).map(|n| table.insert(Arc::new(n)).expect("a handle")).collect();
        // Every pair: also two handles of one place, and one handle twice.
        for (outer, &one) in handles.iter().enumerate() {
            for (inner, &other) in handles.iter().enumerate() {
                let within = hot
                    .with(&table, one, |found| (**found, hot.with(&table, other, |found| **found)));
                assert_eq!(within, Some((outer, Some(inner))));
            }
        }
        // An object freed while it is used lives until then.
        let freed = hot.with(&table, handles[0], |found| {
            table.remove(handles[0]).expect("the object");
            **found
        });
        assert_eq!((freed, hot.with(&table, handles[0], |found| **found)), (Some(0), None));
    }
}
