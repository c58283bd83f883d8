//! The tests of the `typepack` tool: one program, so that it is linked once.

mod tool;

mod checkpoint;
mod doctor;
mod explain;
mod halo;
mod info;
mod reference;
mod run;
mod shim;
