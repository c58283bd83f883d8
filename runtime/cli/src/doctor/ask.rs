//! Asks what may be anything: a program of another MPI that waits for ever, a pipe under the name of a file.
//!
//! `programs.rs` and `python.rs` ask; nothing comes before this file.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use typepack_job::sys::poll::{self, PollFd, PollFlags};
use typepack_job::sys::stream::{self, Transfer};
use typepack_job::sys::{named, process};

/// How long a program may take to print its version. Launchers on a slow network file system need seconds.
const LIMIT: Duration = Duration::from_secs(10);

/// How many bytes of its output are read.
const LONGEST: usize = 1 << 20;

/// Returns what a program prints on both outputs; `None` if it cannot be started. A program that takes longer than
/// [`LIMIT`] is ended, with all that it has started.
pub fn output(program: &Path, argument: &str) -> Option<String> {
    within(program, argument, LIMIT)
}

fn within(program: &Path, argument: &str, limit: Duration) -> Option<String> {
    let (reader, writer) = stream::pipe().ok()?;
    stream::set_nonblocking(reader.as_fd()).ok()?;
    let mut child = {
        let mut command = Command::new(program);
        command.arg(argument).stdin(Stdio::null()).process_group(0);
        command.stdout(writer.try_clone().ok()?).stderr(writer).spawn().ok()?
    };
    let (end, mut text) = (Instant::now() + limit, Vec::new());
    while text.len() < LONGEST {
        let mut buffer = [0; 4096];
        match stream::read(reader.as_fd(), &mut buffer) {
            Ok(Transfer::Moved(bytes)) => text.extend_from_slice(&buffer[..bytes]),
            Ok(Transfer::Later) => {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    text.extend_from_slice(format!("\nno end within {limit:?}").as_bytes());
                    break;
                }
                let mut fds = [PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN)];
                if poll::wait(&mut fds, Some(left)).is_err() {
                    break;
                }
            }
            Ok(Transfer::Closed) | Err(_) => break,
        }
    }
    // A program that has closed its outputs has nothing more to say.
    process::end_group_of(&child);
    // The program may have left its group.
    let _gone = child.kill();
    let _reaped = child.wait();
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the first line that a program prints, on either output; `None` if it prints none. The loader's complaints
/// about `LD_PRELOAD` are not the program's.
pub fn says(program: &Path, argument: &str) -> Option<String> {
    let text = output(program, argument)?;
    let is_own = |line: &&str| !line.is_empty() && !line.starts_with("ERROR: ld.so:");
    let line = text.lines().map(str::trim).find(is_own)?;
    Some(line.chars().filter(|letter| !letter.is_control()).take(80).collect())
}

/// Returns the contents of a regular file.
///
/// # Errors
/// Returns the kernel's error, and an error if the file is not a regular file.
pub fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let (mut file, _) = named::open_regular(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the text in a regular file; `None` if it cannot be read. What is not UTF-8 is replaced.
pub fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&contents(path).ok()?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{LIMIT, contents, says, within};
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn a_program_that_waits_for_ever_is_ended() {
        // The length of the text ends the first program, and the limit the second one.
        let text = within(Path::new("/usr/bin/yes"), "", LIMIT).expect("it starts");
        assert!(text.len() >= 4096, "{}", text.len());
        let text = within(Path::new("/usr/bin/sleep"), "infinity", Duration::from_millis(50));
        assert_eq!(text.as_deref(), Some("\nno end within 50ms"));
        assert_eq!(says(Path::new("/nowhere/mpiexec"), "--version"), None);
    }

    #[test]
    fn what_is_no_file_has_no_contents() {
        for path in ["/dev/zero", "/"] {
            assert!(contents(Path::new(path)).is_err(), "{path}");
        }
    }
}
