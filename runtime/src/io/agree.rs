//! Agreement of the ranks of a file: on errors, and on arguments that all ranks must pass alike; and what they
//! share: the shared file pointer, the locks for ranges of the file (`locks.rs`), and the seats at which they meet.
//!
//! Every collective call on a file ends its checks with one of the functions for agreement. So a rank whose arguments
//! are wrong still takes part, all ranks return an error of the same class, and no rank waits forever.
//!
//! What the ranks share are words in the part that rank 0 has in a region of the file's communicator. There is no
//! helper file and no name that another job could have too.
//!
//! The ranks meet without messages ([`Shared::meet`]). Each rank has a seat of two lines. It writes its word and then
//! the number of the meeting to the line for this meeting, and waits for the same number at all other seats. The next
//! meeting uses the other line. The one after it uses this line again, which no rank reads any more: every rank has
//! come to the meeting in between.

use super::locks::{self, Claim, Locks, Span};
use crate::coll::Op;
use crate::comm::Communicator;
use crate::memory::{self, heaps::Heaps};
use crate::region::SharedRegion;
use crate::request::reply::{ReplyWord, kind_of};
use crate::shm::layout::State;
use crate::shm::waiting::Kind;
use crate::sys::{fork, limits};
use crate::{Error, ErrorKind, FileErrorKind, Result};
use std::ffi::CStr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// Like [`verdict`], and tells all ranks the text of the rank that has failed, if it can. Collective if `agreed` is an
/// error.
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

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// The offset of the shared file pointer in the part of rank 0. It has a cache line of its own.
const POINTER: usize = 0;
/// The offset of the counter of the locks, in a cache line of its own.
const TICKETS: usize = LINE;
/// The offset of the seats. The slots of the locks follow the seats.
const SEATS: usize = 2 * LINE;

/// What a rank that has left after an error writes as the number of the meeting: it comes to no more meetings.
const GONE: u64 = u64::MAX;

/// The shared words of a file.
#[derive(Debug)]
pub(super) struct Shared {
    region: SharedRegion,
    /// The number of the last meeting.
    meeting: AtomicU64,
}

/// Who waits for something that another rank or process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    /// A thread of the program. While this thread waits, it makes progress.
    Program,
    /// An I/O thread. A thread of the program makes progress.
    Background,
}

/// A lock, which this rank holds until the value is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    shared: &'a Shared,
    comm: &'a Communicator,
    claim: Option<Claim<'a>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(claim) = self.claim.take() else { return };
        let span = claim.span();
        drop(claim);
        // An error of `waiting` does no harm: a rank that is not rung looks again by itself, only later.
        let _ = self.shared.locks(self.comm).waiting(self.comm.rank(), span, |rank| {
            if let Ok(rank) = self.comm.world_rank(rank, "rank", ErrorKind::Rank) {
                self.comm.endpoint().ring(rank);
            }
        });
    }
}

impl Shared {
    /// Makes the words of a new file. Collective.
    pub fn new(comm: &Communicator) -> Result<Self> {
        let bytes =
            if comm.rank() == 0 { slots(comm.size()) + locks::bytes_of(comm.size()) } else { 0 };
        let region = SharedRegion::allocate(comm, bytes)?;
        Ok(Self { region, meeting: AtomicU64::new(0) })
    }

    fn word(&self, at: usize) -> Result<&AtomicU64> {
        if fork::is_child() {
            // The child has no access to the memory that the ranks share.
            let detail = "a forked child of a rank cannot use files; it may exec or exit";
            return Err(Error::new(ErrorKind::State, "process", detail));
        }
        self.region.atomic(0, at).ok_or_else(|| {
            Error::new(ErrorKind::Internal, "file", format!("the region has no word {at}"))
        })
    }

    /// Returns the shared file pointer.
    pub fn pointer(&self) -> Result<u64> {
        Ok(self.word(POINTER)?.load(Ordering::Acquire))
    }

    /// Sets the shared file pointer.
    pub fn set_pointer(&self, value: u64) -> Result<()> {
        self.word(POINTER)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Adds to the shared file pointer. `check` gets the old value and returns an error if the access that
    /// begins there is not allowed; then the pointer does not move. Returns the old value and the answer of
    /// `check`.
    ///
    /// # Errors
    /// Returns the error of `check`, and `ErrorKind::Argument` if the new value does not fit in 63 bits.
    pub fn advance<T>(&self, by: u64, check: impl Fn(u64) -> Result<T>) -> Result<(u64, T)> {
        let word = self.word(POINTER)?;
        let mut at = word.load(Ordering::Acquire);
        loop {
            let answer = check(at)?;
            let next = at.checked_add(by).filter(|&next| next <= i64::MAX as u64);
            let next = next.ok_or_else(|| {
                let detail = format!("the shared file pointer is {at} and cannot grow by {by}");
                Error::new(ErrorKind::Argument, "offset", detail)
            })?;
            match word.compare_exchange_weak(at, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok((at, answer)),
                Err(now) => at = now,
            }
        }
    }

    /// Waits until all ranks have come, each with a word of its own, and calls `each` with the word of every
    /// rank. Collective. While a rank waits, it makes progress.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died, or if a meeting has failed on a rank. Then no other
    /// meeting takes place.
    pub fn meet(&self, comm: &Communicator, mine: u64, mut each: impl FnMut(u64)) -> Result<()> {
        let size = comm.size();
        // Nobody else comes, so a rank alone needs neither the lock of the endpoint nor a turn of progress, which would
        // be most of the time of a short access.
        if size == 1 {
            each(mine);
            return Ok(());
        }
        let number = self.meeting.fetch_add(1, Ordering::Relaxed) + 1;
        let line = |rank: usize, number: u64| SEATS + (2 * rank + (number % 2) as usize) * LINE;
        let own = line(comm.rank(), number);
        if self.word(own)?.load(Ordering::Relaxed) == GONE {
            return Err(gone(comm.rank()));
        }
        self.word(own + 8)?.store(mine, Ordering::Relaxed);
        self.word(own)?.store(number, Ordering::Release);
        let others = || (0..size).filter(|&rank| rank != comm.rank());
        for rank in others() {
            comm.endpoint().ring(comm.world_rank(rank, "rank", ErrorKind::Rank)?);
        }
        let seats = (0..size).map(|rank| self.word(line(rank, number)));
        let seats = seats.collect::<Result<Vec<_>>>()?;
        let mut come = 0;
        let awaited = comm.awaited("", Kind::File, None);
        let waited = comm.endpoint().attend_outside(&awaited, || {
            while let Some(seat) = seats.get(come) {
                match seat.load(Ordering::Acquire) {
                    found if found == number => come += 1,
                    GONE => return Some(Err(gone(come))),
                    _ => return None,
                }
            }
            Some(Ok(()))
        });
        waited.and_then(|synchronised| synchronised).inspect_err(|_| {
            // The other ranks must not wait for this one, and must not take the word of another meeting for that
            // of theirs.
            for number in 0..2 {
                if let Ok(seat) = self.word(line(comm.rank(), number)) {
                    seat.store(GONE, Ordering::Release);
                }
            }
        })?;
        for rank in 0..size {
            each(self.word(line(rank, number) + 8)?.load(Ordering::Relaxed));
        }
        Ok(())
    }

    fn locks<'a>(&'a self, comm: &Communicator) -> Locks<impl Fn(usize) -> Result<&'a AtomicU64>> {
        let ranks = comm.size();
        Locks { word: |at| self.word(at), counter: TICKETS, slots: slots(ranks), ranks }
    }

    /// Locks a range of the file. Waits for accesses of all ranks that came earlier and whose ranges overlap this one,
    /// unless both read. Does not wait for ranks that are dead.
    ///
    /// # Errors
    /// Returns [`ErrorKind::State`] in a forked child and after finalization.
    pub fn lock<'a>(
        &'a self,
        comm: &'a Communicator,
        span: Span,
        waiter: Waiter,
    ) -> Result<Turn<'a>> {
        let locks = self.locks(comm);
        let mut turn = Turn { shared: self, comm, claim: None };
        let is_dead = |rank| {
            let world = comm.group().world_rank(rank);
            let dead =
                |heaps: &Arc<Heaps>| world.is_some_and(|world| heaps.state(world) == State::Dead);
            memory::heaps().is_some_and(dead)
        };
        let mut look = || -> Result<bool> {
            if turn.claim.is_none() {
                turn.claim = locks.claim(comm.rank(), span)?;
            }
            match &mut turn.claim {
                Some(claim) => locks.is_granted(claim, is_dead),
                None => Ok(false),
            }
        };
        if look()? {
            return Ok(turn);
        }
        if waiter == Waiter::Program {
            let awaited = comm.awaited("", Kind::File, None);
            let found = comm.endpoint().attend_outside(&awaited, || match look() {
                Ok(false) => None,
                found => Some(found),
            });
            match found {
                Ok(found) => return found.map(|_| turn),
                // A rank is dead. The lock may belong to another rank, which is alive and will release it, so keep
                // waiting.
                Err(error) if error.kind() == ErrorKind::ProcAborted => {}
                Err(error) => return Err(error),
            }
        }
        // The lock may be held by another thread of this process. An access takes microseconds or more, so the waiting
        // thread looks only a few times before it sleeps.
        // The request of a background access has a record of its own.
        let recorded = (waiter == Waiter::Program)
            .then(|| comm.endpoint().record_wait(&comm.awaited("", Kind::File, None)));
        let mut looks = 0u32;
        while !look()? {
            looks += 1;
            match looks {
                0..64 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(50)),
            }
            if let (Some(recorded), 0) = (&recorded, looks % 64) {
                recorded.look();
            }
        }
        Ok(turn)
    }
}

/// Returns the offset of the slots of the locks of `ranks` ranks.
fn slots(ranks: usize) -> usize {
    SEATS + 2 * LINE * ranks
}

#[cold]
fn gone(rank: usize) -> Error {
    let detail = format!(
        "rank {rank} takes no further part in collective calls on this file, because an earlier call on it failed there"
    );
    Error::new(ErrorKind::ProcAborted, "file", detail)
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
