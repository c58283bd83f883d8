//! Schedules: the work of a collective operation as steps that wait for each other.
//!
//! `sizes.rs` checks sizes. `program.rs` has the steps of one schedule and the builder that lists them.
//! `table.rs` has all schedules of this process. The table issues steps that are ready, and continues when
//! the endpoint reports that their messages are complete. `calls.rs` runs a schedule (blocking), starts one
//! (nonblocking), or keeps one (persistent). The files of this folder use `endpoint/`. The calls in
//! `coll/` use this folder and list the steps.
//!
//! If a rank cannot provide the data that it has to pass on (because a message was too long or had wrong
//! types), it passes on a void message: one without data, which makes the receive of the other rank fail.
//! So the steps of all ranks that depend on this data fail too, and no rank waits forever.

pub(crate) mod calls;
pub(crate) mod program;
pub(crate) mod sizes;
pub(crate) mod table;
