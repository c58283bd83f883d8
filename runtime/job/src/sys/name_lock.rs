//! Locks on names. A lock stands for the use of some resource of the machine. The kernel releases the lock
//! when the process that holds it ends.
//!
//! `launcher/src/core_reservation.rs` and `starter/` use this file. The lock is a socket that is bound to a name in Linux's
//! abstract namespace. Such a lock needs no file and no port, and the kernel frees the name when the
//! descriptor closes, however the process ends. Processes in different network namespaces do not see each
//! other's locks.
//!
//! Every user can bind every name. So a name that is bound does not count until the kernel has told who holds
//! it: the socket listens, and a process that connects to it learns the user of the holder. Only a process of
//! the same user can prevent this process from locking a name. If another user holds the name, [`lock`] binds a
//! longer name, with a random number that nobody can know beforehand, and finds the longer names of other
//! processes in `/proc/net/unix`.
//!
//! ```text
//! NAME                        the name that a process tries first
//! NAME-0123456789abcdef       a name of a process that has found NAME held by another user
//! ```
//!
//! Two processes of a user never hold the same name. If two of them lock the name in the same moment while
//! another user holds it, both may find it taken.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::local_socket;

/// A locked name. Dropping the value frees the name.
#[derive(Debug)]
pub struct NameLock {
    _socket: OwnedFd,
}

/// The answer of [`lock`].
#[derive(Debug)]
pub enum Claim {
    /// This process holds the name, and no other process does.
    Alone(NameLock),
    /// This process is the only one of its user that holds the name. Processes of other users hold it too.
    BesideOthers(NameLock),
    /// Another process of this user holds the name.
    Taken,
}

/// Length of the queue of connections at a socket. Nobody accepts the connections. When the queue is
/// full, [`holder`] returns [`Holder::Another`].
const WAITING: i32 = 4096;

/// Maximum number of longer names (see the top of this file) whose holders [`lock`] looks for.
const NAMES: usize = 1024;

/// The pauses before the attempts of [`holder`] to connect. `holder` repeats the attempt if a socket is bound
/// but does not listen, because the socket's process may be between the two system calls.
const ATTEMPTS: [Duration; 3] =
    [Duration::ZERO, Duration::from_micros(200), Duration::from_millis(2)];

/// Locks `name` for this process among the processes of its user.
///
/// # Errors
///
/// Returns the kernel's error if no socket can be made, and `ENAMETOOLONG` if `name` has more than 90 bytes.
pub fn lock(name: &str) -> io::Result<Claim> {
    let (mut own, mut others) = (name.to_owned(), false);
    let socket = match bind(name)? {
        Some(socket) => socket,
        None => {
            match holder(name)? {
                Holder::Us => return Ok(Claim::Taken),
                Holder::Another => others = true,
                Holder::Nobody => {}
            }
            own = format!("{name}-{:016x}", RandomState::new().hash_one(name));
            match bind(&own)? {
                Some(socket) => socket,
                None => return Ok(Claim::Taken),
            }
        }
    };
    // Look for other holders after the bind. Of two processes that bind their names at the same time, at least
    // one then finds the other.
    let longer = longer_names(name);
    let also = [name.to_owned()];
    for other in longer.iter().chain(&also).filter(|other| **other != own) {
        match holder(other)? {
            Holder::Us => return Ok(Claim::Taken),
            Holder::Another => others = true,
            Holder::Nobody => {}
        }
    }
    let lock = NameLock { _socket: socket };
    Ok(if others { Claim::BesideOthers(lock) } else { Claim::Alone(lock) })
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    local_socket::above_standard(socket)
}

/// Returns the process of this user that has locked `name`. Returns `None` if there is none, and if another user holds the short
/// name.
pub fn holding_process(name: &str) -> Option<i32> {
    let (address, socket) =
        (SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()?, socket().ok()?);
    net::connect(&socket, &address).ok()?;
    let holder = local_socket::peer(socket.as_fd()).ok()?;
    Some(holder.pid.filter(|_| holder.is_own_user)?.as_raw_nonzero().get())
}

/// Binds a socket to `name` and listens. Returns `None` if the name is bound already.
fn bind(name: &str) -> io::Result<Option<OwnedFd>> {
    let socket = socket()?;
    match net::bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?) {
        Ok(()) => {}
        Err(Errno::ADDRINUSE) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    net::listen(&socket, WAITING)?;
    Ok(Some(socket))
}

/// Who holds a name.
enum Holder {
    /// A process of this user.
    Us,
    /// A process of another user, or a process that does not let this process find out its user.
    Another,
    Nobody,
}

fn holder(name: &str) -> io::Result<Holder> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    for pause in ATTEMPTS {
        std::thread::sleep(pause);
        let socket = socket()?;
        match net::connect(&socket, &address) {
            Ok(()) => {
                let user = sockopt::socket_peercred(&socket)?.uid;
                let same = user == rustix::process::geteuid();
                return Ok(if same { Holder::Us } else { Holder::Another });
            }
            // Nobody has bound the name, or a socket that does not listen is bound to the name.
            Err(Errno::CONNREFUSED | Errno::NOENT) => {
                if bind(name)?.is_some() {
                    return Ok(Holder::Nobody);
                }
            }
            // The queue of connections is full, or the socket is of another type.
            Err(_) => return Ok(Holder::Another),
        }
    }
    Ok(Holder::Another)
}

/// Returns the names that begin with `name` and a hyphen. If the list of all sockets cannot be read, the result
/// is empty.
fn longer_names(name: &str) -> Vec<String> {
    let text = std::fs::read("/proc/net/unix").unwrap_or_default();
    let start = format!("@{name}-");
    String::from_utf8_lossy(&text)
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(7))
        .filter(|path| path.starts_with(&start))
        .map(|path| path[1..].to_owned())
        .take(NAMES)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    fn name(test: &str) -> String {
        format!("typepack-test-{test}-{}", std::process::id())
    }

    /// Held while a test makes sockets or forks: a child keeps copies of the sockets that exist at the fork, and so
    /// keeps the names of another test.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Returns whether a name that was released can be locked. A child that a test of another module has forked keeps a
    /// copy of the socket until it runs its program.
    fn free_again(name: &str) -> bool {
        (0..10_000).any(|_| {
            let free = matches!(lock(name).expect("sockets"), Claim::Alone(_));
            if !free {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            free
        })
    }

    #[test]
    fn a_name_has_one_holder_at_a_time() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let name = name("one");
        let first = lock(&name).expect("sockets");
        assert!(matches!(first, Claim::Alone(_)), "{first:?}");
        assert!(matches!(lock(&name).expect("sockets"), Claim::Taken));
        assert_eq!(holding_process(&name), std::process::id().try_into().ok());
        drop(first);
        assert!(free_again(&name));
    }

    /// A process of another user that holds a name.
    struct Stranger(libc::pid_t);

    impl Stranger {
        /// Starts a process as the user `nobody` that binds `name`. The socket listens if `listens` is true.
        fn hold(name: &str, listens: bool) -> Self {
            let socket = socket().expect("a socket");
            let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a short name");
            let (ready, tell) = rustix::pipe::pipe().expect("a pipe");
            // SAFETY: the child makes system calls only, on values that exist before the fork.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                // SAFETY: `setresuid`, `pause` and `_exit` take only integers. The raw call makes the change
                // for this thread, which is the only one of the child.
                unsafe {
                    let changed = libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) == 0;
                    let bound = changed && net::bind(&socket, &address).is_ok();
                    if !bound || listens && net::listen(&socket, 1).is_err() {
                        libc::_exit(1);
                    }
                    let _told = rustix::io::write(&tell, &[1]);
                    libc::pause();
                    libc::_exit(0);
                }
            }
            assert!(pid > 0, "fork");
            drop(tell);
            let mut byte = [0];
            assert_eq!(rustix::io::read(&ready, &mut byte).expect("an answer"), 1, "no stranger");
            Self(pid)
        }
    }

    impl Drop for Stranger {
        fn drop(&mut self) {
            // SAFETY: `kill` and `waitpid` touch no memory here; the process is a child that nobody has reaped.
            unsafe {
                libc::kill(self.0, libc::SIGKILL);
                libc::waitpid(self.0, std::ptr::null_mut(), 0);
            }
        }
    }

    /// Checks that this user can still lock a name that a process of another user holds. The processes of this
    /// user must still exclude each other, even after the other user has released the name.
    #[test]
    fn another_user_cannot_squat_a_name() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can start a process of another user");
            return;
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        for listens in [true, false] {
            let name = name(if listens { "listens" } else { "deaf" });
            let stranger = Stranger::hold(&name, listens);
            let first = lock(&name).expect("sockets");
            assert!(matches!(first, Claim::BesideOthers(_)), "{first:?}");
            assert!(matches!(lock(&name).expect("sockets"), Claim::Taken));
            drop(stranger);
            // The short name is free now, but the longer one is not.
            assert!(matches!(lock(&name).expect("sockets"), Claim::Taken));
            drop(first);
            assert!(free_again(&name));
            // A stranger can also take a longer name that this process does not need.
            let longer = format!("{name}-0123456789abcdef");
            let stranger = Stranger::hold(&longer, listens);
            assert!(matches!(lock(&name).expect("sockets"), Claim::BesideOthers(_)));
            drop(stranger);
            assert!(free_again(&name));
        }
    }
}
