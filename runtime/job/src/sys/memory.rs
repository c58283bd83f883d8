//! Memory that processes share: a sealed memfd, its mapping, and room that is really there.
//!
//! Used by `shm/segment.rs`. A memfd has no name: nothing to squat on, nothing left over after
//! SIGKILL, not limited by a small `/dev/shm`. Promises to safe callers: a [`Mapping`] stays
//! mapped, readable and writable for as long as it lives, and its file cannot shrink below it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use rustix::fs::{self, FallocateFlags, FlockOperation, MemfdFlags, SealFlags};
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

/// Gives the memory behind `len` bytes at `offset` of a memfd back; they read as zeros afterwards.
///
/// # Errors
///
/// The kernel's answer; there is none for a range within the file.
pub fn give_back(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    loop {
        match fs::fallocate(fd, flags, offset, len) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Whether shared memory gets huge pages where a mapping has asked, and only there.
fn asks_for_huge_pages() -> bool {
    static ASKS: OnceLock<bool> = OnceLock::new();
    *ASKS.get_or_init(|| {
        let file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
        std::fs::read_to_string(file).is_ok_and(|text| text.contains("[advise]"))
    })
}

/// The right to be the only process that works on a file, among those that ask for it; lost on
/// drop, and when the process ends.
#[derive(Debug)]
pub struct Turn<'a>(BorrowedFd<'a>);

/// Waits for the turn of this process. Threads of one process must take turns among themselves.
///
/// # Errors
///
/// The kernel's answer; none for a memfd.
pub fn exclusive(fd: BorrowedFd<'_>) -> io::Result<Turn<'_>> {
    loop {
        match fs::fcntl_lock(fd, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            other => return other.map(|()| Turn(fd)).map_err(io::Error::from),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // It was locked, so it can be unlocked.
        let _ = fs::fcntl_lock(self.0, FlockOperation::Unlock);
    }
}

/// Whether the child of a `fork` has a mapping, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// It has not: the child of a rank must not touch what belongs to the job.
    No,
    /// It has, with the same memory behind it: the rank's own data.
    Yes,
}

/// A shared, writable mapping of a part of a sealed file; unmapped on drop.
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
    /// Maps `len` bytes at `offset` of `fd`, a multiple of the page size, with huge pages where
    /// the system grants them. A core file of the process does not hold them: dumping a mapping
    /// that is mostly holes would fill the holes ([`Mapping::dump`]).
    ///
    /// # Errors
    ///
    /// `EINVAL` when the file is not sealed or shorter than that, or when `len` is 0; else the
    /// kernel's answer (`ENOMEM` under an address-space limit).
    pub fn shared(
        fd: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        inherit: Inherit,
    ) -> io::Result<Self> {
        // Checked here and not only by the caller: what follows is sound only if the file can
        // never be shorter than the mapping.
        let sealed = sealed_len(fd)?.unwrap_or(0);
        if len == 0 || offset.checked_add(len as u64).is_none_or(|end| sealed < end) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint lets the kernel choose the address, so no existing mapping is
        // replaced; the result is owned by the `Mapping` below.
        let base = unsafe { mm::mmap(ptr::null_mut(), len, prot, MapFlags::SHARED, fd, offset) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mapping = Self { base, len };
        // SAFETY: the range is exactly the mapping made above; this advice changes what a core
        // file and a fork copy, and the size of pages, and nothing that a program can see.
        let advise = |advice| unsafe { mm::madvise(mapping.base.as_ptr().cast(), len, advice) };
        if inherit == Inherit::No {
            advise(Advice::LinuxDontFork)?;
        }
        // Best effort both: kernels may be built without either.
        let _ = advise(Advice::LinuxDontDump);
        let _ = advise(Advice::LinuxHugepage);
        Ok(mapping)
    }

    /// Whether core files of the process hold `len` bytes at `offset`, whole pages; best effort,
    /// nothing for what is not within the mapping.
    pub fn dump(&self, offset: usize, len: usize, wanted: bool) {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return;
        }
        let advice = if wanted { Advice::LinuxDoDump } else { Advice::LinuxDontDump };
        let start = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: the range is within the mapping; the advice changes what a core file copies.
        let _ = unsafe { mm::madvise(start.cast(), len, advice) };
    }

    /// Puts memory behind `len` bytes at `offset`, whole pages, in huge pages where this kernel grants
    /// them to mappings that ask ([`Mapping::shared`] asks) and not to [`reserve`]. Best effort;
    /// [`reserve`] has to follow. Contents stay as they are.
    pub fn populate(&self, offset: usize, len: usize) {
        if offset.checked_add(len).is_none_or(|end| end > self.len) || !asks_for_huge_pages() {
            return;
        }
        let start = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: the range is within the mapping; its bytes are not changed. Where memory has run
        // out the answer is an error and no signal.
        let _ = unsafe { mm::madvise(start.cast(), len, Advice::LinuxPopulateWrite) };
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
        assert!(Mapping::shared(fd.as_fd(), 0, 4096, Inherit::No).is_err());
        let fd = create_sealed("typepack-test", 4096).expect("memfd");
        assert!(Mapping::shared(fd.as_fd(), 0, 4097, Inherit::No).is_err());
        let map = Mapping::shared(fd.as_fd(), 0, 4096, Inherit::No).expect("mapping");
        assert_eq!(map.base().as_ptr() as usize % 4096, 0);
        for (offset, len) in [(4096, 1), (1, 4096), (u64::MAX, 4096), (0, 0)] {
            assert!(Mapping::shared(fd.as_fd(), offset, len, Inherit::Yes).is_err());
        }
    }

    #[test]
    fn what_is_given_back_reads_as_zeros() {
        let fd = create_sealed("typepack-test", 8192).expect("memfd");
        reserve(fd.as_fd(), 0, 8192).expect("room");
        let map = Mapping::shared(fd.as_fd(), 4096, 4096, Inherit::Yes).expect("mapping");
        // SAFETY: the mapping is a page long and nobody else's.
        unsafe {
            map.base().write(7);
            give_back(fd.as_fd(), 0, 4096).expect("a hole");
            assert_eq!(map.base().read(), 7);
            give_back(fd.as_fd(), 4096, 4096).expect("a hole");
            assert_eq!(map.base().read(), 0);
        }
        assert_eq!(fs::fstat(&fd).expect("a size").st_size, 8192);
    }
}
