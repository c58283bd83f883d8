//! Compares measured rows with the bars of the definitions file. A bar is the least allowed ratio of the
//! JIT's bandwidth to another competitor's bandwidth.
//!
//! `measure.rs` produces the rows. `typepack-bench pack --check` prints the verdicts.

use crate::competitor::JIT;
use crate::definition::Bar;
use crate::measure::{Row, STEADY};
use crate::report::size_text;
use std::fmt;

/// The verdict on one bar for one row: whether the row reaches the bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The description of the bar, from the definitions file.
    pub text: String,
    /// The layout, the size and the direction of the row.
    pub row: String,
    /// The measured ratio.
    pub ratio: f64,
    /// The least ratio that the bar allows.
    pub least: f64,
    /// True if both figures of the ratio are steady (`measure::STEADY`). If not, the row neither passes nor
    /// misses the bar.
    pub steady: bool,
}

impl Verdict {
    /// Returns true if both figures of the ratio are steady and the ratio is below the bar.
    pub fn is_miss(&self) -> bool {
        self.steady && self.ratio < self.least
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match (self.steady, self.ratio >= self.least) {
            (true, true) => "pass",
            (true, false) => "MISS",
            (false, true) => "pass~",
            (false, false) => "miss~",
        };
        let (row, ratio, least) = (&self.row, self.ratio, self.least);
        write!(f, "{word:<6}{row:<26}{ratio:>6.2} (at least {least:.2})  {}", self.text)
    }
}

/// Applies every bar to every row whose layout and size the bar lists. There is no verdict on a row that
/// lacks the figure of the JIT or that of the competitor named by the bar.
pub fn verdicts(bars: &[Bar], rows: &[Row]) -> Vec<Verdict> {
    let mut list = Vec::new();
    for bar in bars {
        for row in rows {
            let named = bar.layouts.contains(&row.layout) && bar.sizes.contains(&row.size);
            let against = bar.against.name();
            if let (true, Some(ratio)) = (named, row.ratio_of(JIT, against)) {
                let steady = |name| row.figure(name).is_some_and(|f| f.spread <= STEADY);
                list.push(Verdict {
                    text: bar.text.clone(),
                    row: format!("{} {} {}", row.layout, size_text(row.size), row.direction),
                    ratio,
                    least: bar.least,
                    steady: steady(JIT) && steady(against),
                });
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::verdicts;
    use crate::definition::Definitions;
    use crate::measure::{Figure, Row};

    fn row(jit: f64, interpreter: f64, spread: f64) -> Row {
        let figure = |competitor: &str, gb_per_s, spread| Figure {
            competitor: competitor.to_owned(),
            executor: String::new(),
            ns: 1.0,
            gb_per_s,
            spread,
        };
        Row {
            layout: "d1s2".to_owned(),
            bytes: 16384,
            size: 16384,
            direction: "pack",
            figures: vec![
                figure("interpreter", interpreter, spread),
                figure("jit", jit, 1.0),
                figure("hand", jit, 1.0),
            ],
        }
    }

    #[test]
    fn unsteady_figures_do_not_decide() {
        let bars = Definitions::built_in().bars;
        let rows = [row(10.0, 1.0, 1.0), row(4.0, 1.0, 1.0), row(4.0, 1.0, 1.4)];
        let list = verdicts(&bars, &rows);
        // Two bars apply to each row: one compares the JIT with the interpreter, one with the hand loop.
        assert_eq!(list.len(), 6);
        let over: Vec<bool> = list[..3].iter().map(super::Verdict::is_miss).collect();
        assert_eq!(over, [false, true, false]);
        // `list[2]` and `list[5]` are the verdicts on the third row, in which only the interpreter's figure
        // is unsteady. `list[5]` compares the JIT with the hand loop, so it is steady.
        assert!(list[5].steady && !list[5].is_miss());
        assert!(list[2].to_string().starts_with("miss~"));
    }
}
