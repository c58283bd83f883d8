//! The arguments of `typepack halo`. The checks here look at one argument at a time.
//!
//! `job.rs` does the checks that depend on several arguments or on the job, for example whether the rank grid
//! matches the number of ranks, and whether a file exists.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

/// The arguments. `typepack halo --help` prints the comments of the fields and that of `Command::Halo` in
/// `main.rs`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  typepack halo --grid 64x64x64 --verify
  mpiexec -n 2 typepack halo --grid 128x128x128 --ranks 2x1x1 --verify
  mpiexec -n 4 typepack halo --grid 64x64x64 --stencil box --halo 2 --fields 3 --verify
  mpiexec -n 2 typepack halo --grid 128x128x128 --jit off --csv off.csv
  mpiexec -n 2 typepack halo --grid 128x128x128 --compare off.csv --svg halo.svg
  mpiexec -n 2 typepack halo --grid 64x64x64 --steps 60 --checkpoint heat.ckp --every 20
  mpiexec -n 4 typepack halo --grid 64x64x64 --steps 90 --restart heat.ckp

Sizes have the form XxYxZ; x is contiguous in memory. An initial field is a raw file of exactly
NX*NY*NZ little-endian doubles, x fastest, or a NumPy .npy file of shape (NZ, NY, NX), or
(F, NZ, NY, NX) with one cube per field. With several fields and one cube, field f starts as
cube / (1 + f) + f.")]
pub struct Options {
    /// Cells of the whole grid, for example 128x128x128
    #[arg(long, value_name = "NXxNYxNZ", allow_hyphen_values = true)]
    pub grid: Triple,
    /// Ranks along each dimension; their product is the number of ranks [default: the rank grid
    /// with the smallest surface between blocks]
    #[arg(long, value_name = "PXxPYxPZ", allow_hyphen_values = true)]
    pub ranks: Option<Triple>,
    /// Width of the halo in cells; the ranks exchange it every W steps
    #[arg(long, value_name = "W", default_value = "1", allow_hyphen_values = true)]
    pub halo: Count,
    /// 7-point (star) or 27-point (box) equation
    #[arg(long, value_enum, default_value_t = Stencil::Star)]
    pub stencil: Stencil,
    /// The edge of the grid: joined to the opposite edge, or a wall of constant value
    #[arg(long, value_enum, default_value_t = Boundary::Periodic)]
    pub boundary: Boundary,
    /// Number of fields, each coupled with the next one; one message carries all fields
    #[arg(long, value_name = "F", default_value = "1", allow_hyphen_values = true)]
    pub fields: Count,
    /// Number of time steps
    #[arg(long, value_name = "S", default_value = "100", allow_hyphen_values = true)]
    pub steps: Count,
    /// When to compile kernels [default: TYPEPACK_JIT, else lazy]
    #[arg(long, value_enum)]
    pub jit: Option<Jit>,
    /// How halos are exchanged
    #[arg(long, value_enum, default_value_t = Way::Typepack)]
    pub way: Way,
    /// Compare with a serial solution, bit for bit
    #[arg(long)]
    pub verify: bool,
    /// Write the times of each phase and rank to FILE
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw the times of each phase to FILE
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Also draw the times of an earlier run from its --csv FILE
    #[arg(long, value_name = "FILE", requires = "svg")]
    pub compare: Option<PathBuf>,
    /// Read the initial field from FILE (raw doubles or .npy) [default: generated]
    #[arg(long, value_name = "FILE")]
    pub init: Option<PathBuf>,
    /// Write checkpoints to FILE; the last one is whole at any time, even if the job is killed
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Steps from one checkpoint to the next; another one follows the last step [default: only that one]
    #[arg(long, value_name = "N", requires = "checkpoint", allow_hyphen_values = true)]
    pub every: Option<Count>,
    /// Continue from a checkpoint, on any number of ranks; --steps includes the steps of earlier runs
    #[arg(long, value_name = "FILE")]
    pub restart: Option<PathBuf>,
}

impl Options {
    /// Returns the options for a grid, a rank grid and a number of steps, with the defaults of the command
    /// line for all other options.
    pub fn new(grid: Triple, ranks: Triple, steps: Count) -> Self {
        Self {
            grid,
            ranks: Some(ranks),
            halo: Count(1),
            stencil: Stencil::Star,
            boundary: Boundary::Periodic,
            fields: Count(1),
            steps,
            jit: None,
            way: Way::Typepack,
            verify: false,
            csv: None,
            svg: None,
            compare: None,
            init: None,
            checkpoint: None,
            every: None,
            restart: None,
        }
    }
}

/// The neighbours that a cell's new value depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stencil {
    /// 7 points: neighbours across faces
    Star,
    /// 27 points: neighbours across faces, edges and corners
    Box,
}

/// The cells beyond the edge of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Boundary {
    /// The opposite edge
    Periodic,
    /// A wall of constant value
    Fixed,
}

/// When the JIT compiles kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Jit {
    /// Never
    Off,
    /// When a type has moved enough bytes
    Lazy,
    /// At commit
    Eager,
}

/// How halos are exchanged; for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// Datatypes with typepack's kernels
    Typepack,
    /// Datatypes, interpreted run of bytes by run of bytes (TYPEPACK_KERNEL=interpreter)
    Interpreter,
    /// Loops that pack faces into contiguous messages, without datatypes
    Hand,
}

macro_rules! named {
    ($($ty:ty),*) => {
        $(impl fmt::Display for $ty {
            /// Formats the value as the user writes it on the command line.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let value = self.to_possible_value();
                f.write_str(value.as_ref().map_or("", |value| value.get_name()))
            }
        })*
    };
}

named!(Stencil, Boundary, Jit, Way);

/// Three positive sizes in memory order (z, y, x). The text form is XxYxZ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triple(pub [usize; 3]);

impl FromStr for Triple {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(['x', 'X']).collect();
        let [x, y, z] = parts[..] else {
            return Err(format!("'{text}' is not of the form AxBxC"));
        };
        Ok(Self([positive(z)?, positive(y)?, positive(x)?]))
    }
}

impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [z, y, x] = self.0;
        write!(f, "{x}x{y}x{z}")
    }
}

/// A number of at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub usize);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        positive(text).map(Self)
    }
}

fn positive(text: &str) -> Result<usize, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("'{text}' is not a whole number"));
    }
    match text.parse::<i64>() {
        // The cast is lossless: the value is positive, and typepack runs only on systems where `usize` has 64 bits.
        Ok(value) if value >= 1 => Ok(value as usize),
        Ok(_) => Err(format!("{text} is too small; it must be at least 1")),
        Err(_) if text.starts_with('-') => {
            Err(format!("{text} is too small; it must be at least 1"))
        }
        Err(_) => Err(format!("{text} is too large; it must be at most {}", i64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_x_first_and_kept_z_first() {
        assert_eq!("4x5x6".parse(), Ok(Triple([6, 5, 4])));
        assert_eq!(Triple([6, 5, 4]).to_string(), "4x5x6");
    }

    #[test]
    fn bad_sizes_say_what_is_wrong() {
        let refused = |text: &str| text.parse::<Triple>().expect_err("must be refused");
        assert_eq!(refused("4x5"), "'4x5' is not of the form AxBxC");
        assert_eq!(refused("4x5x6x7"), "'4x5x6x7' is not of the form AxBxC");
        assert_eq!(refused("4x0x6"), "0 is too small; it must be at least 1");
        assert_eq!(refused("4x-3x6"), "-3 is too small; it must be at least 1");
        assert_eq!(refused("4x5x"), "'' is not a whole number");
        assert_eq!(refused("4x+5x6"), "'+5' is not a whole number");
        assert_eq!(
            refused("4x5x99999999999999999999"),
            "99999999999999999999 is too large; it must be at most 9223372036854775807"
        );
        assert_eq!(
            refused("4x5x-99999999999999999999"),
            "-99999999999999999999 is too small; it must be at least 1"
        );
    }
}
