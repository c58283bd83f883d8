//! One layout at one size: the datatype, the count, and the loop nest that a hand would write.
//!
//! Comes after `definition.rs`, which has checked the numbers; `competitor.rs` and `hand.rs` take
//! what is here. The datatype and the nest are written down separately, from the same definition:
//! that they agree is what `prepare.rs` verifies.

use crate::definition::{Axis, Blocks, Face, LayoutDefinition, Record, ShapeDefinition};
use typepack_engine::{Datatype, Named, Order};

/// A layout at a size.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The definition's name.
    pub name: String,
    /// Packed bytes of one call; for structs a little below what was asked for.
    pub payload: u64,
    /// What MPI would be told.
    pub datatype: Datatype,
    /// How many of it.
    pub count: u64,
    /// Bytes of memory from the origin to the end of the last element's data.
    pub memory: usize,
    /// What a programmer would write instead.
    pub nest: HandNest,
}

/// The loops of a hand-written pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandNest {
    /// `count` blocks, `stride` bytes apart.
    Column {
        /// Bytes per block.
        block: usize,
        /// Number of blocks.
        count: usize,
        /// Bytes from one block to the next.
        stride: usize,
    },
    /// Three loops, outermost first, over blocks.
    Box3 {
        /// Bytes of the first block's start from the origin.
        start: usize,
        /// Bytes per block.
        block: usize,
        /// Iterations of each loop.
        counts: [usize; 3],
        /// Bytes per iteration of each loop.
        strides: [usize; 3],
    },
    /// An array of `struct { char c; int i; double d; }`.
    CharIntDouble {
        /// Number of structs.
        count: usize,
    },
}

/// Why a layout does not exist at a size, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("layout {layout} at {size} bytes: {reason}")]
pub struct SizeError {
    layout: String,
    size: u64,
    reason: String,
}

impl Layout {
    /// The layout `definition` with as close to `size` packed bytes as it comes from below.
    ///
    /// # Errors
    ///
    /// The size holds not even one block, or not a whole number of faces.
    pub fn new(definition: &LayoutDefinition, size: u64) -> Result<Self, SizeError> {
        let made = match &definition.shape {
            ShapeDefinition::Blocks(blocks) => column(*blocks, size),
            ShapeDefinition::Face(face) => faces(*face, size),
            ShapeDefinition::Record(Record::CharIntDouble) => records(size),
        };
        let wrong = |reason: String| SizeError { layout: definition.name.clone(), size, reason };
        let (datatype, count, nest) = made.map_err(wrong)?;
        // All numbers are bounded by the definitions' checks: far below 2^63.
        let memory = datatype.extent() * (count as i64 - 1) + datatype.true_ub();
        let memory = usize::try_from(memory).map_err(|e| wrong(e.to_string()))?;
        Ok(Self {
            name: definition.name.clone(),
            payload: datatype.size() as u64 * count,
            datatype,
            count,
            memory,
            nest,
        })
    }
}

type Made = Result<(Datatype, u64, HandNest), String>;

fn engine(result: typepack_engine::Result<Datatype>) -> Result<Datatype, String> {
    result.map_err(|e| e.to_string())
}

fn column(Blocks { block, stride }: Blocks, size: u64) -> Made {
    let count = size / block;
    if count == 0 {
        return Err(format!("one block is {block} bytes"));
    }
    let double = Datatype::named(Named::DOUBLE);
    let (blocklength, step) = (block as i64 / 8, stride as i64 / 8);
    let vector = engine(Datatype::vector(count as i64, blocklength, step, &double))?;
    let nest =
        HandNest::Column { block: block as usize, count: count as usize, stride: stride as usize };
    Ok((vector, 1, nest))
}

/// Parts of one face while the size is below a face, whole faces of several fields above.
fn faces(Face { edge, halo, normal }: Face, size: u64) -> Made {
    // The slowest dimension of the face is cut to fit: z, or y where the normal is z.
    let unit = edge * halo * 8;
    let units = size / unit;
    let (units, fields) = match units {
        0 => return Err(format!("the smallest part of the face is {unit} bytes")),
        _ if units <= edge => (units, 1),
        _ if units.is_multiple_of(edge) => (edge, units / edge),
        _ => return Err(format!("not a whole number of faces of {} bytes", unit * edge)),
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
    Ok((face, fields, nest))
}

fn records(size: u64) -> Made {
    let count = size / 13;
    if count == 0 {
        return Err("one struct holds 13 bytes".to_owned());
    }
    let types = [Named::CHAR, Named::INT, Named::DOUBLE].map(Datatype::named);
    let record = engine(Datatype::structured(&[1, 1, 1], &[0, 4, 8], &types))?;
    Ok((record, count, HandNest::CharIntDouble { count: count as usize }))
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
        let Layout { count: 1, nest: HandNest::Box3 { block: 8, counts, .. }, .. } = small else {
            panic!("{small:?}");
        };
        assert_eq!(counts, [1, 16, 128]);
        let large = at("face-z", 256 << 10).expect("a layout");
        let Layout { count: 2, nest: HandNest::Box3 { block: 1024, counts, .. }, .. } = large
        else {
            panic!("{large:?}");
        };
        assert_eq!(counts, [2, 1, 128]);
    }

    #[test]
    fn impossible_sizes_say_why() {
        let reason = |name, size| at(name, size).expect_err(name);
        assert_eq!(reason("d8s16", 63), "layout d8s16 at 63 bytes: one block is 64 bytes");
        assert!(reason("face-y", 129 << 10).contains("whole number of faces of 131072 bytes"));
        assert!(reason("struct", 12).contains("13 bytes"));
    }
}
