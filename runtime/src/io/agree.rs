//! Agreement of the ranks of a file: on errors, and on arguments that all ranks must pass alike.
//!
//! Every collective call on a file ends its checks with one of these functions. So a rank whose arguments
//! are wrong still takes part, all ranks return an error of the same class, and no rank waits forever.

use crate::coll::Op;
use crate::comm::Communicator;
use crate::request::reply::{ReplyWord, kind_of};
use crate::sys::limits;
use crate::{Error, ErrorKind, FileErrorKind, Result};
use std::ffi::CStr;
use std::io;

/// Returns the word for a result of this rank: 0 for success, else the word of a reply. Of two ranks with the same
/// class, the lower rank has the greater word.
pub(super) fn word<T>(own: &Result<T>, rank: usize) -> i64 {
    if own.is_ok() { 0 } else { ReplyWord::to(own, !(rank as u32)).word() as i64 }
}

/// Returns `own` if `agreed`, the greatest word of all ranks, says that all have succeeded. Otherwise
/// returns an error of the agreed class, which is the own error if the own error has this class. `text` is that of the
/// rank that has failed, or empty.
fn judged<T>(agreed: i64, own: Result<T>, text: &str) -> Result<T> {
    let Some(class) = ReplyWord::of(agreed as u64).class() else { return own };
    match own {
        Err(error) if error.class() == class => Err(error),
        _ => {
            let rank = failed_rank(agreed);
            let colon = if text.is_empty() { "" } else { ": " };
            let detail = format!("the call failed on rank {rank} of the file's ranks{colon}{text}");
            Err(Error::new(kind_of(class), "file", detail))
        }
    }
}

fn failed_rank(agreed: i64) -> usize {
    !ReplyWord::of(agreed as u64).number as usize
}

/// The judgement of a nonblocking operation, which cannot ask for the text of the rank that has failed.
pub(super) fn verdict<T>(agreed: i64, own: Result<T>) -> Result<T> {
    judged(agreed, own, "")
}

/// Most bytes of the text of a rank that has failed.
const TEXT: usize = 320;

/// Like [`verdict`], and tells all ranks the text of the rank that has failed, if it can. Collective if `agreed` is an error.
pub(super) fn settled<T>(comm: &Communicator, agreed: i64, own: Result<T>) -> Result<T> {
    if agreed == 0 {
        return own;
    }
    let root = failed_rank(agreed);
    let mut text = [0u8; TEXT];
    if let (true, Err(error)) = (comm.rank() == root, &own) {
        let words = error.to_string();
        let length = words.floor_char_boundary(TEXT);
        text[..length].copy_from_slice(&words.as_bytes()[..length]);
    }
    // The ranks have agreed on an error already. If the text cannot be told, the error stands without it.
    if comm.broadcast(&mut text, root).is_err() {
        return verdict(agreed, own);
    }
    let text = String::from_utf8_lossy(&text);
    judged(agreed, own, text.trim_end_matches('\0'))
}

/// Returns `own` if all ranks have succeeded, and otherwise an error of the same class on all ranks.
pub(super) fn agree<T>(comm: &Communicator, own: Result<T>) -> Result<T> {
    let mut words = [word(&own, comm.rank())];
    comm.all_reduce_in_place(&mut words, Op::Max)?;
    settled(comm, words[0], own)
}

/// Lets rank 0 find out a number, and returns the number on all ranks. If rank 0 fails, all ranks return an error
/// of the same class. The ranks have agreed before that all of them make this call.
pub(super) fn told(comm: &Communicator, find: impl FnOnce() -> Result<u64>) -> Result<u64> {
    let own = if comm.rank() == 0 { find() } else { Ok(0) };
    let mut words = [word(&own, 0), *own.as_ref().unwrap_or(&0) as i64];
    comm.broadcast(&mut words, 0)?;
    settled(comm, words[0], own.map(|_| words[1] as u64))
}

/// Like [`agree`], and also checks that all ranks passed the same `words`. `what` names them in the error.
pub(super) fn agree_same<T>(
    comm: &Communicator,
    own: Result<T>,
    words: &[i64],
    what: &'static str,
) -> Result<T> {
    let (own, same) = compared(comm, own, words)?;
    if same.iter().all(|&same| same) { Ok(own) } else { Err(differ(what)) }
}

/// Returns the error of a call to which the ranks passed different values of `what`.
pub(super) fn differ(what: &'static str) -> Error {
    let detail = "the ranks of the file passed different values; all must pass the same";
    Error::new(ErrorKind::File(FileErrorKind::NotSame), what, detail)
}

/// Like [`agree`], and also returns which of `words` are the same on all ranks.
pub(super) fn compared<T>(
    comm: &Communicator,
    own: Result<T>,
    words: &[i64],
) -> Result<(T, Vec<bool>)> {
    let mut all = vec![word(&own, comm.rank())];
    // The greatest of the complements is the complement of the least.
    all.extend(words.iter().flat_map(|&word| match own {
        Ok(_) => [word, !word],
        Err(_) => [i64::MIN; 2],
    }));
    comm.all_reduce_in_place(&mut all, Op::Max)?;
    let own = settled(comm, all[0], own)?;
    Ok((own, all[1..].chunks(2).map(|pair| pair[0] == !pair[1]).collect()))
}

/// Returns two words for a text. Different texts have different words, except with a chance of 2^-128.
pub(super) fn text_words(text: &[u8]) -> [i64; 2] {
    let mix = |seed: u64| {
        text.iter().fold(seed, |sum, &byte| {
            let next = (sum ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            next ^ next >> 29
        }) as i64
    };
    [mix(text.len() as u64), mix(0x1234_5678_9abc_def1)]
}

/// Returns the error for a failed system call on the file `what`.
#[cold]
pub(super) fn system(what: &'static str, error: &io::Error) -> Error {
    Error::new(system_kind(error), what, limits::reason(error))
}

/// Returns the error for a failed system call on a file that the call has named.
#[cold]
pub(super) fn system_named(name: &CStr, error: &io::Error) -> Error {
    Error::new(system_kind(error), "filename", about(name, &limits::reason(error)))
}

/// Adds the name of a file to a text. The text comes first, because a long name is cut.
pub(super) fn about(name: &CStr, detail: &str) -> String {
    format!("{detail}: '{}'", name.to_string_lossy())
}

fn system_kind(error: &io::Error) -> ErrorKind {
    use FileErrorKind as F;
    let kind = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => F::NoSuchFile,
        Some(libc::EEXIST) => F::Exists,
        Some(libc::EACCES | libc::EPERM) => F::Access,
        Some(libc::EROFS) => F::ReadOnly,
        Some(libc::ENOSPC) => F::NoSpace,
        Some(libc::EDQUOT) => F::Quota,
        Some(libc::EBUSY | libc::ETXTBSY) => F::InUse,
        Some(libc::ENAMETOOLONG | libc::ELOOP | libc::EISDIR) => F::BadFile,
        Some(libc::ENOMEM) => return ErrorKind::NoMemory,
        _ if error.kind() == io::ErrorKind::NotFound => F::NoSuchFile,
        _ => F::Io,
    };
    ErrorKind::File(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_class_wins_and_the_own_text_stays() {
        let error = |kind| Error::new(ErrorKind::File(kind), "file", "mine");
        let (low, high) = (error(FileErrorKind::Access), error(FileErrorKind::NoSpace));
        let failed = |error: &Error| Err::<(), _>(error.clone());
        let agreed = word(&failed(&low), 0).max(word(&failed(&high), 3)).max(word(&Ok(()), 1));
        assert_eq!(verdict::<()>(agreed, Err(high.clone())), Err(high.clone()));
        for own in [Ok(()), Err(low)] {
            let error = verdict(agreed, own).expect_err("an error");
            assert_eq!(error.kind(), high.kind());
            assert!(error.to_string().contains("rank 3"), "{error}");
        }
        assert_eq!(verdict(0, Ok(5)), Ok(5));
        assert!(word(&failed(&high), 2) > word(&failed(&high), 3));
    }

    #[test]
    fn texts_have_words_of_their_own() {
        let words = ["", "a", "b", "ab", "ba", "native", "internal", "external32"];
        let all: std::collections::BTreeSet<_> =
            words.iter().map(|word| text_words(word.as_bytes())).collect();
        assert_eq!(all.len(), words.len());
    }
}
