//! Copies between memory and a view of a mapped file. Each side begins at a position of its own.
//!
//! In the native representation this is one fused copy (`../transfer/apart.rs`). In external32 the
//! memory side counts bytes of the external form, which are the view bytes: a piece of the file of some
//! length is converted in place, shorter pieces go through a buffer that stays in the L1 cache.

use super::{FileView, past};
use crate::analysis::cursor::Cursor;
use crate::error::Result;
use crate::exec::{pack_raw, unpack_raw};
use crate::external32::{External32, pack_external_raw, unpack_external_raw};
use crate::transfer::{Side, copy_apart_raw};
use std::mem::MaybeUninit;

/// Size of the buffer in bytes: half of a typical L1 cache.
const BUFFER: u64 = 16 << 10;

/// Minimum length of a piece that is converted in place, unless less is left to copy.
const ALONE: u64 = 2 << 10;

impl FileView {
    /// Copies `bytes` bytes from memory, from packed byte `at` of its layout on, to the view bytes from
    /// `position` on. `file` is the address of offset 0, that is, of the view's displacement; it need not
    /// lie inside the mapping.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + bytes` view bytes, before
    /// anything is copied.
    ///
    /// # Safety
    ///
    /// - `at + bytes` is at most the result of [`Plan::packed_bytes`](crate::Plan::packed_bytes) for the
    ///   count of `memory`. These bytes of its type map are valid for reads.
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for writes (and
    ///   for reads under `Settings::verify`).
    /// - No byte is both read and written.
    pub unsafe fn write_raw(
        &self,
        memory: Side<'_, *const u8>,
        at: u64,
        file: *mut u8,
        position: u64,
        bytes: u64,
    ) -> Result<()> {
        let count = self.tiles(past(position, bytes)?)?;
        let file = Side { plan: self.filetype(), count, memory: file, origin: 0 };
        // SAFETY: `tiles` returned a count that holds the view bytes up to `position + bytes`. The
        // caller guarantees that the bytes of both sides are valid and do not overlap.
        unsafe { copy_apart_raw(memory, at, file, position, bytes) };
        Ok(())
    }

    /// Copies `bytes` view bytes from `position` on to memory, from packed byte `at` of its layout on.
    /// `file` is the address of offset 0, that is, of the view's displacement; it need not lie inside the
    /// mapping.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + bytes` view bytes, before
    /// anything is copied.
    ///
    /// # Safety
    ///
    /// - `at + bytes` is at most the result of [`Plan::packed_bytes`](crate::Plan::packed_bytes) for the
    ///   count of `memory`. These bytes of its type map are valid for writes (and for reads under
    ///   `Settings::verify`).
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for reads.
    /// - No byte is both read and written.
    pub unsafe fn read_raw(
        &self,
        memory: Side<'_, *mut u8>,
        at: u64,
        file: *const u8,
        position: u64,
        bytes: u64,
    ) -> Result<()> {
        let count = self.tiles(past(position, bytes)?)?;
        let file = Side { plan: self.filetype(), count, memory: file, origin: 0 };
        // SAFETY: `tiles` returned a count that holds the view bytes up to `position + bytes`. The
        // caller guarantees that the bytes of both sides are valid and do not overlap.
        unsafe { copy_apart_raw(file, position, memory, at, bytes) };
        Ok(())
    }

    /// Converts `bytes` bytes of the external32 form of `count` elements, from byte `at` of that form on,
    /// and stores them as the view bytes from `position` on. `origin` is the address of displacement 0 of
    /// the elements, `file` that of offset 0 of the view.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] before anything is copied, and those of
    /// [`pack_external_raw`]. If a value does not fit, some view bytes before it, and some of the same
    /// call's after it, may have been written.
    ///
    /// # Safety
    ///
    /// - If the bytes touch any byte of a basic element of the memory, all data of that element is valid
    ///   for reads.
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for writes (and
    ///   for reads under `Settings::verify`).
    /// - No byte is both read and written.
    #[expect(clippy::too_many_arguments, reason = "two sides with three numbers each")]
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
            // SAFETY: `steps` divides the caller's bytes, which are valid in memory. The target is either
            // one piece of the view, valid for `length` bytes, or the buffer, which has that room and
            // overlaps nothing. Then the buffer holds the view bytes that `unpack_raw` reads, and
            // `tiles` filetypes hold them.
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

    /// Reads the view bytes from `position` on and converts them to the external32 bytes from `at` on of
    /// `count` elements. `origin` is the address of displacement 0 of the elements, `file` that of offset
    /// 0 of the view. A basic element of which only the first bytes are read is not converted; as for
    /// [`unpack_external_raw`], its bytes in memory hold these bytes until the rest arrives.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] before anything is copied, and those of
    /// [`unpack_external_raw`].
    ///
    /// # Safety
    ///
    /// - If the bytes touch any byte of a basic element of the memory, all data of that element is valid
    ///   for writes and reads.
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for reads.
    /// - No byte is both read and written.
    #[expect(clippy::too_many_arguments, reason = "two sides with three numbers each")]
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
            // source is either one piece of the view, valid for `length` bytes, or the buffer, which has
            // that room, overlaps nothing, and is filled by `pack_raw` before it is read.
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

    /// Divides `bytes` view bytes from `position` on into steps, in order. For each step calls `step`
    /// with the number of bytes before it, its length, the offset of its piece if the step is one piece,
    /// and a buffer of at least that length.
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
