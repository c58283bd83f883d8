//! The packed buffer of one send or of one receive.

use crate::entry::{class, is_mixed};
use crate::host::{Next, next};
use crate::pool::Buffer;
use crate::report::{COUNTS, add};
use crate::say::print;
use crate::settings::settings;
use crate::types::choice::{Decision, Job, Packer};
use crate::types::{Layout, Twin, find};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use typepack_capi_datatype::raw::Status;
use typepack_capi_datatype::{abi, raw};
use typepack_engine::{Elements, Plan};

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

/// The elements of a message in the memory of the program, and how they are packed.
pub struct Data {
    layout: Arc<Layout>,
    count: u64,
    /// The address of the elements.
    origin: *mut u8,
    /// The packed size of the elements.
    bytes: u64,
    /// The host's type with which the host packs and unpacks, if the layout has no kernels.
    twin: Option<Arc<Twin>>,
}

// SAFETY: the program lets the library access the memory at `origin` until the operation completes, from whatever
// thread it calls.
unsafe impl Send for Data {}

impl Data {
    /// Reads the arguments of a send or receive. Returns `None` if the host must do the call: if it does this type, and
    /// if an argument is wrong, so that the host raises its own error.
    #[inline(always)]
    pub fn new(buffer: *const c_void, count: i64, datatype: raw::Datatype) -> Option<Self> {
        Self::checked(buffer, count, datatype, find(datatype)?)
    }

    /// Does what [`new`](Self::new) does, for a type whose layout is known.
    pub fn checked(
        buffer: *const c_void,
        count: i64,
        datatype: raw::Datatype,
        layout: Arc<Layout>,
    ) -> Option<Self> {
        let count = u64::try_from(count).ok().filter(|&count| count > 0)?;
        if !layout.accepts(buffer, count) {
            return None;
        }
        let bytes = layout.packed_bytes(count)?;
        let twin = match layout.plan() {
            Some(_) => None,
            None => Some(layout.twin(datatype)?),
        };
        Some(Self { layout, count, origin: buffer.cast::<u8>().cast_mut(), bytes, twin })
    }

    /// Returns the elements, if the layout has kernels.
    fn elements(&self) -> Option<Elements<&Plan>> {
        self.layout.plan().map(|plan| Elements::new(self.origin, plan, self.count))
    }

    /// Returns whether a receive must go through a packed buffer: the sender may have packed elements that the host
    /// does not unpack (`MIXED_MAX`).
    pub fn must_be_packed(&self) -> bool {
        self.layout.must_be_packed()
    }

    /// Decides how the elements are packed or unpacked. Returns `None` if the message must go straight to the host.
    pub fn decide(&self, job: Job) -> Option<Decision> {
        let must = job == Job::Unpack && self.must_be_packed();
        let mut decision = None;
        let leave = settings().tune && self.layout.is_long();
        if self.layout.plan().is_some() && !leave {
            decision = Some(self.layout.choices().packer(job, self.bytes));
        }
        if must {
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

    /// Returns a buffer for the packed elements; `None` if there is none, so that the host must do the call. The host
    /// can do every send. So only a receive gets a buffer beyond the pool's limit.
    pub fn buffer(&self, job: Job) -> Option<Buffer> {
        let must = job == Job::Unpack && self.must_be_packed();
        let buffer = if must { Buffer::beyond(self.bytes) } else { Buffer::new(self.bytes) };
        if buffer.is_none() {
            add(&COUNTS.passed, 1);
        }
        buffer
    }

    /// Returns the packed size of the elements in bytes.
    pub fn packed_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether these elements and others have the same layout in this library.
    pub fn have_the_layout_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.layout, &other.layout)
    }

    /// Returns a contiguous type of the host with the size of one packed element; `None` if the host cannot make it.
    pub fn flat(&self) -> Option<Arc<Twin>> {
        self.layout.flat()
    }

    /// Returns whether the send side of a collective call is packed by our kernels.
    pub fn decide_collective(&self) -> bool {
        self.decide(Job::Pack).is_some()
    }

    /// Packs the elements into `buffer` from byte `offset` on, with our kernels if the layout has some. Returns whether
    /// that was done: the host may fail.
    ///
    /// # Safety
    ///
    /// - The elements are readable.
    /// - The buffer has room for the packed elements at `offset`.
    #[must_use]
    pub unsafe fn pack(&self, buffer: &Buffer, offset: usize) -> bool {
        let target = buffer.address().wrapping_add(offset);
        let Some(elements) = self.elements() else {
            let (elements, packed) = ((self.count, self.origin.cast_const()), (target, self.bytes));
            return self.twin.as_ref().is_some_and(|twin| {
                // SAFETY: the elements are readable, and `target` has room for `bytes` bytes (`# Safety`).
                unsafe { twin.pack(next(), elements, packed) }
            });
        };
        add(&COUNTS.ours, self.bytes);
        // SAFETY: the elements are readable, and `target` has room for `bytes` bytes (`# Safety`). The buffer is memory
        // of the pool, so it does not overlap the elements.
        unsafe { elements.pack(0..self.bytes, target) };
        true
    }

    /// Unpacks the elements from `buffer`, where their packed bytes begin at byte `offset`, with our kernels if the
    /// layout has some. If the host cannot unpack, one line says so.
    ///
    /// # Safety
    ///
    /// - The elements are writable.
    /// - The buffer has the packed elements at `offset`.
    pub unsafe fn unpack(&self, buffer: &Buffer, offset: usize) {
        let source = buffer.address().wrapping_add(offset);
        if self.layout.plan().is_some() {
            // SAFETY: the elements are writable, and `source` has their packed bytes (`# Safety`).
            unsafe { self.unpack_first(source, self.bytes) };
            return;
        }
        let (elements, packed) = ((self.count, self.origin), (source.cast_const(), self.bytes));
        let done = self.twin.as_ref().is_some_and(|twin| {
            // SAFETY: the elements are writable, and `source` has their packed bytes (`# Safety`).
            unsafe { twin.unpack(next(), elements, packed) }
        });
        if !done {
            lost();
        }
    }

    /// Unpacks the first `bytes` bytes at `source` with our kernels. A layout without kernels has none to unpack.
    ///
    /// # Safety
    ///
    /// - The elements are writable.
    /// - `source` lies in a buffer, and has `bytes` initialised bytes.
    unsafe fn unpack_first(&self, source: *const u8, bytes: u64) {
        let Some(elements) = self.elements() else { return };
        let range = 0..bytes.min(self.bytes);
        add(&COUNTS.ours, range.end);
        // SAFETY: the elements are writable, `source` has the bytes of the range (`# Safety`), and the range is at most
        // that of the elements. The buffer is memory of the pool, so it does not overlap the elements.
        unsafe { elements.unpack(range, source) };
    }
}

/// Says that the host has failed where nothing can be done about it.
#[cold]
pub fn lost() {
    print("the MPI library did not unpack a message, whose data are lost");
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
    let elements = Data::new(buffer, count, datatype)?;
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
    elements: &Data,
    (buffer, count, datatype): (*const c_void, i64, raw::Datatype),
) -> Option<Buffer> {
    let decision = elements.decide_send()?;
    let packed = elements.buffer(Job::Pack)?;
    let done = elements.layout.choices().run(decision, || match decision.way {
        // SAFETY: the elements are readable (`# Safety`), and the buffer is theirs.
        Packer::Ours => unsafe { elements.pack(&packed, 0) },
        Packer::Host => {
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
    elements: Data,
    buffer: Buffer,
    decision: Decision,
    /// A type of the host for measurements of its unpacking.
    twin: Option<Arc<Twin>>,
    /// A contiguous type of the size of one element, with which the host receives more bytes than a C integer counts.
    flat: Option<Arc<Twin>>,
    /// True if the buffer has the packed elements before the receive. Then all of the buffer is unpacked after the
    /// receive, whatever has arrived: elements that were not received keep their values.
    whole: bool,
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
        let elements = Data::new(buffer, count, datatype)?;
        if source == abi::PROC_NULL {
            return None;
        }
        Self::prepared(elements, datatype)
    }

    /// Prepares the receive of a call whose status does not say how much has arrived. Returns `None` if the host must
    /// do the receive, or may.
    ///
    /// # Safety
    ///
    /// - The elements are those of a receive, so they are readable.
    pub unsafe fn without_status(
        buffer: *mut c_void,
        count: i64,
        datatype: raw::Datatype,
        source: c_int,
    ) -> Option<Self> {
        let elements = Data::new(buffer, count, datatype)?;
        if source == abi::PROC_NULL || !elements.must_be_packed() {
            return None;
        }
        let mut incoming = Self::prepared(elements, datatype)?.ours();
        // SAFETY: the elements are readable (`# Safety`).
        incoming.whole = incoming.whole || unsafe { incoming.pack() };
        incoming.whole.then_some(incoming)
    }

    fn prepared(elements: Data, datatype: raw::Datatype) -> Option<Self> {
        let mut decision = elements.decide(Job::Unpack)?;
        let mut twin = None;
        if decision.way == Packer::Host {
            twin = elements.layout.twin(datatype);
            // Without a type of the host, the measurement is left out.
            if twin.is_none() {
                decision = Decision::ours(Job::Unpack);
            }
        }
        let buffer = elements.buffer(Job::Unpack)?;
        // The host can unpack only whole elements.
        let whole = elements.layout.plan().is_none();
        // Not every host has forms with large counts. The program's count fits in its form.
        let is_long = c_int::try_from(elements.bytes).is_err();
        let flat = if is_long { elements.flat() } else { None };
        let incoming = Self { elements, buffer, decision, twin, flat, whole };
        // SAFETY: the program gives the elements of a receive to the library, which may read them too.
        if whole && !unsafe { incoming.pack() } {
            return None;
        }
        add(&COUNTS.taken, 1);
        Some(incoming)
    }

    /// Prepares the next start of a persistent receive. Returns whether that was done.
    ///
    /// # Safety
    ///
    /// - The program starts the receive.
    #[must_use]
    pub unsafe fn prepare(&self) -> bool {
        // SAFETY: the program gives the elements of a receive to the library, which may read them too.
        !self.whole || unsafe { self.pack() }
    }

    /// Returns this receive with our kernels as its way, for a persistent request: a measurement of the host's way
    /// would be repeated at each start.
    pub fn ours(mut self) -> Self {
        self.decision = Decision::ours(Job::Unpack);
        self
    }

    /// Packs the elements into the buffer, for a call that sends what it then replaces. Returns whether that was done:
    /// the host may fail.
    ///
    /// # Safety
    ///
    /// - The elements are readable.
    #[must_use]
    pub unsafe fn pack(&self) -> bool {
        // SAFETY: the elements are readable (`# Safety`); the buffer was made for these elements.
        unsafe { self.elements.pack(&self.buffer, 0) }
    }

    /// Returns the arguments with which the host receives: the address of the packed buffer, and a count and a type
    /// that have its size.
    pub fn arguments(&self) -> (*mut c_void, i64, raw::Datatype) {
        let to = self.buffer.address().cast();
        match &self.flat {
            Some(flat) => (to, self.elements.count as i64, flat.handle()),
            None => (to, self.elements.bytes as i64, PACKED),
        }
    }

    /// Unpacks what has arrived, after the host has returned `code` and `status`.
    ///
    /// # Safety
    ///
    /// - `code` and `status` are those of the completed receive into this buffer.
    /// - The elements are writable.
    pub unsafe fn finish(&self, next: &Next, code: c_int, status: *const Status) {
        // If the message was too long, the status does not tell how much of the buffer the host has written: MPICH may
        // write nothing of a long message. What stood there before must not reach the program.
        let truncated =
            self.whole && code != abi::SUCCESS && class(next, code) == abi::ERR_TRUNCATE;
        if code != abi::SUCCESS && !truncated {
            return;
        }
        if self.whole {
            // SAFETY: the buffer has the packed elements, some of which the host has replaced. They are writable.
            return unsafe { self.elements.unpack(&self.buffer, 0) };
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
        let source = self.buffer.address();
        // A part of the elements says nothing about the time of all.
        if bytes < size {
            // SAFETY: the elements are writable, and the buffer begins with `bytes` initialised bytes (`# Safety`).
            return unsafe { elements.unpack_first(source, bytes) };
        }
        elements.layout.choices().run(self.decision, || match self.decision.way {
            // SAFETY: the elements are writable, and the buffer begins with `bytes` initialised bytes (`# Safety`).
            Packer::Ours => unsafe { elements.unpack_first(source, bytes) },
            Packer::Host => {
                add(&COUNTS.host, size);
                let (count, packed) = (elements.count, (source.cast_const(), size));
                let done = self.twin.as_ref().is_some_and(|twin| {
                    // SAFETY: the elements are writable, and the buffer has their packed bytes (`# Safety`): all of
                    // them have arrived.
                    unsafe { twin.unpack(next, (count, elements.origin), packed) }
                });
                if !done {
                    // SAFETY: the elements are writable, and the buffer begins with `bytes` initialised bytes
                    // (`# Safety`).
                    unsafe { elements.unpack_first(source, bytes) };
                }
            }
        });
    }
}
