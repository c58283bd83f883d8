//! What a rank waits for, as other processes can read it. Each rank's slot in the segment has one such record.
//!
//! A rank writes its record when a wait begins to be long, before it sleeps, and erases it when the wait ends.
//! `mpiexec` reads the records of all ranks, also of ranks that are stopped or spin, to tell the user why a job does
//! not move.
//!
//! Only the rank writes its record, one thread at a time. The reader must not see half of one record and half of
//! another, so the rank increments a count before and after it changes the words. The count is odd in
//! between. A reader that finds an odd count, or another count after it has read the words, reads again.
//!
//! Two more counts tell whether anything moves: a rank that waits counts its looks for news, and the news that it
//! finds.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Maximum number of bytes of the name of a call.
pub const CALL_BYTES: usize = 48;

/// Maximum number of bytes of the name of a communicator.
pub const NAME_BYTES: usize = 64;

/// Number of words of a record that describe the wait.
const WORDS: usize = 29;

/// The first word of the call's name and of the communicator's name.
const CALL: usize = 8;
const NAME: usize = CALL + CALL_BYTES / 8;

const _: () = assert!(NAME + NAME_BYTES / 8 <= WORDS);

/// Number of times that a reader tries to read a record that changes.
const TRIES: usize = 1000;

/// The kind of the operation that a rank waits for. Shared memory stores the kind as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// None of the kinds below.
    #[default]
    Other = 1,
    /// A send.
    Send = 2,
    /// A receive.
    Receive = 3,
    /// A probe.
    Probe = 4,
    /// A collective call.
    Collective = 5,
    /// A call on a window.
    Window = 6,
    /// A call on a file.
    File = 7,
    /// The call by which a rank leaves the job.
    Finalize = 8,
}

impl Kind {
    fn from_word(word: u64) -> Option<Self> {
        use Kind::{Collective, File, Finalize, Other, Probe, Receive, Send, Window};
        let all = [Other, Send, Receive, Probe, Collective, Window, File, Finalize];
        all.into_iter().find(|kind| *kind as u64 == word)
    }
}

/// How far the operation is. Shared memory stores it as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Progress {
    /// Nothing more is known.
    #[default]
    Unknown = 0,
    /// No receive has matched the message.
    NotReceived = 1,
    /// The peer does not take the messages that this rank has sent to it before.
    NotTaken = 2,
    /// No matching message has arrived.
    NoMessage = 3,
    /// [`Wait::done`] bytes of the message have moved.
    Moving = 4,
    /// A thread of this process works on the operation, so that the rank does not wait for another rank.
    Working = 5,
}

impl Progress {
    fn from_word(word: u64) -> Self {
        use Progress::{Moving, NoMessage, NotReceived, NotTaken, Unknown, Working};
        let all = [NotReceived, NotTaken, NoMessage, Moving, Working];
        all.into_iter().find(|progress| *progress as u64 == word).unwrap_or(Unknown)
    }
}

/// A rank or a tag that an operation names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Named {
    /// The operation names none.
    #[default]
    None,
    /// The operation accepts any.
    Any,
    /// This one.
    One(u32),
}

impl Named {
    fn to_word(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Any => 1,
            Self::One(number) => u64::from(number) + 2,
        }
    }

    fn from_word(word: u64) -> Self {
        match word {
            0 => Self::None,
            1 => Self::Any,
            // A word of another size is not valid; the lower half is as good as any number.
            number => Self::One((number - 2) as u32),
        }
    }
}

/// A short text, cut if necessary.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Text<N> {
    /// Returns the text of these bytes.
    pub fn new(text: &[u8]) -> Self {
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        Self(bytes)
    }

    /// Returns the text in a form that may be shown on a terminal.
    pub fn shown(&self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);
        let text = String::from_utf8_lossy(&self.0[..end]);
        text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }
}

impl<const N: usize> std::fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.shown().fmt(f)
    }
}

/// What a rank waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// The kind of the operation.
    pub kind: Kind,
    /// How far the operation is.
    pub progress: Progress,
    /// Number of threads of the rank that wait. The record describes one of them.
    pub threads: u32,
    /// Number of other operations of which each would end the wait too.
    pub others: u32,
    /// When the wait began: nanoseconds of the machine's monotonic clock.
    pub since: u64,
    /// The rank of the world that sends or receives, or that has the lock or the memory.
    pub peer: Named,
    /// The tag.
    pub tag: Named,
    /// The number of bytes of the message, or, before a message has matched, for which a receive has room.
    pub bytes: u64,
    /// The number of these bytes that have moved.
    pub done: u64,
    /// The number of the communicator, which is the same on all ranks.
    pub communicator: u64,
    /// The number of ranks of the communicator; 0 if not known.
    pub ranks: u32,
    /// The thread that waits, by the number that the kernel gives it.
    pub thread: u32,
    /// The name of the call; empty if not known.
    pub call: Text<CALL_BYTES>,
    /// The name of the communicator; empty if it has none, or if the operation belongs to no communicator.
    pub name: Text<NAME_BYTES>,
}

impl Wait {
    fn to_words(self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[0] = self.kind as u64
            | (self.progress as u64) << 8
            | u64::from(self.threads as u16) << 16
            | u64::from(self.others) << 32;
        words[1] = self.since;
        words[2] = self.peer.to_word();
        words[3] = self.tag.to_word();
        words[4] = self.bytes;
        words[5] = self.done;
        words[6] = self.communicator;
        words[7] = u64::from(self.ranks) | u64::from(self.thread) << 32;
        let names = self.call.0.chunks_exact(8).chain(self.name.0.chunks_exact(8));
        for (word, bytes) in words[CALL..].iter_mut().zip(names) {
            let mut eight = [0; 8];
            eight.copy_from_slice(bytes);
            *word = u64::from_le_bytes(eight);
        }
        words
    }

    /// Returns `None` if the words describe no wait.
    fn from_words(words: &[u64; WORDS]) -> Option<Self> {
        let text = |at: usize, bytes: &mut [u8]| {
            for (to, word) in bytes.chunks_exact_mut(8).zip(&words[at..]) {
                to.copy_from_slice(&word.to_le_bytes());
            }
        };
        let (mut call, mut name) = (Text::default(), Text::default());
        text(CALL, &mut call.0);
        text(NAME, &mut name.0);
        Some(Self {
            kind: Kind::from_word(words[0] & 0xff)?,
            progress: Progress::from_word(words[0] >> 8 & 0xff),
            threads: (words[0] >> 16) as u16 as u32,
            others: (words[0] >> 32) as u32,
            since: words[1],
            peer: Named::from_word(words[2]),
            tag: Named::from_word(words[3]),
            bytes: words[4],
            done: words[5],
            communicator: words[6],
            ranks: words[7] as u32,
            thread: (words[7] >> 32) as u32,
            call,
            name,
        })
    }
}

/// What a reader finds in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Count of the changes of the record.
    pub version: u64,
    /// Count of the news that the rank has found while it waited.
    pub moved: u64,
    /// Count of the looks for news.
    pub looks: u64,
    /// What the rank waits for; `None` if it is in no wait, or if its record changed during the whole time in which the
    /// reader looked.
    pub wait: Option<Wait>,
}

/// The record of a rank in shared memory. Zeros mean that the rank does not wait.
#[repr(C)]
#[derive(Debug)]
pub struct Waiting {
    version: AtomicU64,
    moved: AtomicU64,
    looks: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Waiting {
    /// Stores what the rank waits for; `None` if it waits no more. Only the rank itself calls this function, one thread
    /// at a time.
    pub fn write(&self, wait: Option<&Wait>) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // A reader that sees one of the words below also sees the odd count.
        fence(Ordering::Release);
        match wait {
            Some(wait) => {
                for (word, value) in self.words.iter().zip(wait.to_words()) {
                    word.store(value, Ordering::Relaxed);
                }
            }
            None => self.words[0].store(0, Ordering::Relaxed),
        }
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Counts a look for news. `news` says whether the rank has found any since the last look. Only the rank itself
    /// calls this function, one thread at a time.
    #[inline]
    pub fn look(&self, news: bool) {
        let count = |word: &AtomicU64, by: u64| {
            word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        };
        count(&self.moved, u64::from(news));
        count(&self.looks, 1);
    }

    /// Reads the record. Any process may call this function, at any time.
    pub fn read(&self) -> Seen {
        let mut seen = Seen { version: 0, moved: 0, looks: 0, wait: None };
        for _ in 0..TRIES {
            seen.version = self.version.load(Ordering::Acquire);
            seen.moved = self.moved.load(Ordering::Relaxed);
            seen.looks = self.looks.load(Ordering::Relaxed);
            let mut words = [0; WORDS];
            for (to, from) in words.iter_mut().zip(&self.words) {
                *to = from.load(Ordering::Relaxed);
            }
            fence(Ordering::Acquire);
            let same = self.version.load(Ordering::Relaxed) == seen.version;
            if same && seen.version.is_multiple_of(2) {
                seen.wait = Wait::from_words(&words);
                break;
            }
            std::hint::spin_loop();
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn record() -> Waiting {
        let zero = || AtomicU64::new(0);
        Waiting {
            version: zero(),
            moved: zero(),
            looks: zero(),
            words: std::array::from_fn(|_| zero()),
        }
    }

    fn wait(number: u64) -> Wait {
        Wait {
            kind: Kind::Send,
            progress: Progress::Moving,
            threads: 3,
            others: 7,
            since: number,
            peer: Named::One(number as u32),
            tag: Named::Any,
            bytes: number,
            done: number,
            communicator: number,
            ranks: 5,
            thread: u32::MAX,
            call: Text::new(b"MPI_Send"),
            name: Text::new(number.to_string().as_bytes()),
        }
    }

    #[test]
    fn what_a_rank_writes_is_what_a_reader_sees() {
        let record = record();
        assert_eq!(record.read().wait, None);
        record.write(Some(&wait(42)));
        let seen = record.read();
        assert_eq!((seen.version, seen.wait), (2, Some(wait(42))));
        record.look(false);
        record.look(true);
        record.write(None);
        assert_eq!(record.read(), Seen { version: 4, moved: 1, looks: 2, wait: None });
        for named in [Named::None, Named::Any, Named::One(0), Named::One(u32::MAX)] {
            assert_eq!(Named::from_word(named.to_word()), named);
        }
    }

    #[test]
    fn texts_are_cut_and_safe_to_show() {
        assert_eq!(Text::<8>::new(b"123456789").shown(), "12345678");
        assert_eq!(Text::<8>::new(b"a\x1b[2J").shown(), "a?[2J");
        assert_eq!(Text::<8>::new(&[0xff, b'a']).shown(), "\u{fffd}a");
        assert_eq!(Text::<8>::default().shown(), "");
    }

    /// Checks that a rank that stopped while it changed its record does not keep the reader waiting.
    #[test]
    fn half_a_record_is_no_record() {
        let record = record();
        record.write(Some(&wait(1)));
        record.version.store(3, Ordering::Relaxed);
        assert_eq!((record.read().version, record.read().wait), (3, None));
    }

    #[test]
    fn a_reader_never_sees_parts_of_two_records() {
        let record = record();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..20_000 {
                    record.write(Some(&wait(number)));
                }
                over.store(true, Ordering::Relaxed);
            });
            while !over.load(Ordering::Relaxed) {
                if let Some(seen) = record.read().wait {
                    assert_eq!(seen, wait(seen.since));
                }
            }
        });
    }
}
