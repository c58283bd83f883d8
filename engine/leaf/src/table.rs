//! Tables of integers that are stored in the narrowest width that holds all entries.
//!
//! Constructors store the user's arrays of displacements and block lengths as [`Table`]s. Lowering
//! shares these tables instead of copying them, and kernels read them in place. So the width of a
//! table is part of a kernel's shape. The first access to a page of fresh memory costs more than
//! copying data into the page, so a narrower table is also made in less time. A list of a million
//! short blocks takes only five bytes per block: four for the displacement and one for the length.

use std::sync::Arc;

/// A shared, immutable array of integers. An entry takes 4 or 8 bytes; the entries of a table of
/// lengths may take 1 byte each.
#[derive(Clone, Debug, Eq)]
pub enum Table {
    /// Lengths that fit in a `u8`. Tables of positions, which kernels read, never have this width.
    Short(Short),
    /// Every entry fits in an `i32`.
    Narrow(Arc<[i32]>),
    /// At least one entry needs an `i64`.
    Wide(Arc<[i64]>),
}

/// The entries of [`Table::Short`]. Only the engine can make a value of this type.
#[derive(Clone, Debug)]
pub struct Short(Bytes);

/// The storage for lengths of one byte each.
#[derive(Clone, Debug)]
enum Bytes {
    /// Up to 16 lengths, all of which are 1. They are not reference-counted, so a clone of them needs
    /// no atomic operation.
    Static(&'static [u8]),
    Shared(Arc<[u8]>),
}

impl std::ops::Deref for Short {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Static(bytes) => bytes,
            Bytes::Shared(bytes) => bytes,
        }
    }
}

impl PartialEq for Short {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(&**self, &**other) || **self == **other
    }
}

impl Eq for Short {}

impl PartialEq for Table {
    /// Compares the widths and the entries of two tables. Tables of different widths are never equal. Two
    /// tables that share one array of entries are equal; their entries need not be compared.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Short(a), Self::Short(b)) => a == b,
            (Self::Narrow(a), Self::Narrow(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::Wide(a), Self::Wide(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

/// Evaluates an expression in which the entries of a [`Table`] are an iterator of `i64`:
/// `entries!(table, it => it.sum())`. The expression is compiled once for each width, so that a loop
/// over a million entries does not test the width in each iteration.
#[macro_export]
macro_rules! entries {
    ($table:expr, $it:ident => $body:expr) => {
        match $table {
            $crate::Table::Short(entries) => {
                let $it = entries.iter().map(|&entry| i64::from(entry));
                $body
            }
            $crate::Table::Narrow(entries) => {
                let $it = entries.iter().map(|&entry| i64::from(entry));
                $body
            }
            $crate::Table::Wide(entries) => {
                let $it = entries.iter().copied();
                $body
            }
        }
    };
}
pub(crate) use entries;

/// Converts `values` to a narrower width if they fit. Returns `None` otherwise. `bits` maps a value
/// to its relevant bits; `fits` decides from the bitwise OR of the bits of several values whether all
/// these values fit. `narrow` converts one value.
///
/// The function makes one pass, because a second pass over a long array costs measurable time. It
/// converts the values in parts, and stops after the first part that does not fit. Before the pass,
/// it tests the last value, because the values of a list often ascend, and then the last value is the
/// greatest.
fn narrowed<T: Copy>(
    values: &[i64],
    bits: impl Fn(i64) -> u64,
    fits: impl Fn(u64) -> bool,
    narrow: impl Fn(i64) -> T,
) -> Option<Arc<[T]>> {
    /// Number of entries that are converted between two calls of `fits`. The number is large enough
    /// for vector loops, and small enough that a part fits in one page.
    const PART: usize = 512;
    if !values.last().is_none_or(|&last| fits(bits(last))) {
        return None;
    }
    let mut made = Arc::new_uninit_slice(values.len());
    let room = Arc::get_mut(&mut made)?;
    for (from, to) in values.chunks(PART).zip(room.chunks_mut(PART)) {
        let mut all = 0;
        for (&from, to) in from.iter().zip(to) {
            all |= bits(from);
            to.write(narrow(from));
        }
        if !fits(all) {
            return None;
        }
    }
    // SAFETY: `made` and `values` have equal lengths and are divided into equal parts. The loop wrote
    // every entry of every part, so all entries of `made` are initialized.
    Some(unsafe { made.assume_init() })
}

impl Table {
    /// Stores `values` in 32 bits per entry if all of them fit in 32 bits, and in 64 bits per entry
    /// otherwise.
    pub fn new(values: &[i64]) -> Self {
        // The upper 32 bits of the result are 0 if and only if the value fits in an `i32`.
        let high = |value: i64| value.wrapping_add(1 << 31) as u64;
        match narrowed(values, high, |all| all >> 32 == 0, |value| value as i32) {
            Some(narrow) => Self::Narrow(narrow),
            None => Self::Wide(values.into()),
        }
    }

    /// Stores block lengths in the narrowest width that holds all of them. Returns `None` if a length
    /// is negative.
    #[doc(hidden)]
    pub fn lengths(values: &[i64]) -> Option<Self> {
        let bits = |value: i64| value as u64;
        if let Some(short) = narrowed(values, bits, |all| all <= 0xff, |value| value as u8) {
            return Some(Self::Short(Short(Bytes::Shared(short))));
        }
        let all = values.iter().fold(0, |all, value| all | value);
        (all >= 0).then(|| Self::new(values))
    }

    /// Stores lengths that the caller passes as one byte each.
    #[doc(hidden)]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::Short(Short(Bytes::Shared(bytes.into())))
    }

    /// Returns a table of `count` lengths of 1. Returns `None` if `count` exceeds 16.
    #[doc(hidden)]
    #[inline]
    pub fn ones(count: usize) -> Option<Self> {
        static ONES: [u8; 16] = [1; 16];
        ONES.get(..count).map(|ones| Self::Short(Short(Bytes::Static(ones))))
    }

    /// Returns the least and the greatest entry, or `None` if the table is empty.
    pub fn range(&self) -> Option<(i64, i64)> {
        fn range<T: Copy + Ord>(entries: &[T]) -> Option<(T, T)> {
            let first = *entries.first()?;
            Some(entries.iter().fold((first, first), |(low, high), &e| (low.min(e), high.max(e))))
        }
        match self {
            Self::Short(t) => range(t).map(|(low, high)| (low.into(), high.into())),
            Self::Narrow(t) => range(t).map(|(low, high)| (low.into(), high.into())),
            Self::Wide(t) => range(t),
        }
    }

    /// Returns the sum of the lengths, or `None` if a length is negative.
    #[doc(hidden)]
    pub fn total(&self) -> Option<u128> {
        /// Sums the table part by part. Each part is short enough that its sum fits in 64 bits, so the
        /// compiler can use vector instructions. The function also computes the bitwise OR of all
        /// entries.
        fn total<T: Copy>(entries: &[T], value: impl Fn(T) -> i64) -> Option<u128> {
            const PART: usize = 1 << 12;
            let (mut sum, mut bits) = (0, 0);
            for part in entries.chunks(PART) {
                // A negative entry makes the sum wrap around, but its sign bit remains visible in
                // `bits`.
                let add = |sum: u64, &entry: &T| sum.wrapping_add(value(entry) as u64);
                sum += u128::from(part.iter().fold(0, add));
                bits |= part.iter().fold(0, |bits, &entry| bits | value(entry));
            }
            (bits >= 0).then_some(sum)
        }
        match self {
            Self::Short(t) => total(t, i64::from),
            Self::Narrow(t) => total(t, i64::from),
            Self::Wide(t) => t
                .iter()
                .try_fold(0u128, |sum, &entry| Some(sum + u128::from(u64::try_from(entry).ok()?))),
        }
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Short(t) => t.len(),
            Self::Narrow(t) => t.len(),
            Self::Wide(t) => t.len(),
        }
    }

    /// Returns true if the table has no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the entry at `index`. Panics if `index` is not below the number of entries.
    #[inline]
    pub fn get(&self, index: usize) -> i64 {
        match self {
            Self::Short(t) => i64::from(t[index]),
            Self::Narrow(t) => i64::from(t[index]),
            Self::Wide(t) => t[index],
        }
    }

    /// Returns the entries in order, widened to `i64`.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Returns the address of the first entry. A kernel's parameter block contains this address.
    #[inline]
    pub fn address(&self) -> u64 {
        match self {
            Self::Short(t) => t.as_ptr() as u64,
            Self::Narrow(t) => t.as_ptr() as u64,
            Self::Wide(t) => t.as_ptr() as u64,
        }
    }

    /// Returns the number of bytes per entry: 1, 4 or 8.
    #[inline]
    pub fn width(&self) -> usize {
        match self {
            Self::Short(_) => 1,
            Self::Narrow(_) => 4,
            Self::Wide(_) => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_width_that_holds_all() {
        let (least, most) = (i64::from(i32::MIN), i64::from(i32::MAX));
        for (values, width) in [
            (vec![], 4),
            (vec![least, 0, most], 4),
            (vec![0, most + 1, 0], 8),
            (vec![0, least - 1, 0], 8),
            (vec![i64::MIN, 0], 8),
            (vec![0, i64::MAX], 8),
        ] {
            let table = Table::new(&values);
            assert_eq!((table.width(), table.iter().collect()), (width, values));
        }
        for (values, width) in [
            (vec![], 1),
            (vec![0, 255, 1], 1),
            (vec![0, 256, 1], 4),
            (vec![most], 4),
            (vec![1, most + 1, 1], 8),
        ] {
            let table = Table::lengths(&values).unwrap();
            let sum = values.iter().map(|&value| value as u128).sum();
            assert_eq!(table.total(), Some(sum));
            assert_eq!((table.width(), table.iter().collect()), (width, values));
        }
        for negative in [&[-1][..], &[1, -1, 1], &[1, i64::MIN], &[300, -300, 2]] {
            assert_eq!((Table::lengths(negative), Table::new(negative).total()), (None, None));
        }
        let most = Table::new(&[i64::MAX; 3]);
        assert_eq!(most.total(), Some(3 * i64::MAX as u128));
    }
}
