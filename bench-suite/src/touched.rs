//! Counts the bytes that a layout touches in memory: whole cache lines, and each line only once. Adds the
//! number of packed bytes.
//!
//! `suite.rs` stores the number in each row, because some bars apply only to rows that fit into the caches.

use crate::layout::Layout;
use typepack_engine::Plan;
use typepack_engine::iov::Iov;

/// Number of bytes per cache line.
const LINE: u64 = 64;

/// Returns the total size, in bytes, of the cache lines that contain data of the layout, plus the number
/// of packed bytes.
///
/// # Errors
///
/// Returns the engine's error if it cannot list the runs of the layout.
pub fn touched(layout: &Layout, plan: &Plan) -> typepack_engine::Result<u64> {
    let lines = (layout.memory as u64).div_ceil(LINE);
    let mut seen = vec![0u64; lines.div_ceil(64) as usize];
    for run in Iov::new(plan).runs(layout.count, 0)? {
        let first = run.offset as u64 / LINE;
        let last = (run.offset as u64 + run.bytes - 1) / LINE;
        for line in first..=last {
            if let Some(word) = seen.get_mut((line / 64) as usize) {
                *word |= 1 << (line % 64);
            }
        }
    }
    let lines: u64 = seen.iter().map(|word| u64::from(word.count_ones())).sum();
    Ok(lines * LINE + layout.payload)
}

#[cfg(test)]
mod tests {
    use super::touched;
    use crate::layout::Layout;

    #[test]
    fn lines_are_counted_once() {
        let bytes = |text: &str, count| {
            let ty: typepack_engine::Datatype = text.parse().expect("a type");
            let plan = ty.commit().expect("a plan");
            touched(&Layout::of("a", ty, count).expect("a layout"), &plan).expect("runs")
        };
        assert_eq!(bytes("contiguous(16, double)", 1), 256);
        assert_eq!(bytes("vector(16, 1, 8, double)", 1), 16 * 64 + 128);
        // This transpose touches each line eight times, but the line counts once.
        assert_eq!(bytes("resized(0, 8, vector(8, 1, 8, double))", 8), 512 + 512);
        assert_eq!(bytes("resized(0, 64, int)", 3), 3 * 64 + 12);
    }
}
