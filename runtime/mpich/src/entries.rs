//! The functions of `libmpi_abi.so.1`, through its table.

use crate::raw;
use crate::{code, handle, mixture, panics, shown, status};
use std::ffi::{c_char, c_double, c_int, c_void};
use std::io::Write;
use std::sync::Once;

include!(concat!(env!("OUT_DIR"), "/declaration.rs"));

unsafe extern "C" {
    /// The table (`runtime/capi/src/entries.rs`).
    static typepack_entries: Entries;
}

/// Returns the table.
#[inline(always)]
pub fn entries() -> &'static Entries {
    // SAFETY: the library has the table and never changes it. It has this form, because its version is that of this
    // build (`check`).
    unsafe { &typepack_entries }
}

/// `MPI_BSEND_OVERHEAD` in MPICH.
const OVERHEAD: u64 = 96;

/// What the program's own functions see.
static FRONT: Front = Front {
    handle: handle::shown,
    theirs: code_to_theirs,
    ours: code_to_ours,
    to_status: status::make_theirs,
    from_status: status::make_ours,
    overhead: OVERHEAD,
    text: shown::convert,
};

extern "C" fn code_to_theirs(code: c_int) -> c_int {
    code::outcome(code)
}

extern "C" fn code_to_ours(code: c_int) -> c_int {
    if code == 0 { 0 } else { code::to_ours(code) }
}

/// Checks the table when the library is loaded, before the program can call a function.
#[used]
#[unsafe(link_section = ".init_array")]
static CHECK: extern "C" fn() = check;

extern "C" fn check() {
    // The version stands first in every form of the table.
    // SAFETY: the table begins with its version.
    let version = unsafe { (&raw const typepack_entries).cast::<u64>().read() };
    if version != VERSION {
        // If standard error is closed, there is nobody to tell.
        let _unseen = writeln!(
            std::io::stderr(),
            "typepack: libmpi.so.12 and the libmpi_abi.so.1 that it found are of different builds; install both together"
        );
        std::process::abort();
    }
}

/// Tells the C library about this one, when the program initialises MPI through it. A process that only loads this library
/// keeps the values of the standard ABI.
pub fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        mixture::check();
        panics::watch();
        // SAFETY: the value is static, and the library stays loaded (`-z nodelete`). Its functions do what the table asks
        // for.
        unsafe { (entries().begin)(&FRONT) };
    });
}
