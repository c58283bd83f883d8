//! The file of `TYPEPACK_TUNE_FILE`: the fastest ways to copy long messages that jobs on this machine
//! have measured. A way is a protocol and a copy method.
//!
//! `world.rs` reads the file when a rank joins the job, and writes the file when rank 0 leaves the job. `tuning.rs`
//! uses a way from the file as the first way of a message, and measures as it does without a file.
//!
//! The file is text. The first line has the version, the second line a hash of the processor's description:
//!
//! ```text
//! typepack tune file 1
//! processor 5c0f4bd0e2f7a911
//! heap dense contiguous shared near idle 65536 in-place repeat
//! ```
//!
//! Each further line is one situation (place, shape, receive, receive's memory, distance, load, least number of
//! bytes) and its best way (protocol, method). The file is untrusted input: a file with any other line is
//! ignored as a whole, and so is a file of another version or another processor. At the end of the job rank 0
//! replaces such a file, but never a file that does not begin like a tune file.

use super::tuning::{Situation, Way};
use crate::message::envelope::Space;
use crate::message::label::Shape;
use typepack_engine::contiguous::Method;

/// Maximum length of a tune file in bytes. The longest file that typepack writes is shorter.
pub const FILE_MAX: u64 = 1 << 20;

const VERSION: &str = "typepack tune file 1";

/// The beginning of the first line of a tune file of any version.
const OURS: &str = "typepack tune file ";

/// The least number of bytes of a size class of `tuning.rs`, the situation, and the best way for its messages.
pub type Learnt = (u64, Situation, Way);

/// Returns the text of a tune file. `processor` describes the processor of this machine.
pub fn print(learnt: &[Learnt], processor: &str) -> String {
    let mut text = format!("{VERSION}\nprocessor {:016x}\n", hash(processor));
    for (bytes, situation, way) in learnt {
        let Situation { place, shape, contiguous, shared, far, busy } = *situation;
        let place = PLACES.iter().find(|(_, value)| *value == place).map_or("", |(name, _)| name);
        let shape = SHAPES.iter().find(|(_, value)| *value == shape).map_or("", |(name, _)| name);
        let [to, memory, distance, load] =
            [(contiguous, TO), (shared, MEMORY), (far, DISTANCE), (busy, LOAD)]
                .map(|(flag, names)| names[usize::from(flag)]);
        let (protocol, method) = match way {
            Way::InPlace(method) => (IN_PLACE, method),
            Way::Packed(method) => (CHUNKS, method),
            Way::PackedStreamed(method) => (CHUNKS_STREAMED, method),
        };
        text += &format!(
            "{place} {shape} {to} {memory} {distance} {load} {bytes} {protocol} {method}\n"
        );
    }
    text
}

/// Returns whether the text begins like a tune file of any version.
pub fn is_ours(text: &str) -> bool {
    text.starts_with(OURS)
}

/// Reads the text of a tune file. `processor` describes the processor of this machine.
///
/// # Errors
/// Returns one sentence that says why the file is ignored.
pub fn parse(text: &str, processor: &str) -> Result<Vec<Learnt>, String> {
    let mut lines = text.lines();
    let version = lines.next().unwrap_or_default();
    if version != VERSION {
        return Err(format!("its first line is not \"{VERSION}\""));
    }
    let wanted = format!("processor {:016x}", hash(processor));
    if lines.next() != Some(wanted.as_str()) {
        return Err(format!("it comes from another processor; line 2 here would be \"{wanted}\""));
    }
    let line = |(number, line)| {
        self::line(line).ok_or_else(|| {
            format!("line {number} is not a valid entry, or names a copy method that this machine does not have")
        })
    };
    (3..).zip(lines).map(line).collect()
}

const PLACES: [(&str, Option<Space>); 3] =
    [("unnamed", None), ("heap", Some(Space::Heap)), ("private", Some(Space::Private))];
const SHAPES: [(&str, Shape); 3] =
    [("contiguous", Shape::Contiguous), ("dense", Shape::Dense), ("sparse", Shape::Sparse)];
const TO: [&str; 2] = ["derived", "contiguous"];
const MEMORY: [&str; 2] = ["own", "shared"];
const DISTANCE: [&str; 2] = ["near", "far"];
const LOAD: [&str; 2] = ["idle", "busy"];
const IN_PLACE: &str = "in-place";
const CHUNKS: &str = "chunks";
const CHUNKS_STREAMED: &str = "chunks-streamed";

/// Reads a line of the file. Returns `None` if the line is not one that typepack writes, or if this machine does
/// not have the method.
fn line(text: &str) -> Option<Learnt> {
    let mut words = text.split(' ');
    let mut word = || words.next();
    let flag = |word: Option<&str>, names: [&str; 2]| {
        names.iter().position(|name| Some(*name) == word).map(|at| at == 1)
    };
    let (place, shape) = (word()?, word()?);
    let place = PLACES.iter().find(|(name, _)| *name == place)?.1;
    let shape = SHAPES.iter().find(|(name, _)| *name == shape)?.1;
    let contiguous = flag(word(), TO)?;
    let shared = flag(word(), MEMORY)?;
    let far = flag(word(), DISTANCE)?;
    let busy = flag(word(), LOAD)?;
    let bytes = word()?.parse().ok()?;
    let protocol = word()?;
    let method: Method = word()?.parse().ok()?;
    let way = match protocol {
        IN_PLACE => Way::InPlace(method),
        CHUNKS => Way::Packed(method),
        CHUNKS_STREAMED => Way::PackedStreamed(method),
        _ => return None,
    };
    let situation = Situation { place, shape, contiguous, shared, far, busy };
    word().is_none().then_some((bytes, situation, way))
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

    fn all() -> Vec<Learnt> {
        let mut list = Vec::new();
        for (_, place) in PLACES {
            for (_, shape) in SHAPES {
                for bits in 0..16u8 {
                    let [contiguous, shared, far, busy] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
                    let situation = Situation { place, shape, contiguous, shared, far, busy };
                    list.push((u64::from(bits) << 12, situation, Way::InPlace(Method::Vector)));
                    list.push((1 << 20, situation, Way::PackedStreamed(Method::Vector)));
                    list.push((u64::MAX, situation, Way::Packed(Method::Vector)));
                }
            }
        }
        list
    }

    #[test]
    fn a_file_is_read_back() {
        for list in [Vec::new(), all()] {
            let text = print(&list, "a processor");
            assert_eq!(parse(&text, "a processor"), Ok(list));
            assert!(text.len() as u64 <= FILE_MAX);
        }
    }

    #[test]
    fn other_files_are_ignored_with_a_reason() {
        let good = print(&all()[..1], "one");
        assert!(parse(&good, "two").unwrap_err().contains("another processor"));
        assert!(is_ours(&good) && VERSION.starts_with(OURS) && !is_ours("export TYPEPACK_"));
        assert!(parse("", "one").unwrap_err().contains("first line"));
        let older = good.replace("file 1", "file 0");
        assert!(parse(&older, "one").unwrap_err().contains("first line"));
        for (old, new) in [
            ("derived", "Derived"),
            (" near", ""),
            ("vector", "memcpy"),
            ("in-place", "heap"),
            (" 0 ", " -1 "),
            (" 0 ", " 99999999999999999999 "),
            ("vector\n", "vector \n"),
            ("vector\n", "vector\n\n"),
            ("vector\n", "vector more\n"),
        ] {
            let damaged = good.replacen(old, new, 1);
            assert_ne!(damaged, good);
            let reason = parse(&damaged, "one").unwrap_err();
            assert!(reason.contains("line 3") || reason.contains("line 4"), "{reason}");
        }
    }
}
