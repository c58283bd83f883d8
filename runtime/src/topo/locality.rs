//! Places the ranks of a grid so that neighbours share as much of the machine as possible.
//!
//! `MPI_Cart_create` and `MPI_Cart_map` use this file if the program allows that ranks get new numbers. The
//! result depends only on the grid and on the table of CPUs in the job's shared memory, which no rank changes.
//! So all ranks find the same places without communication.
//!
//! The ranks that share a package get a box of the grid, the ranks that share a NUMA node get a box in this
//! box, and so on down to cores. If the parts of one kind (such as the packages) do not have equal numbers of
//! ranks, or if the grid cannot be divided into boxes of that number of places, this kind of part is left out.
//! At the end, the new places are compared with the old ones. They are used only if the total distance between
//! neighbours becomes smaller.

use super::Grid;
use crate::placement::{Cpu, Resource};

/// Returns the rank at each place of the grid. `cpus` has one entry per rank: its CPU, or `None` if the CPU is not
/// known. There are at least as many ranks as places. A rank whose number is not below the size of the grid gets no
/// place.
pub fn placed(grid: &Grid, cpus: &[Option<Cpu>]) -> Vec<usize> {
    let unchanged: Vec<usize> = (0..grid.size()).collect();
    let Some(cpus) = cpus[..grid.size()].iter().copied().collect::<Option<Vec<Cpu>>>() else {
        return unchanged;
    };
    // A grid may have any number of dimensions of extent 1. Without these dimensions, the places have the same numbers.
    let (dims, periodic): (Vec<usize>, Vec<bool>) =
        grid.dims().iter().zip(grid.periodic()).filter(|(dim, _)| **dim > 1).unzip();
    let Ok(grid) = &Grid::new(&dims, &periodic) else { return unchanged };
    let mut ranks = unchanged.clone();
    let path = |cpu: &Cpu| LEVELS.map(|kind| cpu.part(kind));
    ranks.sort_by_key(|&rank| (path(&cpus[rank]), rank));
    let whole = Tile { start: vec![0; grid.dims().len()], extent: grid.dims().to_vec() };
    let mut places = unchanged.clone();
    let mut work = Work { grid, cpus: &cpus, places: &mut places };
    work.place(&whole, &ranks, 0);
    if cost(grid, &cpus, &places) < cost(grid, &cpus, &unchanged) { places } else { unchanged }
}

/// The kinds of parts of the machine by which ranks are divided, from the largest kind to the smallest.
const LEVELS: [Resource; 5] =
    [Resource::Package, Resource::Numa, Resource::L3, Resource::L2, Resource::Core];

/// A box of places in the grid.
struct Tile {
    start: Vec<usize>,
    extent: Vec<usize>,
}

impl Tile {
    /// Calls `each` with the coordinates of every place, in row-major order.
    fn places(&self, mut each: impl FnMut(&[usize])) {
        let mut at = self.start.clone();
        loop {
            each(&at);
            let next = (0..at.len()).rev().find(|&d| at[d] + 1 < self.start[d] + self.extent[d]);
            let Some(next) = next else { return };
            at[next] += 1;
            at[next + 1..].copy_from_slice(&self.start[next + 1..]);
        }
    }
}

struct Work<'a> {
    grid: &'a Grid,
    cpus: &'a [Cpu],
    places: &'a mut [usize],
}

impl Work<'_> {
    /// Gives `ranks`, which are sorted by parts of the machine, the places of `tile`. `level` is the index in
    /// [`LEVELS`] of the largest kind of part by which the ranks are still to be divided.
    fn place(&mut self, tile: &Tile, ranks: &[usize], level: usize) {
        let Some(&kind) = LEVELS.get(level) else { return self.in_order(tile, ranks) };
        let cpus = self.cpus;
        let same = |a: &usize, b: &usize| cpus[*a].part(kind) == cpus[*b].part(kind);
        let groups: Vec<&[usize]> = ranks.chunk_by(same).collect();
        if groups.len() == 1 {
            return self.place(tile, ranks, level + 1);
        }
        let equal = groups.iter().all(|group| group.len() == groups[0].len());
        let Some(shape) = equal.then(|| self.shape(tile, groups[0].len())).flatten() else {
            return self.place(tile, ranks, level + 1);
        };
        let tiles = Tile {
            start: vec![0; shape.len()],
            extent: tile.extent.iter().zip(&shape).map(|(all, one)| all / one).collect(),
        };
        let mut groups = groups.into_iter();
        tiles.places(|number| {
            let start = number.iter().zip(&shape).zip(&tile.start);
            let start = start.map(|((number, one), start)| start + number * one).collect();
            let part = Tile { start, extent: shape.clone() };
            if let Some(group) = groups.next() {
                self.place(&part, group, level + 1);
            }
        });
    }

    fn in_order(&mut self, tile: &Tile, ranks: &[usize]) {
        let (mut ranks, dims) = (ranks.iter(), self.grid.dims());
        let places = &mut *self.places;
        tile.places(|at| {
            let place = at.iter().zip(dims).fold(0, |place, (at, dim)| place * dim + at);
            if let Some(&rank) = ranks.next() {
                places[place] = rank;
            }
        });
    }

    /// Returns the extents of a box of `places` places such that `tile` consists of whole boxes of this shape. If
    /// there are several such shapes, returns one for which the fewest pairs of neighbours lie in different boxes.
    /// Returns `None` if there is no such shape.
    fn shape(&self, tile: &Tile, places: usize) -> Option<Vec<usize>> {
        let all: usize = tile.extent.iter().product();
        let mut best = None;
        each_shape(&tile.extent, places, &mut |shape| {
            let cut = |d: usize| {
                let (extent, boxes) = (tile.extent[d], tile.extent[d] / shape[d]);
                // In a periodic dimension, the last box is also a neighbour of the first one.
                let closed = self.grid.periodic()[d] && extent == self.grid.dims()[d] && boxes > 1;
                (boxes - 1 + usize::from(closed)) * (all / extent)
            };
            let cuts: usize = (0..shape.len()).map(cut).sum();
            if best.as_ref().is_none_or(|(least, _)| cuts < *least) {
                best = Some((cuts, shape.to_vec()));
            }
        });
        best.map(|(_, shape)| shape)
    }
}

/// Calls `each` with every list of extents whose product is `places` and which divide the entries of `extent`.
fn each_shape(extent: &[usize], places: usize, each: &mut dyn FnMut(&[usize])) {
    // The recursion skips dimensions of extent 1. So its depth is at most the binary logarithm of the number of ranks
    // in the grid.
    let open: Vec<usize> = (0..extent.len()).filter(|&d| extent[d] > 1).collect();
    let mut shape = vec![1; extent.len()];
    choose(extent, &open, places, &mut shape, each);
}

/// Chooses the entries `open` of `shape`, such that the product of these entries is `places`. The other entries are
/// chosen already.
fn choose(
    extent: &[usize],
    open: &[usize],
    places: usize,
    shape: &mut [usize],
    each: &mut dyn FnMut(&[usize]),
) {
    let Some((&d, open)) = open.split_first() else {
        if places == 1 {
            each(shape);
        }
        return;
    };
    for one in 1..=extent[d].min(places) {
        if extent[d].is_multiple_of(one) && places.is_multiple_of(one) {
            shape[d] = one;
            choose(extent, open, places / one, shape, each);
        }
    }
}

/// Returns the sum of the distances between all neighbours in the grid, where `places` has the rank at each
/// place.
fn cost(grid: &Grid, cpus: &[Cpu], places: &[usize]) -> u64 {
    // The distances are numbered from the nearest to the farthest.
    let distance = |a: &Cpu, b: &Cpu| a.distance(b) as u64;
    let of = |place: usize| {
        let neighbors = grid.neighbors(place).ok();
        let neighbors = neighbors.iter().flat_map(|neighbors| neighbors.destinations());
        let cpu = |place: usize| &cpus[places[place]];
        neighbors.flatten().map(|&other| distance(cpu(place), cpu(other))).sum::<u64>()
    };
    (0..grid.size()).map(of).sum()
}

#[cfg(test)]
mod tests;
