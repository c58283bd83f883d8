//! Reads the definitions of the rows and bars of files: `definitions/io.toml`, or a file of the same form.
//!
//! `suite.rs` measures the [`Definition`]s, and `../row/bar.rs` compares the results with the [`Bar`]s. Only the C
//! program (`message/file.c`) checks the words of a pattern, such as `strided 8`.

use crate::definition::rows_and_bars;
use crate::row::Row;
use crate::row::bar::Bar;
use serde::Deserialize;

const BUILT_IN: &str = include_str!("../../definitions/io.toml");

/// Whether an access writes the file or reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The access writes.
    Write,
    /// The access reads.
    Read,
}

impl Direction {
    /// Both directions, in the order of the rows.
    pub const ALL: [Self; 2] = [Self::Write, Self::Read];

    /// Returns the name of this direction in rows and in the lines for the C program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// Whether all ranks make one collective call, or each rank calls on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Calls {
    /// All ranks make one collective call.
    Collective,
    /// Each rank calls alone, at the same time as the others.
    Independent,
}

impl Calls {
    /// Both ways to call, in the order of the rows.
    pub const ALL: [Self; 2] = [Self::Collective, Self::Independent];

    /// Returns the name of this way in rows and in the lines for the C program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Collective => "collective",
            Self::Independent => "independent",
        }
    }
}

/// One row to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The name of the row, such as `8B-write-collective`.
    pub name: String,
    /// The class of the row. The bars of this class apply to the row.
    pub class: String,
    /// A human-readable description of the pattern.
    pub text: String,
    /// The words of the pattern for the C program.
    pub pattern: String,
    /// The number of bytes of one piece; `None` if the row is in no picture.
    pub block: Option<u64>,
    /// Whether the row writes or reads.
    pub direction: Direction,
    /// Whether all ranks make one collective call, or each rank calls on its own.
    pub calls: Calls,
    /// True if the file is not in the page cache when an access begins.
    pub cold: bool,
    /// True if the row is part of a quick run.
    pub quick: bool,
}

impl Definition {
    /// Returns the line that tells the C program to prepare this row with a file of `bytes` bytes at `path`.
    pub fn command(&self, path: &str, bytes: u64) -> String {
        let cache = if self.cold { "cold" } else { "warm" };
        let (direction, calls) = (self.direction.name(), self.calls.name());
        format!("row file {path} {bytes} {cache} {direction} {calls} {}", self.pattern)
    }

    /// Returns the row to measure, which has no figures yet. All ranks access `bytes` bytes together.
    pub fn measured(&self, bytes: u64) -> Row {
        Row {
            name: self.name.clone(),
            part: format!("{}-{}", self.direction.name(), self.calls.name()),
            class: self.class.clone(),
            size: self.block,
            bytes,
            ..Row::default()
        }
    }
}

/// The rows and bars of a definitions file.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// The rows in the order of the file.
    pub rows: Vec<Definition>,
    /// The bars in the order of the file.
    pub bars: Vec<Bar>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowDefinition {
    name: String,
    #[serde(default)]
    class: String,
    text: String,
    pattern: String,
    block: Option<u64>,
    directions: Option<Vec<Direction>>,
    calls: Option<Vec<Calls>>,
    #[serde(default)]
    cold: bool,
    #[serde(default)]
    quick: bool,
}

impl Definitions {
    /// Returns the built-in rows and bars.
    ///
    /// # Panics
    ///
    /// Panics if `definitions/io.toml` has faults. A test reads the file.
    pub fn built_in() -> Self {
        Self::parse(BUILT_IN).expect("definitions/io.toml must be valid")
    }

    /// Reads the text of a definitions file.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the text is not valid TOML or if an entry has a fault. The message
    /// names the line, the row or the bar.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rows, bars) = rows_and_bars(
            text,
            |entry: &RowDefinition| &entry.name,
            rows_of,
            |row: &Definition| &row.name,
        )?;
        for bar in &bars {
            if !rows.iter().any(|row| bar.applies(&row.measured(0))) {
                return Err(format!("bar {}: no row has its class and part", bar.text));
            }
        }
        Ok(Self { rows, bars })
    }
}

fn rows_of(definition: &RowDefinition) -> Result<Vec<Definition>, String> {
    let pattern = &definition.pattern;
    let sound = |c: char| c.is_ascii_alphanumeric() || c == ' ';
    if pattern.is_empty() || pattern.len() > 100 || !pattern.chars().all(sound) {
        return Err(format!(
            "the pattern has {} bytes; it must be 1 to 100 letters, digits or spaces",
            pattern.len()
        ));
    }
    let directions = definition.directions.clone().unwrap_or(Direction::ALL.to_vec());
    let ways = definition.calls.clone().unwrap_or(Calls::ALL.to_vec());
    let both = directions.iter().flat_map(|&way| ways.iter().map(move |&calls| (way, calls)));
    let row = |(direction, calls): (Direction, Calls)| Definition {
        name: format!("{}-{}-{}", definition.name, direction.name(), calls.name()),
        class: definition.class.clone(),
        text: definition.text.clone(),
        pattern: definition.pattern.clone(),
        block: definition.block,
        direction,
        calls,
        cold: definition.cold,
        quick: definition.quick,
    };
    Ok(both.map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::{Definition, Definitions, Direction};
    use crate::message::definition::matches;

    #[test]
    fn the_built_in_rows_are_sound() {
        let all = Definitions::built_in();
        let row = |name: &str| all.rows.iter().find(|row| row.name == name).expect(name);
        assert_eq!(
            row("8B-write-collective").command("/a/b", 64),
            "row file /a/b 64 warm write collective strided 8"
        );
        let cold = row("cold-4K-read-collective");
        assert_eq!(cold.command("/f", 9), "row file /f 9 cold read collective strided 4096");
        let is_named = |row: &Definition, pattern| matches(&row.name, pattern);
        assert!(is_named(row("3B-read-independent"), "3B-read") && is_named(cold, "cold"));
        // Every row has a bar, except the cold rows, which are only reported.
        for row in all.rows.iter().filter(|row| row.class != "cold") {
            assert!(all.bars.iter().any(|bar| bar.applies(&row.measured(0))), "{}", row.name);
        }
        let writes = all.rows.iter().filter(|row| row.direction == Direction::Write).count();
        assert_eq!(2 * writes, all.rows.len());
    }

    #[test]
    fn faults_name_the_row_or_the_bar() {
        let fault = |text: &str| Definitions::parse(text).expect_err(text);
        let row = "[[row]]\nname = \"a\"\ntext = \"t\"\nclass = \"c\"\npattern = \"tiles\"\n";
        assert!(
            fault(&format!("{row}{row}")).contains("two rows have the name a-write-collective")
        );
        assert!(
            fault("[[row]]\nname = \"a b\"\ntext = \"\"\npattern = \"x\"").contains("row a b:")
        );
        let hostile = "[[row]]\nname = \"a\"\ntext = \"\"\npattern = \"x\\nend\"";
        assert!(fault(hostile).contains("letters, digits or spaces"));
        let bar = "[[bar]]\nclass = \"d\"\ntext = \"some\"\nagainst = \"peer\"\nbar = 1\n";
        let wanted = "bar some: no row has its class and part";
        assert_eq!(fault(&format!("{row}{bar}")), wanted);
        assert!(fault("[[row]]\nname = \"a\"\nspeed = 1\n").starts_with("line 3: unknown field"));
    }
}
