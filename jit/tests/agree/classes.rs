//! Tests every class of kernels at every alignment, against guard pages, and with counts of 0.
//!
//! A class is a set of shapes for which the translator writes code of the same structure. A class is
//! defined by direction, kind of the innermost level, depth, and kind of leaf (what one iteration of the
//! innermost level moves). The lists below come from matches without a wildcard, so a new kind of level
//! or leaf does not compile until it has a class. [`Sweep::complete`] fails if a class was not tested.

use super::guarded::Edge;
use super::transfer::{self, Transfer};
use super::{agree_at, block, jit, window};
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::iter::successors;
use typepack_engine::Table;
use typepack_engine::kernel::{
    Compiler, Direction, LeafShape, Level, LevelShape, Nest, Shape, TransferLeaf, TransferRun,
    TransferShape,
};
use typepack_jit::Jit;

/// Length of the longest run that becomes straight-line code, in bytes. A longer run becomes a
/// loop, and its window is not unrolled. So windows with a longer run are a class of their own.
const STRAIGHT: u64 = 128;

/// Lengths of blocks that are tested with every number of levels. Copying a block takes one move (1, 4 and 8
/// bytes), two moves (12 bytes) or four moves (64 bytes). For 4 and 8 bytes, the code generator may join the
/// moves of neighbouring blocks.
const DEEP: [u32; 5] = [1, 4, 8, 12, 64];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LeafClass {
    Fixed(u32),
    Long,
    /// A window whose runs all become straight-line code.
    Window,
    /// A window with at least one run that becomes a loop.
    WindowOfLongRuns,
}

impl LeafClass {
    fn of(leaf: &LeafShape) -> Self {
        match leaf {
            LeafShape::Fixed { bytes } => Self::Fixed(*bytes),
            LeafShape::Long => Self::Long,
            LeafShape::Window { runs } if runs.iter().all(|run| run.bytes <= STRAIGHT) => {
                Self::Window
            }
            LeafShape::Window { .. } => Self::WindowOfLongRuns,
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        successors(Some(Self::Fixed(1)), |leaf| match leaf {
            Self::Fixed(bytes) if u64::from(*bytes) < LeafShape::FIXED_MAX => {
                Some(Self::Fixed(bytes + 1))
            }
            Self::Fixed(_) => Some(Self::Long),
            Self::Long => Some(Self::Window),
            Self::Window => Some(Self::WindowOfLongRuns),
            Self::WindowOfLongRuns => None,
        })
    }

    fn at_depth(self, depth: usize) -> bool {
        match self {
            Self::Fixed(bytes) => depth <= 2 || DEEP.contains(&bytes),
            Self::Long | Self::Window | Self::WindowOfLongRuns => true,
        }
    }

    /// Returns a nest with a leaf of this class. `which` varies the properties that the class does
    /// not fix.
    fn nest(self, levels: impl Fn(i64) -> Vec<Level>, which: usize) -> Nest {
        match self {
            Self::Fixed(bytes) => block(levels(i64::from(bytes) + 3), u64::from(bytes)),
            Self::Long => {
                let bytes = [65, 100, 127, 128, 129, 191, 192, 193, 321][which % 9];
                block(levels(bytes as i64 + 3), bytes)
            }
            Self::Window => {
                let runs: [&[(i64, u64)]; 4] = [
                    &[(0, 1), (4, 4), (8, 8)],
                    &[(0, 8), (16, 8), (32, 4), (40, 4), (48, 4), (56, 4), (64, 2), (70, 2)],
                    &[(0, 12), (13, 31), (50, 128)],
                    &[(0, 3), (-9, 5), (20, 7)],
                ];
                window(levels(190), runs[which % 4])
            }
            Self::WindowOfLongRuns => {
                let runs: [&[(i64, u64)]; 2] =
                    [&[(0, 3), (5, 130), (140, 8), (150, 193)], &[(0, 129)]];
                window(levels(350), runs[which % 2])
            }
        }
    }
}

fn levels() -> impl Iterator<Item = LevelShape> {
    successors(Some(LevelShape::Loop), |level| match level {
        LevelShape::Loop => Some(LevelShape::Table32),
        LevelShape::Table32 => Some(LevelShape::Table64),
        LevelShape::Table64 => None,
    })
}

fn directions() -> impl Iterator<Item = Direction> {
    successors(Some(Direction::Pack), |direction| match direction {
        Direction::Pack => Some(Direction::Unpack),
        Direction::Unpack => None,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Class {
    direction: Direction,
    inner: LevelShape,
    depth: usize,
    leaf: LeafClass,
}

impl Class {
    fn of(shape: &Shape) -> Self {
        let Shape { direction, levels, leaf } = shape;
        let inner = *levels.last().expect("every shape has a level");
        Self { direction: *direction, inner, depth: levels.len(), leaf: LeafClass::of(leaf) }
    }
}

/// Records which cases of each class were tested.
struct Sweep<C>(HashMap<C, Tried>);

/// What was tested of one class. `insets` has a word per edge and in each word a bit per inset (the
/// distance of the memory from the guard page, 0 to 63 bytes). `nothing` is true if counts of 0
/// were tested.
#[derive(Default)]
struct Tried {
    insets: [u64; 2],
    nothing: bool,
}

impl<C: Copy + Debug + Eq + Hash> Sweep<C> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn at(&mut self, class: C, edge: Edge, inset: usize) {
        self.0.entry(class).or_default().insets[edge as usize] |= 1 << inset;
    }

    fn nothing(&mut self, class: C) {
        self.0.entry(class).or_default().nothing = true;
    }

    fn complete(&self, classes: impl Iterator<Item = C>) {
        let mut all = 0;
        for class in classes {
            let Some(tried) = self.0.get(&class) else { panic!("{class:?} was never run") };
            assert_eq!(tried.insets, [u64::MAX; 2], "{class:?}: alignments before, after pages");
            assert!(tried.nothing, "{class:?}: counts of 0 were not tested");
            all += 1;
        }
        assert_eq!(all, self.0.len(), "a kernel ran that is in no class");
    }
}

/// Returns a level of `count` iterations that are `stride` bytes apart. If the level is a table, the
/// iterations are in permuted order for most counts.
fn level(kind: LevelShape, count: u64, stride: i64) -> Level {
    // All entries differ. For most counts they do not ascend.
    let entries = || -> Vec<i64> {
        (0..count as i64)
            .map(|i| if count.is_multiple_of(7) { i } else { i * 7 % count as i64 })
            .collect()
    };
    match kind {
        LevelShape::Loop => Level::Loop { count, stride },
        LevelShape::Table32 => Level::Table { entries: Table::new(&entries()), scale: stride },
        LevelShape::Table64 => {
            Level::Table { entries: Table::Wide(entries().as_slice().into()), scale: stride }
        }
    }
}

/// Returns `depth` levels. The innermost level has the kind `inner` and `count` iterations. The
/// outer levels have all kinds and few iterations, so that nests of 8 levels stay within a few KiB.
fn nest_levels(inner: LevelShape, depth: usize, count: u64, stride: i64) -> Vec<Level> {
    let kinds: Vec<LevelShape> = levels().collect();
    let mut levels = vec![level(inner, count, stride)];
    let mut reach = stride * count as i64;
    for l in 1..depth {
        let times = if l <= 3 { 2 } else { 1 };
        levels.push(level(kinds[(l + depth) % 3], times, reach + 5));
        reach = (reach + 5) * times as i64;
    }
    levels.reverse();
    levels
}

/// Returns the inset of the second buffer (the packed bytes, or the destination of a fused copy) for
/// the inset of the first one. The function is a permutation of 0..64 without a fixed point, so the
/// alignments of the two buffers differ.
fn other(inset: usize) -> usize {
    (inset * 29 + 7) % 64
}

/// Returns the count of the innermost level for a case with this inset. Among the counts of all
/// insets are counts with whole groups, and with every remainder, for unrolled bodies of up to 8
/// leaves.
fn count(inset: usize, depth: usize) -> u64 {
    if depth <= 2 { 8 + inset as u64 % 9 } else { 1 + inset as u64 % 9 }
}

#[test]
fn every_class_at_every_alignment() {
    let jit = jit();
    let mut sweep = Sweep::new();
    let shapes = || {
        (1..=Nest::MAX_DEPTH).flat_map(|depth| {
            LeafClass::all()
                .filter(move |leaf| leaf.at_depth(depth))
                .flat_map(move |leaf| levels().map(move |inner| (depth, inner, leaf)))
        })
    };
    for (depth, inner, leaf) in shapes() {
        for inset in 0..64 {
            let levels = |stride| nest_levels(inner, depth, count(inset, depth), stride);
            let nest = leaf.nest(levels, inset);
            let part = super::full(&nest);
            for edge in [Edge::Start, Edge::End] {
                agree_at(&jit, &nest, &part, edge, [inset, other(inset)], "class");
                // `agree_at` has compared both directions.
                for direction in directions() {
                    sweep.at(Class::of(&nest.shape(direction)), edge, inset);
                }
            }
        }
        let nest = leaf.nest(|stride| nest_levels(inner, depth, 9, stride), 0);
        for direction in directions() {
            let shape = nest.shape(direction);
            moves_nothing(&jit, &nest, &shape);
            sweep.nothing(Class::of(&shape));
        }
    }
    let classes = shapes().flat_map(|(depth, inner, leaf)| {
        directions().map(move |direction| Class { direction, inner, depth, leaf })
    });
    sweep.complete(classes);
    assert_eq!(jit.counters().refusals, 0);
}

/// Checks, for each level in turn, that the kernel accesses neither buffer if the count of the level
/// is 0. Both addresses are null.
fn moves_nothing(jit: &Jit, nest: &Nest, shape: &Shape) {
    let kernel = jit.kernel(shape).unwrap_or_else(|| panic!("{shape} refused"));
    for zero in 0..nest.levels.len() {
        let mut part = super::full(nest);
        part[zero] = (3, 3);
        let params = super::reference::parameters(nest, &part).0;
        // SAFETY: one count is 0, so no memory but `params` is accessed.
        unsafe { kernel.entry()(params.as_ptr(), std::ptr::null_mut(), std::ptr::null_mut()) };
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TransferLeafClass {
    Block(u64),
    Long,
    Runs,
}

impl TransferLeafClass {
    fn of(leaf: &TransferLeaf) -> Self {
        match leaf {
            TransferLeaf::Runs { runs } => match **runs {
                [TransferRun { from: 0, to: 0, bytes }] => Self::Block(bytes),
                _ => Self::Runs,
            },
            TransferLeaf::Long => Self::Long,
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        successors(Some(Self::Block(1)), |leaf| match leaf {
            Self::Block(bytes) if *bytes < TransferShape::RUN_BYTES => Some(Self::Block(bytes + 1)),
            Self::Block(_) => Some(Self::Long),
            Self::Long => Some(Self::Runs),
            Self::Runs => None,
        })
    }

    fn at_depth(self, depth: usize) -> bool {
        match self {
            Self::Block(bytes) => depth == 1 || DEEP.map(u64::from).contains(&bytes),
            Self::Long | Self::Runs => true,
        }
    }

    fn transfer(self, levels: impl Fn(i64) -> Vec<[Level; 2]>, which: usize) -> Transfer {
        let long = || [65, 100, 127, 128, 129, 191, 192, 193, 321][which % 9];
        let runs: [&[(i64, i64, u64)]; 3] = [
            &[(0, 0, 16), (16, 32, 8), (32, 40, 8), (40, 64, 16)],
            &[(0, 7, 4), (9, 11, 4), (20, 15, 4), (31, 19, 4), (40, 30, 13)],
            &[(5, 0, 64)],
        ];
        match self {
            Self::Block(bytes) => Transfer::block(levels(bytes as i64 + 3), bytes),
            Self::Long => Transfer::block(levels(long() as i64 + 3), long()),
            Self::Runs => {
                let run = |&(from, to, bytes)| TransferRun { from, to, bytes };
                let runs = runs[which % 3].iter().map(run).collect();
                Transfer { levels: levels(83), runs, long: false }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TransferClass {
    inner: [LevelShape; 2],
    depth: usize,
    leaf: TransferLeafClass,
}

impl TransferClass {
    fn of(shape: &TransferShape) -> Self {
        let TransferShape { levels, leaf } = shape;
        let inner = *levels.last().expect("every shape has a level");
        Self { inner, depth: levels.len(), leaf: TransferLeafClass::of(leaf) }
    }
}

#[test]
fn every_class_of_pairs_at_every_alignment() {
    let jit = jit();
    let mut sweep = Sweep::new();
    let classes = || {
        (1..=TransferShape::MAX_DEPTH).flat_map(|depth| {
            let leaves = TransferLeafClass::all().filter(move |leaf| leaf.at_depth(depth));
            leaves.flat_map(move |leaf| {
                let inners = || levels().flat_map(|from| levels().map(move |to| [from, to]));
                inners().map(move |inner| TransferClass { inner, depth, leaf })
            })
        })
    };
    for TransferClass { inner: [from, to], depth, leaf } in classes() {
        let both = |count| {
            move |stride| {
                let from = nest_levels(from, depth, count, stride);
                from.into_iter()
                    .zip(nest_levels(to, depth, count, stride + 2))
                    .map(<_>::from)
                    .collect()
            }
        };
        for inset in 0..64 {
            let transfer = leaf.transfer(both(count(inset, depth)), inset);
            for edge in [Edge::Start, Edge::End] {
                transfer::agree_at(&jit, &transfer, edge, [inset, other(inset)], "class");
                sweep.at(TransferClass::of(&transfer.shape()), edge, inset);
            }
        }
        let transfer = leaf.transfer(both(9), 0);
        let kernel = jit.transfer_kernel(&transfer.shape()).expect("the shape has a kernel");
        for zero in 0..depth {
            let mut params = transfer.parameters();
            params[5 * zero] = 0;
            // SAFETY: one count is 0, so no memory but `params` is accessed.
            unsafe { kernel.entry()(params.as_ptr(), std::ptr::null_mut(), std::ptr::null_mut()) };
        }
        sweep.nothing(TransferClass::of(&transfer.shape()));
    }
    sweep.complete(classes());
    assert_eq!(jit.counters().refusals, 0);
}
