//! Turns typepack's own C functions, `MPI_Pack` and `MPI_Unpack`, into a competitor in the main process.
//! Loads typepack's library at run time.
//!
//! Each peer runs in a process of its own (`child.rs`). The C functions of typepack run in the main
//! process, because their calls take only a few nanoseconds longer than the Rust calls. Such a small
//! difference can be measured only within one process. `../face.rs` uses this file.

use super::competitor::Packer;
use super::library::Mpi;
use crate::competitor::Competitor;
use crate::layout::Layout;
use std::path::Path;
use typepack_engine::kernel::Direction;

/// The name of this competitor in rows.
pub const C: &str = "c";

/// typepack's C library, loaded and initialised. It stays loaded for the rest of the process.
#[derive(Clone, Copy)]
pub struct Face(&'static Mpi);

impl Face {
    /// Loads `libmpi_abi.so.1` from `path`. Accepts only typepack's library, because two different MPIs
    /// cannot share a process.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the library is missing, if it is not typepack's, or if a call returns
    /// an error code.
    pub fn open(path: &Path) -> Result<Self, String> {
        let mpi = Mpi::open(path)?;
        let version = mpi.version()?;
        if !version.starts_with("typepack") {
            return Err(format!(
                "{}: the library is {version}; it must be typepack",
                path.display()
            ));
        }
        Ok(Self(Box::leak(Box::new(mpi))))
    }

    /// Returns a competitor that packs `layout` through the C functions.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the type has large counts (`MPI_Count`), if a call fails, or if a number of
    /// the layout does not fit in an `int`.
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
