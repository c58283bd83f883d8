//! Distributed arrays: one process's share of an array that is spread over a grid of processes
//! (MPI-5.0 section 5.1.4).
//!
//! This file builds the share of a process as a tree of simpler constructor calls. If the share is
//! empty, the tree has no data. If the share is one run of indices in every dimension, the tree is a
//! subarray. Otherwise each dimension becomes one strided loop over its whole blocks and, if there is one,
//! the shorter last block; the tree is built from the innermost dimension outwards. The original call is
//! kept for decoding (`decode.rs`) and for the oracle (`typemap.rs`), with which tests compare results.
//! The oracle does not use the tree but follows the definition in the standard.

use super::array::{Order, check_dimensions, elements, slowest_first};
use super::{Call, Constructor, Datatype};
use crate::error::{Error, ErrorKind, Result, counted};

/// How one dimension of the array is distributed over the same dimension of the process grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Every process has the whole dimension (`MPI_DISTRIBUTE_NONE`). The distribution argument is
    /// ignored.
    #[doc(alias = "MPI_DISTRIBUTE_NONE")]
    None,
    /// Each process has at most one block (`MPI_DISTRIBUTE_BLOCK`). The distribution argument is the number
    /// of elements in a block; the default is the least number with which the blocks of all processes
    /// cover the dimension.
    #[doc(alias = "MPI_DISTRIBUTE_BLOCK")]
    Block,
    /// Blocks go to the processes in turn (`MPI_DISTRIBUTE_CYCLIC`). The distribution argument is the
    /// number of elements in a block; the default is 1.
    #[doc(alias = "MPI_DISTRIBUTE_CYCLIC")]
    Cyclic,
}

impl Distribution {
    /// Returns the value that the MPI 5 standard ABI assigns to this distribution.
    pub fn abi_value(self) -> i32 {
        match self {
            Self::None => 16,
            Self::Block => 17,
            Self::Cyclic => 18,
        }
    }

    /// Returns the distribution to which the MPI 5 standard ABI assigns `value`, or `None` if there is
    /// none.
    pub fn from_abi_value(value: i32) -> Option<Self> {
        [Self::None, Self::Block, Self::Cyclic].into_iter().find(|d| d.abi_value() == value)
    }
}

/// The value of a distribution argument that asks for the default (`MPI_DISTRIBUTE_DFLT_DARG`). The
/// standard ABI defines it as 19, so a call cannot ask for blocks of exactly 19 elements.
#[doc(alias = "MPI_DISTRIBUTE_DFLT_DARG")]
pub const DEFAULT_ARGUMENT: i32 = 19;

/// The arguments of a darray call; each list has one entry per dimension.
#[derive(Clone, Debug)]
pub(crate) struct Darray {
    pub(crate) size: i32,
    pub(crate) rank: i32,
    pub(crate) sizes: Box<[i64]>,
    pub(crate) distributions: Box<[Distribution]>,
    pub(crate) arguments: Box<[i32]>,
    pub(crate) processes: Box<[i32]>,
    pub(crate) order: Order,
    pub(crate) old: Datatype,
}

/// One process's share of one dimension. The share begins at index `first` of the dimension. It consists
/// of blocks of `block` elements; the first elements of consecutive blocks lie `every` elements apart.
struct Share {
    first: i64,
    block: i64,
    every: i64,
    /// `blocks` is the number of whole blocks; `rest` is the number of elements in the shorter block
    /// after them.
    blocks: i64,
    rest: i64,
}

impl Share {
    fn new(size: i64, distribution: Distribution, argument: i32, processes: i32, at: i32) -> Self {
        let (processes, at) = (i64::from(processes), i64::from(at));
        let default = argument == DEFAULT_ARGUMENT;
        let block = match distribution {
            _ if processes == 1 => size,
            Distribution::None => size,
            Distribution::Block if default => (size - 1) / processes + 1,
            Distribution::Cyclic if default => 1,
            Distribution::Block | Distribution::Cyclic => i64::from(argument),
        };
        // These two products may exceed `i64::MAX`. Saturation does no harm, because no index of the
        // dimension is that large: if `every` saturates, the share has no second block; if `first`
        // saturates, the share is empty.
        let every = block.saturating_mul(processes);
        let first = block.saturating_mul(at);
        if first >= size {
            return Self { first: 0, block, every, blocks: 0, rest: 0 };
        }
        let behind = size - first;
        let last = behind % every;
        Self {
            first,
            block,
            every,
            blocks: behind / every + i64::from(last >= block),
            rest: if last < block { last } else { 0 },
        }
    }

    /// Returns the number of elements of the share if the share is empty or one run of indices;
    /// otherwise returns `None`.
    fn run(&self) -> Option<i64> {
        match (self.blocks, self.rest) {
            (0, rest) => Some(rest),
            (1, 0) => Some(self.block),
            _ => None,
        }
    }
}

fn check_lengths(dimensions: usize, others: [(&'static str, usize); 3]) -> Result<()> {
    for (name, length) in others {
        if length != dimensions {
            return Err(Error::new(
                ErrorKind::Argument,
                name,
                format!(
                    "{}, but sizes has {}",
                    counted(length, "entry", "entries"),
                    counted(dimensions, "entry", "entries")
                ),
            ));
        }
    }
    Ok(())
}

/// Returns the coordinates of process `rank` in the process grid. The grid is always numbered in C
/// order, no matter which order the array has.
fn coordinates(rank: i32, processes: &[i32]) -> Vec<i32> {
    let mut rest = rank;
    let mut coordinates = vec![0; processes.len()];
    for (coordinate, &processes) in coordinates.iter_mut().zip(processes).rev() {
        (*coordinate, rest) = (rest % processes, rest / processes);
    }
    coordinates
}

impl Darray {
    fn check(&self) -> Result<()> {
        let dimensions = self.sizes.len();
        check_dimensions(&self.sizes)?;
        check_lengths(
            dimensions,
            [
                ("distributions", self.distributions.len()),
                ("arguments", self.arguments.len()),
                ("processes", self.processes.len()),
            ],
        )?;
        let fail = |name, detail: String| Err(Error::new(ErrorKind::Argument, name, detail));
        if self.size < 1 {
            return fail("size", format!("{} is less than 1", self.size));
        }
        if self.rank < 0 || self.rank >= self.size {
            let last = self.size - 1;
            return fail("rank", format!("{} is not between 0 and {last}", self.rank));
        }
        for d in 0..dimensions {
            let fail = |name, detail: String| fail(name, format!("dimension {d}: {detail}"));
            let (size, processes, argument) = (self.sizes[d], self.processes[d], self.arguments[d]);
            if size < 1 {
                return fail("sizes", format!("{size} is less than 1"));
            }
            if processes < 1 {
                return fail("processes", format!("{processes} is less than 1"));
            }
            match self.distributions[d] {
                Distribution::None if processes != 1 => {
                    return fail(
                        "processes",
                        format!("{processes}, but a dimension that is not distributed needs 1"),
                    );
                }
                Distribution::None => {}
                _ if argument < 1 => {
                    return fail("arguments", format!("{argument} is less than 1"));
                }
                Distribution::Block
                    if argument != DEFAULT_ARGUMENT
                        && i64::from(argument) * i64::from(processes) < size =>
                {
                    return fail(
                        "arguments",
                        format!(
                            "{} of {argument} cannot hold {}",
                            counted(processes, "block", "blocks"),
                            counted(size, "element", "elements")
                        ),
                    );
                }
                Distribution::Block | Distribution::Cyclic => {}
            }
        }
        let grid = self.processes.iter().try_fold(1i32, |grid, &p| grid.checked_mul(p));
        if grid != Some(self.size) {
            return fail(
                "processes",
                format!(
                    "the grid {:?} does not have {}",
                    self.processes,
                    counted(self.size, "process", "processes")
                ),
            );
        }
        Ok(())
    }

    /// Builds the tree of simpler constructor calls that has the same layout as this call.
    pub(super) fn layout(&self) -> Result<Datatype> {
        let (sizes, old) = (&self.sizes, &self.old);
        let too_large = || {
            Error::new(
                ErrorKind::Overflow,
                "sizes",
                format!(
                    "the size in bytes of an array of {sizes:?} elements with an extent of {} does \
                     not fit in a signed 64-bit integer",
                    counted(old.extent(), "byte", "bytes")
                ),
            )
        };
        let whole = elements(sizes)?.checked_mul(i128::from(old.extent()));
        let whole = whole.and_then(|w| i64::try_from(w).ok()).ok_or_else(too_large)?;
        let at = coordinates(self.rank, &self.processes);
        let shares: Vec<Share> = (0..sizes.len())
            .map(|d| {
                let (distribution, argument) = (self.distributions[d], self.arguments[d]);
                Share::new(sizes[d], distribution, argument, self.processes[d], at[d])
            })
            .collect();
        let runs: Option<Vec<i64>> = shares.iter().map(Share::run).collect();
        if shares.iter().any(|share| share.run() == Some(0)) {
            return Datatype::resized(0, whole, &Datatype::contiguous(0, old)?);
        }
        if let Some(runs) = runs {
            let starts: Vec<i64> = shares.iter().map(|share| share.first).collect();
            return Datatype::subarray(sizes, &runs, &starts, self.order, old);
        }
        let mut ty = old.clone();
        for d in slowest_first(sizes.len(), self.order).rev() {
            let (share, extent) = (&shares[d], ty.extent());
            // Each `index` below lies in the array or just past its end. So its byte offset fits in an
            // `i64`, because the size of the array does.
            let place = |index: i64| index.checked_mul(extent).ok_or_else(too_large);
            let (first, every) = (place(share.first)?, share.every.saturating_mul(extent));
            let blocks = Datatype::hvector(share.blocks, share.block, every, &ty)?;
            let part = if share.rest == 0 {
                Datatype::hindexed_block(1, &[first], &blocks)?
            } else {
                let behind = place(share.first + share.blocks * share.every)?;
                let rest = Datatype::contiguous(share.rest, &ty)?;
                Datatype::structured(&[1, 1], &[first, behind], &[blocks, rest])?
            };
            ty = Datatype::resized(0, place(sizes[d])?, &part)?;
        }
        Ok(ty)
    }
}

impl Datatype {
    /// Creates a type for one process's share of a distributed array (MPI-5.0 section 5.1.4). The
    /// array has `sizes[d]` elements of `old` in dimension `d`, and is distributed over a grid that has
    /// `processes[d]` processes in dimension `d`. The whole grid has `size` processes, and the share is
    /// that of process `rank`.
    ///
    /// `sizes`, `distributions`, `arguments` and `processes` have one entry per dimension; each entry
    /// of `arguments` is a number of elements or [`DEFAULT_ARGUMENT`]. The grid numbers its processes
    /// in C order (last dimension fastest), even if the array is in Fortran order. The new type's
    /// lower bound is 0 and its extent is that of the whole array. A share may be empty.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if there are no dimensions, if the slices have different lengths,
    /// if a size, a number of processes or a distribution argument that is not ignored is below 1, if
    /// `rank` is not between 0 and `size - 1`, if the grid does not have `size` processes, if a
    /// dimension that is not distributed has more than one process, or if the blocks of a
    /// [`Distribution::Block`] are too small to cover its dimension. Returns `ErrorKind::Type` if `old`
    /// is a bound marker of MPI-1. Returns `ErrorKind::Overflow` if there are more than `i32::MAX`
    /// dimensions, or if the number of elements of the array, or the size, the extent or a bound of the
    /// new type, does not fit in an `i64`.
    #[doc(alias = "MPI_Type_create_darray")]
    #[expect(clippy::too_many_arguments, reason = "the arguments of MPI_Type_create_darray")]
    pub fn darray(
        size: i32,
        rank: i32,
        sizes: &[i64],
        distributions: &[Distribution],
        arguments: &[i32],
        processes: &[i32],
        order: Order,
        old: &Datatype,
    ) -> Result<Self> {
        let darray = Darray {
            size,
            rank,
            sizes: sizes.into(),
            distributions: distributions.into(),
            arguments: arguments.into(),
            processes: processes.into(),
            order,
            old: old.clone(),
        };
        darray.check()?;
        let layout = darray.layout()?;
        Self::build(Constructor::Composite { call: Box::new(Call::Darray(darray)), layout })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indices(share: &Share) -> Vec<i64> {
        let block = |at, length| at..at + length;
        let mut all: Vec<i64> = (0..share.blocks)
            .flat_map(|i| block(share.first + i * share.every, share.block))
            .collect();
        all.extend(block(share.first + share.blocks * share.every, share.rest));
        all
    }

    #[test]
    fn shares_of_one_dimension_cover_it_in_turn() {
        for (size, argument, processes) in
            [(1, 1, 1), (10, 3, 2), (10, 3, 4), (12, 4, 3), (7, 9, 3)]
        {
            for at in 0..processes {
                let share = Share::new(size, Distribution::Cyclic, argument, processes, at);
                let (argument, processes) = (i64::from(argument), i64::from(processes));
                let owner = |i: i64| i / argument % processes;
                let expected: Vec<i64> = (0..size).filter(|&i| owner(i) == i64::from(at)).collect();
                assert_eq!(
                    indices(&share),
                    expected,
                    "{size} by {argument} over {processes}: {at}"
                );
            }
        }
    }

    #[test]
    fn the_largest_arguments_do_not_overflow() {
        let share = Share::new(i64::MAX, Distribution::Cyclic, i32::MAX, i32::MAX, i32::MAX - 1);
        assert!(share.blocks >= 1 && share.first < share.every);
        let share = Share::new(i64::MAX, Distribution::Block, DEFAULT_ARGUMENT, 1, 0);
        assert_eq!(share.run(), Some(i64::MAX));
        let share = Share::new(3, Distribution::Block, i32::MAX, 5, 4);
        assert_eq!(share.run(), Some(0));
    }

    #[test]
    fn processes_are_numbered_in_c_order() {
        assert_eq!(coordinates(5, &[2, 3]), [1, 2]);
        assert_eq!(coordinates(3, &[2, 3]), [1, 0]);
        assert_eq!(coordinates(7, &[2, 2, 2]), [1, 1, 1]);
    }
}
