//! Integer tables in the narrowest width that holds them.
//!
//! Constructors keep the user's displacement and block length arrays as [`Table`]s; lowering
//! shares them (no second copy) and kernels read them in place, which is why the width is part of
//! a kernel's shape.

use std::sync::Arc;

/// A shared, immutable array of integers, 4 or 8 bytes per entry.
#[derive(Clone, Debug, Eq)]
pub enum Table {
    /// Every entry fits `i32`.
    Narrow(Arc<[i32]>),
    /// At least one entry needs `i64`.
    Wide(Arc<[i64]>),
}

impl PartialEq for Table {
    /// Tables that share their entries are equal at a glance.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Narrow(a), Self::Narrow(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::Wide(a), Self::Wide(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

/// Evaluates an expression with the entries of a [`Table`] as an iterator of `i64`, once per width:
/// `entries!(table, it => it.sum())`. Loops over a million entries must not ask for the width in
/// each round.
macro_rules! entries {
    ($table:expr, $it:ident => $body:expr) => {
        match $table {
            $crate::table::Table::Narrow(entries) => {
                let $it = entries.iter().map(|&entry| i64::from(entry));
                $body
            }
            $crate::table::Table::Wide(entries) => {
                let $it = entries.iter().copied();
                $body
            }
        }
    };
}
pub(crate) use entries;

impl Table {
    /// Stores `values` in the narrowest width that holds all of them.
    pub fn new(values: &[i64]) -> Self {
        // No early exit: this form is a vector loop, and most tables are narrow.
        let wide = values.iter().fold(false, |wide, &v| wide | (v != i64::from(v as i32)));
        if wide {
            Self::Wide(values.into())
        } else {
            // Lossless by the test above.
            Self::Narrow(values.iter().map(|&v| v as i32).collect())
        }
    }

    /// The least and the greatest entry; `None` when there is no entry.
    pub fn range(&self) -> Option<(i64, i64)> {
        fn range<T: Copy + Ord>(entries: &[T]) -> Option<(T, T)> {
            let first = *entries.first()?;
            Some(entries.iter().fold((first, first), |(low, high), &e| (low.min(e), high.max(e))))
        }
        match self {
            Self::Narrow(t) => range(t).map(|(low, high)| (low.into(), high.into())),
            Self::Wide(t) => range(t),
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
