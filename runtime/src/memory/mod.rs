//! Memory that other ranks can copy from, and to, in place: what `MPI_Alloc_mem` gives out, buffers
//! of Rust programs, and the fields of `halo/`.
//!
//! Messages of any layout whose data lies in such memory are copied once, by the receiver, from
//! layout to layout; nothing else is different about it. It comes from this rank's part of the
//! shared heap (`heaps.rs` has the table of all heaps) once [`init`](crate::init) has joined a job of several ranks;
//! before, and in a job of one, it is ordinary memory.
//!
//! Invariant: a block belongs to one owner, and goes back where it came from when that is dropped.

pub(crate) mod heaps;

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;

use crate::sys::limits;
use crate::{Error, ErrorKind, Result};
use heaps::Heaps;

/// Bytes of a cache line: every block begins at one.
const LINE: usize = 64;

/// The job whose heap is used, once this process has joined one.
static JOB: OnceLock<Arc<Heaps>> = OnceLock::new();

/// From now on memory comes from this rank's heap.
pub(crate) fn join(heaps: &Arc<Heaps>) {
    // A process joins once (`world.rs`).
    let _ = JOB.set(heaps.clone());
}

/// The heaps of the job, once this process has joined one of several ranks.
pub(crate) fn heaps() -> Option<&'static Arc<Heaps>> {
    JOB.get()
}

/// Bytes that this process can still take: what the machine has left, or a control group or limit of
/// this process allows, whichever is less.
pub fn available() -> u64 {
    limits::available_memory()
}

/// A block of memory of its own.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    /// Of ordinary memory; `None` for a piece of the heap.
    layout: Option<Layout>,
}

// SAFETY: a block is an allocation without an aliasing rule of its own: whoever holds it may use it
// from any thread, and both allocators take it back from any.
unsafe impl Send for Block {}
// SAFETY: as above; a shared block only gives its address away.
unsafe impl Sync for Block {}

impl Block {
    /// `len` bytes at a multiple of `align`, a power of two, and of a cache line; all zeros if
    /// `zeroed`, else of any content. Also no bytes have an address of their own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoMemory`] when the machine, a cgroup or the heap has too little left;
    /// [`ErrorKind::Argument`] for an `align` that is no power of two.
    #[doc(alias = "MPI_Alloc_mem")]
    pub fn new(len: usize, align: usize, zeroed: bool) -> Result<Self> {
        if !align.is_power_of_two() {
            let detail = format!("{align} is no power of two");
            return Err(Error::new(ErrorKind::Argument, "align", detail));
        }
        let align = align.max(LINE);
        let layout = Layout::from_size_align(len.max(1), align).map_err(|_| refused(len))?;
        if let Some(heap) = JOB.get().and_then(|heaps| heaps.own()) {
            let start = heap.alloc(len, align, zeroed).map_err(of_heap)?;
            return Ok(Self { start, layout: None });
        }
        // SAFETY: the layout's size is not 0.
        let start = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        let start = NonNull::new(start).ok_or_else(|| refused(len))?;
        Ok(Self { start, layout: Some(layout) })
    }

    /// The first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Whether it lies in the shared heap: other ranks can copy from and to it in place.
    pub fn is_shared(&self) -> bool {
        self.layout.is_none()
    }
}

fn refused(len: usize) -> Error {
    Error::new(ErrorKind::NoMemory, "size", format!("{len} bytes were refused"))
}

fn of_heap(error: typepack_job::Error) -> Error {
    let kind = match error.kind() {
        typepack_job::ErrorKind::NoMemory => ErrorKind::NoMemory,
        _ => ErrorKind::State,
    };
    Error::new(kind, "size", error.to_string())
}

impl Drop for Block {
    fn drop(&mut self) {
        match self.layout {
            // SAFETY: `new` allocated it with this layout, and this is the only `dealloc`.
            Some(layout) => unsafe { dealloc(self.start.as_ptr(), layout) },
            None => {
                // False only in a forked child, whose copy of the books is nobody's.
                let _ =
                    JOB.get().and_then(|heaps| heaps.used()).map(|heap| heap.free(self.as_ptr()));
            }
        }
    }
}

/// `len` values in memory of its own from which other ranks can copy messages in place; from
/// [`Universe::shared_buffer`](crate::Universe::shared_buffer).
#[doc(alias = "MPI_Alloc_mem")]
pub struct SharedBuffer<T> {
    block: Block,
    len: usize,
    values: std::marker::PhantomData<T>,
}

impl<T: Pod> SharedBuffer<T> {
    /// `len` values, all zeros. In a job of several ranks, once it has been joined, in memory that
    /// they share; else in ordinary memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoMemory`] when the machine, a cgroup or the heap has too little left.
    pub fn zeroed(len: usize) -> Result<Self> {
        let layout = Layout::array::<T>(len).map_err(|_| refused(usize::MAX))?;
        let block = Block::new(layout.size(), layout.align(), true)?;
        Ok(Self { block, len, values: std::marker::PhantomData })
    }
}

impl<T: Pod> Deref for SharedBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the block holds `len` values, aligned for them; they began as zeros and any bytes
        // make valid ones (Pod). The block is this value's alone; other ranks read it only while a
        // message borrows it.
        unsafe { std::slice::from_raw_parts(self.block.as_ptr().cast(), self.len) }
    }
}

impl<T: Pod> DerefMut for SharedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` makes this the only reference.
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
}
