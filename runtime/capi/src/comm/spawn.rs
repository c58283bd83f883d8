//! The calls that start processes (MPI-5.0 section 11.8): `MPI_Comm_spawn`, `MPI_Comm_spawn_multiple`,
//! `MPI_Comm_get_parent`.
//!
//! The runtime starts the processes. Only the root's commands count, so only the root reads them.

use super::create::hand_out;
use super::{COMMS, Comm, find};
use crate::abi;
use crate::argument::{Array, OutArray, Output, Place, Text, TextArray, TextList, TextListArray};
use crate::error::{Failure, Result};
use crate::info;
use crate::raw;
use std::ffi::{OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};
use typepack::{Command, Communicator};

/// Maximum number of bytes of a name or an argument, and of arguments. The system accepts no longer ones.
const LONGEST: c_int = 1 << 20;

/// The handle of the communicator with the parent processes.
static PARENT: OnceLock<usize> = OnceLock::new();

/// Makes the handle of the communicator with the processes that have started this one.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub(super) fn set_parent(parent: Comm) -> Result {
    let _once = PARENT.set(COMMS.insert(Arc::new(parent))?);
    Ok(())
}

/// `MPI_Comm_get_parent`: returns the null handle if no process has started this one, or if the program has freed or
/// disconnected the communicator.
pub fn get_parent(parent: Output<raw::Comm>) -> Result {
    let out = parent.required("parent")?;
    let live = PARENT.get().filter(|handle| find(raw::Comm(**handle)).is_ok());
    out.set(live.map_or(raw::Comm::NULL, |handle| raw::Comm(*handle)));
    Ok(())
}

/// The arguments that only the root reads: the commands, of each of which the root may start some processes.
struct Commands {
    list: Vec<Command>,
    /// The number of processes that each command may start.
    most: Vec<usize>,
}

impl Commands {
    fn new() -> Self {
        Self { list: Vec::new(), most: Vec::new() }
    }

    fn add(
        &mut self,
        (program, argument): (Text, &'static str),
        arguments: TextList,
        maxprocs: c_int,
        hints: raw::Info,
    ) -> Result {
        let program = program.read(LONGEST, argument, abi::ERR_ARG)?;
        let arguments = arguments.read(LONGEST, "argv")?;
        let most = usize::try_from(maxprocs).map_err(|_| {
            Failure::new(abi::ERR_ARG, "maxprocs", format!("{maxprocs} is negative"))
        })?;
        let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        let mut command = Command::new(text(&program))
            .args(arguments.iter().map(|argument| text(argument)))
            .processes(most);
        if hints != raw::Info::NULL {
            for (key, value) in info::find(hints)?.all() {
                command.hint(key, value)?;
            }
        }
        self.list.push(command);
        self.most.push(most);
        Ok(())
    }
}

/// Starts processes. `commands` reads the commands, and only the root calls it. `codes` gets the error codes of the
/// processes on every rank, unless it is null.
///
/// # Safety
///
/// - `codes` has an entry for each process that the root's commands may start, or is null.
unsafe fn start(
    comm: raw::Comm,
    root: c_int,
    commands: impl FnOnce() -> Result<Commands>,
    intercomm: Output<raw::Comm>,
    codes: OutArray<c_int>,
) -> Result {
    let parent = find(comm)?;
    let communicator = parent.communicator();
    let read = || -> Result<(usize, Place<raw::Comm>, Commands)> {
        let out = intercomm.required("intercomm")?;
        let rank = usize::try_from(root)
            .map_err(|_| Failure::new(abi::ERR_ROOT, "root", format!("{root} is negative")))?;
        let commands = match rank == communicator.rank() {
            true => commands()?,
            false => Commands::new(),
        };
        Ok((rank, out, commands))
    };
    let (root, out, commands) = super::create::arguments(&parent, read)?;
    let spawned = communicator.spawn(&commands.list, root);
    let is_refused = spawned.as_ref().is_err_and(|error| error.class().0 == abi::ERR_SPAWN);
    // Then all ranks know that.
    if spawned.is_ok() || is_refused {
        let started = spawned.as_ref().map_or(&[][..], |spawned| &spawned.started);
        let numbers = tell(communicator, root, &commands.most, started)?;
        let of_command = |two: &[u64]| {
            let [most, started] = [two[0], two[1]];
            (0..most).map(move |n| if n < started { abi::SUCCESS } else { abi::ERR_SPAWN })
        };
        let total = numbers.chunks_exact(2).map(|two| two[0] as usize).sum();
        let codes = if codes.address() == abi::ERRCODES_IGNORE {
            None
        } else {
            // SAFETY: the caller guarantees an entry for each process that the commands may start (condition of
            // `# Safety`), and `total` is their number.
            unsafe { codes.places_if_given(total) }
        };
        if let Some(places) = codes {
            places.fill(numbers.chunks_exact(2).flat_map(of_command));
        }
    }
    match spawned {
        Ok(spawned) => hand_out(&parent, Some(spawned.children), out),
        Err(error) => {
            if is_refused {
                out.set(raw::Comm::NULL);
            }
            Err(error.into())
        }
    }
}

/// Tells all ranks what the root knows: for each command how many processes it may start, and how many it has started.
fn tell(
    communicator: &Communicator,
    root: usize,
    most: &[usize],
    started: &[usize],
) -> Result<Vec<u64>> {
    /// The numbers of so many commands; `mpiexec` refuses to start more.
    const MOST: u64 = 2 << 12;
    let length = communicator.broadcast_value(2 * most.len() as u64, root)?.min(MOST);
    let of_command =
        |(at, most): (usize, &usize)| [*most as u64, started.get(at).copied().unwrap_or(0) as u64];
    let mut numbers: Vec<u64> = most.iter().enumerate().flat_map(of_command).collect();
    numbers.resize(length as usize, 0);
    communicator.broadcast(&mut numbers[..], root)?;
    Ok(numbers)
}

/// `MPI_Comm_spawn`.
///
/// # Safety
///
/// - If `maxprocs` of the root is positive, it is at most the number of entries of `array_of_errcodes`.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn spawn(
    command: Text,
    argv: TextList,
    maxprocs: c_int,
    info: raw::Info,
    root: c_int,
    comm: raw::Comm,
    intercomm: Output<raw::Comm>,
    array_of_errcodes: OutArray<c_int>,
) -> Result {
    let commands = || {
        let mut commands = Commands::new();
        commands.add((command, "command"), argv, maxprocs, info)?;
        Ok(commands)
    };
    // SAFETY: the only command may start `maxprocs` processes, and the caller guarantees so many entries.
    unsafe { start(comm, root, commands, intercomm, array_of_errcodes) }
}

/// `MPI_Comm_spawn_multiple`.
///
/// # Safety
///
/// - At the root, if `count` is positive, it is at most the number of entries of the four arrays before `root`. The sum of
///   the entries of the root's `array_of_maxprocs` is at most the number of entries of `array_of_errcodes`.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn spawn_multiple(
    count: c_int,
    array_of_commands: TextArray,
    array_of_argv: TextListArray,
    array_of_maxprocs: Array<c_int>,
    array_of_info: Array<raw::Info>,
    root: c_int,
    comm: raw::Comm,
    intercomm: Output<raw::Comm>,
    array_of_errcodes: OutArray<c_int>,
) -> Result {
    let commands = || {
        let length = usize::try_from(count).ok().filter(|length| *length > 0).ok_or_else(|| {
            Failure::new(abi::ERR_ARG, "count", format!("{count} is not positive"))
        })?;
        // SAFETY: the caller guarantees the number of entries of all four arrays, because this process is the root.
        let (programs, argvs, most, hints) = unsafe {
            (
                array_of_commands.texts(length, "array_of_commands")?,
                array_of_argv.lists(length, "array_of_argv")?,
                array_of_maxprocs.copy(length, "array_of_maxprocs")?,
                array_of_info.copy(length, "array_of_info")?,
            )
        };
        let mut commands = Commands::new();
        for (at, program) in programs.into_iter().enumerate() {
            let arguments = argvs.as_ref().map_or(TextList::EMPTY, |argvs| argvs[at]);
            commands.add((program, "array_of_commands"), arguments, most[at], hints[at])?;
        }
        Ok(commands)
    };
    // SAFETY: the commands may start as many processes as the sum says, and the caller guarantees so many entries.
    unsafe { start(comm, root, commands, intercomm, array_of_errcodes) }
}
