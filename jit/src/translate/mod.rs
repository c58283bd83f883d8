//! Translates a shape to CLIF: one function `extern "C" fn(params, mem, packed)` per shape.
//! `lib.rs` receives a request for a shape, and this folder translates the shape. `compiler.rs`
//! turns the CLIF into machine code. The parts:
//!
//! - `levels.rs`: the loops, outermost to innermost, and the unrolled innermost body;
//! - `moves.rs`: cuts a run of bytes into loads and stores (arithmetic only);
//! - `leaf.rs`: the code of these moves, in both directions;
//! - `stream.rs`: the addresses of a level;
//! - `transfer.rs`: loops and body of a fused copy, over two layouts at once;
//! - `join.rs`: joins several narrow loads into one 16-byte store, when packing and in fused copies;
//! - `whitelist.rs`: the operations that a kernel may contain.
//!
//! Invariants of every kernel:
//!
//! 1. The kernel reads (pack) or writes (unpack) exactly the bytes of the runs, and never a byte
//!    outside them.
//! 2. The kernel writes (pack) or reads (unpack) exactly the packed bytes of the call. (The kernel of a
//!    fused copy reads exactly the runs of the source and writes exactly those of the destination.)
//! 3. When unpacking, the kernel stores runs in typemap order. So if two runs share bytes, the
//!    later run wins.
//! 4. The kernel calls nothing, contains no intended trap, needs no relocation, and keeps no state.
//!
//! All loads and stores have the same memory flags. `notrap` and `can_move` are set, because the
//! caller guarantees that the addresses are valid (the conditions of
//! [`Entry`](typepack_engine::kernel::Entry)). `aligned` is not set, because user data may be
//! unaligned. `readonly` is not set, because the kernel writes the other side of the copy between
//! loads.

mod join;
mod leaf;
mod levels;
mod moves;
mod stream;
mod transfer;
pub(crate) mod whitelist;

use crate::error::{Error, ErrorKind, Result};
use crate::target::Machine;
use cranelift_codegen::ir::{AbiParam, Function, MemFlagsData, Signature, UserFuncName, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::fmt;
use typepack_engine::kernel::{Leaf, LeafShape, Nest, Shape, TransferLeaf, TransferShape};

/// A shape for which a kernel can be made.
pub(crate) trait Translate: fmt::Display {
    /// Returns an error if the shape exceeds the limits that the engine keeps for the shapes of its
    /// requests.
    fn check(&self) -> Result<()>;

    /// Emits the kernel of the shape into the function under construction.
    fn build(&self, b: &mut FunctionBuilder, machine: Machine);
}

impl Translate for Shape {
    fn check(&self) -> Result<()> {
        check(self)
    }

    fn build(&self, b: &mut FunctionBuilder, machine: Machine) {
        levels::build(b, self, machine);
    }
}

impl Translate for TransferShape {
    fn check(&self) -> Result<()> {
        check_transfer(self)
    }

    fn build(&self, b: &mut FunctionBuilder, machine: Machine) {
        transfer::build(b, self, machine);
    }
}

/// Returns the kernel of `shape` as CLIF for `isa`.
pub(crate) fn function(
    shape: &impl Translate,
    isa: &dyn TargetIsa,
    machine: Machine,
) -> Result<Function> {
    shape.check()?;
    let mut function = Function::with_name_signature(UserFuncName::user(0, 0), signature(isa));
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    shape.build(&mut builder, machine);
    builder.seal_all_blocks();
    builder.finalize(isa.frontend_config());
    Ok(function)
}

/// Returns the signature of every kernel. Its parameters are the parameter block, the memory that
/// the datatype describes, and the packed bytes; for a fused copy, they are the parameter block,
/// the source and the destination.
pub(crate) fn signature(isa: &dyn TargetIsa) -> Signature {
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params.extend([AbiParam::new(types::I64); 3]);
    signature
}

/// Returns the flags of all loads and stores. The head of this file gives the reasons.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_can_move()
}

/// Checks that `shape` keeps the limits in `engine/leaf/src/kernel/mod.rs`. The limits are needed
/// because the translator turns displacements into 32-bit immediates, and because code size grows
/// with the number of runs of a window.
fn check(shape: &Shape) -> Result<()> {
    let refuse = |detail: String| Err(Error::new(ErrorKind::Shape, format!("{shape}: {detail}")));
    if shape.levels.is_empty() || shape.levels.len() > Nest::MAX_DEPTH {
        let (depth, max) = (shape.levels.len(), Nest::MAX_DEPTH);
        return refuse(format!("the number of levels is {depth}; it must be 1 to {max}"));
    }
    match &shape.leaf {
        LeafShape::Fixed { bytes } => {
            if *bytes == 0 || u64::from(*bytes) > LeafShape::FIXED_MAX {
                return refuse(format!(
                    "the block length is {bytes} bytes; it must be 1 to {}",
                    LeafShape::FIXED_MAX
                ));
            }
        }
        LeafShape::Long => {}
        LeafShape::Window { runs } => {
            if runs.is_empty() || runs.len() > Leaf::WINDOW_RUNS {
                return refuse(format!(
                    "the number of runs is {}; it must be 1 to {}",
                    runs.len(),
                    Leaf::WINDOW_RUNS
                ));
            }
            let span = i128::from(Leaf::WINDOW_SPAN);
            for run in runs.iter() {
                let start = i128::from(run.offset);
                let end = start + i128::from(run.bytes);
                if run.bytes == 0 || start < -span || end > span {
                    return refuse(format!(
                        "a run at offset {} has {} bytes; it must have at least 1 byte, and must lie \
                         between offsets -{span} and {span}",
                        run.offset, run.bytes
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Checks that `shape` keeps the limits for fused copies in `engine/leaf/src/kernel/transfer.rs`.
fn check_transfer(shape: &TransferShape) -> Result<()> {
    let refuse = |detail: String| Err(Error::new(ErrorKind::Shape, format!("{shape}: {detail}")));
    if shape.levels.is_empty() || shape.levels.len() > TransferShape::MAX_DEPTH {
        let (depth, max) = (shape.levels.len(), TransferShape::MAX_DEPTH);
        return refuse(format!("the number of levels is {depth}; it must be 1 to {max}"));
    }
    let TransferLeaf::Runs { runs } = &shape.leaf else { return Ok(()) };
    if runs.is_empty() || runs.len() > TransferShape::RUNS {
        return refuse(format!(
            "the number of runs is {}; it must be 1 to {}",
            runs.len(),
            TransferShape::RUNS
        ));
    }
    let span = i128::from(TransferShape::SPAN);
    for run in runs.iter() {
        let inside =
            |at: i64| i128::from(at) >= -span && i128::from(at) + i128::from(run.bytes) <= span;
        if run.bytes == 0
            || run.bytes > TransferShape::RUN_BYTES
            || !inside(run.from)
            || !inside(run.to)
        {
            let max = TransferShape::RUN_BYTES;
            return refuse(format!(
                "a run at source offset {} and destination offset {} has {} bytes; it must have 1 to \
                 {max} bytes, and must lie between offsets -{span} and {span} on both sides",
                run.from, run.to, run.bytes
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Target, isa};
    use typepack_engine::kernel::{Direction, LevelShape, Run, TransferRun};

    fn refused(levels: usize, leaf: LeafShape) -> bool {
        let shape =
            Shape { direction: Direction::Pack, levels: vec![LevelShape::Loop; levels], leaf };
        let (isa, machine) = isa(Target::Host).expect("there is a code generator for this target");
        match function(&shape, &*isa, machine) {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Shape);
                true
            }
        }
    }

    fn window(runs: &[(i64, u64)]) -> LeafShape {
        let runs = runs.iter().map(|&(offset, bytes)| Run { offset, bytes }).collect();
        LeafShape::Window { runs }
    }

    #[test]
    fn limits() {
        assert!(refused(0, LeafShape::Long));
        assert!(!refused(1, LeafShape::Long));
        assert!(!refused(8, LeafShape::Long));
        assert!(refused(9, LeafShape::Long));
        assert!(refused(1, LeafShape::Fixed { bytes: 0 }));
        assert!(!refused(1, LeafShape::Fixed { bytes: 64 }));
        assert!(refused(1, LeafShape::Fixed { bytes: 65 }));
        assert!(refused(1, window(&[])));
        assert!(refused(1, window(&[(0, 1), (8, 0)])));
        assert!(!refused(1, window(&[(0, 4096), (-4096, 8192)])));
        assert!(refused(1, window(&[(0, 1), (-4097, 1)])));
        assert!(refused(1, window(&[(0, 1), (4090, 7)])));
        assert!(refused(1, window(&[(0, 1), (i64::MAX, u64::MAX)])));
        assert!(refused(1, window(&[(0, 1); 33])));
    }

    #[test]
    fn limits_of_transfers() {
        let (isa, machine) = isa(Target::Host).expect("there is a code generator for this target");
        let refused = |levels: usize, runs: &[(i64, i64, u64)]| {
            let levels = vec![[LevelShape::Loop; 2]; levels];
            let runs =
                runs.iter().map(|&(from, to, bytes)| TransferRun { from, to, bytes }).collect();
            let shape = TransferShape { levels, leaf: TransferLeaf::Runs { runs } };
            function(&shape, &*isa, machine).is_err()
        };
        assert!(!refused(1, &[(0, 0, 1)]));
        assert!(!refused(TransferShape::MAX_DEPTH, &[(0, 0, 64)]));
        assert!(refused(0, &[(0, 0, 1)]));
        assert!(refused(TransferShape::MAX_DEPTH + 1, &[(0, 0, 1)]));
        assert!(refused(1, &[]));
        assert!(refused(1, &[(0, 0, 0)]));
        assert!(refused(1, &[(0, 0, 65)]));
        assert!(refused(1, &[(0, 0, 1); TransferShape::RUNS + 1]));
        assert!(!refused(1, &[(-TransferShape::SPAN, TransferShape::SPAN - 1, 1)]));
        assert!(refused(1, &[(-TransferShape::SPAN - 1, 0, 1)]));
        assert!(refused(1, &[(0, TransferShape::SPAN, 1)]));
        assert!(refused(1, &[(i64::MAX, i64::MIN, 1)]));
    }
}
