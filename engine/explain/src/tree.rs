//! The constructor tree, the bounds and the signature of a type, as lines of text.
//!
//! This file reads only the datatype; it needs no plan and no program. Deep and wide trees are cut. A type
//! that is used in several places is printed at each place, until the tree reaches its maximum number
//! of lines.

use crate::pieces::{Shape, block, shape};
use std::collections::HashMap;
use std::fmt::Write;
use typepack_engine::inspect::{
    Argument, abridged_list, address, call, children, parameters, types, word,
};
use typepack_engine::{Datatype, Named, Table};

/// Maximum number of lines of a tree.
const LINES: usize = 48;
/// Maximum number of levels of a tree.
const LEVELS: usize = 24;
/// Maximum number of children of a struct that the tree shows. Adjacent equal children count as one.
const CHILDREN: usize = 8;
/// Maximum number of bytes of a signature.
const SIGNATURE: usize = 160;

/// Returns text with one line per constructor call. Each type stands indented below the type that
/// contains it.
pub fn tree(ty: &Datatype) -> String {
    let mut out = String::new();
    let (mut lines, mut pending) = (0, vec![(ty, 0, 1)]);
    while let Some((ty, level, copies)) = pending.pop() {
        lines += 1;
        let _ = write!(out, "{:indent$}", "", indent = 2 * level);
        if lines > LINES || level == LEVELS {
            out.push_str("…\n");
            if lines > LINES {
                break;
            }
            continue;
        }
        if copies > 1 {
            let _ = write!(out, "{copies} x ");
        }
        let Some((name, arguments)) = call(ty) else {
            let _ = writeln!(out, "{}", ty.as_named().map_or_else(String::new, word));
            continue;
        };
        out.push_str(name);
        for (argument, parameter) in arguments.iter().zip(parameters(name)) {
            let _ = match argument {
                Argument::Number(number) => write!(out, "  {parameter} {number}"),
                Argument::Word(word) => write!(out, "  {parameter} {word}"),
                Argument::Texts(texts) => write!(out, "  {parameter} [{}]", texts.join(", ")),
                Argument::Table(table) => write!(out, "  {parameter} {}", abridged_list(table)),
                Argument::Numbers(numbers) => {
                    write!(out, "  {parameter} {}", abridged_list(&Table::new(numbers)))
                }
                Argument::Type(_) | Argument::Types(_) => Ok(()),
            };
        }
        out.push('\n');
        let parts = types(ty);
        let mut groups: Vec<&[&Datatype]> = parts.chunk_by(|a, b| a.is_same(b)).collect();
        groups.truncate(CHILDREN);
        let shown: usize = groups.iter().map(|group| group.len()).sum();
        if shown < parts.len() {
            let indent = 2 * (level + 1);
            let _ = writeln!(out, "{:indent$}(the first {shown} of {})", "", parts.len());
        }
        pending.extend(groups.iter().rev().map(|group| (group[0], level + 1, group.len())));
    }
    out
}

/// Returns text that shows the size, bounds, true bounds and alignment, in bytes.
pub fn bounds(ty: &Datatype) -> String {
    let rows = [
        ("size", ty.size()),
        ("lb", ty.lb()),
        ("ub", ty.ub()),
        ("extent", ty.extent()),
        ("true lb", ty.true_lb()),
        ("true ub", ty.true_ub()),
        ("true extent", ty.true_extent()),
        ("alignment", i64::from(ty.align())),
    ];
    let width = rows.iter().map(|(_, value)| value.to_string().len()).max().unwrap_or(1);
    let mut out = String::new();
    // Print two columns that are read downwards. Two columns take half as many lines as one, and put
    // corresponding numbers next to each other.
    for i in 0..rows.len() / 2 {
        let ((a, x), (b, y)) = (rows[i], rows[i + rows.len() / 2]);
        let _ = writeln!(out, "{a:<10} {x:>width$}    {b:<11} {y:>width$}");
    }
    out
}

#[derive(Clone)]
enum Sequence {
    Empty,
    /// Copies of one basic type.
    Uniform(Named, i128),
    /// Any other sequence, as text cut to [`SIGNATURE`] bytes.
    Mixed(String),
}

/// Returns the sequence that consists of `copies` copies of `inner`.
fn times(copies: i128, inner: &Sequence) -> Sequence {
    match inner {
        _ if copies == 0 => Sequence::Empty,
        Sequence::Empty => Sequence::Empty,
        Sequence::Uniform(named, count) => Sequence::Uniform(*named, count.saturating_mul(copies)),
        Sequence::Mixed(text) if copies == 1 => Sequence::Mixed(text.clone()),
        Sequence::Mixed(text) => Sequence::Mixed(cut(format!("{copies} x ({text})"))),
    }
}

/// Cuts a text of more than [`SIGNATURE`] bytes, and marks the cut with `…`. A signature is built from the
/// inside outwards, and each level is cut again. Otherwise the text of a type that contains its child
/// twice at every level would double at every level.
fn cut(text: String) -> String {
    if text.len() <= SIGNATURE {
        return text;
    }
    let end = (0..SIGNATURE).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    format!("{}…", &text[..end])
}

fn written(sequence: &Sequence) -> String {
    match sequence {
        Sequence::Empty => "empty".to_owned(),
        Sequence::Uniform(named, 1) => word(*named),
        Sequence::Uniform(named, count) => format!("{count} x {}", word(*named)),
        Sequence::Mixed(text) => text.clone(),
    }
}

/// Returns the basic types in packed order. A run of one basic type is written as `3 x double`; a long
/// signature is cut.
pub fn signature(ty: &Datatype) -> String {
    let mut done: HashMap<*const (), Sequence> = HashMap::new();
    let mut pending = vec![(ty, false)];
    while let Some((ty, entered)) = pending.pop() {
        if done.contains_key(&address(ty)) {
            continue;
        }
        if !entered {
            pending.push((ty, true));
            let distinct = children(ty).chunk_by(Datatype::is_same);
            pending.extend(distinct.map(|copies| (&copies[0], false)));
            continue;
        }
        let sequence = match shape(ty) {
            _ if ty.size() == 0 => Sequence::Empty,
            Shape::Leaf(named) => match named.members() {
                None => Sequence::Uniform(named, 1),
                Some([(_, a), (_, b)]) if a == b => Sequence::Uniform(a, 2),
                Some([(_, a), (_, b)]) => Sequence::Mixed(format!("{}, {}", word(a), word(b))),
            },
            Shape::Grid { levels, child, .. } => {
                times(levels.iter().map(|level| level.0).product(), &done[&address(child)])
            }
            Shape::List(length) => {
                let parts = (0..length).filter_map(|i| block(ty, i));
                join(parts.map(|(copies, _, child)| (copies, &done[&address(child)])))
            }
        };
        done.insert(address(ty), sequence);
    }
    written(&done[&address(ty)])
}

/// Concatenates the sequences of all parts, each repeated `copies` times. Adjacent runs of one basic
/// type become one run.
fn join<'a>(parts: impl Iterator<Item = (i128, &'a Sequence)>) -> Sequence {
    let mut text = String::new();
    let mut last = Sequence::Empty;
    for (copies, part) in parts {
        let next = times(copies, part);
        match (&mut last, next) {
            (_, Sequence::Empty) => {}
            (Sequence::Empty, next) => last = next,
            (Sequence::Uniform(a, count), Sequence::Uniform(b, more)) if *a == b => {
                *count = count.saturating_add(more);
            }
            (_, next) => {
                if text.len() <= SIGNATURE {
                    let _ = write!(text, "{}, ", written(&last));
                }
                last = next;
            }
        }
    }
    if text.is_empty() { last } else { Sequence::Mixed(cut(text + &written(&last))) }
}
