//! Memory that processes share: a sealed memfd, its mapping, and room that is really there.
//!
//! Used by `shm/segment.rs`. A memfd has no name: nothing to squat on, nothing left over after
//! SIGKILL, not limited by a small `/dev/shm`. Promises to safe callers: a [`Mapping`] stays
//! mapped, readable and writable for as long as it lives, and its file cannot shrink below it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};

use rustix::fs::{self, FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, ProtFlags};

/// Nobody may resize the file any more, nor take back this rule.
const SEALS: SealFlags = SealFlags::GROW.union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// Creates an anonymous file of `len` bytes, all holes, and seals its size.
///
/// The descriptor is close-on-exec. `name` shows up in `/proc/PID/maps` only.
///
/// # Errors
///
/// The kernel's answer, for instance to a `len` beyond what it can address.
pub fn create_sealed(name: &str, len: u64) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Systems with vm.memfd_noexec=2 demand NOEXEC_SEAL; kernels before 6.3 do not know it.
    let fd = match fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => fs::memfd_create(name, flags)?,
        other => other?,
    };
    fs::ftruncate(&fd, len)?;
    fs::fcntl_add_seals(&fd, SEALS)?;
    Ok(fd)
}

/// The size in bytes of a file made by [`create_sealed`], `None` for any other descriptor.
///
/// # Errors
///
/// `EBADF` when the descriptor is not open.
pub fn sealed_len(fd: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    match fs::fcntl_get_seals(fd) {
        Ok(seals) if seals.contains(SEALS) => {
            let size = fs::fstat(fd)?.st_size;
            Ok(u64::try_from(size).ok())
        }
        Ok(_) | Err(Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Makes sure that `len` bytes at `offset` of a memfd have memory behind them.
///
/// A hole that cannot be filled later is a SIGBUS in the middle of a copy; here it is an error.
/// Costs a page-cache lookup per page when the memory is there already.
///
/// # Errors
///
/// `ENOSPC` or `ENOMEM` when memory has run out (often a container's limit).
pub fn reserve(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    loop {
        match fs::fallocate(fd, FallocateFlags::empty(), offset, len) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// A shared, writable mapping of a whole sealed file; unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to the thread that made it; all access to its
// bytes goes through atomics or raw pointers whose users answer for races.
unsafe impl Send for Mapping {}
// SAFETY: as above; the methods only read `base` and `len`, which never change.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `fd`, which [`sealed_len`] has found to be as long.
    ///
    /// The mapping is not inherited by `fork`: the child of a rank must not touch the job.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the file is not sealed or shorter than `len`, or when `len` is 0; else the
    /// kernel's answer (`ENOMEM` under an address-space limit).
    pub fn shared(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        // Checked here and not only by the caller: what follows is sound only if the file can
        // never be shorter than the mapping.
        let sealed = sealed_len(fd)?.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        if len == 0 || sealed < len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint lets the kernel choose the address, so no existing mapping is
        // replaced; the result is owned by the `Mapping` below.
        let base = unsafe { mm::mmap(ptr::null_mut(), len, prot, MapFlags::SHARED, fd, 0) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mapping = Self { base, len };
        // SAFETY: the range is exactly the mapping made above; DONTFORK changes what a fork
        // copies and nothing in this process.
        unsafe { mm::madvise(mapping.base.as_ptr().cast(), len, Advice::LinuxDontFork) }?;
        Ok(mapping)
    }

    /// First byte; aligned to a page.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `base` and `len` are what mmap gave and nobody else unmaps them; users of the
        // pointers borrow from the owner of this value. Failure is impossible for such a range,
        // and the worst outcome would be address space that stays taken.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn size_is_sealed() {
        let fd = create_sealed("typepack-test", 8192).expect("memfd");
        assert_eq!(sealed_len(fd.as_fd()).expect("seals"), Some(8192));
        assert_eq!(fs::ftruncate(&fd, 4096), Err(Errno::PERM));
        assert_eq!(fs::ftruncate(&fd, 16384), Err(Errno::PERM));
        reserve(fd.as_fd(), 0, 8192).expect("room");
    }

    #[test]
    fn mapping_refuses_what_could_shrink() {
        let fd = fs::memfd_create("typepack-test", MemfdFlags::CLOEXEC).expect("memfd");
        fs::ftruncate(&fd, 4096).expect("truncate");
        assert_eq!(sealed_len(fd.as_fd()).expect("seals"), None);
        assert!(Mapping::shared(fd.as_fd(), 4096).is_err());
        let fd = create_sealed("typepack-test", 4096).expect("memfd");
        assert!(Mapping::shared(fd.as_fd(), 4097).is_err());
        let map = Mapping::shared(fd.as_fd(), 4096).expect("mapping");
        assert_eq!(map.base().as_ptr() as usize % 4096, 0);
    }
}
