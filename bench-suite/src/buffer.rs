//! Page-aligned memory that other processes can share.
//!
//! The alignment of a buffer determines which cache sets a strided walk uses. All buffers of all
//! competitors are therefore page-aligned, in every run. Page alignment is the hardest case for strides
//! that are powers of two.
//!
//! For walks that touch one cache line per page, it also matters which physical pages a buffer has: the
//! times of the same walk in two processes differed by a factor of 1.5. The child processes of peers
//! (`peer/`) therefore work on the same physical pages as the main process.
//!
//! `prepare.rs` makes the buffers of a layout.
//!
//! Invariant: only one process at a time uses a shared buffer. `peer/session.rs` waits for the answer of
//! `peer/child.rs` before the main process uses the buffer again.

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;

/// The alignment of every buffer, in bytes: the size of a page.
pub const PAGE: usize = 4096;

/// A range of bytes that begins at a multiple of [`PAGE`]. The bytes of a new buffer are 0. A page uses no
/// physical memory until a process touches it.
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
    mapped: usize,
    file: OwnedFd,
}

impl Buffer {
    /// Allocates `length` zeroed bytes.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the system refuses the memory.
    pub fn new(length: usize) -> Result<Self, String> {
        let file = memfd_create("typepack-bench", MemfdFlags::CLOEXEC)
            .map_err(|e| format!("cannot make a buffer of {length} bytes: {e}"))?;
        ftruncate(&file, length.max(1).next_multiple_of(PAGE) as u64)
            .map_err(|e| format!("cannot make a buffer of {length} bytes: {e}"))?;
        Self::mapped(file, length)
    }

    /// Opens a buffer of another process and maps its first `length` bytes. `path` is the result of
    /// [`Buffer::path`] in that process.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the buffer does not exist, cannot be opened or mapped, or is shorter
    /// than `length`.
    pub fn open(path: &str, length: usize) -> Result<Self, String> {
        let file = std::fs::File::options().read(true).write(true).open(path);
        let file = file.map_err(|e| format!("{path}: {e}"))?;
        let most = file.metadata().map_err(|e| format!("{path}: {e}"))?.len();
        if (length as u64) > most {
            return Err(format!("{path}: the buffer has {most} bytes, but {length} are needed"));
        }
        Self::mapped(file.into(), length)
    }

    /// Returns a path at which other processes of the same user can open the buffer. The path is valid as
    /// long as this process keeps the buffer.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    fn mapped(file: OwnedFd, length: usize) -> Result<Self, String> {
        let mapped = length.max(1).next_multiple_of(PAGE);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the address is null, so the system chooses an unused range, and the mapping replaces no
        // other mapping. The length `mapped` is greater than 0, as `mmap` requires.
        let start = unsafe {
            mmap(std::ptr::null_mut(), mapped, access, MapFlags::SHARED, file.as_fd(), 0)
        };
        let start = start.map_err(|e| format!("cannot map {length} bytes of memory: {e}"))?;
        let start =
            NonNull::new(start.cast::<u8>()).ok_or("the system mapped a buffer at address 0")?;
        Ok(Self { start, length, mapped, file })
    }

    /// Returns the bytes of the buffer.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` begins a mapping of at least `length` readable bytes, which lives as long as
        // `self`. Any byte is a valid `u8`. While `self` is borrowed, no code of this process writes to
        // the buffer (`bytes_mut` needs a mutable borrow), and no other process uses it (the invariant of
        // this file).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Returns the bytes of the buffer as a mutable slice.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `start` begins a mapping of at least `length` writable bytes, which lives as long as
        // `self`. The mutable borrow of `self` excludes other slices in this process, and no other process
        // uses the buffer during this borrow (the invariant of this file).
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: `Buffer::mapped` has made this mapping of `mapped` bytes at `start`, and only `drop`
        // unmaps it. All slices of the mapping borrow `self`, so none exists any more. The result is
        // ignored because `munmap` fails only for invalid arguments.
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
