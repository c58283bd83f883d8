//! Turns a definition and a size into a layout: the datatype, the count, and the loops of a hand-written
//! pack.
//!
//! `definition/` has already checked the numbers of the definition. `competitor/` makes the competitors
//! for the layout. The datatype and the loops are made independently of each other from the same
//! definition; `prepare.rs` verifies that both pack the same bytes.

use crate::definition::{
    Axis, Blocks, Class, Face, IndexList, LayoutDefinition, List, Loops, Record, ShapeDefinition,
    TextShape,
};
use std::sync::Arc;
use typepack_engine::{Datatype, Named, Order};

/// A layout at a size.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The name of the definition.
    pub name: String,
    /// The class of the definition.
    pub class: Class,
    /// The number of packed bytes of one call. It may be a little smaller than the requested size, for
    /// example if the size is not a multiple of a struct.
    pub payload: u64,
    /// The datatype that a program would give to MPI.
    pub datatype: Datatype,
    /// The number of elements of the datatype.
    pub count: u64,
    /// Number of bytes of memory from the origin to the end of the data of the last element.
    pub memory: usize,
    /// The loops that a programmer would write instead of the datatype. `None` if the definition states no
    /// loops, and for a layout that [`Layout::of`] makes.
    pub nest: Option<HandNest>,
}

/// The loops with which a programmer packs the layout by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandNest {
    /// `count` blocks, `stride` bytes apart.
    Column {
        /// Bytes per block.
        block: usize,
        /// Number of blocks.
        count: usize,
        /// Bytes from the start of one block to the start of the next.
        stride: usize,
    },
    /// Three nested loops over blocks. Entry 0 of `counts` and `strides` belongs to the outermost loop.
    Box3 {
        /// Bytes from the origin to the start of the first block.
        start: usize,
        /// Bytes per block.
        block: usize,
        /// Number of iterations of each loop.
        counts: [usize; 3],
        /// The number of bytes by which each loop advances in memory per iteration.
        strides: [usize; 3],
    },
    /// An array of `struct { char c; int i; double d; }`.
    CharIntDouble {
        /// Number of structs.
        count: usize,
    },
    /// An array of `struct { double x[3]; int kind; double v[3]; }`.
    Particle {
        /// Number of structs.
        count: usize,
    },
    /// Blocks of one length at listed offsets.
    Offsets {
        /// Bytes per block.
        block: usize,
        /// The offset of each block in bytes.
        offsets: Arc<[usize]>,
    },
    /// Runs of different lengths. Each entry is the offset and the length of a run in bytes.
    Runs(Arc<[(usize, usize)]>),
    /// Several nests, which are packed one after the other.
    Sequence(Arc<[HandNest]>),
}

/// An error message of one line that says why a layout does not exist at a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("layout {layout} at {size} bytes: {reason}")]
pub struct SizeError {
    layout: String,
    size: u64,
    reason: String,
}

impl Layout {
    /// Makes the layout that `definition` describes, with the largest number of packed bytes that does not
    /// exceed `size`.
    ///
    /// # Errors
    ///
    /// Returns an error if the size is smaller than the smallest possible layout (such as one block or one
    /// struct), if the size of a layout of faces is larger than one face and not a whole number of faces, or
    /// if a text shape makes no valid layout at this size.
    pub fn new(definition: &LayoutDefinition, size: u64) -> Result<Self, SizeError> {
        let made = match &definition.shape {
            ShapeDefinition::Blocks(blocks) => column(*blocks, size),
            ShapeDefinition::Face(face) => faces(*face, size),
            ShapeDefinition::Record(record) => records(*record, size),
            ShapeDefinition::List(list) => lists(*list, size),
            ShapeDefinition::Text(text) => expression(text, size),
        };
        let wrong = |reason: String| SizeError { layout: definition.name.clone(), size, reason };
        let (datatype, count, nest) = made.map_err(wrong)?;
        // The checks of the definitions and of `expression` keep these numbers far below 2^63, unless a
        // text shape has extreme bounds.
        let memory = datatype.extent() * (count as i64 - 1) + datatype.true_ub();
        let memory = usize::try_from(memory).map_err(|e| wrong(e.to_string()))?;
        Ok(Self {
            name: definition.name.clone(),
            class: definition.class,
            payload: datatype.size() as u64 * count,
            datatype,
            count,
            memory,
            nest,
        })
    }

    /// Makes a layout without hand-written loops: `count` elements of `datatype`.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the elements need memory before the origin or more than 2^63 - 1 bytes
    /// of memory, or if the last element lies before the first one.
    pub fn of(name: &str, datatype: Datatype, count: u64) -> Result<Self, String> {
        let last = i128::from(datatype.extent()) * (i128::from(count) - 1);
        let end = last + i128::from(datatype.true_ub());
        if datatype.true_lb() < 0 || last < 0 || end > i128::from(i64::MAX) {
            return Err(format!(
                "layout {name}: the first element begins at byte {}; the last element begins {last} \
                 bytes later and ends at byte {end}; these numbers must be between 0 and 2^63 - 1",
                datatype.true_lb()
            ));
        }
        let payload = datatype.size() as u64 * count;
        let (name, class) = (name.to_owned(), Class::Plain);
        Ok(Self { name, class, payload, datatype, count, memory: end as usize, nest: None })
    }
}

/// Returns the sizes at which `definition` is measured: the sizes that it states; if it states none, all of
/// `sizes`. A text shape is an exception if its definition states no sizes: with a `unit`, it is measured
/// at those of `sizes` that are at least `unit`; without a `unit`, at the packed size of its elements.
pub fn sizes_of(definition: &LayoutDefinition, sizes: &[u64]) -> Vec<u64> {
    if !definition.sizes.is_empty() {
        return definition.sizes.clone();
    }
    match &definition.shape {
        ShapeDefinition::Text(text @ TextShape { unit: None, count, .. }) => {
            let bytes = text.datatype(1).map(|ty| ty.size() as u64 * count.at(1));
            bytes.into_iter().collect()
        }
        ShapeDefinition::Text(TextShape { unit: Some(unit), .. }) => {
            sizes.iter().copied().filter(|size| size >= unit).collect()
        }
        _ => sizes.to_vec(),
    }
}

type Made = Result<(Datatype, u64, Option<HandNest>), String>;

fn engine(result: typepack_engine::Result<Datatype>) -> Result<Datatype, String> {
    result.map_err(|e| e.to_string())
}

fn column(Blocks { block, stride, element }: Blocks, size: u64) -> Made {
    let count = size / block;
    if count == 0 {
        return Err(format!("the size is smaller than one block of {block} bytes"));
    }
    let (blocklength, step) = ((block / element.bytes()) as i64, (stride / element.bytes()) as i64);
    let old = Datatype::named(element.named());
    let vector = engine(Datatype::vector(count as i64, blocklength, step, &old))?;
    let nest =
        HandNest::Column { block: block as usize, count: count as usize, stride: stride as usize };
    Ok((vector, 1, Some(nest)))
}

/// Makes a part of one face if `size` is smaller than a face. Otherwise makes whole faces, one of each of
/// several cubes that follow one another in memory (the fields).
fn faces(Face { edge, halo, normal }: Face, size: u64) -> Made {
    // A part of a face has fewer cells in the slowest dimension of the face: z, or y if the normal is z.
    // `unit` is the number of packed bytes per cell of this dimension.
    let unit = edge * halo * 8;
    let units = size / unit;
    let (units, fields) = match units {
        0 => {
            return Err(format!(
                "the size is smaller than the smallest part of the face, {unit} bytes"
            ));
        }
        _ if units <= edge => (units, 1),
        _ if units.is_multiple_of(edge) => (edge, units / edge),
        _ => {
            return Err(format!(
                "the size must be a whole number of faces of {} bytes",
                unit * edge
            ));
        }
    };
    let length = (edge + 2 * halo) as i64;
    let (e, h, u) = (edge as i64, halo as i64, units as i64);
    let subsizes = match normal {
        Axis::X => [u, e, h],
        Axis::Y => [u, h, e],
        Axis::Z => [h, u, e],
    };
    let double = Datatype::named(Named::DOUBLE);
    let face = engine(Datatype::subarray(&[length; 3], &subsizes, &[h; 3], Order::C, &double))?;
    let (row, plane) = (8 * length as usize, 8 * (length * length) as usize);
    let field = plane * length as usize;
    let halo = halo as usize;
    let start = halo * (plane + row + 8);
    let [nz, ny, nx] = subsizes.map(|n| n as usize);
    let nest = HandNest::Box3 {
        start,
        block: 8 * nx,
        counts: [fields as usize, nz, ny],
        strides: [field, plane, row],
    };
    Ok((face, fields, Some(nest)))
}

fn records(record: Record, size: u64) -> Made {
    let (lengths, displacements, types) = match record {
        Record::CharIntDouble => ([1, 1, 1], [0, 4, 8], [Named::CHAR, Named::INT, Named::DOUBLE]),
        Record::Particle => ([3, 1, 3], [0, 24, 32], [Named::DOUBLE, Named::INT, Named::DOUBLE]),
    };
    let types = types.map(Datatype::named);
    let ty = engine(Datatype::structured(&lengths, &displacements, &types))?;
    let count = size / ty.size() as u64;
    if count == 0 {
        return Err(format!("the size is smaller than one struct of {} bytes", ty.size()));
    }
    let times = count as usize;
    let nest = match record {
        Record::CharIntDouble => HandNest::CharIntDouble { count: times },
        Record::Particle => HandNest::Particle { count: times },
    };
    Ok((ty, count, Some(nest)))
}

/// A generator of random numbers (xorshift). With the same seed, the numbers are the same in every run.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new() -> Self {
        Self(0x1234_5678_9abc_def1)
    }

    /// Returns a generator whose numbers depend on `seed`.
    pub(crate) fn seeded(seed: u64) -> Self {
        // `| 1` keeps the state from being 0, a state that xorshift never leaves. The multiplication makes
        // the states for consecutive seeds very different.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) | 1)
    }

    /// Returns a random number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// Puts `list` into random order.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

fn lists(List { element, longest, gap, permuted, arrays }: List, size: u64) -> Made {
    let bytes = element.bytes();
    let elements = size / bytes / arrays;
    if elements == 0 {
        return Err(format!(
            "the size is smaller than one element of each array, {} bytes",
            bytes * arrays
        ));
    }
    let mut numbers = Numbers::new();
    let (mut runs, mut left, mut at) = (Vec::new(), elements, 0);
    while left > 0 {
        let length = (1 + numbers.below(longest)).min(left);
        runs.push((at as i64, length as i64));
        left -= length;
        at += length + 1 + numbers.below(gap);
    }
    if permuted {
        numbers.shuffle(&mut runs);
    }
    let (displacements, lengths): (Vec<i64>, Vec<i64>) = runs.iter().copied().unzip();
    let old = Datatype::named(element.named());
    let list = engine(match longest {
        1 => Datatype::indexed_block(1, &displacements, &old),
        _ => Datatype::indexed(&lengths, &displacements, &old),
    })?;
    let ty = if arrays == 1 {
        list
    } else {
        let k = arrays as usize;
        let places: Vec<i64> = (0..arrays).map(|array| (array * at * bytes) as i64).collect();
        engine(Datatype::structured(&vec![1; k], &places, &vec![list; k]))?
    };
    let all = (0..arrays).flat_map(|array| {
        runs.iter().map(move |&(from, length)| {
            ((array * at + from as u64) as usize * bytes as usize, length as usize * bytes as usize)
        })
    });
    let nest = match longest {
        1 => HandNest::Offsets {
            block: bytes as usize,
            offsets: all.map(|(offset, _)| offset).collect(),
        },
        _ => HandNest::Runs(all.collect()),
    };
    Ok((ty, 1, Some(nest)))
}

impl HandNest {
    /// Returns two numbers for the loops of a [`TextShape`]: the bytes from the origin to the end of the
    /// memory that the loops touch, and the bytes that the loops pack.
    fn reach(&self) -> [u128; 2] {
        match self {
            Self::Box3 { start, block, counts, strides } => {
                let last = counts.iter().zip(strides).fold(0_u128, |sum, (&count, &stride)| {
                    sum + count.saturating_sub(1) as u128 * stride as u128
                });
                let blocks = counts.iter().fold(1_u128, |all, &n| all.saturating_mul(n as u128));
                let block = *block as u128;
                [*start as u128 + last + block, blocks.saturating_mul(block)]
            }
            Self::Offsets { block, offsets } => {
                let last = offsets.iter().max().map_or(0, |&last| last as u128 + *block as u128);
                [last, *block as u128 * offsets.len() as u128]
            }
            _ => unreachable!("TextShape::nest makes only Box3 and Offsets, but has made {self:?}"),
        }
    }
}

impl TextShape {
    /// Makes the nest of loops that `hand` describes for the value `n`.
    fn nest(&self, hand: &Loops, n: u64) -> HandNest {
        let mut block = hand.block as usize;
        let start = (hand.start + n * hand.start_per_n) as usize;
        if let Some(list) = hand.list.as_ref().and_then(|name| self.list(name)) {
            let offsets = list.values();
            let unit = hand.unit as usize;
            let at = |value: &u64| start.saturating_add((*value as usize).saturating_mul(unit));
            return HandNest::Offsets { block, offsets: offsets.iter().map(at).collect() };
        }
        let (mut counts, mut strides) = ([1; 3], [0; 3]);
        let first = 3 - hand.loops.len();
        for (i, (count, stride)) in hand.loops.iter().enumerate() {
            counts[first + i] = count.at(n) as usize;
            strides[first + i] = *stride as usize;
        }
        // If the blocks of the innermost loop are adjacent, a programmer copies them as one block.
        if strides[2] == block {
            (block, counts[2]) = (block.saturating_mul(counts[2]), 1);
        }
        HandNest::Box3 { start, block, counts, strides }
    }
}

impl IndexList {
    /// Returns the indices: `count` different random numbers below `below`, each multiplied by `times`.
    /// The indices are the same in every run.
    pub fn values(&self) -> Vec<u64> {
        let mut numbers = Numbers::new();
        let mut all: Vec<u64> = (0..self.below).collect();
        for i in 0..self.count as usize {
            let other = i + numbers.below(self.below - i as u64) as usize;
            all.swap(i, other);
        }
        all.truncate(self.count as usize);
        all.iter_mut().for_each(|index| *index *= self.times);
        all
    }
}

fn expression(text: &TextShape, size: u64) -> Made {
    let n = match text.unit {
        Some(unit) => size / unit,
        None => 1,
    };
    if n == 0 {
        return Err(format!(
            "the size is smaller than one unit of {} bytes",
            text.unit.unwrap_or(0)
        ));
    }
    let ty = text.datatype(n)?;
    let count = text.count.at(n);
    let payload = (ty.size() as u64).saturating_mul(count);
    if text.unit.is_none() && payload != size {
        return Err(format!("the layout has no unit, so the size must be exactly {payload} bytes"));
    }
    // The two checks below reject types for which the `i64` arithmetic of the caller would be wrong or
    // would overflow. The size limits of definitions do not exclude such types.
    if ty.true_lb() < 0 {
        return Err(format!(
            "the type begins at byte {}; it must not begin before byte 0",
            ty.true_lb()
        ));
    }
    let (span, most) = (i128::from(ty.extent()) * i128::from(count), 1 << 50);
    if span > most {
        return Err(format!(
            "the elements need {span} bytes of memory; at most {most} are allowed"
        ));
    }
    let mut nests: Vec<HandNest> = text.hand.iter().map(|loops| text.nest(loops, n)).collect();
    if !nests.is_empty() {
        // This check finds only loops that would leave the buffers. Loops that pack bytes other than
        // those of the type are found when their answer is verified.
        let end = i128::from(ty.extent()) * i128::from(count.saturating_sub(1));
        let memory = (end.max(0) + i128::from(ty.true_ub())).max(i128::from(payload)) as u128;
        let reach = nests.iter().map(|nest| nest.reach()[0]).max().unwrap_or(0);
        let bytes = nests.iter().fold(0_u128, |sum, nest| sum.saturating_add(nest.reach()[1]));
        if reach > memory || bytes > u128::from(payload) {
            return Err(format!(
                "the hand-written loops touch {reach} bytes of memory and pack {bytes} bytes; the \
                 layout has {memory} bytes of memory and {payload} packed bytes"
            ));
        }
    }
    let nest = match nests.len() {
        0 | 1 => nests.pop(),
        _ => Some(HandNest::Sequence(nests.into())),
    };
    Ok((ty, count, nest))
}

#[cfg(test)]
mod tests {
    use super::{HandNest, Layout};
    use crate::definition::Definitions;

    fn at(name: &str, size: u64) -> Result<Layout, String> {
        let definitions = Definitions::built_in();
        let definition = definitions.layouts.iter().find(|l| l.name == name).expect(name);
        Layout::new(definition, size).map_err(|e| e.to_string())
    }

    #[test]
    fn payloads_are_what_was_asked_for() {
        let definitions = Definitions::built_in();
        for definition in &definitions.layouts {
            for &size in &definitions.sizes {
                let layout = Layout::new(definition, size).expect("a layout");
                let expected = if layout.name == "struct" { size / 13 * 13 } else { size };
                assert_eq!(layout.payload, expected, "{} at {size}", layout.name);
            }
        }
    }

    #[test]
    fn faces_are_parts_of_one_field_or_whole_faces_of_several() {
        let small = at("face-x", 16 << 10).expect("a layout");
        let Layout { count: 1, nest: Some(HandNest::Box3 { block: 8, counts, .. }), .. } = small
        else {
            panic!("{small:?}");
        };
        assert_eq!(counts, [1, 16, 128]);
        let large = at("face-z", 256 << 10).expect("a layout");
        let Layout { count: 2, nest: Some(HandNest::Box3 { block: 1024, counts, .. }), .. } = large
        else {
            panic!("{large:?}");
        };
        assert_eq!(counts, [2, 1, 128]);
    }

    #[test]
    fn impossible_sizes_say_why() {
        let reason = |name, size| at(name, size).expect_err(name);
        assert_eq!(
            reason("d8s16", 63),
            "layout d8s16 at 63 bytes: the size is smaller than one block of 64 bytes"
        );
        assert!(reason("face-y", 129 << 10).contains("whole number of faces of 131072 bytes"));
        assert!(reason("struct", 12).contains("13 bytes"));
    }

    /// Checks that hand-written loops that leave the memory of the type are rejected with an error. Such
    /// loops used to end the run with a panic.
    #[test]
    fn loops_beyond_the_memory_are_a_line() {
        let line = |ty: &str, hand: &str| {
            let text = format!(
                "sizes = [1024]\n[[layout]]\nname = \"a\"\ntext = \"a\"\nclass = \"plain\"\n\
                 [layout.shape.text]\ntype = \"{ty}\"\nhand = [{hand}]\n\
                 lists = [{{ name = \"l\", count = 128, below = 128 }}]\n"
            );
            let definitions = Definitions::parse(&text).expect("definitions");
            Layout::new(&definitions.layouts[0], 1024).map(|_| ()).map_err(|e| e.to_string())
        };
        let ty = "indexed_block(1, [{l}], double)";
        assert_eq!(line(ty, "{ block = 8, list = \"l\", unit = 8, loops = [] }"), Ok(()));
        for hand in [
            "{ block = 8, list = \"l\", unit = 1073741824, loops = [] }",
            "{ block = 8, start = 8, loops = [[128, 8]] }",
            "{ block = 8, loops = [[128, 4]] }, { block = 8, loops = [[1, 8]] }",
            "{ block = 1073741824, loops = [[9000000000000000000, 1073741824]] }",
        ] {
            let error = line(ty, hand).expect_err(hand);
            assert!(error.contains("the hand-written loops touch "), "{error}");
        }
    }
}
