//! The messages between ranks that `mpiexec` has not started and the process that watches them, `mpiexec --behind`.
//!
//! ```text
//! first rank                     mpiexec --behind                    each rank
//!     | -- starts it, with a connection as standard input --> |
//!     | <-- Greeting: who it is and of which build ---------- |
//!     | -- number of ranks, their processes; its outputs ---> |
//!     | <-- the name at which it listens -------------------- | <-- Hello: rank, program; the launcher's connection --
//!                                                             | --- READY; the segment ------------------------------>
//! ```
//!
//! The connection by which a rank has said hello becomes its control socket. The watcher answers when all ranks are there;
//! it then shuts its direction down, and the rank waits for that before it arms the socket. Instead of a name or of
//! [`READY`], the watcher may send the reason why there will be none ([`refusal`]). A message that is not as it should be
//! is `None` here.

use crate::shm::layout::{HASH, MAX_RANKS};

/// The argument with which `mpiexec` becomes the watcher of ranks that it has not started.
pub const ARGUMENT: &str = "--behind";

/// With these bytes, all messages begin that tell who sends them.
const MARK: [u8; 8] = *b"typepack";

/// The answer to [`Hello`]. The segment comes with it.
pub const READY: &[u8] = b"=";

/// Maximum length of a message in bytes.
pub const MESSAGE_MAX: usize = 1024;

/// The first message of the watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The hash of the layout of the segment.
    pub hash: u64,
    /// The version of typepack.
    pub version: String,
}

impl Greeting {
    /// Returns the greeting of this build.
    pub fn own() -> Self {
        Self { hash: HASH, version: env!("CARGO_PKG_VERSION").into() }
    }

    /// Returns the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&MARK[..], &self.hash.to_le_bytes(), self.version.as_bytes()].concat()
    }

    /// Reads the message.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (hash, version) = bytes.strip_prefix(&MARK)?.split_first_chunk()?;
        let version = std::str::from_utf8(version)
            .ok()
            .filter(|text| text.bytes().all(|b| b.is_ascii_graphic()))?;
        Some(Self { hash: u64::from_le_bytes(*hash), version: version.to_owned() })
    }
}

/// The process of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it was started ([`inspect::started`](crate::sys::inspect::started)), or 0 if that is not known. Another process
    /// with the same number has another time.
    pub started: u64,
}

/// Number of bytes of a [`Process`] in a message.
const PROCESS_BYTES: usize = 12;

/// Returns the messages that tell the watcher the processes of the ranks. The first one says only how many ranks there are;
/// each other one has processes, in the order of the ranks.
pub fn setup(processes: &[Process]) -> impl Iterator<Item = Vec<u8>> {
    // The cast is exact, because a job has at most 2^12 ranks.
    let ranks = (processes.len() as u32).to_le_bytes().to_vec();
    let bytes = |process: &Process| {
        process.pid.to_le_bytes().into_iter().chain(process.started.to_le_bytes())
    };
    let message = move |part: &[Process]| part.iter().flat_map(bytes).collect();
    std::iter::once(ranks).chain(processes.chunks(MESSAGE_MAX / PROCESS_BYTES).map(message))
}

/// Reads the number of ranks from a message.
pub fn parse_ranks(bytes: &[u8]) -> Option<usize> {
    let ranks = u32::from_le_bytes(bytes.try_into().ok()?) as usize;
    (1..=MAX_RANKS).contains(&ranks).then_some(ranks)
}

/// Reads processes from a message. Returns `None` if it has none, or numbers that no process has.
pub fn parse_processes(bytes: &[u8]) -> Option<Vec<Process>> {
    let (parts, rest) = bytes.as_chunks::<PROCESS_BYTES>();
    let process = |part: &[u8; PROCESS_BYTES]| {
        let (pid, started) = part.split_first_chunk()?;
        let pid = u32::from_le_bytes(*pid);
        let is_number = i32::try_from(pid).is_ok_and(|pid| pid > 0);
        let started = u64::from_le_bytes(started.try_into().ok()?);
        is_number.then_some(Process { pid, started })
    };
    let all: Option<Vec<Process>> = parts.iter().map(process).collect();
    all.filter(|all| rest.is_empty() && !all.is_empty())
}

/// What a rank says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Its number.
    pub rank: u32,
    /// The number of the program that it runs, if the launcher has numbered the programs.
    pub program: Option<u32>,
}

impl Hello {
    /// Returns the message.
    pub fn to_bytes(self) -> Vec<u8> {
        let program = self.program.map_or(0, |program| program.saturating_add(1));
        [&MARK[..], &self.rank.to_le_bytes(), &program.to_le_bytes()].concat()
    }

    /// Reads the message.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (rank, program) = bytes.strip_prefix(&MARK)?.split_first_chunk()?;
        let program = u32::from_le_bytes(program.try_into().ok()?).checked_sub(1);
        Some(Self { rank: u32::from_le_bytes(*rank), program })
    }
}

/// Returns the message that tells a reason instead of the answer that is expected.
pub fn refusal(reason: &str) -> Vec<u8> {
    let mut bytes = vec![b'!'];
    bytes.extend(reason.bytes().take(MESSAGE_MAX - 1));
    bytes
}

/// Reads a reason from a message.
pub fn parse_refusal(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"!")?).into_owned();
    // The text may be shown on a terminal.
    Some(text.chars().map(|c| if c.is_control() { '?' } else { c }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_and_odd_ones_are_refused() {
        let greeting = Greeting::own();
        assert_eq!(Greeting::parse(&greeting.to_bytes()), Some(greeting.clone()));
        let hello = Hello { rank: 3, program: None };
        for hello in [hello, Hello { rank: 0, program: Some(1) }] {
            assert_eq!(Hello::parse(&hello.to_bytes()), Some(hello));
        }
        let processes: Vec<Process> =
            (1..=4096).map(|pid| Process { pid, started: u64::from(pid) << 33 }).collect();
        let messages: Vec<Vec<u8>> = setup(&processes).collect();
        assert!(messages.iter().all(|message| message.len() <= MESSAGE_MAX));
        assert_eq!(parse_ranks(&messages[0]), Some(4096));
        let read =
            messages[1..].iter().flat_map(|message| parse_processes(message).expect("processes"));
        assert!(read.eq(processes));
        for ranks in [0_u32, 4097, u32::MAX] {
            assert_eq!(parse_ranks(&ranks.to_le_bytes()), None);
        }
        for odd in [&b""[..], b"123", &[0; 12], &[0xff; 12], &[1; 13]] {
            assert_eq!(parse_processes(odd), None);
        }
        assert_eq!(parse_refusal(&refusal("no\u{1b}room")).as_deref(), Some("no?room"));
        let odd =
            [&b""[..], b"t", b"typepack", b"typepack1234567", b"TYPEPACK12345678", b"=", b"4096"];
        for bytes in odd {
            assert_eq!((Greeting::parse(bytes), Hello::parse(bytes)), (None, None), "{bytes:?}");
            assert_eq!(parse_refusal(bytes), None);
        }
        assert_eq!(Hello::parse(&[&hello.to_bytes()[..], b"x"].concat()), None);
        assert_eq!(Greeting::parse(&[&greeting.to_bytes()[..], b"\n"].concat()), None);
    }
}
