//! Tests of the shared memory that a job of many ranks takes, and of the collective calls and transfers that
//! keep this memory small.

use crate::job::{body, is_rank, mpiexec, ranks, ranks_with, run, text};
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use typepack::engine::Elements;
use typepack::{Collective, Communicator, Datatype, ErrorKind, Named, Plan, commit};

const MIB: u64 = 1 << 20;

/// Returns the number of bytes of memory that the shared memory of this job takes. The job's shared memory is
/// one file without a name, and this process has a descriptor of it.
fn shared() -> u64 {
    let entries = std::fs::read_dir("/proc/self/fd").expect("the open files");
    let of_job = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an open file").path();
        let target = std::fs::read_link(&path).ok()?;
        let ours = target.to_str()?.contains("memfd:typepack-job");
        ours.then(|| std::fs::metadata(&path).expect("the file's size").blocks() * 512)
    };
    entries.filter_map(of_job).max().expect("the job's shared memory")
}

/// Returns the value that byte `at` of the part from rank `from` to rank `to` has.
fn value(from: usize, to: usize, at: usize) -> u8 {
    (from * 7 + to * 13 + at * 5 + at / 256) as u8
}

/// Makes an alltoall in which every rank sends one element to every rank, and checks what has arrived. An element of
/// `plan` has `len` bytes of data and an extent of `span` bytes.
fn exchange(world: &Communicator, (plan, len, span): (&Plan, usize, usize), in_place: bool) {
    let (rank, size) = (world.rank(), world.size());
    let mut out = vec![0xee_u8; size * span];
    for to in 0..size {
        (0..len).for_each(|at| out[to * span + at] = value(rank, to, at));
    }
    let mut got = if in_place { out.clone() } else { vec![0xee; size * span] };
    let parts = |memory: *mut u8| -> Vec<Elements<&Plan>> {
        let at = |rank: usize| memory.wrapping_add(rank * span);
        (0..size).map(|rank| Elements { origin: at(rank), plan, count: 1 }).collect()
    };
    let (send, receive) = (parts(out.as_mut_ptr()), parts(got.as_mut_ptr()));
    let send = (!in_place).then_some(&send[..]);
    // SAFETY: the vectors hold one element for each rank, are different, and live longer than the call.
    unsafe { world.run_raw(&Collective::AlltoallEqual { send, receive: &receive }).unwrap() };
    for from in 0..size {
        for at in 0..span {
            let wanted = if at < len { value(from, rank, at) } else { 0xee };
            assert_eq!(got[from * span + at], wanted, "rank {rank}, byte {at} from {from}");
        }
    }
}

/// Returns the plan of a type with `len` bytes of data and an extent of `span` bytes.
fn gapped(len: usize, span: usize) -> Plan {
    let data = Datatype::contiguous(len as i64, &Datatype::named(Named::U8)).unwrap();
    commit(&Datatype::resized(0, span as i64, &data).unwrap()).unwrap()
}

fn exchanges(world: &Communicator) {
    for (len, span) in [(1, 1), (8, 8), (8, 24), (255, 300), (256, 256), (257, 257), (5000, 5003)] {
        let plan = gapped(len, span);
        for in_place in [false, true] {
            exchange(world, (&plan, len, span), in_place);
        }
    }
}

#[test]
fn equal_parts_reach_every_rank_of_seven() {
    ranks(7, "equal_parts_reach_every_rank_of_seven", exchanges);
}

#[test]
fn equal_parts_reach_every_rank_of_eight() {
    ranks(8, "equal_parts_reach_every_rank_of_eight", exchanges);
}

#[test]
fn equal_parts_reach_every_rank_of_thirteen() {
    ranks(13, "equal_parts_reach_every_rank_of_thirteen", exchanges);
}

#[test]
fn short_parts_of_many_ranks_take_little_memory() {
    ranks(128, "short_parts_of_many_ranks_take_little_memory", |world| {
        exchange(world, (&gapped(8, 8), 8, 8), false);
        world.barrier().unwrap();
        let taken = shared();
        assert!(taken <= 64 * MIB, "the job takes {taken} bytes of shared memory");
    });
}

/// Checks that parts which are too long for the rings pass through few chunks of shared memory.
#[test]
fn long_parts_of_many_ranks_share_few_chunks() {
    // Forced eager messages of this length would need a larger ring for each pair.
    let auto = [("TYPEPACK_TRANSPORT", "auto")];
    ranks_with(128, "long_parts_of_many_ranks_share_few_chunks", &auto, |world| {
        const LEN: usize = 16 << 10;
        for _ in 0..2 {
            exchange(world, (&gapped(LEN, LEN), LEN, LEN), false);
        }
        world.barrier().unwrap();
        let taken = shared();
        assert!(taken <= 512 * MIB, "the job takes {taken} bytes of shared memory");
    });
}

/// Runs a job of `size` ranks in a cgroup with a limit of `limit` bytes, of which `used` bytes are in use. The
/// files of the cgroup are fake: they lie in a mount that only the job sees. Returns `None` if the system does
/// not allow such a mount.
fn in_a_cgroup(size: usize, limit: u64, used: u64, name: &str) -> Option<std::process::Output> {
    let may = Command::new("unshare").args(["-m", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: unshare -m is not allowed");
        return None;
    }
    let script = format!(
        "if [ -d /sys/fs/cgroup/memory ]; then
            root=/sys/fs/cgroup/memory
            path=$(sed -n 's/^[0-9]*:\\([^:]*,\\)*memory\\(,[^:]*\\)*://p' /proc/self/cgroup)
            limit=memory.limit_in_bytes usage=memory.usage_in_bytes
        else
            root=/sys/fs/cgroup
            path=$(sed -n 's/^0:://p' /proc/self/cgroup)
            limit=memory.max usage=memory.current
        fi
        mount -t tmpfs tmpfs \"$root\"
        mkdir -p \"$root$path\"
        echo {limit} > \"$root$path/$limit\"
        echo {used} > \"$root$path/$usage\"
        exec \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", &script, "sh"]).arg(mpiexec());
    command.args(["-n", &size.to_string()]).args(body(name));
    Some(run(command, name, &[]))
}

/// Checks that a job in a small cgroup keeps within the limit and still gives the right results, and that it
/// ends with an error that names the limit if not even its first messages have memory.
#[test]
fn a_small_cgroup_makes_the_job_slow_and_then_fail() {
    const NAME: &str = "a_small_cgroup_makes_the_job_slow_and_then_fail";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        let world = universe.world();
        const LEN: usize = 300 << 10;
        if world.size() > 2 {
            exchange(&world, (&gapped(LEN, LEN), LEN, LEN), false);
            // Of the limits of 48 and 256 MiB, 16 MiB are in use and 8 MiB must stay free. So 24 and 232 MiB are left.
            // The job may take 1 MiB more for those parts of the shared memory that belong to no pair of ranks.
            let most = if world.size() == 20 { 25 * MIB } else { 233 * MIB };
            let taken = shared();
            assert!(taken <= most, "the job takes {taken} bytes of shared memory");
        } else {
            let error = world.barrier().expect_err("no memory for a first contact");
            assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
            let line = error.to_string();
            assert!(line.contains("limit: memory."), "{line}");
        }
        return;
    }
    for (size, limit) in [(20, 48 * MIB), (32, 256 * MIB), (2, 17 * MIB)] {
        let Some(output) = in_a_cgroup(size, limit, 16 * MIB, NAME) else { return };
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(text(&output).matches("1 passed").count(), size, "{}", text(&output));
    }
}
