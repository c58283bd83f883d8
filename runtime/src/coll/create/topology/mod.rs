//! Makes communicators with topologies (MPI-5.0 section 8.5).
//!
//! `topo/` has the topologies. `cartesian.rs` has the grids of C programs, and [`Cartesian`], the grid of Rust
//! programs. `graph.rs` has graphs, and `distributed.rs` distributed graphs. `compare.rs` compares the arguments of all
//! ranks if `TYPEPACK_CHECK_TYPES` is set.

mod cartesian;
mod compare;
mod distributed;
mod graph;

pub use cartesian::Cartesian;

use crate::comm::Communicator;
use crate::topo::{Shape, Topology};
use crate::{Error, ErrorKind, Result};

impl Communicator {
    /// Makes a communicator with a topology. `place` is this rank's number in the new communicator, or `None`
    /// if this rank is not in it. If `same` is true, all ranks are in the new communicator and keep their
    /// numbers. Collective.
    fn shaped(&self, shape: Shape, place: Option<usize>, same: bool) -> Result<Option<Self>> {
        if same {
            let topology =
                Topology::new(shape, self.rank()).inspect_err(|_| self.fail_creation())?;
            return self.dup_with(topology).map(Some);
        }
        // A number of ranks fits in `i32`, because a job has at most 4096 ranks.
        let made = self.split(place.map(|_| 0), place.unwrap_or_default() as i32)?;
        made.map(|made| {
            let rank = made.rank();
            made.with_topology(Topology::new(shape, rank)?)
        })
        .transpose()
    }

    /// Checks that a topology does not have more ranks than the communicator, and that this is an
    /// intracommunicator.
    fn check_room(&self, ranks: usize, kind: ErrorKind, argument: &'static str) -> Result<()> {
        self.check_intra("comm")?;
        if ranks <= self.size() {
            return Ok(());
        }
        let detail =
            format!("the topology has {ranks} ranks; the communicator has only {}", self.size());
        Err(Error::new(kind, argument, detail))
    }
}
