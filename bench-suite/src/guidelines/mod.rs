//! Checks performance guidelines for datatypes on random types.
//!
//! The guidelines state what users may expect of datatypes (J. L. Träff, W. D. Gropp, R. Thakur,
//! "Self-consistent MPI performance guidelines", 2010). A type must not cost more than a hand-written walk
//! over the same layout. If two types describe the same layout, neither must be much slower than the
//! other.
//!
//! Each [`Guideline`] turns a type of `generate.rs` into two competitors that pack the same bytes: a type
//! (the description) and what it is compared with (the reference). The oracle (the engine's naive walk over
//! the typemap) verifies both competitors, and `../measure.rs` times them alternately. `report.rs` prints
//! the [`Check`]s.
//!
//! A check is a violation if, in each of [`TRIES`] steady measurements, the description takes more than
//! [`MOST`] times as long as the reference, and the difference is more than a few nanoseconds.

mod generate;
mod report;

use crate::competitor;
use crate::competitor::hand::{Hand, Loops};
use crate::layout::{HandNest, Layout, Numbers};
use crate::measure::{direction_name, measure_with};
use crate::prepare::Bench;
use std::sync::Arc;
use typepack_engine::iov::Iov;
use typepack_engine::kernel::Direction;
use typepack_engine::{Datatype, Order, Settings};
use typepack_jit::Jit;

pub use report::{csv, summary};

/// The greatest allowed ratio of a description's time to the reference's time.
pub const MOST: f64 = 1.25;
/// The largest number of measurements of a check. The check is a violation only if all of them show it.
pub const TRIES: usize = 3;
/// If the description takes longer by at most this many nanoseconds, the check is not a violation,
/// because a few branches cost as much.
const SLACK_NS: f64 = 3.0;
/// The names of the two competitors in rows.
const OWN: &str = "description";
const OTHER: &str = "reference";

/// One guideline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guideline {
    /// Compares the type with a hand-written loop over the runs of the type.
    Hand,
    /// Compares `contiguous(n, T)` with `n` elements of `T`.
    Contiguous,
    /// Compares a duplicate of the type with the type itself.
    Dup,
    /// Compares a type that is resized to its own bounds with the type itself.
    Resized,
    /// Compares a vector of blocks with an `hvector` of contiguous types.
    Vector,
    /// Compares a struct of equal, adjacent members with a contiguous type.
    Struct,
    /// Compares a subarray with nested `hvector`s.
    Subarray,
    /// Compares an index list with a vector. The displacements in the list have equal steps.
    Indexed,
}

impl Guideline {
    /// All guidelines.
    pub const ALL: [Self; 8] = [
        Self::Hand,
        Self::Contiguous,
        Self::Dup,
        Self::Resized,
        Self::Vector,
        Self::Struct,
        Self::Subarray,
        Self::Indexed,
    ];

    /// Returns the short name of the guideline.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hand => "hand",
            Self::Contiguous => "contiguous",
            Self::Dup => "dup",
            Self::Resized => "resized",
            Self::Vector => "vector",
            Self::Struct => "struct",
            Self::Subarray => "subarray",
            Self::Indexed => "indexed",
        }
    }

    /// Returns the text of the guideline.
    pub fn text(self) -> &'static str {
        match self {
            Self::Hand => "a type costs no more than a hand's loop over its runs",
            Self::Contiguous => "contiguous(n, T) costs what n of T cost",
            Self::Dup => "dup(T) costs what T costs",
            Self::Resized => "T resized to its own bounds costs what T costs",
            Self::Vector => "a vector costs what its strided contiguous blocks cost",
            Self::Struct => "a struct of equal parts costs what contiguous ones cost",
            Self::Subarray => "a subarray costs what its nested vectors cost",
            Self::Indexed => "a list of equal steps costs what a vector costs",
        }
    }

    /// Returns the description and the reference for `count` elements of `ty`, each with its count. If the
    /// reference is `None`, it is a hand-written loop over the runs of the description.
    fn pair(
        self,
        ty: &Datatype,
        count: u64,
        numbers: &mut Numbers,
    ) -> typepack_engine::Result<Pair> {
        let n = count as i64;
        let against = |own: Datatype, other: Datatype| ((own, 1), Some((other, 1)));
        Ok(match self {
            Self::Hand => ((ty.clone(), count), None),
            Self::Contiguous => ((Datatype::contiguous(n, ty)?, 1), Some((ty.clone(), count))),
            Self::Dup => ((ty.dup(), count), Some((ty.clone(), count))),
            Self::Resized => {
                let same = Datatype::resized(ty.lb(), ty.extent(), ty)?;
                ((same, count), Some((ty.clone(), count)))
            }
            Self::Vector => {
                let block = 1 + numbers.below(4) as i64;
                let stride = block + numbers.below(4) as i64;
                let blocks = n.div_euclid(block).max(1);
                let row = Datatype::contiguous(block, ty)?;
                let other = Datatype::hvector(blocks, 1, stride * ty.extent(), &row)?;
                against(Datatype::vector(blocks, block, stride, ty)?, other)
            }
            Self::Struct => {
                let parts = 2 + numbers.below(7) as i64;
                let each = n.div_euclid(parts).max(1);
                let part = Datatype::contiguous(each, ty)?;
                let places: Vec<i64> = (0..parts).map(|i| i * part.extent()).collect();
                let (lengths, types) = (vec![1; parts as usize], vec![part; parts as usize]);
                let all = Datatype::structured(&lengths, &places, &types)?;
                against(all, Datatype::contiguous(parts * each, ty)?)
            }
            Self::Subarray => {
                // The subarray has at most n elements. Its last dimension is the longest.
                let edge = ((n as f64).cbrt() as i64).max(1);
                let sub = [edge, edge, (n / (edge * edge)).max(1)];
                let start = [0; 3].map(|_: i64| numbers.below(3) as i64);
                let sizes: [i64; 3] =
                    std::array::from_fn(|i| start[i] + sub[i] + numbers.below(3) as i64);
                let (x, y) = (ty.extent(), ty.extent() * sizes[2]);
                let z = y * sizes[1];
                let row = Datatype::contiguous(sub[2], ty)?;
                let plane = Datatype::hvector(sub[1], 1, y, &row)?;
                let inside = Datatype::hvector(sub[0], 1, z, &plane)?;
                let first = start[0] * z + start[1] * y + start[2] * x;
                let placed = Datatype::hindexed_block(1, &[first], &inside)?;
                against(
                    Datatype::subarray(&sizes, &sub, &start, Order::C, ty)?,
                    Datatype::resized(0, z * sizes[0], &placed)?,
                )
            }
            Self::Indexed => {
                let step = 1 + numbers.below(4) as i64;
                let places: Vec<i64> = (0..n).map(|i| i * step).collect();
                let list = Datatype::indexed_block(1, &places, ty)?;
                against(list, Datatype::vector(n, 1, step, ty)?)
            }
        })
    }
}

/// A type and its count.
type Counted = (Datatype, u64);
/// A description and its reference. `None` stands for a hand-written loop.
type Pair = (Counted, Option<Counted>);

/// The result of one guideline for one type in one direction.
#[derive(Clone, Debug)]
pub struct Check {
    /// The guideline.
    pub guideline: Guideline,
    /// The number of the random type: 0 for the first type of the run.
    pub number: usize,
    /// Number of packed bytes per call.
    pub bytes: u64,
    /// `pack` or `unpack`.
    pub direction: &'static str,
    /// The description as an expression in the engine's text form, with its count if that is not 1.
    pub text: String,
    /// Nanoseconds per call of the description and of the reference. They come from the measurement with
    /// the least ratio.
    pub ns: [f64; 2],
    /// The names of the kernels or loops of the description and of the reference.
    pub executors: [String; 2],
    /// True if the check is a violation.
    pub violated: bool,
}

impl Check {
    /// Returns the time of the description divided by the time of the reference.
    pub fn ratio(&self) -> f64 {
        self.ns[0] / self.ns[1]
    }
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// The seed of the random types.
    pub seed: u64,
    /// Number of types.
    pub types: usize,
    /// The checks.
    pub list: Vec<Check>,
    /// The faults, one line each.
    pub faults: Vec<String>,
}

/// Checks all guidelines on `types` random types. `hands` are the builds of the hand-written loops. If the
/// reference is a hand-written loop, the fastest build counts.
pub fn run(
    seed: u64,
    types: usize,
    rounds: usize,
    jit: &Jit,
    hands: &[Loops],
    mut progress: impl FnMut(usize, usize),
) -> Checks {
    let mut checks = Checks { seed, types, ..Checks::default() };
    let mut numbers = Numbers::seeded(seed);
    for number in 0..types {
        progress(number + 1, types);
        let (ty, count) = match generate::some(&mut numbers) {
            Ok(made) => made,
            Err(error) => {
                checks.faults.push(format!("type {number}: {error}"));
                continue;
            }
        };
        for guideline in Guideline::ALL {
            let pair = guideline.pair(&ty, count, &mut numbers).map_err(|e| e.to_string());
            let bench = pair.and_then(|pair| bench(pair, jit, hands));
            let checked = bench.map(|mut bench| {
                for direction in [Direction::Pack, Direction::Unpack] {
                    checks.list.push(check(guideline, number, &mut bench, direction, rounds));
                }
            });
            if let Err(line) = checked {
                checks.faults.push(format!("type {number}, {}: {line}", guideline.name()));
            }
        }
    }
    checks
}

/// Makes and verifies the competitors of a pair. The reference describes the same bytes in the same order
/// as the description, so the right answer for the description is right for both.
fn bench((own, other): Pair, jit: &Jit, hands: &[Loops]) -> Result<Bench, String> {
    let settings = || Settings { compiler: Some(Arc::new(jit.clone())), ..Settings::default() };
    let layout = Layout::of("", own.0.clone(), own.1)?;
    let made = |name, (ty, count): &Counted| {
        competitor::typed(name, ty, *count, &settings()).map_err(|e| e.to_string())
    };
    let mut competitors = vec![made(OWN, &own)?];
    match &other {
        Some(other) => competitors.push(made(OTHER, other)?),
        None => {
            let nest = runs(&own)?;
            for &loops in hands {
                competitors.push(Box::new(Hand::new(loops, &nest)));
            }
        }
    }
    Bench::verified(layout, competitors)
}

/// Returns a hand-written loop over the runs of the type: if all runs have the same length, a loop over a
/// list of offsets; otherwise, a loop over a list of offsets and a list of lengths.
fn runs((ty, count): &Counted) -> Result<HandNest, String> {
    let plan = ty.commit().map_err(|e| e.to_string())?;
    let iov = Iov::new(&plan);
    let runs: Vec<(usize, usize)> = iov
        .runs(*count, 0)
        .map_err(|e| e.to_string())?
        .map(|run| (run.offset as usize, run.bytes as usize))
        .collect();
    let block = runs.first().map_or(0, |run| run.1);
    Ok(if runs.iter().all(|run| run.1 == block) {
        HandNest::Offsets { block, offsets: runs.iter().map(|run| run.0).collect() }
    } else {
        HandNest::Runs(runs.into())
    })
}

fn check(
    guideline: Guideline,
    number: usize,
    bench: &mut Bench,
    direction: Direction,
    rounds: usize,
) -> Check {
    let (text, count) = (typepack_engine::text::print(&bench.layout.datatype), bench.layout.count);
    let text = if count == 1 { text } else { format!("{count} x {text}") };
    let (mut least, mut violated): (Option<Check>, bool) = (None, true);
    for _ in 0..TRIES {
        let row = measure_with(bench, &mut [], bench.layout.payload, direction, rounds).0;
        let others = row.figures.iter().filter(|figure| figure.competitor != OWN);
        let other = others.min_by(|a, b| a.ns.total_cmp(&b.ns));
        let (Some(own), Some(other)) = (row.figure(OWN), other) else { break };
        let check = Check {
            guideline,
            number,
            bytes: row.bytes,
            direction: direction_name(direction),
            text: text.clone(),
            ns: [own.ns, other.ns],
            executors: [own.executor.clone(), other.executor.clone()],
            violated: false,
        };
        // An unsteady measurement cannot show a violation, so it ends the loop with `violated` false.
        let steady = own.is_steady() && other.is_steady();
        violated = steady && check.ratio() > MOST && own.ns - other.ns > SLACK_NS;
        if least.as_ref().is_none_or(|least| check.ratio() < least.ratio()) {
            least = Some(check);
        }
        if !violated {
            break;
        }
    }
    let mut check = least.expect("a check needs at least one measured row");
    check.violated = violated;
    check
}

#[cfg(test)]
mod tests {
    use super::{Guideline, csv, run, summary};
    use crate::competitor::hand::Hands;
    use typepack_jit::{Jit, Settings};

    #[test]
    fn descriptions_of_one_layout_pack_the_same_bytes() {
        // `run` verifies both competitors of each pair against the oracle. A wrong byte would be a fault.
        let jit = Jit::new(Settings::default());
        let checks = run(7, 6, 1, &jit, &Hands::built_in().loops, |_, _| {});
        assert_eq!(checks.faults, Vec::<String>::new());
        assert_eq!(checks.list.len(), 6 * 2 * Guideline::ALL.len());
        let text = summary(&checks);
        assert!(Guideline::ALL.iter().all(|one| text.contains(one.text())), "{text}");
        let csv = csv(&checks);
        assert_eq!(csv.lines().count(), 1 + checks.list.len());
        let again = run(7, 6, 1, &jit, &Hands::built_in().loops, |_, _| {});
        let texts = |checks: &super::Checks| -> Vec<String> {
            checks.list.iter().map(|check| check.text.clone()).collect()
        };
        assert_eq!(texts(&checks), texts(&again));
    }
}
