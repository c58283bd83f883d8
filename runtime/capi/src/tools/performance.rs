//! Performance variables (MPI-5.0 section 15.3.7).

use super::{done, failure, given, index, name_of, number, ready, write_text};
use crate::abi;
use crate::argument::{Array, InOut, OutArray, Output, Text, TextBuffer};
use crate::comm;
use crate::error::Result;
use crate::raw::{self, Tool};
use std::ffi::c_int;
use typepack::tools::{Amount, Class, Fault, Handle, Performance, Session, counters};

fn class(class: Class) -> c_int {
    match class {
        Class::Level => abi::T_PVAR_CLASS_LEVEL,
        Class::Counter => abi::T_PVAR_CLASS_COUNTER,
        Class::Aggregate => abi::T_PVAR_CLASS_AGGREGATE,
        Class::Timer => abi::T_PVAR_CLASS_TIMER,
    }
}

fn datatype(counter: &Performance) -> raw::Datatype {
    let is_time = counter.class == Class::Timer;
    raw::Datatype(if is_time { abi::DOUBLE } else { abi::UNSIGNED_LONG_LONG })
}

/// `MPI_T_pvar_get_num`.
pub fn get_num(num_pvar: Output<c_int>) -> Result {
    number(num_pvar, counters().len())
}

/// `MPI_T_pvar_get_index`.
pub fn get_index(name: Text, var_class: c_int, pvar_index: Output<c_int>) -> Result {
    ready()?;
    let place = given(pvar_index.required("pvar_index"))?;
    let name = name_of(name)?;
    let is_it = |counter: &Performance| {
        counter.name.as_bytes() == name && class(counter.class) == var_class
    };
    let at = counters().iter().position(is_it).ok_or_else(|| failure(Fault::Name))?;
    place.set(at as c_int);
    Ok(())
}

/// `MPI_T_pvar_get_info`.
///
/// # Safety
///
/// - The lengths at `name_len` and `desc_len` are at most the sizes of the buffers `name` and `desc`.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn get_info(
    pvar_index: c_int,
    name: TextBuffer,
    name_len: InOut<c_int>,
    verbosity: Output<c_int>,
    var_class: Output<c_int>,
    datatype: Output<raw::Datatype>,
    enumtype: Output<Tool>,
    desc: TextBuffer,
    desc_len: InOut<c_int>,
    bind: Output<c_int>,
    readonly: Output<c_int>,
    continuous: Output<c_int>,
    atomic: Output<c_int>,
) -> Result {
    ready()?;
    let counter = counters().get(index(pvar_index)?).ok_or_else(|| failure(Fault::Index))?;
    // SAFETY: the caller guarantees the lengths (`# Safety`).
    unsafe {
        write_text(name, name_len, &counter.name);
        write_text(desc, desc_len, &counter.meaning);
    }
    verbosity.write_if_given(super::verbosity(counter.audience));
    var_class.write_if_given(class(counter.class));
    datatype.write_if_given(self::datatype(counter));
    enumtype.write_if_given(Tool(abi::T_ENUM_NULL));
    let is_bound = counter.is_of_communicator();
    bind.write_if_given(if is_bound { abi::T_BIND_MPI_COMM } else { abi::T_BIND_NO_OBJECT });
    readonly.write_if_given(counter.is_level().into());
    continuous.write_if_given(counter.is_level().into());
    atomic.write_if_given((!counter.is_level()).into());
    Ok(())
}

/// `MPI_T_pvar_session_create`.
pub fn session_create(session: Output<Tool>) -> Result {
    ready()?;
    let place = given(session.required("session"))?;
    place.set(Tool(Session::new().number() as usize));
    Ok(())
}

/// `MPI_T_pvar_session_free`.
pub fn session_free(session: InOut<Tool>) -> Result {
    ready()?;
    let (number, place) = given(session.read("session"))?;
    done(Session::from_number(number.0 as u64).free())?;
    place.set(Tool(abi::T_PVAR_SESSION_NULL));
    Ok(())
}

fn pair(session: Tool, handle: Tool) -> (Session, Handle) {
    (Session::from_number(session.0 as u64), Handle::from_number(handle.0 as u64))
}

/// `MPI_T_pvar_handle_alloc`. If each communicator has the variable, the object is a communicator.
///
/// # Safety
///
/// - `obj_handle` has a handle of the kind of object to which the variable belongs. It is not read if there is none.
pub unsafe fn handle_alloc(
    session: Tool,
    pvar_index: c_int,
    obj_handle: Array<u8>,
    handle: Output<Tool>,
    count: Output<c_int>,
) -> Result {
    ready()?;
    let (handle, count) = (given(handle.required("handle"))?, given(count.required("count"))?);
    let session = Session::from_number(session.0 as u64);
    let at = index(pvar_index)?;
    let object = match counters().get(at) {
        Some(counter) if counter.is_of_communicator() && obj_handle.address() != 0 => {
            // SAFETY: the object is a communicator, so the handle of one is there (`# Safety`).
            let bytes = given(unsafe { obj_handle.entries(size_of::<usize>(), "obj_handle") })?;
            let number =
                bytes.enumerate().fold(0, |sum, (at, byte)| sum | usize::from(byte) << (8 * at));
            Some(given(comm::find(raw::Comm(number)))?)
        }
        _ => None,
    };
    let object = object.as_ref().map(|comm| comm.communicator());
    let made = done(session.allocate(at, object))?;
    handle.set(Tool(made.number() as usize));
    count.set(1);
    Ok(())
}

/// `MPI_T_pvar_handle_free`.
pub fn handle_free(session: Tool, handle: InOut<Tool>) -> Result {
    ready()?;
    let (number, place) = given(handle.read("handle"))?;
    let (session, handle) = pair(session, number);
    done(session.release(handle))?;
    place.set(Tool(abi::T_PVAR_HANDLE_NULL));
    Ok(())
}

/// `MPI_T_pvar_start`.
pub fn start(session: Tool, handle: Tool) -> Result {
    ready()?;
    let all = handle.0 == abi::T_PVAR_ALL_HANDLES;
    let (session, handle) = pair(session, handle);
    done(if all { session.start_all() } else { session.start(handle) })
}

/// `MPI_T_pvar_stop`.
pub fn stop(session: Tool, handle: Tool) -> Result {
    ready()?;
    let all = handle.0 == abi::T_PVAR_ALL_HANDLES;
    let (session, handle) = pair(session, handle);
    done(if all { session.stop_all() } else { session.stop(handle) })
}

/// Writes a value where C wants it.
///
/// # Safety
///
/// - `buf` has an element of the type of the variable.
unsafe fn put(buf: OutArray<u8>, amount: Amount) -> Result {
    let bytes = match amount {
        Amount::Whole(number) => number.to_ne_bytes(),
        Amount::Seconds(time) => time.to_ne_bytes(),
    };
    // SAFETY: the types of all variables have 8 bytes, so `buf` has as many (`# Safety`).
    given(unsafe { buf.places(bytes.len(), "buf") })?.fill(bytes);
    Ok(())
}

/// `MPI_T_pvar_read`.
///
/// # Safety
///
/// - `buf` has an element of the type of the variable.
pub unsafe fn read(session: Tool, handle: Tool, buf: OutArray<u8>) -> Result {
    ready()?;
    let (session, handle) = pair(session, handle);
    let amount = done(session.read(handle))?;
    // SAFETY: the caller guarantees the element (`# Safety`).
    unsafe { put(buf, amount) }
}

/// `MPI_T_pvar_readreset`.
///
/// # Safety
///
/// - `buf` has an element of the type of the variable.
pub unsafe fn readreset(session: Tool, handle: Tool, buf: OutArray<u8>) -> Result {
    ready()?;
    let (session, handle) = pair(session, handle);
    done(session.counter(handle))?;
    // SAFETY: no byte is written. The call must find out that there is no buffer before it resets the variable.
    given(unsafe { buf.places(1, "buf") })?;
    let amount = done(session.read_and_reset(handle))?;
    // SAFETY: the caller guarantees the element (`# Safety`).
    unsafe { put(buf, amount) }
}

/// `MPI_T_pvar_reset`.
pub fn reset(session: Tool, handle: Tool) -> Result {
    ready()?;
    let all = handle.0 == abi::T_PVAR_ALL_HANDLES;
    let (session, handle) = pair(session, handle);
    done(if all { session.reset_all() } else { session.reset(handle) })
}

/// `MPI_T_pvar_write`.
///
/// # Safety
///
/// - `buf` has an element of the type of the variable.
pub unsafe fn write(session: Tool, handle: Tool, buf: Array<u8>) -> Result {
    ready()?;
    let (session, handle) = pair(session, handle);
    let counter = done(session.counter(handle))?;
    // SAFETY: the types of all variables have 8 bytes, so `buf` has as many (`# Safety`).
    let bytes: Vec<u8> = given(unsafe { buf.entries(8, "buf") })?.collect();
    let bytes = bytes.try_into().map_err(|_| failure(Fault::Invalid))?;
    let amount = match counter.class {
        Class::Timer => Amount::Seconds(f64::from_ne_bytes(bytes)),
        _ => Amount::Whole(u64::from_ne_bytes(bytes)),
    };
    done(session.write(handle, amount))
}
