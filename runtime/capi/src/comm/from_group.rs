//! The calls that make communicators from groups, without a parent communicator (MPI-5.0 sections 7.4.2 and 7.6.2):
//! `MPI_Comm_create_from_group`, `MPI_Intercomm_create_from_groups`.
//!
//! The groups usually come from process sets (`session.rs`). The new communicator belongs to the session of its
//! group. Errors of these calls go to the error handler that the program passes for the new communicator.

use super::intercomm::leader;
use super::world::joined;
use super::{COMMS, Comm};
use crate::abi;
use crate::argument::{Output, Place, Text};
use crate::error::handler::{Handler, On};
use crate::error::{Failure, Result};
use crate::group;
use crate::info::{self, Entry};
use crate::lifecycle;
use crate::raw;
use std::ffi::c_int;
use std::sync::Arc;
use typepack::{Communicator, Error, ErrorKind};

/// Returns the argument `stringtag`, by which the ranks find each other.
fn read_name(name: Text) -> Result<Vec<u8>> {
    Ok(name.read(abi::MAX_STRINGTAG_LEN, "stringtag", abi::ERR_ARG)?)
}

/// Those arguments of both calls that only this rank uses. If they are wrong, the rank can still take part in the call.
struct Common {
    hints: Vec<Entry>,
    out: Place<raw::Comm>,
}

impl Common {
    fn read(hints: raw::Info, newcomm: Output<raw::Comm>) -> Result<Self> {
        let out = newcomm.required("newcomm")?;
        let hints = match hints {
            raw::Info::NULL => Vec::new(),
            hints => info::find(hints)?.all(),
        };
        Ok(Self { hints, out })
    }

    fn hand_out(&self, made: Communicator, handler: Handler, session: usize) -> Result {
        let comm = Comm::new(made, handler, "", session);
        comm.hints.set(&self.hints);
        self.out.set(raw::Comm(COMMS.insert(Arc::new(comm))?));
        Ok(())
    }
}

/// Calls `make` with the error handler for the new communicator. If `make` fails, its failure names this error
/// handler. If `errhandler` is not valid, `make` gets the failure instead, and its own failure names no error handler.
fn with_handler(
    errhandler: raw::Errhandler,
    make: impl FnOnce(Result<Handler>) -> Result,
) -> Result {
    match Handler::find(errhandler, On::Comm) {
        Ok(handler) => make(Ok(handler.clone())).map_err(|mut failure| {
            failure.on = Some((abi::COMM_NULL, handler));
            failure
        }),
        Err(failure) => make(Err(failure)),
    }
}

/// `MPI_Comm_create_from_group`. If the group is empty, the result is the null handle.
pub fn create(
    group: raw::Group,
    stringtag: Text,
    info: raw::Info,
    errhandler: raw::Errhandler,
    newcomm: Output<raw::Comm>,
) -> Result {
    with_handler(errhandler, |handler| {
        let (group, name) = (group::find(group)?, read_name(stringtag)?);
        // A rank that knows the group and the string takes part, even if another argument is wrong. Otherwise a message
        // of this call would match the next call with the same group and string.
        let made = joined()?.communicator(&group, &name)?;
        let (handler, common) = (handler?, Common::read(info, newcomm)?);
        match made {
            Some(made) => common.hand_out(made, handler, group.session),
            None => {
                common.out.set(raw::Comm::NULL);
                Ok(())
            }
        }
    })
}

/// `MPI_Intercomm_create_from_groups`. Only the local leader uses the remote group and the remote leader. If they are
/// wrong, the leader tells the other ranks of its group, so that they do not wait. If the local group is empty, the
/// result is the null handle.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub fn intercomm(
    local_group: raw::Group,
    local_leader: c_int,
    remote_group: raw::Group,
    remote_leader: c_int,
    stringtag: Text,
    info: raw::Info,
    errhandler: raw::Errhandler,
    newintercomm: Output<raw::Comm>,
) -> Result {
    with_handler(errhandler, |handler| {
        let (local, name) = (group::find(local_group)?, read_name(stringtag)?);
        let universe = joined()?;
        let leading = leader(local_leader, "local_leader");
        // If the argument is negative, `leads` is a number that no rank has, so the call below fails too.
        let leads = leading.as_ref().map_or(usize::MAX, |leading| *leading);
        let read = || Ok((handler?, Common::read(info, newintercomm)?, leading?));
        let rest: Result<_> = read();
        if let (Ok((_, common, _)), true) = (&rest, local.is_empty()) {
            common.out.set(raw::Comm::NULL);
            return Ok(());
        }
        let own = lifecycle::process().and_then(|process| local.rank_of(process));
        let is_leader = own == Some(leads);
        let other = match is_leader {
            true => group::find(remote_group)
                .and_then(|group| Ok((group, leader(remote_leader, "remote_leader")?))),
            false => Err(Failure::new(abi::ERR_OTHER, "remote_group", "not the leader")),
        };
        let found = match &other {
            Ok((group, rank)) => Ok((&***group, *rank)),
            Err(_) => Err(Error::new(ErrorKind::Argument, "remote_group", "not valid")),
        };
        let (handler, common, _) = rest.inspect_err(|_| {
            // The C caller gets the error that this rank has found. The error of the call below is its consequence.
            let _second = universe.fail_intercommunicator(&local, leads, found.clone(), &name);
        })?;
        let made = universe.intercommunicator(&local, leads, found, &name);
        match (is_leader, other) {
            (true, Err(failure)) => Err(failure),
            _ => common.hand_out(made?, handler, local.session),
        }
    })
}
