//! The calls that start, complete and free requests. Requests of our messages stand among other requests of the host.
//!
//! Each function returns `None` if none of the requests is ours, so that the host does the call alone.

pub mod many;
pub mod one;
pub mod start;
