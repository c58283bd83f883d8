//! One link of the chain of a scan: a rank combines the value of the rank below with its own elements, and passes the
//! result on to the rank above.
//!
//! `reductions.rs` has the calls, and `turn.rs` passes the values on. The order of the combinations is that of the
//! schedules (`scan.rs`). Each rank reads the cell of one rank only. So a rank needs no data of a rank that has not run
//! for a while, except of the rank below. If ranks share CPUs, each rank can make many short calls in one time slice.
//!
//! A rank first combines all elements of a piece, and then copies the result into its ring. So the time of each copy
//! can be measured (`copies.rs`), and a user's function runs outside of the copy.

use super::fold::{KEPT, Operands, block, is_dense, packed};
use super::turn::{InlineData, Turn};
use crate::Result;
use crate::endpoint::sources::Combine;
use crate::message::payload::copy_layout;
use crate::schedule::program::{room_for, take_room};
use crate::shm::cells::WORDS;
use typepack_engine::Elements;

/// The memory of a link. The addresses are those of displacement 0.
struct Link<'l> {
    elements: Operands<'l>,
    combine: &'l Combine,
    /// The packed value of the rank below.
    lower: *const u8,
    /// Number of elements that are combined together.
    block: u64,
    /// The value of this rank, if this rank needs it: the result of an inclusive call, or scratch memory.
    value: Option<*mut u8>,
    /// True if the value of the rank below is the result.
    exclusive: bool,
    /// Scratch memory for a block of unpacked values of the rank below, unless they lie in memory as they are packed.
    unpacked: Option<*mut u8>,
}

impl Turn<'_> {
    /// Makes the link of this rank for a piece, in the step with this index of a call with this number of packed bytes.
    ///
    /// # Safety
    ///
    /// - If this rank is not rank 0, the cell of the rank below has arrived in this step, and that rank has
    ///   `elements.published` bytes, of all elements.
    /// - The elements at `elements.own` are readable, and nobody changes them.
    /// - The elements of `elements.result` are writable, and nobody else accesses them. They do not overlap those at
    ///   `elements.own`, unless both have the same address.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    pub(super) unsafe fn link(
        &mut self,
        (index, bytes): (u64, u64),
        elements: Operands<'_>,
        combine: &Combine,
        inclusive: bool,
    ) -> Result<()> {
        let (len, result) = (elements.published, elements.result);
        let above = (self.rank + 1 < self.size).then_some(self.rank + 1);
        let Some(below) = self.rank.checked_sub(1) else {
            let own = Elements { origin: elements.own.cast_mut(), ..result };
            if let Some(above) = above {
                // SAFETY: this rank's elements are readable (condition of `# Safety`), and `0..len` are all their
                // packed bytes.
                unsafe { self.put((index, above), &own, 0..len, bytes)? };
                self.wake_ready(index, std::iter::once(above));
            }
            if inclusive && elements.own != result.origin.cast_const() {
                // SAFETY: both have `len` packed bytes and do not overlap (condition of `# Safety`).
                unsafe { copy_layout(&own, &result, len) };
            }
            return Ok(());
        };
        let mut words = InlineData([0; WORDS]);
        let lower = self.data(below, len, &mut words);
        let mut scratch = std::mem::take(&mut self.cells.scratch);
        scratch.resize_with(scratch.len().max(2), Vec::new);
        let block = block(&elements, combine);
        let [first, second, ..] = &mut *scratch else { unreachable!("there are two vectors") };
        let value = match above {
            _ if inclusive => Some(result.origin),
            Some(_) => Some(take_room(first, room_for(result.plan, result.count)?)?),
            None => None,
        };
        let unpacked = match is_dense(result.plan) {
            true => None,
            false => Some(take_room(second, room_for(result.plan, block)?)?),
        };
        let exclusive = !inclusive;
        let link = Link { elements, combine, lower, block, value, exclusive, unpacked };
        self.timed(below..self.rank, len, || {
            // SAFETY: this rank's elements are readable, those of the result are writable, and `combine` keeps its
            // promises (conditions of `# Safety`). `lower` is the address of the value of the rank below, which has
            // `len` bytes in its cell or its ring (condition of `# Safety`). The scratch memory has room for a block of
            // unpacked values and for all elements of the value, and only this call uses the scratch memory.
            unsafe { link.run() };
        });
        if let (Some(above), Some(origin)) = (above, value) {
            let value = Elements { origin, ..result };
            // SAFETY: `value` has the elements that `link.run` has made, which nobody changes now. They have `len`
            // packed bytes.
            unsafe { self.put((index, above), &value, 0..len, bytes)? };
            self.wake_ready(index, std::iter::once(above));
        }
        if scratch.iter().map(Vec::len).sum::<usize>() <= KEPT {
            self.cells.scratch = scratch;
        }
        Ok(())
    }
}

impl Link<'_> {
    /// Makes the value and the result of this rank.
    ///
    /// # Safety
    ///
    /// - The elements at `elements.own` are readable, and nobody changes them.
    /// - The elements of `elements.result` are writable, and nobody else accesses them. They do not overlap those at
    ///   `elements.own`, unless both have the same address.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    /// - `lower` is the address of the packed value of the rank below: `elements.published` bytes.
    /// - `value` is the address of the result or of scratch memory for all elements, and `unpacked` that of scratch
    ///   memory for `block` elements. Nobody else uses the scratch memory.
    unsafe fn run(&self) {
        let mut next = 0;
        while next < self.elements.result.count {
            let end = self.elements.result.count.min(next.saturating_add(self.block));
            // SAFETY: the conditions are those of this function, and the range lies within the elements.
            unsafe { self.run_block(next, self.elements.part(next..end)) };
            next = end;
        }
    }

    /// Makes the values and the results of a block of elements, those from element `first` of the piece on.
    ///
    /// # Safety
    ///
    /// - The conditions of [`run`](Self::run) hold, and `elements` are some of the elements: at most `block`.
    unsafe fn run_block(&self, first: u64, elements: Operands<'_>) {
        let (result, len) = (elements.result, packed(&elements.result));
        let lower = self.lower.wrapping_add(elements.offset as usize);
        if let Some(value) = self.value {
            let own = Elements { origin: elements.own.cast_mut(), ..result };
            let origin = value.wrapping_offset(result.offset(first));
            let value = Elements { origin, ..result };
            let native = self.combine.native().filter(|_| self.unpacked.is_none());
            if native.is_none() && elements.own != origin.cast_const() {
                // SAFETY: this rank's elements are readable, and those of `value` writable: elements of the result, or
                // scratch memory. They do not overlap. Both have `len` packed bytes.
                unsafe { copy_layout(&own, &value, len) };
            }
            let lower_at = match self.unpacked {
                None => lower,
                Some(at) => {
                    let unpacked = Elements { origin: at, ..result };
                    // SAFETY: the scratch memory has room for the elements, and the value of the rank below has `len`
                    // bytes at `lower`.
                    unsafe { unpacked.unpack(0..len, lower) };
                    at.cast_const()
                }
            };
            // SAFETY: the addresses are those of displacement 0 of `count` elements: the value of the rank below, which
            // lies as in memory if the type is dense and has been unpacked otherwise, this rank's elements, and the
            // value of this rank. A function of this library reads this rank's elements where they are: at `origin`, or
            // in memory that does not overlap the value. A user's function finds them at `origin`. `combine` keeps its
            // promises for them.
            unsafe {
                match native {
                    Some(combiner) => {
                        combiner(lower_at, elements.own, origin, result.count as usize);
                    }
                    None => self.combine.call(lower_at, origin, elements.first, result.count),
                }
            }
        }
        if self.exclusive {
            // SAFETY: the result is writable, and the value of the rank below has `len` bytes at `lower`. In place,
            // this rank's elements have been copied to the scratch memory, or nobody needs them.
            unsafe { result.unpack(0..len, lower) };
        }
    }
}
