//! The names that the crate `mpi-sys` adds to those of MPI: constants that C has as macros, and conversions of handles.

use crate::abi::*;
use core::ffi::c_int;

pub type RSMPI_Fint = MPI_Fint;

/// Defines `RSMPI_X` as `MPI_Y`.
///
/// In `mpi-sys`, these are variables of C. Here they are variables that this file defines under their names and declares
/// as variables of C: so only unsafe code reads them, as programs for `mpi-sys` do, and `&RSMPI_X` is allowed.
macro_rules! variables {
    ($kind:ty: $($name:ident = $value:ident),* $(,)?) => {
        unsafe extern "C" {
            $(pub static $name: $kind;)*
        }
        const _: () = {
            #[repr(transparent)]
            struct Shared($kind);
            // SAFETY: the value never changes, and nobody reads what a pointer in it points to.
            unsafe impl Sync for Shared {}
            $(const _: () = {
                // SAFETY: this is the only symbol of this name: Cargo allows one crate that links `mpi`.
                #[unsafe(export_name = stringify!($name))]
                static VALUE: Shared = Shared($value as $kind);
            };)*
        };
    };
}

/// Defines the two conversions between a handle and a Fortran `INTEGER`.
macro_rules! conversions {
    ($($kind:ty: $to:ident = $toint:ident, $from:ident = $fromint:ident;)*) => {
        $(
            /// Converts a handle to a Fortran handle.
            ///
            /// # Safety
            ///
            /// - The handle is valid, or is a null handle.
            pub unsafe extern "C" fn $to(handle: $kind) -> RSMPI_Fint {
                // SAFETY: the caller passes a handle (`# Safety`).
                unsafe { $toint(handle) }
            }
            /// Converts a Fortran handle to a handle.
            ///
            /// # Safety
            ///
            /// - The Fortran handle stands for a handle of this kind.
            pub unsafe extern "C" fn $from(handle: RSMPI_Fint) -> $kind {
                // SAFETY: the caller passes a Fortran handle of this kind (`# Safety`).
                unsafe { $fromint(handle) }
            }
        )*
    };
}

variables! { MPI_Datatype:
    RSMPI_C_BOOL = MPI_C_BOOL,
    RSMPI_FLOAT = MPI_FLOAT,
    RSMPI_DOUBLE = MPI_DOUBLE,
    RSMPI_INT8_T = MPI_INT8_T,
    RSMPI_INT16_T = MPI_INT16_T,
    RSMPI_INT32_T = MPI_INT32_T,
    RSMPI_INT64_T = MPI_INT64_T,
    RSMPI_UINT8_T = MPI_UINT8_T,
    RSMPI_UINT16_T = MPI_UINT16_T,
    RSMPI_UINT32_T = MPI_UINT32_T,
    RSMPI_UINT64_T = MPI_UINT64_T,
    RSMPI_FLOAT_COMPLEX = MPI_C_FLOAT_COMPLEX,
    RSMPI_DOUBLE_COMPLEX = MPI_C_DOUBLE_COMPLEX,
    RSMPI_DATATYPE_NULL = MPI_DATATYPE_NULL,
}
variables! { MPI_Comm:
    RSMPI_COMM_WORLD = MPI_COMM_WORLD,
    RSMPI_COMM_NULL = MPI_COMM_NULL,
    RSMPI_COMM_SELF = MPI_COMM_SELF,
}
variables! { MPI_Group: RSMPI_GROUP_EMPTY = MPI_GROUP_EMPTY, RSMPI_GROUP_NULL = MPI_GROUP_NULL }
variables! { MPI_Message:
    RSMPI_MESSAGE_NULL = MPI_MESSAGE_NULL,
    RSMPI_MESSAGE_NO_PROC = MPI_MESSAGE_NO_PROC,
}
variables! { MPI_Request: RSMPI_REQUEST_NULL = MPI_REQUEST_NULL }
variables! { *mut MPI_Status:
    RSMPI_STATUS_IGNORE = MPI_STATUS_IGNORE,
    RSMPI_STATUSES_IGNORE = MPI_STATUSES_IGNORE,
}
variables! { MPI_Op:
    RSMPI_MAX = MPI_MAX,
    RSMPI_MIN = MPI_MIN,
    RSMPI_SUM = MPI_SUM,
    RSMPI_PROD = MPI_PROD,
    RSMPI_LAND = MPI_LAND,
    RSMPI_BAND = MPI_BAND,
    RSMPI_LOR = MPI_LOR,
    RSMPI_BOR = MPI_BOR,
    RSMPI_LXOR = MPI_LXOR,
    RSMPI_BXOR = MPI_BXOR,
}
variables! { MPI_Errhandler:
    RSMPI_ERRORS_ARE_FATAL = MPI_ERRORS_ARE_FATAL,
    RSMPI_ERRORS_RETURN = MPI_ERRORS_RETURN,
}
variables! { MPI_File: RSMPI_FILE_NULL = MPI_FILE_NULL }
variables! { MPI_Info: RSMPI_INFO_NULL = MPI_INFO_NULL }
variables! { MPI_Win: RSMPI_WIN_NULL = MPI_WIN_NULL }
variables! { c_int:
    RSMPI_COMM_TYPE_SHARED = MPI_COMM_TYPE_SHARED,
    RSMPI_UNDEFINED = MPI_UNDEFINED,
    RSMPI_PROC_NULL = MPI_PROC_NULL,
    RSMPI_ANY_SOURCE = MPI_ANY_SOURCE,
    RSMPI_ANY_TAG = MPI_ANY_TAG,
    RSMPI_IDENT = MPI_IDENT,
    RSMPI_CONGRUENT = MPI_CONGRUENT,
    RSMPI_SIMILAR = MPI_SIMILAR,
    RSMPI_UNEQUAL = MPI_UNEQUAL,
    RSMPI_THREAD_SINGLE = MPI_THREAD_SINGLE,
    RSMPI_THREAD_FUNNELED = MPI_THREAD_FUNNELED,
    RSMPI_THREAD_SERIALIZED = MPI_THREAD_SERIALIZED,
    RSMPI_THREAD_MULTIPLE = MPI_THREAD_MULTIPLE,
    RSMPI_GRAPH = MPI_GRAPH,
    RSMPI_CART = MPI_CART,
    RSMPI_DIST_GRAPH = MPI_DIST_GRAPH,
    RSMPI_MAX_LIBRARY_VERSION_STRING = MPI_MAX_LIBRARY_VERSION_STRING,
    RSMPI_MAX_PROCESSOR_NAME = MPI_MAX_PROCESSOR_NAME,
}

conversions! {
    MPI_Comm: RSMPI_Comm_c2f = MPI_Comm_toint, RSMPI_Comm_f2c = MPI_Comm_fromint;
    MPI_Errhandler: RSMPI_Errhandler_c2f = MPI_Errhandler_toint, RSMPI_Errhandler_f2c = MPI_Errhandler_fromint;
    MPI_File: RSMPI_File_c2f = MPI_File_toint, RSMPI_File_f2c = MPI_File_fromint;
    MPI_Group: RSMPI_Group_c2f = MPI_Group_toint, RSMPI_Group_f2c = MPI_Group_fromint;
    MPI_Info: RSMPI_Info_c2f = MPI_Info_toint, RSMPI_Info_f2c = MPI_Info_fromint;
    MPI_Message: RSMPI_Message_c2f = MPI_Message_toint, RSMPI_Message_f2c = MPI_Message_fromint;
    MPI_Op: RSMPI_Op_c2f = MPI_Op_toint, RSMPI_Op_f2c = MPI_Op_fromint;
    MPI_Request: RSMPI_Request_c2f = MPI_Request_toint, RSMPI_Request_f2c = MPI_Request_fromint;
    MPI_Datatype: RSMPI_Type_c2f = MPI_Type_toint, RSMPI_Type_f2c = MPI_Type_fromint;
    MPI_Win: RSMPI_Win_c2f = MPI_Win_toint, RSMPI_Win_f2c = MPI_Win_fromint;
}

/// Returns `MPI_UNWEIGHTED`.
///
/// # Safety
///
/// - There is no condition. The function is unsafe because that of `mpi-sys` is.
pub unsafe extern "C" fn RSMPI_UNWEIGHTED() -> *mut c_int {
    MPI_UNWEIGHTED
}

/// Calls `MPI_Wtime`.
///
/// # Safety
///
/// - The library may be called.
pub unsafe extern "C" fn RSMPI_Wtime() -> f64 {
    // SAFETY: the caller may call the library (`# Safety`).
    unsafe { MPI_Wtime() }
}

/// Calls `MPI_Wtick`.
///
/// # Safety
///
/// - The library may be called.
pub unsafe extern "C" fn RSMPI_Wtick() -> f64 {
    // SAFETY: the caller may call the library (`# Safety`).
    unsafe { MPI_Wtick() }
}
