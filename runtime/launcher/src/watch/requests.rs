//! The requests of ranks: they start worlds here, and use ports (`ports.rs`).
//!
//! `mod.rs` calls [`Job::take_request`] for each request that arrives, and, when it is known whether the programs of a
//! world could be executed, [`Job::confirm_world`] or [`Job::refuse_world`]. What a request says is untrusted.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use typepack_job::service::{Answer, Command, Refused, Request};
use typepack_job::shm::layout::State;
use typepack_job::sys::channel::Bond;
use typepack_job::sys::process::Child;
use typepack_job::sys::stream::{self, Transfer};

use super::{Job, World};
use crate::args::{self, App, Bind};
use crate::core_reservation::{self, Reservation};
use crate::ending::Outcome;
use crate::placement::Plan;
use crate::resolve::resolve;
use crate::start;

/// A rank that waits for the answer to its request.
#[derive(Debug)]
pub struct Asked {
    /// The slot of the rank.
    pub slot: usize,
    /// Where the answer goes.
    pub answer: OwnedFd,
    /// Number of processes of each command, if the request was to start a world.
    pub counts: Vec<u32>,
    /// The commands, if the request was to start a world.
    pub commands: Vec<Command>,
}

/// Why a request is refused.
pub type Refusal = (Refused, String);

/// Makes the refusal of a request to start processes.
fn refused(why: impl Into<String>) -> Refusal {
    (Refused::Start, why.into())
}

impl Job<'_> {
    /// Handles a request of the rank in `slot`.
    pub(super) fn take_request(&mut self, slot: usize, request: OwnedFd, answer: OwnedFd) {
        let asked = Asked { slot, answer, counts: Vec::new(), commands: Vec::new() };
        let request = match Request::from_file(request) {
            Ok(request) => request,
            Err(error) => {
                let refusal = (Refused::Other, format!("mpiexec cannot read the request: {error}"));
                return self.refuse(asked, refusal);
            }
        };
        match request {
            Request::Start(commands) => self.start_commands(asked, commands),
            Request::Disconnect { communicator, members, worlds } => {
                self.disconnect(asked, communicator, members, &worlds);
            }
            request => self.take_port_request(asked, request),
        }
    }

    /// Answers a request, and wakes the rank that waits for the answer.
    pub(super) fn answer(&self, asked: Asked, answer: &Answer) {
        let _nobody_waits = self.deliver(asked, answer);
    }

    /// Does what [`Job::answer`] does. Returns false if nobody waits for the answer any more.
    pub(super) fn deliver(&self, asked: Asked, answer: &Answer) -> bool {
        let Asked { slot, answer: pipe, .. } = asked;
        // The pipe is empty, and the answer fits into it.
        let written = stream::set_nonblocking(pipe.as_fd())
            .and_then(|()| stream::write(pipe.as_fd(), &answer.to_bytes()));
        drop(pipe);
        self.segment.call(slot);
        matches!(written, Ok(Transfer::Moved(_)))
    }

    /// Refuses a request.
    pub(super) fn refuse(&self, asked: Asked, (kind, why): Refusal) {
        self.answer(asked, &Answer::Refused(kind, why.into_bytes()));
    }

    /// Starts the processes of these commands as a new world. The answer follows when all programs run.
    fn start_commands(&mut self, mut asked: Asked, commands: Vec<Command>) {
        let parent = asked.slot;
        match self.start_world(parent, &commands) {
            Err(refusal) => self.refuse(asked, refusal),
            Ok(counts) if counts.iter().all(|count| *count == 0) => {
                self.answer(asked, &Answer::Started { first: 0, counts });
            }
            Ok(counts) => {
                (asked.counts, asked.commands) = (counts, commands);
                // `start_world` has added the last world. Until its ranks have other communicators, they and the rank
                // that has asked for them are connected.
                let (number, of_parent) = (self.worlds.len() - 1, self.ranks[parent].world);
                self.bonds.tell(parent, number, Bond::Connected);
                let world = &mut self.worlds[number];
                world.asked = Some(asked);
                for slot in world.slots.clone() {
                    self.bonds.tell(slot, of_parent, Bond::Connected);
                }
                // If the pipe is at its end already, no other event arrives.
                self.take_report(number);
            }
        }
    }

    /// Starts a world. Returns the number of processes of each command. If all of them are 0, starts none.
    fn start_world(&mut self, parent: usize, commands: &[Command]) -> Result<Vec<u32>, Refusal> {
        let is_ending = |world: &World| world.end.is_ending() || world.is_refused;
        if is_ending(&self.worlds[self.ranks[parent].world]) {
            return Err(refused("the job ends"));
        }
        // 1. Find all programs before any process starts. A command may have no process if its number may be 0.
        let (mut apps, mut programs, mut allowed) = (Vec::new(), Vec::new(), Vec::new());
        for command in commands {
            let found = app(command).and_then(|app| {
                let found = resolve(&app, false).map_err(|unusable| {
                    let why = unusable.message;
                    refused(why.strip_prefix("program: ").unwrap_or(&why))
                })?;
                Ok((app, found))
            });
            match found {
                Ok((app, found)) => {
                    apps.push(app);
                    programs.push(found);
                    allowed.push(command.counts.as_slice());
                }
                Err(_) if command.counts.contains(&0) => {
                    // The app stands for its number among the commands.
                    apps.push(App::none());
                    programs.push(crate::resolve::Found { path: PathBuf::new(), mpich: None });
                    allowed.push(&[0]);
                }
                Err(refusal) => return Err(refusal),
            }
        }
        // 2. Find out how many processes there are.
        let free = self.segment.layout().room().slots - self.ranks.len();
        let counts = numbers(&allowed, free).ok_or_else(|| {
            let least: u64 =
                allowed.iter().map(|counts| u64::from(*counts.last().unwrap_or(&0))).sum();
            refused(format!(
                "{least} more processes: the job has room for {} ranks, and {free} places are free",
                self.ranks.len() + free
            ))
        })?;
        for (app, count) in apps.iter_mut().zip(&counts) {
            app.ranks = *count as usize;
        }
        let total: usize = apps.iter().map(|app| app.ranks).sum();
        if total == 0 {
            return Ok(counts);
        }
        // 3. Start them. They get the cores that are free.
        let plan = args::Job { apps, errhandler: None, ..(*self.plan).clone() };
        let cores = match plan.bind {
            Bind::To(level) => {
                let plan = Plan { level, map: plan.map, width: plan.width };
                core_reservation::place_and_reserve(self.machine.table, total, plan)
            }
            // The command line names the CPUs of its own ranks only.
            Bind::Listed(_) | Bind::None => Reservation::default(),
        };
        let started = self.start(Rc::new(plan), (&programs, cores), None, Some(parent));
        started.map_err(refused)?;
        self.count_ranks();
        Ok(counts)
    }

    /// Handles the news that all processes of a world have executed their programs.
    pub(super) fn confirm_world(&mut self, number: usize) {
        let world = &mut self.worlds[number];
        if let Some(mut asked) = world.asked.take() {
            let counts = std::mem::take(&mut asked.counts);
            let first = world.slots.start as u32;
            self.answer(asked, &Answer::Started { first, counts });
        }
    }

    /// Handles the news that a program of a world that a rank has asked for could not be executed: ends the processes of
    /// this world, as if none had been started. `app` is the number of the command.
    pub(super) fn refuse_world(&mut self, number: usize, app: usize, why: String) {
        let world = &mut self.worlds[number];
        let Some(mut asked) = world.asked.take() else { return };
        world.is_refused = true;
        self.bonds.forget(number, |slot| self.ranks[slot].world);
        let line = why.strip_prefix("program: ").unwrap_or(&why).to_owned();
        self.decide(number, |end| end.broken(Outcome::Broken(why)));
        // A command may have no process if its number may be 0. Then the others start without it.
        match asked.commands.get_mut(app) {
            Some(command) if command.counts.contains(&0) && command.counts != [0] => {
                command.counts = vec![0];
                let commands = std::mem::take(&mut asked.commands);
                self.start_commands(asked, commands);
            }
            _ => self.refuse(asked, refused(line)),
        }
    }

    /// Takes back the slots of refused worlds that have ended, if no later world has others and no process of them has
    /// joined the job.
    pub(super) fn remove_refused_worlds(&mut self) {
        while let Some(world) = self.worlds.last() {
            let slots = world.slots.clone();
            let joined = |slot| self.segment.state(slot) != State::Started;
            if !world.is_refused || !self.is_over(world) || slots.clone().any(joined) {
                break;
            }
            for mut watched in self.ranks.drain(slots.clone()) {
                watched.streams.iter_mut().for_each(|source| {
                    while source.pump(self.outputs) {}
                    source.finish(self.outputs);
                });
                let Some(start::Started { child, control, lifeline }) = watched.process else {
                    continue;
                };
                // The kernel kills what the process has left behind, and then its number is free.
                drop((control, lifeline));
                let _exit_is_known = child.as_ref().map(Child::reap);
            }
            self.worlds.pop();
            self.segment.remove_world(slots);
        }
    }
}

/// Returns what mpiexec needs to know about a command, without the number of its processes.
fn app(command: &Command) -> Result<App, Refusal> {
    let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let some = |bytes: &[u8]| (!bytes.is_empty()).then(|| text(bytes));
    if command.program.is_empty() {
        return Err(refused("the name of the program is empty"));
    }
    let directory = some(&command.directory).map(PathBuf::from);
    if let Some(directory) = &directory {
        check_directory(directory)?;
    }
    let errhandler = match command.errhandler.as_slice() {
        [] => None,
        name => {
            let known = args::ERRHANDLERS.into_iter().find(|known| known.as_bytes() == name);
            Some(known.ok_or_else(|| refused("mpi_initial_errhandler: there is no such handler"))?)
        }
    };
    Ok(App {
        program: text(&command.program),
        arguments: command.arguments.iter().map(|argument| text(argument)).collect(),
        directory,
        path: some(&command.path),
        errhandler,
        ..App::none()
    })
}

fn check_directory(directory: &Path) -> Result<(), Refusal> {
    let refused = |error| refused(format!("wdir: '{}': {error}", directory.display()));
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(refused(std::io::ErrorKind::NotADirectory.into())),
        Err(error) => Err(refused(error)),
    }
}

/// Chooses a number of processes for each command: the largest allowed ones with at most `free` processes together.
/// `allowed` has the allowed numbers of each command, largest first. Returns `None` if no choice is possible.
fn numbers(allowed: &[&[u32]], free: usize) -> Option<Vec<u32>> {
    let mut free = free as u64;
    let least = |counts: &&[u32]| counts.iter().min().copied().map(u64::from);
    let mut later: u64 = allowed.iter().map(&least).sum::<Option<u64>>()?;
    let mut chosen = Vec::with_capacity(allowed.len());
    for counts in allowed {
        later -= least(counts)?;
        let fits = |count: &&u32| u64::from(**count) + later <= free;
        let count = *counts.iter().filter(fits).max()?;
        free -= u64::from(count);
        chosen.push(count);
    }
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_that_fit() {
        assert_eq!(numbers(&[&[4]], 4), Some(vec![4]));
        assert_eq!(numbers(&[&[4]], 3), None);
        assert_eq!(numbers(&[&[4, 2, 1]], 3), Some(vec![2]));
        assert_eq!(numbers(&[&[4, 2], &[3, 1]], 5), Some(vec![4, 1]));
        assert_eq!(numbers(&[&[4, 2], &[3]], 5), Some(vec![2, 3]));
        assert_eq!(numbers(&[&[2, 0], &[2, 0]], 1), Some(vec![0, 0]));
        assert_eq!(numbers(&[&[u32::MAX], &[u32::MAX]], usize::MAX), Some(vec![u32::MAX; 2]));
        assert_eq!((numbers(&[], 1), numbers(&[&[]], 1)), (Some(vec![]), None));
    }
}
