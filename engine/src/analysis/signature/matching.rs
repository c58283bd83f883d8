//! Decides whether a message may be received into a buffer (MPI-5.0 sections 3.3.1 and 3.2.4).
//!
//! This file compares the signatures of a message and of a receive buffer. The rules:
//!
//! - The basic types of the message must be a prefix of the basic types of the receive buffer. A
//!   message may be shorter than the buffer, even empty, and may end inside an element of the buffer's
//!   datatype.
//! - "The type `MPI_PACKED` can match any other type": if all basic types of the message, or all basic
//!   types of the buffer, are `MPI_PACKED`, only the number of bytes is checked. In a struct that mixes
//!   `MPI_PACKED` with other basic types, `MPI_PACKED` matches only `MPI_PACKED`; the standard defines
//!   no meaning for such a mixture.
//! - `MPI_BYTE` matches only `MPI_BYTE`. Programs that send typed data and receive it as bytes still
//!   work, as with other MPI libraries, because the check is optional. If the check is enabled, such a
//!   receive is an error.
//! - A message longer than the receive buffer is a separate error (`MPI_ERR_TRUNCATE`). It is
//!   reported only if the part that fits in the buffer matches.

use super::hash::Affine;
use super::{Basic, Kind, NodeId, Signature, SignatureHash};
use crate::error::{Error, ErrorClass, ErrorKind, Result, counted};
use crate::named::Named;
use std::fmt;

/// The first position at which the basic types of a message and of a receive buffer differ.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// Number of basic elements before this position. If the whole message or the whole buffer is
    /// `MPI_PACKED`, only the sizes are compared, and this number is the size of the buffer in bytes.
    pub element: u64,
    /// The basic type in the message.
    pub sent: Basic,
    /// The basic type in the receive buffer; `None` if the buffer ends before this position.
    pub expected: Option<Basic>,
}

impl Mismatch {
    /// Returns the MPI error class for this mismatch: `MPI_ERR_TRUNCATE` if the message is longer
    /// than the buffer, and `MPI_ERR_TYPE` otherwise.
    pub fn class(&self) -> ErrorClass {
        if self.expected.is_none() { ErrorClass::TRUNCATE } else { ErrorClass::TYPE }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.expected, self.sent.is_packed()) {
            (Some(expected), _) => write!(
                f,
                "basic element {}: {} was sent, but the receiver expects {expected}",
                self.element, self.sent
            ),
            (None, true) => {
                let bytes = counted(self.element, "byte", "bytes");
                write!(f, "the receive buffer ends after {bytes} of packed data")
            }
            (None, false) => write!(
                f,
                "the receive buffer ends before basic element {}, where {} was sent",
                self.element, self.sent
            ),
        }
    }
}

impl fmt::Debug for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
    /// Decides whether `send_count` elements of this datatype may be received as `recv_count` elements
    /// of `recv`. `Ok(Err(…))` contains the first position at which the two signatures disagree.
    ///
    /// The comparison computes two prefix hashes if the signatures match. If they do not match, a
    /// binary search computes at most 63 more pairs of prefix hashes. Signatures with equal hashes
    /// are taken to be equal ([`SignatureHash`]).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the packed size of either side does not fit in an `i64`.
    /// Returns `ErrorKind::Argument` if the two signatures compare basic types by different rules.
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
                format!(
                    "the receiver's signature uses Sameness::{:?}, but the sender's uses \
                     Sameness::{:?}",
                    recv.sameness(),
                    self.sameness()
                ),
            ));
        }
        let (sent, room) = (self.elements_of(send_count)?, recv.elements_of(recv_count)?);
        let Some(first) = self.basic_at(0).filter(|_| sent > 0) else {
            return Ok(Ok(()));
        };
        if self.is_packed() || recv.is_packed() {
            // The product cannot overflow, because `elements_of` checked both products.
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
            // The shortest prefix whose hashes differ ends with the first element that differs.
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

    /// Decides whether a message may be received as `count` elements of this datatype, given only the
    /// hash of the message. This function is for receivers, which do not know the sender's datatype; to
    /// compare two datatypes, use [`Signature::matches`]. This function also returns false if the message
    /// has more basic elements than `count` elements of this datatype, unless the message or the datatype
    /// is entirely `MPI_PACKED`.
    ///
    /// A hash does not contain the number of bytes. If the message or the datatype is entirely
    /// `MPI_PACKED`, the caller must check that the bytes of the message fit in the buffer.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
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

    /// Returns true if there is data and all of it is `MPI_PACKED`. Such data matches data of any
    /// type.
    pub fn is_packed(&self) -> bool {
        let packed = |node: NodeId| match self.node(node).kind {
            Kind::Basic(basic) => basic.is_packed(),
            Kind::Sequence { .. } => false,
        };
        self.0.root.is_some_and(|root| packed(root.node))
    }
}
