//! Turns a peer into a competitor, which `prepare.rs` verifies and `measure.rs` times like all others.
//!
//! For a peer, the code runs in the peer's child process; for typepack's own C library, it runs in the
//! main process (`face.rs`). `build.rs` makes the datatype.

use super::build::Maker;
use super::library::{Handle, Mpi};
use crate::competitor::Competitor;
use crate::layout::Layout;
use crate::recipe::Recipe;
use crate::storm::USES;
use std::ffi::c_int;
use typepack_engine::kernel::Direction;

/// A competitor that calls `MPI_Pack` and `MPI_Unpack` for one layout.
pub(super) struct Packer {
    mpi: &'static Mpi,
    maker: Maker,
    handle: Handle,
    count: c_int,
    /// The number of packed bytes of the layout. It is also the argument `outsize` of `MPI_Pack`, because
    /// the measured MPIs pack exactly this many bytes.
    payload: c_int,
}

impl Packer {
    /// Makes the datatype of `layout` with the library `mpi`.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the type has large counts (`MPI_Count`), if the library lacks one of its
    /// named types, if a call fails or is not supported, or if a number of the layout does not fit in an `int`.
    pub(super) fn new(mpi: &'static Mpi, layout: &Layout) -> Result<Self, String> {
        let int = |value: u64| {
            c_int::try_from(value).map_err(|_| {
                format!("{value} does not fit in an int, which this library's calls take")
            })
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
        let (room, least) = (packed.len(), self.payload as usize);
        assert!(least <= room, "the packed form has {room} bytes, but the layout needs {least}");
        let mut position = 0;
        // SAFETY: `mpi.pack` has the signature of `MPI_Pack`. `handle` is a committed datatype of this
        // library. `prepare.rs` has allocated `memory` for `count` elements of the datatype. `packed` has
        // at least `payload` bytes (the assertion above). `position` is a local variable, and `mpi.world` is
        // a communicator of this library.
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
        assert!(
            code == 0 && position == self.payload,
            "MPI_Pack returned {code} at byte {position} of {}",
            self.payload
        );
    }

    fn unpack_as(&self, handle: Handle, packed: &[u8], memory: &mut [u8]) {
        let (room, least) = (packed.len(), self.payload as usize);
        assert!(least <= room, "the packed form has {room} bytes, but the layout needs {least}");
        let mut position = 0;
        // SAFETY: `mpi.unpack` has the signature of `MPI_Unpack`. `handle` is a committed datatype of this
        // library. `packed` has at least `payload` bytes (the assertion above). `prepare.rs` has allocated
        // `memory`, which is borrowed mutably, for `count` elements of the datatype. `position` is a local
        // variable of this function, and `mpi.world` is the library's `MPI_COMM_WORLD`.
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
        assert!(
            code == 0 && position == self.payload,
            "MPI_Unpack returned {code} at byte {position} of {}",
            self.payload
        );
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        // The result is ignored because `drop` cannot report an error. If the call fails, the process of a
        // benchmark leaks a type.
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

/// A peer in a storm (`../storm.rs`): each call makes the type, uses it [`USES`] times, and frees it.
pub(super) struct Storm(pub(super) Packer);

impl Competitor for Storm {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn executor(&self, _: Direction) -> String {
        "storm".to_owned()
    }

    fn pack(&self, memory: &[u8], packed: &mut [u8]) {
        let handle = self.0.maker.make().expect("the MPI must make the type as it did before");
        (0..USES).for_each(|_| self.0.pack_as(handle, memory, packed));
        self.0.maker.free(handle).expect("the MPI must free the type that it has packed with");
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        let handle = self.0.maker.make().expect("the MPI must make the type as it did before");
        (0..USES).for_each(|_| self.0.unpack_as(handle, packed, memory));
        self.0.maker.free(handle).expect("the MPI must free the type that it has unpacked with");
    }
}
