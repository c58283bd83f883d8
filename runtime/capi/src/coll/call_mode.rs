//! The three ways to make a collective call: run the operation, start it, or store it in a persistent
//! request, so that the program can start it repeatedly.
//!
//! The C program promises that the operation may access the buffers of the call. The promise holds until the
//! call returns, until the request is complete, or from each start to the completion, depending on the way.
//! The library needs all other arguments only during the call.

use crate::argument::Output;
use crate::comm::{self, On};
use crate::error::{Failure, Result, section};
use crate::info;
use crate::raw;
use crate::request::{self, Running, Start};
use typepack::{Collective, Communicator, ErrorClass, ErrorKind, Prepared};

/// How a collective call is made.
#[derive(Clone, Copy, Debug)]
pub enum CallMode {
    /// The call runs the operation. The operation has ended when the call returns.
    Run,
    /// The call starts the operation and writes the handle of its request here. The operation has ended
    /// when the request is complete.
    Start(Output<raw::Request>),
    /// The call stores the operation in a persistent request and writes the handle of the request here. The
    /// operation runs each time the program starts the request. The hints of the info object are ignored.
    Prepare(raw::Info, Output<raw::Request>),
}

/// A function that gets a `Collective`, and runs the operation that the `Collective` describes, starts it,
/// or stores it in a persistent request.
pub type Make<'m> = &'m mut dyn FnMut(&Collective<'_>) -> Result;

/// A collective operation that can be started repeatedly.
#[derive(Debug)]
struct Persistent(Prepared);

impl Start for Persistent {
    fn start(&self) -> Result<Running> {
        // SAFETY: `keep` made this request. Its caller guaranteed that the operation may access its parts of
        // memory from each start to the completion (condition of the `# Safety` of `keep`), and this call is
        // such a start.
        Ok(request::collective(unsafe { self.0.start() }?))
    }
}

/// Makes a collective call in the way `way`. `call` reads the arguments, makes a `Collective` from them,
/// and passes the `Collective` to the [`Make`] function that `call` gets.
///
/// # Errors
/// Returns `MPI_ERR_COMM` if the handle is not valid, the errors of `call`, and those of the runtime.
///
/// # Safety
///
/// - The `Collective` says which parts of memory the operation sends from and which it receives into. The
///   operation may read the former and write the latter until this function returns ([`CallMode::Run`]), until the
///   request is complete ([`CallMode::Start`]), or from each start of the request to its completion
///   ([`CallMode::Prepare`]).
pub unsafe fn make(
    comm: raw::Comm,
    way: CallMode,
    call: impl FnOnce(&Communicator, Make<'_>) -> Result,
) -> Result {
    // If an argument is wrong, this rank has not made the call, but the other ranks make it. The runtime of this rank
    // must therefore count the call as made. Otherwise this rank's next collective call would be matched with the wrong
    // call of the other ranks.
    match way {
        // A blocking call takes no counted reference to `MPI_COMM_WORLD`.
        CallMode::Run => comm::with(comm, |comm| {
            let mut made = false;
            let communicator = comm.communicator();
            let result = call(communicator, &mut |call| {
                made = true;
                section::check()
                    .inspect_err(|failure| refuse(communicator, call, true, failure))?;
                // SAFETY: the operation may access the parts of `call` until `make` returns (condition of
                // `# Safety` for `CallMode::Run`), and `run_raw` returns before that.
                unsafe { communicator.run_raw(call)? };
                Ok(())
            });
            if result.is_err() && !made {
                communicator.skip_collective();
            }
            result.map_err(section::first)
        }),
        way => {
            let mut call = Some(call);
            // SAFETY: `make` has the conditions of `later`.
            unsafe {
                later(comm, way, &mut |on, make| call.take().map_or(Ok(()), |call| call(on, make)))
            }
        }
    }
}

/// Makes the operation of a request: [`make`] without the blocking call. It is one function for all operations, because
/// there are many of them, and one indirect call is little beside a request.
///
/// # Safety
///
/// The conditions of [`make`] hold.
#[inline(never)]
unsafe fn later(
    comm: raw::Comm,
    way: CallMode,
    call: &mut dyn FnMut(&Communicator, Make<'_>) -> Result,
) -> Result {
    let on = comm::on(comm)?;
    let communicator = on.comm.communicator();
    let mut made = false;
    let result = match way {
        // SAFETY: the operation may access the parts until the request is complete (condition of `# Safety` for
        // `CallMode::Start`).
        CallMode::Start(request) => unsafe { begin(&on, request, &mut made, call) },
        // SAFETY: the operation may access the parts from each start to the completion (condition of `# Safety` for
        // `CallMode::Prepare`).
        CallMode::Prepare(hints, request) => unsafe { keep(&on, hints, request, &mut made, call) },
        CallMode::Run => Ok(()),
    };
    if result.is_err() && !made {
        match way {
            CallMode::Start(_) => communicator.skip_started(),
            _ => communicator.skip_persistent(),
        }
    }
    result.map_err(section::first)
}

/// Tells the other ranks that this rank has failed in a call whose memory it cannot use.
#[cold]
fn refuse(comm: &Communicator, call: &Collective<'_>, blocking: bool, failure: &Failure) {
    let kind = ErrorKind::Engine(ErrorClass(failure.code));
    comm.refuse_call(call, blocking, &typepack::Error::new(kind, "argument", failure.text.clone()));
}

/// Starts the operation and makes a request for it.
///
/// # Safety
///
/// - The operation may access the parts of memory that `call` passes on until the request is complete.
unsafe fn begin(
    on: &On,
    request: Output<raw::Request>,
    made: &mut bool,
    call: &mut dyn FnMut(&Communicator, Make<'_>) -> Result,
) -> Result {
    let out = request.required("request")?;
    let communicator = on.comm.communicator();
    call(communicator, &mut |call| {
        *made = true;
        section::check().inspect_err(|failure| refuse(communicator, call, false, failure))?;
        // SAFETY: the operation may access the parts of `call` until the request is complete (condition of
        // `# Safety`). The operation has ended before the request is complete.
        let running = request::collective(unsafe { communicator.start_raw(call)? });
        out.set(request::open_collective(on.clone(), running, None)?);
        Ok(())
    })
}

/// Stores the operation in a new persistent request, through which the program can start the operation.
///
/// # Safety
///
/// - From each start of the request until its completion, the operation may access the parts of memory that
///   `call` passes on.
unsafe fn keep(
    on: &On,
    hints: raw::Info,
    request: Output<raw::Request>,
    made: &mut bool,
    call: &mut dyn FnMut(&Communicator, Make<'_>) -> Result,
) -> Result {
    let out = request.required("request")?;
    if hints != raw::Info::NULL {
        info::find(hints)?;
    }
    let communicator = on.comm.communicator();
    call(communicator, &mut |call| {
        // The other ranks prepare their operation without this rank.
        section::check()?;
        *made = true;
        let prepared = communicator.prepare_raw(call).map_err(Failure::from)?;
        out.set(request::persistent_collective(on.clone(), Box::new(Persistent(prepared)))?);
        Ok(())
    })
}
