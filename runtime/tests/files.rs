//! Tests of files. The tests compare random sequences of accesses with a model of the file: a vector of bytes, in which
//! the tests find each byte by the type maps. `file_faults.rs` has the tests with faults.

use crate::file_scene::path;
use crate::job::{ranks, ranks_with};
use std::path::PathBuf;
use typepack::engine::Elements;
use typepack::engine::typemap::typemap;
use typepack::io::{Access, File, Mode, Position, Whence};
use typepack::{Communicator, Datatype, Named, Plan, commit};
use typepack_test_support::random::Random;

/// Returns the displacements of all bytes of one element, in packed order.
fn bytes_of(ty: &Datatype) -> Vec<i64> {
    let entries = typemap(ty);
    entries.iter().flat_map(|e| (0..e.named.size() as i64).map(|b| e.offset + b)).collect()
}

/// A view: its displacement, its types, and the displacements of the bytes of one filetype in packed order.
#[derive(Clone)]
struct View {
    disp: i64,
    etype: Datatype,
    filetype: Datatype,
    bytes: Vec<i64>,
}

impl View {
    /// Returns the file offset of byte `at` of the view.
    fn offset(&self, at: usize) -> usize {
        let tile = (at / self.bytes.len()) as i64 * self.filetype.extent();
        (self.disp + tile + self.bytes[at % self.bytes.len()]) as usize
    }
}

/// Returns a random view of each of `ranks` ranks. The views have no byte in common, and the same etype.
fn random_views(random: &mut Random, ranks: usize) -> Vec<View> {
    let etype = match random.below(3) {
        0 => Datatype::named(Named::I32),
        1 => Datatype::named(Named::U8),
        _ => {
            let types = [Datatype::named(Named::I16), Datatype::named(Named::U8)];
            let pair = Datatype::structured(&[1, 1], &[0, 3], &types).expect("a type");
            Datatype::resized(0, 5, &pair).expect("a type")
        }
    };
    let step = etype.extent();
    let disp = random.below(50) as i64;
    // Give each cell of a period to a random rank, or to no rank. Neighbouring cells often get the same rank.
    let cells = (4 + random.below(40) as usize).max(ranks);
    let mut owner = 0;
    let owners: Vec<usize> = (0..cells)
        .map(|cell| {
            if cell < ranks {
                owner = cell;
            } else if random.below(3) == 0 {
                owner = random.below(ranks as u64 + 1) as usize; // `ranks` means: no rank
            }
            owner
        })
        .collect();
    (0..ranks)
        .map(|rank| {
            let mine = (0..cells).filter(|&cell| owners[cell] == rank);
            let places: Vec<i64> = mine.map(|cell| cell as i64 * step).collect();
            let cells_type = Datatype::hindexed_block(1, &places, &etype).expect("a type");
            let extent = cells as i64 * step;
            let filetype = Datatype::resized(0, extent, &cells_type).expect("a type");
            let bytes = bytes_of(&filetype);
            View { disp, etype: etype.clone(), filetype, bytes }
        })
        .collect()
}

/// Elements in a buffer of `length` bytes: their plan, their number, the position of displacement 0 in the buffer, and
/// the positions of all bytes in the buffer in packed order.
struct Memory {
    plan: Plan,
    count: u64,
    origin: usize,
    offsets: Vec<usize>,
    length: usize,
}

/// Returns random memory for `etypes` elements of the etype.
fn random_memory(random: &mut Random, etype: &Datatype, etypes: u64) -> Memory {
    let (ty, count) = match random.below(4) {
        0 => (etype.clone(), etypes),
        1 => {
            let gap = random.below(9) as i64;
            let extent = etype.extent() + gap;
            (Datatype::resized(0, extent, etype).expect("a type"), etypes)
        }
        2 => {
            // One element, in which the etypes have negative displacements and lie in reverse order.
            let step = etype.extent() + random.below(4) as i64;
            let places: Vec<i64> = (0..etypes as i64).map(|at| -at * step).collect();
            (Datatype::hindexed_block(1, &places, etype).expect("a type"), 1)
        }
        _ => {
            let half = etypes / 2;
            let places = [0, (half as i64 + 1) * etype.extent() + 3];
            let lengths = [half as i64, (etypes - half) as i64];
            (Datatype::hindexed(&lengths, &places, etype).expect("a type"), 1)
        }
    };
    let each = bytes_of(&ty);
    let all: Vec<i64> = (0..count as i64)
        .flat_map(|k| each.iter().map(move |b| (k, *b)))
        .map(|(k, b)| k * ty.extent() + b)
        .collect();
    let low = all.iter().copied().min().unwrap_or(0).min(0);
    let origin = (-low) as usize;
    let offsets: Vec<usize> = all.iter().map(|b| (b - low) as usize).collect();
    let length = offsets.iter().copied().max().map_or(0, |most| most + 1) + 5;
    Memory { plan: commit(&ty).expect("a plan"), count, origin, offsets, length }
}

/// Makes an access and returns its number of bytes. If the kind of access allows it, `way` 1 is a nonblocking call and
/// `way` 2 is a split call. Otherwise the call is blocking.
fn access(file: &File, access: Access, memory: &Memory, buffer: &mut [u8], way: u64) -> u64 {
    let origin = buffer.as_mut_ptr().wrapping_add(memory.origin);
    let part = Elements { origin, plan: &memory.plan, count: memory.count };
    let messages = file.communicator().messages();
    let ordered = access.collective && access.position == Position::Shared;
    // SAFETY: `buffer` holds the elements of `memory` and outlives the access, which is over when this
    // function returns. Nobody else uses `buffer`.
    unsafe {
        match way {
            1 if !ordered => {
                let started = file.start_raw(access, &part).expect("started");
                let done = messages.finish(started.operation).expect("complete");
                done.bytes
            }
            2 if access.collective => {
                file.begin_raw(access, &part).expect("begun");
                file.end(access, part.origin as usize).expect("ended").bytes
            }
            _ => file.access_raw(access, &part).expect("done").bytes,
        }
    }
}

/// Returns the order in which the packed bytes of an etype stand in the file: entry `i` is the index of the packed byte
/// that is byte `i` in the file. In external32, the bytes of every number are in the opposite order.
fn order_in_file(etype: &Datatype, representation: &str) -> Vec<usize> {
    let mut order = Vec::new();
    for entry in typemap(etype) {
        let first = order.len();
        let number = first..first + entry.named.size() as usize;
        if representation == "external32" {
            order.extend(number.rev());
        } else {
            order.extend(number);
        }
    }
    order
}

/// Runs one random sequence: sets a view on each rank, makes several accesses on all ranks, and compares each access
/// with the model. In some sequences all ranks have the same view and use the shared file pointer.
fn sequence(world: &Communicator, file: &File, path: &PathBuf, model: &mut Vec<u8>, seed: u64) {
    let (rank, size) = (world.rank(), world.size());
    // All ranks draw the same numbers, so each knows what the others do.
    let random = &mut Random(seed);
    let mut views = random_views(random, size);
    let shared = random.below(4) == 0;
    if shared {
        views = vec![views[0].clone(); size];
    }
    let mine = &views[rank];
    let representation = ["native", "internal", "external32"][random.below(3) as usize];
    file.set_view(Some(mine.disp), &mine.etype, &mine.filetype, representation).expect("a view");
    let order = order_in_file(&mine.etype, representation);
    if random.below(4) == 0 {
        file.set_atomic(random.below(2) == 0).expect("a mode");
    }
    let unit = mine.etype.size() as u64;
    let mut pointers = vec![0u64; size];
    let mut common = 0;
    for _ in 0..6 {
        let write = random.below(2) == 0;
        let collective = random.below(2) == 0;
        let explicit = random.below(2) == 0 && !shared;
        if shared && random.below(3) == 0 {
            common = random.below(60);
            file.seek_shared(common as i64, Whence::Set).expect("a position");
        }
        let way = random.below(3);
        for (other, pointer) in pointers.iter_mut().enumerate() {
            if random.below(3) == 0 {
                *pointer = random.below(60);
                if other == rank {
                    file.seek(*pointer as i64, Whence::Set).expect("a position");
                }
            }
        }
        for (other, view) in views.iter().enumerate() {
            let etypes = random.below(30) * random.below(2) + random.below(5);
            let at = match (shared, explicit) {
                (true, _) => common,
                (false, true) => random.below(60),
                (false, false) => pointers[other],
            };
            let memory = random_memory(random, &view.etype, etypes);
            let mut buffer = random.bytes(memory.length);
            let position = match (shared, explicit) {
                (true, _) => Position::Shared,
                (false, true) => Position::At(at as i64),
                (false, false) => Position::Individual,
            };
            let done = (other == rank).then(|| {
                let access_of = Access { write, position, collective };
                let mut used = buffer.clone();
                let before = model.clone();
                let bytes = access(file, access_of, &memory, &mut used, way);
                (used, bytes, before)
            });
            if shared {
                common += etypes;
            } else if !explicit {
                pointers[other] += etypes;
            }
            if shared && !collective {
                // This barrier fixes the order in which the ranks use the shared file pointer.
                file.communicator().barrier().expect("a barrier");
            }
            // Returns the index of the packed byte of the memory that is at byte `start + i` of the view.
            let in_file = |i: usize| i / order.len() * order.len() + order[i % order.len()];
            let start = (at * unit) as usize;
            if write {
                for i in 0..memory.offsets.len() {
                    let place = view.offset(start + i);
                    if model.len() <= place {
                        model.resize(place + 1, 0);
                    }
                    model[place] = buffer[memory.offsets[in_file(i)]];
                }
                if let Some((used, bytes, _)) = done {
                    assert_eq!(bytes, memory.offsets.len() as u64, "seed {seed}");
                    assert_eq!(used, buffer, "seed {seed}: a write changed memory");
                }
            } else if let Some((used, bytes, before)) = done {
                let all = memory.offsets.len();
                let count = (0..all).take_while(|i| view.offset(start + i) < before.len()).count();
                for i in 0..all {
                    let offset = memory.offsets[in_file(i)];
                    if i < count {
                        buffer[offset] = before[view.offset(start + i)];
                    } else if in_file(i) < count {
                        // The file ends in the middle of the number to which this byte belongs, so any value is right.
                        buffer[offset] = used[offset];
                    }
                }
                for i in (0..count).filter(|&i| in_file(i) >= count) {
                    buffer[memory.offsets[in_file(i)]] = used[memory.offsets[in_file(i)]];
                    buffer[memory.offsets[i]] = used[memory.offsets[i]];
                }
                // In external32, the library may leave out the bytes of a number that the end of the file cuts off.
                let number = if representation == "external32" { 3 } else { 0 };
                assert!(
                    (count.saturating_sub(number)..=count).contains(&(bytes as usize)),
                    "seed {seed}: {bytes}"
                );
                assert_eq!(used, buffer, "seed {seed}: data read");
            }
        }
        file.communicator().barrier().expect("a barrier");
        let found = std::fs::read(path).expect("the file");
        assert_eq!(found.len(), model.len(), "seed {seed}: size");
        assert!(found == *model, "seed {seed}: content");
        if shared {
            assert_eq!(file.position_shared().expect("a position"), common, "seed {seed}");
        } else if !explicit {
            assert_eq!(file.position().expect("a position"), pointers[rank]);
        }
        file.communicator().barrier().expect("a barrier");
    }
}

/// Runs random sequences with `TYPEPACK_IO` set to `method`. The variable `FILES_SEQUENCES` is the number of sequences;
/// without this variable, there are 120.
fn sequences(size: usize, name: &str, method: &str) {
    ranks_with(size, name, &[("TYPEPACK_IO", method)], |world| {
        let many = std::env::var("FILES_SEQUENCES").ok().and_then(|text| text.parse().ok());
        let path = path(world, name);
        let file = File::open(world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)
            .expect("a file");
        let mut model = Vec::new();
        for seed in 0..many.unwrap_or(120) {
            if seed % 10 == 0 {
                file.set_size(0).expect("empty");
                model.clear();
            }
            sequence(world, &file, &path, &mut model, seed * 1000 + size as u64);
        }
        file.close().expect("closed");
        assert!(!path.exists());
    });
}

#[test]
fn one_rank_agrees_with_the_model_mmap() {
    sequences(1, "one_rank_agrees_with_the_model_mmap", "mmap");
}

#[test]
fn two_ranks_agree_with_the_model_mmap() {
    sequences(2, "two_ranks_agree_with_the_model_mmap", "mmap");
}

#[test]
fn three_ranks_agree_with_the_model_mmap() {
    sequences(3, "three_ranks_agree_with_the_model_mmap", "mmap");
}

#[test]
fn five_ranks_agree_with_the_model_mmap() {
    sequences(5, "five_ranks_agree_with_the_model_mmap", "mmap");
}

#[test]
fn one_rank_agrees_with_the_model_pwrite() {
    sequences(1, "one_rank_agrees_with_the_model_pwrite", "pwrite");
}

#[test]
fn two_ranks_agree_with_the_model_pwrite() {
    sequences(2, "two_ranks_agree_with_the_model_pwrite", "pwrite");
}

#[test]
fn three_ranks_agree_with_the_model_pwrite() {
    sequences(3, "three_ranks_agree_with_the_model_pwrite", "pwrite");
}

#[test]
fn four_ranks_agree_with_the_model_auto() {
    sequences(4, "four_ranks_agree_with_the_model_auto", "auto");
}

#[test]
fn five_ranks_agree_with_the_model_pwrite() {
    sequences(5, "five_ranks_agree_with_the_model_pwrite", "pwrite");
}

#[test]
fn two_ranks_agree_with_the_model_auto() {
    sequences(2, "two_ranks_agree_with_the_model_auto", "auto");
}

/// Returns a random view whose filetype is in order and whose copies often are not: they lie between each other, overlap,
/// lie on top of each other, or go backwards. Also returns the number of etypes of its first filetypes, of which none
/// begins before the view.
fn view_of_copies(random: &mut Random) -> (View, u64) {
    let etype = Datatype::named([Named::I32, Named::U8][random.below(2) as usize]);
    let mut end = random.below(5) as i64;
    let places: Vec<i64> = (0..1 + random.below(12))
        .map(|_| {
            let place = end + [0, 3, 40, 9000][random.below(4) as usize] * random.below(2) as i64;
            end = place + etype.extent();
            place
        })
        .collect();
    let extent = match random.below(6) {
        0 => 0,
        1 => -(random.below(end as u64) as i64),
        2 => 1 + random.below(8) as i64,
        _ => random.below(end as u64 + 4) as i64,
    };
    let inside = Datatype::hindexed_block(1, &places, &etype).expect("a type");
    let filetype =
        Datatype::resized(random.below(20) as i64 - 10, extent, &inside).expect("a type");
    let tiles = (0..6).take_while(|tile| places[0] + tile * extent >= 0).count();
    let bytes = bytes_of(&filetype);
    let view = View { disp: random.below(50) as i64, etype, filetype, bytes };
    (view, (tiles * places.len()) as u64)
}

/// Compares accesses through views whose copies are in any order with the model: the content and the size of the file,
/// byte offsets, the end of the file in etypes, and reads of a file that ends anywhere.
fn copies(name: &str, method: &str) {
    ranks_with(1, name, &[("TYPEPACK_IO", method)], |world| {
        let path = path(world, name);
        let file = File::open(world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE);
        let file = file.expect("a file");
        for seed in 0..150 {
            let random = &mut Random(seed);
            let (view, all) = view_of_copies(random);
            let (unit, mut model) = (view.etype.size() as u64, Vec::new());
            let representation = ["native", "external32"][random.below(2) as usize];
            let order = order_in_file(&view.etype, representation);
            let in_file = |i: usize| i / order.len() * order.len() + order[i % order.len()];
            file.set_size(0).expect("empty");
            let set = file.set_view(Some(view.disp), &view.etype, &view.filetype, representation);
            set.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            file.set_atomic(random.below(2) == 0).expect("a mode");
            for _ in 0..4 {
                let at = random.below(all);
                let etypes = 1 + random.below(all - at);
                let memory = random_memory(random, &view.etype, etypes);
                let buffer = random.bytes(memory.length);
                let (collective, way) = (random.below(2) == 0, random.below(3));
                let position = Position::At(at as i64);
                let access_of = |write| Access { write, position, collective };
                let moved = access(&file, access_of(true), &memory, &mut buffer.clone(), way);
                assert_eq!(moved, etypes * unit, "seed {seed}");
                let start = (at * unit) as usize;
                for i in 0..moved as usize {
                    let place = view.offset(start + i);
                    model.resize(model.len().max(place + 1), 0);
                    model[place] = buffer[memory.offsets[in_file(i)]];
                }
                assert!(std::fs::read(&path).expect("the file") == model, "seed {seed}");
                assert_eq!(file.size().expect("a size"), model.len() as u64, "seed {seed}");
                let offset = file.byte_offset(at as i64).expect("an offset");
                assert_eq!(offset, view.offset(start) as u64, "seed {seed}");
                let mut back = vec![0; buffer.len()];
                assert_eq!(access(&file, access_of(false), &memory, &mut back, way), moved);
                for i in 0..moved as usize {
                    let found = back[memory.offsets[in_file(i)]];
                    assert_eq!(found, model[view.offset(start + i)], "seed {seed}");
                }
            }
            let size = model.len() as u64;
            for size in (0..=size).rev().step_by(1 + model.len() / 50) {
                file.set_size(size as i64).expect("a size");
                let listed = if view.filetype.extent() > 0 { 1 << 20 } else { all };
                let begins = |etype: u64| view.offset((etype * unit) as usize) as u64;
                match ((0..listed).find(|&etype| begins(etype) >= size), file.seek(0, Whence::End))
                {
                    (None, found) => assert!(found.is_err(), "seed {seed} size {size}"),
                    (Some(etype), found) => {
                        found.unwrap_or_else(|error| panic!("seed {seed} size {size}: {error}"));
                        assert_eq!(file.position().expect("a position"), etype, "seed {seed}");
                    }
                }
                if representation == "external32" {
                    continue;
                }
                let at = random.below(all);
                let mut back = vec![7u8; ((all - at) * unit) as usize];
                let read = file.read_at(at, &mut back).expect("read");
                let places = (0..back.len()).map(|i| view.offset((at * unit) as usize + i));
                let before: Vec<usize> =
                    places.take_while(|&place| place < size as usize).collect();
                assert_eq!(read, before.len(), "seed {seed} size {size} at {at}");
                assert!(back.iter().zip(&before).all(|(found, &place)| *found == model[place]));
            }
        }
        file.close().expect("closed");
    });
}

#[test]
fn copies_in_any_order_in_mapped_files() {
    copies("copies_in_any_order_in_mapped_files", "mmap");
}

#[test]
fn copies_in_any_order_by_calls() {
    copies("copies_in_any_order_by_calls", "pwrite");
}

#[test]
fn copies_in_any_order_with_a_free_choice() {
    copies("copies_in_any_order_with_a_free_choice", "auto");
}

#[test]
fn external32_in_mapped_files() {
    external32_by("mmap", "external32_in_mapped_files");
}

#[test]
fn external32_by_calls() {
    external32_by("pwrite", "external32_by_calls");
}

/// Tests accesses of more bytes than the library's buffers hold. The memory has gaps, and the accesses cross the end of
/// a mapped window.
fn large(name: &str, method: &str) {
    ranks_with(2, name, &[("TYPEPACK_IO", method)], |world| {
        use std::os::unix::fs::FileExt;
        const COUNT: usize = 3_000_000;
        let path = path(world, name);
        let file = File::open(world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)
            .expect("a file");
        let byte = Datatype::named(Named::U8);
        let piece = Datatype::contiguous(5000, &byte).expect("a type");
        let filetype = Datatype::resized(0, 10_000, &piece).expect("a type");
        let disp = (1 << 30) - 4_000_000 + 5000 * world.rank();
        file.set_view(Some(disp as i64), &byte, &filetype, "native").expect("a view");
        let gaps = commit(&Datatype::resized(0, 2, &byte).expect("a type")).expect("a plan");
        let data = Random(world.rank() as u64).bytes(2 * COUNT);
        let access = Access { write: true, position: Position::Individual, collective: true };
        for _ in 0..2 {
            file.seek(0, Whence::Set).expect("a position");
            file.write_as(access, &data, &gaps, COUNT as u64).expect("written");
        }
        world.barrier().expect("a barrier");
        let found = std::fs::File::open(&path).expect("the file");
        let mut bytes = vec![0; 5000];
        for at in 0..COUNT / 5000 {
            found.read_exact_at(&mut bytes, (disp + 10_000 * at) as u64).expect("a piece");
            assert!((0..5000).all(|i| bytes[i] == data[2 * (5000 * at + i)]), "piece {at}");
        }
        let mut back = vec![7u8; 2 * COUNT];
        file.seek(0, Whence::Set).expect("a position");
        assert_eq!(file.read_as(access, &mut back, &gaps, COUNT as u64).expect("read"), COUNT);
        assert!((0..COUNT).all(|i| back[2 * i] == data[2 * i] && back[2 * i + 1] == 7));
        file.close().expect("closed");
    });
}

#[test]
fn large_accesses_to_mapped_files() {
    large("large_accesses_to_mapped_files", "mmap");
}

#[test]
fn large_accesses_by_calls() {
    large("large_accesses_by_calls", "pwrite");
}

/// Checks that in atomic mode a rank never reads a mixture of two writes that other ranks make at the same time.
fn atomic(name: &str, method: &str) {
    ranks_with(3, name, &[("TYPEPACK_IO", method)], |world| {
        let path = path(world, name);
        let file = File::open(world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)
            .expect("a file");
        let byte = Datatype::named(Named::U8);
        // The copies of the second filetype lie between each other.
        let apart = Datatype::hindexed_block(1, &[0, 301], &byte).expect("a type");
        for inside in [&byte, &apart] {
            let filetype = Datatype::resized(0, 3, inside).expect("a type");
            file.set_view(Some(0), &byte, &filetype, "native").expect("a view");
            file.set_atomic(true).expect("a mode");
            let length = if method == "mmap" { 200_000 } else { 3_000 };
            file.write_at_all(0, &vec![9u8; length]).expect("written");
            for round in 0..60u8 {
                if world.rank() < 2 {
                    let data = vec![2 * round + world.rank() as u8; length];
                    file.write_at(0, &data).expect("written");
                } else {
                    let mut back = vec![0u8; length];
                    assert_eq!(file.read_at(0, &mut back).expect("read"), length);
                    assert!(back.iter().all(|byte| *byte == back[0]), "a mixture in round {round}");
                }
            }
            world.barrier().expect("a barrier");
            let mut back = vec![0u8; length];
            file.read_at(0, &mut back).expect("read");
            assert!(back.iter().all(|byte| *byte == back[0]));
            world.barrier().expect("a barrier");
        }
        file.close().expect("closed");
    });
}

#[test]
fn atomic_accesses_to_mapped_files_are_whole() {
    atomic("atomic_accesses_to_mapped_files_are_whole", "mmap");
}

#[test]
fn atomic_accesses_by_calls_are_whole() {
    atomic("atomic_accesses_by_calls_are_whole", "pwrite");
}

/// Tests external32: values are big-endian and can have another size than in memory, and a read ends at a whole
/// element.
fn external32_by(method: &str, name: &str) {
    ranks_with(2, name, &[("TYPEPACK_IO", method)], |world| {
        let path = path(world, "external32");
        let file = File::open(world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)
            .expect("a file");
        // A long has 8 bytes in memory and 4 in external32.
        let long = Datatype::named(Named::LONG);
        file.set_view(Some(3), &long, &long, "external32").expect("a view");
        assert_eq!(file.type_extent(&long).expect("an extent"), 4);
        assert_eq!(file.byte_offset(5).expect("an offset"), 3 + 20);
        let vector = Datatype::vector(500, 1, 2, &long).expect("a type");
        file.set_view(Some(3), &long, &vector, "external32").expect("a view");
        let plan = commit(&long).expect("a plan");
        let data: Vec<i64> = (0..700).map(|i| i * 1_000_003 % 2_000_000_000 - 5).collect();
        let access = Access { write: true, position: Position::At(0), collective: true };
        if world.rank() == 0 {
            file.write_as(access, &data, &plan, 700).expect("written");
        } else {
            file.write_as(access, &data[..0], &plan, 0).expect("written");
        }
        world.barrier().expect("a barrier");
        let found = std::fs::read(&path).expect("the file");
        // A filetype has 500 longs, at every other place.
        let offset = |i: usize| 3 + 4 * (i / 500 * 999 + i % 500 * 2);
        assert_eq!(found.len(), offset(699) + 4);
        for (i, &value) in data.iter().enumerate() {
            let at = offset(i);
            assert_eq!(found[at..at + 4], (value as i32).to_be_bytes(), "{i}");
        }
        let mut back = vec![0i64; 710];
        let read = file.read_as(access, &mut back, &plan, 710).expect("read");
        assert_eq!(read, 700 * 8);
        assert_eq!(back[..700], data);
        let large = [1i64 << 40];
        if world.rank() == 0 {
            let error = file.write_as(Access { collective: false, ..access }, &large, &plan, 1);
            let class = error.expect_err("too large").class();
            assert_eq!(class, typepack::ErrorClass::CONVERSION);
        }
        file.close().expect("closed");
    });
}

/// Tests accesses beyond 4 GiB, to a file with holes.
#[test]
fn positions_beyond_4_gib() {
    ranks(2, "positions_beyond_4_gib", |world| {
        let path = path(world, "beyond");
        let file = File::open(world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)
            .expect("a file");
        let (int, far) = (Datatype::named(Named::I32), (5i64 << 30) + 12 * world.rank() as i64);
        let filetype = Datatype::resized(0, 3 << 30, &int).expect("a type");
        file.set_view(Some(far), &int, &filetype, "native").expect("a view");
        assert_eq!(file.byte_offset(2).expect("an offset"), far as u64 + (6 << 30));
        let data = [world.rank() as i32 + 7, 9];
        file.write_at_all(1, &data).expect("written");
        file.communicator().barrier().expect("a barrier");
        assert_eq!(file.size().expect("a size"), (11 << 30) + 16);
        let mut back = [0i32; 3];
        assert_eq!(file.read_at(1, &mut back).expect("read"), 8);
        assert_eq!(back, [data[0], 9, 0]);
        file.seek(0, Whence::End).expect("a position");
        assert_eq!(file.position().expect("a position"), 3);
        file.close().expect("closed");
    });
}

/// Checks that a file that has been closed leaves nothing in the shared heaps. A large piece begins behind all others,
/// so each piece that is left moves its place. (The memory of the job still grows at first, by the messages of each call,
/// until the rings of all pairs of ranks have been used once.)
#[test]
fn closed_files_leave_nothing_in_shared_memory() {
    let name = "closed_files_leave_nothing_in_shared_memory";
    ranks(2, name, |world| {
        let path = path(world, name);
        let open_often = |times| {
            for _ in 0..times {
                let mode = Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE;
                File::open(world, &path, mode).expect("a file").close().expect("closed");
            }
        };
        let place = || {
            // Now all ranks have left all files.
            world.barrier().expect("a barrier");
            let region = typepack::SharedRegion::allocate(world, 8 << 20).expect("a region");
            let place = region.as_ptr(world.rank()).expect("an address") as usize;
            region.free().expect("freed");
            place
        };
        // The communicator gets the memory of its collective calls after a few of them.
        (0..40).for_each(|_| world.barrier().expect("a barrier"));
        open_often(20);
        let before = place();
        open_often(400);
        // The smallest piece has 64 bytes. A large piece begins anywhere in a page.
        let moved = place().saturating_sub(before);
        assert!(moved <= 4096, "a large piece has moved by {moved} bytes");
    });
}
