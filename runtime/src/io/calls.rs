//! Moves data between memory and a file by system calls.
//!
//! Writing touches no byte that the view does not cover: each piece of the view is a `pwrite` of its own,
//! and nothing is read first. Reading may read more: if the pieces of a view are short and close, one
//! `pread` brings a whole window of the file, and the plan of the view takes the pieces out of it.

use super::agree::system;
use super::transfer::{Memory, Target, Transfer, buffer};
use super::view::View;
use crate::Result;
use crate::sys::files::{self, FileKind, Moved};
use std::io;
use std::time::Duration;
use typepack_engine::Elements;

/// Size in bytes of the buffers for data that is not one run in memory.
const CHUNK: u64 = 1 << 20;

/// Greatest mean distance in bytes between the starts of pieces that a read brings as a window if no hint says
/// otherwise. A separate call for each piece costs about as much as reading this number of bytes.
const CLOSE: u64 = 16 << 10;

fn of_system((done, result): Moved) -> (u64, Result<()>) {
    (done, result.map_err(|error| system("file", &error)))
}

/// Moves the data of an access between the file and `memory`, beginning at byte `done` of `memory`. Adds the number
/// of bytes moved to `done`. Byte 0 of `memory` corresponds to view byte `start`.
///
/// # Safety
///
/// - If `write` is true, the elements of `memory` are readable and nobody changes them until the call returns.
///   If `write` is false, they are writable and nobody else accesses them until the call returns.
pub(super) unsafe fn run(
    file: &Target,
    transfer: &Transfer<'_>,
    memory: &Memory<'_>,
    start: u64,
    done: &mut u64,
) -> Result<()> {
    let Transfer { view, write, .. } = *transfer;
    // SAFETY: the caller guarantees that the elements stay valid for the direction of the access (the
    // condition of `# Safety`), and the three functions have the same condition.
    unsafe {
        if write {
            write_pieces(file, transfer, memory, start, done)
        } else if file.kind == FileKind::Stream || view.run().is_some() {
            read_run(file, transfer, memory, start, done)
        } else {
            read_pieces(file, view, memory, start, done)
        }
    }
}

/// Longest time for which a thread of the program waits for a stream before it makes progress again.
const TURN: Duration = Duration::from_millis(1);

/// Moves `bytes` bytes between a stream and memory. Waits until the stream can take or give data; a thread of the
/// program makes progress while it waits. Returns the number of bytes moved, which is less than `bytes` without an
/// error only if the stream ends.
///
/// # Safety
///
/// - `bytes` bytes at `memory` are readable and nobody changes them until the call returns; or, if the access reads the
///   stream, they are writable and nobody else accesses them.
unsafe fn stream(
    file: &Target,
    transfer: &Transfer<'_>,
    memory: *mut u8,
    bytes: u64,
) -> (u64, Result<()>) {
    let mut done = 0;
    loop {
        let (next, left) = (memory.wrapping_add(done as usize), bytes - done);
        // SAFETY: `done` is at most `bytes`, so the caller guarantees that the `left` bytes at `next` are valid for the
        // direction of the access (the condition of `# Safety`).
        let (moved, result) = unsafe {
            match transfer.write {
                true => files::write_stream(&file.fd, next, left),
                false => files::read_stream(&file.fd, next, left),
            }
        };
        done += moved;
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if let Err(error) = wait(file, transfer) {
                    return (done, Err(error));
                }
            }
            result => return (done, result.map_err(|error| system("file", &error))),
        }
    }
}

/// Waits until a stream can take or give data.
fn wait(file: &Target, transfer: &Transfer<'_>) -> Result<()> {
    loop {
        if let Some(endpoint) = transfer.waiter {
            endpoint.poll_briefly(|_| None::<()>)?;
        }
        let ready = files::ready(&file.fd, transfer.write, transfer.waiter.map(|_| TURN));
        if ready.map_err(|error| system("file", &error))? {
            return Ok(());
        }
    }
}

/// Writes through a view of any kind.
///
/// # Safety
///
/// - The elements of `memory` are readable and nobody changes them until the call returns.
unsafe fn write_pieces(
    file: &Target,
    transfer: &Transfer<'_>,
    memory: &Memory<'_>,
    start: u64,
    done: &mut u64,
) -> Result<()> {
    let view = transfer.view;
    let (bytes, direct) = (memory.bytes(), memory.run());
    let first = start + *done;
    let mut packed = if direct.is_some() { Vec::new() } else { buffer(bytes.min(CHUNK))? };
    let mut pieces = match file.kind {
        FileKind::Stream => None,
        _ => Some(view.pieces(first, bytes - *done)?),
    };
    // The rest of a piece that began in the chunk before.
    let mut rest = None;
    while *done < bytes {
        // The next chunk of packed data: all of it if memory is one run.
        let chunk = if direct.is_some() { bytes - *done } else { (bytes - *done).min(CHUNK) };
        let from: *const u8 = match direct {
            Some(first) => first.wrapping_add(*done as usize),
            None => {
                // SAFETY: the range ends at or before `bytes`, the elements are readable (the condition of
                // `# Safety`), and `packed` is a new buffer of at least `chunk` bytes.
                unsafe { memory.pack(*done..*done + chunk, packed.as_mut_ptr())? };
                packed.as_ptr()
            }
        };
        let mut within = 0;
        while within < chunk {
            let at = from.wrapping_add(within as usize);
            let (wanted, moved) = match &mut pieces {
                None => {
                    // SAFETY: the `chunk` bytes at `from` are the packed data in `packed`, or the elements
                    // themselves, which are one readable run; `at` is `within` bytes behind `from`.
                    let moved = unsafe { stream(file, transfer, at.cast_mut(), chunk - within) };
                    (chunk - within, moved)
                }
                Some(pieces) => {
                    let Some((offset, length)) = rest.take().or_else(|| pieces.next()) else {
                        return Ok(());
                    };
                    let now = length.min(chunk - within);
                    rest = (now < length).then(|| (offset + now, length - now));
                    // SAFETY: `now` is at most `chunk - within`, and the `chunk` bytes at `from` are
                    // readable: they are `packed` or the elements themselves.
                    let moved = unsafe { files::write_at(&file.fd, at, now, offset) };
                    (now, of_system(moved))
                }
            };
            let (moved, result) = moved;
            (*done, within) = (*done + moved, within + wanted);
            result?;
        }
    }
    Ok(())
}

/// Reads from a stream, or through a view that is one run of the file.
///
/// # Safety
///
/// - The elements of `memory` are writable and nobody else accesses them until the call returns.
unsafe fn read_run(
    file: &Target,
    transfer: &Transfer<'_>,
    memory: &Memory<'_>,
    start: u64,
    done: &mut u64,
) -> Result<()> {
    let view = transfer.view;
    let (bytes, direct) = (memory.bytes(), memory.run());
    let mut packed = if direct.is_some() { Vec::new() } else { buffer(bytes.min(CHUNK))? };
    let first = match file.kind {
        FileKind::Stream => None,
        _ => {
            view.reach(start, bytes)?;
            Some(view.offset(start)?)
        }
    };
    while *done < bytes {
        let left = bytes - *done;
        let chunk = if direct.is_some() { left } else { left.min(CHUNK) };
        let to = direct.map_or(packed.as_mut_ptr(), |first| first.wrapping_add(*done as usize));
        let moved = match first {
            // SAFETY: `to` is `packed`, which has `chunk` bytes, or the rest of the only run of the elements,
            // which has `left` bytes and is writable (the condition of `# Safety`).
            None => unsafe { stream(file, transfer, to, chunk) },
            // SAFETY: `chunk` bytes at `to` are writable: `to` is `packed` or the rest of the run.
            Some(first) => of_system(unsafe { files::read_at(&file.fd, to, chunk, first + *done) }),
        };
        let (moved, result) = moved;
        if direct.is_none() {
            // SAFETY: the range ends at or before `bytes`, and the elements are writable. `packed` has
            // `moved` bytes and does not overlap them.
            unsafe { memory.unpack(*done..*done + moved, packed.as_ptr())? };
        }
        *done += moved;
        result?;
        if moved < chunk {
            break;
        }
    }
    Ok(())
}

/// Reads through a view of several pieces.
///
/// # Safety
///
/// - The elements of `memory` are writable and nobody else accesses them until the call returns.
unsafe fn read_pieces(
    file: &Target,
    view: &View,
    memory: &Memory<'_>,
    start: u64,
    done: &mut u64,
) -> Result<()> {
    let (bytes, direct) = (memory.bytes(), memory.run());
    let end = start + bytes;
    let tiles = view.map().tiles(end)?;
    let mut packed = if direct.is_some() { Vec::new() } else { buffer(bytes.min(CHUNK))? };
    let mut window = Vec::new();
    let sieve = file.sieve.window(view.distance() <= CLOSE).filter(|_| view.has_order());
    while *done < bytes {
        let at = start + *done;
        let most = (end - at).min(CHUNK);
        let to = match direct {
            Some(first) => first.wrapping_add(*done as usize),
            None => packed.as_mut_ptr(),
        };
        let (wanted, valid, result) = if let Some(size) = sieve {
            // The next view bytes that lie in a window of the file.
            let (mut wanted, mut span) = (most, view.span(at, most)?);
            if span.end - span.start > size {
                let end = view.offset(at)?.saturating_add(size);
                wanted = view.below(at, view.ordered(at, most), end)?;
                span = view.span(at, wanted)?;
            }
            let (low, length) = (span.start, span.end - span.start);
            if window.is_empty() {
                window = buffer(size)?;
            }
            // SAFETY: `window` has `size` bytes, and `length` is at most `size`: if not all view bytes fit, the
            // `wanted` ones are in the order of the file, begin at the first of them and end within `size` bytes.
            let moved = unsafe { files::read_at(&file.fd, window.as_mut_ptr(), length, low) };
            let (got, result) = of_system(moved);
            let valid = view.below(at, wanted, low + got)?;
            // Byte 0 of the file would be at this address.
            let zero = window.as_mut_ptr().wrapping_sub(low as usize);
            let origin = zero.wrapping_add(view.displacement() as usize);
            let layout = Elements { origin, plan: view.plan(), count: tiles };
            // SAFETY: the file offsets of the `valid` view bytes from `at` on lie between `low` (`span`) and
            // `low + got` (`below`), so they lie in the first `got` bytes of `window`. `to` has room for
            // them: it is the rest of the elements' only run, or `packed`, which has `most` bytes or
            // more. `window` overlaps neither.
            unsafe { layout.pack(at..at + valid, to) };
            (wanted, valid, result)
        } else {
            let (mut got, mut result) = (0, Ok(()));
            for (offset, length) in view.pieces(at, most)? {
                let place = to.wrapping_add(got as usize);
                // SAFETY: the pieces have `most` bytes together, and `to` has room for them: it is the rest
                // of the elements' run, or `packed`.
                let moved = unsafe { files::read_at(&file.fd, place, length, offset) };
                let (moved, outcome) = of_system(moved);
                got += moved;
                result = outcome;
                if moved < length {
                    break;
                }
            }
            (most, got, result)
        };
        if direct.is_none() {
            // SAFETY: the range ends at or before `bytes`, and the elements are writable. The first `valid`
            // bytes of `packed` have just been read.
            unsafe { memory.unpack(*done..*done + valid, packed.as_ptr())? };
        }
        *done += valid;
        result?;
        if valid < wanted {
            break;
        }
    }
    Ok(())
}
