//! The tests of the launcher: one program, so that it is linked once.

#[expect(dead_code, reason = "the tests of the runtime use the rest")]
mod harness;

mod endings;
mod fortran;
mod linked;
mod manual;
mod output;
mod prefix;
mod programs;
mod refusals;
mod terminal;
