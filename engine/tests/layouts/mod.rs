//! Types for the tests of the executors (`agree.rs`), of segments (`segments.rs`), of fused copies
//! (`transfer.rs`) and of the wire form (`wire.rs`). Together they reach every operation of a program
//! and every branch of the executors.

use typepack_engine::{Datatype, Named, Order};

/// Returns types that are so small that a test can try every split of their packed bytes.
pub fn small() -> Vec<(&'static str, Datatype)> {
    let (byte, int) = (Datatype::named(Named::BYTE), Datatype::named(Named::INT));
    let double = Datatype::named(Named::DOUBLE);
    let vector = Datatype::vector(3, 2, 4, &int).unwrap();
    let members = [Datatype::named(Named::CHAR), int.clone(), double.clone()];
    let window = Datatype::structured(&[1, 1, 1], &[0, 4, 8], &members).unwrap();
    let ragged = Datatype::indexed(&[1, 3, 0, 2], &[9, 0, 5, 5], &int).unwrap();
    let gapped = Datatype::resized(0, 7, &int).unwrap();
    let wide: Vec<i64> = (0..9).map(|i| i * i).collect();
    // Every fourth block of this list is empty. The passes remove the empty blocks and turn the other 30
    // into a window, which is a leaf of at most 32 short runs.
    let lengths: Vec<i64> = (0..40).map(|i| i % 4).collect();
    let places: Vec<i64> = (0..40).map(|i| (i * 7) % 40 * 5).collect();
    let list = Datatype::indexed(&lengths, &places, &Datatype::named(Named::SHORT)).unwrap();
    let odd = Datatype::contiguous(3, &byte).unwrap();
    let big = Datatype::structured(
        &[2, 1, 1],
        &[0, 200, 300],
        &[vector.clone(), ragged.clone(), Datatype::hvector(5, 1, 11, &int).unwrap()],
    )
    .unwrap();
    vec![
        ("contiguous", Datatype::contiguous(5, &double).unwrap()),
        ("displaced block", Datatype::hindexed_block(7, &[-3], &int).unwrap()),
        ("one block, gaps between elements", Datatype::resized(-4, 50, &double).unwrap()),
        ("pair with a hole", Datatype::named(Named::SHORT_INT)),
        ("vector", vector.clone()),
        ("vector of single ints", Datatype::vector(7, 1, 3, &int).unwrap()),
        ("vector of 3 bytes", Datatype::hvector(6, 1, 5, &odd).unwrap()),
        ("vector of vectors", Datatype::hvector(3, 1, 100, &vector).unwrap()),
        ("negative stride", Datatype::vector(4, 1, -3, &int).unwrap()),
        ("resized column", Datatype::resized(0, 4, &vector).unwrap()),
        ("negative extent", Datatype::resized(0, -48, &vector).unwrap()),
        ("window", window.clone()),
        ("vector of windows", Datatype::vector(3, 2, 3, &window).unwrap()),
        ("backwards", Datatype::hindexed(&[1, 1, 1], &[32, 16, -5], &int).unwrap()),
        ("table", Datatype::indexed_block(2, &[7, 0, 3, 12], &int).unwrap()),
        ("table of single ints", Datatype::indexed_block(1, &[7, 0, 3, 12], &int).unwrap()),
        ("table of tables", {
            let table = Datatype::indexed_block(1, &[4, 0, 1], &int).unwrap();
            Datatype::hindexed_block(1, &[60, 0, 200, 100], &table).unwrap()
        }),
        ("squares", Datatype::hindexed_block(1, &wide, &byte).unwrap()),
        ("table of windows", Datatype::hindexed_block(2, &[100, 3, 160], &window).unwrap()),
        ("short list of runs", ragged.clone()),
        ("list of runs", list),
        ("ragged list of gapped", Datatype::indexed(&[1, 3, 2], &[9, 0, 5], &gapped).unwrap()),
        (
            "long rows of gapped",
            Datatype::indexed(&[1, 20, 0, 7], &[9, 20, 5, 0], &gapped).unwrap(),
        ),
        (
            "long rows of windows",
            Datatype::hindexed(&[40, 1], &[0, 700], &Datatype::vector(2, 1, 2, &int).unwrap())
                .unwrap(),
        ),
        ("ragged of ragged", Datatype::hindexed(&[2, 1], &[0, 200], &ragged).unwrap()),
        ("overlap", Datatype::hindexed(&[3, 2], &[0, 6], &int).unwrap()),
        ("stride 0", Datatype::hvector(3, 1, 0, &int).unwrap()),
        ("overlapping vector", Datatype::hvector(5, 1, 2, &int).unwrap()),
        ("struct of nests", big.clone()),
        ("vector of struct of nests", Datatype::vector(2, 1, 2, &big).unwrap()),
        (
            "deep",
            (0..10i64).fold(int.clone(), |ty, i| {
                Datatype::hvector(2, 1, (1 << i) * 9 + 4 + i, &ty).unwrap()
            }),
        ),
        (
            "subarray",
            Datatype::subarray(&[4, 5, 6], &[2, 2, 3], &[1, 2, 1], Order::C, &int).unwrap(),
        ),
        ("empty", Datatype::contiguous(0, &double).unwrap()),
        ("empty blocks", Datatype::indexed(&[0, 2, 0], &[5, 1, 9], &int).unwrap()),
    ]
}

/// Returns memory for `count` elements, with at least 8 spare bytes before and after them, and the
/// position of displacement 0 in this memory. The bytes follow a pattern that depends on `seed`.
pub fn memory(ty: &Datatype, count: u64, seed: usize) -> (Vec<u8>, usize) {
    let last = (count as i64 - 1) * ty.extent();
    let low = (ty.true_lb() + last.min(0)).min(0);
    let high = ty.true_ub() + last.max(0);
    let bytes = (0..(high - low) as usize + 16).map(|i| (i * 7 + seed) as u8 % 251).collect();
    (bytes, (8 - low) as usize)
}
