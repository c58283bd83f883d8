//! The hand-written loops: what a good programmer writes instead of a datatype.
//!
//! Block sizes are compile-time constants, counts and strides are run-time arguments, the bounds
//! are checked once before the loop, and memory and packed bytes are slices, so that the compiler
//! knows they do not overlap. Nothing is unrolled or vectorised by hand, and nothing is held back:
//! the loops exist twice, for any machine and for AVX-512, so that the compiler may use what a
//! build for the machine would use. Lists check every entry, as safe Rust does.
//! `competitor.rs` calls these; `layout.rs` says with which numbers.

use crate::layout::HandNest;

/// Calls `$f::<B>` for the block lengths that a programmer would know at compile time, or evaluates
/// `$other`.
macro_rules! with_block {
    ($block:expr, $f:ident($($argument:expr),*), $other:expr) => {
        match $block {
            1 => $f::<1>($($argument),*),
            2 => $f::<2>($($argument),*),
            4 => $f::<4>($($argument),*),
            8 => $f::<8>($($argument),*),
            12 => $f::<12>($($argument),*),
            16 => $f::<16>($($argument),*),
            24 => $f::<24>($($argument),*),
            32 => $f::<32>($($argument),*),
            40 => $f::<40>($($argument),*),
            64 => $f::<64>($($argument),*),
            _ => $other,
        }
    };
}

/// Packs `nest`.
///
/// # Panics
///
/// When a slice is too short, or structs are not aligned.
pub fn pack(nest: &HandNest, memory: &[u8], packed: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: `has_avx512` has seen every feature that `pack_avx512` is compiled for.
        return unsafe { pack_avx512(nest, memory, packed) };
    }
    pack_any(nest, memory, packed);
}

/// Unpacks `nest`.
///
/// # Panics
///
/// As [`pack`].
pub fn unpack(nest: &HandNest, packed: &[u8], memory: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: `has_avx512` has seen every feature that `unpack_avx512` is compiled for.
        return unsafe { unpack_avx512(nest, packed, memory) };
    }
    unpack_any(nest, packed, memory);
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vbmi")
}

/// What a build for this machine (`-C target-cpu=native`) makes of the loops: all of them are
/// inlined into this function.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi")]
fn pack_avx512(nest: &HandNest, memory: &[u8], packed: &mut [u8]) {
    pack_any(nest, memory, packed);
}

/// As `pack_avx512`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi")]
fn unpack_avx512(nest: &HandNest, packed: &[u8], memory: &mut [u8]) {
    unpack_any(nest, packed, memory);
}

#[inline(always)]
fn pack_any(nest: &HandNest, memory: &[u8], packed: &mut [u8]) {
    match *nest {
        HandNest::Column { block, count, stride } => {
            with_block!(
                block,
                pack_column(memory, count, stride, packed),
                pack_rows(memory, block, [1, 1, count], [0, 0, stride], packed)
            );
        }
        HandNest::Box3 { start, block, counts, strides } => {
            let memory = &memory[start..];
            with_block!(
                block,
                pack_box(memory, counts, strides, packed),
                pack_rows(memory, block, counts, strides, packed)
            );
        }
        HandNest::CharIntDouble { count } => pack_records(memory, count, packed),
        HandNest::Particle { count } => pack_particles(memory, count, packed),
        HandNest::Offsets { block: 4, ref offsets } => pack_list::<4>(memory, offsets, packed),
        HandNest::Offsets { block: 8, ref offsets } => pack_list::<8>(memory, offsets, packed),
        HandNest::Offsets { block, ref offsets } => {
            for (out, &offset) in packed.chunks_exact_mut(block).zip(offsets.iter()) {
                out.copy_from_slice(&memory[offset..offset + block]);
            }
        }
        HandNest::Runs(ref runs) => {
            let mut rest = packed;
            for &(offset, length) in runs.iter() {
                let out;
                (out, rest) = rest.split_at_mut(length);
                out.copy_from_slice(&memory[offset..offset + length]);
            }
        }
    }
}

#[inline(always)]
fn unpack_any(nest: &HandNest, packed: &[u8], memory: &mut [u8]) {
    match *nest {
        HandNest::Column { block, count, stride } => {
            with_block!(
                block,
                unpack_column(packed, count, stride, memory),
                unpack_rows(packed, block, [1, 1, count], [0, 0, stride], memory)
            );
        }
        HandNest::Box3 { start, block, counts, strides } => {
            let memory = &mut memory[start..];
            with_block!(
                block,
                unpack_box(packed, counts, strides, memory),
                unpack_rows(packed, block, counts, strides, memory)
            );
        }
        HandNest::CharIntDouble { count } => unpack_records(packed, count, memory),
        HandNest::Particle { count } => unpack_particles(packed, count, memory),
        HandNest::Offsets { block: 4, ref offsets } => unpack_list::<4>(packed, offsets, memory),
        HandNest::Offsets { block: 8, ref offsets } => unpack_list::<8>(packed, offsets, memory),
        HandNest::Offsets { block, ref offsets } => {
            for (data, &offset) in packed.chunks_exact(block).zip(offsets.iter()) {
                memory[offset..offset + block].copy_from_slice(data);
            }
        }
        HandNest::Runs(ref runs) => {
            let mut rest = packed;
            for &(offset, length) in runs.iter() {
                let data;
                (data, rest) = rest.split_at(length);
                memory[offset..offset + length].copy_from_slice(data);
            }
        }
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

#[inline(always)]
fn pack_column<const B: usize>(memory: &[u8], count: usize, stride: usize, packed: &mut [u8]) {
    check(B, [1, 1, count], [0, 0, stride], memory.len(), packed.len());
    let (memory, packed) = (memory.as_ptr(), packed.as_mut_ptr());
    for i in 0..count {
        // SAFETY: `check` has seen that the last block of both sides, hence every block, lies
        // within its slice; the slices do not overlap.
        unsafe { memory.add(i * stride).copy_to_nonoverlapping(packed.add(i * B), B) };
    }
}

#[inline(always)]
fn unpack_column<const B: usize>(packed: &[u8], count: usize, stride: usize, memory: &mut [u8]) {
    check(B, [1, 1, count], [0, 0, stride], memory.len(), packed.len());
    let (memory, packed) = (memory.as_mut_ptr(), packed.as_ptr());
    for i in 0..count {
        // SAFETY: as in `pack_column`.
        unsafe { packed.add(i * B).copy_to_nonoverlapping(memory.add(i * stride), B) };
    }
}

#[inline(always)]
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

#[inline(always)]
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
#[inline(always)]
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

#[inline(always)]
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

#[inline(always)]
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

#[inline(always)]
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

/// Blocks of `B` bytes at listed offsets; each offset is checked by its slice.
#[inline(always)]
fn pack_list<const B: usize>(memory: &[u8], offsets: &[usize], packed: &mut [u8]) {
    let (blocks, _) = packed.as_chunks_mut::<B>();
    assert!(offsets.len() <= blocks.len(), "the packed bytes are too short");
    for (out, &offset) in blocks.iter_mut().zip(offsets) {
        out.copy_from_slice(&memory[offset..offset + B]);
    }
}

/// As `pack_list`.
#[inline(always)]
fn unpack_list<const B: usize>(packed: &[u8], offsets: &[usize], memory: &mut [u8]) {
    let (blocks, _) = packed.as_chunks::<B>();
    assert!(offsets.len() <= blocks.len(), "the packed bytes are too short");
    for (data, &offset) in blocks.iter().zip(offsets) {
        memory[offset..offset + B].copy_from_slice(data);
    }
}

const PARTICLE: usize = 56;
const PARTICLE_DATA: usize = 52;

/// `struct { double x[3]; int kind; double v[3]; }`: 28 bytes, a gap of 4, 24 bytes.
#[inline(always)]
fn pack_particles(memory: &[u8], count: usize, packed: &mut [u8]) {
    let (particles, _) = memory.as_chunks::<PARTICLE>();
    let (out, _) = packed.as_chunks_mut::<PARTICLE_DATA>();
    assert!(count <= particles.len(), "memory is too short");
    assert!(count <= out.len(), "the packed bytes are too short");
    for (particle, out) in particles[..count].iter().zip(out) {
        out[..28].copy_from_slice(&particle[..28]);
        out[28..].copy_from_slice(&particle[32..]);
    }
}

/// As `pack_particles`; the gap is not written.
#[inline(always)]
fn unpack_particles(packed: &[u8], count: usize, memory: &mut [u8]) {
    let (particles, _) = memory.as_chunks_mut::<PARTICLE>();
    let (data, _) = packed.as_chunks::<PARTICLE_DATA>();
    assert!(count <= particles.len(), "memory is too short");
    assert!(count <= data.len(), "the packed bytes are too short");
    for (particle, data) in particles[..count].iter_mut().zip(data) {
        particle[..28].copy_from_slice(&data[..28]);
        particle[32..].copy_from_slice(&data[28..]);
    }
}
