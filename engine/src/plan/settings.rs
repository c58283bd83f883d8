//! What a commit may use, and the strategies it chooses from.

use crate::kernel::Compiler;
use crate::leaf::Isa;
use std::sync::Arc;

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
    pub(super) fn leaf_isa(&self) -> Isa {
        match self.strategy {
            Some(Strategy::Interpreter) => Isa::Portable,
            _ => self.isa.filter(|isa| isa.is_available()).unwrap_or_else(Isa::best),
        }
    }
}
