//! Sessions (MPI-5.0 section 11.3): so far their handles and their error handlers. The calls on them check
//! the handle, and are not built.

use crate::abi;
use crate::error::handler::On;
use crate::error::objects::{Names, Objects, handler_calls};
use crate::handle::Kind;
use crate::raw;

/// All sessions.
pub static SESSIONS: Objects = Objects::new(
    Kind::Session,
    On::Session,
    Names {
        class: abi::ERR_SESSION,
        argument: "session",
        kind: "session",
        null: (abi::SESSION_NULL, "MPI_SESSION_NULL"),
    },
);

handler_calls!(SESSIONS, raw::Session, "Session");
