//! Cuts a rank's output into lines.
//!
//! `forward.rs` passes the bytes of a pipe to [`Lines`], and gets the complete lines back. A newline
//! completes a line. A carriage return also completes a line, so that progress displays appear at once. At
//! the end of the stream, [`Lines`] also returns the unfinished line.
//!
//! Invariant: all bytes come out once and in order, and nothing but labels is added.

use memchr::{memchr2, memrchr2};

/// Maximum length in bytes of an unfinished line. A longer line comes out in several parts, because otherwise
/// a rank that never ends its line would fill the memory of mpiexec.
const MAX_LINE: usize = 16 << 20;

/// Where the next byte of the stream falls: at the start of a line, directly after a carriage return, or
/// inside a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    /// Directly after a carriage return. If the next byte is a newline, it still belongs to the previous
    /// line.
    AfterReturn,
    Middle,
}

/// The state of one stream: its unfinished line.
#[derive(Debug)]
pub struct Lines {
    partial: Vec<u8>,
    label: Option<String>,
    at: At,
}

impl Lines {
    /// Makes the state of a new stream. `label` is put before each line.
    pub fn new(label: Option<String>) -> Self {
        Self { partial: Vec::new(), label, at: At::Start }
    }

    /// Takes the next bytes of the stream, and appends the complete lines to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let complete = memrchr2(b'\n', b'\r', bytes).map_or(0, |i| i + 1);
        let (whole, rest) = bytes.split_at(complete);
        if !whole.is_empty() {
            if self.partial.is_empty() {
                self.emit(whole, out);
            } else {
                let mut partial = std::mem::take(&mut self.partial);
                partial.extend_from_slice(whole);
                self.emit(&partial, out);
            }
        }
        self.partial.extend_from_slice(rest);
        if self.partial.len() > MAX_LINE {
            self.finish(out);
        }
    }

    /// Ends the stream: appends the unfinished line to `out`.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let partial = std::mem::take(&mut self.partial);
        self.emit(&partial, out);
    }

    fn emit(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        let Some(label) = &self.label else {
            out.extend_from_slice(bytes);
            return;
        };
        while let Some(&first) = bytes.first() {
            match self.at {
                At::Start => out.extend_from_slice(label.as_bytes()),
                At::AfterReturn if first != b'\n' => out.extend_from_slice(label.as_bytes()),
                At::AfterReturn | At::Middle => {}
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |i| i + 1));
            out.extend_from_slice(line);
            self.at = match end {
                None => At::Middle,
                Some(i) if bytes[i] == b'\r' => At::AfterReturn,
                Some(_) => At::Start,
            };
            bytes = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the pieces to a stream and ends the stream. Returns the output after each piece and the output
    /// at the end.
    fn run(label: Option<&str>, pieces: &[&str]) -> Vec<String> {
        let mut lines = Lines::new(label.map(str::to_owned));
        let mut seen = Vec::new();
        let mut take =
            |out: Vec<u8>| seen.push(String::from_utf8(out).expect("the output is UTF-8"));
        for piece in pieces {
            let mut out = Vec::new();
            lines.feed(piece.as_bytes(), &mut out);
            take(out);
        }
        let mut out = Vec::new();
        lines.finish(&mut out);
        take(out);
        seen
    }

    #[test]
    fn lines_go_on_when_they_are_whole() {
        assert_eq!(run(None, &["a", "b\nc", "\n", "d"]), ["", "ab\n", "c\n", "", "d"]);
    }

    #[test]
    fn carriage_returns_go_on_at_once() {
        assert_eq!(run(None, &["10%\r", "20%\r", "done\n"]), ["10%\r", "20%\r", "done\n", ""]);
    }

    #[test]
    fn labels_stand_before_every_line_and_nowhere_else() {
        assert_eq!(run(Some("[1] "), &["a\nb\n\nc"]), ["[1] a\n[1] b\n[1] \n", "[1] c"]);
        assert_eq!(run(Some("[1] "), &["a\r", "\nb\r\n"]), ["[1] a\r", "\n[1] b\r\n", ""]);
        assert_eq!(run(Some("[1] "), &["1%\r2%\r", ""]), ["[1] 1%\r[1] 2%\r", "", ""]);
    }

    #[test]
    fn an_endless_line_goes_on_in_pieces() {
        let mut lines = Lines::new(Some("[0] ".into()));
        let mut out = Vec::new();
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            lines.feed(&piece, &mut out);
        }
        lines.feed(b"\n", &mut out);
        lines.finish(&mut out);
        assert_eq!(out.len(), 4 + (20 << 20) + 1);
    }
}
