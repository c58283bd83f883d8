//! Communicators whose ranks form a graph that every rank knows (MPI-5.0 section 8.5.3).

use super::compare::Argument;
use crate::comm::Communicator;
use crate::topo::{Graph, Shape};
use crate::{ErrorKind, Result};

impl Communicator {
    /// Makes a communicator of the ranks of a graph, which keep their numbers. Returns `None` to a rank that
    /// the graph does not have. All ranks pass the same graph. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if the graph has more ranks than the communicator, `ErrorKind::Comm` if
    /// this is an intercommunicator, `ErrorKind::Other` if another rank found an error in its arguments, and
    /// `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Graph_create")]
    pub fn graph_create(&self, graph: Graph) -> Result<Option<Self>> {
        let place = self.graph_map(&graph).inspect_err(|_| self.fail_creation())?;
        let entries = |list: &[usize]| list.iter().map(|&entry| entry as i64).collect::<Vec<_>>();
        self.compare_arguments([
            Argument::new("index", ErrorKind::Argument, entries(graph.index())),
            Argument::new("edges", ErrorKind::Argument, entries(graph.edges())),
        ])?;
        let same = graph.size() == self.size();
        self.shaped(Shape::Graph(graph), place, same)
    }

    /// Returns this rank's number in the communicator that [`graph_create`](Self::graph_create) makes, or
    /// `None` if this rank is not in it. Local.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if the graph has more ranks than the communicator, and `ErrorKind::Comm` if
    /// this is an intercommunicator.
    #[doc(alias = "MPI_Graph_map")]
    pub fn graph_map(&self, graph: &Graph) -> Result<Option<usize>> {
        self.check_room(graph.size(), ErrorKind::Argument, "nnodes")?;
        Ok((self.rank() < graph.size()).then_some(self.rank()))
    }
}
