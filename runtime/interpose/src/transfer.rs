//! The packed buffer of one send or of one receive.

use crate::entry::{class, is_agreed, is_mixed};
use crate::host::Next;
use crate::pool::Buffer;
use crate::report::{COUNTS, add};
use crate::types::choice::{Decision, Job, Way};
use crate::types::{Layout, find};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use typepack_capi_datatype::buffer::memory;
use typepack_capi_datatype::raw::Status;
use typepack_capi_datatype::{abi, raw};
use typepack_engine::{pack_raw, unpack_raw};

/// The type with which the host carries our buffers.
pub const PACKED: raw::Datatype = raw::Datatype(abi::PACKED);

/// How long a message may be whose basic elements have different sizes, in bytes, if its receiver may not be
/// interposed.
///
/// MPICH 5.0.2 cuts a contiguous message into pieces, wherever its elements end. If the receiver is not interposed
/// and its type is not contiguous, it unpacks piece by piece, and fails with `MPI_ERR_TYPE` where a piece ends within
/// a basic element. (`MPI_Sendrecv_replace` of MPICH fails in the same way without typepack.) Elements of 1, 2, 4 or
/// 8 bytes alone are never cut, because the lengths of the pieces are multiples of 8. So only short messages of other
/// types are packed.
const MIXED_MAX: u64 = 4 << 10;

/// The elements of a message in the memory of the program.
pub struct Elements {
    layout: Arc<Layout>,
    count: u64,
    /// The address of the elements.
    origin: *mut u8,
    /// The packed size of the elements.
    bytes: u64,
}

// SAFETY: the program lets the library access the memory at `origin` until the operation completes, from whatever
// thread it calls.
unsafe impl Send for Elements {}

impl Elements {
    /// Reads the arguments of a send or receive. Returns `None` if the host must do the call: if it does this type, and
    /// if an argument is wrong, so that the host raises its own error.
    #[inline(always)]
    pub fn new(buffer: *const c_void, count: i64, datatype: raw::Datatype) -> Option<Self> {
        Self::checked(buffer, count, find(datatype)?)
    }

    /// Does what [`new`](Self::new) does, for a type whose layout is known.
    pub fn checked(buffer: *const c_void, count: i64, layout: Arc<Layout>) -> Option<Self> {
        let count = u64::try_from(count).ok().filter(|&count| count > 0)?;
        memory(buffer, &layout.plan, count, "").ok()?;
        let bytes = layout.plan.packed_bytes(count).ok()?;
        Some(Self { layout, count, origin: buffer.cast::<u8>().cast_mut(), bytes })
    }

    /// Returns whether a receive must go through a packed buffer: the sender may have packed elements that the host
    /// does not unpack (`MIXED_MAX`).
    pub fn must_be_packed(&self) -> bool {
        self.layout.unit.is_none() && is_agreed()
    }

    /// Decides how the elements are packed or unpacked. Returns `None` if the message must go straight to the host.
    pub fn decide(&self, job: Job) -> Option<Decision> {
        let mut decision = self.layout.choices.decide(job, self.bytes);
        if job == Job::Unpack && self.must_be_packed() {
            decision = decision.or(Some(Decision::ours(job)));
        }
        if decision.is_none() {
            add(&COUNTS.passed, 1);
        }
        decision
    }

    /// Returns whether the elements may be sent as one run of packed bytes.
    fn may_be_packed(&self) -> bool {
        self.layout.unit.is_some() || self.bytes <= MIXED_MAX || !is_mixed()
    }

    /// Decides how the elements of a send are packed. Returns `None` if the message must go straight to the host.
    pub fn decide_send(&self) -> Option<Decision> {
        if self.may_be_packed() { self.decide(Job::Pack) } else { None }
    }

    /// Returns a buffer for the packed elements; `None` if there is none, so that the host must do the call.
    pub fn buffer(&self) -> Option<Buffer> {
        let buffer = if self.must_be_packed() {
            Buffer::beyond(self.bytes)
        } else {
            Buffer::new(self.bytes)
        };
        if buffer.is_none() {
            add(&COUNTS.passed, 1);
        }
        buffer
    }

    /// Returns the packed size of the elements in bytes.
    pub fn packed_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether the send side of a collective call is packed by our kernels.
    pub fn decide_collective(&self) -> bool {
        self.decide(Job::Pack).is_some()
    }

    /// Packs the elements into `buffer` from byte `offset` on.
    ///
    /// # Safety
    ///
    /// - The elements are readable.
    /// - The buffer has room for the packed elements at `offset`.
    pub unsafe fn pack_at(&self, buffer: &Buffer, offset: usize) {
        let target = buffer.address().wrapping_add(offset);
        // SAFETY: see `# Safety`. The buffer is memory of the pool, so it does not overlap the elements.
        unsafe { pack_raw(&self.layout.plan, self.count, self.origin, 0..self.bytes, target) };
        add(&COUNTS.ours, self.bytes);
    }

    /// Unpacks the elements from `buffer`, where their packed bytes begin at byte `offset`.
    ///
    /// # Safety
    ///
    /// - The elements are writable.
    /// - The buffer has the packed elements at `offset`.
    pub unsafe fn unpack_at(&self, buffer: &Buffer, offset: usize) {
        let source = buffer.address().wrapping_add(offset);
        // SAFETY: see `# Safety`. The buffer is memory of the pool, so it does not overlap the elements.
        unsafe { unpack_raw(&self.layout.plan, self.count, self.origin, 0..self.bytes, source) };
        add(&COUNTS.ours, self.bytes);
    }

    /// Packs the elements with our kernels.
    ///
    /// # Safety
    ///
    /// - The elements are readable.
    /// - `buffer` comes from [`buffer`](Self::buffer) of these elements.
    pub unsafe fn pack(&self, buffer: &Buffer) {
        // SAFETY: the elements are readable, and the buffer has `bytes` bytes (`# Safety`). It is memory of the pool,
        // so it does not overlap the elements.
        unsafe {
            pack_raw(&self.layout.plan, self.count, self.origin, 0..self.bytes, buffer.address());
        }
        add(&COUNTS.ours, self.bytes);
    }

    /// Unpacks the first `bytes` bytes of `buffer` with our kernels.
    ///
    /// # Safety
    ///
    /// - The elements are writable.
    /// - `buffer` comes from [`buffer`](Self::buffer) of these elements, and its first `bytes` bytes are initialised.
    unsafe fn unpack(&self, buffer: &Buffer, bytes: u64) {
        let range = 0..bytes.min(self.bytes);
        add(&COUNTS.ours, range.end);
        // SAFETY: the elements are writable (`# Safety`), the range is at most that of the elements and of the
        // buffer, and the buffer does not overlap the elements, as in `pack`.
        unsafe { unpack_raw(&self.layout.plan, self.count, self.origin, range, buffer.address()) };
    }
}

/// Packs the elements of a send. Returns `None` if the host must do the call.
///
/// # Safety
///
/// - `buffer`, `count` and `datatype` are those of a send, so the elements are readable.
#[inline(always)]
pub unsafe fn outgoing(
    next: &'static Next,
    (buffer, count, datatype): (*const c_void, i64, raw::Datatype),
    peer: c_int,
) -> Option<Buffer> {
    let elements = Elements::new(buffer, count, datatype)?;
    if peer == abi::PROC_NULL {
        return None;
    }
    // SAFETY: the elements are those of a send (`# Safety`).
    unsafe { packed(next, &elements, (buffer, count, datatype)) }
}

/// Packs elements in the way that their chooser picks.
///
/// # Safety
///
/// - The elements are readable.
unsafe fn packed(
    next: &'static Next,
    elements: &Elements,
    (buffer, count, datatype): (*const c_void, i64, raw::Datatype),
) -> Option<Buffer> {
    let decision = elements.decide_send()?;
    let packed = elements.buffer()?;
    let done = elements.layout.choices.run(decision, || match decision.way {
        Way::Ours => {
            // SAFETY: the elements are readable (`# Safety`), and the buffer is theirs.
            unsafe { elements.pack(&packed) };
            true
        }
        Way::Host => {
            let (mut at, size, own) = (0, elements.bytes as i64, raw::Comm(abi::COMM_SELF));
            add(&COUNTS.host, elements.bytes);
            // SAFETY: the elements are readable, the buffer has `size` bytes, and `at` is writable.
            let code = unsafe {
                let target = packed.address().cast();
                next.PMPI_Pack_c(buffer, count, datatype, target, size, &mut at, own)
            };
            code == abi::SUCCESS && at == size
        }
    });
    if done {
        add(&COUNTS.taken, 1);
    }
    done.then_some(packed)
}

/// A receive into a packed buffer.
pub struct Incoming {
    elements: Elements,
    buffer: Buffer,
    decision: Decision,
    /// A type of the host for measurements of its unpacking; the null handle if our kernels unpack.
    twin: raw::Datatype,
}

impl Incoming {
    /// Prepares a receive. Returns `None` if the host must do the call.
    #[inline(always)]
    pub fn new(
        buffer: *mut c_void,
        count: i64,
        datatype: raw::Datatype,
        source: c_int,
    ) -> Option<Self> {
        let elements = Elements::new(buffer, count, datatype)?;
        if source == abi::PROC_NULL {
            return None;
        }
        Self::prepared(elements, datatype)
    }

    fn prepared(elements: Elements, datatype: raw::Datatype) -> Option<Self> {
        let mut decision = elements.decide(Job::Unpack)?;
        let mut twin = raw::Datatype::NULL;
        if decision.way == Way::Host {
            match elements.layout.twin(datatype) {
                Some(made) => twin = made,
                // Without a type of the host, the measurement is left out.
                None => decision = Decision::ours(Job::Unpack),
            }
        }
        let buffer = elements.buffer()?;
        add(&COUNTS.taken, 1);
        Some(Self { elements, buffer, decision, twin })
    }

    /// Returns this receive with our kernels as its way, for a persistent request: a measurement of the host's way
    /// would be repeated at each start.
    pub fn ours(mut self) -> Self {
        self.decision.way = Way::Ours;
        self
    }

    /// Packs the elements into the buffer, for a call that sends what it then replaces.
    ///
    /// # Safety
    ///
    /// - The elements are readable.
    pub unsafe fn pack(&self) {
        // SAFETY: see `# Safety`; the buffer was made for these elements.
        unsafe { self.elements.pack(&self.buffer) };
    }

    /// Returns the address of the packed buffer.
    pub fn address(&self) -> *mut c_void {
        self.buffer.address().cast()
    }

    /// Returns the size of the packed buffer in bytes.
    pub fn size(&self) -> i64 {
        self.elements.bytes as i64
    }

    /// Unpacks what has arrived, after the host has returned `code` and `status`.
    ///
    /// # Safety
    ///
    /// - `code` and `status` are those of the completed receive into this buffer.
    /// - The elements are writable.
    pub unsafe fn finish(&self, next: &Next, code: c_int, status: *const Status) {
        let truncated = code != abi::SUCCESS && class(next, code) == abi::ERR_TRUNCATE;
        if code != abi::SUCCESS && !truncated {
            return;
        }
        let (mut cancelled, mut bytes) = (0, 0);
        let byte = raw::Datatype(abi::BYTE);
        // SAFETY: the host has filled the status (`# Safety`), and the results are writable.
        let known = unsafe {
            next.PMPI_Test_cancelled(status, &mut cancelled) == abi::SUCCESS
                && next.PMPI_Get_count_c(status, byte, &mut bytes) == abi::SUCCESS
        };
        let Ok(bytes) = u64::try_from(bytes) else { return };
        if !known || cancelled != 0 || bytes == 0 {
            return;
        }
        // SAFETY: the host has received `bytes` bytes, or as many as the buffer has. The elements are writable.
        unsafe { self.unpack(next, bytes) };
    }

    /// Unpacks in the way that was decided when the receive was prepared.
    ///
    /// # Safety
    ///
    /// - The first `bytes` bytes of the buffer are initialised, and the elements are writable.
    unsafe fn unpack(&self, next: &Next, bytes: u64) {
        let (elements, size) = (&self.elements, self.elements.bytes);
        // A part of the elements says nothing about the time of all.
        if bytes < size {
            // SAFETY: `unpack` has the same conditions (`# Safety`).
            return unsafe { elements.unpack(&self.buffer, bytes) };
        }
        elements.layout.choices.run(self.decision, || match self.decision.way {
            // SAFETY: `unpack` has the same conditions (`# Safety`).
            Way::Ours => unsafe { elements.unpack(&self.buffer, bytes) },
            Way::Host => {
                let (mut at, own) = (0, raw::Comm(abi::COMM_SELF));
                let (from, to) = (self.address().cast_const(), elements.origin.cast());
                add(&COUNTS.host, size);
                // SAFETY: the buffer has `size` bytes, the elements are writable, and `twin` has their layout.
                let code = unsafe {
                    let count = elements.count as i64;
                    next.PMPI_Unpack_c(from, size as i64, &mut at, to, count, self.twin, own)
                };
                if code != abi::SUCCESS {
                    // SAFETY: `unpack` has the same conditions (`# Safety`).
                    unsafe { elements.unpack(&self.buffer, bytes) };
                }
            }
        });
    }
}
