//! Commits datatypes with the code generator and the settings of this process. The datatypes are the
//! program's own types, and types that other ranks sent in encoded form. This file also has the plan of the
//! byte type, which needs no code generator.
//!
//! This file takes the settings from `settings.rs`. All other modules get their [`Plan`]s from this file.

use crate::error::check_memory;
use crate::settings::Settings;
use crate::{Error, Result};
use std::sync::{Arc, OnceLock};
use typepack_engine::{Datatype, Named, Plan, Threads};
use typepack_jit::Jit;

/// Returns the code generator of this process. Its counters tell how many kernels it has compiled.
///
/// `TYPEPACK_JIT`, `TYPEPACK_JIT_THRESHOLD` and `TYPEPACK_JIT_MEMORY_MAX` configure the generator. If a
/// `TYPEPACK_*` variable has a value that [`init`](crate::init) and [`commit`] refuse, the generator uses
/// its defaults.
pub fn jit() -> &'static Jit {
    static JIT: OnceLock<Jit> = OnceLock::new();
    JIT.get_or_init(|| {
        let settings = Settings::get().map(|settings| settings.jit.clone());
        Jit::new(settings.unwrap_or_default())
    })
}

/// Commits a datatype with the code generator and the settings of this process.
///
/// # Errors
/// Returns `ErrorKind::Engine` if the engine refuses the type (see [`Datatype::commit`]),
/// `ErrorKind::Argument` if a `TYPEPACK_*` variable has a value outside its domain, and `ErrorKind::NoMemory` if
/// memory is short.
#[doc(alias = "MPI_Type_commit")]
pub fn commit(ty: &Datatype) -> Result<Plan> {
    check_memory()?;
    Ok(ty.commit_with(&engine_settings()?)?)
}

/// Commits a layout that another rank has encoded, with the code generator and the settings of this
/// process.
///
/// # Errors
/// Returns `ErrorKind::Engine` if `encoding` is not an encoded layout, and `ErrorKind::Argument` if a
/// `TYPEPACK_*` variable has a value outside its domain.
pub(crate) fn decode(encoding: &[u8]) -> Result<Plan> {
    Ok(typepack_engine::wire::decode_with(encoding, &engine_settings()?)?)
}

/// Returns the settings of this process for the engine.
///
/// # Errors
/// Returns `ErrorKind::Argument` if a `TYPEPACK_*` variable has a value outside its domain.
pub(crate) fn engine_settings() -> Result<typepack_engine::Settings> {
    let settings = Settings::get()?;
    Ok(typepack_engine::Settings {
        compiler: Some(Arc::new(jit().clone())),
        verify: settings.verify,
        strategy: settings.strategy,
        isa: settings.isa,
    })
}

/// Returns the group of threads of this process that pack and unpack one buffer together. The first call
/// starts the threads.
///
/// `TYPEPACK_THREADS` sets the number of threads; without the variable, only the calling thread works.
/// There are never more threads than CPUs that the process may use. Messages and halo exchanges do not use
/// these threads, because a rank shares its node with other ranks.
///
/// ```
/// let plan = typepack::commit(&"vector(1000, 1, 2, double)".parse()?)?;
/// let (source, mut packed) = (vec![1.0_f64; 2000], vec![0; 8000]);
/// // The calling thread does short calls alone, whatever the number of threads.
/// assert_eq!(typepack::threads()?.pack(&plan, 1, &source, &mut packed)?, 8000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns `ErrorKind::Argument` if a `TYPEPACK_*` variable has a value outside its domain, and
/// `ErrorKind::Engine` if the operating system refuses to start a thread. Later calls return the first
/// call's error without trying again.
pub fn threads() -> Result<&'static Threads> {
    static THREADS: OnceLock<Result<Threads>> = OnceLock::new();
    let start = || Ok(Threads::new(Settings::get()?.threads)?);
    THREADS.get_or_init(start).as_ref().map_err(Clone::clone)
}

/// Returns the plan of the type of one byte without a sign. Transfers of plain bytes and the library's own messages count their
/// data in elements of this type.
pub(crate) fn bytes() -> Result<&'static Plan> {
    static PLAN: OnceLock<std::result::Result<Plan, typepack_engine::Error>> = OnceLock::new();
    PLAN.get_or_init(|| Datatype::named(Named::U8).commit())
        .as_ref()
        .map_err(|error| Error::from(error.clone()))
}
