//! Tests the places of ranks on machines of several packages, and how much closer neighbours come to each other.

use super::*;

/// Returns the CPU with this number in a machine whose packages each have `l3` level 3 caches. Each of these caches
/// serves `cores` cores.
fn cpu(number: usize, (l3, cores): (usize, usize)) -> Cpu {
    let index = |divisor: usize| Some((number / divisor) as u32);
    Cpu {
        number,
        core: index(1),
        l1: index(1),
        l2: index(1),
        l3: index(cores),
        numa: index(cores * l3),
        package: index(cores * l3),
    }
}

/// Checks that `places` has every rank of the grid once.
fn is_permutation(places: &[usize]) -> bool {
    let mut sorted = places.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..places.len())
}

fn costs(dims: &[usize], cpus: &[Cpu]) -> (u64, u64) {
    let grid = Grid::new(dims, &vec![false; dims.len()]).expect("a grid");
    let known: Vec<Option<Cpu>> = cpus.iter().copied().map(Some).collect();
    let places = placed(&grid, &known);
    assert!(is_permutation(&places), "{dims:?}: {places:?}");
    let unchanged: Vec<usize> = (0..grid.size()).collect();
    (cost(&grid, cpus, &unchanged), cost(&grid, cpus, &places))
}

#[test]
fn ranks_that_share_a_package_share_a_box() {
    // 4 x 4 places on 4 packages of 4 cores. In order, each package has a row: 12 of the 24 pairs of
    // neighbours are in different packages. In boxes of 2 x 2 there are only 8.
    let cpus: Vec<Cpu> = (0..16).map(|number| cpu(number, (1, 4))).collect();
    let (before, after) = costs(&[4, 4], &cpus);
    // Every pair counts twice. A pair in one package has distance 2, because it shares a level 3 cache.
    assert_eq!((before, after), (2 * (12 * 2 + 12 * 5), 2 * (16 * 2 + 8 * 5)));
    let grid = Grid::new(&[4, 4], &[false; 2]).expect("a grid");
    let known: Vec<Option<Cpu>> = cpus.iter().copied().map(Some).collect();
    let places = placed(&grid, &known);
    assert_eq!(places[..4], [0, 1, 4, 5]);
    assert_eq!(places[4..8], [2, 3, 6, 7]);
}

#[test]
fn ranks_that_alternate_between_packages_are_sorted() {
    // Rank 0 on package 0, rank 1 on package 1, rank 2 on package 0, …
    let cpus: Vec<Cpu> = (0..8).map(|rank| cpu(rank % 2 * 4 + rank / 2, (1, 4))).collect();
    let (before, after) = costs(&[8], &cpus);
    assert_eq!((before, after), (2 * 7 * 5, 2 * (6 * 2 + 5)));
}

#[test]
fn two_levels_are_boxes_in_boxes() {
    let cpus: Vec<Cpu> = (0..64).map(|number| cpu(number, (4, 4))).collect();
    let (before, after) = costs(&[8, 8], &cpus);
    assert!(after < before, "{before} {after}");
    let grid = Grid::new(&[8, 8], &[false; 2]).expect("a grid");
    let known: Vec<Option<Cpu>> = cpus.iter().copied().map(Some).collect();
    let places = placed(&grid, &known);
    let package = |row: usize, column: usize| cpus[places[row * 8 + column]].package;
    let cache = |row: usize, column: usize| cpus[places[row * 8 + column]].l3;
    for row in 0..8 {
        for column in 0..8 {
            assert_eq!(package(row, column), package(row / 4 * 4, column / 4 * 4));
            assert_eq!(cache(row, column), cache(row / 2 * 2, column / 2 * 2));
        }
    }
}

#[test]
fn nothing_changes_without_gain() {
    let cpus: Vec<Cpu> = (0..12).map(|number| cpu(number, (1, 4))).collect();
    for dims in [vec![12], vec![3, 4], vec![1, 12], vec![12, 1, 1], vec![5], vec![]] {
        let (before, after) = costs(&dims, &cpus);
        assert!(after <= before, "{dims:?}");
        let grid = Grid::new(&dims, &vec![true; dims.len()]).expect("a grid");
        let mut known: Vec<Option<Cpu>> = cpus.iter().copied().map(Some).collect();
        known[0] = None;
        let unchanged: Vec<usize> = (0..grid.size()).collect();
        assert_eq!(placed(&grid, &known), unchanged, "a rank is not bound");
    }
    // Packages with different numbers of ranks: no boxes, but still a permutation.
    let odd: Vec<Cpu> = [0, 5, 1, 6, 2, 9].map(|number| cpu(number, (1, 4))).into();
    let (before, after) = costs(&[2, 3], &odd);
    assert!(after <= before);
}

/// Checks that dimensions of extent 1 cost neither stack nor time. If the code recursed once for each dimension, this
/// test would overflow its stack.
#[test]
fn many_dimensions_of_extent_one() {
    let mut dims = vec![1; 20_000];
    (dims[7], dims[19_000]) = (4, 4);
    let known: Vec<Option<Cpu>> = (0..16).map(|number| Some(cpu(number, (1, 4)))).collect();
    let places = |dims: &[usize]| {
        placed(&Grid::new(dims, &vec![false; dims.len()]).expect("a grid"), &known)
    };
    assert_eq!(places(&dims), places(&[4, 4]));
    assert_ne!(places(&dims), (0..16).collect::<Vec<_>>());
}
