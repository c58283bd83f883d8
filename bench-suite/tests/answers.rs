//! Checks that the answers of every competitor equal those of the oracle (the engine's naive walk over the
//! typemap), for every layout of `typepack-bench pack` in both directions.

use typepack_bench::competitor::generators;
use typepack_bench::definition::Definitions;
use typepack_bench::layout::Layout;
use typepack_bench::measure::measure;
use typepack_bench::prepare::Bench;
use typepack_engine::kernel::Direction;

#[test]
fn all_competitors_agree_with_the_oracle() {
    let jits = generators();
    for definition in &Definitions::built_in().layouts {
        for size in [1024, 2048, 16384, 128 << 10, 256 << 10] {
            let layout = Layout::new(definition, size).expect("a layout");
            // `Bench::new` verifies packing and unpacking of all competitors, including the gaps in
            // memory.
            let bench = Bench::new(layout, &jits).expect("right answers");
            let names: Vec<&str> = bench.competitors.iter().map(|c| c.name()).collect();
            assert_eq!(names, ["memcpy", "hand", "typepack", "leaf", "jit", "interpreter"]);
        }
    }
}

#[test]
fn columns_and_structs_run_compiled_kernels() {
    let jits = generators();
    for definition in &Definitions::built_in().layouts {
        // The rows of these faces are so long that the engine copies each with one memcpy instead of a
        // compiled kernel.
        if ["face-y", "face-z"].contains(&definition.name.as_str()) {
            continue;
        }
        let layout = Layout::new(definition, 16 << 10).expect("a layout");
        let bench = Bench::new(layout, &jits).expect("right answers");
        let compiled = bench.competitors.iter().find(|c| c.name() == "jit").expect("the JIT");
        for direction in [Direction::Pack, Direction::Unpack] {
            let executor = compiled.executor(direction);
            assert!(executor.contains("pack "), "{}: {executor}", definition.name);
        }
    }
}

#[test]
fn a_row_has_a_figure_for_everyone() {
    let definitions = Definitions::built_in();
    let layout = Layout::new(&definitions.layouts[0], 1024).expect("a layout");
    let mut bench = Bench::new(layout, &generators()).expect("right answers");
    let row = measure(&mut bench, 1024, Direction::Unpack, 1);
    assert_eq!((row.bytes, row.part.as_str(), row.figures.len()), (1024, "unpack", 6));
    assert!(row.figures.iter().all(|f| f.ns > 0.0));
    assert_eq!(row.against("jit", &["jit"]).map(|ratio| ratio.value), Some(1.0));
}
