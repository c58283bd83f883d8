//! Checks the arguments of a buffer: its count, and whether memory can exist at the addresses of its elements.

use crate::abi;
use crate::count_width::Number;
use crate::failure::{Failure, Result};
use std::borrow::Borrow;
use std::ffi::c_int;
use typepack_engine::{Elements, Plan};

/// Size, in bytes, of the first page of the address space. No object lies in this page.
const PAGE: i64 = 4096;

/// No object of a process lies at or above the address `1 << ADDRESS_BITS`.
pub const ADDRESS_BITS: u32 = 57;

/// The smallest number of elements for which [`memory`] computes where a non-null buffer ends. Computing the
/// end would cost time in every call, and in practice only a buffer with very many elements ends where no
/// memory can exist.
const MANY: u64 = 1 << 31;

/// Checks a count argument and returns its value.
///
/// # Errors
/// Returns `MPI_ERR_COUNT` if `value` is negative.
#[inline]
pub fn count(value: impl Number, argument: &'static str) -> Result<u64> {
    let value = value.wide();
    u64::try_from(value).map_err(|_| negative(abi::ERR_COUNT, argument, value))
}

/// Returns the failure for a negative argument. This code is a separate cold function, so that the code of
/// its callers stays short.
#[cold]
pub fn negative(class: c_int, argument: &'static str, value: i64) -> Failure {
    Failure::new(class, argument, format!("{value} is negative"))
}

/// Checks that memory can exist at the addresses of elements. `argument` is the name of the buffer.
///
/// If the buffer lies in the first page (`MPI_BOTTOM`, or by mistake `MPI_IN_PLACE`), the displacements of the datatype
/// must be absolute addresses, so this function checks that the data begin beyond the first page. Otherwise this
/// function checks only the last element, and only if there are at least `MANY` elements.
///
/// # Errors
/// Returns `MPI_ERR_BUFFER` if a checked element lies at an address where no memory can exist.
#[inline]
pub fn memory<P: Borrow<Plan>>(elements: &Elements<P>, argument: &'static str) -> Result {
    let low = is_low(elements.origin);
    if elements.count == 0 || (!low && elements.count < MANY) {
        return Ok(());
    }
    let elements = elements.view();
    if low { nowhere(elements, argument) } else { far(elements, argument) }
}

/// Returns whether an address is null or another constant of the standard that stands for no memory (`MPI_IN_PLACE`),
/// or lies in the first page, where no memory can be.
#[inline(always)]
pub fn is_low<T>(address: *const T) -> bool {
    (address as usize) < PAGE as usize
}

#[cold]
fn far(elements: Elements<&Plan>, argument: &'static str) -> Result {
    let Elements { origin, plan, count } = elements;
    let shape = plan.footprint();
    let last = origin as i128 + i128::from(shape.extent) * i128::from(count - 1);
    let (low, high) = (last + i128::from(shape.true_lb), last + i128::from(shape.true_ub));
    if plan.element_bytes() == 0 || (low >= 0 && high <= 1 << ADDRESS_BITS) {
        return Ok(());
    }
    let detail = format!(
        "the last of {count} elements would lie at the addresses {low:#x}..{high:#x}, where no memory can be"
    );
    Err(Failure::new(abi::ERR_BUFFER, argument, detail))
}

#[cold]
fn nowhere(Elements { origin, plan, .. }: Elements<&Plan>, argument: &'static str) -> Result {
    if plan.element_bytes() == 0 {
        return Ok(());
    }
    let detail = match origin as usize {
        abi::IN_PLACE => "MPI_IN_PLACE is not allowed; a buffer is needed",
        // The address is below one page, so the sum does not overflow beyond that page.
        low if plan.footprint().true_lb >= PAGE - low as i64 => return Ok(()),
        0 => {
            "null pointer; only a datatype with absolute displacements may be used with MPI_BOTTOM"
        }
        _ => "the data would lie in the first page of the address space, where no memory can be",
    };
    Err(Failure::new(abi::ERR_BUFFER, argument, detail))
}
