//! The steps of one schedule, and how they are listed.
//!
//! A [`Builder`] lists steps in order; a step waits for those it is told to wait for
//! ([`Builder::after`], [`Builder::follow`]). Steps that wait for nothing are issued in the order in
//! which they were listed. All messages of a schedule have one tag, so that between two ranks they
//! match in the order in which they are issued: where there are several, both sides must fix it.
//!
//! A step fails when it fails itself, or when a step fails that it comes [`after`](Builder::after). A
//! send that fails goes out as a void message, a receive takes its message all the same, a
//! copy or combination is left out.
//!
//! The memory of a schedule that is over is used again by the next: listing allocates nothing when
//! it has been done once with as many steps.

use super::part::Part;
use crate::endpoint::sources::Combine;
use crate::message::payload::LayoutRef;
use crate::message::typecheck::{OF_LAYOUT, UNKNOWN, of_message};
use crate::{Error, ErrorKind, Plan, Result};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Another rank: where messages go, and what it is called in errors.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its place in the job.
    pub slot: usize,
    /// Its rank in the communicator.
    pub rank: usize,
}

/// A step of the schedule that is being listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepId(u32);

/// A plan of the caller's, which lives as long as the call waits, or our own.
#[derive(Debug)]
enum PlanRef {
    Borrowed(NonNull<Plan>),
    Owned(Plan),
}

// SAFETY: a plan is immutable and shared; the borrowed one is valid until the schedule is over or
// detached (promise of who starts it).
unsafe impl Send for PlanRef {}

impl PlanRef {
    #[inline]
    fn get(&self) -> &Plan {
        match self {
            // SAFETY: valid until the schedule is over or detached, after which nobody asks.
            Self::Borrowed(plan) => unsafe { plan.as_ref() },
            Self::Owned(plan) => plan,
        }
    }
}

/// A part, with its plan by number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    origin: *mut u8,
    count: u64,
    pub bytes: u64,
    plan: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Send { part: Piece, to: usize, types: u32 },
    Receive { part: Piece, from: Peer },
    Copy { from: Piece, to: Piece, rank: usize, compared: bool },
    Combine { lower: *const u8, upper: *mut u8, first: u64, elements: u64, bytes: u64 },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub action: Action,
    /// Steps that it waits for, of all and of those that are not over.
    needs: u32,
    left: u32,
    /// The first edge to a step that waits for this one.
    edges: u32,
    pub failed: bool,
    pub over: bool,
    /// The request of a message in flight; 0 is none.
    pub request: u64,
}

// SAFETY: addresses; who starts a schedule promises that its memory may be used from any thread until
// it is over or detached.
unsafe impl Send for Step {}

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    next: u32,
    /// A failure goes along.
    fails: bool,
}

const NONE: u32 = u32::MAX;

/// Bytes of scratch memory that a schedule keeps when it is over, where it may keep any.
const KEPT_SCRATCH: usize = 4 << 20;

/// One schedule.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub steps: Vec<Step>,
    edges: Vec<Edge>,
    plans: Vec<PlanRef>,
    scratch: Vec<Vec<u128>>,
    scratch_used: usize,
    pub combine: Option<Combine>,
    /// Steps that are ready, in the order in which they became so, and how many of them have been
    /// issued.
    ready: Vec<u32>,
    issued: usize,
    /// Steps that are not over.
    pub open: usize,
    /// The failure of the step that was listed first among those that failed.
    failure: Option<(u32, Error)>,
    /// Nobody's memory is used any more: sends are void, receives are dropped.
    pub void: bool,
    /// Another rank cannot be told of a failure: this rank waits for no messages any more.
    pub cut_off: bool,
    /// Errands that are being run.
    pub errands: u32,
}

impl Schedule {
    /// Forgets everything but memory.
    pub fn clear(&mut self, keep_scratch: bool) {
        self.steps.clear();
        self.edges.clear();
        self.plans.clear();
        self.scratch_used = 0;
        let kept = self.scratch.iter().map(|block| block.capacity() * 16).sum::<usize>();
        if !keep_scratch || kept > KEPT_SCRATCH {
            self.scratch = Vec::new();
        }
        self.combine = None;
        self.rewind();
    }

    /// Makes it ready to run (again).
    pub fn rewind(&mut self) {
        self.ready.clear();
        self.issued = 0;
        self.open = self.steps.len();
        self.failure = None;
        self.void = false;
        self.cut_off = false;
        self.errands = 0;
        for (number, step) in self.steps.iter_mut().enumerate() {
            step.left = step.needs;
            step.failed = false;
            step.over = false;
            step.request = 0;
            if step.needs == 0 {
                self.ready.push(number as u32);
            }
        }
    }

    /// Makes the plans of the caller last.
    pub fn keep_plans(&mut self) {
        for plan in &mut self.plans {
            if let PlanRef::Borrowed(borrowed) = plan {
                // SAFETY: the caller that has just listed the steps still lends it.
                let kept = unsafe { borrowed.as_ref() }.clone();
                *plan = PlanRef::Owned(kept);
            }
        }
    }

    /// The layout of a piece.
    #[inline]
    pub fn layout(&self, piece: &Piece) -> LayoutRef<'_> {
        let plan = self.plans[piece.plan as usize].get();
        LayoutRef { origin: piece.origin, plan, count: piece.count }
    }

    /// The next step that is ready.
    #[inline]
    pub fn next(&mut self) -> Option<u32> {
        match self.ready.get(self.issued) {
            Some(step) => {
                self.issued += 1;
                Some(*step)
            }
            None => {
                self.ready.clear();
                self.issued = 0;
                None
            }
        }
    }

    /// A step is over.
    #[inline]
    pub fn finish(&mut self, number: u32, outcome: Result<()>) {
        let step = &mut self.steps[number as usize];
        step.over = true;
        step.request = 0;
        self.open -= 1;
        if let Err(error) = outcome {
            step.failed = true;
            if self.failure.as_ref().is_none_or(|(first, _)| number < *first) {
                self.failure = Some((number, error));
            }
        }
        let (failed, mut edge) = (step.failed, step.edges);
        while let Some(Edge { to, next, fails }) = self.edges.get(edge as usize).copied() {
            let later = &mut self.steps[to as usize];
            later.left -= 1;
            later.failed |= failed && fails;
            if later.left == 0 {
                self.ready.push(to);
            }
            edge = next;
        }
    }

    /// What has become of it.
    pub fn result(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Whether another rank may wait for what it has yet to send.
    pub fn is_needed(&self) -> bool {
        self.steps.iter().any(|step| !step.over && matches!(step.action, Action::Send { .. }))
    }
}

/// Lists the steps of a schedule.
///
/// What is listed is memory that whoever starts the schedule answers for; plans live for `'a`.
#[derive(Debug)]
pub struct Builder<'s, 'a> {
    schedule: &'s mut Schedule,
    plans: PhantomData<&'a Plan>,
}

impl<'s, 'a> Builder<'s, 'a> {
    pub(super) fn new(schedule: &'s mut Schedule) -> Self {
        Self { schedule, plans: PhantomData }
    }

    #[inline]
    fn piece(&mut self, part: &Part<'a>) -> Result<Piece> {
        let plans = &mut self.schedule.plans;
        // Mostly the plan of the piece before.
        let same = |known: &PlanRef| matches!(known, PlanRef::Borrowed(plan) if std::ptr::eq(plan.as_ptr(), part.plan));
        let plan = match plans.iter().rev().take(4).position(same) {
            Some(back) => plans.len() - 1 - back,
            None => {
                plans.push(PlanRef::Borrowed(NonNull::from(part.plan)));
                plans.len() - 1
            }
        };
        let bytes = part.plan.packed_bytes(part.count)?;
        Ok(Piece { origin: part.origin, count: part.count, bytes, plan: plan as u32 })
    }

    #[inline]
    fn push(&mut self, action: Action) -> StepId {
        let steps = &mut self.schedule.steps;
        let (edges, request) = (NONE, 0);
        steps.push(Step { action, needs: 0, left: 0, edges, failed: false, over: false, request });
        StepId(steps.len() as u32 - 1)
    }

    /// Sends a part.
    ///
    /// # Errors
    /// More bytes than can be counted.
    #[inline]
    pub fn send(&mut self, part: &Part<'a>, to: Peer) -> Result<StepId> {
        let part = self.piece(part)?;
        Ok(self.push(Action::Send { part, to: to.slot, types: OF_LAYOUT }))
    }

    /// Sends a part that has the types of `origin`, from which it will have been packed.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_packed(
        &mut self,
        part: &Part<'a>,
        origin: &Part<'a>,
        to: Peer,
        checked: bool,
    ) -> Result<StepId> {
        let types = if checked { of_message(origin.plan, origin.count) } else { UNKNOWN };
        let part = self.piece(part)?;
        Ok(self.push(Action::Send { part, to: to.slot, types }))
    }

    /// Receives a part, of which every byte must come.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub fn receive(&mut self, part: &Part<'a>, from: Peer) -> Result<StepId> {
        let part = self.piece(part)?;
        Ok(self.push(Action::Receive { part, from }))
    }

    /// Copies a part of rank `rank`, which is this one, into another; they overlap nowhere. Their types
    /// are compared where those of messages are.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn copy(&mut self, from: &Part<'a>, to: &Part<'a>, rank: usize) -> Result<StepId> {
        let compared = !from.plan.is_same(to.plan);
        let (from, to) = (self.piece(from)?, self.piece(to)?);
        Ok(self.push(Action::Copy { from, to, rank, compared }))
    }

    /// Packs a part into as many bytes.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn pack(&mut self, from: &Part<'a>, to: &Part<'a>, rank: usize) -> Result<StepId> {
        let (from, to) = (self.piece(from)?, self.piece(to)?);
        Ok(self.push(Action::Copy { from, to, rank, compared: false }))
    }

    /// Sets the operation of [`combine`](Self::combine).
    pub fn operation(&mut self, combine: &Combine) {
        self.schedule.combine = Some(combine.clone());
    }

    /// Combines the elements at `lower` with those at `upper`, which take the result; `all` has their
    /// type, and how many there are.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub fn combine(&mut self, lower: *const u8, upper: *mut u8, all: &Part<'a>) -> Result<StepId> {
        let (first, elements, bytes) = (0, all.count, all.bytes()?);
        Ok(self.push(Action::Combine { lower, upper, first, elements, bytes }))
    }

    /// `step` waits for `earlier`, and fails with it.
    #[inline]
    pub fn after(&mut self, step: StepId, earlier: StepId) {
        self.edge(step, earlier, true);
    }

    /// `step` waits for `earlier`, whatever becomes of it.
    #[inline]
    pub fn follow(&mut self, step: StepId, earlier: StepId) {
        self.edge(step, earlier, false);
    }

    #[inline]
    fn edge(&mut self, step: StepId, earlier: StepId, fails: bool) {
        let Schedule { steps, edges, .. } = &mut *self.schedule;
        steps[step.0 as usize].needs += 1;
        let first = &mut steps[earlier.0 as usize].edges;
        edges.push(Edge { to: step.0, next: *first, fails });
        *first = edges.len() as u32 - 1;
    }

    /// Room of the schedule's own for `count` elements of `plan`'s type, as in a buffer of the user's:
    /// the address of displacement 0, a multiple of 16. What it holds at first is anything.
    ///
    /// # Errors
    /// Out of memory.
    pub fn scratch(&mut self, plan: &Plan, count: u64) -> Result<*mut u8> {
        let shape = plan.footprint();
        let last = i128::from(shape.extent) * i128::from(count.saturating_sub(1));
        let low = (i128::from(shape.true_lb) + last.min(0)).min(0);
        let high = (i128::from(shape.true_ub) + last.max(0)).max(0);
        // Rounded down to the alignment of the memory.
        let low = low.div_euclid(16) * 16;
        let words = (high - low).div_euclid(16) + 1;
        let refused = || {
            let detail = format!("{} bytes for a partial result were refused", high - low);
            Error::new(ErrorKind::NoMemory, "memory", detail)
        };
        let words = usize::try_from(words).map_err(|_| refused())?;
        let Schedule { scratch, scratch_used, .. } = &mut *self.schedule;
        if *scratch_used == scratch.len() {
            scratch.push(Vec::new());
        }
        let block = &mut scratch[*scratch_used];
        if block.len() < words {
            // Nothing of it is to be moved.
            block.clear();
            block.try_reserve_exact(words).map_err(|_| refused())?;
            block.resize(words, 0);
        }
        *scratch_used += 1;
        Ok(block.as_mut_ptr().cast::<u8>().wrapping_add(-low as usize))
    }
}
