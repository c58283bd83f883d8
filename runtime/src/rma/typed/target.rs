//! The operations of an epoch at one rank.

use super::Cells;
use crate::coll::{Operator, Reducible};
use crate::comm::{readable, writable};
use crate::commit::bytes;
use crate::rma::{ElementUpdate, Update, Window};
use crate::{Error, ErrorKind, Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use std::marker::PhantomData;
use typepack_engine::Elements;

/// Values that can be compared and swapped: integers.
#[diagnostic::on_unimplemented(message = "only integers can be compared and swapped in a window")]
pub trait Exchangeable: Reducible {}

macro_rules! exchangeable {
    ($($t:ty)*) => { $(impl Exchangeable for $t {})* };
}

exchangeable! { i8 i16 i32 i64 i128 u8 u16 u32 u64 }

impl From<Operator> for Update {
    fn from(operator: Operator) -> Self {
        Self::Combine(operator)
    }
}

/// Marks values that one thread uses ([`Target`]). Such values can neither move to another thread nor be shared with
/// it.
#[derive(Debug)]
pub struct OneThread(PhantomData<*const ()>);

/// Marks values on which several threads make atomic operations ([`Threads`](super::Threads)).
#[derive(Debug)]
pub struct AnyThread(());

/// The values of one rank, in an epoch in which this rank may access them. Indices count values. An operation is
/// complete at the target when its call returns.
///
/// Reads and writes that are not atomic would be data races if two threads made them at the same time. So one thread
/// uses the values at a time (`U` is [`OneThread`]), and has all operations. If `U` is [`AnyThread`], several threads
/// use the values, and have only the operations that are atomic.
#[derive(Debug)]
pub struct Target<'a, T, U = OneThread> {
    window: &'a Window,
    rank: usize,
    values: PhantomData<(fn() -> T, U)>,
}

/// Converts an index to a displacement. An index that does not fit lies in no window.
fn displacement(at: usize) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

impl<'a, T, U> Target<'a, T, U> {
    /// Describes the values of rank `rank`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Rank`] if there is no such rank.
    pub(super) fn new(window: &'a Window, rank: usize) -> Result<Self> {
        if rank >= window.size() {
            let detail = format!("{rank} is not a rank of the window of size {}", window.size());
            return Err(Error::new(ErrorKind::Rank, "rank", detail));
        }
        Ok(Self { window, rank, values: PhantomData })
    }

    /// Returns the rank whose values these are.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Orders the operations of this rank at the target before its later operations, for all ranks.
    ///
    /// # Errors
    /// Returns [`ErrorKind::State`] in a forked child, and [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Win_flush")]
    pub fn flush(&self) -> Result<()> {
        self.window.sync()
    }
}

impl<'a, T: NoUninit + AnyBitPattern> Target<'a, T> {
    /// Puts one element of `layout` from `data` into the values of the rank, where its displacement 0 is at index `at`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Engine`] if `data` does not hold the element, and
    /// [`WindowErrorKind::Range`](crate::WindowErrorKind) if the element does not lie in the window.
    #[doc(alias = "MPI_Put")]
    pub fn put(&self, layout: &Plan, data: &[T], at: usize) -> Result<()> {
        self.put_as((layout, 1), data, (layout, 1), at)
    }

    /// Gets one element of `layout` from the values of the rank, where its displacement 0 is at index `at`, into
    /// `data`.
    ///
    /// # Errors
    /// Returns the errors of [`put`](Self::put).
    #[doc(alias = "MPI_Get")]
    pub fn get(&self, layout: &Plan, data: &mut [T], at: usize) -> Result<()> {
        self.get_as((layout, 1), data, (layout, 1), at)
    }

    /// Puts elements of one layout, each given with a count, into elements of another layout of the same signature.
    ///
    /// # Errors
    /// Returns the errors of [`put`](Self::put), and [`ErrorKind::Truncated`] if there is too little room for the data.
    #[doc(alias = "MPI_Put")]
    pub fn put_as(
        &self,
        (from, count): (&Plan, u64),
        data: &[T],
        (to, room): (&Plan, u64),
        at: usize,
    ) -> Result<()> {
        let part = readable(data, 0, from, count, "data")?;
        // SAFETY: `readable` has checked that the elements lie in `data`, which is borrowed. Values in windows have no
        // references, so the two do not overlap.
        unsafe { self.window.put_raw(&part, self.rank, displacement(at), to, room) }
    }

    /// Gets elements of one layout into elements of another layout of the same signature, each given with a count.
    ///
    /// # Errors
    /// Returns the errors of [`put_as`](Self::put_as).
    #[doc(alias = "MPI_Get")]
    pub fn get_as(
        &self,
        (to, room): (&Plan, u64),
        data: &mut [T],
        (from, count): (&Plan, u64),
        at: usize,
    ) -> Result<()> {
        let part = writable(data, 0, to, room, "data")?;
        // SAFETY: `writable` has checked that the elements lie in `data`, which is borrowed mutably. Values in
        // windows have no references, so the two do not overlap.
        unsafe { self.window.get_raw(&part, self.rank, displacement(at), from, count) }
    }

    /// Writes `data` to the values from index `at` on.
    ///
    /// # Errors
    /// Returns [`WindowErrorKind::Range`](crate::WindowErrorKind) if there are too few values.
    #[doc(alias = "MPI_Put")]
    pub fn write(&self, data: &[T], at: usize) -> Result<()> {
        let layout = (bytes()?, size_of_val(data) as u64);
        self.put_as(layout, data, layout, at)
    }

    /// Reads the values from index `at` on into `data`.
    ///
    /// # Errors
    /// Returns [`WindowErrorKind::Range`](crate::WindowErrorKind) if there are too few values.
    #[doc(alias = "MPI_Get")]
    pub fn read(&self, data: &mut [T], at: usize) -> Result<()> {
        let layout = (bytes()?, size_of_val(data) as u64);
        self.get_as(layout, data, layout, at)
    }

    /// Returns the values as memory, for direct loads and stores. The memory is borrowed from this value, and so from
    /// the guard of the epoch; [`into_cells`](Self::into_cells) borrows it only from the guard.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Other`] if this process cannot map the memory of the rank, and [`ErrorKind::Argument`] if
    /// the rank has made the window with values of another type.
    #[doc(alias = "MPI_Win_shared_query")]
    pub fn cells(&self) -> Result<Cells<'_, T>> {
        self.memory()
    }

    /// Converts the values to memory, for direct loads and stores until the epoch ends.
    ///
    /// # Errors
    /// Returns the errors of [`cells`](Self::cells).
    #[doc(alias = "MPI_Win_shared_query")]
    pub fn into_cells(self) -> Result<Cells<'a, T>> {
        self.memory()
    }

    fn memory(&self) -> Result<Cells<'a, T>> {
        let (base, bytes, unit) = self.window.shared_query(Some(self.rank))?;
        if unit as usize != size_of::<T>() || !base.cast::<T>().is_aligned() {
            let detail = format!(
                "rank {} has made the window with values of another type, of {unit} bytes each",
                self.rank
            );
            return Err(Error::new(ErrorKind::Argument, "T", detail));
        }
        if base.is_null() && bytes > 0 {
            let detail = format!("this process cannot map the memory of rank {}", self.rank);
            return Err(Error::new(ErrorKind::Other, "rank", detail));
        }
        // SAFETY: the memory is mapped as long as the window lives, which outlives `'a`, the lifetime of the result. It
        // is zero at first, and every bit pattern is a `T`. Its address is aligned (checked above). No other thread
        // accesses it by operations that are not atomic: while a `Target` for one thread exists, `Threads` does not.
        Ok(unsafe { Cells::new(base.cast(), bytes as usize / size_of::<T>().max(1)) })
    }
}

impl<T: Reducible, U> Target<'_, T, U> {
    /// Updates the values from index `at` on with `data`. The update of each value is atomic with respect to all
    /// updates.
    ///
    /// # Errors
    /// Returns [`WindowErrorKind::Range`](crate::WindowErrorKind) if there are too few values, and an error of the
    /// class `MPI_ERR_OP` if the operation is not defined on `T`.
    #[doc(alias = "MPI_Accumulate")]
    pub fn accumulate(&self, data: &[T], at: usize, update: impl Into<Update>) -> Result<()> {
        let from = Elements {
            origin: data.as_ptr().cast::<u8>().cast_mut(),
            plan: T::plan()?,
            count: data.len() as u64,
        };
        // SAFETY: `data` is borrowed, and does not overlap values in windows, which have no references.
        unsafe { self.update(&from, None, at, update.into()) }
    }

    /// Updates the values from index `at` on with `data`, and stores the old values in `old`.
    ///
    /// # Errors
    /// Returns the errors of [`accumulate`](Self::accumulate), and [`ErrorKind::Truncated`] if `old` is too short.
    #[doc(alias = "MPI_Get_accumulate")]
    pub fn get_accumulate(
        &self,
        data: &[T],
        old: &mut [T],
        at: usize,
        update: impl Into<Update>,
    ) -> Result<()> {
        let plan = T::plan()?;
        let from = Elements {
            origin: data.as_ptr().cast::<u8>().cast_mut(),
            plan,
            count: data.len() as u64,
        };
        let result =
            Elements { origin: old.as_mut_ptr().cast::<u8>(), plan, count: old.len() as u64 };
        // SAFETY: both slices are borrowed, `old` mutably, so they do not overlap each other, nor values in windows,
        // which have no references.
        unsafe { self.update(&from, Some(&result), at, update.into()) }
    }

    /// # Safety
    ///
    /// - The elements of `from` are readable, and those of `result` writable; they do not overlap, nor values of the
    ///   window.
    unsafe fn update(
        &self,
        from: &Elements<&Plan>,
        result: Option<&Elements<&Plan>>,
        at: usize,
        update: Update,
    ) -> Result<()> {
        let at = displacement(at);
        if from.count == 1
            && result.is_none_or(|result| result.count == 1)
            && let Some(update) = ElementUpdate::new(update, T::NAMED)
        {
            let old = result.map_or(std::ptr::null_mut(), |result| result.origin);
            let values = (from.origin.cast_const(), old);
            // SAFETY: the caller guarantees the parts, which are an element each.
            let is_done = unsafe {
                self.window.update_short(update, values, self.rank, at)
                    || self.window.update_in_turn(update, values, self.rank, at)
            };
            if is_done {
                return Ok(());
            }
        }
        let (from, count) = (Some(from), from.count);
        let plan = T::plan()?;
        // SAFETY: the caller guarantees the parts.
        unsafe { self.window.accumulate_raw(from, result, self.rank, at, plan, count, update) }
    }

    /// Updates the value at index `at` with `value`, and returns the old value.
    ///
    /// # Errors
    /// Returns the errors of [`accumulate`](Self::accumulate).
    #[doc(alias = "MPI_Fetch_and_op")]
    pub fn fetch_and_op(&self, value: T, at: usize, update: impl Into<Update>) -> Result<T> {
        let mut old = [value];
        self.get_accumulate(&[value], &mut old, at, update)?;
        Ok(old[0])
    }

    /// Returns the value at index `at`, which no update changes meanwhile.
    ///
    /// # Errors
    /// Returns [`WindowErrorKind::Range`](crate::WindowErrorKind) if there is no such value.
    pub fn fetch(&self, at: usize) -> Result<T> {
        self.fetch_and_op(bytemuck::Zeroable::zeroed(), at, Update::NoOp)
    }
}

impl<T: Exchangeable, U> Target<'_, T, U> {
    /// Replaces the value at index `at` by `new` if it is `compare`. Returns the old value. The call is atomic with
    /// respect to all updates.
    ///
    /// # Errors
    /// Returns [`WindowErrorKind::Range`](crate::WindowErrorKind) if there is no such value.
    #[doc(alias = "MPI_Compare_and_swap")]
    pub fn compare_and_swap(&self, new: T, compare: T, at: usize) -> Result<T> {
        let mut old = compare;
        let address = |value: &T| std::ptr::from_ref(value).cast::<u8>();
        let (new, compare) = (address(&new), address(&compare));
        let result = std::ptr::from_mut(&mut old).cast::<u8>();
        let (plan, at) = (T::plan()?, displacement(at));
        // SAFETY: all three addresses are those of local values of the size of an element.
        unsafe {
            let window = self.window;
            let is_wide = size_of::<T>() == 8;
            let is_done = matches!(size_of::<T>(), 4 | 8)
                && (window.swap_short(is_wide, (new, compare), result, self.rank, at)
                    || window.swap_in_turn(is_wide, (new, compare), result, self.rank, at));
            if !is_done {
                window.compare_and_swap_raw(new, compare, result, plan, self.rank, at)?;
            }
        }
        Ok(old)
    }
}
