//! Compares fused copies with the model. A fused copy moves data from one layout directly into another
//! layout.
//!
//! The pair of layouts comes from `pair.rs`. The memory of the source and the memory of the destination
//! have exactly the needed length, and each touches a forbidden page; guard bytes lie next to the
//! destination's other end. The check copies many ranges of packed bytes. After each copy, the
//! destination, gaps included, must equal the result of packing the source and unpacking into the
//! destination, and the source must not have changed.

use crate::check::{CANARY, Effort, Executors, Scene, canaries, difference, intact, ranges};
use crate::generate::MAX_TOUCHED;
use crate::guard::{Guarded, Side};
use crate::pair::Pair;
use std::sync::Arc;
use typepack_engine::{Plan, Settings, Strategy, copy, copy_raw, stats};

/// Checks pairs one after another, and uses the same buffers and compilers for all of them.
pub struct CopyChecker {
    settings: Vec<(&'static str, Settings)>,
    src: Guarded,
    dst: Guarded,
    /// Counts of the pairs that were checked so far.
    pub pairs: Pairs,
}

/// Counts of checked pairs, by the code that copied them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pairs {
    /// Pairs that a compiled fused kernel copied, at least in part.
    pub kernel: u64,
    /// Pairs that no compiled fused kernel copied, although source and destination both have data and a
    /// gap.
    pub other: u64,
}

impl CopyChecker {
    /// Makes a checker for `executors`, with a JIT of its own if `executors` include the JIT.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses to allocate or to protect about a MiB of memory.
    pub fn new(executors: Executors) -> Self {
        let guarded =
            || Guarded::new(MAX_TOUCHED as usize + CANARY).expect("guarded memory must be mapped");
        let (mut settings, jit) = executors.settings();
        if let Some(jit) = jit {
            let compiler = Some(Arc::new(jit) as _);
            let strategy = Some(Strategy::Kernel);
            settings.push((
                "jit, verified",
                Settings { compiler, verify: true, strategy, ..Settings::default() },
            ));
        }
        Self { settings, src: guarded(), dst: guarded(), pairs: Pairs::default() }
    }

    /// Checks one pair with every executor. Returns the number of ranges that were copied.
    pub fn check(&mut self, pair: &Pair, effort: Effort) -> Result<u64, String> {
        let models = (pair.from.bounded()?, pair.to.bounded()?);
        let scenes = (Scene::new(&pair.from, &models.0), Scene::new(&pair.to, &models.1));
        if scenes.0.packed.len() != scenes.1.packed.len() {
            let (from, to) = (scenes.0.packed.len(), scenes.1.packed.len());
            return Err(format!(
                "the source has {from} packed bytes, but the destination has {to}"
            ));
        }
        let refused = |e| format!("constructor refused: {e}");
        let types =
            (pair.from.recipe.build().map_err(refused)?, pair.to.recipe.build().map_err(refused)?);
        let mut copied = 0;
        let mut gaps = !scenes.0.packed.is_empty();
        let before = stats::bytes();
        for (name, settings) in &self.settings {
            let commit = |ty: &typepack_engine::Datatype| {
                ty.commit_with(settings).map_err(|e| format!("{name}: commit: {e}"))
            };
            let plans = (&commit(&types.0)?, &commit(&types.1)?);
            gaps &= !plans.0.is_contiguous() && !plans.1.is_contiguous();
            let mut run =
                Run { plans, pair, scenes: &scenes, src: &mut self.src, dst: &mut self.dst };
            copied += run.all(effort).map_err(|e| format!("{name}: {e}"))?;
        }
        let after = stats::bytes();
        if after.disagreements > before.disagreements {
            return Err("a kernel disagreed with the interpreter".into());
        }
        // `stats::bytes` counts for the whole process, so these differences are exact only if no other
        // thread copies.
        let kernel = after.fused_kernel > before.fused_kernel;
        self.pairs.kernel += u64::from(kernel);
        self.pairs.other += u64::from(gaps && !kernel);
        Ok(copied)
    }
}

struct Run<'a> {
    plans: (&'a Plan, &'a Plan),
    pair: &'a Pair,
    scenes: &'a (Scene, Scene),
    src: &'a mut Guarded,
    dst: &'a mut Guarded,
}

impl Run<'_> {
    fn all(&mut self, effort: Effort) -> Result<u64, String> {
        let (from, to) = self.scenes;
        let spanned = from.source.len().max(to.source.len());
        let mut copied = 0;
        for side in [Side::Front, Side::Back] {
            let src = self.src.place(from.source.len(), side);
            let dst = self.dst.place(to.canary.len(), side);
            self.src.whole()[src.clone()].copy_from_slice(&from.source);
            self.dst.whole()[dst.clone()].copy_from_slice(&to.canary);
            let around = canaries(&dst, side, self.dst.capacity());
            self.dst.whole()[around.clone()].fill(0xc3);
            let mut expected = to.canary.clone();
            for range in ranges(from.packed.len(), spanned, effort) {
                copied += 1;
                let origin = |memory: *mut u8, low: i64| memory.wrapping_offset(-low as isize);
                let memory = origin(self.src.whole()[src.clone()].as_mut_ptr(), from.low);
                let (plan, count) = (self.plans.0, self.pair.from.count);
                let read = typepack_engine::Elements::new(memory, plan, count);
                let memory = origin(self.dst.whole()[dst.clone()].as_mut_ptr(), to.low);
                let (plan, count) = (self.plans.1, self.pair.to.count);
                let written = typepack_engine::Elements::new(memory, plan, count);
                // SAFETY:
                // - source and destination have the same number of packed bytes, and `range` lies
                //   within them;
                // - each memory holds every byte that the elements of its layout touch according to the
                //   model, and its first byte has the displacement `low` from the origin;
                // - the two memories are two allocations, so they do not overlap.
                unsafe { copy_raw(read, written, range.start as u64..range.end as u64) };
                for k in range.clone() {
                    expected[to.addresses[k]] = from.packed[k];
                }
                let what = |e| format!("range {range:?}: {e}");
                let memory = self.dst.whole();
                difference("copy", &memory[dst.clone()], &expected).map_err(what)?;
                intact(memory, around.clone())
                    .map_err(|e| what(format!("copy wrote outside the memory: {e}")))?;
                for &address in &to.addresses[range] {
                    memory[dst.start + address] = to.canary[address];
                    expected[address] = to.canary[address];
                }
            }
            difference("source after copying", &self.src.whole()[src], &from.source)?;
        }
        self.safe_call()?;
        Ok(copied)
    }

    /// Checks the safe copy, on slices that begin at the origin. Skips a pair with data before an
    /// origin, because `copy` expects the origin at the start of each slice.
    fn safe_call(&self) -> Result<(), String> {
        let (from, to) = self.scenes;
        if from.low < 0 || to.low < 0 {
            return Ok(());
        }
        let ((src, _), (mut dst, _)) = (from.with_origin(&from.source), to.with_origin(&to.canary));
        let counts = (self.pair.from.count, self.pair.to.count);
        let moved = copy(self.plans.0, counts.0, &src, self.plans.1, counts.1, &mut dst)
            .map_err(|e| format!("copy: {e}"))?;
        if moved != from.packed.len() as u64 {
            return Err(format!("copy moved {moved} bytes; expected {}", from.packed.len()));
        }
        let mut expected = to.canary.clone();
        for (&address, &byte) in to.addresses.iter().zip(&from.packed) {
            expected[address] = byte;
        }
        difference("copy of slices", &dst, &to.with_origin(&expected).0)
    }
}
