//! The calls about intercommunicators (MPI-5.0 section 7.6): `MPI_Intercomm_create`, `MPI_Intercomm_merge`.
//!
//! `mod.rs` has the calls that query the remote group. All other calls take intercommunicators like
//! intracommunicators.

use super::create::{arguments, hand_out};
use super::find;
use crate::abi;
use crate::argument::Output;
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::c_int;

/// Converts the argument for a leader. The runtime checks later that the rank is less than the number of ranks.
///
/// # Errors
/// Returns `MPI_ERR_RANK` if the rank is negative.
pub(super) fn leader(rank: c_int, argument: &'static str) -> Result<usize> {
    usize::try_from(rank).map_err(|_| {
        Failure::new(
            abi::ERR_RANK,
            argument,
            format!("{rank} is negative; a rank must be 0 or more"),
        )
    })
}

/// `MPI_Intercomm_create`. Only the local leader uses the peer communicator and the remote leader. If they are wrong,
/// the leader tells the other ranks of its group, so that they do not wait.
pub fn create(
    local_comm: raw::Comm,
    local_leader: c_int,
    peer_comm: raw::Comm,
    remote_leader: c_int,
    tag: c_int,
    newintercomm: Output<raw::Comm>,
) -> Result {
    let parent = find(local_comm)?;
    let local = arguments(&parent, || leader(local_leader, "local_leader"))?;
    let communicator = parent.communicator();
    let mut bridge = None;
    if communicator.rank() == local {
        bridge = Some(
            find(peer_comm).and_then(|peer| Ok((peer, leader(remote_leader, "remote_leader")?))),
        );
    }
    let other = match &bridge {
        Some(Ok((peer, rank))) => Some((peer.communicator(), *rank)),
        _ => None,
    };
    let out = newintercomm.required("newintercomm").inspect_err(|_| {
        // The C caller gets the error about `newintercomm`. The error of the call below is its consequence.
        let _second = communicator.fail_intercommunicator(local, other, tag);
    })?;
    let made = communicator.intercommunicator(local, other, tag);
    if let Some(Err(failure)) = bridge {
        return Err(failure);
    }
    hand_out(&parent, Some(made?), out)
}

/// `MPI_Intercomm_merge`.
pub fn merge(intercomm: raw::Comm, high: c_int, newintracomm: Output<raw::Comm>) -> Result {
    let parent = find(intercomm)?;
    let out = arguments(&parent, || Ok(newintracomm.required("newintracomm")?))?;
    hand_out(&parent, Some(parent.communicator().merge(high != 0)?), out)
}
