//! Advice for a person who sends messages of a given type.
//!
//! Each piece of advice states a fact about the type and, if there is one, a better description of the
//! same memory. The facts come from the constructor tree and its bounds, from the loop program of the
//! plan, and, if the type is small enough, from the positions of its basic elements. No function here
//! expands a large layout.

use crate::blocks::Blocks;
use crate::pieces::{Counts, Piece, pieces};
use memchr::memchr;
use typepack_engine::inspect::{self, Constructor};
use typepack_engine::ir::{Op, Program};
use typepack_engine::{Datatype, Plan, Table, text};

/// Maximum number of pieces (see [`Piece`]) that the search for overlaps examines.
const COMPARED: usize = 1 << 16;
/// A run of at most this many bytes counts as small. A small run shares its cache line with bytes that
/// are not sent.
const SMALL: u64 = 32;
/// The report warns about small runs only if one element of the type has at least this many runs.
const MANY: i128 = 32;

/// Returns advice for sending `count` elements of the plan's type. Each string is one piece of advice.
/// Returns no advice for a decoded plan, because such a plan has no datatype.
pub fn advice(plan: &Plan, count: u64) -> Vec<String> {
    let mut advice = Vec::new();
    let Some(ty) = plan.datatype() else { return advice };
    if ty.size() == 0 {
        advice.push("the type has no data, so a message of this type is empty".to_owned());
        return advice;
    }
    extent(ty, count, &mut advice);
    members(ty, &mut advice);
    if plan.is_contiguous() {
        plain(ty, &mut advice);
    } else {
        lists(ty, plan.program(), &mut advice);
        small(ty, plan.program(), count, &mut advice);
    }
    advice
}

/// Advises on elements that overlap, interleave, or lie at descending addresses.
fn extent(ty: &Datatype, count: u64, advice: &mut Vec<String>) {
    let (extent, reach) = (ty.extent(), ty.true_extent());
    if overlap(ty, 1) {
        advice.push(
            "one element uses some bytes more than once: it may be sent, but must not be received"
                .into(),
        );
    }
    if extent.unsigned_abs() >= reach.unsigned_abs() {
        if extent < 0 {
            advice.push(format!("the extent is {extent}: each element lies below the one before"));
        }
        return;
    }
    let fact = format!("the extent {extent} is smaller than the true extent {reach}");
    let with = if count > 1 { String::new() } else { "with a count above 1 ".to_owned() };
    advice.push(if extent == 0 {
        format!("the extent is 0: {with}all elements lie on top of each other")
    } else if overlap(ty, count.max(2)) {
        format!(
            "{fact}: {with}elements overlap, so they may be sent, but must not be received; \
             resized({}, {}, …) separates them",
            ty.lb().min(ty.true_lb()),
            reach.unsigned_abs().next_multiple_of(u64::from(ty.align()))
        )
    } else {
        format!("{fact}: {with}elements interleave; that is right for columns of a matrix")
    });
}

/// Returns true if any two basic elements in `count` elements of the type share a byte. Looks at no
/// more than the first 64 elements of the type. Returns false if there is no such pair, or if the
/// search would take too long.
fn overlap(ty: &Datatype, count: u64) -> bool {
    let count = count.min(64);
    if i128::from(ty.size()) > i128::from(ty.true_extent()) {
        return true;
    }
    let counts = Counts::new(ty);
    // `pieces` may visit every block of every list once per element, so do not search types with too
    // many basic elements.
    if counts.of(ty).saturating_mul(i128::from(count)) > 1 << 20 {
        return false;
    }
    let everything = i128::MIN / 4..i128::MAX / 4;
    let (mut found, complete) = pieces(ty, count, &counts, &everything, COMPARED);
    found.sort_by_key(|piece| piece.at);
    let mut end = i128::MIN;
    complete
        && found.iter().any(|piece: &Piece| {
            let overlaps = piece.at < end;
            end = end.max(piece.end());
            overlaps
        })
}

/// Removes all `dup` and `resized` wrappers around a type, and returns the type inside them.
fn essence(mut ty: &Datatype) -> &Datatype {
    while let Constructor::Dup { old } | Constructor::Resized { old, .. } = inspect::constructor(ty)
    {
        ty = old;
    }
    ty
}

/// Advises on a struct whose members interleave in memory. Examines only one struct: the outermost one
/// on the path that leads from `ty` through each type's first child.
fn members(ty: &Datatype, advice: &mut Vec<String>) {
    let mut at = ty;
    let (blocklengths, displacements, types) = loop {
        at = match inspect::constructor(at) {
            Constructor::Struct { blocklengths, displacements, types } => {
                break (blocklengths, displacements, types);
            }
            // A composite (darray, for example) contains structs that the user did not write, so do not
            // advise on them.
            Constructor::Composite { .. } => return,
            _ => match inspect::children(at).first() {
                Some(old) => old,
                None => return,
            },
        };
    };
    let mut spans: Vec<(i128, i128, usize)> = (0..types.len())
        .filter(|&i| blocklengths.get(i) > 0 && types[i].size() > 0)
        .map(|i| {
            let old = &types[i];
            let last = i128::from(blocklengths.get(i) - 1) * i128::from(old.extent());
            let at = i128::from(displacements.get(i));
            let low = at + last.min(0) + i128::from(old.true_lb());
            (low, at + last.max(0) + i128::from(old.true_ub()), i)
        })
        .collect();
    spans.sort_unstable();
    let clash = spans.windows(2).find(|pair| pair[0].1 > pair[1].0);
    if let Some([(_, _, a), (_, _, b)]) = clash.map(|pair| [pair[0], pair[1]]) {
        advice.push(format!(
            "members {} and {} of the struct interleave in memory; if that is not intended, check \
             displacements[{}] and the members' extents",
            a.min(b),
            a.max(b),
            a.max(b)
        ));
    }
}

/// Advises on a contiguous type that the user described with constructors other than `contiguous` and
/// `dup`.
fn plain(ty: &Datatype, advice: &mut Vec<String>) {
    let mut described = ty;
    let mut long = false;
    loop {
        described = match inspect::constructor(described) {
            Constructor::Named(_) => break,
            Constructor::Contiguous { old, .. } => old,
            Constructor::Dup { old } => old,
            _ => {
                long = true;
                match inspect::children(described).first() {
                    Some(child) => child,
                    None => break,
                }
            }
        };
    }
    let signature = crate::tree::signature(ty);
    if let (true, Some((count, name))) = (long, signature.split_once(" x "))
        && count.bytes().all(|b| b.is_ascii_digit())
        && ty.true_lb() == 0
        && memchr(b',', name.as_bytes()).is_none()
    {
        advice.push(format!(
            "this type is contiguous memory: contiguous({count}, {name}), or {name} with a count, \
             describes the same memory"
        ));
    } else if long && memchr(b',', signature.as_bytes()).is_some() {
        advice.push(
            "the type has no holes: it is one run of memory and moves at the speed of memcpy"
                .into(),
        );
    }
}

/// Advises on index lists with a constant step, for which a vector suffices, and on lists of blocks of
/// unequal length, which are copied block by block.
fn lists(ty: &Datatype, program: &Program, advice: &mut Vec<String>) {
    let regular = |table: &Table| {
        let step = |i| table.get(i + 1).wrapping_sub(table.get(i));
        (1..table.len().saturating_sub(1)).all(|i| step(i) == step(0))
    };
    let listed = match inspect::constructor(essence(ty)) {
        Constructor::Indexed { blocklengths, displacements, .. }
        | Constructor::Hindexed { blocklengths, displacements, .. } => {
            let equal = blocklengths.range().is_none_or(|(least, most)| least == most);
            (equal && regular(displacements)).then_some(displacements)
        }
        Constructor::IndexedBlock { displacements, .. }
        | Constructor::HindexedBlock { displacements, .. } => {
            regular(displacements).then_some(displacements)
        }
        _ => None,
    };
    if let Some(listed) = listed.filter(|listed| listed.len() > 3) {
        // A vector always has its first block at displacement 0. If the list begins elsewhere, tell the
        // user where the buffer must begin.
        let place =
            if listed.get(0) == 0 { "" } else { ", if the buffer begins at the first block" };
        advice.push(format!(
            "the {} blocks are equally long and equally far apart: a vector or hvector describes \
             them with three numbers{place}",
            listed.len()
        ));
    }
    let ragged = program.nodes().iter().filter_map(|node| match &node.op {
        Op::Ragged { list, .. } => Some(list.len()),
        _ => None,
    });
    if let Some(longest) = ragged.max() {
        advice.push(format!(
            "{longest} blocks of unequal length are copied one by one; one kernel copies all blocks \
             of an indexed_block, which have equal lengths"
        ));
    }
}

/// Advises on many small runs. Copying each of them touches a whole cache line.
fn small(ty: &Datatype, program: &Program, count: u64, advice: &mut Vec<String>) {
    let Some(blocks) = Blocks::of(program) else { return };
    let sparse = ty.size() < ty.true_extent() / 4;
    if blocks.most > SMALL || blocks.runs < MANY || !sparse {
        return;
    }
    let length = if blocks.least == blocks.most {
        format!("{} byte{}", blocks.most, if blocks.most == 1 { "" } else { "s" })
    } else {
        format!("{} to {} bytes", blocks.least, blocks.most)
    };
    let fact = format!("{} runs of {length}: each costs a cache line", blocks.runs);
    let old = match inspect::constructor(essence(ty)) {
        Constructor::Vector { old, .. } | Constructor::Hvector { old, .. } => Some(old),
        _ => None,
    };
    advice.push(match old {
        Some(old) if count == 1 && ty.extent() != old.extent() => format!(
            "{fact}; neighbouring columns share the lines: send them together, as a larger \
             blocklength or as resized(0, {}, {}) with a count",
            old.extent(),
            short(ty)
        ),
        _ => format!("{fact}; a layout with longer blocks uses more of each line"),
    });
}

/// Returns the expression that describes the type, or `…` if the expression is too long for a
/// sentence.
fn short(ty: &Datatype) -> String {
    let expression = text::abridge(ty);
    if expression.len() > 60 { "…".to_owned() } else { expression }
}
