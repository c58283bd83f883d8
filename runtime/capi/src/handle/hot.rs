//! What a thread used last, found again without a lock.
//!
//! Packing calls take a few nanoseconds, of which a lock and a reference count would be most. Each
//! thread remembers a few handles of a kind and holds their objects; as long as the kind's table has
//! not removed anything (one counter), what is remembered is true. A freed object is let go at the
//! thread's next look.

use super::table::Table;
use std::cell::Cell;
use std::sync::Arc;

/// Handles remembered per thread and kind.
const PLACES: usize = 4;

/// One thread's memory of one kind.
pub struct Hot<T> {
    places: [Cell<Option<Seen<T>>>; PLACES],
}

struct Seen<T> {
    handle: usize,
    removals: u64,
    object: Arc<T>,
}

impl<T> Hot<T> {
    /// Nothing.
    pub const fn new() -> Self {
        Self { places: [const { Cell::new(None) }; PLACES] }
    }

    /// Calls `work` with the object of `handle`; `None` if there is none.
    ///
    /// The place is empty meanwhile: a call within `work` looks into the table.
    #[inline]
    pub fn with<R>(
        &self,
        table: &Table<T>,
        handle: usize,
        work: impl FnOnce(&Arc<T>) -> R,
    ) -> Option<R> {
        let removals = table.removals();
        let place = &self.places[handle % PLACES];
        let seen = match place.take() {
            Some(seen) if seen.handle == handle && seen.removals == removals => seen,
            other => Self::look(table, handle, removals, other)?,
        };
        let result = work(&seen.object);
        place.set(Some(seen));
        Some(result)
    }

    #[cold]
    fn look(
        table: &Table<T>,
        handle: usize,
        removals: u64,
        forgotten: Option<Seen<T>>,
    ) -> Option<Seen<T>> {
        drop(forgotten);
        // The counter was read before the look: a removal in between makes this entry useless at
        // the next call, not wrong.
        let object = table.find(handle)?;
        Some(Seen { handle, removals, object })
    }
}
