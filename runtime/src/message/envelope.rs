//! Envelopes. An envelope is the content of one ring slot, encoded in seven words. The reader of an envelope
//! checks the words.
//!
//! `transport/link.rs` writes envelopes, and `endpoint/engine/incoming.rs` reads them. `shm/ring.rs` carries
//! the words and does not interpret them.
//!
//! | kind | from | meaning |
//! |---|---|---|
//! | Inline, Eager | sender | a message, with its payload in the slot or in the payload area |
//! | First, Fragment | sender | the first fragment and the further fragments of a message that goes out in fragments |
//! | Synchronous | sender | a message with its payload in the payload area; the sender waits for the match |
//! | RTS | sender | a message waits at its sender; the RTS may say where its data lies |
//! | ACK | receiver | a receive has matched a synchronous message |
//! | CTS | receiver | a receive has matched the RTS; the sender packs the data (`transport/protocol/pipeline.rs`) |
//! | FIN | receiver | the receiver has copied the data of an RTS in place |
//! | REFUSED | receiver | a receive has matched the RTS and does not take its data |
//! | Help | receiver | the receiver copies the data; the sender may copy a part (`shm/work_split.rs`) |
//! | Define | sender | the meaning of a type number from here on |
//! | DefineLong | sender | the same, for a type whose encoded form lies in the sender's heap |
//! | Defined | receiver | the receiver has copied the encoded form of a DefineLong |
//! | Withdraw | sender | the receiver must not read the data of an RTS in place any more |
//! | Allow | receiver | how messages of one size class should begin (`transport/choice/fragment_choice.rs`) |
//! | Recall | sender | the sender has recalled a message that no receive had matched |
//! ```text
//! word 0   bits 0..8 kind; bits 8..32 types of the message, zero if it has no data or its types are
//!          unknown (`typecheck.rs`); bits 32..64 tag  (Define, DefineLong, Defined: the type's number)
//! word 1   messages: context of the communicator; CTS: copy method; Allow: 0, or 1 plus the
//!          copy method with which messages of the size class go out in fragments;
//!          Help: bits 0..32 number of the split, bits 32..64 copy method  (else 0)
//! word 2   messages and Help: packed bytes of the whole message; Fragment: bytes of this fragment; Allow: length of a
//!          message of the size class
//!          Define, DefineLong: bytes of the encoded type          (else 0)
//! word 3   Inline: payload bytes 0..8; Eager with at least `LEAST` bytes (`transport/choice/short_choice.rs`): 0, or
//!          the mark of a message whose copy the receiver measures; First: bits 0..32 bytes of the first fragment,
//!          bits 32..64 copy method;
//!          DefineLong: offset of the encoded type in the sender's heap; all others but Eager, Fragment, Define and
//!          Defined: the sender's request id
//! word 4-6 Inline: payload bytes 8..32
//!          RTS, Synchronous, Recall: word 4 bits 40..64 0, or 1 plus the number of the word by which the
//!          message can be recalled
//!          RTS: word 4 bits 36..40 the shape of the data; the other bits 0, or the place of the data in the
//!          sender: word 4 bits 0..32 the type's number, bits 32..36 1 for the shared heap or 2 for private
//!          memory; word 5 the place of displacement 0, as an offset in the heap or an address in private
//!          memory; word 6 the number of elements
//!          Help: the place of the data in the receiver's heap, in the format of an RTS
//! ```
//!
//! Invariant: all fields of a decoded [`Envelope`] have allowed values, whatever words the slot held. The
//! invariant does not cover places in memory: `transport/protocol/types.rs` and `transport/peer.rs` check offsets in a
//! heap, and the kernel checks addresses in private memory. `transport/protocol/answers.rs` checks whether an envelope
//! fits the request that it names.

pub use super::label::{Label, Shape};
use super::typecheck;
use crate::shm::pair::{EAGER_MAX, RECALLS};
use crate::shm::ring::{ENVELOPE_WORDS, Violation};
use crate::shm::work_split::NUMBERS;
use typepack_engine::contiguous::Method;

/// Length of the longest payload that fits in the slot itself, in bytes.
pub const INLINE_MAX: usize = 32;

const INLINE: u64 = 1;
const EAGER: u64 = 2;
const SYNCHRONOUS: u64 = 3;
const RTS: u64 = 4;
const ACK: u64 = 5;
const CTS: u64 = 6;
const FIN: u64 = 7;
const REFUSED: u64 = 8;
const HELP: u64 = 9;
const DEFINE: u64 = 10;
const WITHDRAW: u64 = 11;
const RECALL: u64 = 12;
const DEFINE_LONG: u64 = 13;
const DEFINED: u64 = 14;
const FIRST: u64 = 15;
const FRAGMENT: u64 = 16;
const ALLOW: u64 = 17;

/// Number of bits of the kind in word 0. The check bits of the types are above the kind.
const KIND_BITS: u32 = 8;

const _: () = assert!(typecheck::END == 1 << (32 - KIND_BITS));

// The texts of `Malformed` state these limits.
const _: () =
    assert!(INLINE_MAX == 32 && EAGER_MAX == 16 << 10 && TYPE_MAX == 16 << 10 && TYPES == 64);
const _: () = assert!(FRAGMENTED_MAX == 256 << 10 && FRAGMENT_MAX == 16 << 10);
const _: () = assert!(RECALLS == 56 && LONG_TYPES == 8 && LONG_MAX == 8 << 20);

/// The lowest bit of the shape in word 4 of an RTS.
const SHAPE_AT: u32 = 36;

/// The mask of the shape's bits after a shift by `SHAPE_AT`.
const SHAPES: u64 = 0xf;

/// The code in word 4 that means: this place is in a heap.
const IN_HEAP: u64 = 1;

/// The code in word 4 that means: this place is in private memory.
const PRIVATE: u64 = 2;

/// Number of types that a sender can have defined at one receiver at the same time.
pub const TYPES: usize = 64;

/// Length of the longest message that can go out in fragments, in bytes.
pub const FRAGMENTED_MAX: usize = 256 << 10;

/// Length of the longest fragment of a message, in bytes.
pub const FRAGMENT_MAX: usize = EAGER_MAX;

/// The number that stands for the type "one byte, without gaps between elements". This type needs no
/// definition.
pub const BYTES: u32 = u32::MAX;

/// Length of the longest encoded type that a sender can define through the ring, in bytes.
pub const TYPE_MAX: usize = EAGER_MAX;

/// Number of long types that a sender can have defined at one receiver at the same time. The encoded form of
/// a long type travels through the sender's heap. The numbers of long types begin at [`TYPES`].
pub const LONG_TYPES: usize = 8;

/// Length of the longest encoded type that a sender can define through its heap, in bytes.
pub const LONG_MAX: usize = 8 << 20;

/// The number after the last number of a defined type.
pub const NUMBERS_END: usize = TYPES + LONG_TYPES;

/// The lowest bit, in word 4, of the number of the word by which a message can be recalled. The type's
/// number, the kind of memory and the shape are in lower bits.
const RECALL_AT: u32 = 40;

/// The name of a message whose sender waits for an answer. The alignment of 4 bytes keeps an [`Envelope`] at 64
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub struct Offer {
    /// The sender's request id, which the answers contain.
    pub id: u64,
    /// Number of the word in the pair's area by which the sender can recall the message (`shm/recall.rs`).
    /// `None` if the sender cannot recall the message.
    pub recall: Option<u8>,
    /// How the data lies at the sender. Only an RTS has another value than `Contiguous`.
    pub shape: Shape,
}

impl From<u64> for Offer {
    /// Returns the name of a message that cannot be recalled.
    fn from(id: u64) -> Self {
        Self { id, recall: None, shape: Shape::Contiguous }
    }
}

impl Offer {
    /// Returns the bits for word 4.
    #[inline]
    fn encode(self) -> u64 {
        let recall = self.recall.map_or(0, |word| (u64::from(word) + 1) << RECALL_AT);
        recall | u64::from(self.shape.code()) << SHAPE_AT
    }

    fn decode(words: &[u64; ENVELOPE_WORDS]) -> Result<Self, Malformed> {
        let recall = match words[4] >> RECALL_AT {
            0 => None,
            // The conversion loses nothing, because the number is at most `RECALLS`.
            number if number <= RECALLS as u64 => Some((number - 1) as u8),
            _ => return Err(Malformed("an envelope has a recall word number above 55")),
        };
        let Some(shape) = Shape::from_code(words[4] >> SHAPE_AT & SHAPES) else {
            return Err(Malformed("an envelope has a shape code above 2"));
        };
        Ok(Self { id: words[3], recall, shape })
    }
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A rank's part of the shared heap.
    Heap,
    /// A rank's private memory.
    Private,
}

/// The place in a rank's memory from which a message's data is read, or to which it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind of memory.
    pub space: Space,
    /// Number of the type: a defined type's number, below [`NUMBERS_END`], or [`BYTES`].
    pub number: u32,
    /// In a heap: the distance from the start of the rank's heap to displacement 0, in bytes, modulo 2^64.
    /// In private memory: the address of displacement 0.
    pub origin: u64,
    /// Number of elements.
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

    fn decode(words: [u64; 3]) -> Result<Option<Self>, Malformed> {
        let number = words[0] as u32;
        let space = match words[0] >> 32 {
            0 if number == 0 => return Ok(None),
            IN_HEAP if number == BYTES || (number as usize) < NUMBERS_END => Space::Heap,
            // A place in private memory is always one run of bytes, so no other type is valid.
            PRIVATE if number == BYTES => Space::Private,
            _ => {
                return Err(Malformed(
                    "a place names a type or a kind of memory that does not exist",
                ));
            }
        };
        Ok(Some(Self { space, number, origin: words[1], count: words[2] }))
    }
}

/// The reason why seven words are not a valid envelope. The text names the wrong field, and the limits of
/// this field if it has any.
///
/// The text is constant, so that the code of [`Envelope::decode`] stays short: with texts that contain the
/// wrong values, an 8-byte message took 12 % longer. [`Malformed::of`] appends the seven words to the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl Malformed {
    /// Returns the error for a rank that has written these invalid `words`.
    #[cold]
    #[inline(never)]
    pub fn of(self, words: [u64; ENVELOPE_WORDS]) -> Violation {
        let words = words.map(|word| format!("{word:#x}"));
        Violation::new(format!("{}; the words of its envelope are {}", self.0, words.join(" ")))
    }
}

const _: () = assert!(size_of::<Envelope>() == 64);

/// A checked envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// A message. Its payload is in the slot.
    Inline(Label, [u8; INLINE_MAX]),
    /// A message. Its payload is in the ring's payload area.
    Eager(Label),
    /// A message that goes out in fragments. The second value is the length of the first fragment in bytes, which is in
    /// the ring's payload area. The further fragments follow in envelopes of the kind [`Envelope::Fragment`]. Both
    /// ranks copy long runs with the method.
    First(Label, u32, Method),
    /// The next fragment of the message whose first fragment arrived last. The value is its length in bytes.
    Fragment(u32),
    /// A message. Its payload is in the ring's payload area, and its sender waits under this name for the
    /// ACK.
    Synchronous(Label, Offer),
    /// A message. Its data waits at the sender under this name. If the RTS says where the data lies, the
    /// place is present.
    Rts(Label, Offer, Option<Place>),
    /// A receive has matched the synchronous message with this request id.
    Ack(u64),
    /// The sender of a message has to pack the message into the chunks.
    Cts {
        /// The sender's request id.
        id: u64,
        /// The method by which the sender copies long runs.
        method: Method,
    },
    /// How messages of one size class should begin from now on.
    Allow {
        /// The length in bytes of a message of the size class.
        bytes: u64,
        /// The copy method of messages in fragments, or `None` if the messages should begin with an RTS.
        fragments: Option<Method>,
    },
    /// The receiver has copied all data of the message with this request id.
    Fin(u64),
    /// A receive has matched the message with this request id, and the receiver does not take the data.
    Refused(u64),
    /// The receiver copies the message with this request id and asks the sender to help.
    Help {
        /// The sender's request id.
        id: u64,
        /// The number of the split, which distinguishes this shared copy from earlier ones. It is below
        /// [`NUMBERS`].
        number: u32,
        /// The method by which the sender copies long runs.
        method: Method,
        /// Number of packed bytes of the message.
        bytes: u64,
        /// The place in the receiver's heap to which the data goes. The place has room for at least `bytes`
        /// bytes.
        place: Place,
    },
    /// From this envelope on, the number stands for the type that is encoded in the payload area.
    Define {
        /// Number of the type, below [`TYPES`].
        number: u32,
        /// Length of the encoded type in bytes, at most [`TYPE_MAX`].
        bytes: u64,
    },
    /// From this envelope on, the number stands for the type whose encoded form lies in the sender's heap.
    DefineLong {
        /// Number of the type, from [`TYPES`] to below [`NUMBERS_END`].
        number: u32,
        /// Length of the encoded type in bytes, more than [`TYPE_MAX`] and at most [`LONG_MAX`].
        bytes: u64,
        /// The distance of the encoded type from the start of the sender's heap, in bytes. Nobody has checked
        /// this value.
        at: u64,
    },
    /// The receiver has copied the encoded form of the long type with this number.
    Defined(u32),
    /// The receiver must not read the data of the message with this request id in place any more, because
    /// the sender packs it.
    Withdraw(u64),
    /// The sender has recalled the message with this label and this name, because its program has cancelled
    /// the send. No receive had matched the message.
    Recall(Label, Offer),
}

/// Returns word 0 of the envelope of a message.
#[inline(always)]
fn head(kind: u64, label: &Label) -> u64 {
    kind | u64::from(label.types) << KIND_BITS | u64::from(label.tag as u32) << 32
}

/// Returns the words of [`Envelope::Eager`], without the mark.
#[inline(always)]
pub fn eager(label: &Label) -> [u64; 3] {
    [head(EAGER, label), label.context, label.bytes]
}

/// Returns the words of [`Envelope::Inline`].
#[inline(always)]
pub fn inline(label: &Label, payload: &[u8; INLINE_MAX]) -> [u64; ENVELOPE_WORDS] {
    let mut words = [head(INLINE, label), label.context, label.bytes, 0, 0, 0, 0];
    for (word, bytes) in words[3..].iter_mut().zip(payload.chunks_exact(8)) {
        // The conversion of eight bytes cannot fail, so the default of zero is never used.
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    words
}

impl Envelope {
    /// Returns the words of this envelope, and the number of words that the reader of such an envelope uses.
    #[inline]
    pub fn encode(&self) -> ([u64; ENVELOPE_WORDS], usize) {
        match self {
            Self::Inline(label, payload) => {
                (inline(label, payload), 3 + (label.bytes as usize).div_ceil(8).min(4))
            }
            Self::Eager(label) => {
                let [a, b, c] = eager(label);
                ([a, b, c, 0, 0, 0, 0], 4)
            }
            Self::Rts(label, offer, place) => {
                // Write all seven words, because a word that is not written keeps its value from an earlier
                // lap of the ring.
                let [a, b, c] = Place::encode(place);
                let a = a | offer.encode();
                ([head(RTS, label), label.context, label.bytes, offer.id, a, b, c], 7)
            }
            Self::Synchronous(label, offer) => {
                let Label { context, bytes, .. } = *label;
                ([head(SYNCHRONOUS, label), context, bytes, offer.id, offer.encode(), 0, 0], 5)
            }
            Self::Ack(id) => ([ACK, 0, 0, *id, 0, 0, 0], 4),
            Self::Cts { id, method } => ([CTS, u64::from(method.code()), 0, *id, 0, 0, 0], 4),
            Self::First(label, bytes, method) => {
                let Label { context, bytes: total, .. } = *label;
                let first = u64::from(*bytes) | u64::from(method.code()) << 32;
                ([head(FIRST, label), context, total, first, 0, 0, 0], 4)
            }
            Self::Fragment(bytes) => ([FRAGMENT, 0, u64::from(*bytes), 0, 0, 0, 0], 3),
            Self::Allow { bytes, fragments } => {
                let method = fragments.map_or(0, |method| u64::from(method.code()) + 1);
                ([ALLOW, method, *bytes, 0, 0, 0, 0], 3)
            }
            Self::Fin(id) => ([FIN, 0, 0, *id, 0, 0, 0], 4),
            Self::Refused(id) => ([REFUSED, 0, 0, *id, 0, 0, 0], 4),
            Self::Define { number, bytes } => {
                ([DEFINE | u64::from(*number) << 32, 0, *bytes, 0, 0, 0, 0], 3)
            }
            Self::DefineLong { number, bytes, at } => {
                ([DEFINE_LONG | u64::from(*number) << 32, 0, *bytes, *at, 0, 0, 0], 4)
            }
            Self::Defined(number) => ([DEFINED | u64::from(*number) << 32, 0, 0, 0, 0, 0, 0], 3),
            Self::Help { id, number, method, bytes, place } => {
                let [a, b, c] = Place::encode(&Some(*place));
                let number = u64::from(*number) | u64::from(method.code()) << 32;
                ([HELP, number, *bytes, *id, a, b, c], 7)
            }
            Self::Withdraw(id) => ([WITHDRAW, 0, 0, *id, 0, 0, 0], 4),
            Self::Recall(label, offer) => {
                let Label { context, bytes, .. } = *label;
                ([head(RECALL, label), context, bytes, offer.id, offer.encode(), 0, 0], 5)
            }
        }
    }

    /// Returns the label of a short message, and its payload if the payload is in the slot. Returns `None` for
    /// any other envelope, and for one that [`decode`](Self::decode) refuses.
    ///
    /// A receive that waits for a short message uses this function and not `decode`: the value that `decode`
    /// returns goes through memory, which takes a fifth of the time of an 8-byte message.
    #[inline(always)]
    pub fn short(words: &[u64; ENVELOPE_WORDS]) -> Option<(Label, Option<[u8; INLINE_MAX]>)> {
        let (kind, tag) = (words[0] & ((1 << KIND_BITS) - 1), (words[0] >> 32) as u32 as i32);
        let types = (words[0] as u32) >> KIND_BITS;
        let label = Label { context: words[1], tag, bytes: words[2], types };
        if tag < 0 {
            return None;
        }
        match kind {
            INLINE if label.bytes <= INLINE_MAX as u64 => Some((label, Some(payload(words)))),
            EAGER if label.bytes > 0 && label.bytes <= EAGER_MAX as u64 => Some((label, None)),
            _ => None,
        }
    }

    /// Decodes and checks the words that another rank wrote.
    ///
    /// # Errors
    /// Returns the fault if the kind is unknown or a field is outside its domain.
    #[inline(always)]
    pub fn decode(words: &[u64; ENVELOPE_WORDS]) -> Result<Self, Malformed> {
        let head = words[0] & 0xffff_ffff;
        // Only messages have types. For all other envelopes, take all 32 bits as the kind: if any bit of the
        // types is set, the kind is unknown, and the envelope is refused below.
        let kind = match head & ((1 << KIND_BITS) - 1) {
            message @ (INLINE | EAGER | RTS | SYNCHRONOUS | RECALL | FIRST) => message,
            _ => head,
        };
        let types = (head >> KIND_BITS) as u32;
        let tag = (words[0] >> 32) as u32 as i32;
        let label = Label { context: words[1], tag, bytes: words[2], types };
        if tag < 0 {
            return Err(Malformed("an envelope has a negative tag"));
        }
        if label.bytes > i64::MAX as u64 {
            return Err(Malformed("an envelope has a message length above 2^63 - 1"));
        }
        match kind {
            INLINE if label.bytes <= INLINE_MAX as u64 => Ok(Self::Inline(label, payload(words))),
            INLINE => Err(Malformed("an inline message is longer than 32 bytes")),
            EAGER if label.bytes > 0 && label.bytes <= EAGER_MAX as u64 => Ok(Self::Eager(label)),
            EAGER => Err(Malformed("an eager message is empty or longer than 16 KiB")),
            SYNCHRONOUS | RTS | RECALL => Self::decode_offer(kind, label, words),
            ACK => Ok(Self::Ack(words[3])),
            FIRST | FRAGMENT => Self::decode_fragment(kind, label, words),
            CTS => match method(words[1]) {
                Some(method) => Ok(Self::Cts { id: words[3], method }),
                None => Err(Malformed("a CTS has a copy method above 3")),
            },
            ALLOW => Self::decode_allow(words),
            FIN => Ok(Self::Fin(words[3])),
            REFUSED => Ok(Self::Refused(words[3])),
            DEFINE if (tag as usize) < TYPES && (1..=TYPE_MAX as u64).contains(&label.bytes) => {
                // The conversion loses nothing, because `tag` is not negative (checked above).
                Ok(Self::Define { number: tag as u32, bytes: label.bytes })
            }
            DEFINE => Err(Malformed(
                "a type definition has a number above 63 or a length outside 1 to 16384 bytes",
            )),
            DEFINE_LONG | DEFINED => Self::decode_long(kind, tag as usize, words),
            WITHDRAW => Ok(Self::Withdraw(words[3])),
            HELP => {
                let place = Place::decode([words[4], words[5], words[6]])?;
                let number = words[1] as u32;
                let Some(method) = method(words[1] >> 32) else {
                    return Err(Malformed("a request for help has a copy method above 3"));
                };
                // No rank writes to the private memory of another rank (`transport/protocol/private.rs`).
                let Some(place) = place.filter(|place| place.space == Space::Heap) else {
                    return Err(Malformed("a request for help names no place in a heap"));
                };
                if label.bytes == 0 {
                    return Err(Malformed("a request for help is for an empty message"));
                }
                if number >= NUMBERS {
                    return Err(Malformed("a request for help has a split number above 2^24 - 1"));
                }
                Ok(Self::Help { id: words[3], number, method, bytes: label.bytes, place })
            }
            _ => Err(Malformed("an envelope has an unknown kind")),
        }
    }

    /// Decodes an envelope that concerns the long type `number`.
    #[cold]
    fn decode_long(
        kind: u64,
        number: usize,
        words: &[u64; ENVELOPE_WORDS],
    ) -> Result<Self, Malformed> {
        let (bytes, at) = (words[2], words[3]);
        if !(TYPES..NUMBERS_END).contains(&number) {
            return Err(Malformed("the number of a long type is not from 64 to 71"));
        }
        match kind {
            DEFINED => Ok(Self::Defined(number as u32)),
            _ if (TYPE_MAX as u64 + 1..=LONG_MAX as u64).contains(&bytes) => {
                Ok(Self::DefineLong { number: number as u32, bytes, at })
            }
            _ => Err(Malformed("an encoded long type has at most 16 KiB or more than 8 MiB")),
        }
    }

    /// Decodes the envelope that says how messages of a size class should begin.
    #[cold]
    fn decode_allow(words: &[u64; ENVELOPE_WORDS]) -> Result<Self, Malformed> {
        let bytes = words[2];
        if bytes == 0 || bytes > FRAGMENTED_MAX as u64 {
            return Err(Malformed("an Allow is for messages of no byte or of more than 256 KiB"));
        }
        match words[1].checked_sub(1).map(method) {
            None => Ok(Self::Allow { bytes, fragments: None }),
            Some(Some(method)) => Ok(Self::Allow { bytes, fragments: Some(method) }),
            Some(None) => Err(Malformed("an Allow has a copy method above 3")),
        }
    }

    /// Decodes the envelope of a fragment of a message.
    #[inline(never)]
    fn decode_fragment(
        kind: u64,
        label: Label,
        words: &[u64; ENVELOPE_WORDS],
    ) -> Result<Self, Malformed> {
        let fragment = if kind == FRAGMENT { label.bytes } else { words[3] & 0xffff_ffff };
        if fragment == 0 || fragment > FRAGMENT_MAX as u64 {
            return Err(Malformed("a fragment of a message is empty or longer than 16 KiB"));
        }
        // The conversions lose nothing, because `FRAGMENT_MAX` is below 2^32.
        if kind == FRAGMENT {
            return Ok(Self::Fragment(fragment as u32));
        }
        if label.bytes < fragment || label.bytes > FRAGMENTED_MAX as u64 {
            return Err(Malformed(
                "a message in fragments is shorter than its first fragment or longer than 256 KiB",
            ));
        }
        match method(words[3] >> 32) {
            Some(method) => Ok(Self::First(label, fragment as u32, method)),
            None => Err(Malformed("a message in fragments has a copy method above 3")),
        }
    }

    /// Decodes an envelope that names a message whose sender waits. The code is not part of
    /// [`decode`](Self::decode), so that the code for short messages stays short.
    #[inline(never)]
    fn decode_offer(
        kind: u64,
        label: Label,
        words: &[u64; ENVELOPE_WORDS],
    ) -> Result<Self, Malformed> {
        let offer = Offer::decode(words)?;
        match kind {
            SYNCHRONOUS if label.bytes <= EAGER_MAX as u64 => Ok(Self::Synchronous(label, offer)),
            SYNCHRONOUS => Err(Malformed("a synchronous message is longer than 16 KiB")),
            RECALL => Ok(Self::Recall(label, offer)),
            _ if label.bytes > 0 => {
                let place = words[4] & ((1 << SHAPE_AT) - 1);
                let place = Place::decode([place, words[5], words[6]])?;
                Ok(Self::Rts(label, offer, place))
            }
            _ => Err(Malformed("an RTS has an empty message")),
        }
    }
}

/// Returns the payload of an inline message.
#[inline(always)]
fn payload(words: &[u64; ENVELOPE_WORDS]) -> [u8; INLINE_MAX] {
    let mut payload = [0; INLINE_MAX];
    for (bytes, word) in payload.chunks_exact_mut(8).zip(&words[3..]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    payload
}

/// Returns the copy method with the number `code`.
#[inline]
fn method(code: u64) -> Option<Method> {
    u8::try_from(code).ok().and_then(Method::from_code)
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
            Envelope::Synchronous(typed, 9.into()),
            Envelope::Rts(typed, 7.into(), None),
            Envelope::Synchronous(Label { bytes: 0, ..label }, 9.into()),
            Envelope::Synchronous(label, u64::MAX.into()),
            Envelope::Rts(Label { bytes: 1 << 40, ..label }, 7.into(), None),
            Envelope::Rts(label, 7.into(), place(Space::Heap, 0, u64::MAX, 0)),
            Envelope::Rts(label, 7.into(), place(Space::Heap, BYTES, 5, u64::MAX)),
            Envelope::Rts(label, 7.into(), place(Space::Private, BYTES, u64::MAX, 9)),
            Envelope::Define { number: TYPES as u32 - 1, bytes: TYPE_MAX as u64 },
            Envelope::DefineLong { number: TYPES as u32, bytes: TYPE_MAX as u64 + 1, at: u64::MAX },
            Envelope::DefineLong { number: NUMBERS_END as u32 - 1, bytes: LONG_MAX as u64, at: 0 },
            Envelope::Defined(NUMBERS_END as u32 - 1),
            Envelope::Rts(label, 7.into(), place(Space::Heap, NUMBERS_END as u32 - 1, 5, 9)),
            Envelope::Withdraw(u64::MAX),
            Envelope::Rts(typed, Offer { id: 7, recall: Some(0), shape: Shape::Sparse }, None),
            Envelope::Rts(
                label,
                Offer { id: 7, recall: Some(55), shape: Shape::Dense },
                place(Space::Private, BYTES, u64::MAX, 9),
            ),
            Envelope::Synchronous(label, Offer { recall: Some(55), ..9.into() }),
            Envelope::Recall(typed, Offer { recall: Some(3), ..u64::MAX.into() }),
            Envelope::Ack(1),
            Envelope::Cts { id: u64::MAX, method: Method::Streaming },
            Envelope::Cts { id: 0, method: Method::Vector },
            Envelope::Cts { id: 1, method: Method::Pages },
            Envelope::First(typed, 19, Method::Repeat),
            Envelope::First(
                Label { bytes: FRAGMENTED_MAX as u64, ..label },
                FRAGMENT_MAX as u32,
                Method::Streaming,
            ),
            Envelope::Fragment(1),
            Envelope::Fragment(FRAGMENT_MAX as u32),
            Envelope::Allow { bytes: 1, fragments: None },
            Envelope::Allow { bytes: FRAGMENTED_MAX as u64, fragments: Some(Method::Pages) },
            Envelope::Fin(2),
            Envelope::Refused(3),
            Envelope::Help {
                id: 1,
                number: NUMBERS - 1,
                method: Method::Repeat,
                bytes: 9,
                place: Place { space: Space::Heap, number: BYTES, origin: 5, count: 9 },
            },
            Envelope::Help {
                id: 1,
                number: 0,
                method: Method::Vector,
                bytes: 9,
                place: Place { space: Space::Heap, number: BYTES, origin: u64::MAX, count: 9 },
            },
        ] {
            let (mut words, used) = envelope.encode();
            words[used..].fill(0);
            assert_eq!(Envelope::decode(&words), Ok(envelope));
            let short = match envelope {
                Envelope::Inline(label, payload) => Some((label, Some(payload))),
                Envelope::Eager(label) => Some((label, None)),
                _ => None,
            };
            assert_eq!(Envelope::short(&words), short);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let eager = EAGER_MAX as u64;
        for words in [
            [0, 0, 0, 0, 0, 0, 0],
            [18, 0, 0, 0, 0, 0, 0],
            [ALLOW, 0, 0, 0, 0, 0, 0],
            [ALLOW, 0, FRAGMENTED_MAX as u64 + 1, 0, 0, 0, 0],
            [ALLOW, 5, 100, 0, 0, 0, 0],
            [ALLOW | 1 << 9, 0, 100, 0, 0, 0, 0],
            [FIRST, 0, 100, 0, 0, 0, 0],
            [FIRST, 0, 100, 101, 0, 0, 0],
            [FIRST, 0, 1 << 17, FRAGMENT_MAX as u64 + 1, 0, 0, 0],
            [FIRST, 0, FRAGMENTED_MAX as u64 + 1, 100, 0, 0, 0],
            [FIRST, 0, 100, 100 | 4 << 32, 0, 0, 0],
            [FIRST | 1 << 63, 0, 100, 100, 0, 0, 0],
            [FRAGMENT, 0, 0, 0, 0, 0, 0],
            [FRAGMENT, 0, FRAGMENT_MAX as u64 + 1, 0, 0, 0, 0],
            [FRAGMENT | 1 << 8, 0, 100, 0, 0, 0, 0],
            [DEFINE_LONG, 0, 1 << 20, 0, 0, 0, 0],
            [DEFINE_LONG | (TYPES as u64) << 32, 0, TYPE_MAX as u64, 0, 0, 0, 0],
            [DEFINE_LONG | (TYPES as u64) << 32, 0, LONG_MAX as u64 + 1, 0, 0, 0, 0],
            [DEFINE_LONG | (NUMBERS_END as u64) << 32, 0, 1 << 20, 0, 0, 0, 0],
            [DEFINE_LONG | 1 << 9 | (TYPES as u64) << 32, 0, 1 << 20, 0, 0, 0, 0],
            [DEFINED | (TYPES as u64 - 1) << 32, 0, 0, 0, 0, 0, 0],
            [DEFINED | (NUMBERS_END as u64) << 32, 0, 0, 0, 0, 0, 0],
            [RECALL, 0, 8, 1, 57 << RECALL_AT, 0, 0],
            [SYNCHRONOUS, 0, 8, 1, 57 << RECALL_AT, 0, 0],
            [RTS, 0, 8, 1, 57 << RECALL_AT, 0, 0],
            [RTS, 0, 8, 1, 1 << (RECALL_AT - 1), 0, 0],
            [RTS, 0, 1, 0, PRIVATE << 32, 0, 0],
            [HELP, 1, 8, 0, 0, 0, 0],
            [HELP, 1, 0, 0, IN_HEAP << 32, 0, 0],
            [HELP, 4 << 32, 8, 0, IN_HEAP << 32, 0, 0],
            [CTS, 4, 0, 0, 0, 0, 0],
            [CTS, 1 << 32, 0, 0, 0, 0, 0],
            [CTS, 1 << 8, 0, 0, 0, 0, 0],
            [CTS, 1 << 63, 0, 0, 0, 0, 0],
            [RTS, 0, 9, 0, 3 << SHAPE_AT, 0, 0],
            [RTS, 0, 9, 0, 1 << 63, 0, 0],
            [HELP, u64::from(NUMBERS), 8, 0, IN_HEAP << 32, 0, 0],
            [HELP, 1, 8, 0, PRIVATE << 32, 0, 8],
            [HELP, 1, 8, 0, u64::from(BYTES) | PRIVATE << 32, 4096, 8],
            [RTS, 0, 9, 0, 1, 0, 0],
            [RTS, 0, 9, 0, 2 << 32, 0, 0],
            [RTS, 0, 9, 0, NUMBERS_END as u64 | IN_HEAP << 32, 0, 0],
            [DEFINE, 0, 0, 0, 0, 0, 0],
            [DEFINE, 0, TYPE_MAX as u64 + 1, 0, 0, 0, 0],
            [DEFINE | (TYPES as u64) << 32, 0, 9, 0, 0, 0, 0],
            [SYNCHRONOUS, 0, eager + 1, 0, 0, 0, 0],
            [INLINE | 1 << 63, 0, 8, 0, 0, 0, 0],
            [CTS | 1 << 8, 0, 0, 0, 0, 0, 0],
            [FIN | 1 << 9, 0, 0, 0, 0, 0, 0],
            [REFUSED | 1 << 10, 0, 0, 0, 0, 0, 0],
            [ACK | 1 << 31, 0, 0, 0, 0, 0, 0],
            [WITHDRAW | 1 << 31, 0, 0, 0, 0, 0, 0],
            [DEFINE | 1 << 9, 0, 8, 0, 0, 0, 0],
            [HELP | 1 << 9, 1, 8, 0, u64::from(BYTES) | IN_HEAP << 32, 0, 8],
            [INLINE, 0, 33, 0, 0, 0, 0],
            [EAGER, 0, 0, 0, 0, 0, 0],
            [EAGER, 0, eager + 1, 0, 0, 0, 0],
            [RTS, 0, 0, 0, 0, 0, 0],
            [RTS, 0, 1 << 63, 0, 0, 0, 0],
            [CTS, 0, u64::MAX, 0, 0, 0, 0],
        ] {
            assert!(Envelope::decode(&words).is_err(), "{words:?}");
            assert_eq!(Envelope::short(&words), None, "{words:?}");
        }
    }
}
