//! Sessions (MPI-5.0 section 11.3). So far this module implements only the handles and the error handlers of
//! sessions. The other calls on sessions are not implemented yet: they check the handle and then fail.

use crate::abi;
use crate::error::handler::On;
use crate::error::objects::{Names, Objects, handler_calls};
use crate::handle::Kind;
use crate::raw;

/// The table of all sessions.
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
