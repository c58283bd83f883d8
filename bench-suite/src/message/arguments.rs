//! What the subcommands with rows from a definitions file have in common: messages and their relatives, files, and
//! the regret of both. They choose rows by name, read other rows, list rows, and write figures in the same way.

use super::apart;
use super::definition::matches;
use super::library::{Kind, Library};
use super::report::HOSTS;
use crate::row::TYPEPACK;
use std::path::{Path, PathBuf};

/// The folder in which `scripts/bench` installs typepack.
pub(crate) const PREFIX: &str = "target/prefix";

/// An error that ends the command, with a one-line message.
#[derive(Debug)]
pub enum Fault {
    /// The arguments are wrong.
    Usage(String),
    /// A system call failed, or typepack cannot be measured.
    Failed(String),
}

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

/// Which peers take part.
#[derive(clap::Args)]
pub(crate) struct PeerArguments {
    /// The folder into which `scripts/bench peers` has put the peers.
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    peers: PathBuf,
    /// Names of the installed peers that take part, separated by commas; by default all.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) library: Vec<String>,
}

impl PeerArguments {
    /// Adds the peers that take part to `list`, the builds of typepack. If `hosts` is true, the only peers are the
    /// hosts of the interposer. If `fortran` is true, Debian's libraries are peers, too, because the others have no Fortran.
    pub(crate) fn add(
        &self,
        list: &mut Vec<Library>,
        hosts: bool,
        fortran: bool,
    ) -> Result<(), Fault> {
        let mut peers = Library::peers(&self.peers);
        peers.retain(|library| fortran || !library.unpacked);
        if hosts {
            peers.retain(|library| HOSTS.contains(&library.name.as_str()));
            peers.iter_mut().for_each(|library| library.standard = true);
            // The order of `HOSTS`: the reference host is the first one.
            peers.sort_by_key(|library| HOSTS.iter().position(|name| *name == library.name));
            if peers.is_empty() {
                let (folder, names) = (self.peers.display(), HOSTS.join(" "));
                return Err(Fault::Usage(format!(
                    "--peers {folder}: no host is there; `scripts/bench peers {names}` fetches them"
                )));
            }
        }
        list.extend(peers);
        for (place, library) in list.iter().enumerate() {
            if let Some(other) = list[..place].iter().find(|other| other.name == library.name) {
                return Err(Fault::Usage(format!(
                    "--prefix: the libraries {} and {} both have the name {}; give one of them another \
                     name with --prefix NAME=PATH",
                    other.prefix.display(),
                    library.prefix.display(),
                    library.name
                )));
            }
        }
        for name in &self.library {
            if !list.iter().any(|library| library.name == *name) {
                let known: Vec<&str> = list.iter().map(|library| library.name.as_str()).collect();
                let known = known.join(", ");
                return Err(Fault::Usage(format!(
                    "--library {name}: no such library; it must be one of {known}"
                )));
            }
        }
        if !self.library.is_empty() {
            // `--library` never removes typepack, because every ratio compares a library with typepack.
            list.retain(|library| !library.is_peer() || self.library.contains(&library.name));
        }
        Ok(())
    }
}

/// Returns the typepack that is installed in `prefix`, under the name `name`.
pub(crate) fn own(name: &str, prefix: &Path) -> Result<Library, Fault> {
    let library = Library::at(name, prefix).map_err(|line| {
        let default = prefix == Path::new(PREFIX);
        let hint = if default { "; scripts/install --prefix makes one" } else { "" };
        Fault::Usage(format!("--prefix {line}{hint}"))
    })?;
    match library.kind {
        Kind::Typepack => Ok(library),
        kind => {
            let shown = prefix.display();
            Err(Fault::Usage(format!(
                "--prefix {shown}: the library is {kind:?}; it must be typepack"
            )))
        }
    }
}

/// Returns the typepack that is installed in `prefix`, for jobs in which its free choice and forced ones take turns.
/// Returns an error if one of `variables`, which force a choice, is set.
pub(crate) fn free(prefix: &Path, variables: &[&str]) -> Result<Library, Fault> {
    for name in variables {
        if let Some(value) = std::env::var_os(name) {
            return Err(Fault::Usage(format!(
                "{name} is set to {value:?}; it must not be set, because the free choice is measured"
            )));
        }
    }
    let mut library = own(TYPEPACK, prefix)?;
    apart::check().map_err(Fault::Failed)?;
    library.apart = true;
    Ok(library)
}
