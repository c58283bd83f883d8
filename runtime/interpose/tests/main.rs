//! The tests of the interposer: one program, so that it is linked once.

mod support;

mod cases;
mod interpose;
mod shim;
