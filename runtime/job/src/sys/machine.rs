//! The machine's name and the vendor of its processor.

/// Returns the network name of this machine.
#[doc(alias = "MPI_Get_processor_name")]
pub fn host_name() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}

/// Returns true if the processor is an AMD design. Measurements have shown that the best values of some
/// settings differ between vendors.
pub fn is_amd() -> bool {
    // Only processors of AMD's designs have the instruction set extension SSE4a.
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("sse4a");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}
