//! The C types of the standard ABI, under the names that the generated code uses.

use std::ffi::{c_int, c_void};

macro_rules! handles {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`MPI_", stringify!($name), "`.")]
            #[repr(transparent)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name(pub usize);
        )*
    };
}
handles! { Comm Datatype Errhandler File Group Info Message Op Request Session Win Tool }

/// `MPI_Aint`.
pub type Aint = isize;
/// `MPI_Count`.
pub type Count = i64;
/// `MPI_Offset`.
pub type Offset = i64;

/// `MPI_Status`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// `MPI_SOURCE`.
    pub source: c_int,
    /// `MPI_TAG`.
    pub tag: c_int,
    /// `MPI_ERROR`.
    pub error: c_int,
    /// The bytes of the message, in two words; whether the operation was cancelled.
    pub internal: [c_int; 5],
}

/// The address of a function, or a sentinel.
pub type Callback = *const c_void;

/// `MPI_IN_PLACE`.
pub const IN_PLACE: usize = 1;
/// `MPI_BUFFER_AUTOMATIC`.
pub const BUFFER_AUTOMATIC: usize = 2;
/// `MPI_ERR_SPAWN`.
pub const ERR_SPAWN: c_int = 53;
/// `MPI_ERR_ARG`.
pub const ERR_ARG: c_int = 13;
/// `MPI_ERR_NO_MEM`.
pub const ERR_NO_MEM: c_int = 39;
/// `MPI_ERR_LASTCODE`.
pub const ERR_LASTCODE: c_int = 16383;
/// `MPI_T_BIND_MPI_COMM`.
pub const T_BIND_MPI_COMM: c_int = 2;
/// `MPI_COMBINER_SUBARRAY`.
pub const COMBINER_SUBARRAY: c_int = 111;
/// `MPI_COMBINER_DARRAY`.
pub const COMBINER_DARRAY: c_int = 112;
/// `MPI_IO`.
pub const IO: c_int = 502;
/// `MPI_HOST`.
pub const HOST: c_int = 503;
/// `MPI_LASTUSEDCODE`.
pub const LASTUSEDCODE: c_int = 506;
/// `MPI_WIN_CREATE_FLAVOR`.
pub const WIN_CREATE_FLAVOR: c_int = 604;
/// `MPI_WIN_MODEL`.
pub const WIN_MODEL: c_int = 605;
