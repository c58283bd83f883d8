//! Buffers for one layout, and the proof that every competitor's answer is right.
//!
//! Comes after `competitor.rs`. What is verified here is exactly what `measure.rs` times: the same
//! calls on the same buffers.

use crate::buffer::Buffer;
use crate::competitor::{self, Competitor};
use crate::layout::Layout;
use typepack_engine::kernel::Direction;
use typepack_engine::{Datatype, typemap};
use typepack_jit::Jit;

/// Memory up to which every byte is compared after unpacking, gaps included. Above, the data is
/// compared in full, and gaps are left to the smaller sizes: a 500 MiB comparison per competitor
/// would take longer than the measurement.
const COMPARED_IN_FULL: usize = 64 << 20;

/// Competitors with the buffers they work on.
pub struct Bench {
    /// What is measured.
    pub layout: Layout,
    /// Who takes part.
    pub competitors: Vec<Box<dyn Competitor>>,
    memory: Buffer,
    packed: Buffer,
}

impl Bench {
    /// Commits the layout, allocates, and verifies every competitor in both directions.
    ///
    /// # Errors
    ///
    /// One line: what the engine refused, or whose answer is wrong and where.
    pub fn new(layout: Layout, jit: &Jit) -> Result<Self, String> {
        let name = &layout.name;
        let competitors =
            competitor::all(&layout, jit).map_err(|e| format!("layout {name}: {e}"))?;
        let payload = layout.payload as usize;
        let mut bench = Self {
            // memcpy takes its bytes from the same memory.
            memory: Buffer::new(layout.memory.max(payload)),
            packed: Buffer::new(payload),
            layout,
            competitors,
        };
        for index in 0..bench.competitors.len() {
            bench.verify(index)?;
        }
        Ok(bench)
    }

    /// One call of the competitor at `index`.
    #[inline]
    pub fn call(&mut self, index: usize, direction: Direction) {
        let competitor = &self.competitors[index];
        match direction {
            Direction::Pack => competitor.pack(self.memory.bytes(), self.packed.bytes_mut()),
            Direction::Unpack => competitor.unpack(self.packed.bytes(), self.memory.bytes_mut()),
        }
    }

    fn verify(&mut self, index: usize) -> Result<(), String> {
        let competitor = &self.competitors[index];
        let (ty, count) = competitor.moves();
        let wrong = |what: &str, position: usize| {
            let (layout, name) = (&self.layout.name, competitor.name());
            Err(format!("layout {layout}: {name} {what} a wrong byte at {position}"))
        };
        let payload = self.layout.payload as usize;
        let (memory, packed) = (self.memory.bytes_mut(), self.packed.bytes_mut());

        let data = noise(payload, 1 + index as u64);
        typemap::unpack(&ty, count, &data, memory, 0);
        packed.fill(0xa5);
        competitor.pack(memory, packed);
        // Where a type overlaps itself the oracle's packing differs from what was unpacked.
        if let Some(position) = first_difference(packed, &typemap::pack(&ty, count, memory, 0)) {
            return wrong("packed", position);
        }

        let data = noise(payload, 101 + index as u64);
        packed.copy_from_slice(&data);
        let expected = (memory.len() <= COMPARED_IN_FULL).then(|| {
            let mut expected = memory.to_vec();
            typemap::unpack(&ty, count, &data, &mut expected, 0);
            expected
        });
        competitor.unpack(packed, memory);
        let position = match expected {
            Some(expected) => first_difference(memory, &expected),
            None => first_difference(&typemap::pack(&ty, count, memory, 0), &data),
        };
        match position {
            Some(position) => wrong("unpacked", position),
            None => Ok(()),
        }
    }

    /// The layout's datatype, for reports.
    pub fn datatype(&self) -> &Datatype {
        &self.layout.datatype
    }
}

fn first_difference(found: &[u8], expected: &[u8]) -> Option<usize> {
    if found == expected {
        return None;
    }
    let common = found.iter().zip(expected).position(|(a, b)| a != b);
    Some(common.unwrap_or(found.len().min(expected.len())))
}

/// Bytes without a pattern (a xorshift generator: the values do not matter, their variety does).
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
