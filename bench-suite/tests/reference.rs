//! The reference layouts: every competitor of the engine's side gives the oracle's bytes.

use typepack_bench::competitor::{self, HAND};
use typepack_bench::definition::Definitions;
use typepack_bench::layout::{Layout, sizes_of};
use typepack_bench::prepare::Bench;
use typepack_jit::{Jit, Mode, Settings};

/// Larger ones take long in debug builds; `typepack-bench peers` verifies them when it runs.
const PAYLOAD: u64 = 128 << 10;
const MEMORY: usize = 48 << 20;

#[test]
fn every_layout_verifies_for_every_competitor() {
    let jit = |mode| Jit::new(Settings { mode, ..Settings::default() });
    let (eager, lazy) = (jit(Mode::Eager), jit(Mode::Lazy));
    let definitions = Definitions::reference();
    let mut measured = 0;
    for definition in &definitions.layouts {
        for size in sizes_of(definition, &definitions.sizes) {
            let layout = Layout::new(definition, size).expect("a layout at its own sizes");
            if layout.payload > PAYLOAD || layout.memory > MEMORY {
                continue;
            }
            let competitors = competitor::reference(&layout, &eager, &lazy).expect("plans");
            let names: Vec<&str> = competitors.iter().map(|c| c.name()).collect();
            assert_eq!(names[..5], ["memcpy", "interpreter", "leaf", "jit", "typepack"]);
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
fn most_layouts_have_a_hand_loop() {
    let definitions = Definitions::reference();
    let without = definitions.layouts.iter().filter(|definition| {
        let size = sizes_of(definition, &definitions.sizes)[0];
        Layout::new(definition, size).expect("a layout").nest.is_none()
    });
    let names: Vec<&str> = without.map(|definition| definition.name.as_str()).collect();
    assert_eq!(names, ["struct2v", "wrf-y", "wrf-x"]);
}
