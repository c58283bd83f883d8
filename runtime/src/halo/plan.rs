//! The persistent plan of a halo exchange: its neighbours, its datatypes, and how it posts messages.
//!
//! A program makes a plan once, from a Cartesian communicator and the faces of `geometry.rs`. Each
//! [`start`](Halo::start) posts the messages and passes them to `exchange.rs`.
//!
//! Invariants:
//! - One message per neighbour and exchange carries the boxes of all fields, in the order of the fields. The
//!   message's datatype is the subarray of the box, repeated at the byte distance of each field from the
//!   first field. The plan commits the datatypes of a set of distances when it first sees the set, and keeps
//!   them. So a computation that swaps two sets of fields commits twice and then never again.
//! - A message towards side `s` has the tag of `s`, on a communicator that only the plan uses. In a periodic
//!   dimension of 1 or 2 ranks, both neighbours are the same rank, and only the tag distinguishes their
//!   messages.
//! - The plan posts receives before sends, and waits for nothing between the two.

use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use typepack_engine::{Datatype, Direction, Plan};

use super::exchange::{Exchange, Pending};
use super::field::{Element, Field};
use super::geometry::{Block, Face, Side, Stencil};
use crate::comm::{Communicator, SendMode};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Source, Tag};
use crate::topo::Cartesian;

/// The largest number of sets of field distances whose datatypes a plan keeps.
const LAYOUTS_MAX: usize = 16;

/// A persistent halo exchange over a Cartesian communicator.
///
/// The [module's documentation](super) has an example.
pub struct Halo<T: Element, const N: usize> {
    pub(super) comm: Communicator,
    pub(super) block: Block<N>,
    stencil: Stencil,
    fields: usize,
    links: Vec<Link<N>>,
    /// At most [`LAYOUTS_MAX`] layouts, the most recently used first.
    layouts: Mutex<Vec<Arc<Layout>>>,
    element: std::marker::PhantomData<fn(T) -> T>,
}

/// A face that has a neighbour.
struct Link<const N: usize> {
    face: Face<N>,
    neighbour: usize,
}

/// Committed datatypes for one set of distances between fields; one entry per link.
struct Layout {
    /// The byte distance of each field from the first.
    distances: Vec<i64>,
    plans: Vec<(Plan, Plan)>,
}

/// The messages with one neighbour in each exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaceReport<const N: usize> {
    /// The direction of the neighbour.
    pub side: Side<N>,
    /// The neighbour's rank in the Cartesian communicator.
    pub neighbour: usize,
    /// The bytes that this rank sends to the neighbour per exchange, for all fields together. It receives
    /// this number of bytes too.
    pub bytes: u64,
    /// The kernel that packs the message now (it may change when the JIT compiles), or `-` before the first
    /// exchange.
    pub pack: String,
    /// The kernel that unpacks the message from this side, or `-` before the first exchange.
    pub unpack: String,
}

impl<T: Element, const N: usize> Halo<T, N> {
    /// Plans the exchange of `fields` fields at once, with `shape` owned cells on this rank and a halo of
    /// `width` cells on each side.
    ///
    /// Blocks of different ranks may differ in shape. Ranks with the same coordinate in a dimension must have
    /// the same extent along that dimension. Collective over the communicator.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if the communicator does not have `N` dimensions, if `fields` is 0, if
    /// a dimension has no cell, if `width` is 0 or larger than an extent, or if [`Element::datatype`] of
    /// `T` does not describe one value. The function checks all of this before it communicates. If only
    /// some ranks find an error, the other ranks wait until those ranks end.
    pub fn new(
        cartesian: &Cartesian,
        shape: [usize; N],
        width: usize,
        stencil: Stencil,
        fields: usize,
    ) -> Result<Self> {
        let argument = |name, detail: String| Err(Error::new(ErrorKind::Argument, name, detail));
        if cartesian.dims().len() != N {
            return argument(
                "cartesian",
                format!(
                    "the number of dimensions is {}; it must be {N}, as in the fields",
                    cartesian.dims().len()
                ),
            );
        }
        if fields == 0 {
            return argument("fields", "the number of fields is 0; it must be at least 1".into());
        }
        let element = T::datatype();
        let bytes = size_of::<T>() as i64;
        if element.lb() != 0
            || element.extent() != bytes
            || element.true_lb() < 0
            || element.true_ub() > bytes
        {
            return argument(
                "T::datatype",
                format!(
                    "the datatype has extent {} and covers bytes {}..{}; it must have extent {bytes} and \
                     cover bytes in 0..{bytes}, the size of T",
                    element.extent(),
                    element.true_lb(),
                    element.true_ub()
                ),
            );
        }
        let block = Block::new(shape, width, size_of::<T>())?;
        let mut links = Vec::new();
        for face in block.faces(stencil, &element)? {
            let steps = face.side.steps();
            let coordinates: Vec<i64> = cartesian
                .coords()
                .iter()
                .zip(steps)
                // Lossless: a coordinate is below the number of ranks.
                .map(|(&coordinate, step)| coordinate as i64 + i64::from(step))
                .collect();
            if let Some(neighbour) = cartesian.rank_of(&coordinates) {
                links.push(Link { face, neighbour });
            }
        }
        Ok(Self {
            comm: cartesian.comm().dup()?,
            block,
            stencil,
            fields,
            links,
            layouts: Mutex::new(Vec::new()),
            element: std::marker::PhantomData,
        })
    }

    /// Starts to exchange the halos of `fields`. Every rank of the communicator must start its exchanges with
    /// this plan in the same order.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if the number of fields or the shape of a field is not the plan's, the
    /// error of an earlier exchange of a field if that exchange has failed, and `ErrorKind::ProcAborted` if
    /// another rank has died.
    pub fn start<'a>(&self, fields: &'a mut [Field<T, N>]) -> Result<Exchange<'a, T, N>> {
        self.check_fields(fields.len())?;
        for (number, field) in fields.iter_mut().enumerate() {
            if field.block() != self.block {
                return Err(Error::new(
                    ErrorKind::Argument,
                    "fields",
                    format!(
                        "fields[{number}] has shape {:?} and halo width {}; the plan needs shape {:?} and \
                         width {}",
                        field.shape(),
                        field.width(),
                        self.block.shape,
                        self.block.width
                    ),
                ));
            }
            field.settle()?;
        }
        let starts: Vec<*mut T> = fields.iter().map(|field| field.storage().start()).collect();
        // SAFETY:
        // - Each start is the allocation of another field and has `block.len()` values (checked above). The
        //   `Exchange` below shares their ownership, so a leaked exchange leaks the memory with it.
        // - Until the messages are complete nobody else accesses the allocations: the `Exchange` mutably
        //   borrows the fields, and a `Field` returns no reference before it has completed the exchange.
        let pending = unsafe { self.post(&starts)? };
        Ok(Exchange::new(fields, pending))
    }

    /// Starts and completes an exchange.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`start`](Halo::start) and [`Exchange::wait`].
    pub fn exchange(&self, fields: &mut [Field<T, N>]) -> Result<()> {
        self.start(fields)?.wait()
    }

    /// Returns the number of owned cells along each dimension.
    pub fn shape(&self) -> [usize; N] {
        self.block.shape
    }

    /// Returns the width of the halo in cells.
    pub fn width(&self) -> usize {
        self.block.width
    }

    /// Returns the set of neighbours.
    pub fn stencil(&self) -> Stencil {
        self.stencil
    }

    /// Returns the number of fields per exchange.
    pub fn fields(&self) -> usize {
        self.fields
    }

    /// Returns the bytes that this rank sends in one exchange. It receives this number of bytes too.
    pub fn bytes(&self) -> u64 {
        self.links.iter().map(|link| self.link_bytes(link)).sum()
    }

    /// Returns the part of [`bytes`](Halo::bytes) that goes to other ranks. The rest goes to this rank
    /// itself, which is its own neighbour in periodic dimensions of 1 rank.
    pub fn bytes_to_others(&self) -> u64 {
        let me = self.comm.rank();
        self.links.iter().filter(|l| l.neighbour != me).map(|l| self.link_bytes(l)).sum()
    }

    /// Returns one report per neighbour, in the order of the sides.
    pub fn faces(&self) -> Vec<FaceReport<N>> {
        let layout = self.lock_layouts().first().cloned();
        let name = |link: usize, direction| match (&layout, direction) {
            (None, _) => "-".to_owned(),
            (Some(layout), Direction::Pack) => layout.plans[link].0.kernel_name(direction),
            (Some(layout), Direction::Unpack) => layout.plans[link].1.kernel_name(direction),
        };
        self.links
            .iter()
            .enumerate()
            .map(|(number, link)| FaceReport {
                side: link.face.side,
                neighbour: link.neighbour,
                bytes: self.link_bytes(link),
                pack: name(number, Direction::Pack),
                unpack: name(number, Direction::Unpack),
            })
            .collect()
    }

    fn link_bytes(&self, link: &Link<N>) -> u64 {
        // `Block::new` has checked that the bytes of one field fit. A message of all fields may not fit; the
        // commit of its datatype then fails.
        (link.face.send_region.cells() as u64)
            .saturating_mul(size_of::<T>() as u64)
            .saturating_mul(self.fields as u64)
    }

    pub(super) fn check_fields(&self, given: usize) -> Result<()> {
        if given == self.fields {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Argument,
            "fields",
            format!("the number of fields is {given}; the plan needs {}", self.fields),
        ))
    }

    /// Posts all messages of one exchange, or none.
    ///
    /// # Safety
    ///
    /// - `starts` has one entry per field of the plan. Each entry is the first value of an array of
    ///   `block.len()` values, and the arrays do not overlap.
    /// - Until the result has been completed, the arrays stay valid, nobody writes their send boxes, and
    ///   nobody accesses their receive boxes.
    pub(super) unsafe fn post(&self, starts: &[*mut T]) -> Result<Pending> {
        let layout = self.layout(starts)?;
        // One message accesses several allocations from one address, like a message at MPI_BOTTOM. So all
        // allocations must be exposed, and the address must have the provenance of any of them.
        let addresses: Vec<usize> = starts.iter().map(|start| start.expose_provenance()).collect();
        let origin = ptr::with_exposed_provenance_mut::<u8>(addresses[0]);
        let messages = self.comm.messages();
        let mut operations = Vec::with_capacity(2 * self.links.len());
        let mut post_all = || {
            for (link, (_, recv)) in self.links.iter().zip(&layout.plans) {
                // The neighbour sends towards this rank, so its tag is the one of the opposite side.
                let tag = Tag::Is(link.face.side.opposite().index());
                let source = Source::Rank(self.comm.world_rank(
                    link.neighbour,
                    "source",
                    ErrorKind::Rank,
                )?);
                // SAFETY: `recv` covers the receive boxes of the arrays at their distances from `origin`. The
                // caller keeps the boxes valid, for this receive only, until completion (second condition of
                // `# Safety`). `source` is a rank of the world, and a side's index is not negative.
                operations.push(unsafe { messages.receive(origin, recv, 1, source, tag) }?);
            }
            for (link, (send, _)) in self.links.iter().zip(&layout.plans) {
                let dest = self.comm.world_rank(link.neighbour, "dest", ErrorKind::Rank)?;
                let (mode, tag) = (SendMode::Standard, link.face.side.index());
                // SAFETY: `send` covers the send boxes of the arrays at their distances from `origin`. The
                // caller keeps the boxes valid and unchanged until completion (second condition of `#
                // Safety`). `dest` is a rank of the world, a side's index is not negative, and `mode` lends
                // no memory.
                operations.push(unsafe { messages.send(mode, origin, send, 1, dest, tag) }?);
            }
            Ok(())
        };
        if let Err(error) = post_all() {
            // The neighbours may never post the matching messages, so waiting for these could take forever.
            for operation in operations {
                messages.abandon(operation);
            }
            return Err(error);
        }
        Ok(Pending::new(messages, operations))
    }

    /// Returns the committed datatypes for these arrays.
    fn layout(&self, starts: &[*mut T]) -> Result<Arc<Layout>> {
        let first = starts[0].addr();
        // The difference of two addresses always fits `i64`, so the subtraction may wrap.
        let distance = |start: &*mut T| start.addr().wrapping_sub(first) as i64;
        let mut layouts = self.lock_layouts();
        let known = layouts
            .iter()
            .position(|layout| layout.distances.iter().copied().eq(starts.iter().map(distance)));
        if let Some(position) = known {
            layouts[..=position].rotate_right(1);
        } else {
            let distances: Vec<i64> = starts.iter().map(distance).collect();
            let commit = |part: &Datatype| match distances.len() {
                1 => crate::commit(part),
                _ => crate::commit(&Datatype::hindexed_block(1, &distances, part)?),
            };
            let plans = self
                .links
                .iter()
                .map(|link| Ok((commit(&link.face.send)?, commit(&link.face.recv)?)))
                .collect::<Result<_>>()?;
            layouts.truncate(LAYOUTS_MAX - 1);
            layouts.insert(0, Arc::new(Layout { distances, plans }));
        }
        Ok(layouts[0].clone())
    }

    fn lock_layouts(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Layout>>> {
        // The vector is consistent at every point that can panic.
        self.layouts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Element, const N: usize> fmt::Display for Halo<T, N> {
    /// Writes one line for reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stencil = match self.stencil {
            Stencil::Star => "star",
            Stencil::Box => "box",
        };
        write!(
            f,
            "{stencil} halo of {} around {:?} cells, fields {}, neighbours {}, {} bytes per exchange",
            self.block.width,
            self.block.shape,
            self.fields,
            self.links.len(),
            self.bytes()
        )
    }
}

impl<T: Element, const N: usize> fmt::Debug for Halo<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Halo({self})")
    }
}
