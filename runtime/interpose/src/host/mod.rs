//! The host: the MPI library behind this one.
//!
//! `symbols.rs` asks the dynamic linker for addresses. [`next`] has the functions that are next in line: those of
//! another tool that is loaded between this library and the host, or those of the host. This library calls the
//! function that the program called by its own name, so that other tools see the call, and all functions that the
//! program did not call by their names that begin with `PMPI_`. [`profiled`] has the functions for calls that the
//! program or a tool made by such a name. If a shim has opened this library, the functions are those of the shim.

mod symbols;

pub use symbols::{Find, has_devices, version};

use crate::say::say;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use typepack_capi_datatype::{abi, raw};

include!(concat!(env!("OUT_DIR"), "/next.rs"));

static NEXT: OnceLock<Next> = OnceLock::new();

/// Makes a shim the place in which this library looks up the functions of the host. Returns false, and changes nothing,
/// if there is a shim already or if this library has looked up a function before.
pub fn set_shim(find: Find) -> bool {
    NEXT.get().is_none() && symbols::SHIM.set(find).is_ok()
}

/// Returns the functions of the host. The first call looks them up.
#[inline]
pub fn next() -> &'static Next {
    NEXT.get_or_init(|| {
        let finder = symbols::Finder::new();
        // SAFETY: `Finder::find` returns null or the address of the symbol in an MPI library, a tool or a shim.
        // Programs are linked by these names alone, so each library defines them as its `mpi.h` declares them. If its
        // ABI is another one, this library only passes on the registers that it was called with (`lifecycle.rs`).
        unsafe { Next::resolve(|name| finder.find(name)) }
    })
}

/// Returns the functions of the host for a call that the program made by a name that begins with `PMPI_`. In this
/// table, `MPI_X` is the host's `PMPI_X`, so that the call passes by the same tools as without this library.
pub fn profiled() -> &'static Next {
    static PROFILED: OnceLock<Next> = OnceLock::new();
    PROFILED.get_or_init(|| {
        let finder = symbols::Finder::new();
        let find = |name: &CStr| match name.to_bytes().starts_with(b"MPI_") {
            true => finder.find(&symbols::profiled(name)),
            false => finder.find(name),
        };
        // SAFETY: `Finder::find` returns null or the address of the symbol in an MPI library or a tool. `PMPI_X` has
        // the type of `MPI_X` in every MPI library.
        unsafe { Next::resolve(find) }
    })
}

impl Next {
    /// Returns true if the functions were found by which ranks agree whether they take part.
    pub fn can_agree(&self) -> bool {
        self.PMPI_Abi_get_version.is_some()
            && self.PMPI_Comm_size.is_some()
            && self.PMPI_Comm_rank.is_some()
            && self.PMPI_Comm_get_parent.is_some()
            && self.PMPI_Comm_group.is_some()
            && self.PMPI_Comm_create_group.is_some()
            && self.PMPI_Group_free.is_some()
            && self.PMPI_Allreduce.is_some()
            && self.PMPI_Comm_free.is_some()
    }
}

/// Returns true if another copy of this library is next in line.
pub fn is_doubled() -> bool {
    symbols::is_doubled()
}

/// Reports that the program called a function that no library behind this one has.
#[cold]
fn absent(name: &'static str) -> c_int {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        say(&format!("{name} was called, but no MPI library is loaded that has it"));
    }
    abi::ERR_UNSUPPORTED_OPERATION
}
