//! Starts several typepack jobs, of one or several installations, in such a way that each job can reserve
//! the same cores.
//!
//! `library.rs` uses this file. `mpiexec` binds ranks to cores and reserves these cores: for each core,
//! it binds a socket to an abstract name. All jobs of one network namespace see these names, so two jobs
//! that run at the same time use different cores. In a benchmark, the jobs take turns and must use the
//! same cores. This file therefore starts each job in a network namespace of its own. The separate
//! namespace changes nothing else for a job: the launcher talks to its ranks through a name in the file
//! system, which all namespaces share.
//!
//! # Safety
//!
//! Some code of this file runs between `fork` and `exec`, where only async-signal-safe calls are allowed.
//! That code makes system calls; it allocates nothing and takes no lock.

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, write};
use rustix::thread::UnshareFlags;
use std::ffi::CStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Makes `command` start its process in a network namespace of its own.
pub fn reserve_apart(command: &mut Command) {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    // Formats these strings before the fork, because the code after the fork must not allocate.
    let maps = [format!("{user} {user} 1"), format!("{group} {group} 1")];
    let own_network = move || leave(&maps).map_err(io::Error::from);
    // SAFETY: the closure runs after a fork, where only async-signal-safe calls are allowed. `leave` makes
    // only system calls, and the strings `maps` that it passes to some of them belong to the closure.
    // `leave` allocates nothing, takes no lock, and changes only the namespaces of the new process.
    unsafe { command.pre_exec(own_network) };
}

/// Checks that a process can start in a network namespace of its own.
///
/// # Errors
///
/// Returns a one-line message if the system does not allow new network namespaces.
pub fn check() -> Result<(), String> {
    let mut command = Command::new("true");
    command.stdin(Stdio::null());
    reserve_apart(&mut command);
    let tried = command.status();
    tried.map(|_| ()).map_err(|error| {
        format!(
            "several typepack jobs can use the same cores only in separate network namespaces, and the \
             system refuses to make one: {error}"
        )
    })
}

/// Moves this process into a new network namespace. If the process does not have the right to do so, it
/// first moves into a new user namespace, in which it keeps its user id and group id. `users` and
/// `groups` are the lines that map these ids into the user namespace.
fn leave([users, groups]: &[String; 2]) -> Result<(), Errno> {
    // SAFETY: `unshare` with `NEWNET` affects neither descriptors nor memory. The process has only one
    // thread, because it has just been forked, and no code after the fork relies on the old network
    // namespace.
    match unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) } {
        Err(Errno::PERM) => {}
        done => return done,
    }
    // SAFETY: `unshare` with `NEWUSER` and `NEWNET` affects neither descriptors nor memory. `NEWUSER`
    // requires a process with one thread, and this process has one because it has just been forked.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }?;
    say(c"/proc/self/setgroups", "deny")?;
    say(c"/proc/self/uid_map", users)?;
    say(c"/proc/self/gid_map", groups)
}

fn say(file: &CStr, text: &str) -> Result<(), Errno> {
    let file = openat(CWD, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(&file, text.as_bytes()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::{check, reserve_apart};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    use std::process::Command;
    use typepack_test_support::skipped::skipped;

    /// Checks that a process that is started by [`reserve_apart`] does not see an abstract name that this
    /// process has bound, and that other processes see it. `mpiexec` reserves cores with such names.
    /// `/proc/self/net/unix` lists the names of the process's own network namespace.
    #[test]
    fn names_of_other_jobs_are_not_seen() {
        if let Err(line) = check() {
            skipped(line);
            return;
        }
        let name = format!("typepack-bench-apart-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let _held = UnixDatagram::bind_addr(&address).expect("a socket");
        let seen = |apart: bool| {
            let mut command = Command::new("cat");
            command.arg("/proc/self/net/unix");
            if apart {
                reserve_apart(&mut command);
            }
            let output = command.output().expect("cat");
            assert!(output.status.success());
            String::from_utf8_lossy(&output.stdout).contains(&name)
        };
        assert!(seen(false) && !seen(true));
    }
}
