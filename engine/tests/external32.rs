//! Compares external32 with the standard's table, with bytes written by hand, and with a naive
//! conversion. The naive conversion goes through the typemap entry by entry and shares no code with
//! the engine. The tests run only on little-endian machines, because the expected bytes in memory are
//! little-endian.

#![cfg(target_endian = "little")]

use std::ops::Range;
use typepack_engine::{
    Datatype, ErrorClass, ErrorKind, External32, Isa, Named, Order, Settings, Strategy,
    pack_external, pack_external_size, typemap, unpack_external,
};
use typepack_engine::{external32::size_of, pack_external_range, unpack_external_range};
use typepack_test_support::random::Random;

fn named(n: Named) -> Datatype {
    Datatype::named(n)
}

/// Returns one value of the named type: its bytes in memory (little-endian; `None` marks a gap), and
/// its bytes in external32. If a named type is missing from the table, the test that uses the table
/// fails.
fn vectors(named: Named) -> (Vec<Option<u8>>, Vec<u8>) {
    let long_double = || -> (Vec<u8>, Vec<u8>) {
        // The value is -2.5 = -1.25 * 2^1. Its biased exponent is 16384, and the first bits of its
        // fraction are 01.
        let quad = vec![0xc0, 0x00, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let memory = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
            vec![0, 0, 0, 0, 0, 0, 0, 0xa0, 0x00, 0xc0, 0, 0, 0, 0, 0, 0]
        } else {
            quad.iter().rev().copied().collect()
        };
        (memory, quad)
    };
    // Each tuple has the bytes of 1.5 in memory, of 1.5 in external32, of -2.0 in memory, and of -2.0 in
    // external32. (`quad` has only the first two.)
    let half = ([0x00, 0x3e], [0x3e, 0x00], [0x00, 0xc0], [0xc0, 0x00]);
    let float = ([0, 0, 0xc0, 0x3f], [0x3f, 0xc0, 0, 0], [0, 0, 0, 0xc0], [0xc0, 0, 0, 0]);
    let double = (
        [0, 0, 0, 0, 0, 0, 0xf8, 0x3f],
        [0x3f, 0xf8, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0xc0],
        [0xc0, 0, 0, 0, 0, 0, 0, 0],
    );
    let quad = (
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f],
        [0x3f, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    );
    let all = |bytes: &[u8]| -> Vec<Option<u8>> { bytes.iter().copied().map(Some).collect() };
    let plain = |memory: &[u8], external: &[u8]| (all(memory), external.to_vec());
    let pair = |a: &[u8], gap: usize, b: &[u8], tail: usize, external: [&[u8]; 2]| {
        let memory = [all(a), vec![None; gap], all(b), vec![None; tail]].concat();
        (memory, external.concat())
    };
    let int = ([0xfe, 0xff, 0xff, 0xff], [0xff, 0xff, 0xff, 0xfe]);
    match named.name() {
        "MPI_PACKED" | "MPI_BYTE" | "MPI_CHAR" | "MPI_SIGNED_CHAR" | "MPI_UNSIGNED_CHAR"
        | "MPI_CHARACTER" | "MPI_INT8_T" | "MPI_UINT8_T" | "MPI_INTEGER1" => {
            plain(&[0xa7], &[0xa7])
        }
        "MPI_SHORT" | "MPI_UNSIGNED_SHORT" | "MPI_INT16_T" | "MPI_UINT16_T" | "MPI_INTEGER2" => {
            plain(&[0x02, 0x81], &[0x81, 0x02])
        }
        "MPI_INT" | "MPI_UNSIGNED" | "MPI_INTEGER" | "MPI_INT32_T" | "MPI_UINT32_T"
        | "MPI_INTEGER4" => plain(&[4, 3, 2, 0x81], &[0x81, 2, 3, 4]),
        "MPI_LONG" => plain(&[4, 3, 2, 0x81, 0xff, 0xff, 0xff, 0xff], &[0x81, 2, 3, 4]),
        "MPI_UNSIGNED_LONG" => plain(&[4, 3, 2, 0x81, 0, 0, 0, 0], &[0x81, 2, 3, 4]),
        "MPI_WCHAR" => plain(&[0xac, 0x20, 0, 0], &[0x20, 0xac]),
        "MPI_LONG_LONG"
        | "MPI_UNSIGNED_LONG_LONG"
        | "MPI_INT64_T"
        | "MPI_UINT64_T"
        | "MPI_AINT"
        | "MPI_COUNT"
        | "MPI_OFFSET"
        | "MPI_INTEGER8" => plain(&[8, 7, 6, 5, 4, 3, 2, 0x81], &[0x81, 2, 3, 4, 5, 6, 7, 8]),
        "MPI_INTEGER16" => {
            let mut memory: Vec<u8> = (1..17).collect();
            memory.reverse();
            plain(&memory, &(1..17).collect::<Vec<u8>>())
        }
        "MPI_C_BOOL" | "MPI_CXX_BOOL" | "MPI_LOGICAL1" => plain(&[1], &[1]),
        "MPI_LOGICAL2" => plain(&[1, 0], &[0, 1]),
        "MPI_LOGICAL" | "MPI_LOGICAL4" => plain(&[1, 0, 0, 0], &[0, 0, 0, 1]),
        "MPI_LOGICAL8" => plain(&[1, 0, 0, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0, 0, 0, 1]),
        "MPI_LOGICAL16" => {
            let (mut memory, mut external) = ([0; 16], [0; 16]);
            (memory[0], external[15]) = (1, 1);
            plain(&memory, &external)
        }
        "MPI_REAL2" => plain(&half.0, &half.1),
        "MPI_FLOAT" | "MPI_REAL" | "MPI_REAL4" => plain(&float.0, &float.1),
        "MPI_DOUBLE" | "MPI_DOUBLE_PRECISION" | "MPI_REAL8" => plain(&double.0, &double.1),
        "MPI_REAL16" => plain(&quad.0, &quad.1),
        "MPI_LONG_DOUBLE" => plain(&long_double().0, &long_double().1),
        "MPI_COMPLEX4" => pair(&half.0, 0, &half.2, 0, [&half.1, &half.3]),
        "MPI_C_FLOAT_COMPLEX"
        | "MPI_CXX_FLOAT_COMPLEX"
        | "MPI_COMPLEX"
        | "MPI_COMPLEX8"
        | "MPI_2REAL" => pair(&float.0, 0, &float.2, 0, [&float.1, &float.3]),
        "MPI_C_DOUBLE_COMPLEX"
        | "MPI_CXX_DOUBLE_COMPLEX"
        | "MPI_DOUBLE_COMPLEX"
        | "MPI_COMPLEX16"
        | "MPI_2DOUBLE_PRECISION" => pair(&double.0, 0, &double.2, 0, [&double.1, &double.3]),
        "MPI_COMPLEX32" => pair(&quad.0, 0, &quad.0, 0, [&quad.1, &quad.1]),
        "MPI_C_LONG_DOUBLE_COMPLEX" | "MPI_CXX_LONG_DOUBLE_COMPLEX" => {
            let (memory, external) = long_double();
            pair(&memory, 0, &memory, 0, [&external, &external])
        }
        "MPI_2INT" | "MPI_2INTEGER" => pair(&int.0, 0, &int.0, 0, [&int.1, &int.1]),
        "MPI_FLOAT_INT" => pair(&float.0, 0, &int.0, 0, [&float.1, &int.1]),
        "MPI_DOUBLE_INT" => pair(&double.0, 0, &int.0, 4, [&double.1, &int.1]),
        "MPI_LONG_INT" => pair(&[5, 0, 0, 0, 0, 0, 0, 0], 0, &int.0, 4, [&[0, 0, 0, 5], &int.1]),
        "MPI_SHORT_INT" => pair(&[0x34, 0x12], 2, &int.0, 0, [&[0x12, 0x34], &int.1]),
        "MPI_LONG_DOUBLE_INT" => {
            let (memory, external) = long_double();
            pair(&memory, 0, &int.0, 12, [&external, &int.1])
        }
        other => panic!("no vector for {other}"),
    }
}

#[test]
fn one_value_of_each_named_type() {
    for n in Named::all().filter(|n| n.size() > 0) {
        let (memory, expected) = vectors(n);
        assert_eq!(memory.len(), n.extent() as usize, "{n}");
        let external = External32::new(&named(n)).unwrap();
        for count in [1, 3, 40] {
            let image: Vec<u8> = memory.iter().map(|b| b.unwrap_or(0xee)).collect();
            let source = image.repeat(count);
            let bytes = expected.repeat(count);
            assert_eq!(
                pack_external_size(&external, count as u64).unwrap(),
                bytes.len() as u64,
                "{n}"
            );
            let (mut packed, mut position) = (vec![0x55; bytes.len() + 3], 2);
            pack_external(&external, count as u64, &source, &mut packed, &mut position).unwrap();
            assert_eq!((packed[1], packed[bytes.len() + 2]), (0x55, 0x55), "{n}");
            assert_eq!(packed[2..position], bytes, "{n}");

            let (mut back, mut position) = (vec![0xee; source.len()], 2);
            unpack_external(&external, count as u64, &packed, &mut position, &mut back).unwrap();
            assert_eq!((position, back), (bytes.len() + 2, source), "{n}");
        }
    }
}

#[test]
fn sizes_are_those_of_the_table() {
    let long_form = [
        (Named::LONG, 4),
        (Named::UNSIGNED_LONG, 4),
        (Named::LONG_LONG, 8),
        (Named::WCHAR, 2),
        (Named::LONG_DOUBLE, 16),
        (Named::C_LONG_DOUBLE_COMPLEX, 32),
        (Named::LOGICAL, 4),
        (Named::C_BOOL, 1),
        (Named::AINT, 8),
        (Named::COUNT, 8),
        (Named::OFFSET, 8),
        (Named::LONG_INT, 8),
        (Named::LONG_DOUBLE_INT, 20),
    ];
    for (n, bytes) in long_form {
        assert_eq!(size_of(n), bytes, "{n}");
    }
    // All other types have the same size in external32 as in memory.
    for n in Named::all().filter(|n| long_form.iter().all(|(other, _)| other != n)) {
        assert_eq!(size_of(n), u64::from(n.size()), "{n}");
    }
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let long = External32::new(&Datatype::vector(3, 1, 2, &named(Named::LONG)).unwrap()).unwrap();
    let (mut packed, mut position) = ([9u8; 12], 0);
    let limits = [i64::from(i32::MIN), 0, i64::from(i32::MAX), 0, -1];
    pack_external(&long, 1, &limits, &mut packed, &mut position).unwrap();
    assert_eq!(packed, [0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    for wrong in [1i64 << 31, -(1 << 31) - 1, i64::MAX] {
        let mut position = 0;
        let values = [1, i64::MAX, 2, 0, wrong];
        let error = pack_external(&long, 1, &values, &mut packed, &mut position).unwrap_err();
        assert_eq!((error.kind(), error.class()), (ErrorKind::Conversion, ErrorClass::CONVERSION));
        let text = format!(
            "src: the MPI_LONG at displacement 32 is {wrong}, which does not fit in its 4 bytes \
             in external32"
        );
        assert_eq!((error.to_string(), position), (text, 0));
    }
    let refuses = |n: Named, bytes: &[u8]| {
        let external = External32::new(&named(n)).unwrap();
        let mut packed = [0; 32];
        match pack_external(&external, 1, bytes, &mut packed, &mut 0) {
            Ok(()) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conversion);
                true
            }
        }
    };
    assert!(!refuses(Named::UNSIGNED_LONG, &0xffff_ffffu64.to_ne_bytes()));
    assert!(refuses(Named::UNSIGNED_LONG, &0x1_0000_0000u64.to_ne_bytes()));
    assert!(!refuses(Named::WCHAR, &0xffffi32.to_ne_bytes()));
    assert!(refuses(Named::WCHAR, &0x1_f600i32.to_ne_bytes()));
    assert!(refuses(Named::WCHAR, &(-1i32).to_ne_bytes()));
    let pair = [(1u64 << 40).to_ne_bytes(), [0; 8]].concat();
    assert!(refuses(Named::LONG_INT, &pair));
}

#[test]
fn any_byte_of_a_truth_value_counts() {
    let logical = External32::new(&named(Named::LOGICAL)).unwrap();
    let mut packed = [0; 16];
    pack_external(&logical, 4, &[0i32, -1, 0x0100_0000, 2], &mut packed, &mut 0).unwrap();
    assert_eq!(packed, [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]);
    let mut back = [7i32; 4];
    let foreign = [0, 0, 0, 0, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0];
    unpack_external(&logical, 4, &foreign, &mut 0, &mut back).unwrap();
    assert_eq!(back, [0, 1, 1, 1]);
    let bool = External32::new(&named(Named::C_BOOL)).unwrap();
    let mut back = [7u8; 2];
    unpack_external(&bool, 2, &[0x80, 0], &mut 0, &mut back).unwrap();
    assert_eq!(back, [1, 0]);
}

/// Checks the examples of MPI-2.2 section 4.2, with the calls for external32 instead of `MPI_Pack`.
/// Several calls may fill one packing unit, and a different number of calls may unpack the unit.
#[test]
fn examples_of_the_mission_text() {
    let (int, float, char) = (named(Named::INT), named(Named::FLOAT), named(Named::CHAR));
    let external = |ty: &Datatype| External32::new(ty).unwrap();

    // Example 4.21: two integers in one packing unit.
    let (mut unit, mut position) = ([0u8; 1000], 0);
    pack_external(&external(&int), 1, &[7i32], &mut unit, &mut position).unwrap();
    pack_external(&external(&int), 1, &[-3i32], &mut unit, &mut position).unwrap();
    assert_eq!((position, &unit[..8]), (8, &[0, 0, 0, 7, 0xff, 0xff, 0xff, 0xfd][..]));
    let (mut both, mut position) = ([0i32; 2], 0);
    unpack_external(&external(&int), 2, &unit, &mut position, &mut both).unwrap();
    assert_eq!((both, position), ([7, -3], 8));

    // Example 4.22: `i`, and then `a[0] ... a[i-1]`. One call packs them as a struct, and two calls
    // unpack them.
    let mut memory = [0u8; 44];
    for (k, value) in [0.5f32, 1.0, 1.5, 2.0, 2.5, 9.0, 9.0, 9.0, 9.0, 9.0].iter().enumerate() {
        memory[4 * k..4 * k + 4].copy_from_slice(&value.to_ne_bytes());
    }
    memory[40..].copy_from_slice(&5i32.to_ne_bytes());
    let ty = Datatype::structured(&[1, 5], &[40, 0], &[int.clone(), float.clone()]).unwrap();
    let mut position = 0;
    pack_external(&external(&ty), 1, &memory, &mut unit, &mut position).unwrap();
    assert_eq!(position, 24);
    let mut position = 0;
    let (mut i, mut a) = ([0i32], [0f32; 10]);
    unpack_external(&external(&int), 1, &unit, &mut position, &mut i).unwrap();
    unpack_external(&external(&float), i[0] as u64, &unit, &mut position, &mut a).unwrap();
    assert_eq!((i[0], a[..6].to_vec(), position), (5, vec![0.5, 1.0, 1.5, 2.0, 2.5, 0.0], 24));

    // Example 4.23: a count, and then that many characters. The sum of the pack sizes is the exact
    // length of the buffer.
    let text = b"packed";
    let size = pack_external_size(&external(&int), 1).unwrap()
        + pack_external_size(&external(&char), text.len() as u64).unwrap();
    let (mut unit, mut position) = (vec![0u8; size as usize], 0);
    let count = [text.len() as i32];
    pack_external(&external(&int), 1, &count, &mut unit, &mut position).unwrap();
    pack_external(&external(&char), text.len() as u64, text, &mut unit, &mut position).unwrap();
    assert_eq!(unit, b"\0\0\0\x06packed");
    assert_eq!(position, unit.len());
}

#[test]
fn without_room_nothing_is_written() {
    let int = External32::new(&named(Named::INT)).unwrap();
    let text = |r: typepack_engine::Result<()>| r.unwrap_err().to_string();
    let (mut unit, mut position) = ([5u8; 8], 1);
    assert_eq!(
        text(pack_external(&int, 2, &[1i32, 2], &mut unit, &mut position)),
        "dst: packing unit too small for 2 elements: 8 bytes needed at position 1; the unit has 8 \
         bytes"
    );
    let (mut far, mut memory) = (9, [3i32; 2]);
    assert!(pack_external(&int, 0, &[1i32, 2], &mut unit, &mut far).is_err());
    assert_eq!(
        text(unpack_external(&int, 2, &unit, &mut position, &mut memory)),
        "src: packing unit too small for 2 elements: 8 bytes needed at position 1; the unit has 8 \
         bytes"
    );
    assert_eq!(
        text(pack_external(&int, 2, &[1i32], &mut unit, &mut 0)),
        "src: buffer too small: 2 elements at origin 0 touch bytes 0..8; the buffer has 4 bytes"
    );
    assert!(pack_external(&int, u64::MAX, &[1i32], &mut unit, &mut 0).is_err());
    let reversed = Range { start: 4, end: 0 };
    for range in [0..9, reversed, 4..12] {
        let mut part = [1u8; 8];
        assert!(pack_external_range(&int, 2, &memory, 0, range.clone(), &mut part).is_err());
        assert!(unpack_external_range(&int, 2, &part, range, &mut memory, 0).is_err());
        assert_eq!(part, [1; 8]);
    }
    assert_eq!((unit, position, memory), ([5; 8], 1, [3; 2]));
}

/// Converts the basic element in `memory` to external32, following only the text of the standard.
/// Returns `None` if external32 cannot represent the value.
fn naive_pack(n: Named, memory: &[u8]) -> Option<Vec<u8>> {
    let swapped = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<u8>>();
    let name = n.name();
    Some(match name {
        "MPI_LONG" | "MPI_UNSIGNED_LONG" | "MPI_WCHAR" => {
            let (low, high) = memory.split_at(memory.len() / 2);
            let negative = name == "MPI_LONG" && low[3] >= 0x80;
            if high.iter().any(|&byte| byte != if negative { 0xff } else { 0 }) {
                return None;
            }
            swapped(low)
        }
        "MPI_C_BOOL" | "MPI_CXX_BOOL" => vec![u8::from(memory[0] != 0)],
        _ if name.starts_with("MPI_LOGICAL") => {
            let mut external = vec![0; memory.len()];
            external[memory.len() - 1] = u8::from(memory.iter().any(|&b| b != 0));
            external
        }
        _ if name.contains("LONG_DOUBLE_COMPLEX") => {
            memory.chunks(16).flat_map(naive_quad).collect()
        }
        "MPI_LONG_DOUBLE" => naive_quad(memory),
        _ if name.contains("COMPLEX") => {
            memory.chunks(memory.len() / 2).flat_map(swapped).collect()
        }
        _ => swapped(memory),
    })
}

/// Converts the x87 number in `memory` to binary128 in external32. The function copies the significand
/// bit by bit.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn naive_quad(memory: &[u8]) -> Vec<u8> {
    let (head, integer) = (u16::from_le_bytes([memory[8], memory[9]]), memory[7] >> 7 == 1);
    let mut exponent = head & 0x7fff;
    let mut bits = [false; 112];
    if exponent != 0 && !integer {
        (exponent, bits[0]) = (0x7fff, true);
    } else {
        // Copy the 63 bits below the integer bit, beginning with the most significant one.
        for (i, bit) in bits.iter_mut().take(63).enumerate() {
            *bit = memory[7 - (i + 1) / 8] >> (7 - (i + 1) % 8) & 1 == 1;
        }
        exponent = exponent.max(u16::from(integer));
    }
    let mut external = (head & 0x8000 | exponent).to_be_bytes().to_vec();
    external
        .extend(bits.chunks(8).map(|byte| byte.iter().fold(0, |b, &bit| b << 1 | u8::from(bit))));
    external
}

/// Converts the `long double` in `memory` to external32. On these machines it already has the
/// binary128 format, so only the byte order changes.
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
fn naive_quad(memory: &[u8]) -> Vec<u8> {
    memory.iter().rev().copied().collect()
}

/// Converts the external32 form of a basic element, as [`naive_pack`] returns it, to the element's bytes in
/// memory.
fn naive_unpack(n: Named, external: &[u8]) -> Vec<u8> {
    let swapped = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<u8>>();
    let name = n.name();
    match name {
        "MPI_LONG" | "MPI_UNSIGNED_LONG" | "MPI_WCHAR" => {
            let fill = if name == "MPI_LONG" && external[0] >= 0x80 { 0xff } else { 0 };
            [swapped(external), vec![fill; external.len()]].concat()
        }
        _ if name.contains("LONG_DOUBLE") => external.chunks(16).flat_map(naive_x87).collect(),
        _ if name.contains("COMPLEX") => {
            external.chunks(external.len() / 2).flat_map(swapped).collect()
        }
        _ => swapped(external),
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn naive_x87(external: &[u8]) -> Vec<u8> {
    let head = u16::from_be_bytes([external[0], external[1]]);
    let fraction = external[2..10].iter().fold(0u64, |f, &b| f << 8 | u64::from(b)) >> 1;
    let integer = if head & 0x7fff == 0 { 0 } else { 1u64 << 63 };
    let mut memory = (fraction | integer).to_le_bytes().to_vec();
    memory.extend(head.to_le_bytes());
    memory.extend([0; 6]);
    memory
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
fn naive_x87(external: &[u8]) -> Vec<u8> {
    external.iter().rev().copied().collect()
}

/// Returns a random tree of at most `depth` levels of constructors above named types.
fn tree(random: &mut Random, depth: u32) -> Datatype {
    let all: Vec<Named> = Named::all().filter(|n| n.size() > 0).collect();
    tree_of(random, depth, &all)
}

/// Returns a random tree of at most `depth` levels of constructors above the named types in `all`.
fn tree_of(random: &mut Random, depth: u32, all: &[Named]) -> Datatype {
    if depth == 0 || random.below(8) == 0 {
        return named(all[random.below(all.len() as u64) as usize]);
    }
    let old = tree_of(random, depth - 1, all);
    let lengths =
        |random: &mut Random, n| -> Vec<i64> { (0..n).map(|_| random.between(0, 3)).collect() };
    let places = |random: &mut Random, n, far: i64| -> Vec<i64> {
        (0..n).map(|_| random.between(-9, far - 10)).collect()
    };
    let blocks = random.between(0, 4);
    match random.below(12) {
        0 => Datatype::contiguous(random.between(0, 3), &old),
        1 => Datatype::vector(
            random.between(0, 3),
            random.between(0, 2),
            random.between(-3, 5),
            &old,
        ),
        2 => Datatype::hvector(
            random.between(0, 3),
            random.between(0, 2),
            random.between(-30, 59),
            &old,
        ),
        3 => {
            let lengths = lengths(random, blocks);
            Datatype::indexed(&lengths, &places(random, blocks, 20), &old)
        }
        4 => {
            let lengths = lengths(random, blocks);
            Datatype::hindexed(&lengths, &places(random, blocks, 200), &old)
        }
        5 => Datatype::indexed_block(random.between(0, 2), &places(random, blocks, 20), &old),
        6 => Datatype::hindexed_block(random.between(0, 2), &places(random, blocks, 200), &old),
        7 => {
            let step = random.between(-10, 29);
            let regular: Vec<i64> = (0..blocks).map(|i| 5 + i * step).collect();
            Datatype::hindexed_block(1, &regular, &old)
        }
        8 => Datatype::subarray(&[3, 4], &[2, 2], &[1, random.between(0, 2)], Order::Fortran, &old),
        9 => Datatype::resized(random.between(-20, 19), random.between(-20, 79), &old),
        _ => {
            let types: Vec<Datatype> = (0..blocks)
                .map(|_| match random.below(2) {
                    0 => old.clone(),
                    _ => tree_of(random, depth - 1, all),
                })
                .collect();
            let lengths = lengths(random, blocks);
            Datatype::structured(&lengths, &places(random, blocks, 300), &types)
        }
    }
    .expect("the arguments of a small tree are valid")
}

/// Returns memory for `count` elements, and the position of displacement 0 in that memory. The bytes are
/// random, but some values are changed so that external32 can represent them: integers that have fewer
/// bytes in external32 are made small, and a `long double` gets the integer bit that every normal x87
/// number has. Where elements overlap, a value may still not be representable.
fn memory(ty: &Datatype, count: u64, random: &mut Random) -> (Vec<u8>, usize) {
    let last = (count as i64 - 1) * ty.extent();
    let low = (ty.true_lb() + last.min(0)).min(0);
    let high = ty.true_ub() + last.max(0);
    let mut bytes: Vec<u8> = (0..(high - low) as usize + 16).map(|_| random.next() as u8).collect();
    let origin = (8 - low) as usize;
    for (at, n) in entries(ty, count, origin) {
        match n.name() {
            "MPI_LONG" | "MPI_UNSIGNED_LONG" => {
                let fill = if n == Named::LONG && bytes[at + 3] >= 0x80 { 0xff } else { 0 };
                bytes[at + 4..at + 8].fill(fill);
            }
            "MPI_WCHAR" => bytes[at + 2..at + 4].fill(0),
            "MPI_LONG_DOUBLE" => bytes[at + 7] |= 0x80,
            _ => {}
        }
    }
    (bytes, origin)
}

/// Returns the position in memory and the type of each basic element of `count` elements.
fn entries(ty: &Datatype, count: u64, origin: usize) -> Vec<(usize, Named)> {
    let entries = typemap::typemap(ty);
    (0..count as i64)
        .flat_map(|i| {
            entries.iter().map(move |entry| {
                ((origin as i64 + i * ty.extent() + entry.offset) as usize, entry.named)
            })
        })
        .collect()
}

/// Returns random settings, which either force the interpreter or select one of this machine's
/// instruction sets for the leaf kernels.
fn settings(random: &mut Random) -> Settings {
    let mut isas: Vec<Isa> = Isa::ALL.into_iter().filter(|isa| isa.is_available()).collect();
    // The best instruction set is in the list twice, so it is chosen most often.
    isas.push(Isa::best());
    match random.below(isas.len() as u64 + 1) as usize {
        0 => Settings { strategy: Some(Strategy::Interpreter), ..Settings::default() },
        i => Settings { isa: Some(isas[i - 1]), ..Settings::default() },
    }
}

/// Compares the results of all external32 calls of the engine, for `count` elements of `ty`, with the
/// naive conversion. Returns true if external32 can represent all values.
fn agree(ty: &Datatype, count: u64, random: &mut Random) -> bool {
    let external = External32::with_settings(ty, &settings(random)).unwrap();
    let (source, origin) = memory(ty, count, random);
    let entries = entries(ty, count, origin);
    let pieces: Option<Vec<Vec<u8>>> =
        entries.iter().map(|&(at, n)| naive_pack(n, &source[at..at + n.size() as usize])).collect();
    let bytes = pack_external_size(&external, count).unwrap();
    let sizes: u64 = entries.iter().map(|(_, n)| size_of(*n)).sum();
    assert_eq!(bytes, sizes, "{ty:?}");
    let mut packed = vec![0u8; bytes as usize];
    let answer = pack_external_range(&external, count, &source, origin, 0..bytes, &mut packed);
    let Some(pieces) = pieces else {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Conversion, "{ty:?}");
        return false;
    };
    answer.unwrap();
    let expected = pieces.concat();
    assert_eq!(packed, expected, "{ty:?} x {count}\n{}", external.program().program());

    // Try all ranges if there are few of them, else some random ranges.
    let ranges: Vec<(u64, u64)> = if bytes <= 40 {
        (0..=bytes).flat_map(|from| (from..=bytes).map(move |to| (from, to))).collect()
    } else {
        let mut some = || random.below(bytes as u64 + 1);
        (0..30).map(|_| (some(), some())).map(|(a, b)| (a.min(b), a.max(b))).collect()
    };
    for (from, to) in ranges {
        let mut part = vec![0u8; (to - from) as usize];
        pack_external_range(&external, count, &source, origin, from..to, &mut part).unwrap();
        assert_eq!(part, expected[from as usize..to as usize], "{ty:?} x {count}: {from}..{to}");
    }

    // Two successive calls pack the elements into one packing unit.
    for first in 0..=count {
        let (mut unit, mut position) = (vec![0u8; bytes as usize + 3], 3);
        let second = origin as i64 + first as i64 * ty.extent();
        for (start, part) in [(origin as i64, first), (second, count - first)] {
            // Skip types whose elements begin before displacement 0, because `source` must begin at
            // displacement 0.
            let Some(source) = source.get(start as usize..).filter(|_| ty.true_lb() >= 0) else {
                continue;
            };
            if ty.extent() >= 0 {
                pack_external(&external, part, source, &mut unit, &mut position).unwrap();
            }
        }
        if position == unit.len() {
            assert_eq!(unit[3..], expected, "{ty:?}: {first} of {count} first");
        }
    }

    let mut restored = source.clone();
    restored.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(5).wrapping_add(11));
    let blank = restored.clone();
    for (&(at, n), piece) in entries.iter().zip(&pieces) {
        restored[at..at + n.size() as usize].copy_from_slice(&naive_unpack(n, piece));
    }
    for step in [expected.len().max(1), 1, 2, 3, 7, 24] {
        let mut answer = blank.clone();
        for (i, part) in expected.chunks(step).enumerate() {
            let from = (i * step) as u64;
            let range = from..from + part.len() as u64;
            unpack_external_range(&external, count, part, range, &mut answer, origin).unwrap();
        }
        assert_eq!(answer, restored, "{ty:?} x {count} in parts of {step}");
    }
    true
}

#[test]
fn every_named_type_at_every_split() {
    let mut random = Random(3);
    for n in Named::all().filter(|n| n.size() > 0) {
        for count in [1, 2, 5] {
            assert!(agree(&named(n), count, &mut random), "{n}");
            let strided = Datatype::vector(3, 1, 2, &named(n)).unwrap();
            assert!(agree(&strided, count, &mut random), "{n}");
            let far = Datatype::vector(2, 2, 3, &named(n)).unwrap();
            assert!(agree(&Datatype::resized(0, 512, &far).unwrap(), count, &mut random), "{n}");
        }
        // With these counts, the loops use every register width and have every kind of remainder.
        for count in [31, 64, 129] {
            assert!(agree(&named(n), count, &mut random), "{n}");
            let strided = Datatype::vector(count as i64, 1, 2, &named(n)).unwrap();
            assert!(agree(&strided, 1, &mut random), "{n}");
        }
    }
}

#[test]
fn random_trees() {
    let (mut random, mut fit) = (Random(0x9e37_79b9_7f4a_7c15), 0);
    for _ in 0..4000 {
        let ty = tree(&mut random, 4);
        if ty.size() < 20_000 && ty.true_extent() < 1 << 20 && ty.extent().abs() < 1 << 20 {
            fit += usize::from(agree(&ty, 1 + random.next() % 3, &mut random));
        }
    }
    assert!(fit > 3000, "only {fit} types could be packed");
}

/// Checks types whose conversion changes only the byte order of the basic elements. The engine converts
/// such types with a plan. Covers every instruction set, lists, and windows (groups of a few short runs).
#[test]
fn random_trees_that_keep_their_widths() {
    let all = [
        Named::CHAR,
        Named::SHORT,
        Named::INT,
        Named::FLOAT,
        Named::DOUBLE,
        Named::DOUBLE,
        Named::C_DOUBLE_COMPLEX,
        Named::INTEGER16,
        Named::DOUBLE_INT,
        Named::SHORT_INT,
    ];
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for i in 0..6000 {
        // Build the tree from one named type, from two, or from all of them.
        let some = random.below(all.len() as u64 - 1) as usize;
        let some = if i % 3 == 2 { &all[..] } else { &all[some..some + 1 + i % 3] };
        let ty = tree_of(&mut random, 4, some);
        if ty.size() < 20_000 && ty.true_extent() < 1 << 20 && ty.extent().abs() < 1 << 20 {
            assert!(agree(&ty, 1 + random.next() % 3, &mut random));
        }
    }
}

/// Checks loops that are long enough for all special paths. These are windows (groups of short runs) of
/// whole cache lines, tiles (groups of iterations of two loops), and joined blocks. The lengths lead to
/// every kind of remainder.
#[test]
fn long_regular_layouts() {
    let mut random = Random(17);
    let record = [named(Named::CHAR), named(Named::INT), named(Named::DOUBLE)];
    let record = Datatype::structured(&[1, 1, 1], &[0, 4, 8], &record).unwrap();
    let packed = [named(Named::CHAR), named(Named::DOUBLE)];
    let packed = Datatype::structured(&[1, 1], &[0, 1], &packed).unwrap();
    let particle = [named(Named::DOUBLE), named(Named::INT), named(Named::DOUBLE)];
    let particle = Datatype::structured(&[3, 1, 3], &[0, 24, 32], &particle).unwrap();
    for _ in 0..4 {
        for count in [1, 7, 40, 133] {
            for ty in [&record, &packed, &particle, &Datatype::resized(0, 48, &record).unwrap()] {
                assert!(agree(ty, count, &mut random));
            }
        }
        for n in [Named::SHORT, Named::FLOAT, Named::DOUBLE, Named::C_DOUBLE_COMPLEX] {
            for (count, blocks, stride) in [(70, 1, 3), (20, 5, 7), (9, 40, 50), (3, 700, 900)] {
                let ty = Datatype::vector(count, blocks, stride, &named(n)).unwrap();
                assert!(agree(&ty, 2, &mut random));
            }
            let column = Datatype::vector(40, 1, 36, &named(n)).unwrap();
            let column = Datatype::resized(0, n.extent().into(), &column).unwrap();
            assert!(agree(&column, 33, &mut random));
        }
    }
}

#[test]
fn doubles_are_one_run_and_deep_towers_work() {
    let double = named(Named::DOUBLE);
    let program = |ty: &Datatype| External32::new(ty).unwrap().program().program().to_string();
    let dense = Datatype::contiguous(3, &Datatype::contiguous(4, &double).unwrap()).unwrap();
    assert_eq!(program(&dense), "elements 1 x 96\n  block 96 @0\n");
    // Neighbouring basic elements of different types stay separate blocks, even if these types have the
    // same size.
    let mixed = [double.clone(), named(Named::INT64_T), named(Named::INT64_T)];
    let mixed = Datatype::structured(&[1, 1, 2], &[0, 8, 16], &mixed).unwrap();
    assert_eq!(program(&mixed), "elements 1 x 32\n  seq 2 @0\n    block 8 @0\n    block 24 @8\n");

    let mut ty = named(Named::LONG);
    for _ in 0..50_000 {
        ty = Datatype::contiguous(1, &ty).unwrap();
        ty = Datatype::resized(0, 16, &ty).unwrap();
    }
    let external = External32::new(&ty).unwrap();
    let mut packed = [0; 8];
    pack_external(&external, 2, &[1i64, 0, 2], &mut packed, &mut 0).unwrap();
    assert_eq!(packed, [0, 0, 0, 1, 0, 0, 0, 2]);
    // No pass can merge any level of this tower.
    let mut ty = named(Named::BYTE);
    for level in 0..2_000 {
        let types = [ty, named(Named::CHAR)];
        ty = Datatype::structured(&[1, 1], &[0, 2 * level + 3], &types).unwrap();
    }
    let external = External32::new(&ty).unwrap();
    let memory: Vec<u8> = (0..4100).map(|i| i as u8).collect();
    let mut packed = vec![0; 2001];
    pack_external(&external, 1, &memory, &mut packed, &mut 0).unwrap();
    assert_eq!(packed, typemap::pack(&ty, 1, &memory, 0));
}

/// Checks single runs of every length up to 219 basic elements, at several alignments, with every
/// instruction set.
#[test]
fn runs_of_any_length_and_alignment() {
    for (n, width) in [(Named::SHORT, 2), (Named::INT, 4), (Named::DOUBLE, 8)] {
        for (isa, length) in Isa::ALL.into_iter().flat_map(|isa| (1..220).map(move |l| (isa, l))) {
            let ty = Datatype::contiguous(length, &named(n)).unwrap();
            let settings = Settings { isa: Some(isa), ..Settings::default() };
            let external = External32::with_settings(&ty, &settings).unwrap();
            let bytes = length as usize * width;
            for (from, to) in [(0, 0), (1, 0), (0, 3), (width, 64 - width), (17, 40)] {
                let memory: Vec<u8> = (0..bytes + from).map(|i| (i * 7 + i / 251) as u8).collect();
                let mut packed = vec![0xee; to + bytes + 1];
                let mut position = to;
                pack_external(&external, 1, &memory[from..], &mut packed[..], &mut position)
                    .unwrap();
                let mut expected = memory[from..].to_vec();
                expected.chunks_mut(width).for_each(|element| element.reverse());
                assert_eq!(packed[to..to + bytes], expected, "{n:?} x {length} {isa}");
                assert!(packed[..to].iter().chain(&packed[position..]).all(|&b| b == 0xee));
                let (mut back, mut position) = (vec![0u8; from + bytes + 1], to);
                let end = from + bytes;
                unpack_external(&external, 1, &packed, &mut position, &mut back[from..end])
                    .unwrap();
                assert_eq!(back[from..end], memory[from..], "{n:?} x {length} {isa}");
                assert_eq!(back[end], 0);
            }
        }
    }
}
