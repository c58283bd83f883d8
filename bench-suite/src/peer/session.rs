//! This process's side of a peer: starts the child, sends layouts, asks for turns.
//!
//! `child.rs` answers. A child that crashes, hangs or gives a wrong answer is an error of one line
//! for the layout at hand; the next layout gets a fresh child.

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

/// How long an answer may take before the child counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// Children of one peer that may die before it is given up.
const LIVES: usize = 5;

/// A peer, for many layouts one after the other.
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
        // Killed and not asked: it may hang. Both fail only when it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Session {
    /// Starts `peer` with the command `command` (this program's own path).
    ///
    /// # Errors
    ///
    /// One line: no such library, no ABI that is known, a crash.
    pub fn start(peer: Peer, command: PathBuf) -> Result<Self, String> {
        Self::start_with(peer, command, PATIENCE)
    }

    /// As [`Session::start`]; an answer may take `patience`.
    ///
    /// # Errors
    ///
    /// As [`Session::start`].
    pub fn start_with(peer: Peer, command: PathBuf, patience: Duration) -> Result<Self, String> {
        let version = String::new();
        let mut session = Self { peer, command, running: None, deaths: 0, version, patience };
        session.restart()?;
        Ok(session)
    }

    /// The library's version, in its own words.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn restart(&mut self) -> Result<(), String> {
        self.running = None;
        let library = std::path::absolute(&self.peer.library)
            .map_err(|e| format!("{}: {e}", self.peer.library.display()))?;
        let mut command = Command::new(&self.command);
        command.args(["peers", "--child"]).arg(&library);
        // Installed elsewhere than they were built, these find their parts by variables.
        if let Some(prefix) = library.parent().and_then(|lib| lib.parent()) {
            command.env("OPAL_PREFIX", prefix).env("I_MPI_ROOT", prefix);
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().map_err(|e| format!("{}: {e}", self.command.display()))?;
        let (Some(to), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes to the child".to_owned());
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
        let version = answer.strip_prefix("ready ").ok_or(format!("answered {answer}"))?;
        self.version = version.to_owned();
        Ok(())
    }

    /// Ends the child; the next layout gets a fresh one.
    pub fn end(&mut self) {
        self.running = None;
    }

    /// The next answer; what ends the child becomes the error.
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
            // Its end of the pipe is closed: it is ending, and waiting for it does not hang.
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
            // A child that has ended is found by the answer that does not come.
            let _ = writeln!(running.to, "{line}").and_then(|()| running.to.flush());
        }
        self.answer()
    }

    /// Sends the layout of `bench`; the peer makes its datatype, and is verified on the buffers of
    /// `bench`, on which it works from then on. Their contents change.
    ///
    /// # Errors
    ///
    /// One line: what the peer refused, a wrong byte, a crash.
    pub fn layout(&mut self, bench: &Bench) -> Result<(), String> {
        self.send("layout", bench)
    }

    /// As [`Session::layout`]; turns are then those of a storm (`../storm.rs`).
    ///
    /// # Errors
    ///
    /// As [`Session::layout`].
    pub fn storm(&mut self, bench: &Bench) -> Result<(), String> {
        self.send("storm", bench)
    }

    fn send(&mut self, word: &str, bench: &Bench) -> Result<(), String> {
        if self.running.is_none() {
            if self.deaths >= LIVES {
                return Err(format!("was given up after {LIVES} crashes"));
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
        ns.filter(|ns| *ns > 0.0).ok_or(format!("answered {answer}"))
    }
}
