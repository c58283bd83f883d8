//! The types that two ranks know by number. An RTS describes a layout in memory by such a number.
//!
//! The sender (`heap.rs`) sends the encoded form of a type once (`typepack_engine::wire`), and afterwards
//! only the number of the type. [`Defined`] is the sender's table of types for one receiver. The receiver
//! (`peer.rs`) keeps the plans of these types in [`Known`]. When the table is full, the sender defines the
//! oldest number again, for a new type. The ring keeps the order of definitions and messages, so both ranks
//! mean the same type by a number. If the receiver has already accepted an RTS, it keeps the plan of that
//! RTS, so a later definition does not change the plan.
//!
//! The encoded form of a long type does not fit in the ring. `long_types.rs` has the sender's table of such
//! types; the receiver keeps their plans in [`Known`] too.
//!
//! Invariants: both ranks keep at most [`TYPES`] types of at most [`TYPE_MAX`] encoded bytes each, and a few
//! long types. The engine's decoder checks everything that the sender wrote before the receiver uses it.

use super::fabric::Fabric;
use super::long_types::LongTypes;
use crate::Plan;
use crate::message::envelope::{BYTES, NUMBERS_END, Place, Space, TYPE_MAX, TYPES};
use crate::shm::ring::Violation;
use std::ops::Range;
use std::ptr::NonNull;
use typepack_engine::analysis::Facts;
use typepack_engine::{Elements, wire};

/// A defined type.
#[derive(Debug)]
struct Definition {
    /// The plan of the latest message with this type. Plans are compared by address, so the table keeps
    /// this plan alive: no other plan can then get the same address.
    plan: Plan,
    encoding: Box<[u8]>,
    identity: u128,
}

/// The types of this sender that one receiver knows.
#[derive(Debug, Default)]
pub struct Defined {
    types: Vec<Definition>,
    /// The number that was used last. It is tried first, because messages of one type often follow each
    /// other.
    recent: usize,
    /// When all numbers are in use: the number that the next definition replaces.
    next: usize,
    /// The types whose encoded form is too long for the ring.
    pub long: LongTypes,
}

/// The answer of [`Defined`] when the sender asks for the number of a type.
#[derive(Debug)]
pub enum Number {
    /// The receiver knows the type under this number.
    Known(u32),
    /// The receiver does not know the type. The sender can define it under this number by sending these
    /// bytes.
    New(u32, Vec<u8>),
    /// The encoded form of the type is too long for the ring. The receiver does not know the type.
    Long,
}

impl Defined {
    /// Returns the number of a plan's type if the receiver knows the type. Otherwise returns how to define
    /// the type.
    pub fn number(&mut self, plan: &Plan) -> Number {
        let is = |definition: &Definition| definition.plan.is_same(plan);
        if !self.types.get(self.recent).is_some_and(is) {
            if let Some(number) = self.long.number(plan) {
                return Number::Known(number);
            }
            let Some(at) = self.types.iter().position(is) else { return self.equal(plan) };
            self.recent = at;
        }
        Number::Known(self.recent as u32)
    }

    /// Does the work of `number` for a plan that is not in the table. If a plan in the table has the same
    /// encoding, returns the number of that plan.
    #[cold]
    fn equal(&mut self, plan: &Plan) -> Number {
        let Some(encoding) = wire::encode_within(plan, TYPE_MAX) else { return Number::Long };
        let identity = wire::identity(&encoding);
        let equal = |d: &Definition| d.identity == identity && *d.encoding == *encoding;
        if let Some(at) = self.types.iter().position(equal) {
            self.types[at].plan = plan.clone();
            self.recent = at;
            return Number::Known(at as u32);
        }
        let number = if self.types.len() < TYPES { self.types.len() } else { self.next };
        Number::New(number as u32, encoding)
    }

    /// Records that this rank has sent the definition of a number.
    pub fn define(&mut self, number: u32, plan: &Plan, encoding: Vec<u8>) {
        let identity = wire::identity(&encoding);
        let definition = Definition { plan: plan.clone(), encoding: encoding.into(), identity };
        let at = number as usize;
        match self.types.get_mut(at) {
            Some(old) => {
                *old = definition;
                self.next = (at + 1) % TYPES;
            }
            None => self.types.push(definition),
        }
        self.recent = at;
    }
}

/// The receiver's entry for a type of the sender.
#[derive(Clone, Debug)]
pub struct Type {
    /// The layout as a plan of this process, which can run the kernels of this process.
    pub plan: Plan,
    /// An estimate of how many bytes of each cache line that the data touches belong to the data, on
    /// average.
    pub useful: u64,
}

/// The types that this receiver knows from one sender.
#[derive(Debug, Default)]
pub struct Known {
    types: Vec<Option<Type>>,
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
        let plan = crate::commit::decode(encoding);
        let plan = plan.map_err(|error| {
            Violation::new(format!("the definition of type {number} does not decode: {error}"))
        })?;
        let at = number as usize;
        if self.types.len() <= at {
            self.types.resize_with(at + 1, || None);
        }
        let useful = useful(&plan);
        self.types[at] = Some(Type { plan, useful });
        Ok(())
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
            let ty = self.types.get(number as usize).cloned().flatten();
            ty.ok_or_else(|| undefined(number))?
        };
        let bytes = ty.plan.packed_bytes(count).map_err(|_| too_many(count))?;
        if space == Space::Private {
            // A place in private memory needs no check here, because only system calls access it, and the
            // kernel checks the address.
            return Ok(Located { space, ty, count, origin, span: 0..0, bytes });
        }
        let (first, end) = reach(&ty.plan, count);
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

/// Returns the range of bytes that `count` elements touch, relative to displacement 0: the first byte and
/// one past the last byte.
pub fn reach(plan: &Plan, count: u64) -> (i128, i128) {
    let place = plan.footprint();
    // This calculation cannot overflow: a product of two 64-bit numbers, plus a 64-bit number, fits in 128
    // bits.
    let last = i128::from(count.saturating_sub(1)) * i128::from(place.extent);
    (last.min(0) + i128::from(place.true_lb), last.max(0) + i128::from(place.true_ub))
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
    let (first, end) = reach(&layout.plan, layout.count);
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

const LINE: u64 = crate::shm::pair::LINE as u64;

/// Returns an estimate of how many bytes of each touched cache line belong to `plan`'s data. The estimate
/// is the larger of two numbers, one computed from the density of the data and one from the mean length of
/// its runs, and is at most a whole line.
fn useful(plan: &Plan) -> u64 {
    let facts = Facts::of(plan);
    // A run of `mean` bytes touches `mean / LINE + 1` lines on average, or fewer lines if runs share them.
    let mean = facts.mean();
    let apart = mean * LINE as f64 / (mean + LINE as f64);
    let dense = facts.density().min(1.0) * LINE as f64;
    (apart.max(dense) as u64).clamp(1, LINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};

    fn vector(count: i64, stride: i64) -> Plan {
        let double = Datatype::named(Named::F64);
        Datatype::vector(count, 1, stride, &double).expect("a type").commit().expect("a plan")
    }

    /// Defines a type in the tables of the sender and of the receiver, as the two ranks would do it.
    fn number(defined: &mut Defined, known: &mut Known, plan: &Plan) -> (u32, bool) {
        match defined.number(plan) {
            Number::Known(number) => (number, false),
            Number::New(number, encoding) => {
                known.define(number, &encoding).expect("a type");
                defined.define(number, plan, encoding);
                (number, true)
            }
            Number::Long => panic!("too long"),
        }
    }

    #[test]
    fn a_type_is_defined_once_and_replaced_when_the_book_is_full() {
        let (mut defined, mut known) = (Defined::default(), Known::default());
        let first = vector(3, 5);
        assert_eq!(number(&mut defined, &mut known, &first), (0, true));
        assert_eq!(number(&mut defined, &mut known, &first), (0, false));
        assert_eq!(number(&mut defined, &mut known, &vector(3, 5)), (0, false));
        for i in 1..TYPES as u32 {
            assert_eq!(number(&mut defined, &mut known, &vector(3, 5 + i64::from(i))), (i, true));
        }
        assert_eq!(number(&mut defined, &mut known, &vector(4, 5)), (0, true));
        assert_eq!(number(&mut defined, &mut known, &vector(4, 6)), (1, true));
        assert_eq!(number(&mut defined, &mut known, &first), (2, true));
        assert_eq!(number(&mut defined, &mut known, &vector(4, 5)), (0, false));
        let place = Place { space: Space::Heap, number: 0, origin: 8, count: 1 };
        let found = known.locate(place, 32, 1 << 20).expect("located");
        assert_eq!(found.ty.plan.footprint(), vector(4, 5).footprint());
    }

    #[test]
    fn long_tables_do_not_fit_in_the_ring() {
        let double = Datatype::named(Named::F64);
        let places: Vec<i64> = (0..5000).map(|i| i * i).collect();
        let plan = Datatype::indexed_block(1, &places, &double).unwrap().commit().unwrap();
        assert!(matches!(Defined::default().number(&plan), Number::Long));
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

    #[test]
    fn useful_bytes_of_a_line() {
        let bytes = Datatype::named(Named::U8).commit().unwrap();
        assert_eq!(useful(&bytes), LINE);
        assert!(useful(&vector(100, 8)) <= 8);
        assert!((31..=33).contains(&useful(&vector(100, 2))));
        let double = Datatype::named(Named::F64);
        let rows = Datatype::vector(10, 128, 1000, &double).unwrap().commit().unwrap();
        assert!(useful(&rows) > 48);
    }
}
