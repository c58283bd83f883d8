//! What the probe of `mpifort` asks: how this library understands an array that a compiler passes.

use crate::descriptor::Descriptor;

/// Tells base, bytes of an element, rank, and the extent and byte stride of each dimension, as this library reads them.
///
/// # Safety
///
/// - `x` is how a Fortran compiler passes an array. `words` is the address of 33 integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn typepack_descriptor_f08ts_(x: *const Descriptor, words: *mut i64) {
    // SAFETY: the descriptor comes from a compiler, and the array has room for 15 dimensions (`# Safety`).
    unsafe {
        let dimensions = Descriptor::dimensions(x);
        *words = (*x).base.addr() as i64;
        *words.add(1) = (*x).length() as i64;
        *words.add(2) = dimensions.len() as i64;
        for (at, dimension) in dimensions.iter().enumerate() {
            *words.add(3 + 2 * at) = dimension.extent as i64;
            *words.add(4 + 2 * at) = dimension.stride as i64;
        }
    }
}
