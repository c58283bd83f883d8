//! Judges an instruction set: typepack, restricted to this set, against hand loops that are compiled for
//! the same set.
//!
//! `suite.rs` produces the rows from the layouts of `definitions/isa.toml`, which also has the bars.
//! `competitor/hand.rs` has the hand loops of each level. `typepack-bench pack --isa` prints the text.

use crate::definition::Definitions;
use crate::suite::Suite;
use crate::summary::{ends, verdicts};
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

/// Returns the human-readable verdicts on `isa`, whose rows are those of `suite`.
pub fn text(isa: Isa, suite: &Suite) -> String {
    let mut out = format!("{isa}: each row against the hand loop for {}\n\n", march(isa));
    let mut lists = String::new();
    verdicts(suite, &Definitions::isa().bars, &mut out, &mut lists);
    ends(suite, &mut out);
    out + &lists + &crate::summary::faults(suite) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Figure, Row};

    fn row(class: &str, bytes: u64, own: f64, spread: f64) -> Row {
        let time = |rate: f64| bytes as f64 / rate;
        let own = Figure::new("typepack", time(own), spread);
        let figures = vec![own, Figure::new("hand-c", time(1.0), 1.0)];
        Row { class: class.to_owned(), bytes, figures, ..Row::default() }
    }

    fn line(suite: &Suite, part: &str) -> String {
        let all = text(Isa::Portable, suite);
        all.lines().find(|line| line.contains(part)).expect(part).to_owned()
    }

    #[test]
    fn no_rows_have_no_verdict_and_the_least_row_decides() {
        let mut suite = Suite::default();
        assert!(line(&suite, "dense patterns, structs").starts_with("- "));
        suite.rows.push(row("bytes", 1024, 0.5, 2.0));
        let unsteady = line(&suite, "dense patterns, structs");
        assert!(unsteady.starts_with("- ") && unsteady.ends_with("0.50"), "{unsteady}");
        suite.rows.push(row("bytes", 1024, 0.95, 1.0));
        assert!(line(&suite, "dense patterns, structs").starts_with("pass"));
        assert!(line(&suite, "from 16 KiB").starts_with("- "));
        suite.rows.push(row("gapped", 16380, 0.8, 1.0));
        assert!(line(&suite, "dense patterns, structs").starts_with("MISS"));
        assert!(line(&suite, "from 16 KiB").starts_with("MISS"));
        assert!(line(&suite, "1- and 2-byte blocks   ").starts_with("pass"));
        assert!(line(&suite, "structs   ").starts_with("MISS"));
    }
}
