//! Checks that no choice of a transport, a copy method or a kernel changes a result: the ranks of real jobs
//! pack, send and receive random types, first with free choices and then with each choice forced.
//!
//! The streams are fixed. `FUZZ_CASES` scales the number of cases (in percent of the default number), and
//! `FUZZ_SEED` selects other streams. From `FUZZ_CASES=1000` on, every transport is also combined with
//! every copy method and with every kernel strategy; otherwise each choice is forced alone.

use arbitrary::Unstructured;
use std::process::Command;
use typepack::engine::contiguous::{self, Method};
use typepack::{Communicator, Plan, SharedBuffer, Universe};
use typepack_engine::{Datatype, typemap};
use typepack_fuzz::{Mode, Stream};

const NAME: &str = "random_types_arrive_whatever_is_chosen";
const SEED: u64 = 0x6368_6f69_6365_5f31;
const CASES: u64 = 80;

/// From this value of `FUZZ_CASES` on, the forced choices are combined.
const CAMPAIGN: u64 = 1000;

/// Approximate packed sizes of messages, in bytes, from a short message to one of many chunks. Both counts of a
/// case are multiplied so that its packed size is near one of them.
const SIZES: [u64; 4] = [1, 20_000, 150_000, 700_000];

/// Limit for the memory that one side of a message spans, in bytes.
const MOST: i64 = 4 << 20;

/// Fill value of the receiver's memory.
const KEPT: u8 = 0xc3;

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}

/// One side of a message.
struct Side {
    ty: Datatype,
    plan: Plan,
    count: u64,
    /// The byte of the memory at which displacement 0 lies (`origin`), and the length of the memory
    /// (`bytes`).
    origin: usize,
    bytes: usize,
}

impl Side {
    /// Returns the side with `count` elements of a type; `None` if the elements span too much memory.
    fn new(ty: Datatype, count: u64) -> Option<Self> {
        let last = i64::try_from(count.checked_sub(1)?).ok()?.checked_mul(ty.extent())?;
        let low = last.min(0).checked_add(ty.true_lb())?;
        let high = last.max(0).checked_add(ty.true_ub())?;
        let (origin, end) = (0.max(-low), high.max(0));
        let bytes = origin.checked_add(end)?;
        let plan = typepack::commit(&ty).expect("a plan");
        (bytes <= MOST).then_some(Self {
            ty,
            plan,
            count,
            origin: origin as usize,
            bytes: bytes as usize,
        })
    }

    fn packed(&self, memory: &[u8]) -> Vec<u8> {
        typemap::pack(&self.ty, self.count, memory, self.origin)
    }
}

/// Returns the two sides of case `index`. Their packed size is about one of `SIZES`, or less if they would
/// span too much memory.
fn sides(seed: u64, index: u64) -> Option<[Side; 2]> {
    let bytes = Stream::new(seed, index).bytes(1500);
    let mode = [Mode::Any, Mode::Regular][index as usize % 2];
    let pair = typepack_fuzz::Pair::generate(&mut Unstructured::new(&bytes), mode).ok()?;
    let [from, to] = [pair.from, pair.to].map(|case| (case.recipe.build(), case.count));
    let (from, to) = ((from.0.ok()?, from.1), (to.0.ok()?, to.1));
    let packed = from.0.size() as u64 * from.1;
    let mut times = SIZES[index as usize / 2 % SIZES.len()].div_ceil(packed.max(1));
    while times > 0 {
        let side = |(ty, count): &(Datatype, u64)| Side::new(ty.clone(), count * times);
        if let (Some(from), Some(to)) = (side(&from), side(&to)) {
            return Some([from, to]);
        }
        times /= 4;
    }
    None
}

/// Sends and receives random types between two ranks. Rank 0 receives and checks.
fn exchange(universe: &Universe) {
    let world = universe.world();
    let seed = number("FUZZ_SEED", SEED);
    let cases = CASES * number("FUZZ_CASES", 100) / 100;
    let (mut checked, mut long) = (0, 0);
    for index in 0..cases {
        let Some([from, to]) = sides(seed, index) else { continue };
        let memory = Stream::new(seed ^ 1, index).bytes(from.bytes);
        let packed = from.packed(&memory);
        // Each rank computes what it needs: rank 0 what must arrive, and rank 1 the data that it packs itself, too.
        let mut wanted = vec![];
        if world.rank() == 0 {
            wanted = vec![KEPT; to.bytes];
            typemap::unpack(&to.ty, to.count, &packed, &mut wanted, to.origin);
        } else {
            local(&from, &memory, &packed, index);
        }
        let shared = |bytes: &[u8]| -> SharedBuffer<u8> {
            let mut buffer = universe.shared_buffer(bytes.len()).expect("memory");
            buffer.copy_from_slice(bytes);
            buffer
        };
        // The memory of each rank is private or shared. Each of the four combinations occurs twice, because
        // a choice can learn from the first message.
        for turn in 0..8 {
            let what = format!("case {index}, turn {turn}: {} bytes", packed.len());
            let heap = [turn & 1 != 0, turn & 2 != 0];
            if world.rank() == 1 {
                let source = shared(&memory);
                send(&world, &from, if heap[0] { &source } else { &memory });
            } else if heap[1] {
                let mut target = shared(&vec![KEPT; to.bytes]);
                receive(&world, &to, &mut target, packed.len());
                assert!(*target == wanted[..], "{what}");
            } else {
                let mut target = vec![KEPT; to.bytes];
                receive(&world, &to, &mut target, packed.len());
                assert!(target == wanted, "{what}");
            }
        }
        checked += 1;
        long += u64::from(packed.len() > 16 << 10);
    }
    assert!(checked > cases / 2 && long > cases / 4, "{checked} cases, {long} long ones");
}

fn send(world: &Communicator, side: &Side, memory: &[u8]) {
    world.send_elements_at(memory, side.origin, &side.plan, side.count, 0, 1).expect("sent");
}

fn receive(world: &Communicator, side: &Side, memory: &mut [u8], bytes: usize) {
    let status = world.recv_elements_at(memory, side.origin, &side.plan, side.count, 1, 1);
    assert_eq!(status.expect("received").bytes, bytes as u64);
}

/// Packs within this process, with the copies that `engine/src/contiguous/own.rs` chooses: 300 KiB of
/// contiguous bytes, and then the data of `side`, unless the data begins before the origin.
fn local(side: &Side, memory: &[u8], packed: &[u8], index: u64) {
    let long = Stream::new(7, index).bytes(300 << 10);
    let byte = Datatype::named(typepack::Named::U8);
    let plan = typepack::commit(&Datatype::contiguous(long.len() as i64, &byte).expect("a type"));
    let mut copy = vec![0; long.len()];
    typepack_engine::pack(&plan.expect("a plan"), 1, &long, &mut copy).expect("packed");
    assert!(copy == long, "case {index}: 300 KiB");
    if side.origin > 0 {
        return;
    }
    let mut found = vec![0; packed.len()];
    typepack_engine::pack(&side.plan, side.count, memory, &mut found).expect("packed");
    assert!(found == packed, "case {index}: pack");
}

/// Returns the environment variables of each job.
fn settings(combined: bool) -> Vec<Vec<(&'static str, &'static str)>> {
    let copies: Vec<_> =
        contiguous::available().map(|m: Method| ("TYPEPACK_COPY", m.name())).collect();
    let protocols =
        ["ring", "eager", "pipeline", "heap", "cma"].map(|name| ("TYPEPACK_TRANSPORT", name));
    let kernels = ["leaf", "kernel", "interpreter"].map(|name| ("TYPEPACK_KERNEL", name));
    let others = [
        ("TYPEPACK_TUNE", "off"),
        ("TYPEPACK_SPIN_US", "0"),
        ("TYPEPACK_EAGER_LIMIT", "0"),
        ("TYPEPACK_CMA", "off"),
    ];
    let mut list = vec![Vec::new()];
    let alone = others.iter().chain(&copies).chain(&protocols).chain(&kernels);
    list.extend(alone.map(|&one| vec![one]));
    if combined {
        for &protocol in &protocols {
            for &copy in &copies {
                list.push(vec![protocol, copy]);
                list.extend(kernels.map(|kernel| vec![protocol, copy, kernel]));
            }
            list.push(vec![protocol, ("TYPEPACK_TUNE", "off")]);
        }
    }
    list
}

#[test]
fn random_types_arrive_whatever_is_chosen() {
    if crate::job::is_rank() {
        return exchange(&typepack::init().expect("joining the job"));
    }
    let list = settings(number("FUZZ_CASES", 100) >= CAMPAIGN);
    for variables in &list {
        let mut command = Command::new(crate::job::mpiexec());
        for name in typepack::variables::variables().iter().map(|variable| variable.name) {
            command.env_remove(name);
        }
        command.args(["-n", "2"]).args(crate::job::body(NAME));
        let output = crate::job::run(command, NAME, variables);
        let text = crate::job::text(&output);
        assert!(output.status.success(), "{variables:?}: {}\n{text}", output.status);
        assert_eq!(text.matches("1 passed").count(), 2, "{variables:?}\n{text}");
    }
}
