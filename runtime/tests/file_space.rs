//! Tests of files without space: file systems that are full, also under a mapping, and limits for the sizes of files.
//! `file_faults.rs` has the tests of all other faults.

use crate::file_scene::{Scene, at, new_file, path, shared, started};
use crate::job::{body, is_rank, mpiexec, ranks_with, run, text};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use typepack::io::Whence;
use typepack::{Communicator, Datatype, ErrorKind, FileErrorKind, Named, commit};
use typepack_job::sys::files::{self, Table};
use typepack_test_support::skipped::skipped;

/// The number of bytes for which `FULL` has space.
static BUDGET: AtomicU64 = AtomicU64::new(0);

fn full() -> std::io::Error {
    std::io::Error::from_raw_os_error(libc::ENOSPC)
}

const FULL: Table = Table {
    pwrite: |fd, memory, bytes, at| {
        let bytes = bytes.min(BUDGET.load(Ordering::Relaxed) as usize);
        if bytes == 0 {
            return Err(full());
        }
        BUDGET.fetch_sub(bytes as u64, Ordering::Relaxed);
        // SAFETY: the real call gets a part of the caller's memory.
        unsafe { (Table::SYSTEM.pwrite)(fd, memory, bytes, at) }
    },
    reserve: |_, _, bytes| {
        if bytes > BUDGET.load(Ordering::Relaxed) { Err(full()) } else { Ok(()) }
    },
    ..Table::SYSTEM
};

/// Checks a write for which the file system has too little space: afterwards the file must end with the last byte that
/// the write has written.
#[test]
fn a_full_file_system_leaves_no_file_longer_than_its_data() {
    let name = "a_full_file_system_leaves_no_file_longer_than_its_data";
    ranks_with(1, name, &[("TYPEPACK_IO", "mmap")], |world| {
        let path = path(world, "short");
        let file = new_file(world, &path);
        let byte = Datatype::named(Named::U8);
        let filetype = Datatype::resized(0, 2, &byte).expect("a type");
        file.set_view(Some(0), &byte, &filetype, "native").expect("a view");
        BUDGET.store(100, Ordering::Relaxed);
        // SAFETY: the functions of `FULL` pass parts of the caller's memory to the system calls.
        unsafe { files::replace(FULL) };
        let error = file.write_at_all(0, &[1u8; 5000]).expect_err("no space");
        // SAFETY: these are the system calls themselves.
        unsafe { files::replace(Table::SYSTEM) };
        assert_eq!(error.kind(), ErrorKind::File(FileErrorKind::NoSpace), "{error}");
        assert_eq!(error.received().expect("a status").bytes, 100);
        assert_eq!(file.size().expect("a size"), 199);
        file.close().expect("closed");
    });
}

/// One way to write to the file: writes the bytes of its argument to the file, and returns the number of bytes written.
type Way<'a> = dyn Fn(&mut [u8]) -> typepack::Result<u64> + 'a;

/// Writes more than `limit` bytes by several calls. Every rank must get an error of kind `kind` and the number of bytes
/// that it has written, and no rank may get a signal.
fn overfull(world: &Communicator, name: &str, limit: u64, kind: FileErrorKind) {
    let (rank, size, path) = (world.rank(), world.size(), path(world, name));
    let byte = Datatype::named(Named::U8);
    let plan = commit(&byte).expect("a plan");
    for run in [1usize, 8, 4096] {
        let file = new_file(world, &path);
        let piece = Datatype::contiguous(run as i64, &byte).expect("a type");
        let filetype = Datatype::resized(0, (run * size) as i64, &piece).expect("a type");
        file.set_view(Some((run * rank) as i64), &byte, &filetype, "native").expect("a view");
        let mut data = vec![rank as u8 + 1; (2 * limit as usize / size).next_multiple_of(run)];
        let scene = Scene { world, file: &file, other: &path, byte: &plan };
        let ways: [&Way<'_>; 4] = [
            &|data| file.write_at_all(0, data).map(|()| 0),
            &|data| started(&scene, at(true, true), false, data),
            &|data| started(&scene, shared(true, true), true, data),
            &|data| file.write_at(0, data).map(|()| 0),
        ];
        // With pieces of 1 byte and without mappings, each byte would need its own system call, and the test would take
        // minutes.
        if run == 1 && std::env::var("TYPEPACK_IO").is_ok_and(|method| method == "pwrite") {
            continue;
        }
        // Each piece of 4096 bytes has its own page. So one rank may succeed even if another rank finds no space.
        let own_pages = run == 4096;
        for (way, write) in ways.iter().enumerate() {
            if way == 3 && own_pages {
                continue;
            }
            let what = format!("way {way}, pieces of {run} bytes");
            let error = write(&mut data).expect_err(&what);
            assert_eq!(error.kind(), ErrorKind::File(kind), "{what}: {error}");
            let written = error.received().expect("a status").bytes as usize;
            assert!(written < data.len() + usize::from(own_pages), "{what}");
            world.barrier().expect("a barrier");
            let found = std::fs::read(&path).expect("the file");
            // If each piece has its own page, or if the data of one rank follows that of another (way 2), the file may
            // have holes, and so may be longer than the limit.
            let holes = own_pages || way == 2;
            assert!(holes || found.len() as u64 <= limit, "{what}: {} bytes", found.len());
            if way != 2 {
                // In way 2 each rank writes at its own position of the shared file pointer, so this formula does not
                // hold.
                let place = |at: usize| found[run * (rank + at / run * size) + at % run];
                assert!((0..written).all(|at| place(at) == rank as u8 + 1), "{what}");
            }
            world.barrier().expect("a barrier");
            file.set_size(0).expect("empty");
        }
        let error = file.preallocate(2 * limit as i64).expect_err("no space");
        assert_eq!(error.kind(), ErrorKind::File(kind), "{error}");
        file.set_size(0).expect("empty");
        file.seek_shared(0, Whence::Set).expect("a position");
        file.write_at_all(0, &data[..run]).expect("written");
        file.close().expect("closed");
    }
}

/// The size of the tmpfs of tests.
const LIMIT: u64 = 256 << 10;

/// Runs `as_rank` as ranks whose files are on a small tmpfs.
fn on_tmpfs(size: usize, name: &str, method: &str, as_rank: impl FnOnce(&Communicator)) {
    if is_rank() {
        ranks_with(size, name, &[], as_rank);
        return;
    }
    let may = Command::new("unshare").args(["-m", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    if !may.as_ref().is_ok_and(|output| output.status.success()) {
        let why = may.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        skipped(format_args!("no tmpfs can be mounted: {why}"));
        return;
    }
    let script = format!("mount -t tmpfs -o size={LIMIT} none /mnt; exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", &script, "sh"]).arg(mpiexec());
    command.args(["-n", &size.to_string()]).args(body(name));
    let output = run(command, name, &[("FAULTS_FOLDER", "/mnt"), ("TYPEPACK_IO", method)]);
    assert!(output.status.success(), "{name}: {}\n{}", output.status, text(&output));
    assert_eq!(text(&output).matches("1 passed").count(), size, "{}", text(&output));
}

/// The file system of these ranks is a small tmpfs.
fn really_full(size: usize, name: &str, method: &str) {
    on_tmpfs(size, name, method, |world| overfull(world, name, LIMIT, FileErrorKind::NoSpace));
}

/// A file system that promises space that it does not have, like one that copies pages when they are written.
const PROMISING: Table =
    Table { reserve: |_, _, _| Ok(()), hole: |_, _| Ok(i64::MAX as u64), ..Table::SYSTEM };

/// The space ends under a mapping: a store into a page raises SIGBUS. Every rank gets the error, and the number of bytes
/// that it has written.
fn full_under_a_mapping(size: usize, name: &str) {
    on_tmpfs(size, name, "mmap", |world| {
        let (rank, path) = (world.rank(), path(world, name));
        let byte = Datatype::named(Named::U8);
        let plan = commit(&byte).expect("a plan");
        let file = new_file(world, &path);
        let filetype = Datatype::resized(
            0,
            16 * size as i64,
            &Datatype::contiguous(16, &byte).expect("a type"),
        );
        let filetype = filetype.expect("a type");
        file.set_view(Some(16 * rank as i64), &byte, &filetype, "native").expect("a view");
        let mut data = vec![rank as u8 + 1; 2 * LIMIT as usize / size];
        let scene = Scene { world, file: &file, other: &path, byte: &plan };
        let ways: [&Way<'_>; 3] = [
            &|data| file.write_at_all(0, data).map(|()| 0),
            &|data| started(&scene, at(true, true), false, data),
            &|data| file.write_at(0, data).map(|()| 0),
        ];
        for (way, write) in ways.iter().enumerate() {
            // SAFETY: the functions of `PROMISING` are the system calls, or touch no memory.
            unsafe { files::replace(PROMISING) };
            world.barrier().expect("a barrier");
            let error = write(&mut data).expect_err("no space");
            // SAFETY: these are the system calls themselves.
            unsafe { files::replace(Table::SYSTEM) };
            assert_eq!(error.kind(), ErrorKind::File(FileErrorKind::NoSpace), "way {way}: {error}");
            let written = error.received().expect("a status").bytes as usize;
            assert!(written < data.len(), "way {way}");
            world.barrier().expect("a barrier");
            let found = std::fs::read(&path).expect("the file");
            let place = |at: usize| found[16 * (rank + at / 16 * size) + at % 16];
            assert!((0..written).all(|at| place(at) == rank as u8 + 1), "way {way}");
            world.barrier().expect("a barrier");
            file.set_size(0).expect("empty");
            file.write_at_all(0, &data[..1000]).expect("written");
            let mut back = [0; 1000];
            assert_eq!(file.read_at_all(0, &mut back).expect("read"), 1000);
            assert_eq!(back[..], data[..1000]);
            file.set_size(0).expect("empty");
        }
        file.close().expect("closed");
    });
}

#[test]
fn no_space_under_a_mapping_is_an_error_of_one_rank() {
    full_under_a_mapping(1, "no_space_under_a_mapping_is_an_error_of_one_rank");
}

#[test]
fn no_space_under_a_mapping_is_an_error_of_two_ranks() {
    full_under_a_mapping(2, "no_space_under_a_mapping_is_an_error_of_two_ranks");
}

#[test]
fn no_space_under_a_mapping_is_an_error_of_three_ranks() {
    full_under_a_mapping(3, "no_space_under_a_mapping_is_an_error_of_three_ranks");
}

#[test]
fn a_full_tmpfs_is_an_error_of_one_rank() {
    really_full(1, "a_full_tmpfs_is_an_error_of_one_rank", "mmap");
}

#[test]
fn a_full_tmpfs_is_an_error_of_two_ranks() {
    really_full(2, "a_full_tmpfs_is_an_error_of_two_ranks", "auto");
}

#[test]
fn a_full_tmpfs_is_an_error_of_three_ranks() {
    really_full(3, "a_full_tmpfs_is_an_error_of_three_ranks", "pwrite");
}

/// Runs [`overfull`] on `size` ranks that may not make files longer than 100,000 bytes.
fn limited(size: usize, name: &str, method: &str) {
    const LONGEST: u64 = 100_000;
    ranks_with(size, name, &[("TYPEPACK_IO", method)], |world| {
        let limit = libc::rlimit { rlim_cur: LONGEST, rlim_max: LONGEST };
        // SAFETY: the call reads `limit`, which outlives the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
        overfull(world, name, LONGEST, FileErrorKind::Io);
    });
}

#[test]
fn a_limit_for_files_is_an_error_of_mapped_writes() {
    limited(2, "a_limit_for_files_is_an_error_of_mapped_writes", "mmap");
}

#[test]
fn a_limit_for_files_is_an_error_of_calls() {
    limited(3, "a_limit_for_files_is_an_error_of_calls", "pwrite");
}
