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
//!
//! A process looks first, and counts its bytes only if they fit and no other process has counted meanwhile; else it
//! looks again. So bytes that are refused are never in a count, where they could make another process fail.

use super::layout::Header;
use super::segment::Segment;
use crate::error::{Error, ErrorKind};
use crate::sys::{limits, memory};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

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
    take_with(segment.header(), bytes, need, limits::tightest, || segment.untouched())
}

fn take_with(
    header: &Header,
    bytes: u64,
    need: Need,
    tightest: impl Fn() -> (u64, String),
    untouched: impl Fn() -> u64,
) -> Result<(), Error> {
    let budget = header.budget.load(Relaxed);
    // A reservation that the job can do without is refused if the count would pass three quarters of the
    // budget. It must also leave four times as much memory to other programs as a necessary reservation.
    let (share, margin) = match need {
        Need::Must => (budget, MARGIN),
        Need::Wish => (budget / 4 * 3, 4 * MARGIN),
    };
    loop {
        let before = header.taken.load(Relaxed);
        let after = before.saturating_add(bytes);
        let count = || header.taken.compare_exchange(before, after, SeqCst, Relaxed).is_ok();
        if after <= share && after <= header.checked.load(Relaxed) {
            if count() {
                return Ok(());
            }
            continue;
        }
        let ((left, name), others) = (tightest(), untouched());
        let open = others.saturating_add(bytes);
        // What is promised to programs keeps its memory. For that, a necessary reservation needs no margin: the margin
        // is there for reservations like it.
        let kept = match need {
            Need::Must => open,
            Need::Wish => open.saturating_add(margin),
        };
        if after > share || left < bytes.saturating_add(margin).max(kept) {
            return Err(Error::new(
                ErrorKind::NoMemory,
                format!(
                    "cannot reserve {bytes} bytes of shared memory: the job has reserved {before} of the {budget} \
                     bytes that were available at its start, and {left} bytes are left now, of which {others} bytes \
                     are promised already (limit: {name})"
                ),
            ));
        }
        if count() {
            // A promise that was made since the look has not seen these bytes, so it stays, and these bytes go.
            if untouched() > open && left < bytes.saturating_add(margin).max(untouched()) {
                header.taken.fetch_sub(bytes, Relaxed);
                continue;
            }
            let free = left.saturating_sub(open.saturating_add(MARGIN));
            header.checked.fetch_max(after + free / 16, Relaxed);
            return Ok(());
        }
    }
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
    /// Promises `bytes` bytes. `open` gets the number of promised bytes with these bytes. It returns how many of them
    /// and of the reserved ones have no memory yet. Of two processes that promise at the same moment what fits once,
    /// one gets it.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if too little memory is left. The error names the limit.
    pub fn promise(self, bytes: u64, open: impl Fn(u64) -> u64) -> Result<(), Error> {
        self.promise_with(bytes, open, limits::tightest)
    }

    fn promise_with(
        self,
        bytes: u64,
        open_with: impl Fn(u64) -> u64,
        tightest: impl Fn() -> (u64, String),
    ) -> Result<(), Error> {
        let spend = |credit: u64| credit.checked_sub(bytes);
        if self.credit.fetch_update(Relaxed, Relaxed, spend).is_ok() {
            self.promised.fetch_add(bytes, Relaxed);
            return Ok(());
        }
        loop {
            let before = self.promised.load(Relaxed);
            let after = before.saturating_add(bytes);
            let ((left, name), open) = (tightest(), open_with(after));
            let needed = open.max(bytes).saturating_add(MARGIN);
            if left < needed {
                let others = open.saturating_sub(bytes);
                return Err(Error::new(
                    ErrorKind::NoMemory,
                    format!(
                        "cannot allocate {bytes} bytes of {}: this process can still get {} bytes (limit: {name}; \
                         {others} bytes are promised already and not used yet)",
                        self.what,
                        left.saturating_sub(MARGIN).saturating_sub(others)
                    ),
                ));
            }
            if self.promised.compare_exchange(before, after, SeqCst, Relaxed).is_ok() {
                // The same for a reservation that was made since the look.
                let now = open_with(after);
                if now > open && left < now.max(bytes).saturating_add(MARGIN) {
                    self.promised.fetch_sub(bytes, Relaxed);
                    continue;
                }
                self.credit.store((left - needed) / 16, Relaxed);
                return Ok(());
            }
        }
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
        self.ledger().promise(bytes, |promised| self.without_memory(promised))
    }

    /// Returns how many bytes of the segment are promised or reserved and have no memory yet.
    fn untouched(&self) -> u64 {
        self.without_memory(self.header().promised.load(SeqCst))
    }

    /// Returns what [`untouched`](Self::untouched) returns if `promised` bytes are promised.
    fn without_memory(&self, promised: u64) -> u64 {
        let counted = promised.saturating_add(self.header().taken.load(SeqCst));
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
    use std::cell::Cell;

    const MIB: u64 = 1 << 20;

    /// Reserves memory where `look` returns what is left, with the name of the limit, and what is promised.
    fn take_looking(
        header: &Header,
        bytes: u64,
        need: Need,
        look: impl Fn() -> ((u64, String), u64),
    ) -> Result<(), Error> {
        let promised = Cell::new(0);
        let tightest = || {
            let (left, others) = look();
            promised.set(others);
            left
        };
        take_with(header, bytes, need, tightest, || promised.get())
    }

    #[test]
    fn the_job_stays_within_its_budget_and_slows_down_first() {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let header = segment.header();
        header.budget.store(100 * MIB, Relaxed);
        let plenty = || ((1 << 40, "x".to_owned()), 0);
        let take = |bytes, need| take_looking(header, bytes, need, plenty);
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
        let open = |promised| promised;
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
        assert!(take_looking(header, 8 * MIB, Need::Must, left(160)).is_ok());
        assert!(take_looking(header, 8 * MIB, Need::Must, || unreachable!()).is_ok());
        assert!(take_looking(header, 8 * MIB, Need::Wish, left(39)).is_err());
        assert!(take_looking(header, 8 * MIB, Need::Must, left(15)).is_err());
        assert!(take_looking(header, 8 * MIB, Need::Must, left(16)).is_ok());
        assert!(take_looking(header, 1, Need::Must, left(0)).is_err());
        // Promised memory that nobody has touched is kept, without a margin for what the job needs.
        let look = |left: u64, open: u64| move || ((left * MIB, String::new()), open * MIB);
        assert!(take_looking(header, 8 * MIB, Need::Must, look(100, 93)).is_err());
        assert!(take_looking(header, 8 * MIB, Need::Must, look(100, 92)).is_ok());
        assert!(take_looking(header, 8 * MIB, Need::Wish, look(100, 61)).is_err());
        assert!(take_looking(header, 8 * MIB, Need::Wish, look(100, 60)).is_ok());
    }

    /// Two processes promise or reserve at the same moment what fits once: one gets it.
    #[test]
    fn one_of_two_promises_is_kept() {
        let (promised, credit) = (AtomicU64::new(0), AtomicU64::new(0));
        let ledger = Ledger { promised: &promised, credit: &credit, what: "memory" };
        let left = || (200 * MIB, String::new());
        let other = Cell::new(None);
        let first = ledger.promise_with(
            120 * MIB,
            |all| {
                // The other process looks and counts after this one has looked.
                if other.get().is_none() {
                    other.set(Some(ledger.promise_with(120 * MIB, |all| all, left).is_ok()));
                }
                all
            },
            left,
        );
        assert!(first.is_err() && other.get() == Some(true));
        assert_eq!(promised.load(Relaxed), 120 * MIB);

        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let header = segment.header();
        header.budget.store(200 * MIB, Relaxed);
        let plenty = || ((1 << 40, String::new()), 0);
        let other = Cell::new(None);
        let first = take_looking(header, 120 * MIB, Need::Must, || {
            if other.get().is_none() {
                other.set(Some(take_looking(header, 120 * MIB, Need::Must, plenty).is_ok()));
            }
            plenty()
        });
        assert!(first.is_err() && other.get() == Some(true));
        assert_eq!(header.taken.load(Relaxed), 120 * MIB);
    }

    /// A promise or reservation of a terabyte that is about to be refused does not make another process fail.
    #[test]
    fn what_is_refused_is_never_counted() {
        const TERA: u64 = 1 << 40;
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let header = segment.header();
        header.budget.store(200 * MIB, Relaxed);
        let ledger = segment.ledger();
        let left = || (200 * MIB, String::new());
        let open = |promised| promised + header.taken.load(Relaxed);
        let look = || (left(), open(header.promised.load(Relaxed)));
        let others = || {
            assert!(ledger.promise_with(MIB, open, left).is_ok());
            assert!(take_looking(header, MIB, Need::Must, look).is_ok());
        };
        let promised = ledger.promise_with(
            TERA,
            |all| {
                others();
                open(all)
            },
            left,
        );
        assert!(promised.is_err());
        let taken = take_looking(header, TERA, Need::Must, || {
            others();
            look()
        });
        assert!(taken.is_err());
        assert_eq!(
            [&header.promised, &header.taken].map(|count| count.load(Relaxed)),
            [2 * MIB; 2]
        );
    }

    /// A process promises what another one reserves at the same moment, and fits once: not both get it.
    #[test]
    fn a_promise_and_a_reservation_do_not_get_the_same_memory() {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let header = segment.header();
        let (promised, taken, total) =
            (header.promised.load(SeqCst), header.taken.load(SeqCst), 200 * MIB);
        header.budget.store(1 << 40, Relaxed);
        let counted =
            || header.promised.load(SeqCst) - promised + header.taken.load(SeqCst) - taken;
        let left = || (total, String::new());
        let ledger = segment.ledger();
        let promise = || ledger.promise_with(120 * MIB, |_| counted(), left).is_ok();
        let other = Cell::new(None);
        let first = take_with(header, 120 * MIB, Need::Must, left, || {
            let seen = counted();
            if other.get().is_none() {
                other.set(Some(promise()));
            }
            seen
        });
        assert!(first.is_err() && other.get() == Some(true) && counted() == 120 * MIB);
        segment.release(120 * MIB);
        let other = Cell::new(None);
        let first = ledger.promise_with(
            120 * MIB,
            |after| {
                let seen = after - promised + header.taken.load(SeqCst) - taken;
                if other.get().is_none() {
                    other
                        .set(Some(take_with(header, 120 * MIB, Need::Must, left, counted).is_ok()));
                }
                seen
            },
            left,
        );
        assert!(first.is_err() && other.get() == Some(true) && counted() == 120 * MIB);
    }
}
