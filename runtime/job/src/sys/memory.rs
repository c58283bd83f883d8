//! Memory that processes share: creates a sealed memfd (an anonymous file in memory), maps parts of it, and
//! allocates memory for its pages. Also maps large blocks of private memory ([`Private`]).
//!
//! `shm/` uses this file. A memfd has no name in a file system. So it cannot collide with another
//! program's file, it does not remain after a SIGKILL, and the size of `/dev/shm` does not limit it. This
//! file (`memory.rs`) guarantees to safe callers that a [`Mapping`] stays mapped, readable and writable as
//! long as it lives, and that its memfd cannot become shorter than the mapping.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use rustix::fs::{self, FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, ProtFlags};

use super::fork;

/// The seals that `create_sealed` puts on a file. With them no process can change the size of the file or
/// remove the seals.
const SEALS: SealFlags = SealFlags::GROW.union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// Creates an anonymous file of `len` bytes, and seals its size. The whole file is a hole, so it uses no
/// memory yet.
///
/// The descriptor is close-on-exec. `name` appears only in files of `/proc`, such as `/proc/PID/maps`.
///
/// # Errors
///
/// Returns the kernel's error, for example if the kernel does not support files of `len` bytes.
pub fn create_sealed(name: &str, len: u64) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Systems with vm.memfd_noexec=2 require the flag NOEXEC_SEAL. Kernels before 6.3 refuse the flag, so try again
    // without it.
    let fd = match fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => fs::memfd_create(name, flags)?,
        other => other?,
    };
    fs::ftruncate(&fd, len)?;
    fs::fcntl_add_seals(&fd, SEALS)?;
    Ok(fd)
}

/// Returns the size in bytes of a file made by [`create_sealed`], or `None` if `fd` is any other file.
///
/// # Errors
///
/// Returns `EBADF` if the descriptor is not open.
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

/// Returns the number of a file of [`create_sealed`], which no other such file has at the same time. Returns 0 if `fd` is
/// not open.
pub fn file_number(fd: BorrowedFd<'_>) -> u64 {
    fs::fstat(fd).map_or(0, |found| found.st_ino)
}

/// Allocates memory for `len` bytes at `offset` of a memfd.
///
/// If a process accesses a hole for which this function was not called, and the system has no memory for the
/// hole, the process gets a SIGBUS in the middle of a copy. This function returns an error instead. If the
/// range already has memory, a call costs one lookup in the page cache per page.
///
/// # Errors
///
/// Returns the kernel's error: `ENOSPC` or `ENOMEM` if memory has run out, often because of a container's limit.
pub fn reserve(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    loop {
        match fs::fallocate(fd, FallocateFlags::empty(), offset, len) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Returns the memory of `len` bytes at `offset` of a memfd to the system. Afterwards these bytes are zero.
///
/// # Errors
///
/// Returns the kernel's error; the call does not fail for a range within the file.
pub fn give_back(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    loop {
        match fs::fallocate(fd, flags, offset, len) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Gives the memory that the C library's allocator keeps for later back to the system. Does nothing if the C library
/// is not glibc.
pub fn give_back_freed() {
    // SAFETY: `malloc_trim` may be called in any thread at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Returns true if the kernel uses huge pages for shared memory only in mappings that ask for them.
fn asks_for_huge_pages() -> bool {
    static ASKS: OnceLock<bool> = OnceLock::new();
    *ASKS.get_or_init(|| {
        let file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
        std::fs::read_to_string(file).is_ok_and(|text| text.contains("[advise]"))
    })
}

/// Returns the number of bytes of a memfd that have memory, as far as the kernel tells it, else 0.
pub fn resident(fd: BorrowedFd<'_>) -> u64 {
    let blocks = fs::fstat(fd).map_or(0, |stat| stat.st_blocks);
    u64::try_from(blocks).unwrap_or(0).saturating_mul(512)
}

/// A block of private memory, whose pages have no memory before they are first touched. Dropping the value unmaps the
/// block. A child of a `fork` gets a copy of the block, as of all private memory.
#[derive(Debug)]
pub struct Private {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to the thread that made it. The bytes are accessed only through raw
// pointers, whose users are responsible for races.
unsafe impl Send for Private {}
// SAFETY: the methods only read `base` and `len`, which never change.
unsafe impl Sync for Private {}

impl Private {
    /// Maps `len` bytes, all zero. If `populate`, all pages get memory at once.
    ///
    /// # Errors
    ///
    /// Returns `InvalidInput` if `len` is 0, and otherwise the kernel's error, for example `ENOMEM` if the address
    /// space is limited and has run out.
    pub fn new(len: usize, populate: bool) -> io::Result<Self> {
        if len == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let now = if populate { MapFlags::POPULATE } else { MapFlags::empty() };
        let flags = MapFlags::PRIVATE | now;
        // SAFETY: with a null hint the kernel chooses the address, so the call replaces no existing mapping.
        // The value below owns the new mapping.
        let base = unsafe { mm::mmap_anonymous(ptr::null_mut(), len, prot, flags) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { base, len })
    }

    /// Returns the address of the first byte, a multiple of the page size.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a block is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of bytes, in whole pages, that have memory. If the kernel does not tell it, all have.
    pub fn resident(&self) -> u64 {
        const PAGES: usize = 1 << 16;
        let page = rustix::param::page_size();
        let mut flags = vec![0_u8; PAGES.min(self.len.div_ceil(page))];
        let mut found = 0;
        for start in (0..self.len).step_by(PAGES * page) {
            let len = (self.len - start).min(PAGES * page);
            let at = self.base.as_ptr().wrapping_add(start).cast();
            // SAFETY: the range lies within the mapping and begins at a page, and `flags` has a byte for each of its
            // pages. The call changes no memory but `flags`.
            if unsafe { libc::mincore(at, len, flags.as_mut_ptr()) } != 0 {
                return self.len as u64;
            }
            found += flags[..len.div_ceil(page)].iter().filter(|flag| **flag & 1 != 0).count();
        }
        (found * page) as u64
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // SAFETY: `base` and `len` come from mmap, and nothing else unmaps them. Code that accesses the memory
        // through a pointer must keep this value alive until the last access. The call cannot fail for such a
        // range; if it did, only address space would be lost.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Says whether the child of a `fork` inherits a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// The child does not have the mapping. Used for memory of the job that the child of a rank must not
    /// touch.
    No,
    /// The child has the mapping and shares the memory with the parent, but can only read it (`fork.rs`). Used
    /// for memory that holds the rank's own data.
    ReadOnly,
}

/// A shared, writable mapping of a part of a sealed file. Dropping the value unmaps the memory.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    /// Makes the mapping read-only in forked children. `None` if children do not inherit the mapping.
    guard: Option<fork::Guard>,
}

// SAFETY: a mapping belongs to the process, not to the thread that made it. The bytes are accessed only by
// atomics, or through raw pointers whose users are responsible for races.
unsafe impl Send for Mapping {}
// SAFETY: the methods only read `base` and `len`, which never change.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes at `offset` of `fd`, with huge pages if the system grants them. `offset` is a
    /// multiple of the page size. Core files of the process do not contain the mapping, because the mapping
    /// consists mostly of holes, and writing it to a core file would fill the holes with memory.
    /// [`Mapping::dump`] changes this for a part of the mapping.
    ///
    /// # Errors
    ///
    /// Returns `InvalidInput` if the file is not sealed or is too short, or if `len` is 0. Returns the
    /// kernel's error if the kernel refuses the mapping, for example `ENOMEM` if the address space is
    /// limited and has run out.
    pub fn shared(
        fd: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        inherit: Inherit,
    ) -> io::Result<Self> {
        // The safe methods of `Mapping` are sound only if the file can never become shorter than the mapping.
        // So this function checks the seals itself and does not rely on its caller.
        let sealed = sealed_len(fd)?.unwrap_or(0);
        if len == 0 || offset.checked_add(len as u64).is_none_or(|end| sealed < end) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: with a null hint the kernel chooses the address, so the call replaces no existing mapping.
        // The `Mapping` below owns the new mapping.
        let base = unsafe { mm::mmap(ptr::null_mut(), len, prot, MapFlags::SHARED, fd, offset) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mut mapping = Self { base, len, guard: None };
        // SAFETY: the range is exactly the mapping made above. The advice changes what core files and forks
        // contain and how large the pages are, but it changes no byte that the program can see.
        let advise = |advice| unsafe { mm::madvise(base.as_ptr().cast(), len, advice) };
        // No child inherits the mapping before the guard exists, because the child could write to it.
        advise(Advice::LinuxDontFork)?;
        if inherit == Inherit::ReadOnly {
            // SAFETY: the range is the mapping made above, and `Drop` unmaps it after it has dropped the guard.
            mapping.guard = unsafe { fork::protect(base.as_ptr(), len) };
            if mapping.guard.is_some() {
                advise(Advice::LinuxDoFork)?;
            }
        }
        // A kernel may be built without support for one or both of these kinds of advice, so ignore errors.
        let _ = advise(Advice::LinuxDontDump);
        let _ = advise(Advice::LinuxHugepage);
        Ok(mapping)
    }

    /// Sets whether core files of the process contain `len` bytes at `offset`, in whole pages. Errors are
    /// ignored, and the function does nothing if the range is not within the mapping.
    pub fn dump(&self, offset: usize, len: usize, wanted: bool) {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return;
        }
        let advice = if wanted { Advice::LinuxDoDump } else { Advice::LinuxDontDump };
        let start = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: the range lies within the mapping (checked above), and the advice only changes what core
        // files contain.
        let _ = unsafe { mm::madvise(start.cast(), len, advice) };
    }

    /// Allocates memory for `len` bytes at `offset`, in whole pages, and uses huge pages for it. The content
    /// of the memory does not change. The function does nothing unless this kernel uses huge pages only in
    /// mappings that ask for them. [`Mapping::shared`] asks for them, but [`reserve`] works on the file and
    /// not on the mapping, and would get small pages. Errors are ignored, so the caller must call [`reserve`]
    /// afterwards.
    pub fn populate(&self, offset: usize, len: usize) {
        if offset.checked_add(len).is_none_or(|end| end > self.len) || !asks_for_huge_pages() {
            return;
        }
        // The kernel wants the start of a page, and rounds the length up itself. The mapping begins at a page.
        let rest = offset % rustix::param::page_size();
        let start = self.base.as_ptr().wrapping_add(offset - rest);
        // SAFETY: the range lies within the pages of the mapping (checked above), and the advice changes no byte. If
        // there is no memory, the call returns an error; it sends no signal.
        let _ = unsafe { mm::madvise(start.cast(), len + rest, Advice::LinuxPopulateWrite) };
    }

    /// Returns the address of the mapping's first byte. The address is a multiple of the page size.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the length of the mapping in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.guard.is_some() {
            // SAFETY: the range is exactly this mapping, and the advice changes no byte. From now on no child
            // inherits the mapping, so the guard is not necessary any more.
            let _ =
                unsafe { mm::madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxDontFork) };
            self.guard = None;
        }
        // SAFETY: `base` and `len` come from mmap, and nothing else unmaps them. Code that accesses the memory
        // through a pointer must keep this value alive until the last access. The call cannot fail for such a
        // range; if it did, only address space would be lost.
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
            assert!(Mapping::shared(fd.as_fd(), offset, len, Inherit::ReadOnly).is_err());
        }
    }

    #[test]
    fn what_is_given_back_reads_as_zeros() {
        let fd = create_sealed("typepack-test", 8192).expect("memfd");
        reserve(fd.as_fd(), 0, 8192).expect("room");
        let map = Mapping::shared(fd.as_fd(), 4096, 4096, Inherit::No).expect("mapping");
        // The accesses are volatile, because the compiler does not know that `give_back` changes the page.
        // SAFETY: the mapping is one page long, and only this test uses it.
        unsafe {
            map.base().write_volatile(7);
            give_back(fd.as_fd(), 0, 4096).expect("a hole");
            assert_eq!(map.base().read_volatile(), 7);
            give_back(fd.as_fd(), 4096, 4096).expect("a hole");
            assert_eq!(map.base().read_volatile(), 0);
        }
        assert_eq!(fs::fstat(&fd).expect("a size").st_size, 8192);
    }

    #[test]
    fn private_memory_is_taken_when_it_is_touched() {
        const LEN: usize = 1 << 30;
        let block = Private::new(LEN, false).expect("address space");
        assert_eq!(block.resident(), 0);
        // SAFETY: the byte lies within the block, which only this test uses.
        unsafe { block.base().add(LEN - 1).write_volatile(7) };
        // The page may be a huge one.
        assert!((1..=2 << 20).contains(&block.resident()), "{}", block.resident());
        let full = Private::new(1 << 20, true).expect("memory");
        assert_eq!(full.resident(), 1 << 20);
        assert!(Private::new(0, false).is_err());
    }
}
