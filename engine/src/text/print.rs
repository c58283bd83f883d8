//! Prints types as expressions.
//!
//! [`print()`] is the inverse of `parse.rs`. It writes every argument, and it binds a name to each
//! type that is used in several places. So the text is about as small as the tree, and parsing the
//! text gives a tree that shares the same subtrees. [`abridge`] prints a type for people and leaves
//! out long parts.

use super::constructors::{Argument, call, types};
use crate::datatype::Datatype;
use crate::named::Named;
use std::collections::HashMap;
use std::fmt::Write;
use typepack_leaf::Table;

/// Number of entries that [`abridge`] shows of a list that it shortens.
const SHOWN: usize = 6;
/// Maximum number of derived types that [`abridge`] shows.
const TYPES: usize = 24;
/// Maximum number of levels that [`abridge`] shows.
const LEVELS: usize = 8;

/// Returns the word for a named type. It is the MPI name without the prefix, in lower case.
pub fn word(named: Named) -> String {
    named.name().trim_start_matches("MPI_").to_ascii_lowercase()
}

/// Prints `ty` as an expression; [`parse`](super::parse) turns the expression into an equal tree.
///
/// The length of the text is at most proportional to the sizes of the tree and of its index lists.
/// Sequences of equal numbers are written as copies, and sequences with a constant step as ranges.
pub fn print(ty: &Datatype) -> String {
    let (order, uses) = uses(ty);
    let mut names = HashMap::new();
    let mut text = String::new();
    for shared in order {
        if uses[&shared.address()] > 1 {
            let name = format!("t{}", names.len() + 1);
            let _ = write!(text, "{name} = ");
            expression(shared, &names, &mut text);
            text.push_str("; ");
            names.insert(shared.address(), name);
        }
    }
    expression(ty, &names, &mut text);
    text
}

/// Returns all derived types in `ty`, including `ty` itself, each of them once and after the types
/// that it contains. Also returns how often each type is used; adjacent copies in a struct count as
/// one use.
fn uses(ty: &Datatype) -> (Vec<&Datatype>, HashMap<*const (), usize>) {
    let mut order = Vec::new();
    let mut uses: HashMap<*const (), usize> = HashMap::new();
    let mut pending = vec![(ty, false)];
    while let Some((ty, done)) = pending.pop() {
        if done {
            order.push(ty);
            continue;
        }
        if ty.as_named().is_some() {
            continue;
        }
        let count = uses.entry(ty.address()).or_insert(0);
        *count += 1;
        if *count == 1 {
            pending.push((ty, true));
            let parts = types(ty);
            let distinct = parts.chunk_by(|a, b| a.address() == b.address());
            pending.extend(distinct.rev().map(|copies| (copies[0], false)));
        }
    }
    (order, uses)
}

enum Task<'a> {
    Type(&'a Datatype),
    Arguments(std::vec::IntoIter<Argument<'a>>, bool),
    Types(&'a [Datatype], bool),
}

fn expression(ty: &Datatype, names: &HashMap<*const (), String>, out: &mut String) {
    let mut pending = vec![Task::Type(ty)];
    while let Some(task) = pending.pop() {
        match task {
            Task::Type(ty) => match (names.get(&ty.address()), call(ty)) {
                (Some(name), _) => out.push_str(name),
                (None, Some((name, arguments))) => {
                    out.push_str(name);
                    out.push('(');
                    pending.push(Task::Arguments(arguments.into_iter(), true));
                }
                (None, None) => out.push_str(&ty.as_named().map_or_else(String::new, word)),
            },
            Task::Arguments(mut arguments, first) => {
                let Some(argument) = arguments.next() else {
                    out.push(')');
                    continue;
                };
                if !first {
                    out.push_str(", ");
                }
                pending.push(Task::Arguments(arguments, false));
                match argument {
                    Argument::Number(number) => {
                        let _ = write!(out, "{number}");
                    }
                    Argument::Word(word) => out.push_str(word),
                    Argument::Texts(texts) => {
                        let _ = write!(out, "[{}]", texts.join(", "));
                    }
                    Argument::Table(table) => list(table.len(), |i| table.get(i), out),
                    Argument::Numbers(numbers) => list(numbers.len(), |i| numbers[i], out),
                    Argument::Type(ty) => pending.push(Task::Type(ty)),
                    Argument::Types(types) => {
                        out.push('[');
                        pending.push(Task::Types(types, true));
                    }
                }
            }
            Task::Types(types, first) => {
                let Some(ty) = types.first() else {
                    out.push(']');
                    continue;
                };
                if !first {
                    out.push_str(", ");
                }
                let copies = types.iter().take_while(|t| t.address() == ty.address()).count();
                if copies > 1 {
                    let _ = write!(out, "{copies} x ");
                }
                pending.push(Task::Types(&types[copies..], false));
                pending.push(Task::Type(ty));
            }
        }
    }
}

/// Writes a list. Three or more equal numbers are written as copies. Four or more numbers with a
/// constant step are written as a range.
fn list(length: usize, get: impl Fn(usize) -> i64, out: &mut String) {
    out.push('[');
    let step = |i: usize| i128::from(get(i + 1)) - i128::from(get(i));
    let mut at = 0;
    while at < length {
        if at > 0 {
            out.push_str(", ");
        }
        let mut end = at + 1;
        if end < length {
            let distance = step(at);
            while end < length && step(end - 1) == distance {
                end += 1;
            }
        }
        let (first, run) = (i128::from(get(at)), end - at);
        let distance = if run > 1 { step(at) } else { 0 };
        if run >= 3 && distance == 0 {
            let _ = write!(out, "{run} x {first}");
        } else if run >= 4 {
            // The end of a range is exclusive, so write the number after the last one, in the
            // direction of the step.
            let _ = write!(out, "{first}..{}", i128::from(get(end - 1)) + distance.signum());
            if distance != 1 {
                let _ = write!(out, " step {distance}");
            }
        } else {
            // The run is too short for copies or a range. Write only its first number, because the
            // others may belong to a longer run.
            end = at + 1;
            let _ = write!(out, "{first}");
        }
        at = end;
    }
    out.push(']');
}

/// Prints `ty` as a short expression for people. `…` replaces the rest of long lists, wide structs
/// and deep trees.
pub fn abridge(ty: &Datatype) -> String {
    enum Part<'a> {
        Type(&'a Datatype, usize),
        Text(String),
    }
    let (mut out, mut left) = (String::new(), TYPES);
    let mut pending = vec![Part::Type(ty, 0)];
    while let Some(part) = pending.pop() {
        let (ty, level) = match part {
            Part::Text(text) => {
                out.push_str(&text);
                continue;
            }
            Part::Type(ty, level) => (ty, level),
        };
        let Some((name, arguments)) = call(ty) else {
            out.push_str(&ty.as_named().map_or_else(String::new, word));
            continue;
        };
        if left == 0 || level == LEVELS {
            let _ = write!(out, "{name}(…)");
            continue;
        }
        left -= 1;
        let _ = write!(out, "{name}(");
        let mut parts = Vec::new();
        for (i, argument) in arguments.into_iter().enumerate() {
            if i > 0 {
                parts.push(Part::Text(", ".into()));
            }
            match argument {
                Argument::Number(number) => parts.push(Part::Text(number.to_string())),
                Argument::Word(word) => parts.push(Part::Text(word.into())),
                Argument::Texts(texts) => {
                    parts.push(Part::Text(format!("[{}]", texts.join(", "))));
                }
                Argument::Table(table) => parts.push(Part::Text(abridged_list(table))),
                Argument::Numbers(numbers) => {
                    parts.push(Part::Text(abridged_list(&Table::new(numbers))));
                }
                Argument::Type(old) => parts.push(Part::Type(old, level + 1)),
                Argument::Types(types) => {
                    let groups: Vec<&[Datatype]> =
                        types.chunk_by(|a, b| a.address() == b.address()).collect();
                    for (i, group) in groups.iter().take(SHOWN).enumerate() {
                        let sep = if i == 0 { "[" } else { ", " };
                        let copies = match group.len() {
                            1 => String::new(),
                            n => format!("{n} x "),
                        };
                        parts.push(Part::Text(format!("{sep}{copies}")));
                        parts.push(Part::Type(&group[0], level + 1));
                    }
                    parts.push(Part::Text(match (types.len(), groups.len() > SHOWN) {
                        (0, _) => "[]".into(),
                        (n, true) => format!(", … {n} in all]"),
                        (_, false) => "]".into(),
                    }));
                }
            }
        }
        pending.push(Part::Text(")".into()));
        pending.extend(parts.into_iter().rev());
    }
    out
}

/// Returns the text of a list. A list whose text would be long is shortened to its first entries, or to
/// one entry and its number of copies if all entries are equal. The shortened text also states how many
/// entries the list has.
pub fn abridged_list(table: &Table) -> String {
    let mut text = String::new();
    if table.len() <= 64 {
        list(table.len(), |i| table.get(i), &mut text);
        if text.len() <= 48 {
            return text;
        }
        text.clear();
    }
    let first = table.get(0);
    if table.iter().all(|entry| entry == first) {
        return format!("[{} x {first}]", table.len());
    }
    text.push('[');
    for i in 0..SHOWN.min(table.len()) {
        let _ = write!(text, "{}{}", if i == 0 { "" } else { ", " }, table.get(i));
    }
    if table.len() > SHOWN {
        let _ = write!(text, ", … {} in all", table.len());
    }
    text + "]"
}
