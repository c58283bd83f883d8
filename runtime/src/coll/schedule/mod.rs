//! The steps of each collective call: which messages the ranks exchange, and what waits for what.
//!
//! One file per operation. A file adds the steps of one rank to a schedule ([`crate::schedule`] runs it) and returns
//! the step after which the call is over. `../collective.rs` chooses the file for a call.

pub(in crate::coll) mod allgather;
pub(in crate::coll) mod allreduce;
pub(in crate::coll) mod alltoall;
pub(in crate::coll) mod barrier;
pub(in crate::coll) mod between;
pub(in crate::coll) mod broadcast;
mod buffers;
pub(in crate::coll) mod gather;
pub(crate) mod neighbors;
pub(in crate::coll) mod reduce;
pub(in crate::coll) mod reduce_scatter;
pub(in crate::coll) mod scan;
