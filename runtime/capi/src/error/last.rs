//! The texts of the errors that a thread got last, for `MPI_Error_string`.
//!
//! The codes of the library's errors are classes, so a code says little. Each thread keeps the texts of its last failed
//! call: one for the code that the call returned, and one for each class in its statuses.

use super::{Failure, codes};
use crate::abi;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use typepack::engine::reserve;

/// The most bytes of a text, without the zero byte at its end.
const MOST: usize = abi::MAX_ERROR_STRING as usize - 1;

thread_local! {
    /// Codes and texts. The first entry is that of the code that the call returned.
    static LAST: RefCell<Vec<(c_int, String)>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread has used [`LAST`], so that its destructor is registered.
    static READY: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread ready to keep texts, so that its first failure registers no destructor.
pub fn prepare_thread() {
    // A thread that is ending has no place for the texts any more.
    READY.set(LAST.try_with(|_| ()).is_ok());
}

/// Keeps the texts of a failed call of this thread: `line` is the text of its code.
#[cold]
pub fn keep(failure: &Failure, line: &dyn Fn(&str) -> String) {
    if !READY.get() {
        if !reserve::may_register() {
            return;
        }
        prepare_thread();
    }
    let also = failure.also.iter().map(|(code, text)| (*code, line(text)));
    let texts = std::iter::once((failure.code, line(&failure.text))).chain(also).collect();
    // A thread that is ending has no place for the texts any more, and makes no call that reads them.
    let _ended = LAST.try_with(|last| last.replace(texts));
}

/// Returns the text of an error code, as `MPI_Error_string` returns it: the text of the code itself, and what the last
/// failed call of this thread says about it. Returns `None` if there is no such code.
pub fn string(code: c_int) -> Option<Vec<u8>> {
    let mut text = codes::string(code)?;
    // A code that the user has added has the user's text and no other.
    if code == abi::SUCCESS || codes::class(code) != Some(code) || code > abi::ERR_LASTCODE {
        return Some(text);
    }
    let _ended = LAST.try_with(|last| {
        if let Some((_, said)) = last.borrow().iter().find(|(other, _)| *other == code) {
            text.extend_from_slice(b": ");
            text.extend_from_slice(said.as_bytes());
        }
    });
    Some(cut(text, MOST))
}

/// Cuts a text to `most` bytes, and not within a character.
fn cut(mut text: Vec<u8>, most: usize) -> Vec<u8> {
    if text.len() > most {
        let is_inner = |byte: &u8| byte & 0xc0 == 0x80;
        let end = (0..=most).rev().find(|&end| text.get(end).is_none_or(|byte| !is_inner(byte)));
        text.truncate(end.unwrap_or(most));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_the_last_failure_of_the_thread() {
        let line = |text: &str| format!("rank 3: MPI_Recv: {text}");
        let string = |code| String::from_utf8(string(code).expect("a code")).expect("UTF-8");
        let plain = string(abi::ERR_TRUNCATE);
        assert_eq!(plain, "MPI_ERR_TRUNCATE: message longer than the receive");
        let mut failure = Failure::of_code(abi::ERR_IN_STATUS, "count: too long".to_owned());
        failure.also.push((abi::ERR_TRUNCATE, "count: too long".to_owned()));
        keep(&failure, &line);
        assert_eq!(
            string(abi::ERR_TRUNCATE),
            format!("{plain}: rank 3: MPI_Recv: count: too long")
        );
        assert!(string(abi::ERR_IN_STATUS).ends_with("rank 3: MPI_Recv: count: too long"));
        assert_eq!(string(abi::ERR_RANK), "MPI_ERR_RANK: invalid rank");
        let other = std::thread::spawn(move || string(abi::ERR_TRUNCATE)).join().expect("a text");
        assert_eq!(other, plain);
        keep(&Failure::of_code(abi::ERR_RANK, "rank: 7".to_owned()), &line);
        assert_eq!(string(abi::ERR_TRUNCATE), plain);
        keep(&Failure::of_code(abi::ERR_IO, "é".repeat(600)), &line);
        let long = string(abi::ERR_IO);
        assert!(long.len() <= MOST && long.len() > MOST - 3);
    }
}
