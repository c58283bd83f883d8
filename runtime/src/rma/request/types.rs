//! The types of the elements in requests (`form.rs`). The calling rank sends the encoded form of a type once, and
//! afterwards only the number of the type (`../request/types.rs` has the tables). So repeated calls with a type commit
//! nothing, neither here nor at the target.
//!
//! A long form is several requests. All requests of a rank arrive in order, so the target knows a type before the first
//! request that uses the type.
//!
//! A rank keeps at most [`TYPES`] types for each other rank of a window, each with a form of at most [`LONGEST`] bytes.

use crate::request::types::Remembered;
use crate::{Plan, Result};

/// The greatest number of types that a rank knows of another one, in one window.
pub(in crate::rma) const TYPES: usize = 64;

/// The length of the longest encoded form in bytes.
pub(in crate::rma) const LONGEST: usize = 1 << 20;

/// The types that this rank knows from another rank.
#[derive(Debug, Default)]
pub(in crate::rma) struct RememberedTypes {
    types: Remembered,
    /// The part of a form that has arrived, and the number of its type.
    partial: (u16, Vec<u8>),
}

impl RememberedTypes {
    /// Returns the plan of a type; `None` if nobody has defined the number.
    #[inline]
    pub fn plan(&self, number: u16) -> Option<&Plan> {
        self.types.get(number.into()).map(|ty| &ty.plan)
    }

    /// Takes a part of the form of type `number`: the bytes from `start` on of a form of `whole` bytes.
    ///
    /// # Errors
    /// Returns `None` if the part does not follow the part before, or if the form is too long. Returns an engine error
    /// if the form does not decode.
    pub fn take(&mut self, number: u16, start: u64, whole: u64, part: &[u8]) -> Option<Result<()>> {
        if usize::from(number) >= TYPES || whole > LONGEST as u64 {
            return None;
        }
        if start == 0 {
            self.partial = (number, Vec::new());
        }
        let (of, form) = &mut self.partial;
        let end = form.len().checked_add(part.len())?;
        if *of != number || form.len() as u64 != start || end as u64 > whole || part.is_empty() {
            return None;
        }
        form.extend_from_slice(part);
        if (end as u64) < whole {
            return Some(Ok(()));
        }
        let form = std::mem::take(form);
        Some(self.types.define(number.into(), &form))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};
    use typepack_engine::wire;

    fn vector(stride: i64) -> Plan {
        let double = Datatype::named(Named::F64);
        Datatype::vector(3, 1, stride, &double).expect("a type").commit().expect("a plan")
    }

    #[test]
    fn a_form_arrives_in_parts() {
        let (mut remembered, form) = (RememberedTypes::default(), wire::encode(&vector(5)));
        for (at, part) in form.chunks(16).enumerate() {
            assert!(remembered.plan(3).is_none());
            let taken = remembered.take(3, 16 * at as u64, form.len() as u64, part);
            taken.expect("the next part").expect("a form");
        }
        let found = remembered.plan(3).expect("a plan");
        assert_eq!(found.footprint(), vector(5).footprint());
        assert!(remembered.plan(TYPES as u16).is_none());
    }

    #[test]
    fn hostile_parts_define_nothing() {
        let form = wire::encode(&vector(5));
        let whole = form.len() as u64;
        let mut remembered = RememberedTypes::default();
        let mut refused = |number: u16, start: u64, whole: u64, part: &[u8]| {
            let taken = remembered.take(number, start, whole, part);
            assert!(!matches!(taken, Some(Ok(()))), "{number} {start} {whole}");
            assert!(remembered.plan(number).is_none());
        };
        refused(TYPES as u16, 0, whole, &form);
        refused(0, 0, LONGEST as u64 + 1, &form);
        refused(0, 8, whole, &form[8..]);
        refused(0, 0, whole - 1, &form);
        refused(0, 0, whole, &[]);
        refused(0, 0, 4, b"tpkw");
        refused(0, u64::MAX, whole, &form);
        assert!(remembered.take(0, 0, whole, &form[..8]).is_some_and(|taken| taken.is_ok()));
        // The rest belongs to another type.
        assert!(remembered.take(1, 8, whole, &form[8..]).is_none());
        assert!(remembered.plan(0).is_none() && remembered.plan(1).is_none());
    }
}
