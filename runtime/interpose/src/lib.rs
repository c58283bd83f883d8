//! `libtypepack_interpose.so`: typepack's pack kernels in front of another MPI library.
//!
//! The library is loaded before an MPI library with the MPI 5 standard ABI (`LD_PRELOAD`), which is called the
//! *host* here. It takes over the packing of datatypes that are not contiguous, in `MPI_Pack` and its relatives
//! and in messages, and hands everything else on to the host. The modules, in the order of their layers:
//!
//! 1. `say.rs`, `settings.rs`: lines on standard error, variables of the environment.
//! 2. `host/`: finds the functions of the host. `entry.rs`: whether the library takes part; panics.
//! 3. `report.rs`: counts, and the table of `TYPEPACK_REPORT`. `pool.rs`: buffers for packed data.
//! 4. `types/`: the layouts of the host's committed types; for each layout, the choice between the host's packing
//!    and ours.
//! 5. `pack.rs`: the packing calls. `transfer.rs`: the packed buffer of one send or receive.
//! 6. `communicator.rs`: the communicators whose ranks all take part. `side.rs`: the packed buffer of one side of a
//!    collective call.
//! 7. `pending.rs`: what must happen when a request of the host completes. `message/`: sends and receives. `coll/`:
//!    collective calls. `request/`: the calls that start, complete and free requests.
//! 8. `agreement.rs`: what all ranks agree on at the end of init. `lifecycle.rs`: init and finalize. `attach.rs`: the
//!    functions that a shim for a host without the ABI calls. `exports.rs`: the wrappers, made by `build.rs` from
//!    `functions.csv`.
//!
//! Invariants: a call that this library cannot do goes to the host with unchanged arguments. A message that this
//! library packs is an ordinary message of type `MPI_PACKED` for the host, so the rank at its other end needs
//! no typepack. A handle that the program sees is always a handle of the host.

mod say;
mod settings;

mod entry;
mod host;

mod pool;
mod report;

mod types;

mod pack;
mod transfer;

mod communicator;
mod side;

mod pending;

mod coll;
mod message;
mod request;

mod agreement;
mod lifecycle;

mod attach;

mod exports;
