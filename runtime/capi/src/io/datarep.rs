//! Data representations that the program defines (MPI-5.0 section 14.5.3).
//!
//! The runtime calls the program's functions only in threads that call the library.

use crate::abi;
use crate::argument::Text;
use crate::callback::Datarep;
use crate::error::{Failure, Result};
use crate::raw::{self, Callback};
use std::ffi::c_void;
use typepack::io::{Conversion, Converter, UserRepresentation, register_representation};
use typepack::{Error, ErrorClass, ErrorKind, Named};
use typepack_capi_datatype::types::{self, predefined};

/// Returns the error for the user's function `name`, which returned `code`: an error code or a negative extent.
fn refused(name: &'static str, code: i32) -> Error {
    Error::new(
        ErrorKind::Engine(ErrorClass::CONVERSION),
        name,
        format!("the function returned {code}"),
    )
}

/// Calls a conversion function of the user. `large` is true if the function takes the count as an `MPI_Count`.
fn convert(function: Datarep, large: bool, call: &Conversion<'_>) -> typepack::Result<()> {
    let fail = |failure: crate::failure::Failure| {
        Error::new(ErrorKind::Other, "datatype", failure.into_said().text)
    };
    let datatype = predefined::handle_of(call.datatype).map_err(fail)?;
    let own = !call.datatype.is_predefined();
    if own {
        // The function may pass the datatype to calls that need a committed datatype.
        types::find(datatype).and_then(|found| found.commit()).map_err(fail)?;
    }
    let (count, position) = (call.count as i64, call.position as i64);
    let code =
        function.convert(large, call.memory.cast(), datatype, count, call.file.cast(), position);
    if own {
        // If the function has already freed the datatype, `remove` returns an error, which does not matter.
        let _ = types::remove(datatype);
    }
    match code {
        None | Some(0) => Ok(()),
        Some(code) => Err(refused("conversion_fn", code)),
    }
}

/// Registers a representation. `large` is true if the conversion functions take their counts as `MPI_Count`.
fn register(
    datarep: Text,
    large: bool,
    [read, write, extent]: [Callback; 3],
    extra: *mut c_void,
) -> Result {
    let name = datarep.read(abi::MAX_DATAREP_STRING, "datarep", abi::ERR_ARG)?;
    if extent.is_null() {
        return Err(Failure::null("dtype_file_extent_fn"));
    }
    let converter = |callback: Callback| {
        let function = Datarep::new(callback, extra);
        function.is_some().then(|| -> Box<Converter> {
            Box::new(move |call: &Conversion<'_>| convert(function, large, call))
        })
    };
    let extent = Datarep::new(extent, extra);
    let width = move |named: Named| {
        let handle = raw::Datatype(named.abi_value() as usize);
        let extent = extent.extent(handle).map_err(|code| refused("dtype_file_extent_fn", code))?;
        u64::try_from(extent).map_err(|_| refused("dtype_file_extent_fn", extent as i32))
    };
    let name = String::from_utf8_lossy(&name);
    // SAFETY: the program promises that its functions convert the elements that they are given and touch nothing
    // else.
    let made = unsafe {
        UserRepresentation::new(&name, converter(read), converter(write), Box::new(width))
    };
    Ok(register_representation(made)?)
}

/// `MPI_Register_datarep`.
pub fn register_datarep(
    datarep: Text,
    read: Callback,
    write: Callback,
    extent: Callback,
    extra: *mut c_void,
) -> Result {
    register(datarep, false, [read, write, extent], extra)
}

/// `MPI_Register_datarep_c`.
pub fn register_datarep_c(
    datarep: Text,
    read: Callback,
    write: Callback,
    extent: Callback,
    extra: *mut c_void,
) -> Result {
    register(datarep, true, [read, write, extent], extra)
}
