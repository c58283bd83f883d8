//! Datatypes behind handles.
//!
//! `construct.rs` makes them, `query.rs` asks, `decode.rs` takes them apart; `pack.rs` and the
//! message calls use the committed plan. The engine has the types themselves: a [`Type`] adds what
//! only the C face knows, the name and whether the type was committed.

pub mod attribute;
pub mod construct;
pub mod decode;
pub mod predefined;
pub mod query;

use crate::abi;
use crate::attribute::Attributes;
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::hot::{Held, Home, Hot};
use crate::handle::table::Table;
use crate::raw;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock};
use typepack::{Datatype, Plan};

/// A datatype.
#[derive(Debug)]
pub struct Type {
    tree: Datatype,
    plan: OnceLock<Plan>,
    name: Mutex<Option<Vec<u8>>>,
    attributes: Attributes,
}

static TYPES: Table<Type> = Table::new(Kind::Datatype);

/// What each thread packed last.
static HOT: Hot<Type> = Hot::new();

thread_local! {
    static HOME: Home<Type> = const { Home::new() };
}

impl Type {
    fn new(tree: Datatype) -> Self {
        let (plan, name, attributes) = (OnceLock::new(), Mutex::new(None), Attributes::new());
        Self { tree, plan, name, attributes }
    }

    /// The engine's type.
    pub fn tree(&self) -> &Datatype {
        &self.tree
    }

    /// Commits it, once.
    ///
    /// # Errors
    /// As [`typepack::commit`].
    pub fn commit(&self) -> Result<&Plan> {
        if let Some(plan) = self.plan.get() {
            return Ok(plan);
        }
        let plan = typepack::commit(&self.tree)?;
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
    Ok(raw::Datatype(TYPES.insert(Arc::new(Type::new(tree)))?))
}

/// Gives a duplicate of a type a handle, and the attributes that are copied.
///
/// # Errors
/// No handle is left; the code of a copy function.
fn duplicate(original: raw::Datatype, from: &Type, copy: Type) -> Result<raw::Datatype> {
    let copy = Arc::new(copy);
    let handle = TYPES.insert(copy.clone())?;
    if let Err(failure) = from.attributes.copy(original.0, &copy.attributes, handle) {
        TYPES.remove(handle);
        return Err(failure);
    }
    Ok(raw::Datatype(handle))
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
    HOT.find(&HOME, &TYPES, datatype.0).ok_or_else(|| invalid(datatype))
}

/// Calls `work` with the type of a handle.
///
/// # Errors
/// `MPI_ERR_TYPE`; what `work` returns.
#[inline]
pub fn with<R>(datatype: raw::Datatype, work: impl FnOnce(&Type) -> Result<R>) -> Result<R> {
    work(&*hold(datatype)?)
}

#[cold]
fn invalid(datatype: raw::Datatype) -> Failure {
    let null = (abi::DATATYPE_NULL, "MPI_DATATYPE_NULL");
    Failure::no_object(abi::ERR_TYPE, ("datatype", "datatype"), datatype.0, null)
}

/// Frees the type of a handle: its attributes first, which may refuse.
///
/// # Errors
/// `MPI_ERR_TYPE`, also for a predefined type; the code of a delete function.
pub fn remove(datatype: raw::Datatype) -> Result {
    let found = find(datatype)?;
    if found.tree.is_predefined() {
        let detail = format!("{:#x} is predefined and cannot be freed", datatype.0);
        return Err(Failure::new(abi::ERR_TYPE, "datatype", detail));
    }
    found.attributes.clear(datatype.0)?;
    TYPES.remove(datatype.0).map(drop).ok_or_else(|| invalid(datatype))
}

/// The live handle with this integer.
pub fn from_int(integer: c_int) -> Option<usize> {
    TYPES.of_int(integer)
}
