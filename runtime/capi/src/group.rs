//! Groups behind handles (MPI-5.0 section 7.3).
//!
//! The runtime has the sets (`typepack::Group`); `comm/` makes groups of communicators and the
//! reverse. A group without members is `MPI_GROUP_EMPTY`, whichever call it comes from.

use crate::abi;
use crate::array;
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::lifecycle;
use crate::out::Out;
use crate::raw;
use std::ffi::c_int;
use std::sync::{Arc, LazyLock};
use typepack::{Comparison, Group, RankRange};

static GROUPS: Table<Group> = Table::new(Kind::Group);

static EMPTY: LazyLock<Arc<Group>> = LazyLock::new(|| Arc::new(Group::empty()));

/// The group of a handle.
///
/// # Errors
/// `MPI_ERR_GROUP`.
pub fn find(group: raw::Group) -> Result<Arc<Group>> {
    match group.0 {
        abi::GROUP_EMPTY => Ok(EMPTY.clone()),
        value => GROUPS.find(value).ok_or_else(|| invalid(group)),
    }
}

#[cold]
fn invalid(group: raw::Group) -> Failure {
    let null = (abi::GROUP_NULL, "MPI_GROUP_NULL");
    Failure::no_object(abi::ERR_GROUP, ("group", "group"), group.0, null)
}

/// Gives a group a handle.
///
/// # Errors
/// No handle is left.
pub fn insert(group: Group) -> Result<raw::Group> {
    if group.is_empty() {
        return Ok(raw::Group(abi::GROUP_EMPTY));
    }
    Ok(raw::Group(GROUPS.insert(Arc::new(group))?))
}

/// The live handle with this integer.
pub fn from_int(integer: c_int) -> Option<usize> {
    GROUPS.of_int(integer)
}

/// What a comparison is called.
pub fn comparison(comparison: Comparison) -> c_int {
    match comparison {
        Comparison::Identical => abi::IDENT,
        Comparison::Congruent => abi::CONGRUENT,
        Comparison::Similar => abi::SIMILAR,
        Comparison::Unequal => abi::UNEQUAL,
    }
}

/// The elements of an array argument.
///
/// # Errors
/// `MPI_ERR_ARG` for a negative length; as [`array::read`].
///
/// # Safety
///
/// - `array` is null, or readable for `n` elements.
unsafe fn list<T: Copy>(n: c_int, array: *const T, argument: &'static str) -> Result<Vec<T>> {
    let length = usize::try_from(n)
        .map_err(|_| Failure::new(abi::ERR_ARG, "n", format!("{n} is negative")))?;
    // SAFETY: passed on.
    Ok(unsafe { array::read(array, length, argument)? })
}

/// `MPI_Group_size`.
///
/// # Safety
/// As the C function.
pub unsafe fn size(group: raw::Group, size: *mut c_int) -> Result {
    let group = find(group)?;
    // SAFETY: passed on.
    let out = unsafe { Out::new(size, "size")? };
    out.set(group.size() as c_int);
    Ok(())
}

/// `MPI_Group_rank`.
///
/// # Safety
/// As the C function.
pub unsafe fn rank(group: raw::Group, rank: *mut c_int) -> Result {
    let group = find(group)?;
    // SAFETY: passed on.
    let out = unsafe { Out::new(rank, "rank")? };
    let place = lifecycle::rank().and_then(|world| group.rank_of(world));
    out.set(place.map_or(abi::UNDEFINED, |place| place as c_int));
    Ok(())
}

/// `MPI_Group_translate_ranks`.
///
/// # Safety
/// As the C function.
pub unsafe fn translate_ranks(
    group1: raw::Group,
    n: c_int,
    ranks1: *const c_int,
    group2: raw::Group,
    ranks2: *mut c_int,
) -> Result {
    let (first, second) = (find(group1)?, find(group2)?);
    // SAFETY: passed on.
    let ranks = unsafe { list(n, ranks1, "ranks1")? };
    if ranks2.is_null() && !ranks.is_empty() {
        return Err(Failure::null("ranks2"));
    }
    let translated = ranks.iter().map(|&rank| match usize::try_from(rank) {
        Ok(place) => {
            Ok(first.translate(place, &second)?.map_or(abi::UNDEFINED, |rank| rank as c_int))
        }
        Err(_) if rank == abi::PROC_NULL => Ok(abi::PROC_NULL),
        Err(_) => {
            Err(Failure::new(abi::ERR_RANK, "ranks1", format!("{rank} is not a rank of the group")))
        }
    });
    // All of them before the first is written.
    for (i, rank) in translated.collect::<Result<Vec<c_int>>>()?.into_iter().enumerate() {
        // SAFETY: not null, hence writable for as many elements as there are ranks.
        unsafe { ranks2.add(i).write_unaligned(rank) };
    }
    Ok(())
}

/// `MPI_Group_compare`.
///
/// # Safety
/// As the C function.
pub unsafe fn compare(group1: raw::Group, group2: raw::Group, result: *mut c_int) -> Result {
    let (first, second) = (find(group1)?, find(group2)?);
    // SAFETY: passed on.
    let out = unsafe { Out::new(result, "result")? };
    out.set(comparison(first.compare(&second)));
    Ok(())
}

/// # Safety
///
/// - `newgroup` is null or writable.
unsafe fn combine(
    group1: raw::Group,
    group2: raw::Group,
    newgroup: *mut raw::Group,
    combine: impl FnOnce(&Group, &Group) -> Group,
) -> Result {
    let (first, second) = (find(group1)?, find(group2)?);
    // SAFETY: passed on.
    let out = unsafe { Out::new(newgroup, "newgroup")? };
    out.set(insert(combine(&first, &second))?);
    Ok(())
}

/// `MPI_Group_union`.
///
/// # Safety
/// As the C function.
pub unsafe fn union(group1: raw::Group, group2: raw::Group, newgroup: *mut raw::Group) -> Result {
    // SAFETY: passed on.
    unsafe { combine(group1, group2, newgroup, Group::union) }
}

/// `MPI_Group_intersection`.
///
/// # Safety
/// As the C function.
pub unsafe fn intersection(
    group1: raw::Group,
    group2: raw::Group,
    newgroup: *mut raw::Group,
) -> Result {
    // SAFETY: passed on.
    unsafe { combine(group1, group2, newgroup, Group::intersection) }
}

/// `MPI_Group_difference`.
///
/// # Safety
/// As the C function.
pub unsafe fn difference(
    group1: raw::Group,
    group2: raw::Group,
    newgroup: *mut raw::Group,
) -> Result {
    // SAFETY: passed on.
    unsafe { combine(group1, group2, newgroup, Group::difference) }
}

/// # Safety
///
/// - `array` is null or readable for `n` elements.
/// - `newgroup` is null or writable.
unsafe fn choose<T: Copy>(
    group: raw::Group,
    (n, array, argument): (c_int, *const T, &'static str),
    newgroup: *mut raw::Group,
    choose: impl FnOnce(&Group, Vec<T>) -> typepack::Result<Group>,
) -> Result {
    let group = find(group)?;
    // SAFETY: passed on.
    let (out, chosen) = unsafe { (Out::new(newgroup, "newgroup")?, list(n, array, argument)?) };
    out.set(insert(choose(&group, chosen)?)?);
    Ok(())
}

/// `MPI_Group_incl`.
///
/// # Safety
/// As the C function.
pub unsafe fn incl(
    group: raw::Group,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut raw::Group,
) -> Result {
    let array = (n, ranks, "ranks");
    // SAFETY: passed on.
    unsafe {
        choose(group, array, newgroup, |group, ranks| {
            group.include(ranks.into_iter().map(i64::from))
        })
    }
}

/// `MPI_Group_excl`.
///
/// # Safety
/// As the C function.
pub unsafe fn excl(
    group: raw::Group,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut raw::Group,
) -> Result {
    let array = (n, ranks, "ranks");
    // SAFETY: passed on.
    unsafe {
        choose(group, array, newgroup, |group, ranks| {
            group.exclude(ranks.into_iter().map(i64::from))
        })
    }
}

fn ranges(triples: &[[c_int; 3]]) -> Vec<RankRange> {
    let range = |&[first, last, stride]: &[c_int; 3]| RankRange {
        first: first.into(),
        last: last.into(),
        stride: stride.into(),
    };
    triples.iter().map(range).collect()
}

/// `MPI_Group_range_incl`.
///
/// # Safety
/// As the C function.
pub unsafe fn range_incl(
    group: raw::Group,
    n: c_int,
    triples: *mut [c_int; 3],
    newgroup: *mut raw::Group,
) -> Result {
    let array = (n, triples.cast_const(), "ranges");
    // SAFETY: passed on.
    unsafe {
        choose(group, array, newgroup, |group, triples| group.include_ranges(&ranges(&triples)))
    }
}

/// `MPI_Group_range_excl`.
///
/// # Safety
/// As the C function.
pub unsafe fn range_excl(
    group: raw::Group,
    n: c_int,
    triples: *mut [c_int; 3],
    newgroup: *mut raw::Group,
) -> Result {
    let array = (n, triples.cast_const(), "ranges");
    // SAFETY: passed on.
    unsafe {
        choose(group, array, newgroup, |group, triples| group.exclude_ranges(&ranges(&triples)))
    }
}

/// `MPI_Group_free`. `MPI_GROUP_EMPTY`, which calls return, can be freed as if it were a group of
/// its own.
///
/// # Safety
/// As the C function.
pub unsafe fn free(group: *mut raw::Group) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(group, "group")? };
    // SAFETY: not null, and readable as an argument of both directions.
    let handle = unsafe { group.read_unaligned() };
    if handle.0 != abi::GROUP_EMPTY {
        GROUPS.remove(handle.0).ok_or_else(|| invalid(handle))?;
    }
    out.set(raw::Group::NULL);
    Ok(())
}
