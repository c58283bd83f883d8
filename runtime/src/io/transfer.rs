//! Moves data between memory and a file through a view: the part of an access that makes system calls.
//!
//! The callers have checked the arguments and know where in the view the access begins. A transfer returns
//! how many bytes it has moved and the error that ended it. Reads end at the end of the file without an
//! error.
//!
//! Writing touches no byte that the view does not cover: each run of the view is a `pwrite` of its own,
//! and nothing is read first. Reading may read more: if the runs of a view are short and close, one `pread`
//! brings a whole window of the file, and the plan of the view takes the runs out of it.

use super::agree::system;
use super::view::View;
use crate::message::payload::LayoutRef;
use crate::sys::files::{self, FileKind, Moved, SizeSignal};
use crate::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use typepack_engine::Cursor;

/// Size in bytes of the buffers through which data goes that is not one run in memory, and of the windows of
/// a file that reads bring at once.
const CHUNK: u64 = 1 << 20;

/// Greatest mean distance in bytes between the starts of runs that a read brings as a window. A separate call
/// for each run costs about as much as reading this number of bytes.
const CLOSE: u64 = 16 << 10;

/// An open file, as a transfer needs it.
#[derive(Debug)]
pub(super) struct Target {
    /// The descriptor.
    pub fd: OwnedFd,
    /// What the file is.
    pub kind: FileKind,
}

/// The number of bytes that a transfer has moved, and the error that ended it early.
pub(super) type Transferred = (u64, Result<()>);

/// Returns a buffer of `bytes` bytes.
fn buffer(bytes: u64) -> Result<Vec<u8>> {
    let refused =
        |_| Error::new(ErrorKind::NoMemory, "memory", format!("cannot allocate {bytes} bytes"));
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes as usize).map_err(refused)?;
    buffer.resize(bytes as usize, 0);
    Ok(buffer)
}

/// Returns the address of the first byte of a layout that is one run of memory.
fn run_of(memory: &LayoutRef<'_>) -> Option<*mut u8> {
    let first = memory.plan.footprint().true_lb as isize;
    memory.plan.is_contiguous().then(|| memory.origin.wrapping_offset(first))
}

fn of_system((done, result): Moved, what: &'static str) -> Transferred {
    (done, result.map_err(|error| system(what, &error)))
}

/// The runs of a view, joined where one begins at the end of the one before.
struct Runs<'a> {
    cursor: Cursor<'a>,
    displacement: u64,
    left: u64,
}

impl<'a> Runs<'a> {
    fn new(view: &'a View, start: u64, bytes: u64) -> Result<Self> {
        let cursor = view.cursor(start, start + bytes)?;
        Ok(Self { cursor, displacement: view.displacement(), left: bytes })
    }

    /// Returns the file offset and the length of the next run, of which at most `most` bytes.
    fn next(&mut self, most: u64) -> Option<(u64, u64)> {
        let most = most.min(self.left);
        let first = self.cursor.run().filter(|_| most > 0)?;
        let mut bytes = first.bytes.min(most);
        self.cursor.advance(bytes);
        while bytes < most
            && let Some(next) = self.cursor.run()
            && next.offset == first.offset.wrapping_add(bytes as i64)
        {
            let more = next.bytes.min(most - bytes);
            self.cursor.advance(more);
            bytes += more;
        }
        self.left -= bytes;
        Some((self.displacement + first.offset as u64, bytes))
    }
}

/// Writes all data of `memory`, `bytes` bytes, to the file from view byte `start` on.
///
/// # Safety
///
/// - The elements of `memory` are readable, and nobody changes them until the call returns.
/// - `bytes` is the packed size of `memory`.
pub(super) unsafe fn write(
    file: &Target,
    view: &View,
    memory: &LayoutRef<'_>,
    start: u64,
    bytes: u64,
) -> Transferred {
    let _signal = SizeSignal::block();
    let mut done = 0;
    // SAFETY: the caller guarantees that the elements are readable and unchanged, and that `bytes` is their
    // packed size (both conditions of `# Safety`).
    let result = unsafe { write_counted(file, view, memory, start, bytes, &mut done) };
    (done, result)
}

/// Does what [`write`] does, and counts the bytes in `done`.
///
/// # Safety
///
/// - The conditions of [`write`] hold.
unsafe fn write_counted(
    file: &Target,
    view: &View,
    memory: &LayoutRef<'_>,
    start: u64,
    bytes: u64,
    done: &mut u64,
) -> Result<()> {
    let direct = run_of(memory);
    let mut packed = if direct.is_some() { Vec::new() } else { buffer(bytes.min(CHUNK))? };
    let mut runs = match file.kind {
        FileKind::Stream => None,
        _ => Some(Runs::new(view, start, bytes)?),
    };
    while *done < bytes {
        // The next chunk of packed data: all of it if memory is one run.
        let chunk = if direct.is_some() { bytes } else { (bytes - *done).min(CHUNK) };
        let from: *const u8 = match direct {
            Some(first) => first,
            None => {
                // SAFETY: the range ends at or before `bytes`, the packed size of `memory`, whose elements
                // the caller guarantees to be readable. `packed` has at least `chunk` bytes and is a new
                // buffer, so it does not overlap the elements.
                unsafe { memory.pack(*done..*done + chunk, packed.as_mut_ptr()) };
                packed.as_ptr()
            }
        };
        let mut within = 0;
        while within < chunk {
            let at = from.wrapping_add(within as usize);
            let (wanted, moved) = match &mut runs {
                // SAFETY: the `chunk` bytes at `from` are the packed data in `packed`, or the elements
                // themselves, which are one readable run; `at` is `within` bytes behind `from`.
                None => {
                    (chunk - within, unsafe { files::write_stream(&file.fd, at, chunk - within) })
                }
                Some(runs) => {
                    let Some((offset, length)) = runs.next(chunk - within) else { return Ok(()) };
                    // SAFETY: `length` is at most `chunk - within`, and the `chunk` bytes at `from` are
                    // readable: they are `packed` or the elements themselves.
                    (length, unsafe { files::write_at(&file.fd, at, length, offset) })
                }
            };
            let (moved, result) = of_system(moved, "file");
            (*done, within) = (*done + moved, within + wanted);
            result?;
        }
    }
    Ok(())
}

/// Reads at most the `bytes` bytes of `memory` from the file, from view byte `start` on.
///
/// # Safety
///
/// - The elements of `memory` are writable, and nobody else accesses them until the call returns.
/// - `bytes` is the packed size of `memory`.
pub(super) unsafe fn read(
    file: &Target,
    view: &View,
    memory: &LayoutRef<'_>,
    start: u64,
    bytes: u64,
) -> Transferred {
    let mut done = 0;
    let result = match (file.kind, view.run()) {
        (FileKind::Stream, _) | (_, Some(_)) => {
            // SAFETY: the caller guarantees that the elements are writable, that nobody else accesses them,
            // and that `bytes` is their packed size (both conditions of `# Safety`).
            unsafe { read_run(file, view, memory, start, bytes, &mut done) }
        }
        // SAFETY: as above, the caller guarantees both conditions, and `read_runs` has the same.
        _ => unsafe { read_runs(file, view, memory, start, bytes, &mut done) },
    };
    (done, result)
}

/// Reads from a stream, or through a view that is one run of the file. Counts the bytes in `done`.
///
/// # Safety
///
/// - The conditions of [`read`] hold.
unsafe fn read_run(
    file: &Target,
    view: &View,
    memory: &LayoutRef<'_>,
    start: u64,
    bytes: u64,
    done: &mut u64,
) -> Result<()> {
    let direct = run_of(memory);
    let mut packed = if direct.is_some() { Vec::new() } else { buffer(bytes.min(CHUNK))? };
    let first = match file.kind {
        FileKind::Stream => None,
        _ => {
            view.tiles(start + bytes)?;
            Some(view.offset(start)?)
        }
    };
    while *done < bytes {
        let chunk = if direct.is_some() { bytes } else { (bytes - *done).min(CHUNK) };
        let to = direct.unwrap_or(packed.as_mut_ptr());
        let moved = match first {
            // SAFETY: `to` is `packed`, which has `chunk` bytes, or the only run of the elements, which has
            // `bytes` bytes that the caller guarantees to be writable.
            None => unsafe { files::read_stream(&file.fd, to, chunk) },
            // SAFETY: `chunk` bytes at `to` are writable: `to` is `packed` or the run of the elements.
            Some(first) => unsafe { files::read_at(&file.fd, to, chunk, first + *done) },
        };
        let (moved, result) = of_system(moved, "file");
        if direct.is_none() {
            // SAFETY: the range ends at or before `bytes`, the packed size of the elements, which the caller
            // guarantees to be writable. `packed` has `moved` bytes and does not overlap them.
            unsafe { memory.unpack(*done..*done + moved, packed.as_ptr()) };
        }
        *done += moved;
        result?;
        if moved < chunk {
            break;
        }
    }
    Ok(())
}

/// Reads through a view of several runs. Counts the bytes in `done`.
///
/// # Safety
///
/// - The conditions of [`read`] hold.
unsafe fn read_runs(
    file: &Target,
    view: &View,
    memory: &LayoutRef<'_>,
    start: u64,
    bytes: u64,
    done: &mut u64,
) -> Result<()> {
    let end = start + bytes;
    let tiles = view.tiles(end)?;
    let direct = run_of(memory);
    let mut packed = if direct.is_some() { Vec::new() } else { buffer(bytes.min(CHUNK))? };
    let mut window = Vec::new();
    while *done < bytes {
        let at = start + *done;
        // The view bytes `at..last` lie in a window of the file, unless runs of the view overlap.
        let low = view.offset(at)?;
        let most = end.min(at + CHUNK);
        let last =
            if view.is_ordered() { view.below(low + CHUNK, most)? } else { most }.max(at + 1);
        let span = view.offset(last - 1)?.saturating_sub(low) + 1;
        let first_run = view.cursor(at, end)?.run().map_or(1, |run| run.bytes.max(1));
        let count = ((last - at) / first_run).max(1);
        let to = match direct {
            Some(first) => first.wrapping_add(*done as usize),
            None => packed.as_mut_ptr(),
        };
        let (valid, result) = if view.is_ordered() && span / count <= CLOSE && span <= CHUNK {
            if window.is_empty() {
                window = buffer(CHUNK)?;
            }
            // SAFETY: `window` has `CHUNK` bytes, and `span` is at most `CHUNK`.
            let moved = unsafe { files::read_at(&file.fd, window.as_mut_ptr(), span, low) };
            let (got, result) = of_system(moved, "file");
            let valid = view.below(low + got, last)?.max(at);
            // File offset 0 would be at this address.
            let zero = window.as_mut_ptr().wrapping_sub(low as usize);
            let origin = zero.wrapping_add(view.displacement() as usize);
            let layout = LayoutRef { origin, plan: view.plan(), count: tiles };
            // SAFETY: the file offsets of the view bytes `at..valid` lie between `low` and `low + got`
            // (`below`; offsets never decrease), so they lie in the first `got` bytes of `window`, which are
            // initialised. `to` has room for `valid - at` bytes: it is the rest of the elements' only run,
            // or `packed`, which has as many bytes as a window can hold. `window` overlaps neither.
            unsafe { layout.pack(at..valid, to) };
            (valid - at, result)
        } else {
            let mut runs = Runs::new(view, at, last - at)?;
            let (mut got, mut result) = (0, Ok(()));
            while let Some((offset, length)) = runs.next(u64::MAX) {
                let place = to.wrapping_add(got as usize);
                // SAFETY: the runs have `last - at` bytes together, at most `CHUNK`, and `to` has room for
                // them: it is the rest of the elements' run, or `packed`.
                let moved = unsafe { files::read_at(&file.fd, place, length, offset) };
                let (moved, outcome) = of_system(moved, "file");
                got += moved;
                result = outcome;
                if moved < length {
                    break;
                }
            }
            (got, result)
        };
        if direct.is_none() {
            // SAFETY: the range ends at or before `bytes`, the packed size of the elements, which the caller
            // guarantees to be writable. The first `valid` bytes of `packed` have just been read.
            unsafe { memory.unpack(*done..*done + valid, packed.as_ptr()) };
        }
        *done += valid;
        result?;
        if at + valid < last {
            break;
        }
    }
    Ok(())
}
