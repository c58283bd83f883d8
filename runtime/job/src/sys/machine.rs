//! The machine's name and the make of its processor.

/// Returns the network name of this machine.
#[doc(alias = "MPI_Get_processor_name")]
pub fn host_name() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}

/// Returns whether the processor has an AMD design. Some settings differ between makes, as measurements have
/// shown.
pub fn is_amd() -> bool {
    // Only AMD's designs have this extension.
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("sse4a");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}
