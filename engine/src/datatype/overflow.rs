//! If the size, a bound or a displacement of a new type does not fit in an `i64`, this file finds the
//! argument that is the cause.
//!
//! `bounds.rs` computes sums and products, so its error can only state their values. When a call is
//! refused, this file examines the arguments again, and the new error names the argument and the value
//! that the user should check. For a list of blocks, this value is the first entry whose block alone
//! does not fit. If every block alone fits, the usual cause is that the displacements lie too far
//! apart; so the error states the number of displacements and the least and the greatest of them. For a
//! vector, the value is the argument of largest magnitude. This code runs only when a call is refused.

use super::{Constructor, Datatype};
use crate::error::{Error, ErrorKind, counted};
use typepack_leaf::Table;

/// Turns `error`, which `bounds.rs` found in `constructor`, into an error that names an argument of
/// the call.
#[cold]
pub(super) fn of_argument(constructor: &Constructor, error: Error) -> Error {
    // An error with any other argument name comes from the call's own checks and already names an
    // argument of the call.
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

/// Finds the entry that the error should name. Each item of `blocks` is the length of a block, its
/// displacement, and the extent of the block's type. Displacements are in units of `unit` bytes.
fn scattered(
    blocks: impl Iterator<Item = (i64, i64, i128)>,
    unit: i128,
    displacements: &Table,
) -> (&'static str, String) {
    for (entry, (length, displacement, extent)) in blocks.enumerate() {
        // These products and their sum cannot overflow: a product of two 64-bit numbers fits in 128
        // bits, and so does the sum of two such products.
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

/// Describes the range of all displacements. The caller uses this text if every block alone fits, but
/// all blocks together do not fit.
fn apart(displacements: &Table) -> (&'static str, String) {
    let least = displacements.iter().min().unwrap_or(0);
    let most = displacements.iter().max().unwrap_or(0);
    let entries = displacements.len();
    let entries = counted(entries, "entry", "entries");
    ("displacements", format!("{entries} from {least} to {most}"))
}
