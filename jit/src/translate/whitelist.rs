//! The operations that kernels consist of.
//!
//! Cranelift lowers some operations of some types with a panic. Every operation here has been
//! compiled and run on both instruction sets by `tests/agree.rs` and `tests/aarch64.rs`;
//! `compiler.rs` refuses a function with any other, so that a careless extension of the
//! translator falls back to the interpreter instead of surprising a user.

use cranelift_codegen::ir::{Function, Opcode};

/// The first operation in `function` that is not on the list.
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
