//! Tests of files with faults. For every call of the library, each of its system calls fails once in each way; the
//! tests print the results as a table, the fault matrix. In other tests, mapped pages disappear. `file_space.rs` has the
//! tests of full file systems.

use crate::file_scene::{Scene, at, new_file, path, shared, started};
use crate::job::ranks_with;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use typepack::engine::Elements;
use typepack::io::{File, Mode, Whence};
use typepack::{Communicator, Datatype, ErrorKind, FileErrorKind, Named, Plan, commit};
use typepack_job::sys::files::{self, Table};
use typepack_job::sys::signal::{SignalSet, block, set_mask};

fn make_fifo(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
    // SAFETY: `name` is a text that ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0, "mkfifo");
}

// ---- the matrix ----

/// The system calls on files.
const CALLS: [&str; 22] = [
    "open",
    "fstat",
    "close",
    "unlink",
    "ftruncate",
    "fallocate",
    "reserve",
    "pread",
    "pwrite",
    "fsync",
    "mmap",
    "stat",
    "readlink",
    "lseek",
    "fstatfs",
    "fadvise",
    "fcntl",
    "poll",
    "read",
    "write",
    "open a folder",
    "fstatat",
];
const OPEN: usize = 0;
const STAT: usize = 1;
const CLOSE: usize = 2;
const UNLINK: usize = 3;
const TRUNCATE: usize = 4;
const ALLOCATE: usize = 5;
const RESERVE: usize = 6;
const READ: usize = 7;
const WRITE: usize = 8;
const SYNC: usize = 9;
const MAP: usize = 10;
const LOOKUP: usize = 11;
const LINK: usize = 12;
const HOLE: usize = 13;
const SYSTEM: usize = 14;
const ADVISE: usize = 15;
const NONBLOCKING: usize = 16;
const POLL: usize = 17;
const READ_STREAM: usize = 18;
const WRITE_STREAM: usize = 19;
const FOLDER: usize = 20;
const ENTRY: usize = 21;

/// A fault that makes transfers short instead of failing.
const SHORT: i32 = -1;

/// The faults: error number (or [`SHORT`]), name, and the kind of the error that the program must get. `None` means
/// that the program must get no error.
const FAULTS: [(i32, &str, Option<FileErrorKind>); 6] = [
    (libc::ENOSPC, "ENOSPC", Some(FileErrorKind::NoSpace)),
    (libc::EIO, "EIO", Some(FileErrorKind::Io)),
    (libc::EDQUOT, "EDQUOT", Some(FileErrorKind::Quota)),
    (libc::EFBIG, "EFBIG", Some(FileErrorKind::Io)),
    (libc::EINTR, "EINTR", None),
    (SHORT, "short", None),
];

/// How often each system call has been made.
static COUNTS: [AtomicU64; CALLS.len()] = [const { AtomicU64::new(0) }; CALLS.len()];
/// The fault of this rank: `TARGET` is the system call that fails (an index in [`CALLS`]), and `INDEX` says which of
/// its uses fails, counted from 0. `FAULT` is the number of the fault. `HIT` is true once the fault has happened.
static TARGET: AtomicUsize = AtomicUsize::new(usize::MAX);
static INDEX: AtomicU64 = AtomicU64::new(0);
static FAULT: AtomicI32 = AtomicI32::new(0);
static HIT: AtomicBool = AtomicBool::new(false);
/// True if the next transfer on a stream must move nothing and fail with EAGAIN, so that the library waits.
static DRY: AtomicBool = AtomicBool::new(false);

/// Counts a use of the system call `call` for `bytes` bytes. Returns the number of bytes that it may move, or the error
/// with which it must fail.
fn faulty(call: usize, bytes: usize) -> std::io::Result<usize> {
    let index = COUNTS[call].fetch_add(1, Ordering::Relaxed);
    if call != TARGET.load(Ordering::Relaxed) || index != INDEX.load(Ordering::Relaxed) {
        return Ok(bytes);
    }
    HIT.store(true, Ordering::Relaxed);
    match FAULT.load(Ordering::Relaxed) {
        SHORT => Ok(bytes.div_ceil(2)),
        errno => Err(std::io::Error::from_raw_os_error(errno)),
    }
}

const FAULTY: Table = Table {
    open: |folder, path, access| {
        faulty(OPEN, 1)?;
        (Table::SYSTEM.open)(folder, path, access)
    },
    folder: |path| {
        faulty(FOLDER, 1)?;
        (Table::SYSTEM.folder)(path)
    },
    entry: |folder, name| {
        faulty(ENTRY, 1)?;
        (Table::SYSTEM.entry)(folder, name)
    },
    close: |fd| {
        // Close the descriptor even if the call must fail: the kernel also closes it when `close` returns an error.
        let closed = (Table::SYSTEM.close)(fd);
        faulty(CLOSE, 1)?;
        closed
    },
    unlink: |folder, path| {
        faulty(UNLINK, 1)?;
        (Table::SYSTEM.unlink)(folder, path)
    },
    stat: |fd| {
        faulty(STAT, 1)?;
        (Table::SYSTEM.stat)(fd)
    },
    pread: |fd, memory, bytes, at| {
        let bytes = faulty(READ, bytes)?;
        // SAFETY: `faulty` returns at most its argument, so the real call gets a part of the caller's memory.
        unsafe { (Table::SYSTEM.pread)(fd, memory, bytes, at) }
    },
    pwrite: |fd, memory, bytes, at| {
        let bytes = faulty(WRITE, bytes)?;
        // SAFETY: `faulty` returns at most its argument, so the real call gets a part of the caller's readable memory.
        unsafe { (Table::SYSTEM.pwrite)(fd, memory, bytes, at) }
    },
    truncate: |fd, size| {
        faulty(TRUNCATE, 1)?;
        (Table::SYSTEM.truncate)(fd, size)
    },
    allocate: |fd, at, bytes| {
        faulty(ALLOCATE, 1)?;
        (Table::SYSTEM.allocate)(fd, at, bytes)
    },
    reserve: |fd, at, bytes| {
        faulty(RESERVE, 1)?;
        (Table::SYSTEM.reserve)(fd, at, bytes)
    },
    sync: |fd| {
        faulty(SYNC, 1)?;
        (Table::SYSTEM.sync)(fd)
    },
    map: |fd, at, bytes, writable| {
        faulty(MAP, 1)?;
        (Table::SYSTEM.map)(fd, at, bytes, writable)
    },
    lookup: |path| {
        faulty(LOOKUP, 1)?;
        (Table::SYSTEM.lookup)(path)
    },
    link: |path| {
        faulty(LINK, 1)?;
        (Table::SYSTEM.link)(path)
    },
    hole: |fd, at| {
        faulty(HOLE, 1)?;
        (Table::SYSTEM.hole)(fd, at)
    },
    system: |fd| {
        faulty(SYSTEM, 1)?;
        (Table::SYSTEM.system)(fd)
    },
    advise: |fd, order| {
        faulty(ADVISE, 1)?;
        (Table::SYSTEM.advise)(fd, order)
    },
    nonblocking: |fd| {
        faulty(NONBLOCKING, 1)?;
        (Table::SYSTEM.nonblocking)(fd)
    },
    poll: |fd, write, longest| {
        faulty(POLL, 1)?;
        (Table::SYSTEM.poll)(fd, write, longest)
    },
    read: |fd, memory, bytes| {
        if DRY.swap(false, Ordering::Relaxed) {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        let bytes = faulty(READ_STREAM, bytes)?;
        // SAFETY: `faulty` returns at most its argument, so the real call gets a part of the caller's memory.
        unsafe { (Table::SYSTEM.read)(fd, memory, bytes) }
    },
    write: |fd, memory, bytes| {
        if DRY.swap(false, Ordering::Relaxed) {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        let bytes = faulty(WRITE_STREAM, bytes)?;
        // SAFETY: `faulty` returns at most its argument, so the real call gets only memory that the caller's write may
        // read.
        unsafe { (Table::SYSTEM.write)(fd, memory, bytes) }
    },
};

/// A call under test: its name, whether all ranks make it together, whether it changes the file, and the call, which
/// returns the number of bytes that this rank has moved.
struct Call {
    name: &'static str,
    together: bool,
    writes: bool,
    /// True if the file is a stream.
    stream: bool,
    call: fn(&Scene<'_>, &mut [u8]) -> typepack::Result<u64>,
}

/// Opens the file `scene.other`, writes `data` if there is any, and closes the file.
fn whole_life(scene: &Scene<'_>, mode: Mode, data: Option<&mut [u8]>) -> typepack::Result<u64> {
    let file = File::open(scene.world, scene.other, Mode::CREATE_READ_WRITE | mode)?;
    let written = match data {
        Some(data) => file.write_at_all(100 * scene.world.rank() as u64, data),
        None => Ok(()),
    };
    let closed = file.close();
    written.and(closed)?;
    Ok(0)
}

const fn call(
    name: &'static str,
    together: bool,
    writes: bool,
    call: fn(&Scene<'_>, &mut [u8]) -> typepack::Result<u64>,
) -> Call {
    Call { name, together, writes, stream: false, call }
}

/// Returns the call under test `call`, to be made on a stream.
const fn of_stream(call: Call) -> Call {
    Call { stream: true, ..call }
}

const UNDER_TEST: [Call; 36] = [
    call("open, close", true, false, |scene, _| whole_life(scene, Mode::READ_WRITE, None)),
    call("open, write, close", true, true, |scene, data| {
        whole_life(scene, Mode::READ_WRITE, Some(data))
    }),
    call("open, close and delete", true, false, |scene, _| {
        whole_life(scene, Mode::DELETE_ON_CLOSE, None)
    }),
    call("get_size", false, false, |scene, _| scene.file.size().map(|_| 0)),
    call("seek to the end", false, false, |scene, _| scene.file.seek(0, Whence::End).map(|()| 0)),
    call("seek_shared to the end", true, false, |scene, _| {
        scene.file.seek_shared(0, Whence::End).map(|()| 0)
    }),
    call("set_size", true, true, |scene, _| scene.file.set_size(4096).map(|()| 0)),
    call("preallocate", true, true, |scene, _| scene.file.preallocate(4096).map(|()| 0)),
    call("sync", true, true, |scene, data| {
        scene.file.write_at_all(0, data)?;
        scene.file.sync().map(|()| 0)
    }),
    call("write_at", false, true, |scene, data| scene.file.write_at(0, data).map(|()| 12)),
    call("write_at_all", true, true, |scene, data| scene.file.write_at_all(0, data).map(|()| 12)),
    call("iwrite_at", false, true, |scene, data| started(scene, at(true, false), false, data)),
    call("iwrite_at_all", true, true, |scene, data| started(scene, at(true, true), false, data)),
    call("write_at_all_begin", true, true, |scene, data| {
        started(scene, at(true, true), true, data)
    }),
    call("write", false, true, |scene, data| scene.file.write(data).map(|()| 12)),
    call("write_all", true, true, |scene, data| scene.file.write_all(data).map(|()| 12)),
    call("write_shared", false, true, |scene, data| scene.file.write_shared(data).map(|()| 12)),
    call("iwrite_shared", false, true, |scene, data| {
        started(scene, shared(true, false), false, data)
    }),
    call("write_ordered", true, true, |scene, data| scene.file.write_ordered(data).map(|()| 12)),
    call("write_ordered_begin", true, true, |scene, data| {
        started(scene, shared(true, true), true, data)
    }),
    call("read_at", false, false, |scene, data| scene.file.read_at(0, data).map(|n| n as u64)),
    call("read_at_all", true, false, |scene, data| {
        scene.file.read_at_all(0, data).map(|n| n as u64)
    }),
    call("iread_at", false, false, |scene, data| started(scene, at(false, false), false, data)),
    call("iread_at_all", true, false, |scene, data| started(scene, at(false, true), false, data)),
    call("read_at_all_begin", true, false, |scene, data| {
        started(scene, at(false, true), true, data)
    }),
    call("read_shared", false, false, |scene, data| scene.file.read_shared(data).map(|n| n as u64)),
    call("read_ordered", true, false, |scene, data| {
        scene.file.read_ordered(data).map(|n| n as u64)
    }),
    call("set_info", true, false, |scene, _| {
        let hint = ("access_style".to_owned(), "random".to_owned());
        scene.file.set_hints(&[hint]).map(|()| 0)
    }),
    of_stream(call("open of a stream", true, true, |scene, _| {
        File::open(scene.world, scene.other, Mode::READ_WRITE)?.close().map(|()| 0)
    })),
    of_stream(call("write_shared", false, true, |scene, data| {
        scene.file.write_shared(data).map(|()| 12)
    })),
    of_stream(call("iwrite_shared", false, true, |scene, data| {
        started(scene, shared(true, false), false, data)
    })),
    of_stream(call("write_ordered", true, true, |scene, data| {
        scene.file.write_ordered(data).map(|()| 12)
    })),
    of_stream(call("iwrite_at_all", true, true, |scene, data| {
        started(scene, at(true, true), false, data)
    })),
    of_stream(call("read_shared", false, false, |scene, data| {
        scene.file.read_shared(data).map(|n| n as u64)
    })),
    of_stream(call("iread_shared", false, false, |scene, data| {
        started(scene, shared(false, false), false, data)
    })),
    of_stream(call("read_ordered_begin", true, false, |scene, data| {
        started(scene, shared(false, true), true, data)
    })),
];

/// The data of a rank: 12 bytes, in 6 pieces of its view.
fn data_of(rank: usize) -> Vec<u8> {
    (0..12).map(|at| (rank * 20 + at + 1) as u8).collect()
}

fn offset_of(rank: usize, at: usize) -> usize {
    2 * rank + at / 6 * 300 + at % 6 / 2 * 100 + at % 2
}

/// One cell of the matrix: the number of runs in which the call returned an error, and the number of runs in which it
/// did its work in spite of the fault.
type Cell = (u64, u64);

/// One run of one call with one fault.
struct Run<'a> {
    call: &'a Call,
    /// The rank on which the fault happens, the system call that fails (an index in [`CALLS`]), the number of its use
    /// that fails, and the fault.
    victim: usize,
    target: usize,
    index: u64,
    fault: (i32, &'static str, Option<FileErrorKind>),
}

struct Faults<'a> {
    world: &'a Communicator,
    path: PathBuf,
    other: PathBuf,
    byte: Plan,
    mapped: bool,
}

impl Faults<'_> {
    /// Makes the call on a new file. `run` is `None` for a run without a fault. Returns the result of the call, and
    /// whether the fault has struck this rank. Then checks that the file still works.
    fn make(&self, call: &Call, run: Option<&Run<'_>>) -> (typepack::Result<u64>, bool) {
        let (world, rank, size) = (self.world, self.world.rank(), self.world.size());
        // The descriptor that rank 0 uses for the other end of a stream.
        let mut end = None;
        if rank == 0 && call.stream {
            make_fifo(&self.path);
            let mut options = std::fs::OpenOptions::new();
            options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
            let mut file = options.open(&self.path).expect("the stream");
            if !call.writes {
                file.write_all(&vec![1; 12 * size]).expect("written");
            }
            end = Some(file);
        } else if rank == 0 {
            // For a call that writes, the file is empty at first. For a call that reads, it holds the data of all
            // ranks.
            let mut content = vec![0u8; if call.writes { 0 } else { offset_of(size - 1, 11) + 1 }];
            for (rank, at) in (0..size).flat_map(|rank| (0..12).map(move |at| (rank, at))) {
                if !call.writes {
                    content[offset_of(rank, at)] = data_of(rank)[at];
                }
            }
            std::fs::write(&self.path, content).expect("written");
        }
        world.barrier().expect("a barrier");
        let file = File::open(world, &self.path, Mode::READ_WRITE).expect("a file");
        let byte = Datatype::named(Named::U8);
        let cells = Datatype::vector(3, 2, 100, &byte).expect("a type");
        let filetype = Datatype::resized(0, 300, &cells).expect("a type");
        if !call.stream {
            file.set_view(Some(2 * rank as i64), &byte, &filetype, "native").expect("a view");
        }
        DRY.store(call.stream, Ordering::Relaxed);
        // SAFETY: the functions of `FAULTY` pass parts of the caller's memory to the system calls.
        unsafe { files::replace(FAULTY) };
        COUNTS.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        HIT.store(false, Ordering::Relaxed);
        if let Some(run) = run.filter(|run| run.victim == rank) {
            INDEX.store(run.index, Ordering::Relaxed);
            FAULT.store(run.fault.0, Ordering::Relaxed);
            TARGET.store(run.target, Ordering::Relaxed);
        }
        let other = if call.stream { &self.path } else { &self.other };
        let scene = Scene { world, file: &file, other, byte: &self.byte };
        let data = data_of(rank);
        let mut used = if call.writes { data.clone() } else { vec![0; 12] };
        let result = (call.call)(&scene, &mut used);
        TARGET.store(usize::MAX, Ordering::Relaxed);
        // SAFETY: these are the system calls themselves.
        unsafe { files::replace(Table::SYSTEM) };
        world.barrier().expect("a barrier");
        if call.stream {
            let (result, hit) = (result, HIT.load(Ordering::Relaxed));
            self.check_stream(call, &file, end, &result);
            return (result, hit);
        }
        if result.is_ok() && call.name.contains("_at") {
            assert_eq!(result.as_ref().ok(), Some(&12), "{}", call.name);
            assert_eq!(used, data, "{}", call.name);
            let content = std::fs::read(&self.path).expect("the file");
            let place = |at| content.get(offset_of(rank, at)).copied();
            assert!((0..12).all(|at| place(at) == Some(data[at])), "{}", call.name);
        }
        world.barrier().expect("a barrier");
        // The file must work as before.
        file.seek_shared(0, Whence::Set).expect("a position");
        file.write_at_all(0, &data).expect("written");
        let mut back = vec![0; 12];
        assert_eq!(file.read_at_all(0, &mut back).expect("read"), 12);
        assert_eq!(back, data, "{}", call.name);
        // Close the file without the sync that `close` makes. Only runs that test a close need the sync.
        file.check_close().expect("no access");
        drop(file);
        world.barrier().expect("a barrier");
        if rank == 0 {
            let _ = (std::fs::remove_file(&self.other), std::fs::remove_file(&self.path));
        }
        world.barrier().expect("a barrier");
        (result, HIT.load(Ordering::Relaxed))
    }

    /// Checks what has come through a stream, and that the stream still works. `end` is the other end, on rank 0.
    fn check_stream(
        &self,
        call: &Call,
        file: &File,
        end: Option<std::fs::File>,
        result: &typepack::Result<u64>,
    ) {
        let (world, rank) = (self.world, self.world.rank());
        let moved = match result {
            Ok(bytes) => *bytes,
            Err(error) => error.received().map_or(0, |status| status.bytes),
        };
        let mut all = [moved as i64];
        world.all_reduce_in_place(&mut all, typepack::Op::Sum).expect("a number");
        if let Some(mut end) = end {
            // Every byte that a rank has moved has come through, and no other one has.
            let mut found = Vec::new();
            let left = end.read_to_end(&mut found).expect_err("the stream has no end");
            assert_eq!(left.kind(), std::io::ErrorKind::WouldBlock);
            let full = 12 * world.size() as i64;
            let wanted = if call.writes { all[0] } else { full - all[0] };
            assert_eq!(found.len() as i64, wanted, "{}", call.name);
        }
        for turn in 0..world.size() {
            world.barrier().expect("a barrier");
            if turn == rank {
                let (data, mut back) = (data_of(rank), [0u8; 12]);
                file.write_shared(&data).expect("written");
                assert_eq!(file.read_shared(&mut back).expect("read"), 12);
                assert_eq!(back[..], data[..], "{}", call.name);
            }
        }
        file.check_close().expect("no access");
        world.barrier().expect("a barrier");
        if rank == 0 {
            std::fs::remove_file(&self.path).expect("removed");
        }
        world.barrier().expect("a barrier");
    }

    /// Makes one run and checks what it returns. Returns the outcome on all ranks: whether the fault has struck, and
    /// whether a call has failed.
    fn check(&self, run: &Run<'_>) -> Option<bool> {
        let (call, (_, fault, class)) = (run.call, run.fault);
        let what = format!(
            "{}: {fault} in {} number {} on rank {}",
            call.name, CALLS[run.target], run.index, run.victim
        );
        let (result, hit) = self.make(call, Some(run));
        let mut any = [i64::from(hit), i64::from(result.is_err())];
        self.world.all_reduce_in_place(&mut any, typepack::Op::Max).expect("a number");
        let [struck, failed] = any.map(|word| word == 1);
        let own = self.world.rank() == run.victim;
        // The library can do without reserved space, without a mapping, without knowledge of holes or of the file system,
        // and without advice to the kernel. If it maps the file, it can also do without a `pwrite` that fails. So these
        // faults need not cause an error.
        let optional = matches!(run.target, RESERVE | MAP | HOLE | SYSTEM | ADVISE)
            || self.mapped && run.target == WRITE;
        match class.filter(|_| struck) {
            None => {
                result.unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            Some(_) if optional && !failed => assert!(result.is_ok(), "{what}"),
            Some(class) if call.together || own => {
                let Err(error) = &result else { panic!("{what}: no error") };
                assert_eq!(error.kind(), ErrorKind::File(class), "{what}: {error}");
                if own && run.target == WRITE && call.name.contains("write_") && !self.mapped {
                    // Each `pwrite` before the failed one has written one piece of two bytes.
                    let moved = error.received().expect("a status").bytes;
                    assert_eq!(moved, 2 * run.index, "{what}");
                }
            }
            Some(_) => assert!(result.is_ok(), "{what}: the fault of another rank"),
        }
        struck.then_some(failed)
    }
}

/// Injects each fault into each system call of each call under test, on one rank after another. In a collective call,
/// all ranks must return an error of the same kind. No rank may hang, and the file must work afterwards. Prints the
/// matrix.
fn faults(size: usize, name: &str, method: &str) {
    let as_rank = |world: &Communicator| {
        let byte = commit(&Datatype::named(Named::U8)).expect("a plan");
        let (path, other) = (path(world, name), path(world, &format!("{name}-other")));
        let faults = Faults { world, path, other, byte, mapped: method != "pwrite" };
        let mut matrix: BTreeMap<(usize, usize), Cell> = BTreeMap::new();
        for call in &UNDER_TEST {
            faults.make(call, None).0.expect(call.name);
            let mut calls: [i64; CALLS.len()] =
                std::array::from_fn(|at| COUNTS[at].load(Ordering::Relaxed) as i64);
            world.all_reduce_in_place(&mut calls, typepack::Op::Max).expect("numbers");
            assert!(calls.iter().sum::<i64>() > 0, "{} makes no system call", call.name);
            for (target, &count) in calls.iter().enumerate() {
                for (number, &fault) in FAULTS.iter().enumerate() {
                    let transfers = [READ, WRITE, READ_STREAM, WRITE_STREAM];
                    if fault.0 == SHORT && !transfers.contains(&target) {
                        continue;
                    }
                    for (victim, index) in
                        (0..size).flat_map(|v| (0..count as u64).map(move |i| (v, i)))
                    {
                        let run = Run { call, victim, target, index, fault };
                        let cell = matrix.entry((target, number)).or_default();
                        match faults.check(&run) {
                            Some(true) => cell.0 += 1,
                            Some(false) => cell.1 += 1,
                            None => {}
                        }
                    }
                }
            }
        }
        if world.rank() == 0 {
            table(&format!("{size} ranks, TYPEPACK_IO={method}"), &matrix);
        }
        // Every fault must have happened in every system call that this method uses.
        for (call, target) in CALLS.iter().zip(0..) {
            let made = match method {
                "mmap" => !matches!(target, READ | SYSTEM),
                "pwrite" => !matches!(target, RESERVE | MAP | HOLE | SYSTEM),
                // The library asks for the type of the file system only if it may choose the way by itself.
                _ => target == SYSTEM,
            };
            let full = (0..FAULTS.len() - 1).all(|number| {
                matrix.get(&(target, number)).is_some_and(|cell| cell.0 + cell.1 > 0)
            });
            assert!(!made || full, "no fault in {call}");
        }
    };
    let output = ranks_with(size, name, &[("TYPEPACK_IO", method)], as_rank);
    output.lines().filter(|line| line.starts_with('|')).for_each(|line| println!("{line}"));
}

/// Prints the matrix: for each system call and fault, the number of runs in which the call under test returned an
/// error, and the number of runs in which it did its work in spite of the fault.
fn table(title: &str, matrix: &BTreeMap<(usize, usize), Cell>) {
    let names: Vec<&str> = FAULTS.iter().map(|fault| fault.1).collect();
    println!("\n| {title}: errors/done | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    for (target, call) in CALLS.iter().enumerate() {
        let cell = |number| match matrix.get(&(target, number)) {
            Some((errors, done)) => format!("{errors}/{done}"),
            None => "-".to_owned(),
        };
        let cells: Vec<String> = (0..FAULTS.len()).map(cell).collect();
        println!("| {call} | {} |", cells.join(" | "));
    }
}

#[test]
fn faults_of_one_rank_by_calls() {
    faults(1, "faults_of_one_rank_by_calls", "pwrite");
}

#[test]
fn faults_of_two_ranks_by_calls() {
    faults(2, "faults_of_two_ranks_by_calls", "pwrite");
}

#[test]
fn faults_of_three_ranks_by_calls() {
    faults(3, "faults_of_three_ranks_by_calls", "pwrite");
}

#[test]
fn faults_of_two_ranks_with_a_free_choice() {
    faults(2, "faults_of_two_ranks_with_a_free_choice", "auto");
}

#[test]
fn faults_of_one_rank_with_mappings() {
    faults(1, "faults_of_one_rank_with_mappings", "mmap");
}

#[test]
fn faults_of_two_ranks_with_mappings() {
    faults(2, "faults_of_two_ranks_with_mappings", "mmap");
}

#[test]
fn faults_of_three_ranks_with_mappings() {
    faults(3, "faults_of_three_ranks_with_mappings", "mmap");
}

// ---- missing pages ----

/// The size that `LYING` reports.
static SIZE: AtomicU64 = AtomicU64::new(0);

const LYING: Table = Table {
    stat: |fd| {
        let facts = (Table::SYSTEM.stat)(fd)?;
        Ok(files::Facts { size: SIZE.load(Ordering::Relaxed), ..facts })
    },
    // Reserve no space, because the pages of the file must stay missing.
    reserve: |_, _, _| Ok(()),
    ..Table::SYSTEM
};

/// Checks accesses to a file that another process truncates after the library has read the size of the file and before
/// it accesses the mapped pages. A write must arrive in full, by system calls, and a read must end where the file ends.
/// Tests individual and collective, blocking and nonblocking accesses, also in a thread that blocks SIGBUS.
fn truncated(size: usize, name: &str) {
    let as_rank = |world: &Communicator| {
        let (rank, path) = (world.rank(), path(world, name));
        let file = new_file(world, &path);
        let byte = Datatype::named(Named::U8);
        let step = 2 * size;
        let filetype = Datatype::resized(0, step as i64, &byte).expect("a type");
        file.set_view(Some(2 * rank as i64), &byte, &filetype, "native").expect("a view");
        let plan = commit(&byte).expect("a plan");
        let scene = Scene { world, file: &file, other: &path, byte: &plan };
        let mut data: Vec<u8> = (0..20_000).map(|i| (i * 7 + rank + 1) as u8).collect();
        file.write_at_all(0, &data).expect("written");
        world.barrier().expect("a barrier");
        let full = (19_999 * step + 2 * (size - 1) + 1) as u64;
        assert_eq!(file.size().expect("a size"), full);
        world.barrier().expect("a barrier");
        let old = block(&SignalSet::new(&[])).expect("a mask");
        for (length, collective, background, blocked) in (0..24).map(|round| {
            ([0, 5000, 30_000][round % 3], round / 3 % 2 == 1, round / 6 % 2 == 1, round / 12 == 1)
        }) {
            let access = |write, data: &mut [u8]| {
                let access = at(write, collective);
                let part = Elements { origin: data.as_mut_ptr(), plan: &plan, count: 20_000 };
                match background {
                    true => started(&scene, access, false, data).expect("done"),
                    // SAFETY: `data` has the 20000 bytes and is lent until the call returns.
                    false => unsafe { file.access_raw(access, &part) }.expect("done").bytes,
                }
            };
            if rank == 0 {
                let other = std::fs::OpenOptions::new().write(true).open(&path).expect("the file");
                other.set_len(length).expect("shorter");
            }
            SIZE.store(full, Ordering::Relaxed);
            if blocked {
                block(&SignalSet::new(&[libc::SIGBUS])).expect("a mask");
            }
            world.barrier().expect("a barrier");
            // SAFETY: the functions of `LYING` are the system calls, or touch no memory.
            unsafe { files::replace(LYING) };
            let mut back = vec![0; data.len()];
            let read = access(false, &mut back) as usize;
            world.barrier().expect("a barrier");
            assert_eq!(access(true, &mut data), 20_000);
            // SAFETY: these are the system calls themselves.
            unsafe { files::replace(Table::SYSTEM) };
            set_mask(&old);
            world.barrier().expect("a barrier");
            let before = (0..20_000).filter(|i| ((step * i + 2 * rank) as u64) < length).count();
            assert_eq!(read, before, "{length} {collective} {background} {blocked}");
            assert_eq!(back[..read], data[..read]);
            let found = std::fs::read(&path).expect("the file");
            assert_eq!(found.len() as u64, full);
            let arrived = |(i, &byte): (usize, &u8)| found[step * i + 2 * rank] == byte;
            assert!(data.iter().enumerate().all(arrived), "{length} {collective} {background}");
            assert!((0..found.len()).all(|at| at % 2 == 0 || found[at] == 0));
            world.barrier().expect("a barrier");
        }
        file.close().expect("closed");
    };
    ranks_with(size, name, &[("TYPEPACK_IO", "mmap")], as_rank);
}

#[test]
fn a_truncated_mapping_loses_nothing_of_one_rank() {
    truncated(1, "a_truncated_mapping_loses_nothing_of_one_rank");
}

#[test]
fn a_truncated_mapping_loses_nothing_of_two_ranks() {
    truncated(2, "a_truncated_mapping_loses_nothing_of_two_ranks");
}

#[test]
fn a_truncated_mapping_loses_nothing_of_three_ranks() {
    truncated(3, "a_truncated_mapping_loses_nothing_of_three_ranks");
}

/// Checks that reads count exactly the bytes that a file has after another process has made it shorter or longer: within
/// a page, at the end of a page, and by several pages. Each read before the change tells the library how far the file
/// reaches.
#[test]
fn reads_of_a_file_that_changes_its_size_count_exactly() {
    let name = "reads_of_a_file_that_changes_its_size_count_exactly";
    let as_rank = |world: &Communicator| {
        const PAGE: usize = 4096;
        const FULL: usize = 5 * PAGE + 100;
        let path = path(world, name);
        let file = new_file(world, &path);
        let byte = Datatype::named(Named::U8);
        let odd = Datatype::resized(0, 2, &byte).expect("a type");
        let content: Vec<u8> = (0..FULL).map(|at| (at % 251 + 1) as u8).collect();
        let mut lengths = vec![0, 1, 10, FULL - 1, FULL, FULL + 1];
        lengths.extend((1..=5).flat_map(|page| [page * PAGE - 1, page * PAGE, page * PAGE + 1]));
        for (filetype, step) in [(&byte, 1), (&odd, 2)] {
            file.set_view(Some(0), &byte, filetype, "native").expect("a view");
            for (&length, &first) in lengths.iter().zip(lengths.iter().cycle().skip(7)) {
                for at in [0, 1, PAGE / step, 3 * PAGE / step + 5, 5 * PAGE / step + 20] {
                    for most in [1, 7, PAGE, 2 * PAGE, FULL] {
                        std::fs::write(&path, &content).expect("written");
                        let mut back = vec![0u8; first.max(1)];
                        let read = file.read_at(0, &mut back).expect("read");
                        assert_eq!(read, back.len().min(FULL.div_ceil(step)));
                        // Another descriptor changes the size, as another process would.
                        let other = std::fs::OpenOptions::new().write(true).open(&path);
                        other.expect("the file").set_len(length as u64).expect("a size");
                        let mut back = vec![0u8; most];
                        let read = file.read_at(at as u64, &mut back).expect("read");
                        let wanted = length.div_ceil(step).saturating_sub(at).min(most);
                        assert_eq!(read, wanted, "{length} {step} {at} {most}");
                        let byte_of = |i: usize| content.get((at + i) * step).copied().unwrap_or(0);
                        assert!((0..read).all(|i| back[i] == byte_of(i)), "{length} {at} {most}");
                    }
                }
            }
        }
        file.close().expect("closed");
    };
    ranks_with(1, name, &[("TYPEPACK_IO", "mmap")], as_rank);
}
