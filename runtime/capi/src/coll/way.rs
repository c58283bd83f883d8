//! The three ways to make a collective call: run it, start it, or keep it so that it can be started
//! repeatedly.
//!
//! The C program promises that the operation may access the memory of the call: until the call returns, until
//! the request is complete, or from each start to the completion. All other arguments are needed only during
//! the call.

use crate::argument::Output;
use crate::comm::{self, On};
use crate::error::{Failure, Result};
use crate::info;
use crate::raw;
use crate::request::{self, Running, Start};
use typepack::{Collective, Communicator, Prepared};

/// How a collective call is made.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// The operation has ended when the call returns.
    Run,
    /// The operation has ended when this request is complete.
    Start(Output<raw::Request>),
    /// The operation happens each time that this request is started. The hints are ignored.
    Prepare(raw::Info, Output<raw::Request>),
}

/// Makes the call from the value that stands for its arguments.
pub type Make<'m> = &'m mut dyn FnMut(&Collective<'_>) -> Result;

/// A collective operation that can be started.
#[derive(Debug)]
struct Persistent(Prepared);

impl Start for Persistent {
    fn start(&self) -> Result<Running> {
        // SAFETY: `keep` was called for this request: its memory is the operation's from each start to the
        // completion (condition of its `# Safety`), and this is a start.
        Ok(request::collective(unsafe { self.0.start() }?))
    }
}

/// Makes a collective call. `call` reads the arguments, makes one value from them, and passes the value to
/// its second parameter.
///
/// # Errors
/// Returns `MPI_ERR_COMM`, the errors of `call`, and those of the runtime.
///
/// # Safety
///
/// - Of the parts of memory that `call` hands over, those that the operation sends from are readable, and
///   those that it receives into are writable: until this function returns ([`Way::Run`]), until the request
///   is complete ([`Way::Start`]), or from each start of the request to its completion ([`Way::Prepare`]).
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
            // SAFETY: the parts of `call` are accessible until `make` returns (condition of `# Safety`,
            // `Way::Run`).
            unsafe { communicator.run_raw(call)? };
            Ok(())
        }),
        // SAFETY: the parts are accessible until the request is complete (condition of `# Safety`,
        // `Way::Start`).
        Way::Start(request) => unsafe { begin(&on, request, &mut made, call) },
        // SAFETY: the parts are accessible from each start to the completion (condition of `# Safety`,
        // `Way::Prepare`).
        Way::Prepare(hints, request) => unsafe { keep(&on, hints, request, &mut made, call) },
    };
    if result.is_err() && !made {
        // The other ranks make this collective call, so this rank skips it: the next calls of all ranks must
        // match.
        match way {
            Way::Run | Way::Start(_) => communicator.skip_collective(),
            Way::Prepare(..) => communicator.skip_persistent(),
        }
    }
    result
}

/// Starts the operation and makes a request for it.
///
/// # Safety
///
/// - The parts of memory that `call` hands over are accessible until the request is complete.
unsafe fn begin(
    on: &On,
    request: Output<raw::Request>,
    made: &mut bool,
    call: impl FnOnce(&Communicator, Make<'_>) -> Result,
) -> Result {
    let out = request.required("request")?;
    let communicator = on.comm.communicator();
    call(communicator, &mut |call| {
        *made = true;
        // SAFETY: the parts of `call` are accessible until the request is complete (condition of `# Safety`),
        // which is when the operation has ended.
        let running = request::collective(unsafe { communicator.start_raw(call)? });
        out.set(request::open_collective(on.clone(), running, None)?);
        Ok(())
    })
}

/// Makes a request that starts the operation.
///
/// # Safety
///
/// - The parts of memory that `call` hands over are accessible from each start of the request to its
///   completion.
unsafe fn keep(
    on: &On,
    hints: raw::Info,
    request: Output<raw::Request>,
    made: &mut bool,
    call: impl FnOnce(&Communicator, Make<'_>) -> Result,
) -> Result {
    let out = request.required("request")?;
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
