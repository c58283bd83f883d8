//! Draws the times of one or two runs as an SVG picture.
//!
//! The left half shows the time per step. It has one bar for each rank of each run, in which the times of
//! the phases are stacked. The right half shows the time of an exchange without computation: the median,
//! and the 10th and 90th percentiles. `job.rs` passes the [`Measurement`] of this run and, for `--compare`,
//! that of an earlier run.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::measure::{Measurement, PHASES};

const SIZE: (u32, u32) = (960, 480);
/// One colour per phase: warm colours for communication, cool colours for computation.
const COLOURS: [RGBColor; 5] = [
    RGBColor(230, 126, 34),
    RGBColor(52, 120, 180),
    RGBColor(192, 57, 43),
    RGBColor(110, 170, 215),
    RGBColor(160, 175, 185),
];
const RUNS: [RGBColor; 2] = [RGBColor(39, 130, 90), RGBColor(150, 110, 170)];
const INK: RGBColor = RGBColor(50, 50, 50);

/// Returns the picture of one or two `runs` as SVG text.
pub fn svg(runs: &[&Measurement]) -> Result<String, String> {
    let mut text = String::new();
    draw(runs, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw(runs: &[&Measurement], text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let font = |size: i32| ("sans-serif", size).into_font().color(&INK);
    let centred = |size: i32| font(size).pos(Pos::new(HPos::Center, VPos::Bottom));
    let title = format!("typepack halo: {}", runs[0].setup);
    root.draw(&Text::new(title, (24, 16), font(17)))?;
    let (_, below) = root.split_vertically(48);
    let (left, right) = below.split_horizontally(560);

    // The left half: the times of the phases.
    let bars: Vec<(String, [f64; 5])> = runs
        .iter()
        .flat_map(|run| {
            let per_step = 1e6 / run.steps.max(1) as f64;
            let name = format!("jit {}", run.jit);
            let ranks = run.phases.iter().enumerate();
            ranks.map(move |(rank, times)| {
                (format!("{name}, rank {rank}"), times.map(|seconds| seconds * per_step))
            })
        })
        .collect();
    let top = bars.iter().map(|(_, times)| times.iter().sum()).fold(1.0, f64::max) * 1.45;
    let mut chart = ChartBuilder::on(&left)
        .margin(16)
        .x_label_area_size(30)
        .y_label_area_size(64)
        .caption("time per step, by phase", font(15))
        .build_cartesian_2d(0.0..bars.len() as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_desc("microseconds")
        .y_label_formatter(&|us| format!("{us:.0}"))
        .label_style(font(12))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (phase, name) in PHASES.into_iter().enumerate() {
        if bars.iter().all(|(_, times)| times[phase] == 0.0) {
            continue;
        }
        let colour = COLOURS[phase];
        let boxes = bars.iter().enumerate().map(|(place, (_, times))| {
            let low: f64 = times[..phase].iter().sum();
            let x = place as f64;
            Rectangle::new([(x + 0.15, low), (x + 0.85, low + times[phase])], colour.filled())
        });
        chart
            .draw_series(boxes)?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(INK.mix(0.3))
        .label_font(font(12))
        .draw()?;
    // If there are many bars, their full names would overlap, so the picture shows fewer and shorter names.
    let every = bars.len().div_ceil(6);
    for (place, (name, _)) in bars.iter().enumerate().step_by(every) {
        let (x, y) = chart.backend_coord(&(place as f64 + 0.5, 0.0));
        let name = if bars.len() > 4 {
            name.replace("jit ", "").replace("rank ", "")
        } else {
            name.clone()
        };
        root.draw(&Text::new(name, (x, y + 22), centred(12)))?;
    }

    // The right half: the exchange without computation.
    let top = runs.iter().map(|run| run.exchange[2] * 1e6).fold(1e-3, f64::max) * 1.2;
    let mut chart = ChartBuilder::on(&right)
        .margin(16)
        .x_label_area_size(30)
        .y_label_area_size(64)
        .caption("one exchange without computation", font(15))
        .build_cartesian_2d(0.0..runs.len() as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_desc("microseconds, median and 10 % to 90 %")
        .label_style(font(12))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (place, run) in runs.iter().enumerate() {
        let [low, median, high] = run.exchange.map(|seconds| seconds * 1e6);
        let x = place as f64;
        let bar = [(x + 0.2, 0.0), (x + 0.8, median)];
        chart.draw_series([Rectangle::new(bar, RUNS[place % 2].filled())])?;
        let line = |from, to| PathElement::new(vec![from, to], INK.stroke_width(2));
        chart.draw_series([
            line((x + 0.5, low), (x + 0.5, high)),
            line((x + 0.45, low), (x + 0.55, low)),
            line((x + 0.45, high), (x + 0.55, high)),
        ])?;
        let speed = run.bytes as f64 / median / 1e3;
        let (column, base) = chart.backend_coord(&(x + 0.5, 0.0));
        let (_, above) = chart.backend_coord(&(x + 0.5, high.max(median)));
        let value = format!("{median:.1} us, {speed:.1} GB/s");
        root.draw(&Text::new(value, (column, above - 6), centred(13)))?;
        root.draw(&Text::new(format!("jit {}", run.jit), (column, base + 22), centred(12)))?;
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(jit: &str, ranks: usize) -> Measurement {
        Measurement {
            jit: jit.into(),
            setup: "16x16x16 on 2x1x1".into(),
            steps: 10,
            exchanges: 10,
            bytes: 4096,
            phases: vec![[0.5, 1.0, 0.25, 2.0, 0.0]; ranks],
            exchange: [0.001, 0.002, 0.003],
            samples: 100,
        }
    }

    #[test]
    fn one_and_two_runs_are_drawn() {
        let one = svg(&[&run("lazy", 1)]).expect("a picture");
        assert!(one.starts_with("<svg") && one.contains("jit lazy, rank 0"));
        assert!(!one.contains("plain"));
        let two = svg(&[&run("lazy", 2), &run("off", 2)]).expect("a picture");
        assert!(two.contains("jit off, rank 1") && two.contains("2000.0 us"));
    }

    #[test]
    fn many_ranks_and_times_of_zero_are_drawn() {
        let mut none = run("off", 64);
        none.phases = vec![[0.0; 5]; 64];
        none.exchange = [0.0; 3];
        assert!(svg(&[&none]).expect("a picture").ends_with("</svg>\n"));
    }
}
