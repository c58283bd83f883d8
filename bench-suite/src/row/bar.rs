//! Compares rows with bars. A bar is a limit that the project requires; the definitions files have the bars.
//!
//! Of the rows to which a bar applies, only the steady ones decide. If a bar is for near CPUs, only those steady rows
//! decide whose CPUs were near each other. The printed text also states the number of the rows that do not decide, and
//! the value over all rows.

use super::{
    Distance, HAND, HAND_C, IN_C, IN_CACHE, INTERPRETER, KEPT, MAPPED, MEMCPY, Ratio, Row, STEADY,
    Sides, mean, median,
};
use serde::Deserialize;
use std::fmt::Write;

/// The largest number of rows that the text lists for a bar of a mean that is missed.
const LISTED: usize = 12;

/// How the values of the rows are combined into one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// The worst row: the least ratio, or the greatest value if the bar is an upper limit.
    #[default]
    Least,
    /// The geometric mean.
    Mean,
    /// The median.
    Median,
}

/// The value of a row that a bar limits. Ratios are times of others divided by the own time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Against {
    /// The ratio to the fastest peer.
    #[default]
    Peer,
    /// The ratio to the fastest hand-written loop.
    Hand,
    /// The ratio to memcpy.
    Memcpy,
    /// The ratio to the interpreter.
    Interpreter,
    /// The ratio to the loop over a kept mapping of the file.
    Kept,
    /// The ratio of the loop that maps the file each time to the first access after opening.
    Mapped,
    /// The ratio of the fastest peer's single `MPI_Pack` to the own one.
    Packing,
    /// The time of a message divided by the own time of a single `MPI_Pack`: at most.
    Pack,
    /// The nanoseconds more than the fastest peer: at most.
    Added,
    /// The nanoseconds more than the fastest hand-written loop: at most.
    Beyond,
    /// The nanoseconds more than the same calls in C: at most.
    #[serde(rename = "c")]
    OverC,
    /// The milliseconds of the first access after opening: at most.
    Milliseconds,
    /// The bytes by which the process grows in the first access: at most.
    Bytes,
}

impl Against {
    /// Returns true if a bar is the greatest allowed value, and false if it is the least allowed ratio.
    pub fn is_at_most(self) -> bool {
        matches!(
            self,
            Self::Pack
                | Self::Added
                | Self::Beyond
                | Self::OverC
                | Self::Milliseconds
                | Self::Bytes
        )
    }

    /// Returns true if a value needs a peer.
    fn needs_peer(self) -> bool {
        matches!(self, Self::Peer | Self::Packing | Self::Added)
    }

    /// Returns the value of `row`; `None` if a figure is missing.
    pub fn of(self, row: &Row, Sides { own, peers }: Sides<'_>) -> Option<Ratio> {
        let figure = || row.figure(own).filter(|figure| !figure.over);
        let more = |other: Option<Ratio>| {
            let (other, figure) = (other?, figure()?);
            Some(Ratio { value: figure.ns * (1.0 - other.value), ..other })
        };
        let alone = |value: f64, steady: bool| Some(Ratio { value, steady, least: false });
        match self {
            Self::Peer => row.against(own, peers),
            Self::Hand => row.against(own, &[HAND, HAND_C]),
            Self::Memcpy => row.against(own, &[MEMCPY]),
            Self::Interpreter => row.against(own, &[INTERPRETER]),
            Self::Kept => row.against(own, &[KEPT]),
            Self::Mapped => {
                let (mapped, [first, spread]) = (row.figure(MAPPED)?, figure()?.first?);
                let steady = spread <= STEADY && mapped.is_steady();
                Some(Ratio { value: mapped.ns / first, steady, least: mapped.over })
            }
            Self::Packing => {
                let packs = row.figures.iter().filter(|f| peers.contains(&f.competitor));
                let packs = packs.filter_map(|f| Some((f.pack?, f.is_steady())));
                let (best, steady) = packs.min_by(|a, b| a.0.total_cmp(&b.0))?;
                let figure = figure()?;
                alone(best / figure.pack?, figure.is_steady() && steady)
            }
            Self::Pack => figure().and_then(|f| alone(f.ns / f.pack?, f.is_steady())),
            Self::Added => more(row.against(own, peers)),
            Self::Beyond => more(row.against_hand(own)),
            Self::OverC => more(row.against(own, &[IN_C])),
            Self::Milliseconds => {
                let [ns, spread] = figure()?.first?;
                alone(ns / 1e6, spread <= STEADY)
            }
            // The growth is a number of bytes and not a time, so it is always steady.
            Self::Bytes => alone(figure()?.growth? as f64, true),
        }
    }
}

/// A limit for a value that is combined from rows. A condition that is not given holds for all rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// A human-readable description.
    pub text: String,
    /// The classes of the rows, separated by spaces.
    #[serde(default)]
    pub class: String,
    /// Words that must all occur in the part of a row, separated by spaces.
    #[serde(default)]
    pub part: String,
    /// The names of the rows.
    #[serde(default)]
    pub layouts: Vec<String>,
    /// The requested sizes of the rows.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// The least and the greatest number of packed bytes.
    pub bytes: Option<[u64; 2]>,
    /// True if the bar applies only to rows that touch at most [`IN_CACHE`] bytes.
    #[serde(default)]
    pub cached: bool,
    /// True if only rows whose CPUs are near each other decide whether the bar passes.
    #[serde(default)]
    pub near: bool,
    /// For the interposer: the only host to which the bar applies.
    pub host: Option<String>,
    /// The value of a row.
    #[serde(default)]
    pub against: Against,
    /// How the values of the rows are combined.
    #[serde(default)]
    pub value: Value,
    /// The limit that the project requires. If the least allowed ratio is 0, the rows are shown and not judged.
    pub bar: Limits,
    /// The limit that the project would like to reach, if there is another one.
    pub goal: Option<Limits>,
}

/// One limit, or one for user memory and one for `MPI_Alloc_mem`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Limits {
    /// The limit for all rows.
    One(f64),
    /// The limits for user memory and for memory of `MPI_Alloc_mem`.
    Both([f64; 2]),
}

impl Limits {
    /// Returns the limit; after [`Bar::parts`] there is only one.
    pub fn one(self) -> f64 {
        match self {
            Self::One(limit) | Self::Both([limit, _]) => limit,
        }
    }

    fn of(self, place: usize) -> Self {
        match self {
            Self::One(limit) => Self::One(limit),
            Self::Both(limits) => Self::One(limits[place]),
        }
    }
}

impl Bar {
    /// Returns one bar for each kind of memory if the bar has two limits, and else the bar itself.
    pub fn parts(self) -> Vec<Self> {
        if let Limits::One(_) = self.bar {
            return vec![self];
        }
        let part = |(place, part): (usize, &str)| Self {
            part: part.to_owned(),
            bar: self.bar.of(place),
            goal: self.goal.map(|goal| goal.of(place)),
            ..self.clone()
        };
        ["user", "alloc"].into_iter().enumerate().map(part).collect()
    }

    /// Returns true if the bar applies to rows of the kind `part`.
    fn is_for(&self, part: &str) -> bool {
        self.part.split_whitespace().all(|word| part.split('-').any(|own| own == word))
    }

    /// Returns true if the bar applies to `row`.
    pub fn applies(&self, row: &Row) -> bool {
        let class = |class: &str| self.class.split_whitespace().any(|one| one == class);
        (self.class.is_empty() || class(&row.class))
            && self.is_for(&row.part)
            && (self.layouts.is_empty() || self.layouts.contains(&row.name))
            && (self.sizes.is_empty() || row.size.is_some_and(|size| self.sizes.contains(&size)))
            && self.bytes.is_none_or(|[least, most]| (least..=most).contains(&row.bytes))
            && (!self.cached || row.touched <= IN_CACHE)
    }

    /// Returns true if the value of one row keeps the limit. Ratios to peers have ties.
    pub fn keeps(&self, row: &Row, value: f64) -> bool {
        let limit = self.bar.one();
        match (self.against, self.value) {
            (against, _) if against.is_at_most() => value <= limit,
            (Against::Peer, Value::Least) => value >= limit * row.tie(),
            _ => value >= limit,
        }
    }
}

/// The verdict on one bar.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// The combined value of the rows that decide whether the bar passes. `None` if no row decides.
    pub value: Option<Ratio>,
    /// The combined value of all rows to which the bar applies. `None` if there are none.
    pub all: Option<Ratio>,
    /// True if the rows that decide meet the bar. `None` if no row decides, or if the bar has no limit.
    pub passes: Option<bool>,
    /// The number of rows that decide, and the number of rows that do not decide: rows that are unsteady
    /// and, if the bar is for near CPUs, rows whose CPUs were not near.
    pub rows: [usize; 2],
    /// The number of rows to which the bar applies but that lack a figure.
    pub missing: usize,
    /// The deciding rows that miss the limit by themselves, the worst first.
    pub short: Vec<(&'a Row, f64)>,
}

/// Compares `rows` with `bar`.
pub fn verdict<'a>(rows: &'a [Row], sides: Sides<'_>, bar: &Bar) -> Verdict<'a> {
    let own: Vec<&Row> = rows.iter().filter(|row| bar.applies(row)).collect();
    let all: Vec<(&Row, Ratio)> =
        own.iter().filter_map(|row| Some((*row, bar.against.of(row, sides)?))).collect();
    let decides = |(row, ratio): &&(&Row, Ratio)| {
        ratio.steady && (!bar.near || row.distance() == Distance::Near)
    };
    let deciding: Vec<(&Row, Ratio)> = all.iter().filter(decides).copied().collect();
    let mut short: Vec<(&Row, f64)> = deciding
        .iter()
        .filter(|(row, ratio)| !bar.keeps(row, ratio.value))
        .map(|(row, ratio)| (*row, ratio.value))
        .collect();
    short.sort_by(|a, b| a.1.total_cmp(&b.1));
    if bar.against.is_at_most() {
        short.reverse();
    }
    let value = combined(bar, &deciding);
    let passes = value.map(|value| match (bar.value, bar.against.is_at_most()) {
        // The row with the least ratio may pass although another row misses, because the limit for a tie differs from
        // row to row.
        (Value::Least, _) => short.is_empty(),
        (_, true) => value.value <= bar.bar.one(),
        (_, false) => value.value >= bar.bar.one(),
    });
    Verdict {
        value,
        all: combined(bar, &all),
        passes: passes.filter(|_| bar.against.is_at_most() || bar.bar.one() > 0.0),
        rows: [deciding.len(), all.len() - deciding.len()],
        missing: own.len() - all.len(),
        short,
    }
}

/// Turns the values of several rows into one value.
fn combined(bar: &Bar, rows: &[(&Row, Ratio)]) -> Option<Ratio> {
    let ratios = || rows.iter().map(|(_, ratio)| *ratio);
    let value = |value: f64| Ratio { value, steady: true, least: false };
    match bar.value {
        Value::Mean => mean(ratios().map(|ratio| ratio.value)).map(value),
        Value::Median if rows.is_empty() => None,
        Value::Median => {
            let mut values: Vec<f64> = ratios().map(|ratio| ratio.value).collect();
            Some(value(median(&mut values)))
        }
        Value::Least if bar.against.is_at_most() => {
            ratios().max_by(|a, b| a.value.total_cmp(&b.value))
        }
        Value::Least => ratios().min_by(|a, b| a.value.total_cmp(&b.value)),
    }
}

/// Returns the word for a verdict.
pub fn word(passes: Option<bool>) -> &'static str {
    match passes {
        Some(true) => "pass",
        Some(false) => "MISS",
        None => "-",
    }
}

/// Formats a value; one that may be greater begins with `>`.
pub fn shown(value: Option<Ratio>) -> String {
    let Some(Ratio { value, least, .. }) = value else { return "-".to_owned() };
    let mark = if least { ">" } else { "" };
    if value >= 1000.0 { format!("{mark}{value:.0}") } else { format!("{mark}{value:.2}") }
}

/// Returns a line that names the columns of [`lines`].
pub fn heading() -> String {
    format!(
        "{:<6}{:<82}{:<6}{:>9}{:>9}{:>8}{:>7}{:>8}{:>10}\n",
        "", "bar", "", "measured", "bar", "goal", "rows", "others", "with them"
    )
}

/// Compares `rows` with `bars`. Adds one line for each bar to `out`. For each bar that is missed, adds the rows that
/// fall short of it to `lists`, with their figures in the words of `figures`. `title` stands before the text of a bar.
pub fn lines(
    rows: &[Row],
    sides: Sides<'_>,
    (title, bars): (&str, &[Bar]),
    figures: impl Fn(&Row) -> String,
    [out, lists]: [&mut String; 2],
) {
    for bar in bars {
        // Without peers, the text says so once. The kind of memory that a run leaves out is not named again and again.
        let other = !bar.part.is_empty() && !rows.iter().any(|row| bar.is_for(&row.part));
        if other || bar.against.needs_peer() && sides.peers.is_empty() {
            continue;
        }
        let found = verdict(rows, sides, bar);
        let [decide, others] = found.rows;
        let limit = |limit: Option<Limits>| limit.map_or_else(String::new, |l| l.one().to_string());
        let measured = match (decide + others, found.missing) {
            (0, 0) => "not measured".to_owned(),
            (0, _) => "not compared".to_owned(),
            _ => shown(found.value),
        };
        let missing = match found.missing {
            0 => String::new(),
            missing => format!("  ({missing} not compared)"),
        };
        let part = if ["user", "alloc"].contains(&bar.part.as_str()) { &*bar.part } else { "" };
        let _ = writeln!(
            out,
            "{:<6}{:<82}{part:<6}{measured:>9}{:>9}{:>8}{decide:>7}{others:>8}{:>10}{missing}",
            word(found.passes),
            format!("{title}{}", bar.text),
            limit(Some(bar.bar)),
            limit(bar.goal),
            shown(found.all),
        );
        if found.passes != Some(false) {
            continue;
        }
        let (count, most) = match (found.short.len(), bar.value) {
            (1, _) => ("1 row falls short".to_owned(), 1),
            (n, Value::Least) => (format!("{n} rows fall short"), n),
            (n, _) => (format!("{n} rows fall short"), LISTED),
        };
        let part = if part.is_empty() { String::new() } else { format!(", {part}") };
        let _ = writeln!(lists, "\n{title}{}{part}: {count}", bar.text);
        for (row, value) in found.short.iter().take(most) {
            let _ = writeln!(lists, "  {:<30}{value:>8.2}  {}", row.title(), figures(row));
        }
        if found.short.len() > most {
            let _ = writeln!(lists, "  and {} more", found.short.len() - most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Against, Bar, lines, shown, verdict};
    use crate::row::{Figure, KEPT, Row, Sides};

    fn row(name: &str, own: f64, peer: f64, spread: f64) -> Row {
        let own = Figure { pack: Some(own / 1.1), ..Figure::new("typepack", own, spread) };
        let figures = vec![
            own,
            Figure::new("peer", peer, 1.0),
            Figure::new("slow", 10.0 * peer, 9.0),
            Figure::new("hand", 2.0, 1.0),
        ];
        let (name, part) = (name.to_owned(), "user".to_owned());
        Row {
            name,
            part,
            class: "c".to_owned(),
            line: Some([60.0, 1.0]),
            figures,
            ..Row::default()
        }
    }

    fn bar(text: &str) -> Bar {
        toml::from_str(&format!("text = \"some\"\n{text}")).expect("a bar")
    }

    const PEERS: [&str; 2] = ["peer", "slow"];

    #[test]
    fn steady_rows_decide_by_mean_and_by_the_least() {
        let peers = PEERS.map(str::to_owned);
        let sides = Sides { own: "typepack", peers: &peers };
        let rows = [row("a", 1.0, 4.0, 1.0), row("b", 1.0, 0.9, 1.0), row("c", 1.0, 0.1, 1.5)];
        let mean = verdict(&rows, sides, &bar("value = \"mean\"\nbar = 1.5"));
        assert_eq!((mean.passes, mean.rows), (Some(true), [2, 1]));
        assert!((mean.all.expect("rows").value - 0.36_f64.cbrt()).abs() < 1e-9);
        assert!((mean.value.expect("rows").value - 3.6_f64.sqrt()).abs() < 1e-9);
        let both = bar("bar = [1.0, 2.0]\ngoal = [2.0, 2.0]").parts();
        let least = verdict(&rows, sides, &both[0]);
        assert_eq!((least.passes, least.short.len()), (Some(false), 1));
        assert_eq!((least.short[0].0.name.as_str(), least.short[0].1), ("b", 0.9));
        assert_eq!(verdict(&rows, sides, &both[1]).passes, None);
        let [mut out, mut lists] = [String::new(), String::new()];
        lines(&rows, sides, ("", &both), |_| "x".to_owned(), [&mut out, &mut lists]);
        assert!(out.starts_with("MISS  some") && out.lines().count() == 1, "{out}");
        assert!(lists.contains("\nsome, user: 1 row falls short\n  b user "), "{lists}");
        // Without peers, there is nothing to say about these bars.
        let alone = Sides { own: "typepack", peers: &[] };
        let [mut out, mut lists] = [String::new(), String::new()];
        lines(&rows, alone, ("", &both), |_| String::new(), [&mut out, &mut lists]);
        assert_eq!((out, lists), (String::new(), String::new()));
    }

    #[test]
    fn ties_are_no_losses_and_far_rows_do_not_decide_near_bars() {
        let peers = PEERS.map(str::to_owned);
        let sides = Sides { own: "typepack", peers: &peers };
        let passes = |row: Row, bar: &Bar| {
            let rows = [row];
            verdict(&rows, sides, bar).passes
        };
        let near = bar("near = true\nbar = 1");
        assert_eq!(passes(row("a", 1.0, 0.98, 1.0), &near), Some(true));
        let far = Row { line: Some([230.0, 1.0]), ..row("a", 1.0, 0.5, 1.0) };
        assert_eq!(passes(far, &near), None);
        let large = row("a", 1.0, 0.7, 1.0);
        assert_eq!(passes(large.clone(), &bar("bar = 1")), Some(false));
        assert_eq!(passes(Row { touched: 16 << 20, ..large }, &bar("bar = 1")), Some(true));
    }

    #[test]
    fn conditions_choose_rows() {
        let applies = |text: &str, row: &Row| bar(&format!("bar = 1\n{text}")).applies(row);
        let some = Row {
            part: "write-collective".into(),
            size: Some(8),
            bytes: 9,
            ..row("a", 1., 1., 1.)
        };
        for text in
            ["class = \"b c\"", "part = \"collective write\"", "sizes = [8]", "bytes = [9, 9]"]
        {
            assert!(applies(text, &some), "{text}");
        }
        for text in [
            "class = \"b\"",
            "part = \"read\"",
            "sizes = [9]",
            "bytes = [0, 8]",
            "layouts = [\"b\"]",
        ] {
            assert!(!applies(text, &some), "{text}");
        }
    }

    #[test]
    fn values_are_ratios_or_differences_or_those_of_the_first_access() {
        let peers = PEERS.map(str::to_owned);
        let sides = Sides { own: "typepack", peers: &peers };
        let mut some = row("a", 4.0, 3.0, 1.0);
        let of = |against: Against, row: &Row| against.of(row, sides).map(|ratio| ratio.value);
        assert_eq!((of(Against::Added, &some), of(Against::Beyond, &some)), (Some(1.0), Some(2.0)));
        assert!((of(Against::Pack, &some).expect("a value") - 1.1).abs() < 1e-9);
        assert_eq!((of(Against::Packing, &some), of(Against::Kept, &some)), (None, None));
        some.figures[0].first = Some([2e6, 1.0]);
        some.figures[0].growth = Some(5000);
        some.figures.push(Figure::new(KEPT, 2.0, 1.0));
        assert_eq!(
            (of(Against::Milliseconds, &some), of(Against::Kept, &some)),
            (Some(2.0), Some(0.5))
        );
        let rows = [some];
        let most = verdict(&rows, sides, &bar("against = \"bytes\"\nbar = 4000"));
        assert_eq!((most.passes, shown(most.value).as_str()), (Some(false), "5000"));
    }
}
