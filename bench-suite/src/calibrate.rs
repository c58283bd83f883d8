//! Measures the table of the engine's cost model (`engine/src/plan/cost/table.rs`) on this machine.
//!
//! `typepack-bench calibrate` prints the table as Rust source. An executor is the code that moves the data
//! of a call: leaf kernels, compiled kernels, or the interpreter. A row is one execution of the innermost
//! loop, which moves a sequence of leaves. A leaf is a block of bytes, or a window: a few short runs, such
//! as the members of a struct.
//!
//! For leaf kernels and compiled kernels and for every block size, the command times three layouts: a short
//! row, a long row, and several short rows. It times the interpreter with blocks of 8 bytes only, and leaf
//! kernels that move windows with a short and a long list of elements (`windowed`). The bytes of each
//! layout, together with their packed form, fit into a first-level cache of 48 KiB. From the three
//! times, the command computes the fixed cost of a call, the fixed cost of a row, and the time of a run. A
//! run is a block of up to 64 bytes, or 64 bytes of a longer block. In a window, a run is a cache line for
//! kernels that move whole lines, and a move of up to 16 bytes for all other kernels. The command forces
//! the engine to use the executor, and checks the name of the kernel that the engine has chosen, because a
//! table with the times of the wrong executor would be worse than no table.

use crate::buffer::{Buffer, PAGE};
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use typepack_engine::kernel::{Direction, Nest};
use typepack_engine::{Datatype, Isa, Named, Plan, Result, Settings, Strategy, pack, unpack};
use typepack_jit::{Jit, Mode};

/// The block lengths in bytes, in the order of the table. The last one stands for all blocks longer than
/// 64 bytes.
const BLOCKS: [i64; 8] = [1, 2, 4, 8, 16, 32, 64, 512];
/// The number of leaves in a short row. A short row of the longest blocks has only 5.
const FEW: i64 = 16;
/// The number of moves of up to 16 bytes in a struct of 16 bytes (`record(16)`): one of 1 byte and one of
/// 12 bytes.
const MOVES: f64 = 2.0;
/// The number of rows in the layout of several rows.
const ROWS: i64 = 8;
/// The largest number of bytes of memory that the long row may span. Its memory and its packed bytes
/// together fit into a first-level cache of 48 KiB.
const SPAN: i64 = 20 << 10;
/// The number of rounds in which a layout is timed. The time of the fastest round counts, because every
/// disturbance makes a round slower.
const ROUNDS: usize = 30;
/// The intended duration of a round, in nanoseconds.
const ROUND_NS: f64 = 40_000.0;

/// An executor (the code that moves the data of a call) to measure.
#[derive(Clone)]
struct Executor {
    settings: Settings,
    /// A text that the names of all kernels of this executor contain.
    name: String,
}

/// The fixed cost of a call, the fixed cost of a row, and the time of a run, in picoseconds.
struct Cost([f64; 3]);

impl Cost {
    fn text(&self) -> String {
        let [call, row, run] = self.0.map(|ps| ps.max(0.0).round() as u32);
        format!("Cost {{ call: {call}, row: {row}, run: {run} }}")
    }
}

/// Measures all executors and returns the table as Rust source.
///
/// # Errors
///
/// Returns a one-line message if the machine lacks an instruction set of the table, if the engine refuses a layout or
/// chooses an executor other than the forced one, or if the system refuses memory.
pub fn table() -> std::result::Result<String, String> {
    let mut text = String::from(HEADER);
    let jit = Jit::new(typepack_jit::Settings { mode: Mode::Eager, ..Default::default() });
    let compiled = Executor {
        settings: Settings { compiler: Some(Arc::new(jit)), ..forced(Strategy::Kernel) },
        name: "pack ".to_owned(),
    };
    let leaf = |isa: Isa, kind: &str| Executor {
        settings: Settings { isa: Some(isa), ..forced(Strategy::Leaf) },
        name: format!("leaf {kind} {isa}"),
    };
    for isa in [Isa::Avx512, Isa::Avx2, Isa::Portable] {
        if !isa.is_available() {
            return Err(format!(
                "this machine has no {isa}, so its part of the table cannot be measured"
            ));
        }
        section(&mut text, isa.name(), "[Leaves; 2] = [", |text, direction| {
            let row = leaf(isa, "row");
            writeln!(text, "    Leaves {{").expect("writing to a String cannot fail");
            blocks(text, "strided", &row, direction, strided)?;
            blocks(text, "listed", &row, direction, listed)?;
            // Leaf kernels move windows either with permutes, which only AVX-512 has, or run by run, with
            // code that is the same in all instruction sets. So these two measurements do not depend on
            // `isa`.
            let (lines, runs) = (leaf(Isa::Avx512, "window"), leaf(Isa::Portable, "runs"));
            let one = windowed(&lines, direction, &record(16), 16.0 / 64.0)?;
            let several = windowed(&lines, direction, &record(56), 56.0 / 64.0)?;
            let _ = writeln!(text, "        window: [{}, {}],", one.text(), several.text());
            let runs = windowed(&runs, direction, &record(16), MOVES)?;
            let _ = writeln!(text, "        runs: {},\n    }},", runs.text());
            Ok(())
        })?;
    }
    section(&mut text, "KERNELS", "[Kernels; 2] = [", |text, direction| {
        writeln!(text, "    Kernels {{").expect("writing to a String cannot fail");
        blocks(text, "strided", &compiled, direction, strided)?;
        blocks(text, "listed", &compiled, direction, listed)?;
        let window = cost(&compiled, direction, MOVES, FEW, |rows, n| {
            grid(rows, n.min(SPAN / 16), 16, &record(16)?)
        })?;
        let _ = writeln!(text, "        window: {},\n    }},", window.text());
        Ok(())
    })?;
    section(&mut text, "INTERPRETER", "[Cost; 2] = [", |text, direction| {
        let settings = forced(Strategy::Interpreter);
        let interpreter = Executor { settings, name: "interpreter".to_owned() };
        let cost = cost(&interpreter, direction, 1.0, FEW, |rows, n| {
            strided(rows, n.min(SPAN / stride(8)), 8)
        })?;
        let _ = writeln!(text, "    {},", cost.text());
        Ok(())
    })?;
    Ok(text)
}

const HEADER: &str = "\
//! The times of the executors in picoseconds, for data in the first-level cache; packing comes first.
//!
//! Generated on an Intel Xeon (Sapphire Rapids) by `typepack-bench calibrate >
//! engine/src/plan/cost/table.rs` and `cargo fmt`. Do not edit this file by hand.

use super::{Cost, Kernels, Leaves};
";

type Text = std::result::Result<(), String>;

fn section(
    text: &mut String,
    name: &str,
    ty: &str,
    mut each: impl FnMut(&mut String, Direction) -> Text,
) -> Text {
    let _ = writeln!(text, "\npub(super) static {}: {ty}", name.to_uppercase());
    for direction in [Direction::Pack, Direction::Unpack] {
        each(text, direction)?;
    }
    text.push_str("];\n");
    Ok(())
}

fn blocks(
    text: &mut String,
    name: &str,
    executor: &Executor,
    direction: Direction,
    layout: impl Fn(i64, i64, i64) -> Result<Datatype>,
) -> Text {
    let _ = writeln!(text, "        {name}: [");
    for block in BLOCKS {
        let runs = if block > 64 { block as f64 / 64.0 } else { 1.0 };
        // Only 20 of the longest blocks fit in the `SPAN` bytes of the long row. The short row has only 5
        // of them instead of `FEW`, so that the lengths of the two rows differ enough.
        let few = if block > 64 { 5 } else { FEW };
        let cost = cost(executor, direction, runs, few, |rows, n| {
            layout(rows, n.min(SPAN / stride(block)), block)
        })?;
        let _ = writeln!(text, "            {},", cost.text());
    }
    text.push_str("        ],\n");
    Ok(())
}

fn forced(strategy: Strategy) -> Settings {
    Settings { strategy: Some(strategy), ..Settings::default() }
}

/// Returns a stride so large that leaf kernels move each block separately.
fn stride(block: i64) -> i64 {
    (2 * block).max(24)
}

fn bytes(length: i64) -> Result<Datatype> {
    Datatype::contiguous(length, &Datatype::named(Named::BYTE))
}

/// Makes `rows` rows of `n` blocks each. The blocks of a row have a constant stride.
fn strided(rows: i64, n: i64, block: i64) -> Result<Datatype> {
    grid(rows, n, stride(block), &bytes(block)?)
}

/// Makes `rows` rows of `n` elements of the type `old`. The elements of a row are `stride` bytes apart.
fn grid(rows: i64, n: i64, stride: i64, old: &Datatype) -> Result<Datatype> {
    let row = Datatype::hvector(n, 1, stride, old)?;
    // The gap of 64 bytes keeps the engine from merging consecutive rows into one.
    Datatype::hvector(rows, 1, n * stride + 64, &row)
}

/// Makes `rows` rows of `n` blocks each. The blocks of a row have irregular displacements, as in an index
/// list.
fn listed(rows: i64, n: i64, block: i64) -> Result<Datatype> {
    // The distances between blocks vary, so that the engine cannot use a constant stride.
    let at: Vec<i64> =
        (0..n).map(|i| i * stride(block) + i * i % 7 % 2 * (stride(block) / 2)).collect();
    let row = Datatype::hindexed_block(1, &at, &bytes(block)?)?;
    Datatype::hvector(rows, 1, n * stride(block) + 64 + stride(block), &row)
}

/// Makes a struct. If `extent` is 16, the struct is `{char, int, double}`. Otherwise it has two runs, of
/// 28 and 24 bytes, in 56 bytes.
fn record(extent: i64) -> Result<Datatype> {
    let byte = Datatype::named(Named::BYTE);
    let list = match extent {
        16 => Datatype::hindexed(&[1, 4, 8], &[0, 4, 8], &byte)?,
        _ => Datatype::hindexed(&[28, 24], &[0, 32], &byte)?,
    };
    Datatype::resized(0, extent, &list)
}

/// Computes the [`Cost`] of an executor from the times of three layouts. `layout(rows, n)` makes `rows` rows
/// of at most `n` leaves (blocks or windows) each; a leaf has `runs` runs. A short row has at most `few`
/// leaves.
fn cost(
    executor: &Executor,
    direction: Direction,
    runs: f64,
    few: i64,
    layout: impl Fn(i64, i64) -> Result<Datatype>,
) -> std::result::Result<Cost, String> {
    let short = time(executor, direction, &layout(1, few), 1)?;
    let many = time(executor, direction, &layout(1, SPAN), 1)?;
    let rows = time(executor, direction, &layout(ROWS, few), 1)?;
    // `leaves` is the number of leaves that a layout really has. For the long row, the code requests `SPAN`
    // leaves, but the row has only as many leaves as fit in `SPAN` bytes.
    let run = ((many.ns - short.ns) / (many.leaves - short.leaves) / runs).max(0.0);
    let in_rows = rows.leaves * runs * run;
    let row = ((rows.ns - in_rows) - (short.ns - short.leaves * runs * run)) / (ROWS - 1) as f64;
    // `short.ns` minus the time of its runs is the fixed cost of one call plus that of one row. So the cost
    // of a row cannot exceed this difference.
    let row = row.clamp(0.0, (short.ns - short.leaves * runs * run).max(0.0));
    let call = short.ns - short.leaves * runs * run - row;
    Ok(Cost([call, row, run].map(|ns| ns * 1000.0)))
}

/// Computes the [`Cost`] of an executor that moves windows, from the times of 8 and of 256 elements of the type
/// `element`, each of which has `runs` runs. The loop over the elements is the only loop of such a layout. So
/// there is no separate cost of a row, and the table states 0 for it.
fn windowed(
    executor: &Executor,
    direction: Direction,
    element: &Result<Datatype>,
    runs: f64,
) -> std::result::Result<Cost, String> {
    let few = time(executor, direction, element, 8)?;
    let many = time(executor, direction, element, 256)?;
    let run = (many.ns - few.ns) / 248.0 / runs;
    let call = few.ns - 8.0 * runs * run;
    Ok(Cost([call, 0.0, run].map(|ns| ns * 1000.0)))
}

/// The time of a call in nanoseconds, and the number of leaves that the call moves.
struct Time {
    ns: f64,
    leaves: f64,
}

fn time(
    executor: &Executor,
    direction: Direction,
    ty: &Result<Datatype>,
    count: u64,
) -> std::result::Result<Time, String> {
    let text = |e: &typepack_engine::Error| e.to_string();
    let ty = ty.as_ref().map_err(text)?;
    let plan: Plan = ty.commit_with(&executor.settings).map_err(|e| e.to_string())?;
    let name = plan.kernel_name(direction);
    if !name.contains(&executor.name) {
        return Err(format!(
            "{ty:?}: the kernel is {name}; its name must contain \"{}\"",
            executor.name
        ));
    }
    let leaves =
        |nest: &Nest| nest.levels.iter().map(|level| level.count() as f64).product::<f64>();
    let leaves = plan.nests().map(leaves).sum::<f64>() * count as f64;
    // The memory is page-aligned, as in all other measurements. Whether blocks cross cache lines changes
    // the time as much as the choice of the executor does.
    let mut memory = Buffer::new((ty.extent().unsigned_abs() * count) as usize + PAGE)?;
    let packed = plan.packed_bytes(count).map_err(|e| e.to_string())?;
    let mut packed = Buffer::new(packed as usize)?;
    let mut call = || {
        let done = match direction {
            Direction::Pack => pack(&plan, count, memory.bytes(), packed.bytes_mut()),
            Direction::Unpack => unpack(&plan, count, packed.bytes(), memory.bytes_mut()),
        };
        black_box(done).map(|_| ()).map_err(|e| e.to_string())
    };
    let mut batch = |calls: usize| {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        Ok::<f64, String>(start.elapsed().as_nanos().max(1) as f64 / calls as f64)
    };
    let calls = (ROUND_NS / batch(100)?).ceil() as usize;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(batch(calls)?);
    }
    Ok(Time { ns: rounds.into_iter().fold(f64::INFINITY, f64::min), leaves })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_are_what_they_are_said_to_be() {
        let plan = |ty: Result<Datatype>| ty.and_then(|ty| ty.commit()).expect("a plan");
        let counts = |plan: &Plan| -> Vec<u64> {
            let nest = plan.nests().next().expect("one nest");
            nest.levels.iter().map(|level| level.count()).collect()
        };
        assert_eq!(counts(&plan(strided(8, 16, 8))), [1, 8, 16]);
        assert_eq!(counts(&plan(strided(1, 100, 512))), [1, 100]);
        assert_eq!(counts(&plan(listed(8, 16, 64))), [1, 8, 16]);
        assert_eq!(counts(&plan(grid(8, 16, 16, &record(16).expect("a struct")))), [1, 8, 16]);
        assert_eq!(counts(&plan(record(56))), [1]);
    }

    #[test]
    fn costs_are_source() {
        let cost = Cost([1234.4, -3.0, 99.6]);
        assert_eq!(cost.text(), "Cost { call: 1234, row: 0, run: 100 }");
    }
}
