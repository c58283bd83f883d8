//! Judges an instruction set: typepack, restricted to this set, against hand loops that are compiled for
//! the same set.
//!
//! `suite.rs` produces the rows from the layouts of `definitions/isa.toml`, and `competitor/hand.rs` has
//! the hand loops of each level. `typepack-bench pack --isa` prints the text. The value of a bar of this
//! file is the least ratio of the rows to which the bar applies. The steady rows decide whether the bar
//! passes; the text also states the value over all rows. A bar without steady rows has no verdict.

use crate::definition::Class;
use crate::suite::{Suite, SuiteRow};
use crate::summary::{Bar, Judged, Value, write_verdicts};
use typepack_engine::Isa;

/// Returns the level, as in a compiler's flag `-march=`, at which the hand loops are compiled for `isa`.
pub fn march(isa: Isa) -> &'static str {
    match isa {
        _ if !cfg!(target_arch = "x86_64") => "native",
        Isa::Avx512 => "x86-64-v4",
        Isa::Avx2 => "x86-64-v3",
        _ => "x86-64-v2",
    }
}

/// A row counts as long if it has at least 15/16 of this number of packed bytes. The limit is lower than the
/// number because a layout may have slightly fewer bytes than the requested size.
const LONG: u64 = 16 << 10;

fn judged(row: &SuiteRow, holds: bool) -> Judged {
    if holds { row.against_hand() } else { None }
}

/// Makes a bar with the limit `least` and the goal `goal`. The bar applies to the rows for which `holds` is true.
macro_rules! each_row {
    ($text:literal, $least:literal, $goal:literal, $holds:expr) => {
        Bar {
            text: $text,
            least: $least,
            goal: $goal,
            value: Value::Least,
            of: |row, _| {
                let holds: fn(&SuiteRow) -> bool = $holds;
                judged(row, holds(row))
            },
        }
    };
}

const BARS: [Bar; 6] = [
    each_row!("1- and 2-byte blocks, dense patterns, structs", 0.9, 1.2, |row| {
        row.class != Class::Transpose
    }),
    each_row!("the same, from 16 KiB", 0.9, 1.2, |row| {
        row.class != Class::Transpose && row.row.bytes * 16 / 15 >= LONG
    }),
    each_row!("1- and 2-byte blocks", 0.9, 1.2, |row| row.class == Class::Bytes),
    each_row!("dense small patterns", 0.9, 1.2, |row| row.class == Class::Plain),
    each_row!("structs", 0.9, 1.2, |row| row.class == Class::Gapped),
    each_row!("transposes", 0.9, 1.0, |row| row.class == Class::Transpose),
];

/// Returns the human-readable verdicts on `isa`, whose rows are those of `suite`.
pub fn text(isa: Isa, suite: &Suite) -> String {
    let mut out = format!("{isa}: each row against the hand loop for {}\n\n", march(isa));
    let mut lists = String::new();
    write_verdicts(suite, &BARS, &mut out, &mut lists);
    suite.hands.iter().for_each(|line| out.push_str(&format!("loops of {line}\n")));
    for (name, version) in suite.peers.iter().zip(&suite.versions) {
        out.push_str(&format!("peer {name}: {version}\n"));
    }
    out.push_str(&lists);
    for (title, lines) in [("Faults", &suite.faults), ("Left out", &suite.skipped)] {
        if !lines.is_empty() {
            out.push_str(&format!("\n{title}\n"));
            lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        }
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Figure, Row};

    fn row(class: Class, bytes: u64, own: f64, spread: f64) -> SuiteRow {
        let figure = |name: &str, gb_per_s: f64, spread| Figure {
            competitor: name.to_owned(),
            executor: String::new(),
            ns: bytes as f64 / gb_per_s,
            gb_per_s,
            spread,
        };
        let figures = vec![figure("typepack", own, spread), figure("hand-c", 1.0, 1.0)];
        let row = Row { layout: "b1s2".to_owned(), bytes, size: bytes, direction: "pack", figures };
        SuiteRow { row, class, touched: 3 * bytes }
    }

    fn line(suite: &Suite, part: &str) -> String {
        let all = text(Isa::Portable, suite);
        all.lines().find(|line| line.contains(part)).expect(part).to_owned()
    }

    #[test]
    fn no_rows_have_no_verdict_and_the_least_row_decides() {
        let mut suite = Suite::default();
        assert!(line(&suite, "dense patterns, structs").starts_with("- "));
        suite.rows.push(row(Class::Bytes, 1024, 0.5, 2.0));
        let unsteady = line(&suite, "dense patterns, structs");
        assert!(unsteady.starts_with("- ") && unsteady.ends_with("0.50"), "{unsteady}");
        suite.rows.push(row(Class::Bytes, 1024, 0.95, 1.0));
        assert!(line(&suite, "dense patterns, structs").starts_with("pass"));
        assert!(line(&suite, "from 16 KiB").starts_with("- "));
        suite.rows.push(row(Class::Gapped, 16380, 0.8, 1.0));
        assert!(line(&suite, "dense patterns, structs").starts_with("MISS"));
        assert!(line(&suite, "from 16 KiB").starts_with("MISS"));
        assert!(line(&suite, "1- and 2-byte blocks   ").starts_with("pass"));
        assert!(line(&suite, "structs   ").starts_with("MISS"));
    }
}
