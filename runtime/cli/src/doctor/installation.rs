//! Where the files of this installation are. The tool's own path says it, as with the compiler wrappers
//! (`runtime/launcher/src/wrapper/prefix.rs`).

use super::ask;
use std::fs;
use std::path::{Path, PathBuf};
use typepack_job::quote::quoted;

/// The library, by its name for the loader.
pub const LIBRARY: &str = "libmpi_abi.so.1";

/// The library that stands in front of another MPI.
pub const INTERPOSER: &str = "libtypepack_interpose.so";

/// The folder of a wheel's files in the environment.
const IN_A_WHEEL: &str = "lib/typepack";

/// What made the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// pip: the files lie in `lib/typepack`, and thin names for them in the environment.
    Wheel,
    /// `scripts/install`.
    Prefix,
    /// A package of Debian: the files lie in `/usr/lib/…/typepack`, and their names in `/usr/bin` are alternatives.
    Debian,
    /// `cargo install`: there are programs only.
    Cargo,
    /// `scripts/install --interposer-only`: there is no MPI library.
    Interposer,
    /// Cargo, in its target folder.
    Build,
}

/// The folders of an installation.
#[derive(Clone, Debug)]
pub struct Installation {
    /// What made it.
    pub kind: Kind,
    /// The folder of the programs.
    pub bin: PathBuf,
    /// The folder of the library.
    pub lib: PathBuf,
    /// The folder of `mpi.h`.
    pub include: PathBuf,
    /// The folder in which users find it: of a wheel the environment, else the prefix.
    pub prefix: PathBuf,
}

impl Installation {
    /// Finds the installation of the program `exe`. The path has no symbolic links.
    pub fn of(exe: &Path) -> Self {
        let bin = exe.parent().unwrap_or(Path::new("/")).to_owned();
        let root = bin.parent().unwrap_or(Path::new("/")).to_owned();
        let (lib, include) = (root.join("lib"), root.join("include"));
        if root.ends_with(IN_A_WHEEL) {
            let prefix = root.ancestors().nth(2).unwrap_or(Path::new("/")).to_owned();
            return Self { kind: Kind::Wheel, bin, lib, include, prefix };
        }
        let sources = bin.ancestors().map(|above| above.join("runtime/capi/include"));
        if !bin.ends_with("bin")
            && let Some(include) = sources.into_iter().find(|folder| folder.join("mpi.h").exists())
        {
            return Self { kind: Kind::Build, lib: bin.clone(), include, prefix: bin.clone(), bin };
        }
        let is_there = |path: PathBuf| path.exists();
        let parent = root.parent().unwrap_or(Path::new("/"));
        let is_debian = root.ends_with("typepack")
            && parent.parent().is_some_and(|above| above.ends_with("usr/lib"))
            && parent.file_name().is_some_and(|name| name.to_string_lossy().contains("-linux-"));
        // In the prefix of another MPI, the files of an MPI library are that one's.
        let is_alone = match ask::text(&root.join("share/typepack/installed")) {
            Some(list) => !list.lines().any(|name| name == "bin/mpiexec"),
            None => {
                let has_mpi = is_there(lib.join(LIBRARY)) || is_there(bin.join("mpiexec"));
                !has_mpi && is_there(lib.join(INTERPOSER))
            }
        };
        let kind = if is_debian {
            Kind::Debian
        } else if is_there(root.join(".crates.toml")) && !is_there(lib.join(LIBRARY)) {
            Kind::Cargo
        } else if is_alone {
            Kind::Interposer
        } else {
            Kind::Prefix
        };
        Self { kind, bin, lib, include, prefix: root }
    }

    /// Returns the path of the library. Cargo makes the file under the linker's name.
    pub fn library(&self) -> PathBuf {
        let name = if self.kind == Kind::Build { "libmpi_abi.so" } else { LIBRARY };
        self.lib.join(name)
    }

    /// Returns the folder that belongs into `PATH`.
    pub fn path_folder(&self) -> PathBuf {
        if self.kind == Kind::Wheel { self.prefix.join("bin") } else { self.bin.clone() }
    }

    /// Returns whether the program at `path` is one of this installation.
    pub fn has_program(&self, path: &Path) -> bool {
        let Ok(real) = path.canonicalize() else { return false };
        let own =
            |folder: &Path| folder.canonicalize().is_ok_and(|own| real.parent() == Some(&own));
        // A thin name is a script of a few lines.
        let is_thin = || {
            fs::metadata(&real).is_ok_and(|facts| facts.len() < 4096)
                && ask::text(&real).is_some_and(|text| text.contains("lib/typepack/bin/"))
        };
        own(&self.bin) || self.kind == Kind::Wheel && own(&self.prefix.join("bin")) && is_thin()
    }

    /// Returns whether the installation has the compiler wrappers and the header. A package of Debian of its own has
    /// them, and Cargo installs none.
    pub fn is_for_developers(&self) -> bool {
        match self.kind {
            Kind::Cargo | Kind::Interposer => false,
            Kind::Debian => self.bin.join("mpicc").exists() || self.include.join("mpi.h").exists(),
            Kind::Wheel | Kind::Prefix | Kind::Build => true,
        }
    }

    /// Returns whether the folder `folder` is one in which the loader finds this installation's library.
    pub fn has_library_folder(&self, folder: &Path) -> bool {
        let Ok(real) = folder.canonicalize() else { return false };
        let own = |own: &Path| own.canonicalize().is_ok_and(|own| own == real);
        let mpich = self.lib.join("typepack/mpich");
        // The name of a Debian library lies beside those of all other packages.
        let debian = || self.kind == Kind::Debian && self.prefix.parent().is_some_and(own);
        own(&self.lib)
            || own(&mpich)
            || debian()
            || self.kind == Kind::Wheel && own(&self.prefix.join("lib"))
    }

    /// Returns the command that installs the files again.
    pub fn again(&self) -> String {
        match self.kind {
            Kind::Wheel => format!(
                "{} -m pip install --force-reinstall --no-deps typepack-{}-*.whl",
                quoted(self.prefix.join("bin/python")),
                super::VERSION
            ),
            Kind::Prefix => format!("scripts/install --prefix {}", quoted(&self.prefix)),
            Kind::Debian => {
                let dev = if self.is_for_developers() { " libtypepack-dev" } else { "" };
                format!("apt-get install --reinstall typepack libmpi-abi1-typepack{dev}")
            }
            Kind::Cargo => format!(
                "cargo install --root {} --path runtime/launcher --no-default-features --locked --bin mpiexec",
                quoted(&self.prefix)
            ),
            Kind::Interposer => {
                format!("scripts/install --prefix {} --interposer-only", quoted(&self.prefix))
            }
            Kind::Build => {
                "cargo build --workspace --features typepack/ndarray --lib --bins".into()
            }
        }
    }

    /// Says in words what made the installation.
    pub fn described(&self) -> String {
        let place = self.prefix.display();
        match self.kind {
            Kind::Wheel => format!("a wheel in {place}"),
            Kind::Prefix => format!("installed in {place}"),
            Kind::Debian => format!("a package of Debian in {place}"),
            Kind::Cargo => format!("installed by Cargo in {place}"),
            Kind::Interposer => format!("the interposer alone, in {place}"),
            Kind::Build => format!("a build in {place}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Installation, Kind};
    use std::path::Path;

    #[test]
    fn the_kind_follows_from_the_path() {
        let wheel = Installation::of(Path::new("/env/lib/typepack/bin/typepack"));
        assert_eq!((wheel.kind, wheel.prefix.as_path()), (Kind::Wheel, Path::new("/env")));
        assert_eq!(wheel.path_folder(), Path::new("/env/bin"));
        let prefix = Installation::of(Path::new("/opt/typepack/bin/typepack"));
        assert_eq!(
            (prefix.kind, prefix.prefix.as_path()),
            (Kind::Prefix, Path::new("/opt/typepack"))
        );
        let debian = Path::new("/usr/lib/x86_64-linux-gnu/typepack/bin/typepack");
        assert_eq!(Installation::of(debian).kind, Kind::Debian);
        let build = Installation::of(&std::env::current_exe().unwrap());
        assert_eq!(build.kind, Kind::Build);
    }
}
