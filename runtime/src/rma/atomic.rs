//! Atomic updates of elements, each of 4 or 8 bytes at an aligned address.
//!
//! `accumulate.rs` uses this file for such elements as long as the target permits this (`mechanism.rs`), and locks for
//! all others. The two must not be mixed on one element.

use super::accumulate::Update;
use super::mechanism::Inside;
use super::ranges::Held;
use crate::Result;
use crate::coll::{Combiner, Operator};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How the processor updates an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    Load,
    Swap,
    Add,
    And,
    Or,
    Xor,
    /// By a compare-and-exchange of the combined value, repeated until no other rank has changed the element meanwhile.
    Compare,
}

/// An update of elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atomic {
    instruction: Instruction,
    combine: Option<Combiner>,
}

impl Atomic {
    /// Prepares the update `update` of elements. `wraps` says whether the sum of elements wraps, and `combine` is the
    /// function of the update's operation; an operation that has an instruction needs no function.
    #[inline(always)]
    pub fn new(update: Update, wraps: bool, combine: Option<Combiner>) -> Self {
        use Instruction as I;
        let instruction = match update {
            Update::NoOp => I::Load,
            Update::Replace => I::Swap,
            Update::Combine(Operator::Sum) if wraps => I::Add,
            Update::Combine(Operator::Band) => I::And,
            Update::Combine(Operator::Bor) => I::Or,
            Update::Combine(Operator::Bxor) => I::Xor,
            Update::Combine(_) => I::Compare,
        };
        Self { instruction, combine }
    }

    /// Returns whether the update of an element is an ordinary load or store, if there are no results. Many such
    /// updates take no longer than under a lock.
    pub fn is_plain(&self, without_results: bool) -> bool {
        match self.instruction {
            Instruction::Load => true,
            Instruction::Swap => without_results,
            _ => false,
        }
    }

    /// Returns whether the update of an element without a result is a store that later loads may overtake. All other
    /// changes of an element lock it, and a locked instruction of x86-64 orders stores before it and loads after it.
    pub fn is_store(&self) -> bool {
        self.instruction == Instruction::Swap
    }
}

macro_rules! width {
    ($update:ident, $exchange:ident, $atomic:ty, $value:ty) => {
        impl Atomic {
            /// Updates `elements` elements at `at`, one after another. `operands` points to the operands, and the old
            /// values go to `results`. Either may be null.
            ///
            /// # Safety
            ///
            /// - `at` is a multiple of the size of an element, and the elements there are readable and writable as
            ///   long as the call lasts. Nobody accesses them during the call except by atomic operations.
            /// - `operands` is null or readable for the elements; it is not null unless the update is `NoOp`.
            /// - `results` is null or writable for the elements, and nobody else accesses them.
            #[inline]
            pub unsafe fn $update(
                &self,
                at: *mut u8,
                operands: *const u8,
                results: *mut u8,
                elements: usize,
            ) {
                for i in 0..elements {
                    // SAFETY: `i < elements`, so the element lies in the memory that the caller describes (first
                    // condition), and its address is aligned.
                    let cell = unsafe { <$atomic>::from_ptr(at.cast::<$value>().add(i)) };
                    let operand = match operands.is_null() {
                        true => 0,
                        // SAFETY: the operands are readable (second condition). The read may be unaligned.
                        false => unsafe { operands.cast::<$value>().add(i).read_unaligned() },
                    };
                    let old = match self.instruction {
                        Instruction::Load => cell.load(Ordering::Acquire),
                        Instruction::Swap if results.is_null() => {
                            cell.store(operand, Ordering::Release);
                            continue;
                        }
                        Instruction::Swap => cell.swap(operand, Ordering::AcqRel),
                        Instruction::Add => cell.fetch_add(operand, Ordering::AcqRel),
                        Instruction::And => cell.fetch_and(operand, Ordering::AcqRel),
                        Instruction::Or => cell.fetch_or(operand, Ordering::AcqRel),
                        Instruction::Xor => cell.fetch_xor(operand, Ordering::AcqRel),
                        Instruction::Compare => {
                            let mut old = cell.load(Ordering::Acquire);
                            loop {
                                let mut new = operand;
                                if let Some(combine) = self.combine {
                                    let lower = (&raw const old).cast();
                                    let result = (&raw mut new).cast::<u8>();
                                    // SAFETY: both operands are local variables of the size of an element, and
                                    // the function combines elements of this size without gaps. The result
                                    // replaces the upper operand.
                                    unsafe { combine(lower, result.cast_const(), result, 1) };
                                }
                                let done = cell.compare_exchange_weak(
                                    old,
                                    new,
                                    Ordering::AcqRel,
                                    Ordering::Acquire,
                                );
                                match done {
                                    Ok(_) => break old,
                                    Err(now) => old = now,
                                }
                            }
                        }
                    };
                    if !results.is_null() {
                        // SAFETY: the results are writable (third condition). The write may be unaligned.
                        unsafe { results.cast::<$value>().add(i).write_unaligned(old) };
                    }
                }
            }
        }

        /// Replaces the element at `at` by the element at `new` if it equals the element at `compare`. The old value
        /// goes to `result`.
        ///
        /// # Safety
        ///
        /// - `at` is a multiple of the size of an element, and the element there is readable and writable. Nobody
        ///   accesses it during the call except by atomic operations.
        /// - `compare` and `new` are readable and `result` is writable for an element.
        #[inline]
        pub(super) unsafe fn $exchange(
            at: *mut u8,
            compare: *const u8,
            new: *const u8,
            result: *mut u8,
        ) {
            // SAFETY: the element at `at` is valid and its address is aligned (first condition). The other elements are
            // readable, and writable (second condition); these accesses may be unaligned.
            unsafe {
                let cell = <$atomic>::from_ptr(at.cast::<$value>());
                let compare = compare.cast::<$value>().read_unaligned();
                let new = new.cast::<$value>().read_unaligned();
                let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
                let old = cell.compare_exchange(compare, new, success, failure);
                result.cast::<$value>().write_unaligned(old.unwrap_or_else(|old| old));
            }
        }
    };
}

width!(update4, exchange4, AtomicU32, u32);
width!(update8, exchange8, AtomicU64, u64);

/// Replaces the element of `size` bytes (at most 16) at `at` by the element at `new` if it equals the element at
/// `compare`. The old value goes to `result`. `begin` permits atomic instructions, or returns `None`; `hold` takes
/// the lock for an element that no instruction updates. Returns whether an instruction has updated the element.
///
/// # Errors
/// Returns the error of `begin` or of `hold`.
///
/// # Safety
///
/// - The element at `at` is readable and writable, and other ranks update it by instructions as long as the value of
///   `begin` lives, and under the lock of `hold` otherwise.
/// - `new` and `compare` are readable and `result` is writable for `size` bytes.
pub(super) unsafe fn compare_and_swap<'a, 'b>(
    at: *mut u8,
    new: *const u8,
    compare: *const u8,
    result: *mut u8,
    size: usize,
    begin: impl FnOnce() -> Result<Option<Inside<'b>>>,
    hold: impl FnOnce() -> Result<Held<'a>>,
) -> Result<bool> {
    let is_aligned = (at as usize).is_multiple_of(size.max(1));
    let inside = if is_aligned && matches!(size, 4 | 8) { begin()? } else { None };
    // SAFETY: the caller guarantees that `size` bytes at each address are valid (both conditions of `# Safety`). The
    // element's address is aligned where it is used as an atomic (`inside` is `Some`); the other accesses are
    // unaligned. Under the lock, nobody else updates the element.
    unsafe {
        match size {
            4 if inside.is_some() => exchange4(at, compare, new, result),
            8 if inside.is_some() => exchange8(at, compare, new, result),
            _ => {
                let held = hold()?;
                let (mut old, mut wanted) = ([0u8; 16], [0u8; 16]);
                let bytes = size.min(16);
                old.as_mut_ptr().copy_from_nonoverlapping(at, bytes);
                wanted.as_mut_ptr().copy_from_nonoverlapping(compare, bytes);
                if old == wanted {
                    at.copy_from(new, bytes);
                }
                drop(held);
                result.copy_from_nonoverlapping(old.as_ptr(), bytes);
            }
        }
    }
    Ok(inside.is_some())
}
