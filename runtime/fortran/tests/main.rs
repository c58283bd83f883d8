//! The tests of the Fortran face: one program, so that it is linked once.

mod modules;
mod programs;
