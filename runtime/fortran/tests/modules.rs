//! Checks that the modules and `mpif.h` in `include/` are what the tables generate. With `TYPEPACK_BLESS=1`, the test
//! rewrites the files instead of comparing them.

use std::path::Path;
use typepack_capi_tables::{Form, Fortran, Tables, include_file, module};
use typepack_test_support::blessed::blessed;

#[test]
fn the_files_are_what_the_tables_say() {
    let tables = Tables::read();
    let fortran =
        Fortran::new(&tables.functions, &tables.constants, &tables.compat, &tables.fortran);
    let include = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/include"));
    blessed(&include.join("mpi_f08.f90"), &module(&fortran, &tables.callbacks, Form::F08));
    blessed(&include.join("mpi.f90"), &module(&fortran, &tables.callbacks, Form::Mpi));
    blessed(&include.join("mpif.h"), &include_file(&fortran));
}

/// Every line of `mpif.h` is valid in fixed source form, too, which ends at column 72.
#[test]
fn the_include_file_fits_into_both_source_forms() {
    let text = include_str!("../include/mpif.h");
    for line in text.lines() {
        let good = line.starts_with('!') || (line.starts_with("      ") && line.len() <= 72);
        assert!(good, "{line}");
    }
}
