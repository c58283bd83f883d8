//! Properties of a layout: its signature, its facts, its overlap, and its runs of memory.
//!
//! The input is a plan's loop program or its datatype; no code here moves a byte. `pack/`,
//! `transfer/`, `view/` and the runtime use the results.
//!
//! - `facts.rs`: block sizes, density, order and alignment of a layout ([`Facts`]);
//! - `overlap.rs`: decides whether a byte of memory occurs twice; `known.rs`: stores these answers
//!   with the plan;
//! - `runs.rs`: walks the runs of memory; `iov.rs` starts such a walk at any run, `cursor.rs` at any
//!   packed byte;
//! - `signature/`: the sequence of basic types, for type matching.

pub(crate) mod cursor;
mod facts;
pub mod iov;
mod known;
mod overlap;
mod runs;
pub mod signature;

pub(crate) use facts::summarize;
pub use facts::{Answer, Facts};
