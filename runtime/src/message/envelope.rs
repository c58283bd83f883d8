//! What a ring slot says: nine kinds of envelope, encoded in seven words and checked when read.
//!
//! `peer.rs` writes and reads envelopes; `shm/ring.rs` carries them without looking inside.
//!
//! ```text
//! word 0   bits 0..8 kind, bits 8..32 types of what is sent, zero where no data is or nothing is
//!          known (`message/typecheck.rs`), bits 32..64 tag             (Define: the type's number)
//! word 1   context of the communicator               (Grant, Define, Withdraw, Push: 0)
//! word 2   packed bytes of the whole message         (Grant: bytes the receiver will take,
//!          Define: bytes of the encoded type, in the payload area; Withdraw, Push: 0)
//! word 3   Inline: payload bytes 0..8     Offer, Grant, Synchronous, Withdraw, Push: the
//!          sender's request id
//! word 4-6 Inline: payload bytes 8..32    Offer: 0, or where the data lies: word 4 bits 0..32 the
//!          type's number, bits 32..40 1 for the shared heap, 2 for private memory; word 5 where
//!          displacement 0 is: offset in the sender's heap, address in its memory; word 6 elements
//!          Push: word 4 number of the transfer, word 5 address in the receiver's memory
//!
//! A share goes the other way, from the receiver of an offer: word 1 its number, word 2 the packed
//! bytes of the message, word 3 the id of the offer, words 4 to 6 as in an offer, where in the
//! receiver's heap the data goes.
//! ```
//!
//! Invariant: a decoded [`Envelope`] is in range whatever the slot held; whether it makes sense to
//! the request it names is checked by `peer.rs`.

pub use super::label::Label;
use super::typecheck;
use crate::shm::pair::EAGER_MAX;
use crate::shm::ring::{ENVELOPE_WORDS, Violation};

/// Longest payload inside the slot itself, in bytes.
pub const INLINE_MAX: usize = 32;

const INLINE: u64 = 1;
const EAGER: u64 = 2;
const RTS: u64 = 3;
const CTS: u64 = 4;
const SYNCHRONOUS: u64 = 5;
const DEFINE: u64 = 6;
const WITHDRAW: u64 = 7;
const SHARE: u64 = 8;
const PUSH: u64 = 9;

/// Of word 0; the types are above it.
const KIND_BITS: u32 = 8;

const _: () = assert!(typecheck::END == 1 << (32 - KIND_BITS));

/// In word 4 of an offer.
const IN_HEAP: u64 = 1;
const PRIVATE: u64 = 2;

/// Types that a sender can have defined to one receiver at a time.
pub const TYPES: usize = 64;

/// The number of the type that needs no definition: one byte, elements without a gap.
pub const BYTES: u32 = u32::MAX;

/// Longest encoded type that can be defined, in bytes.
pub const TYPE_MAX: usize = EAGER_MAX;

/// Which memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The sender's part of the shared heap.
    Heap,
    /// The sender's own.
    Private,
}

/// Where the data of an offered message lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// In which memory.
    pub space: Space,
    /// Number of the type, below [`TYPES`] or [`BYTES`].
    pub number: u32,
    /// Bytes from the start of the sender's heap to displacement 0, as a type's displacements are,
    /// modulo 2^64; in private memory its address.
    pub origin: u64,
    /// Elements.
    pub count: u64,
}

impl Place {
    fn encode(this: &Option<Self>) -> [u64; 3] {
        match this {
            Some(place) => {
                let space = match place.space {
                    Space::Heap => IN_HEAP,
                    Space::Private => PRIVATE,
                };
                [u64::from(place.number) | space << 32, place.origin, place.count]
            }
            None => [0; 3],
        }
    }

    fn decode(words: [u64; 3]) -> Result<Option<Self>, Violation> {
        let number = words[0] as u32;
        let space = match words[0] >> 32 {
            0 if number == 0 => return Ok(None),
            IN_HEAP if number == BYTES || (number as usize) < TYPES => Space::Heap,
            // One run of memory.
            PRIVATE if number == BYTES => Space::Private,
            _ => return Err(Violation("an offer of data that lie nowhere")),
        };
        Ok(Some(Self { space, number, origin: words[1], count: words[2] }))
    }
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
    /// A message that waits at its sender, under this request id; perhaps where its data lies.
    Rts(Label, u64, Option<Place>),
    /// The receiver of the offer with this id wants so many bytes: all of them, or none. None is
    /// also the answer to a synchronous message.
    Cts {
        /// The sender's request id.
        id: u64,
        /// Bytes to send.
        bytes: u64,
    },
    /// The type with this number is, from here on, what so many bytes in the payload area encode.
    Define {
        /// Below [`TYPES`].
        number: u32,
        /// Bytes of the encoded type, at most [`TYPE_MAX`].
        bytes: u64,
    },
    /// The receiver fetches the offer with this id and asks its sender to help.
    Share {
        /// The sender's request id.
        id: u64,
        /// Number of the share.
        share: u32,
        /// Packed bytes of the message.
        bytes: u64,
        /// Where in the receiver's heap the data goes; room for at least as many bytes.
        place: Place,
    },
    /// The receiver of the offer with this id has begun to read its data; the sender may write pieces
    /// of it, from the end.
    Push {
        /// The sender's request id.
        id: u64,
        /// Number of the transfer.
        number: u16,
        /// Where the first byte goes in the receiver's memory.
        to: u64,
    },
    /// The data of the offer with this id must not be fetched any more: the sender packs it.
    Withdraw {
        /// The sender's request id.
        id: u64,
    },
}

impl Envelope {
    /// The words of this envelope, and how many of them matter.
    #[inline]
    pub fn encode(&self) -> ([u64; ENVELOPE_WORDS], usize) {
        let head = |kind: u64, label: &Label| {
            kind | u64::from(label.types) << KIND_BITS | u64::from(label.tag as u32) << 32
        };
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
            Self::Rts(label, id, place) => {
                // All seven words: what is not written is what an earlier lap left there.
                let [a, b, c] = Place::encode(place);
                ([head(RTS, label), label.context, label.bytes, *id, a, b, c], 7)
            }
            Self::Synchronous(label, id) => {
                ([head(SYNCHRONOUS, label), label.context, label.bytes, *id, 0, 0, 0], 4)
            }
            Self::Cts { id, bytes } => ([CTS, 0, *bytes, *id, 0, 0, 0], 4),
            Self::Define { number, bytes } => {
                ([DEFINE | u64::from(*number) << 32, 0, *bytes, 0, 0, 0, 0], 3)
            }
            Self::Share { id, share, bytes, place } => {
                let [a, b, c] = Place::encode(&Some(*place));
                ([SHARE, u64::from(*share), *bytes, *id, a, b, c], 7)
            }
            Self::Withdraw { id } => ([WITHDRAW, 0, 0, *id, 0, 0, 0], 4),
            Self::Push { id, number, to } => ([PUSH, 0, 0, *id, u64::from(*number), *to, 0], 6),
        }
    }

    /// Reads what another rank wrote.
    ///
    /// # Errors
    /// [`Violation`] for an unknown kind and for any field outside its domain.
    #[inline]
    pub fn decode(words: &[u64; ENVELOPE_WORDS]) -> Result<Self, Violation> {
        let head = words[0] & 0xffff_ffff;
        // Only messages have types; elsewhere any bit makes another, unknown kind.
        let kind = match head & ((1 << KIND_BITS) - 1) {
            message @ (INLINE | EAGER | RTS | SYNCHRONOUS) => message,
            _ => head,
        };
        let types = (head >> KIND_BITS) as u32;
        let tag = (words[0] >> 32) as u32 as i32;
        let label = Label { context: words[1], tag, bytes: words[2], types };
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
            RTS if label.bytes > 0 => {
                let place = Place::decode([words[4], words[5], words[6]])?;
                Ok(Self::Rts(label, words[3], place))
            }
            RTS => Err(Violation("offer of an empty message")),
            CTS => Ok(Self::Cts { id: words[3], bytes: words[2] }),
            DEFINE if (tag as usize) < TYPES && (1..=TYPE_MAX as u64).contains(&label.bytes) => {
                // Not negative (above).
                Ok(Self::Define { number: tag as u32, bytes: label.bytes })
            }
            DEFINE => Err(Violation("definition of an impossible type")),
            WITHDRAW => Ok(Self::Withdraw { id: words[3] }),
            PUSH => match u16::try_from(words[4]) {
                Ok(number) => Ok(Self::Push { id: words[3], number, to: words[5] }),
                Err(_) => Err(Violation("number of a transfer out of range")),
            },
            SHARE => {
                let place = Place::decode([words[4], words[5], words[6]])?;
                let share = u32::try_from(words[1]).ok().filter(|_| label.bytes > 0);
                match (share, place) {
                    (Some(share), Some(place)) if place.space == Space::Heap => {
                        Ok(Self::Share { id: words[3], share, bytes: label.bytes, place })
                    }
                    _ => Err(Violation("a share of nothing")),
                }
            }
            _ => Err(Violation("unknown kind of envelope")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        let label = Label { context: u64::MAX, tag: i32::MAX, bytes: 19, types: 0 };
        let typed = Label { types: typecheck::END - 1, ..label };
        let place = |space, number, origin, count| Some(Place { space, number, origin, count });
        let mut payload = [0; INLINE_MAX];
        payload[..24].copy_from_slice(&std::array::from_fn::<u8, 24, _>(|i| i as u8 + 1));
        for envelope in [
            Envelope::Inline(label, payload),
            Envelope::Inline(Label { types: typecheck::VOID, ..label }, payload),
            Envelope::Eager(label),
            Envelope::Eager(typed),
            Envelope::Synchronous(typed, 9),
            Envelope::Rts(typed, 7, None),
            Envelope::Synchronous(Label { bytes: 0, ..label }, 9),
            Envelope::Synchronous(label, u64::MAX),
            Envelope::Rts(Label { bytes: 1 << 40, ..label }, 7, None),
            Envelope::Rts(label, 7, place(Space::Heap, 0, u64::MAX, 0)),
            Envelope::Rts(label, 7, place(Space::Heap, BYTES, 5, u64::MAX)),
            Envelope::Rts(label, 7, place(Space::Private, BYTES, u64::MAX, 9)),
            Envelope::Push { id: 3, number: u16::MAX, to: u64::MAX },
            Envelope::Define { number: TYPES as u32 - 1, bytes: TYPE_MAX as u64 },
            Envelope::Withdraw { id: u64::MAX },
            Envelope::Share {
                id: 1,
                share: u32::MAX,
                bytes: 9,
                place: Place { space: Space::Heap, number: BYTES, origin: 5, count: 9 },
            },
            Envelope::Cts { id: u64::MAX, bytes: 0 },
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
            [10, 0, 0, 0, 0, 0, 0],
            [PUSH, 0, 0, 0, 1 << 16, 0, 0],
            [RTS, 0, 1, 0, PRIVATE << 32, 0, 0],
            [SHARE, 1, 8, 0, 0, 0, 0],
            [SHARE, 1, 0, 0, IN_HEAP << 32, 0, 0],
            [SHARE, 1 << 32, 8, 0, IN_HEAP << 32, 0, 0],
            [SHARE, 1, 8, 0, u64::from(BYTES) | PRIVATE << 32, 0, 8],
            [RTS, 0, 9, 0, 1, 0, 0],
            [RTS, 0, 9, 0, 2 << 32, 0, 0],
            [RTS, 0, 9, 0, TYPES as u64 | IN_HEAP << 32, 0, 0],
            [DEFINE, 0, 0, 0, 0, 0, 0],
            [DEFINE, 0, TYPE_MAX as u64 + 1, 0, 0, 0, 0],
            [DEFINE | (TYPES as u64) << 32, 0, 9, 0, 0, 0, 0],
            [SYNCHRONOUS, 0, eager + 1, 0, 0, 0, 0],
            [INLINE | 1 << 63, 0, 8, 0, 0, 0, 0],
            [CTS | 1 << 8, 0, 8, 0, 0, 0, 0],
            [WITHDRAW | 1 << 31, 0, 0, 0, 0, 0, 0],
            [DEFINE | 1 << 9, 0, 8, 0, 0, 0, 0],
            [PUSH | 1 << 9, 0, 0, 0, 1, 0, 0],
            [SHARE | 1 << 9, 1, 8, 0, u64::from(BYTES) | IN_HEAP << 32, 0, 8],
            [INLINE, 0, 33, 0, 0, 0, 0],
            [EAGER, 0, 0, 0, 0, 0, 0],
            [EAGER, 0, eager + 1, 0, 0, 0, 0],
            [RTS, 0, 0, 0, 0, 0, 0],
            [RTS, 0, 1 << 63, 0, 0, 0, 0],
            [CTS, 0, u64::MAX, 0, 0, 0, 0],
        ] {
            assert!(Envelope::decode(&words).is_err(), "{words:?}");
        }
    }
}
