//! Controls a peer: starts its child process, sends layouts, and asks for turns.
//!
//! `child.rs` runs in the child process and answers. If a child crashes, hangs or gives a wrong answer,
//! the current layout gets a one-line error. If the child has crashed or hangs, a new child starts for the
//! next layout.

use super::Peer;
use crate::measure::{Guest, direction_name};
use crate::prepare::Bench;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use typepack_engine::kernel::Direction;
use typepack_engine::text;

/// If an answer takes longer than this, the child counts as hanging and is killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The run stops measuring a peer after this many of the peer's child processes have died.
const LIVES: usize = 5;

/// A peer and its child process. The peer measures many layouts, one after the other.
pub struct Session {
    peer: Peer,
    command: PathBuf,
    running: Option<Running>,
    deaths: usize,
    version: String,
    patience: Duration,
}

struct Running {
    child: Child,
    to: ChildStdin,
    from: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Kills the child instead of asking it to end, because a child that hangs would not answer. The
        // results are ignored: both calls fail only if the child has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Session {
    /// Starts the child process of `peer`. `command` is the path of this program.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the library of `peer` does not exist or has no known ABI, or if the
    /// child process does not start, crashes or hangs.
    pub fn start(peer: Peer, command: PathBuf) -> Result<Self, String> {
        Self::start_with(peer, command, PATIENCE)
    }

    /// Starts a peer like [`Session::start`]. If an answer takes longer than `patience`, the child counts
    /// as hanging.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Session::start`].
    pub fn start_with(peer: Peer, command: PathBuf, patience: Duration) -> Result<Self, String> {
        let version = String::new();
        let mut session = Self { peer, command, running: None, deaths: 0, version, patience };
        session.restart()?;
        Ok(session)
    }

    /// From now on, the child counts as hanging if an answer takes longer than `patience`.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Returns the version that the library reports.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn restart(&mut self) -> Result<(), String> {
        self.running = None;
        let library = std::path::absolute(&self.peer.library)
            .map_err(|e| format!("{}: {e}", self.peer.library.display()))?;
        let mut command = Command::new(&self.command);
        command.args(["peers", "--child"]).arg(&library);
        // With these variables, a library finds its files even if it is not installed in the folder for
        // which it was built.
        if let Some(prefix) = library.parent().and_then(|lib| lib.parent()) {
            command.env("OPAL_PREFIX", prefix).env("I_MPI_ROOT", prefix);
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().map_err(|e| format!("{}: {e}", self.command.display()))?;
        let (Some(to), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the child process has no pipes for standard input and output".to_owned());
        };
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let answer = line.strip_prefix('@');
                if answer.is_some_and(|answer| sender.send(answer.to_owned()).is_err()) {
                    return;
                }
            }
        });
        self.running = Some(Running { child, to, from });
        let answer = self.answer()?;
        let version = answer
            .strip_prefix("ready ")
            .ok_or(format!("gave the unexpected answer {answer:?}"))?;
        self.version = version.to_owned();
        Ok(())
    }

    /// Ends the child process. A new one starts for the next layout.
    pub fn end(&mut self) {
        self.running = None;
    }

    /// Waits for the next answer and returns it. If the answer is an error, or if the child ends or hangs,
    /// returns the reason as a one-line message.
    fn answer(&mut self) -> Result<String, String> {
        let Some(running) = &mut self.running else { return Err("is not running".to_owned()) };
        let fault = match running.from.recv_timeout(self.patience) {
            Ok(line) => match line.strip_prefix("error ") {
                Some(fault) => return Err(fault.to_owned()),
                None => return Ok(line),
            },
            Err(RecvTimeoutError::Timeout) => {
                format!("gave no answer in {} s", self.patience.as_secs())
            }
            // The child has closed its end of the pipe, so it is ending. Therefore `wait` does not block
            // for long.
            Err(RecvTimeoutError::Disconnected) => match running.child.wait() {
                Ok(status) => format!("crashed: {status}"),
                Err(error) => format!("crashed: {error}"),
            },
        };
        self.running = None;
        self.deaths += 1;
        Err(fault)
    }

    fn ask(&mut self, line: &str) -> Result<String, String> {
        if let Some(running) = &mut self.running {
            // The result is ignored: if the child has ended, `answer` reports that the answer is missing.
            let _ = writeln!(running.to, "{line}").and_then(|()| running.to.flush());
        }
        self.answer()
    }

    /// Sends the layout of `bench`. The peer makes the datatype and verifies its answers on the buffers of
    /// `bench`, whose contents change. All later turns use these buffers.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the peer refuses the layout, packs or unpacks a wrong byte, crashes,
    /// or hangs.
    pub fn layout(&mut self, bench: &Bench) -> Result<(), String> {
        self.send("layout", bench)
    }

    /// Sends the layout of `bench` like [`Session::layout`]. In each call of the turns that follow, the
    /// peer makes the type, uses it and frees it (`../storm.rs`).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Session::layout`].
    pub fn storm(&mut self, bench: &Bench) -> Result<(), String> {
        self.send("storm", bench)
    }

    fn send(&mut self, word: &str, bench: &Bench) -> Result<(), String> {
        if self.running.is_none() {
            if self.deaths >= LIVES {
                return Err(format!("not tried again after {LIVES} crashes"));
            }
            self.restart()?;
        }
        let ([memory, packed], layout) = (bench.paths(), &bench.layout);
        let ty = text::print(&layout.datatype);
        self.ask(&format!("{word} {} {memory} {packed} {ty}", layout.count)).map(|_| ())
    }
}

impl Guest for Session {
    fn name(&self) -> &str {
        &self.peer.name
    }

    fn turn(&mut self, direction: Direction) -> Result<f64, String> {
        let answer = self.ask(&format!("turn {}", direction_name(direction)))?;
        let ns = answer.strip_prefix("ns ").and_then(|ns| ns.parse::<f64>().ok());
        ns.filter(|ns| *ns > 0.0).ok_or(format!("gave the unexpected answer {answer:?}"))
    }
}
