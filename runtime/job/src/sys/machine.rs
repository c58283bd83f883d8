//! The machine's name and the maker of its processor.

/// Returns the network name of this machine.
#[doc(alias = "MPI_Get_processor_name")]
pub fn host_name() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}

/// Returns true if the processor has a design by AMD. Measurements have shown that some settings should
/// differ between makers.
pub fn is_amd() -> bool {
    // Only processors with AMD's design have this instruction set extension.
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("sse4a");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}
