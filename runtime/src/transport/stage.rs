//! A private place where pieces of messages are packed before they go into shared memory.
//!
//! `endpoint/engine.rs` owns one; `eager.rs` and `pipeline.rs` pack through it. A line of shared
//! memory that the receiver has read last lies in the receiver's cache. Stores of a register's width
//! fetch every such line back before they change it; a long `memcpy` takes lines whole, without
//! their bytes (`rep movsb` in libc). So what is gathered in small blocks is gathered here, in a few
//! pages that stay in the first cache, and goes over in one copy.
//!
//! 256 KiB in 512-byte blocks through chunks of 32 KiB, a C program of two threads on a Zen 5 machine,
//! half round trip: 39.9 us with stores into the chunks, 15.9 with copies, between cores 211 ns apart;
//! 9.0 and 8.7 between cores 50 ns apart. Non-temporal stores: 20.5 and 20.0.

use crate::Plan;
use crate::shm::pair::{CHUNK_BYTES, LINE};
use typepack_engine::Cursor;

/// Shortest piece that is packed here, in bytes: shorter copies are made with stores in libc as well.
pub const STAGE_MIN: usize = 4 << 10;

/// Whole lines, so that the copy begins with one.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "used by address")] [u8; LINE]);

/// What is the span of an element over its data, at most, of layouts that are packed here. The lines
/// of sparser ones cost more than the way to the other core, and this copy comes on top:
/// `typepack-bench pingpong`, near, 8-byte blocks at stride 64, 256 KiB, here 32.2 and straight into
/// the chunks 30.6 us; 24-byte blocks at stride 56, far, 18.4 and 39.6.
const SPARSE: u64 = 4;

/// The place; it gets its memory when it is used first.
#[derive(Debug, Default)]
pub struct Stage(Vec<Line>);

impl Stage {
    /// Whether messages of this layout are better packed here: they are gathered from several runs,
    /// and not from sparse ones. That it looks at the first run alone is enough for a layout of faces.
    pub fn serves(plan: &Plan, count: u64) -> bool {
        if plan.is_contiguous() {
            return false;
        }
        let (footprint, one) = (plan.footprint(), count < 2);
        let span = footprint.true_ub.abs_diff(footprint.true_lb);
        // Elements may lie farther apart than their data.
        let span = if one { span } else { span.max(footprint.extent.unsigned_abs()) };
        span / SPARSE <= plan.element_bytes()
            || Cursor::new(plan, count)
                .is_ok_and(|cursor| cursor.run().is_some_and(|run| run.bytes as usize >= LINE))
    }

    /// Has `pack` write `len` bytes, at `to` at once or here first.
    ///
    /// # Safety
    ///
    /// - `pack` writes `len` bytes from the address that it is given, and nothing else.
    /// - `to` is valid for writes of `len` bytes.
    #[inline]
    pub unsafe fn pack(&mut self, len: usize, to: *mut u8, pack: impl FnOnce(*mut u8)) {
        if !(STAGE_MIN..=CHUNK_BYTES).contains(&len) || !self.is_there() {
            return pack(to);
        }
        let here = self.0.as_mut_ptr().cast::<u8>();
        pack(here);
        // SAFETY: the lines hold `CHUNK_BYTES` initialised bytes of this process's own, `to` has
        // room for `len`, which is no more.
        unsafe { std::ptr::copy_nonoverlapping(here, to, len) };
    }

    /// Without memory pieces are packed to where they go.
    fn is_there(&mut self) -> bool {
        let lines = CHUNK_BYTES / LINE;
        if self.0.is_empty() && self.0.try_reserve_exact(lines).is_ok() {
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
    fn gathered_and_not_sparse() {
        let double = Datatype::named(Named::F64);
        let vector = |count, length, stride| {
            Datatype::vector(count, length, stride, &double).unwrap().commit().unwrap()
        };
        for (plan, count, serves) in [
            (double.commit().unwrap(), 1000, false),
            (vector(1000, 3, 7), 1, true),
            (vector(1000, 1, 8), 1, false),
            (vector(1000, 64, 128), 1, true),
            (vector(100, 8, 1000), 1, true),
            (vector(100, 1, 130), 1, false),
            (vector(0, 1, 130), 1, true),
        ] {
            assert_eq!(Stage::serves(&plan, count), serves, "{plan:?}");
        }
    }

    /// Whatever the length, the bytes are there and nothing beside them.
    #[test]
    fn a_piece_arrives_whole() {
        let mut stage = Stage::default();
        for len in [1, STAGE_MIN - 1, STAGE_MIN, 20_000, CHUNK_BYTES, CHUNK_BYTES + 1] {
            let mut to = vec![0xee; len + 2];
            let pack = |at: *mut u8| {
                for byte in 0..len {
                    // SAFETY: within the `len` bytes that the stage promises.
                    unsafe { at.add(byte).write((byte % 251) as u8) };
                }
            };
            // SAFETY: `pack` writes `len` bytes, and there is room for them.
            unsafe { stage.pack(len, to[1..=len].as_mut_ptr(), pack) };
            assert!((0..len).all(|byte| to[byte + 1] == (byte % 251) as u8), "{len}");
            assert_eq!((to[0], to[len + 1]), (0xee, 0xee));
        }
    }
}
