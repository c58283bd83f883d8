//! The competitors behind one trait: memcpy, the engine in several settings, and the hand-written loops
//! (`hand.rs`). Peer MPIs implement the trait in `peer/competitor.rs`.
//!
//! A competitor is made for a layout of `layout.rs`. It states the datatype that describes its answer, so
//! that `prepare.rs` can verify all competitors in the same way. `measure.rs` and `benches/pack.rs` then
//! call each of them through the trait.

pub mod hand;
mod hand_c;

use self::hand::{Hand, Hands, Loops};
use crate::layout::Layout;
use std::sync::Arc;
use typepack_engine::Isa;
use typepack_engine::kernel::Direction;
use typepack_engine::{Datatype, Named, Plan, Settings, Strategy};
use typepack_jit::Jit;

/// A competitor: code that packs and unpacks one layout at one size.
pub trait Competitor {
    /// Returns a short name, which is the same in every row.
    fn name(&self) -> &'static str;

    /// Returns the name of the kernel that currently does the work, or how the loop was written.
    fn executor(&self, direction: Direction) -> String;

    /// Returns the datatype and the count that describe the moved data, or `None` if the layout's own
    /// datatype and count do.
    fn moves(&self) -> Option<(Datatype, u64)> {
        None
    }

    /// Copies from `memory` (which begins at the type's origin) to `packed`.
    fn pack(&self, memory: &[u8], packed: &mut [u8]);

    /// Copies from `packed` to `memory`.
    fn unpack(&self, packed: &[u8], memory: &mut [u8]);
}

/// The name of the JIT in rows. The ratios of `typepack-bench pack` compare the JIT with the other
/// competitors.
pub const JIT: &str = "jit";

/// The name, in the rows of `suite.rs`, of the engine with the settings that an application gets.
pub const TYPEPACK: &str = "typepack";
/// The name of the hand-written loop in Rust.
pub const HAND: &str = "hand";
/// The name of the hand-written loop in C.
pub const HAND_C: &str = "hand-c";

type Competitors = typepack_engine::Result<Vec<Box<dyn Competitor>>>;

/// Returns the competitors of `typepack-bench pack`, in the order in which they take turns.
///
/// # Errors
///
/// Returns the engine's error if it refuses to commit the layout's datatype.
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

/// Returns the competitors of `typepack-bench peers`, without the peers. "leaf" and "jit" have only one
/// kind of kernels each, for the ablation; "typepack" has the policy that an application gets. `eager`
/// compiles at commit, and `lazy` when its policy decides so. `hands` are the builds of the hand loops.
/// `isa` is the instruction set of leaf kernels; by default the machine's best.
///
/// # Errors
///
/// Returns the errors of [`all`].
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

/// Returns a competitor that moves `count` elements of `ty` with the engine under `settings`.
///
/// # Errors
///
/// Returns the engine's error if it refuses to commit the type.
pub fn typed(
    name: &'static str,
    ty: &Datatype,
    count: u64,
    settings: &Settings,
) -> typepack_engine::Result<Box<dyn Competitor>> {
    Ok(Box::new(Engine { name, plan: ty.commit_with(settings)?, count }))
}

/// Adds one competitor per build of the hand loops, if the layout has loops.
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

/// Copies as many consecutive bytes as the layout packs. No competitor can be much faster.
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

/// The engine through its safe calls, as a program uses it.
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
            .expect("the engine refused the buffers of this layout");
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        typepack_engine::unpack(&self.plan, self.count, packed, memory)
            .expect("the engine refused the buffers of this layout");
    }
}
