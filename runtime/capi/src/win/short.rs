//! The short way of the calls that read and write the memory of other ranks: a few elements of a predefined type, in
//! memory that this rank can map. Such a call takes a few nanoseconds, so every instruction counts.
//!
//! Each function returns whether it has done the whole call. If not, nothing has happened, and the call goes the way of
//! `access.rs` and `epochs.rs`, which serves all cases and finds all errors. So these functions check whether a call is
//! the usual one, and never say what is wrong with it.
//!
//! The exported functions call a function of this file before anything else (`short` in `abi/built.csv`): such a
//! function does not wait, allocates nothing and does not panic, so it needs nothing that `entry.rs` does. `access.rs`
//! calls the others, which may have to wait for a lock.

use super::{CACHE, WINDOWS, hold};
use crate::abi;
use crate::buffer::is_low;
use crate::coll::op;
use crate::count_width::{CountWidth, Number};
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

/// An update of one element.
#[derive(Clone, Copy)]
pub struct Single {
    pub op: raw::Op,
    pub ty: raw::Datatype,
    pub origin: *const c_void,
    /// Where the old value goes; `None` if the call does not return it.
    pub result: Option<*mut c_void>,
    /// The rank of the target and the displacement there.
    pub at: (c_int, Aint),
}

impl Single {
    /// Returns whether the addresses in this process may be those of elements. `MPI_NO_OP` has no operand.
    #[inline(always)]
    fn has_elements(&self) -> bool {
        let has_operand =
            !is_low(self.origin) || (self.result.is_some() && self.op.0 == abi::NO_OP);
        has_operand && self.result.is_none_or(|result| !is_low(result))
    }

    /// Returns the update, if it needs no function.
    #[inline(always)]
    fn simple(&self) -> Option<SimpleUpdate> {
        let known = known(self.ty);
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
        let update = match self.op.0 {
            abi::SUM => Update::Combine(Operator::Sum),
            abi::REPLACE => Update::Replace,
            abi::NO_OP if self.result.is_some() => Update::NoOp,
            _ => return None,
        };
        SimpleUpdate::new(update, elements, is_wide)
    }

    /// Returns the update, also if it needs a function.
    fn any(&self) -> Option<ElementUpdate> {
        let other = || {
            let (update, named) = combination(self.op, self.ty)?;
            ElementUpdate::new(update, named)
        };
        self.simple().map(Into::into).or_else(other)
    }

    /// Returns the addresses of the operand and of the old value, as the runtime takes them.
    #[inline(always)]
    fn values(&self) -> (*const u8, *mut u8) {
        (self.origin.cast(), self.result.unwrap_or_default().cast())
    }

    /// Updates the element, if the update needs no function and the target permits instructions.
    ///
    /// # Safety
    ///
    /// - `origin` is null or readable for an element, unless the operation is `MPI_NO_OP`. `result` is null or writable
    ///   for an element, and nobody else accesses it. No two of these and the element at the target overlap.
    #[inline(always)]
    unsafe fn run_short(self, win: raw::Win) -> bool {
        if !self.has_elements() {
            return false;
        }
        let Some(update) = self.simple() else { return false };
        let at = place(self.at);
        // SAFETY: the runtime looks up no window. The elements are valid (the condition of `# Safety`).
        unsafe {
            window(win)
                .is_some_and(|window| window.update_short(update.into(), self.values(), at.0, at.1))
        }
    }

    /// Updates the element, also if the update needs a function, or if the target uses locks.
    ///
    /// # Safety
    ///
    /// - The condition of [`run_short`](Self::run_short).
    #[inline(never)]
    pub unsafe fn run(self, win: raw::Win) -> bool {
        let (true, Some(update)) = (self.has_elements(), self.any()) else { return false };
        let (values, at) = (self.values(), place(self.at));
        // SAFETY: as in `run_short`: no window is looked up meanwhile, and the elements are valid.
        unsafe {
            window(win).is_some_and(|window| {
                window.update_short(update, values, at.0, at.1)
                    || window.update_in_turn(update, values, at.0, at.1)
            })
        }
    }
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

/// Returns the window of a handle that this thread has used recently.
///
/// # Safety
///
/// - The caller looks up no window and runs no code of the program as long as it uses the result.
#[inline(always)]
unsafe fn window<'a>(win: raw::Win) -> Option<&'a Window> {
    // SAFETY: the closure calls nothing.
    let window = unsafe { WINDOWS.probe(&CACHE, win.0, |win| &raw const win.window) }?;
    // SAFETY: the thread's cache keeps the window until the thread looks up another one, and the caller does not (the
    // condition of `# Safety`).
    Some(unsafe { &*window })
}

/// Returns the rank and the displacement of a call as the runtime takes them. A negative rank becomes a number that no
/// rank has.
#[inline(always)]
fn place((rank, displacement): (c_int, Aint)) -> (usize, i64) {
    (rank as u32 as usize, displacement as i64)
}

/// `MPI_Put`.
///
/// # Safety
///
/// - `origin_addr` is null or readable for its elements, which do not overlap those at the target.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
#[inline(always)]
pub unsafe fn put<W: CountWidth>(
    origin_addr: *const c_void,
    origin_count: W::Count,
    origin_datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    target_count: W::Count,
    target_datatype: raw::Datatype,
    win: raw::Win,
) -> bool {
    let Some(bytes) = bytes_of(origin_count, origin_datatype) else { return false };
    let is_same = (origin_count.wide(), origin_datatype) == (target_count.wide(), target_datatype);
    if !is_same || is_low(origin_addr) {
        return false;
    }
    let (from, at) = (origin_addr.cast(), place((target_rank, target_disp)));
    // SAFETY: the runtime looks up no window. The elements are valid (the condition of `# Safety`).
    unsafe { window(win).is_some_and(|window| window.put_short(from, bytes, at.0, at.1)) }
}

/// `MPI_Get`.
///
/// # Safety
///
/// - `origin_addr` is null or writable for its elements, which nobody else accesses and which do not overlap those at
///   the target.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
#[inline(always)]
pub unsafe fn get<W: CountWidth>(
    origin_addr: *mut c_void,
    origin_count: W::Count,
    origin_datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    target_count: W::Count,
    target_datatype: raw::Datatype,
    win: raw::Win,
) -> bool {
    let Some(bytes) = bytes_of(origin_count, origin_datatype) else { return false };
    let is_same = (origin_count.wide(), origin_datatype) == (target_count.wide(), target_datatype);
    if !is_same || is_low(origin_addr) {
        return false;
    }
    let (to, at) = (origin_addr.cast(), place((target_rank, target_disp)));
    // SAFETY: the runtime looks up no window. The elements are valid (the condition of `# Safety`).
    unsafe { window(win).is_some_and(|window| window.get_short(to, bytes, at.0, at.1)) }
}

/// `MPI_Accumulate` of one element.
///
/// # Safety
///
/// - `origin_addr` is null or readable for its elements, which do not overlap those at the target.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
#[inline(always)]
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
) -> bool {
    let is_one = origin_count.wide() == 1 && target_count.wide() == 1;
    let (ty, at) = (origin_datatype, (target_rank, target_disp));
    let single = Single { op, ty, origin: origin_addr, result: None, at };
    // SAFETY: the element is valid (the condition of `# Safety`).
    is_one && ty == target_datatype && unsafe { single.run_short(win) }
}

/// `MPI_Accumulate` of one element as [`Single::run`] does it, or of several elements. Returns whether the call is done.
///
/// # Safety
///
/// - The condition of [`accumulate`].
///
/// # Errors
/// Returns the error of an update of some of the elements.
pub unsafe fn accumulate_more<N: Number>(
    (origin, count, ty): (*const c_void, N, raw::Datatype),
    (rank, displacement, there, type_there): (c_int, Aint, N, raw::Datatype),
    op: raw::Op,
    win: raw::Win,
) -> Result<bool> {
    let elements = usize::try_from(count.wide()).unwrap_or(0);
    let is_same = count.wide() == there.wide() && ty == type_there;
    if !is_same || elements == 0 || elements > isize::MAX as usize / 8 || is_low(origin) {
        return Ok(false);
    }
    let at = (rank, displacement);
    if elements == 1 {
        // SAFETY: the element is valid (the condition of `# Safety`).
        return Ok(unsafe { Single { op, ty, origin, result: None, at }.run(win) });
    }
    let Some(update) = combination(op, ty) else { return Ok(false) };
    let (win, at) = (hold(win)?, place(at));
    // SAFETY: the elements are valid (the condition of `# Safety`).
    let done = unsafe { win.window.accumulate_short(update, origin.cast(), elements, at.0, at.1)? };
    Ok(done)
}

/// Returns the update of a call of `MPI_Get_accumulate`, if it updates one element.
#[inline(always)]
pub fn single<N: Number>(
    (origin, count, ty): (*const c_void, N, raw::Datatype),
    (result, room, type_here): (*mut c_void, N, raw::Datatype),
    (rank, displacement, there, type_there): (c_int, Aint, N, raw::Datatype),
    op: raw::Op,
) -> Option<Single> {
    // `MPI_NO_OP` does not use the arguments of the origin.
    let is_one = (count.wide() == 1 && ty == type_here) || op.0 == abi::NO_OP;
    let is_one = is_one && room.wide() == 1 && there.wide() == 1 && type_here == type_there;
    let at = (rank, displacement);
    is_one.then_some(Single { op, ty: type_there, origin, result: Some(result), at })
}

/// `MPI_Get_accumulate` of one element.
///
/// # Safety
///
/// - The conditions of [`fetch_and_op`].
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
#[inline(always)]
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
) -> bool {
    let origin = (origin_addr, origin_count, origin_datatype);
    let result = (result_addr, result_count, result_datatype);
    let target = (target_rank, target_disp, target_count, target_datatype);
    // SAFETY: the elements are valid (the conditions of `# Safety`).
    single(origin, result, target, op).is_some_and(|single| unsafe { single.run_short(win) })
}

/// `MPI_Fetch_and_op`.
///
/// # Safety
///
/// - `origin_addr` is null or readable for an element, unless the operation is `MPI_NO_OP`. `result_addr` is null or
///   writable for an element, and nobody else accesses it. No two of these and the element at the target overlap.
#[inline(always)]
pub unsafe fn fetch_and_op(
    origin_addr: *const c_void,
    result_addr: *mut c_void,
    ty: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    op: raw::Op,
    win: raw::Win,
) -> bool {
    let at = (target_rank, target_disp);
    let single = Single { op, ty, origin: origin_addr, result: Some(result_addr), at };
    // SAFETY: the elements are valid (the conditions of `# Safety`).
    unsafe { single.run_short(win) }
}

/// Calls `swap` with what the runtime needs for `MPI_Compare_and_swap`: the window, whether the elements have 8 bytes
/// (or 4), and the rank and the displacement. Returns false if a datatype or an address is not the usual one.
///
/// # Safety
///
/// - `swap` looks up no window, and runs no code of the program.
#[inline(always)]
unsafe fn with_swap(
    (new, compare, result): (*const c_void, *const c_void, *mut c_void),
    ty: raw::Datatype,
    at: (c_int, Aint),
    win: raw::Win,
    swap: impl FnOnce(&Window, bool, (usize, i64)) -> bool,
) -> bool {
    let known = known(ty);
    let is_wide = known == 8 | INTEGERS;
    if !(is_wide || known == 4 | INTEGERS) || is_low(new) || is_low(compare) || is_low(result) {
        return false;
    }
    // SAFETY: the caller guarantees the condition.
    unsafe { window(win) }.is_some_and(|window| swap(window, is_wide, place(at)))
}

/// `MPI_Compare_and_swap`, if the target permits instructions.
///
/// # Safety
///
/// - `new` and `compare` are null or readable for an element. `result` is null or writable for an element, and nobody
///   else accesses it.
#[inline(always)]
pub unsafe fn compare_and_swap(
    new: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
    datatype: raw::Datatype,
    target_rank: c_int,
    target_disp: Aint,
    win: raw::Win,
) -> bool {
    let values = (new.cast(), compare.cast());
    // SAFETY: the runtime looks up no window. The elements are valid (the condition of `# Safety`).
    unsafe {
        with_swap(
            (new, compare, result),
            datatype,
            (target_rank, target_disp),
            win,
            |window, is_wide, at| window.swap_short(is_wide, values, result.cast(), at.0, at.1),
        )
    }
}

/// `MPI_Compare_and_swap`, if the target uses locks.
///
/// # Safety
///
/// - The conditions of [`compare_and_swap`].
#[inline(never)]
pub unsafe fn swap_in_turn(
    elements: (*const c_void, *const c_void, *mut c_void),
    datatype: raw::Datatype,
    at: (c_int, Aint),
    win: raw::Win,
) -> bool {
    let (values, result) = ((elements.0.cast(), elements.1.cast()), elements.2.cast());
    // SAFETY: the runtime looks up no window. The elements are valid (the condition of `# Safety`).
    unsafe {
        with_swap(elements, datatype, at, win, |window, is_wide, at| {
            window.swap_in_turn(is_wide, values, result, at.0, at.1)
        })
    }
}

/// `MPI_Win_flush`.
#[inline(always)]
pub fn flush(rank: c_int, win: raw::Win) -> bool {
    // SAFETY: the runtime looks up no window.
    unsafe { window(win) }.is_some_and(|window| window.flush_short(place((rank, 0)).0))
}

/// `MPI_Win_flush_local`.
#[inline(always)]
pub fn flush_local(rank: c_int, win: raw::Win) -> bool {
    flush(rank, win)
}

#[cfg(test)]
mod tests {
    use super::{Single, bytes_of, prepare};
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
        let update = |op, ty, has_result: bool| {
            let result = has_result.then_some(std::ptr::null_mut());
            Single { op, ty, origin: std::ptr::null(), result, at: (0, 0) }.any()
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
