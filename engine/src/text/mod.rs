//! Datatypes as text: one-line expressions, and TOML files that give names to expressions.
//!
//! Command lines, golden files and benches read types from text and print types as text. An expression
//! consists of constructor calls and of integer arithmetic in their arguments.
//!
//! - `constructors.rs`: the table of constructors, with the name and the parameters of each constructor
//! - `reader.rs`: reads words, numbers and lists
//! - `parse.rs`: turns expressions into types; `print.rs`: turns types into expressions
//! - `error.rs`: errors, which mark the wrong place in the text with carets
//! - `file.rs`: reads TOML files of named types and layouts (feature `text-file`)
//!
//! # Grammar
//!
//! ```text
//! text     = { name "=" type ";" } type [ ";" ]      bindings, then the result
//! type     = constructor "(" [ argument { "," argument } ] ")"
//!          | named type                              double, MPI_DOUBLE, f64, 2int, …
//!          | name                                    bound before, or in the file
//! argument = number | word | numbers | type | types  depends on the constructor's table row
//! numbers  = "[" [ run { "," run } [ "," ] ] "]"
//! run      = number | word
//!          | number "x" (number | word)              copies: `3 x 8` is `8, 8, 8`
//!          | number ".." number [ "step" number ]    `0..10 step 4` is `0, 4, 8`; end not included
//! types    = "[" [ [ number "x" ] type { "," … } [ "," ] ] "]"
//! number   = product { ("+" | "-") product }
//! product  = factor { "*" factor }
//! factor   = digits | "-" factor | "(" number ")"    digits may contain `_`
//! ```
//!
//! `#` begins a comment, which extends to the end of the line. Letter case does not matter, except in
//! bound names and in Rust names such as `f64`. A constructor may have its C name
//! (`MPI_Type_create_hvector`). The arguments are those of the MPI call, without those counts that only
//! state the lengths of lists. The old type is the last argument. Words for numbers are `C` and `Fortran`
//! (subarray, darray), `block`, `cyclic`, `none` and `default` (darray), and `undefined` (f90_real,
//! f90_complex). The text does not record whether a call was made with `int` or with large counts. (Only
//! `MPI_Type_get_envelope` and `MPI_Type_get_contents` show this difference.) Examples:
//!
//! ```
//! use typepack_engine::Datatype;
//! let column: Datatype = "vector(128, 1, 8*128, double)".parse()?;
//! let plane: Datatype = "subarray([130, 130], [128, 128], [1, 1], C, f64)".parse()?;
//! let mixed: Datatype = "struct([1, 1, 2], [0, 4, 8], [char, int, double])".parse()?;
//! let tiled: Datatype = "tile = resized(0, 64, vector(2, 1, 4, f64)); contiguous(8, tile)".parse()?;
//! assert_eq!((column.size(), plane.size()), (1024, 128 * 128 * 8));
//! assert_eq!((mixed.size(), tiled.extent()), (21, 512));
//! # Ok::<(), typepack_engine::text::ParseError>(())
//! ```
//!
//! Types may be nested as deeply as memory allows. [`MAX_PARENTHESES`] limits the nesting of
//! parentheses and signs in numbers, and [`MAX_ENTRIES`] limits the total number of list entries in a
//! text.

pub(crate) mod constructors;
mod error;
#[cfg(feature = "text-file")]
mod file;
mod parse;
pub(crate) mod print;
mod reader;

pub use error::ParseError;
#[cfg(feature = "text-file")]
pub use file::{File, FileError, Layout};
pub use parse::{parse, parse_in};
pub use print::{abridge, print};

/// Maximum total number of list entries in one text.
pub const MAX_ENTRIES: usize = 1 << 24;

/// Maximum nesting depth of parentheses and signs within a number.
pub const MAX_PARENTHESES: usize = 64;

impl std::str::FromStr for crate::Datatype {
    type Err = ParseError;

    /// Parses an expression; see [`parse`].
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text)
    }
}
