//! Measures the `MPI_Pack` and `MPI_Unpack` of other MPIs. Each library runs in a process of its own.
//!
//! `typepack-bench peers` uses this folder through `suite.rs`. `find.rs` finds the libraries.
//! `session.rs` runs in the main process: for each peer, it starts the command again with a hidden
//! argument, sends layouts to the new child process, and asks for turns. `child.rs` runs in the child
//! process and answers. `library.rs` opens the MPI (with the standard ABI, or with Open MPI's own).
//! `build.rs` makes a copy of an engine datatype with the MPI, call by call, and `competitor.rs` packs
//! with this copy. `face.rs` opens typepack's own C library in the main process.
//!
//! Each MPI runs in a process of its own because the symbols and signal handlers of two MPIs collide, and
//! because a peer that crashes must not end the run.

mod build;
mod child;
mod competitor;
mod face;
mod find;
mod library;
mod session;

pub use child::serve;
pub use face::{C, Face};
pub use find::{Peer, found};
pub use session::Session;
