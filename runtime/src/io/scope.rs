//! Safe nonblocking accesses. Each access belongs to a scope, as a nonblocking message does.
//!
//! The buffers are borrowed for `'env`, which is longer than the scope lives, and the scope ends only after
//! all its operations have ended. So a leaked request does no harm. If the program panics in a scope, the
//! scope waits until no I/O thread uses the buffers. Until an access has ended, the scope also keeps its
//! [`Pending`](super::Pending), by which the calls that change the view or close the file find out that the
//! access is under way.

use super::access::{Access, Position, Started};
use super::file::File;
use crate::comm::{Request, Scope, readable, writable};
use crate::commit::bytes;
use crate::error::check_memory;
use crate::{Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use typepack_engine::Elements;

impl File {
    /// Runs `f` with a scope for nonblocking accesses, and waits for all that `f` has started. The scope is one
    /// of the file's communicator; see [`Communicator::scope`](crate::Communicator::scope).
    ///
    /// ```
    /// use typepack::io::{File, Mode};
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// # let path = std::env::temp_dir().join(format!("typepack-scope-{}", std::process::id()));
    /// let file = File::open(&world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)?;
    /// let (first, second) = ([1u8; 1000], [2u8; 1000]);
    /// let at = 2000 * world.rank() as u64;
    /// file.scope(|scope| -> typepack::Result<()> {
    ///     scope.iwrite_at(&file, at, &first)?;
    ///     scope.iwrite_at(&file, at + 1000, &second)?;
    ///     // This rank can compute here.
    ///     Ok(())
    /// })??;
    /// let mut back = [0u8; 2000];
    /// let read = file.scope(|scope| {
    ///     let request = scope.iread_at(&file, at, &mut back)?;
    ///     scope.wait(request)
    /// })??;
    /// assert_eq!((read.bytes, back[999], back[1000]), (2000, 1, 2));
    /// # file.close()?;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the first error among the accesses that `f` has started and has not waited for. When the call
    /// returns, all of them have ended.
    ///
    /// # Panics
    /// Panics if `f` panics.
    pub fn scope<'env, R>(
        &self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> Result<R> {
        self.communicator().scope(f)
    }
}

/// Defines the calls that start reading and writing slices of plain values.
macro_rules! slices {
    ($($(#[$doc:meta])* $read:ident $write:ident $blocking:ident ($($offset:ident)?)
        $position:expr, $collective:expr;)*) => {
        $(
            $(#[$doc])*
            /// Starts to read into `buf`. The status of the request has the number of bytes, which is less than
            /// the size of `buf` only if the file ends.
            ///
            /// # Errors
            /// Returns the errors of [`File::start_raw`]. An error that occurs later is the result of the request.
            pub fn $read<T: NoUninit + AnyBitPattern>(
                &'scope self,
                file: &File,
                $($offset: u64,)?
                buf: &'env mut [T],
            ) -> Result<Request<'scope>> {
                let access = Access { write: false, position: $position, collective: $collective };
                let count = size_of_val::<[T]>(buf) as u64;
                self.iread_as(file, access, buf, bytes()?, count)
            }

            $(#[$doc])*
            #[doc = concat!("Starts to write `buf`; see [`File::", stringify!($blocking), "`].")]
            ///
            /// # Errors
            /// Returns the errors of [`File::start_raw`]. An error that occurs later is the result of the request.
            pub fn $write<T: NoUninit>(
                &'scope self,
                file: &File,
                $($offset: u64,)?
                buf: &'env [T],
            ) -> Result<Request<'scope>> {
                let access = Access { write: true, position: $position, collective: $collective };
                self.iwrite_as(file, access, buf, bytes()?, size_of_val::<[T]>(buf) as u64)
            }
        )*
    };
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts an access, or takes part in a collective one with the error of `layout`.
    ///
    /// # Safety
    ///
    /// - For `'env`, the elements of `layout` are readable (if the access writes the file) or writable (if it
    ///   reads the file), and nobody else changes them or, if it reads the file, accesses them.
    unsafe fn start_access(
        &'scope self,
        file: &File,
        access: Access,
        layout: Result<Elements<&Plan>>,
    ) -> Result<Request<'scope>> {
        let Elements { origin, plan, count } =
            check_memory().and_then(|()| self.make_room()).and(layout).inspect_err(|error| {
                file.refuse(access, true, error.clone());
            })?;
        // SAFETY: the caller guarantees that the elements stay valid for 'env (the condition of `# Safety`),
        // which outlives the scope; the scope ends after the operation is complete or detached.
        let started = unsafe { file.start_raw(access, &Elements { origin, plan, count })? };
        let Started { operation, pending } = started;
        Ok(self.keep_with(operation, pending))
    }

    /// Starts to read `count` elements of `plan`'s type into `buf`; see [`File::read_as`].
    ///
    /// # Errors
    /// Returns the errors of [`File::read_as`] that this rank finds in the arguments. Any other error is the result of
    /// the request.
    pub fn iread_as<T: NoUninit + AnyBitPattern>(
        &'scope self,
        file: &File,
        access: Access,
        buf: &'env mut [T],
        plan: &Plan,
        count: u64,
    ) -> Result<Request<'scope>> {
        let layout = writable(buf, 0, plan, count, "buf");
        // SAFETY: `buf` holds the elements (`writable` has checked this) and is mutably borrowed for 'env.
        unsafe { self.start_access(file, Access { write: false, ..access }, layout) }
    }

    /// Starts to write `count` elements of `plan`'s type from `buf`; see [`File::write_as`].
    ///
    /// # Errors
    /// Returns the errors of [`File::write_as`] that this rank finds in the arguments. Any other error is the result of
    /// the request.
    pub fn iwrite_as<T: NoUninit>(
        &'scope self,
        file: &File,
        access: Access,
        buf: &'env [T],
        plan: &Plan,
        count: u64,
    ) -> Result<Request<'scope>> {
        let layout = readable(buf, 0, plan, count, "buf");
        // SAFETY: `buf` holds the elements (`readable` has checked this) and is borrowed for 'env. The access
        // only reads them.
        unsafe { self.start_access(file, Access { write: true, ..access }, layout) }
    }

    slices! {
        /// At etype `offset` of the view.
        iread_at iwrite_at write_at (offset) Position::At(offset as i64), false;
        /// At etype `offset` of the view, together with all ranks.
        iread_at_all iwrite_at_all write_at_all (offset) Position::At(offset as i64), true;
        /// At this rank's file pointer.
        iread iwrite write () Position::Individual, false;
        /// At this rank's file pointer, together with all ranks.
        iread_all iwrite_all write_all () Position::Individual, true;
        /// At the shared file pointer.
        iread_shared iwrite_shared write_shared () Position::Shared, false;
    }
}
