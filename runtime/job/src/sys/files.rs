//! Data files: opening, positioned and sequential transfers, sizes, space and syncing.
//!
//! The runtime's `io/` uses this file for the files of the program (MPI-IO). All calls go through a
//! [`Table`] of functions. The functions of the table make the system calls; a test may replace entries
//! ([`replace`]) to inject errors and short transfers. A test cannot do this by preloading a library, because
//! rustix makes most of the system calls without libc.
//!
//! If a signal interrupts a call, the functions of this file repeat the call, except for [`close`]. If a call
//! transfers only a part of the data, they call again for the rest. A call that extends a file
//! beyond the limit of the process (`RLIMIT_FSIZE`) sends the signal SIGXFSZ to the thread.
//! [`SizeSignal`] blocks this signal, so that the thread sees only the error `EFBIG`.

use super::mapped::FileMapping;
use super::signal::Withheld;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{self, FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::RwLock;
use std::time::Duration;

/// The most bytes that Linux transfers in one call.
const MOST: usize = 0x7fff_f000;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file. Transfers have positions, and the file has a size.
    Regular,
    /// A block device. Transfers have positions, and the size never changes.
    Block,
    /// A directory.
    Directory,
    /// A pipe, a socket or a character device: data is read and written in sequence.
    Stream,
}

/// The facts about an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What the file is.
    pub kind: FileKind,
    /// The size in bytes.
    pub size: u64,
    /// The number of the file system and the number of the file there. Two descriptors are descriptors of
    /// the same file if both numbers are equal.
    pub identity: (u64, u64),
}

impl Facts {
    /// Returns the facts in the kernel's description of a file. A block device has size 0 there.
    fn of(stat: &fs::Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileKind::Regular,
            FileType::BlockDevice => FileKind::Block,
            FileType::Directory => FileKind::Directory,
            _ => FileKind::Stream,
        };
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        Self { kind, size, identity: (stat.st_dev, stat.st_ino) }
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The program reads the file.
    pub read: bool,
    /// The program writes the file.
    pub write: bool,
    /// The call makes the file if the file does not exist.
    pub create: bool,
    /// The call fails if the file exists already. Has an effect only together with `create`.
    pub exclusive: bool,
    /// The permissions of a new file, before the process's mask.
    pub mode: u32,
    /// The call does not wait for another process: for the other end of a pipe, or for a device.
    pub nonblocking: bool,
}

/// The order in which a program reads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing is known.
    Unknown,
    /// From the beginning to the end.
    Sequential,
    /// No order.
    Random,
}

/// The system calls on files. A call that transfers data returns the number of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Opens a file. The name is relative to the folder.
    pub open: fn(BorrowedFd<'_>, &CStr, Access) -> io::Result<OwnedFd>,
    /// Opens a folder, to find names in it.
    pub folder: fn(&CStr) -> io::Result<OwnedFd>,
    /// Closes a file.
    pub close: fn(OwnedFd) -> io::Result<()>,
    /// Removes a file from its folder. The name is relative to the folder.
    pub unlink: fn(BorrowedFd<'_>, &CStr) -> io::Result<()>,
    /// Returns the facts about what has a name in a folder. A symbolic link is not followed.
    pub entry: fn(BorrowedFd<'_>, &CStr) -> io::Result<Facts>,
    /// Returns the facts about the file that a name means.
    pub lookup: fn(&CStr) -> io::Result<Facts>,
    /// Returns the path that a symbolic link contains. The error is `EINVAL` if the file is no symbolic link.
    pub link: fn(&CStr) -> io::Result<CString>,
    /// Returns the facts about a file.
    pub stat: fn(BorrowedFd<'_>) -> io::Result<Facts>,
    /// Reads bytes at a position of a file into memory. The caller guarantees that the memory is writable.
    pub pread: unsafe fn(BorrowedFd<'_>, *mut u8, usize, u64) -> io::Result<usize>,
    /// Writes bytes from memory at a position of a file. The caller guarantees that the memory is readable.
    pub pwrite: unsafe fn(BorrowedFd<'_>, *const u8, usize, u64) -> io::Result<usize>,
    /// Reads the next bytes of a stream into memory. The caller guarantees that the memory is writable.
    pub read: unsafe fn(BorrowedFd<'_>, *mut u8, usize) -> io::Result<usize>,
    /// Writes the next bytes of a stream from memory. The caller guarantees that the memory is readable.
    pub write: unsafe fn(BorrowedFd<'_>, *const u8, usize) -> io::Result<usize>,
    /// Sets the size of a file.
    pub truncate: fn(BorrowedFd<'_>, u64) -> io::Result<()>,
    /// Allocates space for a range of a file, and extends the file if the range reaches beyond the end of the file.
    pub allocate: fn(BorrowedFd<'_>, u64, u64) -> io::Result<()>,
    /// Allocates space for a range of a file. The size of the file does not change.
    pub reserve: fn(BorrowedFd<'_>, u64, u64) -> io::Result<()>,
    /// Brings all data and the size of a file to the storage device.
    pub sync: fn(BorrowedFd<'_>) -> io::Result<()>,
    /// Returns the position of the first hole of a file at or after a given position. The end of the file counts as a
    /// hole.
    pub hole: fn(BorrowedFd<'_>, u64) -> io::Result<u64>,
    /// Returns the number that identifies the type of a file's file system (`f_type` of `statfs(2)`).
    pub system: fn(BorrowedFd<'_>) -> io::Result<u64>,
    /// Tells the kernel in which order the program reads a file.
    pub advise: fn(BorrowedFd<'_>, Order) -> io::Result<()>,
    /// Makes reads and writes of a stream return at once, with `EAGAIN` if they cannot move data.
    pub nonblocking: fn(BorrowedFd<'_>) -> io::Result<()>,
    /// Waits until a stream has data to read or, if the second argument is true, can take data. Returns false if
    /// neither happens within the given time; `None` means no limit.
    pub poll: fn(BorrowedFd<'_>, bool, Option<Duration>) -> io::Result<bool>,
    /// Maps bytes of a file from a position on. The last argument says whether the memory can be written.
    pub map: fn(BorrowedFd<'_>, u64, usize, bool) -> io::Result<FileMapping>,
}

static TABLE: RwLock<Table> = RwLock::new(Table::SYSTEM);

/// Replaces the system calls on files, for tests. [`Table::SYSTEM`] restores the real ones.
///
/// # Safety
///
/// - The functions of `table` keep the promises of the system calls: they write at most the given number of
///   bytes to memory, and return at most this number.
pub unsafe fn replace(table: Table) {
    *TABLE.write().unwrap_or_else(std::sync::PoisonError::into_inner) = table;
}

fn table() -> Table {
    *TABLE.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Table {
    /// The system calls themselves.
    pub const SYSTEM: Self = Self {
        open: |folder, path, access| {
            let mut flags = match (access.read, access.write) {
                (true, true) => OFlags::RDWR,
                (false, true) => OFlags::WRONLY,
                _ => OFlags::RDONLY,
            } | OFlags::CLOEXEC
                | OFlags::NOCTTY;
            flags.set(OFlags::CREATE, access.create);
            flags.set(OFlags::EXCL, access.create && access.exclusive);
            flags.set(OFlags::NONBLOCK, access.nonblocking);
            Ok(fs::openat(folder, path, flags, Mode::from_raw_mode(access.mode))?)
        },
        folder: |path| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(fs::open(path, flags, Mode::empty())?)
        },
        close: |fd| {
            use std::os::fd::IntoRawFd;
            let raw = fd.into_raw_fd();
            // SAFETY: `raw` comes from an `OwnedFd` that gave up its ownership, so nobody else closes the
            // descriptor. After this call nobody uses the number, not even if the call fails: Linux frees
            // the number in any case.
            if unsafe { libc::close(raw) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        },
        unlink: |folder, path| Ok(fs::unlinkat(folder, path, fs::AtFlags::empty())?),
        entry: |folder, name| {
            Ok(Facts::of(&fs::statat(folder, name, fs::AtFlags::SYMLINK_NOFOLLOW)?))
        },
        lookup: |path| Ok(Facts::of(&fs::stat(path)?)),
        link: |path| Ok(fs::readlink(path, Vec::new())?),
        stat: |fd| {
            let facts = Facts::of(&fs::fstat(fd)?);
            let size = match facts.kind {
                // The kernel does not report the size of a block device in `stat`, but a seek to the end returns it.
                // The seek moves the offset of the descriptor, which no other call here uses.
                FileKind::Block => fs::seek(fd, fs::SeekFrom::End(0))?,
                _ => facts.size,
            };
            Ok(Facts { size, ..facts })
        },
        pread: |fd, memory, bytes, at| {
            use std::os::fd::AsRawFd;
            let at = position(at)?;
            // SAFETY: the caller guarantees that `bytes` bytes at `memory` are writable (`Table::pread`).
            let done = unsafe { libc::pread64(fd.as_raw_fd(), memory.cast(), bytes, at) };
            usize::try_from(done).map_err(|_| io::Error::last_os_error())
        },
        pwrite: |fd, memory, bytes, at| {
            // SAFETY: the caller guarantees that `bytes` bytes at `memory` are readable (`Table::pwrite`),
            // and the slice lives only until the call returns.
            let memory = unsafe { std::slice::from_raw_parts(memory, bytes) };
            Ok(rustix::io::pwrite(fd, memory, at)?)
        },
        read: |fd, memory, bytes| {
            use std::os::fd::AsRawFd;
            // SAFETY: the caller guarantees that `bytes` bytes at `memory` are writable (`Table::read`).
            let done = unsafe { libc::read(fd.as_raw_fd(), memory.cast(), bytes) };
            usize::try_from(done).map_err(|_| io::Error::last_os_error())
        },
        write: |fd, memory, bytes| {
            // SAFETY: the caller guarantees that `bytes` bytes at `memory` are readable (`Table::write`),
            // and the slice lives only until the call returns.
            let memory = unsafe { std::slice::from_raw_parts(memory, bytes) };
            Ok(rustix::io::write(fd, memory)?)
        },
        truncate: |fd, size| Ok(fs::ftruncate(fd, size)?),
        allocate: |fd, at, bytes| Ok(fs::fallocate(fd, FallocateFlags::empty(), at, bytes)?),
        reserve: |fd, at, bytes| Ok(fs::fallocate(fd, FallocateFlags::KEEP_SIZE, at, bytes)?),
        sync: |fd| Ok(fs::fsync(fd)?),
        hole: |fd, at| Ok(fs::seek(fd, fs::SeekFrom::Hole(at))?),
        system: |fd| Ok(fs::fstatfs(fd)?.f_type as u64 & 0xffff_ffff),
        advise: |fd, order| {
            let advice = match order {
                Order::Unknown => fs::Advice::Normal,
                Order::Sequential => fs::Advice::Sequential,
                Order::Random => fs::Advice::Random,
            };
            Ok(fs::fadvise(fd, 0, None, advice)?)
        },
        nonblocking: |fd| {
            let flags = fs::fcntl_getfl(fd)?;
            Ok(fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
        },
        poll: |fd, write, longest| {
            let wanted = if write { PollFlags::OUT } else { PollFlags::IN };
            let longest = longest.map(Timespec::try_from).transpose().map_err(|_| Errno::INVAL)?;
            // If a stream has ended or failed, `poll` reports it as ready, and the next transfer returns the end or the
            // error.
            Ok(poll(&mut [PollFd::from_borrowed_fd(fd, wanted)], longest.as_ref())? > 0)
        },
        map: FileMapping::new,
    };
}

fn position(at: u64) -> io::Result<i64> {
    i64::try_from(at).map_err(|_| Errno::INVAL.into())
}

/// Calls `call` again as long as a signal interrupts it.
pub(super) fn retried<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Opens a file.
///
/// # Errors
/// Returns the kernel's error.
pub fn open(path: &CStr, access: Access) -> io::Result<OwnedFd> {
    open_at(fs::CWD, path, access)
}

/// Opens a file whose name is relative to a folder.
///
/// # Errors
/// Returns the kernel's error.
pub fn open_at(folder: BorrowedFd<'_>, path: &CStr, access: Access) -> io::Result<OwnedFd> {
    let table = table();
    retried(|| (table.open)(folder, path, access))
}

/// Opens a folder, to find names in it ([`Entry`](super::named::Entry)).
///
/// # Errors
/// Returns the kernel's error.
pub fn folder(path: &CStr) -> io::Result<OwnedFd> {
    let table = table();
    retried(|| (table.folder)(path))
}

/// Returns the facts about what has a name in a folder. A symbolic link is not followed.
///
/// # Errors
/// Returns the kernel's error.
pub fn entry(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<Facts> {
    let table = table();
    retried(|| (table.entry)(folder, name))
}

/// Closes a file. The descriptor is closed even if the call returns an error.
///
/// # Errors
/// Returns the kernel's error, for example `EIO` if the kernel could not write earlier data.
pub fn close(fd: OwnedFd) -> io::Result<()> {
    match (table().close)(fd) {
        // Linux closes the descriptor before a signal can interrupt the call, so there is nothing to repeat.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        closed => closed,
    }
}

/// Removes a file from its folder. The data of the file lives until the last descriptor is closed.
///
/// # Errors
/// Returns the kernel's error.
pub fn unlink(path: &CStr) -> io::Result<()> {
    unlink_at(fs::CWD, path)
}

/// Removes a file whose name is relative to a folder.
///
/// # Errors
/// Returns the kernel's error.
pub fn unlink_at(folder: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    let table = table();
    retried(|| (table.unlink)(folder, path))
}

/// Returns the facts about the file that a name means. The size of a block device is 0 here.
///
/// # Errors
/// Returns the kernel's error.
pub fn lookup(path: &CStr) -> io::Result<Facts> {
    let table = table();
    retried(|| (table.lookup)(path))
}

/// Returns the path that the symbolic link `path` contains; `None` if the file exists and is no symbolic link.
///
/// # Errors
/// Returns the kernel's error.
pub fn link(path: &CStr) -> io::Result<Option<CString>> {
    let table = table();
    match retried(|| (table.link)(path)) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
        name => name.map(Some),
    }
}

/// Tells the kernel in which order the program reads a file, so that the kernel reads ahead more or less.
///
/// # Errors
/// Returns the kernel's error. A caller may ignore the error, because the advice changes only the speed of reads.
pub fn advise(fd: &impl AsFd, order: Order) -> io::Result<()> {
    let table = table();
    retried(|| (table.advise)(fd.as_fd(), order))
}

/// Returns the facts about an open file.
///
/// # Errors
/// Returns the kernel's error.
pub fn facts(fd: &impl AsFd) -> io::Result<Facts> {
    let table = table();
    retried(|| (table.stat)(fd.as_fd()))
}

/// Sets the size of a file. New bytes are zero.
///
/// # Errors
/// Returns the kernel's error.
pub fn truncate(fd: &impl AsFd, size: u64) -> io::Result<()> {
    let table = table();
    retried(|| (table.truncate)(fd.as_fd(), size))
}

/// Allocates space for the first `size` bytes of a file, and extends the file if it is shorter.
///
/// # Errors
/// Returns the kernel's error, for example `ENOSPC` if the file system is full, or `EOPNOTSUPP` if the file
/// system cannot allocate space in advance.
pub fn allocate(fd: &impl AsFd, size: u64) -> io::Result<()> {
    let table = table();
    retried(|| (table.allocate)(fd.as_fd(), 0, size))
}

/// Allocates space for `bytes` bytes of a file from byte `at` on. The size of the file does not change.
///
/// # Errors
/// Returns the kernel's error, for example `ENOSPC` if the file system is full, or `EOPNOTSUPP` if the file
/// system cannot allocate space in advance.
pub fn reserve(fd: &impl AsFd, at: u64, bytes: u64) -> io::Result<()> {
    let table = table();
    retried(|| (table.reserve)(fd.as_fd(), at, bytes))
}

/// Returns the position of the first hole of a file at or after the position `at`. All bytes between `at` and the hole
/// have data or allocated space. The end of the file counts as a hole. If the kernel returns an error, for example
/// because `at` is not before the end of the file, the result is `at`.
pub fn filled_until(fd: &impl AsFd, at: u64) -> u64 {
    let table = table();
    retried(|| (table.hole)(fd.as_fd(), at)).map_or(at, |hole| hole.max(at))
}

/// Returns whether a file is on a file system of this machine whose files can be mapped and whose page cache
/// only this machine changes. Returns false for a file system that this function does not know.
pub fn is_local(fd: &impl AsFd) -> bool {
    /// The numbers by which the kernel identifies ext2 to ext4, XFS, Btrfs, tmpfs, F2FS and overlayfs.
    const LOCAL: [u64; 6] =
        [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010, 0x794c_7630];
    let table = table();
    retried(|| (table.system)(fd.as_fd())).is_ok_and(|found| LOCAL.contains(&found))
}

/// Brings all data and the size of a file to the storage device.
///
/// # Errors
/// Returns the kernel's error. The kernel reports an error once per open descriptor.
pub fn sync(fd: &impl AsFd) -> io::Result<()> {
    let table = table();
    retried(|| (table.sync)(fd.as_fd()))
}

/// Maps `len` bytes of a file from byte `at` on; see [`FileMapping::new`].
///
/// # Errors
/// Returns the errors of [`FileMapping::new`].
pub fn map(fd: &impl AsFd, at: u64, len: usize, writable: bool) -> io::Result<FileMapping> {
    let table = table();
    retried(|| (table.map)(fd.as_fd(), at, len, writable))
}

/// The result of a transfer: the number of bytes that it moved, and the error that ended it, or `Ok` if no error did.
pub type Moved = (u64, io::Result<()>);

/// Calls `step` with the number of bytes that are done and the number of bytes that the next call may move,
/// until all `bytes` are done, or `step` returns 0 or an error.
fn moved(bytes: u64, mut step: impl FnMut(u64, usize) -> io::Result<usize>) -> Moved {
    let mut done = 0;
    while done < bytes {
        let next = (bytes - done).min(MOST as u64) as usize;
        match retried(|| step(done, next)) {
            Ok(0) => break,
            Ok(now) => done += now as u64,
            Err(error) => return (done, Err(error)),
        }
    }
    (done, Ok(()))
}

/// Reads at most `bytes` bytes at position `at`. The transfer moves fewer bytes only if the file ends or a call fails.
///
/// # Safety
///
/// - `bytes` bytes at `memory` are writable, and nobody else accesses them until the call returns.
pub unsafe fn read_at(fd: &impl AsFd, memory: *mut u8, bytes: u64, at: u64) -> Moved {
    let table = table();
    moved(bytes, |done, next| {
        // SAFETY: `done + next` is at most `bytes`, so the caller guarantees that these bytes are writable
        // (the condition of `# Safety`).
        unsafe { (table.pread)(fd.as_fd(), memory.wrapping_add(done as usize), next, at + done) }
    })
}

/// Writes `bytes` bytes at position `at`. If the transfer moves fewer bytes, its result has an error.
///
/// # Safety
///
/// - `bytes` bytes at `memory` are readable, and nobody changes them until the call returns.
pub unsafe fn write_at(fd: &impl AsFd, memory: *const u8, bytes: u64, at: u64) -> Moved {
    let table = table();
    let moved = moved(bytes, |done, next| {
        // SAFETY: `done + next` is at most `bytes`, so the caller guarantees that these bytes are readable
        // (the condition of `# Safety`).
        unsafe { (table.pwrite)(fd.as_fd(), memory.wrapping_add(done as usize), next, at + done) }
    });
    whole(moved, bytes)
}

/// Returns `moved`, with an error added if the write has moved fewer than `bytes` bytes although no call failed.
fn whole(moved: Moved, bytes: u64) -> Moved {
    match moved {
        (done, Ok(())) if done < bytes => (done, Err(io::ErrorKind::WriteZero.into())),
        moved => moved,
    }
}

/// Makes transfers of a stream return `EAGAIN` if they would have to wait. Then [`ready`] waits for the stream.
///
/// # Errors
/// Returns the kernel's error.
pub fn set_nonblocking(fd: &impl AsFd) -> io::Result<()> {
    let table = table();
    retried(|| (table.nonblocking)(fd.as_fd()))
}

/// Waits until a stream has data (`write` is false) or takes data (`write` is true), but not longer than `longest`;
/// `None` means no limit. Returns whether the stream is ready. A stream that has ended is ready.
///
/// # Errors
/// Returns the kernel's error.
pub fn ready(fd: &impl AsFd, write: bool, longest: Option<Duration>) -> io::Result<bool> {
    let table = table();
    retried(|| (table.poll)(fd.as_fd(), write, longest))
}

/// Reads at most `bytes` bytes from a stream. The transfer moves fewer bytes without an error only if the stream ends.
/// The error is `EAGAIN` if the stream does not wait ([`set_nonblocking`]) and has no more data now.
///
/// # Safety
///
/// - `bytes` bytes at `memory` are writable, and nobody else accesses them until the call returns.
pub unsafe fn read_stream(fd: &impl AsFd, memory: *mut u8, bytes: u64) -> Moved {
    let table = table();
    moved(bytes, |done, next| {
        // SAFETY: `done + next` is at most `bytes`, and the caller guarantees that `bytes` bytes are
        // writable (the condition of `# Safety`).
        unsafe { (table.read)(fd.as_fd(), memory.wrapping_add(done as usize), next) }
    })
}

/// Writes `bytes` bytes to a stream. If the transfer moves fewer bytes, its result has an error, for example
/// `EAGAIN` if the stream does not wait ([`set_nonblocking`]) and takes no more data now. If nobody reads the stream
/// any more, the error is `EPIPE`, and the thread does not get the signal SIGPIPE.
///
/// # Safety
///
/// - `bytes` bytes at `memory` are readable, and nobody changes them until the call returns.
pub unsafe fn write_stream(fd: &impl AsFd, memory: *const u8, bytes: u64) -> Moved {
    let table = table();
    let _signal = Withheld::new(libc::SIGPIPE);
    let moved = moved(bytes, |done, next| {
        // SAFETY: `done + next` is at most `bytes`, and the caller guarantees that `bytes` bytes are
        // readable (the condition of `# Safety`).
        unsafe { (table.write)(fd.as_fd(), memory.wrapping_add(done as usize), next) }
    });
    whole(moved, bytes)
}

/// While this value lives, the thread does not get the signal SIGXFSZ: a call that exceeds the limit for the
/// size of files only returns `EFBIG`.
#[derive(Debug)]
pub struct SizeSignal {
    _withheld: Option<Withheld>,
}

impl SizeSignal {
    /// Blocks the signal in this thread if the process has a limit for the size of files.
    pub fn block() -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
        Self { _withheld: limit.current.map(|_| Withheld::new(libc::SIGXFSZ)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    fn path(name: &str) -> (PathBuf, CString) {
        let path = std::env::temp_dir().join(format!("typepack-{name}-{}", std::process::id()));
        let text = CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
        (path, text)
    }

    const NEW: Access = Access {
        read: true,
        write: true,
        create: true,
        exclusive: true,
        mode: 0o600,
        nonblocking: true,
    };

    #[test]
    fn data_are_written_and_read() {
        let (file, name) = path("files");
        let fd = open(&name, NEW).expect("a new file");
        assert_eq!(open(&name, NEW).unwrap_err().raw_os_error(), Some(libc::EEXIST));
        let data: Vec<u8> = (1..=150).collect();
        // SAFETY: `data` has 150 bytes, and only this test uses them.
        let (done, result) = unsafe { write_at(&fd, data.as_ptr(), 150, 7) };
        result.expect("written");
        assert_eq!((done, facts(&fd).expect("facts").size), (150, 157));
        let mut back = [9u8; 200];
        // SAFETY: `back` has 200 bytes, and only this test uses them.
        let (done, result) = unsafe { read_at(&fd, back.as_mut_ptr(), 200, 0) };
        result.expect("read");
        assert_eq!(done, 157);
        assert_eq!((&back[..7], &back[7..157]), (&[0; 7][..], &data[..]));
        assert_eq!(back[157..], [9; 43]);
        truncate(&fd, 3).expect("shorter");
        allocate(&fd, 5000).expect("space");
        assert_eq!(facts(&fd).expect("facts").size, 5000);
        sync(&fd).expect("synced");
        close(fd).expect("closed");
        unlink(&name).expect("removed");
        assert!(!file.exists());
    }

    #[test]
    fn streams_have_no_size() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        assert_eq!(facts(&reader).expect("facts").kind, FileKind::Stream);
        let bytes = [5u8; 10];
        // SAFETY: `bytes` has 10 bytes, which never change.
        assert_eq!(unsafe { write_stream(&writer, bytes.as_ptr(), 10) }.0, 10);
        drop(writer);
        let mut back = [0u8; 20];
        // SAFETY: `back` has 20 bytes, and only this test uses them.
        let (done, result) = unsafe { read_stream(&reader, back.as_mut_ptr(), 20) };
        result.expect("read");
        assert_eq!((done, &back[..10]), (10, &bytes[..]));
    }

    #[test]
    fn a_stream_that_nobody_reads_is_an_error_and_no_signal() {
        // The Rust runtime ignores SIGPIPE, but a program in C does not. So test with the default action.
        crate::sys::signal::restore(libc::SIGPIPE);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        // SAFETY: the array has one byte, which lives until the call returns and never changes.
        let (done, result) = unsafe { write_stream(&writer, [1u8].as_ptr(), 1) };
        assert_eq!((done, result.expect_err("no reader").raw_os_error()), (0, Some(libc::EPIPE)));
        // SAFETY: SIG_IGN only makes the process ignore the signal, as before this test.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    }

    #[test]
    fn block_devices_have_a_size_and_are_no_regular_files() {
        let devices = std::fs::read_dir("/sys/class/block").expect("the kernel's list");
        let mut seen = 0;
        for entry in devices.flatten() {
            let sectors = std::fs::read_to_string(entry.path().join("size")).unwrap_or_default();
            let Ok(sectors) = sectors.trim().parse::<u64>() else { continue };
            let path = std::path::Path::new("/dev").join(entry.file_name());
            let Ok(file) = std::fs::File::open(path) else { continue };
            let facts = facts(&file).expect("facts");
            assert_eq!((facts.kind, facts.size), (FileKind::Block, sectors * 512));
            seen += 1;
        }
        println!("{seen} block devices could be opened");
    }
}
