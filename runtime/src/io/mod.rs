//! Files that the ranks of a communicator open together (MPI-5.0 chapter 14).
//!
//! `file.rs` has [`File`]: opening, closing, sizes, views and file pointers. `access.rs` reads and writes.
//! `scope.rs` starts accesses in the background, and `array.rs` moves views of `ndarray`.
//! `open.rs` opens the file in one rank, `mode.rs` has the access modes, `place.rs` finds out which file a name means,
//! `hints.rs` has the hints, `view.rs` finds the bytes of a view, and `representation.rs` has the representations of
//! data. `converted.rs` calls the conversion functions of the user. `transfer.rs` moves the bytes, through a window of
//! the mapped file or by the system calls of `calls.rs`; `choosers.rs` measures which of the two is faster.
//! `background.rs` has the I/O threads for nonblocking accesses. `agree.rs` has the agreement of the ranks on errors
//! and arguments, and the words that the ranks of a file share; some of these words are the locks for ranges of a file
//! (`locks.rs`).
//!
//! This folder uses `coll/`, `region/` and the values of `halo/`. Only `world.rs` and the C library use this folder.

mod access;
mod agree;
#[cfg(feature = "ndarray")]
mod array;
mod background;
mod calls;
pub(crate) mod choosers;
mod converted;
mod file;
mod hints;
mod locks;
mod mode;
mod open;
mod place;
mod representation;
mod scope;
mod transfer;
mod view;

pub use access::{Access, Pending, Position, Started};
pub(crate) use background::register;
pub(crate) use choosers::report;
pub use file::{File, Refused, Whence};
pub use mode::Mode;
pub use representation::{
    Conversion, Converter, Representation, UserRepresentation, Width, register_representation,
};
pub use view::View;
