//! What Fortran tells by an address: `MPI_BOTTOM`, `MPI_IN_PLACE`, `MPI_STATUS_IGNORE` and the like are variables in
//! COMMON blocks. If the program has the blocks, too, the dynamic linker makes all of them one.

use crate::raw;
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::without_provenance_mut;

/// A COMMON block of `N` bytes.
#[repr(C, align(16))]
pub struct Block<const N: usize>(UnsafeCell<[u8; N]>);

// SAFETY: only the address of a block is used, never its bytes.
unsafe impl<const N: usize> Sync for Block<N> {}

impl<const N: usize> Block<N> {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; N]))
    }
}

macro_rules! blocks {
    ($($(#[$doc:meta])* $name:ident: $bytes:literal;)*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            pub static $name: Block<$bytes> = Block::new();
        )*
    };
}
blocks! {
    /// `MPI_BOTTOM`, `MPI_IN_PLACE`, `MPI_STATUS_IGNORE`.
    mpipriv1_: 40;
    /// `MPI_STATUSES_IGNORE`, `MPI_ERRCODES_IGNORE`.
    mpipriv2_: 36;
    /// `MPI_ARGVS_NULL`, `MPI_ARGV_NULL`.
    mpiprivc_: 2;
    /// `MPI_UNWEIGHTED`.
    mpifcmb5_: 4;
    /// `MPI_WEIGHTS_EMPTY`.
    mpifcmb9_: 4;
    /// `MPI_BUFFER_AUTOMATIC`.
    mpifcmba_: 4;
}

/// Returns the place of an address in a block; a number not below the size of the block if it is not there.
#[inline(always)]
fn place<T, const N: usize>(address: *mut T, block: &'static Block<N>) -> usize {
    address.addr().wrapping_sub(std::ptr::from_ref(block).addr())
}

/// Returns the C value of a choice buffer.
#[inline(always)]
pub fn buffer(address: *mut c_void) -> *mut c_void {
    match place(address, &mpipriv1_) {
        0 => std::ptr::null_mut(),
        4 => without_provenance_mut(1),
        _ if place(address, &mpifcmba_) == 0 => without_provenance_mut(2),
        _ => address,
    }
}

/// Returns the Fortran value of a buffer that C gives back.
pub fn detached(address: *mut c_void) -> *mut c_void {
    match address.addr() {
        2 => std::ptr::from_ref(&mpifcmba_).cast_mut().cast(),
        _ => address,
    }
}

/// Returns the C value of a status.
#[inline(always)]
pub fn status(address: *mut raw::Status) -> *mut raw::Status {
    if place(address, &mpipriv1_) == 8 || place(address, &mpipriv2_) == 0 {
        return std::ptr::null_mut();
    }
    address
}

/// Returns the C value of an array of statuses.
#[inline(always)]
pub fn statuses(address: *mut raw::Status) -> *mut raw::Status {
    status(address)
}

/// Returns the C value of an array of error codes.
pub fn errcodes(address: *mut c_int) -> *mut c_int {
    if place(address, &mpipriv2_) == 32 { std::ptr::null_mut() } else { address }
}

/// Returns the C value of an array of weights.
pub fn weights(address: *mut c_int) -> *mut c_int {
    if place(address, &mpifcmb5_) == 0 {
        return without_provenance_mut(10);
    }
    if place(address, &mpifcmb9_) == 0 { without_provenance_mut(11) } else { address }
}

/// Says whether the address is `MPI_ARGV_NULL` or `MPI_ARGVS_NULL`.
pub fn no_arguments(address: *mut c_char) -> bool {
    place(address, &mpiprivc_) < 2
}
