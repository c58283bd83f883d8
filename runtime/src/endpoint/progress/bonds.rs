//! The bonds of this rank with other worlds, and its requests to the launcher.
//!
//! The ranks of a job form worlds: those that the launcher has started together. A rank has a bond with another world
//! as long as it has a communicator with members of that world. The launcher must know the bonds, because a failure ends
//! all that is connected with the failed rank (`launcher/src/watch/bonds.rs`). `comm/` calls these functions for
//! each communicator, and `processes/` makes requests.

use super::{Awaited, Endpoint};
use crate::process::membership;
use crate::settings::Settings;
use crate::shm::attach::Attached;
use crate::sys::channel::Bond;
use crate::sys::fork;
use crate::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use typepack_job::service::{Answer, Request};

/// The bonds of this rank.
#[derive(Debug, Default)]
pub(super) struct Bonds {
    /// The number of communicators with members of another world, by the first slot of that world.
    communicators: Mutex<BTreeMap<usize, usize>>,
    /// The way to the launcher; empty if no launcher has started this process, and it has asked for nothing yet.
    launcher: OnceLock<&'static Attached>,
    /// The lock of the thread that makes a job of this process.
    founding: Mutex<()>,
}

impl Bonds {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        self.communicators.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, bond: Bond, world: usize) {
        if let Some(launcher) = self.launcher.get() {
            // The call fails only if the launcher has ended, and the kernel then ends this process, or if the program has
            // closed the socket, and then each later request fails and says so.
            let _ending = launcher.tell_bond(bond, world);
        }
    }
}

impl Endpoint {
    /// Sets the way to the launcher.
    pub fn set_launcher(&self, launcher: &'static Attached) {
        let _once = self.bonds.launcher.set(launcher);
    }

    /// Returns the first slots of the other worlds to which the processes in these slots belong, each once.
    pub fn other_worlds(&self, slots: impl Iterator<Item = usize>) -> Vec<usize> {
        let own = self.world();
        let mut found = BTreeSet::new();
        let mut latest = own.clone();
        for slot in slots {
            if own.contains(&slot) || latest.contains(&slot) {
                continue;
            }
            if let Some(world) = self.fabric.world_of(slot) {
                found.insert(world.start);
                latest = world;
            }
        }
        found.into_iter().collect()
    }

    /// Records that this rank has one more communicator with members of these worlds.
    pub fn bind(&self, worlds: &[usize]) {
        if worlds.is_empty() || fork::is_child() {
            return;
        }
        self.fabric.share_memory(Settings::current().is_some_and(|settings| settings.cma));
        let mut communicators = self.bonds.lock();
        for &world in worlds {
            let count = communicators.entry(world).or_default();
            *count += 1;
            if *count == 1 {
                self.bonds.tell(Bond::Connected, world);
            }
        }
    }

    /// Tells the launcher that the call is over in which this rank has met the process in slot `other` at a port. Until
    /// then the launcher counts this rank as connected with the world of that process.
    pub fn end_meeting(&self, other: usize) {
        for world in self.other_worlds(std::iter::once(other)) {
            self.bonds.tell(Bond::Settled, world);
        }
    }

    /// Does what [`unbind`](Self::unbind) does, together with all other ranks of a communicator of `members` ranks, whose
    /// first context is `context`. Returns when all of them have made the call. Until then the death of one of them ends
    /// this rank, too.
    ///
    /// # Errors
    /// Returns the errors of [`ask`](Self::ask).
    pub fn unbind_together(
        &self,
        awaited: &Awaited,
        (context, members): (u64, usize),
        worlds: &[usize],
    ) -> Result<()> {
        let communicators = self.bonds.lock();
        let last = worlds.iter().filter(|world| communicators.get(world) == Some(&1));
        let last: Vec<u32> = last.map(|world| *world as u32).collect();
        drop(communicators);
        let communicator = [context as u32, (context >> 32) as u32];
        let (members, ended) = (members as u32, last.clone());
        let request = Request::Disconnect { communicator, members, worlds: last };
        match self.ask(awaited, &request)? {
            Answer::Done => {}
            _ => return Err(Error::new(ErrorKind::Other, "mpiexec", "refuses to disconnect")),
        }
        let mut communicators = self.bonds.lock();
        for world in worlds {
            let Some(count) = communicators.get_mut(world) else { continue };
            *count -= 1;
            let is_ended = ended.contains(&(*world as u32));
            match *count {
                0 => {
                    communicators.remove(world);
                    // Another thread has freed the other communicators meanwhile.
                    if !is_ended {
                        self.bonds.tell(Bond::Ended, *world);
                    }
                }
                // Another thread has made another communicator meanwhile.
                _ if is_ended => self.bonds.tell(Bond::Connected, *world),
                _ => {}
            }
        }
        Ok(())
    }

    /// Records that this rank has one communicator less with members of these worlds.
    pub fn unbind(&self, worlds: &[usize]) {
        if worlds.is_empty() || fork::is_child() {
            return;
        }
        let mut communicators = self.bonds.lock();
        for world in worlds {
            let Some(count) = communicators.get_mut(world) else { continue };
            *count -= 1;
            if *count == 0 {
                communicators.remove(world);
                self.bonds.tell(Bond::Ended, *world);
            }
        }
    }

    /// Asks the launcher, and waits for its answer. Meanwhile this rank makes progress. If no launcher has started this
    /// process, starts one behind it.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization, in a forked child, and if no launcher has started this process and
    /// none can be started, and the errors of [`attend_outside`](Self::attend_outside).
    pub fn ask(&self, awaited: &Awaited, request: &Request) -> Result<Answer> {
        drop(self.lock()?);
        let mut answer = self.launcher()?.ask(request)?;
        let waited = self.attend_outside(awaited, || answer.look().transpose());
        // If this rank has met another one nevertheless, the call is over, and the launcher must know. If no answer has
        // come, the launcher finds out that nobody reads it.
        if waited.is_err()
            && let Ok(Some(Answer::Met { slot, .. })) = answer.look()
        {
            self.end_meeting(slot as usize);
        }
        Ok(waited??)
    }

    /// Returns the way to the launcher. Makes a job of this process if it is by itself.
    fn launcher(&self) -> Result<&'static Attached> {
        if let Some(launcher) = self.bonds.launcher.get() {
            return Ok(launcher);
        }
        let _one_at_a_time = self.bonds.founding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(launcher) = self.bonds.launcher.get() {
            return Ok(launcher);
        }
        let refused = |why: String| Error::new(ErrorKind::State, "job", why);
        if self.fabric.job_number().is_some() {
            return Err(refused("this process has no launcher that it could ask".to_owned()));
        }
        let attached = membership::found().map_err(|error| {
            refused(format!(
                "this process was started without mpiexec, and cannot start it now: {error}"
            ))
        })?;
        // The threads that wait meanwhile look for news by themselves until they see the job.
        self.fabric.found(attached.segment.clone(), attached.slot)?;
        self.fabric.register_barrier(!self.spin.is_zero());
        self.set_launcher(attached);
        Ok(attached)
    }
}
