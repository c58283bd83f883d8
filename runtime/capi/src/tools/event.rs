//! Events (MPI-5.0 section 15.3.8), their source, and the functions of tools that are called for them.
//!
//! The functions run outside all locks of the library (`typepack::tools::deliver`), at the safety level
//! `MPI_T_CB_REQUIRE_NONE`. So a call that the program makes in a function of its own where not every call is allowed
//! (`callback.rs`) delivers nothing. No function has hints, so info objects about them are empty.

use super::{done, failure, find, given, index, number, ready, write_text};
use crate::abi;
use crate::argument::{InOut, OutArray, Output, Text, TextBuffer};
use crate::callback::{Dropped, EventFreed, EventHappened, deliver};
use crate::error::Result;
use crate::info;
use crate::raw::{self, Callback, Tool};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use typepack::tools::{self, Element, Event, Fault, events};

/// The handle of the enumeration that names the elements of the first kind of events.
const ENUMERATIONS: usize = 0x800;

/// The bytes from one element of an event to the next one.
const ELEMENT: usize = 8;

/// The safety levels.
const LEVELS: [c_int; 4] = [
    abi::T_CB_REQUIRE_NONE,
    abi::T_CB_REQUIRE_MPI_RESTRICTED,
    abi::T_CB_REQUIRE_THREAD_SAFE,
    abi::T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
];

fn level(cb_safety: c_int) -> Result<c_int> {
    let known = LEVELS.contains(&cb_safety);
    if known { Ok(cb_safety) } else { Err(failure(Fault::Invalid)) }
}

fn kind(event_index: c_int) -> Result<&'static Event> {
    events().get(index(event_index)?).ok_or_else(|| failure(Fault::Index))
}

/// Checks an info object, whose hints have no effect.
fn check_info(info: raw::Info) -> Result {
    if info == raw::Info::NULL { Ok(()) } else { given(info::find(info)).map(drop) }
}

/// Writes a new info object without hints.
fn no_hints(info_used: Output<raw::Info>) -> Result {
    let place = given(info_used.required("info_used"))?;
    place.set(given(info::make(Vec::new()))?);
    Ok(())
}

/// Checks that there is only the source 0.
fn source(source_index: c_int) -> Result {
    if source_index == 0 { Ok(()) } else { Err(failure(Fault::Index)) }
}

/// `MPI_T_source_get_num`.
pub fn source_num(num_sources: Output<c_int>) -> Result {
    number(num_sources, 1)
}

/// `MPI_T_source_get_info`.
///
/// # Safety
///
/// - The lengths at `name_len` and `desc_len` are at most the sizes of the buffers `name` and `desc`.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn source_info(
    source_index: c_int,
    name: TextBuffer,
    name_len: InOut<c_int>,
    desc: TextBuffer,
    desc_len: InOut<c_int>,
    ordering: Output<c_int>,
    ticks_per_second: Output<raw::Count>,
    max_ticks: Output<raw::Count>,
    info: Output<raw::Info>,
) -> Result {
    ready()?;
    source(source_index)?;
    if let Ok(place) = info.required("info") {
        place.set(given(info::make(Vec::new()))?);
    }
    // SAFETY: the caller guarantees the lengths (`# Safety`).
    unsafe {
        write_text(name, name_len, "typepack");
        write_text(
            desc,
            desc_len,
            "The library in this process, with the machine's monotonic clock.",
        );
    }
    ordering.write_if_given(abi::T_SOURCE_ORDERED);
    ticks_per_second.write_if_given(1_000_000_000);
    max_ticks.write_if_given(raw::Count::MAX);
    Ok(())
}

/// `MPI_T_source_get_timestamp`.
pub fn source_timestamp(source_index: c_int, timestamp: Output<raw::Count>) -> Result {
    ready()?;
    source(source_index)?;
    given(timestamp.required("timestamp"))?.set(tools::event_time() as raw::Count);
    Ok(())
}

/// `MPI_T_event_get_num`.
pub fn get_num(num_events: Output<c_int>) -> Result {
    number(num_events, events().len())
}

/// `MPI_T_event_get_index`.
pub fn get_index(name: Text, event_index: Output<c_int>) -> Result {
    ready()?;
    let place = given(event_index.required("event_index"))?;
    place.set(find(name, events().iter().map(|event| event.name))?);
    Ok(())
}

fn datatype(form: Element) -> raw::Datatype {
    raw::Datatype(match form {
        Element::Int => abi::INT,
        Element::Long => abi::UNSIGNED_LONG,
    })
}

/// `MPI_T_event_get_info`.
///
/// # Safety
///
/// - The lengths at `name_len` and `desc_len` are at most the sizes of the buffers `name` and `desc`, and that at
///   `num_elements` is at most the number of entries of each array that is given.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn get_info(
    event_index: c_int,
    name: TextBuffer,
    name_len: InOut<c_int>,
    verbosity: Output<c_int>,
    array_of_datatypes: OutArray<raw::Datatype>,
    array_of_displacements: OutArray<raw::Aint>,
    num_elements: InOut<c_int>,
    enumtype: Output<Tool>,
    info: Output<raw::Info>,
    desc: TextBuffer,
    desc_len: InOut<c_int>,
    bind: Output<c_int>,
) -> Result {
    ready()?;
    let event = kind(event_index)?;
    if let Ok(place) = info.required("info") {
        place.set(given(info::make(Vec::new()))?);
    }
    // SAFETY: the caller guarantees the lengths (`# Safety`).
    unsafe {
        write_text(name, name_len, event.name);
        write_text(desc, desc_len, event.meaning);
    }
    verbosity.write_if_given(super::verbosity(event.audience));
    if let Ok((room, place)) = num_elements.read("num_elements") {
        let room = usize::try_from(room).unwrap_or(0).min(event.elements.len());
        // SAFETY: `room` is at most the number of entries of each array that is given (`# Safety`).
        let (datatypes, displacements) = unsafe {
            (array_of_datatypes.places_if_given(room), array_of_displacements.places_if_given(room))
        };
        let elements = event.elements.iter().take(room);
        if let Some(places) = datatypes {
            places.fill(elements.map(|(_, form)| datatype(*form)));
        }
        if let Some(places) = displacements {
            places.fill((0..room).map(|at| (at * ELEMENT) as raw::Aint));
        }
        place.set(event.elements.len() as c_int);
    }
    enumtype.write_if_given(Tool(ENUMERATIONS + event_index as usize));
    bind.write_if_given(abi::T_BIND_NO_OBJECT);
    Ok(())
}

/// Returns the kind of events whose elements an enumeration names.
pub fn of_enumeration(enumtype: Tool) -> Option<&'static Event> {
    enumtype.0.checked_sub(ENUMERATIONS).and_then(|at| events().get(at))
}

/// `MPI_T_event_handle_alloc`. No kind of events belongs to an object.
pub fn handle_alloc(
    event_index: c_int,
    _obj_handle: *mut c_void,
    info: raw::Info,
    event_registration: Output<Tool>,
) -> Result {
    ready()?;
    kind(event_index)?;
    check_info(info)?;
    let place = given(event_registration.required("event_registration"))?;
    place.set(Tool(done(tools::open_event(index(event_index)?))? as usize));
    Ok(())
}

/// `MPI_T_event_handle_free`.
pub fn handle_free(
    event_registration: Tool,
    user_data: *mut c_void,
    free_cb_function: Callback,
) -> Result {
    ready()?;
    let freed = EventFreed::new(free_cb_function, user_data);
    let freed = freed.map(|freed| Box::new(move |number| freed.call(number)) as tools::Freed);
    done(tools::close_event(event_registration.0 as u64, freed))?;
    // In a function of the program in which not every call is allowed, it waits for the next call outside, or for the end
    // of `MPI_Finalize`.
    deliver();
    Ok(())
}

/// `MPI_T_event_handle_set_info`.
pub fn handle_set_info(event_registration: Tool, info: raw::Info) -> Result {
    ready()?;
    done(tools::check_event(event_registration.0 as u64))?;
    check_info(info)
}

/// `MPI_T_event_handle_get_info`.
pub fn handle_get_info(event_registration: Tool, info_used: Output<raw::Info>) -> Result {
    ready()?;
    done(tools::check_event(event_registration.0 as u64))?;
    no_hints(info_used)
}

/// `MPI_T_event_register_callback`. A null function removes the function of the safety level.
pub fn register_callback(
    event_registration: Tool,
    cb_safety: c_int,
    info: raw::Info,
    user_data: *mut c_void,
    event_cb_function: Callback,
) -> Result {
    ready()?;
    let number = event_registration.0 as u64;
    done(tools::check_event(number))?;
    let level = level(cb_safety)?;
    check_info(info)?;
    let function = EventHappened::new(event_cb_function, user_data);
    let function = function.map(|function| {
        let call = move |instance, registration| function.call(instance, registration);
        (Arc::new(call) as tools::Happened, user_data as usize)
    });
    done(tools::register(number, level, function))
}

/// Checks that a registration has a function for a safety level.
fn has_function(event_registration: Tool, cb_safety: c_int) -> Result {
    let has = done(tools::has_function(event_registration.0 as u64, level(cb_safety)?))?;
    if has { Ok(()) } else { Err(failure(Fault::Invalid)) }
}

/// `MPI_T_event_callback_set_info`.
pub fn callback_set_info(event_registration: Tool, cb_safety: c_int, info: raw::Info) -> Result {
    ready()?;
    has_function(event_registration, cb_safety)?;
    check_info(info)
}

/// `MPI_T_event_callback_get_info`.
pub fn callback_get_info(
    event_registration: Tool,
    cb_safety: c_int,
    info_used: Output<raw::Info>,
) -> Result {
    ready()?;
    has_function(event_registration, cb_safety)?;
    no_hints(info_used)
}

/// `MPI_T_event_set_dropped_handler`. A null function removes the handler.
pub fn set_dropped_handler(event_registration: Tool, dropped_cb_function: Callback) -> Result {
    ready()?;
    let dropped = Dropped::new(dropped_cb_function).map(|dropped| {
        let call = move |count, registration, data| dropped.call(count, registration, data);
        Arc::new(call) as tools::Lost
    });
    done(tools::set_lost(event_registration.0 as u64, dropped))
}

/// Returns the event that a function of a tool handles now.
fn instance(event_instance: Tool) -> Result<tools::Instance> {
    ready()?;
    done(tools::instance(event_instance.0 as u64))
}

/// Writes a value of an event.
///
/// # Safety
///
/// - `buffer` has room for an element of this form.
unsafe fn put(buffer: OutArray<u8>, form: Element, value: u64) -> Result {
    let (int, long) = ((value as c_int).to_ne_bytes(), value.to_ne_bytes());
    let bytes = match form {
        Element::Int => &int[..],
        Element::Long => &long[..],
    };
    // SAFETY: `buffer` has these bytes (`# Safety`).
    given(unsafe { buffer.places(bytes.len(), "buffer") })?.fill(bytes.iter().copied());
    Ok(())
}

/// `MPI_T_event_read`.
///
/// # Safety
///
/// - `buffer` has an element of the type of the value.
pub unsafe fn read(event_instance: Tool, element_index: c_int, buffer: OutArray<u8>) -> Result {
    let instance = instance(event_instance)?;
    let at = index(element_index)?;
    let (form, value) = instance.values().nth(at).ok_or_else(|| failure(Fault::Index))?;
    // SAFETY: the caller guarantees the element (`# Safety`).
    unsafe { put(buffer, form, value) }
}

/// `MPI_T_event_copy`.
///
/// # Safety
///
/// - `buffer` has room for all values at the displacements that `MPI_T_event_get_info` returns.
pub unsafe fn copy(event_instance: Tool, buffer: OutArray<u8>) -> Result {
    for (at, (form, value)) in instance(event_instance)?.values().enumerate() {
        // SAFETY: the value begins at this displacement, and has room there (`# Safety`).
        unsafe { put(buffer.behind(at * ELEMENT), form, value)? };
    }
    Ok(())
}

/// `MPI_T_event_get_timestamp`.
pub fn get_timestamp(event_instance: Tool, event_timestamp: Output<raw::Count>) -> Result {
    let instance = instance(event_instance)?;
    given(event_timestamp.required("event_timestamp"))?.set(instance.time as raw::Count);
    Ok(())
}

/// `MPI_T_event_get_source`.
pub fn get_source(event_instance: Tool, source_index: Output<c_int>) -> Result {
    instance(event_instance)?;
    given(source_index.required("source_index"))?.set(0);
    Ok(())
}
