//! Turns the tables of `typepack-bench peers` in a record back into the [`Suite`] from which the command
//! printed them.
//!
//! `sections.rs` and `overview.rs` pass the suite to `summary.rs`, which compares it with the bars.

use crate::definition::Class;
use crate::measure::{Figure, Row};
use crate::record::{Line, Record, Table};
use crate::regret::{self, Regret};
use crate::suite::{Suite, SuiteRow};
use crate::suite_report::STORM;

/// Reads the rows of the table `name`. For the table of `peers`, also reads the tables of the storm and of
/// the regret.
///
/// Returns `None` if the record has no table `name`. Leaves out a row of the table if its number `bytes`,
/// `size` or `touched` cannot be read. A competitor without a bandwidth or without a spread has no figure
/// in the row.
pub(super) fn suite(record: &Record, name: &str) -> Option<Suite> {
    let table = record.table(name)?;
    let mut suite = Suite {
        peers: table.peers().into_iter().map(str::to_owned).collect(),
        rows: table.lines().filter_map(|line| row(table, &line)).collect(),
        ..Suite::default()
    };
    if name == crate::record::PEERS {
        suite.storm = record.table(STORM).map(storm).unwrap_or_default();
        suite.regret = record.table(regret::NAME).map(regrets).unwrap_or_default();
    }
    Some(suite)
}

fn row(table: &Table, line: &Line<'_>) -> Option<SuiteRow> {
    let bytes: u64 = line.text("bytes").parse().ok()?;
    let figure = |name: &str| -> Option<Figure> {
        let gb_per_s = line.speed(name)?;
        Some(Figure {
            competitor: name.to_owned(),
            executor: String::new(),
            ns: bytes as f64 / gb_per_s,
            gb_per_s,
            spread: line.number(&format!("{name}_spread"))?,
        })
    };
    let class = match line.text("class") {
        "gapped" => Class::Gapped,
        "bytes" => Class::Bytes,
        "transpose" => Class::Transpose,
        _ => Class::Plain,
    };
    Some(SuiteRow {
        row: Row {
            layout: line.text("layout").to_owned(),
            bytes,
            size: line.text("size").parse().ok()?,
            direction: if line.text("direction") == "unpack" { "unpack" } else { "pack" },
            figures: table.competitors().into_iter().filter_map(figure).collect(),
        },
        class,
        touched: line.text("touched").parse().ok()?,
    })
}

fn storm(table: &Table) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in table.lines() {
        let layout = line.text("layout");
        let bytes: u64 = line.text("bytes").parse().unwrap_or(0);
        let (Some(ns), Some(spread)) = (line.number("ns"), line.number("spread")) else { continue };
        if rows.last().is_none_or(|row| row.layout != layout) {
            let layout = layout.to_owned();
            let figures = Vec::new();
            rows.push(Row { layout, bytes, size: bytes, direction: "pack", figures });
        }
        if let Some(row) = rows.last_mut() {
            let competitor = line.text("competitor").to_owned();
            let (executor, gb_per_s) = (String::new(), bytes as f64 / ns);
            row.figures.push(Figure { competitor, executor, ns, gb_per_s, spread });
        }
    }
    rows
}

fn regrets(table: &Table) -> Vec<Regret> {
    let regret = |line: Line<'_>| -> Option<Regret> {
        Some(Regret {
            layout: line.text("layout").to_owned(),
            bytes: line.text("bytes").parse().ok()?,
            uses: line.text("uses").parse().ok()?,
            ns: [line.number("never_ns")?, line.number("at_once_ns")?, line.number("policy_ns")?],
            steady: line.text("steady") == "true",
        })
    };
    table.lines().filter_map(regret).collect()
}
