//! Joins the job in which this process was started.
//!
//! `runtime/src/world.rs` calls [`attach_from_env`] once. From the environment that `mpiexec` set, the
//! function finds the segment (`segment.rs`) and the control socket (`sys/channel.rs`). It checks both, and
//! registers this process as the rank that the environment names. Afterwards the runtime starts the
//! transports. The step numbers in this file refer to the list in `README.md` beside this file.
//!
//! Invariants: this process takes ownership of an inherited descriptor only after checking that the
//! descriptor refers to what the environment says it does. At most one process ever joins as a given rank. A
//! process that has attached is killed when the launcher dies.

use std::env;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::layout::State;
use super::segment::Segment;
use crate::error::{Error, ErrorKind};
use crate::service::{Answer, Request};
use crate::sys::channel::Bond;
use crate::sys::stream::{self, Transfer};
use crate::sys::{channel, memory, process};

/// Environment variable: numbers of the two inherited descriptors, first that of the segment and then that
/// of the control socket, and then the number of this process's slot, with commas between them.
pub const JOB_FD: &str = "TYPEPACK_JOB_FD";
/// Environment variable: number of this rank in its world, the ranks that the launcher has started together.
pub const RANK: &str = "TYPEPACK_RANK";
/// Environment variable: number of ranks of this rank's world.
pub const SIZE: &str = "TYPEPACK_SIZE";
/// Environment variable: number of this rank among the ranks on this machine.
pub const LOCAL_RANK: &str = "TYPEPACK_LOCAL_RANK";
/// Environment variable: the same number as in [`LOCAL_RANK`], under the name that every launcher for the MPI
/// ABI sets.
pub const MPI_LOCAL_RANK: &str = "MPI_LOCALRANKID";
/// Environment variable: number of ranks on this machine.
pub const MPI_LOCAL_SIZE: &str = "MPI_LOCALNRANKS";

/// Environment variable: number of the program that this rank runs. The programs of a job are numbered from
/// 0.
pub const APP_NUMBER: &str = "TYPEPACK_APPNUM";
/// Environment variable: number of ranks that run the same program as this rank.
pub const APP_SIZE: &str = "TYPEPACK_APPSIZE";
/// Environment variable: maximum number of processes that the user expects in the job (the universe size). It
/// is set only if `mpiexec -usize` was given.
pub const UNIVERSE_SIZE: &str = "TYPEPACK_UNIVERSE_SIZE";
/// Environment variable: name of the error handler that communicators have initially. It is set only if
/// `mpiexec -initial-errhandler` was given.
pub const INITIAL_ERRHANDLER: &str = "TYPEPACK_INITIAL_ERRHANDLER";

/// While a rank waits for the launcher, it checks at this interval whether the launcher is alive.
const LOOK: Duration = Duration::from_millis(100);

/// Maximum number of messages to the launcher that it has not read yet. The socket has room for many times as many.
const UNREAD: u32 = 16;

/// While a rank waits until the launcher has read its messages, it looks again after this time.
const PAUSE: Duration = Duration::from_micros(50);

/// Membership in a job: this process has the slot `slot` until it ends.
#[derive(Debug)]
pub struct Attached {
    /// The job's shared memory.
    pub segment: Arc<Segment>,
    /// The slot of this process.
    pub slot: usize,
    /// The slots of the ranks of this process's world, in the order of the ranks.
    pub world: Range<usize>,
    /// The rank's end of the control socket. It stays open as long as this process lives. When the launcher
    /// dies, the other end closes, and the kernel then kills this process.
    control: OwnedFd,
    /// Number of messages that this process has sent to the launcher.
    sent: Mutex<u32>,
}

/// An answer of the launcher that may not have come yet.
#[derive(Debug)]
pub struct Awaited {
    pipe: OwnedFd,
    bytes: Vec<u8>,
}

impl Awaited {
    /// Returns the answer, or `None` if it has not come yet. The launcher wakes this rank when it has answered.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::LauncherGone`] if the launcher has ended without an answer, and [`ErrorKind::System`] if it
    /// has written something else or the system refuses a call.
    pub fn look(&mut self) -> Result<Option<Answer>, Error> {
        let mut buffer = [0; 4096];
        loop {
            match stream::read(self.pipe.as_fd(), &mut buffer) {
                Ok(Transfer::Moved(n)) => {
                    self.bytes.extend(&buffer[..n]);
                    // No part of an answer is an answer. This does not wait for the end of the pipe, because a forked
                    // child may hold the other end, too.
                    if let Some(answer) = Answer::parse(&self.bytes) {
                        return Ok(Some(answer));
                    }
                }
                Ok(Transfer::Later) => return Ok(None),
                Ok(Transfer::Closed) if self.bytes.is_empty() => {
                    let detail = "mpiexec has not answered a request";
                    return Err(Error::new(ErrorKind::LauncherGone, detail));
                }
                Ok(Transfer::Closed) => {
                    let detail = "mpiexec has sent an answer that is not one";
                    return Err(Error::new(ErrorKind::System, detail));
                }
                Err(error) => return Err(Error::system("cannot read an answer of mpiexec", error)),
            }
        }
    }
}

impl Attached {
    /// Announces that this rank takes leave of the launcher that has started it, if that is not `mpiexec`. The end of the
    /// connection to that launcher then ends no rank.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::LauncherGone`] if the process that watches this rank has ended.
    pub fn leave_starter(&self) -> Result<(), Error> {
        self.send(|| channel::leave(self.control.as_fd())).map_err(|_| gone())
    }

    /// Sends a request to the launcher.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::LauncherGone`] if the launcher has ended, and [`ErrorKind::NoMemory`] or
    /// [`ErrorKind::System`] if the system refuses a call.
    pub fn ask(&self, request: &Request) -> Result<Awaited, Error> {
        let failed = |error| Error::system("cannot ask mpiexec", error);
        let file = request.to_file().map_err(failed)?;
        let (pipe, answer) = stream::pipe().map_err(failed)?;
        stream::set_nonblocking(pipe.as_fd()).map_err(failed)?;
        self.send(|| channel::ask(self.control.as_fd(), file.as_fd(), answer.as_fd()))?;
        Ok(Awaited { pipe, bytes: Vec::new() })
    }

    /// Tells the launcher how this rank is connected with the world whose first slot is `world`. Waits as long as the
    /// system has no memory for the message.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::LauncherGone`] if the launcher has ended, and [`ErrorKind::System`] if the program has closed
    /// the control socket.
    pub fn tell_bond(&self, bond: Bond, world: usize) -> Result<(), Error> {
        loop {
            // The cast is exact, because the number of a slot is below 2^12.
            match self.send(|| channel::tell_bond(self.control.as_fd(), bond, world as u32)) {
                // The launcher must know of each bond.
                Err(error) if error.kind() == ErrorKind::NoMemory && !self.launcher_is_gone() => {
                    std::thread::sleep(PAUSE);
                }
                told => return told,
            }
        }
    }

    /// Sends a message to the launcher, when it has read enough of the earlier ones.
    fn send(&self, send: impl FnOnce() -> std::io::Result<()>) -> Result<(), Error> {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = &self.segment.slot(self.slot).heard;
        while sent.wrapping_sub(heard.load(Ordering::Acquire)) >= UNREAD {
            if self.launcher_is_gone() {
                return Err(gone());
            }
            std::thread::sleep(PAUSE);
        }
        send().map_err(|error| Error::system("cannot send a message to mpiexec", error))?;
        *sent = sent.wrapping_add(1);
        Ok(())
    }

    /// Returns true if `mpiexec` has ended. In that case the kernel is about to kill this process.
    pub fn launcher_is_gone(&self) -> bool {
        channel::is_closed(self.control.as_fd())
    }
}

/// Joins the job for which `mpiexec` started this process. Returns `Ok(None)` if the process was started
/// without `mpiexec`.
///
/// The function returns once the launcher watches this process. It fails if it is called a second time in one
/// process, if a child of a rank calls it, or if the rank executes another program after joining and that
/// program calls it.
///
/// # Errors
///
/// Returns [`ErrorKind::NotARank`] in the three cases above, if another process has already joined as this
/// rank, and if the environment does not match the descriptors or the job. Returns [`ErrorKind::Mismatch`] if
/// the launcher comes from another build or if the segment does not have the size that its header describes,
/// [`ErrorKind::LauncherGone`] if the launcher has ended, [`ErrorKind::NoMemory`] if memory or address
/// space has run out, and [`ErrorKind::System`] if the system refuses a call.
pub fn attach_from_env() -> Result<Option<Attached>, Error> {
    // The function holds the lock `TAKEN` until it returns, so that two threads never take ownership of the
    // same descriptors.
    static TAKEN: Mutex<bool> = Mutex::new(false);
    let mut taken = TAKEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());

    // 1. Read the environment.
    let Some((segment_fd, control_fd, slot)) = place()? else { return Ok(None) };
    if *taken {
        return Err(not_a_rank("this process has joined the job already".into()));
    }
    let rank = number(RANK)?;
    let size = number(SIZE)?;

    // 2. Check the descriptors before taking ownership of them. If this process or an exec has closed them,
    //    their numbers may now refer to unrelated files.
    let recognised = recognise(segment_fd, control_fd)?;
    if !recognised {
        return Err(closed(segment_fd, control_fd));
    }
    *taken = true;
    let adopt = |fd| {
        // SAFETY: `recognise` found that both descriptors are open: a file with a sealed size and a control
        // socket, as mpiexec makes them for a rank. No other code of this process owns the descriptors that
        // mpiexec made. `taken` ensures that ownership is taken only once.
        unsafe { channel::adopt(fd) }.map_err(|e| Error::system(JOB_FD, e))
    };
    let control = adopt(control_fd)?;
    Attached::enter(adopt(segment_fd)?, control, (slot, rank, size)).map(Some)
}

/// Returns whether `mpiexec` offers this process a place in a job that the process has not taken yet: whether
/// [`attach_from_env`] could join. Returns `Ok(false)` if the process was started without `mpiexec`.
///
/// # Errors
/// Returns [`ErrorKind::NotARank`] if the environment names no job, or a job that this process cannot join, and
/// [`ErrorKind::System`] if the system refuses a call.
pub fn is_offered() -> Result<bool, Error> {
    let Some((segment_fd, control_fd, _)) = place()? else { return Ok(false) };
    if recognise(segment_fd, control_fd)? { Ok(true) } else { Err(closed(segment_fd, control_fd)) }
}

impl Attached {
    /// Does the steps 3 to 6 of the list in `README.md`: joins the job with the memory `segment` as the process in `slot`,
    /// which is rank `rank` of a world of `size` ranks. `control` is this process's end of a control socket.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`attach_from_env`].
    pub fn enter(
        segment: OwnedFd,
        control: OwnedFd,
        (slot, rank, size): (usize, usize, usize),
    ) -> Result<Self, Error> {
        let segment = Arc::new(Segment::open(segment)?);
        // Check that the rank and the number of ranks agree with the segment.
        let world =
            (slot < segment.layout().room().slots).then(|| segment.world_of(slot)).flatten();
        let world =
            world.ok_or_else(|| not_a_rank(format!("the job has no rank in slot {slot}")))?;
        if size != world.len() || rank != slot - world.start {
            return Err(not_a_rank(format!(
                "{RANK}={rank} and {SIZE}={size} do not match slot {slot} of the job: rank {} of {}",
                slot - world.start,
                world.len()
            )));
        }
        let attached = Self { segment, slot, world, control, sent: Mutex::new(0) };
        attached.die_with_the_launcher()?;
        attached.register()?;
        Ok(attached)
    }

    /// Step 4 of the list in `README.md`: makes the kernel kill this process if the launcher dies. The
    /// launcher made a process group for this rank and armed the control socket for that group
    /// (`sys/channel.rs`): when the launcher dies, the kernel kills the group. If a wrapper program has put
    /// this process into another group, this process arms the socket for itself.
    ///
    /// The parent-death signal would be wrong here, because the kernel sends that signal when the *thread*
    /// ends that forked this process. A wrapper may start its program from a thread that ends before the
    /// program does.
    fn die_with_the_launcher(&self) -> Result<(), Error> {
        let failed = |e| Error::system("cannot make this process end when mpiexec ends", e);
        let group = self.segment.slot(self.slot).group.load(Ordering::Acquire);
        if u32::try_from(process::own_group()) != Ok(group) {
            channel::arm(self.control.as_fd(), process::own_id()).map_err(failed)?;
        }
        // Check after arming, not before: if the launcher died before the socket was armed, the kernel sent
        // no signal.
        if self.launcher_is_gone() { Err(gone()) } else { Ok(()) }
    }

    /// Steps 5 and 6 of the list in `README.md`: registers this process as the rank, and then waits until the
    /// launcher watches this process.
    fn register(&self) -> Result<(), Error> {
        let slot = self.segment.slot(self.slot);
        slot.state
            .compare_exchange(
                State::Started as u32,
                State::Registered as u32,
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .map_err(|_| {
                not_a_rank(format!(
                    "process {1} has already joined this job as rank {0}; each rank joins once",
                    self.slot - self.world.start,
                    slot.pid.load(Ordering::Relaxed)
                ))
            })?;
        self.send(|| channel::register(self.control.as_fd())).map_err(|_| gone())?;
        loop {
            let seen = self.segment.prepare_wait(self.slot);
            if slot.watched.load(Ordering::Acquire) != 0 {
                self.segment.cancel_wait(self.slot);
                return Ok(());
            }
            if self.launcher_is_gone() {
                return Err(gone());
            }
            self.segment.wait(self.slot, seen, Some(LOOK))?;
        }
    }
}

fn not_a_rank(detail: String) -> Error {
    Error::new(ErrorKind::NotARank, detail)
}

fn gone() -> Error {
    Error::new(ErrorKind::LauncherGone, "mpiexec has ended, so this process cannot join its job")
}

/// Returns true if both numbers are open descriptors, `segment` refers to a file with a sealed size, and
/// `control` refers to a control socket.
fn recognise(segment: RawFd, control: RawFd) -> Result<bool, Error> {
    // SAFETY: both borrows end with this function. If another thread closes one of the descriptors in the
    // meantime, the calls below fail with EBADF or read the properties of another file, which does no harm.
    let fds = unsafe { (channel::borrow(segment), channel::borrow(control)) };
    let (Some(segment), Some(control)) = fds else { return Ok(false) };
    let sealed = memory::sealed_len(segment).map_err(|e| Error::system(JOB_FD, e))?;
    Ok(sealed.is_some() && channel::is_control(control))
}

/// Returns the error for descriptors that are not those of a job.
fn closed(segment: RawFd, control: RawFd) -> Error {
    not_a_rank(format!(
        "{JOB_FD}={segment},{control} names no open descriptors of a job; a child of a rank cannot join, and wrappers \
         must leave descriptors open"
    ))
}

/// Returns the numbers of the two descriptors and of the slot from [`JOB_FD`], or `None` if that variable is not set.
fn place() -> Result<Option<(RawFd, RawFd, usize)>, Error> {
    let Some(value) = env::var_os(JOB_FD) else { return Ok(None) };
    let parse = |text: &str| text.parse::<RawFd>().ok().filter(|&fd| fd > 2);
    let parts = |text: &str| {
        let (segment, rest) = text.split_once(',')?;
        let (control, slot) = rest.split_once(',')?;
        Some((parse(segment)?, parse(control)?, slot.parse().ok()?))
    };
    match value.to_str().and_then(parts).filter(|(segment, control, _)| segment != control) {
        Some(found) => Ok(Some(found)),
        None => Err(not_a_rank(format!(
            "{JOB_FD}={value:?}: it must be two different numbers above 2 and the number of a slot, with commas between \
             them"
        ))),
    }
}

/// Returns the number in the environment variable `name`, which the launcher has set.
fn number(name: &'static str) -> Result<usize, Error> {
    let value = env::var_os(name)
        .ok_or_else(|| not_a_rank(format!("{JOB_FD} is set, but {name} is not")))?;
    value
        .to_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| not_a_rank(format!("{name}={value:?} is not a number")))
}
