//! The texts that `--version` and `-info` print: version, paths, machine.
//!
//! `main.rs` prints these texts. It also uses `list` to report to which CPUs the ranks are bound.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use typepack_job::shm::layout::{HASH, MAX_RANKS};
use typepack_job::shm::topology::CpuInfo;

use crate::placement::cores;
use crate::topology::{UNKNOWN, is_unknown};

/// Returns the text of `--version`.
pub fn version() -> String {
    format!("mpiexec (typepack) {}\n", env!("CARGO_PKG_VERSION"))
}

/// Returns the text of `-info`.
pub fn text(table: &[CpuInfo]) -> String {
    let exe = std::env::current_exe().ok();
    let shown = |path: Option<PathBuf>| match path {
        Some(path) => path.display().to_string(),
        None => "not found next to this program".to_owned(),
    };
    let library = exe.as_deref().and_then(library);
    let allowed: Vec<usize> = (0..table.len()).filter(|&cpu| table[cpu].allowed).collect();
    let parts = |label: fn(&CpuInfo) -> Option<u32>| {
        let labels: BTreeSet<u32> = allowed.iter().filter_map(|&cpu| label(&table[cpu])).collect();
        labels.len()
    };
    format!(
        "\
{}MPI standard:    5.0, ABI 1.0
program:         {}
library:         {}
segment layout:  {HASH:016x}
ranks:           at most {MAX_RANKS}, on one machine
usable CPUs:     {} ({} in all): {} cores, {} L2, {} L3, {} NUMA nodes, {} packages
{}",
        version(),
        shown(exe),
        shown(library),
        list(&allowed),
        allowed.len(),
        cores(table).len(),
        parts(|info| info.l2),
        parts(|info| info.l3),
        parts(|info| info.numa),
        parts(|info| info.package),
        if is_unknown(table) { format!("                 {UNKNOWN}\n") } else { String::new() },
    )
}

/// Returns the path of typepack's MPI library (`libmpi_abi`) that belongs to the program `exe`: the library
/// of the same installation or of the same build. Returns `None` if there is no such library.
fn library(exe: &Path) -> Option<PathBuf> {
    let folder = exe.parent()?;
    let installed = folder.parent()?.join("lib/libmpi_abi.so.1");
    [installed, folder.join("libmpi_abi.so")].into_iter().find(|path| path.exists())
}

/// Returns the folder of this installation or build that contains the MPI library under the file name by which programs
/// load it. Returns `None` if the dynamic linker searches that folder anyway.
pub fn library_folder() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok();
    let folder = exe.as_deref().and_then(Path::parent)?;
    let installed = folder.parent().map(|prefix| prefix.join("lib"));
    let searched = |folder: &Path| ["/lib", "/usr/lib"].iter().any(|it| folder == Path::new(it));
    let own = [installed.as_deref(), Some(folder)].into_iter().flatten();
    let own = own.map(Path::to_owned).find(|folder| folder.join("libmpi_abi.so.1").exists());
    own.filter(|folder| !searched(folder))
}

/// Returns the folder of this installation's or build's library with MPICH's ABI (`libmpi.so.12`), if it has one.
pub fn mpich_folder() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok();
    let folder = exe.as_deref().and_then(Path::parent)?;
    let installed = folder.parent().map(|prefix| prefix.join("lib/typepack/mpich"));
    let built = Some(folder.join("mpich"));
    [installed, built].into_iter().flatten().find(|folder| folder.join("libmpi.so.12").exists())
}

/// Adds `folder` at the beginning of `list`, the value of `LD_LIBRARY_PATH`.
pub fn with_folder_first(list: Option<OsString>, folder: &Path) -> OsString {
    let mut first = with_folder(None, folder);
    if let Some(list) = list.filter(|list| !list.is_empty()) {
        // The folder is left out if the list cannot have it.
        if !first.is_empty() {
            first.push(OsStr::new(":"));
        }
        first.push(list);
    }
    first
}

/// Adds `folder` at the end of `list`, the value of `LD_LIBRARY_PATH`, if it is not in the list yet. The
/// folder comes last, so that folders given by the user have precedence.
pub fn with_folder(list: Option<OsString>, folder: &Path) -> OsString {
    let mut list = list.unwrap_or_default();
    let known = list
        .as_bytes()
        .split(|&byte| byte == b':')
        .any(|part| part == folder.as_os_str().as_bytes());
    // A folder with a colon in its path cannot be in the list, because the dynamic linker splits the list at
    // colons.
    if !known && !folder.as_os_str().as_bytes().contains(&b':') {
        // Put a colon only between two folders, because to the dynamic linker an empty entry means the
        // current directory.
        if !list.is_empty() {
            list.push(OsStr::new(":"));
        }
        list.push(folder);
    }
    list
}

/// Returns `numbers`, which are in ascending order, as text with ranges, such as `0-3,8`.
pub fn list(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let parts: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_folder_comes_last_and_once() {
        let with = |list: Option<&str>| with_folder(list.map(OsString::from), Path::new("/p/lib"));
        assert_eq!(with(None), "/p/lib");
        assert_eq!(with(Some("")), "/p/lib");
        assert_eq!(with(Some("/a:/b")), "/a:/b:/p/lib");
        assert_eq!(with(Some("/p/lib:/b")), "/p/lib:/b");
        assert_eq!(with_folder(Some("/a".into()), Path::new("/odd:name")), "/a");
        assert_eq!(with_folder(None, Path::new("/odd:name")), "");
    }

    #[test]
    fn numbers_in_ranges() {
        assert_eq!(list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(list(&[3]), "3");
        assert_eq!(list(&[]), "");
    }
}
