//! Types that two ranks both know by number: what lets an offer say how its data lies in memory.
//!
//! The sender (`peer.rs`) defines a type once, by its encoded form (`typepack_engine::wire`), and uses
//! its number from then on; [`Defined`] is its book for one receiver. The receiver (`fetch.rs`)
//! keeps the plans in [`Known`]. A number is defined anew when the book is full; the ring keeps order, so
//! both mean the same type by it, and an offer that was accepted earlier has its plan already.
//!
//! Invariants: both sides keep at most [`TYPES`] types of at most [`TYPE_MAX`] encoded bytes each;
//! nothing that the sender wrote is used before the engine's decoder has checked it.

use super::fabric::Fabric;
use crate::Plan;
use crate::message::envelope::{BYTES, Place, Space, TYPE_MAX, TYPES};
use crate::message::payload::Layout;
use crate::shm::ring::Violation;
use typepack_engine::analysis::Facts;
use typepack_engine::wire;

/// A type that has been defined.
#[derive(Debug)]
struct Definition {
    /// The plan that was last sent as this type. Held, so that no other one gets its address.
    plan: Plan,
    encoding: Box<[u8]>,
    identity: u128,
}

/// The types that one receiver knows from this sender.
#[derive(Debug, Default)]
pub struct Defined {
    types: Vec<Definition>,
    /// The number used last: messages of one type follow each other.
    recent: usize,
    /// The number that is defined anew next, once all are in use.
    next: usize,
}

/// What the book says about a type.
#[derive(Debug)]
pub enum Number {
    /// The receiver knows it under this number.
    Known(u32),
    /// It can be defined under this number, by these bytes.
    New(u32, Vec<u8>),
    /// Its encoded form is too long.
    None,
}

impl Defined {
    /// The number of a type.
    pub fn number(&mut self, plan: &Plan) -> Number {
        let is = |definition: &Definition| definition.plan.is_same(plan);
        if !self.types.get(self.recent).is_some_and(is) {
            let Some(at) = self.types.iter().position(is) else { return self.equal(plan) };
            self.recent = at;
        }
        Number::Known(self.recent as u32)
    }

    /// The number of a type that may have been defined by an equal plan.
    #[cold]
    fn equal(&mut self, plan: &Plan) -> Number {
        let Some(encoding) = wire::encode_within(plan, TYPE_MAX) else { return Number::None };
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

    /// The definition of a number has been sent.
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

/// A type of the sender as the receiver has it.
#[derive(Clone, Debug)]
pub struct Type {
    /// Its layout, with kernels of this process.
    pub plan: Plan,
    /// Bytes of a cache line that belong to the data, in the mean over the lines that it touches.
    pub useful: u64,
}

/// The types that this receiver knows from one sender.
#[derive(Debug, Default)]
pub struct Known {
    types: Vec<Option<Type>>,
}

/// Where in another rank's heap a layout lies, checked.
#[derive(Clone, Debug)]
pub struct Located {
    /// In which memory.
    pub space: Space,
    /// Type of the elements.
    pub ty: Type,
    /// Elements.
    pub count: u64,
    /// Bytes from the start of the heap to displacement 0, modulo 2^64; in private memory its address,
    /// whatever that is.
    pub origin: u64,
    /// Packed bytes.
    pub bytes: u64,
}

impl Known {
    /// The type with this number is what `encoding` says; a copy that nobody else can change.
    ///
    /// # Errors
    /// [`Violation`] when it is no encoded type.
    pub fn define(&mut self, number: u32, encoding: &[u8]) -> std::result::Result<(), Violation> {
        debug_assert!((number as usize) < TYPES);
        let plan = crate::commit::decode(encoding);
        let plan = plan.map_err(|_| Violation("a type that does not decode"))?;
        let at = number as usize;
        if self.types.len() <= at {
            self.types.resize_with(at + 1, || None);
        }
        let useful = useful(&plan);
        self.types[at] = Some(Type { plan, useful });
        Ok(())
    }

    /// Checks what an offer of `bytes` packed bytes says about a heap of `heap` bytes.
    ///
    /// # Errors
    /// [`Violation`] for an unknown type, another number of bytes, or data outside the heap.
    pub fn locate(
        &self,
        place: Place,
        bytes: u64,
        heap: u64,
    ) -> std::result::Result<Located, Violation> {
        let located = self.within(place, heap)?;
        if located.bytes != bytes {
            return Err(Violation("an offer whose elements are not as long as the message"));
        }
        Ok(located)
    }

    /// Checks what a share of a message of `bytes` packed bytes says about a heap of `heap` bytes.
    ///
    /// # Errors
    /// [`Violation`] for an unknown type, too little room, or data outside the heap.
    pub fn room(
        &self,
        place: Place,
        bytes: u64,
        heap: u64,
    ) -> std::result::Result<Located, Violation> {
        let located = self.within(place, heap)?;
        if located.bytes < bytes {
            return Err(Violation("a share with too little room for the message"));
        }
        Ok(located)
    }

    fn within(&self, place: Place, heap: u64) -> std::result::Result<Located, Violation> {
        let Place { space, number, origin, count } = place;
        let ty = if number == BYTES {
            let plan = crate::commit::bytes().map_err(|_| Violation("bytes are no type"))?;
            Type { plan: plan.clone(), useful: LINE }
        } else {
            let ty = self.types.get(number as usize).cloned().flatten();
            ty.ok_or(Violation("data of an undefined type"))?
        };
        let bytes = ty.plan.packed_bytes(count).map_err(|_| Violation("too many elements"))?;
        if space == Space::Private {
            // Nothing is read from there but by a call in which the kernel checks the address.
            return Ok(Located { space, ty, count, origin, bytes });
        }
        let (first, end) = reach(&ty.plan, count);
        // Displacements are modulo 2^64: an origin below the heap is a negative number.
        let origin_at = i128::from(origin as i64);
        if origin_at + first < 0 || origin_at + end > i128::from(heap) {
            return Err(Violation("data outside the heap of its rank"));
        }
        Ok(Located { space, ty, count, origin, bytes })
    }
}

/// The bytes from the first to one past the last of `count` elements, from displacement 0.
pub fn reach(plan: &Plan, count: u64) -> (i128, i128) {
    let place = plan.footprint();
    // 64 times 64 bits, plus 64 bits: no overflow.
    let last = i128::from(count.saturating_sub(1)) * i128::from(place.extent);
    (last.min(0) + i128::from(place.true_lb), last.max(0) + i128::from(place.true_ub))
}

/// Where in this rank's heap a layout lies of which `bytes` packed bytes are meant, and the plan
/// whose number the place lacks, unless it is bytes; `None` if it lies elsewhere.
pub fn place_in<'a>(
    fabric: &Fabric,
    layout: &'a Layout,
    bytes: u64,
) -> Option<(Place, Option<&'a Plan>)> {
    let heap = fabric.used_heap()?;
    let (first, end) = reach(&layout.plan, layout.count);
    let (base, at) = (heap.base().as_ptr() as i128, layout.origin as i128);
    if at + first < base || at + end > base + heap.len() as i128 {
        return None;
    }
    let origin = (at - base) as u64;
    if layout.plan.is_contiguous() {
        let origin = origin.wrapping_add(layout.plan.footprint().true_lb as u64);
        return Some((Place { space: Space::Heap, number: BYTES, origin, count: bytes }, None));
    }
    let place = Place { space: Space::Heap, number: 0, origin, count: layout.count };
    Some((place, Some(&layout.plan)))
}

const LINE: u64 = crate::shm::pair::LINE as u64;

/// Bytes of each cache line that `plan`'s data touches which belong to it: by density, but at least
/// as long as its runs are and at most a line.
fn useful(plan: &Plan) -> u64 {
    let facts = Facts::of(plan);
    // A run of `mean` bytes touches `mean / LINE + 1` lines, or fewer where runs share lines.
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

    /// As the two sides do it.
    fn number(defined: &mut Defined, known: &mut Known, plan: &Plan) -> (u32, bool) {
        match defined.number(plan) {
            Number::Known(number) => (number, false),
            Number::New(number, encoding) => {
                known.define(number, &encoding).expect("a type");
                defined.define(number, plan, encoding);
                (number, true)
            }
            Number::None => panic!("too long"),
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
    fn long_tables_get_no_number() {
        let double = Datatype::named(Named::F64);
        let places: Vec<i64> = (0..5000).map(|i| i * i).collect();
        let plan = Datatype::indexed_block(1, &places, &double).unwrap().commit().unwrap();
        assert!(matches!(Defined::default().number(&plan), Number::None));
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
