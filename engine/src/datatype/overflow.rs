//! Which argument of a constructor call is to blame when its layout does not fit 64 bits.
//!
//! After `bounds.rs`, which finds that out from sums and products and can only say what they would
//! be. Here the call is looked at again, to name the argument and the value that a caller should
//! look at: the first entry of a list that is too far away by itself, else the entries that are
//! furthest; the largest of the numbers of a regular call. Runs for refused calls only.

use super::{Constructor, Datatype};
use crate::error::{Error, ErrorKind};
use crate::table::Table;

/// `error`, found in the bounds of `constructor`, as an error of the call's argument.
#[cold]
pub(super) fn of_argument(constructor: &Constructor, error: Error) -> Error {
    // What the call's own checks say names its argument already.
    if !matches!(error.argument(), "displacement" | "datatype") {
        return error;
    }
    let (argument, value) = match constructor {
        Constructor::Contiguous { count, .. } => ("count", count.to_string()),
        Constructor::Vector { count, blocklength, stride, .. } => {
            largest([("count", *count), ("blocklength", *blocklength), ("stride", *stride)])
        }
        Constructor::Hvector { count, blocklength, stride, .. } => {
            largest([("count", *count), ("blocklength", *blocklength), ("stride_bytes", *stride)])
        }
        Constructor::Indexed { blocklengths, displacements, old } => {
            let blocks = blocklengths.iter().zip(displacements.iter());
            let extent = i128::from(old.extent());
            scattered(blocks.map(|(n, at)| (n, at, extent)), extent, displacements)
        }
        Constructor::Hindexed { blocklengths, displacements, old } => {
            let blocks = blocklengths.iter().zip(displacements.iter());
            let extent = i128::from(old.extent());
            scattered(blocks.map(|(n, at)| (n, at, extent)), 1, displacements)
        }
        Constructor::Struct { blocklengths, displacements, types } => {
            let blocks = blocklengths.iter().zip(displacements.iter()).zip(types);
            let blocks = blocks.map(|((n, at), ty)| (n, at, i128::from(ty.extent())));
            scattered(blocks, 1, displacements)
        }
        Constructor::IndexedBlock { blocklength, displacements, old } => {
            equal_blocks(*blocklength, displacements, old, i128::from(old.extent()))
        }
        Constructor::HindexedBlock { blocklength, displacements, old } => {
            equal_blocks(*blocklength, displacements, old, 1)
        }
        Constructor::Subarray { region, .. } => {
            let [sizes, ..] = region.parts();
            ("sizes", format!("{sizes:?}"))
        }
        Constructor::Resized { extent, .. } => ("extent", extent.to_string()),
        Constructor::Named(_) | Constructor::Dup { .. } | Constructor::Composite { .. } => {
            return error;
        }
    };
    Error::new(ErrorKind::Overflow, argument, format!("{value}: {}", error.detail()))
}

fn largest(arguments: [(&'static str, i64); 3]) -> (&'static str, String) {
    let [mut worst, others @ ..] = arguments;
    for other in others {
        if other.1.unsigned_abs() > worst.1.unsigned_abs() {
            worst = other;
        }
    }
    (worst.0, worst.1.to_string())
}

/// Blocks of `(length, displacement, extent of what they hold)`, displacements in units of `unit`
/// bytes.
fn scattered(
    blocks: impl Iterator<Item = (i64, i64, i128)>,
    unit: i128,
    displacements: &Table,
) -> (&'static str, String) {
    for (entry, (length, displacement, extent)) in blocks.enumerate() {
        // 64 times 64 bits, and their sum, fit 128.
        let first = i128::from(displacement) * unit;
        let bytes = i128::from(length) * extent;
        if length > 0 && i64::try_from(first).is_err() {
            return ("displacements", format!("entry {entry} is {displacement}"));
        }
        if i64::try_from(bytes).is_err() {
            return ("blocklengths", format!("entry {entry} is {length}"));
        }
        if length > 0 && i64::try_from(first + bytes).is_err() {
            return ("displacements", format!("entry {entry} is {displacement}"));
        }
    }
    apart(displacements)
}

fn equal_blocks(
    blocklength: i64,
    displacements: &Table,
    old: &Datatype,
    unit: i128,
) -> (&'static str, String) {
    let extent = i128::from(old.extent());
    if i64::try_from(i128::from(blocklength) * extent).is_err() {
        return ("blocklength", blocklength.to_string());
    }
    let blocks = displacements.iter().map(|at| (blocklength, at, extent));
    scattered(blocks, unit, displacements)
}

/// No entry is too far by itself: all of them together are.
fn apart(displacements: &Table) -> (&'static str, String) {
    let least = displacements.iter().min().unwrap_or(0);
    let most = displacements.iter().max().unwrap_or(0);
    let entries = displacements.len();
    ("displacements", format!("{entries} entries from {least} to {most}"))
}
