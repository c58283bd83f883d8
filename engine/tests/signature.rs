//! Compares signatures with the typemap: the runs, the hashes of every prefix, and matching. Also
//! tests types that are too large to expand.

use crate::random::Random;
use typepack_engine::signature::{Basic, Sameness, Signature, SignatureHash, SignatureRun};
use typepack_engine::{Datatype, ErrorClass, Named, typemap};

fn named(n: Named) -> Datatype {
    Datatype::named(n)
}

fn basics(ty: &Datatype, count: u64, sameness: Sameness) -> Vec<Basic> {
    let entries = typemap::typemap(ty);
    let one = entries.iter().map(|entry| Basic::new(entry.named, sameness).unwrap());
    let one: Vec<Basic> = one.collect();
    one.repeat(count as usize)
}

/// Computes one step of the hash, `value * BASE + token` modulo `MODULUS`. The function multiplies bit
/// by bit.
fn horner(value: u128, token: u32) -> u128 {
    let (p, mut answer, mut a) = (SignatureHash::MODULUS, 0, value);
    for bit in 0..127 {
        if SignatureHash::BASE >> bit & 1 == 1 {
            answer = (answer + a) % p;
        }
        a = 2 * a % p;
    }
    (answer + u128::from(token)) % p
}

fn naive_runs(basics: &[Basic]) -> Vec<SignatureRun> {
    let run = |same: &[Basic]| SignatureRun { basic: same[0], elements: same.len() as u64 };
    basics.chunk_by(|a, b| a == b).map(run).collect()
}

fn check(ty: &Datatype, count: u64, sameness: Sameness) {
    let signature = Signature::with(ty, sameness).unwrap();
    let expected = basics(ty, count, sameness);
    assert_eq!(signature.elements_of(count).unwrap(), expected.len() as u64);
    assert_eq!(signature.bytes(), ty.size() as u64);
    let runs = naive_runs(&expected);
    assert!(signature.runs(count).unwrap().eq(runs.iter().copied()), "{ty:?} {signature}");
    assert_eq!(signature.run_count(count).unwrap(), runs.len() as u64, "{signature}");
    for cap in [0, 1, runs.len().saturating_sub(1), runs.len(), runs.len() + 1] {
        let list = signature.run_list(count, cap).unwrap();
        assert_eq!(list.runs[..], runs[..cap.min(runs.len())]);
        assert_eq!(list.truncated, cap < runs.len());
    }
    let (mut hash, mut bytes) = (SignatureHash::EMPTY, 0);
    let of_bytes = |bytes| signature.hash_of_bytes(count, bytes);
    for (n, basic) in expected.iter().enumerate() {
        assert_eq!(of_bytes(bytes).unwrap(), Some(hash), "{ty:?} first {bytes} bytes");
        let end = bytes + u64::from(basic.width());
        for inside in bytes + 1..end {
            assert_eq!(of_bytes(inside).unwrap(), None, "{ty:?} first {inside} bytes");
        }
        bytes = end;
        assert_eq!(signature.prefix_hash(count, n as u64).unwrap(), hash, "{ty:?} first {n}");
        assert_eq!(signature.basic_at(n as u64), Some(*basic), "{ty:?} element {n}");
        hash.elements += 1;
        hash.value = horner(hash.value, basic.token());
    }
    assert_eq!(signature.hash(count).unwrap(), hash);
    assert_eq!(signature.prefix_hash(count, hash.elements).unwrap(), hash);
    assert!(signature.prefix_hash(count, hash.elements + 1).is_err());
    assert_eq!(of_bytes(bytes).unwrap(), Some(hash));
    assert!(of_bytes(bytes + 1).is_err());
}

#[test]
fn chosen_types_agree_with_the_typemap() {
    for ty in crate::random::chosen() {
        for count in [0, 1, 2, 3] {
            check(&ty, count, Sameness::Representation);
        }
        check(&ty, 2, Sameness::Name);
    }
}

#[test]
fn random_types_agree_with_the_typemap() {
    for ty in crate::random::datatypes(1, 600, 100) {
        check(&ty, 1, Sameness::Representation);
        check(&ty, 2, Sameness::Name);
    }
}

#[test]
fn random_types_match_as_their_typemaps_do() {
    let types = crate::random::datatypes(2, 120, 80);
    let mut verdicts = [0; 3];
    for send in &types {
        for recv in &types {
            let (a, b) = (Signature::of(send).unwrap(), Signature::of(recv).unwrap());
            let sent = basics(send, 2, Sameness::Representation);
            let room = basics(recv, 3, Sameness::Representation);
            let common = sent.iter().zip(&room).position(|(a, b)| a != b);
            let accepted = b.accepts(3, a.hash(2).unwrap()).unwrap();
            assert_eq!(accepted, a.matches(2, &b, 3).unwrap().is_ok());
            match a.matches(2, &b, 3).unwrap() {
                Ok(()) => {
                    assert_eq!((common, sent.len() <= room.len()), (None, true));
                    verdicts[0] += 1;
                }
                Err(mismatch) => {
                    let element = common.unwrap_or(room.len());
                    assert_eq!(mismatch.element, element as u64);
                    assert_eq!(mismatch.sent, sent[element]);
                    assert_eq!(mismatch.expected, room.get(element).copied());
                    verdicts[if mismatch.class() == ErrorClass::TYPE { 1 } else { 2 }] += 1;
                }
            }
        }
    }
    assert!(verdicts.iter().all(|&n| n > 20), "{verdicts:?}");
}

#[test]
fn layout_does_not_matter_and_names_only_when_asked() {
    let (int, long) = (named(Named::INT), named(Named::LONG));
    let columns = Datatype::vector(6, 1, 10, &int).unwrap();
    let scattered = Datatype::indexed(&[1, 2, 3], &[20, 0, 8], &named(Named::UNSIGNED)).unwrap();
    let of = |ty: &Datatype| Signature::of(ty).unwrap();
    assert_eq!(of(&columns), of(&scattered));
    assert_eq!(of(&long), of(&named(Named::INT64_T)));
    assert_ne!(of(&int), of(&long));
    let strict = |ty: &Datatype| Signature::with(ty, Sameness::Name).unwrap();
    assert_ne!(strict(&columns), strict(&scattered));
    assert_ne!(strict(&long), strict(&named(Named::INT64_T)));
    assert_ne!(strict(&long), of(&long));
    assert!(strict(&long).matches(1, &of(&long), 1).is_err());
}

#[test]
fn packed_matches_anything_that_fits_and_byte_only_bytes() {
    let of = |n: Named| Signature::of(&named(n)).unwrap();
    let (packed, byte, double) = (of(Named::PACKED), of(Named::BYTE), of(Named::DOUBLE));
    assert!(packed.matches(16, &double, 2).unwrap().is_ok());
    assert!(double.matches(2, &packed, 16).unwrap().is_ok());
    assert!(packed.matches(3, &byte, 9).unwrap().is_ok());
    let long = packed.matches(17, &double, 2).unwrap().unwrap_err();
    assert_eq!((long.class(), long.element), (ErrorClass::TRUNCATE, 16));
    assert_eq!(long.to_string(), "the receive buffer ends after 16 bytes of packed data");
    assert!(double.matches(2, &packed, 15).unwrap().is_err());
    let wrong = double.matches(1, &byte, 8).unwrap().unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "basic element 0: float 8 was sent, but the receiver expects byte 1"
    );
    assert!(double.accepts(2, packed.hash(17).unwrap()).unwrap(), "packed bytes were refused");
    assert!(packed.accepts(1, double.hash(2).unwrap()).unwrap());
    assert!(!byte.accepts(8, double.hash(1).unwrap()).unwrap());
    let mixed = [named(Named::PACKED), named(Named::DOUBLE)];
    let mixed = Datatype::structured(&[8, 1], &[0, 8], &mixed).unwrap();
    let mixed = Signature::of(&mixed).unwrap();
    assert!(mixed.matches(1, &double, 2).unwrap().is_err());
    assert!(mixed.matches(1, &mixed, 1).unwrap().is_ok());
}

/// Checks the rules that E. Gabriel's lecture (`lecture.rs`) states: signatures match if they are equal
/// once all counts are expanded, and a message need not fill the receive buffer.
#[test]
fn a_message_may_be_shorter() {
    let members = [named(Named::CHAR), named(Named::INT), named(Named::DOUBLE)];
    let mystruct = Datatype::structured(&[1, 1, 1], &[0, 8, 16], &members).unwrap();
    let one = Signature::of(&mystruct).unwrap();
    assert_eq!(one.to_string(), "(character 1, integer 4, float 8)");
    let three = Signature::of(&Datatype::contiguous(3, &mystruct).unwrap()).unwrap();
    assert!(one.matches(3, &three, 1).unwrap().is_ok());
    assert!(one.matches(2, &three, 1).unwrap().is_ok());
    assert!(one.matches(0, &three, 0).unwrap().is_ok());
    let long = one.matches(4, &three, 1).unwrap().unwrap_err();
    assert_eq!((long.element, long.expected, long.class()), (9, None, ErrorClass::TRUNCATE));
    assert_eq!(
        long.to_string(),
        "the receive buffer ends before basic element 9, where character 1 was sent"
    );
    assert_eq!(three.copies_of(&one), Some(3));
    assert_eq!(one.copies_of(&three), None);
    assert_eq!(three.copies_of(&Signature::of(&members[1]).unwrap()), None);
}

#[test]
fn a_type_of_2_to_the_60_elements_is_hashed_at_once() {
    let mut ty = named(Named::BYTE);
    for _ in 0..60 {
        ty = Datatype::contiguous(2, &ty).unwrap();
    }
    let bytes = Signature::of(&ty).unwrap();
    assert_eq!(bytes.to_string(), format!("{} x byte 1", 1u64 << 60));
    let byte = Signature::of(&named(Named::BYTE)).unwrap();
    assert_eq!(bytes.hash(7).unwrap(), byte.hash(7 << 60).unwrap());
    assert!(bytes.hash(8).is_err(), "2^63 bytes were hashed");
    assert_eq!(bytes.run_list(7, 10).unwrap().runs.len(), 1);

    // Each struct contains its child twice, with an `MPI_SHORT` between the two copies, so the type has
    // 2^50 runs, but its tree has few nodes.
    let (mut ty, mut other) = (named(Named::BYTE), named(Named::BYTE));
    let short = named(Named::SHORT);
    for level in 0..50 {
        let struct_of = |ty: &Datatype, middle: &Datatype| {
            let types = [ty.clone(), middle.clone(), ty.clone()];
            Datatype::structured(&[1, 1, 1], &[0; 3], &types).unwrap()
        };
        ty = struct_of(&ty, &short);
        other = if level == 20 {
            struct_of(&other, &named(Named::CHAR))
        } else {
            struct_of(&other, &short)
        };
    }
    let (a, b) = (Signature::of(&ty).unwrap(), Signature::of(&other).unwrap());
    assert_eq!(a.elements(), (1 << 51) - 1);
    assert_eq!(a.run_count(1).unwrap(), (1 << 51) - 1);
    let list = a.run_list(1, 1000).unwrap();
    assert_eq!((list.runs.len(), list.truncated), (1000, true));
    let mismatch = a.matches(1, &b, 1).unwrap().unwrap_err();
    // The first difference is the element in the middle of the first struct of level 21.
    assert_eq!(mismatch.element, (1 << 21) - 1);
    assert_eq!(mismatch.expected.map(|basic| basic.to_string()), Some("character 1".into()));
    for n in [0, 1, 2, (1 << 40) + 12345, 1 << 50] {
        let front = a.prefix_hash(1, n).unwrap();
        assert!(n < 1 << 21 || front != b.prefix_hash(1, n).unwrap());
        assert_eq!(front.elements, n);
    }
    // Every struct begins with its child. So the first 2^(k+1) - 1 elements of the type are those of a
    // struct of level k, which has 2^k bytes and a short between every two of them.
    for k in [1, 7, 20, 50] {
        let (elements, bytes) = ((1 << (k + 1)) - 1, (1 << k) + 2 * ((1 << k) - 1));
        let front = a.prefix_hash(1, elements).unwrap();
        assert_eq!(a.hash_of_bytes(1, bytes).unwrap(), Some(front));
        // The element after this prefix is an `MPI_SHORT` (2 bytes), so no prefix is exactly one byte
        // longer.
        if k < 50 {
            assert_eq!(a.hash_of_bytes(1, bytes + 1).unwrap(), None);
        }
    }
}

#[test]
fn a_tower_of_100_000_levels_is_no_matter() {
    let (int, double) = (named(Named::INT), named(Named::DOUBLE));
    let (mut straight, mut nested) = (int.clone(), int.clone());
    for _ in 0..100_000 {
        straight = Datatype::resized(0, 8, &straight).unwrap();
        let types = [double.clone(), nested];
        nested = Datatype::structured(&[1, 1], &[0, 0], &types).unwrap();
    }
    assert_eq!(Signature::of(&straight).unwrap(), Signature::of(&int).unwrap());
    let deep = Signature::of(&nested).unwrap();
    assert_eq!(deep.elements(), 100_001);
    assert_eq!(deep.run_list(1, 10).unwrap().runs[0].elements, 100_000);
    let flat = Datatype::structured(&[100_000, 1], &[0, 0], &[double, int]).unwrap();
    let flat = Signature::of(&flat).unwrap();
    assert!(deep.matches(2, &flat, 2).unwrap().is_ok());
    assert_eq!(deep, flat);
    assert_eq!(
        deep.to_string().len(),
        "(float 8, (float 8, (float 8, (float 8, (float 8, (float 8, (…)))))))".len()
    );
}

#[test]
fn a_struct_of_a_million_members_has_every_prefix() {
    let mut numbers = Random(3);
    let kinds = [named(Named::INT), named(Named::DOUBLE), named(Named::DOUBLE_INT)];
    let members: Vec<usize> = (0..1_000_000).map(|_| numbers.below(3) as usize).collect();
    let types: Vec<Datatype> = members.iter().map(|&kind| kinds[kind].clone()).collect();
    let at: Vec<i64> = (0..1_000_000).map(|i| i * 16).collect();
    let ty = Datatype::structured(&vec![1; types.len()], &at, &types).unwrap();
    let signature = Signature::of(&ty).unwrap();
    let hashes: Vec<_> =
        kinds.iter().map(|ty| Signature::of(ty).unwrap().hash(1).unwrap()).collect();
    let (mut hash, mut bytes) = (SignatureHash::EMPTY, 0);
    for (i, &kind) in members.iter().enumerate() {
        if i % 9973 == 0 {
            assert_eq!(signature.prefix_hash(1, hash.elements).unwrap(), hash);
            assert_eq!(signature.hash_of_bytes(1, bytes).unwrap(), Some(hash));
            assert_eq!(signature.hash_of_bytes(1, bytes + 3).unwrap(), None);
        }
        hash = hash.then(hashes[kind]);
        bytes += kinds[kind].size() as u64;
    }
    assert_eq!(signature.hash(1).unwrap(), hash);
}
