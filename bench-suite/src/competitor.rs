//! Who is measured: memcpy, the interpreter, the JIT, and the hand-written loop, behind one trait.
//!
//! Comes after `layout.rs`. A competitor says which datatype its answer is that of, so that
//! `prepare.rs` verifies all of them in the same way; `measure.rs` and `benches/pack.rs` then call
//! them without knowing who they are.

use crate::hand;
use crate::layout::Layout;
use std::sync::Arc;
use typepack_engine::kernel::Direction;
use typepack_engine::{Datatype, Named, Plan, Rung, Settings};
use typepack_jit::Jit;

/// Someone who packs and unpacks one layout at one size.
pub trait Competitor {
    /// Short name, the same in every row.
    fn name(&self) -> &'static str;

    /// What does the work right now: the kernel's name, or how the loop was written.
    fn executor(&self, direction: Direction) -> String;

    /// The datatype and count that describe what it moves.
    fn moves(&self) -> (Datatype, u64);

    /// Copies from `memory` (which begins at the type's origin) to `packed`.
    fn pack(&self, memory: &[u8], packed: &mut [u8]);

    /// Copies from `packed` to `memory`.
    fn unpack(&self, packed: &[u8], memory: &mut [u8]);
}

/// Name of the JIT in rows; ratios are taken from it.
pub const JIT: &str = "jit";

/// The four of them, in the order in which they take turns.
///
/// # Errors
///
/// The engine's, when it refuses to commit the layout's datatype.
pub fn all(layout: &Layout, jit: &Jit) -> typepack_engine::Result<Vec<Box<dyn Competitor>>> {
    let interpreter = Settings { rung: Some(Rung::Interpreter), ..Settings::default() };
    let compiled = Settings { compiler: Some(Arc::new(jit.clone())), ..Settings::default() };
    let engine = |name, settings: &Settings| -> typepack_engine::Result<Box<dyn Competitor>> {
        let plan = layout.datatype.commit_with(settings)?;
        Ok(Box::new(Engine { name, plan, count: layout.count }))
    };
    Ok(vec![
        Box::new(Memcpy { bytes: layout.payload as usize }),
        engine("interpreter", &interpreter)?,
        engine(JIT, &compiled)?,
        Box::new(Hand { layout: layout.clone() }),
    ])
}

/// The copy of as many consecutive bytes: what no layout can beat by much.
struct Memcpy {
    bytes: usize,
}

impl Competitor for Memcpy {
    fn name(&self) -> &'static str {
        "memcpy"
    }

    fn executor(&self, _: Direction) -> String {
        "memcpy".to_owned()
    }

    fn moves(&self) -> (Datatype, u64) {
        (Datatype::named(Named::BYTE), self.bytes as u64)
    }

    fn pack(&self, memory: &[u8], packed: &mut [u8]) {
        packed[..self.bytes].copy_from_slice(&memory[..self.bytes]);
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        memory[..self.bytes].copy_from_slice(&packed[..self.bytes]);
    }
}

/// The engine through its safe calls, as a program would use it.
struct Engine {
    name: &'static str,
    plan: Plan,
    count: u64,
}

impl Competitor for Engine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn executor(&self, direction: Direction) -> String {
        self.plan.kernel_name(direction)
    }

    fn moves(&self) -> (Datatype, u64) {
        let ty = self.plan.datatype().expect("committed from a datatype");
        (ty.clone(), self.count)
    }

    fn pack(&self, memory: &[u8], packed: &mut [u8]) {
        typepack_engine::pack(&self.plan, self.count, memory, packed)
            .expect("the buffers were made for this layout");
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        typepack_engine::unpack(&self.plan, self.count, packed, memory)
            .expect("the buffers were made for this layout");
    }
}

/// The loops of `hand.rs`.
struct Hand {
    layout: Layout,
}

impl Competitor for Hand {
    fn name(&self) -> &'static str {
        "hand"
    }

    fn executor(&self, _: Direction) -> String {
        "Rust loop".to_owned()
    }

    fn moves(&self) -> (Datatype, u64) {
        (self.layout.datatype.clone(), self.layout.count)
    }

    fn pack(&self, memory: &[u8], packed: &mut [u8]) {
        hand::pack(&self.layout.nest, memory, packed);
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        hand::unpack(&self.layout.nest, packed, memory);
    }
}
