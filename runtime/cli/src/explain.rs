//! `typepack explain`: what a datatype is, how it lies in memory, what packs it.
//!
//! Everything is made by the engine's `text` and by `typepack-explain`, and the text of one kernel by
//! the code generator (`kernel.rs`); here are the arguments and the files. One rank works, whatever the number of ranks.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use typepack::Universe;
use typepack::engine::text::{self, File};
use typepack::engine::{Datatype, Settings};
use typepack_explain::Options as Report;

use crate::agree::{FAILURE, Stop, USAGE, agree};
use crate::kernel;

/// The arguments; the texts here and at `Command::Explain` in `main.rs` are the help.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  typepack explain 'vector(4, 2, 5, double)'
  typepack explain 'resized(0, 8, vector(4, 1, 6, double))' --count 3 --svg columns.svg
  typepack explain --file types.toml tile
  typepack explain 'vector(9, 1, 4, double)' --asm --direction unpack

Types are written as constructor calls, counts left out where lists imply them:
  contiguous(n, T)  vector(n, length, stride, T)  hvector(n, length, bytes, T)
  indexed([lengths], [displacements], T)  indexed_block(length, [displacements], T)  hindexed…
  struct([lengths], [bytes], [types])  subarray([sizes], [subsizes], [starts], C, T)
  resized(lb, extent, T)  dup(T)
Lists may contain copies (3 x 8) and ranges (0..100 step 4); basic types are double, int, f64, ….")]
pub struct Options {
    /// The type: an expression, or with --file also a name of it
    #[arg(value_name = "TYPE")]
    pub ty: String,
    /// Number of elements [default: that of the file's layout, else 1]
    #[arg(long, value_name = "N", value_parser = elements, allow_hyphen_values = true)]
    pub count: Option<u64>,
    /// Read names of types from a TOML file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Draw the layout to FILE
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Whether the drawing is in colour
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    pub colour: Colour,
    /// Print a compiled kernel instead: its parameters, size, compile time and CLIF
    #[arg(long)]
    pub clif: bool,
    /// Print a compiled kernel instead: its parameters, size, compile time and instructions
    #[arg(long)]
    pub asm: bool,
    /// Whose kernel: the nest's number in the report's "Execution", from 0 [default: 0]
    #[arg(long, value_name = "N", value_parser = nest, allow_hyphen_values = true)]
    pub nest: Option<usize>,
    /// Which kernel of the nest [default: pack]
    #[arg(long, value_enum)]
    pub direction: Option<Way>,
}

/// The direction of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// From memory to packed bytes
    Pack,
    /// From packed bytes to memory
    Unpack,
}

/// When to draw in colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// If standard output is a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

fn nest(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("'{text}' is not the number of a nest"))
}

fn elements(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number of elements"))
}

/// Runs the command on rank 0; the other ranks wait for its answer.
pub fn run(options: &Options, universe: &Universe) -> Result<(), Stop> {
    let world = universe.world();
    let checked = || kernel::check(options).and_then(|()| read(options));
    let asked = (world.rank() == 0).then(checked).transpose();
    let asked = agree(&world, asked, USAGE)?;
    let answer = asked.map_or(Ok(()), |(ty, count)| explained(options, &ty, count));
    agree(&world, answer, FAILURE)
}

fn explained(options: &Options, ty: &Datatype, count: u64) -> Result<(), String> {
    if options.clif || options.asm {
        return print(&kernel::text(options, ty)?);
    }
    let count = options.count.unwrap_or(count);
    let colour = match options.colour {
        Colour::Auto => std::io::stdout().is_terminal(),
        Colour::Always => true,
        Colour::Never => false,
    };
    // The process-wide compiler, which `main.rs` has made eager: the report names the kernels.
    let compiler = Some(Arc::new(typepack::jit().clone()) as Arc<_>);
    let settings = Settings { compiler, ..Settings::default() };
    let report = Report { count, colour, settings };
    let report = typepack_explain::report(ty, &report).map_err(|error| error.to_string())?;
    if let Some(path) = &options.svg {
        let failed = |error: &dyn Display| format!("--svg: {}: {error}", path.display());
        std::fs::write(path, typepack_explain::svg(ty, count)).map_err(|error| failed(&error))?;
    }
    print(&report)
}

fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).map_err(|error| format!("standard output: {error}"))
}

/// The type, and how many elements of it the file has.
fn read(options: &Options) -> Result<(Datatype, u64), String> {
    let Some(path) = &options.file else {
        let ty = text::parse(&options.ty).map_err(|error| error.render(&options.ty))?;
        return Ok((ty, 1));
    };
    let failed = |error: &dyn Display| format!("--file: {}: {error}", path.display());
    let source = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    let file = File::parse(&source).map_err(|error| failed(&error.render(&source)))?;
    if let Some(layout) = file.layouts().iter().find(|layout| layout.name == options.ty) {
        return Ok((layout.datatype.clone(), layout.count));
    }
    let ty = file.expression(&options.ty).map_err(|error| error.render(&options.ty))?;
    Ok((ty, 1))
}
