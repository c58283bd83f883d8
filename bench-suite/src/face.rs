//! Measures how much longer a call of the C functions takes than the Rust call. Both sides, C and Rust,
//! take turns packing or unpacking small layouts.
//!
//! `typepack-bench pack` prints the results. Both sides commit the type with the policy that an application
//! gets, and make many calls before they are timed, so that the policy compiles a kernel if that pays
//! (`measure.rs`). The Rust side calls the safe functions of the engine with their bounds checks. The C
//! side calls `MPI_Pack` and `MPI_Unpack` with all their checks.

use crate::competitor::typed;
use crate::definition::LayoutDefinition;
use crate::layout::Layout;
use crate::measure::measure;
use crate::peer::{C, Face};
use crate::prepare::Bench;
use crate::row::report::size_text;
use crate::row::{Row, TYPEPACK};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;
use std::sync::Arc;
use typepack_engine::Settings;
use typepack_engine::kernel::Direction;
use typepack_jit::Jit;

/// The bar: the number of nanoseconds that a C call may take longer than the Rust call.
pub const BAR: f64 = 5.0;
/// The sizes in packed bytes. At sizes as small as these, a few nanoseconds per call matter.
pub const SIZES: [u64; 2] = [128, 1024];

/// Measures each layout of `definitions` at each of [`SIZES`] at which the layout exists.
///
/// # Errors
///
/// Returns a one-line message if the engine or the C library refuses a type or a call, if an answer is
/// wrong, or if there is not enough memory.
pub fn rows(
    face: Face,
    definitions: &[&LayoutDefinition],
    directions: &[Direction],
    rounds: usize,
) -> Result<Vec<Row>, String> {
    let jit = Jit::new(typepack_jit::Settings::default());
    let settings = Settings { compiler: Some(Arc::new(jit)), ..Settings::default() };
    let mut rows = Vec::new();
    for definition in definitions {
        // A layout is skipped at a size at which it does not exist. For example, there is no face of 128
        // bytes.
        for layout in SIZES.iter().filter_map(|&size| Layout::new(definition, size).ok()) {
            let name = layout.name.clone();
            let rust = typed(TYPEPACK, &layout.datatype, layout.count, &settings)
                .map_err(|e| format!("layout {name}: {e}"))?;
            let c = face.competitor(&layout).map_err(|e| format!("layout {name}: {e}"))?;
            let mut bench = Bench::verified(layout, vec![rust, c])?;
            let size = bench.layout.payload;
            rows.extend(directions.iter().map(|&d| measure(&mut bench, size, d, rounds)));
        }
    }
    Ok(rows)
}

/// Returns how many nanoseconds longer the C call takes than the Rust call, and whether both figures are
/// steady. Returns `None` if the row lacks one of the two figures.
fn over(row: &Row) -> Option<(f64, bool)> {
    let (rust, c) = (row.figure(TYPEPACK)?, row.figure(C)?);
    Some((c.ns - rust.ns, rust.is_steady() && c.is_steady()))
}

/// Returns the rows as a human-readable table, followed by the verdict.
pub fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["layout", "size", "dir", "Rust ns", "C ns", "over ns", ""]);
    let mut steady = Vec::new();
    for row in rows {
        let ns = |name| row.figure(name).map_or(f64::NAN, |figure| figure.ns);
        let Some((more, agrees)) = over(row) else { continue };
        if agrees {
            steady.push(more);
        }
        table.add_row([
            row.name.clone(),
            size_text(row.bytes),
            row.part.clone(),
            format!("{:.1}", ns(TYPEPACK)),
            format!("{:.1}", ns(C)),
            format!("{more:.1}"),
            if agrees { "" } else { "~" }.to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(3).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    steady.sort_by(f64::total_cmp);
    let mut text = format!("{table}\n");
    let (most, middle) = (steady.last(), steady.get(steady.len() / 2));
    let _ = match (most, middle) {
        (Some(most), Some(middle)) => writeln!(
            text,
            "{} C face over the Rust call: {middle:.1} ns in the middle, {most:.1} ns at most \
             (bar: {BAR} ns), {} rows, {} unsteady.",
            if *most <= BAR { "pass" } else { "MISS" },
            steady.len(),
            rows.len() - steady.len()
        ),
        _ => writeln!(text, "No steady row tells what the C face costs."),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::{C, TYPEPACK, table};
    use crate::row::{Figure, Row};

    fn row(rust: f64, c: f64, spread: f64) -> Row {
        let figures = vec![Figure::new(TYPEPACK, rust, 1.0), Figure::new(C, c, spread)];
        Row { figures, ..Row::default() }
    }

    #[test]
    fn the_steady_row_that_costs_most_decides() {
        let rows = [row(10.0, 13.0, 1.0), row(10.0, 14.5, 1.0), row(10.0, 40.0, 2.0)];
        let text = table(&rows);
        assert!(text.contains("pass C face") && text.contains("4.5 ns at most"), "{text}");
        assert!(text.contains("2 rows, 1 unsteady"), "{text}");
        assert!(table(&[row(10.0, 16.0, 1.0)]).contains("MISS"));
        assert!(table(&rows[2..]).contains("No steady row"));
    }
}
