//! Makes pairs of layouts with equal signatures.
//!
//! The input is a case from `generate.rs`. `model.rs` computes the list of the case's basic types, and
//! this file builds an unrelated tree with the same list. If the list repeats a period, the tree is
//! usually a loop or a table over one period. Any other list is cut into the members of a struct.
//! `fused_copy.rs` and `signature.rs` check the pair.

use crate::generate::{Case, MAX_ENTRIES, Mode, fits, in_reach};
use crate::model::Model;
use crate::recipe::{Block, Recipe, StructCall};
use arbitrary::{Arbitrary, Result, Unstructured};
use std::fmt;
use typepack_engine::Named;

/// Two cases with the same list of basic types, in the same order.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The layout of the sender.
    pub from: Case,
    /// The layout of the receiver.
    pub to: Case,
}

impl fmt::Display for Pair {
    /// Prints the two cases on two lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.from, self.to)
    }
}

impl<'a> Arbitrary<'a> for Pair {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mode = *u.choose(&[Mode::Any, Mode::Regular, Mode::Tiny])?;
        Pair::generate(u, mode)
    }
}

/// Returns the basic types of `count` elements, in order.
pub fn basics(model: &Model, count: u64) -> Vec<Named> {
    (0..count).flat_map(|_| model.entries.iter().map(|(_, named)| *named)).collect()
}

impl Pair {
    /// Makes a pair. One side comes from [`Case::generate`], and the other side is built from the first
    /// side's signature. In some pairs both sides are built from that signature.
    pub fn generate(u: &mut Unstructured<'_>, mode: Mode) -> Result<Pair> {
        let first = Case::generate(u, mode)?;
        let model = first.model().ok_or(arbitrary::Error::IncorrectFormat)?;
        let list = basics(&model, first.count);
        let second = case(u, &list).unwrap_or_else(|| first.clone());
        let third = if u.ratio(1, 4)? { case(u, &list) } else { None };
        let (from, to) = (third.unwrap_or(first), second);
        Ok(if u.arbitrary()? { Pair { from, to } } else { Pair { from: to, to: from } })
    }
}

/// Builds a case with exactly these basic types. Returns `None` if the case would exceed the
/// generator's bounds.
fn case(u: &mut Unstructured<'_>, list: &[Named]) -> Option<Case> {
    let count = *u.choose(&repeats(list)).ok()?;
    let (recipe, model) = realise(u, &list[..list.len() / count], 0).ok()??;
    let count = count as u64;
    (in_reach(&model) && fits(&model, count)).then_some(Case { recipe, count })
}

/// Returns every number of consecutive parts with equal contents into which the list can be cut, in
/// ascending order. The first number is 1.
fn repeats(list: &[Named]) -> Vec<usize> {
    let equal = |parts: usize| {
        let period = list.len() / parts;
        list[period..] == list[..list.len() - period]
    };
    let cuts = (2..=list.len()).filter(|&parts| list.len().is_multiple_of(parts) && equal(parts));
    std::iter::once(1).chain(cuts).collect()
}

fn realise(
    u: &mut Unstructured<'_>,
    list: &[Named],
    depth: u32,
) -> Result<Option<(Recipe, Model)>> {
    let compose = |recipe: Recipe, parts: &[Model]| {
        let model = Model::compose(&recipe, parts, MAX_ENTRIES).filter(in_reach);
        model.map(|model| (recipe, model))
    };
    if list.len() > MAX_ENTRIES {
        return Ok(None);
    }
    let [only] = list else {
        let parts = repeats(list);
        let cut = parts.len() < 2 || depth < 3 && list.len() > 1 && u.ratio(1, 5)?;
        return if cut { members(u, list, depth) } else { copies(u, list, &parts[1..], depth) };
    };
    let leaf = compose(Recipe::Named(*only), &[]);
    let Some((leaf, model)) = leaf else { return Ok(None) };
    if !u.ratio(1, 6)? {
        return Ok(Some((leaf, model)));
    }
    let (lb, extent) = (u.int_in_range(-4..=4)?, model.extent() + u.int_in_range(0..=9)?);
    Ok(compose(Recipe::Resized { lb, extent, old: Box::new(leaf) }, &[model]))
}

/// Builds a struct whose members have consecutive parts of the list as their basic types. In memory, the
/// members lie in any order, with or without gaps.
fn members(
    u: &mut Unstructured<'_>,
    list: &[Named],
    depth: u32,
) -> Result<Option<(Recipe, Model)>> {
    let parts = u.int_in_range(1..=4usize)?.min(list.len());
    let mut cuts = vec![0, list.len()];
    for _ in 1..parts {
        cuts.push(u.int_in_range(0..=list.len())?);
    }
    cuts.sort_unstable();
    if !list.is_empty() && cuts.len() == 2 {
        // A single member would have the whole list, and the recursion would not end. So the list is
        // cut near its middle.
        cuts.insert(1, (list.len() / 2).max(1));
    }
    let (mut members, mut models) = (Vec::new(), Vec::new());
    let (mut low, mut high) = (0i64, 0i64);
    for ends in cuts.windows(2).filter(|ends| ends[0] < ends[1]) {
        let part = &list[ends[0]..ends[1]];
        // The random cuts may all fall on an end of the list, which leaves the whole list as one part.
        // Such a part is cut in half, so that the recursion ends.
        let made = if part.len() == list.len() {
            let half = list.len() / 2;
            let halves =
                [realise(u, &list[..half], depth + 1)?, realise(u, &list[half..], depth + 1)?];
            let [Some(first), Some(second)] = halves else { return Ok(None) };
            let at = first.1.true_ub() - second.1.true_lb();
            let block = |displacement| Block { blocklength: 1, displacement };
            let recipe = Recipe::Struct {
                call: StructCall::Create,
                members: vec![(block(0), first.0), (block(at), second.0)],
            };
            let model = Model::compose(&recipe, &[first.1, second.1], MAX_ENTRIES);
            model.filter(in_reach).map(|model| (recipe, model))
        } else {
            realise(u, part, depth + 1)?
        };
        let Some((old, model)) = made else { return Ok(None) };
        let gap = u.int_in_range(0..=12)?;
        let displacement =
            if u.ratio(3, 4)? { high + gap - model.true_lb() } else { low - gap - model.true_ub() };
        low = low.min(displacement + model.true_lb());
        high = high.max(displacement + model.true_ub());
        members.push((Block { blocklength: 1, displacement }, old));
        models.push(model);
    }
    let recipe = Recipe::Struct { call: StructCall::Create, members };
    let model = Model::compose(&recipe, &models, MAX_ENTRIES).filter(in_reach);
    Ok(model.map(|model| (recipe, model)))
}

/// Builds a loop or a table that repeats one period of the list.
fn copies(
    u: &mut Unstructured<'_>,
    list: &[Named],
    parts: &[usize],
    depth: u32,
) -> Result<Option<(Recipe, Model)>> {
    let copies = *u.choose(parts)?;
    let Some((old, model)) = realise(u, &list[..list.len() / copies], depth + 1)? else {
        return Ok(None);
    };
    let old = Box::new(old);
    // A block has `length` copies if `length` divides the total number of copies; otherwise it has one
    // copy.
    let length = u.int_in_range(1..=copies.min(8))?;
    let length = if copies.is_multiple_of(length) { length } else { 1 };
    let (count, blocklength) = ((copies / length) as i64, length as i64);
    let span = model.extent().abs() * (blocklength - 1) + model.true_ub() - model.true_lb();
    let mut places = Vec::new();
    let gap = u.int_in_range(0..=3)?;
    for i in 0..count {
        places.push(if gap == 3 { i * span + u.int_in_range(0..=5)? } else { i * (span + gap) });
    }
    if u.ratio(1, 4)? {
        places.reverse();
    }
    if u.ratio(1, 6)? {
        // Swaps neighbours, so that the displacements neither ascend nor have equal distances.
        places.chunks_exact_mut(2).for_each(|two| two.swap(0, 1));
    }
    let stride = span + gap;
    let recipe = match u.int_in_range(0..=5)? {
        0 => Recipe::Contiguous { count: copies as i64, old },
        1 => {
            let stride = blocklength + u.int_in_range(0..=3)?;
            Recipe::Vector { bytes: false, count, blocklength, stride, old }
        }
        2 => Recipe::Vector { bytes: true, count, blocklength, stride, old },
        3 => Recipe::Vector { bytes: true, count, blocklength, stride: -stride, old },
        4 => Recipe::IndexedBlock { bytes: true, blocklength, displacements: places, old },
        _ => {
            let block = |displacement| Block { blocklength, displacement };
            Recipe::Indexed { bytes: true, blocks: places.into_iter().map(block).collect(), old }
        }
    };
    let composed = Model::compose(&recipe, &[model], MAX_ENTRIES).filter(in_reach);
    Ok(composed.map(|model| (recipe, model)))
}

#[cfg(test)]
mod tests {
    use super::{Pair, basics};
    use crate::{Mode, Stream};
    use arbitrary::Unstructured;

    #[test]
    fn both_sides_have_one_signature_and_mostly_differ() {
        let mut different = 0;
        for index in 0..2000 {
            let bytes = Stream::new(21, index).bytes(1500);
            let mode = [Mode::Any, Mode::Regular, Mode::Tiny][index as usize % 3];
            let pair = Pair::generate(&mut Unstructured::new(&bytes), mode).expect("bytes");
            let list = |case: &crate::Case| basics(&case.model().expect("in bounds"), case.count);
            assert_eq!(list(&pair.from), list(&pair.to), "{pair}");
            different += u64::from(pair.from != pair.to);
        }
        assert!(different > 1200, "{different}");
    }
}
