//! Groups behind handles (MPI-5.0 section 7.3).
//!
//! The runtime implements groups (`typepack::Group`). The functions of `comm/` make groups from communicators
//! and communicators from groups. A group without members always has the handle `MPI_GROUP_EMPTY`, whichever
//! call makes the group.

use crate::abi;
use crate::argument::{Array, InOut, OutArray, Output};
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::lifecycle;
use crate::raw;
use std::ffi::c_int;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use typepack::{Comparison, Group, RankRange};

/// A group behind a handle.
#[derive(Debug)]
pub struct Known {
    group: Group,
    /// The handle of the session from which the group comes; 0 if it comes from none. Communicators of the group
    /// belong to the same session.
    pub session: usize,
}

impl Deref for Known {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.group
    }
}

static GROUPS: Table<Known> = Table::new(Kind::Group);

static EMPTY: LazyLock<Arc<Known>> =
    LazyLock::new(|| Arc::new(Known { group: Group::empty(), session: 0 }));

/// Returns the group of a handle.
///
/// # Errors
/// Returns `MPI_ERR_GROUP` if the handle is not valid.
pub fn find(group: raw::Group) -> Result<Arc<Known>> {
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

/// Makes a handle for a group. `session` is the handle of the session from which the group comes; 0 if it comes
/// from none.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn insert(group: Group, session: usize) -> Result<raw::Group> {
    if group.is_empty() {
        return Ok(raw::Group(abi::GROUP_EMPTY));
    }
    Ok(raw::Group(GROUPS.insert(Arc::new(Known { group, session }))?))
}

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn from_int(integer: c_int) -> Option<usize> {
    GROUPS.of_int(integer)
}

/// Returns the constant of the ABI for the result of a comparison.
pub fn comparison(comparison: Comparison) -> c_int {
    match comparison {
        Comparison::Identical => abi::IDENT,
        Comparison::Congruent => abi::CONGRUENT,
        Comparison::Similar => abi::SIMILAR,
        Comparison::Unequal => abi::UNEQUAL,
    }
}

/// Returns a copy of the `n` entries of an array argument.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if `n` is negative, and the errors of [`Array::copy`].
///
/// # Safety
///
/// - `n` is at most the number of entries that the standard prescribes for `array`.
unsafe fn list<T: Copy>(n: c_int, array: Array<T>, argument: &'static str) -> Result<Vec<T>> {
    let length = usize::try_from(n)
        .map_err(|_| Failure::new(abi::ERR_ARG, "n", format!("{n} is negative")))?;
    // SAFETY: `array` has at least `n` entries (condition of `# Safety`), and `length` equals `n`.
    Ok(unsafe { array.copy(length, argument)? })
}

/// `MPI_Group_size`.
pub fn size(group: raw::Group, size: Output<c_int>) -> Result {
    let group = find(group)?;
    let out = size.required("size")?;
    out.set(group.size() as c_int);
    Ok(())
}

/// `MPI_Group_rank`.
pub fn rank(group: raw::Group, rank: Output<c_int>) -> Result {
    let group = find(group)?;
    let out = rank.required("rank")?;
    let place = lifecycle::process().and_then(|process| group.rank_of(process));
    out.set(place.map_or(abi::UNDEFINED, |place| place as c_int));
    Ok(())
}

/// `MPI_Group_translate_ranks`.
pub fn translate_ranks(
    group1: raw::Group,
    n: c_int,
    ranks1: Array<c_int>,
    group2: raw::Group,
    ranks2: OutArray<c_int>,
) -> Result {
    let (first, second) = (find(group1)?, find(group2)?);
    // SAFETY: the caller of `MPI_Group_translate_ranks` passes two arrays of `n` entries each, and
    // `ranks.len()` equals `n`.
    let (ranks, results) = unsafe {
        let ranks = list(n, ranks1, "ranks1")?;
        let results = ranks2.places(ranks.len(), "ranks2")?;
        (ranks, results)
    };
    let translated = ranks.iter().map(|&rank| match usize::try_from(rank) {
        Ok(place) => {
            Ok(first.translate(place, &second)?.map_or(abi::UNDEFINED, |rank| rank as c_int))
        }
        Err(_) if rank == abi::PROC_NULL => Ok(abi::PROC_NULL),
        Err(_) => {
            let detail = format!(
                "{rank} is neither MPI_PROC_NULL nor a rank of the group, whose size is {}",
                first.size()
            );
            Err(Failure::new(abi::ERR_RANK, "ranks1", detail))
        }
    });
    // All ranks are translated before a result is written, so that a call with a wrong rank writes nothing.
    results.fill(translated.collect::<Result<Vec<c_int>>>()?);
    Ok(())
}

/// `MPI_Group_compare`.
pub fn compare(group1: raw::Group, group2: raw::Group, result: Output<c_int>) -> Result {
    let (first, second) = (find(group1)?, find(group2)?);
    let out = result.required("result")?;
    out.set(comparison(first.compare(&second)));
    Ok(())
}

fn combine(
    group1: raw::Group,
    group2: raw::Group,
    newgroup: Output<raw::Group>,
    combine: impl FnOnce(&Group, &Group) -> Group,
) -> Result {
    let (first, second) = (find(group1)?, find(group2)?);
    let out = newgroup.required("newgroup")?;
    let session = if first.session == 0 { second.session } else { first.session };
    out.set(insert(combine(&first, &second), session)?);
    Ok(())
}

/// `MPI_Group_union`.
pub fn union(group1: raw::Group, group2: raw::Group, newgroup: Output<raw::Group>) -> Result {
    combine(group1, group2, newgroup, Group::union)
}

/// `MPI_Group_intersection`.
pub fn intersection(
    group1: raw::Group,
    group2: raw::Group,
    newgroup: Output<raw::Group>,
) -> Result {
    combine(group1, group2, newgroup, Group::intersection)
}

/// `MPI_Group_difference`.
pub fn difference(group1: raw::Group, group2: raw::Group, newgroup: Output<raw::Group>) -> Result {
    combine(group1, group2, newgroup, Group::difference)
}

/// Makes a group from another group. An array of `n` entries says which members to include or exclude.
/// `choose` makes the new group from the old one and the entries.
fn choose<T: Copy>(
    group: raw::Group,
    (n, array, argument): (c_int, Array<T>, &'static str),
    newgroup: Output<raw::Group>,
    choose: impl FnOnce(&Group, Vec<T>) -> typepack::Result<Group>,
) -> Result {
    let group = find(group)?;
    let out = newgroup.required("newgroup")?;
    // SAFETY: `MPI_Group_incl`, `MPI_Group_excl` and their forms for ranges call this function. Their callers
    // pass an array of `n` entries.
    let chosen = unsafe { list(n, array, argument)? };
    out.set(insert(choose(&group, chosen)?, group.session)?);
    Ok(())
}

/// `MPI_Group_incl`.
pub fn incl(
    group: raw::Group,
    n: c_int,
    ranks: Array<c_int>,
    newgroup: Output<raw::Group>,
) -> Result {
    let array = (n, ranks, "ranks");
    choose(group, array, newgroup, |group, ranks| group.include(ranks.into_iter().map(i64::from)))
}

/// `MPI_Group_excl`.
pub fn excl(
    group: raw::Group,
    n: c_int,
    ranks: Array<c_int>,
    newgroup: Output<raw::Group>,
) -> Result {
    let array = (n, ranks, "ranks");
    choose(group, array, newgroup, |group, ranks| group.exclude(ranks.into_iter().map(i64::from)))
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
pub fn range_incl(
    group: raw::Group,
    n: c_int,
    triples: Array<[c_int; 3]>,
    newgroup: Output<raw::Group>,
) -> Result {
    let array = (n, triples, "ranges");
    choose(group, array, newgroup, |group, triples| group.include_ranges(&ranges(&triples)))
}

/// `MPI_Group_range_excl`.
pub fn range_excl(
    group: raw::Group,
    n: c_int,
    triples: Array<[c_int; 3]>,
    newgroup: Output<raw::Group>,
) -> Result {
    let array = (n, triples, "ranges");
    choose(group, array, newgroup, |group, triples| group.exclude_ranges(&ranges(&triples)))
}

/// `MPI_Group_free`. A program may free `MPI_GROUP_EMPTY` like any other group, because a call may have
/// returned that handle. The handle stays valid.
pub fn free(group: InOut<raw::Group>) -> Result {
    let (handle, out) = group.read("group")?;
    if handle.0 != abi::GROUP_EMPTY {
        GROUPS.remove(handle.0).ok_or_else(|| invalid(handle))?;
    }
    out.set(raw::Group::NULL);
    Ok(())
}
