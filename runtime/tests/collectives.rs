//! Tests of collective calls and of grids. The tests compare the results with results that they compute
//! serially.

use crate::forbid::forbid;
use crate::job::{ranks, ranks_with};
use typepack::topo::Grid;
use typepack::{Communicator, Datatype, ErrorKind, Named, Op, Plan, commit, dims_create};
use typepack_test_support::random::Random;

fn collectives(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let dup = world.dup().unwrap();
    for _ in 0..50 {
        world.barrier().unwrap();
        dup.barrier().unwrap();
    }
    for root in 0..size {
        for len in [0usize, 1, 3, 900, 30_000] {
            let mut values = vec![if rank == root { root as u64 + 7 } else { 0 }; len];
            world.broadcast(&mut values, root).unwrap();
            assert!(values.iter().all(|&v| v == root as u64 + 7), "root {root}, {len} words");
        }
        // The layouts of the ranks differ, but their signatures are equal: a column at the root, and a row
        // at the other ranks.
        let double = Datatype::named(Named::F64);
        let column = commit(&Datatype::vector(50, 1, 4, &double).unwrap()).unwrap();
        let row = commit(&Datatype::contiguous(50, &double).unwrap()).unwrap();
        let mut matrix: Vec<f64> =
            (0..200).map(|i| if rank == root { f64::from(i) } else { -1.0 }).collect();
        world
            .broadcast_elements(&mut matrix, if rank == root { &column } else { &row }, 1, root)
            .unwrap();
        if rank != root {
            assert!((0..50).all(|i| matrix[i] == 4.0 * i as f64) && matrix[50] == -1.0);
        }
    }
    for len in [0usize, 1, 2, 1000, 20_000] {
        let part = |rank: usize| -> Vec<f64> {
            let mut random = Random(rank as u64 + 1);
            (0..len).map(|_| random.next() as f64 / 1e10 - 5e8).collect()
        };
        for op in [Op::Sum, Op::Min, Op::Max] {
            let mut values = part(rank);
            world.all_reduce_in_place(&mut values, op).unwrap();
            // Compare this rank's bits with those of rank 0: all ranks must get the same bits.
            let mut first = values.clone();
            world.broadcast(&mut first, 0).unwrap();
            assert!(first.iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits()));
            let all: Vec<Vec<f64>> = (0..size).map(part).collect();
            for (i, value) in values.iter().enumerate() {
                let parts = all.iter().map(|p| p[i]);
                match op {
                    Op::Min => assert_eq!(*value, parts.fold(f64::INFINITY, f64::min)),
                    Op::Max => assert_eq!(*value, parts.fold(f64::NEG_INFINITY, f64::max)),
                    _ => {
                        let sum: f64 = parts.sum();
                        assert!((sum - value).abs() <= 1e-6 * size as f64 * 5e8_f64.max(sum.abs()));
                    }
                }
            }
        }
        let mut values: Vec<i64> = (0..len as i64).map(|i| i * (rank as i64 + 1)).collect();
        world.all_reduce_in_place(&mut values, Op::Sum).unwrap();
        let ranks: i64 = (1..=size as i64).sum();
        assert!(values.iter().enumerate().all(|(i, &v)| v == i as i64 * ranks));
    }
    let error = world.broadcast(&mut [0u8], size).unwrap_err();
    assert_eq!((error.kind(), error.argument()), (ErrorKind::Root, "root"));
}

#[test]
fn collectives_of_one() {
    ranks(1, "collectives_of_one", collectives);
}

#[test]
fn collectives_of_two() {
    ranks(2, "collectives_of_two", collectives);
}

#[test]
fn collectives_of_three() {
    ranks(3, "collectives_of_three", collectives);
}

#[test]
fn collectives_of_four_through_the_pipeline() {
    let env = [("TYPEPACK_TRANSPORT", "pipeline")];
    ranks_with(4, "collectives_of_four_through_the_pipeline", &env, collectives);
}

#[test]
fn collectives_of_seven() {
    ranks(7, "collectives_of_seven", collectives);
}

/// Compares reductions of values, by operators and by closures, with plain computations.
fn reductions_of_values(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    // Returns the values of a rank. A value [a, b] stands for the function x -> a x + b. The reductions compose these
    // functions, and the composition does not commute.
    let part = |rank: usize| -> Vec<[u32; 2]> {
        (0..3 * size as u32).map(|i| [2 * i + rank as u32 + 1, i + 100 * rank as u32]).collect()
    };
    let compose = |[a, b]: [u32; 2], [c, d]: [u32; 2]| -> [u32; 2] {
        [c.wrapping_mul(a), c.wrapping_mul(b).wrapping_add(d)]
    };
    let of_ranks = |first: usize, last: usize| -> Vec<[u32; 2]> {
        (first + 1..=last).fold(part(first), |lower, rank| {
            lower.iter().zip(part(rank)).map(|(a, b)| compose(*a, b)).collect()
        })
    };
    let (mine, fresh) = (part(rank), vec![[7u32; 2]; 3 * size]);
    let mut got = fresh.clone();
    world.all_reduce(&mine, &mut got, compose).unwrap();
    assert_eq!(got, of_ranks(0, size - 1));
    got.copy_from_slice(&mine);
    world.all_reduce_in_place(&mut got, compose).unwrap();
    assert_eq!(got, of_ranks(0, size - 1));
    for root in 0..size {
        got.copy_from_slice(&fresh);
        world.reduce(&mine, &mut got, compose, root).unwrap();
        assert_eq!(got, if rank == root { of_ranks(0, size - 1) } else { fresh.clone() });
    }
    world.scan(&mine, &mut got, compose).unwrap();
    assert_eq!(got, of_ranks(0, rank));
    got.copy_from_slice(&fresh);
    world.exscan(&mine, &mut got, compose).unwrap();
    assert_eq!(got, if rank == 0 { fresh } else { of_ranks(0, rank - 1) });
    // Rank `i` gets `i % 3` values, and the last rank also gets the rest.
    let mut counts: Vec<usize> = (0..size).map(|rank| rank % 3).collect();
    counts[size - 1] += 3 * size - counts.iter().sum::<usize>();
    let first: usize = counts[..rank].iter().sum();
    let mut block = vec![[9u32; 2]; counts[rank]];
    world.reduce_scatter(&mine, &mut block, &counts, compose).unwrap();
    assert_eq!(block, of_ranks(0, size - 1)[first..][..counts[rank]]);

    // Make the same reductions by nonblocking calls that are all under way at the same time.
    let [mut all, mut rooted, mut upto, mut before] = [(); 4].map(|()| vec![[0u32; 2]; 3 * size]);
    let mut divided = vec![[0u32; 2]; counts[rank]];
    let mut sums = [rank as u8 + 1; 5];
    world
        .scope(|scope| -> typepack::Result<()> {
            scope.iall_reduce(&mine, &mut all, compose)?;
            scope.ireduce(&mine, &mut rooted, compose, size - 1)?;
            scope.iscan(&mine, &mut upto, compose)?;
            scope.iexscan(&mine, &mut before, compose)?;
            scope.ireduce_scatter(&mine, &mut divided, &counts, compose)?;
            scope.iall_reduce_in_place(&mut sums, Op::Prod)?;
            Ok(())
        })
        .unwrap()
        .unwrap();
    let everything = of_ranks(0, size - 1);
    assert_eq!((&all, &upto, &divided), (&everything, &of_ranks(0, rank), &block));
    assert!(rank != size - 1 || rooted == everything);
    assert!(rank == 0 || before == of_ranks(0, rank - 1));
    assert_eq!(sums, [(1..=size).fold(1u8, |product, rank| product.wrapping_mul(rank as u8)); 5]);

    // Wrong arguments are refused on every rank, and the next call still matches.
    let short = world.all_reduce(&mine, &mut got[1..], compose).unwrap_err();
    assert_eq!((short.kind(), short.argument()), (ErrorKind::Buffer, "recv"));
    let wrong = world.scan(&[1.0f64], &mut [0.0], Op::Band).unwrap_err();
    assert_eq!((wrong.kind(), wrong.argument()), (ErrorKind::Argument, "op"));
    let counts = vec![1; size + 1];
    let wrong = world.reduce_scatter(&mine, &mut block, &counts, compose).unwrap_err();
    assert_eq!((wrong.kind(), wrong.argument()), (ErrorKind::Argument, "counts"));
    let mut bits = [1i128 << rank];
    world.all_reduce_in_place(&mut bits, Op::Bor).unwrap();
    assert_eq!(bits, [(1 << size) - 1]);
}

#[test]
fn reductions_of_values_of_one() {
    ranks(1, "reductions_of_values_of_one", reductions_of_values);
}

#[test]
fn reductions_of_values_of_two() {
    ranks(2, "reductions_of_values_of_two", reductions_of_values);
}

#[test]
fn reductions_of_values_of_five() {
    ranks(5, "reductions_of_values_of_five", reductions_of_values);
}

#[test]
fn messages_of_communicators_never_mix() {
    ranks(3, "messages_of_communicators_never_mix", |world| {
        let byte = commit(&Datatype::named(Named::U8)).unwrap();
        let (rank, size) = (world.rank(), world.size());
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let comms: Vec<Communicator> = (0..5).map(|_| world.dup().unwrap()).collect();
        // While this barrier runs in `world`, a user message is pending in each of the duplicates. The barrier
        // must receive none of these messages.
        while_sent(&comms, 0, &byte, right, &mut || {
            world.barrier().unwrap();
            for (n, comm) in comms.iter().enumerate().rev() {
                let mut got = [99u8];
                comm.recv_elements(&mut got, &byte, 1, left, 0).unwrap();
                assert_eq!(got, [n as u8]);
            }
        });
        // Two threads duplicate communicators at the same time. All duplicates must have different
        // numbers.
        let (first, second) = std::thread::scope(|threads| {
            let other = comms[1].clone();
            let second =
                threads.spawn(move || (0..20).map(|_| other.dup().unwrap()).collect::<Vec<_>>());
            let first: Vec<_> = (0..20).map(|_| comms[0].dup().unwrap()).collect();
            (first, second.join().unwrap())
        });
        while_sent(&first, 0, &byte, right, &mut || {
            while_sent(&second, 100, &byte, right, &mut || {
                for (n, (a, b)) in first.iter().zip(&second).enumerate() {
                    let mut got = [0u8];
                    b.recv_elements(&mut got, &byte, 1, left, 0).unwrap();
                    assert_eq!(got, [100 + n as u8]);
                    a.recv_elements(&mut got, &byte, 1, left, 0).unwrap();
                    assert_eq!(got, [n as u8]);
                }
            });
        });
    });
}

/// Calls `then` while a message of one byte is on its way in each of the communicators. The byte is `first` in
/// the first communicator, and one more in each of the next. The sends are nonblocking, because some transports
/// complete a send only when its receive is posted.
fn while_sent(comms: &[Communicator], first: u8, byte: &Plan, to: usize, then: &mut dyn FnMut()) {
    let Some((comm, rest)) = comms.split_first() else { return then() };
    let value = [first];
    comm.scope(|scope| {
        scope.isend_elements(&value, byte, 1, to, 0).unwrap();
        while_sent(rest, first + 1, byte, to, then);
    })
    .unwrap();
}

#[test]
fn grids_know_their_neighbours() {
    ranks(4, "grids_know_their_neighbours", |world| {
        let rank = world.rank();
        for dims in [vec![4], vec![2, 2], vec![1, 4], vec![2, 1, 2], vec![4, 1, 1], vec![1, 1, 4]] {
            for bits in 0..1 << dims.len() {
                let periodic: Vec<bool> = (0..dims.len()).map(|d| bits >> d & 1 == 1).collect();
                let grid = world.cartesian(&dims, &periodic).unwrap();
                assert_eq!(grid.coords_of(rank).unwrap(), grid.coords());
                let here: Vec<i64> = grid.coords().iter().map(|&c| c as i64).collect();
                assert_eq!(grid.rank_of(&here), Some(rank));
                for d in 0..dims.len() {
                    for step in [-5i64, -2, -1, 0, 1, 2, 3] {
                        let (source, dest) = grid.shift(d, step).unwrap();
                        let at = |step: i64| {
                            let mut coords = here.clone();
                            coords[d] += step;
                            let inside = (0..dims[d] as i64).contains(&coords[d]);
                            coords[d] = coords[d].rem_euclid(dims[d] as i64);
                            let rank =
                                coords.iter().zip(&dims).fold(0, |r, (&c, &n)| r * n + c as usize);
                            (inside || periodic[d]).then_some(rank)
                        };
                        assert_eq!((source, dest), (at(-step), at(step)));
                    }
                    // In a periodic dimension of one or two ranks, both neighbours are the same rank, so
                    // only the tag can distinguish the two directions.
                    let (down, up) = grid.shift(d, 1).unwrap();
                    if let (Some(down), Some(up), true) = (down, up, periodic[d]) {
                        let word = commit(&Datatype::named(Named::U64)).unwrap();
                        let sent = [rank as u64 * 10, rank as u64 * 10 + 1];
                        let (mut low, mut high) = ([0u64], [0u64]);
                        grid.comm()
                            .scope(|scope| {
                                scope.irecv_elements(&mut low, &word, 1, down, 0).unwrap();
                                scope.irecv_elements(&mut high, &word, 1, up, 1).unwrap();
                                scope.isend_elements(&sent[..1], &word, 1, up, 0).unwrap();
                                scope.isend_elements(&sent[1..], &word, 1, down, 1).unwrap();
                            })
                            .unwrap();
                        assert_eq!((low[0], high[0]), (down as u64 * 10, up as u64 * 10 + 1));
                    }
                }
            }
        }
        assert_eq!(world.cartesian(&[3], &[true]).unwrap_err().argument(), "dims");
        assert_eq!(world.cartesian(&[0, 4], &[true; 2]).unwrap_err().kind(), ErrorKind::Dims);
        assert_eq!(world.cartesian(&[4], &[]).unwrap_err().argument(), "periodic");
        let mut dims = [0; 3];
        dims_create(world.size(), &mut dims).unwrap();
        assert_eq!(dims, [2, 2, 1]);
        let grid = world.cartesian(&dims, &[true; 3]).unwrap();
        assert!(grid.shift(3, 1).is_err() && grid.coords_of(4).is_err());
        assert_eq!(grid.rank_of(&[0, 0]), None);
    });
}

#[test]
fn grids_may_be_smaller_than_the_communicator() {
    ranks(5, "grids_may_be_smaller_than_the_communicator", |world| {
        let rank = world.rank();
        for (dims, reorder) in
            [(vec![2, 2], false), (vec![2, 2], true), (vec![], false), (vec![5], true)]
        {
            let shape = Grid::new(&dims, &vec![true; dims.len()]).unwrap();
            let made = world.cartesian_within(&shape, reorder).unwrap();
            assert_eq!(made.is_some(), world.cart_map(&shape).unwrap().is_some());
            if !reorder {
                assert_eq!(made.is_some(), rank < shape.size());
            }
            let Some(grid) = made else { continue };
            assert_eq!((grid.size(), grid.dims()), (shape.size(), &dims[..]));
            assert_eq!(grid.coords(), shape.coords_of(grid.rank()).unwrap());
            // The sum of the ranks of a slice that has one dimension.
            if dims.len() == 2 {
                let row = grid.slice(&[false, true]).unwrap();
                assert_eq!((row.dims(), row.coords()), (&[2][..], &grid.coords()[1..]));
                let mut sum = [grid.rank() as i64];
                row.all_reduce_in_place(&mut sum, Op::Sum).unwrap();
                assert_eq!(sum[0], 4 * grid.coords()[0] as i64 + 1);
            }
            let dup = grid.dup().unwrap();
            assert_eq!(dup.topology().and_then(|topology| topology.grid()), Some(&shape));
        }
        assert!(world.topology().is_none() && world.cart_sub(&[]).is_err());
        let large = Grid::new(&[6], &[false]).unwrap();
        assert_eq!(world.cartesian_within(&large, false).unwrap_err().kind(), ErrorKind::Dims);
    });
}

/// Checks that collective calls end with an error if no rank can make its first contact with another rank. In
/// that case no rank can send its data, or even a void message, which would tell the receiver that no data
/// will come. Both ranks must get an error from their failed sends instead of waiting for each other's
/// messages.
#[test]
fn collective_calls_without_memory_for_a_first_contact_end() {
    const NAME: &str = "collective_calls_without_memory_for_a_first_contact_end";
    ranks(2, NAME, |world| {
        forbid(libc::SYS_fallocate, libc::ENOSPC);
        let error = world.barrier().expect_err("no memory");
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
        let error = world.all_reduce_in_place(&mut [1i64], Op::Sum).expect_err("no memory");
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
        let waited = world.scope(|scope| scope.ibarrier().and_then(|request| scope.wait(request)));
        let error = waited.and_then(|inner| inner).expect_err("no memory");
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
    });
}
