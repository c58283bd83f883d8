//! Names that MPI-3.0 removed, with INTEGER addresses (MPI-2.2 section 2.6.1).

use crate::handle::{self, Handle};
use crate::outcome::give;
use crate::refusal::caught;
use crate::{abi, cast, raw, refusal, slots};
use std::ffi::{c_int, c_void};

macro_rules! removed {
    ($($(#[$doc:meta])* $name:ident $profiled:ident($($argument:ident: $kind:ty),*) $body:block)*) => {
        $(
            removed!(@ $(#[$doc])* $name($($argument: $kind),*) $body);
            removed!(@ $(#[$doc])* $profiled($($argument: $kind),*) $body);
        )*
    };
    (@ $(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty),*) $body:block) => {
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// - Each argument is the address of what the interface says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind,)* ierror: *mut c_int) {
            // SAFETY: the program passes addresses of what the interface says (`# Safety`).
            unsafe {
                let code = caught(|| $body);
                give(ierror, code);
            }
        }
    };
}

/// Calls a function that makes a datatype, and stores its handle.
///
/// # Safety
///
/// - `newtype` is the address of an INTEGER.
unsafe fn new_type(newtype: *mut c_int, make: impl FnOnce(*mut raw::Datatype) -> c_int) -> c_int {
    let mut datatype = raw::Datatype::NOTHING;
    let code = make(&raw mut datatype);
    // SAFETY: the program passes the address of an INTEGER (`# Safety`).
    unsafe { handle::write(newtype, datatype) };
    code
}

/// Reads `number` INTEGER addresses.
///
/// # Safety
///
/// - `places` is the address of at least `number` INTEGERs.
unsafe fn wide(places: *const c_int, number: c_int) -> Vec<raw::Aint> {
    let number = usize::try_from(number).unwrap_or(0);
    // SAFETY: the array has `number` INTEGERs (`# Safety`).
    (0..number).map(|at| unsafe { *places.add(at) as raw::Aint }).collect()
}

/// Stores an address, if it fits into an INTEGER.
///
/// # Safety
///
/// - `place` is the address of an INTEGER.
unsafe fn narrow(place: *mut c_int, code: c_int, address: raw::Aint) -> c_int {
    match c_int::try_from(address) {
        _ if code != 0 => code,
        // SAFETY: the program passes the address of an INTEGER (`# Safety`).
        Ok(address) => unsafe {
            *place = address;
            code
        },
        Err(_) => refusal::nothing(raw::ERR_ARG),
    }
}

removed! {
    /// `MPI_ADDRESS`.
    mpi_address_ pmpi_address_(location: *mut c_void, address: *mut c_int) {
        let mut found = 0;
        let code = abi::MPI_Get_address(crate::sentinel::buffer(location), &raw mut found);
        narrow(address, code, found)
    }
    /// `MPI_TYPE_HVECTOR`.
    mpi_type_hvector_ pmpi_type_hvector_(
        count: *mut c_int, length: *mut c_int, stride: *mut c_int, oldtype: *mut c_int, newtype: *mut c_int
    ) {
        let oldtype = handle::read(oldtype);
        new_type(newtype, |new| match cast::hvector() {
            None => abi::MPI_Type_create_hvector(*count, *length, *stride as raw::Aint, oldtype, new),
            Some(make) => make(*count, *length, *stride, oldtype, new),
        })
    }
    /// `MPI_TYPE_HINDEXED`.
    mpi_type_hindexed_ pmpi_type_hindexed_(
        count: *mut c_int, lengths: *mut c_int, places: *mut c_int, oldtype: *mut c_int, newtype: *mut c_int
    ) {
        let oldtype = handle::read(oldtype);
        new_type(newtype, |new| match cast::hindexed() {
            None => {
                let places = wide(places, *count);
                abi::MPI_Type_create_hindexed(*count, lengths, places.as_ptr(), oldtype, new)
            }
            Some(make) => make(*count, lengths, places, oldtype, new),
        })
    }
    /// `MPI_TYPE_STRUCT`.
    mpi_type_struct_ pmpi_type_struct_(
        count: *mut c_int, lengths: *mut c_int, places: *mut c_int, types: *mut c_int, newtype: *mut c_int
    ) {
        let types = handle::many::<raw::Datatype>(types, i64::from(*count));
        new_type(newtype, |new| match cast::structure() {
            None => {
                let places = wide(places, *count);
                // Where `MPI_Type_struct` is missing, this function takes its place, which knows all types but `MPI_LB`
                // and `MPI_UB`.
                let make = cast::type_struct().unwrap_or(abi::MPI_Type_create_struct);
                make(*count, lengths, places.as_ptr(), types.as_ptr(), new)
            }
            Some(make) => make(*count, lengths, places, types.as_ptr(), new),
        })
    }
    /// `MPI_TYPE_EXTENT`.
    mpi_type_extent_ pmpi_type_extent_(datatype: *mut c_int, extent: *mut c_int) {
        let (mut lower, mut found) = (0, 0);
        let code = abi::MPI_Type_get_extent(handle::read(datatype), &raw mut lower, &raw mut found);
        narrow(extent, code, found)
    }
    /// `MPI_TYPE_LB`.
    mpi_type_lb_ pmpi_type_lb_(datatype: *mut c_int, displacement: *mut c_int) {
        let (mut lower, mut found) = (0, 0);
        let code = abi::MPI_Type_get_extent(handle::read(datatype), &raw mut lower, &raw mut found);
        narrow(displacement, code, lower)
    }
    /// `MPI_TYPE_UB`.
    mpi_type_ub_ pmpi_type_ub_(datatype: *mut c_int, displacement: *mut c_int) {
        let (mut lower, mut found) = (0, 0);
        let code = abi::MPI_Type_get_extent(handle::read(datatype), &raw mut lower, &raw mut found);
        narrow(displacement, code, lower.wrapping_add(found))
    }
    /// `MPI_ERRHANDLER_CREATE`.
    mpi_errhandler_create_ pmpi_errhandler_create_(function: raw::Callback, errhandler: *mut c_int) {
        let mut made = raw::Errhandler::NOTHING;
        let code = match slots::comm_errhandler_function(function) {
            Some(function) => abi::MPI_Comm_create_errhandler(function, &raw mut made),
            None => refusal::nothing(raw::ERR_NO_MEM),
        };
        handle::write(errhandler, made);
        code
    }
    /// `MPI_ERRHANDLER_GET`.
    mpi_errhandler_get_ pmpi_errhandler_get_(comm: *mut c_int, errhandler: *mut c_int) {
        let mut found = raw::Errhandler::NOTHING;
        let code = abi::MPI_Comm_get_errhandler(handle::read(comm), &raw mut found);
        handle::write(errhandler, found);
        code
    }
    /// `MPI_ERRHANDLER_SET`.
    mpi_errhandler_set_ pmpi_errhandler_set_(comm: *mut c_int, errhandler: *mut c_int) {
        abi::MPI_Comm_set_errhandler(handle::read(comm), handle::read(errhandler))
    }
}
