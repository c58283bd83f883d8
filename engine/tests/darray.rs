//! Compares distributed arrays with a naive computation of the owner of each element. Checks that each
//! element belongs to exactly one rank, that every rank has its elements in storage order, and that
//! the bounds are those of the whole array.

use typepack_engine::Distribution::{Block, Cyclic, None};
use typepack_engine::{
    DEFAULT_ARGUMENT, Datatype, Distribution, Named, Order, pack_range, typemap,
};

/// One dimension: its number of elements, distribution, distribution argument, and number of
/// processes.
type Dimension = (i64, Distribution, i32, i32);

/// Returns the process that owns element `i` of a dimension. The function uses only the definition of
/// the distribution.
fn owner(i: i64, (size, distribution, argument, processes): Dimension) -> i64 {
    let processes = i64::from(processes);
    match distribution {
        None => 0,
        Block if argument == DEFAULT_ARGUMENT => {
            // The default block length is the smallest one for which `processes` blocks cover the
            // dimension.
            let block = (1..).find(|block| block * processes >= size).unwrap();
            i / block
        }
        Block => i / i64::from(argument),
        Cyclic if argument == DEFAULT_ARGUMENT => i % processes,
        Cyclic => i / i64::from(argument) % processes,
    }
}

fn darray(dimensions: &[Dimension], rank: i32, order: Order, old: &Datatype) -> Datatype {
    let sizes: Vec<i64> = dimensions.iter().map(|d| d.0).collect();
    let distributions: Vec<Distribution> = dimensions.iter().map(|d| d.1).collect();
    let arguments: Vec<i32> = dimensions.iter().map(|d| d.2).collect();
    let processes: Vec<i32> = dimensions.iter().map(|d| d.3).collect();
    let all = processes.iter().product();
    Datatype::darray(all, rank, &sizes, &distributions, &arguments, &processes, order, old).unwrap()
}

/// Returns the ranks of the owners of all elements, in storage order. The processes of the grid are
/// numbered in C order.
fn owners(dimensions: &[Dimension], order: Order) -> Vec<i64> {
    let total: i64 = dimensions.iter().map(|d| d.0).product();
    let mut owners = Vec::new();
    for n in 0..total {
        let (mut rest, mut index) = (n, vec![0; dimensions.len()]);
        let mut take = |d: usize| {
            index[d] = rest % dimensions[d].0;
            rest /= dimensions[d].0;
        };
        match order {
            Order::Fortran => (0..dimensions.len()).for_each(&mut take),
            Order::C => (0..dimensions.len()).rev().for_each(&mut take),
        }
        owners.push(
            dimensions
                .iter()
                .zip(&index)
                .fold(0, |rank, (d, &i)| rank * i64::from(d.3) + owner(i, *d)),
        );
    }
    owners
}

/// Checks the distributed arrays of all ranks of one process grid.
fn check(dimensions: &[Dimension], order: Order) {
    let old = Datatype::named(Named::INT);
    let owners = owners(dimensions, order);
    let memory: Vec<u8> = (0..4 * owners.len()).map(|i| (i * 7 % 251) as u8).collect();
    let mut seen = 0;
    for rank in 0..dimensions.iter().map(|d| d.3).product() {
        let ty = darray(dimensions, rank, order, &old);
        let expected: Vec<i64> =
            (0..owners.len() as i64).filter(|&i| owners[i as usize] == i64::from(rank)).collect();
        let places: Vec<i64> = typemap::typemap(&ty).iter().map(|e| e.offset / 4).collect();
        let what = format!("{dimensions:?} {order:?} rank {rank}");
        assert_eq!(places, expected, "{what}");
        assert_eq!((ty.lb(), ty.extent()), (0, 4 * owners.len() as i64), "{what}");
        assert_eq!((ty.size(), ty.elements()), (4 * places.len() as i64, places.len() as i64));
        let low = expected.first().map_or(0, |i| 4 * i);
        let high = expected.last().map_or(0, |i| 4 * i + 4);
        assert_eq!((ty.true_lb(), ty.true_ub()), (low, high), "{what}");

        let plan = ty.commit().unwrap();
        let mut packed = vec![0; 4 * places.len()];
        let range = 0..packed.len() as u64;
        pack_range(&plan, 1, &memory, 0, range, &mut packed).unwrap();
        assert_eq!(packed, typemap::pack(&ty, 1, &memory, 0), "{what}");
        seen += places.len();
    }
    assert_eq!(seen, owners.len(), "{dimensions:?}: an element was never seen or seen twice");
}

/// Returns dimensions of `size` elements and `processes` processes: one for each distribution and each
/// of several distribution arguments that are valid for it.
fn ways(size: i64, processes: i32) -> Vec<Dimension> {
    let mut ways = vec![];
    if processes == 1 {
        ways.push((size, None, -5, 1));
    }
    for argument in [1, 2, 3, 7, DEFAULT_ARGUMENT] {
        ways.push((size, Cyclic, argument, processes));
        if argument == DEFAULT_ARGUMENT || i64::from(argument * processes) >= size {
            ways.push((size, Block, argument, processes));
        }
    }
    ways
}

#[test]
fn one_dimension_of_every_kind() {
    for size in 1..=13 {
        for processes in 1..=5 {
            for way in ways(size, processes) {
                check(&[way], Order::C);
                check(&[way], Order::Fortran);
            }
        }
    }
}

#[test]
fn two_dimensions_of_every_pair_of_kinds() {
    for (a, p) in [(1, 1), (5, 2), (6, 3)] {
        for (b, q) in [(4, 1), (7, 2), (3, 4)] {
            for first in ways(a, p) {
                for second in ways(b, q) {
                    check(&[first, second], Order::C);
                    check(&[first, second], Order::Fortran);
                }
            }
        }
    }
}

#[test]
fn three_and_four_dimensions() {
    let default = DEFAULT_ARGUMENT;
    for order in [Order::C, Order::Fortran] {
        check(&[(5, Block, default, 2), (7, Cyclic, 2, 3), (4, None, default, 1)], order);
        check(&[(3, Cyclic, default, 2), (8, Cyclic, 3, 2), (5, Block, 2, 3)], order);
        check(&[(2, Block, 1, 2), (3, Cyclic, 2, 2), (1, Block, 4, 2), (4, None, 1, 1)], order);
    }
}

/// Checks the example of MPI-5.0 section 5.1.4. It is the HPF distribution `REAL FILEARRAY(100, 200,
/// 300)`, `PROCESSORS PROCESSES(2, 3)`, `DISTRIBUTE FILEARRAY(CYCLIC(10), *, BLOCK) ONTO PROCESSES`,
/// with the process grid (2, 1, 3).
#[test]
fn the_standards_example() {
    let real = Datatype::named(Named::FLOAT);
    let shape = [(100, Cyclic, 10, 2), (200, None, 0, 1), (300, Block, DEFAULT_ARGUMENT, 3)];
    for rank in 0..6 {
        let ty = darray(&shape, rank, Order::Fortran, &real);
        assert_eq!(ty.size(), 4 * 50 * 200 * 100);
        assert_eq!((ty.lb(), ty.extent()), (0, 4 * 100 * 200 * 300));
        let first = 10 * i64::from(rank / 3) + i64::from(rank % 3) * 100 * 100 * 200;
        assert_eq!(ty.true_lb(), 4 * first);
    }
}

#[test]
fn a_share_of_gapped_elements_with_a_lower_bound() {
    let marked = Datatype::resized(-4, 12, &Datatype::named(Named::SHORT_INT)).unwrap();
    for (rank, places) in [(0, [0, 2, 4]), (1, [1, 3, 5])] {
        let ty = darray(&[(6, Cyclic, 1, 2)], rank, Order::C, &marked);
        let offsets: Vec<i64> = typemap::typemap(&ty).iter().map(|e| e.offset).collect();
        let expected: Vec<i64> = places.iter().flat_map(|i| [12 * i, 12 * i + 4]).collect();
        assert_eq!((offsets, ty.lb(), ty.extent()), (expected, 0, 72));
        assert_eq!(ty.commit().unwrap().packed_bytes(1).unwrap(), 18);
    }
}

#[test]
fn a_share_of_a_huge_array_is_a_handful_of_nodes() {
    let byte = Datatype::named(Named::BYTE);
    let shape = [(1 << 30, Cyclic, 3, 1000), (1 << 30, Cyclic, 5, 1000)];
    let ty = darray(&shape, 999_999, Order::C, &byte);
    assert_eq!(ty.extent(), 1 << 60);
    assert!(ty.commit().unwrap().program().nodes().len() < 30);
}

#[test]
fn whole_blocks_are_subarrays() {
    // A block-distributed array has the same layout as a subarray, so both types must have the same
    // program.
    let double = Datatype::named(Named::DOUBLE);
    let block = DEFAULT_ARGUMENT;
    let ty = darray(&[(8, Block, block, 2), (6, Block, block, 3)], 4, Order::C, &double);
    let sub = Datatype::subarray(&[8, 6], &[4, 2], &[4, 2], Order::C, &double).unwrap();
    let text = |ty: &Datatype| ty.commit().unwrap().program().to_string();
    assert_eq!(text(&ty), text(&sub));
}
