//! Opens an MPI library at run time: one with the MPI 5 standard ABI, or Open MPI 5 with its own ABI.
//!
//! `build.rs` makes datatypes with the library, and `competitor.rs` packs. In both ABIs a handle has the
//! size of a pointer, counts are `int`, and `MPI_Aint` has 64 bits, so that one set of signatures serves
//! both. The values of handles and constants differ. The values of the standard ABI are from the ABI
//! appendix of the MPI 5.0 specification (`mpi_abi.h` of MPICH 5.0.2); [`Named::abi_value`] returns those
//! of datatypes. Open MPI's handles are the addresses of exported objects (`ompi_mpi_double`), and its
//! constants are those of the `mpi.h` of 5.0.11.

use libloading::{Library, Symbol};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use typepack_engine::Named;

/// An MPI handle. It has the size of a pointer in both ABIs and is never dereferenced here.
pub(super) type Handle = *mut c_void;

/// `MPI_SUCCESS`
const SUCCESS: c_int = 0;
/// `MPI_COMM_WORLD` of the standard ABI.
const COMM_WORLD: usize = 0x101;
/// `MPI_ERRORS_RETURN` of the standard ABI.
const ERRORS_RETURN: usize = 0x143;
/// Bytes of the text of a library's version: more than any `MPI_MAX_LIBRARY_VERSION_STRING`.
const VERSION_BYTES: usize = 16384;

/// `MPI_Pack`
pub(super) type PackCall = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    c_int,
    *mut c_int,
    Handle,
) -> c_int;

/// `MPI_Unpack`
pub(super) type UnpackCall = unsafe extern "C" fn(
    *const c_void,
    c_int,
    *mut c_int,
    *mut c_void,
    c_int,
    Handle,
    Handle,
) -> c_int;

/// The ABI of a library, which determines the values of its handles and constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The MPI 5 standard ABI.
    Standard,
    /// Open MPI.
    OpenMpi,
}

/// An initialised MPI, which stays loaded until the process ends.
pub(super) struct Mpi {
    library: &'static Library,
    pub(super) dialect: Dialect,
    pub(super) world: Handle,
    pub(super) pack: PackCall,
    pub(super) unpack: UnpackCall,
}

impl Mpi {
    /// Opens and initialises the MPI at `path`.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if there is no library, if it has neither ABI, or if a call returns an
    /// error code.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        // SAFETY: loading runs the library's initialisers. The user has chosen the file, and this process
        // has loaded no other MPI whose symbols could collide with the library's.
        let library = unsafe { Library::new(path) }.map_err(|e| format!("{shown}: {e}"))?;
        // MPI libraries start threads and register exit handlers, so the library must stay loaded.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the symbol is only looked up; nothing is read or called through it.
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
        let get = |name: &str| format!("{shown}: no function {name}");
        // SAFETY: `PackCall` is the signature of `MPI_Pack` in both ABIs.
        let pack =
            unsafe { library.get::<PackCall>(b"MPI_Pack\0") }.map_err(|_| get("MPI_Pack"))?;
        // SAFETY: `UnpackCall` is the signature of `MPI_Unpack` in both ABIs.
        let unpack =
            unsafe { library.get::<UnpackCall>(b"MPI_Unpack\0") }.map_err(|_| get("MPI_Unpack"))?;
        let mut mpi = Self { library, dialect, world: null_mut(), pack: *pack, unpack: *unpack };

        type Init = unsafe extern "C" fn(*mut c_int, *mut c_void) -> c_int;
        let init = mpi.call::<Init>("MPI_Init")?;
        // SAFETY: `Init` is the signature of `MPI_Init`, which accepts null pointers for both
        // arguments.
        ok("MPI_Init", unsafe { init(null_mut(), null_mut()) })?;
        mpi.world = mpi.object("ompi_mpi_comm_world", COMM_WORLD)?;
        // With this error handler, a failing MPI function returns an error code, which `ok` turns into
        // one line. With the default handler, the process would end.
        type Set = unsafe extern "C" fn(Handle, Handle) -> c_int;
        let set = mpi.call::<Set>("MPI_Comm_set_errhandler")?;
        let handler = mpi.object("ompi_mpi_errors_return", ERRORS_RETURN)?;
        // SAFETY: `Set` is the signature of the function; `mpi.world` and `handler` are predefined
        // handles of this library.
        ok("MPI_Comm_set_errhandler", unsafe { set(mpi.world, handler) })?;
        Ok(mpi)
    }

    /// Returns the function `name` with the signature `F`, which must be the function's own.
    pub(super) fn call<F: Copy>(&self, name: &str) -> Result<F, String> {
        // SAFETY: the callers use the standard's signature of `name` for `F`. The library is never
        // unloaded, so that the copied address stays valid.
        let symbol: Result<Symbol<'_, F>, _> = unsafe { self.library.get(name.as_bytes()) };
        symbol.map(|symbol| *symbol).map_err(|_| format!("no function {name}"))
    }

    /// Returns a predefined handle: the address of an exported object of Open MPI, or a value of the
    /// standard ABI.
    fn object(&self, symbol: &str, value: usize) -> Result<Handle, String> {
        match self.dialect {
            Dialect::Standard => Ok(std::ptr::without_provenance_mut(value)),
            // The address of the symbol is the handle.
            Dialect::OpenMpi => self.call::<Handle>(symbol).map_err(|_| format!("no {symbol}")),
        }
    }

    /// Returns the handle of a named type.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if Open MPI has no such type.
    pub(super) fn named(&self, named: Named) -> Result<Handle, String> {
        let lower = named.name().trim_start_matches("MPI_").to_ascii_lowercase();
        self.object(&format!("ompi_mpi_{lower}"), named.abi_value() as usize)
    }

    /// Returns the first line of the library's version.
    pub(super) fn version(&self) -> Result<String, String> {
        type Get = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
        let get = self.call::<Get>("MPI_Get_library_version")?;
        let mut text = vec![0u8; VERSION_BYTES];
        let mut length = 0;
        // SAFETY: `Get` is the signature of the function. `text` has room for the longest version text
        // of any implementation, and `length` is writable.
        ok("MPI_Get_library_version", unsafe { get(text.as_mut_ptr().cast(), &raw mut length) })?;
        text.truncate(length.max(0) as usize);
        let text = String::from_utf8_lossy(&text);
        let line = text.trim_matches('\0').lines().next().unwrap_or_default();
        Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// Turns a return code other than `MPI_SUCCESS` into one line.
pub(super) fn ok(name: &str, code: c_int) -> Result<(), String> {
    if code == SUCCESS { Ok(()) } else { Err(format!("{name} returned {code}")) }
}
