//! Generates the table through which another library of typepack calls the C functions of `libmpi_abi.so.1`
//! (`runtime/mpich`). Such a library never calls them by their `MPI_` names: a program has these names from the other
//! library, or from a tool.
//!
//! Both libraries contain the same declaration. Its version is a hash of its text, so that a library with another
//! declaration is found out.

use super::ctype::rust;
use super::rows::{Callback, Function};
use std::fmt::Write;

/// The conversions of values that the program's own functions see, which the calling library gives.
const FRONT: &str = "/// How the values that the program's own functions see differ from those of the ABI.\n\
    #[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct Front {\n    \
    /// The program's handle for a handle of the ABI.\n    pub handle: extern \"C\" fn(usize) -> usize,\n    \
    /// The program's error code for one of the ABI.\n    pub theirs: extern \"C\" fn(c_int) -> c_int,\n    \
    /// The error code of the ABI for one of the program.\n    pub ours: extern \"C\" fn(c_int) -> c_int,\n    \
    /// Makes a status that of the program, in place.\n    pub to_status: unsafe extern \"C\" fn(*mut raw::Status),\n    \
    /// Makes a status of the program that of the ABI, in place.\n    \
    pub from_status: unsafe extern \"C\" fn(*mut raw::Status),\n    \
    /// The bytes that the program adds to the size of each message in a buffer.\n    pub overhead: u64,\n    \
    /// Writes an error text with the program's values: of a function, for a text, to a place with so much room. Returns \
    the text's length.\n    \
    pub text: unsafe extern \"C\" fn(*const c_char, usize, *const c_char, usize, *mut c_char, usize) -> usize,\n}\n\n";

/// What the calling library asks within a call of the program (`runtime/capi/src/helper.rs`).
const HELPERS: &str = "    /// The number of processes that a process sends to (not 0) or receives from: all, or the neighbours (not 0).\n    \
    pub peers: extern \"C\" fn(raw::Comm, c_int, c_int) -> i64,\n    \
    /// The rank of this process, or -1.\n    pub rank: extern \"C\" fn(raw::Comm) -> c_int,\n    \
    /// Raises the error for a fault of the calling library: the name of the function and a text, with their lengths.\n    \
    pub bug: unsafe extern \"C\" fn(*const c_char, usize, *const c_char, usize) -> c_int,\n";

/// `MPI_Type_struct`, which is not part of the ABI. Its types may contain `MPI_LB` and `MPI_UB`.
const TYPE_STRUCT: (&str, &str) = (
    "MPI_Type_struct",
    "c_int, *const c_int, *const raw::Aint, *const raw::Datatype, *mut raw::Datatype) -> c_int",
);

/// Returns the names and the signatures of the functions in the table.
fn named(functions: &[Function], callbacks: &[Callback]) -> Vec<(String, String)> {
    let types: Vec<String> = callbacks.iter().map(|c| c.name.clone()).collect();
    let signature = |f: &Function| {
        let fixed = f.parameters.iter().filter(|p| p.c_type != "...");
        let list: Vec<String> = fixed.map(|p| rust(&p.c_type, &types)).collect();
        format!("{}) -> {}", list.join(", "), rust(&f.returns, &types))
    };
    let named = functions.iter().map(|f| (f.name.clone(), signature(f)));
    named.chain([(TYPE_STRUCT.0.to_owned(), TYPE_STRUCT.1.to_owned())]).collect()
}

/// Returns the Rust source of the table's declaration.
pub fn declaration(functions: &[Function], callbacks: &[Callback]) -> String {
    let mut fields = String::new();
    for (name, signature) in named(functions, callbacks) {
        let _ = writeln!(
            fields,
            "    /// `{name}`.\n    pub {name}: unsafe extern \"C\" fn({signature},"
        );
    }
    let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let version = format!("{FRONT}{HELPERS}{fields}").bytes().fold(0xcbf2_9ce4_8422_2325, hash);
    format!(
        "{FRONT}/// The functions of the C library.\n#[repr(C)]\n#[derive(Clone, Copy, Debug)]\n\
         #[allow(non_snake_case)]\npub struct Entries {{\n    \
         /// [`VERSION`] of the library that has the table.\n    pub version: u64,\n    \
         /// Tells the library how the program's values differ, once and before any other call.\n    \
         pub begin: unsafe extern \"C\" fn(*const Front),\n{HELPERS}{fields}}}\n\n\
         /// The version of this declaration.\npub const VERSION: u64 = {version:#x};\n"
    )
}

/// Returns the Rust source of the table.
pub fn entries(functions: &[Function], callbacks: &[Callback]) -> String {
    let mut out = String::from(
        "/// The functions of this library, for another library of typepack.\n#[unsafe(no_mangle)]\n\
         pub static typepack_entries: Entries = Entries {\n    \
         version: VERSION,\n    begin: crate::front::begin,\n    peers: crate::helper::peers,\n    \
         rank: crate::helper::rank,\n    bug: crate::helper::bug,\n",
    );
    for (name, _) in named(functions, callbacks) {
        let room = if name == TYPE_STRUCT.0 { "compat" } else { "exports" };
        let _ = writeln!(out, "    {name}: crate::{room}::{name},");
    }
    out.push_str("};\n");
    out
}
