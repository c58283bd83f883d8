//! What the tests of several crates share. The crate has no dependencies, so it is built once and any crate's tests can
//! use it.

pub mod attempts;
pub mod blessed;
pub mod counting_allocator;
pub mod fault_lines;
pub mod random;
pub mod script;
pub mod skipped;
pub mod source_texts;
