//! Measures how long it takes to create, commit and free a small type. An application may do this once
//! every few uses of the type.
//!
//! The types are committed with a compiler that compiles a kernel only after many uses. The measurement
//! never packs with a type, so no kernel is compiled.

use super::{Limit, Row, Scale, line, settings};
use crate::measure::take_turns;
use std::hint::black_box;
use typepack_engine::{Datatype, Named, Order, Result};
use typepack_jit::Mode;

/// The bar: the greatest allowed time of one create + commit + free, in nanoseconds.
const BAR: Limit = Limit::AtMost(500.0);

pub(super) fn run(scale: &Scale) -> std::result::Result<Vec<Row>, String> {
    let settings = settings(Mode::Lazy);
    let double = Datatype::named(Named::DOUBLE);
    let members = [Named::CHAR, Named::INT, Named::DOUBLE].map(Datatype::named);
    let vector = || Datatype::vector(black_box(128), 1, 130, &double);
    let face = || {
        let subsizes = [128, 128, 1];
        Datatype::subarray(black_box(&[130; 3]), &subsizes, &[1; 3], Order::C, &double)
    };
    let record = || Datatype::structured(&[1, 1, 1], black_box(&[0, 4, 8]), &members);

    let longer = [Named::DOUBLE, Named::INT].map(Datatype::named);
    let longer: Vec<Datatype> = longer.into_iter().cycle().take(8).collect();
    let places: Vec<i64> = (0..8).map(|member| 16 * member).collect();
    let record8 = || Datatype::structured(&[1; 8], black_box(&places), &longer);
    let column = || Datatype::resized(0, black_box(8), &vector()?);

    let made = [vector(), face(), record(), record8(), column()];
    for (made, bytes) in made.into_iter().zip([128 * 8, 128 * 128 * 8, 13, 48, 128 * 8]) {
        let plan = made.and_then(|ty| ty.commit_with(&settings)).map_err(line)?;
        if plan.element_bytes() != bytes {
            return Err(format!(
                "create: a type has {} packed bytes; expected {bytes}",
                plan.element_bytes()
            ));
        }
    }
    // The loop above has already made and committed every type once without an error. So `cycle` may drop
    // the result.
    let cycle =
        |made: Result<Datatype>| drop(black_box(made.and_then(|t| t.commit_with(&settings))));
    let times = take_turns(
        scale.rounds,
        [
            &mut || cycle(vector()),
            &mut || cycle(face()),
            &mut || cycle(record()),
            &mut || cycle(record8()),
            &mut || cycle(column()),
        ],
    );
    let names =
        ["vector", "subarray (x face of 128^3)", "struct of 3", "struct of 8", "resized vector"];
    let rows = names.iter().zip(times).map(|(name, time)| {
        Row::new(format!("create+commit+free: {name}"), time.ns, "ns", BAR).steady(time.is_steady())
    });
    Ok(rows.collect())
}
