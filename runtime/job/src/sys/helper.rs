//! Starts a program to ask it something, with a connection to it as its standard input; and finds the files of such programs
//! that nobody else can have planted.
//!
//! `starter/watcher.rs` asks `mpiexec` in this way. The program is a child of this process only until it has answered: it
//! ends or is ended before [`Helper`] is gone, and what it has forked goes on by itself (`detach.rs`).

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::local_socket::{self, above_standard};
use super::poll::{self, PollFd, PollFlags};
use super::process;

/// A program that this process has started. It is killed when the value is dropped, unless it has been [left](Helper::leave).
#[derive(Debug)]
pub struct Helper {
    child: Child,
    /// The process, whoever takes its exit code.
    pidfd: Option<OwnedFd>,
    is_left: bool,
}

impl Helper {
    /// Executes `file` with one argument, and without the variables `removed` of the environment. Its outputs are lost.
    /// Returns it and the connection to its standard input.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error: `EACCES` or `ENOEXEC` if the file cannot be executed, `EAGAIN` if the user has too many
    /// processes, `EMFILE` if this process has too many descriptors.
    pub fn start(
        file: &Path,
        argument: &OsStr,
        removed: &[OsString],
    ) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = local_socket::pair()?;
        let lost = || Ok::<_, io::Error>(Stdio::from(null()?));
        let mut command = Command::new(file);
        command.arg(argument).stdin(theirs).stdout(lost()?).stderr(lost()?);
        for name in removed {
            command.env_remove(name);
        }
        let child = command.spawn()?;
        // The program may have made the system reap its children by itself; then the child may be gone already.
        let pidfd = process::watch(rustix::process::Pid::from_child(&child)).ok();
        Ok((Self { child, pidfd, is_left: false }, ours))
    }

    /// From now on, dropping the value waits for the end of the program, and kills nothing.
    pub fn leave(&mut self) {
        self.is_left = true;
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if !self.is_left
            && let Some(pidfd) = &self.pidfd
        {
            // It runs as this user, or it has become another one, and then only its own end ends it.
            let _ended = process::signal_process(pidfd.as_fd(), libc::SIGKILL);
        }
        // The program of the caller may have taken the exit code itself.
        let _reaped = self.child.wait();
    }
}

/// Waits until `connection` has a message or its other end is closed. Returns false if that has not happened until `until`.
///
/// # Errors
///
/// Returns the kernel's error.
pub fn wait(connection: BorrowedFd<'_>, until: Instant) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(connection, PollFlags::IN)];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        poll::wait(&mut fds, Some(left))?;
        if !fds[0].revents().is_empty() {
            return Ok(true);
        }
        // A signal handler of the program may end a wait early.
        if left.is_zero() {
            return Ok(false);
        }
    }
}

/// Returns copies of the standard output and the standard error of this process. A closed one is replaced by one that loses
/// what is written to it.
///
/// # Errors
///
/// Returns the kernel's error, for example if there are no more descriptors.
pub fn outputs() -> io::Result<[OwnedFd; 2]> {
    let null = null()?;
    let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().or_else(|_| null.try_clone());
    Ok([copy(io::stdout().as_fd())?, copy(io::stderr().as_fd())?])
}

fn null() -> io::Result<OwnedFd> {
    above_standard(File::options().read(true).write(true).open("/dev/null")?.into())
}

/// Returns true if nobody but root, the effective user of this process and the user `also` can have made the file `file`, or
/// can replace it: one of them owns it and its folder, and others can write to neither of the two. A group may write if it is
/// the private group of the effective user, which has the user's number.
pub fn is_trusted(file: &Path, also: Option<u32>) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_safe = |path: &Path| {
        let Ok(about) = fs::metadata(path) else { return false };
        let mode = about.permissions().mode();
        let is_known = |user: u32| user == 0 || user == own || Some(user) == also;
        let is_closed = mode & 0o002 == 0 && (mode & 0o020 == 0 || about.gid() == own);
        is_known(about.uid()) && is_closed
    };
    file.parent().is_some_and(is_safe) && is_safe(file)
}

/// Returns the user who owns a file.
pub fn owner(file: &Path) -> Option<u32> {
    Some(fs::metadata(file).ok()?.uid())
}

/// Returns true if this process has rights that the user who has started it does not have: then its environment is that of a
/// stranger.
pub fn has_more_rights() -> bool {
    // SAFETY: the call reads what the kernel has told this process at its start, for any argument.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::path::PathBuf;
    use std::time::Duration;

    /// Makes a folder of this test that only this user can write, with a script in it.
    fn script(name: &str, text: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("helper-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("our folder");
        let file = folder.join("program");
        fs::write(&file, text).expect("a file");
        fs::set_permissions(&file, Permissions::from_mode(0o700)).expect("our file");
        file
    }

    fn remove(file: &Path) {
        fs::remove_dir_all(file.parent().expect("a folder")).expect("our folder");
    }

    #[test]
    fn files_that_others_can_write_are_not_trusted() {
        let file = script("trust", "");
        let folder = file.parent().expect("a folder").to_owned();
        let open = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("our file");
        };
        assert!(is_trusted(&file, None));
        open(&file, 0o702);
        assert!(!is_trusted(&file, None), "others can write the file");
        open(&file, 0o700);
        open(&folder, 0o1777);
        assert!(!is_trusted(&file, None), "others can write the folder");
        open(&folder, 0o700);
        assert!(!is_trusted(&folder.join("none"), None));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65534), None).expect("root may do it");
            assert!(!is_trusted(&file, None), "another user's file");
            assert!(is_trusted(&file, Some(65534)) && owner(&file) == Some(65534));
        }
        remove(&file);
    }

    /// A program that answers nothing and reads nothing is killed, and its waiter does not wait for it.
    #[test]
    fn a_program_that_never_answers_is_ended() {
        let file = script("silent", "#!/bin/sh\nexec sleep 1000\n");
        let (helper, connection) = Helper::start(&file, OsStr::new("--x"), &[]).expect("a process");
        assert!(!wait(connection.as_fd(), Instant::now()).expect("an answer"));
        drop(helper);
        let later = Instant::now() + Duration::from_secs(100);
        assert!(
            wait(connection.as_fd(), later).expect("an answer"),
            "its end closes the connection"
        );
        remove(&file);
    }

    #[test]
    fn the_reason_why_a_program_does_not_start_is_the_kernels() {
        let file = script("text", "");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("our file");
        let error = Helper::start(&file, OsStr::new("--x"), &[]).expect_err("no program");
        assert_eq!(error.raw_os_error(), Some(libc::EACCES));
        remove(&file);
    }

    #[test]
    fn copies_of_the_outputs_are_above_them() {
        use std::os::fd::AsRawFd;
        assert!(outputs().expect("copies").iter().all(|copy| copy.as_raw_fd() > 2));
    }
}
