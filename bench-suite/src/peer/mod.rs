//! Other MPIs as competitors: their `MPI_Pack` and `MPI_Unpack`, each in a process of its own.
//!
//! Beside the flow of `pack`; `typepack-bench peers` uses it through `suite.rs`. By file:
//! `find.rs` (which libraries there are) -> `session.rs` (this process's side: starts the command
//! again with a hidden argument, sends layouts, asks for turns) -> `child.rs` (the other side) ->
//! `library.rs` (opens the MPI: the standard ABI, or Open MPI's own) -> `build.rs` (a datatype of
//! the engine made again by the MPI, call by call) -> `competitor.rs` (packs with it). `face.rs` is
//! typepack's own C face, in this process.
//!
//! Two MPIs cannot share a process: their symbols and signal handlers collide. And a peer that
//! crashes must not end the run.

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
