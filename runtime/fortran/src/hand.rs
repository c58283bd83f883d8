//! Routines that the tables do not describe: functions with a value, predefined callbacks, operators of `mpi_f08`,
//! conversions of statuses, `MPI_Sizeof`.

use crate::descriptor::Descriptor;
use crate::outcome::give;
use crate::{abi, raw};
use std::ffi::{c_int, c_void};

macro_rules! clocks {
    ($($name:ident $call:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> f64 {
                // SAFETY: the function has no arguments.
                unsafe { abi::$call() }
            }
        )*
    };
}
clocks! {
    mpi_wtime_ MPI_Wtime;
    mpi_wtick_ MPI_Wtick;
    pmpi_wtime_ PMPI_Wtime;
    pmpi_wtick_ PMPI_Wtick;
}

macro_rules! addresses {
    ($($name:ident $call:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            ///
            /// - The arguments are addresses of integers of the kind `MPI_ADDRESS_KIND`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(one: *const raw::Aint, other: *const raw::Aint) -> raw::Aint {
                // SAFETY: the addresses are those of integers (`# Safety`).
                unsafe { abi::$call(*one, *other) }
            }
        )*
    };
}
addresses! {
    mpi_aint_add_ MPI_Aint_add;
    mpi_aint_diff_ MPI_Aint_diff;
    pmpi_aint_add_ PMPI_Aint_add;
    pmpi_aint_diff_ PMPI_Aint_diff;
}

macro_rules! operators {
    ($($equal:ident $differ:ident;)*) => {
        $(
            /// Says whether two handles are the same.
            ///
            /// # Safety
            ///
            /// - The arguments are addresses of handles.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $equal(one: *const c_int, other: *const c_int) -> c_int {
                // SAFETY: the addresses are those of handles (`# Safety`).
                c_int::from(unsafe { *one == *other })
            }

            /// Says whether two handles differ.
            ///
            /// # Safety
            ///
            /// - The arguments are addresses of handles.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $differ(one: *const c_int, other: *const c_int) -> c_int {
                // SAFETY: the addresses are those of handles (`# Safety`).
                c_int::from(unsafe { *one != *other })
            }
        )*
    };
}
operators! {
    mpi_comm_f08_eq_ mpi_comm_f08_ne_;
    mpi_datatype_f08_eq_ mpi_datatype_f08_ne_;
    mpi_errhandler_f08_eq_ mpi_errhandler_f08_ne_;
    mpi_file_f08_eq_ mpi_file_f08_ne_;
    mpi_group_f08_eq_ mpi_group_f08_ne_;
    mpi_info_f08_eq_ mpi_info_f08_ne_;
    mpi_message_f08_eq_ mpi_message_f08_ne_;
    mpi_op_f08_eq_ mpi_op_f08_ne_;
    mpi_request_f08_eq_ mpi_request_f08_ne_;
    mpi_session_f08_eq_ mpi_session_f08_ne_;
    mpi_win_f08_eq_ mpi_win_f08_ne_;
}

macro_rules! statuses {
    ($($name:ident)*) => {
        $(
            /// Copies a status, which has the same bytes in both forms.
            ///
            /// # Safety
            ///
            /// - The first two arguments are addresses of statuses, the last is null or the address of an INTEGER.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                from: *const raw::Status,
                to: *mut raw::Status,
                ierror: *mut c_int,
            ) {
                // SAFETY: the addresses are those of statuses and of an INTEGER (`# Safety`).
                unsafe {
                    *to = *from;
                    give(ierror, 0);
                }
            }
        )*
    };
}
statuses! { mpi_status_f2f08_ mpi_status_f082f_ pmpi_status_f2f08_ pmpi_status_f082f_ }

/// `MPI_Sizeof`.
///
/// # Safety
///
/// - `x` comes from a Fortran compiler, `size` is the address of an INTEGER, `ierror` is null or one, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_sizeof_f08ts_(
    x: *const Descriptor,
    size: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: the descriptor comes from a compiler, and the addresses are those of INTEGERs (`# Safety`).
    unsafe {
        *size = c_int::try_from((*x).length()).unwrap_or(raw::UNDEFINED);
        give(ierror, 0);
    }
}

macro_rules! copies {
    ($($width:ty: $null:ident $dup:ident $delete:ident;)*) => {
        $(
            /// Does not copy an attribute.
            ///
            /// # Safety
            ///
            /// - The arguments are addresses of what the interface says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $null(
                _object: *mut c_int,
                _keyval: *mut c_int,
                _extra: *mut $width,
                _value: *mut $width,
                _copy: *mut $width,
                flag: *mut c_int,
                ierror: *mut c_int,
            ) {
                // SAFETY: the addresses are those of a LOGICAL and of an INTEGER (`# Safety`).
                unsafe {
                    *flag = 0;
                    give(ierror, 0);
                }
            }

            /// Copies an attribute.
            ///
            /// # Safety
            ///
            /// - The arguments are addresses of what the interface says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $dup(
                _object: *mut c_int,
                _keyval: *mut c_int,
                _extra: *mut $width,
                value: *mut $width,
                copy: *mut $width,
                flag: *mut c_int,
                ierror: *mut c_int,
            ) {
                // SAFETY: the addresses are those of values, of a LOGICAL and of an INTEGER (`# Safety`).
                unsafe {
                    *copy = *value;
                    *flag = 1;
                    give(ierror, 0);
                }
            }

            /// Does nothing for an attribute that goes.
            ///
            /// # Safety
            ///
            /// - The arguments are addresses of what the interface says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $delete(
                _object: *mut c_int,
                _keyval: *mut c_int,
                _value: *mut $width,
                _extra: *mut $width,
                ierror: *mut c_int,
            ) {
                // SAFETY: `ierror` is null or the address of an INTEGER (`# Safety`).
                unsafe { give(ierror, 0) };
            }
        )*
    };
}
copies! {
    raw::Aint: mpi_comm_null_copy_fn_ mpi_comm_dup_fn_ mpi_comm_null_delete_fn_;
    raw::Aint: mpi_type_null_copy_fn_ mpi_type_dup_fn_ mpi_type_null_delete_fn_;
    raw::Aint: mpi_win_null_copy_fn_ mpi_win_dup_fn_ mpi_win_null_delete_fn_;
    c_int: mpi_null_copy_fn_ mpi_dup_fn_ mpi_null_delete_fn_;
}

macro_rules! no_conversions {
    ($($name:ident $number:literal $count:ty;)*) => {
        $(
            /// Stands for "no conversion"; it is never called.
            ///
            /// # Safety
            ///
            /// - The arguments are addresses of what the interface says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                _memory: *mut c_void,
                _datatype: *mut c_int,
                _count: *mut $count,
                _file: *mut c_void,
                _position: *mut raw::Offset,
                _extra: *mut raw::Aint,
                ierror: *mut c_int,
            ) {
                // SAFETY: `ierror` is null or the address of an INTEGER (`# Safety`).
                unsafe { give(ierror, $number) };
            }
        )*
    };
}
// The code is MPI_ERR_CONVERSION. Different types keep the functions apart.
no_conversions! {
    mpi_conversion_fn_null_ 25 c_int;
    mpi_conversion_fn_null_c_ 25 raw::Count;
}

/// Says whether a callback is `MPI_CONVERSION_FN_NULL` or its form with large counts.
pub fn is_no_conversion(function: raw::Callback) -> bool {
    function == mpi_conversion_fn_null_ as raw::Callback
        || function == mpi_conversion_fn_null_c_ as raw::Callback
}
