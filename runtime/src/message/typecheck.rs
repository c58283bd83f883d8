//! The check that `TYPEPACK_CHECK_TYPES=1` enables: whether the types of a message match the types of its
//! receive.
//!
//! `endpoint/engine.rs` uses this file at both ends of a message. If the check is enabled, the sender
//! computes the hash of its signature (`typepack_engine::signature`: class and width of every basic
//! element, in order) and folds it to 24 bits. The envelope carries these bits
//! ([`Label::types`](crate::message::envelope::Label)). The receiver takes the part of its own type that
//! has the same number of bytes, folds the hash of this part, and compares the bits. Both ranks compute
//! the hash of many elements from the hash of one element, so neither rank iterates over elements.
//!
//! The engine defines which types match (`signature/matching.rs`): the message is a prefix of the receive
//! by class and width, packed data matches everything, and bytes match only bytes. There is one
//! difference: the receiver does not compare a message that is longer than the receive, because it does
//! not know the hash of the part that fits. The receive truncates such a message without a check.
//!
//! Because the folded hash has 24 bits, the check misses about one mismatch in 16 million. If a rank sends
//! wrong check bits, the worst effect is that its message is refused, or is received as if there were no
//! check.

use super::Status;
use crate::{Error, ErrorKind, Plan};
use std::fmt::Write;
use typepack_engine::signature::{Basic, Sameness, Signature, SignatureHash};
use typepack_engine::{Elements, Named};

/// The check bits of a message that a receiver cannot compare: its sender does not check types or has no
/// signature for them, the message has no data, or all of its data is `MPI_PACKED`.
pub const UNKNOWN: u32 = 0;

/// The check bits of a void message: an empty message that a rank sends if it cannot provide the real
/// message. Every receive refuses such a message, even if the check is off. In a collective call, a rank
/// that has received a void message sends a void message to the ranks that wait for its data, so that no
/// rank waits forever after a failure.
pub const VOID: u32 = 1;

/// A value for the label of a send. The value means that the message has the types of the layout. The engine
/// replaces the value with the check bits, or by [`UNKNOWN`] if it does not compare types, so no envelope
/// contains it. The value must differ from [`UNKNOWN`], because a packed copy of `MPI_PACKED` data is
/// sent with `UNKNOWN` in its label.
pub const OF_LAYOUT: u32 = u32::MAX;

/// Every result of `fold` is below this number.
pub const END: u32 = 1 << 24;

/// Maximum number of runs (equal basic elements in a row) of a signature that an error text shows.
const SHOWN: usize = 8;

/// Folds a signature hash to 24 bits. The result is neither [`UNKNOWN`] nor [`VOID`].
fn fold(hash: SignatureHash) -> u32 {
    // The hash of a short signature is a small number, so mix its bits with the finalizer of splitmix64.
    let mut x = (hash.value as u64) ^ ((hash.value >> 64) as u64).rotate_left(29);
    x = x.wrapping_add(hash.elements.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    let first = VOID + 1;
    first + (x % u64::from(END - first)) as u32
}

/// Returns the check bits for the envelope of a message of `count` elements.
#[cold]
pub fn of_message(plan: &Plan, count: u64) -> u32 {
    // Two kinds of plans have no hash and count as [`UNKNOWN`]: internal plans without a datatype, and
    // types whose signature the engine refuses because they have more than 2^28 structs.
    let Ok(signature) = plan.signature() else { return UNKNOWN };
    match signature.hash(count) {
        Ok(hash) if hash.elements > 0 && !signature.is_packed() => fold(hash),
        _ => UNKNOWN,
    }
}

/// Returns the error if a receive of `capacity` bytes must refuse a message with these `types`, and `None` if
/// the types allow the receive to take the message. If the receive refuses the message, it writes nothing.
/// `check` is true if this rank compares types, and `status` describes the message.
#[inline]
pub fn refusal(
    check: bool,
    layout: &Elements<&Plan>,
    capacity: u64,
    status: Status,
    types: u32,
) -> Option<Error> {
    if types == UNKNOWN { None } else { compared(check, layout, capacity, status, types) }
}

#[cold]
fn compared(
    check: bool,
    layout: &Elements<&Plan>,
    capacity: u64,
    status: Status,
    types: u32,
) -> Option<Error> {
    let Status { source, tag, bytes } = status;
    if types == VOID {
        let detail = format!(
            "rank {source} failed before it had the data of its message with tag {tag}; the error of rank \
             {source} has the reason"
        );
        let received = Status { bytes: 0, ..status };
        return Some(Error::new(ErrorKind::Other, "message", detail).of_message(received));
    }
    if !check || bytes > capacity {
        return None;
    }
    let signature = layout.plan.signature().ok()?;
    // The hash exists, because the message is not longer than the receive.
    let expected = signature.hash_of_bytes(layout.count, bytes).ok()?;
    if signature.is_packed() || expected.is_some_and(|hash| fold(hash) == types) {
        return None;
    }
    let detail = format!(
        "the {bytes}-byte message from rank {source} with tag {tag} does not have the types of the \
         receive: {} expected, {} sent",
        front(signature, layout.count, bytes),
        guess(bytes, types)
    );
    Some(Error::new(ErrorKind::Type, "datatype", detail).of_message(status))
}

/// Checks the types of a copy within this rank by the rules for a message from this rank to itself.
///
/// # Errors
/// Returns [`ErrorKind::Type`] if the types do not match, and the error of the engine if the packed size of
/// one side exceeds 2^63 - 1 bytes.
#[cold]
pub fn own(from: (&Plan, u64), to: (&Plan, u64)) -> crate::Result<()> {
    let (Ok(sent), Ok(expected)) = (from.0.signature(), to.0.signature()) else { return Ok(()) };
    match sent.matches(from.1, expected, to.1)? {
        Err(mismatch) if mismatch.expected.is_some() => {
            let detail = format!("in this rank's own part, {mismatch}");
            Err(Error::new(ErrorKind::Type, "datatype", detail))
        }
        _ => Ok(()),
    }
}

/// Returns a text for the types of the first `bytes` bytes of `count` elements with this signature, such
/// as `2 x float 8, integer 4`.
fn front(signature: &Signature, count: u64, bytes: u64) -> String {
    let (mut text, mut left) = (String::new(), bytes);
    let Ok(runs) = signature.runs(count) else { return text };
    for (shown, run) in runs.enumerate() {
        let width = u64::from(run.basic.width());
        let elements = run.elements.min(left / width);
        let rest = if elements < run.elements { left - elements * width } else { 0 };
        if elements > 0 {
            list(&mut text, shown, elements, run.basic);
        }
        left -= elements * width + rest;
        if rest > 0 {
            let before = if text.is_empty() { "" } else { ", " };
            // A write to a string cannot fail.
            let _ = write!(text, "{before}{rest} of {width} bytes of {}", run.basic);
        }
        if left == 0 {
            break;
        }
        if shown + 1 == SHOWN {
            text.push_str(", …");
            break;
        }
    }
    text
}

fn list(text: &mut String, place: usize, elements: u64, basic: Basic) {
    let before = if place == 0 { "" } else { ", " };
    let times = if elements == 1 { String::new() } else { format!("{elements} x ") };
    // A write to a string cannot fail.
    let _ = write!(text, "{before}{times}{basic}");
}

/// Returns the probable content of a message of `bytes` bytes with these check bits, as text. If the whole
/// message is of one basic type, the text names this type. By chance, the text also names a type for about
/// two in a million other messages.
fn guess(bytes: u64, types: u32) -> String {
    let basics = Named::all().filter_map(|named| Basic::new(named, Sameness::Representation));
    for basic in basics.filter(|basic| bytes.is_multiple_of(u64::from(basic.width()))) {
        let elements = bytes / u64::from(basic.width());
        let one = SignatureHash { elements: 1, value: u128::from(basic.token()) };
        if fold(one.repeat(elements)) == types {
            let mut text = String::new();
            list(&mut text, 0, elements, basic);
            return text;
        }
    }
    format!("something else (of several basic types, hash {types:#08x})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datatype;

    fn plan(ty: &Datatype) -> Plan {
        ty.commit().expect("a plan")
    }

    fn named(named: Named) -> Datatype {
        Datatype::named(named)
    }

    fn pairs() -> Datatype {
        let types = [named(Named::INT), named(Named::DOUBLE)];
        Datatype::structured(&[1, 2], &[0, 8], &types).expect("a type")
    }

    /// Returns the error text with which a receive of `count` elements of `ty` refuses a message of
    /// `bytes` bytes with the check bits `sent`, or `None` if the receive accepts it.
    fn verdict(sent: u32, bytes: u64, ty: &Datatype, count: u64) -> Option<String> {
        let plan = plan(ty);
        let layout = Elements { origin: std::ptr::null_mut(), plan: &plan, count };
        let status = Status { source: 3, tag: 7, bytes };
        let capacity = plan.packed_bytes(count).expect("a size");
        let error = refusal(true, &layout, capacity, status, sent)?;
        assert_eq!((error.kind(), error.received()), (ErrorKind::Type, Some(status)));
        assert_eq!(refusal(false, &layout, capacity, status, sent), None);
        Some(error.to_string())
    }

    #[test]
    fn short_signatures_have_different_folds() {
        let basics: std::collections::BTreeSet<u32> = Named::all()
            .filter_map(|named| Basic::new(named, Sameness::Representation))
            .map(Basic::token)
            .collect();
        let mut seen = std::collections::HashMap::new();
        for token in basics {
            let one = SignatureHash { elements: 1, value: u128::from(token) };
            for count in 1..30 {
                let fold = fold(one.repeat(count));
                assert!((VOID + 1..END).contains(&fold));
                assert_eq!(seen.insert(fold, (token, count)), None, "{token:#x} {count}");
            }
        }
    }

    #[test]
    fn prefixes_match_and_nothing_else() {
        let pairs = pairs();
        let sent = of_message(&plan(&pairs), 3);
        assert_eq!(verdict(sent, 60, &pairs, 3), None);
        assert_eq!(verdict(sent, 60, &pairs, 5), None);
        let long = Datatype::structured(
            &[1, 2],
            &[0, 8],
            &[named(Named::INT32_T), named(Named::DOUBLE_PRECISION)],
        );
        assert_eq!(verdict(sent, 60, &long.expect("a type"), 3), None);
        // The message is one and a half elements of `pairs`.
        let types = [pairs.clone(), named(Named::INT)];
        let more = Datatype::structured(&[1, 1], &[0, 24], &types).expect("a type");
        assert_eq!(verdict(of_message(&plan(&more), 1), 24, &pairs, 2), None);
        // This message is longer than the receive. The check accepts it, because the receive then fails
        // with `Truncated`.
        assert_eq!(verdict(sent, 60, &named(Named::CHAR), 59), None);
        assert_eq!(
            verdict(sent, 60, &named(Named::CHAR), 60).expect("a refusal"),
            format!(
                "datatype: the 60-byte message from rank 3 with tag 7 does not have the types of the \
                 receive: 60 x character 1 expected, something else (of several basic types, hash \
                 {sent:#08x}) sent"
            )
        );
    }

    #[test]
    fn both_sides_are_named() {
        for (sent, count, bytes, expected, text) in [
            (Named::FLOAT, 3, 12, named(Named::INT), "3 x integer 4 expected, 3 x float 4 sent"),
            (Named::INT, 1, 4, pairs(), ""),
            (
                Named::INT,
                2,
                8,
                pairs(),
                "integer 4, 4 of 8 bytes of float 8 expected, 2 x integer 4 sent",
            ),
            (Named::INT, 3, 12, pairs(), "integer 4, float 8 expected, 3 x integer 4 sent"),
            (Named::BYTE, 2, 2, pairs(), "2 of 4 bytes of integer 4 expected, 2 x byte 1 sent"),
            (Named::BYTE, 8, 8, named(Named::LONG), "integer 8 expected, 8 x byte 1 sent"),
            (Named::LONG, 1, 8, named(Named::BYTE), "8 x byte 1 expected, integer 8 sent"),
            (Named::LONG, 6, 48, named(Named::INT64_T), ""),
            (
                Named::CHAR,
                200,
                200,
                pairs(),
                "integer 4, 2 x float 8, integer 4, 2 x float 8, integer 4, 2 x float 8, integer 4, \
              2 x float 8, … expected, 200 x character 1 sent",
            ),
        ] {
            let found = verdict(of_message(&plan(&named(sent)), count), bytes, &expected, 1000);
            match (text, found) {
                ("", None) => {}
                (text, Some(found)) if found.ends_with(&format!("receive: {text}")) => {}
                (text, found) => panic!("{text:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn packed_and_empty_messages_are_not_compared() {
        let packed = named(Named::PACKED);
        assert_eq!(of_message(&plan(&packed), 100), UNKNOWN);
        assert_eq!(of_message(&plan(&pairs()), 0), UNKNOWN);
        let empty = Datatype::contiguous(0, &named(Named::INT)).expect("a type");
        assert_eq!(of_message(&plan(&empty), 9), UNKNOWN);
        assert_eq!(verdict(of_message(&plan(&pairs()), 1), 20, &packed, 20), None);
        assert_eq!(verdict(UNKNOWN, 5, &named(Named::LONG), 1), None);
        let decoded = typepack_engine::wire::encode(&plan(&pairs()));
        let decoded = typepack_engine::wire::decode(&decoded).expect("a plan");
        assert_eq!(of_message(&decoded, 1), UNKNOWN);
    }

    #[test]
    fn a_void_message_is_refused_by_everybody() {
        let plan = plan(&named(Named::PACKED));
        let layout = Elements { origin: std::ptr::null_mut(), plan: &plan, count: 0 };
        for check in [false, true] {
            let status = Status { source: 3, tag: 7, bytes: 0 };
            let error = refusal(check, &layout, 0, status, VOID).expect("a refusal");
            assert_eq!(error.kind(), ErrorKind::Other);
            assert!(error.received().is_some());
        }
    }

    #[test]
    fn own_parts_are_compared_element_by_element() {
        let (ints, pairs) = (plan(&named(Named::INT)), plan(&pairs()));
        assert_eq!(own((&ints, 1), (&pairs, 1)), Ok(()));
        // The source has 9 elements and the destination has room for 2. `own` accepts this copy, because it
        // compares only types. The caller's check of the sizes refuses the copy.
        assert_eq!(own((&ints, 9), (&ints, 2)), Ok(()));
        assert_eq!(
            own((&ints, 2), (&pairs, 1)).expect_err("a mismatch").to_string(),
            "datatype: in this rank's own part, basic element 1: integer 4 was sent, but the receiver \
             expects float 8"
        );
    }
}
