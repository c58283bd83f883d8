//! Where the bytes of a datatype lie, and which predefined datatypes they belong to. Only public calls tell it, so it is
//! right for every datatype of every library.

use crate::{abi, cast, raw};
use std::ffi::{c_int, c_void};

/// Where one element of a datatype lies, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The bytes of the element's values.
    pub size: i64,
    /// The distance of two elements.
    pub extent: i64,
    /// The offset of the first byte.
    pub low: i64,
    /// The offset behind the last byte.
    pub high: i64,
}

/// Returns the bounds of a datatype.
///
/// # Errors
///
/// Returns the error class: the handle is not that of a datatype.
pub fn bounds(datatype: raw::Datatype) -> Result<Bounds, c_int> {
    let (mut size, mut lower, mut extent, mut low, mut span) = (0, 0, 0, 0, 0);
    // SAFETY: the results are written to numbers.
    let code = unsafe {
        match abi::PMPI_Type_size_c(datatype, &raw mut size) {
            0 => match abi::PMPI_Type_get_extent_c(datatype, &raw mut lower, &raw mut extent) {
                0 => abi::PMPI_Type_get_true_extent_c(datatype, &raw mut low, &raw mut span),
                code => code,
            },
            code => code,
        }
    };
    if code != 0 {
        return Err(code);
    }
    let high = low.checked_add(span).ok_or(raw::ERR_TYPE)?;
    if size <= 0 {
        return Ok(Bounds { size: 0, extent, low: 0, high: 0 });
    }
    Ok(Bounds { size, extent, low, high })
}

/// Returns `number` zeros.
///
/// # Errors
///
/// Returns `MPI_ERR_NO_MEM` if there is no memory.
pub fn zeros<T: Clone + Default>(number: i64) -> Result<Vec<T>, c_int> {
    let number = usize::try_from(number).map_err(|_| raw::ERR_NO_MEM)?;
    let mut list = Vec::new();
    list.try_reserve_exact(number).map_err(|_| raw::ERR_NO_MEM)?;
    list.resize(number, T::default());
    Ok(list)
}

/// Returns the offset of each byte of one element of a datatype, in the order of packing.
///
/// Packing memory whose bytes are numbers shows which byte of the datatype goes where, whatever the datatype is.
///
/// # Errors
///
/// Returns the error class: there is no memory, or the library cannot pack the datatype.
pub fn bytes(datatype: raw::Datatype, bounds: Bounds) -> Result<Vec<i64>, c_int> {
    let size = bounds.size;
    let mut offsets = zeros::<i64>(size)?;
    let mut memory = zeros::<u8>(bounds.high - bounds.low)?;
    let mut packed = zeros::<u8>(size)?;
    // Each turn shows eight more bits of the offsets.
    let span = memory.len();
    for turn in (0..usize::BITS).step_by(8).take_while(|turn| span >> turn > 0) {
        for (at, byte) in memory.iter_mut().enumerate() {
            *byte = (at >> turn) as u8;
        }
        let mut position = 0;
        let element = memory.as_ptr().wrapping_offset(-bounds.low as isize).cast::<c_void>();
        let (to, at) = (packed.as_mut_ptr().cast(), &raw mut position);
        // SAFETY: the memory has all bytes of one element, and there is room for all of them.
        let code = unsafe {
            match cast::pack() {
                Some(pack) => pack(element, 1, datatype, to, size, at),
                None => abi::PMPI_Pack_c(element, 1, datatype, to, size, at, raw::COMM_SELF),
            }
        };
        if code != 0 || position != size {
            return Err(if code != 0 { code } else { raw::ERR_TYPE });
        }
        for (offset, byte) in offsets.iter_mut().zip(&packed) {
            *offset |= i64::from(*byte) << turn;
        }
    }
    for offset in &mut offsets {
        *offset += bounds.low;
    }
    Ok(offsets)
}

/// The predefined datatypes of one element of a datatype in the order of packing, each with how often it follows.
pub type Leaves = Vec<(raw::Datatype, i64)>;

/// Appends the leaves of `times` elements.
fn repeat(leaves: &mut Leaves, of: &[(raw::Datatype, i64)], times: i64) -> Result<(), c_int> {
    if let [(leaf, number)] = of {
        let number = number.checked_mul(times).ok_or(raw::ERR_TYPE)?;
        match leaves.last_mut() {
            Some((last, before)) if last == leaf => *before += number,
            _ if number > 0 => leaves.push((*leaf, number)),
            _ => {}
        }
        return Ok(());
    }
    let room = usize::try_from(times).ok().and_then(|times| times.checked_mul(of.len()));
    leaves.try_reserve(room.unwrap_or(usize::MAX)).map_err(|_| raw::ERR_NO_MEM)?;
    for _ in 0..times {
        leaves.extend_from_slice(of);
    }
    Ok(())
}

/// Returns the leaves of a datatype.
///
/// # Errors
///
/// Returns the error class: there is no memory, or the library cannot decode the datatype.
pub fn leaves(datatype: raw::Datatype) -> Result<Leaves, c_int> {
    // The datatype, the one within it, and so on. A type may be nested deeper than a thread's stack allows.
    let mut open = vec![Level::of(datatype, 1)?];
    while let Some(level) = open.last_mut() {
        if let Some((part, times)) = level.rest.pop() {
            let next = Level::of(part, times)?;
            open.try_reserve(1).map_err(|_| raw::ERR_NO_MEM)?;
            open.push(next);
        } else if let Some(done) = open.pop() {
            match open.last_mut() {
                Some(outer) => repeat(&mut outer.leaves, &done.leaves, done.times)?,
                None => return Ok(done.leaves),
            }
        }
    }
    Ok(Leaves::new())
}

/// A datatype whose leaves are being collected.
struct Level {
    /// The leaves of the parts so far.
    leaves: Leaves,
    /// How often the datatype follows in the outer one.
    times: i64,
    /// The other parts and how often each follows, the last one first.
    rest: Vec<(raw::Datatype, i64)>,
    _parts: Vec<Part>,
}

impl Level {
    /// Decodes a datatype.
    fn of(datatype: raw::Datatype, times: i64) -> Result<Self, c_int> {
        let leaf = || {
            // A datatype without bytes, such as `MPI_LB`, has no leaves.
            let leaves = match bounds(datatype)?.size {
                0 => Leaves::new(),
                _ => vec![(datatype, 1)],
            };
            Ok(Self { leaves, times, rest: Vec::new(), _parts: Vec::new() })
        };
        if datatype.0 < raw::PREDEFINED {
            return leaf();
        }
        let (mut integers, mut addresses, mut counts, mut types, mut combiner) = (0, 0, 0, 0, 0);
        // SAFETY: the results are written to numbers.
        let code = unsafe {
            abi::PMPI_Type_get_envelope_c(
                datatype,
                &raw mut integers,
                &raw mut addresses,
                &raw mut counts,
                &raw mut types,
                &raw mut combiner,
            )
        };
        if code != 0 {
            return Err(code);
        }
        if types == 0 {
            // A datatype without parts, such as one of `MPI_Type_create_f90_real`.
            return leaf();
        }
        let (mut numbers, mut large) = (zeros::<c_int>(integers)?, zeros::<i64>(counts)?);
        let mut places = zeros::<raw::Aint>(addresses)?;
        let mut parts = zeros::<usize>(types)?;
        // SAFETY: the arrays have as many entries as the call is told; a handle is a `usize`.
        let code = unsafe {
            abi::PMPI_Type_get_contents_c(
                datatype,
                integers,
                addresses,
                counts,
                types,
                numbers.as_mut_ptr(),
                places.as_mut_ptr(),
                large.as_mut_ptr(),
                parts.as_mut_ptr().cast(),
            )
        };
        if code != 0 {
            return Err(code);
        }
        let parts: Vec<Part> = parts.into_iter().map(|part| Part(raw::Datatype(part))).collect();
        let structs = [raw::COMBINER_STRUCT, raw::COMBINER_STRUCT_INTEGER];
        let rest: Vec<_> = if structs.contains(&combiner) {
            // The number of blocks, then their lengths; as large counts if the datatype was made with them.
            let lengths: Vec<i64> = match large.is_empty() {
                true => numbers.iter().skip(1).map(|number| i64::from(*number)).collect(),
                false => large.iter().skip(1).copied().collect(),
            };
            let blocks = parts.iter().map(|part| part.0).zip(lengths).rev();
            blocks.filter(|(part, _)| *part != raw::DATATYPE_NULL).collect()
        } else {
            // Every other combiner repeats one datatype.
            let [part] = &parts[..] else { return Err(raw::ERR_TYPE) };
            match (bounds(datatype)?.size, bounds(part.0)?.size) {
                (_, 0) => Vec::new(),
                (whole, each) => vec![(part.0, whole / each)],
            }
        };
        Ok(Self { leaves: Leaves::new(), times, rest, _parts: parts })
    }
}

/// A datatype that decoding has returned. It is freed, unless it is predefined.
struct Part(raw::Datatype);

impl Drop for Part {
    fn drop(&mut self) {
        let (mut a, mut b, mut c, mut types, mut combiner) = (0, 0, 0, 0, 0);
        if self.0.0 < raw::PREDEFINED {
            return;
        }
        // SAFETY: the results are written to numbers, and the handle is ours if it has parts.
        unsafe {
            let code = abi::PMPI_Type_get_envelope_c(
                self.0,
                &raw mut a,
                &raw mut b,
                &raw mut c,
                &raw mut types,
                &raw mut combiner,
            );
            if code == 0 && types > 0 {
                abi::PMPI_Type_free(&raw mut self.0);
            }
        }
    }
}
