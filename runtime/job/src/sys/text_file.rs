//! Small text files that the user names: reading with a limit, and replacing as a whole.
//!
//! The runtime keeps in such a file what a job has learnt about the machine (`tuned/file.rs`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Returns the text of the file at `path`.
///
/// # Errors
/// Returns an error if the file cannot be read, is longer than `most` bytes, or is not UTF-8. If the file
/// does not exist, the kind of the error is `io::ErrorKind::NotFound`.
pub fn read(path: &Path, most: u64) -> io::Result<String> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(most.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::other(format!("it is longer than {most} bytes")));
    }
    Ok(text)
}

/// Replaces the file at `path` by a file with this text. Other processes see the whole old file or the whole new
/// file.
///
/// # Errors
/// Returns the system's error, for example if the folder of the file is not writable. The old file then
/// stays as it is.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}", std::process::id()));
    let new: PathBuf = path.with_file_name(name);
    // `create_new` does not follow a link that somebody has put in the place of the new file.
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // The result is ignored: if the file was never made, there is nothing to remove.
        let _ = fs::remove_file(&new);
    }
    written
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

    #[test]
    fn files_are_replaced_and_read() {
        let folder = std::env::temp_dir().join(format!("typepack-text-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("file");
        assert_eq!(read(&path, 10).unwrap_err().kind(), io::ErrorKind::NotFound);
        replace(&path, "one").expect("a new file");
        replace(&path, "three").expect("a file in place of the old one");
        assert_eq!(read(&path, 5).expect("the file"), "three");
        assert!(read(&path, 4).unwrap_err().to_string().contains("longer than 4 bytes"));
        assert!(read(&folder, 10).is_err());
        assert!(replace(&folder.join("missing/file"), "x").is_err());
        fs::write(&path, [0xff, 0xfe]).expect("a file");
        assert!(read(&path, 10).is_err());
        let left = fs::read_dir(&folder).expect("the folder").count();
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(left, 1);
    }

    #[test]
    fn the_processor_stays_the_same() {
        assert_eq!(processor(), processor());
    }
}
