//! Forwards the output of the ranks to mpiexec's standard output and standard error.
//!
//! `watch.rs` polls the pipes of the ranks and the two outputs of mpiexec, and calls this file. `lines.rs`
//! cuts the output into lines. If the reader of mpiexec's output is slow, the pipes of the ranks become full
//! and the ranks wait. The launcher never waits, so it still handles signals and deaths.
//!
//! Invariants:
//! - A line enters a queue in one piece, so lines of different ranks never mix.
//! - If standard output and standard error are the same file, they share one queue, so that after a partial
//!   write the rest of the line comes next.
//! - If the last line of a rank has no newline, this file adds the newline before other output follows.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use typepack_job::sys::stream::{self, Output, Transfer};

use crate::lines::Lines;

/// Bytes that may wait in a queue. Above this limit mpiexec does not read from the ranks' pipes.
const QUEUE_LIMIT: usize = 1 << 20;

/// Bytes read from a rank at a time: the capacity of a pipe.
const READ: usize = 64 << 10;

/// An output of mpiexec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The reading end of a rank's pipe, and its unfinished line.
#[derive(Debug)]
pub struct Source {
    fd: Option<OwnedFd>,
    stream: Stream,
    lines: Lines,
}

impl Source {
    /// Makes a source whose lines go to `stream`, each after `label`.
    ///
    /// # Errors
    ///
    /// Returns the error of the system call.
    pub fn new(fd: OwnedFd, stream: Stream, label: Option<String>) -> io::Result<Self> {
        stream::set_nonblocking(fd.as_fd())?;
        Ok(Self { fd: Some(fd), stream, lines: Lines::new(label) })
    }

    /// Returns the descriptor to poll, or `None` after the end of the stream.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Returns the output that the lines go to.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Reads once and queues the complete lines. Returns whether there may be more to read.
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
            // A pipe that fails to read is treated as ended.
            Ok(Transfer::Closed) | Err(_) => {
                self.finish(outputs);
                false
            }
        }
    }

    /// Ends the stream: queues the unfinished line.
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

/// A failure to write to standard output.
#[derive(Debug)]
pub enum Trouble {
    /// The reader of standard output has closed it.
    Closed,
    /// Writing failed with this error.
    Failed(io::Error),
}

#[derive(Debug)]
struct Sink {
    output: Option<Output>,
    queue: Vec<u8>,
    /// Bytes of `queue` that are already written.
    done: usize,
    /// The last queued line has no newline, and its rank will not continue it.
    unended: bool,
}

impl Sink {
    fn new(output: io::Result<Output>) -> Self {
        Self { output: output.ok(), queue: Vec::new(), done: 0, unended: false }
    }

    fn waiting(&self) -> usize {
        self.queue.len() - self.done
    }

    /// Writes until the queue is empty or the output takes no more.
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
                    // A queue that never becomes empty must not grow without limit.
                    if self.done > QUEUE_LIMIT {
                        self.queue.drain(..self.done);
                        self.done = 0;
                    }
                    // A second write could block, so there is one write per poll.
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
    /// One sink if both are the same file, else two sinks, standard output first.
    sinks: Vec<Sink>,
    terminals: [bool; 2],
}

impl Outputs {
    /// Opens the standard streams of mpiexec. Output to a closed stream is discarded.
    pub fn standard() -> Self {
        let out = Output::new(io::stdout().as_fd());
        let err = Output::new(io::stderr().as_fd());
        let terminals = [&out, &err].map(|o| o.as_ref().is_ok_and(Output::is_terminal));
        let same = matches!((&out, &err), (Ok(out), Ok(err)) if out.is_same(err));
        let mut sinks = vec![Sink::new(out)];
        if !same {
            sinks.push(Sink::new(err));
        }
        Self { sinks, terminals }
    }

    /// Returns whether the output is a terminal.
    pub fn is_terminal(&self, stream: Stream) -> bool {
        self.terminals[stream as usize]
    }

    fn sink(&mut self, stream: Stream) -> &mut Sink {
        let last = self.sinks.len() - 1;
        &mut self.sinks[last.min(stream as usize)]
    }

    /// Ends the last line in the queue of `stream` if it is unfinished, and returns the queue.
    fn queue(&mut self, stream: Stream) -> &mut Vec<u8> {
        let sink = self.sink(stream);
        if std::mem::take(&mut sink.unended) {
            sink.queue.push(b'\n');
        }
        &mut sink.queue
    }

    /// Queues a line of mpiexec for standard error.
    pub fn tell(&mut self, line: &str) {
        let queue = self.queue(Stream::Err);
        queue.extend_from_slice(b"mpiexec: ");
        queue.extend_from_slice(line.as_bytes());
        queue.push(b'\n');
    }

    /// Queues text of mpiexec for standard output.
    pub fn show(&mut self, text: &str) {
        self.queue(Stream::Out).extend_from_slice(text.as_bytes());
    }

    /// Returns whether the queue of `stream` has room for more output.
    pub fn has_room(&self, stream: Stream) -> bool {
        let last = self.sinks.len() - 1;
        self.sinks[last.min(stream as usize)].waiting() < QUEUE_LIMIT
    }

    /// Returns whether all queues are empty.
    pub fn is_empty(&self) -> bool {
        self.sinks.iter().all(|sink| sink.waiting() == 0)
    }

    /// Returns the outputs whose queues are not empty, for polling.
    pub fn waiting(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sinks
            .iter()
            .filter(|sink| sink.waiting() > 0)
            .filter_map(|sink| sink.output.as_ref().map(Output::fd))
    }

    /// Writes as much as the outputs take. A failure of standard error is ignored, because there is no other
    /// place to report it; the job continues.
    ///
    /// # Errors
    ///
    /// Returns [`Trouble`] if writing to standard output fails. Later calls succeed and write nothing.
    pub fn flush(&mut self) -> Result<(), Trouble> {
        let mut sinks = self.sinks.iter_mut();
        let result = sinks.next().map_or(Ok(()), Sink::flush);
        for sink in sinks {
            let _ = sink.flush();
        }
        result
    }
}
