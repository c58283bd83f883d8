//! A private buffer into which the sender packs pieces of messages before it copies them to shared memory.
//!
//! `endpoint/engine.rs` owns one buffer, and `pipeline.rs` and `parts.rs` use it. If the receiver was the last rank to
//! read a cache line of shared memory, the line lies in the receiver's cache. A store of register width
//! must first fetch such a line back, and can change it only then. `rep movsb` and streaming stores write
//! whole lines and do not fetch their old bytes. So with these methods the sender gathers small blocks in
//! this buffer, whose few pages stay in the first-level cache, and moves each piece to shared memory in one
//! copy. Whether that is faster depends on the machine and on the distance, so `tuning.rs` measures it.
//!
//! Measured with a C program of two threads on a Zen 5 machine: 256 KiB in 512-byte blocks, through chunks
//! of 32 KiB, half a round trip in us:
//!
//! | method | cores 211 ns apart | cores 50 ns apart |
//! |---|---|---|
//! | stores into the chunks | 39.9 | 9.0 |
//! | through a buffer and one copy by `rep movsb` | 15.9 | 8.7 |
//! | non-temporal stores | 20.5 | 20.0 |

use crate::Plan;
use crate::message::label::Shape;
use crate::message::payload::Supply;
use crate::shm::pair::{CHUNK_BYTES, LINE};
use typepack_engine::contiguous::{self, Method};
use typepack_engine::reserve::fallible;

/// A cache line. The buffer is an array of cache lines, so it begins at the start of a line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "used by address")] [u8; LINE]);

/// A layout with runs shorter than a cache line is sparse if the span of an element is more than the size of
/// its data times this number. For such a layout, reading the many source lines costs more than the transfer to
/// the other core.
const SPARSE: u64 = 4;

/// The buffer. It allocates its memory when it is first used.
#[derive(Debug, Default)]
pub struct Stage(Vec<Line>);

impl Stage {
    /// Returns the shape of the data of `count` elements. The function reads only the length of the first run,
    /// which is enough for the faces of a grid.
    pub fn shape(plan: &Plan, count: u64) -> Shape {
        if plan.is_contiguous() {
            return Shape::Contiguous;
        }
        let (footprint, one) = (plan.footprint(), count < 2);
        let span = footprint.true_ub.abs_diff(footprint.true_lb);
        // If there are several elements, the distance between two neighbouring elements may be larger than
        // the span of the data of one element.
        let span = if one { span } else { span.max(footprint.extent.unsigned_abs()) };
        let dense = span / SPARSE <= plan.element_bytes() || plan.first_run_bytes() >= LINE as u64;
        if dense { Shape::Dense } else { Shape::Sparse }
    }

    /// Returns the shape of a message's data at its sender.
    pub fn shape_of(supply: &Supply) -> Shape {
        match supply {
            Supply::Memory(layout) => Self::shape(&layout.plan, layout.count),
            _ => Shape::Contiguous,
        }
    }

    /// Calls `pack` to write `len` bytes of a message, whose data has the given shape, to `to` in shared memory. Long
    /// runs are copied with `method`.
    ///
    /// # Safety
    ///
    /// - `pack` writes exactly `len` bytes, from the address on that it receives.
    /// - `to` is valid for writes of `len` bytes.
    #[inline]
    pub unsafe fn fill(
        &mut self,
        (shape, method): (Shape, Method),
        len: usize,
        to: *mut u8,
        pack: impl FnOnce(*mut u8),
    ) {
        // Vector moves need no stage, because the pack kernel already stores with vector moves. For sparse layouts,
        // reading the source takes most of the time, and a stage would add to that time.
        let fetches = matches!(method, Method::Vector | Method::Pages);
        if !fetches && shape == Shape::Dense {
            // SAFETY: the caller guarantees both conditions of `pack`, which are the same.
            unsafe { self.pack(len, to, method, pack) };
        } else {
            contiguous::with(method, || pack(to));
        }
    }

    /// Calls `pack` to write `len` bytes, either directly to `to`, or into the buffer. In the second case
    /// the function then copies the bytes from the buffer to `to` with `method`.
    ///
    /// # Safety
    ///
    /// - `pack` writes exactly `len` bytes, from the address on that it receives.
    /// - `to` is valid for writes of `len` bytes.
    #[inline]
    pub unsafe fn pack(
        &mut self,
        len: usize,
        to: *mut u8,
        method: Method,
        pack: impl FnOnce(*mut u8),
    ) {
        // A piece shorter than `LONG` is copied with vector moves, for which the buffer would not help.
        if !(contiguous::LONG..=CHUNK_BYTES).contains(&len) || !self.is_there() {
            return pack(to);
        }
        let here = self.0.as_mut_ptr().cast::<u8>();
        pack(here);
        // SAFETY: `here` is the address of `CHUNK_BYTES` initialised bytes of this buffer, `len <=
        // CHUNK_BYTES` (checked above), and the caller guarantees that `to` is writable for `len` bytes
        // (second condition of `# Safety`). The buffer is private to this value, so the two ranges do not
        // overlap.
        unsafe { contiguous::copy_by(method, here, to, len) };
    }

    /// Allocates the buffer if necessary. Returns false if there is no memory for the buffer. In this case
    /// the caller packs pieces directly.
    fn is_there(&mut self) -> bool {
        let lines = CHUNK_BYTES / LINE;
        if self.0.is_empty() && fallible(|| self.0.try_reserve_exact(lines)).is_ok() {
            self.0.resize(lines, Line([0; LINE]));
        }
        !self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};

    #[test]
    fn shapes_of_layouts() {
        let double = Datatype::named(Named::F64);
        let vector = |count, length, stride| {
            Datatype::vector(count, length, stride, &double).unwrap().commit().unwrap()
        };
        for (plan, count, shape) in [
            (double.commit().unwrap(), 1000, Shape::Contiguous),
            (vector(1000, 3, 7), 1, Shape::Dense),
            (vector(1000, 1, 8), 1, Shape::Sparse),
            (vector(1000, 64, 128), 1, Shape::Dense),
            (vector(100, 8, 1000), 1, Shape::Dense),
            (vector(100, 1, 130), 1, Shape::Sparse),
            (vector(0, 1, 130), 1, Shape::Dense),
        ] {
            assert_eq!(Stage::shape(&plan, count), shape, "{plan:?}");
        }
    }

    /// Checks that for every length the stage writes all bytes of the piece and no other byte.
    #[test]
    fn a_piece_arrives_whole() {
        let mut stage = Stage::default();
        let lens =
            [1, contiguous::LONG - 1, contiguous::LONG, 20_000, CHUNK_BYTES, CHUNK_BYTES + 1];
        for (len, method) in
            lens.into_iter().flat_map(|len| Method::ALL.map(|method| (len, method)))
        {
            let mut to = vec![0xee; len + 2];
            let pack = |at: *mut u8| {
                for byte in 0..len {
                    // SAFETY: `byte < len`, and the stage passes an address with room for `len` bytes.
                    unsafe { at.add(byte).write((byte % 251) as u8) };
                }
            };
            // SAFETY: `pack` writes `len` bytes, and `to[1..=len]` has room for them.
            unsafe { stage.pack(len, to[1..=len].as_mut_ptr(), method, pack) };
            assert!((0..len).all(|byte| to[byte + 1] == (byte % 251) as u8), "{len}");
            assert_eq!((to[0], to[len + 1]), (0xee, 0xee));
        }
    }
}
