//! Compares the geometry of grids with an oracle that lists all coordinates in row-major order.

use super::*;

/// Returns the coordinates of all ranks, in the order of the ranks.
fn all(dims: &[usize]) -> Vec<Vec<usize>> {
    dims.iter().fold(vec![vec![]], |before, &dim| {
        let longer = |coords: &Vec<usize>| {
            let coords = coords.clone();
            (0..dim).map(move |last| [coords.clone(), vec![last]].concat())
        };
        before.iter().flat_map(longer).collect()
    })
}

/// Returns the rank at `coords` by a search in the list of all coordinates.
fn found(dims: &[usize], periodic: &[bool], coords: &[i64]) -> Option<usize> {
    let wrapped: Option<Vec<usize>> = coords
        .iter()
        .zip(dims)
        .zip(periodic)
        .map(|((&coord, &dim), &wraps)| {
            let mut coord = coord;
            while wraps && coord < 0 {
                coord += dim as i64;
            }
            while wraps && coord >= dim as i64 {
                coord -= dim as i64;
            }
            usize::try_from(coord).ok()
        })
        .collect();
    let wrapped = wrapped?;
    all(dims).iter().position(|coords| *coords == wrapped)
}

fn grids() -> impl Iterator<Item = (Vec<usize>, Vec<bool>)> {
    let dims = [
        vec![],
        vec![1],
        vec![2],
        vec![5],
        vec![1, 1],
        vec![2, 1],
        vec![2, 3],
        vec![3, 2, 2],
        vec![1, 2, 1, 3],
    ];
    dims.into_iter().flat_map(|dims| {
        (0..1usize << dims.len())
            .map(move |bits| (dims.clone(), (0..dims.len()).map(|d| bits >> d & 1 == 1).collect()))
    })
}

#[test]
fn coordinates_ranks_and_shifts_are_those_of_the_oracle() {
    for (dims, periodic) in grids() {
        let grid = Grid::new(&dims, &periodic).expect("a grid");
        let every = all(&dims);
        assert_eq!(grid.size(), every.len());
        for (rank, coords) in every.iter().enumerate() {
            assert_eq!(grid.coords_of(rank).as_ref(), Ok(coords));
            let here: Vec<i64> = coords.iter().map(|&c| c as i64).collect();
            assert_eq!(grid.rank_of(&here), Some(rank));
            for dim in 0..dims.len() {
                for step in -7..=7 {
                    let at = |step: i64| {
                        let mut coords = here.clone();
                        coords[dim] += step;
                        (found(&dims, &periodic, &coords), grid.rank_of(&coords))
                    };
                    let ((source, asked), (dest, _)) = (at(-step), at(step));
                    assert_eq!(asked, source, "{dims:?} {periodic:?} {rank} {dim} {step}");
                    let shift = grid.shift(rank, dim, step).expect("a shift");
                    assert_eq!(shift, (source, dest), "{dims:?} {periodic:?} {rank} {dim} {step}");
                }
            }
        }
        let error = grid.coords_of(every.len()).expect_err("no rank");
        assert_eq!(error.kind(), ErrorKind::Rank);
        assert_eq!(grid.shift(0, dims.len(), 1).expect_err("no dim").kind(), ErrorKind::Dims);
    }
}

#[test]
fn steps_of_any_length_are_exact() {
    let grid = Grid::new(&[3, 2], &[true, false]).expect("a grid");
    // Both 2^63 - 1 and -2^63 are 1 more than a multiple of 3.
    assert_eq!(grid.shift(0, 0, i64::MAX), Ok((Some(4), Some(2))));
    assert_eq!(grid.shift(0, 0, i64::MIN), Ok((Some(4), Some(2))));
    assert_eq!(grid.shift(0, 1, i64::MIN), Ok((None, None)));
}

/// Every message of an exchange must match the receive on the opposite side. The test plays the exchange:
/// each rank sends the name of itself and of the side to its destinations, in order, and receives in the
/// order of `receive_order`.
#[test]
fn messages_between_neighbours_match_by_side() {
    for (dims, periodic) in grids() {
        let grid = Grid::new(&dims, &periodic).expect("a grid");
        let of = |rank| grid.neighbors(rank).expect("a rank");
        let mut queues = std::collections::HashMap::<_, std::collections::VecDeque<_>>::new();
        for rank in 0..grid.size() {
            for (side, to) in of(rank).destinations().iter().enumerate() {
                if let Some(to) = to {
                    queues.entry((rank, *to)).or_default().push_back((rank, side));
                }
            }
        }
        for rank in 0..grid.size() {
            let neighbors = of(rank);
            for side in neighbors.receive_order() {
                let Some(from) = neighbors.sources()[side] else { continue };
                let message = queues.get_mut(&(from, rank)).and_then(|queue| queue.pop_front());
                assert_eq!(message, Some((from, side ^ 1)), "{dims:?} {periodic:?} {rank} {side}");
            }
        }
        assert!(queues.values().all(|queue| queue.is_empty()), "{dims:?} {periodic:?}");
    }
}

#[test]
fn slices_divide_the_grid() {
    for (dims, periodic) in grids() {
        let grid = Grid::new(&dims, &periodic).expect("a grid");
        for bits in 0..1usize << dims.len() {
            let remain: Vec<bool> = (0..dims.len()).map(|d| bits >> d & 1 == 1).collect();
            let of = |coords: &Vec<usize>, kept: bool| -> Vec<usize> {
                let chosen = coords.iter().zip(&remain).filter(|(_, r)| **r == kept);
                chosen.map(|(c, _)| *c).collect()
            };
            for (rank, coords) in all(&dims).iter().enumerate() {
                let (slice, number, place) = grid.slice(&remain, rank).expect("a slice");
                assert_eq!(slice.dims(), of(&dims, true));
                assert_eq!(slice.coords_of(place), Ok(of(coords, true)));
                // All ranks of one slice get the same slice number, and the numbers of two slices differ.
                for (other, there) in all(&dims).iter().enumerate() {
                    let (_, other, _) = grid.slice(&remain, other).expect("a slice");
                    assert_eq!(other == number, of(there, false) == of(coords, false));
                }
            }
        }
        assert!(grid.slice(&vec![true; dims.len() + 1], 0).is_err());
    }
}

#[test]
fn impossible_grids_are_refused() {
    for (dims, periodic, argument) in [
        (&[2, 0][..], &[true, true][..], "dims"),
        (&[usize::MAX, 2], &[true, true], "dims"),
        (&[2], &[], "periodic"),
    ] {
        let error = Grid::new(dims, periodic).expect_err("refused");
        assert_eq!((error.kind(), error.argument()), (ErrorKind::Dims, argument));
    }
}
