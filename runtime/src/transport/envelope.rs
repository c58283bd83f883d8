//! What a ring slot says: five kinds of envelope, encoded in seven words and checked when read.
//!
//! `peer.rs` writes and reads envelopes; `shm/ring.rs` carries them without looking inside.
//!
//! ```text
//! word 0   bits 0..8 kind, bits 8..32 zero, bits 32..64 tag (or 0)
//! word 1   context of the communicator               (Grant: 0)
//! word 2   packed bytes of the whole message         (Grant: bytes the receiver will take)
//! word 3   Inline: payload bytes 0..8     Offer, Grant, Synchronous: the sender's request id
//! word 4-6 Inline: payload bytes 8..32
//! ```
//!
//! Invariant: a decoded [`Envelope`] is in range whatever the slot held; whether it makes sense to
//! the request it names is checked by `peer.rs`.

use crate::shm::pair::EAGER_MAX;
use crate::shm::ring::{ENVELOPE_WORDS, Violation};

/// Longest payload inside the slot itself, in bytes.
pub const INLINE_MAX: usize = 32;

const INLINE: u64 = 1;
const EAGER: u64 = 2;
const OFFER: u64 = 3;
const GRANT: u64 = 4;
const SYNCHRONOUS: u64 = 5;

/// What identifies a message to the matching: everything but its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Context of the communicator.
    pub context: u64,
    /// The tag, never negative.
    pub tag: i32,
    /// Packed bytes of the whole message.
    pub bytes: u64,
}

/// A checked envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// A message whose payload is in the slot.
    Inline(Label, [u8; INLINE_MAX]),
    /// A message whose payload is in the ring's payload area.
    Eager(Label),
    /// A message whose payload is in the ring's payload area, and whose sender waits under this
    /// request id to hear that it was matched: a grant of no bytes.
    Synchronous(Label, u64),
    /// A message that waits at its sender, under this request id.
    Offer(Label, u64),
    /// The receiver of the offer with this id wants so many bytes: all of them, or none. None is
    /// also the answer to a synchronous message.
    Grant {
        /// The sender's request id.
        id: u64,
        /// Bytes to send.
        bytes: u64,
    },
}

impl Envelope {
    /// The words of this envelope, and how many of them matter.
    #[inline]
    pub fn encode(&self) -> ([u64; ENVELOPE_WORDS], usize) {
        let head = |kind: u64, label: &Label| kind | (u64::from(label.tag as u32) << 32);
        match self {
            Self::Inline(label, payload) => {
                let mut words = [head(INLINE, label), label.context, label.bytes, 0, 0, 0, 0];
                for (word, bytes) in words[3..].iter_mut().zip(payload.chunks_exact(8)) {
                    // A chunk of eight always fits; the zero is never taken.
                    *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
                }
                (words, 3 + (label.bytes as usize).div_ceil(8).min(4))
            }
            Self::Eager(label) => ([head(EAGER, label), label.context, label.bytes, 0, 0, 0, 0], 3),
            Self::Offer(label, id) => {
                ([head(OFFER, label), label.context, label.bytes, *id, 0, 0, 0], 4)
            }
            Self::Synchronous(label, id) => {
                ([head(SYNCHRONOUS, label), label.context, label.bytes, *id, 0, 0, 0], 4)
            }
            Self::Grant { id, bytes } => ([GRANT, 0, *bytes, *id, 0, 0, 0], 4),
        }
    }

    /// Reads what another rank wrote.
    ///
    /// # Errors
    /// [`Violation`] for an unknown kind and for any field outside its domain.
    #[inline]
    pub fn decode(words: &[u64; ENVELOPE_WORDS]) -> Result<Self, Violation> {
        let kind = words[0] & 0xffff_ffff;
        let tag = (words[0] >> 32) as u32 as i32;
        let label = Label { context: words[1], tag, bytes: words[2] };
        if tag < 0 {
            return Err(Violation("negative tag in an envelope"));
        }
        if label.bytes > i64::MAX as u64 {
            return Err(Violation("message length out of range"));
        }
        match kind {
            INLINE if label.bytes <= INLINE_MAX as u64 => {
                let mut payload = [0; INLINE_MAX];
                for (bytes, word) in payload.chunks_exact_mut(8).zip(&words[3..]) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
                Ok(Self::Inline(label, payload))
            }
            INLINE => Err(Violation("inline message longer than a slot")),
            EAGER if label.bytes > 0 && label.bytes <= EAGER_MAX as u64 => Ok(Self::Eager(label)),
            EAGER => Err(Violation("eager message of impossible length")),
            SYNCHRONOUS if label.bytes <= EAGER_MAX as u64 => {
                Ok(Self::Synchronous(label, words[3]))
            }
            SYNCHRONOUS => Err(Violation("synchronous message of impossible length")),
            OFFER if label.bytes > 0 => Ok(Self::Offer(label, words[3])),
            OFFER => Err(Violation("offer of an empty message")),
            GRANT => Ok(Self::Grant { id: words[3], bytes: words[2] }),
            _ => Err(Violation("unknown kind of envelope")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        let label = Label { context: u64::MAX, tag: i32::MAX, bytes: 19 };
        let mut payload = [0; INLINE_MAX];
        payload[..24].copy_from_slice(&std::array::from_fn::<u8, 24, _>(|i| i as u8 + 1));
        for envelope in [
            Envelope::Inline(label, payload),
            Envelope::Eager(label),
            Envelope::Synchronous(Label { bytes: 0, ..label }, 9),
            Envelope::Synchronous(label, u64::MAX),
            Envelope::Offer(Label { bytes: 1 << 40, ..label }, 7),
            Envelope::Grant { id: u64::MAX, bytes: 0 },
        ] {
            let (mut words, used) = envelope.encode();
            words[used..].fill(0);
            assert_eq!(Envelope::decode(&words), Ok(envelope));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let eager = EAGER_MAX as u64;
        for words in [
            [0, 0, 0, 0, 0, 0, 0],
            [6, 0, 0, 0, 0, 0, 0],
            [SYNCHRONOUS, 0, eager + 1, 0, 0, 0, 0],
            [INLINE | 1 << 63, 0, 8, 0, 0, 0, 0],
            [INLINE | 1 << 9, 0, 8, 0, 0, 0, 0],
            [INLINE, 0, 33, 0, 0, 0, 0],
            [EAGER, 0, 0, 0, 0, 0, 0],
            [EAGER, 0, eager + 1, 0, 0, 0, 0],
            [OFFER, 0, 0, 0, 0, 0, 0],
            [OFFER, 0, 1 << 63, 0, 0, 0, 0],
            [GRANT, 0, u64::MAX, 0, 0, 0, 0],
        ] {
            assert!(Envelope::decode(&words).is_err(), "{words:?}");
        }
    }
}
