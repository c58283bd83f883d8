//! The settings of a commit, and the strategies among which a commit chooses.

use crate::kernel::Compiler;
use std::sync::Arc;
use typepack_leaf::Isa;

/// The strategies for executing a nest. A nest consists of loops, one inside another, around a block or
/// a few short runs. The iterations of a loop lie at a constant stride or at displacements from a
/// table. `contiguous::copy` is the engine's function for copying a run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// All elements together are one run of memory, and one call of `contiguous::copy` copies it.
    Memcpy,
    /// Each block of the nest (a *row*) is so long that it is copied with its own call of
    /// `contiguous::copy`.
    Rows,
    /// A leaf kernel: a loop for the inner levels, precompiled for each instruction set.
    Leaf,
    /// A compiled kernel, once it is available, for calls in which the cost model expects it to be
    /// the fastest executor. For other calls, a leaf kernel or the interpreter.
    Kernel,
    /// The interpreter.
    Interpreter,
}

/// The settings of a commit. With the default settings, the engine uses no compiler.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The compiler of kernels, if there is one.
    pub compiler: Option<Arc<dyn Compiler>>,
    /// Checks every call of a compiled kernel or a leaf kernel against the interpreter. If their
    /// results differ, the interpreter's result is used, the kernel is not called again, and
    /// `stats::bytes().disagreements` counts the call. With this setting, an unpack call also reads the
    /// memory that it writes, and this memory may temporarily hold wrong values.
    pub verify: bool,
    /// Forces one strategy for all nests. [`Strategy::Interpreter`] forces the interpreter.
    /// [`Strategy::Leaf`] forces leaf kernels, so compiled kernels and rows are not used.
    /// [`Strategy::Kernel`] forces compiled kernels, so leaf kernels and rows are not used; without
    /// a compiler, it has no effect. [`Strategy::Memcpy`] and [`Strategy::Rows`] cannot be forced.
    /// Contiguous types are still copied as one run unless the interpreter is forced.
    pub strategy: Option<Strategy>,
    /// The instruction set of the leaf kernels. If this field is `None`, or if this machine does not
    /// support the given instruction set, the best one that the machine supports is used.
    pub isa: Option<Isa>,
    /// Keeps the cost model's choice between leaf kernels and compiled kernels also for long calls. Otherwise, if there
    /// is a clock ([`set_clock`](crate::contiguous::set_clock)), long calls take the one that measurements favour.
    pub unmeasured: bool,
}

impl Settings {
    /// Returns the instruction set of the leaf kernels. If the interpreter is forced, returns the
    /// portable instruction set.
    pub(super) fn leaf_isa(&self) -> Isa {
        match self.strategy {
            Some(Strategy::Interpreter) => Isa::Portable,
            _ => self.isa.filter(|isa| isa.is_available()).unwrap_or_else(Isa::best),
        }
    }
}
