//! Datatypes behind handles.
//!
//! `construct.rs` has the calls that make datatypes, `query.rs` the calls that return their properties, and
//! `decode.rs` the calls that return how a datatype was made. Packing and the message calls use the committed
//! plan of a datatype. The engine implements the datatypes themselves. A [`Type`] adds what only the C
//! interface needs: a name, the plan once the type is committed, and a place for data of the host (the
//! library that uses this crate), such as attributes.

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

/// The type of a function that commits a datatype.
pub type Commit = fn(&Datatype) -> Result<Plan>;

static COMMIT: OnceLock<Commit> = OnceLock::new();

/// Sets the function that commits all datatypes from now on, for example with a code generator. If no
/// function is set, the engine commits the datatypes. Only the first call has an effect; later calls change
/// nothing.
pub fn commit_with(commit: Commit) {
    let _first = COMMIT.set(commit);
}

/// A datatype behind a handle.
#[derive(Debug)]
pub struct Type {
    tree: Datatype,
    plan: OnceLock<Plan>,
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
        let (plan, name, attached) = (OnceLock::new(), Mutex::new(None), OnceLock::new());
        Self { tree, plan, name, attached }
    }

    /// Returns the data that the host has attached to this datatype. The first call makes the data with
    /// `make`. Returns `None` if the data does not have the Rust type `T`. This cannot happen if the host
    /// always uses the same `T`.
    pub fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.attached.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// Returns the engine's datatype.
    pub fn tree(&self) -> &Datatype {
        &self.tree
    }

    /// Commits the datatype if it is not committed yet, and returns its plan.
    ///
    /// # Errors
    /// Returns the errors of the function that [`commit_with`] set, or those of the engine's commit function.
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

    /// Returns the plan of a committed datatype. Predefined datatypes count as committed: the first call
    /// commits them.
    ///
    /// # Errors
    /// Returns `MPI_ERR_TYPE` if the datatype is not committed, and the errors of [`commit`](Self::commit)
    /// for a predefined datatype.
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

/// Calls `work` with the datatype of a handle, which it finds with [`hold`].
///
/// # Errors
/// Returns `MPI_ERR_TYPE` if the handle is not valid, and the errors of `work`.
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
    TYPES.remove(datatype.0).map(drop).ok_or_else(|| invalid(datatype))
}

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn from_int(integer: c_int) -> Option<usize> {
    TYPES.of_int(integer)
}
