//! Compares the regrets of many rows with the bars, and prints the comparison.
//!
//! The input comes from `judge.rs` or `policy.rs`. The figures over the steady rows decide the verdicts.
//! The figures over all rows are printed beside them, and the number of rows beside each figure. Without a
//! steady row there is no verdict.

use std::fmt::Write;

/// The bars of a regret: the greatest allowed values, and the values that the project would like to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bars {
    /// The bar and the goal of the geometric mean. `None` if the mean has no bar.
    pub mean: Option<[f64; 2]>,
    /// The bar and the goal of the row with the greatest regret.
    pub row: Option<[f64; 2]>,
}

/// The bars of a free choice among forced candidates.
pub const CHOICE: Bars = Bars { mean: Some([1.05, 1.02]), row: Some([1.25, 1.1]) };
/// The bars of the compilation policy. The bar equals [`REGRET`](crate::summary::REGRET).
pub const POLICY: Bars = Bars { mean: None, row: Some([1.15, 1.05]) };
/// No bars: the figures are printed without a verdict.
pub const NONE: Bars = Bars { mean: None, row: None };

/// The regret of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The name of the row.
    pub name: String,
    /// The regret.
    pub ratio: f64,
    /// True if the row is steady. Only steady rows decide a verdict.
    pub steady: bool,
}

/// The verdict on one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The figure over the steady rows, and over all rows. `None` if there are no such rows.
    pub figures: [Option<f64>; 2],
    /// The number of steady rows, and the number of all rows.
    pub rows: [usize; 2],
    /// Whether the steady rows meet the bar. `None` if there is no steady row or no bar.
    pub passes: Option<bool>,
}

/// Returns the verdict on the geometric mean of `rows`.
pub fn mean(rows: &[Value], bar: Option<[f64; 2]>) -> Verdict {
    judge(rows, bar, |values| {
        let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
        (logarithms / values.len() as f64).exp()
    })
}

/// Returns the verdict on the greatest ratio of `rows`.
pub fn greatest(rows: &[Value], bar: Option<[f64; 2]>) -> Verdict {
    judge(rows, bar, |values| values.iter().copied().fold(f64::MIN, f64::max))
}

fn judge(rows: &[Value], bar: Option<[f64; 2]>, figure: impl Fn(&[f64]) -> f64) -> Verdict {
    let all: Vec<f64> = rows.iter().map(|row| row.ratio).collect();
    let steady: Vec<f64> = rows.iter().filter(|row| row.steady).map(|row| row.ratio).collect();
    let counts = [steady.len(), all.len()];
    let figures = [steady, all].map(|values| (!values.is_empty()).then(|| figure(&values)));
    let passes = figures[0].zip(bar).map(|(figure, [bar, _])| figure <= bar);
    Verdict { figures, rows: counts, passes }
}

/// Returns the heading of the lines of [`lines`].
pub fn heading() -> String {
    format!(
        "{:<6}{:<44}{:>14}{:>8}{:>8}{:>8}{:>14}{:>8}\n",
        "", "figure", "steady rows", "bar", "goal", "rows", "all rows", "rows"
    )
}

/// Returns two lines with verdicts: one for the geometric mean of the ratios of `rows`, and one for the greatest
/// ratio. Both lines contain `title`.
pub fn lines(title: &str, rows: &[Value], bars: Bars) -> String {
    let mean = line(&format!("{title}, mean"), mean(rows, bars.mean), bars.mean);
    mean + &line(&format!("{title}, greatest row"), greatest(rows, bars.row), bars.row)
}

fn line(title: &str, verdict: Verdict, bar: Option<[f64; 2]>) -> String {
    let word = match verdict.passes {
        Some(true) => "pass",
        Some(false) => "MISS",
        None => "-",
    };
    let [steady, all] =
        verdict.figures.map(|value| value.map_or("not measured".to_owned(), |v| format!("{v:.3}")));
    let [bar, goal] = bar
        .map_or(["-".to_owned(), "-".to_owned()], |both| both.map(|limit| format!("{limit:.2}")));
    let [decide, count] = verdict.rows;
    format!("{word:<6}{title:<44}{steady:>14}{bar:>8}{goal:>8}{decide:>8}{all:>14}{count:>8}\n")
}

/// Returns the rows above the bar, the greatest first, one line each. Marks unsteady rows with `~`; they do
/// not decide. Returns an empty text if there is no such row.
pub fn above(title: &str, rows: &[Value], bars: Bars) -> String {
    let Some([bar, _]) = bars.row else { return String::new() };
    let mut rows: Vec<&Value> = rows.iter().filter(|row| row.ratio > bar).collect();
    rows.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        if number == 0 {
            let _ = writeln!(out, "\n{title}: rows above {bar}");
        }
        let _ = writeln!(
            out,
            "  {:<44}{:>6.2}{}",
            row.name,
            row.ratio,
            if row.steady { "" } else { " ~" }
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{CHOICE, NONE, POLICY, Value, above, greatest, heading, lines, mean};

    fn rows(list: &[(&str, f64, bool)]) -> Vec<Value> {
        let row = |&(name, ratio, steady): &(&str, f64, bool)| Value {
            name: name.to_owned(),
            ratio,
            steady,
        };
        list.iter().map(row).collect()
    }

    #[test]
    fn steady_rows_decide() {
        let list = rows(&[("a", 1.0, true), ("b", 1.1, true), ("c", 4.0, false)]);
        let found = mean(&list, CHOICE.mean);
        assert_eq!((found.rows, found.passes), ([2, 3], Some(true)));
        let [steady, all] = found.figures.map(|figure| figure.expect("rows"));
        assert!((steady - 1.1_f64.sqrt()).abs() < 1e-9 && (all - 4.4_f64.cbrt()).abs() < 1e-9);
        let found = greatest(&list, CHOICE.row);
        assert_eq!((found.figures, found.passes), ([Some(1.1), Some(4.0)], Some(true)));
        let bad = rows(&[("a", 0.5, true), ("b", 1.3, true)]);
        assert_eq!(mean(&bad, CHOICE.mean).passes, Some(true));
        assert_eq!(greatest(&bad, CHOICE.row).passes, Some(false));
        let slow = rows(&[("a", 1.1, true), ("b", 1.06, true)]);
        assert_eq!(mean(&slow, CHOICE.mean).passes, Some(false));
        assert_eq!(greatest(&slow, POLICY.row).passes, Some(true));
        assert_eq!(mean(&slow, POLICY.mean).passes, None);
    }

    #[test]
    fn no_rows_pass_nothing() {
        for list in [rows(&[]), rows(&[("a", 1.0, false)])] {
            assert_eq!(mean(&list, CHOICE.mean).passes, None);
            assert_eq!(greatest(&list, CHOICE.row).passes, None);
            let text = lines("messages", &list, CHOICE);
            assert!(!text.contains("pass") && text.matches("not measured").count() >= 2, "{text}");
            assert!(text.lines().all(|line| line.starts_with("- ")), "{text}");
        }
    }

    #[test]
    fn rows_above_the_bar_are_listed() {
        let list = rows(&[("fine", 1.2, true), ("bad", 1.3, true), ("wild", 2.0, false)]);
        let text = above("messages", &list, CHOICE);
        let names: Vec<&str> =
            text.lines().skip(2).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["wild", "bad"]);
        assert!(text.contains("2.00 ~") && text.contains("rows above 1.25"), "{text}");
        assert_eq!(above("messages", &list, NONE), "");
        assert_eq!(above("messages", &list[..1], CHOICE), "");
        let widths: Vec<usize> =
            (heading() + &lines("x", &list, CHOICE)).lines().map(str::len).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{widths:?}");
    }
}
