//! The tests of the code generator: one program, so that it is linked once. A test that denies executable memory to its
//! process has a program of its own (`denied.rs`).

#[path = "../../engine/tests/walk.rs"]
mod walk;

mod aarch64;
mod agree;
mod clif;
mod engine;
mod jit;
mod transfer;
