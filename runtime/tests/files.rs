//! Tests of files. Random sequences of accesses are compared with a model: the naive walk over the type maps,
//! on a vector of bytes. Faults are injected at every system call of an access.

mod job;

use job::{Random, body, is_rank, mpiexec, ranks, ranks_with, run, text};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use typepack::engine::typemap::typemap;
use typepack::io::{Access, File, Mode, Position, Whence};
use typepack::{
    Communicator, Datatype, ErrorKind, FileErrorKind, Named, Operation, Part, Plan, commit,
};
use typepack_job::sys::files::{self, Table};

/// Returns the path of a file of this job.
fn path(world: &Communicator, name: &str) -> PathBuf {
    let mut pid = [std::process::id()];
    world.broadcast_slice(&mut pid, 0).expect("a number");
    std::env::temp_dir().join(format!("typepack-{name}-{}", pid[0]))
}

/// Returns the displacements of all bytes of one element, in packed order.
fn bytes_of(ty: &Datatype) -> Vec<i64> {
    let entries = typemap(ty);
    entries.iter().flat_map(|e| (0..e.named.size() as i64).map(|b| e.offset + b)).collect()
}

/// A view: its displacement, its types, and the bytes of one filetype.
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
    // Cells of one period go to ranks at random; runs of cells are likely.
    let cells = (4 + random.below(40) as usize).max(ranks);
    let mut owner = 0;
    let owners: Vec<usize> = (0..cells)
        .map(|cell| {
            if cell < ranks {
                owner = cell;
            } else if random.below(3) == 0 {
                owner = random.below(ranks as u64 + 1) as usize; // the last owner is nobody
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

/// Memory: a plan, a count, and the offsets of the bytes in packed order, from byte `origin` of a buffer.
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
            // One element, in reverse order, with negative displacements.
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

/// Makes an access in a random way that fits its kind, and returns the number of bytes.
fn access(file: &File, access: Access, memory: &Memory, buffer: &mut [u8], way: u64) -> u64 {
    let origin = buffer.as_mut_ptr().wrapping_add(memory.origin);
    let part = Part { origin, plan: &memory.plan, count: memory.count };
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

/// One random sequence: a view, then several accesses of all ranks, each compared with the model.
fn sequence(world: &Communicator, file: &File, path: &PathBuf, model: &mut Vec<u8>, seed: u64) {
    let (rank, size) = (world.rank(), world.size());
    // All ranks draw the same numbers, so each knows what the others do.
    let random = &mut Random(seed);
    let views = random_views(random, size);
    let mine = &views[rank];
    file.set_view(Some(mine.disp), &mine.etype, &mine.filetype, "native").expect("a view");
    if random.below(4) == 0 {
        file.set_atomic(random.below(2) == 0).expect("a mode");
    }
    let unit = mine.etype.size() as u64;
    let mut pointers = vec![0u64; size];
    for _ in 0..6 {
        let write = random.below(2) == 0;
        let collective = random.below(2) == 0;
        let explicit = random.below(2) == 0;
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
            let at = if explicit { random.below(60) } else { pointers[other] };
            let memory = random_memory(random, &view.etype, etypes);
            let mut buffer = random.bytes(memory.length);
            let position = if explicit { Position::At(at as i64) } else { Position::Individual };
            let done = (other == rank).then(|| {
                let access_of = Access { write, position, collective };
                let mut used = buffer.clone();
                let before = model.clone();
                let bytes = access(file, access_of, &memory, &mut used, way);
                (used, bytes, before)
            });
            if !explicit {
                pointers[other] += etypes;
            }
            let start = (at * unit) as usize;
            if write {
                for (i, &offset) in memory.offsets.iter().enumerate() {
                    let place = view.offset(start + i);
                    if model.len() <= place {
                        model.resize(place + 1, 0);
                    }
                    model[place] = buffer[offset];
                }
                if let Some((used, bytes, _)) = done {
                    assert_eq!(bytes, memory.offsets.len() as u64, "seed {seed}");
                    assert_eq!(used, buffer, "seed {seed}: a write changed memory");
                }
            } else if let Some((used, bytes, before)) = done {
                let mut count = 0;
                for (i, &offset) in memory.offsets.iter().enumerate() {
                    let place = view.offset(start + i);
                    if place >= before.len() {
                        break;
                    }
                    buffer[offset] = before[place];
                    count += 1;
                }
                assert_eq!(bytes, count, "seed {seed}: bytes read");
                assert_eq!(used, buffer, "seed {seed}: data read");
            }
        }
        file.communicator().barrier().expect("a barrier");
        let found = std::fs::read(path).expect("the file");
        assert_eq!(found.len(), model.len(), "seed {seed}: size");
        assert!(found == *model, "seed {seed}: content");
        if !explicit {
            assert_eq!(file.position().expect("a position"), pointers[rank]);
        }
        file.communicator().barrier().expect("a barrier");
    }
}

/// Runs as many random sequences as `FILES_SEQUENCES` says, or 120, with this value of `TYPEPACK_IO`.
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
fn five_ranks_agree_with_the_model_pwrite() {
    sequences(5, "five_ranks_agree_with_the_model_pwrite", "pwrite");
}

#[test]
fn two_ranks_agree_with_the_model_auto() {
    sequences(2, "two_ranks_agree_with_the_model_auto", "auto");
}

// ---- faults ----

/// The number of transfers until the fault, the fault, and the number of transfers so far.
static UNTIL: AtomicU64 = AtomicU64::new(u64::MAX);
static FAULT: AtomicI32 = AtomicI32::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// A fault that makes transfers short instead of failing.
const SHORT: i32 = -1;

/// Returns the number of bytes that a transfer of `bytes` bytes may move now.
fn faulty(bytes: usize) -> std::io::Result<usize> {
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    if call != UNTIL.load(Ordering::Relaxed) {
        return Ok(bytes);
    }
    match FAULT.load(Ordering::Relaxed) {
        SHORT => Ok(bytes.div_ceil(2)),
        errno => Err(std::io::Error::from_raw_os_error(errno)),
    }
}

const FAULTY: Table = Table {
    // SAFETY: `faulty` returns at most its argument, so the real call gets a part of the caller's memory.
    pread: |fd, memory, bytes, at| unsafe { (Table::SYSTEM.pread)(fd, memory, faulty(bytes)?, at) },
    // SAFETY: as for reading, the real call gets a part of the caller's readable memory.
    pwrite: |fd, memory, bytes, at| unsafe {
        (Table::SYSTEM.pwrite)(fd, memory, faulty(bytes)?, at)
    },
    truncate: |fd, size| {
        faulty(1)?;
        (Table::SYSTEM.truncate)(fd, size)
    },
    allocate: |fd, at, bytes| {
        faulty(1)?;
        (Table::SYSTEM.allocate)(fd, at, bytes)
    },
    sync: |fd| {
        faulty(1)?;
        (Table::SYSTEM.sync)(fd)
    },
    ..Table::SYSTEM
};

/// The name of a call on a file, and the call. The call returns the number of bytes that this rank has moved.
type Call = (&'static str, fn(&File, &mut [u8]) -> typepack::Result<u64>);

fn started(file: &File, collective: bool, write: bool, data: &mut [u8]) -> typepack::Result<u64> {
    let byte = commit(&Datatype::named(Named::U8))?;
    let access = Access { write, position: Position::At(0), collective };
    let part = Part { origin: data.as_mut_ptr(), plan: &byte, count: data.len() as u64 };
    // SAFETY: `data` outlives the access, which is over when `finish` has returned, and nobody else uses it.
    let started = unsafe { file.start_raw(access, &part)? };
    let Operation::Pending(_) = started.operation else { panic!("no request") };
    Ok(file.communicator().messages().finish(started.operation)?.bytes)
}

const CALLED: [Call; 9] = [
    ("write_at", |file, data| file.write_at(0, data).map(|()| data.len() as u64)),
    ("write_at_all", |file, data| file.write_at_all(0, data).map(|()| data.len() as u64)),
    ("iwrite_at_all", |file, data| started(file, true, true, data)),
    ("read_at", |file, data| file.read_at(0, data).map(|bytes| bytes as u64)),
    ("read_at_all", |file, data| file.read_at_all(0, data).map(|bytes| bytes as u64)),
    ("iread_at", |file, data| started(file, false, false, data)),
    ("iread_at_all", |file, data| started(file, true, false, data)),
    ("preallocate", |file, _| file.preallocate(4096).map(|()| 0)),
    ("set_size", |file, _| file.set_size(4096).map(|()| 0)),
];

/// Injects each fault at each system call of each call on one rank after another. The ranks must agree on the
/// class of a collective call, no rank may hang, and afterwards everything must work.
fn faults(size: usize, name: &str) {
    // A mapped access makes no system call for each piece.
    ranks_with(size, name, &[("TYPEPACK_IO", "pwrite")], |world| {
        let path = path(world, name);
        let file = File::open(world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)
            .expect("a file");
        let byte = Datatype::named(Named::U8);
        let cells = Datatype::vector(3, 2, 100, &byte).expect("a type");
        let filetype = Datatype::resized(0, 300, &cells).expect("a type");
        let data: Vec<u8> = (0..12).map(|i| (world.rank() * 20 + i) as u8).collect();
        let disp = 2 * world.rank() as i64;
        file.set_view(Some(disp), &byte, &filetype, "native").expect("a view");
        file.write_at_all(0, &data).expect("written");
        // SAFETY: the functions of `FAULTY` pass parts of the caller's memory to the system calls.
        unsafe { files::replace(FAULTY) };
        let kinds = [
            (libc::ENOSPC, Some(FileErrorKind::NoSpace)),
            (libc::EIO, Some(FileErrorKind::Io)),
            (libc::EDQUOT, Some(FileErrorKind::Quota)),
            (libc::EFBIG, Some(FileErrorKind::Io)),
            (libc::EINTR, None),
            (SHORT, None),
        ];
        let mut matrix = 0;
        for (what, call) in CALLED {
            CALLS.store(0, Ordering::Relaxed);
            call(&file, &mut data.clone()).expect(what);
            world.barrier().expect("a barrier");
            let mut calls = [CALLS.load(Ordering::Relaxed) as i64];
            world.allreduce(&mut calls, typepack::Op::Max).expect("a number");
            assert!(calls[0] > 0, "{what} makes no system call");
            for victim in 0..size {
                for index in 0..calls[0] as u64 {
                    for (errno, class) in kinds {
                        let hit = world.rank() == victim;
                        let until = if hit { index } else { u64::MAX };
                        UNTIL.store(until, Ordering::Relaxed);
                        FAULT.store(errno, Ordering::Relaxed);
                        CALLS.store(0, Ordering::Relaxed);
                        let mut used = data.clone();
                        let result = call(&file, &mut used);
                        let reached = CALLS.load(Ordering::Relaxed) > until;
                        UNTIL.store(u64::MAX, Ordering::Relaxed);
                        let mut any = [i64::from(hit && reached)];
                        world.allreduce(&mut any, typepack::Op::Max).expect("a number");
                        let together = !matches!(what, "write_at" | "read_at" | "iread_at");
                        let struck = any[0] == 1 && (together || hit);
                        match class.filter(|_| struck) {
                            None => assert_eq!(used, data, "{what} {errno} {index}"),
                            Some(class) => {
                                let error = result.as_ref().expect_err("an error");
                                let kind = ErrorKind::File(class);
                                assert_eq!(error.kind(), kind, "{what} {errno} {index}: {error}");
                                if hit && what.contains("write") {
                                    // Each system call moves two bytes here, until the one that failed.
                                    let moved = error.received().expect("a status").bytes;
                                    assert_eq!(moved, 2 * index, "{what} {errno} {index}");
                                }
                            }
                        }
                        if class.is_none() {
                            result
                                .unwrap_or_else(|error| panic!("{what} {errno} {index}: {error}"));
                        }
                        matrix += 1;
                    }
                }
            }
        }
        // SAFETY: these are the system calls themselves.
        unsafe { files::replace(Table::SYSTEM) };
        assert!(matrix >= 9 * size * kinds.len());
        let mut back = vec![0; 12];
        assert_eq!(file.read_at_all(0, &mut back).expect("read"), 12);
        assert_eq!(back, data);
        file.close().expect("closed");
    });
}

#[test]
fn faults_of_one_rank() {
    faults(1, "faults_of_one_rank");
}

#[test]
fn faults_of_two_ranks() {
    faults(2, "faults_of_two_ranks");
}

#[test]
fn faults_of_three_ranks() {
    faults(3, "faults_of_three_ranks");
}

/// The size that `LYING` reports.
static SIZE: AtomicU64 = AtomicU64::new(0);

const LYING: Table = Table {
    stat: |fd| {
        let facts = (Table::SYSTEM.stat)(fd)?;
        Ok(files::Facts { size: SIZE.load(Ordering::Relaxed), ..facts })
    },
    // The pages of the file must be missing, so nothing may make them.
    reserve: |_, _, _| Ok(()),
    ..Table::SYSTEM
};

/// Another process truncates the file between the look at its size and the stores into its pages. The write
/// must arrive in full, by system calls, and a read must end where the file ends.
#[test]
fn a_truncated_mapping_loses_nothing() {
    ranks_with(1, "a_truncated_mapping_loses_nothing", &[("TYPEPACK_IO", "mmap")], |world| {
        let path = path(world, "truncated");
        let file = File::open(world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)
            .expect("a file");
        let byte = Datatype::named(Named::U8);
        let filetype = Datatype::resized(0, 2, &byte).expect("a type");
        file.set_view(Some(0), &byte, &filetype, "native").expect("a view");
        let data: Vec<u8> = (0..20_000).map(|i| (i * 7 + 1) as u8).collect();
        file.write_at(0, &data).expect("written");
        for length in [0, 5000, 30_000] {
            let other = std::fs::OpenOptions::new().write(true).open(&path).expect("the file");
            other.set_len(length).expect("shorter");
            SIZE.store(39_999, Ordering::Relaxed);
            // SAFETY: the functions of `LYING` are the system calls, or touch no memory.
            unsafe { files::replace(LYING) };
            let mut back = vec![0; data.len()];
            let read = file.read_at(0, &mut back).expect("read");
            file.write_at(0, &data).expect("written");
            // SAFETY: these are the system calls themselves.
            unsafe { files::replace(Table::SYSTEM) };
            assert_eq!(read as u64, length.div_ceil(2));
            assert_eq!(back[..read], data[..read]);
            let found = std::fs::read(&path).expect("the file");
            assert_eq!(found.len(), 39_999);
            assert!(data.iter().enumerate().all(|(i, &byte)| found[2 * i] == byte));
        }
        file.close().expect("closed");
    });
}

#[test]
fn external32_in_mapped_files() {
    external32_by("mmap", "external32_in_mapped_files");
}

#[test]
fn external32_by_calls() {
    external32_by("pwrite", "external32_by_calls");
}

/// Moves more than the library's buffers hold, from and to memory with gaps, over the end of a mapped window.
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

/// In atomic mode, ranks that write and read the same bytes at the same time see whole accesses.
fn atomic(name: &str, method: &str) {
    ranks_with(3, name, &[("TYPEPACK_IO", method)], |world| {
        let path = path(world, name);
        let file = File::open(world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)
            .expect("a file");
        let byte = Datatype::named(Named::U8);
        let filetype = Datatype::resized(0, 3, &byte).expect("a type");
        file.set_view(Some(0), &byte, &filetype, "native").expect("a view");
        file.set_atomic(true).expect("a mode");
        let length = if method == "mmap" { 200_000 } else { 3_000 };
        file.write_at_all(0, &vec![9u8; length]).expect("written");
        for round in 0..60u8 {
            if world.rank() < 2 {
                file.write_at(0, &vec![2 * round + world.rank() as u8; length]).expect("written");
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

const KILLING: Table = Table {
    pwrite: |_, _, _, _| {
        // SAFETY: `kill` accesses no memory of this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        Ok(0)
    },
    ..Table::SYSTEM
};

/// Rank 1 dies in a write, while it holds the lock of atomic mode. The other ranks can still write alone, and
/// get an error from collective calls.
#[test]
fn the_death_of_a_rank_hangs_nobody() {
    let name = "the_death_of_a_rank_hangs_nobody";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        let world = universe.world();
        if world.rank() != 1 {
            // This rank ignores SIGTERM, so that it has 200 ms before SIGKILL ends it.
            // SAFETY: SIG_IGN only makes the process ignore the signal and installs no handler.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        }
        let path = path(&world, name);
        let file = File::open(&world, &path, Mode::CREATE_READ_WRITE).expect("a file");
        file.set_atomic(true).expect("a mode");
        if world.rank() == 1 {
            // SAFETY: the function of `KILLING` touches no memory.
            unsafe { files::replace(KILLING) };
            file.write_at_all(0, &[1u8]).expect("this rank is dead");
        }
        std::fs::remove_file(&path).ok();
        file.write_at(1, &[2u8]).expect("written");
        let byte = commit(&Datatype::named(Named::U8)).expect("a plan");
        let part = Part { origin: std::ptr::null_mut(), plan: &byte, count: 0 };
        let access = Access { write: true, position: Position::At(0), collective: true };
        // SAFETY: `part` has no elements.
        let error = unsafe { file.access_raw(access, &part) }.expect_err("rank 1 takes no part");
        assert_eq!(error.kind(), ErrorKind::ProcAborted, "{error}");
        // SAFETY: `part` has no elements.
        let started = unsafe { file.start_raw(access, &part) };
        let error =
            started.and_then(|started| file.communicator().messages().finish(started.operation));
        assert_eq!(error.expect_err("no part").kind(), ErrorKind::ProcAborted);
        let error = file.close().expect_err("rank 1 takes no part");
        assert_eq!(error.kind(), ErrorKind::ProcAborted, "{error}");
        println!("told and written");
        std::process::exit(6);
    }
    let mut command = Command::new(mpiexec());
    command.args(["-n", "3"]).args(body(name));
    let output = run(command, name, &[]);
    assert!(!output.status.success());
    let text = text(&output);
    assert_eq!(text.matches("told and written").count(), 2, "{text}");
}

/// Values in external32 are big-endian and have sizes of their own, and a read ends at whole elements.
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
        // 500 longs at every other place, then the next filetype.
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

/// Writes behind 4 GiB: positions have 64 bits, and the file is sparse.
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
