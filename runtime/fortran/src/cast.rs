//! Addresses as functions. Only this file turns an address into a function that the library can call: one of the Fortran
//! program, or one of the library below that not every library of the ABI has. The other rooms have a way without the
//! latter.

use crate::raw;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::LazyLock;

/// Returns the address of a function of the libraries of this program; `None` if none of them has it.
fn find(name: &CStr) -> Option<*mut c_void> {
    unsafe extern "C" {
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    // SAFETY: the name ends with a zero; a null handle stands for all libraries of the program (`RTLD_DEFAULT`).
    let found = unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

macro_rules! below {
    ($($(#[$doc:meta])* $name:ident $type:ident $symbol:literal ($($argument:ty),*) $(-> $returns:ty)?;)*) => {
        $(
            $(#[$doc])*
            pub type $type = unsafe extern "C" fn($($argument),*) $(-> $returns)?;

            $(#[$doc])*
            /// `None` if the library below does not have the function.
            #[inline]
            pub fn $name() -> Option<$type> {
                static FOUND: LazyLock<Option<$type>> = LazyLock::new(|| {
                    // SAFETY: every library that has a function of this name has it with these arguments: nobody else
                    // takes names that begin with typepack, and MPI-2.2 defines the other one.
                    find($symbol).map(|found| unsafe { transmute::<*mut c_void, $type>(found) })
                });
                *FOUND
            }
        )*
    };
}
below! {
    /// Keeps the errors of the calls of this thread from all error handlers, until the argument is 0.
    quiet_errors QuietErrors c"typepack_quiet_errors" (c_int);
    /// Has the calls of this thread fail with a code, and tell the other ranks of it, until the argument is 0.
    refuse_section RefuseSection c"typepack_refuse_section" (c_int);
    /// Attaches a function with its state to a request.
    attach AttachToRequest c"typepack_attach_to_request" (raw::Request, raw::Callback, *mut c_void) -> c_int;
    /// `MPI_Pack_c` without a communicator: a program with sessions only has no `MPI_COMM_SELF`.
    pack Pack c"typepack_pack" (
        *const c_void, raw::Count, raw::Datatype, *mut c_void, raw::Count, *mut raw::Count
    ) -> c_int;
    /// `MPI_Type_hvector` whose types decode with the combiner for an INTEGER stride.
    hvector Hvector c"typepack_type_hvector_integer" (
        c_int, c_int, c_int, raw::Datatype, *mut raw::Datatype
    ) -> c_int;
    /// `MPI_Type_hindexed` whose types decode with the combiner for INTEGER displacements.
    hindexed Hindexed c"typepack_type_hindexed_integer" (
        c_int, *const c_int, *const c_int, raw::Datatype, *mut raw::Datatype
    ) -> c_int;
    /// `MPI_Type_struct` whose types decode with the combiner for INTEGER displacements.
    structure Structure c"typepack_type_struct_integer" (
        c_int, *const c_int, *const c_int, *const raw::Datatype, *mut raw::Datatype
    ) -> c_int;
    /// `MPI_Type_struct`, which is not in the ABI, but in typepack's and MPICH's libraries: it knows `MPI_LB` and `MPI_UB`.
    type_struct TypeStruct c"MPI_Type_struct" (
        c_int, *const c_int, *const raw::Aint, *const raw::Datatype, *mut raw::Datatype
    ) -> c_int;
}

macro_rules! program {
    ($($(#[$doc:meta])* $name:ident $(<$width:ident>)? ($($argument:ty),*);)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// - The program has passed `address` where the interface asks for a function of this kind.
            #[inline]
            pub unsafe fn $name $(<$width>)? (address: raw::Callback) -> unsafe extern "C" fn($($argument),*) {
                // SAFETY: the function has these arguments, because the interface says so (`# Safety`).
                unsafe { transmute::<raw::Callback, unsafe extern "C" fn($($argument),*)>(address) }
            }
        )*
    };
}
program! {
    /// The function of an operation.
    operation<C>(*mut c_void, *mut c_void, *mut C, *mut c_int);
    /// An error handler.
    error_handler(*mut c_int, *mut c_int);
    /// A function that copies an attribute.
    copy<A>(*mut c_int, *mut c_int, *mut A, *mut A, *mut A, *mut c_int, *mut c_int);
    /// A function that deletes an attribute.
    delete<A>(*mut c_int, *mut c_int, *mut A, *mut A, *mut c_int);
    /// A function that describes a generalized request.
    query(*mut raw::Aint, *mut raw::Status, *mut c_int);
    /// A function that frees a generalized request.
    free(*mut raw::Aint, *mut c_int);
    /// A function that cancels a generalized request.
    cancel(*mut raw::Aint, *mut c_int, *mut c_int);
    /// A function that says how large a datatype is in a file.
    extent(*mut c_int, *mut raw::Aint, *mut raw::Aint, *mut c_int);
    /// A function that converts data for a file.
    conversion<C>(
        *mut c_void, *mut c_int, *mut C, *mut c_void, *mut raw::Offset, *mut raw::Aint, *mut c_int
    );
}
