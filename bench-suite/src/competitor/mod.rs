//! The trait that all competitors implement, and three kinds of competitors: memcpy, the engine in several
//! settings, and the hand-written loops (`hand.rs`). Peer MPIs implement the trait in `peer/competitor.rs`.
//!
//! A competitor is made for one layout of `layout.rs`. Memcpy moves consecutive bytes instead of the
//! layout's data. A competitor that does not move the layout's data states the datatype of the data that it
//! moves, so that `prepare.rs` can verify all competitors in the same way. `measure.rs` and
//! `benches/pack.rs` call all competitors through the trait.

pub mod hand;
mod hand_c;

use self::hand::{Hand, Loops};
use crate::layout::Layout;
use crate::row::{INTERPRETER, JIT, LEAF, MEMCPY, TYPEPACK};
use std::sync::Arc;
use typepack_engine::Isa;
use typepack_engine::kernel::Direction;
use typepack_engine::{Datatype, Named, Plan, Settings, Strategy};
use typepack_jit::{Jit, Mode};

/// A competitor: code that packs and unpacks one layout at one size.
pub trait Competitor {
    /// Returns the short name of this competitor, which is the same in every row.
    fn name(&self) -> &'static str;

    /// Returns the name of the kernel that currently moves the data in this direction. For a competitor
    /// without kernels, returns a text such as `Rust loop` instead.
    fn executor(&self, direction: Direction) -> String;

    /// Returns the datatype and the count of the data that this competitor moves. `None` means that it
    /// moves the data of the layout: the layout's own datatype and count.
    fn moves(&self) -> Option<(Datatype, u64)> {
        None
    }

    /// Packs the data from `memory`, which begins at the type's origin, to `packed`.
    fn pack(&self, memory: &[u8], packed: &mut [u8]);

    /// Unpacks the data from `packed` to `memory`, which begins at the type's origin.
    fn unpack(&self, packed: &[u8], memory: &mut [u8]);
}

type Competitors = typepack_engine::Result<Vec<Box<dyn Competitor>>>;

/// Returns the code generators of compiled kernels that are forced, which compiles at commit, and of the free choice,
/// which compiles when its policy decides to.
pub fn generators() -> [Jit; 2] {
    let new = |mode| Jit::new(typepack_jit::Settings { mode, ..typepack_jit::Settings::default() });
    [new(Mode::Eager), new(Mode::Lazy)]
}

/// Returns all competitors except the peers, in the order in which they take turns and stand in tables: memcpy, the
/// hand-written loops, what an application gets ("typepack", the free choice), and then the forced strategies.
/// "leaf", "jit" and "interpreter" may each use only one kind of kernel, so that the kinds can be compared.
/// [`generators`] makes `jits`. `hands` are the builds of the hand-written loops. `isa` is the instruction set of leaf
/// kernels; `None` stands for the best set that this machine supports.
///
/// # Errors
///
/// Returns the engine's error if it refuses to commit the layout's datatype.
pub fn all(
    layout: &Layout,
    [eager, lazy]: &[Jit; 2],
    hands: &[Loops],
    isa: Option<Isa>,
) -> Competitors {
    let with = |strategy| Settings { strategy, isa, ..Settings::default() };
    let kernels =
        Settings { compiler: Some(Arc::new(eager.clone())), ..with(Some(Strategy::Kernel)) };
    let policy = Settings { compiler: Some(Arc::new(lazy.clone())), ..with(None) };
    let mut list = vec![Memcpy::of(layout)];
    if let Some(nest) = &layout.nest {
        list.extend(
            hands.iter().map(|&loops| Box::new(Hand::new(loops, nest)) as Box<dyn Competitor>),
        );
    }
    list.push(Engine::of(layout, TYPEPACK, &policy)?);
    list.push(Engine::of(layout, LEAF, &with(Some(Strategy::Leaf)))?);
    list.push(Engine::of(layout, JIT, &kernels)?);
    list.push(Engine::of(layout, INTERPRETER, &with(Some(Strategy::Interpreter)))?);
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

/// The competitor memcpy: copies as many consecutive bytes as the layout packs. No competitor can be much
/// faster.
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
        MEMCPY
    }

    fn executor(&self, _: Direction) -> String {
        MEMCPY.to_owned()
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

/// A competitor: the engine, called through its safe functions, as a Rust program calls it.
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
            .expect("the engine must pack with the buffers of this layout");
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        typepack_engine::unpack(&self.plan, self.count, packed, memory)
            .expect("the engine must unpack with the buffers of this layout");
    }
}
