//! Lets a process go on by itself, apart from the process that has started it, and finds the file of the library.
//!
//! `launcher/src/behind.rs` makes its process independent of the rank that has started it. `starter/` looks for `mpiexec`
//! near the library.

use std::ffi::OsStr;
use std::fs;
use std::io;
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
        // SAFETY: the call touches no memory. The caller guarantees that no part of the program uses a descriptor from 3 on.
        // The descriptor of the folder is in the list, too: it is closed already, so the call fails for it.
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

/// Returns the shared library that contains this code. Returns `None` if the code is part of the program itself, and if the
/// system does not know.
pub fn own_library() -> Option<PathBuf> {
    // The loader knows a name, too, but that of the program is what its caller says, and others may be relative.
    let maps = fs::read("/proc/self/maps").ok()?;
    let file = file_at(&maps, own_library as fn() -> Option<PathBuf> as usize)?;
    let file = fs::canonicalize(file).ok()?;
    let program = fs::canonicalize("/proc/self/exe").ok()?;
    (file != program).then_some(file)
}

/// Returns the file whose memory contains `address`. `maps` is the text of `/proc/PID/maps`.
fn file_at(maps: &[u8], address: usize) -> Option<&OsStr> {
    let of = |line: &[u8]| {
        let range = std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?;
        let (start, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some(number(start)?..number(end)?)
    };
    let line = maps
        .split(|byte| *byte == b'\n')
        .find(|line| of(line).is_some_and(|range| range.contains(&address)))?;
    // No earlier column has a slash.
    Some(OsStr::from_bytes(&line[memchr::memchr(b'/', line)?..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_program_is_no_library() {
        assert_eq!(own_library(), None);
        let maps = fs::read("/proc/self/maps").expect("a table");
        let file = file_at(&maps, own_library as fn() -> Option<PathBuf> as usize);
        let program = std::env::current_exe().expect("a path");
        assert_eq!(file, Some(program.as_os_str()));
    }

    #[test]
    fn files_are_found_by_their_addresses() {
        let maps =
            b"1000-2000 r-xp 00000000 00:01 7    /a b/c\n2000-3000 rw-p 00000000 00:00 0 \nodd\n";
        assert_eq!(file_at(maps, 0x1fff), Some(OsStr::new("/a b/c")));
        assert_eq!((file_at(maps, 0x2000), file_at(maps, 0x3000)), (None, None));
    }
}
