//! Reads data from the memory of another process, with `process_vm_readv`.
//!
//! `transport/protocol/private.rs` moves long messages with this call if a trial read (the probe) has shown that the
//! system allows it. Whether it does depends on user ids, namespaces, system-call filters and the Yama
//! security module, so the only reliable way to find out is to try a call. This file guarantees to safe
//! callers that [`permit`] grants access to this process's memory to no process except the named one and its
//! descendants, and [`permit_user`] to no process of another user. On systems where processes of one user may access each
//! other's memory anyway, both have no effect.
//!
//! The project never writes to the memory of another process in this way. The process id and the address of
//! such a write would come from shared memory, to which every rank of the job can write. So a third rank
//! could direct the write to any process of the user and to any address. A read with a wrong id or address
//! only yields wrong data for the message.
//!
//! The system call identifies the other process only by its id. The id of a rank is valid as long as the
//! launcher holds the rank's pidfd and has not declared the rank dead. If a rank still uses the id after
//! that, it may read another process's data, but the message for which it reads the data fails in any case.

use std::io;
use std::num::NonZeroU32;

/// Maximum number of ranges of each of the two processes in one system call (`UIO_MAXIOV`).
pub const RANGES: usize = 1024;

/// Maximum number of bytes that the kernel moves in one system call (`MAX_RW_COUNT`, with pages of 4 KiB).
const CALL: usize = 0x7fff_f000;

/// A range of memory in this process or in another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Address of the first byte.
    pub at: usize,
    /// Number of bytes.
    pub len: usize,
}

/// Permits `process` and its descendants to access the memory of this process. This permission is necessary
/// where Yama otherwise allows such access only to a process's ancestors. A rank passes the process id of the
/// launcher if all ranks are its descendants. If another launcher has started them, they are not: see [`permit_user`].
pub fn permit(process: NonZeroU32) {
    let id = libc::c_ulong::from(process.get());
    // SAFETY: PR_SET_PTRACER takes integers and touches no memory. On a system without Yama the call fails,
    // and no permission is needed there.
    let _ = unsafe { libc::prctl(libc::PR_SET_PTRACER, id, 0, 0, 0) };
}

/// Permits all processes of this user to access the memory of this process, as systems without Yama do. The ranks of a job that
/// `mpiexec` only watches have no common ancestor whose number they know.
pub fn permit_user() {
    /// `PR_SET_PTRACER_ANY` of `<linux/prctl.h>`. The kernel still compares the users of the two processes.
    const ANY: libc::c_ulong = libc::c_ulong::MAX;
    // SAFETY: as in `permit`.
    let _ = unsafe { libc::prctl(libc::PR_SET_PTRACER, ANY, 0, 0, 0) };
}

/// Copies all bytes of the ranges `theirs` of `process` to the ranges `ours` of this process. Both lists must
/// have the same total number of bytes, but may divide the bytes into ranges differently. The ranges `theirs`
/// may be arbitrary: the kernel checks them against the memory of `process`.
///
/// # Safety
///
/// - The ranges `ours` are valid for writes, and nothing else in this process uses them during the call.
///
/// # Errors
///
/// Returns the kernel's error: `EPERM` (the system does not allow the access), `ENOSYS` (the kernel does
/// not have the call, or a filter blocks it), `ESRCH` (there is no such process), or `EFAULT` (a range of
/// either process is not mapped). Returns `InvalidInput` if `process` is above 2^31 - 1. After an error,
/// any part of the bytes may have been copied.
pub unsafe fn read(process: NonZeroU32, ours: &[Range], theirs: &[Range]) -> io::Result<()> {
    let mut done = (Cursor::new(ours), Cursor::new(theirs));
    let (mut near, mut far) = (Vec::new(), Vec::new());
    loop {
        done.0.fill(&mut near);
        done.1.fill(&mut far);
        if near.is_empty() || far.is_empty() {
            return Ok(());
        }
        let (near_len, far_len) = (near.len() as libc::c_ulong, far.len() as libc::c_ulong);
        let pid = libc::pid_t::try_from(process.get()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: `near` and `far` are vectors, and their true lengths are passed to the system call. The
        // caller guarantees that the kernel may write to the ranges of this process (the only condition of
        // `# Safety`). The call only reads the memory of the other process.
        let moved = unsafe {
            libc::process_vm_readv(pid, near.as_ptr(), near_len, far.as_ptr(), far_len, 0)
        };
        let Ok(moved) = usize::try_from(moved) else {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        };
        if moved == 0 {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
        done.0.skip(moved);
        done.1.skip(moved);
    }
}

/// How far a copy has advanced through the list of ranges of one of the two processes.
struct Cursor<'a> {
    ranges: &'a [Range],
    /// Number of bytes of the first remaining range that have been copied.
    done: usize,
}

impl<'a> Cursor<'a> {
    fn new(ranges: &'a [Range]) -> Self {
        let mut cursor = Self { ranges, done: 0 };
        cursor.skip(0);
        cursor
    }

    /// Fills `vectors` with the ranges of this list that the next system call copies.
    fn fill(&self, vectors: &mut Vec<libc::iovec>) {
        vectors.clear();
        let (mut done, mut left) = (self.done, CALL);
        for range in self.ranges.iter().take(RANGES) {
            let len = (range.len - done).min(left);
            if len == 0 {
                break;
            }
            let iov_base = (range.at.wrapping_add(done)) as *mut libc::c_void;
            vectors.push(libc::iovec { iov_base, iov_len: len });
            left -= len;
            done = 0;
        }
    }

    fn skip(&mut self, mut bytes: usize) {
        while let Some((first, rest)) = self.ranges.split_first() {
            let left = first.len - self.done;
            if bytes < left {
                self.done += bytes;
                return;
            }
            bytes -= left;
            self.ranges = rest;
            self.done = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> NonZeroU32 {
        NonZeroU32::new(std::process::id()).expect("a process")
    }

    fn ranges(memory: &[u8], cuts: &[(usize, usize)]) -> Vec<Range> {
        cuts.iter().map(|&(at, len)| Range { at: memory.as_ptr() as usize + at, len }).collect()
    }

    /// Checks copies within this process, which may always access its own memory. The source and the
    /// destination divide the bytes into different numbers of ranges, in one case into more ranges than one
    /// system call accepts.
    #[test]
    fn lists_of_different_cuts_fit_together() {
        let from: Vec<u8> = (0..=255u8).cycle().take(9000).collect();
        let mut to = vec![0u8; 9000];
        let single: Vec<_> = (0..3000).map(|i| (3 * i, 1)).collect();
        let theirs = ranges(&from, &single);
        let ours = ranges(&to, &[(10, 0), (10, 2000), (3000, 1), (4000, 999), (0, 0)]);
        // SAFETY: `ours` lies in the vector `to` and `theirs` in the vector `from`. Nothing else uses the
        // vectors during the call.
        unsafe { read(me(), &ours, &theirs) }.expect("a read");
        let mut expected = vec![0u8; 9000];
        let places = (10..2010).chain([3000]).chain(4000..4999);
        for (i, place) in places.enumerate() {
            expected[place] = from[3 * i];
        }
        assert!(to == expected);
        to.clear();
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let mut to = [0u8; 16];
        let ours = [Range { at: to.as_mut_ptr() as usize, len: 16 }];
        for theirs in [Range { at: 8, len: 16 }, Range { at: usize::MAX - 7, len: 16 }] {
            // SAFETY: `ours` is a local array. For a read, the ranges `theirs` may have any address.
            let done = unsafe { read(me(), &ours, &[theirs]) };
            assert_eq!(done.expect_err("an error").raw_os_error(), Some(libc::EFAULT));
        }
        let nobody = NonZeroU32::new(i32::MAX as u32).expect("not zero");
        // SAFETY: `ours` is a local array, and there is no process with this id.
        let done = unsafe { read(nobody, &ours, &ours) };
        assert_eq!(done.expect_err("an error").raw_os_error(), Some(libc::ESRCH));
    }
}
