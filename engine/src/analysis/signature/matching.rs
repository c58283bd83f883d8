//! Whether what was sent may be received (MPI-5.0 sections 3.3.1 and 3.2.4).
//!
//! Last room of the signature. The rules:
//!
//! - The basic types that were sent must be a prefix of those the receiver gave: a message may be
//!   shorter than the receive buffer, down to nothing, and may end inside an element.
//! - "The type `MPI_PACKED` can match any other type": where everything on one side is
//!   `MPI_PACKED`, only the bytes must fit. Packed elements inside a struct with others match packed
//!   elements only; the standard gives such a mixture no meaning.
//! - `MPI_BYTE` matches `MPI_BYTE` only. Programs that receive bytes from a typed send work here
//!   as elsewhere as long as nobody checks; whoever asks for the check is told.
//! - A message longer than the receive buffer is told apart (`MPI_ERR_TRUNCATE`), after its
//!   common part has been compared.

use super::hash::Affine;
use super::{Basic, Kind, NodeId, Signature, SignatureHash};
use crate::error::{Error, ErrorClass, ErrorKind, Result};
use crate::named::Named;
use std::fmt;

/// The first place where a message and a receive buffer disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// Number of the basic element, from 0; for packed data the number of bytes that fit.
    pub element: u64,
    /// What the sender has there.
    pub sent: Basic,
    /// What the receiver has there; `None` when its buffer ends before.
    pub expected: Option<Basic>,
}

impl Mismatch {
    /// `MPI_ERR_TRUNCATE` when the message is too long, else `MPI_ERR_TYPE`.
    pub fn class(&self) -> ErrorClass {
        if self.expected.is_none() { ErrorClass::TRUNCATE } else { ErrorClass::TYPE }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.expected, self.sent.is_packed()) {
            (Some(expected), _) => write!(
                f,
                "basic element {}: {} was sent, the receiver expects {expected}",
                self.element, self.sent
            ),
            (None, true) => {
                write!(f, "the receive buffer ends after {} bytes of packed data", self.element)
            }
            (None, false) => write!(
                f,
                "the receive buffer ends before basic element {}, where {} was sent",
                self.element, self.sent
            ),
        }
    }
}

impl std::error::Error for Mismatch {}

impl From<Mismatch> for Error {
    fn from(mismatch: Mismatch) -> Self {
        let kind = if mismatch.expected.is_none() { ErrorKind::Truncated } else { ErrorKind::Type };
        Error::new(kind, "datatype", mismatch.to_string())
    }
}

impl Signature {
    /// Whether `send_count` elements of this datatype may be received as `recv_count` of `recv`:
    /// `Ok(Err(…))` says where they first disagree.
    ///
    /// Two prefix hashes where they match, about 60 pairs at most where they do not. Equal hashes
    /// count as equal signatures ([`SignatureHash`]).
    ///
    /// # Errors
    ///
    /// The bytes of one side do not fit `i64`, or the two sides compare basic types by different
    /// rules.
    pub fn matches(
        &self,
        send_count: u64,
        recv: &Signature,
        recv_count: u64,
    ) -> Result<std::result::Result<(), Mismatch>> {
        if self.sameness() != recv.sameness() {
            return Err(Error::new(
                ErrorKind::Argument,
                "recv",
                format!("compares by {:?}, the sender by {:?}", recv.sameness(), self.sameness()),
            ));
        }
        let (sent, room) = (self.elements_of(send_count)?, recv.elements_of(recv_count)?);
        let Some(first) = self.basic_at(0).filter(|_| sent > 0) else {
            return Ok(Ok(()));
        };
        if self.is_packed() || recv.is_packed() {
            // No overflow: `elements_of` checked both.
            let (bytes, fit) = (self.bytes() * send_count, recv.bytes() * recv_count);
            let mismatch = Mismatch { element: fit, sent: first, expected: None };
            return Ok(if bytes <= fit { Ok(()) } else { Err(mismatch) });
        }
        let common = sent.min(room);
        let agree = |elements| {
            Ok::<bool, Error>(
                self.prefix_hash(send_count, elements)?
                    == recv.prefix_hash(recv_count, elements)?,
            )
        };
        let mut element = common;
        if !agree(common)? {
            // The shortest prefix that disagrees ends with the element looked for.
            let (mut good, mut bad) = (0, common);
            while bad - good > 1 {
                let middle = good + (bad - good) / 2;
                if agree(middle)? { good = middle } else { bad = middle }
            }
            element = good;
        } else if sent <= room {
            return Ok(Ok(()));
        }
        Ok(Err(Mismatch {
            element,
            sent: self.basic_at(element).unwrap_or(first),
            expected: if element < room { recv.basic_at(element) } else { None },
        }))
    }

    /// Whether a message, of which only the hash came along, may be received as `count` elements of
    /// this datatype: [`Signature::matches`] as a receiver can ask it. False also for a message of
    /// more basic elements than there is room for.
    ///
    /// A hash does not say how many bytes were sent; where one side is all `MPI_PACKED` their number
    /// is left to the caller, who has the message.
    ///
    /// # Errors
    ///
    /// The bytes of `count` elements do not fit `i64`.
    pub fn accepts(&self, count: u64, sent: SignatureHash) -> Result<bool> {
        let room = self.elements_of(count)?;
        if sent.elements == 0 || self.is_packed() {
            return Ok(true);
        }
        if let Some(packed) = Basic::new(Named::PACKED, self.sameness())
            && Affine::one(packed.token()).hash(1).repeat(sent.elements) == sent
        {
            return Ok(true);
        }
        Ok(sent.elements <= room && self.prefix_hash(count, sent.elements)? == sent)
    }

    /// Whether there is data and all of it is `MPI_PACKED`, which matches everything.
    pub fn is_packed(&self) -> bool {
        let packed = |node: NodeId| match self.node(node).kind {
            Kind::Basic(basic) => basic.is_packed(),
            Kind::Sequence { .. } => false,
        };
        self.0.root.is_some_and(|root| packed(root.node))
    }
}
