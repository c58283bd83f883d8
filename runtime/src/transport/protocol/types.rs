//! The places of layouts in another rank's memory, and the types by which an RTS and a request for help describe them.
//!
//! The sender of a place (`heap.rs`) defines a type once, in the ring, and afterwards names it by its number
//! (`../../request/types.rs` has the tables). The ring keeps the order of definitions and messages. If the receiver
//! (`peer.rs`) has already accepted an RTS, it keeps the plan of that RTS, so a later definition does not change the
//! plan.
//!
//! The encoded form of a long type does not fit in the ring. `long_types.rs` has the sender's table of such
//! types; the receiver keeps their plans in [`Known`] too.
//!
//! Invariant: both ranks keep at most [`TYPES`] types of at most [`TYPE_MAX`] encoded bytes each, and a few
//! long types.

use super::long_types::LongTypes;
use crate::Plan;
use crate::message::envelope::{BYTES, NUMBERS_END, Place, Space, TYPE_MAX, TYPES};
use crate::request::types::{Advertised, LINE, Number, Remembered, Type};
use crate::shm::ring::Violation;
use crate::transport::link::fabric::Fabric;
use std::ops::Range;
use std::ptr::NonNull;
use typepack_engine::Elements;

/// The types of this sender that one receiver knows.
#[derive(Debug)]
pub struct Defined {
    /// The types whose encoded form fits in the ring.
    pub types: Advertised,
    /// The types whose encoded form is too long for the ring.
    pub long: LongTypes,
}

impl Default for Defined {
    fn default() -> Self {
        Self { types: Advertised::new(TYPES), long: LongTypes::default() }
    }
}

impl Defined {
    /// Returns the number of a plan's type if the receiver knows the type. Otherwise returns how to define
    /// the type, unless its encoded form is too long for the ring.
    pub fn number(&mut self, plan: &Plan) -> Number {
        match self.types.number(plan).or_else(|| self.long.number(plan)) {
            Some(number) => Number::Known(number),
            None => self.types.search(plan, TYPE_MAX),
        }
    }
}

/// The types that this receiver knows from one sender.
#[derive(Debug, Default)]
pub struct Known {
    types: Remembered,
    /// True if this rank could not read the definition of a long type, because its address space had no room
    /// for that part of the sender's heap. Then it does not read data in that heap either, so it ignores all places
    /// in that heap and all requests for help.
    pub blind: bool,
}

/// The checked place of a layout in another rank's memory.
#[derive(Clone, Debug)]
pub struct Located {
    /// The kind of memory.
    pub space: Space,
    /// Type of the elements.
    pub ty: Type,
    /// Number of elements.
    pub count: u64,
    /// In a heap: the distance from the start of the heap to displacement 0, in bytes, modulo 2^64. In
    /// private memory: an address that nobody has checked.
    pub origin: u64,
    /// In a heap: the offsets of the bytes that the elements touch. Empty in private memory.
    pub span: Range<u64>,
    /// Number of packed bytes of all elements.
    pub bytes: u64,
}

impl Located {
    /// Returns the elements in this process if `start` is the address of the first byte of `span`.
    #[inline]
    pub fn elements(&self, start: NonNull<u8>) -> Elements<&Plan> {
        let ahead = self.origin.wrapping_sub(self.span.start) as usize;
        let origin = start.as_ptr().wrapping_add(ahead);
        Elements { origin, plan: &self.ty.plan, count: self.count }
    }
}

impl Known {
    /// Defines type `number` as the type that `encoding` describes. `encoding` is a private copy, so no
    /// other rank can change it.
    ///
    /// # Errors
    /// Returns a [`Violation`] if `encoding` is not an encoded type.
    pub fn define(&mut self, number: u32, encoding: &[u8]) -> std::result::Result<(), Violation> {
        debug_assert!((number as usize) < NUMBERS_END);
        self.types.define(number, encoding).map_err(|error| {
            Violation::new(format!("the definition of type {number} does not decode: {error}"))
        })
    }

    /// Checks the place that an RTS names for a message of `bytes` packed bytes. The heap of the sender has
    /// `heap` bytes.
    ///
    /// # Errors
    /// Returns a [`Violation`] if the type is unknown, if the elements do not have exactly `bytes` packed
    /// bytes, or if a part of the data lies outside the heap.
    pub fn locate(
        &self,
        place: Place,
        bytes: u64,
        heap: u64,
    ) -> std::result::Result<Located, Violation> {
        let located = self.within(place, heap)?;
        if located.bytes != bytes {
            return Err(no_fit("an RTS names elements of", located.bytes, bytes));
        }
        Ok(located)
    }

    /// Checks the place that a request for help names for a message of `bytes` packed bytes. The heap of
    /// the receiver has `heap` bytes.
    ///
    /// # Errors
    /// Returns a [`Violation`] if the type is unknown, if the elements have fewer than `bytes` packed
    /// bytes, or if a part of the data lies outside the heap.
    pub fn room(
        &self,
        place: Place,
        bytes: u64,
        heap: u64,
    ) -> std::result::Result<Located, Violation> {
        let located = self.within(place, heap)?;
        if located.bytes < bytes {
            return Err(no_fit("a request for help names room for", located.bytes, bytes));
        }
        Ok(located)
    }

    fn within(&self, place: Place, heap: u64) -> std::result::Result<Located, Violation> {
        let Place { space, number, origin, count } = place;
        let ty = if number == BYTES {
            let plan = crate::commit::bytes();
            let plan =
                plan.map_err(|e| Violation::new(format!("there is no plan for raw bytes: {e}")))?;
            Type { plan: plan.clone(), useful: LINE }
        } else {
            self.types.get(number).cloned().ok_or_else(|| undefined(number))?
        };
        let bytes = ty.plan.packed_bytes(count).map_err(|_| too_many(count))?;
        if space == Space::Private {
            // A place in private memory needs no check here, because only system calls access it, and the
            // kernel checks the address.
            return Ok(Located { space, ty, count, origin, span: 0..0, bytes });
        }
        let (first, end) = ty.plan.footprint().reach(count);
        // The origin is a number modulo 2^64. So an origin below the start of the heap is a negative number
        // here.
        let origin_at = i128::from(origin as i64);
        if origin_at + first < 0 || origin_at + end > i128::from(heap) {
            return Err(beyond(origin_at + first, origin_at + end, heap));
        }
        // Both ends lie within the heap, whose size is a number of 64 bits.
        let span = (origin_at + first) as u64..(origin_at + end) as u64;
        Ok(Located { space, ty, count, origin, span, bytes })
    }
}

#[cold]
fn no_fit(what: &'static str, has: u64, bytes: u64) -> Violation {
    Violation::new(format!("{what} {has} bytes, but its message has {bytes} bytes"))
}

#[cold]
fn undefined(number: u32) -> Violation {
    Violation::new(format!("a place names type {number}, which is not defined"))
}

#[cold]
fn too_many(count: u64) -> Violation {
    Violation::new(format!("a place has {count} elements, whose packed bytes exceed 2^63 - 1"))
}

#[cold]
fn beyond(first: i128, end: i128, heap: u64) -> Violation {
    Violation::new(format!(
        "a place lies at bytes {first}..{end}, which is not within its rank's heap of {heap} bytes"
    ))
}

/// Returns the place of the first `bytes` packed bytes of a layout, if the layout lies in this rank's heap;
/// otherwise returns `None`. If the layout is not one run of bytes, the function also returns its plan. The
/// caller must then define the plan's type and put the type's number into the place.
pub fn place_in<'a>(
    fabric: &Fabric,
    layout: &'a Elements<Plan>,
    bytes: u64,
) -> Option<(Place, Option<&'a Plan>)> {
    let heap = fabric.used_heap()?;
    let (first, end) = layout.plan.footprint().reach(layout.count);
    let at = layout.origin as i128;
    let offset = heap.extents().locate(at + first, at + end)?;
    let origin = (i128::from(offset) - first) as u64;
    if layout.plan.is_contiguous() {
        let origin = origin.wrapping_add(layout.plan.footprint().true_lb as u64);
        return Some((Place { space: Space::Heap, number: BYTES, origin, count: bytes }, None));
    }
    let place = Place { space: Space::Heap, number: 0, origin, count: layout.count };
    Some((place, Some(&layout.plan)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};
    use typepack_engine::wire;

    fn vector(count: i64, stride: i64) -> Plan {
        let double = Datatype::named(Named::F64);
        Datatype::vector(count, 1, stride, &double).expect("a type").commit().expect("a plan")
    }

    #[test]
    fn hostile_places_are_violations() {
        let mut known = Known::default();
        let plan = vector(3, 5);
        known.define(7, &wire::encode(&plan)).expect("a type");
        let space = Space::Heap;
        let place = |number, origin, count| Place { space, number, origin, count };
        const HEAP: u64 = 1 << 20;
        assert!(known.locate(place(7, 0, 1), 24, HEAP).is_ok());
        assert!(known.locate(place(7, HEAP - 88, 1), 24, HEAP).is_ok());
        assert!(known.locate(place(BYTES, HEAP - 24, 24), 24, HEAP).is_ok());
        for (number, origin, count, bytes) in [
            (6, 0, 1, 24),
            (8, 0, 1, 24),
            (63, 0, 1, 24),
            (7, HEAP - 87, 1, 24),
            (7, HEAP, 1, 24),
            (7, u64::MAX, 1, 24),
            (7, 1 << 63, 1, 24),
            (7, u64::MAX - 87, 1, 24),
            (7, 0, 2, 24),
            (7, 0, u64::MAX, 24),
            (7, 0, u64::MAX / 24 + 2, 24),
            (7, 0, HEAP, HEAP * 24),
            (BYTES, HEAP - 23, 24, 24),
            (BYTES, u64::MAX, 24, 24),
            (BYTES, 0, u64::MAX, u64::MAX),
            (BYTES, 1, i64::MAX as u64, i64::MAX as u64),
        ] {
            let found = known.locate(place(number, origin, count), bytes, HEAP);
            assert!(found.is_err(), "{number} {origin} {count} {bytes}");
        }
        assert!(known.define(7, b"tpkw").is_err());
        assert!(known.define(7, &[0; 100]).is_err());
    }
}
