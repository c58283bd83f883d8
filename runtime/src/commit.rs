//! Committing with this process's code generator and settings: own types, types of other ranks, the byte.
//!
//! Before this file comes `settings.rs`; after it everything that holds a [`Plan`].

use crate::settings::Settings;
use crate::{Error, Result};
use std::sync::{Arc, OnceLock};
use typepack_engine::{Datatype, Named, Plan, Threads};
use typepack_jit::Jit;

/// The code generator of this process; its counters say what has been compiled.
///
/// Configured by `TYPEPACK_JIT`, `TYPEPACK_JIT_THRESHOLD` and `TYPEPACK_JIT_MEMORY_MAX`; with a
/// value that [`init`](crate::init) and [`commit`] refuse, by the defaults.
pub fn jit() -> &'static Jit {
    static JIT: OnceLock<Jit> = OnceLock::new();
    JIT.get_or_init(|| {
        let settings = Settings::get().map(|settings| settings.jit.clone());
        Jit::new(settings.unwrap_or_default())
    })
}

/// Commits a datatype with this process's code generator and settings.
///
/// # Errors
/// As [`Datatype::commit`]; a `TYPEPACK_*` variable outside its domain.
#[doc(alias = "MPI_Type_commit")]
pub fn commit(ty: &Datatype) -> Result<Plan> {
    Ok(ty.commit_with(&engine_settings()?)?)
}

/// As [`commit`], for a layout of another rank.
///
/// # Errors
/// No encoded layout; a `TYPEPACK_*` variable outside its domain.
pub(crate) fn decode(encoding: &[u8]) -> Result<Plan> {
    Ok(typepack_engine::wire::decode_with(encoding, &engine_settings()?)?)
}

fn engine_settings() -> Result<typepack_engine::Settings> {
    let settings = Settings::get()?;
    Ok(typepack_engine::Settings {
        compiler: Some(Arc::new(jit().clone())),
        verify: settings.verify,
        strategy: settings.strategy,
        isa: settings.isa,
    })
}

/// The threads of this process that pack and unpack together, as many as `TYPEPACK_THREADS` says
/// and at most one for each CPU it may use; one, the caller, unless the variable asks for more.
/// Started at the first call. Messages and exchanges do not use them: a rank shares its node.
///
/// ```
/// let plan = typepack::commit(&"vector(1000, 1, 2, double)".parse()?)?;
/// let (source, mut packed) = (vec![1.0_f64; 2000], vec![0; 8000]);
/// // Short calls are the caller's alone, whatever the number of threads.
/// assert_eq!(typepack::threads()?.pack(&plan, 1, &source, &mut packed)?, 8000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A `TYPEPACK_*` variable outside its domain; the system refuses the threads, which is not asked
/// again.
pub fn threads() -> Result<&'static Threads> {
    static THREADS: OnceLock<Result<Threads>> = OnceLock::new();
    let start = || Ok(Threads::new(Settings::get()?.threads)?);
    THREADS.get_or_init(start).as_ref().map_err(Clone::clone)
}

/// The committed byte, in which transfers and collective calls count.
pub(crate) fn bytes() -> Result<&'static Plan> {
    static PLAN: OnceLock<std::result::Result<Plan, typepack_engine::Error>> = OnceLock::new();
    PLAN.get_or_init(|| Datatype::named(Named::U8).commit())
        .as_ref()
        .map_err(|error| Error::from(error.clone()))
}
