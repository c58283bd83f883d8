//! Datatypes behind handles.
//!
//! `construct.rs` makes them, `query.rs` asks, `decode.rs` takes them apart; `pack.rs` and the
//! message calls use the committed plan. The engine has the types themselves: a [`Type`] adds what
//! only C knows, the name and whether the type was committed, and a place for what the host hangs on it.

pub mod construct;
pub mod decode;
pub mod predefined;
pub mod query;

use crate::abi;
use crate::failure::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::handle::thread_cache::{Held, Home, ThreadCache};
use crate::raw;
use std::any::Any;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock};
use typepack_engine::{Datatype, Plan};

/// How a type is committed.
pub type Commit = fn(&Datatype) -> Result<Plan>;

static COMMIT: OnceLock<Commit> = OnceLock::new();

/// Commits types this way from now on, instead of the engine's: with a code generator, say. The first
/// call counts.
pub fn commit_with(commit: Commit) {
    let _first = COMMIT.set(commit);
}

/// A datatype.
#[derive(Debug)]
pub struct Type {
    tree: Datatype,
    plan: OnceLock<Plan>,
    name: Mutex<Option<Vec<u8>>>,
    attached: OnceLock<Box<dyn Any + Send + Sync>>,
}

static TYPES: Table<Type> = Table::new(Kind::Datatype);

/// What each thread packed last.
static CACHE: ThreadCache<Type> = ThreadCache::new();

thread_local! {
    static HOME: Home<Type> = const { Home::new() };
}

impl Type {
    /// One without a name.
    pub fn new(tree: Datatype) -> Self {
        let (plan, name, attached) = (OnceLock::new(), Mutex::new(None), OnceLock::new());
        Self { tree, plan, name, attached }
    }

    /// What the host keeps with the type; made by the first who asks. `None` if it is of another Rust
    /// type, which a host that asks for one only never sees.
    pub fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.attached.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// The engine's type.
    pub fn tree(&self) -> &Datatype {
        &self.tree
    }

    /// Commits it, once.
    ///
    /// # Errors
    /// Those of the host's way to commit, or of the engine's.
    pub fn commit(&self) -> Result<&Plan> {
        if let Some(plan) = self.plan.get() {
            return Ok(plan);
        }
        let plan = match COMMIT.get() {
            Some(commit) => commit(&self.tree)?,
            None => self.tree.commit()?,
        };
        Ok(self.plan.get_or_init(|| plan))
    }

    /// The plan of a committed type.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE` for one that is not committed.
    #[inline]
    pub fn plan(&self) -> Result<&Plan> {
        match self.plan.get() {
            Some(plan) => Ok(plan),
            None => self.not_committed(),
        }
    }

    #[cold]
    fn not_committed(&self) -> Result<&Plan> {
        if self.tree.is_predefined() {
            return self.commit();
        }
        let name = self.name.lock().ok().and_then(|name| name.clone());
        let name = name.map_or_else(
            || "a datatype".to_owned(),
            |name| String::from_utf8_lossy(&name).into_owned(),
        );
        let detail = format!("{name} is used before MPI_Type_commit");
        Err(Failure::new(abi::ERR_TYPE, "datatype", detail))
    }
}

/// Gives a new type a handle.
///
/// # Errors
/// No handle is left.
pub fn insert(tree: Datatype) -> Result<raw::Datatype> {
    insert_type(Arc::new(Type::new(tree)))
}

/// The same for one that the host has made.
///
/// # Errors
/// No handle is left.
pub fn insert_type(made: Arc<Type>) -> Result<raw::Datatype> {
    Ok(raw::Datatype(TYPES.insert(made)?))
}

/// The type of a handle.
///
/// # Errors
/// `MPI_ERR_TYPE`.
pub fn find(datatype: raw::Datatype) -> Result<Arc<Type>> {
    match predefined::find(datatype) {
        Some(found) => Ok(Arc::clone(found)),
        None => TYPES.find(datatype.0).ok_or_else(|| invalid(datatype)),
    }
}

/// The type of a handle, held by the calling thread: [`find`] for calls of a few nanoseconds.
///
/// # Errors
/// `MPI_ERR_TYPE`.
#[inline(always)]
pub fn hold(datatype: raw::Datatype) -> Result<Held<Type>> {
    // No number up to there is a user's handle.
    if datatype.0 <= predefined::LAST {
        return predefined::find(datatype).map(Held::forever).ok_or_else(|| invalid(datatype));
    }
    CACHE.find(&HOME, &TYPES, datatype.0).ok_or_else(|| invalid(datatype))
}

/// Calls `work` with the type of a handle.
///
/// # Errors
/// `MPI_ERR_TYPE`; what `work` returns.
#[inline]
pub fn with<R, E: From<Failure>>(
    datatype: raw::Datatype,
    work: impl FnOnce(&Type) -> std::result::Result<R, E>,
) -> std::result::Result<R, E> {
    work(&*hold(datatype)?)
}

#[cold]
fn invalid(datatype: raw::Datatype) -> Failure {
    let null = (abi::DATATYPE_NULL, "MPI_DATATYPE_NULL");
    Failure::no_object(abi::ERR_TYPE, ("datatype", "datatype"), datatype.0, null)
}

/// The type of a handle that may be freed.
///
/// # Errors
/// `MPI_ERR_TYPE`, also for a predefined type.
pub fn find_own(datatype: raw::Datatype) -> Result<Arc<Type>> {
    let found = find(datatype)?;
    if found.tree.is_predefined() {
        let detail = format!("{:#x} is predefined and cannot be freed", datatype.0);
        return Err(Failure::new(abi::ERR_TYPE, "datatype", detail));
    }
    Ok(found)
}

/// Takes a handle away from its type.
///
/// # Errors
/// `MPI_ERR_TYPE`.
pub fn remove(datatype: raw::Datatype) -> Result {
    TYPES.remove(datatype.0).map(drop).ok_or_else(|| invalid(datatype))
}

/// The live handle with this integer.
pub fn from_int(integer: c_int) -> Option<usize> {
    TYPES.of_int(integer)
}
