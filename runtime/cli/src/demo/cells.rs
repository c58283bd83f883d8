//! The two types of cells that `typepack demo` exchanges: a double, and a struct with a gap between two of
//! its members. For the struct, the implementations of `Packing` here say which parts of a cell the
//! hand-written loops move.
//!
//! `verify.rs` fills fields with these cells, and checks the cells after an exchange.

use bytemuck::{Pod, Zeroable};
use typepack::halo::Element;
use typepack::{Datatype, Named};

use crate::halo::Packing;

/// A cell with gaps, as a C compiler lays out `struct { char kind; int level; double value; }`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Gapped {
    kind: u8,
    /// The bytes between `kind` and `level`, which no member of the C struct covers.
    pub gap: [u8; 3],
    level: i32,
    value: f64,
}

// SAFETY: all-zero bytes are a valid value of every member.
unsafe impl Zeroable for Gapped {}
// SAFETY: the struct is `repr(C)` and has no padding, because the gap is a member. Every member is `Pod`.
unsafe impl Pod for Gapped {}

impl Element for Gapped {
    fn datatype() -> Datatype {
        let members = [Named::U8, Named::I32, Named::F64].map(Datatype::named);
        let places = [0, 4, 8];
        // This cannot fail, because the arguments are constants: they describe three members within
        // 16 bytes.
        Datatype::structured(&[1, 1, 1], &places, &members)
            .expect("these constant arguments should make a valid struct type")
    }
}

/// Packs the members of a cell without the gap, and unpacks only members, as an MPI datatype does.
pub struct Members;

impl Packing for Members {
    type Cell = Gapped;
    type Packed = [u8; 13];

    #[inline(always)]
    fn pack(cell: &Gapped) -> [u8; 13] {
        let mut data = [0; 13];
        data[0] = cell.kind;
        data[1..5].copy_from_slice(&cell.level.to_ne_bytes());
        data[5..].copy_from_slice(&cell.value.to_ne_bytes());
        data
    }

    #[inline(always)]
    fn unpack(data: &[u8; 13], cell: &mut Gapped) {
        let [kind, a, b, c, d, value @ ..] = *data;
        cell.kind = kind;
        cell.level = i32::from_ne_bytes([a, b, c, d]);
        cell.value = f64::from_ne_bytes(value);
    }
}

/// Sends whole cells, but unpacks only members, so that the receiver's gaps keep their contents.
pub struct MembersOfWhole;

impl Packing for MembersOfWhole {
    type Cell = Gapped;
    type Packed = Gapped;

    #[inline(always)]
    fn pack(cell: &Gapped) -> Gapped {
        *cell
    }

    #[inline(always)]
    fn unpack(data: &Gapped, cell: &mut Gapped) {
        cell.kind = data.kind;
        cell.level = data.level;
        cell.value = data.value;
    }

    #[inline(always)]
    fn pack_row(cells: &[Gapped], packed: &mut [Gapped]) {
        packed.copy_from_slice(cells);
    }
}

/// Cells with known contents, for the verification.
pub trait Made: Element {
    /// Returns a cell whose contents depend on `number`. If the cell has a gap, all bits of the gap are 1,
    /// unlike those of a blank cell.
    fn made(number: u64) -> Self;
    /// Returns a blank cell, the content of every halo cell before the exchange.
    fn blank() -> Self;
}

impl Made for f64 {
    fn made(number: u64) -> Self {
        number as f64 + 0.25
    }

    fn blank() -> Self {
        -1.0
    }
}

impl Made for Gapped {
    fn made(number: u64) -> Self {
        // Each member gets some bits of the number.
        Self { kind: number as u8, gap: [255; 3], level: number as i32, value: number as f64 + 0.5 }
    }

    fn blank() -> Self {
        Self { kind: 77, gap: [1, 2, 3], level: -1, value: -1.0 }
    }
}
