//! Compares file views with the expanded typemap: offsets, pieces, ends of files, and copies between
//! memory and a file from any position of either side, natively and in external32. Each comparison covers
//! the whole file and the whole memory, because a copy must not change any other byte.

use crate::layouts::small;
use crate::random::Random;
use crate::walk::places;
use typepack_engine::{
    Datatype, Elements, ErrorKind, FileView, Named, Order, Plan, Settings, external32,
    pack_external, typemap, view,
};

/// Returns a random filetype over `leaf`. In most of these filetypes, the displacements never decrease; the
/// tests check this with [`is_ordered`]. Two calls with the same state of `random` and different leaves make
/// the same constructor calls, with the same numbers.
fn ascending(random: &mut Random, levels: u32, leaf: &Datatype) -> Datatype {
    if levels == 0 {
        return leaf.clone();
    }
    let old = ascending(random, levels - 1, leaf);
    let (n, gap) = (random.between(1, 4), random.between(0, 3));
    let list: Vec<(i64, i64)> = (0..random.between(1, 6))
        .scan(0, |at, _| {
            let (here, length) = (*at + random.between(0, 2), random.between(0, 3));
            *at = here + length;
            Some((here, length))
        })
        .collect();
    let (at, lengths): (Vec<i64>, Vec<i64>) = list.iter().copied().unzip();
    let apart: Vec<i64> = (0..n).map(|i| i * 3 + gap % 2).collect();
    match random.below(8) {
        0 => Datatype::contiguous(n, &old),
        1 => Datatype::vector(n, 1 + gap, 1 + gap + gap, &old),
        2 => Datatype::hvector(n, 2, 2048 << (levels * 2), &old),
        3 => Datatype::indexed(&lengths, &at, &old),
        4 => Datatype::indexed_block(2, &apart, &old),
        5 => Datatype::hindexed(&[n, 0, 1], &[8, 0, 1600 << (levels * 2)], &old),
        6 => Datatype::subarray(&[4, 5], &[n.min(2), gap + 1], &[1, 1], Order::C, &old),
        _ => Datatype::structured(&[1, n], &[0, 3200 << (levels * 2)], &[old.clone(), old]),
    }
    .expect("small arguments of the right form are valid")
}

/// Returns whether the displacements in the typemap of `ty` are neither negative nor decreasing.
fn is_ordered(ty: &Datatype) -> bool {
    let at: Vec<i64> = typemap::typemap(ty).iter().map(|entry| entry.offset).collect();
    at.is_empty() || (at[0] >= 0 && at.is_sorted())
}

/// Returns `ty` with random bounds. Its copies often overlap, lie between each other, on top of each other, or before
/// each other.
fn squeezed(random: &mut Random, ty: &Datatype) -> Datatype {
    let extent = match random.below(6) {
        0 => 0,
        1 => -random.between(1, 1 + ty.true_ub()),
        2 => random.between(1, 9),
        _ => random.between(0, ty.true_extent() + 3),
    };
    Datatype::resized(random.between(-9, 9), extent, ty).expect("small bounds")
}

/// Returns the offsets of the view bytes of `tiles` filetypes, or of fewer, if more would begin before offset 0.
fn in_file(ty: &Datatype, tiles: u64) -> Vec<i64> {
    let mut at = places(ty, tiles);
    while at.iter().any(|&at| at < 0) {
        at.truncate(at.len() - ty.size() as usize);
    }
    at
}

fn byte() -> Datatype {
    Datatype::named(Named::BYTE)
}

fn new(etype: &Datatype, filetype: &Datatype) -> Result<FileView, typepack_engine::Error> {
    FileView::new(etype, filetype, &Settings::default())
}

/// Checks the results of a view for many positions, lengths and ends of the file. `at[i]` is the offset in
/// the file of byte `i` of the view.
fn check_positions(name: &str, view: &FileView, at: &[i64]) {
    let at: Vec<u64> = at.iter().map(|&at| at as u64).collect();
    let each = view.filetype_bytes() as usize;
    let writable = at[..each].windows(2).all(|pair| pair[0] < pair[1]);
    assert_eq!(view.check_writable().is_ok(), writable, "{name}");
    if at.len() < 3 * each {
        let beyond = view.offset(at.len() as u64).unwrap_err();
        assert_eq!((beyond.kind(), beyond.argument()), (ErrorKind::Overflow, "position"), "{name}");
    }
    let step = 1 + at.len() / 40;
    for from in (0..at.len()).step_by(step) {
        assert_eq!(view.offset(from as u64).unwrap(), at[from], "{name} byte {from}");
        for to in (from + 1..=at.len()).step_by(step) {
            let (position, length) = (from as u64, (to - from) as u64);
            let pieces: Vec<_> = view.pieces(position, length).unwrap().collect();
            let touch = pieces.windows(2).any(|w| w[0].offset + w[0].bytes as i64 == w[1].offset);
            assert!(!touch, "{name} {from}..{to}: {pieces:?}");
            let met: Vec<u64> = pieces
                .iter()
                .flat_map(|piece| piece.offset as u64..piece.offset as u64 + piece.bytes)
                .collect();
            assert_eq!(met, at[from..to], "{name} {from}..{to}");
            let span = view.span(position, length).unwrap();
            let (low, high) = (*met.iter().min().unwrap(), *met.iter().max().unwrap() + 1);
            assert!(span.start <= low && low < span.start + 32, "{name} {from}..{to}: {span:?}");
            assert!(span.end >= high && span.end < high + 32, "{name} {from}..{to}: {span:?}");
            assert!(!writable || span == (low..high), "{name} {from}..{to}: {span:?}");
            let grown = met.windows(2).take_while(|pair| pair[0] < pair[1]).count() as u64 + 1;
            let expected = if writable { grown } else { 0 };
            assert_eq!(view.ordered(position, length), expected, "{name} {from}..{to}");
            if writable {
                let last = met.iter().rposition(|&at| at + 1 == high).unwrap() as u64;
                let found = view.highest(position, length).unwrap();
                assert_eq!(found, position + last, "{name} {from}..{to}");
            }
        }
    }
    assert_eq!(view.span(3, 0).unwrap(), 0..0);
    // Try ends of the file from 0 to behind the greatest offset in `at`. If the extent is not positive, no later
    // filetype reaches further.
    let (last, endless) = (*at.iter().max().unwrap() + 2, view.filetype().footprint().extent <= 0);
    for end in (0..last).step_by(1 + last as usize / 700).chain([last]) {
        let check = |found: u64, listed: Option<usize>| match listed {
            Some(listed) => assert_eq!(found, listed as u64, "{name} end {end}"),
            None if endless => assert_eq!(found, u64::MAX, "{name} end {end}"),
            None => assert!(found as usize >= at.len() / view.etype_bytes() as usize),
        };
        check(view.position_at(end), at.iter().position(|&offset| offset >= end));
        let mut etypes = at.iter().step_by(view.etype_bytes() as usize);
        check(view.etypes_at(end), etypes.position(|&offset| offset >= end));
        for from in (0..at.len()).step_by(step * 3) {
            let read = at[from..].iter().take_while(|&&offset| offset < end).count() as u64;
            let most = (at.len() - from) as u64;
            let found = view.readable(from as u64, most, end).unwrap();
            assert_eq!(found, read, "{name} from {from}, end {end}");
            assert_eq!(view.readable(from as u64, most.min(3), end).unwrap(), read.min(3));
        }
    }
}

#[test]
fn views_are_made_of_ordered_types_only() {
    let mut random = Random(1);
    let (mut made, mut refused) = (0, 0);
    let mut check = |ty: &Datatype, name: &str| {
        let view = new(&byte(), ty);
        assert_eq!(view.is_ok(), is_ordered(ty), "{name} {ty:?}: {view:?}");
        match view {
            Err(error) => {
                assert_eq!((error.kind(), error.argument()), (ErrorKind::Type, "filetype"));
                refused += 1;
            }
            Ok(view) if ty.size() > 0 => {
                made += 1;
                check_positions(name, &view, &in_file(ty, 3));
            }
            Ok(view) => {
                assert_eq!((view.etypes_at(9), view.position_at(9)), (0, u64::MAX));
                assert_eq!(view.tiles(1).unwrap_err().kind(), ErrorKind::Type);
            }
        }
    };
    for (name, ty) in small() {
        check(&ty, name);
    }
    for _ in 0..4000 {
        let levels = random.between(0, 2) as u32;
        let ty = crate::random::datatype(&mut random, levels);
        if typemap::typemap(&ty).len() < 400 {
            check(&ty, "random");
        }
    }
    for round in 0..400 {
        let ty = ascending(&mut random, 1 + round % 3, &Datatype::named(Named::SHORT));
        if (1..400).contains(&typemap::typemap(&ty).len()) {
            check(&ty, "ascending");
            check(&squeezed(&mut random, &ty), "squeezed");
        }
    }
    assert!(made > 500 && refused > 500, "{made} views, {refused} refused");
}

/// The copies of these filetypes lie between each other, overlap, lie on top of each other, or go backwards.
/// Positions count whole etypes of several bytes.
#[test]
fn filetypes_in_order_whose_copies_are_not() {
    let parse = |text: &str| text.parse::<Datatype>().unwrap_or_else(|e| panic!("{text}: {e}"));
    for (etype, filetype) in [
        ("int", "struct([1, 1], [0, 100], [int, resized(0, 8, int)])"),
        ("int", "resized(0, 8, vector(2, 1, 25, int))"),
        ("int", "resized(-40, 8, vector(3, 2, 5, int))"),
        ("int", "resized(12, 4, vector(3, 1, 3, int))"),
        ("int", "resized(0, 0, vector(2, 1, 5, int))"),
        ("int", "resized(0, 0, int)"),
        ("int", "resized(0, 3, vector(2, 1, 5, int))"),
        ("int", "resized(7, -8, hindexed([2, 1], [16, 40], int))"),
        ("short", "resized(0, 2, int)"),
        ("double", "resized(0, 16, struct([1, 2, 1], [4, 20, 60], [double, double, double]))"),
        (
            "resized(0, 8, hindexed([1, 1], [0, 12], short))",
            "hindexed([1, 1], [0, 30], resized(0, 6, \
          hindexed([1, 1], [0, 12], short)))",
        ),
        ("hindexed([1, 1], [0, 0], int)", "resized(0, 2, hindexed([1, 1], [0, 0], int))"),
    ] {
        let (etype, filetype) = (parse(etype), parse(filetype));
        let name = format!("{etype:?}, {filetype:?}");
        let view = new(&etype, &filetype).unwrap_or_else(|e| panic!("{name}: {e}"));
        check_positions(&name, &view, &in_file(&filetype, 5));
    }
    // An etype may be such a type too, and be the whole filetype.
    let etype = parse("struct([1, 1], [0, 100], [int, resized(0, 8, int)])");
    check_positions("etype", &new(&etype, &etype).unwrap(), &in_file(&etype, 4));
    // Two such copies inside a filetype are displacements of the filetype.
    let twice = Datatype::contiguous(2, &etype).unwrap();
    assert!(new(&byte(), &twice).unwrap_err().to_string().contains("must not decrease"));
}

/// Copies in both directions between `count` elements of `memory` and a view, and compares the whole file
/// and the whole memory with the simple implementation in `typemap.rs`.
fn check_copy(
    name: &str,
    (memory, plan, count): (&Datatype, &Plan, u64),
    (view, offsets): (&FileView, &[i64]),
    (at, position, bytes): (usize, usize, usize),
) {
    let own = places(memory, count);
    let low = own.iter().copied().min().unwrap_or(0).min(0);
    let high = own.iter().copied().max().unwrap_or(0) + 1;
    let ram: Vec<u8> = (0..(high - low) as usize + 8).map(|i| (i * 7 + i / 251) as u8).collect();
    let end = offsets.iter().max().map_or(0, |&end| end as usize + 1);
    let disk: Vec<u8> = (0..end + 8).map(|i| (i * 11 + i / 241) as u8 ^ 0x80).collect();
    let range =
        || (0..bytes).map(|i| ((own[at + i] - low) as usize, offsets[position + i] as usize));
    let origin = (-low) as usize;
    let numbers = (at as u64, position as u64, bytes as u64);

    let (mut written, mut expected) = (disk.clone(), disk.clone());
    range().for_each(|(from, to)| expected[to] = ram[from]);
    let side = Elements::new(ram.as_ptr().wrapping_add(origin), plan, count);
    // SAFETY: `ram` holds every byte of the elements. `written` holds every byte of the view up to the
    // position that the copy reaches. `ram` and `written` are separate allocations.
    unsafe { view.write_raw(side, numbers.0, written.as_mut_ptr(), numbers.1, numbers.2).unwrap() };
    assert!(written == expected, "write {name}: {at}, {position}, {bytes}");

    let (mut read, mut expected) = (ram.clone(), ram);
    range().for_each(|(to, from)| expected[to] = disk[from]);
    let side = Elements::new(read.as_mut_ptr().wrapping_add(origin), plan, count);
    // SAFETY: `read` holds every byte of the elements. `disk` holds every byte of the view up to the
    // position that the copy reaches. `read` and `disk` are separate allocations.
    unsafe { view.read_raw(side, numbers.0, disk.as_ptr(), numbers.1, numbers.2).unwrap() };
    assert!(read == expected, "read {name}: {at}, {position}, {bytes}");
}

#[test]
fn every_position_of_both_sides() {
    let int = Datatype::named(Named::INT);
    let short = Datatype::named(Named::SHORT);
    let files = [
        ("bytes", byte()),
        ("displaced run", Datatype::hindexed_block(6, &[5], &byte()).unwrap()),
        ("column", Datatype::resized(0, 64, &Datatype::vector(3, 1, 4, &int).unwrap()).unwrap()),
        ("rows", Datatype::vector(3, 2, 3, &short).unwrap()),
        ("table", Datatype::indexed_block(1, &[1, 4, 6], &int).unwrap()),
        ("list", Datatype::indexed(&[1, 0, 3, 2], &[0, 9, 3, 8], &short).unwrap()),
        ("struct", "struct([1, 2], [3, 20], [vector(2, 1, 2, int), short])".parse().unwrap()),
    ];
    let memories =
        ["contiguous", "vector", "vector of 3 bytes", "negative extent", "window", "list of runs"];
    for (name, memory) in small().iter().filter(|(name, _)| memories.contains(name)) {
        let plan = memory.commit().unwrap();
        let count = 40u64.div_ceil(memory.size() as u64) + 1;
        for (file, ty) in &files {
            let view = new(&byte(), ty).unwrap();
            let offsets = places(ty, 40 / ty.size() as u64 + 3);
            let name = format!("{name} -> {file}");
            for at in (0..32).step_by(3) {
                for position in 0..30 {
                    for bytes in [0, 1, 7, 24] {
                        if at + bytes <= 40 && position + bytes <= 40 {
                            let numbers = (at, position, bytes);
                            check_copy(&name, (memory, &plan, count), (&view, &offsets), numbers);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn random_memory_and_random_views() {
    let mut random = Random(5);
    let mut copied = 0;
    for round in 0..3000 {
        let levels = random.between(0, 2) as u32;
        let memory = crate::random::datatype(&mut random, levels);
        let leaf = [Named::BYTE, Named::SHORT, Named::INT, Named::DOUBLE][round % 4];
        let levels = 1 + random.below(3) as u32;
        let mut file = ascending(&mut random, levels, &Datatype::named(leaf));
        if round % 3 == 0 {
            file = squeezed(&mut random, &file);
        }
        let (entries, pieces) = (typemap::typemap(&memory).len(), typemap::typemap(&file).len());
        if memory.size() == 0 || file.size() == 0 || entries * pieces > 40_000 {
            continue;
        }
        let count = 1 + random.below(5);
        let offsets = in_file(&file, 1 + random.below(6));
        let (all, held) = (memory.size() as u64 * count, offsets.len() as u64);
        let plan = memory.commit().unwrap();
        if !is_ordered(&file) {
            continue;
        }
        let view = new(&Datatype::named(leaf), &file).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        for _ in 0..6 {
            let bytes = random.below(all.min(held) + 1);
            // Equal positions on both sides, and positions at the start of a filetype, are copied by other
            // code than the rest. So choose such positions often.
            let at = match random.below(3) {
                0 => 0,
                _ => random.below(all - bytes + 1),
            };
            let position = match random.below(3) {
                0 => (held - bytes) / file.size() as u64 * file.size() as u64,
                1 if at <= held - bytes => at,
                _ => random.below(held - bytes + 1),
            };
            let numbers = (at as usize, position as usize, bytes as usize);
            let name = format!("{count} x {memory:?} -> {file:?}");
            check_copy(&name, (&memory, &plan, count), (&view, &offsets), numbers);
            copied += 1;
        }
    }
    assert!(copied > 6000, "{copied}");
}

#[test]
fn long_copies_in_blocks_rows_and_through_the_buffer() {
    let double = Datatype::named(Named::DOUBLE);
    let rows = |row, stride| Datatype::vector(4000, row, stride, &double).unwrap();
    let long = Datatype::vector(12, 1000, 1100, &double).unwrap();
    let lengths: Vec<i64> = (0..900).map(|i| i % 5 + 1).collect();
    let at: Vec<i64> = (0..900).map(|i| i * 7).collect();
    let list = Datatype::indexed(&lengths, &at, &double).unwrap();
    for memory in [&rows(1, 2), &rows(3, 4), &long, &list] {
        let plan = memory.commit().unwrap();
        for file in [&rows(1, 3), &rows(2, 5), &rows(6, 7), &long, &list] {
            let view = new(&double, file).unwrap();
            let least = memory.size().min(file.size()) as usize;
            let offsets = places(file, 3);
            for (at, position, bytes) in [
                (0, 0, least),
                (0, file.size() as usize, least),
                (0, 800, least),
                (16, 8, least - 20),
                (3, 9000, least - 3),
                (4000, 12, least / 2),
                (8, file.size() as usize + 8, least - 8),
            ] {
                let name = format!("{memory:?} -> {file:?}");
                check_copy(&name, (memory, &plan, 1), (&view, &offsets), (at, position, bytes));
            }
        }
    }
}

#[test]
fn types_in_a_file_have_the_extents_of_the_file() {
    let width = |named: Named| Ok(external32::size_of(named));
    let four = Datatype::contiguous(4, &byte()).unwrap();
    let mut random = Random(9);
    let mut seen = 0;
    for round in 0..3000u32 {
        // `LONG` has 8 bytes in memory and 4 in external32.
        let mut again = Random(random.0);
        let long = ascending(&mut random, round % 5, &Datatype::named(Named::LONG));
        let wanted = ascending(&mut again, round % 5, &four);
        if typemap::typemap(&long).len() > 2000 {
            continue;
        }
        let found = view::in_file(&long, width).unwrap();
        assert_eq!(places(&found, 2), places(&wanted, 2), "{long:?}");
        let bounds = |ty: &Datatype| (ty.size(), ty.lb(), ty.extent(), ty.true_lb(), ty.true_ub());
        assert_eq!(bounds(&found), bounds(&wanted), "{long:?}");
        seen += 1;
    }
    assert!(seen > 1000, "{seen}");
    for (text, size, extent) in [
        ("long", 4, 4),
        ("double_int", 12, 12),
        ("long_int", 8, 8),
        ("char", 1, 1),
        ("struct([1, 1], [0, 8], [long, char])", 5, 9),
        ("resized(-8, 24, long)", 4, 24),
        ("hvector(3, 1, 16, long)", 12, 36),
        ("vector(3, 1, 2, long)", 12, 20),
        ("dup(contiguous(3, long))", 12, 12),
        ("hindexed_block(1, [8, 0], long)", 8, 12),
        ("darray(4, 1, [8], [block], [default], [4], c, long)", 8, 32),
        ("darray(2, 1, [7], [cyclic], [2], [2], fortran, long)", 12, 28),
    ] {
        let ty: Datatype = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let found = view::in_file(&ty, width).unwrap();
        assert_eq!((found.size(), found.extent()), (size, extent), "{text}");
    }
    let no = |_: Named| Err(typepack_engine::Error::new(ErrorKind::Argument, "width", "no"));
    assert_eq!(view::in_file(&four, no).unwrap_err().argument(), "width");
    let wide = |_: Named| Ok(1 << 62);
    let three: Datatype = "contiguous(3, long)".parse().unwrap();
    assert_eq!(view::in_file(&three, wide).unwrap_err().kind(), ErrorKind::Overflow);
}

#[test]
fn external32_from_every_position() {
    for (memory, count) in [
        ("vector(3, 1, 2, long)", 4),
        ("contiguous(5, double)", 2),
        ("struct([1, 2, 1], [0, 8, 40], [char, long, double])", 3),
        ("resized(0, 40, struct([1, 2], [4, 16], [int, double]))", 3),
        ("vector(4, 1, 3, double_int)", 1),
    ] {
        let memory: Datatype = memory.parse().unwrap();
        let prepared = typepack_engine::External32::new(&memory).unwrap();
        let external = &prepared;
        let all = external.element_bytes() * count;
        let width = |named: Named| Ok(external32::size_of(named));
        let etype = view::in_file(&memory, width).unwrap();
        for file in ["long", "vector(5, 1, 3, long)", "indexed([1, 3, 2], [1, 3, 9], char)"] {
            let file: Datatype = file.parse().unwrap();
            let file = view::in_file(&file, width).unwrap();
            let view = new(&byte(), &file).unwrap();
            assert!(etype.size() as u64 == external.element_bytes());
            let offsets = places(&file, (all + 60) / file.size() as u64 + 1);
            let end = *offsets.last().unwrap() as usize + 9;
            let disk: Vec<u8> = (0..end).map(|i| (i * 11) as u8 | 0x80).collect();
            let span = (memory.extent() * count as i64 + memory.true_extent()) as usize;
            // In `ram`, only every eighth byte is not 0, so every value fits in its size in external32.
            let ram: Vec<u8> = (0..span).map(|i| if i % 8 == 0 { i as u8 } else { 0 }).collect();
            let mut stream = vec![0; all as usize];
            pack_external(external, count, &ram, &mut stream, &mut 0).unwrap();
            for position in [0, 1, 4, 50] {
                for at in 0..all {
                    for bytes in [1, 5, 12, all - at].into_iter().filter(|bytes| at + bytes <= all)
                    {
                        let (mut file, mut expected) = (disk.clone(), disk.clone());
                        for i in 0..bytes {
                            let to = offsets[(position + i) as usize] as usize;
                            expected[to] = stream[(at + i) as usize];
                        }
                        let to = file.as_mut_ptr();
                        // SAFETY: `ram` holds the elements, and `file` holds the bytes of the view that
                        // the call writes. They are separate allocations.
                        let result = unsafe {
                            view.write_external_raw(
                                external,
                                count,
                                ram.as_ptr(),
                                at,
                                to,
                                position,
                                bytes,
                            )
                        };
                        result.unwrap();
                        assert!(file == expected, "{memory:?} {at}, {position}, {bytes}");
                    }
                    // Read the whole external32 form back in two parts. The border between the parts may
                    // lie inside an element.
                    let mut file = disk.clone();
                    for i in 0..all {
                        file[offsets[(position + i) as usize] as usize] = stream[i as usize];
                    }
                    let mut back = vec![0x5a; span];
                    let mut expected = back.clone();
                    for index in places(&memory, count) {
                        expected[index as usize] = ram[index as usize];
                    }
                    let to = back.as_mut_ptr();
                    // SAFETY: `back` holds the elements, and `file` holds the bytes of the view that the
                    // calls read. They are separate allocations.
                    unsafe {
                        let file = file.as_ptr();
                        view.read_external_raw(external, count, to, 0, file, position, at).unwrap();
                        let (position, rest) = (position + at, all - at);
                        view.read_external_raw(external, count, to, at, file, position, rest)
                            .unwrap();
                    }
                    assert!(back == expected, "{memory:?} read back, parts meet at {at}");
                }
            }
        }
    }
}

#[test]
fn native_bytes_of_external_bytes() {
    let mut random = Random(13);
    let pair: Datatype = "struct([1, 2, 1], [0, 8, 40], [char, long_int, wchar])".parse().unwrap();
    for round in 0..600u32 {
        let leaf = [Datatype::named(Named::LONG), pair.clone()][round as usize % 2].clone();
        let mut ty = ascending(&mut random, round % 3, &leaf);
        if round % 5 == 0 {
            let levels = random.between(0, 2) as u32;
            ty = crate::random::datatype(&mut random, levels);
        }
        let entries = typemap::typemap(&ty);
        if entries.is_empty() || entries.len() > 200 {
            continue;
        }
        let external = typepack_engine::External32::new(&ty).unwrap();
        let sizes = |named: Named| (u64::from(named.size()), external32::size_of(named));
        let all: Vec<(u64, u64)> =
            (0..3).flat_map(|_| entries.iter().map(|e| sizes(e.named))).collect();
        let (mut native, mut ext) = (0, 0);
        for (one, other) in all {
            for cut in 0..other {
                assert_eq!(
                    external.native_bytes(ext + cut).unwrap(),
                    native,
                    "{ty:?} {ext} + {cut}"
                );
            }
            for cut in 0..one {
                assert_eq!(
                    external.external_bytes(native + cut).unwrap(),
                    ext,
                    "{ty:?} {native} + {cut}"
                );
            }
            (native, ext) = (native + one, ext + other);
        }
    }
    let long = typepack_engine::External32::new(&Datatype::named(Named::LONG)).unwrap();
    assert_eq!(long.native_bytes(1 << 62).unwrap_err().kind(), ErrorKind::Overflow);
}

#[test]
fn values_that_do_not_fit_end_an_external_write() {
    let long = Datatype::named(Named::LONG);
    let external = typepack_engine::External32::new(&long).unwrap();
    let view = new(&byte(), &byte()).unwrap();
    let (values, mut file) = ([1i64, 1 << 40], [0u8; 8]);
    let from = values.as_ptr().cast();
    // SAFETY: `values` holds two elements, and `file` has room for two elements of 4 bytes in external32. They
    // are separate variables.
    let result = unsafe { view.write_external_raw(&external, 2, from, 0, file.as_mut_ptr(), 0, 8) };
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Conversion);
}

#[test]
fn refusals_name_the_argument_and_the_fault() {
    let parse = |text: &str| text.parse::<Datatype>().unwrap_or_else(|e| panic!("{text}: {e}"));
    for (etype, filetype, argument, part) in [
        ("contiguous(0, int)", "int", "filetype", "the etype has none"),
        ("contiguous(0, int)", "contiguous(0, short)", "", ""),
        ("int", "hindexed([1], [-4], int)", "filetype", "displacement -4"),
        (
            "int",
            "hindexed([1, 1], [8, 0], int)",
            "filetype",
            "displacement 0 follows displacement 8",
        ),
        ("int", "vector(3, 1, -1, int)", "filetype", "displacement -"),
        ("hindexed([1, 1], [8, 0], int)", "int", "etype", "must not decrease"),
        ("int", "resized(0, 0, int)", "", ""),
        ("int", "resized(0, -4, int)", "", ""),
        ("int", "resized(0, 4, vector(2, 1, 3, int))", "", ""),
        (
            "int",
            "contiguous(2, resized(0, 4, vector(2, 1, 3, int)))",
            "filetype",
            "must not decrease",
        ),
        ("int", "contiguous(3, short)", "filetype", "not a multiple of the size of the etype"),
        ("int", "resized(0, 6, int)", "", ""),
        ("int", "resized(0, 12, hindexed([1, 1], [0, 6], int))", "", ""),
        ("int", "hvector(3, 1, 6, int)", "", ""),
        ("int", "resized(0, 8, vector(2, 1, 2, short))", "filetype", "not whole"),
        ("resized(0, 8, int)", "resized(0, 16, vector(3, 1, 1, int))", "", ""),
        ("struct([1, 1], [0, 8], [int, int])", "resized(0, 24, vector(2, 1, 2, int))", "", ""),
        (
            "struct([1, 1], [0, 8], [int, int])",
            "resized(0, 24, vector(2, 1, 3, int))",
            "filetype",
            "12",
        ),
    ] {
        let result = new(&parse(etype), &parse(filetype));
        match result {
            Ok(_) => assert_eq!(argument, "", "{etype}, {filetype}"),
            Err(error) => {
                assert_eq!(
                    (error.kind(), error.argument()),
                    (ErrorKind::Type, argument),
                    "{error}"
                );
                assert!(error.to_string().contains(part), "{etype}, {filetype}: {error}");
            }
        }
    }
    let view = new(&parse("int"), &parse("hindexed([1, 1], [0, 0], int)")).unwrap();
    assert!(view.check_writable().unwrap_err().to_string().contains("its elements overlap"));
    let huge = new(&byte(), &parse("resized(0, 4611686018427387904, char)")).unwrap();
    assert_eq!(huge.offset(1).unwrap(), 1 << 62);
    for error in [huge.offset(2).unwrap_err(), huge.span(u64::MAX, 2).unwrap_err()] {
        assert_eq!((error.kind(), error.argument()), (ErrorKind::Overflow, "position"));
    }
}

/// Returns whether a filetype consists of whole copies of `etype`. The function applies the definition to the
/// typemaps of both types.
fn is_whole(etype: &Datatype, filetype: &Datatype) -> bool {
    let (one, all) = (places(etype, 1), places(filetype, 1));
    all.len() % one.len() == 0
        && all.chunks(one.len()).all(|chunk| {
            let shift = chunk[0] - one[0];
            chunk.iter().zip(&one).all(|(a, b)| a - b == shift)
        })
}

#[test]
fn whole_etypes_by_definition() {
    let mut random = Random(3);
    let gapped: Datatype = "struct([1, 1], [0, 6], [int, short])".parse().unwrap();
    let leading: Datatype = "resized(0, 12, hindexed([1], [4], int))".parse().unwrap();
    let (mut whole, mut broken) = (0, 0);
    for round in 0..3000 {
        let etype =
            [Datatype::named(Named::INT), gapped.clone(), leading.clone()][round % 3].clone();
        let leaf = match random.below(3) {
            0 => Datatype::named([Named::INT, Named::SHORT][round % 2]),
            _ => etype.clone(),
        };
        let levels = 1 + random.below(3) as u32;
        let ty = ascending(&mut random, levels, &leaf);
        if typemap::typemap(&ty).len() > 3000 {
            continue;
        }
        let found = FileView::check_etypes(&etype, &ty);
        assert_eq!(found.is_ok(), is_whole(&etype, &ty), "{etype:?}, {ty:?}: {found:?}");
        *(if found.is_ok() { &mut whole } else { &mut broken }) += 1;
    }
    assert!(whole > 300 && broken > 300, "{whole} whole, {broken} broken");
}

#[test]
fn huge_views_take_no_longer() {
    // A filetype has 10^12 pieces of 8 bytes. The position is 2^61 bytes after the start of the view.
    let double = Datatype::named(Named::DOUBLE);
    let rows = Datatype::vector(1_000_000, 1, 2, &double).unwrap();
    let filetype = Datatype::hvector(1_000_000, 1, 16_000_000, &rows).unwrap();
    let view = new(&double, &filetype).unwrap();
    let position = 1 << 61;
    let offset = view.offset(position).unwrap();
    let before = position / 8;
    let tile = 1_000_000u64 * 1_000_000;
    let expected = before / tile * filetype.extent() as u64 + before % tile * 16;
    assert_eq!(offset, expected);
    assert_eq!(view.position_at(offset), position);
    assert_eq!(view.position_at(offset + 3), position + 3);
    assert_eq!(view.readable(position - 16, 1 << 40, offset + 3).unwrap(), 19);
    assert_eq!(view.etypes_at(offset + 3), before + 1);
}
