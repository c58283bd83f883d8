//! typepack's own C face as a competitor in this process: `MPI_Pack` and `MPI_Unpack` of its
//! library, loaded at run time.
//!
//! `child.rs` does the same for peers in a process of their own. The C functions cost only a few
//! nanoseconds more than the Rust calls; this difference can be measured only if both run in one process.
//! `../face.rs` uses this file.

use super::competitor::Packer;
use super::library::Mpi;
use crate::competitor::Competitor;
use crate::layout::Layout;
use std::path::Path;
use typepack_engine::kernel::Direction;

/// The name of the C functions in rows.
pub const C: &str = "c";

/// The loaded and initialised library, which stays for the rest of the process.
#[derive(Clone, Copy)]
pub struct Face(&'static Mpi);

impl Face {
    /// Loads `libmpi_abi.so.1` from `path`. Only typepack's library is accepted, because two MPIs
    /// cannot share a process.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the library is missing, is not typepack's, or a call returns an error
    /// code.
    pub fn open(path: &Path) -> Result<Self, String> {
        let mpi = Mpi::open(path)?;
        let version = mpi.version()?;
        if !version.starts_with("typepack") {
            return Err(format!("{}: the library is {version}, not typepack", path.display()));
        }
        Ok(Self(Box::leak(Box::new(mpi))))
    }

    /// Returns a competitor that packs `layout` through the C functions.
    ///
    /// # Errors
    ///
    /// Returns one line with the call that failed.
    pub fn competitor(self, layout: &Layout) -> Result<Box<dyn Competitor>, String> {
        Ok(Box::new(Caller(Packer::new(self.0, layout)?)))
    }
}

struct Caller(Packer);

impl Competitor for Caller {
    fn name(&self) -> &'static str {
        C
    }

    fn executor(&self, direction: Direction) -> String {
        self.0.executor(direction)
    }

    fn pack(&self, memory: &[u8], packed: &mut [u8]) {
        self.0.pack(memory, packed);
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        self.0.unpack(packed, memory);
    }
}
