//! The form of the requests to ranks whose memory the calling rank cannot map. `requests.rs` writes requests, and
//! `serve.rs` carries them out.
//!
//! ```text
//! request   kind (8 bits), update (7), answer by words (1),                       words of 64 bits
//!           number of the type (16), tag (32)
//!           offset of the elements' origin in the window's memory
//!           number of elements, position of the first packed byte                 not if the elements are bytes
//!           length in bytes                                                       long put, get, get-accumulate
//!           the predefined type of all elements                                   accumulate, get-accumulate
//!           data: packed bytes
//! ```
//!
//! The answer is a message with the packed bytes of the elements or the old values. If the target refuses the request,
//! it says the class of the error in a word of the calling rank's block (`words.rs`), and the answer has no data. An
//! answer of at most [`said::BYTES`] bytes may be words of the calling rank's block too, together with the error class.
//!
//! In a dynamic window, an offset is an address in the target's process. A short request to put a value of 8 bytes has
//! 24 bytes, which fit in a slot of a ring.

use crate::Named;
use crate::coll::Operator;
use crate::rma::accumulate::Update;
#[cfg(doc)]
use crate::rma::window::words::said;

pub(in crate::rma) const WORD: usize = size_of::<u64>();
/// The greatest number of words of a request before its data.
pub(in crate::rma) const HEAD: usize = 6;
/// The greatest number of bytes of data of a request or an answer.
pub(in crate::rma) const DATA: usize = 8 << 10;
/// The length of the longest request in bytes.
pub(in crate::rma) const REQUEST: usize = HEAD * WORD + DATA;

/// The number of the type of one byte, which every rank knows.
pub(in crate::rma) const BYTES: u16 = u16::MAX;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rma) enum Kind {
    /// Write the data of the request.
    Put = 1,
    /// Receive a message with the request's tag into the elements.
    LongPut = 2,
    Accumulate = 3,
    /// Send the elements.
    Get = 4,
    /// Send the old values.
    GetAccumulate = 5,
    /// Send the old value. The data are the new value and the value to compare.
    CompareAndSwap = 6,
    /// The data are a part of the encoded form of a type: `count` is the length of the whole form in bytes, and `start`
    /// the place of the part.
    Define = 7,
    /// No message comes for a long put with this tag.
    Forget = 8,
}

const KINDS: [Kind; 8] = [
    Kind::Put,
    Kind::LongPut,
    Kind::Accumulate,
    Kind::Get,
    Kind::GetAccumulate,
    Kind::CompareAndSwap,
    Kind::Define,
    Kind::Forget,
];

const OPERATORS: [Operator; 12] = Operator::ALL;
/// The bit of the update's byte for [`Request::by_words`].
const BY_WORDS: u8 = 1 << 7;
const REPLACE: u8 = 100;
const NO_OP: u8 = 101;

fn number_of(update: Update) -> u8 {
    match update {
        Update::Replace => REPLACE,
        Update::NoOp => NO_OP,
        Update::Combine(operator) => {
            OPERATORS.iter().position(|other| *other == operator).unwrap_or(OPERATORS.len()) as u8
        }
    }
}

fn update_of(number: u8) -> Option<Update> {
    match number {
        REPLACE => Some(Update::Replace),
        NO_OP => Some(Update::NoOp),
        _ => OPERATORS.get(usize::from(number)).map(|op| Update::Combine(*op)),
    }
}

/// A request without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rma) struct Request {
    pub kind: Kind,
    pub update: Update,
    /// The number of the type of the elements, or [`BYTES`].
    pub number: u16,
    /// Whether the answer goes to words of the calling rank's block.
    pub by_words: bool,
    /// The tag of the answer or of the message with the data.
    pub tag: i32,
    /// The offset of the elements' origin in the window's memory. If the elements are bytes: of the first byte of the
    /// data.
    pub offset: i64,
    pub count: u64,
    /// The position of the data in the packed bytes of the elements.
    pub start: u64,
    pub length: u64,
    pub named: Option<Named>,
}

impl Request {
    /// Returns a request about bytes from `offset` on.
    pub fn new(kind: Kind, offset: i64) -> Self {
        let update = Update::NoOp;
        let (number, tag, count, start, length) = (BYTES, 0, 0, 0, 0);
        let (by_words, named) = (false, None);
        Self { kind, update, number, by_words, tag, offset, count, start, length, named }
    }

    fn has_length(kind: Kind) -> bool {
        matches!(kind, Kind::LongPut | Kind::Get | Kind::GetAccumulate)
    }

    fn has_named(kind: Kind) -> bool {
        matches!(kind, Kind::Accumulate | Kind::GetAccumulate)
    }

    /// Returns the words of the request, and their number.
    #[inline]
    pub fn encode(&self) -> ([u64; HEAD], usize) {
        let by_words = if self.by_words { BY_WORDS } else { 0 };
        let first = self.kind as u64
            | u64::from(number_of(self.update) | by_words) << 8
            | u64::from(self.number) << 16
            | u64::from(self.tag as u32) << 32;
        let mut words = [first, self.offset as u64, 0, 0, 0, 0];
        let mut used = 2;
        let mut add = |word: u64| {
            words[used] = word;
            used += 1;
        };
        if self.number != BYTES {
            add(self.count);
            add(self.start);
        }
        if Self::has_length(self.kind) {
            add(self.length);
        }
        if Self::has_named(self.kind) {
            add(self.named.map_or(0, Named::abi_value).into());
        }
        (words, used)
    }

    /// Reads a request that another rank has sent. Returns the request and the data behind it; `None` if the bytes are
    /// no request.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (words, _) = bytes.as_chunks::<WORD>();
        let mut used = 0;
        let mut next = || {
            used += 1;
            words.get(used - 1).map(|word| u64::from_ne_bytes(*word))
        };
        let first = next()?;
        let kind = KINDS.iter().copied().find(|known| *known as u64 == first & 0xff)?;
        let mut request = Self::new(kind, next()? as i64);
        let update = (first >> 8) as u8;
        request.update = update_of(update & !BY_WORDS)?;
        request.by_words = update & BY_WORDS != 0;
        request.number = (first >> 16) as u16;
        request.tag = i32::try_from(first >> 32).ok()?;
        if request.number != BYTES {
            request.count = next()?;
            request.start = next()?;
        }
        if Self::has_length(kind) {
            request.length = next()?;
        }
        if Self::has_named(kind) {
            request.named = Some(Named::from_abi_value(u32::try_from(next()?).ok()?)?);
        }
        Some((request, &bytes[used * WORD..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(request: &Request, data: &[u8]) -> Vec<u8> {
        let (words, used) = request.encode();
        let mut bytes: Vec<u8> = words[..used].iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend_from_slice(data);
        bytes
    }

    #[test]
    fn requests_survive_their_way() {
        let data = [1, 2, 3, 4, 5];
        for kind in KINDS {
            for number in [BYTES, 0, 17] {
                let mut request = Request::new(kind, -8);
                request.update = Update::Combine(Operator::Sum);
                request.tag = i32::MAX;
                request.by_words = number == 17;
                request.number = number;
                if number != BYTES {
                    (request.count, request.start) = (u64::MAX, 77);
                }
                if Request::has_length(kind) {
                    request.length = 1 << 40;
                }
                if Request::has_named(kind) {
                    request.named = Some(Named::F64);
                }
                let bytes = bytes_of(&request, &data);
                assert!(bytes.len() <= HEAD * WORD + data.len());
                assert_eq!(Request::decode(&bytes), Some((request, &data[..])));
                // A request that ends early is none.
                let head = bytes.len() - data.len();
                for length in 0..head {
                    assert_eq!(Request::decode(&bytes[..length]), None);
                }
            }
        }
        let eight = bytes_of(&Request::new(Kind::Put, 0), &[0; 8]);
        assert!(eight.len() <= crate::message::envelope::INLINE_MAX);
    }

    #[test]
    fn hostile_words_are_no_requests() {
        let good = bytes_of(&Request::new(Kind::Put, 0), &[]);
        assert!(Request::decode(&good).is_some());
        for (place, byte) in [(0, 0), (0, 9), (0, 255), (1, 12), (1, 99), (1, 255), (7, 128)] {
            let mut bytes = good.clone();
            bytes[place] = byte;
            assert_eq!(Request::decode(&bytes), None, "{place} {byte}");
        }
        let mut accumulate = Request::new(Kind::Accumulate, 0);
        accumulate.named = Some(Named::F64);
        let mut bytes = bytes_of(&accumulate, &[]);
        bytes[2 * WORD..].fill(0xff);
        assert_eq!(Request::decode(&bytes), None);
    }
}
