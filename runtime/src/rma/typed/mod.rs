//! Windows of Rust values: [`WindowOf`], whose epochs are guards.
//!
//! - this file: making windows, and the calls that begin epochs;
//! - `guards.rs`: the epochs;
//! - `target.rs`: the operations at one rank; `cells.rs`: direct access to memory in a window.
//!
//! The guards keep the rules of the standard that the compiler can check: an operation needs an epoch, an epoch ends
//! before one of another kind begins, and a window is freed outside of epochs. The window below (`mod.rs` of the folder
//! above) checks the rest when the program runs. The safety of memory depends on neither: a program that breaks a
//! rule gets values that it did not expect, or an error.

mod cells;
mod guards;
mod target;

pub use cells::Cells;
pub use guards::{Access, Exposure, Fenced, Locked, LockedAll, Threads};
pub use target::{AnyThread, Exchangeable, OneThread, Target};

use super::{Assertions, LockKind, Window};
use crate::comm::{Communicator, Group};
use crate::{Error, ErrorKind, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use std::cell::Cell;
use std::marker::PhantomData;

/// A window of values of type `T`: memory of every rank of a communicator, which the other ranks read and write by
/// one-sided calls. All values are zero bytes at first.
///
/// Every operation needs an epoch. The methods that begin an epoch return a guard, which ends the epoch when it is
/// dropped or when its method `end` is called; only `end` returns errors. Indices count values.
///
/// ```
/// use typepack::rma::{LockKind, WindowOf};
///
/// let universe = typepack::init()?;
/// let world = universe.world();
/// let window = WindowOf::<f64>::allocate(&world, 16)?;
/// let next = (world.rank() + 1) % world.size();
///
/// // Puts every second value of an array into the memory of the next rank.
/// let layout = typepack::commit(&"vector(4, 1, 2, double)".parse().unwrap())?;
/// let data = [1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 0.0];
/// let locked = window.lock(next, LockKind::Shared)?;
/// locked.put(&layout, &data, 8)?;
/// let mut back = [0.0; 3];
/// locked.read(&mut back, 8)?;
/// assert_eq!(back, [1.0, 0.0, 2.0]);
/// locked.end()?;
/// window.free()?;
/// # Ok::<(), typepack::Error>(())
/// ```
///
/// A program that makes an operation outside of an epoch, or mixes epochs, does not compile:
///
/// ```compile_fail,E0599
/// # let universe = typepack::init().unwrap();
/// let window = typepack::rma::WindowOf::<f64>::allocate(&universe.world(), 16).unwrap();
/// window.write(&[1.0], 0).unwrap(); // no epoch
/// ```
///
/// ```compile_fail,E0502
/// # let universe = typepack::init().unwrap();
/// let mut window = typepack::rma::WindowOf::<f64>::allocate(&universe.world(), 16).unwrap();
/// let locked = window.lock(0, typepack::rma::LockKind::Shared).unwrap();
/// let fenced = window.fence().unwrap(); // the lock still lives
/// locked.end().unwrap();
/// ```
///
/// ```compile_fail,E0499
/// # let universe = typepack::init().unwrap();
/// # let world = universe.world();
/// let mut window = typepack::rma::WindowOf::<f64>::allocate(&world, 16).unwrap();
/// let one = window.start(world.group()).unwrap();
/// let other = window.lock_all().unwrap(); // the epoch of start still lives
/// one.end().unwrap();
/// ```
///
/// ```compile_fail,E0505
/// # let universe = typepack::init().unwrap();
/// let window = typepack::rma::WindowOf::<f64>::allocate(&universe.world(), 16).unwrap();
/// let locked = window.lock(0, typepack::rma::LockKind::Shared).unwrap();
/// window.free().unwrap(); // the window is locked
/// locked.end().unwrap();
/// ```
///
/// ```compile_fail,E0382
/// # let universe = typepack::init().unwrap();
/// let window = typepack::rma::WindowOf::<f64>::allocate(&universe.world(), 16).unwrap();
/// let locked = window.lock(0, typepack::rma::LockKind::Shared).unwrap();
/// locked.end().unwrap();
/// locked.write(&[1.0], 0).unwrap(); // the epoch has ended
/// ```
///
/// Direct access to memory ([`Cells`]) ends with the epoch, too:
///
/// ```compile_fail,E0505
/// # let universe = typepack::init().unwrap();
/// let window = typepack::rma::WindowOf::<f64>::allocate(&universe.world(), 16).unwrap();
/// let locked = window.lock(0, typepack::rma::LockKind::Shared).unwrap();
/// let cells = locked.cells().unwrap();
/// locked.end().unwrap(); // the cells still live
/// cells.get(0).unwrap();
/// ```
///
/// ```compile_fail,E0502
/// # let universe = typepack::init().unwrap();
/// let mut window = typepack::rma::WindowOf::<f64>::allocate(&universe.world(), 16).unwrap();
/// let mut epoch = window.fence().unwrap();
/// let cells = epoch.rank(0).unwrap().into_cells().unwrap();
/// epoch.fence().unwrap(); // the cells still live
/// cells.get(0).unwrap();
/// ```
///
/// Two threads of a rank do not use a window at the same time, because their reads and writes would be data races.
/// Several threads may make atomic operations ([`Threads`]); the window has no other use meanwhile:
///
/// ```compile_fail,E0277
/// # let universe = typepack::init().unwrap();
/// let window = typepack::rma::WindowOf::<u64>::allocate(&universe.world(), 16).unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| window.own().set(0, 1)); // a window is not `Sync`
/// });
/// ```
///
/// ```compile_fail,E0502
/// # let universe = typepack::init().unwrap();
/// let mut window = typepack::rma::WindowOf::<u64>::allocate(&universe.world(), 16).unwrap();
/// let mut locked = window.lock_all().unwrap();
/// let threads = locked.threads();
/// locked.rank(0).unwrap().write(&[1], 0).unwrap(); // other threads may update the values
/// threads.rank(0).unwrap().fetch(0).unwrap();
/// ```
///
/// Reals can be summed, but not compared and swapped, and structs can be neither:
///
/// ```compile_fail,E0277
/// # let universe = typepack::init().unwrap();
/// let window = typepack::rma::WindowOf::<f64>::allocate(&universe.world(), 16).unwrap();
/// let locked = window.lock(0, typepack::rma::LockKind::Shared).unwrap();
/// locked.compare_and_swap(1.0, 0.0, 0).unwrap();
/// ```
#[doc(alias = "MPI_Win")]
#[derive(Debug)]
pub struct WindowOf<T> {
    window: Window,
    /// The window may move to another thread, but one thread uses it at a time (`Cell` is not `Sync`): reads and writes
    /// of two threads would be data races.
    values: PhantomData<(fn() -> T, Cell<()>)>,
}

impl<T: NoUninit + AnyBitPattern> WindowOf<T> {
    /// Makes a window with `len` values at this rank. Each rank may pass a different number. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Window::allocate`], and [`ErrorKind::Argument`] if `T` has no bytes.
    #[doc(alias = "MPI_Win_allocate")]
    pub fn allocate(comm: &Communicator, len: usize) -> Result<Self> {
        Self::allocate_with(comm, len, &[])
    }

    /// Makes a window like [`allocate`](Self::allocate), with hints: keys and values of an info object. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`allocate`](Self::allocate).
    pub fn allocate_with(
        comm: &Communicator,
        len: usize,
        hints: &[(String, String)],
    ) -> Result<Self> {
        let window = Window::allocate(comm, bytes_of::<T>(len), size_of::<T>() as i64, hints)?;
        Self::over(window)
    }

    /// Makes a window whose memory is one piece: the values of a rank begin where those of the rank below end.
    /// Collective.
    ///
    /// # Errors
    /// Returns the errors of [`allocate`](Self::allocate).
    #[doc(alias = "MPI_Win_allocate_shared")]
    pub fn allocate_shared(comm: &Communicator, len: usize) -> Result<Self> {
        let unit = size_of::<T>() as i64;
        let window = Window::allocate_shared(comm, bytes_of::<T>(len), unit, &[])?;
        Self::over(window)
    }

    /// Wraps a window whose displacement unit at this rank is the size of a `T`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if the values of this rank are not aligned, because a rank below has values of
    /// another type.
    fn over(window: Window) -> Result<Self> {
        const {
            assert!(align_of::<T>() <= 64, "the memory of windows is aligned to 64 bytes");
        }
        let (base, ..) = window.own();
        if !base.cast::<T>().is_aligned() {
            let detail = "another rank has made the window with values of another type";
            return Err(Error::new(ErrorKind::Argument, "T", detail));
        }
        Ok(Self { window, values: PhantomData })
    }

    /// Returns the window without the type of its values.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Returns the rank of this process in the window.
    pub fn rank(&self) -> usize {
        self.window.rank()
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.window.size()
    }

    /// Returns the number of values of a rank.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Rank`] if there is no such rank.
    pub fn len(&self, rank: usize) -> Result<usize> {
        let (_, bytes, _) = self.window.shared_query(Some(rank))?;
        Ok(bytes as usize / size_of::<T>().max(1))
    }

    /// Returns whether a rank has no values.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Rank`] if there is no such rank.
    pub fn is_empty(&self, rank: usize) -> Result<bool> {
        Ok(self.len(rank)? == 0)
    }

    /// Returns the values of this rank. No epoch is needed, but what the other ranks have written is there only after a
    /// synchronisation.
    pub fn own(&self) -> Cells<'_, T> {
        let (base, bytes, _) = self.window.own();
        // SAFETY: the window's own memory is mapped as long as the window lives, which the result borrows. It is zero
        // at first, and every bit pattern is a `T`. `over` has checked that its address is aligned.
        unsafe { Cells::new(base.cast(), bytes as usize / size_of::<T>().max(1)) }
    }

    /// Locks the values of rank `rank`, and begins an epoch in which this rank may access them. Waits until no other
    /// rank holds a lock that excludes this one. Several ranks may be locked at the same time; two ranks that lock
    /// the same ranks in different orders may wait for each other for ever.
    ///
    /// # Errors
    /// Returns the errors of [`Window::lock_raw`].
    #[doc(alias = "MPI_Win_lock")]
    pub fn lock(&self, rank: usize, kind: LockKind) -> Result<Locked<'_, T>> {
        Locked::begin(self, rank, kind)
    }

    /// Takes shared locks of the values of all ranks, and begins an epoch in which this rank may access them.
    ///
    /// # Errors
    /// Returns the errors of [`Window::lock_all_raw`].
    #[doc(alias = "MPI_Win_lock_all")]
    pub fn lock_all(&mut self) -> Result<LockedAll<'_, T>> {
        LockedAll::begin(self)
    }

    /// Waits until all ranks have called `fence`, and begins an epoch in which each rank may access the values of all
    /// ranks. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Window::fence`].
    #[doc(alias = "MPI_Win_fence")]
    pub fn fence(&mut self) -> Result<Fenced<'_, T>> {
        Fenced::begin(self)
    }

    /// Begins an epoch in which this rank may access the values of the ranks of `group`, after waiting until they have
    /// posted.
    ///
    /// # Errors
    /// Returns the errors of [`Window::start`].
    #[doc(alias = "MPI_Win_start")]
    pub fn start(&mut self, group: &Group) -> Result<Access<'_, T>> {
        Access::begin(self, group)
    }

    /// Begins an epoch in which the ranks of `group` may access the values of this rank.
    /// [`Exposure::start`] begins an epoch of access beside this one.
    ///
    /// # Errors
    /// Returns the errors of [`Window::post`].
    #[doc(alias = "MPI_Win_post")]
    pub fn post(&mut self, group: &Group) -> Result<Exposure<'_, T>> {
        Exposure::begin(self, group)
    }

    /// Frees the window after all ranks have made this call. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Window::free`].
    #[doc(alias = "MPI_Win_free")]
    pub fn free(self) -> Result<()> {
        self.window.free()
    }

    fn target(&self, rank: usize) -> Result<Target<'_, T>> {
        Target::new(&self.window, rank)
    }
}

/// Returns the number of bytes of `len` values. If the number does not fit, the result is too large for any window.
fn bytes_of<T>(len: usize) -> i64 {
    len.checked_mul(size_of::<T>()).and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(i64::MAX)
}

/// No promise about an epoch.
const NONE: Assertions = Assertions::NONE;
