//! `typepack demo`: runs the same halo exchanges in three ways (kernels, interpreted datatypes, hand-written loops), and
//! compares the times.
//!
//! `scripts/demo` starts several jobs per way, each with `--csv`, and then draws all tables with `--draw`.
//! `exchange.rs` measures (`cells.rs` has the cells, `verify.rs` the verification), `record.rs` writes and reads the
//! tables, and `picture.rs` draws them. `datatypes.c` measures the same exchanges in another MPI library.

mod cells;
mod exchange;
mod picture;
mod record;
mod verify;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use typepack::Universe;
use typepack_job::sys::named;

use crate::agree::{FAILURE, Stop, USAGE, agree};
use crate::halo::Way;
use record::Record;

/// The arguments; the text at `Command::Demo` in `main.rs` is the help.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  mpiexec -n 2 typepack demo --way hand --csv hand.csv
  mpiexec -n 2 typepack demo --way typepack --csv typepack.csv
  typepack demo --draw hand.csv --draw typepack.csv --svg demo.svg")]
pub struct Options {
    /// Measure this way of exchanging halos
    #[arg(long, value_enum, requires = "csv")]
    pub way: Option<Way>,
    /// Write the measured times to FILE
    #[arg(long, value_name = "FILE", requires = "way")]
    pub csv: Option<PathBuf>,
    /// Print and draw the times in FILE, which an earlier run wrote with --csv. Give --draw once per run;
    /// of several runs of one way, the least time is shown, and the range of the times
    #[arg(long, value_name = "FILE", requires = "svg")]
    pub draw: Vec<PathBuf>,
    /// Draw the picture to FILE
    #[arg(long, value_name = "FILE", requires = "draw")]
    pub svg: Option<PathBuf>,
}

/// Prints and draws the tables of all runs side by side.
fn draw(tables: &[PathBuf], svg: &Path) -> Result<(), String> {
    let mut records = Vec::new();
    for table in tables {
        records.extend(record::read(table)?);
    }
    let cases = picture::cases(&records);
    let picture = picture::svg(&cases).map_err(|what| format!("--svg: {what}"))?;
    named::write(svg, picture).map_err(|error| format!("--svg: {}: {error}", svg.display()))?;
    let text = picture::table(&cases);
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| format!("standard output: {error}"))
}

/// Measures one way, or draws the tables of earlier runs.
pub fn run(options: &Options, universe: &Universe) -> Result<(), Stop> {
    let world = universe.world();
    let root = world.rank() == 0;
    if options.way.is_some() && options.svg.is_some() {
        let line = "--way and --draw: only one of them is possible (see typepack demo --help)";
        return agree(&world, Err(line.to_owned()), USAGE);
    }
    if let Some(svg) = &options.svg {
        let drawn = if root { draw(&options.draw, svg) } else { Ok(()) };
        return agree(&world, drawn, FAILURE);
    }
    let (Some(way), Some(csv)) = (options.way, &options.csv) else {
        let line = "--way or --draw: one of them is required (see typepack demo --help)";
        return agree(&world, Err(line.to_owned()), USAGE);
    };
    if world.size() != 2 {
        let line =
            format!("demo: the number of ranks is {}; it must be 2 (mpiexec -n 2)", world.size());
        return agree(&world, Err(line), USAGE);
    }
    let mut records = Vec::new();
    let mut said = |record: Record| {
        if root {
            // If the reader of the output closes the pipe early, the demo still succeeds.
            let _nobody_reads = writeln!(std::io::stdout(), "  {record}");
        }
        records.push(record);
    };
    exchange::measure(&world, way, &mut said)?;
    let written = if root { record::write(csv, &records) } else { Ok(()) };
    agree(&world, written, FAILURE)
}
