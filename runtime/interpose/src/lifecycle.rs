//! Init and finalize: when the library takes part.
//!
//! At the end of init, the library checks the host: its ABI, its functions, and how it packs. If anything is not as the
//! library needs it, one line says so, and every call goes straight to the host.

use crate::entry::{set_active, set_agreed, set_mixed};
use crate::host::{Next, is_doubled};
use crate::say::say;
use crate::settings::settings;
use crate::{communicator, pending, pool, report, types};
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use typepack_capi_datatype::raw::Status;
use typepack_capi_datatype::{abi, raw};

/// `MPI_Init`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Init`.
pub unsafe fn init(
    next: &'static Next,
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
) -> Option<c_int> {
    // SAFETY: the program's arguments of `init`, unchanged.
    let code = unsafe { next.MPI_Init(argc, argv) };
    begin(next, code);
    Some(code)
}

/// `MPI_Init_thread`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Init_thread`.
pub unsafe fn init_thread(
    next: &'static Next,
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> Option<c_int> {
    // SAFETY: the program's arguments of `init_thread`, unchanged.
    let code = unsafe { next.MPI_Init_thread(argc, argv, required, provided) };
    begin(next, code);
    Some(code)
}

/// `MPI_Finalize`.
///
/// # Safety
///
/// - The program ends MPI.
pub unsafe fn finalize(next: &'static Next) -> Option<c_int> {
    if !crate::entry::is_active() {
        return None;
    }
    pending::sweep(next, true);
    if settings().report {
        let mut rank = 0;
        // SAFETY: the result is writable.
        let code = unsafe { next.PMPI_Comm_rank(raw::Comm(abi::COMM_WORLD), &mut rank) };
        if code == abi::SUCCESS && rank == 0 {
            report::report(rank);
        }
    }
    types::clear(next);
    // Functions that the program has attached to `MPI_COMM_SELF` run inside finalize. Their calls go to the host, but
    // the host still knows all types.
    set_active(false);
    // SAFETY: the call of the program.
    let code = unsafe { next.MPI_Finalize() };
    pending::clear();
    pool::clear();
    Some(code)
}

/// Takes part from now on, if init succeeded and the host is as needed.
fn begin(next: &'static Next, code: c_int) {
    if code != abi::SUCCESS || !(settings().on || settings().all) {
        return;
    }
    // A tool that is next in line may call `PMPI_Init`, which comes here too, before `MPI_Init` returns.
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    // The copy behind this one has seen the end of init, and has taken part in the agreement.
    if is_doubled() {
        say(
            "another typepack-interpose is loaded behind this one; this one hands every call on to it",
        );
        return;
    }
    let unfit = match fitness(next) {
        Err(reason) => Some(reason),
        Ok(()) if settings().on && probe(next) != Some(true) => {
            Some("the MPI library does not pack as typepack does".into())
        }
        Ok(()) => None,
    };
    // Also a rank that cannot take part tells the others so, who wait for it.
    let agreed = match has_abi(next) {
        true => agreement(next, settings().on && unfit.is_none()),
        false => Ok(true),
    };
    // A wrong variable has been reported.
    if !settings().on {
        return;
    }
    match unfit.map_or(agreed, Err) {
        Ok(mixed) => {
            set_mixed(mixed);
            set_active(true);
        }
        Err(reason) => say(&format!("{reason}; the job goes on without typepack")),
    }
}

/// Returns whether the host has the ABI, so that calls with its handles and constants mean what they say. A host that
/// has another ABI cannot be asked to compare anything; its ranks cannot be in one job with ranks of the ABI, except in
/// MPICH, which has both.
fn has_abi(next: &'static Next) -> bool {
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: the results are writable.
    next.can_agree()
        && unsafe { next.PMPI_Abi_get_version(&mut major, &mut minor) } == abi::SUCCESS
        && major == abi::ABI_VERSION
}

/// With `TYPEPACK_INTERPOSE=all`, compares the versions of all ranks; a rank that cannot take part has none. Returns
/// whether this process may reach ranks that are not interposed.
///
/// # Errors
/// Returns the reason why no rank can take part: the versions differ.
fn agreement(next: &'static Next, fit: bool) -> Result<bool, String> {
    if !settings().all {
        return Ok(true);
    }
    // The largest version, and the smallest one negated.
    let version = VERSION.iter().fold(1_i64, |number, part| number << 16 | part);
    let own = if fit { version } else { 0 };
    let (mine, mut most) = ([own, -own], [0_i64; 2]);
    let mut parent = raw::Comm::NULL;
    // SAFETY: both arrays have two numbers of this type, and `parent` is writable. All ranks of the world make this
    // call at the end of init: the user says so.
    let codes = unsafe {
        let (from, to) = (mine.as_ptr().cast(), most.as_mut_ptr().cast());
        let (number, max) = (raw::Datatype(abi::INT64_T), raw::Op(abi::MAX));
        let world = raw::Comm(abi::COMM_WORLD);
        [
            next.PMPI_Allreduce(from, to, 2, number, max, world),
            next.PMPI_Comm_get_parent(&mut parent),
        ]
    };
    if codes != [abi::SUCCESS; 2] {
        return Err("the ranks could not compare their versions of typepack".into());
    }
    if most[0] != -most[1] {
        return Err("not all ranks have the same version of typepack-interpose".into());
    }
    set_agreed();
    communicator::begin(next);
    Ok(parent != raw::Comm::NULL)
}

/// The program connects this process with others, which may not be interposed.
pub fn meet() {
    set_mixed(true);
}

/// The version of this library: major, minor, patch.
const VERSION: [i64; 3] = [
    number(env!("CARGO_PKG_VERSION_MAJOR")),
    number(env!("CARGO_PKG_VERSION_MINOR")),
    number(env!("CARGO_PKG_VERSION_PATCH")),
];

const fn number(text: &str) -> i64 {
    let (mut at, mut value) = (0, 0);
    while at < text.len() {
        value = value * 10 + (text.as_bytes()[at] - b'0') as i64;
        at += 1;
    }
    value
}

/// Checks the host.
///
/// # Errors
/// Returns the reason why the library cannot take part.
fn fitness(next: &'static Next) -> Result<(), String> {
    if let Some(name) = next.missing() {
        return Err(format!("the MPI library lacks {name} of the MPI 5 standard ABI"));
    }
    if !has_abi(next) {
        return Err("the MPI library does not have the MPI 5 standard ABI".into());
    }
    let mut text = [0_u8; abi::MAX_LIBRARY_VERSION_STRING as usize];
    let mut length = 0;
    // SAFETY: the buffer has the length that the standard asks for.
    let code = unsafe { next.PMPI_Get_library_version(text.as_mut_ptr().cast(), &mut length) };
    let text = text.get(..usize::try_from(length).unwrap_or(0)).unwrap_or(&[]);
    if code != abi::SUCCESS || text.windows(8).any(|part| part == b"typepack") {
        return Err("the MPI library is typepack's own, which packs by itself".into());
    }
    Ok(())
}

/// Packs, sends and receives four of eight integers on `MPI_COMM_SELF`. Returns whether the packed bytes are the
/// integers and nothing else, whether a message of packed bytes can be received with the type and the other way
/// round, and whether the statuses count packed bytes. Returns `None` if a call of the host fails.
fn probe(next: &'static Next) -> Option<bool> {
    let ok = |code: c_int| (code == abi::SUCCESS).then_some(());
    let (int, byte, packed) =
        (raw::Datatype(abi::INT), raw::Datatype(abi::BYTE), raw::Datatype(abi::PACKED));
    let own = raw::Comm(abi::COMM_SELF);
    let memory: [c_int; 8] = std::array::from_fn(|i| 0x0102_0304 + i as c_int);
    let wanted: Vec<u8> =
        memory.iter().step_by(2).flat_map(|number| number.to_ne_bytes()).collect();
    let mut column = raw::Datatype::NULL;
    let elements: *const c_void = memory.as_ptr().cast();
    // SAFETY: every buffer has the memory that its count and type say: `column` has four integers in eight, which are
    // 16 packed bytes. All results are writable.
    unsafe {
        ok(next.PMPI_Type_vector(4, 1, 2, int, &mut column))?;
        ok(next.PMPI_Type_commit(&mut column))?;
        let (mut bytes, mut at) = ([0_u8; 64], 0);
        ok(next.PMPI_Pack_c(elements, 1, column, bytes.as_mut_ptr().cast(), 64, &mut at, own))?;
        let headerless = at == 16 && bytes[..16] == wanted[..];

        let (mut got, mut status, mut counts) = ([0_u8; 64], Status::default(), [0_i64; 2]);
        let to = got.as_mut_ptr().cast();
        ok(next.PMPI_Sendrecv(elements, 1, column, 0, 0, to, 64, packed, 0, 0, own, &mut status))?;
        ok(next.PMPI_Get_count_c(&status, column, &mut counts[0]))?;
        ok(next.PMPI_Get_count_c(&status, byte, &mut counts[1]))?;
        let received = got[..16] == wanted[..] && counts == [1, 16];

        let (mut back, mut status, mut counts) = ([7; 8], Status::default(), [0_i64; 2]);
        let (from, to) = (wanted.as_ptr().cast(), back.as_mut_ptr().cast());
        let s = &mut status;
        ok(next.PMPI_Sendrecv(from, 16, packed, 0, 0, to, 1, column, 0, 0, own, s))?;
        ok(next.PMPI_Get_count_c(&status, column, &mut counts[0]))?;
        ok(next.PMPI_Get_count_c(&status, byte, &mut counts[1]))?;
        let expected: [c_int; 8] = std::array::from_fn(|i| if i % 2 == 0 { memory[i] } else { 7 });
        let sent = back == expected && counts == [1, 16];
        ok(next.PMPI_Type_free(&mut column))?;
        Some(headerless && received && sent)
    }
}
