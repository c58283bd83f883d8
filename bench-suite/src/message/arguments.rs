//! What the subcommands with rows from a definitions file have in common: messages and their relatives, files, and
//! the regret of both. They choose rows by name, read other rows, list rows, and write figures in the same way.

use super::command::Fault;
use super::definition::matches;
use std::path::PathBuf;

/// The common arguments. Each command adds its own.
#[derive(clap::Args)]
pub struct RowArguments {
    /// Names of the rows to measure, or parts of names between dashes, such as 8B, halo, d1s8-64K or write.
    /// Separated by commas; by default all rows.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Measure fewer rows and rounds, in a few minutes.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write every figure to this file, as CSV.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Read the rows and bars from this TOML file instead of using the built-in ones. Regret has no bars.
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,
    /// Print the names of the rows and measure nothing.
    #[arg(long)]
    pub(crate) list: bool,
}

impl RowArguments {
    /// Returns the definitions of the file of `--rows`, which `parse` reads, or else the built-in ones.
    pub(crate) fn definitions<T>(
        &self,
        built_in: impl FnOnce() -> T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Fault> {
        let Some(path) = &self.rows else { return Ok(built_in()) };
        let named = |error: String| Fault::Usage(format!("--rows {}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| named(e.to_string()))?;
        parse(&text).map_err(named)
    }

    /// Returns an error if a pattern of `--only` chooses none of `names`, the names of all rows.
    pub(crate) fn check<'a>(
        &self,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), Fault> {
        let chooses = |pattern: &&String| !names.clone().any(|name| matches(name, pattern));
        match self.only.iter().find(chooses) {
            Some(pattern) => {
                Err(Fault::Usage(format!("--only {pattern}: no such row; --list names them")))
            }
            None => Ok(()),
        }
    }

    /// Returns true if the row `name` is to be measured. `--only` also chooses rows that do not belong to a quick run.
    pub(crate) fn chooses(&self, name: &str, is_quick: bool) -> bool {
        match self.only.is_empty() {
            true => is_quick || !self.quick,
            false => self.only.iter().any(|pattern| matches(name, pattern)),
        }
    }

    /// Writes the figures to the file of `--csv`, if there is one.
    pub(crate) fn write(&self, csv: impl FnOnce() -> String) -> Result<(), Fault> {
        let Some(path) = &self.csv else { return Ok(()) };
        std::fs::write(path, csv())
            .map_err(|e| Fault::Failed(format!("--csv {}: {e}", path.display())))
    }
}
