//! The neighbours of a rank in a communicator with a topology.

use crate::host::Next;
use std::ffi::c_int;
use typepack_capi_datatype::{abi, raw};

/// For each neighbour, in the order of neighbour calls, whether the neighbour exists: an edge of a grid has none.
pub struct Neighbours {
    /// The neighbours from which the rank receives.
    pub sources: Vec<bool>,
    /// The neighbours to which the rank sends.
    pub targets: Vec<bool>,
}

impl Neighbours {
    /// Returns the neighbours; `None` if the communicator has no topology, which is an error of the program.
    pub fn of(next: &Next, comm: raw::Comm) -> Option<Self> {
        let ok = |code: c_int| (code == abi::SUCCESS).then_some(());
        let mut topology = 0;
        // SAFETY: all results are writable, and the communicator is valid: its mark was found.
        unsafe {
            ok(next.PMPI_Topo_test(comm, &mut topology))?;
            let (mut sources, mut targets, mut weighted) = (0, 0, 0);
            match topology {
                abi::CART => {
                    let mut dimensions = 0;
                    ok(next.PMPI_Cartdim_get(comm, &mut dimensions))?;
                    let mut there = Vec::new();
                    for dimension in 0..dimensions {
                        let (mut below, mut above) = (0, 0);
                        ok(next.PMPI_Cart_shift(comm, dimension, 1, &mut below, &mut above))?;
                        there.extend([below != abi::PROC_NULL, above != abi::PROC_NULL]);
                    }
                    return Some(Self { sources: there.clone(), targets: there });
                }
                abi::GRAPH => {
                    let mut rank = 0;
                    ok(next.PMPI_Comm_rank(comm, &mut rank))?;
                    ok(next.PMPI_Graph_neighbors_count(comm, rank, &mut sources))?;
                    targets = sources;
                }
                abi::DIST_GRAPH => {
                    let counts = (&mut sources, &mut targets, &mut weighted);
                    ok(next.PMPI_Dist_graph_neighbors_count(comm, counts.0, counts.1, counts.2))?;
                }
                _ => return None,
            }
            let all = |count: c_int| vec![true; usize::try_from(count).unwrap_or(0)];
            Some(Self { sources: all(sources), targets: all(targets) })
        }
    }
}
