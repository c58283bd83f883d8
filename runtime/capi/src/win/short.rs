//! The short way of the calls that read and write the memory of other ranks: a few elements of a predefined type, in
//! memory that this rank can map. Such a call takes a few nanoseconds, so every instruction counts.
//!
//! Each function returns whether it has done the whole call. If not, nothing has happened, and the caller goes the way
//! of `access.rs` and `epochs.rs`, which serves all cases and finds all errors. So these functions check whether a call
//! is the usual one, and never say what is wrong with it.

use super::{CACHE, WINDOWS, hold};
use crate::abi;
use crate::buffer::is_low;
use crate::coll::op;
use crate::count_width::Number;
use crate::error::Result;
use crate::raw::{self, Aint};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use typepack::Named;
use typepack::coll::Operator;
use typepack::rma::{ElementKind, ElementUpdate, SimpleUpdate, Update, Window};

/// The first handle of a predefined datatype of the ABI, and the number of these handles.
const FIRST: usize = 0x200;
const HANDLES: usize = 0x100;

/// What is known of each predefined datatype: its size in the bits [`SIZE`], and the bit of its [`ElementKind`]. 0
/// stands for a datatype that has gaps or two members, or that is not known.
static KNOWN: [AtomicU8; HANDLES] = [const { AtomicU8::new(0) }; HANDLES];
const SIZE: u8 = 0x3f;
const INTEGERS: u8 = 0x40;
const REALS: u8 = 0x80;

/// The predefined datatypes, for the operations that need a function.
static TYPES: OnceLock<[Option<Named>; HANDLES]> = OnceLock::new();

/// The greatest number of bytes that a short call copies.
const MOST: u64 = 256;

/// Fills the table of the predefined datatypes. Each call that makes a window does this before.
pub fn prepare() {
    let place = |named: Named| (named.abi_value() as usize).wrapping_sub(FIRST);
    TYPES.get_or_init(|| {
        let mut types = [None; HANDLES];
        for named in Named::all() {
            types.get_mut(place(named)).into_iter().for_each(|known| *known = Some(named));
        }
        types
    });
    for named in Named::all() {
        let Some(place) = KNOWN.get(place(named)) else { continue };
        let elements = match ElementKind::of(named) {
            ElementKind::Integers => INTEGERS,
            ElementKind::Reals => REALS,
            ElementKind::Others => 0,
        };
        let is_simple = named.size() == named.extent() && named.members().is_none();
        let size = u8::try_from(named.size()).ok().filter(|size| is_simple && *size <= SIZE);
        place.store(size.map_or(0, |size| size | elements), Ordering::Relaxed);
    }
}

/// Returns what the table says about a datatype.
#[inline(always)]
fn known(ty: raw::Datatype) -> u8 {
    let place = KNOWN.get(ty.0.wrapping_sub(FIRST));
    place.map_or(0, |known| known.load(Ordering::Relaxed))
}

/// Returns the number of bytes of `count` elements; `None` if there are none or too many, or if the type is not known.
#[inline(always)]
fn bytes_of(count: impl Number, ty: raw::Datatype) -> Option<u64> {
    let count = count.wide() as u64;
    let bytes = u64::from(known(ty) & SIZE).wrapping_mul(count);
    (count <= MOST && bytes.wrapping_sub(1) < MOST).then_some(bytes)
}

/// Returns the update of an element of a type, if it needs no function.
#[inline(always)]
fn simple(op: raw::Op, ty: raw::Datatype, has_result: bool) -> Option<SimpleUpdate> {
    let known = known(ty);
    let is_wide = match known & SIZE {
        8 => true,
        4 => false,
        _ => return None,
    };
    let elements = match known {
        _ if known & INTEGERS != 0 => ElementKind::Integers,
        _ if known & REALS != 0 => ElementKind::Reals,
        _ => ElementKind::Others,
    };
    let update = match op.0 {
        abi::SUM => Update::Combine(Operator::Sum),
        abi::REPLACE => Update::Replace,
        abi::NO_OP if has_result => Update::NoOp,
        _ => return None,
    };
    SimpleUpdate::new(update, elements, is_wide)
}

/// Returns the update of an element of a type by a predefined operation.
fn other(op: raw::Op, ty: raw::Datatype) -> Option<ElementUpdate> {
    combination(op, ty).and_then(|(update, named)| ElementUpdate::new(update, named))
}

/// Returns a predefined operation as an update, and the predefined type of a handle.
fn combination(op: raw::Op, ty: raw::Datatype) -> Option<(Update, Named)> {
    let named = (*TYPES.get()?.get(ty.0.wrapping_sub(FIRST))?)?;
    let update = match op.0 {
        abi::REPLACE => Update::Replace,
        _ => Update::Combine(op::builtin(op)?),
    };
    Some((update, named))
}

/// Calls `work` with the window of a handle that this thread has used recently.
///
/// # Safety
///
/// - `work` looks up no window, and runs no code of the program.
#[inline(always)]
unsafe fn with(win: raw::Win, work: impl FnOnce(&Window) -> bool) -> bool {
    // SAFETY: the caller guarantees the condition.
    unsafe { WINDOWS.probe(&CACHE, win.0, |win| work(&win.window)) }.unwrap_or(false)
}

/// Returns the number of a rank. A negative one becomes a number that no rank has.
#[inline(always)]
fn rank_of(rank: c_int) -> usize {
    rank as u32 as usize
}

/// The elements of a call at its target: rank, displacement, count and datatype.
type AtTarget<N> = (c_int, Aint, N, raw::Datatype);

/// `MPI_Put`.
///
/// # Safety
///
/// - `origin` is null or readable for its elements, which do not overlap those at the target.
#[inline(always)]
pub unsafe fn put<N: Number>(
    (origin, count, ty): (*const c_void, N, raw::Datatype),
    (rank, displacement, there, type_there): AtTarget<N>,
    win: raw::Win,
) -> bool {
    let Some(bytes) = bytes_of(count, ty) else { return false };
    if (count.wide(), ty) != (there.wide(), type_there) || is_low(origin) {
        return false;
    }
    let (rank, displacement) = (rank_of(rank), displacement as i64);
    // SAFETY: the runtime looks up no window. The elements are valid (the condition of `# Safety`).
    unsafe { with(win, |window| window.put_short(origin.cast(), bytes, rank, displacement)) }
}

/// `MPI_Get`.
///
/// # Safety
///
/// - `origin` is null or writable for its elements, which nobody else accesses and which do not overlap those at the
///   target.
#[inline(always)]
pub unsafe fn get<N: Number>(
    (origin, count, ty): (*mut c_void, N, raw::Datatype),
    (rank, displacement, there, type_there): AtTarget<N>,
    win: raw::Win,
) -> bool {
    let Some(bytes) = bytes_of(count, ty) else { return false };
    if (count.wide(), ty) != (there.wide(), type_there) || is_low(origin) {
        return false;
    }
    let (rank, displacement) = (rank_of(rank), displacement as i64);
    // SAFETY: the runtime looks up no window. The elements are valid (the condition of `# Safety`).
    unsafe { with(win, |window| window.get_short(origin.cast(), bytes, rank, displacement)) }
}

/// `MPI_Accumulate` of one element.
///
/// # Safety
///
/// - `origin` is null or readable for its elements, which do not overlap those at the target.
#[inline(always)]
pub unsafe fn accumulate<N: Number>(
    (origin, count, ty): (*const c_void, N, raw::Datatype),
    (rank, displacement, there, type_there): AtTarget<N>,
    op: raw::Op,
    win: raw::Win,
) -> bool {
    let is_one = count.wide() == 1 && there.wide() == 1;
    if !is_one || ty != type_there || is_low(origin) {
        return false;
    }
    // SAFETY: the element is valid (the condition of `# Safety`).
    unsafe { update(op, (ty, false), (origin, std::ptr::null_mut()), (rank, displacement), win) }
}

/// Updates one element. `has_result` says whether the call returns the old value.
///
/// # Safety
///
/// - The conditions of [`fetch_and_op`]; `result` may be null if the call does not return the old value.
#[inline(always)]
unsafe fn update(
    op: raw::Op,
    (ty, has_result): (raw::Datatype, bool),
    (origin, result): (*const c_void, *mut c_void),
    (rank, displacement): (c_int, Aint),
    win: raw::Win,
) -> bool {
    let (rank, displacement) = (rank_of(rank), displacement as i64);
    let values = (origin.cast(), result.cast());
    let Some(update) = simple(op, ty, has_result) else {
        // SAFETY: the caller guarantees the conditions.
        return unsafe { update_other(op, ty, values, (rank, displacement), win) };
    };
    // SAFETY: the runtime looks up no window. The elements are valid (the conditions of `# Safety`).
    unsafe {
        with(win, |window| window.update_short(update.into(), values, rank, displacement))
            || with(win, |window| window.update_in_turn(update.into(), values, rank, displacement))
    }
}

/// Does the work of [`update`] for all operations that need a function.
///
/// # Safety
///
/// - The conditions of [`update`].
#[inline(never)]
unsafe fn update_other(
    op: raw::Op,
    ty: raw::Datatype,
    values: (*const u8, *mut u8),
    (rank, displacement): (usize, i64),
    win: raw::Win,
) -> bool {
    let Some(update) = other(op, ty) else { return false };
    // SAFETY: the runtime looks up no window. The elements are valid (the conditions of `# Safety`).
    unsafe {
        with(win, |window| window.update_short(update, values, rank, displacement))
            || with(win, |window| window.update_in_turn(update, values, rank, displacement))
    }
}

/// `MPI_Accumulate` of several elements. Returns whether it has done the call.
///
/// # Safety
///
/// - The condition of [`accumulate`].
///
/// # Errors
/// Returns the error of an update of some of the elements.
pub unsafe fn accumulate_many<N: Number>(
    (origin, count, ty): (*const c_void, N, raw::Datatype),
    (rank, displacement, there, type_there): AtTarget<N>,
    op: raw::Op,
    win: raw::Win,
) -> Result<bool> {
    let elements = usize::try_from(count.wide()).unwrap_or(0);
    if elements == 0 || count.wide() != there.wide() || ty != type_there || is_low(origin) {
        return Ok(false);
    }
    // One element has reached this place because its window is not the usual one.
    let (Some(update), true) = (combination(op, ty), elements > 1) else { return Ok(false) };
    if elements > isize::MAX as usize / 8 {
        return Ok(false);
    }
    let (rank, displacement) = (rank_of(rank), displacement as i64);
    let win = hold(win)?;
    // SAFETY: the elements are valid (the condition of `# Safety`).
    let done = unsafe {
        win.window.accumulate_short(update, origin.cast(), elements, rank, displacement)?
    };
    Ok(done)
}

/// `MPI_Get_accumulate` of one element.
///
/// # Safety
///
/// - The conditions of [`fetch_and_op`].
#[inline(always)]
pub unsafe fn get_accumulate<N: Number>(
    (origin, count, ty): (*const c_void, N, raw::Datatype),
    (result, room, type_here): (*mut c_void, N, raw::Datatype),
    (rank, displacement, there, type_there): AtTarget<N>,
    op: raw::Op,
    win: raw::Win,
) -> bool {
    // `MPI_NO_OP` does not use the arguments of the origin.
    let is_one = (count.wide() == 1 && ty == type_here) || op.0 == abi::NO_OP;
    let (is_one, is_same) =
        (is_one && room.wide() == 1 && there.wide() == 1, type_here == type_there);
    // SAFETY: the caller guarantees the conditions.
    is_one
        && is_same
        && unsafe { fetch_and_op((origin, result), type_there, (rank, displacement), op, win) }
}

/// `MPI_Fetch_and_op`.
///
/// # Safety
///
/// - `origin` is null or readable for an element, unless the operation is `MPI_NO_OP`. `result` is null or writable for
///   an element, and nobody else accesses it. No two of these and the element at the target overlap.
#[inline(always)]
pub unsafe fn fetch_and_op(
    (origin, result): (*const c_void, *mut c_void),
    ty: raw::Datatype,
    (rank, displacement): (c_int, Aint),
    op: raw::Op,
    win: raw::Win,
) -> bool {
    if is_low(result) || (is_low(origin) && op.0 != abi::NO_OP) {
        return false;
    }
    // SAFETY: the elements are valid (the conditions of `# Safety`).
    unsafe { update(op, (ty, true), (origin, result), (rank, displacement), win) }
}

/// `MPI_Compare_and_swap`.
///
/// # Safety
///
/// - `new` and `compare` are null or readable for an element. `result` is null or writable for an element, and nobody
///   else accesses it.
#[inline(always)]
pub unsafe fn compare_and_swap(
    (new, compare, result): (*const c_void, *const c_void, *mut c_void),
    ty: raw::Datatype,
    (rank, displacement): (c_int, Aint),
    win: raw::Win,
) -> bool {
    let known = known(ty);
    let is_wide = known == 8 | INTEGERS;
    if !(is_wide || known == 4 | INTEGERS) || is_low(new) || is_low(compare) || is_low(result) {
        return false;
    }
    let (rank, displacement) = (rank_of(rank), displacement as i64);
    let (values, result) = ((new.cast(), compare.cast()), result.cast());
    // SAFETY: the runtime looks up no window. The elements are valid (the condition of `# Safety`).
    unsafe {
        with(win, |window| window.swap_short(is_wide, values, result, rank, displacement))
            || with(win, |window| window.swap_in_turn(is_wide, values, result, rank, displacement))
    }
}

/// `MPI_Win_flush` and `MPI_Win_flush_local`.
#[inline(always)]
pub fn flush(rank: c_int, win: raw::Win) -> bool {
    // SAFETY: the runtime looks up no window.
    unsafe { with(win, |window| window.flush_short(rank_of(rank))) }
}

#[cfg(test)]
mod tests {
    use super::{bytes_of, other, prepare, simple};
    use crate::abi;
    use crate::raw::{Datatype, Op};
    use typepack::Named;

    fn handle(named: Named) -> Datatype {
        Datatype(named.abi_value() as usize)
    }

    #[test]
    fn only_a_few_elements_of_simple_types_are_short() {
        prepare();
        let int = handle(Named::INT);
        assert_eq!((bytes_of(0, int), bytes_of(-1, int), bytes_of(1, int)), (None, None, Some(4)));
        assert_eq!((bytes_of(64, int), bytes_of(65, int)), (Some(256), None));
        assert_eq!((bytes_of(i64::MAX, int), bytes_of(i64::MIN, int)), (None, None));
        for named in Named::all() {
            let is_simple = named.size() == named.extent() && named.members().is_none();
            let bytes = is_simple.then(|| u64::from(named.size()));
            assert_eq!(bytes_of(1, handle(named)), bytes, "{named}");
        }
        for other in [0, abi::DATATYPE_NULL, 0x1ff, 0x300, 0x1210, usize::MAX] {
            assert_eq!(bytes_of(1, Datatype(other)), None);
        }
    }

    #[test]
    fn updates_of_numbers_are_short() {
        prepare();
        let update = |op, ty, has_result| {
            simple(op, ty, has_result).map(Into::into).or_else(|| other(op, ty))
        };
        let is_short = |op, named, has| update(Op(op), handle(named), has).is_some();
        for named in [Named::INT64_T, Named::INT, Named::FLOAT, Named::DOUBLE] {
            let all = [abi::SUM, abi::MAX, abi::MIN, abi::PROD, abi::REPLACE];
            assert!(all.into_iter().all(|op| is_short(op, named, false)), "{named}");
            assert_eq!(
                (is_short(abi::NO_OP, named, false), is_short(abi::NO_OP, named, true)),
                (false, true)
            );
        }
        assert!(
            is_short(abi::BAND, Named::INT64_T, true) && !is_short(abi::BAND, Named::DOUBLE, true)
        );
        for named in [Named::SHORT, Named::BYTE, Named::FLOAT_INT] {
            assert!(!is_short(abi::SUM, named, true) && !is_short(abi::REPLACE, named, true));
        }
        for op in [abi::OP_NULL, 0, usize::MAX] {
            assert!(!is_short(op, Named::INT, false));
        }
        assert!(update(Op(abi::MAX), Datatype(abi::DATATYPE_NULL), true).is_none());
    }
}
