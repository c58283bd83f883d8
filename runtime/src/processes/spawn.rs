//! Starting processes (MPI-5.0 section 11.8), and disconnecting from them.

use super::{Command, of_refusal, strange};
use crate::comm::{Communicator, Group};
use crate::endpoint::progress::Awaited;
use crate::shm::waiting::Kind;
use crate::{Error, ErrorKind, Result};
use typepack_job::service::{Answer, Request};

/// The processes that [`Communicator::spawn`] has started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Spawned {
    /// The intercommunicator whose remote group has the new processes.
    pub children: Communicator,
    /// The number of processes of each command. Only the root knows it; the list of another rank is empty.
    pub started: Vec<usize>,
}

/// Returns the name under which a world whose ranks have the slots from `first` on meets the ranks that have started it.
fn meeting(first: usize) -> Vec<u8> {
    format!("spawn:{first}").into_bytes()
}

impl Communicator {
    /// Starts processes, and makes an intercommunicator of the ranks of this communicator and the new processes. These
    /// form a world of their own: the world communicator of each of them has all of them, first those of the first
    /// command. They reach the starting ranks by [`Universe::parent`](crate::Universe::parent). Collective; only the
    /// commands that the rank `root` passes count.
    ///
    /// The call returns when all new processes have joined the job. If one of the programs cannot be started, none is.
    ///
    /// ```no_run
    /// use typepack::{Command, Source, Tag};
    /// let universe = typepack::init()?;
    /// let workers = universe.world().spawn(&[Command::new("./worker").processes(4)], 0)?.children;
    /// if universe.rank() == 0 {
    ///     let mut answer = [0.0];
    ///     workers.recv(&mut answer, Source::Any, Tag::Any)?;
    /// }
    /// workers.disconnect()?;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `ErrorKind::Process` if the processes cannot be started, and why.
    /// - `ErrorKind::Comm` if this is an intercommunicator, and `ErrorKind::Root` if it has no rank `root`.
    /// - `ErrorKind::State` if this process was started without `mpiexec`, and no `mpiexec` can be started behind it.
    /// - `ErrorKind::Other` if another rank has found an error in its arguments.
    /// - `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Comm_spawn")]
    #[doc(alias = "MPI_Comm_spawn_multiple")]
    pub fn spawn(&self, commands: &[Command], root: usize) -> Result<Spawned> {
        self.check_intra("comm")
            .and_then(|()| self.check_rank(root, "root", ErrorKind::Root))
            .inspect_err(|_| self.fail_creation())?;
        // If a rank has found an error in its arguments, nothing is started.
        self.agreed_number()?;
        let mut started = Vec::new();
        let [first, total, number] = self.told(root, || {
            let (first, counts) = self.start(commands)?;
            started = counts.iter().map(|count| *count as usize).collect();
            Ok([first as u64, started.iter().sum::<usize>() as u64, self.new_numbers()])
        })?;
        let children = if total == 0 {
            // The two numbers that the root has taken follow each other.
            let group = self.group().clone();
            self.derive_between([number, number + 1], group, Group::empty())?.ok_or_else(strange)?
        } else {
            let other = (self.rank() == root).then_some(first as usize);
            self.with_leader(root, other, &meeting(first as usize))?
        };
        Ok(Spawned { children, started })
    }

    /// Asks the launcher to start processes. Returns the slot of the first one, and the number of processes of each
    /// command.
    fn start(&self, commands: &[Command]) -> Result<(usize, Vec<u32>)> {
        let here = std::env::current_dir().map_err(|error| {
            let detail = format!("the working directory of this process is not known: {error}");
            Error::new(ErrorKind::Other, "directory", detail)
        })?;
        let list: Result<Vec<_>> =
            commands.iter().map(|command| command.to_service(&here)).collect();
        let awaited = Awaited::Work(Kind::Other);
        match self.endpoint().ask(&awaited, &Request::Start(list?))? {
            Answer::Started { first, counts } if counts.len() == commands.len() => {
                Ok((first as usize, counts))
            }
            Answer::Refused(kind, why) => Err(of_refusal(kind, &why)),
            _ => Err(strange()),
        }
    }

    /// Takes two new communicator numbers, which follow each other. Returns the first one.
    fn new_numbers(&self) -> u64 {
        self.endpoint().new_contexts(2)
    }

    /// Makes the intercommunicator of the ranks of this world and those that have started it. The process in slot
    /// `parent` was the root. Collective over this world, and part of [`spawn`](Self::spawn) in the other.
    pub(crate) fn meet_parent(&self, parent: usize) -> Result<Self> {
        let first = self.endpoint().world().start;
        self.with_leader(0, (self.rank() == 0).then_some(parent), &meeting(first))
    }

    /// Waits until all messages of this rank on the communicator are complete, and ends the connection with its ranks:
    /// from now on, the death of a rank in another world ends this rank only if both have another communicator in common.
    /// The program must not use the communicator afterwards. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Comm_disconnect")]
    pub fn disconnect(&self) -> Result<()> {
        self.wait_for_pending()?;
        match self.remote_group() {
            _ if self.unbind_together()? => Ok(()),
            // If no process was started, there is no other side.
            Some(remote) if remote.is_empty() => self.local_side("comm")?.barrier(),
            _ => self.barrier(),
        }
    }
}
