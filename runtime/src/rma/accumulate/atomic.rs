//! Atomic updates of elements, each of 4 or 8 bytes at an aligned address.
//!
//! `accumulate.rs` and `short.rs` use this file for such elements as long as the target permits instructions
//! (`mechanism.rs`); `short.rs` also uses it for one element under a lock. All other elements are updated under locks
//! by plain instructions. Instructions of ranks without a lock and updates under locks must not be mixed on one
//! element.

use super::Update;
use super::mechanism::{Site, Turn};
use crate::coll::{Combiner, Operator};
use crate::{Named, Result};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What the elements of a predefined type are, for updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum ElementKind {
    /// Integers, whose sum wraps.
    Integers,
    /// Values of `f32` or `f64`.
    Reals,
    /// Anything else.
    Others,
}

impl ElementKind {
    /// Returns what the elements of a type are.
    pub fn of(named: Named) -> Self {
        match named {
            _ if named.members().is_some() => Self::Others,
            _ if Operator::adds_with_wrap(named) => Self::Integers,
            _ if Operator::adds_reals(named) => Self::Reals,
            _ => Self::Others,
        }
    }
}

/// How the processor updates an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    Load,
    Swap,
    AddIntegers,
    /// By a compare-and-exchange of the sum, repeated until no other rank has changed the element meanwhile.
    AddReals,
    And,
    Or,
    Xor,
    /// Like `AddReals`, with the value of the function of the update.
    Combine,
}

/// An update of elements of a predefined type of 4 or 8 bytes. Calls pass it in two registers.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct ElementUpdate {
    instruction: Instruction,
    is_wide: bool,
    /// The function of [`Instruction::Combine`].
    function: Option<Combiner>,
}

const _: () = assert!(size_of::<ElementUpdate>() == 16);

/// An update that needs no function. A call can hand it on in a register.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct SimpleUpdate {
    instruction: Instruction,
    is_wide: bool,
}

impl From<SimpleUpdate> for ElementUpdate {
    #[inline(always)]
    fn from(SimpleUpdate { instruction, is_wide }: SimpleUpdate) -> Self {
        Self { instruction, is_wide, function: None }
    }
}

impl SimpleUpdate {
    /// Prepares an update that needs no function: loads, replacements and sums of numbers of 8 bytes (`is_wide`) or 4
    /// bytes. Returns `None` if the update is another one.
    #[inline(always)]
    pub fn new(update: Update, elements: ElementKind, is_wide: bool) -> Option<Self> {
        let instruction = match (update, elements) {
            (_, ElementKind::Others) => return None,
            (Update::NoOp, _) => Instruction::Load,
            (Update::Replace, _) => Instruction::Swap,
            (Update::Combine(Operator::Sum), ElementKind::Integers) => Instruction::AddIntegers,
            (Update::Combine(Operator::Sum), ElementKind::Reals) => Instruction::AddReals,
            _ => return None,
        };
        Some(Self { instruction, is_wide })
    }
}

impl ElementUpdate {
    /// Prepares an update of elements of type `named`. Returns `None` if the type has another size or several members,
    /// or if the operation is not defined on the type.
    #[inline]
    pub fn new(update: Update, named: Named) -> Option<Self> {
        // An element of several members is updated under a lock, also if it has 8 bytes (`accumulate.rs`).
        if !matches!(named.size(), 4 | 8) || named.members().is_some() {
            return None;
        }
        let is_wide = named.size() == 8;
        let simple = SimpleUpdate::new(update, ElementKind::of(named), is_wide);
        simple.map(Self::from).or_else(|| {
            let (instruction, function) = match update {
                Update::NoOp => (Instruction::Load, None),
                Update::Replace => (Instruction::Swap, None),
                Update::Combine(operator) => {
                    let function = operator.combiner(named)?;
                    let instruction = match operator {
                        Operator::Band => Instruction::And,
                        Operator::Bor => Instruction::Or,
                        Operator::Bxor => Instruction::Xor,
                        _ => Instruction::Combine,
                    };
                    (instruction, Some(function))
                }
            };
            Some(Self { instruction, is_wide, function })
        })
    }

    /// Returns the size of an element in bytes.
    #[inline(always)]
    pub(in crate::rma) fn size(&self) -> usize {
        if self.is_wide { 8 } else { 4 }
    }

    /// Returns whether the update of an element is an ordinary load or store, if there are no results. Many such
    /// updates take no longer than under a lock.
    pub(in crate::rma) fn is_plain(&self, without_results: bool) -> bool {
        match self.instruction {
            Instruction::Load => true,
            Instruction::Swap => without_results,
            _ => false,
        }
    }

    /// Returns whether the update of an element without a result is a store that later loads may overtake. All other
    /// changes of an element lock it, and a locked instruction of x86-64 orders stores before it and loads after it.
    #[inline(always)]
    pub(in crate::rma) fn is_store(&self) -> bool {
        matches!(self.instruction, Instruction::Swap)
    }

    /// Updates `elements` elements at `at`, one after another. `operands` points to the operands, and the old values go
    /// to `results`, unless that is null.
    ///
    /// # Safety
    ///
    /// - `at` is a multiple of the size of an element, and the elements there are readable and writable as long as the
    ///   call lasts. Nobody accesses them during the call except by atomic operations.
    /// - `operands` is readable for the elements, unless the update is `NoOp`.
    /// - `results` is null or writable for the elements, and nobody else accesses them.
    #[inline(always)]
    pub(in crate::rma) unsafe fn run(
        &self,
        at: *mut u8,
        operands: *const u8,
        results: *mut u8,
        elements: usize,
    ) {
        // SAFETY: the caller guarantees the conditions.
        unsafe {
            match self.is_wide {
                true => update8(*self, at, operands, results, elements),
                false => update4(*self, at, operands, results, elements),
            }
        }
    }
}

macro_rules! width {
    ($update:ident, $exchange:ident, $atomic:ty, $value:ty, $real:ty) => {
        /// Does the work of [`ElementUpdate::run`].
        ///
        /// # Safety
        ///
        /// - The conditions of [`ElementUpdate::run`], for elements of this size.
        #[inline(always)]
        unsafe fn $update(
            ElementUpdate { instruction, function, .. }: ElementUpdate,
            at: *mut u8,
            operands: *const u8,
            results: *mut u8,
            elements: usize,
        ) {
            /// Replaces the element by the value that `next` makes of it. Returns the old value.
            #[inline(always)]
            fn exchange(cell: &$atomic, next: impl Fn($value) -> $value) -> $value {
                let mut old = cell.load(Ordering::Acquire);
                loop {
                    let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
                    match cell.compare_exchange_weak(old, next(old), done, seen) {
                        Ok(_) => break old,
                        Err(now) => old = now,
                    }
                }
            }
            for i in 0..elements {
                // SAFETY: `i < elements`, so the element lies in the memory that the caller describes (first
                // condition), and its address is aligned.
                let cell = unsafe { <$atomic>::from_ptr(at.cast::<$value>().add(i)) };
                let operand = match instruction {
                    Instruction::Load => 0,
                    // SAFETY: the operands are readable (second condition). The read may be unaligned.
                    _ => unsafe { operands.cast::<$value>().add(i).read_unaligned() },
                };
                let old = match instruction {
                    Instruction::Load => cell.load(Ordering::Acquire),
                    Instruction::Swap if results.is_null() => {
                        cell.store(operand, Ordering::Release);
                        continue;
                    }
                    Instruction::Swap => cell.swap(operand, Ordering::AcqRel),
                    Instruction::AddIntegers => cell.fetch_add(operand, Ordering::AcqRel),
                    Instruction::And => cell.fetch_and(operand, Ordering::AcqRel),
                    Instruction::Or => cell.fetch_or(operand, Ordering::AcqRel),
                    Instruction::Xor => cell.fetch_xor(operand, Ordering::AcqRel),
                    Instruction::AddReals => exchange(cell, |old| {
                        (<$real>::from_bits(old) + <$real>::from_bits(operand)).to_bits()
                    }),
                    Instruction::Combine => exchange(cell, |old| {
                        // `new` has set the function.
                        let Some(combine) = function else { return old };
                        let mut new = operand;
                        let (lower, result) =
                            ((&raw const old).cast(), (&raw mut new).cast::<u8>());
                        // SAFETY: both operands are local variables of the size of an element, and the function
                        // combines elements of this size without gaps. The result replaces the upper operand.
                        unsafe { combine(lower, result.cast_const(), result, 1) };
                        new
                    }),
                };
                if !results.is_null() {
                    // SAFETY: the results are writable (third condition). The write may be unaligned.
                    unsafe { results.cast::<$value>().add(i).write_unaligned(old) };
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
        #[inline(always)]
        unsafe fn $exchange(at: *mut u8, compare: *const u8, new: *const u8, result: *mut u8) {
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

width!(update4, exchange4, AtomicU32, u32, f32);
width!(update8, exchange8, AtomicU64, u64, f64);

/// Replaces the element of 8 bytes (`is_wide`) or 4 bytes at `at` by the element at `new` if it equals the element at
/// `compare`. The old value goes to `result`.
///
/// # Safety
///
/// - The conditions of `exchange8` and `exchange4`.
#[inline(always)]
pub(in crate::rma) unsafe fn exchange(
    is_wide: bool,
    at: *mut u8,
    compare: *const u8,
    new: *const u8,
    result: *mut u8,
) {
    // SAFETY: the caller guarantees the conditions.
    unsafe {
        match is_wide {
            true => exchange8(at, compare, new, result),
            false => exchange4(at, compare, new, result),
        }
    }
}

/// Replaces the element of `size` bytes (at most 16) at `at` by the element at `new` if it equals the element at
/// `compare`. The old value goes to `result`. The element begins in range `number` of the target of `site`. Returns
/// whether an instruction has updated the element.
///
/// # Errors
/// Returns the errors of [`Site::turn`].
///
/// # Safety
///
/// - The element at `at` is readable and writable, and all other ranks update it in turns of the same target too.
/// - `new` and `compare` are readable and `result` is writable for `size` bytes.
pub(in crate::rma) unsafe fn compare_and_swap(
    at: *mut u8,
    new: *const u8,
    compare: *const u8,
    result: *mut u8,
    size: usize,
    (site, number): (&Site<'_>, usize),
) -> Result<bool> {
    let is_aligned = (at as usize).is_multiple_of(size.max(1));
    let turn = match is_aligned && matches!(size, 4 | 8) {
        true => site.turn(number, 1)?,
        false => Turn::Held(site.hold(number)?),
    };
    let by_instruction = matches!(turn, Turn::Inside(_));
    // SAFETY: the caller guarantees that `size` bytes at each address are valid (both conditions of `# Safety`). The
    // element's address is aligned where it is used as an atomic (`Inside`); the other accesses are unaligned. Under
    // the lock, nobody else updates the element.
    unsafe {
        match size {
            4 | 8 if by_instruction => exchange(size == 8, at, compare, new, result),
            _ => {
                let (mut old, mut wanted) = ([0u8; 16], [0u8; 16]);
                let bytes = size.min(16);
                old.as_mut_ptr().copy_from_nonoverlapping(at, bytes);
                wanted.as_mut_ptr().copy_from_nonoverlapping(compare, bytes);
                if old == wanted {
                    at.copy_from(new, bytes);
                }
                drop(turn);
                result.copy_from_nonoverlapping(old.as_ptr(), bytes);
            }
        }
    }
    Ok(by_instruction)
}

#[cfg(test)]
mod tests {
    use super::{ElementKind, ElementUpdate};
    use crate::Named;
    use crate::coll::Operator;
    use crate::rma::Update;
    use std::ptr::null_mut;

    /// Checks that an element that is updated under a lock by the other ways has no update by instructions.
    #[test]
    fn pairs_and_complex_numbers_have_no_instructions() {
        for named in Named::all() {
            let elements = ElementKind::of(named);
            for update in [Update::NoOp, Update::Replace, Update::Combine(Operator::Sum)] {
                let found = ElementUpdate::new(update, named);
                let has_some = named.members().is_none() && matches!(named.size(), 4 | 8);
                assert!(
                    found.is_none_or(|found| has_some && found.size() == named.size() as usize)
                );
                assert!(found.is_some() || !has_some || matches!(update, Update::Combine(_)));
            }
            if named.members().is_some() || !matches!(named.size(), 1 | 2 | 4 | 8 | 16) {
                assert_eq!(elements, ElementKind::Others, "{named}");
            }
            if elements == ElementKind::Reals {
                assert!(matches!(named.size(), 4 | 8), "{named}");
            }
        }
        for named in [Named::C_FLOAT_COMPLEX, Named::COMPLEX8, Named::FLOAT_INT, Named::BYTE] {
            assert_eq!(ElementKind::of(named), ElementKind::Others);
        }
        assert_eq!(ElementKind::of(Named::DOUBLE), ElementKind::Reals);
        assert_eq!(ElementKind::of(Named::INT), ElementKind::Integers);
        assert!(ElementUpdate::new(Update::Combine(Operator::Band), Named::DOUBLE).is_none());
    }

    #[test]
    fn each_instruction_updates_one_element() {
        let mut at = u64::MAX;
        let run = |at: &mut u64, named, update, operand: u64| {
            let update = ElementUpdate::new(update, named).expect("the update is defined");
            let (mut old, at) = (0u64, std::ptr::from_mut(at).cast());
            // SAFETY: all three elements are local variables, and the first one is aligned.
            unsafe { update.run(at, (&raw const operand).cast(), (&raw mut old).cast(), 1) };
            old
        };
        let (word, real) = (Named::INT64_T, Named::DOUBLE);
        let combine = Update::Combine;
        assert_eq!((run(&mut at, word, combine(Operator::Sum), 3), at), (u64::MAX, 2));
        assert_eq!((run(&mut at, word, Update::NoOp, 9), at), (2, 2));
        assert_eq!((run(&mut at, word, combine(Operator::Bor), 4), at), (2, 6));
        assert_eq!((run(&mut at, word, combine(Operator::Band), 12), at), (6, 4));
        assert_eq!((run(&mut at, word, combine(Operator::Bxor), 5), at), (4, 1));
        assert_eq!((run(&mut at, word, combine(Operator::Max), 7), at), (1, 7));
        let half = 1.5f64.to_bits();
        assert_eq!((run(&mut at, real, Update::Replace, half), at), (7, half));
        assert_eq!(run(&mut at, real, combine(Operator::Sum), 2.25f64.to_bits()), half);
        assert_eq!(f64::from_bits(at), 3.75);
        let (mut single, operand) = (1.5f32, 0.5f32);
        for update in [combine(Operator::Sum), Update::NoOp] {
            let update = ElementUpdate::new(update, Named::FLOAT).expect("the update is defined");
            // SAFETY: both elements are local variables; no result is asked for.
            unsafe {
                update.run((&raw mut single).cast(), (&raw const operand).cast(), null_mut(), 1)
            };
        }
        assert_eq!(single, 2.0);
    }
}
