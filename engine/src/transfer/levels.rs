//! The levels of one side of a copy, and a position in them. The sides are the source and the
//! destination. A level (a loop or a table) repeats the levels inside it at different displacements.
//!
//! `interpreted.rs` and `nest.rs` use this file to read the levels of a program. They cannot use the
//! nests of the plan, because the plan has unrolled short loops into windows (sequences of a few short
//! blocks). `memo.rs` keeps levels from one call to the next.
//!
//! A level refers to the entries of a table by their address. The table belongs to the plan's program,
//! which never changes. A copy never uses levels with any plan except the one from which they were
//! read: `memo.rs` compares the plans.

use crate::ir::{Node, Op, Program};
use crate::kernel::LevelShape;
use typepack_leaf::Table;

/// Maximum number of levels of a side. `staged.rs` handles deeper programs.
pub(super) const LEVELS: usize = 8;

/// One level of a side. It usually has at least 2 iterations. But if one side of the transfer is a
/// single leaf, the innermost level of either side may have 1 iteration.
#[derive(Clone, Copy)]
pub(super) enum SideLevel {
    Loop { count: u64, stride: i64 },
    Table { entries: Entries, scale: i64 },
}

/// The entries of a table in the plan's program.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    address: u64,
    len: u64,
    shape: LevelShape,
}

impl Entries {
    fn of(table: &Table) -> Self {
        let shape = LevelShape::of_table(table);
        Self { address: table.address(), len: table.len() as u64, shape }
    }

    /// Returns entry `index`.
    ///
    /// # Safety
    ///
    /// - The plan of these entries is alive.
    /// - `index` is below the number of entries.
    #[inline(always)]
    pub(super) unsafe fn get(self, index: u64) -> i64 {
        debug_assert!(index < self.len);
        // SAFETY: the caller guarantees that the plan, which owns the table, is alive, and that
        // `index` is below the table's length. `shape` states the width of the entries.
        unsafe {
            match self.shape {
                LevelShape::Table32 => i64::from(*(self.address as *const i32).add(index as usize)),
                _ => *(self.address as *const i64).add(index as usize),
            }
        }
    }
}

impl SideLevel {
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Loop { count, .. } => *count,
            Self::Table { entries, .. } => entries.len,
        }
    }

    pub(super) fn shape(&self) -> LevelShape {
        match self {
            Self::Loop { .. } => LevelShape::Loop,
            Self::Table { entries, .. } => entries.shape,
        }
    }

    /// Returns the two words that describe this side of a level in the parameter block of a kernel.
    pub(super) fn words(&self) -> [u64; 2] {
        match self {
            Self::Loop { stride, .. } => [*stride as u64, 0],
            Self::Table { entries, scale } => [entries.address, *scale as u64],
        }
    }

    /// Returns the displacement of iteration `index`.
    ///
    /// # Safety
    ///
    /// - The plan of this level is alive.
    /// - `index` is below the level's count.
    unsafe fn displacement(&self, index: u64) -> i64 {
        match self {
            Self::Loop { stride, .. } => (index as i64).wrapping_mul(*stride),
            // SAFETY: the caller guarantees that the plan is alive and that `index` is below the
            // count. The count is the number of entries.
            Self::Table { entries, scale } => unsafe { entries.get(index) }.wrapping_mul(*scale),
        }
    }
}

/// The levels of a side, outermost first.
#[derive(Clone)]
pub(super) struct SideLevels {
    levels: [SideLevel; LEVELS],
    depth: usize,
    pub(super) base: i64,
}

impl SideLevels {
    /// Returns the levels of `count` elements and the leaf below them, which is a block or a sequence.
    /// Returns `None` if the program is empty, if one of the levels is a ragged list (a list whose
    /// entries may have different lengths), or if there are more than `LEVELS` levels.
    #[inline]
    pub(super) fn of(program: &Program, count: u64) -> Option<(Self, &Node)> {
        // Start with an array of zeros, because that is the initialisation for which the compiler
        // generates the fastest code.
        let levels = [SideLevel::Loop { count: 0, stride: 0 }; LEVELS];
        let mut side = Self { levels, depth: 0, base: 0 };
        let mut edge = program.body?;
        side.push(SideLevel::Loop { count: program.factor * count, stride: program.stride })?;
        loop {
            side.base = side.base.wrapping_add(edge.offset);
            let node = program.node(edge.node);
            edge = match &node.op {
                Op::Block | Op::Seq { .. } => return Some((side, node)),
                Op::Loop { count, stride, body } => {
                    side.push(SideLevel::Loop { count: *count, stride: *stride })?;
                    *body
                }
                Op::Table { entries, scale, body } => {
                    side.push(SideLevel::Table { entries: Entries::of(entries), scale: *scale })?;
                    *body
                }
                Op::Ragged { .. } => return None,
            };
        }
    }

    /// Adds `level` as the innermost level. If `level` has a single iteration, only moves the base and
    /// adds no level. Returns `None` if there are too many levels.
    pub(super) fn push(&mut self, level: SideLevel) -> Option<()> {
        if level.count() == 1 {
            // SAFETY: a table comes from a plan that the caller borrows, so that plan is alive; a loop
            // needs no plan. The count of the level is 1, so iteration 0 exists.
            let displacement = unsafe { level.displacement(0) };
            self.base = self.base.wrapping_add(displacement);
            return Some(());
        }
        self.push_any(level)
    }

    /// Removes and returns the innermost level.
    pub(super) fn pop(&mut self) -> Option<SideLevel> {
        self.depth = self.depth.checked_sub(1)?;
        Some(self.levels[self.depth])
    }

    /// Adds an innermost level, even if the level has a single iteration. Returns `None` if there
    /// are too many levels.
    pub(super) fn push_any(&mut self, level: SideLevel) -> Option<()> {
        *self.levels.get_mut(self.depth)? = level;
        self.depth += 1;
        Some(())
    }

    /// Returns the innermost level, or `None` if there is none.
    pub(super) fn last(&self) -> Option<&SideLevel> {
        self.levels[..self.depth].last()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.depth == 0
    }

    /// Adds a level with count 1 if the side has no level (it is then a single leaf), because every
    /// walk needs a level.
    pub(super) fn close(mut self) -> Self {
        if self.depth == 0 {
            self.levels[0] = SideLevel::Loop { count: 1, stride: 0 };
            self.depth = 1;
        }
        self
    }

    /// Returns the innermost level. The side must have a level.
    #[inline]
    pub(super) fn inner(&self) -> &SideLevel {
        &self.levels[self.depth - 1]
    }
}

/// A position in a side: the base of the current row (a row is one pass through the innermost level),
/// and the index of the next iteration of every level.
pub(super) struct Walk<'a> {
    levels: &'a SideLevels,
    index: [u64; LEVELS],
    pub(super) row: *mut u8,
}

impl<'a> Walk<'a> {
    /// Returns the position of iteration `item` of the innermost level. `item` counts the
    /// iterations from the start of the side. Displacement 0 is at `origin`.
    ///
    /// # Safety
    ///
    /// - The plan of `levels` outlives the walk.
    pub(super) unsafe fn at(levels: &'a SideLevels, origin: *mut u8, item: u64) -> Self {
        let mut index = [0; LEVELS];
        let mut row = origin.wrapping_offset(levels.base as isize);
        let mut rest = item;
        for l in (0..levels.depth).rev() {
            let level = &levels.levels[l];
            if rest != 0 {
                index[l] = rest % level.count();
                rest /= level.count();
            }
            if l + 1 < levels.depth {
                // SAFETY: the caller guarantees that the plan is alive, and the index is below the
                // count. Even index 0 needs this call, because entry 0 of a table may differ from
                // 0.
                let shift = unsafe { level.displacement(index[l]) };
                row = row.wrapping_offset(shift as isize);
            }
        }
        Self { levels, index, row }
    }

    /// Returns the innermost level and the index of its next iteration.
    #[inline]
    pub(super) fn inner(&self) -> (&'a SideLevel, u64) {
        (self.levels.inner(), self.index[self.levels.depth - 1])
    }

    /// Returns the number of iterations left in the current row.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        let (level, index) = self.inner();
        level.count() - index
    }

    /// Advances by `items` iterations. The caller must not advance beyond the end of the current row.
    #[inline]
    pub(super) fn advance(&mut self, items: u64) {
        let mut l = self.levels.depth - 1;
        self.index[l] += items;
        if self.index[l] < self.levels.levels[l].count() {
            return;
        }
        self.index[l] = 0;
        while l > 0 {
            l -= 1;
            let level = &self.levels.levels[l];
            let before = self.index[l];
            self.index[l] += 1;
            let carry = self.index[l] == level.count();
            if carry {
                self.index[l] = 0;
            }
            // SAFETY: the caller of `at` guarantees that the plan outlives the walk. Both indices
            // are below the count of the level.
            let step = unsafe {
                level.displacement(self.index[l]).wrapping_sub(level.displacement(before))
            };
            self.row = self.row.wrapping_offset(step as isize);
            if !carry {
                return;
            }
        }
    }
}
