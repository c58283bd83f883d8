//! The geometry of an exchange: the sides of a block, the boxes of cells at each side, and the datatypes of
//! these boxes.
//!
//! This file only calculates; nothing in it depends on ranks or messages. `plan.rs` takes the [`faces`] of a
//! block, finds the neighbour at each [`Side`], and commits the datatypes. `interior.rs` uses [`Block`] to
//! check which cells a computation may access while messages are under way.
//!
//! Invariants:
//! - An array holds `shape[d] + 2 * width` elements along dimension `d`, in C order: the last index varies
//!   fastest. The last dimension is called x, the dimension before it y, then z, then w.
//! - Receive boxes lie in the halo, and send boxes lie in the owned cells. Receive boxes of different sides
//!   are disjoint; send boxes of different sides overlap in the corners.
//! - The cells that a block sends towards side `s` are the cells that its neighbour at `s` receives from
//!   `s.opposite()`.

use std::fmt;

use typepack_engine::{Datatype, Order};

use crate::error::{Error, ErrorKind, Result};

/// The set of neighbours with which a block exchanges cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stencil {
    /// The two neighbours along each dimension, for example 6 neighbours in three dimensions.
    Star,
    /// All neighbours, including those across edges and corners, for example 26 neighbours in three
    /// dimensions.
    Box,
}

/// The direction of a neighbour: -1, 0 or +1 step along each dimension. At least one step is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Side<const N: usize>([i8; N]);

impl<const N: usize> Side<N> {
    /// Returns the steps along each dimension. The dimension whose index varies slowest in memory comes
    /// first.
    pub fn steps(&self) -> [i8; N] {
        self.0
    }

    /// Returns the opposite direction.
    #[must_use]
    pub fn opposite(&self) -> Self {
        Self(self.0.map(|step| -step))
    }

    /// Returns the number of this side. It is below 3^N, and no two sides have the same number. The messages
    /// of a side use its number as their tag.
    pub fn index(&self) -> i32 {
        self.0.iter().fold(0, |number, &step| number * 3 + i32::from(step) + 1)
    }

    /// Returns all sides of a stencil in ascending order.
    fn all(stencil: Stencil) -> impl Iterator<Item = Self> {
        (0..3_usize.pow(N as u32)).filter_map(move |number| {
            let mut steps = [0_i8; N];
            let mut rest = number;
            for step in steps.iter_mut().rev() {
                // The remainder is 0, 1 or 2, so it fits in `i8`.
                *step = (rest % 3) as i8 - 1;
                rest /= 3;
            }
            let axes = steps.iter().filter(|&&step| step != 0).count();
            let taken = match stencil {
                Stencil::Star => axes == 1,
                Stencil::Box => axes >= 1,
            };
            taken.then_some(Self(steps))
        })
    }
}

impl<const N: usize> fmt::Display for Side<N> {
    /// Writes the side in a form such as `-x` or `+z-y`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (dimension, &step) in self.0.iter().enumerate() {
            if step != 0 {
                let sign = if step < 0 { '-' } else { '+' };
                match N - 1 - dimension {
                    axis @ 0..4 => write!(f, "{sign}{}", ['x', 'y', 'z', 'w'][axis])?,
                    axis => write!(f, "{sign}d{axis}")?,
                }
            }
        }
        Ok(())
    }
}

/// A box of cells inside an array. Positions and lengths count elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region<const N: usize> {
    /// First cell along each dimension.
    pub start: [usize; N],
    /// Number of cells along each dimension.
    pub extent: [usize; N],
}

impl<const N: usize> Region<N> {
    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        self.extent.iter().product()
    }
}

/// The part of an exchange that concerns one neighbour. [`faces`] returns one value per neighbour.
#[derive(Clone, Debug)]
pub struct Face<const N: usize> {
    /// The direction of the neighbour.
    pub side: Side<N>,
    /// The owned cells that this block sends to the neighbour.
    pub send_region: Region<N>,
    /// The halo cells that this block receives from the neighbour.
    pub recv_region: Region<N>,
    /// The datatype of [`Face::send_region`] as a subarray of the whole array.
    pub send: Datatype,
    /// The datatype of [`Face::recv_region`] as a subarray of the whole array.
    pub recv: Datatype,
}

/// The size of one rank's block: the owned cells and the halo around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block<const N: usize> {
    pub shape: [usize; N],
    pub width: usize,
}

impl<const N: usize> Block<N> {
    /// Checks the shape and the width, and makes a block. The checks ensure that no product in this file
    /// exceeds `isize::MAX` bytes.
    pub(super) fn new(shape: [usize; N], width: usize, element_bytes: usize) -> Result<Self> {
        if N == 0 || N > 8 {
            let detail = format!("the number of dimensions is {N}; it must be 1 to 8");
            return Err(argument("shape", detail));
        }
        if width == 0 {
            return Err(argument("width", "the width is 0; it must be at least 1".into()));
        }
        for (dimension, &extent) in shape.iter().enumerate() {
            if extent == 0 {
                let detail = format!(
                    "{shape:?} has 0 cells along dimension {dimension}; it needs at least 1"
                );
                return Err(argument("shape", detail));
            }
            if width > extent {
                let detail = format!(
                    "the width is {width}; it must be at most {extent}, the extent of the block along \
                     dimension {dimension}"
                );
                return Err(argument("width", detail));
            }
        }
        let bytes = shape.iter().try_fold(element_bytes, |bytes, &extent| {
            width.checked_mul(2)?.checked_add(extent)?.checked_mul(bytes)
        });
        if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(argument(
                "shape",
                format!("{shape:?} with a halo of width {width} does not fit in the address space"),
            ));
        }
        Ok(Self { shape, width })
    }

    /// Returns the number of elements along each dimension of the array, including the halo.
    pub(super) fn padded(&self) -> [usize; N] {
        self.shape.map(|extent| extent + 2 * self.width)
    }

    /// Returns the number of elements of the array, including the halo.
    pub(super) fn len(&self) -> usize {
        self.padded().iter().product()
    }

    /// Returns the position of a cell in the array, in elements. `index` counts from the array's first
    /// element.
    pub(super) fn position(&self, index: [usize; N]) -> usize {
        index.iter().zip(self.padded()).fold(0, |position, (&i, extent)| position * extent + i)
    }

    fn send_region(&self, side: Side<N>) -> Region<N> {
        self.region(side, |extent, width, step| if step < 0 { width } else { extent })
    }

    fn recv_region(&self, side: Side<N>) -> Region<N> {
        self.region(side, |extent, width, step| if step < 0 { 0 } else { extent + width })
    }

    /// Returns the box of a side. Along each dimension in which `side` has a step, the box is `width` cells
    /// wide and begins at the cell that `start` returns. Along the other dimensions, the box covers all owned
    /// cells.
    fn region(&self, side: Side<N>, start: impl Fn(usize, usize, i8) -> usize) -> Region<N> {
        let mut region = Region { start: [self.width; N], extent: self.shape };
        for (dimension, &step) in side.0.iter().enumerate() {
            if step != 0 {
                region.start[dimension] = start(self.shape[dimension], self.width, step);
                region.extent[dimension] = self.width;
            }
        }
        region
    }

    fn subarray(&self, region: &Region<N>, element: &Datatype) -> Result<Datatype> {
        // The conversions lose nothing, because `new` has checked that all products fit in `isize`.
        let wide = |values: [usize; N]| values.map(|value| value as i64);
        Ok(Datatype::subarray(
            &wide(self.padded()),
            &wide(region.extent),
            &wide(region.start),
            Order::C,
            element,
        )?)
    }

    /// Returns the faces of this block in ascending order of their sides.
    pub(super) fn faces(&self, stencil: Stencil, element: &Datatype) -> Result<Vec<Face<N>>> {
        Side::all(stencil)
            .map(|side| {
                let send_region = self.send_region(side);
                let recv_region = self.recv_region(side);
                Ok(Face {
                    side,
                    send_region,
                    recv_region,
                    send: self.subarray(&send_region, element)?,
                    recv: self.subarray(&recv_region, element)?,
                })
            })
            .collect()
    }
}

fn argument(name: &'static str, detail: String) -> Error {
    Error::new(ErrorKind::Argument, name, detail)
}

/// Returns the send and receive datatypes of every face of a block.
///
/// `shape` is the number of owned cells along each dimension, and `width` is the width of the halo on each
/// side. The datatypes describe an array of `shape[d] + 2 * width` elements of type `element` along
/// dimension `d`, in C order (the last index varies fastest). Programs that build a halo exchange by hand
/// use this function; [`Halo`](super::Halo) does the whole exchange.
///
/// # Errors
///
/// Returns `ErrorKind::Argument` if `N` is 0 or above 8, if a dimension has no cell, if `width` is 0 or
/// larger than an entry of `shape`, or if the array does not fit in the address space.
///
/// ```
/// use typepack::halo::{Stencil, faces};
/// use typepack::{Datatype, Named};
///
/// let f64 = Datatype::named(Named::F64);
/// let faces = faces(&[16, 16, 16], 1, Stencil::Star, &f64)?;
/// assert_eq!(faces.len(), 6);
/// assert!(faces.iter().all(|face| face.send.size() == 16 * 16 * 8));
/// # Ok::<(), typepack::Error>(())
/// ```
pub fn faces<const N: usize>(
    shape: &[usize; N],
    width: usize,
    stencil: Stencil,
    element: &Datatype,
) -> Result<Vec<Face<N>>> {
    // If the element's extent is 0 or negative, count it as 1, because the check of the array's size needs at
    // least 1 byte per element. A positive extent always fits in `usize`.
    let bytes = usize::try_from(element.extent()).unwrap_or(0).max(1);
    Block::new(*shape, width, bytes)?.faces(stencil, element)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn cells<const N: usize>(region: &Region<N>) -> Vec<[usize; N]> {
        let mut all = vec![[0; N]];
        for dimension in 0..N {
            all = all
                .into_iter()
                .flat_map(|base| {
                    (0..region.extent[dimension]).map(move |i| {
                        let mut cell = base;
                        cell[dimension] = region.start[dimension] + i;
                        cell
                    })
                })
                .collect();
        }
        all
    }

    fn block<const N: usize>(shape: [usize; N], width: usize) -> Block<N> {
        Block::new(shape, width, 8).expect("a good block")
    }

    #[test]
    fn sides_are_counted_named_and_numbered() {
        assert_eq!(Side::<3>::all(Stencil::Star).count(), 6);
        assert_eq!(Side::<3>::all(Stencil::Box).count(), 26);
        assert_eq!(Side::<2>::all(Stencil::Box).count(), 8);
        let numbers: HashSet<i32> = Side::<3>::all(Stencil::Box).map(|side| side.index()).collect();
        assert_eq!(numbers.len(), 26);
        assert_eq!(Side([1, -1, 0]).to_string(), "+z-y");
        assert_eq!(Side([1, -1, 0]).opposite(), Side([-1, 1, 0]));
    }

    #[test]
    fn receive_boxes_of_a_box_stencil_tile_the_halo_exactly_once() {
        let block = block([3, 4, 5], 2);
        let mut seen = HashSet::new();
        for side in Side::all(Stencil::Box) {
            for cell in cells(&block.recv_region(side)) {
                assert!(seen.insert(cell), "{side} repeats {cell:?}");
                let owned = (0..3).all(|d| (2..2 + block.shape[d]).contains(&cell[d]));
                assert!(!owned, "{side} writes the owned cell {cell:?}");
            }
        }
        assert_eq!(seen.len(), block.len() - 3 * 4 * 5);
    }

    #[test]
    fn a_send_box_is_the_neighbours_receive_box_shifted_by_one_block() {
        let block = block([3, 4, 5], 2);
        for side in Side::all(Stencil::Box) {
            let send = block.send_region(side);
            let recv = block.recv_region(side.opposite());
            assert_eq!(send.extent, recv.extent);
            for d in 0..3 {
                let shift = isize::from(side.0[d]) * block.shape[d] as isize;
                assert_eq!(send.start[d] as isize, recv.start[d] as isize + shift, "{side}");
            }
        }
    }

    #[test]
    fn datatypes_have_the_bytes_of_their_regions() {
        let element = Datatype::named(crate::Named::F64);
        for face in faces(&[6, 5, 4], 3, Stencil::Box, &element).expect("good faces") {
            assert_eq!(face.send.size(), face.send_region.cells() as i64 * 8);
            assert_eq!(face.recv.size(), face.recv_region.cells() as i64 * 8);
            assert_eq!(face.send.extent(), (12 * 11 * 10) * 8);
        }
    }

    #[test]
    fn bad_blocks_are_refused_by_the_name_of_the_argument() {
        let refused = |shape: [usize; 3], width| {
            Block::new(shape, width, 8).expect_err("must be refused").to_string()
        };
        assert!(refused([4, 4, 4], 0).starts_with("width:"));
        assert!(
            refused([4, 4, 1], 2).contains("at most 1, the extent of the block along dimension 2")
        );
        assert!(refused([4, 0, 4], 1).starts_with("shape:"));
        assert!(refused([usize::MAX / 2, 4, 4], 1).contains("address space"));
        assert!(refused([usize::MAX, 4, 4], 1).contains("address space"));
    }
}
