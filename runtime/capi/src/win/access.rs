//! The calls that read and write the memory of other ranks (MPI-5.0 section 12.3).
//!
//! A call only starts its operation if this rank cannot map the target's memory. If it returns a request, the request
//! ends when this rank may use the buffers again. Most operations are over when their calls return, and all these calls
//! return one request, which is complete.

use super::{Win, hold, short, target};
use crate::abi;
use crate::argument::Output;
use crate::buffer::{count, memory};
use crate::coll::op;
use crate::count_width::{CountWidth, Number};
use crate::error::{Failure, Result};
use crate::raw::{self, Aint};
use crate::request::{self, OfWin};
use std::ffi::{c_int, c_void};
use typepack::Plan;
use typepack::engine::Elements;
use typepack::rma::Update;
use typepack_capi_datatype::types;

/// A buffer of a call: address, count and datatype.
type Buffer<W> = (*const c_void, <W as CountWidth>::Count, raw::Datatype);

/// The elements of a call at its target: rank, displacement, count and datatype.
type AtTarget<W> = (c_int, Aint, <W as CountWidth>::Count, raw::Datatype);

// The functions from here to `accumulate_at` are always inlined, because a call takes a few nanoseconds.

/// Checks the arguments of a buffer, and calls `work` with its elements. `argument` is the name of the address.
#[inline(always)]
fn with_part<N: Number, R>(
    (address, elements, ty): (*const c_void, N, raw::Datatype),
    argument: &'static str,
    work: impl FnOnce(&Elements<&Plan>) -> Result<R>,
) -> Result<R> {
    let count = count(elements, "count")?;
    let ty = types::hold(ty)?;
    let elements = Elements::new(address, ty.plan()?, count);
    memory(&elements, argument)?;
    work(&elements)
}

/// Calls `work` with the rank, the displacement, the plan and the count of a call's elements at its target. Does
/// nothing if the rank is `MPI_PROC_NULL`. `known` is a datatype with its plan; it is often the target's datatype too.
#[inline(always)]
fn with_target<W: CountWidth>(
    (rank, displacement, elements, ty): AtTarget<W>,
    known: Option<(raw::Datatype, &Plan)>,
    work: impl FnOnce(usize, i64, &Plan, u64) -> Result,
) -> Result {
    let count = count(elements, "target_count")?;
    let rank = target(rank, "target_rank")?;
    let run = |plan: &Plan| match rank {
        Some(rank) => work(rank, displacement as i64, plan, count),
        None => Ok(()),
    };
    match known {
        Some((known, plan)) if known == ty => run(plan),
        _ => run(types::hold(ty)?.plan()?),
    }
}

/// Converts an operation to an update. A call without a result buffer does not take `MPI_NO_OP`.
#[inline]
fn update(operation: raw::Op, has_result: bool) -> Result<Update> {
    match operation.0 {
        abi::REPLACE => Ok(Update::Replace),
        abi::NO_OP if has_result => Ok(Update::NoOp),
        abi::NO_OP => {
            let detail = "MPI_NO_OP is allowed only in calls that return the old value";
            Err(Failure::new(abi::ERR_OP, "op", detail))
        }
        _ => Ok(Update::Combine(op::predefined(operation)?)),
    }
}

/// Runs a call that returns a request. This rank must have locked the target. `call` adds the numbers of the operations
/// that must end before this rank may use the buffers.
fn with_request(
    win: raw::Win,
    rank: c_int,
    request: Output<raw::Request>,
    call: impl FnOnce(&Win, &mut Vec<u64>) -> Result,
) -> Result {
    let held = hold(win)?;
    let out = request.required("request")?;
    if let Some(rank) = target(rank, "target_rank")? {
        held.window.check_passive(rank)?;
    }
    let mut ids = Vec::new();
    call(&held, &mut ids)?;
    out.set(match ids.is_empty() {
        true => request::sent()?,
        false => request::open_window(ids, OfWin { handle: win, handler: held.handler.clone() })?,
    });
    Ok(())
}

/// Copies the elements of `origin` to those at the target.
///
/// # Safety
///
/// - The origin's buffer is readable for its elements, which do not overlap those at the target. They stay so and do
///   not change until the operation is complete at this rank.
#[inline(always)]
unsafe fn put_to<W: CountWidth>(
    win: &Win,
    origin: Buffer<W>,
    target: AtTarget<W>,
    ids: Option<&mut Vec<u64>>,
) -> Result {
    with_part(origin, "origin_addr", |from| {
        let known = Some((origin.2, from.plan));
        with_target::<W>(target, known, |rank, displacement, plan, count| {
            // SAFETY: the elements are readable and do not overlap (the condition of `# Safety`).
            unsafe {
                match ids {
                    None => win.window.put_raw(from, rank, displacement, plan, count)?,
                    Some(ids) => {
                        *ids = win.window.put_request(from, rank, displacement, plan, count)?;
                    }
                }
            }
            Ok(())
        })
    })
}

/// Copies the elements at the target to those of `origin`.
///
/// # Safety
///
/// - The origin's buffer is writable for its elements, which nobody else accesses and which do not overlap those at
///   the target, until the operation is complete at this rank.
#[inline(always)]
unsafe fn get_from<W: CountWidth>(
    win: &Win,
    origin: Buffer<W>,
    target: AtTarget<W>,
    ids: Option<&mut Vec<u64>>,
) -> Result {
    with_part(origin, "origin_addr", |to| {
        let known = Some((origin.2, to.plan));
        with_target::<W>(target, known, |rank, displacement, plan, count| {
            // SAFETY: the elements are writable, used by nobody else, and do not overlap (the condition of
            // `# Safety`).
            unsafe {
                match ids {
                    None => win.window.get_raw(to, rank, displacement, plan, count)?,
                    Some(ids) => {
                        *ids = win.window.get_request(to, rank, displacement, plan, count)?;
                    }
                }
            }
            Ok(())
        })
    })
}

/// Updates the elements at the target with those of `origin`. The old values go to `result`, if there is one.
///
/// # Safety
///
/// - The origin's buffer is readable for its elements, unless the operation is `MPI_NO_OP`.
/// - The result's buffer, if there is one, is writable for its elements, and nobody else accesses them until the
///   operation is complete at this rank.
/// - No two of the buffers and the elements at the target overlap.
#[inline(always)]
unsafe fn accumulate_at<W: CountWidth>(
    win: &Win,
    origin: Buffer<W>,
    result: Option<Buffer<W>>,
    target: AtTarget<W>,
    (op, ids): (raw::Op, Option<&mut Vec<u64>>),
) -> Result {
    let update = update(op, result.is_some())?;
    let run = |from: Option<&Elements<&Plan>>, result: Option<&Elements<&Plan>>| {
        let known = from.map(|from| (origin.2, from.plan));
        with_target::<W>(target, known, |rank, displacement, plan, count| {
            // SAFETY: the buffers are valid and do not overlap (the conditions of `# Safety`).
            unsafe {
                let (window, at) = (&win.window, displacement);
                match ids {
                    None => {
                        window.accumulate_raw(from, result, rank, at, plan, count, update)?;
                    }
                    Some(ids) => {
                        *ids = window
                            .accumulate_request(from, result, rank, at, plan, count, update)?;
                    }
                }
            }
            Ok(())
        })
    };
    let with_result = |from: Option<&Elements<&Plan>>| match (result, from) {
        // The datatype of the origin is often that of the result.
        (Some((address, elements, ty)), Some(part)) if ty == origin.2 => {
            let count = count(elements, "count")?;
            let result = Elements::new(address, part.plan, count);
            memory(&result, "result_addr")?;
            run(from, Some(&result))
        }
        (Some(result), _) => with_part(result, "result_addr", |result| run(from, Some(result))),
        (None, _) => run(from, None),
    };
    match update {
        // `MPI_NO_OP` does not use the arguments of the origin.
        Update::NoOp => with_result(None),
        _ => with_part(origin, "origin_addr", |from| with_result(Some(from))),
    }
}

/// `MPI_Put`.
///
/// # Safety
///
/// - `origin_addr` is readable for its elements, which do not overlap those at the target.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn put<W: CountWidth>(
    origin_addr: *const c_void,
    origin_count: W::Count,
    origin_datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    target_count: W::Count,
    target_datatype: raw::Datatype,
    win: raw::Win,
) -> Result {
    let origin = (origin_addr, origin_count, origin_datatype);
    let target = (target_rank, target_disp, target_count, target_datatype);
    let win = hold(win)?;
    // SAFETY: the elements are readable and do not overlap (the condition of `# Safety`).
    unsafe { put_to::<W>(&win, origin, target, None) }
}

/// `MPI_Get`.
///
/// # Safety
///
/// - `origin_addr` is writable for its elements, which nobody else accesses and which do not overlap those at the
///   target.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn get<W: CountWidth>(
    origin_addr: *mut c_void,
    origin_count: W::Count,
    origin_datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    target_count: W::Count,
    target_datatype: raw::Datatype,
    win: raw::Win,
) -> Result {
    let origin = (origin_addr.cast_const(), origin_count, origin_datatype);
    let target = (target_rank, target_disp, target_count, target_datatype);
    let win = hold(win)?;
    // SAFETY: the elements are writable, used by nobody else, and do not overlap (the condition of `# Safety`).
    unsafe { get_from::<W>(&win, origin, target, None) }
}

/// `MPI_Rput`.
///
/// # Safety
///
/// - `origin_addr` is readable for its elements, which do not overlap those at the target.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn rput<W: CountWidth>(
    origin_addr: *const c_void,
    origin_count: W::Count,
    origin_datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    target_count: W::Count,
    target_datatype: raw::Datatype,
    win: raw::Win,
    request: Output<raw::Request>,
) -> Result {
    let origin = (origin_addr, origin_count, origin_datatype);
    let target = (target_rank, target_disp, target_count, target_datatype);
    // SAFETY: the elements are readable and do not overlap (the condition of `# Safety`).
    with_request(win, target_rank, request, |win, ids| unsafe {
        put_to::<W>(win, origin, target, Some(ids))
    })
}

/// `MPI_Rget`.
///
/// # Safety
///
/// - `origin_addr` is writable for its elements, which nobody else accesses and which do not overlap those at the
///   target.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn rget<W: CountWidth>(
    origin_addr: *mut c_void,
    origin_count: W::Count,
    origin_datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    target_count: W::Count,
    target_datatype: raw::Datatype,
    win: raw::Win,
    request: Output<raw::Request>,
) -> Result {
    let origin = (origin_addr.cast_const(), origin_count, origin_datatype);
    let target = (target_rank, target_disp, target_count, target_datatype);
    // SAFETY: the elements are writable, used by nobody else, and do not overlap (the condition of `# Safety`).
    with_request(win, target_rank, request, |win, ids| unsafe {
        get_from::<W>(win, origin, target, Some(ids))
    })
}

/// `MPI_Accumulate`.
///
/// # Safety
///
/// - `origin_addr` is readable for its elements, which do not overlap those at the target.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn accumulate<W: CountWidth>(
    origin_addr: *const c_void,
    origin_count: W::Count,
    origin_datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    target_count: W::Count,
    target_datatype: raw::Datatype,
    op: raw::Op,
    win: raw::Win,
) -> Result {
    let origin = (origin_addr, origin_count, origin_datatype);
    let target = (target_rank, target_disp, target_count, target_datatype);
    // SAFETY: the elements are readable and do not overlap (the condition of `# Safety`). There is no result.
    unsafe {
        if short::accumulate_more(origin, target, op, win)? {
            return Ok(());
        }
        accumulate_at::<W>(&*hold(win)?, origin, None, target, (op, None))
    }
}

/// `MPI_Raccumulate`.
///
/// # Safety
///
/// - `origin_addr` is readable for its elements, which do not overlap those at the target.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn raccumulate<W: CountWidth>(
    origin_addr: *const c_void,
    origin_count: W::Count,
    origin_datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    target_count: W::Count,
    target_datatype: raw::Datatype,
    op: raw::Op,
    win: raw::Win,
    request: Output<raw::Request>,
) -> Result {
    let origin = (origin_addr, origin_count, origin_datatype);
    let target = (target_rank, target_disp, target_count, target_datatype);
    with_request(win, target_rank, request, |win, ids| {
        // SAFETY: the elements are readable and do not overlap (the condition of `# Safety`). There is no result.
        unsafe { accumulate_at::<W>(win, origin, None, target, (op, Some(ids))) }
    })
}

/// `MPI_Get_accumulate`.
///
/// # Safety
///
/// - `origin_addr` is readable for its elements, unless the operation is `MPI_NO_OP`.
/// - `result_addr` is writable for its elements, and nobody else accesses them.
/// - No two of the buffers and the elements at the target overlap.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn get_accumulate<W: CountWidth>(
    origin_addr: *const c_void,
    origin_count: W::Count,
    origin_datatype: raw::Datatype,
    result_addr: *mut c_void,
    result_count: W::Count,
    result_datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    target_count: W::Count,
    target_datatype: raw::Datatype,
    op: raw::Op,
    win: raw::Win,
) -> Result {
    let origin = (origin_addr, origin_count, origin_datatype);
    let result = (result_addr, result_count, result_datatype);
    let target = (target_rank, target_disp, target_count, target_datatype);
    // SAFETY: the buffers are valid and do not overlap (the conditions of `# Safety`).
    unsafe {
        if short::single(origin, result, target, op).is_some_and(|single| single.run(win)) {
            return Ok(());
        }
        let result = (result.0.cast_const(), result.1, result.2);
        accumulate_at::<W>(&*hold(win)?, origin, Some(result), target, (op, None))
    }
}

/// `MPI_Rget_accumulate`.
///
/// # Safety
///
/// - `origin_addr` is readable for its elements, unless the operation is `MPI_NO_OP`.
/// - `result_addr` is writable for its elements, and nobody else accesses them.
/// - No two of the buffers and the elements at the target overlap.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn rget_accumulate<W: CountWidth>(
    origin_addr: *const c_void,
    origin_count: W::Count,
    origin_datatype: raw::Datatype,
    result_addr: *mut c_void,
    result_count: W::Count,
    result_datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    target_count: W::Count,
    target_datatype: raw::Datatype,
    op: raw::Op,
    win: raw::Win,
    request: Output<raw::Request>,
) -> Result {
    let origin = (origin_addr, origin_count, origin_datatype);
    let result = (result_addr.cast_const(), result_count, result_datatype);
    let target = (target_rank, target_disp, target_count, target_datatype);
    with_request(win, target_rank, request, |win, ids| {
        // SAFETY: the buffers are valid and do not overlap (the conditions of `# Safety`).
        unsafe { accumulate_at::<W>(win, origin, Some(result), target, (op, Some(ids))) }
    })
}

/// Checks that a datatype is predefined, as the calls on single elements require.
fn check_predefined(ty: &types::Type) -> Result {
    if ty.tree().is_predefined() {
        return Ok(());
    }
    let detail = "the call takes only predefined datatypes";
    Err(Failure::new(abi::ERR_TYPE, "datatype", detail))
}

/// `MPI_Fetch_and_op`.
///
/// # Safety
///
/// - `origin_addr` is readable for an element, unless the operation is `MPI_NO_OP`.
/// - `result_addr` is writable for an element, and nobody else accesses it.
/// - The element at `origin_addr`, the element at `result_addr` and the element at the target do not overlap.
pub unsafe fn fetch_and_op(
    origin_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    op: raw::Op,
    win: raw::Win,
) -> Result {
    let (origin, at) = (origin_addr, (target_rank, target_disp));
    let single = short::Single { op, ty: datatype, origin, result: Some(result_addr), at };
    // SAFETY: the elements are valid and do not overlap (the conditions of `# Safety`).
    if unsafe { single.run(win) } {
        return Ok(());
    }
    let win = hold(win)?;
    let update = update(op, true)?;
    let rank = target(target_rank, "target_rank")?;
    let ty = types::hold(datatype)?;
    check_predefined(&ty)?;
    let plan = ty.plan()?;
    let part = |address: *const c_void, argument| -> Result<Elements<&Plan>> {
        let element = Elements::new(address, plan, 1);
        memory(&element, argument)?;
        Ok(element)
    };
    // `MPI_NO_OP` does not use the argument of the origin.
    let origin = match update {
        Update::NoOp => None,
        _ => Some(part(origin_addr, "origin_addr")?),
    };
    let result = part(result_addr, "result_addr")?;
    let Some(rank) = rank else { return Ok(()) };
    let (from, displacement) = (origin.as_ref(), target_disp as i64);
    // SAFETY: the elements are valid and do not overlap (the conditions of `# Safety`).
    unsafe { win.window.accumulate_raw(from, Some(&result), rank, displacement, plan, 1, update)? };
    Ok(())
}

/// `MPI_Compare_and_swap`.
///
/// # Safety
///
/// - `origin_addr` and `compare_addr` are readable for an element.
/// - `result_addr` is writable for an element, and nobody else accesses it.
pub unsafe fn compare_and_swap(
    origin_addr: *const c_void,
    compare_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    win: raw::Win,
) -> Result {
    let (values, at) = ((origin_addr, compare_addr, result_addr), (target_rank, target_disp));
    // SAFETY: the elements are valid (the conditions of `# Safety`).
    if unsafe { short::swap_in_turn(values, datatype, at, win) } {
        return Ok(());
    }
    let win = hold(win)?;
    let rank = target(target_rank, "target_rank")?;
    let ty = types::hold(datatype)?;
    check_predefined(&ty)?;
    let plan = ty.plan()?;
    let check = |address, argument| memory(&Elements::new(address, plan, 1), argument);
    check(origin_addr, "origin_addr")?;
    check(compare_addr, "compare_addr")?;
    check(result_addr, "result_addr")?;
    let Some(rank) = rank else { return Ok(()) };
    let (new, compare, result) = (origin_addr.cast(), compare_addr.cast(), result_addr.cast());
    // SAFETY: the elements are valid (the conditions of `# Safety`).
    unsafe {
        let displacement = target_disp as i64;
        win.window.compare_and_swap_raw(new, compare, result, plan, rank, displacement)?
    };
    Ok(())
}
