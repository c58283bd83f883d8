//! Collective calls with types that are not contiguous, on communicators whose ranks all take part
//! (`communicator.rs`).
//!
//! Each rank packs what it sends and unpacks what it receives; the host's call moves packed bytes. `side.rs` has the
//! send side or the receive side of a call, `calls.rs` the calls with one buffer per side, `vector.rs` those with a
//! count or a type for each rank. The nonblocking forms keep the sides until their requests are complete, and the
//! persistent ones until their requests are freed (`pending.rs`).

/// Defines the blocking, the nonblocking and the persistent form of a call. `$work` does all of them.
macro_rules! forms {
    ($(#[$doc:meta])* $name:ident, $iname:ident, $init:ident<$($generic:ident),*>: $work:ident
        ($($argument:ident: $kind:ty),* $(,)?)) => {
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// - The arguments are those of a call of this function.
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name<$($generic: Number),*>(next: &'static Next, $($argument: $kind),*) -> Option<c_int> {
            // SAFETY: the program's arguments of `$name`, unchanged.
            unsafe { $work(next, $($argument,)* End::Now) }
        }

        /// The nonblocking form.
        ///
        /// # Safety
        ///
        /// - The arguments are those of a call of this function.
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $iname<$($generic: Number),*>(
            next: &'static Next,
            $($argument: $kind,)*
            request: *mut raw::Request,
        ) -> Option<c_int> {
            if request.is_null() {
                return None;
            }
            // SAFETY: the program's arguments of `$iname`, unchanged.
            unsafe { $work(next, $($argument,)* End::Later(request)) }
        }

        /// The persistent form.
        ///
        /// # Safety
        ///
        /// - The arguments are those of a call of this function.
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $init<$($generic: Number),*>(
            next: &'static Next,
            $($argument: $kind,)*
            info: raw::Info,
            request: *mut raw::Request,
        ) -> Option<c_int> {
            if request.is_null() {
                return None;
            }
            // SAFETY: the program's arguments of `$init`, unchanged.
            unsafe { $work(next, $($argument,)* End::Persistent(info, request)) }
        }
    };
}

/// Calls the host in the form that the program called: all ranks must call the same function, also those whose sides
/// are not packed. The first list has the arguments of the form without large counts, the second those of the other.
macro_rules! call {
    ($next:expr, $end:expr, $large:expr,
     [$now:ident $now_c:ident $later:ident $later_c:ident $init:ident $init_c:ident],
     ($($small:expr),*), ($($wide:expr),*)) => {
        match ($end, $large) {
            (End::Now, false) => $next.$now($($small),*),
            (End::Now, true) => $next.$now_c($($wide),*),
            (End::Later(request), large) => {
                crate::pending::expect(request);
                match large {
                    false => $next.$later($($small,)* request),
                    true => $next.$later_c($($wide,)* request),
                }
            }
            (End::Persistent(info, request), large) => {
                crate::pending::expect(request);
                match large {
                    false => $next.$init($($small,)* info, request),
                    true => $next.$init_c($($wide,)* info, request),
                }
            }
        }
    };
}

/// Lets the host do a call unless `$known` and all ranks of the communicator take part. If the communicator is not
/// valid, the error, which the host has raised, is that of the call.
macro_rules! unless_ours {
    ($known:expr, $next:expr, $comm:expr) => {
        if !$known {
            return None;
        }
        match crate::communicator::is_marked($next, $comm) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(code) => return Some(code),
        }
    };
}

pub mod calls;
mod neighbours;
pub mod vector;

use crate::pending::{self, Message};
use crate::side::Sides;
use std::ffi::c_int;
use typepack_capi_datatype::{abi, raw};

/// Where a call ends: at once, or with a request.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// A blocking call.
    Now,
    /// A nonblocking call, with the address of its request.
    Later(*mut raw::Request),
    /// A call that makes a persistent request, with the address of the request.
    Persistent(raw::Info, *mut raw::Request),
}

/// Finishes a call that has returned `code`.
///
/// # Safety
///
/// - The call moved the packed bytes of `sides`, and its request is that of `end`.
unsafe fn finish(end: End, code: c_int, sides: Sides) -> Option<c_int> {
    // A program cannot free an active request of a collective call, so the communicator does not matter.
    let none = raw::Comm::NULL;
    if code == abi::SUCCESS {
        match end {
            // SAFETY: the call is complete. If an error handler of the program has returned from an error, so that the
            // host returns no error, the buffer has the elements as they were (`Sides::fill`).
            End::Now => unsafe { sides.deliver() },
            // SAFETY: the host has written the request. If all complete calls have this request, the call is complete.
            End::Later(request) => unsafe {
                match pending::is_complete(*request) {
                    true => sides.deliver(),
                    false => pending::add(*request, Message::Collective(Box::new(sides)), none),
                }
            },
            // SAFETY: the host has written the request.
            End::Persistent(_, request) => unsafe {
                pending::add(*request, Message::PersistentCollective(Box::new(sides)), none);
            },
        }
    }
    Some(code)
}
