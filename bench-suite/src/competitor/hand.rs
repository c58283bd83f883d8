//! Turns the hand-written loops into competitors.
//!
//! `layout.rs` determines the loops of a layout, and `mod.rs` adds these competitors to the others. The
//! loops themselves are in the crate `typepack-hand` (`../../hand/`). All builds of the loops have the same
//! C interface. At most two builds take part in a run: one of the Rust loops and one of the C loops
//! (`hand_c.rs`). The Rust loops come from a library that is built for this machine and loaded at run time.
//! If that library is missing, and for `typepack-bench pack`, they come from this command.
//!
//! Invariant: a [`Hand`] calls its loops only if the buffers hold all bytes that its nests touch.

use super::Competitor;
use crate::layout::HandNest;
use crate::row::{HAND, HAND_C};
use libloading::{Library, Symbol};
use std::path::Path;
use std::sync::Arc;
use typepack_engine::kernel::Direction;
use typepack_hand::{FIXED, Level, Nest, PackCall, UnpackCall, kind};

/// One build of the hand-written loops.
#[derive(Clone, Copy, Debug)]
pub struct Loops {
    name: &'static str,
    how: &'static str,
    pack: PackCall,
    unpack: UnpackCall,
    /// True if a nest of the kind `Column` uses a loop with a constant stride ([`kind::FIXED`]) whenever there is
    /// one for its block length and stride.
    fixed: bool,
}

/// The builds of the hand-written loops that take part, and one line about each build, including builds
/// that are missing.
pub struct Hands {
    /// The available builds. At least one of them is in Rust.
    pub loops: Vec<Loops>,
    /// One line per build: how it was built, or why it is missing.
    pub notes: Vec<String>,
}

impl Hands {
    /// Returns only the Rust loops that are part of this command.
    pub fn built_in() -> Self {
        let note = format!("{HAND}: Rust, part of typepack-bench, compiled for AVX-512 too");
        Self { loops: vec![Loops::built_in()], notes: vec![note] }
    }

    /// Returns the Rust loops in the shared object `library`, or those of this command if `library`
    /// cannot be loaded. If there is a C compiler, also returns the C loops.
    pub fn found(library: &Path) -> Self {
        let mut hands = Self::built_in();
        match Loops::open(library, HAND, "Rust loop") {
            Ok(loops) => {
                hands.loops = vec![loops];
                hands.notes = vec![format!("{HAND}: Rust, {}", library.display())];
            }
            Err(line) => hands.notes[0] += &format!(" ({line})"),
        }
        match super::hand_c::compile("native") {
            Ok((loops, compiler)) => {
                hands.loops.push(loops);
                hands.notes.push(format!("{HAND_C}: C, {compiler}"));
            }
            Err(line) => hands.notes.push(format!("{HAND_C}: {line}")),
        }
        hands
    }

    /// Returns the loops that are compiled for the level `march` (such as `x86-64-v3`): the Rust loops of
    /// this command, and the C loops if there is a C compiler that knows the level. Columns with the block
    /// lengths and strides of [`FIXED`] use loops with constant strides, which compilers can vectorise.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if this machine lacks the level, or if there is no such level.
    pub fn at_level(march: &str) -> Result<Self, String> {
        let Level { pack, unpack, .. } = Level::named(march)
            .ok_or_else(|| format!("no hand loops for {march}: this machine lacks the level"))?;
        let rust = Loops { name: HAND, how: "Rust loop", pack, unpack, fixed: true };
        let note = format!("{HAND}: Rust, compiled for {march}");
        let mut hands = Self { loops: vec![rust], notes: vec![note] };
        match super::hand_c::compile(march) {
            Ok((loops, compiler)) => {
                hands.loops.push(Loops { fixed: true, ..loops });
                hands.notes.push(format!("{HAND_C}: C, {compiler}"));
            }
            Err(line) => hands.notes.push(format!("{HAND_C}: {line}")),
        }
        Ok(hands)
    }
}

impl Loops {
    fn built_in() -> Self {
        Self {
            name: HAND,
            how: "Rust loop",
            pack: typepack_hand::typepack_hand_pack,
            unpack: typepack_hand::typepack_hand_unpack,
            fixed: false,
        }
    }

    /// Loads the loops from a shared object that has been built from `../../hand/`. `name` is the name of
    /// the competitor; `how` is the text that its rows show instead of a kernel name.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the library does not exist, cannot be loaded, or does not export both
    /// functions.
    pub(crate) fn open(path: &Path, name: &'static str, how: &'static str) -> Result<Self, String> {
        let shown = path.display();
        if !path.exists() {
            return Err(format!("{shown} does not exist"));
        }
        // SAFETY: loading a library runs its initialisers. This library is built from `../../hand/` and
        // has none.
        let library = unsafe { Library::new(path) }.map_err(|e| format!("{shown}: {e}"))?;
        // The library must stay loaded for the rest of the process, because `Loops` keeps the addresses of
        // its functions.
        let library: &'static Library = Box::leak(Box::new(library));
        let missing =
            |function: &str| format!("{shown}: the library exports no function {function}");
        // SAFETY: every library built from `../../hand/` defines both functions with the signatures
        // `PackCall` and `UnpackCall`.
        let (pack, unpack): (Result<Symbol<'_, PackCall>, _>, Result<Symbol<'_, UnpackCall>, _>) = unsafe {
            (library.get(b"typepack_hand_pack\0"), library.get(b"typepack_hand_unpack\0"))
        };
        Ok(Self {
            name,
            how,
            pack: *pack.map_err(|_| missing("typepack_hand_pack"))?,
            unpack: *unpack.map_err(|_| missing("typepack_hand_unpack"))?,
            fixed: false,
        })
    }
}

/// A competitor: one build of the loops, together with the nests of a layout. The nests point into lists
/// that this value owns and that never change.
pub struct Hand {
    loops: Loops,
    nests: Vec<Nest>,
    /// The lists to which the nests point. This field only keeps them alive.
    _lists: Vec<Arc<[usize]>>,
    /// Number of bytes of memory from the origin to the end of the last byte that the nests touch.
    reach: usize,
    /// Number of packed bytes of all nests together.
    bytes: usize,
}

impl Hand {
    /// Makes a competitor that runs `nest` with `loops`.
    pub fn new(loops: Loops, nest: &HandNest) -> Self {
        let mut hand = Self { loops, nests: Vec::new(), _lists: Vec::new(), reach: 0, bytes: 0 };
        match nest {
            HandNest::Sequence(parts) => parts.iter().for_each(|part| hand.add(part)),
            one => hand.add(one),
        }
        hand
    }

    fn add(&mut self, nest: &HandNest) {
        let mut one = Nest {
            kind: kind::BOX,
            block: 1,
            start: 0,
            packed: self.bytes,
            counts: [1; 3],
            strides: [0; 3],
            entries: 0,
            offsets: std::ptr::null(),
            lengths: std::ptr::null(),
        };
        let (reach, bytes) = match *nest {
            HandNest::Column { block, count, stride } => {
                let fixed = self.loops.fixed && FIXED.contains(&(block, stride));
                (one.kind, one.block) = (if fixed { kind::FIXED } else { kind::COLUMN }, block);
                (one.counts[2], one.strides[2]) = (count, stride);
                (count.saturating_sub(1) * stride + block, count * block)
            }
            HandNest::Box3 { start, block, counts, strides } => {
                (one.start, one.block, one.counts, one.strides) = (start, block, counts, strides);
                let last: usize =
                    counts.iter().zip(strides).map(|(n, step)| n.saturating_sub(1) * step).sum();
                (start + last + block, counts.iter().product::<usize>() * block)
            }
            HandNest::CharIntDouble { count } => {
                (one.kind, one.entries) = (kind::CHAR_INT_DOUBLE, count);
                (16 * count, 13 * count)
            }
            HandNest::Particle { count } => {
                (one.kind, one.entries) = (kind::PARTICLE, count);
                (56 * count, 52 * count)
            }
            HandNest::Offsets { block, ref offsets } => {
                (one.kind, one.block, one.entries) = (kind::OFFSETS, block, offsets.len());
                one.offsets = self.keep(offsets.clone());
                (offsets.iter().max().map_or(0, |last| last + block), block * offsets.len())
            }
            HandNest::Runs(ref runs) => {
                (one.kind, one.entries) = (kind::RUNS, runs.len());
                one.offsets = self.keep(runs.iter().map(|run| run.0).collect());
                one.lengths = self.keep(runs.iter().map(|run| run.1).collect());
                let reach = runs.iter().map(|(offset, length)| offset + length).max();
                (reach.unwrap_or(0), runs.iter().map(|run| run.1).sum())
            }
            HandNest::Sequence(ref parts) => {
                return parts.iter().for_each(|part| self.add(part));
            }
        };
        self.nests.push(one);
        self.reach = self.reach.max(reach);
        self.bytes += bytes;
    }

    fn keep(&mut self, list: Arc<[usize]>) -> *const usize {
        let start = list.as_ptr();
        self._lists.push(list);
        start
    }

    fn check(&self, memory: &[u8], packed: &[u8]) {
        let (room, least) = (memory.len(), self.reach);
        assert!(least <= room, "the memory has {room} bytes, but the loops need {least}");
        let (room, least) = (packed.len(), self.bytes);
        assert!(least <= room, "the packed form has {room} bytes, but the loops need {least}");
        assert!(memory.as_ptr().cast::<f64>().is_aligned(), "the memory must be 8-byte aligned");
    }
}

impl Competitor for Hand {
    fn name(&self) -> &'static str {
        self.loops.name
    }

    fn executor(&self, _: Direction) -> String {
        self.loops.how.to_owned()
    }

    fn pack(&self, memory: &[u8], packed: &mut [u8]) {
        self.check(memory, packed);
        // SAFETY: `nests` has `nests.len()` elements, and `self` owns the lists to which they point. The
        // pointers and lengths are those of `memory` and `packed`. `packed` is borrowed mutably, so it
        // overlaps nothing else; `memory` holds the data of a layout, not the nests or the lists. `check`
        // has found that all bytes that the loops touch lie within `memory` and `packed`.
        unsafe {
            (self.loops.pack)(
                self.nests.as_ptr(),
                self.nests.len(),
                memory.as_ptr(),
                memory.len(),
                packed.as_mut_ptr(),
                packed.len(),
            );
        }
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        self.check(memory, packed);
        // SAFETY: `nests` has `nests.len()` elements, and `self` owns the lists to which they point.
        // `packed` is readable and `memory` is writable for the lengths that are passed. `memory` is
        // borrowed mutably, so it overlaps nothing else; `packed` holds packed bytes, not the nests or the
        // lists. `check` has found that the loops touch no byte outside of these slices.
        unsafe {
            (self.loops.unpack)(
                self.nests.as_ptr(),
                self.nests.len(),
                packed.as_ptr(),
                packed.len(),
                memory.as_mut_ptr(),
                memory.len(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Hand, Hands, Loops};
    use crate::competitor::Competitor;
    use crate::layout::HandNest;
    use std::path::Path;
    use typepack_hand::FIXED;

    #[test]
    fn a_sequence_packs_one_after_the_other() {
        let column = HandNest::Column { block: 2, count: 3, stride: 4 };
        let list = HandNest::Offsets { block: 3, offsets: [20, 12].into() };
        let runs = HandNest::Runs([(1, 1), (30, 2)].into());
        let nest = HandNest::Sequence([column, list, runs].into());
        let memory: Vec<u64> = (0..4).map(|word| 0x0101_0101_0101_0101 * (word + 1)).collect();
        // SAFETY: `memory` is a vector of four words, so it has 32 initialised bytes. The slice below takes
        // over the name `memory`, but the vector itself lives until the end of the test, and nothing
        // changes it.
        let memory = unsafe { std::slice::from_raw_parts(memory.as_ptr().cast::<u8>(), 32) };
        let wanted = [0, 1, 4, 5, 8, 9, 20, 21, 22, 12, 13, 14, 1, 30, 31].map(|at| memory[at]);
        for loops in Hands::found(Path::new("/nonexistent")).loops {
            let hand = Hand::new(loops, &nest);
            let mut packed = [0; 15];
            hand.pack(memory, &mut packed);
            assert_eq!(packed, wanted, "{}", hand.name());
        }
    }

    #[test]
    fn loops_of_every_level_pack_the_same_bytes() {
        let words: Vec<u64> = (0..200).map(|word| word * 0x0107_0503_0907_0b0d).collect();
        // SAFETY: `words` is a vector of 200 words, so it has 1600 initialised bytes, and nothing changes
        // it before the end of the test.
        let memory = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 1600) };
        let mut levels = 0;
        for isa in typepack_engine::Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            let hands = Hands::at_level(crate::levels::march(isa)).expect("loops for the level");
            for loops in hands.loops {
                for (block, stride) in FIXED.into_iter().chain([(1, 5), (8, 64)]) {
                    let hand = Hand::new(loops, &HandNest::Column { block, count: 24, stride });
                    let wanted: Vec<u8> =
                        (0..24 * block).map(|i| memory[i / block * stride + i % block]).collect();
                    let mut packed = vec![0; 24 * block];
                    hand.pack(memory, &mut packed);
                    assert_eq!(packed, wanted, "{isa} {} {block} of {stride}", hand.name());
                    let mut words = vec![0_u64; 200];
                    // SAFETY: `words` is a vector of 200 words, so it has 1600 initialised bytes, and only
                    // this slice is used while it lives.
                    let back = unsafe {
                        std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), 1600)
                    };
                    hand.unpack(&packed, back);
                    let data = |i: usize| i / stride < 24 && i % stride < block;
                    let wanted = (0..1600).map(|i| if data(i) { memory[i] } else { 0 });
                    assert!(
                        back.iter().copied().eq(wanted),
                        "{isa} {} {block} of {stride}",
                        hand.name()
                    );
                }
            }
            levels += 1;
        }
        assert!(levels > 0);
        let line = Hands::at_level("x86-64-v9").err().expect("no such level");
        assert!(line.contains("x86-64-v9") && !line.contains('\n'), "{line}");
    }

    #[test]
    fn what_is_missing_is_a_note() {
        let hands = Hands::found(Path::new("/nonexistent"));
        assert!(hands.notes[0].contains("/nonexistent does not exist"), "{:?}", hands.notes);
        let line = Loops::open(Path::new("/etc/hostname"), "hand", "").expect_err("no library");
        assert!(!line.contains('\n'), "{line}");
    }
}
