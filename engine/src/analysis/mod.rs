//! Properties of a layout: its signature, its facts, its overlap, and its runs of memory.
//!
//! The input is a plan's program or its datatype; no code here moves a byte. The users are `transfer/`,
//! `explain`, and the runtime's choice of a protocol.
//!
//! - `facts.rs`: block sizes, density, order, alignment ([`Facts`]);
//! - `overlap.rs`: whether a byte occurs twice; `known.rs`: the answers that a plan stores;
//! - `runs.rs`: the runs of memory; `iov.rs` lists them from any run, `cursor.rs` from any packed byte;
//! - `signature/`: the basic types in order, for type matching.

pub(crate) mod cursor;
mod facts;
pub mod iov;
mod known;
mod overlap;
mod runs;
pub mod signature;

pub use facts::{Answer, Facts};
