//! Finds the header and the library from the wrapper's own path, so that an installed prefix can be moved.
//!
//! `mod.rs` calls [`find`], and `line.rs` adds the paths to the compiler's arguments. The wrapper can be in
//! one of two places:
//!
//! ```text
//! P/bin/mpicc    P/include/mpi.h   P/lib/libmpi_abi.so       an installed prefix
//! T/mpicc        T/libmpi_abi.so   and mpi.h in runtime/capi/include of a directory above T:
//!                                  the build tree (target/debug, target/release)
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the library's file for the linker.
const LIBRARY: &str = "libmpi_abi.so";
/// Name of the library's file for the loader.
const SONAME: &str = "libmpi_abi.so.1";
/// The same names of the library for Fortran programs.
const FORTRAN_LIBRARY: &str = "libmpifort_abi.so";
const FORTRAN_SONAME: &str = "libmpifort_abi.so.1";

/// The directories that the compiler needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The directory that contains `mpi.h`.
    pub include: PathBuf,
    /// The directory that contains the library.
    pub lib: PathBuf,
    /// For Fortran: the directory that contains `mpif.h` and the sources of the modules.
    pub fortran: Option<PathBuf>,
    /// For Fortran: the directory that contains the modules for the compiler.
    pub modules: Option<PathBuf>,
    /// For Fortran: the folder in which an installed prefix keeps the modules of all compilers.
    pub store: Option<PathBuf>,
}

/// Returns the directories that belong to the wrapper `exe`. The path `exe` has no symbolic links.
///
/// # Errors
///
/// Returns a one-line message if a file is missing, or if a necessary link cannot be made. The message
/// names the file or the link.
pub fn find(exe: &Path) -> Result<Places, String> {
    let folder = exe.parent().unwrap_or(Path::new("/"));
    if let Some(prefix) = folder.parent() {
        let (include, lib) = (prefix.join("include"), prefix.join("lib"));
        if include.join("mpi.h").exists() && lib.join(LIBRARY).exists() {
            return Ok(Places { include, lib, fortran: None, modules: None, store: None });
        }
    }
    let headers = folder.ancestors().map(|above| above.join("runtime/capi/include"));
    let Some(include) = headers.into_iter().find(|folder| folder.join("mpi.h").exists()) else {
        return Err(format!(
            "{} is not in a prefix of typepack: ../include/mpi.h or ../lib/{LIBRARY} is missing",
            exe.display()
        ));
    };
    if !folder.join(LIBRARY).exists() {
        return Err(format!(
            "{} is missing in this build tree; build it with cargo build -p typepack-capi",
            folder.join(LIBRARY).display()
        ));
    }
    name_for_the_loader(folder, LIBRARY, SONAME)?;
    Ok(Places { include, lib: folder.to_owned(), fortran: None, modules: None, store: None })
}

/// Adds what Fortran programs need to the directories of the wrapper `exe`.
///
/// # Errors
///
/// Returns a one-line message if a file is missing, or if a necessary link cannot be made.
pub fn add_fortran(exe: &Path, places: &mut Places) -> Result<(), String> {
    let library = places.lib.join(FORTRAN_LIBRARY);
    if !library.exists() {
        return Err(format!(
            "{} is missing; build it with cargo build -p typepack-fortran",
            library.display()
        ));
    }
    let has_sources = |folder: &PathBuf| folder.join("mpif.h").exists();
    if has_sources(&places.include) {
        places.fortran = Some(places.include.clone());
        places.store = Some(places.lib.join("typepack/fortran"));
        return Ok(());
    }
    let folder = exe.parent().unwrap_or(Path::new("/"));
    let mut sources = folder.ancestors().map(|above| above.join("runtime/fortran/include"));
    let Some(sources) = sources.find(has_sources) else {
        return Err(format!("{} is missing", places.include.join("mpif.h").display()));
    };
    places.fortran = Some(sources);
    name_for_the_loader(folder, FORTRAN_LIBRARY, FORTRAN_SONAME)
}

/// Makes a symbolic link to the library, under the loader's name for the library. Cargo makes only the file
/// with the linker's name, but programs load the library by the loader's name.
fn name_for_the_loader(folder: &Path, library: &str, soname: &str) -> Result<(), String> {
    let link = folder.join(soname);
    match std::os::unix::fs::symlink(library, &link) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        // In a read-only build tree the link cannot be made, but it is enough if the link already exists.
        Err(_) if link.exists() => Ok(()),
        Err(error) => Err(format!("cannot make the link {}: {error}", link.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Makes a new directory that contains the given files, all of them empty.
    fn tree(name: &str, files: &[&str]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("typepack-{name}-{}", std::process::id()));
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("the file has a parent"))
                .expect("the directory is made");
            fs::write(path, "").expect("the file is written");
        }
        root
    }

    #[test]
    fn an_installed_prefix() {
        let root = tree("prefix", &["bin/mpicc", "include/mpi.h", "lib/libmpi_abi.so"]);
        let places = find(&root.join("bin/mpicc"));
        let wanted = Places {
            include: root.join("include"),
            lib: root.join("lib"),
            fortran: None,
            modules: None,
            store: None,
        };
        fs::remove_dir_all(&root).expect("the directory is removed");
        assert_eq!(places, Ok(wanted));
    }

    #[test]
    fn a_build_tree_gets_the_loaders_name() {
        let header = "runtime/capi/include/mpi.h";
        let root = tree("build", &["target/x/mpicc", "target/x/libmpi_abi.so", header]);
        let exe = root.join("target/x/mpicc");
        let (first, second) = (find(&exe), find(&exe));
        let link = fs::read_link(root.join("target/x").join(SONAME));
        fs::remove_dir_all(&root).expect("the directory is removed");
        let include = root.join("runtime/capi/include");
        let lib = root.join("target/x");
        assert_eq!(first, Ok(Places { include, lib, fortran: None, modules: None, store: None }));
        assert_eq!(first, second);
        assert_eq!(link.ok().as_deref(), Some(Path::new(LIBRARY)));
    }

    #[test]
    fn what_is_missing_is_said() {
        let root = tree("missing", &["bin/mpicc", "lib/libmpi_abi.so"]);
        let error = find(&root.join("bin/mpicc")).expect_err("a missing header is an error");
        fs::remove_dir_all(&root).expect("the directory is removed");
        assert!(error.contains("../include/mpi.h"), "{error}");
        let root = tree("unbuilt", &["target/x/mpicc", "runtime/capi/include/mpi.h"]);
        let error = find(&root.join("target/x/mpicc")).expect_err("a missing library is an error");
        fs::remove_dir_all(&root).expect("the directory is removed");
        assert!(error.contains("cargo build -p typepack-capi"), "{error}");
    }
}
