//! The persistent plan of a halo exchange: neighbours, datatypes, and how messages are posted.
//!
//! Made once from a Cartesian communicator and the faces of `geometry.rs`; each
//! [`start`](Halo::start) hands the messages it posts to `exchange.rs`.
//!
//! Invariants:
//! - One message per neighbour and exchange carries the boxes of all fields, in the order of the
//!   fields: its datatype is the box's subarray at the byte distance of each field from the first.
//!   It is committed when a set of distances is first seen and kept, so that a computation that
//!   swaps two sets of fields commits twice and then never again.
//! - A message towards side `s` bears the tag of `s`, on a communicator of the plan's own. In a
//!   periodic dimension of 1 or 2 ranks both neighbours are the same rank, and only the tag tells
//!   their messages apart.
//! - Receives are posted before sends, and nothing waits between the two.

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

/// Sets of field distances whose datatypes a plan keeps committed.
const LAYOUTS_MAX: usize = 16;

/// A persistent halo exchange over a Cartesian communicator.
///
/// See the [module's text](super) for an example.
pub struct Halo<T: Element, const N: usize> {
    pub(super) comm: Communicator,
    pub(super) block: Block<N>,
    stencil: Stencil,
    fields: usize,
    links: Vec<Link<N>>,
    /// Most recently used first, at most [`LAYOUTS_MAX`].
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
    /// Bytes from the first field to each.
    distances: Vec<i64>,
    plans: Vec<(Plan, Plan)>,
}

/// What one neighbour gets and gives in each exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaceReport<const N: usize> {
    /// Where the neighbour is.
    pub side: Side<N>,
    /// Its rank in the Cartesian communicator.
    pub neighbour: usize,
    /// Bytes sent to it per exchange, all fields together; as many are received from it.
    pub bytes: u64,
    /// What packs the message now (it may change when the JIT compiles), or `-` before the first
    /// exchange.
    pub pack: String,
    /// What unpacks the message from this side.
    pub unpack: String,
}

impl<T: Element, const N: usize> Halo<T, N> {
    /// Plans the exchange of `fields` fields at once, with `shape` owned cells on this rank and a
    /// halo of `width` cells on each side.
    ///
    /// Blocks of different ranks may differ in shape, as long as ranks with a common coordinate
    /// have the same extent along that dimension. Collective over the communicator.
    ///
    /// # Errors
    ///
    /// When the communicator has not `N` dimensions, `fields` is 0, a dimension has no cell,
    /// `width` is 0 or larger than an extent, or `T` describes itself wrongly. All of these are
    /// found before anything is communicated; a rank that finds one while others do not leaves
    /// those waiting until it ends.
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
                format!("has {} dimensions, but the fields have {N}", cartesian.dims().len()),
            );
        }
        if fields == 0 {
            return argument("fields", "is 0, but at least one field is exchanged".into());
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
                    "has extent {} and covers {}..{}, but the value has {bytes} bytes",
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

    /// Starts to exchange the halos of `fields`. Every rank of the communicator has to start, in
    /// the same order as all its other exchanges with this plan.
    ///
    /// # Errors
    ///
    /// When the number of fields or a field's shape is not the plan's, when an earlier exchange of
    /// a field has failed, or when another rank has died.
    pub fn start<'a>(&self, fields: &'a mut [Field<T, N>]) -> Result<Exchange<'a, T, N>> {
        self.check_fields(fields.len())?;
        for (number, field) in fields.iter_mut().enumerate() {
            if field.block() != self.block {
                return Err(Error::new(
                    ErrorKind::Argument,
                    "fields",
                    format!(
                        "field {number} has {:?} cells and a halo of {}, but the plan is for {:?} and {}",
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
        // - Each start is an allocation of `block.len()` values (checked above) of a field of its
        //   own, which the exchange below keeps, and leaks if it is leaked.
        // - Until its messages are complete nobody else touches them: the exchange borrows the
        //   fields, and `Field` hands out nothing before it has completed the exchange.
        let pending = unsafe { self.post(&starts)? };
        Ok(Exchange::new(fields, pending))
    }

    /// Starts and completes an exchange.
    ///
    /// # Errors
    ///
    /// As [`start`](Halo::start) and [`Exchange::wait`].
    pub fn exchange(&self, fields: &mut [Field<T, N>]) -> Result<()> {
        self.start(fields)?.wait()
    }

    /// Owned cells along each dimension.
    pub fn shape(&self) -> [usize; N] {
        self.block.shape
    }

    /// Cells of the halo on each side.
    pub fn width(&self) -> usize {
        self.block.width
    }

    /// Which neighbours take part.
    pub fn stencil(&self) -> Stencil {
        self.stencil
    }

    /// Number of fields per exchange.
    pub fn fields(&self) -> usize {
        self.fields
    }

    /// Bytes that this rank sends in one exchange (and receives as many).
    pub fn bytes(&self) -> u64 {
        self.links.iter().map(|link| self.link_bytes(link)).sum()
    }

    /// The part of [`bytes`](Halo::bytes) that goes to other ranks. The rest goes to this rank
    /// itself, its own neighbour in periodic dimensions of 1.
    pub fn bytes_to_others(&self) -> u64 {
        let me = self.comm.rank();
        self.links.iter().filter(|l| l.neighbour != me).map(|l| self.link_bytes(l)).sum()
    }

    /// One report per neighbour, in the order of the sides.
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
        // `Block::new` made sure that one field's bytes fit; a message of all of them may not, and
        // is refused at its commit.
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
            format!("holds {given} fields, but the plan is for {}", self.fields),
        ))
    }

    /// Posts all messages of one exchange, or none.
    ///
    /// # Safety
    ///
    /// - Each of `starts` (as many as the plan's fields) is the first value of an array of
    ///   `block.len()` values, and no two overlap.
    /// - The arrays stay valid, and nothing writes their send boxes or touches their receive boxes,
    ///   until the result has been completed.
    pub(super) unsafe fn post(&self, starts: &[*mut T]) -> Result<Pending> {
        let layout = self.layout(starts)?;
        // One message reaches into several allocations from one address, as a message at MPI_BOTTOM
        // does: all of them have to be exposed, and the address must stand for any.
        let addresses: Vec<usize> = starts.iter().map(|start| start.expose_provenance()).collect();
        let origin = ptr::with_exposed_provenance_mut::<u8>(addresses[0]);
        let messages = self.comm.messages();
        let mut operations = Vec::with_capacity(2 * self.links.len());
        let mut post_all = || {
            for (link, (_, recv)) in self.links.iter().zip(&layout.plans) {
                // The neighbour there sent towards us.
                let tag = Tag::Is(link.face.side.opposite().index());
                let source = Source::Rank(self.comm.world_rank(
                    link.neighbour,
                    "source",
                    ErrorKind::Rank,
                )?);
                // SAFETY: `recv` covers the receive boxes of the arrays at their distances from
                // `origin`, which the caller keeps valid and untouched until completion; the source
                // is a rank of the world, a face's index not negative.
                operations.push(unsafe { messages.receive(origin, recv, 1, source, tag) }?);
            }
            for (link, (send, _)) in self.links.iter().zip(&layout.plans) {
                let dest = self.comm.world_rank(link.neighbour, "dest", ErrorKind::Rank)?;
                let (mode, tag) = (SendMode::Standard, link.face.side.index());
                // SAFETY: `send` covers the send boxes of the arrays at their distances from
                // `origin`, which the caller keeps valid and unwritten until completion; the
                // destination is a rank of the world, a face's index not negative, no memory is lent.
                operations.push(unsafe { messages.send(mode, origin, send, 1, dest, tag) }?);
            }
            Ok(())
        };
        if let Err(error) = post_all() {
            // Their counterparts may never come, so nobody can wait for them.
            for operation in operations {
                messages.abandon(operation);
            }
            return Err(error);
        }
        Ok(Pending::new(messages, operations))
    }

    /// The committed datatypes for these arrays.
    fn layout(&self, starts: &[*mut T]) -> Result<Arc<Layout>> {
        let first = starts[0].addr();
        // Wrapping: distances of addresses, positive or negative, always fit `i64`.
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
        // The vector is consistent at every point where a panic could come from.
        self.layouts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Element, const N: usize> fmt::Display for Halo<T, N> {
    /// One line for reports.
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
