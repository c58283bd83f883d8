//! Checks the reference layouts and those of DDTBench: their sizes, their hand-written loops, and that
//! every competitor gives the same bytes as the oracle (the engine's naive walk over the typemap).

use std::path::Path;
use typepack_bench::competitor;
use typepack_bench::competitor::hand::Hands;
use typepack_bench::definition::Definitions;
use typepack_bench::layout::{Layout, sizes_of};
use typepack_bench::prepare::Bench;
use typepack_bench::row::HAND;
use typepack_engine::iov::Iov;

/// A test skips layouts with more packed bytes than `PAYLOAD` or more bytes of memory than `MEMORY`,
/// because they take long in debug builds. `typepack-bench peers` verifies these layouts when it runs.
const PAYLOAD: u64 = 128 << 10;
const MEMORY: usize = 48 << 20;

#[test]
fn every_layout_verifies_for_every_competitor() {
    let jits = competitor::generators();
    let hands = Hands::found(Path::new("/nonexistent"));
    let sets = [Definitions::reference(), Definitions::ddtbench()];
    let mut measured = 0;
    for (definitions, definition) in
        sets.iter().flat_map(|set| set.layouts.iter().map(move |layout| (set, layout)))
    {
        for size in sizes_of(definition, &definitions.sizes) {
            let layout = Layout::new(definition, size).expect("a layout at its own sizes");
            if layout.payload > PAYLOAD || layout.memory > MEMORY {
                continue;
            }
            let competitors = competitor::all(&layout, &jits, &hands.loops, None).expect("plans");
            let names: Vec<&str> = competitors.iter().map(|c| c.name()).collect();
            let forced = names.len() - 3;
            assert_eq!(names[forced..], ["leaf", "jit", "interpreter"]);
            assert_eq!((names[0], names[forced - 1]), ("memcpy", "typepack"));
            assert_eq!(names.contains(&HAND), layout.nest.is_some(), "{}", definition.name);
            Bench::verified(layout, competitors).expect("right answers");
            measured += 1;
        }
    }
    assert!(measured > 100, "{measured}");
}

#[test]
fn all_sizes_make_layouts_near_them() {
    let definitions = Definitions::reference();
    for definition in &definitions.layouts {
        let sizes = sizes_of(definition, &definitions.sizes);
        assert!(!sizes.is_empty(), "{}", definition.name);
        for size in sizes {
            let layout = Layout::new(definition, size).expect("a layout at its own sizes");
            let (name, payload) = (&layout.name, layout.payload);
            assert!(payload <= size && payload * 3 >= size * 2, "{name} at {size}: {payload}");
        }
    }
}

#[test]
fn every_layout_has_a_hand_loop() {
    for definitions in [Definitions::reference(), Definitions::ddtbench()] {
        for definition in &definitions.layouts {
            let size = sizes_of(definition, &definitions.sizes)[0];
            let layout = Layout::new(definition, size).expect("a layout");
            assert!(layout.nest.is_some(), "{}", layout.name);
        }
    }
}

#[test]
fn ddtbench_has_its_runs_and_bytes() {
    let facts = include_str!("../../engine/tests/golden/ddtbench.csv");
    let definitions = Definitions::ddtbench();
    let rows: Vec<Vec<&str>> =
        facts.lines().skip(1).map(|line| line.split(';').collect()).collect();
    assert_eq!(rows.len(), definitions.layouts.len());
    for (definition, row) in definitions.layouts.iter().zip(rows) {
        assert_eq!(definition.name, row[0]);
        let size = sizes_of(definition, &[])[0];
        assert_eq!(size.to_string(), row[4], "{}", definition.name);
        let layout = Layout::new(definition, size).expect("a layout at its own size");
        let plan = layout.datatype.commit().expect("a plan");
        let iov = Iov::new(&plan);
        let runs = iov.runs(layout.count, 0).expect("runs").count();
        // The index lists are random. If two consecutive indices happen to be neighbours in memory, they
        // form one run, so there may be a few fewer runs than in the CSV file.
        let wanted: usize = row[3].parse().expect("a number");
        let close = runs <= wanted && runs * 100 >= wanted * 95;
        assert!(close, "{}: {runs} runs, not {wanted}", definition.name);
    }
}
