//! The layout of a committed type: our kernels for the type, or the host's type alone.
//!
//! A type that this library could not rebuild has a layout without kernels if all ranks take part. Its messages may
//! come from a rank that packed them, so they are received into a packed buffer, and the host unpacks the buffer.

use super::choice::{self, Choices};
use crate::entry::is_agreed;
use crate::host::Next;
use std::ffi::c_void;
use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use typepack_capi_datatype::buffer::memory;
use typepack_capi_datatype::{abi, raw};
use typepack_engine::iov::Iov;
use typepack_engine::{Elements, Plan};

/// From how many bytes of an average block on a message goes to the host. A message of ours is copied once more than
/// one that the host sends out of the program's memory, and long blocks leave nothing to gain by packing.
///
/// Time of the host alone over that of the host behind typepack, if typepack packs (`typepack-bench interpose`):
///
/// | host, machine, CPUs | 512 bytes | 1 KiB | 2 KiB | 4 KiB |
/// |---|---|---|---|---|
/// | MPICH, Zen 4 | 1.5 to 3.1 | | | 0.50 to 0.53 |
/// | MPICH, Zen 4, another day, near | 1.9 | 1.5 to 3.3 | 1.0 to 1.8 | 0.87 to 1.3 |
/// | the same, not near | 1.3 to 1.9 | 0.91 to 1.7 | 0.55 to 0.82 | 0.53 to 0.65 |
/// | Intel MPI, the same day, near | 0.98 to 1.2 | 1.0 to 1.3 | 0.79 to 1.1 | 0.84 to 1.1 |
///
/// The choosers cannot find this border: they time packing alone, and `MPI_Pack` of MPICH takes other paths than its
/// messages.
const LONG: u64 = 2048;

/// The lowest address that memory of a program can have.
const PAGE: i64 = 4096;

/// The layout of a committed type that is not contiguous.
pub struct Layout {
    /// The plan with our kernels; `None` if only the host can pack the type.
    plan: Option<Plan>,
    /// The bounds and the packed size of one element, in bytes.
    shape: Shape,
    /// True if a block, which is a run of memory, has [`LONG`] bytes or more on average.
    long: bool,
    /// The common size of all basic elements, if they have one and it is 1, 2, 4 or 8.
    pub unit: Option<i64>,
    /// The choices between the host's packing and ours, from the first one on.
    choices: OnceLock<Arc<Choices>>,
    /// For packing and for unpacking. 0: not compared yet; 1: the host's external32 form has the same bytes; 2: it has
    /// not.
    pub external: [AtomicU8; 2],
    /// A type of the host with the same layout, while the program has its type and the twin was needed.
    twin: Mutex<Option<Arc<Twin>>>,
    /// A contiguous type of the host for packed elements, while the program has its type and the flat type was needed.
    flat: Mutex<Option<Arc<Twin>>>,
    /// The same layout without kernels, for a process that has loaded a device runtime.
    plain: OnceLock<Option<Arc<Layout>>>,
    next: &'static Next,
}

/// What the host says about one element, in bytes.
struct Shape {
    size: u64,
    extent: i64,
    true_lb: i64,
}

impl Layout {
    /// The layout of a plan. All basic elements have `unit` bytes, if they have one size.
    pub fn new(next: &'static Next, plan: Plan, unit: Option<i64>) -> Self {
        let print = plan.footprint();
        let (extent, true_lb) = (print.extent, print.true_lb);
        let shape = Shape { size: plan.element_bytes(), extent, true_lb };
        let blocks = Iov::new(&plan).len(1).unwrap_or(u64::MAX);
        let long = shape.size / LONG >= blocks;
        Self { long, ..Self::with(next, Some(plan), shape, unit) }
    }

    /// The layout of a type that only the host can pack. Returns `None` if the host fails, and for a type without data.
    pub fn of_host(next: &'static Next, datatype: raw::Datatype) -> Option<Self> {
        let (mut size, mut lb, mut extent, mut true_lb, mut true_extent) = (0, 0, 0, 0, 0);
        // SAFETY: the results are writable. The host checks the handle.
        let codes = unsafe {
            [
                next.PMPI_Type_size_c(datatype, &mut size),
                next.PMPI_Type_get_extent_c(datatype, &mut lb, &mut extent),
                next.PMPI_Type_get_true_extent_c(datatype, &mut true_lb, &mut true_extent),
            ]
        };
        let size = u64::try_from(size).ok().filter(|&size| size > 0)?;
        if codes != [abi::SUCCESS; 3] {
            return None;
        }
        let layout = Self::with(next, None, Shape { size, extent, true_lb }, None);
        layout.twin(datatype)?;
        Some(layout)
    }

    fn with(next: &'static Next, plan: Option<Plan>, shape: Shape, unit: Option<i64>) -> Self {
        let external = [const { AtomicU8::new(0) }; 2];
        let (choices, plain) = (OnceLock::new(), OnceLock::new());
        let (twin, flat) = (Mutex::new(None), Mutex::new(None));
        Self { plan, shape, long: false, unit, choices, external, twin, flat, plain, next }
    }

    /// Returns whether the blocks are so long that a message goes to the host.
    pub fn is_long(&self) -> bool {
        self.long
    }

    /// Returns whether a receive must go through a packed buffer: the sender may have packed elements that the host
    /// does not unpack (`MIXED_MAX`).
    pub fn must_be_packed(&self) -> bool {
        self.unit.is_none() && is_agreed()
    }

    /// Returns the plan with our kernels; `None` if only the host can pack the type.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Returns the choices between the host's packing and ours, which equal types share.
    pub fn choices(&self) -> &Choices {
        let make = || self.plan.as_ref().map_or_else(|| Arc::new(Choices::new()), choice::of);
        self.choices.get_or_init(make)
    }

    /// Returns the packed size of one element in bytes.
    pub fn element_bytes(&self) -> u64 {
        self.shape.size
    }

    /// Returns the distance of two elements in bytes.
    pub fn extent(&self) -> i64 {
        self.shape.extent
    }

    /// Returns the packed size of `count` elements in bytes; `None` if it is no number of the ABI.
    pub fn packed_bytes(&self, count: u64) -> Option<u64> {
        let bytes = self.shape.size.checked_mul(count)?;
        i64::try_from(bytes).is_ok().then_some(bytes)
    }

    /// Returns whether `count` elements can lie at `buffer`. If not, the host raises its error.
    pub fn accepts(&self, buffer: *const c_void, count: u64) -> bool {
        match &self.plan {
            Some(plan) => memory(&Elements::new(buffer, plan, count), "").is_ok(),
            None => !buffer.is_null() || self.shape.true_lb >= PAGE,
        }
    }

    /// Returns this layout without kernels, for the same type.
    pub fn plain(&self, datatype: raw::Datatype) -> Option<Arc<Self>> {
        let make = || Self::of_host(self.next, datatype).map(Arc::new);
        self.plain.get_or_init(make).clone()
    }

    /// Returns a type of the host with this layout. The first call makes it from `datatype`, the program's type.
    /// Returns `None` if the host cannot make it.
    pub fn twin(&self, datatype: raw::Datatype) -> Option<Arc<Twin>> {
        let mut twin = self.twin.lock().unwrap_or_else(PoisonError::into_inner);
        if twin.is_none() {
            // `MPI_Type_dup` would call the program's functions that copy attributes. A contiguous type of one element
            // has the same layout and no attributes.
            // SAFETY: `datatype` is a valid type of the program, which uses it in the present call.
            *twin = unsafe { Twin::of(self.next, 1, datatype) }.map(Arc::new);
        }
        twin.clone()
    }

    /// Returns a contiguous type of the host with the packed size of one element. The first call makes it. Returns
    /// `None` if the host cannot make it.
    pub fn flat(&self) -> Option<Arc<Twin>> {
        let mut flat = self.flat.lock().unwrap_or_else(PoisonError::into_inner);
        if flat.is_none() {
            let size = i64::try_from(self.shape.size).ok()?;
            // SAFETY: the type is predefined.
            *flat = unsafe { Twin::of(self.next, size, raw::Datatype(abi::BYTE)) }.map(Arc::new);
        }
        flat.clone()
    }

    /// Forgets the types of the host that this layout has made. In most hosts, a type lives as long as a type that was
    /// made from it. So the program's type, to which an attribute of this library belongs, would never end if this
    /// library kept the twin.
    pub fn release(&self) {
        self.twin.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.flat.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Some(plain)) = self.plain.get() {
            plain.release();
        }
    }
}

/// A type of the host that this library has made, from a type of the program or from bytes. The program may free its
/// own type while an operation with the type is pending.
pub struct Twin(raw::Datatype);

impl Twin {
    /// Makes the type of `count` elements of `datatype`, one after another. Returns `None` if the host cannot make it.
    ///
    /// # Safety
    ///
    /// - `datatype` is a valid type.
    unsafe fn of(next: &Next, count: i64, datatype: raw::Datatype) -> Option<Self> {
        let mut made = raw::Datatype::NULL;
        // SAFETY: the type is valid (`# Safety`), and `made` is writable.
        let code = unsafe {
            match next.PMPI_Type_contiguous_c(count, datatype, &mut made) {
                abi::SUCCESS => next.PMPI_Type_commit(&mut made),
                code => code,
            }
        };
        (code == abi::SUCCESS).then_some(Self(made))
    }

    /// Returns the handle of the type.
    pub fn handle(&self) -> raw::Datatype {
        self.0
    }

    /// Packs `count` elements at `origin` with the host into the `size` bytes at `target`. Returns whether the host has
    /// filled all of them.
    ///
    /// # Safety
    ///
    /// - The elements are readable, and `target` has `size` bytes.
    pub unsafe fn pack(
        &self,
        next: &Next,
        (count, origin): (u64, *const u8),
        (target, size): (*mut u8, u64),
    ) -> bool {
        let (mut at, count, size) = (0, count as i64, size as i64);
        // SAFETY: the elements are readable, `target` has `size` bytes (`# Safety`), and `at` is writable.
        let code = unsafe {
            let own = raw::Comm(abi::COMM_SELF);
            next.PMPI_Pack_c(origin.cast(), count, self.0, target.cast(), size, &mut at, own)
        };
        code == abi::SUCCESS && at == size
    }

    /// Unpacks `count` elements with the host from the `size` bytes at `source` to `origin`. Returns whether the host
    /// has read all of them.
    ///
    /// # Safety
    ///
    /// - The elements are writable, and `source` has their packed bytes, which are `size` bytes.
    pub unsafe fn unpack(
        &self,
        next: &Next,
        (count, origin): (u64, *mut u8),
        (source, size): (*const u8, u64),
    ) -> bool {
        let (mut at, count, size) = (0, count as i64, size as i64);
        // SAFETY: the elements are writable, `source` has `size` bytes (`# Safety`), and `at` is writable.
        let code = unsafe {
            let own = raw::Comm(abi::COMM_SELF);
            next.PMPI_Unpack_c(source.cast(), size, &mut at, origin.cast(), count, self.0, own)
        };
        code == abi::SUCCESS && at == size
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        TWINS.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// Twins that nothing uses any more. The last user may be a thread that ends. Such a thread makes no MPI call of the
/// program, and may not be allowed to make one. So the twins wait here for a call of the program.
static TWINS: Mutex<Vec<raw::Datatype>> = Mutex::new(Vec::new());

/// Frees the twins that nothing uses any more. Only in a call of the program, between init and finalize.
pub fn free_twins(next: &Next) {
    let gone = std::mem::take(&mut *TWINS.lock().unwrap_or_else(PoisonError::into_inner));
    for mut twin in gone {
        // SAFETY: `twin` is a type that `Layout::twin` made, and nothing else knows it. MPI is initialised and not
        // finalized: the program makes a call.
        unsafe { next.PMPI_Type_free(&mut twin) };
    }
}
