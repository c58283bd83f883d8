//! The send side and the receive side of a collective call, in packed form.

use crate::host::Next;
use crate::pool::Buffer;
use crate::report::{COUNTS, add};
use crate::transfer::{Elements, PACKED};
use crate::types::choice::Job;
use crate::types::find;
use std::ffi::{c_int, c_void};
use typepack_capi_datatype::count_width::Number;
use typepack_capi_datatype::{abi, raw};

/// Elements in memory, and where their packed bytes lie in a buffer.
struct Segment {
    elements: Elements,
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
    buffer: Option<Buffer>,
    segments: Vec<Segment>,
}

// SAFETY: the addresses belong to the program, which leaves the memory to the library until the operation completes.
unsafe impl Send for Side {}

/// Both sides of a call, which live until the call is complete.
pub struct Sides {
    /// What is sent.
    pub send: Side,
    /// What is received.
    pub receive: Side,
}

impl Sides {
    /// Returns both sides if at least one of them is packed.
    pub fn new(send: Side, receive: Side) -> Option<Self> {
        if !send.is_packed() && !receive.is_packed() {
            return None;
        }
        add(&COUNTS.taken, 1);
        Some(Self { send, receive })
    }

    /// Unpacks what was received.
    ///
    /// # Safety
    ///
    /// - The host's call is complete, without an error.
    pub unsafe fn deliver(&self) {
        if let Some(buffer) = &self.receive.buffer {
            for Segment { elements, offset, .. } in &self.receive.segments {
                // SAFETY: the host has received the packed elements there, or they were packed there before the call
                // (`Side::fill`). The program lets the call write the elements.
                unsafe { elements.unpack_at(buffer, *offset) };
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
            buffer: None,
            segments: Vec::new(),
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

    /// Returns this side without the elements of the ranks for which `is_missing`: the host does not write their bytes.
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
        let size = layout.plan.element_bytes() as i64;
        let Some(elements) = Elements::checked(address, all, layout) else { return side };
        let Some(bytes) = count.checked_mul(size) else { return side };
        side.stage(vec![Segment { elements, offset: 0, rank: 0 }], job);
        if side.is_packed() {
            (side.count, side.kind) = (bytes, PACKED);
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
        let extent = layout.plan.footprint().extent;
        let (size, mut offset) = (layout.plan.element_bytes() as i64, 0_usize);
        let (mut segments, mut places, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for (rank, (&count, &displacement)) in
            side.counts.iter().zip(&side.displacements).enumerate()
        {
            places.push(offset as isize);
            bytes.push(count.checked_mul(size)?);
            if count != 0 {
                let distance = (displacement as i64).checked_mul(extent)?;
                let at = address.cast::<u8>().wrapping_offset(distance as isize).cast();
                let elements = Elements::checked(at, count, layout.clone())?;
                segments.push(Segment { elements, offset, rank });
                offset = offset.checked_add(usize::try_from(count.checked_mul(size)?).ok()?)?;
            }
        }
        side.stage(segments, job);
        if side.is_packed() {
            (side.counts, side.displacements, side.kind) = (bytes, places, PACKED);
        }
        Some(side)
    }

    /// A side with a count, a displacement in bytes and a type for each rank. `is_there` says whether a rank exists: an
    /// edge of a grid has none. Returns `None` if an argument is wrong.
    ///
    /// # Safety
    ///
    /// - Each array is null or has `ranks` entries.
    pub unsafe fn wide<C: Number, D: Number>(
        address: *const c_void,
        (counts, displacements): (*const C, *const D),
        datatypes: *const raw::Datatype,
        (ranks, is_there): (usize, &dyn Fn(usize) -> bool),
        job: Job,
    ) -> Option<Self> {
        let mut side = Self::unchanged(address, 0, raw::Datatype::NULL);
        if address as usize == abi::IN_PLACE && counts.is_null() {
            return Some(side);
        }
        // SAFETY: the arrays have `ranks` entries (`# Safety`).
        unsafe {
            side.counts = widened(counts, ranks)?;
            side.displacements =
                widened(displacements, ranks)?.iter().map(|&d| d as isize).collect();
            if datatypes.is_null() {
                return None;
            }
            side.kinds = std::slice::from_raw_parts(datatypes, ranks).to_vec();
        }
        if address as usize == abi::IN_PLACE {
            return Some(side);
        }
        let (mut segments, mut staged, mut offset) = (Vec::new(), Vec::new(), 0_usize);
        for rank in 0..ranks {
            let Some(layout) = find(side.kinds[rank]) else { continue };
            let count = side.counts[rank];
            if count == 0 || !is_there(rank) {
                continue;
            }
            let at = address.cast::<u8>().wrapping_offset(side.displacements[rank]).cast();
            let bytes = count.checked_mul(layout.plan.element_bytes() as i64)?;
            let elements = Elements::checked(at, count, layout)?;
            segments.push(Segment { elements, offset, rank });
            staged.push((rank, bytes, offset));
            offset = offset.checked_add(usize::try_from(bytes).ok()?)?;
        }
        side.stage(segments, job);
        if side.is_packed() {
            // The displacements of all ranks count from the packed buffer now.
            let moved = (address as isize).wrapping_sub(side.address as isize);
            for displacement in &mut side.displacements {
                *displacement = displacement.wrapping_add(moved);
            }
            for (rank, bytes, offset) in staged {
                side.counts[rank] = bytes;
                side.displacements[rank] = offset as isize;
                side.kinds[rank] = PACKED;
            }
        }
        Some(side)
    }

    /// Takes a buffer for the segments, unless all of them are better left to the host or there is no memory.
    fn stage(&mut self, segments: Vec<Segment>, job: Job) {
        let wanted = segments.iter().fold(false, |wanted, segment| {
            // Each layout's chooser counts the call.
            let decided = match job {
                Job::Pack => segment.elements.decide_collective(),
                Job::Unpack => segment.elements.decide(Job::Unpack).is_some(),
            };
            wanted | decided
        });
        if !wanted {
            return;
        }
        let bytes = segments.iter().map(|segment| segment.elements.packed_bytes()).sum();
        if let Some(buffer) = Buffer::beyond(bytes) {
            self.address = buffer.address().cast();
            (self.buffer, self.segments) = (Some(buffer), segments);
        }
    }

    /// Returns whether the host gets packed bytes.
    pub fn is_packed(&self) -> bool {
        self.buffer.is_some()
    }

    /// Packs the elements into the buffer: what is sent, or what a receive in place begins with.
    ///
    /// # Safety
    ///
    /// - The program lets the call read the elements.
    pub unsafe fn fill(&self) {
        if let Some(buffer) = &self.buffer {
            for Segment { elements, offset, .. } in &self.segments {
                // SAFETY: the elements are readable (`# Safety`), and the buffer has room for all segments.
                unsafe { elements.pack_at(buffer, *offset) };
            }
        }
    }
}

/// Copies an array of numbers into the wide type; `None` if the array is null or a number is negative where it must not be.
///
/// # Safety
///
/// - The array is null or has `len` entries.
unsafe fn widened<N: Number>(array: *const N, len: usize) -> Option<Vec<i64>> {
    if array.is_null() {
        return (len == 0).then(Vec::new);
    }
    // SAFETY: see `# Safety`.
    Some(
        unsafe { std::slice::from_raw_parts(array, len) }
            .iter()
            .map(|number| number.wide())
            .collect(),
    )
}

/// Returns the size and the rank of this process in a communicator that the host knows.
pub fn size_and_rank(next: &Next, comm: raw::Comm) -> Option<(c_int, c_int)> {
    let (mut size, mut rank) = (0, 0);
    // SAFETY: the results are writable.
    let codes =
        unsafe { [next.PMPI_Comm_size(comm, &mut size), next.PMPI_Comm_rank(comm, &mut rank)] };
    (codes == [abi::SUCCESS; 2]).then_some((size, rank))
}
