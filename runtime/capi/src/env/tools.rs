//! What the tool interface says about its variables, categories, events and sources: there are none
//! (MPI-5.0 chapter 15).

use super::version::tools_ready;
use crate::abi;
use crate::argument::{Output, Text};
use crate::error::{Failure, Result};
use std::ffi::c_int;

fn failure(code: c_int, argument: &str, detail: &str) -> Failure {
    Failure::new(code, argument, detail)
}

/// Checks that the tool interface is initialised.
fn ready() -> Result {
    if tools_ready() {
        return Ok(());
    }
    let detail = "the tool interface is not initialized";
    Err(failure(abi::T_ERR_NOT_INITIALIZED, "MPI_T_init_thread", detail))
}

/// The functions that return a number of things, and `MPI_T_category_changed`, whose number never changes.
pub fn number(number: Output<c_int>) -> Result {
    number.write_if_given(0);
    ready()?;
    number
        .required("number")
        .map_err(|null| Failure::of_code(abi::T_ERR_INVALID, null.into_said().text))?;
    Ok(())
}

/// The functions that return the index of a name.
pub fn index(name: Text, index: Output<c_int>) -> Result {
    index.write_if_given(0);
    ready()?;
    let _unknown = name;
    Err(failure(abi::T_ERR_INVALID_NAME, "name", "nothing in the tool interface has this name"))
}

/// `MPI_T_pvar_get_index`.
pub fn variable_index(name: Text, var_class: c_int, index: Output<c_int>) -> Result {
    let _none_of_any_class = var_class;
    self::index(name, index)
}
