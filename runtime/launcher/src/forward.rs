//! Forwards the output of the ranks to mpiexec's standard output and standard error.
//!
//! `watch/` polls the pipes from the ranks and the two outputs of mpiexec, and calls the functions of this
//! file. `lines.rs` cuts the ranks' output into lines. If the reader of mpiexec's output is slow, the pipes
//! from the ranks become full, and the ranks wait. mpiexec itself never waits for the reader, so it can still
//! handle signals and the deaths of ranks.
//!
//! Invariants:
//! - A line enters its queue all at once, so lines of different ranks never mix. Only a line of more than
//!   16 MiB enters in several parts.
//! - If standard output and standard error are the same file, they share one queue. So after a partial write,
//!   the next write continues the same line.
//! - If the last line of a rank has no newline, this file adds a newline before other output follows.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use typepack_job::sys::stream::{self, Output, Transfer};

use crate::lines::Lines;

/// Number of waiting bytes at which a queue is full. While a queue holds this many bytes or more, mpiexec
/// does not read from the pipes that feed the queue.
const QUEUE_LIMIT: usize = 1 << 20;

/// Maximum number of bytes that mpiexec reads from a rank at a time: the usual capacity of a pipe.
const READ: usize = 64 << 10;

/// One of the two outputs of mpiexec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The reading end of a pipe from a rank, and the line that the rank has not finished yet.
#[derive(Debug)]
pub struct Source {
    fd: Option<OwnedFd>,
    stream: Stream,
    lines: Lines,
}

impl Source {
    /// Makes a source that reads from `fd`. Its lines go to `stream`, and `label` is put before each line.
    ///
    /// # Errors
    ///
    /// Returns the error of the system call.
    pub fn new(fd: OwnedFd, stream: Stream, label: Option<String>) -> io::Result<Self> {
        stream::set_nonblocking(fd.as_fd())?;
        Ok(Self { fd: Some(fd), stream, lines: Lines::new(label) })
    }

    /// Returns the descriptor to poll, or `None` if the rank's output has ended.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Returns the output of mpiexec to which the lines go.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Reads once from the pipe, and queues the complete lines. Returns true if there may be more to read.
    pub fn pump(&mut self, outputs: &mut Outputs) -> bool {
        let Some(fd) = &self.fd else { return false };
        let mut buffer = [0_u8; READ];
        match stream::read(fd.as_fd(), &mut buffer) {
            Ok(Transfer::Moved(n)) => {
                let mut whole = Vec::new();
                self.lines.feed(&buffer[..n], &mut whole);
                if !whole.is_empty() {
                    outputs.queue(self.stream).extend_from_slice(&whole);
                }
                true
            }
            Ok(Transfer::Later) => false,
            // If the pipe cannot be read, treat its output as ended.
            Ok(Transfer::Closed) | Err(_) => {
                self.finish(outputs);
                false
            }
        }
    }

    /// Ends the rank's output: queues the unfinished line, and closes the pipe.
    pub fn finish(&mut self, outputs: &mut Outputs) {
        let mut last = Vec::new();
        self.lines.finish(&mut last);
        if !last.is_empty() {
            outputs.queue(self.stream).extend_from_slice(&last);
            outputs.sink(self.stream).unended = true;
        }
        self.fd = None;
    }
}

/// The reason why mpiexec cannot write to its standard output.
#[derive(Debug)]
pub enum Trouble {
    /// The reader of standard output has closed it.
    Closed,
    /// A write failed with this error.
    Failed(io::Error),
}

#[derive(Debug)]
struct Sink {
    output: Option<Output>,
    queue: Vec<u8>,
    /// Number of bytes of `queue` that have been written.
    done: usize,
    /// True if the last line in the queue has no newline, and its rank will not continue the line.
    unended: bool,
}

impl Sink {
    fn new(output: io::Result<Output>) -> Self {
        Self { output: output.ok(), queue: Vec::new(), done: 0, unended: false }
    }

    fn waiting(&self) -> usize {
        self.queue.len() - self.done
    }

    /// Writes until the queue is empty or the output accepts no more bytes.
    fn flush(&mut self) -> Result<(), Trouble> {
        let Some(output) = &self.output else {
            self.queue.clear();
            self.done = 0;
            return Ok(());
        };
        while self.waiting() > 0 {
            let trouble = match output.write(&self.queue[self.done..]) {
                Ok(Transfer::Moved(n)) => {
                    self.done += n;
                    // Remove written bytes now and then, because a queue that never becomes empty would
                    // otherwise grow without limit.
                    if self.done > QUEUE_LIMIT {
                        self.queue.drain(..self.done);
                        self.done = 0;
                    }
                    // Write only once per poll, because a second write could block.
                    if output.must_poll() && self.waiting() > 0 {
                        return Ok(());
                    }
                    continue;
                }
                Ok(Transfer::Later) => return Ok(()),
                Ok(Transfer::Closed) => Trouble::Closed,
                Err(error) => Trouble::Failed(error),
            };
            self.output = None;
            self.queue.clear();
            self.done = 0;
            return Err(trouble);
        }
        self.queue.clear();
        self.done = 0;
        Ok(())
    }
}

/// The standard output and standard error of mpiexec, with their queues.
#[derive(Debug)]
pub struct Outputs {
    /// One sink if both outputs are the same file, otherwise two sinks: for standard output and for standard
    /// error.
    sinks: Vec<Sink>,
    terminals: [bool; 2],
    /// Who speaks in the lines of [`Outputs::tell`].
    name: &'static str,
}

impl Outputs {
    /// Opens the standard output and standard error of mpiexec. Output to a stream that is closed is
    /// discarded.
    pub fn standard() -> Self {
        let out = Output::new(io::stdout().as_fd());
        let err = Output::new(io::stderr().as_fd());
        let terminals = [&out, &err].map(|o| o.as_ref().is_ok_and(Output::is_terminal));
        let same = matches!((&out, &err), (Ok(out), Ok(err)) if out.is_same(err));
        let mut sinks = vec![Sink::new(out)];
        if !same {
            sinks.push(Sink::new(err));
        }
        Self { sinks, terminals, name: "mpiexec" }
    }

    /// Lets the lines of [`Outputs::tell`] begin with `name`.
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Returns true if `stream` is a terminal.
    pub fn is_terminal(&self, stream: Stream) -> bool {
        self.terminals[stream as usize]
    }

    fn sink(&mut self, stream: Stream) -> &mut Sink {
        let last = self.sinks.len() - 1;
        &mut self.sinks[last.min(stream as usize)]
    }

    /// Returns the queue of `stream`. If the last line in the queue will not be continued, adds a newline
    /// first.
    fn queue(&mut self, stream: Stream) -> &mut Vec<u8> {
        let sink = self.sink(stream);
        if std::mem::take(&mut sink.unended) {
            sink.queue.push(b'\n');
        }
        &mut sink.queue
    }

    /// Queues a line from mpiexec itself for standard error.
    pub fn tell(&mut self, line: &str) {
        let name = self.name;
        let queue = self.queue(Stream::Err);
        queue.extend_from_slice(format!("{name}: {line}").as_bytes());
        queue.push(b'\n');
    }

    /// Queues text from mpiexec itself for standard output.
    pub fn show(&mut self, text: &str) {
        self.queue(Stream::Out).extend_from_slice(text.as_bytes());
    }

    /// Returns true if the queue of `stream` has room for more output.
    pub fn has_room(&self, stream: Stream) -> bool {
        let last = self.sinks.len() - 1;
        self.sinks[last.min(stream as usize)].waiting() < QUEUE_LIMIT
    }

    /// Returns true if all queues are empty.
    pub fn is_empty(&self) -> bool {
        self.sinks.iter().all(|sink| sink.waiting() == 0)
    }

    /// Returns the descriptors of the outputs whose queues are not empty, for the caller to poll.
    pub fn waiting(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sinks
            .iter()
            .filter(|sink| sink.waiting() > 0)
            .filter_map(|sink| sink.output.as_ref().map(Output::fd))
    }

    /// Writes as many bytes as the outputs accept. A failure of standard error is ignored, and the job
    /// continues, because there is no other place to report the failure.
    ///
    /// # Errors
    ///
    /// Returns [`Trouble`] if a write to standard output fails. Later calls discard the output and return no
    /// error.
    pub fn flush(&mut self) -> Result<(), Trouble> {
        let mut sinks = self.sinks.iter_mut();
        let result = sinks.next().map_or(Ok(()), Sink::flush);
        for sink in sinks {
            let _ = sink.flush();
        }
        result
    }
}
