//! What all clones of a communicator share: its contexts, its peers, what other rooms keep with it, and its bonds with
//! other worlds.
//!
//! `mod.rs` reads the fields. A communicator with ranks of other worlds (spawned or connected processes) binds these
//! worlds from its construction until its last clone is dropped, or until `pending.rs` has disconnected it
//! (`endpoint/progress/bonds.rs` counts the bonds).

use super::peers::Peers;
use super::{Communicator, Group};
use crate::endpoint::call;
use crate::endpoint::progress::Endpoint;
use crate::topo::Topology;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// A communicator that may have been freed.
#[derive(Debug)]
pub(crate) struct WeakCommunicator(pub(super) Weak<Shared>);

impl WeakCommunicator {
    /// Returns the communicator, if it has not been freed.
    pub fn upgrade(&self) -> Option<Communicator> {
        self.0.upgrade().map(|shared| Communicator { shared })
    }
}

/// What all clones of a communicator share.
pub(super) struct Shared {
    pub(super) endpoint: Arc<Endpoint>,
    /// The context of the user's messages. A context is the number of a message space; the next numbers are
    /// the contexts of the other message spaces of this communicator.
    pub(super) context: u64,
    /// The ranks to which a call may send and from which it may receive.
    pub(super) peers: Peers,
    /// If this is an intercommunicator: the communicator of the local group.
    pub(super) local: Option<Communicator>,
    /// The number of collective calls so far. The tag of a call's messages is derived from the number
    /// before the call. All ranks make the same calls in the same order, so they get the same tags.
    pub(super) collectives: AtomicU32,
    /// The number of persistent collective operations that have been prepared so far. The tags of their
    /// messages are derived from this number in the same way.
    pub(super) persistent: AtomicU32,
    /// The topology, if the communicator has one. It is set before the program gets the communicator.
    pub(super) topology: OnceLock<Topology>,
    /// Whether the communicator has a name.
    pub(super) named: AtomicBool,
    /// The other worlds to which ranks of the communicator belong: the first slot of each.
    pub(super) worlds: Vec<usize>,
    /// Whether the communicator connects no worlds any more (`disconnect`).
    pub(super) disconnected: AtomicBool,
    /// What `coll/` keeps with the communicator. The type belongs to that folder, which comes after this one.
    pub(super) attached: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Shared {
    pub(super) fn new(endpoint: Arc<Endpoint>, context: u64, peers: Peers) -> Arc<Self> {
        Self::with(endpoint, context, peers, None)
    }

    pub(super) fn with(
        endpoint: Arc<Endpoint>,
        context: u64,
        peers: Peers,
        local: Option<Communicator>,
    ) -> Arc<Self> {
        let (collectives, persistent) = (AtomicU32::new(0), AtomicU32::new(0));
        let (topology, attached) = (OnceLock::new(), OnceLock::new());
        let worlds = match endpoint.processes() == endpoint.world().len() {
            true => Vec::new(),
            false => {
                let groups = [Some(peers.local()), peers.remote()].into_iter().flatten();
                endpoint.other_worlds(groups.flat_map(Group::slots))
            }
        };
        endpoint.bind(&worlds);
        let disconnected = AtomicBool::new(false);
        Arc::new(Self {
            worlds,
            disconnected,
            endpoint,
            context,
            peers,
            local,
            collectives,
            persistent,
            topology,
            named: AtomicBool::new(false),
            attached,
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if *self.named.get_mut() {
            call::name_communicator(self.context, &[]);
        }
        self.unbind();
    }
}

impl Shared {
    /// Ends the bonds with other worlds that the communicator has made.
    pub(super) fn unbind(&self) {
        if !self.disconnected.swap(true, Ordering::AcqRel) {
            self.endpoint.unbind(&self.worlds);
        }
    }
}
