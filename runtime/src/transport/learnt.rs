//! What a rank has learnt about the ways of messages, and the lines of the file of `TYPEPACK_TUNE_FILE` about it. A way
//! is a protocol and a copy method.
//!
//! `tuned/file.rs` defines the file. `tuning.rs` uses a way from the file as the first way of a message, and measures
//! as it does without a file. There are two kinds of lines:
//!
//! ```text
//! heap dense contiguous shared near idle 65536 in-place repeat
//! parts near 65536 vector
//! ```
//!
//! The first kind is one situation (place, shape, receive, receive's memory, distance, load, least number of bytes) and
//! its best way (protocol, method). The second kind is about messages that can go out in parts (`part_choice.rs`): the
//! distance, the least number of bytes, and the method with which parts are copied, or `rts` if a message begins with
//! an RTS.

use super::part_choice::{self, Beginning};
use super::tuning::{Situation, Way};
use crate::message::envelope::Space;
use crate::message::label::Shape;
use std::fmt;
use typepack_engine::contiguous::Method;

/// What a rank has learnt about the messages of one kind and size class. `bytes` is the least number of bytes of the
/// class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learnt {
    /// The best way in a situation.
    Way { bytes: u64, situation: Situation, way: Way },
    /// The best beginning of messages that can go out in parts.
    Parts { bytes: u64, far: bool, beginning: Beginning },
}

impl Learnt {
    /// Returns the line of the file.
    pub fn line(&self) -> String {
        match *self {
            Self::Way { bytes, situation, way } => {
                let Situation { place, shape, contiguous, shared, far, busy } = situation;
                let place = PLACES.iter().find(|(_, value)| *value == place);
                let shape = SHAPES.iter().find(|(_, value)| *value == shape);
                let (place, shape) =
                    (place.map_or("", |(name, _)| name), shape.map_or("", |(name, _)| name));
                let [to, memory, distance, load] =
                    [(contiguous, TO), (shared, MEMORY), (far, DISTANCE), (busy, LOAD)]
                        .map(|(flag, names)| names[usize::from(flag)]);
                let (protocol, method) = match way {
                    Way::InPlace(method) => (IN_PLACE, method),
                    Way::Packed(method) => (CHUNKS, method),
                    Way::PackedStreamed(method) => (CHUNKS_STREAMED, method),
                };
                format!(
                    "{place} {shape} {to} {memory} {distance} {load} {bytes} {protocol} {method}"
                )
            }
            Self::Parts { bytes, far, beginning } => {
                let distance = DISTANCE[usize::from(far)];
                match beginning {
                    Some(method) => format!("{PARTS} {distance} {bytes} {method}"),
                    None => format!("{PARTS} {distance} {bytes} {RTS}"),
                }
            }
        }
    }

    /// Reads a line of the file. Returns `None` if the line is not one that typepack writes, or if this machine does
    /// not have the method.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix(PARTS) {
            Some(rest) => parts(rest.strip_prefix(' ')?),
            None => way(text),
        }
    }
}

/// Says what was learnt, for people.
impl fmt::Display for Learnt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Way { bytes, situation, way } => {
                write!(f, "from {} KiB, {situation}: {way}", bytes >> 10)
            }
            Self::Parts { bytes, far, beginning } => {
                let (kind, way) = (part_choice::kind(*far), part_choice::name(*beginning));
                write!(f, "from {} KiB, {kind}: {way}", bytes >> 10)
            }
        }
    }
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
const PARTS: &str = "parts";
const RTS: &str = "rts";

/// Returns which of two names a word is.
fn flag(word: Option<&str>, names: [&str; 2]) -> Option<bool> {
    names.iter().position(|name| Some(*name) == word).map(|at| at == 1)
}

/// Reads a line about a situation.
fn way(text: &str) -> Option<Learnt> {
    let mut words = text.split(' ');
    let mut word = || words.next();
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
    word().is_none().then_some(Learnt::Way { bytes, situation, way })
}

/// Reads the words of a line about parts.
fn parts(text: &str) -> Option<Learnt> {
    let mut words = text.split(' ');
    let far = flag(words.next(), DISTANCE)?;
    let bytes = words.next()?.parse().ok()?;
    let beginning = match words.next()? {
        RTS => None,
        method => Some(method.parse().ok()?),
    };
    words.next().is_none().then_some(Learnt::Parts { bytes, far, beginning })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_back() {
        let mut lines = Vec::new();
        for (_, place) in PLACES {
            for (_, shape) in SHAPES {
                for bits in 0..16u8 {
                    let [contiguous, shared, far, busy] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
                    let situation = Situation { place, shape, contiguous, shared, far, busy };
                    let bytes = u64::from(bits) << 12;
                    for (bytes, way) in [
                        (bytes, Way::InPlace(Method::Vector)),
                        (1 << 20, Way::PackedStreamed(Method::Vector)),
                        (u64::MAX, Way::Packed(Method::Vector)),
                    ] {
                        lines.push(Learnt::Way { bytes, situation, way });
                    }
                    for beginning in [None, Some(Method::Vector)] {
                        lines.push(Learnt::Parts { bytes, far, beginning });
                    }
                }
            }
        }
        for learnt in lines {
            assert_eq!(Learnt::parse(&learnt.line()), Some(learnt), "{learnt}");
        }
    }

    #[test]
    fn other_lines_are_no_lines() {
        let way = "heap dense contiguous shared near idle 65536 in-place vector";
        let parts = "parts near 65536 vector";
        for (good, old, new) in [
            (way, "dense", "Dense"),
            (way, " near", ""),
            (way, "vector", "memcpy"),
            (way, "in-place", "heap"),
            (way, "65536", "-1"),
            (way, "65536", "99999999999999999999"),
            (way, "vector", "vector "),
            (way, "vector", "vector more"),
            (parts, "parts", "part"),
            (parts, "parts", "partsnear"),
            (parts, "near", "nearby"),
            (parts, "vector", "memcpy"),
            (parts, "vector", "rts vector"),
            (parts, " vector", ""),
            (parts, "65536", "x"),
        ] {
            assert!(Learnt::parse(good).is_some());
            let damaged = good.replacen(old, new, 1);
            assert_ne!(damaged, good);
            assert_eq!(Learnt::parse(&damaged), None, "{damaged}");
        }
    }
}
