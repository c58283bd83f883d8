//! The C types of the ABI, under the names that the generated code uses.

use std::ffi::{c_int, c_void};

macro_rules! handles {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`MPI_", stringify!($name), "`.")]
            #[repr(transparent)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name(pub usize);
        )*
    };
}
handles! { Comm Datatype Errhandler File Group Info Message Op Request Session Win }

/// `MPI_Aint`.
pub type Aint = isize;
/// `MPI_Count`.
pub type Count = i64;
/// `MPI_Offset`.
pub type Offset = i64;
/// `MPI_Status`, and a status in Fortran.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Status(pub [c_int; 8]);
/// The address of a function, or a sentinel.
pub type Callback = *const c_void;

/// `MPI_UNDEFINED`.
pub const UNDEFINED: c_int = -32766;
/// `MPI_CART`.
pub const CART: c_int = 211;
/// `MPI_GRAPH`.
pub const GRAPH: c_int = 212;
/// `MPI_PROC_NULL`.
pub const PROC_NULL: c_int = -3;
/// `MPI_ROOT`.
pub const ROOT: c_int = -4;
/// `MPI_REQUEST_NULL`.
pub const REQUEST_NULL: Request = Request(0x180);
/// `MPI_COMM_SELF`.
pub const COMM_SELF: Comm = Comm(0x102);
/// `MPI_DATATYPE_NULL`.
pub const DATATYPE_NULL: Datatype = Datatype(0x200);
/// `MPI_INTEGER`.
pub const INTEGER: Datatype = Datatype(0x219);
/// `MPI_REAL`.
pub const REAL: Datatype = Datatype(0x21a);
/// `MPI_DOUBLE_PRECISION`.
pub const DOUBLE_PRECISION: Datatype = Datatype(0x21c);
/// `MPI_2REAL`.
pub const TWO_REAL: Datatype = Datatype(0x230);
/// `MPI_2DOUBLE_PRECISION`.
pub const TWO_DOUBLE_PRECISION: Datatype = Datatype(0x231);
/// `MPI_2INTEGER`.
pub const TWO_INTEGER: Datatype = Datatype(0x232);
/// `MPI_BYTE`.
pub const BYTE: Datatype = Datatype(0x247);
/// `MPI_ERR_BUFFER`.
pub const ERR_BUFFER: c_int = 1;
/// `MPI_ERR_COUNT`.
pub const ERR_COUNT: c_int = 2;
/// `MPI_ERR_TYPE`.
pub const ERR_TYPE: c_int = 3;
/// `MPI_ERR_ARG`.
pub const ERR_ARG: c_int = 13;
/// `MPI_ERR_INTERN`.
pub const ERR_INTERN: c_int = 17;
/// `MPI_ERR_NO_MEM`.
pub const ERR_NO_MEM: c_int = 39;
/// `MPI_ERRORS_RETURN`.
pub const ERRORS_RETURN: Errhandler = Errhandler(0x143);
/// `MPI_COMBINER_STRUCT`.
pub const COMBINER_STRUCT: c_int = 110;
/// `MPI_COMBINER_STRUCT_INTEGER`, as typepack's library has it.
pub const COMBINER_STRUCT_INTEGER: c_int = 20010;
/// Handles below this number are predefined, and are the same integers in both languages.
pub const PREDEFINED: usize = 0x1000;
/// `MPI_MAX_INFO_VAL`, which is `MPI_MAX_PSET_NAME_LEN`, too.
pub const MAX_INFO_VAL: c_int = 1024;
