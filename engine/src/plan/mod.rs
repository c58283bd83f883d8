//! The plan: a verified program, facts about it, and for each nest the strategy that executes it.
//!
//! `commit.rs` makes a plan after the passes, and `exec/` executes it. A plan is shared, and its
//! program never changes. Three parts are filled later. The executor of a nest in a direction is chosen
//! at the first call in this direction. A compiled kernel is stored when it would have saved as much time
//! as its compilation takes. Values that other modules compute from the plan are stored when they are
//! first requested (`kept.rs`).

pub(crate) mod byteswap;
pub(crate) mod contest;
pub(crate) mod cost;
pub(crate) mod divide;
pub(crate) mod footprint;
mod identity;
pub(crate) mod kept;
mod nest_plan;
mod nests;
pub(crate) mod segments;
mod settings;
mod uses;

pub(crate) use identity::PlanName;
pub(crate) use nest_plan::{NestPlan, Selected};
pub(crate) use nests::BodyPart;
pub use settings::{Settings, Strategy};
pub use uses::Uses;

use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::ir::{NodeId, Program};
use crate::kernel::{Direction, Nest};
use byteswap::Widths;
use footprint::Footprint;
use kept::Kept;
use nests::NestPlans;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use typepack_leaf::{Isa, Width};

/// In a fused copy, blocks of at least this many bytes are copied one by one with `contiguous::copy`. For
/// such blocks, the overhead of a call per block is less than a tenth of the time of the copy.
pub(crate) const ROW_BYTES: u64 = 256;

/// A committed datatype, or a plan decoded from bytes. `pack` and `unpack` execute it. Cloning a plan
/// only increments a reference count.
#[derive(Clone)]
pub struct Plan(Arc<Inner>);

/// The contents of a plan. The fields that every call reads come first, here and in `nest_plan.rs`,
/// so that they lie in few cache lines. If the user's data fills the first-level cache, each further
/// line that a call reads costs about 10 ns (`typepack-bench peers`, d8s16 at 16 KiB).
#[repr(C)]
struct Inner {
    element_bytes: u64,
    /// Number of iterations of the program's body per element. This is a copy of the program's `factor`,
    /// placed next to the other fields that every call reads.
    factor: u64,
    footprint: Footprint,
    /// The displacement of the run if consecutive elements, however many, form one run of memory. `None`
    /// otherwise, or if the settings force the interpreter.
    contiguous: Option<i64>,
    /// True if the first nest executes the whole program, including the loop over elements.
    whole: bool,
    /// True if uses of the plan are counted (`uses.rs`).
    watched: AtomicBool,
    settings: Settings,
    nests: NestPlans,
    program: Program,
    /// The widths of the basic elements whose bytes the plan reverses; `None` if it reverses no bytes.
    widths: Option<Box<Widths>>,
    /// The datatype from which the plan was committed; `None` for a decoded plan.
    datatype: Option<Datatype>,
    /// Values that other modules store with the plan.
    kept: OnceLock<Box<Kept>>,
}

impl Plan {
    pub(crate) fn new(datatype: Datatype, program: Program, settings: &Settings) -> Self {
        let footprint = Footprint::of_datatype(&datatype);
        Self::assemble(Some(datatype), footprint, program, settings, usize::MAX)
    }

    /// Makes a plan that reverses bytes. Its packed bytes are those of `program`, except that the bytes
    /// of each basic element are reversed. `widths` holds the widths of these basic elements. Compiled
    /// kernels do not execute such a plan.
    pub(crate) fn byteswapped(
        footprint: Footprint,
        program: Program,
        widths: Widths,
        settings: &Settings,
    ) -> Self {
        let settings = Settings { isa: settings.isa, ..Settings::default() };
        Self::assemble_with(None, footprint, program, &settings, usize::MAX, widths)
    }

    /// Makes a plan from a verified program and its footprint. At most `most_nests` nests get a
    /// [`NestPlan`], because a `NestPlan` needs more memory than the nodes of its nest. The executor
    /// walks the other nests node by node.
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
        let contiguous = program.body.filter(|_| program.is_one_run()).map(|body| body.offset);
        let contiguous = contiguous.filter(|_| settings.strategy != Some(Strategy::Interpreter));
        // A plan is large. To avoid copying it, the code writes the plan, and its nests too, directly into
        // the allocation.
        let mut plan = Arc::new_uninit();
        let room = Arc::get_mut(&mut plan).expect("a new `Arc` has only one owner");
        let inner = room.write(Inner {
            element_bytes,
            factor: program.factor,
            footprint,
            contiguous,
            whole: false,
            watched: AtomicBool::new(false),
            settings: Settings { isa: Some(settings.leaf_isa()), ..settings.clone() },
            nests: NestPlans::default(),
            program,
            widths: (!matches!(widths, Widths::Native)).then(|| Box::new(widths)),
            datatype,
            kept: OnceLock::new(),
        });
        // If all elements together are one run of memory, the plan needs no nest.
        if contiguous.is_none() {
            let Inner { program, nests, settings, widths, .. } = inner;
            let widths = widths.as_deref().unwrap_or(&Widths::Native);
            inner.whole = nests.find(program, widths, settings, most_nests);
        }
        // SAFETY: `room.write` above initialized the whole `Inner` in this allocation.
        Self(unsafe { plan.assume_init() })
    }

    /// Returns the type from which this plan was committed. Returns `None` if the plan was decoded
    /// ([`wire`](crate::wire)).
    #[inline]
    pub fn datatype(&self) -> Option<&Datatype> {
        self.0.datatype.as_ref()
    }

    /// Returns the range of memory that the plan's elements access.
    #[inline]
    pub fn footprint(&self) -> &Footprint {
        &self.0.footprint
    }

    /// Returns how many iterations of the program's body make one element.
    #[inline]
    pub(crate) fn factor(&self) -> u64 {
        self.0.factor
    }

    /// Returns the loop program. `Display` prints it.
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// Returns the number of packed bytes of one element (the type's size).
    #[inline]
    pub fn element_bytes(&self) -> u64 {
        self.0.element_bytes
    }

    /// Returns the number of packed bytes of `count` elements.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if this number does not fit in an `i64`.
    #[doc(alias = "MPI_Pack_size")]
    #[inline]
    pub fn packed_bytes(&self, count: u64) -> Result<u64> {
        match self.0.element_bytes.checked_mul(count) {
            Some(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
            _ => Err(self.too_long(count)),
        }
    }

    #[cold]
    fn too_long(&self, count: u64) -> Error {
        let detail = format!(
            "{count} elements of {} each: the product exceeds 2^63 - 1 bytes",
            counted(self.0.element_bytes, "byte", "bytes")
        );
        Error::new(ErrorKind::Overflow, "count", detail)
    }

    /// Returns true if consecutive elements, however many, are one run of memory, which a single copy moves.
    /// The run begins at `true_lb`. Returns false for every type if the settings force the interpreter.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.0.contiguous.is_some()
    }

    /// Returns the nests of the program. A nest is a part of the program that one kernel can execute. A
    /// plan for which [`Plan::is_contiguous`] returns true has no nests.
    pub fn nests(&self) -> impl ExactSizeIterator<Item = &Nest> {
        self.0.nests.iter().map(|planned| &planned.nest)
    }

    /// Returns the nests, each with its strategy and the names of the executors that currently pack and
    /// unpack it.
    pub fn executors(&self) -> impl Iterator<Item = (&Nest, Strategy, [String; 2])> {
        self.0.nests.iter().map(|planned| {
            let executors =
                [Direction::Pack, Direction::Unpack].map(|d| planned.executor(d, &self.0.settings));
            (&planned.nest, planned.strategy, executors)
        })
    }

    /// Returns the name of the executor that this plan currently uses in `direction`, for display.
    /// The name is `memcpy`, `rows`, `interpreter`, or the name of a compiled kernel or leaf kernel. If
    /// a nest uses a compiled kernel only for calls of at most `N` bytes, the text for this nest is
    /// `KERNEL up to N B, LEAF KERNEL`. If nests use different executors, their texts are joined by `, `.
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

    /// Returns the parts of the program's body if the body is a sequence of at most 64 nests and
    /// blocks, and no parts otherwise.
    #[inline]
    pub(crate) fn parts(&self) -> &[BodyPart] {
        self.0.nests.parts()
    }

    /// Returns the nest that executes a part; `None` if the part is a block.
    #[inline]
    pub(crate) fn nest_of_part(&self, part: &BodyPart) -> Option<&NestPlan> {
        self.0.nests.of_part(part)
    }

    #[inline]
    pub(crate) fn nest_of_node(&self, node: NodeId) -> Option<&NestPlan> {
        self.0.nests.of_node(node)
    }

    /// Returns the width of the basic elements whose bytes are reversed in block `node`; 1 if the plan
    /// reverses no bytes there.
    #[inline]
    pub(crate) fn width(&self, node: NodeId) -> Width {
        self.0.widths.as_ref().map_or(Width::ONE, |widths| widths.of(node))
    }

    /// Returns the number of packed bytes of a tile, which consists of the elements that the leaf kernel
    /// packs together. Returns `None` if the leaf kernel packs each element by itself, if no single nest
    /// executes the whole program, or if the interpreter is forced.
    pub(crate) fn tile_bytes(&self) -> Option<u64> {
        let planned = self
            .whole_nest()
            .filter(|_| self.0.settings.strategy != Some(Strategy::Interpreter))?;
        // The packed size of one element fits in 64 bits, but that of a whole tile may not. Then
        // return `None`, because no segment is that large.
        let column = planned.below[0].get() * planned.leaf_bytes.get();
        typepack_leaf::tile_elements(&planned.nest)?.checked_mul(column)
    }

    /// Returns the instruction set that the leaf kernels use.
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

#[cfg(test)]
mod tests {
    use super::Inner;

    /// Checks that a plan is small enough for the fast path of the C library's allocator. For a
    /// larger plan, the allocator would search lists of chunks of different sizes, and would join the
    /// freed plan with neighbouring chunks. This work accounts for a tenth of the time that it takes
    /// to make, commit and free a struct of 8 members.
    #[test]
    fn plans_are_quickly_allocated() {
        // An `Arc` adds 16 bytes for its two counts. glibc caches freed chunks of up to 1032 bytes
        // per thread.
        assert!(size_of::<Inner>() + 16 <= 1032, "{} bytes", size_of::<Inner>());
    }
}
