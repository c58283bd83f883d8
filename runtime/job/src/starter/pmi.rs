//! The text protocol by which a launcher tells its processes about each other: PMI, version 1, over the descriptor in
//! `PMI_FD`. MPICH's hydra, Slurm (`srun --mpi=pmi2`) and Flux speak it.
//!
//! Each command and each answer is a line of `key=value` words, of which the first is `cmd=NAME`. A process sends a
//! command and reads its answer; the launcher says nothing else. Processes exchange values by a table: what one has put
//! before a barrier, the others can get after it.
//!
//! What a launcher sends is untrusted: lines and values have limits, and an answer that is not the one expected is an error
//! that shows the line. Words that this file does not know are ignored, because launchers add some.

use std::fmt::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};
use crate::sys::{helper, local_socket};

/// Maximum length of an answer in bytes.
const LINE_MAX: usize = 4096;

/// Maximum length of the name of a table in bytes.
const NAME_MAX: usize = 1024;

/// Maximum length of a value that this library puts, if the launcher allows it.
pub const VALUE_MAX: usize = 255;

/// Maximum number of bytes of a line that an error shows.
const SHOWN: usize = 160;

/// A connection to the launcher.
#[derive(Debug)]
pub struct Connection {
    stream: OwnedFd,
    /// The name of the table of this job.
    table: String,
    key_max: usize,
    value_max: usize,
}

impl Connection {
    /// Makes the connection over `stream`. Nothing is sent yet.
    pub fn new(stream: OwnedFd) -> Self {
        Self { stream, table: String::new(), key_max: 0, value_max: 0 }
    }

    /// Greets the launcher, and asks for its limits and the name of the job's table.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::LauncherGone`] if the launcher has ended, [`ErrorKind::NotARank`] if it gives an odd answer, and
    /// [`ErrorKind::System`] if the system refuses a call.
    pub fn open(&mut self) -> Result<(), Error> {
        let answer = self.ask("init", "pmi_version=1 pmi_subversion=1", "response_to_init")?;
        if answer.number("pmi_version")? != 1 {
            return Err(answer.odd("it does not speak version 1"));
        }
        let answer = self.ask("get_maxes", "", "maxes")?;
        let limit = |key| Ok(usize::try_from(answer.number(key)?).unwrap_or(0));
        (self.key_max, self.value_max) = (limit("keylen_max")?, limit("vallen_max")?);
        let answer = self.ask("get_my_kvsname", "", "my_kvsname")?;
        let table = answer.value("kvsname")?;
        if table.is_empty() || table.len() > NAME_MAX {
            return Err(answer.odd("the name of the table is empty or too long"));
        }
        self.table = table.to_owned();
        Ok(())
    }

    /// Returns the descriptor of the connection.
    pub fn stream(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Puts a value into the table. Key and value have only visible characters of ASCII.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Connection::open`], and [`ErrorKind::NotARank`] if the launcher does not allow values or keys
    /// of this length.
    pub fn put(&self, key: &str, value: &str) -> Result<(), Error> {
        // The limits of some launchers count a zero byte at the end.
        if key.len() >= self.key_max || value.len() >= self.value_max {
            let detail = format!(
                "PMI: the launcher allows keys below {} bytes and values below {} bytes, which is too short for {key}={value}",
                self.key_max, self.value_max
            );
            return Err(Error::new(ErrorKind::NotARank, detail));
        }
        let words = format!("kvsname={} key={key} value={value}", self.table);
        self.ask("put", &words, "put_result").map(drop)
    }

    /// Returns a value of the table.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Connection::open`]; it is an odd answer that the table has no such key, and that a value
    /// is longer than [`VALUE_MAX`].
    pub fn get(&self, key: &str) -> Result<String, Error> {
        let answer = self.ask("get", &format!("kvsname={} key={key}", self.table), "get_result")?;
        if answer.find("found").is_some_and(|found| !found.eq_ignore_ascii_case("true")) {
            return Err(answer.odd("the key is not found"));
        }
        let value = answer.value("value")?;
        if value.len() > VALUE_MAX {
            return Err(answer.odd("the value is too long"));
        }
        Ok(value.to_owned())
    }

    /// Waits until all processes of the job are here.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Connection::open`].
    pub fn barrier(&self) -> Result<(), Error> {
        self.ask("barrier_in", "", "barrier_out").map(drop)
    }

    /// Returns the number of the program that this process runs.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Connection::open`].
    pub fn app_number(&self) -> Result<u32, Error> {
        let answer = self.ask("get_appnum", "", "appnum")?;
        // Some launchers do not number the programs, and say -1.
        Ok(u32::try_from(answer.number("appnum")?).unwrap_or(0))
    }

    /// Returns the number of processes for which the job has room, or `None` if nobody has said it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Connection::open`].
    pub fn universe_size(&self) -> Result<Option<u32>, Error> {
        let answer = self.ask("get_universe_size", "", "universe_size")?;
        Ok(u32::try_from(answer.number("size")?).ok().filter(|size| *size > 0))
    }

    /// Tells the launcher that this process needs it no longer. Waits for its answer, so that the launcher does not take the end
    /// of this process for a failure, but at most for the time `most`: the process needs the launcher no longer, whatever it
    /// answers.
    pub fn finalize(&self, most: Duration) {
        let until = Instant::now() + most;
        if local_socket::write_all(self.stream(), b"cmd=finalize\n").is_ok()
            && helper::wait(self.stream(), until).unwrap_or(false)
        {
            let _odd_or_gone = local_socket::read(self.stream(), &mut [0; LINE_MAX]);
        }
    }

    /// Asks the launcher to end the job with the exit code `code`. There is no answer.
    pub fn abort(&self, code: i32) {
        // If the launcher has ended, it has nothing to end.
        let _ended = local_socket::write_all(
            self.stream(),
            format!("cmd=abort exitcode={code}\n").as_bytes(),
        );
    }

    /// Sends a command and reads its answer, which must be `wanted`.
    fn ask(&self, command: &'static str, words: &str, wanted: &str) -> Result<Answer, Error> {
        let mut line = format!("cmd={command}");
        if !words.is_empty() {
            let _never_fails = write!(line, " {words}");
        }
        line.push('\n');
        let failed =
            |error| Error::system(format!("PMI: cannot send cmd={command} to the launcher"), error);
        match local_socket::write_all(self.stream(), line.as_bytes()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Err(gone(command));
            }
            other => other.map_err(failed)?,
        }
        let answer = Answer { command, line: self.line(command)? };
        if answer.line.split_ascii_whitespace().next().and_then(|word| word.strip_prefix("cmd="))
            != Some(wanted)
        {
            return Err(answer.odd(&format!("the answer must be cmd={wanted}")));
        }
        match answer.find("rc") {
            None | Some("0") => Ok(answer),
            Some(_) => Err(answer.odd("the launcher refuses it")),
        }
    }

    /// Reads a line, without the newline at its end.
    fn line(&self, command: &'static str) -> Result<String, Error> {
        let (mut line, mut buffer) = (Vec::new(), [0; 1024]);
        loop {
            let read = local_socket::read(self.stream(), &mut buffer);
            let count = read.map_err(|error| {
                Error::system(format!("PMI: no answer to cmd={command}"), error)
            })?;
            line.extend_from_slice(&buffer[..count]);
            let end = memchr::memchr(b'\n', &line);
            let odd = |why: &str| {
                Answer { command, line: String::from_utf8_lossy(&line).into_owned() }.odd(why)
            };
            match end {
                Some(at) if at + 1 < line.len() => return Err(odd("more than one line")),
                Some(at) => {
                    line.truncate(at);
                    return String::from_utf8(line).map_err(|error| {
                        let line = String::from_utf8_lossy(error.as_bytes()).into_owned();
                        Answer { command, line }.odd("it is no text")
                    });
                }
                None if count == 0 && line.is_empty() => return Err(gone(command)),
                None if count == 0 => return Err(odd("the launcher has ended within the line")),
                None if line.len() > LINE_MAX => return Err(odd("the line is too long")),
                None => {}
            }
        }
    }
}

fn gone(command: &str) -> Error {
    let detail =
        format!("PMI: the launcher has closed its connection and does not answer cmd={command}");
    Error::new(ErrorKind::LauncherGone, detail)
}

/// A line of the launcher, which answers a command.
#[derive(Debug)]
struct Answer {
    command: &'static str,
    line: String,
}

impl Answer {
    /// Returns the value of a key, or `None` if the line has no such key.
    fn find(&self, key: &str) -> Option<&str> {
        let mut words = self.line.split_ascii_whitespace();
        words
            .find_map(|word| word.split_once('=').filter(|(found, _)| *found == key))
            .map(|(_, value)| value)
    }

    fn value(&self, key: &str) -> Result<&str, Error> {
        self.find(key).ok_or_else(|| self.odd(&format!("it has no {key}")))
    }

    fn number(&self, key: &str) -> Result<i64, Error> {
        let number = self.value(key)?.parse();
        number.map_err(|_| self.odd(&format!("{key} is no number")))
    }

    /// Returns the error for this line, which says `why` it is odd.
    fn odd(&self, why: &str) -> Error {
        let mut shown = self.line.len().min(SHOWN);
        while !self.line.is_char_boundary(shown) {
            shown -= 1;
        }
        let more = if shown < self.line.len() { "…" } else { "" };
        let detail = format!(
            "PMI: the launcher answers cmd={} with {:?}{more}: {why}",
            self.command,
            &self.line[..shown]
        );
        Error::new(ErrorKind::NotARank, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;

    /// A time that no test waits for.
    const LONG: Duration = Duration::from_secs(100);

    /// What a launcher answers to the first three commands.
    const GREETING: [&str; 3] = [
        "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n",
        "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=256\n",
        "cmd=my_kvsname kvsname=job_1\n",
    ];

    /// Runs `client` against a launcher that answers each command with the next of `answers`, and then closes the
    /// connection.
    fn against<T>(answers: &[&str], client: impl FnOnce(OwnedFd) -> T) -> (T, Vec<String>) {
        let (ours, theirs) = UnixStream::pair().expect("a stream");
        let answers: Vec<Vec<u8>> = answers.iter().map(|line| line.as_bytes().to_vec()).collect();
        let server = std::thread::spawn(move || {
            let mut lines = BufReader::new(theirs.try_clone().expect("a descriptor")).lines();
            let mut seen = Vec::new();
            for answer in answers {
                let Some(Ok(line)) = lines.next() else { break };
                seen.push(line);
                if (&theirs).write_all(&answer).is_err() {
                    break;
                }
            }
            seen
        });
        let done = client(ours.into());
        (done, server.join().expect("a launcher"))
    }

    fn opened(stream: OwnedFd) -> Result<Connection, Error> {
        let mut pmi = Connection::new(stream);
        pmi.open().map(|()| pmi)
    }

    fn with(more: &[&str], client: impl FnOnce(&Connection) -> String) -> String {
        let answers: Vec<&str> = GREETING.iter().chain(more).copied().collect();
        against(&answers, |stream| client(&opened(stream).expect("greeted"))).0
    }

    #[test]
    fn commands_are_the_protocols_lines() {
        let answers = [
            &GREETING[..],
            &[
                "cmd=appnum rc=0 appnum=1\n",
                "cmd=universe_size rc=0 size=-1\n",
                "cmd=put_result rc=0 msg=success\n",
                "cmd=barrier_out tag=0\n",
                "cmd=get_result rc=0 value=a/b=c found=TRUE\n",
                "cmd=finalize_ack\n",
                "",
            ],
        ];
        let ((), seen) = against(&answers.concat(), |stream| {
            let pmi = opened(stream).expect("greeted");
            assert_eq!(pmi.app_number().expect("a number"), 1);
            assert_eq!(pmi.universe_size().expect("a number"), None);
            pmi.put("k", "v").expect("put");
            pmi.barrier().expect("a barrier");
            assert_eq!(pmi.get("k").expect("a value"), "a/b=c");
            pmi.finalize(LONG);
            pmi.abort(5);
        });
        let wanted = [
            "cmd=init pmi_version=1 pmi_subversion=1",
            "cmd=get_maxes",
            "cmd=get_my_kvsname",
            "cmd=get_appnum",
            "cmd=get_universe_size",
            "cmd=put kvsname=job_1 key=k value=v",
            "cmd=barrier_in",
            "cmd=get kvsname=job_1 key=k",
            "cmd=finalize",
            "cmd=abort exitcode=5",
        ];
        assert_eq!(seen, wanted);
    }

    /// A launcher that is stopped, that has ended, or that answers something else does not keep a process from ending.
    #[test]
    fn the_last_answer_is_not_needed() {
        let (ours, theirs) = UnixStream::pair().expect("a stream");
        let pmi = Connection { stream: theirs.into(), table: "t".into(), key_max: 9, value_max: 9 };
        pmi.finalize(Duration::from_millis(1));
        let mut seen = String::new();
        BufReader::new(&ours).read_line(&mut seen).expect("a line");
        assert_eq!(seen, "cmd=finalize\n");
        (&ours).write_all(b"what?\n").expect("room");
        pmi.finalize(LONG);
        drop(ours);
        pmi.finalize(LONG);
    }

    /// An answer may come in pieces.
    #[test]
    fn pieces_make_a_line() {
        let (mut ours, theirs) = UnixStream::pair().expect("a stream");
        let pmi = Connection { stream: theirs.into(), table: "t".into(), key_max: 9, value_max: 9 };
        let client = std::thread::spawn(move || pmi.get("k"));
        for piece in ["cmd=get_res", "ult rc=0 val", "ue=x\n"] {
            ours.write_all(piece.as_bytes()).expect("room");
            std::thread::yield_now();
        }
        assert_eq!(client.join().expect("a client").expect("a value"), "x");
    }

    #[test]
    fn odd_answers_are_errors_that_show_the_line() {
        let long = format!("cmd=get_result rc=0 value={}\n", "x".repeat(300));
        let endless = "x".repeat(5000);
        for (answer, why) in [
            ("cmd=put_result rc=0\n", "must be cmd=get_result"),
            ("rc=0 cmd=get_result value=1\n", "must be cmd=get_result"),
            ("cmd=get_result rc=-1 msg=key_k_not_found\n", "refuses it"),
            ("cmd=get_result rc=0\n", "has no value"),
            ("cmd=get_result rc=0 found=FALSE value=\n", "not found"),
            ("cmd=get_result rc=0 value=a\ncmd=more\n", "more than one line"),
            (&long, "too long"),
            (&endless, "too long"),
            ("cmd=get_result rc=0 val", "within the line"),
            ("\n", "must be cmd=get_result"),
            ("", "closed its connection"),
        ] {
            let text = with(&[answer], |pmi| pmi.get("k").expect_err("odd").to_string());
            assert!(text.contains(why) && text.contains("cmd=get"), "{answer:?}: {text}");
            assert!(text.len() < 400, "{text}");
        }
        let number = with(&["cmd=appnum appnum=one\n"], |pmi| {
            pmi.app_number().expect_err("odd").to_string()
        });
        assert!(number.contains("\"cmd=appnum appnum=one\": appnum is no number"), "{number}");
        let unseen =
            with(&["cmd=appnum\u{1b}[2J\n"], |pmi| pmi.app_number().expect_err("odd").to_string());
        assert!(!unseen.contains('\u{1b}'), "{unseen}");
    }

    #[test]
    fn odd_greetings_are_errors() {
        let long = format!("cmd=my_kvsname kvsname={}\n", "x".repeat(2000));
        for (at, answer, why) in [
            (0, "cmd=response_to_init rc=-1 pmi_version=2 pmi_subversion=0\n", "refuses it"),
            (0, "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n", "version 1"),
            (1, "cmd=maxes keylen_max=64\n", "vallen_max"),
            (2, "cmd=my_kvsname kvsname=\n", "empty or too long"),
            (2, &long, "empty or too long"),
        ] {
            let mut answers = GREETING;
            answers[at] = answer;
            let (opened, _) = against(&answers, opened);
            let text = opened.expect_err("odd").to_string();
            assert!(text.contains(why), "{answer:?}: {text}");
        }
        let mut short = GREETING;
        short[1] = "cmd=maxes kvsname_max=256 keylen_max=-4 vallen_max=8\n";
        let (text, _) = against(&short, |stream| {
            opened(stream).expect("greeted").put("key", "v").expect_err("short").to_string()
        });
        assert!(text.contains("keys below 0 bytes"), "{text}");
    }
}
