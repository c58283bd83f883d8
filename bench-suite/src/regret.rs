//! Measures the regret of the compilation policy: how much more time the policy takes than the better
//! choice.
//!
//! `suite.rs` calls this module. For a layout and a number of uses, a measurement times the whole
//! sequence: one commit and then that many packs, with a code generator that has compiled nothing yet.
//! The time of the default policy is divided by the shorter time of "never compile" and "compile at
//! commit".

use crate::layout::Layout;
use crate::measure::{STEADY, median};
use crate::prepare::Bench;
use serde::Serialize;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use typepack_engine::{Settings, pack};
use typepack_jit::{Jit, Mode};

/// The name of this table in records.
pub const NAME: &str = "regret";
/// Numbers of uses.
pub const USES: [usize; 7] = [1, 3, 10, 30, 100, 300, 1000];
/// The reference layouts to measure: name and packed bytes.
pub const LAYOUTS: [(&str, u64); 12] = [
    ("d1s2", 1 << 10),
    ("d1s8", 16 << 10),
    ("d3s7", 16 << 10),
    ("d8s16", 16 << 10),
    ("b1s2", 16 << 10),
    ("struct", 16 << 10),
    ("indexed", 16 << 10),
    ("list-perm", 1 << 10),
    ("list-perm", 16 << 10),
    ("face-x32", 8 << 10),
    ("face-x128", 128 << 10),
    ("cols64", 64 << 10),
];
/// Up to this number of uses, a turn is the median of [`STORIES`] sequences: a single sequence takes only
/// a few microseconds.
const SHORT: usize = 100;
/// Sequences in a turn of at most [`SHORT`] uses.
const STORIES: usize = 7;
/// The modes in the order of [`Regret::ns`].
const MODES: [Mode; 3] = [Mode::Off, Mode::Eager, Mode::Lazy];

/// The times of one layout for one number of uses.
#[derive(Clone, Debug, Serialize)]
pub struct Regret {
    /// The layout's name.
    pub layout: String,
    /// Packed bytes per use.
    pub bytes: u64,
    /// Uses of the type.
    pub uses: usize,
    /// Nanoseconds of the whole sequence: never compiled, compiled at commit, the default policy.
    pub ns: [f64; 3],
    /// Are the rounds of all three modes steady?
    pub steady: bool,
}

impl Regret {
    /// Returns the policy's time divided by the shorter one of the two other times.
    pub fn ratio(&self) -> f64 {
        self.ns[2] / self.ns[0].min(self.ns[1])
    }
}

/// Measures `layout` for every number in [`USES`].
///
/// # Errors
///
/// Returns a one-line message if memory is short or the engine refuses the layout.
pub fn measure(layout: &Layout, rounds: usize) -> Result<Vec<Regret>, String> {
    let (mut memory, mut packed) = Bench::buffers(layout)?;
    memory.bytes_mut().fill(1);
    packed.bytes_mut().fill(2);
    let mut rows = Vec::new();
    for uses in USES {
        let mut times = [const { Vec::new() }; 3];
        // The first round warms up the caches and does not count.
        for round in 0..=rounds.max(1) {
            for (mode, times) in MODES.into_iter().zip(&mut times) {
                let mut turn = Vec::new();
                for _ in 0..if uses <= SHORT { STORIES } else { 1 } {
                    turn.push(story(layout, mode, uses, memory.bytes(), packed.bytes_mut())?);
                }
                if round > 0 {
                    times.push(median(&mut turn));
                }
            }
        }
        let ns = times.each_mut().map(|times| median(times));
        let steady = times.iter().all(|times| times[times.len() - 1] / times[0] <= STEADY);
        let layout = layout.clone();
        rows.push(Regret { layout: layout.name, bytes: layout.payload, uses, ns, steady });
    }
    Ok(rows)
}

/// Returns the nanoseconds of a commit and `uses` packs.
fn story(
    layout: &Layout,
    mode: Mode,
    uses: usize,
    memory: &[u8],
    packed: &mut [u8],
) -> Result<f64, String> {
    // A new code generator, because a generator keeps its compiled kernels. Mapping code memory leaves
    // cold caches and TLBs. The measurement maps code memory for a spare generator in every mode, so that
    // all modes pay the same price.
    let new = |mode| Jit::new(typepack_jit::Settings { mode, ..typepack_jit::Settings::default() });
    let (jit, spare) = (new(mode), new(Mode::Eager));
    let settings = Settings { compiler: Some(Arc::new(jit)), ..Settings::default() };
    let start = Instant::now();
    let plan = layout.datatype.commit_with(&settings).map_err(|e| e.to_string())?;
    for _ in 0..uses {
        pack(&plan, layout.count, black_box(memory), packed).map_err(|e| e.to_string())?;
        black_box(&mut *packed);
    }
    let ns = start.elapsed().as_nanos().max(1) as f64;
    drop(spare);
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::{LAYOUTS, Regret, measure};
    use crate::definition::Definitions;
    use crate::layout::Layout;

    #[test]
    fn the_layouts_exist_and_are_measured() {
        let definitions = Definitions::reference();
        for (name, bytes) in LAYOUTS {
            let found = definitions.layouts.iter().find(|l| l.name == name).expect(name);
            let layout = Layout::new(found, bytes).expect("a layout");
            if layout.memory < 1 << 20 {
                let rows = measure(&layout, 1).expect("times");
                assert!(rows.iter().all(|row| row.ratio() > 0.0));
            }
        }
        let ns = [10.0, 30.0, 15.0];
        let row = Regret { layout: String::new(), bytes: 1, uses: 1, ns, steady: true };
        assert_eq!(row.ratio(), 1.5);
    }
}
