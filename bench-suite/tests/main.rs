//! The tests of the bench suite: one program, so that it is linked once.

#[path = "support/prefix.rs"]
mod prefix;

mod answers;
mod command;
mod fake_peers;
mod io;
mod peers;
mod pingpong;
mod reference;
mod regret;
mod results;
