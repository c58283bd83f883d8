//! The machine's name, and what tells it from other machines.

use std::fs;

/// Returns the network name of this machine.
#[doc(alias = "MPI_Get_processor_name")]
pub fn host_name() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}

/// Returns the number that the kernel of this machine drew when it started. The text is empty if the system does not tell it.
pub fn boot_number() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Returns the number of the namespace of the kind `kind` (`net`, `pid`) in which this process runs. The text is empty if the
/// system does not tell it.
pub fn namespace(kind: &str) -> String {
    let link = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}
