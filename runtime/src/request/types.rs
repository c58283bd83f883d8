//! The types that two processes know by number.
//!
//! The process that describes its data sends the encoded form of a type once (`typepack_engine::wire`), and afterwards
//! only the number of the type. [`Advertised`] is its table of the types that one other process knows. That process
//! keeps their plans in [`Remembered`]. When the table is full, the next type takes the number that was defined first.
//! Definitions and their uses arrive in order, so both processes mean the same type by a number.
//!
//! The users of this file say how the form travels, how many numbers there are, and how long a form may be. The
//! engine's decoder checks everything that another process wrote.

use crate::{Plan, Result};
use typepack_engine::analysis::Facts;
use typepack_engine::wire;

/// A table keeps a form of at most this number of bytes, to find equal types that the program has committed again.
const KEPT: usize = 16 << 10;

/// A type that the other process knows, or will know when it reads what this process has sent.
#[derive(Debug)]
struct Definition<T> {
    /// The plan of the latest use. Plans are compared by address, so the table keeps this plan alive: no other plan can
    /// then get the same address.
    plan: Plan,
    identity: u128,
    /// The form; empty if it is too long to keep.
    encoding: Box<[u8]>,
    with: T,
}

/// The types of this process that one other process knows. Each has a value of the type `T` beside it.
#[derive(Debug)]
pub struct Advertised<T = ()> {
    types: Vec<Definition<T>>,
    most: usize,
    /// The number that was used last. It is tried first, because uses of one type often follow each other.
    recent: usize,
    /// When all numbers are in use: the number that the next definition replaces.
    next: usize,
}

/// How a process names a type.
#[derive(Debug)]
pub enum Number {
    /// The other process knows the type under this number.
    Known(u32),
    /// The other process does not know the type. This is the number to define, and the encoded form.
    New(u32, Vec<u8>),
    /// The other process does not know the type, and the form is too long.
    TooLong,
}

impl<T> Advertised<T> {
    /// Creates an empty table for at most `most` types.
    pub fn new(most: usize) -> Self {
        Self { types: Vec::new(), most, recent: 0, next: 0 }
    }

    /// Returns the number of a plan that has been used before.
    #[inline]
    pub fn number(&mut self, plan: &Plan) -> Option<u32> {
        let is = |definition: &Definition<T>| definition.plan.is_same(plan);
        if !self.types.get(self.recent).is_some_and(is) {
            self.recent = self.types.iter().position(is)?;
        }
        Some(self.recent as u32)
    }

    /// Returns how to name the type of a plan, whose form may have at most `longest` bytes.
    #[inline]
    pub fn name(&mut self, plan: &Plan, longest: usize) -> Number {
        match self.number(plan) {
            Some(number) => Number::Known(number),
            None => self.search(plan, longest),
        }
    }

    /// Returns how to name the type of a plan for which [`number`](Self::number) has found nothing. The form may have
    /// at most `longest` bytes.
    #[inline(never)]
    pub fn search(&mut self, plan: &Plan, longest: usize) -> Number {
        let Some(encoding) = wire::encode_within(plan, longest) else { return Number::TooLong };
        let identity = wire::identity(&encoding);
        let is = |d: &Definition<T>| d.identity == identity && *d.encoding == *encoding;
        if let Some(at) = self.types.iter().position(is) {
            self.types[at].plan = plan.clone();
            self.recent = at;
            return Number::Known(at as u32);
        }
        Number::New(self.free(), encoding)
    }

    /// Returns the number that the next definition takes.
    pub fn free(&self) -> u32 {
        (if self.types.len() < self.most { self.types.len() } else { self.next }) as u32
    }

    /// Returns the value beside the type with this number.
    pub fn with(&mut self, number: usize) -> Option<&mut T> {
        self.types.get_mut(number).map(|definition| &mut definition.with)
    }

    /// Records that this process has sent the definition of the number that [`free`](Self::free) returns.
    pub fn define(&mut self, plan: &Plan, encoding: Vec<u8>, with: T) {
        let at = self.free() as usize;
        let identity = wire::identity(&encoding);
        let encoding = if encoding.len() <= KEPT { encoding.into() } else { Box::default() };
        let definition = Definition { plan: plan.clone(), identity, encoding, with };
        self.recent = at;
        match self.types.get_mut(at) {
            Some(old) => {
                *old = definition;
                self.next = (at + 1) % self.most;
            }
            None => self.types.push(definition),
        }
    }
}

/// A type of another process.
#[derive(Clone, Debug)]
pub struct Type {
    /// The layout as a plan of this process, which can run the kernels of this process.
    pub plan: Plan,
    /// An estimate of how many bytes of each cache line that the data touches belong to the data, on average.
    pub useful: u64,
}

/// The types of another process that this process knows.
#[derive(Debug, Default)]
pub struct Remembered(Vec<Option<Type>>);

impl Remembered {
    /// Returns a type; `None` if nobody has defined the number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Type> {
        self.0.get(number as usize)?.as_ref()
    }

    /// Defines type `number` as the type that `encoding` describes. The caller has checked that the number is small.
    /// `encoding` is a private copy, so no other process can change it.
    ///
    /// # Errors
    /// Returns an engine error if `encoding` is not an encoded type.
    pub fn define(&mut self, number: u32, encoding: &[u8]) -> Result<()> {
        let plan = crate::commit::decode(encoding)?;
        let at = number as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = Some(Type { useful: useful(&plan), plan });
        Ok(())
    }
}

/// Length of a cache line in bytes.
pub const LINE: u64 = crate::shm::pair::LINE as u64;

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

    const MOST: u32 = 5;

    fn vector(count: i64, stride: i64) -> Plan {
        let double = Datatype::named(Named::F64);
        Datatype::vector(count, 1, stride, &double).expect("a type").commit().expect("a plan")
    }

    /// Names a type as the two processes would do it. Returns its number, and whether the type was new.
    fn name(advertised: &mut Advertised, known: &mut Remembered, plan: &Plan) -> (u32, bool) {
        match advertised.name(plan, 1 << 10) {
            Number::Known(number) => (number, false),
            Number::New(number, encoding) => {
                known.define(number, &encoding).expect("a type");
                advertised.define(plan, encoding, ());
                (number, true)
            }
            Number::TooLong => panic!("too long"),
        }
    }

    #[test]
    fn a_type_is_defined_once_and_replaced_when_the_table_is_full() {
        let (mut table, mut known) = (Advertised::new(MOST as usize), Remembered::default());
        let mut name = |plan: &Plan| name(&mut table, &mut known, plan);
        let first = vector(3, 5);
        assert_eq!(name(&first), (0, true));
        assert_eq!(name(&first), (0, false));
        // The program commits an equal type again.
        assert_eq!(name(&vector(3, 5)), (0, false));
        for i in 1..MOST {
            assert_eq!(name(&vector(3, 5 + i64::from(i))), (i, true));
        }
        assert_eq!(name(&vector(4, 5)), (0, true));
        assert_eq!(name(&vector(4, 6)), (1, true));
        assert_eq!(name(&first), (2, true));
        assert_eq!(name(&vector(4, 5)), (0, false));
        let found = known.get(0).expect("a type");
        assert_eq!(found.plan.footprint(), vector(4, 5).footprint());
        assert!(known.get(MOST).is_none());
    }

    #[test]
    fn long_forms_get_no_number() {
        let double = Datatype::named(Named::F64);
        let places: Vec<i64> = (0..5000).map(|i| i * i).collect();
        let plan = Datatype::indexed_block(1, &places, &double).unwrap().commit().unwrap();
        let mut table = Advertised::<()>::new(MOST as usize);
        assert!(matches!(table.search(&plan, 16 << 10), Number::TooLong));
        // A form that is too long to keep has a number, which only the same plan finds.
        let Number::New(number, form) = table.search(&plan, 1 << 20) else { panic!("no number") };
        table.define(&plan, form, ());
        assert_eq!(table.number(&plan), Some(number));
        assert!(matches!(table.search(&plan, 1 << 20), Number::New(1, _)));
    }

    #[test]
    fn hostile_forms_define_nothing() {
        let mut known = Remembered::default();
        assert!(known.define(7, b"tpkw").is_err());
        assert!(known.define(7, &[0; 100]).is_err());
        assert!(known.get(7).is_none() && known.get(u32::MAX).is_none());
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
