//! The send side and the receive side of a collective call, in packed form.
//!
//! Each rank packs or leaves alone each side by itself: the other ranks do not know. A host may choose its algorithm by
//! counts and by sizes of types, and all ranks must choose the same. So a packed side has the counts of the program,
//! and in place of each of its types a contiguous type of the same size. Bytes with other counts would not do: Open MPI
//! 5.0.11 chooses the algorithm of `MPI_Allgatherv` by the size of the send type times the counts of the receive side.

use crate::entry::has_handlers;
use crate::host::{Next, has_devices, next};
use crate::pool::Buffer;
use crate::report::{COUNTS, add};
use crate::transfer::{Data, lost};
use crate::types::choice::Job;
use crate::types::{Layout, Twin, find, free_twins, is_in_order};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use typepack_capi_datatype::count_width::Number;
use typepack_capi_datatype::raw::Status;
use typepack_capi_datatype::{abi, raw};

/// What a segment is in memory.
enum Piece {
    /// Elements of a type that is not contiguous.
    Elements(Data),
    /// Elements of a type whose packed bytes are those in memory.
    Run(Run),
}

/// A run of bytes in the memory of the program.
struct Run {
    at: *mut u8,
    len: usize,
}

impl Run {
    /// Copies the bytes to `target`. Returns whether that was done: the host, which copies the memory of devices, may
    /// fail.
    ///
    /// # Safety
    ///
    /// - The run is readable, and `target` has room for it, in memory of the pool.
    #[must_use]
    unsafe fn pack(&self, target: *mut u8) -> bool {
        if !has_devices() {
            // SAFETY: the run is readable and `target` has room for it (`# Safety`). Memory of the pool overlaps no
            // memory of the program.
            unsafe { std::ptr::copy_nonoverlapping(self.at, target, self.len) };
            return true;
        }
        let (own, byte, mut at) = (raw::Comm(abi::COMM_SELF), raw::Datatype(abi::BYTE), 0);
        let size = self.len as i64;
        // SAFETY: the run has `size` readable bytes and `target` has room for so many (`# Safety`), and the position is
        // a variable of this function. The host reads the memory of devices by their own runtime.
        let code = unsafe {
            next().PMPI_Pack_c(self.at.cast(), size, byte, target.cast(), size, &mut at, own)
        };
        code == abi::SUCCESS && at == size
    }

    /// Copies the bytes at `source` to the run. If the host, which copies to the memory of devices, fails, one line
    /// says so.
    ///
    /// # Safety
    ///
    /// - The run is writable, and `source` has as many bytes, in memory of the pool.
    unsafe fn unpack(&self, source: *const u8) {
        if !has_devices() {
            // SAFETY: the run is writable and `source` has its bytes (`# Safety`). Memory of the pool overlaps no
            // memory of the program.
            unsafe { std::ptr::copy_nonoverlapping(source, self.at, self.len) };
            return;
        }
        let (own, byte, mut at) = (raw::Comm(abi::COMM_SELF), raw::Datatype(abi::BYTE), 0);
        let size = self.len as i64;
        // SAFETY: `source` has `size` bytes, the run has room for so many (`# Safety`), and the position is a variable
        // of this function. The host writes the memory of devices by their own runtime.
        let code = unsafe {
            next().PMPI_Unpack_c(source.cast(), size, &mut at, self.at.cast(), size, byte, own)
        };
        if code != abi::SUCCESS || at != size {
            lost();
        }
    }
}

/// A piece of memory, and where its packed bytes lie in a buffer.
struct Segment {
    piece: Piece,
    offset: usize,
    /// The rank, or the neighbour, to whose block the elements belong.
    rank: usize,
}

/// One side of a call, as the host gets it.
pub struct Side {
    /// The buffer.
    pub address: *mut c_void,
    /// The count, of a call with one count.
    pub count: i64,
    /// The type, of a call with one type.
    pub kind: raw::Datatype,
    /// The count for each rank.
    pub counts: Vec<i64>,
    /// The displacement for each rank.
    pub displacements: Vec<isize>,
    /// The type for each rank.
    pub kinds: Vec<raw::Datatype>,
    /// Counts and displacements as C integers, for the form of a call without large counts.
    narrow: (Vec<c_int>, Vec<c_int>),
    buffer: Option<Buffer>,
    segments: Vec<Segment>,
    /// The types of the host with which a packed side is sent or received.
    flats: Vec<Arc<Twin>>,
}

// SAFETY: the addresses belong to the program, which leaves the memory to the library until the operation completes.
unsafe impl Send for Side {}

/// Both sides of a call, which live until the call is complete.
pub struct Sides {
    /// What is sent.
    pub send: Side,
    /// What is received.
    pub receive: Side,
    /// True if the call sends from the receive side, or leaves a part of it as it is.
    in_place: bool,
}

impl Sides {
    /// Returns both sides if at least one of them is packed. `in_place` says whether the call sends from the receive
    /// side.
    pub fn new(send: Side, receive: Side, in_place: bool) -> Option<Self> {
        if !send.is_packed() && !receive.is_packed() {
            return None;
        }
        add(&COUNTS.taken, 1);
        Some(Self { send, receive, in_place })
    }

    /// Packs what the call reads: the send side, and a receive side from which the call sends. Returns whether that was
    /// done. The call that makes a persistent request does that too, because some hosts read then.
    ///
    /// If the program has error handlers, a call that fails may return no error (`entry::has_handlers`). So any receive
    /// side is packed then: the elements are unpacked after such a call, and must be what they were.
    ///
    /// # Safety
    ///
    /// - The program lets the call read the elements.
    #[must_use]
    pub unsafe fn fill(&self) -> bool {
        let both = self.in_place || has_handlers();
        // SAFETY: the program lets the call read the elements (`# Safety`).
        unsafe { self.send.fill() && (!both || self.receive.fill()) }
    }

    /// Prepares a call in the form that the program called: all ranks must call the same function of the host, also
    /// those whose sides are not packed. Returns `None` if a displacement in the packed buffer does not fit in the
    /// form's type; then the host does the call. The displacements of some calls are addresses in both forms.
    pub fn narrowed(mut self, is_large: bool, has_addresses: bool) -> Option<Self> {
        if !is_large {
            self.send.narrowed(has_addresses)?;
            self.receive.narrowed(has_addresses)?;
        }
        Some(self)
    }

    /// Unpacks what was received.
    ///
    /// # Safety
    ///
    /// - The host's call is complete, without an error.
    pub unsafe fn deliver(&self) {
        if let Some(buffer) = &self.receive.buffer {
            for Segment { piece, offset, .. } in &self.receive.segments {
                // SAFETY: the host has received the packed elements there, or they were packed there before the call
                // (`Side::fill`). The program lets the call write the elements.
                unsafe {
                    match piece {
                        Piece::Elements(elements) => elements.unpack(buffer, *offset),
                        Piece::Run(run) => run.unpack(buffer.address().add(*offset)),
                    }
                }
            }
        }
    }
}

impl Side {
    /// A side that the host gets unchanged.
    fn unchanged(address: *const c_void, count: i64, kind: raw::Datatype) -> Self {
        Self {
            address: address.cast_mut(),
            count,
            kind,
            counts: Vec::new(),
            displacements: Vec::new(),
            kinds: Vec::new(),
            narrow: (Vec::new(), Vec::new()),
            buffer: None,
            segments: Vec::new(),
            flats: Vec::new(),
        }
    }

    /// A side that does not matter on this rank.
    pub fn ignored() -> Self {
        Self::unchanged(std::ptr::null(), 0, raw::Datatype(abi::BYTE))
    }

    /// The send side of a call in place.
    pub fn in_place() -> Self {
        Self::unchanged(abi::IN_PLACE as *const c_void, 0, raw::Datatype(abi::BYTE))
    }

    /// Returns this side without the elements of the ranks for which `is_missing`: the host neither reads nor writes
    /// their bytes.
    pub fn without(mut self, is_missing: impl Fn(usize) -> bool) -> Self {
        self.segments.retain(|segment| !is_missing(segment.rank));
        self
    }

    /// A side with `blocks` times `count` elements, one after another.
    pub fn block(
        address: *const c_void,
        count: i64,
        datatype: raw::Datatype,
        blocks: c_int,
        job: Job,
    ) -> Self {
        let mut side = Self::unchanged(address, count, datatype);
        let Some(layout) = find(datatype).filter(|_| address as usize != abi::IN_PLACE) else {
            return side;
        };
        let Some(all) = count.checked_mul(blocks.into()) else { return side };
        let Some(elements) = Data::checked(address, all, datatype, layout) else { return side };
        side.stage(vec![Segment { piece: Piece::Elements(elements), offset: 0, rank: 0 }], job);
        if let Some(flat) = side.flats.first() {
            side.kind = flat.handle();
        }
        side
    }

    /// A side with a count and a displacement for each rank, and one type. Returns `None` if an argument is wrong.
    ///
    /// # Safety
    ///
    /// - Each array is null or has `ranks` entries.
    pub unsafe fn vector<C: Number, D: Number>(
        address: *const c_void,
        (counts, displacements): (*const C, *const D),
        datatype: raw::Datatype,
        ranks: usize,
        job: Job,
    ) -> Option<Self> {
        let mut side = Self::unchanged(address, 0, datatype);
        if address as usize == abi::IN_PLACE && counts.is_null() {
            return Some(side);
        }
        // SAFETY: the arrays have `ranks` entries (`# Safety`).
        unsafe {
            side.counts = widened(counts, ranks)?;
            side.displacements =
                widened(displacements, ranks)?.iter().map(|&d| d as isize).collect();
        }
        let Some(layout) = find(datatype).filter(|_| address as usize != abi::IN_PLACE) else {
            return Some(side);
        };
        let extent = layout.extent();
        let (size, mut offset, mut place) = (layout.element_bytes() as i64, 0_usize, 0_isize);
        let (mut segments, mut places) = (Vec::new(), Vec::new());
        for (rank, (&count, &displacement)) in
            side.counts.iter().zip(&side.displacements).enumerate()
        {
            places.push(place);
            if count != 0 {
                let distance = (displacement as i64).checked_mul(extent)?;
                let at = address.cast::<u8>().wrapping_offset(distance as isize).cast();
                let elements = Data::checked(at, count, datatype, layout.clone())?;
                segments.push(Segment { piece: Piece::Elements(elements), offset, rank });
                offset = offset.checked_add(usize::try_from(count.checked_mul(size)?).ok()?)?;
                // In elements, which lie one after another in the buffer.
                place = place.checked_add(count as isize)?;
            }
        }
        side.stage(segments, job);
        if let Some(flat) = side.flats.first() {
            (side.displacements, side.kind) = (places, flat.handle());
        }
        Some(side)
    }

    /// A side with a count, a displacement in bytes and a type for each rank. `is_there` says whether a rank exists: an
    /// edge of a grid has none.
    ///
    /// # Errors
    /// If this library does not do the call, returns what the call returns: nothing if an argument is wrong, so that
    /// the host does the call, or the code of an error that the host has raised.
    ///
    /// # Safety
    ///
    /// - Each array is null or has `ranks` entries.
    pub unsafe fn wide<C: Number, D: Number>(
        (next, comm): (&'static Next, raw::Comm),
        address: *const c_void,
        (counts, displacements): (*const C, *const D),
        datatypes: *const raw::Datatype,
        (ranks, is_there): (usize, &dyn Fn(usize) -> bool),
        job: Job,
    ) -> Result<Self, Option<c_int>> {
        let mut side = Self::unchanged(address, 0, raw::Datatype::NULL);
        if address as usize == abi::IN_PLACE && counts.is_null() {
            return Ok(side);
        }
        // SAFETY: the arrays have `ranks` entries (`# Safety`).
        unsafe {
            side.counts = widened(counts, ranks).ok_or(None)?;
            let places = widened(displacements, ranks).ok_or(None)?;
            side.displacements = places.iter().map(|&d| d as isize).collect();
            if datatypes.is_null() {
                return Err(None);
            }
            side.kinds = std::slice::from_raw_parts(datatypes, ranks).to_vec();
        }
        if address as usize == abi::IN_PLACE {
            return Ok(side);
        }
        let there = |&rank: &usize| side.counts[rank] != 0 && is_there(rank);
        let blocks: Vec<_> =
            (0..ranks).filter(there).map(|rank| (rank, find(side.kinds[rank]))).collect();
        let must = job == Job::Unpack
            && blocks.iter().any(|(_, layout)| layout.as_ref().is_some_and(|l| l.must_be_packed()));
        let (mut segments, mut offset, mut places) = (Vec::new(), 0_usize, vec![0; ranks]);
        for (rank, mut layout) in blocks {
            let (count, kind) = (side.counts[rank], side.kinds[rank]);
            let at = address.cast::<u8>().wrapping_offset(side.displacements[rank]).cast_mut();
            let as_run = if layout.is_none() { run(next, kind, count) } else { None };
            if layout.is_none() && as_run.is_none() {
                // A type that is neither known nor known as contiguous. The host does this side, unless another rank
                // may have packed what comes for another block. Then the host unpacks this block too.
                if !must {
                    return Ok(side);
                }
                layout = stranger(next, comm, kind)?;
            }
            let (piece, first, bytes) = match (layout, as_run) {
                (Some(layout), _) => {
                    let elements = Data::checked(at.cast(), count, kind, layout).ok_or(None)?;
                    let bytes = usize::try_from(elements.packed_bytes()).map_err(|_| None)?;
                    (Piece::Elements(elements), 0, bytes)
                }
                // A run keeps its type, whose first byte lies at `first`.
                (None, Some((first, len))) => {
                    (Piece::Run(Run { at: at.wrapping_offset(first), len }), first, len)
                }
                // A type without data.
                (None, None) => continue,
            };
            segments.push(Segment { piece, offset, rank });
            let place = isize::try_from(offset).ok().and_then(|place| place.checked_sub(first));
            places[rank] = place.ok_or(None)?;
            offset = offset.checked_add(bytes).ok_or(None)?;
        }
        side.stage(segments, job);
        if side.is_packed() {
            side.displacements = places;
            let packed = |segment: &&Segment| matches!(segment.piece, Piece::Elements(_));
            for (segment, flat) in side.segments.iter().filter(packed).zip(&side.flats) {
                side.kinds[segment.rank] = flat.handle();
            }
        }
        Ok(side)
    }

    /// Converts counts, and displacements that are no addresses, to C integers. Returns `None` if one does not fit.
    fn narrowed(&mut self, has_addresses: bool) -> Option<()> {
        let counts: Result<_, _> = self.counts.iter().map(|&n| c_int::try_from(n)).collect();
        let places: Result<_, _> = match has_addresses {
            true => Ok(Vec::new()),
            false => self.displacements.iter().map(|&n| c_int::try_from(n)).collect(),
        };
        self.narrow = (counts.ok()?, places.ok()?);
        Some(())
    }

    /// Returns the counts as C integers, after [`Sides::narrowed`].
    pub fn narrow_counts(&self) -> *const c_int {
        self.narrow.0.as_ptr()
    }

    /// Returns the displacements as C integers, after [`Sides::narrowed`].
    pub fn narrow_displacements(&self) -> *const c_int {
        self.narrow.1.as_ptr()
    }

    /// Takes a buffer and contiguous types for the segments, unless all of them are better left to the host or there is
    /// no memory. The buffer counts among those that the pool bounds, unless a segment must be packed.
    fn stage(&mut self, segments: Vec<Segment>, job: Job) {
        let wanted = segments.iter().fold(false, |wanted, segment| {
            // Each layout's chooser counts the call.
            let decided = match (&segment.piece, job) {
                (Piece::Run(_), _) => false,
                (Piece::Elements(elements), Job::Pack) => elements.decide_collective(),
                (Piece::Elements(elements), Job::Unpack) => elements.decide(Job::Unpack).is_some(),
            };
            wanted | decided
        });
        if !wanted {
            return;
        }
        let size = |segment: &Segment| match &segment.piece {
            Piece::Elements(elements) => elements.packed_bytes(),
            Piece::Run(run) => run.len as u64,
        };
        let bytes = segments.iter().map(size).sum();
        let must = segments.iter().any(|segment| match &segment.piece {
            Piece::Elements(elements) => elements.must_be_packed(),
            Piece::Run(_) => false,
        });
        let buffer = if must { Buffer::beyond(bytes) } else { Buffer::new(bytes) };
        match buffer.zip(flats(&segments)) {
            Some((buffer, flats)) => {
                self.address = buffer.address().cast();
                (self.buffer, self.segments, self.flats) = (Some(buffer), segments, flats);
            }
            None => add(&COUNTS.passed, 1),
        }
    }

    /// Returns whether the host gets packed bytes.
    pub fn is_packed(&self) -> bool {
        self.buffer.is_some()
    }

    /// Packs the elements into the buffer: what is sent, or what a receive in place begins with. Returns whether that
    /// was done: the host, which packs types that only it knows, may fail.
    ///
    /// # Safety
    ///
    /// - The program lets the call read the elements.
    #[must_use]
    pub unsafe fn fill(&self) -> bool {
        let mut done = true;
        if let Some(buffer) = &self.buffer {
            for Segment { piece, offset, .. } in &self.segments {
                // SAFETY: the elements are readable (`# Safety`), and the buffer has room for all segments.
                unsafe {
                    done &= match piece {
                        Piece::Elements(elements) => elements.pack(buffer, *offset),
                        Piece::Run(run) => run.pack(buffer.address().add(*offset)),
                    };
                }
            }
        }
        done
    }
}

/// Returns the contiguous types for the segments that have elements; `None` if the host cannot make one.
fn flats(segments: &[Segment]) -> Option<Vec<Arc<Twin>>> {
    let mut last: Option<(&Data, Arc<Twin>)> = None;
    let mut flats = Vec::new();
    for segment in segments {
        let Piece::Elements(elements) = &segment.piece else { continue };
        let flat = match last {
            Some((other, flat)) if elements.have_the_layout_of(other) => flat,
            _ => elements.flat()?,
        };
        flats.push(flat.clone());
        last = Some((elements, flat));
    }
    Some(flats)
}

/// Copies an array of numbers into the wide type; `None` if the array is null and `len` is not 0.
///
/// # Safety
///
/// - The array is null or has `len` entries.
unsafe fn widened<N: Number>(array: *const N, len: usize) -> Option<Vec<i64>> {
    if array.is_null() {
        return (len == 0).then(Vec::new);
    }
    // SAFETY: `widened` has the same conditions (`# Safety`).
    Some(
        unsafe { std::slice::from_raw_parts(array, len) }
            .iter()
            .map(|number| number.wide())
            .collect(),
    )
}

/// Returns a layout without kernels for a type that this library has not seen being committed: a Fortran type with a
/// chosen precision, which needs no commit, or a type of a library that is linked with the host alone. Returns nothing
/// for a type without data.
///
/// # Errors
/// The call returns the error, which the host has raised, if the type is not committed or not valid.
fn stranger(
    next: &'static Next,
    comm: raw::Comm,
    kind: raw::Datatype,
) -> Result<Option<Arc<Layout>>, Option<c_int>> {
    // Those of earlier calls.
    free_twins(next);
    let mut place = 0_u64;
    let mut status = Status { source: abi::ANY_SOURCE, ..Status::default() };
    // The host checks the type when it receives from nobody, as it does in the call of the program. MPICH does not
    // check the type of no element.
    // SAFETY: nothing is received, so that nothing is written at `place`. The status is writable.
    match unsafe {
        let to = (&raw mut place).cast();
        next.PMPI_Recv(to, 1, kind, abi::PROC_NULL, 0, comm, &mut status)
    } {
        // MPICH 5.0.2 returns no error if an error handler of the program has returned.
        abi::SUCCESS if status.source == abi::PROC_NULL => {
            Ok(Layout::of_host(next, kind).map(Arc::new))
        }
        code => Err(Some(code)),
    }
}

/// Returns where `count` elements of a contiguous type begin, relative to their address, and how many bytes they have.
/// Returns `None` if the type is not contiguous, or is not known to be.
fn run(next: &Next, kind: raw::Datatype, count: i64) -> Option<(isize, usize)> {
    if !is_in_order(kind) {
        return None;
    }
    let (mut size, mut lb, mut extent, mut first, mut true_extent) = (0, 0, 0, 0, 0);
    // SAFETY: the results are writable. The host checks the handle.
    let codes = unsafe {
        [
            next.PMPI_Type_size_c(kind, &mut size),
            next.PMPI_Type_get_extent_c(kind, &mut lb, &mut extent),
            next.PMPI_Type_get_true_extent_c(kind, &mut first, &mut true_extent),
        ]
    };
    if codes == [abi::SUCCESS; 3] && size == 0 {
        return Some((0, 0));
    }
    let whole = size == true_extent && (count == 1 || size == extent);
    let bytes = usize::try_from(size.checked_mul(count)?).ok()?;
    (codes == [abi::SUCCESS; 3] && whole).then_some((first as isize, bytes))
}

/// Returns whether a number is that of a form with large counts.
pub fn is_large<N: Number>() -> bool {
    N::exactly(i64::MAX).is_some()
}

/// Returns the size and the rank of this process in a communicator that the host knows.
pub fn size_and_rank(next: &Next, comm: raw::Comm) -> Option<(c_int, c_int)> {
    let (mut size, mut rank) = (0, 0);
    // SAFETY: the results are writable.
    let codes =
        unsafe { [next.PMPI_Comm_size(comm, &mut size), next.PMPI_Comm_rank(comm, &mut rank)] };
    (codes == [abi::SUCCESS; 2]).then_some((size, rank))
}
