//! `typepack explain`: describes a datatype, its layout in memory, and the kernels that pack it.
//!
//! The engine's module `text` parses the type, the crate `typepack-explain` makes the report, and `kernel.rs`
//! makes the text about one kernel. `options.rs` has the arguments. The functions here read and write the
//! files. Only rank 0 does this work; the other ranks wait.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::Arc;

use typepack::Universe;
use typepack::engine::text::{self, File};
use typepack::engine::{Datatype, Settings};
use typepack_explain::Options as Report;

use crate::agree::{FAILURE, Stop, USAGE, agree};

mod kernel;
mod options;

use options::Colour;
pub use options::Options;

/// Runs the command on rank 0. The other ranks wait until rank 0 has succeeded or failed.
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
    // The report names kernels, so it needs the compiler of this process. `main.rs` has set this compiler to
    // `eager`, so that it compiles each kernel at commit.
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

/// Returns the type and the number of elements. If the user named a layout of the file, the number is the
/// layout's count; otherwise it is 1.
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
