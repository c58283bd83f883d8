//! Lists the operations that a kernel may contain.
//!
//! Cranelift panics when it lowers certain operations on certain types. `tests/agree` and
//! `tests/aarch64` have compiled and run every operation of this list on both instruction sets.
//! `compiler.rs` refuses a function with any other operation. So if an extension of the translator
//! uses an untested operation, the shape is refused, and the engine works without its kernel.

use cranelift_codegen::ir::{Function, Opcode};

/// Returns the first operation in `function` that is not in the list.
pub(crate) fn stranger(function: &Function) -> Option<Opcode> {
    function
        .layout
        .blocks()
        .flat_map(|block| function.layout.block_insts(block))
        .map(|inst| function.dfg.insts[inst].opcode())
        .find(|opcode| !allowed(*opcode))
}

fn allowed(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Iconst
            | Opcode::Iadd
            | Opcode::Imul
            | Opcode::Ishl
            | Opcode::Band
            | Opcode::Icmp
            | Opcode::Load
            | Opcode::Sload32
            | Opcode::Store
            | Opcode::ScalarToVector
            | Opcode::Insertlane
            | Opcode::Brif
            | Opcode::Jump
            | Opcode::Return
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Target, isa};
    use crate::translate::function;
    use cranelift_codegen::verify_function;
    use typepack_engine::kernel::{
        Direction, LeafShape, LevelShape, Run, Shape, TransferLeaf, TransferRun, TransferShape,
    };

    /// Checks every leaf under every innermost level, for both instruction sets: Cranelift's
    /// verifier must accept the function, and every operation must be in the list.
    #[test]
    fn all_kinds_of_kernels_verify() {
        let runs = [(0, 1), (4, 8), (12, 8), (30, 4), (40, 300), (-9, 2)];
        let runs = runs.map(|(offset, bytes)| Run { offset, bytes });
        let mut leaves: Vec<LeafShape> = (1..=64).map(|bytes| LeafShape::Fixed { bytes }).collect();
        leaves.extend([LeafShape::Long, LeafShape::Window { runs: runs.into() }]);
        for target in [Target::X86_64, Target::Aarch64] {
            let (isa, machine) = isa(target).expect("there is a code generator for this target");
            for level in [LevelShape::Loop, LevelShape::Table32, LevelShape::Table64] {
                for leaf in &leaves {
                    for direction in [Direction::Pack, Direction::Unpack] {
                        let levels = vec![level; 2];
                        let shape = Shape { direction, levels, leaf: leaf.clone() };
                        let function =
                            function(&shape, &*isa, machine).expect("the shape is translated");
                        verify_function(&function, &*isa)
                            .unwrap_or_else(|e| panic!("{shape}: {e}"));
                        assert_eq!(stranger(&function), None, "{shape}");
                    }
                }
            }
        }
    }

    /// Checks fused copies: Cranelift's verifier must accept the function, and every operation must
    /// be in the list.
    #[test]
    fn all_kinds_of_pairs_verify() {
        let run = |from, to, bytes| TransferRun { from, to, bytes };
        let mut leaves: Vec<TransferLeaf> =
            (1..=64).map(|bytes| TransferLeaf::Runs { runs: [run(0, 0, bytes)].into() }).collect();
        let window = [run(0, 5, 1), run(4, 6, 8), run(16, 14, 8), run(30, 22, 4), run(-9, 26, 24)];
        leaves.extend([TransferLeaf::Long, TransferLeaf::Runs { runs: window.into() }]);
        let kinds = [LevelShape::Loop, LevelShape::Table32, LevelShape::Table64];
        for target in [Target::X86_64, Target::Aarch64] {
            let (isa, machine) = isa(target).expect("there is a code generator for this target");
            for (from, to) in kinds.iter().flat_map(|from| kinds.iter().map(move |to| (from, to))) {
                for leaf in &leaves {
                    let shape = TransferShape { levels: vec![[*from, *to]; 2], leaf: leaf.clone() };
                    let function =
                        function(&shape, &*isa, machine).expect("the shape is translated");
                    verify_function(&function, &*isa).unwrap_or_else(|e| panic!("{shape}: {e}"));
                    assert_eq!(stranger(&function), None, "{shape}");
                }
            }
        }
    }
}
