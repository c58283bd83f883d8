//! Shows the results of all ways of exchanging halos side by side: as a table, and as a picture that can be
//! understood without any other text.
//!
//! `mod.rs` passes the [`Record`]s of all runs. A case is one of the measured exchanges. A `Bar` stands for
//! one way of exchanging halos. For each case and bar, [`cases`] takes the least time of all runs, because other load only
//! adds time, and the range of the best third of the runs, which the picture shows as a whisker: one busy program on two
//! CPUs may disturb half of the runs. [`verdict`] says what the times show: a ratio that is noise is not shown. Only runs
//! at one distance of the CPUs count.

use std::fmt::Write;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::record::{Bar, Record};

/// The bars in the order in which they are shown, each with its name, its explanation and its colour.
const BARS: [(Bar, &str, &str, RGBColor); 5] = [
    (
        Bar::Interpreter,
        "interpreter",
        "datatypes, copied run of bytes by run of bytes (typepack without its kernels)",
        RGBColor(192, 96, 70),
    ),
    (
        Bar::Hand,
        "hand loops",
        "no datatypes: loops, compiled for this CPU, pack contiguous messages and unpack them; gaps stay untouched",
        RGBColor(120, 120, 130),
    ),
    (
        Bar::HandWhole,
        "hand, whole cells",
        "the same, but all 16 bytes of each struct; this overwrites the receiver's gaps, which MPI's struct types never do",
        RGBColor(160, 150, 110),
    ),
    (
        Bar::Mpich,
        "MPICH",
        "datatypes in MPICH, by a C program; gaps stay untouched",
        RGBColor(90, 110, 170),
    ),
    (
        Bar::Typepack,
        "typepack",
        "datatypes, moved by typepack's SIMD and compiled kernels; gaps stay untouched",
        RGBColor(39, 130, 90),
    ),
];

/// The times of the best third of the runs of one bar in microseconds, in order. There is at least one.
type Times = Vec<f64>;

/// Two runs are apart if their times differ by more than this. Least times of separate demos differ by up to 3 %.
const APART: f64 = 1.03;
/// Two bars are apart if this part of all pairs of their runs is, in one direction. So a single run decides nothing.
const MOST: f64 = 0.75;
/// Least times that differ by at most this factor are about the same, even if their runs are apart: in the next demo, the
/// other bar may be the quicker one.
const SAME: f64 = 1.1;
/// Least times that differ by at most this factor are about the same, too, if their runs are not apart.
const SAME_IF_MIXED: f64 = 1.25;
/// The CPUs of a run were near if its probe is at most this many times the least probe of all runs. Otherwise they were
/// further apart.
const NEAR: f64 = 1.5;

/// Notes about the hand-written loops, which the picture shows as text.
const NOTES: [&str; 2] = [
    "Structs have 13 bytes in members and 3 in gaps. 'hand loops' is the quicker of two loops that leave gaps alone: one packs the 13 bytes,",
    "the other sends all 16 and writes members. The hand way posts receives first.",
];
const INK: RGBColor = RGBColor(45, 45, 45);
const SIZE: (u32, u32) = (1260, 600);
/// The height, in pixels, of the title above the legend. A line of the legend or of the notes has the height `LINE`.
const TITLE: i32 = 68;
const LINE: i32 = 20;

/// The results of one case in all ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    what: String,
    /// Number of bytes that all ranks together send in one exchange: the first entry is the number if the
    /// gaps are left out, the second entry the number if whole cells are sent.
    bytes: [Option<u64>; 2],
    /// The times, one entry per bar of [`BARS`].
    times: [Option<Times>; 5],
    /// The number of runs of each bar. If the bars have different numbers, this is the largest.
    runs: usize,
    /// Whether the bars were measured at different distances of the CPUs. Then there are no ratios.
    has_moved: bool,
    /// The least and the greatest nanoseconds of the probe in the runs that count.
    probes: [f64; 2],
}

impl Case {
    /// Returns the indices in [`BARS`] of the bars that were measured.
    fn places(&self) -> Vec<usize> {
        (0..BARS.len()).filter(|&place| self.times[place].is_some()).collect()
    }
}

/// How far apart the CPUs of the runs were that count. A virtual machine may move its CPUs at any moment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Distance {
    /// The probe of a run is at most this.
    Near(f64),
    /// The probe of a run is more than this.
    Far(f64),
    Any,
}

impl Distance {
    /// Whether the run counts. Messages of MPICH are not a probe for others, so all its runs count.
    fn has(self, run: &Record) -> bool {
        let probe = run.probe_ns;
        run.bar == Bar::Mpich
            || match self {
                Self::Near(limit) => probe <= limit,
                Self::Far(limit) => probe > limit,
                Self::Any => true,
            }
    }
}

/// Returns the distance at which each bar has most runs: the bar with the fewest runs decides.
fn common_distance(runs: &[&Record]) -> Distance {
    let probes = runs.iter().filter(|run| run.bar != Bar::Mpich).map(|run| run.probe_ns);
    let limit = NEAR * probes.fold(f64::INFINITY, f64::min);
    let measured = BARS.iter().filter(|(bar, ..)| runs.iter().any(|run| run.bar == *bar));
    let measured: Vec<Bar> = measured.map(|(bar, ..)| *bar).collect();
    let fewest = |distance: Distance| {
        let of_bar = |bar| runs.iter().filter(|run| run.bar == bar && distance.has(run)).count();
        measured.iter().map(|bar| of_bar(*bar)).min().unwrap_or(0)
    };
    let (near, far) = (Distance::Near(limit), Distance::Far(limit));
    match (fewest(near), fewest(far)) {
        (0, 0) => Distance::Any,
        (at_near, at_far) if at_near < at_far => far,
        _ => near,
    }
}

/// Returns the cases in the order in which they first occur in `records`, each with the times of all
/// bars.
pub fn cases(records: &[Record]) -> Vec<Case> {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.case.as_str()) {
            names.push(&record.case);
        }
    }
    let of_case = |name: &str| {
        let all: Vec<&Record> = records.iter().filter(|record| record.case == name).collect();
        let of_bar = |bar| all.iter().copied().filter(move |record| record.bar == bar);
        let distance = common_distance(&all);
        let times = |bar: Bar| {
            let mut runs: Vec<f64> =
                of_bar(bar).filter(|run| distance.has(run)).map(|run| run.us).collect();
            runs.sort_by(f64::total_cmp);
            runs.truncate(runs.len().div_ceil(3));
            (!runs.is_empty()).then_some(runs)
        };
        let counted = all.iter().filter(|run| run.bar != Bar::Mpich && distance.has(run));
        let probes = counted.fold([f64::INFINITY, 0.0], |[least, most], run| {
            [run.probe_ns.min(least), run.probe_ns.max(most)]
        });
        let bytes = |whole: bool| {
            let of_kind = |record: &&&Record| (record.bar == Bar::HandWhole) == whole;
            all.iter().find(of_kind).map(|record| record.bytes)
        };
        Case {
            what: all[0].what.clone(),
            bytes: [bytes(false), bytes(true)],
            times: BARS.map(|(bar, ..)| times(bar)),
            runs: BARS.map(|(bar, ..)| of_bar(bar).count()).into_iter().max().unwrap_or(0),
            has_moved: distance == Distance::Any,
            probes,
        }
    };
    names.into_iter().map(of_case).collect()
}

/// Formats microseconds with at most one decimal.
fn us(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Returns whether the times of `a` are greater than those of `b`.
fn is_above(a: &[f64], b: &[f64]) -> bool {
    let apart = a.iter().map(|a| b.iter().filter(|b| *a > APART * **b).count()).sum::<usize>();
    apart as f64 >= MOST * (a.len() * b.len()) as f64
}

/// Returns what the times of a bar show beside typepack's own times: the ratio of the least times, that they are about the
/// same, or that the runs are too mixed to say.
fn verdict(times: &[f64], own: &[f64]) -> String {
    let ratio = times[0] / own[0];
    let differ = ratio.max(1.0 / ratio);
    let is_apart = is_above(times, own) || is_above(own, times);
    match is_apart {
        _ if differ <= SAME => "about the same".to_owned(),
        true => format!("{ratio:.1}x"),
        false if differ <= SAME_IF_MIXED => "about the same".to_owned(),
        false => "ranges overlap".to_owned(),
    }
}

/// Formats the time of the bar with index `place`, followed in brackets by the verdict beside typepack's time if typepack
/// was measured, and if this is another bar. Returns `None` if the bar was not measured.
fn with_verdict(case: &Case, place: usize, unit: &str) -> Option<String> {
    let times = case.times[place].as_ref()?;
    let time = us(times[0]) + unit;
    let typepack = BARS.len() - 1;
    Some(match &case.times[typepack] {
        Some(_) if place != typepack && case.has_moved => format!("{time} (CPUs moved)"),
        Some(own) if place != typepack => format!("{time} ({})", verdict(times, own)),
        _ => time,
    })
}

/// Returns the indices in [`BARS`] of the bars that at least one of the cases has.
fn shown(cases: &[Case]) -> Vec<usize> {
    (0..BARS.len()).filter(|&place| cases.iter().any(|case| case.times[place].is_some())).collect()
}

/// Tells how far apart the CPUs were. The ratios depend on it: data comes from another core's cache, and on some machines
/// that takes three times as long as on others. Returns `None` if no run has a probe.
fn distance(cases: &[Case]) -> Option<String> {
    let least = cases.iter().map(|case| case.probes[0]).fold(f64::INFINITY, f64::min);
    let most = cases.iter().map(|case| case.probes[1]).fold(0.0, f64::max);
    if !least.is_finite() {
        return None;
    }
    let range = if most <= NEAR * least {
        format!("{least:.0} ns")
    } else {
        format!("{least:.0} to {most:.0} ns")
    };
    Some(format!("A message of 8 bytes between the two CPUs took {range} there and back."))
}

/// Returns the table, with the ratio of each time to typepack's time.
pub fn table(cases: &[Case]) -> String {
    let shown = shown(cases);
    let mut text = String::new();
    let mut line = |what: &str, cell: &dyn Fn(usize) -> String| {
        // Writing to a string cannot fail.
        let _infallible = write!(text, "{what:<44}");
        for &place in &shown {
            let _infallible = write!(text, " {:>22}", cell(place));
        }
        text.push('\n');
    };
    line("microseconds (times typepack's)", &|place| BARS[place].1.to_owned());
    for case in cases {
        line(&case.what, &|place| with_verdict(case, place, "").unwrap_or("-".to_owned()));
    }
    if let Some(distance) = distance(cases) {
        text += &distance;
        text += " Ratios are other ones where the CPUs are nearer or further apart.\n";
    }
    text
}

/// Returns the picture as SVG text.
pub fn svg(cases: &[Case]) -> Result<String, String> {
    if cases.is_empty() {
        return Err("the tables of --draw contain no rows".to_owned());
    }
    let mut text = String::new();
    draw(cases, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

fn centred(size: i32) -> TextStyle<'static> {
    font(size).pos(Pos::new(HPos::Center, VPos::Bottom))
}

fn draw(cases: &[Case], text: &mut String) -> Drawn {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let title = "The same halo exchanges between 2 ranks of one machine, by datatypes and by hand-written loops";
    root.draw(&Text::new(title, (24, 14), font(20)))?;
    let note = "All results were verified bit for bit. Least times in microseconds (in brackets: over typepack's); whiskers reach to the median run.";
    root.draw(&Text::new(note, (24, 42), font(14)))?;
    let legend = |x: i32, y: i32, colour: RGBColor, text: &str| -> Drawn {
        root.draw(&Rectangle::new([(x, y), (x + 14, y + 12)], colour.filled()))?;
        root.draw(&Text::new(text.to_owned(), (x + 22, y), font(13)))?;
        Ok(())
    };
    let mut top = TITLE;
    for place in shown(cases) {
        let (_, name, about, colour) = BARS[place];
        legend(24, top, colour, &format!("{name}: {about}"))?;
        top += LINE;
    }
    for note in NOTES.map(str::to_owned).into_iter().chain(distance(cases)) {
        root.draw(&Text::new(note, (24, top + 4), font(13)))?;
        top += LINE;
    }
    let (_, below) = root.split_vertically(top + 6);
    let columns = cases.len().min(3);
    let panels = below.split_evenly((cases.len().div_ceil(columns), columns));
    for (panel, case) in panels.iter().zip(cases) {
        draw_case(&root, panel, case)?;
    }
    root.present()?;
    Ok(())
}

fn draw_case(root: &Area<'_>, panel: &Area<'_>, case: &Case) -> Drawn {
    let top = case.times.iter().flatten().flatten().copied().fold(1e-3, f64::max) * 1.2;
    let places = case.places();
    let mut chart = ChartBuilder::on(panel)
        .margin(14)
        .x_label_area_size(66)
        .y_label_area_size(62)
        .caption(&case.what, font(15))
        .build_cartesian_2d(0.0..places.len() as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_desc("microseconds")
        .y_label_formatter(&|value| us(*value).trim_end_matches(".0").to_owned())
        .label_style(font(12))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (x, &place) in places.iter().enumerate() {
        let (x, (_, name, _, colour)) = (x as f64, BARS[place]);
        let (column, base) = chart.backend_coord(&(x + 0.5, 0.0));
        for (line, part) in name.split(", ").enumerate() {
            root.draw(&Text::new(part, (column, base + 20 + 14 * line as i32), centred(12)))?;
        }
        let Some(times) = &case.times[place] else { continue };
        let (low, high) = (times[0], times[times.len() - 1]);
        let bar = [(x + 0.12, 0.0), (x + 0.88, low)];
        chart.draw_series([Rectangle::new(bar, colour.filled())])?;
        let whisker = [(x + 0.5, low), (x + 0.5, high)];
        let end = [(x + 0.42, high), (x + 0.58, high)];
        chart.draw_series([whisker, end].map(|line| PathElement::new(line.to_vec(), INK)))?;
        let (_, above) = chart.backend_coord(&(x + 0.5, high));
        let value = with_verdict(case, place, " us").unwrap_or_default();
        for (line, part) in value.split(" (").enumerate() {
            let part = if line == 0 { part.to_owned() } else { format!("({part}") };
            let lines = value.matches(" (").count() as i32 - line as i32;
            root.draw(&Text::new(part, (column, above - 5 - 14 * lines), centred(12)))?;
        }
    }
    let (middle, base) = chart.backend_coord(&(places.len() as f64 / 2.0, 0.0));
    let kib = |bytes: u64| format!("{:.0} KiB", bytes as f64 / 1024.0);
    let exchanged = match case.bytes {
        [Some(bytes), Some(whole)] => {
            format!("{} exchanged (whole cells: {})", kib(bytes), kib(whole))
        }
        [bytes, whole] => format!("{} exchanged", kib(bytes.or(whole).unwrap_or(0))),
    };
    let runs = if case.runs == 1 { "run" } else { "runs" };
    let under = format!("{exchanged}, {} {runs} of each", case.runs);
    root.draw(&Text::new(under, (middle, base + 56), centred(12)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(bar: Bar, case: &str, us: f64) -> Record {
        let bytes = if bar == Bar::HandWhole { 8192 } else { 4096 };
        Record {
            bar,
            case: case.to_owned(),
            what: format!("case {case}"),
            bytes,
            us,
            probe_ns: 50.0,
        }
    }

    fn records() -> Vec<Record> {
        let mut all = Vec::new();
        for run in [2.0, 1.0, 40.0, 1.5] {
            for (bar, factor) in [(Bar::Interpreter, 8.0), (Bar::Hand, 4.0), (Bar::Typepack, 2.0)] {
                all.push(record(bar, "faces", run * factor));
                all.push(record(bar, "rows", run * factor.min(5.0)));
            }
            all.push(record(Bar::HandWhole, "faces", run * 2.05));
            all.push(record(Bar::Mpich, "faces", run * 20.0));
        }
        all
    }

    #[test]
    fn least_times_and_ranges_are_put_side_by_side() {
        let cases = cases(&records());
        assert_eq!(cases.len(), 2);
        assert_eq!(
            cases[0].times,
            [[8.0, 12.0], [4.0, 6.0], [2.05, 1.5 * 2.05], [20.0, 30.0], [2.0, 3.0]]
                .map(|times| Some(times.to_vec()))
        );
        assert_eq!(cases[0].bytes, [Some(4096), Some(8192)]);
        assert_eq!((cases[1].times[2].clone(), cases[1].bytes), (None, [Some(4096), None]));
        assert_eq!(cases[0].runs, 4);
        let text = table(&cases);
        assert!(text.contains("8.0 (4.0x)") && text.contains(" 2.0\n"), "{text}");
        assert!(text.contains("2.0 (about the same)"), "{text}");
        assert!(text.contains("the two CPUs took 50 ns there and back"), "{text}");
    }

    /// Checks that only runs at one distance of the CPUs are compared.
    #[test]
    fn runs_at_different_distances_are_not_compared() {
        let far = |bar, us| Record { probe_ns: 160.0, ..record(bar, "faces", us) };
        let near = |bar, us| record(bar, "faces", us);
        let (hand, own) = (Bar::Hand, Bar::Typepack);
        let times = |records: &[Record]| {
            let cases = cases(records);
            (cases[0].times[1].clone(), cases[0].times[4].clone(), cases[0].has_moved)
        };
        let mut runs = vec![far(hand, 1.0), near(hand, 9.0), near(own, 3.0), far(own, 7.0)];
        assert_eq!(times(&runs), (Some(vec![9.0]), Some(vec![3.0]), false));
        // Now each bar has two runs on far CPUs.
        runs.extend([far(hand, 1.0), far(own, 8.0)]);
        assert_eq!(times(&runs), (Some(vec![1.0]), Some(vec![7.0]), false));
        // Here no distance has runs of both bars.
        let runs = [near(hand, 9.0), far(own, 7.0)];
        assert!(table(&cases(&runs)).contains("took 50 to 160 ns"));
        assert_eq!(times(&runs), (Some(vec![9.0]), Some(vec![7.0]), true));
        assert!(table(&cases(&runs)).contains("9.0 (CPUs moved)"));
    }

    /// Checks that one quick run of a slower bar does not hide that the bar is slower.
    #[test]
    fn a_single_run_decides_nothing() {
        let hand = [16.8, 18.5, 18.7, 19.0, 19.1];
        let own = [15.3, 15.6, 16.5, 16.6, 16.8];
        assert!(is_above(&hand, &own) && !is_above(&own, &hand));
        assert!(!is_above(&own, &own) && !is_above(&hand[..2], &own[3..]));
    }

    /// Checks that bars whose times are nearly equal get the same verdict, whether or not their runs are apart.
    #[test]
    fn near_ties_are_about_the_same() {
        assert_eq!(verdict(&[15.6, 15.7], &[15.5, 15.6]), "about the same");
        assert_eq!(verdict(&[16.5, 16.6], &[15.5, 15.6]), "about the same");
        assert_eq!(verdict(&[15.5, 15.6], &[16.5, 16.6]), "about the same");
        assert_eq!(verdict(&[18.0, 20.0, 22.0], &[15.0, 19.0, 23.0]), "about the same");
        assert_eq!(verdict(&[20.0, 20.0, 22.0], &[15.0, 25.0, 25.0]), "ranges overlap");
        assert_eq!(verdict(&[20.0, 21.0], &[15.5, 15.6]), "1.3x");
        assert_eq!(verdict(&[10.0, 10.0], &[20.0, 20.0]), "0.5x");
    }

    #[test]
    fn the_picture_says_what_is_compared() {
        let picture = svg(&cases(&records())).expect("a picture");
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
        let labels = [
            "The same halo exchanges",
            "microseconds",
            "8.0 us",
            "(4.0x)",
            "(about the same)",
            "4 KiB exchanged (whole cells: 8 KiB), 4 runs of each",
            "4 KiB exchanged, 4 runs of each",
            "compiled for this CPU",
        ];
        for label in labels {
            assert!(picture.contains(label), "{label}");
        }
        let texts = BARS.map(|(_, name, about, _)| format!("{name}: {about}"));
        for text in texts.iter().map(String::as_str).chain(NOTES) {
            // Apostrophes are written as entities.
            assert!(picture.contains(&text.replace('\'', "&apos;")), "{text}");
        }
        assert!(svg(&[]).is_err());
    }

    #[test]
    fn a_way_that_was_not_measured_is_left_out() {
        let cases = cases(&[record(Bar::Hand, "faces", 3.0)]);
        assert!(table(&cases).contains("3.0"));
        let picture = svg(&cases).expect("a picture");
        assert!(picture.contains("3.0 us\n") && picture.contains("1 run of each"), "{picture}");
    }
}
