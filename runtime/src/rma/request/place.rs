//! The elements of a request in the memory of this rank. Another rank may send anything, so this file checks that all
//! data of the elements lie in the window's memory.

use super::form::{BYTES, Request};
use super::types::RememberedTypes;
use crate::commit::bytes;
use crate::rma::window::dynamic::{Own, cover};
use crate::{ErrorClass, Plan, WindowErrorKind};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use typepack_engine::{Cursor, Elements};

pub(in crate::rma) const OTHER: ErrorClass = ErrorClass::OTHER;
pub(in crate::rma) const RANGE: ErrorClass = ErrorClass(WindowErrorKind::Range as i32);

/// The most runs of elements with gaps that are not attached for which one request is checked. A check of so many takes
/// some tenths of a second.
const MOST_RUNS: u64 = 1 << 23;

/// The result of a request: nothing, or the class of the error.
pub(in crate::rma) type Served<T = ()> = std::result::Result<T, ErrorClass>;

/// The memory of this rank in a window that requests may access.
#[derive(Debug)]
pub(in crate::rma) enum Memory {
    /// One piece of memory: its address and its length in bytes.
    Piece(usize, u64),
    /// The pieces that this rank has attached to a dynamic window.
    Attached(Arc<Mutex<Own>>),
}

/// The elements of this rank's memory that a request names. The memory stays attached as long as the second value
/// lives.
pub(in crate::rma) type Place<'a> = (Elements<Plan>, Option<MutexGuard<'a, Own>>);

/// Returns the type of the elements of a request.
pub(in crate::rma) fn plan_of<'a>(
    remembered: &'a RememberedTypes,
    request: &Request,
) -> Served<&'a Plan> {
    match request.number {
        BYTES => bytes().map_err(|error| error.class()),
        number => remembered.plan(number).ok_or(OTHER),
    }
}

impl Memory {
    /// Returns the elements of a request, of which it accesses `length` packed bytes from byte `start` of the request
    /// on.
    ///
    /// # Errors
    /// Returns the class of an error if these bytes do not lie in the window's memory, or if the elements have fewer
    /// bytes.
    pub fn place(
        &self,
        remembered: &RememberedTypes,
        request: &Request,
        length: u64,
    ) -> Served<Place<'_>> {
        self.place_of(plan_of(remembered, request)?, request, length)
    }

    /// Returns the elements of a request, whose type is `plan`; see [`place`](Self::place).
    pub fn place_of(&self, plan: &Plan, request: &Request, length: u64) -> Served<Place<'_>> {
        let count = if request.number == BYTES { length } else { request.count };
        let room = plan.packed_bytes(count).map_err(|_| RANGE)?;
        if request.start.checked_add(length).is_none_or(|end| end > room) {
            return Err(RANGE);
        }
        let (first, end) = plan.footprint().reach(count);
        let (base, attached) = match self {
            &Self::Piece(base, bytes) => {
                let at = i128::from(request.offset);
                if room > 0 && (at + first < 0 || at + end > i128::from(bytes)) {
                    return Err(RANGE);
                }
                (base as *mut u8, None)
            }
            Self::Attached(own) => {
                let own = own.lock().unwrap_or_else(PoisonError::into_inner);
                let at = i128::from(request.offset as u64);
                let whole = cover(|at| own.find(at), at + first..at + end, |_| ());
                let range = request.start..request.start + length;
                let elements = (plan, count, room);
                if room > 0 && !whole && !Self::runs_lie_in(&own, at, elements, range) {
                    return Err(RANGE);
                }
                (std::ptr::null_mut(), Some(own))
            }
        };
        let origin = base.wrapping_add(request.offset as usize);
        Ok((Elements { origin, plan: plan.clone(), count }, attached))
    }

    /// Returns whether the runs of elements that hold the packed bytes `range`, which have gaps that are not attached,
    /// lie in attached memory. `elements` is a type, a number, and the number of packed bytes. Elements with more data
    /// than attached memory overlap, which no call permits.
    ///
    /// The endpoint's lock is held meanwhile, so the walk looks at no more than [`MOST_RUNS`] runs. The request of a
    /// rank that asks for more is refused.
    #[cold]
    fn runs_lie_in(
        own: &Own,
        at: i128,
        (plan, count, room): (&Plan, u64, u64),
        range: Range<u64>,
    ) -> bool {
        if u128::from(room) > own.bytes() {
            return false;
        }
        let Ok(mut cursor) = Cursor::at(plan, count, range.start) else { return false };
        let mut left = range.end - range.start;
        for _ in 0..MOST_RUNS {
            let Some(run) = cursor.run().filter(|_| left > 0) else { return true };
            let bytes = run.bytes.min(left);
            let start = at + i128::from(run.offset);
            if !cover(|at| own.find(at), start..start + i128::from(bytes), |_| ()) {
                return false;
            }
            cursor.advance(bytes);
            left -= bytes;
        }
        left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rma::request::form::Kind;
    use crate::{Datatype, Named};
    use typepack_engine::wire;

    fn remembered() -> RememberedTypes {
        let double = Datatype::named(Named::F64);
        let sparse = Datatype::vector(3, 1, 4, &double).expect("a type").commit().expect("a plan");
        let form = wire::encode(&sparse);
        let mut remembered = RememberedTypes::default();
        let taken = remembered.take(0, 0, form.len() as u64, &form);
        assert!(matches!(taken, Some(Ok(()))));
        remembered
    }

    fn request(number: u16, offset: i64, count: u64, start: u64) -> Request {
        Request { number, count, start, ..Request::new(Kind::Put, offset) }
    }

    /// Returns whether elements of type 0 are refused. Each has 24 bytes, at bytes 0, 32 and 64 of 72.
    fn refuses(memory: &Memory, request: &Request, length: u64) -> bool {
        memory.place(&remembered(), request, length).is_err()
    }

    #[test]
    fn hostile_requests_find_no_place() {
        let mut bytes = [0_u8; 100];
        let memory = Memory::Piece(bytes.as_mut_ptr() as usize, 100);
        for (offset, length) in [(0, 100), (99, 1), (100, 0)] {
            assert!(!refuses(&memory, &request(BYTES, offset, 0, 0), length), "{offset} {length}");
        }
        let far = [(-1, 1), (0, 101), (100, 1), (i64::MAX, 1), (i64::MIN, 1), (1, u64::MAX)];
        for (offset, length) in far {
            assert!(refuses(&memory, &request(BYTES, offset, 0, 0), length), "{offset} {length}");
        }
        assert!(!refuses(&memory, &request(0, 28, 1, 0), 24));
        assert!(!refuses(&memory, &request(0, 28, 1, 20), 4));
        for (number, offset, count, start, length) in [
            (1, 0, 1, 0, 24),
            (0, 29, 1, 0, 24),
            (0, -1, 1, 0, 24),
            (0, 0, 2, 0, 24),
            (0, 0, 1, 0, 25),
            (0, 0, 1, 20, 5),
            (0, 0, 1, u64::MAX, 24),
            (0, 0, u64::MAX, 0, 24),
            (0, 0, 0, 0, 1),
        ] {
            let request = request(number, offset, count, start);
            assert!(
                refuses(&memory, &request, length),
                "{number} {offset} {count} {start} {length}"
            );
        }
    }

    #[test]
    fn only_attached_runs_are_a_place() {
        let piece = |start: u64, bytes: u64| [start, bytes, 0, 0];
        let mut own = Own::default();
        [1000, 1032, 1064].into_iter().for_each(|start| own.insert(piece(start, 8)));
        let memory = Memory::Attached(Arc::new(Mutex::new(own)));
        assert!(!refuses(&memory, &request(0, 1000, 1, 0), 24));
        assert!(!refuses(&memory, &request(BYTES, 1032, 0, 0), 8));
        assert!(refuses(&memory, &request(0, 1001, 1, 0), 24));
        assert!(refuses(&memory, &request(BYTES, 1000, 0, 0), 40));
        // Many elements: the function must not walk over all of them.
        assert!(refuses(&memory, &request(0, 1000, u64::MAX / 24, 0), 24));
        // Only the runs of the bytes that the request accesses count.
        if let Memory::Attached(own) = &memory {
            own.lock().unwrap().insert(piece(5000, 100));
        }
        let both = request(0, 1000, 2, 0);
        assert!(!refuses(&memory, &both, 24) && refuses(&memory, &both, 25));
        assert!(refuses(&memory, &request(0, 928, 2, 0), 24));
        assert!(!refuses(&memory, &request(0, 928, 2, 24), 24));
    }

    /// A request that names more runs than a check walks over is refused, also if all of them are attached.
    #[test]
    fn a_check_ends_after_so_many_runs() {
        let mut own = Own::default();
        // No byte of this memory is accessed.
        own.insert([1 << 20, 1 << 40, 0, 0]);
        own.insert([1 << 50, 8, 0, 0]);
        let memory = Memory::Attached(Arc::new(Mutex::new(own)));
        let double = Datatype::named(Named::F64);
        let runs = |runs: u64| -> bool {
            let many = Datatype::vector(runs as i64, 1, 4, &double).expect("a type");
            // The second element lies beyond the gap.
            let far = Datatype::resized(0, (1 << 50) - (1 << 20), &many).expect("a type");
            let plan = far.commit().expect("a plan");
            let request = Request { count: 2, ..request(0, 1 << 20, 2, 0) };
            memory.place_of(&plan, &request, 8 * runs).is_ok()
        };
        assert!(runs(1000) && runs(MOST_RUNS - 1) && !runs(MOST_RUNS + 1));
    }
}
