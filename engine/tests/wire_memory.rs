//! Checks that the decoder allocates at most four times the size of its input, plus 64 KiB. This
//! test has a test binary of its own, because the counting allocator counts all allocations of the
//! process.

mod handmade;

use handmade::{handmade, node};
use typepack_engine::{Datatype, Named, wire};
use typepack_test_support::counting_allocator::{Counting, most_allocated};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Decodes `bytes` and returns true if that succeeded. Panics if the decoder allocated more than four
/// times the length of `bytes`, plus 64 KiB.
fn decode(name: &str, bytes: &[u8]) -> bool {
    let (plan, peak) = most_allocated(|| wire::decode(bytes));
    let bound = 4 * bytes.len() + (64 << 10);
    assert!(peak <= bound, "{name}: {peak} bytes for {} of input", bytes.len());
    if std::env::var_os("SHOW").is_some() {
        println!("{name:30} {:9} -> {peak:9} {:.2}", bytes.len(), peak as f64 / bytes.len() as f64);
    }
    plan.is_ok()
}

/// Returns the encoding of a sequence. Each part is given by its node and its offset.
fn sequence(parts: impl ExactSizeIterator<Item = (u32, u64)>) -> Vec<u8> {
    let mut words = vec![parts.len() as u64];
    words.extend(parts.flat_map(|(node, offset)| [offset, u64::from(node)]));
    node(5, 0, &words)
}

#[test]
fn at_most_four_times_the_input() {
    // These are encodings of real layouts.
    let int = Datatype::named(Named::INT);
    let places: Vec<i64> = (0..100_000).map(|i| i * 3 + i % 2).collect();
    let lengths: Vec<i64> = (0..100_000).map(|i| 1 + i % 5).collect();
    let far: Vec<i64> = (0..100_000).map(|i| i * 40).collect();
    let unlike: Vec<Datatype> =
        (0..5000).map(|i| Datatype::hvector(3 + i % 7, 1, 30 + i, &int).unwrap()).collect();
    let at: Vec<i64> = (0..5000).map(|i| i * 60_000).collect();
    for (name, ty) in [
        ("int", int.clone()),
        ("table", Datatype::indexed_block(1, &places, &int).unwrap()),
        ("list", Datatype::indexed(&lengths, &far, &int).unwrap()),
        ("unlike parts", Datatype::structured(&[1; 5000], &at, &unlike).unwrap()),
    ] {
        let bytes = wire::encode(&ty.commit().unwrap());
        assert!(decode(name, &bytes), "{name}");
        // Change the counts so that they state more items than the bytes contain.
        for word in [72, 80, 88, 96, 104, 112] {
            for value in [u64::MAX, 1 << 28, 1 << 40, bytes.len() as u64] {
                let mut bytes = bytes.clone();
                if let Some(place) = bytes.get_mut(word..word + 8) {
                    place.copy_from_slice(&value.to_le_bytes());
                    decode(name, &bytes);
                }
            }
        }
    }

    // Decoding these programs takes a lot of memory in relation to their few encoded bytes.
    let n = 20_000u32;
    let size = u64::from(n);
    let blocks: Vec<Vec<u8>> = (0..n)
        .map(|_| node(1, 0, &[1]))
        .chain([sequence((0..n).map(|i| (i, u64::from(i))))])
        .collect();
    assert!(decode("one block per part", &handmade(size, i64::from(n), i64::from(n), &blocks)));

    let pairs: Vec<Vec<u8>> = std::iter::once(node(1, 0, &[1]))
        .chain((0..n).map(|i| node(5, 0, &[2, 0, u64::from(i), u64::from(i) + 1, 0])))
        .collect();
    assert!(decode(
        "sequences of two",
        &handmade(size + 1, i64::from(n) + 1, i64::from(n) + 1, &pairs)
    ));

    let loops: Vec<Vec<u8>> =
        std::iter::once(node(1, 0, &[1])).chain((0..n).map(|i| node(2, i, &[1, 0, 0]))).collect();
    assert!(decode("loops of one", &handmade(1, 1, 1, &loops)));

    // This program has many nests of eight levels over a window, which is a group of 32 short runs.
    let window = sequence((0..32u32).map(|i| (0, 2 * u64::from(i))));
    let mut sites = vec![node(1, 0, &[1]), window];
    sites.extend((1..8).map(|i| node(2, i, &[1, 64, 0])));
    sites.extend((0..n).map(|_| node(2, 8, &[1, 64, 0])));
    let ub = 64 * i64::from(n) - 1;
    sites.push(sequence((0..n).map(|i| (9 + i, 64 * u64::from(i)))));
    assert!(decode("nests", &handmade(32 * size, ub, ub, &sites)));

    // This program has many nests inside lists. Each list is a node of its own and repeats its
    // nest.
    let mut sites = sites[..8].to_vec();
    let lists = (0..n).map(|_| {
        let mut bytes = node(4, 7, &[1, 1, 0, 64, 0, 1]);
        (bytes[1], bytes[2]) = (4, 4);
        bytes
    });
    sites.extend(lists);
    sites.push(sequence((0..n).map(|i| (8 + i, 64 * u64::from(i)))));
    assert!(decode("nests in lists", &handmade(32 * size, ub, ub, &sites)));

    // This program consists of tables and lists with a single entry.
    let table = |body: u32| {
        let mut bytes = node(3, body, &[1, 1, 0, 0]);
        bytes[1] = 4;
        bytes
    };
    let tables: Vec<Vec<u8>> = std::iter::once(node(1, 0, &[1])).chain((0..n).map(table)).collect();
    assert!(decode("tables of one", &handmade(1, 1, 1, &tables)));
    let list = |body: u32| {
        let mut bytes = node(4, body, &[1, 1, 0, 1, 0, 1]);
        (bytes[1], bytes[2]) = (4, 4);
        bytes
    };
    let lists: Vec<Vec<u8>> = std::iter::once(node(1, 0, &[1])).chain((0..n).map(list)).collect();
    assert!(decode("lists of one", &handmade(1, 1, 1, &lists)));
}
