//! The persistent plan of a halo exchange: its neighbours, its datatypes, and the code that posts its
//! messages.
//!
//! A program makes a plan once, from a Cartesian communicator and the faces of `geometry.rs`. Each
//! [`start`](Halo::start) posts the messages and passes them to `exchange.rs`.
//!
//! Invariants:
//! - In each exchange, one message per neighbour carries the boxes of all fields, in the order of the
//!   fields. The datatype of the message repeats the subarray of the box once per field, at the byte
//!   distance of this field from the first field. The plan commits these datatypes when it first sees a set
//!   of distances, and keeps the datatypes of the `LAYOUTS_MAX` sets that it used most recently. So a
//!   computation that swaps two sets of fields commits datatypes only in the first exchange of each set.
//! - An exchange is a collective call on a communicator that only the plan uses. In a periodic dimension of 1
//!   or 2 ranks, both neighbours are the same rank. Their messages match by order: a rank sends towards its
//!   sides in ascending order, and receives from its sides in descending order (`Neighbors::of_sides`).

use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use typepack_engine::{Datatype, Direction, Elements, Plan};

use super::exchange::{Exchange, Pending};
use super::field::{Element, Field};
use super::geometry::{Block, Face, Side, Stencil};
use crate::coll::{Cartesian, Collective};
use crate::comm::Communicator;
use crate::error::{Error, ErrorKind, Result};
use crate::topo::Neighbors;

/// The largest number of layouts that a plan keeps. Each layout has the datatypes for one set of distances
/// between fields.
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
    /// The neighbours of `links`, in the same order.
    neighbors: Neighbors,
    /// At most [`LAYOUTS_MAX`] layouts, the most recently used first.
    layouts: Mutex<Vec<Arc<Layout>>>,
    element: std::marker::PhantomData<fn(T) -> T>,
}

/// A face that has a neighbour.
struct Link<const N: usize> {
    face: Face<N>,
    neighbour: usize,
}

/// The committed datatypes for one set of distances between fields: for each `Link`, the datatype of the
/// message that this rank sends and of the message that it receives.
struct Layout {
    /// The byte distance of each field from the first field.
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
    /// Number of bytes that this rank sends to the neighbour in each exchange, for all fields together. This
    /// rank receives the same number of bytes from the neighbour.
    pub bytes: u64,
    /// The name of the kernel that currently packs the message, or `-` before the first exchange. The plan
    /// may switch to another kernel when the JIT has compiled one.
    pub pack: String,
    /// The name of the kernel that currently unpacks the message from this neighbour, or `-` before the first
    /// exchange.
    pub unpack: String,
}

impl<T: Element, const N: usize> Halo<T, N> {
    /// Plans an exchange of `fields` fields at once. Each field has `shape` owned cells on this rank and a
    /// halo of `width` cells on each side.
    ///
    /// Blocks of different ranks may differ in shape. Ranks with the same coordinate in a dimension must have
    /// the same number of cells along that dimension. Collective over the communicator.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if the communicator does not have `N` dimensions, if `N` is 0 or above
    /// 8, if `fields` is 0, if a dimension has no cell, if `width` is 0 or larger than an entry of `shape`,
    /// if a field does not fit in the address space, or if [`Element::datatype`] of `T` does not describe
    /// one value. The function checks all of this before it communicates. If only some ranks find an error,
    /// the other ranks wait in this call until the ranks with the error end. Returns
    /// `ErrorKind::ProcAborted` if another rank has died.
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
                // The conversion loses nothing, because a coordinate is below the number of ranks.
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
            neighbors: Neighbors::of_sides(links.iter().map(|link| link.neighbour)),
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
    /// Returns `ErrorKind::Argument` if the number of fields or the shape of a field differs from the plan's,
    /// the error of an earlier exchange of one of the fields if that exchange has failed, and
    /// `ErrorKind::ProcAborted` if another rank has died.
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
        // - Each start is the allocation of a different field and has `block.len()` values (checked above).
        //   The `Exchange` below shares the ownership of these allocations, so they stay allocated even if
        //   the program leaks the `Exchange`.
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

    /// Returns the number of bytes that this rank sends in one exchange. This rank receives the same number
    /// of bytes.
    pub fn bytes(&self) -> u64 {
        self.links.iter().map(|link| self.link_bytes(link)).sum()
    }

    /// Returns the number of bytes that this rank sends to other ranks in one exchange. The rest of
    /// [`bytes`](Halo::bytes) goes to this rank itself: in a periodic dimension of 1 rank, a rank is its own
    /// neighbour.
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
        // `Block::new` has checked that the size of one field fits in `isize`. If the size of a message with
        // all fields does not fit, the commit of the message's datatype fails.
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

    /// Starts the exchange, which is a neighbourhood collective (`coll/schedule/neighbors.rs`) over the sides of the
    /// stencil.
    ///
    /// # Safety
    ///
    /// - `starts` has one entry per field of the plan. Each entry is the address of the first value of an
    ///   array of `block.len()` values, and the arrays do not overlap.
    /// - Until the result has been completed, the arrays stay valid, nobody writes their send boxes, and
    ///   nobody accesses their receive boxes.
    pub(super) unsafe fn post(&self, starts: &[*mut T]) -> Result<Pending> {
        let layout = self.layout(starts)?;
        // Like a message at MPI_BOTTOM, one message accesses several allocations from a single address. So
        // the code exposes the provenance of all allocations, and builds an address that may have the
        // provenance of any of them.
        let addresses: Vec<usize> = starts.iter().map(|start| start.expose_provenance()).collect();
        let origin = ptr::with_exposed_provenance_mut::<u8>(addresses[0]);
        let part = |plan| Elements { origin, plan, count: 1 };
        let (send, receive): (Vec<_>, Vec<_>) =
            layout.plans.iter().map(|(send, recv)| (part(send), part(recv))).unzip();
        let call =
            Collective::Neighbors { neighbors: &self.neighbors, send: &send, receive: &receive };
        // SAFETY: the plans of `layout` cover the send boxes and the receive boxes of the arrays at their
        // distances from `origin`. The caller guarantees that, until the result has been completed, the arrays
        // stay valid, nobody writes the send boxes, and nobody accesses the receive boxes (second condition of
        // `# Safety`). Receive boxes lie in the halo and do not overlap each other, and send boxes lie in the owned
        // cells (`geometry.rs`). The call has no operation that combines elements.
        let operation = unsafe { self.comm.start_raw(&call)? };
        Ok(Pending::new(self.comm.messages(), operation))
    }

    /// Returns the committed datatypes for arrays that begin at `starts`. If the plan does not have them yet,
    /// commits them.
    fn layout(&self, starts: &[*mut T]) -> Result<Arc<Layout>> {
        let first = starts[0].addr();
        // For any two addresses, their wrapped difference as an `i64` leads from the first address to the
        // second.
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
        // If a thread panicked while it held this lock, the vector is still consistent, because it is
        // consistent at every point at which the code can panic.
        self.layouts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Element, const N: usize> fmt::Display for Halo<T, N> {
    /// Writes the plan as one line for reports.
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
