//! Tests of the shared memory that a job of many ranks takes, and of the collective calls and transfers that
//! keep this memory small.
#![expect(dead_code, reason = "each test binary uses a part of the harness")]

mod job;

use job::ranks;
use std::os::unix::fs::MetadataExt;
use typepack::{Collective, Communicator, Datatype, Named, Part, Plan, commit};

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

/// Makes an alltoall of `bytes` bytes for every pair of ranks, and checks what has arrived. `plan` has `span`
/// bytes from element to element, and its first `len` bytes are data.
fn exchange(world: &Communicator, (plan, len, span): (&Plan, usize, usize), in_place: bool) {
    let (rank, size) = (world.rank(), world.size());
    let mut out = vec![0xee_u8; size * span];
    for to in 0..size {
        (0..len).for_each(|at| out[to * span + at] = value(rank, to, at));
    }
    let mut got = if in_place { out.clone() } else { vec![0xee; size * span] };
    let parts = |memory: *mut u8| -> Vec<Part<'_>> {
        let at = |rank: usize| memory.wrapping_add(rank * span);
        (0..size).map(|rank| Part { origin: at(rank), plan, count: 1 }).collect()
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

/// Returns a plan of `len` bytes of data, from element to element `span` bytes.
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
