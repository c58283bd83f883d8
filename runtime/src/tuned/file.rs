//! The file of `TYPEPACK_TUNE_FILE`: what jobs on this machine have remembered about the ways of messages, of
//! collective calls and of copies.
//!
//! `world.rs` reads the file when a rank joins the job, and writes the file when rank 0 leaves the job. `typepack info`
//! shows the file (`../tuned.rs`). The choices begin with what the file says, and measure as they do without a file.
//!
//! The file is text. The first line has the version, the second line a hash of the processor's description:
//!
//! ```text
//! typepack tune file 4
//! processor 5c0f4bd0e2f7a911
//! messages contiguous heap contiguous shared near 65536 in-place-repeat
//! parts near 65536 vector
//! collective allreduce 2 near alone 65536 slices
//! pieces near 16384 repeat
//! copies own 131072 pages
//! ```
//!
//! Each further line is a key and its best way, in the words of the key's form (`typepack_engine::choice::Form`). The
//! file is untrusted input: a file with any other line is ignored as a whole, and so is a file of another version or
//! another processor. At the end of the job rank 0 replaces such a file, but never a file that does not begin like a
//! tune file.

use crate::coll::{choices, copies};
use crate::transport::choice::{fragment_choice, tuning};
use typepack_engine::choice::{Form, Remembered};
use typepack_engine::contiguous;

/// The choices that a file has.
pub(super) static FORMS: [&Form; 5] =
    [&tuning::FORM, &fragment_choice::FORM, &choices::FORM, &copies::FORM, &contiguous::FORM];

/// Maximum length of a tune file in bytes. The longest file that typepack writes is shorter.
pub const FILE_MAX: u64 = 2 << 20;

const VERSION: &str = "typepack tune file 4";

/// The beginning of the first line of a tune file of any version.
const OURS: &str = "typepack tune file ";

/// Returns the text of a file. `processor` describes the processor of this machine.
pub fn print(remembered: &[Remembered], processor: &str) -> String {
    let head = format!("{VERSION}\nprocessor {:016x}\n", hash(processor));
    let lines = remembered.iter().map(|remembered| remembered.line() + "\n");
    std::iter::once(head).chain(lines).collect()
}

/// Reads the text of a file. `processor` describes the processor of this machine.
///
/// # Errors
/// Returns one sentence that says why the file is ignored.
pub fn parse(text: &str, processor: &str) -> Result<Vec<Remembered>, String> {
    let mut lines = text.lines();
    let version = lines.next().unwrap_or_default();
    if version != VERSION {
        return Err(format!("its first line is not \"{VERSION}\""));
    }
    let wanted = format!("processor {:016x}", hash(processor));
    if lines.next() != Some(wanted.as_str()) {
        return Err(format!("it comes from another processor; line 2 here would be \"{wanted}\""));
    }
    let entry = |(number, line)| {
        Remembered::parse(&FORMS, line).ok_or_else(|| format!("line {number} is not a valid entry"))
    };
    (3..).zip(lines).map(entry).collect()
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
    use std::collections::BTreeSet;
    use typepack_engine::choice::CHOOSERS;

    const LINES: [&str; 6] = [
        "messages contiguous heap contiguous shared near 65536 in-place-vector",
        "parts near 65536 rts",
        "collective allreduce-by-a-user's-function 2 near alone 65536 slices-other-pieces",
        "pieces near 16384 vector",
        "copies own 131072 vector",
        "copies others 16384 vector",
    ];

    fn good() -> String {
        print(&[], "one") + &LINES.join("\n") + "\n"
    }

    #[test]
    fn a_file_is_read_back() {
        assert_eq!(parse(&print(&[], "one"), "one"), Ok(Vec::new()));
        let remembered = parse(&good(), "one").expect("valid lines");
        assert_eq!(print(&remembered, "one"), good());
        let said: Vec<String> = remembered.iter().map(Remembered::to_string).collect();
        assert_eq!(
            said[0],
            "from 64 KiB, contiguous in heap to contiguous in a heap, near: in place, vector"
        );
        assert_eq!(said[4], "from 128 KiB, other copies: vector");
    }

    /// Checks that no two lines are about the same, and that the longest file is not too long.
    #[test]
    fn the_longest_file_is_read() {
        let names: BTreeSet<&str> = FORMS.iter().map(|form| form.name).collect();
        assert_eq!(names.len(), FORMS.len());
        // `TYPEPACK_TUNE` can switch each of them off.
        let all = FORMS.into_iter().chain([&crate::io::choosers::FORM]);
        assert!(all.into_iter().all(|form| CHOOSERS.contains(&form.name)));
        // The longest line times the number of keys.
        let most: usize = FORMS.iter().map(|form| form.keys() * 100).sum();
        assert!(most as u64 <= FILE_MAX, "{most}");
        let longest = |words: &[(&str, &str)]| words.iter().map(|(word, _)| word.len() + 1).max();
        for form in FORMS {
            let fields: usize = form.fields.iter().filter_map(|words| longest(words)).sum();
            assert!(form.name.len() + fields + 20 + longest(form.ways).unwrap_or(0) < 100);
        }
    }

    #[test]
    fn other_files_are_ignored_with_a_reason() {
        let good = good();
        assert!(parse(&good, "two").unwrap_err().contains("another processor"));
        assert!(is_ours(&good) && VERSION.starts_with(OURS) && !is_ours("export TYPEPACK_"));
        assert!(parse("", "one").unwrap_err().contains("first line"));
        let older = good.replace("file 4", "file 3");
        assert!(parse(&older, "one").unwrap_err().contains("first line"));
        for (old, new, line) in [
            ("shared", "Shared", 3),
            ("parts", "part", 4),
            ("allreduce", "allreduced", 5),
            ("near 16384", "near 1", 6),
            ("pieces near", "\npieces near", 6),
            ("own 131072", "its own 131072", 7),
            ("copies others", "copies other", 8),
            ("others 16384", "others", 8),
            ("others 16384", "others 16385", 8),
        ] {
            let damaged = good.replacen(old, new, 1);
            assert_ne!(damaged, good);
            let reason = parse(&damaged, "one").unwrap_err();
            assert!(reason.contains(&format!("line {line} ")), "{old} {new}: {reason}");
        }
    }
}
