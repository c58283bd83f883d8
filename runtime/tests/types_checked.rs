//! Tests of `TYPEPACK_CHECK_TYPES`. If the types of a message and of its receive differ, the receiver must
//! get an error, with every protocol. Types that match by the rules of the standard must be accepted.

use crate::job::ranks_with;
use typepack::engine::Elements;
use typepack::topo::Grid;
use typepack::{
    Collective, Combine, Communicator, Datatype, Error, ErrorClass, ErrorKind, Named, Operation,
    Operator, Plan, Result, Root, SendMode, SharedBuffer, Source, Status, Tag, commit,
};

const CHECKED: (&str, &str) = ("TYPEPACK_CHECK_TYPES", "1");

fn plan(named: Named) -> Plan {
    commit(&Datatype::named(named)).unwrap()
}

/// Lengths of the messages, in elements of 4 bytes. The messages fit in the slot, fit in the ring, are too
/// long for the ring, or are long enough for both ranks to copy.
const LENGTHS: [usize; 5] = [1, 8, 500, 5_000, 600_000];

/// How a rank receives a message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// By a blocking receive.
    Now,
    /// By a receive that is posted before the send.
    Early,
    /// By a receive that is posted after the message has arrived.
    Late,
    /// By a matched probe.
    Matched,
}

/// Waits until both ranks of the pair have called this function.
fn meet(world: &Communicator, other: usize) {
    let byte = plan(Named::U8);
    let mut theirs = [0u8];
    if other != world.rank() {
        world
            .sendrecv_elements(&[1u8], &byte, 1, other, 99, &mut theirs, &byte, 1, other, 99)
            .unwrap();
    }
}

/// Sends a message of type `sent` to rank `other`, and receives a message from rank `other` as type
/// `expected`. Rank `other` calls this function too. Returns the result of this rank's receive.
///
/// # Safety
///
/// - `from` is the address of displacement 0 of elements of `sent` that are readable until the call returns.
/// - `to` is the address of displacement 0 of elements of `expected` that are writable until the call
///   returns.
unsafe fn exchanged(
    world: &Communicator,
    other: usize,
    (mode, way): (SendMode, Way),
    (from, sent, n): (*const u8, &Plan, u64),
    (to, expected, room): (*mut u8, &Plan, u64),
) -> Result<Status> {
    let messages = world.messages();
    let tag = 5;
    let finish = |operation: Result<Operation>| operation.and_then(|op| messages.finish(op));
    // SAFETY: the caller guarantees that `from` is readable and `to` is writable until this function returns
    // (both conditions of `# Safety`). Both operations end before this function returns.
    unsafe {
        let receive = || {
            messages.receive(Elements::new(to, expected, room), Source::Rank(other), Tag::Is(tag))
        };
        let early = (way == Way::Early).then(&receive);
        if way == Way::Early {
            meet(world, other);
        }
        let sending = messages.send(mode, Elements::new(from, sent, n), other, tag).unwrap();
        let received = match way {
            Way::Early => finish(early.unwrap()),
            Way::Now => messages.receive_now(
                Elements::new(to, expected, room),
                Source::Rank(other),
                Tag::Is(tag),
            ),
            Way::Late => {
                messages.probe(Source::Rank(other), Tag::Is(tag), true).unwrap().unwrap();
                finish(receive())
            }
            Way::Matched => {
                let found = messages.take(Source::Rank(other), Tag::Is(tag), true).unwrap();
                finish(messages.receive_matched(Elements::new(to, expected, room), found.unwrap()))
            }
        };
        messages.finish(sending).unwrap();
        received
    }
}

fn mismatch(result: Result<Status>, other: usize, bytes: usize) -> Error {
    let error = result.expect_err("other types");
    assert_eq!((error.kind(), error.class()), (ErrorKind::Type, ErrorClass::TYPE), "{error}");
    assert_eq!(error.received(), Some(Status { source: other, tag: 5, bytes: bytes as u64 }));
    error
}

/// Checks mismatches and matches in every mode of sending, with every way to receive and every length, from
/// ordinary and from shared memory.
fn every_way(world: &Communicator) {
    let other = world.size() - 1 - world.rank();
    let (int, float) = (plan(Named::INT), plan(Named::FLOAT));
    let mut lent = vec![0u8; 4 * 600_000];
    for n in LENGTHS {
        let mut memory = [vec![7u32; n], vec![1u32; n + 3]];
        let mut shared =
            [SharedBuffer::<u32>::zeroed(n).unwrap(), SharedBuffer::<u32>::zeroed(n + 3).unwrap()];
        shared[0].fill(7);
        shared[1].fill(1);
        let [a, b] = &mut memory;
        let [c, d] = &mut shared;
        let pairs: [(&mut [u32], &mut [u32]); 2] = [(a, b), (c, d)];
        for (from, to) in pairs {
            let lent = lent.as_mut_ptr();
            for mode in [
                SendMode::Standard,
                SendMode::Synchronous,
                SendMode::Buffered(None),
                SendMode::lent(lent),
            ] {
                for way in [Way::Now, Way::Early, Way::Late, Way::Matched] {
                    let name = format!("{n} {mode:?} {way:?}");
                    let go = |expected: &Plan, to: &mut [u32]| {
                        let source = (from.as_ptr().cast(), &int, n as u64);
                        let target = (to.as_mut_ptr().cast(), expected, n as u64 + 3);
                        // SAFETY: the slices of `source` and `target` hold the elements and outlive the call.
                        unsafe { exchanged(world, other, (mode, way), source, target) }
                    };
                    let error = mismatch(go(&float, to), other, 4 * n);
                    let times = if n == 1 { String::new() } else { format!("{n} x ") };
                    let text = format!("{times}float 4 expected, {times}integer 4 sent");
                    assert!(error.to_string().ends_with(&text), "{error}");
                    assert!(to.iter().all(|&value| value == 1), "{name}: it was written to");
                    // After the mismatch the job continues. A message of the right type must arrive.
                    let status = go(&int, to).unwrap();
                    assert_eq!(status.bytes, 4 * n as u64, "{name}");
                    assert!(to[..n] == *from && to[n..] == [1; 3], "{name}");
                    to.fill(1);
                }
            }
        }
    }
    meet(world, other);
}

#[test]
fn every_way_is_checked() {
    ranks_with(2, "every_way_is_checked", &[CHECKED], every_way);
}

#[test]
fn messages_to_oneself_are_checked() {
    ranks_with(1, "messages_to_oneself_are_checked", &[CHECKED], every_way);
}

#[test]
fn every_way_is_checked_through_the_pipeline() {
    let env = [CHECKED, ("TYPEPACK_TRANSPORT", "pipeline")];
    ranks_with(2, "every_way_is_checked_through_the_pipeline", &env, every_way);
}

#[test]
fn every_way_is_checked_in_parts() {
    let env = [CHECKED, ("TYPEPACK_TRANSPORT", "parts")];
    ranks_with(2, "every_way_is_checked_in_parts", &env, every_way);
}

#[test]
fn every_way_is_checked_out_of_the_heap() {
    let env = [CHECKED, ("TYPEPACK_TRANSPORT", "heap")];
    ranks_with(2, "every_way_is_checked_out_of_the_heap", &env, every_way);
}

#[test]
fn every_way_is_checked_between_memories() {
    let env = [CHECKED, ("TYPEPACK_TRANSPORT", "cma"), ("TYPEPACK_SPIN_US", "0")];
    ranks_with(2, "every_way_is_checked_between_memories", &env, every_way);
}

/// Checks a list of pairs of types. An entry has the sender's type and count, the receiver's type and count,
/// and true if they match.
fn meetings(world: &Communicator) {
    let other = world.size() - 1 - world.rank();
    let named = Datatype::named;
    let pair = Datatype::structured(&[1, 1], &[0, 8], &[named(Named::INT), named(Named::DOUBLE)]);
    let pair = pair.unwrap();
    let resized = Datatype::resized(-8, 64, &pair).unwrap();
    let column = Datatype::vector(6, 1, 3, &pair).unwrap();
    let row = Datatype::contiguous(6, &resized).unwrap();
    let types = [named(Named::INT32_T), named(Named::DOUBLE), named(Named::UNSIGNED)];
    let front = Datatype::structured(&[1, 1, 1], &[0, 8, 16], &types).unwrap();
    let packed = named(Named::PACKED);
    for (sent, n, expected, room, fits) in [
        (named(Named::LONG), 9, named(Named::INT64_T), 9, true),
        (named(Named::LONG), 9, named(Named::UINT64_T), 30, true),
        (named(Named::LONG), 9, named(Named::DOUBLE), 9, false),
        (named(Named::INT), 2, named(Named::LONG), 1, false),
        (named(Named::DOUBLE), 3, named(Named::DOUBLE_PRECISION), 4, true),
        (
            named(Named::DOUBLE_INT),
            3,
            Datatype::structured(&[1, 1], &[0, 8], &[named(Named::DOUBLE), named(Named::INT)])
                .unwrap(),
            3,
            true,
        ),
        (named(Named::INT), 6, named(Named::PAIR_INT), 3, true),
        (named(Named::INT), 5, named(Named::PAIR_INT), 3, true),
        (named(Named::CHAR), 8, named(Named::BYTE), 8, false),
        (named(Named::BYTE), 8, named(Named::LONG), 1, false),
        (named(Named::BYTE), 8, named(Named::BYTE), 8, true),
        (named(Named::CHAR), 8, named(Named::SIGNED_CHAR), 8, false),
        (packed.clone(), 24, pair.clone(), 2, true),
        (packed.clone(), 5, pair.clone(), 2, true),
        (pair.clone(), 2, packed.clone(), 24, true),
        (pair.clone(), 2, packed, 100, true),
        (column.clone(), 2, row.clone(), 2, true),
        (row.clone(), 1, column.clone(), 3, true),
        // These messages end inside an element of the receive: at its second member, or inside that member.
        (front.clone(), 1, pair.clone(), 2, true),
        (front.clone(), 1, column.clone(), 1, true),
        (front, 2, pair.clone(), 4, false),
        (named(Named::INT), 1, pair.clone(), 1, true),
        (named(Named::INT), 2, pair.clone(), 1, false),
        (named(Named::DOUBLE), 0, named(Named::INT), 3, true),
        (Datatype::contiguous(0, &pair).unwrap(), 3, named(Named::CHAR), 0, true),
        // These messages have many elements of a large type. The check must cover all of them.
        (Datatype::contiguous(10_000, &pair).unwrap(), 3, pair.clone(), 30_000, true),
        (column, 10_000, pair, 60_000, true),
    ] {
        let (a, b) = (commit(&sent).unwrap(), commit(&expected).unwrap());
        let room_of = |plan: &Plan, count: u64| {
            let place = plan.footprint();
            (place.extent.max(place.true_ub).max(64) as usize) * (count as usize + 1) + 128
        };
        let from = vec![3u8; room_of(&a, n)];
        for way in [Way::Now, Way::Early, Way::Late, Way::Matched] {
            let mut to = vec![1u8; room_of(&b, room)];
            let source = (from[64..].as_ptr(), &a, n);
            let target = (to[64..].as_mut_ptr(), &b, room);
            // SAFETY: the vectors hold the elements, even if the type has a negative lower bound, and they
            // outlive the call.
            let result =
                unsafe { exchanged(world, other, (SendMode::Standard, way), source, target) };
            let bytes = a.packed_bytes(n).unwrap();
            let name = format!("{n} x {sent:?} to {room} x {expected:?}: {result:?}");
            if fits {
                assert_eq!(result.expect(&name).bytes, bytes);
                assert!(to.iter().filter(|&&byte| byte == 3).count() as u64 == bytes, "{name}");
            } else {
                mismatch(result, other, bytes as usize);
                assert!(to.iter().all(|&byte| byte == 1), "{name}");
            }
        }
    }
}

#[test]
fn what_matches_arrives() {
    ranks_with(2, "what_matches_arrives", &[CHECKED], meetings);
}

#[test]
fn what_matches_arrives_at_oneself() {
    ranks_with(1, "what_matches_arrives_at_oneself", &[CHECKED], meetings);
}

/// Checks that a message that is too long gives the error "truncated" even if its types differ. The library
/// can compare only the types of whole messages, and not the types of the part that fits in the receive.
#[test]
fn messages_too_long_are_truncated() {
    ranks_with(2, "messages_too_long_are_truncated", &[CHECKED], |world| {
        let (int, float, other) = (plan(Named::INT), plan(Named::FLOAT), 1 - world.rank());
        for n in LENGTHS.into_iter().skip(1) {
            let (data, mut got) = (vec![1u32; n], vec![2u32; n - 1]);
            let source = (data.as_ptr().cast(), &int, n as u64);
            let target = (got.as_mut_ptr().cast(), &float, n as u64 - 1);
            let how = (SendMode::Buffered(None), Way::Now);
            // SAFETY: the vectors of `source` and `target` hold the elements and outlive the call.
            let result = unsafe { exchanged(world, other, how, source, target) };
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Truncated);
        }
    });
}

/// Checks that no rank gets an error if the check is off.
#[test]
fn unchecked_messages_are_bytes() {
    ranks_with(2, "unchecked_messages_are_bytes", &[("TYPEPACK_CHECK_TYPES", "0")], |world| {
        let (int, float, other) = (plan(Named::INT), plan(Named::FLOAT), 1 - world.rank());
        for n in LENGTHS {
            let (data, mut got) = (vec![1u32; n], vec![2u32; n]);
            let source = (data.as_ptr().cast(), &int, n as u64);
            let target = (got.as_mut_ptr().cast(), &float, n as u64);
            let how = (SendMode::Buffered(None), Way::Now);
            // SAFETY: `data` and `got` hold the elements and outlive the call.
            unsafe { exchanged(world, other, how, source, target) }.unwrap();
            assert!(got == data);
        }
    });
}

// ---- collective calls ----

/// Numbers of elements. The test makes its collective calls with each of these numbers in turn: in one
/// round, the part of every rank has this number of elements. An element has 4 bytes.
const SHARES: [usize; 3] = [1, 500, 5_000];

/// Cuts a vector into parts of `n` elements.
fn parts<'a>(memory: &mut [u32], n: usize, plan: &'a Plan) -> Vec<Elements<&'a Plan>> {
    let part =
        |chunk: &mut [u32]| Elements { origin: chunk.as_mut_ptr().cast(), plan, count: n as u64 };
    memory.chunks_mut(n).map(part).collect()
}

fn kind(result: Result<()>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// How a test makes a collective call. In both forms, all ranks compare their arguments before data move, so all of
/// them get the same error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The call returns the error.
    Run,
    /// The operation that the call starts ends with the error.
    Start,
}

/// Makes a collective call.
///
/// # Safety
///
/// - The memory of `call` satisfies the conditions of `Communicator::run_raw`.
unsafe fn make(world: &Communicator, form: Form, call: &Collective<'_>) -> Result<()> {
    match form {
        // SAFETY: the caller guarantees that the memory is valid until the call returns.
        Form::Run => unsafe { world.run_raw(call) },
        Form::Start => {
            // SAFETY: the caller guarantees that the memory is valid until this function returns, and the operation
            // has ended before that.
            let operation = unsafe { world.start_raw(call)? };
            world.messages().finish(operation).map(drop)
        }
    }
}

/// Checks collective operations, made in the form `form`. Rank `odd` passes types that differ from those of all other
/// ranks; if `odd` is `None`, all ranks pass the same types.
fn collectives(world: &Communicator, odd: Option<usize>, root: usize, form: Form) {
    let (rank, size) = (world.rank(), world.size());
    let (int, float) = (plan(Named::INT), plan(Named::FLOAT));
    let is_odd = odd == Some(rank);
    let mine = if is_odd { &float } else { &int };
    for n in SHARES {
        let mut one = vec![rank as u32; n];
        let mut all = vec![77u32; n * size];
        let own = |one: &mut Vec<u32>| Elements {
            origin: one.as_mut_ptr().cast(),
            plan: mine,
            count: n as u64,
        };

        let fails = odd.is_some();
        let part = own(&mut one);
        // SAFETY: `one` holds the part and outlives the call.
        let result =
            unsafe { make(world, form, &Collective::Broadcast { part, root: root.into() }) };
        assert_eq!(kind(result).is_some(), fails, "broadcast {rank} {odd:?} {root} {form:?}");
        assert!(one.iter().all(|&value| value == if fails { rank } else { root } as u32));

        one.fill(rank as u32);
        let parts_of_all = parts(&mut all, n, mine);
        let (mine_only, rows, to) = (Some(own(&mut one)), &parts_of_all[..], Root::from(root));
        // SAFETY: `one` and the vector of `rows` hold the parts, are disjoint and outlive the gather.
        let result = unsafe {
            make(world, form, &Collective::Gather { mine: mine_only, parts: rows, root: to })
        };
        assert_eq!(kind(result), fails.then_some(ErrorKind::Type));

        // SAFETY: `one` and the vector of `rows` hold the parts, are disjoint and outlive the scatter.
        let result = unsafe {
            make(world, form, &Collective::Scatter { parts: rows, mine: mine_only, root: to })
        };
        assert_eq!(kind(result), fails.then_some(ErrorKind::Type));

        // SAFETY: `one` and the vector of `rows` hold the parts, are disjoint and outlive the allgather.
        let result =
            unsafe { make(world, form, &Collective::Allgather { mine: mine_only, parts: rows }) };
        assert_eq!(kind(result).is_some(), odd.is_some(), "allgather {rank} {odd:?}");

        let mut others = vec![5u32; n * size];
        let sent = parts(&mut others, n, mine);
        for send in [Some(&sent[..]), None] {
            // SAFETY: the vectors of `sent` and `rows` hold the parts, are disjoint and outlive the call.
            let result =
                unsafe { make(world, form, &Collective::Alltoall { send, receive: rows }) };
            assert_eq!(kind(result), odd.map(|_| ErrorKind::Type), "alltoall {rank} {odd:?}");
        }

        let (plan, count) = (mine, n as u64);
        let add = Combine::user(|lower, upper, _, elements| {
            for i in 0..elements as usize {
                // SAFETY: the reduction passes two vectors of `elements` elements, and `i < elements`.
                unsafe {
                    let (lower, upper) = (lower.cast::<u32>().add(i), upper.cast::<u32>().add(i));
                    upper.write_unaligned(upper.read_unaligned() + lower.read_unaligned());
                }
            }
        });
        let (from, mut sum) = (vec![2u32; n], vec![0u32; n]);
        let (send, recv, combine) = (Some(from.as_ptr().cast()), sum.as_mut_ptr().cast(), &add);
        let call = Collective::Reduce { send, recv, plan, count, combine, root: to };
        // SAFETY: the vectors at `from` and `sum` hold `count` elements and outlive the reduction.
        let result = unsafe { make(world, form, &call) };
        assert_eq!(result.is_err(), odd.is_some(), "reduce {odd:?} {root}");
        if rank == root {
            assert!(odd.is_some() || sum.iter().all(|&value| value == 2 * size as u32));
        }
        let recv = sum.as_mut_ptr().cast();
        let call = Collective::Allreduce { send, recv, plan, count, combine };
        // SAFETY: the vectors at `from` and `sum` hold `count` elements and outlive the allreduce.
        let result = unsafe { make(world, form, &call) };
        assert_eq!(result.is_err(), odd.is_some(), "allreduce {rank} {odd:?}");
        assert!(odd.is_some() || sum.iter().all(|&value| value == 2 * size as u32));
        world.barrier().unwrap();
    }
}

/// Checks the collective operations with the first and the last rank as the root, and with each rank as the
/// odd rank.
fn collectives_of_all(world: &Communicator) {
    let size = world.size();
    for (root, form) in
        [(0, Form::Run), (size - 1, Form::Run), (0, Form::Start), (size - 1, Form::Start)]
    {
        collectives(world, None, root, form);
        for odd in (0..size).filter(|_| size > 1) {
            collectives(world, Some(odd), root, form);
        }
    }
}

#[test]
fn collective_calls_are_checked() {
    ranks_with(5, "collective_calls_are_checked", &[CHECKED], collectives_of_all);
}

#[test]
fn collective_calls_of_two_are_checked() {
    ranks_with(2, "collective_calls_of_two_are_checked", &[CHECKED], collectives_of_all);
}

#[test]
fn collective_calls_of_eight_are_checked() {
    ranks_with(8, "collective_calls_of_eight_are_checked", &[CHECKED], collectives_of_all);
}

/// Checks that all ranks get the same text, which names the argument and both values.
#[test]
fn differing_arguments_are_named() {
    ranks_with(3, "differing_arguments_are_named", &[CHECKED], |world| {
        let (int, float, last) = (plan(Named::INT), plan(Named::FLOAT), world.rank() == 2);
        let mut values = [0u32; 9];
        let origin = values.as_mut_ptr().cast::<u8>();
        let part = |plan, count| Elements { origin, plan, count };
        let mine = |types: bool, counts: bool| {
            part(if last && types { &float } else { &int }, if last && counts { 3 } else { 2 })
        };
        let (user, sum) = (Combine::user(|_, _, _, _| {}), Operator::Sum);
        let sum = sum.combine(&Datatype::named(Named::INT)).expect("defined");
        let combine = if last { &user } else { &sum };
        let rows = [part(&int, 2); 3];
        let broadcast = |part, root: usize| Collective::Broadcast { part, root: root.into() };
        let gather = Collective::Gather {
            mine: Some(Elements { origin: origin.wrapping_add(24), ..mine(false, true) }),
            parts: &rows,
            root: 0.into(),
        };
        let reduction =
            Collective::Allreduce { send: None, recv: origin, plan: &int, count: 2, combine };
        let other = if last { Collective::Barrier } else { broadcast(mine(false, false), 0) };
        for (call, text) in [
            (
                broadcast(mine(false, false), last.into()),
                "root: rank 0 passed 0, and rank 2 passed 1",
            ),
            (
                broadcast(mine(false, true), 1),
                "count: rank 0 passed 8 bytes of data, and rank 2 passed 12 bytes of data",
            ),
            (
                broadcast(mine(true, false), 1),
                "datatype: rank 0 passed integer 4, and rank 2 passed float 4",
            ),
            (gather, "count: rank 2 sends 12 bytes to rank 0, which receives 8 bytes"),
            (reduction, "op: rank 0 passed MPI_SUM, and rank 2 passed an operation of the user"),
            (
                other,
                "call: rank 0 calls MPI_Bcast, and rank 2 calls MPI_Barrier; all ranks must make the same calls \
                 in the same order",
            ),
        ] {
            // SAFETY: the array holds all parts, and lives until the call returns. The calls fail before they begin,
            // so that no part is written, and parts that overlap do no harm.
            let error = unsafe { make(world, Form::Run, &call) }.expect_err("the arguments differ");
            assert_eq!(error.to_string(), text);
            world.barrier().expect("the next call");
            // SAFETY: the array lives until the operation has ended, which fails before a part is written.
            let error = unsafe { make(world, Form::Start, &call) }.expect_err("they differ");
            let text =
                text.replace("MPI_Bcast", "MPI_Ibcast").replace("MPI_Barrier", "MPI_Ibarrier");
            assert_eq!(error.to_string(), text);
            world.barrier().expect("the next call");
        }
    });
}

/// Checks that ranks which make a blocking and a nonblocking call get an error, that other operations may be under way
/// meanwhile, and that a rank which skips a nonblocking call lets all others fail.
#[test]
fn differing_nonblocking_calls_end() {
    ranks_with(3, "differing_nonblocking_calls_end", &[CHECKED], |world| {
        let (int, last) = (plan(Named::INT), world.rank() == 2);
        let mut values = [[world.rank() as u32; 100]; 3];
        let origins = values.each_mut().map(|values| values.as_mut_ptr().cast::<u8>());
        let call = |at: usize, root: usize| {
            let part = Elements { origin: origins[at], plan: &int, count: 100 };
            Collective::Broadcast { part, root: root.into() }
        };
        let form = if last { Form::Start } else { Form::Run };
        // SAFETY: the array holds the parts of all calls of this test, each part is used by one operation at a time,
        // and the array lives until all operations have ended.
        let error = unsafe { make(world, form, &call(0, 0)) }.expect_err("the calls differ");
        let text = "call: rank 0 calls MPI_Bcast, and rank 2 calls MPI_Ibcast; all ranks must make the same calls in \
                    the same order";
        assert_eq!(error.to_string(), text);

        // The second of three operations fails, and the ranks wait for them in the reverse order. If the other ranks
        // are ahead, the operation fails while it starts, and the start returns the error.
        let finish = |started: Result<Operation>| {
            started.and_then(|operation| world.messages().finish(operation))
        };
        let operations = [(0, 1), (1, if last { 1 } else { 0 }), (2, 2)].map(|(at, root)| {
            // SAFETY: the array holds the part of the operation, which no other operation uses, until the operation has
            // ended.
            unsafe { world.start_raw(&call(at, root)) }
        });
        let results = operations.map(finish);
        assert_eq!(results.each_ref().map(Result::is_ok), [true, false, true]);
        assert_eq!(results[1].as_ref().map_err(|error| error.kind()), Err(ErrorKind::Root));
        assert_eq!(values.map(|values| values[99]), [1, world.rank() as u32, 2]);

        // An abandoned operation still takes part in the check, and ends. If the arguments match, the other ranks lack
        // its data. They start only after the operation is abandoned: otherwise it could be complete before.
        for (root, kind) in [(0, ErrorKind::Root), (2, ErrorKind::Other)] {
            let mut word = [0u8];
            if !last {
                world.recv(&mut word, 2, 7).expect("the word of rank 2");
            }
            // SAFETY: the array holds the part until the operation has ended or is abandoned.
            let started = unsafe { world.start_raw(&call(0, if last { 2 } else { root })) };
            if last {
                world.messages().abandon(started.expect("the others have not started"));
                (0..2).try_for_each(|rank| world.send(&word, rank, 7)).expect("the words");
            } else {
                let error = finish(started).expect_err("rank 2 has left");
                assert_eq!(error.kind(), kind, "{error}");
            }
            world.wait_for_pending().expect("nothing stays");
            world.barrier().expect("the next call");
        }

        // A rank whose own arguments are wrong takes part in no call; nobody waits for it.
        if last {
            // SAFETY: the call fails at once.
            let error = unsafe { world.start_raw(&call(0, 3)) }.expect_err("there is no rank 3");
            assert_eq!(error.kind(), ErrorKind::Root);
        } else {
            // SAFETY: the call fails before it begins, and uses no memory.
            let error = unsafe { make(world, Form::Start, &call(0, 0)) }.expect_err("rank 2 fails");
            assert_eq!(error.kind(), ErrorKind::Other);
        }
        if last {
            world.skip_started();
        } else {
            // SAFETY: the other ranks get the error before data move; the array holds the part meanwhile.
            let error = unsafe { make(world, Form::Start, &call(0, 0)) }.expect_err("rank 2 fails");
            assert_eq!(error.kind(), ErrorKind::Other);
        }
        world.barrier().expect("the next call");
    });
}

/// Checks the arguments of calls between two groups: all ranks of both groups get an error, in both forms.
#[test]
fn differing_calls_between_groups_end() {
    ranks_with(4, "differing_calls_between_groups_end", &[CHECKED], |world| {
        let (rank, int) = (world.rank(), plan(Named::INT));
        let low = rank < 2;
        let local = world.split(Some(low.into()), 0).unwrap().unwrap();
        let other = (local.rank() == 0).then_some((world, if low { 2 } else { 0 }));
        let inter = local.intercommunicator(0, other, 4).unwrap();
        let of = |operator: Operator| operator.combine(&Datatype::named(Named::INT)).unwrap();
        let (sum, max) = (of(Operator::Sum), of(Operator::Max));
        let (from, mut to) = ([rank as u32; 4], [0u32; 4]);
        let (send, recv) = (Some(from.as_ptr().cast()), to.as_mut_ptr().cast::<u8>());
        let reduction =
            |count, combine| Collective::Allreduce { send, recv, plan: &int, count, combine };
        // Rank 1 of the low group is the root, and rank `odd` of the high group names another root.
        let part = Elements { origin: recv, plan: &int, count: if rank == 0 { 0 } else { 4 } };
        let broadcast = |odd: usize| Collective::Broadcast {
            part,
            root: match rank {
                0 => Root::InMyGroup,
                1 => Root::Here,
                _ => Root::Rank(if rank == odd { 0 } else { 1 }),
            },
        };
        let odd = rank == 3;
        for form in [Form::Run, Form::Start] {
            for (call, kind) in [
                (reduction(4, if odd { &max } else { &sum }), Some(ErrorKind::Argument)),
                (reduction(if odd { 3 } else { 4 }, &sum), Some(ErrorKind::Count)),
                (reduction(4, &sum), None),
                (broadcast(3), Some(ErrorKind::Root)),
                (broadcast(9), None),
                (if odd { Collective::Barrier } else { broadcast(9) }, Some(ErrorKind::Other)),
                (Collective::Barrier, None),
            ] {
                // SAFETY: the arrays hold the elements of all calls, are disjoint and outlive the calls.
                let result = unsafe { make(&inter, form, &call) };
                assert_eq!(self::kind(result), kind, "{call:?}");
            }
            // A rank that fails alone is not awaited.
            if odd {
                if form == Form::Run { inter.skip_collective() } else { inter.skip_started() }
            } else {
                // SAFETY: the arrays outlive the call, which fails before it begins.
                let result = unsafe { make(&inter, form, &reduction(4, &sum)) };
                assert_eq!(self::kind(result), Some(ErrorKind::Other));
            }
            inter.barrier().unwrap();
        }
    });
}

/// Checks the two sides of each edge in neighbourhood collectives, also of the edges that lead from a rank to itself.
#[test]
fn differing_edges_are_named() {
    ranks_with(3, "differing_edges_are_named", &[CHECKED], |world| {
        let (rank, int, float) = (world.rank(), plan(Named::INT), plan(Named::FLOAT));
        let pair = Datatype::contiguous(2, &Datatype::named(Named::INT)).unwrap().commit().unwrap();
        let grid = Grid::new(&[3, 1], &[true, true]).unwrap();
        let ring = world.cart_create(&grid, false).unwrap().expect("every rank is in the grid");
        let neighbors = ring.topology().unwrap().neighbors();
        let (mut from, mut to) = ([rank as u32; 12], [u32::MAX; 8]);
        // What rank 2 sends to one of its four neighbours; all others send and receive two numbers.
        for (slot, plan, count, text) in [
            (
                1,
                &int,
                3,
                "count: rank 2 sends 12 bytes to rank 0, which receives 8 bytes from its source 0",
            ),
            (
                0,
                &int,
                0,
                "count: rank 2 sends 0 bytes to rank 1, which receives 8 bytes from its source 1",
            ),
            (
                0,
                &float,
                2,
                "datatype: rank 2 sends float 4 to rank 1, which receives integer 4 from its source 1",
            ),
            (
                2,
                &int,
                1,
                "count: rank 2 sends 4 bytes to rank 2, which receives 8 bytes from its source 3",
            ),
            (
                3,
                &float,
                2,
                "datatype: rank 2 sends float 4 to rank 2, which receives integer 4 from its source 2",
            ),
            (3, &pair, 1, ""),
        ] {
            let mut send = parts(&mut from, 3, &int);
            send.iter_mut().for_each(|part| part.count = 2);
            if rank == 2 {
                (send[slot].plan, send[slot].count) = (plan, count);
            }
            let receive = parts(&mut to, 2, &int);
            let call = Collective::Neighbors { neighbors, send: &send, receive: &receive };
            for form in [Form::Run, Form::Start] {
                // SAFETY: the arrays hold the parts, are disjoint, and outlive the call.
                let text_of_error =
                    unsafe { make(&ring, form, &call) }.map_err(|error| error.to_string());
                assert_eq!(text_of_error.err().unwrap_or_default(), text, "{form:?}");
            }
            let prepared = ring.prepare_raw(&call).map_err(|error| error.to_string());
            assert_eq!(prepared.err().unwrap_or_default(), text);
            ring.barrier().expect("the next call");
            let sources = [(rank + 2) % 3, (rank + 1) % 3, rank, rank];
            let arrived =
                |place| if text.is_empty() { sources[place / 2] as u32 } else { u32::MAX };
            assert_eq!(to, std::array::from_fn(arrived));
        }
    });
}

/// Checks that the library also compares the types of the part that a rank sends to itself.
#[test]
fn own_parts_are_checked() {
    ranks_with(2, "own_parts_are_checked", &[CHECKED], |world| {
        let (int, float, rank) = (plan(Named::INT), plan(Named::FLOAT), world.rank());
        let (mut one, mut all) = ([7u32; 3], [1u32; 6]);
        let own = Elements { origin: one.as_mut_ptr().cast(), plan: &int, count: 3 };
        let mut rows = parts(&mut all, 3, &int);
        rows[rank].plan = &float;
        // SAFETY: the arrays of `own` and `rows` hold the parts and outlive the call.
        let result = unsafe { world.allgather_raw(Some(own), &rows) };
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Type);
        assert!(error.to_string().contains("own part"), "{error}");
        world.barrier().unwrap();
        assert_eq!(all, [1; 6]);
    });
}
