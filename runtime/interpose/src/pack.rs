//! `MPI_Pack`, `MPI_Unpack`, and their forms for external32 and for large counts.
//!
//! The C face's datatype layer has the same calls for typepack's own handles (`runtime/capi/datatype/src/pack.rs`).
//! Here every argument that is not plainly right goes to the host, so that the host raises its own error.
//!
//! What external32 stores for a type is not the same in all libraries. So the first call with a layout goes to the
//! host, and a sample is packed or unpacked in both ways. The sample is not the program's data: zeros, for example, do
//! not show their byte order. If the results differ, external32 of this layout stays with the host.

use crate::entry::internal;
use crate::host::Next;
use crate::pool::Buffer;
use crate::report::{COUNTS, add};
use crate::types::choice::{Job, Packer};
use crate::types::{Layout, find};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use typepack_capi_datatype::count_width::Number;
use typepack_capi_datatype::{abi, raw};
use typepack_engine::external32::{pack_external_raw, unpack_external_raw};
use typepack_engine::{External32, Plan, pack_external_size, pack_raw, unpack_raw};

/// The arguments of a call, which are plainly right.
struct Call<N> {
    layout: Arc<Layout>,
    /// The number of elements.
    count: u64,
    /// The number of packed bytes.
    bytes: u64,
    /// The size of the packed buffer.
    size: i64,
    /// The position before the call.
    start: usize,
    /// The position after the call.
    end: N,
    /// Where the position stands.
    position: *mut N,
}

/// The packed buffer of a call, and its size.
type Packed = (*const c_void, i64);

impl<N: Number> Call<N> {
    /// Reads the arguments. `measure` returns the number of packed bytes. Returns `None` if the host must do the call.
    ///
    /// # Safety
    ///
    /// - `position` is null, or the address of a readable number.
    unsafe fn read(
        (buffer, count, datatype): (*const c_void, i64, raw::Datatype),
        (packed, size): Packed,
        position: *mut N,
        measure: impl FnOnce(&Layout, u64) -> Option<u64>,
    ) -> Option<Self> {
        let layout = find(datatype)?;
        let count = u64::try_from(count).ok().filter(|&count| count > 0)?;
        if position.is_null() || packed.is_null() {
            return None;
        }
        // SAFETY: the address is not null (`# Safety`).
        let start = unsafe { position.read() }.wide();
        let bytes = measure(&layout, count)?;
        let end = start.checked_add(i64::try_from(bytes).ok()?)?;
        if start < 0 || end > size || !layout.accepts(buffer, count) {
            return None;
        }
        let start = usize::try_from(start).ok()?;
        Some(Self { layout, count, bytes, size, start, end: N::exactly(end)?, position })
    }

    /// Writes the new position.
    ///
    /// # Safety
    ///
    /// - The program lets the call write its position.
    unsafe fn done(&self, taken: bool) -> Option<c_int> {
        if taken {
            add(&COUNTS.taken, 1);
        }
        add(if taken { &COUNTS.ours } else { &COUNTS.host }, self.bytes);
        // SAFETY: the position is writable (`# Safety`).
        unsafe { self.position.write(self.end) };
        Some(abi::SUCCESS)
    }
}

/// The packed bytes of an ordinary call; `None` if only the host can pack the type.
fn native(layout: &Layout, count: u64) -> Option<u64> {
    layout.plan().and_then(|_| layout.packed_bytes(count))
}

/// The packed bytes of a call for external32.
fn external(layout: &Layout, count: u64) -> Option<u64> {
    pack_external_size(layout.plan()?.external32().ok()?, count).ok()
}

/// Lets the host check a communicator that is not predefined. The host raises its error.
///
/// # Errors
/// Returns the error code of the host.
fn check(next: &Next, comm: raw::Comm) -> Result<(), c_int> {
    if comm.0 == abi::COMM_WORLD || comm.0 == abi::COMM_SELF {
        return Ok(());
    }
    let mut inter = -1;
    // SAFETY: `inter` is writable, and the host checks the handle.
    match unsafe { next.PMPI_Comm_test_inter(comm, &mut inter) } {
        // MPICH 5.0.2 returns no error if an error handler of the program has returned.
        abi::SUCCESS if inter != -1 => Ok(()),
        code => Err(code),
    }
}

/// `MPI_Pack`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Pack`, or of `MPI_Pack_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn pack<N: Number>(
    next: &'static Next,
    inbuf: *const c_void,
    incount: N,
    datatype: raw::Datatype,
    outbuf: *mut c_void,
    outsize: N,
    position: *mut N,
    comm: raw::Comm,
) -> Option<c_int> {
    let packed = (outbuf.cast_const(), outsize.wide());
    // SAFETY: `position` is that of the call (`# Safety`).
    let call = unsafe { Call::read((inbuf, incount.wide(), datatype), packed, position, native)? };
    if let Err(code) = check(next, comm) {
        return Some(code);
    }
    let plan = call.layout.plan()?;
    let Some(decision) = call.layout.choices().decide(Job::Pack, call.bytes) else {
        add(&COUNTS.passed, 1);
        return None;
    };
    let code = call.layout.choices().run(decision, || match decision.way {
        Packer::Ours => {
            let target = outbuf.cast::<u8>().wrapping_add(call.start);
            // SAFETY: `inbuf` has `count` elements and `outbuf` has `size` bytes, and they do not overlap (`# Safety`).
            // `Call::read` has checked that the packed bytes lie in these bytes.
            unsafe {
                pack_raw(plan, call.count, inbuf.cast(), 0..call.bytes, target);
            }
            abi::SUCCESS
        }
        Packer::Host => {
            let (count, mut at) = (incount.wide(), call.start as i64);
            // SAFETY: the arguments are those of the program in the wider types, and `at` is writable.
            unsafe { next.PMPI_Pack_c(inbuf, count, datatype, outbuf, call.size, &mut at, comm) }
        }
    });
    if code != abi::SUCCESS {
        return Some(code);
    }
    // SAFETY: `position` is writable in a call of `pack`.
    unsafe { call.done(decision.way == Packer::Ours) }
}

/// `MPI_Unpack`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Unpack`, or of `MPI_Unpack_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn unpack<N: Number>(
    next: &'static Next,
    inbuf: *const c_void,
    insize: N,
    position: *mut N,
    outbuf: *mut c_void,
    outcount: N,
    datatype: raw::Datatype,
    comm: raw::Comm,
) -> Option<c_int> {
    let packed = (inbuf, insize.wide());
    let elements = (outbuf.cast_const(), outcount.wide(), datatype);
    // SAFETY: `position` is that of the call (`# Safety`).
    let call = unsafe { Call::read(elements, packed, position, native)? };
    if let Err(code) = check(next, comm) {
        return Some(code);
    }
    let plan = call.layout.plan()?;
    let Some(decision) = call.layout.choices().decide(Job::Unpack, call.bytes) else {
        add(&COUNTS.passed, 1);
        return None;
    };
    let code = call.layout.choices().run(decision, || match decision.way {
        Packer::Ours => {
            let source = inbuf.cast::<u8>().wrapping_add(call.start);
            // SAFETY: `outbuf` has room for `count` elements and `inbuf` has `size` bytes, and they do not overlap
            // (`# Safety`). `Call::read` has checked that the packed bytes lie in these bytes.
            unsafe {
                unpack_raw(plan, call.count, outbuf.cast(), 0..call.bytes, source);
            }
            abi::SUCCESS
        }
        Packer::Host => {
            let (count, mut at) = (outcount.wide(), call.start as i64);
            // SAFETY: the arguments are those of the program in the wider types, and `at` is writable.
            unsafe { next.PMPI_Unpack_c(inbuf, call.size, &mut at, outbuf, count, datatype, comm) }
        }
    });
    if code != abi::SUCCESS {
        return Some(code);
    }
    // SAFETY: `position` is writable in a call of `unpack`.
    unsafe { call.done(decision.way == Packer::Ours) }
}

/// Returns whether a name is that of external32.
///
/// # Safety
///
/// - `name` is null or a C string.
unsafe fn is_external32(name: *const c_char) -> bool {
    // SAFETY: the name is a C string (`# Safety`).
    !name.is_null() && unsafe { CStr::from_ptr(name) } == c"external32"
}

/// What is known about external32 of a layout (`Layout::external`).
const UNKNOWN: u8 = 0;
const SAME: u8 = 1;
const OTHER: u8 = 2;

/// Memory for one element of a layout.
struct Sample {
    memory: Buffer,
    /// Where the data of the element begin, relative to its address.
    true_lb: isize,
}

impl Sample {
    /// Makes an element whose byte `i` in memory is `byte(i)`; `None` without memory.
    fn new(layout: &Layout, byte: impl Fn(usize) -> u8) -> Option<Self> {
        let shape = layout.plan()?.footprint();
        let span = u64::try_from(shape.true_ub.checked_sub(shape.true_lb)?).ok()?;
        let memory = Buffer::new(span)?;
        for at in 0..memory.len() {
            // SAFETY: the buffer has `len` bytes.
            unsafe { memory.address().add(at).write(byte(at)) };
        }
        Some(Self { memory, true_lb: isize::try_from(shape.true_lb).ok()? })
    }

    /// Returns the address of the element.
    fn origin(&self) -> *mut u8 {
        self.memory.address().wrapping_offset(self.true_lb.wrapping_neg())
    }
}

/// Returns the bytes of a buffer.
///
/// # Safety
///
/// - All bytes of the buffer are initialised.
unsafe fn bytes(buffer: &Buffer) -> &[u8] {
    // SAFETY: the buffer has `len` bytes, which are initialised (`# Safety`).
    unsafe { std::slice::from_raw_parts(buffer.address(), buffer.len()) }
}

/// Packs or unpacks a sample of a layout in both ways, and returns whether the results are the same. All bytes of a
/// basic element of the sample are different, so any other order of the bytes shows. Only the direction of the
/// program's call is tried: MPICH 5.0.2 ends the process when it packs some types. Returns `None` if there is no
/// memory.
///
/// # Safety
///
/// - `datatype` is a valid type of the host with this layout, and `datarep` is the name of external32.
unsafe fn does_the_same(
    next: &Next,
    (layout, prepared): (&Layout, &External32),
    (datarep, datatype): (*const c_char, raw::Datatype),
    job: Job,
) -> Option<bool> {
    let sample = Sample::new(layout, |at| (at % 251) as u8 + 1)?;
    let own = Buffer::new(prepared.element_bytes())?;
    let (all, size) = (0..prepared.element_bytes(), i64::try_from(own.len()).ok()?);
    // SAFETY: the sample is one element, and the new buffer has room for its external32 form.
    let packed =
        unsafe { pack_external_raw(prepared, 1, sample.origin(), all.clone(), own.address()) };
    // A value of the sample does not fit in its size in external32. The host is not asked: an error could end the
    // program.
    if packed.is_err() {
        return Some(false);
    }
    let mut at = 0;
    match job {
        Job::Pack => {
            let host = Buffer::new(prepared.element_bytes())?;
            // SAFETY: `host` has `size` bytes, which are all written, and the sample is one element of the type.
            unsafe {
                host.address().write_bytes(0, host.len());
                let (from, to) = (sample.origin().cast_const().cast(), host.address().cast());
                let code = next.PMPI_Pack_external_c(datarep, from, 1, datatype, to, size, &mut at);
                Some(code == abi::SUCCESS && at == size && bytes(&host) == bytes(&own))
            }
        }
        Job::Unpack => {
            let [host, back] = [Sample::new(layout, |_| 0)?, Sample::new(layout, |_| 0)?];
            // SAFETY: both have room for one element of the type, `own` has `size` bytes, and all bytes are written.
            unsafe {
                let (from, to) = (own.address().cast_const().cast(), host.origin().cast());
                let code =
                    next.PMPI_Unpack_external_c(datarep, from, size, &mut at, to, 1, datatype);
                let done = unpack_external_raw(prepared, 1, back.origin(), all, own.address());
                let same = bytes(&host.memory) == bytes(&back.memory);
                Some(code == abi::SUCCESS && at == size && done.is_ok() && same)
            }
        }
    }
}

/// Compares external32 of the layout of a call in both ways, after the host has done the call and ended at `end`.
///
/// # Safety
///
/// - As for [`does_the_same`].
unsafe fn compare<N: Number>(
    next: &Next,
    call: &Call<N>,
    (datarep, datatype): (*const c_char, raw::Datatype),
    end: i64,
    job: Job,
) {
    let Some(Ok(prepared)) = call.layout.plan().map(Plan::external32) else { return };
    let pair = (&*call.layout, prepared);
    let same = end == call.end.wide()
        // SAFETY: `compare` has the same conditions (`# Safety`).
        && match unsafe { does_the_same(next, pair, (datarep, datatype), job) } {
            Some(same) => same,
            // Without memory, the comparison waits for the next call.
            None => return,
        };
    call.layout.external[job as usize].store(if same { SAME } else { OTHER }, Ordering::Relaxed);
}

/// `MPI_Pack_external`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Pack_external`, or of `MPI_Pack_external_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn pack_external<C: Number, N: Number>(
    next: &'static Next,
    datarep: *const c_char,
    inbuf: *const c_void,
    incount: C,
    datatype: raw::Datatype,
    outbuf: *mut c_void,
    outsize: N,
    position: *mut N,
) -> Option<c_int> {
    let (packed, count) = ((outbuf.cast_const(), outsize.wide()), incount.wide());
    // SAFETY: `position` is that of the call (`# Safety`).
    let call = unsafe { Call::read((inbuf, count, datatype), packed, position, external)? };
    // SAFETY: the name is that of the call (`# Safety`).
    if !unsafe { is_external32(datarep) } {
        return None;
    }
    let prepared = call.layout.plan()?.external32().ok()?;
    let target = outbuf.cast::<u8>().wrapping_add(call.start);
    match call.layout.external[Job::Pack as usize].load(Ordering::Relaxed) {
        SAME => {}
        UNKNOWN => {
            let mut at = call.start as i64;
            // SAFETY: the arguments are those of the program in the wider types, and `at` is writable.
            let code = unsafe {
                next.PMPI_Pack_external_c(
                    datarep, inbuf, count, datatype, outbuf, call.size, &mut at,
                )
            };
            if code != abi::SUCCESS {
                return Some(code);
            }
            let Some(end) = N::exactly(at) else { return Some(internal(next)) };
            // SAFETY: the host has accepted the name and the type.
            unsafe { compare(next, &call, (datarep, datatype), at, Job::Pack) };
            add(&COUNTS.passed, 1);
            // SAFETY: `position` is writable in a call of `pack_external`.
            unsafe { position.write(end) };
            return Some(code);
        }
        _ => return None,
    }
    // SAFETY: as in `pack`, for the bytes of external32.
    unsafe { pack_external_raw(prepared, call.count, inbuf.cast(), 0..call.bytes, target).ok()? };
    // SAFETY: `position` is writable in a call of `pack_external`.
    unsafe { call.done(true) }
}

/// `MPI_Unpack_external`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Unpack_external`, or of `MPI_Unpack_external_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn unpack_external<C: Number, N: Number>(
    next: &'static Next,
    datarep: *const c_char,
    inbuf: *const c_void,
    insize: N,
    position: *mut N,
    outbuf: *mut c_void,
    outcount: C,
    datatype: raw::Datatype,
) -> Option<c_int> {
    let (packed, count) = ((inbuf, insize.wide()), outcount.wide());
    let elements = (outbuf.cast_const(), count, datatype);
    // SAFETY: `position` is that of the call (`# Safety`).
    let call = unsafe { Call::read(elements, packed, position, external)? };
    // SAFETY: the name is that of the call (`# Safety`).
    if !unsafe { is_external32(datarep) } {
        return None;
    }
    let prepared = call.layout.plan()?.external32().ok()?;
    let source = inbuf.cast::<u8>().wrapping_add(call.start);
    match call.layout.external[Job::Unpack as usize].load(Ordering::Relaxed) {
        SAME => {}
        UNKNOWN => {
            let mut at = call.start as i64;
            // SAFETY: the arguments are those of the program in the wider types, and `at` is writable.
            let code = unsafe {
                next.PMPI_Unpack_external_c(
                    datarep, inbuf, call.size, &mut at, outbuf, count, datatype,
                )
            };
            if code != abi::SUCCESS {
                return Some(code);
            }
            let Some(end) = N::exactly(at) else { return Some(internal(next)) };
            // SAFETY: the host has accepted the name and the type.
            unsafe { compare(next, &call, (datarep, datatype), at, Job::Unpack) };
            add(&COUNTS.passed, 1);
            // SAFETY: `position` is writable in a call of `unpack_external`.
            unsafe { position.write(end) };
            return Some(code);
        }
        _ => return None,
    }
    // SAFETY: as in `unpack`, for the bytes of external32.
    unsafe {
        unpack_external_raw(prepared, call.count, outbuf.cast(), 0..call.bytes, source).ok()?
    };
    // SAFETY: `position` is writable in a call of `unpack_external`.
    unsafe { call.done(true) }
}
