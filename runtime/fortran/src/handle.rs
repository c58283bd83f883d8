//! Handles, which are integers in Fortran.

use crate::{abi, raw};
use smallvec::SmallVec;
use std::ffi::c_int;

/// A kind of handles.
pub trait Handle: Copy {
    /// Returns the handle for an integer.
    fn from_integer(integer: c_int) -> Self;
    /// Returns the integer for a handle.
    fn to_integer(self) -> c_int;
    /// The value 0, which is no handle.
    const NOTHING: Self;
    /// Says whether the call has not written the handle.
    fn is_nothing(self) -> bool;
}

macro_rules! handles {
    ($($name:ident $from:ident $to:ident;)*) => {
        $(
            impl Handle for raw::$name {
                const NOTHING: Self = Self(0);
                #[inline(always)]
                fn from_integer(integer: c_int) -> Self {
                    match usize::try_from(integer) {
                        Ok(value) if value < raw::PREDEFINED => Self(value),
                        // SAFETY: the function takes any integer.
                        _ => unsafe { abi::$from(integer) },
                    }
                }
                #[inline(always)]
                fn to_integer(self) -> c_int {
                    match c_int::try_from(self.0) {
                        Ok(value) if self.0 < raw::PREDEFINED => value,
                        // SAFETY: the function takes any handle.
                        _ => unsafe { abi::$to(self) },
                    }
                }
                #[inline(always)]
                fn is_nothing(self) -> bool {
                    self.0 == 0
                }
            }
        )*
    };
}
handles! {
    Comm PMPI_Comm_fromint PMPI_Comm_toint;
    Datatype PMPI_Type_fromint PMPI_Type_toint;
    Errhandler PMPI_Errhandler_fromint PMPI_Errhandler_toint;
    File PMPI_File_fromint PMPI_File_toint;
    Group PMPI_Group_fromint PMPI_Group_toint;
    Info PMPI_Info_fromint PMPI_Info_toint;
    Message PMPI_Message_fromint PMPI_Message_toint;
    Op PMPI_Op_fromint PMPI_Op_toint;
    Request PMPI_Request_fromint PMPI_Request_toint;
    Session PMPI_Session_fromint PMPI_Session_toint;
    Win PMPI_Win_fromint PMPI_Win_toint;
}

/// An array of handles for one call.
pub type Many<H> = SmallVec<[H; 16]>;

/// Reads a handle.
///
/// # Safety
///
/// - `place` is the address of an INTEGER.
#[inline(always)]
pub unsafe fn read<H: Handle>(place: *const c_int) -> H {
    // SAFETY: the address is that of an INTEGER (`# Safety`).
    H::from_integer(unsafe { *place })
}

/// Stores a handle, if the call has written one.
///
/// # Safety
///
/// - `place` is the address of an INTEGER.
#[inline(always)]
pub unsafe fn write<H: Handle>(place: *mut c_int, handle: H) {
    if !handle.is_nothing() {
        // SAFETY: the address is that of an INTEGER (`# Safety`).
        unsafe { *place = handle.to_integer() };
    }
}

/// Reads an array of `number` handles. A negative number stands for none.
///
/// # Safety
///
/// - `places` is the address of at least `number` INTEGERs.
pub unsafe fn many<H: Handle>(places: *const c_int, number: i64) -> Many<H>
where
    [H; 16]: smallvec::Array<Item = H>,
{
    let number = usize::try_from(number).unwrap_or(0);
    // SAFETY: the array has `number` INTEGERs (`# Safety`).
    (0..number).map(|at| unsafe { read(places.add(at)) }).collect()
}

/// Returns room for an array of `number` handles, which the call writes.
pub fn room<H: Handle>(_places: *const c_int, number: i64) -> Many<H>
where
    [H; 16]: smallvec::Array<Item = H>,
{
    std::iter::repeat_n(H::NOTHING, usize::try_from(number).unwrap_or(0)).collect()
}

/// Stores those of an array's handles that the call has written.
///
/// # Safety
///
/// - `places` is the address of at least as many INTEGERs as there are handles.
pub unsafe fn write_all<H: Handle>(places: *mut c_int, handles: &[H]) {
    for (at, handle) in handles.iter().enumerate() {
        // SAFETY: the array has an INTEGER for each handle (`# Safety`).
        unsafe { write(places.add(at), *handle) };
    }
}

/// Returns `count` at the root, and 0 elsewhere.
///
/// # Safety
///
/// - `comm` is the address of an INTEGER.
pub unsafe fn at_root(comm: *const c_int, root: c_int, count: c_int) -> i64 {
    let mut rank = -1;
    // SAFETY: the address is that of an INTEGER (`# Safety`), and `rank` is one.
    let code = unsafe { abi::PMPI_Comm_rank(read(comm), &raw mut rank) };
    if code == 0 && rank == root { i64::from(count) } else { 0 }
}

/// Returns the number of processes that a process sends to (`send`) or receives from in a collective call: all of the
/// communicator, or the neighbours (`near`).
///
/// # Safety
///
/// - `comm` is the address of an INTEGER.
pub unsafe fn peers(comm: *const c_int, send: bool, near: bool) -> i64 {
    let (mut number, mut other, mut word) = (0, 0, 0);
    // SAFETY: the address is that of an INTEGER (`# Safety`), and the results are written to integers.
    let code = unsafe {
        let comm: raw::Comm = read(comm);
        if near {
            match abi::PMPI_Topo_test(comm, &raw mut word) {
                0 if word == raw::CART => {
                    let code = abi::PMPI_Cartdim_get(comm, &raw mut number);
                    number *= 2;
                    code
                }
                0 if word == raw::GRAPH => {
                    let code = abi::PMPI_Comm_rank(comm, &raw mut other);
                    match code {
                        0 => abi::PMPI_Graph_neighbors_count(comm, other, &raw mut number),
                        code => code,
                    }
                }
                0 => {
                    let (from, to) = if send {
                        (&raw mut other, &raw mut number)
                    } else {
                        (&raw mut number, &raw mut other)
                    };
                    abi::PMPI_Dist_graph_neighbors_count(comm, from, to, &raw mut word)
                }
                code => code,
            }
        } else {
            match abi::PMPI_Comm_test_inter(comm, &raw mut word) {
                0 if word != 0 => abi::PMPI_Comm_remote_size(comm, &raw mut number),
                0 => abi::PMPI_Comm_size(comm, &raw mut number),
                code => code,
            }
        }
    };
    if code == 0 { i64::from(number) } else { 0 }
}
