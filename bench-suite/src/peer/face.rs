//! typepack's own C face as a competitor in this process: `MPI_Pack` and `MPI_Unpack` of its
//! library, loaded at run time.
//!
//! Beside `child.rs`, which does the same for peers in a process of their own: the cost of the face
//! is a few nanoseconds, to be told apart only next to the Rust call. Used by `../face.rs`.

use super::competitor::Packer;
use super::library::Mpi;
use crate::competitor::Competitor;
use crate::layout::Layout;
use std::path::Path;
use typepack_engine::kernel::Direction;

/// Name of the C face in rows.
pub const C: &str = "c";

/// The loaded library, initialised; it stays for the rest of the process.
#[derive(Clone, Copy)]
pub struct Face(&'static Mpi);

impl Face {
    /// Loads `libmpi_abi.so.1` from `path`. Of this library only: two MPIs cannot share a process.
    ///
    /// # Errors
    ///
    /// One line: no such library, another one, or an error code.
    pub fn open(path: &Path) -> Result<Self, String> {
        let mpi = Mpi::open(path)?;
        let version = mpi.version()?;
        if !version.starts_with("typepack") {
            return Err(format!("{}: is {version}, not typepack", path.display()));
        }
        Ok(Self(Box::leak(Box::new(mpi))))
    }

    /// The face with the datatype of `layout`.
    ///
    /// # Errors
    ///
    /// One line: a call that failed.
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
