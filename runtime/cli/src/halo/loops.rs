//! The loops of `hand.rs`: what a good programmer writes for the faces of a field whose layout is known.
//!
//! A [`Packing`] says which parts of each cell the loops move. Typepack chooses its kernels by the CPU, so
//! for a fair comparison the loops are compiled for several CPUs too. When the program runs, [`Loops`]
//! chooses one of three versions: for any CPU, for x86-64-v3 (AVX2), or for x86-64-v4 (AVX-512). Nothing is
//! vectorised by hand.
//!
//! Invariant: a `Loops` has a [`Level`] only if this CPU has every feature of the level.

use std::marker::PhantomData;

use bytemuck::Pod;
use typepack::halo::{Element, Region};

/// Says which parts of a cell the loops move, and how these parts are stored in a message.
pub trait Packing {
    /// A cell of the field.
    type Cell: Element;
    /// A cell in a message.
    type Packed: Pod;

    /// Returns the parts that a message stores for this cell.
    fn pack(cell: &Self::Cell) -> Self::Packed;

    /// Writes to `cell` the parts that a message stores for a cell.
    fn unpack(data: &Self::Packed, cell: &mut Self::Cell);

    /// Packs contiguous cells; both slices have the same length.
    #[inline(always)]
    fn pack_row(cells: &[Self::Cell], packed: &mut [Self::Packed]) {
        for (packed, cell) in packed.iter_mut().zip(cells) {
            *packed = Self::pack(cell);
        }
    }

    /// Unpacks contiguous cells; both slices have the same length.
    #[inline(always)]
    fn unpack_row(packed: &[Self::Packed], cells: &mut [Self::Cell]) {
        for (data, cell) in packed.iter().zip(cells) {
            Self::unpack(data, cell);
        }
    }

    /// Copies `len` contiguous cells from index `from` to index `to` of the same field. Only the parts that
    /// the loops move are copied.
    #[inline(always)]
    fn copy_row(cells: &mut [Self::Cell], from: usize, to: usize, len: usize) {
        for i in 0..len {
            let data = Self::pack(&cells[from + i]);
            Self::unpack(&data, &mut cells[to + i]);
        }
    }
}

/// Moves whole cells, including any gaps.
pub struct Whole<C>(PhantomData<C>);

impl<C: Element> Packing for Whole<C> {
    type Cell = C;
    type Packed = C;

    #[inline(always)]
    fn pack(cell: &C) -> C {
        *cell
    }

    #[inline(always)]
    fn unpack(data: &C, cell: &mut C) {
        *cell = *data;
    }

    #[inline(always)]
    fn pack_row(cells: &[C], packed: &mut [C]) {
        packed.copy_from_slice(cells);
    }

    #[inline(always)]
    fn unpack_row(packed: &[C], cells: &mut [C]) {
        cells.copy_from_slice(packed);
    }

    #[inline(always)]
    fn copy_row(cells: &mut [C], from: usize, to: usize, len: usize) {
        cells.copy_within(from..from + len, to);
    }
}

/// The CPUs that a version of the loops is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// Every CPU of the architecture. On AArch64, the code at this level uses the vector instructions that
    /// all AArch64 CPUs have.
    Any,
    /// x86-64-v3: AVX2.
    #[cfg(target_arch = "x86_64")]
    V3,
    /// x86-64-v4: AVX-512.
    #[cfg(target_arch = "x86_64")]
    V4,
}

/// Compiles the loops for the CPUs that have all features in a list. The compiler and the check of the CPU
/// use the same list, so that they cannot differ.
macro_rules! level {
    ($module:ident: $($feature:tt)*) => {
        #[cfg(target_arch = "x86_64")]
        mod $module {
            use super::{Packing, Region};

            /// Returns whether this CPU has all features in the list.
            pub fn is_here() -> bool {
                $(is_x86_feature_detected!($feature))&&*
            }

            #[target_feature($(enable = $feature),*)]
            pub fn pack<P: Packing>(
                cells: &[P::Cell],
                padded: [usize; 3],
                region: Region<3>,
                packed: &mut [P::Packed],
            ) {
                super::pack::<P>(cells, padded, region, packed);
            }

            #[target_feature($(enable = $feature),*)]
            pub fn unpack<P: Packing>(
                packed: &[P::Packed],
                cells: &mut [P::Cell],
                padded: [usize; 3],
                region: Region<3>,
            ) {
                super::unpack::<P>(packed, cells, padded, region);
            }

            #[target_feature($(enable = $feature),*)]
            pub fn copy<P: Packing>(
                cells: &mut [P::Cell],
                padded: [usize; 3],
                from: Region<3>,
                to: Region<3>,
            ) {
                super::copy::<P>(cells, padded, from, to);
            }
        }
    };
}

level! { v3: "avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "movbe" "popcnt" }
level! { v4: "avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "movbe" "popcnt"
"avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl" }

/// Calls the version of a loop that is compiled for a level.
macro_rules! at_level {
    ($level:expr, $name:ident($($argument:expr),*)) => {
        match $level {
            Level::Any => $name::<P>($($argument),*),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Loops::levels` gives `V3` only after `v3::is_here` has found every feature that the
            // functions of `v3` are compiled for, and nothing else makes a `Loops` with `V3`.
            Level::V3 => unsafe { v3::$name::<P>($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Loops::levels` gives `V4` only if `v4::is_here` has found every feature of `v4`.
            Level::V4 => unsafe { v4::$name::<P>($($argument),*) },
        }
    };
}

/// The loops, compiled for this CPU.
#[derive(Clone, Copy, Debug)]
pub struct Loops(Level);

impl Loops {
    /// Returns the loops for the newest level that this CPU supports.
    pub fn for_this_cpu() -> Self {
        // The first level is always `Any`, so the iterator is never empty.
        Self::levels().last().unwrap_or(Self(Level::Any))
    }

    /// Returns the loops for each level that this CPU supports, the oldest level first.
    fn levels() -> impl Iterator<Item = Self> {
        let levels = [
            Some(Level::Any),
            #[cfg(target_arch = "x86_64")]
            v3::is_here().then_some(Level::V3),
            #[cfg(target_arch = "x86_64")]
            v4::is_here().then_some(Level::V4),
        ];
        levels.into_iter().flatten().map(Self)
    }

    /// Packs the cells of a region. `cells` has all cells of a field, and `padded` is the shape of the
    /// field including its halo.
    pub fn pack<P: Packing>(
        self,
        cells: &[P::Cell],
        padded: [usize; 3],
        region: Region<3>,
        packed: &mut [P::Packed],
    ) {
        at_level!(self.0, pack(cells, padded, region, packed));
    }

    /// Unpacks the cells of a region.
    pub fn unpack<P: Packing>(
        self,
        packed: &[P::Packed],
        cells: &mut [P::Cell],
        padded: [usize; 3],
        region: Region<3>,
    ) {
        at_level!(self.0, unpack(packed, cells, padded, region));
    }

    /// Copies the cells of a region to a region of the same extent.
    pub fn copy<P: Packing>(
        self,
        cells: &mut [P::Cell],
        padded: [usize; 3],
        from: Region<3>,
        to: Region<3>,
    ) {
        at_level!(self.0, copy(cells, padded, from, to));
    }
}

/// Returns the index, in the field, of the first cell in a row of a region. `z` and `y` count the planes
/// and rows from the start of the region.
#[inline(always)]
fn position(padded: [usize; 3], region: Region<3>, z: usize, y: usize) -> usize {
    let [z0, y0, x0] = region.start;
    ((z0 + z) * padded[1] + y0 + y) * padded[2] + x0
}

#[inline(always)]
fn pack<P: Packing>(
    cells: &[P::Cell],
    padded: [usize; 3],
    region: Region<3>,
    packed: &mut [P::Packed],
) {
    let [_, in_plane, in_row] = region.extent;
    for (z, packed) in packed.chunks_exact_mut(in_plane * in_row).enumerate() {
        let cells = &cells[position(padded, region, z, 0)..];
        if in_row == 1 {
            for (packed, cell) in packed.iter_mut().zip(cells.iter().step_by(padded[2])) {
                *packed = P::pack(cell);
            }
        } else {
            for (packed, cells) in packed.chunks_exact_mut(in_row).zip(cells.chunks(padded[2])) {
                P::pack_row(&cells[..in_row], packed);
            }
        }
    }
}

#[inline(always)]
fn unpack<P: Packing>(
    packed: &[P::Packed],
    cells: &mut [P::Cell],
    padded: [usize; 3],
    region: Region<3>,
) {
    let [_, in_plane, in_row] = region.extent;
    for (z, packed) in packed.chunks_exact(in_plane * in_row).enumerate() {
        let cells = &mut cells[position(padded, region, z, 0)..];
        if in_row == 1 {
            for (data, cell) in packed.iter().zip(cells.iter_mut().step_by(padded[2])) {
                P::unpack(data, cell);
            }
        } else {
            for (packed, cells) in packed.chunks_exact(in_row).zip(cells.chunks_mut(padded[2])) {
                P::unpack_row(packed, &mut cells[..in_row]);
            }
        }
    }
}

#[inline(always)]
fn copy<P: Packing>(cells: &mut [P::Cell], padded: [usize; 3], from: Region<3>, to: Region<3>) {
    let [planes, in_plane, in_row] = from.extent;
    for z in 0..planes {
        for y in 0..in_plane {
            let [from, to] = [from, to].map(|region| position(padded, region, z, y));
            if in_row == 1 {
                let data = P::pack(&cells[from]);
                P::unpack(&data, &mut cells[to]);
            } else {
                P::copy_row(cells, from, to, in_row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use typepack::halo::{Stencil, faces};

    use super::*;

    const SHAPE: [usize; 3] = [3, 4, 5];

    /// Calls `each` with the positions of all cells of a region, in the order of a message.
    fn for_each(padded: [usize; 3], region: Region<3>, mut each: impl FnMut(usize)) {
        let [nz, ny, nx] = region.extent;
        for place in 0..nz * ny * nx {
            each(position(padded, region, place / nx / ny, place / nx % ny) + place % nx);
        }
    }

    #[test]
    fn every_level_moves_every_face_of_every_width() {
        type P = Whole<f64>;
        for (level, width) in Loops::levels().flat_map(|level| [1, 2].map(|width| (level, width))) {
            let padded = SHAPE.map(|extent| extent + 2 * width);
            let numbered = || (0..padded.iter().product()).map(|n: usize| n as f64).collect();
            for face in faces(&SHAPE, width, Stencil::Box, &f64::datatype()).expect("faces") {
                let (from, to) = (face.send_region, face.recv_region);
                let cells: Vec<f64> = numbered();
                let mut packed = vec![-1.0; from.cells()];
                level.pack::<P>(&cells, padded, from, &mut packed);
                let mut wanted = Vec::new();
                for_each(padded, from, |at| wanted.push(at as f64));
                assert_eq!(packed, wanted, "{level:?} {face:?}");

                let mut unpacked = cells.clone();
                level.unpack::<P>(&packed, &mut unpacked, padded, to);
                let (mut wanted, mut data) = (cells.clone(), packed.iter());
                for_each(padded, to, |at| wanted[at] = *data.next().expect("a cell"));
                assert_eq!(unpacked, wanted, "{level:?} {face:?}");

                let mut copied = cells;
                level.copy::<P>(&mut copied, padded, from, to);
                assert_eq!(copied, wanted, "{level:?} {face:?}");
            }
        }
    }
}
