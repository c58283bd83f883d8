//! A halo exchange as a program without datatypes does it. Loops pack each face into a contiguous buffer, the
//! program sends one contiguous message to each neighbour, and loops unpack the messages that arrive.
//!
//! `solver.rs` and `../demo/exchange.rs` use this exchange to compare typepack's exchange with it. The loops
//! are those that a programmer would write for this layout. The buffers lie in shared memory, where
//! contiguous messages are fastest, so that the comparison measures packing and not transports.

use bytemuck::Pod;
use typepack::halo::{Element, Face, Field, Region, Stencil, faces};
use typepack::{Cartesian, Communicator, Datatype, Named, Plan, Result, SharedBuffer};

/// The type of a cell that the loops can pack.
pub trait Cell: Element {
    /// The data of a cell, without gaps.
    type Packed: Pod;

    /// Returns the data of the cell.
    fn packed(self) -> Self::Packed;

    /// Sets the data of the cell and leaves the gaps alone.
    fn unpack(&mut self, data: Self::Packed);
}

impl Cell for f64 {
    type Packed = Self;

    #[inline(always)]
    fn packed(self) -> Self {
        self
    }

    #[inline(always)]
    fn unpack(&mut self, data: Self) {
        *self = data;
    }
}

/// One neighbour, with the regions and buffers of the messages to and from it.
struct Link<C: Cell> {
    out: Region<3>,
    into: Region<3>,
    neighbour: usize,
    /// The tag of the message to the neighbour, and the tag of the message from the neighbour.
    tags: [i32; 2],
    /// If this rank is its own neighbour, the index of the link whose packed cells this link unpacks.
    from: Option<usize>,
    sent: SharedBuffer<C::Packed>,
    received: SharedBuffer<C::Packed>,
}

/// A halo exchange with hand-written loops. [`typepack::halo::Halo`] is the corresponding exchange with
/// datatypes.
pub struct Hand<C: Cell> {
    comm: Communicator,
    byte: Plan,
    padded: [usize; 3],
    links: Vec<Link<C>>,
}

impl<C: Cell> Hand<C> {
    /// Allocates the buffers of an exchange. Takes the arguments of [`typepack::halo::Halo::new`].
    pub fn new(
        cartesian: &Cartesian,
        shape: [usize; 3],
        width: usize,
        stencil: Stencil,
        fields: usize,
    ) -> Result<Self> {
        let mut links: Vec<Link<C>> = Vec::new();
        let mut sides = Vec::new();
        for Face { side, send_region, recv_region, .. } in
            faces(&shape, width, stencil, &C::datatype())?
        {
            let coordinates: Vec<i64> = cartesian
                .coords()
                .iter()
                .zip(side.steps())
                // Lossless: a coordinate is less than the number of ranks.
                .map(|(&coordinate, step)| coordinate as i64 + i64::from(step))
                .collect();
            let Some(neighbour) = cartesian.rank_of(&coordinates) else { continue };
            let cells = send_region.cells() * fields;
            sides.push(side);
            links.push(Link {
                out: send_region,
                into: recv_region,
                neighbour,
                tags: [side.index(), side.opposite().index()],
                from: None,
                sent: SharedBuffer::zeroed(cells)?,
                received: SharedBuffer::zeroed(cells)?,
            });
        }
        for (link, side) in links.iter_mut().zip(&sides) {
            if link.neighbour == cartesian.comm().rank() {
                link.from = sides.iter().position(|other| *other == side.opposite());
            }
        }
        let byte = typepack::commit(&Datatype::named(Named::U8))?;
        let padded = shape.map(|extent| extent + 2 * width);
        Ok(Self { comm: cartesian.comm().dup()?, byte, padded, links })
    }

    /// Exchanges all halos. Calls `during` while the messages are under way.
    pub fn exchange(
        &mut self,
        fields: &mut [Field<C, 3>],
        during: impl FnOnce(&[Field<C, 3>], &Communicator) -> Result<()>,
    ) -> Result<()> {
        let Self { comm, byte, padded, links } = self;
        for link in links.iter_mut() {
            let cells = link.out.cells();
            for (field, sent) in fields.iter().zip(link.sent.chunks_exact_mut(cells)) {
                pack(field.as_slice(), *padded, link.out, sent);
            }
        }
        let computed = comm.scope(|scope| -> Result<()> {
            let mut requests = Vec::new();
            let mut sends = Vec::new();
            for link in links.iter_mut().filter(|link| link.from.is_none()) {
                // Lossless: these bytes are in memory.
                let bytes = size_of_val::<[C::Packed]>(&link.sent) as u64;
                let [to, from] = link.tags;
                let received = &mut link.received[..];
                requests.push(scope.irecv(received, byte, bytes, link.neighbour, from)?);
                sends.push((&link.sent[..], bytes, link.neighbour, to));
            }
            for (sent, bytes, neighbour, tag) in sends {
                requests.push(scope.isend(sent, byte, bytes, neighbour, tag)?);
            }
            let computed = during(fields, comm);
            scope.wait_all(requests)?;
            computed
        })?;
        computed?;
        for link in &self.links {
            let cells = link.into.cells();
            let data = link.from.map_or(&link.received, |from| &self.links[from].sent);
            for (field, received) in fields.iter_mut().zip(data.chunks_exact(cells)) {
                unpack(received, field.as_mut_slice(), self.padded, link.into);
            }
        }
        Ok(())
    }
}

/// Calls `row` for each row of a region. The arguments of `row` are the positions of the row's first cell in
/// memory and among the packed cells.
fn rows(padded: [usize; 3], region: Region<3>, mut row: impl FnMut(usize, usize)) {
    let ([z0, y0, x0], [nz, ny, nx]) = (region.start, region.extent);
    for z in 0..nz {
        for y in 0..ny {
            row(((z0 + z) * padded[1] + y0 + y) * padded[2] + x0, (z * ny + y) * nx);
        }
    }
}

/// If the region has only one cell in each row, returns the number of planes and the number of cells per
/// plane. Otherwise returns `None`.
fn columns(region: Region<3>) -> Option<[usize; 2]> {
    let [planes, cells, in_row] = region.extent;
    (in_row == 1).then_some([planes, cells])
}

fn pack<C: Cell>(cells: &[C], padded: [usize; 3], region: Region<3>, packed: &mut [C::Packed]) {
    let [z0, y0, x0] = region.start;
    if let Some([planes, in_plane]) = columns(region) {
        for (z, packed) in packed.chunks_exact_mut(in_plane).enumerate().take(planes) {
            let first = ((z0 + z) * padded[1] + y0) * padded[2] + x0;
            for (packed, cell) in packed.iter_mut().zip(cells[first..].iter().step_by(padded[2])) {
                *packed = cell.packed();
            }
        }
        return;
    }
    let in_row = region.extent[2];
    rows(padded, region, |at, place| {
        for (packed, cell) in packed[place..][..in_row].iter_mut().zip(&cells[at..][..in_row]) {
            *packed = cell.packed();
        }
    });
}

fn unpack<C: Cell>(packed: &[C::Packed], cells: &mut [C], padded: [usize; 3], region: Region<3>) {
    let [z0, y0, x0] = region.start;
    if let Some([planes, in_plane]) = columns(region) {
        for (z, packed) in packed.chunks_exact(in_plane).enumerate().take(planes) {
            let first = ((z0 + z) * padded[1] + y0) * padded[2] + x0;
            for (data, cell) in packed.iter().zip(cells[first..].iter_mut().step_by(padded[2])) {
                cell.unpack(*data);
            }
        }
        return;
    }
    let in_row = region.extent[2];
    rows(padded, region, |at, place| {
        for (data, cell) in packed[place..][..in_row].iter().zip(&mut cells[at..][..in_row]) {
            cell.unpack(*data);
        }
    });
}
