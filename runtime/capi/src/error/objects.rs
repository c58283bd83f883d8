//! Windows, files and sessions: objects that have an error handler.
//!
//! A call checks its handle before it raises any other error. So an invalid handle is reported as such, and
//! any other error goes to the error handler of the handle's object. Each kind of object has a table, in
//! `io/mod.rs`, `win/mod.rs` or `session.rs`.

use super::handler::{self, Handler, HandlerCell, On};
use super::{Failure, Result};
use crate::argument::Output;
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::handle::thread_cache::{Held, Home, ThreadCache};
use crate::raw;
use std::ffi::c_int;
use std::sync::Arc;
use std::thread::LocalKey;

/// The words for a kind of object in error texts, and the error class for its handles.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The error class of an invalid handle.
    pub class: c_int,
    /// The name of the argument, for example `win`.
    pub argument: &'static str,
    /// The name of the kind of object, for example `window`.
    pub kind: &'static str,
    /// The null handle and its name.
    pub null: (usize, &'static str),
}

/// An object that has an error handler.
pub trait Handled {
    /// Returns the place of the error handler.
    fn cell(&self) -> &HandlerCell;
}

impl Handled for HandlerCell {
    fn cell(&self) -> &HandlerCell {
        self
    }
}

/// All objects of one kind.
#[derive(Debug)]
pub struct Objects<T = HandlerCell> {
    on: On,
    names: Names,
    table: Table<T>,
}

impl<T: Handled> Objects<T> {
    /// Makes an empty table.
    pub const fn new(kind: Kind, on: On, names: Names) -> Self {
        Self { on, names, table: Table::new(kind) }
    }

    /// Adds an object and returns its handle.
    ///
    /// # Errors
    /// Returns `MPI_ERR_OTHER` if no handle is left.
    pub fn insert(&self, object: Arc<T>) -> Result<usize> {
        Ok(self.table.insert(object)?)
    }

    /// Makes a handle invalid and returns its object; `None` if the handle has no object.
    pub fn remove(&self, handle: usize) -> Option<Arc<T>> {
        self.table.remove(handle)
    }

    /// Returns the object of a handle.
    ///
    /// # Errors
    /// Returns an error of the class in `Names` if the handle does not belong to a live object of this kind.
    pub fn find(&self, handle: usize) -> Result<Arc<T>> {
        self.table.find(handle).ok_or_else(|| self.invalid(handle))
    }

    /// Returns the object of a handle from the cache of the calling thread, which takes no lock if the thread has used
    /// the handle recently. All calls for one table pass the same `cache` and the same `home`.
    ///
    /// # Errors
    /// Returns an error of the class in `Names` if the handle does not belong to a live object of this kind.
    #[inline(always)]
    pub fn hold(
        &self,
        cache: &'static ThreadCache<T>,
        home: &'static LocalKey<Home<T>>,
        handle: usize,
    ) -> Result<Held<T>>
    where
        T: Send + Sync,
    {
        cache.find(home, &self.table, handle).ok_or_else(|| self.invalid(handle))
    }

    /// Calls `work` with the object of a handle, if the calling thread has used the handle recently
    /// ([`ThreadCache::probe`]).
    ///
    /// # Safety
    ///
    /// - `work` calls no function of the cache, and runs no code of the program.
    #[inline(always)]
    pub unsafe fn probe<R>(
        &self,
        cache: &'static ThreadCache<T>,
        handle: usize,
        work: impl FnOnce(&T) -> R,
    ) -> Option<R>
    where
        T: Send + Sync,
    {
        // SAFETY: the caller guarantees the condition.
        unsafe { cache.probe(&self.table, handle, work) }
    }

    /// Drops the freed objects that the calling thread has cached ([`ThreadCache::forget`]).
    pub fn forget(&self, cache: &'static ThreadCache<T>, home: &'static LocalKey<Home<T>>)
    where
        T: Send + Sync,
    {
        cache.forget(home, &self.table);
    }

    /// Checks that a handle belongs to a live object of this kind.
    ///
    /// # Errors
    /// Returns an error of the class in `Names` if the handle does not belong to a live object of this kind.
    pub fn check(&self, handle: usize) -> Result {
        if self.table.has(handle) { Ok(()) } else { Err(self.invalid(handle)) }
    }

    #[cold]
    fn invalid(&self, handle: usize) -> Failure {
        let Names { class, argument, kind, null } = self.names;
        Failure::no_object(class, (argument, kind), handle, null)
    }

    /// Returns the error handler of a handle's object; `None` if the handle has no object.
    pub fn handler(&self, handle: usize) -> Option<Handler> {
        self.table.find(handle).map(|object| object.cell().get())
    }

    /// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
    pub fn of_int(&self, integer: c_int) -> Option<usize> {
        self.table.of_int(integer)
    }

    /// Sets the error handler of an object.
    ///
    /// # Errors
    /// Returns the errors of [`find`](Self::find) and [`Handler::find`].
    pub fn set_handler(&self, handle: usize, errhandler: raw::Errhandler) -> Result {
        set_handler(self.find(handle)?.cell(), self.on, errhandler)
    }

    /// Writes the handle of the object's error handler to `errhandler`.
    ///
    /// # Errors
    /// Returns the errors of [`find`](Self::find), `MPI_ERR_ARG` if the pointer is null, and
    /// `MPI_ERR_OTHER` if no handle is left.
    pub fn get_handler(&self, handle: usize, errhandler: Output<raw::Errhandler>) -> Result {
        let object = self.find(handle)?;
        get_handler(object.cell(), errhandler)
    }

    /// Calls the error handler of an object with the error code `code`, at the program's request.
    ///
    /// # Errors
    /// Returns the errors of [`find`](Self::find).
    pub fn call_handler(&self, handle: usize, name: &'static str, code: c_int) -> Result {
        call_handler(self.find(handle)?.cell(), handle, name, code);
        Ok(())
    }
}

/// Sets the error handler of one object, which is of the kind `on`.
///
/// # Errors
/// Returns the errors of [`Handler::find`].
pub fn set_handler(object: &HandlerCell, on: On, errhandler: raw::Errhandler) -> Result {
    object.set(Handler::find(errhandler, on)?);
    Ok(())
}

/// Writes the handle of the object's error handler to `errhandler`.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if the pointer is null, and `MPI_ERR_OTHER` if no handle is left.
pub fn get_handler(object: &HandlerCell, errhandler: Output<raw::Errhandler>) -> Result {
    let out = errhandler.required("errhandler")?;
    out.set(object.get().handle()?);
    Ok(())
}

/// Calls the error handler of an object with the error code `code`, at the program's request. `name` is the
/// name of the MPI call.
pub fn call_handler(object: &HandlerCell, handle: usize, name: &'static str, code: c_int) {
    let failure = Failure::of_code(code, format!("{name}: the program raised error code {code}"));
    handler::invoke(&object.get(), handle, name, &failure);
}

/// Defines the three calls that set, get and call the error handler of an object of one kind.
macro_rules! handler_calls {
    ($objects:expr, $handle:ty, $c:literal) => {
        #[doc = concat!("`MPI_", $c, "_set_errhandler`.")]
        pub fn set_errhandler(
            object: $handle,
            errhandler: crate::raw::Errhandler,
        ) -> crate::error::Result {
            $objects.set_handler(object.0, errhandler)
        }

        #[doc = concat!("`MPI_", $c, "_get_errhandler`.")]
        pub fn get_errhandler(
            object: $handle,
            errhandler: crate::argument::Output<crate::raw::Errhandler>,
        ) -> crate::error::Result {
            $objects.get_handler(object.0, errhandler)
        }

        #[doc = concat!("`MPI_", $c, "_call_errhandler`.")]
        pub fn call_errhandler(
            object: $handle,
            errorcode: std::ffi::c_int,
        ) -> crate::error::Result {
            $objects.call_handler(object.0, concat!("MPI_", $c, "_call_errhandler"), errorcode)
        }
    };
}

pub(crate) use handler_calls;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi;

    static OBJECTS: Objects<HandlerCell> = Objects::new(
        Kind::Win,
        On::Win,
        Names {
            class: abi::ERR_WIN,
            argument: "win",
            kind: "window",
            null: (abi::WIN_NULL, "MPI_WIN_NULL"),
        },
    );

    #[test]
    fn handles_are_checked_and_handlers_belong_to_their_object() {
        let cell = || Arc::new(HandlerCell::new(Handler::Fatal));
        let (one, other) = (OBJECTS.table.insert(cell()), OBJECTS.table.insert(cell()));
        let (one, other) = (one.expect("a handle"), other.expect("a handle"));
        OBJECTS.set_handler(one, raw::Errhandler(abi::ERRORS_RETURN)).expect("a handler");
        assert!(matches!(OBJECTS.handler(one), Some(Handler::Return)));
        assert!(matches!(OBJECTS.handler(other), Some(Handler::Fatal)));
        OBJECTS.check(one).expect("a window");
        assert_eq!(OBJECTS.of_int(one as u32 as c_int), Some(one));
        OBJECTS.table.remove(one).expect("the object");
        for wrong in [0, abi::WIN_NULL, one, other ^ (1 << 32), usize::MAX] {
            assert_eq!(
                OBJECTS.check(wrong).expect_err("no window").code,
                abi::ERR_WIN,
                "{wrong:x}"
            );
            assert!(OBJECTS.handler(wrong).is_none());
        }
    }
}
