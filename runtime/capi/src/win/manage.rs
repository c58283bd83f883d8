//! Making and freeing windows, attached memory, groups and hints (MPI-5.0 section 12.2).
//!
//! A call that makes a window takes part in the agreement of the ranks even if this crate refuses an argument, unless
//! the argument is the communicator (`Window::refuse`). So the other ranks get an error and do not wait.

use super::attribute::Values;
use super::{CACHE, HOME, WINDOWS, Win};
use crate::abi;
use crate::argument::{InOut, Output, Place};
use crate::attribute::Attributes;
use crate::buffer::{ADDRESS_BITS, is_low};
use crate::comm;
use crate::count_width::{CountWidth, Number};
use crate::error::handler::{Handler, HandlerCell};
use crate::error::{Failure, Result, section};
use crate::group;
use crate::handle::thread_cache::ThreadCache;
use crate::info;
use crate::raw::{self, Aint};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use typepack::rma::Window;
use typepack::{Communicator, ErrorClass, ErrorKind};

/// The hints of a call: the keys and values of its info object.
type Hints = Vec<(String, String)>;

/// Returns the keys and values of an info object, which may be the null handle.
fn hints(info: raw::Info) -> Result<Hints> {
    if info == raw::Info::NULL {
        return Ok(Vec::new());
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let entries = info::entries_of(info)?;
    Ok(entries.into_iter().map(|(key, value)| (text(key), text(value))).collect())
}

/// Checks that `base` is no sentinel of buffers, and that `size` bytes from there on lie within the address space. The
/// runtime refuses negative sizes.
fn check_memory(base: *const c_void, size: Aint) -> Result {
    if size > 0 && !base.is_null() && is_low(base) {
        let detail = format!("{base:?} is an address where no memory can be; a buffer is needed");
        return Err(Failure::new(abi::ERR_BUFFER, "base", detail));
    }
    let end = base as i128 + size as i128;
    if end <= 1 << ADDRESS_BITS {
        return Ok(());
    }
    let detail = format!("{size} bytes at {base:?} exceed the address space");
    Err(Failure::new(abi::ERR_SIZE, "size", detail))
}

/// Makes a window and its handle. `arguments` checks the arguments, and returns the hints and the place for the
/// handle. `make` makes the runtime's window. `made` gets the window before the handle is written.
fn create(
    comm: raw::Comm,
    arguments: impl FnOnce() -> Result<(Hints, Place<raw::Win>)>,
    make: impl FnOnce(&Communicator, &Hints) -> typepack::Result<Window>,
    made: impl FnOnce(&Window),
) -> Result {
    super::short::prepare();
    let comm = comm::find(comm)?;
    let communicator = comm.communicator();
    let arguments = || section::check().and_then(|()| arguments());
    let (hints, out) = arguments().inspect_err(|failure| {
        let kind = ErrorKind::Engine(ErrorClass(failure.code));
        let error = typepack::Error::new(kind, "argument", failure.text.clone());
        Window::refuse(communicator, error);
    })?;
    let window = make(communicator, &hints)?;
    made(&window);
    let values = Values::of(&window);
    ThreadCache::prepare(&HOME);
    let win = Win {
        window,
        handler: Arc::new(HandlerCell::new(Handler::Fatal)),
        name: Mutex::default(),
        attributes: Attributes::new(),
        values,
        is_freed: AtomicBool::new(false),
    };
    out.set(raw::Win(WINDOWS.insert(Arc::new(win))?));
    Ok(())
}

/// `MPI_Win_create`.
///
/// # Safety
///
/// - Until the window is freed, `size` bytes at `base` are readable and writable, and the program accesses them only
///   as the epochs of the window permit.
pub unsafe fn create_window<W: CountWidth>(
    base: *mut c_void,
    size: Aint,
    disp_unit: W::Displacement,
    info: raw::Info,
    comm: raw::Comm,
    win: Output<raw::Win>,
) -> Result {
    let arguments = || {
        check_memory(base, size)?;
        Ok((hints(info)?, win.required("win")?))
    };
    let make = |comm: &Communicator, hints: &Hints| {
        // SAFETY: the caller guarantees the memory until the window is freed (the condition of `# Safety`).
        unsafe { Window::create_raw(comm, base.cast(), size as i64, disp_unit.wide(), hints) }
    };
    create(comm, arguments, make, |_| ())
}

/// `MPI_Win_allocate`.
pub fn allocate<W: CountWidth>(
    size: Aint,
    disp_unit: W::Displacement,
    info: raw::Info,
    comm: raw::Comm,
    baseptr: Output<*mut c_void>,
    win: Output<raw::Win>,
) -> Result {
    let make = |comm: &Communicator, hints: &Hints| {
        Window::allocate(comm, size as i64, disp_unit.wide(), hints)
    };
    with_memory(info, comm, baseptr, win, make)
}

/// `MPI_Win_allocate_shared`.
pub fn allocate_shared<W: CountWidth>(
    size: Aint,
    disp_unit: W::Displacement,
    info: raw::Info,
    comm: raw::Comm,
    baseptr: Output<*mut c_void>,
    win: Output<raw::Win>,
) -> Result {
    let make = |comm: &Communicator, hints: &Hints| {
        Window::allocate_shared(comm, size as i64, disp_unit.wide(), hints)
    };
    with_memory(info, comm, baseptr, win, make)
}

/// Makes a window whose memory the library allocates, and hands out the address of this rank's memory.
fn with_memory(
    info: raw::Info,
    comm: raw::Comm,
    baseptr: Output<*mut c_void>,
    win: Output<raw::Win>,
    make: impl FnOnce(&Communicator, &Hints) -> typepack::Result<Window>,
) -> Result {
    let arguments = || {
        baseptr.required("baseptr")?;
        Ok((hints(info)?, win.required("win")?))
    };
    create(comm, arguments, make, |window| baseptr.write_if_given(window.own().0.cast()))
}

/// `MPI_Win_create_dynamic`.
pub fn create_dynamic(info: raw::Info, comm: raw::Comm, win: Output<raw::Win>) -> Result {
    let arguments = || Ok((hints(info)?, win.required("win")?));
    let make = |comm: &Communicator, hints: &Hints| Window::dynamic(comm, hints);
    create(comm, arguments, make, |_| ())
}

/// `MPI_Win_free`. If a rank is in an epoch, or a delete callback of a rank fails, the call fails on all ranks and the
/// window stays: this rank takes part in the agreement of the ranks even if it refuses, so that the others do not wait.
/// If a rank is in an epoch, no rank calls its delete callbacks, and all attributes stay.
///
/// A call on the window may still be running: a call of another thread, or a call that has called the program's
/// function that frees the window (a delete callback or an error handler). This function does not wait for such a
/// call. The window's memory stays until the call has ended.
pub fn free(win: InOut<raw::Win>) -> Result {
    let (handle, out) = win.read("win")?;
    let object = WINDOWS.find(handle.0)?;
    // The C caller passed the address of the handle, so `entry.rs` could not find the window's error handler.
    let on = object.handler.get();
    let raise = |mut failure: Failure| {
        failure.on = Some((handle.0, on.clone()));
        failure
    };
    // A delete callback of this call may call this function again.
    if object.is_freed.swap(true, Ordering::AcqRel) {
        let detail = "a delete callback or another thread frees a window that is being freed";
        return Err(raise(Failure::new(abi::ERR_WIN, "win", detail)));
    }
    let checked = object.window.check_free().map_err(Failure::from);
    let agreed = object.window.agree_to_end(checked.is_err());
    let (checked, ended) = match (checked, agreed) {
        (Ok(()), Ok(None)) => {
            let cleared = object.attributes.clear(handle.0);
            let ended = object.window.end(cleared.is_err());
            (cleared, ended)
        }
        // A rank has died, so the window ends at this rank.
        (Ok(()), Err(error)) => (object.attributes.clear(handle.0), Err(error)),
        refused => refused,
    };
    let refused = match (checked, &ended) {
        (Err(failure), _) => Some(failure),
        (Ok(()), Ok(Some(rank))) => Some(typepack::rma::kept(*rank).into()),
        (Ok(()), Ok(None) | Err(_)) => None,
    };
    if let Some(failure) = refused {
        object.is_freed.store(false, Ordering::Release);
        return Err(raise(failure));
    }
    // Only this call frees the window (`is_freed`), so the handle is still valid.
    WINDOWS.remove(handle.0);
    out.set(raw::Win::NULL);
    // If this thread has cached the window, its memory would stay allocated. Another thread that has cached the window
    // keeps the memory until it uses another window or ends.
    WINDOWS.forget(&CACHE, &HOME);
    ended.map(drop).map_err(|error| raise(error.into()))
}

/// `MPI_Win_shared_query`. `MPI_PROC_NULL` stands for the lowest rank with memory.
pub fn shared_query<W: CountWidth>(
    win: raw::Win,
    rank: c_int,
    size: Output<Aint>,
    disp_unit: Output<W::Displacement>,
    baseptr: Output<*mut c_void>,
) -> Result {
    let win = WINDOWS.find(win.0)?;
    let rank = super::target(rank, "rank")?;
    let (size, unit) = (size.required("size")?, disp_unit.required("disp_unit")?);
    let base = baseptr.required("baseptr")?;
    let (start, bytes, step) = win.window.shared_query(rank)?;
    let step = W::Displacement::exactly(step as i64).ok_or_else(|| {
        let detail = format!("{step} does not fit in the type of the argument");
        Failure::new(abi::ERR_VALUE_TOO_LARGE, "disp_unit", detail)
    })?;
    size.set(bytes as Aint);
    unit.set(step);
    base.set(start.cast());
    Ok(())
}

/// `MPI_Win_attach`.
///
/// # Safety
///
/// - Until the memory is detached or the window is freed, `size` bytes at `base` are readable and writable, and the
///   program accesses them only as the epochs of the window permit.
pub unsafe fn attach(win: raw::Win, base: *mut c_void, size: Aint) -> Result {
    let win = WINDOWS.find(win.0)?;
    check_memory(base, size)?;
    // SAFETY: the caller guarantees the memory (the condition of `# Safety`).
    unsafe { win.window.attach_raw(base.cast(), size as i64)? };
    Ok(())
}

/// `MPI_Win_detach`.
pub fn detach(win: raw::Win, base: *const c_void) -> Result {
    Ok(WINDOWS.find(win.0)?.window.detach(base.cast())?)
}

/// `MPI_Win_get_group`.
pub fn get_group(win: raw::Win, group: Output<raw::Group>) -> Result {
    let win = WINDOWS.find(win.0)?;
    let out = group.required("group")?;
    out.set(group::insert(win.window.group().clone(), 0)?);
    Ok(())
}

/// `MPI_Win_set_info`.
pub fn set_info(win: raw::Win, info: raw::Info) -> Result {
    let win = WINDOWS.find(win.0)?;
    // In contrast to the calls that make windows, this one does not take the null handle.
    info::find(info)?;
    Ok(win.window.set_hints(&hints(info)?)?)
}

/// `MPI_Win_get_info`.
pub fn get_info(win: raw::Win, info_used: Output<raw::Info>) -> Result {
    let win = WINDOWS.find(win.0)?;
    let out = info_used.required("info_used")?;
    let entries = win.window.hints()?.all().into_iter();
    out.set(info::make(entries.map(|(key, value)| (key.into(), value.into())).collect())?);
    Ok(())
}
