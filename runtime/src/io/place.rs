//! Which file a name means, before the file exists: the ranks that open a file together agree on this before one of
//! them makes the file. So ranks that name different files leave no file behind.
//!
//! Two names mean the same file if they lead to the same name in the same folder, or if both lead to the same file that
//! exists (hard links). The first comparison does not depend on whether the file exists at this moment, because another
//! process or an earlier call may be making or removing the file.

use super::agree::{about, compared, differ, system_named, text_words};
use super::mode::Mode;
use crate::comm::Communicator;
use crate::sys::files::{self, Facts};
use crate::{Error, ErrorKind, FileErrorKind, Result};
use std::ffi::{CStr, CString};
use std::path::{Component, Path};

/// The most symbolic links that a name may lead through, as in the kernel.
const LINKS: usize = 40;

/// Number of words for the folder and the name in it. The words for the file ([`FILE`]) follow these words.
const NAME: usize = 4;
const FILE: usize = 3;

/// What a name means.
#[derive(Debug)]
pub(super) struct Place {
    /// The name as the program gave it.
    pub given: CString,
    /// The name that is left after all symbolic links in the last part of the name have been followed.
    pub resolved: CString,
    /// The facts about the file, if the file exists.
    pub found: Option<Facts>,
    words: [i64; NAME + FILE],
}

fn bad(detail: &str) -> Error {
    Error::new(ErrorKind::File(FileErrorKind::BadFile), "filename", detail)
}

fn name_of(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).map_err(|_| bad("the name contains a zero byte"))
}

fn path_of(name: &CStr) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

impl Place {
    /// Finds out what a name means. The file need not exist, but its folder must.
    ///
    /// # Errors
    /// Returns [`FileErrorKind::BadFile`] if the name has a zero byte or leads through too many symbolic links, and
    /// the system's error.
    pub fn find(path: &Path) -> Result<Self> {
        let given = name_of(path)?;
        let failed = |error| system_named(&given, &error);
        let found = match files::lookup(&given) {
            Ok(facts) => Some(facts),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => None,
            Err(error) => return Err(failed(error)),
        };
        let mut resolved = given.clone();
        let mut links = 0;
        loop {
            let next = match files::link(&resolved) {
                Ok(None) => break,
                Ok(Some(next)) => next,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
                Err(error) => return Err(failed(error)),
            };
            links += 1;
            if links > LINKS {
                let detail = format!("the name leads through more than {LINKS} symbolic links");
                return Err(bad(&about(&given, &detail)));
            }
            let folder = path_of(&resolved).parent().unwrap_or_else(|| Path::new(""));
            resolved = name_of(&folder.join(path_of(&next)))?;
        }
        let whole = path_of(&resolved);
        let is_folder = [&b"/"[..], b"/."].iter().any(|end| resolved.to_bytes().ends_with(end));
        let last = match whole.components().next_back() {
            // Names such as `folder/` and `folder/.` name the folder itself.
            Some(Component::Normal(last)) if !is_folder => Some(last),
            _ => None,
        };
        let mut words = [0; NAME + FILE];
        if let Some(last) = last {
            let folder = whole.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = name_of(folder.unwrap_or_else(|| Path::new(".")))?;
            let (device, number) = files::lookup(&folder).map_err(failed)?.identity;
            let [first, second] = text_words(last.as_encoded_bytes());
            words[..NAME].copy_from_slice(&[device as i64, number as i64, first, second]);
        } else if let Some(Facts { identity: (device, number), .. }) = found {
            words[..2].copy_from_slice(&[device as i64, number as i64]);
        }
        if let Some(Facts { identity: (device, number), .. }) = found {
            words[NAME..].copy_from_slice(&[1, device as i64, number as i64]);
        }
        Ok(Self { given, resolved, found, words })
    }
}

/// Checks that all ranks open the same file in the same mode. Collective. `own` has the mode and the place of this
/// rank, or the error that this rank has found in its arguments.
///
/// # Errors
/// Returns an error of the same class on all ranks: that of a rank that has found an error, or
/// [`FileErrorKind::NotSame`] if the ranks name different files or modes.
pub(super) fn agree_place(comm: &Communicator, own: Result<(Mode, Place)>) -> Result<Place> {
    let mut words = [0; 1 + NAME + FILE];
    if let Ok((mode, place)) = &own {
        words[0] = mode.bits().into();
        words[1..].copy_from_slice(&place.words);
    }
    let ((_, place), same) = compared(comm, own, &words)?;
    let all = |part: &[bool]| part.iter().all(|&same| same);
    let (name, file) = same[1..].split_at(NAME);
    if !same[0] {
        return Err(differ("amode"));
    }
    if all(name) || place.found.is_some() && all(file) {
        return Ok(place);
    }
    Err(differ("filename"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_one_file_have_the_same_words() {
        let folder = std::env::temp_dir().join(format!("typepack-place-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sub")).expect("a folder");
        let words = |name: &str| Place::find(&folder.join(name)).expect(name).words;
        let name = |name: &str| words(name)[..NAME].to_vec();
        std::os::unix::fs::symlink("sub/../new", folder.join("link")).expect("a link");
        std::os::unix::fs::symlink("link", folder.join("sub/second")).expect("a link");
        std::os::unix::fs::symlink("loop", folder.join("loop")).expect("a link");
        // The file does not exist.
        for same in ["sub/../new", "./new", "link"] {
            assert_eq!(words(same), words("new"), "{same}");
        }
        // The second link leads to sub/link, which does not exist.
        for other in ["news", "sub/new", "sub/second"] {
            assert_ne!(name(other), name("new"), "{other}");
        }
        let before = words("new");
        std::fs::write(folder.join("new"), "data").expect("a file");
        assert_eq!(name("new"), before[..NAME]);
        std::fs::hard_link(folder.join("new"), folder.join("hard")).expect("a link");
        assert_ne!(name("hard"), name("new"));
        assert_eq!(words("hard")[NAME..], words("link")[NAME..]);
        assert_eq!(words("sub/"), words("sub/."));
        for bad in ["loop", "none/new", "new/new"] {
            assert!(Place::find(&folder.join(bad)).is_err(), "{bad}");
        }
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
