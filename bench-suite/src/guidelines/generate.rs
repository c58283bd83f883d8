//! Makes random types such as a program might have: up to three nested constructors, up to 64 KiB of
//! data, and gaps that are not too large.
//!
//! `mod.rs` checks the guidelines on these types. The types of `typepack-fuzz` would be useless for
//! measurements: they are made to find bugs, and most of them have only a few bytes.

use crate::layout::Numbers;
use typepack_engine::{Datatype, Named, Order, Result};

/// Approximate total packed sizes of all elements, in bytes. For each type, one of these sizes is chosen
/// at random.
const TOTALS: [u64; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// The largest number of packed bytes of one element.
const MOST_SIZE: i64 = 8 << 10;
/// The largest number of bytes of memory per packed byte.
const MOST_SPARSE: i64 = 64;
const BASES: [Named; 6] =
    [Named::CHAR, Named::SHORT, Named::INT, Named::FLOAT, Named::DOUBLE, Named::C_DOUBLE_COMPLEX];

/// Returns a random type and its count.
///
/// # Errors
///
/// Returns the engine's error if it refuses a type. The engine accepts all types that this function makes.
pub(super) fn some(numbers: &mut Numbers) -> Result<(Datatype, u64)> {
    let mut ty = named(numbers);
    for _ in 0..1 + numbers.below(3) {
        let larger = level(&ty, numbers)?;
        if larger.size() > MOST_SIZE || larger.extent() > MOST_SPARSE * larger.size() {
            break;
        }
        ty = larger;
    }
    let total = TOTALS[numbers.below(TOTALS.len() as u64) as usize];
    Ok((ty.clone(), (total / ty.size() as u64).max(1)))
}

fn named(numbers: &mut Numbers) -> Datatype {
    Datatype::named(BASES[numbers.below(BASES.len() as u64) as usize])
}

/// Returns a type made by a random constructor from `ty`.
fn level(ty: &Datatype, numbers: &mut Numbers) -> Result<Datatype> {
    let mut from = |least: u64, choices: u64| (least + numbers.below(choices)) as i64;
    match from(0, 8) {
        0 => Datatype::contiguous(from(2, 7), ty),
        1 => {
            let (count, block, gap) = (from(2, 30), from(1, 4), from(1, 6));
            Datatype::vector(count, block, block + gap, ty)
        }
        2 => {
            let (count, gap) = (from(2, 15), 8 * from(1, 8));
            Datatype::hvector(count, 1, ty.extent() + gap, ty)
        }
        3 => {
            let (mut places, mut lengths, mut at) = (Vec::new(), Vec::new(), 0);
            for _ in 0..from(3, 20) {
                let length = from(1, 4);
                places.push(at);
                lengths.push(length);
                at += length + from(1, 5);
            }
            Datatype::indexed(&lengths, &places, ty)
        }
        4 => {
            let (mut places, mut at) = (Vec::new(), 0);
            for _ in 0..from(3, 40) {
                places.push(at);
                at += from(1, 5);
            }
            Datatype::indexed_block(1, &places, ty)
        }
        5 => {
            let gap = 8 * from(0, 3);
            let other = named(numbers);
            // Aligns the second member as a C compiler does.
            let aligned = (ty.ub() as u64).next_multiple_of(other.size().min(8) as u64);
            let place = aligned as i64 + gap;
            Datatype::structured(&[1, 1], &[0, place], &[ty.clone(), other])
        }
        6 => Datatype::resized(0, ty.extent() + 8 * from(1, 6), ty),
        _ => {
            let sub = [from(1, 6), from(1, 12)];
            let start = [from(0, 3), from(0, 3)];
            let sizes = [sub[0] + start[0] + from(0, 3), sub[1] + start[1] + from(0, 3)];
            Datatype::subarray(&sizes, &sub, &start, Order::C, ty)
        }
    }
}
