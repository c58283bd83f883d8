//! Compares the engine and the JIT with the model, for one case.
//!
//! The case comes from `generate.rs` or `parse.rs`. For the case's type and count this file checks:
//!
//! 1. size, bounds, true bounds and the engine's own typemap, by comparison with `model.rs`;
//! 2. packing and unpacking by the engine's oracle (`typepack_engine::typemap`);
//! 3. that the safe calls refuse memory that is one byte short, and accept memory that is long enough;
//! 4. for every executor: packing and unpacking of all packed bytes, and of ranges of packed bytes. In a
//!    small case these are all ranges; in a medium one, both parts of every split in two and some random
//!    ranges; in a large one, only some random ranges.
//!
//! Every buffer has exactly the length that the case needs. One of its ends touches a forbidden page
//! (`guard.rs`), and guard bytes lie next to its other end. Unpacking writes into memory that is filled
//! with a canary pattern, and the check compares all of that memory. Bytes that the type does not
//! cover, or that lie outside the range, must keep their values. Where entries overlap, the last one in
//! typemap order must win.
//!
//! The other checks of the engine (`fused_copy.rs`, `segments.rs`, `wire.rs`, `decode_rebuild.rs`) use
//! parts of this file. A list with the address of every packed byte defines the expected behaviour:
//! packing reads byte `k` from `address[k]`; unpacking writes byte `k` to `address[k]`, in ascending
//! order of `k`.

use crate::generate::{Case, MAX_TOTAL_ENTRIES, MAX_TOUCHED};
use crate::guard::{Guarded, Side};
use crate::model::Model;
use crate::stream::Stream;
use std::ops::Range;
use std::sync::Arc;
use typepack_engine::kernel::Direction;
use typepack_engine::{Datatype, Isa, Plan, Settings, Strategy, typemap};
use typepack_jit::{Jit, Mode};

/// Selects the code that a checker compares with the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executors {
    /// The engine's own executors, without the JIT: the interpreter and the leaf kernels.
    Interpreter,
    /// The JIT, which compiles kernels when a type is committed.
    Jit,
    /// The engine's own executors, and the JIT.
    All,
}

impl Executors {
    /// Returns the settings with which each type is committed, each with a name for error messages.
    /// Also returns the JIT, if the settings use one.
    pub(crate) fn settings(self) -> (Vec<(&'static str, Settings)>, Option<Jit>) {
        let forced = |compiler: Option<&Jit>, strategy| Settings {
            compiler: compiler.map(|jit| Arc::new(jit.clone()) as _),
            strategy,
            ..Settings::default()
        };
        let mut settings = Vec::new();
        if self != Executors::Jit {
            settings.push(("interpreter", forced(None, Some(Strategy::Interpreter))));
            settings.push(("commit without compiler", forced(None, None)));
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                let leaves = Settings { isa: Some(isa), ..forced(None, Some(Strategy::Leaf)) };
                settings.push((isa.name(), leaves));
            }
        }
        let eager = typepack_jit::Settings { mode: Mode::Eager, ..Default::default() };
        let jit = (self != Executors::Interpreter).then(|| Jit::new(eager));
        if jit.is_some() {
            settings.push(("jit", forced(jit.as_ref(), None)));
            settings.push(("jit, kernels forced", forced(jit.as_ref(), Some(Strategy::Kernel))));
        }
        (settings, jit)
    }
}

/// Selects how many ranges of packed bytes are tried per executor and direction. Cases that span much
/// memory get fewer ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Tries all ranges if a case has at most 24 packed bytes. Otherwise tries 6 random ranges and, if
    /// the case has at most 128 packed bytes, both parts of every split in two.
    Quick,
    /// Tries all ranges if a case has at most 200 packed bytes. Otherwise tries 40 random ranges and,
    /// if the case has at most 1024 packed bytes, both parts of every split in two.
    Thorough,
}

impl Effort {
    /// Returns four limits: the number of packed bytes up to which all ranges are tried; the number of
    /// packed bytes up to which both parts of every split in two are tried; the number of random ranges;
    /// and the number of bytes of memory that may be compared for one list of ranges. Every range costs
    /// a comparison of all of the case's memory. If a list would exceed the last limit, only a sample of
    /// its ranges is tried.
    fn limits(self) -> (usize, usize, usize, usize) {
        match self {
            Effort::Quick => (24, 128, 6, 2 << 20),
            Effort::Thorough => (200, 1024, 40, 64 << 20),
        }
    }
}

/// Describes what one check did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Number of packed bytes of the case.
    pub packed_bytes: u64,
    /// Number of ranges that were packed or unpacked, over all executors.
    pub ranges: u64,
    /// Number of plans that were checked: one for each of the checker's settings.
    pub plans: u64,
    /// True if compiled code took part in packing.
    pub kernel: bool,
    /// True if the type is contiguous and therefore needs no kernel.
    pub contiguous: bool,
}

/// Maximum number of packed bytes of a case within the generator's bounds. The widest named type has 32
/// bytes.
pub(crate) const MAX_PACKED: usize = MAX_TOTAL_ENTRIES as usize * 32;
/// Number of guard bytes next to a buffer. Their values must not change.
pub(crate) const CANARY: usize = 64;

/// Checks cases one after another, and uses the same buffers and compilers for all of them.
pub struct Checker {
    settings: Vec<(&'static str, Settings)>,
    jit: Option<Jit>,
    memory: Guarded,
    packed: Guarded,
}

impl Checker {
    /// Makes a checker for `executors`, with a JIT of its own if `executors` include the JIT.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses to allocate or to protect about 700 KiB of memory.
    pub fn new(executors: Executors) -> Self {
        let (settings, jit) = executors.settings();
        Self { jit, ..Self::with(settings) }
    }

    /// Makes a checker that commits each type with each of `settings`. Each entry of `settings` is
    /// paired with its name in error messages.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses to allocate or to protect about 700 KiB of memory.
    pub fn with(settings: Vec<(&'static str, Settings)>) -> Self {
        let guarded = |bytes| Guarded::new(bytes + CANARY).expect("guarded memory must be mapped");
        Self {
            settings,
            jit: None,
            memory: guarded(MAX_TOUCHED as usize),
            packed: guarded(MAX_PACKED),
        }
    }

    /// Returns the JIT that [`Checker::new`] made, if any.
    pub fn jit(&self) -> Option<&Jit> {
        self.jit.as_ref()
    }

    /// Checks one case. The error message describes the first difference; it does not contain the case.
    pub fn check(&mut self, case: &Case, effort: Effort) -> Result<Report, String> {
        let model = case.bounded()?;
        let ty = case.recipe.build().map_err(|e| format!("constructor refused: {e}"))?;
        same_bounds(&ty, &model)?;
        let scene = Scene::new(case, &model);
        scene.check_oracle(&ty, case.count)?;
        let mut report = Report { packed_bytes: scene.packed.len() as u64, ..Report::default() };
        for (name, settings) in &self.settings {
            let plan = ty.commit_with(settings).map_err(|e| format!("{name}: commit: {e}"))?;
            let mut run = Run {
                scene: &scene,
                plan: &plan,
                count: case.count,
                memory: &mut self.memory,
                packed: &mut self.packed,
                ranges: 0,
            };
            run.all(effort).map_err(|e| {
                let executors = [Direction::Pack, Direction::Unpack].map(|d| plan.kernel_name(d));
                format!("{name} ({}): {e}", executors.join("; "))
            })?;
            report.ranges += run.ranges;
            report.plans += 1;
            report.contiguous = plan.is_contiguous();
            let used = plan.kernel_name(Direction::Pack);
            report.kernel |= used.split(", ").any(|part| part.starts_with("pack "));
        }
        Ok(report)
    }
}

pub(crate) fn same_bounds(ty: &Datatype, model: &Model) -> Result<(), String> {
    let pairs = [
        ("size", ty.size(), model.size()),
        ("lb", ty.lb(), model.lb),
        ("ub", ty.ub(), model.ub),
        ("extent", ty.extent(), model.extent()),
        ("true_lb", ty.true_lb(), model.true_lb()),
        ("true_ub", ty.true_ub(), model.true_ub()),
        ("true_extent", ty.true_extent(), model.true_ub() - model.true_lb()),
    ];
    for (what, engine, expected) in pairs {
        if engine != expected {
            return Err(format!("{what} is {engine}; expected {expected}"));
        }
    }
    let entries = typemap::typemap(ty);
    for (i, (engine, (offset, named))) in entries.iter().zip(&model.entries).enumerate() {
        if (engine.offset, engine.named) != (*offset, *named) {
            return Err(format!(
                "typemap entry {i} is {engine:?}; expected {named} at offset {offset}"
            ));
        }
    }
    if entries.len() != model.entries.len() {
        let (engine, expected) = (entries.len(), model.entries.len());
        return Err(format!("the typemap has {engine} entries; expected {expected}"));
    }
    Ok(())
}

/// The contents of a case's memory, and the results that the model expects. The touched memory of a case
/// extends from the first to the last byte that its elements touch.
pub(crate) struct Scene {
    /// For every packed byte, its position in the touched memory.
    pub(crate) addresses: Vec<usize>,
    /// Displacement of the first touched byte, relative to the origin.
    pub(crate) low: i64,
    /// Contents of the touched memory before packing.
    pub(crate) source: Vec<u8>,
    /// The expected result of packing.
    pub(crate) packed: Vec<u8>,
    /// The data to unpack. It is not the result of packing: where the type covers a byte of memory
    /// twice, that result contains the same value twice, and would hide a wrong order of writes.
    pub(crate) data: Vec<u8>,
    /// Contents of the touched memory before unpacking.
    pub(crate) canary: Vec<u8>,
}

impl Scene {
    pub(crate) fn new(case: &Case, model: &Model) -> Self {
        // The casts below lose nothing, because `Case::model` has limited these numbers.
        let (low, high) = model.touched(case.count).unwrap_or((0, 0));
        let addresses: Vec<usize> =
            model.addresses(case.count).into_iter().map(|a| (a - low) as usize).collect();
        let length = (high - low) as usize;
        let source = Stream::new(1, length as u64).bytes(length);
        let canary = Stream::new(2, length as u64).bytes(length);
        let packed: Vec<u8> = addresses.iter().map(|&a| source[a]).collect();
        let data = Stream::new(3, packed.len() as u64).bytes(packed.len());
        Self { addresses, low, source, packed, data, canary }
    }

    /// Returns memory that contains `touched`, and the position of the origin (displacement 0) in that
    /// memory, for calls that take a slice and a position. If the touched bytes begin after the origin,
    /// filler bytes lie between the origin and the touched bytes.
    pub(crate) fn with_origin(&self, touched: &[u8]) -> (Vec<u8>, usize) {
        let before = self.low.max(0) as usize;
        let origin = (-self.low).max(0) as usize;
        let mut memory = vec![0x5a; before];
        memory.extend_from_slice(touched);
        // The engine's calls require that the origin lies within the slice or at its end.
        memory.resize(memory.len().max(origin), 0x5a);
        (memory, origin)
    }

    /// Returns the memory contents that unpacking `range` over the canary pattern must produce.
    pub(crate) fn unpacked(&self, range: Range<usize>) -> Vec<u8> {
        let mut memory = self.canary.clone();
        for k in range {
            memory[self.addresses[k]] = self.data[k];
        }
        memory
    }

    fn check_oracle(&self, ty: &Datatype, count: u64) -> Result<(), String> {
        let (memory, origin) = self.with_origin(&self.source);
        let packed = typemap::pack(ty, count, &memory, origin);
        difference("typemap::pack", &packed, &self.packed)?;
        let (mut memory, origin) = self.with_origin(&self.canary);
        typemap::unpack(ty, count, &self.data, &mut memory, origin);
        let (expected, _) = self.with_origin(&self.unpacked(0..self.packed.len()));
        difference("typemap::unpack", &memory, &expected)
    }
}

/// Checks that the bytes of `memory` at the positions `around` still have the value of the guard bytes.
pub(crate) fn intact(memory: &[u8], around: Range<usize>) -> Result<(), String> {
    let first = around.start;
    match memory[around].iter().position(|&byte| byte != 0xc3) {
        None => Ok(()),
        Some(at) => {
            let (at, byte) = (first + at, memory[first + at]);
            Err(format!("byte {at} of the allocation is {byte:#04x}; expected 0xc3"))
        }
    }
}

pub(crate) fn difference(what: &str, found: &[u8], expected: &[u8]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    if found.len() != expected.len() {
        return Err(format!(
            "{what}: the length is {} bytes; expected {}",
            found.len(),
            expected.len()
        ));
    }
    let wrong = found.iter().zip(expected).filter(|(a, b)| a != b).count();
    let first = found.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(0);
    let (a, b) = (found[first], expected[first]);
    Err(format!(
        "{what}: {wrong} of {} bytes are wrong; the first, byte {first}, is {a:#04x}; expected \
         {b:#04x}",
        found.len()
    ))
}

/// Checks one plan on one scene, in guarded memory.
struct Run<'a> {
    scene: &'a Scene,
    plan: &'a Plan,
    count: u64,
    memory: &'a mut Guarded,
    packed: &'a mut Guarded,
    ranges: u64,
}

impl Run<'_> {
    fn all(&mut self, effort: Effort) -> Result<(), String> {
        let total = self.scene.packed.len();
        let claimed = self.plan.packed_bytes(self.count).map_err(|e| e.to_string())?;
        if claimed != total as u64 {
            return Err(format!("packed_bytes is {claimed}; expected {total}"));
        }
        self.safe_calls()?;
        for side in [Side::Front, Side::Back] {
            let place = self.memory.place(self.scene.source.len(), side);
            self.memory.whole()[place.clone()].copy_from_slice(&self.scene.source);
            for range in ranges(total, self.scene.source.len(), effort) {
                self.pack(range, place.clone())?;
            }
            difference(
                "memory after packing",
                &self.memory.whole()[place.clone()],
                &self.scene.source,
            )?;
            self.memory.whole()[place.clone()].copy_from_slice(&self.scene.canary);
            let mut expected = self.scene.canary.clone();
            for range in ranges(total, self.scene.source.len(), effort) {
                self.unpack(range, place.clone(), side, &mut expected)?;
            }
        }
        Ok(())
    }

    /// Checks that the safe calls move the right bytes, and that they refuse buffers that are too
    /// short.
    fn safe_calls(&self) -> Result<(), String> {
        let (scene, count) = (self.scene, self.count);
        let total = scene.packed.len() as u64;
        let (memory, origin) = scene.with_origin(&scene.source);
        let mut packed = vec![0; scene.packed.len()];
        typepack_engine::pack_range(self.plan, count, &memory, origin, 0..total, &mut packed)
            .map_err(|e| format!("pack_range: {e}"))?;
        difference("pack_range", &packed, &scene.packed)?;
        let (mut memory, origin) = scene.with_origin(&scene.canary);
        typepack_engine::unpack_range(self.plan, count, &scene.data, 0..total, &mut memory, origin)
            .map_err(|e| format!("unpack_range: {e}"))?;
        let (expected, _) = scene.with_origin(&scene.unpacked(0..scene.packed.len()));
        difference("unpack_range", &memory, &expected)?;
        if total == 0 {
            return Ok(());
        }
        let needed = (scene.low + scene.source.len() as i64).max(0) as usize + origin;
        let short = memory.len().min(needed).saturating_sub(1);
        let dst = &mut packed[..];
        let refused = |result: Result<(), typepack_engine::Error>, what: &str| match result {
            Ok(()) => Err(format!("{what} was accepted")),
            Err(_) => Ok(()),
        };
        let pack = typepack_engine::pack_range::<u8>;
        if scene.low + scene.source.len() as i64 > 0 {
            let memory = &memory[..short];
            refused(pack(self.plan, count, memory, origin, 0..total, dst), "short memory")?;
        }
        if origin > 0 {
            let before = origin - 1;
            refused(pack(self.plan, count, &memory, before, 0..total, dst), "an early origin")?;
        }
        let dst = &mut packed[1..];
        refused(pack(self.plan, count, &memory, origin, 0..total, dst), "a short destination")
    }

    fn pack(&mut self, range: Range<usize>, place: Range<usize>) -> Result<(), String> {
        self.ranges += 1;
        let side = if self.ranges.is_multiple_of(2) { Side::Front } else { Side::Back };
        let at = self.packed.place(range.len(), side);
        let around = canaries(&at, side, self.packed.capacity());
        let packed = self.packed.whole();
        packed[at.clone()].fill(0xa5);
        packed[around.clone()].fill(0xc3);
        let dst = packed[at.clone()].as_mut_ptr();
        let origin = self.memory.whole()[place].as_ptr().wrapping_offset(-self.scene.low as isize);
        let bytes = range.start as u64..range.end as u64;
        // SAFETY: the memory at `place` has the length that the model computed, so it holds every byte
        // that `count` elements touch; its first byte has the displacement `low` from `origin`. `dst`
        // has exactly the length of `range`, and `range` lies within the packed bytes. Source and
        // destination are two allocations, so they do not overlap.
        unsafe { typepack_engine::pack_raw(self.plan, self.count, origin, bytes, dst) };
        let packed = self.packed.whole();
        let expected = &self.scene.packed[range.clone()];
        difference("pack", &packed[at], expected).map_err(|e| format!("range {range:?}: {e}"))?;
        intact(packed, around)
            .map_err(|e| format!("range {range:?}: pack wrote outside the destination: {e}"))?;
        Ok(())
    }

    /// Unpacks `range` into memory that holds the canary pattern, checks all of that memory, and
    /// restores the pattern.
    fn unpack(
        &mut self,
        range: Range<usize>,
        place: Range<usize>,
        side: Side,
        expected: &mut [u8],
    ) -> Result<(), String> {
        self.ranges += 1;
        let at = self.packed.place(range.len(), side);
        self.packed.whole()[at.clone()].copy_from_slice(&self.scene.data[range.clone()]);
        let src = self.packed.whole()[at].as_ptr();
        let around = canaries(&place, side, self.memory.capacity());
        let memory = self.memory.whole();
        memory[around.clone()].fill(0xc3);
        let origin = memory[place.clone()].as_mut_ptr();
        let origin = origin.wrapping_offset(-self.scene.low as isize);
        let bytes = range.start as u64..range.end as u64;
        // SAFETY: the memory at `place` is writable and holds every byte that `count` elements touch;
        // its first byte has the displacement `low` from `origin`. `src` has exactly the length of
        // `range`, and `range` lies within the packed bytes. Source and destination are two
        // allocations, so they do not overlap.
        unsafe { typepack_engine::unpack_raw(self.plan, self.count, origin, bytes, src) };
        for k in range.clone() {
            expected[self.scene.addresses[k]] = self.scene.data[k];
        }
        let memory = self.memory.whole();
        difference("unpack", &memory[place.clone()], expected)
            .map_err(|e| format!("range {range:?}: {e}"))?;
        intact(memory, around)
            .map_err(|e| format!("range {range:?}: unpack wrote outside the memory: {e}"))?;
        let touched = &mut memory[place];
        for &address in &self.scene.addresses[range] {
            touched[address] = self.scene.canary[address];
            expected[address] = self.scene.canary[address];
        }
        Ok(())
    }
}

/// Returns the positions of the guard bytes next to `buffer`, at the end that touches no forbidden
/// page.
pub(crate) fn canaries(buffer: &Range<usize>, side: Side, capacity: usize) -> Range<usize> {
    match side {
        Side::Front => buffer.end..(buffer.end + CANARY).min(capacity),
        Side::Back => buffer.start.saturating_sub(CANARY)..buffer.start,
    }
}

/// Returns the ranges of packed bytes to try. The first one covers all packed bytes. `memory` is the
/// number of bytes that the check of one range compares: the larger it is, the fewer ranges are
/// returned.
pub(crate) fn ranges(total: usize, memory: usize, effort: Effort) -> Vec<Range<usize>> {
    let (pairs, splits, random, compared) = effort.limits();
    let mut list = Vec::new();
    if total <= pairs {
        for start in 0..=total {
            list.extend((start..=total).map(|end| start..end));
        }
    } else if total <= splits {
        list.extend((0..=total).flat_map(|cut| [0..cut, cut..total]));
    }
    let affordable = (compared / memory.max(1)).max(8);
    let mut stream = Stream::new(4, total as u64);
    while list.len() > affordable {
        list.swap_remove(stream.below(list.len() as u64) as usize);
    }
    for i in 0..if total > pairs { random.min(affordable) } else { 0 } {
        let start = stream.below(total as u64 + 1) as usize;
        let longest = total - start;
        // Every second range has at most 100 bytes, because a short range more often begins and ends
        // inside one block.
        let most = if i % 2 == 0 { longest } else { longest.min(100) };
        list.push(start..start + stream.below(most as u64 + 1) as usize);
    }
    list.insert(0, 0..total);
    list
}

#[cfg(test)]
mod tests {
    use super::{Effort, ranges};

    #[test]
    fn small_cases_try_every_range() {
        assert_eq!(ranges(3, 10, Effort::Quick).len(), 1 + 10);
        assert!(ranges(100, 300, Effort::Quick).contains(&(41..100)));
        let long = ranges(5000, 9000, Effort::Quick);
        assert!(long.iter().all(|r| r.start <= r.end && r.end <= 5000));
        assert_eq!(ranges(0, 0, Effort::Thorough), [0..0, 0..0]);
        assert_eq!(ranges(100, 1 << 19, Effort::Quick).len(), 1 + 8 + 6);
    }
}
