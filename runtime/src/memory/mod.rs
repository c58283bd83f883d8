//! Memory that other ranks can read and write in place: blocks of `MPI_Alloc_mem`, shared buffers of Rust
//! programs, and the fields of `halo/`.
//!
//! The receiver can copy the data of a long message in such memory directly from layout to layout, whatever
//! the two layouts are. In all other respects the memory is ordinary. After [`init`](crate::init) has joined
//! a job of several ranks, the memory comes from this rank's part of the shared heap (`heaps.rs` has the
//! table of all heaps). Before that, in a job of one rank, and in a job without heaps, large blocks are private
//! mappings (`private.rs`), and small ones come from the ordinary allocator.
//!
//! Memory is counted against the limits when it is allocated (it is *promised*), and takes pages where it is touched.
//!
//! Invariant: a block has one owner. When the owner is dropped, the block goes back to the allocator that
//! it came from.

pub(crate) mod heaps;
mod private;

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;

use crate::sys::limits;
use crate::{Error, ErrorKind, Result};
use heaps::Heaps;
use private::{LARGE, Large};

/// Size of a cache line in bytes. Every block begins at the start of a cache line.
const LINE: usize = 64;

/// The heaps of the job. Empty until this process has joined a job of several ranks.
static JOB: OnceLock<Arc<Heaps>> = OnceLock::new();

/// Makes all later blocks come from this rank's heap, which `heaps` contains.
pub(crate) fn join(heaps: &Arc<Heaps>) {
    // `JOB` is still empty here, because a process joins a job only once (`world.rs`).
    let _ = JOB.set(heaps.clone());
}

/// Returns the heaps of the job, or `None` if this process has not joined a job of several ranks.
pub(crate) fn heaps() -> Option<&'static Arc<Heaps>> {
    JOB.get()
}

/// Returns how many bytes this process can still allocate: the smallest of the machine's available memory
/// and the amounts that the cgroups of this process still allow. Memory that is allocated and that nobody has touched
/// yet counts as available here, but an allocation that needs it is refused.
pub fn available() -> u64 {
    limits::available_memory()
}

/// Gives memory that this process has freed back to the operating system. The C library's allocator keeps small
/// blocks for later; the call takes time in proportion to what the allocator keeps.
pub fn give_back_memory() {
    crate::sys::memory::give_back_freed();
}

/// An owned block of memory.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    origin: Origin,
}

/// Where a block comes from.
#[derive(Debug)]
enum Origin {
    /// This rank's heap.
    Heap,
    /// A private mapping. The value keeps it.
    Large { _block: Large },
    /// The ordinary allocator, with this layout.
    Ordinary(Layout),
}

// SAFETY: a block is a plain allocation that is tied to no thread. All allocators can free it from any
// thread.
unsafe impl Send for Block {}
// SAFETY: a thread with a shared reference to a block can only read the block's address.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates `len` bytes at a multiple of `align` (a power of two) and of a cache line. The bytes are
    /// zero if `zeroed`, and arbitrary otherwise. Even a block of 0 bytes has an address that no other
    /// block has. Pages that nobody touches take no memory.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if the machine, a cgroup, the heap or the address space has too little left (the
    /// error names the limit),
    /// [`ErrorKind::Argument`] if `align` is not a power of two, and [`ErrorKind::State`] in a forked child,
    /// or if the kernel refuses the memory for another reason.
    #[doc(alias = "MPI_Alloc_mem")]
    pub fn new(len: usize, align: usize, zeroed: bool) -> Result<Self> {
        Self::make(len, align, zeroed, false)
    }

    /// Allocates like [`new`](Self::new). If `populate`, all pages get memory at once (the hint `typepack_populate`).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`new`](Self::new).
    pub fn make(len: usize, align: usize, zeroed: bool, populate: bool) -> Result<Self> {
        if !align.is_power_of_two() {
            let detail = format!("{align} is not a power of two");
            return Err(Error::new(ErrorKind::Argument, "align", detail));
        }
        let align = align.max(LINE);
        let layout = Layout::from_size_align(len.max(1), align).map_err(|_| refused(len))?;
        if let Some(heaps) = JOB.get()
            && let Some(start) = heaps.alloc(len, align, zeroed)
        {
            let block = Self { start: start.map_err(of_heap)?, origin: Origin::Heap };
            if populate && len > 0 {
                block.populate(0..len)?;
            }
            return Ok(block);
        }
        if len >= LARGE {
            let (block, start) = Large::new(len, align, populate).map_err(of_heap)?;
            return Ok(Self { start, origin: Origin::Large { _block: block } });
        }
        // SAFETY: the size of `layout` is at least 1 (`len.max(1)` above), as both allocators require.
        let start = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        let start = NonNull::new(start).ok_or_else(|| refused(len))?;
        Ok(Self { start, origin: Origin::Ordinary(layout) })
    }

    /// Gives memory to the pages of a range of a block in the heap.
    fn populate(&self, range: std::ops::Range<usize>) -> Result<()> {
        let Some((heaps, offset)) = JOB.get().zip(self.offset()) else { return Ok(()) };
        let range = offset + range.start as u64..offset + range.end as u64;
        heaps.populate(heaps.rank(), &range).map_err(of_heap)
    }

    /// Returns the address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the offset of the block in this rank's heap, or `None` if it does not lie there.
    pub(crate) fn offset(&self) -> Option<u64> {
        JOB.get().filter(|_| self.is_shared())?.used()?.offset_of(self.as_ptr(), 1)
    }

    /// Returns whether the block lies in the shared heap, where other ranks can read and write it in place.
    pub fn is_shared(&self) -> bool {
        matches!(self.origin, Origin::Heap)
    }
}

fn refused(len: usize) -> Error {
    Error::new(ErrorKind::NoMemory, "size", format!("cannot allocate {len} bytes"))
}

pub(crate) fn of_heap(error: typepack_job::Error) -> Error {
    let kind = match error.kind() {
        typepack_job::ErrorKind::NoMemory => ErrorKind::NoMemory,
        _ => ErrorKind::State,
    };
    Error::new(kind, "size", error.to_string())
}

impl Drop for Block {
    fn drop(&mut self) {
        match &self.origin {
            // SAFETY: `make` allocated the block with this layout, and this is the only `dealloc`.
            Origin::Ordinary(layout) => unsafe { dealloc(self.start.as_ptr(), *layout) },
            // The mapping ends with the value.
            Origin::Large { .. } => {}
            Origin::Heap => {
                // `free` returns false only in a forked child, which does not use its copy of the heap's
                // tables. So the result needs no check.
                let _ =
                    JOB.get().and_then(|heaps| heaps.used()).map(|heap| heap.free(self.as_ptr()));
            }
        }
    }
}

/// `len` values in memory that other ranks can read and write in place. See
/// [`Universe::shared_buffer`](crate::Universe::shared_buffer).
///
/// Other ranks access the values only for a message: they read the elements of a send, which borrows the buffer, and
/// write those of a receive, which borrows it mutably. So no reference to the values exists while another rank writes
/// them. One-sided calls and regions do not use such buffers, but through `unsafe` calls, whose callers promise the same.
#[doc(alias = "MPI_Alloc_mem")]
pub struct SharedBuffer<T> {
    block: Block,
    len: usize,
    values: std::marker::PhantomData<T>,
}

impl<T: Pod> SharedBuffer<T> {
    /// Allocates `len` values, all zero. If this process has joined a job of several ranks, the memory is
    /// shared with them; otherwise it is ordinary memory.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if the machine, a cgroup or the heap has too little memory left, and
    /// [`ErrorKind::State`] in a forked child, or if the kernel refuses the memory for another reason.
    pub fn zeroed(len: usize) -> Result<Self> {
        let layout = Layout::array::<T>(len).map_err(|_| refused(usize::MAX))?;
        let block = Block::new(layout.size(), layout.align(), true)?;
        Ok(Self { block, len, values: std::marker::PhantomData })
    }
}

impl<T: Pod> Deref for SharedBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the block holds `len` aligned values. The values were zero at first, and any bytes are
        // valid values (Pod). Only this value owns the block. Another rank reads elements of it only for a send, and
        // writes them only for a receive. A safe receive borrows the buffer mutably until no rank writes to it any more,
        // also if the program panics (`endpoint/engine/detach.rs`), so there is no such reference meanwhile. Callers of
        // unsafe receives and windows promise the same.
        unsafe { std::slice::from_raw_parts(self.block.as_ptr().cast(), self.len) }
    }
}

impl<T: Pod> DerefMut for SharedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the block holds `len` aligned and initialised values, and `&mut self` makes this the only
        // reference to them.
        unsafe { std::slice::from_raw_parts_mut(self.block.as_ptr().cast(), self.len) }
    }
}

impl<T> fmt::Debug for SharedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuffer").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_memory_serves_without_a_job() {
        let mut buffer = SharedBuffer::<f64>::zeroed(1000).expect("room");
        assert!(buffer.iter().all(|&value| value == 0.0) && !buffer.block.is_shared());
        buffer[999] = 1.5;
        assert_eq!((buffer.len(), buffer[999]), (1000, 1.5));
        assert_eq!(buffer.as_ptr() as usize % LINE, 0);
        assert_eq!(SharedBuffer::<u8>::zeroed(0).expect("nothing").len(), 0);
        for len in [usize::MAX, isize::MAX as usize] {
            let error = SharedBuffer::<f64>::zeroed(len).expect_err("too much");
            assert_eq!(error.kind(), ErrorKind::NoMemory);
        }
        assert!(Block::new(8, 3, true).is_err());
    }

    /// Checks that a large block takes no memory before it is touched, in a process without a heap, and that blocks
    /// which nobody touches cannot exceed the memory together.
    #[test]
    fn large_blocks_are_promised_and_not_taken() {
        let resident = |block: &Block| match &block.origin {
            Origin::Large { _block: large } => large.resident(),
            _ => panic!("not a large block"),
        };
        // Other programs take and free memory meanwhile. So what must succeed is small, and what must fail is large.
        let left = available() as usize;
        let first = Block::new(left / 2, 2 << 20, true).expect("a promise");
        assert_eq!(first.as_ptr() as usize % (2 << 20), 0);
        assert_eq!((first.is_shared(), resident(&first)), (false, 0));
        let error = Block::new(left / 8 * 7, 64, false).expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::NoMemory);
        assert!(error.to_string().contains("(limit: "), "{error}");
        drop(first);
        drop(Block::new(available() as usize / 2, 64, true).expect("a promise"));
        let full = Block::make(64 << 20, 64, true, true).expect("memory");
        assert_eq!(resident(&full), 64 << 20);
        drop(full);
        assert!(Block::new(isize::MAX as usize - 4096, 64, false).is_err());
    }
}
