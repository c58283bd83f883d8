//! Tests of the bound on the memory that a rank uses for messages that no receive has matched
//! (`TYPEPACK_UNEXPECTED_MAX`). Rank 0 floods rank 1, and rank 1 first receives the last message. Rank 1 takes
//! all envelopes meanwhile, but its memory stays within the bound, because the data of the other messages
//! waits at rank 0.
//!
//! `FLOW_MESSAGES` sets the number of messages of 64 bytes.

use crate::job::ranks_with;
use typepack::engine::Elements;
use typepack::{
    Communicator, Datatype, Named, Operation, Plan, SendMode, Source, Tag, commit, init,
};

/// The bound, in bytes, and the variable that sets it.
const BOUND: u64 = 1 << 20;
const SMALL: [(&str, &str); 1] = [("TYPEPACK_UNEXPECTED_MAX", "1048576")];

/// The tag of the message that is sent last and received first.
const LAST: i32 = i32::MAX;

/// Number of bytes that an unexpected envelope may occupy.
const ENVELOPE: u64 = 400;

/// Number of bytes in the ring of a pair that may exceed the bound: the payloads, which have 4 MiB in a job of two ranks,
/// and the envelopes.
const RING: u64 = (4 << 20) + (256 << 10);

/// The bound of the tests of short messages, in bytes, and the variable that sets it. Short sends wait at 16 times
/// this bound.
const TINY_BOUND: u64 = 64 << 10;
const TINY: [(&str, &str); 1] = [("TYPEPACK_UNEXPECTED_MAX", "65536")];
const SHORT_FACTOR: u64 = 16;

/// Number of bytes that an unexpected short message occupies at least.
const SHORT_MIN: u64 = 128;

/// Number of short messages that the ring of a pair holds at most.
const RING_SHORT: u64 = 256;

/// Number of bytes by which the memory of rank 1 may exceed the bound: the ring, chunks, and what the
/// allocator keeps.
const SLACK: u64 = 5 << 20;

fn byte() -> Plan {
    commit(&Datatype::named(Named::U8)).unwrap()
}

/// Returns the number of messages of 64 bytes.
fn messages() -> usize {
    let fallback = if cfg!(debug_assertions) { 20_000 } else { 100_000 };
    std::env::var("FLOW_MESSAGES").map_or(fallback, |text| text.parse().expect("a number"))
}

/// Returns the private memory of this process in bytes. Shared memory does not count.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() << 10
}

/// Returns the `bytes` bytes of message `number`.
fn data(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (number * 31 + at * 7) as u8).collect()
}

/// How rank 0 sends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// A nonblocking send.
    Standard,
    /// A send from a copy, like `MPI_Bsend`: it must not wait for rank 1.
    Copied,
    /// A nonblocking synchronous send.
    Synchronous,
}

/// Starts `count` sends of `bytes` bytes to rank 1, and then sends the message with the tag `LAST`. Returns
/// the sends.
fn flood(world: &Communicator, way: Way, sources: &[Vec<u8>], byte: &Plan) -> Vec<Operation> {
    let messages = world.messages();
    let mode = match way {
        Way::Standard => SendMode::Standard,
        Way::Copied => SendMode::Buffered(None),
        Way::Synchronous => SendMode::Synchronous,
    };
    let start = |(number, source): (usize, &Vec<u8>)| {
        let tag = number as i32;
        // SAFETY: the caller keeps `sources` until all sends have ended. Rank 1 exists.
        unsafe {
            messages
                .send(mode, Elements::new(source.as_ptr(), byte, source.len() as u64), 1, tag)
                .unwrap()
        }
    };
    let started = sources.iter().enumerate().map(start).collect();
    world.send_elements(&[7u8; 8], byte, 8, 1, LAST).unwrap();
    started
}

/// Floods rank 1 with `count` messages of `bytes` bytes. `meanwhile` runs on both ranks after rank 1 has
/// received the last message, and before it receives the others.
fn run(world: &Communicator, way: Way, count: usize, bytes: usize, meanwhile: impl FnOnce()) {
    let byte = byte();
    world.barrier().unwrap();
    if world.rank() == 0 {
        let sources: Vec<Vec<u8>> = (0..count).map(|number| data(number, bytes)).collect();
        let mut started = flood(world, way, &sources, &byte);
        meanwhile();
        let pending = started.iter().filter(|send| matches!(send, Operation::Pending(_))).count();
        // Most of the data has stayed here. A message that has found the bound reached is pending.
        let bound: u64 = std::env::var("TYPEPACK_UNEXPECTED_MAX").unwrap().parse().unwrap();
        let kept = match bytes as u64 {
            ..=64 => SHORT_FACTOR * bound / SHORT_MIN + 2 * RING_SHORT,
            bytes => (bound + RING) / bytes,
        } as usize;
        assert!(kept < count);
        assert!(pending + kept > count, "{way:?}: {pending} of {count} sends are pending");
        assert!(
            world
                .messages()
                .change(|ongoing| {
                    let open = |send: &Operation| match send {
                        Operation::Pending(id) => !ongoing.is_complete(*id),
                        Operation::Done(_) => false,
                    };
                    started.last().is_some_and(open)
                })
                .unwrap()
        );
        world.barrier().unwrap();
        world.messages().finish_all(&mut started).unwrap();
    } else {
        let before = memory();
        let mut last = [0u8; 8];
        world.recv_elements(&mut last, &byte, 8, 0, LAST).unwrap();
        assert_eq!(last, [7; 8]);
        meanwhile();
        let grown = memory().saturating_sub(before);
        let allowed = BOUND + SLACK + count as u64 * ENVELOPE;
        println!("{way:?}: {count} messages of {bytes} bytes occupy {grown} bytes");
        assert!(grown <= allowed, "{way:?}: {grown} bytes, more than {allowed}");
        world.barrier().unwrap();
        let mut got = vec![0u8; bytes];
        // Receive the messages in another order than that of the sends.
        for number in (0..count).rev() {
            let tag = number as i32;
            let status =
                world.recv_elements(&mut got, &byte, bytes as u64, Source::Any, tag).unwrap();
            assert_eq!((status.bytes, &got), (bytes as u64, &data(number, bytes)));
        }
        assert_eq!(world.iprobe(Source::Any, Tag::Any).unwrap(), None);
    }
    world.barrier().unwrap();
}

#[test]
fn the_memory_of_a_flooded_rank_is_bounded() {
    ranks_with(2, "the_memory_of_a_flooded_rank_is_bounded", &SMALL, |world| {
        for way in [Way::Standard, Way::Copied, Way::Synchronous] {
            run(world, way, 5000, 8 << 10, || {});
            // There is room again, so the send of a short message must not wait for its receive.
            let byte = byte();
            if world.rank() == 0 {
                world.send_elements(&[1u8; 100], &byte, 100, 1, 5).unwrap();
            }
            world.barrier().unwrap();
            if world.rank() == 1 {
                world.recv_elements(&mut [0u8; 100], &byte, 100, 0, 5).unwrap();
            }
        }
    });
}

/// Checks that the envelopes of very many short messages all arrive, and that each occupies at most `ENVELOPE` bytes.
#[test]
fn many_short_messages() {
    ranks_with(2, "many_short_messages", &TINY, |world| {
        for way in [Way::Standard, Way::Copied] {
            run(world, way, messages(), 64, || {});
        }
    });
}

/// Checks that blocking standard sends of short messages do not wait as soon as the bound of one sender is reached.
/// Rank 1 first receives the last message, so a send that waited would wait for ever. This was the case once, and
/// 100,000 messages of 64 bytes reached the default bound.
#[test]
fn short_blocking_sends_pass_the_bound() {
    ranks_with(2, "short_blocking_sends_pass_the_bound", &TINY, |world| {
        let (byte, count) = (byte(), 4000);
        assert!(count as u64 * SHORT_MIN > 4 * TINY_BOUND);
        assert!(count as u64 * 2 * SHORT_MIN < SHORT_FACTOR * TINY_BOUND);
        for bytes in [64, 8, 0] {
            if world.rank() == 0 {
                for number in 0..count {
                    let source = data(number, bytes);
                    world.send_elements(&source, &byte, bytes as u64, 1, number as i32).unwrap();
                }
                world.send_elements(&[7u8; 8], &byte, 8, 1, LAST).unwrap();
            } else {
                world.recv_elements(&mut [0u8; 8], &byte, 8, 0, LAST).unwrap();
                let mut got = vec![0u8; bytes];
                for number in (0..count).rev() {
                    world.recv_elements(&mut got, &byte, bytes as u64, 0, number as i32).unwrap();
                    assert_eq!(got, data(number, bytes));
                }
            }
            world.barrier().unwrap();
        }
    });
}

/// Checks that collective calls, and calls that make communicators, do not wait for the messages of the flood.
#[test]
fn collective_calls_under_a_flood() {
    ranks_with(2, "collective_calls_under_a_flood", &SMALL, |world| {
        run(world, Way::Standard, 5000, 4 << 10, || {
            let own = world.dup().unwrap();
            for _ in 0..1000 {
                own.barrier().unwrap();
            }
            let mut value = [0u8; 4000];
            for root in [0, 1] {
                value.fill(world.rank() as u8);
                own.broadcast(&mut value, root).unwrap();
                assert!(value.iter().all(|&byte| byte == root as u8));
            }
        });
    });
}

/// Checks that a posted receive gets its message while the messages of a flood wait.
#[test]
fn posted_receives_under_a_flood() {
    ranks_with(2, "posted_receives_under_a_flood", &SMALL, |world| {
        run(world, Way::Standard, 5000, 4 << 10, || {
            let byte = byte();
            for number in 0..200usize {
                let bytes = [8, 64, 100, 8000][number % 4];
                let mut back = vec![0u8; bytes];
                let out = data(number, bytes);
                let other = 1 - world.rank();
                world
                    .scope(|scope| {
                        let receive =
                            scope.irecv_elements(&mut back, &byte, bytes as u64, other, LAST)?;
                        world.barrier()?;
                        world.send_elements(&out, &byte, bytes as u64, other, LAST)?;
                        scope.wait(receive)
                    })
                    .unwrap()
                    .unwrap();
                assert_eq!(back, out);
            }
        });
    });
}

/// Tests a bound of 0 bytes: once a message is unexpected, no later payload may be sent before its match.
#[test]
fn a_bound_of_nothing() {
    let env = [("TYPEPACK_UNEXPECTED_MAX", "0")];
    ranks_with(2, "a_bound_of_nothing", &env, |world| {
        run(world, Way::Standard, 1000, 8 << 10, || {});
        run(world, Way::Copied, 1000, 60, || {});
    });
}

/// Checks that a value that is not a number of bytes causes an error that names the variable, the value and what is
/// allowed.
#[test]
fn bad_bounds_are_errors() {
    if !crate::job::is_rank() {
        for value in ["16M", "-1", "", "99999999999999999999999"] {
            let mut command = std::process::Command::new(crate::job::mpiexec());
            command.args(["-n", "1"]).args(crate::job::body("bad_bounds_are_errors"));
            let output = crate::job::run(
                command,
                "bad",
                &[("TYPEPACK_UNEXPECTED_MAX", value), ("FLOW_BAD", "1")],
            );
            let text = crate::job::text(&output);
            let wanted = format!(
                "TYPEPACK_UNEXPECTED_MAX: \"{value}\" is not a valid number of bytes; it must be 0 or more"
            );
            assert!(text.contains(&wanted), "{text}");
        }
        return;
    }
    println!("{}", init().unwrap_err());
}
