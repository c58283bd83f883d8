//! Buffers for one layout, and the proof that every competitor's answer is right.
//!
//! Comes after `competitor/`. What is verified here is exactly what `measure.rs` times: the same
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

/// What every answer for a layout is compared with: data from the oracle.
struct Expected {
    /// Memory before a call of unpack.
    before: Vec<u8>,
    /// What packing `before` gives.
    packed: Vec<u8>,
    /// What is unpacked.
    data: Vec<u8>,
    /// `before` with `data` unpacked into it; not for large memory.
    after: Option<Vec<u8>>,
}

impl Bench {
    /// Commits the layout, allocates, and verifies every competitor of [`competitor::all`] in both
    /// directions.
    ///
    /// # Errors
    ///
    /// One line: what the engine refused, or whose answer is wrong and where.
    pub fn new(layout: Layout, jit: &Jit) -> Result<Self, String> {
        let name = &layout.name;
        let competitors =
            competitor::all(&layout, jit).map_err(|e| format!("layout {name}: {e}"))?;
        Self::verified(layout, competitors)
    }

    /// Allocates, and verifies `competitors` in both directions.
    ///
    /// # Errors
    ///
    /// One line: no memory, or whose answer is wrong and where.
    pub fn verified(layout: Layout, competitors: Vec<Box<dyn Competitor>>) -> Result<Self, String> {
        let (memory, packed) = Self::buffers(&layout)?;
        let (bench, faults) = Self::sound(layout, competitors, memory, packed);
        match faults.into_iter().next() {
            Some(fault) => Err(fault),
            None => Ok(bench),
        }
    }

    /// New memory and packed bytes for `layout`.
    ///
    /// # Errors
    ///
    /// One line: the system has not as much.
    pub fn buffers(layout: &Layout) -> Result<(Buffer, Buffer), String> {
        let [memory, packed] = Self::lengths(layout);
        Ok((Buffer::new(memory)?, Buffer::new(packed)?))
    }

    /// Lengths of memory and packed bytes. memcpy takes its bytes from the same memory.
    pub fn lengths(layout: &Layout) -> [usize; 2] {
        let payload = layout.payload as usize;
        [layout.memory.max(payload), payload]
    }

    /// Where other processes find memory and packed bytes.
    pub fn paths(&self) -> [String; 2] {
        [self.memory.path(), self.packed.path()]
    }

    /// Keeps those of `competitors` whose answers are right; one line for each of the others. The
    /// buffers have [`Bench::lengths`].
    pub fn sound(
        layout: Layout,
        competitors: Vec<Box<dyn Competitor>>,
        memory: Buffer,
        packed: Buffer,
    ) -> (Self, Vec<String>) {
        let mut bench = Self { memory, packed, layout, competitors: Vec::new() };
        let expected = bench.expected(&bench.layout.datatype, bench.layout.count);
        let mut faults = Vec::new();
        for competitor in competitors {
            let verdict = match competitor.moves() {
                Some((ty, count)) => {
                    let expected = bench.expected(&ty, count);
                    bench.verify(&*competitor, &expected)
                }
                None => bench.verify(&*competitor, &expected),
            };
            match verdict {
                Ok(()) => bench.competitors.push(competitor),
                Err(fault) => faults.push(fault),
            }
        }
        (bench, faults)
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

    fn expected(&self, ty: &Datatype, count: u64) -> Expected {
        let payload = self.layout.payload as usize;
        let mut before = vec![0; self.memory.bytes().len()];
        typemap::unpack(ty, count, &noise(payload, 1), &mut before, 0);
        // Where a type overlaps itself the oracle's packing differs from what was unpacked.
        let packed = typemap::pack(ty, count, &before, 0);
        let data = noise(payload, 101);
        let after = (before.len() <= COMPARED_IN_FULL).then(|| {
            let mut after = before.clone();
            typemap::unpack(ty, count, &data, &mut after, 0);
            after
        });
        Expected { before, packed, data, after }
    }

    fn verify(&mut self, competitor: &dyn Competitor, expected: &Expected) -> Result<(), String> {
        let wrong = |what: &str, position: usize| {
            let (layout, name) = (&self.layout.name, competitor.name());
            Err(format!("layout {layout}: {name} {what} a wrong byte at {position}"))
        };
        let (memory, packed) = (self.memory.bytes_mut(), self.packed.bytes_mut());
        memory.copy_from_slice(&expected.before);
        packed.fill(0xa5);
        competitor.pack(memory, packed);
        if let Some(position) = first_difference(packed, &expected.packed) {
            return wrong("packed", position);
        }
        packed.copy_from_slice(&expected.data);
        competitor.unpack(packed, memory);
        let position = match &expected.after {
            Some(after) => first_difference(memory, after),
            None => {
                let own = || (self.layout.datatype.clone(), self.layout.count);
                let (ty, count) = competitor.moves().unwrap_or_else(own);
                first_difference(&typemap::pack(&ty, count, memory, 0), &expected.data)
            }
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
