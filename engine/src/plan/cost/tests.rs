//! Checks the cost model's choices for given costs.

use super::*;
use crate::kernel::Levels;

const PRICE: u64 = 100_000_000;

fn line(fixed: f64, each: f64) -> Line {
    Line { fixed, each }
}

#[test]
fn a_kernel_that_is_better_everywhere_takes_all_calls() {
    let choice = decide(line(9000.0, 1000.0), line(5000.0, 500.0), 8.0, PRICE);
    assert_eq!((choice.most, choice.price), (u64::MAX, PRICE));
    // The kernel saves 4 ns per call, and another 0.5 ns per 8 bytes.
    assert_eq!(choice.saving(80), 4000 + 5000);
    assert_eq!(choice.saving(0), 4000);
}

#[test]
fn a_kernel_that_starts_faster_takes_small_calls() {
    let choice = decide(line(9000.0, 500.0), line(5000.0, 1000.0), 16.0, PRICE);
    assert_eq!(choice.most, 8 * 16);
    assert_eq!(choice.saving(4 * 16), 2000);
    assert_eq!(choice.saving(100 * 16), 0);
}

#[test]
fn a_kernel_that_is_worse_everywhere_is_never_asked_for() {
    let never = Choice { most: 0, price: u64::MAX, call: 0, kib: 0 };
    assert_eq!(decide(line(5000.0, 500.0), line(5000.0, 600.0), 8.0, PRICE), never);
    // The kernel saves so little per call, and loses so much per iteration, that it is slower even
    // for a single iteration.
    assert_eq!(decide(line(5000.0, 500.0), line(4900.0, 9000.0), 8.0, PRICE), never);
    // The difference between the two times is within the measurement noise.
    assert_eq!(decide(line(5000.0, 500.0), line(5000.0, 490.0), 8.0, PRICE), never);
}

#[test]
fn a_kernel_that_starts_slower_pays_by_what_it_saves() {
    let choice = decide(line(5000.0, 1000.0), line(8000.0, 500.0), 8.0, PRICE);
    assert_eq!(choice.most, u64::MAX);
    assert_eq!(choice.saving(8), 0);
    assert_eq!(choice.saving(800), 50_000 - 3000);
}

#[test]
fn savings_of_gigantic_calls_are_numbers() {
    let choice = Choice { most: u64::MAX, price: 1, call: i64::MAX, kib: 1 };
    let _ = choice.saving(u64::MAX);
    let choice = Choice { most: u64::MAX, price: 1, call: 1000, kib: 1 << 28 };
    assert!(choice.saving(u64::MAX) > 1 << 49);
}

fn nest(levels: Vec<Level>, bytes: u64) -> Nest {
    Nest { base: 0, levels: Levels::from(levels), leaf: Leaf::Block { bytes } }
}

fn level(count: u64, stride: i64) -> Level {
    Level::Loop { count, stride }
}

#[test]
fn rows_and_runs_are_counted_per_outermost_iteration() {
    let cost = Cost { call: 5000, row: 3000, run: 200 };
    let one = nest(vec![level(1, 8)], 8);
    let of_one = Tally::of(&one).line(cost, 1.0);
    assert_eq!((of_one.fixed, of_one.each), (8000.0, 200.0));
    let three = nest(vec![level(1, 0), level(4, 1000), level(10, 16)], 8);
    let of_three = Tally::of(&three).line(cost, 1.0);
    assert_eq!((of_three.fixed, of_three.each), (5000.0, 4.0 * 3000.0 + 40.0 * 200.0));
}

/// Checks choices that follow from the measurements in `table.rs`. `typepack-bench calibrate`, which
/// writes `table.rs`, measures the differences explained below.
#[test]
fn choices_of_the_table() {
    let threshold = 512 << 10;
    for direction in [Direction::Pack, Direction::Unpack] {
        let ask = |nest: &Nest, class| choice(nest, direction, Isa::Avx512, class, threshold);
        // A kernel is compiled for the length of the block, so its loop is faster than the
        // interpreter, which calls a copy function for each block.
        let short = nest(vec![level(1, 0), level(64, 16)], 8);
        let choice = ask(&short, Class::Interpreter);
        assert_eq!(choice.most, u64::MAX);
        assert!(choice.saving(512) > 0);
        // The class `Interpreter` means that the settings force compiled kernels
        // (`Strategy::Kernel`). So the kernel runs these rows although the interpreter is as fast.
        let rows = nest(vec![level(1, 0), level(100, 10_000)], 5000);
        assert_eq!(ask(&rows, Class::Interpreter).most, u64::MAX);
        assert!(ask(&rows, Class::Interpreter).saving(5000) > 0);
        // For such blocks, leaf kernels use registers of 64 bytes, but compiled kernels use registers
        // of 16 bytes. So no kernel is wanted for large calls.
        let long = nest(vec![level(1, 0), level(1000, 1024)], 512);
        assert!(ask(&long, Class::Row).most < 1 << 20, "{direction:?}");
        // Tiles are faster because they visit memory in a better order. The table does not contain
        // this effect.
        assert_eq!(ask(&short, Class::Tile), Choice::NEVER);
        // For dense windows of many short blocks, moving line by line is faster than a kernel.
        let dense = nest(vec![level(1, 0), level(10_000, 2)], 1);
        assert!(ask(&dense, Class::Window).most < 10_000, "{direction:?}");
    }
}

#[test]
fn a_lower_threshold_is_a_lower_price() {
    let short = nest(vec![level(1, 0), level(64, 16)], 8);
    let ask = |threshold| {
        choice(&short, Direction::Pack, Isa::Portable, Class::Interpreter, threshold).price
    };
    assert_eq!(ask(0), 0);
    assert_eq!(ask(1000), 1000 * BYTE);
    assert_eq!(ask(u64::MAX - 1), u64::MAX);
}
