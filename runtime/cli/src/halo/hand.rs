//! A halo exchange as a program without datatypes would do it. Loops pack each face into a contiguous buffer,
//! the program sends one contiguous message to each neighbour, and loops unpack the messages that arrive.
//!
//! `solver.rs` and `../demo/exchange.rs` use this exchange to compare typepack's exchange with it. The
//! exchange does what a good programmer would do: it posts all receives before it packs, sends each face as
//! soon as it is packed, and copies a face directly if this rank is its own neighbour. `loops.rs` has the
//! loops. The buffers lie in shared memory, where contiguous messages are fastest, so that the comparison
//! measures packing rather than transports.

use typepack::halo::{Element as _, Face, Field, Region, Stencil, faces};
use typepack::{Cartesian, Communicator, Datatype, Named, Plan, Result, SharedBuffer};

use super::loops::{Loops, Packing};

/// One neighbour on another rank, with the regions and buffers of the messages to and from it.
struct Link<P: Packing> {
    out: Region<3>,
    into: Region<3>,
    neighbour: usize,
    /// The tag of the message to the neighbour, followed by the tag of the message from the neighbour.
    tags: [i32; 2],
    sent: SharedBuffer<P::Packed>,
    received: SharedBuffer<P::Packed>,
}

/// A face that this rank sends to itself.
struct Own {
    from: Region<3>,
    to: Region<3>,
}

/// A halo exchange with hand-written loops. [`typepack::halo::Halo`] is the corresponding exchange with
/// datatypes.
pub struct Hand<P: Packing> {
    comm: Communicator,
    byte: Plan,
    padded: [usize; 3],
    loops: Loops,
    links: Vec<Link<P>>,
    own: Vec<Own>,
}

impl<P: Packing> Hand<P> {
    /// Allocates the buffers of an exchange. Takes the same arguments as [`typepack::halo::Halo::new`].
    pub fn new(
        cartesian: &Cartesian,
        shape: [usize; 3],
        width: usize,
        stencil: Stencil,
        fields: usize,
    ) -> Result<Self> {
        let (mut links, mut own) = (Vec::new(), Vec::new());
        let faces = faces(&shape, width, stencil, &P::Cell::datatype())?;
        for Face { side, send_region, recv_region, .. } in &faces {
            let coordinates: Vec<i64> = cartesian
                .coords()
                .iter()
                .zip(side.steps())
                // The cast is lossless: a coordinate is less than the number of ranks.
                .map(|(&coordinate, step)| coordinate as i64 + i64::from(step))
                .collect();
            let Some(neighbour) = cartesian.rank_of(&coordinates) else { continue };
            if neighbour == cartesian.comm().rank() {
                // This rank is its own neighbour: the cells that it receives at this side are those that it
                // sends at the opposite side. Every side has an opposite side.
                let opposite = faces.iter().find(|face| face.side == side.opposite());
                own.extend(opposite.map(|face| Own { from: face.send_region, to: *recv_region }));
                continue;
            }
            let cells = send_region.cells() * fields;
            links.push(Link {
                out: *send_region,
                into: *recv_region,
                neighbour,
                tags: [side.index(), side.opposite().index()],
                sent: SharedBuffer::zeroed(cells)?,
                received: SharedBuffer::zeroed(cells)?,
            });
        }
        Ok(Self {
            comm: cartesian.comm().dup()?,
            byte: typepack::commit(&Datatype::named(Named::U8))?,
            padded: shape.map(|extent| extent + 2 * width),
            loops: Loops::for_this_cpu(),
            links,
            own,
        })
    }

    /// Exchanges all halos. Calls `during` while the messages are under way.
    pub fn exchange(
        &mut self,
        fields: &mut [Field<P::Cell, 3>],
        during: impl FnOnce(&[Field<P::Cell, 3>], &Communicator) -> Result<()>,
    ) -> Result<()> {
        let Self { comm, byte, padded, loops, links, own } = self;
        let (padded, loops) = (*padded, *loops);
        let computed = comm.scope(|scope| -> Result<()> {
            let mut requests = Vec::with_capacity(2 * links.len());
            let mut sends = Vec::with_capacity(links.len());
            for Link { out, neighbour, tags: [to, from], sent, received, .. } in links.iter_mut() {
                // The cast is lossless: the size of a buffer in memory fits in 64 bits.
                let bytes = size_of_val::<[P::Packed]>(received) as u64;
                let received = &mut received[..];
                requests.push(scope.irecv_elements(received, byte, bytes, *neighbour, *from)?);
                sends.push((*out, sent, bytes, *neighbour, *to));
            }
            for (out, sent, bytes, neighbour, tag) in sends {
                for (field, sent) in fields.iter().zip(sent.chunks_exact_mut(out.cells())) {
                    loops.pack::<P>(field.as_slice(), padded, out, sent);
                }
                requests.push(scope.isend_elements(&sent[..], byte, bytes, neighbour, tag)?);
            }
            for field in fields.iter_mut() {
                for Own { from, to } in own.iter() {
                    loops.copy::<P>(field.as_mut_slice(), padded, *from, *to);
                }
            }
            let computed = during(fields, comm);
            scope.wait_all(requests)?;
            computed
        })?;
        computed?;
        for Link { into, received, .. } in &self.links {
            for (field, received) in fields.iter_mut().zip(received.chunks_exact(into.cells())) {
                loops.unpack::<P>(received, field.as_mut_slice(), padded, *into);
            }
        }
        Ok(())
    }
}
