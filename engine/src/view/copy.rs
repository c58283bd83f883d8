//! Copies between memory and a view of a mapped file. Each side begins at a position of its own.
//!
//! In the native representation, such a copy is one fused copy (`../transfer/apart.rs`). In external32, the
//! view bytes are bytes of the external32 form of the memory. A long piece (a run of bytes of the file) is
//! converted in place; shorter pieces go through a buffer that stays in the L1 cache.

use super::{FileView, past};
use crate::analysis::cursor::Cursor;
use crate::error::Result;
use crate::exec::{Elements, pack_raw, unpack_raw};
use crate::external32::{External32, pack_external_raw, unpack_external_raw};
use crate::plan::Plan;
use crate::transfer::copy_apart_raw;
use std::mem::MaybeUninit;

/// Size of the buffer in bytes: half of a typical L1 cache.
const BUFFER: u64 = 16 << 10;

/// Minimum length, in bytes, of a piece that is converted in place. If fewer bytes are left to copy, a piece
/// with all of them is converted in place too.
const ALONE: u64 = 2 << 10;

impl FileView {
    /// Copies packed bytes `at..at + bytes` of `memory` to view bytes `position..position + bytes`. `file`
    /// is the address of the file's byte at the view's displacement; it need not lie inside the mapping.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + bytes` view bytes, before
    /// anything is copied.
    ///
    /// # Safety
    ///
    /// - `at + bytes` is at most the result of [`Plan::packed_bytes`] for the
    ///   count of `memory`. These bytes of its type map are valid for reads.
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for writes (and
    ///   for reads under `Settings::verify`).
    /// - No byte is both read and written.
    pub unsafe fn write_raw(
        &self,
        memory: Elements<&Plan>,
        at: u64,
        file: *mut u8,
        position: u64,
        bytes: u64,
    ) -> Result<()> {
        let count = self.tiles(past(position, bytes)?)?;
        let file = Elements { origin: file, plan: self.filetype(), count };
        // SAFETY: `tiles` returned a count that holds the view bytes up to `position + bytes`. The
        // caller guarantees that the bytes of both sides are valid and do not overlap.
        unsafe { copy_apart_raw(memory, at, file, position, bytes) };
        Ok(())
    }

    /// Copies view bytes `position..position + bytes` to packed bytes `at..at + bytes` of `memory`. `file`
    /// is the address of the file's byte at the view's displacement; it need not lie inside the mapping.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + bytes` view bytes, before
    /// anything is copied.
    ///
    /// # Safety
    ///
    /// - `at + bytes` is at most the result of [`Plan::packed_bytes`] for the
    ///   count of `memory`. These bytes of its type map are valid for writes (and for reads under
    ///   `Settings::verify`).
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for reads.
    /// - No byte is both read and written.
    pub unsafe fn read_raw(
        &self,
        memory: Elements<&Plan>,
        at: u64,
        file: *const u8,
        position: u64,
        bytes: u64,
    ) -> Result<()> {
        let count = self.tiles(past(position, bytes)?)?;
        let file = Elements { origin: file.cast_mut(), plan: self.filetype(), count };
        // SAFETY: `tiles` returned a count that holds the view bytes up to `position + bytes`. The
        // caller guarantees that the bytes of both sides are valid and do not overlap.
        unsafe { copy_apart_raw(file, position, memory, at, bytes) };
        Ok(())
    }

    /// Converts bytes `at..at + bytes` of the external32 form of `count` elements, and stores them as view
    /// bytes `position..position + bytes`. `origin` is the address of displacement 0 of the elements.
    /// `file` is the address of the file's byte at the view's displacement.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] before anything is copied, and those of
    /// [`pack_external_raw`]. If a value does not fit in its external size, any of these view bytes may
    /// already have been written.
    ///
    /// # Safety
    ///
    /// - All data of each basic element to which some of the bytes belong is valid for reads.
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for writes (and
    ///   for reads under `Settings::verify`).
    /// - No byte is both read and written.
    #[expect(
        clippy::too_many_arguments,
        reason = "the elements, the file, and the length of the copy"
    )]
    pub unsafe fn write_external_raw(
        &self,
        external: &External32,
        count: u64,
        origin: *const u8,
        at: u64,
        file: *mut u8,
        position: u64,
        bytes: u64,
    ) -> Result<()> {
        let tiles = self.tiles(past(position, bytes)?)?;
        let plan = self.filetype();
        self.steps(tiles, position, bytes, |done, length, direct, buffer| {
            let range = at + done..at + done + length;
            let target = direct.map_or(buffer, |offset| file.wrapping_offset(offset as isize));
            // SAFETY: `steps` divides the caller's bytes, which are valid in memory. The target is either one
            // piece of the view, which is valid for `length` bytes, or the buffer, which has at least
            // `length` bytes and overlaps nothing. In the second case, `unpack_raw` reads the bytes that
            // `pack_external_raw` has written to the buffer, and writes view bytes that lie in the first
            // `tiles` filetypes.
            unsafe {
                pack_external_raw(external, count, origin, range, target)?;
                if direct.is_none() {
                    let first = position + done;
                    unpack_raw(plan, tiles, file, first..first + length, buffer);
                }
            }
            Ok(())
        })
    }

    /// Converts view bytes `position..position + bytes`, which are bytes `at..at + bytes` of the external32
    /// form, to `count` elements in memory. `origin` is the address of displacement 0 of the elements. `file`
    /// is the address of the file's byte at the view's displacement. If the range ends inside a basic element
    /// that must be converted, the memory of this element holds the external bytes read so far, until a later
    /// call reads the rest (see [`unpack_external_raw`]).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] before anything is copied, and those of
    /// [`unpack_external_raw`].
    ///
    /// # Safety
    ///
    /// - All data of each basic element to which some of the bytes belong is valid for writes and reads.
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for reads.
    /// - No byte is both read and written.
    #[expect(
        clippy::too_many_arguments,
        reason = "the elements, the file, and the length of the copy"
    )]
    pub unsafe fn read_external_raw(
        &self,
        external: &External32,
        count: u64,
        origin: *mut u8,
        at: u64,
        file: *const u8,
        position: u64,
        bytes: u64,
    ) -> Result<()> {
        let tiles = self.tiles(past(position, bytes)?)?;
        let plan = self.filetype();
        self.steps(tiles, position, bytes, |done, length, direct, buffer| {
            let range = at + done..at + done + length;
            // SAFETY: `steps` divides the caller's bytes, which are valid in the file and in memory. The
            // source is either one piece of the view, which is valid for `length` bytes, or the buffer,
            // which has at least `length` bytes and overlaps nothing. `pack_raw` fills the buffer before it
            // is read.
            unsafe {
                let source = match direct {
                    Some(offset) => file.wrapping_offset(offset as isize),
                    None => {
                        let first = position + done;
                        pack_raw(plan, tiles, file, first..first + length, buffer);
                        buffer.cast_const()
                    }
                };
                unpack_external_raw(external, count, origin, range, source)
            }
        })
    }

    /// Divides `bytes` view bytes from `position` on into steps, in order. Calls `step` once for each step.
    /// The arguments of `step` are the distance from `position` to the start of the step, in view bytes; the
    /// length of the step; the file offset if the step lies in one piece (`None` otherwise); and a buffer of
    /// `BUFFER` bytes.
    fn steps(
        &self,
        tiles: u64,
        position: u64,
        bytes: u64,
        mut step: impl FnMut(u64, u64, Option<i64>, *mut u8) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); BUFFER as usize];
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        if bytes == 0 {
            return Ok(());
        }
        let mut cursor = Cursor::at(self.filetype(), tiles, position)?;
        let mut done = 0;
        while done < bytes {
            let left = bytes - done;
            let piece = cursor.run().filter(|piece| piece.bytes >= ALONE.min(left));
            let length = piece.map_or(BUFFER, |piece| piece.bytes).min(left);
            step(done, length, piece.map(|piece| piece.offset), buffer)?;
            done += length;
            cursor.seek(position + done)?;
        }
        Ok(())
    }
}
