//! Opens an MPI library at run time: one with the MPI 5 standard ABI, or Open MPI 5 with its own ABI.
//!
//! `build.rs` makes datatypes with the library, and `competitor.rs` packs. In both ABIs a handle has the
//! size of a pointer, counts are `int`, and `MPI_Aint` has 64 bits, so that the same signatures serve both
//! ABIs. The values of handles and constants differ. Those of the standard ABI come from the ABI appendix
//! of the MPI 5.0 specification (`mpi_abi.h` of MPICH 5.0.2); [`Named::abi_value`] returns the values of
//! datatypes. In Open MPI, handles are the addresses of exported objects (`ompi_mpi_double`), and the
//! constants come from `mpi.h` of version 5.0.11.

use libloading::{Library, Symbol};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use typepack_engine::Named;

/// An MPI handle. In both ABIs, it has the size of a pointer. This program never dereferences it.
pub(super) type Handle = *mut c_void;

/// The value of `MPI_SUCCESS` in both ABIs.
const SUCCESS: c_int = 0;
/// The value of `MPI_COMM_WORLD` in the standard ABI.
const COMM_WORLD: usize = 0x101;
/// The value of `MPI_ERRORS_RETURN` in the standard ABI.
const ERRORS_RETURN: usize = 0x143;
/// The size of the buffer for the text of a library's version, in bytes. It is larger than any
/// `MPI_MAX_LIBRARY_VERSION_STRING`.
const VERSION_BYTES: usize = 16384;

/// The signature of `MPI_Pack` in both ABIs.
pub(super) type PackCall = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    c_int,
    *mut c_int,
    Handle,
) -> c_int;

/// The signature of `MPI_Unpack` in both ABIs.
pub(super) type UnpackCall = unsafe extern "C" fn(
    *const c_void,
    c_int,
    *mut c_int,
    *mut c_void,
    c_int,
    Handle,
    Handle,
) -> c_int;

/// The ABI of a library. It determines the values of the library's handles and constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The MPI 5 standard ABI.
    Standard,
    /// The ABI of Open MPI.
    OpenMpi,
}

/// An initialised MPI library, which stays loaded until the process ends.
pub(super) struct Mpi {
    library: &'static Library,
    pub(super) dialect: Dialect,
    pub(super) world: Handle,
    pub(super) pack: PackCall,
    pub(super) unpack: UnpackCall,
}

impl Mpi {
    /// Opens the MPI library at `path` and initialises it.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if there is no library at `path`, if the library has neither ABI, or if
    /// a call returns an error code.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        // SAFETY: loading a library runs its initialisers. The user has chosen this library, so the program
        // trusts its initialisers. The process has loaded no other MPI whose symbols could collide with
        // those of this one.
        let library = unsafe { Library::new(path) }.map_err(|e| format!("{shown}: {e}"))?;
        // The library must stay loaded, because MPI libraries start threads and register exit handlers.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: `get` only looks up the symbol. Nothing is read or called through the result.
        let has = |name: &[u8]| unsafe { library.get::<*const c_void>(name) }.is_ok();
        let dialect = if has(b"MPI_Abi_get_version\0") {
            Dialect::Standard
        } else if has(b"ompi_mpi_comm_world\0") {
            Dialect::OpenMpi
        } else {
            return Err(format!(
                "{shown}: the library has neither the MPI 5 standard ABI nor Open MPI's"
            ));
        };
        let get = |name: &str| format!("{shown}: the library exports no function {name}");
        // SAFETY: `PackCall` is the signature of `MPI_Pack` in both ABIs.
        let pack =
            unsafe { library.get::<PackCall>(b"MPI_Pack\0") }.map_err(|_| get("MPI_Pack"))?;
        // SAFETY: `UnpackCall` is the signature of `MPI_Unpack` in both ABIs.
        let unpack =
            unsafe { library.get::<UnpackCall>(b"MPI_Unpack\0") }.map_err(|_| get("MPI_Unpack"))?;
        let mut mpi = Self { library, dialect, world: null_mut(), pack: *pack, unpack: *unpack };

        type Init = unsafe extern "C" fn(*mut c_int, *mut c_void) -> c_int;
        let init = mpi.call::<Init>("MPI_Init")?;
        // SAFETY: `Init` is the signature of `MPI_Init` in both ABIs. `MPI_Init` accepts null pointers for
        // both arguments.
        ok("MPI_Init", unsafe { init(null_mut(), null_mut()) })?;
        mpi.world = mpi.object("ompi_mpi_comm_world", COMM_WORLD)?;
        // The default error handler would end the process if an MPI function fails. With
        // `MPI_ERRORS_RETURN`, the function returns an error code, which `ok` turns into a one-line
        // message.
        type Set = unsafe extern "C" fn(Handle, Handle) -> c_int;
        let set = mpi.call::<Set>("MPI_Comm_set_errhandler")?;
        let handler = mpi.object("ompi_mpi_errors_return", ERRORS_RETURN)?;
        // SAFETY: `Set` is the signature of `MPI_Comm_set_errhandler` in both ABIs. `mpi.world` and
        // `handler` are predefined handles of this library.
        ok("MPI_Comm_set_errhandler", unsafe { set(mpi.world, handler) })?;
        Ok(mpi)
    }

    /// Returns the exported function `name`, or the address of the exported object `name`. `F` must be the
    /// signature of the function, or a pointer type for an object.
    pub(super) fn call<F: Copy>(&self, name: &str) -> Result<F, String> {
        // SAFETY: if `name` is a function, the callers pass for `F` the signature that the standard gives
        // the function. If `name` is an object, `object` passes a pointer type, and nothing is read through
        // the pointer. The copied address stays valid, because the library is never unloaded.
        let symbol: Result<Symbol<'_, F>, _> = unsafe { self.library.get(name.as_bytes()) };
        symbol.map(|symbol| *symbol).map_err(|_| format!("the library exports no function {name}"))
    }

    /// Returns a predefined handle. In Open MPI, this is the address of the exported object `symbol`; in
    /// the standard ABI, it is `value`.
    fn object(&self, symbol: &str, value: usize) -> Result<Handle, String> {
        match self.dialect {
            Dialect::Standard => Ok(std::ptr::without_provenance_mut(value)),
            // The result of the lookup, the address of the symbol, is the handle.
            Dialect::OpenMpi => self
                .call::<Handle>(symbol)
                .map_err(|_| format!("the library exports no object {symbol}")),
        }
    }

    /// Returns the handle of a predefined type.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the library is Open MPI and does not have the type.
    pub(super) fn named(&self, named: Named) -> Result<Handle, String> {
        let lower = named.name().trim_start_matches("MPI_").to_ascii_lowercase();
        self.object(&format!("ompi_mpi_{lower}"), named.abi_value() as usize)
    }

    /// Returns the first line of the text that `MPI_Get_library_version` returns.
    pub(super) fn version(&self) -> Result<String, String> {
        type Get = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
        let get = self.call::<Get>("MPI_Get_library_version")?;
        let mut text = vec![0u8; VERSION_BYTES];
        let mut length = 0;
        // SAFETY: `Get` is the signature of `MPI_Get_library_version` in both ABIs. `text` has room for
        // the longest version text of any implementation, and `length` is writable.
        ok("MPI_Get_library_version", unsafe { get(text.as_mut_ptr().cast(), &raw mut length) })?;
        text.truncate(length.max(0) as usize);
        let text = String::from_utf8_lossy(&text);
        let line = text.trim_matches('\0').lines().next().unwrap_or_default();
        Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// Checks the return code of the function `name`. If the code is not `MPI_SUCCESS`, returns a one-line
/// message.
pub(super) fn ok(name: &str, code: c_int) -> Result<(), String> {
    if code == SUCCESS { Ok(()) } else { Err(format!("{name} returned {code}")) }
}
