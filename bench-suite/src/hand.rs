//! The hand-written loops: what a good programmer writes instead of a datatype.
//!
//! Block sizes are compile-time constants, counts and strides are run-time arguments, the bounds
//! are checked once before the loop, and memory and packed bytes are slices, so that the compiler
//! knows they do not overlap. Nothing is unrolled or vectorised by hand, and nothing is held back.
//! `competitor.rs` calls these; `layout.rs` says with which numbers.

use crate::layout::HandNest;

/// Packs `nest`.
///
/// # Panics
///
/// When a slice is too short, or structs are not aligned.
pub fn pack(nest: &HandNest, memory: &[u8], packed: &mut [u8]) {
    match *nest {
        HandNest::Column { block: 8, count, stride } => {
            pack_column::<8>(memory, count, stride, packed);
        }
        HandNest::Column { block: 16, count, stride } => {
            pack_column::<16>(memory, count, stride, packed);
        }
        HandNest::Column { block: 32, count, stride } => {
            pack_column::<32>(memory, count, stride, packed);
        }
        HandNest::Column { block: 64, count, stride } => {
            pack_column::<64>(memory, count, stride, packed);
        }
        HandNest::Column { block, count, stride } => {
            pack_rows(memory, block, [1, 1, count], [0, 0, stride], packed);
        }
        HandNest::Box3 { start, block: 8, counts, strides } => {
            pack_box::<8>(&memory[start..], counts, strides, packed);
        }
        HandNest::Box3 { start, block: 16, counts, strides } => {
            pack_box::<16>(&memory[start..], counts, strides, packed);
        }
        HandNest::Box3 { start, block, counts, strides } => {
            pack_rows(&memory[start..], block, counts, strides, packed);
        }
        HandNest::CharIntDouble { count } => pack_records(memory, count, packed),
    }
}

/// Unpacks `nest`.
///
/// # Panics
///
/// As [`pack`].
pub fn unpack(nest: &HandNest, packed: &[u8], memory: &mut [u8]) {
    match *nest {
        HandNest::Column { block: 8, count, stride } => {
            unpack_column::<8>(packed, count, stride, memory);
        }
        HandNest::Column { block: 16, count, stride } => {
            unpack_column::<16>(packed, count, stride, memory);
        }
        HandNest::Column { block: 32, count, stride } => {
            unpack_column::<32>(packed, count, stride, memory);
        }
        HandNest::Column { block: 64, count, stride } => {
            unpack_column::<64>(packed, count, stride, memory);
        }
        HandNest::Column { block, count, stride } => {
            unpack_rows(packed, block, [1, 1, count], [0, 0, stride], memory);
        }
        HandNest::Box3 { start, block: 8, counts, strides } => {
            unpack_box::<8>(packed, counts, strides, &mut memory[start..]);
        }
        HandNest::Box3 { start, block: 16, counts, strides } => {
            unpack_box::<16>(packed, counts, strides, &mut memory[start..]);
        }
        HandNest::Box3 { start, block, counts, strides } => {
            unpack_rows(packed, block, counts, strides, &mut memory[start..]);
        }
        HandNest::CharIntDouble { count } => unpack_records(packed, count, memory),
    }
}

/// Bytes of memory that three loops over blocks reach.
fn reach(block: usize, counts: [usize; 3], strides: [usize; 3]) -> usize {
    let last: usize = counts.iter().zip(strides).map(|(count, stride)| (count - 1) * stride).sum();
    last + block
}

fn check(block: usize, counts: [usize; 3], strides: [usize; 3], memory: usize, packed: usize) {
    let blocks: usize = counts.iter().product();
    assert!(counts.iter().all(|&count| count > 0), "an empty loop");
    assert!(reach(block, counts, strides) <= memory, "memory is too short");
    assert!(blocks * block <= packed, "the packed bytes are too short");
}

fn pack_column<const B: usize>(memory: &[u8], count: usize, stride: usize, packed: &mut [u8]) {
    check(B, [1, 1, count], [0, 0, stride], memory.len(), packed.len());
    let (memory, packed) = (memory.as_ptr(), packed.as_mut_ptr());
    for i in 0..count {
        // SAFETY: `check` has seen that the last block of both sides, hence every block, lies
        // within its slice; the slices do not overlap.
        unsafe { memory.add(i * stride).copy_to_nonoverlapping(packed.add(i * B), B) };
    }
}

fn unpack_column<const B: usize>(packed: &[u8], count: usize, stride: usize, memory: &mut [u8]) {
    check(B, [1, 1, count], [0, 0, stride], memory.len(), packed.len());
    let (memory, packed) = (memory.as_mut_ptr(), packed.as_ptr());
    for i in 0..count {
        // SAFETY: as in `pack_column`.
        unsafe { packed.add(i * B).copy_to_nonoverlapping(memory.add(i * stride), B) };
    }
}

fn pack_box<const B: usize>(
    memory: &[u8],
    counts: [usize; 3],
    strides: [usize; 3],
    packed: &mut [u8],
) {
    check(B, counts, strides, memory.len(), packed.len());
    let (memory, mut packed) = (memory.as_ptr(), packed.as_mut_ptr());
    for field in 0..counts[0] {
        for plane in 0..counts[1] {
            let start = field * strides[0] + plane * strides[1];
            for row in 0..counts[2] {
                // SAFETY: `check` has seen that the last block of both sides, hence every block,
                // lies within its slice; the slices do not overlap. `packed` moves one block per
                // iteration, in the end to the slice's end at most.
                unsafe {
                    memory.add(start + row * strides[2]).copy_to_nonoverlapping(packed, B);
                    packed = packed.add(B);
                }
            }
        }
    }
}

fn unpack_box<const B: usize>(
    packed: &[u8],
    counts: [usize; 3],
    strides: [usize; 3],
    memory: &mut [u8],
) {
    check(B, counts, strides, memory.len(), packed.len());
    let (memory, mut packed) = (memory.as_mut_ptr(), packed.as_ptr());
    for field in 0..counts[0] {
        for plane in 0..counts[1] {
            let start = field * strides[0] + plane * strides[1];
            for row in 0..counts[2] {
                // SAFETY: as in `pack_box`.
                unsafe {
                    packed.copy_to_nonoverlapping(memory.add(start + row * strides[2]), B);
                    packed = packed.add(B);
                }
            }
        }
    }
}

/// Rows whose length only the caller knows: one `copy_from_slice` each.
fn pack_rows(
    memory: &[u8],
    row_bytes: usize,
    counts: [usize; 3],
    strides: [usize; 3],
    packed: &mut [u8],
) {
    check(row_bytes, counts, strides, memory.len(), packed.len());
    let mut rows = packed.chunks_exact_mut(row_bytes);
    for field in 0..counts[0] {
        for plane in 0..counts[1] {
            let start = field * strides[0] + plane * strides[1];
            for (row, out) in (0..counts[2]).zip(&mut rows) {
                let from = start + row * strides[2];
                out.copy_from_slice(&memory[from..from + row_bytes]);
            }
        }
    }
}

fn unpack_rows(
    packed: &[u8],
    row_bytes: usize,
    counts: [usize; 3],
    strides: [usize; 3],
    memory: &mut [u8],
) {
    check(row_bytes, counts, strides, memory.len(), packed.len());
    let mut rows = packed.chunks_exact(row_bytes);
    for field in 0..counts[0] {
        for plane in 0..counts[1] {
            let start = field * strides[0] + plane * strides[1];
            for (row, data) in (0..counts[2]).zip(&mut rows) {
                let to = start + row * strides[2];
                memory[to..to + row_bytes].copy_from_slice(data);
            }
        }
    }
}

/// `struct { char c; int i; double d; }`, as C lays it out.
#[repr(C)]
struct CharIntDouble {
    c: u8,
    i: u32,
    d: f64,
}

const RECORD: usize = size_of::<CharIntDouble>();
const RECORD_DATA: usize = 13;

fn pack_records(memory: &[u8], count: usize, packed: &mut [u8]) {
    assert!(count * RECORD <= memory.len(), "memory is too short");
    assert!(count * RECORD_DATA <= packed.len(), "the packed bytes are too short");
    let records = memory.as_ptr().cast::<CharIntDouble>();
    assert!(records.is_aligned(), "structs are aligned");
    let packed = packed.as_mut_ptr();
    for i in 0..count {
        // SAFETY: `count` whole, aligned structs lie within `memory`, and `count` times 13 bytes
        // within `packed`, as asserted; any bytes are a valid `u8`, `u32` and `f64`. The slices do
        // not overlap. Packed fields are not aligned, so they are written as such.
        unsafe {
            let record = &*records.add(i);
            let out = packed.add(i * RECORD_DATA);
            out.write(record.c);
            out.add(1).cast::<u32>().write_unaligned(record.i);
            out.add(5).cast::<f64>().write_unaligned(record.d);
        }
    }
}

fn unpack_records(packed: &[u8], count: usize, memory: &mut [u8]) {
    assert!(count * RECORD <= memory.len(), "memory is too short");
    assert!(count * RECORD_DATA <= packed.len(), "the packed bytes are too short");
    let records = memory.as_mut_ptr().cast::<CharIntDouble>();
    assert!(records.is_aligned(), "structs are aligned");
    let packed = packed.as_ptr();
    for i in 0..count {
        // SAFETY: as in `pack_records`. Only fields are written, never the padding.
        unsafe {
            let record = &mut *records.add(i);
            let data = packed.add(i * RECORD_DATA);
            record.c = data.read();
            record.i = data.add(1).cast::<u32>().read_unaligned();
            record.d = data.add(5).cast::<f64>().read_unaligned();
        }
    }
}
