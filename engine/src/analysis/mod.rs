//! What a layout is like: its signature, its facts, overlap, and its runs of memory.
//!
//! After `plan/`, from a plan's program or its datatype; nothing here moves a byte. Consumers are
//! `transfer/`, `explain`, and the runtime's choice of a protocol.
//!
//! - `facts.rs`: block sizes, density, order, alignment ([`Facts`]);
//! - `overlap.rs`: whether a byte occurs twice, `known.rs`: the answers that a plan keeps;
//! - `runs.rs`: the runs of memory, which `iov.rs` hands out from any run on, `cursor.rs` from any
//!   packed byte;
//! - `signature/`: the basic types in order, for matching.

pub(crate) mod cursor;
mod facts;
pub mod iov;
mod known;
mod overlap;
mod runs;
pub mod signature;

pub use facts::{Answer, Facts};
