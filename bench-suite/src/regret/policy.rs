//! Measures the regret of the compilation policy: how much more time a program takes with the default
//! policy than with the better of two fixed choices, never compiling and compiling at commit.
//!
//! `../suite.rs` and the command `typepack-bench regret pack` use this module. For each layout and number
//! of uses, the measurement times a whole sequence: one commit, followed by one pack per use. The code
//! generator of each sequence is new and has compiled nothing yet. The regret is the time with the default
//! policy, divided by the shorter of the times with "compile never" and "compile at commit".

use crate::layout::Layout;
use crate::prepare::Bench;
use crate::row::{STEADY, median};
use serde::Serialize;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use typepack_engine::{Settings, pack};
use typepack_jit::{Jit, Mode};

/// The name that the table of regrets has in records.
pub const NAME: &str = "regret";
/// The numbers of uses to measure.
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
/// If there are at most this many uses, a turn is the median of [`STORIES`] sequences, because a single
/// sequence of few uses may take only a few microseconds.
const SHORT: usize = 100;
/// The number of sequences in a turn of at most [`SHORT`] uses.
const STORIES: usize = 7;
/// The modes of the code generator, in the order of [`Regret::ns`].
const MODES: [Mode; 3] = [Mode::Off, Mode::Eager, Mode::Lazy];

/// The times of one layout for one number of uses.
#[derive(Clone, Debug, Serialize)]
pub struct Regret {
    /// The name of the layout.
    pub layout: String,
    /// Number of packed bytes per use.
    pub bytes: u64,
    /// Number of uses of the type.
    pub uses: usize,
    /// The nanoseconds of the whole sequence if kernels are never compiled, if they are compiled at
    /// commit, and with the default policy.
    pub ns: [f64; 3],
    /// True if the rounds of all three modes are steady.
    pub steady: bool,
}

impl Regret {
    /// Returns the time with the default policy divided by the shorter of the two other times.
    pub fn ratio(&self) -> f64 {
        self.ns[2] / self.ns[0].min(self.ns[1])
    }
}

/// Measures `layout` for every number of uses in [`USES`].
///
/// # Errors
///
/// Returns a one-line message if there is not enough memory or if the engine refuses the layout.
pub fn measure(layout: &Layout, rounds: usize) -> Result<Vec<Regret>, String> {
    let (mut memory, mut packed) = Bench::buffers(layout)?;
    memory.bytes_mut().fill(1);
    packed.bytes_mut().fill(2);
    let mut rows = Vec::new();
    for uses in USES {
        let mut times = [const { Vec::new() }; 3];
        // The first round only warms up the caches; its times are not used.
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

/// Times one sequence of a commit and `uses` packs. Returns the nanoseconds.
fn story(
    layout: &Layout,
    mode: Mode,
    uses: usize,
    memory: &[u8],
    packed: &mut [u8],
) -> Result<f64, String> {
    // Each sequence needs a new code generator, because a generator keeps the kernels that it has compiled.
    // If a generator may compile, it maps code memory, which leaves the caches and TLBs cold. To treat all
    // modes alike, each sequence also makes a spare generator, which maps code memory even if `mode` never
    // compiles.
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
