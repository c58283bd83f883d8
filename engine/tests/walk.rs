//! Computes the positions of packed bytes with the engine's oracle alone, as a reference for tests.

use typepack_engine::{Datatype, typemap};

/// Returns the displacement of every packed byte of `count` elements, in packed order.
pub fn places(ty: &Datatype, count: u64) -> Vec<i64> {
    let entries = typemap::typemap(ty);
    let mut all = Vec::new();
    for i in 0..count as i64 {
        for entry in &entries {
            let at = entry.offset + i * ty.extent();
            all.extend(at..at + i64::from(entry.named.size()));
        }
    }
    all
}
