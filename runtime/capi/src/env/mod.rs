//! The calls about the process itself: init, finalize, time, memory, names (MPI-5.0 chapters 9 and 11).
//!
//! `lifecycle.rs` and `comm/world.rs` keep what init learns about the process and the job. `version.rs` has
//! the calls about versions, and `fortran.rs` those about a Fortran compiler. This file records the memory
//! that `MPI_Alloc_mem` returns, so that `MPI_Free_mem` can refuse any other memory.

pub mod fortran;
pub mod version;

use crate::abi;
use crate::argument::{Output, TextOutput};
use crate::callback::deliver;
use crate::comm::{self, world};
use crate::datatype;
use crate::error::{Failure, Result, panics};
use crate::info;
use crate::lifecycle::{self, Stage};
use crate::raw;
use std::collections::HashMap;
use std::ffi::{c_char, c_double, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use typepack::Resource;
use typepack::memory::Block;

fn begin(required: c_int) -> Result<c_int> {
    if lifecycle::stage() != Stage::Before {
        let detail = "MPI has already been initialized in this process";
        return Err(Failure::new(abi::ERR_OTHER, "init", detail));
    }
    panics::watch();
    datatype::begin();
    // This call grants exactly the requested thread level, not a higher one, because a program to which
    // `MPI_THREAD_SINGLE` is granted may rely on having only one thread.
    let provided = required.clamp(abi::THREAD_SINGLE, abi::THREAD_MULTIPLE);
    world::begin(provided)?;
    lifecycle::begin();
    Ok(provided)
}

/// `MPI_Init`.
pub fn init(_argc: Output<c_int>, _argv: *mut *mut *mut c_char) -> Result {
    begin(abi::THREAD_SINGLE).map(drop)
}

/// `MPI_Init_thread`.
pub fn init_thread(
    _argc: Output<c_int>,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: Output<c_int>,
) -> Result {
    let out = provided.required("provided")?;
    let levels =
        [abi::THREAD_SINGLE, abi::THREAD_FUNNELED, abi::THREAD_SERIALIZED, abi::THREAD_MULTIPLE];
    if !levels.contains(&required) {
        return Err(Failure::new(
            abi::ERR_ARG,
            "required",
            format!(
                "{required} is not one of MPI_THREAD_SINGLE, _FUNNELED, _SERIALIZED, _MULTIPLE"
            ),
        ));
    }
    out.set(begin(required)?);
    Ok(())
}

/// `MPI_Finalize`.
pub fn finalize() -> Result {
    if lifecycle::stage() != Stage::Inside {
        let detail = match lifecycle::stage() {
            Stage::After => "MPI_Finalize has already been called",
            _ => "MPI_Init has not been called; sessions end by MPI_Session_finalize",
        };
        return Err(Failure::new(abi::ERR_OTHER, "finalize", detail));
    }
    world::end()?;
    lifecycle::end();
    world::leave()?;
    // A function that has deleted an attribute of `MPI_COMM_SELF` may have ended a registration for events. The function
    // for its end could not be called there, and the program may make no other call.
    deliver();
    Ok(())
}

/// `MPI_Initialized`.
pub fn initialized(flag: Output<c_int>) -> Result {
    let out = flag.required("flag")?;
    out.set((lifecycle::stage() != Stage::Before).into());
    Ok(())
}

/// `MPI_Finalized`.
pub fn finalized(flag: Output<c_int>) -> Result {
    let out = flag.required("flag")?;
    out.set((lifecycle::stage() == Stage::After).into());
    Ok(())
}

/// `MPI_Query_thread`.
pub fn query_thread(provided: Output<c_int>) -> Result {
    let out = provided.required("provided")?;
    out.set(lifecycle::threads());
    Ok(())
}

/// `MPI_Is_thread_main`.
pub fn is_thread_main(flag: Output<c_int>) -> Result {
    let out = flag.required("flag")?;
    out.set(lifecycle::is_main_thread().into());
    Ok(())
}

/// `MPI_Abort`: ends the whole job, whatever communicator the program passes.
pub fn abort(comm: raw::Comm, errorcode: c_int) -> Result {
    comm::check(comm)?;
    eprintln!("typepack: {}MPI_Abort with code {errorcode}", lifecycle::who());
    lifecycle::abort(errorcode)
}

/// `MPI_Get_processor_name`.
pub fn processor_name(
    name: TextOutput<{ abi::MAX_PROCESSOR_NAME }>,
    resultlen: Output<c_int>,
) -> Result {
    let host = typepack::processor_name();
    let length = resultlen.required("resultlen")?;
    length.set(name.required("name")?.write(&host));
    Ok(())
}

/// `MPI_Get_hw_resource_info`: returns the types of resources that `MPI_Comm_split_type` knows
/// (`comm/create.rs`). The value `true` means that this process is restricted to one resource of that type.
pub fn hw_resource_info(hw_info: Output<raw::Info>) -> Result {
    let out = hw_info.required("hw_info")?;
    let mut entries = vec![("mpi_shared_memory".into(), "true".into())];
    if let Some(universe) = world::universe() {
        let (placement, rank) = (universe.placement(), universe.rank());
        let bound = |resource| match (resource, &placement) {
            (Resource::Machine, _) => true,
            (resource, Some(placement)) => placement.part(rank, resource).is_some(),
            (_, None) => false,
        };
        let text = |resource| if bound(resource) { "true" } else { "false" };
        let entry = |resource: Resource| (resource.uri().into(), text(resource).into());
        entries.extend(Resource::ALL.map(entry));
    }
    out.set(info::make(entries)?);
    Ok(())
}

/// `MPI_Wtime`: returns the time of the machine's monotonic clock in seconds. All ranks read the same clock.
pub fn wtime() -> c_double {
    typepack::wtime()
}

/// `MPI_Wtick`.
pub fn wtick() -> c_double {
    typepack::wtick()
}

/// `MPI_Pcontrol`: has no effect, because this library does no profiling.
pub fn pcontrol(_level: c_int) -> Result {
    Ok(())
}

/// `MPI_Get_address`.
pub fn get_address(location: *const c_void, address: Output<raw::Aint>) -> Result {
    let out = address.required("address")?;
    out.set(location as raw::Aint);
    Ok(())
}

/// `MPI_Aint_add`: the sum wraps around, as address arithmetic on the machine does.
pub fn aint_add(base: raw::Aint, disp: raw::Aint) -> raw::Aint {
    base.wrapping_add(disp)
}

/// `MPI_Aint_diff`.
pub fn aint_diff(a: raw::Aint, b: raw::Aint) -> raw::Aint {
    a.wrapping_sub(b)
}

/// The memory that `MPI_Alloc_mem` has returned and that has not been freed yet. The key is the address.
static MEMORY: Mutex<Option<HashMap<usize, Block>>> = Mutex::new(None);

fn memory() -> MutexGuard<'static, Option<HashMap<usize, Block>>> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `MPI_Alloc_mem`: returns memory from which other ranks can copy messages directly. The memory is aligned
/// to a cache line, or to the larger alignment that the hint `mpi_minimum_memory_alignment` asks for. It takes pages
/// when they are touched, or all at once if the hint `typepack_populate` is true.
pub fn alloc_mem(size: raw::Aint, info: raw::Info, baseptr: Output<*mut c_void>) -> Result {
    let out = baseptr.required("baseptr")?;
    let size = usize::try_from(size)
        .map_err(|_| Failure::new(abi::ERR_ARG, "size", format!("{size} is negative")))?;
    let info = if info == raw::Info::NULL { None } else { Some(info::find(info)?) };
    let align = info.as_ref().map_or(Ok(1), |info| info.alignment())?;
    let populate = info.is_some_and(|info| info.populate());
    let block = Block::make(size, align, false, populate)?;
    let address = block.as_ptr();
    memory().get_or_insert_default().insert(address as usize, block);
    out.set(address.cast());
    Ok(())
}

/// `MPI_Free_mem`. The standard does not say what happens if the program passes a null pointer. MPICH and
/// Open MPI ignore a null pointer, as C's `free` does, and programs rely on that. So this function ignores it
/// too.
pub fn free_mem(base: *mut c_void) -> Result {
    if base.is_null() {
        return Ok(());
    }
    match memory().as_mut().and_then(|memory| memory.remove(&(base as usize))) {
        Some(_freed) => Ok(()),
        None => {
            let detail =
                format!("{base:?} was not allocated by MPI_Alloc_mem, or has already been freed");
            Err(Failure::new(abi::ERR_BASE, "base", detail))
        }
    }
}
