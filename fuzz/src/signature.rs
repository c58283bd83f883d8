//! Compares the engine's signatures with the lists of basic types that the model computes.
//!
//! The pair comes from `pair.rs`. For both sides of the pair, the check compares these results of the
//! engine with the list: the number of elements, the runs, single elements, and the hashes of the whole
//! list and of prefixes (whose lengths are given in elements or in bytes). The check also lets the
//! engine match a message with a receive buffer, and compares the answer with a comparison of the two
//! lists. It does so for the pair itself, for shorter and longer messages, and for an unrelated case.
//! Everything is checked under both rules for the equality of basic types (`Sameness`).

use crate::generate::Case;
use crate::pair::{Pair, basics};
use crate::stream::Stream;
use typepack_engine::Named;
use typepack_engine::signature::{Basic, Sameness, Signature, SignatureHash};

/// One side of a message: its signature, its count, and its basic types.
struct Written {
    signature: Signature,
    count: u64,
    /// The basic types of one element.
    element: Vec<Basic>,
}

impl Written {
    fn new(case: &Case, sameness: Sameness) -> Result<Self, String> {
        let model = case.bounded()?;
        let ty = case.recipe.build().map_err(|e| format!("constructor refused: {e}"))?;
        let signature = Signature::with(&ty, sameness).map_err(|e| format!("signature: {e}"))?;
        let element = basics(&model, 1)
            .into_iter()
            .map(|named| Basic::new(named, sameness).ok_or(format!("{named} is not basic")))
            .collect::<Result<_, _>>()?;
        Ok(Self { signature, count: case.count, element })
    }

    fn list(&self, count: u64) -> Vec<Basic> {
        (0..count).flat_map(|_| self.element.iter().copied()).collect()
    }
}

/// Computes the hash of `list` by its definition, term by term: a polynomial over the tokens of the
/// basic types, modulo 2^127 - 1.
fn hash(list: &[Basic]) -> SignatureHash {
    let value = list.iter().fold(0u128, |sum, basic| {
        reduced(times(sum, SignatureHash::BASE) + u128::from(basic.token()))
    });
    SignatureHash { elements: list.len() as u64, value }
}

/// Returns `number` modulo 2^127 - 1. `number` must be below twice the modulus.
fn reduced(number: u128) -> u128 {
    if number >= SignatureHash::MODULUS { number - SignatureHash::MODULUS } else { number }
}

/// Returns `a * b` modulo 2^127 - 1. Both factors must be below the modulus. The computation goes bit by
/// bit, so every intermediate result is below twice the modulus and fits in 128 bits.
fn times(a: u128, b: u128) -> u128 {
    let (mut product, mut power, mut rest) = (0u128, a, b);
    while rest > 0 {
        if rest & 1 == 1 {
            product = reduced(product + power);
        }
        power = reduced(power * 2);
        rest >>= 1;
    }
    product
}

/// Checks both sides of `pair`, and matches them with each other and with `other`, an unrelated case.
pub fn check(pair: &Pair, other: &Case, stream: &mut Stream) -> Result<(), String> {
    for sameness in [Sameness::Representation, Sameness::Name] {
        let from = Written::new(&pair.from, sameness)?;
        let to = Written::new(&pair.to, sameness)?;
        let other = Written::new(other, sameness)?;
        describe(&from, stream)?;
        describe(&to, stream)?;
        let whole = |side: &Written| side.signature.hash(side.count).map_err(|e| e.to_string());
        if whole(&from)? != whole(&to)? {
            return Err(format!(
                "{sameness:?}: the two sides of a pair have different hashes; they must be equal"
            ));
        }
        for (a, b) in [(&from, &to), (&to, &from), (&from, &other), (&other, &to)] {
            for (send, recv) in [
                (a.count, b.count),
                (stream.below(a.count + 2), b.count),
                (a.count, stream.below(b.count + 2)),
            ] {
                matching(a, send, b, recv).map_err(|e| format!("{sameness:?}: {e}"))?;
            }
        }
    }
    Ok(())
}

fn describe(side: &Written, stream: &mut Stream) -> Result<(), String> {
    let (signature, count) = (&side.signature, side.count);
    let list = side.list(count);
    let refused = |e: typepack_engine::Error| e.to_string();
    if signature.elements_of(count).map_err(refused)? != list.len() as u64 {
        return Err(format!(
            "elements_of({count}) is wrong for a type of {} basic elements; it must be {}",
            signature.elements(),
            list.len()
        ));
    }
    let mut runs: Vec<(Basic, u64)> = Vec::new();
    for &basic in &list {
        match runs.last_mut() {
            Some((last, elements)) if *last == basic => *elements += 1,
            _ => runs.push((basic, 1)),
        }
    }
    let found: Vec<(Basic, u64)> =
        signature.runs(count).map_err(refused)?.map(|run| (run.basic, run.elements)).collect();
    if found != runs || signature.run_count(count).map_err(refused)? != runs.len() as u64 {
        return Err(format!("the runs are {found:?}; expected {runs:?}"));
    }
    for _ in 0..4 {
        let elements = stream.below(list.len() as u64 + 1);
        let prefix = signature.prefix_hash(count, elements).map_err(refused)?;
        let expected = hash(&list[..elements as usize]);
        if prefix != expected {
            return Err(format!(
                "the hash of the first {elements} elements is {prefix:?}; expected {expected:?}"
            ));
        }
        if let Some(&expected) = list.get(elements as usize)
            && signature.basic_at(elements) != Some(expected)
        {
            let found = signature.basic_at(elements);
            return Err(format!("element {elements} is {found:?}; expected {expected:?}"));
        }
    }
    let total: u64 = list.iter().map(|basic| u64::from(basic.width())).sum();
    // Tries only two prefixes, because computing hashes term by term takes most of the time of this
    // check.
    for _ in 0..2 {
        let bytes = stream.below(total + 1);
        let (mut elements, mut end) = (0, 0);
        while end < bytes {
            end += u64::from(list[elements].width());
            elements += 1;
        }
        let expected = (end == bytes).then(|| hash(&list[..elements]));
        let found = signature.hash_of_bytes(count, bytes).map_err(refused)?;
        if found != expected {
            return Err(format!(
                "the hash of the first {bytes} bytes is {found:?}; expected {expected:?}"
            ));
        }
    }
    if signature.hash_of_bytes(count, total + 1).is_ok() {
        return Err(format!(
            "the hash of {} bytes was accepted, but there are only {total}",
            total + 1
        ));
    }
    let (whole, expected) = (signature.hash(count).map_err(refused)?, hash(&list));
    if whole != expected {
        return Err(format!("the hash is {whole:?}; expected {expected:?}"));
    }
    if signature.prefix_hash(count, list.len() as u64 + 1).is_ok() {
        let (most, asked) = (list.len(), list.len() + 1);
        return Err(format!(
            "a prefix of {asked} elements was accepted, but there are only {most}"
        ));
    }
    Ok(())
}

fn matching(a: &Written, send: u64, b: &Written, recv: u64) -> Result<(), String> {
    let (sent, room) = (a.list(send), b.list(recv));
    let packed = |list: &[Basic]| {
        let sameness = a.signature.sameness();
        let packed = Basic::new(Named::PACKED, sameness);
        !list.is_empty() && list.iter().all(|&basic| Some(basic) == packed)
    };
    let bytes = |list: &[Basic]| list.iter().map(|basic| u64::from(basic.width())).sum::<u64>();
    let found = a.signature.matches(send, &b.signature, recv).map_err(|e| e.to_string())?;
    let say = |expected: String| {
        format!("send count {send}, receive count {recv}: {found:?}; expected {expected}")
    };
    // An empty message matches every receive buffer.
    if sent.is_empty() {
        return if found.is_ok() { Ok(()) } else { Err(say("a match".into())) };
    }
    // A side counts as packed if all basic types of its element are `MPI_PACKED`, even if its count is
    // 0.
    if packed(&a.element) || packed(&b.element) {
        let fits = bytes(&sent) <= bytes(&room);
        return if found.is_ok() == fits { Ok(()) } else { Err(say(format!("a match: {fits}"))) };
    }
    let differs = sent.iter().zip(&room).position(|(a, b)| a != b);
    let expected = differs.or((sent.len() > room.len()).then_some(room.len()));
    match (expected, found) {
        (None, Ok(())) => Ok(()),
        (Some(at), Err(mismatch))
            if mismatch.element == at as u64
                && mismatch.sent == sent[at]
                && mismatch.expected == room.get(at).copied() =>
        {
            Ok(())
        }
        _ => Err(say(format!("{expected:?}"))),
    }
}
