//! `typepack info --measure`: exchanges real messages, so that the library measures which way of copying long messages
//! is fastest on this machine, and shows the measured times. It does the same for blocking collective calls of all
//! ranks.
//!
//! `mod.rs` calls [`run`] after the process has joined the job. Rank 0 exchanges messages with one rank at each
//! [`Distance`]; the other ranks wait. The library measures at the receiver, so rank 0 shows its own choices. Every
//! message is also checked, because the chosen way must not change the bytes that arrive.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use typepack::engine::choice::Tune;
use typepack::tuned::Choice;
use typepack::{Communicator, Datatype, Distance, Named, Op, Placement, Plan, Universe, commit};

use super::{line, name};
use crate::agree::{FAILURE, Stop, USAGE, agree};

/// The lengths of the messages in bytes.
const SIZES: [usize; 5] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// Number of round trips between two looks at the clock.
const BATCH: usize = 32;

const TAG: i32 = 1;

/// A layout of 8-byte words: blocks of `block` words that begin `stride` words apart.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    block: usize,
    stride: usize,
}

const CONTIGUOUS: Blocks = Blocks { block: 1, stride: 1 };
const DENSE: Blocks = Blocks { block: 8, stride: 16 };
const SPARSE: Blocks = Blocks { block: 1, stride: 16 };

/// The layouts of the sender and of the receiver.
const LAYOUTS: [(Blocks, Blocks); 4] =
    [(CONTIGUOUS, CONTIGUOUS), (DENSE, CONTIGUOUS), (DENSE, DENSE), (SPARSE, CONTIGUOUS)];

impl Blocks {
    /// Returns the datatype of `words` words in this layout.
    fn plan(self, words: usize) -> typepack::Result<Plan> {
        let word = Datatype::named(Named::U64);
        // The cast is lossless: a message has at most 2^19 words, and a stride has 16 words.
        let (count, block, stride) = (words / self.block, self.block as i64, self.stride as i64);
        commit(&Datatype::vector(count as i64, block, stride, &word)?)
    }

    /// Returns the index in the buffer of word `number` of the message.
    fn at(self, number: usize) -> usize {
        number / self.block * self.stride + number % self.block
    }

    /// Returns the number of words from the first word of a message to its last word.
    fn span(self, words: usize) -> usize {
        self.at(words - 1) + 1
    }
}

/// Returns word `number` of every message of `rank`.
fn value(rank: usize, number: usize) -> u64 {
    ((number as u64) << 1 | rank as u64 & 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Measures for about `seconds` seconds and prints the choices of rank 0.
pub fn run(universe: &Universe, seconds: u16) -> Result<(), Stop> {
    let world = universe.world();
    agree(&world, possible(world.size()), USAGE)?;
    let partners = partners(universe.placement().as_ref(), world.size());
    let cases = partners.len() * LAYOUTS.len() * SIZES.len() * 2;
    // A fifth of the time is for collective calls.
    let whole = Duration::from_secs(seconds.into());
    let time = whole * 4 / 5 / u32::try_from(cases).unwrap_or(u32::MAX);
    for &(partner, _) in &partners {
        let done = match world.rank() {
            0 => with(universe, &world, partner, time),
            rank if rank == partner => with(universe, &world, 0, time),
            _ => Ok(Ok(())),
        };
        agree(&world, done?, FAILURE)?;
    }
    collectives(&world, whole / 5)?;
    let printed = match world.rank() {
        0 => super::print(&table(&partners, &universe.choices()?)),
        _ => Ok(()),
    };
    agree(&world, printed, FAILURE)
}

/// Makes blocking collective calls of all sizes and of several kinds for about `time`. All ranks call this function.
fn collectives(world: &Communicator, time: Duration) -> typepack::Result<()> {
    let sizes = u32::try_from(SIZES.len()).unwrap_or(u32::MAX);
    for bytes in SIZES {
        let mut values = vec![1u64; bytes / size_of::<u64>()];
        let mut result = vec![0u64; values.len()];
        let end = Instant::now() + time / sizes;
        let mut goes_on = [1u64];
        while goes_on != [0] {
            for _ in 0..BATCH {
                world.broadcast(&mut values, 0)?;
                world.reduce(&values, &mut result, Op::Max, 0)?;
                result.copy_from_slice(&values);
                world.all_reduce_in_place(&mut result, Op::Max)?;
                world.scan(&values, &mut result, Op::Max)?;
            }
            goes_on = [u64::from(Instant::now() < end)];
            world.broadcast(&mut goes_on, 0)?;
        }
    }
    Ok(())
}

/// Checks that this job can run `--measure`.
fn possible(ranks: usize) -> Result<(), String> {
    if ranks < 2 {
        let hint = "for example mpiexec -n 2 typepack info --measure";
        return Err(format!(
            "--measure: the job has 1 rank; it must have at least 2 ranks: {hint}"
        ));
    }
    // A wrong value has ended init with an error.
    let tune = std::env::var("TYPEPACK_TUNE").ok().and_then(|value| Tune::parse(&value).ok());
    let measures = |tune: Tune| ["messages", "collective"].iter().any(|name| tune.measures(name));
    match tune {
        Some(tune) if !measures(tune) => {
            Err("--measure: TYPEPACK_TUNE forbids measuring; it must be on".into())
        }
        _ => Ok(()),
    }
}

/// Returns one rank at each distance from rank 0, with the distance. The distance is `None` unless both
/// ranks are bound to CPUs.
fn partners(placement: Option<&Placement>, size: usize) -> Vec<(usize, Option<Distance>)> {
    let cpu = |rank| placement.and_then(|placement| placement.cpu(rank));
    let mut found: Vec<(usize, Option<Distance>)> = Vec::new();
    for rank in 1..size {
        let distance = cpu(0).zip(cpu(rank)).map(|(a, b)| a.distance(&b));
        if !found.iter().any(|(_, other)| *other == distance) {
            found.push((rank, distance));
        }
    }
    found
}

/// Exchanges messages of all kinds with `other`, each kind for about `time`. The inner result is an error if a
/// message that this rank received has a wrong word.
fn with(
    universe: &Universe,
    world: &Communicator,
    other: usize,
    time: Duration,
) -> typepack::Result<Result<(), String>> {
    for (out, into) in LAYOUTS {
        for bytes in SIZES {
            let words = bytes / size_of::<u64>();
            let mut source = vec![0; out.span(words)];
            for number in 0..words {
                source[out.at(number)] = value(world.rank(), number);
            }
            let case = Case { world, other, words, out, into, time };
            let mut target = vec![0; into.span(words)];
            case.exchange(&source, &mut target)?;
            let mut heap = universe.shared_buffer(source.len())?;
            heap.copy_from_slice(&source);
            let mut shared = universe.shared_buffer(target.len())?;
            case.exchange(&heap, &mut shared)?;
            let wrong = |words: &[u64]| {
                (0..case.words).find(|&number| words[into.at(number)] != value(other, number))
            };
            if let Some(number) = wrong(&target).or_else(|| wrong(&shared)) {
                return Ok(Err(format!(
                    "typepack bug: word {number} of a message of {bytes} bytes from rank {other} is wrong"
                )));
            }
        }
    }
    Ok(Ok(()))
}

/// Messages of one kind.
struct Case<'a> {
    world: &'a Communicator,
    other: usize,
    words: usize,
    out: Blocks,
    into: Blocks,
    time: Duration,
}

impl Case<'_> {
    /// Exchanges messages in batches. After each batch, rank 0 tells the other rank whether another batch follows.
    fn exchange(&self, source: &[u64], target: &mut [u64]) -> typepack::Result<()> {
        let Self { world, other, .. } = *self;
        let word = commit(&Datatype::named(Named::U64))?;
        let (out, into) = (self.out.plan(self.words)?, self.into.plan(self.words)?);
        let end = Instant::now() + self.time;
        loop {
            for _ in 0..BATCH {
                if world.rank() == 0 {
                    world.send_elements(source, &out, 1, other, TAG)?;
                    world.recv_elements(target, &into, 1, other, TAG)?;
                } else {
                    world.recv_elements(target, &into, 1, other, TAG)?;
                    world.send_elements(source, &out, 1, other, TAG)?;
                }
            }
            let mut goes_on = [u64::from(Instant::now() < end)];
            if world.rank() == 0 {
                world.send_elements(&goes_on, &word, 1, other, TAG)?;
            } else {
                world.recv_elements(&mut goes_on, &word, 1, other, TAG)?;
            }
            if goes_on == [0] {
                return Ok(());
            }
        }
    }
}

/// Returns the text about the choices.
fn table(partners: &[(usize, Option<Distance>)], choices: &[Choice]) -> String {
    let mut text = String::from("\nChoices of rank 0, measured with messages of");
    for (number, (rank, distance)) in partners.iter().enumerate() {
        let words = distance.map_or("not bound to one core", name);
        let comma = if number == 0 { "" } else { "," };
        let _infallible = write!(text, "{comma} rank {rank} ({words})");
    }
    text.push('\n');
    line(
        &mut text,
        "  us per message from the match to the last byte, or per collective call; * marks the present choice",
    );
    let mut kinds: BTreeMap<&str, Vec<&Choice>> = BTreeMap::new();
    for choice in choices {
        kinds.entry(&choice.kind).or_default().push(choice);
    }
    for (kind, choices) in kinds {
        line(&mut text, &format!("  {kind}"));
        for choice in choices {
            let ways = choice.ways.iter().enumerate().map(|(number, way)| {
                let mark = if number == choice.best { "*" } else { "" };
                // The cast is exact: the lengths are far below 2^53.
                let us = |ns: f64| format!("{:.1}", ns * choice.bytes as f64 / 1e3);
                let time = way.ns_per_byte.map_or_else(|| "not tried".to_owned(), us);
                format!("{mark}{} {time}", way.name)
            });
            let ways = ways.collect::<Vec<_>>().join("; ");
            let open = if choice.settled { "" } else { " (not compared to the end)" };
            line(&mut text, &format!("    {:>5} KiB  {ways}{open}", choice.bytes >> 10));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_has_its_words_where_its_datatype_has_them() {
        for blocks in [CONTIGUOUS, DENSE, SPARSE] {
            let plan = blocks.plan(64).expect("a plan");
            assert_eq!(plan.element_bytes(), 512);
            let source: Vec<u64> = (0..blocks.span(64) as u64).collect();
            let mut packed = vec![0u64; 64];
            let bytes = bytemuck::cast_slice_mut(&mut packed);
            typepack::engine::pack(&plan, 1, &source, bytes).expect("packed");
            assert!((0..64).all(|number| packed[number] == blocks.at(number) as u64), "{blocks:?}");
        }
    }

    #[test]
    fn a_job_of_one_rank_cannot_measure() {
        assert!(possible(1).expect_err("refused").starts_with("--measure: the job has 1 rank;"));
        assert_eq!(partners(None, 4), [(1, None)]);
    }
}
