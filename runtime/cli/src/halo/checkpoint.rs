//! Checkpoints: writes the fields of all ranks to one file, and continues from such a file on any number of
//! ranks.
//!
//! `job.rs` calls this file; `header.rs` defines the header at the start of the file. Every rank writes its block
//! through a view that selects the block in the array of the whole grid, so the contents of the file do not depend
//! on the number of ranks.
//!
//! The last checkpoint is always whole. The ranks write a new file, whose name is that of the checkpoint followed by
//! [`PART`]. They wait until all its data is on the storage device, and only then rename it to the name of the
//! checkpoint. A job that ends before the renaming leaves the new file behind, and the next checkpoint replaces it.
//! Rank 0 keeps the new file locked until it is renamed, so that two jobs whose checkpoints have the same name do
//! not write into the same file.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, TryLockError};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use typepack::halo::Field;
use typepack::io::{Access, File, Mode, Position};
use typepack::{Cartesian, Communicator, Datatype, Named, Order};
use typepack_job::sys::named;

use super::blocks::{own_part, owned};
use super::header::{HEADER, Header};
use super::initial::plain;
use super::options::Options;
use super::verdict::checksum;
use crate::agree::{FAILURE, Stop, USAGE, agree};

/// The end of the name of a checkpoint that is being written.
const PART: &str = ".typepack-part";

/// Number of attempts to make the new file (`PATIENCE`), and the pause after an attempt that finds the file locked
/// (`PAUSE`).
const PATIENCE: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// The access to the values: all ranks make it together, and each rank continues at the end of its previous access.
const ALL: Access = Access { write: true, position: Position::Individual, collective: true };

fn part_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(PART);
    PathBuf::from(name)
}

/// Removes a file. A file that does not exist is no error.
fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Checks on rank 0 that checkpoints can be written: makes the new file beside `path`, and removes it again.
pub fn try_out(path: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {}", path.display(), plain(&error));
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(format!("{}: not a regular file", path.display()));
    }
    let part = part_name(path);
    let made = make_part(&part).map_err(failed)?;
    remove(&part).map_err(failed)?;
    drop(made);
    Ok(())
}

/// Makes an empty file and locks it. Replaces a file that a job has left behind. No other job uses the name as long
/// as the caller keeps the file open.
///
/// # Errors
/// Returns `ErrorKind::ResourceBusy` if another job writes a checkpoint with this name. Returns the system's error
/// if the file cannot be made, locked or replaced.
fn make_part(part: &Path) -> std::io::Result<fs::File> {
    // The ranks of a killed job may still be ending, and keep the file locked until they have ended. So try
    // several times.
    for _ in 0..PATIENCE {
        let (file, old) = match fs::File::create_new(part) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let found = fs::symlink_metadata(part);
                if found.is_ok_and(|found| !found.is_file()) {
                    remove(part)?;
                    continue;
                }
                match named::open_to_write(part) {
                    Ok((file, _)) => (file, true),
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                sleep(PAUSE);
                continue;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Another job may have renamed or removed the file after this job opened it and before this job locked it.
        // Then try again.
        if !is_named(&file, part)? {
            continue;
        }
        if !old {
            return Ok(file);
        }
        // Do not reuse the old file, because ranks of the old job that are still ending may write into it. Remove
        // it; the next attempt makes a new file.
        remove(part)?;
    }
    let detail = format!("another job is writing {}", part.display());
    Err(std::io::Error::new(ErrorKind::ResourceBusy, detail))
}

/// Returns whether `name` is the name of the open file.
fn is_named(file: &fs::File, name: &Path) -> std::io::Result<bool> {
    let (own, named) = (file.metadata()?, fs::symlink_metadata(name));
    Ok(named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())))
}

/// Sets the view of this rank: its block of each field, one field after another.
fn set_view(file: &File, cartesian: &Cartesian, options: &Options) -> typepack::Result<()> {
    let grid = options.grid.0;
    let part = own_part(grid, cartesian);
    let fields = options.fields.0;
    let wide = |first: usize, rest: [usize; 3]| {
        // The cast is lossless: the values are extents of arrays in memory.
        [first, rest[0], rest[1], rest[2]].map(|extent| extent as i64)
    };
    let double = Datatype::named(Named::F64);
    let blocks = Datatype::subarray(
        &wide(fields, grid),
        &wide(fields, part.shape),
        &wide(0, part.start),
        Order::C,
        &double,
    )?;
    file.set_view(Some(HEADER as i64), &double, &blocks, "native")
}

/// Writes the fields to a new file, and renames the file to `path` when all data is on the storage device. Returns
/// a line with the size of the file, the time and the rate, which rank 0 prints.
pub fn write(
    path: &Path,
    options: &Options,
    cartesian: &Cartesian,
    fields: &[Field<f64, 3>],
    steps: usize,
) -> Result<String, Stop> {
    let begin = Instant::now();
    let comm = cartesian.comm();
    let root = comm.rank() == 0;
    let part = part_name(path);
    let failed =
        |error: std::io::Error| format!("--checkpoint: {}: {}", path.display(), plain(&error));
    let made = if root { make_part(&part).map(Some).map_err(failed) } else { Ok(None) };
    // `made` keeps the file locked until the end of this function. By then the file has been renamed or removed.
    let made = agree(comm, made, FAILURE)?;
    let checksum = checksum(options.grid.0, cartesian, fields)?;
    let header = Header::new(options, steps, checksum);
    let written = write_part(&part, options, cartesian, fields, header);
    let mut named = written.map_err(|error| format!("--checkpoint: {}: {error}", path.display()));
    if let Some(made) = made {
        named = named.and_then(|()| give_name(&made, &part, path).map_err(failed));
        if named.is_err() && is_named(&made, &part).is_ok_and(|own| own) {
            // An error of `remove` is ignored, because `named` already has the error to report.
            let _left_behind = remove(&part);
        }
    }
    agree(comm, named, FAILURE)?;
    Ok(line(&format!("checkpoint at step {steps}"), options, begin))
}

fn write_part(
    part: &Path,
    options: &Options,
    cartesian: &Cartesian,
    fields: &[Field<f64, 3>],
    header: Header,
) -> typepack::Result<()> {
    let comm = cartesian.comm();
    let file = File::open(comm, part, Mode::READ_WRITE)?;
    let header = header.to_bytes();
    file.write_at_all(0, if comm.rank() == 0 { &header[..] } else { &[] })?;
    set_view(&file, cartesian, options)?;
    for field in fields {
        file.write_as(ALL, field.as_slice(), &owned(field)?, 1)?;
    }
    file.sync()?;
    file.close()
}

/// Renames the new file `made`, whose name is `part`, to `path`. When the call returns, the new name is on the storage
/// device.
fn give_name(made: &fs::File, part: &Path, path: &Path) -> std::io::Result<()> {
    if !is_named(made, part)? {
        let text = format!("another file has taken the name {}", part.display());
        return Err(std::io::Error::other(text));
    }
    fs::rename(part, path)?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::File::open(folder)?.sync_all()
}

/// Returns a line about an access to the whole file that started at `begin`: its size, the time and the rate.
fn line(what: &str, options: &Options, begin: Instant) -> String {
    let values = options.grid.0.iter().product::<usize>() * options.fields.0;
    let bytes = (values * 8 + HEADER) as f64;
    let seconds = begin.elapsed().as_secs_f64();
    let mut text = String::new();
    let _infallible = writeln!(
        text,
        "{what}: {:.3} MB in {:.3} ms, {:.3} GB/s",
        bytes / 1e6,
        seconds * 1e3,
        bytes / seconds / 1e9
    );
    text
}

/// Reads and checks the header of a file on rank 0, and returns the number of steps and the checksum on all
/// ranks.
pub fn examine(path: &Path, options: &Options, comm: &Communicator) -> Result<(usize, u64), Stop> {
    let read = || -> Result<Header, String> {
        let system = |error: std::io::Error| plain(&error);
        let (mut file, found) = named::open_regular(path).map_err(system)?;
        let mut start = Vec::new();
        file.by_ref().take(HEADER as u64).read_to_end(&mut start).map_err(system)?;
        let header = Header::parse(&start)?;
        header.check(options, found.len())?;
        Ok(header)
    };
    let header = if comm.rank() == 0 { read().map(Some) } else { Ok(None) };
    let header = header.map_err(|what| format!("--restart: {}: {what}", path.display()));
    let header = agree(comm, header, USAGE)?;
    let mut words = header.map_or([0; 2], |header| [header.steps, header.checksum]);
    comm.broadcast(&mut words, 0)?;
    // The cast is lossless: `check` has made sure that the number of steps is at most that of the options, which is
    // a `usize`.
    Ok((words[0] as usize, words[1]))
}

/// Reads the fields from a file that [`examine`] has accepted, and checks their checksum. Returns a line with the
/// size of the file, the time and the rate, which rank 0 prints.
pub fn read(
    path: &Path,
    options: &Options,
    cartesian: &Cartesian,
    fields: &mut [Field<f64, 3>],
    (steps, wanted): (usize, u64),
) -> Result<String, Stop> {
    let begin = Instant::now();
    let comm = cartesian.comm();
    let refused = |what: String| format!("--restart: {}: {what}", path.display());
    let found = read_values(path, options, cartesian, fields);
    let found = agree(comm, found.map_err(|error| refused(error.to_string())), FAILURE)?;
    let whole =
        if found { Ok(()) } else { Err(refused("the file changed while it was read".to_owned())) };
    agree(comm, whole, FAILURE)?;
    let checksum = checksum(options.grid.0, cartesian, fields)?;
    let same = (checksum == wanted).then_some(()).ok_or_else(|| {
        refused(format!(
            "the values are damaged: their checksum is {checksum:016x}; the header says {wanted:016x}"
        ))
    });
    agree(comm, same, USAGE)?;
    Ok(line(&format!("restart from step {steps}"), options, begin))
}

/// Returns whether the file had all values of this rank.
fn read_values(
    path: &Path,
    options: &Options,
    cartesian: &Cartesian,
    fields: &mut [Field<f64, 3>],
) -> typepack::Result<bool> {
    let file = File::open(cartesian.comm(), path, Mode::READ_ONLY)?;
    set_view(&file, cartesian, options)?;
    let mut whole = true;
    for field in fields {
        let plan = owned(field)?;
        let bytes = field.shape().iter().product::<usize>() * size_of::<f64>();
        whole &= file.read_as(ALL, field.as_mut_slice(), &plan, 1)? == bytes;
    }
    file.close()?;
    Ok(whole)
}
