//! The file of `TYPEPACK_TUNE_FILE`: what jobs on this machine have learnt about the ways of messages and of collective
//! calls.
//!
//! `world.rs` reads the file when a rank joins the job, and writes the file when rank 0 leaves the job. `typepack info`
//! shows the file (`../tuned.rs`). The rooms that measure use what the file says as their first choice, and measure as
//! they do without a file.
//!
//! The file is text. The first line has the version, the second line a hash of the processor's description:
//!
//! ```text
//! typepack tune file 2
//! processor 5c0f4bd0e2f7a911
//! heap dense contiguous shared near idle 65536 in-place repeat
//! parts near 65536 vector
//! collective near alone allreduce 2 65536 slices
//! pieces near alone 16384 repeat
//! copies own 131072 pages
//! ```
//!
//! `transport/learnt.rs` and `coll/flags/learnt.rs` define the further lines. The last kind of line is about copies for
//! which no protocol asks for a method (`typepack_engine::contiguous`): whether this process or another one has written
//! the bytes (`own`, `others`), the least number of bytes, and the method. The file is untrusted input: a file with any
//! other line is ignored as a whole, and so is a file of another version or another processor. At the end of the job
//! rank 0 replaces such a file, but never a file that does not begin like a tune file.

use crate::coll::learnt::Learnt as Calls;
use crate::transport::learnt::Learnt as Messages;
use typepack_engine::contiguous::Learnt as Copies;

/// Maximum length of a tune file in bytes. The longest file that typepack writes is shorter.
pub const FILE_MAX: u64 = 1 << 20;

const VERSION: &str = "typepack tune file 2";

/// The beginning of the first line of a tune file of any version.
const OURS: &str = "typepack tune file ";

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learnt {
    pub messages: Vec<Messages>,
    pub calls: Vec<Calls>,
    pub copies: Vec<Copies>,
}

impl Learnt {
    /// Returns the text of the file. `processor` describes the processor of this machine.
    pub fn print(&self, processor: &str) -> String {
        let mut text = format!("{VERSION}\nprocessor {:016x}\n", hash(processor));
        let calls = self.calls.iter().map(Calls::line);
        let copies = self.copies.iter().map(copies_line);
        for line in self.messages.iter().map(Messages::line).chain(calls).chain(copies) {
            text += &line;
            text.push('\n');
        }
        text
    }

    /// Reads the text of a file. `processor` describes the processor of this machine.
    ///
    /// # Errors
    /// Returns one sentence that says why the file is ignored.
    pub fn parse(text: &str, processor: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let version = lines.next().unwrap_or_default();
        if version != VERSION {
            return Err(format!("its first line is not \"{VERSION}\""));
        }
        let wanted = format!("processor {:016x}", hash(processor));
        if lines.next() != Some(wanted.as_str()) {
            return Err(format!(
                "it comes from another processor; line 2 here would be \"{wanted}\""
            ));
        }
        let mut learnt = Self::default();
        for (number, line) in (3..).zip(lines) {
            if let Some(messages) = Messages::parse(line) {
                learnt.messages.push(messages);
            } else if let Some(calls) = Calls::parse(line) {
                learnt.calls.push(calls);
            } else if let Some(copies) = copies(line) {
                // The last of several lines about one size class counts, as in the other rooms.
                learnt.copies.retain(|other| subject(other) != subject(&copies));
                learnt.copies.push(copies);
            } else {
                return Err(format!(
                    "line {number} is not a valid entry, or names a copy method that this machine does not have"
                ));
            }
        }
        Ok(learnt)
    }

    /// Returns one line for people about each entry.
    pub fn lines(&self) -> Vec<String> {
        let calls = self.calls.iter().map(Calls::to_string);
        let copies = self.copies.iter().map(describe_copies);
        self.messages.iter().map(Messages::to_string).chain(calls).chain(copies).collect()
    }
}

const COPIES: &str = "copies";

/// The words for bytes that this process has written, and for those that another process has written.
const WRITERS: [&str; 2] = ["own", "others"];

fn copies_line(copies: &Copies) -> String {
    let writer = WRITERS[usize::from(copies.of_others)];
    format!("{COPIES} {writer} {} {}", copies.bytes, copies.method)
}

/// Reads a line about copies. Returns `None` if the line is not one that typepack writes, or if this machine does not
/// have the method.
fn copies(line: &str) -> Option<Copies> {
    let mut words = line.split(' ');
    words.next().filter(|word| *word == COPIES)?;
    let writer = words.next()?;
    let of_others = WRITERS.iter().position(|word| *word == writer)? == 1;
    let (bytes, method) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let copies = Copies::new(of_others, bytes, method)?;
    words.next().is_none().then_some(copies)
}

/// Returns what a line about copies is about.
fn subject(copies: &Copies) -> (bool, u64) {
    (copies.of_others, copies.bytes)
}

/// Returns what this job has found about copies, and what `earlier` says about other size classes.
pub fn merge_copies(earlier: &[Copies], mut found: Vec<Copies>) -> Vec<Copies> {
    for copies in earlier {
        if found.iter().all(|other| subject(other) != subject(copies)) {
            found.push(*copies);
        }
    }
    found.sort_unstable_by_key(subject);
    found
}

/// Returns a line for people about copies.
pub fn describe_copies(copies: &Copies) -> String {
    let what = if copies.of_others { "copies of other ranks' bytes" } else { "other copies" };
    format!("from {} KiB, {what}: {}", copies.bytes >> 10, copies.method)
}

/// Returns whether the text begins like a tune file of any version.
pub fn is_ours(text: &str) -> bool {
    text.starts_with(OURS)
}

/// Returns a hash of a text (FNV-1a, 64 bits).
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use typepack_engine::contiguous::Method;

    const LINES: [&str; 6] = [
        "heap dense contiguous shared near idle 65536 in-place vector",
        "parts near 65536 vector",
        "collective near alone allreduce 2 65536 slices",
        "pieces near alone 16384 vector",
        "copies own 131072 vector",
        "copies others 16384 vector",
    ];

    fn some() -> Learnt {
        Learnt {
            messages: LINES[..2].iter().filter_map(|line| Messages::parse(line)).collect(),
            calls: LINES[2..4].iter().filter_map(|line| Calls::parse(line)).collect(),
            copies: LINES[4..].iter().filter_map(|line| copies(line)).collect(),
        }
    }

    #[test]
    fn a_file_is_read_back() {
        for learnt in [Learnt::default(), some()] {
            let text = learnt.print("a processor");
            assert_eq!(Learnt::parse(&text, "a processor"), Ok(learnt));
        }
        let text = some().print("a processor");
        assert_eq!(text.lines().skip(2).collect::<Vec<_>>(), LINES);
        assert_eq!(some().lines().len(), LINES.len());
    }

    #[test]
    fn a_file_with_many_lines_does_not_grow() {
        let line = |bytes: u64| format!("copies own {bytes} vector\n");
        let text = Learnt::default().print("one") + &(line(1 << 14) + &line(1 << 15)).repeat(1000);
        let learnt = Learnt::parse(&text, "one").expect("valid lines");
        assert_eq!(learnt.copies.len(), 2);
    }

    #[test]
    fn what_a_job_finds_about_copies_replaces_what_the_file_says() {
        let of = |of_others, bytes, method| Copies { of_others, bytes, method };
        let earlier = [of(false, 65536, Method::Repeat), of(true, 65536, Method::Pages)];
        let found = vec![of(true, 65536, Method::Vector), of(false, 131_072, Method::Vector)];
        let all = [earlier[0], found[1], found[0]];
        assert_eq!(merge_copies(&earlier, found), all);
        assert_eq!(merge_copies(&earlier, Vec::new()), earlier);
    }

    #[test]
    fn other_files_are_ignored_with_a_reason() {
        let good = some().print("one");
        assert!(Learnt::parse(&good, "two").unwrap_err().contains("another processor"));
        assert!(is_ours(&good) && VERSION.starts_with(OURS) && !is_ours("export TYPEPACK_"));
        assert!(Learnt::parse("", "one").unwrap_err().contains("first line"));
        let older = good.replace("file 2", "file 1");
        assert!(Learnt::parse(&older, "one").unwrap_err().contains("first line"));
        for (old, new, line) in [
            ("dense", "Dense", 3),
            ("parts", "part", 4),
            ("allreduce", "allreduced", 5),
            ("alone 16384", "alone 1", 6),
            ("pieces", "\npieces", 6),
            ("own", "its own", 7),
            ("copies others", "copies other", 8),
            ("others 16384", "others", 8),
            ("others 16384", "others 16385", 8),
        ] {
            let damaged = good.replacen(old, new, 1);
            assert_ne!(damaged, good);
            let reason = Learnt::parse(&damaged, "one").unwrap_err();
            assert!(reason.contains(&format!("line {line} ")), "{reason}");
        }
    }
}
