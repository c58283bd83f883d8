//! Converts handles to integers and back (MPI-5.0 section 20.3): `MPI_X_toint`, `MPI_X_fromint`.
//!
//! A predefined handle converts to its ABI value. A user's handle converts to its lower 32 bits
//! (`handle/`). An integer between 1 and `LAST_PREDEFINED` converts to the handle with the same value,
//! without a check. Any other integer that belongs to no live handle converts to the null handle.

use crate::abi;
use crate::handle::to_int;
use crate::raw;
use std::ffi::c_int;

/// The largest value that a predefined handle can have. The handles of the compatibility block of `mpi.h`
/// also lie below it.
const LAST_PREDEFINED: c_int = 0x1fff;

fn from_int(integer: c_int, null: usize, live: impl FnOnce(c_int) -> Option<usize>) -> usize {
    match integer {
        1..=LAST_PREDEFINED => integer as usize,
        _ => live(integer).unwrap_or(null),
    }
}

macro_rules! conversions {
    ($($kind:ident, $to:ident, $from:ident, $live:expr;)*) => {
        $(
            #[doc = concat!("`MPI_", stringify!($kind), "_toint`.")]
            pub fn $to(handle: raw::$kind) -> c_int {
                to_int(handle.0)
            }

            #[doc = concat!("`MPI_", stringify!($kind), "_fromint`.")]
            pub fn $from(integer: c_int) -> raw::$kind {
                raw::$kind(from_int(integer, raw::$kind::NULL.0, $live))
            }
        )*
    };
}

conversions! {
    Comm, comm_toint, comm_fromint, crate::comm::from_int;
    Datatype, type_toint, type_fromint, crate::datatype::from_int;
    Errhandler, errhandler_toint, errhandler_fromint, crate::error::handler::from_int;
    File, file_toint, file_fromint, |integer| crate::io::FILES.of_int(integer);
    Group, group_toint, group_fromint, crate::group::from_int;
    Info, info_toint, info_fromint, crate::info::from_int;
    Message, message_toint, message_fromint, crate::p2p::matched::from_int;
    Op, op_toint, op_fromint, crate::coll::op::from_int;
    Request, request_toint, request_fromint, crate::request::from_int;
    Session, session_toint, session_fromint, |integer| crate::session::SESSIONS.of_int(integer);
    Win, win_toint, win_fromint, |integer| crate::win::WINDOWS.of_int(integer);
}

const _: () = assert!(abi::DATATYPE_NULL < LAST_PREDEFINED as usize);
