//! Jobs of several typepack prefixes in one run: each reserves cores as if it were alone.
//!
//! Used by `library.rs`. `mpiexec` reserves the cores it binds ranks to under names that all jobs of
//! one network namespace see, so that two jobs that work at the same time keep out of each other's
//! way. The jobs of a run never work at the same time, and have to have the same cores: each is
//! started in a network namespace of its own. Nothing else changes for it. The lines to its ranks
//! go through a name in the file system, which namespaces share.
//!
//! # Safety
//!
//! This file runs code between `fork` and `exec`, where only calls that are safe in signal handlers
//! are allowed: it makes system calls, and neither allocates nor takes a lock.

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, write};
use rustix::thread::UnshareFlags;
use std::ffi::CStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts `command` in a network namespace of its own.
pub fn reserve_apart(command: &mut Command) {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    // Made here: there is no allocation after the fork.
    let maps = [format!("{user} {user} 1"), format!("{group} {group} 1")];
    let own_network = move || leave(&maps).map_err(io::Error::from);
    // SAFETY: `leave` makes system calls on data of its own, which is allowed after a fork: it
    // allocates nothing, takes no lock, and changes nothing but the new process's namespaces.
    unsafe { command.pre_exec(own_network) };
}

/// Can jobs be kept apart here?
///
/// # Errors
///
/// One line: the system allows no such namespaces.
pub fn check() -> Result<(), String> {
    let mut command = Command::new("true");
    command.stdin(Stdio::null());
    reserve_apart(&mut command);
    let tried = command.status();
    tried.map(|_| ()).map_err(|error| {
        format!(
            "two typepack prefixes in one run need network namespaces, so that each has the same \
             cores, and there are none here: {error}"
        )
    })
}

/// Leaves the network namespace; whoever may not leaves that of users first, and stays who he is.
fn leave([users, groups]: &[String; 2]) -> Result<(), Errno> {
    // SAFETY: the new process has one thread and no descriptor that belongs to the namespaces it
    // leaves; it shares neither descriptors nor memory by these flags.
    match unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) } {
        Err(Errno::PERM) => {}
        done => return done,
    }
    // SAFETY: as above.
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
#[path = "../../../fuzz/support/skipped.rs"]
mod skipped;

#[cfg(test)]
mod tests {
    use super::skipped::skipped;
    use super::{check, reserve_apart};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    use std::process::Command;

    /// The namespace of a name as `mpiexec` reserves one: `/proc/net/unix` lists them.
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
