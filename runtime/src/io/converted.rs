//! Accesses whose data a function of the user converts on the way. `access.rs` decides whether an access is of this
//! kind.
//!
//! The functions of the user run in the calling thread. A blocking access converts and moves some elements at a time. A
//! nonblocking collective write converts all of them at once and moves them later, because it must not write before the
//! ranks have agreed on their arguments.

use super::agree::Waiter;
use super::file::Inner;
use super::representation::{Conversion, Converter};
use super::transfer::{self, Memory, Transfer, Transferred};
use super::view::{View, datatype_of};
use crate::commit::bytes;
use crate::{Plan, Result};
use std::sync::atomic::Ordering;
use typepack_engine::Elements;

/// Size in bytes of the buffers for data that functions of the user convert.
const CONVERTED: u64 = 1 << 20;

impl Inner {
    /// Moves the data of an access that calls a conversion function of the user, some elements at a time.
    ///
    /// # Safety
    ///
    /// - The condition of [`run`](Self::run) holds.
    pub unsafe fn run_converted(
        &self,
        view: &View,
        write: bool,
        layout: Elements<&Plan>,
        start: u64,
        converter: &Converter,
        waiter: Waiter,
    ) -> Transferred {
        let (mut done, transfer) = (0, Transfer { view, write, waiter: self.waits(waiter) });
        // SAFETY: the caller guarantees that the elements stay valid (the condition of `# Safety`).
        let result = unsafe { self.converted(&transfer, layout, start, converter, &mut done) };
        (view.in_memory(done), result)
    }

    /// Does what [`run_converted`](Self::run_converted) does, and counts the view bytes in `done`.
    ///
    /// # Safety
    ///
    /// - The condition of [`run`](Self::run) holds.
    unsafe fn converted(
        &self,
        transfer: &Transfer<'_>,
        layout: Elements<&Plan>,
        start: u64,
        converter: &Converter,
        done: &mut u64,
    ) -> Result<()> {
        let Transfer { view, write, waiter } = *transfer;
        let element = view.element_bytes(&layout)?;
        if element == 0 || layout.count == 0 {
            return Ok(());
        }
        let datatype = datatype_of(&layout)?;
        let (chunk, byte) = (CONVERTED.div_ceil(element), bytes()?);
        let mut packed = transfer::buffer(element * chunk.min(layout.count))?;
        // Hold the turn for the whole access, so that the whole access is atomic, not only each buffer of it.
        let waiter = if waiter.is_some() { Waiter::Program } else { Waiter::Background };
        let _turn = self.turn(view, write, start, element * layout.count, waiter)?;
        let mut position = 0;
        while position < layout.count {
            let count = chunk.min(layout.count - position);
            let file = packed.as_mut_ptr();
            let part = Elements { origin: file, plan: byte, count: count * element };
            let call = |count| {
                converter(&Conversion { memory: layout.origin, datatype, count, file, position })
            };
            if write {
                call(count)?;
            }
            let memory = Memory::of_bytes(part);
            let at = start + position * element;
            // SAFETY: `packed` has the `count * element` bytes of `part`, and only this thread uses it.
            let (moved, result) =
                unsafe { transfer::run(&self.target, &self.windows, transfer, &memory, at) };
            let whole = moved / element;
            if !write && whole > 0 {
                call(whole)?;
            }
            *done += if write { moved } else { whole * element };
            result?;
            if moved < count * element {
                break;
            }
            position += count;
        }
        Ok(())
    }

    /// Lets a function of the user convert all elements that an access writes, for an access that begins later.
    ///
    /// # Safety
    ///
    /// - The elements are readable, and nobody changes them until the call returns.
    pub unsafe fn converted_whole(
        &self,
        view: &View,
        layout: Elements<&Plan>,
        converter: &Converter,
    ) -> Result<Vec<u8>> {
        let mut packed = transfer::buffer(view.bytes_of(&layout)?)?;
        if !packed.is_empty() {
            let datatype = datatype_of(&layout)?;
            let (memory, count, file) = (layout.origin, layout.count, packed.as_mut_ptr());
            // The function reads the elements, which are readable (the condition of `# Safety`), and writes
            // `packed`, which has the size of all elements in the file.
            converter(&Conversion { memory, datatype, count, file, position: 0 })?;
        }
        Ok(packed)
    }

    /// Writes data that are already in the file's representation, in an I/O thread.
    pub fn run_packed(&self, view: &View, data: &[u8], start: u64) -> Transferred {
        self.written.store(true, Ordering::Relaxed);
        let plan = match bytes() {
            Ok(plan) if !data.is_empty() => plan,
            Ok(_) => return (0, Ok(())),
            Err(error) => return (0, Err(error)),
        };
        let waiter = Waiter::Background;
        let _turn = match self.turn(view, true, start, data.len() as u64, waiter) {
            Ok(turn) => turn,
            Err(error) => return (0, Err(error)),
        };
        let transfer = Transfer { view, write: true, waiter: self.waits(waiter) };
        let origin = data.as_ptr().cast_mut();
        let memory = Memory::of_bytes(Elements { origin, plan, count: data.len() as u64 });
        // SAFETY: the elements of `memory` are the bytes of `data`, which nobody changes while this function
        // borrows them. A write only reads them.
        let (bytes, result) =
            unsafe { transfer::run(&self.target, &self.windows, &transfer, &memory, start) };
        (view.in_memory(bytes), result)
    }
}
