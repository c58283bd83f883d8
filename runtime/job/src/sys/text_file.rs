//! Small text files that the user names: reading with a limit, and replacing as a whole.
//!
//! The runtime keeps in such a file what a job has measured on the machine (`tuned/file.rs`).

use super::named::{self, Entry};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Returns the text of a regular file, which belongs to the user of this process or to root.
///
/// # Errors
/// Returns an error if the file is of another kind, belongs to somebody else, cannot be read, is longer than `most`
/// bytes, or is not UTF-8. If the file does not exist, the kind of the error is `io::ErrorKind::NotFound`.
pub fn read(path: &Path, most: u64) -> io::Result<String> {
    let (file, metadata) = named::open_regular(path)?;
    named::check_owner(&metadata)?;
    text(file, most)
}

fn text(file: File, most: u64) -> io::Result<String> {
    let mut text = String::new();
    file.take(most.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::other(format!("it is longer than {most} bytes")));
    }
    Ok(text)
}

/// Replaces the file at `entry` by a file with the text `new`, if `is_ours` accepts the text of the file that has the
/// name now, or if no file has the name. Other processes see the whole old file or the whole new file.
///
/// # Errors
/// Returns an error if another file has the name, and the system's error, for example if the folder of the file is
/// not writable. The old file then stays as it is.
pub fn replace(
    entry: &Entry,
    new: &str,
    most: u64,
    is_ours: impl FnOnce(&str) -> bool,
) -> io::Result<()> {
    match entry.open_regular() {
        Ok((file, metadata)) => {
            named::check_owner(&metadata)?;
            if !is_ours(&text(file, most)?) {
                return Err(io::Error::other("another file has taken its place"));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    entry.replace(new)
}

/// Returns a text that names the processor of this machine: the lines of `/proc/cpuinfo` about the first
/// CPU, without those that change from run to run. Equal texts mean equal processors.
pub fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // Leave out clock rates, which change from run to run, and the numbers of the CPU, its core and its package. These
    // numbers say which CPU is the first one, and not what kind of processor it is.
    const CHANGING: [&str; 10] = [
        "cpu MHz",
        "bogomips",
        "BogoMIPS",
        "processor",
        "core id",
        "apicid",
        "initial apicid",
        "physical id",
        "siblings",
        "cpu cores",
    ];
    let lines = text.lines().take_while(|line| !line.is_empty());
    let kept = lines.filter(|line| {
        let name = line.split(':').next().unwrap_or_default().trim();
        !CHANGING.contains(&name)
    });
    kept.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn files_are_replaced_and_read() {
        let folder = std::env::temp_dir().join(format!("typepack-text-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("file");
        let name = CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
        let entry = Entry::of(&name).expect("a folder").expect("a name");
        assert_eq!(read(&path, 10).unwrap_err().kind(), io::ErrorKind::NotFound);
        replace(&entry, "one", 10, |_| false).expect("a new file");
        replace(&entry, "three", 10, |old| old == "one").expect("a file in place of the old one");
        assert!(replace(&entry, "four", 10, |old| old == "one").is_err());
        assert_eq!(read(&path, 5).expect("the file"), "three");
        assert!(read(&path, 4).unwrap_err().to_string().contains("longer than 4 bytes"));
        assert!(read(&folder, 10).is_err());
        fs::write(&path, [0xff, 0xfe]).expect("a file");
        assert!(read(&path, 10).is_err());
        let left = fs::read_dir(&folder).expect("the folder").count();
        // The file of another user is not read.
        if std::os::unix::fs::chown(&path, Some(65534), None).is_ok() {
            assert!(read(&path, 10).unwrap_err().to_string().contains("user 65534"));
        }
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(left, 1);
    }

    #[test]
    fn the_processor_stays_the_same() {
        assert_eq!(processor(), processor());
    }
}
