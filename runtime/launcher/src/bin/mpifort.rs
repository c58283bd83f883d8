//! `mpifort`: compiles and links Fortran programs for the MPI ABI. The code is in `../wrapper/`.

#[path = "../wrapper/mod.rs"]
mod wrapper;

fn main() -> std::process::ExitCode {
    wrapper::main(&wrapper::Tool {
        name: "mpifort",
        language: "Fortran",
        compiler: "gfortran",
        choosers: &["-fc="],
        variables: &["TYPEPACK_FC", "MPICH_FC", "OMPI_FC"],
        fortran: true,
    })
}
