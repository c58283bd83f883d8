//! What is made of a plan's type when somebody first asks, and kept with the plan: its external32
//! form and its signature, and what was found out about overlap (`analysis/known.rs`).
//!
//! Beside `plan/`, which holds one empty pointer until then, so that a commit that needs neither
//! does not pay. Both come from the tree: a plan that was decoded ([`wire`](crate::wire)) has none,
//! since its bytes say what to move, not what it is. Nothing in here refers to the plan, which
//! would never be freed then; that is why [`Iov`](crate::analysis::iov::Iov), which holds its plan, is left to
//! whoever asks for it.

use crate::analysis::KnownOverlap;
use crate::analysis::signature::Signature;
use crate::error::{Error, ErrorKind, Result};
use crate::external32::External32;
use crate::plan::Plan;
use std::sync::OnceLock;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Derived {
    external32: OnceLock<External32>,
    signature: OnceLock<Signature>,
    pub(crate) overlap: KnownOverlap,
}

/// The value of `cell`, made by `make` unless it is there. A refusal is not kept; of two threads that
/// make one, one is dropped.
fn kept<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(|| value))
}

impl Plan {
    /// The external32 form of this plan's type, made at the first call.
    ///
    /// ```
    /// use typepack_engine::{Datatype, Named, pack_external};
    ///
    /// let plan = Datatype::named(Named::INT).commit()?;
    /// let (mut unit, mut position) = ([0; 4], 0);
    /// pack_external(plan.external32()?, 1, &[258], &mut unit, &mut position)?;
    /// assert_eq!(unit, [0, 0, 1, 2]);
    /// # Ok::<(), typepack_engine::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `plan`: it was decoded and has no datatype. As for [`External32::new`].
    pub fn external32(&self) -> Result<&External32> {
        let ty = self.datatype().ok_or_else(|| untyped("external32 form"))?;
        kept(&self.derived().external32, || External32::with_settings(ty, self.settings()))
    }

    /// The signature of this plan's type by class and width, made at the first call.
    ///
    /// # Errors
    ///
    /// `plan`: it was decoded and has no datatype. As for [`Signature::of`].
    pub fn signature(&self) -> Result<&Signature> {
        let ty = self.datatype().ok_or_else(|| untyped("signature"))?;
        kept(&self.derived().signature, || Signature::of(ty))
    }
}

#[cold]
fn untyped(what: &str) -> Error {
    let detail = format!("decoded from bytes, it has no datatype and hence no {what}");
    Error::new(ErrorKind::Type, "plan", detail)
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
            "plan: decoded from bytes, it has no datatype and hence no external32 form"
        );
        assert_eq!(
            decoded.signature().unwrap_err().to_string(),
            "plan: decoded from bytes, it has no datatype and hence no signature"
        );
    }
}
