//! A rank is killed in each phase of a collective call on a file. The other ranks get an error and do not hang. Also two
//! jobs that use files of the same name at the same time.

use crate::job::{body, is_rank, mpiexec, run, text};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;
use typepack::engine::Elements;
use typepack::io::{Access, File, Mode, Position};
use typepack::{Communicator, Datatype, ErrorKind, Named, commit};
use typepack_job::sys::files::{self, Table};

fn folder() -> PathBuf {
    std::env::var_os("KILLS_FOLDER").map(PathBuf::from).expect("the folder of the files")
}

fn die() {
    // SAFETY: `kill` accesses no memory of this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

/// Kills this rank after 60 ms. Usually the rank waits for another rank then, which calls [`wait_for_death`].
fn die_soon() {
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(60));
        die();
    });
}

/// The process id of the victim.
static VICTIM: AtomicI32 = AtomicI32::new(0);

/// Waits until all ranks have called this function with the name `name`. The ranks make a folder each instead of
/// calling a barrier: a rank that is still in a barrier when the victim dies gets an error there.
fn meet(world: &Communicator, phase: &Phase, name: &str) {
    let signs = folder().with_extension("signs");
    let victim = world.rank() == phase.victim;
    let sign = |rank: usize| signs.join(format!("{name}-{rank}"));
    let own = if victim { std::process::id().to_string() } else { "other".to_owned() };
    std::fs::create_dir_all(sign(world.rank()).join(own)).expect("a folder");
    for rank in 0..world.size() {
        let id = loop {
            let mut inside = std::fs::read_dir(sign(rank)).into_iter().flatten().flatten();
            if let Some(entry) = inside.next() {
                break entry.file_name();
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        if rank == phase.victim {
            let id = id.to_str().and_then(|id| id.parse().ok()).expect("a process id");
            VICTIM.store(id, Ordering::Relaxed);
        }
    }
}

/// Waits until the victim is dead. So the other ranks cannot complete the call before the victim dies, however
/// long the system suspends any process.
fn wait_for_death() {
    let stat = format!("/proc/{}/stat", VICTIM.load(Ordering::Relaxed));
    // The file contains the process id, the name in parentheses, and the state. The state is Z between the death
    // and the moment when mpiexec learns of the death. Afterwards there is no file.
    while let Ok(text) = std::fs::read_to_string(&stat) {
        let state = text.rsplit(')').next().expect("a last part").trim_start();
        if state.starts_with(['Z', 'X']) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The system call in which the rank dies, as its place in [`PHASES`].
static PHASE: AtomicUsize = AtomicUsize::new(usize::MAX);

fn reach(phase: usize) {
    if PHASE.load(Ordering::Relaxed) == phase {
        die();
    }
}

/// A phase: its name, the rank that dies, the way of accesses, and the number of the system call in which the rank dies
/// (0: it dies while it waits).
struct Phase {
    name: &'static str,
    victim: usize,
    method: &'static str,
    call: usize,
}

const LOOKUP: usize = 1;
const OPEN: usize = 2;
const STAT: usize = 3;
const WRITE: usize = 4;
const RESERVE: usize = 5;
const SYNC: usize = 6;
const CLOSE: usize = 7;
const READ: usize = 8;
const TRUNCATE: usize = 9;

const fn phase(name: &'static str, victim: usize, method: &'static str, call: usize) -> Phase {
    Phase { name, victim, method, call }
}

const PHASES: [Phase; 18] = [
    phase("open: before the agreement on the name", 1, "auto", LOOKUP),
    phase("open: rank 0 makes the file", 0, "auto", OPEN),
    phase("open: another rank opens the file", 1, "auto", OPEN),
    phase("open: before the agreement on the file", 2, "auto", STAT),
    phase("open: in an agreement", 1, "auto", 0),
    phase("write: in the agreement before", 1, "auto", 0),
    phase("write: copy by calls", 1, "pwrite", WRITE),
    phase("write: copy by calls, rank 0", 0, "pwrite", WRITE),
    phase("write: copy by a mapping", 1, "mmap", RESERVE),
    phase("write: in the agreement after", 1, "pwrite", 0),
    phase("iwrite: copy by calls", 1, "pwrite", WRITE),
    phase("iwrite: in the agreement before", 1, "pwrite", 0),
    phase("write_ordered: copy by calls", 1, "pwrite", WRITE),
    phase("read: copy by calls", 1, "pwrite", READ),
    phase("set_size: rank 0 changes the file", 0, "auto", TRUNCATE),
    phase("sync: rank 0 syncs", 0, "auto", SYNC),
    phase("close: rank 0 syncs", 0, "auto", SYNC),
    phase("close: another rank closes", 1, "auto", CLOSE),
];

const KILLING: Table = Table {
    lookup: |path| {
        reach(LOOKUP);
        (Table::SYSTEM.lookup)(path)
    },
    open: |folder, path, access| {
        reach(OPEN);
        (Table::SYSTEM.open)(folder, path, access)
    },
    stat: |fd| {
        reach(STAT);
        (Table::SYSTEM.stat)(fd)
    },
    pwrite: |fd, memory, bytes, at| {
        // The rank dies after it has written the first half of its data.
        // SAFETY: the real call gets a part of the caller's memory.
        let done = unsafe { (Table::SYSTEM.pwrite)(fd, memory, bytes.div_ceil(2), at) };
        reach(WRITE);
        done
    },
    reserve: |fd, at, bytes| {
        reach(RESERVE);
        (Table::SYSTEM.reserve)(fd, at, bytes)
    },
    sync: |fd| {
        reach(SYNC);
        (Table::SYSTEM.sync)(fd)
    },
    close: |fd| {
        reach(CLOSE);
        (Table::SYSTEM.close)(fd)
    },
    pread: |fd, memory, bytes, at| {
        reach(READ);
        // SAFETY: the real call gets the caller's memory.
        unsafe { (Table::SYSTEM.pread)(fd, memory, bytes, at) }
    },
    truncate: |fd, size| {
        reach(TRUNCATE);
        (Table::SYSTEM.truncate)(fd, size)
    },
    ..Table::SYSTEM
};

/// Makes the call of a phase. The victim dies in it.
fn make(world: &Communicator, phase: &Phase) -> typepack::Result<()> {
    let path = folder().join("file");
    let own = world.rank() == phase.victim;
    let (what, when) = phase.name.split_once(':').expect("a call and a phase");
    let opens = what == "open";
    let mut file = None;
    if !opens {
        let opened = File::open(world, &path, Mode::CREATE_READ_WRITE).expect("a file");
        let byte = Datatype::named(Named::U8);
        let piece = Datatype::contiguous(4, &byte).expect("a type");
        let filetype = Datatype::resized(0, 4 * world.size() as i64, &piece).expect("a type");
        let at = 4 * world.rank() as i64;
        opened.set_view(Some(at), &byte, &filetype, "native").expect("a view");
        opened.write_at_all(0, &[7u8; 4000]).expect("written");
        meet(world, phase, "written");
        file = Some(opened);
    }
    let waits = phase.call == 0;
    if own {
        // SAFETY: the functions of `KILLING` pass parts of the caller's memory to the system calls.
        unsafe { files::replace(KILLING) };
        PHASE.store(if waits { usize::MAX } else { phase.call }, Ordering::Relaxed);
        if waits {
            die_soon();
        }
    } else if waits && world.rank() == 2 && !when.contains("after") {
        wait_for_death();
    }
    let Some(file) = file else {
        return File::open(world, &path, Mode::CREATE_READ_WRITE)?.close();
    };
    if when.contains("mapping") && !own {
        // The victim dies where it reserves a page, so no other rank may write to the page or reserve it before.
        const LATE: Table = Table {
            pwrite: |fd, memory, bytes, at| {
                wait_for_death();
                // SAFETY: the arguments are those of the caller, who guarantees `bytes` bytes of memory.
                unsafe { (Table::SYSTEM.pwrite)(fd, memory, bytes, at) }
            },
            reserve: |fd, at, bytes| {
                wait_for_death();
                (Table::SYSTEM.reserve)(fd, at, bytes)
            },
            ..Table::SYSTEM
        };
        // SAFETY: the functions of `LATE` pass the caller's memory to the system calls.
        unsafe { files::replace(LATE) };
    }
    if when.contains("after") && world.rank() == 2 {
        // The victim has written its own part, and waits for this rank.
        const SLOW: Table = Table {
            pwrite: |fd, memory, bytes, at| {
                wait_for_death();
                // SAFETY: the real call gets the caller's memory.
                unsafe { (Table::SYSTEM.pwrite)(fd, memory, bytes, at) }
            },
            ..Table::SYSTEM
        };
        // SAFETY: the functions of `SLOW` pass the caller's memory to the system calls.
        unsafe { files::replace(SLOW) };
    }
    let mut data = vec![world.rank() as u8 + 1; 4000];
    match what {
        "write" => file.write_at_all(1000, &data),
        "write_ordered" => file.write_ordered(&data),
        "read" => file.read_at_all(0, &mut data).map(|_| ()),
        "iwrite" => {
            let plan = commit(&Datatype::named(Named::U8)).expect("a plan");
            let part = Elements { origin: data.as_mut_ptr(), plan: &plan, count: 4000 };
            let access = Access { write: true, position: Position::At(1000), collective: true };
            // SAFETY: the access ends before `data`, or the process ends by `exit` before that.
            let started = unsafe { file.start_raw(access, &part) };
            let done = started.and_then(|one| world.messages().finish(one.operation));
            std::mem::forget(data);
            done.map(|_| ())
        }
        "set_size" => file.set_size(100),
        "sync" => file.sync(),
        "close" => file.close(),
        other => panic!("no call {other}"),
    }
}

#[test]
fn a_rank_that_is_killed_in_a_collective_call_hangs_nobody() {
    let name = "a_rank_that_is_killed_in_a_collective_call_hangs_nobody";
    if is_rank() {
        let number = std::env::var("KILLS_PHASE").expect("a phase");
        let phase = &PHASES[number.parse::<usize>().expect("a number")];
        let universe = typepack::init().expect("joining the job");
        let world = universe.world();
        if world.rank() != phase.victim {
            // This rank ignores SIGTERM, so that it can go on until SIGKILL ends it.
            // SAFETY: SIG_IGN only makes the process ignore the signal and installs no handler.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        }
        meet(&world, phase, "start");
        let error = make(&world, phase).expect_err("a rank is dead");
        assert_eq!(error.kind(), ErrorKind::ProcAborted, "{error}");
        println!("told");
        std::process::exit(6);
    }
    let base = std::env::temp_dir().join(format!("typepack-kills-{}", std::process::id()));
    for (number, phase) in PHASES.iter().enumerate() {
        let folder = base.join(number.to_string());
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut command = Command::new(mpiexec());
        // SIGKILL must not come before the other ranks have told of the error, so it comes a minute after SIGTERM.
        command.args(["-n", "3", "-kill-after", "60"]).args(body(name));
        command.env("KILLS_FOLDER", &folder).env("KILLS_PHASE", number.to_string());
        let output = run(command, name, &[("TYPEPACK_IO", phase.method)]);
        let text = text(&output);
        assert!(!output.status.success(), "{}: {text}", phase.name);
        assert_eq!(text.matches("told").count(), 2, "{}: {text}", phase.name);
        // Only the file itself is there: nothing that belongs to the library stays behind.
        let names: Vec<_> = std::fs::read_dir(&folder).expect("a folder").flatten().collect();
        assert!(names.len() <= 1, "{}: {names:?}", phase.name);
        println!(
            "| killed | {} | rank {} of 3 | the others return an error |",
            phase.name, phase.victim
        );
        std::fs::remove_dir_all(&folder).expect("removed");
        std::fs::remove_dir_all(folder.with_extension("signs")).expect("removed");
    }
}

/// What one of the jobs does with its file: accesses by the shared file pointer, ordered ones, and atomic ones.
fn work(world: &Communicator, file: &File, base: u64) {
    let (rank, size) = (world.rank() as u64, world.size() as u64);
    let byte = Datatype::named(Named::U8);
    file.set_view(Some(base as i64), &byte, &byte, "native").expect("a view");
    for round in 0..20u64 {
        file.seek_shared(0, typepack::io::Whence::Set).expect("a position");
        file.write_ordered(&[(base / 512 + round) as u8; 8]).expect("written");
        assert_eq!(file.position_shared().expect("a position"), 8 * size, "round {round}");
        world.barrier().expect("a barrier");
        let before = 8 * size;
        file.write_shared(&[100 + rank as u8; 8]).expect("written");
        world.barrier().expect("a barrier");
        assert_eq!(file.position_shared().expect("a position"), before + 8 * size);
        world.barrier().expect("a barrier");
        file.set_atomic(true).expect("a mode");
        file.write_at(2 * before, &[200 + rank as u8; 64]).expect("written");
        world.barrier().expect("a barrier");
        let mut found = [0u8; 64];
        assert_eq!(file.read_at(2 * before, &mut found).expect("read"), 64);
        assert!(found.iter().all(|byte| *byte == found[0]), "a mixture in round {round}");
        world.barrier().expect("a barrier");
        file.set_atomic(false).expect("a mode");
        let mut ordered = [0u8; 16];
        assert_eq!(file.read_at(0, &mut ordered).expect("read"), 16);
        assert_eq!(ordered, [(base / 512 + round) as u8; 16]);
        let mut shared: Vec<u8> = vec![0; 16];
        assert_eq!(file.read_at(before, &mut shared).expect("read"), 16);
        shared.sort_unstable();
        assert_eq!(
            shared,
            [100, 100, 100, 100, 100, 100, 100, 100, 101, 101, 101, 101, 101, 101, 101, 101]
        );
    }
}

/// Two jobs use files of the same name in different folders, and then parts of one file, at the same time. Neither has
/// the shared file pointer or the locks of the other.
#[test]
fn two_jobs_on_the_same_name_do_not_meet() {
    let name = "two_jobs_on_the_same_name_do_not_meet";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        let world = universe.world();
        let number: u64 = std::env::var("KILLS_JOB").expect("a job").parse().expect("a number");
        let own = folder().join(number.to_string()).join("same");
        for (path, base) in [(own, 0), (folder().join("same"), 512 * number)] {
            let file = File::open(&world, path, Mode::CREATE_READ_WRITE).expect("a file");
            work(&world, &file, base);
            file.close().expect("closed");
        }
        return;
    }
    let folder = std::env::temp_dir().join(format!("typepack-jobs-{}", std::process::id()));
    std::thread::scope(|scope| {
        for number in 0..2 {
            let folder = &folder;
            scope.spawn(move || {
                std::fs::create_dir_all(folder.join(number.to_string())).expect("a folder");
                let mut command = Command::new(mpiexec());
                command.args(["-n", "2"]).args(body(name));
                command.env("KILLS_FOLDER", folder).env("KILLS_JOB", number.to_string());
                let output = run(command, name, &[]);
                assert!(output.status.success(), "{}", text(&output));
                assert_eq!(text(&output).matches("1 passed").count(), 2, "{}", text(&output));
            });
        }
    });
    // The folder contains only the folders of the two jobs, and the file that the jobs share.
    let mut names: Vec<_> = std::fs::read_dir(&folder).expect("a folder").flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    let names: Vec<_> = names.iter().map(std::fs::DirEntry::file_name).collect();
    assert_eq!(names, ["0", "1", "same"]);
    std::fs::remove_dir_all(&folder).expect("removed");
}
