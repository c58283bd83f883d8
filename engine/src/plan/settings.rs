//! The settings of a commit, and the strategies that a commit chooses from.

use crate::kernel::Compiler;
use crate::leaf::Isa;
use std::sync::Arc;

/// The strategies for executing a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// All elements are one run of memory.
    Memcpy,
    /// Executes each long row with one memcpy.
    Rows,
    /// A leaf kernel: precompiled loops for the inner levels, by instruction set.
    Leaf,
    /// A compiled kernel when it is ready; until then a leaf kernel or the interpreter.
    Kernel,
    /// The interpreter.
    Interpreter,
}

/// The settings of a commit. The default uses the engine alone.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The compiler of kernels, if there is one.
    pub compiler: Option<Arc<dyn Compiler>>,
    /// Checks every kernel call against the interpreter. If a kernel disagrees, the interpreter's
    /// result is used, the kernel is dropped, and `stats::bytes().disagreements` counts it. Unpacking
    /// then also reads the memory it writes, and that memory holds other values for a moment.
    pub verify: bool,
    /// Forces one strategy for all nests. [`Strategy::Interpreter`] forces the interpreter.
    /// [`Strategy::Leaf`] forces leaf kernels: no compiled kernels and no rows. [`Strategy::Kernel`]
    /// forces compiled kernels: no leaf kernels and no rows. Contiguous types stay on memcpy unless the
    /// interpreter is forced.
    pub strategy: Option<Strategy>,
    /// The instruction set of leaf kernels. If it is `None`, or if this machine does not have it, the
    /// best one of this machine is used.
    pub isa: Option<Isa>,
}

impl Settings {
    /// Returns the instruction set of leaf kernels; the baseline if the interpreter is forced.
    pub(super) fn leaf_isa(&self) -> Isa {
        match self.strategy {
            Some(Strategy::Interpreter) => Isa::Portable,
            _ => self.isa.filter(|isa| isa.is_available()).unwrap_or_else(Isa::best),
        }
    }
}
