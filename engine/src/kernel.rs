//! The code generator, as the engine sees it: the trait that makes compiled kernels.
//!
//! `typepack_leaf::kernel` defines what a compiled kernel is, and this module exports its names. `plan/` requests
//! the [`Kernel`] of a nest's [`Shape`] from a [`Compiler`]. `exec/` calls the kernel. `transfer/` does both for
//! fused copies.

use std::fmt;

pub use typepack_leaf::kernel::{
    Direction, Entry, Kernel, Leaf, LeafShape, Level, LevelShape, Levels, Nest, Run, Shape,
    TransferLeaf, TransferRun, TransferShape,
};

/// A compiler allocates at most this number of bytes while it makes a kernel. While memory is so short that the reserve
/// (`reserve.rs`) does not cover them, the engine requests no kernel.
pub(crate) const COMPILATION: usize = 1 << 20;

/// A code generator that makes kernels. The engine contains no code generator, so the caller of
/// commit passes one.
///
/// # Safety
///
/// - A kernel that [`Compiler::kernel`] or [`Compiler::transfer_kernel`] returns implements exactly the
///   requested shape: the engine calls the kernel with the parameters of that shape.
pub unsafe trait Compiler: Send + Sync + fmt::Debug {
    /// Returns the cost of compiling a kernel, expressed as a number of bytes. Suppose that a program packs
    /// this many bytes in blocks of 8 bytes. A kernel then takes less time than the interpreter, and the
    /// difference is the time that compiling a kernel takes. The engine requests the kernel of a nest once
    /// the kernel would have saved the time of its own compilation (`plan/cost/`). If the result is 0, the
    /// engine requests kernels at commit, for each nest for which a kernel can be the fastest choice. If the
    /// result is `u64::MAX`, the engine never requests a kernel.
    fn threshold(&self) -> u64;

    /// Returns the kernel for `shape`, from a cache or compiled now. `None` means that the compiler
    /// refuses the shape. Then the plan keeps its leaf kernel or the interpreter and does not request
    /// this kernel again.
    fn kernel(&self, shape: &Shape) -> Option<Kernel>;

    /// Returns the kernel for a fused copy, from a cache or compiled now; `None` if the compiler
    /// refuses the shape. The entry point takes the base of the source as `mem` and the base of the
    /// destination as `packed` ([`TransferShape`]). The default implementation refuses every shape.
    fn transfer_kernel(&self, shape: &TransferShape) -> Option<Kernel> {
        let _ = shape;
        None
    }
}
