//! The arguments of `typepack explain`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The arguments. `typepack explain --help` prints the comments of the fields and that of `Command::Explain`
/// in `main.rs`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  typepack explain 'vector(4, 2, 5, double)'
  typepack explain 'vector(1000, 1, 2, double)' --time
  typepack explain 'resized(0, 8, vector(4, 1, 6, double))' --count 3 --svg columns.svg
  typepack explain --file types.toml tile
  typepack explain 'vector(9, 1, 4, double)' --asm --direction unpack
  typepack explain --section 'real(8) a(64,64) (1:63:2, 3:40)'
  typepack explain --file-view 'subarray([4, 6], [2, 3], [{0|0|2|2}, {0|3|0|3}], C, double)'

A type is a constructor call. A count that the length of a list implies is left out:
  contiguous(n, T)  vector(n, length, stride, T)  hvector(n, length, bytes, T)
  indexed([lengths], [displacements], T)  indexed_block(length, [displacements], T)  hindexed…
  struct([lengths], [bytes], [types])  subarray([sizes], [subsizes], [starts], C, T)
  resized(lb, extent, T)  dup(T)
Lists may contain copies (3 x 8) and ranges (0..100 step 4); basic types are double, int, f64, ….")]
pub struct Options {
    /// The type: an expression, or with --file also a name from the file
    #[arg(value_name = "TYPE")]
    pub ty: String,
    /// Also show the tree, the bounds, the program after each pass, and the kernels
    #[arg(long, short)]
    pub verbose: bool,
    /// Measure how fast the type is packed: GB/s for 1 KiB to 1 MiB, beside the interpreter and memcpy
    #[arg(long, conflicts_with_all = ["file_view", "clif", "asm"])]
    pub time: bool,
    /// Number of elements [default: the count of the file's layout, else 1]
    #[arg(long, value_name = "N", value_parser = elements, allow_hyphen_values = true)]
    pub count: Option<u64>,
    /// Read named types from a TOML file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Draw the layout to FILE
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// The type is a section of an array in Fortran: a declaration, and the subscripts of the section. The
    /// drawing shows the whole array
    #[arg(long, conflicts_with = "file_view")]
    pub section: bool,
    /// Draw where the bytes of each rank lie in a file: the type is the filetype of a view. A list
    /// such as {0|3} has one alternative for each rank
    #[arg(long)]
    pub file_view: bool,
    /// Byte of the file at which the view begins, or a list with one for each rank [default: 0]
    #[arg(long, value_name = "BYTE", allow_hyphen_values = true)]
    pub displacement: Option<String>,
    /// When to draw in colour
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    pub colour: Colour,
    /// Print a compiled kernel instead of the report: its parameters, size, compile time and CLIF
    #[arg(long)]
    pub clif: bool,
    /// Print a compiled kernel instead of the report: its parameters, size, compile time and instructions
    #[arg(long)]
    pub asm: bool,
    /// Number of the kernel's nest in the report's "Execution", from 0 [default: 0]
    #[arg(long, value_name = "N", value_parser = nest, allow_hyphen_values = true)]
    pub nest: Option<usize>,
    /// Direction of the kernel [default: pack]
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
    text.parse().map_err(|_| {
        format!("'{text}' is not a nest number; it must be a whole number from 0 to 2^64 - 1")
    })
}

fn elements(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!(
            "'{text}' is not a number of elements; it must be a whole number from 0 to 2^64 - 1"
        )
    })
}
