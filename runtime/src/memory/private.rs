//! Large blocks of private memory, for a process without a heap: a job of one rank, a job without heaps.
//!
//! A heap of its own would not serve a job of one rank as well: on a Zen 4, a page of a heap took 0.7 us when it was
//! first touched, and a private page 0.4 us. The kernel can also make private pages huge.
//!
//! Like memory in a heap, such a block is promised (`shm/budget.rs`) when it is allocated, and takes memory where it is
//! touched. Small blocks come from the ordinary allocator (`mod.rs`), which counts nothing.

use crate::shm::budget::Ledger;
use crate::shm::layout::PAGE;
use crate::sys::limits;
use crate::sys::memory::Private;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use typepack_job::{Error, ErrorKind};

/// From this length on, a block is mapped on its own.
pub(super) const LARGE: usize = 256 << 10;

static PROMISED: AtomicU64 = AtomicU64::new(0);
static CREDIT: AtomicU64 = AtomicU64::new(0);
/// All blocks. The key is the address of the mapping.
static BLOCKS: Mutex<Option<HashMap<usize, Arc<Private>>>> = Mutex::new(None);

fn ledger() -> Ledger<'static> {
    Ledger { promised: &PROMISED, credit: &CREDIT, what: "memory" }
}

/// A block.
#[derive(Debug)]
pub(super) struct Large {
    map: Arc<Private>,
    /// Number of promised bytes.
    bytes: u64,
}

impl Large {
    /// Allocates `len` bytes, all zero, and returns the block and the address of its first byte, a multiple of `align`
    /// (a power of two). If `populate`, all pages get memory at once.
    ///
    /// # Errors
    /// Returns [`ErrorKind::NoMemory`] if a limit does not allow it. The error names the limit.
    pub(super) fn new(
        len: usize,
        align: usize,
        populate: bool,
    ) -> Result<(Self, NonNull<u8>), Error> {
        let refused = |why: &str| {
            let detail = format!("cannot allocate {len} bytes of memory: {why}");
            Error::new(ErrorKind::NoMemory, detail)
        };
        // A mapping begins at a page.
        let slack = if align > PAGE { align } else { 0 };
        let whole = len.checked_add(slack).filter(|whole| isize::try_from(*whole).is_ok());
        let whole = whole.ok_or_else(|| refused("a process has less address space"))?;
        let bytes = len as u64;
        ledger().promise(bytes, open)?;
        let map = Private::new(whole, populate).map_err(|error| {
            ledger().release(bytes);
            refused(&format!("{error} (limit: {})", limits::refusing_map(whole as u64, true)))
        })?;
        let at = map.base().as_ptr() as usize;
        // SAFETY: the mapping has `align` bytes more than the block if the block does not begin at its first byte.
        let start = unsafe { map.base().add(at.next_multiple_of(align) - at) };
        let map = Arc::new(map);
        lock().get_or_insert_default().insert(at, map.clone());
        Ok((Self { map, bytes }, start))
    }

    /// Returns the number of bytes that have memory.
    #[cfg(test)]
    pub(super) fn resident(&self) -> u64 {
        self.map.resident()
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        let at = self.map.base().as_ptr() as usize;
        lock().as_mut().and_then(|blocks| blocks.remove(&at));
        ledger().release(self.bytes);
    }
}

fn lock() -> MutexGuard<'static, Option<HashMap<usize, Arc<Private>>>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns how many bytes have no memory if `promised` bytes are promised. The promise of a block counts before the block
/// is in the table, so that threads which allocate at the same time see each other's promises.
fn open(promised: u64) -> u64 {
    let touched = |map: &Arc<Private>| map.resident().min(map.len() as u64);
    let touched = lock().iter().flat_map(HashMap::values).map(touched).fold(0, u64::saturating_add);
    promised.saturating_sub(touched)
}
