//! Computes the addresses of one level on one side: the step from iteration to iteration, and the
//! addresses of several iterations at once. A side is one of the areas of memory that a kernel
//! accesses at varying displacements.
//!
//! `levels.rs` uses one stream for the memory that the datatype describes. `transfer.rs` uses one
//! stream for the source and one for the destination.

use super::flags;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use typepack_engine::kernel::LevelShape;

/// The numbers of one level on one side, in registers.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub(super) shape: LevelShape,
    /// For a Loop, the stride in bytes. For a Table, the scale: an entry times the scale is a
    /// displacement in bytes.
    pub(super) step: Value,
    /// For a Table, the address of the first entry. A Loop does not use this value, which then
    /// equals `step`.
    pub(super) table: Value,
}

/// The position of an iteration of a level: for a Loop the address of the current iteration, for a
/// Table the address of the current entry.
pub(super) type Cursor = Value;

/// Multiples of a Loop's stride that an unrolled body needs: `triple` is 3 strides, and `group` is
/// `unroll` strides. The kernel computes them once, at its entry. A Table has no multiples.
#[derive(Clone, Copy)]
pub(super) struct Multiples {
    /// Number of leaves in the whole unrolled body.
    unroll: usize,
    triple: Option<Value>,
    group: Option<Value>,
}

impl Stream {
    /// Emits the loads of the two words of a side. The words begin at index `index` of the
    /// parameter block.
    pub(super) fn load(
        b: &mut FunctionBuilder,
        shape: LevelShape,
        params: Value,
        index: usize,
    ) -> Self {
        let first = word(b, params, index);
        let step = match shape {
            LevelShape::Loop => first,
            LevelShape::Table32 | LevelShape::Table64 => word(b, params, index + 1),
        };
        Self { shape, step, table: first }
    }

    pub(super) fn is_loop(self) -> bool {
        self.shape == LevelShape::Loop
    }

    /// Returns the number of bytes per table entry.
    fn width(self) -> i64 {
        if self.shape == LevelShape::Table32 { 4 } else { 8 }
    }

    /// Emits the computation of the multiples for bodies of up to `unroll` leaves.
    pub(super) fn multiples(self, b: &mut FunctionBuilder, unroll: usize) -> Multiples {
        let triple = (self.is_loop() && unroll >= 4).then(|| b.ins().imul_imm_s(self.step, 3));
        let group = self.is_loop().then(|| b.ins().imul_imm_s(self.step, unroll as i64));
        Multiples { unroll, triple, group }
    }

    /// Returns the cursor of the first iteration.
    pub(super) fn start(self, base: Value) -> Cursor {
        if self.is_loop() { base } else { self.table }
    }

    /// Returns the cursor of the next iteration.
    pub(super) fn next(self, b: &mut FunctionBuilder, cursor: Cursor) -> Cursor {
        match self.shape {
            LevelShape::Loop => b.ins().iadd(cursor, self.step),
            _ => b.ins().iadd_imm_s(cursor, self.width()),
        }
    }

    /// Returns the cursor of the iteration that comes `leaves` iterations after the one at
    /// `cursor`.
    pub(super) fn after(
        self,
        b: &mut FunctionBuilder,
        cursor: Cursor,
        leaves: usize,
        multiples: Multiples,
    ) -> Cursor {
        match (self.shape, multiples.group) {
            (LevelShape::Loop, Some(step)) if leaves == multiples.unroll => {
                b.ins().iadd(cursor, step)
            }
            (LevelShape::Loop, _) => {
                let step = b.ins().imul_imm_s(self.step, leaves as i64);
                b.ins().iadd(cursor, step)
            }
            _ => b.ins().iadd_imm_s(cursor, self.width() * leaves as i64),
        }
    }

    /// Returns the addresses of `leaves` consecutive iterations. The first of them is the iteration
    /// at `cursor`.
    pub(super) fn addresses(
        self,
        b: &mut FunctionBuilder,
        base: Value,
        cursor: Cursor,
        leaves: usize,
        multiples: Multiples,
    ) -> Vec<Value> {
        if !self.is_loop() {
            return (0..leaves).map(|i| self.address(b, base, cursor, i)).collect();
        }
        // With s for the step, the addresses are base, base + s, base + 2s and base + 3s, and then the same four from
        // base + 4s on. On x86-64, these additions fit into addressing modes, because s and 3s are in
        // registers. AArch64 uses one addition for each.
        let mut base = cursor;
        (0..leaves)
            .map(|i| {
                if i != 0 && i % 4 == 0 {
                    let four = b.ins().ishl_imm_u(self.step, 2);
                    base = b.ins().iadd(base, four);
                }
                match (i % 4, multiples.triple) {
                    (0, _) => base,
                    (1, _) => b.ins().iadd(base, self.step),
                    (3, Some(triple)) => b.ins().iadd(base, triple),
                    (times, _) => {
                        debug_assert_eq!(times, 2, "the stream has no `triple`");
                        let two = b.ins().ishl_imm_u(self.step, 1);
                        b.ins().iadd(base, two)
                    }
                }
            })
            .collect()
    }

    /// Returns the address of the iteration that comes `i` iterations after the one at `cursor`. For
    /// a Loop, `i` must be 0.
    pub(super) fn address(
        self,
        b: &mut FunctionBuilder,
        base: Value,
        cursor: Cursor,
        i: usize,
    ) -> Value {
        let offset = (self.width() * i as i64) as i32;
        let entry = match self.shape {
            LevelShape::Loop => return cursor,
            LevelShape::Table32 => b.ins().sload32(flags(), cursor, offset),
            LevelShape::Table64 => b.ins().load(types::I64, flags(), cursor, offset),
        };
        let bytes = b.ins().imul(entry, self.step);
        b.ins().iadd(base, bytes)
    }
}

/// Emits the load of the word at index `index` of the parameter block, which has at most 26 words.
pub(super) fn word(b: &mut FunctionBuilder, params: Value, index: usize) -> Value {
    b.ins().load(types::I64, flags(), params, index as i32 * 8)
}
