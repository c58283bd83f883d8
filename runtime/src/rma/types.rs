//! The types of the elements in requests (`form.rs`). The calling rank sends the encoded form of a type once
//! (`typepack_engine::wire`), and afterwards only the number of the type. So repeated calls with a type commit nothing,
//! neither here nor at the target.
//!
//! A long form is several requests. All requests of a rank arrive in order, so the target knows a type before the first
//! request that uses the type. The decoder of the engine checks the form.
//!
//! A rank keeps at most [`TYPES`] types for each other rank of a window, each with a form of at most [`LONGEST`] bytes.

use crate::{Plan, Result};
use typepack_engine::wire;

/// The greatest number of types that a rank knows of another one, in one window.
pub(super) const TYPES: usize = 64;

/// The length of the longest encoded form in bytes.
pub(super) const LONGEST: usize = 1 << 20;

/// The calling rank keeps a form of at most this number of bytes, to find equal types that the program has committed
/// again.
const KEPT: usize = 4 << 10;

/// A type that the target knows.
#[derive(Debug)]
struct Known {
    /// Keeps the plan alive, so that no other plan has the same address.
    plan: Plan,
    identity: u128,
    encoding: Box<[u8]>,
}

/// The types that a target knows from this rank.
#[derive(Debug, Default)]
pub(super) struct Told {
    types: Vec<Known>,
    /// The number of the last type that was used.
    recent: usize,
    /// The number that the next type takes if all numbers are in use.
    next: usize,
}

/// How a rank names a type in a request.
#[derive(Debug)]
pub(super) enum Number {
    /// The target knows the type under this number.
    Known(u16),
    /// The target does not know the type. This is the number to define, and the encoded form.
    New(u16, Vec<u8>),
    /// The form is too long.
    TooLong,
}

impl Told {
    /// Returns how to name the type of `plan`.
    #[inline]
    pub fn number(&mut self, plan: &Plan) -> Number {
        if self.types.get(self.recent).is_some_and(|known| known.plan.is_same(plan)) {
            return Number::Known(self.recent as u16);
        }
        self.search(plan)
    }

    #[inline(never)]
    fn search(&mut self, plan: &Plan) -> Number {
        if let Some(at) = self.types.iter().position(|known| known.plan.is_same(plan)) {
            self.recent = at;
            return Number::Known(at as u16);
        }
        let Some(encoding) = wire::encode_within(plan, LONGEST) else { return Number::TooLong };
        let identity = wire::identity(&encoding);
        let is = |known: &Known| known.identity == identity && *known.encoding == *encoding;
        if let Some(at) = self.types.iter().position(is) {
            self.types[at].plan = plan.clone();
            self.recent = at;
            return Number::Known(at as u16);
        }
        let number = if self.types.len() < TYPES { self.types.len() } else { self.next };
        Number::New(number as u16, encoding)
    }

    /// Records that this rank has sent the whole form of a type.
    pub fn tell(&mut self, number: u16, plan: &Plan, encoding: Vec<u8>) {
        let identity = wire::identity(&encoding);
        let encoding = if encoding.len() <= KEPT { encoding.into() } else { Box::default() };
        let known = Known { plan: plan.clone(), identity, encoding };
        let at = usize::from(number);
        self.recent = at;
        match self.types.get_mut(at) {
            Some(old) => {
                *old = known;
                self.next = (at + 1) % TYPES;
            }
            None => self.types.push(known),
        }
    }
}

/// The types that this rank knows from another rank.
#[derive(Debug, Default)]
pub(super) struct Heard {
    types: Vec<Option<Plan>>,
    /// The part of a form that has arrived, and the number of its type.
    partial: (u16, Vec<u8>),
}

impl Heard {
    /// Returns the plan of a type; `None` if nobody has defined the number.
    #[inline]
    pub fn plan(&self, number: u16) -> Option<&Plan> {
        self.types.get(usize::from(number))?.as_ref()
    }

    /// Takes a part of the form of type `number`: the bytes from `start` on of a form of `whole` bytes.
    ///
    /// # Errors
    /// Returns `None` if the part does not follow the part before, or if the form is too long. Returns an engine error
    /// if the form does not decode.
    pub fn take(&mut self, number: u16, start: u64, whole: u64, part: &[u8]) -> Option<Result<()>> {
        let at = usize::from(number);
        if at >= TYPES || whole > LONGEST as u64 {
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
        Some(crate::commit::decode(&form).map(|plan| {
            if self.types.len() <= at {
                self.types.resize_with(at + 1, || None);
            }
            self.types[at] = Some(plan);
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};

    fn vector(stride: i64) -> Plan {
        let double = Datatype::named(Named::F64);
        Datatype::vector(3, 1, stride, &double).expect("a type").commit().expect("a plan")
    }

    /// Tells a type in parts of 16 bytes. Returns its number, and whether the type was new.
    fn tell(told: &mut Told, heard: &mut Heard, plan: &Plan) -> (u16, bool) {
        match told.number(plan) {
            Number::Known(number) => (number, false),
            Number::New(number, form) => {
                for (at, part) in form.chunks(16).enumerate() {
                    let taken = heard.take(number, 16 * at as u64, form.len() as u64, part);
                    taken.expect("the next part").expect("a form");
                }
                told.tell(number, plan, form);
                (number, true)
            }
            Number::TooLong => panic!("too long"),
        }
    }

    #[test]
    fn a_type_is_told_once() {
        let (mut told, mut heard) = (Told::default(), Heard::default());
        let first = vector(5);
        assert_eq!(tell(&mut told, &mut heard, &first), (0, true));
        assert_eq!(tell(&mut told, &mut heard, &first), (0, false));
        // The program commits an equal type again.
        assert_eq!(tell(&mut told, &mut heard, &vector(5)), (0, false));
        for i in 1..TYPES as u16 {
            assert_eq!(tell(&mut told, &mut heard, &vector(5 + i64::from(i))), (i, true));
        }
        assert_eq!(tell(&mut told, &mut heard, &vector(1000)), (0, true));
        assert_eq!(tell(&mut told, &mut heard, &first), (1, true));
        let found = heard.plan(1).expect("a plan");
        assert_eq!(found.footprint(), first.footprint());
        assert!(heard.plan(TYPES as u16).is_none());
    }

    #[test]
    fn hostile_parts_define_nothing() {
        let form = wire::encode(&vector(5));
        let whole = form.len() as u64;
        let mut heard = Heard::default();
        let mut refused = |number: u16, start: u64, whole: u64, part: &[u8]| {
            let taken = heard.take(number, start, whole, part);
            assert!(!matches!(taken, Some(Ok(()))), "{number} {start} {whole}");
            assert!(heard.plan(number).is_none());
        };
        refused(TYPES as u16, 0, whole, &form);
        refused(0, 0, LONGEST as u64 + 1, &form);
        refused(0, 8, whole, &form[8..]);
        refused(0, 0, whole - 1, &form);
        refused(0, 0, whole, &[]);
        refused(0, 0, 4, b"tpkw");
        refused(0, u64::MAX, whole, &form);
        assert!(heard.take(0, 0, whole, &form[..8]).is_some_and(|taken| taken.is_ok()));
        // The rest belongs to another type.
        assert!(heard.take(1, 8, whole, &form[8..]).is_none());
        assert!(heard.plan(0).is_none() && heard.plan(1).is_none());
    }
}
