//! The folders in which the Fortran modules of a compiler are kept.
//!
//! There are three places: the prefix, the user's cache, and a private folder among the temporary files. Each has one
//! folder per compiler. Such a folder is made under a name of its own, and gets its final name when all its files are
//! there; the last of them, the stamp, lists the others with their lengths. A folder in which a file is missing or has
//! another length is made anew. The process that makes a folder has a lock on it, so a later one finds the folders of
//! processes that were killed, and removes them.
//!
//! `fortran.rs` uses this file.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use typepack_job::sys::named;

/// The name of the stamp.
const STAMP: &str = "complete";

/// The beginning of a line of the stamp that says what is missing and why, because the compiler cannot have it.
const MISSING: &str = "missing: ";

/// One of the places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The folder that contains those of all compilers.
    pub folder: PathBuf,
    /// Who may use it.
    kind: Kind,
}

/// Who may use a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Part of an installation, as safe as the compiler wrapper beside it.
    Prefix,
    /// The user's cache: nobody else may write to it or to the two folders around it.
    Cache,
    /// Beside files of other users, so that nobody else may even look into it.
    Private,
}

/// Returns the places, the best first. `prefix` is the folder for modules in the prefix; `variable` returns the value
/// of an environment variable.
pub fn places(
    prefix: Option<&Path>,
    variable: impl Fn(&str) -> Option<std::ffi::OsString>,
) -> Vec<Place> {
    // A relative path means another folder in each directory.
    let set = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let temporary = set("TMPDIR").unwrap_or_else(|| "/tmp".into());
    let user = rustix::process::geteuid().as_raw();
    let place = |folder: PathBuf, kind| Place { folder, kind };
    let mut list: Vec<Place> = Vec::new();
    list.extend(prefix.map(|folder| place(folder.to_owned(), Kind::Prefix)));
    list.extend(cache.map(|base| place(base.join("typepack/fortran"), Kind::Cache)));
    list.push(place(temporary.join(format!("typepack-fortran-{user}")), Kind::Private));
    list
}

impl Place {
    /// Checks that nobody else can have written to the place.
    fn check(&self) -> io::Result<()> {
        let (folders, forbidden) = match self.kind {
            Kind::Prefix => (0, 0),
            Kind::Cache => (3, 0o022),
            Kind::Private => (1, 0o077),
        };
        for folder in self.folder.ancestors().take(folders) {
            let facts = match self.kind {
                Kind::Cache => fs::metadata(folder)?,
                _ => fs::symlink_metadata(folder)?,
            };
            named::check_owner(&facts)?;
            if !facts.is_dir() || facts.mode() & forbidden != 0 {
                let text =
                    format!("{} is not a folder that only its owner can use", folder.display());
                return Err(io::Error::other(text));
            }
        }
        Ok(())
    }

    /// Returns whether the user can make folders in the place. Makes nothing.
    pub fn is_writable(&self) -> bool {
        let Some(there) = self.folder.ancestors().find(|folder| folder.exists()) else {
            return false;
        };
        let may = rustix::fs::access(there, rustix::fs::Access::WRITE_OK).is_ok();
        // A folder without any permission to write is one that nobody shall write to, not even root.
        let shall = fs::metadata(there).is_ok_and(|facts| !facts.permissions().readonly());
        may && shall && (there != self.folder || self.check().is_ok())
    }

    /// Returns the folders in the place in which modules are missing, or that a process has begun and left.
    pub fn damaged(&self) -> Vec<PathBuf> {
        // Names in a folder of another user are not repeated to anybody.
        if self.check().is_err() {
            return Vec::new();
        }
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        // `unique` puts the number of the process into the name.
        let is_being_made = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let number = name.strip_prefix("new-").and_then(|rest| rest.split('-').next());
            number.is_some_and(|number| Path::new("/proc").join(number).exists())
        };
        let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
        folders.filter(|path| !is_complete(path) && !is_being_made(path)).collect()
    }

    /// Returns the folder `name` of the place if all its files are there.
    pub fn complete(&self, name: &str) -> Option<PathBuf> {
        self.check().ok()?;
        let folder = self.folder.join(name);
        is_complete(&folder).then_some(folder)
    }

    /// Makes a new folder in the place, which no other process has, on any machine. Removes the folders of processes
    /// that ended before theirs had a name.
    ///
    /// # Errors
    ///
    /// Returns the error of the kernel, or says that the place is not ours.
    pub fn begin(&self) -> io::Result<New> {
        let mut builder = fs::DirBuilder::new();
        match self.kind {
            Kind::Prefix => builder.recursive(true),
            Kind::Cache => builder.recursive(true).mode(0o700),
            Kind::Private => builder.mode(0o700),
        };
        match builder.create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => self.check()?,
        }
        self.sweep();
        loop {
            let folder = self.folder.join(unique(NEW));
            // Fails if there is anything of that name.
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Another process may have removed the folder before it was locked.
            let lock = match File::open(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let is_taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if !is_taken && folder.exists() {
                return Ok(New { folder, _lock: lock });
            }
        }
    }

    /// Removes what killed processes have left. A file system without locks on folders keeps it.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let is_unique = entry.file_name().to_str().is_some_and(is_unique);
            if !is_unique || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let Ok(lock) = File::open(entry.path()) else { continue };
            if lock.try_lock().is_ok() {
                let _gone = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// How the name of a folder begins that is not complete yet.
const NEW: &str = "new";

/// How the name of a folder begins that another has replaced.
const OLD: &str = "old";

/// A folder that is not complete yet.
#[derive(Debug)]
pub struct New {
    folder: PathBuf,
    /// Tells other processes that this one is alive.
    _lock: File,
}

impl New {
    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }
}

/// Returns a name that is very unlikely to be that of another process, also of one on another machine.
fn unique(word: &str) -> String {
    let number = RandomState::new().hash_one(std::process::id());
    format!("{word}-{}-{number:016x}", std::process::id())
}

/// Returns whether [`unique`] makes such names. The folder of a compiler may begin with the same word.
fn is_unique(name: &str) -> bool {
    let mut parts = name.split('-');
    let (word, process, number) = (parts.next(), parts.next(), parts.next());
    let all = |part: Option<&str>, is_digit: fn(char) -> bool| {
        part.is_some_and(|part| !part.is_empty() && part.chars().all(is_digit))
    };
    word.is_some_and(|word| [NEW, OLD].contains(&word))
        && all(process, |digit| digit.is_ascii_digit())
        && all(number, |digit| digit.is_ascii_hexdigit())
        && number.is_some_and(|number| number.len() == 16)
        && parts.next().is_none()
}

/// Returns what the stamp of a complete folder says about what is missing there.
pub fn missing(folder: &Path) -> Option<String> {
    let stamp = fs::read_to_string(folder.join(STAMP)).ok()?;
    stamp.lines().find_map(|line| line.strip_prefix(MISSING)).map(str::to_owned)
}

/// Says whether all files are there that the stamp lists.
fn is_complete(folder: &Path) -> bool {
    let Ok(stamp) = fs::read_to_string(folder.join(STAMP)) else { return false };
    let there = |line: &str| {
        let (length, name) = line.split_once(' ')?;
        let facts = fs::metadata(folder.join(name)).ok()?;
        (facts.is_file() && length.parse() == Ok(facts.len())).then_some(())
    };
    let mut files = stamp.lines().filter(|line| !line.starts_with(MISSING)).peekable();
    files.peek().is_some() && files.all(|line| there(line).is_some())
}

/// Removes everything except modules from the folder `new`, and writes the stamp, which also keeps the line `missing`.
/// Then gives the folder the name `name`. Returns its path. A complete folder of that name stays, unless something is
/// missing in that one only.
///
/// # Errors
///
/// Returns the error of the kernel.
pub fn finish(new: &New, name: &str, missing: Option<&str>) -> io::Result<PathBuf> {
    let own = new.path();
    let mut stamp = missing.map_or(String::new(), |line| format!("{MISSING}{line}\n"));
    for entry in fs::read_dir(own)? {
        let entry = entry?;
        let (file, name) = (entry.path(), entry.file_name());
        match name.to_str() {
            Some(name) if file.extension() == Some(OsStr::new("mod")) => {
                let _ = writeln!(stamp, "{} {name}", entry.metadata()?.len());
            }
            _ if entry.file_type()?.is_dir() => fs::remove_dir_all(file)?,
            _ => fs::remove_file(file)?,
        }
    }
    fs::write(own.join(STAMP), stamp)?;
    let folder = own.with_file_name(name);
    let is_better = || missing.is_none() && self::missing(&folder).is_some();
    loop {
        let Err(error) = fs::rename(own, &folder) else { return Ok(folder) };
        // Another process was faster, or files are missing there.
        if is_complete(&folder) && !is_better() {
            fs::remove_dir_all(own)?;
            return Ok(folder);
        }
        if !folder.exists() {
            return Err(error);
        }
        let old = own.with_file_name(unique(OLD));
        match fs::rename(&folder, &old) {
            // Another process has taken it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(()) => {
                let _gone = fs::remove_dir_all(&old);
            }
        }
    }
}

/// Removes a folder that [`Place::begin`] has made and that is of no use.
pub fn abandon(new: &New) {
    let _gone = fs::remove_dir_all(new.path());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    /// A place in a folder of its own, which goes with the value.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            let root = std::env::temp_dir().join(format!("typepack-{}", unique("modules")));
            fs::create_dir_all(&root).expect("the directory is made");
            Self(root)
        }

        fn place(&self, private: bool) -> Place {
            let kind = if private { Kind::Private } else { Kind::Prefix };
            Place { folder: self.0.join("place"), kind }
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    /// Makes the modules of a compiler, and an object file.
    fn fill(place: &Place, text: &str) -> PathBuf {
        let own = place.begin().expect("the place is writable");
        for file in ["mpi.mod", "mpi_f08.mod", "mpi.o"] {
            fs::write(own.path().join(file), text).expect("the file is written");
        }
        finish(&own, "fc-1", None).expect("the folder gets its name")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the folder is there");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_that_lost_a_module_is_made_anew() {
        let scratch = Scratch::new();
        let place = scratch.place(false);
        assert_eq!(place.complete("fc-1"), None);
        let folder = fill(&place, "first");
        assert_eq!(names(&folder), [STAMP, "mpi.mod", "mpi_f08.mod"]);
        for file in ["mpi.mod", "mpi_f08.mod", STAMP] {
            assert_eq!(place.complete("fc-1"), Some(folder.clone()));
            fs::remove_file(folder.join(file)).expect("the file was there");
            assert_eq!(place.complete("fc-1"), None, "{file}");
            assert_eq!(fill(&place, "second"), folder);
        }
        // A module that was cut short is missing, too.
        fs::write(folder.join("mpi.mod"), "sec").expect("the file is written");
        assert_eq!(place.complete("fc-1"), None);
        fill(&place, "third");
        assert_eq!(place.complete("fc-1"), Some(folder));
        assert_eq!(names(&place.folder), ["fc-1"]);
    }

    #[test]
    fn the_slower_of_two_leaves_the_folder_alone() {
        let scratch = Scratch::new();
        let place = scratch.place(false);
        let (one, other) = (place.begin().expect("a folder"), place.begin().expect("a folder"));
        assert_ne!(one.path(), other.path());
        fs::write(one.path().join("mpi.mod"), "one").expect("the file is written");
        fs::write(other.path().join("mpi.mod"), "other").expect("the file is written");
        let folder = finish(&one, "fc-1", None).expect("the first");
        assert_eq!(finish(&other, "fc-1", Some("x")).ok(), Some(folder.clone()));
        assert_eq!(fs::read_to_string(folder.join("mpi.mod")).ok().as_deref(), Some("one"));
        assert_eq!(names(&place.folder), ["fc-1"]);
    }

    #[test]
    fn a_folder_without_a_module_gives_way_to_one_with_it() {
        let scratch = Scratch::new();
        let place = scratch.place(false);
        for (missing, expected) in [(Some("x"), Some("x")), (None, None), (Some("y"), None)] {
            let own = place.begin().expect("a folder");
            fs::write(own.path().join("mpi.mod"), "text").expect("the file is written");
            // What the compiler and the probe leave.
            fs::create_dir(own.path().join("rest")).expect("a folder");
            let folder = finish(&own, "fc-1", missing).expect("a folder");
            assert_eq!(super::missing(&folder).as_deref(), expected);
            assert_eq!(names(&folder), [STAMP, "mpi.mod"]);
        }
    }

    /// The folder of a process that was killed goes when another process makes one; that of a live process stays.
    #[test]
    fn folders_of_killed_processes_go() {
        let scratch = Scratch::new();
        let place = scratch.place(false);
        let (killed, alive) = (place.begin().expect("a folder"), place.begin().expect("a folder"));
        fs::write(killed.path().join("mpi.mod"), "half").expect("the file is written");
        fs::create_dir(place.folder.join("old-1-0123456789abcdef")).expect("a folder");
        // A compiler may have such a name.
        fs::create_dir(place.folder.join("new-gfortran-1")).expect("a folder");
        // The kernel drops the lock of a process that ends.
        drop(killed);
        fill(&place, "text");
        let own = alive.path().file_name().and_then(|name| name.to_str()).expect("a name");
        assert_eq!(names(&place.folder), ["fc-1", own, "new-gfortran-1"]);
        abandon(&alive);
    }

    #[test]
    fn a_cache_that_others_can_write_to_is_refused() {
        let scratch = Scratch::new();
        let place = Place { folder: scratch.0.join("cache/typepack/fortran"), kind: Kind::Cache };
        let folder = fill(&place, "text");
        assert_eq!(place.complete("fc-1"), Some(folder));
        for (folder, mode) in [("cache/typepack/fortran", 0o770), ("cache", 0o777)] {
            let set = |mode| {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
                fs::set_permissions(scratch.0.join(folder), mode).expect("it is ours");
            };
            set(mode);
            assert_eq!(place.complete("fc-1"), None, "{folder}");
            let error = place.begin().expect_err("the place is refused");
            assert!(error.to_string().contains("only its owner"), "{error}");
            set(0o755);
        }
    }

    #[test]
    fn a_temporary_place_is_ours_alone() {
        let scratch = Scratch::new();
        let place = scratch.place(true);
        let folder = fill(&place, "text");
        let mode = fs::metadata(&place.folder).expect("the place").mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(place.complete("fc-1"), Some(folder));
        // Somebody else could have written to this one.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(&place.folder, open).expect("it is ours");
        assert_eq!(place.complete("fc-1"), None);
        let error = place.begin().expect_err("the place is refused");
        assert!(error.to_string().contains("only its owner"), "{error}");
        // A link may lead to a folder of somebody else.
        fs::rename(&place.folder, scratch.0.join("real")).expect("it is ours");
        std::os::unix::fs::symlink("real", &place.folder).expect("a link");
        assert!(place.begin().is_err());
    }

    #[test]
    fn the_places_are_the_prefix_the_cache_and_temporary_files() {
        let folders = |prefix, set: &[(&str, &str)]| -> Vec<PathBuf> {
            let variable = |name: &str| -> Option<OsString> {
                set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).into())
            };
            places(prefix, variable).into_iter().map(|place| place.folder).collect()
        };
        let user = rustix::process::geteuid().as_raw();
        let last = |base: &str| PathBuf::from(format!("{base}/typepack-fortran-{user}"));
        let all = [("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), ("TMPDIR", "/t")];
        let prefix = Path::new("/p/modules");
        assert_eq!(
            folders(Some(prefix), &all),
            [prefix.to_owned(), "/x/typepack/fortran".into(), last("/t")]
        );
        let home = [PathBuf::from("/h/.cache/typepack/fortran"), last("/tmp")];
        for cache in ["", "relative"] {
            assert_eq!(folders(None, &[("HOME", "/h"), ("XDG_CACHE_HOME", cache)]), home);
        }
        assert_eq!(folders(None, &[]), [last("/tmp")]);
    }
}
