//! C functions that call Fortran functions, for objects without an extra state: operations and error handlers.
//!
//! C tells such a function nothing about its object. So there are 64 C functions of each kind, and each calls the
//! Fortran function in its slot. A Fortran function gets one slot, however many objects are made with it.
//!
//! The slot of an operation is given back when Fortran has freed all operations of its function, unless one of them was
//! part of a call that returns before it is complete: such a call may go on after its operation is freed. An error
//! handler stays in use as long as any object has it, which only the library below knows. So its slot is kept.

use crate::handle::Handle;
use crate::{cast, raw};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of slots of each kind.
const SLOTS: usize = 64;

/// The slots of one kind.
struct Slots {
    functions: [AtomicPtr<c_void>; SLOTS],
    /// How many objects have the function of each slot; `FOREVER` if nobody knows.
    users: Mutex<[u32; SLOTS]>,
}

const FOREVER: u32 = u32::MAX;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slots {
    const fn new() -> Self {
        let functions = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
        Self { functions, users: Mutex::new([0; SLOTS]) }
    }

    /// Returns the slot of a Fortran function with one more user; `None` if other functions are in use in all slots.
    fn take(&self, function: raw::Callback) -> Option<usize> {
        let mut users = locked(&self.users);
        let find = |wanted: *const c_void| {
            let mut all = self.functions.iter();
            all.position(|slot| std::ptr::eq(slot.load(Ordering::Relaxed), wanted))
        };
        let unused = || users.iter().position(|users| *users == 0);
        let slot = find(function).or_else(|| find(std::ptr::null())).or_else(unused)?;
        self.functions[slot].store(function.cast_mut(), Ordering::Release);
        users[slot] = users[slot].saturating_add(1);
        Some(slot)
    }
}

/// A slot with one user.
pub struct Taken {
    slots: &'static Slots,
    slot: usize,
    /// The C function.
    pub call: raw::Callback,
}

/// The slots of operations, by their handles.
static OPERATIONS: Mutex<BTreeMap<usize, (&'static Slots, usize)>> = Mutex::new(BTreeMap::new());

/// Remembers the slot of a new operation, or gives it back if the call failed.
pub fn made(code: c_int, op: raw::Op, taken: &Taken) {
    match code {
        0 => drop(locked(&OPERATIONS).insert(op.0, (taken.slots, taken.slot))),
        _ => change(taken.slots, taken.slot, |users| users - 1),
    }
}

/// Gives back the slot of an operation that is freed.
pub fn freed(code: c_int, op: raw::Op) {
    let found = if code == 0 { locked(&OPERATIONS).remove(&op.0) } else { None };
    if let Some((slots, slot)) = found {
        change(slots, slot, |users| users - 1);
    }
}

/// Keeps the slot of an operation forever, because a call that is not complete has it.
#[inline(always)]
pub fn keep(op: raw::Op) {
    if op.0 >= raw::PREDEFINED {
        let found = locked(&OPERATIONS).get(&op.0).copied();
        if let Some((slots, slot)) = found {
            change(slots, slot, |_| FOREVER);
        }
    }
}

/// Changes the number of users of a slot, unless nobody knows it.
fn change(slots: &Slots, slot: usize, new: impl FnOnce(u32) -> u32) {
    let users = &mut locked(&slots.users)[slot];
    if *users != FOREVER {
        *users = new(*users);
    }
}

/// Returns an array of the functions `$call::<0>` to `$call::<63>`.
macro_rules! all {
    ($call:ident as $kind:ty) => {
        all!($call $kind:
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
            16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
            48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
        )
    };
    ($call:ident $kind:ty: $($number:literal)*) => { [$($call::<$number> as $kind),*] };
}

macro_rules! operations {
    ($($name:ident $call:ident $count:ty;)*) => {
        $(
            /// Returns a slot for a Fortran function; `None` if there are too many Fortran functions.
            pub fn $name(function: raw::Callback) -> Option<Taken> {
                static FUNCTIONS: Slots = Slots::new();
                type C = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut $count, *mut raw::Datatype);
                unsafe extern "C" fn $call<const S: usize>(
                    from: *mut c_void,
                    to: *mut c_void,
                    count: *mut $count,
                    datatype: *mut raw::Datatype,
                ) {
                    // SAFETY: the slot got its function before C got this one, and C passes what the ABI says.
                    unsafe {
                        let mut handle = (*datatype).to_integer();
                        let call = cast::operation::<$count>(FUNCTIONS.functions[S].load(Ordering::Acquire));
                        call(from, to, count, &raw mut handle);
                    }
                }
                static CALLS: [C; SLOTS] = all!($call as C);
                let slot = FUNCTIONS.take(function)?;
                Some(Taken { slots: &FUNCTIONS, slot, call: CALLS[slot] as raw::Callback })
            }
        )*
    };
}
operations! {
    user_function operation c_int;
    user_function_c large_operation raw::Count;
}

macro_rules! error_handlers {
    ($($name:ident $kind:ident;)*) => {
        $(
            /// Returns the C function for a Fortran function; `None` if there are too many Fortran functions.
            pub fn $name(function: raw::Callback) -> Option<raw::Callback> {
                static FUNCTIONS: Slots = Slots::new();
                type C = unsafe extern "C" fn(*mut raw::$kind, *mut c_int);
                unsafe extern "C" fn handler<const S: usize>(object: *mut raw::$kind, code: *mut c_int) {
                    // SAFETY: the slot got its function before C got this one, and C passes what the ABI says.
                    unsafe {
                        let mut handle = (*object).to_integer();
                        let call = cast::error_handler(FUNCTIONS.functions[S].load(Ordering::Acquire));
                        call(&raw mut handle, code);
                    }
                }
                static CALLS: [C; SLOTS] = all!(handler as C);
                Some(CALLS[FUNCTIONS.take(function)?] as raw::Callback)
            }
        )*
    };
}
error_handlers! {
    comm_errhandler_function Comm;
    file_errhandler_function File;
    win_errhandler_function Win;
    session_errhandler_function Session;
}
