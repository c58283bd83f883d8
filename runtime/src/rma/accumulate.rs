//! The operations that are atomic for each element: accumulate, fetch and op, compare and swap.
//!
//! An element of 4 or 8 bytes at an aligned address is updated by an atomic instruction (`atomic.rs`), as long as the
//! target permits this (`mechanism.rs`). All other elements (other sizes, pairs of a value and an index, unaligned
//! addresses) are updated under a lock for the range of memory in which they begin (`ranges.rs`). The size and the
//! address of the element, and the target's mode, decide between the two ways, so all ranks choose the same way.
//!
//! An accumulate of a rank that holds the exclusive lock of the target's memory (`lock.rs`) uses neither way: no other
//! rank may access the memory. A compare and swap makes no such exception.

pub(in crate::rma) mod atomic;
pub(in crate::rma) mod mechanism;
pub(in crate::rma) mod ranges;
pub(in crate::rma) mod short;

use super::Window;
use super::direct::truncated;
use super::request::requests::Far;
use super::window::target::Located;
use crate::coll::{Combine, Operator};
use crate::commit::commit;
use crate::rma::accumulate::atomic::ElementUpdate;
use crate::rma::accumulate::mechanism::{Site, Turn};
use crate::rma::accumulate::ranges::{Held, RANGE, range_of};
use crate::tools::counting::{Counter, count_access};
use crate::{Datatype, Error, ErrorClass, ErrorKind, Named, Plan, Result};
use std::sync::{OnceLock, PoisonError};
use typepack_engine::{Cursor, Elements, pack_raw, unpack_raw};

/// Greatest number of packed bytes of operands or results that go through a buffer at a time. A chunk holds whole
/// elements.
const CHUNK: u64 = 8 << 10;

/// Greatest number of bytes that an accumulate updates by instructions in one turn.
const TURN: usize = 64 << 10;

/// What an accumulate does with an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Replaces the element by the operand.
    #[doc(alias = "MPI_REPLACE")]
    Replace,
    /// Leaves the element as it is; the operand is not used.
    #[doc(alias = "MPI_NO_OP")]
    NoOp,
    /// Combines the element and the operand.
    Combine(Operator),
}

/// The predefined type of all elements of an accumulate.
pub(super) struct Element {
    ty: Datatype,
    named: Option<Named>,
    size: usize,
    extent: usize,
    /// Whether an element has gaps or several members. If it does, a run of contiguous memory may hold only a part of
    /// an element.
    is_composed: bool,
}

impl Element {
    /// Returns the type of the elements of `plan`; `None` if the plan has no data.
    ///
    /// # Errors
    /// Returns an error of the class `MPI_ERR_TYPE` if the data do not consist of one predefined datatype.
    fn of(plan: &Plan, argument: &'static str) -> Result<Option<Self>> {
        if plan.element_bytes() == 0 {
            return Ok(None);
        }
        let ty = plan.datatype().and_then(|ty| match ty.as_named() {
            Some(_) => Some(ty.clone()),
            None => ty.element_type(),
        });
        let ty = ty.ok_or_else(|| {
            let detail = "the data do not consist of one predefined datatype";
            Error::new(ErrorKind::Engine(ErrorClass::TYPE), argument, detail)
        })?;
        Ok(Some(Self::new(ty)))
    }

    /// Describes elements of a predefined type.
    pub fn new(ty: Datatype) -> Self {
        let (named, index) = ty.predefined_types().map_or((None, None), |(a, b)| (Some(a), b));
        let (size, extent) = (ty.size() as usize, ty.extent() as usize);
        let members = index.is_some() || named.is_none_or(|named| named.members().is_some());
        let named = named.filter(|_| !members);
        Self { ty, named, size, extent, is_composed: members || size != extent }
    }

    /// Returns the size of an element in bytes, without gaps.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the name of the type of the elements in requests, and their size.
    ///
    /// # Errors
    /// Returns an error of the class `MPI_ERR_UNSUPPORTED_OPERATION` if the elements are pairs that have no predefined
    /// name.
    fn by_name(&self) -> Result<(Named, usize)> {
        let named = self.ty.predefined_types().filter(|(_, index)| index.is_none());
        let named = named.map(|(named, _)| named).ok_or_else(|| {
            let detail =
                "a pair without a name cannot be accumulated to private memory of another rank";
            let kind = ErrorKind::Engine(ErrorClass::UNSUPPORTED_OPERATION);
            Error::new(kind, "target_datatype", detail)
        })?;
        Ok((named, self.size))
    }

    /// Returns the function that combines two elements; `None` for `Replace` and `NoOp`, which have no function.
    ///
    /// # Errors
    /// Returns an error of the class `MPI_ERR_OP` if the operation is not defined on the elements.
    pub fn combine(&self, update: Update) -> Result<Option<Combine>> {
        let Update::Combine(operator) = update else { return Ok(None) };
        let found = operator.combine(&self.ty).ok_or_else(|| {
            let what = self.ty.as_named().map_or("this predefined datatype", Named::name);
            let detail = format!("{operator:?} is not defined on {what}");
            Error::new(ErrorKind::Engine(ErrorClass::OP), "op", detail)
        })?;
        Ok(Some(found))
    }

    /// Returns whether the data of `other` can be operands for elements of this type.
    fn takes(&self, other: &Self) -> bool {
        use typepack_engine::signature::{Basic, Sameness};
        let basic = |named| Basic::new(named, Sameness::Representation);
        match (self.named, other.named) {
            (Some(mine), Some(theirs)) => basic(mine) == basic(theirs),
            _ => self.ty.is_same(&other.ty),
        }
    }
}

/// The memory at the target of an accumulate.
pub(super) struct Place<'a> {
    /// The elements, at their address in this process.
    pub elements: Elements<&'a Plan>,
    /// The offset of the origin in the memory of the target, in bytes.
    pub offset: i64,
}

/// The operands or the results of an accumulate, as a stream of packed elements.
pub(super) struct Stream<'a> {
    part: Option<&'a Elements<&'a Plan>>,
    /// The address of the first byte if the elements are contiguous.
    run: Option<*mut u8>,
}

impl<'a> Stream<'a> {
    pub fn new(part: Option<&'a Elements<&'a Plan>>) -> Self {
        Self { part, run: part.and_then(|part| part.run()) }
    }

    /// Returns whether the elements are absent or contiguous, so that no buffer is needed.
    fn is_direct(&self) -> bool {
        self.part.is_none() || self.run.is_some()
    }
}

/// Updates of elements without gaps at a target.
pub(super) struct Run<'a> {
    pub site: Site<'a>,
    /// The size of an element.
    pub size: usize,
    /// The number of elements of the whole update.
    pub elements: usize,
    pub update: Update,
    /// How the processor updates an aligned element.
    pub atomic: Option<ElementUpdate>,
    pub combine: Option<Combine>,
    /// No other rank may access the memory.
    pub alone: bool,
}

/// A lock that an accumulate keeps for its next elements.
pub(super) struct Kept<'a> {
    number: usize,
    /// Whether the target uses locks for elements that instructions could update (`mechanism.rs`).
    is_turn: bool,
    _held: Held<'a>,
}

/// An accumulate whose arguments have been checked.
pub(super) struct Job<'a> {
    pub run: Run<'a>,
    pub element: &'a Element,
}

impl Window {
    /// Updates `count` elements of `plan` at displacement `displacement` of the memory of rank `target`. `from` has the
    /// operands; it may be `None` if the update is [`Update::NoOp`]. The old values go to `result`, if given. The
    /// update of each element is atomic with respect to the updates by all ranks. If this rank can map the target's
    /// memory, all updates are complete when the call returns; if not, a call that completes operations completes them.
    ///
    /// # Safety
    ///
    /// - The elements `from` are readable. The elements `result` are writable, and nobody else accesses them during
    ///   the call. Neither overlaps the other, nor the elements at the target.
    /// - If this rank cannot map the target's memory, nobody else accesses the elements `result` until the update is
    ///   complete ([`flush_local`](Self::flush_local), and the calls that end an epoch), or the window is dropped.
    ///
    /// # Errors
    /// Returns the errors of [`put_raw`](Self::put_raw), `ErrorKind::Truncated` also if `result` has too little room,
    /// an error of the class `MPI_ERR_TYPE` if the types of operands, results and target do not all consist of one and
    /// the same predefined datatype, and an error of the class `MPI_ERR_OP` if the operation is not defined on that
    /// datatype. Returns an error of the class `MPI_ERR_UNSUPPORTED_OPERATION` if the elements are pairs that have no
    /// predefined name, and this rank cannot map the target's memory.
    #[doc(alias = "MPI_Accumulate")]
    #[doc(alias = "MPI_Get_accumulate")]
    #[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
    #[inline]
    pub unsafe fn accumulate_raw(
        &self,
        from: Option<&Elements<&Plan>>,
        result: Option<&Elements<&Plan>>,
        target: usize,
        displacement: i64,
        plan: &Plan,
        count: u64,
        update: Update,
    ) -> Result<()> {
        // SAFETY: the caller guarantees the elements of `from` and `result` (the condition of `# Safety`), which is the
        // condition of `update_many`.
        unsafe {
            let what = (update, &mut None);
            self.update_many((from, result), target, displacement, (plan, count), what)
        }
    }

    /// Does the same as [`accumulate_raw`](Self::accumulate_raw), and returns the numbers of the operations that end
    /// when the elements `result` have the old values. There is none if there are no such elements, or if they have the
    /// old values already.
    ///
    /// # Safety
    ///
    /// - The conditions of [`accumulate_raw`](Self::accumulate_raw), until the operations have ended.
    ///
    /// # Errors
    /// Returns the errors of [`accumulate_raw`](Self::accumulate_raw).
    #[doc(hidden)]
    #[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
    pub unsafe fn accumulate_request(
        &self,
        from: Option<&Elements<&Plan>>,
        result: Option<&Elements<&Plan>>,
        target: usize,
        displacement: i64,
        plan: &Plan,
        count: u64,
        update: Update,
    ) -> Result<Vec<u64>> {
        let mut ids = Some(Vec::new());
        // SAFETY: the caller guarantees the elements of `from` and `result` (the conditions of `# Safety`).
        let updated = unsafe {
            let what = (update, &mut ids);
            self.update_many((from, result), target, displacement, (plan, count), what)
        };
        self.started(updated, ids)
    }

    /// Does the work of [`accumulate_raw`](Self::accumulate_raw).
    ///
    /// # Safety
    ///
    /// - The condition of [`accumulate_raw`](Self::accumulate_raw).
    #[inline(never)]
    unsafe fn update_many(
        &self,
        (from, result): (Option<&Elements<&Plan>>, Option<&Elements<&Plan>>),
        target: usize,
        displacement: i64,
        (plan, count): (&Plan, u64),
        (update, ids): (Update, &mut Option<Vec<u64>>),
    ) -> Result<()> {
        self.check_target(target)?;
        let alone = self.epochs.check_access(target)?;
        let _turn = alone.then(|| self.alone.lock().unwrap_or_else(PoisonError::into_inner));
        let from = from.filter(|_| update != Update::NoOp);
        let room = plan.packed_bytes(count)?;
        let bytes = match (from, update) {
            (Some(from), _) => from.plan.packed_bytes(from.count)?,
            (None, Update::NoOp) => room,
            (None, _) => 0,
        };
        if bytes > room {
            return Err(truncated("origin_count", bytes, room));
        }
        if let Some(result) = result {
            let holds = result.plan.packed_bytes(result.count)?;
            if bytes > holds {
                return Err(truncated("result_count", bytes, holds));
            }
        }
        if bytes == 0 {
            // A call without data succeeds even if the operation is not defined on the type.
            let done = self.locate(target, displacement, plan, count).map(drop);
            return done.inspect(|()| count_access(Counter::ACCUMULATES));
        }
        let Some(element) = Element::of(plan, "target_datatype")? else { return Ok(()) };
        for (part, argument) in [(from, "origin_datatype"), (result, "result_datatype")] {
            let other = part.map(|part| Element::of(part.plan, argument)).transpose()?.flatten();
            if other.is_some_and(|other| !element.takes(&other)) {
                let detail = "the predefined datatype is not that of the target's data";
                return Err(Error::new(ErrorKind::Engine(ErrorClass::TYPE), argument, detail));
            }
        }
        let combine = element.combine(update)?;
        let located = self.locate(target, displacement, plan, count)?;
        let located = self.in_order(located, target, displacement, || element.by_name().is_ok())?;
        count_access(Counter::ACCUMULATES);
        let origin = match located {
            Located::Here(origin) => origin,
            Located::There(offset) => {
                let (far, one) = (Far { target, offset, plan, count }, element.by_name()?);
                // SAFETY: the elements of `from` and `result` are valid (condition of `# Safety`), and have at least
                // `bytes` packed bytes (checked above).
                return unsafe {
                    self.accumulate_there(&far, one, (from, result), bytes, update, ids)
                };
            }
        };
        let offset = self.offset_of(target, displacement);
        let elements = (bytes / element.size as u64) as usize;
        let run = Run::new(self.site(target), &element, elements, (update, combine), alone);
        let job = Job { run, element: &element };
        let place = Place { elements: Elements { origin, plan, count }, offset };
        // SAFETY: the elements of the target lie in the window (`locate`). `bytes` is at most the packed bytes of all
        // parts. The caller guarantees that the elements of `from` and `result` are valid and overlap nothing
        // (condition of `# Safety`).
        let done = unsafe { job.run(&place, &Stream::new(from), &Stream::new(result), 0..bytes) };
        self.note_stores();
        job.run.note(result.is_none());
        done
    }

    /// Replaces the element of `plan` at displacement `displacement` of the memory of rank `target` by the element at
    /// `new` if it equals the element at `compare`. The old value goes to `result`. The replacement is atomic with
    /// respect to the updates by all ranks.
    ///
    /// # Safety
    ///
    /// - `new` and `compare` are readable for an element, and `result` is writable for one.
    /// - If this rank cannot map the target's memory, nobody else accesses `result` until the operation is complete
    ///   ([`flush_local`](Self::flush_local), and the calls that end an epoch), or the window is dropped.
    ///
    /// # Errors
    /// Returns the errors of [`put_raw`](Self::put_raw), and an error of the class `MPI_ERR_TYPE` if `plan` is
    /// not the plan of one integer (`MPI_CHAR` is one here), truth value or byte.
    #[doc(alias = "MPI_Compare_and_swap")]
    #[inline]
    pub unsafe fn compare_and_swap_raw(
        &self,
        new: *const u8,
        compare: *const u8,
        result: *mut u8,
        plan: &Plan,
        target: usize,
        displacement: i64,
    ) -> Result<()> {
        use typepack_engine::signature::Class;
        self.check_target(target)?;
        let alone = self.epochs.check_access(target)?;
        let _turn = alone.then(|| self.alone.lock().unwrap_or_else(PoisonError::into_inner));
        let named = plan.datatype().and_then(Datatype::predefined_types).map(|(named, _)| named);
        let class = named.and_then(Class::of);
        let size = plan.element_bytes() as usize;
        // The reductions count `MPI_CHAR` as an integer, so this call does too.
        let is_listed = matches!(class, Some(Class::Integer | Class::Logical | Class::Byte));
        if !(is_listed || named == Some(Named::CHAR)) || size > 16 {
            let detail = "the datatype is neither an integer, a truth value nor a byte";
            return Err(Error::new(ErrorKind::Engine(ErrorClass::TYPE), "datatype", detail));
        }
        let located = self.locate(target, displacement, plan, 1)?;
        count_access(Counter::ACCUMULATES);
        let at = match self.in_order(located, target, displacement, || true)? {
            Located::Here(at) => at,
            Located::There(offset) => {
                let start = offset.wrapping_add(plan.footprint().true_lb);
                // SAFETY: `new` and `compare` are readable and `result` is writable for an element of `size` bytes, the
                // latter until the operation is complete (the conditions of `# Safety`).
                return unsafe { self.compare_there(target, start, (new, compare), result, size) };
            }
        };
        let number = range_of(self.offset_of(target, displacement));
        let turns = (&self.site(target), number);
        // SAFETY: `new` and `compare` are readable and `result` is writable for an element of `size` bytes (the
        // condition of `# Safety`). The element at `at` lies in the window (`locate`).
        let by_instruction =
            unsafe { atomic::compare_and_swap(at, new, compare, result, size, turns)? };
        if !by_instruction {
            self.note_stores();
            if matches!(size, 4 | 8) {
                turns.0.note(1);
            }
        }
        Ok(())
    }

    /// Returns the offset of a displacement in the memory of a target, in bytes. All ranks compute the same offset.
    pub(super) fn offset_of(&self, target: usize, displacement: i64) -> i64 {
        displacement.wrapping_mul(self.targets[target].unit as i64)
    }
}

impl<'a> Run<'a> {
    /// Prepares the update of `elements` elements of type `element` in all.
    pub fn new(
        site: Site<'a>,
        element: &Element,
        elements: usize,
        (update, combine): (Update, Option<Combine>),
        alone: bool,
    ) -> Self {
        let atomic = element.named.and_then(|named| ElementUpdate::new(update, named));
        Self { site, size: element.size, elements, update, atomic, combine, alone }
    }

    /// Notes that the update is over, as a reason for or against locks at the target.
    pub fn note(&self, without_results: bool) {
        if let (Some(atomic), false) = (self.atomic, self.alone) {
            self.site.note(if atomic.is_plain(without_results) { 1 } else { self.elements });
        }
    }

    /// Updates `elements` elements at `at`, which is `offset` in the memory of the target. `kept` is the lock of the
    /// last elements; the call may leave another lock there. Two runs in one range need only one lock, and no rank
    /// holds two locks at a time.
    ///
    /// # Safety
    ///
    /// - The elements are valid and have no gaps; so are as many elements at `operands` and `results`, which are null
    ///   or do not overlap anything. The operands are not null unless the update is `NoOp`.
    pub unsafe fn update(
        &self,
        at: *mut u8,
        offset: i64,
        elements: usize,
        (operands, results): (*mut u8, *mut u8),
        kept: &mut Option<Kept<'a>>,
    ) -> Result<()> {
        if self.alone {
            // SAFETY: no other rank may access the memory (`alone`). The caller guarantees the elements.
            unsafe { self.plain(at, operands, results, elements) };
            return Ok(());
        }
        let atomic = self.atomic.filter(|_| (at as usize).is_multiple_of(self.size));
        let is_plain = atomic.is_some_and(|atomic| atomic.is_plain(results.is_null()));
        let mut done = 0;
        while done < elements {
            let part = |start: *mut u8| match start.is_null() {
                true => start,
                false => start.wrapping_add(done * self.size),
            };
            let (at, operands, results) = (part(at), part(operands), part(results));
            // All elements that begin in one range have one lock.
            let offset = offset.wrapping_add((done * self.size) as i64);
            let left = (1i64 << RANGE) - (offset & ((1 << RANGE) - 1));
            let next = (left as usize).div_ceil(self.size).min(elements - done);
            let number = range_of(offset);
            let suffices =
                |kept: &Kept<'_>| kept.number == number && (kept.is_turn || atomic.is_none());
            if !kept.as_ref().is_some_and(suffices) {
                // Releases the lock before the next one is taken.
                *kept = None;
                let held = match atomic {
                    None => self.site.hold(number)?,
                    Some(atomic) => {
                        let work = if is_plain { 1 } else { self.elements };
                        match self.site.turn(number, work)? {
                            Turn::Held(held) => held,
                            Turn::Inside(inside) => {
                                // A rank that changes the target to locks waits for the end of this turn.
                                let next = (elements - done).min((TURN / self.size).max(1));
                                // SAFETY: `done + next` is at most `elements`. The elements are aligned and valid,
                                // as are operands and results. All other ranks update these elements by atomic
                                // instructions too, as long as `inside` lives: the choice depends on the size and the
                                // address of an element and on the target's mode, and a window's memory has the same
                                // alignment in all processes.
                                unsafe { atomic.run(at, operands, results, next) };
                                drop(inside);
                                done += next;
                                continue;
                            }
                        }
                    }
                };
                *kept = Some(Kept { number, is_turn: atomic.is_some(), _held: held });
            }
            // SAFETY: `done + next` is at most `elements`, so the elements are among those of the caller. This rank
            // holds their lock.
            unsafe { self.plain(at, operands, results, next) };
            done += next;
        }
        Ok(())
    }

    /// Updates elements that no other rank updates at the same time.
    ///
    /// # Safety
    ///
    /// - There are `elements` elements without gaps at all addresses that are not null; none overlaps another. The
    ///   operands are not null unless the update is `NoOp`.
    unsafe fn plain(&self, at: *mut u8, operands: *mut u8, results: *mut u8, elements: usize) {
        let bytes = elements * self.size;
        // SAFETY: the caller guarantees that the elements at all addresses are valid and do not overlap.
        unsafe {
            if !results.is_null() {
                results.copy_from_nonoverlapping(at, bytes);
            }
            match (self.update, &self.combine) {
                (Update::NoOp, _) => {}
                (Update::Replace, _) => at.copy_from_nonoverlapping(operands, bytes),
                (Update::Combine(_), Some(combine)) => {
                    // The function takes the target's element as the right operand. All predefined operations commute,
                    // so the order does not matter.
                    combine.call(operands, at, 0, elements as u64);
                }
                (Update::Combine(_), None) => {}
            }
        }
    }
}

impl Job<'_> {
    /// Updates the packed bytes `bytes` of the elements at `place` with the first bytes of the operands.
    ///
    /// # Safety
    ///
    /// - The elements of `place` are valid, and the range lies in their packed bytes and begins with an element.
    /// - The elements of `from` and `result` are valid and have at least as many packed bytes as the range; none
    ///   overlaps another. Nobody else accesses the elements of `result`.
    pub unsafe fn run(
        &self,
        place: &Place<'_>,
        from: &Stream<'_>,
        result: &Stream<'_>,
        bytes: std::ops::Range<u64>,
    ) -> Result<()> {
        let (start, size) = (bytes.start, self.element.size as u64);
        let bytes = (bytes.end - start) / size * size;
        if from.is_direct() && result.is_direct() {
            let [operands, results] = [from, result].map(|side| side.run.unwrap_or_default());
            // SAFETY: the operands and the results are one run each, or absent (`is_direct`); the caller guarantees
            // that they are valid.
            return unsafe { self.update(place, start..start + bytes, operands, results) };
        }
        let chunk = CHUNK / size * size;
        let mut buffers = [[0u8; CHUNK as usize]; 2];
        let [operands, results] = &mut buffers;
        let mut done = 0;
        while done < bytes {
            let range = done..(done + chunk).min(bytes);
            let at = |side: &Stream<'_>, buffer: &mut [u8]| match (side.run, side.part) {
                (Some(run), _) => run.wrapping_add(range.start as usize),
                (None, Some(_)) => buffer.as_mut_ptr(),
                (None, None) => std::ptr::null_mut(),
            };
            let (operand, old) = (at(from, operands), at(result, results));
            // SAFETY: the range has at most `CHUNK` bytes, the length of the buffers, and lies within the elements of
            // all parts, which are valid (the condition of `# Safety`). The buffers are local.
            unsafe {
                if let (None, Some(part)) = (from.run, from.part) {
                    part.pack(range.clone(), operand);
                }
                self.update(place, start + range.start..start + range.end, operand, old)?;
                if let (None, Some(part)) = (result.run, result.part) {
                    part.unpack(range.clone(), old);
                }
            }
            done = range.end;
        }
        Ok(())
    }

    /// Updates the packed bytes `range` of the elements at `place`. `operands` and `results` are null, or the
    /// addresses of as many packed bytes.
    ///
    /// # Safety
    ///
    /// - The elements of the range are valid, and so are the bytes at `operands` and `results`; none overlaps another.
    unsafe fn update(
        &self,
        place: &Place<'_>,
        range: std::ops::Range<u64>,
        operands: *mut u8,
        results: *mut u8,
    ) -> Result<()> {
        let at = |start: *mut u8, done: u64| match start.is_null() {
            true => start,
            false => start.wrapping_add(done as usize),
        };
        if self.element.is_composed {
            let size = self.element.size as u64;
            for position in range.clone().step_by(self.element.size) {
                let done = position - range.start;
                let packed = position..position + size;
                // SAFETY: the element at `position` lies in the range, and so do its operand and its result.
                unsafe { self.composed(place, packed, at(operands, done), at(results, done))? };
            }
            return Ok(());
        }
        let mut kept = None;
        if place.elements.plan.is_contiguous() {
            let start = place.elements.plan.footprint().true_lb + range.start as i64;
            // SAFETY: the elements are contiguous (`is_contiguous`), so the range is one run of whole elements from
            // `start` on.
            return unsafe {
                let elements = (range.end - range.start) as usize / self.element.size;
                let at = place.elements.origin.wrapping_offset(start as isize);
                let offset = place.offset.wrapping_add(start);
                self.run.update(at, offset, elements, (operands, results), &mut kept)
            };
        }
        let mut cursor = Cursor::at(place.elements.plan, place.elements.count, range.start)?;
        let mut done = 0;
        while done < range.end - range.start {
            let Some(run) = cursor.run() else { break };
            let bytes = run.bytes.min(range.end - range.start - done);
            // SAFETY: the run holds packed bytes of the range. It holds whole elements, because the elements have no
            // gaps and one member.
            unsafe {
                let parts = (at(operands, done), at(results, done));
                let elements = bytes as usize / self.element.size;
                let at = place.elements.origin.wrapping_offset(run.offset as isize);
                let offset = place.offset.wrapping_add(run.offset);
                self.run.update(at, offset, elements, parts, &mut kept)?;
            };
            cursor.advance(bytes);
            done += bytes;
        }
        Ok(())
    }

    /// Updates one element that may have gaps: the packed bytes `range` at `place`.
    ///
    /// # Safety
    ///
    /// - The range is that of one element, which is valid; so are the packed elements at `operand` and `result`, which
    ///   are null or do not overlap anything.
    #[cold]
    unsafe fn composed(
        &self,
        place: &Place<'_>,
        range: std::ops::Range<u64>,
        operand: *mut u8,
        result: *mut u8,
    ) -> Result<()> {
        let one = plan_of(&self.element.ty)?;
        let size = self.element.size as u64;
        let first = Cursor::at(place.elements.plan, place.elements.count, range.start)?.run();
        let offset = place.offset.wrapping_add(first.map_or(0, |run| run.offset));
        let mut packed = [0u64; 8];
        let mut values = [[0u64; 8]; 2];
        if self.element.extent > size_of_val(&packed) {
            let (found, most) = (self.element.extent, size_of_val(&packed));
            let detail = format!("the element takes {found} bytes; it must take at most {most}");
            return Err(Error::new(ErrorKind::Internal, "target_datatype", detail));
        }
        let packed = packed.as_mut_ptr().cast::<u8>();
        let [lower, upper] = &mut values;
        let (lower, upper) = (lower.as_mut_ptr().cast::<u8>(), upper.as_mut_ptr().cast::<u8>());
        let held = match self.run.alone {
            true => None,
            false => Some(self.run.site.hold(range_of(offset))?),
        };
        // SAFETY: the local arrays are as long as an element with its gaps (checked above). The element at `place` is
        // valid, and this rank holds its lock, or no other rank may access it (`alone`). The caller guarantees the
        // operand and the result.
        unsafe {
            place.elements.pack(range.clone(), packed);
            if !result.is_null() {
                result.copy_from_nonoverlapping(packed, size as usize);
            }
            match (self.run.update, &self.run.combine) {
                (Update::Replace, _) => {
                    place.elements.unpack(range, operand);
                }
                (Update::Combine(_), Some(combine)) => {
                    unpack_raw(&one, 1, upper, 0..size, packed);
                    unpack_raw(&one, 1, lower, 0..size, operand);
                    combine.call(lower, upper, 0, 1);
                    pack_raw(&one, 1, upper, 0..size, packed);
                    place.elements.unpack(range, packed);
                }
                _ => {}
            }
        }
        drop(held);
        Ok(())
    }
}

/// Returns the plan of one element of a predefined type.
fn plan_of(ty: &Datatype) -> Result<Plan> {
    /// The plans of the predefined types, indexed by the low byte of the type's number in the standard's ABI.
    static PLANS: [OnceLock<Plan>; 256] = [const { OnceLock::new() }; 256];
    let kept = ty.as_named().and_then(|named| PLANS.get(named.abi_value() as usize & 0xff));
    match kept.and_then(OnceLock::get) {
        Some(plan) => Ok(plan.clone()),
        None => {
            let plan = commit(ty)?;
            Ok(kept.map_or(plan.clone(), |kept| kept.get_or_init(|| plan).clone()))
        }
    }
}
