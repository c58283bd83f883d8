//! Measures other MPIs as competitors: their `MPI_Pack` and `MPI_Unpack`, each library in a process of
//! its own.
//!
//! `typepack-bench peers` uses this folder through `suite.rs`. `find.rs` finds the libraries.
//! `session.rs` is this process's side: it starts the command again with a hidden argument, sends
//! layouts, and asks for turns. `child.rs` is the other side. `library.rs` opens the MPI (the standard
//! ABI, or Open MPI's own). `build.rs` makes a copy of an engine datatype with the MPI, call by call, and
//! `competitor.rs` packs with this copy. `face.rs` opens typepack's own C library in this process.
//!
//! Each MPI has a process of its own because the symbols and signal handlers of two MPIs collide, and
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
