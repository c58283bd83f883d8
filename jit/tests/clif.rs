//! Compares the translator's output for some shapes with golden files: CLIF as text, in `clif/`.
//!
//! A change of the translator shows as a difference from these files. If the change is intended,
//! write the new text with `TYPEPACK_BLESS=1 cargo test -p typepack-jit --test jit clif::` and commit it.

use std::path::Path;
use typepack_engine::kernel::{
    Direction, LeafShape, LevelShape, Run, Shape, TransferLeaf, TransferRun, TransferShape,
};
use typepack_jit::{Target, clif, clif_transfer};

use Direction::{Pack, Unpack};
use LevelShape::{Loop, Table32, Table64};

fn fixed(bytes: u32) -> LeafShape {
    LeafShape::Fixed { bytes }
}

fn members() -> LeafShape {
    let runs = [Run { offset: 0, bytes: 1 }, Run { offset: 4, bytes: 12 }];
    LeafShape::Window { runs: runs.into() }
}

#[test]
fn golden() {
    let cases = [
        ("pack-loop-b8", Pack, vec![Loop], fixed(8), Target::X86_64),
        ("pack-loop-b8-aarch64", Pack, vec![Loop], fixed(8), Target::Aarch64),
        ("unpack-loop-b8", Unpack, vec![Loop], fixed(8), Target::X86_64),
        ("pack-loop-loop-b40", Pack, vec![Loop, Loop], fixed(40), Target::X86_64),
        ("unpack-loop-b7", Unpack, vec![Loop], fixed(7), Target::X86_64),
        ("pack-table32-b4", Pack, vec![Table32], fixed(4), Target::X86_64),
        ("unpack-table64-long", Unpack, vec![Table64], LeafShape::Long, Target::X86_64),
        ("pack-loop-struct", Pack, vec![Loop], members(), Target::X86_64),
        ("unpack-loop-struct", Unpack, vec![Loop], members(), Target::X86_64),
    ];
    for (name, direction, levels, leaf, target) in cases {
        let shape = Shape { direction, levels, leaf };
        let text = clif(&shape, target).expect("the shape is translated");
        compare(name, &shape.to_string(), target, &text);
    }
}

#[test]
fn golden_pairs() {
    let runs = |runs: &[(i64, i64, u64)]| TransferLeaf::Runs {
        runs: runs.iter().map(|&(from, to, bytes)| TransferRun { from, to, bytes }).collect(),
    };
    let eight = || runs(&[(0, 0, 8)]);
    let unequal = runs(&[(0, 0, 16), (16, 32, 8), (32, 40, 8), (40, 64, 16)]);
    let cases = [
        ("copy-loop-b8", vec![[Loop, Loop]], eight(), Target::X86_64),
        ("copy-loop-b8-aarch64", vec![[Loop, Loop]], eight(), Target::Aarch64),
        ("copy-2-loops-b24", vec![[Loop; 2]; 2], runs(&[(0, 0, 24)]), Target::X86_64),
        ("copy-24-to-16", vec![[Loop, Loop]], unequal, Target::X86_64),
        ("copy-table32-loop-b4", vec![[Table32, Loop]], runs(&[(0, 0, 4)]), Target::X86_64),
        ("copy-loop-table64-long", vec![[Loop, Table64]], TransferLeaf::Long, Target::X86_64),
    ];
    for (name, levels, leaf, target) in cases {
        let shape = TransferShape { levels, leaf };
        let text = clif_transfer(&shape, target).expect("the shape is translated");
        compare(name, &shape.to_string(), target, &text);
    }
}

/// Compares `text` with the golden file `name`. If `TYPEPACK_BLESS` is set, writes `text` to the
/// file first.
fn compare(name: &str, shape: &str, target: Target, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clif");
    let text = format!("; {shape}, {target:?}\n{text}");
    typepack_test_support::blessed::blessed(&folder.join(format!("{name}.clif")), &text);
}
