//! A small test that runs the portable leaf kernels (rows, runs and tiles) on few bytes. It is for
//! Miri, which is a thousand times slower than normal execution. Miri executes only the portable
//! kernels. Run the test with `cargo miri test -p typepack-leaf --lib routine::tests::brief`.

use super::*;

#[test]
fn a_little_of_everything() {
    let (mut memory, mut bytes) = (Guarded::new(1 << 12), Guarded::new(1 << 12));
    let mut both = |nest: &Nest| {
        for shift in [0, 3] {
            check(nest, shift, &mut memory, &mut bytes);
        }
    };
    let entries = [4, 0, 2, 1];
    for length in [1, 2, 3, 4, 7, 8, 12, 16, 17, 31, 32, 40, 63, 64, 65, 130] {
        let (leaf, stride) = (Leaf::Block { bytes: length }, length as i64 + 5);
        both(&loops(&[(5, stride)], leaf.clone()));
        for entries in [Table::new(&entries), Table::Wide(entries.as_slice().into())] {
            let levels = vec![Level::Table { entries, scale: stride }];
            both(&Nest { base: 0, levels: levels.into(), leaf: leaf.clone() });
        }
    }
    both(&loops(&[(5, 16)], window(&[(0, 1), (4, 4), (8, 8)])));
    both(&loops(&[(0, 16)], window(&[(0, 1), (4, 4), (8, 8)])));
    for element in [1, 2, 4, 8, 16] {
        let pitch = 9 * element as i64 + 3;
        both(&loops(&[(9, element as i64), (6, pitch)], Leaf::Block { bytes: element }));
    }
}
