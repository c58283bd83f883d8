//! Datatypes behind handles.
//!
//! `construct.rs` has the calls that make datatypes, `query.rs` the calls that return their properties, and
//! `decode.rs` the calls that return how a datatype was made. Packing and the message calls use the
//! plan of a committed datatype. The engine implements the datatypes themselves. A [`Type`] adds what only the C
//! interface needs: a name, whether the type is committed, its plan, and a place for data of the host (the
//! library that uses this crate), such as attributes.
//!
//! `MPI_Type_commit` checks the datatype, and the first call that moves data with it makes the plan. To make a plan
//! takes time in proportion to the whole tree of the datatype. A program may commit each of many datatypes that it
//! builds on top of each other and use only the last one; each commit then takes constant time. A duplicate shares
//! the plan of its original.

pub mod construct;
pub mod decode;
pub mod predefined;
pub mod query;

use crate::abi;
use crate::buffer::count;
use crate::count_width::Number;
use crate::failure::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::{Busy, Table};
use crate::handle::thread_cache::{Held, Home, ThreadCache};
use crate::raw;
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use typepack_engine::{Datatype, Elements, Plan};

/// The type of a function that makes the plan of a datatype.
pub type Commit = fn(&Datatype) -> Result<Plan>;

/// What the host does for datatypes.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Makes plans, for example with a code generator.
    pub commit: Commit,
    /// True if `MPI_Type_commit` makes the plan. Otherwise the first call that needs the plan makes it.
    pub plans_at_commit: bool,
    /// Gives freed memory back to the system.
    pub give_back: fn(),
}

static HOST: OnceLock<Host> = OnceLock::new();

/// Makes `host` serve all datatypes from now on. Without a host, the engine makes the plans. Only the first call
/// has an effect; later calls change nothing.
pub fn serve_with(host: Host) {
    let _first = HOST.set(host);
}

/// A datatype behind a handle.
#[derive(Debug)]
pub struct Type {
    tree: Datatype,
    /// True if the program has committed the datatype.
    committed: AtomicBool,
    /// The plan, once a call has needed it. Only a committed or predefined datatype has a plan.
    plan: OnceLock<Plan>,
    /// A datatype with the same typemap, whose plan this datatype shares; `None` if there is none. That datatype
    /// has no such datatype itself.
    original: Option<Arc<Type>>,
    name: Mutex<Option<Vec<u8>>>,
    attached: OnceLock<Box<dyn Any + Send + Sync>>,
}

static TYPES: Table<Type> = Table::new(Kind::Datatype);

/// For each thread, the datatypes that it used most recently in packing calls and other short calls.
static CACHE: ThreadCache<Type> = ThreadCache::new();

thread_local! {
    static HOME: Home<Type> = const { Home::new() };
}

impl Type {
    /// Makes a datatype without a name.
    pub fn new(tree: Datatype) -> Self {
        Self {
            tree,
            committed: AtomicBool::new(false),
            plan: OnceLock::new(),
            original: None,
            name: Mutex::new(None),
            attached: OnceLock::new(),
        }
    }

    /// Makes a datatype without a name that shares the plan of `old`, and is committed if `old` is. The typemap of
    /// `tree` must be that of `old`.
    pub fn sharing(tree: Datatype, old: &Arc<Self>) -> Self {
        let mut made = Self::new(tree);
        made.committed = AtomicBool::new(old.is_committed());
        match old.plan.get() {
            Some(plan) => made.plan = OnceLock::from(plan.clone()),
            None => made.original = Some(Arc::clone(old.original.as_ref().unwrap_or(old))),
        }
        made
    }

    /// Returns the data that the host has attached to this datatype. The first call makes the data with
    /// `make`. Returns `None` if the data does not have the Rust type `T`. This cannot happen if the host
    /// always uses the same `T`.
    pub fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.attached.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// Like [`attached`](Self::attached), but makes no data. Returns `None` if the host has attached none yet.
    pub fn already_attached<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.attached.get()?.downcast_ref()
    }

    /// Returns the engine's datatype.
    pub fn tree(&self) -> &Datatype {
        &self.tree
    }

    /// Returns whether the datatype is committed. Predefined datatypes are committed.
    pub fn is_committed(&self) -> bool {
        self.committed.load(Ordering::Acquire) || self.tree.is_predefined()
    }

    /// Commits the datatype if it is not committed yet.
    ///
    /// # Errors
    /// Returns the errors of the host's or the engine's commit function.
    pub fn commit(&self) -> Result {
        if self.committed.load(Ordering::Acquire) {
            return Ok(());
        }
        // If the datatype may be too large for a plan, this call must find out.
        if !self.tree.is_within_limits() || HOST.get().is_some_and(|host| host.plans_at_commit) {
            self.planned()?;
        }
        self.committed.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns the plan, which this function makes if the datatype has none yet.
    fn planned(&self) -> Result<&Plan> {
        if let Some(plan) = self.plan.get() {
            return Ok(plan);
        }
        let made = |tree: &Datatype| match HOST.get() {
            Some(host) => (host.commit)(tree),
            None => Ok(tree.commit()?),
        };
        let plan = match &self.original {
            None => made(&self.tree)?,
            Some(original) if original.is_committed() => original.planned()?.clone(),
            // The program has not committed the original. It must not get a plan then.
            Some(original) => made(&original.tree)?,
        };
        Ok(self.plan.get_or_init(|| plan))
    }

    /// Returns the plan of a committed datatype. The first call makes the plan.
    ///
    /// # Errors
    /// Returns `MPI_ERR_TYPE` if the datatype is not committed, and the errors of the host's or
    /// the engine's commit function.
    #[inline]
    pub fn plan(&self) -> Result<&Plan> {
        match self.plan.get() {
            Some(plan) => Ok(plan),
            None => self.first_plan(),
        }
    }

    /// Checks that the datatype is committed.
    ///
    /// # Errors
    /// Returns `MPI_ERR_TYPE` if the datatype is not committed.
    pub fn check_committed(&self) -> Result {
        if self.is_committed() { Ok(()) } else { Err(self.not_committed()) }
    }

    #[cold]
    fn first_plan(&self) -> Result<&Plan> {
        self.check_committed()?;
        self.planned()
    }

    #[cold]
    fn not_committed(&self) -> Failure {
        let name = self.name.lock().ok().and_then(|name| name.clone());
        let name = name.map_or_else(
            || "a datatype".to_owned(),
            |name| String::from_utf8_lossy(&name).into_owned(),
        );
        let detail = format!("{name} is used before MPI_Type_commit");
        Failure::new(abi::ERR_TYPE, "datatype", detail)
    }
}

/// Makes a handle for a new datatype.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn insert(tree: Datatype) -> Result<raw::Datatype> {
    insert_type(Arc::new(Type::new(tree)))
}

/// Makes a handle for a datatype that the host has made.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn insert_type(made: Arc<Type>) -> Result<raw::Datatype> {
    Ok(raw::Datatype(TYPES.insert(made)?))
}

/// Returns the datatype of a handle.
///
/// # Errors
/// Returns `MPI_ERR_TYPE` if the handle is not valid.
pub fn find(datatype: raw::Datatype) -> Result<Arc<Type>> {
    match predefined::find(datatype) {
        Some(found) => Ok(Arc::clone(found)),
        None => TYPES.find(datatype.0).ok_or_else(|| invalid(datatype)),
    }
}

/// Returns the datatype of a handle, or `None` if the handle is not valid, without waiting for a lock. Finds predefined
/// datatypes only after [`predefined::prepare`].
///
/// # Errors
/// Returns [`Busy`] if a thread is changing the table of datatypes.
pub fn try_find(datatype: raw::Datatype) -> std::result::Result<Option<Arc<Type>>, Busy> {
    if datatype.0 <= predefined::LAST && !predefined::is_ready() {
        return Ok(None);
    }
    match predefined::find(datatype) {
        Some(found) => Ok(Some(Arc::clone(found))),
        None => TYPES.try_find(datatype.0),
    }
}

/// Returns the datatype of a handle from the cache of the calling thread. Calls that take only a few
/// nanoseconds use this function instead of [`find`], because it takes no lock if the thread has used the
/// handle recently.
///
/// # Errors
/// Returns `MPI_ERR_TYPE` if the handle is not valid.
#[inline(always)]
pub fn hold(datatype: raw::Datatype) -> Result<Held<Type>> {
    // Handles of the user's datatypes are greater than `LAST`.
    if datatype.0 <= predefined::LAST {
        return predefined::find(datatype).map(Held::forever).ok_or_else(|| invalid(datatype));
    }
    CACHE.find(&HOME, &TYPES, datatype.0).ok_or_else(|| invalid(datatype))
}

/// Makes the calling thread ready for [`hold`], so that its first call allocates nothing.
pub fn prepare_thread() {
    ThreadCache::prepare(&HOME);
}

/// Checks the count and the datatype of a buffer, and returns its elements for an operation that may continue after the
/// call returns.
///
/// # Errors
/// Returns `MPI_ERR_COUNT` if the count is negative, `MPI_ERR_VALUE_TOO_LARGE` if the number of packed bytes
/// does not fit in 63 bits, and `MPI_ERR_TYPE` if the datatype is not valid or not committed.
pub fn elements(
    buf: *const c_void,
    elements: impl Number,
    datatype: raw::Datatype,
) -> Result<Elements<Plan>> {
    let count = count(elements, "count")?;
    let elements = Elements::new(buf, hold(datatype)?.plan()?.clone(), count);
    // If the number of packed bytes does not fit in 63 bits, `bytes` returns the error here, before an operation
    // starts.
    elements.bytes()?;
    Ok(elements)
}

#[cold]
fn invalid(datatype: raw::Datatype) -> Failure {
    let null = (abi::DATATYPE_NULL, "MPI_DATATYPE_NULL");
    Failure::no_object(abi::ERR_TYPE, ("datatype", "datatype"), datatype.0, null)
}

/// Returns the datatype of a handle that the program wants to free.
///
/// # Errors
/// Returns `MPI_ERR_TYPE` if the handle is not valid or the datatype is predefined.
pub fn find_own(datatype: raw::Datatype) -> Result<Arc<Type>> {
    let found = find(datatype)?;
    if found.tree.is_predefined() {
        let detail = format!("{:#x} is predefined and cannot be freed", datatype.0);
        return Err(Failure::new(abi::ERR_TYPE, "datatype", detail));
    }
    Ok(found)
}

/// Makes a handle invalid.
///
/// # Errors
/// Returns `MPI_ERR_TYPE` if the handle is not valid.
pub fn remove(datatype: raw::Datatype) -> Result {
    /// The number of removals after which this function looks whether memory should be given back.
    const OFTEN: u64 = 1 << 10;
    TYPES.remove(datatype.0).map(drop).ok_or_else(|| invalid(datatype))?;
    // A datatype consists of several small blocks of memory. The C library's allocator keeps such blocks when they
    // are freed.
    if TYPES.removals().is_multiple_of(OFTEN)
        && TYPES.has_shrunk()
        && let Some(host) = HOST.get()
    {
        (host.give_back)();
    }
    Ok(())
}

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn from_int(integer: c_int) -> Option<usize> {
    TYPES.of_int(integer)
}
