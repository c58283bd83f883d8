//! Converts between packed bytes and elements (MPI-5.0 sections 3.2.5 and 5.1.11). A program that
//! receives a message shorter than its buffer needs the number of elements in the message. The
//! opposite conversion returns the number of bytes that a number of elements takes.
//!
//! The conversions of basic elements walk down from the type to the basic element in which the given
//! bytes or elements end. In every constructor call except a struct, all copies of the child have the
//! same size, so a division finds the copy. The first walk that enters a struct with more than 16
//! members computes and stores sampled prefix sums of the sizes of its members.

use super::{Constructor, Datatype};
use typepack_leaf::Table;

/// The number of packed bytes, and the number of basic elements, before a member of a struct.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    bytes: u64,
    elements: u64,
}

/// Number of members from one `Mark` to the next. A struct with at most this many members is
/// searched without marks.
const SAMPLE: usize = 16;

impl Datatype {
    /// Returns the number of whole elements of this type in `bytes` packed bytes. Returns `None`
    /// (`MPI_UNDEFINED` in C) if the last element is incomplete, or if `bytes` is above 0 and the type
    /// has no data.
    #[doc(alias = "MPI_Get_count")]
    pub fn get_count(&self, bytes: u64) -> Option<u64> {
        match self.size() as u64 {
            0 => (bytes == 0).then_some(0),
            size => bytes.is_multiple_of(size).then_some(bytes / size),
        }
    }

    /// Returns the number of basic elements in the first `bytes` packed bytes of a message. The
    /// message may have any number of elements of this type. Returns `None` (`MPI_UNDEFINED` in C) if
    /// the last basic element is incomplete, or if `bytes` is above 0 and the type has no data. The two
    /// members of a pair count as two basic elements.
    #[doc(alias = "MPI_Get_elements")]
    pub fn get_elements(&self, bytes: u64) -> Option<u64> {
        let (mut ty, mut rest, mut done) = (self, bytes, 0);
        loop {
            if rest == 0 {
                return Some(done);
            }
            let size = ty.size() as u64;
            if size == 0 {
                return None;
            }
            // The sum cannot overflow, because a prefix of the data never has more basic elements
            // than bytes.
            done += rest / size * ty.elements() as u64;
            rest %= size;
            if rest == 0 {
                return Some(done);
            }
            ty = match ty.constructor() {
                Constructor::Named(named) => {
                    let first = named.members().map(|[(_, first), _]| u64::from(first.size()));
                    return (first == Some(rest)).then_some(done + 1);
                }
                Constructor::Struct { blocklengths, types, .. } => {
                    let (member, before) = ty.member(blocklengths, types, rest, |mark| mark.bytes);
                    rest -= before.bytes;
                    done += before.elements;
                    &types[member]
                }
                // This call has data, so it has a child.
                other => &other.children()[0],
            };
        }
    }

    /// Returns the number of packed bytes of the first `elements` basic elements of a message. The
    /// message may have any number of elements of this type. This is the inverse of
    /// [`Datatype::get_elements`]. Returns `None` if the number of bytes does not fit in an `i64`, or
    /// if `elements` is above 0 and the type has no basic elements.
    #[doc(alias = "MPI_Status_set_elements")]
    pub fn elements_bytes(&self, elements: u64) -> Option<u64> {
        let (mut ty, mut rest, mut done) = (self, elements, 0u64);
        loop {
            if rest == 0 {
                return (done <= i64::MAX as u64).then_some(done);
            }
            let each = ty.elements() as u64;
            if each == 0 {
                return None;
            }
            done = (rest / each).checked_mul(ty.size() as u64)?.checked_add(done)?;
            rest %= each;
            if rest == 0 {
                continue;
            }
            ty = match ty.constructor() {
                Constructor::Named(named) => {
                    // A pair is the only named type with more than one basic element. So this type is
                    // a pair, and `rest` is 1: only the first member of the pair is left to count.
                    let first = named.members().map(|[(_, first), _]| u64::from(first.size()))?;
                    (rest, done) = (0, done.checked_add(first)?);
                    ty
                }
                Constructor::Struct { blocklengths, types, .. } => {
                    let (member, before) =
                        ty.member(blocklengths, types, rest, |mark| mark.elements);
                    rest -= before.elements;
                    done = done.checked_add(before.bytes)?;
                    &types[member]
                }
                // This call has elements, so it has a child.
                other => &other.children()[0],
            };
        }
    }

    /// Returns the member of this struct that contains position `at`, and the bytes and elements
    /// before that member. `place` selects the unit of `at`: packed bytes or basic elements.
    fn member(
        &self,
        blocklengths: &Table,
        types: &[Datatype],
        at: u64,
        place: impl Fn(Mark) -> u64,
    ) -> (usize, Mark) {
        let after = |before: Mark, i: usize| {
            let length = blocklengths.get(i) as u64;
            Mark {
                bytes: before.bytes + length * types[i].size() as u64,
                elements: before.elements + length * types[i].elements() as u64,
            }
        };
        let mut before = Mark { bytes: 0, elements: 0 };
        let mut member = 0;
        if types.len() > SAMPLE {
            let marks = self.0.marks.get_or_init(|| {
                let mut before = before;
                let mut marks = Vec::with_capacity(types.len().div_ceil(SAMPLE));
                for i in 0..types.len() {
                    if i % SAMPLE == 0 {
                        marks.push(before);
                    }
                    before = after(before, i);
                }
                marks.into()
            });
            // The first mark is 0, so at least one mark is not above `at`, and the subtraction cannot
            // underflow.
            let sample = marks.partition_point(|&mark| place(mark) <= at) - 1;
            (member, before) = (sample * SAMPLE, marks[sample]);
        }
        loop {
            let next = after(before, member);
            if at < place(next) {
                return (member, before);
            }
            (member, before) = (member + 1, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Datatype, Named, typemap};

    /// Compares `get_elements` and `elements_bytes` with the typemap, for every prefix of the packed
    /// form of three copies of `ty`.
    fn check(ty: &Datatype) {
        let sizes: Vec<u64> =
            typemap::typemap(ty).iter().map(|entry| u64::from(entry.named.size())).collect();
        assert_eq!(ty.elements(), sizes.len() as i64);
        let mut ends = vec![0];
        for size in sizes.iter().cycle().take(3 * sizes.len()) {
            ends.push(ends[ends.len() - 1] + size);
        }
        for bytes in 0..=*ends.last().unwrap() {
            let expected = ends.iter().position(|&end| end == bytes).map(|n| n as u64);
            assert_eq!(ty.get_elements(bytes), expected, "{bytes} bytes of {ty:?}");
        }
        for (elements, &bytes) in ends.iter().enumerate() {
            let found = ty.elements_bytes(elements as u64);
            assert_eq!(found, Some(bytes), "{elements} elements of {ty:?}");
        }
    }

    #[test]
    fn partial_counts_follow_the_typemap() {
        let (int, pair) = (Datatype::named(Named::INT), Datatype::named(Named::DOUBLE_INT));
        check(&pair);
        check(&Datatype::indexed(&[2, 0, 1], &[4, 0, 0], &pair).unwrap());
        let few = Datatype::structured(
            &[0, 2, 1],
            &[0, 0, 40],
            &[int.clone(), pair.clone(), int.clone()],
        )
        .unwrap();
        check(&few);
        let types: Vec<Datatype> =
            [&few, &int, &pair].into_iter().cycle().take(100).cloned().collect();
        let lengths: Vec<i64> = (0..100).map(|i| i % 4).collect();
        let places: Vec<i64> = (0..100).map(|i| 200 * i).collect();
        check(&Datatype::structured(&lengths, &places, &types).unwrap());
        assert_eq!(Datatype::contiguous(0, &int).unwrap().get_elements(0), Some(0));
        assert_eq!(Datatype::contiguous(0, &int).unwrap().get_elements(1), None);
    }

    #[test]
    fn depth_and_exponential_types_cost_nothing() {
        let mut ty = Datatype::named(Named::SHORT_INT);
        for _ in 0..58 {
            ty = Datatype::contiguous(2, &ty).unwrap();
        }
        assert_eq!(ty.elements(), 1 << 59);
        assert_eq!(ty.get_elements(6 * 12345 + 2), Some(2 * 12345 + 1));
        assert_eq!(ty.get_elements(6 * 12345 + 3), None);
        assert_eq!(ty.elements_bytes(2 * 12345 + 1), Some(6 * 12345 + 2));
        assert_eq!(ty.elements_bytes(u64::MAX), None);
        for _ in 0..100_000 {
            ty = ty.dup();
        }
        assert_eq!(ty.get_elements(8), Some(3));
        assert_eq!(ty.depth(), 100_058);
    }
}
