//! One side of a copy as levels over a leaf, and a place in it.
//!
//! Read from the program by `interpreted.rs` and `nest.rs` (from the program, not from the plan's nests,
//! which unroll short loops into windows), kept by `memo.rs` from call to call.
//!
//! SideLevels name the entries of tables by address. The tables belong to the plan's program, which is
//! immutable; whoever uses levels has been handed that plan again (`memo.rs` compares).

use crate::ir::{Node, Op, Program};
use crate::kernel::LevelShape;
use crate::table::Table;

/// Most levels of a side. Deeper programs are left to `staged.rs`.
pub(super) const LEVELS: usize = 8;

/// One level of a side. Counts are at least 2, but for the only level of a single block.
#[derive(Clone, Copy)]
pub(super) enum SideLevel {
    Loop { count: u64, stride: i64 },
    Table { entries: Entries, scale: i64 },
}

/// The entries of a table of the plan.
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

    /// # Safety
    ///
    /// - The plan of these entries is alive.
    /// - `index` is below their number.
    #[inline(always)]
    pub(super) unsafe fn get(self, index: u64) -> i64 {
        debug_assert!(index < self.len);
        // SAFETY: an entry of a table that is alive, of the width that the shape names.
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

    /// The two words of this side in a parameter block.
    pub(super) fn words(&self) -> [u64; 2] {
        match self {
            Self::Loop { stride, .. } => [*stride as u64, 0],
            Self::Table { entries, scale } => [entries.address, *scale as u64],
        }
    }

    /// # Safety
    ///
    /// - The plan of this level is alive.
    /// - `index` is below its count.
    unsafe fn displacement(&self, index: u64) -> i64 {
        match self {
            Self::Loop { stride, .. } => (index as i64).wrapping_mul(*stride),
            // SAFETY: as ours.
            Self::Table { entries, scale } => unsafe { entries.get(index) }.wrapping_mul(*scale),
        }
    }
}

/// SideLevels, outermost first.
#[derive(Clone)]
pub(super) struct SideLevels {
    levels: [SideLevel; LEVELS],
    depth: usize,
    pub(super) base: i64,
}

impl SideLevels {
    /// Those of `count` elements, and the leaf below them: a block or a sequence. `None` where
    /// there is anything else.
    #[inline]
    pub(super) fn of(program: &Program, count: u64) -> Option<(Self, &Node)> {
        // All zeros: the cheapest thing to fill an array with.
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

    /// Adds an innermost level.
    pub(super) fn push(&mut self, level: SideLevel) -> Option<()> {
        if level.count() == 1 {
            // SAFETY: the level was read from a plan just now, and has this iteration.
            let displacement = unsafe { level.displacement(0) };
            self.base = self.base.wrapping_add(displacement);
            return Some(());
        }
        self.push_any(level)
    }

    /// Takes the innermost level away.
    pub(super) fn pop(&mut self) -> Option<SideLevel> {
        self.depth = self.depth.checked_sub(1)?;
        Some(self.levels[self.depth])
    }

    /// Adds an innermost level, also one of a single iteration.
    pub(super) fn push_any(&mut self, level: SideLevel) -> Option<()> {
        *self.levels.get_mut(self.depth)? = level;
        self.depth += 1;
        Some(())
    }

    /// The innermost level, if there is one.
    pub(super) fn last(&self) -> Option<&SideLevel> {
        self.levels[..self.depth].last()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.depth == 0
    }

    /// Gives a single leaf the one level that every walk needs.
    pub(super) fn close(mut self) -> Self {
        if self.depth == 0 {
            self.levels[0] = SideLevel::Loop { count: 1, stride: 0 };
            self.depth = 1;
        }
        self
    }

    /// The innermost level.
    #[inline]
    pub(super) fn inner(&self) -> &SideLevel {
        &self.levels[self.depth - 1]
    }
}

/// A place in a side: the base of the current innermost row and the next iteration in it.
pub(super) struct Walk<'a> {
    levels: &'a SideLevels,
    index: [u64; LEVELS],
    pub(super) row: *mut u8,
}

impl<'a> Walk<'a> {
    /// At iteration number `item` of the innermost level, counted through all levels; displacement
    /// 0 is at `origin`.
    ///
    /// # Safety
    ///
    /// - The plan of `levels` is alive as long as the walk.
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
                // SAFETY: the plan is alive (our contract), the index below the count. Also where
                // it is 0: tables may begin anywhere.
                let shift = unsafe { level.displacement(index[l]) };
                row = row.wrapping_offset(shift as isize);
            }
        }
        Self { levels, index, row }
    }

    /// The innermost level and the next iteration of it.
    #[inline]
    pub(super) fn inner(&self) -> (&'a SideLevel, u64) {
        (self.levels.inner(), self.index[self.levels.depth - 1])
    }

    /// Iterations left in the row.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        let (level, index) = self.inner();
        level.count() - index
    }

    /// Goes `items` on, at most to the end of the row.
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
            // SAFETY: the plan is alive (the contract of `at`), both indices below the count.
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
