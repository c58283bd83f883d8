//! `typepack-bench guidelines`: checks performance guidelines on random types.

use super::{Failure, failed, load, print_out, progress};
use clap::ValueEnum;
use std::path::PathBuf;
use typepack_bench::competitor::hand::Hands;
use typepack_bench::guidelines;
use typepack_bench::pin;
use typepack_jit::{Jit, Mode, Settings};

#[derive(clap::Args)]
pub(crate) struct GuidelineArguments {
    /// The seed of the random types.
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// The number of types. By default 100, with --quick 30.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    types: Option<u32>,
    /// Number of rounds. In each round, a type takes turns with the type or loop with which it is compared.
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: u16,
    /// Check fewer types.
    #[arg(long)]
    quick: bool,
    /// Print the summary (table), or every check (csv).
    #[arg(long, value_enum, default_value_t = GuidelineFormat::Table)]
    format: GuidelineFormat,
    /// Write the summary to this file. By default the summary goes to standard output, with --format csv
    /// to standard error.
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// The library with the hand loops that `scripts/bench` has built for this machine.
    #[arg(long, value_name = "LIBRARY", default_value = "target/hand/release/libtypepack_hand.so")]
    hand: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GuidelineFormat {
    Table,
    Csv,
}

/// Runs the command.
pub(crate) fn run(arguments: &GuidelineArguments) -> Result<(), Failure> {
    let types = arguments.types.unwrap_or(if arguments.quick { 30 } else { 100 });
    let hands = Hands::found(&arguments.hand);
    let load = load(1);
    let fault = pin::pin().err();
    let jit = Jit::new(Settings { mode: Mode::Lazy, ..Settings::default() });
    let (types, rounds) = (types as usize, usize::from(arguments.rounds));
    let mut checks = guidelines::run(arguments.seed, types, rounds, &jit, &hands.loops, progress);
    progress(0, 0);
    checks.faults.splice(0..0, fault);
    let summary = format!("{load}\n\n{}", guidelines::summary(&checks));
    if arguments.format == GuidelineFormat::Csv {
        print_out(&guidelines::csv(&checks))?;
    }
    match &arguments.summary {
        Some(path) => std::fs::write(path, summary)
            .map_err(|e| failed(format!("--summary {}: {e}", path.display()))),
        None if arguments.format == GuidelineFormat::Table => print_out(&summary),
        None => {
            eprint!("{summary}");
            Ok(())
        }
    }
}
