//! The output of the ranks on its way to ours.
//!
//! `watch.rs` polls the pipes of the ranks and our two outputs and calls in here; `lines.rs` cuts
//! lines. A reader of ours that is slow holds back the ranks by their own full pipes, and never
//! the launcher: it still hears signals and deaths.
//!
//! Invariants: a line enters a queue in one piece, so lines of different ranks never mix; where
//! standard output and error are the same file they share one queue, so that a line cut by a
//! partial write is not continued by another; a last line that was not ended is ended here when
//! something else follows it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use typepack_job::sys::stream::{self, Output, Transfer};

use crate::lines::Lines;

/// Bytes that may wait for our reader before the ranks' pipes are left alone.
const QUEUE_LIMIT: usize = 1 << 20;

/// Bytes read from a rank at a time: what a pipe holds.
const READ: usize = 64 << 10;

/// Which output.
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
    /// A source whose lines go to `stream`, each with `label` before it.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn new(fd: OwnedFd, stream: Stream, label: Option<String>) -> io::Result<Self> {
        stream::set_nonblocking(fd.as_fd())?;
        Ok(Self { fd: Some(fd), stream, lines: Lines::new(label) })
    }

    /// For polling, `None` after the end of the stream.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Where it goes.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Reads once and queues what has become whole lines. Returns whether there may be more.
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
            // A pipe that cannot be read any more is at its end, whatever the reason.
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

/// What writing to an output came to, where it matters.
#[derive(Debug)]
pub enum Trouble {
    /// Nobody reads our standard output any more.
    Closed,
    /// It cannot be written.
    Failed(io::Error),
}

#[derive(Debug)]
struct Sink {
    output: Option<Output>,
    queue: Vec<u8>,
    /// Bytes of `queue` already written.
    done: usize,
    /// The last line queued has no end and will not be continued.
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
                    // A queue that never runs empty must not grow for ever.
                    if self.done > QUEUE_LIMIT {
                        self.queue.drain(..self.done);
                        self.done = 0;
                    }
                    // One write per poll where a second one might block.
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

/// Our standard output and error, with what waits for them.
#[derive(Debug)]
pub struct Outputs {
    /// One sink when both are the same file, else two, standard output first.
    sinks: Vec<Sink>,
    terminals: [bool; 2],
}

impl Outputs {
    /// The launcher's standard streams. One that is closed swallows what is written.
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

    /// Whether the output is a terminal.
    pub fn is_terminal(&self, stream: Stream) -> bool {
        self.terminals[stream as usize]
    }

    fn sink(&mut self, stream: Stream) -> &mut Sink {
        let last = self.sinks.len() - 1;
        &mut self.sinks[last.min(stream as usize)]
    }

    /// Where the next piece for `stream` goes, at the start of a line.
    fn queue(&mut self, stream: Stream) -> &mut Vec<u8> {
        let sink = self.sink(stream);
        if std::mem::take(&mut sink.unended) {
            sink.queue.push(b'\n');
        }
        &mut sink.queue
    }

    /// Queues a line of our own for standard error.
    pub fn tell(&mut self, line: &str) {
        let queue = self.queue(Stream::Err);
        queue.extend_from_slice(b"mpiexec: ");
        queue.extend_from_slice(line.as_bytes());
        queue.push(b'\n');
    }

    /// Queues text of our own for standard output.
    pub fn show(&mut self, text: &str) {
        self.queue(Stream::Out).extend_from_slice(text.as_bytes());
    }

    /// Whether more may be read for `stream`.
    pub fn has_room(&self, stream: Stream) -> bool {
        let last = self.sinks.len() - 1;
        self.sinks[last.min(stream as usize)].waiting() < QUEUE_LIMIT
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.sinks.iter().all(|sink| sink.waiting() == 0)
    }

    /// The outputs that something waits for, for polling.
    pub fn waiting(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sinks
            .iter()
            .filter(|sink| sink.waiting() > 0)
            .filter_map(|sink| sink.output.as_ref().map(Output::fd))
    }

    /// Writes what the outputs take. Trouble with standard error is not told: there is nowhere to
    /// tell it, and it ends no job.
    ///
    /// # Errors
    ///
    /// [`Trouble`] with standard output, once.
    pub fn flush(&mut self) -> Result<(), Trouble> {
        let mut sinks = self.sinks.iter_mut();
        let result = sinks.next().map_or(Ok(()), Sink::flush);
        for sink in sinks {
            let _ = sink.flush();
        }
        result
    }
}
