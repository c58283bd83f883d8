//! Predicts how much the faster packing of a 3-D halo gains on many ranks: the calculator `typepack-bench model`.
//!
//! The flow: `geometry.rs` (the halo, the grid of ranks, the faces that leave a host) and `rates.rs` (the times of
//! packing, given or measured) -> `predict.rs` (the times of an exchange and of an iteration, and where packing stops
//! mattering) -> `report.rs` (the text). `measure.rs` measures the rates: it runs `model/halo.c` under a host library,
//! alone and behind the interposer. `compare.rs` reads what the same program has measured between two hosts, and sets
//! predictions beside it.
//! `command.rs` has the arguments.
//!
//! # The model
//!
//! It is LogGP (A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman: LogGP: Incorporating Long Messages into the
//! LogP Model, SPAA 1995), with the packing of a message as a part of its overhead. L is the latency, o the overhead of
//! one message at one end, G the time per byte, and LogP's gap g between short messages is taken to be no longer than
//! o. All ranks do the same at the same time, and each one sends six messages, i = 1 ... 6, of
//! `k = width * edge^2 * element * fields` bytes. Nothing overlaps (`--overlap none`):
//!
//! ```text
//! T = sum(o + pack_i) + sum over crossing i (k G) + L + sum(o + unpack_i)
//! ```
//!
//! The network moves a message while the rank packs the next one, and the rank unpacks messages while others
//! are still on their way (`--overlap faces`):
//!
//! ```text
//! cpu_i     = cpu_(i-1) + o + pack_i                    the rank, which is one thread
//! wire_i    = max(wire_(i-1), cpu_i) + k G              the network, one message after the other
//! arrival_i = wire_i + L
//! end_i     = max(end_(i-1), arrival_i) + o + unpack_i  in the order of arrival, with end_0 = cpu_6
//! T         = end_6
//! ```
//!
//! A message to a rank on the same host does not cross the network. The CPU copies it: its time is that of packing plus
//! `k / local bandwidth`, and `local latency` later it has arrived. The ranks of a host form a block that is as near to
//! a cube as the number permits, and share the host's bandwidth evenly. The predicted rank is the one with the most
//! crossing faces: for it, G is the time in which the host moves the bytes of all its ranks, divided by the bytes of
//! the rank.
//!
//! A library need not pack a message as its `MPI_Pack` does. MPICH 5.0.2 over TCP takes several times as long. So
//! `--messages` takes the times of packing from messages of single faces between two hosts (`compare.rs`).
//!
//! An iteration takes `compute + T + reductions * ceil(log2(ranks)) * (L + 2 o)`. The last term is recursive doubling
//! (R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, 2005) of a few
//! bytes. Nothing else depends on the number of ranks while the cube of a rank stays the same: the model knows neither
//! contention inside the network nor ranks that are late. Both make the share of packing smaller, so the gain is an
//! upper estimate.
//!
//! Sending a message in pieces while it is packed could hide more. No schedule is shorter than the CPU's work, or than
//! the network's work and a latency, so `max(cpu, wire + L)` bounds what pieces could reach.

pub mod command;
mod compare;
mod geometry;
mod measure;
mod predict;
mod rates;
mod report;
