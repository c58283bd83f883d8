//! Files that the user or the environment names: opening them without waiting, and finding them again.
//!
//! A name may lead to anything: a pipe that nobody writes, a device, a folder. So a file is opened first, without
//! waiting, and then its kind is checked; a check before the opening could be about another file.
//!
//! A name may also lead to another file later: the process may change its directory, somebody may rename a folder, or
//! put another file in the place. An [`Entry`] keeps the folder itself and the name in the folder.

use super::files::{self, Facts};
use rustix::fs::{self, Mode, OFlags};
use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

/// The longest text that a program reads from a file that an option names, in bytes.
pub const TEXT_MAX: u64 = 64 << 20;

/// Permissions of a new file, before the process's mask.
const PERMISSIONS: u32 = 0o666;

fn open_at(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let fd =
        files::retried(|| Ok(fs::openat(folder, path, flags, Mode::from_raw_mode(PERMISSIONS))?))?;
    // Only the opening must not wait. Whoever reads a pipe waits for its writers.
    fs::fcntl_setfl(&fd, fs::fcntl_getfl(&fd)? - OFlags::NONBLOCK)?;
    Ok(File::from(fd))
}

/// Opens a file of any kind for reading. Does not wait: a pipe that no process has opened for writing is empty.
///
/// # Errors
/// Returns the kernel's error, and an error if the file is a folder.
pub fn open(path: &Path) -> io::Result<File> {
    let file = open_at(fs::CWD, path, OFlags::RDONLY)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    Ok(file)
}

fn regular(file: File) -> io::Result<(File, Metadata)> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok((file, metadata))
}

/// Opens a regular file for reading.
///
/// # Errors
/// Returns the kernel's error, and an error if the file is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    regular(open_at(fs::CWD, path, OFlags::RDONLY)?)
}

/// Opens a regular file that exists for writing. A symbolic link is an error.
///
/// # Errors
/// Returns the kernel's error, and an error if the file is not a regular file.
pub fn open_to_write(path: &Path) -> io::Result<(File, Metadata)> {
    regular(open_at(fs::CWD, path, OFlags::WRONLY | OFlags::NOFOLLOW)?)
}

/// Opens a file of any kind for writing at its end, and makes it if there is none. If `truncates` is true, a regular
/// file loses its contents.
///
/// # Errors
/// Returns the kernel's error, and an error if the file is a pipe that no process has opened for reading.
pub fn create(path: &Path, truncates: bool) -> io::Result<File> {
    let mut flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
    flags.set(OFlags::TRUNC, truncates);
    open_at(fs::CWD, path, flags).map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => io::Error::other("no process has opened this pipe for reading"),
        _ => error,
    })
}

/// Replaces the contents of a file, or writes to a pipe or a device.
///
/// # Errors
/// Returns the errors of [`create`] and of writing.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    create(path, true)?.write_all(contents.as_ref())
}

/// Returns the contents of a file of any kind.
///
/// # Errors
/// Returns the kernel's error, and an error if the file has more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is longer than {most} bytes")));
    }
    Ok(bytes)
}

/// Returns the text in a file of any kind.
///
/// # Errors
/// Returns the errors of [`read`], and an error if the contents are not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not a text in UTF-8"))
}

/// Checks that the contents of a file can be trusted: the file belongs to the user of this process or to root.
///
/// # Errors
/// Returns an error that names the owner.
pub fn check_owner(metadata: &Metadata) -> io::Result<()> {
    let (owner, own) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner == 0 || owner == own {
        return Ok(());
    }
    let text =
        format!("it belongs to user {owner}, and not to user {own} of this process or to root");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// A name in a folder. Leads to the same folder even if the process changes its directory, or if the folder gets
/// another name.
#[derive(Debug)]
pub struct Entry {
    folder: OwnedFd,
    name: CString,
}

impl Entry {
    /// Opens the folder of `path`. The file need not exist. Returns `None` if the path does not end in a name, like
    /// `/`, `..` and `folder/`.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn of(path: &CStr) -> io::Result<Option<Self>> {
        let whole = Path::new(OsStr::from_bytes(path.to_bytes()));
        let is_folder = [&b"/"[..], b"/."].iter().any(|end| path.to_bytes().ends_with(end));
        let Some(Component::Normal(name)) = whole.components().next_back().filter(|_| !is_folder)
        else {
            return Ok(None);
        };
        let parent = whole.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = CString::new(parent.unwrap_or_else(|| Path::new(".")).as_os_str().as_bytes())?;
        let folder = files::folder(&parent)?;
        Ok(Some(Self { folder, name: CString::new(name.as_bytes())? }))
    }

    /// Returns the folder.
    pub fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Returns the name in the folder.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Returns the facts about what has the name now. A symbolic link is not followed.
    ///
    /// # Errors
    /// Returns the kernel's error, for example `ENOENT` if nothing has the name.
    pub fn facts(&self) -> io::Result<Facts> {
        files::entry(self.folder(), &self.name)
    }

    /// Removes the file `identity` from the folder. Leaves another file of this name alone. The caller keeps the file
    /// open, so that no other file has the same identity.
    ///
    /// # Errors
    /// Returns the kernel's error, and `ENOENT` if the name has gone or is the name of another file now.
    pub fn remove(&self, identity: (u64, u64)) -> io::Result<()> {
        if self.facts()?.identity != identity {
            let text = "the name is that of another file now, which is left alone";
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        files::unlink_at(self.folder(), &self.name)
    }

    /// Opens the regular file of this name for reading.
    ///
    /// # Errors
    /// Returns the kernel's error, and an error if the file is not a regular file.
    pub fn open_regular(&self) -> io::Result<(File, Metadata)> {
        let name = Path::new(OsStr::from_bytes(self.name.to_bytes()));
        regular(open_at(self.folder(), name, OFlags::RDONLY)?)
    }

    /// Gives this name to a file with the text `text`. Other processes see the whole old file or the whole new file.
    ///
    /// # Errors
    /// Returns the kernel's error, for example if the folder is not writable. The old file then stays as it is.
    pub fn replace(&self, text: &str) -> io::Result<()> {
        let mut new = self.name.to_bytes().to_vec();
        new.extend_from_slice(format!(".{}", std::process::id()).as_bytes());
        let new = OsStr::from_bytes(&new);
        // An exclusive creation does not follow a link that somebody has put in the place of the new file.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = open_at(self.folder(), Path::new(new), flags)?;
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| Ok(fs::renameat(self.folder(), new, self.folder(), &*self.name)?));
        if written.is_err() {
            // The result is ignored: the caller gets the first error.
            let _ = fs::unlinkat(self.folder(), new, fs::AtFlags::empty());
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// A folder that is removed at the end of the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("typepack-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            // The result is ignored: a folder that stays fails no test.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn entry(path: &Path) -> Entry {
        let path = CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
        Entry::of(&path).expect("a folder").expect("a name")
    }

    #[test]
    fn pipes_are_opened_without_waiting() {
        let folder = Folder::new("named-pipes");
        let pipe = folder.0.join("pipe");
        fs::mknodat(fs::CWD, &pipe, fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .expect("a pipe");
        assert_eq!(read(&pipe, 10).expect("an empty pipe"), b"");
        let refused = [
            open_regular(&pipe).unwrap_err(),
            open_to_write(&pipe).unwrap_err(),
            entry(&pipe).open_regular().unwrap_err(),
            create(&pipe, true).unwrap_err(),
            open_regular(Path::new("/dev/null")).unwrap_err(),
            open_regular(&folder.0).unwrap_err(),
            open(&folder.0).unwrap_err(),
            read(Path::new("/dev/zero"), 1000).unwrap_err(),
        ];
        let texts = refused.map(|error| error.to_string());
        assert!(texts[0].contains("not a regular file"), "{texts:?}");
        assert!(texts[3].contains("opened this pipe for reading"), "{texts:?}");
        assert!(texts[7].contains("longer than 1000 bytes"), "{texts:?}");
        // A pipe that another process writes is read to its end.
        let keeps = File::options().read(true).write(true).open(&pipe).expect("both ends");
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                write(&pipe, vec![7; 200_000]).expect("written");
                drop(keeps);
            }
        });
        assert_eq!(read(&pipe, 1 << 20).expect("the pipe"), vec![7; 200_000]);
        writer.join().expect("the writer");
    }

    #[test]
    fn an_entry_removes_only_its_own_file() {
        let folder = Folder::new("named-entries");
        let (one, two) = (folder.0.join("one"), folder.0.join("two"));
        std::fs::create_dir(&one).expect("a folder");
        let path = one.join("file");
        write(&path, "first").expect("a file");
        let opened = File::open(&path).expect("the file");
        let identity = files::facts(&opened).expect("facts").identity;
        let there = entry(&path);
        // The folder gets another name, and another file of the old name exists.
        std::fs::rename(&one, &two).expect("renamed");
        std::fs::create_dir(&one).expect("a folder");
        write(&path, "other").expect("a file");
        there.remove(identity).expect("removed");
        assert!(!two.join("file").exists() && path.exists());
        assert_eq!(there.remove(identity).unwrap_err().kind(), io::ErrorKind::NotFound);
        // Another file, or a link to the file, has the name.
        write(&path, "second").expect("a file");
        let there = entry(&path);
        assert!(there.remove(identity).unwrap_err().to_string().contains("left alone"));
        std::fs::rename(&path, one.join("moved")).expect("renamed");
        symlink("moved", &path).expect("a link");
        let moved = File::open(&path).expect("the file");
        let moved = files::facts(&moved).expect("facts").identity;
        assert!(there.remove(moved).is_err() && path.exists());
        for name in [c"/", c"..", c"folder/", c"folder/."] {
            assert!(Entry::of(name).expect("no name").is_none(), "{name:?}");
        }
    }

    #[test]
    fn an_entry_is_replaced_where_it_was() {
        let folder = Folder::new("named-replaced");
        let (one, two) = (folder.0.join("one"), folder.0.join("two"));
        std::fs::create_dir(&one).expect("a folder");
        let there = entry(&one.join("file"));
        assert_eq!(there.facts().unwrap_err().kind(), io::ErrorKind::NotFound);
        there.replace("text").expect("written");
        std::fs::rename(&one, &two).expect("renamed");
        there.replace("new text").expect("written");
        assert_eq!(read_text(&two.join("file"), 100).expect("the file"), "new text");
        assert_eq!(std::fs::read_dir(&two).expect("the folder").count(), 1);
        assert!(read_text(&two.join("file"), 7).unwrap_err().to_string().contains("longer than 7"));
    }
}
