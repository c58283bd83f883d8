//! Integer tables in the narrowest width that holds them.
//!
//! Constructors keep the user's displacement and block length arrays as [`Table`]s; lowering
//! shares them (no second copy) and kernels read them in place, which is why the width is part of
//! a kernel's shape.

use std::sync::Arc;

/// A shared, immutable array of integers, 4 or 8 bytes per entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// Every entry fits `i32`.
    Narrow(Arc<[i32]>),
    /// At least one entry needs `i64`.
    Wide(Arc<[i64]>),
}

impl Table {
    /// Stores `values` in the narrowest width that holds all of them.
    pub fn new(values: &[i64]) -> Self {
        if values.iter().all(|&v| i32::try_from(v).is_ok()) {
            // Lossless by the test above.
            Self::Narrow(values.iter().map(|&v| v as i32).collect())
        } else {
            Self::Wide(values.into())
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Narrow(t) => t.len(),
            Self::Wide(t) => t.len(),
        }
    }

    /// True when there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry at `index`; panics when out of range, like a slice.
    #[inline]
    pub fn get(&self, index: usize) -> i64 {
        match self {
            Self::Narrow(t) => i64::from(t[index]),
            Self::Wide(t) => t[index],
        }
    }

    /// The entries, widened.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Address of the first entry, for a kernel's parameter block.
    pub fn address(&self) -> u64 {
        match self {
            Self::Narrow(t) => t.as_ptr() as u64,
            Self::Wide(t) => t.as_ptr() as u64,
        }
    }

    /// Bytes per entry: 4 or 8.
    pub fn width(&self) -> usize {
        match self {
            Self::Narrow(_) => 4,
            Self::Wide(_) => 8,
        }
    }
}
