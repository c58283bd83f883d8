//! Allocates the buffers for one layout and verifies the answer of every competitor.
//!
//! `competitor/` makes the competitors. `measure.rs` times the same calls that this file verifies, on the
//! same buffers.

use crate::buffer::Buffer;
use crate::competitor::hand::Hands;
use crate::competitor::{self, Competitor};
use crate::layout::Layout;
use typepack_engine::kernel::Direction;
use typepack_engine::{Datatype, typemap};
use typepack_jit::Jit;

/// If the memory of a layout has at most this many bytes, every byte is compared after unpacking,
/// including the gaps. In larger memory, only the data is compared, because comparing 500 MiB for each
/// competitor would take longer than the measurement. The gaps of such a layout are checked at its
/// smaller sizes.
const COMPARED_IN_FULL: usize = 64 << 20;

/// A layout with its buffers and its verified competitors.
pub struct Bench {
    /// The layout.
    pub layout: Layout,
    /// The competitors whose answers are right, in the order of their turns.
    pub competitors: Vec<Box<dyn Competitor>>,
    memory: Buffer,
    packed: Buffer,
}

/// The expected answers for a layout, computed by the oracle: the engine's naive walk over the typemap.
struct Expected {
    /// The contents of the memory before packing and before unpacking.
    before: Vec<u8>,
    /// The result of packing `before`.
    packed: Vec<u8>,
    /// The packed bytes to unpack.
    data: Vec<u8>,
    /// The contents of the memory after `data` has been unpacked into `before`. `None` if the memory is
    /// too large to compare every byte.
    after: Option<Vec<u8>>,
}

impl Bench {
    /// Makes the competitors of [`competitor::all`] with the hand-written loops of this program, allocates the
    /// buffers, and verifies every competitor in both directions.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the engine refuses the layout, if there is not enough memory, or if
    /// an answer is wrong. For a wrong answer, the message names the competitor and the position of the
    /// wrong byte.
    pub fn new(layout: Layout, jits: &[Jit; 2]) -> Result<Self, String> {
        let competitors = competitor::all(&layout, jits, &Hands::built_in().loops, None)
            .map_err(|e| format!("layout {}: {e}", layout.name))?;
        Self::verified(layout, competitors)
    }

    /// Allocates the buffers and verifies `competitors` in both directions.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if there is not enough memory, or if an answer is wrong. For a wrong
    /// answer, the message names the competitor and the position of the wrong byte.
    pub fn verified(layout: Layout, competitors: Vec<Box<dyn Competitor>>) -> Result<Self, String> {
        let (memory, packed) = Self::buffers(&layout)?;
        let (bench, faults) = Self::sound(layout, competitors, memory, packed);
        match faults.into_iter().next() {
            Some(fault) => Err(fault),
            None => Ok(bench),
        }
    }

    /// Allocates a memory buffer and a packed buffer for `layout`.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the system does not have enough memory.
    pub fn buffers(layout: &Layout) -> Result<(Buffer, Buffer), String> {
        let [memory, packed] = Self::lengths(layout);
        Ok((Buffer::new(memory)?, Buffer::new(packed)?))
    }

    /// Returns the length of the memory buffer and of the packed buffer, in bytes. The memory buffer is at
    /// least as long as the packed buffer, because memcpy copies consecutive bytes from it.
    pub fn lengths(layout: &Layout) -> [usize; 2] {
        let payload = layout.payload as usize;
        [layout.memory.max(payload), payload]
    }

    /// Returns the paths at which other processes can open the memory buffer and the packed buffer.
    pub fn paths(&self) -> [String; 2] {
        [self.memory.path(), self.packed.path()]
    }

    /// Verifies `competitors` in both directions. Returns a bench with those whose answers are right, and
    /// a one-line message for each of the others. The lengths of the buffers must be [`Bench::lengths`].
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

    /// Makes one call of the competitor at the index `index`, in `direction`.
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
        // If a type overlaps itself, packing `before` does not return the bytes that were unpacked into
        // it. So the oracle computes the expected packed bytes by packing `before`.
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

    /// Returns the datatype of the layout.
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

/// Returns `length` pseudorandom bytes (xorshift). The verification needs only bytes that vary.
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
