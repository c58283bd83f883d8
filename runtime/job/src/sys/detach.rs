//! Lets a process go on by itself, apart from the process that has started it, and finds the file of the library.
//!
//! `launcher/src/behind.rs` makes its process independent of the rank that has started it. `starter/` looks for `mpiexec`
//! near the library.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Forks this process. The parent exits with code 0; the function returns in the child, which leads a session of its own,
/// so that no signal of a terminal or of a process group of others reaches it. The process must have one thread.
///
/// # Errors
///
/// Returns the kernel's error if there is no child; then the parent goes on.
pub fn detach() -> io::Result<()> {
    // SAFETY: the process has one thread, as the comment above demands, so the child has all threads of the parent and
    // may go on with any code.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            rustix::process::setsid()?;
            Ok(())
        }
        // SAFETY: `_exit` has no conditions.
        _ => unsafe { libc::_exit(0) },
    }
}

/// Closes all descriptors of this process from the number 3 on, whoever has opened them. Call this function at the start of
/// a program, before any part of it has opened a descriptor.
pub fn close_inherited() {
    // SAFETY: the call touches no memory. At the start of the program nothing has opened a descriptor from 3 on that it
    // would use later: the caller guarantees that.
    if unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) } == 0 {
        return;
    }
    // Linux before 5.9 has no such call.
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> =
        open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: as above. The descriptor of the folder is closed already, and the call fails for it.
        unsafe { libc::close(fd) };
    }
}

/// Makes standard input empty.
///
/// # Errors
///
/// Returns the system's error.
pub fn empty_stdin() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdin(fs::File::open("/dev/null")?)?)
}

/// Makes `out` the standard output of this process, and `err` its standard error.
///
/// # Errors
///
/// Returns the kernel's error; the call does not fail for open descriptors.
pub fn use_as_outputs(out: BorrowedFd<'_>, err: BorrowedFd<'_>) -> io::Result<()> {
    rustix::stdio::dup2_stdout(out)?;
    Ok(rustix::stdio::dup2_stderr(err)?)
}

/// Returns the file that contains this code: a shared library, or the program. Returns `None` if the system does not know.
pub fn own_file() -> Option<PathBuf> {
    let address = own_file as fn() -> Option<PathBuf> as *const libc::c_void;
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the function writes to `found`, whose zero bytes are a valid `Dl_info`; the address is one of this program.
    let found = unsafe {
        if libc::dladdr(address, found.as_mut_ptr()) == 0 {
            return None;
        }
        found.assume_init()
    };
    if found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of a loaded file ends with a zero byte, and lives as long as the file is loaded, which is
    // as long as this code runs.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_code_is_in_the_test_program() {
        let program = std::env::current_exe().and_then(fs::canonicalize).expect("a path");
        assert_eq!(own_file(), Some(program));
    }
}
