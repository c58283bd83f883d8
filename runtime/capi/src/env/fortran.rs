//! Properties of a Fortran compiler (MPI-5.0 section 20.5): the sizes of its types, the optional types that
//! it has, and the bytes of `.TRUE.` and `.FALSE.`. A Fortran layer above this library sets them.
//!
//! A property can be set only once, because a second call could contradict what the library has already
//! returned. The datatypes have the sizes in `abi/constants.csv`, so a call that sets another size is an
//! error.

use crate::abi;
use crate::argument::{Array, OutArray, Output};
use crate::error::{Failure, Result};
use crate::info::{self, Entry};
use crate::raw;
use std::ffi::c_int;
use std::sync::OnceLock;

/// The keys for the sizes of the default types, each with the number of bytes of the corresponding datatype.
const SIZES: [(&str, u32); 4] = [
    ("mpi_logical_size", 4),
    ("mpi_integer_size", 4),
    ("mpi_real_size", 4),
    ("mpi_double_precision_size", 8),
];

/// The keys for types that a compiler may lack.
const OPTIONAL: [&str; 19] = [
    "mpi_logical1_supported",
    "mpi_logical2_supported",
    "mpi_logical4_supported",
    "mpi_logical8_supported",
    "mpi_logical16_supported",
    "mpi_integer1_supported",
    "mpi_integer2_supported",
    "mpi_integer4_supported",
    "mpi_integer8_supported",
    "mpi_integer16_supported",
    "mpi_real2_supported",
    "mpi_real4_supported",
    "mpi_real8_supported",
    "mpi_real16_supported",
    "mpi_complex4_supported",
    "mpi_complex8_supported",
    "mpi_complex16_supported",
    "mpi_complex32_supported",
    "mpi_double_complex_supported",
];

static COMPILER: OnceLock<Vec<Entry>> = OnceLock::new();

#[cold]
fn told_already(what: &str) -> Failure {
    Failure::new(
        abi::ERR_ABI,
        what,
        "already set in this process by an earlier call; only one call can succeed",
    )
}

/// Checks the entries of an info object, and returns those whose keys are known properties of a Fortran
/// compiler.
///
/// # Errors
/// Returns `MPI_ERR_INFO_VALUE` if a value is malformed, and `MPI_ERR_ABI` if a size differs from the size of
/// the datatype.
fn understood(entries: Vec<Entry>) -> Result<Vec<Entry>> {
    let mut known = Vec::new();
    for (key, value) in entries {
        let name = String::from_utf8_lossy(&key).into_owned();
        let text = String::from_utf8_lossy(&value).into_owned();
        let wrong = |wanted: &str| {
            let detail = format!("{name} is \"{text}\"; it must be {wanted}");
            Err(Failure::new(abi::ERR_INFO_VALUE, "info", detail))
        };
        if let Some((_, size)) = SIZES.iter().find(|(key, _)| *key == name) {
            match text.parse::<u32>() {
                Ok(bytes) if bytes == *size => {}
                Ok(bytes) if bytes.is_power_of_two() && bytes <= 16 => {
                    let detail =
                        format!("{name} is {bytes}, but this library's datatype has size {size}");
                    return Err(Failure::new(abi::ERR_ABI, "info", detail));
                }
                _ => return wrong("1, 2, 4, 8 or 16"),
            }
        } else if OPTIONAL.contains(&name.as_str()) {
            if text != "true" && text != "false" {
                return wrong("true or false");
            }
        } else {
            // Unknown keys are ignored, as in every info object.
            continue;
        }
        known.push((key, value));
    }
    Ok(known)
}

/// `MPI_Abi_set_fortran_info`.
pub fn set_info(info: raw::Info) -> Result {
    let entries = understood(info::entries_of(info)?)?;
    COMPILER.set(entries).map_err(|_| told_already("info"))
}

/// `MPI_Abi_get_fortran_info`: returns a new info object, or the null handle if no Fortran layer has set the
/// properties.
pub fn get_info(info: Output<raw::Info>) -> Result {
    let out = info.required("info")?;
    out.set(match COMPILER.get() {
        Some(entries) => info::make(entries.clone())?,
        None => raw::Info::NULL,
    });
    Ok(())
}

/// The bytes of `.TRUE.` and `.FALSE.` in a logical type of `size` bytes. The bytes beyond `size` are 0.
#[derive(Clone, Copy, Debug)]
struct Booleans {
    size: usize,
    yes: [u8; 16],
    no: [u8; 16],
}

static BOOLEANS: OnceLock<Booleans> = OnceLock::new();

fn logical_size(size: c_int) -> Result<usize> {
    match size {
        1 | 2 | 4 | 8 | 16 => Ok(size as usize),
        _ => {
            let detail = format!("{size} is not a supported size; it must be 1, 2, 4, 8 or 16");
            Err(Failure::new(abi::ERR_ARG, "logical_size", detail))
        }
    }
}

/// `MPI_Abi_set_fortran_booleans`.
pub fn set_booleans(size: c_int, yes: Array<u8>, no: Array<u8>) -> Result {
    let size = logical_size(size)?;
    let mut told = Booleans { size, yes: [0; 16], no: [0; 16] };
    for (value, argument, bytes) in
        [(yes, "logical_true", &mut told.yes), (no, "logical_false", &mut told.no)]
    {
        // SAFETY: the caller of `MPI_Abi_set_fortran_booleans` passes two values of `logical_size` bytes
        // each, and `size` equals `logical_size`. The next line consumes the iterator.
        let value = unsafe { value.entries(size, argument)? };
        bytes.iter_mut().zip(value).for_each(|(byte, told)| *byte = told);
    }
    if told.yes == told.no {
        let detail = "the value must differ from logical_false";
        return Err(Failure::new(abi::ERR_ARG, "logical_true", detail));
    }
    BOOLEANS.set(told).map_err(|_| told_already("logical values"))
}

/// `MPI_Abi_get_fortran_booleans`: returns the bytes of `.TRUE.` and `.FALSE.` if a Fortran layer has set
/// them.
pub fn get_booleans(
    size: c_int,
    yes: OutArray<u8>,
    no: OutArray<u8>,
    is_set: Output<c_int>,
) -> Result {
    let size = logical_size(size)?;
    let out = is_set.required("is_set")?;
    let Some(told) = BOOLEANS.get() else {
        out.set(0);
        return Ok(());
    };
    if told.size != size {
        let detail = format!(
            "{size} differs from {}, the size in bytes of the values that were set",
            told.size
        );
        return Err(Failure::new(abi::ERR_ARG, "logical_size", detail));
    }
    for (value, argument, bytes) in
        [(yes, "logical_true", &told.yes), (no, "logical_false", &told.no)]
    {
        // SAFETY: the caller of `MPI_Abi_get_fortran_booleans` passes memory for two values of `logical_size`
        // bytes each, and `size` equals `logical_size`.
        unsafe { value.places(size, argument)? }.fill(bytes[..size].iter().copied());
    }
    out.set(1);
    Ok(())
}
