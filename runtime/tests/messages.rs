//! Tests of point-to-point messages between real ranks.

use crate::job::{ranks, ranks_with};
use typepack::{
    Communicator, Datatype, ErrorKind, Named, Order, Plan, Source, Status, Tag, commit,
};
use typepack_test_support::random::Random;

fn byte() -> Plan {
    commit(&Datatype::named(Named::U8)).unwrap()
}

fn word() -> Plan {
    commit(&Datatype::named(Named::U64)).unwrap()
}

/// Returns message sizes in bytes: some small sizes, and for every limit of the transport (inline message,
/// slot, eager message, piece, chunk) the limit itself and the sizes just below and above it.
fn sizes() -> Vec<usize> {
    let mut sizes = vec![0, 1, 7, 8, 9, 3 << 20];
    for edge in [32, 64, 4096, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20] {
        sizes.extend([edge - 1, edge, edge + 1]);
    }
    sizes
}

fn every_size(world: &Communicator) {
    let byte = byte();
    let mut random = Random(1);
    for round in 0..3 {
        for size in sizes() {
            let data = random.bytes(size);
            if world.rank() == 0 {
                world.send_elements(&data, &byte, size as u64, 1, round).unwrap();
                let mut back = vec![0u8; size + 5];
                let status =
                    world.recv_elements(&mut back, &byte, size as u64 + 5, 1, round).unwrap();
                assert_eq!(status, Status { source: 1, tag: round, bytes: size as u64 });
                assert!(back[..size] == data && back[size..] == [0; 5], "{size} bytes");
            } else {
                let mut there = vec![0u8; size];
                world.recv_elements(&mut there, &byte, size as u64, 0, round).unwrap();
                assert!(there == data, "{size} bytes");
                world.send_elements(&there, &byte, size as u64, 0, round).unwrap();
            }
        }
    }
}

#[test]
fn every_size_arrives() {
    ranks(2, "every_size_arrives", every_size);
}

#[test]
fn every_size_arrives_without_spinning() {
    let env = [("TYPEPACK_SPIN_US", "0")];
    ranks_with(2, "every_size_arrives_without_spinning", &env, every_size);
}

#[test]
fn every_size_arrives_through_the_pipeline() {
    let env = [("TYPEPACK_TRANSPORT", "pipeline")];
    ranks_with(2, "every_size_arrives_through_the_pipeline", &env, every_size);
}

#[test]
fn every_size_arrives_with_the_largest_eager_limit() {
    let env = [("TYPEPACK_EAGER_LIMIT", "16384")];
    ranks_with(2, "every_size_arrives_with_the_largest_eager_limit", &env, every_size);
}

#[test]
fn order_is_kept_between_two_ranks() {
    ranks(2, "order_is_kept_between_two_ranks", |world| {
        // Send small and large messages with one tag. There are ten times as many messages as the ring has
        // slots.
        let word = word();
        let mut random = Random(2);
        for n in 0..2560u64 {
            let len = if random.below(50) == 0 { random.below(20_000) } else { random.below(40) };
            let data = vec![n; len as usize + 1];
            if world.rank() == 0 {
                world.send_elements(&data, &word, len + 1, 1, 3).unwrap();
            } else {
                let mut got = vec![0u64; len as usize + 1];
                let status =
                    world.recv_elements(&mut got, &word, len + 1, Source::Any, Tag::Any).unwrap();
                assert_eq!(status, Status { source: 0, tag: 3, bytes: 8 * (len + 1) });
                assert!(got == data, "message {n}");
            }
        }
    });
}

#[test]
fn wildcards_and_tags_select() {
    ranks(4, "wildcards_and_tags_select", |world| {
        let (word, rank) = (word(), world.rank());
        if rank > 0 {
            // The sends are nonblocking, because rank 0 receives in another order, and some transports complete
            // a send only when its receive is posted.
            let values: Vec<u64> = (0..100).map(|n| rank as u64 * 1000 + n).collect();
            world
                .scope(|scope| {
                    for n in 0..100 {
                        for tag in [2, 1] {
                            scope.isend_elements(&values[n..n + 1], &word, 1, 0, tag).unwrap();
                        }
                    }
                })
                .unwrap();
            return;
        }
        // Receive the message with tag 1 first, although the message with tag 2 was sent first. Messages with
        // the same source and tag must keep their order.
        for wanted in [1, 2] {
            let mut next = [0u64; 4];
            for _ in 0..300 {
                let mut value = [0u64];
                let status =
                    world.recv_elements(&mut value, &word, 1, Source::Any, wanted).unwrap();
                assert_eq!(status.tag, wanted);
                assert_eq!(value[0], status.source as u64 * 1000 + next[status.source]);
                next[status.source] += 1;
            }
            assert_eq!(next, [0, 100, 100, 100]);
        }
        assert_eq!(world.iprobe(Source::Any, Tag::Any).unwrap(), None);
    });
}

#[test]
fn probe_tells_what_a_receive_will_get() {
    ranks(2, "probe_tells_what_a_receive_will_get", |world| {
        let word = word();
        for len in [1u64, 100, 50_000] {
            if world.rank() == 0 {
                world.send_elements(&vec![len; len as usize], &word, len, 1, len as i32).unwrap();
            } else {
                let status = world.probe(Source::Any, Tag::Any).unwrap();
                let expected = Status { source: 0, tag: len as i32, bytes: 8 * len };
                assert_eq!(status, expected);
                assert_eq!(status.count(&word), Some(len));
                assert_eq!(world.iprobe(0, Tag::Any).unwrap(), Some(expected));
                assert_eq!(world.iprobe(0, 77).unwrap(), None);
                let mut got = vec![0u64; len as usize];
                world.recv_elements(&mut got, &word, len, status.source, status.tag).unwrap();
                assert!(got.iter().all(|&v| v == len));
            }
        }
    });
}

/// Returns six layouts that have the signature of `n` doubles: a row, a column, blocks, a sub-cube, a
/// column from its end to its start, and an indexed type. Each layout comes with the length of a buffer for
/// it, in doubles.
fn layouts(n: i64) -> Vec<(Plan, usize)> {
    let double = Datatype::named(Named::F64);
    let contiguous = Datatype::contiguous(n, &double).unwrap();
    let column = Datatype::vector(n, 1, 3, &double).unwrap();
    let blocks = Datatype::vector(n / 4, 4, 9, &double).unwrap();
    let cube = Datatype::subarray(&[6, 7, n], &[2, 2, n / 4], &[1, 3, n / 2], Order::C, &double);
    let backwards = Datatype::hvector(n, 1, -16, &double).unwrap();
    let backwards = Datatype::structured(&[1], &[16 * (n - 1)], &[backwards]).unwrap();
    let indices: Vec<i64> = (0..n).map(|i| (i * 7) % n + i % 2 * n).collect();
    let indexed = Datatype::indexed_block(1, &indices, &double).unwrap();
    [contiguous, column, blocks, cube.unwrap(), backwards, indexed]
        .iter()
        .map(|ty| (commit(ty).unwrap(), ty.true_ub() as usize / 8 + 1))
        .collect()
}

fn every_layout(world: &Communicator) {
    for n in [4i64, 400, 4000, 40_000] {
        let layouts = layouts(n);
        for (from, (out, out_len)) in layouts.iter().enumerate() {
            for (to, (into, in_len)) in layouts.iter().enumerate() {
                let source: Vec<f64> = (0..*out_len).map(|i| i as f64 + 0.5).collect();
                let mut packed = vec![0u8; 8 * n as usize];
                typepack::engine::pack(out, 1, &source, &mut packed).unwrap();
                let mut expected = vec![-1.0; *in_len];
                typepack::engine::unpack(into, 1, &packed, &mut expected).unwrap();
                if world.rank() == 0 {
                    world.send_elements(&source, out, 1, 1, 0).unwrap();
                } else {
                    let mut got = vec![-1.0f64; *in_len];
                    world.recv_elements(&mut got, into, 1, 0, 0).unwrap();
                    assert!(got == expected, "{n} doubles from layout {from} to layout {to}");
                }
                // Each rank also sends the same message to itself.
                let mut got = vec![-1.0f64; *in_len];
                let rank = world.rank();
                world
                    .sendrecv_elements(&source, out, 1, rank, 9, &mut got, into, 1, rank, 9)
                    .unwrap();
                assert!(got == expected, "self: {n} doubles, {from} to {to}");
            }
        }
    }
}

#[test]
fn every_layout_meets_every_other() {
    ranks(2, "every_layout_meets_every_other", every_layout);
}

#[test]
fn every_layout_without_jit() {
    ranks_with(2, "every_layout_without_jit", &[("TYPEPACK_JIT", "off")], every_layout);
}

#[test]
fn every_layout_with_eager_jit() {
    let env = [("TYPEPACK_JIT", "eager"), ("TYPEPACK_VERIFY", "1")];
    ranks_with(2, "every_layout_with_eager_jit", &env, every_layout);
}

#[test]
fn unmatched_large_sends_do_not_block_a_small_one() {
    ranks(2, "unmatched_large_sends_do_not_block_a_small_one", |world| {
        let word = word();
        const LARGE: usize = 100_000;
        const MANY: usize = 600;
        let data: Vec<Vec<u64>> = (0..20).map(|n| vec![n; LARGE]).collect();
        let small: Vec<[u64; 1]> = (0..MANY).map(|n| [n as u64]).collect();
        if world.rank() == 0 {
            world
                .scope(|scope| {
                    for (n, data) in data.iter().enumerate() {
                        scope.isend_elements(data, &word, LARGE as u64, 1, n as i32).unwrap();
                    }
                    // Send more small messages than the ring has slots. Rank 1 receives them only after it
                    // has sent the answer below.
                    for value in &small {
                        scope.isend_elements(value, &word, 1, 1, 500).unwrap();
                    }
                    world.send_elements(&[42u64], &word, 1, 1, 999).unwrap();
                    let mut answer = [0u64];
                    world.recv_elements(&mut answer, &word, 1, 1, 1000).unwrap();
                    assert_eq!(answer, [43]);
                })
                .unwrap();
        } else {
            let mut value = [0u64];
            world.recv_elements(&mut value, &word, 1, 0, 999).unwrap();
            assert_eq!(value, [42]);
            world.send_elements(&[43u64], &word, 1, 0, 1000).unwrap();
            for n in (0..20).rev() {
                let mut got = vec![0u64; LARGE];
                world.recv_elements(&mut got, &word, LARGE as u64, 0, n).unwrap();
                assert!(got.iter().all(|&v| v == n as u64));
            }
            for n in 0..MANY as u64 {
                world.recv_elements(&mut value, &word, 1, 0, 500).unwrap();
                assert_eq!(value, [n]);
            }
        }
    });
}

fn flood(world: &Communicator) {
    let (word, rank, size) = (word(), world.rank(), world.size());
    // Every rank sends to every rank, including itself, and posts the receives in a different order from the
    // sends.
    for len in [1usize, 5, 700, 9_000] {
        for round in 0..8u64 {
            let value = |from: usize, to: usize| (from * 100 + to) as u64 + 10_000 * round;
            let out: Vec<Vec<u64>> = (0..size).map(|to| vec![value(rank, to); len]).collect();
            let mut into: Vec<Vec<u64>> = vec![vec![0; len]; size];
            world
                .scope(|scope| {
                    let (first, second) = into.split_at_mut(size / 2);
                    for (from, buf) in second.iter_mut().enumerate().rev() {
                        scope.irecv_elements(buf, &word, len as u64, from + size / 2, 0).unwrap();
                    }
                    for step in 0..size {
                        let to = (rank + step) % size;
                        scope.isend_elements(&out[to], &word, len as u64, to, 0).unwrap();
                    }
                    for (from, buf) in first.iter_mut().enumerate() {
                        scope.irecv_elements(buf, &word, len as u64, from, 0).unwrap();
                    }
                })
                .unwrap();
            for (from, got) in into.iter().enumerate() {
                assert!(got.iter().all(|&v| v == value(from, rank)), "from {from}, {len} words");
            }
        }
    }
}

#[test]
fn flood_of_two() {
    ranks(2, "flood_of_two", flood);
}

#[test]
fn flood_of_eight_on_few_cpus() {
    ranks(8, "flood_of_eight_on_few_cpus", flood);
}

/// Sends messages of random sizes between all ranks, including each rank itself, into receives with any
/// source and any tag. The messages of one rank must arrive in the order in which they were sent.
fn anything_from_anybody(world: &Communicator) {
    const MESSAGES: usize = 40;
    const WORDS: usize = 20_000;
    let (word, rank, size) = (word(), world.rank(), world.size());
    for round in 0..12u64 {
        // Every rank computes the same list of messages: source, destination and number of words of each
        // message.
        let mut random = Random(round);
        let plan: Vec<(usize, usize, usize)> = (0..MESSAGES * size)
            .map(|_| {
                let (from, to) = (random.below(size as u64), random.below(size as u64));
                let words = [0, 1, 4, 5, 900, 1100, 2048, 2049, WORDS][random.below(9) as usize];
                (from as usize, to as usize, words)
            })
            .collect();
        let content = |number: usize, words: usize| vec![number as u64 * 7 + round; words];
        let outgoing: Vec<(usize, usize, Vec<u64>)> = plan
            .iter()
            .enumerate()
            .filter(|(_, (from, ..))| *from == rank)
            .map(|(number, &(_, to, words))| (number, to, content(number, words)))
            .collect();
        let expected = plan.iter().filter(|(_, to, _)| *to == rank).count();
        let mut buffers = vec![vec![0u64; WORDS]; expected];
        let mut own = Random(round * 1000 + rank as u64);
        let statuses = world
            .scope(|scope| {
                let mut receives = Vec::new();
                let mut buffers = buffers.iter_mut();
                let mut sends = outgoing.iter();
                loop {
                    let (send, receive) = if own.below(2) == 0 {
                        (sends.next(), None)
                    } else {
                        (None, buffers.next())
                    };
                    if let Some((number, to, data)) = send {
                        let (words, tag) = (data.len() as u64, *number as i32);
                        scope.isend_elements(data, &word, words, *to, tag).unwrap();
                    }
                    if let Some(buffer) = receive {
                        let words = WORDS as u64;
                        let any = (Source::Any, Tag::Any);
                        receives.push(
                            scope.irecv_elements(buffer, &word, words, any.0, any.1).unwrap(),
                        );
                    }
                    if buffers.len() == 0 && sends.len() == 0 {
                        break;
                    }
                }
                scope.wait_all(receives).unwrap()
            })
            .unwrap();
        let mut last = vec![None; size];
        for (status, buffer) in statuses.iter().zip(&buffers) {
            let number = status.tag as usize;
            let (from, to, words) = plan[number];
            assert_eq!((status.source, rank, status.bytes), (from, to, 8 * words as u64));
            assert!(buffer[..words] == content(number, words)[..], "message {number}");
            assert!(buffer[words..].iter().all(|&value| value == 0), "beyond message {number}");
            assert!(last[from] < Some(number), "message {number} overtook {:?}", last[from]);
            last[from] = Some(number);
        }
        world.barrier().unwrap();
    }
}

#[test]
fn anything_comes_from_anybody_in_order() {
    ranks(2, "anything_comes_from_anybody_in_order", anything_from_anybody);
}

#[test]
fn anything_comes_from_anybody_in_order_through_the_pipeline() {
    let name = "anything_comes_from_anybody_in_order_through_the_pipeline";
    ranks_with(5, name, &[("TYPEPACK_TRANSPORT", "pipeline")], anything_from_anybody);
}

#[test]
fn a_message_longer_than_its_receive_is_an_error_of_the_receiver() {
    ranks(2, "a_message_longer_than_its_receive_is_an_error_of_the_receiver", |world| {
        let word = word();
        // The three lengths give an inline, an eager and a long message. Each message is sent once before and
        // once after its receive is posted.
        for len in [2u64, 100, 100_000] {
            for late in [false, true] {
                if world.rank() == 0 {
                    if !late {
                        world.barrier().unwrap();
                    }
                    world.send_elements(&vec![7u64; len as usize], &word, len, 1, 0).unwrap();
                    if late {
                        world.barrier().unwrap();
                    }
                    world.send_elements(&[8u64], &word, 1, 1, 0).unwrap();
                } else {
                    let mut got = vec![0u64; len as usize];
                    let error = if late {
                        // Wait for the message by a probe, and not by a barrier: a large send returns only
                        // after a receive has matched it, so a barrier before the receive would hang.
                        let probed = world.probe(0, 0).unwrap();
                        assert_eq!(probed.bytes, 8 * len);
                        let error =
                            world.recv_elements(&mut got, &word, len - 1, 0, 0).unwrap_err();
                        world.barrier().unwrap();
                        error
                    } else {
                        world
                            .scope(|scope| {
                                let request =
                                    scope.irecv_elements(&mut got, &word, len - 1, 0, 0).unwrap();
                                world.barrier().unwrap();
                                scope.wait(request).unwrap_err()
                            })
                            .unwrap()
                    };
                    assert_eq!(error.kind(), ErrorKind::Truncated);
                    assert_eq!(got[len as usize - 1], 0, "written beyond the receive");
                    let mut next = [0u64];
                    world.recv_elements(&mut next, &word, 1, 0, 0).unwrap();
                    assert_eq!(next, [8]);
                }
            }
        }
    });
}

#[test]
fn bad_arguments_send_nothing() {
    ranks(2, "bad_arguments_send_nothing", |world| {
        let word = word();
        let other = 1 - world.rank();
        let mut buf = [0u64; 4];
        let kinds = |error: typepack::Error| (error.kind(), error.to_string());
        let (kind, text) = kinds(world.send_elements(&buf, &word, 1, 2, 0).unwrap_err());
        assert_eq!(kind, ErrorKind::Rank);
        assert!(text.contains("dest: 2"), "{text}");
        let (kind, text) = kinds(world.recv_elements(&mut buf, &word, 1, 7, 0).unwrap_err());
        assert_eq!(kind, ErrorKind::Rank);
        assert!(text.contains("source: 7"), "{text}");
        let (kind, text) = kinds(world.send_elements(&buf, &word, 1, other, -3).unwrap_err());
        assert_eq!(kind, ErrorKind::Tag);
        assert!(text.contains("tag: -3"), "{text}");
        let error = world.send_elements(&buf, &word, 5, other, 0).unwrap_err();
        assert_eq!(error.class(), typepack::ErrorClass::BUFFER);
        assert_eq!(error.argument(), "buf");
        assert!(world.recv_elements(&mut buf, &word, u64::MAX, other, 0).is_err());
        let none: [u64; 0] = [];
        let empty = commit(&Datatype::contiguous(0, &Datatype::named(Named::F64)).unwrap());
        world.barrier().unwrap();
        // The refused calls above must have sent nothing. The empty messages below are valid in spite of
        // their huge count, and must arrive.
        assert_eq!(world.iprobe(Source::Any, Tag::Any).unwrap(), None);
        world.barrier().unwrap();
        world.send_elements(&none, &empty.unwrap(), u64::MAX, other, 0).unwrap();
        assert_eq!(world.recv_elements(&mut buf, &word, 0, other, 0).unwrap().bytes, 0);
    });
}

/// Both halves of `sendrecv` end, whatever the length of the messages, and also if the receive fails.
#[test]
fn sendrecv_ends_both_operations() {
    ranks(2, "sendrecv_ends_both_operations", |world| {
        let (word, other) = (word(), 1 - world.rank());
        for len in [1usize, 4, 8, 9, 100, 1024, 1025, 5000, 40_000, 300_000] {
            for round in 0..3 {
                let out: Vec<u64> = (0..len as u64).map(|i| i * 7 + round).collect();
                let mut got = vec![0; len];
                let count = len as u64;
                let status = world
                    .sendrecv_elements(
                        &out,
                        &word,
                        count,
                        other,
                        1,
                        &mut got,
                        &word,
                        count,
                        Source::Any,
                        1,
                    )
                    .unwrap();
                assert!(got == out && status.source == other, "{len} words, round {round}");
                // The message from the other rank does not fit. Its own message must arrive all the same.
                let mut short = vec![0u64; len - 1];
                let truncated = world
                    .sendrecv_elements(
                        &out,
                        &word,
                        count,
                        other,
                        2,
                        &mut short,
                        &word,
                        count - 1,
                        other,
                        2,
                    )
                    .unwrap_err();
                assert_eq!(truncated.kind(), ErrorKind::Truncated, "{len} words");
                // The send waits, because the other rank receives a later message first.
                let mut first = [0u64];
                if world.rank() == 0 {
                    world
                        .sendrecv_elements(&out, &word, count, 1, 3, &mut first, &word, 1, 1, 4)
                        .unwrap();
                } else {
                    world.send_elements(&[round], &word, 1, 0, 4).unwrap();
                    world.recv_elements(&mut got, &word, count, 0, 3).unwrap();
                    assert!(got == out, "{len} words, round {round}");
                }
                // A message of this rank to itself.
                let me = world.rank();
                let mut mine = vec![0; len];
                world
                    .sendrecv_elements(&out, &word, count, me, 5, &mut mine, &word, count, me, 5)
                    .unwrap();
                assert!(mine == out, "{len} words, round {round}");
                let own = world.sendrecv_elements(
                    &out,
                    &word,
                    count,
                    me,
                    6,
                    &mut short,
                    &word,
                    count - 1,
                    me,
                    6,
                );
                assert_eq!(own.unwrap_err().kind(), ErrorKind::Truncated);
            }
        }
        assert_eq!(world.iprobe(Source::Any, Tag::Any).unwrap(), None);
    });
}

#[test]
fn threads_share_an_endpoint() {
    ranks(2, "threads_share_an_endpoint", |world| {
        let other = 1 - world.rank();
        std::thread::scope(|threads| {
            for lane in 0..4i32 {
                let world = world.clone();
                threads.spawn(move || {
                    let word = word();
                    for n in 0..200u64 {
                        let len = if n % 20 == 0 { 5000 } else { 1 + n };
                        let out = vec![n + 1000 * lane as u64; len as usize];
                        let mut into = vec![0u64; len as usize];
                        world
                            .sendrecv_elements(
                                &out, &word, len, other, lane, &mut into, &word, len, other, lane,
                            )
                            .unwrap();
                        assert!(into == out, "lane {lane}, message {n}");
                        let mine = [n];
                        let mut back = [0u64];
                        let me = world.rank();
                        world
                            .sendrecv_elements(
                                &mine,
                                &word,
                                1,
                                me,
                                50 + lane,
                                &mut back,
                                &word,
                                1,
                                me,
                                50 + lane,
                            )
                            .unwrap();
                        assert_eq!(back, mine);
                    }
                });
            }
        });
    });
}
