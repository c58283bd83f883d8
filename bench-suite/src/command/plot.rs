//! `typepack-bench plot`: draws the figures of a record as SVG pictures.

use super::{Failure, failed, print_out, usage};
use std::path::PathBuf;
use typepack_bench::plot;
use typepack_bench::record::Record;

#[derive(clap::Args)]
pub(crate) struct PlotArguments {
    /// The CSV file of the record.
    #[arg(value_name = "RECORD.csv")]
    record: PathBuf,
    /// The folder for the pictures. The command makes it if it does not exist.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Runs the command.
pub(crate) fn run(arguments: &PlotArguments) -> Result<(), Failure> {
    let path = &arguments.record;
    let named = |error: String| usage(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| named(e.to_string()))?;
    let record = Record::parse(&text).map_err(|e| named(e.to_string()))?;
    let pictures = plot::pictures(&record).map_err(failed)?;
    if pictures.is_empty() {
        return Err(named("the record has no rows that `plot` can draw".to_owned()));
    }
    let out = &arguments.out;
    let written = |e: std::io::Error| failed(format!("--out {}: {e}", out.display()));
    std::fs::create_dir_all(out).map_err(written)?;
    for picture in pictures {
        let file = out.join(&picture.name);
        std::fs::write(&file, &picture.text).map_err(written)?;
        print_out(&format!("{}\n", file.display()))?;
    }
    Ok(())
}
