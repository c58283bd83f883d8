//! The machine's name.

/// Returns the network name of this machine.
#[doc(alias = "MPI_Get_processor_name")]
pub fn host_name() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}
