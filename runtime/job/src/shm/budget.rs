//! The budget of a job: how much memory its processes may take for rings and chunks.
//!
//! All processes count what they reserve in one word of the header. `contacts.rs` calls this file before it
//! allocates memory. Two things limit the count:
//!
//! - The launcher writes the limit of the whole job into the header: the memory that was available when
//!   the job began, less 8 MiB ([`at_start`]). The available memory is the smallest amount that the machine
//!   and the cgroups of the launcher allow (`../sys/limits.rs`).
//! - Programs also take memory that this file does not count. So a process asks the system how much memory is
//!   left whenever the count has grown by a sixteenth of the last answer. To ask costs several system calls.
//!
//! A reservation that the job can do without is refused earlier than one that it needs. So when memory is
//! short, rings and pools stay small first, and only then does an operation fail.
//!
//! Memory of the programs (heaps, and large blocks of a process without a heap) is only *promised*: the kernel takes
//! a page when the program touches it. A [`Ledger`] counts the promised bytes. A promise is refused if what is promised
//! and not touched yet would exceed the memory that is left. After each look, some more bytes may be promised without
//! another look (the credit).

use super::layout::Header;
use super::segment::Segment;
use crate::error::{Error, ErrorKind};
use crate::sys::{limits, memory};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Says whether the job can go on without a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Without the memory, an operation fails.
    Must,
    /// Without the memory, the job is slower.
    Wish,
}

/// Memory that the job leaves to others, in bytes.
const MARGIN: u64 = 8 << 20;

/// Returns the budget of a job that begins while `left` bytes of memory are available.
pub fn at_start(left: u64) -> u64 {
    left.saturating_sub(MARGIN)
}

/// Counts `bytes` bytes that the caller is about to reserve.
///
/// # Errors
///
/// Returns [`ErrorKind::NoMemory`] if the job may not take them. The error names the limit.
pub fn take(segment: &Segment, bytes: u64, need: Need) -> Result<(), Error> {
    take_with(segment.header(), bytes, need, || (limits::tightest(), segment.untouched(u64::MAX)))
}

fn take_with(
    header: &Header,
    bytes: u64,
    need: Need,
    look: impl FnOnce() -> ((u64, String), u64),
) -> Result<(), Error> {
    let after = header.taken.fetch_add(bytes, Relaxed).saturating_add(bytes);
    let budget = header.budget.load(Relaxed);
    // A reservation that the job can do without is refused if the count would pass three quarters of the
    // budget. It must also leave four times as much memory to other programs as a necessary reservation.
    let (share, margin) = match need {
        Need::Must => (budget, MARGIN),
        Need::Wish => (budget / 4 * 3, 4 * MARGIN),
    };
    if after <= share && after <= header.checked.load(Relaxed) {
        return Ok(());
    }
    let ((left, name), open) = look();
    // What is promised to programs keeps its memory. For that, a necessary reservation needs no margin: the margin is
    // there for reservations like it.
    let kept = match need {
        Need::Must => open,
        Need::Wish => open.saturating_add(margin),
    };
    if after > share || left < bytes.saturating_add(margin).max(kept) {
        give_back(header, bytes);
        return Err(Error::new(
            ErrorKind::NoMemory,
            format!(
                "cannot reserve {bytes} bytes of shared memory: the job has reserved {} of the {budget} bytes \
                 that were available at its start, and {left} bytes are left now, of which {} bytes are promised \
                 already (limit: {name})",
                after - bytes,
                open.saturating_sub(bytes)
            ),
        ));
    }
    let free = left.saturating_sub(open.max(bytes).saturating_add(MARGIN));
    header.checked.fetch_max(after + free / 16, Relaxed);
    Ok(())
}

/// The memory that processes have promised to their programs.
#[derive(Clone, Copy, Debug)]
pub struct Ledger<'a> {
    /// Number of promised bytes.
    pub promised: &'a AtomicU64,
    /// Number of bytes that may be promised without a look at the memory that is left.
    pub credit: &'a AtomicU64,
    /// The kind of memory, for errors.
    pub what: &'static str,
}

impl Ledger<'_> {
    /// Promises `bytes` bytes. `open` returns how many bytes are promised or reserved and have no memory yet. It gets
    /// the number of promised bytes with these bytes, and counts no more than that: of two processes that promise at
    /// the same moment what fits once, the first gets it.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if too little memory is left. The error names the limit.
    pub fn promise(self, bytes: u64, open: impl FnOnce(u64) -> u64) -> Result<(), Error> {
        self.promise_with(bytes, open, limits::tightest)
    }

    fn promise_with(
        self,
        bytes: u64,
        open: impl FnOnce(u64) -> u64,
        tightest: impl FnOnce() -> (u64, String),
    ) -> Result<(), Error> {
        // Count first. Of the processes that look at the same time, each then sees the bytes of those before it.
        let promised = self.promised.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let spend = |credit: u64| credit.checked_sub(bytes);
        if self.credit.fetch_update(Relaxed, Relaxed, spend).is_ok() {
            return Ok(());
        }
        let ((left, name), open) = (tightest(), open(promised));
        let needed = open.max(bytes).saturating_add(MARGIN);
        if left < needed {
            self.release(bytes);
            let others = open.saturating_sub(bytes);
            return Err(Error::new(
                ErrorKind::NoMemory,
                format!(
                    "cannot allocate {bytes} bytes of {}: this process can still get {} bytes (limit: {name}; {others} \
                     bytes are promised already and not used yet)",
                    self.what,
                    left.saturating_sub(MARGIN).saturating_sub(others)
                ),
            ));
        }
        self.credit.store((left - needed) / 16, Relaxed);
        Ok(())
    }

    /// Takes `bytes` bytes back that were promised.
    pub fn release(self, bytes: u64) {
        self.promised.fetch_sub(bytes, Relaxed);
    }
}

impl Segment {
    /// Promises `bytes` bytes of heaps: counts them against the limits of memory. The pages get memory when they
    /// are touched.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if too little memory is left. The error names the limit.
    pub fn promise(&self, bytes: u64) -> Result<(), Error> {
        self.ledger().promise(bytes, |promised| self.untouched(promised))
    }

    /// Returns how many bytes of the segment are promised or reserved and have no memory yet. At most `promised` bytes
    /// count as promised.
    fn untouched(&self, promised: u64) -> u64 {
        let header = self.header();
        let counted = header.promised.load(Relaxed).min(promised);
        let counted = counted.saturating_add(header.taken.load(Relaxed));
        counted.saturating_sub(memory::resident(self.fd()))
    }

    /// Takes back a promise of `bytes` bytes of heaps.
    pub fn release(&self, bytes: u64) {
        self.ledger().release(bytes);
    }

    fn ledger(&self) -> Ledger<'_> {
        let Header { promised, credit, .. } = self.header();
        Ledger { promised, credit, what: "shared memory" }
    }
}

/// Takes `bytes` bytes off the count, because the caller has not reserved them after all.
pub fn give_back(header: &Header, bytes: u64) {
    header.taken.fetch_sub(bytes, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_job_stays_within_its_budget_and_slows_down_first() {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let header = segment.header();
        header.budget.store(100 * MIB, Relaxed);
        let plenty = || ((1 << 40, "x".to_owned()), 0);
        let take = |bytes, need| take_with(header, bytes, need, plenty);
        assert!(take(75 * MIB, Need::Wish).is_ok());
        assert!(take(MIB, Need::Wish).is_err());
        assert!(take(25 * MIB, Need::Must).is_ok());
        let error = take(1, Need::Must).expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::NoMemory);
        assert!(error.to_string().contains("limit: x"), "{error}");
        // A refused reservation does not count.
        assert_eq!(header.taken.load(Relaxed), 100 * MIB);
        assert!(take(u64::MAX, Need::Must).is_err());
        assert_eq!(header.taken.load(Relaxed), 100 * MIB);
    }

    #[test]
    fn promises_together_stay_within_what_is_left() {
        let (promised, credit) = (AtomicU64::new(0), AtomicU64::new(0));
        let ledger = Ledger { promised: &promised, credit: &credit, what: "memory" };
        let left = |mib: u64| move || (mib * MIB, "the limit".to_owned());
        let open = |_| promised.load(Relaxed);
        assert!(ledger.promise_with(32 * MIB, open, left(200)).is_ok());
        // 160 MiB are left over, so 10 MiB need no look.
        assert!(ledger.promise_with(10 * MIB, |_| unreachable!(), || unreachable!()).is_ok());
        let error = ledger.promise_with(151 * MIB, open, left(200)).expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::NoMemory);
        let text = error.to_string();
        assert!(text.contains("limit: the limit") && text.contains("44040192 bytes are"), "{text}");
        assert_eq!(promised.load(Relaxed), 42 * MIB);
        assert!(ledger.promise_with(150 * MIB, open, left(200)).is_ok());
        ledger.release(192 * MIB);
        // Touched memory is left no more, and not open any more.
        assert!(ledger.promise_with(100 * MIB, |_| 100 * MIB, left(107)).is_err());
        assert!(ledger.promise_with(100 * MIB, |_| 100 * MIB, left(108)).is_ok());
        assert!(ledger.promise_with(u64::MAX / 2, |_| 0, left(1 << 20)).is_err());
    }

    #[test]
    fn memory_that_the_programs_take_counts_too() {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let header = segment.header();
        header.budget.store(1 << 40, Relaxed);
        let left = |mib: u64| move || ((mib * MIB, String::new()), 0);
        // 160 MiB are left, so the next look follows when the job has taken 9 MiB more.
        assert!(take_with(header, 8 * MIB, Need::Must, left(160)).is_ok());
        assert!(take_with(header, 8 * MIB, Need::Must, || unreachable!()).is_ok());
        assert!(take_with(header, 8 * MIB, Need::Wish, left(39)).is_err());
        assert!(take_with(header, 8 * MIB, Need::Must, left(15)).is_err());
        assert!(take_with(header, 8 * MIB, Need::Must, left(16)).is_ok());
        assert!(take_with(header, 1, Need::Must, left(0)).is_err());
        // Promised memory that nobody has touched is kept, without a margin for what the job needs.
        let look = |left: u64, open: u64| move || ((left * MIB, String::new()), open * MIB);
        assert!(take_with(header, 8 * MIB, Need::Must, look(100, 101)).is_err());
        assert!(take_with(header, 8 * MIB, Need::Must, look(100, 100)).is_ok());
        assert!(take_with(header, 8 * MIB, Need::Wish, look(100, 69)).is_err());
        assert!(take_with(header, 8 * MIB, Need::Wish, look(100, 68)).is_ok());
    }

    /// Two processes promise at the same moment what fits once.
    #[test]
    fn the_first_of_two_promises_is_kept() {
        let (promised, credit) = (AtomicU64::new(0), AtomicU64::new(0));
        let ledger = Ledger { promised: &promised, credit: &credit, what: "memory" };
        let left = || (200 * MIB, String::new());
        let open = |most: u64| promised.load(Relaxed).min(most);
        let mut second = Ok(());
        let first = ledger.promise_with(
            120 * MIB,
            |most| {
                // The other process counts its bytes before this one looks, and looks before this one is done.
                promised.fetch_add(120 * MIB, Relaxed);
                let own = open(most);
                promised.fetch_sub(120 * MIB, Relaxed);
                second = ledger.promise_with(120 * MIB, open, left);
                own
            },
            left,
        );
        assert!(first.is_ok() && second.is_err());
        assert_eq!(promised.load(Relaxed), 120 * MIB);
    }
}
