//! Windows (MPI-5.0 chapter 12). So far this module implements only the handles and the error handlers of
//! windows. The other calls on windows are not implemented yet: they check the handle and then fail.

use crate::abi;
use crate::error::handler::On;
use crate::error::objects::{Names, Objects, handler_calls};
use crate::handle::Kind;
use crate::raw;

/// The table of all windows.
pub static WINDOWS: Objects = Objects::new(
    Kind::Win,
    On::Win,
    Names {
        class: abi::ERR_WIN,
        argument: "win",
        kind: "window",
        null: (abi::WIN_NULL, "MPI_WIN_NULL"),
    },
);

handler_calls!(WINDOWS, raw::Win, "Win");
