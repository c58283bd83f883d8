//! The types of the ABI as C passes them.
//!
//! A handle is a number as wide as an address. Each kind of handle is a separate Rust type, so that a
//! function cannot pass a communicator for a datatype by mistake. The tables of `handle/` find the object of
//! a handle; the library never uses a handle as an address. `abi.rs` has the values of the predefined
//! handles.

use std::ffi::{c_int, c_void};

/// `MPI_Aint`.
pub type Aint = isize;
/// `MPI_Count`.
pub type Count = i64;
/// `MPI_Offset`.
pub type Offset = i64;

/// A callback as C passes it. The address may be null or a sentinel, a number such as `MPI_COMM_DUP_FN`
/// that stands for a predefined behaviour. `runtime/capi/src/callback.rs` therefore compares the address
/// with null and with the sentinels before it converts the address to a function.
pub type Callback = *const c_void;

/// A handle of the tool interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Tool(pub usize);

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident = $null:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            #[repr(transparent)]
            pub struct $name(pub usize);

            impl $name {
                /// The null handle of this kind.
                pub const NULL: Self = Self(crate::abi::$null);
            }
        )*
    };
}

handles! {
    /// `MPI_Comm`
    Comm = COMM_NULL;
    /// `MPI_Datatype`
    Datatype = DATATYPE_NULL;
    /// `MPI_Errhandler`
    Errhandler = ERRHANDLER_NULL;
    /// `MPI_File`
    File = FILE_NULL;
    /// `MPI_Group`
    Group = GROUP_NULL;
    /// `MPI_Info`
    Info = INFO_NULL;
    /// `MPI_Message`
    Message = MESSAGE_NULL;
    /// `MPI_Op`
    Op = OP_NULL;
    /// `MPI_Request`
    Request = REQUEST_NULL;
    /// `MPI_Session`
    Session = SESSION_NULL;
    /// `MPI_Win`
    Win = WIN_NULL;
}

/// `MPI_Status`: eight C integers. The first two words of `internal` hold the number of packed bytes of the
/// message. The third word is 1 if the operation was cancelled, and 0 otherwise (`status.rs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Status {
    /// `MPI_SOURCE`
    pub source: c_int,
    /// `MPI_TAG`
    pub tag: c_int,
    /// `MPI_ERROR`
    pub error: c_int,
    /// `MPI_internal`
    pub internal: [c_int; 5],
}

const _: () = assert!(size_of::<Status>() == 32 && align_of::<Status>() == 4);
