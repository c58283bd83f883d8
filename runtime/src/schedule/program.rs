//! The steps of one schedule, and the builder that lists them.
//!
//! A [`Builder`] lists steps in order. A step waits for other steps only if the code that lists the steps
//! asks for it ([`Builder::after`], [`Builder::follow`]). Steps that wait for nothing are issued in the
//! order in which they were listed. All messages of a schedule have the same tag, so messages between two
//! ranks match in the order in which the ranks issue them. If a schedule sends several messages to one rank,
//! the schedules of both ranks must fix the order of these messages.
//!
//! A step fails if its own work fails, or if it waits for another step by [`after`](Builder::after) and that
//! step fails. A send that fails in this second way sends a void message instead of its data: a message
//! without data, which makes the receive of the other rank fail. A receive that fails in this way still
//! takes its message, and a copy or a combination does nothing.
//!
//! A new schedule reuses the memory of a schedule that has ended. So listing the new steps allocates nothing if the
//! ended schedule had at least as many steps, plans and waits between steps. (For scratch memory, see
//! [`Schedule::clear`].)

use crate::endpoint::sources::Combine;
use crate::message::typecheck::{OF_LAYOUT, UNKNOWN, of_message};
use crate::process::Process;
use crate::{Error, ErrorKind, Plan, Result};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use typepack_engine::Elements;
use typepack_engine::reserve::{Grow, insist};

/// Another rank, as the destination or source of messages: its slot, and its rank for error texts.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The peer's process.
    pub process: Process,
    /// The peer's rank in the communicator.
    pub rank: usize,
}

/// The number of a step in the schedule that is being listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepId(u32);

/// The plan of an operand: either a plan that the caller lends while the caller waits for the schedule, or
/// an owned plan.
#[derive(Debug)]
enum PlanRef {
    Borrowed(NonNull<Plan>),
    Owned(Plan),
}

// SAFETY: a plan is immutable, so threads may share it. The caller that starts the schedule guarantees that
// a borrowed plan is valid until the schedule is over or detached.
unsafe impl Send for PlanRef {}

impl PlanRef {
    #[inline]
    fn get(&self) -> &Plan {
        match self {
            // SAFETY: the plan is valid until the schedule is over or detached (guarantee of the caller that
            // started it). `get` is called only before that.
            Self::Borrowed(plan) => unsafe { plan.as_ref() },
            Self::Owned(plan) => plan,
        }
    }
}

/// The memory that a step reads or writes: elements and their packed length. The `plan` of an operand
/// is an index into the schedule's list of plans.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    origin: *mut u8,
    count: u64,
    pub bytes: u64,
    plan: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Send {
        part: Operand,
        to: Process,
        types: u32,
    },
    Receive {
        part: Operand,
        from: Peer,
    },
    Copy {
        from: Operand,
        to: Operand,
        rank: usize,
        compared: bool,
    },
    Combine {
        lower: *const u8,
        upper: *mut u8,
        first: u64,
        elements: u64,
        bytes: u64,
    },
    /// Calls the check with this index. If it fails, the schedule ends without its later steps.
    Check {
        index: u32,
    },
}

/// A function that decides whether the later steps of a schedule run; see [`Builder::check`].
pub(super) struct Check(Box<dyn FnMut() -> Result<()> + Send>);

impl Check {
    pub fn call(&mut self) -> Result<()> {
        (self.0)()
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Check")
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub action: Action,
    /// The number of steps for which this step waits: `needs` counts all of them, and `left` counts those
    /// that are not over yet.
    needs: u32,
    left: u32,
    /// Index of the first edge that leads from this step to a step that waits for it.
    edges: u32,
    pub failed: bool,
    pub over: bool,
    /// The request of the step's message in flight; 0 if there is none.
    pub request: u64,
}

// SAFETY: a step holds only addresses and numbers. The caller that starts a schedule guarantees that any
// thread may use the memory at these addresses until the schedule is over or detached.
unsafe impl Send for Step {}

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    next: u32,
    /// True if the waiting step fails when the earlier step fails.
    fails: bool,
}

const NONE: u32 = u32::MAX;

/// Maximum size of the scratch memory that a schedule may keep after it has ended, in bytes. A schedule with
/// more scratch memory frees all of it.
const KEPT_SCRATCH: usize = (8 << 20) + 4096;

/// One schedule.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub steps: Vec<Step>,
    edges: Vec<Edge>,
    plans: Vec<PlanRef>,
    scratch: Vec<Vec<u128>>,
    scratch_used: usize,
    /// The error if there was no memory for scratch memory. The steps then must not run, but for void messages.
    pub refused: Option<Error>,
    pub combine: Option<Combine>,
    pub checks: Vec<Check>,
    /// Number of steps up to the last check. These steps use only scratch memory, so they go on if the caller abandons
    /// the schedule.
    pub checked: u32,
    /// Numbers of the steps that are ready, in the order in which they became ready.
    ready: Vec<u32>,
    /// Number of entries of `ready` that have already been issued.
    issued: usize,
    /// Number of steps that are not over yet.
    pub open: usize,
    /// The number and the error of a failed step. If several steps have failed, this is the step that was
    /// listed first.
    failure: Option<(u32, Error)>,
    /// True if the schedule does not use the caller's memory any more. Then its sends send void messages,
    /// and its receives discard their data.
    pub void: bool,
    /// True if this rank could not report a failure to another rank. Then the schedule waits for no more
    /// messages.
    pub cut_off: bool,
    /// True if a check has failed. Then the remaining steps do nothing.
    pub stopped: bool,
    /// Number of continuations of this schedule that threads are running.
    pub continuations: u32,
}

impl Schedule {
    /// Removes all steps, and keeps the allocated memory for the next schedule. The scratch memory is kept
    /// only if `keep_scratch` is true and the memory is not larger than `KEPT_SCRATCH`.
    pub fn clear(&mut self, keep_scratch: bool) {
        self.steps.clear();
        self.edges.clear();
        self.plans.clear();
        self.scratch_used = 0;
        self.refused = None;
        let kept = self.scratch.iter().map(|block| block.capacity() * 16).sum::<usize>();
        if !keep_scratch || kept > KEPT_SCRATCH {
            self.scratch = Vec::new();
        }
        self.combine = None;
        self.checks.clear();
        self.checked = 0;
        self.rewind();
    }

    /// Makes the schedule ready to run, for the first time or once more.
    pub fn rewind(&mut self) {
        self.ready.clear();
        self.issued = 0;
        self.open = self.steps.len();
        self.failure = None;
        self.void = false;
        self.cut_off = false;
        self.stopped = false;
        self.continuations = 0;
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

    /// Replaces the borrowed plans by owned plans.
    pub fn keep_plans(&mut self) {
        for plan in &mut self.plans {
            if let PlanRef::Borrowed(borrowed) = plan {
                // SAFETY: the caller has just listed the steps, and it lends the plan until its call
                // returns.
                let kept = unsafe { borrowed.as_ref() }.clone();
                *plan = PlanRef::Owned(kept);
            }
        }
    }

    /// Returns whether a step must not use the caller's memory any more.
    #[inline]
    pub fn is_void(&self, number: u32) -> bool {
        self.void && number >= self.checked
    }

    /// Returns the layout of an operand, with the operand's plan.
    #[inline]
    pub fn layout(&self, operand: &Operand) -> Elements<&Plan> {
        let plan = self.plans[operand.plan as usize].get();
        Elements { origin: operand.origin, plan, count: operand.count }
    }

    /// Removes and returns the next step that is ready, or returns `None`.
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

    /// Records that a step is over. If other steps waited only for this step, makes them ready.
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
        let (is_check, before) = (matches!(step.action, Action::Check { .. }), self.ready.len());
        while let Some(Edge { to, next, fails }) = self.edges.get(edge as usize).copied() {
            let later = &mut self.steps[to as usize];
            later.left -= 1;
            later.failed |= failed && fails;
            if later.left == 0 {
                self.ready.push(to);
            }
            edge = next;
        }
        if is_check {
            // The list of edges begins with the step that was listed last. But steps that wait for nothing else are
            // issued in the order in which they were listed: the order of the messages between two ranks depends on it.
            self.ready[before..].reverse();
        }
    }

    /// Returns the result of the schedule: the error of the first failed step, if any. The schedule then
    /// forgets the error.
    pub fn result(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Returns whether another rank may be waiting for this schedule: for a message that it has not sent yet, or until
    /// it takes a message. Only a void schedule counts its receives, because a caller waits for the others. A rank that
    /// has left the job sends nothing more and waits for nothing; `has_left` tells which ranks have left.
    pub fn is_needed(&self, has_left: impl Fn(Process) -> bool) -> bool {
        self.steps.iter().zip(0..).filter(|(step, _)| !step.over).any(|(step, number)| {
            match step.action {
                Action::Send { to, .. } => !has_left(to),
                Action::Receive { from, .. } => self.is_void(number) && !has_left(from.process),
                _ => false,
            }
        })
    }
}

/// Lists the steps of a schedule.
///
/// The caller that starts the schedule must keep the memory in its steps valid. Plans live for `'a`.
#[derive(Debug)]
pub struct Builder<'s, 'a> {
    schedule: &'s mut Schedule,
    /// The last check. All steps after it wait for it.
    gate: Option<StepId>,
    plans: PhantomData<&'a Plan>,
}

impl<'s, 'a> Builder<'s, 'a> {
    pub(super) fn new(schedule: &'s mut Schedule) -> Self {
        Self { schedule, gate: None, plans: PhantomData }
    }

    #[inline]
    fn operand(&mut self, part: &Elements<&'a Plan>) -> Result<Operand> {
        let plans = &mut self.schedule.plans;
        // Most operands have the same plan as one of the last operands, so look there first.
        let same = |known: &PlanRef| matches!(known, PlanRef::Borrowed(plan) if std::ptr::eq(plan.as_ptr(), part.plan));
        let plan = match plans.iter().rev().take(4).position(same) {
            Some(back) => plans.len() - 1 - back,
            None => {
                plans.push(PlanRef::Borrowed(NonNull::from(part.plan)));
                plans.len() - 1
            }
        };
        let bytes = part.plan.packed_bytes(part.count)?;
        Ok(Operand { origin: part.origin, count: part.count, bytes, plan: plan as u32 })
    }

    #[inline]
    fn push(&mut self, action: Action) -> StepId {
        let steps = &mut self.schedule.steps;
        let (edges, request) = (NONE, 0);
        steps.push(Step { action, needs: 0, left: 0, edges, failed: false, over: false, request });
        let step = StepId(steps.len() as u32 - 1);
        if let Some(gate) = self.gate {
            self.follow(step, gate);
        }
        step
    }

    /// Adds a step that sends a part.
    ///
    /// # Errors
    /// Returns an engine error if the number of packed bytes of the part does not fit in 63 bits.
    #[inline]
    pub fn send(&mut self, part: &Elements<&'a Plan>, to: Peer) -> Result<StepId> {
        let part = self.operand(part)?;
        Ok(self.push(Action::Send { part, to: to.process, types: OF_LAYOUT }))
    }

    /// Adds a step that sends `part`. An earlier step must pack `origin` into `part`. If `checked` is true,
    /// the receiver can compare the types of `origin` with its own. Otherwise the types of the message are
    /// unknown to the receiver.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub fn send_packed(
        &mut self,
        part: &Elements<&'a Plan>,
        origin: &Elements<&'a Plan>,
        to: Peer,
        checked: bool,
    ) -> Result<StepId> {
        let types = if checked { of_message(origin.plan, origin.count) } else { UNKNOWN };
        let part = self.operand(part)?;
        Ok(self.push(Action::Send { part, to: to.process, types }))
    }

    /// Adds a step that receives a part. The message must have exactly the part's number of bytes.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    #[inline]
    pub fn receive(&mut self, part: &Elements<&'a Plan>, from: Peer) -> Result<StepId> {
        let part = self.operand(part)?;
        Ok(self.push(Action::Receive { part, from }))
    }

    /// Adds a step that copies one part of this rank to another part. `rank` is this rank's number in the
    /// communicator. The parts must not overlap. If type checking is on and the parts have different types,
    /// the copy fails.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub fn copy(
        &mut self,
        from: &Elements<&'a Plan>,
        to: &Elements<&'a Plan>,
        rank: usize,
    ) -> Result<StepId> {
        let compared = !from.plan.is_same(to.plan);
        let (from, to) = (self.operand(from)?, self.operand(to)?);
        Ok(self.push(Action::Copy { from, to, rank, compared }))
    }

    /// Adds a step that copies `from` to `to` without a comparison of types. If the elements of `to` are
    /// bytes, the step packs `from`. If the elements of `from` are bytes, the step unpacks them into `to`.
    /// Both parts must have the same packed size and must not overlap.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub fn pack(
        &mut self,
        from: &Elements<&'a Plan>,
        to: &Elements<&'a Plan>,
        rank: usize,
    ) -> Result<StepId> {
        let (from, to) = (self.operand(from)?, self.operand(to)?);
        Ok(self.push(Action::Copy { from, to, rank, compared: false }))
    }

    /// Sets the operation that all steps of [`combine`](Self::combine) use.
    pub fn operation(&mut self, combine: &Combine) {
        self.schedule.combine = Some(combine.clone());
    }

    /// Adds a step that combines the elements at `lower` with the elements at `upper`. The result replaces
    /// the elements at `upper`. `all` gives the type and the number of the elements.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    #[inline]
    pub fn combine(
        &mut self,
        lower: *const u8,
        upper: *mut u8,
        all: &Elements<&'a Plan>,
    ) -> Result<StepId> {
        self.combine_part(lower, upper, 0, all)
    }

    /// Adds a step that combines elements like [`combine`](Self::combine). `first` is the index of the first of
    /// them in the whole reduction.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    #[inline]
    pub fn combine_part(
        &mut self,
        lower: *const u8,
        upper: *mut u8,
        first: u64,
        part: &Elements<&'a Plan>,
    ) -> Result<StepId> {
        let (elements, bytes) = (part.count, part.bytes()?);
        Ok(self.push(Action::Combine { lower, upper, first, elements, bytes }))
    }

    /// Adds a step that calls `check` once all steps before it are over. All steps that are listed later wait for this
    /// step. The steps before a check use only scratch memory of the schedule.
    ///
    /// If `check` returns an error, the schedule ends with this error, and the later steps do nothing: they send no
    /// messages, not even void ones, and wait for none. So the checks of all ranks must fail together. If an earlier
    /// step has failed, `check` is not called, and the steps after the last check send void messages.
    pub fn check(&mut self, check: impl FnMut() -> Result<()> + Send + 'static) {
        self.schedule.checks.push(Check(Box::new(check)));
        let index = self.schedule.checks.len() as u32 - 1;
        let step = self.push(Action::Check { index });
        self.after_all(step);
        self.schedule.checked = step.0 + 1;
        self.gate = Some(step);
    }

    /// Makes `step` wait for `earlier`. If `earlier` fails, `step` fails too.
    #[inline]
    pub fn after(&mut self, step: StepId, earlier: StepId) {
        self.edge(step, earlier, true);
    }

    /// Makes `step` wait for all steps that were listed before it. `step` fails if any of them fails.
    pub fn after_all(&mut self, step: StepId) {
        for earlier in 0..step.0 {
            self.after(step, StepId(earlier));
        }
    }

    /// Makes `step` wait for `earlier`. `step` does not fail if `earlier` fails.
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

    /// Refuses the call: no step moves data, and the schedule, once it has all its steps, tells the other ranks that
    /// this rank has failed. The start of the schedule returns `error`.
    pub fn refuse(&mut self, error: Error) {
        self.schedule.refused.get_or_insert(error);
    }

    /// Returns scratch memory of the schedule for `count` elements of `plan`'s type. The elements are laid
    /// out as in a user's buffer. The result is the address of displacement 0, a multiple of 16. The initial
    /// content of the memory is arbitrary. Only steps may use the memory: if memory runs out, there is none, and the
    /// schedule, once it has all its steps, tells the other ranks that this rank has failed.
    pub fn scratch(&mut self, plan: &Plan, count: u64) -> *mut u8 {
        self.take_scratch(plan, count).unwrap_or_else(|error| {
            self.refuse(error);
            std::ptr::null_mut()
        })
    }

    /// Returns scratch memory like [`scratch`](Self::scratch), which the caller writes before the schedule starts.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    pub fn scratch_at_once(&mut self, plan: &Plan, count: u64) -> Result<*mut u8> {
        insist(|| self.take_scratch(plan, count))
    }

    fn take_scratch(&mut self, plan: &Plan, count: u64) -> Result<*mut u8> {
        let room = room_for(plan, count)?;
        let Schedule { scratch, scratch_used, .. } = &mut *self.schedule;
        if *scratch_used == scratch.len() {
            scratch.push(Vec::new());
        }
        let origin = take_room(&mut scratch[*scratch_used], room)?;
        *scratch_used += 1;
        Ok(origin)
    }
}

/// Returns the memory that `count` elements of `plan`'s type need, laid out as in a user's buffer: the number of
/// words of 16 bytes, and the number of bytes before displacement 0, a multiple of 16.
///
/// # Errors
/// Returns `ErrorKind::NoMemory` if no address space has so many words.
pub fn room_for(plan: &Plan, count: u64) -> Result<(usize, usize)> {
    let shape = plan.footprint();
    let last = i128::from(shape.extent) * i128::from(count.saturating_sub(1));
    let low = (i128::from(shape.true_lb) + last.min(0)).min(0);
    let high = (i128::from(shape.true_ub) + last.max(0)).max(0);
    // Round `low` down to a multiple of 16, because the memory is aligned to 16 bytes and displacement 0 must be
    // aligned too.
    let low = low.div_euclid(16) * 16;
    let words = (high - low).div_euclid(16) + 1;
    let words = usize::try_from(words).map_err(|_| refused(usize::MAX))?;
    Ok((words, -low as usize))
}

/// Makes `block` long enough for elements that need the memory `room` (see [`room_for`]). Returns the address of
/// displacement 0. The content of the memory is arbitrary.
///
/// # Errors
/// Returns `ErrorKind::NoMemory` if memory ran out.
pub fn take_room(block: &mut Vec<u128>, (words, shift): (usize, usize)) -> Result<*mut u8> {
    if block.len() < words {
        // Clear the block first, because otherwise the vector would copy its old content when it grows.
        block.clear();
        block.grow(words).map_err(|_| refused(words))?;
        block.resize(words, 0);
    }
    Ok(block.as_mut_ptr().cast::<u8>().wrapping_add(shift))
}

/// Returns the error for scratch memory of `words` words of 16 bytes.
#[cold]
fn refused(words: usize) -> Error {
    let detail = format!("cannot allocate {} bytes of scratch memory", words as u128 * 16);
    Error::new(ErrorKind::NoMemory, "memory", detail)
}
