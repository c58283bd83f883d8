//! Parses the one-line text that `recipe.rs` and `generate.rs` print.
//!
//! The tests parse regression files with this code. Developers can also paste the case from a failure
//! message into a test.

use crate::generate::Case;
use crate::recipe::{Block, Dimension, F90, Recipe, Spread, StructCall, word};
use std::str::FromStr;
use typepack_engine::{DEFAULT_ARGUMENT, Distribution, Named, Order};

/// The error for a text that is not a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    position: usize,
    expected: String,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at byte {}: expected {}", self.position, self.expected)
    }
}

impl std::error::Error for ParseError {}

impl FromStr for Case {
    type Err = ParseError;

    /// Parses a text of the form `count * recipe`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader { text, position: 0 };
        let count = reader.number()?;
        let count = u64::try_from(count).map_err(|_| reader.error("a count of 0 or more"))?;
        reader.token("*")?;
        let recipe = reader.recipe()?;
        reader.end()?;
        Ok(Case { recipe, count })
    }
}

impl FromStr for Recipe {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader { text, position: 0 };
        let recipe = reader.recipe()?;
        reader.end()?;
        Ok(recipe)
    }
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, expected: &str) -> ParseError {
        ParseError { position: self.position, expected: expected.to_owned() }
    }

    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.position..].trim_start();
        self.position = self.text.len() - rest.len();
        rest
    }

    fn end(&mut self) -> Result<(), ParseError> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.error("the end")) }
    }

    fn accept(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.position += token.len();
        }
        found
    }

    fn token(&mut self, token: &str) -> Result<(), ParseError> {
        if self.accept(token) { Ok(()) } else { Err(self.error(&format!("`{token}`"))) }
    }

    fn span(&mut self, what: &str, belongs: fn(u8) -> bool) -> Result<&'a str, ParseError> {
        let rest = self.rest();
        let length = rest.bytes().take_while(|&b| belongs(b)).count();
        if length == 0 {
            return Err(self.error(what));
        }
        self.position += length;
        Ok(&rest[..length])
    }

    fn number(&mut self) -> Result<i64, ParseError> {
        let start = self.position;
        let digits = self.span("a number", |b| b == b'-' || b.is_ascii_digit())?;
        digits.parse().map_err(|_| {
            self.position = start;
            self.error("a 64-bit number")
        })
    }

    /// Parses a number and the comma after it.
    fn argument(&mut self) -> Result<i64, ParseError> {
        let number = self.number()?;
        self.token(",")?;
        Ok(number)
    }

    fn block(&mut self) -> Result<Block, ParseError> {
        let blocklength = self.number()?;
        self.token("@")?;
        Ok(Block { blocklength, displacement: self.number()? })
    }

    fn list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.token("[")?;
        let mut items = Vec::new();
        if self.accept("]") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.accept("]") {
                return Ok(items);
            }
            self.token(",")?;
        }
    }

    fn int(&mut self) -> Result<i32, ParseError> {
        let number = self.number()?;
        i32::try_from(number).map_err(|_| self.error("a 32-bit number"))
    }

    /// Parses a number, or the word `undefined` for a missing number.
    fn given(&mut self) -> Result<Option<i32>, ParseError> {
        if self.accept("undefined") { Ok(None) } else { self.int().map(Some) }
    }

    fn order(&mut self) -> Result<Order, ParseError> {
        let order = if self.accept("c") {
            Order::C
        } else {
            self.token("fortran")?;
            Order::Fortran
        };
        self.token(",")?;
        Ok(order)
    }

    fn spread(&mut self) -> Result<Spread, ParseError> {
        let size = self.number()?;
        self.token(":")?;
        let distribution = if self.accept("none") {
            Distribution::None
        } else if self.accept("block") {
            Distribution::Block
        } else {
            self.token("cyclic")?;
            Distribution::Cyclic
        };
        self.token("/")?;
        let argument = if self.accept("default") { DEFAULT_ARGUMENT } else { self.int()? };
        self.token("/")?;
        Ok(Spread { size, distribution, argument, processes: self.int()? })
    }

    fn named(&mut self) -> Result<Named, ParseError> {
        let start = self.position;
        match self.recipe()? {
            Recipe::Named(named) => Ok(named),
            _ => {
                self.position = start;
                Err(self.error("a named type"))
            }
        }
    }

    fn last(&mut self) -> Result<Box<Recipe>, ParseError> {
        let old = self.recipe()?;
        self.token(")")?;
        Ok(Box::new(old))
    }

    fn recipe(&mut self) -> Result<Recipe, ParseError> {
        let start = self.position;
        let name = self.span("a type", |b| b == b'_' || b.is_ascii_alphanumeric())?;
        if !self.accept("(") {
            let markers = [Named::LB, Named::UB];
            return Named::all()
                .chain(markers)
                .find(|&n| word(n) == name)
                .map(Recipe::Named)
                .ok_or_else(|| {
                    self.position = start;
                    self.error("a named type or a constructor with arguments")
                });
        }
        let bytes = name.starts_with('h');
        Ok(match name {
            "contiguous" => Recipe::Contiguous { count: self.argument()?, old: self.last()? },
            "vector" | "hvector" => Recipe::Vector {
                bytes,
                count: self.argument()?,
                blocklength: self.argument()?,
                stride: self.argument()?,
                old: self.last()?,
            },
            "indexed" | "hindexed" => {
                let blocks = self.list(Self::block)?;
                self.token(",")?;
                Recipe::Indexed { bytes, blocks, old: self.last()? }
            }
            "indexed_block" | "hindexed_block" => {
                let blocklength = self.argument()?;
                let displacements = self.list(Self::number)?;
                self.token(",")?;
                Recipe::IndexedBlock { bytes, blocklength, displacements, old: self.last()? }
            }
            "struct" | "mpi1_struct" | "fortran_struct" => {
                let call = match name {
                    "struct" => StructCall::Create,
                    "mpi1_struct" => StructCall::Mpi1,
                    _ => StructCall::Fortran,
                };
                let members = self.list(|reader| Ok((reader.block()?, reader.recipe()?)))?;
                self.token(")")?;
                Recipe::Struct { call, members }
            }
            "darray" => {
                let order = self.order()?;
                let rank = self.int()?;
                self.token(",")?;
                let dimensions = self.list(Self::spread)?;
                self.token(",")?;
                Recipe::Darray { order, rank, dimensions, old: self.last()? }
            }
            "f90_real" | "f90_complex" => {
                let precision = self.given()?;
                self.token(",")?;
                let range = self.given()?;
                self.token(")")?;
                let kind = if name == "f90_real" { F90::Real } else { F90::Complex };
                Recipe::F90(kind(precision, range))
            }
            "f90_integer" => {
                let range = self.int()?;
                self.token(")")?;
                Recipe::F90(F90::Integer(range))
            }
            "value_index" => {
                let value = self.named()?;
                self.token(",")?;
                let index = self.named()?;
                self.token(")")?;
                Recipe::ValueIndex { value, index }
            }
            "subarray" => {
                let order = self.order()?;
                let dimensions = self.list(|reader| {
                    let size = reader.number()?;
                    reader.token(":")?;
                    let Block { blocklength: subsize, displacement: start } = reader.block()?;
                    Ok(Dimension { size, subsize, start })
                })?;
                self.token(",")?;
                Recipe::Subarray { order, dimensions, old: self.last()? }
            }
            "resized" => Recipe::Resized {
                lb: self.argument()?,
                extent: self.argument()?,
                old: self.last()?,
            },
            "dup" => Recipe::Dup { old: self.last()? },
            _ => {
                self.position = start;
                return Err(self.error("a constructor"));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Case, Mode, Stream};
    use arbitrary::Unstructured;

    #[test]
    fn every_generated_case_reads_back() {
        for index in 0..500 {
            let bytes = Stream::new(11, index).bytes(400);
            let case = Case::generate(&mut Unstructured::new(&bytes), Mode::Any).expect("bytes");
            let text = case.to_string();
            assert_eq!(text.parse::<Case>().as_ref(), Ok(&case), "{text}");
        }
    }

    #[test]
    fn errors_name_the_place() {
        let error = |text: &str| text.parse::<Case>().expect_err(text).to_string();
        assert_eq!(error("3 double"), "at byte 2: expected `*`");
        assert_eq!(error("-1 * double"), "at byte 2: expected a count of 0 or more");
        assert_eq!(
            error("1 * dup(bouble)"),
            "at byte 8: expected a named type or a constructor with arguments"
        );
        assert_eq!(error("1 * vector(1, 2, x, int)"), "at byte 17: expected a number");
        assert_eq!(error("1 * int int"), "at byte 8: expected the end");
    }
}
