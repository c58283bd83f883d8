//! Page-aligned memory that other processes can share.
//!
//! Alignment decides how a strided walk meets the cache sets, so it is the same for every
//! competitor and every run (and, page-aligned, the hardest case for strides of powers of two).
//! Which physical pages a buffer got decides as much for walks of a line per page: 1.5x between
//! two processes was measured. So peers (`peer/`) work on the very pages of this process. Used by
//! `prepare.rs`.
//!
//! Invariant: while one process uses a shared buffer, the others wait for it; `peer/session.rs`
//! and `peer/child.rs` take turns.

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;

/// Alignment in bytes.
pub const PAGE: usize = 4096;

/// Bytes that begin at a multiple of [`PAGE`], zeroed by [`Buffer::new`]. Memory that is never
/// touched costs nothing.
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
    mapped: usize,
    file: OwnedFd,
}

impl Buffer {
    /// `length` zeroed bytes.
    ///
    /// # Errors
    ///
    /// One line: the system has no such memory.
    pub fn new(length: usize) -> Result<Self, String> {
        let file = memfd_create("typepack-bench", MemfdFlags::CLOEXEC)
            .map_err(|e| format!("memory: {e}"))?;
        ftruncate(&file, length.max(1).next_multiple_of(PAGE) as u64)
            .map_err(|e| format!("{length} bytes of memory: {e}"))?;
        Self::mapped(file, length)
    }

    /// The buffer of `length` bytes that another process has at `path` ([`Buffer::path`]).
    ///
    /// # Errors
    ///
    /// One line: it is not there or not to be opened.
    pub fn open(path: &str, length: usize) -> Result<Self, String> {
        let file = std::fs::File::options().read(true).write(true).open(path);
        let file = file.map_err(|e| format!("{path}: {e}"))?;
        let most = file.metadata().map_err(|e| format!("{path}: {e}"))?.len();
        if (length as u64) > most {
            return Err(format!("{path}: {most} bytes, not {length}"));
        }
        Self::mapped(file.into(), length)
    }

    /// Where other processes of this user find it while this one has it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    fn mapped(file: OwnedFd, length: usize) -> Result<Self, String> {
        let mapped = length.max(1).next_multiple_of(PAGE);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the system's choice.
        let start = unsafe {
            mmap(std::ptr::null_mut(), mapped, access, MapFlags::SHARED, file.as_fd(), 0)
        };
        let start = start.map_err(|e| format!("{length} bytes of memory: {e}"))?;
        let start = NonNull::new(start.cast::<u8>()).ok_or("memory at address 0")?;
        Ok(Self { start, length, mapped, file })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `length` bytes of the mapping, which lives as long as `self`; any byte is a
        // `u8`; nobody else writes meanwhile (the invariant above).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// The bytes, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; in this process `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping that `mapped` has made, of that size, unmapped once; no slice of it
        // outlives `self`. It fails only for other arguments.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, PAGE};

    #[test]
    fn buffers_are_page_aligned_and_exact() {
        for length in [0, 1, 4095, 4096, 100_000] {
            let mut buffer = Buffer::new(length).expect("memory");
            assert_eq!(buffer.bytes().as_ptr().addr() % PAGE, 0);
            assert_eq!(buffer.bytes_mut().len(), length);
        }
    }

    #[test]
    fn an_opened_buffer_is_the_same_memory() {
        let mut buffer = Buffer::new(100).expect("memory");
        let mut other = Buffer::open(&buffer.path(), 100).expect("the same memory");
        buffer.bytes_mut()[99] = 7;
        assert_eq!(other.bytes()[99], 7);
        other.bytes_mut()[0] = 8;
        assert_eq!(buffer.bytes()[0], 8);
        assert!(Buffer::open(&buffer.path(), PAGE + 1).is_err());
        assert!(Buffer::open("/nonexistent", 1).is_err());
    }
}
