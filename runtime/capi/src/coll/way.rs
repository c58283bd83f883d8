//! The three ways to make a collective call: run it, start it, keep it to be started again and again.
//!
//! The memory that a call names is the C program's promise: until the call returns, until the request is
//! complete, or from each start to the completion. Everything else is needed by the call only.

use crate::comm::{self, On};
use crate::error::{Failure, Result};
use crate::info;
use crate::out::Out;
use crate::raw;
use crate::request::{self, Running, Start};
use typepack::{Collective, Communicator, Prepared};

/// How a collective call is made.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// It has happened when the call returns.
    Run,
    /// It has happened when this request is complete.
    Start(*mut raw::Request),
    /// It happens each time that this request is started; with hints, of which none is known.
    Prepare(raw::Info, *mut raw::Request),
}

/// What makes the call, once the arguments have become one value.
pub type Make<'m> = &'m mut dyn FnMut(&Collective<'_>) -> Result;

/// A collective operation that can be started.
#[derive(Debug)]
struct Persistent(Prepared);

impl Start for Persistent {
    fn start(&self) -> Result<Running> {
        // SAFETY: the memory is the C program's promise from each start to the completion.
        Ok(request::collective(unsafe { self.0.start() }?))
    }
}

/// Makes a collective call: `call` reads the arguments and calls what it is given.
///
/// # Safety
///
/// - A request is null or writable.
/// - The memory that the call names is the C program's, as the way asks for.
///
/// # Errors
/// `MPI_ERR_COMM`; those of `call`; those of the runtime.
pub unsafe fn make(
    comm: raw::Comm,
    way: Way,
    call: impl FnOnce(&Communicator, Make<'_>) -> Result,
) -> Result {
    let on = comm::on(comm)?;
    let communicator = on.comm.communicator();
    let mut made = false;
    let result = match way {
        Way::Run => call(communicator, &mut |call| {
            made = true;
            // SAFETY: the caller's promise, until this returns.
            unsafe { communicator.run_raw(call)? };
            Ok(())
        }),
        // SAFETY: null or writable, as the caller promises.
        Way::Start(request) => unsafe { begin(&on, request, &mut made, call) },
        // SAFETY: as above.
        Way::Prepare(hints, request) => unsafe { keep(&on, hints, request, &mut made, call) },
    };
    if result.is_err() && !made {
        // The other ranks make the call: their next one has to meet this rank's next one.
        match way {
            Way::Run | Way::Start(_) => communicator.skip_collective(),
            Way::Prepare(..) => communicator.skip_persistent(),
        }
    }
    result
}

/// # Safety
/// As [`make`].
unsafe fn begin(
    on: &On,
    request: *mut raw::Request,
    made: &mut bool,
    call: impl FnOnce(&Communicator, Make<'_>) -> Result,
) -> Result {
    // SAFETY: null or writable, as the caller promises.
    let out = unsafe { Out::new(request, "request")? };
    let communicator = on.comm.communicator();
    call(communicator, &mut |call| {
        *made = true;
        // SAFETY: the caller's promise, until the request is complete.
        let running = request::collective(unsafe { communicator.start_raw(call)? });
        out.set(request::open_collective(on.clone(), running, None)?);
        Ok(())
    })
}

/// # Safety
/// As [`make`].
unsafe fn keep(
    on: &On,
    hints: raw::Info,
    request: *mut raw::Request,
    made: &mut bool,
    call: impl FnOnce(&Communicator, Make<'_>) -> Result,
) -> Result {
    // SAFETY: null or writable, as the caller promises.
    let out = unsafe { Out::new(request, "request")? };
    if hints != raw::Info::NULL {
        info::find(hints)?;
    }
    let communicator = on.comm.communicator();
    call(communicator, &mut |call| {
        *made = true;
        let prepared = communicator.prepare_raw(call).map_err(Failure::from)?;
        out.set(request::persistent_collective(on.clone(), Box::new(Persistent(prepared)))?);
        Ok(())
    })
}
