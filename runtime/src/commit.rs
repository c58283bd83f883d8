//! Commits datatypes with the code generator and the settings of this process. The datatypes are the
//! program's own types, and types that other ranks sent in encoded form. This file also has the plan of the
//! byte type, which needs no code generator.
//!
//! This file takes the settings from `settings.rs`. All other modules get their [`Plan`]s from this file.

use crate::Result;
use crate::error::check_memory;
use crate::settings::Settings;
#[cfg(feature = "jit")]
use crate::tools::counting::{self, Subject};
#[cfg(feature = "jit")]
use crate::tools::raised::raise;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use typepack_engine::{Datatype, Named, Plan, Threads, Uses, text};
#[cfg(feature = "jit")]
use typepack_jit::{Jit, Mode};

#[cfg(feature = "jit")]
static JIT: OnceLock<Jit> = OnceLock::new();

/// Returns the code generator of this process. Its counters tell how many kernels it has compiled.
///
/// `TYPEPACK_JIT`, `TYPEPACK_JIT_THRESHOLD` and `TYPEPACK_JIT_MEMORY_MAX` configure the generator. If a
/// `TYPEPACK_*` variable has a value that [`init`](crate::init) and [`commit`] refuse, the generator uses
/// its defaults.
#[cfg(feature = "jit")]
pub fn jit() -> &'static Jit {
    JIT.get_or_init(|| {
        let settings = Settings::get().map(|settings| settings.jit.clone());
        Jit::new(settings.unwrap_or_default())
    })
}

/// What the code generator has done.
#[cfg(feature = "jit")]
pub(crate) type KernelCounters = typepack_jit::Counters;

/// What the code generator has done; all 0, because the library was built without one.
#[cfg(not(feature = "jit"))]
#[derive(Default)]
pub(crate) struct KernelCounters {
    pub kernels: u64,
    pub hits: u64,
    pub refusals: u64,
    pub compile_ns: u64,
    pub code_bytes: u64,
}

/// Returns what the code generator has done in this process.
#[cfg(feature = "jit")]
pub(crate) fn counters() -> KernelCounters {
    // This function makes no code generator, because that needs the settings, which the program may still change.
    JIT.get().map(Jit::counters).unwrap_or_default()
}

/// Returns what the code generator has done in this process: nothing.
#[cfg(not(feature = "jit"))]
pub(crate) fn counters() -> KernelCounters {
    KernelCounters::default()
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
    commit_unchecked(ty)
}

/// Like [`commit`], for callers that check whether memory is short themselves.
pub(crate) fn commit_unchecked(ty: &Datatype) -> Result<Plan> {
    let plan = ty.commit_with(engine_settings()?)?;
    if Settings::current().is_some_and(|settings| settings.report_types) {
        watch(ty, &plan);
    }
    Ok(plan)
}

/// The committed types, as expressions, and their uses. Equal types share an entry.
static TYPES: Mutex<BTreeMap<String, Arc<Uses>>> = Mutex::new(BTreeMap::new());

/// The most entries of [`TYPES`]. All types after these share one entry.
const MOST_TYPES: usize = 10_000;
/// The most bytes of an expression in [`TYPES`]. A longer one is abridged.
const MOST_BYTES: usize = 1000;

/// Counts the uses of a committed type for the report.
#[cold]
fn watch(ty: &Datatype, plan: &Plan) {
    let mut expression = text::print(ty);
    if expression.len() > MOST_BYTES {
        expression = text::abridge(ty);
    }
    let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    if types.len() >= MOST_TYPES && !types.contains_key(&expression) {
        expression = "(all other types)".into();
    }
    plan.watch(types.entry(expression).or_default().clone());
}

/// Returns a line for each committed type, those with the most bytes first. Without `TYPEPACK_REPORT=types`, there are
/// no lines.
pub(crate) fn types() -> Vec<String> {
    let types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut types: Vec<_> = types.iter().collect();
    types.sort_by_key(|(_, uses)| std::cmp::Reverse(uses.bytes()));
    let line = |(expression, uses): (&String, &Arc<Uses>)| {
        format!("{expression}: {} uses, {} bytes", uses.calls(), uses.bytes())
    };
    types.into_iter().map(line).collect()
}

/// Returns true if a commit must make the plan at once: the user wants kernels to be compiled at commit
/// (`TYPEPACK_JIT=eager`), or a list of all committed types (`TYPEPACK_REPORT=types`).
pub fn plans_at_commit() -> bool {
    Settings::get().is_ok_and(|settings| {
        #[cfg(feature = "jit")]
        let eager = settings.jit.mode == Mode::Eager;
        #[cfg(not(feature = "jit"))]
        let eager = false;
        eager || settings.report_types
    })
}

/// Commits a layout that another rank has encoded, with the code generator and the settings of this
/// process.
///
/// # Errors
/// Returns `ErrorKind::Engine` if `encoding` is not an encoded layout, and `ErrorKind::Argument` if a
/// `TYPEPACK_*` variable has a value outside its domain.
pub(crate) fn decode(encoding: &[u8]) -> Result<Plan> {
    Ok(typepack_engine::wire::decode_with(encoding, engine_settings()?)?)
}

/// Returns the code generator for the engine. It tells tools what it compiles.
#[cfg(feature = "jit")]
fn compiler() -> Option<Arc<dyn typepack_engine::kernel::Compiler>> {
    jit().on_compiled(|nanoseconds, code| {
        if counting::is_wanted(Subject::KernelCompiled) {
            raise(Subject::KernelCompiled, [nanoseconds, code, 0, 0]);
        }
    });
    Some(Arc::new(jit().clone()))
}

/// Returns no code generator, because the library was built without one.
#[cfg(not(feature = "jit"))]
fn compiler() -> Option<Arc<dyn typepack_engine::kernel::Compiler>> {
    None
}

/// Returns the settings of this process for the engine.
///
/// # Errors
/// Returns `ErrorKind::Argument` if a `TYPEPACK_*` variable has a value outside its domain.
pub fn engine_settings() -> Result<&'static typepack_engine::Settings> {
    static ENGINE: OnceLock<typepack_engine::Settings> = OnceLock::new();
    let settings = Settings::get()?;
    Ok(ENGINE.get_or_init(|| typepack_engine::Settings {
        unmeasured: !settings.tune.measures(typepack_engine::choice::KERNELS),
        compiler: compiler(),
        verify: settings.verify,
        strategy: settings.strategy,
        isa: settings.isa,
    }))
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

/// Returns the plan of the type of one byte without a sign. Transfers of plain bytes and the library's own messages
/// count their data in elements of this type.
pub(crate) fn bytes() -> Result<&'static Plan> {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    if let Some(plan) = PLAN.get() {
        return Ok(plan);
    }
    // An error is not kept: it can only be that memory is short.
    let plan = Datatype::named(Named::U8).commit()?;
    Ok(PLAN.get_or_init(|| plan))
}
