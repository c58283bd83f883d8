//! The engine of two ranks in one process, and of one rank against a hostile other.

mod heap;
mod hostile;
mod private;
mod types;
