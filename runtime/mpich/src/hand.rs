//! Functions and variables that the tables do not describe.

#![allow(non_upper_case_globals, reason = "the variables have the names of C symbols")]

use crate::array::handle_room;
use crate::entries::entries;
use crate::handle::{self, Handle};
use crate::number::to_theirs;
use crate::status::Theirs;
use crate::{array, code, guard, raw, values};
use std::ffi::{c_int, c_void};

/// `MPI_UNWEIGHTED`. The value of the variable is that of the ABI's constant.
#[unsafe(no_mangle)]
pub static MPI_UNWEIGHTED: usize = 10;
/// `MPI_WEIGHTS_EMPTY`. The value of the variable is that of the ABI's constant.
#[unsafe(no_mangle)]
pub static MPI_WEIGHTS_EMPTY: usize = 11;
/// `MPI_T_PVAR_ALL_HANDLES`. The value of the variable is that of the ABI's constant.
#[unsafe(no_mangle)]
pub static MPI_T_PVAR_ALL_HANDLES: usize = 1;
/// `MPI_F_STATUS_IGNORE`. The value is an address where no object lies.
#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: usize = 0x1f01;
/// `MPI_F_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: usize = 0x1f02;
/// What `MPI_F08_STATUS_IGNORE` points to.
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUS_IGNORE_OBJ: [c_int; 5] = [0; 5];
/// What `MPI_F08_STATUSES_IGNORE` points to.
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUSES_IGNORE_OBJ: [c_int; 5] = [0; 5];
/// `MPI_F08_STATUS_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: &[c_int; 5] = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
/// `MPI_F08_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: &[c_int; 5] = &MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
/// The value of `.TRUE.` in Fortran.
#[unsafe(no_mangle)]
pub static MPIR_fortran_true: c_int = 1;
/// The value of `.FALSE.` in Fortran.
#[unsafe(no_mangle)]
pub static MPIR_fortran_false: c_int = 0;

/// `MPI_COMM_DUP_FN`, `MPI_TYPE_DUP_FN` and `MPI_WIN_DUP_FN`: gives the copy of an object the same attribute.
///
/// # Safety
///
/// - `copy` is the address of an address, and `flag` that of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIR_Dup_fn(
    _object: c_int,
    _keyval: c_int,
    _extra: *mut c_void,
    value: *mut c_void,
    copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the addresses are those of an address and a number (`# Safety`).
    unsafe {
        copy.cast::<*mut c_void>().write_unaligned(value);
        *flag = 1;
    }
    0
}

macro_rules! both {
    ($($(#[$doc:meta])* $name:ident $profiled:ident($($argument:ident: $kind:ty),*) -> $returns:ty $body:block)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// - Each argument is what the standard asks for, in MPICH's ABI.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $kind),*) -> $returns $body

            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// - Each argument is what the standard asks for, in MPICH's ABI.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $profiled($($argument: $kind),*) -> $returns $body
        )*
    };
}

macro_rules! integers {
    ($($c2f:ident $pc2f:ident $f2c:ident $pf2c:ident $toint:ident $ptoint:ident $fromint:ident $pfromint:ident)*) => {
        both! {
            $(
                /// A handle is the integer.
                $c2f $pc2f(handle: c_int) -> c_int { handle }
                /// A handle is the integer.
                $f2c $pf2c(handle: c_int) -> c_int { handle }
                /// A handle is the integer.
                $toint $ptoint(handle: c_int) -> c_int { handle }
                /// A handle is the integer.
                $fromint $pfromint(handle: c_int) -> c_int { handle }
            )*
        }
    };
}

integers! {
    MPI_Comm_c2f PMPI_Comm_c2f MPI_Comm_f2c PMPI_Comm_f2c
        MPI_Comm_toint PMPI_Comm_toint MPI_Comm_fromint PMPI_Comm_fromint
    MPI_Type_c2f PMPI_Type_c2f MPI_Type_f2c PMPI_Type_f2c
        MPI_Type_toint PMPI_Type_toint MPI_Type_fromint PMPI_Type_fromint
    MPI_Errhandler_c2f PMPI_Errhandler_c2f MPI_Errhandler_f2c PMPI_Errhandler_f2c
        MPI_Errhandler_toint PMPI_Errhandler_toint MPI_Errhandler_fromint PMPI_Errhandler_fromint
    MPI_Group_c2f PMPI_Group_c2f MPI_Group_f2c PMPI_Group_f2c
        MPI_Group_toint PMPI_Group_toint MPI_Group_fromint PMPI_Group_fromint
    MPI_Info_c2f PMPI_Info_c2f MPI_Info_f2c PMPI_Info_f2c
        MPI_Info_toint PMPI_Info_toint MPI_Info_fromint PMPI_Info_fromint
    MPI_Message_c2f PMPI_Message_c2f MPI_Message_f2c PMPI_Message_f2c
        MPI_Message_toint PMPI_Message_toint MPI_Message_fromint PMPI_Message_fromint
    MPI_Op_c2f PMPI_Op_c2f MPI_Op_f2c PMPI_Op_f2c
        MPI_Op_toint PMPI_Op_toint MPI_Op_fromint PMPI_Op_fromint
    MPI_Request_c2f PMPI_Request_c2f MPI_Request_f2c PMPI_Request_f2c
        MPI_Request_toint PMPI_Request_toint MPI_Request_fromint PMPI_Request_fromint
    MPI_Session_c2f PMPI_Session_c2f MPI_Session_f2c PMPI_Session_f2c
        MPI_Session_toint PMPI_Session_toint MPI_Session_fromint PMPI_Session_fromint
    MPI_Win_c2f PMPI_Win_c2f MPI_Win_f2c PMPI_Win_f2c
        MPI_Win_toint PMPI_Win_toint MPI_Win_fromint PMPI_Win_fromint
}

fn file_to_integer(file: raw::File) -> c_int {
    file.0 as u32 as c_int
}

fn file_of_integer(integer: c_int) -> raw::File {
    raw::File(integer as u32 as usize)
}

both! {
    /// The integer of a file's handle, which is wider than an integer.
    MPI_File_c2f PMPI_File_c2f(file: raw::File) -> c_int { file_to_integer(file) }
    /// The handle of a file for its integer.
    MPI_File_f2c PMPI_File_f2c(file: c_int) -> raw::File { file_of_integer(file) }
    /// The integer of a file's handle.
    MPI_File_toint PMPI_File_toint(file: raw::File) -> c_int { file_to_integer(file) }
    /// The handle of a file for its integer.
    MPI_File_fromint PMPI_File_fromint(file: c_int) -> raw::File { file_of_integer(file) }

    /// Says that the library does not have the ABI's handles, as MPICH's library of this name does.
    MPI_Abi_get_version PMPI_Abi_get_version(major: *mut c_int, minor: *mut c_int) -> c_int {
        for place in [major, minor] {
            if !place.is_null() {
                // SAFETY: the address is that of a number (`# Safety`).
                unsafe { place.write_unaligned(-1) };
            }
        }
        0
    }
}

/// Converts the constants among the integers of a datatype's contents.
///
/// # Safety
///
/// - The call has written `number` integers at `integers`.
unsafe fn convert_integers(combiner: c_int, integers: *mut c_int, number: i64, is_large: bool) {
    let Ok(number) = usize::try_from(number) else { return };
    if integers.is_null() || ![raw::COMBINER_SUBARRAY, raw::COMBINER_DARRAY].contains(&combiner) {
        return;
    }
    // SAFETY: the array has so many integers (`# Safety`).
    let all = unsafe { std::slice::from_raw_parts_mut(integers, number) };
    if let Some(order) = all.last_mut() {
        *order = to_theirs(&values::ORDER, *order);
    }
    if combiner == raw::COMBINER_DARRAY {
        let dims = usize::try_from(all[2]).unwrap_or(0);
        // The form with large counts has the sizes elsewhere.
        let first = if is_large { 3 } else { 3 + dims };
        for (place, pairs) in [(first, &values::DISTRIBUTION), (first + dims, &values::DARG)] {
            for entry in all.iter_mut().skip(place).take(dims) {
                *entry = to_theirs(pairs, *entry);
            }
        }
    }
}

/// Asks for the contents of a datatype. The array of the program may be longer than the contents, so the call gets one
/// that is as long as these.
///
/// # Safety
///
/// - The arrays have the room that the program says.
unsafe fn contents(
    datatype: raw::Datatype,
    room: i64,
    integers: *mut c_int,
    datatypes: *mut c_int,
    call: impl FnOnce(*mut raw::Datatype) -> c_int,
) -> c_int {
    let (mut ni, mut na, mut nc, mut nd, mut combiner) = (0, 0, 0, 0, 0);
    // SAFETY: the results are written to local variables.
    let code = unsafe {
        (entries().MPI_Type_get_envelope_c)(
            datatype,
            &raw mut ni,
            &raw mut na,
            &raw mut nc,
            &raw mut nd,
            &raw mut combiner,
        )
    };
    if code != 0 {
        return code::outcome(code);
    }
    let Some(mut found) = handle_room::<raw::Datatype>(datatypes, room.min(nd)) else {
        return code::no_memory();
    };
    let code = call(found.as_mut_ptr());
    if code == 0 {
        // SAFETY: the call has succeeded, so the arrays of the program have room for the contents.
        unsafe {
            array::store(datatypes, &found);
            convert_integers(combiner, integers, ni, nc > 0);
        }
    }
    code::outcome(code)
}

both! {
    /// The contents of a datatype.
    MPI_Type_get_contents PMPI_Type_get_contents(datatype: c_int, max_integers: c_int, max_addresses: c_int,
        max_datatypes: c_int, integers: *mut c_int, addresses: *mut raw::Aint, datatypes: *mut c_int) -> c_int {
        let datatype = raw::Datatype::to_ours(datatype);
        // SAFETY: the arrays have the room that the program says (`# Safety`).
        guard::call("MPI_Type_get_contents", || unsafe {
            contents(datatype, max_datatypes.into(), integers, datatypes, |found| {
                (entries().MPI_Type_get_contents)(
                    datatype, max_integers, max_addresses, max_datatypes, integers, addresses, found,
                )
            })
        })
    }

    /// The contents of a datatype, with large counts.
    MPI_Type_get_contents_c PMPI_Type_get_contents_c(datatype: c_int, max_integers: raw::Count,
        max_addresses: raw::Count, max_large: raw::Count, max_datatypes: raw::Count, integers: *mut c_int,
        addresses: *mut raw::Aint, large: *mut raw::Count, datatypes: *mut c_int) -> c_int {
        let datatype = raw::Datatype::to_ours(datatype);
        // SAFETY: the arrays have the room that the program says (`# Safety`).
        guard::call("MPI_Type_get_contents_c", || unsafe {
            contents(datatype, max_datatypes, integers, datatypes, |found| {
                (entries().MPI_Type_get_contents_c)(
                    datatype, max_integers, max_addresses, max_large, max_datatypes, integers, addresses,
                    large, found,
                )
            })
        })
    }
}

both! {
    /// A variable of communicators gets the address of a communicator, which is an integer.
    MPI_T_pvar_handle_alloc PMPI_T_pvar_handle_alloc(session: raw::Tool, pvar_index: c_int, obj_handle: *mut c_void,
        handle: *mut raw::Tool, count: *mut c_int) -> c_int {
        let mut bind = 0;
        // SAFETY: the call ignores null addresses, and `bind` is a number. If the variable belongs to communicators, the
        // object is the address of one (`# Safety`), unless it is a low address, where nothing is. The other arguments
        // are the program's (`# Safety`).
        unsafe {
            let no_text = std::ptr::null_mut();
            let no_number = std::ptr::null_mut();
            (entries().MPI_T_pvar_get_info)(
                pvar_index, no_text, no_number, no_number, no_number, std::ptr::null_mut(), std::ptr::null_mut(),
                no_text, no_number, &raw mut bind, no_number, no_number, no_number,
            );
            let is_comm = bind == raw::T_BIND_MPI_COMM && obj_handle as usize >= FIRST_ADDRESS;
            let number = if is_comm { obj_handle.cast::<c_int>().read_unaligned() } else { 0 };
            let mut comm = raw::Comm::to_ours(number);
            let object = if is_comm { (&raw mut comm).cast() } else { obj_handle };
            code::outcome((entries().MPI_T_pvar_handle_alloc)(session, pvar_index, object, handle, count))
        }
    }
}

/// No memory is below this address.
const FIRST_ADDRESS: usize = 4096;

/// Copies a status between C and Fortran, where it has the same bytes. Fails if there is none.
///
/// # Safety
///
/// - `to` is the address of a status. `from` is that of a status, or one of `no_status`.
unsafe fn copy_status(from: *const Theirs, no_status: &[usize], to: *mut Theirs) -> c_int {
    if from.is_null() || to.is_null() || no_status.contains(&(from as usize)) {
        return code::to_theirs(raw::ERR_ARG);
    }
    // SAFETY: both addresses are those of statuses (`# Safety`).
    unsafe { to.write_unaligned(from.read_unaligned()) };
    0
}

/// `MPI_STATUS_IGNORE`, which is also `MPI_STATUSES_IGNORE`.
const IN_C: &[usize] = &[1];

fn in_fortran() -> [usize; 4] {
    let f08 = [MPI_F08_STATUS_IGNORE, MPI_F08_STATUSES_IGNORE].map(|it| it.as_ptr() as usize);
    [MPI_F_STATUS_IGNORE, MPI_F_STATUSES_IGNORE, f08[0], f08[1]]
}

macro_rules! statuses {
    ($($name:ident $profiled:ident $none:expr;)*) => {
        both! {
            $(
                /// A status has the same bytes in all languages.
                $name $profiled(from: *const Theirs, to: *mut Theirs) -> c_int {
                    // SAFETY: the addresses are those of statuses (`# Safety`).
                    unsafe { copy_status(from, $none, to) }
                }
            )*
        }
    };
}

statuses! {
    MPI_Status_c2f PMPI_Status_c2f IN_C;
    MPI_Status_c2f08 PMPI_Status_c2f08 IN_C;
    MPI_Status_f2c PMPI_Status_f2c &in_fortran();
    MPI_Status_f082c PMPI_Status_f082c &in_fortran();
    MPI_Status_f2f08 PMPI_Status_f2f08 &in_fortran();
    MPI_Status_f082f PMPI_Status_f082f &in_fortran();
}

/// Functions that were removed in MPI-3.0, and have the arguments of another one.
macro_rules! renamed {
    ($($name:ident $profiled:ident $new:ident($($argument:ident: $type:ty),*);)*) => {
        both! {
            $(
                /// Removed in MPI-3.0.
                $name $profiled($($argument: $type),*) -> c_int {
                    // SAFETY: the arguments are those of this function (`# Safety`).
                    unsafe { crate::exports::$new($($argument),*) }
                }
            )*
        }
    };
}

renamed! {
    MPI_Errhandler_create PMPI_Errhandler_create MPI_Comm_create_errhandler(function: raw::Callback, errhandler: *mut c_int);
    MPI_Errhandler_get PMPI_Errhandler_get MPI_Comm_get_errhandler(comm: c_int, errhandler: *mut c_int);
    MPI_Errhandler_set PMPI_Errhandler_set MPI_Comm_set_errhandler(comm: c_int, errhandler: c_int);
    MPI_Type_hvector PMPI_Type_hvector MPI_Type_create_hvector(count: c_int, length: c_int, stride: raw::Aint, old: c_int,
        new: *mut c_int);
    MPI_Type_hindexed PMPI_Type_hindexed MPI_Type_create_hindexed(count: c_int, lengths: *const c_int, places: *const raw::Aint, old: c_int,
        new: *mut c_int);
}

both! {
    /// Removed in MPI-3.0.
    MPI_Address PMPI_Address(place: *const c_void, address: *mut raw::Aint) -> c_int {
        // SAFETY: the arguments are those of this function (`# Safety`).
        code::outcome(unsafe { (entries().MPI_Get_address)(place, address) })
    }
    /// Removed in MPI-3.0.
    MPI_Type_extent PMPI_Type_extent(datatype: c_int, extent: *mut raw::Aint) -> c_int {
        let mut lb = 0;
        let datatype = raw::Datatype::to_ours(datatype);
        // SAFETY: the arguments are those of this function (`# Safety`).
        code::outcome(unsafe { (entries().MPI_Type_get_extent)(datatype, &raw mut lb, extent) })
    }
    /// Removed in MPI-3.0.
    MPI_Type_lb PMPI_Type_lb(datatype: c_int, lb: *mut raw::Aint) -> c_int {
        let mut extent = 0;
        let datatype = raw::Datatype::to_ours(datatype);
        // SAFETY: the arguments are those of this function (`# Safety`).
        code::outcome(unsafe { (entries().MPI_Type_get_extent)(datatype, lb, &raw mut extent) })
    }
    /// Removed in MPI-3.0.
    MPI_Type_ub PMPI_Type_ub(datatype: c_int, ub: *mut raw::Aint) -> c_int {
        let mut lb = 0;
        let datatype = raw::Datatype::to_ours(datatype);
        // SAFETY: `ub` is for writing (`# Safety`), and `lb` is a variable. After a call without error, both are written.
        unsafe {
            let code = (entries().MPI_Type_get_extent)(datatype, &raw mut lb, ub);
            if code == 0 {
                ub.write_unaligned(ub.read_unaligned().wrapping_add(lb));
            }
            code::outcome(code)
        }
    }
    /// Removed in MPI-3.0. Its types may contain `MPI_LB` and `MPI_UB`.
    MPI_Type_struct PMPI_Type_struct(count: c_int, lengths: *const c_int, places: *const raw::Aint,
        types: *const c_int, new: *mut c_int) -> c_int {
        // SAFETY: the arguments are those of this function (`# Safety`).
        unsafe {
            let Some(types) = array::handles::<raw::Datatype>(types, count.into()) else {
                return code::no_memory();
            };
            let mut new = handle::At::<raw::Datatype>::new(new);
            let code =
                (entries().MPI_Type_struct)(count, lengths, places, types.as_ptr(), new.place());
            new.store();
            code::outcome(code)
        }
    }
    /// Says that buffers in the memory of a device are not supported.
    MPIX_Query_cuda_support PMPIX_Query_cuda_support() -> c_int { 0 }
    /// Says that buffers in the memory of a device are not supported.
    MPIX_Query_hip_support PMPIX_Query_hip_support() -> c_int { 0 }
    /// Says that buffers in the memory of a device are not supported.
    MPIX_Query_ze_support PMPIX_Query_ze_support() -> c_int { 0 }
    /// Says that buffers in the memory of a device are not supported.
    MPIX_GPU_query_support PMPIX_GPU_query_support(_kind: c_int, supported: *mut c_int) -> c_int {
        if !supported.is_null() {
            // SAFETY: the address is that of a number (`# Safety`).
            unsafe { supported.write_unaligned(0) };
        }
        0
    }
}
