//! An MPI library opened at run time: the MPI 5 standard ABI, or Open MPI 5's own.
//!
//! `build.rs` makes datatypes with it, `competitor.rs` packs. Both ABIs have pointer-sized handles,
//! `int` counts and `MPI_Aint` of 64 bits, so that one set of signatures serves; they differ in the
//! values of handles and constants. Those of the standard are from the MPI 5.0 specification's
//! ABI appendix (`mpi_abi.h` of MPICH 5.0.2); datatypes have [`Named::abi_value`]. Open MPI's
//! handles are the addresses of exported objects (`ompi_mpi_double`), its constants are from the
//! `mpi.h` of 5.0.11.

use libloading::{Library, Symbol};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use typepack_engine::Named;

/// An MPI handle. Pointer-sized in both ABIs; never dereferenced here.
pub(super) type Handle = *mut c_void;

/// `MPI_SUCCESS`
const SUCCESS: c_int = 0;
/// `MPI_COMM_WORLD` of the standard ABI.
const COMM_WORLD: usize = 0x101;
/// `MPI_ERRORS_RETURN` of the standard ABI.
const ERRORS_RETURN: usize = 0x143;
/// Bytes of a library's version text: more than any `MPI_MAX_LIBRARY_VERSION_STRING`.
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

/// Whose handles and constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The MPI 5 standard ABI.
    Standard,
    /// Open MPI.
    OpenMpi,
}

/// An initialised MPI. It stays loaded until the process ends.
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
    /// One line: no library, neither ABI, or an error code.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        // SAFETY: the library's initialisers run; this process exists to run that library.
        let library = unsafe { Library::new(path) }.map_err(|e| format!("{shown}: {e}"))?;
        // MPI libraries start threads and register exit handlers: they are not to be unloaded.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: looked up and dropped; not used.
        let has = |name: &[u8]| unsafe { library.get::<*const c_void>(name) }.is_ok();
        let dialect = if has(b"MPI_Abi_get_version\0") {
            Dialect::Standard
        } else if has(b"ompi_mpi_comm_world\0") {
            Dialect::OpenMpi
        } else {
            return Err(format!("{shown}: has neither the MPI 5 standard ABI nor Open MPI's"));
        };
        let get = |name: &str| format!("{shown}: no function {name}");
        // SAFETY: the signatures are those of the standard, in both ABIs.
        let pack =
            unsafe { library.get::<PackCall>(b"MPI_Pack\0") }.map_err(|_| get("MPI_Pack"))?;
        // SAFETY: as above.
        let unpack =
            unsafe { library.get::<UnpackCall>(b"MPI_Unpack\0") }.map_err(|_| get("MPI_Unpack"))?;
        let mut mpi = Self { library, dialect, world: null_mut(), pack: *pack, unpack: *unpack };

        type Init = unsafe extern "C" fn(*mut c_int, *mut c_void) -> c_int;
        let init = mpi.call::<Init>("MPI_Init")?;
        // SAFETY: MPI_Init takes null pointers for both arguments.
        ok("MPI_Init", unsafe { init(null_mut(), null_mut()) })?;
        mpi.world = mpi.object("ompi_mpi_comm_world", COMM_WORLD)?;
        // Faults become return codes and one line, instead of the end of the process.
        type Set = unsafe extern "C" fn(Handle, Handle) -> c_int;
        let set = mpi.call::<Set>("MPI_Comm_set_errhandler")?;
        let handler = mpi.object("ompi_mpi_errors_return", ERRORS_RETURN)?;
        // SAFETY: both are predefined handles of this library.
        ok("MPI_Comm_set_errhandler", unsafe { set(mpi.world, handler) })?;
        Ok(mpi)
    }

    /// The function `name`, with the signature that the caller knows it to have.
    pub(super) fn call<F: Copy>(&self, name: &str) -> Result<F, String> {
        // SAFETY: the callers give the standard's signature for the name; the library is never
        // unloaded, so that the copy may outlive the symbol.
        let symbol: Result<Symbol<'_, F>, _> = unsafe { self.library.get(name.as_bytes()) };
        symbol.map(|symbol| *symbol).map_err(|_| format!("no function {name}"))
    }

    /// A predefined handle: the address of Open MPI's object, or the standard's value.
    fn object(&self, symbol: &str, value: usize) -> Result<Handle, String> {
        match self.dialect {
            Dialect::Standard => Ok(std::ptr::without_provenance_mut(value)),
            // The symbol of an object is its address.
            Dialect::OpenMpi => self.call::<Handle>(symbol).map_err(|_| format!("no {symbol}")),
        }
    }

    /// The handle of a named type.
    ///
    /// # Errors
    ///
    /// Open MPI has no such type.
    pub(super) fn named(&self, named: Named) -> Result<Handle, String> {
        let lower = named.name().trim_start_matches("MPI_").to_ascii_lowercase();
        self.object(&format!("ompi_mpi_{lower}"), named.abi_value() as usize)
    }

    /// First line of the library's version.
    pub(super) fn version(&self) -> Result<String, String> {
        type Get = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
        let get = self.call::<Get>("MPI_Get_library_version")?;
        let mut text = vec![0u8; VERSION_BYTES];
        let mut length = 0;
        // SAFETY: the text is longer than any implementation's limit.
        ok("MPI_Get_library_version", unsafe { get(text.as_mut_ptr().cast(), &raw mut length) })?;
        text.truncate(length.max(0) as usize);
        let text = String::from_utf8_lossy(&text);
        let line = text.trim_matches('\0').lines().next().unwrap_or_default();
        Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// `MPI_SUCCESS`, or one line.
pub(super) fn ok(name: &str, code: c_int) -> Result<(), String> {
    if code == SUCCESS { Ok(()) } else { Err(format!("{name} returned {code}")) }
}
