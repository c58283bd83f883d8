//! Who is measured: memcpy, the engine in several settings, and the hand-written loops (`hand.rs`),
//! behind one trait. Peer MPIs implement it too, in `peer/competitor.rs`.
//!
//! Comes after `layout.rs`. A competitor says which datatype its answer is that of, so that
//! `prepare.rs` verifies all of them in the same way; `measure.rs` and `benches/pack.rs` then call
//! them without knowing who they are.

use crate::hand::{Hand, Hands, Loops};
use crate::layout::Layout;
use std::sync::Arc;
use typepack_engine::Isa;
use typepack_engine::kernel::Direction;
use typepack_engine::{Datatype, Named, Plan, Settings, Strategy};
use typepack_jit::Jit;

/// Someone who packs and unpacks one layout at one size.
pub trait Competitor {
    /// Short name, the same in every row.
    fn name(&self) -> &'static str;

    /// What does the work right now: the kernel's name, or how the loop was written.
    fn executor(&self, direction: Direction) -> String;

    /// The datatype and count that describe what it moves, if not the layout's.
    fn moves(&self) -> Option<(Datatype, u64)> {
        None
    }

    /// Copies from `memory` (which begins at the type's origin) to `packed`.
    fn pack(&self, memory: &[u8], packed: &mut [u8]);

    /// Copies from `packed` to `memory`.
    fn unpack(&self, packed: &[u8], memory: &mut [u8]);
}

/// Name of the JIT in rows; ratios are taken from it.
pub const JIT: &str = "jit";

/// Name of the engine as an application uses it, in the rows of `suite.rs`.
pub const TYPEPACK: &str = "typepack";
/// Name of the hand-written loop in Rust.
pub const HAND: &str = "hand";
/// Name of the hand-written loop in C.
pub const HAND_C: &str = "hand-c";

type Competitors = typepack_engine::Result<Vec<Box<dyn Competitor>>>;

/// Those of `typepack-bench pack`, in the order in which they take turns.
///
/// # Errors
///
/// The engine's, when it refuses to commit the layout's datatype.
pub fn all(layout: &Layout, jit: &Jit) -> Competitors {
    let compiled = Settings { compiler: Some(Arc::new(jit.clone())), ..forced(Strategy::Kernel) };
    let mut list = vec![
        Memcpy::of(layout),
        Engine::of(layout, "interpreter", &forced(Strategy::Interpreter))?,
        Engine::of(layout, JIT, &compiled)?,
    ];
    hand_loops(&mut list, layout, &Hands::built_in().loops);
    Ok(list)
}

/// Those of `typepack-bench peers`, the peers excepted: "leaf" and "jit" are the halves of the
/// ablation, "typepack" is the policy that an application gets. `eager` compiles at commit, `lazy`
/// when its policy says so. `hands` are the builds of the hand loops; `isa`
/// is the instruction set of leaf kernels, the machine's best by default.
///
/// # Errors
///
/// As [`all`].
pub fn reference(
    layout: &Layout,
    eager: &Jit,
    lazy: &Jit,
    hands: &[Loops],
    isa: Option<Isa>,
) -> Competitors {
    let with = |strategy| Settings { strategy, isa, ..Settings::default() };
    let kernels =
        Settings { compiler: Some(Arc::new(eager.clone())), ..with(Some(Strategy::Kernel)) };
    let policy = Settings { compiler: Some(Arc::new(lazy.clone())), ..with(None) };
    let mut list = vec![
        Memcpy::of(layout),
        Engine::of(layout, "interpreter", &with(Some(Strategy::Interpreter)))?,
        Engine::of(layout, "leaf", &with(Some(Strategy::Leaf)))?,
        Engine::of(layout, JIT, &kernels)?,
        Engine::of(layout, TYPEPACK, &policy)?,
    ];
    hand_loops(&mut list, layout, hands);
    Ok(list)
}

/// `count` elements of `ty` with the engine under `settings`.
///
/// # Errors
///
/// The engine's.
pub fn typed(
    name: &'static str,
    ty: &Datatype,
    count: u64,
    settings: &Settings,
) -> typepack_engine::Result<Box<dyn Competitor>> {
    Ok(Box::new(Engine { name, plan: ty.commit_with(settings)?, count }))
}

/// Adds the layout's loops in every build, where it has some.
fn hand_loops(list: &mut Vec<Box<dyn Competitor>>, layout: &Layout, hands: &[Loops]) {
    if let Some(nest) = &layout.nest {
        list.extend(
            hands.iter().map(|&loops| Box::new(Hand::new(loops, nest)) as Box<dyn Competitor>),
        );
    }
}

fn forced(strategy: Strategy) -> Settings {
    Settings { strategy: Some(strategy), ..Settings::default() }
}

/// The copy of as many consecutive bytes: what no layout can beat by much.
struct Memcpy {
    bytes: usize,
}

impl Memcpy {
    fn of(layout: &Layout) -> Box<dyn Competitor> {
        Box::new(Self { bytes: layout.payload as usize })
    }
}

impl Competitor for Memcpy {
    fn name(&self) -> &'static str {
        "memcpy"
    }

    fn executor(&self, _: Direction) -> String {
        "memcpy".to_owned()
    }

    fn moves(&self) -> Option<(Datatype, u64)> {
        Some((Datatype::named(Named::BYTE), self.bytes as u64))
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

impl Engine {
    fn of(
        layout: &Layout,
        name: &'static str,
        settings: &Settings,
    ) -> typepack_engine::Result<Box<dyn Competitor>> {
        typed(name, &layout.datatype, layout.count, settings)
    }
}

impl Competitor for Engine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn executor(&self, direction: Direction) -> String {
        self.plan.kernel_name(direction)
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
