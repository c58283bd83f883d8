//! Claiming something of the machine by a name that dies with the claimer.
//!
//! Used by `launcher/src/claims.rs`. A socket bound to a name in Linux's abstract namespace: no
//! file, no port, and the kernel takes the name back when the descriptor closes, however the
//! process ends. Names are seen within one network namespace.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// A claimed name; given back on drop.
#[derive(Debug)]
pub struct Claim {
    _socket: OwnedFd,
}

/// Claims `name`; `None` when somebody else holds it.
///
/// # Errors
///
/// The kernel's answer where sockets are not to be had, or a name of more than 100 bytes.
pub fn claim(name: &str) -> io::Result<Option<Claim>> {
    let socket =
        net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    match net::bind(&socket, &address) {
        Ok(()) => Ok(Some(Claim { _socket: socket })),
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
        let first = claim(&name).expect("sockets").expect("free");
        assert!(claim(&name).expect("sockets").is_none());
        drop(first);
        assert!(claim(&name).expect("sockets").is_some());
    }
}
