//! Provides types for the tests in this folder: hand-picked types, and random trees that are small
//! enough to expand. The project's full generator is in the crate `typepack-fuzz`, which the engine's
//! tests cannot use, because that crate depends on the engine.

use typepack_engine::{Datatype, Named, Order};
pub use typepack_test_support::random::Random;

/// Returns a random tree of at most `levels` levels of constructors above the named types.
pub fn datatype(random: &mut Random, levels: u32) -> Datatype {
    const NAMED: [Named; 8] = [
        Named::INT,
        Named::DOUBLE,
        Named::BYTE,
        Named::SHORT,
        Named::UNSIGNED,
        Named::DOUBLE_INT,
        Named::PAIR_INT,
        Named::CHAR,
    ];
    if levels == 0 || random.below(8) == 0 {
        return Datatype::named(NAMED[random.below(NAMED.len() as u64) as usize]);
    }
    let old = datatype(random, levels - 1);
    let extent = old.extent().clamp(-200, 200);
    let blocks = random.count(6);
    match random.below(12) {
        0 => Datatype::contiguous(random.count(4), &old),
        1 => {
            let (count, length) = (random.count(4), random.count(3));
            Datatype::vector(count, length, random.between(-3, 4), &old)
        }
        2 => {
            let (count, length) = (random.count(4), random.count(3));
            Datatype::hvector(count, length, random.between(-60, 200), &old)
        }
        3 => Datatype::indexed(&random.counts(blocks, 3), &random.list(blocks, -3, 12), &old),
        4 => Datatype::hindexed(&random.counts(blocks, 3), &random.list(blocks, -9, 300), &old),
        5 => Datatype::indexed_block(random.count(3), &random.list(blocks, -3, 12), &old),
        6 => Datatype::hindexed_block(random.between(1, 2), &random.list(blocks, 0, 300), &old),
        7 => {
            let shift = random.between(-8, 8);
            Datatype::resized(shift, extent + random.between(-8, 24), &old)
        }
        8 => {
            let order = if random.below(2) == 0 { Order::C } else { Order::Fortran };
            Datatype::subarray(&[3, 4], &[2, random.between(1, 3)], &[1, 1], order, &old)
        }
        // All members of this struct have one type. The struct in the last arm also has a member whose
        // type is a second random tree.
        9 => {
            let at = [0, extent + random.between(0, 16), 2 * extent + random.between(0, 40)];
            Datatype::structured(&[1, 1, 2], &at, &[old.clone(), old.clone(), old])
        }
        _ => {
            let other = datatype(random, levels - 1);
            let lengths = random.counts(3, 2);
            let at = random.list(3, -20, 400);
            Datatype::structured(&lengths, &at, &[old.clone(), other, old])
        }
    }
    .expect("small arguments of the right form are valid")
}

/// Returns `number` random trees. Each has at most `8 * entries` bytes of data.
pub fn datatypes(seed: u64, number: usize, entries: i64) -> Vec<Datatype> {
    let mut random = Random(seed);
    let mut all = Vec::with_capacity(number);
    let mut empty = 0;
    while all.len() < number {
        let levels = 2 + random.below(4) as u32;
        let ty = datatype(&mut random, levels);
        empty += usize::from(ty.size() == 0);
        // The basic types here have at most 8 bytes, so every type with at most `entries` basic
        // elements passes this test.
        if ty.size() <= 8 * entries && (ty.size() > 0 || empty.is_multiple_of(16)) {
            all.push(ty);
        }
    }
    // A test with random types is useful only if most of the types are not tiny.
    let large = all.iter().filter(|ty| ty.size() >= 32).count();
    assert!(large > number / 2, "only {large} of {number} random types have 32 bytes or more");
    all
}

/// Returns hand-picked types. Each reaches a different operation of the program or a different rule of
/// the passes.
pub fn chosen() -> Vec<Datatype> {
    let named = Datatype::named;
    let (byte, int, double) = (named(Named::BYTE), named(Named::INT), named(Named::DOUBLE));
    let make = || -> Result<Vec<Datatype>, typepack_engine::Error> {
        let vector = Datatype::vector(3, 2, 4, &int)?;
        let members = [named(Named::CHAR), int.clone(), double.clone()];
        let window = Datatype::structured(&[1, 1, 1], &[0, 4, 8], &members)?;
        let gapped = Datatype::resized(0, 7, &int)?;
        let ragged = Datatype::indexed(&[1, 3, 0, 2], &[9, 0, 5, 5], &int)?;
        let many: Vec<i64> = (0..100).map(|i| i * i % 97 * 8 + i).collect();
        let lengths: Vec<i64> = (0..100).map(|i| i % 3).collect();
        let long = Datatype::contiguous(300, &byte)?;
        let column = Datatype::resized(0, 8, &Datatype::vector(4, 1, 6, &double)?)?;
        let parts: Vec<Datatype> =
            (0..70).map(|i| if i % 3 == 0 { vector.clone() } else { window.clone() }).collect();
        let places: Vec<i64> = (0..70).map(|i| i * 100 + i % 7).collect();
        Ok(vec![
            double.clone(),
            named(Named::SHORT_INT),
            Datatype::contiguous(5, &double)?,
            Datatype::contiguous(0, &double)?,
            vector.clone(),
            Datatype::hvector(3, 1, 100, &vector)?,
            Datatype::vector(4, 1, -3, &int)?,
            Datatype::hindexed(&[1, 1, 1], &[32, 16, -5], &int)?,
            Datatype::contiguous(6, &column)?,
            column,
            Datatype::resized(0, -48, &vector)?,
            Datatype::vector(3, 2, 3, &window)?,
            Datatype::hindexed_block(2, &[100, 3, 160], &window)?,
            Datatype::indexed(&[1, 3, 2], &[9, 0, 5], &gapped)?,
            Datatype::hindexed(&[2, 1], &[0, 200], &ragged)?,
            Datatype::hindexed(&[3, 2], &[0, 6], &int)?,
            Datatype::hvector(3, 1, 0, &int)?,
            Datatype::hvector(3, 1, 3, &int)?,
            Datatype::hvector(3, 1, 320, &long)?,
            Datatype::hindexed_block(1, &many, &byte)?,
            Datatype::hindexed(&lengths, &many, &Datatype::resized(0, 3, &byte)?)?,
            Datatype::hindexed(&lengths, &many, &byte)?,
            Datatype::structured(&[1; 70], &places, &parts)?,
            Datatype::structured(&[2; 70], &places, &parts)?,
            Datatype::structured(
                &[1, 1],
                &[0, 4],
                &[Datatype::hvector(9, 1, 16, &int)?, Datatype::hvector(11, 1, 16, &double)?],
            )?,
            Datatype::subarray(&[4, 5, 6], &[2, 2, 3], &[1, 2, 1], Order::Fortran, &window)?,
            ragged,
            window,
        ])
    };
    make().expect("all arguments are valid")
}
