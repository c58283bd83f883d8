//! Tests [`Jit`] through the calls that the engine makes: modes, counters, sharing of kernels,
//! limits.

use typepack_engine::kernel::{Compiler, Direction, LeafShape, LevelShape, Shape};
use typepack_jit::{ErrorKind, Jit, Mode, Settings};

fn shape(bytes: u32) -> Shape {
    Shape {
        direction: Direction::Unpack,
        levels: vec![LevelShape::Loop, LevelShape::Table32],
        leaf: LeafShape::Fixed { bytes },
    }
}

fn jit(mode: Mode) -> Jit {
    Jit::new(Settings { mode, ..Settings::default() })
}

#[test]
fn modes() {
    let off = jit(Mode::Off);
    assert_eq!(off.threshold(), u64::MAX);
    assert!(off.kernel(&shape(8)).is_none());
    assert_eq!(off.counters().refusals, 1);
    assert_eq!(jit(Mode::Eager).threshold(), 0);
    assert_eq!(jit(Mode::Lazy).threshold(), Settings::THRESHOLD);
}

#[test]
fn a_shape_is_compiled_once_and_shared() {
    let jit = jit(Mode::Eager);
    let clone = jit.clone();
    let entries: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    clone.kernel(&shape(8)).expect("the shape has a kernel").entry() as usize
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    assert!(entries.iter().all(|entry| *entry == entries[0]));
    let counters = jit.counters();
    assert_eq!((counters.kernels, counters.hits, counters.refusals), (1, 3, 0));
    assert!(counters.code_bytes > 0 && counters.compile_ns > 0);
    assert_eq!(
        jit.kernel(&shape(8)).expect("the shape has a kernel").name(),
        "unpack loop table32 b8"
    );
}

#[test]
fn impossible_shapes_are_refused_and_counted() {
    let jit = jit(Mode::Eager);
    assert!(jit.kernel(&shape(0)).is_none());
    assert!(jit.kernel(&shape(65)).is_none());
    assert!(jit.kernel(&shape(65)).is_none());
    assert_eq!(jit.counters().refusals, 3);
    assert_eq!(jit.counters().kernels, 0);
}

#[test]
fn no_memory_refuses_everything() {
    let jit = Jit::new(Settings { memory_max: 0, mode: Mode::Eager, ..Settings::default() });
    assert_eq!(
        jit.disabled().expect("a Jit without memory refuses every shape").kind(),
        ErrorKind::Memory
    );
    assert!(jit.kernel(&shape(8)).is_none());
}

/// Tests full code memory: further shapes must be refused, and the existing kernels must stay
/// usable.
#[test]
fn a_full_arena_refuses_further_shapes() {
    let memory_max = 3 * rustix::param::page_size() as u64;
    let jit = Jit::new(Settings { memory_max, mode: Mode::Eager, ..Settings::default() });
    let kernels: Vec<_> = (1..=5).map(|bytes| jit.kernel(&shape(bytes))).collect();
    let made: Vec<bool> = kernels.iter().map(Option::is_some).collect();
    assert_eq!(made, [true, true, true, false, false]);
    assert_eq!(jit.counters().refusals, 2);
    assert!(jit.kernel(&shape(1)).is_some());
}

/// Requests more kernels than code memory has pages, and keeps none of them. Every request must
/// succeed, because the cache forgets old kernels and their pages are reused.
#[test]
fn forgotten_kernels_free_their_pages() {
    let memory_max = 1100 * rustix::param::page_size() as u64;
    let jit = Jit::new(Settings { memory_max, mode: Mode::Eager, ..Settings::default() });
    let directions = [Direction::Pack, Direction::Unpack];
    let kinds = [LevelShape::Loop, LevelShape::Table32, LevelShape::Table64];
    let mut made = 0;
    for direction in directions {
        for outer in kinds {
            for inner in kinds {
                for bytes in 1..=64 {
                    let leaf = LeafShape::Fixed { bytes };
                    let shape = Shape { direction, levels: vec![outer, inner], leaf };
                    assert!(jit.kernel(&shape).is_some(), "{shape} after {made}");
                    made += 1;
                }
            }
        }
    }
    assert_eq!(made, 1152);
}
