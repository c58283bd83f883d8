//! Halo exchange over a Cartesian grid of ranks.
//!
//! A computation cuts its grid into blocks, one per rank. Each block has a halo around it: copies of the
//! neighbours' cells. A [`Halo`] is the persistent plan that fills the halos of one or several [`Field`]s
//! with one message per neighbour. Compiled datatypes pack and unpack the messages. Between
//! [`start`](Halo::start) and [`wait`](Exchange::wait) the messages are under way, and the program can
//! compute the cells that need no halo through [`Exchange::interior`].
//!
//! ```
//! use typepack::halo::{Field, Halo, Stencil};
//!
//! let universe = typepack::init()?; // one of many ranks; without mpiexec the only rank
//! let world = universe.world();
//! let mut ranks = [0, 0, 0];
//! typepack::dims_create(world.size(), &mut ranks)?;
//! let grid = world.cartesian(&ranks, &[true; 3])?;
//!
//! // 8 x 8 x 8 cells per rank, a halo of 1 cell, only neighbours across faces, 1 field.
//! let halo = Halo::<f64, 3>::new(&grid, [8, 8, 8], 1, Stencil::Star, 1)?;
//! let mut fields = [Field::new([8, 8, 8], 1)?];
//! fields[0].as_mut_slice().fill(1.0);
//! let corner = fields[0].position([-1, 0, 0]).expect("a cell of the halo");
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
//! The star of neighbours (6 in three dimensions) is enough for stencils along the axes. A computation that
//! reads diagonal cells needs the box of neighbours (26 in three dimensions). A computation that does
//! several steps between two exchanges of a wide halo also needs the box. At the edge of a grid that is not
//! periodic there is no neighbour, and the exchange leaves the halo cells there unchanged.
//!
//! [`Halo::exchange_slices_with`] exchanges slices that are not [`Field`]s, and `exchange_with` exchanges
//! `ndarray` views (feature `ndarray`). Both complete the exchange before they end, even if they return an
//! error or panic.
//!
//! The files in the order in which an exchange uses them: `geometry.rs` (boxes and datatypes), `plan.rs`
//! (neighbours and messages), `exchange.rs` and `field.rs` (exchanges of fields) or `borrowed.rs` (exchanges
//! of slices and views), and `interior.rs` (the cells for the computation).

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
