//! Locks on names. A lock stands for the use of some resource of the machine. The kernel releases the lock
//! when the process that holds it ends.
//!
//! `launcher/src/core_reservation.rs` uses this file. The lock is a socket that is bound to a name in Linux's
//! abstract namespace. Such a lock needs no file and no port, and the kernel frees the name when the
//! descriptor closes, however the process ends. Processes in different network namespaces do not see each
//! other's locks.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// A locked name. Dropping the value frees the name.
#[derive(Debug)]
pub struct NameLock {
    _socket: OwnedFd,
}

/// Locks `name`. Returns `None` if the name is already locked, usually by another process.
///
/// # Errors
///
/// Returns the kernel's error if no socket can be made, and `ENAMETOOLONG` if `name` has more than 107
/// bytes.
pub fn lock(name: &str) -> io::Result<Option<NameLock>> {
    let socket =
        net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    match net::bind(&socket, &address) {
        Ok(()) => Ok(Some(NameLock { _socket: socket })),
        Err(Errno::ADDRINUSE) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_holder_at_a_time() {
        let name = format!("typepack-test-{}", std::process::id());
        let first = lock(&name).expect("sockets").expect("free");
        assert!(lock(&name).expect("sockets").is_none());
        drop(first);
        assert!(lock(&name).expect("sockets").is_some());
    }
}
