//! Init and finalize: when the library takes part.
//!
//! At the end of init, the library checks the host: its ABI, its functions, and how it packs. If anything is not as the
//! library needs it, one line says so, and every call goes straight to the host.

use crate::entry::{always, is_active, set_active, set_agreed, set_mixed};
use crate::host::{Next, is_doubled, next};
use crate::pending::Awaited;
use crate::say::{print, say};
use crate::settings::settings;
use crate::{agreement, communicator, pending, pool, report, types};
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
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

/// `MPI_Finalize`. Functions that the program has attached to `MPI_COMM_SELF` run first in it, while MPI can be used.
/// So the library takes part until the last of them has run (`end`).
///
/// # Safety
///
/// - The program ends MPI.
pub unsafe fn finalize(next: &'static Next) -> Option<c_int> {
    // A tool that is next in line calls `PMPI_Finalize`, which comes here too.
    static FINALIZING: AtomicBool = AtomicBool::new(false);
    if !is_active() || FINALIZING.swap(true, Ordering::Relaxed) {
        return None;
    }
    if !WATCHED.load(Ordering::Relaxed) {
        end(next);
    }
    // SAFETY: the call of the program.
    let code = unsafe { next.MPI_Finalize() };
    // The host is gone. From here on, no function of it is called. A host that did not call `end` has only the report
    // to come.
    set_active(false);
    report_once();
    pending::clear();
    pool::clear();
    Some(code)
}

/// True if the host calls `last` in finalize.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Attaches `last` to `MPI_COMM_SELF`. Finalize calls the functions there in the opposite order of their coming
/// (MPI-5.0 section 11.2.4), so the one that comes at the end of init is the last.
fn watch_end(next: &Next) {
    let mut keyval = 0;
    // The null copy function (0): duplicates of `MPI_COMM_SELF` have no `last`.
    // SAFETY: `last` has the type of a delete function, `keyval` is writable, and nothing follows the attribute's
    // value.
    let codes = unsafe {
        let (none, last) = (std::ptr::null(), last as *const c_void);
        match next.PMPI_Comm_create_keyval(none, last, &mut keyval, std::ptr::null_mut()) {
            abi::SUCCESS => {
                next.PMPI_Comm_set_attr(raw::Comm(abi::COMM_SELF), keyval, std::ptr::null_mut())
            }
            code => code,
        }
    };
    WATCHED.store(codes == abi::SUCCESS, Ordering::Relaxed);
}

/// The host calls this function in finalize, after all functions that the program has attached to `MPI_COMM_SELF`.
unsafe extern "C" fn last(
    _comm: raw::Comm,
    _keyval: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    let work = || {
        end(next());
        Some(abi::SUCCESS)
    };
    always("MPI_Finalize", work).unwrap_or(abi::SUCCESS)
}

/// Ends what needs the host, while MPI can still be used. From here on, calls go to the host.
fn end(next: &'static Next) {
    // Not before: the functions on `MPI_COMM_SELF` may free requests, and send what another rank waits for here.
    pending::sweep(next, Awaited::Everything);
    set_active(false);
    report_once();
    types::clear(next);
}

/// Prints the table of rank 0, if it is wanted.
fn report_once() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let rank = RANK.load(Ordering::Relaxed);
    if settings().report && rank == 0 && !DONE.swap(true, Ordering::Relaxed) {
        report::report(rank);
    }
}

/// The rank of this process in the world; -1 before it is known.
static RANK: AtomicI32 = AtomicI32::new(-1);

/// Takes part from now on, if init succeeded and the host is as needed.
fn begin(next: &'static Next, code: c_int) {
    let settings = settings();
    let is_off = !settings.on && !settings.all && settings.wrong.is_none();
    if code != abi::SUCCESS || is_off {
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
    let unfit = match &settings.wrong {
        Some(wrong) => Some(wrong.clone()),
        None => fitness(next).err(),
    };
    let line = |reason: &str| format!("{reason}; the job goes on without typepack");
    // Also a rank that cannot take part tells the others so, who wait for it.
    let agreed = if settings.all && has_abi(next) {
        agreement::agree(next, unfit.as_deref())
    } else {
        unfit.map_or(Ok(true), |reason| {
            say(&line(&reason));
            Err(None)
        })
    };
    match agreed {
        Ok(mixed) => {
            if settings.all {
                set_agreed();
                communicator::begin(next);
                pending::learn(next);
            }
            let mut rank = -1;
            // SAFETY: the result is writable.
            unsafe { next.PMPI_Comm_rank(raw::Comm(abi::COMM_WORLD), &mut rank) };
            RANK.store(rank, Ordering::Relaxed);
            watch_end(next);
            set_mixed(mixed);
            set_active(true);
        }
        Err(Some(reason)) if !settings.quiet => print(&line(&reason)),
        Err(_) => {}
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

/// The program connects this process with others, which may not be interposed.
pub fn meet() {
    set_mixed(true);
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
    match probe(next) {
        Some(true) => Ok(()),
        _ => Err("the MPI library does not pack as typepack does".into()),
    }
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
