//! Repeats the constructor calls of a tree with other types in place of the named types.
//!
//! `view/` uses this for a file whose data representation gives a named type another size than it has in
//! memory. In the new tree, displacements and strides that count elements use the sizes in the file, and
//! displacements and strides in bytes stay unchanged (MPI-5.0 section 14.5).

use super::{Call, Constructor, Datatype};
use crate::error::{Error, ErrorKind, Result};
use crate::named::Named;
use std::collections::HashMap;

impl Datatype {
    /// Returns the type that the constructor calls of this tree make if `leaf(named)` takes the place of
    /// each named type. Bound markers stay. A value-index pair without a name becomes a struct of its two
    /// types without a gap. A node that several places of the tree share is made once.
    ///
    /// # Errors
    ///
    /// Returns the errors of `leaf`. Returns `ErrorKind::Overflow` if a size, a bound or a displacement
    /// of the new tree does not fit in an `i64`.
    pub(crate) fn with_leaves(
        &self,
        leaf: &mut dyn FnMut(Named) -> Result<Datatype>,
    ) -> Result<Datatype> {
        let mut done: HashMap<*const (), Datatype> = HashMap::new();
        let mut pending = vec![self];
        while let Some(&top) = pending.last() {
            let children = children(top.constructor());
            let before = pending.len();
            pending.extend(children.iter().filter(|child| !done.contains_key(&child.address())));
            if pending.len() == before {
                pending.pop();
                let made = top.over(&done, leaf)?;
                done.insert(top.address(), made);
            }
        }
        done.remove(&self.address()).ok_or_else(|| lost(self))
    }

    /// Repeats the call that made this type, with the types that `done` holds for the call's old types.
    /// `done` must hold a new type for each of them; its keys are the addresses of the old types.
    fn over(
        &self,
        done: &HashMap<*const (), Datatype>,
        leaf: &mut dyn FnMut(Named) -> Result<Datatype>,
    ) -> Result<Datatype> {
        let new = |old: &Datatype| done.get(&old.address()).cloned().ok_or_else(|| lost(old));
        let mut call = self.constructor().clone();
        match &mut call {
            Constructor::Named(named) if named.is_marker() => return Ok(self.clone()),
            Constructor::Named(named) => return leaf(*named),
            Constructor::Struct { types, .. } => {
                for old in types.iter_mut() {
                    *old = new(old)?;
                }
            }
            Constructor::Composite { call, layout } => match &mut **call {
                Call::Darray(darray) => {
                    darray.old = new(&darray.old)?;
                    return darray.layout();
                }
                Call::F90(_) => return new(layout),
                Call::ValueIndex { value, index } => {
                    let (value, index) = (new(value)?, new(index)?);
                    return Self::structured(&[1, 1], &[0, value.extent()], &[value, index]);
                }
            },
            Constructor::Dup { old }
            | Constructor::Contiguous { old, .. }
            | Constructor::Vector { old, .. }
            | Constructor::Hvector { old, .. }
            | Constructor::Indexed { old, .. }
            | Constructor::Hindexed { old, .. }
            | Constructor::IndexedBlock { old, .. }
            | Constructor::HindexedBlock { old, .. }
            | Constructor::Subarray { old, .. }
            | Constructor::Resized { old, .. } => *old = new(old)?,
        }
        Self::build_with_markers(call)
    }
}

/// Returns the types that were passed to a call. For a distributed array, this is the element type of the
/// user's call and not the stored layout, because the layout depends on the extent of the element type.
fn children(call: &Constructor) -> Vec<&Datatype> {
    match call {
        Constructor::Composite { call, layout } => match &**call {
            Call::Darray(darray) => vec![&darray.old],
            Call::F90(_) => vec![layout],
            Call::ValueIndex { value, index } => vec![value, index],
        },
        other => other.children().iter().collect(),
    }
}

#[cold]
fn lost(ty: &Datatype) -> Error {
    Error::new(
        ErrorKind::Internal,
        "datatype",
        format!("the type {ty:?} was not made before the type that contains it"),
    )
}
