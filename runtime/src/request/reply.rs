//! The word in which a process says how something has ended: a request of a one-sided call, a step in which ranks make
//! a region or a window, a call on a file.
//!
//! The high half has the class of the error, or 0 for success. The low half has a number whose meaning belongs to the
//! user of the word. Of two words, that of the greater class is the greater one.

use crate::{Error, ErrorClass, ErrorKind};

/// How something has ended at another process. Any process may have written the word, so both halves can have any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyWord {
    class: u32,
    pub number: u32,
}

impl ReplyWord {
    /// Returns the reply for an outcome.
    pub fn new<T>(outcome: &Result<T, ErrorClass>, number: u32) -> Self {
        let class = outcome.as_ref().err().map_or(0, |class| class.0.unsigned_abs().max(1));
        Self { class, number }
    }

    /// Returns the reply for a result of this process.
    pub fn to<T>(result: &crate::Result<T>, number: u32) -> Self {
        Self::new(&result.as_ref().map(drop).map_err(Error::class), number)
    }

    /// Returns the reply that a word says.
    #[inline]
    pub fn of(word: u64) -> Self {
        Self { class: (word >> 32) as u32, number: word as u32 }
    }

    /// Returns the word.
    #[inline]
    pub fn word(self) -> u64 {
        u64::from(self.class) << 32 | u64::from(self.number)
    }

    /// Returns the class of the error; `None` if there is none.
    #[inline]
    pub fn class(self) -> Option<ErrorClass> {
        (self.class != 0).then(|| class_of(self.class))
    }
}

/// Returns the class that another process has said; [`ErrorClass::OTHER`] if no class has this number.
pub(crate) fn class_of(number: u32) -> ErrorClass {
    i32::try_from(number).map_or(ErrorClass::OTHER, ErrorClass)
}

/// Returns the kind of the errors of a class.
pub(crate) fn kind_of(class: ErrorClass) -> ErrorKind {
    use crate::{FileErrorKind as F, WindowErrorKind as W};
    const KINDS: [ErrorKind; 21] = [
        ErrorKind::File(F::Access),
        ErrorKind::File(F::Mode),
        ErrorKind::File(F::BadFile),
        ErrorKind::File(F::DuplicateRepresentation),
        ErrorKind::File(F::Exists),
        ErrorKind::File(F::InUse),
        ErrorKind::File(F::File),
        ErrorKind::File(F::Io),
        ErrorKind::File(F::NotSame),
        ErrorKind::File(F::NoSpace),
        ErrorKind::File(F::NoSuchFile),
        ErrorKind::File(F::Quota),
        ErrorKind::File(F::ReadOnly),
        ErrorKind::File(F::Representation),
        ErrorKind::File(F::Operation),
        ErrorKind::Window(W::Displacement),
        ErrorKind::Window(W::Attach),
        ErrorKind::Window(W::Range),
        ErrorKind::Window(W::Shared),
        ErrorKind::NoMemory,
        ErrorKind::Request,
    ];
    KINDS.into_iter().find(|kind| kind.class() == class).unwrap_or(ErrorKind::Engine(class))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WindowErrorKind;

    #[test]
    fn replies_survive_their_way() {
        for outcome in [Ok(()), Err(ErrorClass::NO_MEM), Err(ErrorClass(48))] {
            let reply = ReplyWord::new(&outcome, 0x8000_0001);
            assert_eq!(ReplyWord::of(reply.word()), reply);
            assert_eq!((reply.class(), reply.number), (outcome.err(), 0x8000_0001));
        }
        // Any word of another process is a reply.
        assert_eq!(ReplyWord::of(u64::MAX).class(), Some(ErrorClass::OTHER));
        assert_eq!(ReplyWord::of(u64::from(u32::MAX)).class(), None);
        let shared = ErrorKind::Window(WindowErrorKind::Shared);
        for kind in [shared, ErrorKind::NoMemory, ErrorKind::Engine(ErrorClass::COUNT)] {
            assert_eq!(kind_of(kind.class()), kind);
        }
    }
}
