//! Files that the ranks of a communicator open together (MPI-5.0 chapter 14).
//!
//! `file.rs` has [`File`]: opening, closing, sizes, views and file pointers. `access.rs` reads and writes.
//! `mode.rs` has the access modes, `hints.rs` the hints, and `view.rs` finds the bytes of a view, and
//! `representation.rs` has the representations of data.
//! `transfer.rs` moves the bytes: `window.rs` maps files, and `calls.rs` makes system calls. `background.rs` has the I/O threads for nonblocking
//! accesses. `shared.rs` has the words that the ranks of a file share, and `agree.rs` their agreement on
//! errors and arguments.
//!
//! This folder uses `coll/` and `region/`. Only `world.rs` and the C library use this folder.

mod access;
mod agree;
mod background;
mod calls;
mod file;
mod hints;
mod mode;
mod representation;
mod shared;
mod transfer;
mod view;
mod window;

pub use access::{Access, Pending, Position, Started};
pub(crate) use background::register;
pub use file::{File, Refused, Whence};
pub use mode::Mode;
pub use representation::{
    Conversion, Converter, Representation, UserRepresentation, Width, register_representation,
};
pub use view::View;
