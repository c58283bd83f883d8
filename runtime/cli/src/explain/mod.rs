//! `typepack explain`: describes a datatype, its layout in memory, and the kernels that pack it.
//!
//! The engine's module `text` parses the type, the crate `typepack-explain` makes the report, and `kernel.rs`
//! makes the text about one kernel. `time.rs` measures. `file_view.rs` has the views of several ranks. `section.rs`
//! reads sections of arrays in Fortran. `options.rs` has the arguments. The functions here read and write the files.
//! Only rank 0 does this work; the other ranks wait.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::Arc;

use typepack::Universe;
use typepack::engine::text::{self, File};
use typepack::engine::{Datatype, Settings};
use typepack_explain::{FileRanks, Options as Report};
use typepack_job::sys::named;

use crate::agree::{FAILURE, Stop, USAGE, agree};

mod file_view;
mod kernel;
mod options;
mod section;
mod time;

use options::Colour;
pub use options::Options;

/// The types that the user asks about.
enum Subject {
    /// One type and the number of elements.
    Type(Datatype, u64),
    /// The views of several ranks of a file.
    Views(FileRanks),
}

/// Runs the command on rank 0. The other ranks wait until rank 0 has succeeded or failed.
pub fn run(options: &Options, universe: &Universe) -> Result<(), Stop> {
    let world = universe.world();
    let checked = || {
        kernel::check(options)?;
        file_view::check(options)?;
        section::check(options)?;
        subject(options)
    };
    let asked = (world.rank() == 0).then(checked).transpose();
    let asked = agree(&world, asked, USAGE)?;
    let answer = asked.map_or(Ok(()), |subject| explained(options, &subject));
    agree(&world, answer, FAILURE)
}

fn explained(options: &Options, subject: &Subject) -> Result<(), String> {
    let colour = match options.colour {
        Colour::Auto => std::io::stdout().is_terminal(),
        Colour::Always => true,
        Colour::Never => false,
    };
    let (report, picture) = match subject {
        Subject::Views(ranks) => {
            let report = ranks.report(colour).map_err(|error| error.to_string())?;
            (report, options.svg.is_some().then(|| ranks.svg()))
        }
        Subject::Type(ty, _) if options.clif || options.asm => {
            return print(&kernel::text(options, ty)?);
        }
        Subject::Type(ty, count) => {
            let count = *count;
            // The report names kernels, so it needs the compiler of this process. Unless the user has set
            // `TYPEPACK_JIT`, `main.rs` has set it to `eager`, so the compiler compiles each kernel at commit.
            let compiler = Some(Arc::new(typepack::jit().clone()) as Arc<_>);
            let settings = Settings { compiler, ..Settings::default() };
            let plan = ty.commit_with(&settings).map_err(|error| error.to_string())?;
            let report = Report { count, colour, settings };
            let picture = options.svg.is_some().then(|| typepack_explain::svg(ty, count));
            let mut text = match options.verbose {
                true => typepack_explain::report(ty, &report)
                    .map(|text| format!("{}\n\n{text}", typepack_explain::verdict(&plan))),
                false => typepack_explain::brief(ty, &report),
            }
            .map_err(|error| error.to_string())?;
            if options.time {
                text = format!("{text}\n{}", time::table(ty, &plan)?);
            }
            (text, picture)
        }
    };
    if let (Some(path), Some(picture)) = (&options.svg, picture) {
        let failed = |error: &dyn Display| format!("--svg: {}: {error}", path.display());
        named::write(path, picture).map_err(|error| failed(&error))?;
    }
    print(&report)
}

/// Returns what the user asks about.
fn subject(options: &Options) -> Result<Subject, String> {
    if !options.file_view {
        let (ty, count) = match options.section {
            true => (section::read(&options.ty)?, 1),
            false => read(options, &options.ty)?,
        };
        return Ok(Subject::Type(ty, options.count.unwrap_or(count)));
    }
    let typed = |(place, text): (u64, String)| Ok::<_, String>((place, read(options, &text)?.0));
    let views: Vec<_> =
        file_view::views(options)?.into_iter().map(typed).collect::<Result<_, String>>()?;
    let ranks = FileRanks::new(&views, options.count.unwrap_or(1));
    Ok(Subject::Views(ranks.map_err(|error| error.to_string())?))
}

fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).map_err(|error| format!("standard output: {error}"))
}

/// Returns the type that `text` names, and the number of elements. If `text` names a layout of the file, the
/// number is the layout's count; otherwise it is 1.
fn read(options: &Options, text: &str) -> Result<(Datatype, u64), String> {
    let Some(path) = &options.file else {
        let ty = text::parse(text).map_err(|error| error.render(text))?;
        return Ok((ty, 1));
    };
    let failed = |error: &dyn Display| format!("--file: {}: {error}", path.display());
    let source = named::read_text(path, named::TEXT_MAX).map_err(|error| failed(&error))?;
    let file = File::parse(&source).map_err(|error| failed(&error.render(&source)))?;
    if let Some(layout) = file.layouts().iter().find(|layout| layout.name == text) {
        return Ok((layout.datatype.clone(), layout.count));
    }
    let ty = file.expression(text).map_err(|error| error.render(text))?;
    Ok((ty, 1))
}
