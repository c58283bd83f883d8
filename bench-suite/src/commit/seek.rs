//! Measures how long a cursor takes to find the position in memory of a random packed byte.
//!
//! The answers of the cursor are compared with positions that are computed from the arguments of the type
//! constructors.

use super::{Limit, Numbers, Row, Scale, line};
use crate::measure::take_turns;
use std::hint::black_box;
use typepack_engine::{Cursor, Datatype, Named, Plan};

/// The number of positions that a cursor seeks one after the other. There are so many positions that
/// hardly any part of the engine's tables stays in the cache from one use to the next.
const POSITIONS: usize = 1 << 14;

/// The count and the stride in bytes of each of five nested levels, outermost first. The strides are such
/// that the engine cannot merge any two levels.
const NEST: [(i64, i64); 5] = [(7, 400_000), (5, 70_000), (6, 10_000), (4, 2_000), (9, 100)];

pub(super) fn run(scale: &Scale) -> Result<Vec<Row>, String> {
    let mut numbers = Numbers(0xfeed_beef_1234_5671);
    let double = Datatype::named(Named::DOUBLE);
    let (mut lengths, mut at, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut next, mut packed) = (0, 0);
    for _ in 0..scale.entries {
        let length = 1 + numbers.below(8) as i64;
        lengths.push(length);
        at.push(next);
        starts.push(packed);
        next += length + 1 + numbers.below(8) as i64;
        packed += 8 * length as u64;
    }
    let indexed = Datatype::indexed(&lengths, &at, &double).and_then(|ty| ty.commit());
    let indexed = indexed.map_err(line)?;
    let of_list = |position: u64| {
        let entry = starts.partition_point(|&start| start <= position) - 1;
        8 * at[entry] + (position - starts[entry]) as i64
    };

    let mut nest = Datatype::contiguous(3, &double).map_err(line)?;
    for (count, stride) in NEST.into_iter().rev() {
        nest = Datatype::hvector(count, 1, stride, &nest).map_err(line)?;
    }
    let nest = nest.commit().map_err(line)?;
    let of_nest = |position: u64| {
        let (mut rest, mut place) = (position as i64 / 24, position as i64 % 24);
        for (count, stride) in NEST.into_iter().rev() {
            place += rest % count * stride;
            rest /= count;
        }
        place
    };

    let list = positions(&indexed, of_list, &mut numbers)?;
    let levels = positions(&nest, of_nest, &mut numbers)?;
    let mut cursors =
        [Cursor::new(&indexed, 1).map_err(line)?, Cursor::new(&nest, 1).map_err(line)?];
    let [first, second] = &mut cursors;
    let (mut i, mut j) = (0, 0);
    let times = take_turns(
        scale.rounds,
        [&mut || seek(first, &list, &mut i), &mut || seek(second, &levels, &mut j)],
    );
    let whats = [
        (format!("seek in indexed of {} entries", scale.entries), 200.0),
        ("seek in a nest of 5 levels".to_owned(), 50.0),
    ];
    let rows = whats.into_iter().zip(times).map(|((what, most), time)| {
        Row::new(what, time.ns, "ns", Limit::AtMost(most)).steady(time.is_steady())
    });
    Ok(rows.collect())
}

#[inline]
fn seek(cursor: &mut Cursor<'_>, positions: &[u64], i: &mut usize) {
    // The function `positions` has already sought each of these positions successfully, so the result can
    // be ignored.
    let _ = black_box(cursor.seek(positions[*i % POSITIONS]));
    black_box(cursor.run());
    *i += 1;
}

/// Returns random positions in the packed bytes. Checks that a cursor finds each position at the offset in
/// memory that `place` returns for it. If not, returns an error.
fn positions(
    plan: &Plan,
    place: impl Fn(u64) -> i64,
    numbers: &mut Numbers,
) -> Result<Vec<u64>, String> {
    let mut cursor = Cursor::new(plan, 1).map_err(line)?;
    let mut positions = Vec::with_capacity(POSITIONS);
    for _ in 0..POSITIONS {
        let position = numbers.below(plan.element_bytes());
        cursor.seek(position).map_err(line)?;
        let found = cursor.run().map(|run| run.offset);
        if found != Some(place(position)) {
            let found = found.map_or("the end".to_owned(), |offset| format!("offset {offset}"));
            return Err(format!(
                "seek to packed byte {position}: the cursor is at {found}; expected offset {}",
                place(position)
            ));
        }
        positions.push(position);
    }
    Ok(positions)
}
