//! The plan: a verified program, facts about it, and for each nest the strategy of the ladder that
//! executes it.
//!
//! Comes after the passes (`commit.rs`), consumed by `exec/`. A plan is immutable and shared;
//! the only things that change are the kernel slots, which fill when a nest has moved enough bytes
//! for the compiler's threshold.

pub(crate) mod byteswap;
pub(crate) mod cost;
pub(crate) mod derived;
pub(crate) mod divide;
pub(crate) mod footprint;
mod identity;
pub(crate) mod segments;

pub(crate) use identity::PlanName;

use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::{self, Edge, Node, NodeId, Op, Program};
use crate::kernel::{Compiler, Direction, Kernel, Leaf, Level, Levels, Nest, Run};
use crate::leaf::{self, Isa, Routine, Swap, Width};
use byteswap::Widths;
use cost::{Choice, Class};
use derived::Derived;
use divide::Divisor;
use footprint::Footprint;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Blocks of at least this many bytes are left to memcpy by fused copies: from here on a call per
/// row costs less than a tenth of the copy.
pub(crate) const ROW_BYTES: u64 = 256;

/// Blocks of at least this many bytes are left to memcpy row by row, also when packing and
/// unpacking: below, loops that know the machine's registers do better (`typepack-bench peers`,
/// faces).
const LONG_ROW: u64 = 8 << 10;

/// Innermost loops of at most this many short blocks are unrolled into a window.
const UNROLLED_LOOP: u64 = 4;

/// Longest block of an innermost loop that is unrolled into a window, in bytes.
const UNROLLED_BLOCK: u64 = 16;

/// The strategies of the selection ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// All elements are one run of memory.
    Memcpy,
    /// Long rows, one memcpy each.
    Rows,
    /// A leaf kernel: precompiled loops for the inner levels, by instruction set.
    Leaf,
    /// A compiled kernel, once there is one; a leaf kernel or the interpreter until then.
    Kernel,
    /// The interpreter.
    Interpreter,
}

/// What a commit may use. The default is the engine alone.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Who compiles kernels, if anybody.
    pub compiler: Option<Arc<dyn Compiler>>,
    /// Check every kernel call against the interpreter; a kernel that disagrees is dropped, the
    /// interpreter's answer stands, and `stats::bytes().disagreements` counts it. Memory that is
    /// unpacked into is read as well and holds other values in between.
    pub verify: bool,
    /// Force one strategy for all nests: [`Strategy::Interpreter`]; [`Strategy::Leaf`], without compiled kernels
    /// and also where rows would be chosen; or [`Strategy::Kernel`], without leaf kernels and also where
    /// rows would be chosen. Contiguous types stay on memcpy unless the interpreter is forced.
    pub strategy: Option<Strategy>,
    /// The instruction set of leaf kernels; the best one of this machine if `None` or if this
    /// machine does not have it.
    pub isa: Option<Isa>,
}

impl Settings {
    /// What leaf kernels may use; the least when the interpreter is forced.
    fn leaf_isa(&self) -> Isa {
        match self.strategy {
            Some(Strategy::Interpreter) => Isa::Portable,
            _ => self.isa.filter(|isa| isa.is_available()).unwrap_or_else(Isa::best),
        }
    }
}

/// A committed datatype: what `pack` and `unpack` execute. Cloning is one reference count.
#[derive(Clone)]
pub struct Plan(Arc<Inner>);

/// What every call reads comes first, here and in [`NestPlan`] and [`KernelSlot`]: where the data fill the
/// first-level cache, each line that a call reads besides costs some 10 ns (`typepack-bench peers`,
/// d8s16 at 16 KiB).
#[repr(C)]
struct Inner {
    element_bytes: u64,
    /// The program's, beside its neighbours here.
    factor: u64,
    footprint: Footprint,
    /// Displacement of the one run, when elements continue each other without a gap.
    contiguous: Option<i64>,
    /// True when planned 0 is the whole program, the loop over elements included.
    whole: bool,
    settings: Settings,
    nests: NestPlans,
    program: Program,
    /// `None` where nothing is turned round.
    widths: Option<Box<Widths>>,
    /// `None` for a plan that was decoded.
    datatype: Option<Datatype>,
    /// Made when somebody asks; see `derived.rs`.
    derived: OnceLock<Box<Derived>>,
}

/// The nests of a plan. Most plans have one, which is the whole program and costs no allocation of
/// its own: a plan stays below the KiB up to which the C library's allocator is quick
/// (`tests::plans_are_quickly_allocated`).
#[derive(Default)]
#[repr(C)]
struct NestPlans {
    first: Option<NestPlan>,
    /// Of programs that are walked.
    walk: Option<Box<Walk>>,
}

/// What a walk needs.
struct Walk {
    /// The nests after the first.
    more: Vec<NestPlan>,
    /// Which planned executes a node, `NO_NEST` where the walk goes on.
    nest_of_node: Box<[u32]>,
    /// The program's body, where it is a short sequence of nests and blocks.
    parts: Box<[BodyPart]>,
}

impl NestPlans {
    fn len(&self) -> usize {
        let more = self.walk.as_ref().map_or(0, |walk| walk.more.len());
        usize::from(self.first.is_some()) + more
    }

    #[inline]
    fn first(&self) -> Option<&NestPlan> {
        self.first.as_ref()
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&NestPlan> {
        if index == 0 { self.first() } else { self.walk.as_ref()?.more.get(index - 1) }
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = &NestPlan> {
        (0..self.len()).map(|index| self.get(index).expect("below the length"))
    }
}

const NO_NEST: u32 = u32::MAX;

/// Most parts of a body that is prepared as a list.
const PARTS: usize = 64;

/// A part of a body that is a sequence: a nest with a planned, or a block.
#[derive(Clone, Copy)]
pub(crate) struct BodyPart {
    /// `NO_NEST` for a block.
    planned: u32,
    /// What is turned round in a block.
    pub(crate) width: Width,
    /// Displacement in the body, in bytes.
    pub(crate) at: i64,
    /// Packed bytes.
    pub(crate) bytes: u64,
}

/// A nest in a plan, with what is needed to call its kernel.
#[repr(C)]
pub(crate) struct NestPlan {
    slots: [KernelSlot; 2],
    pub(crate) strategy: Strategy,
    pub(crate) nest: Nest,
    /// The parameter block for one whole nest, as `kernel/` lays it out, padded with zeros.
    pub(crate) words: [u64; Nest::WORDS],
    pub(crate) leaf_bytes: Divisor,
    /// Iterations of all levels below level `l`, for each `l` of the nest.
    pub(crate) below: [Divisor; Nest::MAX_DEPTH],
    /// What is turned round in the leaf; only leaf kernels know how.
    pub(crate) swap: Option<Box<Swap>>,
}

#[derive(Default)]
#[repr(C)]
struct KernelSlot {
    /// Empty: not called yet.
    selected: OnceLock<Selected>,
    /// Empty: not asked yet. `None`: refused.
    kernel: OnceLock<Option<Kernel>>,
    /// What a kernel would have saved so far, in the unit of [`Choice::price`]. Threads that pack at
    /// the same time may lose what another has added: then the kernel comes a little later.
    saved: AtomicU64,
    /// Calls that `Settings::verify` found wrong; one is enough to stop using the kernel.
    distrusted: AtomicU64,
}

/// What was decided about a nest and a direction at the first call: most plans are used in one
/// direction, and a commit has no time for it.
#[repr(C)]
pub(crate) struct Selected {
    /// `None`: there is none, or none is wanted.
    pub(crate) routine: Option<Routine>,
    choice: Choice,
}

impl NestPlan {
    /// A planned whose nest is still to be found.
    #[inline(always)]
    fn empty() -> Self {
        Self {
            nest: Nest { base: 0, levels: Levels::default(), leaf: Leaf::Block { bytes: 1 } },
            words: [0; Nest::WORDS],
            below: [Divisor::ONE; Nest::MAX_DEPTH],
            leaf_bytes: Divisor::ONE,
            strategy: Strategy::Interpreter,
            swap: None,
            slots: Default::default(),
        }
    }

    /// The planned of `nest`, in whose leaf `swap` is turned round.
    fn of(nest: Nest, swap: Option<Box<Swap>>, settings: &Settings) -> Self {
        let mut planned = Self { nest, swap, ..Self::empty() };
        planned.complete(settings);
        planned
    }

    /// Fills in all that follows from the nest and the swap.
    #[inline]
    fn complete(&mut self, settings: &Settings) {
        self.leaf_bytes = Divisor::new(self.nest.leaf.bytes());
        self.strategy = match self.swap {
            Some(_) => Strategy::Leaf,
            None => strategy_of(&self.nest, settings),
        };
        self.fill_block();
        self.first_requests(settings);
    }

    /// Asks a compiler that does not wait.
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

    /// Fills `words` and `below`.
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
            && bytes > crate::kernel::LeafShape::FIXED_MAX
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

    /// What was decided about a direction.
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
            // Who asks for leaf kernels by name gets all of them from the first call on.
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

    /// The kernel to use for a call that moves `bytes` packed bytes, if it is wanted and there by
    /// now.
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

    /// As [`NestPlan::kernel`], for `calls` calls of `bytes` bytes each.
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

    /// Asks the compiler.
    #[cold]
    #[inline(never)]
    fn request(&self, direction: Direction, settings: &Settings) -> Option<&Kernel> {
        let compiler = settings.compiler.as_ref()?;
        let make = || compiler.kernel(&self.nest.shape(direction));
        self.slot(direction).kernel.get_or_init(make).as_ref()
    }

    pub(crate) fn trusted(&self, direction: Direction) -> bool {
        self.slot(direction).distrusted.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn distrust(&self, direction: Direction) {
        self.slot(direction).distrusted.fetch_add(1, Ordering::Relaxed);
    }

    fn executor(&self, direction: Direction, settings: &Settings) -> String {
        if self.strategy == Strategy::Rows {
            return "rows".into();
        }
        if !self.trusted(direction) {
            return "interpreter".into();
        }
        let selected = self.selected(direction, settings);
        let most = selected.choice.most;
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

impl Plan {
    pub(crate) fn new(datatype: Datatype, program: Program, settings: &Settings) -> Self {
        let footprint = Footprint::of_datatype(&datatype);
        Self::assemble(Some(datatype), footprint, program, settings, usize::MAX)
    }

    /// A plan that turns elements round: packed bytes are those of `program`, in the other byte
    /// order. It is executed by leaf kernels alone.
    pub(crate) fn byteswapped(
        footprint: Footprint,
        program: Program,
        widths: Widths,
        settings: &Settings,
    ) -> Self {
        let settings = Settings { isa: settings.isa, ..Settings::default() };
        Self::assemble_with(None, footprint, program, &settings, usize::MAX, widths)
    }

    /// A plan of a verified program with its footprint. At most `most_nests` nests get a kernel
    /// planned (they need more memory than the nodes they come from); the others are walked.
    pub(crate) fn assemble(
        datatype: Option<Datatype>,
        footprint: Footprint,
        program: Program,
        settings: &Settings,
        most_nests: usize,
    ) -> Self {
        Self::assemble_with(datatype, footprint, program, settings, most_nests, Widths::Native)
    }

    #[inline]
    fn assemble_with(
        datatype: Option<Datatype>,
        footprint: Footprint,
        program: Program,
        settings: &Settings,
        most_nests: usize,
        widths: Widths,
    ) -> Self {
        let element_bytes = program.element_bytes();
        let contiguous = program.body.and_then(|body| {
            let node = program.node(body.node);
            let dense = node.op.is_block() && i128::from(node.bytes) == i128::from(program.stride);
            (dense && settings.strategy != Some(Strategy::Interpreter)).then_some(body.offset)
        });
        // A plan is large: it is filled in where it stays, and so are its nests.
        let mut plan = Arc::new_uninit();
        let room = Arc::get_mut(&mut plan).expect("nobody else has a new allocation");
        let inner = room.write(Inner {
            element_bytes,
            factor: program.factor,
            footprint,
            contiguous,
            whole: false,
            settings: Settings { isa: Some(settings.leaf_isa()), ..settings.clone() },
            nests: NestPlans::default(),
            program,
            widths: (!matches!(widths, Widths::Native)).then(|| Box::new(widths)),
            datatype,
            derived: OnceLock::new(),
        });
        // One memcpy asks for no planned.
        if contiguous.is_none() {
            inner.plan_nests(most_nests);
        }
        // SAFETY: `room.write` has initialised it.
        Self(unsafe { plan.assume_init() })
    }

    /// The type this plan was committed from; `None` when it was decoded ([`wire`](crate::wire)).
    pub fn datatype(&self) -> Option<&Datatype> {
        self.0.datatype.as_ref()
    }

    /// Where elements lie in memory.
    pub fn footprint(&self) -> &Footprint {
        &self.0.footprint
    }

    /// Iterations of the program's body that make one element.
    #[inline]
    pub(crate) fn factor(&self) -> u64 {
        self.0.factor
    }

    /// The loop program; its `Display` prints it.
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// Packed bytes of one element (the type's size).
    pub fn element_bytes(&self) -> u64 {
        self.0.element_bytes
    }

    /// Packed bytes of `count` elements.
    ///
    /// # Errors
    ///
    /// The product does not fit `i64`.
    #[doc(alias = "MPI_Pack_size")]
    pub fn packed_bytes(&self, count: u64) -> Result<u64> {
        self.0
            .element_bytes
            .checked_mul(count)
            .filter(|&bytes| i64::try_from(bytes).is_ok())
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Overflow,
                    "count",
                    format!(
                        "{count} elements of {} bytes do not fit 64 bits",
                        self.0.element_bytes
                    ),
                )
            })
    }

    /// True when any number of elements is one run of memory that begins at `true_lb`.
    pub fn is_contiguous(&self) -> bool {
        self.0.contiguous.is_some()
    }

    /// The nests of the program: the parts a kernel can execute.
    pub fn nests(&self) -> impl ExactSizeIterator<Item = &Nest> {
        self.0.nests.iter().map(|planned| &planned.nest)
    }

    /// The nests with their strategies and the names of what executes them now, packing and unpacking.
    pub fn executors(&self) -> impl Iterator<Item = (&Nest, Strategy, [String; 2])> {
        self.0.nests.iter().map(|planned| {
            let executors =
                [Direction::Pack, Direction::Unpack].map(|d| planned.executor(d, &self.0.settings));
            (&planned.nest, planned.strategy, executors)
        })
    }

    /// What executes this plan now, for people: `memcpy`, `rows`, `interpreter`, the name of a
    /// kernel, or several of these joined by `, ` when the program has several nests.
    pub fn kernel_name(&self, direction: Direction) -> String {
        if self.0.contiguous.is_some() {
            return "memcpy".into();
        }
        let mut names: Vec<String> = Vec::new();
        for planned in self.0.nests.iter() {
            let name = planned.executor(direction, &self.0.settings);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() { "interpreter".into() } else { names.join(", ") }
    }

    #[inline]
    pub(crate) fn contiguous(&self) -> Option<i64> {
        self.0.contiguous
    }

    #[inline]
    pub(crate) fn whole_nest(&self) -> Option<&NestPlan> {
        if self.0.whole { self.0.nests.first() } else { None }
    }

    /// The body as a list, where it is a short sequence of nests and blocks.
    #[inline]
    pub(crate) fn parts(&self) -> &[BodyPart] {
        self.0.nests.walk.as_ref().map_or(&[], |walk| &walk.parts)
    }

    /// The planned of a part; `None` for a block.
    #[inline]
    pub(crate) fn nest_of_part(&self, part: &BodyPart) -> Option<&NestPlan> {
        self.0.nests.get(part.planned as usize)
    }

    #[inline]
    pub(crate) fn nest_of_node(&self, node: NodeId) -> Option<&NestPlan> {
        let planned = self.0.nests.walk.as_ref()?.nest_of_node[node.index()];
        self.0.nests.get(planned as usize)
    }

    /// Bytes of the elements of block `node` that are turned round.
    #[inline]
    pub(crate) fn width(&self, node: NodeId) -> Width {
        self.0.widths.as_ref().map_or(Width::ONE, |widths| widths.of(node))
    }

    pub(crate) fn derived(&self) -> &Derived {
        self.0.derived.get_or_init(Box::default)
    }

    /// Packed bytes of a tile, where elements are packed several at a time.
    pub(crate) fn tile_bytes(&self) -> Option<u64> {
        let planned = self
            .whole_nest()
            .filter(|_| self.0.settings.strategy != Some(Strategy::Interpreter))?;
        // An element's bytes fit 64 bits, those of several may not: no piece is as large.
        let column = planned.below[0].get() * planned.leaf_bytes.get();
        leaf::tile_elements(&planned.nest)?.checked_mul(column)
    }

    /// The instruction set of leaf kernels.
    #[inline]
    pub(crate) fn isa(&self) -> Isa {
        self.0.settings.isa.unwrap_or(Isa::Portable)
    }

    #[inline]
    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("datatype", &self.0.datatype)
            .field("footprint", &self.0.footprint)
            .field("pack", &self.kernel_name(Direction::Pack))
            .field("unpack", &self.kernel_name(Direction::Unpack))
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Gives the whole program a planned, if one kernel can execute it with the loop over elements, or
    /// else every node that one can execute and whose user it cannot.
    ///
    /// A ragged list's body gets its planned at the list's node, with a leading loop whose count the
    /// executor sets for each entry; any other planned stands at the node it executes.
    fn plan_nests(&mut self, most_nests: usize) {
        let Self { program, nests, settings, widths, .. } = self;
        let widths = widths.as_deref().unwrap_or(&Widths::Native);
        let Some(body) = program.body else { return };
        let outer = Some((program.factor, program.stride));
        let planned = nests.first.get_or_insert_with(NestPlan::empty);
        if is_nest(program, body, outer, &mut planned.nest) {
            self.whole = true;
            planned.swap = widths.swap(program, body).map(Box::new);
            planned.complete(settings);
            return;
        }
        nests.first = None;
        let mut made = Vec::new();
        let mut nest_of_node = vec![NO_NEST; program.nodes().len()];
        let mut seen = vec![false; program.nodes().len()];
        let mut pending = vec![body.node];
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            if made.len() >= most_nests {
                break;
            }
            let nest = match &program.node(id).op {
                Op::Block => continue,
                Op::Ragged { stride, body, .. } if is_dense(program, *stride, *body) => continue,
                Op::Ragged { stride, body, .. } => nest_of(program, *body, Some((1, *stride))),
                _ => nest_of(program, Edge { offset: 0, node: id }, None),
            };
            match nest {
                Some(nest) => {
                    // Fewer nests than nodes, and those have 32-bit ids.
                    nest_of_node[id.index()] = made.len() as u32;
                    let swap = widths.swap(program, Edge { offset: 0, node: id }).map(Box::new);
                    made.push(NestPlan::of(nest, swap, settings));
                }
                None => pending.extend(ir::edges(&program.node(id).op).map(|edge| edge.node)),
            }
        }
        let mut listed = Box::default();
        if let Op::Seq { parts } = &program.node(body.node).op
            && parts.len() <= PARTS
        {
            let part = |edge: Edge| {
                let (node, planned) = (program.node(edge.node), nest_of_node[edge.node.index()]);
                // A ragged list's planned stands for its body, and what has none is walked.
                let is_nest = planned != NO_NEST && !matches!(node.op, Op::Ragged { .. });
                let width = widths.of(edge.node);
                let part = BodyPart { planned, width, at: edge.offset, bytes: node.bytes };
                (is_nest || node.op.is_block()).then_some(part)
            };
            listed = parts.iter().map(|p| part(p.edge)).collect::<Option<_>>().unwrap_or_default();
        }
        let mut made = made.into_iter();
        nests.first = made.next();
        let (more, nest_of_node) = (made.collect(), nest_of_node.into());
        nests.walk = Some(Box::new(Walk { more, nest_of_node, parts: listed }));
    }
}

/// Who is to execute `nest`.
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

/// The nest of `edge` below the level `outer`, if it is one and not too deep.
fn nest_of(program: &Program, edge: Edge, outer: Option<(u64, i64)>) -> Option<Nest> {
    let mut nest = Nest { base: 0, levels: Levels::default(), leaf: Leaf::Block { bytes: 1 } };
    is_nest(program, edge, outer, &mut nest).then_some(nest)
}

/// As [`nest_of`], into `nest`, which is without levels. Leaves anything there if it says no.
#[inline]
fn is_nest(program: &Program, edge: Edge, outer: Option<(u64, i64)>, nest: &mut Nest) -> bool {
    let levels = &mut nest.levels;
    if let Some((count, stride)) = outer {
        levels.push(Level::Loop { count, stride });
    }
    let (mut base, mut at) = (0i64, edge);
    let mut leaf = loop {
        base = base.wrapping_add(at.offset);
        let node = program.node(at.node);
        if levels.len() == Nest::MAX_DEPTH
            && !node.op.is_block()
            && !is_window(program.nodes(), &node.op)
        {
            return false;
        }
        match &node.op {
            Op::Block => break Leaf::Block { bytes: node.bytes },
            Op::Loop { count, stride, body } => {
                levels.push(Level::Loop { count: *count, stride: *stride });
                at = *body;
            }
            Op::Table { entries, scale, body } => {
                levels.push(Level::Table { entries: entries.clone(), scale: *scale });
                at = *body;
            }
            Op::Seq { parts } if is_window(program.nodes(), &node.op) => {
                let run =
                    |edge: Edge| Run { offset: edge.offset, bytes: program.node(edge.node).bytes };
                break Leaf::Window { runs: parts.iter().map(|part| run(part.edge)).collect() };
            }
            Op::Ragged { .. } | Op::Seq { .. } => return false,
        }
    };
    // A loop of very few short blocks costs more in control than in copying.
    if let (Some(&Level::Loop { count, stride }), Leaf::Block { bytes }) = (levels.last(), &leaf)
        && levels.len() > 1
        && count <= UNROLLED_LOOP
        && *bytes <= UNROLLED_BLOCK
        && stride.unsigned_abs() <= (Leaf::WINDOW_SPAN / UNROLLED_LOOP as i64) as u64 / 2
    {
        let runs = (0..count as i64).map(|i| Run { offset: i * stride, bytes: *bytes }).collect();
        levels.pop();
        leaf = Leaf::Window { runs };
    }
    if levels.is_empty() {
        levels.push(Level::Loop { count: 1, stride: 0 });
    }
    (nest.base, nest.leaf) = (base, leaf);
    true
}

/// Copies of `body` that are `stride` apart are one run: a ragged list of them is a list of runs.
pub(crate) fn is_dense(program: &Program, stride: i64, body: Edge) -> bool {
    let node = program.node(body.node);
    node.op.is_block() && i128::from(stride) == i128::from(node.bytes)
}

/// A sequence that fits [`Leaf::Window`]: few short blocks close together, the first at 0.
pub(crate) fn is_window(nodes: &[Node], op: &Op) -> bool {
    let Op::Seq { parts } = op else { return false };
    let span = -Leaf::WINDOW_SPAN..=Leaf::WINDOW_SPAN;
    parts.len() <= Leaf::WINDOW_RUNS
        && parts[0].edge.offset == 0
        && parts.iter().all(|part| {
            let node = &nodes[part.edge.node.index()];
            let end = i128::from(part.edge.offset) + i128::from(node.bytes);
            node.op.is_block()
                && span.contains(&part.edge.offset)
                && end <= i128::from(Leaf::WINDOW_SPAN)
        })
}

#[cfg(test)]
mod tests {
    use super::Inner;

    /// A larger one goes through the allocator's lists of chunks of any size, and joins its neighbours
    /// there: a tenth of making, committing and freeing a struct of 8.
    #[test]
    fn plans_are_quickly_allocated() {
        // With the two counts of an `Arc`; glibc keeps chunks of up to 1032 bytes for each thread.
        assert!(size_of::<Inner>() + 16 <= 1032, "{} bytes", size_of::<Inner>());
    }
}
