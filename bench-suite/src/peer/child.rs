//! The child process of a peer: opens one MPI and answers the lines of `session.rs`.
//!
//! | line read | answer |
//! |---|---|
//! | (start) | `@ready VERSION`; or `@error LINE`, and the process ends |
//! | `layout COUNT MEMORY PACKED TYPE` | `@ok` if the MPI's answers are right, or `@error LINE` |
//! | `storm` with the arguments of `layout` | the same; each call then makes a new type (`../storm.rs`) |
//! | `turn pack`, `turn unpack` | `@ns NANOSECONDS` per call: the median of one turn |
//!
//! Answers begin with `@` because the MPI may also print lines on standard output. COUNT and TYPE describe
//! the layout, TYPE in the engine's text form. The engine and the MPI both make this type, and this
//! process compares the MPI's answers with those of the oracle (the engine's naive walk over the typemap).
//! MEMORY and PACKED are the paths of the buffers of the parent process, so that all processes work on the
//! same pages.

use super::competitor::{Packer, Storm};
use super::library::Mpi;
use crate::buffer::Buffer;
use crate::competitor::Competitor;
use crate::layout::Layout;
use crate::measure::{calibrate, turn};
use crate::prepare::Bench;
use crate::split;
use std::io::{BufRead, Write};
use std::path::Path;
use typepack_engine::Datatype;
use typepack_engine::kernel::Direction;

/// A layout that has been verified and can be measured.
struct Ready {
    bench: Bench,
    /// The number of calls per sample for packing and for unpacking; `None` before the first turn.
    calls: [Option<usize>; 2],
}

/// Answers the lines on standard input until the input ends. The parent process (`session.rs`) does not
/// close the input but kills this process, so the exit handlers of the MPI library do not run. They could
/// fail, because the process is not a rank of a job.
///
/// # Errors
///
/// Returns a one-line message if standard input cannot be read or standard output cannot be written.
pub fn serve(library: &Path) -> Result<(), String> {
    let mpi = match Mpi::open(library).and_then(|mpi| Ok((mpi.version()?, mpi))) {
        Ok((version, mpi)) => {
            answer(&format!("ready {version}"))?;
            // The library stays loaded until the process ends, so `mpi` may also live that long.
            &*Box::leak(Box::new(mpi))
        }
        Err(line) => return answer(&format!("error {line}")),
    };
    let mut ready = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| format!("standard input: {e}"))?;
        let reply = match split::once(&line, b' ') {
            Some((word @ ("layout" | "storm"), rest)) => {
                // Frees the buffers of the previous layout first, because the buffers of two large layouts
                // might not fit into memory together.
                ready = None;
                open(mpi, rest, word == "storm").map(|made| {
                    ready = Some(made);
                    "ok".to_owned()
                })
            }
            Some(("turn", word)) => match (&mut ready, direction(word)) {
                (Some(ready), Some(direction)) => Ok(format!("ns {}", ready.turn(direction))),
                (_, None) => Err(format!("the direction is '{word}'; it must be pack or unpack")),
                (None, _) => {
                    Err(format!("turn {word}: no layout is open; send layout or storm first"))
                }
            },
            _ => Err(format!("unknown line {line}")),
        };
        answer(&reply.unwrap_or_else(|line| format!("error {line}")))?;
    }
    Ok(())
}

fn direction(word: &str) -> Option<Direction> {
    match word {
        "pack" => Some(Direction::Pack),
        "unpack" => Some(Direction::Unpack),
        _ => None,
    }
}

fn open(mpi: &'static Mpi, text: &str, storm: bool) -> Result<Ready, String> {
    let mut words = text.splitn(4, ' ');
    let mut word = || words.next().ok_or("layout and storm need a count, two paths and a type");
    let (count, memory, packed, text) = (word()?, word()?, word()?, word()?);
    let count = count.parse::<u64>().map_err(|e| format!("count {count}: {e}"))?;
    let ty: Datatype =
        text.parse().map_err(|e: typepack_engine::text::ParseError| e.to_string())?;
    let layout = Layout::of("", ty, count)?;
    let packer = Packer::new(mpi, &layout)?;
    let competitor: Box<dyn Competitor> =
        if storm { Box::new(Storm(packer)) } else { Box::new(packer) };
    let [all, payload] = Bench::lengths(&layout);
    let (memory, packed) = (Buffer::open(memory, all)?, Buffer::open(packed, payload)?);
    let (bench, faults) = Bench::sound(layout, vec![competitor], memory, packed);
    faults.into_iter().next().map_or(Ok(()), Err)?;
    Ok(Ready { bench, calls: [None; 2] })
}

impl Ready {
    fn turn(&mut self, direction: Direction) -> f64 {
        let known = &mut self.calls[usize::from(direction == Direction::Unpack)];
        let calls = *known.get_or_insert_with(|| calibrate(&mut self.bench, 0, direction));
        turn(&mut self.bench, 0, direction, calls)
    }
}

fn answer(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let line: Vec<&str> = line.split_whitespace().collect();
    writeln!(out, "@{}", line.join(" "))
        .and_then(|()| out.flush())
        .map_err(|e| format!("standard output: {e}"))
}
