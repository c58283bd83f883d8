//! The calls by which processes meet that have no communicator in common (MPI-5.0 sections 11.9 and 11.10.4):
//! `MPI_Open_port`, `MPI_Close_port`, `MPI_Comm_accept`, `MPI_Comm_connect`, `MPI_Publish_name`, `MPI_Unpublish_name`,
//! `MPI_Lookup_name`, `MPI_Comm_join`.
//!
//! No key of an info object has an effect here; the handle must be valid.

use super::create::{arguments, hand_out};
use super::world::joined;
use super::{find, own};
use crate::abi;
use crate::argument::{Output, Place, Text, TextOutput};
use crate::error::{Failure, Result};
use crate::info;
use crate::raw;
use std::ffi::c_int;
use typepack::Communicator;

/// Maximum number of bytes of the name of a service, with the zero byte.
const LONGEST: c_int = 4096;

fn check_info(hints: raw::Info) -> Result {
    if hints == raw::Info::NULL { Ok(()) } else { info::find(hints).map(drop) }
}

fn port(name: Text) -> Result<Vec<u8>> {
    Ok(name.read(abi::MAX_PORT_NAME, "port_name", abi::ERR_PORT)?)
}

fn service(name: Text) -> Result<Vec<u8>> {
    Ok(name.read(LONGEST, "service_name", abi::ERR_SERVICE)?)
}

/// `MPI_Open_port`.
pub fn open(info: raw::Info, port_name: TextOutput<{ abi::MAX_PORT_NAME }>) -> Result {
    check_info(info)?;
    let out = port_name.required("port_name")?;
    out.write(&joined()?.open_port()?);
    Ok(())
}

/// `MPI_Close_port`.
pub fn close(port_name: Text) -> Result {
    Ok(joined()?.close_port(port(port_name)?)?)
}

/// Makes an intercommunicator by a collective call in which only the root knows the name of the port.
fn meet(
    port_name: Text,
    info: raw::Info,
    root: c_int,
    comm: raw::Comm,
    newcomm: Output<raw::Comm>,
    call: impl FnOnce(&Communicator, &[u8], usize) -> typepack::Result<Communicator>,
) -> Result {
    let parent = find(comm)?;
    let communicator = parent.communicator();
    let read = || -> Result<(usize, Place<raw::Comm>, Vec<u8>)> {
        let out = newcomm.required("newcomm")?;
        let root = usize::try_from(root)
            .map_err(|_| Failure::new(abi::ERR_ROOT, "root", format!("{root} is negative")))?;
        if root != communicator.rank() {
            return Ok((root, out, Vec::new()));
        }
        check_info(info)?;
        Ok((root, out, port(port_name)?))
    };
    let (root, out, name) = arguments(&parent, read)?;
    hand_out(&parent, Some(call(communicator, &name, root)?), out)
}

/// `MPI_Comm_accept`.
pub fn accept(
    port_name: Text,
    info: raw::Info,
    root: c_int,
    comm: raw::Comm,
    newcomm: Output<raw::Comm>,
) -> Result {
    meet(port_name, info, root, comm, newcomm, |comm, name, root| comm.accept(name, root))
}

/// `MPI_Comm_connect`.
pub fn connect(
    port_name: Text,
    info: raw::Info,
    root: c_int,
    comm: raw::Comm,
    newcomm: Output<raw::Comm>,
) -> Result {
    meet(port_name, info, root, comm, newcomm, |comm, name, root| comm.connect_to(name, root))
}

/// `MPI_Publish_name`.
pub fn publish(service_name: Text, info: raw::Info, port_name: Text) -> Result {
    let (service, port) = (service(service_name)?, port(port_name)?);
    check_info(info)?;
    Ok(joined()?.publish(service, port)?)
}

/// `MPI_Unpublish_name`.
pub fn unpublish(service_name: Text, info: raw::Info, port_name: Text) -> Result {
    let (service, port) = (service(service_name)?, port(port_name)?);
    check_info(info)?;
    Ok(joined()?.unpublish(service, port)?)
}

/// `MPI_Lookup_name`.
pub fn lookup(
    service_name: Text,
    info: raw::Info,
    port_name: TextOutput<{ abi::MAX_PORT_NAME }>,
) -> Result {
    let service = service(service_name)?;
    check_info(info)?;
    let out = port_name.required("port_name")?;
    out.write(&joined()?.look_up(service)?);
    Ok(())
}

/// `MPI_Comm_join`.
pub fn join(fd: c_int, intercomm: Output<raw::Comm>) -> Result {
    let out = intercomm.required("intercomm")?;
    let parent = own().ok_or_else(|| super::invalid(raw::Comm(abi::COMM_SELF)))?;
    let made = joined()?.join_number(fd)?;
    hand_out(parent, Some(made), out)
}
