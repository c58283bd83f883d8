//! Halo exchange over a Cartesian grid of ranks.
//!
//! A computation on a grid is cut into blocks, one per rank; each block carries a halo, copies of
//! the neighbours' cells around it. A [`Halo`] is the persistent plan that fills the halos of one
//! or several [`Field`]s with one message per neighbour, packed and unpacked by compiled datatypes.
//! Between [`start`](Halo::start) and [`wait`](Exchange::wait) the messages are under way and the
//! cells that need no halo can be computed through [`Exchange::interior`].
//!
//! ```
//! use typepack::halo::{Field, Halo, Stencil};
//!
//! let universe = typepack::init()?; // under mpiexec one of many ranks, without it the only one
//! let world = universe.world();
//! let mut ranks = [0, 0, 0];
//! typepack::dims_create(world.size(), &mut ranks)?;
//! let grid = world.cartesian(&ranks, &[true; 3])?;
//!
//! // 8 x 8 x 8 cells per rank, a halo of 1, neighbours across faces only, one field.
//! let halo = Halo::<f64, 3>::new(&grid, [8, 8, 8], 1, Stencil::Star, 1)?;
//! let mut fields = [Field::new([8, 8, 8], 1)?];
//! fields[0].as_mut_slice().fill(1.0);
//! let corner = fields[0].position([-1, 0, 0]).expect("a halo cell");
//! fields[0].as_mut_slice()[corner] = 0.0;
//!
//! let mut exchange = halo.start(&mut fields)?;
//! let interior = exchange.interior();
//! let sum: f64 = interior.cells(0, [3, 4, 0], 8).iter().sum(); // while messages are under way
//! assert_eq!(sum, 8.0);
//! exchange.wait()?;
//!
//! assert_eq!(fields[0].as_slice()[corner], 1.0); // the neighbour's cell
//! # Ok::<(), typepack::Error>(())
//! ```
//!
//! A star of neighbours (6 in three dimensions) is enough for stencils along the axes; where
//! diagonal cells are read, also over several steps between two exchanges of a wide halo, the box
//! (26) is needed. At the edge of a grid that is not periodic there is no neighbour, and the halo
//! there is left alone.
//!
//! Memory that is not a [`Field`] is exchanged by [`Halo::exchange_slices_with`], or by
//! `exchange_with` on `ndarray` views (feature `ndarray`); both complete the exchange before they
//! return, whatever happens.
//!
//! The flow: `geometry.rs` (boxes and datatypes) → `plan.rs` (neighbours, messages) →
//! `exchange.rs` over `field.rs`, or `borrowed.rs` → `interior.rs`.

mod borrowed;
mod exchange;
mod field;
mod geometry;
mod interior;
mod plan;

pub use exchange::Exchange;
pub use field::{Element, Field};
pub use geometry::{Face, Region, Side, Stencil, faces};
pub use interior::Interior;
pub use plan::{FaceReport, Halo};
