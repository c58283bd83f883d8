//! Tests of what the ranks of a file agree on before they act: positions of the shared file pointer, and arguments of
//! collective writes. Also tests of the order of accesses to streams, and of the death of a rank.

use crate::file_scene::{new_file, path};
use crate::job::{body, is_rank, mpiexec, ranks, ranks_with, run, text};
use std::ffi::CString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use typepack::engine::Elements;
use typepack::io::{
    Access, File, Mode, Position, Started, UserRepresentation, Whence, register_representation,
};
use typepack::{
    Communicator, Datatype, Error, ErrorClass, ErrorKind, FileErrorKind, Named, Plan, Source, Tag,
    commit,
};
use typepack_job::sys::files::{self, FileKind, Table};
use typepack_job::sys::signal;

/// The error class for an offset beyond the last position that a file can have.
const TOO_FAR: ErrorClass = ErrorClass::VALUE_TOO_LARGE;

const DENIED: Table =
    Table { open: |_, _, _| Err(std::io::Error::from_raw_os_error(libc::EACCES)), ..Table::SYSTEM };

fn real_calls() {
    // SAFETY: `SYSTEM` has the real calls, which keep their promises.
    unsafe { files::replace(Table::SYSTEM) };
}

/// Checks that a call that opens a file and fails leaves no new file behind.
fn nothing_is_made(size: usize, name: &str) {
    ranks(size, name, |world| {
        let folder = path(world, name);
        let rank = world.rank();
        if rank == 0 {
            std::fs::create_dir(&folder).expect("a folder");
            std::os::unix::fs::symlink("made", folder.join("link")).expect("a link");
        }
        world.barrier().expect("a barrier");
        let names = || {
            world.barrier().expect("a barrier");
            let files = std::fs::read_dir(&folder).expect("a folder").count();
            world.barrier().expect("a barrier");
            files
        };
        let create = Mode::CREATE_READ_WRITE;
        for mode in [create, create | Mode::EXCLUSIVE] {
            for odd in 0..size {
                // One rank names another file.
                let own = folder.join(if rank == odd { "other" } else { "file" });
                let error = File::open(world, own, mode).expect_err("different names");
                assert_eq!(error.kind(), ErrorKind::File(FileErrorKind::NotSame), "{error}");
                assert_eq!(names(), 1);
                // One rank cannot open the file.
                if rank == odd {
                    // SAFETY: the function of `DENIED` touches no memory.
                    unsafe { files::replace(DENIED) };
                }
                let error = File::open(world, folder.join("file"), mode).expect_err("denied");
                real_calls();
                assert_eq!(error.kind(), ErrorKind::File(FileErrorKind::Access), "{error}");
                assert_eq!(names(), 1);
            }
        }
        // Different names of one file are no error, whether the file exists or not.
        for round in 0..2 {
            let own = [folder.join("made"), folder.join("link"), folder.join("./made")];
            let file = File::open(world, &own[rank % 3], create).expect("a file");
            file.write_at_all(rank as u64, &[rank as u8 + 1]).expect("written");
            file.close().expect("closed");
            assert_eq!(names(), 2 + round);
            if round == 0 && rank == 0 {
                std::fs::hard_link(folder.join("made"), folder.join("hard")).expect("a link");
            }
            world.barrier().expect("a barrier");
        }
        let own = folder.join(if rank == 0 { "hard" } else { "made" });
        File::open(world, own, create).expect("a file").close().expect("closed");
        // A file that existed before a failed open stays, with its data.
        if rank + 1 == size {
            // SAFETY: the function of `DENIED` touches no memory.
            unsafe { files::replace(DENIED) };
        }
        File::open(world, folder.join("made"), create).expect_err("denied");
        real_calls();
        let found = std::fs::read(folder.join("made")).expect("the file");
        assert_eq!(found, (1..=size as u8).collect::<Vec<_>>());
        world.barrier().expect("a barrier");
        if rank == 0 {
            std::fs::remove_dir_all(&folder).expect("removed");
        }
    });
}

#[test]
fn two_ranks_that_fail_to_open_a_file_make_none() {
    nothing_is_made(2, "two_ranks_that_fail_to_open_a_file_make_none");
}

#[test]
fn three_ranks_that_fail_to_open_a_file_make_none() {
    nothing_is_made(3, "three_ranks_that_fail_to_open_a_file_make_none");
}

/// Checks that collective calls read the shared file pointer and the size of the file only after all ranks have made
/// the call. The last rank changes the pointer or the size just before it makes the call.
#[test]
fn the_shared_pointer_is_read_when_all_ranks_have_come() {
    ranks(3, "the_shared_pointer_is_read_when_all_ranks_have_come", |world| {
        let path = path(world, "late");
        let file = new_file(world, &path);
        let late = world.rank() == 2;
        let wait = || std::thread::sleep(Duration::from_millis(100));
        if late {
            wait();
            file.write_shared(&[1u8; 10]).expect("written");
        }
        file.seek_shared(5, Whence::Current).expect("a position");
        assert_eq!(file.position_shared().expect("a position"), 15);
        world.barrier().expect("a barrier");
        if late {
            wait();
            file.write_at(99, &[1u8]).expect("written");
        }
        file.seek_shared(-1, Whence::End).expect("a position");
        assert_eq!(file.position_shared().expect("a position"), 99);
        world.barrier().expect("a barrier");
        let error = file.seek_shared(-101, Whence::End).expect_err("a negative position");
        assert_eq!(error.class(), ErrorClass::ARG, "{error}");
        file.close().expect("closed");
    });
}

#[test]
fn a_view_from_the_current_position_begins_there() {
    ranks(2, "a_view_from_the_current_position_begins_there", |world| {
        let path = path(world, "current");
        let mode = Mode::CREATE | Mode::WRITE_ONLY | Mode::DELETE_ON_CLOSE | Mode::SEQUENTIAL;
        let file = File::open(world, &path, mode).expect("a file");
        let byte = Datatype::named(Named::U8);
        if world.rank() == 1 {
            std::thread::sleep(Duration::from_millis(100));
            file.write_shared(&[1u8; 7]).expect("written");
        }
        file.set_view(None, &byte, &byte, "native").expect("a view");
        assert_eq!(file.view().displacement(), 7);
        world.barrier().expect("a barrier");
        // If one rank passes a wrong argument, all ranks must get an error, and the view must not change.
        let displacement = (world.rank() == 0).then_some(3);
        let error = file.set_view(displacement, &byte, &byte, "native").expect_err("no position");
        assert_eq!(error.class(), ErrorClass::ARG, "{error}");
        assert_eq!(file.view().displacement(), 7);
        file.close().expect("closed");
    });
}

/// How a collective access is made.
#[derive(Clone, Copy, Debug)]
enum Way {
    Blocking,
    Nonblocking,
    Split,
}

fn collective_write(
    file: &File,
    position: Position,
    way: Way,
    data: &mut [u8],
    plan: &Plan,
    count: u64,
) -> typepack::Result<u64> {
    let access = Access { write: true, position, collective: true };
    let part = Elements { origin: data.as_mut_ptr(), plan, count };
    // SAFETY: `data` holds the elements, outlives the access, and nobody else uses it.
    unsafe {
        match way {
            Way::Blocking => file.access_raw(access, &part).map(|status| status.bytes),
            Way::Nonblocking => {
                let Started { operation, .. } = file.start_raw(access, &part)?;
                let messages = file.communicator().messages();
                messages.finish(operation).map(|status| status.bytes)
            }
            Way::Split => {
                file.begin_raw(access, &part)?;
                file.end(access, part.origin as usize).map(|status| status.bytes)
            }
        }
    }
}

/// Checks that no rank writes if one rank passes a wrong argument.
fn refused_together(size: usize, name: &str, method: &str) {
    ranks_with(size, name, &[("TYPEPACK_IO", method)], |world| {
        let path = path(world, name);
        let file = new_file(world, &path);
        let (rank, short) = (world.rank() as i64, Datatype::named(Named::I16));
        let view = Datatype::resized(0, 4 * size as i64, &short).expect("a type");
        file.set_view(Some(2 * rank), &short, &view, "native").expect("a view");
        file.write_at_all(0, &[7u8; 20]).expect("written");
        world.barrier().expect("a barrier");
        let before = std::fs::read(&path).expect("the file");
        let byte = commit(&Datatype::named(Named::U8)).expect("a plan");
        for way in [Way::Blocking, Way::Nonblocking, Way::Split] {
            for wrong in 0..size {
                let own = wrong == world.rank();
                let refusals = [
                    // The etype has 2 bytes, so 3 bytes are not a whole number of etypes.
                    (Position::At(0), if own { 3 } else { 4 }, ErrorClass::TYPE),
                    (Position::Individual, if own { 3 } else { 4 }, ErrorClass::TYPE),
                    (Position::Shared, if own { 3 } else { 4 }, ErrorClass::TYPE),
                    (Position::At(if own { -1 } else { 0 }), 4, ErrorClass::ARG),
                    (Position::At(if own { i64::MAX / 2 } else { 0 }), 4, TOO_FAR),
                ];
                for (position, count, class) in refusals {
                    let what = format!("{way:?} {position:?} {count}");
                    let mut data = [9u8; 4];
                    let error = collective_write(&file, position, way, &mut data, &byte, count)
                        .expect_err(&what);
                    assert_eq!(error.class(), class, "{what}: {error}");
                    world.barrier().expect("a barrier");
                    assert_eq!(std::fs::read(&path).expect("the file"), before, "{what}");
                    assert_eq!(file.position_shared().expect("a position"), 0, "{what}");
                    if matches!(way, Way::Blocking) {
                        assert_eq!(file.position().expect("a position"), 0, "{what}");
                    } else {
                        file.seek(0, Whence::Set).expect("a position");
                    }
                    world.barrier().expect("a barrier");
                }
            }
            // The file must work as before.
            let mut data = [7u8; 4];
            let written = collective_write(&file, Position::At(0), way, &mut data, &byte, 4);
            assert_eq!(written.expect("written"), 4);
        }
        file.close().expect("closed");
    });
}

#[test]
fn a_wrong_argument_keeps_two_ranks_from_mapped_writes() {
    refused_together(2, "a_wrong_argument_keeps_two_ranks_from_mapped_writes", "mmap");
}

#[test]
fn a_wrong_argument_keeps_three_ranks_from_writes_by_calls() {
    refused_together(3, "a_wrong_argument_keeps_three_ranks_from_writes_by_calls", "pwrite");
}

/// Checks that an access at the shared file pointer does not move the pointer if the access is refused because it goes
/// beyond the last position that a file can have.
#[test]
fn a_refused_access_does_not_move_the_shared_pointer() {
    ranks(3, "a_refused_access_does_not_move_the_shared_pointer", |world| {
        let path = path(world, "refused");
        let file = new_file(world, &path);
        let byte = Datatype::named(Named::U8);
        let far = Datatype::resized(0, 1 << 61, &byte).expect("a type");
        file.set_view(Some(1 << 61), &byte, &far, "native").expect("a view");
        let plan = commit(&byte).expect("a plan");
        let mut data = [1u8; 4];
        let mut refused = |write, collective, count| {
            let access = Access { write, position: Position::Shared, collective };
            let part = Elements { origin: data.as_mut_ptr(), plan: &plan, count };
            // SAFETY: the access is refused before it uses memory.
            let error = unsafe { file.access_raw(access, &part) }.expect_err("too far");
            assert!([ErrorClass::ARG, TOO_FAR].contains(&error.class()), "{error}");
            world.barrier().expect("a barrier");
            assert_eq!(file.position_shared().expect("a position"), 0);
            world.barrier().expect("a barrier");
        };
        for write in [true, false] {
            refused(write, false, 4);
            // One rank alone could make this access, but all ranks together go too far.
            refused(write, true, 2);
            // The sum of the counts of all ranks does not fit in 63 bits.
            file.set_view(Some(0), &byte, &byte, "native").expect("a view");
            refused(write, true, 1 << 62);
            file.set_view(Some(1 << 61), &byte, &far, "native").expect("a view");
        }
        file.set_view(Some(0), &byte, &byte, "native").expect("a view");
        file.seek_shared(i64::MAX - 1, Whence::Set).expect("a position");
        let error = file.write_shared(&[1u8; 4]).expect_err("too far");
        assert!([ErrorClass::ARG, TOO_FAR].contains(&error.class()), "{error}");
        world.barrier().expect("a barrier");
        assert_eq!(file.position_shared().expect("a position"), i64::MAX as u64 - 1);
        file.close().expect("closed");
    });
}

fn make_fifo(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
    // SAFETY: `name` is a text that ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0, "mkfifo");
}

fn start(file: &File, write: bool, data: &mut [u8], plan: &Plan) -> Started {
    let access = Access { write, position: Position::Shared, collective: false };
    let part = Elements { origin: data.as_mut_ptr(), plan, count: data.len() as u64 };
    // SAFETY: the callers complete the access while `data` lives, and use `data` only afterwards.
    unsafe { file.start_raw(access, &part) }.expect("started")
}

/// Completes an access and returns the number of bytes.
fn finish(world: &Communicator, started: Started) -> typepack::Result<u64> {
    Ok(world.messages().finish(started.operation)?.bytes)
}

/// Checks that a rank makes progress while it waits in the opening of a stream for a process that opens the other end.
/// Here this process is another rank, which first sends a message that only moves if the waiting rank makes progress.
#[test]
fn a_rank_that_opens_a_stream_makes_progress() {
    let name = "a_rank_that_opens_a_stream_makes_progress";
    ranks_with(2, name, &[("TYPEPACK_TRANSPORT", "pipeline")], |world| {
        const LENGTH: usize = 8 << 20;
        let (rank, other, messages) = (world.rank(), 1 - world.rank(), world.messages());
        let alone = world.split(Some(rank as u32), 0).expect("a communicator").expect("a member");
        let byte = commit(&Datatype::named(Named::U8)).expect("a plan");
        let path = path(world, "waits");
        for first in [0, 1, 0, 1] {
            if rank == 0 {
                make_fifo(&path);
            }
            world.barrier().expect("a barrier");
            // Rank 0 reads the stream, and rank 1 writes it.
            let mode = if rank == 0 { Mode::READ_ONLY } else { Mode::WRITE_ONLY };
            let open = || File::open(&alone, &path, mode).expect("a file");
            let file = if rank == first {
                let mut data = vec![0u8; LENGTH];
                let to = data.as_mut_ptr();
                // SAFETY: `data` lives until `finish` has completed the receive, and no other code accesses it before.
                let receive = unsafe {
                    messages.receive(
                        Elements::new(to, &byte, LENGTH as u64),
                        Source::Rank(other),
                        Tag::Any,
                    )
                };
                let file = open();
                messages.finish(receive.expect("started")).expect("received");
                assert!(data.iter().all(|&byte| byte == 7));
                file
            } else {
                world
                    .send_elements(&vec![7u8; LENGTH], &byte, LENGTH as u64, other, 0)
                    .expect("sent");
                open()
            };
            if rank == 0 {
                let mut back = [0u8; 4];
                assert_eq!(file.read_shared(&mut back).expect("read"), 3);
                assert_eq!(back, [1, 2, 3, 0]);
            } else {
                file.write_shared(&[1u8, 2, 3]).expect("written");
            }
            file.close().expect("closed");
            world.barrier().expect("a barrier");
            if rank == 0 {
                std::fs::remove_file(&path).expect("removed");
            }
        }
    });
}

/// Checks that nonblocking writes to a stream, and a blocking write after them, arrive in the order in which the
/// program started them.
#[test]
fn nonblocking_writes_to_a_stream_keep_their_order() {
    ranks(1, "nonblocking_writes_to_a_stream_keep_their_order", |world| {
        const LENGTH: usize = 100_000; // more than a pipe holds
        let path = path(world, "fifo");
        make_fifo(&path);
        let reader = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut found = Vec::new();
                let mut file = std::fs::File::open(path).expect("the stream");
                file.read_to_end(&mut found).expect("the data");
                found
            }
        });
        let file = File::open(world, &path, Mode::WRITE_ONLY).expect("a file");
        let byte = commit(&Datatype::named(Named::U8)).expect("a plan");
        let mut data: Vec<Vec<u8>> = (0..30).map(|at| vec![at; LENGTH]).collect();
        let started: Vec<Started> =
            data.iter_mut().map(|data| start(&file, true, data, &byte)).collect();
        // This write is collective, so its ranks agree before it starts. It must still keep its place in the order.
        let mut last = [30u8; LENGTH];
        let access = Access { write: true, position: Position::At(0), collective: true };
        let part = Elements { origin: last.as_mut_ptr(), plan: &byte, count: LENGTH as u64 };
        // SAFETY: the access is complete before `last` goes.
        let together = unsafe { file.start_raw(access, &part) }.expect("started");
        file.write_shared(&[31u8; LENGTH]).expect("written");
        for started in started.into_iter().chain([together]) {
            assert_eq!(finish(world, started).expect("complete"), LENGTH as u64);
        }
        file.close().expect("closed");
        let found = reader.join().expect("the reader");
        assert_eq!(found.len(), 32 * LENGTH);
        let wrong = found.iter().enumerate().find(|&(at, &byte)| byte as usize != at / LENGTH);
        assert_eq!(wrong, None, "the data are in another order");
        std::fs::remove_file(path).expect("removed");
    });
}

/// Checks that reads that wait for data of streams hold up neither an access to a regular file nor writes to the same
/// streams.
#[test]
fn reads_of_empty_streams_stop_nothing_else() {
    ranks(1, "reads_of_empty_streams_stop_nothing_else", |world| {
        let byte = commit(&Datatype::named(Named::U8)).expect("a plan");
        let paths: Vec<PathBuf> = (0..3).map(|at| path(world, &format!("empty-{at}"))).collect();
        let open = |path: &PathBuf| {
            make_fifo(path);
            File::open(world, path, Mode::READ_WRITE).expect("a file")
        };
        let streams: Vec<File> = paths.iter().map(open).collect();
        let mut back = [[0u8; 2]; 6];
        let mut reads = Vec::new();
        for (at, data) in back.iter_mut().enumerate() {
            reads.push(start(&streams[at % 3], false, data, &byte));
        }
        let regular = path(world, "regular");
        let file = new_file(world, &regular);
        let mut fives = [5u8; 9];
        let started = start(&file, true, &mut fives, &byte);
        assert_eq!(finish(world, started).expect("complete"), 9);
        for (at, stream) in streams.iter().enumerate() {
            let mut data = [at as u8, 10, at as u8, 20];
            if at == 0 {
                let started = start(stream, true, &mut data, &byte);
                finish(world, started).expect("complete");
            } else {
                stream.write_shared(&data).expect("written");
            }
        }
        for read in reads {
            assert_eq!(finish(world, read).expect("complete"), 2);
        }
        assert_eq!(back, [[0, 10], [1, 10], [2, 10], [0, 20], [1, 20], [2, 20]]);
        for file in streams.into_iter().chain([file]) {
            file.close().expect("closed");
        }
        paths.iter().for_each(|path| std::fs::remove_file(path).expect("removed"));
    });
}

/// Checks that a write to a stream that nobody reads returns an error, and that SIGPIPE does not end the process.
#[test]
fn a_stream_without_a_reader_is_an_error() {
    ranks(1, "a_stream_without_a_reader_is_an_error", |world| {
        // Restore the default action of SIGPIPE, which ends the process. The Rust runtime ignores the signal, but a
        // program in C does not.
        signal::restore(libc::SIGPIPE);
        let path = path(world, "closed");
        make_fifo(&path);
        let reader = std::thread::spawn({
            let path = path.clone();
            move || drop(std::fs::File::open(path).expect("the stream"))
        });
        let file = File::open(world, &path, Mode::WRITE_ONLY).expect("a file");
        reader.join().expect("the reader");
        let error = file.write_shared(&[1u8; 10]).expect_err("no reader");
        assert_eq!(error.kind(), ErrorKind::File(FileErrorKind::Io), "{error}");
        assert_eq!(error.received().expect("a status").bytes, 0);
        let byte = commit(&Datatype::named(Named::U8)).expect("a plan");
        let mut ones = [1u8; 10];
        let started = start(&file, true, &mut ones, &byte);
        let error = finish(world, started).expect_err("no reader");
        assert_eq!(error.kind(), ErrorKind::File(FileErrorKind::Io), "{error}");
        file.close().expect("closed");
        std::fs::remove_file(path).expect("removed");
        std::io::stdout().flush().expect("output");
    });
}

static WRITES: AtomicU64 = AtomicU64::new(0);

const DEVICE: Table = Table {
    stat: |fd| {
        let facts = (Table::SYSTEM.stat)(fd)?;
        Ok(files::Facts { kind: FileKind::Block, ..facts })
    },
    // SAFETY: the real call gets the caller's memory.
    pwrite: |fd, memory, bytes, at| unsafe {
        WRITES.fetch_add(1, Ordering::Relaxed);
        (Table::SYSTEM.pwrite)(fd, memory, bytes, at)
    },
    map: |_, _, _, _| panic!("a device is not mapped"),
    ..Table::SYSTEM
};

/// Checks that the library does not map a block device, which cannot grow.
#[test]
fn block_devices_are_not_mapped() {
    ranks_with(1, "block_devices_are_not_mapped", &[("TYPEPACK_IO", "mmap")], |world| {
        let path = path(world, "device");
        // SAFETY: the functions of `DEVICE` pass the caller's memory to the system calls.
        unsafe { files::replace(DEVICE) };
        let file = new_file(world, &path);
        let byte = Datatype::named(Named::U8);
        let view = Datatype::resized(0, 2, &byte).expect("a type");
        file.set_view(Some(0), &byte, &view, "native").expect("a view");
        file.write_at(0, &[1u8; 5]).expect("written");
        assert_eq!(WRITES.load(Ordering::Relaxed), 5);
        let mut back = [0u8; 5];
        assert_eq!(file.read_at(0, &mut back).expect("read"), 5);
        assert_eq!(back, [1; 5]);
        file.close().expect("closed");
    });
}

/// Checks that in atomic mode an access is atomic as a whole even if it is long and a user's function converts its
/// data.
#[test]
fn atomic_accesses_with_conversions_are_whole() {
    ranks(2, "atomic_accesses_with_conversions_are_whole", |world| {
        const LENGTH: usize = 3 << 20; // several buffers of the library
        let flip = |conversion: &typepack::io::Conversion<'_>, write: bool| -> Result<(), Error> {
            let memory = conversion.memory.wrapping_add(conversion.position as usize);
            for at in 0..conversion.count as usize {
                let (memory, file) = (memory.wrapping_add(at), conversion.file.wrapping_add(at));
                // SAFETY: the library gives `count` elements of one byte each on both sides.
                unsafe {
                    match write {
                        true => file.write(!memory.read()),
                        false => memory.write(!file.read()),
                    }
                }
            }
            Ok(())
        };
        // SAFETY: the functions touch only the elements that they get.
        let flipped = unsafe {
            UserRepresentation::new(
                "flipped",
                Some(Box::new(move |conversion| flip(conversion, false))),
                Some(Box::new(move |conversion| flip(conversion, true))),
                Box::new(|_| Ok(1)),
            )
        };
        register_representation(flipped).expect("registered");
        let path = path(world, "flipped");
        let file = new_file(world, &path);
        let byte = Datatype::named(Named::U8);
        file.set_view(Some(0), &byte, &byte, "flipped").expect("a view");
        file.set_atomic(true).expect("a mode");
        for round in 0..10u8 {
            world.barrier().expect("a barrier");
            file.write_at(0, &vec![2 * round + world.rank() as u8; LENGTH]).expect("written");
            world.barrier().expect("a barrier");
            let found = std::fs::read(&path).expect("the file");
            assert_eq!(found.len(), LENGTH);
            assert!(found.iter().all(|byte| *byte == found[0]), "a mixture in round {round}");
            assert_eq!(!found[0] / 2, round);
        }
        world.barrier().expect("a barrier");
        // A nonblocking collective write converts its data when it starts. It must still write nothing if one rank
        // passes a wrong argument.
        let (before, plan) =
            (std::fs::read(&path).expect("the file"), commit(&byte).expect("a plan"));
        let mut data = [100 + world.rank() as u8; 5];
        let wrong = Position::At(-(world.rank() as i64));
        let error = collective_write(&file, wrong, Way::Nonblocking, &mut data, &plan, 5);
        assert_eq!(error.expect_err("a negative offset").class(), ErrorClass::ARG);
        world.barrier().expect("a barrier");
        assert!(std::fs::read(&path).expect("the file") == before);
        world.barrier().expect("a barrier");
        let right = Position::At(5 * world.rank() as i64);
        let written = collective_write(&file, right, Way::Nonblocking, &mut data, &plan, 5);
        assert_eq!(written.expect("written"), 5);
        world.barrier().expect("a barrier");
        let found = std::fs::read(&path).expect("the file");
        assert_eq!(found[..10], [!100, !100, !100, !100, !100, !101, !101, !101, !101, !101]);
        file.close().expect("closed");
    });
}

const KILLING: Table = Table {
    pwrite: |_, _, _, _| {
        // SAFETY: `kill` accesses no memory of this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        Ok(0)
    },
    ..Table::SYSTEM
};

/// Checks what happens if rank 1 dies in a write while it holds the lock of atomic mode. The other ranks must still be
/// able to write alone, and must get an error from collective calls.
#[test]
fn the_death_of_a_rank_hangs_nobody() {
    let name = "the_death_of_a_rank_hangs_nobody";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        let world = universe.world();
        if world.rank() != 1 {
            // This rank ignores SIGTERM, so that it can go on until SIGKILL ends it.
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
        let part = Elements { origin: std::ptr::null_mut(), plan: &byte, count: 0 };
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
    // SIGKILL must not come before the other ranks have told of the error, so it comes a minute after SIGTERM.
    command.args(["-n", "3", "-kill-after", "60"]).args(body(name));
    let output = run(command, name, &[]);
    let text = text(&output);
    assert!(!output.status.success(), "{text}");
    assert_eq!(text.matches("told and written").count(), 2, "{text}");
}
