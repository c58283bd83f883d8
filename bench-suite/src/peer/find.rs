//! Finds the peers: paths that the user has given, or the libraries that `scripts/bench peers` has
//! fetched.
//!
//! `session.rs` starts the peers. This file only looks for the libraries and opens none of them.

use crate::split;
use std::path::{Path, PathBuf};

/// A peer MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The short name of the peer in rows.
    pub name: String,
    /// The path of the library.
    pub library: PathBuf,
}

/// The possible file names of a peer's library in its folder `lib`. The library of the standard ABI is
/// preferred.
const LIBRARIES: [&str; 2] = ["libmpi_abi.so.1", "libmpi.so.40"];

impl Peer {
    /// Reads a peer from `path` or `name=path`. Without a name, the peer gets the name of the folder that
    /// contains `lib`.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the name or the path is empty, or if the name contains a comma, a
    /// double quote or a line break.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, path) = match split::once(text, b'=') {
            Some((name, path)) => (name.to_owned(), PathBuf::from(path)),
            None => {
                let path = PathBuf::from(text);
                let prefix = path.parent().and_then(Path::parent).and_then(Path::file_name);
                let name = prefix.map_or("peer".into(), |name| name.to_string_lossy());
                (name.into_owned(), path)
            }
        };
        if name.is_empty() || path.as_os_str().is_empty() || name.contains([',', '"', '\n']) {
            return Err(format!(
                "'{text}' must be PATH or NAME=PATH, neither of them empty; NAME (without NAME=, the name of \
                 a folder of PATH) must not contain a comma, a double quote or a line break"
            ));
        }
        Ok(Self { name, library: path })
    }
}

/// Returns the peers in `directory`, sorted by name: one for each subfolder that has a library in its
/// folder `lib`.
pub fn found(directory: &Path) -> Vec<Peer> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut peers: Vec<Peer> = entries
        .flatten()
        .filter_map(|entry| {
            let lib = entry.path().join("lib");
            let library = LIBRARIES.iter().map(|file| lib.join(file)).find(|path| path.exists())?;
            Some(Peer { name: entry.file_name().to_string_lossy().into_owned(), library })
        })
        .collect();
    peers.sort_by(|a, b| a.name.cmp(&b.name));
    peers
}

#[cfg(test)]
mod tests {
    use super::{Peer, found};
    use std::path::Path;

    #[test]
    fn names_come_from_the_prefix() {
        let peer = Peer::parse("/opt/mpich/lib/libmpi_abi.so.1").expect("a path");
        assert_eq!(peer.name, "mpich");
        let peer = Peer::parse("mine=lib.so").expect("a path");
        assert_eq!((peer.name.as_str(), peer.library.as_path()), ("mine", Path::new("lib.so")));
        assert_eq!(Peer::parse("lib.so").expect("a path").name, "peer");
        for text in ["", "=a", "a=", "a,b=c"] {
            assert!(Peer::parse(text).is_err(), "{text}");
        }
        assert!(found(Path::new("/nonexistent")).is_empty());
    }
}
