//! Values that other modules compute from a plan and store with the plan: the plan's signature, whether
//! its data overlaps in memory, its external32 form, and the length of its first run. Each value is
//! computed when it is first requested.
//!
//! Until the first request, the plan holds only one empty pointer (`mod.rs`). So the values cost
//! nothing in a program that needs none of them. This file must not import the modules that use it,
//! so it stores the values as `dyn Any`. A stored value must not refer to the plan, because then the
//! plan would never be freed. An [`Iov`](crate::iov::Iov) refers to its plan, so it cannot be stored
//! here; the code that uses it stores it.

use super::Plan;
use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result};
use std::any::Any;
use std::sync::OnceLock;

/// A slot for one value stored with a plan, named after what the value describes. A slot always holds
/// a value of the same type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    Overlap,
    Signature,
    External32,
    FirstRun,
    Uses,
}

/// The stored values, indexed by [`Room`].
#[derive(Default)]
pub(super) struct Kept([OnceLock<Box<dyn Any + Send + Sync>>; 5]);

impl Plan {
    /// Returns the value in slot `room`. If no value is stored there, `make` computes it. An error is
    /// not stored. If two threads compute the value at the same time, one of the two values is
    /// dropped.
    #[inline]
    pub(crate) fn kept<T: Any + Send + Sync>(
        &self,
        room: Room,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<&T> {
        let slot = &self.0.kept.get_or_init(Box::default).0[room as usize];
        let value = match slot.get() {
            Some(value) => value,
            None => {
                let value = make()?;
                slot.get_or_init(|| Box::new(value))
            }
        };
        value.downcast_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                "plan",
                format!(
                    "the value stored in slot {room:?} has another Rust type than the one requested"
                ),
            )
        })
    }

    /// Returns the datatype of this plan. `what` names what the caller will compute from the
    /// datatype; the text of the error contains this name.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type`, naming `plan`, if the plan was decoded and has no datatype.
    pub(crate) fn datatype_for(&self, what: &str) -> Result<&Datatype> {
        self.datatype().ok_or_else(|| {
            let detail =
                format!("the plan was decoded from bytes, so it has no datatype and no {what}");
            Error::new(ErrorKind::Type, "plan", detail)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Datatype, Named, Plan, pack_external, wire};

    fn plan() -> Plan {
        let column = Datatype::vector(3, 1, 2, &Datatype::named(Named::LONG)).unwrap();
        column.commit().unwrap()
    }

    #[test]
    fn made_once_and_shared_by_clones_and_threads() {
        let (plan, other) = (plan(), plan());
        let twin = plan.clone();
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| std::ptr::from_ref(plan.external32().unwrap()).addr()))
                .collect();
            let first = std::ptr::from_ref(twin.external32().unwrap()).addr();
            assert!(handles.into_iter().all(|handle| handle.join().unwrap() == first));
        });
        assert!(!std::ptr::eq(plan.external32().unwrap(), other.external32().unwrap()));
        assert_eq!(plan.external32().unwrap().element_bytes(), 12);
        let (mut unit, mut position) = ([0; 12], 0);
        let external = plan.external32().unwrap();
        pack_external(external, 1, &[1i64, 0, 2, 0, 3], &mut unit, &mut position).unwrap();
        assert_eq!(unit, [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]);
        assert_eq!(plan.signature().unwrap().to_string(), "3 x integer 8");
        assert!(std::ptr::eq(plan.signature().unwrap(), twin.signature().unwrap()));
    }

    #[test]
    fn a_decoded_plan_has_neither() {
        let bytes = wire::encode(&plan());
        let decoded = wire::decode(&bytes).unwrap();
        assert_eq!(
            decoded.external32().unwrap_err().to_string(),
            "plan: the plan was decoded from bytes, so it has no datatype and no external32 form"
        );
        assert_eq!(
            decoded.signature().unwrap_err().to_string(),
            "plan: the plan was decoded from bytes, so it has no datatype and no signature"
        );
    }
}
