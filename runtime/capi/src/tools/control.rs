//! Control variables (MPI-5.0 section 15.3.6), and the enumerations of their values (section 15.3.5).
//!
//! The handle of an enumeration is a number: that of its control variable plus a constant.

use super::event::of_enumeration;
use super::{done, failure, find, given, index, number, ready, write_text};
use crate::abi;
use crate::argument::{Array, InOut, OutArray, Output, Text, TextBuffer};
use crate::error::Result;
use crate::raw::{self, Tool};
use std::ffi::{c_int, c_void};
use typepack::tools::{self, Fault, Form, TEXT_MAX, Value, controls};
use typepack::variables::Scope;

/// The handle of the enumeration of the first control variable.
const ENUMERATIONS: usize = 0x100;

/// `MPI_T_cvar_get_num`.
pub fn get_num(num_cvar: Output<c_int>) -> Result {
    number(num_cvar, controls().len())
}

/// `MPI_T_cvar_get_index`.
pub fn get_index(name: Text, cvar_index: Output<c_int>) -> Result {
    ready()?;
    let place = given(cvar_index.required("cvar_index"))?;
    place.set(find(name, controls().iter().map(|control| control.name))?);
    Ok(())
}

fn datatype(form: &Form) -> raw::Datatype {
    raw::Datatype(match form {
        Form::Number => abi::UNSIGNED_LONG,
        Form::Flag | Form::Choice(_) => abi::INT,
        Form::Text => abi::CHAR,
    })
}

fn scope(scope: Scope) -> c_int {
    match scope {
        Scope::Constant => abi::T_SCOPE_CONSTANT,
        Scope::Local => abi::T_SCOPE_LOCAL,
        Scope::AllEqual => abi::T_SCOPE_ALL_EQ,
    }
}

/// `MPI_T_cvar_get_info`.
///
/// # Safety
///
/// - The lengths at `name_len` and `desc_len` are at most the sizes of the buffers `name` and `desc`.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn get_info(
    cvar_index: c_int,
    name: TextBuffer,
    name_len: InOut<c_int>,
    verbosity: Output<c_int>,
    datatype: Output<raw::Datatype>,
    enumtype: Output<Tool>,
    desc: TextBuffer,
    desc_len: InOut<c_int>,
    bind: Output<c_int>,
    scope: Output<c_int>,
) -> Result {
    ready()?;
    let at = index(cvar_index)?;
    let control = controls().get(at).ok_or_else(|| failure(Fault::Index))?;
    // SAFETY: the caller guarantees the lengths (`# Safety`).
    unsafe {
        write_text(name, name_len, control.name);
        write_text(desc, desc_len, control.meaning);
    }
    verbosity.write_if_given(super::verbosity(control.audience));
    datatype.write_if_given(self::datatype(&control.form));
    let enumeration = matches!(control.form, Form::Choice(_)).then_some(ENUMERATIONS + at);
    enumtype.write_if_given(Tool(enumeration.unwrap_or(abi::T_ENUM_NULL)));
    bind.write_if_given(abi::T_BIND_NO_OBJECT);
    scope.write_if_given(self::scope(control.scope));
    Ok(())
}

/// `MPI_T_cvar_handle_alloc`. No variable belongs to an object.
pub fn handle_alloc(
    cvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: Output<Tool>,
    count: Output<c_int>,
) -> Result {
    ready()?;
    let at = index(cvar_index)?;
    let form = &controls().get(at).ok_or_else(|| failure(Fault::Index))?.form;
    let (handle, count) = (given(handle.required("handle"))?, given(count.required("count"))?);
    handle.set(Tool(done(tools::allocate(at))? as usize));
    count.set(if *form == Form::Text { TEXT_MAX as c_int } else { 1 });
    Ok(())
}

/// `MPI_T_cvar_handle_free`.
pub fn handle_free(handle: InOut<Tool>) -> Result {
    ready()?;
    let (number, place) = given(handle.read("handle"))?;
    done(tools::free(number.0 as u64))?;
    place.set(Tool(abi::T_CVAR_HANDLE_NULL));
    Ok(())
}

/// `MPI_T_cvar_read`.
///
/// # Safety
///
/// - `buf` has as many elements as `MPI_T_cvar_handle_alloc` has returned, of the type of the variable.
pub unsafe fn read(handle: Tool, buf: OutArray<u8>) -> Result {
    ready()?;
    let bytes = match done(tools::read(handle.0 as u64))? {
        Value::Number(number) => number.to_ne_bytes().to_vec(),
        Value::Choice(choice) => choice.to_ne_bytes().to_vec(),
        Value::Text(mut text) => {
            text.push(0);
            text
        }
    };
    // SAFETY: a number is one element of 8 bytes, a choice is one of 4 bytes, and a text with its zero byte has at most
    // `TEXT_MAX` bytes, so `buf` has at least these bytes (`# Safety`).
    given(unsafe { buf.places(bytes.len(), "buf") })?.fill(bytes);
    Ok(())
}

/// `MPI_T_cvar_write`.
///
/// # Safety
///
/// - `buf` has as many elements as `MPI_T_cvar_handle_alloc` has returned, of the type of the variable, or a shorter
///   text with a zero byte at its end.
pub unsafe fn write(handle: Tool, buf: Array<u8>) -> Result {
    ready()?;
    let form = done(tools::form_of(handle.0 as u64))?;
    let length = match form {
        Form::Number => size_of::<u64>(),
        Form::Flag | Form::Choice(_) => size_of::<c_int>(),
        Form::Text => TEXT_MAX,
    };
    // SAFETY: `buf` has these bytes, or a text that ends before them (`# Safety`). Of a text, nothing is read behind
    // its zero byte.
    let bytes = given(unsafe { buf.entries(length, "buf") })?;
    let wrong = || failure(Fault::Invalid);
    let value = match form {
        Form::Text => Value::Text(bytes.take_while(|byte| *byte != 0).collect()),
        Form::Number => {
            let bytes: Vec<u8> = bytes.collect();
            Value::Number(u64::from_ne_bytes(bytes.try_into().map_err(|_| wrong())?))
        }
        Form::Flag | Form::Choice(_) => {
            let bytes: Vec<u8> = bytes.collect();
            Value::Choice(c_int::from_ne_bytes(bytes.try_into().map_err(|_| wrong())?))
        }
    };
    done(tools::write(handle.0 as u64, &value))
}

/// Returns the name of an enumeration, and its words: those of a variable, or the names of the elements of an event.
fn enumeration(enumtype: Tool) -> Result<(&'static str, Vec<&'static str>)> {
    if let Some(event) = of_enumeration(enumtype) {
        return Ok((event.name, event.elements.iter().map(|(name, _)| *name).collect()));
    }
    let control = enumtype.0.checked_sub(ENUMERATIONS).and_then(|at| controls().get(at));
    match control.map(|control| (control, &control.form)) {
        Some((control, Form::Choice(words))) => Ok((control.name, words.clone())),
        _ => Err(failure(Fault::Handle)),
    }
}

/// `MPI_T_enum_get_info`.
///
/// # Safety
///
/// - The length at `name_len` is at most the size of the buffer `name`.
pub unsafe fn enum_info(
    enumtype: Tool,
    num: Output<c_int>,
    name: TextBuffer,
    name_len: InOut<c_int>,
) -> Result {
    ready()?;
    let (of, words) = enumeration(enumtype)?;
    num.write_if_given(words.len() as c_int);
    // SAFETY: the caller guarantees the length (`# Safety`).
    unsafe { write_text(name, name_len, of) };
    Ok(())
}

/// `MPI_T_enum_get_item`.
///
/// # Safety
///
/// - The length at `name_len` is at most the size of the buffer `name`.
pub unsafe fn enum_item(
    enumtype: Tool,
    item: c_int,
    value: Output<c_int>,
    name: TextBuffer,
    name_len: InOut<c_int>,
) -> Result {
    ready()?;
    let (_, words) = enumeration(enumtype)?;
    let at = index(item)?;
    let word = words.get(at).ok_or_else(|| failure(Fault::Index))?;
    value.write_if_given(item);
    // SAFETY: the caller guarantees the length (`# Safety`).
    unsafe { write_text(name, name_len, word) };
    Ok(())
}
