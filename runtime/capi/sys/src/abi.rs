//! The types, constants and functions of the MPI 5 standard ABI. Generated from `runtime/capi/abi`; do not edit.

use core::ffi::{c_char, c_double, c_int, c_uint, c_void};

pub type MPI_Aint = isize;
pub type MPI_Offset = i64;
pub type MPI_Count = i64;
/// A Fortran `INTEGER`.
pub type MPI_Fint = c_int;

/// What a call tells about a message.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MPI_Status {
    pub MPI_SOURCE: c_int,
    pub MPI_TAG: c_int,
    pub MPI_ERROR: c_int,
    pub MPI_internal: [c_int; 5],
}

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_Comm {
    _private: [u8; 0],
}
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MPI_Comm(pub *mut MPI_ABI_Comm);

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_Datatype {
    _private: [u8; 0],
}
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MPI_Datatype(pub *mut MPI_ABI_Datatype);

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_Errhandler {
    _private: [u8; 0],
}
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MPI_Errhandler(pub *mut MPI_ABI_Errhandler);

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_File {
    _private: [u8; 0],
}
pub type MPI_File = *mut MPI_ABI_File;

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_Group {
    _private: [u8; 0],
}
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MPI_Group(pub *mut MPI_ABI_Group);

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_Info {
    _private: [u8; 0],
}
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MPI_Info(pub *mut MPI_ABI_Info);

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_Message {
    _private: [u8; 0],
}
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MPI_Message(pub *mut MPI_ABI_Message);

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_Op {
    _private: [u8; 0],
}
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MPI_Op(pub *mut MPI_ABI_Op);

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_Request {
    _private: [u8; 0],
}
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MPI_Request(pub *mut MPI_ABI_Request);

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_Session {
    _private: [u8; 0],
}
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MPI_Session(pub *mut MPI_ABI_Session);

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_Win {
    _private: [u8; 0],
}
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MPI_Win(pub *mut MPI_ABI_Win);

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_T_enum {
    _private: [u8; 0],
}
pub type MPI_T_enum = *mut MPI_ABI_T_enum;

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_T_cvar_handle {
    _private: [u8; 0],
}
pub type MPI_T_cvar_handle = *mut MPI_ABI_T_cvar_handle;

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_T_pvar_handle {
    _private: [u8; 0],
}
pub type MPI_T_pvar_handle = *mut MPI_ABI_T_pvar_handle;

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_T_pvar_session {
    _private: [u8; 0],
}
pub type MPI_T_pvar_session = *mut MPI_ABI_T_pvar_session;

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_T_event_registration {
    _private: [u8; 0],
}
pub type MPI_T_event_registration = *mut MPI_ABI_T_event_registration;

#[repr(C)]
#[derive(Debug)]
pub struct MPI_ABI_T_event_instance {
    _private: [u8; 0],
}
pub type MPI_T_event_instance = *mut MPI_ABI_T_event_instance;

pub type MPI_T_cb_safety = c_uint;
pub type MPI_T_source_order = c_uint;
pub type MPI_User_function = Option<unsafe extern "C" fn(invec: *mut c_void,
    inoutvec: *mut c_void, len: *mut c_int, datatype: *mut MPI_Datatype)>;
pub type MPI_User_function_c = Option<unsafe extern "C" fn(invec: *mut c_void,
    inoutvec: *mut c_void, len: *mut MPI_Count, datatype: *mut MPI_Datatype)>;
pub type MPI_Grequest_query_function = Option<unsafe extern "C" fn(extra_state: *mut c_void,
    status: *mut MPI_Status) -> c_int>;
pub type MPI_Grequest_free_function = Option<unsafe extern "C" fn(extra_state: *mut c_void) -> c_int>;
pub type MPI_Grequest_cancel_function = Option<unsafe extern "C" fn(extra_state: *mut c_void,
    complete: c_int) -> c_int>;
pub type MPI_Copy_function = Option<unsafe extern "C" fn(comm: MPI_Comm, keyval: c_int,
    extra_state: *mut c_void, attribute_val_in: *mut c_void, attribute_val_out: *mut c_void,
    flag: *mut c_int) -> c_int>;
pub type MPI_Delete_function = Option<unsafe extern "C" fn(comm: MPI_Comm, keyval: c_int,
    attribute_val: *mut c_void, extra_state: *mut c_void) -> c_int>;
pub type MPI_Comm_copy_attr_function = Option<unsafe extern "C" fn(comm: MPI_Comm, keyval: c_int,
    extra_state: *mut c_void, attribute_val_in: *mut c_void, attribute_val_out: *mut c_void,
    flag: *mut c_int) -> c_int>;
pub type MPI_Comm_delete_attr_function = Option<unsafe extern "C" fn(comm: MPI_Comm,
    keyval: c_int, attribute_val: *mut c_void, extra_state: *mut c_void) -> c_int>;
pub type MPI_Type_copy_attr_function = Option<unsafe extern "C" fn(datatype: MPI_Datatype,
    keyval: c_int, extra_state: *mut c_void, attribute_val_in: *mut c_void,
    attribute_val_out: *mut c_void, flag: *mut c_int) -> c_int>;
pub type MPI_Type_delete_attr_function = Option<unsafe extern "C" fn(datatype: MPI_Datatype,
    keyval: c_int, attribute_val: *mut c_void, extra_state: *mut c_void) -> c_int>;
pub type MPI_Win_copy_attr_function = Option<unsafe extern "C" fn(win: MPI_Win, keyval: c_int,
    extra_state: *mut c_void, attribute_val_in: *mut c_void, attribute_val_out: *mut c_void,
    flag: *mut c_int) -> c_int>;
pub type MPI_Win_delete_attr_function = Option<unsafe extern "C" fn(win: MPI_Win, keyval: c_int,
    attribute_val: *mut c_void, extra_state: *mut c_void) -> c_int>;
pub type MPI_Datarep_extent_function = Option<unsafe extern "C" fn(datatype: MPI_Datatype,
    extent: *mut MPI_Aint, extra_state: *mut c_void) -> c_int>;
pub type MPI_Datarep_conversion_function = Option<unsafe extern "C" fn(userbuf: *mut c_void,
    datatype: MPI_Datatype, count: c_int, filebuf: *mut c_void, position: MPI_Offset,
    extra_state: *mut c_void) -> c_int>;
pub type MPI_Datarep_conversion_function_c = Option<unsafe extern "C" fn(userbuf: *mut c_void,
    datatype: MPI_Datatype, count: MPI_Count, filebuf: *mut c_void, position: MPI_Offset,
    extra_state: *mut c_void) -> c_int>;
pub type MPI_Comm_errhandler_function = Option<unsafe extern "C" fn(comm: *mut MPI_Comm,
    error_code: *mut c_int, ...)>;
pub type MPI_File_errhandler_function = Option<unsafe extern "C" fn(file: *mut MPI_File,
    error_code: *mut c_int, ...)>;
pub type MPI_Win_errhandler_function = Option<unsafe extern "C" fn(win: *mut MPI_Win,
    error_code: *mut c_int, ...)>;
pub type MPI_Session_errhandler_function = Option<unsafe extern "C" fn(session: *mut MPI_Session,
    error_code: *mut c_int, ...)>;
pub type MPI_T_event_cb_function = Option<unsafe extern "C" fn(event_instance: MPI_T_event_instance,
    event_registration: MPI_T_event_registration, cb_safety: MPI_T_cb_safety,
    user_data: *mut c_void)>;
pub type MPI_T_event_free_cb_function = Option<unsafe extern "C" fn(event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety, user_data: *mut c_void)>;
pub type MPI_T_event_dropped_cb_function = Option<unsafe extern "C" fn(count: MPI_Count,
    event_registration: MPI_T_event_registration, source_index: c_int,
    cb_safety: MPI_T_cb_safety, user_data: *mut c_void)>;
pub type MPI_Comm_errhandler_fn = MPI_Comm_errhandler_function;
pub type MPI_File_errhandler_fn = MPI_File_errhandler_function;
pub type MPI_Win_errhandler_fn = MPI_Win_errhandler_function;
pub type MPI_Session_errhandler_fn = MPI_Session_errhandler_function;

pub const MPI_VERSION: u32 = 5;
pub const MPI_SUBVERSION: u32 = 0;
pub const MPI_ABI_VERSION: u32 = 1;
pub const MPI_ABI_SUBVERSION: u32 = 0;
pub const MPI_OP_NULL: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x20));
pub const MPI_SUM: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x21));
pub const MPI_MIN: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x22));
pub const MPI_MAX: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x23));
pub const MPI_PROD: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x24));
pub const MPI_BAND: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x28));
pub const MPI_BOR: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x29));
pub const MPI_BXOR: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x2a));
pub const MPI_LAND: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x30));
pub const MPI_LOR: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x31));
pub const MPI_LXOR: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x32));
pub const MPI_MINLOC: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x38));
pub const MPI_MAXLOC: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x39));
pub const MPI_REPLACE: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x3c));
pub const MPI_NO_OP: MPI_Op = MPI_Op(core::ptr::without_provenance_mut(0x3d));
pub const MPI_COMM_NULL: MPI_Comm = MPI_Comm(core::ptr::without_provenance_mut(0x100));
pub const MPI_COMM_WORLD: MPI_Comm = MPI_Comm(core::ptr::without_provenance_mut(0x101));
pub const MPI_COMM_SELF: MPI_Comm = MPI_Comm(core::ptr::without_provenance_mut(0x102));
pub const MPI_GROUP_NULL: MPI_Group = MPI_Group(core::ptr::without_provenance_mut(0x108));
pub const MPI_GROUP_EMPTY: MPI_Group = MPI_Group(core::ptr::without_provenance_mut(0x109));
pub const MPI_WIN_NULL: MPI_Win = MPI_Win(core::ptr::without_provenance_mut(0x110));
pub const MPI_FILE_NULL: MPI_File = core::ptr::without_provenance_mut(0x118);
pub const MPI_SESSION_NULL: MPI_Session = MPI_Session(core::ptr::without_provenance_mut(0x120));
pub const MPI_MESSAGE_NULL: MPI_Message = MPI_Message(core::ptr::without_provenance_mut(0x128));
pub const MPI_MESSAGE_NO_PROC: MPI_Message = MPI_Message(core::ptr::without_provenance_mut(0x129));
pub const MPI_INFO_NULL: MPI_Info = MPI_Info(core::ptr::without_provenance_mut(0x130));
pub const MPI_INFO_ENV: MPI_Info = MPI_Info(core::ptr::without_provenance_mut(0x131));
pub const MPI_ERRHANDLER_NULL: MPI_Errhandler = MPI_Errhandler(core::ptr::without_provenance_mut(0x140));
pub const MPI_ERRORS_ARE_FATAL: MPI_Errhandler = MPI_Errhandler(core::ptr::without_provenance_mut(0x141));
pub const MPI_ERRORS_ABORT: MPI_Errhandler = MPI_Errhandler(core::ptr::without_provenance_mut(0x142));
pub const MPI_ERRORS_RETURN: MPI_Errhandler = MPI_Errhandler(core::ptr::without_provenance_mut(0x143));
pub const MPI_REQUEST_NULL: MPI_Request = MPI_Request(core::ptr::without_provenance_mut(0x180));
pub const MPI_DATATYPE_NULL: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x200));
pub const MPI_AINT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x201));
pub const MPI_COUNT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x202));
pub const MPI_OFFSET: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x203));
pub const MPI_PACKED: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x207));
pub const MPI_SHORT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x208));
pub const MPI_INT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x209));
pub const MPI_LONG: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x20a));
pub const MPI_LONG_LONG: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x20b));
pub const MPI_LONG_LONG_INT: MPI_Datatype = MPI_LONG_LONG;
pub const MPI_UNSIGNED_SHORT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x20c));
pub const MPI_UNSIGNED: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x20d));
pub const MPI_UNSIGNED_LONG: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x20e));
pub const MPI_UNSIGNED_LONG_LONG: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x20f));
pub const MPI_FLOAT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x210));
pub const MPI_C_FLOAT_COMPLEX: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x212));
pub const MPI_C_COMPLEX: MPI_Datatype = MPI_C_FLOAT_COMPLEX;
pub const MPI_CXX_FLOAT_COMPLEX: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x213));
pub const MPI_DOUBLE: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x214));
pub const MPI_C_DOUBLE_COMPLEX: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x216));
pub const MPI_CXX_DOUBLE_COMPLEX: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x217));
pub const MPI_LOGICAL: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x218));
pub const MPI_INTEGER: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x219));
pub const MPI_REAL: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x21a));
pub const MPI_COMPLEX: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x21b));
pub const MPI_DOUBLE_PRECISION: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x21c));
pub const MPI_DOUBLE_COMPLEX: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x21d));
pub const MPI_CHARACTER: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x21e));
pub const MPI_LONG_DOUBLE: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x220));
pub const MPI_C_LONG_DOUBLE_COMPLEX: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x224));
pub const MPI_CXX_LONG_DOUBLE_COMPLEX: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x225));
pub const MPI_FLOAT_INT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x228));
pub const MPI_DOUBLE_INT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x229));
pub const MPI_LONG_INT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x22a));
pub const MPI_2INT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x22b));
pub const MPI_SHORT_INT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x22c));
pub const MPI_LONG_DOUBLE_INT: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x22d));
pub const MPI_2REAL: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x230));
pub const MPI_2DOUBLE_PRECISION: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x231));
pub const MPI_2INTEGER: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x232));
pub const MPI_C_BOOL: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x238));
pub const MPI_CXX_BOOL: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x239));
pub const MPI_WCHAR: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x23c));
pub const MPI_INT8_T: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x240));
pub const MPI_UINT8_T: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x241));
pub const MPI_CHAR: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x243));
pub const MPI_SIGNED_CHAR: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x244));
pub const MPI_UNSIGNED_CHAR: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x245));
pub const MPI_BYTE: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x247));
pub const MPI_INT16_T: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x248));
pub const MPI_UINT16_T: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x249));
pub const MPI_INT32_T: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x250));
pub const MPI_UINT32_T: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x251));
pub const MPI_INT64_T: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x258));
pub const MPI_UINT64_T: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x259));
pub const MPI_LOGICAL1: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2c0));
pub const MPI_INTEGER1: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2c1));
pub const MPI_LOGICAL2: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2c8));
pub const MPI_INTEGER2: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2c9));
pub const MPI_REAL2: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2ca));
pub const MPI_LOGICAL4: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2d0));
pub const MPI_INTEGER4: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2d1));
pub const MPI_REAL4: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2d2));
pub const MPI_COMPLEX4: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2d3));
pub const MPI_LOGICAL8: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2d8));
pub const MPI_INTEGER8: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2d9));
pub const MPI_REAL8: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2da));
pub const MPI_COMPLEX8: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2db));
pub const MPI_LOGICAL16: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2e0));
pub const MPI_INTEGER16: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2e1));
pub const MPI_REAL16: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2e2));
pub const MPI_COMPLEX16: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2e3));
pub const MPI_COMPLEX32: MPI_Datatype = MPI_Datatype(core::ptr::without_provenance_mut(0x2eb));
pub const MPI_F_STATUS_SIZE: u32 = 8;
pub const MPI_F_SOURCE: u32 = 0;
pub const MPI_F_TAG: u32 = 1;
pub const MPI_F_ERROR: u32 = 2;
pub const MPI_SUCCESS: u32 = 0;
pub const MPI_ERR_BUFFER: u32 = 1;
pub const MPI_ERR_COUNT: u32 = 2;
pub const MPI_ERR_TYPE: u32 = 3;
pub const MPI_ERR_TAG: u32 = 4;
pub const MPI_ERR_COMM: u32 = 5;
pub const MPI_ERR_RANK: u32 = 6;
pub const MPI_ERR_REQUEST: u32 = 7;
pub const MPI_ERR_ROOT: u32 = 8;
pub const MPI_ERR_GROUP: u32 = 9;
pub const MPI_ERR_OP: u32 = 10;
pub const MPI_ERR_TOPOLOGY: u32 = 11;
pub const MPI_ERR_DIMS: u32 = 12;
pub const MPI_ERR_ARG: u32 = 13;
pub const MPI_ERR_UNKNOWN: u32 = 14;
pub const MPI_ERR_TRUNCATE: u32 = 15;
pub const MPI_ERR_OTHER: u32 = 16;
pub const MPI_ERR_INTERN: u32 = 17;
pub const MPI_ERR_PENDING: u32 = 18;
pub const MPI_ERR_IN_STATUS: u32 = 19;
pub const MPI_ERR_ACCESS: u32 = 20;
pub const MPI_ERR_AMODE: u32 = 21;
pub const MPI_ERR_ASSERT: u32 = 22;
pub const MPI_ERR_BAD_FILE: u32 = 23;
pub const MPI_ERR_BASE: u32 = 24;
pub const MPI_ERR_CONVERSION: u32 = 25;
pub const MPI_ERR_DISP: u32 = 26;
pub const MPI_ERR_DUP_DATAREP: u32 = 27;
pub const MPI_ERR_FILE_EXISTS: u32 = 28;
pub const MPI_ERR_FILE_IN_USE: u32 = 29;
pub const MPI_ERR_FILE: u32 = 30;
pub const MPI_ERR_INFO_KEY: u32 = 31;
pub const MPI_ERR_INFO_NOKEY: u32 = 32;
pub const MPI_ERR_INFO_VALUE: u32 = 33;
pub const MPI_ERR_INFO: u32 = 34;
pub const MPI_ERR_IO: u32 = 35;
pub const MPI_ERR_KEYVAL: u32 = 36;
pub const MPI_ERR_LOCKTYPE: u32 = 37;
pub const MPI_ERR_NAME: u32 = 38;
pub const MPI_ERR_NO_MEM: u32 = 39;
pub const MPI_ERR_NOT_SAME: u32 = 40;
pub const MPI_ERR_NO_SPACE: u32 = 41;
pub const MPI_ERR_NO_SUCH_FILE: u32 = 42;
pub const MPI_ERR_PORT: u32 = 43;
pub const MPI_ERR_QUOTA: u32 = 44;
pub const MPI_ERR_READ_ONLY: u32 = 45;
pub const MPI_ERR_RMA_ATTACH: u32 = 46;
pub const MPI_ERR_RMA_CONFLICT: u32 = 47;
pub const MPI_ERR_RMA_RANGE: u32 = 48;
pub const MPI_ERR_RMA_SHARED: u32 = 49;
pub const MPI_ERR_RMA_SYNC: u32 = 50;
pub const MPI_ERR_SERVICE: u32 = 51;
pub const MPI_ERR_SIZE: u32 = 52;
pub const MPI_ERR_SPAWN: u32 = 53;
pub const MPI_ERR_UNSUPPORTED_DATAREP: u32 = 54;
pub const MPI_ERR_UNSUPPORTED_OPERATION: u32 = 55;
pub const MPI_ERR_WIN: u32 = 56;
pub const MPI_ERR_RMA_FLAVOR: u32 = 57;
pub const MPI_ERR_PROC_ABORTED: u32 = 58;
pub const MPI_ERR_VALUE_TOO_LARGE: u32 = 59;
pub const MPI_ERR_SESSION: u32 = 60;
pub const MPI_ERR_ERRHANDLER: u32 = 61;
pub const MPI_ERR_ABI: u32 = 62;
pub const MPI_T_ERR_CANNOT_INIT: u32 = 1001;
pub const MPI_T_ERR_NOT_ACCESSIBLE: u32 = 1002;
pub const MPI_T_ERR_NOT_INITIALIZED: u32 = 1003;
pub const MPI_T_ERR_NOT_SUPPORTED: u32 = 1004;
pub const MPI_T_ERR_MEMORY: u32 = 1005;
pub const MPI_T_ERR_INVALID: u32 = 1006;
pub const MPI_T_ERR_INVALID_INDEX: u32 = 1007;
pub const MPI_T_ERR_INVALID_ITEM: u32 = 1008;
pub const MPI_T_ERR_INVALID_SESSION: u32 = 1009;
pub const MPI_T_ERR_INVALID_HANDLE: u32 = 1010;
pub const MPI_T_ERR_INVALID_NAME: u32 = 1011;
pub const MPI_T_ERR_OUT_OF_HANDLES: u32 = 1012;
pub const MPI_T_ERR_OUT_OF_SESSIONS: u32 = 1013;
pub const MPI_T_ERR_CVAR_SET_NOT_NOW: u32 = 1014;
pub const MPI_T_ERR_CVAR_SET_NEVER: u32 = 1015;
pub const MPI_T_ERR_PVAR_NO_WRITE: u32 = 1016;
pub const MPI_T_ERR_PVAR_NO_STARTSTOP: u32 = 1017;
pub const MPI_T_ERR_PVAR_NO_ATOMIC: u32 = 1018;
pub const MPI_ERR_LASTCODE: u32 = 16383;
pub const MPI_BOTTOM: *mut c_void = core::ptr::null_mut();
pub const MPI_IN_PLACE: *mut c_void = core::ptr::without_provenance_mut(0x1);
pub const MPI_BUFFER_AUTOMATIC: *mut c_void = core::ptr::without_provenance_mut(0x2);
pub const MPI_ARGV_NULL: *mut *mut c_char = core::ptr::null_mut();
pub const MPI_ARGVS_NULL: *mut *mut *mut c_char = core::ptr::null_mut();
pub const MPI_ERRCODES_IGNORE: *mut c_int = core::ptr::null_mut();
pub const MPI_STATUS_IGNORE: *mut MPI_Status = core::ptr::null_mut();
pub const MPI_STATUSES_IGNORE: *mut MPI_Status = core::ptr::null_mut();
pub const MPI_UNWEIGHTED: *mut c_int = core::ptr::without_provenance_mut(0xa);
pub const MPI_WEIGHTS_EMPTY: *mut c_int = core::ptr::without_provenance_mut(0xb);
pub const MPI_MAX_DATAREP_STRING: u32 = 128;
pub const MPI_MAX_ERROR_STRING: u32 = 512;
pub const MPI_MAX_INFO_KEY: u32 = 256;
pub const MPI_MAX_INFO_VAL: u32 = 1024;
pub const MPI_MAX_LIBRARY_VERSION_STRING: u32 = 8192;
pub const MPI_MAX_OBJECT_NAME: u32 = 128;
pub const MPI_MAX_PORT_NAME: u32 = 1024;
pub const MPI_MAX_PROCESSOR_NAME: u32 = 256;
pub const MPI_MAX_STRINGTAG_LEN: u32 = 1024;
pub const MPI_MAX_PSET_NAME_LEN: u32 = 1024;
pub const MPI_BSEND_OVERHEAD: u32 = 512;
pub const MPI_MODE_APPEND: u32 = 1;
pub const MPI_MODE_CREATE: u32 = 2;
pub const MPI_MODE_DELETE_ON_CLOSE: u32 = 4;
pub const MPI_MODE_EXCL: u32 = 8;
pub const MPI_MODE_RDONLY: u32 = 16;
pub const MPI_MODE_RDWR: u32 = 32;
pub const MPI_MODE_SEQUENTIAL: u32 = 64;
pub const MPI_MODE_UNIQUE_OPEN: u32 = 128;
pub const MPI_MODE_WRONLY: u32 = 256;
pub const MPI_MODE_NOCHECK: u32 = 1024;
pub const MPI_MODE_NOPRECEDE: u32 = 2048;
pub const MPI_MODE_NOPUT: u32 = 4096;
pub const MPI_MODE_NOSTORE: u32 = 8192;
pub const MPI_MODE_NOSUCCEED: u32 = 16384;
pub const MPI_ANY_SOURCE: i32 = -1;
pub const MPI_ANY_TAG: i32 = -2;
pub const MPI_PROC_NULL: i32 = -3;
pub const MPI_ROOT: i32 = -4;
pub const MPI_UNDEFINED: i32 = -32766;
pub const MPI_THREAD_SINGLE: u32 = 0;
pub const MPI_THREAD_FUNNELED: u32 = 1024;
pub const MPI_THREAD_SERIALIZED: u32 = 2048;
pub const MPI_THREAD_MULTIPLE: u32 = 4096;
pub const MPI_ORDER_C: u32 = 12;
pub const MPI_ORDER_FORTRAN: u32 = 15;
pub const MPI_DISTRIBUTE_NONE: u32 = 16;
pub const MPI_DISTRIBUTE_BLOCK: u32 = 17;
pub const MPI_DISTRIBUTE_CYCLIC: u32 = 18;
pub const MPI_DISTRIBUTE_DFLT_DARG: u32 = 19;
pub const MPI_COMBINER_NAMED: u32 = 101;
pub const MPI_COMBINER_DUP: u32 = 102;
pub const MPI_COMBINER_CONTIGUOUS: u32 = 103;
pub const MPI_COMBINER_VECTOR: u32 = 104;
pub const MPI_COMBINER_HVECTOR: u32 = 105;
pub const MPI_COMBINER_INDEXED: u32 = 106;
pub const MPI_COMBINER_HINDEXED: u32 = 107;
pub const MPI_COMBINER_INDEXED_BLOCK: u32 = 108;
pub const MPI_COMBINER_HINDEXED_BLOCK: u32 = 109;
pub const MPI_COMBINER_STRUCT: u32 = 110;
pub const MPI_COMBINER_SUBARRAY: u32 = 111;
pub const MPI_COMBINER_DARRAY: u32 = 112;
pub const MPI_COMBINER_F90_REAL: u32 = 113;
pub const MPI_COMBINER_F90_COMPLEX: u32 = 114;
pub const MPI_COMBINER_F90_INTEGER: u32 = 115;
pub const MPI_COMBINER_RESIZED: u32 = 116;
pub const MPI_COMBINER_VALUE_INDEX: u32 = 117;
pub const MPI_TYPECLASS_INTEGER: u32 = 192;
pub const MPI_TYPECLASS_REAL: u32 = 193;
pub const MPI_TYPECLASS_COMPLEX: u32 = 194;
pub const MPI_IDENT: u32 = 201;
pub const MPI_CONGRUENT: u32 = 202;
pub const MPI_SIMILAR: u32 = 203;
pub const MPI_UNEQUAL: u32 = 204;
pub const MPI_CART: u32 = 211;
pub const MPI_GRAPH: u32 = 212;
pub const MPI_DIST_GRAPH: u32 = 213;
pub const MPI_COMM_TYPE_SHARED: u32 = 221;
pub const MPI_COMM_TYPE_HW_UNGUIDED: u32 = 222;
pub const MPI_COMM_TYPE_HW_GUIDED: u32 = 223;
pub const MPI_COMM_TYPE_RESOURCE_GUIDED: u32 = 224;
pub const MPI_LOCK_EXCLUSIVE: u32 = 301;
pub const MPI_LOCK_SHARED: u32 = 302;
pub const MPI_WIN_FLAVOR_CREATE: u32 = 311;
pub const MPI_WIN_FLAVOR_ALLOCATE: u32 = 312;
pub const MPI_WIN_FLAVOR_DYNAMIC: u32 = 313;
pub const MPI_WIN_FLAVOR_SHARED: u32 = 314;
pub const MPI_WIN_UNIFIED: u32 = 321;
pub const MPI_WIN_SEPARATE: u32 = 322;
pub const MPI_SEEK_CUR: u32 = 401;
pub const MPI_SEEK_END: u32 = 402;
pub const MPI_SEEK_SET: u32 = 403;
pub const MPI_DISPLACEMENT_CURRENT: MPI_Offset = -1;
pub const MPI_KEYVAL_INVALID: u32 = 0;
pub const MPI_TAG_UB: u32 = 501;
pub const MPI_IO: u32 = 502;
pub const MPI_HOST: u32 = 503;
pub const MPI_WTIME_IS_GLOBAL: u32 = 504;
pub const MPI_APPNUM: u32 = 505;
pub const MPI_LASTUSEDCODE: u32 = 506;
pub const MPI_UNIVERSE_SIZE: u32 = 507;
pub const MPI_WIN_BASE: u32 = 601;
pub const MPI_WIN_DISP_UNIT: u32 = 602;
pub const MPI_WIN_SIZE: u32 = 603;
pub const MPI_WIN_CREATE_FLAVOR: u32 = 604;
pub const MPI_WIN_MODEL: u32 = 605;
pub const MPI_T_ENUM_NULL: MPI_T_enum = core::ptr::null_mut();
pub const MPI_T_CVAR_HANDLE_NULL: MPI_T_cvar_handle = core::ptr::null_mut();
pub const MPI_T_PVAR_SESSION_NULL: MPI_T_pvar_session = core::ptr::null_mut();
pub const MPI_T_PVAR_HANDLE_NULL: MPI_T_pvar_handle = core::ptr::null_mut();
pub const MPI_T_PVAR_ALL_HANDLES: MPI_T_pvar_handle = core::ptr::without_provenance_mut(0x1);
pub const MPI_T_CB_REQUIRE_NONE: MPI_T_cb_safety = 0;
pub const MPI_T_CB_REQUIRE_MPI_RESTRICTED: MPI_T_cb_safety = 3;
pub const MPI_T_CB_REQUIRE_THREAD_SAFE: MPI_T_cb_safety = 15;
pub const MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE: MPI_T_cb_safety = 63;
pub const MPI_T_SOURCE_ORDERED: MPI_T_source_order = 1;
pub const MPI_T_SOURCE_UNORDERED: MPI_T_source_order = 2;
pub const MPI_T_VERBOSITY_USER_BASIC: u32 = 9;
pub const MPI_T_VERBOSITY_USER_DETAIL: u32 = 10;
pub const MPI_T_VERBOSITY_USER_ALL: u32 = 12;
pub const MPI_T_VERBOSITY_TUNER_BASIC: u32 = 17;
pub const MPI_T_VERBOSITY_TUNER_DETAIL: u32 = 18;
pub const MPI_T_VERBOSITY_TUNER_ALL: u32 = 20;
pub const MPI_T_VERBOSITY_MPIDEV_BASIC: u32 = 33;
pub const MPI_T_VERBOSITY_MPIDEV_DETAIL: u32 = 34;
pub const MPI_T_VERBOSITY_MPIDEV_ALL: u32 = 36;
pub const MPI_T_BIND_NO_OBJECT: u32 = 1;
pub const MPI_T_BIND_MPI_COMM: u32 = 2;
pub const MPI_T_BIND_MPI_DATATYPE: u32 = 3;
pub const MPI_T_BIND_MPI_ERRHANDLER: u32 = 4;
pub const MPI_T_BIND_MPI_FILE: u32 = 5;
pub const MPI_T_BIND_MPI_GROUP: u32 = 6;
pub const MPI_T_BIND_MPI_OP: u32 = 7;
pub const MPI_T_BIND_MPI_REQUEST: u32 = 8;
pub const MPI_T_BIND_MPI_WIN: u32 = 9;
pub const MPI_T_BIND_MPI_MESSAGE: u32 = 10;
pub const MPI_T_BIND_MPI_INFO: u32 = 11;
pub const MPI_T_BIND_MPI_SESSION: u32 = 12;
pub const MPI_T_SCOPE_CONSTANT: u32 = 1;
pub const MPI_T_SCOPE_READONLY: u32 = 2;
pub const MPI_T_SCOPE_LOCAL: u32 = 3;
pub const MPI_T_SCOPE_GROUP: u32 = 4;
pub const MPI_T_SCOPE_GROUP_EQ: u32 = 5;
pub const MPI_T_SCOPE_ALL: u32 = 6;
pub const MPI_T_SCOPE_ALL_EQ: u32 = 7;
pub const MPI_T_PVAR_CLASS_STATE: u32 = 1;
pub const MPI_T_PVAR_CLASS_LEVEL: u32 = 2;
pub const MPI_T_PVAR_CLASS_SIZE: u32 = 3;
pub const MPI_T_PVAR_CLASS_PERCENTAGE: u32 = 4;
pub const MPI_T_PVAR_CLASS_HIGHWATERMARK: u32 = 5;
pub const MPI_T_PVAR_CLASS_LOWWATERMARK: u32 = 6;
pub const MPI_T_PVAR_CLASS_COUNTER: u32 = 7;
pub const MPI_T_PVAR_CLASS_AGGREGATE: u32 = 8;
pub const MPI_T_PVAR_CLASS_TIMER: u32 = 9;
pub const MPI_T_PVAR_CLASS_GENERIC: u32 = 10;

unsafe extern "C" {
    pub fn MPI_Abi_get_fortran_booleans(logical_size: c_int, logical_true: *mut c_void,
    logical_false: *mut c_void, is_set: *mut c_int) -> c_int;
    pub fn MPI_Abi_get_fortran_info(info: *mut MPI_Info) -> c_int;
    pub fn MPI_Abi_get_info(info: *mut MPI_Info) -> c_int;
    pub fn MPI_Abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) -> c_int;
    pub fn MPI_Abi_set_fortran_booleans(logical_size: c_int, logical_true: *mut c_void,
    logical_false: *mut c_void) -> c_int;
    pub fn MPI_Abi_set_fortran_info(info: MPI_Info) -> c_int;
    pub fn MPI_Abort(comm: MPI_Comm, errorcode: c_int) -> c_int;
    pub fn MPI_Accumulate(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win) -> c_int;
    pub fn MPI_Accumulate_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win) -> c_int;
    pub fn MPI_Add_error_class(errorclass: *mut c_int) -> c_int;
    pub fn MPI_Add_error_code(errorclass: c_int, errorcode: *mut c_int) -> c_int;
    pub fn MPI_Add_error_string(errorcode: c_int, string: *const c_char) -> c_int;
    pub fn MPI_Aint_add(base: MPI_Aint, disp: MPI_Aint) -> MPI_Aint;
    pub fn MPI_Aint_diff(addr1: MPI_Aint, addr2: MPI_Aint) -> MPI_Aint;
    pub fn MPI_Allgather(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn MPI_Allgather_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Allgather_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Allgather_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Allgatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Allgatherv_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const MPI_Count, displs: *const MPI_Aint,
    recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn MPI_Allgatherv_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Allgatherv_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Alloc_mem(size: MPI_Aint, info: MPI_Info, baseptr: *mut c_void) -> c_int;
    pub fn MPI_Allreduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn MPI_Allreduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn MPI_Allreduce_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Allreduce_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Alltoall(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn MPI_Alltoall_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Alltoall_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Alltoall_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Alltoallv(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const c_int,
    rdispls: *const c_int, recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn MPI_Alltoallv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Alltoallv_init(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Alltoallv_init_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Alltoallw(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int,
    sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const c_int,
    rdispls: *const c_int, recvtypes: *const MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn MPI_Alltoallw_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Alltoallw_init(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Alltoallw_init_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Attr_delete(comm: MPI_Comm, keyval: c_int) -> c_int;
    pub fn MPI_Attr_get(comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void,
    flag: *mut c_int) -> c_int;
    pub fn MPI_Attr_put(comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void) -> c_int;
    pub fn MPI_Barrier(comm: MPI_Comm) -> c_int;
    pub fn MPI_Barrier_init(comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Bcast(buffer: *mut c_void, count: c_int, datatype: MPI_Datatype, root: c_int,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Bcast_c(buffer: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    root: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Bcast_init(buffer: *mut c_void, count: c_int, datatype: MPI_Datatype, root: c_int,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Bcast_init_c(buffer: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Bsend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Bsend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Bsend_init(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Bsend_init_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Buffer_attach(buffer: *mut c_void, size: c_int) -> c_int;
    pub fn MPI_Buffer_attach_c(buffer: *mut c_void, size: MPI_Count) -> c_int;
    pub fn MPI_Buffer_detach(buffer_addr: *mut c_void, size: *mut c_int) -> c_int;
    pub fn MPI_Buffer_detach_c(buffer_addr: *mut c_void, size: *mut MPI_Count) -> c_int;
    pub fn MPI_Buffer_flush() -> c_int;
    pub fn MPI_Buffer_iflush(request: *mut MPI_Request) -> c_int;
    pub fn MPI_Cancel(request: *mut MPI_Request) -> c_int;
    pub fn MPI_Cart_coords(comm: MPI_Comm, rank: c_int, maxdims: c_int,
    coords: *mut c_int) -> c_int;
    pub fn MPI_Cart_create(comm_old: MPI_Comm, ndims: c_int, dims: *const c_int,
    periods: *const c_int, reorder: c_int, comm_cart: *mut MPI_Comm) -> c_int;
    pub fn MPI_Cart_get(comm: MPI_Comm, maxdims: c_int, dims: *mut c_int, periods: *mut c_int,
    coords: *mut c_int) -> c_int;
    pub fn MPI_Cart_map(comm: MPI_Comm, ndims: c_int, dims: *const c_int, periods: *const c_int,
    newrank: *mut c_int) -> c_int;
    pub fn MPI_Cart_rank(comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) -> c_int;
    pub fn MPI_Cart_shift(comm: MPI_Comm, direction: c_int, disp: c_int, rank_source: *mut c_int,
    rank_dest: *mut c_int) -> c_int;
    pub fn MPI_Cart_sub(comm: MPI_Comm, remain_dims: *const c_int,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Cartdim_get(comm: MPI_Comm, ndims: *mut c_int) -> c_int;
    pub fn MPI_Close_port(port_name: *const c_char) -> c_int;
    pub fn MPI_Comm_accept(port_name: *const c_char, info: MPI_Info, root: c_int, comm: MPI_Comm,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_attach_buffer(comm: MPI_Comm, buffer: *mut c_void, size: c_int) -> c_int;
    pub fn MPI_Comm_attach_buffer_c(comm: MPI_Comm, buffer: *mut c_void,
    size: MPI_Count) -> c_int;
    pub fn MPI_Comm_call_errhandler(comm: MPI_Comm, errorcode: c_int) -> c_int;
    pub fn MPI_Comm_compare(comm1: MPI_Comm, comm2: MPI_Comm, result: *mut c_int) -> c_int;
    pub fn MPI_Comm_connect(port_name: *const c_char, info: MPI_Info, root: c_int,
    comm: MPI_Comm, newcomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_create(comm: MPI_Comm, group: MPI_Group, newcomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_create_errhandler(comm_errhandler_fn: MPI_Comm_errhandler_function,
    errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn MPI_Comm_create_from_group(group: MPI_Group, stringtag: *const c_char, info: MPI_Info,
    errhandler: MPI_Errhandler, newcomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_create_group(comm: MPI_Comm, group: MPI_Group, tag: c_int,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_create_keyval(comm_copy_attr_fn: MPI_Comm_copy_attr_function,
    comm_delete_attr_fn: MPI_Comm_delete_attr_function, comm_keyval: *mut c_int,
    extra_state: *mut c_void) -> c_int;
    pub fn MPI_Comm_delete_attr(comm: MPI_Comm, comm_keyval: c_int) -> c_int;
    pub fn MPI_Comm_detach_buffer(comm: MPI_Comm, buffer_addr: *mut c_void,
    size: *mut c_int) -> c_int;
    pub fn MPI_Comm_detach_buffer_c(comm: MPI_Comm, buffer_addr: *mut c_void,
    size: *mut MPI_Count) -> c_int;
    pub fn MPI_Comm_disconnect(comm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_dup(comm: MPI_Comm, newcomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_dup_with_info(comm: MPI_Comm, info: MPI_Info,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_flush_buffer(comm: MPI_Comm) -> c_int;
    pub fn MPI_Comm_free(comm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_free_keyval(comm_keyval: *mut c_int) -> c_int;
    pub fn MPI_Comm_fromint(comm: c_int) -> MPI_Comm;
    pub fn MPI_Comm_get_attr(comm: MPI_Comm, comm_keyval: c_int, attribute_val: *mut c_void,
    flag: *mut c_int) -> c_int;
    pub fn MPI_Comm_get_errhandler(comm: MPI_Comm, errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn MPI_Comm_get_info(comm: MPI_Comm, info_used: *mut MPI_Info) -> c_int;
    pub fn MPI_Comm_get_name(comm: MPI_Comm, comm_name: *mut c_char,
    resultlen: *mut c_int) -> c_int;
    pub fn MPI_Comm_get_parent(parent: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group) -> c_int;
    pub fn MPI_Comm_idup(comm: MPI_Comm, newcomm: *mut MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Comm_idup_with_info(comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Comm_iflush_buffer(comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Comm_join(fd: c_int, intercomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int) -> c_int;
    pub fn MPI_Comm_remote_group(comm: MPI_Comm, group: *mut MPI_Group) -> c_int;
    pub fn MPI_Comm_remote_size(comm: MPI_Comm, size: *mut c_int) -> c_int;
    pub fn MPI_Comm_set_attr(comm: MPI_Comm, comm_keyval: c_int,
    attribute_val: *mut c_void) -> c_int;
    pub fn MPI_Comm_set_errhandler(comm: MPI_Comm, errhandler: MPI_Errhandler) -> c_int;
    pub fn MPI_Comm_set_info(comm: MPI_Comm, info: MPI_Info) -> c_int;
    pub fn MPI_Comm_set_name(comm: MPI_Comm, comm_name: *const c_char) -> c_int;
    pub fn MPI_Comm_size(comm: MPI_Comm, size: *mut c_int) -> c_int;
    pub fn MPI_Comm_spawn(command: *const c_char, argv: *mut *mut c_char, maxprocs: c_int,
    info: MPI_Info, root: c_int, comm: MPI_Comm, intercomm: *mut MPI_Comm,
    array_of_errcodes: *mut c_int) -> c_int;
    pub fn MPI_Comm_spawn_multiple(count: c_int, array_of_commands: *mut *mut c_char,
    array_of_argv: *mut *mut *mut c_char, array_of_maxprocs: *const c_int,
    array_of_info: *const MPI_Info, root: c_int, comm: MPI_Comm, intercomm: *mut MPI_Comm,
    array_of_errcodes: *mut c_int) -> c_int;
    pub fn MPI_Comm_split(comm: MPI_Comm, color: c_int, key: c_int,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_split_type(comm: MPI_Comm, split_type: c_int, key: c_int, info: MPI_Info,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int) -> c_int;
    pub fn MPI_Comm_toint(comm: MPI_Comm) -> c_int;
    pub fn MPI_Compare_and_swap(origin_addr: *const c_void, compare_addr: *const c_void,
    result_addr: *mut c_void, datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    win: MPI_Win) -> c_int;
    pub fn MPI_Dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) -> c_int;
    pub fn MPI_Dist_graph_create(comm_old: MPI_Comm, n: c_int, sources: *const c_int,
    degrees: *const c_int, destinations: *const c_int, weights: *const c_int, info: MPI_Info,
    reorder: c_int, comm_dist_graph: *mut MPI_Comm) -> c_int;
    pub fn MPI_Dist_graph_create_adjacent(comm_old: MPI_Comm, indegree: c_int,
    sources: *const c_int, sourceweights: *const c_int, outdegree: c_int,
    destinations: *const c_int, destweights: *const c_int, info: MPI_Info, reorder: c_int,
    comm_dist_graph: *mut MPI_Comm) -> c_int;
    pub fn MPI_Dist_graph_neighbors(comm: MPI_Comm, maxindegree: c_int, sources: *mut c_int,
    sourceweights: *mut c_int, maxoutdegree: c_int, destinations: *mut c_int,
    destweights: *mut c_int) -> c_int;
    pub fn MPI_Dist_graph_neighbors_count(comm: MPI_Comm, indegree: *mut c_int,
    outdegree: *mut c_int, weighted: *mut c_int) -> c_int;
    pub fn MPI_Errhandler_free(errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn MPI_Errhandler_fromint(errhandler: c_int) -> MPI_Errhandler;
    pub fn MPI_Errhandler_toint(errhandler: MPI_Errhandler) -> c_int;
    pub fn MPI_Error_class(errorcode: c_int, errorclass: *mut c_int) -> c_int;
    pub fn MPI_Error_string(errorcode: c_int, string: *mut c_char,
    resultlen: *mut c_int) -> c_int;
    pub fn MPI_Exscan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn MPI_Exscan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn MPI_Exscan_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Exscan_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Fetch_and_op(origin_addr: *const c_void, result_addr: *mut c_void,
    datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint, op: MPI_Op,
    win: MPI_Win) -> c_int;
    pub fn MPI_File_call_errhandler(fh: MPI_File, errorcode: c_int) -> c_int;
    pub fn MPI_File_close(fh: *mut MPI_File) -> c_int;
    pub fn MPI_File_create_errhandler(file_errhandler_fn: MPI_File_errhandler_function,
    errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn MPI_File_delete(filename: *const c_char, info: MPI_Info) -> c_int;
    pub fn MPI_File_fromint(file: c_int) -> MPI_File;
    pub fn MPI_File_get_amode(fh: MPI_File, amode: *mut c_int) -> c_int;
    pub fn MPI_File_get_atomicity(fh: MPI_File, flag: *mut c_int) -> c_int;
    pub fn MPI_File_get_byte_offset(fh: MPI_File, offset: MPI_Offset,
    disp: *mut MPI_Offset) -> c_int;
    pub fn MPI_File_get_errhandler(file: MPI_File, errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn MPI_File_get_group(fh: MPI_File, group: *mut MPI_Group) -> c_int;
    pub fn MPI_File_get_info(fh: MPI_File, info_used: *mut MPI_Info) -> c_int;
    pub fn MPI_File_get_position(fh: MPI_File, offset: *mut MPI_Offset) -> c_int;
    pub fn MPI_File_get_position_shared(fh: MPI_File, offset: *mut MPI_Offset) -> c_int;
    pub fn MPI_File_get_size(fh: MPI_File, size: *mut MPI_Offset) -> c_int;
    pub fn MPI_File_get_type_extent(fh: MPI_File, datatype: MPI_Datatype,
    extent: *mut MPI_Aint) -> c_int;
    pub fn MPI_File_get_type_extent_c(fh: MPI_File, datatype: MPI_Datatype,
    extent: *mut MPI_Count) -> c_int;
    pub fn MPI_File_get_view(fh: MPI_File, disp: *mut MPI_Offset, etype: *mut MPI_Datatype,
    filetype: *mut MPI_Datatype, datarep: *mut c_char) -> c_int;
    pub fn MPI_File_iread(fh: MPI_File, buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iread_all(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iread_all_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iread_at(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iread_at_all(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: c_int, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iread_at_all_c(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: MPI_Count, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iread_at_c(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: MPI_Count, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iread_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iread_shared(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iread_shared_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iwrite(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iwrite_all(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iwrite_all_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iwrite_at(fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iwrite_at_all(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: c_int, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iwrite_at_all_c(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: MPI_Count, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iwrite_at_c(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: MPI_Count, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iwrite_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iwrite_shared(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_iwrite_shared_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn MPI_File_open(comm: MPI_Comm, filename: *const c_char, amode: c_int, info: MPI_Info,
    fh: *mut MPI_File) -> c_int;
    pub fn MPI_File_preallocate(fh: MPI_File, size: MPI_Offset) -> c_int;
    pub fn MPI_File_read(fh: MPI_File, buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_all(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_all_begin(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_read_all_begin_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_read_all_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_all_end(fh: MPI_File, buf: *mut c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_at(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_at_all(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_at_all_begin(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: c_int, datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_read_at_all_begin_c(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: MPI_Count, datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_read_at_all_c(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: MPI_Count, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_at_all_end(fh: MPI_File, buf: *mut c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_at_c(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: MPI_Count, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_ordered(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_ordered_begin(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_read_ordered_begin_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_read_ordered_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_ordered_end(fh: MPI_File, buf: *mut c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_shared(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_read_shared_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_seek(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> c_int;
    pub fn MPI_File_seek_shared(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> c_int;
    pub fn MPI_File_set_atomicity(fh: MPI_File, flag: c_int) -> c_int;
    pub fn MPI_File_set_errhandler(file: MPI_File, errhandler: MPI_Errhandler) -> c_int;
    pub fn MPI_File_set_info(fh: MPI_File, info: MPI_Info) -> c_int;
    pub fn MPI_File_set_size(fh: MPI_File, size: MPI_Offset) -> c_int;
    pub fn MPI_File_set_view(fh: MPI_File, disp: MPI_Offset, etype: MPI_Datatype,
    filetype: MPI_Datatype, datarep: *const c_char, info: MPI_Info) -> c_int;
    pub fn MPI_File_sync(fh: MPI_File) -> c_int;
    pub fn MPI_File_toint(file: MPI_File) -> c_int;
    pub fn MPI_File_write(fh: MPI_File, buf: *const c_void, count: c_int, datatype: MPI_Datatype,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_all(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_all_begin(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_write_all_begin_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_write_all_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_all_end(fh: MPI_File, buf: *const c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_at(fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_at_all(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: c_int, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_at_all_begin(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: c_int, datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_write_at_all_begin_c(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: MPI_Count, datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_write_at_all_c(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: MPI_Count, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_at_all_end(fh: MPI_File, buf: *const c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_at_c(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: MPI_Count, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_ordered(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_ordered_begin(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_write_ordered_begin_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype) -> c_int;
    pub fn MPI_File_write_ordered_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_ordered_end(fh: MPI_File, buf: *const c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_shared(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_File_write_shared_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn MPI_Finalize() -> c_int;
    pub fn MPI_Finalized(flag: *mut c_int) -> c_int;
    pub fn MPI_Free_mem(base: *mut c_void) -> c_int;
    pub fn MPI_Gather(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Gather_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Gather_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Gather_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Gatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Gatherv_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const MPI_Count, displs: *const MPI_Aint,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Gatherv_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Gatherv_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Get(origin_addr: *mut c_void, origin_count: c_int, origin_datatype: MPI_Datatype,
    target_rank: c_int, target_disp: MPI_Aint, target_count: c_int,
    target_datatype: MPI_Datatype, win: MPI_Win) -> c_int;
    pub fn MPI_Get_accumulate(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, result_addr: *mut c_void, result_count: c_int,
    result_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win) -> c_int;
    pub fn MPI_Get_accumulate_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, result_addr: *mut c_void, result_count: MPI_Count,
    result_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win) -> c_int;
    pub fn MPI_Get_address(location: *const c_void, address: *mut MPI_Aint) -> c_int;
    pub fn MPI_Get_c(origin_addr: *mut c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, win: MPI_Win) -> c_int;
    pub fn MPI_Get_count(status: *const MPI_Status, datatype: MPI_Datatype,
    count: *mut c_int) -> c_int;
    pub fn MPI_Get_count_c(status: *const MPI_Status, datatype: MPI_Datatype,
    count: *mut MPI_Count) -> c_int;
    pub fn MPI_Get_elements(status: *const MPI_Status, datatype: MPI_Datatype,
    count: *mut c_int) -> c_int;
    pub fn MPI_Get_elements_c(status: *const MPI_Status, datatype: MPI_Datatype,
    count: *mut MPI_Count) -> c_int;
    pub fn MPI_Get_elements_x(status: *const MPI_Status, datatype: MPI_Datatype,
    count: *mut MPI_Count) -> c_int;
    pub fn MPI_Get_hw_resource_info(hw_info: *mut MPI_Info) -> c_int;
    pub fn MPI_Get_library_version(version: *mut c_char, resultlen: *mut c_int) -> c_int;
    pub fn MPI_Get_processor_name(name: *mut c_char, resultlen: *mut c_int) -> c_int;
    pub fn MPI_Get_version(version: *mut c_int, subversion: *mut c_int) -> c_int;
    pub fn MPI_Graph_create(comm_old: MPI_Comm, nnodes: c_int, indx: *const c_int,
    edges: *const c_int, reorder: c_int, comm_graph: *mut MPI_Comm) -> c_int;
    pub fn MPI_Graph_get(comm: MPI_Comm, maxindex: c_int, maxedges: c_int, indx: *mut c_int,
    edges: *mut c_int) -> c_int;
    pub fn MPI_Graph_map(comm: MPI_Comm, nnodes: c_int, indx: *const c_int, edges: *const c_int,
    newrank: *mut c_int) -> c_int;
    pub fn MPI_Graph_neighbors(comm: MPI_Comm, rank: c_int, maxneighbors: c_int,
    neighbors: *mut c_int) -> c_int;
    pub fn MPI_Graph_neighbors_count(comm: MPI_Comm, rank: c_int,
    nneighbors: *mut c_int) -> c_int;
    pub fn MPI_Graphdims_get(comm: MPI_Comm, nnodes: *mut c_int, nedges: *mut c_int) -> c_int;
    pub fn MPI_Grequest_complete(request: MPI_Request) -> c_int;
    pub fn MPI_Grequest_start(query_fn: MPI_Grequest_query_function,
    free_fn: MPI_Grequest_free_function, cancel_fn: MPI_Grequest_cancel_function,
    extra_state: *mut c_void, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Group_compare(group1: MPI_Group, group2: MPI_Group, result: *mut c_int) -> c_int;
    pub fn MPI_Group_difference(group1: MPI_Group, group2: MPI_Group,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn MPI_Group_excl(group: MPI_Group, n: c_int, ranks: *const c_int,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn MPI_Group_free(group: *mut MPI_Group) -> c_int;
    pub fn MPI_Group_from_session_pset(session: MPI_Session, pset_name: *const c_char,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn MPI_Group_fromint(group: c_int) -> MPI_Group;
    pub fn MPI_Group_incl(group: MPI_Group, n: c_int, ranks: *const c_int,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn MPI_Group_intersection(group1: MPI_Group, group2: MPI_Group,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn MPI_Group_range_excl(group: MPI_Group, n: c_int, ranges: *mut [c_int; 3],
    newgroup: *mut MPI_Group) -> c_int;
    pub fn MPI_Group_range_incl(group: MPI_Group, n: c_int, ranges: *mut [c_int; 3],
    newgroup: *mut MPI_Group) -> c_int;
    pub fn MPI_Group_rank(group: MPI_Group, rank: *mut c_int) -> c_int;
    pub fn MPI_Group_size(group: MPI_Group, size: *mut c_int) -> c_int;
    pub fn MPI_Group_toint(group: MPI_Group) -> c_int;
    pub fn MPI_Group_translate_ranks(group1: MPI_Group, n: c_int, ranks1: *const c_int,
    group2: MPI_Group, ranks2: *mut c_int) -> c_int;
    pub fn MPI_Group_union(group1: MPI_Group, group2: MPI_Group,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn MPI_Iallgather(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iallgather_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iallgatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iallgatherv_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iallreduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iallreduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ialltoall(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ialltoall_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ialltoallv(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ialltoallv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ialltoallw(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ialltoallw_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ibarrier(comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ibcast(buffer: *mut c_void, count: c_int, datatype: MPI_Datatype, root: c_int,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ibcast_c(buffer: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ibsend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ibsend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iexscan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iexscan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Igather(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Igather_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Igatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Igatherv_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const MPI_Count, displs: *const MPI_Aint,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Improbe(source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int,
    message: *mut MPI_Message, status: *mut MPI_Status) -> c_int;
    pub fn MPI_Imrecv(buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    message: *mut MPI_Message, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Imrecv_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    message: *mut MPI_Message, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ineighbor_allgather(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ineighbor_allgather_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ineighbor_allgatherv(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int,
    recvtype: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ineighbor_allgatherv_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ineighbor_alltoall(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ineighbor_alltoall_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ineighbor_alltoallv(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ineighbor_alltoallv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ineighbor_alltoallw(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ineighbor_alltoallw_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Info_create(info: *mut MPI_Info) -> c_int;
    pub fn MPI_Info_create_env(argc: c_int, argv: *mut *mut c_char,
    info: *mut MPI_Info) -> c_int;
    pub fn MPI_Info_delete(info: MPI_Info, key: *const c_char) -> c_int;
    pub fn MPI_Info_dup(info: MPI_Info, newinfo: *mut MPI_Info) -> c_int;
    pub fn MPI_Info_free(info: *mut MPI_Info) -> c_int;
    pub fn MPI_Info_fromint(info: c_int) -> MPI_Info;
    pub fn MPI_Info_get(info: MPI_Info, key: *const c_char, valuelen: c_int, value: *mut c_char,
    flag: *mut c_int) -> c_int;
    pub fn MPI_Info_get_nkeys(info: MPI_Info, nkeys: *mut c_int) -> c_int;
    pub fn MPI_Info_get_nthkey(info: MPI_Info, n: c_int, key: *mut c_char) -> c_int;
    pub fn MPI_Info_get_string(info: MPI_Info, key: *const c_char, buflen: *mut c_int,
    value: *mut c_char, flag: *mut c_int) -> c_int;
    pub fn MPI_Info_get_valuelen(info: MPI_Info, key: *const c_char, valuelen: *mut c_int,
    flag: *mut c_int) -> c_int;
    pub fn MPI_Info_set(info: MPI_Info, key: *const c_char, value: *const c_char) -> c_int;
    pub fn MPI_Info_toint(info: MPI_Info) -> c_int;
    pub fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int;
    pub fn MPI_Init_thread(argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int,
    provided: *mut c_int) -> c_int;
    pub fn MPI_Initialized(flag: *mut c_int) -> c_int;
    pub fn MPI_Intercomm_create(local_comm: MPI_Comm, local_leader: c_int, peer_comm: MPI_Comm,
    remote_leader: c_int, tag: c_int, newintercomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Intercomm_create_from_groups(local_group: MPI_Group, local_leader: c_int,
    remote_group: MPI_Group, remote_leader: c_int, stringtag: *const c_char, info: MPI_Info,
    errhandler: MPI_Errhandler, newintercomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Intercomm_merge(intercomm: MPI_Comm, high: c_int,
    newintracomm: *mut MPI_Comm) -> c_int;
    pub fn MPI_Iprobe(source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_Irecv(buf: *mut c_void, count: c_int, datatype: MPI_Datatype, source: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Irecv_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype, source: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ireduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ireduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ireduce_scatter(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ireduce_scatter_block(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ireduce_scatter_block_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ireduce_scatter_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Irsend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Irsend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Is_thread_main(flag: *mut c_int) -> c_int;
    pub fn MPI_Iscan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iscan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iscatter(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iscatter_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iscatterv(sendbuf: *const c_void, sendcounts: *const c_int, displs: *const c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Iscatterv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    displs: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Isend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Isend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Isendrecv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    source: c_int, recvtag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Isendrecv_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: MPI_Count,
    recvtype: MPI_Datatype, source: c_int, recvtag: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Isendrecv_replace(buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Isendrecv_replace_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Issend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Issend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Keyval_create(copy_fn: MPI_Copy_function, delete_fn: MPI_Delete_function,
    keyval: *mut c_int, extra_state: *mut c_void) -> c_int;
    pub fn MPI_Keyval_free(keyval: *mut c_int) -> c_int;
    pub fn MPI_Lookup_name(service_name: *const c_char, info: MPI_Info,
    port_name: *mut c_char) -> c_int;
    pub fn MPI_Message_fromint(message: c_int) -> MPI_Message;
    pub fn MPI_Message_toint(message: MPI_Message) -> c_int;
    pub fn MPI_Mprobe(source: c_int, tag: c_int, comm: MPI_Comm, message: *mut MPI_Message,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_Mrecv(buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    message: *mut MPI_Message, status: *mut MPI_Status) -> c_int;
    pub fn MPI_Mrecv_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    message: *mut MPI_Message, status: *mut MPI_Status) -> c_int;
    pub fn MPI_Neighbor_allgather(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Neighbor_allgather_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Neighbor_allgather_init(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Neighbor_allgather_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Neighbor_allgatherv(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int,
    recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn MPI_Neighbor_allgatherv_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn MPI_Neighbor_allgatherv_init(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int,
    recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Neighbor_allgatherv_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Neighbor_alltoall(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Neighbor_alltoall_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Neighbor_alltoall_init(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Neighbor_alltoall_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Neighbor_alltoallv(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Neighbor_alltoallv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Neighbor_alltoallv_init(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Neighbor_alltoallv_init_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Neighbor_alltoallw(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Neighbor_alltoallw_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Neighbor_alltoallw_init(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Neighbor_alltoallw_init_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Op_commutative(op: MPI_Op, commute: *mut c_int) -> c_int;
    pub fn MPI_Op_create(user_fn: MPI_User_function, commute: c_int, op: *mut MPI_Op) -> c_int;
    pub fn MPI_Op_create_c(user_fn: MPI_User_function_c, commute: c_int,
    op: *mut MPI_Op) -> c_int;
    pub fn MPI_Op_free(op: *mut MPI_Op) -> c_int;
    pub fn MPI_Op_fromint(op: c_int) -> MPI_Op;
    pub fn MPI_Op_toint(op: MPI_Op) -> c_int;
    pub fn MPI_Open_port(info: MPI_Info, port_name: *mut c_char) -> c_int;
    pub fn MPI_Pack(inbuf: *const c_void, incount: c_int, datatype: MPI_Datatype,
    outbuf: *mut c_void, outsize: c_int, position: *mut c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Pack_c(inbuf: *const c_void, incount: MPI_Count, datatype: MPI_Datatype,
    outbuf: *mut c_void, outsize: MPI_Count, position: *mut MPI_Count, comm: MPI_Comm) -> c_int;
    pub fn MPI_Pack_external(datarep: *const c_char, inbuf: *const c_void, incount: c_int,
    datatype: MPI_Datatype, outbuf: *mut c_void, outsize: MPI_Aint,
    position: *mut MPI_Aint) -> c_int;
    pub fn MPI_Pack_external_c(datarep: *const c_char, inbuf: *const c_void, incount: MPI_Count,
    datatype: MPI_Datatype, outbuf: *mut c_void, outsize: MPI_Count,
    position: *mut MPI_Count) -> c_int;
    pub fn MPI_Pack_external_size(datarep: *const c_char, incount: c_int, datatype: MPI_Datatype,
    size: *mut MPI_Aint) -> c_int;
    pub fn MPI_Pack_external_size_c(datarep: *const c_char, incount: MPI_Count,
    datatype: MPI_Datatype, size: *mut MPI_Count) -> c_int;
    pub fn MPI_Pack_size(incount: c_int, datatype: MPI_Datatype, comm: MPI_Comm,
    size: *mut c_int) -> c_int;
    pub fn MPI_Pack_size_c(incount: MPI_Count, datatype: MPI_Datatype, comm: MPI_Comm,
    size: *mut MPI_Count) -> c_int;
    pub fn MPI_Parrived(request: MPI_Request, partition: c_int, flag: *mut c_int) -> c_int;
    pub fn MPI_Pcontrol(level: c_int, ...) -> c_int;
    pub fn MPI_Pready(partition: c_int, request: MPI_Request) -> c_int;
    pub fn MPI_Pready_list(length: c_int, array_of_partitions: *const c_int,
    request: MPI_Request) -> c_int;
    pub fn MPI_Pready_range(partition_low: c_int, partition_high: c_int,
    request: MPI_Request) -> c_int;
    pub fn MPI_Precv_init(buf: *mut c_void, partitions: c_int, count: MPI_Count,
    datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Precv_init_c(buf: *mut c_void, partitions: c_int, count: MPI_Count,
    datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Probe(source: c_int, tag: c_int, comm: MPI_Comm,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_Psend_init(buf: *const c_void, partitions: c_int, count: MPI_Count,
    datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Psend_init_c(buf: *const c_void, partitions: c_int, count: MPI_Count,
    datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Publish_name(service_name: *const c_char, info: MPI_Info,
    port_name: *const c_char) -> c_int;
    pub fn MPI_Put(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, win: MPI_Win) -> c_int;
    pub fn MPI_Put_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, win: MPI_Win) -> c_int;
    pub fn MPI_Query_thread(provided: *mut c_int) -> c_int;
    pub fn MPI_Raccumulate(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Raccumulate_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Recv(buf: *mut c_void, count: c_int, datatype: MPI_Datatype, source: c_int,
    tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) -> c_int;
    pub fn MPI_Recv_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype, source: c_int,
    tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) -> c_int;
    pub fn MPI_Recv_init(buf: *mut c_void, count: c_int, datatype: MPI_Datatype, source: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Recv_init_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    source: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Reduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Reduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Reduce_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Reduce_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Reduce_local(inbuf: *const c_void, inoutbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op) -> c_int;
    pub fn MPI_Reduce_local_c(inbuf: *const c_void, inoutbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op) -> c_int;
    pub fn MPI_Reduce_scatter(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn MPI_Reduce_scatter_block(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn MPI_Reduce_scatter_block_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn MPI_Reduce_scatter_block_init(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Reduce_scatter_block_init_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Reduce_scatter_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn MPI_Reduce_scatter_init(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Reduce_scatter_init_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Register_datarep(datarep: *const c_char,
    read_conversion_fn: MPI_Datarep_conversion_function,
    write_conversion_fn: MPI_Datarep_conversion_function,
    dtype_file_extent_fn: MPI_Datarep_extent_function, extra_state: *mut c_void) -> c_int;
    pub fn MPI_Register_datarep_c(datarep: *const c_char,
    read_conversion_fn: MPI_Datarep_conversion_function_c,
    write_conversion_fn: MPI_Datarep_conversion_function_c,
    dtype_file_extent_fn: MPI_Datarep_extent_function, extra_state: *mut c_void) -> c_int;
    pub fn MPI_Remove_error_class(errorclass: c_int) -> c_int;
    pub fn MPI_Remove_error_code(errorcode: c_int) -> c_int;
    pub fn MPI_Remove_error_string(errorcode: c_int) -> c_int;
    pub fn MPI_Request_free(request: *mut MPI_Request) -> c_int;
    pub fn MPI_Request_fromint(request: c_int) -> MPI_Request;
    pub fn MPI_Request_get_status(request: MPI_Request, flag: *mut c_int,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_Request_get_status_all(count: c_int, array_of_requests: *const MPI_Request,
    flag: *mut c_int, array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn MPI_Request_get_status_any(count: c_int, array_of_requests: *const MPI_Request,
    indx: *mut c_int, flag: *mut c_int, status: *mut MPI_Status) -> c_int;
    pub fn MPI_Request_get_status_some(incount: c_int, array_of_requests: *const MPI_Request,
    outcount: *mut c_int, array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn MPI_Request_toint(request: MPI_Request) -> c_int;
    pub fn MPI_Rget(origin_addr: *mut c_void, origin_count: c_int, origin_datatype: MPI_Datatype,
    target_rank: c_int, target_disp: MPI_Aint, target_count: c_int,
    target_datatype: MPI_Datatype, win: MPI_Win, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Rget_accumulate(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, result_addr: *mut c_void, result_count: c_int,
    result_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Rget_accumulate_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, result_addr: *mut c_void, result_count: MPI_Count,
    result_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Rget_c(origin_addr: *mut c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Rput(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Rput_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Rsend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Rsend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Rsend_init(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Rsend_init_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Scan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn MPI_Scan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn MPI_Scan_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Scan_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Scatter(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Scatter_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm) -> c_int;
    pub fn MPI_Scatter_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Scatter_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Scatterv(sendbuf: *const c_void, sendcounts: *const c_int, displs: *const c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Scatterv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    displs: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Scatterv_init(sendbuf: *const c_void, sendcounts: *const c_int,
    displs: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Scatterv_init_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    displs: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn MPI_Send(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Send_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Send_init(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Send_init_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Sendrecv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    source: c_int, recvtag: c_int, comm: MPI_Comm, status: *mut MPI_Status) -> c_int;
    pub fn MPI_Sendrecv_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: MPI_Count,
    recvtype: MPI_Datatype, source: c_int, recvtag: c_int, comm: MPI_Comm,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_Sendrecv_replace(buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: MPI_Comm,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_Sendrecv_replace_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: MPI_Comm,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_Session_attach_buffer(session: MPI_Session, buffer: *mut c_void,
    size: c_int) -> c_int;
    pub fn MPI_Session_attach_buffer_c(session: MPI_Session, buffer: *mut c_void,
    size: MPI_Count) -> c_int;
    pub fn MPI_Session_call_errhandler(session: MPI_Session, errorcode: c_int) -> c_int;
    pub fn MPI_Session_create_errhandler(session_errhandler_fn: MPI_Session_errhandler_function,
    errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn MPI_Session_detach_buffer(session: MPI_Session, buffer_addr: *mut c_void,
    size: *mut c_int) -> c_int;
    pub fn MPI_Session_detach_buffer_c(session: MPI_Session, buffer_addr: *mut c_void,
    size: *mut MPI_Count) -> c_int;
    pub fn MPI_Session_finalize(session: *mut MPI_Session) -> c_int;
    pub fn MPI_Session_flush_buffer(session: MPI_Session) -> c_int;
    pub fn MPI_Session_fromint(session: c_int) -> MPI_Session;
    pub fn MPI_Session_get_errhandler(session: MPI_Session,
    errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn MPI_Session_get_info(session: MPI_Session, info_used: *mut MPI_Info) -> c_int;
    pub fn MPI_Session_get_nth_pset(session: MPI_Session, info: MPI_Info, n: c_int,
    pset_len: *mut c_int, pset_name: *mut c_char) -> c_int;
    pub fn MPI_Session_get_num_psets(session: MPI_Session, info: MPI_Info,
    npset_names: *mut c_int) -> c_int;
    pub fn MPI_Session_get_pset_info(session: MPI_Session, pset_name: *const c_char,
    info: *mut MPI_Info) -> c_int;
    pub fn MPI_Session_iflush_buffer(session: MPI_Session, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Session_init(info: MPI_Info, errhandler: MPI_Errhandler,
    session: *mut MPI_Session) -> c_int;
    pub fn MPI_Session_set_errhandler(session: MPI_Session,
    errhandler: MPI_Errhandler) -> c_int;
    pub fn MPI_Session_toint(session: MPI_Session) -> c_int;
    pub fn MPI_Ssend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Ssend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn MPI_Ssend_init(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Ssend_init_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn MPI_Start(request: *mut MPI_Request) -> c_int;
    pub fn MPI_Startall(count: c_int, array_of_requests: *mut MPI_Request) -> c_int;
    pub fn MPI_Status_get_error(status: *const MPI_Status, error: *mut c_int) -> c_int;
    pub fn MPI_Status_get_source(status: *const MPI_Status, source: *mut c_int) -> c_int;
    pub fn MPI_Status_get_tag(status: *const MPI_Status, tag: *mut c_int) -> c_int;
    pub fn MPI_Status_set_cancelled(status: *mut MPI_Status, flag: c_int) -> c_int;
    pub fn MPI_Status_set_elements(status: *mut MPI_Status, datatype: MPI_Datatype,
    count: c_int) -> c_int;
    pub fn MPI_Status_set_elements_c(status: *mut MPI_Status, datatype: MPI_Datatype,
    count: MPI_Count) -> c_int;
    pub fn MPI_Status_set_elements_x(status: *mut MPI_Status, datatype: MPI_Datatype,
    count: MPI_Count) -> c_int;
    pub fn MPI_Status_set_error(status: *mut MPI_Status, error: c_int) -> c_int;
    pub fn MPI_Status_set_source(status: *mut MPI_Status, source: c_int) -> c_int;
    pub fn MPI_Status_set_tag(status: *mut MPI_Status, tag: c_int) -> c_int;
    pub fn MPI_T_category_changed(update_number: *mut c_int) -> c_int;
    pub fn MPI_T_category_get_categories(cat_index: c_int, len: c_int,
    indices: *mut c_int) -> c_int;
    pub fn MPI_T_category_get_cvars(cat_index: c_int, len: c_int, indices: *mut c_int) -> c_int;
    pub fn MPI_T_category_get_events(cat_index: c_int, len: c_int,
    indices: *mut c_int) -> c_int;
    pub fn MPI_T_category_get_index(name: *const c_char, cat_index: *mut c_int) -> c_int;
    pub fn MPI_T_category_get_info(cat_index: c_int, name: *mut c_char, name_len: *mut c_int,
    desc: *mut c_char, desc_len: *mut c_int, num_cvars: *mut c_int, num_pvars: *mut c_int,
    num_categories: *mut c_int) -> c_int;
    pub fn MPI_T_category_get_num(num_cat: *mut c_int) -> c_int;
    pub fn MPI_T_category_get_num_events(cat_index: c_int, num_events: *mut c_int) -> c_int;
    pub fn MPI_T_category_get_pvars(cat_index: c_int, len: c_int, indices: *mut c_int) -> c_int;
    pub fn MPI_T_cvar_get_index(name: *const c_char, cvar_index: *mut c_int) -> c_int;
    pub fn MPI_T_cvar_get_info(cvar_index: c_int, name: *mut c_char, name_len: *mut c_int,
    verbosity: *mut c_int, datatype: *mut MPI_Datatype, enumtype: *mut MPI_T_enum,
    desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int, scope: *mut c_int) -> c_int;
    pub fn MPI_T_cvar_get_num(num_cvar: *mut c_int) -> c_int;
    pub fn MPI_T_cvar_handle_alloc(cvar_index: c_int, obj_handle: *mut c_void,
    handle: *mut MPI_T_cvar_handle, count: *mut c_int) -> c_int;
    pub fn MPI_T_cvar_handle_free(handle: *mut MPI_T_cvar_handle) -> c_int;
    pub fn MPI_T_cvar_read(handle: MPI_T_cvar_handle, buf: *mut c_void) -> c_int;
    pub fn MPI_T_cvar_write(handle: MPI_T_cvar_handle, buf: *const c_void) -> c_int;
    pub fn MPI_T_enum_get_info(enumtype: MPI_T_enum, num: *mut c_int, name: *mut c_char,
    name_len: *mut c_int) -> c_int;
    pub fn MPI_T_enum_get_item(enumtype: MPI_T_enum, indx: c_int, value: *mut c_int,
    name: *mut c_char, name_len: *mut c_int) -> c_int;
    pub fn MPI_T_event_callback_get_info(event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety, info_used: *mut MPI_Info) -> c_int;
    pub fn MPI_T_event_callback_set_info(event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety, info: MPI_Info) -> c_int;
    pub fn MPI_T_event_copy(event_instance: MPI_T_event_instance, buffer: *mut c_void) -> c_int;
    pub fn MPI_T_event_get_index(name: *const c_char, event_index: *mut c_int) -> c_int;
    pub fn MPI_T_event_get_info(event_index: c_int, name: *mut c_char, name_len: *mut c_int,
    verbosity: *mut c_int, array_of_datatypes: *mut MPI_Datatype,
    array_of_displacements: *mut MPI_Aint, num_elements: *mut c_int, enumtype: *mut MPI_T_enum,
    info: *mut MPI_Info, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int) -> c_int;
    pub fn MPI_T_event_get_num(num_events: *mut c_int) -> c_int;
    pub fn MPI_T_event_get_source(event_instance: MPI_T_event_instance,
    source_index: *mut c_int) -> c_int;
    pub fn MPI_T_event_get_timestamp(event_instance: MPI_T_event_instance,
    event_timestamp: *mut MPI_Count) -> c_int;
    pub fn MPI_T_event_handle_alloc(event_index: c_int, obj_handle: *mut c_void, info: MPI_Info,
    event_registration: *mut MPI_T_event_registration) -> c_int;
    pub fn MPI_T_event_handle_free(event_registration: MPI_T_event_registration,
    user_data: *mut c_void, free_cb_function: MPI_T_event_free_cb_function) -> c_int;
    pub fn MPI_T_event_handle_get_info(event_registration: MPI_T_event_registration,
    info_used: *mut MPI_Info) -> c_int;
    pub fn MPI_T_event_handle_set_info(event_registration: MPI_T_event_registration,
    info: MPI_Info) -> c_int;
    pub fn MPI_T_event_read(event_instance: MPI_T_event_instance, element_index: c_int,
    buffer: *mut c_void) -> c_int;
    pub fn MPI_T_event_register_callback(event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety, info: MPI_Info, user_data: *mut c_void,
    event_cb_function: MPI_T_event_cb_function) -> c_int;
    pub fn MPI_T_event_set_dropped_handler(event_registration: MPI_T_event_registration,
    dropped_cb_function: MPI_T_event_dropped_cb_function) -> c_int;
    pub fn MPI_T_finalize() -> c_int;
    pub fn MPI_T_init_thread(required: c_int, provided: *mut c_int) -> c_int;
    pub fn MPI_T_pvar_get_index(name: *const c_char, var_class: c_int,
    pvar_index: *mut c_int) -> c_int;
    pub fn MPI_T_pvar_get_info(pvar_index: c_int, name: *mut c_char, name_len: *mut c_int,
    verbosity: *mut c_int, var_class: *mut c_int, datatype: *mut MPI_Datatype,
    enumtype: *mut MPI_T_enum, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int,
    readonly: *mut c_int, continuous: *mut c_int, atomic: *mut c_int) -> c_int;
    pub fn MPI_T_pvar_get_num(num_pvar: *mut c_int) -> c_int;
    pub fn MPI_T_pvar_handle_alloc(session: MPI_T_pvar_session, pvar_index: c_int,
    obj_handle: *mut c_void, handle: *mut MPI_T_pvar_handle, count: *mut c_int) -> c_int;
    pub fn MPI_T_pvar_handle_free(session: MPI_T_pvar_session,
    handle: *mut MPI_T_pvar_handle) -> c_int;
    pub fn MPI_T_pvar_read(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle,
    buf: *mut c_void) -> c_int;
    pub fn MPI_T_pvar_readreset(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle,
    buf: *mut c_void) -> c_int;
    pub fn MPI_T_pvar_reset(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> c_int;
    pub fn MPI_T_pvar_session_create(session: *mut MPI_T_pvar_session) -> c_int;
    pub fn MPI_T_pvar_session_free(session: *mut MPI_T_pvar_session) -> c_int;
    pub fn MPI_T_pvar_start(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> c_int;
    pub fn MPI_T_pvar_stop(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> c_int;
    pub fn MPI_T_pvar_write(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle,
    buf: *const c_void) -> c_int;
    pub fn MPI_T_source_get_info(source_index: c_int, name: *mut c_char, name_len: *mut c_int,
    desc: *mut c_char, desc_len: *mut c_int, ordering: *mut MPI_T_source_order,
    ticks_per_second: *mut MPI_Count, max_ticks: *mut MPI_Count, info: *mut MPI_Info) -> c_int;
    pub fn MPI_T_source_get_num(num_sources: *mut c_int) -> c_int;
    pub fn MPI_T_source_get_timestamp(source_index: c_int, timestamp: *mut MPI_Count) -> c_int;
    pub fn MPI_Test(request: *mut MPI_Request, flag: *mut c_int,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_Test_cancelled(status: *const MPI_Status, flag: *mut c_int) -> c_int;
    pub fn MPI_Testall(count: c_int, array_of_requests: *mut MPI_Request, flag: *mut c_int,
    array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn MPI_Testany(count: c_int, array_of_requests: *mut MPI_Request, indx: *mut c_int,
    flag: *mut c_int, status: *mut MPI_Status) -> c_int;
    pub fn MPI_Testsome(incount: c_int, array_of_requests: *mut MPI_Request,
    outcount: *mut c_int, array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn MPI_Topo_test(comm: MPI_Comm, status: *mut c_int) -> c_int;
    pub fn MPI_Type_commit(datatype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_contiguous(count: c_int, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_contiguous_c(count: MPI_Count, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_darray(size: c_int, rank: c_int, ndims: c_int,
    array_of_gsizes: *const c_int, array_of_distribs: *const c_int, array_of_dargs: *const c_int,
    array_of_psizes: *const c_int, order: c_int, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_darray_c(size: c_int, rank: c_int, ndims: c_int,
    array_of_gsizes: *const MPI_Count, array_of_distribs: *const c_int,
    array_of_dargs: *const c_int, array_of_psizes: *const c_int, order: c_int,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_f90_complex(p: c_int, r: c_int, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_f90_integer(r: c_int, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_f90_real(p: c_int, r: c_int, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_hindexed(count: c_int, array_of_blocklengths: *const c_int,
    array_of_displacements: *const MPI_Aint, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_hindexed_block(count: c_int, blocklength: c_int,
    array_of_displacements: *const MPI_Aint, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_hindexed_block_c(count: MPI_Count, blocklength: MPI_Count,
    array_of_displacements: *const MPI_Count, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_hindexed_c(count: MPI_Count, array_of_blocklengths: *const MPI_Count,
    array_of_displacements: *const MPI_Count, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_hvector(count: c_int, blocklength: c_int, stride: MPI_Aint,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_hvector_c(count: MPI_Count, blocklength: MPI_Count, stride: MPI_Count,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_indexed_block(count: c_int, blocklength: c_int,
    array_of_displacements: *const c_int, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_indexed_block_c(count: MPI_Count, blocklength: MPI_Count,
    array_of_displacements: *const MPI_Count, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_keyval(type_copy_attr_fn: MPI_Type_copy_attr_function,
    type_delete_attr_fn: MPI_Type_delete_attr_function, type_keyval: *mut c_int,
    extra_state: *mut c_void) -> c_int;
    pub fn MPI_Type_create_resized(oldtype: MPI_Datatype, lb: MPI_Aint, extent: MPI_Aint,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_resized_c(oldtype: MPI_Datatype, lb: MPI_Count, extent: MPI_Count,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_struct(count: c_int, array_of_blocklengths: *const c_int,
    array_of_displacements: *const MPI_Aint, array_of_types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_struct_c(count: MPI_Count, array_of_blocklengths: *const MPI_Count,
    array_of_displacements: *const MPI_Count, array_of_types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_subarray(ndims: c_int, array_of_sizes: *const c_int,
    array_of_subsizes: *const c_int, array_of_starts: *const c_int, order: c_int,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_create_subarray_c(ndims: c_int, array_of_sizes: *const MPI_Count,
    array_of_subsizes: *const MPI_Count, array_of_starts: *const MPI_Count, order: c_int,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_delete_attr(datatype: MPI_Datatype, type_keyval: c_int) -> c_int;
    pub fn MPI_Type_dup(oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_free(datatype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_free_keyval(type_keyval: *mut c_int) -> c_int;
    pub fn MPI_Type_fromint(datatype: c_int) -> MPI_Datatype;
    pub fn MPI_Type_get_attr(datatype: MPI_Datatype, type_keyval: c_int,
    attribute_val: *mut c_void, flag: *mut c_int) -> c_int;
    pub fn MPI_Type_get_contents(datatype: MPI_Datatype, max_integers: c_int,
    max_addresses: c_int, max_datatypes: c_int, array_of_integers: *mut c_int,
    array_of_addresses: *mut MPI_Aint, array_of_datatypes: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_get_contents_c(datatype: MPI_Datatype, max_integers: MPI_Count,
    max_addresses: MPI_Count, max_large_counts: MPI_Count, max_datatypes: MPI_Count,
    array_of_integers: *mut c_int, array_of_addresses: *mut MPI_Aint,
    array_of_large_counts: *mut MPI_Count, array_of_datatypes: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_get_envelope(datatype: MPI_Datatype, num_integers: *mut c_int,
    num_addresses: *mut c_int, num_datatypes: *mut c_int, combiner: *mut c_int) -> c_int;
    pub fn MPI_Type_get_envelope_c(datatype: MPI_Datatype, num_integers: *mut MPI_Count,
    num_addresses: *mut MPI_Count, num_large_counts: *mut MPI_Count,
    num_datatypes: *mut MPI_Count, combiner: *mut c_int) -> c_int;
    pub fn MPI_Type_get_extent(datatype: MPI_Datatype, lb: *mut MPI_Aint,
    extent: *mut MPI_Aint) -> c_int;
    pub fn MPI_Type_get_extent_c(datatype: MPI_Datatype, lb: *mut MPI_Count,
    extent: *mut MPI_Count) -> c_int;
    pub fn MPI_Type_get_extent_x(datatype: MPI_Datatype, lb: *mut MPI_Count,
    extent: *mut MPI_Count) -> c_int;
    pub fn MPI_Type_get_name(datatype: MPI_Datatype, type_name: *mut c_char,
    resultlen: *mut c_int) -> c_int;
    pub fn MPI_Type_get_true_extent(datatype: MPI_Datatype, true_lb: *mut MPI_Aint,
    true_extent: *mut MPI_Aint) -> c_int;
    pub fn MPI_Type_get_true_extent_c(datatype: MPI_Datatype, true_lb: *mut MPI_Count,
    true_extent: *mut MPI_Count) -> c_int;
    pub fn MPI_Type_get_true_extent_x(datatype: MPI_Datatype, true_lb: *mut MPI_Count,
    true_extent: *mut MPI_Count) -> c_int;
    pub fn MPI_Type_get_value_index(value_type: MPI_Datatype, index_type: MPI_Datatype,
    pair_type: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_indexed(count: c_int, array_of_blocklengths: *const c_int,
    array_of_displacements: *const c_int, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_indexed_c(count: MPI_Count, array_of_blocklengths: *const MPI_Count,
    array_of_displacements: *const MPI_Count, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_match_size(typeclass: c_int, size: c_int,
    datatype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_set_attr(datatype: MPI_Datatype, type_keyval: c_int,
    attribute_val: *mut c_void) -> c_int;
    pub fn MPI_Type_set_name(datatype: MPI_Datatype, type_name: *const c_char) -> c_int;
    pub fn MPI_Type_size(datatype: MPI_Datatype, size: *mut c_int) -> c_int;
    pub fn MPI_Type_size_c(datatype: MPI_Datatype, size: *mut MPI_Count) -> c_int;
    pub fn MPI_Type_size_x(datatype: MPI_Datatype, size: *mut MPI_Count) -> c_int;
    pub fn MPI_Type_toint(datatype: MPI_Datatype) -> c_int;
    pub fn MPI_Type_vector(count: c_int, blocklength: c_int, stride: c_int,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Type_vector_c(count: MPI_Count, blocklength: MPI_Count, stride: MPI_Count,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn MPI_Unpack(inbuf: *const c_void, insize: c_int, position: *mut c_int,
    outbuf: *mut c_void, outcount: c_int, datatype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn MPI_Unpack_c(inbuf: *const c_void, insize: MPI_Count, position: *mut MPI_Count,
    outbuf: *mut c_void, outcount: MPI_Count, datatype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn MPI_Unpack_external(datarep: *const c_char, inbuf: *const c_void, insize: MPI_Aint,
    position: *mut MPI_Aint, outbuf: *mut c_void, outcount: c_int,
    datatype: MPI_Datatype) -> c_int;
    pub fn MPI_Unpack_external_c(datarep: *const c_char, inbuf: *const c_void, insize: MPI_Count,
    position: *mut MPI_Count, outbuf: *mut c_void, outcount: MPI_Count,
    datatype: MPI_Datatype) -> c_int;
    pub fn MPI_Unpublish_name(service_name: *const c_char, info: MPI_Info,
    port_name: *const c_char) -> c_int;
    pub fn MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) -> c_int;
    pub fn MPI_Waitall(count: c_int, array_of_requests: *mut MPI_Request,
    array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn MPI_Waitany(count: c_int, array_of_requests: *mut MPI_Request, indx: *mut c_int,
    status: *mut MPI_Status) -> c_int;
    pub fn MPI_Waitsome(incount: c_int, array_of_requests: *mut MPI_Request,
    outcount: *mut c_int, array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn MPI_Win_allocate(size: MPI_Aint, disp_unit: c_int, info: MPI_Info, comm: MPI_Comm,
    baseptr: *mut c_void, win: *mut MPI_Win) -> c_int;
    pub fn MPI_Win_allocate_c(size: MPI_Aint, disp_unit: MPI_Aint, info: MPI_Info,
    comm: MPI_Comm, baseptr: *mut c_void, win: *mut MPI_Win) -> c_int;
    pub fn MPI_Win_allocate_shared(size: MPI_Aint, disp_unit: c_int, info: MPI_Info,
    comm: MPI_Comm, baseptr: *mut c_void, win: *mut MPI_Win) -> c_int;
    pub fn MPI_Win_allocate_shared_c(size: MPI_Aint, disp_unit: MPI_Aint, info: MPI_Info,
    comm: MPI_Comm, baseptr: *mut c_void, win: *mut MPI_Win) -> c_int;
    pub fn MPI_Win_attach(win: MPI_Win, base: *mut c_void, size: MPI_Aint) -> c_int;
    pub fn MPI_Win_call_errhandler(win: MPI_Win, errorcode: c_int) -> c_int;
    pub fn MPI_Win_complete(win: MPI_Win) -> c_int;
    pub fn MPI_Win_create(base: *mut c_void, size: MPI_Aint, disp_unit: c_int, info: MPI_Info,
    comm: MPI_Comm, win: *mut MPI_Win) -> c_int;
    pub fn MPI_Win_create_c(base: *mut c_void, size: MPI_Aint, disp_unit: MPI_Aint,
    info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win) -> c_int;
    pub fn MPI_Win_create_dynamic(info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win) -> c_int;
    pub fn MPI_Win_create_errhandler(win_errhandler_fn: MPI_Win_errhandler_function,
    errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn MPI_Win_create_keyval(win_copy_attr_fn: MPI_Win_copy_attr_function,
    win_delete_attr_fn: MPI_Win_delete_attr_function, win_keyval: *mut c_int,
    extra_state: *mut c_void) -> c_int;
    pub fn MPI_Win_delete_attr(win: MPI_Win, win_keyval: c_int) -> c_int;
    pub fn MPI_Win_detach(win: MPI_Win, base: *const c_void) -> c_int;
    pub fn MPI_Win_fence(assert: c_int, win: MPI_Win) -> c_int;
    pub fn MPI_Win_flush(rank: c_int, win: MPI_Win) -> c_int;
    pub fn MPI_Win_flush_all(win: MPI_Win) -> c_int;
    pub fn MPI_Win_flush_local(rank: c_int, win: MPI_Win) -> c_int;
    pub fn MPI_Win_flush_local_all(win: MPI_Win) -> c_int;
    pub fn MPI_Win_free(win: *mut MPI_Win) -> c_int;
    pub fn MPI_Win_free_keyval(win_keyval: *mut c_int) -> c_int;
    pub fn MPI_Win_fromint(win: c_int) -> MPI_Win;
    pub fn MPI_Win_get_attr(win: MPI_Win, win_keyval: c_int, attribute_val: *mut c_void,
    flag: *mut c_int) -> c_int;
    pub fn MPI_Win_get_errhandler(win: MPI_Win, errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn MPI_Win_get_group(win: MPI_Win, group: *mut MPI_Group) -> c_int;
    pub fn MPI_Win_get_info(win: MPI_Win, info_used: *mut MPI_Info) -> c_int;
    pub fn MPI_Win_get_name(win: MPI_Win, win_name: *mut c_char,
    resultlen: *mut c_int) -> c_int;
    pub fn MPI_Win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: MPI_Win) -> c_int;
    pub fn MPI_Win_lock_all(assert: c_int, win: MPI_Win) -> c_int;
    pub fn MPI_Win_post(group: MPI_Group, assert: c_int, win: MPI_Win) -> c_int;
    pub fn MPI_Win_set_attr(win: MPI_Win, win_keyval: c_int,
    attribute_val: *mut c_void) -> c_int;
    pub fn MPI_Win_set_errhandler(win: MPI_Win, errhandler: MPI_Errhandler) -> c_int;
    pub fn MPI_Win_set_info(win: MPI_Win, info: MPI_Info) -> c_int;
    pub fn MPI_Win_set_name(win: MPI_Win, win_name: *const c_char) -> c_int;
    pub fn MPI_Win_shared_query(win: MPI_Win, rank: c_int, size: *mut MPI_Aint,
    disp_unit: *mut c_int, baseptr: *mut c_void) -> c_int;
    pub fn MPI_Win_shared_query_c(win: MPI_Win, rank: c_int, size: *mut MPI_Aint,
    disp_unit: *mut MPI_Aint, baseptr: *mut c_void) -> c_int;
    pub fn MPI_Win_start(group: MPI_Group, assert: c_int, win: MPI_Win) -> c_int;
    pub fn MPI_Win_sync(win: MPI_Win) -> c_int;
    pub fn MPI_Win_test(win: MPI_Win, flag: *mut c_int) -> c_int;
    pub fn MPI_Win_toint(win: MPI_Win) -> c_int;
    pub fn MPI_Win_unlock(rank: c_int, win: MPI_Win) -> c_int;
    pub fn MPI_Win_unlock_all(win: MPI_Win) -> c_int;
    pub fn MPI_Win_wait(win: MPI_Win) -> c_int;
    pub fn MPI_Wtick() -> c_double;
    pub fn MPI_Wtime() -> c_double;
    pub fn PMPI_Abi_get_fortran_booleans(logical_size: c_int, logical_true: *mut c_void,
    logical_false: *mut c_void, is_set: *mut c_int) -> c_int;
    pub fn PMPI_Abi_get_fortran_info(info: *mut MPI_Info) -> c_int;
    pub fn PMPI_Abi_get_info(info: *mut MPI_Info) -> c_int;
    pub fn PMPI_Abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) -> c_int;
    pub fn PMPI_Abi_set_fortran_booleans(logical_size: c_int, logical_true: *mut c_void,
    logical_false: *mut c_void) -> c_int;
    pub fn PMPI_Abi_set_fortran_info(info: MPI_Info) -> c_int;
    pub fn PMPI_Abort(comm: MPI_Comm, errorcode: c_int) -> c_int;
    pub fn PMPI_Accumulate(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win) -> c_int;
    pub fn PMPI_Accumulate_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win) -> c_int;
    pub fn PMPI_Add_error_class(errorclass: *mut c_int) -> c_int;
    pub fn PMPI_Add_error_code(errorclass: c_int, errorcode: *mut c_int) -> c_int;
    pub fn PMPI_Add_error_string(errorcode: c_int, string: *const c_char) -> c_int;
    pub fn PMPI_Aint_add(base: MPI_Aint, disp: MPI_Aint) -> MPI_Aint;
    pub fn PMPI_Aint_diff(addr1: MPI_Aint, addr2: MPI_Aint) -> MPI_Aint;
    pub fn PMPI_Allgather(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Allgather_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Allgather_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Allgather_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Allgatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Allgatherv_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Allgatherv_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Allgatherv_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Alloc_mem(size: MPI_Aint, info: MPI_Info, baseptr: *mut c_void) -> c_int;
    pub fn PMPI_Allreduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Allreduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Allreduce_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Allreduce_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Alltoall(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Alltoall_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Alltoall_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Alltoall_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Alltoallv(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Alltoallv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Alltoallv_init(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Alltoallv_init_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Alltoallw(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Alltoallw_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Alltoallw_init(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Alltoallw_init_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Attr_delete(comm: MPI_Comm, keyval: c_int) -> c_int;
    pub fn PMPI_Attr_get(comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void,
    flag: *mut c_int) -> c_int;
    pub fn PMPI_Attr_put(comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void) -> c_int;
    pub fn PMPI_Barrier(comm: MPI_Comm) -> c_int;
    pub fn PMPI_Barrier_init(comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Bcast(buffer: *mut c_void, count: c_int, datatype: MPI_Datatype, root: c_int,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Bcast_c(buffer: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    root: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Bcast_init(buffer: *mut c_void, count: c_int, datatype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Bcast_init_c(buffer: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Bsend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Bsend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Bsend_init(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Bsend_init_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Buffer_attach(buffer: *mut c_void, size: c_int) -> c_int;
    pub fn PMPI_Buffer_attach_c(buffer: *mut c_void, size: MPI_Count) -> c_int;
    pub fn PMPI_Buffer_detach(buffer_addr: *mut c_void, size: *mut c_int) -> c_int;
    pub fn PMPI_Buffer_detach_c(buffer_addr: *mut c_void, size: *mut MPI_Count) -> c_int;
    pub fn PMPI_Buffer_flush() -> c_int;
    pub fn PMPI_Buffer_iflush(request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Cancel(request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Cart_coords(comm: MPI_Comm, rank: c_int, maxdims: c_int,
    coords: *mut c_int) -> c_int;
    pub fn PMPI_Cart_create(comm_old: MPI_Comm, ndims: c_int, dims: *const c_int,
    periods: *const c_int, reorder: c_int, comm_cart: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Cart_get(comm: MPI_Comm, maxdims: c_int, dims: *mut c_int, periods: *mut c_int,
    coords: *mut c_int) -> c_int;
    pub fn PMPI_Cart_map(comm: MPI_Comm, ndims: c_int, dims: *const c_int, periods: *const c_int,
    newrank: *mut c_int) -> c_int;
    pub fn PMPI_Cart_rank(comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) -> c_int;
    pub fn PMPI_Cart_shift(comm: MPI_Comm, direction: c_int, disp: c_int,
    rank_source: *mut c_int, rank_dest: *mut c_int) -> c_int;
    pub fn PMPI_Cart_sub(comm: MPI_Comm, remain_dims: *const c_int,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Cartdim_get(comm: MPI_Comm, ndims: *mut c_int) -> c_int;
    pub fn PMPI_Close_port(port_name: *const c_char) -> c_int;
    pub fn PMPI_Comm_accept(port_name: *const c_char, info: MPI_Info, root: c_int,
    comm: MPI_Comm, newcomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_attach_buffer(comm: MPI_Comm, buffer: *mut c_void, size: c_int) -> c_int;
    pub fn PMPI_Comm_attach_buffer_c(comm: MPI_Comm, buffer: *mut c_void,
    size: MPI_Count) -> c_int;
    pub fn PMPI_Comm_call_errhandler(comm: MPI_Comm, errorcode: c_int) -> c_int;
    pub fn PMPI_Comm_compare(comm1: MPI_Comm, comm2: MPI_Comm, result: *mut c_int) -> c_int;
    pub fn PMPI_Comm_connect(port_name: *const c_char, info: MPI_Info, root: c_int,
    comm: MPI_Comm, newcomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_create(comm: MPI_Comm, group: MPI_Group, newcomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_create_errhandler(comm_errhandler_fn: MPI_Comm_errhandler_function,
    errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn PMPI_Comm_create_from_group(group: MPI_Group, stringtag: *const c_char,
    info: MPI_Info, errhandler: MPI_Errhandler, newcomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_create_group(comm: MPI_Comm, group: MPI_Group, tag: c_int,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_create_keyval(comm_copy_attr_fn: MPI_Comm_copy_attr_function,
    comm_delete_attr_fn: MPI_Comm_delete_attr_function, comm_keyval: *mut c_int,
    extra_state: *mut c_void) -> c_int;
    pub fn PMPI_Comm_delete_attr(comm: MPI_Comm, comm_keyval: c_int) -> c_int;
    pub fn PMPI_Comm_detach_buffer(comm: MPI_Comm, buffer_addr: *mut c_void,
    size: *mut c_int) -> c_int;
    pub fn PMPI_Comm_detach_buffer_c(comm: MPI_Comm, buffer_addr: *mut c_void,
    size: *mut MPI_Count) -> c_int;
    pub fn PMPI_Comm_disconnect(comm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_dup(comm: MPI_Comm, newcomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_dup_with_info(comm: MPI_Comm, info: MPI_Info,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_flush_buffer(comm: MPI_Comm) -> c_int;
    pub fn PMPI_Comm_free(comm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_free_keyval(comm_keyval: *mut c_int) -> c_int;
    pub fn PMPI_Comm_fromint(comm: c_int) -> MPI_Comm;
    pub fn PMPI_Comm_get_attr(comm: MPI_Comm, comm_keyval: c_int, attribute_val: *mut c_void,
    flag: *mut c_int) -> c_int;
    pub fn PMPI_Comm_get_errhandler(comm: MPI_Comm, errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn PMPI_Comm_get_info(comm: MPI_Comm, info_used: *mut MPI_Info) -> c_int;
    pub fn PMPI_Comm_get_name(comm: MPI_Comm, comm_name: *mut c_char,
    resultlen: *mut c_int) -> c_int;
    pub fn PMPI_Comm_get_parent(parent: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group) -> c_int;
    pub fn PMPI_Comm_idup(comm: MPI_Comm, newcomm: *mut MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Comm_idup_with_info(comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Comm_iflush_buffer(comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Comm_join(fd: c_int, intercomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int) -> c_int;
    pub fn PMPI_Comm_remote_group(comm: MPI_Comm, group: *mut MPI_Group) -> c_int;
    pub fn PMPI_Comm_remote_size(comm: MPI_Comm, size: *mut c_int) -> c_int;
    pub fn PMPI_Comm_set_attr(comm: MPI_Comm, comm_keyval: c_int,
    attribute_val: *mut c_void) -> c_int;
    pub fn PMPI_Comm_set_errhandler(comm: MPI_Comm, errhandler: MPI_Errhandler) -> c_int;
    pub fn PMPI_Comm_set_info(comm: MPI_Comm, info: MPI_Info) -> c_int;
    pub fn PMPI_Comm_set_name(comm: MPI_Comm, comm_name: *const c_char) -> c_int;
    pub fn PMPI_Comm_size(comm: MPI_Comm, size: *mut c_int) -> c_int;
    pub fn PMPI_Comm_spawn(command: *const c_char, argv: *mut *mut c_char, maxprocs: c_int,
    info: MPI_Info, root: c_int, comm: MPI_Comm, intercomm: *mut MPI_Comm,
    array_of_errcodes: *mut c_int) -> c_int;
    pub fn PMPI_Comm_spawn_multiple(count: c_int, array_of_commands: *mut *mut c_char,
    array_of_argv: *mut *mut *mut c_char, array_of_maxprocs: *const c_int,
    array_of_info: *const MPI_Info, root: c_int, comm: MPI_Comm, intercomm: *mut MPI_Comm,
    array_of_errcodes: *mut c_int) -> c_int;
    pub fn PMPI_Comm_split(comm: MPI_Comm, color: c_int, key: c_int,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_split_type(comm: MPI_Comm, split_type: c_int, key: c_int, info: MPI_Info,
    newcomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int) -> c_int;
    pub fn PMPI_Comm_toint(comm: MPI_Comm) -> c_int;
    pub fn PMPI_Compare_and_swap(origin_addr: *const c_void, compare_addr: *const c_void,
    result_addr: *mut c_void, datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    win: MPI_Win) -> c_int;
    pub fn PMPI_Dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) -> c_int;
    pub fn PMPI_Dist_graph_create(comm_old: MPI_Comm, n: c_int, sources: *const c_int,
    degrees: *const c_int, destinations: *const c_int, weights: *const c_int, info: MPI_Info,
    reorder: c_int, comm_dist_graph: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Dist_graph_create_adjacent(comm_old: MPI_Comm, indegree: c_int,
    sources: *const c_int, sourceweights: *const c_int, outdegree: c_int,
    destinations: *const c_int, destweights: *const c_int, info: MPI_Info, reorder: c_int,
    comm_dist_graph: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Dist_graph_neighbors(comm: MPI_Comm, maxindegree: c_int, sources: *mut c_int,
    sourceweights: *mut c_int, maxoutdegree: c_int, destinations: *mut c_int,
    destweights: *mut c_int) -> c_int;
    pub fn PMPI_Dist_graph_neighbors_count(comm: MPI_Comm, indegree: *mut c_int,
    outdegree: *mut c_int, weighted: *mut c_int) -> c_int;
    pub fn PMPI_Errhandler_free(errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn PMPI_Errhandler_fromint(errhandler: c_int) -> MPI_Errhandler;
    pub fn PMPI_Errhandler_toint(errhandler: MPI_Errhandler) -> c_int;
    pub fn PMPI_Error_class(errorcode: c_int, errorclass: *mut c_int) -> c_int;
    pub fn PMPI_Error_string(errorcode: c_int, string: *mut c_char,
    resultlen: *mut c_int) -> c_int;
    pub fn PMPI_Exscan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Exscan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Exscan_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Exscan_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Fetch_and_op(origin_addr: *const c_void, result_addr: *mut c_void,
    datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint, op: MPI_Op,
    win: MPI_Win) -> c_int;
    pub fn PMPI_File_call_errhandler(fh: MPI_File, errorcode: c_int) -> c_int;
    pub fn PMPI_File_close(fh: *mut MPI_File) -> c_int;
    pub fn PMPI_File_create_errhandler(file_errhandler_fn: MPI_File_errhandler_function,
    errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn PMPI_File_delete(filename: *const c_char, info: MPI_Info) -> c_int;
    pub fn PMPI_File_fromint(file: c_int) -> MPI_File;
    pub fn PMPI_File_get_amode(fh: MPI_File, amode: *mut c_int) -> c_int;
    pub fn PMPI_File_get_atomicity(fh: MPI_File, flag: *mut c_int) -> c_int;
    pub fn PMPI_File_get_byte_offset(fh: MPI_File, offset: MPI_Offset,
    disp: *mut MPI_Offset) -> c_int;
    pub fn PMPI_File_get_errhandler(file: MPI_File, errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn PMPI_File_get_group(fh: MPI_File, group: *mut MPI_Group) -> c_int;
    pub fn PMPI_File_get_info(fh: MPI_File, info_used: *mut MPI_Info) -> c_int;
    pub fn PMPI_File_get_position(fh: MPI_File, offset: *mut MPI_Offset) -> c_int;
    pub fn PMPI_File_get_position_shared(fh: MPI_File, offset: *mut MPI_Offset) -> c_int;
    pub fn PMPI_File_get_size(fh: MPI_File, size: *mut MPI_Offset) -> c_int;
    pub fn PMPI_File_get_type_extent(fh: MPI_File, datatype: MPI_Datatype,
    extent: *mut MPI_Aint) -> c_int;
    pub fn PMPI_File_get_type_extent_c(fh: MPI_File, datatype: MPI_Datatype,
    extent: *mut MPI_Count) -> c_int;
    pub fn PMPI_File_get_view(fh: MPI_File, disp: *mut MPI_Offset, etype: *mut MPI_Datatype,
    filetype: *mut MPI_Datatype, datarep: *mut c_char) -> c_int;
    pub fn PMPI_File_iread(fh: MPI_File, buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iread_all(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iread_all_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iread_at(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iread_at_all(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: c_int, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iread_at_all_c(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: MPI_Count, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iread_at_c(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: MPI_Count, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iread_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iread_shared(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iread_shared_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iwrite(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iwrite_all(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iwrite_all_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iwrite_at(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: c_int, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iwrite_at_all(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: c_int, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iwrite_at_all_c(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: MPI_Count, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iwrite_at_c(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: MPI_Count, datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iwrite_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iwrite_shared(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_iwrite_shared_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_File_open(comm: MPI_Comm, filename: *const c_char, amode: c_int, info: MPI_Info,
    fh: *mut MPI_File) -> c_int;
    pub fn PMPI_File_preallocate(fh: MPI_File, size: MPI_Offset) -> c_int;
    pub fn PMPI_File_read(fh: MPI_File, buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_all(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_all_begin(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_read_all_begin_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_read_all_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_all_end(fh: MPI_File, buf: *mut c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_at(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_at_all(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: c_int, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_at_all_begin(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: c_int, datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_read_at_all_begin_c(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: MPI_Count, datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_read_at_all_c(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: MPI_Count, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_at_all_end(fh: MPI_File, buf: *mut c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_at_c(fh: MPI_File, offset: MPI_Offset, buf: *mut c_void,
    count: MPI_Count, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_ordered(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_ordered_begin(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_read_ordered_begin_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_read_ordered_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_ordered_end(fh: MPI_File, buf: *mut c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_shared(fh: MPI_File, buf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_read_shared_c(fh: MPI_File, buf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_seek(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> c_int;
    pub fn PMPI_File_seek_shared(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> c_int;
    pub fn PMPI_File_set_atomicity(fh: MPI_File, flag: c_int) -> c_int;
    pub fn PMPI_File_set_errhandler(file: MPI_File, errhandler: MPI_Errhandler) -> c_int;
    pub fn PMPI_File_set_info(fh: MPI_File, info: MPI_Info) -> c_int;
    pub fn PMPI_File_set_size(fh: MPI_File, size: MPI_Offset) -> c_int;
    pub fn PMPI_File_set_view(fh: MPI_File, disp: MPI_Offset, etype: MPI_Datatype,
    filetype: MPI_Datatype, datarep: *const c_char, info: MPI_Info) -> c_int;
    pub fn PMPI_File_sync(fh: MPI_File) -> c_int;
    pub fn PMPI_File_toint(file: MPI_File) -> c_int;
    pub fn PMPI_File_write(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_all(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_all_begin(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_write_all_begin_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_write_all_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_all_end(fh: MPI_File, buf: *const c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_at(fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_at_all(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: c_int, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_at_all_begin(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: c_int, datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_write_at_all_begin_c(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: MPI_Count, datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_write_at_all_c(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: MPI_Count, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_at_all_end(fh: MPI_File, buf: *const c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_at_c(fh: MPI_File, offset: MPI_Offset, buf: *const c_void,
    count: MPI_Count, datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_ordered(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_ordered_begin(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_write_ordered_begin_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_File_write_ordered_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_ordered_end(fh: MPI_File, buf: *const c_void,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_shared(fh: MPI_File, buf: *const c_void, count: c_int,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_File_write_shared_c(fh: MPI_File, buf: *const c_void, count: MPI_Count,
    datatype: MPI_Datatype, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Finalize() -> c_int;
    pub fn PMPI_Finalized(flag: *mut c_int) -> c_int;
    pub fn PMPI_Free_mem(base: *mut c_void) -> c_int;
    pub fn PMPI_Gather(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Gather_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Gather_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Gather_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Gatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Gatherv_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const MPI_Count, displs: *const MPI_Aint,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Gatherv_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Gatherv_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Get(origin_addr: *mut c_void, origin_count: c_int, origin_datatype: MPI_Datatype,
    target_rank: c_int, target_disp: MPI_Aint, target_count: c_int,
    target_datatype: MPI_Datatype, win: MPI_Win) -> c_int;
    pub fn PMPI_Get_accumulate(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, result_addr: *mut c_void, result_count: c_int,
    result_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win) -> c_int;
    pub fn PMPI_Get_accumulate_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, result_addr: *mut c_void, result_count: MPI_Count,
    result_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win) -> c_int;
    pub fn PMPI_Get_address(location: *const c_void, address: *mut MPI_Aint) -> c_int;
    pub fn PMPI_Get_c(origin_addr: *mut c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, win: MPI_Win) -> c_int;
    pub fn PMPI_Get_count(status: *const MPI_Status, datatype: MPI_Datatype,
    count: *mut c_int) -> c_int;
    pub fn PMPI_Get_count_c(status: *const MPI_Status, datatype: MPI_Datatype,
    count: *mut MPI_Count) -> c_int;
    pub fn PMPI_Get_elements(status: *const MPI_Status, datatype: MPI_Datatype,
    count: *mut c_int) -> c_int;
    pub fn PMPI_Get_elements_c(status: *const MPI_Status, datatype: MPI_Datatype,
    count: *mut MPI_Count) -> c_int;
    pub fn PMPI_Get_elements_x(status: *const MPI_Status, datatype: MPI_Datatype,
    count: *mut MPI_Count) -> c_int;
    pub fn PMPI_Get_hw_resource_info(hw_info: *mut MPI_Info) -> c_int;
    pub fn PMPI_Get_library_version(version: *mut c_char, resultlen: *mut c_int) -> c_int;
    pub fn PMPI_Get_processor_name(name: *mut c_char, resultlen: *mut c_int) -> c_int;
    pub fn PMPI_Get_version(version: *mut c_int, subversion: *mut c_int) -> c_int;
    pub fn PMPI_Graph_create(comm_old: MPI_Comm, nnodes: c_int, indx: *const c_int,
    edges: *const c_int, reorder: c_int, comm_graph: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Graph_get(comm: MPI_Comm, maxindex: c_int, maxedges: c_int, indx: *mut c_int,
    edges: *mut c_int) -> c_int;
    pub fn PMPI_Graph_map(comm: MPI_Comm, nnodes: c_int, indx: *const c_int, edges: *const c_int,
    newrank: *mut c_int) -> c_int;
    pub fn PMPI_Graph_neighbors(comm: MPI_Comm, rank: c_int, maxneighbors: c_int,
    neighbors: *mut c_int) -> c_int;
    pub fn PMPI_Graph_neighbors_count(comm: MPI_Comm, rank: c_int,
    nneighbors: *mut c_int) -> c_int;
    pub fn PMPI_Graphdims_get(comm: MPI_Comm, nnodes: *mut c_int, nedges: *mut c_int) -> c_int;
    pub fn PMPI_Grequest_complete(request: MPI_Request) -> c_int;
    pub fn PMPI_Grequest_start(query_fn: MPI_Grequest_query_function,
    free_fn: MPI_Grequest_free_function, cancel_fn: MPI_Grequest_cancel_function,
    extra_state: *mut c_void, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Group_compare(group1: MPI_Group, group2: MPI_Group,
    result: *mut c_int) -> c_int;
    pub fn PMPI_Group_difference(group1: MPI_Group, group2: MPI_Group,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn PMPI_Group_excl(group: MPI_Group, n: c_int, ranks: *const c_int,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn PMPI_Group_free(group: *mut MPI_Group) -> c_int;
    pub fn PMPI_Group_from_session_pset(session: MPI_Session, pset_name: *const c_char,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn PMPI_Group_fromint(group: c_int) -> MPI_Group;
    pub fn PMPI_Group_incl(group: MPI_Group, n: c_int, ranks: *const c_int,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn PMPI_Group_intersection(group1: MPI_Group, group2: MPI_Group,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn PMPI_Group_range_excl(group: MPI_Group, n: c_int, ranges: *mut [c_int; 3],
    newgroup: *mut MPI_Group) -> c_int;
    pub fn PMPI_Group_range_incl(group: MPI_Group, n: c_int, ranges: *mut [c_int; 3],
    newgroup: *mut MPI_Group) -> c_int;
    pub fn PMPI_Group_rank(group: MPI_Group, rank: *mut c_int) -> c_int;
    pub fn PMPI_Group_size(group: MPI_Group, size: *mut c_int) -> c_int;
    pub fn PMPI_Group_toint(group: MPI_Group) -> c_int;
    pub fn PMPI_Group_translate_ranks(group1: MPI_Group, n: c_int, ranks1: *const c_int,
    group2: MPI_Group, ranks2: *mut c_int) -> c_int;
    pub fn PMPI_Group_union(group1: MPI_Group, group2: MPI_Group,
    newgroup: *mut MPI_Group) -> c_int;
    pub fn PMPI_Iallgather(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iallgather_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iallgatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iallgatherv_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iallreduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iallreduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ialltoall(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ialltoall_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ialltoallv(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ialltoallv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ialltoallw(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ialltoallw_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ibarrier(comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ibcast(buffer: *mut c_void, count: c_int, datatype: MPI_Datatype, root: c_int,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ibcast_c(buffer: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ibsend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ibsend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iexscan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iexscan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Igather(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Igather_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Igatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Igatherv_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcounts: *const MPI_Count, displs: *const MPI_Aint,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Improbe(source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int,
    message: *mut MPI_Message, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Imrecv(buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    message: *mut MPI_Message, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Imrecv_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    message: *mut MPI_Message, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ineighbor_allgather(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ineighbor_allgather_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ineighbor_allgatherv(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int,
    recvtype: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ineighbor_allgatherv_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ineighbor_alltoall(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ineighbor_alltoall_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ineighbor_alltoallv(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ineighbor_alltoallv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ineighbor_alltoallw(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ineighbor_alltoallw_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Info_create(info: *mut MPI_Info) -> c_int;
    pub fn PMPI_Info_create_env(argc: c_int, argv: *mut *mut c_char,
    info: *mut MPI_Info) -> c_int;
    pub fn PMPI_Info_delete(info: MPI_Info, key: *const c_char) -> c_int;
    pub fn PMPI_Info_dup(info: MPI_Info, newinfo: *mut MPI_Info) -> c_int;
    pub fn PMPI_Info_free(info: *mut MPI_Info) -> c_int;
    pub fn PMPI_Info_fromint(info: c_int) -> MPI_Info;
    pub fn PMPI_Info_get(info: MPI_Info, key: *const c_char, valuelen: c_int, value: *mut c_char,
    flag: *mut c_int) -> c_int;
    pub fn PMPI_Info_get_nkeys(info: MPI_Info, nkeys: *mut c_int) -> c_int;
    pub fn PMPI_Info_get_nthkey(info: MPI_Info, n: c_int, key: *mut c_char) -> c_int;
    pub fn PMPI_Info_get_string(info: MPI_Info, key: *const c_char, buflen: *mut c_int,
    value: *mut c_char, flag: *mut c_int) -> c_int;
    pub fn PMPI_Info_get_valuelen(info: MPI_Info, key: *const c_char, valuelen: *mut c_int,
    flag: *mut c_int) -> c_int;
    pub fn PMPI_Info_set(info: MPI_Info, key: *const c_char, value: *const c_char) -> c_int;
    pub fn PMPI_Info_toint(info: MPI_Info) -> c_int;
    pub fn PMPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int;
    pub fn PMPI_Init_thread(argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int,
    provided: *mut c_int) -> c_int;
    pub fn PMPI_Initialized(flag: *mut c_int) -> c_int;
    pub fn PMPI_Intercomm_create(local_comm: MPI_Comm, local_leader: c_int, peer_comm: MPI_Comm,
    remote_leader: c_int, tag: c_int, newintercomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Intercomm_create_from_groups(local_group: MPI_Group, local_leader: c_int,
    remote_group: MPI_Group, remote_leader: c_int, stringtag: *const c_char, info: MPI_Info,
    errhandler: MPI_Errhandler, newintercomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Intercomm_merge(intercomm: MPI_Comm, high: c_int,
    newintracomm: *mut MPI_Comm) -> c_int;
    pub fn PMPI_Iprobe(source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Irecv(buf: *mut c_void, count: c_int, datatype: MPI_Datatype, source: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Irecv_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    source: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ireduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ireduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ireduce_scatter(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ireduce_scatter_block(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ireduce_scatter_block_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ireduce_scatter_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Irsend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Irsend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Is_thread_main(flag: *mut c_int) -> c_int;
    pub fn PMPI_Iscan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iscan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iscatter(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iscatter_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iscatterv(sendbuf: *const c_void, sendcounts: *const c_int, displs: *const c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Iscatterv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    displs: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Isend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Isend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Isendrecv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    source: c_int, recvtag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Isendrecv_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: MPI_Count,
    recvtype: MPI_Datatype, source: c_int, recvtag: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Isendrecv_replace(buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Isendrecv_replace_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: MPI_Comm,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Issend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Issend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Keyval_create(copy_fn: MPI_Copy_function, delete_fn: MPI_Delete_function,
    keyval: *mut c_int, extra_state: *mut c_void) -> c_int;
    pub fn PMPI_Keyval_free(keyval: *mut c_int) -> c_int;
    pub fn PMPI_Lookup_name(service_name: *const c_char, info: MPI_Info,
    port_name: *mut c_char) -> c_int;
    pub fn PMPI_Message_fromint(message: c_int) -> MPI_Message;
    pub fn PMPI_Message_toint(message: MPI_Message) -> c_int;
    pub fn PMPI_Mprobe(source: c_int, tag: c_int, comm: MPI_Comm, message: *mut MPI_Message,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Mrecv(buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    message: *mut MPI_Message, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Mrecv_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    message: *mut MPI_Message, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Neighbor_allgather(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Neighbor_allgather_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Neighbor_allgather_init(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Neighbor_allgather_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Neighbor_allgatherv(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int,
    recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Neighbor_allgatherv_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Neighbor_allgatherv_init(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int,
    recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Neighbor_allgatherv_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const MPI_Count,
    displs: *const MPI_Aint, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Neighbor_alltoall(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Neighbor_alltoall_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Neighbor_alltoall_init(sendbuf: *const c_void, sendcount: c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Neighbor_alltoall_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Neighbor_alltoallv(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Neighbor_alltoallv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Neighbor_alltoallv_init(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const c_int, recvtype: MPI_Datatype, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Neighbor_alltoallv_init_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtype: MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Neighbor_alltoallw(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Neighbor_alltoallw_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Neighbor_alltoallw_init(sendbuf: *const c_void, sendcounts: *const c_int,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const c_int, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Neighbor_alltoallw_init_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    sdispls: *const MPI_Aint, sendtypes: *const MPI_Datatype, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Op_commutative(op: MPI_Op, commute: *mut c_int) -> c_int;
    pub fn PMPI_Op_create(user_fn: MPI_User_function, commute: c_int, op: *mut MPI_Op) -> c_int;
    pub fn PMPI_Op_create_c(user_fn: MPI_User_function_c, commute: c_int,
    op: *mut MPI_Op) -> c_int;
    pub fn PMPI_Op_free(op: *mut MPI_Op) -> c_int;
    pub fn PMPI_Op_fromint(op: c_int) -> MPI_Op;
    pub fn PMPI_Op_toint(op: MPI_Op) -> c_int;
    pub fn PMPI_Open_port(info: MPI_Info, port_name: *mut c_char) -> c_int;
    pub fn PMPI_Pack(inbuf: *const c_void, incount: c_int, datatype: MPI_Datatype,
    outbuf: *mut c_void, outsize: c_int, position: *mut c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Pack_c(inbuf: *const c_void, incount: MPI_Count, datatype: MPI_Datatype,
    outbuf: *mut c_void, outsize: MPI_Count, position: *mut MPI_Count, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Pack_external(datarep: *const c_char, inbuf: *const c_void, incount: c_int,
    datatype: MPI_Datatype, outbuf: *mut c_void, outsize: MPI_Aint,
    position: *mut MPI_Aint) -> c_int;
    pub fn PMPI_Pack_external_c(datarep: *const c_char, inbuf: *const c_void, incount: MPI_Count,
    datatype: MPI_Datatype, outbuf: *mut c_void, outsize: MPI_Count,
    position: *mut MPI_Count) -> c_int;
    pub fn PMPI_Pack_external_size(datarep: *const c_char, incount: c_int,
    datatype: MPI_Datatype, size: *mut MPI_Aint) -> c_int;
    pub fn PMPI_Pack_external_size_c(datarep: *const c_char, incount: MPI_Count,
    datatype: MPI_Datatype, size: *mut MPI_Count) -> c_int;
    pub fn PMPI_Pack_size(incount: c_int, datatype: MPI_Datatype, comm: MPI_Comm,
    size: *mut c_int) -> c_int;
    pub fn PMPI_Pack_size_c(incount: MPI_Count, datatype: MPI_Datatype, comm: MPI_Comm,
    size: *mut MPI_Count) -> c_int;
    pub fn PMPI_Parrived(request: MPI_Request, partition: c_int, flag: *mut c_int) -> c_int;
    pub fn PMPI_Pcontrol(level: c_int, ...) -> c_int;
    pub fn PMPI_Pready(partition: c_int, request: MPI_Request) -> c_int;
    pub fn PMPI_Pready_list(length: c_int, array_of_partitions: *const c_int,
    request: MPI_Request) -> c_int;
    pub fn PMPI_Pready_range(partition_low: c_int, partition_high: c_int,
    request: MPI_Request) -> c_int;
    pub fn PMPI_Precv_init(buf: *mut c_void, partitions: c_int, count: MPI_Count,
    datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Precv_init_c(buf: *mut c_void, partitions: c_int, count: MPI_Count,
    datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Probe(source: c_int, tag: c_int, comm: MPI_Comm,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Psend_init(buf: *const c_void, partitions: c_int, count: MPI_Count,
    datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Psend_init_c(buf: *const c_void, partitions: c_int, count: MPI_Count,
    datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Publish_name(service_name: *const c_char, info: MPI_Info,
    port_name: *const c_char) -> c_int;
    pub fn PMPI_Put(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, win: MPI_Win) -> c_int;
    pub fn PMPI_Put_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, win: MPI_Win) -> c_int;
    pub fn PMPI_Query_thread(provided: *mut c_int) -> c_int;
    pub fn PMPI_Raccumulate(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Raccumulate_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Recv(buf: *mut c_void, count: c_int, datatype: MPI_Datatype, source: c_int,
    tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Recv_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype, source: c_int,
    tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Recv_init(buf: *mut c_void, count: c_int, datatype: MPI_Datatype, source: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Recv_init_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    source: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Reduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Reduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Reduce_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Reduce_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, root: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Reduce_local(inbuf: *const c_void, inoutbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op) -> c_int;
    pub fn PMPI_Reduce_local_c(inbuf: *const c_void, inoutbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op) -> c_int;
    pub fn PMPI_Reduce_scatter(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Reduce_scatter_block(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Reduce_scatter_block_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Reduce_scatter_block_init(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Reduce_scatter_block_init_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcount: MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Reduce_scatter_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Reduce_scatter_init(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Reduce_scatter_init_c(sendbuf: *const c_void, recvbuf: *mut c_void,
    recvcounts: *const MPI_Count, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Register_datarep(datarep: *const c_char,
    read_conversion_fn: MPI_Datarep_conversion_function,
    write_conversion_fn: MPI_Datarep_conversion_function,
    dtype_file_extent_fn: MPI_Datarep_extent_function, extra_state: *mut c_void) -> c_int;
    pub fn PMPI_Register_datarep_c(datarep: *const c_char,
    read_conversion_fn: MPI_Datarep_conversion_function_c,
    write_conversion_fn: MPI_Datarep_conversion_function_c,
    dtype_file_extent_fn: MPI_Datarep_extent_function, extra_state: *mut c_void) -> c_int;
    pub fn PMPI_Remove_error_class(errorclass: c_int) -> c_int;
    pub fn PMPI_Remove_error_code(errorcode: c_int) -> c_int;
    pub fn PMPI_Remove_error_string(errorcode: c_int) -> c_int;
    pub fn PMPI_Request_free(request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Request_fromint(request: c_int) -> MPI_Request;
    pub fn PMPI_Request_get_status(request: MPI_Request, flag: *mut c_int,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Request_get_status_all(count: c_int, array_of_requests: *const MPI_Request,
    flag: *mut c_int, array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn PMPI_Request_get_status_any(count: c_int, array_of_requests: *const MPI_Request,
    indx: *mut c_int, flag: *mut c_int, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Request_get_status_some(incount: c_int, array_of_requests: *const MPI_Request,
    outcount: *mut c_int, array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn PMPI_Request_toint(request: MPI_Request) -> c_int;
    pub fn PMPI_Rget(origin_addr: *mut c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Rget_accumulate(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, result_addr: *mut c_void, result_count: c_int,
    result_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Rget_accumulate_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, result_addr: *mut c_void, result_count: MPI_Count,
    result_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Rget_c(origin_addr: *mut c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Rput(origin_addr: *const c_void, origin_count: c_int,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: c_int, target_datatype: MPI_Datatype, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Rput_c(origin_addr: *const c_void, origin_count: MPI_Count,
    origin_datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint,
    target_count: MPI_Count, target_datatype: MPI_Datatype, win: MPI_Win,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Rsend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Rsend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Rsend_init(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Rsend_init_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Scan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Scan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Scan_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Scan_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: MPI_Count,
    datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Scatter(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Scatter_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype, root: c_int,
    comm: MPI_Comm) -> c_int;
    pub fn PMPI_Scatter_init(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Scatter_init_c(sendbuf: *const c_void, sendcount: MPI_Count,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Scatterv(sendbuf: *const c_void, sendcounts: *const c_int, displs: *const c_int,
    sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    root: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Scatterv_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    displs: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Scatterv_init(sendbuf: *const c_void, sendcounts: *const c_int,
    displs: *const c_int, sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: c_int,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Scatterv_init_c(sendbuf: *const c_void, sendcounts: *const MPI_Count,
    displs: *const MPI_Aint, sendtype: MPI_Datatype, recvbuf: *mut c_void, recvcount: MPI_Count,
    recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, info: MPI_Info,
    request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Send(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Send_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Send_init(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Send_init_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Sendrecv(sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype,
    dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype,
    source: c_int, recvtag: c_int, comm: MPI_Comm, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Sendrecv_c(sendbuf: *const c_void, sendcount: MPI_Count, sendtype: MPI_Datatype,
    dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: MPI_Count,
    recvtype: MPI_Datatype, source: c_int, recvtag: c_int, comm: MPI_Comm,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Sendrecv_replace(buf: *mut c_void, count: c_int, datatype: MPI_Datatype,
    dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: MPI_Comm,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Sendrecv_replace_c(buf: *mut c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: MPI_Comm,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Session_attach_buffer(session: MPI_Session, buffer: *mut c_void,
    size: c_int) -> c_int;
    pub fn PMPI_Session_attach_buffer_c(session: MPI_Session, buffer: *mut c_void,
    size: MPI_Count) -> c_int;
    pub fn PMPI_Session_call_errhandler(session: MPI_Session, errorcode: c_int) -> c_int;
    pub fn PMPI_Session_create_errhandler(session_errhandler_fn: MPI_Session_errhandler_function,
    errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn PMPI_Session_detach_buffer(session: MPI_Session, buffer_addr: *mut c_void,
    size: *mut c_int) -> c_int;
    pub fn PMPI_Session_detach_buffer_c(session: MPI_Session, buffer_addr: *mut c_void,
    size: *mut MPI_Count) -> c_int;
    pub fn PMPI_Session_finalize(session: *mut MPI_Session) -> c_int;
    pub fn PMPI_Session_flush_buffer(session: MPI_Session) -> c_int;
    pub fn PMPI_Session_fromint(session: c_int) -> MPI_Session;
    pub fn PMPI_Session_get_errhandler(session: MPI_Session,
    errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn PMPI_Session_get_info(session: MPI_Session, info_used: *mut MPI_Info) -> c_int;
    pub fn PMPI_Session_get_nth_pset(session: MPI_Session, info: MPI_Info, n: c_int,
    pset_len: *mut c_int, pset_name: *mut c_char) -> c_int;
    pub fn PMPI_Session_get_num_psets(session: MPI_Session, info: MPI_Info,
    npset_names: *mut c_int) -> c_int;
    pub fn PMPI_Session_get_pset_info(session: MPI_Session, pset_name: *const c_char,
    info: *mut MPI_Info) -> c_int;
    pub fn PMPI_Session_iflush_buffer(session: MPI_Session, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Session_init(info: MPI_Info, errhandler: MPI_Errhandler,
    session: *mut MPI_Session) -> c_int;
    pub fn PMPI_Session_set_errhandler(session: MPI_Session,
    errhandler: MPI_Errhandler) -> c_int;
    pub fn PMPI_Session_toint(session: MPI_Session) -> c_int;
    pub fn PMPI_Ssend(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Ssend_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Ssend_init(buf: *const c_void, count: c_int, datatype: MPI_Datatype, dest: c_int,
    tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Ssend_init_c(buf: *const c_void, count: MPI_Count, datatype: MPI_Datatype,
    dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Start(request: *mut MPI_Request) -> c_int;
    pub fn PMPI_Startall(count: c_int, array_of_requests: *mut MPI_Request) -> c_int;
    pub fn PMPI_Status_get_error(status: *const MPI_Status, error: *mut c_int) -> c_int;
    pub fn PMPI_Status_get_source(status: *const MPI_Status, source: *mut c_int) -> c_int;
    pub fn PMPI_Status_get_tag(status: *const MPI_Status, tag: *mut c_int) -> c_int;
    pub fn PMPI_Status_set_cancelled(status: *mut MPI_Status, flag: c_int) -> c_int;
    pub fn PMPI_Status_set_elements(status: *mut MPI_Status, datatype: MPI_Datatype,
    count: c_int) -> c_int;
    pub fn PMPI_Status_set_elements_c(status: *mut MPI_Status, datatype: MPI_Datatype,
    count: MPI_Count) -> c_int;
    pub fn PMPI_Status_set_elements_x(status: *mut MPI_Status, datatype: MPI_Datatype,
    count: MPI_Count) -> c_int;
    pub fn PMPI_Status_set_error(status: *mut MPI_Status, error: c_int) -> c_int;
    pub fn PMPI_Status_set_source(status: *mut MPI_Status, source: c_int) -> c_int;
    pub fn PMPI_Status_set_tag(status: *mut MPI_Status, tag: c_int) -> c_int;
    pub fn PMPI_T_category_changed(update_number: *mut c_int) -> c_int;
    pub fn PMPI_T_category_get_categories(cat_index: c_int, len: c_int,
    indices: *mut c_int) -> c_int;
    pub fn PMPI_T_category_get_cvars(cat_index: c_int, len: c_int,
    indices: *mut c_int) -> c_int;
    pub fn PMPI_T_category_get_events(cat_index: c_int, len: c_int,
    indices: *mut c_int) -> c_int;
    pub fn PMPI_T_category_get_index(name: *const c_char, cat_index: *mut c_int) -> c_int;
    pub fn PMPI_T_category_get_info(cat_index: c_int, name: *mut c_char, name_len: *mut c_int,
    desc: *mut c_char, desc_len: *mut c_int, num_cvars: *mut c_int, num_pvars: *mut c_int,
    num_categories: *mut c_int) -> c_int;
    pub fn PMPI_T_category_get_num(num_cat: *mut c_int) -> c_int;
    pub fn PMPI_T_category_get_num_events(cat_index: c_int, num_events: *mut c_int) -> c_int;
    pub fn PMPI_T_category_get_pvars(cat_index: c_int, len: c_int,
    indices: *mut c_int) -> c_int;
    pub fn PMPI_T_cvar_get_index(name: *const c_char, cvar_index: *mut c_int) -> c_int;
    pub fn PMPI_T_cvar_get_info(cvar_index: c_int, name: *mut c_char, name_len: *mut c_int,
    verbosity: *mut c_int, datatype: *mut MPI_Datatype, enumtype: *mut MPI_T_enum,
    desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int, scope: *mut c_int) -> c_int;
    pub fn PMPI_T_cvar_get_num(num_cvar: *mut c_int) -> c_int;
    pub fn PMPI_T_cvar_handle_alloc(cvar_index: c_int, obj_handle: *mut c_void,
    handle: *mut MPI_T_cvar_handle, count: *mut c_int) -> c_int;
    pub fn PMPI_T_cvar_handle_free(handle: *mut MPI_T_cvar_handle) -> c_int;
    pub fn PMPI_T_cvar_read(handle: MPI_T_cvar_handle, buf: *mut c_void) -> c_int;
    pub fn PMPI_T_cvar_write(handle: MPI_T_cvar_handle, buf: *const c_void) -> c_int;
    pub fn PMPI_T_enum_get_info(enumtype: MPI_T_enum, num: *mut c_int, name: *mut c_char,
    name_len: *mut c_int) -> c_int;
    pub fn PMPI_T_enum_get_item(enumtype: MPI_T_enum, indx: c_int, value: *mut c_int,
    name: *mut c_char, name_len: *mut c_int) -> c_int;
    pub fn PMPI_T_event_callback_get_info(event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety, info_used: *mut MPI_Info) -> c_int;
    pub fn PMPI_T_event_callback_set_info(event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety, info: MPI_Info) -> c_int;
    pub fn PMPI_T_event_copy(event_instance: MPI_T_event_instance,
    buffer: *mut c_void) -> c_int;
    pub fn PMPI_T_event_get_index(name: *const c_char, event_index: *mut c_int) -> c_int;
    pub fn PMPI_T_event_get_info(event_index: c_int, name: *mut c_char, name_len: *mut c_int,
    verbosity: *mut c_int, array_of_datatypes: *mut MPI_Datatype,
    array_of_displacements: *mut MPI_Aint, num_elements: *mut c_int, enumtype: *mut MPI_T_enum,
    info: *mut MPI_Info, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int) -> c_int;
    pub fn PMPI_T_event_get_num(num_events: *mut c_int) -> c_int;
    pub fn PMPI_T_event_get_source(event_instance: MPI_T_event_instance,
    source_index: *mut c_int) -> c_int;
    pub fn PMPI_T_event_get_timestamp(event_instance: MPI_T_event_instance,
    event_timestamp: *mut MPI_Count) -> c_int;
    pub fn PMPI_T_event_handle_alloc(event_index: c_int, obj_handle: *mut c_void, info: MPI_Info,
    event_registration: *mut MPI_T_event_registration) -> c_int;
    pub fn PMPI_T_event_handle_free(event_registration: MPI_T_event_registration,
    user_data: *mut c_void, free_cb_function: MPI_T_event_free_cb_function) -> c_int;
    pub fn PMPI_T_event_handle_get_info(event_registration: MPI_T_event_registration,
    info_used: *mut MPI_Info) -> c_int;
    pub fn PMPI_T_event_handle_set_info(event_registration: MPI_T_event_registration,
    info: MPI_Info) -> c_int;
    pub fn PMPI_T_event_read(event_instance: MPI_T_event_instance, element_index: c_int,
    buffer: *mut c_void) -> c_int;
    pub fn PMPI_T_event_register_callback(event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety, info: MPI_Info, user_data: *mut c_void,
    event_cb_function: MPI_T_event_cb_function) -> c_int;
    pub fn PMPI_T_event_set_dropped_handler(event_registration: MPI_T_event_registration,
    dropped_cb_function: MPI_T_event_dropped_cb_function) -> c_int;
    pub fn PMPI_T_finalize() -> c_int;
    pub fn PMPI_T_init_thread(required: c_int, provided: *mut c_int) -> c_int;
    pub fn PMPI_T_pvar_get_index(name: *const c_char, var_class: c_int,
    pvar_index: *mut c_int) -> c_int;
    pub fn PMPI_T_pvar_get_info(pvar_index: c_int, name: *mut c_char, name_len: *mut c_int,
    verbosity: *mut c_int, var_class: *mut c_int, datatype: *mut MPI_Datatype,
    enumtype: *mut MPI_T_enum, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int,
    readonly: *mut c_int, continuous: *mut c_int, atomic: *mut c_int) -> c_int;
    pub fn PMPI_T_pvar_get_num(num_pvar: *mut c_int) -> c_int;
    pub fn PMPI_T_pvar_handle_alloc(session: MPI_T_pvar_session, pvar_index: c_int,
    obj_handle: *mut c_void, handle: *mut MPI_T_pvar_handle, count: *mut c_int) -> c_int;
    pub fn PMPI_T_pvar_handle_free(session: MPI_T_pvar_session,
    handle: *mut MPI_T_pvar_handle) -> c_int;
    pub fn PMPI_T_pvar_read(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle,
    buf: *mut c_void) -> c_int;
    pub fn PMPI_T_pvar_readreset(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle,
    buf: *mut c_void) -> c_int;
    pub fn PMPI_T_pvar_reset(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> c_int;
    pub fn PMPI_T_pvar_session_create(session: *mut MPI_T_pvar_session) -> c_int;
    pub fn PMPI_T_pvar_session_free(session: *mut MPI_T_pvar_session) -> c_int;
    pub fn PMPI_T_pvar_start(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> c_int;
    pub fn PMPI_T_pvar_stop(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> c_int;
    pub fn PMPI_T_pvar_write(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle,
    buf: *const c_void) -> c_int;
    pub fn PMPI_T_source_get_info(source_index: c_int, name: *mut c_char, name_len: *mut c_int,
    desc: *mut c_char, desc_len: *mut c_int, ordering: *mut MPI_T_source_order,
    ticks_per_second: *mut MPI_Count, max_ticks: *mut MPI_Count, info: *mut MPI_Info) -> c_int;
    pub fn PMPI_T_source_get_num(num_sources: *mut c_int) -> c_int;
    pub fn PMPI_T_source_get_timestamp(source_index: c_int, timestamp: *mut MPI_Count) -> c_int;
    pub fn PMPI_Test(request: *mut MPI_Request, flag: *mut c_int,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Test_cancelled(status: *const MPI_Status, flag: *mut c_int) -> c_int;
    pub fn PMPI_Testall(count: c_int, array_of_requests: *mut MPI_Request, flag: *mut c_int,
    array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn PMPI_Testany(count: c_int, array_of_requests: *mut MPI_Request, indx: *mut c_int,
    flag: *mut c_int, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Testsome(incount: c_int, array_of_requests: *mut MPI_Request,
    outcount: *mut c_int, array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn PMPI_Topo_test(comm: MPI_Comm, status: *mut c_int) -> c_int;
    pub fn PMPI_Type_commit(datatype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_contiguous(count: c_int, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_contiguous_c(count: MPI_Count, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_darray(size: c_int, rank: c_int, ndims: c_int,
    array_of_gsizes: *const c_int, array_of_distribs: *const c_int, array_of_dargs: *const c_int,
    array_of_psizes: *const c_int, order: c_int, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_darray_c(size: c_int, rank: c_int, ndims: c_int,
    array_of_gsizes: *const MPI_Count, array_of_distribs: *const c_int,
    array_of_dargs: *const c_int, array_of_psizes: *const c_int, order: c_int,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_f90_complex(p: c_int, r: c_int,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_f90_integer(r: c_int, newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_f90_real(p: c_int, r: c_int, newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_hindexed(count: c_int, array_of_blocklengths: *const c_int,
    array_of_displacements: *const MPI_Aint, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_hindexed_block(count: c_int, blocklength: c_int,
    array_of_displacements: *const MPI_Aint, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_hindexed_block_c(count: MPI_Count, blocklength: MPI_Count,
    array_of_displacements: *const MPI_Count, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_hindexed_c(count: MPI_Count, array_of_blocklengths: *const MPI_Count,
    array_of_displacements: *const MPI_Count, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_hvector(count: c_int, blocklength: c_int, stride: MPI_Aint,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_hvector_c(count: MPI_Count, blocklength: MPI_Count,
    stride: MPI_Count, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_indexed_block(count: c_int, blocklength: c_int,
    array_of_displacements: *const c_int, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_indexed_block_c(count: MPI_Count, blocklength: MPI_Count,
    array_of_displacements: *const MPI_Count, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_keyval(type_copy_attr_fn: MPI_Type_copy_attr_function,
    type_delete_attr_fn: MPI_Type_delete_attr_function, type_keyval: *mut c_int,
    extra_state: *mut c_void) -> c_int;
    pub fn PMPI_Type_create_resized(oldtype: MPI_Datatype, lb: MPI_Aint, extent: MPI_Aint,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_resized_c(oldtype: MPI_Datatype, lb: MPI_Count, extent: MPI_Count,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_struct(count: c_int, array_of_blocklengths: *const c_int,
    array_of_displacements: *const MPI_Aint, array_of_types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_struct_c(count: MPI_Count, array_of_blocklengths: *const MPI_Count,
    array_of_displacements: *const MPI_Count, array_of_types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_subarray(ndims: c_int, array_of_sizes: *const c_int,
    array_of_subsizes: *const c_int, array_of_starts: *const c_int, order: c_int,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_create_subarray_c(ndims: c_int, array_of_sizes: *const MPI_Count,
    array_of_subsizes: *const MPI_Count, array_of_starts: *const MPI_Count, order: c_int,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_delete_attr(datatype: MPI_Datatype, type_keyval: c_int) -> c_int;
    pub fn PMPI_Type_dup(oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_free(datatype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_free_keyval(type_keyval: *mut c_int) -> c_int;
    pub fn PMPI_Type_fromint(datatype: c_int) -> MPI_Datatype;
    pub fn PMPI_Type_get_attr(datatype: MPI_Datatype, type_keyval: c_int,
    attribute_val: *mut c_void, flag: *mut c_int) -> c_int;
    pub fn PMPI_Type_get_contents(datatype: MPI_Datatype, max_integers: c_int,
    max_addresses: c_int, max_datatypes: c_int, array_of_integers: *mut c_int,
    array_of_addresses: *mut MPI_Aint, array_of_datatypes: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_get_contents_c(datatype: MPI_Datatype, max_integers: MPI_Count,
    max_addresses: MPI_Count, max_large_counts: MPI_Count, max_datatypes: MPI_Count,
    array_of_integers: *mut c_int, array_of_addresses: *mut MPI_Aint,
    array_of_large_counts: *mut MPI_Count, array_of_datatypes: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_get_envelope(datatype: MPI_Datatype, num_integers: *mut c_int,
    num_addresses: *mut c_int, num_datatypes: *mut c_int, combiner: *mut c_int) -> c_int;
    pub fn PMPI_Type_get_envelope_c(datatype: MPI_Datatype, num_integers: *mut MPI_Count,
    num_addresses: *mut MPI_Count, num_large_counts: *mut MPI_Count,
    num_datatypes: *mut MPI_Count, combiner: *mut c_int) -> c_int;
    pub fn PMPI_Type_get_extent(datatype: MPI_Datatype, lb: *mut MPI_Aint,
    extent: *mut MPI_Aint) -> c_int;
    pub fn PMPI_Type_get_extent_c(datatype: MPI_Datatype, lb: *mut MPI_Count,
    extent: *mut MPI_Count) -> c_int;
    pub fn PMPI_Type_get_extent_x(datatype: MPI_Datatype, lb: *mut MPI_Count,
    extent: *mut MPI_Count) -> c_int;
    pub fn PMPI_Type_get_name(datatype: MPI_Datatype, type_name: *mut c_char,
    resultlen: *mut c_int) -> c_int;
    pub fn PMPI_Type_get_true_extent(datatype: MPI_Datatype, true_lb: *mut MPI_Aint,
    true_extent: *mut MPI_Aint) -> c_int;
    pub fn PMPI_Type_get_true_extent_c(datatype: MPI_Datatype, true_lb: *mut MPI_Count,
    true_extent: *mut MPI_Count) -> c_int;
    pub fn PMPI_Type_get_true_extent_x(datatype: MPI_Datatype, true_lb: *mut MPI_Count,
    true_extent: *mut MPI_Count) -> c_int;
    pub fn PMPI_Type_get_value_index(value_type: MPI_Datatype, index_type: MPI_Datatype,
    pair_type: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_indexed(count: c_int, array_of_blocklengths: *const c_int,
    array_of_displacements: *const c_int, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_indexed_c(count: MPI_Count, array_of_blocklengths: *const MPI_Count,
    array_of_displacements: *const MPI_Count, oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_match_size(typeclass: c_int, size: c_int,
    datatype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_set_attr(datatype: MPI_Datatype, type_keyval: c_int,
    attribute_val: *mut c_void) -> c_int;
    pub fn PMPI_Type_set_name(datatype: MPI_Datatype, type_name: *const c_char) -> c_int;
    pub fn PMPI_Type_size(datatype: MPI_Datatype, size: *mut c_int) -> c_int;
    pub fn PMPI_Type_size_c(datatype: MPI_Datatype, size: *mut MPI_Count) -> c_int;
    pub fn PMPI_Type_size_x(datatype: MPI_Datatype, size: *mut MPI_Count) -> c_int;
    pub fn PMPI_Type_toint(datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_Type_vector(count: c_int, blocklength: c_int, stride: c_int,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Type_vector_c(count: MPI_Count, blocklength: MPI_Count, stride: MPI_Count,
    oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int;
    pub fn PMPI_Unpack(inbuf: *const c_void, insize: c_int, position: *mut c_int,
    outbuf: *mut c_void, outcount: c_int, datatype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Unpack_c(inbuf: *const c_void, insize: MPI_Count, position: *mut MPI_Count,
    outbuf: *mut c_void, outcount: MPI_Count, datatype: MPI_Datatype, comm: MPI_Comm) -> c_int;
    pub fn PMPI_Unpack_external(datarep: *const c_char, inbuf: *const c_void, insize: MPI_Aint,
    position: *mut MPI_Aint, outbuf: *mut c_void, outcount: c_int,
    datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_Unpack_external_c(datarep: *const c_char, inbuf: *const c_void,
    insize: MPI_Count, position: *mut MPI_Count, outbuf: *mut c_void, outcount: MPI_Count,
    datatype: MPI_Datatype) -> c_int;
    pub fn PMPI_Unpublish_name(service_name: *const c_char, info: MPI_Info,
    port_name: *const c_char) -> c_int;
    pub fn PMPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Waitall(count: c_int, array_of_requests: *mut MPI_Request,
    array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn PMPI_Waitany(count: c_int, array_of_requests: *mut MPI_Request, indx: *mut c_int,
    status: *mut MPI_Status) -> c_int;
    pub fn PMPI_Waitsome(incount: c_int, array_of_requests: *mut MPI_Request,
    outcount: *mut c_int, array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status) -> c_int;
    pub fn PMPI_Win_allocate(size: MPI_Aint, disp_unit: c_int, info: MPI_Info, comm: MPI_Comm,
    baseptr: *mut c_void, win: *mut MPI_Win) -> c_int;
    pub fn PMPI_Win_allocate_c(size: MPI_Aint, disp_unit: MPI_Aint, info: MPI_Info,
    comm: MPI_Comm, baseptr: *mut c_void, win: *mut MPI_Win) -> c_int;
    pub fn PMPI_Win_allocate_shared(size: MPI_Aint, disp_unit: c_int, info: MPI_Info,
    comm: MPI_Comm, baseptr: *mut c_void, win: *mut MPI_Win) -> c_int;
    pub fn PMPI_Win_allocate_shared_c(size: MPI_Aint, disp_unit: MPI_Aint, info: MPI_Info,
    comm: MPI_Comm, baseptr: *mut c_void, win: *mut MPI_Win) -> c_int;
    pub fn PMPI_Win_attach(win: MPI_Win, base: *mut c_void, size: MPI_Aint) -> c_int;
    pub fn PMPI_Win_call_errhandler(win: MPI_Win, errorcode: c_int) -> c_int;
    pub fn PMPI_Win_complete(win: MPI_Win) -> c_int;
    pub fn PMPI_Win_create(base: *mut c_void, size: MPI_Aint, disp_unit: c_int, info: MPI_Info,
    comm: MPI_Comm, win: *mut MPI_Win) -> c_int;
    pub fn PMPI_Win_create_c(base: *mut c_void, size: MPI_Aint, disp_unit: MPI_Aint,
    info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win) -> c_int;
    pub fn PMPI_Win_create_dynamic(info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win) -> c_int;
    pub fn PMPI_Win_create_errhandler(win_errhandler_fn: MPI_Win_errhandler_function,
    errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn PMPI_Win_create_keyval(win_copy_attr_fn: MPI_Win_copy_attr_function,
    win_delete_attr_fn: MPI_Win_delete_attr_function, win_keyval: *mut c_int,
    extra_state: *mut c_void) -> c_int;
    pub fn PMPI_Win_delete_attr(win: MPI_Win, win_keyval: c_int) -> c_int;
    pub fn PMPI_Win_detach(win: MPI_Win, base: *const c_void) -> c_int;
    pub fn PMPI_Win_fence(assert: c_int, win: MPI_Win) -> c_int;
    pub fn PMPI_Win_flush(rank: c_int, win: MPI_Win) -> c_int;
    pub fn PMPI_Win_flush_all(win: MPI_Win) -> c_int;
    pub fn PMPI_Win_flush_local(rank: c_int, win: MPI_Win) -> c_int;
    pub fn PMPI_Win_flush_local_all(win: MPI_Win) -> c_int;
    pub fn PMPI_Win_free(win: *mut MPI_Win) -> c_int;
    pub fn PMPI_Win_free_keyval(win_keyval: *mut c_int) -> c_int;
    pub fn PMPI_Win_fromint(win: c_int) -> MPI_Win;
    pub fn PMPI_Win_get_attr(win: MPI_Win, win_keyval: c_int, attribute_val: *mut c_void,
    flag: *mut c_int) -> c_int;
    pub fn PMPI_Win_get_errhandler(win: MPI_Win, errhandler: *mut MPI_Errhandler) -> c_int;
    pub fn PMPI_Win_get_group(win: MPI_Win, group: *mut MPI_Group) -> c_int;
    pub fn PMPI_Win_get_info(win: MPI_Win, info_used: *mut MPI_Info) -> c_int;
    pub fn PMPI_Win_get_name(win: MPI_Win, win_name: *mut c_char,
    resultlen: *mut c_int) -> c_int;
    pub fn PMPI_Win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: MPI_Win) -> c_int;
    pub fn PMPI_Win_lock_all(assert: c_int, win: MPI_Win) -> c_int;
    pub fn PMPI_Win_post(group: MPI_Group, assert: c_int, win: MPI_Win) -> c_int;
    pub fn PMPI_Win_set_attr(win: MPI_Win, win_keyval: c_int,
    attribute_val: *mut c_void) -> c_int;
    pub fn PMPI_Win_set_errhandler(win: MPI_Win, errhandler: MPI_Errhandler) -> c_int;
    pub fn PMPI_Win_set_info(win: MPI_Win, info: MPI_Info) -> c_int;
    pub fn PMPI_Win_set_name(win: MPI_Win, win_name: *const c_char) -> c_int;
    pub fn PMPI_Win_shared_query(win: MPI_Win, rank: c_int, size: *mut MPI_Aint,
    disp_unit: *mut c_int, baseptr: *mut c_void) -> c_int;
    pub fn PMPI_Win_shared_query_c(win: MPI_Win, rank: c_int, size: *mut MPI_Aint,
    disp_unit: *mut MPI_Aint, baseptr: *mut c_void) -> c_int;
    pub fn PMPI_Win_start(group: MPI_Group, assert: c_int, win: MPI_Win) -> c_int;
    pub fn PMPI_Win_sync(win: MPI_Win) -> c_int;
    pub fn PMPI_Win_test(win: MPI_Win, flag: *mut c_int) -> c_int;
    pub fn PMPI_Win_toint(win: MPI_Win) -> c_int;
    pub fn PMPI_Win_unlock(rank: c_int, win: MPI_Win) -> c_int;
    pub fn PMPI_Win_unlock_all(win: MPI_Win) -> c_int;
    pub fn PMPI_Win_wait(win: MPI_Win) -> c_int;
    pub fn PMPI_Wtick() -> c_double;
    pub fn PMPI_Wtime() -> c_double;
}
