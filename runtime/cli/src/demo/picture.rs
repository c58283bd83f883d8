//! Shows all ways side by side: as a table, and as a picture that needs no other text.
//!
//! `mod.rs` passes the [`Record`]s of all runs. [`cases`] takes the median of the runs of each case and way.

use std::fmt::Write;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::record::Record;
use crate::halo::Way;

/// The ways in the order of the bars, each with its name and its explanation.
const WAYS: [(Way, &str, &str); 3] = [
    (
        Way::Interpreter,
        "interpreter",
        "datatypes, copied run of bytes by run of bytes (typepack without its kernels)",
    ),
    (
        Way::Hand,
        "hand-packed loops",
        "no datatypes: loops pack each face into a contiguous message and unpack it",
    ),
    (Way::Typepack, "typepack", "datatypes, moved by typepack's SIMD and compiled kernels"),
];

/// The colours of the ways.
const COLOURS: [RGBColor; 3] =
    [RGBColor(192, 96, 70), RGBColor(120, 120, 130), RGBColor(39, 130, 90)];
/// The colour of the part of a step that is not an exchange.
const COMPUTING: RGBColor = RGBColor(215, 222, 228);
const INK: RGBColor = RGBColor(45, 45, 45);
const SIZE: (u32, u32) = (1320, 520);

/// The results of one case in all ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    what: String,
    bytes: u64,
    /// For each of [`WAYS`]: the median microseconds of the exchange and of the computation.
    times: [Option<[f64; 2]>; 3],
    /// Runs of each way.
    runs: usize,
}

/// Returns the cases in the order of the first table, each with the medians of its runs.
pub fn cases(records: &[Record]) -> Vec<Case> {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.case.as_str()) {
            names.push(&record.case);
        }
    }
    let of_case = |name: &str| {
        let all: Vec<&Record> = records.iter().filter(|record| record.case == name).collect();
        let time = |way: Way| {
            let mut runs: Vec<&&Record> = all.iter().filter(|record| record.way == way).collect();
            runs.sort_by(|a, b| a.us().total_cmp(&b.us()));
            // Takes both parts from the same run, the median one.
            let run = runs.get(runs.len().checked_sub(1)? / 2)?;
            let sum = |exchange: bool| {
                let parts = run.parts.iter().filter(|part| (part.name == "exchange") == exchange);
                parts.map(|part| part.us).sum::<f64>()
            };
            Some([sum(true), sum(false)])
        };
        Case {
            what: all[0].what.clone(),
            bytes: all[0].bytes,
            times: WAYS.map(|(way, ..)| time(way)),
            runs: all.len() / WAYS.len(),
        }
    };
    names.into_iter().map(of_case).collect()
}

/// Writes microseconds with up to one decimal.
fn us(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Returns the table, with the ratio of each time to that of typepack.
pub fn table(cases: &[Case]) -> String {
    let mut text = String::new();
    let mut line = |what: &str, cells: [String; 3]| {
        let [a, b, c] = cells;
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "{what:<52} {a:>20} {b:>20} {c:>20}");
    };
    line("microseconds (times typepack's)", WAYS.map(|(_, name, _)| name.to_owned()));
    for case in cases {
        let whole = |time: Option<[f64; 2]>| time.map(|[exchange, rest]| exchange + rest);
        let own = whole(case.times[2]);
        let cells = case.times.map(|time| match (whole(time), own) {
            (Some(time), Some(own)) => format!("{} ({:.2}x)", us(time), time / own),
            (Some(time), None) => us(time),
            (None, _) => "-".to_owned(),
        });
        line(&case.what, cells);
        if case.times.iter().flatten().any(|[_, rest]| *rest > 0.0) {
            let part = |place: usize| {
                case.times.map(|time| time.map_or("-".to_owned(), |parts| us(parts[place])))
            };
            line("    of it packing, waiting, unpacking", part(0));
            line("    of it computing, while messages move", part(1));
        }
    }
    text
}

/// Returns the picture as SVG text.
pub fn svg(cases: &[Case]) -> Result<String, String> {
    if cases.is_empty() {
        return Err("there is nothing to draw".to_owned());
    }
    let mut text = String::new();
    draw(cases, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw(cases: &[Case], text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let font = |size: i32| ("sans-serif", size).into_font().color(&INK);
    let centred = |size: i32| font(size).pos(Pos::new(HPos::Center, VPos::Bottom));
    let title = "The same halo exchanges between 2 ranks of one machine, done in three ways";
    root.draw(&Text::new(title, (24, 14), font(20)))?;
    let note = "Same results bit for bit. Median times in microseconds (in brackets: over typepack's); shorter bars are faster.";
    root.draw(&Text::new(note, (24, 42), font(14)))?;
    for (place, (_, name, about)) in WAYS.iter().enumerate() {
        let y = 68 + 20 * place as i32;
        root.draw(&Rectangle::new([(24, y), (38, y + 12)], COLOURS[place].filled()))?;
        root.draw(&Text::new(format!("{name}: {about}"), (46, y), font(13)))?;
    }
    let (_, below) = root.split_vertically(134);
    let panels = below.split_evenly((1, cases.len()));
    for (panel, case) in panels.iter().zip(cases) {
        let whole = case.times.iter().flatten().map(|[exchange, rest]| exchange + rest);
        let top = whole.fold(1e-3, f64::max) * 1.2;
        let mut chart = ChartBuilder::on(panel)
            .margin(14)
            .margin_top(26)
            .x_label_area_size(52)
            .y_label_area_size(62)
            .caption(&case.what, font(14))
            .build_cartesian_2d(0.0..WAYS.len() as f64, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_desc("microseconds")
            .y_label_formatter(&|value| us(*value).trim_end_matches(".0").to_owned())
            .label_style(font(12))
            .light_line_style(TRANSPARENT)
            .draw()?;
        let own = case.times[2].map(|[exchange, rest]| exchange + rest);
        for (place, (_, name, _)) in WAYS.iter().enumerate() {
            let x = place as f64;
            let (column, base) = chart.backend_coord(&(x + 0.5, 0.0));
            root.draw(&Text::new(*name, (column, base + 20), centred(12)))?;
            let Some([exchange, rest]) = case.times[place] else { continue };
            let bar = |low: f64, high: f64| [(x + 0.16, low), (x + 0.84, high)];
            let colour = COLOURS[place];
            chart.draw_series([Rectangle::new(bar(0.0, rest), COMPUTING.filled())])?;
            chart.draw_series([Rectangle::new(bar(rest, rest + exchange), colour.filled())])?;
            let (_, above) = chart.backend_coord(&(x + 0.5, rest + exchange));
            let time = exchange + rest;
            let ratio = match own {
                Some(own) if place < 2 => format!(" ({:.2}x)", time / own),
                _ => String::new(),
            };
            let value = format!("{} us{ratio}", us(time));
            root.draw(&Text::new(value, (column, above - 5), centred(13)))?;
            if rest > 0.0 {
                let (_, middle) = chart.backend_coord(&(x + 0.5, rest / 2.0));
                root.draw(&Text::new("computing", (column, middle), centred(12)))?;
            }
        }
        let (column, base) = chart.backend_coord(&(WAYS.len() as f64 / 2.0, 0.0));
        let kib = case.bytes as f64 / 1024.0;
        let runs = if case.runs == 1 { "1 run" } else { "runs" };
        let under = match case.runs {
            1 => format!("{kib:.0} KiB exchanged, {runs} of each"),
            number => format!("{kib:.0} KiB exchanged, {number} {runs} of each"),
        };
        root.draw(&Text::new(under, (column, base + 42), centred(12)))?;
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::Part;
    use super::*;

    fn record(way: Way, case: &str, exchange: f64, computing: f64) -> Record {
        let part = |name: &str, us| Part { name: name.to_owned(), us };
        let mut parts = vec![part("exchange", exchange)];
        if computing > 0.0 {
            parts.push(part("compute", computing));
        }
        Record { way, case: case.to_owned(), what: format!("case {case}"), bytes: 4096, parts }
    }

    fn records() -> Vec<Record> {
        let mut all = Vec::new();
        for run in [1.0, 2.0, 40.0] {
            for (way, factor) in [(Way::Interpreter, 8.0), (Way::Hand, 4.0), (Way::Typepack, 2.0)] {
                all.push(record(way, "faces", run * factor, 0.0));
                all.push(record(way, "solver", run * factor, 100.0));
            }
        }
        all
    }

    #[test]
    fn medians_of_the_runs_are_put_side_by_side() {
        let cases = cases(&records());
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].times, [Some([16.0, 0.0]), Some([8.0, 0.0]), Some([4.0, 0.0])]);
        assert_eq!(cases[1].times[1], Some([8.0, 100.0]));
        assert_eq!(cases[0].runs, 3);
        let text = table(&cases);
        assert!(text.contains("16.0 (4.00x)") && text.contains("4.0 (1.00x)"), "{text}");
        assert!(text.contains("computing"), "{text}");
    }

    #[test]
    fn the_picture_says_what_is_compared() {
        let picture = svg(&cases(&records())).expect("a picture");
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
        for part in ["The same halo exchanges", "microseconds", "16.0 us (4.00x)", "3 runs of each"]
        {
            assert!(picture.contains(part), "{part}");
        }
        for (_, name, about) in WAYS {
            assert!(picture.contains(&format!("{name}: ")), "{name}");
            // Apostrophes are written as entities.
            assert!(picture.contains(about.split('\'').next().expect("a text")), "{about}");
        }
        assert!(svg(&[]).is_err());
    }

    #[test]
    fn a_way_that_was_not_measured_is_left_out() {
        let cases = cases(&[record(Way::Hand, "faces", 3.0, 0.0)]);
        assert!(table(&cases).contains("3.0"));
        assert!(svg(&cases).expect("a picture").contains("3.0 us<") || cases[0].times[2].is_none());
    }
}
