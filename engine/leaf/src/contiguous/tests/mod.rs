//! Copies runs with every method, with seven pairs of alignments, and with lengths around all limits.
//! Checks that the bytes before and after the destination do not change.

mod shared;

use super::*;
use std::sync::{Mutex, PoisonError};

/// Calls `copy` for many lengths and alignments, and checks all bytes of the destination.
fn check(lengths: impl Iterator<Item = usize>, copy: impl Fn(*const u8, *mut u8, usize)) {
    const ROOM: usize = 160;
    for bytes in lengths {
        let from: Vec<u8> = (0..bytes + ROOM).map(|i| (i * 7 + i / 251) as u8 | 1).collect();
        for (skip, shift) in [(0, 0), (1, 0), (0, 1), (63, 17), (5, 64), (31, 33), (64, 127)] {
            let mut to = vec![0; bytes + ROOM];
            copy(from[skip..].as_ptr(), to[shift..].as_mut_ptr(), bytes);
            assert_eq!(
                to[shift..shift + bytes],
                from[skip..skip + bytes],
                "{bytes} {skip} {shift}"
            );
            let outside = to[..shift].iter().chain(&to[shift + bytes..]);
            assert!(outside.copied().all(|byte| byte == 0), "{bytes} {skip} {shift}");
        }
    }
}

fn lengths() -> impl Iterator<Item = usize> {
    let around = |at: usize| at - 3..at + 4;
    (0..700)
        .chain(around(1024))
        .chain(around(LONG))
        .chain(around(4096))
        .chain(around(8192))
        .chain(around(70_000))
}

#[test]
fn every_method_copies_every_length() {
    for method in Method::ALL {
        check(lengths(), |from, to, bytes| {
            // SAFETY: `check` passes two separate buffers with room for `bytes` bytes.
            unsafe { copy_by(method, from, to, bytes) };
        });
    }
}

#[test]
fn every_instruction_set_copies_every_length() {
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let run = vector::pick(isa);
        check(lengths().filter(|&bytes| bytes > 64), |from, to, bytes| {
            // SAFETY: this machine has `isa`, and `check` passes two separate buffers of more than 64 bytes.
            unsafe { run(from, to, bytes) };
        });
        let pairs = pages::pick(isa);
        check(lengths().filter(|&bytes| bytes >= LONG), |from, to, bytes| {
            // SAFETY: this machine has `isa`, and `check` passes two separate buffers of at least `LONG` bytes.
            unsafe { pages::by(pairs, from, to, bytes) };
        });
    }
}

/// The requested method (`ASKED`) is one word for the whole process, so tests that depend on this word take
/// turns.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn a_request_ends_with_its_call() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = || Method::from_code(ASKED.load(Ordering::Relaxed));
    for method in Method::ALL {
        with(method, || {
            assert_eq!(asked(), Some(method));
            check(lengths(), |from, to, bytes| {
                // SAFETY: `check` passes two separate buffers with room for `bytes` bytes.
                unsafe { copy(from, to, bytes) };
            });
        });
        assert_eq!(asked(), None);
    }
    let panicked = std::panic::catch_unwind(|| with(Method::Repeat, || panic!("as intended")));
    assert!(panicked.is_err());
    assert_eq!(asked(), None);
}

#[test]
fn names_are_read_back() {
    for method in Method::ALL {
        assert_eq!(Method::from_code(method.code()), Some(method));
        if method.is_available() {
            assert_eq!(method.name().parse(), Ok(method));
        }
    }
    assert_eq!(Method::from_code(4), None);
    let error = "memcpy".parse::<Method>().expect_err("`memcpy` is no copy method").to_string();
    assert!(
        error
            .starts_with("\"memcpy\" is not a copy method of this machine; its methods are vector")
    );
}
