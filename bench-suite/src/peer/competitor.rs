//! A peer as a competitor like all others: verified by `prepare.rs`, timed by `measure.rs`.
//!
//! Runs in the child process; `build.rs` made its datatype.

use super::build::Maker;
use super::library::{Handle, Mpi};
use crate::competitor::Competitor;
use crate::layout::Layout;
use crate::recipe::Recipe;
use crate::storm::USES;
use std::ffi::c_int;
use typepack_engine::kernel::Direction;

/// `MPI_Pack` and `MPI_Unpack` of one layout.
pub(super) struct Packer {
    mpi: &'static Mpi,
    maker: Maker,
    handle: Handle,
    count: c_int,
    /// `MPI_Pack`'s outsize; what it may write is the layout's payload in every MPI here.
    payload: c_int,
}

impl Packer {
    /// Makes the layout's datatype.
    ///
    /// # Errors
    ///
    /// One line: a call that failed, or numbers that `int` cannot hold.
    pub(super) fn new(mpi: &'static Mpi, layout: &Layout) -> Result<Self, String> {
        let int = |value: u64| {
            c_int::try_from(value).map_err(|_| format!("{value} does not fit the calls with int"))
        };
        let maker = Maker::new(mpi, Recipe::of(&layout.datatype)?)?;
        Ok(Self {
            count: int(layout.count)?,
            payload: int(layout.payload)?,
            handle: maker.make()?,
            maker,
            mpi,
        })
    }

    fn pack_as(&self, handle: Handle, memory: &[u8], packed: &mut [u8]) {
        assert!(self.payload as usize <= packed.len(), "the buffers were made for this layout");
        let mut position = 0;
        // SAFETY: the datatype is committed and of this library; `memory` holds `count` elements of
        // it, and `packed` the payload, as `prepare.rs` allocates them.
        let code = unsafe {
            (self.mpi.pack)(
                memory.as_ptr().cast(),
                self.count,
                handle,
                packed.as_mut_ptr().cast(),
                self.payload,
                &raw mut position,
                self.mpi.world,
            )
        };
        assert!(code == 0 && position == self.payload, "MPI_Pack returned {code} at {position}");
    }

    fn unpack_as(&self, handle: Handle, packed: &[u8], memory: &mut [u8]) {
        assert!(self.payload as usize <= packed.len(), "the buffers were made for this layout");
        let mut position = 0;
        // SAFETY: as in `pack_as`.
        let code = unsafe {
            (self.mpi.unpack)(
                packed.as_ptr().cast(),
                self.payload,
                &raw mut position,
                memory.as_mut_ptr().cast(),
                self.count,
                handle,
                self.mpi.world,
            )
        };
        assert!(code == 0 && position == self.payload, "MPI_Unpack returned {code} at {position}");
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        // A failure leaks a type of a benchmark's child; there is nobody to tell.
        let _ = self.maker.free(self.handle);
    }
}

impl Competitor for Packer {
    fn name(&self) -> &'static str {
        "peer"
    }

    fn executor(&self, direction: Direction) -> String {
        match direction {
            Direction::Pack => "MPI_Pack".to_owned(),
            Direction::Unpack => "MPI_Unpack".to_owned(),
        }
    }

    fn pack(&self, memory: &[u8], packed: &mut [u8]) {
        self.pack_as(self.handle, memory, packed);
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        self.unpack_as(self.handle, packed, memory);
    }
}

/// The peer in a storm (`../storm.rs`): makes the type, uses it ten times, frees it.
pub(super) struct Storm(pub(super) Packer);

impl Competitor for Storm {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn executor(&self, _: Direction) -> String {
        "storm".to_owned()
    }

    fn pack(&self, memory: &[u8], packed: &mut [u8]) {
        let handle = self.0.maker.make().expect("made before");
        (0..USES).for_each(|_| self.0.pack_as(handle, memory, packed));
        self.0.maker.free(handle).expect("a type of this library");
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        let handle = self.0.maker.make().expect("made before");
        (0..USES).for_each(|_| self.0.unpack_as(handle, packed, memory));
        self.0.maker.free(handle).expect("a type of this library");
    }
}
