//! Turns the layouts of DDTBench into type expressions. Each row of `ddtbench.csv` describes a layout
//! as nested constructors.
//!
//! `../golden.rs` and a test of `typepack-explain` parse the expressions. The nested constructors in a
//! row leave out some arguments, which this file adds: the element type, which has a column of its own;
//! the order, which is always C order; the positions of the arrays of a struct; and the entries of the
//! index lists. `idx[D]` stands for the first entries of a random permutation of `0..D`. All index
//! lists of one row are equal.

use std::collections::BTreeMap;
use std::fmt::Write;
use typepack_engine::text::parse;

/// A layout and its known properties.
pub struct Row<'a> {
    /// The name of the layout in DDTBench.
    pub name: &'a str,
    /// The layout as a type expression.
    pub expression: String,
    /// Number of runs of memory.
    pub runs: u64,
    /// Number of packed bytes.
    pub bytes: u64,
}

/// Returns the layouts in the rows of `ddtbench.csv`.
pub fn rows(csv: &str) -> Vec<Row<'_>> {
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(';').collect()).collect();
    let nests: BTreeMap<&str, &str> = rows.iter().map(|row| (row[0], row[2])).collect();
    let mut all = Vec::with_capacity(rows.len());
    for row in &rows {
        let (name, element, constructor) = (row[0], row[1], row[2]);
        // Some layouts have two rows, with the suffixes `_vec` (vectors) and `_sa` (subarrays). Only the
        // `_sa` row states where each region begins in its array, so the expression of the `_vec` row
        // takes these positions from the `_sa` row.
        let arrays = match name.strip_suffix("_vec") {
            Some(stem) => nests[format!("{stem}_sa").as_str()],
            None => constructor,
        };
        let expression = expression(constructor, arrays, element);
        let (runs, bytes) = (row[3].parse().unwrap(), row[4].parse().unwrap());
        all.push(Row { name, expression, runs, bytes });
    }
    all
}

/// Returns the type expression of a row: the constructors in the text `nest`, applied to the type
/// `element`. If the row describes a struct, each member lies in an array of its own, and these arrays
/// follow one another in memory with different gaps. The constructors in the text `arrays` state where
/// each member begins in its array: `arrays` is the text of the `_sa` row if `nest` is that of a `_vec`
/// row, otherwise `nest` itself.
fn expression(nest: &str, arrays: &str, element: &str) -> String {
    let element = match element {
        "c128" => "c_double_complex",
        other => other,
    };
    let (Some(members), Some(arrays)) = (members(nest), members(arrays)) else {
        return ty(nest, element);
    };
    let mut base = 0;
    let (mut text, mut ones, mut at, mut names) =
        (String::new(), String::new(), String::new(), String::new());
    for (i, (member, array)) in members.iter().zip(&arrays).enumerate() {
        let array = parse(&ty(array, element)).unwrap();
        // A subarray type contains its start. For other members, use the start that the text `arrays`
        // states.
        let start = if member.starts_with("subarray") { 0 } else { array.true_lb() };
        writeln!(text, "m{i} = {};", ty(member, element)).unwrap();
        let comma = if i == 0 { "" } else { ", " };
        write!(ones, "{comma}1").unwrap();
        write!(at, "{comma}{}", base + start).unwrap();
        write!(names, "{comma}m{i}").unwrap();
        base = (base + array.ub()) / 64 * 64 + 128 * (i as i64 + 1);
    }
    format!("{text}struct([{ones}], [{at}], [{names}])")
}

/// Returns the texts of a struct's members, or `None` if `nest` is not a struct. A member that is
/// written with a factor occurs that many times in the result.
fn members(nest: &str) -> Option<Vec<&str>> {
    let inner = nest.strip_prefix("struct(")?.strip_suffix(')')?;
    let mut all = Vec::new();
    for member in split(inner, '+') {
        let repeated = member.split_once('*').and_then(|(n, one)| Some((n.parse().ok()?, one)));
        let (times, one): (usize, &str) = repeated.unwrap_or((1, member));
        all.extend(std::iter::repeat_n(one, times));
    }
    Some(all)
}

fn ty(nest: &str, element: &str) -> String {
    let Some((name, arguments)) = nest.split_once('(') else { return element.to_owned() };
    let mut arguments = split(arguments.strip_suffix(')').unwrap(), ',');
    // If the last argument is not a constructor call, the old type is the type `element`.
    let last = *arguments.last().unwrap();
    let old = if last.ends_with(')') {
        ty(arguments.pop().unwrap(), element)
    } else {
        element.to_owned()
    };
    match name {
        "resized" => {
            format!("resized({}, {}, {})", arguments[1], arguments[2], ty(arguments[0], element))
        }
        "subarray" => format!("subarray({}, C, {old})", arguments.join(", ")),
        "indexed_block" => {
            let list = list(arguments[2], arguments[0].parse().unwrap());
            format!("indexed_block({}, {list:?}, {old})", arguments[1])
        }
        _ => {
            arguments.retain(|&argument| argument != element);
            format!("{name}({}, {old})", arguments.join(", "))
        }
    }
}

/// Returns the first `length` entries of a random permutation of `0..D`, each multiplied by the factor
/// that precedes `idx[D]`.
fn list(text: &str, length: usize) -> Vec<u64> {
    let (factor, rest) = text.split_once('*').unwrap_or(("1", text));
    let factor: u64 = factor.parse().unwrap();
    let end: u64 = rest.strip_prefix("idx[").unwrap().strip_suffix(']').unwrap().parse().unwrap();
    let mut all: Vec<u64> = (0..end).collect();
    let mut state = end | 1 << 40;
    for i in 0..length {
        // One step of xorshift64. The remainder below is slightly biased (far less than 2^-40), which
        // does not matter here.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let other = i as u64 + state % (end - i as u64);
        all.swap(i, other as usize);
    }
    all[..length].iter().map(|index| factor * index).collect()
}

/// Splits `text` at each `mark` that is not inside parentheses or brackets.
fn split(text: &str, mark: char) -> Vec<&str> {
    let mut depth = 0;
    let at_mark = |c: char| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && c == mark
    };
    text.split(at_mark).map(str::trim).collect()
}
