//! Schedules: what a collective operation does, as steps that wait for each other.
//!
//! `part.rs` has the buffers; `program.rs` the steps of one schedule and how they are listed;
//! `table.rs` all schedules of this process, which is a source of progress: it issues steps that are
//! ready, and goes on when their messages are complete; `calls.rs` runs one (blocking), starts one
//! (nonblocking), or keeps one (persistent). Before this room comes `endpoint/`; after it `comm/` and
//! `coll/`, which list the steps.
//!
//! A rank that cannot have what it was to hand on (too long, of other types) hands on a void message
//! instead: whoever depends on it fails as well, and nobody waits for ever.

pub(crate) mod calls;
pub(crate) mod part;
pub(crate) mod program;
pub(crate) mod table;

pub use calls::Prepared;
pub use part::Part;
