//! Measures the regret of the choice of a kernel: the free choice against forced leaf kernels, forced compiled
//! kernels, the static order, and the free choice without one of its choosers, in one process.
//!
//! `../command/regret.rs` calls [`measure`] for every layout and size. All competitors are verified
//! first and make so many calls that the compilation policy has decided. Then they take turns, and
//! `judge.rs` computes the regret from the turns. `policy.rs` measures what the first calls cost.

use super::judge::{Tried, judge};
use super::report::{Compared, STATIC};
use crate::competitor::{self, Competitor};
use crate::layout::Layout;
use crate::measure::{calibrate, direction_name, in_rounds, turn};
use crate::prepare::Bench;
use crate::row::{JIT, LEAF, TYPEPACK};
use std::sync::Arc;
use typepack_engine::contiguous::{Method, set_fixed};
use typepack_engine::kernel::Direction;
use typepack_engine::{Settings, Strategy};
use typepack_jit::Jit;

/// The packed sizes at which layouts are measured, in bytes.
pub const SIZES: [u64; 5] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// The sizes of a quick run.
pub const QUICK: [u64; 3] = [1 << 10, 16 << 10, 256 << 10];

/// Number of bytes from which the choice between leaf kernels and compiled kernels is measured.
const MEASURED: u64 = 8 << 10;
/// Number of bytes from which the method of a contiguous copy is measured.
const COPIES: u64 = 16 << 10;

/// The names of the free choice without the chooser of copies, and without the chooser of kernels.
const WITHOUT: [&str; 2] = ["off:copies", "off:kernels"];
/// Number of forced candidates.
const CANDIDATES: usize = 2;

/// Measures `layout` in `directions` with `rounds` rounds. `eager` is the code generator of the forced
/// compiled kernels, and `lazy` that of the free choice. Both code generators keep their compiled kernels for
/// later calls of this function.
///
/// # Errors
///
/// Returns a one-line message if the engine refuses the layout, if there is not enough memory, if an answer is
/// wrong, or if there are too few rounds.
pub fn measure(
    layout: Layout,
    directions: &[Direction],
    rounds: usize,
    eager: &Jit,
    lazy: &Jit,
) -> Result<Vec<Compared>, String> {
    let competitors = competitors(&layout, eager, lazy).map_err(|e| e.to_string())?;
    let mut bench = Bench::verified(layout, competitors)?;
    directions.iter().map(|&direction| one(&mut bench, direction, rounds)).collect()
}

/// Returns the free choice, the choice without measurements, forced leaf kernels, forced compiled kernels, and the free
/// choice without measurements of copies and of kernels. As in an application with `TYPEPACK_KERNEL=leaf`, nothing is
/// compiled for forced leaf kernels.
fn competitors(
    layout: &Layout,
    eager: &Jit,
    lazy: &Jit,
) -> typepack_engine::Result<Vec<Box<dyn Competitor>>> {
    let compiling = |jit: &Jit, strategy| Settings {
        compiler: Some(Arc::new(jit.clone())),
        strategy,
        ..Settings::default()
    };
    let leaf = Settings { strategy: Some(Strategy::Leaf), ..Settings::default() };
    let make = |name, settings: &Settings| {
        competitor::typed(name, &layout.datatype, layout.count, settings)
    };
    let unmeasured = Settings { unmeasured: true, ..compiling(lazy, None) };
    Ok(vec![
        make(TYPEPACK, &compiling(lazy, None))?,
        make(STATIC, &unmeasured)?,
        make(LEAF, &leaf)?,
        make(JIT, &compiling(eager, Some(Strategy::Kernel)))?,
        make(WITHOUT[0], &compiling(lazy, None))?,
        make(WITHOUT[1], &unmeasured)?,
    ])
}

fn one(bench: &mut Bench, direction: Direction, rounds: usize) -> Result<Compared, String> {
    let count = bench.competitors.len();
    // Without measurements of copies, long copies take vector moves.
    let vector: Vec<bool> =
        bench.competitors.iter().map(|c| [STATIC, WITHOUT[0]].contains(&c.name())).collect();
    let fix = |number: usize| set_fixed(vector[number].then_some(Method::Vector));
    let mut calls = Vec::new();
    for number in 0..count {
        fix(number);
        calls.push(calibrate(bench, number, direction));
    }
    let mut turns = vec![Vec::new(); count];
    in_rounds(rounds, count, |number| {
        fix(number);
        turns[number].push(turn(bench, number, direction, calls[number]));
    });
    set_fixed(None);
    let bytes = bench.layout.payload;
    let executors: Vec<String> =
        bench.competitors.iter().map(|competitor| competitor.executor(direction)).collect();
    let is_choice = executors[2..][..CANDIDATES].windows(2).any(|pair| pair[0] != pair[1]);
    let acts = match executors[0].as_str() {
        "memcpy" if bytes >= COPIES => WITHOUT[0],
        _ if is_choice && bytes >= MEASURED => WITHOUT[1],
        _ => "",
    };
    let tried = bench.competitors.iter().zip(turns).map(|(competitor, rounds)| Tried {
        name: competitor.name().to_owned(),
        rounds,
        whole: None,
    });
    // A chooser that does not act in this row gains nothing in it.
    let stays = |tried: &Tried| !WITHOUT.contains(&tried.name.as_str()) || tried.name == acts;
    let (tried, executors): (Vec<Tried>, Vec<String>) =
        tried.zip(executors).filter(|(tried, _)| stays(tried)).unzip();
    let mut tried = tried.into_iter();
    let (free, unmeasured) = (tried.next(), tried.next());
    let Some(free) = free else { return Err("there are no competitors".to_owned()) };
    let candidates: Vec<Tried> = tried.by_ref().take(CANDIDATES).collect();
    let without: Vec<Tried> = tried.collect();
    let judged = judge(&free, &candidates)?;
    Ok(Compared {
        name: bench.layout.name.clone(),
        part: direction_name(direction).to_owned(),
        bytes,
        free: Some(free),
        unmeasured,
        candidates,
        without,
        executors,
        judged: is_choice.then_some(judged),
        ..Compared::default()
    })
}

#[cfg(test)]
mod tests {
    use super::{STATIC, measure};
    use crate::competitor::generators;
    use crate::definition::Definitions;
    use crate::layout::Layout;
    use crate::row::{JIT, TYPEPACK};
    use typepack_engine::kernel::Direction;

    fn layout(name: &str, bytes: u64) -> Layout {
        let definitions = Definitions::reference();
        let found = definitions.layouts.iter().find(|layout| layout.name == name).expect(name);
        Layout::new(found, bytes).expect("a layout")
    }

    #[test]
    fn kernels_are_forced_and_the_free_choice_is_timed_beside_them() {
        let [eager, lazy] = generators();
        let both = [Direction::Pack, Direction::Unpack];
        let rows = measure(layout("d3s7", 1 << 10), &both, 2, &eager, &lazy).expect("rows");
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(row.free.expect("times").name, TYPEPACK);
            let names: Vec<&str> = row.candidates.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(names, ["leaf", JIT]);
            assert_eq!(row.unmeasured.expect("times").name, STATIC);
            // The forced candidates ran different kernels, so the row has a choice.
            assert_ne!(row.executors[2], row.executors[3], "{:?}", row.executors);
            let judged = row.judged.expect("a choice");
            assert!(judged.ratio > 0.0 && names.contains(&judged.best.as_str()));
            assert_eq!(judged.learning, None);
        }
    }

    #[test]
    fn contiguous_layouts_have_no_choice() {
        let [eager, lazy] = generators();
        let rows =
            measure(layout("contig", 1 << 10), &[Direction::Pack], 2, &eager, &lazy).expect("rows");
        assert_eq!(rows[0].judged, None, "{:?}", rows[0].executors);
        let fault = measure(layout("d3s7", 1 << 10), &[Direction::Pack], 1, &eager, &lazy);
        assert!(fault.expect_err("one round").contains("needs at least 2"));
    }
}
