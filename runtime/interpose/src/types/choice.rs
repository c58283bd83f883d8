//! The choice between the host's packing and ours, for one layout.
//!
//! Equal types share their choices: a program may make a type for each exchange and free it again, and would never end
//! the measurements otherwise.
//!
//! For each direction and each class of sizes (powers of two), a chooser of the engine measures both ways on the
//! program's own data, and picks the faster one. Ours is the static choice. Where the host is faster, packing calls go
//! straight to the host. Messages do not: see [`Choices::packer`].

use crate::report::COUNTS;
use crate::settings::settings;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use typepack_engine::choice::Chooser;
use typepack_engine::{Combiner, Plan, wire};

/// What a packed buffer is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packer {
    /// Our kernels.
    Ours,
    /// `MPI_Pack` or `MPI_Unpack` of the host.
    Host,
}

/// A decision for one call.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// The way to use.
    pub way: Packer,
    timed: bool,
    class: u8,
    job: Job,
}

impl Decision {
    /// Our kernels, not measured.
    pub fn ours(job: Job) -> Self {
        Self { way: Packer::Ours, timed: false, class: 0, job }
    }
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Memory is packed.
    Pack,
    /// Packed bytes are unpacked.
    Unpack,
}

/// Number of classes of sizes: the bits of a number of bytes.
const CLASSES: usize = 64;

/// The choosers of one layout and one job.
struct Classes([OnceLock<Box<Mutex<Chooser>>>; CLASSES]);

/// The choosers of one layout, or of equal ones.
pub struct Choices([OnceLock<Box<Classes>>; 2]);

/// How many choices are kept for types that may come again.
const KEPT: usize = 256;

/// The longest encoding of a layout whose choices are shared. Types with long lists of indices have longer ones; to
/// compare them would take longer than to measure.
const LONGEST: usize = 1024;

/// What equal types have in common: how the outermost one was made, on which the host's way depends, and the layout.
type Key = (Combiner, Vec<u8>);

/// The choices by types. Those of types that no longer exist stay, so that the next such type finds them.
static SHARED: Mutex<Option<HashMap<Key, Arc<Choices>>>> = Mutex::new(None);

/// Returns the choices of a plan, which are those of all equal types.
pub fn of(plan: &Plan) -> Arc<Choices> {
    let new = || Arc::new(Choices::new());
    let Some(combiner) = plan.datatype().map(|tree| tree.combiner()) else { return new() };
    let Some(encoding) = wire::encode_within(plan, LONGEST) else { return new() };
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let shared = shared.get_or_insert_default();
    let key = (combiner, encoding);
    if let Some(known) = shared.get(&key) {
        return known.clone();
    }
    if shared.len() >= KEPT {
        // Makes room for new types. All that no type uses go, because nothing tells which of them will come again.
        shared.retain(|_, choices| Arc::strong_count(choices) > 1);
    }
    let choices = new();
    if shared.len() < KEPT {
        shared.insert(key, choices.clone());
    }
    choices
}

impl Choices {
    /// Makes choosers without measurements.
    pub fn new() -> Self {
        Self([const { OnceLock::new() }; 2])
    }

    fn chooser(&self, job: Job, class: u8) -> &Mutex<Chooser> {
        let classes = self.0[job as usize]
            .get_or_init(|| Box::new(Classes([const { OnceLock::new() }; CLASSES])));
        classes.0[usize::from(class) % CLASSES]
            .get_or_init(|| Box::new(Mutex::new(Chooser::new(2, 0))))
    }

    /// Decides how `bytes` packed bytes are moved. Returns `None` if the call must go straight to the host: the host
    /// is the better one, and this call is not a measurement.
    pub fn decide(&self, job: Job, bytes: u64) -> Option<Decision> {
        let class = bytes.checked_ilog2().unwrap_or(0) as u8;
        let ours = Decision::ours(job);
        if !settings().tune {
            return Some(ours);
        }
        // If another thread has the chooser, this call does not wait.
        let Ok(mut chooser) = self.chooser(job, class).try_lock() else { return Some(ours) };
        let pick = chooser.pick();
        let way = if pick.way == 0 { Packer::Ours } else { Packer::Host };
        if way == Packer::Host && !pick.timed {
            return None;
        }
        if let (Packer::Ours, Some(host), Some(own)) = (way, chooser.median(1), chooser.median(0))
            && settings().report
        {
            let saved = host as i64 - own as i64;
            COUNTS.saved_ns.fetch_add(saved, Ordering::Relaxed);
        }
        Some(Decision { way, timed: pick.timed, class, job })
    }

    /// Decides who packs or unpacks a message, which travels as packed bytes in any case.
    ///
    /// If one rank's chooser picks the host and the other rank's does not, a message that went straight to the host
    /// would be packed at one end only. MPICH 5.0.2 receives packed bytes with a type of single elements up to sixty
    /// times as slowly as with the same type at both ends: in shared memory, it reads the sender's memory element by
    /// element.
    pub fn packer(&self, job: Job, bytes: u64) -> Decision {
        self.decide(job, bytes).unwrap_or(Decision { way: Packer::Host, ..Decision::ours(job) })
    }

    /// Does the work of a decision, and measures it if the chooser wants that.
    #[inline]
    pub fn run<R>(&self, decision: Decision, work: impl FnOnce() -> R) -> R {
        if !decision.timed {
            return work();
        }
        let start = Instant::now();
        let result = work();
        self.report(decision, u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        result
    }

    /// Tells the chooser what a decision that it measures has cost, in nanoseconds.
    fn report(&self, decision: Decision, cost: u64) {
        if decision.timed
            && let Ok(mut chooser) = self.chooser(decision.job, decision.class).try_lock()
        {
            chooser.report(decision.way as u8, cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Choices, Decision, Job, KEPT, Packer, SHARED, of};
    use std::sync::Arc;
    use typepack_engine::{Datatype, Plan};

    fn plan(text: &str) -> Plan {
        text.parse::<Datatype>().unwrap().commit().unwrap()
    }

    /// Each commit once began with new choosers, so that a program that makes a type for each exchange measured
    /// forever.
    #[test]
    fn equal_types_share_their_choices() {
        let first = of(&plan("vector(9, 1, 2, double)"));
        assert!(Arc::ptr_eq(&first, &of(&plan("vector(9, 1, 2, double)"))));
        assert!(!Arc::ptr_eq(&first, &of(&plan("vector(9, 1, 3, double)"))));
        // The host may pack a type faster that was made in another way.
        assert!(!Arc::ptr_eq(&first, &of(&plan("hvector(9, 1, 16, double)"))));
        // A type that ends leaves its choices to the next one. Their number is bounded.
        let kept = Arc::downgrade(&of(&plan("vector(9, 1, 4, double)")));
        assert!(Arc::ptr_eq(&kept.upgrade().unwrap(), &of(&plan("vector(9, 1, 4, double)"))));
        for step in 0..2 * KEPT {
            drop(of(&plan(&format!("vector(7, 1, {}, double)", step + 2))));
            assert!(SHARED.lock().unwrap().as_ref().unwrap().len() <= KEPT);
        }
        assert!(Arc::ptr_eq(&first, &of(&plan("vector(9, 1, 2, double)"))), "it is in use");
    }

    /// Where the host packed faster, messages once went to the host with the program's type. MPICH was slow if the
    /// other rank's chooser had not picked the host (`halo-128` of `typepack-bench interpose`).
    #[test]
    fn messages_travel_packed_if_the_host_packs_faster() {
        let choices = Choices::new();
        // The costs are made up: durations that the test measured would depend on what else the machine does.
        let report = |decision: Decision| {
            choices.report(decision, if decision.way == Packer::Ours { 100_000 } else { 1_000 });
        };
        for _ in 0..100 {
            report(choices.packer(Job::Pack, 4096));
        }
        // A packing call goes straight to the host now, and the host packs messages, apart from single measurements.
        let straight =
            (0..64).filter(|_| choices.decide(Job::Pack, 4096).map(report).is_none()).count();
        assert!(straight >= 40, "{straight}");
        let host =
            (0..64).map(|_| choices.packer(Job::Pack, 4096)).inspect(|&decision| report(decision));
        let host = host.filter(|decision| decision.way == Packer::Host).count();
        assert!(host >= 40, "{host}");
    }
}
