//! `typepack-bench results`: writes `bench-suite/RESULTS.md` from the records.

use super::{Failure, failed, print_out, usage};
use std::path::PathBuf;
use typepack_bench::results;

#[derive(clap::Args)]
pub(crate) struct ResultsArguments {
    /// The folder with the records.
    #[arg(long, value_name = "DIR", default_value = "bench-suite/record")]
    record: PathBuf,
    /// Write the page to this file. The page links to the records in the folder `record` beside it.
    #[arg(long, value_name = "FILE", default_value = "bench-suite/RESULTS.md")]
    out: PathBuf,
    /// Write nothing. Fail if the file differs from the page that would be written.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &ResultsArguments) -> Result<(), Failure> {
    let sources =
        results::read(&arguments.record).map_err(|line| usage(format!("--record {line}")))?;
    let text = results::text(&sources, "record");
    let out = arguments.out.display();
    if arguments.check {
        let found = std::fs::read_to_string(&arguments.out)
            .map_err(|e| usage(format!("--out {out}: {e}")))?;
        if found != text {
            return Err(failed(format!(
                "--out {out}: out of date; `typepack-bench results` writes it"
            )));
        }
        return Ok(());
    }
    std::fs::write(&arguments.out, &text).map_err(|e| failed(format!("--out {out}: {e}")))?;
    print_out(&format!("{out}\n"))
}
