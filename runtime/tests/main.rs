//! The tests of the runtime: one program, so that it is linked once. Each module is a room of the runtime or a property.
//! Most tests run their bodies as the ranks of a job (`job/`), which starts this program again with the name of the test.

#[expect(dead_code, reason = "the tests of the launcher use the rest")]
#[path = "../launcher/tests/harness/mod.rs"]
mod harness;

mod fake_pmi;
mod file_scene;
mod forbid;
mod job;
mod role;

#[cfg(feature = "ndarray")]
mod arrays;
mod cell_choices;
mod cell_exchanges;
mod cells;
mod collectives;
mod communicators;
mod equivalence;
mod file_agreement;
mod file_faults;
mod file_hints;
mod file_kills;
mod file_locks;
mod file_scopes;
mod file_space;
mod file_ways;
mod files;
mod flow;
mod halo;
mod heap;
mod intercommunicators;
mod kills;
mod lifecycle;
mod matching;
mod messages;
mod nonblocking_collectives;
mod partitions;
mod private;
mod private_windows;
mod processes;
mod ranks;
mod region;
mod scopes;
mod shared_memory;
mod short_memory;
mod starters;
mod tune_file;
mod typed_collectives;
mod types_checked;
mod user_functions;
mod windows;

/// Turns the end of memory into errors (`scopes.rs`, `short_memory.rs`).
#[global_allocator]
static ALLOCATOR: typepack::ReserveAllocator = typepack::ReserveAllocator;
