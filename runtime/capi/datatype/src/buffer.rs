//! Whether the buffer of a call can hold its elements, as far as an address can tell.

use crate::abi;
use crate::failure::{Failure, Result};
use std::ffi::c_void;
use typepack_engine::Plan;

/// The first page of memory, which nobody has.
const PAGE: i64 = 4096;

/// No machine has memory at addresses that need more bits.
pub const ADDRESS_BITS: u32 = 57;

/// From here on counts are looked at: fewer elements end where memory may be.
const MANY: u64 = 1 << 31;

/// A null buffer is `MPI_BOTTOM` when the type has absolute addresses, and an error when the
/// elements would lie where no memory is; so are elements that go on beyond all memory.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline]
pub fn memory(buf: *const c_void, plan: &Plan, elements: u64, argument: &'static str) -> Result {
    if elements == 0 || (!buf.is_null() && elements < MANY) {
        return Ok(());
    }
    if buf.is_null() { nowhere(plan, argument) } else { far(buf, plan, elements, argument) }
}

#[cold]
fn far(buf: *const c_void, plan: &Plan, elements: u64, argument: &'static str) -> Result {
    let shape = plan.footprint();
    let last = buf as i128 + i128::from(shape.extent) * i128::from(elements - 1);
    let (low, high) = (last + i128::from(shape.true_lb), last + i128::from(shape.true_ub));
    if plan.element_bytes() == 0 || (low >= 0 && high <= 1 << ADDRESS_BITS) {
        return Ok(());
    }
    let detail = format!("{elements} elements end at {high:#x}, where no memory is");
    Err(Failure::new(abi::ERR_BUFFER, argument, detail))
}

#[cold]
fn nowhere(plan: &Plan, argument: &'static str) -> Result {
    if plan.element_bytes() == 0 || plan.footprint().true_lb >= PAGE {
        return Ok(());
    }
    Err(Failure::new(abi::ERR_BUFFER, argument, "a null pointer"))
}
