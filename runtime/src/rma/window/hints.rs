//! Hints: what the program says about a window (MPI-5.0 section 12.2.1).
//!
//! This library ignores a hint that it does not know, and a value that a hint cannot have. It does not return them
//! either.

use crate::rma::Flavor;

/// The orders of accumulates that a program may ask to keep.
const ORDERS: [&str; 4] = ["rar", "raw", "war", "waw"];

/// The hints of a window, with the values that are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowHints {
    /// The program never locks the window. If this hint is true, calls that lock fail.
    pub no_locks: bool,
    /// Which accumulates of one rank to the same memory must keep their order. In this library all of them keep it,
    /// whatever the value.
    pub accumulate_ordering: String,
    /// True if concurrent accumulates to the same memory all use the same operation or `MPI_NO_OP`. This library lets a
    /// program mix any operations, whatever the value.
    pub same_op_no_op: bool,
    /// The memory of all ranks has the same size.
    pub same_size: bool,
    /// All ranks pass the same displacement unit.
    pub same_unit: bool,
    /// The memory of a shared window need not be in one piece.
    pub noncontiguous: bool,
    /// The size in bytes of the pieces of memory for which accumulates synchronise; 0 lets the library choose. Up to 8,
    /// elements of 4 and 8 bytes are updated one by one by instructions of the processor, which is best for single
    /// elements. Above 8, accumulates lock ranges of 4 KiB, which is best for many elements.
    pub accumulate_granularity: u64,
    /// The alignment of memory that the window allocates, in bytes: a power of two from 64 to 2^21. If the memory of
    /// all ranks is in one piece, the memory of a rank begins where that of the rank below ends. Then the piece has the
    /// largest alignment of all ranks at rank 0, and the memory of a rank has its alignment only if the sizes below it
    /// add up to a multiple of the alignment. The other ranks map the piece at any page, so above 4096 bytes their
    /// memory has its alignment only by chance.
    pub alignment: usize,
    /// True if memory that the window allocates takes all its pages at once, and not when they are touched
    /// (`typepack_populate`).
    pub populate: bool,
    /// Whether `noncontiguous` has a meaning for the window.
    pub(in crate::rma) may_be_noncontiguous: bool,
    /// Whether this rank's memory has the alignment, at its address in this process.
    pub(in crate::rma) is_aligned: bool,
}

impl Default for WindowHints {
    fn default() -> Self {
        Self {
            no_locks: false,
            accumulate_ordering: ORDERS.join(","),
            same_op_no_op: true,
            same_size: false,
            same_unit: false,
            noncontiguous: false,
            accumulate_granularity: 0,
            alignment: 64,
            populate: false,
            may_be_noncontiguous: true,
            is_aligned: true,
        }
    }
}

fn truth(value: &str) -> Option<bool> {
    match value {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Returns the normal form of a value of `accumulate_ordering`; `None` if the value is not valid.
fn orders(value: &str) -> Option<String> {
    if value == "none" {
        return Some(value.to_owned());
    }
    let given: Vec<&str> = value.split(',').map(str::trim).collect();
    if !given.iter().all(|order| ORDERS.contains(order)) {
        return None;
    }
    let kept: Vec<&str> = ORDERS.into_iter().filter(|order| given.contains(order)).collect();
    Some(kept.join(","))
}

/// Returns whether the window allocates its memory.
fn is_allocated(flavor: Flavor) -> bool {
    matches!(flavor, Flavor::Allocate | Flavor::Shared)
}

impl WindowHints {
    /// Corrects the hints about the placement of memory, once the ranks agree on the kind of window.
    pub(in crate::rma) fn place(&mut self, flavor: Flavor, in_one_piece: bool) {
        self.may_be_noncontiguous = flavor == Flavor::Shared;
        self.noncontiguous = flavor == Flavor::Shared && !in_one_piece;
        self.populate &= is_allocated(flavor);
    }

    /// Notes whether the alignment is in force, once this rank's memory has the address `base`.
    pub(in crate::rma) fn align(&mut self, flavor: Flavor, base: usize) {
        self.is_aligned = is_allocated(flavor) && base.is_multiple_of(self.alignment);
    }

    /// Sets the hints of a list of keys and values. `new` says whether the window is being made. If `new` is false, the
    /// hints about memory (`alloc_shared_noncontig`, `mpi_minimum_memory_alignment`, `typepack_populate`) and about
    /// accumulates (`mpi_accumulate_granularity`) are ignored.
    pub fn set(&mut self, given: &[(String, String)], new: bool) {
        for (key, value) in given {
            let value = value.trim();
            let flag = match key.as_str() {
                "no_locks" => &mut self.no_locks,
                "same_size" => &mut self.same_size,
                "same_disp_unit" => &mut self.same_unit,
                "alloc_shared_noncontig" if new => &mut self.noncontiguous,
                "typepack_populate" if new => &mut self.populate,
                "accumulate_ordering" => {
                    if let Some(orders) = orders(value) {
                        self.accumulate_ordering = orders;
                    }
                    continue;
                }
                "accumulate_ops" => {
                    match value {
                        "same_op_no_op" => self.same_op_no_op = true,
                        "same_op" => self.same_op_no_op = false,
                        _ => {}
                    }
                    continue;
                }
                "mpi_accumulate_granularity" if new => {
                    let number = value.parse::<u64>();
                    self.accumulate_granularity = number.unwrap_or(self.accumulate_granularity);
                    continue;
                }
                "mpi_minimum_memory_alignment" if new => {
                    let number = value.parse::<usize>().ok().filter(|n| n.is_power_of_two());
                    // An alignment above 2 MiB, the size of a huge page, has no use.
                    self.alignment = number.map_or(self.alignment, |n| n.clamp(64, 1 << 21));
                    continue;
                }
                _ => continue,
            };
            if let Some(value) = truth(value) {
                *flag = value;
            }
        }
    }

    /// Returns the keys and values that are in force.
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let ops = if self.same_op_no_op { "same_op_no_op" } else { "same_op" };
        let mut all = vec![
            ("no_locks", self.no_locks.to_string()),
            ("accumulate_ordering", self.accumulate_ordering.clone()),
            ("accumulate_ops", ops.to_owned()),
            ("same_size", self.same_size.to_string()),
            ("same_disp_unit", self.same_unit.to_string()),
            ("mpi_accumulate_granularity", self.accumulate_granularity.to_string()),
            ("mpi_memory_alloc_kinds", "mpi,system".to_owned()),
            ("typepack_populate", self.populate.to_string()),
        ];
        if self.may_be_noncontiguous {
            all.push(("alloc_shared_noncontig", self.noncontiguous.to_string()));
        }
        if self.is_aligned {
            all.push(("mpi_minimum_memory_alignment", self.alignment.to_string()));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hints_with_known_values_count() {
        let mut hints = WindowHints::default();
        let mut set = |key: &str, value: &str, new| {
            hints.set(&[(key.to_owned(), value.to_owned())], new);
            hints.clone()
        };
        assert!(set("no_locks", " true ", false).no_locks);
        assert!(set("no_locks", "maybe", false).no_locks);
        assert!(!set("alloc_shared_noncontig", "true", false).noncontiguous);
        assert!(set("alloc_shared_noncontig", "true", true).noncontiguous);
        assert_eq!(set("accumulate_ordering", "waw, rar", false).accumulate_ordering, "rar,waw");
        assert_eq!(set("accumulate_ordering", "waw,or", false).accumulate_ordering, "rar,waw");
        assert_eq!(set("accumulate_ordering", "none", false).accumulate_ordering, "none");
        assert_eq!(set("mpi_accumulate_granularity", "8", false).accumulate_granularity, 0);
        assert_eq!(set("mpi_accumulate_granularity", "8", true).accumulate_granularity, 8);
        assert_eq!(set("mpi_accumulate_granularity", "-1", true).accumulate_granularity, 8);
        assert_eq!(set("mpi_minimum_memory_alignment", "3", true).alignment, 64);
        assert_eq!(set("mpi_minimum_memory_alignment", "4096", true).alignment, 4096);
        assert!(!set("typepack_populate", "true", false).populate);
        assert!(set("typepack_populate", "true", true).populate);
        assert_eq!(set("unknown", "true", true), hints);
    }

    #[test]
    fn the_alignment_is_in_force_where_it_holds() {
        let mut hints = WindowHints { alignment: 4096, populate: true, ..WindowHints::default() };
        let mut holds = |flavor, base| {
            hints.place(flavor, true);
            hints.align(flavor, base);
            hints.all().iter().any(|(key, _)| *key == "mpi_minimum_memory_alignment")
        };
        assert!(holds(Flavor::Allocate, 4096) && holds(Flavor::Shared, 0x7000));
        assert!(!holds(Flavor::Shared, 0x7040) && !holds(Flavor::Create, 4096));
        assert!(!hints.populate);
    }
}
