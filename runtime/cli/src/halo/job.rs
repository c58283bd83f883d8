//! Runs `typepack halo`: takes the parsed options and produces the report.
//!
//! Before this code runs, `main.rs` has parsed the options and joined the job. The steps here are: check the
//! options on all ranks, check the files on rank 0, decompose the grid, set the fields, compute and write
//! checkpoints, verify, measure, report. The result of every check is passed to [`agree`], so that all ranks
//! stop if one rank finds an error.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use typepack::{Cartesian, Op, Universe};
use typepack_job::sys::named;

use super::blocks::{collect, deal, for_each_owned_row, own_part};
use super::checkpoint;
use super::decomposition::{choose, fits};
use super::initial::{generate, generated, plain, read};
use super::measure::{Measurement, exchange_alone, gather_phases, percentiles};
use super::options::{Boundary, Options, Triple, Way};
use super::report::Report;
use super::solver::Solver;
use super::verdict::checksum;
use super::{plot, serial, verdict};
use crate::agree::{FAILURE, Stop, USAGE, agree, say};
use crate::progress;

/// The largest number of fields that the command accepts. It keeps the number of a field, which is used as
/// a message tag, far below the largest tag.
const FIELDS_MAX: usize = 1024;

/// The outcome of a run.
pub struct Run {
    /// The measured times of all ranks.
    pub measurement: Measurement,
    solver: Solver,
    bytes_to_others: u64,
    checksum: u64,
    verified: Option<(Duration, usize)>,
}

/// Solves the equation, measures the times, verifies the result if the options request it, and writes and
/// prints the report.
pub fn run(options: &Options, universe: &Universe) -> Result<(), Stop> {
    let world = universe.world();
    let root = world.rank() == 0;
    agree(&world, check(options, world.size()), USAGE)?;
    let mut outputs = agree(&world, root.then(|| Outputs::open(options)).transpose(), USAGE)?;
    let run = solve(options, universe)?;
    let written = outputs.as_mut().map(|outputs| outputs.write(&run.measurement)).transpose();
    agree(&world, written, FAILURE)?;
    if root {
        let report = Report {
            measurement: &run.measurement,
            faces: &run.solver.halo().faces(),
            bytes_to_others: run.bytes_to_others,
            jit: typepack::jit().counters(),
            moved: typepack::engine::stats::bytes(),
            checksum: run.checksum,
            verified: run.verified,
        };
        tell(&report.to_string())?;
    }
    Ok(())
}

/// Solves the equation, measures the times, and verifies the result if the options request it. The only files
/// that it writes are checkpoints. The only text that it prints on standard output is a line for each checkpoint that
/// it writes or reads.
pub fn solve(options: &Options, universe: &Universe) -> Result<Run, Stop> {
    let world = universe.world();
    let root = world.rank() == 0;
    let grid = options.grid.0;
    let ranks = agree(&world, check(options, world.size()), USAGE)?;
    let cubes = match &options.init {
        Some(path) if root => read(path, grid, options.fields.0).map(Some),
        _ => Ok(None),
    };
    let cubes = cubes.map_err(|what| format!("--init: {what}"));
    let cubes = agree(&world, cubes, USAGE)?;

    let periodic = options.boundary == Boundary::Periodic;
    let cartesian = world.cartesian(&ranks, &[periodic; 3])?;
    let restart = options.restart.as_deref();
    let old = restart.map(|path| checkpoint::examine(path, options, &world)).transpose()?;
    let mut solver = prepare(options, &cartesian, cubes.as_deref(), old)?;
    let first = old.map_or(0, |(steps, _)| steps);
    compute(options, universe, &cartesian, &mut solver, first)?;
    let phases = solver.phases();
    let sum = checksum(grid, &cartesian, solver.fields())?;
    let verified = if options.verify { verify(options, &cartesian, &solver, cubes)? } else { None };

    let alone = exchange_alone(cartesian.comm(), || solver.exchange())?;
    let halo = solver.halo();
    // The cast is lossless: all these bytes lie in buffers in memory, so their number fits in 63 bits.
    let mut bytes = [halo.bytes() as i64, halo.bytes_to_others() as i64];
    world.all_reduce_in_place(&mut bytes, Op::Sum)?;
    let measurement = Measurement {
        jit: typepack::jit().mode().to_string(),
        setup: setup(options, ranks),
        steps: (options.steps.0 - first) as u64,
        exchanges: solver.exchanges(),
        bytes: bytes[0] as u64,
        phases: gather_phases(&world, phases)?,
        exchange: percentiles(&alone),
        samples: alone.len() as u64,
    };
    Ok(Run { measurement, solver, bytes_to_others: bytes[1] as u64, checksum: sum, verified })
}

/// Checks the options that depend on the job. Returns the rank grid, or an error that names the wrong
/// argument. Every rank gets the same result.
fn check(options: &Options, size: usize) -> Result<[usize; 3], String> {
    let (grid, halo) = (options.grid.0, options.halo.0);
    let fields = options.fields.0;
    if options.restart.is_some() && options.init.is_some() && !options.verify {
        return Err("--init: with --restart, only --verify uses the initial field".to_owned());
    }
    if fields > FIELDS_MAX {
        return Err(format!("--fields: {fields} is too large; it must be at most {FIELDS_MAX}"));
    }
    let ranks = match options.ranks {
        Some(ranks) => {
            let needed = ranks.0.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
            if needed != Some(size) {
                let needed = needed.map_or("too many".to_owned(), |needed| needed.to_string());
                let noun = if needed == "1" { "rank" } else { "ranks" };
                return Err(format!("--ranks: {ranks} needs {needed} {noun}; the job has {size}"));
            }
            ranks.0
        }
        // If no rank grid fits the halo of `--halo`, a rank grid for a halo of 1 is used here, so that the
        // check of `--halo` below reports the error. If no rank grid fits even a halo of 1, the grid has
        // too few cells.
        None => choose(grid, size, halo).or_else(|| choose(grid, size, 1)).ok_or_else(|| {
            format!(
                "--grid: {} cannot be cut into {size} blocks of at least 1 cell each",
                options.grid
            )
        })?,
    };
    if let Some(d) = (0..3).find(|&d| grid[d] / ranks[d] == 0) {
        return Err(format!(
            "--ranks: the number of ranks along {} is {}; it must be at most {}, the grid's extent",
            AXES[d], ranks[d], grid[d]
        ));
    }
    if !fits(grid, ranks, halo) {
        // `fits` has returned false, so `find` always finds a dimension.
        let d = (0..3).find(|&d| grid[d] / ranks[d] < halo).unwrap_or(0);
        return Err(format!(
            "--halo: {halo} is too large; it must be at most {}, the smallest extent of a block along {} \
             ({} cells on {} ranks)",
            grid[d] / ranks[d],
            AXES[d],
            options.grid,
            Triple(ranks)
        ));
    }
    let needed = memory(options, ranks);
    let available = u128::from(typepack::memory::available());
    if needed > available {
        return Err(format!(
            "--grid: {} with --fields {fields} needs {} of memory; {} is available",
            options.grid,
            human(needed),
            human(available)
        ));
    }
    Ok(ranks)
}

const AXES: [&str; 3] = ["z", "y", "x"];

/// Returns the number of bytes that the fields of all ranks and the cubes of rank 0 need. A cube is an
/// array with the values of one field in the whole grid.
fn memory(options: &Options, ranks: [usize; 3]) -> u128 {
    let grid = options.grid.0.map(|extent| extent as u128);
    let cells: u128 = grid.iter().fold(1, |product, &n| product.saturating_mul(n));
    let padded = (0..3).fold(1_u128, |product, d| {
        let halos = 2 * options.halo.0 as u128 * ranks[d] as u128;
        product.saturating_mul(grid[d] + halos)
    });
    // Each field of a block has two buffers. With `--init`, rank 0 also needs memory for the bytes and the
    // values of the file. With `--verify`, rank 0 also needs memory for the collected cubes and for the two
    // buffers of the serial solution.
    let cubes = 2 * u128::from(options.init.is_some()) + 3 * u128::from(options.verify);
    let doubles = padded.saturating_mul(2).saturating_add(cells.saturating_mul(cubes));
    doubles.saturating_mul(8 * options.fields.0 as u128)
}

fn human(bytes: u128) -> String {
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < 7 {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", ["B", "kB", "MB", "GB", "TB", "PB", "EB"][unit])
}

/// Returns the options as one phrase. The phrase becomes a cell of the .csv file, so it has no commas.
fn setup(options: &Options, ranks: [usize; 3]) -> String {
    let rank = if ranks == [1; 3] { "rank" } else { "ranks" };
    let way = match options.way {
        Way::Typepack => String::new(),
        way => format!("; way {way}"),
    };
    format!(
        "{} cells on {} {rank}; {}; {}; halo {}; fields {}{way}",
        options.grid,
        Triple(ranks),
        options.stencil,
        options.boundary,
        options.halo.0,
        options.fields.0
    )
}

/// Allocates the solver and sets its fields. If the run continues from a checkpoint, the fields are those of the
/// checkpoint, and `old` has its number of steps and its checksum. Otherwise they are the fields at time 0.
fn prepare(
    options: &Options,
    cartesian: &Cartesian,
    cubes: Option<&[Vec<f64>]>,
    old: Option<(usize, u64)>,
) -> Result<Solver, Stop> {
    let comm = cartesian.comm();
    let grid = options.grid.0;
    let part = own_part(grid, cartesian);
    let solver = Solver::new(
        cartesian,
        part,
        options.stencil,
        options.boundary,
        options.halo.0,
        options.fields.0,
        options.way,
    );
    let solver = solver.map_err(|error| format!("--grid: {error}"));
    let mut solver = agree(comm, solver, FAILURE)?;
    if let (Some(path), Some(old)) = (&options.restart, old) {
        let line = checkpoint::read(path, options, cartesian, solver.fields_mut(), old)?;
        if comm.rank() == 0 {
            tell(&line)?;
        }
        return Ok(solver);
    }
    if options.init.is_some() {
        deal(cartesian, grid, cubes, solver.fields_mut())?;
        return Ok(solver);
    }
    for (number, field) in solver.fields_mut().iter_mut().enumerate() {
        for_each_owned_row(field.shape(), field.width(), |position, z, y| {
            let row = &mut field.as_mut_slice()[position..][..part.shape[2]];
            for (x, value) in row.iter_mut().enumerate() {
                let cell = [part.start[0] + z, part.start[1] + y, part.start[2] + x];
                *value = generated(number, grid, cell);
            }
        });
    }
    Ok(solver)
}

/// Computes the time steps after step `first`, and writes the checkpoints. If stderr is a terminal, rank 0 shows
/// a progress bar.
fn compute(
    options: &Options,
    universe: &Universe,
    cartesian: &Cartesian,
    solver: &mut Solver,
    first: usize,
) -> Result<(), Stop> {
    let steps = options.steps.0;
    let root = universe.world().rank() == 0;
    let shown = root && universe.stderr_is_terminal();
    let bar = progress::bar(steps as u64, shown, "computing");
    let mut told = Instant::now();
    for step in first + 1..=steps {
        solver.step()?;
        if shown && told.elapsed() >= progress::TICK {
            bar.set_position(step as u64);
            told = Instant::now();
        }
        let due = step == steps || options.every.is_some_and(|every| step % every.0 == 0);
        if let Some(path) = options.checkpoint.as_ref().filter(|_| due) {
            let line = checkpoint::write(path, options, cartesian, solver.fields(), step)?;
            if root {
                progress::aside(&bar);
                tell(&line)?;
            }
        }
    }
    progress::finish(&bar);
    Ok(())
}

/// Prints text on standard output.
fn tell(text: &str) -> Result<(), Stop> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // If the reader of standard output closes the pipe early (`| head`), the job still succeeds.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            say(format_args!("standard output: {}", plain(&error)));
            Err(Stop::Agreed(FAILURE))
        }
        _ => Ok(()),
    }
}

/// Compares the result with the serial solution on rank 0. Rank 0 gets the time of the serial solution and
/// the number of compared values; the other ranks get `None`.
fn verify(
    options: &Options,
    cartesian: &Cartesian,
    solver: &Solver,
    cubes: Option<Vec<Vec<f64>>>,
) -> Result<Option<(Duration, usize)>, Stop> {
    let grid = options.grid.0;
    let found = collect(cartesian, grid, solver.fields())?;
    let outcome = found.map(|found| {
        let initial = cubes.unwrap_or_else(|| generate(grid, options.fields.0));
        let begin = Instant::now();
        let steps = options.steps.0;
        let wanted = serial::solve(initial, grid, options.stencil, options.boundary, steps);
        let time = begin.elapsed();
        match verdict::compare(&found, &wanted, grid) {
            None => Ok((time, wanted.iter().map(Vec::len).sum())),
            Some(difference) => Err(format!("--verify: {difference}")),
        }
    });
    agree(cartesian.comm(), outcome.transpose(), FAILURE)
}

/// The files that rank 0 writes at the end of the run, and the earlier run to compare with. Rank 0 opens the
/// files at the start, so that a wrong name is reported early. The files keep their old contents until the
/// end, so that a run that fails destroys nothing.
struct Outputs<'a> {
    csv: Option<(&'a Path, File)>,
    svg: Option<(&'a Path, File)>,
    compare: Option<Measurement>,
}

impl<'a> Outputs<'a> {
    fn open(options: &'a Options) -> Result<Self, String> {
        // The file of `--compare` is read first, because `--csv` may name the same file, which this run then
        // overwrites.
        let compare = options.compare.as_deref().map(|path| {
            let text = named::read_text(path, named::TEXT_MAX)
                .map_err(|error| format!("--compare: {}: {}", path.display(), plain(&error)))?;
            Measurement::from_csv(&text)
                .map_err(|what| format!("--compare: {}: {what}", path.display()))
        });
        let compare = compare.transpose()?;
        // One entry for each file that an earlier argument names: the name of the argument, and the device
        // and inode numbers of the file.
        let mut taken: Vec<(&str, (u64, u64))> = Vec::new();
        if let Some(path) = &options.init
            && let Ok(found) = path.metadata()
        {
            taken.push(("--init", (found.dev(), found.ino())));
        }
        if let Some(path) = &options.restart
            && let Ok(found) = path.metadata()
        {
            taken.push(("--restart", (found.dev(), found.ino())));
        }
        let mut create = |name: &'static str, path: &'a Option<PathBuf>| {
            let Some(path) = path.as_deref() else { return Ok(None) };
            let failed = |error| format!("{name}: {}: {}", path.display(), plain(&error));
            let file = named::create(path, false).map_err(failed)?;
            let found = file.metadata().map_err(failed)?;
            let identity = (found.dev(), found.ino());
            if found.is_file() {
                if let Some((other, _)) = taken.iter().find(|(_, taken)| *taken == identity) {
                    return Err(format!("{name}: {}: the same file as {other}", path.display()));
                }
                taken.push((name, identity));
            }
            Ok(Some((path, file)))
        };
        let made = Self {
            csv: create("--csv", &options.csv)?,
            svg: create("--svg", &options.svg)?,
            compare,
        };
        if let Some(path) = &options.checkpoint {
            let failed = |what| format!("--checkpoint: {what}");
            // `--checkpoint` may name the same file as `--restart`, because the run reads that file before the
            // first checkpoint replaces it.
            let same = |(name, taken): &&(&str, (u64, u64))| {
                let found = path.metadata().map(|found| (found.dev(), found.ino()));
                *name != "--restart" && found.is_ok_and(|found| *taken == found)
            };
            if let Some((other, _)) = taken.iter().find(same) {
                return Err(failed(format!("{}: the same file as {other}", path.display())));
            }
            checkpoint::try_out(path).map_err(failed)?;
        }
        Ok(made)
    }

    fn write(&mut self, measurement: &Measurement) -> Result<(), String> {
        let failed = |name: &str, path: &Path, error: std::io::Error| {
            format!("{name}: {}: {}", path.display(), plain(&error))
        };
        if let Some((path, file)) = &mut self.csv {
            replace(file, &measurement.to_csv()).map_err(|error| failed("--csv", path, error))?;
        }
        if let Some((path, file)) = &mut self.svg {
            let runs: Vec<_> = std::iter::once(measurement).chain(&self.compare).collect();
            let text = plot::svg(&runs).map_err(|what| format!("--svg: {what}"))?;
            replace(file, &text).map_err(|error| failed("--svg", path, error))?;
        }
        Ok(())
    }
}

/// Replaces the contents of a regular file with `text`. If the file is a pipe or a device, writes `text` to
/// it.
fn replace(file: &mut File, text: &str) -> std::io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::Parser;

    fn checked(arguments: &str, size: usize) -> Result<[usize; 3], String> {
        let words = ["typepack", "halo"].into_iter().chain(arguments.split(' '));
        let command = Cli::try_parse_from(words).expect("good words").command;
        let crate::Command::Halo(options) = command else { panic!("not halo") };
        check(&options, size)
    }

    #[test]
    fn a_rank_grid_is_chosen_or_checked() {
        assert_eq!(checked("--grid 8x8x8", 4), Ok([2, 2, 1]));
        assert_eq!(checked("--grid 8x8x8 --ranks 4x1x1", 4), Ok([1, 1, 4]));
        assert_eq!(checked("--grid 1x1x9 --halo 1", 3), Ok([3, 1, 1]));
    }

    #[test]
    fn every_misfit_names_its_argument() {
        let refused =
            |arguments: &str, size| checked(arguments, size).expect_err("must be refused");
        assert_eq!(
            refused("--grid 8x8x8 --ranks 2x2x2", 4),
            "--ranks: 2x2x2 needs 8 ranks; the job has 4"
        );
        assert_eq!(
            refused("--grid 8x8x8 --ranks 4294967296x4294967296x4294967296", 4),
            "--ranks: 4294967296x4294967296x4294967296 needs too many ranks; the job has 4"
        );
        assert_eq!(
            refused("--grid 8x8x2 --ranks 1x1x4", 4),
            "--ranks: the number of ranks along z is 4; it must be at most 2, the grid's extent"
        );
        assert_eq!(
            refused("--grid 8x8x8 --halo 5 --ranks 2x1x1", 2),
            "--halo: 5 is too large; it must be at most 4, the smallest extent of a block along x \
             (8x8x8 cells on 2x1x1 ranks)"
        );
        assert!(refused("--grid 2x2x2", 16).starts_with("--grid: 2x2x2 cannot be cut into 16"));
        assert!(refused("--grid 1000000x1000000x1000000", 1).contains("16.0 EB of memory"));
        let huge = i64::MAX;
        assert!(
            refused(&format!("--grid {huge}x{huge}x{huge} --halo {huge}"), 1).contains("memory")
        );
        assert!(refused("--grid 8x8x8 --fields 2000", 1).starts_with("--fields: 2000"));
    }
}
