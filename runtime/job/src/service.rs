//! What a rank asks `mpiexec` to do while the job runs, and what `mpiexec` answers: the bytes of both.
//!
//! A rank writes its request into a sealed file, and sends the file and the end of a pipe through its control socket
//! (`sys/channel.rs`, `shm/attach.rs`). The launcher reads the request (`launcher/src/watch/requests.rs`), writes the
//! answer into the pipe and closes it. `runtime/src/processes/` makes the requests.
//!
//! Every value is written as 32 bits, lowest first; a string as its length and its bytes. Both sides check all lengths:
//! a request or an answer with other bytes is refused as a whole.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use crate::sys::memory;

/// Maximum number of bytes of a request. The system accepts far fewer bytes of arguments.
const LONGEST: u64 = 16 << 20;

/// Maximum number of bytes of the reason of a refusal. So a refusal fits into a page, and so into any pipe.
const LONGEST_REASON: usize = 2048;

/// Maximum number of processes of a job (`shm/layout.rs` has as many slots).
pub(crate) const MOST_PROCESSES: usize = 4096;

/// Maximum number of commands of a request. A job has no more ranks, and the answer, with a number for each, fits into a
/// pipe.
const MOST_COMMANDS: usize = MOST_PROCESSES;

/// One command of a request to start processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Name of the program.
    pub program: Vec<u8>,
    /// Arguments of the program.
    pub arguments: Vec<Vec<u8>>,
    /// The numbers of processes that are allowed, largest first.
    pub counts: Vec<u32>,
    /// Directory in which the processes start: an absolute path.
    pub directory: Vec<u8>,
    /// Directories in which to search for the program instead of `PATH`, with colons between them; empty if none are
    /// given.
    pub path: Vec<u8>,
    /// Name of the error handler that communicators have initially; empty if none is given.
    pub errhandler: Vec<u8>,
}

/// A request of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Start these commands as the ranks of a new world.
    Start(Vec<Command>),
    /// Open a port.
    Open,
    /// Close the port with this name.
    Close(Vec<u8>),
    /// Wait at the port with this name for a process that connects to it.
    Accept(Vec<u8>),
    /// Connect to a process that accepts at the port with this name.
    Connect(Vec<u8>),
    /// Publish the port under the name of a service.
    Publish {
        /// Name of the service.
        service: Vec<u8>,
        /// Name of the port.
        port: Vec<u8>,
    },
    /// Withdraw the name of a service.
    Unpublish {
        /// Name of the service.
        service: Vec<u8>,
        /// Name of the port.
        port: Vec<u8>,
    },
    /// Find the port of a service.
    Lookup(Vec<u8>),
    /// Disconnect a communicator. The answer comes when all its members have asked.
    Disconnect {
        /// The number of the communicator, low half first.
        communicator: [u32; 2],
        /// Number of members.
        members: u32,
        /// The worlds with which the rank has no other communicator: the first slot of each.
        worlds: Vec<u32>,
    },
}

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Processes cannot be started.
    Start,
    /// A port is not there.
    Port,
    /// A service cannot be published, or was not published.
    Service,
    /// No service has the name.
    Name,
    /// The request is not valid, or the system refuses a call.
    Other,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The processes run.
    Started {
        /// Slot of the first one; the others follow.
        first: u32,
        /// Number of processes of each command.
        counts: Vec<u32>,
    },
    /// The name of a port.
    Port(Vec<u8>),
    /// The request is done.
    Done,
    /// The slot of the process at the other end of a connection, and a number that no other connection has.
    Met {
        /// The slot.
        slot: u32,
        /// The number.
        number: u32,
    },
    /// The request is refused, and why.
    Refused(Refused, Vec<u8>),
}

/// Writes values.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn word(&mut self, word: u32) {
        self.0.extend(word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        // A longer string makes the request longer than is allowed, and so is refused there.
        self.word(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.0.extend(bytes);
    }

    fn words(&mut self, words: &[u32]) {
        self.word(words.len() as u32);
        words.iter().for_each(|word| self.word(*word));
    }
}

/// Reads values that another process wrote.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }

    fn slice(&mut self) -> Option<&'a [u8]> {
        let length = self.word()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        self.slice().map(<[u8]>::to_vec)
    }

    /// Reads a list. Each entry takes at least four bytes, so a wrong length takes no memory.
    fn list<T>(&mut self, entry: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.short_list(usize::MAX, entry)
    }

    /// Reads a list of at most `most` entries.
    fn short_list<T>(
        &mut self,
        most: usize,
        mut entry: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let length = self.word()? as usize;
        if length > most.min(self.0.len() / 4) {
            return None;
        }
        (0..length).map(|_| entry(self)).collect()
    }

    fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

impl Request {
    fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::default();
        match self {
            Self::Start(commands) => {
                to.word(1);
                to.word(commands.len() as u32);
                for command in commands {
                    to.bytes(&command.program);
                    to.word(command.arguments.len() as u32);
                    command.arguments.iter().for_each(|argument| to.bytes(argument));
                    to.words(&command.counts);
                    to.bytes(&command.directory);
                    to.bytes(&command.path);
                    to.bytes(&command.errhandler);
                }
            }
            Self::Open => to.word(2),
            Self::Close(port) => {
                to.word(3);
                to.bytes(port);
            }
            Self::Accept(port) => {
                to.word(4);
                to.bytes(port);
            }
            Self::Connect(port) => {
                to.word(5);
                to.bytes(port);
            }
            Self::Publish { service, port } => {
                to.word(6);
                to.bytes(service);
                to.bytes(port);
            }
            Self::Unpublish { service, port } => {
                to.word(7);
                to.bytes(service);
                to.bytes(port);
            }
            Self::Lookup(service) => {
                to.word(8);
                to.bytes(service);
            }
            Self::Disconnect { communicator, members, worlds } => {
                to.word(9);
                communicator.iter().chain([members]).for_each(|word| to.word(*word));
                to.words(worlds);
            }
        }
        to.0
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let request = match from.word()? {
            1 => Self::Start(from.short_list(MOST_COMMANDS, |from| {
                Some(Command {
                    program: from.bytes()?,
                    arguments: from.list(Reader::bytes)?,
                    counts: from.short_list(MOST_PROCESSES + 1, Reader::word)?,
                    directory: from.bytes()?,
                    path: from.bytes()?,
                    errhandler: from.bytes()?,
                })
            })?),
            2 => Self::Open,
            3 => Self::Close(from.bytes()?),
            4 => Self::Accept(from.bytes()?),
            5 => Self::Connect(from.bytes()?),
            6 => Self::Publish { service: from.bytes()?, port: from.bytes()? },
            7 => Self::Unpublish { service: from.bytes()?, port: from.bytes()? },
            8 => Self::Lookup(from.bytes()?),
            9 => Self::Disconnect {
                communicator: [from.word()?, from.word()?],
                members: from.word()?,
                worlds: from.short_list(MOST_PROCESSES, Reader::word)?,
            },
            _ => return None,
        };
        from.end(request)
    }

    /// Writes the request into a file, for the launcher.
    ///
    /// # Errors
    ///
    /// Returns `E2BIG` if the request is longer than 16 MiB, and otherwise the kernel's error.
    pub fn to_file(&self) -> io::Result<OwnedFd> {
        let bytes = self.to_bytes();
        if bytes.len() as u64 > LONGEST {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        let file = memory::create_sealed("typepack-request", bytes.len() as u64)?;
        // Without memory, a write returns an error.
        let file = File::from(file);
        file.write_all_at(&bytes, 0)?;
        Ok(file.into())
    }

    /// Reads a request that another process has written. The file cannot become shorter meanwhile.
    ///
    /// # Errors
    ///
    /// Returns `InvalidData` if the file is none of [`Request::to_file`] or its content is not a request, and otherwise
    /// the kernel's error.
    pub fn from_file(file: OwnedFd) -> io::Result<Self> {
        let refused = || io::Error::from(io::ErrorKind::InvalidData);
        let length = memory::sealed_len(file.as_fd())?;
        let length = length.filter(|length| *length <= LONGEST).ok_or_else(refused)?;
        let mut bytes = vec![0; length as usize];
        File::from(file).read_exact_at(&mut bytes, 0)?;
        Self::parse(&bytes).ok_or_else(refused)
    }
}

impl Refused {
    const ALL: [Self; 5] = [Self::Start, Self::Port, Self::Service, Self::Name, Self::Other];
}

impl Answer {
    /// Returns the bytes of the answer. They fit into a pipe that is empty.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::default();
        match self {
            Self::Started { first, counts } => {
                to.word(1);
                to.word(*first);
                to.words(counts);
            }
            Self::Port(name) => {
                to.word(2);
                to.bytes(name);
            }
            Self::Done => to.word(3),
            Self::Met { slot, number } => {
                to.word(4);
                to.word(*slot);
                to.word(*number);
            }
            Self::Refused(kind, why) => {
                to.word(5);
                to.word(*kind as u32);
                to.bytes(&why[..why.len().min(LONGEST_REASON)]);
            }
        }
        to.0
    }

    /// Reads an answer. Returns `None` if the bytes are not one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let answer = match from.word()? {
            1 => Self::Started { first: from.word()?, counts: from.list(Reader::word)? },
            2 => Self::Port(from.bytes()?),
            3 => Self::Done,
            4 => Self::Met { slot: from.word()?, number: from.word()? },
            5 => {
                let kind = from.word()?;
                let kind = Refused::ALL.into_iter().find(|known| *known as u32 == kind)?;
                Self::Refused(kind, from.bytes()?)
            }
            _ => return None,
        };
        from.end(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<Request> {
        let command = Command {
            program: b"./worker".to_vec(),
            arguments: vec![b"".to_vec(), b"a b".to_vec()],
            counts: vec![4, 2, 0],
            directory: b"/tmp".to_vec(),
            ..Command::default()
        };
        let (service, port) = (b"service".to_vec(), b"port".to_vec());
        vec![
            Request::Start(vec![command, Command::default()]),
            Request::Start(Vec::new()),
            Request::Open,
            Request::Close(port.clone()),
            Request::Accept(port.clone()),
            Request::Connect(Vec::new()),
            Request::Publish { service: service.clone(), port: port.clone() },
            Request::Unpublish { service: service.clone(), port },
            Request::Lookup(service),
            Request::Disconnect { communicator: [5, 6], members: 2, worlds: vec![0, 7] },
        ]
    }

    #[test]
    fn what_was_written_is_read() {
        for request in requests() {
            let file = request.to_file().expect("a file");
            assert_eq!(Request::from_file(file).expect("a request"), request);
        }
        let refused = Answer::Refused(Refused::Name, b"nobody".to_vec());
        let started = Answer::Started { first: 7, counts: vec![2, 0] };
        let met = Answer::Met { slot: 1, number: u32::MAX };
        for answer in [started, Answer::Port(b"x".to_vec()), Answer::Done, met, refused] {
            assert_eq!(Answer::parse(&answer.to_bytes()), Some(answer.clone()));
            for length in 0..answer.to_bytes().len() {
                assert_eq!(Answer::parse(&answer.to_bytes()[..length]), None);
            }
        }
    }

    #[test]
    fn other_bytes_are_no_request() {
        for request in requests() {
            let bytes = request.to_bytes();
            for length in 0..bytes.len() {
                assert_eq!(Request::parse(&bytes[..length]), None, "{length} {request:?}");
            }
            assert_eq!(Request::parse(&[bytes.as_slice(), b"\0"].concat()), None);
            // Whatever a word says, nothing panics and no memory is taken for it.
            for at in 4..bytes.len().saturating_sub(3) {
                let mut wrong = bytes.clone();
                wrong[at..at + 4].fill(0xff);
                let _request_or_not = Request::parse(&wrong);
            }
        }
        // A length that no memory could hold: of the list of commands, of a program, of arguments and of a port.
        let words =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
        for wrong in [
            &[1, u32::MAX][..],
            &[1, 1, u32::MAX, 0, 0, 0, 0, 0],
            &[1, 1, 0, u32::MAX, 0, 0, 0, 0],
            &[1, 1, 0, 0, u32::MAX, 0, 0, 0],
            &[4, u32::MAX],
            &[9, 0, 0, 0, u32::MAX],
        ] {
            assert_eq!(Request::parse(&words(wrong)), None, "{wrong:?}");
        }
        let commands = |count| Request::Start(vec![Command::default(); count]);
        assert!(Request::parse(&commands(MOST_COMMANDS).to_bytes()).is_some());
        assert_eq!(Request::parse(&commands(MOST_COMMANDS + 1).to_bytes()), None);
        let started = Answer::Started { first: 0, counts: vec![1; MOST_COMMANDS] };
        assert!(started.to_bytes().len() <= 16 * 4096, "the answer fits into a pipe");
        let refused = Answer::Refused(Refused::Other, vec![b'x'; 1 << 20]);
        assert!(refused.to_bytes().len() <= 4096, "{}", refused.to_bytes().len());
        assert_eq!(Request::parse(&99_u32.to_le_bytes()), None);
        let plain = OwnedFd::from(File::open("/dev/null").expect("null"));
        assert!(Request::from_file(plain).is_err());
        let long = memory::create_sealed("typepack-test", LONGEST + 1).expect("a file");
        assert!(Request::from_file(long).is_err());
        let too_long = Request::Lookup(vec![0; LONGEST as usize]);
        assert_eq!(too_long.to_file().map_err(|e| e.raw_os_error()).err(), Some(Some(libc::E2BIG)));
    }
}
