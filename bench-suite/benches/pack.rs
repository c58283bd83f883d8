//! Measures the layouts, sizes and competitors of `typepack-bench pack` with Criterion.
//!
//! `cargo bench -p typepack-bench --bench pack -- d1s2/16384` runs only the benchmarks of the layout
//! `d1s2` at 16384 bytes; `-- --test` runs every benchmark once. For ratios between competitors, prefer
//! `typepack-bench pack`: it lets the competitors take turns, while Criterion measures one competitor
//! after the other.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::time::Duration;
use typepack_bench::competitor::generators;
use typepack_bench::definition::Definitions;
use typepack_bench::layout::Layout;
use typepack_bench::measure::direction_name;
use typepack_bench::prepare::Bench;
use typepack_engine::kernel::Direction;

fn pack(criterion: &mut Criterion) {
    let definitions = Definitions::built_in();
    let jits = generators();
    for definition in &definitions.layouts {
        for &size in &definitions.sizes {
            let layout = Layout::new(definition, size).expect("a built-in layout and size");
            let mut bench = Bench::new(layout, &jits).expect("right answers");
            for direction in [Direction::Pack, Direction::Unpack] {
                let name = format!("{}/{size}/{}", definition.name, direction_name(direction));
                let mut group = criterion.benchmark_group(name);
                group.throughput(Throughput::Bytes(bench.layout.payload));
                for index in 0..bench.competitors.len() {
                    let id = BenchmarkId::from_parameter(bench.competitors[index].name());
                    group.bench_function(id, |b| b.iter(|| bench.call(index, direction)));
                }
                group.finish();
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600));
    targets = pack
}
criterion_main!(benches);
