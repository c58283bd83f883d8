//! Checks the wire form of layouts, and gives hostile bytes to the decoder of that form.
//!
//! The case comes from `generate.rs`. An encoding must decode to a plan that packs and unpacks as the
//! model says, and whose own encoding has the same bytes. For a mutated encoding, the decoder must
//! either return an error, or return a plan that executes within the footprint that the plan states,
//! because safe calls check the lengths of buffers against that footprint. In this check, memory of
//! exactly that size lies between a forbidden page and guard bytes.

use crate::check::{CANARY, Scene, canaries, difference, intact};
use crate::generate::Case;
use crate::guard::{Guarded, Side};
use crate::stream::Stream;
use typepack_engine::{Plan, pack_range, pack_raw, unpack_range, unpack_raw, wire};

/// Maximum footprint in bytes, and maximum number of packed bytes, of a mutated layout that is
/// executed.
const MOST: i128 = 64 << 10;

/// Checks cases one after another, and uses the same buffers for all of them.
pub struct WireChecker {
    memory: Guarded,
    packed: Guarded,
}

/// Counts of mutated encodings, by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Number of encodings that the decoder refused.
    pub refused: u64,
    /// Number of encodings that were decoded, but are too large to execute here.
    pub large: u64,
    /// Number of encodings that were decoded and executed.
    pub executed: u64,
}

impl Default for WireChecker {
    fn default() -> Self {
        Self::new()
    }
}

impl WireChecker {
    /// Makes a checker.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses to allocate or to protect about 150 KiB of memory.
    pub fn new() -> Self {
        let guarded =
            || Guarded::new(MOST as usize + CANARY).expect("guarded memory must be mapped");
        Self { memory: guarded(), packed: guarded() }
    }

    /// Checks the encoding of one case, and `mutations` mutated copies of that encoding. `stream`
    /// selects the mutations.
    pub fn check(
        &mut self,
        case: &Case,
        stream: &mut Stream,
        mutations: u64,
    ) -> Result<Fates, String> {
        let model = case.bounded()?;
        let ty = case.recipe.build().map_err(|e| format!("constructor refused: {e}"))?;
        let plan = ty.commit().map_err(|e| format!("commit: {e}"))?;
        let encoding = wire::encode(&plan);
        let decoded = wire::decode(&encoding).map_err(|e| format!("decode: {e}"))?;
        difference("encoding of the decoded plan", &wire::encode(&decoded), &encoding)?;
        if decoded.footprint() != plan.footprint() {
            let (found, expected) = (decoded.footprint(), plan.footprint());
            return Err(format!("the decoded footprint is {found:?}; expected {expected:?}"));
        }
        round_trip(&decoded, case.count, &Scene::new(case, &model))?;
        let mut fates = Fates::default();
        for _ in 0..mutations {
            let hostile = mutate(&encoding, stream);
            match wire::decode(&hostile) {
                Err(_) => fates.refused += 1,
                Ok(plan) if self.execute(&plan).map_err(|e| format!("{e}: {hostile:02x?}"))? => {
                    fates.executed += 1;
                }
                Ok(_) => fates.large += 1,
            }
        }
        Ok(fates)
    }

    /// Checks that the decoder handles arbitrary bytes, such as a fuzzer's. If the bytes decode to a
    /// plan, the check executes the plan.
    pub fn check_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        if let Ok(plan) = wire::decode(bytes) {
            self.execute(&plan)?;
        }
        Ok(())
    }

    /// Packs and unpacks 1 element and then 3 elements, in memory as large as their footprint. Skips a
    /// count whose footprint or packed size exceeds [`MOST`] bytes. Returns false if it skips both
    /// counts.
    fn execute(&mut self, plan: &Plan) -> Result<bool, String> {
        let place = plan.footprint();
        let mut executed = false;
        for count in [1u64, 3] {
            let shift = i128::from(place.extent) * i128::from(count - 1);
            let low = i128::from(place.true_lb) + shift.min(0);
            let span = i128::from(place.true_ub) + shift.max(0) - low;
            let Ok(total) = plan.packed_bytes(count) else { continue };
            if total > MOST as u64 || span > MOST {
                continue;
            }
            // A plan with packed bytes reads these bytes from memory, so its footprint must not be
            // empty.
            if total > 0 && span <= 0 {
                return Err(format!(
                    "the footprint of {total} packed bytes has {span} bytes; it must have at \
                     least 1"
                ));
            }
            executed = true;
            for side in [Side::Front, Side::Back] {
                let memory = self.memory.place(span.max(0) as usize, side);
                let packed = self.packed.place(total as usize, side);
                let around = [
                    canaries(&memory, side, self.memory.capacity()),
                    canaries(&packed, side, self.packed.capacity()),
                ];
                self.memory.whole()[around[0].clone()].fill(0xc3);
                self.packed.whole()[around[1].clone()].fill(0xc3);
                // The cast keeps the low 64 bits of `low`. These bits suffice, because addresses are
                // computed modulo 2^64.
                let back = (low as i64).wrapping_neg() as isize;
                let origin = self.memory.whole()[memory].as_mut_ptr().wrapping_offset(back);
                let bytes = self.packed.whole()[packed].as_mut_ptr();
                // SAFETY: the memory at `origin` is as large as the footprint that the plan states, and
                // a decoded plan stays within its footprint. This check tests the decoder: if the
                // footprint is wrong, an access faults or hits a guard byte. `bytes` points to `total`
                // bytes of another allocation.
                unsafe {
                    pack_raw(plan, count, origin, 0..total, bytes);
                    unpack_raw(plan, count, origin, 0..total, bytes);
                }
                let [beside, beyond] = around;
                intact(self.memory.whole(), beside).map_err(|e| {
                    format!("unpacking {count} elements wrote outside {place:?}: {e}")
                })?;
                intact(self.packed.whole(), beyond).map_err(|e| {
                    format!("packing {count} elements wrote outside its buffer: {e}")
                })?;
            }
        }
        Ok(executed)
    }
}

fn round_trip(plan: &Plan, count: u64, scene: &Scene) -> Result<(), String> {
    let total = plan.packed_bytes(count).map_err(|e| e.to_string())?;
    if total != scene.packed.len() as u64 {
        return Err(format!(
            "decoded: the plan has {total} packed bytes; expected {}",
            scene.packed.len()
        ));
    }
    let (memory, origin) = scene.with_origin(&scene.source);
    let mut packed = vec![0; scene.packed.len()];
    pack_range(plan, count, &memory, origin, 0..total, &mut packed)
        .map_err(|e| format!("decoded: pack_range: {e}"))?;
    difference("decoded: pack_range", &packed, &scene.packed)?;
    let (mut memory, origin) = scene.with_origin(&scene.canary);
    unpack_range(plan, count, &scene.data, 0..total, &mut memory, origin)
        .map_err(|e| format!("decoded: unpack_range: {e}"))?;
    let (expected, _) = scene.with_origin(&scene.unpacked(0..scene.packed.len()));
    difference("decoded: unpack_range", &memory, &expected)
}

/// Makes one to four changes: replaces a byte, flips a bit, cuts off the end, appends bytes, changes an
/// aligned word of 8 bytes, or repeats a part. Then, in three of four calls, corrects the length that
/// the encoding states.
fn mutate(encoding: &[u8], stream: &mut Stream) -> Vec<u8> {
    let mut bytes = encoding.to_vec();
    for _ in 0..=stream.below(4) {
        let at = stream.below(bytes.len().max(1) as u64) as usize;
        match stream.below(8) {
            0 if !bytes.is_empty() => bytes[at] = stream.next_u64() as u8,
            1 if !bytes.is_empty() => bytes[at] ^= 1 << stream.below(8),
            2 => bytes.truncate(at),
            3 => {
                let more = stream.below(40) as usize;
                bytes.extend(stream.bytes(more));
            }
            4..=6 if bytes.len() >= 8 => {
                let at = stream.below(bytes.len() as u64 / 8) as usize * 8;
                let mut word = [0; 8];
                word.copy_from_slice(&bytes[at..at + 8]);
                let old = u64::from_le_bytes(word);
                let new = match stream.below(7) {
                    0 => stream.below(20),
                    1 => old.wrapping_add(stream.below(17)).wrapping_sub(8),
                    2 => old.wrapping_neg(),
                    3 => u64::MAX >> stream.below(3),
                    4 => 1 << stream.below(64),
                    5 => old.wrapping_mul(1 + stream.below(4)),
                    _ => stream.next_u64(),
                };
                bytes[at..at + 8].copy_from_slice(&new.to_le_bytes());
            }
            _ => {
                // Inserts a part of the encoding a second time, at another position.
                let length = stream.below(49) as usize & !7;
                let part: Vec<u8> = bytes.iter().skip(at & !7).take(length).copied().collect();
                let to = stream.below(bytes.len() as u64 / 8 + 1) as usize * 8;
                bytes.splice(to..to, part);
            }
        }
    }
    if bytes.len() >= 16 && stream.below(4) > 0 {
        let length = bytes.len() as u64;
        bytes[8..16].copy_from_slice(&length.to_le_bytes());
    }
    bytes
}
