//! A nest of a plan, and its executor. The executor is chosen at the first call in each direction.
//!
//! `nests.rs` finds the nests. `exec/` gets the [`Selected`] executor from a nest, and the compiled
//! kernel if the cost model (`cost/`) recommends a kernel. For long calls, measurements correct the cost model
//! (`contest.rs`). The kernel slots (which also hold the selected executors) and the record of long calls are the only
//! parts of a nest plan that change after the commit.

use super::contest::{self, Contest};
use super::cost::{self, Choice};
use super::divide::Divisor;
use super::settings::{Settings, Strategy};
use crate::contiguous;
use crate::kernel::{COMPILATION, Direction, Kernel, Leaf, LeafShape, Level, Levels, Nest};
use crate::reserve;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use typepack_leaf::{Class, Routine, Swap};

/// In pack and unpack calls, blocks of at least this many bytes are copied with `contiguous::copy`, with one
/// call per block. For shorter blocks, loops that use the machine's widest registers are faster
/// (`typepack-bench peers`, faces).
const LONG_ROW: u64 = 8 << 10;

/// A nest of a plan, with the values that are needed to call its kernel.
#[repr(C)]
pub(crate) struct NestPlan {
    slots: [KernelSlot; 2],
    pub(crate) strategy: Strategy,
    /// For each direction, whether the check of `Settings::verify` has found a wrong result. Then no kernel is used any
    /// more.
    distrusted: [AtomicBool; 2],
    pub(crate) nest: Nest,
    /// The parameter block for the whole nest, in the layout that `leaf/src/kernel/` defines, padded with zeros. If
    /// the outermost level is the loop over elements, its count is that of one element.
    pub(crate) words: [u64; Nest::WORDS],
    pub(crate) leaf_bytes: Divisor,
    /// For each level `l` of the nest, the product of the counts of all levels inside `l`.
    pub(crate) below: [Divisor; Nest::MAX_DEPTH],
    /// The widths of the basic elements in the leaf whose bytes are reversed; `None` if no bytes are
    /// reversed. Compiled kernels cannot reverse bytes.
    pub(crate) swap: Option<Box<Swap>>,
    /// What is known about long calls, for each direction. Empty until the first long call, because most plans make
    /// none and a plan should be small.
    long: OnceLock<Box<[LongCalls; 2]>>,
}

/// The long calls of a nest in one direction.
struct LongCalls {
    /// Number of packed bytes so far, as long as there is no contest.
    moved: AtomicU64,
    /// The contest of the leaf kernel and the compiled kernel begins after this number of bytes, or as soon as there is
    /// a compiled kernel. `u64::MAX` if there is nothing to compare.
    begins: u64,
    contest: OnceLock<Box<Contest>>,
}

#[derive(Default)]
#[repr(C)]
struct KernelSlot {
    /// The executor for this direction. Empty until the first call in this direction.
    selected: OnceLock<Selected>,
    /// Empty until the kernel is requested from the compiler. Holds `None` if the compiler refused.
    kernel: OnceLock<Option<Kernel>>,
    /// The time that a kernel would have saved so far, in the unit of [`Choice::price`]. If several
    /// threads pack at the same time, they may overwrite each other's additions. Then the kernel is
    /// requested a little later, which is harmless.
    saved: AtomicU64,
}

/// The executor of a nest in one direction. It is chosen at the first call in this direction, not at
/// commit, because choosing takes time and most plans are used in only one direction.
#[repr(C)]
pub(crate) struct Selected {
    /// The leaf kernel. `None` if no routine exists for the nest, or if the strategy uses none.
    pub(crate) routine: Option<Routine>,
    choice: Choice,
}

impl NestPlan {
    /// Makes an empty nest plan. The caller must set its nest and then call `complete`.
    #[inline(always)]
    pub(super) fn empty() -> Self {
        Self {
            nest: Nest { base: 0, levels: Levels::default(), leaf: Leaf::Block { bytes: 1 } },
            words: [0; Nest::WORDS],
            below: [Divisor::ONE; Nest::MAX_DEPTH],
            leaf_bytes: Divisor::ONE,
            strategy: Strategy::Interpreter,
            distrusted: Default::default(),
            swap: None,
            long: OnceLock::new(),
            slots: Default::default(),
        }
    }

    /// Makes the nest plan of `nest`. `swap` contains the widths of the basic elements in its leaf whose
    /// bytes are reversed.
    pub(super) fn of(nest: Nest, swap: Option<Box<Swap>>, settings: &Settings) -> Self {
        let mut planned = Self { nest, swap, ..Self::empty() };
        planned.complete(settings);
        planned
    }

    /// Computes the fields that depend on the nest and on the swap. If the compiler's threshold is 0,
    /// also requests the kernels.
    #[inline]
    pub(super) fn complete(&mut self, settings: &Settings) {
        self.leaf_bytes = Divisor::new(self.nest.leaf.bytes());
        self.strategy = match self.swap {
            Some(_) => Strategy::Leaf,
            None => strategy_of(&self.nest, settings),
        };
        self.fill_block();
        self.first_requests(settings);
    }

    /// If the compiler's threshold is 0, requests the kernel for each direction in which it can be the
    /// fastest executor.
    #[inline]
    fn first_requests(&self, settings: &Settings) {
        let at_once = settings.compiler.as_ref().is_some_and(|c| c.threshold() == 0);
        if at_once && self.strategy == Strategy::Kernel {
            for direction in [Direction::Pack, Direction::Unpack] {
                if self.selected(direction, settings).choice.most > 0 {
                    self.request(direction, settings);
                }
            }
        }
    }

    /// Computes the parameter block `words` and the products `below`.
    #[inline]
    fn fill_block(&mut self) {
        let Self { nest, words, below, .. } = self;
        for (level, words) in nest.levels.iter().zip(words.chunks_exact_mut(3)) {
            words.copy_from_slice(&match level {
                Level::Loop { count, stride } => [*count, *stride as u64, 0],
                Level::Table { entries, scale } => {
                    [entries.len() as u64, entries.address(), *scale as u64]
                }
            });
        }
        let depth = nest.levels.len();
        if let Leaf::Block { bytes } = nest.leaf
            && bytes > LeafShape::FIXED_MAX
        {
            words[3 * depth] = bytes;
        }
        for l in (1..depth).rev() {
            below[l - 1] = Divisor::new(below[l].get() * nest.levels[l].count());
        }
    }

    fn slot(&self, direction: Direction) -> &KernelSlot {
        &self.slots[direction as usize]
    }

    /// Returns the executor for a direction. The first call chooses it.
    #[inline]
    pub(crate) fn selected(&self, direction: Direction, settings: &Settings) -> &Selected {
        match self.slot(direction).selected.get() {
            Some(selected) => selected,
            None => self.decide(direction, settings),
        }
    }

    #[cold]
    #[inline(never)]
    fn decide(&self, direction: Direction, settings: &Settings) -> &Selected {
        self.slot(direction).selected.get_or_init(|| {
            let wanted = self.strategy == Strategy::Kernel;
            let leaves = self.strategy == Strategy::Leaf || wanted && settings.strategy.is_none();
            let isa = settings.leaf_isa();
            let routine = leaves
                .then(|| Routine::new(&self.nest, self.swap.as_deref(), direction, isa))
                .flatten();
            // If the settings force a strategy, the whole routine is built now. Otherwise, some parts
            // are built only after several calls.
            if let Some(routine) = routine.as_ref().filter(|_| settings.strategy.is_some()) {
                routine.build(&self.nest, direction);
            }
            let compiler = settings.compiler.as_ref().filter(|_| wanted);
            let choice = match (compiler.map(|compiler| compiler.threshold()), &routine) {
                (None | Some(u64::MAX), _) => Choice::NEVER,
                (Some(threshold), None) => {
                    cost::choice(&self.nest, direction, isa, Class::Interpreter, threshold)
                }
                (Some(threshold), Some(routine)) => {
                    let class = routine.class();
                    cost::choice(&self.nest, direction, isa, class, threshold)
                }
            };
            Selected { routine, choice }
        })
    }

    /// Returns the kernel for a call that moves `bytes` packed bytes. If the kernel has not been
    /// requested yet, adds the time that it would save in this call, and requests it if the sum reaches
    /// its price. Returns `None` if no kernel is wanted for this size, if the sum is below the price, or
    /// if the compiler refused.
    #[inline]
    pub(crate) fn kernel(
        &self,
        selected: &Selected,
        direction: Direction,
        bytes: u64,
        settings: &Settings,
    ) -> Option<&Kernel> {
        self.kernel_for(selected, direction, bytes, 1, settings)
    }

    /// Does what [`NestPlan::kernel`] does, for a caller that makes `calls` calls of `bytes` bytes
    /// each.
    #[inline]
    pub(crate) fn kernel_for(
        &self,
        selected: &Selected,
        direction: Direction,
        bytes: u64,
        calls: u64,
        settings: &Settings,
    ) -> Option<&Kernel> {
        let (slot, choice) = (self.slot(direction), &selected.choice);
        if bytes > choice.most {
            return None;
        }
        if let Some(kernel) = slot.kernel.get() {
            return kernel.as_ref();
        }
        let saving = choice.saving(bytes).saturating_mul(calls);
        let saved = slot.saved.load(Ordering::Relaxed).saturating_add(saving);
        slot.saved.store(saved, Ordering::Relaxed);
        if saved < choice.price { None } else { self.request(direction, settings) }
    }

    /// Returns the kernel, and the contest that decides whether it or the leaf kernel runs a call of `bytes` bytes, if
    /// this is decided by measurement. `bytes` is at least [`contest::LEAST`].
    #[inline]
    pub(crate) fn rivals(
        &self,
        selected: &Selected,
        direction: Direction,
        bytes: u64,
        settings: &Settings,
    ) -> Option<(&Kernel, &Contest)> {
        let kernel = &self.slot(direction).kernel;
        let long = match self.long.get() {
            Some(long) => &long[direction as usize],
            None => self.first_long_call(direction, settings),
        };
        if let Some(contest) = long.contest.get() {
            return Some((kernel.get()?.as_ref()?, contest));
        }
        if long.begins == u64::MAX {
            return None;
        }
        let moved = long.moved.load(Ordering::Relaxed).saturating_add(bytes);
        long.moved.store(moved, Ordering::Relaxed);
        let begins = moved >= long.begins || kernel.get().is_some();
        if begins { self.begin_contest(selected, long, direction, settings) } else { None }
    }

    /// Finds out, for each direction, whether there will be a leaf kernel and a compiled kernel to compare.
    #[cold]
    #[inline(never)]
    fn first_long_call(&self, direction: Direction, settings: &Settings) -> &LongCalls {
        let threshold =
            settings.compiler.as_ref().map_or(u64::MAX, |compiler| compiler.threshold());
        let chosen = settings.strategy.is_none() && self.strategy == Strategy::Kernel;
        let measures =
            chosen && !settings.unmeasured && threshold < u64::MAX && contiguous::clock().is_some();
        let calls = |direction| {
            let routine = measures.then(|| self.selected(direction, settings).routine.as_ref());
            let leaf = routine.flatten().is_some_and(|routine| routine.class() != Class::Tile);
            let begins =
                if leaf { contest::begins_after(cost::price(threshold)) } else { u64::MAX };
            LongCalls { moved: AtomicU64::new(0), begins, contest: OnceLock::new() }
        };
        let make = || Box::new([Direction::Pack, Direction::Unpack].map(calls));
        &self.long.get_or_init(make)[direction as usize]
    }

    /// Begins the contest of the leaf kernel and the compiled kernel. Requests the kernel if the cost model has wanted
    /// none so far: the contest may show that the cost model is wrong on this machine.
    #[cold]
    #[inline(never)]
    fn begin_contest<'a>(
        &'a self,
        selected: &Selected,
        long: &'a LongCalls,
        direction: Direction,
        settings: &Settings,
    ) -> Option<(&'a Kernel, &'a Contest)> {
        let kernel = self.request(direction, settings)?;
        let clock = contiguous::clock()?;
        let make = || Box::new(Contest::new(clock, selected.choice.most));
        Some((kernel, long.contest.get_or_init(make)))
    }

    /// Requests the kernel from the compiler, and returns it unless the compiler refuses. While memory is short,
    /// returns `None` without a request.
    #[cold]
    #[inline(never)]
    fn request(&self, direction: Direction, settings: &Settings) -> Option<&Kernel> {
        let compiler = settings.compiler.as_ref()?;
        let make = || compiler.kernel(&self.nest.shape(direction));
        let kernel = &self.slot(direction).kernel;
        if kernel.get().is_none() && !reserve::covers(COMPILATION) {
            return None;
        }
        kernel.get_or_init(make).as_ref()
    }

    pub(crate) fn trusted(&self, direction: Direction) -> bool {
        !self.distrusted[direction as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn distrust(&self, direction: Direction) {
        self.distrusted[direction as usize].store(true, Ordering::Relaxed);
    }

    pub(super) fn executor(&self, direction: Direction, settings: &Settings) -> String {
        if self.strategy == Strategy::Rows {
            return "rows".into();
        }
        if !self.trusted(direction) {
            return "interpreter".into();
        }
        let selected = self.selected(direction, settings);
        let most = selected.choice.most;
        if let Some(names) = self.measured_executors(selected, direction) {
            return names;
        }
        match (self.slot(direction).kernel.get(), &selected.routine) {
            (Some(Some(kernel)), Some(routine)) if most < u64::MAX => {
                format!("{} up to {most} B, {}", kernel.name(), routine.name())
            }
            (Some(Some(kernel)), _) => kernel.name().into(),
            (_, Some(routine)) => routine.name(),
            _ => "interpreter".into(),
        }
    }
}

impl NestPlan {
    /// Returns the names of the executors that measurements have chosen for long calls, if a contest has begun.
    fn measured_executors(&self, selected: &Selected, direction: Direction) -> Option<String> {
        let contest = self.long.get()?[direction as usize].contest.get()?;
        let kernel = self.slot(direction).kernel.get()?.as_ref()?;
        let routine = selected.routine.as_ref()?;
        let name = |way| match way {
            contest::KERNEL => kernel.name().to_string(),
            _ => routine.name(),
        };
        let mut names: Vec<(u64, u8)> = contest.standing().collect();
        names.dedup_by_key(|(_, way)| *way);
        match names[..] {
            [] => None,
            [(_, way)] => Some(name(way)),
            _ => {
                let part = |(from, way): &(u64, u8)| format!("{} from {from} B", name(*way));
                Some(names.iter().map(part).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Returns the strategy with which `nest` is executed.
fn strategy_of(nest: &Nest, settings: &Settings) -> Strategy {
    let long = matches!(nest.leaf, Leaf::Block { bytes } if bytes >= LONG_ROW);
    match settings.strategy {
        Some(Strategy::Interpreter) => Strategy::Interpreter,
        Some(Strategy::Leaf) => Strategy::Leaf,
        Some(Strategy::Kernel) if settings.compiler.is_some() => Strategy::Kernel,
        _ if long => Strategy::Rows,
        _ if settings.compiler.is_some() => Strategy::Kernel,
        _ => Strategy::Leaf,
    }
}
