//! The machine's name, and its make.

/// The name of this machine in its network.
#[doc(alias = "MPI_Get_processor_name")]
pub fn host_name() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}

/// Whether the processor is one of AMD's (or of those who build their designs): for settings that
/// measurements have shown to differ between makes.
pub fn is_amd() -> bool {
    // Of all makes only these have the extension.
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("sse4a");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}
